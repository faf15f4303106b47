/* test_classes.c - threat classes: the tables are consistent, each rule matches the event for which
 * it was made, and several events together give further classes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "trace/classes.h"
#include "egress/dial.h"
#include "egress/broker_priv.h"
#include "base/own.h"

#define HOME "/home/a"

static struct bytes text(const char *s)
{
	return (struct bytes){ s, s != NULL ? strlen(s) : 0 };
}

static struct event denied(const char *op, const char *path, const char *mode, const char *reason)
{
	return (struct event){ .kind = EV_FILE_BLOCKED,
		               .status = STATUS_DENIED,
		               .violation = true,
		               .op = op_from(op),
		               .path = text(path),
		               .mode = mode_from(mode),
		               .reason = reason_from(reason) };
}

static struct event blocked(const char *name, const char *address, const char *protocol,
                            const char *reason)
{
	return (struct event){ .kind = EV_NETWORK_EGRESS_BLOCKED,
		               .violation = true,
		               .op = OP_CONNECT,
		               .name = name,
		               .address = address,
		               .protocol = event_protocol_from(protocol),
		               .reason = reason_from(reason) };
}

static struct event call(const char *name, const char *reason)
{
	return (struct event){ .kind = EV_SYSCALL_BLOCKED,
		               .status = STATUS_DENIED,
		               .violation = true,
		               .op = op_from(name),
		               .call = name,
		               .reason = reason_from(reason) };
}

static void expect(const struct event *e, const char *class, const char *technique)
{
	struct class_verdict v = classes_of(e, HOME);

	assert_string_equal(v.id == CLASS_NONE ? "none" : CLASSES[v.id].name, class);
	if (v.id == CLASS_NONE || technique == NULL) {
		assert_null(v.technique);
		return;
	}
	assert_string_equal(v.technique, technique);
	assert_non_null(strstr(CLASSES[v.id].techniques, technique));
}

static void test_table(void **state)
{
	enum class_severity least = SEVERITY_CRITICAL;

	for (size_t i = 0; i < CLASS_COUNT; i++) {
		const struct class_info *c = &CLASSES[i];
		assert_true(c->name && c->description && c->prevented_by && c->tactic);
		assert_int_equal(strncmp(c->techniques, "T1", 2), 0);
		assert_in_range(c->severity, SEVERITY_LOW, least); /* most severe first */
		assert_int_equal(classes_severity_from(classes_severity_name(c->severity)),
		                 c->severity);
		least = c->severity;
	}
}

static void test_files(void **state)
{
	static const struct {
		const char *op, *path, *mode, *reason, *class, *technique;
	} ROWS[] = {
		{ "open", HOME "/.ssh/id_rsa", "read", "credential_store", "credential_harvesting",
		  "T1552.004" },
		{ "open", HOME "/.mozilla/firefox", "read", "credential_store",
		  "credential_harvesting", "T1555.003" },
		{ "open", "/etc/shadow", "read", "credential_store", "credential_harvesting",
		  "T1003.008" },
		{ "open", HOME "/.bash_history", "read", "credential_store",
		  "credential_harvesting", "T1552.003" },
		{ "open", HOME "/.aws/credentials", "read", "credential_store",
		  "credential_harvesting", "T1552.001" },
		{ "open", "/home/b/.ssh/id_rsa", "read", "other_home", "credential_harvesting",
		  "T1552.004" },
		{ "open", "/srv/app/.env", "read", "outside_plan", "credential_harvesting",
		  "T1552.001" },
		{ "open", "/proc/1/environ", "read", "other_process", "credential_harvesting",
		  "T1003.007" },
		{ "connect", "/run/docker.sock", NULL, "host_service", "sandbox_evasion", "T1611" },
		{ "open", "/home", "read", "other_home", "discovery", "T1083" },
		{ "open", "/home/b/notes", "read", "other_home", "unauthorized_file_access",
		  "T1005" },
		{ "open", "/homestead", "read", "outside_plan", "unauthorized_file_access",
		  "T1005" },
		{ "exec", "/opt/x", NULL, "outside_plan", "unauthorized_file_access", "T1005" },
		{ "unlink", "/usr/bin/env", NULL, "read_only", "unauthorized_file_access",
		  "T1565.001" },
		{ "open", "/etc/cron.d/x", "create", "outside_plan", "persistence", "T1053.003" },
		{ "open", "/etc/ld.so.preload", "append", "outside_plan", "persistence",
		  "T1574.006" },
		{ "open", "/home/b/.ssh/authorized_keys", "append", "other_home", "persistence",
		  "T1098.004" },
		{ "open", "/home/a/p/.git/hooks/pre-commit", "create", "read_only", "persistence",
		  "T1546" },
		{ "open", "/home/a/p/.git/hooksmith", "create", "read_only",
		  "unauthorized_file_access", "T1565.001" },
		{ "open", HOME "/.ssh/config", "create", "read_only", "persistence", "T1098.004" },
		{ "open", "/skill/log", "create", "read_only", "none", NULL },
		{ "open", "/skills/log", "create", "read_only", "unauthorized_file_access",
		  "T1565.001" },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		struct event e = denied(ROWS[i].op, ROWS[i].path, ROWS[i].mode, ROWS[i].reason);
		expect(&e, ROWS[i].class, ROWS[i].technique);
		e.violation = false; /* an event that is not a violation has no class */
		expect(&e, "none", NULL);
	}
}

