/* observe_stores.c - finds the stores of secrets in the table of policy/danger.h that the owner
 * has.
 *
 * The search runs before a run begins, and finds stores by listing their names if possible. A store
 * may be on a file system that never answers, and the process that answers the skill's calls must
 * not wait for it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "observe/observer.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/danger_set.h"

#define CONFIG "~/.config/"

static void on_host(const char *home, const char *row, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s%s", home, row + 1);
}

/* Returns the part of the row's path after `dir`, or NULL if the row is not searched for in `dir`.
 * Most stores are directly in the home or in its .config. */
static const char *name_in(const struct danger_row *row, const char *dir)
{
	bool at_config = strncmp(row->path, CONFIG, sizeof(CONFIG) - 1) == 0;
	size_t n = strlen(dir);

	return (row->flags & DANGER_READ) != 0 && strncmp(row->path, dir, n) == 0 &&
	                       at_config == (strcmp(dir, CONFIG) == 0)
	               ? row->path + n
	               : NULL;
}

/* Returns whether the row's store exists. `name` is an entry of the row's directory: the store
 * itself, or a directory that may contain the store. */
static bool is_there(const char *path, const char *row, const char *name)
{
	size_t n = strlen(name);

	return row[n] == '\0' ||
	       (row[n] == '/' &&
	        (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0 ||
	         !file_is_missing(errno)));
}

/* The rows of the table that are looked up in one directory. */
struct rows {
	const char *dir;
	size_t n;
	const char **v; /* their paths */
};

static void rows_done(struct rows *r)
{
	free(r->v);
}

static int rows_pick(struct rows *r)
{
	r->v = calloc(DANGER_ROWS_COUNT, sizeof(r->v[0]));
	for (size_t i = 0; r->v != NULL && i < DANGER_ROWS_COUNT; i++) {
		if (name_in(&DANGER_ROWS[i], r->dir) != NULL) {
			r->v[r->n++] = DANGER_ROWS[i].path;
		}
	}
	return r->v != NULL ? 0 : -1;
}

/* Adds the rows that begin with the entry `name` and whose store exists. If `name` is NULL, the
 * directory could not be listed, and all its rows are added. */
static int add_named(struct string_list *ret, const char *home, const struct rows *r,
                     const char *name)
{
	size_t at = strlen(r->dir);
	int failed = 0;

	for (size_t i = 0; failed == 0 && i < r->n; i++) {
		const char *row = r->v[i] + at;
		char path[PATH_MAX];
		/* Compare two letters first: the first letter of most names is a dot, so most names
		 * differ in the second. */
		if (name != NULL && (row[0] != name[0] || row[1] != name[1] ||
		                     strncmp(row, name, strlen(name)) != 0)) {
			continue;
		}
		on_host(home, r->v[i], path);
		if (name == NULL || is_there(path, row, name)) {
			failed = string_list_add_once(ret, path, DANGER_ROWS_COUNT);
		}
	}
	return failed;
}

static int add_listed(struct string_list *ret, const char *home, const char *dir)
{
	AUTO(rows_done) struct rows rows = { .dir = dir };
	char path[PATH_MAX];
	int failed = rows_pick(&rows);

	if (failed != 0) {
		return -1;
	}
	on_host(home, dir, path);
	auto_dir d = opendir(path);
	if (d == NULL) {
		return file_is_missing(errno) ? 0 : add_named(ret, home, &rows, NULL);
	}
	errno = 0;
	for (const struct dirent *e; failed == 0 && (e = readdir(d)) != NULL; errno = 0) {
		failed = add_named(ret, home, &rows, e->d_name);
	}
	return failed == 0 && errno != 0 ? add_named(ret, home, &rows, NULL) : failed;
}

int observer_stores(const char *home, struct string_list *ret)
{
	return add_listed(ret, home, "~/") != 0 ? -1 : add_listed(ret, home, CONFIG);
}
