/* otel.c - runs the process that exports a record. It sends the spans first, because they contain
 * the most information in the fewest bytes, and then the log records in batches. */
#include "otel/otel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/stamp.h"
#include "os/clock.h"
#include "os/detach.h"
#include "os/file.h"
#include "otel/otlp_record.h"
#include "otel/otlp_request.h"
#include "otel/otlp_send.h"

#define RECORD_FD 3
#define LOG_FD    4

static char run_name[64] = "run";

/* Writes one line to the log, with a single write(). Only printable characters are written, because
 * part of the line may come from a server. */
__attribute__((format(printf, 1, 2))) static void log_line(const char *fmt, ...)
{
	struct stamp stamp = STAMP_NONE;
	struct timespec now = { 0 };
	char text[1024];
	va_list ap;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	int n = snprintf(text, sizeof(text), "%s %s: ", stamp_text(&stamp, &now), run_name);
	va_start(ap, fmt);
	(void)vsnprintf(text + n, sizeof(text) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	for (char *p = text; *p != '\0'; p++) {
		*p = *p < ' ' || *p > '~' ? '?' : *p;
	}
	size_t len = strlen(text);
	text[len++] = '\n';
	(void)file_write_all(LOG_FD, text, len);
}

/* Ends the process when the time is over. It may hang in a resolver or a library. */
static void on_alarm(int sig)
{
	static const char text[] = "otel: a run could not be exported in time\n";

	(void)sig;
	(void)!write(LOG_FD, text, sizeof(text) - 1);
	_exit(1);
}

/* Opens <state_dir>/otel.log, which only the owner can read. A file that is too long becomes
 * otel.log.1. */
static int open_log(const char *state_dir)
{
	struct stat st;
	auto_fd dir = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0) {
		return -1;
	}
	if (fstatat(dir, "otel.log", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_size > OTEL_LOG_BYTES) {
		(void)renameat(dir, "otel.log", dir, "otel.log.1");
	}
	return openat(dir, "otel.log",
	              O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

/* Closes all fds that this process has inherited, except the record and its log. Otherwise a
 * program that waits for the end of a pipe would wait for this process, too. */
static bool settle_fds(int record, const char *state_dir)
{
	int log = open_log(state_dir);
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	int moved = fcntl(record, F_DUPFD_CLOEXEC, LOG_FD + 1);

	log = log >= 0 ? fcntl(log, F_DUPFD_CLOEXEC, LOG_FD + 1) : none;
	for (int i = 0; i < RECORD_FD; i++) {
		if (dup2(none, i) < 0) {
			return false;
		}
	}
	return moved >= 0 && log >= 0 && dup2(moved, RECORD_FD) >= 0 && dup2(log, LOG_FD) >= 0 &&
	       close_range(LOG_FD + 1, ~0U, 0) == 0;
}

static void settle_process(void)
{
	detach_settle(&(struct detach){
	        .name = "skillsandbox-ot",
	        .seconds = OTLP_HARD_SECONDS,
	        .late = on_alarm,
	        .memory = OTLP_MEMORY,
	});
}

/* The export of one record, while it is running. */
struct record_export {
	const struct otel_config *c;
	struct otlp_run run;
	uint64_t deadline_ms;
	struct buf out;
	struct otlp writer;
	size_t in_batch;
	size_t sent;    /* log records */
	size_t refused; /* batches */
	size_t lost;    /* log records */
	bool over;      /* no more batches are sent */
};

static void log_failure(const struct otlp_target *t, const char *what, const struct otlp_reply *r)
{
	char where[OTLP_WHERE_SIZE];

	otlp_target_where(t, where);
	if (r->status != 0) {
		log_line("%s answered %u to the %s", where, r->status, what);
	} else {
		log_line("%s: the %s could not be sent: %s", where, what, r->why);
	}
}

/* Logs that the server accepted the request but rejected some items. The items are not sent again,
 * because OTLP forbids it. */
static void log_partial(const struct otlp_target *t, const char *what, const struct otlp_reply *r)
{
	char where[OTLP_WHERE_SIZE];

	if (r->has_partial && (r->partial.rejected != 0 || r->partial.why[0] != '\0')) {
		otlp_target_where(t, where);
		log_line("%s: rejected %lld of the %s: %s", where, (long long)r->partial.rejected,
		         what, r->partial.why);
	}
}

static bool post_request(struct record_export *e, const struct otlp_target *t, const char *what,
                         struct otlp_reply *r)
{
	struct otlp_body body = { e->out.data, e->out.len };

	if (e->out.failed) {
		*r = (struct otlp_reply){ .why = "too large" };
		log_failure(t, what, r);
		return false;
	}
	bool sent = otlp_send(t, body, e->deadline_ms, r);
	if (sent) {
		log_partial(t, what, r);
	} else {
		log_failure(t, what, r);
	}
	return sent;
}

static bool export_spans(struct record_export *e)
{
	const struct otlp_target *t = &e->c->traces;
	struct otlp_reply r = { 0 };
	uint64_t all = e->deadline_ms;

	otlp_init(&e->writer, &e->out, t->format);
	otlp_write_spans(&e->writer, &e->run, e->c, RECORD_FD);
	/* Half of the time is reserved for the log records, which may go to another server. */
	e->deadline_ms -= e->c->logs.on ? OTLP_TOTAL_MS / 2 : 0;
	bool sent = post_request(e, t, "spans", &r);
	e->deadline_ms = all;
	return sent;
}

static void flush_batch(struct record_export *e)
{
	const struct otlp_target *t = &e->c->logs;
	struct otlp_reply r = { 0 };

	if (e->in_batch == 0) {
		return;
	}
	otlp_request_end(&e->writer);
	if (post_request(e, t, "log records", &r)) {
		e->sent += e->in_batch;
	} else {
		e->lost += e->in_batch;
		e->refused++;
		/* If the server did not answer, the next batch would wait just as long. */
		e->over = r.status == 0 || e->refused == OTLP_MAX_REFUSED;
	}
	e->in_batch = 0;
}

static void take_line(void *arg, const struct line *l)
{
	struct record_export *e = arg;

	if (!otlp_is_decision(l)) {
		return;
	}
	if (e->over) {
		e->lost++;
		return;
	}
	if (e->in_batch == 0) {
		buf_reset(&e->out);
		otlp_init(&e->writer, &e->out, e->c->logs.format);
		otlp_logs_begin(&e->writer, e->c);
	}
	otlp_logs_add(&e->writer, &e->run, e->c, l);
	e->in_batch++;
	if (e->in_batch == OTLP_BATCH || e->out.len >= OTLP_BATCH_BYTES || e->out.failed) {
		flush_batch(e);
	}
}

static void export_record(const struct otel_config *c)
{
	struct record_export e = { .c = c, .deadline_ms = clock_ms() + OTLP_TOTAL_MS };
	const char *spans = "no spans";

	buf_init(&e.out, OTLP_MAX_REQUEST);
	if (c->note[0] != '\0') {
		log_line("%s", c->note);
	}
	if (otlp_run_read(&e.run, RECORD_FD, c) != 0) {
		log_line("the record cannot be read");
		return;
	}
	snprintf(run_name, sizeof(run_name), "run %s", e.run.id);
	if (c->traces.on) {
		spans = export_spans(&e) ? "the spans" : "no spans";
	}
	if (c->logs.on) {
		otlp_each_line(RECORD_FD, take_line, &e);
		flush_batch(&e);
	}
	log_line("exported %s, %zu log records; %zu log records lost", spans, e.sent, e.lost);
	buf_done(&e.out);
}

void otel_start(int record_fd, const struct otel_config *c, const struct owner *owner)
{
	pid_t pid = c->traces.on || c->logs.on ? fork() : -1;

	if (pid == 0) {
		/* Make a new session and fork again, so that the caller need not wait for this
		 * process. */
		if (setsid() < 0 || fork() != 0 || !settle_fds(record_fd, owner->state_dir)) {
			_exit(0);
		}
		settle_process();
		export_record(c);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
	}
}
