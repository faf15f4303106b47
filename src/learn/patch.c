/* patch.c - removes lines from a manifest, as a unified diff.
 *
 * The lines are removed at the places that the parser gives. The result is parsed again, and
 * compared with the manifest that should remain. If the code here does not expect a form of
 * YAML, the patch is longer, but never wrong. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "learn/shrink.h"
#include "manifest/write.h"

#define CONTEXT 3

struct patch_line {
	const char *p; /* including its newline */
	size_t len;
	bool gone;
	char *instead; /* text that replaces the line; NULL: the line is not changed */
};

struct cut {
	struct patch_line *v;
	size_t n;
	bool nomem;
};

static void cut_done(struct cut *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].instead);
	}
	free(c->v);
}

static bool cut_begin(struct cut *c, const char *text, size_t len)
{
	size_t lines = 1;

	for (size_t i = 0; i < len; i++) {
		lines += text[i] == '\n';
	}
	c->v = calloc(lines, sizeof(c->v[0]));
	for (size_t at = 0; c->v != NULL && at < len;) {
		const char *newline = memchr(text + at, '\n', len - at);
		size_t n = newline != NULL ? (size_t)(newline - text) + 1 - at : len - at;
		c->v[c->n++] = (struct patch_line){ .p = text + at, .len = n };
		at += n;
	}
	return c->v != NULL;
}

/* ---- single lines ---------------------------------------------------------------- */

static size_t indent_of(const struct patch_line *l)
{
	size_t n = 0;

	while (n < l->len && l->p[n] == ' ') {
		n++;
	}
	return n;
}

static bool is_blank(const struct patch_line *l)
{
	size_t n = indent_of(l);

	return n == l->len || l->p[n] == '\n' || l->p[n] == '\r' || l->p[n] == '#';
}

/* Returns true if the line begins with the dash of an item. */
static bool is_item(const struct patch_line *l)
{
	size_t n = indent_of(l);

	return n + 1 < l->len && l->p[n] == '-' && (l->p[n + 1] == ' ' || l->p[n + 1] == '\n');
}

/* Returns the new text of the line, which the caller may change. If there is none yet, it is a
 * copy of the old text. NULL: out of memory. */
static char *line_text(struct cut *c, size_t at)
{
	struct patch_line *l = &c->v[at];

	if (l->instead == NULL) {
		l->instead = strndup(l->p, l->len);
		c->nomem |= l->instead == NULL;
	}
	return l->instead;
}

/* ---- items of block lists: whole lines ----------------------------------------------- */

static void put_empty(struct cut *c, size_t item);

/* Removes the lines of the item that begins at line `at`, including comments within the item. */
static void remove_lines(struct cut *c, size_t at)
{
	size_t dash = indent_of(&c->v[at]);
	size_t last = at;

	for (size_t i = at + 1; i < c->n; i++) {
		if (is_blank(&c->v[i])) {
			continue;
		}
		if (indent_of(&c->v[i]) <= dash) {
			break;
		}
		last = i;
	}
	for (size_t i = at; i <= last; i++) {
		c->v[i].gone = true;
	}
	put_empty(c, at);
}

/* If no item of a list is left, writes the list as "key: []". */
static void put_empty(struct cut *c, size_t item)
{
	size_t dash = indent_of(&c->v[item]);
	size_t key = item;

	for (size_t i = item + 1; i < c->n && (is_blank(&c->v[i]) || indent_of(&c->v[i]) >= dash);
	     i++) {
		if (!is_blank(&c->v[i]) && indent_of(&c->v[i]) == dash && !is_item(&c->v[i])) {
			break; /* the next key begins: items may be indented like their key */
		}
		if (is_item(&c->v[i]) && indent_of(&c->v[i]) == dash && !c->v[i].gone) {
			return;
		}
	}
	while (key > 0) {
		const struct patch_line *l = &c->v[--key];
		if (is_blank(l) || indent_of(l) > dash) {
			continue;
		}
		if (!is_item(l) || indent_of(l) < dash) {
			break;
		}
		if (!l->gone) {
			return;
		}
	}
	char *text = line_text(c, key);
	char *colon = text != NULL ? strchr(text, ':') : NULL;
	char *longer = NULL;
	if (colon != NULL && asprintf(&longer, "%.*s [] %s", (int)(colon + 1 - text), text,
	                              colon + 1 + strspn(colon + 1, " ")) >= 0) {
		size_t end = strlen(longer);
		if (end > 1 && strcmp(longer + end - 2, " \n") == 0) {
			memcpy(longer + end - 2, "\n", 2);
		}
		free(text);
		c->v[key].instead = longer;
	}
	c->nomem |= colon != NULL && longer == NULL;
}

