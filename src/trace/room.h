/* room.h - who gets how much of a trace.
 *
 * Every event belongs to one room (ROOMS, one row each). A trace has a common part, which
 * is for all, and beside it a part for each room alone, in lines and in bytes. An event takes
 * from the common part while there is some, then from its own: whatever one room is flooded
 * with, the others keep their part. What finds no place is counted by room. Violations have a
 * room for each threat class: a flood of light ones leaves the worst its lines. */
#ifndef TRACE_ROOM_H
#define TRACE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/classes.h"
#include "trace/event.h"

enum room {
	ROOM_FRAME,      /* how the run began and ended */
	ROOM_TOTAL,      /* what each destination got, all together */
	ROOM_VIOLATION,  /* attempts outside the plan that are of no class */
	ROOM_CONNECTION, /* what the broker says */
	ROOM_EXEC,       /* programs that were started */
	ROOM_CHANGE,     /* changes in granted places, or nobody knows where */
	ROOM_READ,       /* files of granted places that were read */
	ROOM_OUTPUT,
	ROOM_OTHER, /* the system's files, private ones, what is not there */
	ROOM_CLASS, /* and one for each class: ROOM_CLASS + its id */
	ROOM_COUNT = ROOM_CLASS + CLASS_COUNT,
	ROOM_COMMON = ROOM_COUNT,
};

/* What is divided into rooms. */
enum room_place {
	IN_RECORD,
	IN_DOCUMENT,   /* its events */
	IN_VIOLATIONS, /* its policy_violations */
	PLACE_COUNT,
};

struct room_part {
	size_t lines;
	size_t bytes;
};

extern const struct room_info {
	const char *name; /* as a counter has it */
	size_t line;      /* the longest line, in bytes; longer ones are cut */
	struct room_part parts[PLACE_COUNT];
} ROOMS[ROOM_COUNT + 1];

/* `home` is the skill's, inside of the sandbox. */
enum room room_of(const struct event *e, const char *home);
/* Must not be lost for others' sake: neither a flood nor a look around. */
bool room_matters(enum room r);

/* How much of a trace is used. */
struct rooms {
	struct room_part used[ROOM_COUNT + 1];
	uint64_t dropped[ROOM_COUNT]; /* events that found no place */
};

/* Whether a line of no bytes would find one. */
bool rooms_left(const struct rooms *r, enum room room, enum room_place place);
/* Takes the place of one line; false: there is none. */
bool rooms_take(struct rooms *r, enum room room, size_t bytes, enum room_place place);

#endif
