/* What is kept of a session beside its sums: the ledger and its copies, runs and
 * what they use, messages to the owner; and what a damaged store does. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "audit/key.h"
#include "audit/verify.h"
#include "base/json_read.h"
#include "os/file.h"
#include "session_world.h"

#define USD(x) ((micros)((x)*1000000 + 0.5))

static struct world w;

static struct verify_result verify(const char *text, size_t len)
{
	struct verify_result r = { 0 };
	uint8_t key[ED25519_PUBLIC];
	struct ssb_error err = { 0 };
	auto_fd fd = memfd_create("ledger", MFD_CLOEXEC);

	/* Before the first signature there is no key; then nothing is complete. */
	bool known = trace_key_public(&w.owner, key, &err) == 0;
	struct verify_ask ask = { known ? key : NULL, "" };
	assert_int_equal(file_write_all(fd, text, len), 0);
	assert_int_equal(verify_record(fd, &ask, &r, NULL), 0);
	return r;
}

static void become(const char *name, enum session_state to, const char *reason)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	if (session_become(w.ss, world_id(&w, name), to, reason, &d, &err) != 0) {
		fail_msg("%s", err.text);
	}
}

/* ---- the ledger ---------------------------------------------------------- */

/* A session with something of everything, killed, and billed afterwards. */
static char *full_ledger(const char *name)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start(&w, name, NULL, "budget:\n  max_cost_per_session: 1\n  on_exceed: block\n");
	d = world_check(&w, name, USD(0.4));
	world_settle(&w, d.reservation, USD(0.3));
	assert_false(world_check(&w, name, USD(0.5) + 1).verdict.allowed);
	assert_int_equal(session_violation(w.ss, world_id(&w, name), "pii_blocked",
	                                   "a \"name\"\n\xff", &d, &err),
	                 0);
	int64_t r = world_check(&w, name, USD(0.5)).reservation;
	become(name, SESSION_PAUSED, "to look");
	become(name, SESSION_ACTIVE, "");
	become(name, SESSION_KILLED, "enough");
	world_settle(&w, r, USD(0.45));
	return world_ledger(&w, name);
}

static void test_ledger_verifies(void **state)
{
	(void)state;
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

	struct verify_result r = verify(text, strlen(text));
	assert_int_equal(r.state, VERIFY_COMPLETE);
	assert_true(r.ledger);
	assert_string_equal(r.run_id, world_id(&w, "ledger"));
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
	(void)state;
	world_start(&w, "living", NULL, "");
	auto_free char *text = world_ledger(&w, "living");
	struct verify_result r = verify(text, strlen(text));
	assert_int_equal(r.state, VERIFY_INCOMPLETE);
}

static char *line_at(char *text, size_t n)
{
	while (n-- > 0) {
		text = strchr(text, '\n') + 1;
	}
	return text;
}

/* No byte can be another one. */
static void test_ledger_edited(void **state)
{
	(void)state;
	auto_free char *text = full_ledger("edited");
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i += 7) {
		char was = text[i];
		text[i] = was == '0' ? '1' : '0';
		if (text[i] != was) {
			/* Without its newline the last line is not there yet. */
			assert_int_equal(verify(text, len).state,
			                 i + 1 < len ? VERIFY_BAD : VERIFY_INCOMPLETE);
		}
		text[i] = was;
	}
	assert_int_equal(verify(text, len).state, VERIFY_COMPLETE);
}

static void test_ledger_cut(void **state)
{
	(void)state;
	auto_free char *text = full_ledger("cut");
	size_t len = strlen(text);
	size_t first = (size_t)(line_at(text, 11) - text); /* behind the first signature */

	for (size_t n = 1; n < len; n += 5) {
		enum verify_state got = verify(text, n).state;
		assert_int_equal(got, n == first ? VERIFY_COMPLETE : VERIFY_INCOMPLETE);
	}
	/* As it was before the bill came: honest, and older. */
	assert_int_equal(verify(text, first).state, VERIFY_COMPLETE);
	assert_int_equal(verify(text, (size_t)(line_at(text, 12) - text)).state, VERIFY_INCOMPLETE);
}

