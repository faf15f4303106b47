/* db.h - one connection to the store of sessions, SQLite or PostgreSQL. Both get the same
 * SQL: common words only, BIGINT and TEXT, and parameters $1, $2, ... whose first
 * appearance is in this order. Both libraries are loaded on use.
 *
 * A statement must be a string literal: it is prepared once, and known by its address. No
 * value may ever be put into the text of a statement. */
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
	const char *s; /* NUL-terminated; borrowed; of a row: valid until the next row */
	size_t n;
};

#define DB_I(v)       ((struct db_value){ .type = DB_INT, .i = (int64_t)(v) })
#define DB_T(v)       ((struct db_value){ .type = DB_TEXT, .s = (v), .n = strlen(v) })
#define DB_TN(v, len) ((struct db_value){ .type = DB_TEXT, .s = (v), .n = (len) })
#define DB_ARGS(...)                                                                               \
	(const struct db_value[]){ __VA_ARGS__ },                                                  \
	        sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value)

/* Opens the store, and makes or migrates its tables (schema.c). SQLite: WAL, synchronous
 * FULL; the file must be 0600 in a directory that only the owner can write. A store of a
 * later version of this program is refused. `*ret` is new. */
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

/* Must be called within a transaction: until it ends, no other process changes the tree of
 * sessions with this root (the store's number). SQLite has locked the whole file already. */
int db_lock_tree(struct db *db, int64_t root, struct ssb_error *err);
/* The time of day in microseconds, by the one clock that all users of this store share: the
 * machine's, or the server's. After db_lock_tree(), until its transaction ends, it is the
 * time at which the lock was obtained. */
int db_time(struct db *db, int64_t *ret, struct ssb_error *err);

/* Runs one statement. `row` is called for each row; NULL ignores rows. A result other than
 * 0 ends the rows, and is not a failure. `row` may call db_run() itself. Booleans are 0 and
 * 1. PostgreSQL holds all rows in memory, so a caller must ask for long results in parts.
 * Texts must be UTF-8 without NUL and at most MAX_STORE_TEXT long: anything else fails. */
typedef int db_row_fn(void *arg, const struct db_value *v, size_t n);
int db_run(struct db *db, const char *sql, const struct db_value *args, size_t n_args,
           db_row_fn *row, void *arg, struct ssb_error *err);
/* How many rows the last statement changed. */
int64_t db_changes(const struct db *db);
/* A number that differs whenever any process has changed anything in the store, as of this
 * transaction, or of the last one outside of a transaction. 0: this store cannot say. */
uint64_t db_version(struct db *db);

/* Tells other machines, when the transaction is committed, that a session changed. SQLite:
 * does nothing. `session` must be the id of a session. */
int db_tell(struct db *db, const char *session, struct ssb_error *err);
/* As session_news_fd() and session_news(). The first call of db_news_fd() starts to listen,
 * and fails (-1) within a transaction. The fd stays the same when the connection is made
 * again. After db_news() returned -1 no news come until the connection is back; then the
 * first is a 1 with the id "": anything may have changed. */
int db_news_fd(struct db *db);
int db_news(struct db *db, char ret_session[SESSION_ID], struct ssb_error *err);

#endif
