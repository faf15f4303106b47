/* sources.h - what the supervisor does with the granted host files before the sandbox
 * exists, and undoes afterwards. */
#ifndef SANDBOX_SOURCES_H
#define SANDBOX_SOURCES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "policy/plan.h"
#include "sandbox/stage.h"

/* Fills config->sources from the plan. An overlay does not show what is mounted beneath a
 * directory, so the host's mounts under a read grant become sources of their own, with the
 * same permission. */
int sources_init(struct stage_config *config, struct ssb_error *err);
void sources_close(struct stage_config *config); /* closes the trees, which only the child needs */
void sources_done(struct stage_config *config);

/* For a run that root starts, where the skill has a host uid of its own. Each source
 * becomes a tree in which the owner of the granted object, and no other user, appears as
 * that uid. If a file system does not support it, reads come from a read-only snapshot and
 * writes fail. */
int sources_idmap(struct stage_config *config, uid_t host_uid, gid_t host_gid,
                  struct ssb_error *err);

/* Copies the directory or file behind fd into a tree of its own, readable by all and
 * bounded by limits.h (snapshot.c). Returns an owned fd. */
int snapshot_tree(int fd, const char *name, struct ssb_error *err);

/* Placeholders: empty files and directories that hold, during the run, the names that the
 * host would obey and that do not exist yet, so that the skill cannot make them. They are
 * made in writable grants and the repositories in them (`repos` may be NULL; see
 * policy/protect.h, placeholders.c). */
struct placeholders;
bool placeholders_is_ours(const struct stat *st);     /* decided by its mode */
bool placeholders_is_open(const struct stat *st);     /* a HOLD_PRIVATE placeholder, by its mode */
bool placeholders_is_link(int dir, const char *name); /* decided by its target */
int placeholders_make(const struct ssb_plan *plan, const struct prepared *of_run,
                      const struct repos *repos, struct placeholders **ret, struct ssb_error *err);
/* Adds a placeholder for a missing path beneath the grant that a symlink leads to. Returns
 * -1 with errno. */
int placeholders_add(struct placeholders *p, int grant_fd, const char *path, bool is_dir);
void placeholders_remove(struct placeholders *p); /* accepts NULL; frees */
/* True if the skill has made a bare repository: a placeholder then stays there, so that git
 * ignores it. */
bool placeholders_keep_git_out(const struct placeholders *p, char *ret_dir, size_t size);

#endif
