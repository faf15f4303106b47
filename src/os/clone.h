/* clone.h - starts processes and passes messages between them. No policy. */
#ifndef OS_CLONE_H
#define OS_CLONE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Like fork(), with CLONE_* flags. In the parent *ret_pidfd is new. */
pid_t clone_process(uint64_t flags, int *ret_pidfd);

/* Like fork(). In the parent *ret_pidfd is new. */
pid_t clone_fork(int *ret_pidfd);

/* Kills the child of *pidfd, reaps it and closes the pidfd. Does nothing if *pidfd is -1. If the
 * child was reaped elsewhere and another process has its pid now, that process is left alone. */
void clone_end(int *pidfd);

/* One message over a SOCK_SEQPACKET socket, with its fds. */
#define MSG_MAX_FDS 32

struct msg_fds {
	int v[MSG_MAX_FDS];
	size_t n;
	pid_t from; /* the pid of the sender, in the receiver's namespace; 0: SO_PASSCRED is off */
};

/* Returns 0, or -1 with errno. `fds` may be NULL; the fds are borrowed. */
int msg_fds_send(int sock, const void *data, size_t len, const struct msg_fds *fds);
/* Returns the length, 0 at the end of the stream, or -1 with errno. The caller owns the fds and
 * must call msg_fds_close(). A message longer than `len`, or with more fds, fails with EMSGSIZE. */
ssize_t msg_fds_recv(int sock, void *data, size_t len, struct msg_fds *ret_fds);
void msg_fds_close(struct msg_fds *fds);

/* Writes `text` to the file with one write(). Returns 0, or -1 with errno. */
int clone_proc_write(int dir_fd, const char *path, const char *text);

#endif
