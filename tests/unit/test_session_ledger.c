/* test_session_ledger.c - the ledger of a session, and its copies. The tests run on SQLite, and
 * also on PostgreSQL if SSB_TEST_POSTGRES names a server. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_read.h"
#include "os/file.h"
#include "session_tests.h"

/* ---- the ledger ---------------------------------------------------------- */

/* Makes a session whose ledger has all kinds of lines. The session is killed, and then an action is
 * settled late. Returns the ledger as new text. */
static char *full_ledger(const char *name)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start(name, NULL, "budget:\n  max_cost_per_session: 1\n  on_exceed: block\n");
	d = world_check(name, USD(0.4));
	world_settle(d.reservation, USD(0.3));
	assert_false(world_check(name, USD(0.5) + 1).verdict.allowed);
	assert_int_equal(session_violation(w.ss, world_id(name), "pii_blocked", "a \"name\"\n\xff",
	                                   &d, &err),
	                 0);
	int64_t r = world_check(name, USD(0.5)).reservation;
	world_become(name, SESSION_PAUSED, "to look");
	world_become(name, SESSION_ACTIVE, "");
	world_become(name, SESSION_KILLED, "enough");
	world_settle(r, USD(0.45));
	return world_ledger(name);
}

static void test_ledger_verifies(void **state)
{
	static const char *const KINDS[] = {
		"session_created", "action_allowed", "action_settled", "action_blocked",
		"violation",       "action_allowed", "budget_alert",   "session_paused",
		"session_resumed", "session_killed", "signature",      "action_settled",
		"signature",
	};
	auto_free char *text = full_ledger("ledger");
	struct json_doc doc = { 0 };
	const char *why = NULL;
	size_t i = 0;

	struct verify_result r = world_verify(text, strlen(text));
	assert_int_equal(r.state, VERIFY_COMPLETE);
	assert_true(r.ledger);
	assert_string_equal(r.run_id, world_id("ledger"));
	assert_int_equal(r.records, ARRAY_LEN(KINDS));
	for (char *at = text; *at != '\0'; i++) {
		char *end = strchr(at, '\n') + 1;
		assert_int_equal(json_read(&doc, at, (size_t)(end - at), &why), 0);
		const struct json_node *top = json_top(&doc);
		assert_string_equal(json_string(json_member(&doc, top, "kind"), ""), KINDS[i]);
		const struct json_node *snapshot = json_member(&doc, top, "snapshot");
		assert_int_equal(snapshot == NULL, strcmp(KINDS[i], "signature") == 0);
		at = end;
	}
	assert_int_equal(i, ARRAY_LEN(KINDS));
	json_doc_done(&doc);
	assert_non_null(strstr(text, "\"snapshot\":{\"state\":\"killed\",\"spent_usd\":0.300000,"
	                             "\"reserved_usd\":0.500000,\"actions\":2,\"violations\":1"));
	assert_non_null(strstr(text, "\"cost_usd\":0.450000,\"estimated_cost_usd\":0.500000,"
	                             "\"session_total_cost_usd\":0.750000"));
}

static void test_ledger_living(void **state)
{
	world_start("living", NULL, "");
	auto_free char *text = world_ledger("living");
	struct verify_result r = world_verify(text, strlen(text));
	assert_int_equal(r.state, VERIFY_INCOMPLETE);
}

static char *line_at(char *text, size_t n)
{
	while (n-- > 0) {
		text = strchr(text, '\n') + 1;
	}
	return text;
}

/* If any byte of the ledger is changed, verification fails. */
static void test_ledger_edited(void **state)
{
	auto_free char *text = full_ledger("edited");
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i += 7) {
		char was = text[i];
		text[i] = was == '0' ? '1' : '0';
		if (text[i] != was) {
			/* Without its newline the last line counts as missing. */
			assert_int_equal(world_verify(text, len).state,
			                 i + 1 < len ? VERIFY_BAD : VERIFY_INCOMPLETE);
		}
		text[i] = was;
	}
	assert_int_equal(world_verify(text, len).state, VERIFY_COMPLETE);
}

