/* kept_rows.h - a list that runs store for later runs, in a file of the state directory.
 *
 * The file belongs to the owner, and no skill can see it. Each row is a text that begins with '/'
 * and ends with a NUL. The file has at most MAX_KNOWN_BYTES. */
#ifndef OS_KEPT_ROWS_H
#define OS_KEPT_ROWS_H

#include <stdbool.h>

#include "base/string_list.h"
#include "skillsandbox.h"

struct kept_rows {
	const char *name;  /* file name in the state directory */
	const char *what;  /* the name of the list in messages: "list of known repositories" */
	const char *where; /* the `where` of an error */
	bool (*is_current)(const char *); /* false: the row is dropped when the file is full */
};

/* Adds the rows to `ret`, the oldest first; none if the file is missing. Returns 0, or -1 if the
 * file cannot be read or other users can write it. */
int kept_rows_load(const struct kept_rows *k, const char *state_dir, struct string_list *ret,
                   struct ssb_error *err);

/* Appends the rows that are not in the file. Rows that cannot be written are lost: a run does not
 * fail because of them. */
void kept_rows_add(const struct kept_rows *k, const char *state_dir,
                   const struct string_list *rows);

#endif
