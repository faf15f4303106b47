/* otlp_event.c - writes decisions as log records and attributes. Attributes use the names that
 * OpenTelemetry defines (process.*, file.*, server.*, network.*, dns.*, security_rule.*); all other
 * names begin with sandbox. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "otel/otlp_record.h"
#include "otel/otlp_request.h"

static const struct otlp_kind {
	const char *name; /* NULL: unknown */
	const char *category;
} KINDS[EV_OTHER + 1] = {
	[EV_SKILL_STARTED] = { "sandbox.skill.started", "skill" },
	[EV_SKILL_COMPLETED] = { "sandbox.skill.completed", "skill" },
	[EV_SKILL_FAILED] = { "sandbox.skill.failed", "skill" },
	[EV_DNS_RESOLUTION] = { "sandbox.dns.resolve", "network" },
	[EV_NETWORK_POLICY_APPLIED] = { "sandbox.policy.network_setup", "network" },
	[EV_NETWORK_POLICY_REMOVED] = { "sandbox.policy.network_teardown", "network" },
	[EV_NETWORK_EGRESS_ALLOWED] = { "sandbox.policy.network_allow", "network" },
	[EV_NETWORK_EGRESS_BLOCKED] = { "sandbox.policy.network_deny", "network" },
	[EV_NETWORK_EGRESS_TOTAL] = { "sandbox.policy.network_total", "network" },
	[EV_FILE_READ] = { "sandbox.fs.read", "file" },
	[EV_FILE_WRITE] = { "sandbox.fs.write", "file" },
	[EV_FILE_BLOCKED] = { "sandbox.fs.blocked", "file" },
	[EV_ENV_VAR_ACCESS] = { "sandbox.policy.env_filter", "environment" },
	[EV_SYSCALL_FILTERED] = { "sandbox.seccomp.filtered", "syscall" },
	[EV_SYSCALL_BLOCKED] = { "sandbox.seccomp.blocked", "syscall" },
	[EV_PROCESS_SPAWNED] = { "sandbox.process.spawn", "process" },
	[EV_EXIT_CODE] = { "sandbox.process.exit", "process" },
	[EV_POLICY_VIOLATION] = { "sandbox.policy.violation", "policy" },
	[EV_RESOURCE_LIMIT_HIT] = { "sandbox.resource.limit_hit", "resource" },
};

static const struct otlp_kind *find_kind(const struct line *l)
{
	static const struct otlp_kind other = { "sandbox.event", "policy" };

	return KINDS[l->kind].name != NULL ? &KINDS[l->kind] : &other;
}

const char *otlp_event_name(const struct line *l)
{
	return find_kind(l)->name;
}

bool otlp_is_decision(const struct line *l)
{
	switch (l->kind) {
	case EV_RUN:
	case EV_LAYERS:
	case EV_FILES:
	case EV_END:
	case EV_SIGNATURE:
	case EV_STDOUT:
	case EV_STDERR:
		return false;
	default:
		return true;
	}
}

bool otlp_is_violation(const struct line *l)
{
	return json_is(json_member(&l->doc, l->top, "violation"), JSON_TRUE);
}

static bool is_any(const struct line *l)
{
	(void)l;
	return true;
}

/* Returns whether the line is about an exec. If so, process.executable.path is the program that was
 * executed, and sandbox.process.caller the program that called exec. */
static bool is_exec(const struct line *l)
{
	return line_get_op(l) == OP_EXEC;
}

static bool no_exec(const struct line *l)
{
	return !is_exec(l);
}

static bool asks_dns(const struct line *l)
{
	return l->kind == EV_DNS_RESOLUTION || line_get(l, "qtype") != NULL;
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
	enum event_protocol protocol = line_get_protocol(l);

	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP || protocol == PROTOCOL_UNIX;
}

static bool no_transport(const struct line *l)
{
	return !has_transport(l);
}

/* An attribute, the members of the line that can supply its value, and the lines that have it. The
 * first member that is present is used. So no attribute is written twice. */
