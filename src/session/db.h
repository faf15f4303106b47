/* db.h - one connection to the store of sessions, whichever it is: SQLite or
 * PostgreSQL. The same SQL goes to both: common words only, BIGINT and TEXT,
 * parameters $1, $2, ... that first appear in this order. Both libraries are
 * loaded on use.
 *
 * A statement is a string literal: it is prepared once, and known by its
 * address. Nothing is ever put into the text of a statement. */
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
	const char *s; /* NUL-terminated as well; borrowed: of a row, until the next one */
	size_t n;
};

#define DB_I(v)       ((struct db_value){ .type = DB_INT, .i = (int64_t)(v) })
#define DB_T(v)       ((struct db_value){ .type = DB_TEXT, .s = (v), .n = strlen(v) })
#define DB_TN(v, len) ((struct db_value){ .type = DB_TEXT, .s = (v), .n = (len) })
#define DB_ARGS(...)                                                                               \
	(const struct db_value[]){ __VA_ARGS__ },                                                  \
	        sizeof((const struct db_value[]){ __VA_ARGS__ }) / sizeof(struct db_value)

/* Opens, makes or migrates the tables (schema.c), and is ready. SQLite: WAL,
 * synchronous FULL, the file 0600 in a directory that only the owner can write. A
 * store of a later version of ours is refused. `*ret` is new. */
int db_open_sqlite(const char *path, struct db **ret, struct ssb_error *err);
int db_open_postgres(const char *url, struct db **ret, struct ssb_error *err);
void db_close(struct db *db); /* accepts NULL */

/* A transaction that writes. SQLite: waits for the lock up to 10 s. When
 * db_commit() returns 0 it is on the disk; otherwise nothing of it happened, and
 * the caller has nothing to undo. (A commit during which the connection broke, of a
 * server that does not come back within 10 s, is said to be unknown.) After a
 * statement that failed there is only db_rollback(), or a db_commit() that fails. A
 * connection that was lost is opened again by the next db_begin(), or the next
 * db_run() outside of a transaction.
 *
 * Of errors that are worth another try, sys_errno is EAGAIN (serialization, no
 * connection left), EDEADLK, ETIMEDOUT (a lock), ECONNRESET (lost)
 * or ENOTCONN (not to be reached). */
int db_begin(struct db *db, struct ssb_error *err);
int db_commit(struct db *db, struct ssb_error *err);
void db_rollback(struct db *db); /* no transaction: nothing */

/* Within a transaction: nobody else changes the tree of sessions with this root
 * (the store's number) before it ends. SQLite has the whole file already. */
int db_lock_tree(struct db *db, int64_t root, struct ssb_error *err);
/* The time of day in microseconds, by the one clock of all that use this store: the
 * machine's, or the server's. After db_lock_tree(), and until its transaction ends:
 * when the lock was had. */
int db_time(struct db *db, int64_t *ret, struct ssb_error *err);

/* `row` (NULL: rows are not wanted) is called for each; not 0 ends it, and is no
 * failure. It may call db_run() in turn. Truths are 0 and 1. PostgreSQL has all
 * rows in memory: what can be many is to be asked for in parts. Texts are UTF-8
 * without NUL, at most MAX_STORE_TEXT: anything else fails. */
typedef int db_row_fn(void *arg, const struct db_value *v, size_t n);
int db_run(struct db *db, const char *sql, const struct db_value *args, size_t n_args,
           db_row_fn *row, void *arg, struct ssb_error *err);
/* How many rows the last statement changed. */
int64_t db_changes(const struct db *db);
/* Another number whenever anything in the store was changed, by whomever: as of the
 * transaction, or of the last one where none is. 0: that is not known here. */
uint64_t db_version(struct db *db);

/* Tells other machines, when the transaction is committed, that a session
 * changed. SQLite: nothing. */
int db_tell(struct db *db, const char *session, struct ssb_error *err);
/* As session_news_fd(), session_news(). The first call of db_news_fd() begins to
 * listen, outside of a transaction; the fd stays the same also when the connection
 * is made anew. After a -1 of db_news() nothing comes until then; first of all there
 * is a 1 with the id "": anything may have changed. */
int db_news_fd(struct db *db);
int db_news(struct db *db, char ret_session[SESSION_ID], struct ssb_error *err);

#endif
