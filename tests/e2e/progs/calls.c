/* calls - makes one system call after the other, each in a child of its own, and prints "name
 * outcome": ok, the name of errno, or SIGn. The arguments make an unfiltered kernel give another
 * answer (success, or EFAULT, EBADF, EINVAL) than a filter does; none of them can do harm. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static long clone_newuser(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		_exit(0);
	}
	return pid;
}

static long clone3_flags(uint64_t flags)
{
	uint64_t args[11] = { flags, 0, 0, 0, SIGCHLD };
	long pid = syscall(SYS_clone3, args, 64);
	if (pid == 0) {
		_exit(0);
	}
	return pid;
}

static long clone3_newuser(void)
{
	return clone3_flags(CLONE_NEWUSER);
}

static long read_self_memory(void)
{
	static char from[4] = "abc";
	char to[4];
	struct iovec l = { to, 4 }, r = { from, 4 };
	return syscall(SYS_process_vm_readv, getpid(), &l, 1, &r, 1, 0);
}

static long write_self_memory(void)
{
	static char to[4];
	char from[4] = "abc";
	struct iovec l = { from, 4 }, r = { to, 4 };
	return syscall(SYS_process_vm_writev, getpid(), &l, 1, &r, 1, 0);
}

static long steal_fd_by_pidfd(void)
{
	long fd = syscall(SYS_pidfd_open, getpid(), 0);
	return fd < 0 ? fd : syscall(SYS_pidfd_getfd, fd, 1, 0);
}

static long handle_to_fd(void)
{
	char space[160] = { 0 };
	struct file_handle *h = (struct file_handle *)space;
	int mount = 0;
	h->handle_bytes = 128;
	if (name_to_handle_at(AT_FDCWD, "/usr", h, &mount, 0) < 0) {
		h->handle_bytes = 8; /* an invalid handle: the filter does not look at it */
	}
	return open_by_handle_at(AT_FDCWD, h, O_RDONLY);
}

static long x32_getpid(void)
{
#ifdef __x86_64__
	long r = syscall(0x40000000 + SYS_getpid);
	return r;
#else
	kill(getpid(), SIGSYS);
	return 0;
#endif
}

static long i386_getpid(void)
{
#ifdef __x86_64__
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	if (r < 0) {
		errno = (int)-r;
		return -1;
	}
	return 0;
#else
	kill(getpid(), SIGSYS);
	return 0;
#endif
}

static long bpf_map(void)
{
	uint32_t attr[20] = { 2 /* array */, 4, 4, 1 };
	return syscall(SYS_bpf, 0, attr, sizeof(attr));
}

static long sti(void)
{
	char c = 'x';
	return ioctl(0, TIOCSTI, &c);
}

/* The kernel looks only at the low 32 bits of the request. */
static long sti_high_bits(void)
{
	char c = 'x';
	return syscall(SYS_ioctl, 0, 0x100000000UL | TIOCSTI, &c);
}

static long tioclinux(void)
{
	char c[2] = { 2, 0 };
	return ioctl(0, TIOCLINUX, c);
}

#define CALL(name, expr)                                                                           \
	static long name(void)                                                                     \
	{                                                                                          \
		return (expr);                                                                     \
	}