static void test_network_and_calls(void **state)
{
	static const char label[] = "pmrgk3twnfzg63tnmvxhiir2eb5x2lbaejzxg2bnnnsxs4.0.evil.test";
	static const struct {
		const char *name, *address, *protocol, *reason, *class, *technique;
	} WAYS[] = {
		{ "evil.test", NULL, "dns", "not_declared", "data_exfiltration", "T1567" },
		{ label, NULL, "dns", "not_declared", "data_exfiltration", "T1048.003" },
		{ NULL, "203.0.113.9", "tcp", "undeclared_address", "command_and_control",
		  "T1071" },
		{ NULL, "203.0.113.9", "udp", "undeclared_address", "command_and_control",
		  "T1095" },
		{ NULL, "169.254.169.254", "tcp", "undeclared_address", "credential_harvesting",
		  "T1552.005" },
		{ NULL, "192.168.0.9", "tcp", "undeclared_address", "discovery", "T1046" },
		{ NULL, "fd12::1", "tcp", "undeclared_address", "discovery", "T1046" },
		{ "a.test", NULL, "tcp", "undeclared_port", "command_and_control", "T1571" },
		{ "a.test", NULL, "tls", "other_sni", "command_and_control", "T1090.004" },
		{ "a.test", "10.0.0.1", "tls", "guarded", "discovery", "T1046" },
		{ "a.test", NULL, "tls", "byte_limit", "resource_abuse", "T1499" },
		{ "a.test", NULL, "http", "bad_header", "command_and_control", "T1090.004" },
		{ "a.test", NULL, "http", "expect", "command_and_control", "T1090.004" },
		{ "a.test", NULL, "http", "too_long", "none", NULL },
		{ "a.test", NULL, "dns", "too_many_names", "resource_abuse", "T1499" },
		{ "a.test", NULL, "tls", "canary", "data_exfiltration", "T1048" },
		/* A new code that has no rule yet gets a default class. */
		{ "a.test", NULL, "tls", "new_code", "command_and_control", "T1071" },
	};
	static const struct {
		const char *name, *reason, *class, *technique;
	} CALLS[] = {
		{ "unshare", "profile", "sandbox_evasion", "T1611" },
		{ "ptrace", "profile", "privilege_escalation", "T1055.008" },
		{ "init_module", "attack", "privilege_escalation", "T1547.006" },
		{ "bpf", "profile", "privilege_escalation", "T1068" },
		{ "fchmodat", "profile", "privilege_escalation", "T1548.001" },
		{ "syslog", "profile", "discovery", "T1082" },
		{ "socket", "no_network", "data_exfiltration", "T1048" },
		{ "socket", "profile", "none", NULL },
		{ NULL, NULL, "privilege_escalation", "T1068" },
	};

	for (size_t i = 0; i < ARRAY_LEN(WAYS); i++) {
		struct event e =
		        blocked(WAYS[i].name, WAYS[i].address, WAYS[i].protocol, WAYS[i].reason);
		expect(&e, WAYS[i].class, WAYS[i].technique);
	}
	for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
		struct event e = call(CALLS[i].name, CALLS[i].reason);
		expect(&e, CALLS[i].class, CALLS[i].technique);
	}
	expect(&(struct event){ .kind = EV_RESOURCE_LIMIT_HIT }, "resource_abuse", "T1499");
}

