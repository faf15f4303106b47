/* init.c - PID 1 of the sandbox once the skill runs.
 *
 * It holds the control socket, /proc, the private tmpfs and nothing else: no
 * environment, no capability but (without cgroups) the one that lets it read
 * how much memory the sandbox uses, a filter of its own, and it is not
 * dumpable, so that the skill sees nothing through /proc/1. When it exits, for
 * any reason, the kernel ends every process of the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/caps.h"
#include "os/clock.h"
#include "os/clone.h"
#include "os/seccomp.h"
#include "sandbox/fallback.h"
#include "sandbox/stage.h"
#include "sandbox/watchdog.h"

/* Most runs are over before there is anything to look at. */
#define FIRST_LOOK_MS 20

/* What init holds besides the stage. */
static struct {
	int sig_fd;
	struct watchdog dog;
} init;

/* Moves the fds that stay to 0, 1, 2, ... and closes all others. */
static int init_keep_fds(int *fds[], int n)
{
	for (int i = 0; i < n; i++) {
		if (*fds[i] >= 0 && (*fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, n)) < 0) {
			return -1;
		}
	}
	for (int i = 0; i < n; i++) {
		if (*fds[i] < 0) {
			(void)close(i);
		} else if ((*fds[i] = dup2(*fds[i], i)) < 0) {
			return -1;
		}
	}
	return close_range((unsigned)n, ~0U, 0);
}

int init_confine(struct stage *s, int *meet, struct ssb_error *err)
{
	sigset_t chld;
	/* Without a pid namespace it would count the whole host. */
	int proc_fd = s->namespaces ? open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (s->namespaces && proc_fd < 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "limits", "the watchdog cannot see /proc");
	}
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	init.sig_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (init.sig_fd < 0 ||
	    init_keep_fds((int *[]){ &s->ctl, &init.sig_fd, meet, &proc_fd, &s->scratch }, 5) !=
	            0) {
		return ssb_fail(err, SSB_E_SYS, errno, "init", "cannot arrange the fds");
	}
	watchdog_init(&init.dog, s->plan->res.memory_mb << 20, proc_fd, s->scratch);
	/* Only with the right to look may the watchdog see every process. */
	if ((s->namespaces && caps_drop(1ULL << CAP_SYS_PTRACE) != 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "init", "cannot drop its privileges");
	}
	return seccomp_load_init(err);
}

int init_unwatched(struct stage *s)
{
	own_close(&init.dog.proc_fd);
	own_close(&s->scratch);
	return s->namespaces ? caps_set(0) : 0;
}

/* As PID 1 our own end is the end of all; otherwise it takes work. */
static void init_end_others(const struct stage *s)
{
	if (!s->namespaces) {
		fallback_end_all();
	}
}

static _Noreturn void init_end(const struct stage *s, int wstatus, enum end_cause cause,
                               uint64_t memory)
{
	struct msg m = { .kind = MSG_ENDED };

	m.ended.wstatus = wstatus;
	m.ended.cause = cause;
	m.ended.memory = memory;
	init_end_others(s);
	(void)!write(s->ctl, &m, sizeof(m));
	_exit(0);
}

/* Reaps what has ended; returns when the skill's first process has not. */
static void init_reap(const struct stage *s, pid_t skill)
{
	int wstatus;
	pid_t pid;

	while ((pid = waitpid(-1, &wstatus, WNOHANG)) > 0) {
		if (pid == skill && (WIFEXITED(wstatus) || WIFSIGNALED(wstatus))) {
			init_end(s, wstatus, CAUSE_EXIT, 0);
		}
	}
}

/* The supervisor spoke, or is gone. */
static void init_hear(const struct stage *s, pid_t skill)
{
	struct msg m;
	ssize_t n = read(s->ctl, &m, sizeof(m));

	if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
		return;
	}
	if (n != (ssize_t)sizeof(m)) {
		init_end_others(s);
		_exit(0);
	}
	if (m.kind == MSG_SIGNAL) {
		(void)kill(-skill, m.signal);
	}
}

/* One look at the memory; returns when the next one is due, in ms. */
static unsigned init_look(const struct stage *s)
{
	uint64_t used = 0;
	unsigned pause = FIRST_LOOK_MS;
	struct ssb_error err = { 0 };

	switch (watchdog_check(&init.dog, &used, &pause)) {
	case 0:
		return pause;
	case 1:
		init_end(s, 0, CAUSE_MEMORY, used);
	default:
		/* Blind: no limit would hold. */
		ssb_fail(&err, SSB_E_LAYER, errno, "limits", "the watchdog cannot read /proc");
		init_end_others(s);
		stage_die(s, &err);
	}
}

static int poll_ms(uint64_t ms)
{
	return ms < 1000000 ? (int)ms : 1000000;
}

_Noreturn void init_main(struct stage *s, pid_t skill)
{
	init_reap(s, skill); /* it may have ended before we listened */
	uint64_t deadline = clock_ms() + s->plan->res.max_runtime_seconds * 1000;
	uint64_t look_at = s->watchdog ? clock_ms() + FIRST_LOOK_MS : deadline;

	for (;;) {
		struct pollfd p[2] = { { s->ctl, POLLIN, 0 }, { init.sig_fd, POLLIN, 0 } };
		uint64_t next = look_at < deadline ? look_at : deadline;
		uint64_t now = clock_ms();

		(void)poll(p, 2, now < next ? poll_ms(next - now) : 0);
		if (p[1].revents != 0) {
			struct signalfd_siginfo drop;
			(void)!read(init.sig_fd, &drop, sizeof(drop));
			init_reap(s, skill);
		}
		if (p[0].revents != 0) {
			init_hear(s, skill);
		}
		now = clock_ms();
		if (now >= deadline) {
			init_end(s, 0, CAUSE_TIME, 0);
		}
		if (now >= look_at) {
			look_at = now + init_look(s);
		}
	}
}