CALL(io_uring, syscall(SYS_io_uring_setup, 1, 0))
CALL(io_uring_enter_, syscall(SYS_io_uring_enter, -1, 0, 0, 0, 0, 0))
CALL(unshare_user, unshare(CLONE_NEWUSER))
CALL(unshare_net, unshare(CLONE_NEWNET))
CALL(setns_, setns(-1, 0))
CALL(ptrace_me, ptrace(PTRACE_TRACEME, 0, 0, 0))
CALL(keyring, syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1))
CALL(add_key_, syscall(SYS_add_key, "user", "ssb-probe", "x", 1, KEY_SPEC_PROCESS_KEYRING))
CALL(request_key_, syscall(SYS_request_key, "user", 0, 0, 0))
CALL(perf, syscall(SYS_perf_event_open, 0, 0, -1, -1, 0))
CALL(uffd, syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */))
CALL(mount_, syscall(SYS_mount, 0, (char *)1, 0, 0, 0))
CALL(umount_, syscall(SYS_umount2, (char *)1, 0))
CALL(pivot, syscall(SYS_pivot_root, (char *)1, (char *)1))
CALL(fsopen_, syscall(SYS_fsopen, "tmpfs", 0))
CALL(open_tree_, syscall(SYS_open_tree, AT_FDCWD, "/", 0))
CALL(move_mount_, syscall(SYS_move_mount, -1, "", -1, "", 4))
CALL(mount_setattr_, syscall(SYS_mount_setattr, -1, "", 0x1000, 0, 0))
CALL(init_mod, syscall(SYS_init_module, 0, 0, 0))
CALL(finit_mod, syscall(SYS_finit_module, -1, "", 0))
CALL(delete_mod, syscall(SYS_delete_module, "ssb_no_such_module", 0))
CALL(kexec, syscall(SYS_kexec_load, 0, 0, 0, 0x7f))
CALL(kexec_file, syscall(SYS_kexec_file_load, -1, -1, 0, 0, 0))
CALL(personality_, syscall(SYS_personality, 0x0040000))
CALL(netlink, socket(16, SOCK_RAW, 15)) /* the kernel's device events */
CALL(packet, socket(17, SOCK_RAW, 0))
CALL(vsock, socket(40, SOCK_STREAM, 0))
CALL(raw4, socket(AF_INET, SOCK_RAW, 1))
CALL(raw6, socket(AF_INET6, SOCK_RAW, 58))
CALL(raw4_flags, socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 255))
CALL(chroot_, chroot("/"))
CALL(swapon_, syscall(SYS_swapon, (char *)1, 0))
CALL(acct_, syscall(SYS_acct, (char *)1))
CALL(sethostname_, syscall(SYS_sethostname, (char *)1, 4))
CALL(settime, syscall(SYS_settimeofday, (void *)1, 0))
CALL(quotactl_, syscall(SYS_quotactl, 0, (char *)1, 0, (void *)1))
CALL(kcmp_, syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0))
CALL(syslog_, syscall(SYS_syslog, 10 /* SYSLOG_ACTION_SIZE_BUFFER */, 0, 0))
CALL(fanotify, syscall(SYS_fanotify_init, 0, 0))
/* The control: every program needs this call. A filter that denies all calls fails only here. */
CALL(getpid_, getpid())

struct call {
	const char *name;
	long (*make)(void);
};

static const struct call CALLS[] = {
	{ "io_uring_setup", io_uring },
	{ "io_uring_enter", io_uring_enter_ },
	{ "unshare_newuser", unshare_user },
	{ "unshare_newnet", unshare_net },
	{ "setns", setns_ },
	{ "clone_newuser", clone_newuser },
	{ "clone3_newuser", clone3_newuser },
	{ "ptrace_traceme", ptrace_me },
	{ "process_vm_readv", read_self_memory },
	{ "process_vm_writev", write_self_memory },
	{ "pidfd_getfd", steal_fd_by_pidfd },
	{ "keyctl", keyring },
	{ "add_key", add_key_ },
	{ "request_key", request_key_ },
	{ "bpf", bpf_map },
	{ "perf_event_open", perf },
	{ "userfaultfd", uffd },
	{ "mount", mount_ },
	{ "umount2", umount_ },
	{ "pivot_root", pivot },
	{ "fsopen", fsopen_ },
	{ "open_tree", open_tree_ },
	{ "move_mount", move_mount_ },
	{ "mount_setattr", mount_setattr_ },
	{ "open_by_handle_at", handle_to_fd },
	{ "init_module", init_mod },
	{ "finit_module", finit_mod },
	{ "delete_module", delete_mod },
	{ "kexec_load", kexec },
	{ "kexec_file_load", kexec_file },
	{ "personality", personality_ },
	{ "af_netlink", netlink },
	{ "af_packet", packet },
	{ "af_vsock", vsock },
	{ "raw_ipv4", raw4 },
	{ "raw_ipv6", raw6 },
	{ "raw_ipv4_flags", raw4_flags },
	{ "chroot", chroot_ },
	{ "swapon", swapon_ },
	{ "acct", acct_ },
	{ "sethostname", sethostname_ },
	{ "settimeofday", settime },
	{ "quotactl", quotactl_ },
	{ "kcmp", kcmp_ },
	{ "syslog", syslog_ },
	{ "fanotify_init", fanotify },
	{ "tiocsti", sti },
	{ "tiocsti_high_bits", sti_high_bits },
	{ "tioclinux", tioclinux },
	{ "x32_getpid", x32_getpid },
	{ "i386_getpid", i386_getpid },
	{ "getpid", getpid_ },
};

int main(void)
{
	for (size_t i = 0; i < sizeof(CALLS) / sizeof(*CALLS); i++) {
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			errno = 0;
			_exit(CALLS[i].make() < 0 ? errno : 0);
		}
		int status = 0;
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
		}
		if (WIFSIGNALED(status)) {
			printf("%s SIG%d\n", CALLS[i].name, WTERMSIG(status));
		} else {
			int e = WEXITSTATUS(status);
			printf("%s %s\n", CALLS[i].name, e ? strerrorname_np(e) : "ok");
		}
	}
	return 0;
}
