/* index.c - keeps the table of runs in SQLite. */
#include "trace/index.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/own.h"
#include "os/file.h"
#include "os/sqlite.h"

#define INDEX_VERSION 2 /* version of the table's layout; index_attach() stores it in the file */
#define LOCK_WAIT_MS  5000

struct index {
	const struct sqlite *sql;
	sqlite3 *db;
	char path[PATH_MAX];
	char journal[PATH_MAX];
};

static const char SCHEMA[] =
        "PRAGMA trusted_schema = OFF; PRAGMA synchronous = OFF;"
        "CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, started TEXT NOT NULL,"
        " skill TEXT NOT NULL, version TEXT NOT NULL, state INTEGER NOT NULL, ending TEXT NOT NULL,"
        " exit_code INTEGER, duration_us INTEGER, events INTEGER, violations INTEGER,"
        " severity INTEGER, size INTEGER NOT NULL, changed INTEGER NOT NULL) WITHOUT ROWID;"
        "CREATE INDEX IF NOT EXISTS by_start ON runs (started);";

static void index_done(struct index *x)
{
	if (x->db != NULL) {
		(void)x->sql->close_v2(x->db);
	}
	x->db = NULL;
}

/* Returns -1 if the statement fails; sqlite3_errmsg() has the reason. */
static int index_run(struct index *x, const char *sql)
{
	return x->sql->exec(x->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

static int64_t index_number(struct index *x, const char *sql)
{
	sqlite3_stmt *st = NULL;
	int64_t v = -1;

	if (x->sql->prepare_v2(x->db, sql, -1, &st, NULL) == SQLITE_OK &&
	    x->sql->step(st) == SQLITE_ROW) {
		v = x->sql->column_int64(st, 0);
	}
	(void)x->sql->finalize(st);
	return v;
}

static int index_attach(struct index *x, const char *path)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW;

	struct stat st;

	index_done(x);
	/* Opening a FIFO at this path could wait forever. */
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		return -1;
	}
	if (x->sql->open_v2(path, &x->db, flags, NULL) != SQLITE_OK) {
		return -1;
	}
	(void)x->sql->busy_timeout(x->db, 5000);
	int64_t version = index_number(x, "PRAGMA user_version");
	if (version == 0 && index_run(x, "PRAGMA user_version = 2") == 0) {
		version = INDEX_VERSION;
	}
	return version == INDEX_VERSION ? index_run(x, SCHEMA) : -1;
}

/* Opens the existing file or, if that fails, makes a new one. The caller must hold the lock. SQLite
 * finds the journal of a file by its name, so no other process may have the old file open while a
 * new one replaces it. */
static int index_open(struct index *x, bool rebuild)
{
	mode_t mask = umask(077);
	int rc = rebuild ? -1 : index_attach(x, x->path);

	if (rc != 0) {
		index_done(x);
		(void)unlink(x->journal);
		(void)unlink(x->path);
		rc = index_attach(x, x->path);
	}
	(void)umask(mask);
	return rc;
}

static int index_drop(struct index *x, const char *id)
{
	sqlite3_stmt *st = NULL;
	int rc = x->sql->prepare_v2(x->db, "DELETE FROM runs WHERE id = ?", -1, &st, NULL);

	rc = rc == SQLITE_OK ? x->sql->bind_text(st, 1, id, -1, SQLITE_TRANSIENT) : rc;
	rc = rc == SQLITE_OK ? x->sql->step(st) : rc;
	(void)x->sql->finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
}

