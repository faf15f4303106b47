/* kept_rows.h - what one run keeps for the next, in a file of the state directory.
 *
 * The file is the owner's, and no grant shows it. Each row is a text that begins with '/' and
 * ends with a NUL. The file only grows until it has MAX_KNOWN_BYTES. */
#ifndef OS_KEPT_ROWS_H
#define OS_KEPT_ROWS_H

#include <stdbool.h>

#include "base/string_list.h"
#include "skillsandbox.h"

struct kept_rows {
	const char *name;                 /* of the file */
	const char *what;                 /* for messages: "list of known repositories" */
	const char *where;                /* of an error */
	bool (*is_current)(const char *); /* a row that is not makes room in a full file */
};

/* The rows, the oldest first; none where the file is missing. -1 where it cannot be read or
 * others can write it. */
int kept_rows_load(const struct kept_rows *k, const char *state_dir, struct string_list *ret,
                   struct ssb_error *err);

/* Adds the rows that are not in the file. One that cannot be kept is lost: no run fails for it. */
void kept_rows_add(const struct kept_rows *k, const char *state_dir,
                   const struct string_list *rows);

#endif
