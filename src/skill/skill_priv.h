/* skill_priv.h - what skill.c, find_derived.c and is_one.c share. skill.c knows the formats and
 * their order; find_derived.c derives manifests; is_one.c looks for the files that mark a skill. */
#ifndef SKILL_SKILL_PRIV_H
#define SKILL_SKILL_PRIV_H

#include "skill/skill.h"

#define SKILLWARE_FILE "manifest.yaml"

struct skill_search {
	const char *dir;    /* the skill's directory: real, absolute */
	const char *source; /* path of the directory from which the files are read */
	int fd;             /* O_PATH fd of `source` */
	const char *config_dir;
	char *const *args;
	struct ssb_diags *diags;
};

/* True if the directory has this file; a symlink counts as its target. */
bool skill_has(int dir, const char *name);
/* True if the directory has the files of a Skillware skill. */
bool skill_is_ware(int dir);
/* Fails: the directory is no skill. The message says what is there instead. Returns -1. */
int skill_absent(const struct skill_search *s, struct ssb_error *err);
char *skill_join(const char *dir, const char *name); /* new; NULL: no memory */
const char *skill_base(const char *path);            /* the last part of the path */
int skill_no_memory(struct ssb_error *err);

/* `name` is the file's name in the directory: SKILL.md or skill.md. */
int skill_find_markdown(const struct skill_search *s, const char *name, struct skill_found *ret,
                        struct ssb_error *err);
int skill_find_skillware(const struct skill_search *s, struct skill_found *ret,
                         struct ssb_error *err);
/* The first argument names the script. */
int skill_find_script(const struct skill_search *s, struct skill_found *ret, struct ssb_error *err);

#endif
