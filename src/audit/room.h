/* room.h - who gets how much of a trace.
 *
 * Every event belongs to one room (ROOMS, one row each). A trace has a common part, which
 * is for all, and beside it a part for each room alone, in lines and in bytes. An event takes
 * from the common part while there is some, then from its own: whatever one room is flooded
 * with, the others keep their part. What finds no place is counted by room. */
#ifndef AUDIT_ROOM_H
#define AUDIT_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/event.h"

enum room {
	ROOM_FRAME,      /* how the run began and ended */
	ROOM_TOTAL,      /* what each destination got, all together */
	ROOM_VIOLATION,  /* attempts outside the plan */
	ROOM_CONNECTION, /* what the broker says */
	ROOM_EXEC,       /* programs that were started */
	ROOM_CHANGE,     /* changes in granted places, or nobody knows where */
	ROOM_READ,       /* files of granted places that were read */
	ROOM_OUTPUT,
	ROOM_OTHER, /* the system's files, private ones, what is not there */
	ROOM_COUNT,
	ROOM_COMMON = ROOM_COUNT,
};

struct room_part {
	size_t lines;
	size_t bytes;
};

extern const struct room_info {
	const char *name; /* as a counter has it */
	size_t line;      /* the longest line, in bytes; longer ones are cut */
	struct room_part record;
	struct room_part document;
} ROOMS[ROOM_COUNT + 1];

enum room room_of(const struct event *e);
/* Must not be lost for others' sake: neither a flood nor a look around. */
bool room_matters(enum room r);

/* How much of a trace is used. */
struct rooms {
	struct room_part used[ROOM_COUNT + 1];
	uint64_t dropped[ROOM_COUNT]; /* events that found no place */
};

/* Whether a line of no bytes would find one. */
bool rooms_left(const struct rooms *r, enum room room, bool document);
/* Takes the place of one line; false: there is none. */
bool rooms_take(struct rooms *r, enum room room, size_t bytes, bool document);

#endif
