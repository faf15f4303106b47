/* danger.h - places that no manifest can claim.
 *
 * What makes a place dangerous is the object, not how its path is spelt. The table names places;
 * each is looked up once and compared by device and inode:
 *
 *   is        the object is such a place (also through a bind mount)
 *   contains  such a place lies in it, or would if it were created
 *   beneath   the object lies in such a place
 *
 * Only the owner can grant such a place. DANGER_NEVER cannot be granted at all: there would be
 * no sandbox left, or the sandbox has a place of its own instead. */
#ifndef POLICY_DANGER_H
#define POLICY_DANGER_H

#include "policy/path.h"
#include "policy/plan.h"

enum danger_flag {
	DANGER_READ = 1 << 0,    /* dangerous to read */
	DANGER_WRITE = 1 << 1,   /* dangerous to write */
	DANGER_BENEATH = 1 << 2, /* so is everything beneath it */
	DANGER_NEVER = 1 << 3,   /* the owner cannot grant it either */
	DANGER_HOMES = 1 << 4,  /* contains homes; the owner's own home in it is judged by itself */
	DANGER_SKILLS = 1 << 5, /* a skill that the owner names may lie in it */
	DANGER_DENIED = 1 << 6, /* denied by the owner's policy file */
	DANGER_LOUD = 1 << 7,   /* warns the owner at every run */
	DANGER_OWN = 1 << 8, /* the runtime's own: empty in a grant that contains it (own_dirs.h) */
	DANGER_ITSELF = 1 << 9,  /* does not make the directories that contain it dangerous */
	DANGER_AROUND = 1 << 10, /* makes only the directories that contain it dangerous */
	DANGER_HIDDEN = 1 << 11, /* in no table: see unlisted.h */
};

struct place {
	char *path;          /* absolute; without symlinks as far as it exists */
	const char *name;    /* the path itself, or the symlink that leads there; NULL: none */
	const char *why;     /* completes "PATH ...": "holds SSH keys" */
	const char *instead; /* for DANGER_NEVER, what to do instead; may be NULL */
	unsigned flags;
	bool exists;
	bool found; /* something has the name, or it cannot be told whether anything has */
	struct object id;
};

enum danger_how { DANGER_IS, DANGER_CONTAINS, DANGER_LIES_IN };

struct danger_hit {
	const struct place *place; /* borrowed from the set */
	enum danger_how how;
};

#define MAX_DANGER_HITS 24
struct danger_hits {
	struct danger_hit v[MAX_DANGER_HITS]; /* DANGER_NEVER and _DENIED first */
	size_t n;
};

/* A place that is in no table and was found for one request. */
struct danger_room {
	struct place place; /* points to `path` */
	char path[MAX_PATH_BYTES];
};

/* The thing that is judged: an existing object, or a path that would be created. */
struct subject {
	int fd; /* O_PATH, borrowed; the nearest existing parent if the object is missing */
	const char *path;    /* the path of that fd */
	const char *missing; /* the rest of the path, "a/b"; NULL if the object exists */
	struct chain chain;  /* of the fd */
};

/* Fills `ret` by walking up from `fd`; borrows all three. Returns -1 with errno; an object that
 * cannot be examined must not be granted. */
int subject_init(struct subject *ret, int fd, const char *path, const char *missing);

struct danger;

/* Looks the table up for this owner: the places that are dangerous to read, and with
 * ACCESS_WRITE also those that are dangerous only to write. Returns new; NULL without memory. */
struct danger *danger_new(const struct owner *o, enum access access);
/* True if the set can judge this access. */
bool danger_judges(const struct danger *d, enum access access);
/* Returns the places to which the owner's own names lead (danger_led.c). They are looked up once
 * and borrowed. NULL with errno. */
const struct danger *danger_led(struct danger *d, const struct owner *o);
void danger_free(struct danger *d); /* accepts NULL */
/* Gives away the paths of the secret places of the table that were found in the owner's home. A
 * place counts as found unless it is certainly missing. Returns new. */
struct string_list danger_take_stores(struct danger *d);
/* Adds a place (copies `path`, borrows `why`). Leaves it out if it is dangerous only to write
 * and the set does not judge writes. */
int danger_add(struct danger *d, const char *path, const char *why, unsigned flags);

/* Finds every place that `s` is, contains or lies in. The set must judge `access`. Returns -1
 * with errno. */
int danger_judge(const struct danger *d, const struct subject *s, enum access access,
                 struct danger_hits *ret);
/* The same for the mounts inside `s`, and for the other names by which bind mounts show it; adds
 * to `hits`. `s` must exist. If `m` is NULL, it fails with the errno of danger_mounts(). */
struct mounts;
int danger_judge_mounts(const struct danger *d, const struct mounts *m, const struct subject *s,
                        enum access access, struct danger_hits *hits);

/* Sets `hits` to a single hit: the place that the first `len` bytes of `path` name, with
 * everything beneath it. `path` is the requested path. `hits` borrows the place from `room`;
 * `why` is borrowed. */
void danger_found(const char *path, size_t len, const char *why, unsigned flags,
                  struct danger_room *room, struct danger_hits *hits);

/* True if the words of an absolute path name the places that were hit. For places that the
 * object is or lies in, naming one is enough; if the object only contains them, all must lie in
 * the named path. */
bool danger_spelt(const struct danger_hits *hits, const char *words);

/* Returns the table of mounts, read once and borrowed. NULL with errno. */
const struct mounts *danger_mounts(struct danger *d);

/* Returns why `path` holds secrets, for an owner whose home is `home`, or NULL. Judges by the
 * words of the path alone (danger_name.c). */
const char *danger_named(const char *home, const char *path);
/* The same; the first *ret_len bytes of `path` name the place itself. */
const char *danger_store(const char *home, const char *path, size_t *ret_len);
/* Returns why `path`, as a manifest writes it, names a dangerous place, one that would contain
 * such a place, or lies in one; or NULL. Judges by its words alone, on any machine. */
const char *danger_around(const char *path, enum access access);
/* True if the table has a place in a home that is called `name`, whatever its case, dots and
 * suffix. */
bool danger_knows(const char *name);

#endif
