/* overview.h - a whole record, summarised for people: equal things are counted together, denials
 * come first. Memory is bounded, whatever the record holds. */
#ifndef REPORT_OVERVIEW_H
#define REPORT_OVERVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/classes.h"
#include "trace/run_facts.h"
#include "report/render.h"

/* Each bin has its own share of a view: first the classes of denials, then the groups. Lookups of
 * names are separate from connections. */
enum overview_bin {
	BIN_CLASS,
	BIN_GROUP = BIN_CLASS + CLASS_COUNT + 1,
	BIN_LOOKUPS = BIN_GROUP + GROUP_COUNT,
	BIN_COUNT,
};

/* Texts are escaped already; "" if nothing is known. */
struct overview_item {
	enum render_group group;
	enum overview_bin bin;
	size_t at; /* position in the record */
	uint64_t hash;
	char *text;
	uint64_t count;
	uint64_t bytes_out;
	uint64_t bytes_in;
	struct {
		uint64_t count;
		uint64_t bytes_out;
		uint64_t bytes_in;
	} total; /* of a destination, if the record has a line for it */
	/* of denials; none of these texts is NULL then: */
	char *kind; /* kind of its first line: "file_blocked" */
	char *program;
	char *reason;    /* its code, as the record has it */
	enum reason why; /* the same code as an enum */
	char *rule;
	char *error;
	char *remedy;
	char *first; /* time of the first line */
	bool let_through;
};

struct overview_class {
	char *name;
	char *severity;
	char *tactic;
	int64_t count;
	bool prevented;
};

struct overview {
	struct run_facts facts;
	bool has_facts;
	struct overview_item *items;
	size_t n_items; /* ordered by bin, then as in the record */
	size_t n_in[BIN_COUNT];
	size_t n_denied;
	const char *home; /* the skill's home; only while the record is read */
	uint32_t *table;  /* from hash to index of the item + 1 */
	struct {
		int64_t seq;
		uint32_t item;
	} * firsts;
	size_t n_firsts;
	size_t room_firsts;
	struct overview_class *classes;
	size_t n_classes;
	uint64_t lines;
	uint64_t uncounted;             /* attempts past the bounds */
	uint64_t left_out[GROUP_COUNT]; /* of `uncounted`, by group */
	uint64_t unexplained;           /* of `uncounted`, the denied ones */
	int64_t dropped;                /* events that the writer dropped, as it says */
	char *dropped_by;               /* "3 reads, 76000 other"; NULL: not said */
	char *lost_layers;
	const char *broken; /* why reading stopped; NULL: it did not */
};

/* Reads the record to its end, or to the first line that cannot be parsed. Call overview_done()
 * also after a failure. */
int overview_read(struct overview *v, int fd, const char *id, struct ssb_error *err);
void overview_done(struct overview *v);
size_t overview_count(const struct overview *v,
                      enum render_group group); /* number of different things */

#endif
