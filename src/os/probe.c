/* probe.c - tries out the features of probe.h. Each row of FEATURES has a step, which tries one
 * feature; some steps must run inside a user namespace. */
#include "os/probe.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"
#include "base/own.h"

#define PROBE_SECONDS 5

/* ---- the child that tries a step ----------------------------------------- */

static int write_file(const char *path, const char *text)
{
	auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		return -1;
	}
	size_t len = strlen(text);
	return write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

static int map_self_to_root(uid_t uid, gid_t gid)
{
	char line[64];

	/* Old kernels have no setgroups file; there, the gid map can be written without it. */
	if (write_file("/proc/self/setgroups", "deny") != 0 && errno != ENOENT) {
		return -1;
	}
	snprintf(line, sizeof(line), "0 %u 1", (unsigned)uid);
	if (write_file("/proc/self/uid_map", line) != 0) {
		return -1;
	}
	snprintf(line, sizeof(line), "0 %u 1", (unsigned)gid);
	return write_file("/proc/self/gid_map", line);
}

int probe_enter_userns(int flags)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER | flags) != 0 || map_self_to_root(uid, gid) != 0) {
		return -1;
	}
	/* Test the capabilities: an LSM can remove them, and then the namespace is useless. */
	if ((flags & CLONE_NEWNS) != 0) {
		return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	}
	return 0;
}

static int child_status(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR) {
			return errno;
		}
	}
	if (WIFEXITED(status)) {
		return WEXITSTATUS(status);
	}
	return WTERMSIG(status) == SIGALRM ? ETIMEDOUT : ECHILD;
}

struct feature {
	bool userns;       /* the step runs as root of a user namespace */
	int flags;         /* the step also runs in these new namespaces (CLONE_NEW*) */
	int (*step)(void); /* NULL: the probe only tries to make the namespaces */
};

static int in_child(const struct feature *f);

static int run_step(const struct feature *f)
{
	if (f->userns && probe_enter_userns(f->flags) != 0) {
		return -1;
	}
	if (f->step == NULL) {
		return 0;
	}
	if ((f->flags & CLONE_NEWPID) != 0) {
		/* A further child is the first process of the new pid namespace. */
		errno = in_child(&(struct feature){ .step = f->step });
		return errno == 0 ? 0 : -1;
	}
	return f->step();
}

/* Runs the step in a forked child. Returns 0, or the errno of the failure. */
static int in_child(const struct feature *f)
{
	pid_t pid = fork();

	if (pid < 0) {
		return errno;
	}
	if (pid == 0) {
		alarm(PROBE_SECONDS);
		errno = 0;
		_exit(run_step(f) == 0 ? 0 : (errno != 0 ? errno : EPROTO));
	}
	return child_status(pid);
}

int probe_in_userns(int flags, int (*step)(void))
{
	return in_child(&(struct feature){ true, flags, step });
}

/* ---- steps inside a namespace ------------------------------------------- */

static int step_proc(void)
{
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static int step_tmpfs(void)
{
	return mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k");
}

static int step_overlay(void)
{
	if (step_tmpfs() != 0 || mkdir("/tmp/a", 0700) != 0 || mkdir("/tmp/b", 0700) != 0 ||
	    mkdir("/tmp/m", 0700) != 0) {
		return -1;
	}
	return mount("overlay", "/tmp/m", "overlay", MS_RDONLY, "lowerdir=/tmp/a:/tmp/b");
}

static int step_mount_api(void)
{
	auto_fd fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0) {
		return -1;
	}
	auto_fd mnt = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	if (mnt < 0 ||
	    syscall(SYS_move_mount, mnt, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH) != 0) {
		return -1;
	}
	auto_fd tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/",
	                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	return tree < 0 ? -1 : 0;
}

static int step_mount_setattr(void)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	auto_fd tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/",
	                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (tree < 0) {
		return -1;
	}
	return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
	                    sizeof(attr));
}

/* ---- single calls --------------------------------------------------------- */

static int load_filter(unsigned flags)
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog prog = { .len = 1, .filter = allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return -1;
	}
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
	return r < 0 ? -1 : 0;
}

static int step_seccomp(void)
{
	return load_filter(0);
}

static int step_seccomp_notify(void)
{
	return load_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

static int step_openat2(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };

	auto_fd fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));
	return fd < 0 ? -1 : 0;
}

static int step_close_range(void)
{
	return (int)syscall(SYS_close_range, ~0U, ~0U, 0U);
}

static int step_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0) {
		return -1;
	}
	if (pid == 0) {
		_exit(0);
	}
	errno = child_status((pid_t)pid);
	return errno == 0 ? 0 : -1;
}

static int step_pidfd(void)
{
	auto_fd fd = (int)syscall(SYS_pidfd_open, getpid(), 0U);
	if (fd < 0) {
		return -1;
	}
	return (int)syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0U);
}

/* ---- the table ------------------------------------------------------------- */

