/* run.c - ssb_run(): runs one plan, from the start to the last line of its trace. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/file.h"
#include "policy/owner.h"
#include "sandbox/caches.h"
#include "sandbox/governed.h"
#include "sandbox/supervise.h"

/* How long init may take to exit after it has reported the end. */
#define LAST_BREATH_MS 2000

static void fill_end(const struct run *r, struct ssb_result *res)
{
	if (governed_killed(r) != NULL) {
		res->end = SSB_END_SESSION;
		res->exit_status = 125;
		snprintf(res->session_reason, sizeof(res->session_reason), "%s",
		         governed_killed(r));
		return;
	}
	if (r->cause == CAUSE_TIME) {
		res->end = SSB_END_TIMEOUT;
		res->exit_status = 124;
	} else if (r->cause == CAUSE_MEMORY) {
		res->end = SSB_END_MEMORY;
		res->exit_status = 137;
	} else if (r->ended && WIFEXITED(r->wstatus)) {
		res->end = SSB_END_EXITED;
		res->exit_status = WEXITSTATUS(r->wstatus);
		/* Whoever reads cut output must not take it for the whole. */
		if (res->exit_status == 0 && (res->stdout_cut || res->stderr_cut)) {
			res->exit_status = SSB_STATUS_CUT;
		}
	} else {
		res->end = r->canceled != 0 ? SSB_END_CANCELED : SSB_END_SIGNALED;
		res->signal = r->ended ? WTERMSIG(r->wstatus) : r->canceled;
		res->exit_status = 128 + res->signal;
	}
	/* The observer sent this SIGKILL instead of the kernel's SIGSYS, so that it could record
	 * the reason. */
	if (res->end == SSB_END_SIGNALED && res->signal == SIGKILL &&
	    observer_killed_first(r->observer)) {
		res->signal = SIGSYS;
		res->exit_status = 128 + SIGSYS;
	}
	/* The OOM killer chose the skill's first process, and the run ended with it. */
	if (res->end == SSB_END_SIGNALED && res->signal == SIGKILL && r->cgroup != NULL &&
	    cgroup_oom_kills(r->cgroup) > 0) {
		res->end = SSB_END_MEMORY;
	}
}

static void record_ends(const struct run *r, const struct ssb_result *res)
{
	if (res->end == SSB_END_SESSION) {
		trace_eventf(r->trace, EV_SKILL_FAILED, "ended by its session: %s",
		             res->session_reason);
	}
	if (res->end == SSB_END_SIGNALED && res->signal == SIGSYS &&
	    !observer_killed_first(r->observer)) {
		trace_violation(r->trace, EV_SYSCALL_BLOCKED,
		                "ended by the system call filter (profile %s)",
		                profile_name(r->plan->profile));
	}
}

/* Checks the skill's files again at the end of the run. A skill that is too large to copy runs from
 * its own directory, where its files can change during the run. */
static void record_still(struct run *r)
{
	struct ssb_error err = { 0 };

	if (r->request->still != NULL && r->request->still(r->plan, &r->seen, &err) != 0) {
		trace_violation(r->trace, EV_POLICY_VIOLATION,
		                "the skill's files changed while it ran: %s", err.text);
	}
}

/* Records a bare repository that the skill made: at the owner's next git command there, git would
 * follow its settings. */
static void record_bare(const struct run *r)
{
	char dir[PATH_MAX];

	if (placeholders_keep_git_out(r->placeholders, dir, sizeof(dir))) {
		trace_violation(r->trace, EV_POLICY_VIOLATION,
		                "the skill turned %.3500s into a bare git repository (HEAD, "
		                "objects, refs); the file commondir stays there, so that git "
		                "ignores the repository's settings: check these settings, then "
		                "remove HEAD and commondir",
		                dir);
	}
}

static void record_end(struct run *r, const struct pump pumps[3], struct ssb_result *res)
{
	run_limits_record(r, pumps, res);
	if (res->exit_status != 0) {
		observer_named(r->observer);
	}
	observer_lost(r->observer, &r->prepared->lost, &r->prepared->lost_relative);
	record_ends(r, res);
	record_still(r);
	record_bare(r);
	trace_eventf(r->trace, EV_EXIT_CODE, "%d", res->exit_status);
	bool good = res->end == SSB_END_EXITED && res->exit_status == 0;
	trace_eventf(r->trace, good ? EV_SKILL_COMPLETED : EV_SKILL_FAILED,
	             "exit_code=%d duration=%llums violations=%zu", res->exit_status,
	             (unsigned long long)(res->duration_us / 1000), trace_violations(r->trace));
	const char *severity;
	res->violations = trace_violations(r->trace);
	trace_classes(r->trace, res->classes, sizeof(res->classes), &severity);
	snprintf(res->severity, sizeof(res->severity), "%s", severity);
}

