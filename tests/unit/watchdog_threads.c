/* watchdog_threads.c - workers whose memory is visible only in one of their threads: the first
 * thread has ended, or a thread has its own fd table. */
#include "watchdog_workers.h"

#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK  (256 * 1024)
#define THREAD (CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static int (*work)(void);

static int start(int (*body)(void *), int flags)
{
	char *stack = map(STACK, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	return stack == NULL || clone(body, stack + STACK, THREAD | flags, NULL) < 0 ? -1 : 0;
}

static int rest(void *arg)
{
	while (pause() < 0) { /* for ever */
	}
	return 0;
}

static int work_and_rest(void *arg)
{
	usleep(50000); /* gives the first thread time to end */
	(void)!write(ready_fd, work() == 0 ? "0" : "1", 1);
	return rest(arg);
}

static int non_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* ---- the first thread has ended ------------------------------------------- */

/* Starts body() in a second thread, then ends the first thread but not the process. */
static int leave_to(int (*body)(void *), int (*what)(void))
{
	work = what;
	if (start(body, CLONE_FILES) == 0) {
		syscall(SYS_exit, 0);
	}
	return -1;
}

int leader_gone_fits(void)
{
	return leave_to(work_and_rest, anon_fits);
}

int leader_gone_anon(void)
{
	return leave_to(work_and_rest, anon_big);
}

int leader_gone_memfd(void)
{
	return leave_to(work_and_rest, memfd_big);
}

int leader_gone_memfd_mapped(void)
{
	return leave_to(work_and_rest, memfd_mapped);
}

int leader_gone_anon_non_dumpable(void)
{
	return non_dumpable() + leader_gone_anon();
}

int leader_gone_memfd_non_dumpable(void)
{
	return non_dumpable() + leader_gone_memfd();
}

/* Each thread starts the next thread, and then ends. */
static int relay(void *arg)
{
	static char *stacks[8];
	static unsigned turn;
	static bool told;

	if (!told) {
		told = true;
		for (int i = 0; i < 8; i++) {
			stacks[i] = map(STACK, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		}
		(void)!write(ready_fd, anon_big() == 0 ? "0" : "1", 1);
	}
	usleep(200);
	char *stack = stacks[turn++ % 8];
	return clone(relay, stack + STACK, THREAD | CLONE_FILES, NULL) < 0;
}

int leader_gone_relay(void)
{
	return leave_to(relay, NULL);
}

/* ---- a thread with its own fd table ---------------------------------------- */

/* Does not report that the worker is set up: the thread does that. */
static int in_own_table(int (*what)(void))
{
	work = what;
	return start(work_and_rest, 0) < 0 ? -1 : rest(NULL);
}

int own_table_fits(void)
{
	return memfd_fits() < 0 ? -1 : in_own_table(idle);
}

int own_table_memfd(void)
{
	return in_own_table(memfd_big);
}

/* The first thread's memory and the memfd in the other thread's fd table: each of them fits, but
 * both together are too much. */
int own_table_and_anon(void)
{
	return anon_fits() < 0 ? -1 : in_own_table(memfd_fits);
}

int own_table_memfd_non_dumpable(void)
{
	return non_dumpable() + own_table_memfd();
}

/* Hundreds of threads share one fd table, and one thread has its own. */
int own_table_of_many(void)
{
	for (int i = 0; i < 300; i++) {
		if (start(rest, CLONE_FILES) < 0) {
			return -1;
		}
	}
	return own_table_memfd();
}

static int dup_and_rest(void *arg)
{
	for (int i = 0; i < 900; i++) {
		(void)!dup(0);
	}
	return rest(arg);
}

/* The memfd is open in the last of many fd tables. The tables before it have more fds than one
 * check reads. */
int own_tables_with_many_fds(void)
{
	for (int i = 0; i < 12; i++) {
		if (start(dup_and_rest, 0) < 0) {
			return -1;
		}
	}
	usleep(50000);
	return own_table_memfd();
}

/* The control: ordinary threads share one fd table, and the memfd in it fits. */
int threads_fits(void)
{
	for (int i = 0; i < 300; i++) {
		if (start(rest, CLONE_FILES) < 0) {
			return -1;
		}
	}
	return memfd_mapped();
}
