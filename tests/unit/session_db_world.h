/* session_db_world.h - a directory for a store of sessions, and short functions that use the
 * store. */
#ifndef SESSION_DB_WORLD_H
#define SESSION_DB_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "session/db.h"

static char dir[64];
static char file[96];

static inline void must(int rc, const struct ssb_error *err)
{
	if (rc != 0) {
		fail_msg("%s: %s", err->where, err->text);
	}
}

static inline void run(struct db *db, const char *sql, const struct db_value *args, size_t n)
{
	struct ssb_error err = { 0 };

	must(db_run(db, sql, args, n, NULL, NULL, &err), &err);
}

static inline int take_first(void *arg, const struct db_value *v, size_t n)
{
	*(int64_t *)arg = n > 0 && v[0].type == DB_INT ? v[0].i : -1;
	return 0;
}

static inline int64_t number(struct db *db, const char *sql)
{
	struct ssb_error err = { 0 };
	int64_t v = -2;

	must(db_run(db, sql, NULL, 0, take_first, &v, &err), &err);
	return v;
}

static inline void begin(struct db *db)
{
	struct ssb_error err = { 0 };

	must(db_begin(db, &err), &err);
}

static inline void commit(struct db *db)
{
	struct ssb_error err = { 0 };

	must(db_commit(db, &err), &err);
}

#define COUNT  "SELECT n FROM counts WHERE session = $1 AND name = $2"
#define INSERT "INSERT INTO counts (session, name, n) VALUES ($1, $2, $3)"
#define ALL    "SELECT count(*) FROM counts"

static inline void put(struct db *db, int64_t session, const char *name, int64_t n)
{
	run(db, INSERT, DB_ARGS(DB_I(session), DB_T(name), DB_I(n)));
}

static inline void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test-session-db-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/sessions.db", dir);
}

static inline void remove_dir(void)
{
	static const char *const NAMES[] = { "", "-lock", "-wal", "-shm", "-journal" };
	char path[128];

	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		snprintf(path, sizeof(path), "%s%s", file, NAMES[i]);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

#endif
