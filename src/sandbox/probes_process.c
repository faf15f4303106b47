/* probes_process.c - attacks on other processes and on the skill's own identity. The control
 * attacks the helper, an ordinary process of the owner's that the supervisor started for this.
 * Inside the sandbox the target is the helper's pid on the host, or the sandbox's own PID 1. */
#include "sandbox/prove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"

/* ---- the sandbox's own init, through /proc ------------------------------------ */

static void target_path(const struct attack *a, const struct prove_world *w, char *out, size_t size)
{
	snprintf(out, size, "/proc/%d/%s", w->outside ? (int)w->helper : 1, a->arg);
}

ATTACK(proc_read)
{
	char path[64];
	char c;

	target_path(a, w, path, sizeof(path));
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return attack_errno(f, "open");
	}
	/* The helper's memory contains the secret at this address. */
	ssize_t n = strcmp(a->arg, "mem") == 0 ? pread(fd, &c, 1, (off_t)(uintptr_t)w->secret_at)
	                                       : read(fd, &c, 1);
	if (n < 0) {
		return attack_errno(f, "read");
	}
	return n == 1 ? attack_worked(f, "readable") : attack_failed(f, "empty");
}

ATTACK(proc_link)
{
	char path[64];
	char to[256];

	target_path(a, w, path, sizeof(path));
	return readlink(path, to, sizeof(to)) > 0 ? attack_worked(f, "readable")
	                                          : attack_errno(f, "readlink");
}

ATTACK(proc_dir)
{
	char path[64];

	target_path(a, w, path, sizeof(path));
	DIR *d = opendir(path);
	if (d == NULL) {
		return attack_errno(f, "open");
	}
	int seen = 0;
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		seen += e->d_name[0] != '.';
	}
	(void)closedir(d);
	return seen > 0 ? attack_worked(f, "%d entries", seen) : attack_failed(f, "empty");
}

/* ---- the owner's other processes ------------------------------------------------- */

ATTACK(see_helper)
{
	char comm[32] = "";
	char path[300];

	DIR *d = opendir("/proc");
	bool found = false;
	for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;) {
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, comm, sizeof(comm) - 1);
		comm[n > 0 ? n - 1 : 0] = '\0';
		found = strcmp(comm, w->helper_comm) == 0;
	}
	if (d != NULL) {
		(void)closedir(d);
	}
	return found ? attack_worked(f, "the process is listed in /proc")
	             : attack_failed(f, "not listed");
}

/* Inside the sandbox, the helper's pid may belong to another process. So the helper itself counts
 * the signals that arrive. */
ATTACK(signal_helper)
{
	unsigned before = *w->helper_hits;
	int r = kill(w->helper, SIGURG); /* processes ignore SIGURG by default */
	int e = errno;

	for (int i = 0; i < 50 && r == 0 && *w->helper_hits == before; i++) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	if (*w->helper_hits != before) {
		return attack_worked(f, "the signal arrived");
	}
	errno = e;
	return r == 0 ? attack_failed(f, "nothing arrived") : attack_errno(f, "kill");
}

ATTACK(ptrace_helper)
{
	int status = 0;
	long word = 0;

	if (ptrace(PTRACE_ATTACH, w->helper, NULL, NULL) != 0) {
		return attack_errno(f, "attach");
	}
	(void)waitpid(w->helper, &status, __WALL);
	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, w->helper, w->secret_at, NULL);
	int e = errno;
	(void)ptrace(PTRACE_DETACH, w->helper, NULL, NULL);
	if (e == 0 && memcmp(&word, w->secret, sizeof(word)) == 0) {
		return attack_worked(f, "attached and read its memory");
	}
	return attack_failed(f, "attached to another process");
}

ATTACK(ptrace_traceme)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? attack_worked(f, "allowed")
	                                                  : attack_errno(f, "ptrace");
}

