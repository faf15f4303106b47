/* place.c - identifies this machine and its processes, and reliably ends a run. */
#include "session/place.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/sha256.h"
#include "os/cgroup.h"
#include "os/cgroup_layout.h"
#include "os/file.h"
#include "sandbox/meter.h"

#define CHILD_ROUNDS 100
#define MARK         16 /* hash digits by which machines are distinguished */
#define MACHINE_ID   32

/* Reads the first line of a small file without its newline. Returns -1 if there is none. */
static int first_line(const char *path, char *out, size_t size)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (n <= 0) {
		return -1;
	}
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

/* Writes a part of the id's hash. Machine ids should stay private, and the hash is enough to
 * distinguish machines. */
static void hash_mark(const char *id, char ret[MARK + 1])
{
	uint8_t hash[SHA256_BYTES];

	sha256(id, strlen(id), hash);
	hex_encode(hash, MARK / 2, ret);
}

int place_here(struct session_run *run, struct ssb_error *err)
{
	char id[64];
	char boot[MARK + 1];
	char machine[MARK + 1];
	char name[65] = { 0 };
	struct stat ns;

	if (first_line("/proc/sys/kernel/random/boot_id", id, sizeof(id)) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session", "cannot read the boot id");
	}
	hash_mark(id, boot);
	if (gethostname(name, sizeof(name) - 1) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session",
		                "cannot read the name of this machine");
	}
	if (stat("/proc/self/ns/pid", &ns) != 0) {
		return ssb_fail(err, SSB_E_SYS, errno, "session",
		                "cannot read the id of the pid namespace");
	}
	/* A machine without an id ("uninitialized", many containers) must never be mistaken for
	 * another machine that was restarted, so it is identified only by its boot. */
	if (first_line("/etc/machine-id", id, sizeof(id)) != 0 || strlen(id) != MACHINE_ID ||
	    strspn(id, "0123456789abcdef") != MACHINE_ID) {
		memcpy(machine, boot, sizeof(machine));
	} else {
		hash_mark(id, machine);
	}
	snprintf(run->host, sizeof(run->host), "%.*s#%s", (int)sizeof(run->host) - MARK - 2, name,
	         machine);
	snprintf(run->boot_id, sizeof(run->boot_id), "%s-%llx", boot,
	         (unsigned long long)ns.st_ino);
	return 0;
}

bool place_same(const struct session_run *a, const struct session_run *b)
{
	return strcmp(a->host, b->host) == 0 && strcmp(a->boot_id, b->boot_id) == 0;
}

bool place_restarted(const struct session_run *run, const struct session_run *here)
{
	/* The boot must be another one: in the same boot, processes in another pid namespace may
	 * still be alive. */
	return strcmp(run->host, here->host) == 0 &&
	       strncmp(run->boot_id, here->boot_id, MARK) != 0;
}

int place_open(pid_t pid, uint64_t start)
{
	if (pid <= 0) {
		errno = ESRCH;
		return -1;
	}
	/* The fd is opened first. If the start time matches afterwards, the process was alive
	 * when the fd was opened, so the fd is for this process. In the other order the pid could
	 * be reused in between. */
	auto_fd fd = (int)syscall(SYS_pidfd_open, pid, 0U);
	if (fd < 0) {
		return -1;
	}
	if (meter_started(pid) != start) {
		errno = ESRCH;
		return -1;
	}
	return steal_fd(&fd);
}

int place_kill(int pidfd)
{
	assert(pidfd >= 0);
	return (int)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0U);
}

/* Returns true if the process is pid 1 of its innermost namespace. In "NSpid:\t4711\t1" the last
 * number is the pid there. */
static bool is_first(pid_t pid)
{
	char path[32];
	char text[4096];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	char *line = strstr(text, "\nNSpid:");
	if (line == NULL) {
		return true; /* not readable: assume the usual case */
	}
	line[1 + strcspn(line + 1, "\n")] = '\0';
	const char *last = strrchr(line, '\t');
	return last != NULL && strcmp(last + 1, "1") == 0;
}

