/* danger.c - decides whether an object is a dangerous place, contains one, or lies in one. The
 * directories above the places are in `lookups`. So one comparison decides whether an object
 * contains a place, even a place that does not exist yet but could be created in a writable
 * directory. */
#include "policy/danger.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/danger_set.h"
#include "policy/kernel_fs.h"
#include "policy/mounts.h"

/* Flags that no list in the policy file can override. */
#define FINAL ((unsigned)(DANGER_NEVER | DANGER_DENIED))

static void add_hit(struct danger_hits *hits, const struct place *p, enum danger_how how)
{
	for (size_t i = 0; i < hits->n; i++) {
		if (hits->v[i].place == p) {
			return;
		}
	}
	if (hits->n < MAX_DANGER_HITS) {
		hits->n++;
	} else if ((p->flags & FINAL) == 0) {
		return; /* the list is full; only a hit with a FINAL flag must not be lost */
	}
	size_t at = hits->n - 1;
	if ((p->flags & FINAL) != 0) {
		memmove(&hits->v[1], &hits->v[0], at * sizeof(hits->v[0]));
		at = 0;
	}
	hits->v[at] = (struct danger_hit){ p, how };
}

/* True if one path is the other or contains it. Sets *ret to the relation of `path` to `place`. */
static bool relative_relation(const char *place, const char *path, enum danger_how *ret)
{
	size_t a = strlen(place);
	size_t b = strlen(path);

	if (strncmp(place, path, a < b ? a : b) != 0) {
		return false;
	}
	if (a == b) {
		*ret = DANGER_IS;
	} else if (a < b && path[a] == '/') {
		*ret = DANGER_LIES_IN;
	} else if (a > b && place[b] == '/') {
		*ret = DANGER_CONTAINS;
	} else {
		return false;
	}
	return true;
}

/* Finds the relation by comparing paths below the directory `at`, which is in d->lookups. It is the
 * subject itself or, if the subject is missing, its nearest existing parent. */
static bool folder_relation(const struct danger *d, const struct place *p, const struct subject *s,
                            struct object at, enum danger_how *ret)
{
	for (size_t i = 0; i < d->lookups.n; i++) {
		const struct lookup *f = &d->lookups.v[i];
		if (!f->exists || !object_same(f->id, at)) {
			continue;
		}
		const char *rest = path_beneath(p->path, f->path);
		if (rest == NULL || *rest == '\0') {
			continue;
		}
		if (s->missing != NULL) {
			if (relative_relation(rest, s->missing, ret)) {
				/* A missing path that lies in the place is dangerous only if
				 * everything beneath the place is. */
				return *ret != DANGER_LIES_IN || (p->flags & DANGER_BENEATH) != 0;
			}
			continue;
		}
		*ret = DANGER_CONTAINS;
		return true;
	}
	return false;
}

/* True if an object is dangerous that has the relation `how` to the place. */
static bool place_counts(const struct place *p, enum danger_how how)
{
	return (p->flags & (how == DANGER_CONTAINS ? DANGER_ITSELF : DANGER_AROUND)) == 0;
}

/* True if the object lies in the place: one of the directories above it is the place. A place that
 * contains homes does not count for an object in the owner's own home. */
static bool lies_in(const struct danger *d, const struct place *p, const struct chain *c,
                    size_t from)
{
	if (!p->exists || (p->flags & DANGER_BENEATH) == 0) {
		return false;
	}
	for (size_t i = 0; i < c->n; i++) {
		if ((p->flags & DANGER_HOMES) != 0 && object_same(c->v[i], d->home)) {
			return false;
		}
		if (i >= from && object_same(c->v[i], p->id)) {
			return true;
		}
	}
	return false;
}

static bool find_relation(const struct danger *d, const struct place *p, const struct subject *s,
                          enum danger_how *ret)
{
	const struct chain *c = &s->chain;
	bool missing = s->missing != NULL;

