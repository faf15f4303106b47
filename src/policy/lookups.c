/* lookups.c - looks up paths, and keeps the results. */
#include "policy/lookups.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/own.h"
#include "os/entries.h"
#include "os/file.h"

#define LISTED_BYTES 16384U

/* Reads the names in a directory, each with its NUL. Returns the bytes that they take together;
 * SIZE_MAX if there are too many or they cannot be read. */
static size_t read_names(int dir, char names[LISTED_BYTES])
{
	struct entries entries;
	size_t len = 0;

	entries_init(&entries, dir);
	for (const struct dirent64 *e; (e = entries_next(&entries)) != NULL;) {
		size_t size = strlen(e->d_name) + 1;
		if (size > LISTED_BYTES - len) {
			return SIZE_MAX;
		}
		memcpy(names + len, e->d_name, size);
		len += size;
	}
	return errno == 0 ? len : SIZE_MAX;
}

void lookups_list(struct lookups *l, const char *home, const char *name)
{
	char names[LISTED_BYTES];
	auto_free char *dir = path_join(home, name);
	bool listed = dir != NULL && !lookups_may_exist(l, dir);
	auto_fd fd = dir != NULL && !listed ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	bool missing = listed || (dir != NULL && fd < 0 && file_is_missing(errno));
	size_t len = fd >= 0 ? read_names(fd, names) : missing ? 0 : SIZE_MAX;

	if (l->n_listed == MAX_LISTED_DIRS || len == SIZE_MAX) {
		return;
	}
	char *kept = malloc(len + 1);
	if (kept != NULL) {
		memcpy(kept, names, len);
		l->listed[l->n_listed++] = (struct dir_names){ steal_ptr(&dir), kept, len };
	}
}

static bool names_have(const struct dir_names *d, const char *name, size_t len)
{
	for (size_t at = 0; at < d->len; at += strlen(d->names + at) + 1) {
		if (strncmp(d->names + at, name, len) == 0 && d->names[at + len] == '\0') {
			return true;
		}
	}
	return false;
}

/* What the directories whose names were read (l->listed) say about a path. */
enum listed { LISTED_NOT, LISTED_MISSING, LISTED_PRESENT };

static enum listed is_listed(const struct lookups *l, const char *path)
{
	enum listed ret = LISTED_NOT;

	for (size_t i = 0; i < l->n_listed; i++) {
		const char *rest = path_beneath(path, l->listed[i].dir);
		size_t n = rest != NULL ? strcspn(rest, "/") : 0;
		if (n == 0) {
			continue;
		}
		if (!names_have(&l->listed[i], rest, n)) {
			return LISTED_MISSING;
		}
		ret = rest[n] == '\0' ? LISTED_PRESENT : ret;
	}
	return ret;
}

bool lookups_may_exist(const struct lookups *l, const char *path)
{
	return is_listed(l, path) != LISTED_MISSING;
}

/* Returns the length of the parent: "/a" for "/a/b", and "/" for "/a". */
static size_t parent_length(const char *path, size_t len)
{
	while (len > 1 && path[len - 1] != '/') {
		len--;
	}
	return len > 1 ? len - 1 : 1;
}

static ssize_t find_known(const struct lookups *l, const char *path, size_t len)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].len == len && memcmp(l->v[i].path, path, len) == 0) {
			return (ssize_t)i;
		}
	}
	return -1;
}

const struct lookup *lookups_known(const struct lookups *l, const char *path, size_t len)
{
	ssize_t at = find_known(l, path, len);

	return at >= 0 ? &l->v[at] : NULL;
}

static ssize_t look_up(struct lookups *l, const char *path, size_t len);

/* Follows a symlink by its text, because its target is often a path that is needed anyway: /var/run
 * leads to /run. Returns true if the text leads to an existing object without a further symlink. */
