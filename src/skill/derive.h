/* derive.h - the manifest that a skill without one amounts to, as text. Pure.
 *
 * It goes through manifest_parse() like any other: what is derived is as strictly checked
 * as what is written. No network, no files, the usual limits; variables as wishes. */
#ifndef SKILL_DERIVE_H
#define SKILL_DERIVE_H

#include "base/buf.h"
#include "skill/says.h"
#include "skill/script.h"

struct derived {
	const char *from;        /* "SKILL.md" */
	const char *name;        /* where it gives itself none */
	const struct says *says; /* borrowed, as the next */
	char *const *argv;       /* the entry, NULL-terminated; NULL: no script was named */
};

void derive_manifest(struct buf *out, const struct derived *d);

#endif
