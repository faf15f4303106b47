/* test_session_db.c - the same cases on every store: SQLite in its own directory, and the
 * PostgreSQL server that SSB_TEST_POSTGRES names (its database is emptied). */
#include <limits.h>
#include <poll.h>
#include <sys/wait.h>

#include "session/db_driver.h"
#include "session_db_world.h"

struct store {
	const char *url; /* NULL: SQLite, in the file `file` */
	struct db *db;
};

static int open_again(const struct store *s, struct db **ret, struct ssb_error *err)
{
	return s->url != NULL ? db_open_postgres(s->url, ret, err) : db_open_sqlite(file, ret, err);
}

/* ---- the cases ---------------------------------------------------------- */

static void values_come_back(struct store *s)
{
	static const int64_t numbers[] = { 0, 1, -1, INT64_MAX, INT64_MIN, 1700000000000000 };
	char text[300];

	begin(s->db);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		snprintf(text, sizeof(text), "'\"\\ ; -- \xc3\xa4 \xf0\x9f\x94\x92 %zu", i);
		put(s->db, (int64_t)i, text, numbers[i]);
	}
	commit(s->db);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct ssb_error err = { 0 };
		int64_t v = 0;
		snprintf(text, sizeof(text), "'\"\\ ; -- \xc3\xa4 \xf0\x9f\x94\x92 %zu", i);
		must(db_run(s->db, COUNT, DB_ARGS(DB_I(i), DB_T(text)), take_first, &v, &err),
		     &err);
		assert_int_equal(v, numbers[i]);
	}
}

static int take_texts(void *arg, const struct db_value *v, size_t n)
{
	assert_int_equal(n, 3);
	assert_int_equal(v[0].type, DB_TEXT);
	assert_int_equal(v[0].n, strlen("half"));
	assert_string_equal(v[0].s, "half"); /* there is a NUL after the text */
	assert_int_equal(v[1].type, DB_NULL);
	assert_int_equal(v[2].type, DB_TEXT);
	assert_int_equal(v[2].n, 0);
	assert_string_equal(v[2].s, "");
	++*(int *)arg;
	return 0;
}

/* A text parameter has a length: only its first 4 bytes are stored, although more follow. */
static void texts_have_lengths(struct store *s)
{
	struct ssb_error err = { 0 };
	int rows = 0;

	run(s->db, "INSERT INTO domains (session, name) VALUES ($1, $2)",
	    DB_ARGS(DB_I(1), DB_TN("half a name", 4)));
	must(db_run(s->db, "SELECT name, NULL, '' FROM domains WHERE name = $1 AND session = $2",
	            DB_ARGS(DB_T("half"), DB_I(1)), take_texts, &rows, &err),
	     &err);
	assert_int_equal(rows, 1);
}

static void nulls_go_in(struct store *s)
{
	struct ssb_error err = { 0 };
	int64_t v = 0;

	must(db_run(s->db, "SELECT CASE WHEN CAST($1 AS BIGINT) IS NULL THEN 7 ELSE 8 END",
	            DB_ARGS({ .type = DB_NULL }), take_first, &v, &err),
	     &err);
	assert_int_equal(v, 7);
}

static void sums_and_truths_are_numbers(struct store *s)
{
	put(s->db, 1, "a", INT32_MAX);
	put(s->db, 1, "b", INT32_MAX);
	assert_int_equal(number(s->db, "SELECT SUM(n) FROM counts"), 2LL * INT32_MAX);
	assert_int_equal(number(s->db, ALL), 2);
	assert_int_equal(number(s->db, "SELECT n > 1 FROM counts WHERE name = 'a'"), 1);
	assert_int_equal(number(s->db, "SELECT n < 1 FROM counts WHERE name = 'a'"), 0);
	assert_int_equal(number(s->db, "SELECT COALESCE(MAX(n), 0) FROM ledger_empty"), 0);
}

static void numbers_are_given(struct store *s)
{
	static const char sql[] =
	        "INSERT INTO outbox (session, kind, url, secret, body, tries, due,"
	        " leased, state) VALUES ($1, 0, '', '', '', 0, 0, 0, 0)"
	        " RETURNING n";
	struct ssb_error err = { 0 };
	int64_t first = 0;
	int64_t second = 0;

	must(db_run(s->db, sql, DB_ARGS(DB_I(1)), take_first, &first, &err), &err);
	must(db_run(s->db, sql, DB_ARGS(DB_I(1)), take_first, &second, &err), &err);
	assert_true(first > 0);
	assert_int_equal(second, first + 1);
}