/* Every reason that the egress can record has a rule, or is in the list FINE. The reasons in FINE
 * mean that a declared connection failed, which is not a threat. */
static void test_every_code_has_a_rule(void **state)
{
	static const enum reason FINE[] = {
		REASON_OK,          REASON_LATE_EXPECT,       REASON_NO_NAME,
		REASON_UNREACHABLE, REASON_TIMEOUT,           REASON_BUSY,
		REASON_GUARDED,     REASON_PROXY_UNREACHABLE, REASON_PROXY_REFUSED,
		REASON_PROXY_AUTH,  REASON_PROXY_BROKEN,      REASON_PROXY_NO_UDP,
	};
	enum reason codes[64];
	size_t n = 0;

	for (int why = 0; why <= HTTP1_LATE_EXPECT; why++) {
		codes[n++] = broker_http_reason((enum http1_deny)why);
		for (size_t i = 0; i + 1 < n; i++) {
			assert_int_not_equal(codes[i], codes[n - 1]);
		}
	}
	assert_int_equal(broker_http_reason(HTTP1_LATE_EXPECT + 1), REASON_UNKNOWN);
	for (int result = 0; result <= DIAL_PROXY_NO_UDP; result++) {
		codes[n++] = dial_result_reason((enum dial_result)result);
	}
	assert_int_equal(dial_result_reason(DIAL_PROXY_NO_UDP + 1), REASON_UNKNOWN);
	for (size_t i = 0; i < n; i++) {
		bool known = classes_names_reason(codes[i]);
		for (size_t k = 0; k < ARRAY_LEN(FINE); k++) {
			known = known || codes[i] == FINE[k];
		}
		if (!known) {
			fail_msg("no class for %s", reason_code(codes[i]));
		}
	}
}

