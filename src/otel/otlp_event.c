/* otlp_event.c - the names that telemetry has for what a record says. Where
 * OpenTelemetry has one it is taken (process.*, file.*, server.*, network.*,
 * dns.*, security_rule.*); the rest is sandbox.*. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "otel/otlp_limits.h"
#include "otel/otlp_record.h"
#include "base/own.h"

static const struct kind_row {
	const char *kind;
	const char *name;
	const char *category;
} KINDS[] = {
	{ "skill_started", "sandbox.skill.started", "skill" },
	{ "skill_completed", "sandbox.skill.completed", "skill" },
	{ "skill_failed", "sandbox.skill.failed", "skill" },
	{ "dns_resolution", "sandbox.dns.resolve", "network" },
	{ "network_policy_applied", "sandbox.policy.network_setup", "network" },
	{ "network_policy_removed", "sandbox.policy.network_teardown", "network" },
	{ "network_egress_allowed", "sandbox.policy.network_allow", "network" },
	{ "network_egress_blocked", "sandbox.policy.network_deny", "network" },
	{ "network_egress_total", "sandbox.policy.network_total", "network" },
	{ "file_read", "sandbox.fs.read", "file" },
	{ "file_write", "sandbox.fs.write", "file" },
	{ "file_blocked", "sandbox.fs.blocked", "file" },
	{ "env_var_access", "sandbox.policy.env_filter", "environment" },
	{ "syscall_filtered", "sandbox.seccomp.filtered", "syscall" },
	{ "syscall_blocked", "sandbox.seccomp.blocked", "syscall" },
	{ "process_spawned", "sandbox.process.spawn", "process" },
	{ "exit_code", "sandbox.process.exit", "process" },
	{ "policy_violation", "sandbox.policy.violation", "policy" },
	{ "resource_limit_hit", "sandbox.resource.limit_hit", "resource" },
};

static const struct kind_row *kind_of(const struct line *l)
{
	static const struct kind_row other = { "", "sandbox.event", "policy" };

	for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
		if (strcmp(KINDS[i].kind, l->kind) == 0) {
			return &KINDS[i];
		}
	}
	return &other;
}

const char *otlp_event_name(const struct line *l)
{
	return kind_of(l)->name;
}

bool otlp_is_decision(const struct line *l)
{
	static const char *const NONE[] = { "run",       "layers", "files", "end",
		                            "signature", "stdout", "stderr" };

	for (size_t i = 0; i < ARRAY_LEN(NONE); i++) {
		if (strcmp(l->kind, NONE[i]) == 0) {
			return false;
		}
	}
	return true;
}

bool otlp_is_violation(const struct line *l)
{
	return json_is(json_member(&l->doc, l->top, "violation"), JSON_TRUE);
}

static void attr_array(struct otlp *w, const char *key, const struct json_doc *doc,
                       const struct json_node *array)
{
	size_t n = 0;

	otlp_attr_array(w, key);
	for (const struct json_node *e = json_first(doc, array); e != NULL && n < OTLP_MAX_ARRAY;
	     e = json_next(doc, e)) {
		if (e->type == JSON_STRING || e->type == JSON_NUMBER) {
			otlp_element(w, e->str, e->len);
			n++;
		}
	}
	otlp_attr_array_end(w);
}

void otlp_attr_node(struct otlp *w, const char *key, const struct json_doc *doc,
                    const struct json_node *n)
{
	if (json_is(n, JSON_STRING) && n->len > 0) {
		otlp_attr_text(w, key, n->str, n->len);
	} else if (json_is(n, JSON_NUMBER) && json_integer(n, INT64_MIN) != INT64_MIN) {
		otlp_attr_int(w, key, json_integer(n, 0));
	} else if (json_is(n, JSON_NUMBER) && isfinite(strtod(n->str, NULL))) {
		otlp_attr_real(w, key, strtod(n->str, NULL));
	} else if (json_is(n, JSON_TRUE) || json_is(n, JSON_FALSE)) {
		otlp_attr_bool(w, key, json_is(n, JSON_TRUE));
	} else if (json_is(n, JSON_ARRAY)) {
		attr_array(w, key, doc, n);
	}
}

static bool always(const struct line *l)
{
	(void)l;
	return true;
}

static bool text_is(const struct line *l, const char *member, const char *text)
{
	const char *s = line_text(l, member);

	return s != NULL && strcmp(s, text) == 0;
}

/* What is executed is the process; who asked for it is the caller. */
static bool execs(const struct line *l)
{
	return text_is(l, "op", "exec");
}

static bool no_exec(const struct line *l)
{
	return !execs(l);
}

static bool asks_dns(const struct line *l)
{
	return strcmp(l->kind, "dns_resolution") == 0 || line_get(l, "qtype") != NULL;
}