ATTACK(vm_read)
{
	char got[sizeof(w->secret)] = "";
	struct iovec here = { got, sizeof(got) };
	struct iovec there = { (void *)(uintptr_t)w->secret_at, sizeof(got) };

	if (process_vm_readv(w->helper, &here, 1, &there, 1, 0) < 0) {
		return attack_errno(f, "process_vm_readv");
	}
	return memcmp(got, w->secret, sizeof(got)) == 0 ? attack_worked(f, "read its memory")
	                                                : attack_failed(f, "another process");
}

/* Writes nothing: both lengths are 0. */
ATTACK(vm_write)
{
	struct iovec none = { NULL, 0 };

	return process_vm_writev(w->outside ? w->helper : getpid(), &none, 1, &none, 1, 0) == 0
	               ? attack_worked(f, "the kernel accepts the call")
	               : attack_errno(f, "process_vm_writev");
}

ATTACK(take_fd)
{
	auto_fd pidfd = (int)syscall(SYS_pidfd_open, w->outside ? w->helper : 1, 0U);
	if (pidfd < 0) {
		return attack_errno(f, "pidfd_open");
	}
	auto_fd fd = (int)syscall(SYS_pidfd_getfd, pidfd, 0, 0U);
	return fd >= 0 ? attack_worked(f, "took its fd 0") : attack_errno(f, "pidfd_getfd");
}

/* If the session's leader lies outside the pid namespace, getsid() returns 0. In the same pid
 * namespace the numbers can be compared. */
ATTACK(session)
{
	pid_t sid = getsid(0);
	bool same_ns = prove_own_ns("pid") == w->pid_ns;

	return sid == 0 || (same_ns && sid == w->session)
	               ? attack_worked(f, "in the caller's session")
	               : attack_failed(f, "in its own session %d", (int)sid);
}

ATTACK(sysv_shm)
{
	if (w->shm_id < 0) {
		return attack_void(f, "cannot make shared memory for this attack");
	}
	void *p = shmat(w->shm_id, NULL, SHM_RDONLY);
	if (p == (void *)-1) {
		return attack_errno(f, "shmat");
	}
	bool same = memcmp(p, w->secret, sizeof(w->secret)) == 0;
	(void)shmdt(p);
	return same ? attack_worked(f, "read the secret") : attack_failed(f, "another segment");
}

/* ---- the skill's identity ------------------------------------------------------------- */

/* Returns the value of a line of /proc/self/status; -1 if the line is missing. */
static long long status_value(const char *key, int base)
{
	char text[4096];
	size_t len = strlen(key);

	auto_fd fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0) {
		return -1;
	}
	text[n] = '\0';
	for (char *p = text; p != NULL; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, len) == 0 && p[len] == ':') {
			return (long long)strtoull(p + len + 1, NULL, base);
		}
	}
	return -1;
}

ATTACK(cap_set)
{
	long long caps = status_value(a->arg, 16);

	if (caps < 0) {
		return attack_void(f, "/proc/self/status cannot be read");
	}
	return caps != 0 ? attack_worked(f, "%s %llx", a->arg, (unsigned long long)caps)
	                 : attack_failed(f, "%s 0", a->arg);
}

/* Only a process with CAP_SETPCAP can empty the bounding set. A sandbox without a user namespace
 * does not have it, so there no_new_privs counts as the defence. */
ATTACK(cap_bounding)
{
	enum attack_result r = cap_set(a, w, f);

	if (r == ATTACK_WORKED && !w->outside && prove_own_ns("user") == w->user_ns &&
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
		return attack_failed(f, "the sandbox cannot remove these capabilities without a "
		                        "user namespace, but no_new_privs is set");
	}
	return r;
}

ATTACK(new_privs)
{
	int on = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);

	return on == 0 ? attack_worked(f, "setuid programs would gain privileges")
	               : attack_failed(f, "no_new_privs is set");
}

