/* watchdog_memory.c - workers that use memory of every kind. */
#include "watchdog_workers.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void fill(char *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096) {
		p[i] = 1;
	}
}

char *map(size_t bytes, int flags, int fd)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int memory(size_t bytes, int flags)
{
	char *p = map(bytes, flags | MAP_ANONYMOUS, -1);

	if (p == NULL) {
		return -1;
	}
	fill(p, bytes);
	return 0;
}

/* Forks `n` children, which share all memory with this process. */
static int multiply_by(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid < 0) {
			return -1;
		}
		if (pid == 0) {
			pause();
			_exit(0);
		}
	}
	return 0;
}

static int multiply(void)
{
	return multiply_by(4);
}

/* Gives the file a size of `bytes` in memory, without mapping it. Returns fd, or -1 if that
 * failed. */
static int filled_fd(int fd, size_t bytes)
{
	return fd >= 0 && fallocate(fd, 0, 0, (off_t)bytes) == 0 ? fd : -1;
}

static int filled_memfd(size_t bytes)
{
	return filled_fd(memfd_create("x", 0), bytes);
}

int idle(void)
{
	return 0;
}

int anon_fits(void)
{
	return memory(FITS, MAP_PRIVATE);
}

int anon_big(void)
{
	return memory(BIG, MAP_PRIVATE);
}

int anon_cow(void)
{
	return memory(FITS, MAP_PRIVATE) + multiply();
}

/* The resident sizes of these processes add up to 3 GB (most of it is shared), so a check takes
 * long. */
int anon_cow_pool(void)
{
	return memory(FITS, MAP_PRIVATE) + multiply_by(48);
}

/* A pool of large processes that share memory, and small processes that have too much memory
 * together. A check reads the small ones last. */
int anon_behind_pool(void)
{
	for (int i = 0; i < 8; i++) {
		if (fork() == 0) {
			(void)memory(BIG / 8, MAP_PRIVATE);
			pause();
			_exit(0);
		}
	}
	return anon_cow_pool();
}

int anon_cow_written(void)
{
	char *p = map(FITS, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (p == NULL) {
		return -1;
	}
	fill(p, FITS);
	pid_t pid = fork();
	fill(p, FITS); /* both processes write, so the memory exists twice */
	if (pid == 0) {
		pause();
		_exit(0);
	}
	usleep(200000);
	return 0;
}

int shared_anon_fits(void)
{
	return memory(FITS, MAP_SHARED) + multiply();
}

int shared_anon_big(void)
{
	return memory(BIG, MAP_SHARED) + multiply();
}

int memfd_fits(void)
{
	return filled_memfd(FITS) < 0 ? -1 : multiply();
}

int memfd_big(void)
{
	return filled_memfd(BIG) < 0 ? -1 : 0;
}

int memfd_two(void)
{
	return filled_memfd(FITS) < 0 || filled_memfd(FITS) < 0 ? -1 : 0;
}

/* A memfd that is mapped, and also open as an fd: /proc shows its memory twice, but it must count
 * once. */
int memfd_mapped(void)
{
	int fd = filled_memfd(FITS);
	char *p = fd < 0 ? NULL : map(FITS, MAP_SHARED, fd);

	if (p == NULL) {
		return -1;
	}
	fill(p, FITS);
	return multiply();
}

/* A memfd and a shared mapping of the same size: each of them fits, but both together are too
 * much. */
int memfd_beside_shared(void)
{
	return memfd_mapped() + memory(FITS, MAP_SHARED);
}

int memfd_mapped_and_closed(void)
{
	int fd = filled_memfd(BIG);
	char *p = fd < 0 ? NULL : map(BIG, MAP_SHARED, fd);

	if (p == NULL) {
		return -1;
	}
	fill(p, BIG);
	return close(fd);
}

int memfd_non_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) + memfd_big();
}

int memfd_fits_non_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) + memfd_fits();
}

int anon_non_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) + anon_big();
}

/* The memfd is open in the process that is checked last. The processes before it have more fds than
 * one check reads. */