	if (!missing && p->exists && place_counts(p, DANGER_IS) && object_same(p->id, c->v[0]) &&
	    !((p->flags & DANGER_HOMES) != 0 && object_same(p->id, d->home))) {
		*ret = DANGER_IS;
		return true;
	}
	if (place_counts(p, DANGER_LIES_IN) && lies_in(d, p, c, missing ? 0 : 1)) {
		*ret = DANGER_LIES_IN;
		return true;
	}
	return folder_relation(d, p, s, c->v[0], ret) && place_counts(p, *ret);
}

static void judge_chain(const struct danger *d, const struct subject *s, enum access access,
                        struct danger_hits *hits)
{
	unsigned flag = access == ACCESS_WRITE ? DANGER_WRITE : DANGER_READ;
	enum danger_how how;

	for (size_t i = 0; i < d->n_places; i++) {
		const struct place *p = &d->places[i];
		if ((p->flags & flag) != 0 && find_relation(d, p, s, &how)) {
			add_hit(hits, p, how);
		}
	}
}

static bool has_flag(const struct danger_hits *hits, unsigned flag)
{
	return ARRAY_HAS(e, hits->v, hits->n, (e->place->flags & flag) != 0);
}

static const struct place *kernel_place(int kind, enum access access, bool named)
{
#define KERNEL_FS .path = (char *)(uintptr_t) "a kernel file system"
	static const struct place LINKS = {
		KERNEL_FS,
		.why = "leads to the host's processes, terminals or namespaces",
		.instead = "the sandbox has its own processes, terminals and namespaces",
		.flags = DANGER_READ | DANGER_WRITE | DANGER_NEVER,
	};
	static const struct place TO_WRITE = {
		KERNEL_FS,
		.why = "contains the kernel's settings and controls",
		.instead = "only reading can be granted: --read",
		.flags = DANGER_WRITE | DANGER_NEVER,
	};
	static const struct place BENEATH = {
		KERNEL_FS,
		.why = "contains the kernel's settings and controls",
		.flags = DANGER_READ | DANGER_NEVER,
	};
	static const struct place TO_READ = {
		KERNEL_FS,
		.why = "contains the kernel's settings and controls",
		.exists = true,
		.flags = DANGER_READ | DANGER_LOUD,
	};
#undef KERNEL_FS

	if (kind != KERNEL_FS_SETTINGS) {
		return kind == KERNEL_FS_LINKS ? &LINKS : NULL;
	}
	return access == ACCESS_WRITE ? &TO_WRITE : named ? &TO_READ : &BENEATH;
}

/* Judges by the type of the file system, because a second proc or sysfs, for example in a
 * container's directory, has another inode than the place of the table. `named`: `fd` is the
 * requested object, not something that it contains. */
static int judge_kernel_fs(int fd, enum access access, bool named, struct danger_hits *hits)
{
	int kind = kernel_fs_of(fd);
	const struct place *p = kernel_place(kind, access, named);
	/* For /proc and /sys themselves, the table has given a hit with a better reason: add no
	 * second one. */
	bool known = has_flag(hits, DANGER_NEVER) ||
	             (kind == KERNEL_FS_SETTINGS && has_flag(hits, DANGER_LOUD));

	if (p != NULL && !known) {
		add_hit(hits, p, named ? DANGER_LIES_IN : DANGER_CONTAINS);
	}
	return kind < 0 ? -1 : 0;
}

int subject_init(struct subject *ret, int fd, const char *path, const char *missing)
{
	assert(ret != NULL && fd >= 0 && path != NULL && path[0] == '/');
	ret->fd = fd;
	ret->path = path;
	ret->missing = missing;
	return chain_from(fd, path, &ret->chain);
}

int danger_judge(const struct danger *d, const struct subject *s, enum access access,
                 struct danger_hits *ret)
{
	struct danger_hits hits = { .n = 0 };

	assert(danger_judges(d, access));
	judge_chain(d, s, access, &hits);
	if (judge_kernel_fs(s->fd, access, true, &hits) < 0) {
		return -1;
	}
	*ret = hits;
	return 0;
}