static void changes_are_counted(struct store *s)
{
	put(s->db, 1, "a", 1);
	assert_int_equal(db_changes(s->db), 1);
	put(s->db, 1, "b", 1);
	run(s->db, "UPDATE counts SET n = n + $1", DB_ARGS(DB_I(5)));
	assert_int_equal(db_changes(s->db), 2);
	assert_int_equal(number(s->db, ALL), 2);
	assert_int_equal(db_changes(s->db), 0);
	run(s->db,
	    "INSERT INTO counts (session, name, n) VALUES (1, 'a', 9) ON CONFLICT DO NOTHING", NULL,
	    0);
	assert_int_equal(db_changes(s->db), 0);
	run(s->db,
	    "INSERT INTO counts (session, name, n) VALUES ($1, $2, 1) ON CONFLICT (session, name)"
	    " DO UPDATE SET n = counts.n + 1",
	    DB_ARGS(DB_I(1), DB_T("a")));
	assert_int_equal(db_changes(s->db), 1);
	assert_int_equal(number(s->db, "SELECT n FROM counts WHERE name = 'a'"), 7);
}

static int stop_at_once(void *arg, const struct db_value *v, size_t n)
{
	(void)v;
	(void)n;
	++*(int *)arg;
	return 1;
}

static void rows_end_when_told(struct store *s)
{
	struct ssb_error err = { 0 };
	int rows = 0;

	put(s->db, 1, "a", 1);
	put(s->db, 1, "b", 1);
	must(db_run(s->db, "SELECT n FROM counts", NULL, 0, stop_at_once, &rows, &err), &err);
	assert_int_equal(rows, 1);
	/* A statement that writes is executed completely, even if the caller stops reading its
	 * rows. */
	must(db_run(s->db, "UPDATE counts SET n = 2 RETURNING n", NULL, 0, stop_at_once, &rows,
	            &err),
	     &err);
	assert_int_equal(number(s->db, "SELECT SUM(n) FROM counts"), 4);
}

struct nest {
	struct db *db;
	int depth;
	int seen;
};

static int nested(void *arg, const struct db_value *v, size_t n)
{
	struct nest *x = arg;
	struct ssb_error err = { 0 };

	(void)v;
	(void)n;
	x->seen++;
	if (x->depth < 3) {
		x->depth++;
		must(db_run(x->db, "SELECT name FROM counts ORDER BY name", NULL, 0, nested, x,
		            &err),
		     &err);
		x->depth--;
	}
	return 0;
}

/* While the rows of a statement are read, the same statement is started again, three levels deep:
 * each level gets all rows. */
static void rows_may_ask_in_turn(struct store *s)
{
	struct nest x = { s->db, 1, 0 };
	struct ssb_error err = { 0 };

	put(s->db, 1, "a", 1);
	put(s->db, 1, "b", 1);
	must(db_run(s->db, "SELECT name FROM counts ORDER BY name", NULL, 0, nested, &x, &err),
	     &err);
	assert_int_equal(x.seen, 2 + 4 + 8);
}

static void a_rollback_leaves_nothing(struct store *s)
{
	begin(s->db);
	put(s->db, 1, "a", 1);
	assert_int_equal(number(s->db, ALL), 1);
	db_rollback(s->db);
	assert_int_equal(number(s->db, ALL), 0);
	db_rollback(s->db); /* no transaction: no effect */
	begin(s->db);
	put(s->db, 1, "a", 1);
	commit(s->db);
	assert_int_equal(number(s->db, ALL), 1);
}

