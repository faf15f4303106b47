/* db_sqlite.c - the store of one machine: a SQLite file in WAL mode.
 *
 * A commit appends its changed pages to the log (WAL) and syncs the log once. Each command is a
 * process, so the log is neither copied back nor removed when a process ends. It is copied back
 * when it has grown to CHECKPOINT_PAGES. From then on it is overwritten in place, which is even
 * cheaper because its size no longer changes.
 *
 * One process writes at a time. The others queue for the lock of a separate file. If a waiting
 * process asked SQLite instead, it would be a reader for a moment each time. Readers prevent
 * the log from being overwritten, so the log would grow without end. The longer a process has
 * waited, the more often it asks for the lock: those that have waited longest are served
 * first, and none starves. Only SQLite's own lock protects the file; the queue only sets the
 * order. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/own.h"
#include "os/clock.h"
#include "os/sqlite.h"
#include "session/db_driver.h"

#define APPLICATION_ID   0x53534273 /* "SSBs", in the file's header */
#define PAGE_BYTES       "2048"
#define CHECKPOINT_PAGES "1000"

struct sqlite_db {
	struct db db;
	const struct sqlite *sql;
	sqlite3 *handle;
	char path[PATH_MAX];
	int queue;         /* fd of <path>-lock, which a process locks before it writes */
	bool turn;         /* this process has the lock of `queue` */
	uint64_t asked_us; /* when this process began to wait for a lock */
	struct db_cache cache;
	sqlite3_stmt *statements[DB_STATEMENTS];
	bool busy[DB_STATEMENTS]; /* the rows of the statement are being read now */
};

/* `db` is the first member of struct sqlite_db, so both have the same address. */
static struct sqlite_db *sqlite_of(struct db *db)
{
	return (struct sqlite_db *)(void *)db;
}

/* ---- errors ------------------------------------------------------------- */

static const struct {
	int code; /* SQLite's primary code */
	int sys_errno;
	const char *text;
} ERRORS[] = {
	{ SQLITE_BUSY, ETIMEDOUT, "other processes have kept the store locked for 10 s" },
	{ SQLITE_LOCKED, ETIMEDOUT, "the store is locked" },
	{ SQLITE_FULL, ENOSPC, "the store cannot grow; make room on its file system" },
	{ SQLITE_READONLY, EROFS, "the store cannot be written" },
	{ SQLITE_CORRUPT, EIO,
	  "the store is damaged; move it and its -wal and -shm files away, or restore them" },
	{ SQLITE_NOTADB, 0, "this file is not a store of sessions; move it away" },
	{ SQLITE_CANTOPEN, EACCES, "the store cannot be opened" },
	{ SQLITE_PERM, EACCES, "the store cannot be opened" },
	{ SQLITE_IOERR, EIO, "the store cannot be read or written" },
	{ SQLITE_NOMEM, ENOMEM, "out of memory" },
};

static int sqlite_fail(const struct sqlite_db *s, int rc, struct ssb_error *err)
{
	/* If the file system is full when SQLite enlarges the shared index (-shm), SQLite returns
	 * one of these codes instead of SQLITE_FULL. */
	bool shm_full = rc == SQLITE_IOERR_SHMSIZE || rc == SQLITE_IOERR_SHMOPEN;
	int code = shm_full && errno == ENOSPC ? SQLITE_FULL : rc & 0xff;

	for (size_t i = 0; i < ARRAY_LEN(ERRORS); i++) {
		if (ERRORS[i].code == code) {
			return ssb_fail(err, SSB_E_SYS, ERRORS[i].sys_errno, DB_WHERE, "%s: '%s'",
			                ERRORS[i].text, s->path);
		}
	}
	return ssb_fail(err, SSB_E_SYS, 0, DB_WHERE, "%s",
	                s->handle != NULL ? s->sql->errmsg(s->handle) : "out of memory");
}

static int sqlite_exec(struct db *db, const char *sql, struct ssb_error *err)
{
	struct sqlite_db *s = sqlite_of(db);

	if (s->sql->exec(s->handle, sql, NULL, NULL, NULL) != SQLITE_OK) {
		return sqlite_fail(s, s->sql->extended_errcode(s->handle), err);
	}
	return 0;
}

/* ---- statements --------------------------------------------------------- */

/* SQLite treats "$1" as a name, and numbers names by their first appearance. So "$1" has number 1
 * only if the statement follows the rule of db.h. */
static bool keeps_to_the_rule(const struct sqlite_db *s, sqlite3_stmt *st)
{
	int n = s->sql->bind_parameter_count(st);
	char name[16];

	for (int at = 1; at <= n; at++) {
		const char *here = s->sql->bind_parameter_name(st, at);
		snprintf(name, sizeof(name), "$%d", at);
		if (here == NULL || strcmp(here, name) != 0) {
			return false;
		}
	}
	return true;
}

