/* event.c - defines the kinds of events, and writes an event as text. */
#include "trace/event.h"

#include <stdio.h>
#include <string.h>

#include "trace/event_text.h"
#include "trace/trace_limits.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/sha256.h"

const char *const RECORD_KINDS[] = {
	[EV_SKILL_STARTED] = "skill_started",
	[EV_SKILL_COMPLETED] = "skill_completed",
	[EV_SKILL_FAILED] = "skill_failed",
	[EV_DNS_RESOLUTION] = "dns_resolution",
	[EV_NETWORK_POLICY_APPLIED] = "network_policy_applied",
	[EV_NETWORK_POLICY_REMOVED] = "network_policy_removed",
	[EV_NETWORK_EGRESS_ALLOWED] = "network_egress_allowed",
	[EV_NETWORK_EGRESS_BLOCKED] = "network_egress_blocked",
	[EV_NETWORK_EGRESS_TOTAL] = "network_egress_total",
	[EV_FILE_READ] = "file_read",
	[EV_FILE_WRITE] = "file_write",
	[EV_FILE_BLOCKED] = "file_blocked",
	[EV_ENV_VAR_ACCESS] = "env_var_access",
	[EV_SYSCALL_FILTERED] = "syscall_filtered",
	[EV_SYSCALL_BLOCKED] = "syscall_blocked",
	[EV_PROCESS_SPAWNED] = "process_spawned",
	[EV_STDOUT] = "stdout",
	[EV_STDERR] = "stderr",
	[EV_EXIT_CODE] = "exit_code",
	[EV_POLICY_VIOLATION] = "policy_violation",
	[EV_RESOURCE_LIMIT_HIT] = "resource_limit_hit",
	[EV_RUN] = "run",
	[EV_LAYERS] = "layers",
	[EV_FILES] = "files",
	[EV_END] = "end",
	[EV_SIGNATURE] = "signature",
	[EV_END_OF_RUN_KINDS] = NULL,
	[EV_SESSION_CREATED] = "session_created",
	[EV_SESSION_RESUMED] = "session_resumed",
	[EV_SESSION_PAUSED] = "session_paused",
	[EV_SESSION_KILLED] = "session_killed",
	[EV_SESSION_EXPIRED] = "session_expired",
	[EV_SESSION_COMPLETED] = "session_completed",
	[EV_BUDGET_ALERT] = "budget_alert",
	[EV_VIOLATION] = "violation",
	[EV_ACTION_ALLOWED] = "action_allowed",
	[EV_ACTION_BLOCKED] = "action_blocked",
	[EV_ACTION_SETTLED] = "action_settled",
	[EV_CHILD] = "child",
	[EV_RUN_BEGUN] = "run_begun",
	[EV_RUN_ENDED] = "run_ended",
	[EV_USAGE] = "usage",
	[EV_NOTIFICATION] = "notification",
	[EV_OTHER] = NULL,
};

const struct event_width EVENT_WIDTHS[EVENT_WIDTHS_COUNT] = {
	{ MAX_EVENT_TEXT, MAX_PATH_BYTES, MAX_PATH_BYTES, SIZE_MAX, TRACE_ARG_BYTES },
	{ 256, 3072, 256, MAX_PATH_BYTES, TRACE_ARG_BYTES },
	{ 256, 1024, 256, 1024, 1024 },
	{ 128, 384, 128, 128, 256 },
	{ 64, 128, 64, 64, 64 },
};

const char *event_kind_name(enum event_kind kind)
{
	return (unsigned)kind < EV_COUNT ? RECORD_KINDS[kind] : NULL;
}

enum event_kind event_kind_from(const char *name, size_t len)
{
	for (int kind = 0; len > 0 && kind < EV_OTHER; kind++) {
		const char *known = RECORD_KINDS[kind];
		if (known != NULL && known[0] == name[0] && strlen(known) == len &&
		    memcmp(known, name, len) == 0) {
			return (enum event_kind)kind;
		}
	}
	return EV_OTHER;
}

/* Returns how many bytes of a too long text are kept before the ellipsis. Never cuts inside a
 * character. */
