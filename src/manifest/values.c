/* values.c - reads one value of the tree: checks its type and its range, and runs the check of its
 * row. */
#include "manifest/values.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"

/* ---- types --------------------------------------------------------------- */

static const char *const KIND_NAMES[] = {
	[YNODE_SCALAR] = "a single value",
	[YNODE_MAP] = "a mapping",
	[YNODE_SEQ] = "a list",
};

void values_report_type(const struct ctx *c, const struct ynode *n, const struct field *f,
                        const char *wanted, const char *remedy)
{
	report_add(c->rep, SSB_ERROR, n->line, n->col, remedy, "%s must be %s, not %s", f->key,
	           wanted, ynode_is_null(n) ? "empty" : KIND_NAMES[n->kind]);
}

/* The texts of checks have the form "what is wrong; remedy". */
void values_report_problem(const struct ctx *c, const struct ynode *n, const struct field *f,
                           const char *problem)
{
	char quoted[QUOTE_SIZE];
	const char *split = strstr(problem, "; ");
	int len = split != NULL ? (int)(split - problem) : (int)strlen(problem);

	report_add(c->rep, SSB_ERROR, n->line, n->col, split != NULL ? split + 2 : "", "%s %s %.*s",
	           f->key, report_quote(quoted, n->text), len, problem);
}

static const char *no_text_remedy(const struct ynode *n, const struct field *f)
{
	if (n->kind != YNODE_SCALAR) {
		return f->missing != NULL ? f->missing : "write one text";
	}
	if (strcmp(n->text, "~") == 0) {
		return "put it in quotes: \"~\"";
	}
	if (n->key == NULL) {
		return "remove the item, or put it in quotes";
	}
	return f->missing != NULL ? f->missing : "write \"\" for an empty text, or remove the key";
}

/* Returns the text of a node (borrowed). If the node is not a text, reports this and returns
 * NULL. */
const char *values_node_text(const struct ctx *c, const struct ynode *n, const struct field *f)
{
	char remedy[64];

	if (n->bad) {
		return NULL;
	}
	if (n->kind != YNODE_SCALAR || ynode_is_null(n)) {
		values_report_type(c, n, f, "a text", no_text_remedy(n, f));
		return NULL;
	}
	if (ynode_is_bool(n)) {
		snprintf(remedy, sizeof(remedy), "put it in quotes: \"%s\"", n->text);
		report_add(c->rep, SSB_ERROR, n->line, n->col, remedy,
		           "%s must be a text, not a truth value", f->key);
		return NULL;
	}
	return n->text;
}

bool values_node_is_list(const struct ctx *c, const struct ynode *n, const struct field *f)
{
	size_t count = 0;

	if (n->bad) {
		return false;
	}
	if (n->kind != YNODE_SEQ) {
		values_report_type(c, n, f, "a list",
		                   ynode_is_null(n) ? "write []"
		                                    : "write [\"...\"], or one \"- ...\" per line");
		return false;
	}
	for (const struct ynode *item = n->first; item != NULL; item = item->next) {
		if (++count > MAX_LIST_ITEMS) {
			report_add(c->rep, SSB_ERROR, item->line, item->col, "shorten the list",
			           "%s has more than %d items", f->key, MAX_LIST_ITEMS);
			return false;
		}
	}
	return true;
}

bool values_list_alloc(struct ctx *c, const struct ynode *list, size_t item_size, void *ret)
{
	size_t n = 0;

	for (const struct ynode *item = list->first; item != NULL; item = item->next) {
		n++;
	}
	if (n == 0) {
		return false;
	}
	void *v = calloc(n, item_size);
	if (v == NULL) {
		c->nomem = true;
		return false;
	}
	memcpy(ret, &v, sizeof(v));
	return true;
}

/* ---- values -------------------------------------------------------------- */

/* Returns the text that the row's check made of the value; it is new. If the check refuses the
 * value, reports this and returns NULL. */
static char *checked_text(struct ctx *c, const struct ynode *n, const struct field *f)
{
	const char *s = values_node_text(c, n, f);
	char *out = NULL;

	if (s == NULL) {
		return NULL;
	}
	const char *problem = f->check(s, &out);
	if (problem != NULL) {
		values_report_problem(c, n, f, problem);
		return NULL;
	}
	return out;
}