static void test_ledger_rearranged(void **state)
{
	(void)state;
	auto_free char *text = full_ledger("order");
	auto_free char *other = full_ledger("other");
	size_t len = strlen(text);
	auto_buf out;

	buf_init(&out, 1 << 20);
	/* a line left out */
	buf_add(&out, text, (size_t)(line_at(text, 3) - text));
	buf_adds(&out, line_at(text, 4));
	assert_int_equal(verify(out.data, out.len).state, VERIFY_BAD);
	/* two lines exchanged */
	buf_reset(&out);
	buf_add(&out, text, (size_t)(line_at(text, 3) - text));
	buf_add(&out, line_at(text, 4), (size_t)(line_at(text, 5) - line_at(text, 4)));
	buf_add(&out, line_at(text, 3), (size_t)(line_at(text, 4) - line_at(text, 3)));
	buf_adds(&out, line_at(text, 5));
	assert_int_equal(verify(out.data, out.len).state, VERIFY_BAD);
	/* the end of another */
	buf_reset(&out);
	buf_add(&out, text, (size_t)(line_at(text, 9) - text));
	buf_adds(&out, line_at(other, 9));
	assert_int_equal(verify(out.data, out.len).state, VERIFY_BAD);
	/* the first signature left out, and with it what follows it */
	buf_reset(&out);
	buf_add(&out, text, (size_t)(line_at(text, 10) - text));
	buf_adds(&out, line_at(text, 11));
	assert_int_equal(verify(out.data, out.len).state, VERIFY_BAD);
	/* twice */
	buf_reset(&out);
	buf_add(&out, text, len);
	buf_add(&out, text, len);
	assert_int_equal(verify(out.data, out.len).state, VERIFY_BAD);
}