static bool no_dns(const struct line *l)
{
	return !asks_dns(l);
}

static bool has_peer(const struct line *l)
{
	return line_get(l, "address") != NULL || line_get(l, "address_dialled") != NULL;
}

static bool has_transport(const struct line *l)
{
	return text_is(l, "protocol", "tcp") || text_is(l, "protocol", "udp") ||
	       text_is(l, "protocol", "unix");
}

static bool no_transport(const struct line *l)
{
	return !has_transport(l);
}

/* An attribute, and the members of the line that it can be had from: the first
 * that is there. So a key is never written twice. */
static const struct row {
	const char *attribute;
	const char *members[2];
	bool (*when)(const struct line *l);
} ROWS[] = {
	{ "sandbox.op", { "op" }, always },
	{ "sandbox.status", { "status" }, always },
	{ "process.pid", { "pid" }, always },
	{ "process.parent_pid", { "ppid" }, always },
	{ "process.executable.path", { "path" }, execs },
	{ "process.command_args", { "args" }, execs },
	{ "sandbox.process.caller", { "program" }, execs },
	{ "process.executable.path", { "program" }, no_exec },
	{ "sandbox.args", { "args", "arguments" }, no_exec },
	{ "file.path", { "path" }, no_exec },
	{ "sandbox.fs.path2", { "path2" }, always },
	{ "sandbox.fs.raw", { "raw" }, always },
	{ "sandbox.fs.leads_to", { "leads_to" }, always },
	{ "sandbox.fs.attribute", { "attribute" }, always },
	{ "sandbox.fs.mode", { "mode" }, always },
	{ "dns.question.name", { "name" }, asks_dns },
	{ "sandbox.dns.qtype", { "qtype" }, asks_dns },
	{ "server.address", { "name", "address" }, no_dns },
	{ "server.port", { "port" }, no_dns },
	{ "network.peer.address", { "address_dialled", "address" }, always },
	{ "network.peer.port", { "port" }, has_peer },
	{ "network.transport", { "protocol" }, has_transport },
	{ "network.protocol.name", { "protocol" }, no_transport },
	{ "sandbox.net.address_asked", { "address_asked" }, always },
	{ "sandbox.net.address_refused", { "address_refused" }, always },
	{ "sandbox.net.range", { "range" }, always },
	{ "sandbox.net.shown", { "shown" }, always },
	{ "sandbox.net.via", { "via" }, always },
	{ "sandbox.net.connections", { "connections" }, always },
	{ "sandbox.net.bytes_out", { "bytes_out" }, always },
	{ "sandbox.net.bytes_in", { "bytes_in" }, always },
	{ "sandbox.net.duration_us", { "duration_us" }, always },
	{ "sandbox.env.granted", { "granted" }, always },
	{ "sandbox.env.absent", { "absent" }, always },
	{ "sandbox.env.withheld", { "withheld" }, always },
	{ "sandbox.env.left_out", { "left_out" }, always },
	{ "sandbox.signal.target", { "target" }, always },
	{ "sandbox.signal.number", { "signal" }, always },
	{ "security_rule.name", { "rule", "reason" }, always },
	{ "sandbox.rule.line", { "rule_line" }, always },
	{ "sandbox.reason", { "reason" }, always },
	{ "sandbox.remedy", { "remedy" }, always },
	{ "error.type", { "error" }, always },
	{ "sandbox.repeat.of", { "repeat_of" }, always },
	{ "sandbox.repeat.count", { "count" }, always },
	{ "sandbox.repeat.first", { "first" }, always },
	{ "sandbox.repeat.last", { "last" }, always },
};

static bool is_there(const struct json_node *n)
{
	return n != NULL && n->type != JSON_NULL && !(n->type == JSON_STRING && n->len == 0);
}

void otlp_event_attrs(struct otlp *w, const struct line *l)
{
	const struct kind_row *kind = kind_of(l);

	otlp_attr_int(w, "sandbox.record.seq", l->seq);
	otlp_attr_str(w, "sandbox.event.kind", l->kind);
	otlp_attr_str(w, "security_rule.category", kind->category);
	if (otlp_is_violation(l)) {
		otlp_attr_bool(w, "sandbox.violation", true);
	}
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		const struct json_node *n = NULL;
		for (size_t m = 0; m < ARRAY_LEN(ROWS[i].members) && !is_there(n); m++) {
			n = ROWS[i].members[m] != NULL ? line_get(l, ROWS[i].members[m]) : n;
		}
		if (is_there(n) && ROWS[i].when(l)) {
			otlp_attr_node(w, ROWS[i].attribute, &l->doc, n);
		}
	}
}
