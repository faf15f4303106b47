/* test_session_policy.c - session.yaml: every key, and for each rule a valid and an invalid case
 * with the place of the error. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "session/policy.h"
#include "diags_world.h"

#define auto_policy AUTO(session_policy_done) struct session_policy

static struct session_policy good(const char *text)
{
	auto_diags d = ssb_diags_new();
	struct ssb_error err = { 0 };
	struct session_policy p;

	if (session_policy_parse("s.yaml", text, strlen(text), &p, d, &err) < 0) {
		fail_msg("refused: %s\n%s", text, diags_dump(d));
	}
	assert_int_equal(ssb_diags_count(d), 0);
	return p;
}

static void check_defaults(const struct session_policy *p)
{
	assert_string_equal(p->version, "1.0");
	assert_string_equal(p->agent_id, "default");
	assert_int_equal(p->max_cost_per_session, 5000000);
	assert_int_equal(p->max_cost_per_action, 500000);
	assert_int_equal(p->alert_at_ppm, 800000);
	assert_int_equal(p->on_exceed, ACT_KILL);
	assert_int_equal(p->reservation_ms, 600000);
	assert_true(p->charge_on_timeout);
	assert_int_equal(p->max_duration_ms, 1800000);
	assert_int_equal(p->max_actions, 100);
	for (size_t i = 0; i < SESSION_METERS; i++) {
		assert_true(p->limits[i].max == SESSION_NO_LIMIT && p->limits[i].act == ACT_KILL);
	}
	assert_true(p->all_violations.max == SESSION_NO_LIMIT);
	assert_int_equal(p->n_thresholds, 0);
	assert_true(p->kill_enabled);
	assert_int_equal(p->grace_ms, 5000);
	assert_int_equal(p->on_store_loss, ACT_KILL);
	assert_int_equal(p->n_notify, 0);
	assert_true(p->audit_enabled);
	assert_int_equal(p->n_exports, 0);
}

static void defaults(void **state)
{
	static const char *const NOTHING[] = {
		"",
		"\n",
		"# nothing\n",
		"{}",
		"budget: {}\nsession: {}\nlimits: {}\n",
		"violations: {thresholds: {}}\nkill_switch: {notify: []}\naudit: {export: []}\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(NOTHING); i++) {
		auto_policy p = good(NOTHING[i]);
		check_defaults(&p);
		assert_string_equal(p.source, NOTHING[i]);
		assert_int_equal(p.source_len, strlen(NOTHING[i]));
	}
	auto_policy p;
	assert_int_equal(session_policy_init(&p, NULL), 0);
	check_defaults(&p);
	assert_string_equal(p.source, "");
	auto_policy none = { 0 };
	session_policy_done(&none);
}

/* A policy that was written for an existing engine (see tests/e2e/test_session_decisions.py) can be
 * read, with all its keys. pii_scanner and audit.include are accepted, but ignored. */
