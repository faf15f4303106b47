/* served_files.h - the files of a skill's directory, as they can be served: regular files
 * beneath it, each with its digest. Nothing is followed, and what has no content of its
 * own (symlinks, FIFOs, sockets, devices) is left out and said. */
#ifndef SERVE_SERVED_FILES_H
#define SERVE_SERVED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "serve/skills.h"

#define SKILL_FILE "SKILL.md"

struct served_file {
	char *path; /* from the skill's directory on: hostile bytes */
	bool is_dir;
	uint64_t size;
	uint8_t hash[SHA256_BYTES]; /* where it was asked for */
};

struct served_left {
	char *path;
	const char *why; /* "symlink" */
};

#define MAX_SKILL_LEFT 64 /* that are named */

struct served_files {
	struct served_file *v; /* in order of their paths */
	size_t n;
	size_t n_files; /* without the directories */
	uint64_t bytes;
	struct served_left left[MAX_SKILL_LEFT];
	size_t n_left;       /* all of them; past MAX_SKILL_LEFT they are counted */
	const char *refused; /* why the skill cannot be served as files; NULL: it can */
};

/* `state_dir`: of the cache of digests; NULL: no digests are wanted. `ret` is done with
 * served_files_done() in any case. -1: the directory cannot be opened. */
int served_files_read(struct served_files *ret, const struct skill *skill, const char *state_dir);
void served_files_done(struct served_files *f);

/* The content of one, by a path that served_files_read() could have given. -1: there is
 * no such file. */
int served_file_content(const struct skill *skill, const char *path, struct buf *out);
bool served_path_valid(const char *path); /* no "", ".", ".." or what is left out in it */

#endif
