/* db_driver.h - what a store has to do beneath db.h. */
#ifndef SESSION_DB_DRIVER_H
#define SESSION_DB_DRIVER_H

#include <limits.h>

#include "session/db.h"

#define DB_WHERE      "session store"
#define DB_WAIT_MS    10000 /* for a lock that others hold */
#define DB_STATEMENTS 256   /* prepared ones that are kept; a power of two */
#define DB_MAX_ARGS   40    /* of one statement */
#define DB_MAX_COLS   40    /* of one row */

struct db_word {
	const char *word; /* in SESSION_SCHEMA */
	const char *here; /* what this store says */
};

/* A NULL of lock, lock_schema, tell, news_fd, news: there is nothing to do; of time:
 * this machine's clock is the store's; of changed: that is not known. */
struct db_driver {
	struct db_word words[3]; /* until a NULL */
	void (*close)(struct db *db);
	int (*begin)(struct db *db, struct ssb_error *err);
	/* Also rolls back where it fails. */
	int (*commit)(struct db *db, struct ssb_error *err);
	void (*rollback)(struct db *db);
	/* Nobody else with the same number has it, until the transaction ends. */
	int (*lock)(struct db *db, int64_t root, struct ssb_error *err);
	/* For a transaction that makes or changes the tables. */
	int (*lock_schema)(struct db *db, struct ssb_error *err);
	/* Fills db->changes. */
	int (*run)(struct db *db, const char *sql, const struct db_value *args, size_t n_args,
	           db_row_fn *row, void *arg, struct ssb_error *err);
	/* Once: nothing is kept of it. */
	int (*exec)(struct db *db, const char *sql, struct ssb_error *err);
	/* 0: a store without tables. */
	int (*version)(struct db *db, int64_t *ret, struct ssb_error *err);
	int (*set_version)(struct db *db, int64_t version, struct ssb_error *err);
	/* As db_version(). */
	uint64_t (*changed)(struct db *db);
	int (*time)(struct db *db, int64_t *ret, struct ssb_error *err);
	int (*tell)(struct db *db, const char *session, struct ssb_error *err);
	int (*news_fd)(struct db *db);
	int (*news)(struct db *db, char ret_session[SESSION_ID], struct ssb_error *err);
};

/* The first member of each store. */
struct db {
	const struct db_driver *driver;
	bool begun;  /* a transaction is */
	bool failed; /* and a statement of it failed */
	int64_t changes;
};

/* A db_row_fn: the one number of a row into the int64_t `arg`, which is untouched where
 * there is none. */
int db_take_number(void *arg, const struct db_value *v, size_t n);
/* Makes or migrates the tables where that is due. */
int db_migrate(struct db *db, struct ssb_error *err);

/* Statements by their address. A driver has arrays of its own beside it. */
struct db_cache {
	const char *sql[DB_STATEMENTS];
	size_t used;
};

/* The place of `sql`, which is its own from now on; -1: there is none left. */
int db_cache_place(struct db_cache *c, const char *sql);

/* ---- db_sqlite_file.c: where the file of a store may lie ---- */

/* Makes the file, empty, where there is none, 0600; refuses a file or directory
 * that others could write, and a symlink in its place. `ret` is the path with the
 * symlinks of its directories resolved, for SQLite is to follow none. *ret_queue
 * is an fd of <path>-lock. */
int db_sqlite_place(const char *path, char ret[PATH_MAX], int *ret_queue, struct ssb_error *err);

#endif
