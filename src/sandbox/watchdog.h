/* watchdog.h - the memory limit on machines where a run cannot have a control group.
 *
 * It runs inside init, PID 1 of the sandbox, on a timer: it adds up the memory of all processes of
 * the sandbox's pid namespace and reports whether the sum exceeds the limit. It counts memory that
 * the kernel cannot reclaim: anonymous memory by its proportional share, page tables, shared memory
 * (tmpfs, memfd, shared anonymous mappings) and System V objects (segments, semaphores, messages).
 * Shared memory and System V objects count once, whether they are mapped or not. Cached file pages
 * do not count.
 *
 * The processes are hostile: they fork, exit and exec during a measurement, make themselves
 * non-dumpable, and hold thousands of fds. Therefore the watchdog uses no heap, never waits and
 * does bounded work per check. If a measurement fails, an upper bound takes its place. If there is
 * no upper bound either, the check fails, and init ends the run.
 *
 * A process is examined through one of its live threads, and through the fd tables of all
 * its threads: the first thread can end before the others, and a thread can have a table of
 * its own.
 *
 * The watchdog cannot see the following memory. A control group counts it, except for locks of
 * files, which nothing counts:
 * - a memfd that no process maps or holds, in flight in the queue of a socket (SCM_RIGHTS);
 * - pages of a shared mapping without an fd that no process has in its page tables, as
 *   after MADV_DONTNEED: they are kept, but belong to no process;
 * - other memory of the kernel: buffers of sockets and pipes, locks of files, and the
 *   mappings themselves, for which /proc has no number. A skill that hides memory in this
 *   way can exceed the limit; rlimits (fds, processes) and the machine's memory then bound
 *   it. */
#ifndef SANDBOX_WATCHDOG_H
#define SANDBOX_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WATCHDOG_MAX_FDS      4096 /* how many fds one check examines at most */
#define WATCHDOG_MAX_FILES    1024 /* distinct memfds that are remembered; others may count twice */
#define WATCHDOG_MAX_MM       512  /* processes whose address spaces are compared */
#define WATCHDOG_MAX_TIDS     512  /* threads of a process that are listed at a time */
#define WATCHDOG_MIN_MS       10
#define WATCHDOG_MAX_MS       200
#define WATCHDOG_BYTES_PER_MS (4ULL << 20) /* how fast memory can be filled: 4 GB/s */

struct watchdog_file {
	uint64_t dev;
	uint64_t ino; /* 0: free slot */
};

/* The memory of one process, kept to find address spaces that were counted twice. */
struct watchdog_mm {
	pid_t task; /* a live thread */
	/* measuring `anon` and `shmem` as proportional shares was tried; if it failed, they are
	 * still upper bounds */
	bool looked;
	uint64_t size; /* pages of address space */
	uint64_t tables;
	uint64_t anon; /* includes `tables`; `anon` and `shmem` are upper bounds until `looked` */
	uint64_t shmem;
};

/* About 40 kB: static, or on the stack of init. */
struct watchdog {
	uint64_t limit;
	int proc_fd;    /* borrowed */
	int scratch_fd; /* borrowed, -1: none */
	pid_t self;
	/* processes of our own, which do not count; 0: none. Set it to 0 before the pid can be
	 * reused. They cannot be examined either. */
	pid_t anchors[2];
	uint64_t page;
	uint64_t scratch_dev; /* 0: none */
	uint64_t shm_dev;     /* the device of memfds and SysV segments; 0: unknown */
	uint64_t shmem_start; /* shared memory of the machine at the start */
	uint64_t errors;      /* how many reads failed although the process still existed */
	int lost; /* errno of a read in this check that failed and for which there is no upper
	             bound; 0: none */

	uint64_t bound; /* upper bound of the memory at the last check */
	uint64_t tasks; /* most processes and threads that one walk has found, without init */
	/* examine single threads, too: their fd tables could hide enough memory to exceed the
	 * limit */
	bool threads;
	unsigned late; /* how many checks in a row ran out of time because init had to wait */

	/* Memfds are counted in rounds, which may span several checks. */
	bool round_open;
	pid_t round_pid; /* where an open round continues */
	pid_t round_tid;
	int round_fd;
	unsigned round_left; /* fds that this check may still examine */
	uint64_t round_bytes;
	bool round_blind;
	uint64_t memfd_bytes; /* result of the last complete round */
	bool blind;           /* in the last complete round, an fd table could not be opened */

	unsigned n_files;
	unsigned n_mm;
	struct watchdog_file files[WATCHDOG_MAX_FILES]; /* `files` and `mm` are filled by the
	                                                   checks */
	struct watchdog_mm mm[WATCHDOG_MAX_MM];
};

/* proc_fd: a directory fd of /proc of the caller's own pid namespace. The caller needs
 * CAP_SYS_PTRACE over the processes for exact figures; without it upper bounds are used.
 * scratch_fd: any fd on the private tmpfs. */
void watchdog_init(struct watchdog *w, uint64_t limit_bytes, int proc_fd, int scratch_fd);

/* Returns 1 if the limit is exceeded, 0 if it is not, and -1 with errno if some memory could not be
 * counted (w->errors counts such failures). A process or file that is gone counts as 0. *ret_used
 * is an upper bound as long as that is below the limit. Above the limit it is a measured value, or
 * an upper bound if the time budget was too short. If the machine left no time for a measurement,
 * *ret_used is the limit and the result is 0. *ret_next_ms is the time until the next check, which
 * must come before the rest of the limit can be filled. Both are set in every case. */
int watchdog_check(struct watchdog *w, uint64_t *ret_used, unsigned *ret_next_ms);

/* Counts the processes and threads (w->tasks); a process that has just been reaped is one of
 * `beside`. watchdog_check() does it, too. */
void watchdog_count(struct watchdog *w, uint64_t beside);

#endif
