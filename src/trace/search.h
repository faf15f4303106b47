/* search.h - finds the runs whose record has a line of a certain kind. Reads one line at a time, so
 * the memory is limited. */
#ifndef TRACE_SEARCH_H
#define TRACE_SEARCH_H

#include <stdbool.h>

#include "trace/classes.h"
#include "trace/reader.h"

/* What a record must contain. Path, host and reason must all be in the same line. */
struct search {
	char *path;          /* absolute: this path, or one beneath it; NULL: any */
	const char *host;    /* this name or address, or a name beneath it; NULL: any */
	enum reason reason;  /* REASON_NONE: any */
	enum class_id class; /* CLASS_NONE: any */
};

bool search_is_empty(const struct search *s);
/* Returns whether the record `fd` matches, up to its end or its first damaged line. *ret_whole is
 * false if it does not match and was not read to its end. */
bool search_matches(const struct search *s, int fd, bool *ret_whole);

#endif
