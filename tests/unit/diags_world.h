/* diags_world.h - writes findings as text, for the message of a failed test. */
#ifndef TESTS_DIAGS_WORLD_H
#define TESTS_DIAGS_WORLD_H

#include <stdio.h>

#include "base/diag.h"
#include "base/own.h"

#define auto_diags AUTO(diags_freep) struct ssb_diags *

static inline const char *diags_dump(const struct ssb_diags *d)
{
	static char out[16384];
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < ssb_diags_count(d) && len < sizeof(out); i++) {
		const struct ssb_diag *e = ssb_diags_get(d, i);
		len += (size_t)snprintf(out + len, sizeof(out) - len, "%s: %s (%s)\n", e->where,
		                        e->text, e->remedy);
	}
	return out;
}

#endif
