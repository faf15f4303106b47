/* policy_values.c - readers of single values of session.yaml. */
#include "session/policy_priv.h"

#include <inttypes.h>
#include <string.h>

#include "base/own.h"
#include "manifest/resources.h"
#include "session/money.h"

/* Returns true for a plain scalar. A number in quotes is a text, and is rejected. */
static bool is_plain(const struct ctx *c, const struct ynode *n, const struct field *f,
                     const char *wanted, const char *remedy)
{
	char quoted[QUOTE_SIZE];

	if (n->bad) {
		return false;
	}
	if (n->kind != YNODE_SCALAR || ynode_is_null(n)) {
		values_report_type(c, n, f, wanted, remedy);
		return false;
	}
	if (n->quoted) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, "remove the quotes",
		           "%s must be %s, not the text %s", f->key, wanted,
		           report_quote(quoted, n->text));
		return false;
	}
	return true;
}

void policy_read_money(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	const char *why = "";
	char quoted[QUOTE_SIZE];

	if (is_plain(c, n, f, "an amount of dollars", "write dollars, such as 0.50") &&
	    !money_parse(n->text, at, &why)) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, "write dollars, such as 0.50",
		           "%s %s %s", f->key, report_quote(quoted, n->text), why);
	}
}

void policy_read_ppm(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	static const char REMEDY[] = "write a fraction of 1, such as 0.80";
	char quoted[QUOTE_SIZE];
	struct decimal d;
	uint64_t v = 0;

	if (!is_plain(c, n, f, "a number from 0 to 1", REMEDY)) {
		return;
	}
	if (!decimal_parse(n->text, strlen(n->text), &d)) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, REMEDY, "%s %s is not a number",
		           f->key, report_quote(quoted, n->text));
		return;
	}
	enum decimal_fit fit = decimal_times(&d, 1000000, 1000000, &v);
	if (fit != DECIMAL_EXACT) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, REMEDY, "%s %s is %s", f->key,
		           report_quote(quoted, n->text),
		           fit == DECIMAL_MORE ? "more than 1" : "finer than a millionth");
		return;
	}
	*(unsigned *)at = (unsigned)v;
}

void policy_read_duration(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	static const char REMEDY[] = "write a time such as 90s, 30m or 1.5h";
	const char *s = values_node_text(c, n, f);
	char quoted[QUOTE_SIZE];
	uint64_t ms = 0;

	if (s == NULL) {
		return;
	}
	if (!session_duration_parse(s, &ms)) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, REMEDY, "%s %s is not a time",
		           f->key, report_quote(quoted, s));
	} else if (ms < f->min || ms > f->max) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, REMEDY,
		           "%s %s is out of range: from %" PRIu64 " to %" PRIu64 " seconds", f->key,
		           report_quote(quoted, s), f->min / 1000, f->max / 1000);
	} else {
		*(uint64_t *)at = ms;
	}
}

void policy_read_seconds(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	uint64_t v = 0;

	if (values_node_number(c, n, f, &v)) {
		*(uint64_t *)at = v * 1000;
	}
}

/* Returns true for a text such as "10MB", with at least one digit and one letter. */
static bool has_unit(const struct ynode *n)
{
	size_t len = n->kind == YNODE_SCALAR && !n->bad ? strlen(n->text) : 0;

	return len > 1 && n->text[0] >= '1' && n->text[0] <= '9' &&
	       (n->text[len - 1] > '9' || n->text[len - 1] < '0');
}

void policy_read_size(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	char quoted[QUOTE_SIZE];
	uint64_t v = 0;

	if (!has_unit(n)) {
		values_read_number(c, n, f, at);
	} else if (!resource_number(n->text, UNIT_BYTES, &v) || v > f->max) {
		report_add(c->rep, SSB_ERROR, n->line, n->col,
		           "write bytes, or a size such as 10MB, up to 1024TB",
		           "%s %s is not a size, or is too large", f->key,
		           report_quote(quoted, n->text));
	} else {
		*(uint64_t *)at = v;
	}
}

void policy_read_flag(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	char quoted[QUOTE_SIZE];
	bool plain = n->kind == YNODE_SCALAR && !n->quoted;

	if (n->bad) {
		return;
	}
	if (n->kind != YNODE_SCALAR || ynode_is_null(n)) {
		values_report_type(c, n, f, "true or false", "write true or false");
	} else if (plain && strcmp(n->text, "true") == 0) {
		*(bool *)at = true;
	} else if (plain && strcmp(n->text, "false") == 0) {
		*(bool *)at = false;
	} else {
		report_add(c->rep, SSB_ERROR, n->line, n->col, "write true or false",
		           "%s %s is neither true nor false", f->key,
		           report_quote(quoted, n->text));
	}
}

void policy_read_act(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	const char *names[SESSION_ACTS];

	for (size_t i = 0; i < SESSION_ACTS; i++) {
		names[i] = session_act_name((enum session_act)i);
	}
	int i = values_node_choice(c, n, f, names, ARRAY_LEN(names));
	if (i >= 0) {
		*(enum session_act *)at = (enum session_act)i;
	}
}

static const char *line_problem(const char *s, size_t room)
{
	if (s[0] == '\0') {
		return "is empty; write a word, or remove the key";
	}
	if (s[strcspn(s, "\n\t")] != '\0') {
		return "has a line break or tab in it; write one line";
	}
	return strlen(s) >= room ? "is too long; shorten it" : NULL;
}

void policy_read_short(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	const char *s = values_node_text(c, n, f);
	const char *problem = s != NULL ? line_problem(s, f->max) : NULL;

	if (problem != NULL) {
		values_report_problem(c, n, f, problem);
	} else if (s != NULL) {
		snprintf(at, f->max, "%s", s);
	}
}

void policy_read_ignored(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	(void)c;
	(void)n;
	(void)f;
	(void)at;
}

char *policy_read_secret(struct ctx *c, const struct ynode *n, const struct field *f)
{
	if (n->bad) {
		return NULL;
	}
	if (n->kind != YNODE_SCALAR || ynode_is_null(n)) {
		values_report_type(c, n, f, "a text", "write one text");
		return NULL;
	}
	const char *problem = line_problem(n->text, f->max);
	if (problem != NULL) {
		const char *remedy = strstr(problem, "; ");
		report_add(c->rep, SSB_ERROR, n->line, n->col, remedy + 2, "%s %.*s", f->key,
		           (int)(remedy - problem), problem);
		return NULL;
	}
	char *s = strdup(n->text);
	c->nomem = c->nomem || s == NULL;
	return s;
}