static void known_schema(void **state)
{
	auto_policy p = good("version: \"2.1\"\n"
	                     "agent_id: research-agent\n"
	                     "budget:\n"
	                     "  max_cost_per_session: 0.50\n"
	                     "  max_cost_per_action: 0.1\n"
	                     "  alert_at: 0.75\n"
	                     "  on_exceed: block\n"
	                     "session:\n"
	                     "  max_duration: 1.5h\n"
	                     "  max_actions: 25\n"
	                     "violations:\n"
	                     "  pii_scanner: {enabled: true, engine: [anything]}\n"
	                     "  thresholds:\n"
	                     "    pii_blocked: 3\n"
	                     "    scope_violation: 1\n"
	                     "    rate_limit_hit: 5\n"
	                     "  on_threshold: alert\n"
	                     "kill_switch:\n"
	                     "  enabled: false\n"
	                     "  notify:\n"
	                     "    - webhook: https://hooks.example.com/services/T0/B0/x\n"
	                     "    - pagerduty: service-key\n"
	                     "  grace_period: 10\n"
	                     "  on_store_loss: pause\n"
	                     "audit:\n"
	                     "  enabled: false\n"
	                     "  include: [actions, costs]\n"
	                     "  export:\n"
	                     "    - file: ./audit//session.jsonl\n"
	                     "    - otel: http://localhost:4318\n");

	assert_string_equal(p.version, "2.1");
	assert_string_equal(p.agent_id, "research-agent");
	assert_int_equal(p.on_store_loss, ACT_PAUSE);
	assert_int_equal(p.max_cost_per_session, 500000);
	assert_int_equal(p.max_cost_per_action, 100000);
	assert_int_equal(p.alert_at_ppm, 750000);
	assert_int_equal(p.on_exceed, ACT_BLOCK);
	assert_int_equal(p.max_duration_ms, 5400000);
	assert_int_equal(p.max_actions, 25);
	assert_int_equal(p.n_thresholds, 3);
	const struct session_threshold *t = session_policy_threshold(&p, "rate_limit_hit");
	assert_non_null(t);
	assert_true(t->count == 5 && t->act == ACT_ALERT);
	assert_null(session_policy_threshold(&p, "Rate_limit_hit"));
	assert_false(p.kill_enabled);
	assert_int_equal(p.grace_ms, 10000);
	assert_int_equal(p.n_notify, 2);
	assert_int_equal(p.notify[0].kind, NOTIFY_SLACK);
	assert_string_equal(p.notify[0].url, "https://hooks.example.com/services/T0/B0/x");
	assert_null(p.notify[0].secret);
	assert_int_equal(p.notify[1].kind, NOTIFY_PAGERDUTY);
	assert_string_equal(p.notify[1].secret, "service-key");
	assert_string_equal(p.notify[1].url, "https://events.pagerduty.com/v2/enqueue");
	assert_false(p.audit_enabled);
	assert_int_equal(p.n_exports, 2);
	assert_int_equal(p.exports[0].kind, EXPORT_FILE);
	assert_string_equal(p.exports[0].to, "audit/session.jsonl");
	assert_int_equal(p.exports[1].kind, EXPORT_OTEL);
	assert_string_equal(p.exports[1].to, "http://localhost:4318");
}

static void additions(void **state)
{
	auto_policy p =
	        good("budget:\n"
	             "  max_cost_per_session: 0\n"
	             "  alert_at: 1\n"
	             "  on_exceed: pause\n"
	             "  reservation_timeout: 90s\n"
	             "  on_timeout: release\n"
	             "violations:\n"
	             "  thresholds:\n"
	             "    a: {count: 3, on_threshold: pause}\n"
	             "    b: {count: 4}\n"
	             "    'any name, really': 1\n"
	             "  on_threshold: block\n"
	             "limits:\n"
	             "  runs: 50\n"
	             "  cpu_seconds: {max: 600, on_exceed: pause}\n"
	             "  wall_seconds: 3600\n"
	             "  bytes_out: 10MB\n"
	             "  bytes_in: {max: 1 , on_exceed: log}\n"
	             "  connections: {max: 0}\n"
	             "  domains: {on_exceed: alert, max: 5}\n"
	             "  violations:\n"
	             "    total: 20\n"
	             "    credential_harvesting: 0\n"
	             "    file_blocked: {max: 9, on_exceed: alert}\n"
	             "kill_switch:\n"
	             "  notify:\n"
	             "    - {webhook: 'https://a.example/x', format: json, secret_file: /k}\n"
	             "    - {webhook: 'http://127.0.0.9:8080/x', format: json}\n"
	             "    - {webhook: 'http://[::1]:8080/x', format: slack}\n"
	             "    - {webhook: 'http://hooks.example/x', allow_http: true}\n"
	             "    - {pagerduty: K, url: 'https://events.example/v2'}\n"
	             "audit: {export: [{file: /var/log/x.jsonl}]}\n");

	assert_int_equal(p.max_cost_per_session, 0);
	assert_int_equal(p.alert_at_ppm, 1000000);
	assert_int_equal(p.on_exceed, ACT_PAUSE);
	assert_int_equal(p.reservation_ms, 90000);
	assert_false(p.charge_on_timeout);
	static const struct {
		const char *name;
		uint64_t count;
		enum session_act act;
	} THRESHOLDS[] = {
		{ "a", 3, ACT_PAUSE },
		{ "b", 4, ACT_BLOCK },
		{ "any name, really", 1, ACT_BLOCK },
		{ "credential_harvesting", 1, ACT_KILL },
		{ "file_blocked", 10, ACT_ALERT },
	};
	assert_int_equal(p.n_thresholds, ARRAY_LEN(THRESHOLDS));
	for (size_t i = 0; i < ARRAY_LEN(THRESHOLDS); i++) {
		const struct session_threshold *t =
		        session_policy_threshold(&p, THRESHOLDS[i].name);
		assert_non_null(t);
		assert_int_equal(t->count, THRESHOLDS[i].count);
		assert_int_equal(t->act, THRESHOLDS[i].act);
	}
	static const struct session_limit LIMITS[SESSION_METERS] = {
		{ 50, ACT_KILL },       { 600000, ACT_PAUSE }, { 3600000, ACT_KILL },
		{ 10 << 20, ACT_KILL }, { 1, ACT_LOG },        { 0, ACT_KILL },
		{ 5, ACT_ALERT },
	};
	for (size_t i = 0; i < SESSION_METERS; i++) {
		assert_int_equal(p.limits[i].max, LIMITS[i].max);
		assert_int_equal(p.limits[i].act, LIMITS[i].act);
	}
	assert_true(p.all_violations.max == 20 && p.all_violations.act == ACT_KILL);
	assert_int_equal(p.n_notify, 5);
	assert_int_equal(p.notify[0].kind, NOTIFY_JSON);
	assert_string_equal(p.notify[0].secret, "/k");
	assert_int_equal(p.notify[1].kind, NOTIFY_JSON);
	assert_null(p.notify[1].secret);
	assert_int_equal(p.notify[2].kind, NOTIFY_SLACK);
	assert_string_equal(p.notify[4].url, "https://events.example/v2");
	assert_string_equal(p.exports[0].to, "/var/log/x.jsonl");
}