/* Judges the object that `path` names now. If `same` is not NULL and names another object, does not
 * judge the object. */
static int judge_other_name(const struct danger *d, const char *path, const struct object *same,
                            enum access access, struct danger_hits *hits)
{
	auto_fd fd = file_open_nosymlink(path, O_PATH);
	struct subject s;

	if (fd < 0) {
		return 0; /* hidden by a later mount, or the caller cannot reach it */
	}
	if (subject_init(&s, fd, path, NULL) < 0 || judge_kernel_fs(fd, access, false, hits) < 0) {
		return -1;
	}
	if (same == NULL || object_same(s.chain.v[0], *same)) {
		judge_chain(d, &s, access, hits);
	}
	return 0;
}

/* Judges the other paths at which mounts of the same file system show the object. */
static int judge_aliases(const struct danger *d, const struct mounts *mounts,
                         const struct subject *s, enum access access, struct danger_hits *hits)
{
	const struct mount *in = mounts_of(mounts, s->path);

	if (in == NULL) {
		errno = ENOENT;
		return -1;
	}
	auto_free char *inner = path_join(in->root, path_beneath(s->path, in->point));
	if (inner == NULL) {
		return -1;
	}
	for (size_t i = 0; i < mounts->n; i++) {
		const struct mount *m = &mounts->v[i];
		const char *rest =
		        strcmp(m->dev, in->dev) == 0 ? path_beneath(inner, m->root) : NULL;
		if (rest == NULL || m == in) {
			continue;
		}
		auto_free char *alias = path_join(m->point, rest);
		if (alias == NULL || judge_other_name(d, alias, &s->chain.v[0], access, hits) < 0) {
			return -1;
		}
	}
	return 0;
}

void danger_found(const char *path, size_t len, const char *why, unsigned flags,
                  struct danger_room *room, struct danger_hits *hits)
{
	assert(len > 0 && len <= strlen(path));
	snprintf(room->path, sizeof(room->path), "%.*s", (int)len, path);
	room->place = (struct place){
		.path = room->path,
		.name = room->path,
		.why = why,
		.flags = DANGER_READ | DANGER_WRITE | DANGER_BENEATH | flags,
	};
	hits->v[0] =
	        (struct danger_hit){ &room->place, path[len] == '\0' ? DANGER_IS : DANGER_LIES_IN };
	hits->n = 1;
}

static bool is_spelt_by(const struct place *p, const char *name, const char *words)
{
	const char *in = path_beneath(words, name);

	return in != NULL ? *in == '\0' || (p->flags & DANGER_BENEATH) != 0
	                  : path_beneath(name, words) != NULL;
}

static bool is_spelt(const struct place *p, const char *words)
{
	return p->name != NULL &&
	       (is_spelt_by(p, p->name, words) || is_spelt_by(p, p->path, words));
}

bool danger_spelt(const struct danger_hits *hits, const char *words)
{
	bool all = true;

	assert(words[0] == '/');
	for (size_t i = 0; i < hits->n; i++) {
		bool spelt = is_spelt(hits->v[i].place, words);
		if (spelt && hits->v[i].how != DANGER_CONTAINS) {
			return true;
		}
		all &= spelt;
	}
	return all;
}

const struct mounts *danger_mounts(struct danger *d)
{
	return d->mounts.v == NULL && mounts_load(&d->mounts) < 0 ? NULL : &d->mounts;
}

int danger_judge_mounts(const struct danger *d, const struct mounts *m, const struct subject *s,
                        enum access access, struct danger_hits *hits)
{
	assert(danger_judges(d, access) && s->missing == NULL);
	if (m == NULL) {
		return -1;
	}
	for (size_t i = 0; i < m->n; i++) {
		const char *rest = path_beneath(m->v[i].point, s->path);
		if (rest != NULL && *rest != '\0' &&
		    judge_other_name(d, m->v[i].point, NULL, access, hits) < 0) {
			return -1;
		}
	}
	return judge_aliases(d, m, s, access, hits);
}
