/* index.h - keeps a table of the runs for queries: state_dir/index.db.
 *
 * The table is only a cache. A run that is missing in it is read from the run's record, a run that
 * no longer exists is dropped, and a damaged table is made again. SQLite is loaded only when the
 * index is used. */
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
	bool violations;              /* only runs with violations */
	enum class_severity severity; /* at least this; SEVERITY_NONE: any */
	long limit;                   /* 0: all */
	bool rebuild;                 /* make the table again */
};

/* Sets *ret to the runs that `ask` selects, newest first. `*ret` is new; the caller must free()
 * it. */
int index_list(const char *state_dir, const struct index_ask *ask, struct run_facts **ret,
               size_t *ret_n, struct ssb_error *err);

#endif
