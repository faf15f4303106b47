/* fallback.h - the sandbox of a machine without user namespaces, which the
 * owner accepted with --best-effort userns.
 *
 * What holds: Landlock on the host's own paths, the filter without any
 * socket, the environment, rlimits, the cgroup where root has one, the clock.
 * What is lost, and said in the trace: the private view of files (names of
 * other files can be seen with stat), /proc and processes of the host are
 * visible, IPC and host name are shared, the memory and process limits count
 * per process and per user. */
#ifndef SANDBOX_FALLBACK_H
#define SANDBOX_FALLBACK_H

#include "sandbox/stage.h"

/* Turns the stage into one without namespaces: a private directory for HOME
 * and TMPDIR, host paths instead of the view's. Refuses what cannot be held
 * without them. */
int fallback_enter(struct stage *s, struct ssb_error *err);
void fallback_leave(struct stage *s); /* removes the directory; accepts any stage */

/* Landlock's rules for the host's paths; -1 with errno. */
int fallback_rules(const struct stage *s, int rules, int abi);

/* Ends every descendant of the calling process and reaps it. False: some are left after ten
 * seconds, since they cannot be listed or do not die. */
bool fallback_end_all(void);

#endif
