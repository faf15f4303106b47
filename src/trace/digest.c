#include "trace/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "trace/digest_walk.h"
#include "trace/trace_limits.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/clone.h"
#include "os/file.h"

#define PRIORITY      10
#define LAST_WORDS_MS 200 /* to say what is done by then; and to be gone */

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

/* Nothing of the run may live on in this process: not the socket by which the
 * sandbox knows that its supervisor lives, not the lock of the record, not the
 * caller's streams. What is needed becomes 3, 4 and 5, which there may be none
 * of: no state directory, nothing to remember. */
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

static _Noreturn void digest_main(int dir_fd, int out_fd, const char *state_dir, pid_t parent)
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
	/* The others may have handlers of our caller's. */
	sigfillset(&others);
	sigdelset(&others, SIGTERM);
	(void)sigprocmask(SIG_SETMASK, &others, NULL);
	if (getppid() != parent) {
		_exit(1);
	}
	(void)setpriority(PRIO_PROCESS, 0, PRIORITY);
	buf_init(&out, DIGEST_LIST_BYTES + 1024);
	digest_walk(3, 5, &stop, &out);
	_exit(out.failed || file_write_all(4, out.data, out.len) != 0);
}

void digest_start(struct digest *d, int dir_fd, const char *state_dir)
{
	int p[2];
	pid_t parent = getpid();

	if (d->started || pipe2(p, O_CLOEXEC) != 0) {
		return;
	}
	d->started = true;
	pid_t pid = clone_fork(&d->process);
	if (pid == 0) {
		digest_main(dir_fd, p[1], state_dir, parent);
	}
	(void)close(p[1]);
	if (pid < 0) {
		(void)close(p[0]);
		return;
	}
	d->fd = p[0];
}

/* Waits for something to read, or with `events` 0 for the other end to go. */
static bool waited(const struct digest *d, short events, uint64_t until_ms)
{
	struct pollfd p = { .fd = d->fd, .events = events };
	int n;

	do {
		uint64_t now = clock_ms();
		n = poll(&p, 1, until_ms > now ? (int)(until_ms - now) : 0);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

bool digest_finish(struct digest *d, int wait_ms, struct buf *out)
{
	uint64_t now = clock_ms();
	int rest = wait_ms > 2 * LAST_WORDS_MS ? wait_ms - 2 * LAST_WORDS_MS : 0;
	uint64_t done = now + (uint64_t)rest + LAST_WORDS_MS; /* and as much for its end */

	if (!d->started) {
		return false;
	}
	if (d->process >= 0 && !waited(d, POLLIN, now + (uint64_t)rest)) {
		(void)pidfd_send_signal(d->process, SIGTERM, NULL, 0);
	}
	/* It speaks once, at its end. */
	if (d->process >= 0 && waited(d, 0, done) && file_read_all(d->fd, out) != 0) {
		buf_reset(out);
	}
	digest_stop(d);
	return true;
}

void digest_stop(struct digest *d)
{
	if (d->process >= 0) {
		(void)pidfd_send_signal(d->process, SIGKILL, NULL, 0);
		/* One that hangs in a dead file system does not hold us up. */
		if (waited(d, 0, clock_ms() + LAST_WORDS_MS)) {
			clone_end(&d->process);
		}
	}
	own_close(&d->process);
	own_close(&d->fd);
	d->started = false;
}
