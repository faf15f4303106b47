/* probes_syscalls.c - attacks with system calls that the filter must stop.
 *
 * Most rows are a call with arguments that the kernel refuses before it does anything (a NULL
 * pointer, a bad flag, a bad fd). The kernel's own errno for such arguments shows that the call
 * reached the kernel. Outside it always does; inside, the filter refuses it first, with another
 * errno or with SIGSYS. So the control needs no privilege, and no row does harm, not even reboot:
 * its magic numbers are wrong. */
#include "sandbox/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"

struct probe_call {
	const char *name; /* name of the attack that makes the call */
	long nr;
	long args[6];
	int reached; /* the kernel's errno for these arguments; 0: the call succeeds */
};

#define NONE 0L
#define BAD  (-1L) /* an fd, flags or command that does not exist */

static const struct probe_call CALLS[] = {
	{ "mount", SYS_mount, { NONE }, EFAULT },
	{ "umount", SYS_umount2, { NONE, BAD }, EINVAL },
	{ "pivot-root", SYS_pivot_root, { NONE, NONE }, EFAULT },
	{ "chroot", SYS_chroot, { (long)"/" }, 0 },
	{ "fsopen", SYS_fsopen, { (long)"tmpfs", 1 }, 0 },
	{ "fsconfig", SYS_fsconfig, { BAD, BAD }, EINVAL },
	{ "fsmount", SYS_fsmount, { BAD, BAD }, EINVAL },
	{ "fspick", SYS_fspick, { BAD, NONE, BAD }, EINVAL },
	{ "open-tree", SYS_open_tree, { AT_FDCWD, (long)"/", O_CLOEXEC }, 0 },
	{ "move-mount", SYS_move_mount, { BAD, NONE, BAD, NONE, BAD }, EINVAL },
	{ "mount-setattr", SYS_mount_setattr, { BAD, NONE, BAD, NONE, NONE }, EINVAL },
	{ "setns", SYS_setns, { BAD, NONE }, EBADF },
	{ "unshare-user", SYS_unshare, { CLONE_NEWUSER }, 0 },
	{ "unshare-all",
	  SYS_unshare,
	  { CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS },
	  0 },
	{ "keyctl", SYS_keyctl, { BAD }, EOPNOTSUPP },
	{ "add-key", SYS_add_key, { NONE }, EFAULT },
	{ "request-key", SYS_request_key, { NONE }, EFAULT },
	{ "bpf", SYS_bpf, { BAD, NONE, NONE }, EINVAL },
	{ "perf", SYS_perf_event_open, { NONE, NONE, BAD, BAD, BAD }, EINVAL },
	{ "userfaultfd", SYS_userfaultfd, { O_CLOEXEC | UFFD_USER_MODE_ONLY }, 0 },
	{ "io-uring", SYS_io_uring_setup, { 1, NONE }, EFAULT },
	{ "io-uring-enter", SYS_io_uring_enter, { BAD, NONE, NONE, BAD }, EINVAL },
	{ "fanotify", SYS_fanotify_init, { FAN_REPORT_FID, NONE }, 0 },
	{ "kexec", SYS_kexec_load, { NONE, BAD, NONE, BAD }, EINVAL },
	{ "module", SYS_finit_module, { BAD, NONE, BAD }, EINVAL },
	{ "module-remove", SYS_delete_module, { NONE, NONE }, EFAULT },
	{ "reboot", SYS_reboot, { NONE, NONE, NONE, NONE }, EINVAL },
	{ "quotactl", SYS_quotactl, { BAD, NONE, NONE, NONE }, EINVAL },
	{ "tiocsti", SYS_ioctl, { BAD, TIOCSTI, NONE }, EBADF },
	/* The kernel uses only 32 bits of the request, so a filter must do the same. */
	{ "tiocsti-64", SYS_ioctl, { BAD, (long)(0x100000000UL | TIOCSTI), NONE }, EBADF },
	{ "tioclinux", SYS_ioctl, { BAD, TIOCLINUX, NONE }, EBADF },
};

static const struct probe_call *call_of(const struct attack *a)
{
	for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
		if (strcmp(CALLS[i].name, a->name) == 0) {
			return &CALLS[i];
		}
	}
	return NULL;
}