/* ---- items of flow lists: parts of a line --------------------------------------------- */

static size_t token_end(const char *s, size_t at)
{
	char quote = s[at] == '"' || s[at] == '\'' ? s[at] : '\0';

	if (quote == '\0') {
		return at + strcspn(s + at, ",]}\n");
	}
	for (at++; s[at] != '\0' && s[at] != '\n'; at++) {
		bool escape = quote == '"' ? s[at] == '\\' : s[at] == quote && s[at + 1] == quote;
		if (escape && s[at + 1] != '\0') {
			at++;
		} else if (s[at] == quote) {
			return at + 1;
		}
	}
	return at;
}

/* Removes an item and one comma beside it. */
static void remove_token(char *s, size_t from)
{
	size_t end = token_end(s, from);

	end += strspn(s + end, " ");
	if (s[end] == ',') {
		end++;
		end += strspn(s + end, " ");
	} else {
		while (from > 0 && s[from - 1] == ' ') {
			from--;
		}
		from -= from > 0 && s[from - 1] == ',';
	}
	memmove(s + from, s + end, strlen(s + end) + 1);
}

/* Returns the offset of the byte at column `col`, which counts characters. */
static size_t byte_of(const char *s, unsigned col)
{
	size_t at = 0;

	while (s[at] != '\0' && col > 1) {
		at++;
		col -= ((unsigned char)s[at] & 0xc0) != 0x80;
	}
	return at;
}

static void remove_text(struct cut *c, unsigned line, unsigned col)
{
	struct patch_line *l = line > 0 && line <= c->n ? &c->v[line - 1] : NULL;

	if (l == NULL || l->gone) {
		return;
	}
	size_t dash = indent_of(l);
	if (is_item(l) && dash + 1 + strspn(l->p + dash + 1, " ") == col - 1) {
		remove_lines(c, line - 1);
		return;
	}
	char *text = line_text(c, line - 1);
	if (text != NULL) {
		remove_token(text, byte_of(text, col));
	}
}

/* ---- rules ------------------------------------------------------------------------------ */

/* Returns the line that has the dash of the rule with this domain, or c->n if there is none. */
static size_t rule_line(const struct cut *c, const struct mtext *domain)
{
	for (size_t i = domain->line; i > 0 && i <= c->n; i--) {
		if (is_item(&c->v[i - 1]) && indent_of(&c->v[i - 1]) + 1 < domain->col) {
			return i - 1;
		}
	}
	return c->n;
}

static void remove_rule(struct cut *c, const struct mtext *domain)
{
	size_t at = rule_line(c, domain);

	if (at < c->n) {
		remove_lines(c, at);
	}
}

/* Writes "ports: [80, 443]" with the ports that remain. */
static void keep_ports(struct cut *c, const struct egress_rule *r)
{
	size_t at = rule_line(c, &r->domain);
	size_t dash = at < c->n ? indent_of(&c->v[at]) : 0;
	auto_buf list;

	buf_init(&list, MAX_YAML_BYTES);
	for (size_t i = 0; i < r->n_ports; i++) {
		buf_addf(&list, "%s%u", i > 0 ? ", " : "", (unsigned)r->ports[i]);
	}
	for (size_t i = at; i < c->n && (i == at || indent_of(&c->v[i]) > dash); i++) {
		const char *text = line_text(c, i);
		const char *key = text != NULL ? strstr(text, "ports:") : NULL;
		const char *open = key != NULL ? strchr(key, '[') : NULL;
		const char *close = open != NULL ? strchr(open, ']') : NULL;
		char *changed = NULL;
		if (close == NULL || list.data == NULL) {
			continue;
		}
		if (asprintf(&changed, "%.*s%s%s", (int)(open + 1 - text), text, list.data, close) <
		    0) {
			c->nomem = true;
			return;
		}
		free(c->v[i].instead);
		c->v[i].instead = changed;
		return;
	}
}

