/* name_tables.c - the words of the file format for the enums of manifest.h. */
#include "manifest/name_tables.h"

#include "base/name.h"
#include "manifest/manifest.h"

const char *const PROFILE_NAMES[N_PROFILES + 1] = {
	[PROFILE_DEFAULT] = "default",
	[PROFILE_STRICT] = "strict",
	[PROFILE_PERMISSIVE] = "permissive",
};

const char *const PROTOCOL_NAMES[N_PROTOCOLS] = {
	[PROTO_TCP] = "tcp",
	[PROTO_UDP] = "udp",
	[PROTO_TLS] = "tls",
	[PROTO_HTTP] = "http",
};

const char *const NAMED_FILES_NAMES[N_NAMED_FILES] = {
	[NAMED_READ - NAMED_READ] = "read",
	[NAMED_WRITE - NAMED_READ] = "write",
};

static int find_name(const char *s, const char *const *names, size_t n)
{
	size_t i = name_index(s, names, n, sizeof(*names));

	return i < n ? (int)i : -1;
}

const char *profile_name(enum profile p)
{
	return PROFILE_NAMES[p];
}

int profile_from_name(const char *s)
{
	return find_name(s, PROFILE_NAMES, N_PROFILES);
}

const char *named_files_name(enum named_files f)
{
	return f != NAMED_NOTHING ? NAMED_FILES_NAMES[f - NAMED_READ] : NULL;
}

enum named_files named_files_from(const char *s)
{
	int i = find_name(s, NAMED_FILES_NAMES, N_NAMED_FILES);

	return i >= 0 ? (enum named_files)(NAMED_READ + i) : NAMED_NOTHING;
}

const char *protocol_name(enum protocol p)
{
	return PROTOCOL_NAMES[p];
}

int protocol_from_name(const char *s)
{
	return find_name(s, PROTOCOL_NAMES, N_PROTOCOLS);
}
