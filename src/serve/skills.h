/* skills.h - the skills that the owner named, and no others. */
#ifndef SERVE_SKILLS_H
#define SERVE_SKILLS_H

#include <stddef.h>

#include "skillsandbox.h"

struct skill {
	char *name; /* of its directory: unique among those served, else with the root before it */
	char *dir;  /* real, absolute */
};

struct skills;

/* A named directory is a skill itself (of any format), or a directory of skills,
 * one level deep. Both must exist. */
int skills_new(char *const dirs[], size_t n, struct skills **ret, struct ssb_error *err);
void skills_free(struct skills *s); /* accepts NULL */

/* Looks again: skills come and go. In order of their names. *ret is borrowed until
 * the next call. */
int skills_list(struct skills *s, const struct skill **ret, size_t *ret_n, struct ssb_error *err);
/* By name, or by a path that leads (without a symlink out of it) into a directory that
 * is served; SSB_E_POLICY with what to do where it does not, SSB_E_NOT_FOUND where
 * there is none. *ret is borrowed until the next call. */
int skills_find(struct skills *s, const char *word, const struct skill **ret,
                struct ssb_error *err);

#endif
