/* watch.c - the supervisor's loop over streams, messages, signals and the clock. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <termios.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "egress/guard.h"
#include "os/clock.h"
#include "os/clone.h"
#include "policy/danger.h"
#include "sandbox/governed.h"
#include "sandbox/share.h"
#include "sandbox/supervise.h"

/* How long a skill may take to end after it got a signal that asks for it. */
#define GRACE_MS 2000

/* How long after the start the digests are computed. */
#define DIGEST_MS 10

enum {
	AT_CTL,
	AT_PID,
	AT_SIG,
	AT_OOM,
	AT_EXEC,
	AT_EGRESS,
	AT_OBSERVER,
	AT_GOVERN,
	AT_MAKER,
	AT_LOOKUP, /* two of them */
	AT_PUMPS = AT_LOOKUP + 2,
	AT_COUNT = AT_PUMPS + 3
};

static bool weighs_by_nice(const struct run *r)
{
	return r->cgroup == NULL || !cgroup_weighs(r->cgroup);
}

/* Makes a cgroup if the machine allows it, and fills `go` and *ret_fds for it. Without a cgroup,
 * rlimits, the process count of the user namespace and init's watchdog enforce the limits. */
static void make_cgroup(struct run *r, struct msg *go, struct msg_fds *ret_fds)
{
	const struct resources *res = &r->plan->res;
	const struct cgroup_limits limits = { .memory_bytes = res->memory_mb << 20,
		                              .cpu_shares = res->cpu_shares,
		                              .max_processes = res->max_processes,
		                              .governed = r->govern != NULL };
	struct ssb_error why = { 0 };

	if (cgroup_create("run", &limits, &r->cgroup, &why) == 0) {
		snprintf(go->go.limits, sizeof(go->go.limits), "%s; rlimits%s",
		         cgroup_describe(r->cgroup), weighs_by_nice(r) ? ", nice value" : "");
		ret_fds->n = cgroup_join_fds(r->cgroup, ret_fds->v);
		r->oom = cgroup_oom_eventfd(r->cgroup);
		r->thaw = cgroup_thaw_fd(r->cgroup);
	}
	go->go.thaw = r->thaw >= 0;
	if (go->go.thaw) {
		ret_fds->v[ret_fds->n++] = r->thaw;
	}
	go->go.watchdog = r->cgroup == NULL;
	go->go.nice = weighs_by_nice(r);
}

/* Puts the run record on disk and makes the cgroup while the child builds the sandbox, and then
 * lets the skill start. Also looks up the paths of the owner's secret stores (danger_stores()),
 * unless the plan knows them. */
static int send_go(struct run *r, struct ssb_error *err)
{
	struct msg m = { .kind = MSG_GO };
	struct msg_fds fds = { .n = 0 };

	if ((r->trace != NULL && trace_sync(r->trace, err) != 0) ||
	    egress_ready(&r->egress, err) != 0 ||
	    (r->request->still != NULL && r->request->still(r->plan, &r->seen, err) != 0)) {
		return -1;
	}
	make_cgroup(r, &m, &fds);
	governed_placed(r);
	if (share_shed_oom(r->pid) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "limits",
		                "cannot reset the skill's oom_score_adj");
	}
	if (msg_fds_send(r->ctl, &m, sizeof(m), &fds) != 0) {
		/* Usually the child has ended and reported the reason. If it is still running, it
		 * would wait for ever, so end it. */
		run_kill(r);
	}
	/* Do the following work only now. It delays nothing: the child is still building the
	 * sandbox, and the skill's first execve must wait for the observer anyway. */
	if (r->trace != NULL) {
		trace_place(r->trace);
	}
	return r->config.observe && !r->plan->stores_known &&
	                       danger_stores(NULL, r->plan->home, &r->stores) != 0
	               ? ssb_fail(err, SSB_E_NOMEM, 0, "audit", "out of memory")
	               : 0;
}

/* Takes the sockets of the sandbox's network for the broker. They arrive in several messages; after
 * the last one the broker is started, unless it has to wait for a lookup. */
