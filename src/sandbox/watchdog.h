/* watchdog.h - the memory limit where no control group is to be had.
 *
 * Runs inside init, PID 1 of the sandbox, on a timer: adds up what all
 * processes of the sandbox's pid namespace hold, and says whether it is past
 * the limit. What counts is what nothing can reclaim: anonymous memory by its
 * proportional share, page tables, and shared memory (tmpfs, memfd, shared anonymous
 * mappings) and what System V keeps (segments, semaphores, messages) once, mapped or not.
 * Cached file pages do not count.
 *
 * The processes are hostile: they fork, exit and exec under our eyes, make
 * themselves non-dumpable, hold thousands of fds. Therefore no heap, no
 * waiting, bounded work per check, and upper bounds wherever they can be had
 * without the look that failed. Where not, the check fails, and init ends the run.
 *
 * A process is looked at through a thread of it that lives, and through the
 * fd tables of all its threads: the first thread can end before the others,
 * and a thread can have a table of its own.
 *
 * What cannot be seen from here, and a control group does see (but for locks of files, which
 * nothing counts):
 *  - a memfd that nobody maps or holds, in flight in the queue of a socket
 *    (SCM_RIGHTS);
 *  - pages of a shared mapping without an fd that no process has in its page
 *    tables, as after MADV_DONTNEED: they are kept, but belong to nobody;
 *  - other memory of the kernel: buffers of sockets and pipes, locks of files, and the
 *    mappings themselves, of which /proc has no number.
 * A skill that hides memory so can pass the limit; rlimits (fds, processes)
 * and the machine's memory are what bounds it then. */
#ifndef SANDBOX_WATCHDOG_H
#define SANDBOX_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WATCHDOG_MAX_FDS      4096 /* looked at per check; the next one goes on there */
#define WATCHDOG_MAX_FILES    1024 /* distinct memfds; further ones may count twice */
#define WATCHDOG_MAX_MM       512  /* processes of which shared address spaces are known */
#define WATCHDOG_MAX_TIDS     512  /* threads of a process that are listed at a time */
#define WATCHDOG_MIN_MS       10
#define WATCHDOG_MAX_MS       200
#define WATCHDOG_BYTES_PER_MS (4ULL << 20) /* how fast memory can be filled: 4 GB/s */

struct watchdog_file {
	uint64_t dev;
	uint64_t ino; /* 0: free slot */
};

/* What one process adds, remembered to find address spaces counted twice. */
struct watchdog_mm {
	pid_t task;    /* a thread that lives */
	bool looked;   /* anon and shmem are shares, unless the look failed */
	uint64_t size; /* pages of address space */
	uint64_t tables;
	uint64_t anon; /* upper bounds at first; with the tables */
	uint64_t shmem;
};

/* About 40 kB: static or on the stack of init. */
struct watchdog {
	uint64_t limit;
	int proc_fd;    /* borrowed */
	int scratch_fd; /* borrowed, -1: none */
	pid_t self;
	uint64_t page;
	uint64_t scratch_dev; /* 0: none */
	uint64_t shm_dev;     /* where memfds and SysV segments live; 0: unknown */
	uint64_t shmem_start; /* shared memory of the machine at the beginning */
	uint64_t errors;      /* looks that failed although the process was there */
	int lost; /* errno of a look of this check that nothing stands in for; 0: none */

	uint64_t bound; /* of the last check */
	bool threads;   /* tables of threads could hold enough to matter */
	unsigned late;  /* measurements in a row that were cut short by waiting */

	/* Memfds are counted in rounds, which may span several checks. */
	bool round_open;
	pid_t round_pid; /* where an open round goes on */
	pid_t round_tid;
	int round_fd;
	unsigned round_left; /* fds that this check may still look at */
	uint64_t round_bytes;
	bool round_blind;
	uint64_t memfd_bytes; /* of the last complete round */
	bool blind;           /* of it: there was a table that did not open */

	unsigned n_files;
	unsigned n_mm;
	struct watchdog_file files[WATCHDOG_MAX_FILES]; /* from here on filled by each check */
	struct watchdog_mm mm[WATCHDOG_MAX_MM];
};

/* proc_fd: a directory fd of /proc of the caller's own pid namespace (caller
 * needs CAP_SYS_PTRACE over the processes for exact figures; without it upper
 * bounds are used). scratch_fd: any fd on the private tmpfs. */
void watchdog_init(struct watchdog *w, uint64_t limit_bytes, int proc_fd, int scratch_fd);

/* 1: past the limit; 0: fine; -1: something could not be counted, and errno says why
 * (counted in errors). What is gone counts for nothing; every other failure is blindness.
 * *ret_used is an upper bound while that is below the limit. Beyond, it is measured, or an upper
 * bound where that could not be done in time. It is the limit itself, and fine for now, where the
 * machine left no time for it.
 * *ret_next_ms says when to look again: before the headroom can be filled.
 * Both are set in every case. */
int watchdog_check(struct watchdog *w, uint64_t *ret_used, unsigned *ret_next_ms);

#endif
