/* tools_check.c - checks the arguments of a call, and says what is wrong with them. */
#include "mcp/tools_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"
#include "base/suggest.h"
#include "base/utf8.h"

#define PIECE_BYTES 1024 /* room for one sentence; names and choices in a table are shorter */

/* The problems found so far, as a list for programs and as two texts for the model. */
struct problems {
	size_t n;
	struct json list;
	struct buf list_text;
	struct buf message;
	struct buf fix;
};

static void problems_init(struct problems *p)
{
	*p = (struct problems){ 0 };
	buf_init(&p->list_text, 64 * PIECE_BYTES);
	buf_init(&p->message, 32 * PIECE_BYTES);
	buf_init(&p->fix, 32 * PIECE_BYTES);
	json_init(&p->list, &p->list_text, false);
	json_open(&p->list, '[');
}

static void problems_done(struct problems *p)
{
	buf_done(&p->list_text);
	buf_done(&p->message);
	buf_done(&p->fix);
}

static void add_problem(struct problems *p, const char *name, const char *what, const char *fix)
{
	const char *between = p->n == 0 ? "" : "; ";

	if (p->n++ >= MAX_MCP_PROBLEMS) {
		return;
	}
	buf_addf(&p->message, "%s'%s' %s", between, name, what);
	buf_addf(&p->fix, "%s%s", between, fix);
	json_open(&p->list, '{');
	json_kstr(&p->list, "argument", name);
	json_kstr(&p->list, "problem", what);
	json_kstr(&p->list, "fix", fix);
	json_close(&p->list, '}');
}

