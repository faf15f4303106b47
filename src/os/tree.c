/* tree.c - walks a tree in the order of names, and removes trees. */
#include "os/tree.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "os/entries.h"

struct tree_walk {
	const struct tree_caps *caps;
	tree_fn *fn;
	void *arg;
	size_t seen;
	bool whole;
	char path[MAX_PATH_BYTES];
};

struct names {
	char **v;
	size_t n;
};

static void names_done(struct names *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i]);
	}
	free((void *)s->v);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool names_add(struct names *s, const char *name)
{
	char **v = (char **)reallocarray((void *)s->v, s->n + 1, sizeof(*v));
	char *copy = strdup(name);

	s->v = v != NULL ? v : s->v;
	if (v == NULL || copy == NULL) {
		free(copy);
		return false;
	}
	v[s->n++] = copy;
	return true;
}

/* Reads all names first and sorts them: getdents() returns them in no defined order. */
static void read_names(struct tree_walk *w, DIR *dir, struct names *ret)
{
	for (const struct dirent *d; (d = entries_of(dir)) != NULL;) {
		if (w->seen == w->caps->entries || !names_add(ret, d->d_name)) {
			w->whole = false;
			break;
		}
		w->seen++;
	}
	if (ret->n > 0) {
		qsort((void *)ret->v, ret->n, sizeof(*ret->v), by_name);
	}
}

static void walk_directory(struct tree_walk *w, int parent, const char *name, size_t len,
                           size_t depth);

static void visit_entry(struct tree_walk *w, int dir, const char *name, size_t len, size_t depth)
{
	struct tree_entry e = { .path = w->path, .dir = dir, .name = name };
	size_t n = strlen(name);

	if (len + n + 2 > sizeof(w->path)) {
		w->whole = false;
		return;
	}
	if (fstatat(dir, name, &e.st, AT_SYMLINK_NOFOLLOW) != 0) {
		w->whole = false; /* removed meanwhile, or not accessible */
		return;
	}
	if (len > 0) {
		w->path[len++] = '/';
	}
	memcpy(w->path + len, name, n + 1);
	if (w->fn(w->arg, &e) && S_ISDIR(e.st.st_mode)) {
		walk_directory(w, dir, name, len + n, depth + 1);
	}
}

static void walk_directory(struct tree_walk *w, int parent, const char *name, size_t len,
                           size_t depth)
{
	AUTO(names_done) struct names names = { 0 };
	auto_dir dir = depth < w->caps->depth ? entries_open(parent, name) : NULL;

	if (dir == NULL) {
		w->whole = false;
		return;
	}
	read_names(w, dir, &names);
	for (size_t i = 0; i < names.n; i++) {
		visit_entry(w, dirfd(dir), names.v[i], len, depth);
	}
}

bool tree_walk(int dir_fd, const struct tree_caps *caps, tree_fn *fn, void *arg)
{
	auto_free struct tree_walk *w = calloc(1, sizeof(*w));

	assert(dir_fd >= 0 && fn != NULL);
	if (w == NULL) {
		return false;
	}
	*w = (struct tree_walk){ .caps = caps, .fn = fn, .arg = arg, .whole = true };
	walk_directory(w, dir_fd, ".", 0, 0);
	return w->whole;
}

/* ---- removing --------------------------------------------------------------
 *
 * The program that filled a directory may have nested it deeper than a path or the table of file
 * descriptors can reach, and may have taken its permissions away. So the removal does not descend:
 * subdirectories are moved up to the top directory, where a later round empties them. A directory
 * without subdirectories is removed. */

/* Limits for the case that another process keeps filling the directory. NAME_TRIES: how many names
 * in a row may already exist when a directory is moved. ROUNDS: how many rounds the removal takes;
 * each round removes at least one level. */
#define NAME_TRIES 4096
#define ROUNDS     65536

struct remover {
	int top;
	unsigned named;
	bool moved; /* something was removed or moved in this round */
	int error;  /* the first error */
};

/* Restores the owner's permissions, which the skill may have taken away from a directory. A failure
 * is ignored: the next operation reports it. */
static void open_up(int dir, const char *name)
{
	if (fchmodat(dir, name, 0700, AT_SYMLINK_NOFOLLOW) != 0) {
		errno = 0;
	}
}

static void note_error(struct remover *r)
{
	r->error = r->error != 0 ? r->error : errno;
}

/* True for a mount point, which is not removed even if it belongs to the same file system. Sets
 * r->error in this case. */
static bool is_mount(struct remover *r, int dir, const char *name)
{
	struct statx st;

	if (statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &st) != 0 ||
	    (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0) {
		return false;
	}
	errno = EXDEV;
	note_error(r);
	return true;
}

/* Removes a file. Returns true if it is gone. Returns false if it is a directory (*ret_is_dir is
 * true), or after an error, which is put into r->error. */
static bool remove_file(struct remover *r, int dir, const char *name, bool *ret_is_dir)
{
	struct stat st;

	*ret_is_dir = false;
	if (unlinkat(dir, name, 0) == 0) {
		r->moved = true;
		return true;
	}
	if (errno == ENOENT) {
		return true;
	}
	int why = errno;
	*ret_is_dir = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
	if (!*ret_is_dir) {
		errno = why;
		note_error(r);
	}
	return false;
}

static void move_up(struct remover *r, int dir, const char *name)
{
	char to[32];

	if (is_mount(r, dir, name)) {
		return;
	}
	/* Make the directory writable first. Otherwise neither it nor its entries can be moved. */
	open_up(dir, name);
	for (int i = 0; i < NAME_TRIES; i++) {
		snprintf(to, sizeof(to), ".removed-%u", r->named++);
		if (renameat(dir, name, r->top, to) == 0) {
			r->moved = true;
			return;
		}
		if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) {
			break;
		}
	}
	note_error(r);
}

static void remove_directory(struct remover *r, const char *name)
{
	if (is_mount(r, r->top, name)) {
		return;
	}
	open_up(r->top, name);
	auto_dir d = entries_open(r->top, name);
	bool is_dir = false;

	if (d == NULL) {
		note_error(r);
		return;
	}
	for (const struct dirent *in; (in = entries_of(d)) != NULL;) {
		if (!remove_file(r, dirfd(d), in->d_name, &is_dir) && is_dir) {
			move_up(r, dirfd(d), in->d_name);
		}
	}
	if (unlinkat(r->top, name, AT_REMOVEDIR) == 0) {
		r->moved = true;
	} else {
		note_error(r);
	}
}

int tree_empty(int dir_fd)
{
	assert(dir_fd >= 0);

	auto_dir d = entries_open(dir_fd, ".");
	struct remover r = { .top = dir_fd, .moved = true };
	bool is_dir = false;

	if (d == NULL) {
		return -1;
	}
	for (int i = 0; i < ROUNDS && r.moved; i++) {
		r.moved = false;
		r.error = 0;
		rewinddir(d);
		for (const struct dirent *e; (e = entries_of(d)) != NULL;) {
			if (!remove_file(&r, dir_fd, e->d_name, &is_dir) && is_dir) {
				remove_directory(&r, e->d_name);
			}
		}
	}
	errno = r.error;
	return r.error == 0 ? 0 : -1;
}

int tree_remove(int parent_fd, const char *name)
{
	if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT) {
		return 0;
	}
	if (errno != EISDIR && errno != EPERM) {
		return -1;
	}
	open_up(parent_fd, name);
	auto_fd dir = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || tree_empty(dir) != 0) {
		return -1;
	}
	return unlinkat(parent_fd, name, AT_REMOVEDIR);
}
