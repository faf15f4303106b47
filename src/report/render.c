/* render.c - writes lines of a record as text for people. */
#include "report/render.h"

#include <inttypes.h>
#include <string.h>

#include "report/limit_text.h"
#include "trace/layers.h"
#include "base/amount.h"
#include "base/name.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"

#define MESSAGE_CHARS 117

/* How each kind of line is shown to people. */
static const struct render_kind {
	const char *category; /* NULL: unknown */
	enum render_group group;
	enum render_mark mark;
} KINDS[EV_OTHER + 1] = {
	[EV_RUN] = { "RUN", GROUP_NONE, MARK_STEP },
	[EV_LAYERS] = { "LAYERS", GROUP_NONE, MARK_STEP },
	[EV_FILES] = { "FILES", GROUP_NONE, MARK_STEP },
	[EV_END] = { "END", GROUP_NONE, MARK_STEP },
	[EV_SKILL_STARTED] = { "START", GROUP_NONE, MARK_STEP },
	[EV_SKILL_COMPLETED] = { "DONE", GROUP_NONE, MARK_STEP },
	[EV_SKILL_FAILED] = { "FAILED", GROUP_NONE, MARK_WARN },
	[EV_EXIT_CODE] = { "EXIT", GROUP_NONE, MARK_STEP },
	[EV_DNS_RESOLUTION] = { "DNS", GROUP_NETWORK, MARK_GOOD },
	[EV_NETWORK_POLICY_APPLIED] = { "NET", GROUP_NONE, MARK_NONE },
	[EV_NETWORK_POLICY_REMOVED] = { "NET", GROUP_NONE, MARK_NONE },
	[EV_NETWORK_EGRESS_ALLOWED] = { "NET", GROUP_NETWORK, MARK_GOOD },
	[EV_NETWORK_EGRESS_BLOCKED] = { "NET", GROUP_DENIED, MARK_DENIED },
	[EV_NETWORK_EGRESS_TOTAL] = { "NET", GROUP_NETWORK, MARK_NONE },
	[EV_FILE_READ] = { "READ", GROUP_READ, MARK_GOOD },
	[EV_FILE_WRITE] = { "WRITE", GROUP_WRITTEN, MARK_GOOD },
	[EV_FILE_BLOCKED] = { "FILE", GROUP_DENIED, MARK_DENIED },
	[EV_ENV_VAR_ACCESS] = { "ENV", GROUP_ENV, MARK_NONE },
	[EV_SYSCALL_FILTERED] = { "SYSCALL", GROUP_PROGRAMS, MARK_NONE },
	[EV_SYSCALL_BLOCKED] = { "SYSCALL", GROUP_DENIED, MARK_DENIED },
	[EV_PROCESS_SPAWNED] = { "EXEC", GROUP_PROGRAMS, MARK_GOOD },
	[EV_STDOUT] = { "STDOUT", GROUP_OUTPUT, MARK_NONE },
	[EV_STDERR] = { "STDERR", GROUP_OUTPUT, MARK_NONE },
	[EV_POLICY_VIOLATION] = { "POLICY", GROUP_DENIED, MARK_DENIED },
	[EV_RESOURCE_LIMIT_HIT] = { "LIMIT", GROUP_LIMITS, MARK_WARN },
};

static const struct render_kind *find_kind(const struct line *l)
{
	static const struct render_kind unknown = { "EVENT", GROUP_NONE, MARK_NONE };

	return KINDS[l->kind].category != NULL ? &KINDS[l->kind] : &unknown;
}

bool render_is_violation(const struct line *l)
{
	return json_is(json_member(&l->doc, l->top, "violation"), JSON_TRUE);
}

enum render_group render_group(const struct line *l)
{
	enum render_group group = find_kind(l)->group;

