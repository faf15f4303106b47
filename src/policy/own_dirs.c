/* own_dirs.c - covers the runtime's own directories in every grant that contains them.
 *
 * A directory has one path in its file system; every other path that leads to it goes through a
 * mount, and one table lists all mounts. The paths of a place are computed from that table and
 * checked by device and inode. Every grant that contains one of these paths gets a cover there. */
#include "policy/own_dirs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/danger_set.h"

static bool is_own(const struct place *p)
{
	return (p->flags & DANGER_OWN) != 0;
}

static bool same_text(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* ---- what the owner names --------------------------------------------------- */

/* True for the name of a secret, for a longer name that begins with it, and for the name of a
 * secret that is being written (".trace.key..."). */
static bool is_secret(const char *name)
{
	if (name[0] == '.') {
		return true;
	}
	return ARRAY_HAS(own_secret, OWN_SECRETS, OWN_SECRETS_COUNT,
	                 strncmp(name, own_secret->name, strlen(own_secret->name)) == 0);
}

static void grant_entries(struct build *b, const struct path_request *r, const char *dir)
{
	auto_dir d = opendir(dir);
	const struct dirent *e;

	if (d == NULL) {
		build_refuse_request(b, r, "it cannot be listed", "name what is needed in it");
		return;
	}
	while (!b->failed && (e = readdir(d)) != NULL) {
		struct stat st;
		if (is_secret(e->d_name)) {
			continue;
		}
		auto_free char *path = path_join(dir, e->d_name);
		auto_fd fd = path != NULL ? file_open_nosymlink(path, O_PATH) : -1;
		b->failed |= path == NULL;
		if (fd >= 0 && fstat(fd, &st) == 0 &&
		    (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))) {
			resolve_take_object(b, r, path, &fd, &st, false);
		}
	}
}

bool own_resolve(struct build *b, const struct path_request *r, const char *path,
                 const struct object *id)
{
	struct stat st;

	if (r->access != ACCESS_READ || b->owner->state_dir == NULL ||
	    stat(b->owner->state_dir, &st) < 0 ||
	    !object_same(*id, (struct object){ st.st_dev, st.st_ino })) {
		return false;
	}
	grant_entries(b, r, path);
	return true;
}

bool own_named(struct build *b, const struct grant *g)
{
	const struct danger *d = build_danger(b, ACCESS_READ);
	struct chain c;

	if (d == NULL || g->fd < 0 || chain_from(g->fd, g->path, &c) < 0) {
		return false;
	}
	return ARRAY_HAS(place, d->places, d->n_places,
	                 is_own(place) && place->exists && chain_has(&c, place->id, 0));
}

/* ---- covers ----------------------------------------------------------------- */

static void cover_done(struct cover *c)
{
	free(c->path);
	free(c->target);
}

/* Adds a cover for the grant `g`, unless its target has one. Takes the strings of `c`. */
static void cover_add(struct build *b, struct cover *c, const struct grant *g)
{
	struct ssb_plan *p = b->plan;

	for (size_t i = 0; i < p->n_covers; i++) {
		if (strcmp(p->covers[i].target, c->target) == 0) {
			cover_done(c);
			return;
		}
	}
	struct cover *v = p->n_covers < MAX_COVERS
	                          ? realloc(p->covers, (p->n_covers + 1) * sizeof(*v))
	                          : NULL;
	if (v == NULL) {
		b->failed |= p->n_covers < MAX_COVERS;
		if (p->n_covers == MAX_COVERS) {
			build_refuse(b, REFUSAL_OTHER, g->where, g->path,
			             "bind mounts show the runtime's own files at too many "
			             "paths in this directory",
			             "name the directories in it that are needed");
		}
		cover_done(c);
		return;
	}
	p->covers = v;
	v[p->n_covers++] = *c;
}

static bool is_target(const struct ssb_plan *p, const char *target)
{
	return ARRAY_HAS(grant, p->grants, p->n_grants, strcmp(grant->target, target) == 0);
}

/* Covers a place of the runtime at `name`, one of its paths on the host, in every grant that
 * contains this path. */
static void cover_name(struct build *b, const char *name, bool is_dir, bool create)
{
	for (size_t i = 0; i < b->plan->n_grants; i++) {
		const struct grant *g = &b->plan->grants[i];
		const char *rest = g->is_dir ? path_beneath(name, g->path) : NULL;
		if (rest == NULL || *rest == '\0') {
			/* the grant does not contain the place, or grants the place itself */
			continue;
		}
		struct cover c = { strdup(name), path_join(g->target, rest), g->where, is_dir,
			           create };
		if (c.path == NULL || c.target == NULL) {
			b->failed = true;
			cover_done(&c);
		} else if (is_target(b->plan, c.target)) {
			cover_done(&c);
		} else {
			cover_add(b, &c, g);
		}
	}
}

