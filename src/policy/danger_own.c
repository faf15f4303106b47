/* danger_own.c - the runtime's own files as dangerous places.
 *
 * A directory that contains them is never granted for writing: a skill could replace them, and the
 * owner's next run would trust a forged key or policy. Such a directory may be granted for reading,
 * because the runtime's files in it are covered (own_dirs.h). The secrets of the state directory
 * are never shown, whatever path is granted. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "policy/danger_set.h"
#include "policy/own_dirs.h"
#include "policy/view.h"

#define MAX_LINKS 40 /* the most symlinks that the kernel follows in one path */

const struct own_secret OWN_SECRETS[] = {
	{ "trace.key", "is the key that signs the owner's traces" },
	{ "sessions.db", "holds the sessions and the tokens of their webhooks" },
	{ "sessions.db-wal", "holds the sessions and the tokens of their webhooks" },
	{ "sessions.db-shm", "holds the sessions and the tokens of their webhooks" },
	{ "sessions.db-journal", "holds the sessions and the tokens of their webhooks" },
	{ "sessions.db-lock", "holds the sessions and the tokens of their webhooks" },
	{ CACHES_DIR, "holds the caches of skills; a skill's cache is for this skill only" },
	{ "live", "holds the sockets by which running skills are ended" },
};
const size_t OWN_SECRETS_COUNT = ARRAY_LEN(OWN_SECRETS);

static int add_program(struct danger *d)
{
	char exe[MAX_PATH_BYTES];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0 || exe[0] != '/') {
		return 0;
	}
	exe[n] = '\0';
	return view_is_system(exe)
	               ? 0
	               : danger_add(d, exe, "is the sandbox program itself", DANGER_WRITE);
}

/* Moves the first name of the path `left` to `name`. Returns false if there is none or it is too
 * long. */
static bool take_name(char *left, char name[NAME_MAX + 1])
{
	size_t skip = strspn(left, "/");
	size_t n = strcspn(left + skip, "/");

	if (n == 0 || n > NAME_MAX) {
		return false;
	}
	memcpy(name, left + skip, n);
	name[n] = '\0';
	memmove(left, left + skip + n, strlen(left + skip + n) + 1);
	return true;
}

/* Adds every symlink on the way to `path`, because a skill that could replace one would decide
 * where the runtime looks for its files. */
static int add_links(struct danger *d, const char *path)
{
	char at[PATH_MAX] = ""; /* without symlinks; "" is the root */
	char left[PATH_MAX], to[PATH_MAX], name[NAME_MAX + 1];
	int links = 0;

	if (snprintf(left, sizeof(left), "%s", path) >= (int)sizeof(left)) {
		return 0; /* no file can have so long a path */
	}
	while (links < MAX_LINKS && take_name(left, name)) {
		size_t len = strlen(at);
		if (strcmp(name, "..") == 0 && len > 0) {
			*strrchr(at, '/') = '\0';
		}
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
			continue;
		}
		if ((size_t)snprintf(at + len, sizeof(at) - len, "/%s", name) >= sizeof(at) - len) {
			return 0;
		}
		ssize_t n = readlink(at, to, sizeof(to) - 1);
		if (n <= 0) {
			continue;
		}
		to[n] = '\0';
		links++;
		size_t rest = strlen(left) + 1;
		if (danger_add(d, at, "leads to the runtime's own files",
		               DANGER_WRITE | DANGER_NEVER | DANGER_AROUND) < 0) {
			return -1;
		}
		if ((size_t)n + rest > sizeof(left)) {
			return 0;
		}
		memmove(left + n, left, rest); /* `left` begins with a slash, or is empty */
		memcpy(left, to, (size_t)n);
		at[to[0] == '/' ? 0 : len] = '\0';
	}
	return 0;
}

static int add_secrets(struct danger *d, const char *state_dir)
{
	const unsigned flags =
	        DANGER_READ | DANGER_WRITE | DANGER_BENEATH | DANGER_NEVER | DANGER_ITSELF;

	for (size_t i = 0; i < OWN_SECRETS_COUNT; i++) {
		auto_free char *path = path_join(state_dir, OWN_SECRETS[i].name);
		if (path == NULL || danger_add(d, path, OWN_SECRETS[i].why, flags) < 0) {
			return -1;
		}
	}
	return 0;
}

int danger_add_own(struct danger *d, const struct owner *o)
{
	const unsigned own = DANGER_READ | DANGER_WRITE | DANGER_BENEATH | DANGER_OWN;
	const struct {
		const char *path;
		const char *why;
		unsigned flags; /* a write there is never granted; for a read, `own` applies */
	} dirs[] = {
		{ o->config_dir, "holds the owner's policy",
		  DANGER_WRITE | DANGER_NEVER | DANGER_AROUND },
		{ o->state_dir, "holds the runtime's records",
		  DANGER_WRITE | DANGER_NEVER | DANGER_BENEATH },
	};

	if (d->access == ACCESS_WRITE && add_program(d) < 0) {
		return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (dirs[i].path != NULL &&
		    (danger_add(d, dirs[i].path, dirs[i].why, dirs[i].flags) < 0 ||
		     danger_add(d, dirs[i].path, dirs[i].why, own) < 0 ||
		     (d->access == ACCESS_WRITE && add_links(d, dirs[i].path) < 0))) {
			return -1;
		}
	}
	return o->state_dir != NULL ? add_secrets(d, o->state_dir) : 0;
}