void values_read_text(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	char *s = checked_text(c, n, f);

	if (s != NULL) {
		*(char **)at = s;
	}
}

void values_read_mtext(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	char *s = checked_text(c, n, f);

	if (s != NULL) {
		*(struct mtext *)at = (struct mtext){ s, n->line, n->col };
	}
}

bool mtext_list_has(const struct mtext_list *l, const char *s)
{
	assert(s != NULL);
	return ARRAY_HAS(e, l->v, l->n, strcmp(e->s, s) == 0);
}

void values_read_texts(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	struct mtext_list *l = at;

	if (!values_node_is_list(c, n, f) || !values_list_alloc(c, n, sizeof(l->v[0]), &l->v)) {
		return;
	}
	for (const struct ynode *item = n->first; item != NULL; item = item->next) {
		auto_free char *s = checked_text(c, item, f);
		if (s == NULL) {
			continue;
		}
		if (f->unique && mtext_list_has(l, s)) {
			char quoted[QUOTE_SIZE];
			report_add(c->rep, SSB_WARNING, item->line, item->col, "remove this one",
			           "%s has %s twice", f->key, report_quote(quoted, s));
			continue;
		}
		l->v[l->n++] = (struct mtext){ steal_ptr(&s), item->line, item->col };
	}
}

static bool parse_digits(const char *s, uint64_t max, uint64_t *ret)
{
	if (s[0] == '\0' || s[strspn(s, "0123456789")] != '\0' || (s[0] == '0' && s[1] != '\0')) {
		return false; /* some readers take a number with a leading zero for octal */
	}
	if (!number_parse(s, 0, max, ret)) {
		*ret = UINT64_MAX; /* the caller reports that it is out of range */
	}
	return true;
}

bool values_node_number(const struct ctx *c, const struct ynode *n, const struct field *f,
                        uint64_t *ret)
{
	char quoted[QUOTE_SIZE];
	char remedy[96];
	uint64_t v = 0;

	if (n->bad) {
		return false;
	}
	snprintf(remedy, sizeof(remedy), "write a whole number from %" PRIu64 " to %" PRIu64,
	         f->min, f->max);
	if (n->kind != YNODE_SCALAR || ynode_is_null(n)) {
		values_report_type(c, n, f, "a number", remedy);
		return false;
	}
	if (n->quoted) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, "remove the quotes",
		           "%s must be a number, not the text %s", f->key,
		           report_quote(quoted, n->text));
		return false;
	}
	if (!parse_digits(n->text, f->max, &v)) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, remedy,
		           "%s %s is not a plain decimal number", f->key,
		           report_quote(quoted, n->text));
		return false;
	}
	if (v < f->min || v > f->max) {
		report_add(c->rep, SSB_ERROR, n->line, n->col, remedy, "%s %s is out of range",
		           f->key, report_quote(quoted, n->text));
		return false;
	}
	*ret = v;
	return true;
}

void values_read_number(struct ctx *c, const struct ynode *n, const struct field *f, void *at)
{
	(void)values_node_number(c, n, f, at);
}

int values_node_choice(const struct ctx *c, const struct ynode *n, const struct field *f,
                       const char *const *names, size_t n_names)
{
	const char *s = values_node_text(c, n, f);
	char quoted[QUOTE_SIZE];
	char remedy[96];

	if (s == NULL) {
		return -1;
	}
	for (size_t i = 0; i < n_names; i++) {
		if (strcmp(s, names[i]) == 0) {
			return (int)i;
		}
	}
	const char *near = report_nearest(s, names, n_names, sizeof(names[0]));
	if (near != NULL) {
		snprintf(remedy, sizeof(remedy), "did you mean %s?", near);
	} else {
		int len = snprintf(remedy, sizeof(remedy), "write one of");
		for (size_t i = 0; i < n_names; i++) {
			len += snprintf(remedy + len, sizeof(remedy) - (size_t)len, "%s %s",
			                i > 0 ? "," : "", names[i]);
		}
	}
	report_add(c->rep, SSB_ERROR, n->line, n->col, remedy, "unknown %s %s", f->key,
	           report_quote(quoted, s));
	return -1;
}
