/* errand.c - errands: from the queue to their end.
 *
 *   server ── fork ──► errand: run() into a buffer, the buffer into the pipe, after()
 *     ▲ pipe                      │
 *     ▲ pidfd: the end; what is in the pipe by then is all there is */
#include "serve/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clone.h"
#include "os/file.h"
#include "serve/child.h"
#include "serve/records.h"

#define READ_BYTES   65536
#define NICE         5 /* the loop goes first */
#define STATUS_LARGE 2
#define STATUS_AFTER 3

static const char *const WHY[ERRAND_FATES] = {
	[ERRAND_CANCELED] = "it was canceled",
	[ERRAND_UNSTARTED] = "no process could be started for it",
	[ERRAND_LATE] = "it took too long",
	[ERRAND_LARGE] = "the answer is too large",
	[ERRAND_CRASHED] = "the process that did it ended without an answer",
	[ERRAND_UNDONE] = "it was begun, and could not be brought to its end",
};

struct errand {
	struct errands *all;
	struct errand *next; /* of the queue, or of those that run */
	struct errand_wish wish;
	char *who;
	enum errand_fate fate; /* ERRAND_DONE until something else is known */
	bool told;
	pid_t pid;
	int pidfd;
	int pipe;
	bool whole; /* nothing more comes from the pipe */
	struct loop_watch *pid_watch;
	struct loop_watch *pipe_watch;
	struct loop_timer *limit;
	struct buf data;
};

struct errands {
	struct serve *serve;
	struct errand *queue; /* the oldest first */
	struct errand *running;
	size_t n_running; /* that are waited for */
	struct loop_timer *pump;
};

static void pump_soon(struct errands *a);

int errands_new(struct serve *s, struct errands **ret, struct ssb_error *err)
{
	struct errands *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	a->serve = s;
	*ret = a;
	return 0;
}

static void unlink_from(struct errand **list, const struct errand *e)
{
	while (*list != e) {
		list = &(*list)->next;
	}
	*list = e->next;
}

static void errand_free(struct errand *e)
{
	loop_unwatch(&e->pid_watch);
	loop_unwatch(&e->pipe_watch);
	loop_untimer(&e->limit);
	own_close(&e->pidfd);
	own_close(&e->pipe);
	buf_done(&e->data);
	free(e->who);
	free(e);
}

/* ---- its end ---------------------------------------------------------------------- */

static void tell(struct errand *e)
{
	const struct errand_end end = {
		.fate = e->fate, .why = WHY[e->fate], .data = e->data.data, .len = e->data.len
	};

	if (!e->told) {
		e->told = true;
		loop_untimer(&e->limit);
		e->wish.ended(e->wish.arg, &end);
	}
}

static void send_kill(struct errand *e)
{
	(void)pidfd_send_signal(e->pidfd, SIGKILL, NULL, 0);
}

/* False: nothing more, now or for ever. */
static bool pipe_read(struct errand *e)
{
	char data[READ_BYTES];
	ssize_t n = e->pipe < 0 ? 0 : read(e->pipe, data, sizeof(data));

	if (n > 0) {
		buf_add(&e->data, data, (size_t)n);
		if (e->data.failed) {
			e->fate = ERRAND_LARGE;
			send_kill(e);
		}
		return !e->data.failed;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		e->whole = true;
		loop_unwatch(&e->pipe_watch);
		own_close(&e->pipe);
	}
	return false;
}

static void on_pipe(void *arg, uint32_t events)
{
	(void)events;
	(void)pipe_read(arg); /* once: others wait too */
}

static enum errand_fate fate_of(int status)
{
	if (!WIFEXITED(status)) {
		return WTERMSIG(status) == SIGXCPU ? ERRAND_LATE : ERRAND_CRASHED;
	}
	switch (WEXITSTATUS(status)) {
	case 0:
		return ERRAND_DONE;
	case STATUS_LARGE:
		return ERRAND_LARGE;
	case STATUS_AFTER:
		return ERRAND_UNDONE;
	default:
		return ERRAND_CRASHED;
	}
}

/* Takes it. Its process is dead. */
static void finish(struct errand *e)
{
	struct errands *a = e->all;
	int status = 0;

	while (waitpid(e->pid, &status, 0) < 0 && errno == EINTR) {
	}
	while (pipe_read(e)) {
	}
	if (e->fate == ERRAND_DONE) {
		e->fate = fate_of(status);
	}
	unlink_from(&a->running, e);
	a->n_running -= !e->told;
	pump_soon(a);
	tell(e);
	errand_free(e);
}

static void on_pid(void *arg, uint32_t events)
{
	(void)events;
	finish(arg);
}

/* One that must come to its end is not waited for any longer. */
static void on_limit(void *arg)
{
	struct errand *e = arg;

	if (e->wish.after == NULL) {
		e->fate = ERRAND_LATE;
		send_kill(e);
		return;
	}
	e->fate = e->whole ? ERRAND_DONE : ERRAND_LATE;
	e->all->n_running--;
	pump_soon(e->all);
	tell(e);
}

void errand_cancel(struct errand *e)
{
	if (e->pid == 0) {
		e->fate = ERRAND_CANCELED;
		pump_soon(e->all);
	} else if (e->wish.after == NULL) {
		e->fate = ERRAND_CANCELED;
		send_kill(e);
	}
}

/* ---- its process ------------------------------------------------------------------- */

/* Whatever a record holds; what must come to its end has no limits of this kind, and
 * hands none on to what it starts. */
static void set_limits(void)
{
	const struct rlimit cpu = { MAX_ERRAND_TIME, MAX_ERRAND_TIME + 1 };
	const struct rlimit core = { 0, 0 };

	(void)setrlimit(RLIMIT_CPU, &cpu);
	(void)setrlimit(RLIMIT_CORE, &core);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
}