ATTACK(reach)
{
	const struct probe_call *c = call_of(a);

	if (c == NULL) {
		return attack_void(f, "no such call");
	}
	const long *v = c->args;
	long r = syscall(c->nr, v[0], v[1], v[2], v[3], v[4], v[5]);
	if (r >= 0) {
		if (r > 2) {
			(void)close((int)r);
		}
		return attack_worked(f, "allowed");
	}
	return c->reached != 0 && errno == c->reached
	               ? attack_worked(f, "the kernel takes the call")
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
	return attack_worked(f, "a process with its own user namespace");
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

/* PID 1 would be the host's init in a sandbox without walls. */
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
/* This processor has other entries into the kernel, where the call numbers mean other calls. If
 * such a call returns, the attack worked. */
ATTACK(x32_entry)
{
	long r = syscall(0x40000000L | SYS_getpid);

	return attack_worked(f, r > 0 ? "works" : "the kernel takes the call");
}

ATTACK(i386_entry)
{
	long r = 20; /* getpid there */

	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "cc", "r8", "r9", "r10", "r11");
	return r > 0 ? attack_worked(f, "works") : attack_failed(f, "errno %ld", -r);
}
#endif

/* ---- the table -------------------------------------------------------------------------- */

#define CALL(name, what)                                                                           \
	{                                                                                          \
		name, what, reach, NULL, 0, 0, 0                                                   \
	}
#define CALL_NS(name, what)                                                                        \
	{                                                                                          \
		name, what, reach, NULL, 1, 0, 0                                                   \
	} /* the control needs capabilities */

static const struct attack SYSCALLS[] = {
	CALL("unshare-user", "make a user namespace"),
	CALL("unshare-all", "make every namespace at once"),
	ROW("clone-user", "clone into a user namespace", clone_user),
	ROW("clone3-user", "clone3 into a user namespace (a filter cannot see its flags)",
	    clone3_user),
	CALL("setns", "join a namespace"),
	ROW("ns-of-init", "open the namespaces of the sandbox's init", setns_init),
	CALL("mount", "mount a file system"),
	CALL("umount", "unmount a mount that hides a file"),
	CALL_NS("pivot-root", "change the root"),
	CALL_NS("chroot", "change the root with chroot"),
	CALL_NS("fsopen", "new mount API: open a file system"),
	CALL("fsconfig", "new mount API: configure a file system"),
	CALL_NS("fsmount", "new mount API: mount a file system"),
	CALL_NS("fspick", "new mount API: change a mounted file system"),
	CALL("open-tree", "new mount API: copy a mount"),
	CALL_NS("move-mount", "new mount API: attach a mount"),
	CALL("mount-setattr", "new mount API: make a mount writable again"),
	CALL("keyctl", "use the kernel's keyrings"),
	CALL("add-key", "put a key into a keyring"),
	CALL("request-key", "ask for a key, for which a helper on the host is started"),
	CALL("bpf", "load a BPF program"),
	CALL("perf", "use performance counters"),
	CALL("userfaultfd", "hold up the kernel at a page fault"),
	CALL("io-uring", "make system calls that a filter cannot see"),
	CALL("io-uring-enter", "use an io_uring that another process made"),
	CALL("fanotify", "watch or veto the file access of others"),
	{ "no-aslr", "switch off address randomisation", no_aslr, NULL, 0, 0, 1 },
	CALL("quotactl", "change disk quotas"),
	CALL("tiocsti", "type into the owner's terminal"),
	CALL("tiocsti-64", "type into the owner's terminal, with junk in the request"),
	CALL("tioclinux", "paste into the owner's console"),
	CALL("kexec", "load another kernel"),
	CALL("module", "load a kernel module"),
	CALL("module-remove", "remove a kernel module"),
	CALL("reboot", "reboot the machine"),
#if defined(__x86_64__)
	ROW("x32", "make a system call of the x32 ABI", x32_entry),
	ROW("i386", "make a system call of the i386 ABI", i386_entry),
#endif
};

const struct attack_group ATTACKS_SYSCALLS = { SYSCALLS, ARRAY_LEN(SYSCALLS) };