static const char *type_text(const struct json_node *node)
{
	static const char *const TEXTS[] = {
		[JSON_NULL] = "null",        [JSON_FALSE] = "a boolean", [JSON_TRUE] = "a boolean",
		[JSON_NUMBER] = "a number",  [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",
		[JSON_OBJECT] = "an object",
	};

	return TEXTS[node->type];
}

static void add_bounds(struct buf *out, const struct mcp_field *f, const char *unit)
{
	if (f->max != 0) {
		buf_addf(out, " of %" PRId64 " to %" PRId64 "%s", f->min, f->max, unit);
	} else if (f->min != 0) {
		buf_addf(out, " of at least %" PRId64 "%s", f->min, unit);
	}
}

static void add_choices(struct buf *out, const struct mcp_field *f)
{
	for (size_t i = 0; f->choices[i] != NULL; i++) {
		buf_addf(out, "%s\"%s\"", i == 0 ? "one of " : ", ", f->choices[i]);
	}
}

/* Appends the values that the row allows, such as "an integer of 1 to 3600". */
static void add_wanted(struct buf *out, const struct mcp_field *f)
{
	switch (f->type) {
	case MCP_STRING:
		if (f->choices != NULL) {
			add_choices(out, f);
			return;
		}
		buf_adds(out, "a string");
		add_bounds(out, f, " bytes");
		return;
	case MCP_INTEGER:
		buf_adds(out, "an integer");
		add_bounds(out, f, "");
		return;
	case MCP_BOOLEAN:
		buf_adds(out, "true or false");
		return;
	case MCP_STRINGS:
		buf_adds(out, "an array of strings");
		add_bounds(out, f, " items");
		if (f->choices != NULL) {
			buf_adds(out, ", each ");
			add_choices(out, f);
		}
		return;
	}
}

/* Adds a problem. Its `fix` says which values the row allows, and then `note`. */
static void add_wanted_problem(struct problems *p, const struct mcp_field *f, const char *what,
                               const char *note)
{
	auto_buf fix = BUF(PIECE_BYTES);

	buf_addf(&fix, "write %s as ", f->name);
	add_wanted(&fix, f);
	buf_adds(&fix, note);
	add_problem(p, f->name, what, fix.data != NULL ? fix.data : "");
}

static bool is_type(const struct mcp_field *f, const struct json_node *node)
{
	int64_t v = 0;

	switch (f->type) {
	case MCP_STRING:
		return json_is(node, JSON_STRING);
	case MCP_INTEGER:
		return tools_integer(node, &v) == 0;
	case MCP_BOOLEAN:
		return json_is(node, JSON_TRUE) || json_is(node, JSON_FALSE);
	case MCP_STRINGS:
		return json_is(node, JSON_ARRAY);
	}
	return false;
}

int tools_integer(const struct json_node *node, int64_t *ret)
{
	int64_t v = 0;
	const char *rest = json_is(node, JSON_NUMBER) ? number_read_signed(node->str, &v) : NULL;

	if (rest != NULL && *rest == '.') {
		rest += 1 + strspn(rest + 1, "0");
	}
	if (rest == NULL || *rest != '\0' || v > TOOLS_MAX_INTEGER || v < -TOOLS_MAX_INTEGER) {
		return -1;
	}
	*ret = v;
	return 0;
}

const char *tools_plain_name(const char *name, char out[TOOLS_NAME_ROOM])
{
	size_t n = 0;

	for (; n < 40 && name[n] != '\0'; n++) {
		out[n] = (char)(name[n] > ' ' && name[n] <= '~' ? name[n] : '?');
	}
	(void)snprintf(out + n, 4, "%s", name[n] != '\0' ? "..." : "");
	return out;
}

static bool is_within(const struct mcp_field *f, int64_t v)
{
	return v >= f->min && (f->max == 0 || v <= f->max);
}

static void check_type(struct problems *p, const struct mcp_field *f, const struct json_node *node)
{
	char what[64];
	const char *note = "";

	(void)snprintf(what, sizeof(what), "is %s", type_text(node));
	if (json_is(node, JSON_NULL)) {
		note = f->required ? "" : ", or leave it out";
	} else if (f->type == MCP_INTEGER && json_is(node, JSON_NUMBER)) {
		(void)snprintf(what, sizeof(what), "is not an integer, or is too large");
	} else if (f->type != MCP_STRING && json_is(node, JSON_STRING)) {
		note = ", without quotes around it";
	}
	add_wanted_problem(p, f, what, note);
}

static bool is_choice(const struct mcp_field *f, const char *word)
{
	for (size_t i = 0; f->choices != NULL && f->choices[i] != NULL; i++) {
		if (strcmp(f->choices[i], word) == 0) {
			return true;
		}
	}
	return f->choices == NULL;
}

static void add_choice_problem(struct problems *p, const struct mcp_field *f, const char *what,
                               const char *word)
{
	size_t n = 0;
	char note[128] = "";

	while (f->choices[n] != NULL) {
		n++;
	}
	const char *near = suggest(word, strlen(word), f->choices, n, sizeof(f->choices[0]));
	if (near != NULL) {
		(void)snprintf(note, sizeof(note), "; did you mean \"%s\"?", near);
	}
	add_wanted_problem(p, f, what, note);
}

static void check_string(struct problems *p, const struct mcp_field *f,
                         const struct json_node *node)
{
	char what[64];

	if (!utf8_is_text(node->str, node->len)) {
		add_problem(p, f->name, "is not valid text",
		            "write it as UTF-8 without NUL characters or lone surrogates");
	} else if (!is_within(f, (int64_t)node->len)) {
		(void)snprintf(what, sizeof(what), "has %zu bytes", node->len);
		add_wanted_problem(p, f, what, "");
	} else if (!is_choice(f, node->str)) {
		add_choice_problem(p, f, "is not one of the choices", node->str);
	}
}

static void check_strings(struct problems *p, const struct mcp_field *f, const struct json_doc *doc,
                          const struct json_node *node)
{
	char what[64];

	if (!is_within(f, (int64_t)node->n)) {
		(void)snprintf(what, sizeof(what), "has %zu items", node->n);
		add_wanted_problem(p, f, what, "");
		return;
	}
	size_t at = 0;
	JSON_EACH (s, doc, node) {
		if (!json_is(s, JSON_STRING) || !utf8_is_text(s->str, s->len)) {
			(void)snprintf(what, sizeof(what), "has item %zu, which is %s", at,
			               json_is(s, JSON_STRING) ? "not valid text" : type_text(s));
			add_wanted_problem(p, f, what, "");
			return; /* reports only the first bad item: there may be thousands */
		}
		if (!is_choice(f, s->str)) {
			(void)snprintf(what, sizeof(what),
			               "has item %zu, which is not one of the choices", at);
			add_choice_problem(p, f, what, s->str);
			return;
		}
		at++;
	}
}

static void check_field(struct problems *p, const struct mcp_field *f, const struct json_doc *doc,
                        const struct json_node *node)
{
	char what[64];
	int64_t v = 0;

	if (node == NULL) {
		if (f->required) {
			add_wanted_problem(p, f, "is missing", "");
		}
	} else if (!is_type(f, node)) {
		check_type(p, f, node);
	} else if (f->type == MCP_STRING) {
		check_string(p, f, node);
	} else if (f->type == MCP_STRINGS) {
		check_strings(p, f, doc, node);
	} else if (tools_integer(node, &v) == 0 && !is_within(f, v)) {
		(void)snprintf(what, sizeof(what), "is %" PRId64, v);
		add_wanted_problem(p, f, what, "");
	}
}

static void check_unknown(struct problems *p, const struct mcp_tool *t, const char *name)
{
	char shown[TOOLS_NAME_ROOM];
	auto_buf fix = BUF(PIECE_BYTES);
	const char *near = t->n_fields == 0 ? NULL
	                                    : suggest(name, strlen(name), &t->fields[0].name,
	                                              t->n_fields, sizeof(t->fields[0]));

	if (near != NULL) {
		buf_addf(&fix, "did you mean %s?", near);
	} else if (t->n_fields == 0) {
		buf_addf(&fix, "leave it out: %s takes no arguments", t->name);
	} else {
		buf_addf(&fix, "leave it out: %s takes ", t->name);
		for (size_t i = 0; i < t->n_fields; i++) {
			buf_addf(&fix, "%s%s", i == 0 ? "" : ", ", t->fields[i].name);
		}
	}
	add_problem(p, tools_plain_name(name, shown), "is not an argument of this tool",
	            fix.data != NULL ? fix.data : "");
}

static void problems_write(struct problems *p, const char *tool, struct json *j)
{
	auto_buf message = BUF(33 * PIECE_BYTES);

	if (p->n > MAX_MCP_PROBLEMS) {
		buf_addf(&p->message, "; and %zu more", p->n - MAX_MCP_PROBLEMS);
	}
	buf_addf(&message, "%s: %s", tool, p->message.data != NULL ? p->message.data : "");
	json_close(&p->list, ']');
	json_kstr(j, "message", message.data != NULL ? message.data : "");
	json_kstr(j, "fix", p->fix.data != NULL ? p->fix.data : "");
	json_key(j, "problems");
	if (p->list_text.failed) {
		json_raw(j, "[]", 2);
	} else {
		json_raw(j, p->list_text.data, p->list_text.len);
	}
}

size_t tools_check_arguments(const struct mcp_tool *t, const struct json_doc *doc,
                             const struct json_node *args, struct json *j)
{
	AUTO(problems_done) struct problems p;

	problems_init(&p);
	for (size_t i = 0; i < t->n_fields; i++) {
		check_field(&p, &t->fields[i], doc, json_member(doc, args, t->fields[i].name));
	}
	JSON_EACH (m, doc, args) {
		if (!ARRAY_HAS(field, t->fields, t->n_fields, strcmp(field->name, m->key) == 0)) {
			check_unknown(&p, t, m->key);
		}
	}
	if (p.n > 0) {
		problems_write(&p, t->name, j);
	}
	return p.n;
}
