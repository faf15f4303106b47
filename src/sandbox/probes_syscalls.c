/* probes_syscalls.c - attacks with system calls that the filter must stop.
 *
 * Most rows are a call with arguments that the kernel refuses before it does anything (a NULL
 * pointer, a bad flag, a bad fd). The kernel's own errno for such arguments shows that the call
 * reached the kernel. Outside, the call always reaches the kernel; inside, the filter refuses it
 * first, with another errno or with SIGSYS. So the control needs no privilege, and no row does
 * harm, not even reboot: its magic numbers are wrong. */
#include "sandbox/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"

struct probe_call {
	long nr;
	long args[6];
	int reached; /* the kernel's errno for these arguments; 0: the call succeeds */
};

#define NONE 0L
#define BAD  (-1L) /* an fd, flags or command that does not exist */

ATTACK(reach)
{
	const struct probe_call *c = a->call;
	const long *v = c->args;
	long r = syscall(c->nr, v[0], v[1], v[2], v[3], v[4], v[5]);
	if (r >= 0) {
		if (r > 2) {
			(void)close((int)r);
		}
		return attack_worked(f, "allowed");
	}
	return c->reached != 0 && errno == c->reached
	               ? attack_worked(f, "the kernel accepts the call")
	               : attack_errno(f, a->name);
}

/* ---- calls that need more than a row ------------------------------------------- */

static enum attack_result judge_child(long pid, struct finding *f)
{
	if (pid < 0) {
		return attack_errno(f, "clone");
	}
	if (pid == 0) {
		_exit(0);
	}
	(void)waitpid((pid_t)pid, NULL, __WALL);
	return attack_worked(f, "made a process with its own user namespace");
}

ATTACK(clone_user)
{
	return judge_child(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL), f);
}

ATTACK(clone3_user)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };

	return judge_child(syscall(SYS_clone3, &args, sizeof(args)), f);
}

/* Inside, the target is PID 1: the sandbox's init or, in a sandbox without a pid namespace, the
 * host's. */
ATTACK(setns_init)
{
	static const char *const NAMES[] = { "mnt", "net", "pid", "user", "ipc", "uts", "cgroup" };

	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", w->outside ? (int)w->helper : 1,
		         NAMES[i]);
		auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			return attack_worked(f, "opened the %s namespace of another process",
			                     NAMES[i]);
		}
	}
	return attack_errno(f, "open");
}

ATTACK(no_aslr)
{
	int before = personality(0xffffffff);

	if (before < 0) {
		return attack_errno(f, "personality");
	}
	if (personality((unsigned long)before | ADDR_NO_RANDOMIZE) < 0) {
		return attack_errno(f, "personality");
	}
	bool set = (personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0;
	(void)personality((unsigned long)before);
	return set ? attack_worked(f, "address randomisation is off")
	           : attack_failed(f, "no effect");
}

#if defined(__x86_64__)
/* x86-64 has other ways to enter the kernel (ABIs), in which the same numbers mean other calls. If
 * a call made in such a way returns, the attack worked. */
ATTACK(x32_entry)
{
	long r = syscall(0x40000000L | SYS_getpid);

	return attack_worked(f, r > 0 ? "works" : "the kernel accepts the call");
}

ATTACK(i386_entry)
{
	long r = 20; /* getpid there */

	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "cc", "r8", "r9", "r10", "r11");
	return r > 0 ? attack_worked(f, "works") : attack_failed(f, "errno %ld", -r);
}
#endif

/* ---- the table -------------------------------------------------------------------------- */

/* CALL(name, what, system call, struct probe_call.reached, arguments). CALL_NS: the control needs
 * capabilities. */
#define ROW_CALL(name, what, root, nr, reached, ...)                                               \
	{                                                                                          \
		name, what, reach, NULL,                                                           \
		        &(const struct probe_call){ nr, { __VA_ARGS__ }, reached }, root, 0, 0     \
	}
#define CALL(name, what, ...)    ROW_CALL(name, what, 0, __VA_ARGS__)
#define CALL_NS(name, what, ...) ROW_CALL(name, what, 1, __VA_ARGS__)