static int64_t changed_ns(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

/* Returns whether the row is still correct. The row of an ended run is always correct, because its
 * record does not change. The row of an incomplete record is correct as long as the file is
 * unchanged, so that the whole record need not be read again. The row of a live run is never
 * correct. */
static bool index_holds(struct index *x, sqlite3_stmt *st, const struct runs *runs,
                        const struct run_entry *e)
{
	int64_t state = x->sql->column_int64(st, 1);
	struct stat now;

	if (state != RUN_INCOMPLETE) {
		return state == RUN_ENDED;
	}
	auto_fd fd = runs_record(runs, e);
	return fd >= 0 && fstat(fd, &now) == 0 && now.st_size == x->sql->column_int64(st, 2) &&
	       changed_ns(&now) == x->sql->column_int64(st, 3);
}

/* Compares the table with the directory, both ordered by id. Drops rows without a run, and sets
 * known[i] if run i need not be read again. */
static int index_known(struct index *x, const struct runs *runs, bool *known)
{
	sqlite3_stmt *st = NULL;
	size_t at = 0;
	int rc = x->sql->prepare_v2(x->db, "SELECT id, state, size, changed FROM runs ORDER BY id",
	                            -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = x->sql->step(st)) == SQLITE_ROW) {
		const char *id = (const char *)x->sql->column_text(st, 0);
		if (id == NULL) {
			break;
		}
		rc = SQLITE_OK;
		while (at < runs->n && strcmp(runs->v[at].id, id) < 0) {
			at++;
		}
		if (at < runs->n && strcmp(runs->v[at].id, id) == 0) {
			known[at] = index_holds(x, st, runs, &runs->v[at]);
		} else {
			rc = index_drop(x, id);
		}
	}
	(void)x->sql->finalize(st);
	return rc == SQLITE_DONE ? 0 : -1;
}

static int index_put(struct index *x, sqlite3_stmt *st, const struct run_facts *f,
                     const struct stat *file)
{
	const char *const texts[] = { f->id, f->started, f->skill, f->version, f->end };
	const int64_t numbers[] = { f->state,      f->exit_code, f->duration_us, f->events,
		                    f->violations, f->severity,  file->st_size,  changed_ns(file) };
	int bad = 0;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		bad |= x->sql->bind_text(st, (int)i + 1, texts[i], -1, SQLITE_STATIC);
	}
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		bad |= x->sql->bind_int64(st, (int)(ARRAY_LEN(texts) + i) + 1, numbers[i]);
	}
	bad |= x->sql->step(st) != SQLITE_DONE;
	bad |= x->sql->reset(st);
	return bad != 0 ? -1 : 0;
}

static int index_fill(struct index *x, const struct runs *runs, const bool *known)
{
	sqlite3_stmt *st = NULL;
	int rc = x->sql->prepare_v2(
	        x->db,
	        "INSERT OR REPLACE INTO runs (id, started, skill, version, ending, state,"
	        " exit_code, duration_us, events, violations, severity, size, changed)"
	        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
	        -1, &st, NULL);

	for (size_t i = 0; rc == SQLITE_OK && i < runs->n; i++) {
		struct run_facts f;
		struct stat file;
		auto_fd fd = known[i] ? -1 : runs_record(runs, &runs->v[i]);
		/* fstat() must come first: bytes that are written while we read must count as a
		 * change at the next call. */
		if (fd >= 0 && fstat(fd, &file) == 0 &&
		    run_facts_read(&f, fd, runs->v[i].id) == 0) {
			rc = index_put(x, st, &f, &file);
		}
	}
	(void)x->sql->finalize(st);
	return rc == SQLITE_OK ? 0 : -1;
}

static int index_update(struct index *x, const struct runs *runs)
{
	auto_free bool *known = calloc(runs->n + 1, sizeof(*known));

	if (known == NULL || index_run(x, "BEGIN IMMEDIATE") != 0) {
		return -1;
	}
	if (index_known(x, runs, known) != 0 || index_fill(x, runs, known) != 0) {
		(void)index_run(x, "ROLLBACK");
		return -1;
	}
	return index_run(x, "COMMIT");
}

static void copy_column(struct index *x, sqlite3_stmt *st, int column, char *out, size_t size)
{
	const char *text = (const char *)x->sql->column_text(st, column);

	snprintf(out, size, "%s", text != NULL ? text : "");
}

static void index_row(struct index *x, sqlite3_stmt *st, struct run_facts *f)
{
	*f = (struct run_facts){ 0 };
	copy_column(x, st, 0, f->id, sizeof(f->id));
	copy_column(x, st, 1, f->started, sizeof(f->started));
	copy_column(x, st, 2, f->skill, sizeof(f->skill));
	copy_column(x, st, 3, f->version, sizeof(f->version));
	copy_column(x, st, 4, f->end, sizeof(f->end));
	int64_t state = x->sql->column_int64(st, 5);
	f->state = state == RUN_LIVE ? RUN_LIVE : state == RUN_ENDED ? RUN_ENDED : RUN_INCOMPLETE;
	f->exit_code = x->sql->column_int64(st, 6);
	f->duration_us = x->sql->column_int64(st, 7);
	f->events = x->sql->column_int64(st, 8);
	f->violations = x->sql->column_int64(st, 9);
	f->severity = (enum class_severity)x->sql->column_int64(st, 10);
}

