/* skills.h - the list of the skills that the owner named. */
#ifndef SERVE_SKILLS_H
#define SERVE_SKILLS_H

#include <stddef.h>

#include "skillsandbox.h"

struct skill {
	char *name; /* the name of `dir`; longer if another skill has the same name */
	char *dir;  /* real, absolute path */
};

struct skills;

/* Makes the list. Each of `dirs` must exist. It is either a skill (of any format), or a directory
 * whose children are skills. */
int skills_new(char *const dirs[], size_t n, struct skills **ret, struct ssb_error *err);
void skills_free(struct skills *s); /* accepts NULL */

/* Lists the skills as they are now, sorted by name. *ret is borrowed until the next call of
 * skills_list() or skills_find(). */
int skills_list(struct skills *s, const struct skill **ret, size_t *ret_n, struct ssb_error *err);
/* Finds a skill by name, or by a path in a directory that is served; no symlink may lead out of
 * this directory. SSB_E_POLICY: the path is not served. SSB_E_NOT_FOUND: there is no such skill.
 * Both messages say what to do. *ret is borrowed until the next call. */
int skills_find(struct skills *s, const char *word, const struct skill **ret,
                struct ssb_error *err);

#endif