/* Invalid policies, each with its first error: place, message and remedy. */
static const struct {
	const char *text;
	const char *where;
	const char *says;
	const char *remedy;
} BAD[] = {
	{ "budgets: {}", "1:1", "unknown key \"budgets\"", "did you mean budget?" },
	{ "budget:\n  max_cost: 5\n", "2:3", "unknown key \"max_cost\"", "the keys here are" },
	{ "budget:\n  Alert-At: 1\n", "2:3", "unknown key", "did you mean alert_at?" },
	{ "budget:\n  max_actions: 5\n", "2:3", "unknown key", "it belongs under session" },
	{ "session: {}\nsession: {}\n", "2:1", "duplicate key \"session\"", "keep one" },
	{ "budget: 5", "1:9", "budget must be a mapping, not a single value", "" },
	{ "budget:\n", "1:8", "budget must be a mapping, not empty", "remove the key" },
	{ "- budget\n", "1:1", "the session policy must be a mapping, not a list", "" },
	{ "budget", "1:1", "the session policy must be a mapping, not a single value", "" },
	{ "a: &x 1\n", "1:4", "anchors are not allowed", "" },
	{ "version: \"\"", "1:10", "version \"\" is empty", "" },
	{ "version: 12345678901234567890123456789012", "1:10", "is too long", "" },
	{ "agent_id: \"a\\nb\"", "1:11", "has a line break", "write one line" },
	{ "agent_id: yes", "1:11", "agent_id must be a text, not a truth value", "" },
	/* money */
	{ "budget: {max_cost_per_session: -1}", "1:32", "\"-1\" is negative", "0.50" },
	{ "budget: {max_cost_per_session: -0}", "1:32", "\"-0\" is negative", "" },
	{ "budget: {max_cost_per_session: .nan}", "1:32", "is not an amount", "" },
	{ "budget: {max_cost_per_session: .inf}", "1:32", "is not an amount", "" },
	{ "budget: {max_cost_per_session: 1e400}", "1:32", "is more than 1000000000", "" },
	{ "budget: {max_cost_per_action: 0.0000001}", "1:31", "is finer than a millionth", "" },
	{ "budget: {max_cost_per_action: \"5\"}", "1:31", "not the text \"5\"", "remove" },
	{ "budget: {max_cost_per_action: [5]}", "1:31", "an amount of dollars, not a list", "" },
	{ "budget: {max_cost_per_action: }", "1:31", "an amount of dollars, not empty", "" },
	{ "budget: {max_cost_per_action: 5 USD}", "1:31", "is not an amount", "" },
	{ "budget: {alert_at: 1.01}", "1:20", "alert_at \"1.01\" is more than 1", "0.80" },
	{ "budget: {alert_at: 80}", "1:20", "is more than 1", "0.80" },
	{ "budget: {alert_at: 0.1234567}", "1:20", "is finer than a millionth", "" },
	{ "budget: {alert_at: -0.1}", "1:20", "is not a number", "" },
	{ "budget: {alert_at: 80%}", "1:20", "is not a number", "" },
	{ "budget: {on_exceed: stop}", "1:21", "unknown on_exceed \"stop\"",
	  "write one of log, alert, block, pause, kill" },
	{ "budget: {on_exceed: Kill}", "1:21", "unknown on_exceed", "did you mean kill?" },
	{ "budget: {on_timeout: keep}", "1:22", "unknown on_timeout", "release, charge" },
	{ "budget: {reservation_timeout: 0}", "1:31", "is out of range", "" },
	{ "budget: {reservation_timeout: 400d}", "1:31", "is not a time", "90s" },
	/* times and counts */
	{ "session: {max_duration: -5s}", "1:25", "max_duration \"-5s\" is not a time", "30m" },
	{ "session: {max_duration: 500ms}", "1:25", "is not a time", "" },
	{ "session: {max_duration: 2h30m}", "1:25", "is not a time", "" },
	{ "session: {max_duration: \"\"}", "1:25", "is not a time", "" },
	{ "session: {max_duration: 9000h}", "1:25", "is not a time", "" },
	{ "session: {max_actions: -1}", "1:24", "is not a plain decimal number", "" },
	{ "session: {max_actions: 1.5}", "1:24", "is not a plain decimal number", "" },
	{ "session: {max_actions: 1000000001}", "1:24", "is out of range", "" },
	{ "session: {max_actions: \"5\"}", "1:24", "not the text", "" },
	{ "kill_switch: {grace_period: 2h}", "1:29", "is out of range", "" },
	{ "kill_switch: {on_store_loss: block}", "1:30", "block", "" },
	{ "kill_switch: {enabled: yes}", "1:24", "is neither true nor false", "true or false" },
	{ "kill_switch: {enabled: \"true\"}", "1:24", "is neither true nor false", "" },
	{ "audit: {enabled: 1}", "1:18", "is neither true nor false", "" },
	/* violations */
	{ "violations: {thresholds: 3}", "1:26", "thresholds must be a mapping", "" },
	{ "violations: {thresholds: {x: 0}}", "1:30", "x \"0\" is out of range", "from 1" },
	{ "violations: {thresholds: {x: many}}", "1:30", "is not a plain decimal number", "" },
	{ "violations: {thresholds: {x: {on_threshold: kill}}}", "1:30", "count is missing", "" },
	{ "violations: {thresholds: {x: {count: 1, on_exceed: kill}}}", "1:41", "unknown key",
	  "it belongs under budget" },
	{ "violations: {thresholds: {\"\": 3}}", "1:27", "is not a name of 1 to 63 bytes", "" },
	{ "violations: {thresholds: {"
	  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: 3}}",
	  "1:27", "is not a name of 1 to 63 bytes", "" },
	{ "violations: {thresholds: {file_blocked: 3}}\nlimits: {violations: {file_blocked: 2}}",
	  "2:23", "\"file_blocked\" has a threshold already", "the same list" },
	{ "violations: {on_threshold: warn}", "1:28", "unknown on_threshold", "" },
	/* limits */
	{ "limits: {cpu: 5}", "1:10", "unknown key \"cpu\"", "runs, cpu_seconds" },
	{ "limits: {byte_out: 5}", "1:10", "unknown key", "did you mean bytes_out?" },
	{ "limits: {runs: -1}", "1:16", "runs \"-1\" is not a plain decimal number", "" },
	{ "limits: {runs: 10MB}", "1:16", "is not a plain decimal number", "" },
	{ "limits: {runs: {on_exceed: kill}}", "1:16", "max is missing in a limit", "max: 10" },
	{ "limits: {runs: {max: 1, action: kill}}", "1:25", "unknown key \"action\"", "" },
	{ "limits: {runs: [1]}", "1:16", "runs must be a number, not a list", "" },
	{ "limits: {bytes_out: 10XB}", "1:21", "is not a size", "10MB" },
	{ "limits: {bytes_out: 2000TB}", "1:21", "too large", "1024TB" },
	{ "limits: {bytes_out: 99999999999999999999MB}", "1:21", "too large", "" },
	{ "limits: {bytes_out: -5MB}", "1:21", "is not a plain decimal number", "" },
	{ "limits: {bytes_out: \"10\"}", "1:21", "not the text", "" },
	{ "limits: {cpu_seconds: 31622401}", "1:23", "is out of range", "" },
	{ "limits: {violations: 3}", "1:22", "violations must be a mapping", "" },
	{ "limits: {violations: {pii_blocked: 3}}", "1:23", "unknown key", "under violations." },
	{ "limits: {violations: {file_block: 3}}", "1:23", "unknown key",
	  "write file_blocked; a type that a scanner" },
	{ "limits: {violations: {total: -3}}", "1:30", "is not a plain decimal number", "" },
	/* receivers */
	{ "kill_switch: {notify: {webhook: x}}", "1:23", "notify must be a list", "" },
	{ "kill_switch: {notify: [x]}", "1:24", "must be a list of mappings", "" },
	{ "kill_switch: {notify: [{}]}", "1:24", "neither a webhook nor pagerduty", "" },
	{ "kill_switch: {notify: [{email: me}]}", "1:25", "unknown key \"email\"", "webhook" },
	{ "kill_switch: {notify: [{webhook: x, pagerduty: y}]}", "1:34", "not a URL", "https:" },
	{ "kill_switch: {notify: [{webhook: 'https://a/', pagerduty: y}]}", "1:24", "both", "" },
	{ "kill_switch: {notify: [{webhook: 'ftp://a/'}]}", "1:34", "not a URL", "" },
	{ "kill_switch: {notify: [{webhook: 'https://u:p@a/'}]}", "1:34", "not a URL", "" },
	{ "kill_switch: {notify: [{webhook: 'http://a.example/'}]}", "1:34", "without TLS",
	  "allow_http" },
	{ "kill_switch: {notify: [{webhook: 'http://127.0.0.1.example/'}]}", "1:34", "without TLS",
	  "" },
	{ "kill_switch: {notify: [{webhook: 'http://localhost.example/'}]}", "1:34", "without TLS",
	  "" },
	{ "kill_switch: {notify: [{webhook: 'http://10.0.0.1/', allow_http: false}]}", "1:34",
	  "without TLS", "" },
	{ "kill_switch: {notify: [{pagerduty: k, url: 'http://a/'}]}", "1:44", "without TLS", "" },
	{ "kill_switch: {notify: [{pagerduty: k, format: json}]}", "1:24", "for webhooks", "" },
	{ "kill_switch: {notify: [{pagerduty: 'a b'}]}", "1:36", "not a routing key", "" },
	{ "kill_switch: {notify: [{webhook: 'https://a/', url: 'https://b/'}]}", "1:24",
	  "url is only for pagerduty", "" },
	{ "kill_switch: {notify: [{webhook: 'https://a/', secret_file: /k}]}", "1:24",
	  "secret_file signs only messages in the format json", "format: json" },
	{ "kill_switch: {notify: [{webhook: 'https://a/', format: xml}]}", "1:56",
	  "unknown format \"xml\"", "slack, json" },
	{ "kill_switch: {notify: [{webhook: 'https://a/', format: json, secret_file: k}]}", "1:75",
	  "is not absolute", "" },
	{ "kill_switch: {notify: [{webhook: 'https://a/', format: json, secret_file: ~/k}]}",
	  "1:75", "begins with \"~\"", "" },
	/* exports */
	{ "audit: {export: {file: x}}", "1:17", "export must be a list", "" },
	{ "audit: {export: [{}]}", "1:18", "exactly one of file and otel", "" },
	{ "audit: {export: [{file: a, otel: 'https://b/'}]}", "1:18",
	  "exactly one of file and otel", "" },
	{ "audit: {export: [{file: ../x}]}", "1:25", "has \"..\" in it", "" },
	{ "audit: {export: [{file: .}]}", "1:25", "names no file", "" },
	{ "audit: {export: [{file: ~/x}]}", "1:25", "begins with \"~\"", "" },
	{ "audit: {export: [{otel: 'http://collector:4318'}]}", "1:25", "without TLS", "" },
	{ "audit: {include: all}", "1:18", "include must be a list", "" },
};

