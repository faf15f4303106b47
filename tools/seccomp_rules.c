/* seccomp_rules.c - which system calls a skill may make, and why.
 *
 * There are four answers besides "allow":
 * - ENOSYS, for calls that would only add attack surface: the program assumes an older kernel and
 *   uses another call.
 * - The errno that the kernel gives to an unprivileged process, for calls that programs try.
 * - Success without any effect, for calls whose effect exists already.
 * - Kill, for calls that no program in a sandbox makes: an attack ends there.
 *
 * A change here changes tests/unit/seccomp-golden: run `ninja seccomp-golden` and read the
 * difference. */
#include "seccomp_rules.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ALLOW   SECCOMP_RET_ALLOW
#define KILL    SECCOMP_RET_KILL_PROCESS
#define DENY(e) (SECCOMP_RET_ERRNO | (e))
#define NO_OP   DENY(0)

#define IS(arg, value)                                                                             \
	{                                                                                          \
		arg, false, ~0U, value                                                             \
	}
#define NOT(arg, value)                                                                            \
	{                                                                                          \
		arg, true, ~0U, value                                                              \
	}
#define MASKED(arg, bits, want)                                                                    \
	{                                                                                          \
		arg, false, bits, want                                                             \
	}
#define ANY_OF(arg, bits)                                                                          \
	{                                                                                          \
		arg, true, bits, 0                                                                 \
	}

/* ---- calls that are decided by their arguments ------------------------- */

/* Constants of the kernel, the same on x86_64 and aarch64. They are not taken from the headers of
 * the build machine, which may be older or of another architecture. */
#define K_O_ACCMODE     03U
#define K_O_CREAT       0100U
#define K_O_TRUNC       01000U
#define K_O_TMPFILE     020000000U /* the bit of O_TMPFILE that O_DIRECTORY does not have */
#define K_O_WRITES      (K_O_ACCMODE | K_O_CREAT | K_O_TRUNC | K_O_TMPFILE)
#define K_O_NONBLOCK    04000U
#define K_S_IWOTH       02U
#define K_O_CLOEXEC     02000000U
#define K_F_GETFD       1U
#define K_F_SETFD       2U
#define K_F_GETFL       3U
#define K_F_SETFL       4U
#define K_F_DUPFD       1030U /* F_DUPFD_CLOEXEC */
#define K_F_SETLEASE    1024U
#define K_F_SETDELEG    1040U /* since Linux 6.19 */
#define K_PROT_EXEC     4U
#define K_MAP_HUGETLB   0x40000U
#define K_MFD_HUGETLB   4U
#define K_MFD_NO_FLAG   0x3ffffe0U /* neither a flag nor the size of a huge page (Linux 6.18) */
#define K_SHM_HUGETLB   04000U
#define K_TIOCSTI       0x5412U
#define K_TIOCLINUX     0x541cU
#define K_TIOCCONS      0x541dU
#define K_TIOCSETD      0x5423U
#define K_FIONREAD      0x541bU
#define K_FIONBIO       0x5421U
#define K_SIOC_GETTERS  0x8900U /* read interface settings; writing needs a capability */
#define K_FICLONE       0x40049409U
#define K_FICLONERANGE  0x4020940dU
#define K_FIDEDUPERANGE 0xc0189436U
#define K_IOC_TYPE      0xff00U
#define K_IOC_BTRFS     0x9400U
#define K_IOC_BCACHEFS  0xbc00U
#define K_IOC_FSUUID    0x1500U
#define K_OCFS2_REFLINK 0x40186f04U
#define K_FSCRYPT_ADD   0xc0506617U
#define K_RLIMIT_CORE   4U
#define K_PR_SET_NAME   15U
#define K_PR_SET_VMA    0x53564d41U /* names a mapping */
#define K_PR_SET_MM     35U
#define K_PR_SCHED_CORE 62U
#define K_NEW_LISTENER  8U
#define K_PRIO_PROCESS  0U
#define K_PRIO_USER     2U
#define K_IOPRIO_USER   3U
#define K_INIT          1U          /* pid of the sandbox's init, which has the skill's uid */
#define K_FASTOPEN      0x20000000U /* MSG_FASTOPEN: sendto() connects */
#define K_SO_ATTACH     26U         /* SO_ATTACH_FILTER; the newer ones follow */
#define K_SO_ATTACH_BPF 50U
#define K_SO_PORT_CBPF  51U
#define K_SO_PORT_EBPF  52U
#define K_NOTIF_SEND    0xc0182101U
#define K_NOTIF_VALID   0x40082102U
#define K_NOTIF_ADDFD   0x40182103U
#define K_SOCK_TYPE     0xfU /* the type, without SOCK_NONBLOCK and SOCK_CLOEXEC */

/* CLONE_NEWTIME is missing: in clone() its bit belongs to the exit signal. clone3() could use it,
 * but clone3() returns ENOSYS. */
#define NAMESPACES                                                                                 \
	((uint32_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |  \
	            CLONE_NEWPID | CLONE_NEWNET))

#define SETID (S_ISUID | S_ISGID)

/* clang-format off */
#define SOCKET(reach, domain, type, proto) \
	{ "socket", IN_WIDE, reach, ALLOW, \
	  { IS(0, domain), MASKED(1, K_SOCK_TYPE, type), IS(2, proto) } }
#define SOCKET_TYPE(reach, action, domain, type) \
	{ "socket", IN_WIDE, reach, action, { IS(0, domain), MASKED(1, K_SOCK_TYPE, type) } }
