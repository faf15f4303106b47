/* trace_priv.h - declarations that the source files of the trace share. */
#ifndef TRACE_TRACE_PRIV_H
#define TRACE_TRACE_PRIV_H

#include "trace/classes.h"
#include "trace/document.h"
#include "trace/files_line.h"
#include "trace/fold.h"
#include "trace/record.h"
#include "trace/room.h"
#include "trace/trace.h"
#include "trace/trace_file.h"

struct trace {
	const struct ssb_plan *plan;
	struct owner owner; /* its strings are borrowed */
	struct trace_file file;
	struct record record;
	struct document document;
	struct fold fold;
	struct classes classes;
	struct trace_tally *tally; /* NULL: violations are not counted while the skill runs */
	bool secret;               /* the tally has counted an attempt to get credentials */
	/* Ordinary attempts that the tally will count for their classes if there is such an
	 * attempt. */
	uint64_t pending[CLASS_COUNT];
	struct files_line files;
	char id[37];
	bool layers_told;
	bool closed;     /* the signature was written: nothing may follow */
	bool failed;     /* the sandbox itself failed, and not the skill */
	uint64_t due_ms; /* clock_ms() at which waiting lines will be written; 0: none wait */
	uint64_t events; /* number of event lines */
	uint64_t violations;
	uint64_t repeats;
	struct rooms rooms; /* how much of each room of the record is used */
	uint64_t unreadable;
	struct buf message; /* scratch */
	struct buf text;    /* scratch: message and data of one event as JSON */
	struct ssb_error failure;
};

/* Makes sure that the owner's key exists; makes it on first use. Must be called before the skill
 * starts. If the key exists, this function only examines a few files. */
int trace_check_key(const struct owner *owner, struct ssb_error *err);

/* Notes that there are lines to write. If `urgent`, for example after a denial, they are written
 * without a delay. */
void trace_make_due(struct trace *t, bool urgent);
/* returns how many events were dropped, in all rooms */
uint64_t trace_all_dropped(const struct trace *t);
/* Writes a line for each repeated attempt, with its count. */
void trace_put_repeats(struct trace *t);

/* These functions write the lines that are not events. */
int trace_put_run(struct trace *t, const char *plan, struct ssb_error *err);
void trace_put_layers(struct trace *t, const struct layer_report layers[LAYER_COUNT]);
void trace_put_files(struct trace *t);
int trace_put_end(struct trace *t, const struct ssb_result *result, struct ssb_error *err);

#endif
