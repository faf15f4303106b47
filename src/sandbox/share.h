/* share.h - the priority that a skill inherits from its caller, and cpu_shares on machines
 * without a cpu cgroup for us.
 *
 * The kernel weighs sessions against each other (autogroups), and processes within a
 * session by their nice value, so both get the nice value that is nearest to the share. A
 * user can set the session's only ten times a second on the whole machine: it is tried
 * again until it succeeds. */
#ifndef SANDBOX_SHARE_H
#define SANDBOX_SHARE_H

#include <stdint.h>
#include <sys/types.h>

/* 1024 and more is nice 0, the highest priority that a user may set. */
int share_to_nice(uint64_t shares);

/* Leaves the realtime classes if the caller is in one: no weight counts there, and a cgroup
 * may not accept such a process. */
int share_leave_realtime(void);

/* Drops what the caller's process may have and a skill's must not: real-time I/O, a
 * personality that weakens the address space, another timer slack. A lower priority is the
 * caller's wish and is kept. */
int share_shed_caller(void);

/* Drops the caller's protection from the OOM killer, for init's first child before it runs.
 * Only a caller with CAP_SYS_RESOURCE can also take away the right to return to it. */
int share_shed_oom(pid_t init);

/* Sets the session of init's first child, the skill, to that value. Returns 0 when done or
 * impossible, 1 to be called again in SHARE_RETRY_MS. */
int share_set_session(pid_t init, uint64_t shares);

#define SHARE_RETRY_MS 110
#define SHARE_TRIES    50

#endif