/* ---- the cut ------------------------------------------------------------------------------- */

static const struct egress_rule *remaining_rule(const struct shrink *s, const struct egress_rule *r)
{
	return ARRAY_FIND(egress, s->rest.egress, s->rest.n_egress,
	                  egress->domain.s == r->domain.s);
}

static bool list_keeps(const struct mtext_list *l, const struct mtext *t)
{
	return ARRAY_HAS(e, l->v, l->n, e->s == t->s);
}

/* Goes from the last item to the first, because a change in a line moves everything to its
 * right. */
static void cut_list(struct cut *c, const struct mtext_list *from, const struct mtext_list *to)
{
	for (size_t i = from->n; i > 0; i--) {
		if (!list_keeps(to, &from->v[i - 1])) {
			remove_text(c, from->v[i - 1].line, from->v[i - 1].col);
		}
	}
}

/* Removes the line of the key `arguments`, or writes the smaller access in it. */
static void cut_arguments(struct cut *c, const struct manifest *m, const struct manifest *rest)
{
	unsigned line = m->arguments_at.line;
	const char *with = named_files_name(rest->arguments);
	char *text = m->arguments != rest->arguments && line > 0 && line <= c->n
	                     ? line_text(c, line - 1)
	                     : NULL;
	char *changed = NULL;

	if (text == NULL) {
		return;
	}
	if (with == NULL) {
		/* If the key shares its line with another, cut_holds() finds that. */
		c->v[line - 1].gone = true;
		return;
	}
	size_t from = byte_of(text, m->arguments_at.col);
	if (asprintf(&changed, "%.*s%s%s", (int)from, text, with, text + token_end(text, from)) <
	    0) {
		c->nomem = true;
		return;
	}
	free(text);
	c->v[line - 1].instead = changed;
}

static void cut_all(struct cut *c, const struct manifest *m, const struct shrink *s)
{
	for (size_t i = m->n_egress; i > 0; i--) {
		const struct egress_rule *r = &m->egress[i - 1];
		const struct egress_rule *rest = remaining_rule(s, r);
		if (rest == NULL) {
			remove_rule(c, &r->domain);
		} else if (rest->n_ports < r->n_ports) {
			keep_ports(c, rest);
		}
	}
	cut_list(c, &m->env, &s->rest.env);
	cut_arguments(c, m, &s->rest);
	cut_list(c, &m->write, &s->rest.write);
	cut_list(c, &m->read, &s->rest.read);
}

/* Returns true if the text after the cut has the same meaning as the manifest that should
 * remain. */
static bool cut_holds(const struct cut *c, const struct manifest *rest)
{
	AUTO(manifest_freep) struct manifest *m = NULL;
	auto_buf text, wanted, got;

	buf_init(&text, MAX_YAML_BYTES);
	buf_init(&wanted, MAX_YAML_BYTES);
	buf_init(&got, MAX_YAML_BYTES);
	for (size_t i = 0; i < c->n; i++) {
		const struct patch_line *l = &c->v[i];
		if (!l->gone) {
			buf_add(&text, l->instead != NULL ? l->instead : l->p,
			        l->instead != NULL ? strlen(l->instead) : l->len);
		}
	}
	if (text.failed || text.data == NULL ||
	    manifest_parse_as(ENTRY_OPTIONAL, rest->file, text.data, text.len, &m, NULL, NULL) !=
	            0) {
		return false;
	}
	manifest_write(&wanted, rest, NULL);
	manifest_write(&got, m, NULL);
	return !wanted.failed && !got.failed && wanted.len == got.len &&
	       memcmp(wanted.data, got.data, got.len) == 0;
}

/* ---- the diff ------------------------------------------------------------------------------ */

struct diff_line {
	char sign; /* ' ', '-', '+' */
	const char *p;
	size_t len;
};

