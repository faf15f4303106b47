/* keeper_process.c - the process of the keeper: detaches it from its caller, and begins the run.
 *
 * The keeper keeps only one socket of the caller's fds: if it kept a pipe, a process that waits for
 * the end of the pipe would wait for the keeper. The keeper ignores the signals of a terminal,
 * which are for the run. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/caps.h"
#include "session/act.h"
#include "session/keeper_priv.h"
#include "session/place.h"

#define SOCK_FD   3
#define CALLER_FD 4
/* CAP_KILL is needed to end a skill that has its own uid, CAP_DAC_OVERRIDE to reach a state
 * directory below another user's home. Only root has these capabilities. */
#define KEPT_CAPS ((1ULL << CAP_KILL) | (1ULL << CAP_DAC_OVERRIDE))

static int settle_fds(int sock, int caller, struct ssb_error *err)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	int socks = fcntl(sock, F_DUPFD_CLOEXEC, CALLER_FD + 1);
	int callers = fcntl(caller, F_DUPFD_CLOEXEC, CALLER_FD + 1);

	for (int i = 0; i < SOCK_FD; i++) {
		if (none < 0 || dup2(none, i) < 0) {
			return ssb_fail(err, SSB_E_SYS, errno, "session", "/dev/null");
		}
	}
	if (socks < 0 || dup3(socks, SOCK_FD, O_CLOEXEC) < 0 || callers < 0 ||
	    dup3(callers, CALLER_FD, O_CLOEXEC) < 0 || close_range(CALLER_FD + 1, ~0U, 0) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session",
		                "cannot set up the file descriptors of the keeper");
	}
	return 0;
}

/* The keeper must end only when the run ends. A terminal, or a shutdown that sends signals to all
 * processes, must not end it earlier. */
static void settle_signals(void)
{
	static const int IGNORED[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++) {
		(void)signal(sig, SIG_DFL);
	}
	for (size_t i = 0; i < ARRAY_LEN(IGNORED); i++) {
		(void)signal(IGNORED[i], SIG_IGN);
	}
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int settle_process(struct ssb_error *err)
{
	settle_signals();
	(void)prctl(PR_SET_NAME, "skillsandbox-ke");
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	(void)!chdir("/");
	(void)umask(077);
	if (setsid() < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "setsid");
	}
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || caps_keep(KEPT_CAPS) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "the keeper cannot be confined");
	}
	return 0;
}

static int settle_keeper(struct keeper *k, int sock, int caller, struct ssb_error *err)
{
	if (settle_fds(sock, caller, err) != 0) {
		return -1;
	}
	k->sup = SOCK_FD;
	k->sup_pid = CALLER_FD;
	return settle_process(err);
}

/* The control socket must exist before the store knows the run, so that every process that
 * finds the run can reach it. */
static int begin_run(struct keeper *k, const char *id, struct decision *ret, struct ssb_error *err)
{
	char name[LIVE_NAME];

	snprintf(k->run.session, sizeof(k->run.session), "%s", id);
	k->run.keeper = getpid();
	if (live_dir(k->owner->state_dir, true, &k->dir, err) != 0 ||
	    place_here(&k->run, err) != 0 || session_store_open(k->owner, &k->ss, err) != 0 ||
	    tally_init(&k->tally, err) != 0 || live_listen(k->dir, name, &k->listen, err) != 0) {
		return -1;
	}
	snprintf(k->run.socket, sizeof(k->run.socket), "%s", name);
	session_defer(k->ss);
	return session_run_begin(k->ss, id, &k->run, ret, err);
}

static void answer_caller(const struct keeper *k, const struct ssb_error *err)
{
	struct keeper_answer a = { .err = *err };

	if (k->sup >= 0) {
		(void)live_send(k->sup, &a, sizeof(a));
	}
}

static _Noreturn void leave_process(struct keeper *k, int status)
{
	if (k->dir >= 0 && k->run.socket[0] != '\0') {
		(void)unlinkat(k->dir, k->run.socket, 0);
	}
	_exit(status);
}

/* Tells the caller that the session refuses the run. The refusal may end the whole session: this
 * decision is enforced here and ends the session's other runs. */
static _Noreturn void refuse_run(struct keeper *k, const struct decision *d)
{
	struct ssb_error err = { 0 };

	ssb_fail(&err, SSB_E_POLICY, 0, "session", "session '%s' refuses the run: %s", d->session,
	         d->verdict.reason);
	answer_caller(k, &err);
	own_close(&k->sup);
	own_close(&k->listen);
	session_store_close(k->ss); /* enforces the decision */
	leave_process(k, 1);
}

void keeper_process(const struct owner *o, const char *id, int sock, int caller)
{
	struct keeper k = { .owner = o, .sup = -1, .sup_pid = -1 };
	struct decision first = { 0 };
	struct ssb_error err = { 0 };

	assert(sock >= 0 && caller >= 0 && session_id_valid(id));
	k.dir = k.listen = k.init = -1;
	keeper_clients_init(&k);
	if (settle_keeper(&k, sock, caller, &err) != 0 || begin_run(&k, id, &first, &err) != 0) {
		answer_caller(&k, &err);
		leave_process(&k, 1);
	}
	if (!first.verdict.allowed) {
		refuse_run(&k, &first);
	}
	if (clerk_look(k.ss, id, &first.after, &k.word, &err) != 0 ||
	    clerk_new(k.ss, o, &k.run, &k.clerk, &err) != 0) {
		(void)session_run_end(k.ss, &k.run, 125, "failed", &(struct ssb_error){ 0 });
		answer_caller(&k, &err);
		leave_process(&k, 1);
	}
	answer_caller(&k, &(struct ssb_error){ 0 });
	live_tidy(k.dir);
	keeper_loop(&k);
	leave_process(&k, 0);
}