static size_t cut_at(const char *s, size_t max)
{
	size_t n = max;

	while (n > max - 3 && ((unsigned char)s[n] & 0xc0) == 0x80) {
		n--;
	}
	return ((unsigned char)s[n] & 0xc0) == 0x80 ? max : n;
}

void event_put_text(struct json *j, const char *s, size_t len, size_t max)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	char text[MAX_EVENT_TEXT];

	if (max > sizeof(text)) {
		max = sizeof(text);
	}
	if (len > max) {
		len = cut_at(s, max - (sizeof(ellipsis) - 1));
		memcpy(text, s, len);
		memcpy(text + len, ellipsis, sizeof(ellipsis) - 1);
		len += sizeof(ellipsis) - 1;
		s = text;
	}
	json_strn(j, s, len);
}

static void put_bytes(struct json *j, const char *key, const struct bytes *b, size_t max)
{
	if (b->p != NULL) {
		json_key(j, key);
		event_put_text(j, b->p, b->n, max);
	}
}

static void put_text(struct json *j, const char *key, const char *text)
{
	if (text != NULL) {
		json_kstr(j, key, text);
	}
}

/* Writes a path, cut to `max` bytes. If it is cut, also writes its full length and the digest of
 * the full path, by which a reader can recognise it and distinguish it from other paths. */
static void put_path(struct json *j, const char *key, const struct bytes *b, size_t max)
{
	uint8_t hash[SHA256_BYTES];
	char name[32];

	put_bytes(j, key, b, max);
	if (b->p == NULL || b->n <= max) {
		return;
	}
	(void)snprintf(name, sizeof(name), "%s_bytes", key);
	json_kuint(j, name, b->n);
	sha256(b->p, b->n, hash);
	(void)snprintf(name, sizeof(name), "%s_digest", key);
	digest_put(j, name, hash);
}

/* Returns whether `b` is the end of `whole`. Most paths that a program gives are the end of the
 * full path. */
static bool is_end_of(const struct bytes *b, const struct bytes *whole)
{
	return b->p != NULL && whole->p != NULL && b->n <= whole->n &&
	       memcmp(whole->p + whole->n - b->n, b->p, b->n) == 0;
}

static void put_args(struct json *j, const struct event *e, size_t left)
{
	bool cut = e->args_cut;

	json_kopen(j, "args", '[');
	for (size_t i = 0; i < e->n_args; i++) {
		/* Each argument counts as at least 8 bytes, because even an empty one takes up
		 * space. */
		if (i == TRACE_MAX_ARGS || left < 8) {
			cut = true;
			break;
		}
		const struct bytes *a = &e->args[i];
		size_t n = a->n < left ? a->n : left;
		cut = cut || n < a->n;
		event_put_text(j, a->p != NULL ? a->p : "", a->n, left);
		left -= n < 8 ? 8 : n;
	}
	json_close(j, ']');
	if (cut) {
		json_kbool(j, "args_cut", true);
	}
}

static void put_error(struct json *j, int error)
{
	const char *name = strerrorname_np(error);

	if (name != NULL) {
		json_kstr(j, "error", name);
	} else {
		json_kint(j, "error", error);
	}
}

const char *event_op(const struct event *e)
{
	return e->call != NULL ? e->call : op_name(e->op);
}

bool event_has_data(const struct event *e)
{
	return e->status != STATUS_NONE || e->more != NULL || e->op != OP_NONE || e->pid != 0 ||
	       e->path.p != NULL || e->address != NULL || e->reason != REASON_NONE ||
	       e->rule != RULE_NONE || e->n_args > 0;
}

