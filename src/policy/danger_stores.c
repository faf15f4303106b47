/* danger_stores.c - the secret places of the table that the owner has.
 *
 * The search takes place before the run begins. If possible, it reads only the names in the
 * directories above the places. A place may be on a file system that never answers, and the process
 * that answers the skill's calls must not wait for that file system. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "policy/danger_set.h"

static bool is_store(const struct danger_row *row)
{
	return strncmp(row->path, "~/", 2) == 0 && (row->flags & DANGER_READ) != 0;
}

static int add_found(const struct lookups *l, const char *home, struct string_list *ret)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < DANGER_ROWS_COUNT; i++) {
		const struct danger_row *row = &DANGER_ROWS[i];
		if (!is_store(row)) {
			continue;
		}
		snprintf(path, sizeof(path), "%s%s", home, row->path + 1);
		if (lookups_is_found(l, path) &&
		    string_list_add(ret, path, DANGER_ROWS_COUNT) != 0) {
			return -1;
		}
	}
	return 0;
}

void danger_list_home(struct lookups *l, const char *home)
{
	lookups_list(l, home, "");
	lookups_list(l, home, ".config");
}

int danger_stores(const struct danger *d, const char *home, struct string_list *ret)
{
	AUTO(lookups_done) struct lookups listed = { 0 };

	if (d == NULL) {
		danger_list_home(&listed, home);
	}
	return add_found(d != NULL ? &d->lookups : &listed, home, ret);
}
