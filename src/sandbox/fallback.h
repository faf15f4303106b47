/* fallback.h - the sandbox on a machine without user namespaces. It is used only if the owner
 * accepted it with --best-effort userns.
 *
 * Still enforced: Landlock on the host's own paths, a system call filter that allows no socket, the
 * environment, rlimits, the cgroup if root has one, the time limit. Lost, and recorded in the
 * trace: there is no private view of files (stat() shows whether other files exist); /proc and the
 * processes of the host are visible; IPC and host name are shared with the host; the memory limit
 * counts each process by itself, and the process limit counts all processes of the user. */
#ifndef SANDBOX_FALLBACK_H
#define SANDBOX_FALLBACK_H

#include "sandbox/stage.h"

/* Sets up `config` for a sandbox without namespaces: a private directory for HOME and TMPDIR, and
 * host paths instead of those of the view. Fails if the plan needs a restriction that only
 * namespaces enforce. */
int fallback_enter(struct stage_config *config, struct ssb_error *err);
/* removes the private directory, if there is one */
void fallback_leave(struct stage_config *config);

/* Adds Landlock's rules for the host's paths. Returns -1 with errno. */
int fallback_rules(const struct stage_config *config, int rules, int abi);

/* Kills and reaps every descendant of the calling process. Returns false if some are left after ten
 * seconds, because they cannot be listed or do not die. */
bool fallback_end_all(void);

#endif
