/* fold.h - attempts that were made before are counted, not written again.
 *
 * A table of fixed size, in sets of a few entries. Entries are known by the
 * SHA-256 of what makes two attempts the same: a skill chooses most of these
 * bytes, and must not find a second attempt that is taken for the first. */
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
	uint64_t seq;     /* of the line of the first */
	uint64_t count;   /* how many more */
	int64_t first_us; /* wall clock */
	int64_t last_us;
	uint64_t used; /* for the choice of what to give up */
	enum event_kind kind;
	enum room room; /* that its repeats belong to, as the first does */
};

struct fold {
	struct fold_table *table; /* NULL until the first attempt */
	uint64_t clock;
};

void fold_done(struct fold *f);

struct fold_key fold_key(const struct event *e);
/* The entry of an equal attempt, or NULL. */
struct fold_entry *fold_find(struct fold *f, const struct fold_key *key);
/* Enters a new one. True if an entry with repeats had to go: *ret_gone. Out of
 * memory nothing is entered, and nothing is folded. */
bool fold_put(struct fold *f, const struct fold_entry *entry, struct fold_entry *ret_gone);
/* Takes one entry with repeats out; false: there are no more. */
bool fold_take(struct fold *f, size_t *at, struct fold_entry *ret);

#endif