static bool follow_text(struct lookups *l, size_t link)
{
	if (l->following) {
		return false;
	}
	auto_free char *to = path_link_text(l->v[link].path);
	l->following = true;
	ssize_t at = to != NULL ? look_up(l, to, strlen(to)) : -1;
	l->following = false;
	if (at < 0 || !l->v[at].real || !l->v[at].exists) {
		return false;
	}
	struct lookup *f = &l->v[link];
	f->exists = true;
	f->id = l->v[at].id;
	f->led_to = steal_ptr(&to);
	return true;
}

/* Returns the index of path[0..len), after adding the directories above it; -1 without memory.
 * Parents come first, so that a symlink on the way is known. */
static ssize_t look_up(struct lookups *l, const char *path, size_t len)
{
	ssize_t known = find_known(l, path, len);

	if (known >= 0) {
		return known;
	}
	bool above_real = true;
	bool above_exists = true;
	bool above_unknown = false;
	if (len > 1) {
		ssize_t up = look_up(l, path, parent_length(path, len));
		if (up < 0) {
			return -1;
		}
		assert(l->v != NULL);
		above_real = l->v[up].real;
		above_exists = l->v[up].exists;
		above_unknown = l->v[up].unknown;
	}
	if (!ARRAY_MORE(l->v, l->n)) {
		return -1;
	}
	size_t at = l->n;
	struct lookup *f = &l->v[at];
	struct stat st = { 0 };
	*f = (struct lookup){ .path = strndup(path, len), .len = len };
	if (f->path == NULL) {
		return -1;
	}
	l->n++; /* count it before it is complete: the lookup of a symlink to itself must find it */
	errno = ENOENT;
	f->named = above_exists && lookups_may_exist(l, f->path) && lstat(f->path, &st) == 0;
	f->real = above_real && !(f->named && S_ISLNK(st.st_mode));
	if (above_real && !f->real && follow_text(l, at)) {
		return (ssize_t)at;
	}
	f = &l->v[at];
	f->exists = f->real ? f->named : stat(f->path, &st) == 0;
	f->unknown = above_unknown || (!f->exists && !file_is_missing(errno));
	f->id = (struct object){ st.st_dev, st.st_ino };
	return (ssize_t)at;
}

const struct lookup *lookups_get(struct lookups *l, const char *path, size_t len)
{
	assert(len > 0 && path[0] == '/');

	ssize_t at = look_up(l, path, len);

	return at >= 0 ? &l->v[at] : NULL;
}

const struct lookup *lookups_parent(struct lookups *l, const char *path)
{
	return lookups_get(l, path, parent_length(path, strlen(path)));
}

bool lookups_is_found(const struct lookups *l, const char *path)
{
	enum listed listed = is_listed(l, path);

	if (listed != LISTED_NOT) {
		return listed == LISTED_PRESENT;
	}
	size_t len = strlen(path);
	const struct lookup *it = lookups_known(l, path, len);
	if (it != NULL) {
		return it->named || it->unknown;
	}
	const struct lookup *up = lookups_known(l, path, parent_length(path, len));
	if (up != NULL && !up->exists) {
		return up->unknown;
	}
	return faccessat(AT_FDCWD, path, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0 ||
	       !file_is_missing(errno);
}

const struct lookup *lookups_above(const struct lookups *l, const char *path)
{
	const struct lookup *above = NULL;

	for (size_t len = 1; path[len] != '\0'; len++) {
		if (path[len] != '/' && len != 1) {
			continue;
		}
		const struct lookup *f = lookups_known(l, path, len);
		if (f == NULL || !f->exists) {
			return f == NULL || f->named ? NULL : above;
		}
		if (!f->real) {
			return NULL;
		}
		above = f;
	}
	const struct lookup *last = lookups_known(l, path, strlen(path));
	return last != NULL && last->named ? NULL : above;
}

void lookups_done(struct lookups *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].led_to);
	}
	free(l->v);
	for (size_t i = 0; i < l->n_listed; i++) {
		free(l->listed[i].dir);
		free(l->listed[i].names);
	}
}
