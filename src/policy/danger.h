/* danger.h - places that no manifest can claim.
 *
 * A place is dangerous as an object, however its path is written. The table names places; each is
 * looked up once and compared with the requested object by device and inode:
 *
 *   is        the object is such a place (also through a bind mount)
 *   contains  such a place lies in the object, or would if it were created
 *   beneath   the object lies in such a place
 *
 * Only the owner can grant such a place. A place with DANGER_NEVER cannot be granted at all: there
 * would be no sandbox left, or the sandbox has a place of its own instead. */
#ifndef POLICY_DANGER_H
#define POLICY_DANGER_H

#include "policy/path.h"
#include "policy/plan.h"

enum danger_flag {
	DANGER_READ = 1 << 0,    /* dangerous to read */
	DANGER_WRITE = 1 << 1,   /* dangerous to write */
	DANGER_BENEATH = 1 << 2, /* everything beneath the place is dangerous, too */
	DANGER_NEVER = 1 << 3,   /* not even the owner can grant it */
	DANGER_HOMES = 1 << 4,   /* contains homes, but the owner's own home is not dangerous */
	DANGER_SKILLS = 1 << 5,  /* a skill that the owner names may lie in it */
	DANGER_DENIED = 1 << 6,  /* denied by the owner's policy file */
	DANGER_LOUD = 1 << 7,    /* if it is granted, every run warns the owner */
	/* a directory of the runtime itself; a grant that contains it shows it empty
	 * (own_dirs.h) */
	DANGER_OWN = 1 << 8,
	DANGER_ITSELF = 1 << 9,  /* directories that contain the place are not dangerous */
	DANGER_AROUND = 1 << 10, /* only directories that contain the place are dangerous */
	DANGER_HIDDEN = 1 << 11, /* found by its hidden name, not in the table: see unlisted.h */
};

struct place {
	char *path;          /* absolute; the part of it that exists contains no symlink */
	const char *name;    /* the path itself, or the symlink that leads there; NULL: none */
	const char *why;     /* follows the path in messages: "holds SSH keys" */
	const char *instead; /* with DANGER_NEVER: what the owner can do instead; or NULL */
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

/* Memory for a place that is not in the table and was found for one request. */
struct danger_room {
	struct place place; /* points to `path` */
	char path[MAX_PATH_BYTES];
};

/* The thing that is judged: an existing object, or a path that would be created. */
struct subject {
	int fd; /* O_PATH, borrowed; the nearest existing parent if the object is missing */
	const char *path; /* the path of that fd */
	/* the part of the path that does not exist, "a/b"; NULL if the object exists */
	const char *missing;
	struct chain chain; /* the objects from the fd up to "/" */
};

/* Fills `ret` by walking up from `fd`; borrows `fd`, `path` and `missing`. Returns -1 with errno;
 * the caller must then not grant the object. */
int subject_init(struct subject *ret, int fd, const char *path, const char *missing);

struct danger;

/* Looks up the places of the table for this owner: the places that are dangerous to read and, with
 * ACCESS_WRITE, also the places that are dangerous only to write. Returns new; NULL without
 * memory. */
struct danger *danger_new(const struct owner *o, enum access access);
/* True if the set can judge this access. */
bool danger_judges(const struct danger *d, enum access access);
/* Returns the places to which the owner's hidden names lead, for example through a symlink
 * (danger_led.c). `d` owns them; they are looked up at the first call. NULL with errno. */
const struct danger *danger_led(struct danger *d, const struct owner *o);
void danger_free(struct danger *d); /* accepts NULL */
/* Adds to `ret` the paths of the table's secret places that are in `home`. A place counts as found
 * unless it is certainly missing. `d` was made for the same home, and has looked them up already;
 * NULL: they are looked up now. Returns -1 without memory (danger_stores.c). */
int danger_stores(const struct danger *d, const char *home, struct string_list *ret);
/* Adds a place (copies `path`, borrows `why`). Leaves it out if it is dangerous only to write and
 * the set does not judge writes. Returns -1 without memory. */
int danger_add(struct danger *d, const char *path, const char *why, unsigned flags);

/* Finds every place that `s` is, contains or lies in. The set must judge `access`. Returns -1
 * with errno. */
int danger_judge(const struct danger *d, const struct subject *s, enum access access,
                 struct danger_hits *ret);
/* Judges the mounts inside `s`, and the other paths at which bind mounts show `s`; adds to `hits`.
 * `s` must exist. `m` is the result of danger_mounts(): if it is NULL, this function fails with the
 * same errno. Returns -1 with errno. */
struct mounts;
int danger_judge_mounts(const struct danger *d, const struct mounts *m, const struct subject *s,
                        enum access access, struct danger_hits *hits);

/* Sets `hits` to a single hit: the place that the first `len` bytes of the requested `path` name,
 * with everything beneath it. `hits` borrows the place from `room`, and `room` borrows `why`. */
void danger_found(const char *path, size_t len, const char *why, unsigned flags,
                  struct danger_room *room, struct danger_hits *hits);

/* True if `words`, an absolute path as it is written, shows that it leads to the places in `hits`.
 * If the object is such a place or lies in one, `words` must name one of them. If the object only
 * contains the places, all of them must lie beneath `words`. */
bool danger_spelt(const struct danger_hits *hits, const char *words);

/* Returns the table of mounts, read once and borrowed. NULL with errno. */
const struct mounts *danger_mounts(struct danger *d);

/* Returns why `path` holds secrets, for an owner whose home is `home`, or NULL. Judges by the text
 * of the path alone (danger_name.c). */
const char *danger_named(const char *home, const char *path);
/* Like danger_named(). If a place is found, sets *ret_len to the number of bytes of `path` that
 * name the place itself. */
const char *danger_store(const char *home, const char *path, size_t *ret_len);
/* True if `path` is, or lies in, the usual place of one of the runtime's own directories in the
 * home. Judges by the text of the path alone. */
bool danger_is_runtime(const char *home, const char *path);
/* Judges a path, as a manifest writes it, by its text alone: the answer is the same on every
 * machine. Returns why the path is dangerous (it is a dangerous place, contains one or lies in
 * one); NULL if it is not dangerous. */
const char *danger_around(const char *path, enum access access);
/* True if `name` is a component in the path of some place of the table in the home. Ignores case,
 * leading dots and suffixes. */
bool danger_knows(const char *name);

#endif