	if (render_is_violation(l)) {
		return GROUP_DENIED;
	}
	if (group == GROUP_DENIED && reason_is_misfortune(line_get_reason(l))) {
		return GROUP_FAILED;
	}
	/* A line with the reason "protected" belongs here even if its status is not "denied":
	 * the program was started, but will fail because a file name is protected. */
	if (line_get_status(l) == STATUS_DENIED || line_get_reason(l) == REASON_PROTECTED ||
	    group == GROUP_DENIED) {
		return GROUP_REFUSED;
	}
	if (line_get_status(l) == STATUS_ABSENT && group != GROUP_NONE) {
		return GROUP_ABSENT;
	}
	return group == GROUP_WRITTEN && line_get_rule(l) == RULE_PRIVATE ? GROUP_PRIVATE : group;
}

static bool is_system(const struct line *l)
{
	enum event_rule rule = line_get_rule(l);

	return rule == RULE_SYSTEM || rule == RULE_ROOTFS || rule == RULE_KERNEL;
}

bool render_is_routine(const struct line *l)
{
	const char *path = line_text(l, "path");

	switch (render_group(l)) {
	case GROUP_READ:
	case GROUP_ABSENT:
		/* The line of a repeat does not say what it repeats: another line does. */
		return is_system(l) || line_get(l, "repeat_of") != NULL;
	case GROUP_WRITTEN:
		return line_get_rule(l) == RULE_KERNEL && path != NULL &&
		       strncmp(path, "/dev/", 5) == 0;
	default:
		return l->kind == EV_SKILL_STARTED || l->kind == EV_EXIT_CODE ||
		       l->kind == EV_SKILL_COMPLETED || l->kind == EV_SKILL_FAILED;
	}
}

void render_end(struct buf *out, const char *end, int64_t exit_code)
{
	const char *name =
	        exit_code > 128 && exit_code < 128 + 64 ? sigabbrev_np((int)exit_code - 128) : NULL;

	if (name_to_end(end) == SSB_END_SIGNALED && name != NULL) {
		buf_addf(out, "SIG%s", name);
	} else {
		visible_text(out, end, false);
	}
}

void render_text(struct buf *out, const struct json_node *node, const char *otherwise)
{
	if (json_is(node, JSON_STRING) || json_is(node, JSON_NUMBER)) {
		visible_bytes(out, node->str, node->len, false);
	} else {
		buf_adds(out, otherwise);
	}
}

static void put_file(struct buf *out, const struct line *l, const char *op_text)
{
	static const struct {
		const char *member;
		const char *before;
		const char *after;
	} more[] = {
		{ "path2", " to ", "" },
		{ "leads_to", " -> ", "" },
		{ "attribute", " (", ")" },
	};
	enum op op = line_get_op(l);
	enum mode mode = line_get_mode(l);
	bool exchange = mode == MODE_EXCHANGE;

	if (op == OP_OPEN && mode != MODE_NONE) {
		buf_adds(out, mode == MODE_READ     ? "read"
		              : mode == MODE_CREATE ? "create"
		                                    : "write");
	} else {
		visible_text(out,
		             exchange         ? mode_name(mode)
		             : op == OP_OTHER ? op_text
		                              : op_words(op),
		             false);
	}
	buf_addc(out, ' ');
	render_text(out, line_get(l, "path"), "?");
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		if (line_get(l, more[i].member) != NULL) {
			buf_adds(out, i == 0 && exchange ? " and " : more[i].before);
			render_text(out, line_get(l, more[i].member), "?");
			buf_adds(out, more[i].after);
		}
	}
}

static void put_network(struct buf *out, const struct line *l)
{
	const struct json_node *to = line_get(l, "name");
	bool question = line_get_protocol(l) == PROTOCOL_DNS;

	to = to != NULL && to->len > 0 ? to : line_get(l, "address");
	buf_adds(out, question                    ? "look up "
	              : line_get_op(l) == OP_SEND ? "send to "
	                                          : "connect to ");
	render_text(out, to, question ? "a name that is not a host name" : "?");
	if (!question && json_integer(line_get(l, "port"), 0) > 0) {
		buf_addf(out, " port %" PRId64, json_integer(line_get(l, "port"), 0));
	}
	if (!question && line_get(l, "protocol") != NULL) {
		buf_adds(out, " (");
		render_text(out, line_get(l, "protocol"), "");
		buf_addc(out, ')');
	}
}

