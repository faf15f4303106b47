/* frontmatter.h - what SKILL.md says of itself in its first lines: YAML between two
 * lines of three hyphens. Pure.
 *
 * It is shown to people and models before anything else of a skill, and has to be the
 * same in the file and in what we say of it. So one that is not what it seems, or that
 * two readers of YAML could take for two different things, is none. */
#ifndef SERVE_FRONTMATTER_H
#define SERVE_FRONTMATTER_H

#include <stdbool.h>
#include <stddef.h>

#define SKILL_NAME_BYTES 64

struct frontmatter {
	char *name;        /* by the rules of Agent Skills: a-z, 0-9, single hyphens */
	char *description; /* not empty */
	char *json;        /* all of it, one object */
};

/* -1 with the reason (static) in *ret_why; `ret` is zero first, and is done with
 * frontmatter_done(). */
int frontmatter_read(struct frontmatter *ret, const char *text, size_t len, const char **ret_why);
void frontmatter_done(struct frontmatter *f);

bool frontmatter_name_valid(const char *name);
/* The nearest valid one, "" where there is none. */
void frontmatter_name_from(char ret[SKILL_NAME_BYTES + 1], const char *word);

#endif
