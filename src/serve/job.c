/* job.c - one run: this process's side. The other side is job_child.c.
 *
 *   server ── fork ──► supervisor (ssb_run) ──► sandbox
 *     ▲ out, err: pipes         │
 *     ▲ sock: record (id, fd), then result or error
 *     ▲ pidfd: the end; what has been said by then is all there is
 *
 * The supervisor delivers every byte before it ends, so that nothing has to be waited
 * for once its pidfd is readable. */
#include "serve/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clone.h"
#include "serve/job_priv.h"

#define FOLLOW_MS    50
#define JOBS_PER_CPU 8
#define LEAST_JOBS   64
/* A canceled supervisor still has to finish its record, and its session's. */
#define FINISH_MS  20000
#define READ_BYTES 65536
/* Of a record at one time: others wait too. What a run tells faster than that is told
 * later, or not at all once it has ended. */
#define FOLLOW_BYTES ((size_t)1 << 20)

struct stream {
	struct job *job;
	int number; /* 1, 2 */
	int fd;
	struct loop_watch *watch;
	char *data; /* the first of it */
	size_t len;
	uint64_t all;
};

struct job {
	struct jobs *jobs;
	char *who; /* its client */
	struct job *next;
	struct job **prev;
	struct job_watch watch;
	size_t keep;
	pid_t pid;
	int pidfd;
	int sock;
	struct loop_watch *pid_watch;
	struct loop_watch *sock_watch;
	struct loop_timer *follow;
	struct loop_timer *kill;
	struct stream streams[2];
	int record; /* -1: none yet, or not wanted */
	struct reader reader;
	struct line line;
	bool told; /* how it ended */
	bool canceled;
	struct job_end end;
};

struct jobs {
	struct serve *serve;
	struct job *first;
	size_t n;
	size_t max;
};

static size_t default_max(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const size_t most = cpus > 0 ? (size_t)cpus * JOBS_PER_CPU : 0;

	return most < LEAST_JOBS ? LEAST_JOBS : most < MAX_JOBS ? most : MAX_JOBS;
}

int jobs_new(struct serve *s, struct jobs **ret, struct ssb_error *err)
{
	struct jobs *j = calloc(1, sizeof(*j));

	if (j == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "run", "out of memory");
	}
	j->serve = s;
	j->max = s->opt->max_runs != 0 ? s->opt->max_runs : default_max();
	*ret = j;
	return 0;
}

size_t jobs_count(const struct jobs *j)
{
	return j->n;
}

static void job_free(struct job *j)
{
	if (j == NULL) {
		return;
	}
	if (j->prev != NULL) {
		*j->prev = j->next;
		if (j->next != NULL) {
			j->next->prev = j->prev;
		}
		j->jobs->n--;
	}
	loop_unwatch(&j->pid_watch);
	loop_unwatch(&j->sock_watch);
	loop_untimer(&j->follow);
	loop_untimer(&j->kill);
	for (size_t i = 0; i < ARRAY_LEN(j->streams); i++) {
		loop_unwatch(&j->streams[i].watch);
		own_close(&j->streams[i].fd);
		free(j->streams[i].data);
	}
	own_close(&j->pidfd);
	own_close(&j->sock);
	if (j->record >= 0) {
		reader_done(&j->reader);
		line_done(&j->line);
		own_close(&j->record);
	}
	free(j->who);
	free(j);
}

static void job_freep(struct job **j)
{
	job_free(*j);
}

/* ---- what it writes ----------------------------------------------------------- */

static void stream_take(struct stream *s, const char *data, size_t len)
{
	size_t room = s->job->keep - s->len;
	size_t n = len < room ? len : room;

	s->all += len;
	if (n > 0) {
		char *bigger = realloc(s->data, s->len + n);
		if (bigger != NULL) { /* else it is cut, and `all` says so */
			s->data = bigger;
			memcpy(s->data + s->len, data, n);
			s->len += n;
		}
	}
	if (s->job->watch.output != NULL) {
		s->job->watch.output(s->job->watch.arg, s->number, data, len);
	}
}

/* False: nothing more, now or for ever. */
static bool stream_read(struct stream *s)
{
	char data[READ_BYTES];
	ssize_t n = s->fd < 0 ? 0 : read(s->fd, data, sizeof(data));

	if (n > 0) {
		stream_take(s, data, (size_t)n);
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		loop_unwatch(&s->watch);
		own_close(&s->fd);
	}
	return false;
}

static void on_stream(void *arg, uint32_t events)
{
	(void)events;
	(void)stream_read(arg); /* once: others wait too */
}

/* ---- what it says --------------------------------------------------------------- */