/* Without a key a kill is as good; it says that nothing is signed. */
static void test_kill_without_key(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	char path[160];
	char aside[176];

	auto_free char *made = full_ledger("made"); /* there is a key now */
	assert_non_null(made);
	snprintf(path, sizeof(path), "%s/trace.key", w.state_dir);
	snprintf(aside, sizeof(aside), "%s.aside", path);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	world_start(&w, "nokey", NULL, "");
	assert_int_equal(session_become(w.ss, world_id(&w, "nokey"), SESSION_KILLED, "", &d, &err),
	                 0);
	assert_non_null(strstr(d.warning, "not signed"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(world_get(&w, "nokey").state, SESSION_KILLED);
	auto_free char *text = world_ledger(&w, "nokey");
	assert_int_equal(verify(text, strlen(text)).state, VERIFY_INCOMPLETE);
}

/* ---- copies -------------------------------------------------------------- */

static char *slurp(const char *path)
{
	struct buf out;
	auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(&out, 1 << 20);
	assert_true(fd >= 0);
	assert_int_equal(file_read_all(fd, &out), 0);
	return buf_steal(&out);
}

static void test_export(void **state)
{
	(void)state;
	char yaml[256];
	char path[160];
	struct stat st;

	snprintf(yaml, sizeof(yaml), "audit:\n  export:\n    - file: %s/{session}.jsonl\n", w.dir);
	world_start(&w, "export", NULL, yaml);
	struct decision d = world_check(&w, "export", USD(0.4));
	assert_string_equal(d.warning, "");
	become("export", SESSION_COMPLETED, "");
	world_settle(&w, d.reservation, USD(0.3));
	snprintf(path, sizeof(path), "%s/%s.jsonl", w.dir, world_id(&w, "export"));
	auto_free char *text = slurp(path);
	auto_free char *ledger = world_ledger(&w, "export");
	assert_string_equal(text, ledger);
	assert_int_equal(verify(text, strlen(text)).state, VERIFY_COMPLETE);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* Beneath the state directory, whatever directory one is in. */
static void test_export_relative(void **state)
{
	(void)state;
	char path[192];

	struct decision d =
	        world_start(&w, "relative", NULL, "audit:\n  export:\n    - file: sub/all.jsonl\n");
	assert_string_equal(d.warning, "");
	snprintf(path, sizeof(path), "%s/exports/sub/all.jsonl", w.state_dir);
	auto_free char *text = slurp(path);
	assert_non_null(strstr(text, "session_created"));
}

static void test_export_fails(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	char yaml[256];
	char path[160];

	snprintf(path, sizeof(path), "%s/link", w.dir);
	assert_int_equal(symlink("elsewhere", path), 0);
	snprintf(yaml, sizeof(yaml), "audit:\n  export:\n    - file: %s\n", path);
	d = world_start(&w, "badexport", NULL, yaml);
	assert_non_null(strstr(d.warning, "cannot write the ledger"));
	assert_int_equal(
	        session_become(w.ss, world_id(&w, "badexport"), SESSION_KILLED, "x", &d, &err), 0);
	assert_non_null(strstr(d.warning, "cannot write the ledger"));
	assert_int_equal(d.state, SESSION_KILLED);
	snprintf(path, sizeof(path), "%s/elsewhere", w.dir);
	assert_int_equal(access(path, F_OK), -1);
	/* Switched off: no file, no warning. */
	snprintf(yaml, sizeof(yaml), "audit:\n  enabled: false\n  export:\n    - file: %s/no\n",
	         w.dir);
	d = world_start(&w, "noexport", NULL, yaml);
	assert_string_equal(d.warning, "");
	snprintf(path, sizeof(path), "%s/no", w.dir);
	assert_int_equal(access(path, F_OK), -1);
}

/* ---- runs ---------------------------------------------------------------- */

static int count_run(void *arg, const struct session_run *r)
{
	assert_string_equal(r->host, "here");
	*(size_t *)arg += 1;
	return 0;
}

static size_t live_runs(const char *name)
{
	struct ssb_error err = { 0 };
	size_t n = 0;

	assert_int_equal(session_runs(w.ss, world_id(&w, name), count_run, &n, &err), 0);
	return n;
}

static struct session_run begin(const char *name, bool allowed)
{
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct session_run run = { .host = "here", .boot_id = "b", .keeper = 7, .socket = "s" };

	if (session_run_begin(w.ss, world_id(&w, name), &run, &d, &err) != 0) {
		fail_msg("%s", err.text);
	}
	assert_int_equal(d.verdict.allowed, allowed);
	assert_int_equal(run.n != 0, allowed);
	return run;
}

static void test_runs(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };

	world_start(&w, "runs", NULL, "limits:\n  runs:\n    max: 2\n    on_exceed: block\n");
	world_start(&w, "runs-in", "runs", "");
	struct session_run a = begin("runs", true);
	struct session_run b = begin("runs-in", true);
	begin("runs-in", false); /* the parent's limit */
	assert_int_equal(live_runs("runs"), 2);
	assert_int_equal(live_runs("runs-in"), 1);
	a.init = 12;
	a.init_start = 34;
	assert_int_equal(session_run_placed(w.ss, &a, &err), 0);
	assert_int_equal(session_run_end(w.ss, &a, 3, "exited", &err), 0);
	assert_int_equal(live_runs("runs"), 1);
	/* Once; also when two see it. */
	assert_int_equal(session_run_end(w.ss, &a, 4, "exited", &err), 0);
	assert_int_equal(world_lines(&w, "runs", "run_ended"), 1);
	assert_int_equal(session_run_placed(w.ss, &a, &err), -1);
	become("runs", SESSION_KILLED, "");
	begin("runs-in", false);
	assert_int_equal(session_run_end(w.ss, &b, 125, "session", &err), 0);
	assert_int_equal(live_runs("runs"), 0);
	assert_int_equal(world_get(&w, "runs").meters[METER_RUNS], 2);
	auto_free char *text = world_ledger(&w, "runs-in");
	assert_int_equal(verify(text, strlen(text)).state, VERIFY_COMPLETE);
}

static void test_usage(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	static const char *const DOMAINS[] = { "a.example", "b.example", "a.example" };

	world_start(&w, "used", NULL,
	            "limits:\n  bytes_out:\n    max: 1000\n    on_exceed: kill\n"
	            "  domains:\n    max: 2\n    on_exceed: pause\n");
	world_start(&w, "used-in", "used", "");
	struct session_run run = begin("used-in", true);
	struct session_usage u = { .meters = { [METER_BYTES_OUT] = 700, [METER_CPU_MS] = 1500 },
		                   .domains = DOMAINS,
		                   .n_domains = 3 };
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(d.after.meters[METER_BYTES_OUT], 700);
	assert_int_equal(d.after.meters[METER_DOMAINS], 2);
	assert_int_equal(world_get(&w, "used").meters[METER_DOMAINS], 2);
	/* Nothing new: not even a line. */
	u = (struct session_usage){ 0 };
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(world_lines(&w, "used-in", "usage"), 1);
	u.domains = DOMAINS;
	u.n_domains = 1;
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(d.after.meters[METER_DOMAINS], 2);
	u = (struct session_usage){ .meters = { [METER_BYTES_OUT] = 301 } };
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_false(d.verdict.allowed);
	assert_string_equal(d.decided, world_id(&w, "used"));
	assert_int_equal(d.verdict.act, ACT_KILL);
	assert_true(d.changed);
	assert_int_equal(d.after.state, SESSION_KILLED);
	auto_free char *text = world_ledger(&w, "used-in");
	assert_non_null(strstr(text, "\"used\":{\"cpu_seconds\":1.500,\"bytes_out\":700}"));
}

/* Many violations at once act as one after the other would. */
static void test_usage_violations(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct session_usage u = { .violations = { { "file_blocked", 5 },
		                                   { "credential_harvesting", 2 } },
		                   .n_violations = 2,
		                   .all_violations = 5 };

	world_start(&w, "classes", NULL,
	            "violations:\n  thresholds:\n    file_blocked: 3\n    stepped_over: 3\n"
	            "  on_threshold: alert\n"
	            "limits:\n  violations:\n    credential_harvesting:\n      max: 2\n"
	            "      on_exceed: kill\nkill_switch:\n  notify:\n"
	            "    - webhook: http://127.0.0.1:1/x\n");
	struct session_run run = begin("classes", true);
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(d.after.state, SESSION_ALERT);
	assert_true(d.notify);
	assert_int_equal(d.after.violations, 5);
	/* It is alert already: stepping over the number is told all the same, once. */
	u = (struct session_usage){ .violations = { { "stepped_over", 5 } }, .n_violations = 1 };
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_true(d.notify);
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_false(d.notify);
	u.n_violations = 0;
	u.violations[u.n_violations].name = "credential_harvesting";
	u.violations[u.n_violations++].n = 1;
	assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	assert_int_equal(d.state, SESSION_KILLED);
}

/* An agent that makes up names fills no store. */
static int last_count(void *arg, const char *name, uint64_t n)
{
	struct {
		size_t kinds;
		uint64_t others;
	} *q = arg;

	q->kinds++;
	q->others = strcmp(name, "other") == 0 ? n : q->others;
	return 0;
}

static void test_counts_are_capped(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	struct {
		size_t kinds;
		uint64_t others;
	} q = { 0 };

	world_start(&w, "made-up", NULL, "violations:\n  thresholds:\n    real: 1\n");
	for (int i = 0; i < STORE_MAX_COUNTS + 3; i += 32) {
		struct session_usage u = { .n_violations = 32, .all_violations = 32 };
		struct session_run run = { .n = 1 };
		char names[32][24];
		snprintf(run.session, sizeof(run.session), "%s", world_id(&w, "made-up"));
		for (int k = 0; k < 32; k++) {
			snprintf(names[k], sizeof(names[k]), "kind%d", i + k);
			u.violations[k].name = names[k];
			u.violations[k].n = 1;
		}
		assert_int_equal(session_run_used(w.ss, &run, &u, &d, &err), 0);
	}
	assert_int_equal(session_counts(w.ss, world_id(&w, "made-up"), last_count, &q, &err), 0);
	assert_int_equal(q.kinds, STORE_MAX_COUNTS + 1);
	assert_int_equal(q.others, 32);
	/* What the policy names is counted as itself. */
	assert_int_equal(session_violation(w.ss, world_id(&w, "made-up"), "real", NULL, &d, &err),
	                 0);
	assert_int_equal(d.state, SESSION_KILLED);
}

/* ---- messages ------------------------------------------------------------ */

static bool take_mine(struct outbox_item *ret)
{
	struct ssb_error err = { 0 };

	for (int i = 0; i < 1000; i++) {
		int got = outbox_take(w.ss, 60000, ret, &err);
		assert_int_not_equal(got, -1);
		if (got == 0) {
			return false;
		}
		if (strncmp(ret->session, w.prefix, strlen(w.prefix)) == 0 &&
		    strstr(ret->session, "outbox") != NULL) {
			return true;
		}
		outbox_item_done(ret); /* of another test: leased, and left */
	}
	fail_msg("the same message is given out again and again");
	return false;
}

static void test_outbox(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };
	struct outbox_item item = { 0 };

	world_now = 2000000000 * SECOND;
	world_start(&w, "outbox", NULL,
	            "kill_switch:\n  notify:\n    - webhook: https://h.example/secret/path\n");
	assert_false(take_mine(&item));
	become("outbox", SESSION_KILLED, "be gone");
	assert_true(take_mine(&item));
	assert_non_null(strstr(item.body, "\"event\":\"session_killed\""));
	assert_non_null(strstr(item.body, "\"reason\":\"be gone\""));
	assert_string_equal(item.url, "https://h.example/secret/path");
	struct outbox_item second = { 0 };
	assert_false(take_mine(&second)); /* leased */
	assert_int_equal(outbox_done(w.ss, &item, 503, "busy", 30000, &err), 0);
	outbox_item_done(&item);
	assert_false(take_mine(&item)); /* not due */
	world_now += 30 * SECOND;
	assert_true(take_mine(&item));
	assert_int_equal(item.tries, 1);
	/* Whoever took it and died: it comes again when the lease is over. */
	outbox_item_done(&item);
	world_now += 60 * SECOND;
	assert_true(take_mine(&item));
	assert_int_equal(outbox_done(w.ss, &item, 200, NULL, 0, &err), 0);
	assert_int_equal(outbox_done(w.ss, &item, 200, NULL, 0, &err), -1);
	outbox_item_done(&item);
	world_now += 3600 * SECOND;
	assert_false(take_mine(&item));
	auto_free char *text = world_ledger(&w, "outbox");
	assert_non_null(
	        strstr(text, "\"status\":\"retry\",\"status_code\":503,\"error\":\"busy\""));
	assert_non_null(strstr(text, "\"url\":\"https://h.example\",\"event\":\"session_killed\","
	                             "\"status\":\"sent\""));
	assert_null(strstr(text, "secret"));
	assert_int_equal(verify(text, strlen(text)).state, VERIFY_COMPLETE);
	world_now = 0;
}

/* ---- damage -------------------------------------------------------------- */

static void test_damage(void **state)
{
	(void)state;
	static const char *const DAMAGE[] = {
		"UPDATE sessions SET state = 6 WHERE id = $1",
		"UPDATE sessions SET state = -1 WHERE id = $1",
		"UPDATE sessions SET spent = -1 WHERE id = $1",
		"UPDATE sessions SET reserved = 9223372036854775807 WHERE id = $1",
		"UPDATE sessions SET actions = -5 WHERE id = $1",
		"UPDATE sessions SET bytes_in = -5 WHERE id = $1",
		"UPDATE sessions SET hash = 'xyz' WHERE id = $1",
		"UPDATE sessions SET seq = -1 WHERE id = $1",
		"UPDATE sessions SET policy = 'none' WHERE id = $1",
		"UPDATE sessions SET depth = 3 WHERE id = $1",
		"UPDATE sessions SET parent = n WHERE id = $1",
		"UPDATE sessions SET parent = 999999999 WHERE id = $1",
		"UPDATE sessions SET root = root + 1 WHERE id = $1",
		"UPDATE sessions SET created = -1 WHERE id = $1",
		"UPDATE sessions SET alerted = 2 WHERE id = $1",
	};

	for (size_t i = 0; i < ARRAY_LEN(DAMAGE); i++) {
		struct ssb_error err = { 0 };
		struct decision d = { 0 };
		char name[24];
		snprintf(name, sizeof(name), "damage%zu", i);
		world_start(&w, name, NULL, "session:\n  max_duration: 1h\n");
		assert_true(world_check(&w, name, 1).verdict.allowed);
		assert_int_equal(db_begin(w.ss->db, &err), 0);
		assert_int_equal(db_run(w.ss->db, DAMAGE[i], DB_ARGS(DB_T(world_id(&w, name))),
		                        NULL, NULL, &err),
		                 0);
		assert_int_equal(db_changes(w.ss->db), 1);
		assert_int_equal(db_commit(w.ss->db, &err), 0);
		assert_int_equal(session_check(w.ss, world_id(&w, name), "x", 1, &d, &err), -1);
		assert_int_equal(err.code, SSB_E_SYS);
		assert_non_null(strstr(err.text, "damaged"));
		assert_null(d.verdict.code);
	}
}

/* A child that is damaged does not keep the tree alive. */
static void test_damaged_child(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };

	world_start(&w, "dp", NULL, "");
	world_start(&w, "dc", "dp", "");
	world_start(&w, "dd", "dp", "");
	assert_int_equal(db_begin(w.ss->db, &err), 0);
	assert_int_equal(db_run(w.ss->db, "UPDATE sessions SET spent = -1 WHERE id = $1",
	                        DB_ARGS(DB_T(world_id(&w, "dc"))), NULL, NULL, &err),
	                 0);
	assert_int_equal(db_commit(w.ss->db, &err), 0);
	become("dp", SESSION_KILLED, "");
	assert_int_equal(world_get(&w, "dd").state, SESSION_KILLED);
	auto_free char *text = world_ledger(&w, "dp");
	assert_non_null(strstr(text, "\"damaged_descendants\":1"));
}