/* The signals that are blocked during a run and read from a signalfd. They must not end the
 * supervisor before it has removed all that it made (placeholders, a cgroup) and restored the
 * terminal. */
struct held_signals {
	sigset_t before;
	int fd;
};

static int hold_signals(struct held_signals *h, struct ssb_error *err)
{
	static const int OURS[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP };
	sigset_t ours;

	sigemptyset(&ours);
	for (size_t i = 0; i < ARRAY_LEN(OURS); i++) {
		sigaddset(&ours, OURS[i]);
	}
	h->fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (h->fd < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "run", "cannot make a signalfd");
	}
	/* Block these two as well: a write to a closed stdout, or past the file size limit, must
	 * fail with an errno instead of a signal. */
	sigaddset(&ours, SIGPIPE);
	sigaddset(&ours, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &ours, &h->before);
	return 0;
}

static void release_signals(struct held_signals *h)
{
	struct signalfd_siginfo drop;
	struct timespec none = { 0 };
	sigset_t errors;

	/* The run has reacted to the blocked signals. They must not reach the caller now. */
	while (read(h->fd, &drop, sizeof(drop)) > 0) {
	}
	sigemptyset(&errors);
	sigaddset(&errors, SIGPIPE);
	sigaddset(&errors, SIGXFSZ);
	while (sigtimedwait(&errors, NULL, &none) > 0) {
	}
	sigprocmask(SIG_SETMASK, &h->before, NULL);
	own_close(&h->fd);
}

static void set_pumps(struct run *r, struct pump *pumps)
{
	const int *stdio = r->request->stdio;
	uint64_t limit = r->plan->res.max_output_bytes;

	pump_init(&pumps[0], stdio[0], steal_fd(&r->pipes[0]), UINT64_MAX);
	pumps[0].owns_to = !r->config.pty;
	pump_init(&pumps[1], steal_fd(&r->pipes[1]), stdio[1], limit);
	pump_init(&pumps[2], steal_fd(&r->pipes[2]), stdio[2], limit);
	pumps[1].owns_from = pumps[2].owns_from = !r->config.pty;
	if (stdio[0] < 0) {
		own_close(&pumps[0].to);
	}
	pumps[1].kind = EV_STDOUT;
	pumps[2].kind = EV_STDERR;
	pumps[1].trace = pumps[2].trace = r->trace;
}

/* Opens the run's record while the child builds the sandbox. */
static int open_trace(struct run *r, struct ssb_result *res, struct ssb_error *err)
{
	if (trace_open(r->plan, r->prepared, r->owner, &r->trace, err) != 0) {
		return -1;
	}
	for (size_t i = 0; i < r->request->n_watches; i++) {
		const struct ssb_watch *w = &r->request->watches[i];
		w->on_record(w->arg, trace_fd(r->trace));
	}
	snprintf(res->run_id, sizeof(res->run_id), "%s", trace_id(r->trace));
	snprintf(res->trace_path, sizeof(res->trace_path), "%s", trace_path(r->trace));
	governed_traced(r);
	trace_eventf(r->trace, EV_SKILL_STARTED, "%s%s%s", r->plan->name,
	             r->plan->version[0] != '\0' ? " " : "", r->plan->version);
	observer_environment(r->trace, r->plan);
	return 0;
}

/* Ends the broker, the observer and, if necessary, the sandbox, because they all write into the
 * trace. With `kill`, the sandbox is killed first. */
static void end_watchers(struct run *r, bool kill)
{
	if (kill) {
		run_kill(r);
	}
	if (r->ended && !r->killed && r->cause == CAUSE_EXIT && r->canceled == 0) {
		egress_finish(&r->egress, r->trace);
	}
	egress_stop(&r->egress, r->trace);
	observer_stop(r->observer);
	if ((r->govern != NULL || r->repo_links != NULL) && r->pid > 0 && !r->dead) {
		/* The meter must count until the last process has ended, and no process may be left
		 * that could make symlinks. */
		struct pollfd p = { .fd = r->pidfd, .events = POLLIN };
		if (TEMP_FAILURE_RETRY(poll(&p, 1, LAST_BREATH_MS)) <= 0) {
			run_kill(r);
		}
		run_reap(r);
	}
	repo_links_remove(r->repo_links, r->trace);
}