/* Ordinary events, and events that only describe the configuration, have no class. */
static void test_harmless(void **state)
{
	const struct event events[] = {
		{ .kind = EV_SKILL_STARTED },
		{ .kind = EV_ENV_VAR_ACCESS,
		  .message = text("6 passed, 70 withheld GITHUB_TOKEN") },
		{ .kind = EV_NETWORK_POLICY_APPLIED, .message = text("default deny") },
		{ .kind = EV_STDOUT, .message = text("/home/a/.ssh/id_rsa credentials") },
		{ .kind = EV_FILE_READ,
		  .status = STATUS_ASKED,
		  .op = OP_OPEN,
		  .path = text("/etc/passwd"),
		  .mode = MODE_READ },
		{ .kind = EV_FILE_READ,
		  .status = STATUS_ABSENT,
		  .op = OP_OPEN,
		  .path = text("/usr/lib/x.pyc"),
		  .mode = MODE_READ },
		{ .kind = EV_FILE_WRITE,
		  .status = STATUS_ASKED,
		  .op = OP_OPEN,
		  .path = text("/tmp/x"),
		  .mode = MODE_CREATE,
		  .rule = RULE_PRIVATE },
		/* The skill writes its own keys in its private home. */
		{ .kind = EV_FILE_WRITE,
		  .status = STATUS_ASKED,
		  .op = OP_OPEN,
		  .path = text(HOME "/.ssh/id_ed25519"),
		  .mode = MODE_CREATE,
		  .rule = RULE_PRIVATE },
		/* The owner granted this write. */
		{ .kind = EV_FILE_WRITE,
		  .status = STATUS_ASKED,
		  .op = OP_OPEN,
		  .path = text(HOME "/.bashrc"),
		  .mode = MODE_APPEND,
		  .rule = RULE_ENTRY,
		  .entry = "--write" },
		{ .kind = EV_NETWORK_EGRESS_ALLOWED, .status = STATUS_FACT, .name = "a.test" },
		{ .kind = EV_NETWORK_EGRESS_BLOCKED,
		  .name = "a.test",
		  .reason = REASON_UNREACHABLE },
		{ .kind = EV_PROCESS_SPAWNED, .status = STATUS_ASKED, .op = OP_EXEC },
	};
	struct classes c;

	classes_init(&c, HOME);
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		expect(&events[i], "none", NULL);
		classes_add(&c, &events[i], i);
	}
	assert_true(classes_empty(&c));
	struct event npm = denied("open", HOME "/.npmrc", "read", "credential_store");
	npm.program = text("/usr/bin/node");
	expect(&npm, "none", NULL);
	npm.program = text("/tmp/usr/bin/node"); /* a skill could make this file */
	expect(&npm, "credential_harvesting", "T1552.001");
	npm.program = text("node");
	expect(&npm, "credential_harvesting", "T1552.001");
	npm.program = text("/usr/bin/python3");
	expect(&npm, "credential_harvesting", "T1552.001");
	struct event gpg = denied("open", HOME "/.gnupg/pubring.kbx", "read", "credential_store");
	gpg.program = text("/usr/bin/gpg");
	expect(&gpg, "none", NULL);
	gpg.path = text(HOME "/.ssh/id_rsa");
	expect(&gpg, "credential_harvesting", "T1552.004");
}

/* A program may read its own credential store, and only that one. */
static void test_own_stores(void **state)
{
	assert_true(classes_own_store(HOME, "/usr/bin/gpg", HOME "/.gnupg/gpg.conf"));
	assert_true(classes_own_store(HOME, "/usr/lib/gnupg/scdaemon", HOME "/.gnupg"));
	assert_false(classes_own_store(HOME, "/usr/bin/gpg", HOME "/.gnupg2"));
	assert_false(classes_own_store(HOME, "/usr/bin/gpg", "/home/b/.gnupg"));
	assert_false(classes_own_store(HOME, "/usr/bin/ssh", HOME "/.gnupg"));
	assert_false(classes_own_store(HOME, "/usr/bin/gp", HOME "/.gnupg"));
	assert_false(classes_own_store(HOME, "/tmp/gpg", HOME "/.gnupg"));
	assert_false(classes_own_store(HOME, "gpg", HOME "/.gnupg"));
	assert_false(classes_own_store(HOME, "", HOME "/.gnupg"));
	assert_true(classes_routine_read(HOME, "/usr/bin/bash", HOME "/.bash_history"));
	assert_true(classes_routine_read(HOME, "/usr/bin/python3.11", HOME "/.python_history"));
	assert_true(
	        classes_routine_read(HOME, "/usr/lib/git-core/git-remote-http", HOME "/.netrc"));
	assert_false(classes_routine_read(HOME, "/usr/bin/python3x", HOME "/.python_history"));
	assert_false(classes_routine_read(HOME, "/usr/bin/cat", HOME "/.bash_history"));
	assert_false(classes_routine_read(HOME, "/usr/bin/bash", HOME "/.netrc"));
	assert_false(classes_routine_read(HOME, "/usr/bin/3", HOME "/.python_history"));
	assert_false(classes_routine_read(HOME, "/tmp/bash", HOME "/.bash_history"));
}

