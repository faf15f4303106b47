/* clone.c - starts processes, and sends and receives messages with fds. */
#include "os/clone.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"

pid_t clone_process(uint64_t flags, int *ret_pidfd)
{
	assert(ret_pidfd != NULL);

	int pidfd = -1;
	struct clone_args args = {
		.flags = flags | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid > 0) {
		*ret_pidfd = pidfd;
	}
	return (pid_t)pid;
}

pid_t clone_fork(int *ret_pidfd)
{
	pid_t pid = fork();

	if (pid <= 0) {
		return pid;
	}
	int pidfd = pidfd_open(pid, 0);
	if (pidfd < 0) {
		int saved = errno;
		if (saved != ESRCH) { /* ESRCH: another process has reaped the child, and its pid is
			                 free for reuse */
			(void)kill(pid, SIGKILL);
			(void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
		}
		errno = saved;
		return -1;
	}
	*ret_pidfd = pidfd;
	return pid;
}

void clone_end(int *pidfd)
{
	assert(pidfd != NULL);
	siginfo_t how;

	if (*pidfd >= 0) {
		(void)pidfd_send_signal(*pidfd, SIGKILL, NULL, 0);
		(void)TEMP_FAILURE_RETRY(waitid(P_PIDFD, (id_t)*pidfd, &how, WEXITED));
		own_close(pidfd);
	}
}

/* Room for the fds of one message, aligned as the kernel requires. */
union msg_control {
	struct cmsghdr head;
	char room[CMSG_SPACE(MSG_MAX_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

int msg_fds_send(int sock, const void *data, size_t len, const struct msg_fds *fds)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	union msg_control control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	assert(fds == NULL || fds->n <= MSG_MAX_FDS);
	if (fds != NULL && fds->n > 0) {
		size_t bytes = fds->n * sizeof(int);
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(bytes);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.head), fds->v, bytes);
	}
	ssize_t n;
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -1 : 0;
}

/* Takes the fds of one message. Returns false if there are more than MSG_MAX_FDS, which is possible
 * if the message has no credentials: the kernel then uses their space for fds. */
static bool take_fds(const struct cmsghdr *c, struct msg_fds *fds)
{
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		auto_fd fd = -1;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (fds->n < MSG_MAX_FDS) {
			fds->v[fds->n++] = steal_fd(&fd);
		}
	}
	return n <= MSG_MAX_FDS;
}

ssize_t msg_fds_recv(int sock, void *data, size_t len, struct msg_fds *ret_fds)
{
	struct iovec iov = { .iov_base = data, .iov_len = len };
	union msg_control control = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = control.room,
		              .msg_controllen = sizeof(control.room) };
	struct msg_fds fds = { .n = 0 };
	bool fit = true;
	ssize_t n;

	assert(ret_fds != NULL);
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		return -1;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			fit = take_fds(c, &fds) && fit;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred who;
			memcpy(&who, CMSG_DATA(c), sizeof(who));
			fds.from = who.pid;
		}
	}
	if (!fit || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		msg_fds_close(&fds);
		errno = EMSGSIZE;
		return -1;
	}
	*ret_fds = fds;
	return n;
}

void msg_fds_close(struct msg_fds *fds)
{
	for (size_t i = 0; i < fds->n; i++) {
		own_close(&fds->v[i]);
	}
	fds->n = 0;
}

int clone_proc_write(int dir_fd, const char *path, const char *text)
{
	auto_fd fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		return -1;
	}
	size_t len = strlen(text);
	ssize_t n = write(fd, text, len);
	if (n >= 0 && (size_t)n != len) {
		errno = EIO;
		return -1;
	}
	return n < 0 ? -1 : 0;
}
