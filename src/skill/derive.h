/* derive.h - writes the manifest that a skill without one amounts to, as text. Pure.
 *
 * The text goes through manifest_parse() like any other, so a derived manifest is checked as
 * strictly as a written one. It asks for no network and no files, has the usual limits, and asks
 * for variables as wishes. */
#ifndef SKILL_DERIVE_H
#define SKILL_DERIVE_H

#include "base/buf.h"
#include "skill/says.h"
#include "skill/script.h"

struct derived {
	const char *from;        /* "SKILL.md" */
	const char *name;        /* used if the skill does not name itself */
	const struct says *says; /* borrowed, like argv */
	char *const *argv;       /* the entry, NULL-terminated; NULL: the caller named no script */
};

void derive_manifest(struct buf *out, const struct derived *d);

#endif