static int index_bind(struct index *x, sqlite3_stmt *st, const struct index_ask *ask)
{
	int bad = 0;

	/* An unbound parameter is NULL and matches everything. */
	if (ask->skill != NULL) {
		bad |= x->sql->bind_text(st, 1, ask->skill, -1, SQLITE_STATIC);
	}
	if (ask->since != NULL) {
		bad |= x->sql->bind_text(st, 2, ask->since, -1, SQLITE_STATIC);
	}
	if (ask->until != NULL) {
		bad |= x->sql->bind_text(st, 3, ask->until, -1, SQLITE_STATIC);
	}
	bad |= x->sql->bind_int64(st, 4, ask->violations ? 1 : 0);
	bad |= x->sql->bind_int64(st, 5, ask->severity);
	bad |= x->sql->bind_int64(st, 6, ask->limit > 0 ? ask->limit : MAX_RUNS);
	return bad;
}

static int index_select(struct index *x, const struct index_ask *ask, struct run_facts **ret,
                        size_t *ret_n)
{
	static const char sql[] =
	        "SELECT id, started, skill, version, ending, state, exit_code, duration_us, events,"
	        " violations, severity FROM runs WHERE (?1 IS NULL OR skill = ?1)"
	        " AND (?2 IS NULL OR started >= ?2) AND (?3 IS NULL OR started <= ?3)"
	        " AND violations >= ?4 AND severity >= ?5 ORDER BY started DESC, id LIMIT ?6";
	auto_free struct run_facts *v = NULL;
	size_t n = 0;
	sqlite3_stmt *st = NULL;
	int rc = x->sql->prepare_v2(x->db, sql, -1, &st, NULL);

	rc = rc == SQLITE_OK ? index_bind(x, st, ask) : rc;
	while (rc == SQLITE_OK && (rc = x->sql->step(st)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		if (!ARRAY_MORE(v, n)) {
			rc = SQLITE_NOMEM;
			break;
		}
		index_row(x, st, &v[n++]);
	}
	(void)x->sql->finalize(st);
	if (rc != SQLITE_DONE) {
		return -1;
	}
	*ret = steal_ptr(&v);
	*ret_n = n;
	return 0;
}

static int index_answer(struct index *x, const struct runs *runs, const struct index_ask *ask,
                        struct run_facts **ret, size_t *ret_n)
{
	return index_update(x, runs) == 0 ? index_select(x, ask, ret, ret_n) : -1;
}

int index_list(const char *state_dir, const struct index_ask *ask, struct run_facts **ret,
               size_t *ret_n, struct ssb_error *err)
{
	AUTO(index_done) struct index x = { 0 };
	AUTO(runs_done) struct runs runs = RUNS_NONE;

	if (sqlite_load("audit list", &x.sql, err) != 0 || runs_open(&runs, state_dir, err) != 0) {
		return -1;
	}
	if (runs.fd < 0) {
		*ret = NULL;
		*ret_n = 0;
		return 0;
	}
	if (snprintf(x.path, sizeof(x.path), "%s/index.db", state_dir) >= (int)sizeof(x.path) ||
	    snprintf(x.journal, sizeof(x.journal), "%s-journal", x.path) >=
	            (int)sizeof(x.journal)) {
		return ssb_fail(err, SSB_E_LIMIT, 0, "audit list", "the path is too long");
	}
	/* First use the existing file; if it is damaged, make a new file. If no file can be
	 * written, or another process holds the lock for too long, use a table in memory for this
	 * call. */
	if (file_lock(runs.fd, LOCK_WAIT_MS) == 0 &&
	    ((index_open(&x, ask->rebuild) == 0 && index_answer(&x, &runs, ask, ret, ret_n) == 0) ||
	     (index_open(&x, true) == 0 && index_answer(&x, &runs, ask, ret, ret_n) == 0))) {
		return 0;
	}
	if (index_attach(&x, ":memory:") != 0 || index_answer(&x, &runs, ask, ret, ret_n) != 0) {
		return ssb_fail(err, SSB_E_SYS, 0, "audit list", "cannot make an index: %s",
		                x.db != NULL ? x.sql->errmsg(x.db) : "out of memory");
	}
	return 0;
}