#define SOCKET_FAMILY(reach, action, domain) \
	{ "socket", IN_WIDE, reach, action, { IS(0, domain) } }
#define PAIR(reach, type) \
	{ "socketpair", IN_WIDE, reach, ALLOW, \
	  { IS(0, AF_UNIX), MASKED(1, K_SOCK_TYPE, type) } }

/* TCP and UDP are allowed. SOCK_RAW and SOCK_PACKET get EACCES. ICMP, SCTP, DCCP, UDP-Lite and
 * MPTCP get EPROTONOSUPPORT (Go asks for MPTCP and uses TCP after exactly this errno). */
#define INET(domain) \
	SOCKET(TO_OWN, domain, SOCK_STREAM, 0), \
	SOCKET(TO_OWN, domain, SOCK_STREAM, IPPROTO_TCP), \
	SOCKET(TO_OWN, domain, SOCK_DGRAM, 0), \
	SOCKET(TO_OWN, domain, SOCK_DGRAM, IPPROTO_UDP), \
	SOCKET_TYPE(TO_OWN, DENY(EACCES), domain, SOCK_RAW), \
	SOCKET_TYPE(TO_OWN, DENY(EACCES), domain, SOCK_PACKET), \
	SOCKET_FAMILY(TO_OWN, DENY(EPROTONOSUPPORT), domain), \
	SOCKET_FAMILY(TO_NONE, DENY(EACCES), domain)
#define SOCKOPT(who, level, option) \
	{ "setsockopt", who, TO_ANY, ALLOW, { IS(1, level), IS(2, option) } }
#define NO_SOCKET_PROGRAM(option) \
	{ "setsockopt", IN_DIALLER, TO_ANY, DENY(EPERM), { IS(1, SOL_SOCKET), IS(2, option) } }, \
	{ "setsockopt", IN_ALL, TO_ANY, DENY(ENOMEM), { IS(1, SOL_SOCKET), IS(2, option) } }
#define FCNTL(who, command) \
	{ "fcntl", who, TO_ANY, ALLOW, { IS(1, command) } }
#define DIAL_SOCKET(domain, type) \
	{ "socket", IN_DIALLER, TO_ANY, ALLOW, { IS(0, domain), MASKED(1, K_SOCK_TYPE, type) } }
#define MAKE_SOCKET(name, type) \
	{ name, IN_MAKER, TO_ANY, ALLOW, { IS(0, AF_UNIX), MASKED(1, K_SOCK_TYPE, type) } }
/* Landlock does not check two kinds of open(): one with access mode 3 (neither read nor write),
 * which is enough for fchmod(); and one that only reads but has O_TRUNC (before Linux 6.2). */
#define UNSEEN_OPEN(name, flags) \
	{ name, IN_ALL, TO_NONE, DENY(EACCES), { MASKED(flags, K_O_ACCMODE, K_O_ACCMODE) } }, \
	{ name, IN_ALL, TO_NONE, DENY(EACCES), \
	  { MASKED(flags, K_O_ACCMODE | K_O_TRUNC, K_O_TRUNC) } }
/* clang-format on */