static void take_listeners(struct run *r, const struct msg *m, struct msg_fds *fds)
{
	struct listeners *l = &r->egress.listeners;

	if (r->killed) {
		return;
	}
	for (size_t i = 0; i < fds->n && l->n < MAX_LISTENERS; i++) {
		l->kind[l->n] = m->listeners.kinds[i];
		l->fd[l->n++] = steal_fd(&fds->v[i]);
	}
	if (m->listeners.last && !r->egress.on_demand &&
	    (egress_start(&r->egress, r->plan, &r->failure) != 0 || send_go(r, &r->failure) != 0)) {
		run_kill(r);
	}
}

static bool is_answered(void *arg, const struct address *to, uint16_t port, bool udp)
{
	struct run *r = arg;

	return r->egress.table != NULL && egress_answers(r->egress.table, to, port, udp);
}

static bool is_known(void *arg, const struct address *to, char ret_name[HOST_NAME_SIZE])
{
	struct run *r = arg;

	return r->egress.table != NULL && egress_knows(r->egress.table, to, ret_name);
}

static bool is_taken(void *arg, const struct address *to, uint16_t port, bool udp)
{
	struct run *r = arg;

	return r->egress.table != NULL && !udp && egress_takes_port(r->egress.table, to, port);
}

static bool is_guarded(void *arg, const struct address *to)
{
	const struct string_list *granted = &((struct run *)arg)->plan->allow_private;
	struct cidr range;

	for (size_t i = 0; i < granted->n; i++) {
		if (cidr_parse(granted->v[i], &range) && cidr_contains(&range, to)) {
			return false;
		}
	}
	return guard_address_special(to) != NULL;
}

/* Starts the observer. From now on the skill's calls wait for it. */
static void take_listener(struct run *r, const struct msg *m, pid_t from)
{
	/* Judge calls by the filter that was really loaded: it may differ from the planned one. */
	r->unix_sockets = r->config.unix_sockets && m->listener.unix_sockets;
	const struct observer_setup setup = {
		.plan = r->plan,
		.trace = r->trace,
		.filter = stage_filter(&r->config, r->unix_sockets),
		.own_sockets = r->plan->own_sockets && r->config.namespaces && !r->unix_sockets,
		.uid = r->config.uid,
		.gid = r->config.gid,
		.cgroup = r->cgroup,
		.held = r->repos != NULL ? &r->repos->links.paths : NULL,
		.stores = r->plan->stores_known ? &r->plan->stores : &r->stores,
		.own_dirs = { r->owner != NULL ? r->owner->state_dir : NULL,
		              r->owner != NULL ? r->owner->config_dir : NULL },
		.net = { is_answered, is_known, is_taken, is_guarded, r },
		.exec_pipe = &r->exec_pipe,
	};

	if (r->killed) {
		return; /* an old message, which was sent before the child was killed */
	}
	if (r->observer != NULL || observer_new(&setup, &r->observer, &r->failure) != 0 ||
	    observer_attach(r->observer, from, m->listener.number, &r->failure) != 0) {
		r->follows = r->failure.sys_errno == ESRCH || r->failure.sys_errno == ENOENT;
		run_kill(r);
	}
}

