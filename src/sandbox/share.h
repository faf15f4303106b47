/* share.h - what a skill inherits of its caller's importance, and cpu_shares on machines
 * without a cpu cgroup for us.
 *
 * The kernel weighs sessions against each other (autogroups) and processes
 * inside one by their nice value, so both get the nice value that comes
 * nearest to the share. The session's can be set by its own user only ten
 * times a second on the whole machine: it is tried again until it is. */
#ifndef SANDBOX_SHARE_H
#define SANDBOX_SHARE_H

#include <stdint.h>
#include <sys/types.h>

/* 1024 and more is nice 0, which is as high as a user may go. */
int share_to_nice(uint64_t shares);

/* Out of the realtime classes, if the caller is in one: no weight counts there, and a cgroup
 * may not take it. */
int share_leave_realtime(void);

/* Gives up what the caller's process has and a skill's has not, whoever starts it: real-time
 * I/O, a personality that weakens the address space, a timer slack of another size. Being
 * less important is the caller's wish, and stays. */
int share_shed_caller(void);

/* The same of the caller's protection from the OOM killer, for init's first child before it
 * runs. Only a caller with CAP_SYS_RESOURCE takes away the right to return to it as well. */
int share_shed_oom(pid_t init);

/* Sets the session of init's first child, the skill, to that value. Returns 0
 * when done or hopeless, 1 to be called again in SHARE_RETRY_MS. */
int share_set_session(pid_t init, uint64_t shares);

#define SHARE_RETRY_MS 110
#define SHARE_TRIES    50

#endif
