/* probes_files.c - attacks on files, the environment and inherited file descriptors. The control
 * runs the same code. Where the attack would change the real system, the control makes only a file
 * without a name (O_TMPFILE), or opens a file for writing and never writes. */
#include "sandbox/prove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/own.h"

/* ---- the environment -------------------------------------------------------- */

ATTACK(env_own)
{
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		if (strncmp(*e, PROVE_CANARY "=", sizeof(PROVE_CANARY)) == 0 &&
		    strcmp(*e + sizeof(PROVE_CANARY), w->secret) == 0) {
			return attack_worked(f, "the variable exists, with its value");
		}
	}
	return attack_failed(f, "no such variable");
}

/* True if one /proc/PID/environ contains the token as a whole entry. */
static bool environ_has(const char *path, const char *token)
{
	static char text[128 * 1024];
	size_t len = 0;
	size_t want = strlen(token) + 1;

	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;
	while (fd >= 0 && len < sizeof(text) &&
	       (n = read(fd, text + len, sizeof(text) - len)) > 0) {
		len += (size_t)n;
	}
	return memmem(text, len, token, want) != NULL;
}

ATTACK(env_proc)
{
	int seen = 0;

	if (w->env_token[0] == '\0') {
		return attack_void(f, "every variable of the caller is granted");
	}
	DIR *d = opendir("/proc");
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		char path[300];
		if (strspn(e->d_name, "0123456789") != strlen(e->d_name)) {
			continue;
		}
		seen++;
		snprintf(path, sizeof(path), "/proc/%s/environ", e->d_name);
		if (environ_has(path, w->env_token)) {
			(void)closedir(d);
			return attack_worked(f, "found in the environment of a process");
		}
	}
	if (d != NULL) {
		(void)closedir(d);
	}
	return attack_failed(f, "not in any of %d processes", seen);
}

/* ---- reading ------------------------------------------------------------------ */

ATTACK(read_decoy)
{
	auto_fd fd = open(w->decoy, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return attack_errno(f, "open");
	}
	return prove_reads_secret(w, fd) ? attack_worked(f, "read the secret")
	                                 : attack_failed(f, "another file has this path");
}

ATTACK(read_shm_file)
{
	auto_fd fd = open(w->shm_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return attack_errno(f, "open");
	}
	return prove_reads_secret(w, fd) ? attack_worked(f, "read the secret")
	                                 : attack_failed(f, "another file has this path");
}

ATTACK(open_path)
{
	if (prove_granted(w->plan, a->arg)) {
		return attack_void(f, "the plan grants %s", a->arg);
	}
	auto_fd fd = open(a->arg, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 ? attack_worked(f, "opened") : attack_errno(f, "open");
}

/* Opens a file for writing, and never writes. */
ATTACK(open_write)
{
	if (prove_granted(w->plan, a->arg)) {
		return attack_void(f, "the plan grants %s", a->arg);
	}
	auto_fd fd = open(a->arg, O_WRONLY | O_CLOEXEC);
	return fd >= 0 ? attack_worked(f, "opened for writing") : attack_errno(f, "open");
}

ATTACK(host_devices)
{
	/* Merely opening these devices has no effect. */
	static const char *const NODES[] = { "/dev/mem",    "/dev/kmsg",         "/dev/net/tun",
		                             "/dev/fuse",   "/dev/loop-control", "/dev/kvm",
		                             "/dev/uinput", "/dev/vhost-net" };

	for (size_t i = 0; i < ARRAY_LEN(NODES); i++) {
		if (prove_granted(w->plan, NODES[i])) {
			continue;
		}
		auto_fd fd = open(NODES[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0) {
			return attack_worked(f, "opened %s", NODES[i]);
		}
	}
	return attack_failed(f, "none of %zu can be opened", ARRAY_LEN(NODES));
}

/* The handle was taken outside and identifies the decoy directly, independent of all mounts. */
ATTACK(open_handle)
{
	auto_fd mount_fd = open(w->outside ? w->dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->have_handle && mount_fd >= 0) {
		auto_fd fd = (int)syscall(SYS_open_by_handle_at, mount_fd, w->handle, O_RDONLY);
		if (fd >= 0 && prove_reads_secret(w, fd)) {
			return attack_worked(f, "read the secret");
		}
	}
	/* Without the capability, find out whether the call reaches the kernel at all. */
	if (syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, O_RDONLY) < 0 && errno == EFAULT) {
		return attack_worked(f, "the kernel accepts the call");
	}
	return attack_errno(f, "open_by_handle_at");
}

/* ---- writing ------------------------------------------------------------------- */

/* Tries to make a file without a name, which leaves nothing behind. Inside the sandbox, also tries
 * to make a file with a name. */
static enum attack_result write_into(const struct prove_world *w, const char *dir,
                                     struct finding *f)
{
	char path[PATH_MAX + 32];

	auto_fd fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0) {
		return attack_worked(f, "made a file");
	}
	if (w->outside) {
		return attack_errno(f, "open");
	}
	snprintf(path, sizeof(path), "%s/.ssb-prove-%d", dir, (int)getpid());
	auto_fd named = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (named < 0) {
		return attack_errno(f, "open");
	}
	(void)unlink(path);
	return attack_worked(f, "made a file");
}

