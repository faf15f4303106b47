/* record_priv.h - the state while a record is read: record.c reads it, record_events.c interprets
 * its lines. */
#ifndef LEARN_RECORD_PRIV_H
#define LEARN_RECORD_PRIV_H

#include "trace/reader.h"
#include "learn/needs.h"

struct repeat {
	int64_t of; /* `seq` of the line that was repeated */
	uint64_t count;
};

struct shown_name {
	char *address; /* the address that stands for the host inside the sandbox */
	char *name;
};

/* A place in the sandbox that was granted. */
struct shown_place {
	char *target;
	bool own;   /* of the skill itself or its interpreter: shown without a request */
	bool named; /* the caller of that run named it in the arguments */
};

struct record_reading {
	const struct owner *owner;
	struct needs *out;
	const char *why;
	char *home; /* the path of the home in the sandbox */
	struct repeat *repeats;
	size_t n_repeats;
	struct shown_name *names;
	size_t n_names;
	struct shown_place *places;
	size_t n_places;
	struct string_list preset; /* names of variables that a preset or a cache set */
	struct string_list asked;  /* names of variables that the manifest declares */
	bool begun;
	bool nomem;
};

/* Returns a member of a line as text, or "" if it is incomplete or longer than a path. */
const char *record_text(const struct line *l, const char *name);
const char *record_value(const struct json_node *n); /* the same for a node; NULL, not "" */

/* Returns the host that an address in the sandbox means, or NULL if it is not known. */
const char *record_name(const struct record_reading *r, const char *address);
/* Returns how often the event of the line happened, including repeats that a later line
 * counts. */
uint64_t record_times(const struct record_reading *r, const struct line *l);

/* Takes one line, which must not be a repeat or the first line. */
void record_event(struct record_reading *r, const struct line *l);

#endif