void event_put_data(struct json *j, const struct event *e, const struct event_width *w)
{
	const bool cut = w != &EVENT_WIDTHS[0];

	put_text(j, "op", event_op(e));
	put_text(j, "status", event_status_name(e->status));
	if (e->pid != 0) {
		json_kint(j, "pid", e->pid);
	}
	if (e->ppid != 0) {
		json_kint(j, "ppid", e->ppid);
	}
	put_bytes(j, "program", &e->program, w->text);
	put_path(j, "path", &e->path, w->path);
	put_path(j, "path2", &e->path2, w->path);
	if (!cut || !is_end_of(&e->raw, &e->path)) {
		put_bytes(j, "raw", &e->raw, w->text);
	}
	put_path(j, "leads_to", &e->leads_to, w->path);
	put_bytes(j, "attribute", &e->attribute, w->text);
	put_text(j, "mode", mode_name(e->mode));
	put_text(j, "name", e->name);
	put_text(j, "address", e->address);
	if (e->port != 0) {
		json_kuint(j, "port", e->port);
	}
	put_text(j, "protocol", event_protocol_name(e->protocol));
	put_text(j, "rule", e->rule == RULE_ENTRY ? e->entry : event_rule_name(e->rule));
	put_text(j, "reason", reason_code(e->reason));
	if (e->error != 0) {
		put_error(j, e->error);
	}
	if (e->n_args > 0) {
		put_args(j, e, w->args);
	}
	/* A remedy that does not fit is left out, because part of a flag would be useless. */
	if (e->remedy != NULL && strlen(e->remedy) <= w->remedy) {
		json_kstr(j, "remedy", e->remedy);
	}
	if (cut) {
		json_kbool(j, "cut", true);
	}
	if (e->more != NULL) {
		e->more(j, e->more_arg);
	}
}

static void put_words(struct buf *out, const char *before, const char *s, size_t n)
{
	buf_adds(out, before);
	buf_add(out, s, n);
}

void event_message(const struct event *e, struct buf *out)
{
	const char *op = event_op(e);
	const char *reason = reason_code(e->reason);

	buf_adds(out, op != NULL ? op : event_kind_name(e->kind));
	if (e->path.p != NULL) {
		put_words(out, " ", e->path.p, e->path.n);
	}
	if (e->path2.p != NULL) {
		put_words(out, " to ", e->path2.p, e->path2.n);
	}
	if (e->leads_to.p != NULL) {
		put_words(out, " -> ", e->leads_to.p, e->leads_to.n);
	}
	if (e->attribute.p != NULL) {
		put_words(out, " (", e->attribute.p, e->attribute.n);
		buf_addc(out, ')');
	}
	if (e->address != NULL) {
		put_words(out, " ", e->address, strlen(e->address));
		if (e->port != 0) {
			buf_addf(out, strchr(e->address, ':') != NULL ? " port %u" : ":%u",
			         (unsigned)e->port);
		}
	}
	if (e->mode != MODE_NONE) {
		buf_addf(out, " (%s)", mode_name(e->mode));
	}
	if (e->status == STATUS_DENIED) {
		buf_addf(out, ": denied%s%s", reason != NULL ? ", " : "",
		         reason != NULL ? reason : "");
	} else if (e->status == STATUS_ABSENT) {
		buf_adds(out, e->reason == REASON_EXISTS ? ": already there" : ": nothing there");
	}
}

/* Adds to sizes[w] the least number of bytes that the text takes if it is cut to EVENT_WIDTHS[w].
 * Begins with the narrowest width. A text that is cut shorter is the beginning of one that is cut
 * longer, so each byte is measured only once. */
static void add_sizes(const struct bytes *b, bool path, size_t sizes[EVENT_WIDTHS_COUNT])
{
	static const size_t slack =
	        6; /* bytes that a cut may cost: the ellipsis, and the rest of a character */
	size_t at = 0;
	size_t size = 0;

	for (size_t i = 1; b->p != NULL && i <= EVENT_WIDTHS_COUNT; i++) {
		const size_t w = EVENT_WIDTHS_COUNT - i;
		size_t most = path ? EVENT_WIDTHS[w].path : EVENT_WIDTHS[w].text;
		size_t end = b->n <= most ? b->n : cut_at(b->p, most - slack);
		if (end > at) {
			size += json_text_size(b->p + at, end - at);
			at = end;
		}
		sizes[w] += size;
	}
}

size_t event_first_width(const struct event *e, size_t most)
{
	size_t sizes[EVENT_WIDTHS_COUNT] = { 0 };
	size_t w = 0;

	add_sizes(&e->path, true, sizes);
	add_sizes(&e->path2, true, sizes);
	add_sizes(&e->leads_to, true, sizes);
	add_sizes(&e->attribute, false, sizes);
	add_sizes(&e->program, false, sizes);
	while (w + 1 < EVENT_WIDTHS_COUNT && sizes[w] > most) {
		w++;
	}
	return w;
}
