/* db.h - one connection to the store of sessions, SQLite or PostgreSQL. Both get the same
 * SQL: common words only, BIGINT and TEXT, and parameters $1, $2, ... whose first
 * appearance is in this order. Both libraries are loaded on use.
 *
 * A statement must be a string literal: it is prepared once, and later recognised by its
 * address. No value may ever be put into the text of a statement. */
#ifndef SESSION_DB_H
#define SESSION_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session/types.h"
#include "skillsandbox.h"

struct db;

enum db_type { DB_NULL, DB_INT, DB_TEXT };

struct db_value {
	enum db_type type;
	int64_t i;
	/* NUL-terminated and borrowed. In a row it is valid until the next row. */
	const char *s;
	size_t n;
};

#define DB_I(v)       ((struct db_value){ .type = DB_INT, .i = (int64_t)(v) })
#define DB_T(v)       ((struct db_value){ .type = DB_TEXT, .s = (v), .n = strlen(v) })
#define DB_TN(v, len) ((struct db_value){ .type = DB_TEXT, .s = (v), .n = (len) })
#define DB_ARGS(...)                                                                               \
	(const struct db_value[]){ __VA_ARGS__ },                                                  \
	        sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value)

/* Opens the store, and makes or migrates its tables (schema.c). SQLite uses WAL and synchronous
 * FULL; the file must have mode 0600 and be in a directory that only the owner can write. A store
 * that a later version of this program made is rejected. `*ret` is new. */
int db_open_sqlite(const char *path, struct db **ret, struct ssb_error *err);
int db_open_postgres(const char *url, struct db **ret, struct ssb_error *err);
void db_close(struct db *db); /* accepts NULL */

/* Begins and ends a transaction that writes. SQLite waits for the lock up to 10 s. When
 * db_commit() returns 0, the transaction is on the disk; otherwise none of it happened, and
 * the caller has nothing to undo. (If the connection breaks during the commit and the
 * server does not come back within 10 s, the error says that the result is unknown.) After
 * a failed statement the caller may only call db_rollback(), or db_commit(), which fails. A
 * lost connection is opened again by the next db_begin(), or by the next db_run() outside
 * of a transaction.
 *
 * For errors that are worth another try, sys_errno is EAGAIN (serialization, no connection
 * left), EDEADLK, ETIMEDOUT (a lock), ECONNRESET (lost) or ENOTCONN (not reachable). */
int db_begin(struct db *db, struct ssb_error *err);
int db_commit(struct db *db, struct ssb_error *err);
void db_rollback(struct db *db); /* does nothing without a transaction */

/* Must be called within a transaction. `root` is the number of a root session. Until the
 * transaction ends, no other process can change that session or its descendants. Does nothing for
 * SQLite, which has already locked the whole file. */
int db_lock_tree(struct db *db, int64_t root, struct ssb_error *err);
/* Returns the time of day in microseconds, from the one clock that all users of this store share:
 * that of the machine (SQLite) or of the server. After db_lock_tree(), and until its transaction
 * ends, this is the time at which the lock was obtained. */
int db_time(struct db *db, int64_t *ret, struct ssb_error *err);

/* Runs one statement. `row` is called for each row; NULL ignores rows. If `row` returns another
 * value than 0, it is not called again, and this is not a failure. `row` may call db_run() itself.
 * Booleans are 0 and 1. PostgreSQL keeps all rows in memory, so a caller must ask for long results
 * in parts. Texts must be UTF-8 without NUL and at most MAX_STORE_TEXT long; other texts make the
 * call fail. */
typedef int db_row_fn(void *arg, const struct db_value *v, size_t n);
int db_run(struct db *db, const char *sql, const struct db_value *args, size_t n_args,
           db_row_fn *row, void *arg, struct ssb_error *err);
/* Returns the number of rows that the last statement changed. */
int64_t db_changes(const struct db *db);
/* Returns a number that changes whenever any process changes the store, or 0 if this store cannot
 * tell. The number stands for the store as the current transaction sees it or, outside of a
 * transaction, as the last one saw it. */
uint64_t db_version(struct db *db);

/* Tells other machines that a session changed, when the transaction is committed. Does nothing for
 * SQLite. `session` must be the id of a session. */
int db_tell(struct db *db, const char *session, struct ssb_error *err);
/* Like session_news_fd() and session_news(). The first call of db_news_fd() starts to listen, and
 * fails (-1) within a transaction. The fd stays the same when the connection is made again. After
 * db_news() returned -1, there are no news until the connection is back. Then db_news() first
 * returns 1 with the id "": anything may have changed. */
int db_news_fd(struct db *db);
int db_news(struct db *db, char ret_session[SESSION_ID], struct ssb_error *err);

#endif