static int run_supervised(struct run *r, int sig_fd, struct ssb_result *res, struct ssb_error *err)
{
	auto_free struct pump *pumps = malloc(3 * sizeof(*pumps));

	r->start_us = clock_us();
	if (pumps == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "run", "out of memory");
	}
	int failed = run_start(r, err);
	if (r->owner != NULL && r->trace == NULL && open_trace(r, res, err) != 0) {
		failed = -1;
	}
	if (failed != 0) {
		return -1;
	}
	set_pumps(r, pumps);
	suspend_init(r);
	failed = run_watch(r, pumps, sig_fd, err);
	suspend_done(r);
	for (int i = 0; i < 3; i++) {
		pump_done(&pumps[i]);
	}
	pump_flush_line(&pumps[1]);
	pump_flush_line(&pumps[2]);
	end_watchers(r, failed != 0);
	if (failed != 0) {
		return -1;
	}
	for (int i = 1; i < 3; i++) {
		if (pumps[i].error != 0) {
			return ssb_fail(err, SSB_E_SYS, pumps[i].error,
			                i == 1 ? "stdout" : "stderr",
			                "the skill's output could not be delivered completely");
		}
	}
	res->stdout_bytes = pumps[1].done;
	res->stderr_bytes = pumps[2].done;
	res->stdout_cut = pumps[1].cut;
	res->stderr_cut = pumps[2].cut;
	fill_end(r, res);
	res->stdout_open = pumps[1].open;
	res->stderr_open = pumps[2].open;
	res->duration_us = clock_us() - r->start_us;
	if (r->trace != NULL) {
		record_end(r, pumps, res);
	}
	return 0;
}

/* True if the layer that failed needs namespaces, and the owner accepted a run without them. */
static bool may_go_without(const struct ssb_plan *plan, const struct ssb_error *err)
{
	int failed = err->code == SSB_E_LAYER ? plan_layer_from_name(err->where) : -1;
	bool needs_them = failed == LAYER_USERNS || failed == LAYER_NET || failed == LAYER_MOUNTS;

	return needs_them && (plan->best_effort >> failed & 1) != 0;
}

/* Runs the plan. If the sandbox cannot be built and the owner accepts a run without namespaces,
 * tries again without them. The caller must call run_done(). */
static int run_attempts(struct run *r, int sig_fd, struct ssb_result *res, struct ssb_error *err)
{
	int failed = run_supervised(r, sig_fd, res, err);

	if (failed != 0 && !r->started && may_go_without(r->plan, err)) {
		struct run again;
		run_init(&again, r->request, r->owner, r->prepared);
		again.without_namespaces = true;
		again.govern = r->govern;
		again.trace = r->trace;
		again.config.payload = r->config.payload;
		again.config.payload_arg = r->config.payload_arg;
		again.config.payload_fd = steal_fd(&r->payload_spare);
		run_done(r);
		*r = again;
		*err = (struct ssb_error){ 0 };
		failed = run_supervised(r, sig_fd, res, err);
	}
	return failed;
}

/* Lists the lost layers for people. */
static void fill_lost(const struct run *r, struct ssb_result *res)
{
	size_t n = 0;

	for (int i = 0; i < LAYER_COUNT; i++) {
		if (r->reports[i].state == LAYER_OFF_BEST_EFFORT && n < sizeof(res->lost_layers)) {
			n += (size_t)snprintf(res->lost_layers + n, sizeof(res->lost_layers) - n,
			                      "%s%s", n > 0 ? ", " : "",
			                      plan_layer_name((enum layer_id)i));
		}
	}
}

static int run_traced(const struct run_request *q, const struct owner *owner,
                      struct prepared *prepared, struct ssb_result *res, struct ssb_error *err)
{
	struct ssb_error late = { 0 };
	struct held_signals held;
	struct governed *govern;
	struct run r;

	if (governed_new(q, &govern, err) != 0) {
		return -1;
	}
	if (hold_signals(&held, err) != 0) {
		governed_free(govern);
		return -1;
	}
	run_init(&r, q, owner, prepared);
	r.govern = govern;
	int failed = run_attempts(&r, held.fd, res, err);
	fill_lost(&r, res);
	if (failed != 0 && r.trace != NULL) {
		trace_failed(r.trace, r.started, err);
		res->exit_status = err->code == SSB_E_NOT_FOUND  ? 127
		                   : err->code == SSB_E_NOT_EXEC ? 126
		                                                 : 125;
	}
	if (r.digest_at != 0) {
		trace_digest(r.trace, true);
	}
	if (r.trace != NULL && trace_close(r.trace, r.reports, res, &late) != 0 && failed == 0) {
		*err = late;
		failed = -1;
	}
	governed_ended(&r, failed != 0 ? -1 : (int)res->end, res);
	run_done(&r);
	trace_free(r.trace);
	governed_free(govern);
	release_signals(&held);
	return failed;
}

