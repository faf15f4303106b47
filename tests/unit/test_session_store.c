/* test_session_store.c - which stores are accepted: SQLite's file and its directory, PostgreSQL's
 * URL, and the owner's settings for them. */
#include <errno.h>
#include <fcntl.h>

#include "os/sqlite.h"
#include "policy/policy_file.h"
#include "session_db_world.h"

static void remove_files(void)
{
	remove_dir();
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void refused(const char *path, enum ssb_code code, const char *text)
{
	struct ssb_error err = { 0 };
	struct db *db = NULL;

	assert_int_equal(db_open_sqlite(path, &db, &err), -1);
	assert_null(db);
	if (err.code != code || strstr(err.text, text) == NULL) {
		fail_msg("code %d: %s", (int)err.code, err.text);
	}
}

static void opens(const char *path)
{
	struct ssb_error err = { 0 };
	struct db *db = NULL;

	must(db_open_sqlite(path, &db, &err), &err);
	db_close(db);
}

static void write_file(const char *path, const char *bytes, size_t n)
{
	auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
}

static void test_file_is_ours_alone(void **state)
{
	struct stat st;
	char other[128];

	make_dir();
	mode_t mask = umask(0);
	opens(file);
	(void)umask(mask);
	static const char *const NAMES[] = { "", "-lock", "-wal", "-shm" };
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		snprintf(other, sizeof(other), "%s%s", file, NAMES[i]);
		assert_int_equal(stat(other, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	assert_int_equal(chmod(file, 0640), 0);
	refused(file, SSB_E_POLICY, "chmod 600");
	assert_int_equal(chmod(file, 0600), 0);
	assert_int_equal(chmod(dir, 0770), 0);
	refused(file, SSB_E_POLICY, "chmod go-w");
	assert_int_equal(chmod(dir, 0755), 0);
	opens(file);
	/* The store is refused in each of these cases: the file has a second hard link; the file is
	 * a symlink; the file is a directory. */
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(link(file, other), 0);
	refused(file, SSB_E_POLICY, "second hard link");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(symlink("other", file), 0);
	refused(file, SSB_E_POLICY, "regular file");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(symlink("nowhere", file), 0);
	refused(file, SSB_E_POLICY, "regular file");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkdir(file, 0700), 0);
	refused(file, SSB_E_POLICY, "regular file");
	assert_int_equal(rmdir(file), 0);
	assert_int_equal(rename(other, file), 0);
	opens(file);
	remove_dir();
}

static void test_paths(void **state)
{
	char path[160];

	make_dir();
	refused("sessions.db", SSB_E_USAGE, "absolute");
	snprintf(path, sizeof(path), "%s/", dir);
	refused(path, SSB_E_USAGE, "absolute");
	snprintf(path, sizeof(path), "%s/nowhere/sessions.db", dir);
	refused(path, SSB_E_SYS, "open the directory");
	/* A symlink in the path of the directory is allowed. */
	char way[96];
	snprintf(way, sizeof(way), "%s/way", dir);
	assert_int_equal(symlink(".", way), 0);
	snprintf(path, sizeof(path), "%s/sessions.db", way);
	opens(path);
	opens(file);
	assert_int_equal(unlink(way), 0);
	remove_dir();
}

static void exec_foreign(const char *sql)
{
	const struct sqlite *lib = NULL;
	sqlite3 *h = NULL;

	assert_int_equal(sqlite_load("test", &lib, NULL), 0);
	assert_int_equal(lib->open_v2(file, &h, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
	                 SQLITE_OK);
	assert_int_equal(lib->exec(h, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(lib->close_v2(h), SQLITE_OK);
	assert_int_equal(chmod(file, 0600), 0);
}

static void test_foreign_files(void **state)
{
	static const char *const FOREIGN[] = {
		"CREATE TABLE t (x)",
		"PRAGMA application_id = 7; CREATE TABLE t (x)",
		"PRAGMA application_id = 7",
		"PRAGMA user_version = 1",
	};
	char before[8192];
	char after[8192];

	make_dir();
	for (size_t i = 0; i < ARRAY_LEN(FOREIGN); i++) {
		exec_foreign(FOREIGN[i]);
		memset(before, 0, sizeof(before));
		memset(after, 0, sizeof(after));
		auto_fd fd = open(file, O_RDONLY | O_CLOEXEC);
		assert_true(read(fd, before, sizeof(before)) > 0);
		refused(file, SSB_E_SYS, "not a store of sessions");
		assert_true(pread(fd, after, sizeof(after), 0) > 0);
		assert_memory_equal(before, after, sizeof(before));
		remove_files();
	}
	write_file(file, "hello, this is no database at all, only some text\n", 50);
	refused(file, SSB_E_SYS, "not a store of sessions");
	remove_files();
	write_file(file, "", 0); /* an empty file becomes a new store */
	opens(file);
	remove_dir();
}

/* If pages of the file are overwritten, the store reports an error and never crashes. */
static void test_damaged_file(void **state)
{
	struct ssb_error err = { 0 };
	struct db *db = NULL;
	char wal[128];

	make_dir();
	opens(file);
	exec_foreign("PRAGMA wal_checkpoint(TRUNCATE)");
	auto_fd fd = open(file, O_RDWR | O_CLOEXEC);
	char junk[4096];
	memset(junk, 0x5a, sizeof(junk));
	for (off_t at = 4096; at < lseek(fd, 0, SEEK_END); at += 4096) {
		assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
	}
	snprintf(wal, sizeof(wal), "%s-wal", file);
	(void)unlink(wal);
	if (db_open_sqlite(file, &db, &err) == 0) {
		assert_int_equal(db_begin(db, &err), 0);
		assert_int_equal(
		        db_run(db, INSERT, DB_ARGS(DB_I(1), DB_T("a"), DB_I(1)), NULL, NULL, &err),
		        -1);
		db_rollback(db);
	}
	assert_non_null(strstr(err.text, "damaged"));
	assert_int_equal(err.sys_errno, EIO);
	db_close(db);
	remove_dir();
}

/* If a process keeps the lock longer than another one waits for it (10 s), the other one gets
 * ETIMEDOUT. */
static void test_busy_has_an_end(void **state)
{
	struct ssb_error err = { 0 };
	struct db *a = NULL;
	struct db *b = NULL;

	make_dir();
	must(db_open_sqlite(file, &a, &err), &err);
	must(db_open_sqlite(file, &b, &err), &err);
	begin(a);
	put(a, 1, "a", 1);
	assert_int_equal(db_begin(b, &err), -1);
	assert_int_equal(err.sys_errno, ETIMEDOUT);
	assert_non_null(strstr(err.text, "10 s"));
	assert_int_equal(number(b, ALL), 0); /* reading is possible without the lock */
	commit(a);
	begin(b);
	put(b, 1, "b", 1);
	commit(b);
	assert_int_equal(number(a, ALL), 2);
	db_close(a);
	db_close(b);
	remove_dir();
}

/* Parameters must be $1, $2, ... in this order. Otherwise SQLite would bind other values than
 * PostgreSQL. */
static void test_parameter_order(void **state)
{
	static const char *const BAD[] = { "SELECT $2, $1", "SELECT $1", "SELECT $1, $2, $3",
		                           "SELECT ?, ?" };
	struct db *db = NULL;
	struct ssb_error err = { 0 };

	make_dir();
	must(db_open_sqlite(file, &db, &err), &err);
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		err = (struct ssb_error){ 0 };
		assert_int_equal(db_run(db, BAD[i], DB_ARGS(DB_I(1), DB_I(2)), NULL, NULL, &err),
		                 -1);
		assert_int_equal(err.code, SSB_E_USAGE);
	}
	db_close(db);
	remove_dir();
}

/* The message about an invalid URL must not contain any part of the URL, because it may have a
 * password in it. */
static void test_bad_urls(void **state)
{
	static const char *const BAD[] = { "postgresql://u:geheim@h:port%zz/db",
		                           "postgresql://u:geheim@[::1/db",
		                           "postgresql://u:geheim@h/db?geheim=1", "geheim" };

	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct ssb_error err = { 0 };
		struct db *db = NULL;
		assert_int_equal(db_open_postgres(BAD[i], &db, &err), -1);
		assert_int_equal(err.code, SSB_E_POLICY);
		assert_null(strstr(err.text, "geheim"));
		assert_non_null(strstr(err.text, "postgresql://"));
	}
}

static void parse(const char *text, struct policy *ret, int rc, struct ssb_error *err)
{
	struct ssb_diags *d = ssb_diags_new();

	policy_init(ret);
	assert_int_equal(policy_parse("policy.yaml", text, strlen(text), ret, d, err), rc);
	for (size_t i = 0; i < ssb_diags_count(d); i++) {
		const struct ssb_diag *x = ssb_diags_get(d, i);
		assert_null(strstr(x->text, "geheim"));
		assert_null(strstr(x->remedy, "geheim"));
		assert_non_null(strstr(x->where, "policy.yaml:1:"));
	}
	ssb_diags_free(d);
}

static void test_store_key(void **state)
{
	static const struct {
		const char *text;
		const char *store;
	} GOOD[] = {
		{ "", NULL },
		{ "store:\n", NULL },
		{ "store: sqlite\n", NULL },
		{ "store: postgresql://u:geheim@h:5432/d?sslmode=require\n",
		  "postgresql://u:geheim@h:5432/d?sslmode=require" },
		{ "store: 'postgres:///?service=x'\n", "postgres:///?service=x" },
	};
	static const char *const BAD[] = {
		"store: mysql://u:geheim@h/d\n",
		"store: postgresql://\n",
		"store: ['postgresql://u:geheim@h']\n",
		"store: 'postgresql://u:geheim @h'\n",
		"store: {a: geheim}\n",
		"store: SQLite\n",
		"store: /home/geheim.db\n",
		"store: \"postgresql://geheim\\nx\"\n",
	};
	struct policy p;

	for (size_t i = 0; i < ARRAY_LEN(GOOD); i++) {
		struct ssb_error err = { 0 };
		parse(GOOD[i].text, &p, 0, &err);
		if (GOOD[i].store == NULL) {
			assert_null(p.store);
		} else {
			assert_string_equal(p.store, GOOD[i].store);
		}
		policy_done(&p);
	}
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		struct ssb_error err = { 0 };
		parse(BAD[i], &p, -1, &err);
		assert_int_equal(err.code, SSB_E_POLICY);
		assert_null(strstr(err.text, "geheim"));
		assert_null(p.store);
		policy_done(&p);
	}
}

static void test_store_url_bound(void **state)
{
	char text[MAX_STORE_URL + 32];
	struct policy p;

	for (size_t n = MAX_STORE_URL; n <= MAX_STORE_URL + 1; n++) {
		struct ssb_error err = { 0 };
		int at = snprintf(text, sizeof(text), "store: postgresql://");
		memset(text + at, 'h', n - strlen("postgresql://"));
		text[strlen("store: ") + n] = '\0';
		parse(text, &p, n == MAX_STORE_URL ? 0 : -1, &err);
		policy_done(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_is_ours_alone), cmocka_unit_test(test_paths),
		cmocka_unit_test(test_foreign_files),      cmocka_unit_test(test_damaged_file),
		cmocka_unit_test(test_busy_has_an_end),    cmocka_unit_test(test_parameter_order),
		cmocka_unit_test(test_bad_urls),           cmocka_unit_test(test_store_key),
		cmocka_unit_test(test_store_url_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
