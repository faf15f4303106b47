/* danger_led_mounts.c - the paths at which mounts show what the owner's hidden names lead to.
 *
 * ~/.toolrc may be mounted at another path, and something else may be mounted on ~/.toolrc. In both
 * cases every other path that shows the same files is treated like the hidden name. */
#include <string.h>

#include "base/own.h"
#include "policy/danger_set.h"
#include "policy/mounts.h"
#include "policy/unlisted.h"

/* Returns the first of the `n` places of `d` that contains `path`; NULL if none does. If `found`,
 * every place counts. Otherwise a place counts only if it is in the home and has no flag of
 * `others`: a manifest must not get the files of such a place under another name. */
static const struct place *containing_place(const struct danger *d, size_t n, const char *path,
                                            const struct owner *o, bool found)
{
	const unsigned others =
	        DANGER_NEVER | DANGER_OWN | DANGER_HOMES | DANGER_AROUND | DANGER_ITSELF;

	for (size_t i = 0; i < n; i++) {
		const struct place *p = &d->places[i];
		const char *in_home = path_beneath(p->path, o->home);
		bool counts =
		        found || (in_home != NULL && *in_home != '\0' && (p->flags & others) == 0);
		const char *rest = counts ? path_beneath(path, p->path) : NULL;
		if (rest != NULL && (*rest == '\0' || (p->flags & DANGER_BENEATH) != 0)) {
			return p;
		}
	}
	return NULL;
}

static bool is_hidden(const struct owner *o, const char *path)
{
	const char *rest = path_beneath(path, o->home);

	return rest != NULL && unlisted_length(rest) > 0;
}

/* Adds the other paths at which mounts show the files of the mount `m`, or some of them. `m` is
 * mounted at or below a place; the added paths get `why` and `flags` of that place. */
static int add_shown(struct danger *d, const struct owner *o, const struct mounts *all,
                     const struct mount *m, const char *why, unsigned flags)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct mount *other = &all->v[i];
		bool same = strcmp(other->dev, m->dev) == 0;
		const char *part = same ? path_beneath(other->root, m->root) : NULL;
		const char *whole = same ? path_beneath(m->root, other->root) : NULL;
		if (part == NULL && whole == NULL) {
			continue;
		}
		auto_free char *name = path_join(m->point, part != NULL ? part : "");
		auto_free char *shown = path_join(other->point, part != NULL ? "" : whole);
		if (name == NULL || shown == NULL) {
			return -1;
		}
		if (strcmp(name, shown) != 0 && !is_hidden(o, shown) &&
		    danger_add_link(d, name, shown, why, flags) < 0) {
			return -1;
		}
	}
	return 0;
}

/* Returns the path of the home in the file system of its mount; new. */
static char *path_of_home(const struct owner *o, const struct mount *of_home)
{
	return path_join(of_home->root, path_beneath(o->home, of_home->point));
}

/* True if the mount `m` shows the home or a directory that contains it. `home` is the path of the
 * home in its file system. The other content of such a mount is not hidden for that reason. */
static bool is_mount_around(const struct mount *m, const struct mount *of_home, const char *home)
{
	return strcmp(m->dev, of_home->dev) == 0 && path_beneath(home, m->root) != NULL;
}

/* Adds the other paths of the files that are mounted at or below a place: a hidden name, a place
 * that was found so far, or a place of `table` in the home. */
static int add_mounted_on(struct danger *d, const struct danger *table, const struct owner *o,
                          const struct mounts *all)
{
	const struct mount *of_home = mounts_of(all, o->home);
	auto_free char *home = of_home != NULL ? path_of_home(o, of_home) : NULL;
	size_t found = d->n_places;

	if (home == NULL) {
		return of_home == NULL ? 0 : -1;
	}
	for (size_t i = 0; i < all->n; i++) {
		const struct mount *m = &all->v[i];
		const struct place *p = containing_place(d, found, m->point, o, true);
		bool hidden = is_hidden(o, m->point);
		if (p == NULL && !hidden) {
			p = containing_place(table, table->n_places, m->point, o, false);
		}
		if ((p != NULL || hidden) && !is_mount_around(m, of_home, home) &&
		    add_shown(d, o, all, m, hidden ? HIDDEN_WHY : p->why,
		              hidden ? DANGER_OF_HIDDEN : p->flags) < 0) {
			return -1;
		}
	}
	return 0;
}

/* Adds the other places at which bind mounts show a hidden name. */
static int add_mounted_elsewhere(struct danger *d, const struct owner *o, const struct mounts *all)
{
	const struct mount *of_home = all != NULL ? mounts_of(all, o->home) : NULL;

	if (of_home == NULL) {
		return all != NULL ? 0 : -1;
	}
	auto_free char *home = path_of_home(o, of_home);
	for (size_t i = 0; home != NULL && i < all->n; i++) {
		const struct mount *m = &all->v[i];
		const char *rest =
		        strcmp(m->dev, of_home->dev) == 0 ? path_beneath(m->root, home) : NULL;
		if (rest == NULL || unlisted_length(rest) == 0) {
			continue;
		}
		auto_free char *name = path_join(o->home, rest);
		if (name == NULL ||
		    danger_add_link(d, name, m->point, HIDDEN_WHY, DANGER_OF_HIDDEN) < 0) {
			return -1;
		}
	}
	return home != NULL ? 0 : -1;
}

int danger_add_mounts(struct danger *d, const struct danger *table, const struct owner *o,
                      const struct mounts *all)
{
	return add_mounted_elsewhere(d, o, all) < 0 ? -1 : add_mounted_on(d, table, o, all);
}