/* The policy that a session began with is the one it has. */
static void test_policy_is_its_own(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };
	struct decision d = { 0 };

	world_start(&w, "policy", NULL, "budget:\n  max_cost_per_session: 0.125\n");
	assert_int_equal(db_begin(w.ss->db, &err), 0);
	assert_int_equal(db_run(w.ss->db, "UPDATE policies SET source = $1 WHERE source = $2",
	                        DB_ARGS(DB_T("budget:\n  max_cost_per_session: 1000\n"),
	                                DB_T("budget:\n  max_cost_per_session: 0.125\n")),
	                        NULL, NULL, &err),
	                 0);
	assert_int_equal(db_changes(w.ss->db), 1);
	assert_int_equal(db_commit(w.ss->db, &err), 0);
	world_reopen(&w);
	assert_int_equal(session_check(w.ss, world_id(&w, "policy"), "x", 1, &d, &err), -1);
	assert_non_null(strstr(err.text, "policy"));
	err = (struct ssb_error){ 0 };
	assert_int_equal(db_begin(w.ss->db, &err), 0);
	assert_int_equal(db_run(w.ss->db, "UPDATE policies SET source = $1 WHERE source = $2",
	                        DB_ARGS(DB_T("budget:\n  max_cost_per_session: 0.125\n"),
	                                DB_T("budget:\n  max_cost_per_session: 1000\n")),
	                        NULL, NULL, &err),
	                 0);
	assert_int_equal(db_commit(w.ss->db, &err), 0);
	assert_false(world_check(&w, "policy", USD(0.2)).verdict.allowed);
}