static const struct attribute_row {
	const char *attribute;
	const char *members[2];
	bool (*when)(const struct line *l);
} ROWS[] = {
	{ "sandbox.op", { "op" }, is_any },
	{ "sandbox.status", { "status" }, is_any },
	{ "process.pid", { "pid" }, is_any },
	{ "process.parent_pid", { "ppid" }, is_any },
	{ "process.executable.path", { "path" }, is_exec },
	{ "process.command_args", { "args" }, is_exec },
	{ "sandbox.process.caller", { "program" }, is_exec },
	{ "process.executable.path", { "program" }, no_exec },
	{ "sandbox.args", { "args", "arguments" }, no_exec },
	{ "file.path", { "path" }, no_exec },
	{ "sandbox.fs.path2", { "path2" }, is_any },
	{ "sandbox.fs.raw", { "raw" }, is_any },
	{ "sandbox.fs.leads_to", { "leads_to" }, is_any },
	{ "sandbox.fs.attribute", { "attribute" }, is_any },
	{ "sandbox.fs.mode", { "mode" }, is_any },
	{ "dns.question.name", { "name" }, asks_dns },
	{ "sandbox.dns.qtype", { "qtype" }, asks_dns },
	{ "server.address", { "name", "address" }, no_dns },
	{ "server.port", { "port" }, no_dns },
	{ "network.peer.address", { "address_dialled", "address" }, is_any },
	{ "network.peer.port", { "port" }, has_peer },
	{ "network.transport", { "protocol" }, has_transport },
	{ "network.protocol.name", { "protocol" }, no_transport },
	{ "sandbox.net.address_asked", { "address_asked" }, is_any },
	{ "sandbox.net.address_refused", { "address_refused" }, is_any },
	{ "sandbox.net.range", { "range" }, is_any },
	{ "sandbox.net.shown", { "shown" }, is_any },
	{ "sandbox.net.via", { "via" }, is_any },
	{ "sandbox.net.connections", { "connections" }, is_any },
	{ "sandbox.net.bytes_out", { "bytes_out" }, is_any },
	{ "sandbox.net.bytes_in", { "bytes_in" }, is_any },
	{ "sandbox.net.duration_us", { "duration_us" }, is_any },
	{ "sandbox.env.granted", { "granted" }, is_any },
	{ "sandbox.env.absent", { "absent" }, is_any },
	{ "sandbox.env.withheld", { "withheld" }, is_any },
	{ "sandbox.env.left_out", { "left_out" }, is_any },
	{ "sandbox.signal.target", { "target" }, is_any },
	{ "sandbox.signal.number", { "signal" }, is_any },
	{ "security_rule.name", { "rule", "reason" }, is_any },
	{ "sandbox.rule.line", { "rule_line" }, is_any },
	{ "sandbox.reason", { "reason" }, is_any },
	{ "sandbox.remedy", { "remedy" }, is_any },
	{ "error.type", { "error" }, is_any },
	{ "sandbox.repeat.of", { "repeat_of" }, is_any },
	{ "sandbox.repeat.count", { "count" }, is_any },
	{ "sandbox.repeat.first", { "first" }, is_any },
	{ "sandbox.repeat.last", { "last" }, is_any },
};

static bool is_there(const struct json_node *n)
{
	return n != NULL && n->type != JSON_NULL && !(n->type == JSON_STRING && n->len == 0);
}

void otlp_event_attrs(struct otlp *w, const struct line *l)
{
	const struct otlp_kind *kind = find_kind(l);

	otlp_attr_int(w, "sandbox.record.seq", l->seq);
	otlp_attr_str(w, "sandbox.event.kind", l->kind_name);
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

/* ---- log records ---------------------------------------------------------- */

static enum otlp_severity judge_severity(const struct line *l)
{
	enum event_status status = line_get_status(l);

	if (l->kind == EV_SKILL_FAILED) {
		return OTLP_ERROR;
	}
	if (otlp_is_violation(l) || l->kind == EV_RESOURCE_LIMIT_HIT || status == STATUS_DENIED) {
		return OTLP_WARN;
	}
	return status == STATUS_ABSENT ? OTLP_DEBUG : OTLP_INFO;
}

static void write_body(struct otlp *w, const struct line *l)
{
	const struct json_node *message = json_member(&l->doc, l->top, "message");
	char text[96];

	w->format->open(w, LOG_BODY);
	if (json_is(message, JSON_STRING)) {
		otlp_text(w, ANY_STRING, message->str, message->len);
	} else {
		snprintf(text, sizeof(text), "%" PRId64 " more like record %" PRId64,
		         json_integer(line_get(l, "count"), 0),
		         json_integer(line_get(l, "repeat_of"), 0));
		otlp_text(w, ANY_STRING, text, strlen(text));
	}
	w->format->close(w);
}

static const uint8_t *find_span(const struct otlp_run *run, int64_t mono)
{
	if (mono < run->to_us[PHASE_SETUP] || !run->has[PHASE_RUN]) {
		return run->phase_id[PHASE_SETUP];
	}
	if (mono <= run->to_us[PHASE_RUN] || !run->has[PHASE_TEARDOWN]) {
		return run->phase_id[PHASE_RUN];
	}
	return run->phase_id[PHASE_TEARDOWN];
}

void otlp_logs_add(struct otlp *w, const struct otlp_run *run, const struct otel_config *c,
                   const struct line *l)
{
	int64_t mono = otlp_mono(l);
	const struct otlp_log log = {
		.nano = otlp_nano(run, mono),
		.severity = judge_severity(l),
		.trace_id = run->trace_id,
		.span_id = find_span(run, mono),
		.time = l->time,
		.name = otlp_event_name(l),
	};

	otlp_log_begin(w, &log, c);
	write_body(w, l);
	otlp_attrs(w, LOG_ATTRIBUTES);
	otlp_attr_str(w, "sandbox.run.id", run->id);
	otlp_attr_str(w, "sandbox.skill.name", run->skill);
	otlp_event_attrs(w, l);
	otlp_attrs_end(w);
	w->format->close(w);
}
