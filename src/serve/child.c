#include "serve/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "os/clone.h"
#include "os/file.h"

pid_t child_fork(int *ret_pidfd)
{
	sigset_t all;
	sigset_t before;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = clone_fork(ret_pidfd);
	if (pid != 0) {
		int error = errno;
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		errno = error;
	}
	return pid;
}

static void settle_signals(const struct child *c)
{
	sigset_t held;

	for (int sig = 1; sig < NSIG; sig++) {
		(void)signal(sig, SIG_DFL);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&held);
	for (size_t i = 0; i < c->n_held; i++) {
		sigaddset(&held, c->held[i]);
	}
	(void)sigprocmask(SIG_SETMASK, &held, NULL);
}

static int settle_fds(const struct child *c)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (none < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(none, STDOUT_FILENO) < 0) {
		return -1;
	}
	return file_close_others(STDERR_FILENO + 1, c->keep, c->n_keep);
}

int child_settle(const struct child *c)
{
	settle_signals(c);
	/* A terminal's signals are the server's. No session of its own: where the kernel groups
	 * by sessions, to make one costs milliseconds on a busy machine. */
	(void)setpgid(0, 0);
	if (c->goes_with_it != 0 &&
	    (prctl(PR_SET_PDEATHSIG, c->goes_with_it) != 0 || getppid() != c->server)) {
		return -1;
	}
	return settle_fds(c);
}
