/* skill.h - finds the manifest of a skill, or derives one.
 *
 * The first of these is used: skillsandbox.yaml in the skill's directory; the owner's own manifest
 * (sidecar) config_dir/skills/NAME.yaml, where NAME is the name of the directory, unless the
 * sidecar names another directory; a manifest that is derived from SKILL.md (Agent Skills and its
 * dialects), from manifest.yaml and skill.py (Skillware), or for a script that the caller names. A
 * derived manifest asks for little: no network, no file, and variables only as requests that the
 * owner must grant. */
#ifndef SKILL_SKILL_H
#define SKILL_SKILL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/string_list.h"
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
/* Finds the format with this name. Returns false if no format has it. */
bool skill_format_from(const char *name, enum skill_format *ret);
/* True if the manifest is derived. The variables that such a manifest asks for are withheld until
 * the owner grants them. */
static inline bool skill_format_derived(enum skill_format f)
{
	return f == SKILL_MARKDOWN || f == SKILL_SKILLWARE || f == SKILL_SCRIPT;
}

/* The directory of a skill, opened once. Its files are reached only through `fd`, so that another
 * directory that gets the same path later is never read. */
struct skill_dir {
	const char *named; /* the path as the caller wrote it, for messages; borrowed */
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
	struct manifest
	        *manifest; /* a derived manifest has passed the same checks as a written one */
	char *file;        /* absolute path of the file from which it was read or derived */
	char *text;        /* the text of a derived manifest; else NULL */
	size_t used;       /* 1 if the caller's first argument named the script, else 0 */
	/* a sidecar NAME.yaml that names no directory: it is used for every directory called
	 * NAME */
	bool unbound;
	bool no_entry; /* the caller must name a script and did not: the skill must not be run */
	/* What runs: the manifest's entrypoint, or the script that the caller's first argument
	 * names. Empty if no_entry. */
	struct string_list argv;
};

/* Returns the version of the skill; "" if a derived manifest has none. */
const char *skill_version(const struct skill_found *f);

/* Finds the manifest of the skill in `dir`. If `config_dir` is NULL, there are no sidecars. `args`
 * (may be NULL) are the caller's arguments: the first one names the script if there is no
 * entrypoint; without it the skill can be inspected but not run. Unusual content of a leniently
 * read file is a warning in `diags`. On success `ret` is new (skill_found_done()). */
int skill_find(const char *dir, const char *config_dir, char *const args[], struct skill_found *ret,
               struct ssb_diags *diags, struct ssb_error *err);
/* Like skill_find(), for an open directory. All files of the skill are read from `source`: the
 * directory itself, or a copy of it. */
int skill_find_in(const struct skill_dir *dir, const struct skill_dir *source,
                  const char *config_dir, char *const args[], struct skill_found *ret,
                  struct ssb_diags *diags, struct ssb_error *err);
/* Like skill_find(), for a single file, whatever else its directory contains. Returns 1 if a
 * manifest was derived from the file (a SKILL.md, or a manifest.yaml beside its skill.py), 0 if it
 * is not such a file, -1 with `err` on failure. */
int skill_find_file(const char *file, struct skill_found *ret, struct ssb_diags *diags,
                    struct ssb_error *err);
void skill_found_done(struct skill_found *f);
/* Appends the scripts in the directory, for people: "scripts/a.py, scripts/b.sh", as many as
 * fit. */
void skill_scripts(const struct skill_dir *dir, struct buf *out);

/* True if `dir` is the directory of a skill, in any format. Opens none of its files. */
bool skill_is_one(const char *dir);
/* True for the name of a file that marks a skill: "SKILL.md". */
bool skill_file_names_one(const char *name);

/* Directories of version control at the top of a skill are not part of the skill and are not
 * approved with it. Further down these names are ordinary. */
#define N_SKILL_FOREIGN 3
extern const char *const SKILL_FOREIGN[N_SKILL_FOREIGN];
bool skill_is_foreign(const char *name, size_t len);

#endif
