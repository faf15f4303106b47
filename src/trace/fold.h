/* fold.h - counts repeated attempts, so that each attempt is written only once.
 *
 * The table has a fixed size, in sets of a few entries. The key of an entry is part of the SHA-256
 * of all members in which equal attempts must agree. A cryptographic hash is needed because a skill
 * chooses most of these bytes, and must not be able to make one attempt count as a repeat of
 * another. */
#ifndef TRACE_FOLD_H
#define TRACE_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"
#include "trace/room.h"

struct fold_key {
	uint64_t v[2];
};

struct fold_entry {
	struct fold_key key;
	uint64_t seq;     /* number of the first attempt's line */
	uint64_t count;   /* how many equal attempts came after the first */
	int64_t first_us; /* wall clock */
	int64_t last_us;
	uint64_t used; /* fold.clock at the last use; the entry with the lowest value is replaced */
	enum event_kind kind;
	enum room room; /* the room of the first attempt, in which its repeats are counted, too */
};

struct fold {
	struct fold_table *table; /* NULL until the first attempt */
	uint64_t clock;
};

void fold_done(struct fold *f);

struct fold_key fold_key(const struct event *e);
/* Returns the entry of an equal attempt, or NULL. */
struct fold_entry *fold_find(struct fold *f, const struct fold_key *key);
/* Adds a new attempt. If that replaces an entry that has repeats, copies the old entry to *ret_gone
 * and returns true. Without memory for the table, adds nothing: each repeat of the attempt is then
 * written like a new attempt. */
bool fold_put(struct fold *f, const struct fold_entry *entry, struct fold_entry *ret_gone);
/* Finds the next entry that has repeats, copies it to *ret, and sets its count in the table to 0.
 * *at must be 0 at the first call. Returns false if there are no more entries. */
bool fold_take(struct fold *f, size_t *at, struct fold_entry *ret);

#endif
