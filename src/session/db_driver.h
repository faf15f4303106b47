/* db_driver.h - the functions that SQLite and PostgreSQL must each provide for db.h. */
#ifndef SESSION_DB_DRIVER_H
#define SESSION_DB_DRIVER_H

#include <limits.h>

#include "session/db.h"

#define DB_WHERE      "session store"
#define DB_WAIT_MS    10000 /* longest wait for a lock of another process */
#define DB_STATEMENTS 256   /* prepared statements that are kept; a power of two */
#define DB_MAX_ARGS   40    /* most parameters of one statement */
#define DB_MAX_COLS   40    /* most columns of one row */

struct db_word {
	const char *word; /* in SESSION_SCHEMA */
	const char *here; /* what replaces `word` for this store */
};

/* These may be NULL: lock, lock_schema, tell, news_fd and news (nothing to do); time (the store
 * uses this machine's clock); changed (unknown). */
struct db_driver {
	struct db_word words[3]; /* `word` is NULL after the last one */
	void (*close)(struct db *db);
	int (*begin)(struct db *db, struct ssb_error *err);
	/* Must roll back if it fails. */
	int (*commit)(struct db *db, struct ssb_error *err);
	void (*rollback)(struct db *db);
	/* Implements db_lock_tree(): until the transaction ends, no other process gets the lock
	 * of this root. */
	int (*lock)(struct db *db, int64_t root, struct ssb_error *err);
	/* Gets the lock of a transaction that makes or changes the tables. */
	int (*lock_schema)(struct db *db, struct ssb_error *err);
	/* Fills db->changes. */
	int (*run)(struct db *db, const char *sql, const struct db_value *args, size_t n_args,
	           db_row_fn *row, void *arg, struct ssb_error *err);
	/* Runs a statement once, without keeping it prepared. */
	int (*exec)(struct db *db, const char *sql, struct ssb_error *err);
	/* Sets *ret to 0 if the store has no tables yet. */
	int (*version)(struct db *db, int64_t *ret, struct ssb_error *err);
	int (*set_version)(struct db *db, int64_t version, struct ssb_error *err);
	/* As db_version(). */
	uint64_t (*changed)(struct db *db);
	int (*time)(struct db *db, int64_t *ret, struct ssb_error *err);
	int (*tell)(struct db *db, const char *session, struct ssb_error *err);
	int (*news_fd)(struct db *db);
	int (*news)(struct db *db, char ret_session[SESSION_ID], struct ssb_error *err);
};

/* Must be the first member of each store. */
struct db {
	const struct db_driver *driver;
	bool begun;  /* a transaction has begun */
	bool failed; /* one of its statements failed */
	int64_t changes;
};

/* A db_row_fn for rows with one number. Stores the number in the int64_t `arg` points to, which
 * stays untouched if the row has no number. */
int db_take_number(void *arg, const struct db_value *v, size_t n);
/* Makes or migrates the tables if needed. */
int db_migrate(struct db *db, struct ssb_error *err);

/* Prepared statements, found by the address of their text. Each driver has further arrays with
 * the same indices. */
struct db_cache {
	const char *sql[DB_STATEMENTS];
	size_t used;
};

/* Returns the index of `sql` in the cache, and adds `sql` (borrowed permanently) if it is not
 * there. Returns -1 if the cache is full. */
int db_cache_place(struct db_cache *c, const char *sql);

/* ---- db_sqlite_file.c: where the file of a store may be ---- */

/* Makes an empty file with mode 0600 if there is none. Refuses a file or directory that
 * another user could write, and a symlink in place of the file. `ret` is the path with the
 * symlinks of its directories resolved, because SQLite must follow none. *ret_queue is a
 * new fd of <path>-lock. */
int db_sqlite_place(const char *path, char ret[PATH_MAX], int *ret_queue, struct ssb_error *err);

#endif