static void findings(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		auto_diags d = ssb_diags_new();
		auto_policy p;
		struct ssb_error err = { 0 };
		char where[64];
		int r = session_policy_parse("s.yaml", BAD[i].text, strlen(BAD[i].text), &p, d,
		                             &err);
		const struct ssb_diag *first = ssb_diags_get(d, 0);
		snprintf(where, sizeof(where), "s.yaml:%s", BAD[i].where);
		if (r == 0 || first == NULL || strcmp(first->where, where) != 0 ||
		    strstr(first->text, BAD[i].says) == NULL ||
		    strstr(first->remedy, BAD[i].remedy) == NULL) {
			fail_msg("%s\nwanted %s: %s (%s)\n%s", BAD[i].text, where, BAD[i].says,
			         BAD[i].remedy, r == 0 ? "accepted" : diags_dump(d));
		}
		assert_int_equal(err.code, SSB_E_POLICY);
		assert_string_equal(err.where, where);
	}
}

static void all_findings_of_a_file(void **state)
{
	static const char TEXT[] = "budget: {alert_at: 2, on_exceed: x}\n"
	                           "limits: {runs: y}\n"
	                           "nothing: 1\n"
	                           "kill_switch: {notify: [{webhook: z}, 5]}\n";
	auto_diags d = ssb_diags_new();
	auto_policy p;
	struct ssb_error err = { 0 };

	/* If the list already has an error of another file, this file is still valid. */
	diag_add(d, SSB_ERROR, "other.yaml:1:1", "", "bad");
	assert_int_equal(session_policy_parse("s.yaml", TEXT, strlen(TEXT), &p, d, &err), -1);
	assert_int_equal(ssb_diags_count(d), 7);
	assert_string_equal(err.where, "s.yaml:1:20");
	auto_policy fine;
	struct ssb_error none = { 0 };
	assert_int_equal(session_policy_parse("t.yaml", "{}", 2, &fine, d, &none), 0);
	assert_int_equal(none.code, SSB_OK);
}

