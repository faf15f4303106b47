/* child.c - forks a child of the server, and reads what it writes until it ends. */
#include "serve/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clone.h"
#include "os/file.h"

#define WHERE      "serve"
#define READ_BYTES 65536

static pid_t the_server; /* set in each child before its work */

/* ---- what it writes ------------------------------------------------------------- */

/* Returns false if the pipe has nothing to read now, or has ended. */
static bool read_pipe(struct child_pipe *p)
{
	const struct child_wish *w = &p->child->wish;
	char data[READ_BYTES];
	ssize_t n = p->fd < 0 ? 0 : read(p->fd, data, sizeof(data));

	if (n > 0) {
		w->data(w->arg, (size_t)(p - p->child->pipes), data, (size_t)n);
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		loop_unwatch(&p->watch);
		own_close(&p->fd);
	}
	return false;
}

static void on_pipe(void *arg, uint32_t events)
{
	(void)events;
	(void)read_pipe(arg); /* reads only once, so that other children get their turn */
}

bool child_pipe_ended(const struct child *c, size_t pipe)
{
	assert(pipe < c->wish.n_pipes);
	return c->pipes[pipe].fd < 0;
}

/* ---- its end ---------------------------------------------------------------------- */

static void reap_child(struct child *c)
{
	int status = 0;

	loop_unwatch(&c->watch);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {
	}
	for (size_t i = 0; i < c->wish.n_pipes; i++) {
		while (read_pipe(&c->pipes[i])) {
		}
	}
	c->wish.ended(c->wish.arg, status);
}

static void on_pid(void *arg, uint32_t events)
{
	(void)events;
	reap_child(arg);
}

void child_signal(const struct child *c, int sig)
{
	assert(c->pid > 0);
	(void)pidfd_send_signal(c->pidfd, sig, NULL, 0);
}

void child_finish(struct child *c, int ms)
{
	assert(c->pid > 0);

	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };
	int n;

	while ((n = poll(&p, 1, ms)) < 0 && errno == EINTR) {
	}
	if (n <= 0) {
		child_signal(c, SIGKILL);
	}
	reap_child(c);
}

void child_done(struct child *c)
{
	loop_unwatch(&c->watch);
	own_close(&c->pidfd);
	for (size_t i = 0; i < ARRAY_LEN(c->pipes); i++) {
		loop_unwatch(&c->pipes[i].watch);
		own_close(&c->pipes[i].fd);
	}
}

/* ---- its start -------------------------------------------------------------------- */

static int open_pipes(struct child *c, int ret_theirs[CHILD_PIPES], struct ssb_error *err)
{
	for (size_t i = 0; i < c->wish.n_pipes; i++) {
		int p[2];
		if (pipe2(p, O_CLOEXEC) != 0) {
			return ssb_fail(err, SSB_E_SYS, errno, WHERE, "pipe");
		}
		c->pipes[i].fd = p[0];
		ret_theirs[i] = p[1];
		if (fcntl(p[0], F_SETFL, O_NONBLOCK) != 0) {
			return ssb_fail(err, SSB_E_SYS, errno, WHERE, "fcntl");
		}
	}
	return 0;
}

static int watch_child(struct child *c, struct ssb_error *err)
{
	struct loop *l = c->wish.loop;
	int failed = loop_watch(l, c->pidfd, EPOLLIN, on_pid, c, &c->watch);

	for (size_t i = 0; i < c->wish.n_pipes && failed == 0; i++) {
		struct child_pipe *p = &c->pipes[i];
		failed = loop_watch(l, p->fd, EPOLLIN, on_pipe, p, &p->watch);
	}
	return failed == 0 ? 0 : ssb_fail(err, SSB_E_SYS, errno, WHERE, "epoll");
}

/* Forks with all signals blocked, and they stay blocked in the child. */
static pid_t fork_child(int *ret_pidfd)
{
	pid_t server = getpid();
	sigset_t all;
	sigset_t before;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = clone_fork(ret_pidfd);
	if (pid == 0) {
		the_server = server;
	} else {
		int error = errno;
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		errno = error;
	}
	return pid;
}

/* `theirs` gets the child's ends of the pipes. */
static int start_process(struct child *c, int theirs[CHILD_PIPES], struct ssb_error *err)
{
	if (open_pipes(c, theirs, err) != 0) {
		return -1;
	}
	c->pid = fork_child(&c->pidfd);
	if (c->pid == 0) {
		c->wish.work(c->wish.arg, theirs);
		_exit(1);
	}
	if (c->pid < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, WHERE, "fork");
	}
	if (watch_child(c, err) != 0) {
		loop_unwatch(&c->watch);
		clone_end(&c->pidfd); /* a child that cannot be watched must not go on */
		return -1;
	}
	return 0;
}

int child_start(struct child *c, const struct child_wish *w, struct ssb_error *err)
{
	int theirs[CHILD_PIPES] = { -1, -1 };

	assert(w->n_pipes <= CHILD_PIPES && w->work != NULL && w->data != NULL && w->ended != NULL);
	*c = (struct child){ .wish = *w, .pidfd = -1 };
	for (size_t i = 0; i < ARRAY_LEN(c->pipes); i++) {
		c->pipes[i] = (struct child_pipe){ .child = c, .fd = -1 };
	}
	int failed = start_process(c, theirs, err);
	for (size_t i = 0; i < ARRAY_LEN(theirs); i++) {
		own_close(&theirs[i]);
	}
	if (failed != 0) {
		child_done(c);
		c->pid = 0;
	}
	return failed;
}

/* ---- in the child ----------------------------------------------------------------- */

static void settle_signals(const struct child_needs *needs)
{
	sigset_t held;

	for (int sig = 1; sig < NSIG; sig++) {
		(void)signal(sig, SIG_DFL);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&held);
	for (size_t i = 0; i < needs->n_held; i++) {
		sigaddset(&held, needs->held[i]);
	}
	(void)sigprocmask(SIG_SETMASK, &held, NULL);
}

static int settle_fds(const struct child_needs *needs)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (none < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(none, STDOUT_FILENO) < 0) {
		return -1;
	}
	return file_close_others(STDERR_FILENO + 1, needs->keep, needs->n_keep);
}

int child_settle(const struct child_needs *needs)
{
	assert(the_server > 0);
	settle_signals(needs);
	/* The signals of a terminal are for the server. The child gets a process group and no
	 * session of its own: where the kernel groups tasks by sessions, a new session costs
	 * milliseconds on a busy machine. */
	(void)setpgid(0, 0);
	if (needs->goes_with_server != 0 &&
	    (prctl(PR_SET_PDEATHSIG, needs->goes_with_server) != 0 || getppid() != the_server)) {
		return -1;
	}
	return settle_fds(needs);
}