static void test_ledger_cut(void **state)
{
	auto_free char *text = full_ledger("cut");
	size_t len = strlen(text);
	size_t first = (size_t)(line_at(text, 11) - text); /* offset after the first signature */

	for (size_t n = 1; n < len; n += 5) {
		enum verify_state got = world_verify(text, n).state;
		assert_int_equal(got, n == first ? VERIFY_COMPLETE : VERIFY_INCOMPLETE);
	}
	/* If the ledger is cut before the late settlement, it is complete, because it ends with the
	 * first signature. */
	assert_int_equal(world_verify(text, first).state, VERIFY_COMPLETE);
	assert_int_equal(world_verify(text, (size_t)(line_at(text, 12) - text)).state,
	                 VERIFY_INCOMPLETE);
}

static void test_ledger_rearranged(void **state)
{
	auto_free char *text = full_ledger("order");
	auto_free char *other = full_ledger("other");
	size_t len = strlen(text);
	auto_buf out = BUF(1 << 20);

	/* one line is removed */
	buf_add(&out, text, (size_t)(line_at(text, 3) - text));
	buf_adds(&out, line_at(text, 4));
	assert_int_equal(world_verify(out.data, out.len).state, VERIFY_BAD);
	/* two lines are exchanged */
	buf_reset(&out);
	buf_add(&out, text, (size_t)(line_at(text, 3) - text));
	buf_add(&out, line_at(text, 4), (size_t)(line_at(text, 5) - line_at(text, 4)));
	buf_add(&out, line_at(text, 3), (size_t)(line_at(text, 4) - line_at(text, 3)));
	buf_adds(&out, line_at(text, 5));
	assert_int_equal(world_verify(out.data, out.len).state, VERIFY_BAD);
	/* the last lines are replaced by those of another ledger */
	buf_reset(&out);
	buf_add(&out, text, (size_t)(line_at(text, 9) - text));
	buf_adds(&out, line_at(other, 9));
	assert_int_equal(world_verify(out.data, out.len).state, VERIFY_BAD);
	/* the first signature is removed */
	buf_reset(&out);
	buf_add(&out, text, (size_t)(line_at(text, 10) - text));
	buf_adds(&out, line_at(text, 11));
	assert_int_equal(world_verify(out.data, out.len).state, VERIFY_BAD);
	/* the whole ledger twice, one after the other */
	buf_reset(&out);
	buf_add(&out, text, len);
	buf_add(&out, text, len);
	assert_int_equal(world_verify(out.data, out.len).state, VERIFY_BAD);
}

