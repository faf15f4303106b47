/* run_watch.c - shows what a skill does while it runs: with --watch every event, else the first
 * denials that matter, so that you need not wait until a program gives up.
 *
 * A separate process follows the record and writes to standard error, so that the run never waits
 * for a slow reader. */
#include "cli/run_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/line.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "report/overview.h"
#include "report/remedy.h"
#include "trace/reader.h"
#include "trace/runs.h"

#define TICK_MS    50
#define LAST_MS    5000 /* time limit for printing the last lines after the run has ended */
#define RECORD_FD  3
#define LIVE_MS    100
#define LIVE_LINES 5 /* denials that are said at once */

/* Writes a carriage return before each newline if the terminal of standard error is raw. It is
 * raw while the skill uses a terminal that the sandbox made for it, and then a newline does not
 * return to the first column. */
static void put_returns(struct buf *out)
{
	struct termios t;
	auto_buf wide = BUF(SAY_MAX);

	if (tcgetattr(STDERR_FILENO, &t) != 0 || (t.c_oflag & OPOST) != 0) {
		return;
	}
	for (size_t i = 0; i < out->len; i++) {
		buf_adds(&wide, out->data[i] == '\n' ? "\r" : "");
		buf_addc(&wide, out->data[i]);
	}
	buf_reset(out);
	buf_add(out, wide.data, wide.len);
}

/* Prints all complete lines. Returns false if no line can follow: the last line was printed, or the
 * record is damaged, or the output failed. */
static bool print_lines(struct reader *in, struct line *l, bool routine, struct buf *out)
{
	const struct render_style style = { STDERR_FILENO, false, routine, "" };
	const char *text = NULL;
	const char *why = NULL;
	size_t len = 0;
	bool more = true;

	while (more && reader_next(in, &text, &len) == READER_LINE) {
		buf_reset(out);
		if (line_parse(l, text, len, &why) != 0) {
			return false;
		}
		line_render(out, l, &style);
		put_returns(out);
		more = l->kind != EV_SIGNATURE && say_out(STDERR_FILENO, out) == 0;
	}
	return more;
}

/* Signals from the caller are for the run. This process must end only after the run. */
static void ignore_signals(void)
{
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
}

static void watch_process(bool routine)
{
	struct reader in;
	struct line l = { 0 };
	struct buf out = BUF(SAY_MAX);

	reader_init(&in, RECORD_FD, 0);
	ignore_signals();
	bool live = true;
	while (print_lines(&in, &l, routine, &out) && live) {
		(void)poll(NULL, 0, TICK_MS);
		live = run_file_live(RECORD_FD);
	}
	_exit(0);
}

/* run_file_live() tests the lock that shows that the run is
 * running; on a duplicate of `record`, the test would release this lock. */
int run_watch_reopen(int record)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", record);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Closes all fds except the record and standard error. */
static bool settle_fds(int record)
{
	int fd = run_watch_reopen(record);
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fd >= 0 && none >= 0 && dup2(none, STDIN_FILENO) >= 0 &&
	       dup2(none, STDOUT_FILENO) >= 0 && (fd == RECORD_FD || dup2(fd, RECORD_FD) >= 0) &&
	       close_range(RECORD_FD + 1, ~0U, 0) == 0;
}

/* ---- the first denials ----------------------------------------------------------------------- */

/* What was said, and what is held back while the skill uses the whole screen. */
struct live_lines {
	atomic_bool *full_screen;
	const char *home; /* the skill's home */
	char *said[LIVE_LINES];
	size_t n_said;
	size_t n_shown;
};

/* Returns whether a person should know of the denial at once: programs retry or give up after it,
 * and an option would allow it. */
static bool matters_now(const struct line *l, const char *home)
{
	enum reason reason = line_get_reason(l);
	enum op op = line_get_op(l);
	enum denial_kind kind = overview_judge(l, home);
	bool host = l->kind == EV_NETWORK_EGRESS_BLOCKED && reason_remedy(reason) == REMEDY_NETWORK;
	bool file = kind == DENIAL_PLAIN && reason == REASON_NOT_GRANTED && op != OP_ACCESS &&
	            op != OP_NAMED;

	return line_get(l, "repeat_of") == NULL && (host || file || kind == DENIAL_LIMIT);
}

/* Returns the length of the first way to allow something. Other ways follow a comma; the quotes of
 * the first one may contain a comma, too. */
static size_t first_way(const struct buf *remedy)
{
	bool quoted = false;

	for (size_t i = 0; i < remedy->len; i++) {
		quoted ^= remedy->data[i] == '\'';
		if (!quoted && strncmp(remedy->data + i, ", ", 2) == 0) {
			return i;
		}
	}
	return remedy->len;
}

