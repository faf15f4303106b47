/* fold.h - attempts that were made before are counted, not written again.
 *
 * A table of fixed size, in sets of a few entries. An entry is known by the SHA-256 of what makes
 * two attempts the same: a skill chooses most of these bytes, and must not be able to make one
 * attempt count as a repeat of another. */
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
	uint64_t count;   /* how many more attempts like it */
	int64_t first_us; /* wall clock */
	int64_t last_us;
	uint64_t used; /* fold.clock at the last use: the oldest entry is replaced */
	enum event_kind kind;
	enum room room; /* the room of the first attempt, and so of its repeats */
};

struct fold {
	struct fold_table *table; /* NULL until the first attempt */
	uint64_t clock;
};

void fold_done(struct fold *f);

struct fold_key fold_key(const struct event *e);
/* Returns the entry of an equal attempt, or NULL. */
struct fold_entry *fold_find(struct fold *f, const struct fold_key *key);
/* Enters a new attempt. Returns true if it replaced an entry with repeats, which *ret_gone then
 * holds. Out of memory, nothing is entered and nothing is folded. */
bool fold_put(struct fold *f, const struct fold_entry *entry, struct fold_entry *ret_gone);
/* Takes out the next entry with repeats. *at must be 0 at first. Returns false if there are no
 * more. */
bool fold_take(struct fold *f, size_t *at, struct fold_entry *ret);

#endif