const struct seccomp_rule SECCOMP_RULES[] = {
	/* In a granted directory, a skill must not leave a setuid or setgid file or a device:
	 * `nosuid` works only in the sandbox, not where the host sees the file. mkdir() drops these
	 * bits itself. FIFOs and sockets are left to Landlock, which can check the directory. */
	{ "chmod", IN_ALL, TO_ANY, DENY(EPERM), { ANY_OF(1, SETID) } },
	{ "fchmod", IN_ALL, TO_ANY, DENY(EPERM), { ANY_OF(1, SETID) } },
	{ "fchmodat", IN_ALL, TO_ANY, DENY(EPERM), { ANY_OF(2, SETID) } },
	{ "fchmodat2", IN_ALL, TO_ANY, DENY(EPERM), { ANY_OF(2, SETID) } },
	{ "creat", IN_ALL, TO_ANY, DENY(EPERM), { ANY_OF(1, SETID) } },
	{ "mknod", IN_ALL, TO_ANY, DENY(EPERM), { ANY_OF(1, SETID) } },
	{ "mknod", IN_ALL, TO_ANY, DENY(EPERM), { MASKED(1, S_IFMT, S_IFCHR) } },
	{ "mknod", IN_ALL, TO_ANY, DENY(EPERM), { MASKED(1, S_IFMT, S_IFBLK) } },
	{ "mknodat", IN_ALL, TO_ANY, DENY(EPERM), { ANY_OF(2, SETID) } },
	{ "mknodat", IN_ALL, TO_ANY, DENY(EPERM), { MASKED(2, S_IFMT, S_IFCHR) } },
	{ "mknodat", IN_ALL, TO_ANY, DENY(EPERM), { MASKED(2, S_IFMT, S_IFBLK) } },
	/* RENAME_WHITEOUT creates a device node. */
	{ "renameat2", IN_ALL, TO_ANY, DENY(EINVAL), { ANY_OF(4, 4) } },
	/* Without one of these flags, the mode argument is an undefined register value. */
	{ "open",
	  IN_ALL,
	  TO_ANY,
	  DENY(EPERM),
	  { ANY_OF(1, K_O_CREAT | K_O_TMPFILE), ANY_OF(2, SETID) } },
	{ "openat",
	  IN_ALL,
	  TO_ANY,
	  DENY(EPERM),
	  { ANY_OF(2, K_O_CREAT | K_O_TMPFILE), ANY_OF(3, SETID) } },

	/* A new namespace would give the skill capabilities in it. With `strict`, a skill can start
	 * only threads; execve() creates no new process. */
	{ "clone", IN_ALL, TO_ANY, DENY(EPERM), { ANY_OF(0, NAMESPACES) } },
	{ "clone", IN_STRICT, TO_ANY, ALLOW, { MASKED(0, CLONE_THREAD, CLONE_THREAD) } },

	/* Only the query and the plain personality are allowed. Others weaken address space
	 * randomisation or make memory executable. */
	{ "personality", IN_NARROW, TO_ANY, ALLOW, { IS(0, 0) } },
	{ "personality", IN_NARROW, TO_ANY, ALLOW, { IS(0, 0xffffffffU) } },

	INET(AF_INET),
	INET(AF_INET6),
	SOCKET_TYPE(TO_UNIX, ALLOW, AF_UNIX, SOCK_STREAM),
	SOCKET_TYPE(TO_UNIX, ALLOW, AF_UNIX, SOCK_DGRAM),
	SOCKET_TYPE(TO_UNIX, ALLOW, AF_UNIX, SOCK_SEQPACKET),
	SOCKET_FAMILY(TO_UNIX, DENY(ESOCKTNOSUPPORT), AF_UNIX),
	SOCKET_FAMILY(TO_INET | TO_NONE, DENY(EACCES), AF_UNIX),
	/* Programs read the list of interfaces (os.networkInterfaces() and the like) by
	 * NETLINK_ROUTE. To a process without a capability, this protocol only answers questions
	 * about the sandbox's own network. Other netlink protocols reach netfilter, audit and
	 * crypto. */
	{ "socket", IN_WIDE, TO_OWN, ALLOW, { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) } },

	/* A connected stream socket has a fixed peer. A datagram socket has not: sendto() accepts
	 * any path, so a pair of datagram sockets is like socket(). The kernel treats SOCK_RAW as
	 * SOCK_DGRAM here. */
	PAIR(TO_ANY, SOCK_STREAM),
	PAIR(TO_ANY, SOCK_SEQPACKET),
	PAIR(TO_UNIX, SOCK_DGRAM),
	{ "socketpair", IN_WIDE, TO_UNIX, DENY(ESOCKTNOSUPPORT), { IS(0, AF_UNIX) } },
	{ "socketpair", IN_WIDE, TO_INET | TO_NONE, DENY(EACCES), { IS(0, AF_UNIX) } },

	/* These ioctls insert input into a terminal, which another process would then read. */
	{ "ioctl", IN_ALL, TO_ANY, KILL, { IS(1, K_TIOCSTI) } },
	{ "ioctl", IN_ALL, TO_ANY, KILL, { IS(1, K_TIOCLINUX) } },
	/* Line disciplines load kernel modules; TIOCCONS redirects the output of the console. */
	{ "ioctl", IN_ALL, TO_ANY, DENY(EPERM), { IS(1, K_TIOCSETD) } },
	{ "ioctl", IN_ALL, TO_ANY, DENY(EPERM), { IS(1, K_TIOCCONS) } },
	/* Snapshots of btrfs and bcachefs: a snapshot that is made through any directory of a
	 * subvolume contains the whole subvolume (btrfs before Linux 6.7). With a writable grant in
	 * the home directory, a skill could copy the home directory. The three numbers for cloning
	 * files stay allowed, as other file systems share them. OCFS2 clones by path without a
	 * check by Landlock. All other ioctls are allowed, because a granted device has its own. */
	{ "ioctl", IN_ALL, TO_ANY, ALLOW, { IS(1, K_FICLONE) } },
	{ "ioctl", IN_ALL, TO_ANY, ALLOW, { IS(1, K_FICLONERANGE) } },
	{ "ioctl", IN_ALL, TO_ANY, ALLOW, { IS(1, K_FIDEDUPERANGE) } },
	{ "ioctl", IN_ALL, TO_ANY, DENY(ENOTTY), { MASKED(1, K_IOC_TYPE, K_IOC_BTRFS) } },
	{ "ioctl", IN_ALL, TO_ANY, DENY(ENOTTY), { MASKED(1, K_IOC_TYPE, K_IOC_BCACHEFS) } },
	{ "ioctl", IN_ALL, TO_ANY, DENY(ENOTTY), { IS(1, K_OCFS2_REFLINK) } },
	/* The id of a file system identifies the machine. A key for fscrypt counts against the
	 * owner's quota of keys. */
	{ "ioctl", IN_ALL, TO_ANY, DENY(ENOTTY), { MASKED(1, K_IOC_TYPE, K_IOC_FSUUID) } },
	{ "ioctl", IN_ALL, TO_ANY, DENY(ENOTTY), { IS(1, K_FSCRYPT_ADD) } },

	/* Opening a file on which another process has a lease blocks for up to 45 s, or fails with
	 * EAGAIN if O_NONBLOCK is set. That would affect the owner's programs and the next run. The
	 * kernel returns EINVAL on file systems without leases. */
	{ "fcntl", IN_ALL, TO_ANY, DENY(EINVAL), { IS(1, K_F_SETLEASE) } },
	{ "fcntl", IN_ALL, TO_ANY, DENY(EINVAL), { IS(1, K_F_SETDELEG) } },

	/* PR_SET_MM changes what /proc shows about the process. */
	{ "prctl", IN_ALL, TO_ANY, DENY(EPERM), { IS(0, K_PR_SET_MM) } },
	/* With core scheduling, a skill could keep other programs away from the sibling threads of
	 * a core. */
	{ "prctl", IN_ALL, TO_ANY, DENY(EINVAL), { IS(0, K_PR_SCHED_CORE) } },
	/* More filters are allowed, but not a second listener: the supervisor has one. EBUSY is the
	 * kernel's own answer in that case. */
	{ "seccomp", IN_ALL, TO_ANY, DENY(EBUSY), { ANY_OF(1, K_NEW_LISTENER) } },

	/* Socket filters are compiled to machine code from a budget of the whole machine
	 * (net.core.bpf_jit_limit). If it is used up, other processes cannot load a filter, not
	 * even one of seccomp. ENOMEM is the kernel's own answer at a socket's limit. */
	NO_SOCKET_PROGRAM(K_SO_ATTACH),
	NO_SOCKET_PROGRAM(K_SO_ATTACH_BPF),
	NO_SOCKET_PROGRAM(K_SO_PORT_CBPF),
	NO_SOCKET_PROGRAM(K_SO_PORT_EBPF),
	/* Huge pages come from a pool that the administrator has reserved. Neither a cgroup nor the
	 * watchdog counts them as memory. ENOMEM is the kernel's own answer without such a pool,
	 * which is the usual case. EINVAL is its answer to flags that it does not know: Chromium
	 * asks with all flags whether memfd_create() exists, and aborts after any other errno. */
	{ "mmap", IN_ALL, TO_ANY, DENY(ENOMEM), { ANY_OF(3, K_MAP_HUGETLB) } },
	{ "memfd_create",
	  IN_ALL,
	  TO_ANY,
	  DENY(EINVAL),
	  { ANY_OF(1, K_MFD_HUGETLB), ANY_OF(1, K_MFD_NO_FLAG) } },
	{ "memfd_create", IN_ALL, TO_ANY, DENY(ENOMEM), { ANY_OF(1, K_MFD_HUGETLB) } },
	{ "shmget", IN_ALL, TO_OWN, DENY(EPERM), { ANY_OF(2, K_SHM_HUGETLB) } },

	/* Without a pid namespace, the skill sees other processes of the owner: it may change only
	 * its own limits and priorities. */
	{ "prlimit64", IN_ALL, TO_NONE, DENY(EPERM), { NOT(0, 0) } },
	{ "setpriority", IN_ALL, TO_NONE, DENY(EPERM), { NOT(0, K_PRIO_PROCESS) } },
	{ "setpriority", IN_ALL, TO_NONE, DENY(EPERM), { NOT(1, 0) } },
	{ "ioprio_set", IN_ALL, TO_NONE, DENY(EPERM), { IS(0, K_IOPRIO_USER) } },
	{ "ioprio_set", IN_ALL, TO_NONE, DENY(EPERM), { NOT(1, 0) } },
	{ "sched_setaffinity", IN_ALL, TO_NONE, DENY(EPERM), { NOT(0, 0) } },
	{ "sched_setscheduler", IN_ALL, TO_NONE, DENY(EPERM), { NOT(0, 0) } },
	{ "sched_setparam", IN_ALL, TO_NONE, DENY(EPERM), { NOT(0, 0) } },
	{ "sched_setattr", IN_ALL, TO_NONE, DENY(EPERM), { NOT(0, 0) } },

	/* init enforces the limits of time and memory, so the skill must not change init's limits
	 * or priority. "All processes of this user" includes init. Process groups need no rule:
	 * init's group is that of the caller and has no number in the sandbox. */
	{ "prlimit64", IN_ALL, TO_OWN, DENY(EPERM), { IS(0, K_INIT) } },
	{ "setpriority", IN_ALL, TO_OWN, DENY(EPERM), { IS(0, K_PRIO_USER) } },
	{ "setpriority", IN_ALL, TO_OWN, DENY(EPERM), { IS(1, K_INIT) } },
	{ "ioprio_set", IN_ALL, TO_OWN, DENY(EPERM), { IS(0, K_IOPRIO_USER) } },
	{ "ioprio_set", IN_ALL, TO_OWN, DENY(EPERM), { IS(1, K_INIT) } },
	{ "sched_setaffinity", IN_ALL, TO_OWN, DENY(EPERM), { IS(0, K_INIT) } },
	{ "sched_setscheduler", IN_ALL, TO_OWN, DENY(EPERM), { IS(0, K_INIT) } },
	{ "sched_setparam", IN_ALL, TO_OWN, DENY(EPERM), { IS(0, K_INIT) } },
	{ "sched_setattr", IN_ALL, TO_OWN, DENY(EPERM), { IS(0, K_INIT) } },

	/* Core dumps are off because of a limit of 1. With this value, the kernel also starts no
	 * program that processes core dumps; with a limit of 0 it does (core(5)). A program that
	 * turns core dumps off itself gets success. A program that also asks for the old value in
	 * the same call is refused, because the filter cannot return that value. */
	{ "setrlimit", IN_ALL, TO_ANY, NO_OP, { IS(0, K_RLIMIT_CORE) } },
	{ "prlimit64",
	  IN_ALL,
	  TO_ANY,
	  DENY(EINVAL),
	  { IS(1, K_RLIMIT_CORE), NOT(2, 0), NOT(3, 0) } },
	{ "prlimit64", IN_ALL, TO_ANY, NO_OP, { IS(1, K_RLIMIT_CORE), NOT(2, 0) } },
	{ "prlimit64", IN_ALL, TO_ANY, NO_OP, { IS(1, K_RLIMIT_CORE), NOT(2 | UPPER_HALF, 0) } },

	/* Without its own view of files, the skill sees the owner's files, and Landlock checks
	 * neither modes nor times. Programs need to change both, but none needs a file that every
	 * user can write. */
	{ "chmod", IN_ALL, TO_NONE, DENY(EPERM), { ANY_OF(1, K_S_IWOTH) } },
	{ "fchmodat", IN_ALL, TO_NONE, DENY(EPERM), { ANY_OF(2, K_S_IWOTH) } },
	{ "fchmodat2", IN_ALL, TO_NONE, DENY(EPERM), { ANY_OF(2, K_S_IWOTH) } },
	UNSEEN_OPEN("open", 1),
	UNSEEN_OPEN("openat", 2),

	/* Without an address, sendto() uses the connection, and the supervisor has already checked
	 * its connect(). */
	{ "sendto", IN_ALL, TO_ANY, SECCOMP_RET_USER_NOTIF, { NOT(4, 0) } },
	{ "sendto", IN_ALL, TO_ANY, SECCOMP_RET_USER_NOTIF, { NOT(4 | UPPER_HALF, 0) } },

	/* init and the dialler open files only to read. Only the dialler maps executable memory,
	 * because its resolver loads modules. */
	{ "openat", IN_INIT | IN_DIALLER, TO_ANY, ALLOW, { MASKED(2, K_O_WRITES, 0) } },
	{ "open", IN_DIALLER, TO_ANY, ALLOW, { MASKED(1, K_O_WRITES, 0) } },
	{ "mmap", IN_INIT | IN_BROKER, TO_ANY, ALLOW, { MASKED(2, K_PROT_EXEC, 0) } },
	FCNTL(IN_INIT | IN_DIALLER, K_F_GETFL),
	FCNTL(IN_INIT | IN_DIALLER, K_F_GETFD),
	FCNTL(IN_DIALLER, K_F_SETFL),
	FCNTL(IN_DIALLER, K_F_SETFD),
	FCNTL(IN_DIALLER, K_F_DUPFD),

	/* The broker may make these calls only with exactly the arguments that it uses. A socket
	 * that the dialler has connected is in the host's network. After the server has reset it,
	 * MSG_FASTOPEN could connect it to any other address. */
	{ "accept4", IN_BROKER, TO_ANY, ALLOW, { IS(3, K_O_CLOEXEC | K_O_NONBLOCK) } },
	{ "pipe2", IN_BROKER, TO_ANY, ALLOW, { IS(1, K_O_CLOEXEC | K_O_NONBLOCK) } },
	{ "shutdown", IN_BROKER, TO_ANY, ALLOW, { IS(1, SHUT_WR) } },
	{ "sendto", IN_BROKER, TO_ANY, ALLOW, { MASKED(3, K_FASTOPEN, 0) } },
	{ "sendmsg", IN_BROKER, TO_ANY, ALLOW, { MASKED(2, K_FASTOPEN, 0) } },
	SOCKOPT(IN_BROKER, SOL_SOCKET, SO_LINGER),

	/* The dialler: threads but no processes; TCP and UDP clients; clients of the resolver's
	 * local services (nscd, systemd-resolved, avahi, sssd) and of the kernel's list of
	 * addresses. */
	{ "clone",
	  IN_DIALLER,
	  TO_ANY,
	  ALLOW,
	  { MASKED(0, CLONE_THREAD | NAMESPACES, CLONE_THREAD) } },
	DIAL_SOCKET(AF_INET, SOCK_STREAM),
	DIAL_SOCKET(AF_INET, SOCK_DGRAM),
	DIAL_SOCKET(AF_INET6, SOCK_STREAM),
	DIAL_SOCKET(AF_INET6, SOCK_DGRAM),
	DIAL_SOCKET(AF_UNIX, SOCK_STREAM),
	{ "socket", IN_DIALLER, TO_ANY, ALLOW, { IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE) } },
	{ "socketpair",
	  IN_DIALLER,
	  TO_ANY,
	  ALLOW,
	  { IS(0, AF_UNIX), MASKED(1, K_SOCK_TYPE, SOCK_SEQPACKET) } },
	{ "setsockopt", IN_DIALLER, TO_ANY, ALLOW, { IS(1, SOL_SOCKET) } },
	SOCKOPT(IN_DIALLER, IPPROTO_IP, IP_RECVERR),
	SOCKOPT(IN_DIALLER, IPPROTO_IP, IP_MTU_DISCOVER),
	SOCKOPT(IN_DIALLER, IPPROTO_IPV6, IPV6_RECVERR),
	SOCKOPT(IN_DIALLER, IPPROTO_IPV6, IPV6_MTU_DISCOVER),
	SOCKOPT(IN_DIALLER, IPPROTO_IPV6, IPV6_V6ONLY),
	SOCKOPT(IN_DIALLER, IPPROTO_TCP, TCP_NODELAY),
	SOCKOPT(IN_DIALLER, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE), /* race_aim() */
	SOCKOPT(IN_DIALLER, IPPROTO_TCP, TCP_FASTOPEN_CONNECT),
	SOCKOPT(IN_DIALLER, IPPROTO_TCP, TCP_QUICKACK),
	{ "ioctl", IN_DIALLER, TO_ANY, ALLOW, { IS(1, K_FIONREAD) } },
	{ "ioctl", IN_DIALLER, TO_ANY, ALLOW, { IS(1, K_FIONBIO) } },
	{ "ioctl", IN_DIALLER, TO_ANY, ALLOW, { MASKED(1, ~0xffU, K_SIOC_GETTERS) } },
	{ "prctl", IN_DIALLER, TO_ANY, ALLOW, { IS(0, K_PR_SET_NAME) } },
	{ "prctl", IN_DIALLER, TO_ANY, ALLOW, { IS(0, K_PR_SET_VMA) } },
	{ "prlimit64", IN_DIALLER, TO_ANY, ALLOW, { IS(0, 0) } },

	/* The maker may make Unix sockets that can be connected, and answer calls that wait for the
	 * supervisor. */
	MAKE_SOCKET("socket", SOCK_STREAM),
	MAKE_SOCKET("socket", SOCK_SEQPACKET),
	MAKE_SOCKET("socketpair", SOCK_STREAM),
	MAKE_SOCKET("socketpair", SOCK_SEQPACKET),
	{ "ioctl", IN_MAKER, TO_ANY, ALLOW, { IS(1, K_NOTIF_SEND) } },
	{ "ioctl", IN_MAKER, TO_ANY, ALLOW, { IS(1, K_NOTIF_VALID) } },
	{ "ioctl", IN_MAKER, TO_ANY, ALLOW, { IS(1, K_NOTIF_ADDFD) } },
	FCNTL(IN_MAKER, K_F_SETFL),
};
const size_t SECCOMP_N_RULES = sizeof(SECCOMP_RULES) / sizeof(SECCOMP_RULES[0]);

