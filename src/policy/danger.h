/* danger.h - places that no manifest can claim.
 *
 * A place is dangerous by what it is, not by how it is spelt. The table names
 * places; each is looked up once and compared by device and inode:
 *
 *   is        the object is such a place (also through a bind mount)
 *   contains  such a place lies in it, or would if it were created
 *   beneath   the object lies in such a place
 *
 * Only the owner can grant one; what is DANGER_NEVER nobody can, since no
 * sandbox would be left, or it has one of its own. */
#ifndef POLICY_DANGER_H
#define POLICY_DANGER_H

#include "policy/path.h"
#include "policy/plan.h"

enum danger_flag {
	DANGER_READ = 1 << 0,    /* dangerous to read */
	DANGER_WRITE = 1 << 1,   /* dangerous to write */
	DANGER_BENEATH = 1 << 2, /* so is everything in it */
	DANGER_NEVER = 1 << 3,   /* not granted by the owner either */
	DANGER_HOMES = 1 << 4,   /* holds homes: the owner's own, in it, is judged by itself */
	DANGER_SKILLS = 1 << 5,  /* a skill that the owner names may live in it */
	DANGER_DENIED = 1 << 6,  /* by the owner's policy file */
	DANGER_LOUD = 1 << 7,    /* the owner is told at every run */
	DANGER_OWN = 1 << 8,     /* the runtime's: empty in a grant that holds it (own_dirs.h) */
	DANGER_ITSELF = 1 << 9,  /* says nothing of what contains it */
	DANGER_AROUND = 1 << 10, /* says something of what contains it alone */
	DANGER_HIDDEN = 1 << 11, /* in no table: see unlisted.h */
};

struct place {
	char *path;          /* absolute, no symlink where it exists */
	const char *name;    /* the same, or the symlink that leads there; NULL: it has none */
	const char *why;     /* completes "PATH ...": "holds SSH keys" */
	const char *instead; /* of DANGER_NEVER: what to do; may be NULL */
	unsigned flags;
	bool exists;
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

/* Of a place that is in no table, found for one request. */
struct danger_room {
	struct place place; /* points to `path` */
	char path[MAX_PATH_BYTES];
};

/* What is judged: an existing object, or a path that would be created. */
struct subject {
	int fd;              /* O_PATH, borrowed; of the nearest existing parent if missing */
	const char *path;    /* that fd's path */
	const char *missing; /* what comes after it, "a/b"; NULL if the object exists */
	struct chain chain;  /* of the fd */
};

/* Fills `ret` by walking up from `fd`; it borrows all three. -1 with errno:
 * what cannot be examined must not be granted. */
int subject_init(struct subject *ret, int fd, const char *path, const char *missing);

struct danger;

/* Looks the table up for this owner: the places that it is dangerous to read, and with
 * ACCESS_WRITE those that it is dangerous only to write as well. Returns new, NULL without memory.
 */
struct danger *danger_new(const struct owner *o, enum access access);
/* The set can judge this access. */
bool danger_judges(const struct danger *d, enum access access);
/* What the owner's own names lead to (danger_led.c): looked up once, borrowed. NULL with errno. */
const struct danger *danger_led(struct danger *d, const struct owner *o);
void danger_free(struct danger *d); /* accepts NULL */
/* One more place (`path` is copied, `why` borrowed), unless the set does not judge writes and the
 * place is dangerous only to write. */
int danger_add(struct danger *d, const char *path, const char *why, unsigned flags);

/* Every place that `s` is, holds or lies in; the set must judge `access`. -1 with errno. */
int danger_judge(const struct danger *d, const struct subject *s, enum access access,
                 struct danger_hits *ret);
/* The same for what is mounted inside it, and for the other names by which
 * bind mounts show it; adds to `hits`. Only for an existing directory or file. A NULL `m` is
 * an error, with the errno of danger_mounts(). */
struct mounts;
int danger_judge_mounts(const struct danger *d, const struct mounts *m, const struct subject *s,
                        enum access access, struct danger_hits *hits);

/* The first `len` bytes of `path` are a place with all that is in it, and it is the only hit of
 * `hits`, which borrows it from `room`. `path` is what was asked for; `why` is borrowed. */
void danger_found(const char *path, size_t len, const char *why, unsigned flags,
                  struct danger_room *room, struct danger_hits *hits);

/* Do the words of an absolute path name what was hit? To name one place that it is or lies in
 * is enough; of what it only contains all have to lie in what is named. */
bool danger_spelt(const struct danger_hits *hits, const char *words);

/* The table of mounts, read once; borrowed. NULL with errno. */
const struct mounts *danger_mounts(struct danger *d);

/* Whether `path` names a place that holds secrets, for an owner whose home is
 * `home`: why it does, or NULL. By its words alone (danger_name.c). */
const char *danger_named(const char *home, const char *path);
/* The same; the first *ret_len bytes of `path` are the place itself. */
const char *danger_store(const char *home, const char *path, size_t *ret_len);
/* Whether `path`, as a manifest writes it, names a dangerous place, one that would hold
 * such a place, or lies in one: why, or NULL. By its words alone, on any machine. */
const char *danger_around(const char *path, enum access access);
/* The table has a place in a home that is called `name`, whatever its case, dots and suffix. */
bool danger_knows(const char *name);

#endif
