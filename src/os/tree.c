#include "os/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/own.h"

struct walk {
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

/* All of them first: what is read in pieces comes in no order. */
static void read_names(struct walk *w, DIR *dir, struct names *ret)
{
	for (const struct dirent *d = readdir(dir); d != NULL; d = readdir(dir)) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) {
			continue;
		}
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

static void walk_directory(struct walk *w, int parent, const char *name, size_t len, size_t depth);

static void visit(struct walk *w, int dir, const char *name, size_t len, size_t depth)
{
	struct tree_entry e = { .path = w->path, .dir = dir, .name = name };
	size_t n = strlen(name);

	if (len + n + 2 > sizeof(w->path)) {
		w->whole = false;
		return;
	}
	if (fstatat(dir, name, &e.st, AT_SYMLINK_NOFOLLOW) != 0) {
		w->whole = false; /* gone meanwhile, or not ours to see */
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

static void walk_directory(struct walk *w, int parent, const char *name, size_t len, size_t depth)
{
	AUTO(names_done) struct names names = { 0 };
	int fd = depth < w->caps->depth
	                 ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
	                 : -1;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL) {
		own_close(&fd);
		w->whole = false;
		return;
	}
	read_names(w, dir, &names);
	for (size_t i = 0; i < names.n; i++) {
		visit(w, dirfd(dir), names.v[i], len, depth);
	}
	(void)closedir(dir);
}

bool tree_walk(int dir_fd, const struct tree_caps *caps, tree_fn *fn, void *arg)
{
	auto_free struct walk *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		return false;
	}
	*w = (struct walk){ .caps = caps, .fn = fn, .arg = arg, .whole = true };
	walk_directory(w, dir_fd, ".", 0, 0);
	return w->whole;
}
