/* job.c - one run: the server's side. The other side is job_child.c.
 *
 *   server ── fork ──► supervisor (keeper_run) ──► sandbox
 *     ▲ child: stdout and stderr as pipes, the end (child.h)
 *     ▲ sock: the record (id, fd), then the result or an error
 *
 * The supervisor delivers every byte before it ends. When it has ended, the server need not
 * wait for anything else. */
#include "serve/job.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/clone.h"
#include "serve/child.h"
#include "serve/job_priv.h"

#define FOLLOW_MS    50
#define JOBS_PER_CPU 8
#define LEAST_JOBS   64
#define FINISH_MS    20000 /* time for a canceled supervisor to finish the record and the ledger */
/* The most bytes that are read from a record at one time. Then other runs get their turn. If
 * events come faster, they are reported later, or not at all if the run has ended by then. */
#define FOLLOW_BYTES ((size_t)1 << 20)

struct job_stream {
	char *data; /* the first `len` bytes of the output */
	size_t len;
	uint64_t all; /* number of all bytes of the output, kept or not */
};

struct serve_job {
	struct job_list *jobs;
	char *who; /* the client */
	LIST_ENTRY(serve_job) link;
	struct job_watch watch;
	size_t keep;
	struct child child;
	struct job_child theirs; /* what the supervisor gets from the server */
	int sock;
	struct loop_watch *sock_watch;
	struct loop_timer *follow;
	struct loop_timer *kill;
	struct job_stream streams[2];
	int record; /* fd of the record; -1: none yet, or the client does not want it */
	struct reader reader;
	struct line line;
	bool told; /* the supervisor reported how the run ended */
	bool canceled;
	struct job_end end;
};

struct job_list {
	struct serve *serve;
	LIST_HEAD(serve_jobs, serve_job) all;
	size_t n;
	size_t max;
};

static size_t default_max(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const size_t most = cpus > 0 ? (size_t)cpus * JOBS_PER_CPU : 0;

	return most < LEAST_JOBS ? LEAST_JOBS : most < MAX_JOBS ? most : MAX_JOBS;
}

int job_list_new(struct serve *s, struct job_list **ret, struct ssb_error *err)
{
	struct job_list *j = calloc(1, sizeof(*j));

	if (j == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "run", "out of memory");
	}
	j->serve = s;
	j->max = s->opt->max_runs != 0 ? s->opt->max_runs : default_max();
	*ret = j;
	return 0;
}

size_t job_list_count(const struct job_list *j)
{
	return j->n;
}

static void job_free(struct serve_job *j)
{
	if (j == NULL) {
		return;
	}
	LIST_REMOVE(j, link);
	j->jobs->n--;
	if (j->child.pid > 0) {
		child_done(&j->child);
	}
	loop_unwatch(&j->sock_watch);
	loop_untimer(&j->follow);
	loop_untimer(&j->kill);
	for (size_t i = 0; i < ARRAY_LEN(j->streams); i++) {
		free(j->streams[i].data);
	}
	own_close(&j->sock);
	if (j->record >= 0) {
		reader_done(&j->reader);
		line_done(&j->line);
		own_close(&j->record);
	}
	free(j->who);
	free(j);
}

OWN_FREEP(job_freep, struct serve_job, job_free)

/* ---- what it writes ----------------------------------------------------------- */

static void on_data(void *arg, size_t pipe, const char *data, size_t len)
{
	struct serve_job *j = arg;
	struct job_stream *s = &j->streams[pipe];
	size_t room = j->keep - s->len;
	size_t n = len < room ? len : room;

	s->all += len;
	if (n > 0) {
		char *bigger = realloc(s->data, s->len + n);
		if (bigger !=
		    NULL) { /* if memory is short, the output is cut, and `all` shows that */
			s->data = bigger;
			memcpy(s->data + s->len, data, n);
			s->len += n;
		}
	}
	if (j->watch.output != NULL) {
		j->watch.output(j->watch.arg, (int)pipe + 1, data, len);
	}
}

/* ---- what it says --------------------------------------------------------------- */

static void follow_record(struct serve_job *j)
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
	struct serve_job *j = arg;

	follow_record(j);
	(void)loop_after(j->jobs->serve->loop, FOLLOW_MS, on_follow, j, &j->follow);
}

static void take_record(struct serve_job *j, const struct job_msg *m, struct msg_fds *fds)
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

/* Returns false if there is no further message. */
static bool read_message(struct serve_job *j)
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
	struct serve_job *j = arg;

	(void)events;
	if (!read_message(j) && errno != EAGAIN) {
		loop_unwatch(&j->sock_watch);
	}
}

/* ---- its end --------------------------------------------------------------------- */

/* Notes in end.err that the supervisor died, and the sandbox with it. The record of the run has
 * no further lines. */
static void note_crash(struct serve_job *j, int status)
{
	const char *how = WIFSIGNALED(status) ? "was killed by signal" : "ended with status";
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);

	(void)ssb_fail(&j->end.err, SSB_E_SYS, 0, "run",
	               "the supervisor %s %d before it could report; the run ended with it", how,
	               number);
}