/* Messages never contain tokens or keys. */
static void secrets_are_not_told(void **state)
{
	static const char *const TEXTS[] = {
		"kill_switch: {notify: [{webhook: 'https://u@a/hunter2'}]}",
		"kill_switch: {notify: [{webhook: 'http://a.example/hunter2'}]}",
		"kill_switch: {notify: [{webhook: 'hunter2'}]}",
		"kill_switch: {notify: [{pagerduty: 'hunter2 x'}]}",
		"kill_switch: {notify: [{pagerduty: \"hunter2\\nx\"}]}",
		"kill_switch: {notify: [{pagerduty: hunter2, format: json}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
		auto_diags d = ssb_diags_new();
		auto_policy p;
		struct ssb_error err = { 0 };
		assert_int_equal(
		        session_policy_parse("s.yaml", TEXTS[i], strlen(TEXTS[i]), &p, d, &err),
		        -1);
		assert_null(strstr(diags_dump(d), "hunter2"));
		assert_null(strstr(err.text, "hunter2"));
	}
}

/* Parses a policy in which a list has `n` items; %zu in `item` is the number of the item. Returns
 * whether the policy is accepted. */
static bool accepts_items(const char *head, const char *item, const char *tail, size_t n)
{
	auto_buf b = BUF(1 << 20);
	auto_diags d = ssb_diags_new();
	auto_policy p;
	struct ssb_error err = { 0 };

	buf_adds(&b, head);
	for (size_t i = 0; i < n; i++) {
		buf_addf(&b, item, i);
	}
	buf_adds(&b, tail);
	assert_false(b.failed);
	return session_policy_parse("s.yaml", b.data, b.len, &p, d, &err) == 0;
}

