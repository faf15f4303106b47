/* observe_stores.c - which stores of the table (policy/danger.h) the owner has.
 *
 * Looked up before a run begins, and by their names where that is possible: a store may lie on a
 * file system that never answers, and whoever answers the skill's calls must not wait for it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/observer.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/danger_set.h"

/* Most stores are directly in one of these. */
static const char *const LISTED[] = { "~/", "~/.config/" };

static void on_host(const char *home, const char *row, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s%s", home, row + 1);
}

static int add(struct string_list *ret, const char *home, const struct danger_row *row)
{
	char path[PATH_MAX];

	on_host(home, row->path, path);
	return string_list_add(ret, path, DANGER_ROWS_COUNT);
}

/* Its name, if the place is directly in `dir`; else NULL. */
static const char *name_in(const struct danger_row *row, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(row->path, dir, n) == 0 && strchr(row->path + n, '/') == NULL ? row->path + n
	                                                                             : NULL;
}

/* `name` NULL: all of the directory, since nobody can say which are there. */
static int add_named(struct string_list *ret, const char *home, const char *dir, const char *name)
{
	int failed = 0;

	for (size_t i = 0; failed == 0 && i < DANGER_ROWS_COUNT; i++) {
		const char *row = name_in(&DANGER_ROWS[i], dir);
		if (row != NULL && (name == NULL || strcmp(row, name) == 0)) {
			failed = add(ret, home, &DANGER_ROWS[i]);
		}
	}
	return failed;
}

static int add_listed(struct string_list *ret, const char *home, const char *dir)
{
	char path[PATH_MAX];
	int failed = 0;

	on_host(home, dir, path);
	auto_dir d = opendir(path);
	if (d == NULL) {
		return file_is_missing(errno) ? 0 : add_named(ret, home, dir, NULL);
	}
	for (const struct dirent *e; failed == 0 && (e = readdir(d)) != NULL;) {
		failed = add_named(ret, home, dir, e->d_name);
	}
	return failed;
}

/* In the owner's home, dangerous to read, and in none of the directories that are listed. */
static bool is_deeper(const struct danger_row *row)
{
	bool deeper = row->path[0] == '~' && (row->flags & DANGER_READ) != 0;

	for (size_t i = 0; i < ARRAY_LEN(LISTED); i++) {
		deeper = deeper && name_in(row, LISTED[i]) == NULL;
	}
	return deeper;
}

int observer_stores(const char *home, struct string_list *ret)
{
	int failed = 0;

	for (size_t i = 0; failed == 0 && i < ARRAY_LEN(LISTED); i++) {
		failed = add_listed(ret, home, LISTED[i]);
	}
	for (size_t i = 0; failed == 0 && i < DANGER_ROWS_COUNT; i++) {
		char path[PATH_MAX];
		if (!is_deeper(&DANGER_ROWS[i])) {
			continue;
		}
		on_host(home, DANGER_ROWS[i].path, path);
		if (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0 ||
		    !file_is_missing(errno)) {
			failed = add(ret, home, &DANGER_ROWS[i]);
		}
	}
	return failed;
}