/* The second path of a rename or link is judged like the first. */
static void test_second_path(void **state)
{
	struct event e = { .kind = EV_FILE_WRITE,
		           .status = STATUS_ASKED,
		           .op = OP_RENAME,
		           .path = text(HOME "/x"),
		           .path2 = text(HOME "/.bashrc"),
		           .rule = RULE_PRIVATE };

	expect(&e, "persistence", "T1546.004");
	e.op = OP_LINK;
	expect(&e, "persistence", "T1546.004");
	e.op = OP_SYMLINK; /* the path is the text of a new symlink: it is not written to */
	expect(&e, "none", NULL);
	e.op = OP_RENAME;
	e.path2 = text(HOME "/y");
	expect(&e, "none", NULL);
	/* A write beneath /skill is harmless only if both paths are there. */
	e = denied("rename", "/skill/x", NULL, "read_only");
	e.path2 = text("/skill/y");
	expect(&e, "none", NULL);
	e.path2 = text("/srv/y");
	expect(&e, "unauthorized_file_access", "T1565.001");
}

static void test_startup_files(void **state)
{
	assert_true(classes_startup_file(HOME, HOME "/.zlogin"));
	assert_true(classes_startup_file(HOME, HOME "/.config/fish/config.fish"));
	assert_false(classes_startup_file(HOME, HOME "/.bashrc2"));
	assert_false(classes_startup_file(HOME, "/root/.bashrc"));
	assert_false(classes_startup_file(HOME, HOME));
	assert_false(classes_startup_file(NULL, "/.bashrc"));
}

static void test_times(void **state)
{
	struct event e = blocked("evil.test", NULL, "dns", "not_declared");
	struct classes c;

	classes_init(&c, HOME);
	classes_add(&c, &e, 3);
	e.times = 199;
	classes_add(&c, &e, 9);
	assert_int_equal(c.enforced, 200);
	assert_int_equal(c.hits[CLASS_DATA_EXFILTRATION].count, 0);
	assert_int_equal(c.ordinary[CLASS_DATA_EXFILTRATION].count, 200);
	assert_int_equal(c.unwritten, 0);
	classes_add(&c, &e, CLASS_NO_LINE);
	assert_int_equal(c.unwritten, 1);
	e.kind = EV_POLICY_VIOLATION;
	classes_add(&c, &e, 10);
	assert_int_equal(c.not_prevented, 199);
}

static void test_prevented_only_if_denied(void **state)
{
	struct event own = { .kind = EV_FILE_WRITE,
		             .status = STATUS_ASKED,
		             .op = OP_OPEN,
		             .path = text(HOME "/.bashrc"),
		             .mode = MODE_APPEND,
		             .rule = RULE_PRIVATE };
	struct event out = denied("open", "/etc/cron.d/x", "create", "outside_plan");
	struct classes c;

	classes_init(&c, HOME);
	classes_add(&c, &out, 3);
	assert_int_equal(c.hits[CLASS_PERSISTENCE].not_prevented, 0);
	classes_add(&c, &own, 4);
	assert_int_equal(c.hits[CLASS_PERSISTENCE].count, 2);
	assert_int_equal(c.hits[CLASS_PERSISTENCE].not_prevented, 1);
	assert_int_equal(c.not_prevented, 0);
	assert_int_equal(c.enforced, 1);
	classes_add(&c, &(struct event){ .kind = EV_POLICY_VIOLATION, .violation = true }, 5);
	assert_int_equal(c.not_prevented, 1);
}

