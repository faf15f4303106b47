/* stage.c - builds the sandbox, from clone to execve. The order of the steps is the security
 * argument.
 *
 * Two processes build the sandbox at the same time, because a network namespace takes as long to
 * make as the whole file view. STEPS below is the order of each process: it takes its own steps
 * from top to bottom. The two wait for each other only at these arrows, inside the steps of MEET
 * and START:
 *
 *   init                                 the skill's process
 *   id maps, new root, grants            network, IPC, host name, cgroup namespace
 *            ◄──────────── ready ────────────┘
 *   enter those namespaces               loopback up; session, streams
 *            └──── the view is ready ──────►
 *   give up what it does not need;       old root gone, root read-only; directory,
 *   wait for the record                  capabilities, Landlock, seccomp
 *            └──── go (cgroup, limits) ────►
 *                                        limits, self-test, execve
 *
 * Whichever process reaches MEET first detaches the old root: the kernel needs some time for that,
 * and the other process is still busy.
 *
 * Landlock comes after all mounts, because it forbids them. The filter comes after Landlock, so
 * that it need not allow the set-up. Only the limits come later, because every process may lower
 * its own. At the end the self-tests try actions that must be blocked; if one of them works, the
 * skill is not started. */
#include "sandbox/stage.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/cgroup.h"
#include "os/clone.h"

/* The phases of both processes. They wait for each other only in MEET and START. */
enum stage_phase {
	BUILD,   /* make the namespaces and the view */
	MEET,    /* each process takes over what the other has built */
	CONFINE, /* give up the rights that were needed for building */
	START,   /* the record is on disk: set the limits, test the filter, start the skill */
};

enum step_when { ALWAYS, WITH_NAMESPACES };

#define NO_LAYER LAYER_COUNT /* the step is not a layer, and has no report of its own */

struct stage_step {
	enum stage_phase phase;
	enum stage_process process;
	enum layer_id layer;
	enum step_when when;
	int (*take)(struct stage *, struct ssb_error *);
};

static int init_meet(struct stage *s, struct ssb_error *err);
static int init_listen(struct stage *s, struct ssb_error *err);
static int init_start_skill(struct stage *s, struct ssb_error *err);

static const struct stage_step STEPS[] = {
	/* also makes the other namespaces */
	{ BUILD, BY_SKILL, LAYER_NET, WITH_NAMESPACES, layer_net },
	{ BUILD, BY_SKILL, LAYER_ENV, ALWAYS, layer_env },
	{ BUILD, BY_SKILL, NO_LAYER, ALWAYS, skill_tell_init },
	{ BUILD, BY_SKILL, NO_LAYER, WITH_NAMESPACES, layer_loopback },
	{ BUILD, BY_SKILL, NO_LAYER, WITH_NAMESPACES, skill_unbind_caps },
	{ BUILD, BY_SKILL, NO_LAYER, ALWAYS, skill_leave_caller }, /* fds, session, streams */
	{ BUILD, BY_INIT, LAYER_USERNS, WITH_NAMESPACES, layer_userns },
	{ BUILD, BY_INIT, LAYER_MOUNTS, WITH_NAMESPACES, layer_mounts },

	{ MEET, BY_INIT, NO_LAYER, ALWAYS, init_meet },        /* enters the namespaces */
	{ MEET, BY_SKILL, NO_LAYER, ALWAYS, skill_take_view }, /* the host's root is gone */

	{ CONFINE, BY_INIT, NO_LAYER, ALWAYS, init_listen },
	{ CONFINE, BY_INIT, NO_LAYER, ALWAYS, init_confine },
	{ CONFINE, BY_SKILL, NO_LAYER, ALWAYS, skill_open_pty },
	{ CONFINE, BY_SKILL, NO_LAYER, ALWAYS, skill_enter_workdir },
	{ CONFINE, BY_SKILL, LAYER_CAPS, ALWAYS, layer_caps },
	{ CONFINE, BY_SKILL, LAYER_LANDLOCK, ALWAYS, layer_landlock },
	{ CONFINE, BY_SKILL, NO_LAYER, ALWAYS, skill_try_walls },
	{ CONFINE, BY_SKILL, NO_LAYER, ALWAYS, skill_close_others },
	{ CONFINE, BY_SKILL, NO_LAYER, ALWAYS, layer_limit_core },
	{ CONFINE, BY_SKILL, NO_LAYER, ALWAYS, skill_find_program },
	{ CONFINE, BY_SKILL, NO_LAYER, ALWAYS, anchor_start }, /* the filter may forbid clone */
	{ CONFINE, BY_SKILL, LAYER_SECCOMP, ALWAYS, layer_seccomp },

	{ START, BY_INIT, NO_LAYER, ALWAYS, init_start_skill },
	{ START, BY_SKILL, NO_LAYER, ALWAYS, skill_wait_start },
	{ START, BY_SKILL, LAYER_LIMITS, ALWAYS, layer_limits },
	{ START, BY_SKILL, NO_LAYER, ALWAYS, skill_try_filter },
	{ START, BY_SKILL, NO_LAYER, ALWAYS, skill_report },
};

