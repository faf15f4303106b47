/* observe_unix.c - hands over calls that make or address unix sockets to the maker
 * (os/unix_maker.h), for a skill that may use only its own unix sockets. The security does not
 * depend on this file, but on the maker, which can reach only the skill's sockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "observe/observe.h"
#include "base/own.h"
#include "os/cgroup.h"
#include "os/notify.h"
#include "os/seccomp.h"

#define MAKER_TRIES 8 /* after so many failed starts, the run has no maker */

/* Returns the octal number after `key` in a small file of /proc, or `otherwise` if there is
 * none. */
static unsigned long read_octal(int fd, const char *key, unsigned long otherwise)
{
	char text[1024];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	const char *at = strstr(text, key);
	return at != NULL ? strtoul(at + strlen(key), NULL, 8) : otherwise;
}

/* Reads the type and flags of the caller's fd into `r`. Returns false if the fd is not a unix
 * socket: the maker must not replace it. The kernel does not show us the fds of a program that
 * hides itself (PR_SET_DUMPABLE), such as gpg-agent; we assume that such an fd is a stream socket,
 * as it usually is. We never open the socket itself, because the process that closes the last fd of
 * a socket waits for as long as its SO_LINGER says. */
static bool look_at_fd(pid_t tid, int fd, struct unix_request *r)
{
	char path[64], name[64] = "UNIX-STREAM";

	if (fd < 0) {
		return false;
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	ssize_t n = getxattr(path, "system.sockprotoname", name, sizeof(name) - 1);
	if ((n < 0 && errno != EACCES) || strncmp(name, "UNIX", 4) != 0) {
		return false;
	}
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, fd);
	auto_fd info = open(path, O_RDONLY | O_CLOEXEC);
	unsigned long flags = read_octal(info, "flags:", 0);
	r->type = strcmp(name, "UNIX-STREAM") == 0 ? SOCK_STREAM : SOCK_SEQPACKET;
	r->fd = fd;
	r->cloexec = (flags & O_CLOEXEC) != 0;
	r->nonblock = (flags & O_NONBLOCK) != 0;
	return true;
}

/* Returns EISCONN or EINVAL, as the kernel would, if the socket is already connected or bound; 0:
 * the maker may try. Connecting a bound socket is allowed, because a client may bind its socket
 * first. */
static int find_refusal(pid_t tid, const struct unix_request *r)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, r->fd);
	mode_t mode = stat(path, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_mode & 07777 : 0;
	bool connected = mode == UNIX_MODE_CONNECTED;

	return connected && r->call == UNIX_CONNECT                             ? EISCONN
	       : r->call == UNIX_BIND && (connected || mode == UNIX_MODE_BOUND) ? EINVAL
	                                                                        : 0;
}

/* Hands the call to the maker, which will answer it. Returns false if that fails; errno is EAGAIN
 * if too many calls already wait for the maker. */
static bool hand_over(struct observer *o, const struct unix_request *r, int status)
{
	size_t at = 0;

	while (at < MAX_UNIX_CALLS && notify_valid_id(o->listener, atomic_load(&o->handed[at]))) {
		at++;
	}
	if (at == MAX_UNIX_CALLS) {
		errno = EAGAIN;
		return false;
	}
	atomic_store(&o->handed[at], r->id);
	return unix_maker_hand(&o->maker, r, status) == 0;
}

void observer_release(struct observer *o)
{
	for (size_t i = 0; o != NULL && i < MAX_UNIX_CALLS; i++) {
		uint64_t id = atomic_load(&o->handed[i]);
		if (id != 0) {
			notify_interrupt_id(o->listener, id);
		}
	}
}

