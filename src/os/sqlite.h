/* sqlite.h - SQLite, loaded at its first use, because most commands never need it. */
#ifndef OS_SQLITE_H
#define OS_SQLITE_H

#include <sqlite3.h> /* for types and constants only; nothing is linked */

#include "skillsandbox.h"

/* The functions of SQLite that this program uses, without their prefix sqlite3_. */
#define SQLITE_CALLS(X)                                                                            \
	X(open_v2)                                                                                 \
	X(close_v2)                                                                                \
	X(exec)                                                                                    \
	X(prepare_v2)                                                                              \
	X(prepare_v3)                                                                              \
	X(step)                                                                                    \
	X(reset)                                                                                   \
	X(finalize)                                                                                \
	X(clear_bindings)                                                                          \
	X(bind_text)                                                                               \
	X(bind_int64)                                                                              \
	X(bind_null)                                                                               \
	X(bind_parameter_count)                                                                    \
	X(bind_parameter_name)                                                                     \
	X(column_count)                                                                            \
	X(column_type)                                                                             \
	X(column_text)                                                                             \
	X(column_bytes)                                                                            \
	X(column_int64)                                                                            \
	X(stmt_readonly)                                                                           \
	X(total_changes)                                                                           \
	X(get_autocommit)                                                                          \
	X(errmsg)                                                                                  \
	X(extended_errcode)                                                                        \
	X(busy_timeout)                                                                            \
	X(busy_handler)                                                                            \
	X(db_config)                                                                               \
	X(file_control)

struct sqlite {
#define SQLITE_CALL(name) __typeof__(sqlite3_##name) *(name);
	SQLITE_CALLS(SQLITE_CALL)
#undef SQLITE_CALL
};

/* Loads the library, if necessary. *ret is borrowed and stays valid. If there is no SQLite, fails
 * with SSB_E_NOT_FOUND and names the package to install; `where` is for the error. */
int sqlite_load(const char *where, const struct sqlite **ret, struct ssb_error *err);

#endif