_Noreturn void stage_die(const struct stage *s, const struct ssb_error *err)
{
	struct msg m = { .kind = MSG_FAILED, .error = *err };

	/* write() and not sendmsg(): every filter allows it. */
	(void)!write(s->ctl, &m, sizeof(m));
	_exit(125);
}

struct msg stage_wait(const struct stage *s, enum msg_kind kind, struct msg_fds *ret_fds)
{
	struct msg m;

	assert(s->ctl >= 0);
	for (;;) {
		if (msg_fds_recv(s->ctl, &m, sizeof(m), ret_fds) != (ssize_t)sizeof(m)) {
			_exit(125);
		}
		if (m.kind == kind) {
			return m;
		}
		msg_fds_close(ret_fds);
	}
}

static void report_lost(struct stage *s, enum layer_id layer, const char *why)
{
	s->reports[layer].state = LAYER_OFF_BEST_EFFORT;
	snprintf(s->reports[layer].detail, sizeof(s->reports[layer].detail), "%.119s", why);
}

static void take_step(struct stage *s, const struct stage_step *step)
{
	bool layer = step->layer != NO_LAYER;
	struct ssb_error err = { 0 };

	if (step->when == WITH_NAMESPACES && !s->config->namespaces) {
		if (layer) {
			report_lost(s, step->layer, "no namespaces; accepted with --best-effort");
		}
		return;
	}
	if (step->take(s, &err) == 0) {
		if (layer) {
			s->reports[step->layer].state = LAYER_ON;
		}
		return;
	}
	/* If a layer that needs namespaces fails, this sandbox ends even with --best-effort. The
	 * supervisor then starts again without any namespaces. */
	if (!layer || step->when == WITH_NAMESPACES ||
	    (s->config->plan->best_effort >> step->layer & 1) == 0) {
		stage_die(s, &err);
	}
	report_lost(s, step->layer, err.text);
}

void stage_take_steps(struct stage *s, enum stage_process process)
{
	enum stage_phase phase = BUILD;

	for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
		if (STEPS[i].process == process) {
			assert(STEPS[i].phase >= phase);
			phase = STEPS[i].phase;
			take_step(s, &STEPS[i]);
		}
	}
}

void stage_wipe_memory(const struct arguments *args)
{
	if (args->len > 0) {
		explicit_bzero((void *)args->start, args->len);
	}
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		explicit_bzero(*e, strlen(*e));
	}
}

/* Without namespaces this process is not PID 1, so it becomes the subreaper of its descendants. If
 * root started the run, it takes a uid that no account has. */
static int stage_without_namespaces(struct stage *s, struct ssb_error *err)
{
	sigset_t all;

	/* Block all signals: this process still belongs to the caller's process group, and a signal
	 * to that group must not end it. When the supervisor closes ctl, this process ends its
	 * descendants and then itself. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "userns", "cannot become a subreaper");
	}
	if (!s->config->mapped_by_parent) {
		/* Drop the capabilities of root in a container; an ordinary user has none. */
		return caps_none(false) || caps_drop(0) == 0
		               ? 0
		               : ssb_fail(err, SSB_E_LAYER, errno, "caps",
		                          "cannot drop the capabilities");
	}
	uint64_t to_change = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_SETPCAP;
	if (caps_drop(to_change) != 0 || setgroups(0, NULL) != 0 ||
	    setresgid(s->config->gid, s->config->gid, s->config->gid) != 0 ||
	    setresuid(s->config->uid, s->config->uid, s->config->uid) != 0 || caps_drop(0) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "userns", "cannot become uid %u",
		                s->config->uid);
	}
	return 0;
}

