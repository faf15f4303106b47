/* manifest_world.h - manifests that are valid. */
#ifndef TESTS_MANIFEST_WORLD_H
#define TESTS_MANIFEST_WORLD_H

#include <string.h>

#include "unit.h"
#include "manifest/manifest.h"

#define HEAD "skill: {name: s, version: '1'}\nentrypoint: {command: sh}\n"

static inline struct manifest *parse(const char *text)
{
	struct ssb_error err = { 0 };
	struct manifest *m = NULL;

	if (manifest_parse_as(ENTRY_OPTIONAL, "t.yaml", text, strlen(text), &m, NULL, &err) != 0) {
		fail_msg("%s: %s\n%s", err.where, err.text, text);
	}
	return m;
}

#endif
