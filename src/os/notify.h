/* notify.h - the supervisor's side of observed system calls. */
#ifndef OS_NOTIFY_H
#define OS_NOTIFY_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Fetches the listener that process `pid` has as fd number `number`: a process
 * cannot send it, since sending is observed. -1 with errno. */
int notify_fetch(pid_t pid, int number);

/* Asks the kernel to wake whoever waits on the CPU of the other one (Linux
 * 6.6); without it the look costs several times as much. */
void notify_prepare(int listener);

/* Does notify_receive() return when nobody is left who could make a call (Linux
 * 6.11)? Before, who waits in it waits forever. */
bool notify_ends(void);

/* The next call that waits, to be asked for when poll() says that there is one,
 * or where notify_ends(). -1 with errno: ENOENT, it is gone (its process died),
 * or nobody is left. */
int notify_receive(int listener, struct seccomp_notif *ret);

/* Lets the kernel go on with it. What its pointers hold may have changed since
 * we looked: only what the kernel enforces by itself may be let go on. True: it
 * has waited until now, so that what was read since is its own. */
bool notify_continue(int listener, const struct seccomp_notif *n);

/* Answers it: nothing is done, the caller sees -1 and `error`. */
void notify_refuse(int listener, const struct seccomp_notif *n, int error);

/* The same by its id alone. */
void notify_refuse_id(int listener, uint64_t id, int error);

/* Ends its wait for a signal that the caller has not taken yet, as the kernel ends its own: the
 * call is made again, or fails with EINTR, as the handler wants it. Only for a caller that has
 * been woken for one, or is being frozen: another one would see an errno that there is not. */
void notify_interrupt_id(int listener, uint64_t id);

/* Answers it with a copy of `fd` (borrowed). `as` is the number that it gets in the caller, in the
 * place of what has it now, and the call succeeds with 0; -1: any, which the call returns. False:
 * the caller did not get it. */
bool notify_give(int listener, uint64_t id, int fd, int as, bool cloexec);

/* Does it still wait? If not, what was read since may be another process's. */
bool notify_valid(int listener, const struct seccomp_notif *n);
bool notify_valid_id(int listener, uint64_t id);

/* Reads up to `len` bytes of the caller's memory; fewer where a page is not
 * there. Bytes read, or -1 with errno. */
ssize_t notify_read(pid_t pid, uint64_t address, void *out, size_t len);

/* A string of at most size-1 bytes; its length, or -1: not readable, or longer
 * (errno ENAMETOOLONG). */
ssize_t notify_read_string(pid_t pid, uint64_t address, char *out, size_t size);

#endif
