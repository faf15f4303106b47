/* files_line.c - writes the line `files`, and runs the process that computes it. */
#include "trace/files_line.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "trace/trace_limits.h"
#include "base/digest.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/clone.h"
#include "os/file.h"
#include "skill/files.h"

#define PRIORITY      10
#define LAST_WORDS_MS 200 /* wait for the answer after SIGTERM, and for the end after SIGKILL */

/* ---- the members ------------------------------------------------------------------ */

static size_t depth_of(const char *path)
{
	size_t n = 0;

	for (; *path != '\0'; path++) {
		n += *path == '/';
	}
	return n;
}

static int by_depth(const void *a, const void *b)
{
	const struct skill_file *x = a;
	const struct skill_file *y = b;
	size_t p = depth_of(x->path);
	size_t q = depth_of(y->path);

	return p != q ? (p < q ? -1 : 1) : strcmp(x->path, y->path);
}

static void put_file(struct json *j, const struct skill_file *f)
{
	char hex[2 * SHA256_BYTES + 1];

	hex_encode(f->sha256, sizeof(f->sha256), hex);
	json_open(j, '[');
	json_str(j, f->path);
	json_str(j, f->no_digest != NULL ? NULL : hex);
	if (f->link != NULL) {
		json_str(j, "symlink");
	}
	json_close(j, ']');
}

/* Writes the files of the top level first, so that a list that is cut still shows them. */
static void put_list(struct json *j, struct skill_files *files)
{
	bool cut = false;

	if (files->n > 0) {
		qsort(files->v, files->n, sizeof(*files->v), by_depth);
	}
	json_kopen(j, "files", '[');
	for (size_t i = 0; i < files->n && !cut; i++) {
		const struct skill_file *f = &files->v[i];
		/* Each byte of the path may need an escape sequence of six bytes. */
		cut = j->out->len + 6 * strlen(f->path) + (size_t)2 * SHA256_BYTES + 32 >
		      FILES_LIST_BYTES;
		if (!cut && !f->dir) {
			put_file(j, f);
		}
	}
	json_close(j, ']');
	if (cut) {
		json_kbool(j, "files_cut", true);
	}
}

static size_t count_files(const struct skill_files *files)
{
	size_t n = 0;

	for (size_t i = 0; i < files->n; i++) {
		n += files->v[i].dir ? 0 : 1;
	}
	return n;
}

static void put_members(struct buf *out, struct skill_files *files, bool whole)
{
	struct json j;

	/* Write the members without braces around them: depth 1 means that an object is already
	 * open. */
	json_init(&j, out, false);
	j.depth = 1;
	if (whole) {
		digest_put(&j, "files_digest", files->tree);
	} else {
		json_kstr(&j, "files_digest", NULL);
	}
	json_kuint(&j, "count", count_files(files));
	json_kuint(&j, "bytes", files->bytes);
	json_kuint(&j, "cached", files->n_cached);
	if (!whole) {
		json_kbool(&j, "incomplete", true);
	}
	put_list(&j, files);
}

void files_line_members(int dir_fd, int state_fd, const volatile sig_atomic_t *stop_now,
                        struct buf *out)
{
	const struct files_wish wish = { .use = FILES_RECORD,
		                         .state_fd = state_fd,
		                         .stop = stop_now };
	AUTO(skill_files_done) struct skill_files files = { 0 };
	struct ssb_error why = { 0 };
	bool whole = skill_files_read(dir_fd, &wish, &files, &why) == 0;

	put_members(out, &files, whole);
}

void files_line_read(struct files_line *d, int dir_fd)
{
	const struct files_wish wish = { .use = FILES_RECORD_SMALL, .state_fd = -1 };
	AUTO(skill_files_done) struct skill_files files = { 0 };
	struct ssb_error why = { 0 };

	if (d->started || skill_files_read(dir_fd, &wish, &files, &why) != 0) {
		return;
	}
	buf_init(&d->members, FILES_LIST_BYTES + 1024);
	put_members(&d->members, &files, true);
	d->started = !d->members.failed;
	if (!d->started) {
		buf_done(&d->members);
	}
}

/* ---- the process ------------------------------------------------------------------ */

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

