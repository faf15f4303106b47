/* init.c - PID 1 of the sandbox while the skill runs.
 *
 * Its only open files are the control socket, the socket to the skill's process, a signalfd, /proc,
 * the private tmpfs and, in a governed run, the freezer's file. It has no environment, and its own
 * system call filter. It has no capability or, without cgroups, only the one to read how much
 * memory the sandbox uses. It is not dumpable, so that /proc/1 shows the skill nothing. When it
 * exits, for any reason, the kernel ends every process of the sandbox. */
#include <assert.h>
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
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/clone.h"
#include "os/file.h"
#include "os/seccomp.h"
#include "sandbox/fallback.h"
#include "sandbox/stage.h"
#include "sandbox/still.h"
#include "sandbox/watchdog.h"

/* When the first memory check takes place. Most runs are over by then, and need no check. */
#define FIRST_LOOK_MS 20

/* The time between two looks whether the private tmpfs is full, unless the memory checks look. */
#define DISK_LOOK_MS 1000

/* Limits for a pause by signals. STILL_LOOK_MS: the interval between two checks for running
 * processes. STILL_STRIKES: how many checks may find a running process after all had stopped.
 * STILL_MS: how long it may take until all have stopped. */
#define STILL_LOOK_MS 20
#define STILL_STRIKES 10
#define STILL_MS      10000

/* Init's own state, in addition to struct stage. */
static struct {
	int sig_fd;
	int thaw_fd; /* -1: only signals can stop processes */
	struct watchdog dog;
	uint64_t deadline;
	uint64_t look_at; /* time of the next memory check; 0: never */
	uint64_t disk_at; /* time of the next look at the private tmpfs; 0: never */
	bool disk_full;   /* it was full at some look */

	bool paused; /* the run is paused: the clock of the time limit is stopped */
	uint64_t paused_ms;
	uint64_t still_at; /* time of the next check for running processes; 0: not checked, the
	                      freezer keeps them stopped */
	uint32_t number;   /* number of the current pause */
	unsigned quiet;    /* how many checks in a row found every process stopped */
	unsigned strikes;  /* how many checks found a running process after all had stopped */
	bool told;         /* MSG_STANDS was sent */
} init = { .thaw_fd = -1 };

/* Moves the `n` fds to 0, 1, 2, ... in the order of `fds` and closes all others. An fd of -1 leaves
 * its number closed. */
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

int init_confine(struct stage *s, struct ssb_error *err)
{
	sigset_t chld;
	int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (proc_fd < 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "limits", "init cannot open /proc");
	}
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	init.sig_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (init.sig_fd < 0 ||
	    init_keep_fds((int *[]){ &s->ctl, &init.sig_fd, &s->meet, &proc_fd, &s->scratch }, 5) !=
	            0) {
		return ssb_fail(err, SSB_E_SYS, errno, "init", "cannot renumber the open files");
	}
	watchdog_init(&init.dog, s->config->plan->res.memory_mb << 20, proc_fd, s->scratch);
	/* Keep CAP_SYS_PTRACE: without it the watchdog cannot read every process. */
	if ((s->config->namespaces && caps_drop(1ULL << CAP_SYS_PTRACE) != 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return ssb_fail(err, SSB_E_LAYER, errno, "init", "cannot drop its privileges");
	}
	return seccomp_load_init(err);
}

int init_end_watch(struct stage *s)
{
	return s->config->namespaces ? caps_set(0) : 0;
}

void init_keep_thaw(int fd)
{
	init.thaw_fd = fd;
}

void init_know_anchors(const pid_t pids[2])
{
	memcpy(init.dog.anchors, pids, sizeof(init.dog.anchors));
}

/* Ends all other processes of the sandbox. With a pid namespace, the exit of PID 1 does that;
 * without one, each process must be found and killed. A metered run waits for each process, so that
 * its CPU time is counted. A frozen process cannot die, so the processes are thawed, but only after
 * SIGKILL, so that they cannot run. Returns false if some survive. */
