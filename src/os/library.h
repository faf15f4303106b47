/* library.h - a shared library that is loaded when it is first needed: its
 * start-up cost is paid by those commands alone that use it. */
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

/* Fills `table`, once: *loaded says that it is filled. Never unloaded.
 * SSB_E_NOT_FOUND where the library or a call is missing. */
int library_load(const struct library *l, void *table, bool *loaded, const char *where,
                 struct ssb_error *err);

#endif