int memfd_behind_many(void)
{
	for (int k = 0; k < 6; k++) {
		pid_t pid = fork();
		for (int i = 0; pid == 0 && i < 950; i++) {
			(void)!dup(0);
		}
		if (pid == 0) {
			pause();
			_exit(0);
		}
	}
	usleep(100000);
	pid_t pid = fork(); /* this child gets the highest pid */
	if (pid == 0) {
		for (int i = 0; i < 950; i++) {
			(void)!dup(0);
		}
		(void)filled_memfd(BIG);
		pause();
		_exit(0);
	}
	usleep(200000);
	return pid < 0 ? -1 : 0;
}

static int scratch_file(size_t bytes, bool mapped)
{
	int fd = filled_fd(open("/tmp/f", O_RDWR | O_CREAT | O_CLOEXEC, 0600), bytes);
	char *p = fd >= 0 && mapped ? map(bytes, MAP_SHARED, fd) : NULL;

	(void)unlink("/tmp/f");
	if (fd < 0 || (mapped && p == NULL)) {
		return -1;
	}
	if (p != NULL) {
		fill(p, bytes);
	}
	return 0;
}

int scratch_big(void)
{
	return scratch_file(BIG, false);
}

int scratch_mapped(void)
{
	return scratch_file(FITS, true);
}

static int sysv(size_t bytes, bool removed)
{
	int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
	char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

	if (p == (char *)-1) {
		return -1;
	}
	fill(p, bytes);
	return removed ? shmctl(id, IPC_RMID, NULL) : shmdt(p);
}

int sysv_fits(void)
{
	return sysv(FITS, true);
}

int sysv_detached(void)
{
	return sysv(BIG, false);
}

int semaphores(void)
{
	enum { PER_SET = 32000 };

	for (size_t have = 0; have < BIG; have += PER_SET * 64UL) {
		if (semget(IPC_PRIVATE, PER_SET, IPC_CREAT | 0600) < 0) {
			return -1;
		}
	}
	return 0;
}

/* Messages of one byte each: most of the memory is in their headers in the kernel. */
int messages(void)
{
	const struct {
		long type;
		char text[1];
	} m = { 1, "x" };

	for (size_t have = 0; have < BIG;) {
		int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
		if (id < 0) {
			return -1;
		}
		for (; have < BIG && msgsnd(id, &m, 1, IPC_NOWAIT) == 0; have += 64) {
		}
	}
	return 0;
}

/* Maps only the zero page, but at so many addresses that the page tables use `bytes`. */
static int tables(size_t bytes)
{
	const size_t step = 2 * MIB;
	size_t size = bytes / 4096 * step;
	char *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	volatile char sum = 0;

	if (p == MAP_FAILED || madvise(p, size, MADV_NOHUGEPAGE) != 0) {
		return -1;
	}
	for (size_t i = 0; i < size; i += step) {
		sum = (char)(sum + p[i]);
	}
	return 0;
}

int tables_fit(void)
{
	return tables(FITS);
}

int tables_big(void)
{
	return tables(BIG);
}

/* Mapped pages of a file on disk do not count, because the kernel can free them at any time. */
int file_pages(void)
{
	char path[] = "/var/tmp/ssb-test-XXXXXX";
	int fd = mkstemp(path);
	char *p = NULL;

	(void)unlink(path);
	for (size_t i = 0; fd >= 0 && i < BIG / MIB; i++) {
		static char block[MIB];
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block)) {
			return -1;
		}
	}
	p = fd < 0 ? NULL : mmap(NULL, BIG, PROT_READ, MAP_SHARED, fd, 0);
	if (p == NULL || p == MAP_FAILED) {
		return -1;
	}
	volatile char sum = 0;
	for (size_t i = 0; i < BIG; i += 4096) {
		sum = (char)(sum + p[i]);
	}
	return 0;
}

int ready_fd;

/* Between vfork() and exec, parent and child have the same memory: it must count once. */
int vforked(void)
{
	if (anon_fits() < 0) {
		return -1;
	}
	pid_t pid = vfork();
	if (pid == 0) {
		(void)!write(ready_fd, "0", 1);
		(void)syscall(SYS_pause);
		_exit(0);
	}
	return -1; /* reached only when the child has ended */
}

/* Processes that start and end so fast that a check cannot read them. */
int churn(void)
{
	for (int k = 0; k < 3; k++) {
		pid_t pid = fork();
		while (pid == 0) {
			pid_t child = fork();
			if (child == 0) {
				_exit(0);
			}
			waitpid(child, NULL, 0);
		}
	}
	return memory(20 * MIB, MAP_PRIVATE);
}