static void hear_child(struct run *r, struct pump pumps[3])
{
	struct msg m;
	struct msg_fds fds;
	ssize_t n = msg_fds_recv(r->ctl, &m, sizeof(m), &fds);

	if (n < 0 && errno == ECONNRESET) {
		return; /* the child ended before it read all messages; the messages that it sent
		           come next */
	}
	if (n != (ssize_t)sizeof(m)) {
		if (n > 0) {
			msg_fds_close(&fds);
		}
		own_close(&r->ctl);
		return;
	}
	switch (m.kind) {
	case MSG_FAILED:
		/* Keep the first failure: it is the cause of the others. */
		if (r->failure.code == SSB_OK || r->follows) {
			r->failure = m.error;
			r->follows = false;
		}
		break;
	case MSG_PTY:
		r->master = fds.n == 1 ? steal_fd(&fds.v[0]) : -1;
		(void)fcntl(r->master, F_SETFL, O_RDWR | O_NONBLOCK);
		suspend_copy_window(r, false);
		pumps[0].to = r->master;
		pumps[1].from = r->master;
		break;
	case MSG_LISTENERS:
		take_listeners(r, &m, &fds);
		break;
	case MSG_LISTENER:
		take_listener(r, &m, fds.from);
		break;
	case MSG_STARTED:
		memcpy(r->reports, m.reports, sizeof(m.reports));
		r->started = true;
		if (r->trace != NULL) {
			trace_layers(r->trace, r->reports);
		}
		r->share_at = weighs_by_nice(r) ? clock_ms() + SHARE_RETRY_MS : 0;
		pause_started(r);
		break;
	case MSG_ENDED:
		r->ended = true;
		r->wstatus = m.ended.wstatus;
		r->cause = m.ended.cause;
		r->memory = m.ended.memory;
		r->tasks = m.ended.tasks;
		r->disk_full = m.ended.disk_full;
		if (m.ended.left) {
			ssb_fail(
			        &r->failure, SSB_E_LAYER, 0, "userns",
			        "the skill has ended, but some processes that it started could not "
			        "be ended and are still running");
			r->gave_up = true; /* these processes may keep the output open */
		}
		if (r->cause == CAUSE_RESTLESS && r->govern == NULL) {
			ssb_fail(&r->failure, SSB_E_LAYER, 0, "pause",
			         "a process kept running while the run was stopped, so the run "
			         "was ended");
		}
		if (r->cause == CAUSE_RESTLESS) {
			governed_restless(r);
		}
		break;
	case MSG_STANDS:
		pause_stands(r, m.pause.number);
		break;
	case MSG_STOPPED:
		suspend_ask(r, true);
		break;
	case MSG_CONTINUED:
		r->suspend.waking = false;
		break;
	default:
		break;
	}
	msg_fds_close(&fds);
}

