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

/* Configures a sandbox without namespaces: a private directory for HOME and TMPDIR, and host
 * paths instead of those of the view. Fails if the plan needs what only namespaces enforce. */
int fallback_enter(struct stage_config *config, struct ssb_error *err);
void fallback_leave(struct stage_config *config); /* removes the directory, if there is one */

/* Landlock's rules for the host's paths; -1 with errno. */
int fallback_rules(const struct stage_config *config, int rules, int abi);

/* Ends every descendant of the calling process and reaps it. False: some are left after ten
 * seconds, since they cannot be listed or do not die. */
bool fallback_end_all(void);

#endif