/* Writes "registry.example.org is not granted; to allow: --net registry.example.org". */
static void put_live(struct buf *out, const struct line *l)
{
	const struct json_node *what = line_get(l, "path");
	auto_buf remedy = BUF(SAY_MAX);

	what = what != NULL ? what : line_get(l, "name");
	what = what != NULL ? what : line_get(l, "address");
	(void)remedy_text(&remedy, l, true);
	size_t n = first_way(&remedy);
	if (l->kind == EV_RESOURCE_LIMIT_HIT) {
		render_what(out, l);
	} else {
		render_text(out, what, "?");
		buf_adds(out, " is not granted");
	}
	if (n > 0) {
		buf_adds(out, "; to allow: ");
		buf_add(out, remedy.data, n);
	}
}

static void keep_line(struct live_lines *v, const struct line *l)
{
	auto_buf text = BUF(SAY_MAX);

	put_live(&text, l);
	if (text.failed || text.data == NULL || v->n_said == LIVE_LINES) {
		return;
	}
	for (size_t i = 0; i < v->n_said; i++) {
		if (strcmp(v->said[i], text.data) == 0) {
			return;
		}
	}
	v->said[v->n_said] = buf_steal(&text);
	v->n_said += v->said[v->n_said] != NULL;
}

/* Prints what is kept, unless the skill uses the whole screen. */
static void show_kept(struct live_lines *v)
{
	for (; v->n_shown < v->n_said && !atomic_load(v->full_screen); v->n_shown++) {
		auto_buf out = BUF(SAY_MAX);
		buf_addf(&out, "skillsandbox: %s\n", v->said[v->n_shown]);
		put_returns(&out);
		(void)say_out(STDERR_FILENO, &out);
	}
}

static void live_process(atomic_bool *full_screen)
{
	struct live_lines v = { .full_screen = full_screen };
	struct reader in;
	struct line l = { 0 };
	const char *text = NULL;
	const char *why = NULL;
	char home[PATH_MAX] = "";
	size_t len = 0;

	ignore_signals();
	reader_init(&in, RECORD_FD, 0);
	for (bool live = true; live && v.n_shown < LIVE_LINES;) {
		live = run_file_live(RECORD_FD);
		while (reader_next(&in, &text, &len) == READER_LINE) {
			if (reader_is_header(text, len) || line_parse(&l, text, len, &why) != 0) {
				continue;
			}
			if (line_home(&l) != NULL) {
				snprintf(home, sizeof(home), "%s", line_home(&l));
			}
			if (matters_now(&l, home)) {
				keep_line(&v, &l);
			}
		}
		show_kept(&v);
		(void)poll(NULL, 0, LIVE_MS);
	}
	_exit(0);
}

/* ---- both ------------------------------------------------------------------------------------ */

void run_watch_start(void *arg, int record)
{
	struct run_watcher *w = arg;
	pid_t pid = fork();

	if (pid == 0) {
		if (settle_fds(record)) {
			if (w->full_screen != NULL) {
				live_process(w->full_screen);
			}
			if (w->progress) {
				ignore_signals();
				progress_follow(RECORD_FD);
				_exit(0);
			}
			watch_process(w->routine);
		}
		_exit(1);
	}
	if (pid < 0 && w->full_screen == NULL && !w->progress) {
		say_warningf("--watch: cannot create a process, so events are not shown; the "
		             "record contains them");
	}
	w->pid = pid > 0 ? pid : 0;
}

void run_watch_begin(struct run_watcher *w, const struct request *r, struct run_request *q)
{
	bool all = request_has(r, FLAG_WATCH);
	bool person = isatty(STDERR_FILENO) == 1 && !request_has(r, FLAG_QUIET) &&
	              !request_has(r, FLAG_JSON);

	*w = (struct run_watcher){ .routine = request_has(r, FLAG_VERBOSE) };
	if (!all && person) {
		void *page = mmap(NULL, sizeof(atomic_bool), PROT_READ | PROT_WRITE,
		                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		w->full_screen = page != MAP_FAILED ? page : NULL;
	}
	q->full_screen = w->full_screen;
	if (all || w->full_screen != NULL) {
		run_request_watch(q, (struct ssb_watch){ run_watch_start, w });
	}
}

void run_watch_end(struct run_watcher *w)
{
	/* --watch prints everything, but for at most LAST_MS. The summary repeats the first
	 * denials, so the run does not wait for them. */
	for (int left = w->full_screen != NULL ? 0 : LAST_MS; w->pid > 0 && left > 0;
	     left -= TICK_MS / 5) {
		if (waitpid(w->pid, NULL, WNOHANG) != 0) {
			w->pid = 0;
			break;
		}
		(void)poll(NULL, 0, TICK_MS / 5);
	}
	if (w->pid > 0) {
		(void)kill(w->pid, SIGKILL);
		(void)waitpid(w->pid, NULL, 0);
		w->pid = 0;
	}
	if (w->full_screen != NULL) {
		(void)munmap(w->full_screen, sizeof(atomic_bool));
		w->full_screen = NULL;
	}
}
