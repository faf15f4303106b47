#include "serve/act.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "session/act.h"

#define PATIENCE_MS 15000

struct act {
	struct serve *serve;
	struct act *next;
	struct act **prev;
	pid_t pid;
	int pidfd;
	struct loop_watch *watch;
	struct loop_timer *enough;
	act_fn *done; /* NULL: it was called */
	void *arg;
};

static void act_free(struct act *a)
{
	loop_unwatch(&a->watch);
	loop_untimer(&a->enough);
	own_close(&a->pidfd);
	if (a->prev != NULL) {
		*a->prev = a->next;
		if (a->next != NULL) {
			a->next->prev = a->prev;
		}
	}
	free(a);
}

static void tell(struct act *a, bool reached)
{
	act_fn *done = steal_ptr(&a->done);

	loop_untimer(&a->enough);
	if (done != NULL) {
		done(a->arg, reached);
	}
}

static void on_end(void *arg, uint32_t events)
{
	struct act *a = arg;
	int status = 0;

	(void)events;
	while (waitpid(a->pid, &status, 0) < 0 && errno == EINTR) {
	}
	tell(a, WIFEXITED(status) && WEXITSTATUS(status) == 0);
	act_free(a);
}

static void on_enough(void *arg)
{
	tell(arg, true);
}

void act_leave_all(struct serve *s)
{
	while (s->acts != NULL) {
		tell(s->acts, true);
		act_free(s->acts);
	}
}

/* ---- its process ------------------------------------------------------------------- */

/* Nothing of the server's: neither its clients nor its signals. */
static int settle(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++) {
		(void)signal(sig, SIG_DFL);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setpgid(0, 0);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0) {
		return -1;
	}
	return close_range(STDERR_FILENO + 1, ~0U, 0);
}

static _Noreturn void act(const struct serve *s, const struct decision *d)
{
	struct sessions *store = NULL;
	struct act_report report;
	struct ssb_error err = { 0 };

	if (settle() != 0) {
		_exit(1);
	}
	/* Without a store every keeper of this machine is asked. */
	(void)sessions_open(&s->owner, &store, &err);
	int failed = session_act(store, &s->owner, d, NULL, &report, &err);
	sessions_close(store);
	_exit(failed != 0 ? 1 : 0);
}

static pid_t act_fork(const struct serve *s, const struct decision *d)
{
	sigset_t all;
	sigset_t before;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0) {
		act(s, d);
	}
	int error = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return pid;
}

int act_start(struct serve *s, const struct decision *d, act_fn *done, void *arg,
              struct ssb_error *err)
{
	struct act *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "session", "out of memory");
	}
	*a = (struct act){ .serve = s, .pidfd = -1, .done = done, .arg = arg };
	a->pid = act_fork(s, d);
	a->pidfd = a->pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, a->pid, 0U);
	if (a->pidfd < 0 || loop_watch(s->loop, a->pidfd, EPOLLIN, on_end, a, &a->watch) != 0 ||
	    loop_after(s->loop, PATIENCE_MS, on_enough, a, &a->enough) != 0) {
		(void)ssb_fail(err, SSB_E_SYS, errno, "session", "its runs cannot be reached");
		act_free(a);
		return -1;
	}
	a->next = s->acts;
	a->prev = &s->acts;
	if (a->next != NULL) {
		a->next->prev = &a->next;
	}
	s->acts = a;
	return 0;
}
