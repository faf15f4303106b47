/* The revisions that we speak. */
#include <string.h>

#include "base/own.h"
#include "mcp/priv.h"

/* The newest first: who has no wish takes the first that it knows. */
static const struct {
	const char *name;
	bool modern;
} VERSIONS[] = {
	{ MCP_LATEST, true },    { MCP_LATEST_LEGACY, false }, { "2025-06-18", false },
	{ "2025-03-26", false }, { "2024-11-05", false },
};

static int version_index(const char *version)
{
	for (size_t i = 0; i < ARRAY_LEN(VERSIONS); i++) {
		if (strcmp(VERSIONS[i].name, version) == 0) {
			return (int)i;
		}
	}
	return -1;
}

bool mcp_version_known(const char *version)
{
	return version_index(version) >= 0;
}

bool mcp_version_modern(const char *version)
{
	int i = version_index(version);

	return i >= 0 && VERSIONS[i].modern;
}

const char *version_static(const char *version)
{
	int i = version_index(version);

	return i >= 0 ? VERSIONS[i].name : NULL;
}

const char *version_legacy(const char *wish)
{
	int i = version_index(wish);

	return i >= 0 && !VERSIONS[i].modern ? VERSIONS[i].name : MCP_LATEST_LEGACY;
}

void version_list(struct json *j)
{
	json_open(j, '[');
	for (size_t i = 0; i < ARRAY_LEN(VERSIONS); i++) {
		json_str(j, VERSIONS[i].name);
	}
	json_close(j, ']');
}