static void test_supply_chain_needs_both(void **state)
{
	const struct event steal = denied("open", HOME "/.ssh", "read", "credential_store");
	const struct event send = blocked("evil.test", NULL, "dns", "not_declared");
	const struct event raw = blocked(NULL, "203.0.113.9", "tcp", "undeclared_address");
	struct classes c, all;

	classes_init(&c, HOME);
	classes_add(&c, &send, 7);
	classes_derive(&c, &all);
	assert_int_equal(all.hits[CLASS_SUPPLY_CHAIN_ATTACK].count, 0);
	assert_int_equal(all.hits[CLASS_CREDENTIAL_EXFILTRATION].count, 0);
	assert_int_equal(all.hits[CLASS_DATA_EXFILTRATION].count, 0);

	classes_init(&c, HOME);
	classes_add(&c, &steal, 4);
	classes_derive(&c, &all);
	assert_int_equal(all.hits[CLASS_SUPPLY_CHAIN_ATTACK].count, 0);

	/* The same events in another order give the same result. */
	classes_init(&c, HOME);
	classes_add(&c, &send, 9);
	classes_add(&c, &raw, 12);
	classes_add(&c, &steal, 4);
	classes_derive(&c, &all);
	const struct class_hits *whole = &all.hits[CLASS_SUPPLY_CHAIN_ATTACK];
	assert_int_equal(whole->count, 1);
	assert_int_equal(whole->n_evidence, 3);
	assert_true(whole->evidence[0] == 4 && whole->evidence[1] == 9 && whole->evidence[2] == 12);
	assert_int_equal(all.hits[CLASS_CREDENTIAL_EXFILTRATION].count, 2);
	assert_int_equal(all.hits[CLASS_DATA_EXFILTRATION].count, 0);
	assert_int_equal(all.hits[CLASS_COMMAND_AND_CONTROL].count, 1);
}

static void test_flood_is_bounded(void **state)
{
	struct classes c;
	struct buf out;
	struct json j;

	classes_init(&c, HOME);
	for (uint64_t i = 0; i < 100000; i++) {
		struct event e = denied("open", HOME "/.ssh", "read", "credential_store");
		classes_add(&c, &e, i % 2 == 0 ? i : CLASS_NO_LINE);
		e = blocked("evil.test", NULL, "dns", "not_declared");
		classes_add(&c, &e, 200000 - i);
		e = call("unshare", "profile");
		classes_add(&c, &e, 5);
	}
	assert_int_equal(c.hits[CLASS_CREDENTIAL_HARVESTING].count, 100000);
	assert_int_equal(c.hits[CLASS_CREDENTIAL_HARVESTING].n_evidence, CLASS_EVIDENCE);
	assert_int_equal(c.hits[CLASS_SANDBOX_EVASION].n_evidence, 1);
	for (size_t i = 1; i < CLASS_EVIDENCE; i++) {
		const uint64_t *v = c.ordinary[CLASS_DATA_EXFILTRATION].evidence;
		assert_true(v[i - 1] < v[i]);
	}
	buf_init(&out, 16384);
	json_init(&j, &out, false);
	classes_write(&c, &j);
	assert_false(out.failed);
	assert_non_null(strstr(out.data, "\"max_severity\":\"critical\""));
	assert_non_null(strstr(out.data, "\"all_prevented\":true"));
	buf_done(&out);
}

static void test_names(void **state)
{
	const struct event calls[] = { call("unshare", "profile"), call("bpf", "profile") };
	const char *severity;
	struct classes c;
	char out[64];

	classes_init(&c, HOME);
	classes_names(&c, out, sizeof(out), &severity);
	assert_string_equal(out, "");
	assert_string_equal(severity, "");
	classes_add(&c, &calls[0], 1);
	classes_add(&c, &calls[1], 2);
	classes_names(&c, out, sizeof(out), &severity);
	assert_string_equal(out, "privilege_escalation, sandbox_evasion");
	assert_string_equal(severity, "high");
	classes_names(&c, out, 21, &severity); /* 21 bytes have room for exactly one name */
	assert_string_equal(out, "privilege_escalation");
	classes_names(&c, out, 20, &severity);
	assert_string_equal(out, "sandbox_evasion");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_network_and_calls),
		cmocka_unit_test(test_every_code_has_a_rule),
		cmocka_unit_test(test_harmless),
		cmocka_unit_test(test_own_stores),
		cmocka_unit_test(test_second_path),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_startup_files),
		cmocka_unit_test(test_prevented_only_if_denied),
		cmocka_unit_test(test_supply_chain_needs_both),
		cmocka_unit_test(test_flood_is_bounded),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