ATTACK(no_filter)
{
	long long mode = status_value("Seccomp", 10);

	return mode != 2 ? attack_worked(f, "no system call filter (mode %lld)", mode)
	                 : attack_failed(f, "filtered");
}

ATTACK(become_root)
{
	if (setuid(0) == 0 && geteuid() == 0) {
		return attack_worked(f, "is uid 0");
	}
	return attack_errno(f, "setuid");
}

/* The process is root if its uid is 0 inside, or is mapped to 0 in the parent namespace. */
ATTACK(is_root)
{
	char line[128] = "";
	char *p = line;

	auto_fd fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0) {
		return attack_void(f, "/proc/self/uid_map cannot be read");
	}
	unsigned long inside = strtoul(p, &p, 10);
	unsigned long above = strtoul(p, &p, 10);
	unsigned long host = above + geteuid() - inside;
	if (geteuid() == 0 || host == 0) {
		return attack_worked(f, "uid %u, %lu outside", (unsigned)geteuid(), host);
	}
	return attack_failed(f, "uid %u, %lu outside", (unsigned)geteuid(), host);
}

/* Sets the limits that the target has already, so that the control changes nothing. */
ATTACK(set_limit)
{
	pid_t target = w->outside ? w->helper : 1;
	struct rlimit r;

	if (prlimit(target, RLIMIT_NOFILE, NULL, &r) != 0 ||
	    prlimit(target, RLIMIT_NOFILE, &r, NULL) != 0) {
		return attack_errno(f, "prlimit");
	}
	return attack_worked(f, "the limits of the process can be lowered");
}

/* ---- the table -------------------------------------------------------------------------- */

static const struct attack PROCESS[] = {
	ROW_ARG("init-environ", "read the environment of the sandbox's init", proc_read, "environ"),
	ROW_ARG("init-mem", "open the memory of the sandbox's init", proc_read, "mem"),
	ROW_ARG("init-maps", "read the memory map of the sandbox's init", proc_read, "maps"),
	ROW_ARG("init-fd", "list the files of the sandbox's init", proc_dir, "fd"),
	ROW_ARG("init-root", "leave the sandbox through /proc/1/root", proc_link, "root"),
	ROW_ARG("init-cwd", "leave the sandbox through /proc/1/cwd", proc_link, "cwd"),
	ROW("init-limits", "lower the limits of the sandbox's init", set_limit),
	ROW("see-process", "see a process of the owner in /proc", see_helper),
	ROW("signal", "send a signal to a process of the owner", signal_helper),
	ROW("ptrace", "attach to a process of the owner as a debugger", ptrace_helper),
	{ "ptrace-traceme", "use ptrace at all", ptrace_traceme, NULL, NULL, 0, 0, 1 },
	ROW("vm-read", "read the memory of a process of the owner", vm_read),
	{ "vm-write", "use process_vm_writev at all", vm_write, NULL, NULL, 0, 0, 1 },
	ROW("take-fd", "take a file descriptor out of another process", take_fd),
	ROW("session", "stay in the caller's session", session),
	ROW("sysv-shm", "attach to shared memory of the owner", sysv_shm),
	{ "caps", "have an effective capability", cap_set, "CapEff", NULL, 1, 0, 0 },
	{ "caps-permitted", "have a permitted capability, which it could make effective", cap_set,
	  "CapPrm", NULL, 1, 0, 0 },
	ROW_ARG("caps-bounding", "have a capability that execve could give back", cap_bounding,
	        "CapBnd"),
	ROW("new-privs", "gain privileges by execve", new_privs),
	ROW("filter", "run without a system call filter", no_filter),
	{ "setuid", "become root with setuid(0)", become_root, NULL, NULL, 1, 0, 0 },
	{ "root", "be root, inside or outside the sandbox", is_root, NULL, NULL, 1, 0, 0 },
};

const struct attack_group ATTACKS_PROCESS = { PROCESS, ARRAY_LEN(PROCESS) };
