/* room.h - how much of a trace each kind of event may use.
 *
 * Every event belongs to one room (ROOMS, one row each). A trace has a common part, which all
 * rooms share, and a part for each room alone, in lines and in bytes. An event takes from the
 * common part while it lasts, then from its room's own: if one room is flooded, the others keep
 * their part. Events that find no place are counted by room. Violations have a room for each
 * threat class: a flood of light violations leaves the worst their lines. */
#ifndef TRACE_ROOM_H
#define TRACE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/classes.h"
#include "trace/event.h"

enum room {
	ROOM_FRAME,      /* how the run began and ended */
	ROOM_TOTAL,      /* the total of each destination */
	ROOM_VIOLATION,  /* violations that belong to no class */
	ROOM_CONNECTION, /* what the broker reports */
	ROOM_EXEC,       /* programs that were started */
	ROOM_CHANGE,     /* changes in granted places, or in unknown ones */
	ROOM_READ,       /* reads in granted places */
	ROOM_OUTPUT,
	ROOM_OTHER, /* files of the system, private files, absent files */
	ROOM_CLASS, /* one room for each class: ROOM_CLASS + its id */
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
	const char *name; /* its name in the counters */
	size_t line;      /* the longest line, in bytes; longer ones are cut */
	struct room_part parts[PLACE_COUNT];
} ROOMS[ROOM_COUNT + 1];

/* The room of an event. `home` is the skill's home in the sandbox. */
enum room room_of(const struct event *e, const char *home);
/* Must events of this room not be lost to a flood of others? False for rooms that a flood or a
 * look around can fill. */
bool room_matters(enum room r);

/* How much of a trace is used. */
struct rooms {
	struct room_part used[ROOM_COUNT + 1];
	uint64_t dropped[ROOM_COUNT]; /* events that found no place */
};

/* Is there a place for one more line, however short? */
bool rooms_left(const struct rooms *r, enum room room, enum room_place place);
/* Takes the place of one line. Returns false if there is none. */
bool rooms_take(struct rooms *r, enum room room, size_t bytes, enum room_place place);

#endif
