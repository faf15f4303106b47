/* weigh.c - finds out which needs exist on this machine, and how many other files a directory would
 * give away if it were proposed instead of its files. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/own.h"
#include "learn/needs.h"
#include "os/tree.h"
#include "policy/asks.h"
#include "policy/path.h"

#define DEEPEST 32

/* What is known about the directory that was weighed last. Needs in one directory are next to
 * each other, so it is asked for again and again. */
struct weighing {
	const struct owner *owner;
	const char *skill_dir;
	struct asks *asks; /* NULL until it is first used */
	enum need_kind kind;
	char *dir;
	bool small;
};

static void weighing_done(struct weighing *w)
{
	asks_free(w->asks);
	free(w->dir);
}

static bool is_path(const struct need *n)
{
	return n->kind == NEED_READ || n->kind == NEED_WRITE;
}

static size_t parent_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? (size_t)(slash - path) : 0;
}

size_t needs_siblings(const struct needs *s, const struct need *n)
{
	assert(is_path(n));

	size_t len = parent_len(n->value);
	size_t found = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct need *other = &s->v[i];
		found += other->kind == n->kind && other->danger == NULL && !other->missing &&
		         parent_len(other->value) == len &&
		         strncmp(other->value, n->value, len) == 0;
	}
	return found;
}

static bool each_entry(void *arg, const struct tree_entry *e)
{
	(void)arg;
	(void)e;
	return true;
}

/* Returns true if the directory contains few files, including all directories beneath it. A
 * directory that cannot be read counts as large. */
static bool holds_little(const char *path, size_t asked)
{
	const struct tree_caps caps = { asked * PROPOSE_EXCESS, DEEPEST };
	auto_free char *real = path_real(path);
	auto_fd fd = real != NULL ? open(real, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	return fd >= 0 && tree_walk(fd, &caps, each_entry, NULL);
}

/* *ret is true if a plan would refuse the directory. */
static int ask_judge(struct weighing *w, const char *dir, bool *ret, struct ssb_error *err)
{
	auto_free char *why = NULL;
	enum access access = w->kind == NEED_WRITE ? ACCESS_WRITE : ACCESS_READ;

	if (w->asks == NULL && asks_new(w->owner, w->skill_dir, &w->asks, err) != 0) {
		return -1;
	}
	if (asks_path(w->asks, dir, access, &why) != 0) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	*ret = why != NULL;
	return 0;
}

/* Takes `dir`. */
static int weigh_dir(struct weighing *w, enum need_kind kind, char *dir, size_t asked,
                     struct ssb_error *err)
{
	bool refused = false;

	free(w->dir);
	w->dir = dir;
	w->kind = kind;
	w->small = false;
	auto_free char *path = path_expand(w->owner, dir);
	if (path == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	if (asked < PROPOSE_SIBLINGS) {
		return 0;
	}
	if (ask_judge(w, dir, &refused, err) != 0) {
		return -1;
	}
	w->small = !refused && holds_little(path, asked);
	return 0;
}

static int weigh_need(struct weighing *w, const struct needs *s, struct need *n,
                      struct ssb_error *err)
{
	auto_free char *dir = path_parent(n->value);

	if (dir == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	bool known = w->dir != NULL && w->kind == n->kind && strcmp(w->dir, dir) == 0;
	if (!known && weigh_dir(w, n->kind, steal_ptr(&dir), needs_siblings(s, n), err) != 0) {
		return -1;
	}
	n->in_small_dir = w->small;
	return 0;
}

static int look_at_need(const struct owner *o, struct need *n, struct ssb_error *err)
{
	auto_free char *path = path_expand(o, n->value);
	struct stat st;

	if (path == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, "", "out of memory");
	}
	n->missing = lstat(path, &st) != 0;
	return 0;
}

int needs_weigh(const struct owner *o, const char *skill_dir, struct needs *s,
                struct ssb_error *err)
{
	AUTO(weighing_done) struct weighing w = { .owner = o, .skill_dir = skill_dir };

	for (size_t i = 0; i < s->n; i++) {
		if (is_path(&s->v[i]) && look_at_need(o, &s->v[i], err) != 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < s->n; i++) {
		struct need *n = &s->v[i];
		if (is_path(n) && n->danger == NULL && !n->missing &&
		    weigh_need(&w, s, n, err) != 0) {
			return -1;
		}
	}
	return 0;
}
