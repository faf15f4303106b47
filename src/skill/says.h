/* says.h - what a skill without a manifest of ours says of itself. Pure.
 *
 * Read leniently (loose.h): nothing here is an error, and what is not understood asks for
 * nothing. Whatever it says is a wish of the party that is not trusted. */
#ifndef SKILL_SAYS_H
#define SKILL_SAYS_H

#include <stdbool.h>
#include <stddef.h>

#include "skillsandbox.h"

struct wish {
	char *name;      /* a variable, a program, a package */
	const char *key; /* static: where it stands: "metadata.openclaw.requires.env" */
	unsigned line;
	unsigned col;
};

enum wishes {
	WISH_ENV,      /* variables; each a valid name */
	WISH_BINS,     /* programs, all of them */
	WISH_ANY_BINS, /* one of these is enough */
	WISH_OS,       /* systems; none: any */
	WISH_PACKAGES, /* of Python */
	WISH_KINDS,
};

struct wish_list {
	struct wish *v; /* each once */
	size_t n;
};

struct says {
	char *name; /* as manifests have them; NULL: none that can be one */
	char *version;
	char *description;
	struct wish_list wishes[WISH_KINDS];
};

/* A SKILL.md of any dialect. `file` names it in messages. -1: without memory. `ret` is
 * done with says_done() in any case. */
int says_markdown(struct says *ret, const char *file, const char *text, size_t len,
                  struct ssb_diags *diags);
/* A manifest.yaml of Skillware. */
int says_skillware(struct says *ret, const char *file, const char *text, size_t len,
                   struct ssb_diags *diags);
void says_done(struct says *s);

#endif
