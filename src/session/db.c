/* db.c - the part that all stores share: the rules of a transaction, the check of
 * parameters, and the making of the tables. */
#include "session/db.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "os/clock.h"
#include "session/db_driver.h"
#include "session/schema.h"

#define MAX_STATEMENT 4096

void db_close(struct db *db)
{
	if (db != NULL) {
		db_rollback(db);
		db->driver->close(db);
	}
}

int db_begin(struct db *db, struct ssb_error *err)
{
	if (db->begun) {
		return ssb_fail(err, SSB_E_USAGE, 0, DB_WHERE,
		                "a transaction within a transaction");
	}
	if (db->driver->begin(db, err) != 0) {
		return -1;
	}
	db->begun = true;
	db->failed = false;
	return 0;
}

int db_commit(struct db *db, struct ssb_error *err)
{
	if (!db->begun) {
		return ssb_fail(err, SSB_E_USAGE, 0, DB_WHERE, "there is no transaction to commit");
	}
	/* After a failed statement, a COMMIT of SQLite would keep the changes before the failure,
	 * but a COMMIT of PostgreSQL would not. So the transaction is undone here. */
	if (db->failed) {
		db_rollback(db);
		return ssb_fail(err, SSB_E_SYS, 0, DB_WHERE,
		                "a statement of the transaction failed: nothing was changed");
	}
	db->begun = false;
	return db->driver->commit(db, err);
}

void db_rollback(struct db *db)
{
	if (db->begun) {
		db->begun = false;
		db->driver->rollback(db);
	}
}

int db_lock_tree(struct db *db, int64_t root, struct ssb_error *err)
{
	if (!db->begun || db->failed) {
		return ssb_fail(err, SSB_E_USAGE, 0, DB_WHERE,
		                "a lock was requested outside of a transaction");
	}
	int rc = db->driver->lock != NULL ? db->driver->lock(db, root, err) : 0;
	db->failed = rc != 0;
	return rc;
}

int db_time(struct db *db, int64_t *ret, struct ssb_error *err)
{
	int64_t now = 0;

	if (db->driver->time == NULL) {
		*ret = clock_wall_us();
		return 0;
	}
	if (db->driver->time(db, &now, err) != 0) {
		db->failed = true;
		return -1;
	}
	*ret = now;
	return 0;
}

/* Checks the arguments of a statement. PostgreSQL rejects NUL and invalid UTF-8: this check makes
 * SQLite reject the same texts. */
static int check_args(const struct db_value *args, size_t n, struct ssb_error *err)
{
	if (n > DB_MAX_ARGS) {
		return ssb_fail(err, SSB_E_LIMIT, 0, DB_WHERE,
		                "a statement has %zu parameters, more than the limit", n);
	}
	for (size_t i = 0; i < n; i++) {
		if (args[i].type == DB_TEXT && args[i].n > MAX_STORE_TEXT) {
			return ssb_fail(err, SSB_E_LIMIT, 0, DB_WHERE,
			                "a text has %zu bytes, but at most %d can be stored",
			                args[i].n, MAX_STORE_TEXT);
		}
		if (args[i].type == DB_TEXT && !utf8_is_text(args[i].s, args[i].n)) {
			return ssb_fail(err, SSB_E_USAGE, 0, DB_WHERE,
			                "a text that is not valid UTF-8, or has a NUL in it, "
			                "cannot be stored");
		}
	}
	return 0;
}

int db_run(struct db *db, const char *sql, const struct db_value *args, size_t n_args,
           db_row_fn *row, void *arg, struct ssb_error *err)
{
	assert(sql != NULL && (args != NULL || n_args == 0));
	if (db->begun && db->failed) {
		return ssb_fail(err, SSB_E_USAGE, 0, DB_WHERE,
		                "a statement of this transaction has failed already");
	}
	db->changes = 0;
	int rc = check_args(args, n_args, err);
	if (rc == 0) {
		rc = db->driver->run(db, sql, args, n_args, row, arg, err);
	}
	db->failed |= rc != 0;
	return rc;
}

int64_t db_changes(const struct db *db)
{
	return db->changes;
}