const char SECCOMP_OBSERVED[] =
        "open openat creat unlink unlinkat rmdir rename renameat renameat2 link linkat symlink "
        "symlinkat mkdir mkdirat mknod mknodat chmod fchmod fchmodat fchmodat2 chown lchown fchown "
        "fchownat truncate ftruncate setxattr lsetxattr fsetxattr setxattrat removexattr "
        "lremovexattr fremovexattr removexattrat connect bind sendmsg sendmmsg execve execveat "
        "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal openat2 "
        "io_uring_setup io_uring_enter io_uring_register add_key request_key keyctl "
        "access faccessat faccessat2 chdir";

/* ---- calls that are decided by their name ------------------------------ */

#define PLACEMENT                                                                                  \
	"mbind set_mempolicy get_mempolicy set_mempolicy_home_node move_pages migrate_pages "      \
	"process_madvise"

/* Landlock does not check these calls, and truncate() only since Linux 6.2. Without its own view of
 * files, the skill could change every file of the owner with them. Calls on an fd are safe, as
 * Landlock has checked the open. */
#define BY_PATH                                                                                    \
	"chown lchown fchownat truncate setxattr lsetxattr setxattrat removexattr lremovexattr "   \
	"removexattrat"

const struct seccomp_group SECCOMP_GROUPS[] = {
	/* Files: the mounts and Landlock decide which. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "read write open openat creat close stat fstat lstat newfstatat statx lseek pread64 "
	  "pwrite64 readv writev preadv pwritev preadv2 pwritev2 access faccessat faccessat2 "
	  "getdents getdents64 getcwd chdir fchdir rename renameat renameat2 mkdir mkdirat rmdir "
	  "link linkat unlink unlinkat symlink symlinkat readlink readlinkat chmod fchmod fchmodat "
	  "fchmodat2 fchown umask ftruncate fallocate fsync fdatasync sync syncfs sync_file_range "
	  "flock fcntl ioctl utime utimes futimesat utimensat mknod mknodat statfs fstatfs "
	  "readahead fadvise64 cachestat copy_file_range sendfile splice tee vmsplice close_range "
	  "dup dup2 dup3 pipe pipe2" },
	/* Extended attributes: security.* and trusted.* need a capability. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr fremovexattr "
	  "getxattrat listxattrat" },
	{ IN_ALL, TO_OWN, ALLOW, BY_PATH },
	{ IN_ALL, TO_NONE, DENY(EPERM), BY_PATH },
	/* Waiting. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
	  "epoll_pwait2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime "
	  "timerfd_gettime inotify_init inotify_init1 inotify_add_watch inotify_rm_watch" },
	/* The process's own memory. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "mmap mprotect munmap mremap msync mincore madvise brk mlock mlock2 munlock mlockall "
	  "munlockall memfd_create pkey_mprotect pkey_alloc pkey_free mseal map_shadow_stack" },
	/* Threads and locks. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "futex futex_waitv futex_wake futex_wait futex_requeue set_robust_list get_robust_list "
	  "set_tid_address gettid rseq membarrier getcpu sched_yield sched_setparam sched_getparam "
	  "sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min "
	  "sched_rr_get_interval sched_setaffinity sched_getaffinity sched_setattr sched_getattr" },
	/* Processes: start, end, signals, sessions; the skill has its own pid namespace. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open "
	  "pidfd_send_signal rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending "
	  "rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo rt_sigsuspend sigaltstack "
	  "restart_syscall pause getpid getppid getpgid getpgrp setpgid getsid setsid getpriority "
	  "setpriority ioprio_get ioprio_set getrlimit setrlimit prlimit64 getrusage times" },
	{ IN_WIDE, TO_ANY, ALLOW, "clone fork vfork" },
	{ IN_STRICT, TO_ANY, DENY(EPERM), "clone fork vfork" },
	/* User and group ids: without a capability, the kernel refuses dangerous changes. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid "
	  "setregid setresuid setresgid setfsuid setfsgid setgroups capget capset" },
	/* Clocks and timers: reading and waiting. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep getitimer "
	  "setitimer alarm timer_create timer_settime timer_gettime timer_getoverrun "
	  "timer_delete" },
	/* Information about the machine and the process. */
	{ IN_ALL, TO_ANY, ALLOW, "uname sysinfo getrandom prctl arch_prctl" },
	/* A program may confine itself further. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self" },
	/* The kernel's own trampolines make these calls when the administrator traces a library.
	 * From other code they cause SIGILL. */
	{ IN_ALL, TO_ANY, ALLOW, "uretprobe uprobe" },

	/* Calls on existing sockets. The rules above decide which sockets can be created. */
	{ IN_ALL, TO_ANY, ALLOW,
	  "connect accept accept4 bind listen getsockname getpeername setsockopt getsockopt "
	  "shutdown sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg" },
	{ IN_WIDE, TO_ANY, DENY(EAFNOSUPPORT), "socket socketpair" },
	{ IN_STRICT, TO_ANY, DENY(EACCES), "socket socketpair" },

	/* SysV IPC and POSIX message queues: only with an IPC namespace. (POSIX semaphores and
	 * POSIX shared memory are files.) */
	{ IN_ALL, TO_OWN, ALLOW,
	  "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl "
	  "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr" },
	{ IN_ALL, TO_NONE, DENY(ENOSYS),
	  "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl "
	  "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr" },

	/* Access to other processes, for debuggers: only to processes of the same sandbox. */
	{ IN_NARROW, TO_ANY, DENY(EPERM), "ptrace process_vm_readv process_vm_writev kcmp" },
	{ IN_PERMISSIVE, TO_OWN, ALLOW, "ptrace process_vm_readv process_vm_writev kcmp" },
	{ IN_PERMISSIVE, TO_NONE, DENY(EPERM), "ptrace process_vm_readv process_vm_writev kcmp" },
	{ IN_ALL, TO_ANY, DENY(EPERM), "pidfd_getfd" },
	{ IN_NARROW, TO_ANY, DENY(EPERM), "personality" },
	{ IN_PERMISSIVE, TO_ANY, ALLOW, "personality" },

	/* Memory placement: after ENOSYS, libnuma assumes a machine without NUMA. */
	{ IN_NARROW, TO_ANY, DENY(ENOSYS), PLACEMENT },
	{ IN_PERMISSIVE, TO_OWN, ALLOW, PLACEMENT },
	{ IN_PERMISSIVE, TO_NONE, DENY(ENOSYS), PLACEMENT },

	/* File handles bypass mounts. Programs try name_to_handle_at() and accept EOPNOTSUPP;
	 * open_by_handle_at() opens files. */
	{ IN_NARROW, TO_ANY, DENY(EOPNOTSUPP), "name_to_handle_at" },
	{ IN_PERMISSIVE, TO_ANY, ALLOW, "name_to_handle_at" },
	{ IN_ALL, TO_ANY, DENY(EPERM), "open_by_handle_at" },

	/* The arguments of these calls are in memory, which a filter cannot read; programs can use
	 * clone() and openat() instead. io_uring makes calls that no filter sees. */
	{ IN_ALL, TO_ANY, DENY(ENOSYS),
	  "clone3 openat2 io_uring_setup io_uring_enter io_uring_register" },
	/* The contexts of these calls count against a limit of the whole machine (65,536).
	 * Databases use threads instead. */
	{ IN_ALL, TO_ANY, DENY(ENOSYS),
	  "io_setup io_destroy io_getevents io_submit io_cancel io_pgetevents" },
	/* Keyrings are not completely separated by namespaces. Kerberos uses files instead. */
	{ IN_ALL, TO_ANY, DENY(ENOSYS), "add_key request_key keyctl" },
	/* No program needs these calls: they are obsolete, or too new to be relied upon. */
	{ IN_ALL, TO_ANY, DENY(ENOSYS),
	  "remap_file_pages memfd_secret process_mrelease lsm_get_self_attr lsm_set_self_attr "
	  "lsm_list_modules file_getattr file_setattr ustat sysfs _sysctl uselib nfsservctl "
	  "getpmsg putpmsg afs_syscall tuxcall security vserver epoll_ctl_old epoll_wait_old "
	  "set_thread_area get_thread_area" },

	/* Namespaces and mounts. */
	{ IN_ALL, TO_ANY, DENY(EPERM),
	  "unshare setns mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick move_mount "
	  "open_tree open_tree_attr mount_setattr statmount listmount" },
	/* Large interfaces of the kernel. */
	{ IN_ALL, TO_ANY, DENY(EPERM),
	  "bpf perf_event_open userfaultfd fanotify_init fanotify_mark lookup_dcookie modify_ldt" },
	/* Calls for the administrator; programs try some of them. */
	{ IN_ALL, TO_ANY, DENY(EPERM),
	  "quotactl quotactl_fd syslog acct swapon swapoff settimeofday clock_settime adjtimex "
	  "clock_adjtime sethostname setdomainname vhangup" },
	/* Used only by attacks: loading kernel code, access to I/O ports, reboot. */
	{ IN_ALL, TO_ANY, KILL,
	  "kexec_load kexec_file_load init_module finit_module delete_module create_module "
	  "query_module get_kernel_syms reboot iopl ioperm" },

	/* The egress broker: it opens no files, gets new sockets only by accept4(), and starts no
	 * programs. */
	{ IN_BROKER, TO_ANY, ALLOW,
	  "read write recvfrom recvmsg splice close getsockname epoll_wait epoll_pwait epoll_ctl "
	  "clock_gettime exit exit_group rt_sigreturn rt_sigprocmask restart_syscall munmap brk "
	  "madvise mremap "
	  /* used before _exit() in sanitizer builds */
	  "sigaltstack" },

	/* The dialler: libc's resolver and the modules that nsswitch.conf names, some of which are
	 * clients of local services. It writes no files, starts no programs, does not access other
	 * processes, and accepts no connections. */
	{ IN_DIALLER, TO_ANY, ALLOW,
	  "read readv pread64 write writev close lseek fstat stat lstat newfstatat statx access "
	  "faccessat faccessat2 readlink readlinkat getdents getdents64 statfs fstatfs getcwd dup "
	  "mmap munmap mprotect mremap madvise brk "
	  "connect bind getsockname getpeername getsockopt shutdown sendto sendmsg sendmmsg "
	  "recvfrom recvmsg recvmmsg "
	  "poll ppoll select pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 "
	  "timerfd_create timerfd_settime pipe2 "
	  "futex set_robust_list rseq gettid getpid getppid sched_yield sched_getaffinity "
	  "sched_getparam sched_getscheduler sigaltstack rt_sigaction rt_sigprocmask rt_sigreturn "
	  "restart_syscall exit exit_group "
	  "clock_gettime clock_getres gettimeofday time nanosleep clock_nanosleep getrandom uname "
	  "sysinfo getuid geteuid getgid getegid getresuid getresgid getgroups" },
	{ IN_DIALLER, TO_ANY, DENY(EACCES), "open openat" },
	{ IN_DIALLER, TO_ANY, DENY(EAFNOSUPPORT), "socket socketpair" },
	{ IN_DIALLER, TO_ANY, DENY(ENOPROTOOPT), "setsockopt" },
	{ IN_DIALLER, TO_ANY, DENY(ENOTTY), "ioctl" },
	{ IN_DIALLER, TO_ANY, DENY(EINVAL), "fcntl prctl" },
	{ IN_DIALLER, TO_ANY, DENY(EPERM), "clone prlimit64" },

	/* The maker of unix sockets: it opens no file, and reads only from an fd that it is
	 * given. */
	{ IN_MAKER, TO_ANY, ALLOW,
	  "bind connect listen unlinkat chdir umask fchmod close poll ppoll recvmsg sendto pread64 "
	  "clock_gettime exit exit_group rt_sigreturn restart_syscall "
	  /* used before _exit() in sanitizer builds */
	  "sigaltstack" },

	/* init: any other call kills it, and the sandbox with it. */
	{ IN_INIT, TO_ANY, ALLOW,
	  "read pread64 lseek readlinkat getdents64 statfs fstatfs fstat newfstatat close write "
	  "sendto sendmsg recvfrom recvmsg poll ppoll wait4 waitid kill tgkill getpid gettid exit "
	  "exit_group rt_sigprocmask rt_sigaction rt_sigreturn rt_sigtimedwait restart_syscall "
	  "clock_gettime nanosleep clock_nanosleep munmap brk sysinfo capset "
	  /* used before _exit() in sanitizer builds */
	  "sigaltstack "
	  /* the watchdog: which processes share memory, and which memory only an fd refers to */
	  "kcmp pidfd_open pidfd_getfd" },
};
const size_t SECCOMP_N_GROUPS = sizeof(SECCOMP_GROUPS) / sizeof(SECCOMP_GROUPS[0]);