/* Without a key, a session can still be killed; a warning says that the ledger is not signed. */
static void test_kill_without_key(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	char path[160];
	char aside[176];

	auto_free char *made = full_ledger("made"); /* this kill creates the key */
	assert_non_null(made);
	snprintf(path, sizeof(path), "%s/trace.key", w.state_dir);
	snprintf(aside, sizeof(aside), "%s.aside", path);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	world_start("nokey", NULL, "");
	assert_int_equal(session_become(w.ss, world_id("nokey"), SESSION_KILLED, "", &d, &err), 0);
	assert_non_null(strstr(d.warning, "not signed"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(world_get("nokey").state, SESSION_KILLED);
	auto_free char *text = world_ledger("nokey");
	assert_int_equal(world_verify(text, strlen(text)).state, VERIFY_INCOMPLETE);
}

/* ---- copies -------------------------------------------------------------- */

static char *slurp(const char *path)
{
	struct buf out;
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(&out, 64 << 20);
	assert_true(fd >= 0);
	assert_int_equal(file_read_all(fd, &out), 0);
	return buf_steal(&out);
}

static void test_export(void **state)
{
	char yaml[256];
	char path[160];
	struct stat st;

	snprintf(yaml, sizeof(yaml), "audit:\n  export:\n    - file: %s/{session}.jsonl\n", w.dir);
	world_start("export", NULL, yaml);
	struct decision d = world_check("export", USD(0.4));
	assert_string_equal(d.warning, "");
	world_become("export", SESSION_COMPLETED, "");
	world_settle(d.reservation, USD(0.3));
	snprintf(path, sizeof(path), "%s/%s.jsonl", w.dir, world_id("export"));
	auto_free char *text = slurp(path);
	auto_free char *ledger = world_ledger("export");
	assert_string_equal(text, ledger);
	assert_int_equal(world_verify(text, strlen(text)).state, VERIFY_COMPLETE);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* A relative path of an export is below the state directory, not below the current directory. */
static void test_export_relative(void **state)
{
	char path[192];

	struct decision d =
	        world_start("relative", NULL, "audit:\n  export:\n    - file: sub/all.jsonl\n");
	assert_string_equal(d.warning, "");
	snprintf(path, sizeof(path), "%s/exports/sub/all.jsonl", w.state_dir);
	auto_free char *text = slurp(path);
	assert_non_null(strstr(text, "session_created"));
}

static void test_export_fails(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	char yaml[256];
	char path[160];

	snprintf(path, sizeof(path), "%s/link", w.dir);
	assert_int_equal(symlink("elsewhere", path), 0);
	snprintf(yaml, sizeof(yaml), "audit:\n  export:\n    - file: %s\n", path);
	d = world_start("badexport", NULL, yaml);
	assert_non_null(strstr(d.warning, "cannot write the ledger"));
	assert_int_equal(session_become(w.ss, world_id("badexport"), SESSION_KILLED, "x", &d, &err),
	                 0);
	assert_non_null(strstr(d.warning, "cannot write the ledger"));
	assert_int_equal(d.state, SESSION_KILLED);
	snprintf(path, sizeof(path), "%s/elsewhere", w.dir);
	assert_int_equal(access(path, F_OK), -1);
	/* With audit disabled, no file is written and there is no warning. */
	snprintf(yaml, sizeof(yaml), "audit:\n  enabled: false\n  export:\n    - file: %s/no\n",
	         w.dir);
	d = world_start("noexport", NULL, yaml);
	assert_string_equal(d.warning, "");
	snprintf(path, sizeof(path), "%s/no", w.dir);
	assert_int_equal(access(path, F_OK), -1);
}

/* Makes a session with `n` reservations that all have timed out, but are still open in the
 * store. */
static void make_due(const char *name, int64_t n)
{
	struct ssb_error err = { 0 };
	char action[STORE_TEXT];

	memset(action, '"', sizeof(action) - 1);
	action[sizeof(action) - 1] = '\0';
	assert_int_equal(db_begin(w.ss->db, &err), 0);
	assert_int_equal(db_run(w.ss->db,
	                        "INSERT INTO reservations (n, session, root, action, amount, made,"
	                        " expires, state) WITH RECURSIVE i(n) AS (SELECT CAST(1 AS BIGINT)"
	                        " UNION ALL SELECT i.n + 1 FROM i WHERE i.n < $1) SELECT"
	                        " s.n * 1000000 + i.n, s.n, s.root, CAST($2 AS TEXT), 0, s.created,"
	                        " s.created, 0 FROM sessions s, i WHERE s.id = $3",
	                        DB_ARGS(DB_I(n), DB_T(action), DB_T(world_id(name))), NULL, NULL,
	                        &err),
	                 0);
	assert_int_equal(db_run(w.ss->db, "UPDATE sessions SET due = created WHERE id = $1",
	                        DB_ARGS(DB_T(world_id(name))), NULL, NULL, &err),
	                 0);
	assert_int_equal(db_commit(w.ss->db, &err), 0);
}

/* Reads the session again and again until the copy no longer grows. Then the copy must equal the
 * ledger. Returns its length. */
static size_t catches_up(const char *name, const char *path)
{
	struct stat st = { 0 };

	for (off_t before = -1; st.st_size != before;) {
		before = st.st_size;
		(void)world_get(name);
		assert_int_equal(stat(path, &st), 0);
	}
	auto_free char *text = slurp(path);
	auto_free char *ledger = world_ledger(name);
	assert_int_equal(strlen(text), strlen(ledger));
	assert_int_equal(memcmp(text, ledger, strlen(text)), 0);
	return strlen(text);
}

/* The copy cannot grow (as on a full disk): the missing lines are written later. */
static void test_export_full(void **state)
{
	const struct rlimit full = { 1L << 30, RLIM_INFINITY };
	struct rlimit before;
	struct stat st;
	char yaml[256];
	char path[160];

	snprintf(yaml, sizeof(yaml), "audit:\n  export:\n    - file: %s/{session}.jsonl\n", w.dir);
	world_start("full", NULL, yaml);
	snprintf(path, sizeof(path), "%s/%s.jsonl", w.dir, world_id("full"));
	for (int i = 0; i < 2; i++) { /* in turn 2, the copy lacks the lines of turn 1, too */
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(truncate(path, (1L << 30) - 10), 0);
		assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
		(void)signal(SIGXFSZ, SIG_IGN);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
		struct decision d = world_check("full", USD(0.1));
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_non_null(strstr(d.warning, "cannot write the ledger"));
		assert_int_equal(truncate(path, st.st_size), 0);
	}
	(void)catches_up("full", path);
	struct decision d = world_check("full", USD(0.1));
	assert_string_equal(d.warning, "");
	(void)catches_up("full", path);
}

static void test_export_much_at_once(void **state)
{
	char yaml[256];
	char path[160];

	snprintf(yaml, sizeof(yaml), "audit:\n  export:\n    - file: %s/{session}.jsonl\n", w.dir);
	world_start("much", NULL, yaml);
	snprintf(path, sizeof(path), "%s/%s.jsonl", w.dir, world_id("much"));
	make_due("much", 20000);
	struct decision d = world_check("much", USD(0.1));
	assert_non_null(strstr(d.warning, "more lines than one call can write"));
	assert_true(catches_up("much", path) > 16 << 20);
}

/* The copy is locked while many long lines are added to the ledger. Later they are written to the
 * copy in several parts, because one part cannot contain them. At the end, all of them are in the
 * copy. */
static void test_export_behind_much(void **state)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	char details[STORE_DETAILS];
	char yaml[256];
	char path[160];

	memset(details, 1, sizeof(details) - 1);
	details[sizeof(details) - 1] = '\0';
	snprintf(yaml, sizeof(yaml), "audit:\n  export:\n    - file: %s/{session}.jsonl\n", w.dir);
	world_start("behind", NULL, yaml);
	snprintf(path, sizeof(path), "%s/%s.jsonl", w.dir, world_id("behind"));
	auto_fd held = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
	for (int i = 0; i < 800; i++) {
		assert_int_equal(
		        session_violation(w.ss, world_id("behind"), "other", details, &d, &err), 0);
		assert_non_null(strstr(d.warning, "another process has locked it"));
	}
	assert_int_equal(flock(held, LOCK_UN), 0);
	(void)catches_up("behind", path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ledger_living),
		cmocka_unit_test(test_ledger_verifies),
		cmocka_unit_test(test_ledger_edited),
		cmocka_unit_test(test_ledger_cut),
		cmocka_unit_test(test_ledger_rearranged),
		cmocka_unit_test(test_kill_without_key),
		cmocka_unit_test(test_export),
		cmocka_unit_test(test_export_relative),
		cmocka_unit_test(test_export_fails),
		cmocka_unit_test(test_export_full),
		cmocka_unit_test(test_export_much_at_once),
		cmocka_unit_test(test_export_behind_much),
	};

	return ON_EACH_STORE(tests, open_world);
}
