/* danger_name.c - says by the text of a path alone whether it names a dangerous place. The path
 * need not exist on this machine. */
#include <string.h>

#include "base/array.h"
#include "policy/danger_set.h"
#include "policy/unlisted.h"

/* True for a place that is dangerous to read with everything in it. False for large trees that also
 * contain harmless files, such as /run. */
static bool is_store(const struct danger_row *row)
{
	static const unsigned reading = DANGER_READ | DANGER_BENEATH;

	return (row->flags & reading) == reading &&
	       (row->flags & (DANGER_NEVER | DANGER_HOMES | DANGER_LOUD)) == 0 &&
	       strcmp(row->path, "/run") != 0 && strcmp(row->path, "/var/run") != 0;
}

static bool is_or_beneath(const char *path, const char *place)
{
	size_t n = 0;

	/* No strlen(): this function is called often, and usually the first letters differ. */
	while (place[n] != '\0' && place[n] == path[n]) {
		n++;
	}
	return place[n] == '\0' && (path[n] == '\0' || path[n] == '/');
}

static bool is_around(const struct danger_row *row, const char *path, unsigned flag)
{
	bool holds = (row->flags & DANGER_ITSELF) == 0 && is_or_beneath(row->path, path);

	return (row->flags & flag) != 0 &&
	       (holds || strcmp(row->path, path) == 0 ||
	        ((row->flags & DANGER_BENEATH) != 0 && is_or_beneath(path, row->path)));
}

const char *danger_around(const char *path, enum access access)
{
	unsigned flag = access == ACCESS_WRITE ? DANGER_WRITE : DANGER_READ;

	for (size_t i = 0; i < NEVER_ROWS_COUNT; i++) {
		if (is_around(&NEVER_ROWS[i].row, path, flag)) {
			return NEVER_ROWS[i].row.why;
		}
	}
	for (size_t i = 0; i < DANGER_ROWS_COUNT; i++) {
		if (is_around(&DANGER_ROWS[i], path, flag)) {
			return DANGER_ROWS[i].why;
		}
	}
	return strncmp(path, "~/.", 3) == 0 ? HIDDEN_WHY : NULL;
}

bool danger_knows(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < DANGER_ROWS_COUNT; i++) {
		const char *at = DANGER_ROWS[i].path[0] == '~' ? DANGER_ROWS[i].path + 1 : "";
		while (*at == '/') {
			at += strspn(at, "/.");
			if (strncasecmp(at, name, len) == 0 && strchr("./", at[len]) != NULL) {
				return true; /* strchr() also finds the final NUL */
			}
			at += strcspn(at, "/");
		}
	}
	return false;
}

const char *danger_store(const char *home, const char *path, size_t *ret_len)
{
	size_t n = strlen(home);
	bool at_home = is_or_beneath(path, home);

	for (size_t i = 0; i < DANGER_ROWS_COUNT; i++) {
		const struct danger_row *row = &DANGER_ROWS[i];
		bool hit = row->path[0] == '~' ? at_home && is_or_beneath(path + n, row->path + 1)
		                               : is_or_beneath(path, row->path);
		if (hit && is_store(row)) {
			*ret_len = strlen(row->path) + (row->path[0] == '~' ? n - 1 : 0);
			return row->why;
		}
	}
	return NULL;
}

bool danger_is_runtime(const char *home, const char *path)
{
	size_t n = strlen(home);

	return is_or_beneath(path, home) &&
	       ARRAY_HAS(row, DANGER_ROWS, DANGER_ROWS_COUNT,
	                 (row->flags & DANGER_OWN) != 0 && row->path[0] == '~' &&
	                         is_or_beneath(path + n, row->path + 1));
}

const char *danger_named(const char *home, const char *path)
{
	size_t len;

	return danger_store(home, path, &len);
}
