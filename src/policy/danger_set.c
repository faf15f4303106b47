/* danger_set.c - looks up the dangerous places for one owner. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "base/own.h"
#include "policy/danger_set.h"
#include "policy/view.h"

/* Appends a place without looking it up; NULL without memory. */
static struct place *append_place(struct danger *d, const char *path, const char *why,
                                  unsigned flags)
{
	if (!ARRAY_MORE(d->places, d->n_places)) {
		return NULL;
	}
	struct place *p = &d->places[d->n_places];
	*p = (struct place){ .path = strdup(path), .why = why, .flags = flags };
	p->name = p->path;
	d->n_places += p->path != NULL;
	return p->path != NULL ? p : NULL;
}

/* Adds a place. `name` is the path of the symlink that leads there (borrowed); NULL: none does. */
static int add_place(struct danger *d, const char *path, const char *name, const char *why,
                     unsigned flags)
{
	struct place *p = append_place(d, path, why, flags);

	if (p == NULL) {
		return -1;
	}
	p->name = name != NULL ? name : p->path;
	const struct lookup *up = lookups_parent(&d->lookups, path);
	if (up == NULL) {
		return -1;
	}
	if (!up->exists || !lookups_may_exist(&d->lookups, path)) {
		return 0;
	}
	const struct lookup *f = lookups_get(&d->lookups, path, strlen(path));
	if (f == NULL) {
		return -1;
	}
	if (!f->named) {
		return 0;
	}
	if (f->real) {
		p->exists = true;
		p->id = f->id;
		return 0;
	}
	/* The path contains a symlink, so the target is added as a second place. */
	auto_free char *real = f->led_to != NULL ? strdup(f->led_to) : path_link_real(path);
	if (real == NULL) {
		return errno == ENOMEM ? -1 : 0;
	}
	return add_place(d, real, p->name, why, flags);
}

int danger_add(struct danger *d, const char *path, const char *why, unsigned flags)
{
	bool counts = d->access == ACCESS_WRITE || (flags & DANGER_READ) != 0;

	return counts ? add_place(d, path, NULL, why, flags) : 0;
}

bool danger_judges(const struct danger *d, enum access access)
{
	return access == ACCESS_READ || d->access == ACCESS_WRITE;
}

int danger_add_link(struct danger *d, const char *link, const char *target, const char *why,
                    unsigned flags)
{
	assert(link[0] == '/' && target[0] == '/');

	const struct place *p = append_place(d, link, why, flags);

	return p == NULL ? -1 : add_place(d, target, p->path, why, flags);
}

void danger_drop(struct danger *d, size_t from)
{
	assert(from <= d->n_places);
	while (d->n_places > from) {
		free(d->places[--d->n_places].path);
	}
}

/* Adds the homes of users outside /home, and the owner's home in the password file if HOME names
 * another directory: the owner's keys may be there. Reads /etc/passwd and asks no name service. */
static int add_other_homes(struct danger *d, const struct owner *o)
{
	char room[4096];
	auto_file f = fopen("/etc/passwd", "re");
	auto_free char *line = NULL;
	size_t size = 0;

	if (f != NULL) {
		(void)setvbuf(f, room, _IOFBF, sizeof(room));
	}
	while (f != NULL && getline(&line, &size, f) > 0) {
		char *save = NULL;
		char *field[6];
		size_t n = 0;
		/* strsep() also returns empty fields, so the fields are at fixed numbers. */
		for (char *s = line; n < 6 && (field[n] = strsep(&s, ":")) != NULL; n++) {
			save = field[n];
		}
		if (n < 6 || save[0] != '/' || save[1] == '\0') {
			continue;
		}
		uint64_t uid = 0;
		(void)number_parse(field[2], 0, (uid_t)-1, &uid);
		bool own = uid == o->uid;
		if ((!own && (uid < 1000 || uid >= 65534)) || strcmp(save, o->home) == 0 ||
		    view_is_system(save) || path_beneath(save, "/home") != NULL) {
			continue;
		}
		if (danger_add(d, save, own ? "is your own home" : "is another user's home",
		               DANGER_READ | DANGER_WRITE | DANGER_BENEATH | DANGER_HOMES) < 0) {
			return -1;
		}
	}
	return 0;
}

static int add_row(struct danger *d, const struct owner *o, const struct danger_row *row,
                   unsigned more, const char *instead)
{
	auto_free char *path = path_expand(o, row->path);
	size_t first = d->n_places;

	if (path == NULL || danger_add(d, path, row->why, row->flags | more) < 0) {
		return -1;
	}
	/* If the path is a symlink, two places were added. */
	for (size_t i = first; i < d->n_places; i++) {
		d->places[i].instead = instead;
	}
	return 0;
}

static int add_rows(struct danger *d, const struct owner *o)
{
	for (size_t i = 0; i < NEVER_ROWS_COUNT; i++) {
		if (add_row(d, o, &NEVER_ROWS[i].row, DANGER_NEVER, NEVER_ROWS[i].instead) < 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < DANGER_ROWS_COUNT; i++) {
		if (add_row(d, o, &DANGER_ROWS[i], 0, NULL) < 0) {
			return -1;
		}
	}
	return 0;
}

static int look_up_home(struct danger *d, const struct owner *o)
{
	danger_list_home(&d->lookups, o->home);
	if (o->state_dir != NULL) {
		lookups_list(&d->lookups, o->state_dir, "");
	}
	const struct lookup *home = lookups_get(&d->lookups, o->home, strlen(o->home));
	if (home == NULL) {
		return -1;
	}
	d->home = home->id;
	return 0;
}

struct danger *danger_new(const struct owner *o, enum access access)
{
	struct danger *d = calloc(1, sizeof(*d));

	if (d == NULL) {
		return NULL;
	}
	d->access = access;
	if (look_up_home(d, o) < 0 || add_rows(d, o) < 0 || danger_add_own(d, o) < 0 ||
	    add_other_homes(d, o) < 0) {
		danger_free(d);
		return NULL;
	}
	return d;
}

void danger_free(struct danger *d)
{
	if (d == NULL) {
		return;
	}
	for (size_t i = 0; i < d->n_places; i++) {
		free(d->places[i].path);
	}
	free(d->places);
	lookups_done(&d->lookups);
	danger_free(d->led);
	mounts_done(&d->mounts);
	free(d);
}
