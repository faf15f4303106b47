/* library.h - loads a shared library at its first use, so that other commands do not spend time on
 * it. */
#ifndef OS_LIBRARY_H
#define OS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "skillsandbox.h"

struct library_call {
	const char *name;
	size_t offset; /* offset of the function pointer in the table */
};

struct library {
	const char *file; /* "libpq.so.5" */
	const char *what; /* "the client of PostgreSQL" */
	const char *package;
	const struct library_call *calls;
	size_t n_calls;
};

/* Loads the library and fills `table` with its functions, unless *loaded is true; sets *loaded. The
 * library is never unloaded. Fails with SSB_E_NOT_FOUND if the library or a function is missing.
 * `where` is for the error. */
int library_load(const struct library *l, void *table, bool *loaded, const char *where,
                 struct ssb_error *err);

#endif
