/* frontmatter.h - the first lines of a SKILL.md: YAML between two lines of three hyphens. Pure.
 *
 * People see it in the file, models see it in the server's answers, and both must see the
 * same. So frontmatter is rejected if it has hidden characters, or if two YAML parsers could
 * read it differently. */
#ifndef SERVE_FRONTMATTER_H
#define SERVE_FRONTMATTER_H

#include <stdbool.h>
#include <stddef.h>

#define SKILL_NAME_BYTES 64

struct frontmatter {
	char *name;        /* valid in Agent Skills: a-z, 0-9, single hyphens */
	char *description; /* not empty */
	char *json;        /* the whole frontmatter as one object */
};

/* Reads the frontmatter of a file's text. The caller must set *ret to zero first, and pass it
 * to frontmatter_done() in any case. Returns -1 if it is not valid; *ret_why is then the
 * reason (static). */
int frontmatter_read(struct frontmatter *ret, const char *text, size_t len, const char **ret_why);
void frontmatter_done(struct frontmatter *f);

bool frontmatter_name_valid(const char *name);
/* Makes a valid name from any word; "" if nothing of it is left. */
void frontmatter_name_from(char ret[SKILL_NAME_BYTES + 1], const char *word);

#endif