static void a_failed_statement_fails_the_whole(struct store *s)
{
	struct ssb_error err = { 0 };

	begin(s->db);
	put(s->db, 1, "a", 1);
	assert_int_equal(
	        db_run(s->db, INSERT, DB_ARGS(DB_I(1), DB_T("a"), DB_I(2)), NULL, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_SYS);
	err = (struct ssb_error){ 0 };
	assert_int_equal(db_run(s->db, ALL, NULL, 0, NULL, NULL, &err), -1);
	err = (struct ssb_error){ 0 };
	assert_int_equal(db_commit(s->db, &err), -1);
	assert_int_equal(number(s->db, ALL), 0);
	begin(s->db); /* the store still works */
	put(s->db, 1, "b", 1);
	commit(s->db);
	assert_int_equal(number(s->db, ALL), 1);
}

static void transactions_have_an_order(struct store *s)
{
	struct ssb_error err = { 0 };

	assert_int_equal(db_commit(s->db, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	err = (struct ssb_error){ 0 };
	assert_int_equal(db_lock_tree(s->db, 1, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	err = (struct ssb_error){ 0 };
	begin(s->db);
	assert_int_equal(db_begin(s->db, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	commit(s->db);
}

static void bad_texts_stay_out(struct store *s)
{
	static const struct {
		const char *text;
		size_t n;
	} BAD[] = { { "a\0b", 3 },
		    { "\xff", 1 },
		    { "\xc3", 1 },
		    { "\xed\xa0\x80", 3 },
		    { "\xc0\x80", 2 } };

	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct ssb_error err = { 0 };
		assert_int_equal(db_run(s->db, INSERT,
		                        DB_ARGS(DB_I(1), DB_TN(BAD[i].text, BAD[i].n), DB_I(1)),
		                        NULL, NULL, &err),
		                 -1);
		assert_int_equal(err.code, SSB_E_USAGE);
	}
	assert_int_equal(number(s->db, ALL), 0);
}

static void long_texts_have_a_bound(struct store *s)
{
	auto_free char *text = malloc(MAX_STORE_TEXT + 2);
	struct ssb_error err = { 0 };
	static const char sql[] = "INSERT INTO ledger (n, line) VALUES ($1, $2)";

	memset(text, 'x', MAX_STORE_TEXT + 1);
	text[MAX_STORE_TEXT + 1] = '\0';
	run(s->db, sql, DB_ARGS(DB_I(1), DB_TN(text, MAX_STORE_TEXT)));
	assert_int_equal(number(s->db, "SELECT length(line) FROM ledger"), MAX_STORE_TEXT);
	assert_int_equal(db_run(s->db, sql, DB_ARGS(DB_I(2), DB_TN(text, MAX_STORE_TEXT + 1)), NULL,
	                        NULL, &err),
	                 -1);
	assert_int_equal(err.code, SSB_E_LIMIT);
}

/* More different statements than the cache can contain: all of them work. */
static void many_statements(struct store *s)
{
	static char sql[DB_STATEMENTS + 8][48];

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_LEN(sql); i++) {
			if (round == 0) {
				snprintf(sql[i], sizeof(sql[i]), "SELECT 1000 + %zu", i);
			}
			assert_int_equal(number(s->db, sql[i]), 1000 + (int64_t)i);
		}
	}
}

static void it_is_kept(struct store *s)
{
	struct ssb_error err = { 0 };
	struct db *other = NULL;

	begin(s->db);
	put(s->db, 1, "a", 5);
	commit(s->db);
	must(open_again(s, &other, &err), &err);
	assert_int_equal(number(other, "SELECT n FROM counts"), 5);
	db_close(other);
	assert_int_equal(number(s->db, "SELECT n FROM counts"), 5);
}

static void a_reader_sees_what_is_committed(struct store *s)
{
	struct ssb_error err = { 0 };
	struct db *other = NULL;

	must(open_again(s, &other, &err), &err);
	begin(s->db);
	put(s->db, 1, "a", 5);
	assert_int_equal(number(other, ALL), 0);
	commit(s->db);
	assert_int_equal(number(other, ALL), 1);
	db_close(other);
}

/* Removes the database with its -wal and -shm files. Otherwise SQLite would delete the old -wal
 * file later, when other processes already use the new database. */
static void remove_files(void)
{
	static const char *const ENDINGS[] = { "", "-wal", "-shm" };
	char name[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(ENDINGS); i++) {
		snprintf(name, sizeof(name), "%s%s", file, ENDINGS[i]);
		(void)unlink(name);
	}
}

/* Eight processes open a store without tables at the same time. Each counts to 25, and no count may
 * be lost. */
static void many_open_at_once(struct store *s, const char *drop)
{
	struct ssb_error err = { 0 };
	pid_t pids[8];

	if (s->url != NULL) {
		run(s->db, drop, NULL, 0);
	}
	db_close(s->db);
	s->db = NULL;
	if (s->url == NULL) {
		remove_files();
	}
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			struct db *db = NULL;
			int bad = open_again(s, &db, &err) != 0;
			for (int k = 0; bad == 0 && k < 25; k++) {
				bad = db_begin(db, &err) != 0 || db_lock_tree(db, 1, &err) != 0 ||
				      db_run(db,
				             "INSERT INTO counts (session, name, n) VALUES (1, 'x',"
				             " 1) ON CONFLICT (session, name) DO UPDATE SET"
				             " n = counts.n + 1",
				             NULL, 0, NULL, NULL, &err) != 0 ||
				      db_commit(db, &err) != 0;
			}
			if (bad != 0) {
				fprintf(stderr, "%s\n", err.text);
			}
			db_close(db);
			_exit(bad);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		int status = -1;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	must(open_again(s, &s->db, &err), &err);
	assert_int_equal(number(s->db, "SELECT n FROM counts"), 8 * 25);
}

#define DROP_ALL "DROP SCHEMA public CASCADE"

static void many_first_openers(struct store *s)
{
	if (s->url != NULL) {
		run(s->db, DROP_ALL, NULL, 0);
		many_open_at_once(s, "CREATE SCHEMA public");
	} else {
		many_open_at_once(s, NULL);
	}
}

static void a_later_version_is_refused(struct store *s)
{
	struct ssb_error err = { 0 };
	struct db *other = NULL;

	run(s->db,
	    s->url != NULL ? "UPDATE schema_version SET version = 2" : "PRAGMA user_version = 2",
	    NULL, 0);
	assert_int_equal(open_again(s, &other, &err), -1);
	assert_null(other);
	assert_int_equal(err.code, SSB_E_POLICY);
	assert_non_null(strstr(err.text, "upgrade"));
	run(s->db,
	    s->url != NULL ? "UPDATE schema_version SET version = 1" : "PRAGMA user_version = 1",
	    NULL, 0);
	err = (struct ssb_error){ 0 };
	must(open_again(s, &other, &err), &err);
	db_close(other);
}

/* A child process. It writes "o" to `out` when it has opened the store, and "l" when it has the
 * lock. */
static int other_process(const struct store *s, int in, int out)
{
	struct ssb_error err = { 0 };
	struct db *db = NULL;
	char c = 0;

	if (read(in, &c, 1) != 1 || open_again(s, &db, &err) != 0 || write(out, "o", 1) != 1 ||
	    db_begin(db, &err) != 0 || db_lock_tree(db, 7, &err) != 0 || write(out, "l", 1) != 1 ||
	    db_run(db, "UPDATE counts SET n = n + 1", NULL, 0, NULL, NULL, &err) != 0 ||
	    db_commit(db, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	db_close(db);
	return 0;
}

/* While one process has the lock of a tree of sessions, a second process waits for it. When the
 * second gets the lock, it sees the change of the first. */
static void the_lock_of_a_tree_holds(struct store *s)
{
	struct ssb_error err = { 0 };
	int there[2];
	int back[2];
	int status = -1;
	char c = 0;

	assert_int_equal(pipe(there), 0);
	assert_int_equal(pipe(back), 0);
	db_close(s->db); /* before fork(): a child must not use a store of its parent */
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		_exit(other_process(s, there[0], back[1]));
	}
	must(open_again(s, &s->db, &err), &err);
	put(s->db, 1, "x", 1);
	begin(s->db);
	must(db_lock_tree(s->db, 7, &err), &err);
	assert_int_equal(write(there[1], "g", 1), 1);
	assert_int_equal(read(back[0], &c, 1), 1);
	struct pollfd p = { .fd = back[0], .events = POLLIN };
	assert_int_equal(poll(&p, 1, 300), 0); /* the other process waits for the lock */
	run(s->db, "UPDATE counts SET n = n * $1", DB_ARGS(DB_I(10)));
	commit(s->db);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(number(s->db, "SELECT n FROM counts"), 11);
	for (int i = 0; i < 2; i++) {
		(void)close(there[i]);
		(void)close(back[i]);
	}
}

static void news_come(struct store *s)
{
	struct ssb_error err = { 0 };
	struct db *other = NULL;
	char id[SESSION_ID] = "x";
	int fd = db_news_fd(s->db);

	if (s->url == NULL) {
		assert_int_equal(fd, -1);
		assert_int_equal(db_news(s->db, id, &err), 0);
		return;
	}
	struct pollfd p = { .fd = fd, .events = POLLIN };
	assert_true(fd >= 0);
	must(open_again(s, &other, &err), &err);
	begin(other);
	must(db_tell(other, "first", &err), &err);
	assert_int_equal(poll(&p, 1, 100), 0); /* nothing arrives before the commit */
	must(db_tell(other, "second", &err), &err);
	commit(other);
	assert_int_equal(poll(&p, 1, 5000), 1);
	/* A message of another process that arrives together with the answer to a statement is not
	 * lost. */
	assert_int_equal(number(s->db, "SELECT 1"), 1);
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(db_news(s->db, id, &err), 1);
	assert_string_equal(id, "first");
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(db_news(s->db, id, &err), 1);
	assert_string_equal(id, "second");
	assert_int_equal(db_news(s->db, id, &err), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	/* A process gets no messages of transactions that were rolled back, and none of its own. */
	begin(other);
	must(db_tell(other, "undone", &err), &err);
	db_rollback(other);
	begin(s->db);
	must(db_tell(s->db, "own", &err), &err);
	commit(s->db);
	(void)poll(&p, 1, 200);
	assert_int_equal(db_news(s->db, id, &err), 0);
	db_close(other);
}

static void bad_statements_are_errors(struct store *s)
{
	static const char *const BAD[] = { "SELEC 1", "SELECT * FROM nowhere",
		                           "INSERT INTO counts (session, name, n) VALUES (1, 'a',"
		                           " NULL)" };

	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct ssb_error err = { 0 };
		assert_int_equal(db_run(s->db, BAD[i], NULL, 0, NULL, NULL, &err), -1);
		assert_int_equal(err.code, SSB_E_SYS);
	}
	assert_int_equal(number(s->db, ALL), 0);
}

static const struct {
	const char *name;
	void (*run)(struct store *s);
} CASES[] = {
#define CASE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}
	CASE(values_come_back),
	CASE(texts_have_lengths),
	CASE(nulls_go_in),
	CASE(sums_and_truths_are_numbers),
	CASE(numbers_are_given),
	CASE(changes_are_counted),
	CASE(rows_end_when_told),
	CASE(rows_may_ask_in_turn),
	CASE(a_rollback_leaves_nothing),
	CASE(a_failed_statement_fails_the_whole),
	CASE(transactions_have_an_order),
	CASE(bad_texts_stay_out),
	CASE(long_texts_have_a_bound),
	CASE(many_statements),
	CASE(it_is_kept),
	CASE(a_reader_sees_what_is_committed),
	CASE(many_first_openers),
	CASE(a_later_version_is_refused),
	CASE(the_lock_of_a_tree_holds),
	CASE(news_come),
	CASE(bad_statements_are_errors),
};

/* ---- each case in a fresh store ------------------------------------------ */

static void test_cases(const char *url)
{
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct ssb_error err = { 0 };
		struct store s = { .url = url };
		print_message("  %s: %s\n", url != NULL ? "PostgreSQL" : "SQLite", CASES[i].name);
		make_dir();
		must(open_again(&s, &s.db, &err), &err);
		if (url != NULL) {
			run(s.db, DROP_ALL, NULL, 0);
			run(s.db, "CREATE SCHEMA public", NULL, 0);
			db_close(s.db);
			must(open_again(&s, &s.db, &err), &err);
		}
		run(s.db, "CREATE TABLE ledger_empty (n BIGINT)", NULL, 0);
		CASES[i].run(&s);
		db_close(s.db);
		remove_dir();
	}
}

static void test_sqlite(void **state)
{
	test_cases(NULL);
}

static void test_postgres(void **state)
{
	test_cases(getenv("SSB_TEST_POSTGRES"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sqlite) };
	const struct CMUnitTest postgres[] = { cmocka_unit_test(test_postgres) };
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	if (getenv("SSB_TEST_POSTGRES") != NULL) {
		rc |= cmocka_run_group_tests(postgres, NULL, NULL);
	}
	return rc;
}