static void follow(struct job *j)
{
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;
	size_t all = 0;

	while (j->record >= 0 && all < FOLLOW_BYTES &&
	       reader_next(&j->reader, &text, &len) == READER_LINE &&
	       line_parse(&j->line, text, len, &why) == 0) {
		j->watch.line(j->watch.arg, &j->line);
		all += len;
	}
}

static void on_follow(void *arg)
{
	struct job *j = arg;

	follow(j);
	(void)loop_after(j->jobs->serve->loop, FOLLOW_MS, on_follow, j, &j->follow);
}

static void take_record(struct job *j, const struct job_msg *m, struct msg_fds *fds)
{
	memcpy(j->end.result.run_id, m->record.id, sizeof(m->record.id));
	memcpy(j->end.result.trace_path, m->record.path, sizeof(m->record.path));
	if (j->watch.line != NULL && fds->n == 1 && j->record < 0) {
		j->record = steal_fd(&fds->v[0]);
		reader_init(&j->reader, j->record, 0);
		(void)loop_after(j->jobs->serve->loop, FOLLOW_MS, on_follow, j, &j->follow);
	}
	if (j->watch.started != NULL) {
		j->watch.started(j->watch.arg, j->end.result.run_id);
	}
}

/* False: nothing more. */
static bool hear(struct job *j)
{
	struct job_msg m;
	struct msg_fds fds = { .n = 0 };

	errno = 0;
	ssize_t n = msg_fds_recv(j->sock, &m, sizeof(m), &fds);

	if (n != (ssize_t)sizeof(m)) {
		if (n > 0) {
			msg_fds_close(&fds);
		}
		return false;
	}
	switch (m.kind) {
	case JOB_RECORD:
		take_record(j, &m, &fds);
		break;
	case JOB_RESULT:
		j->end.result = m.result;
		j->end.ran = j->told = true;
		break;
	case JOB_FAILED:
		j->end.err = m.err;
		j->told = true;
		break;
	}
	msg_fds_close(&fds);
	return true;
}

static void on_sock(void *arg, uint32_t events)
{
	struct job *j = arg;

	(void)events;
	if (!hear(j) && errno != EAGAIN) {
		loop_unwatch(&j->sock_watch);
	}
}

/* ---- its end --------------------------------------------------------------------- */

/* Its sandbox went with it; what is in the record is as far as it came. */
static void tell_crash(struct job *j, int status)
{
	const char *how = WIFSIGNALED(status) ? "was killed by signal" : "ended with status";
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);

	(void)ssb_fail(&j->end.err, SSB_E_SYS, 0, "run",
	               "the supervisor %s %d before it could report; the run is gone with it", how,
	               number);
}

/* Takes it. The supervisor is dead. */
static void finish(struct job *j)
{
	AUTO(job_freep) struct job *gone = j;
	struct job_watch watch = j->watch;
	int status = 0;

	loop_unwatch(&j->pid_watch);
	while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR) {
	}
	while (hear(j)) {
	}
	for (size_t i = 0; i < ARRAY_LEN(j->streams); i++) {
		struct stream *s = &j->streams[i];
		while (stream_read(s)) {
		}
		j->end.out[i] = s->data;
		j->end.out_len[i] = s->len;
		j->end.out_all[i] = s->all;
	}
	loop_untimer(&j->follow);
	follow(j);
	if (!j->told) {
		tell_crash(j, status);
	}
	watch.ended(watch.arg, &gone->end);
}

static void on_pid(void *arg, uint32_t events)
{
	(void)events;
	finish(arg);
}

static void send_signal(const struct job *j, int sig)
{
	(void)pidfd_send_signal(j->pidfd, sig, NULL, 0);
}

static void on_kill(void *arg)
{
	send_signal(arg, SIGKILL);
}

/* The first signal is for the skill to end itself, and the second for us to end it: two
 * different ones, because a signal that is pending already is not sent twice. The record
 * is finished all the same. */
void job_cancel(struct job *j)
{
	if (j->canceled) {
		return;
	}
	j->canceled = true;
	send_signal(j, SIGINT);
	send_signal(j, SIGTERM);
	(void)loop_after(j->jobs->serve->loop, FINISH_MS, on_kill, j, &j->kill);
}

void jobs_free(struct jobs *jobs)
{
	if (jobs == NULL) {
		return;
	}
	for (struct job *j = jobs->first; j != NULL; j = j->next) {
		job_cancel(j);
	}
	while (jobs->first != NULL) {
		struct pollfd p = { .fd = jobs->first->pidfd, .events = POLLIN };
		if (poll(&p, 1, FINISH_MS) == 0) {
			send_signal(jobs->first, SIGKILL);
		}
		finish(jobs->first);
	}
	free(jobs);
}

/* ---- its start -------------------------------------------------------------------- */

