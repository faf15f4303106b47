/* record_priv.h - a record that is being read: record.c reads it, record_events.c knows
 * what its lines mean. */
#ifndef LEARN_RECORD_PRIV_H
#define LEARN_RECORD_PRIV_H

#include "trace/reader.h"
#include "learn/needs.h"

struct repeat {
	int64_t of; /* seq of the first */
	uint64_t count;
};

struct shown_name {
	char *address; /* that stands for the host in the sandbox */
	char *name;
};

/* A granted place, in the sandbox. */
struct shown_place {
	char *target;
	bool own; /* the skill's or its interpreter's: shown without being asked for */
};

struct record_reading {
	const struct owner *owner;
	struct needs *out;
	const char *why;
	char *home; /* in the sandbox */
	struct repeat *repeats;
	size_t n_repeats;
	struct shown_name *names;
	size_t n_names;
	struct shown_place *places;
	size_t n_places;
	struct string_list asked; /* names of variables, as declared */
	bool begun;
	bool nomem;
};

/* A member of a line that can be a value: whole, and no longer than a path; else "". */
const char *record_text(const struct line *l, const char *name);
const char *record_value(const struct json_node *n); /* the same; else NULL */

/* The host behind an address of the sandbox's own; NULL: not known. */
const char *record_name(const struct record_reading *r, const char *address);
/* How often it was done, with all that was counted later. */
uint64_t record_times(const struct record_reading *r, const struct line *l);

/* One line that is no repeat and not the first. */
void record_event(struct record_reading *r, const struct line *l);

#endif
