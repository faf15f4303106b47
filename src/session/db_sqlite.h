/* db_sqlite.h - where the file of a store may lie. */
#ifndef SESSION_DB_SQLITE_H
#define SESSION_DB_SQLITE_H

#include <limits.h>

#include "skillsandbox.h"

/* Makes the file, empty, where there is none, 0600; refuses a file or directory
 * that others could write, and a symlink in its place. `ret` is the path with the
 * symlinks of its directories resolved, for SQLite is to follow none. *ret_queue
 * is an fd of <path>-lock. */
int db_sqlite_place(const char *path, char ret[PATH_MAX], int *ret_queue, struct ssb_error *err);

#endif
