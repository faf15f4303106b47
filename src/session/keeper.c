#include "session/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"
#include "policy/owner.h"
#include "session/keeper_priv.h"

/* How long the caller waits for what its keeper still has to write down. */
#define LAST_MS    15000
#define REFUSED_MS 1000

struct kept {
	pid_t pid;
	int sock;
	int pidfd;
};

/* Blocks until the run may begin; it is asked before anything is built. */
static int hear_answer(const struct kept *k, struct ssb_error *err)
{
	struct keeper_answer a;
	ssize_t n;

	do {
		n = recv(k->sock, &a, sizeof(a), 0);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(a)) {
		return ssb_fail(err, SSB_E_SYS, n < 0 ? errno : 0, "session",
		                "the keeper ended before the run began");
	}
	if (a.err.code == SSB_OK) {
		return 0;
	}
	*err = a.err;
	/* What is not there is the session, or its store: not the skill's program. */
	if (err->code == SSB_E_NOT_FOUND) {
		err->code = SSB_E_POLICY;
	}
	if (err->where[0] == '\0') {
		snprintf(err->where, sizeof(err->where), "session");
	}
	return -1;
}

static int start(const struct owner *o, const char *id, struct kept *ret, struct ssb_error *err)
{
	pid_t self = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "socketpair");
	}
	auto_fd ours = pair[0], theirs = pair[1];
	pid_t pid = fork();
	if (pid == 0) {
		keeper_process(o, id, theirs, self);
	}
	if (pid < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "fork");
	}
	*ret = (struct kept){ .pid = pid,
		              .sock = steal_fd(&ours),
		              .pidfd = (int)syscall(SYS_pidfd_open, pid, 0U) };
	return 0;
}

/* Until it is gone, or closes its end because the store is slow: what it leaves
 * open there, if anything, is closed by whoever looks next. */
static void wait_for(struct kept *k, int ms)
{
	uint64_t until = clock_ms() + (uint64_t)ms;
	char drop[sizeof(struct govern_msg)];
	ssize_t n = 1;

	(void)shutdown(k->sock, SHUT_WR);
	for (uint64_t now = clock_ms(); n != 0 && now < until; now = clock_ms()) {
		struct pollfd p[2] = { { k->sock, POLLIN, 0 }, { k->pidfd, POLLIN, 0 } };
		(void)poll(p, 2, (int)(until - now));
		if (p[1].revents != 0) {
			break;
		}
		n = p[0].revents != 0 ? recv(k->sock, drop, sizeof(drop), MSG_DONTWAIT) : 1;
	}
	(void)waitpid(k->pid, NULL, WNOHANG);
	own_close(&k->sock);
	own_close(&k->pidfd);
}

/* Otherwise the supervisor has told it how the run ended. */
static void tell_failure(const struct kept *k)
{
	struct govern_msg m = { .kind = KEEPER_FAILED };

	m.ended.exit_status = 125;
	(void)live_send(k->sock, &m, sizeof(m));
}

static int run_kept(struct ssb_plan *plan, const char *id, const struct owner *o,
                    const int stdio[3], struct ssb_result *ret_result, struct ssb_error *err)
{
	struct kept k = { .sock = -1, .pidfd = -1 };

	if (start(o, id, &k, err) != 0) {
		return -1;
	}
	if (hear_answer(&k, err) != 0) {
		wait_for(&k, REFUSED_MS);
		return -1;
	}
	plan->govern_fd = k.sock;
	int failed = ssb_run(plan, stdio, ret_result, err);
	plan->govern_fd = -1;
	if (failed != 0) {
		tell_failure(&k);
	}
	wait_for(&k, LAST_MS);
	return failed;
}

int session_run(struct ssb_plan *plan, const char *id, const int stdio[3],
                struct ssb_result *ret_result, struct ssb_error *err)
{
	AUTO(owner_done) struct owner owner = { 0 };

	if (!session_id_valid(id)) {
		return ssb_fail(err, SSB_E_USAGE, 0, "session",
		                "'%.64s' is no id of a session; see skillsandbox session list", id);
	}
	if (ssb_plan_refusals(plan) > 0) {
		return ssb_run(plan, stdio, ret_result, err); /* says why it is none */
	}
	if (plan->audit == AUDIT_OFF || (plan->best_effort >> LAYER_AUDIT & 1) != 0) {
		return ssb_fail(err, SSB_E_POLICY, 0, "session",
		                "a session counts what its runs try: no --audit off and no "
		                "--best-effort audit in it");
	}
	return owner_load(&owner, err) != 0 ? -1
	                                    : run_kept(plan, id, &owner, stdio, ret_result, err);
}

int ssb_run_in_session(struct ssb_plan *plan, const char *id, const int stdio[3],
                       struct ssb_result *ret_result, struct ssb_error *err)
{
	return session_run(plan, id, stdio, ret_result, err);
}