ATTACK(write_dir)
{
	if (prove_granted_write(w->plan, a->arg)) {
		return attack_void(f, "the plan grants writing to %s", a->arg);
	}
	return write_into(w, a->arg, f);
}

ATTACK(write_decoy_dir)
{
	return write_into(w, w->dir, f);
}

ATTACK(write_skill)
{
	for (size_t i = 0; i < w->plan->n_grants; i++) {
		const struct grant *g = &w->plan->grants[i];
		if (g->origin == ORIGIN_SKILL && g->is_dir) {
			return write_into(w, w->outside ? g->path : g->target, f);
		}
	}
	return attack_void(f, "the plan has no skill directory");
}

ATTACK(write_reads)
{
	enum attack_result r = attack_void(f, "the plan has no read grants");

	for (size_t i = 0; i < w->plan->n_grants; i++) {
		const struct grant *g = &w->plan->grants[i];
		if (g->access != ACCESS_READ || g->origin == ORIGIN_SKILL || !g->is_dir ||
		    prove_granted_write(w->plan, g->target)) {
			continue;
		}
		r = write_into(w, w->outside ? g->path : g->target, f);
		if (r == ATTACK_WORKED) {
			break;
		}
	}
	return r;
}

/* ---- bits and nodes that outlive the run ----------------------------------------- */

static void scratch_path(const struct prove_world *w, char *out, size_t size)
{
	snprintf(out, size, "%s/.ssb-prove-%d", w->scratch, (int)getpid());
}

static enum attack_result judge_mode(const char *path, mode_t bad, struct finding *f)
{
	struct stat st;
	bool got = lstat(path, &st) == 0;

	(void)unlink(path);
	if (got && ((st.st_mode & bad) != 0 || S_ISCHR(st.st_mode))) {
		return attack_worked(f, "made, mode %o", (unsigned)st.st_mode);
	}
	return got ? attack_failed(f, "made, but as a plain file")
	           : attack_errno(f, "made nothing");
}

ATTACK(suid_chmod)
{
	char path[PATH_MAX];

	scratch_path(w, path, sizeof(path));
	auto_fd fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0700);
	if (fd < 0) {
		return attack_void(f, "cannot make a file in %.60s", w->scratch);
	}
	if (fchmod(fd, 04700) != 0 && chmod(path, 04700) != 0 &&
	    syscall(SYS_fchmodat, AT_FDCWD, path, 04700) != 0) {
		int e = errno;
		(void)unlink(path);
		errno = e;
		return attack_errno(f, "chmod");
	}
	return judge_mode(path, S_ISUID, f);
}

ATTACK(suid_create)
{
	char path[PATH_MAX];

	scratch_path(w, path, sizeof(path));
	auto_fd fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 04700);
	return fd < 0 ? attack_errno(f, "open") : judge_mode(path, S_ISUID, f);
}

ATTACK(suid_mknod)
{
	char path[PATH_MAX];

	scratch_path(w, path, sizeof(path));
	return mknod(path, S_IFREG | 04700, 0) != 0 ? attack_errno(f, "mknod")
	                                            : judge_mode(path, S_ISUID, f);
}

/* Any process may make device 0:0. */
ATTACK(device_node)
{
	char path[PATH_MAX];

	scratch_path(w, path, sizeof(path));
	return mknod(path, S_IFCHR | 0600, makedev(0, 0)) != 0 ? attack_errno(f, "mknod")
	                                                       : judge_mode(path, 0, f);
}

/* ---- files that a skill must not leave in a writable grant ------------------------ */

static const char *writable_dir(const struct prove_world *w)
{
	for (size_t i = 0; i < w->plan->n_grants; i++) {
		const struct grant *g = &w->plan->grants[i];
		if (grant_is_work(g)) {
			return g->target;
		}
	}
	return NULL;
}

/* The control makes the FIFO in the directory of the decoys, never in the owner's. */
ATTACK(grant_fifo)
{
	const char *dir = writable_dir(w);
	char path[PATH_MAX];

	if (dir == NULL) {
		return attack_void(f, "the plan has no writable directory");
	}
	snprintf(path, sizeof(path), "%s/.ssb-prove-%d", w->outside ? w->dir : dir, (int)getpid());
	if (mkfifo(path, 0600) != 0) {
		return attack_errno(f, "mkfifo");
	}
	(void)unlink(path);
	return attack_worked(f, "made");
}

