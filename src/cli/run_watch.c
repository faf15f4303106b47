/* run_watch.c - see run_watch.h. */
#include "cli/run_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "trace/reader.h"
#include "trace/runs.h"
#include "base/own.h"
#include "cli/line.h"
#include "cli/say.h"

#define TICK_MS   50
#define LAST_MS   5000 /* time limit for printing the last lines after the run has ended */
#define RECORD_FD 3

/* Writes a carriage return before each newline if our terminal is raw. It is raw while the skill
 * has a terminal of its own; a newline then does not return to the first column. */
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
static bool print_lines(struct reader *in, struct line *l, struct buf *out)
{
	static const struct render_style style = { STDERR_FILENO, false, "" };
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

static void watch_process(void)
{
	struct reader in;
	struct line l = { 0 };
	struct buf out = BUF(SAY_MAX);

	reader_init(&in, RECORD_FD, 0);
	/* Signals of the caller are meant for the run, and this process must end after the run. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	bool live = true;
	while (print_lines(&in, &l, &out) && live) {
		(void)poll(NULL, 0, TICK_MS);
		live = run_file_live(RECORD_FD);
	}
	_exit(0);
}

/* Closes all fds except the record and standard error. */
static bool settle_fds(int record)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", record);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fd >= 0 && none >= 0 && dup2(none, STDIN_FILENO) >= 0 &&
	       dup2(none, STDOUT_FILENO) >= 0 && (fd == RECORD_FD || dup2(fd, RECORD_FD) >= 0) &&
	       close_range(RECORD_FD + 1, ~0U, 0) == 0;
}

static void on_record(void *arg, int record)
{
	struct run_watch *w = arg;
	pid_t pid = fork();

	if (pid == 0) {
		if (settle_fds(record)) {
			watch_process();
		}
		_exit(1);
	}
	if (pid < 0) {
		say_warningf("--watch: cannot create a process; the record still has everything");
	}
	w->pid = pid > 0 ? pid : 0;
}

void run_watch_begin(struct run_watch *w, struct run_request *q)
{
	*w = (struct run_watch){ 0 };
	run_request_watch(q, (struct ssb_watch){ on_record, w });
}

void run_watch_end(struct run_watch *w)
{
	for (int left = LAST_MS; w->pid > 0 && left > 0; left -= TICK_MS / 5) {
		if (waitpid(w->pid, NULL, WNOHANG) != 0) {
			w->pid = 0;
			return;
		}
		(void)poll(NULL, 0, TICK_MS / 5);
	}
	if (w->pid > 0) {
		(void)kill(w->pid, SIGKILL);
		(void)waitpid(w->pid, NULL, 0);
		w->pid = 0;
	}
}