static bool accepts_url(const char *head, size_t len)
{
	static const char BEGIN[] = "https://a/";
	auto_buf b = BUF(1 << 20);
	auto_diags d = ssb_diags_new();
	auto_policy p;
	struct ssb_error err = { 0 };

	buf_addf(&b, "%s%s", head, BEGIN);
	for (size_t i = strlen(BEGIN); i < len; i++) {
		buf_addc(&b, 'x');
	}
	buf_adds(&b, "'}]}");
	return session_policy_parse("s.yaml", b.data, b.len, &p, d, &err) == 0;
}

static void caps(void **state)
{
	static const struct {
		const char *head;
		const char *item;
		const char *tail;
		size_t most;
	} ROWS[] = {
		{ "kill_switch: {notify: [", "{pagerduty: k%zu},", "]}", MAX_NOTIFY },
		{ "audit: {export: [", "{file: f%zu},", "]}", MAX_EXPORTS },
		{ "audit: {include: [", "a%zu,", "]}", MAX_LIST_ITEMS },
		{ "violations: {thresholds: {", "a%zu: 1,", "}}", MAX_LIST_ITEMS },
	};
	static const struct {
		const char *head;
		size_t size;
	} URLS[] = {
		{ "kill_switch: {notify: [{webhook: '", MAX_NOTIFY_URL },
		{ "audit: {export: [{otel: '", MAX_OTEL_URL },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		assert_true(accepts_items(ROWS[i].head, ROWS[i].item, ROWS[i].tail, ROWS[i].most));
		assert_false(
		        accepts_items(ROWS[i].head, ROWS[i].item, ROWS[i].tail, ROWS[i].most + 1));
	}
	for (size_t i = 0; i < ARRAY_LEN(URLS); i++) {
		assert_true(accepts_url(URLS[i].head, URLS[i].size - 1));
		assert_false(accepts_url(URLS[i].head, URLS[i].size));
	}
	auto_free char *large = malloc(MAX_YAML_BYTES + 1);
	assert_non_null(large);
	memset(large, '\n', MAX_YAML_BYTES + 1);
	auto_diags d = ssb_diags_new();
	auto_policy most;
	auto_policy more;
	struct ssb_error err = { 0 };
	assert_int_equal(session_policy_parse("s", large, MAX_YAML_BYTES, &most, d, &err), 0);
	assert_int_equal(session_policy_parse("s", large, MAX_YAML_BYTES + 1, &more, d, &err), -1);
}

