/* danger_set.c - looks up the dangerous places. Every path and every directory above it is
 * looked up once and kept in `folders`, because each run with a path waits for these system
 * calls. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "base/own.h"
#include "os/file.h"
#include "policy/danger_set.h"
#include "policy/view.h"

#define LISTING_BYTES 16384U

/* Reads the names of a directory of usual size; leaves *l empty for a huge one. */
static void listing_load(struct dir_names *l, const char *home, const char *name)
{
	auto_free char *dir = path_join(home, name);
	auto_fd fd = dir != NULL ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	auto_free char *raw = malloc(LISTING_BYTES);
	auto_free char *names = malloc(LISTING_BYTES);
	size_t len = 0;

	if (fd < 0 || raw == NULL || names == NULL) {
		return;
	}
	for (int round = 0; round < 2; round++) {
		ssize_t n = getdents64(fd, raw, LISTING_BYTES);
		if (n == 0) {
			*l = (struct dir_names){ steal_ptr(&dir), steal_ptr(&names), len };
			return;
		}
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *e = (const void *)(raw + at);
			size_t size = strlen(e->d_name) + 1;
			if (size > LISTING_BYTES - len) {
				return;
			}
			memcpy(names + len, e->d_name, size);
			len += size;
			at += e->d_reclen;
		}
	}
}

static bool listing_has(const struct dir_names *l, const char *name, size_t len)
{
	for (size_t at = 0; at < l->len; at += strlen(l->names + at) + 1) {
		if (strncmp(l->names + at, name, len) == 0 && l->names[at + len] == '\0') {
			return true;
		}
	}
	return false;
}

/* Returns the length of the parent: "/a" for "/a/b", and "/" for "/a". */
static size_t parent_length(const char *path, size_t len)
{
	while (path[len - 1] != '/') {
		len--;
	}
	return len > 1 ? len - 1 : 1;
}

/* Makes room for one more element; grows in powers of two from 32. */
static void *grow_array(void *v, size_t n, size_t item)
{
	if (n != 0 && (n < 32 || (n & (n - 1)) != 0)) {
		return v;
	}
	return realloc(v, (n == 0 ? 32 : n * 2) * item);
}

/* Returns false only if the names in a directory above are known and the path's name is not one of
 * them. */
static bool may_exist(const struct danger *d, const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(d->listings); i++) {
		const struct dir_names *l = &d->listings[i];
		const char *rest = l->dir != NULL ? path_beneath(path, l->dir) : NULL;
		if (rest != NULL && *rest != '\0' && !listing_has(l, rest, strcspn(rest, "/"))) {
			return false;
		}
	}
	return true;
}

static ssize_t known_folder(const struct danger *d, const char *path, size_t len)
{
	for (size_t i = 0; i < d->n_folders; i++) {
		if (d->folders[i].len == len && memcmp(d->folders[i].path, path, len) == 0) {
			return (ssize_t)i;
		}
	}
	return -1;
}

char *danger_link_words(const char *link)
{
	char to[PATH_MAX];
	ssize_t n = readlink(link, to, sizeof(to) - 1);
	const char *names = to;

	if (n <= 0) {
		return NULL;
	}
	to[n] = '\0';
	while (strncmp(names, "../", 3) == 0) {
		/* ".." at the beginning is safe, because the directory's path has no symlink */
		names += 3;
	}
	if (strstr(names, "..") != NULL) {
		return NULL;
	}
	auto_free char *dir = path_parent(link);
	auto_free char *whole = dir != NULL ? path_from(dir, to) : NULL;
	return whole != NULL ? path_words(whole) : NULL;
}

static ssize_t folder_index(struct danger *d, const char *path, size_t len);

/* Follows a symlink by its text, because its target is often a folder that is needed anyway:
 * /var/run leads to /run. Returns true if the text leads to an existing object without a further
 * symlink. */
static bool follow_words(struct danger *d, size_t link)
{
	if (d->follows) {
		return false;
	}
	auto_free char *to = danger_link_words(d->folders[link].path);
	d->follows = true;
	ssize_t at = to != NULL ? folder_index(d, to, strlen(to)) : -1;
	d->follows = false;
	if (at < 0 || !d->folders[at].real || !d->folders[at].exists) {
		return false;
	}
	struct folder *f = &d->folders[link];
	f->exists = true;
	f->id = d->folders[at].id;
	f->led_to = steal_ptr(&to);
	return true;
}

/* Returns the index of the folder path[0..len), after adding those above it; -1 without memory.
 * Parents come first, so that a symlink on the way is known. */