static int open_streams(struct job *j, int ret_theirs[2], struct ssb_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(j->streams); i++) {
		int p[2];
		if (pipe2(p, O_CLOEXEC) != 0) {
			return ssb_fail(err, SSB_E_SYS, errno, "run", "pipe");
		}
		j->streams[i].fd = p[0];
		ret_theirs[i] = p[1];
		if (fcntl(p[0], F_SETFL, O_NONBLOCK) != 0) {
			return ssb_fail(err, SSB_E_SYS, errno, "run", "fcntl");
		}
	}
	return 0;
}

static int watch_all(struct job *j, struct ssb_error *err)
{
	struct loop *l = j->jobs->serve->loop;

	if (loop_watch(l, j->pidfd, EPOLLIN, on_pid, j, &j->pid_watch) != 0 ||
	    loop_watch(l, j->sock, EPOLLIN, on_sock, j, &j->sock_watch) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "run", "epoll");
	}
	for (size_t i = 0; i < ARRAY_LEN(j->streams); i++) {
		struct stream *s = &j->streams[i];
		if (loop_watch(l, s->fd, EPOLLIN, on_stream, s, &s->watch) != 0) {
			return ssb_fail(err, SSB_E_SYS, errno, "run", "epoll");
		}
	}
	return 0;
}

static int start(struct job *j, const struct job_wish *w, struct ssb_error *err)
{
	auto_fd out = -1, error = -1, theirs = -1;
	int ends[2] = { -1, -1 };
	int pair[2];

	int failed = open_streams(j, ends, err);
	out = ends[0];
	error = ends[1];
	if (failed != 0) {
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "run", "socketpair");
	}
	j->sock = pair[0];
	theirs = pair[1];
	if (fcntl(j->sock, F_SETFL, O_NONBLOCK) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "run", "fcntl");
	}
	const struct job_child child = { .plan = w->plan,
		                         .prepare = w->prepare,
		                         .prepare_arg = w->prepare_arg,
		                         .session = w->session,
		                         .traceparent = w->traceparent,
		                         .otel = j->jobs->serve->opt->otel,
		                         .out = out,
		                         .err = error,
		                         .sock = theirs };
	j->pid = job_fork(&child, &j->pidfd);
	if (j->pid < 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "run", "fork");
	}
	if (watch_all(j, err) != 0) {
		loop_unwatch(&j->pid_watch);
		clone_end(&j->pidfd); /* what cannot be watched over is not let go on */
		return -1;
	}
	return 0;
}

static size_t runs_of(const struct jobs *all, const char *who)
{
	size_t n = 0;

	for (const struct job *j = all->first; j != NULL; j = j->next) {
		n += strcmp(j->who, who) == 0 ? 1 : 0;
	}
	return n;
}

/* Where several clients may come, each can begin another run only while it has fewer under
 * way than are still free. So one alone gets half of them, the next half of the rest, and
 * one that has none finds room. */
static int check_room(const struct serve *s, const char *who, struct ssb_error *err)
{
	const struct jobs *all = s->jobs;
	const bool shared = s->opt->http != NULL || s->opt->socket != NULL;

	if (all->n >= all->max) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "run",
		                "%zu runs are under way, which is the most (--max-runs); wait for "
		                "one of them to end",
		                all->n);
	}
	size_t own = shared ? runs_of(all, who) : 0;
	if (own >= all->max - all->n) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "run",
		                "%zu runs of yours are under way, and the other %zu of %zu "
		                "(--max-runs) are kept for other clients; wait for one of yours to "
		                "end",
		                own, all->max - own, all->max);
	}
	return 0;
}

int job_start(struct serve *s, const struct job_wish *w, const struct job_watch *watch,
              struct job **ret, struct ssb_error *err)
{
	AUTO(job_freep) struct job *j = NULL;

	if (check_room(s, w->who, err) != 0) {
		return -1;
	}
	j = calloc(1, sizeof(*j));
	auto_free char *who = strdup(w->who);
	if (j == NULL || who == NULL) {
		free(j);
		j = NULL;
		return ssb_fail(err, SSB_E_NOMEM, 0, "run", "out of memory");
	}
	*j = (struct job){ .jobs = s->jobs,
		           .who = steal_ptr(&who),
		           .watch = *watch,
		           .keep = w->keep,
		           .pidfd = -1,
		           .sock = -1,
		           .record = -1,
		           .streams = { { .job = j, .number = 1, .fd = -1 },
		                        { .job = j, .number = 2, .fd = -1 } } };
	if (start(j, w, err) != 0) {
		return -1;
	}
	j->next = s->jobs->first;
	j->prev = &s->jobs->first;
	if (j->next != NULL) {
		j->next->prev = &j->next;
	}
	s->jobs->first = j;
	s->jobs->n++;
	*ret = steal_ptr(&j);
	return 0;
}
