/* sources.h - prepares the granted host files before the sandbox exists, and undoes this after the
 * run. */
#ifndef SANDBOX_SOURCES_H
#define SANDBOX_SOURCES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "policy/plan.h"
#include "sandbox/stage.h"

/* Fills config->sources from the plan. An overlay does not show the mounts beneath a directory, so
 * the host's mounts under a read grant become sources of their own, with the same permission. */
int sources_init(struct stage_config *config, struct ssb_error *err);
/* closes the supervisor's fds of the trees; call it after the clone, because only the child needs
 * them */
void sources_close(struct stage_config *config);
void sources_done(struct stage_config *config);

/* Call it if root started the run, so that the skill has its own uid on the host. Each source
 * becomes a tree in which files of the owner of the granted object appear as files of that uid, and
 * files of other users as files of nobody. If a file system does not support id mapping, a read
 * grant becomes a read-only snapshot, and a write grant makes the run fail. */
int sources_idmap(struct stage_config *config, uid_t host_uid, gid_t host_gid,
                  struct ssb_error *err);

/* Copies the directory behind fd (borrowed) into a new tree that every uid can read; limits.h
 * bounds its size (snapshot_tree.c). Returns the new tree's fd, or -1 with `err`. */
int snapshot_tree(int fd, const char *name, struct ssb_error *err);

/* A protected name may not exist yet. During the run a placeholder, an almost empty file or
 * directory, occupies it. Otherwise the skill could create a file there, and a program of the host
 * would execute it or read it as settings. Placeholders are made in writable grants and in the
 * repositories there (`repos` may be NULL). See policy/protect.h and placeholders.c. */
struct placeholders;
bool placeholders_is_ours(const struct stat *st);     /* decided by mode and size */
bool placeholders_is_open(const struct stat *st);     /* decided by mode: HOLD_PRIVATE */
bool placeholders_is_link(int dir, const char *name); /* decided by its target */
int placeholders_make(const struct ssb_plan *plan, const struct prepared *of_run,
                      const struct repos *repos, struct placeholders **ret, struct ssb_error *err);
/* Adds a placeholder for `path`, the missing target of a symlink; it is relative to the grant.
 * Returns 0, or -1 with errno. */
int placeholders_add(struct placeholders *p, int grant_fd, const char *path, bool is_dir);
void placeholders_remove(struct placeholders *p); /* frees `p`, too; accepts NULL */
/* Returns true if the skill has made a bare repository, and writes its directory to `ret_dir`. A
 * placeholder then stays there after the run, so that git ignores the repository. */
bool placeholders_keep_git_out(const struct placeholders *p, char *ret_dir, size_t size);

#endif