static bool is_there(int meet)
{
	struct pollfd p = { .fd = meet, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Waits until the skill's process has made its namespaces. Then init enters them, and tells that
 * process that the view is ready. */
static int init_meet(struct stage *s, struct ssb_error *err)
{
	struct view_ready ready = { .unix_sockets = s->unix_sockets,
		                    .userns = s->reports[LAYER_USERNS],
		                    .mounts = s->reports[LAYER_MOUNTS] };

	ready.sealed = s->config->namespaces && !is_there(s->meet);
	if (ready.sealed && layer_seal_mounts(err) != 0) {
		return -1;
	}
	if (read(s->meet, &s->arguments, sizeof(s->arguments)) != (ssize_t)sizeof(s->arguments)) {
		_exit(125); /* the skill's process has reported the reason */
	}
	/* Init must enter the skill's namespaces: otherwise /proc/1/net would be the host's. */
	if (s->config->namespaces && setns(s->skill_pidfd, SKILL_NAMESPACES) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "net",
		                "init cannot enter the skill's namespaces");
	}
	stage_wipe_memory(&s->arguments);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* /proc/1 is closed from here on */
	return write(s->meet, &ready, sizeof(ready)) != (ssize_t)sizeof(ready)
	               ? ssb_fail(err, SSB_E_SYS, errno, "init", "the skill's process ended early")
	               : 0;
}

/* Makes the listening sockets of the sandbox's network, and sends them to the supervisor, which
 * gives them to the broker. */
static int init_listen(struct stage *s, struct ssb_error *err)
{
	static struct listeners l;

	if (s->config->egress == NULL) {
		return 0;
	}
	/* The skill's process may not have brought up the loopback yet. */
	int failed = layer_loopback(s, err) != 0 ? -1 : listeners_make(s->config->egress, &l, err);

	for (size_t at = 0; failed == 0 && at < l.n;) {
		struct msg m = { .kind = MSG_LISTENERS };
		struct msg_fds fds = { .n = 0 };
		while (fds.n < MSG_MAX_FDS && at < l.n) {
			m.listeners.kinds[fds.n] = l.kind[at];
			fds.v[fds.n++] = l.fd[at++];
		}
		m.listeners.last = at == l.n;
		if (msg_fds_send(s->ctl, &m, sizeof(m), &fds) != 0) {
			failed = ssb_fail(err, SSB_E_SYS, errno, "net",
			                  "cannot send the network's sockets to the supervisor");
		}
	}
	listeners_close(&l);
	return failed;
}

/* Waits for MSG_GO (the record is on disk) and then tells the skill's process to start. Init is
 * confined already. */
static int init_start_skill(struct stage *s, struct ssb_error *err)
{
	struct start_order start = { 0 };
	struct msg_fds cgroup;
	pid_t anchors[2];

	if (s->config->pty) {
		if (read(s->meet, anchors, sizeof(anchors)) != (ssize_t)sizeof(anchors)) {
			_exit(125); /* the skill's process has reported the reason */
		}
		init_know_anchors(anchors);
	}
	struct msg go = stage_wait(s, MSG_GO, &cgroup);
	/* The watchdog needs a pid namespace: without one it would count every process of the
	 * host. */
	s->watchdog = start.watchdog = go.go.watchdog && s->config->namespaces;
	start.nice = go.go.nice;
	if (go.go.thaw && cgroup.n > 0) {
		init_keep_thaw(cgroup.v[--cgroup.n]);
	}
	memcpy(start.limits.detail, go.go.limits, sizeof(start.limits.detail));
	if (!s->watchdog && init_end_watch(s) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "init", "cannot drop its privileges");
	}
	int failed = msg_fds_send(s->meet, &start, sizeof(start), &cgroup);
	msg_fds_close(&cgroup);
	return failed != 0
	               ? ssb_fail(err, SSB_E_SYS, errno, "init", "the skill's process ended early")
	               : 0;
}

static struct stage stage_of(const struct stage_config *config)
{
	return (struct stage){ .config = config,
		               .ctl = config->ctl,
		               .meet = -1,
		               .stdio = { config->stdio[0], config->stdio[1], config->stdio[2] },
		               .skill_pidfd = -1,
		               .rootfs = config->rootfs,
		               .empty = -1,
		               .scratch = -1,
		               .left_out = config->left_out,
		               .unix_sockets = config->unix_sockets };
}

_Noreturn void stage_main(const struct stage_config *config)
{
	static struct stage state;
	struct stage *s = &state;
	struct ssb_error err = { 0 };
	int meet[2];

	assert(config->ctl >= 0 && config->plan != NULL);
	*s = stage_of(config);

	/* If the supervisor ends before init listens on ctl, this signal ends init. Later, init
	 * ends when ctl is closed. If root starts the run, the change of the uid clears the signal.
	 * It must not be set again: after a pause, init has to thaw the cgroup before it ends,
	 * because in cgroup v1 frozen processes cannot be killed. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* The caller's handlers must not run here. If the caller ignores SIGCHLD, the kernel would
	 * reap the children of this process, and their status would be lost. */
	for (int sig = 1; sig < NSIG; sig++) {
		(void)signal(sig, SIG_DFL);
	}
	plan_wipe_credentials(s->config->plan);
	if (!s->config->namespaces && stage_without_namespaces(s, &err) != 0) {
		stage_die(s, &err);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, meet) != 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "init", "cannot make a socket pair");
		stage_die(s, &err);
	}
	pid_t skill = clone_process(0, &s->skill_pidfd);
	if (skill < 0) {
		ssb_fail(&err, SSB_E_SYS, errno, "init", "fork");
		stage_die(s, &err);
	}
	if (skill == 0) {
		(void)close(meet[0]);
		s->meet = meet[1];
		skill_main(s);
	}
	(void)close(meet[1]);
	s->meet = meet[0];
	/* Let the skill's process run first. If there are not enough cores for all, the supervisor
	 * is the one that should be delayed, because it has to wait for the disk anyway. */
	(void)sched_yield();
	stage_take_steps(s, BY_INIT);
	init_main(s, skill);
}
