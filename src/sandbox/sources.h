/* sources.h - what the supervisor does to the granted host files before the
 * sandbox exists, and undoes after it. */
#ifndef SANDBOX_SOURCES_H
#define SANDBOX_SOURCES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "policy/plan.h"
#include "sandbox/stage.h"

/* Fills config->sources from the plan. An overlay does not show what is mounted
 * beneath a directory, so that the host's mounts under a read grant are
 * sources of their own, with the same permission. */
int sources_init(struct stage_config *config, struct ssb_error *err);
void sources_close(struct stage_config *config); /* the trees: ours are not needed after clone */
void sources_done(struct stage_config *config);

/* Started by root, the skill has a host uid of its own. Each source becomes a
 * tree in which the owner of the granted object, and nobody else, appears as
 * that uid. Where a file system cannot do it, reads come from a read-only
 * snapshot and writes fail. */
int sources_idmap(struct stage_config *config, uid_t host_uid, gid_t host_gid,
                  struct ssb_error *err);

/* A copy of the directory or file behind fd as a tree of its own, readable by
 * all, bounded by limits.h (snapshot.c). Returns an owned fd. */
int snapshot_tree(int fd, const char *name, struct ssb_error *err);

/* Names that the host would obey and that do not exist yet in writable grants
 * and the repositories in them (`repos` may be NULL; see policy/protect.h): empty placeholders hold
 * their place during the run, so that the skill cannot make them (placeholders.c). */
struct placeholders;
bool placeholders_is_ours(const struct stat *st);     /* told by its mode */
bool placeholders_is_open(const struct stat *st);     /* of HOLD_PRIVATE, by its mode */
bool placeholders_is_link(int dir, const char *name); /* by where it leads */
int placeholders_make(const struct ssb_plan *plan, const struct prepared *of_run,
                      const struct repos *repos, struct placeholders **ret, struct ssb_error *err);
/* One more, for what a symlink leads to beneath the grant and that is not there. -1 with errno. */
int placeholders_add(struct placeholders *p, int grant_fd, const char *path, bool is_dir);
void placeholders_remove(struct placeholders *p); /* accepts NULL; frees */
/* The skill has made a bare repository, and a placeholder will stay to keep git out of it. */
bool placeholders_keep_git_out(const struct placeholders *p, char *ret_dir, size_t size);

#endif
