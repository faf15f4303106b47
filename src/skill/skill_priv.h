/* skill_priv.h - what the parts of the search for a skill's manifest share: skill.c knows the
 * formats and their order, find_derived.c has those that are without one. */
#ifndef SKILL_SKILL_PRIV_H
#define SKILL_SKILL_PRIV_H

#include "skill/skill.h"

#define SKILLWARE_FILE "manifest.yaml"

struct skill_search {
	const char *dir;    /* real, absolute: whose skill it is */
	const char *source; /* where its files are read */
	int fd;             /* of the source, O_PATH */
	const char *config_dir;
	char *const *args;
	struct ssb_diags *diags;
};

/* Of a file in the directory; what a symlink leads to counts. */
bool skill_has(int dir, const char *name);
char *skill_join(const char *dir, const char *name); /* new; NULL: no memory */
const char *skill_base(const char *path);            /* its last part */
int skill_no_memory(struct ssb_error *err);

/* `name` is that of the SKILL.md, as it is written there. */
int skill_find_markdown(const struct skill_search *s, const char *name, struct skill_found *ret,
                        struct ssb_error *err);
int skill_find_skillware(const struct skill_search *s, struct skill_found *ret,
                         struct ssb_error *err);
/* The first argument names it. */
int skill_find_script(const struct skill_search *s, struct skill_found *ret, struct ssb_error *err);

#endif