static void put_words(struct buf *out, const struct line *l, const struct json_node *first,
                      const char *between)
{
	for (const struct json_node *a = first; a != NULL; a = json_next(&l->doc, a)) {
		buf_adds(out, between);
		render_text(out, a, "?");
		between = " ";
	}
}

static bool same_text(const struct json_node *node, const char *p, size_t n)
{
	return node != NULL && json_is(node, JSON_STRING) && node->len == n &&
	       memcmp(node->str, p, n) == 0;
}

/* Writes the name of the program. The first argument (argv[0]) can be any text that the skill
 * chose. So it is shown only if it is the program's path, or the name of a program of the
 * host. */
static void put_program(struct buf *out, const struct line *l, const struct json_node *args)
{
	const struct json_node *path = line_get(l, "path");
	const struct json_node *word = json_first(&l->doc, args);

	if (!json_is(path, JSON_STRING) || same_text(word, path->str, path->len)) {
		put_words(out, l, word, "");
		return;
	}
	const char *slash = memrchr(path->str, '/', path->len);
	const char *name = slash != NULL ? slash + 1 : path->str;
	bool honest = same_text(word, name, path->len - (size_t)(name - path->str));
	if (honest && strncmp(path->str, "/usr/", 5) == 0) {
		put_words(out, l, word, "");
		return;
	}
	render_text(out, path, "?");
	if (!honest) {
		buf_adds(out, " (as ");
		render_text(out, word, "?");
		buf_addc(out, ')');
	}
	put_words(out, l, json_next(&l->doc, word), " ");
}

/* Writes a refused system call. For a socket, the kind of the socket says more than the call. */
static void put_call(struct buf *out, const struct line *l, const char *op)
{
	static const struct {
		const char *family; /* the first argument */
		const char *words;
	} SOCKETS[] = {
		{ "0x1", "make a unix socket" },
		{ "0x10", "make a netlink socket" },
		{ "0x11", "make a raw packet socket" },
	};
	const struct json_node *numbers = line_get(l, "arguments");
	const struct json_node *first =
	        json_is(numbers, JSON_ARRAY) ? json_first(&l->doc, numbers) : NULL;

	for (size_t i = 0; line_get_op(l) == OP_SOCKET && i < ARRAY_LEN(SOCKETS); i++) {
		if (same_text(first, SOCKETS[i].family, strlen(SOCKETS[i].family))) {
			buf_adds(out, SOCKETS[i].words);
			return;
		}
	}
	buf_adds(out, "call ");
	visible_text(out, op, false);
}

/* Writes a line of output without the carriage return with which a terminal ends each line. */
static void put_output(struct buf *out, const struct json_node *text)
{
	if (json_is(text, JSON_STRING)) {
		size_t len = text->len - (text->len > 0 && text->str[text->len - 1] == '\r');
		visible_bytes(out, text->str, len, false);
	}
}

void render_what(struct buf *out, const struct line *l)
{
	const char *op = line_text(l, "op");
	const struct json_node *args = line_get(l, "args");
	enum render_group group = find_kind(l)->group;

	if (l->kind == EV_RESOURCE_LIMIT_HIT && limit_text_known(l)) {
		limit_text_what(out, l);
	} else if (l->kind == EV_SYSCALL_BLOCKED && op != NULL) {
		put_call(out, l, op);
	} else if (group == GROUP_PROGRAMS && json_is(args, JSON_ARRAY) && args->n > 0) {
		put_program(out, l, args);
	} else if (op != NULL && line_get(l, "path") != NULL) {
		put_file(out, l, op);
	} else if (line_get(l, "address") != NULL || line_get(l, "name") != NULL) {
		put_network(out, l);
	} else if (group == GROUP_OUTPUT) {
		put_output(out, line_get(l, "message"));
	} else {
		render_text(out, line_get(l, "message"), l->kind_name);
	}
}

