/* keeper.c - a run inside a session: the caller's side.
 *
 * The keeper is a process next to the supervisor. Only the keeper uses the store; the supervisor
 * does not even load the store's libraries. They exchange the messages of sandbox/govern.h. The
 * keeper
 *  - asks the store whether the run may begin, before any part of the sandbox is built,
 *  - has the control socket through which a kill or a pause reaches the run,
 *  - adds up what the run uses, and tells the supervisor to end or pause it,
 *  - gets the news of kills on other machines (PostgreSQL),
 *  - records the end.
 * If the keeper or the supervisor ends, the run ends: no skill runs unmetered. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"
#include "policy/owner.h"
#include "session/keeper.h"
#include "session/keeper_priv.h"

/* How long the caller waits until its keeper has recorded the end. */
#define LAST_MS    15000
#define REFUSED_MS 1000

/* Waits for the keeper's answer, which says whether the run may begin. This is called before any
 * part of the sandbox is built. */
static int hear_answer(int sock, struct ssb_error *err)
{
	struct keeper_answer a;
	ssize_t n;

	do {
		n = recv(sock, &a, sizeof(a), 0);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(a)) {
		return ssb_fail(err, SSB_E_SYS, n < 0 ? errno : 0, "session",
		                "the process that keeps the run in its session (keeper) ended "
		                "before the run began");
	}
	if (a.err.code == SSB_OK) {
		return 0;
	}
	*err = a.err;
	/* SSB_E_NOT_FOUND means here that the session or its store was not found. The caller
	 * would report that the skill's program was not found, so the code is changed. */
	if (err->code == SSB_E_NOT_FOUND) {
		err->code = SSB_E_POLICY;
	}
	if (err->where[0] == '\0') {
		snprintf(err->where, sizeof(err->where), "session");
	}
	return -1;
}

/* Makes the keeper a child of init: the keeper may run longer than this call, and would then become
 * a zombie of a caller that continues. */
static _Noreturn void fork_away(const struct owner *o, const char *id, int sock, int caller)
{
	pid_t pid = fork();

	if (pid == 0) {
		keeper_process(o, id, sock, caller);
	}
	_exit(pid < 0 ? errno : 0);
}

static int start_keeper(const struct owner *o, const char *id, int *ret, struct ssb_error *err)
{
	auto_fd self = (int)syscall(SYS_pidfd_open, getpid(), 0U);
	int pair[2];
	int status = 0;

	if (self < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "pidfd_open");
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "socketpair");
	}
	auto_fd ours = pair[0], theirs = pair[1];
	pid_t pid = fork();
	if (pid == 0) {
		fork_away(o, id, theirs, self);
	}
	if (pid < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "fork");
	}
	/* If the caller ignores SIGCHLD, waitpid() fails; only the keeper's answer counts then. */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
		return ssb_fail(err, SSB_E_SYS, WEXITSTATUS(status), "session", "fork");
	}
	*ret = steal_fd(&ours);
	return 0;
}

/* Waits until the keeper closes its end of the socket, but at most `ms`. The keeper does so when it
 * ends, or earlier if the store is slow. If the keeper could not record the end of the run, a later
 * process records it (session_close_lost()). */
static void wait_for(int sock, int ms)
{
	uint64_t until = clock_ms() + (uint64_t)ms;
	char drop[sizeof(struct govern_msg)];
	ssize_t n = 1;

	(void)shutdown(sock, SHUT_WR);
	for (uint64_t now = clock_ms(); n != 0 && now < until; now = clock_ms()) {
		struct pollfd p = { sock, POLLIN, 0 };
		(void)poll(&p, 1, (int)(until - now));
		n = p.revents != 0 ? recv(sock, drop, sizeof(drop), MSG_DONTWAIT) : 1;
		n = n < 0 && errno != EAGAIN && errno != EINTR ? 0 : n;
	}
}

/* Tells the keeper that sandbox_run() failed. Not needed after a success, because the supervisor
 * has then reported the end. */
static void tell_failure(int sock)
{
	struct govern_msg m = { .kind = KEEPER_FAILED };

	m.ended.exit_status = 125;
	(void)live_send(sock, &m, sizeof(m));
}

/* q->owner must not be NULL. */
static int run_kept(const struct run_request *q, const char *id, struct ssb_result *ret_result,
                    struct prepared *ret_prepared, struct ssb_error *err)
{
	struct run_request governed = *q;
	auto_fd sock = -1;

	if (start_keeper(q->owner, id, &sock, err) != 0) {
		return -1;
	}
	if (hear_answer(sock, err) != 0) {
		wait_for(sock, REFUSED_MS);
		return -1;
	}
	governed.govern_fd = sock;
	int failed = sandbox_run(&governed, ret_result, ret_prepared, err);
	if (failed != 0) {
		tell_failure(sock);
	}
	wait_for(sock, LAST_MS);
	return failed;
}

int keeper_run(const struct run_request *q, const char *id, struct ssb_result *ret_result,
               struct prepared *ret_prepared, struct ssb_error *err)
{
	assert(q->govern_fd < 0);

	AUTO(owner_done) struct owner loaded = { 0 };
	const struct ssb_plan *plan = q->plan;
	struct run_request owned = *q;

	if (id != NULL && !session_id_valid(id)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "session",
		                "'%.64s' is not a session id; see skillsandbox session list", id);
	}
	if (id == NULL || plan->n_refusals > 0 || plan->argv.n == 0) {
		/* Without a session, or if there is nothing to run, no keeper is started. */
		return sandbox_run(q, ret_result, ret_prepared, err);
	}
	if (plan->audit == AUDIT_OFF || (plan->best_effort >> LAYER_AUDIT & 1) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, "session",
		                "a session counts what its runs try, and needs the audit for that: "
		                "remove --audit off and --best-effort audit");
	}
	if (q->owner == NULL) {
		if (owner_load(&loaded, err) != 0) {
			return -1;
		}
		owned.owner = &loaded;
	}
	return run_kept(&owned, id, ret_result, ret_prepared, err);
}

int ssb_run_in_session(const struct ssb_plan *plan, const char *id, const int stdio[3],
                       struct ssb_result *ret_result, struct ssb_error *err)
{
	const struct run_request q = run_request_of(plan, stdio);

	return keeper_run(&q, id, ret_result, NULL, err);
}

int ssb_run_watched(const struct ssb_plan *plan, const char *id, const int stdio[3],
                    const struct ssb_watch *watch, struct ssb_result *ret_result,
                    struct ssb_error *err)
{
	struct run_request q = run_request_of(plan, stdio);

	run_request_watch(&q, *watch);
	return keeper_run(&q, id, ret_result, NULL, err);
}