/* Reads the pids of the children, as "4711 4712 ...". */
static int read_children(pid_t init, char *out, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)init, (int)init);
	return first_line(path, out, size);
}

static int read_text(const char *path, struct buf *out)
{
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(out, MAX_MOUNTS_BYTES);
	return fd >= 0 && file_read_all(fd, out) == 0 && out->data != NULL ? 0 : -1;
}

/* Reads the state and the parent from /proc/PID/stat: fields 3 and 4, after the name, which may
 * contain anything. Returns -1 if the process is gone. */
static int read_stat(pid_t pid, char *ret_state, pid_t *ret_parent)
{
	char path[32];
	char text[1024];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (first_line(path, text, sizeof(text)) != 0) {
		return -1;
	}
	const char *name_end = strrchr(text, ')');
	if (name_end == NULL || strlen(name_end) <= 4) {
		return -1;
	}
	*ret_state = name_end[2];
	*ret_parent = (pid_t)strtol(name_end + 4, NULL, 10);
	return 0;
}

static bool is_stuck(pid_t pid)
{
	char state = '\0';
	pid_t parent = 0;

	return read_stat(pid, &state, &parent) == 0 && state == 'D';
}

/* Thaws the run. All its processes are in one control group, which is found through the first
 * child. */
static void thaw_group(pid_t init)
{
	char list[64];
	char path[MAX_PATH_BYTES + 32];
	auto_free struct cgroup_layout *at = calloc(1, sizeof(*at));
	long child = read_children(init, list, sizeof(list)) == 0 ? strtol(list, NULL, 10) : 0;

	if (at == NULL || child <= 0 || !is_stuck((pid_t)child)) {
		return;
	}
	auto_buf mounts;
	auto_buf groups;
	snprintf(path, sizeof(path), "/proc/%ld/cgroup", child);
	int failed = read_text("/proc/self/mountinfo", &mounts);
	failed |= read_text(path, &groups);
	if (failed == 0) {
		cgroup_layout_parse(mounts.data, groups.data, at);
	}
	if (at->v1[CGROUP_FREEZER].found) {
		snprintf(path, sizeof(path), "%s/freezer.state", at->v1[CGROUP_FREEZER].dir);
		auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			cgroup_thaw(fd);
		}
	}
}

/* Ends a child. It may have been reaped since it was listed, and its pid reused, so the process of
 * the pidfd is ended only if it is still a child of the init. */
static void end_child(pid_t pid, pid_t init)
{
	auto_fd fd = (int)syscall(SYS_pidfd_open, pid, 0U);
	char state = '\0';
	pid_t parent = 0;

	if (fd >= 0 && read_stat(pid, &state, &parent) == 0 && parent == init) {
		(void)place_kill(fd);
	}
}

/* Ends all descendants. When a child dies, its own children become children of this init. So this
 * repeats until there are no children, or until all children are dead and the init does not reap
 * them. */
static void end_children(pid_t init)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	char list[4096];

	for (int i = 0; i < CHILD_ROUNDS; i++) {
		if (read_children(init, list, sizeof(list)) != 0) {
			return;
		}
		for (char *p = list, *end; *p != '\0'; p = end) {
			long pid = strtol(p, &end, 10);
			if (end == p || *end == '\0') {
				break; /* the last number may be incomplete */
			}
			end_child((pid_t)pid, init);
		}
		(void)nanosleep(&moment, NULL);
	}
}

int place_end(int pidfd, pid_t init)
{
	assert(pidfd >= 0);
	if (!place_dead(pidfd) && !is_first(init)) {
		end_children(init);
	}
	if (place_kill(pidfd) != 0) {
		return -1;
	}
	thaw_group(init); /* after SIGKILL, so a thawed process can only die */
	return 0;
}

bool place_dead(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && p.revents != 0;
}
