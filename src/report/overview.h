/* overview.h - a whole record, gathered for people: the same things counted
 * together, what was denied first. Bounded whatever the record holds. */
#ifndef REPORT_OVERVIEW_H
#define REPORT_OVERVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/classes.h"
#include "trace/run_facts.h"
#include "report/render.h"

/* Each bin has its own share of a view: the classes of what was denied, then the groups;
 * lookups of names are apart from connections. */
enum overview_bin {
	BIN_CLASS,
	BIN_GROUP = BIN_CLASS + CLASS_COUNT + 1,
	BIN_LOOKUPS = BIN_GROUP + GROUP_COUNT,
	BIN_COUNT,
};

/* Texts are escaped already; "" where nothing is known. */
struct overview_item {
	enum render_group group;
	enum overview_bin bin;
	size_t at; /* in the order of the record */
	uint64_t hash;
	char *text;
	uint64_t count;
	uint64_t bytes_out;
	uint64_t bytes_in;
	struct {
		uint64_t count;
		uint64_t bytes_out;
		uint64_t bytes_in;
	} total; /* of a destination, where the record has one */
	/* of what was denied; none of them is NULL there: */
	char *kind; /* of its first line: "file_blocked" */
	char *program;
	char *reason;    /* its code, as the record has it */
	enum reason why; /* the same */
	char *rule;
	char *error;
	char *remedy;
	char *first; /* time */
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
	size_t n_items; /* in the order of their bins, then of the record */
	size_t n_in[BIN_COUNT];
	size_t n_denied;
	const char *home; /* of the skill; while it is read */
	uint32_t *table;  /* hash to item + 1 */
	struct {
		int64_t seq;
		uint32_t item;
	} * firsts;
	size_t n_firsts;
	size_t room_firsts;
	struct overview_class *classes;
	size_t n_classes;
	uint64_t lines;
	uint64_t uncounted;             /* past the bounds */
	uint64_t left_out[GROUP_COUNT]; /* of them by group */
	uint64_t unexplained;           /* of them denied */
	int64_t dropped;                /* by the writer, as it says itself */
	char *dropped_by;               /* "3 reads, 76000 other"; NULL: it does not say */
	char *lost_layers;
	const char *broken; /* why reading stopped; NULL: it did not */
};

/* Reads the record to its end, or to the first line that is none. */
int overview_read(struct overview *v, int fd, const char *id, struct ssb_error *err);
void overview_done(struct overview *v);
size_t overview_count(const struct overview *v, enum render_group group); /* different things */

#endif