static void put_line(struct buf *out, const struct diff_line *l)
{
	buf_addc(out, l->sign);
	buf_add(out, l->p, l->len);
	if (l->len == 0 || l->p[l->len - 1] != '\n') {
		buf_adds(out, "\n\\ No newline at end of file\n");
	}
}

/* Writes one hunk of the diff. The range from `from` to `to` includes the unchanged lines around
 * the change. */
static void put_hunk(struct buf *out, const struct diff_line *v, size_t from, size_t to, size_t old,
                     size_t new)
{
	size_t olds = 0;
	size_t news = 0;

	for (size_t i = from; i < to; i++) {
		olds += v[i].sign != '+';
		news += v[i].sign != '-';
	}
	buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", old + (olds > 0), olds, new + (news > 0), news);
	for (size_t i = from; i < to; i++) {
		put_line(out, &v[i]);
	}
}

static void put_diff(struct buf *out, const struct diff_line *v, size_t n)
{
	size_t old = 0;
	size_t new = 0;
	size_t at = 0;

	for (size_t i = 0; i < n;) {
		if (v[i].sign == ' ') {
			i++;
			continue;
		}
		size_t from = i - at > CONTEXT ? i - CONTEXT : at;
		for (; at < from; at++) { /* these lines are the same on both sides */
			old++;
			new ++;
		}
		size_t to = i;
		for (size_t same = 0; i < n && same <= 2 * (size_t)CONTEXT; i++) {
			same = v[i].sign == ' ' ? same + 1 : 0;
			to = same == 0 ? i + 1 : to;
		}
		to = n - to > CONTEXT ? to + CONTEXT : n;
		put_hunk(out, v, from, to, old, new);
		for (; at < to; at++) {
			old += v[at].sign != '+';
			new += v[at].sign != '-';
		}
		i = at;
	}
}

static size_t list_lines(const struct cut *c, struct diff_line *v)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct patch_line *l = &c->v[i];
		bool same =
		        !l->gone && (l->instead == NULL || (strlen(l->instead) == l->len &&
		                                            memcmp(l->instead, l->p, l->len) == 0));
		v[n++] = (struct diff_line){ same ? ' ' : '-', l->p, l->len };
		if (!same && !l->gone) {
			v[n++] = (struct diff_line){ '+', l->instead, strlen(l->instead) };
		}
	}
	return n;
}

/* Writes a diff that replaces the whole text. */
static int put_whole(struct buf *out, const struct cut *c, const struct manifest *rest)
{
	AUTO(cut_done) struct cut new = { 0 };
	auto_buf text;
	size_t n = 0;

	buf_init(&text, MAX_YAML_BYTES);
	manifest_write(&text, rest, NULL);
	if (text.failed || !cut_begin(&new, text.data, text.len)) {
		return -1;
	}
	auto_free struct diff_line *v = calloc(c->n + new.n + 1, sizeof(*v));
	if (v == NULL) {
		return -1;
	}
	for (size_t i = 0; i < c->n; i++) {
		v[n++] = (struct diff_line){ '-', c->v[i].p, c->v[i].len };
	}
	for (size_t i = 0; i < new.n; i++) {
		v[n++] = (struct diff_line){ '+', new.v[i].p, new.v[i].len };
	}
	put_diff(out, v, n);
	return 0;
}

int shrink_patch(const struct manifest *m, const struct shrink *s, const char *name,
                 const char *text, size_t len, struct buf *out)
{
	AUTO(cut_done) struct cut c = { 0 };

	assert(name[0] != '\0' && (text != NULL || len == 0));
	if (!cut_begin(&c, text, len)) {
		return -1;
	}
	cut_all(&c, m, s);
	if (c.nomem) {
		return -1;
	}
	buf_addf(out, "--- a/%s\n+++ b/%s\n", name, name);
	if (!cut_holds(&c, &s->rest)) {
		return put_whole(out, &c, &s->rest);
	}
	auto_free struct diff_line *v = calloc(2 * c.n + 1, sizeof(*v));
	if (v == NULL) {
		return -1;
	}
	put_diff(out, v, list_lines(&c, v));
	return out->failed ? -1 : 0;
}