static ssize_t folder_index(struct danger *d, const char *path, size_t len)
{
	ssize_t known = known_folder(d, path, len);

	if (known >= 0) {
		return known;
	}
	bool above_real = true;
	bool above_exists = true;
	bool above_unknown = false;
	if (len > 1) {
		ssize_t up = folder_index(d, path, parent_length(path, len));
		if (up < 0) {
			return -1;
		}
		assert(d->folders != NULL);
		above_real = d->folders[up].real;
		above_exists = d->folders[up].exists;
		above_unknown = d->folders[up].unknown;
	}
	struct folder *v = grow_array(d->folders, d->n_folders, sizeof(*v));
	if (v == NULL) {
		return -1;
	}
	d->folders = v;
	size_t at = d->n_folders;
	struct folder *f = &v[at];
	struct stat st = { 0 };
	*f = (struct folder){ .path = strndup(path, len), .len = len };
	if (f->path == NULL) {
		return -1;
	}
	d->n_folders++; /* counted before it is complete, so that a symlink to itself finds it */
	errno = ENOENT;
	f->named = above_exists && may_exist(d, f->path) && lstat(f->path, &st) == 0;
	f->real = above_real && !(f->named && S_ISLNK(st.st_mode));
	if (above_real && !f->real && follow_words(d, at)) {
		return (ssize_t)at;
	}
	f = &d->folders[at];
	f->exists = f->real ? f->named : stat(f->path, &st) == 0;
	f->unknown = above_unknown || (!f->exists && !file_is_missing(errno));
	f->id = (struct object){ st.st_dev, st.st_ino };
	return (ssize_t)at;
}

char *danger_led_to(const char *path)
{
	char to[PATH_MAX];
	char *real = realpath(path, NULL);
	ssize_t n = real == NULL && errno == ENOENT ? readlink(path, to, sizeof(to) - 1) : -1;

	if (n <= 0) {
		return real;
	}
	to[n] = '\0';
	auto_free char *dir = path_parent(path);
	auto_free char *whole = dir != NULL ? path_from(dir, to) : NULL;
	return whole != NULL ? path_real(whole) : NULL;
}

/* Appends a place without looking it up; NULL without memory. */
static struct place *append_place(struct danger *d, const char *path, const char *why,
                                  unsigned flags)
{
	struct place *v = grow_array(d->places, d->n_places, sizeof(*v));

	if (v == NULL) {
		return NULL;
	}
	d->places = v;
	struct place *p = &v[d->n_places];
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
	size_t len = strlen(path);

	if (p == NULL) {
		return -1;
	}
	p->name = name != NULL ? name : p->path;
	ssize_t up = folder_index(d, path, len > 1 ? parent_length(path, len) : 1);
	if (up < 0) {
		return -1;
	}
	p->found = d->folders[up].unknown;
	if (!d->folders[up].exists || !may_exist(d, path)) {
		return 0;
	}
	ssize_t at = folder_index(d, path, len);
	if (at < 0) {
		return -1;
	}
	const struct folder *f = &d->folders[at];
	p->found = f->named || f->unknown;
	if (!f->named) {
		return 0;
	}
	if (f->real) {
		p->exists = true;
		p->id = f->id;
		return 0;
	}
	/* The path contains a symlink, so its target is added as a place of its own. */
	auto_free char *real = f->led_to != NULL ? strdup(f->led_to) : danger_led_to(path);
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

const struct folder *danger_above(const struct danger *d, const char *path)
{
	const struct folder *above = NULL;

	for (size_t len = 1; path[len] != '\0'; len++) {
		if (path[len] != '/' && len != 1) {
			continue;
		}
		ssize_t at = known_folder(d, path, len);
		const struct folder *f = at >= 0 ? &d->folders[at] : NULL;
		if (f == NULL || !f->exists) {
			return f == NULL || f->named ? NULL : above;
		}
		if (!f->real) {
			return NULL;
		}
		above = f;
	}
	ssize_t last = known_folder(d, path, strlen(path));
	return last >= 0 && d->folders[last].named ? NULL : above;
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
	auto_file f = fopen("/etc/passwd", "re");
	auto_free char *line = NULL;
	size_t size = 0;

	while (f != NULL && getline(&line, &size, f) > 0) {
		char *save = NULL;
		char *field[6];
		size_t n = 0;
		/* strsep() also counts empty fields; those that are used here are never empty. */
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
	/* A symlink was added as two places. */
	for (size_t i = first; i < d->n_places; i++) {
		d->places[i].instead = instead;
	}
	bool store = strncmp(row->path, "~/", 2) == 0 && (row->flags & DANGER_READ) != 0;
	return store && first < d->n_places && d->places[first].found
	               ? string_list_add(&d->stores, path, DANGER_ROWS_COUNT)
	               : 0;
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
	listing_load(&d->listings[0], o->home, "");
	listing_load(&d->listings[1], o->home, ".config");
	if (o->state_dir != NULL) {
		listing_load(&d->listings[2], o->state_dir, "");
	}
	ssize_t home = folder_index(d, o->home, strlen(o->home));
	if (home < 0) {
		return -1;
	}
	d->home = d->folders[home].id;
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

struct string_list danger_take_stores(struct danger *d)
{
	struct string_list stores = d->stores;

	d->stores = (struct string_list){ 0 };
	return stores;
}

void danger_free(struct danger *d)
{
	if (d == NULL) {
		return;
	}
	for (size_t i = 0; i < d->n_places; i++) {
		free(d->places[i].path);
	}
	for (size_t i = 0; i < d->n_folders; i++) {
		free(d->folders[i].path);
		free(d->folders[i].led_to);
	}
	for (size_t i = 0; i < ARRAY_LEN(d->listings); i++) {
		free(d->listings[i].dir);
		free(d->listings[i].names);
	}
	free(d->places);
	free(d->folders);
	string_list_done(&d->stores);
	danger_free(d->led);
	mounts_done(&d->mounts);
	free(d);
}
