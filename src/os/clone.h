/* clone.h - processes and what they say to each other. No policy. */
#ifndef OS_CLONE_H
#define OS_CLONE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* fork() with CLONE_* flags. cgroup_fd: a cgroup v2 directory to be born in,
 * or -1. Returns like fork(); in the parent *ret_pidfd is an owned fd. */
pid_t clone_process(uint64_t flags, int cgroup_fd, int *ret_pidfd);

/* One message with at most one fd (-1: none) over a SOCK_SEQPACKET socket. */
int msg_send(int sock, const void *data, size_t len, int fd);
/* Returns the length, 0 at the peer's end, -1 with errno. *ret_fd is owned
 * (or -1). A message longer than `len` is EMSGSIZE. */
ssize_t msg_recv(int sock, void *data, size_t len, int *ret_fd);

/* Writes `text` into the file in one write; -1 with errno. */
int proc_write(int dir_fd, const char *path, const char *text);

#endif