uint64_t db_version(struct db *db)
{
	return db->driver->changed != NULL ? db->driver->changed(db) : 0;
}

int db_tell(struct db *db, const char *session, struct ssb_error *err)
{
	assert(session != NULL);
	if (strlen(session) >= SESSION_ID) {
		return ssb_fail(err, SSB_E_LIMIT, 0, DB_WHERE, "the id of a session is too long");
	}
	return db->driver->tell != NULL ? db->driver->tell(db, session, err) : 0;
}

int db_news_fd(struct db *db)
{
	return db->driver->news_fd != NULL ? db->driver->news_fd(db) : -1;
}

int db_news(struct db *db, char ret_session[SESSION_ID], struct ssb_error *err)
{
	return db->driver->news != NULL ? db->driver->news(db, ret_session, err) : 0;
}

/* Runs a statement of the schema. First replaces each word of driver->words by the one that this
 * database uses. */
static int run_schema(struct db *db, const char *sql, struct ssb_error *err)
{
	const struct db_word *words = db->driver->words;
	auto_buf out = BUF(MAX_STATEMENT);

	while (*sql != '\0') {
		const struct db_word *w = words;
		while (w->word != NULL && strncmp(sql, w->word, strlen(w->word)) != 0) {
			w++;
		}
		if (w->word != NULL) {
			buf_adds(&out, w->here);
			sql += strlen(w->word);
		} else {
			buf_addc(&out, *sql++);
		}
	}
	if (out.failed) {
		return ssb_fail(err, SSB_E_NOMEM, 0, DB_WHERE, "out of memory");
	}
	return db->driver->exec(db, out.data, err);
}

static int make_tables(struct db *db, struct ssb_error *err)
{
	for (const char *const *s = SESSION_SCHEMA; *s != NULL; s++) {
		if (run_schema(db, *s, err) != 0) {
			return -1;
		}
	}
	return db->driver->set_version(db, SESSION_SCHEMA_VERSION, err);
}

static int check_version(struct db *db, int64_t *ret, struct ssb_error *err)
{
	int64_t version = -1;

	if (db->driver->version(db, &version, err) != 0) {
		return -1;
	}
	if (version < 0 || version > SESSION_SCHEMA_VERSION) {
		return ssb_fail(err, SSB_E_POLICY, 0, DB_WHERE,
		                "the store has version %lld and was made by a later skillsandbox; "
		                "this one supports version %d: upgrade skillsandbox",
		                (long long)version, SESSION_SCHEMA_VERSION);
	}
	*ret = version;
	return 0;
}

int db_take_number(void *arg, const struct db_value *v, size_t n)
{
	if (n == 1 && v[0].type == DB_INT) {
		*(int64_t *)arg = v[0].i;
	}
	return 1;
}

int db_migrate(struct db *db, struct ssb_error *err)
{
	int64_t version = 0;

	if (check_version(db, &version, err) != 0) {
		return -1;
	}
	if (version == SESSION_SCHEMA_VERSION) {
		return 0;
	}
	if (db_begin(db, err) != 0) {
		return -1;
	}
	/* Another process may have opened the store at the same time and made the tables first. */
	if ((db->driver->lock_schema != NULL && db->driver->lock_schema(db, err) != 0) ||
	    check_version(db, &version, err) != 0 || (version == 0 && make_tables(db, err) != 0)) {
		db_rollback(db);
		return -1;
	}
	return db_commit(db, err);
}

int db_cache_place(struct db_cache *c, const char *sql)
{
	assert(sql != NULL && c->used <= DB_STATEMENTS);

	size_t at = ((uintptr_t)sql * 0x9E3779B97F4A7C15U) >> 40;

	for (size_t i = 0; i < DB_STATEMENTS; i++, at++) {
		at &= DB_STATEMENTS - 1;
		if (c->sql[at] == sql) {
			return (int)at;
		}
		if (c->sql[at] == NULL) {
			if (c->used >= DB_STATEMENTS * 3 / 4) {
				return -1;
			}
			c->sql[at] = sql;
			c->used++;
			return (int)at;
		}
	}
	return -1;
}
