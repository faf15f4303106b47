/* own_tables - a thread that shares neither descriptors nor the working directory with its
 * process opens paths of /proc and of /dev.
 *
 *   own_tables paths LEADERS THREADS
 *     LEADERS and THREADS are directories, each with a file "file": the leader works in LEADERS,
 *     the thread in THREADS. Prints a line for each path that the thread opens:
 *     "PATH<tab>MODE<tab>FILE". FILE is the file that the kernel opened (the link of the new fd).
 *   own_tables exec PROGRAM ARGUMENT
 *     The thread executes PROGRAM while the leader opens a file again and again. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALONE     (CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)
#define DIR_FD    100 /* this fd and FILE_FD are other files in the leader than in the thread */
#define FILE_FD   101
#define PATHS     32
#define PATH_SIZE 128

static char **args;
static char stack[65536] __attribute__((aligned(16)));
static char raw[PATHS][PATH_SIZE], opened[PATHS][4096];
static const char *modes[PATHS];
static int n_paths;
static volatile int done;

static long call(long nr, long a, long b, long c, long d)
{
	return syscall(nr, a, b, c, d);
}

static void open_path(const char *mode, int flags)
{
	char link[64];
	int i = n_paths++;

	modes[i] = mode;
	long fd = call(SYS_openat, AT_FDCWD, (long)raw[i], flags, 0600);
	snprintf(link, sizeof(link), "/proc/thread-self/fd/%ld", fd);
	if (fd >= 0) {
		call(SYS_readlinkat, AT_FDCWD, (long)link, (long)opened[i], sizeof(opened[i]) - 1);
		call(SYS_close, fd, 0, 0, 0);
	}
}

/* Makes a new file in the directory. Its name is unique: the record has equal lines only once. */
static void make_in(const char *format, int a, int b)
{
	size_t n = (size_t)snprintf(raw[n_paths], PATH_SIZE, format, a, b);

	snprintf(raw[n_paths] + n, PATH_SIZE - n, "f%d", n_paths);
	open_path("create", O_WRONLY | O_CREAT);
}

static void open_file(const char *format, int a, int b, const char *mode, int flags)
{
	snprintf(raw[n_paths], PATH_SIZE, format, a, b);
	open_path(mode, flags);
}

static void take(const char *dir)
{
	call(SYS_chdir, (long)dir, 0, 0, 0);
	call(SYS_dup3, call(SYS_openat, AT_FDCWD, (long)".", O_PATH, 0), DIR_FD, 0, 0);
	call(SYS_dup3, call(SYS_openat, AT_FDCWD, (long)"file", O_PATH, 0), FILE_FD, 0, 0);
	call(SYS_dup3, DIR_FD, 0, 0, 0);
}

/* This thread has no TLS (thread-local storage), so it must call no libc function that needs it. */
static int paths(void *arg)
{
	int leader = (int)call(SYS_getpid, 0, 0, 0, 0), tid = (int)call(SYS_gettid, 0, 0, 0, 0);
	int child = *(int *)arg;

	take(args[3]);
	make_in("/proc/self/fd/100/", 0, 0);
	make_in("/proc/self//./fd/100/", 0, 0);
	make_in("/proc/%d/fd/100/", leader, 0);
	make_in("/proc/%d/task/%d/fd/100/", leader, leader);
	make_in("/dev/fd/100/", 0, 0);
	make_in("/dev/stdin/", 0, 0);
	make_in("/proc/self/cwd/", 0, 0);
	make_in("/proc/%d/cwd/", leader, 0);
	make_in("/tmp/self/fd/100/", 0, 0);
	make_in("/proc/thread-self/fd/100/", 0, 0);
	make_in("/proc/thread-self/cwd/", 0, 0);
	make_in("/proc/%d/fd/100/", tid, 0);
	make_in("/proc/%d/task/%d/fd/100/", leader, tid);
	make_in("/proc/%d/task/%d/cwd/", leader, tid);
	make_in("/proc/%d/cwd/", tid, 0);
	make_in("/tmp/thread/fd/100/", 0, 0);
	make_in("", 0, 0);
	make_in("./", 0, 0);
	make_in("/proc/%d/fd/100/", child, 0);
	make_in("/proc/%d/cwd/", child, 0);
	open_file("/proc/self/fd/101", 0, 0, "write", O_WRONLY);
	open_file("/proc/%d/fd/101", leader, 0, "read+write", O_RDWR);
	open_file("/dev/fd/101", 0, 0, "append", O_WRONLY | O_APPEND);
	open_file("/proc/thread-self/fd/101", 0, 0, "write", O_WRONLY);
	open_file("/proc/%d/fd/101", tid, 0, "read+write", O_RDWR);
	open_file("/proc/%d/task/%d/fd/101", leader, tid, "append", O_WRONLY | O_APPEND);
	done = 1;
	call(SYS_exit, 0, 0, 0, 0);
	return 0;
}

static int become(void *arg)
{
	(void)arg;
	while (!done) { /* waits until the leader has begun to open */
	}
	execve(args[2], args + 2, environ);
	_exit(1);
}

static int main_paths(void)
{
	int pair[2];
	char byte;

	if (symlink("/proc/self", "/tmp/self") != 0 ||
	    symlink("/proc/thread-self", "/tmp/thread") != 0 || pipe(pair) != 0) {
		return 1;
	}
	int child = fork();
	if (child == 0) {
		take(args[3]); /* now DIR_FD and FILE_FD are other files than in the parent */
		close(pair[1]);
		_exit(read(pair[0], &byte, 1) != 0);
	}
	close(pair[0]);
	take(args[2]);
	/* The child is ready when its fd 101 leads into its own directory. */
	char link[32], to[4096] = "";
	snprintf(link, sizeof(link), "/proc/%d/fd/101", child);
	while (strncmp(to, args[3], strlen(args[3])) != 0) {
		memset(to, 0, sizeof(to));
		if (readlink(link, to, sizeof(to) - 1) < 0) {
			usleep(1000);
		}
	}
	if (clone(paths, stack + sizeof(stack), ALONE, &child) < 0) {
		return 1;
	}
	while (!done) {
		usleep(1000);
	}
	close(pair[1]);
	for (int i = 0; i < n_paths; i++) {
		printf("%s\t%s\t%s\n", raw[i], modes[i], opened[i]);
	}
	return waitpid(child, NULL, 0) != child;
}

int main(int argc, char **argv)
{
	args = argv;
	if (argc == 4 && strcmp(argv[1], "paths") == 0) {
		return main_paths();
	}
	if (argc < 3 || clone(become, stack + sizeof(stack), ALONE | CLONE_FILES, NULL) < 0) {
		return 1;
	}
	for (;;) {
		close(open("/tmp/nothing", O_RDONLY));
		done = 1;
	}
}