static int bad_parameters(struct ssb_error *err)
{
	return ssb_fail(err, SSB_E_USAGE, 0, DB_WHERE,
	                "a statement has parameters other than $1, $2, ... in this order, or not "
	                "as many as are given");
}

static int prepare_statement(struct sqlite_db *s, const char *sql, unsigned flags,
                             sqlite3_stmt **ret, struct ssb_error *err)
{
	sqlite3_stmt *st = NULL;

	if (s->sql->prepare_v3(s->handle, sql, -1, flags, &st, NULL) != SQLITE_OK) {
		return sqlite_fail(s, s->sql->extended_errcode(s->handle), err);
	}
	if (!keeps_to_the_rule(s, st)) {
		(void)s->sql->finalize(st);
		return bad_parameters(err);
	}
	*ret = st;
	return 0;
}

/* Returns a statement that is not in use: the cached one, or a new one (*ret_place < 0), which must
 * be finalized. */
static int take_statement(struct sqlite_db *s, const char *sql, sqlite3_stmt **ret, int *ret_place,
                          struct ssb_error *err)
{
	int place = db_cache_place(&s->cache, sql);

	if (place >= 0 && s->busy[place]) {
		place = -1;
	}
	sqlite3_stmt *st = place >= 0 ? s->statements[place] : NULL;
	if (st == NULL &&
	    prepare_statement(s, sql, place >= 0 ? SQLITE_PREPARE_PERSISTENT : 0, &st, err) != 0) {
		return -1;
	}
	if (place >= 0) {
		s->statements[place] = st;
		s->busy[place] = true;
	}
	*ret = st;
	*ret_place = place;
	return 0;
}

static void give_statement(struct sqlite_db *s, sqlite3_stmt *st, int place)
{
	if (place < 0) {
		(void)s->sql->finalize(st);
		return;
	}
	/* reset() returns a failure of sqlite3_step() again, which is already reported. */
	(void)s->sql->reset(st);
	(void)s->sql->clear_bindings(st);
	s->busy[place] = false;
}

static int bind_values(struct sqlite_db *s, sqlite3_stmt *st, const struct db_value *args, size_t n,
                       struct ssb_error *err)
{
	int bad = s->sql->bind_parameter_count(st) == (int)n ? SQLITE_OK : SQLITE_RANGE;

	for (size_t i = 0; i < n && bad == SQLITE_OK; i++) {
		const struct db_value *v = &args[i];
		int at = (int)i + 1;
		bad = v->type == DB_INT ? s->sql->bind_int64(st, at, v->i)
		      : v->type == DB_TEXT
		              ? s->sql->bind_text(st, at, v->s, (int)v->n, SQLITE_STATIC)
		              : s->sql->bind_null(st, at);
	}
	return bad == SQLITE_RANGE ? bad_parameters(err)
	       : bad != SQLITE_OK  ? sqlite_fail(s, bad, err)
	                           : 0;
}

static int read_row(struct sqlite_db *s, sqlite3_stmt *st, struct db_value *v, size_t n,
                    struct ssb_error *err)
{
	for (size_t i = 0; i < n; i++) {
		int type = s->sql->column_type(st, (int)i);
		v[i] = (struct db_value){ .type = DB_NULL };
		if (type == SQLITE_INTEGER) {
			v[i].type = DB_INT;
			v[i].i = s->sql->column_int64(st, (int)i);
		} else if (type == SQLITE_TEXT) {
			v[i].type = DB_TEXT;
			v[i].s = (const char *)s->sql->column_text(st, (int)i);
			v[i].n = (size_t)s->sql->column_bytes(st, (int)i);
			if (v[i].s == NULL) {
				return sqlite_fail(s, SQLITE_NOMEM, err);
			}
		} else if (type != SQLITE_NULL) {
			return ssb_fail(err, SSB_E_SYS, 0, DB_WHERE,
			                "a value in the store is neither a number nor a text");
		}
	}
	return 0;
}

/* A statement that writes is executed to its end even if no more rows are wanted. */
static int step_all(struct sqlite_db *s, sqlite3_stmt *st, db_row_fn *row, void *arg,
                    struct ssb_error *err)
{
	struct db_value v[DB_MAX_COLS];
	size_t n = (size_t)s->sql->column_count(st);
	bool more = row != NULL;
	int rc = 0;

	if (n > DB_MAX_COLS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, DB_WHERE,
		                "a row has %zu columns, more than the limit", n);
	}
	while ((rc = s->sql->step(st)) == SQLITE_ROW) {
		if (more && read_row(s, st, v, n, err) != 0) {
			return -1;
		}
		more = more && row(arg, v, n) == 0;
		if (!more && s->sql->stmt_readonly(st) != 0) {
			return 0;
		}
	}
	return rc == SQLITE_DONE ? 0 : sqlite_fail(s, s->sql->extended_errcode(s->handle), err);
}

