/* share.h - the priority that a skill inherits from its caller, and cpu_shares on machines where a
 * run cannot have a cpu cgroup.
 *
 * The kernel weighs sessions against each other (autogroups), and processes within a session by
 * their nice value, so both get the nice value that is nearest to the share. The kernel lets a user
 * set the value of a session only ten times a second on the whole machine, so this is repeated
 * until it succeeds. */
#ifndef SANDBOX_SHARE_H
#define SANDBOX_SHARE_H

#include <stdint.h>
#include <sys/types.h>

/* Returns the nice value that is nearest to `shares`. 1024 and more become 0, the highest priority
 * that a user may set. */
int share_to_nice(uint64_t shares);

/* Moves the calling process out of the real-time scheduling classes: they ignore all weights, and a
 * cgroup may not accept such a process. Returns 0, or -1 with errno. */
int share_leave_realtime(void);

/* Resets attributes that are inherited from the caller and that a skill must not have: real-time
 * I/O, a personality that weakens the address space, a changed timer slack. A lower priority is
 * kept, because the caller chose it. Returns 0, or -1 with errno. */
int share_shed_caller(void);

/* Resets the protection from the OOM killer that the skill's process (init's first child) inherits
 * from the caller. Must be called before the skill runs. Unless the caller has CAP_SYS_RESOURCE,
 * the skill may set the inherited value again. Returns 0, or -1 with errno. */
int share_shed_oom(pid_t init);

/* Sets the nice value of `shares` for the session of init's first child, which is the skill.
 * Returns 0 if this is done or impossible; 1 if the caller must try again in SHARE_RETRY_MS. */
int share_set_session(pid_t init, uint64_t shares);

#define SHARE_RETRY_MS 110
#define SHARE_TRIES    50

#endif