static const struct feature FEATURES[PROBE_COUNT] = {
	[PROBE_USERNS] = { true, CLONE_NEWNS, NULL },
	[PROBE_MNTNS] = { true, CLONE_NEWNS, NULL },
	[PROBE_PIDNS] = { true, CLONE_NEWPID, NULL },
	[PROBE_NETNS] = { true, CLONE_NEWNET, NULL },
	[PROBE_IPCNS] = { true, CLONE_NEWIPC, NULL },
	[PROBE_UTSNS] = { true, CLONE_NEWUTS, NULL },
	[PROBE_CGROUPNS] = { true, CLONE_NEWCGROUP, NULL },
	[PROBE_PROC] = { true, CLONE_NEWNS | CLONE_NEWPID, step_proc },
	[PROBE_TMPFS] = { true, CLONE_NEWNS, step_tmpfs },
	[PROBE_OVERLAY] = { true, CLONE_NEWNS, step_overlay },
	[PROBE_MOUNT_API] = { true, CLONE_NEWNS, step_mount_api },
	[PROBE_MOUNT_SETATTR] = { true, CLONE_NEWNS, step_mount_setattr },
	[PROBE_SECCOMP] = { .step = step_seccomp },
	[PROBE_SECCOMP_NOTIFY] = { .step = step_seccomp_notify },
	[PROBE_OPENAT2] = { .step = step_openat2 },
	[PROBE_CLOSE_RANGE] = { .step = step_close_range },
	[PROBE_CLONE3] = { .step = step_clone3 },
	[PROBE_PIDFD] = { .step = step_pidfd },
};

bool probe_needs_userns(enum probe_id id)
{
	return FEATURES[id].userns;
}

int probe_feature(enum probe_id id)
{
	assert((unsigned)id < PROBE_COUNT);

	return in_child(&FEATURES[id]);
}

/* ---- version ----------------------------------------------------------------- */

int probe_parse_release(const char *release, unsigned *ret_major, unsigned *ret_minor)
{
	uint64_t major = 0, minor = 0;
	const char *dot = number_read(release, 999, &major);

	if (dot == NULL || *dot != '.' || number_read(dot + 1, 999, &minor) == NULL) {
		return -1;
	}
	*ret_major = (unsigned)major;
	*ret_minor = (unsigned)minor;
	return 0;
}

int probe_kernel(unsigned *ret_major, unsigned *ret_minor)
{
	struct utsname u;

	return uname(&u) != 0 ? -1 : probe_parse_release(u.release, ret_major, ret_minor);
}

bool probe_version_ok(unsigned major, unsigned minor)
{
	return major > PROBE_MIN_MAJOR || (major == PROBE_MIN_MAJOR && minor >= PROBE_MIN_MINOR);
}

/* ---- idmapped mounts ------------------------------------------------------------ */

/* Starts a process that keeps a user namespace alive until ret_pipe[1] is closed. Returns its pid,
 * or -1 with errno. */
static pid_t hold_userns(int ret_pipe[2])
{
	int ready[2];
	char c = 0;

	if (pipe2(ready, O_CLOEXEC) != 0) {
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		alarm(PROBE_SECONDS);
		(void)close(ret_pipe[1]);
		c = unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
		(void)!write(ready[1], &c, 1);
		(void)!read(ret_pipe[0], &c, 1);
		_exit(0);
	}
	(void)close(ready[1]);
	/* If the child dies early, the read ends because its end of the pipe is closed. */
	ssize_t n = pid > 0 ? read(ready[0], &c, 1) : -1;
	(void)close(ready[0]);
	if (pid > 0 && (n != 1 || c != 'y')) {
		own_close(&ret_pipe[1]);
		(void)child_status(pid);
		errno = EPERM;
		return -1;
	}
	return pid;
}

static int idmap_tree(const char *path, pid_t holder)
{
	char file[64];

	snprintf(file, sizeof(file), "/proc/%d/uid_map", (int)holder);
	if (write_file(file, "0 65534 1") != 0) {
		return -1;
	}
	snprintf(file, sizeof(file), "/proc/%d/gid_map", (int)holder);
	if (write_file(file, "0 65534 1") != 0) {
		return -1;
	}
	snprintf(file, sizeof(file), "/proc/%d/ns/user", (int)holder);
	auto_fd ns = open(file, O_RDONLY | O_CLOEXEC);
	auto_fd tree =
	        (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (ns < 0 || tree < 0) {
		return -1;
	}
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)ns };
	return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr));
}

int probe_idmap(const char *path)
{
	int hold[2];

	if (pipe2(hold, O_CLOEXEC) != 0) {
		return errno;
	}
	pid_t holder = hold_userns(hold);
	int e = holder < 0 ? errno : 0;
	if (holder > 0) {
		e = idmap_tree(path, holder) == 0 ? 0 : errno;
		own_close(&hold[1]);
		(void)child_status(holder);
	}
	own_close(&hold[0]);
	own_close(&hold[1]);
	return e;
}

char probe_core_taker(void)
{
	char pattern[120] = "";

	(void)probe_line("/proc/sys/kernel/core_pattern", pattern, sizeof(pattern));
	return pattern[0] == '|' || pattern[0] == '@' ? pattern[0] : ' ';
}