static bool start_maker(struct observer *o, const struct seccomp_notif *n)
{
	const char *const places[] = { "/tmp", "/var/tmp", "/dev/shm", o->setup.plan->home };
	auto_fd process = pidfd_open(observe_process(o, n)->leader, 0);
	int join[CGROUP_MAX_JOIN];
	const struct unix_maker_setup setup = {
		.listener = o->listener,
		.process = process,
		.uid = o->setup.uid,
		.gid = o->setup.gid,
		.join = join,
		.n_join = o->setup.cgroup != NULL ? cgroup_join_fds(o->setup.cgroup, join) : 0,
		.places = places,
		.n_places = ARRAY_LEN(places)
	};

	/* If the call still waits, `process` is the caller's process: its number cannot have been
	 * reused. The maker cannot enter a process whose first thread has ended. In that case this
	 * start fails, but a later caller may be in another process. */
	if (process < 0 || !notify_valid(o->listener, n)) {
		return false;
	}
	if (unix_maker_start(&o->maker, &setup) == 0) {
		atomic_store(&o->maker_fd, o->maker.process);
		if (o->threaded) { /* wakes the loop, which must begin to watch the maker */
			(void)!write(o->queue.wake, &(uint64_t){ 1 }, sizeof(uint64_t));
		}
		return true;
	}
	o->maker_failures++;
	return false;
}

bool observe_unix_own(const struct observer *o, const struct seccomp_data *call)
{
	int type = (int)(call->args[1] & 0xf); /* SOCK_STREAM etc., without the flags */

	return o->setup.own_sockets && o->maker_failures < MAKER_TRIES && call->nr == SYS_socket &&
	       (uint32_t)call->args[0] == AF_UNIX &&
	       (type == SOCK_STREAM || type == SOCK_SEQPACKET);
}

bool observe_unix_socket(struct observer *o, const struct seccomp_notif *n)
{
	enum seccomp_profile profile = plan_filter(o->setup.plan);
	struct unix_request r = { .id = n->id,
		                  .call = UNIX_SOCKET,
		                  .type = (int)(n->data.args[1] & 0xf),
		                  .cloexec = (n->data.args[1] & SOCK_CLOEXEC) != 0,
		                  .nonblock = (n->data.args[1] & SOCK_NONBLOCK) != 0 };

	if (!observe_unix_own(o, &n->data) ||
	    seccomp_eval(seccomp_blob(profile, true, true), &n->data) != SECCOMP_RET_ALLOW) {
		return false;
	}
	if (o->maker.requests < 0 && !start_maker(o, n)) {
		return false;
	}
	bool handed = hand_over(o, &r, -1);
	if (!handed && errno == EAGAIN) { /* the profile allows the socket, but too many calls wait
		                             for the maker */
		notify_refuse(o->listener, n, ENOBUFS);
		return true;
	}
	return handed;
}

int observe_unix_address(struct observer *o, const struct seccomp_notif *n,
                         const struct sockaddr_un *to, socklen_t len)
{
	struct unix_request r = { .id = n->id,
		                  .call = n->data.nr == SYS_bind ? UNIX_BIND : UNIX_CONNECT,
		                  .len = len,
		                  .to = *to };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cwd", (pid_t)n->pid);
	ssize_t cwd = readlink(path, r.cwd, sizeof(r.cwd) - 1);
	r.cwd[cwd > 0 && cwd < (ssize_t)sizeof(r.cwd) - 1 ? cwd : 0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/status", (pid_t)n->pid);
	auto_fd status = open(path, O_RDONLY | O_CLOEXEC);
	r.umask = (mode_t)read_octal(status, "\nUmask:", 077) & 0777;
	if (o->maker.requests < 0 || !look_at_fd((pid_t)n->pid, (int)n->data.args[0], &r)) {
		return EACCES;
	}
	int again = find_refusal((pid_t)n->pid, &r);
	if (again != 0) {
		return again;
	}
	bool waits = r.call == UNIX_CONNECT && !r.nonblock;
	if (hand_over(o, &r, waits ? status : -1)) {
		return 0;
	}
	return errno != EAGAIN ? EACCES : r.call == UNIX_BIND ? ENOBUFS : EAGAIN;
}