static bool init_end_others(const struct stage *s)
{
	bool ended = true;

	if (s->config->governed) {
		still_signal(&init.dog, s->config->namespaces, SIGKILL);
	}
	if (init.thaw_fd >= 0) {
		cgroup_thaw(init.thaw_fd);
	}
	if (!s->config->namespaces) {
		ended = fallback_end_all();
	}
	while (ended && s->config->governed && (waitpid(-1, NULL, 0) > 0 || errno == EINTR)) {
	}
	return ended;
}

static void init_look_at_disk(const struct stage *s)
{
	init.disk_full = init.disk_full || file_system_full(s->scratch);
}

static _Noreturn void init_end(const struct stage *s, int wstatus, enum end_cause cause,
                               uint64_t memory)
{
	struct msg m = { .kind = MSG_ENDED };

	m.ended.wstatus = wstatus;
	m.ended.cause = cause;
	m.ended.memory = memory;
	init_look_at_disk(s);
	m.ended.disk_full = init.disk_full;
	if (s->watchdog) {
		watchdog_count(&init.dog, cause == CAUSE_EXIT);
	}
	m.ended.tasks = init.dog.tasks;
	m.ended.left = !init_end_others(s);
	(void)!write(s->ctl, &m, sizeof(m));
	_exit(0);
}

/* Reaps the processes that have ended. If the skill's first process is one of them, ends the run
 * and does not return. If that process has stopped itself on a terminal, as after Ctrl-Z, tells the
 * supervisor. A pause stops it, too: a stop is not asked for until the pause is over. */
static void init_reap(const struct stage *s, pid_t skill)
{
	const struct msg stopped = { .kind = MSG_STOPPED };
	int stops = s->config->pty && !init.paused ? WUNTRACED : 0;
	int wstatus;
	pid_t pid;

	while ((pid = waitpid(-1, &wstatus, WNOHANG | stops)) > 0) {
		for (size_t i = 0; i < ARRAY_LEN(init.dog.anchors) && !WIFSTOPPED(wstatus); i++) {
			if (pid == init.dog.anchors[i]) {
				init.dog.anchors[i] =
				        0; /* a process of the skill may get this pid */
			}
		}
		if (pid == skill && WIFSTOPPED(wstatus)) {
			(void)!write(s->ctl, &stopped, sizeof(stopped));
		} else if (pid == skill && (WIFEXITED(wstatus) || WIFSIGNALED(wstatus))) {
			init_end(s, wstatus, CAUSE_EXIT, 0);
		}
	}
}

static void init_pause(const struct stage *s, const struct msg *m)
{
	init.paused = true;
	init.paused_ms = clock_ms();
	init.number = m->pause.number;
	init.quiet = init.strikes = 0;
	init.told = false;
	if (m->pause.by_signals) {
		still_signal(&init.dog, s->config->namespaces, SIGSTOP);
		init.still_at = init.paused_ms;
	}
}

static void init_resume(const struct stage *s)
{
	if (!init.paused) {
		return;
	}
	init.deadline += clock_ms() - init.paused_ms;
	init.paused = false;
	if (init.still_at != 0) {
		still_signal(&init.dog, s->config->namespaces, SIGCONT);
		init.still_at = 0;
	}
}

/* Checks once for running processes, and stops them again. Only a process that has set a timer to
 * send it SIGCONT can run again and again, and no harmless program does that. So after
 * STILL_STRIKES checks that find a running process, the run is ended. */
static void init_keep_still(const struct stage *s)
{
	struct msg m = { .kind = MSG_STANDS, .pause.number = init.number };
	uint64_t start = clock_ms();
	bool moving = still_moving(&init.dog, s->config->namespaces);

	if (moving) {
		still_signal(&init.dog, s->config->namespaces, SIGSTOP);
		init.strikes += init.told;
	}
	init.quiet = moving ? 0 : init.quiet + 1;
	uint64_t now = clock_ms();
	if (init.strikes > STILL_STRIKES || (!init.told && now - init.paused_ms > STILL_MS)) {
		init_end(s, 0, CAUSE_RESTLESS, 0);
	}
	if (!init.told && init.quiet >= 2) {
		init.told = true;
		(void)!write(s->ctl, &m, sizeof(m));
	}
	init.still_at = now + (init.told ? STILL_LOOK_MS : 1) + 3 * (now - start);
}

