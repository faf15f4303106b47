/* clone.h - processes and what they say to each other. No policy. */
#ifndef OS_CLONE_H
#define OS_CLONE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* fork() with CLONE_* flags. Returns like fork(); in the parent *ret_pidfd is
 * an owned fd. */
pid_t clone_process(uint64_t flags, int *ret_pidfd);

/* fork() with a pidfd. */
pid_t clone_fork(int *ret_pidfd);

/* Ends the child behind *pidfd, waits for it and closes; nothing where that is -1. Whoever has
 * its number by now, since somebody else has waited for it, is left alone. */
void clone_end(int *pidfd);

/* One message over a SOCK_SEQPACKET socket, with the fds that go with it. */
#define MSG_MAX_FDS 32

struct msg_fds {
	int v[MSG_MAX_FDS];
	size_t n;
	pid_t from; /* who sent it, as the receiver's namespace knows him; 0: SO_PASSCRED is off */
};

/* `fds` (may be NULL) are borrowed. */
int msg_fds_send(int sock, const void *data, size_t len, const struct msg_fds *fds);
/* Returns the length, 0 at the peer's end, -1 with errno. The fds are owned by
 * the caller: msg_fds_close. A message longer than `len`, or with more fds, is EMSGSIZE. */
ssize_t msg_fds_recv(int sock, void *data, size_t len, struct msg_fds *ret_fds);
void msg_fds_close(struct msg_fds *fds);

/* Writes `text` into the file in one write; -1 with errno. */
int clone_proc_write(int dir_fd, const char *path, const char *text);

#endif