static void hear_signal(struct run *r, int sig_fd, uint64_t *kill_at)
{
	struct signalfd_siginfo info;

	if (read(sig_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
		return;
	}
	int sig = (int)info.ssi_signo;
	if (sig == SIGWINCH) {
		suspend_copy_window(r, false);
		return;
	}
	if (sig == SIGTSTP) {
		suspend_ask(r, false);
		return;
	}
	if (r->ended || r->dead) {
		r->gave_up = true; /* only output is left to deliver: the signal ends that, too */
		return;
	}
	if (r->canceled != 0) {
		run_kill(r); /* asked twice */
		return;
	}
	struct msg m = { .kind = MSG_SIGNAL, .signal = sig };
	r->canceled = sig;
	*kill_at = clock_ms() + GRACE_MS;
	/* A paused skill cannot react to the signal, and must not be resumed for it. */
	if (!r->started || r->pause.motion != GOES ||
	    msg_fds_send(r->ctl, &m, sizeof(m), NULL) != 0) {
		run_kill(r);
	}
}

/* Called when the exec pipe is closed: execve has succeeded, or the process has ended and its
 * failure was reported before. */
static void note_exec(struct run *r)
{
	if (r->started && r->failure.code == SSB_OK && r->trace != NULL) {
		/* Compute the digests later: the program now opens its libraries, and each open
		 * waits for the observer. */
		r->digest_at = clock_ms() + DIGEST_MS;
		observer_started(r->observer);
		if (r->observer == NULL) {
			trace_eventf(r->trace, EV_PROCESS_SPAWNED, "%s", r->plan->argv.v[0]);
		}
	}
}

/* Does the trace's work that is due, and ends the run if the trace can no longer be written. */
static void keep_record(struct run *r)
{
	if (r->trace == NULL) {
		return;
	}
	observer_tick(r->observer);
	trace_tick(r->trace);
	if (r->digest_at != 0 && clock_ms() >= r->digest_at) {
		r->digest_at = 0;
		trace_digest(r->trace, false);
	}
	if (trace_broken(r->trace) && r->failure.code == SSB_OK) {
		r->failure = *trace_failure(r->trace);
		r->gave_up = true;
		run_kill(r);
	}
}

/* Returns the earlier of two times; 0 means never. */
static uint64_t next_due(uint64_t a, uint64_t b)
{
	return a == 0 ? b : b == 0 || a < b ? a : b;
}

/* Returns the timeout of poll() in milliseconds until `due`, at most an hour. If `due` is 0
 * (never), returns -1. */
static int poll_ms(uint64_t due)
{
	uint64_t now = clock_ms();
	uint64_t left = due > now ? due - now : 0;

	return due == 0 ? -1 : left < 3600000 ? (int)left : 3600000;
}

/* Does the work whose time has come: kills, the time limit, the CPU share. */
static void keep_time(struct run *r, uint64_t *kill_at)
{
	uint64_t now = clock_ms();

	if (*kill_at != 0 && now >= *kill_at) {
		run_kill(r);
		r->gave_up = r->ended || r->dead;
		*kill_at = 0;
	}
	if (r->deadline != 0 && now >= r->deadline) {
		/* Normally init enforces the time limit. This is a second check. It is needed if
		 * init was stopped, or if the reader of the output does not read. */
		r->cause = CAUSE_TIME;
		r->gave_up = r->ended;
		r->deadline = 0;
		run_kill(r);
	}
	if (now >= r->egress.hear_at) {
		r->egress.hear_at = 0;
	}
	if (r->share_at != 0 && !r->ended && !r->dead && now >= r->share_at) {
		bool again = share_set_session(r->pid, r->plan->res.cpu_shares) != 0;
		r->share_at = again && ++r->share_tries < SHARE_TRIES ? now + SHARE_RETRY_MS : 0;
	}
}

/* Waits until an fd is ready or some work is due. */
static void wait_for_news(struct run *r, struct pump pumps[3], uint64_t kill_at,
                          struct pollfd p[AT_COUNT])
{
	for (int i = 0; i < 3; i++) {
		p[AT_PUMPS + i] = pump_wants(&pumps[i]);
	}
	/* Do not read typed input before the skill's terminal exists, or in the background. SIGCONT
	 * would cancel the stop by a Ctrl-Z that comes before it. */
	if ((r->config.pty && r->master < 0) || r->suspend.background || r->suspend.waking) {
		p[AT_PUMPS].fd = -1;
	}
	uint64_t due =
	        next_due(next_due(kill_at, r->deadline), r->ended || r->dead ? 0 : r->share_at);
	due = next_due(due, r->egress.hear_at);
	if (r->trace != NULL) {
		due = next_due(next_due(due, trace_due(r->trace)), r->digest_at);
	}
	due = next_due(next_due(due, observer_due(r->observer)), governed_due(r->govern));
	due = next_due(next_due(due, pause_due(r)), suspend_due(r));
	(void)poll(p, AT_COUNT, poll_ms(due));
}

static bool hears_egress(const struct run *r)
{
	return r->egress.hear_at == 0 && !governed_full(r->govern);
}

static int maker_fd(const struct run *r)
{
	return r->killed || r->ended || r->dead ? -1 : observer_maker(r->observer);
}

/* Ends the run because the process that makes the skill's unix sockets has ended: calls of the
 * skill could wait for it for ever. The OOM killer may have ended it with the whole cgroup. */
static void lose_maker(struct run *r)
{
	if (maker_fd(r) < 0) {
		return;
	}
	if (r->cgroup != NULL && cgroup_oom_kills(r->cgroup) > 0) {
		r->cause = CAUSE_MEMORY;
	} else if (r->failure.code == SSB_OK) {
		ssb_fail(&r->failure, SSB_E_LAYER, 0, "unix_sockets",
		         "the process that makes the skill's unix sockets has ended, so the run "
		         "cannot continue");
	}
	run_kill(r);
}

static void take_turn(struct run *r, struct pump pumps[3], int sig_fd, uint64_t *kill_at)
{
	struct pollfd p[AT_COUNT] = {
		[AT_CTL] = { .fd = r->ctl, .events = POLLIN },
		[AT_PID] = { .fd = r->dead ? -1 : r->pidfd, .events = POLLIN },
		[AT_SIG] = { .fd = sig_fd, .events = POLLIN },
		[AT_OOM] = { .fd = r->oom, .events = POLLIN },
		[AT_EXEC] = { .fd = r->exec_pipe, .events = POLLIN },
		[AT_EGRESS] = { .fd = hears_egress(r) ? r->egress.events : -1, .events = POLLIN },
		[AT_OBSERVER] = { .fd = observer_fd(r->observer), .events = POLLIN },
		[AT_GOVERN] = governed_wants(r->govern),
		[AT_MAKER] = { .fd = maker_fd(r), .events = POLLIN },
		[AT_LOOKUP] = { .fd = egress_sleeper(&r->egress, 0), .events = POLLIN },
		[AT_LOOKUP + 1] = { .fd = egress_sleeper(&r->egress, 1), .events = POLLIN },
	};

	wait_for_news(r, pumps, *kill_at, p);
	/* The observer comes first, because a process of the skill waits for its answer. */
	if (p[AT_OBSERVER].revents != 0) {
		observer_turn(r->observer, (p[AT_OBSERVER].revents & POLLIN) != 0);
	}
	/* The observed calls must be in the trace before the output and the connections that they
	 * caused. */
	if ((p[AT_EGRESS].revents | p[AT_PUMPS + 1].revents | p[AT_PUMPS + 2].revents) != 0) {
		observer_write(r->observer);
	}
	keep_time(r, kill_at);
	/* Read all messages of the child: its failure must be known before the consequences of the
	 * failure are handled. */
	while (p[AT_CTL].revents != 0 && r->ctl >= 0) {
		hear_child(r, pumps);
		p[AT_CTL].revents = 0;
		if (r->ctl >= 0) {
			(void)poll(&p[AT_CTL], 1, 0);
		}
	}
	if ((p[AT_LOOKUP].revents | p[AT_LOOKUP + 1].revents) != 0) {
		egress_wake(&r->egress, r->trace);
	}
	if (p[AT_EGRESS].revents != 0) {
		egress_hear(&r->egress, r->trace);
	}
	if (p[AT_EXEC].revents != 0) {
		own_close(&r->exec_pipe);
		note_exec(r);
	}
	if (p[AT_SIG].revents != 0) {
		hear_signal(r, sig_fd, kill_at);
	}
	if (p[AT_OOM].revents != 0) {
		own_close(&r->oom);
		r->cause = CAUSE_MEMORY;
		run_kill(r);
	}
	for (int i = 0; i < 3; i++) {
		pump_turn(&pumps[i], p[AT_PUMPS + i].revents);
	}
	if (p[AT_PID].revents != 0) {
		run_reap(r);
	}
	if ((p[AT_GOVERN].revents & ~POLLOUT) != 0) {
		governed_hear(r);
	}
	if (p[AT_MAKER].revents != 0) {
		lose_maker(r);
	}
	keep_record(r);
	pause_tick(r);
	governed_tick(r);
	suspend_turn(r, &pumps[1]);
}

/* Says whether the skill has its terminal in raw mode. The two ends of a pty share their modes. */
static void note_screen(const struct run *r, const struct pump *out)
{
	atomic_bool *raw = r->request->full_screen;
	struct termios t;

	if (raw != NULL && r->config.pty && out->from >= 0 && tcgetattr(out->from, &t) == 0) {
		atomic_store(raw, (t.c_lflag & ICANON) == 0);
	}
}

int run_watch(struct run *r, struct pump pumps[3], int sig_fd, struct ssb_error *err)
{
	uint64_t kill_at = 0;

	/* The time limit also covers the delivery of the output. */
	r->deadline = run_deadline(r->request->max_seconds) + GRACE_MS;
	if (r->config.egress == NULL || r->egress.on_demand || r->without_namespaces) {
		if (send_go(r, err) != 0) {
			return -1;
		}
	}
	/* After init has reported the end, it exits by itself; run_done() waits for it. */
	while (!r->gave_up && ((!r->dead && !r->ended) || (r->ctl >= 0 && !r->ended) ||
	                       !pump_finished(&pumps[1]) || !pump_finished(&pumps[2]))) {
		take_turn(r, pumps, sig_fd, &kill_at);
		note_screen(r, &pumps[1]);
		if (r->dead) {
			/* no process is left that could read the input */
			pumps[0].from = -1;
			pumps[0].len = 0;
		}
	}
	if (governed_killed(r) != NULL) {
		return 0; /* other failures only follow from the governor's kill */
	}
	if (r->failure.code != SSB_OK) {
		*err = r->failure;
		return -1;
	}
	if (!r->ended && r->cgroup != NULL && cgroup_oom_kills(r->cgroup) > 0) {
		r->cause = CAUSE_MEMORY; /* init was killed with the rest of its cgroup */
	}
	if (!r->ended && r->canceled == 0 && r->cause == CAUSE_EXIT) {
		return ssb_fail(
		        err, SSB_E_LAYER, 0, "sandbox",
		        "the sandbox ended without a report; its first process was probably killed "
		        "from outside");
	}
	return 0;
}