static int plan_runnable(const struct ssb_plan *plan, struct ssb_error *err)
{
	if (plan->n_refusals > 0) {
		const struct refusal *f = &plan->refusals[0];
		return ssb_fail(err, SSB_E_POLICY, 0, f->where, "%.150s is refused: %.100s; %.120s",
		                f->what, f->why, f->remedy);
	}
	return 0;
}

/* The plan must name a program, unless a payload (sandbox_run_payload()) runs in its place. */
static int plan_has_entry(const struct ssb_plan *plan, struct ssb_error *err)
{
	return plan_check_script(plan, err) != 0 ? -1
	       : plan->argv.n > 0                ? 0
	                          : ssb_fail(err, SSB_E_USAGE, 0, "script", "nothing to run");
}

/* Fails if the limit of open files is too low: below MIN_RUN_FILES some later step fails with an
 * error that does not name the cause. */
static int run_enough_files(struct ssb_error *err)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= MIN_RUN_FILES) {
		return 0;
	}
	return ssb_fail(
	        err, SSB_E_LIMIT, 0, "run",
	        "the limit of open files is %llu and a run needs %d; raise it: ulimit -n %d",
	        (unsigned long long)files.rlim_cur, MIN_RUN_FILES, MIN_RUN_FILES);
}

int sandbox_run(const struct run_request *q, struct ssb_result *ret_result,
                struct prepared *ret_prepared, struct ssb_error *err)
{
	AUTO(prepared_done) struct prepared prepared = { 0 };
	AUTO(owner_done) struct owner loaded = { 0 };
	auto_free struct ssb_result *res = calloc(1, sizeof(*res));

	assert(q->plan != NULL && q->n_watches <= RUN_WATCHES);
	if (res == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "run", "out of memory");
	}
	if (run_enough_files(err) != 0 || plan_runnable(q->plan, err) != 0 ||
	    plan_has_entry(q->plan, err) != 0 ||
	    (q->owner == NULL && owner_load(&loaded, err) != 0) ||
	    prepared_make(q->plan, &prepared, err) != 0) {
		return -1;
	}
	int rc = run_traced(q, q->owner != NULL ? q->owner : &loaded, &prepared, res, err);
	caches_end(q->plan, &prepared);
	if (rc != 0) {
		return -1;
	}
	*ret_result = *res;
	if (ret_prepared != NULL) {
		*ret_prepared = prepared;
		prepared = (struct prepared){ 0 };
	}
	return 0;
}

int ssb_run(const struct ssb_plan *plan, const int stdio[3], struct ssb_result *ret_result,
            struct ssb_error *err)
{
	const struct run_request q = run_request_of(plan, stdio);

	return sandbox_run(&q, ret_result, NULL, err);
}

int sandbox_run_payload(const struct run_request *q, sandbox_payload payload, void *arg,
                        struct buf *out, struct ssb_error *err)
{
	AUTO(prepared_done) struct prepared prepared = { 0 };
	struct held_signals held;
	struct run r;
	struct ssb_result res = { 0 };
	int p[2];

	assert(payload != NULL && out != NULL);
	if (plan_runnable(q->plan, err) != 0 || prepared_make(q->plan, &prepared, err) != 0) {
		return -1;
	}
	if (pipe2(p, O_CLOEXEC) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "prove", "cannot make a pipe");
	}
	auto_fd from = p[0], to = p[1];
	if (hold_signals(&held, err) != 0) {
		return -1;
	}
	/* The pipe is made large enough for the payload's whole output, which is read only after
	 * the end. */
	(void)fcntl(from, F_SETPIPE_SZ, 1 << 20);
	run_init(&r, q, NULL, &prepared);
	r.config.payload = payload;
	r.config.payload_arg = arg;
	r.payload_spare = fcntl(to, F_DUPFD_CLOEXEC, 3);
	r.config.payload_fd = steal_fd(&to);
	int failed = run_attempts(&r, held.fd, &res, err);
	run_done(&r);
	release_signals(&held);
	if (failed == 0 && file_read_all(from, out) != 0) {
		failed = ssb_fail(err, SSB_E_SYS, errno, "prove", "cannot read the result");
	}
	return failed;
}
