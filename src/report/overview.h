/* overview.h - summarises a whole record for people: equal things are counted together, and denials
 * come first. The memory is limited, whatever the record contains. */
#ifndef REPORT_OVERVIEW_H
#define REPORT_OVERVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/classes.h"
#include "trace/run_facts.h"
#include "report/remedy.h"
#include "report/render.h"

/* Each bin has its own share of a view. The bins for the classes of denials come first, then
 * those for the groups. Lookups of names have a bin of their own, so that they use no place of
 * connections. */
enum overview_bin {
	BIN_CLASS,
	BIN_GROUP = BIN_CLASS + CLASS_COUNT + 1,
	BIN_LOOKUPS = BIN_GROUP + GROUP_COUNT,
	BIN_COUNT,
};

/* How a report treats an item. Whatever is told about denials follows this, so all reports agree.
 */
enum denial_kind {
	DENIAL_NOT, /* it was not denied */
	DENIAL_VIOLATION,
	DENIAL_PLAIN, /* no violation, but the program may have failed because of it */
	/* Programs try this in normal use, and work without it: system calls for which libraries
	 * have a substitute, settings that a program looks for. */
	DENIAL_EVERYDAY,
	DENIAL_LIMIT, /* a limit of the run was reached; `text` says which */
};

/* All texts are already escaped; "" if nothing is known. */
struct overview_item {
	enum render_group group;
	enum denial_kind denial;
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
	} total; /* if the record has a line with the total of a destination: that total */
	/* Only denials have these texts, and a denial has all of them. */
	char *kind; /* kind of the item's first line: "file_blocked" */
	char *program;
	char *path;      /* the path that was denied; "" if it is no file */
	char *host;      /* the name of the host that was denied, or else its address */
	char *reason;    /* the code of the reason, or the name of the limit, as in the record */
	enum reason why; /* the same code as an enum */
	char *because;   /* the reason in words, if a limit belongs to them; else "" */
	char *rule;
	char *error;
	char *remedy;
	enum remedy_grant grants; /* what the remedy grants */
	/* What an approval could remember, as in remedy_value(); NULL: it cannot be remembered.
	 * This is the skill's text, which is not escaped. */
	enum ssb_option option;
	char *value;
	char *first; /* time of the item's first line */
	bool let_through;
	bool routine; /* render_is_routine() of the item's first line */
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
	bool bare;        /* a command without a manifest */
	const char *home; /* the skill's home; valid only while the record is read */
	uint32_t *table;  /* hash table: index of the item + 1 */
	struct {
		int64_t seq;
		uint32_t item;
	} * firsts;
	size_t n_firsts;
	size_t room_firsts;
	struct overview_class *classes;
	size_t n_classes;
	uint64_t lines;
	uint64_t uncounted;             /* attempts for which there was no room */
	uint64_t left_out[GROUP_COUNT]; /* the attempts in `uncounted`, by group */
	uint64_t unexplained;           /* the denied attempts in `uncounted` */
	int64_t dropped; /* events that the writer of the record dropped, according to the record */
	char *dropped_by;   /* as in "3 reads, 76000 other"; NULL: the record does not say */
	char *lost_layers;  /* the layers that were not on, as text for people */
	bool unobserved;    /* the layer `audit` was not on */
	const char *broken; /* why reading stopped early; NULL: it did not */
};

/* Reads the record to its end, or to the first line that cannot be parsed. The caller must call
 * overview_done() even after a failure. */
int overview_read(struct overview *v, int fd, const char *id, struct ssb_error *err);
void overview_done(struct overview *v);
/* Returns whether programs look for such a file in normal use and work without it: settings of the
 * machine, facts about it, and names in the home that begin with a dot. `home` is the skill's home;
 * "" if it is unknown. */
bool overview_is_settings(const char *home, const char *path);
/* Returns how reports treat a line. `home` is as in overview_is_settings(). */
enum denial_kind overview_judge(const struct line *l, const char *home);
/* Returns whether a summary names the item as denied. What is left out is everyday. */
static inline bool overview_is_told(const struct overview_item *i)
{
	return i->denial == DENIAL_VIOLATION || i->denial == DENIAL_PLAIN;
}
/* Returns how many different items a summary names. */
size_t overview_count_told(const struct overview *v);

#endif
