/* says.h - reads what a skill without a skillsandbox.yaml says about itself. No I/O.
 *
 * The text is read leniently (loose.h): nothing in it is an error, and a part that is not
 * understood asks for nothing. Each thing that the text asks for is a wish (struct wish) of an
 * untrusted author. */
#ifndef SKILL_SAYS_H
#define SKILL_SAYS_H

#include <stdbool.h>
#include <stddef.h>

#include "skillsandbox.h"

struct wish {
	char *name;      /* a variable, a program, a package */
	const char *key; /* static: the key that names it: "metadata.openclaw.requires.env" */
	unsigned line;
	unsigned col;
};

enum wishes {
	WISH_ENV,      /* variables; each a valid name */
	WISH_BINS,     /* programs that are all needed */
	WISH_ANY_BINS, /* one of these is enough */
	WISH_OS,       /* operating systems; an empty list means every system */
	WISH_PACKAGES, /* Python packages */
	WISH_KINDS,
};

struct wish_list {
	struct wish *v; /* without duplicates */
	size_t n;
};

struct says {
	char *name; /* a name that a manifest accepts; NULL: the text has none */
	char *version;
	char *description;
	struct wish_list wishes[WISH_KINDS];
};

/* Reads a SKILL.md of any dialect. `file` is its name for messages. Returns -1 without memory. The
 * caller must pass `ret` to says_done() in every case. */
int says_markdown(struct says *ret, const char *file, const char *text, size_t len,
                  struct ssb_diags *diags);
/* Like says_markdown(), for a manifest.yaml of Skillware. */
int says_skillware(struct says *ret, const char *file, const char *text, size_t len,
                   struct ssb_diags *diags);
void says_done(struct says *s);

#endif