/* From 424 on, the numbers are the same on every architecture. */
#define EVERYWHERE(name, nr)                                                                       \
	{                                                                                          \
		name, nr, nr                                                                       \
	}

const struct seccomp_number SECCOMP_NUMBERS[] = {
	{ "uretprobe", 335, -1 },
	{ "uprobe", 336, -1 },
	EVERYWHERE("memfd_secret", 447),
	EVERYWHERE("process_mrelease", 448),
	EVERYWHERE("futex_waitv", 449),
	EVERYWHERE("set_mempolicy_home_node", 450),
	EVERYWHERE("cachestat", 451),
	EVERYWHERE("fchmodat2", 452),
	EVERYWHERE("map_shadow_stack", 453),
	EVERYWHERE("futex_wake", 454),
	EVERYWHERE("futex_wait", 455),
	EVERYWHERE("futex_requeue", 456),
	EVERYWHERE("statmount", 457),
	EVERYWHERE("listmount", 458),
	EVERYWHERE("lsm_get_self_attr", 459),
	EVERYWHERE("lsm_set_self_attr", 460),
	EVERYWHERE("lsm_list_modules", 461),
	EVERYWHERE("mseal", 462),
	EVERYWHERE("setxattrat", 463),
	EVERYWHERE("getxattrat", 464),
	EVERYWHERE("listxattrat", 465),
	EVERYWHERE("removexattrat", 466),
	EVERYWHERE("open_tree_attr", 467),
	EVERYWHERE("file_getattr", 468),
	EVERYWHERE("file_setattr", 469),
};
const size_t SECCOMP_N_NUMBERS = sizeof(SECCOMP_NUMBERS) / sizeof(SECCOMP_NUMBERS[0]);