/* Reads one message of the supervisor and does what it asks. If the supervisor has closed its
 * socket, ends the sandbox. */
static void init_hear(const struct stage *s, pid_t skill)
{
	struct msg m;
	ssize_t n = read(s->ctl, &m, sizeof(m));

	if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
		return;
	}
	if (n != (ssize_t)sizeof(m)) {
		(void)init_end_others(s);
		_exit(0);
	}
	switch (m.kind) {
	case MSG_SIGNAL:
		(void)kill(-skill, m.signal);
		if (m.signal == SIGCONT) {
			m.kind = MSG_CONTINUED;
			(void)!write(s->ctl, &m, sizeof(m));
		}
		break;
	case MSG_TERM:
		still_signal(&init.dog, s->config->namespaces, SIGTERM);
		break;
	case MSG_PAUSE:
		init_pause(s, &m);
		break;
	case MSG_RESUME:
		init_resume(s);
		init_reap(s, skill); /* it may have stopped itself during the pause */
		break;
	default:
		break;
	}
}

/* Measures the memory once and ends the run if it exceeds the limit. Returns the time until the
 * next check in ms. */
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
		/* The run must end: without a measurement the limit would not be enforced. */
		ssb_fail(&err, SSB_E_LAYER, errno, "limits",
		         "the skill's memory can no longer be measured, so the run was "
		         "ended; a control group would always measure it (see 'skillsandbox "
		         "doctor')");
		(void)init_end_others(s);
		stage_die(s, &err);
	}
}

/* Does the work that is due now. */
static void init_keep_time(const struct stage *s)
{
	uint64_t now = clock_ms();

	if (!init.paused && now >= init.deadline) {
		init_end(s, 0, CAUSE_TIME, 0);
	}
	if (init.look_at != 0 && now >= init.look_at) {
		init.look_at = now + init_look(s);
		init_look_at_disk(s);
	}
	if (init.disk_at != 0 && now >= init.disk_at) {
		init_look_at_disk(s);
		init.disk_at = init.disk_full ? 0 : now + DISK_LOOK_MS;
	}
	if (init.still_at != 0 && now >= init.still_at) {
		init_keep_still(s);
	}
}

static int init_rest_ms(void)
{
	const uint64_t times[] = { init.paused ? 0 : init.deadline, init.look_at, init.disk_at,
		                   init.still_at };
	uint64_t now = clock_ms();
	uint64_t next = now + 1000000;

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		next = times[i] != 0 && times[i] < next ? times[i] : next;
	}
	return next > now ? (int)(next - now) : 0;
}

_Noreturn void init_main(struct stage *s, pid_t skill)
{
	assert(skill > 0 && s->meet >= 0);
	init_reap(s, skill); /* the skill may have ended before the signalfd existed */
	init.deadline = run_deadline(s->config->max_seconds);
	init.look_at = s->watchdog ? clock_ms() + FIRST_LOOK_MS : 0;
	init.disk_at = s->watchdog || s->scratch < 0 ? 0 : clock_ms() + DISK_LOOK_MS;

	for (;;) {
		struct pollfd p[2] = { { s->ctl, POLLIN, 0 }, { init.sig_fd, POLLIN, 0 } };

		(void)poll(p, 2, init_rest_ms());
		if (p[1].revents != 0) {
			struct signalfd_siginfo drop;
			(void)!read(init.sig_fd, &drop, sizeof(drop));
			init_reap(s, skill);
		}
		if (p[0].revents != 0) {
			init_hear(s, skill);
		}
		init_keep_time(s);
	}
}