static void put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void loading(void **state)
{
	char dir[] = "/tmp/session-policy-XXXXXX";
	auto_diags d = ssb_diags_new();
	static const struct {
		const char *name;
		enum ssb_code code;
	} ROWS[] = {
		{ "good", SSB_OK },
		{ "bad", SSB_E_POLICY },
		{ "link", SSB_E_POLICY },
		{ "fifo", SSB_E_POLICY },
		{ ".", SSB_E_POLICY },
		{ "absent", SSB_E_NOT_FOUND },
		{ "good/x", SSB_E_NOT_FOUND },
	};

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	put("good", "agent_id: me\n");
	put("bad", "agent: me\n");
	assert_int_equal(symlink("good", "link"), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		auto_policy p;
		struct ssb_error err = { 0 };
		int r = session_policy_load(ROWS[i].name, &p, d, &err);
		assert_int_equal(r, ROWS[i].code == SSB_OK ? 0 : -1);
		assert_int_equal(err.code, ROWS[i].code);
		if (r == 0) {
			assert_string_equal(p.agent_id, "me");
			assert_string_equal(p.source, "agent_id: me\n");
		}
	}
	auto_policy p;
	assert_int_equal(session_policy_load(NULL, &p, d, NULL), 0);
	check_defaults(&p);
	unlink("good");
	unlink("bad");
	unlink("link");
	unlink("fifo");
	assert_int_equal(chdir("/"), 0);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(known_schema),
		cmocka_unit_test(additions),
		cmocka_unit_test(findings),
		cmocka_unit_test(all_findings_of_a_file),
		cmocka_unit_test(secrets_are_not_told),
		cmocka_unit_test(caps),
		cmocka_unit_test(loading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