static const struct attack SYSCALLS[] = {
	CALL("unshare-user", "make a user namespace", SYS_unshare, 0, CLONE_NEWUSER),
	CALL("unshare-all", "make every namespace at once", SYS_unshare, 0,
	     CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS),
	ROW("clone-user", "clone into a user namespace", clone_user),
	ROW("clone3-user", "clone3 into a user namespace (a filter cannot see its flags)",
	    clone3_user),
	CALL("setns", "join a namespace", SYS_setns, EBADF, BAD, NONE),
	ROW("ns-of-init", "open the namespaces of the sandbox's init", setns_init),
	CALL("mount", "mount a file system", SYS_mount, EFAULT, NONE),
	CALL("umount", "unmount a mount that hides a file", SYS_umount2, EINVAL, NONE, BAD),
	CALL_NS("pivot-root", "change the root", SYS_pivot_root, EFAULT, NONE, NONE),
	CALL_NS("chroot", "change the root with chroot", SYS_chroot, 0, (long)"/"),
	CALL_NS("fsopen", "new mount API: open a file system", SYS_fsopen, 0, (long)"tmpfs", 1),
	CALL("fsconfig", "new mount API: configure a file system", SYS_fsconfig, EINVAL, BAD, BAD),
	CALL_NS("fsmount", "new mount API: mount a file system", SYS_fsmount, EINVAL, BAD, BAD),
	CALL_NS("fspick", "new mount API: change a mounted file system", SYS_fspick, EINVAL, BAD,
	        NONE, BAD),
	CALL("open-tree", "new mount API: copy a mount", SYS_open_tree, 0, AT_FDCWD, (long)"/",
	     O_CLOEXEC),
	CALL_NS("move-mount", "new mount API: attach a mount", SYS_move_mount, EINVAL, BAD, NONE,
	        BAD, NONE, BAD),
	CALL("mount-setattr", "new mount API: make a mount writable again", SYS_mount_setattr,
	     EINVAL, BAD, NONE, BAD, NONE, NONE),
	CALL("keyctl", "use the kernel's keyrings", SYS_keyctl, EOPNOTSUPP, BAD),
	CALL("add-key", "put a key into a keyring", SYS_add_key, EFAULT, NONE),
	CALL("request-key", "ask for a key, so that the kernel starts a helper on the host",
	     SYS_request_key, EFAULT, NONE),
	CALL("bpf", "load a BPF program", SYS_bpf, EINVAL, BAD, NONE, NONE),
	CALL("perf", "use performance counters", SYS_perf_event_open, EINVAL, NONE, NONE, BAD, BAD,
	     BAD),
	CALL("userfaultfd", "hold up the kernel at a page fault", SYS_userfaultfd, 0,
	     O_CLOEXEC | UFFD_USER_MODE_ONLY),
	CALL("io-uring", "make system calls that a filter cannot see", SYS_io_uring_setup, EFAULT,
	     1, NONE),
	CALL("io-uring-enter", "use an io_uring that another process made", SYS_io_uring_enter,
	     EINVAL, BAD, NONE, NONE, BAD),
	CALL("fanotify", "watch or veto the file access of other processes", SYS_fanotify_init, 0,
	     FAN_REPORT_FID, NONE),
	{ "no-aslr", "switch off address randomisation", no_aslr, NULL, NULL, 0, 0, 1 },
	CALL("quotactl", "change disk quotas", SYS_quotactl, EINVAL, BAD, NONE, NONE, NONE),
	CALL("tiocsti", "type into the owner's terminal", SYS_ioctl, EBADF, BAD, TIOCSTI, NONE),
	/* The kernel uses only 32 bits of the request, so a filter must do the same. */
	CALL("tiocsti-64", "type into the owner's terminal, with extra high bits in the request",
	     SYS_ioctl, EBADF, BAD, (long)(0x100000000UL | TIOCSTI), NONE),
	CALL("tioclinux", "paste into the owner's console", SYS_ioctl, EBADF, BAD, TIOCLINUX, NONE),
	CALL("kexec", "load another kernel", SYS_kexec_load, EINVAL, NONE, BAD, NONE, BAD),
	CALL("module", "load a kernel module", SYS_finit_module, EINVAL, BAD, NONE, BAD),
	CALL("module-remove", "remove a kernel module", SYS_delete_module, EFAULT, NONE, NONE),
	CALL("reboot", "reboot the machine", SYS_reboot, EINVAL, NONE, NONE, NONE, NONE),
#if defined(__x86_64__)
	ROW("x32", "make a system call of the x32 ABI", x32_entry),
	ROW("i386", "make a system call of the i386 ABI", i386_entry),
#endif
};

const struct attack_group ATTACKS_SYSCALLS = { SYSCALLS, ARRAY_LEN(SYSCALLS) };
