/* served_files.h - the files of a skill's directory that are served: regular files, each with its
 * digest, and directories. Symlinks, FIFOs, sockets, devices, unreadable files and the directory of
 * a version control system (.git) are not served, and the client gets a note about them. */
#ifndef SERVE_SERVED_FILES_H
#define SERVE_SERVED_FILES_H

#include <stdbool.h>

#include "base/buf.h"
#include "serve/skills.h"
#include "skill/files.h"

#define SKILL_FILE "SKILL.md"

/* Reads the files with FILES_SERVE (skill/files.h). `state_dir` is the directory with the
 * cache of digests; NULL: no digests are wanted. Returns -1 if the skill cannot be served as
 * files; `out` then contains the files that were read before the failure. The caller must give
 * `out` to skill_files_done() in both cases. */
int served_files_read(struct skill_files *out, const struct skill *skill, const char *state_dir,
                      struct ssb_error *err);
/* Returns true if this entry is served as a file. */
static inline bool served_as_file(const struct skill_file *f)
{
	return !f->dir && f->no_digest == NULL;
}

/* Appends the content of one file. Returns -1 if there is no such file, or if it is not served. */
int served_file_content(const struct skill *skill, const char *path, struct buf *out);
/* Returns true if a served file can have this path: no part of it is "", ".", ".." or ".git". */
bool served_path_valid(const char *path);

#endif
