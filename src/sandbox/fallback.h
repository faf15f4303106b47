/* fallback.h - the sandbox on a machine without user namespaces. It is used only if the owner
 * accepted it with --best-effort userns.
 *
 * Still enforced: Landlock on the host's own paths, a system call filter that allows no socket, the
 * environment, rlimits, the cgroup if root has one, the time limit. Lost, and recorded in the
 * trace: the private view of files (stat shows names of other files), /proc and the processes of
 * the host are visible, IPC and host name are shared, and the memory and process limits count per
 * process and per user. */
#ifndef SANDBOX_FALLBACK_H
#define SANDBOX_FALLBACK_H

#include "sandbox/stage.h"

/* Sets up `config` for a sandbox without namespaces: a private directory for HOME and TMPDIR, and
 * host paths instead of those of the view. Fails if the plan needs a restriction that only
 * namespaces enforce. */
int fallback_enter(struct stage_config *config, struct ssb_error *err);
void fallback_leave(struct stage_config *config); /* removes the directory, if there is one */

/* Adds Landlock's rules for the host's paths. Returns -1 with errno. */
int fallback_rules(const struct stage_config *config, int rules, int abi);

/* Ends every descendant of the calling process and reaps it. Returns false if some are left
 * after ten seconds because they cannot be listed or do not die. */
bool fallback_end_all(void);

#endif