static void test_texts(void **state)
{
	(void)state;
	struct ssb_error err = { 0 };
	struct decision d = { 0 };
	char longest[STORE_TEXT + 1];
	static const char *const BAD[] = { "", "a\nb", "\xff", "\xed\xa0\x80", "a\x7f" };

	world_start(&w, "texts", NULL, "");
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		err = (struct ssb_error){ 0 };
		assert_int_equal(session_check(w.ss, world_id(&w, "texts"), BAD[i], 1, &d, &err),
		                 -1);
		assert_int_equal(err.code, SSB_E_USAGE);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[STORE_TEXT] = '\0';
	assert_int_equal(session_check(w.ss, world_id(&w, "texts"), longest, 1, &d, &err), -1);
	longest[STORE_TEXT - 1] = '\0';
	err = (struct ssb_error){ 0 };
	assert_int_equal(session_check(w.ss, world_id(&w, "texts"), longest, 1, &d, &err), 0);
	assert_int_equal(session_check(w.ss, "../x", "a", 1, &d, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
}

static const char *store; /* NULL: SQLite */

static int open_world(void **state)
{
	(void)state;
	world_open(&w, store);
	return 0;
}

static int close_world(void **state)
{
	(void)state;
	world_close(&w);
	return 0;
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
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_usage_violations),
		cmocka_unit_test(test_counts_are_capped),
		cmocka_unit_test(test_outbox),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_damaged_child),
		cmocka_unit_test(test_policy_is_its_own),
		cmocka_unit_test(test_texts),
	};

	int failed = cmocka_run_group_tests_name("SQLite", tests, open_world, close_world);
	store = getenv("SSB_TEST_POSTGRES");
	if (store != NULL) {
		failed += cmocka_run_group_tests_name("PostgreSQL", tests, open_world, close_world);
	}
	return failed;
}
