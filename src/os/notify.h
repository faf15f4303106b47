/* notify.h - the supervisor's side of seccomp user notification. */
#ifndef OS_NOTIFY_H
#define OS_NOTIFY_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns a new fd for the listener that process `pid` has as fd `number`, or -1 with errno. The
 * process cannot send the listener itself, because sendmsg() is an observed call. */
int notify_fetch(pid_t pid, int number);

/* Asks the kernel to wake the skill and the supervisor on the same CPU when they wait for each
 * other (Linux 6.6). Otherwise observing costs several times as much. */
void notify_prepare(int listener);

/* True if notify_receive() returns when no process is left that could make a call (Linux 6.11). On
 * older kernels notify_receive() waits forever in this case. */
bool notify_ends(void);

/* Receives the next waiting call. This function must be called only if poll() reports a call, or if
 * notify_ends(). Returns 0, or -1 with errno; ENOENT: the calling process has died, or no process
 * is left. */
int notify_receive(int listener, struct seccomp_notif *ret);

/* Lets the kernel execute the call. The memory behind its pointers may have changed since it was
 * read, so it must be used only for calls that the kernel itself restricts. Returns true if the
 * call was still waiting. If so, everything that was read for this call came from the process that
 * made it. */
bool notify_continue(int listener, const struct seccomp_notif *n);

/* Answers the call without executing it: the call returns -1 with `error`. */
void notify_refuse(int listener, const struct seccomp_notif *n, int error);

/* Like notify_refuse(), but identifies the call by its id. */
void notify_refuse_id(int listener, uint64_t id, int error);

/* Interrupts the waiting call because of a pending signal. As for any interrupted system call, the
 * signal handler decides whether the call is restarted or fails with EINTR. This function must be
 * used only for a caller that was woken for a signal or is being frozen; any other caller would get
 * an errno that only the kernel uses. */
void notify_interrupt_id(int listener, uint64_t id);

/* Answers the call with a copy of `fd` (borrowed). If `as` is 0 or more, the copy replaces the
 * caller's fd of that number, and the call returns 0. If `as` is -1, the copy gets a free number,
 * and the call returns this number. Returns false if the caller did not get the copy. */
bool notify_give(int listener, uint64_t id, int fd, int as, bool cloexec);

/* True if the call is still waiting. If it is not, the pid of the caller may be in use again:
 * everything read since notify_receive() may come from another process. */
bool notify_valid(int listener, const struct seccomp_notif *n);
bool notify_valid_id(int listener, uint64_t id);

/* Reads up to `len` bytes of the calling process's memory, fewer if a page is not mapped. Returns
 * their number, or -1 with errno. */
ssize_t notify_read(pid_t pid, uint64_t address, void *out, size_t len);

/* Reads a string of at most size-1 bytes. Returns its length, or -1 if it is not readable or too
 * long (errno ENAMETOOLONG). */
ssize_t notify_read_string(pid_t pid, uint64_t address, char *out, size_t size);

#endif