static _Noreturn void work(const struct errand *e, int fd, pid_t server)
{
	bool lasts = e->wish.after != NULL;
	int keep[] = { fd, records_fd(e->all->serve->records) };
	const struct child child = { .server = server,
		                     .goes_with_it = lasts ? 0 : SIGKILL,
		                     .keep = keep,
		                     .n_keep = ARRAY_LEN(keep) };
	struct buf out;

	if (child_settle(&child) != 0) {
		_exit(1);
	}
	if (!lasts) {
		set_limits();
	}
	buf_init(&out, MAX_ERRAND_BYTES);
	e->wish.run(e->wish.arg, &out);
	if (out.failed) {
		_exit(STATUS_LARGE);
	}
	bool sent = file_write_all(fd, out.data, out.len) == 0;
	(void)close(fd);
	if (lasts && e->wish.after(e->wish.arg) != 0) {
		_exit(STATUS_AFTER);
	}
	_exit(sent ? 0 : 1);
}

/* -1: nothing of it is there. */
static int launch(struct errand *e)
{
	struct loop *l = e->all->serve->loop;
	uint64_t ms = e->wish.limit_ms != 0   ? e->wish.limit_ms
	              : e->wish.after != NULL ? MAX_ERRAND_TIME * 500UL
	                                      : MAX_ERRAND_TIME * 1000UL;
	pid_t server = getpid();
	auto_fd theirs = -1;
	int p[2];

	if (pipe2(p, O_CLOEXEC) != 0) {
		return -1;
	}
	e->pipe = p[0];
	theirs = p[1];
	if (fcntl(e->pipe, F_SETFL, O_NONBLOCK) != 0) {
		return -1;
	}
	e->pid = child_fork(&e->pidfd);
	if (e->pid == 0) {
		work(e, theirs, server);
	}
	if (e->pid < 0) {
		return -1;
	}
	if (loop_watch(l, e->pidfd, EPOLLIN, on_pid, e, &e->pid_watch) != 0 ||
	    loop_watch(l, e->pipe, EPOLLIN, on_pipe, e, &e->pipe_watch) != 0 ||
	    loop_after(l, ms, on_limit, e, &e->limit) != 0) {
		loop_unwatch(&e->pid_watch);
		clone_end(&e->pidfd); /* what cannot be watched over is not let go on */
		return -1;
	}
	return 0;
}

/* ---- its start ----------------------------------------------------------------------- */

static size_t running_of(const struct errands *a, const char *who)
{
	size_t n = 0;

	for (const struct errand *e = a->running; e != NULL; e = e->next) {
		n += !e->told && strcmp(e->who, who) == 0;
	}
	return n;
}

/* The one that is to leave the queue now: the oldest of whoever has the fewest under
 * way. NULL: all have to wait. */
static struct errand *next_due(const struct errands *a)
{
	size_t least = MAX_ERRANDS_EACH;
	struct errand *found = NULL;

	for (struct errand *e = a->queue; e != NULL; e = e->next) {
		if (e->fate == ERRAND_CANCELED) {
			return e;
		}
		size_t n = a->n_running < MAX_ERRANDS ? running_of(a, e->who) : least;
		if (n < least) {
			least = n;
			found = e;
		}
	}
	return found;
}

static void on_pump(void *arg)
{
	struct errands *a = arg;
	struct errand *e;

	while ((e = next_due(a)) != NULL) {
		unlink_from(&a->queue, e);
		if (e->fate != ERRAND_CANCELED && launch(e) == 0) {
			e->next = a->running;
			a->running = e;
			a->n_running++;
			continue;
		}
		e->fate = e->fate == ERRAND_CANCELED ? ERRAND_CANCELED : ERRAND_UNSTARTED;
		tell(e);
		errand_free(e);
	}
}

static void pump_soon(struct errands *a)
{
	if (a->pump == NULL && a->queue != NULL) {
		(void)loop_after(a->serve->loop, 0, on_pump, a, &a->pump);
	}
}

int errand_start(struct serve *s, const struct errand_wish *w, struct errand **ret,
                 struct ssb_error *err)
{
	struct errand *e = calloc(1, sizeof(*e));
	/* Whoever asked may go before it ends, and his task be another's. */
	char *who = strdup(w->who);
	struct errand **last = &s->errands->queue;

	if (e == NULL || who == NULL) {
		free(e);
		free(who);
		return ssb_fail(err, SSB_E_NOMEM, 0, "serve", "out of memory");
	}
	*e = (struct errand){ .all = s->errands, .wish = *w, .who = who, .pidfd = -1, .pipe = -1 };
	buf_init(&e->data, MAX_ERRAND_BYTES);
	while (*last != NULL) {
		last = &(*last)->next;
	}
	*last = e;
	pump_soon(s->errands);
	*ret = e;
	return 0;
}

void errands_free(struct errands *a)
{
	if (a == NULL) {
		return;
	}
	loop_untimer(&a->pump);
	for (struct errand *e = a->queue; e != NULL; e = a->queue) {
		a->queue = e->next;
		e->fate = ERRAND_CANCELED;
		tell(e);
		errand_free(e);
	}
	for (struct errand *e = a->running; e != NULL; e = a->running) {
		if (e->wish.after == NULL) {
			e->fate = ERRAND_CANCELED;
			send_kill(e);
			struct pollfd p = { .fd = e->pidfd, .events = POLLIN };
			while (poll(&p, 1, -1) < 0 && errno == EINTR) {
			}
			finish(e);
			continue;
		}
		a->running = e->next;
		e->fate = ERRAND_CANCELED;
		tell(e);
		errand_free(e);
	}
	loop_untimer(&a->pump);
	free(a);
}
