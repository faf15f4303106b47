/* skill.h - what a directory says that its skill needs, in whatever format.
 *
 * In this order: skillsandbox.yaml in the directory; the owner's own word for a skill
 * of that name, config_dir/skills/NAME.yaml, where NAME is the directory's, unless it
 * names another directory; else a
 * manifest that is derived from SKILL.md (Agent Skills and its dialects), or from
 * manifest.yaml and skill.py (Skillware). What is derived asks for little: no network,
 * no file, and the environment only as a request that the owner has to grant. */
#ifndef SKILL_SKILL_H
#define SKILL_SKILL_H

#include <stdbool.h>

#include "base/buf.h"
#include "manifest/manifest.h"

/* The program that runs a Skillware skill: the sandbox shows it there. */
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
/* What it asks of the environment is withheld until the owner grants it. */
static inline bool skill_format_derived(enum skill_format f)
{
	return f == SKILL_MARKDOWN || f == SKILL_SKILLWARE || f == SKILL_SCRIPT;
}

/* The directory of a skill, opened once. Its files are reached from `fd` alone: whatever has its
 * name later is not looked at. */
struct skill_dir {
	const char *named; /* as the caller named it, borrowed: for messages */
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
	struct manifest *manifest; /* as strictly checked as any */
	char *file;                /* the file that it comes from, absolute */
	char *text;                /* derived: the manifest it amounts to; else NULL */
	size_t used;               /* how many of the arguments named the script */
	bool unbound;              /* a sidecar that names no directory: anybody's of that name */
	bool no_entry;             /* a script has to be named, and none was: do not run it */
};

/* `config_dir` may be NULL: no sidecar. `args` (may be NULL) are the caller's: the first
 * names the script of a SKILL.md skill; without one it can be looked at, and not be run.
 * What is odd in a file that is read leniently is a warning in `diags`. */
int skill_find(const char *dir, const char *config_dir, char *const args[], struct skill_found *ret,
               struct ssb_diags *diags, struct ssb_error *err);
/* The same of an open directory, with all of the skill's files read from `source`: the directory
 * itself, or a copy of it. */
int skill_find_in(const struct skill_dir *dir, const struct skill_dir *source,
                  const char *config_dir, char *const args[], struct skill_found *ret,
                  struct ssb_diags *diags, struct ssb_error *err);
/* By one file, whatever else its directory holds: 1 where a manifest is derived from it
 * (a SKILL.md; a manifest.yaml beside its skill.py), 0 where it is no such file. */
int skill_find_file(const char *file, struct skill_found *ret, struct ssb_diags *diags,
                    struct ssb_error *err);
void skill_found_done(struct skill_found *f);
/* The scripts in it, for people: "scripts/a.py, scripts/b.sh", as many as fit. */
void skill_scripts(const struct skill_dir *dir, struct buf *out);

/* Is it the directory of a skill, of any format? Opens nothing. */
bool skill_is_one(const char *dir);
/* The name of a file by which a skill is known: "SKILL.md". */
bool skill_file_names_one(const char *name);

/* What version control keeps at the top of a skill is not the skill's, and is not approved with
 * it. Further down these are names like others. */
#define N_SKILL_FOREIGN 3
extern const char *const SKILL_FOREIGN[N_SKILL_FOREIGN];
bool skill_is_foreign(const char *name, size_t len);

#endif
