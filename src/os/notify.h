/* notify.h - the supervisor's side of seccomp user notification. */
#ifndef OS_NOTIFY_H
#define OS_NOTIFY_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Duplicates the listener that process `pid` has as fd number `number`. The process cannot send it,
 * because sending is an observed call. -1 with errno. */
int notify_fetch(pid_t pid, int number);

/* Asks the kernel to wake a waiting side on the CPU of the other side (Linux 6.6). Without it,
 * observing costs several times as much. */
void notify_prepare(int listener);

/* Does notify_receive() return when no process is left that could make a call (Linux 6.11)? On
 * older kernels it then waits forever. */
bool notify_ends(void);

/* Receives the next waiting call. Call it when poll() reports one, or if notify_ends(). -1 with
 * errno; ENOENT: its process has died, or no process is left. */
int notify_receive(int listener, struct seccomp_notif *ret);

/* Lets the kernel execute the call. The memory behind its pointers may have changed since we read
 * it, so continue only calls that the kernel itself restricts. True: the call was still waiting, so
 * that everything read before belongs to its process. */
bool notify_continue(int listener, const struct seccomp_notif *n);

/* Answers the call without executing it: it returns -1 with `error`. */
void notify_refuse(int listener, const struct seccomp_notif *n, int error);

/* Like notify_refuse(), by its id. */
void notify_refuse_id(int listener, uint64_t id, int error);

/* Interrupts the waiting call because of a pending signal, like an interrupted system call: it is
 * restarted or fails with EINTR, as the signal handler requires. Only for a caller that was woken
 * for a signal or is being frozen; any other caller would see an errno that programs never see. */
void notify_interrupt_id(int listener, uint64_t id);

/* Answers the call with a copy of `fd` (borrowed). With `as` >= 0 the copy replaces that fd of the
 * caller, and the call returns 0. With -1 the copy gets any number, which the call returns. False:
 * the caller did not get it. */
bool notify_give(int listener, uint64_t id, int fd, int as, bool cloexec);

/* Is the call still waiting? If not, everything read since may belong to another process. */
bool notify_valid(int listener, const struct seccomp_notif *n);
bool notify_valid_id(int listener, uint64_t id);

/* Reads up to `len` bytes of the caller's memory, fewer if a page is not mapped. Returns their
 * number, or -1 with errno. */
ssize_t notify_read(pid_t pid, uint64_t address, void *out, size_t len);

/* Reads a string of at most size-1 bytes. Returns its length, or -1 if it is not readable or too
 * long (errno ENAMETOOLONG). */
ssize_t notify_read_string(pid_t pid, uint64_t address, char *out, size_t size);

#endif