/* Closes all fds except `fds`, which become 3, 4 and 5. The last one may be -1 (without a state
 * directory there is no cache). The process must not keep any other fd of the run open: the socket
 * that shows the sandbox that its supervisor is running, the lock of the record, or the caller's
 * streams. */
static int keep_three(const int fds[3])
{
	int moved[3];
	int null = fcntl(open("/dev/null", O_RDWR | O_CLOEXEC), F_DUPFD_CLOEXEC, 6);

	for (int i = 0; i < 3; i++) {
		moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 6);
	}
	if (moved[0] < 0 || moved[1] < 0) {
		return -1;
	}
	for (int i = 0; i < 3; i++) {
		if (null < 0 || dup2(null, i) < 0 || (moved[i] >= 0 && dup2(moved[i], 3 + i) < 0)) {
			return -1;
		}
	}
	return close_range(moved[2] >= 0 ? 6 : 5, ~0U, 0);
}

static _Noreturn void child_main(int dir_fd, int out_fd, const char *state_dir, pid_t parent)
{
	const struct sigaction on = { .sa_handler = on_term };
	sigset_t others;
	auto_buf out;
	int state_fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int keep[3] = { dir_fd, out_fd, state_fd };

	if (keep_three(keep) != 0) {
		_exit(1);
	}
	(void)sigaction(SIGTERM, &on, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* Block all other signals, because they may have handlers of the program that called us. */
	sigfillset(&others);
	sigdelset(&others, SIGTERM);
	(void)sigprocmask(SIG_SETMASK, &others, NULL);
	if (getppid() != parent) {
		_exit(1);
	}
	(void)setpriority(PRIO_PROCESS, 0, PRIORITY);
	buf_init(&out, FILES_LIST_BYTES + 1024);
	files_line_members(3, 5, &stop, &out);
	_exit(out.failed || file_write_all(4, out.data, out.len) != 0);
}

void files_line_start(struct files_line *d, int dir_fd, const char *state_dir)
{
	int p[2];
	pid_t parent = getpid();

	assert(state_dir != NULL);
	if (d->started || pipe2(p, O_CLOEXEC) != 0) {
		return;
	}
	d->started = true;
	pid_t pid = clone_fork(&d->process);
	if (pid == 0) {
		child_main(dir_fd, p[1], state_dir, parent);
	}
	(void)close(p[1]);
	if (pid < 0) {
		(void)close(p[0]);
		return;
	}
	d->fd = p[0];
}

/* Waits until there is something to read (`events` POLLIN) or until the process ends (`events` 0).
 * Returns false if neither happens before `until_ms`. */
static bool wait_for(const struct files_line *d, short events, uint64_t until_ms)
{
	struct pollfd p = { .fd = d->fd, .events = events };
	int n;

	do {
		uint64_t now = clock_ms();
		n = poll(&p, 1, until_ms > now ? (int)(until_ms - now) : 0);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

bool files_line_finish(struct files_line *d, int wait_ms, struct buf *out)
{
	uint64_t now = clock_ms();
	int rest = wait_ms > 2 * LAST_WORDS_MS ? wait_ms - 2 * LAST_WORDS_MS : 0;
	/* `rest` leaves time for two waits of LAST_WORDS_MS: one here, and one in
	 * files_line_stop(). */
	uint64_t done = now + (uint64_t)rest + LAST_WORDS_MS;

	if (!d->started) {
		return false;
	}
	buf_add(out, d->members.data, d->members.len);
	if (d->process >= 0 && !wait_for(d, POLLIN, now + (uint64_t)rest)) {
		(void)pidfd_send_signal(d->process, SIGTERM, NULL, 0);
	}
	/* The process writes its whole answer right before it ends. */
	if (d->process >= 0 && wait_for(d, 0, done) && file_read_all(d->fd, out) != 0) {
		buf_reset(out);
	}
	files_line_stop(d);
	return true;
}

void files_line_stop(struct files_line *d)
{
	if (d->process >= 0) {
		(void)pidfd_send_signal(d->process, SIGKILL, NULL, 0);
		/* The run must not wait for a process that hangs in a file system that does not
		 * answer. */
		if (wait_for(d, 0, clock_ms() + LAST_WORDS_MS)) {
			clone_end(&d->process);
		}
	}
	own_close(&d->process);
	own_close(&d->fd);
	buf_done(&d->members);
	d->started = false;
}
