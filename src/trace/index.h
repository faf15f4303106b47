/* index.h - the runs as a table that can be asked: state_dir/index.db.
 *
 * A cache and nothing more: what it lacks is read from the records, what it
 * has too much is dropped, and where it is damaged it is made anew. SQLite is
 * loaded when it is needed and by nothing else. */
#ifndef TRACE_INDEX_H
#define TRACE_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/run_facts.h"
#include "trace/runs.h"
#include "skillsandbox.h"

struct index_ask {
	const char *skill; /* NULL: any */
	const char *since; /* RFC 3339 in UTC; NULL: any */
	const char *until;
	bool violations; /* only runs with one */
	int severity;    /* at least this; 0: any */
	long limit;      /* 0: all */
	bool rebuild;    /* trust nothing of it */
};

/* The runs asked for, newest first; `*ret` is new (free()). */
int index_list(const char *state_dir, const struct index_ask *ask, struct run_facts **ret,
               size_t *ret_n, struct ssb_error *err);

#endif
