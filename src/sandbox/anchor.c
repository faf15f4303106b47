/* anchor.c - lets the programs on the skill's terminal stop at Ctrl-Z.
 *
 * The kernel ignores Ctrl-Z in an orphaned process group: a group in which no process has a parent
 * that is in the same session and in another group. The group of the skill's first process is
 * orphaned, because init is in another session. So two processes are added that do nothing:
 *
 *   session of the skill:  group of the skill     group of the first anchor
 *                          skill                  anchor 1 (child of init)
 *                          anchor 2, its parent is anchor 1
 *
 * Neither is a child of the skill, which could wait for its children. They have no open file, block
 * every signal, cannot be traced, and have the filter of init. They are outside the skill's cgroup.
 * If the skill kills them, Ctrl-Z has no effect, and nothing else changes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own.h"
#include "os/seccomp.h"
#include "sandbox/stage.h"

static pid_t clone_anchor(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags, 0UL, 0UL, 0UL, 0UL);
}

static _Noreturn void keep_anchor(pid_t group)
{
	struct ssb_error none = { 0 };

	(void)prctl(PR_SET_NAME, "terminal-anchor");
	if (setpgid(0, group) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ||
	    close_range(0, ~0U, 0) != 0 || seccomp_load_init(&none) != 0) {
		_exit(1);
	}
	for (;;) {
		(void)poll(NULL, 0, -1);
	}
}

static _Noreturn void keep_first(pid_t skill, int to)
{
	pid_t second = clone_anchor(SIGCHLD);

	if (second == 0) {
		keep_anchor(skill);
	}
	(void)!write(to, &second, sizeof(second));
	keep_anchor(0);
}

/* Waits until both anchors are in their groups: they close the pipe after that. Without them the
 * skill still runs, but Ctrl-Z has no effect. Init learns their pids, because its watchdog cannot
 * read their memory. The first anchor never waits for the second, and init reaps the first, so init
 * knows when a pid can be reused. */
int anchor_start(struct stage *s, struct ssb_error *err)
{
	pid_t skill = getpid(), pids[2] = { 0, 0 };
	sigset_t all, before;
	char none;
	int p[2];

	if (!s->config->pty) {
		return 0;
	}
	if (pipe2(p, O_CLOEXEC) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "pty", "cannot make a pipe");
	}
	auto_fd from = p[0], to = p[1];
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pids[0] = clone_anchor(CLONE_PARENT);
	if (pids[0] == 0) {
		keep_first(skill, to);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	own_close(&to);
	(void)!TEMP_FAILURE_RETRY(read(from, &pids[1], sizeof(pids[1])));
	(void)!TEMP_FAILURE_RETRY(read(from, &none, 1));
	return write(s->meet, pids, sizeof(pids)) != (ssize_t)sizeof(pids)
	               ? ssb_fail(err, SSB_E_SYS, errno, "pty", "init ended early")
	               : 0;
}