/* A place of the runtime: the part of its path that exists, and the rest. */
struct own_place {
	const char *path; /* real */
	const char *tail; /* the rest, which would have to be created; "" if all exists */
	struct object id;
};

/* Covers the place at its path under mount `m`, if it is visible there. `rest` is the path from the
 * mount point on. */
static void cover_alias(struct build *b, const struct own_place *h, const struct mount *m,
                        const char *rest)
{
	assert(h->path != NULL);

	auto_free char *name = path_join(m->point, rest);
	auto_free char *whole = name != NULL ? path_join(name, h->tail) : NULL;
	struct stat st;

	if (whole == NULL) {
		b->failed = true;
	} else if (strcmp(name, h->path) == 0 ||
	           (stat(name, &st) < 0
	                    ? errno == EACCES
	                    : object_same(h->id, (struct object){ st.st_dev, st.st_ino }))) {
		cover_name(b, whole, true, *h->tail != '\0');
	}
}

static void cover_head(struct build *b, const struct own_place *h)
{
	const struct mounts *all = danger_mounts(b->danger);
	const struct mount *in = all != NULL ? mounts_of(all, h->path) : NULL;
	auto_free char *inner =
	        in != NULL ? path_join(in->root, path_beneath(h->path, in->point)) : NULL;

	if (in == NULL) {
		build_refuse(b, REFUSAL_OTHER, "covers", h->path,
		             "the mounts that lead to the runtime's files cannot be read",
		             "check that /proc is mounted");
		return;
	}
	if (inner == NULL) {
		b->failed = true;
		return;
	}
	for (size_t i = 0; i < all->n; i++) {
		const struct mount *m = &all->v[i];
		struct stat st;
		if (strcmp(m->dev, in->dev) != 0) {
			continue;
		}
		const char *rest = path_beneath(inner, m->root);
		if (rest != NULL) {
			cover_alias(b, h, m, rest);
		} else if (*h->tail == '\0' && path_beneath(m->root, inner) != NULL &&
		           stat(m->point, &st) == 0) {
			/* the mount shows something inside the place: cover the mount point */
			cover_name(b, m->point, S_ISDIR(st.st_mode), false);
		}
	}
}

/* Covers a directory that does not exist yet, but that a later command will create. */
static void cover_missing(struct build *b, const char *path)
{
	auto_free char *words = path_words(path);
	const struct lookup *above =
	        same_text(words, path) ? lookups_above(&b->danger->lookups, path) : NULL;

	if (above != NULL) {
		cover_head(b, &(struct own_place){ above->path, path_beneath(path, above->path),
		                                   above->id });
		return;
	}
	auto_free char *real = path_real(path);
	auto_free char *head = real != NULL ? strdup(real) : NULL;
	struct stat st;

	while (head != NULL && stat(head, &st) < 0) {
		char *up = path_parent(head);
		free(head);
		head = up;
	}
	if (head != NULL) {
		const char *tail = path_beneath(real, head);
		cover_head(b, &(struct own_place){ head, tail, { st.st_dev, st.st_ino } });
	}
}

/* True if an earlier place in d->places has the same path. The usual places are there twice: from
 * the table and from danger_own.c. */
static bool was_covered(const struct danger *d, size_t nth)
{
	return ARRAY_HAS(e, d->places, nth, is_own(e) && same_text(e->path, d->places[nth].path));
}

void own_build_covers(struct build *b)
{
	bool dirs = ARRAY_HAS(grant, b->plan->grants, b->plan->n_grants, grant->is_dir);

	if (!dirs || build_danger(b, ACCESS_READ) == NULL) {
		return;
	}
	for (size_t i = 0; i < b->danger->n_places && !b->failed; i++) {
		const struct place *p = &b->danger->places[i];
		if (!is_own(p) || was_covered(b->danger, i)) {
			continue;
		}
		if (p->exists) {
			cover_head(b, &(struct own_place){ p->path, "", p->id });
		} else if (same_text(p->path, b->owner->state_dir) ||
		           same_text(p->path, b->owner->config_dir)) {
			cover_missing(b, p->path);
		}
	}
}