/* Makes the file and removes it again. If the file exists already, only opens it for writing, and
 * never writes. */
ATTACK(grant_executed)
{
	const char *dir = writable_dir(w);
	char path[PATH_MAX];

	if (dir == NULL) {
		return attack_void(f, "the plan has no writable directory");
	}
	snprintf(path, sizeof(path), "%s/%s", w->outside ? w->dir : dir, a->arg);
	for (size_t i = 0; i < w->plan->n_grants; i++) {
		if (strcmp(w->plan->grants[i].target, path) == 0) {
			return attack_void(f, "the plan grants this file by name");
		}
	}
	auto_fd made = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (made >= 0) {
		(void)unlink(path);
		return attack_worked(f, "made");
	}
	auto_fd fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd >= 0 ? attack_worked(f, "opened for writing") : attack_errno(f, "open");
}

/* ---- inherited fds ------------------------------------------------------------------ */

static bool is_decoy(const struct prove_world *w, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == w->decoy_dev && st.st_ino == w->decoy_ino;
}

ATTACK(fd_low)
{
	return is_decoy(w, w->low_fd)
	               ? attack_worked(
	                         f, "fd %d, a test file that the caller left open, is still open",
	                         w->low_fd)
	               : attack_failed(f, "fd %d is not the test file that the caller left open",
	                               w->low_fd);
}

ATTACK(fd_high)
{
	if (w->high_fd < 0) {
		return attack_void(f, "the caller's limit of open files is too low");
	}
	return is_decoy(w, w->high_fd)
	               ? attack_worked(
	                         f, "fd %d, a test file that the caller left open, is still open",
	                         w->high_fd)
	               : attack_failed(f, "fd %d is not the test file that the caller left open",
	                               w->high_fd);
}

ATTACK(fd_any)
{
	for (int fd = 3; fd < 4096; fd++) {
		if (fd != w->out_fd && fcntl(fd, F_GETFD) >= 0) {
			return attack_worked(f, "fd %d is open", fd);
		}
	}
	return attack_failed(f, "0, 1 and 2 only");
}

/* ---- the table -------------------------------------------------------------------------- */

static const struct attack FILES[] = {
	ROW("env", "read a variable of the caller that was not granted", env_own),
	ROW("env-proc", "find a withheld variable in /proc/*/environ", env_proc),
	ROW("file", "read a private file of the owner by its path", read_decoy),
	ROW("file-write", "make a file beside a private file of the owner", write_decoy_dir),
	ROW("file-handle", "open a host file by its handle, past all mounts", open_handle),
	ROW("shm-file", "read a shared memory file of the owner", read_shm_file),
	ROW_ARG("shadow", "open /etc/shadow", open_path, "/etc/shadow"),
	ROW_ARG("sysfs", "open a directory of /sys", open_path, "/sys/kernel"),
	ROW("devices", "open a device that talks to the kernel", host_devices),
	ROW_ARG("write-usr", "make a file in /usr", write_dir, "/usr"),
	ROW_ARG("write-etc", "make a file in /etc", write_dir, "/etc"),
	ROW_ARG("write-root", "make a file in /", write_dir, "/"),
	ROW("write-skill", "make a file in the skill's own directory", write_skill),
	ROW("write-reads", "make a file in a directory granted for reading", write_reads),
	ROW_ARG("core-pattern", "open the host's core_pattern for writing", open_write,
	        "/proc/sys/kernel/core_pattern"),
	ROW_ARG("sysrq", "open the host's sysrq trigger for writing", open_write,
	        "/proc/sysrq-trigger"),
	ROW("suid-chmod", "set the setuid bit of its own file", suid_chmod),
	ROW("suid-create", "create a file that is setuid", suid_create),
	ROW("suid-mknod", "make a setuid file with mknod", suid_mknod),
	ROW("device-node", "make a device node", device_node),
	ROW("grant-fifo", "leave a FIFO in a writable directory", grant_fifo),
	ROW_ARG("grant-envrc",
	        "make .envrc, which the owner's shell executes, in a writable directory",
	        grant_executed, ".envrc"),
	ROW_ARG("grant-claude",
	        "make CLAUDE.md, which the owner's agent follows, in a writable directory",
	        grant_executed, "CLAUDE.md"),
	ROW("fd-low", "use an fd that the caller left open", fd_low),
	ROW("fd-high", "use an open fd with a number of 1024 or more", fd_high),
	ROW("fd-any", "find any other open fd", fd_any),
};

const struct attack_group ATTACKS_FILES = { FILES, ARRAY_LEN(FILES) };
