/* derive.h - writes a manifest, as text, for a skill that has none. No I/O.
 *
 * manifest_parse() reads the text like any other manifest, so a derived manifest is checked as
 * strictly as a written one. It asks for no network and no files, has the usual limits, and it
 * lists variables only as requests that the owner must grant. */
#ifndef SKILL_DERIVE_H
#define SKILL_DERIVE_H

#include "base/buf.h"
#include "skill/says.h"
#include "skill/script.h"

/* A manifest must have a version: this one stands for none. */
#define DERIVED_NO_VERSION "0"

struct derived {
	const char *from;        /* "SKILL.md" */
	const char *name;        /* the name of the manifest if the skill's text gives none */
	const struct says *says; /* borrowed, like argv */
	char *const *argv; /* the command, NULL-terminated; NULL: the manifest has no entrypoint */
};

void derive_manifest(struct buf *out, const struct derived *d);

#endif
