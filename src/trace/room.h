/* room.h - limits how much of a trace each kind of event may use.
 *
 * Every event belongs to one room (ROOMS, one row each). A trace has a common part, which all rooms
 * share, and a reserved part for each room, both limited in lines and in bytes. An event uses the
 * common part until that is full, and then the reserved part of its room. So if events of one room
 * flood the trace, the other rooms keep their reserved parts. Events that do not fit are counted by
 * room. Violations have one room for each threat class, so a flood of minor violations cannot
 * displace the most severe ones. */
#ifndef TRACE_ROOM_H
#define TRACE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/classes.h"
#include "trace/event.h"

enum room {
	ROOM_FRAME,      /* events about the beginning and end of the run */
	ROOM_TOTAL,      /* the totals of the connections to each destination */
	ROOM_VIOLATION,  /* violations that belong to no class */
	ROOM_CONNECTION, /* connections and queries, as the broker reports them */
	ROOM_EXEC,       /* programs that were started */
	ROOM_CHANGE,     /* changes in granted places, or in places that are not known */
	ROOM_READ,       /* reads in granted places */
	ROOM_OUTPUT,
	ROOM_OTHER, /* files of the system, private files, absent files */
	ROOM_CLASS, /* one room for each class: ROOM_CLASS + its id */
	ROOM_COUNT = ROOM_CLASS + CLASS_COUNT,
	ROOM_COMMON = ROOM_COUNT,
};

/* The outputs whose space is divided into rooms. */
enum room_place {
	IN_RECORD,
	IN_DOCUMENT,   /* the events of the document */
	IN_VIOLATIONS, /* the policy_violations of the document */
	PLACE_COUNT,
};

struct room_part {
	size_t lines;
	size_t bytes;
};

extern const struct room_info {
	const char *name; /* the room's name in the counters */
	size_t line;      /* the longest line, in bytes; the texts of a longer line are cut */
	struct room_part parts[PLACE_COUNT];
} ROOMS[ROOM_COUNT + 1];

/* Returns the room of an event. The class decides the room of a violation. */
enum room room_of(const struct event *e, enum class_id class);
/* Returns whether a flood of other events must not displace the events of this room. False for the
 * rooms that a flood of events or an ordinary search through directories can fill. */
bool room_matters(enum room r);

/* Counts how much of a trace is used. */
struct rooms {
	struct room_part used[ROOM_COUNT + 1];
	uint64_t dropped[ROOM_COUNT]; /* events for which there was no room */
};

/* Returns whether there is room for one more line, if it is short enough. */
bool rooms_left(const struct rooms *r, enum room room, enum room_place place);
/* Counts a line of `bytes` bytes as used. Returns false if it does not fit; then nothing is
 * counted. */
bool rooms_take(struct rooms *r, enum room room, size_t bytes, enum room_place place);

#endif
