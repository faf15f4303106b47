/* skill.h - what a directory says that its skill needs, in whatever format.
 *
 * In this order: skillsandbox.yaml in the directory; the owner's own manifest for a skill of
 * that name, config_dir/skills/NAME.yaml, where NAME is the name of the directory, unless it
 * names another directory; else a manifest that is derived from SKILL.md (Agent Skills and its
 * dialects), or from manifest.yaml and skill.py (Skillware). A derived manifest asks for little:
 * no network, no file, and the environment only as a request that the owner must grant. */
#ifndef SKILL_SKILL_H
#define SKILL_SKILL_H

#include <stdbool.h>

#include "base/buf.h"
#include "manifest/manifest.h"

/* The program that runs a Skillware skill; the sandbox shows it at this path. */
#define SKILL_WORKER "/run/skillsandbox/worker.py"

enum skill_format {
	SKILL_DECLARED,  /* skillsandbox.yaml */
	SKILL_SIDECAR,   /* the owner's file */
	SKILL_MARKDOWN,  /* derived from SKILL.md */
	SKILL_SKILLWARE, /* derived from manifest.yaml */
	SKILL_SCRIPT,    /* a script that the caller names, in a directory without any of these */
};

/* For people and records: "skillsandbox.yaml", "sidecar", "SKILL.md", "skillware", "script". */
const char *skill_format_name(enum skill_format f);
/* True if the variables that it asks for are withheld until the owner grants them. */
static inline bool skill_format_derived(enum skill_format f)
{
	return f == SKILL_MARKDOWN || f == SKILL_SKILLWARE || f == SKILL_SCRIPT;
}

/* The directory of a skill, opened once. Its files are reached only from `fd`, so that a
 * directory that takes over the name later is never looked at. */
struct skill_dir {
	const char *named; /* the caller's name for it, borrowed: for messages */
	char *path;        /* real, absolute */
	int fd;            /* O_PATH */
};
#define SKILL_DIR_NONE                                                                             \
	{                                                                                          \
		.fd = -1                                                                           \
	}
int skill_dir_open(const char *named, struct skill_dir *ret, struct ssb_error *err);
void skill_dir_close(struct skill_dir *d); /* accepts SKILL_DIR_NONE */

struct skill_found {
	enum skill_format format;
	struct manifest *manifest; /* checked as strictly as any other */
	char *file;                /* the file that it was read from, absolute */
	char *text;                /* the text of a derived manifest; else NULL */
	size_t used;               /* how many of the arguments named the script */
	bool unbound;  /* a sidecar that names no directory, so any skill of that name gets it */
	bool no_entry; /* the caller must name a script and named none: the skill must not be run */
};

/* `config_dir` may be NULL: no sidecar. `args` (may be NULL) are the caller's: the first names
 * the script of a SKILL.md skill; without one the skill can be looked at but not run. Unusual
 * content of a leniently read file is a warning in `diags`. */
int skill_find(const char *dir, const char *config_dir, char *const args[], struct skill_found *ret,
               struct ssb_diags *diags, struct ssb_error *err);
/* The same for an open directory. All files of the skill are read from `source`: the directory
 * itself, or a copy of it. */
int skill_find_in(const struct skill_dir *dir, const struct skill_dir *source,
                  const char *config_dir, char *const args[], struct skill_found *ret,
                  struct ssb_diags *diags, struct ssb_error *err);
/* The same for a single file, whatever else its directory contains. Returns 1 if a manifest is
 * derived from it (a SKILL.md; a manifest.yaml beside its skill.py), 0 if it is not such a file. */
int skill_find_file(const char *file, struct skill_found *ret, struct ssb_diags *diags,
                    struct ssb_error *err);
void skill_found_done(struct skill_found *f);
/* Appends the scripts in it, for people: "scripts/a.py, scripts/b.sh", as many as fit. */
void skill_scripts(const struct skill_dir *dir, struct buf *out);

/* True if it is the directory of a skill, in any format. Opens nothing. */
bool skill_is_one(const char *dir);
/* True for the name of a file that marks a skill: "SKILL.md". */
bool skill_file_names_one(const char *name);

/* Directories of version control at the top of a skill are not part of the skill and are not
 * approved with it. Further down these names are ordinary. */
#define N_SKILL_FOREIGN 3
extern const char *const SKILL_FOREIGN[N_SKILL_FOREIGN];
bool skill_is_foreign(const char *name, size_t len);

#endif