/* Frees the job. */
static void on_child_ended(void *arg, int status)
{
	AUTO(job_freep) struct serve_job *j = arg;
	const struct job_watch watch = j->watch;

	while (read_message(j)) {
	}
	for (size_t i = 0; i < ARRAY_LEN(j->streams); i++) {
		const struct job_stream *s = &j->streams[i];
		j->end.out[i] = s->data;
		j->end.out_len[i] = s->len;
		j->end.out_all[i] = s->all;
	}
	loop_untimer(&j->follow);
	follow_record(j);
	if (!j->told) {
		note_crash(j, status);
	}
	watch.ended(watch.arg, &j->end);
}

static void on_kill(void *arg)
{
	const struct serve_job *j = arg;

	child_signal(&j->child, SIGKILL);
}

/* Cancels with two signals: the first one lets the skill end by itself, and the second one ends
 * it. They are different, because a signal that is already pending is not sent twice. The record
 * is finished in both cases. */
void job_cancel(struct serve_job *j)
{
	if (j->canceled) {
		return;
	}
	j->canceled = true;
	child_signal(&j->child, SIGINT);
	child_signal(&j->child, SIGTERM);
	(void)loop_after(j->jobs->serve->loop, FINISH_MS, on_kill, j, &j->kill);
}

void job_list_free(struct job_list *jobs)
{
	if (jobs == NULL) {
		return;
	}
	for (struct serve_job *j = LIST_FIRST(&jobs->all); j != NULL; j = LIST_NEXT(j, link)) {
		job_cancel(j);
	}
	while (!LIST_EMPTY(&jobs->all)) {
		child_finish(&LIST_FIRST(&jobs->all)->child, FINISH_MS);
	}
	free(jobs);
}

/* ---- its start -------------------------------------------------------------------- */

/* Runs in the supervisor's process. */
static void run_supervisor(void *arg, const int pipes[CHILD_PIPES])
{
	struct serve_job *j = arg;

	j->theirs.out = pipes[0];
	j->theirs.err = pipes[1];
	job_supervise(&j->theirs);
}

static int start_child(struct serve_job *j, struct ssb_error *err)
{
	struct loop *loop = j->jobs->serve->loop;
	const struct child_wish wish = { .loop = loop,
		                         .n_pipes = ARRAY_LEN(j->streams),
		                         .work = run_supervisor,
		                         .data = on_data,
		                         .ended = on_child_ended,
		                         .arg = j };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "run", "socketpair");
	}
	j->sock = pair[0];
	auto_fd theirs = pair[1]; /* the child's end: the fork copies it; closed here */
	j->theirs.sock = theirs;
	if (fcntl(j->sock, F_SETFL, O_NONBLOCK) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "run", "fcntl");
	}
	if (loop_watch(loop, j->sock, EPOLLIN, on_sock, j, &j->sock_watch) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "run", "epoll");
	}
	return child_start(&j->child, &wish, err);
}

static size_t runs_of(const struct job_list *all, const char *who)
{
	size_t n = 0;

	for (const struct serve_job *j = LIST_FIRST(&all->all); j != NULL; j = LIST_NEXT(j, link)) {
		n += strcmp(j->who, who) == 0 ? 1 : 0;
	}
	return n;
}

/* If there can be several clients, a client can start another run only if it has fewer runs than
 * there are free places. So a single client gets half of all places, the next one gets half of the
 * rest, and a client without a run finds room. */
static int check_room(const struct serve *s, const char *who, struct ssb_error *err)
{
	const struct job_list *all = s->jobs;
	const bool shared = s->opt->http != NULL || s->opt->socket != NULL;

	if (all->n >= all->max) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "run",
		                "%zu runs are running, which is the limit (--max-runs); wait for "
		                "one of them to end",
		                all->n);
	}
	size_t own = shared ? runs_of(all, who) : 0;
	if (own >= all->max - all->n) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "run",
		                "%zu runs of yours are running, and the other %zu of %zu "
		                "(--max-runs) are kept for other clients; wait for one of yours to "
		                "end",
		                own, all->max - own, all->max);
	}
	return 0;
}

int job_start(struct serve *s, const struct job_wish *w, const struct job_watch *watch,
              struct serve_job **ret, struct ssb_error *err)
{
	AUTO(job_freep) struct serve_job *j = NULL;

	assert(w->plan != NULL && w->who != NULL && watch->ended != NULL);
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
	*j = (struct serve_job){ .jobs = s->jobs,
		                 .who = steal_ptr(&who),
		                 .watch = *watch,
		                 .keep = w->keep,
		                 .theirs = { .plan = w->plan,
		                             .prepare = w->prepare,
		                             .prepare_arg = w->prepare_arg,
		                             .session = w->session,
		                             .traceparent = w->traceparent,
		                             .otel = s->opt->otel },
		                 .sock = -1,
		                 .record = -1 };
	LIST_INSERT_HEAD(&s->jobs->all, j, link);
	s->jobs->n++;
	if (start_child(j, err) != 0) {
		return -1;
	}
	j->theirs = (struct job_child){ 0 }; /* borrowed only during the start */
	*ret = steal_ptr(&j);
	return 0;
}