static int sqlite_run(struct db *db, const char *sql, const struct db_value *args, size_t n_args,
                      db_row_fn *row, void *arg, struct ssb_error *err)
{
	struct sqlite_db *s = sqlite_of(db);
	sqlite3_stmt *st = NULL;
	int place = -1;

	if (take_statement(s, sql, &st, &place, err) != 0) {
		return -1;
	}
	int before = s->sql->total_changes(s->handle);
	int rc = bind_values(s, st, args, n_args, err);
	if (rc == 0) {
		rc = step_all(s, st, row, arg, err);
	}
	give_statement(s, st, place);
	db->changes = s->sql->total_changes(s->handle) - before;
	return rc;
}

/* ---- transactions ------------------------------------------------------- */

/* Called each time a lock of another process prevents progress. Returns 0 to give up. */
static int wait_for_lock(void *arg, int count)
{
	struct sqlite_db *s = arg;
	uint64_t now = clock_us();

	s->asked_us = count == 0 && !s->turn ? now : s->asked_us;
	uint64_t waited = now - s->asked_us;
	if (waited >= DB_WAIT_MS * 1000ULL) {
		return 0;
	}
	/* The wait is 1 ms at first and becomes shorter, down to 0.1 ms. The low bits of the clock
	 * make processes that began together try at different times. */
	uint64_t us = 100 + 900 * 100000 / (100000 + waited);
	us = us / 2 + now % us;
	struct timespec t = { .tv_nsec = (long)us * 1000 };
	(void)nanosleep(&t, NULL);
	return 1;
}

/* An fcntl() lock belongs to the process, not to the fd: a child that survives this process does
 * not keep the lock. */
static int queue_lock(const struct sqlite_db *s, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(s->queue, F_SETLK, &l);
}

static void end_turn(struct sqlite_db *s)
{
	if (s->turn) {
		(void)queue_lock(s, F_UNLCK);
		s->turn = false;
	}
}

static int wait_for_turn(struct sqlite_db *s, struct ssb_error *err)
{
	s->asked_us = clock_us();
	for (int count = 0; queue_lock(s, F_WRLCK) < 0; count++) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
			return ssb_fail(err, SSB_E_SYS, errno, DB_WHERE, "lock '%s-lock'", s->path);
		}
		if (wait_for_lock(s, count) == 0) {
			return sqlite_fail(s, SQLITE_BUSY, err);
		}
	}
	s->turn = true;
	return 0;
}

static int sqlite_begin(struct db *db, struct ssb_error *err)
{
	struct sqlite_db *s = sqlite_of(db);

	if (wait_for_turn(s, err) != 0) {
		return -1;
	}
	if (sqlite_run(db, "BEGIN IMMEDIATE", NULL, 0, NULL, NULL, err) != 0) {
		end_turn(s);
		return -1;
	}
	return 0;
}

static void sqlite_rollback(struct db *db)
{
	struct sqlite_db *s = sqlite_of(db);

	/* After some errors SQLite has already rolled back by itself. */
	if (s->sql->get_autocommit(s->handle) == 0) {
		(void)s->sql->exec(s->handle, "ROLLBACK", NULL, NULL, NULL);
	}
	end_turn(s);
}

static int sqlite_commit(struct db *db, struct ssb_error *err)
{
	struct sqlite_db *s = sqlite_of(db);

	int rc = s->sql->get_autocommit(s->handle) != 0
	                 ? ssb_fail(err, SSB_E_SYS, 0, DB_WHERE, "the transaction was undone")
	                 : sqlite_run(db, "COMMIT", NULL, 0, NULL, NULL, err);
	if (rc != 0) {
		sqlite_rollback(db);
	}
	end_turn(s);
	return rc;
}

/* Combines SQLite's data version, by which SQLite knows whether its cached pages are still valid,
 * with the number of this connection's own changes. */
static uint64_t sqlite_changed(struct db *db)
{
	struct sqlite_db *s = sqlite_of(db);
	unsigned others = 0;

	if (s->sql->file_control(s->handle, NULL, SQLITE_FCNTL_DATA_VERSION, &others) !=
	    SQLITE_OK) {
		return 0;
	}
	return (uint64_t)others << 32 | (unsigned)s->sql->total_changes(s->handle);
}

/* ---- version ------------------------------------------------------------ */

static int sqlite_version(struct db *db, int64_t *ret, struct ssb_error *err)
{
	return sqlite_run(db, "PRAGMA user_version", NULL, 0, db_take_number, ret, err);
}

static int sqlite_set_version(struct db *db, int64_t version, struct ssb_error *err)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %lld",
	         APPLICATION_ID, (long long)version);
	return sqlite_exec(db, sql, err);
}

