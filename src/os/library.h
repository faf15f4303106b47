/* library.h - loads a shared library on first use, so that only commands that use it pay for
 * loading it. */
#ifndef OS_LIBRARY_H
#define OS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "skillsandbox.h"

struct library_call {
	const char *name;
	size_t offset; /* of the function pointer in the table */
};

struct library {
	const char *file; /* "libpq.so.5" */
	const char *what; /* "the client of PostgreSQL" */
	const char *package;
	const struct library_call *calls;
	size_t n_calls;
};

/* Fills `table` once; *loaded then says that it is filled. The library is never unloaded. Fails
 * with SSB_E_NOT_FOUND if the library or a call is missing. */
int library_load(const struct library *l, void *table, bool *loaded, const char *where,
                 struct ssb_error *err);

#endif