static void put_end(struct buf *out, const struct line *l)
{
	const struct json_node *counters = line_get(l, "counters");
	int64_t violations = json_integer(json_member(&l->doc, counters, "violations"), 0);

	int64_t status = json_integer(line_get(l, "exit_code"), -1);
	const char *end = line_text(l, "end");

	render_end(out, end != NULL ? end : "ended", status);
	buf_addf(out, ", exit status %" PRId64 ", ", status);
	amount_time(out, json_integer(line_get(l, "duration_us"), 0));
	if (violations > 0) {
		buf_addf(out, ", %" PRId64 " violation%s", violations, violations == 1 ? "" : "s");
	}
}

static void put_layers(struct buf *out, const struct line *l)
{
	const struct json_node *layers = line_get(l, "layers");
	bool lost = false;

	JSON_EACH (n, &l->doc, layers) {
		const char *state = json_string(json_member(&l->doc, n, "state"), NULL);
		if (layers_state_from(state) != LAYER_ON) {
			buf_adds(out, lost ? ", " : "WITHOUT ");
			visible_text(out, n->key != NULL ? n->key : "?", false);
			lost = true;
		}
	}
	if (!lost) {
		buf_adds(out, "all on");
	}
}

/* Writes only the first argument of a system call, if its record has any: the others do not tell
 * attempts apart. */
static void put_arguments(struct buf *out, const struct line *l)
{
	const struct json_node *numbers = line_get(l, "arguments");

	if (json_is(numbers, JSON_ARRAY) && numbers->n > 0) {
		buf_addc(out, '(');
		put_words(out, l, json_first(&l->doc, numbers), "");
		buf_addc(out, ')');
	}
}

static void put_message(struct buf *out, const struct line *l)
{
	int64_t count = json_integer(line_get(l, "count"), 0);
	int64_t first = json_integer(line_get(l, "repeat_of"), -1);

	if (l->kind == EV_RUN) {
		render_text(out, line_get(l, "skill_name"), "?");
		const struct json_node *version = line_get(l, "skill_version");
		buf_adds(out, json_is(version, JSON_STRING) && version->len > 0 ? " " : "");
		render_text(out, version, "");
	} else if (l->kind == EV_END) {
		put_end(out, l);
	} else if (l->kind == EV_LAYERS) {
		put_layers(out, l);
	} else if (l->kind == EV_FILES) {
		buf_addf(out, "%" PRId64 " of the skill, ", count);
		render_text(out, line_get(l, "files_digest"), "no digest");
	} else if (first >= 0) {
		buf_addf(out, "%" PRId64 " more like record %" PRId64, count, first);
	} else {
		render_what(out, l);
		put_arguments(out, l);
	}
}

/* Cuts the text at the end of a character. An escape such as \xff counts as several
 * characters. */
static void cut_chars(struct buf *text, size_t max)
{
	size_t chars = 0;

	for (size_t i = 0; i < text->len; chars++) {
		uint32_t cp = 0;
		size_t n = utf8_decode(text->data + i, text->len - i, &cp);
		if (chars == max) {
			text->len = i;
			text->data[i] = '\0';
			buf_adds(text, "...");
			return;
		}
		i += n > 0 ? n : 1;
	}
}

void render_message(struct buf *out, const struct line *l)
{
	auto_buf message = BUF(RENDER_MAX);

	put_message(&message, l);
	cut_chars(&message, MESSAGE_CHARS);
	buf_adds(out, message.data != NULL ? message.data : "");
}

const char *render_category(const struct line *l)
{
	return find_kind(l)->category;
}

enum render_mark render_mark(const struct line *l)
{
	switch (render_group(l)) {
	case GROUP_DENIED:
	case GROUP_REFUSED:
		return MARK_DENIED;
	case GROUP_FAILED:
		return MARK_WARN;
	case GROUP_ABSENT:
		return MARK_NONE;
	default:
		return find_kind(l)->mark;
	}
}