static int take_header(void *arg, const struct db_value *v, size_t n)
{
	for (size_t i = 0; i < n && i < 3; i++) {
		((int64_t *)arg)[i] = v[i].type == DB_INT ? v[i].i : -1;
	}
	return 1;
}

/* Accepts only an empty file or a store of this program (APPLICATION_ID), so that another
 * program's file is not changed. Reads everything in one statement, because another process may
 * be making the tables now. */
static int check_ours(struct sqlite_db *s, struct ssb_error *err)
{
	int64_t v[3] = { -1, -1, -1 };

	if (sqlite_run(&s->db,
	               "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
	               " FROM pragma_application_id, pragma_user_version",
	               NULL, 0, take_header, v, err) != 0) {
		return -1;
	}
	if (v[0] == APPLICATION_ID || (v[0] == 0 && v[1] == 0 && v[2] == 0)) {
		return 0;
	}
	return sqlite_fail(s, SQLITE_NOTADB, err);
}

/* ---- opening ------------------------------------------------------------ */

/* Processes that open a new file at the same time all try to change its journal mode. SQLite does
 * not call the busy handler for this change, so the wait is done here. */
static int enter_wal(struct sqlite_db *s, struct ssb_error *err)
{
	for (int count = 0;; count++) {
		int rc = s->sql->exec(s->handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
		if (rc == SQLITE_OK) {
			return 0;
		}
		if (rc != SQLITE_BUSY || wait_for_lock(s, count) == 0) {
			return sqlite_fail(s, s->sql->extended_errcode(s->handle), err);
		}
	}
}

static int attach_file(struct sqlite_db *s, struct ssb_error *err)
{
	static const struct {
		int what;
		int on;
	} CONFIG[] = {
		{ SQLITE_DBCONFIG_DEFENSIVE, 1 },        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
		{ SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1 }, { SQLITE_DBCONFIG_DQS_DML, 0 },
		{ SQLITE_DBCONFIG_DQS_DDL, 0 },
	};
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX;
	int rc = s->sql->open_v2(s->path, &s->handle, flags, NULL);
	int keep = 1;

	if (rc != SQLITE_OK) {
		return sqlite_fail(s, rc, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(CONFIG); i++) {
		(void)s->sql->db_config(s->handle, CONFIG[i].what, CONFIG[i].on, NULL);
	}
	(void)s->sql->busy_handler(s->handle, wait_for_lock, s);
	(void)s->sql->file_control(s->handle, NULL, SQLITE_FCNTL_PERSIST_WAL, &keep);
	/* page_size has an effect only on a new file. Small pages are cheaper: a transaction
	 * changes little in each of a few pages, and each page is written, checksummed and
	 * synced as a whole. */
	if (check_ours(s, err) != 0 ||
	    sqlite_exec(&s->db, "PRAGMA page_size = " PAGE_BYTES, err) != 0 ||
	    enter_wal(s, err) != 0) {
		return -1;
	}
	return sqlite_exec(&s->db,
	                   "PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON;"
	                   "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = OFF;"
	                   "PRAGMA wal_autocheckpoint = " CHECKPOINT_PAGES,
	                   err);
}

static void sqlite_close(struct db *db)
{
	struct sqlite_db *s = sqlite_of(db);

	for (size_t i = 0; i < DB_STATEMENTS; i++) {
		(void)s->sql->finalize(s->statements[i]);
	}
	(void)s->sql->close_v2(s->handle);
	own_close(&s->queue);
	free(s);
}

/* SQLite needs no locks and no news: a transaction locks the whole file, and there is only one
 * machine. */
static const struct db_driver SQLITE_DRIVER = {
	.words = { { "SERIAL", "INTEGER PRIMARY KEY" } },
	.close = sqlite_close,
	.begin = sqlite_begin,
	.commit = sqlite_commit,
	.rollback = sqlite_rollback,
	.run = sqlite_run,
	.exec = sqlite_exec,
	.changed = sqlite_changed,
	.version = sqlite_version,
	.set_version = sqlite_set_version,
};

int db_open_sqlite(const char *path, struct db **ret, struct ssb_error *err)
{
	struct sqlite_db *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		return ssb_fail(err, SSB_E_NOMEM, 0, DB_WHERE, "out of memory");
	}
	s->db.driver = &SQLITE_DRIVER;
	s->queue = -1;
	if (sqlite_load(DB_WHERE, &s->sql, err) != 0) {
		free(s);
		return -1;
	}
	if (db_sqlite_place(path, s->path, &s->queue, err) != 0 || attach_file(s, err) != 0 ||
	    db_migrate(&s->db, err) != 0) {
		db_close(&s->db);
		return -1;
	}
	*ret = &s->db;
	return 0;
}
