/* frontmatter.c - reads the frontmatter of a SKILL.md, and writes it as JSON. */
#include "serve/frontmatter.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/own.h"
#include "manifest/yaml_doc.h"
#include "serve/show.h"
#include "skill/block.h"

#define DIGITS "0123456789"

/* ---- scalars: the core schema of YAML 1.2, as JSON ------------------------------ */

static bool is_word(const char *s, const char *const *words)
{
	for (; *words != NULL; words++) {
		if (strcmp(s, *words) == 0) {
			return true;
		}
	}
	return false;
}

/* Writes a number such as 0x1f or 0o17. Returns false if the text is not such a number. Sets
 * *ret_bad if the number cannot be written. */
static bool put_based(struct json *j, const char *s, const char **ret_bad)
{
	bool hex = strncmp(s, "0x", 2) == 0;
	const char *digits = hex ? DIGITS "abcdefABCDEF" : "01234567";
	char *end;

	if ((!hex && strncmp(s, "0o", 2) != 0) || s[2] == '\0' ||
	    s[2 + strspn(s + 2, digits)] != 0) {
		return false;
	}
	errno = 0;
	unsigned long long v = strtoull(s + 2, &end, hex ? 16 : 8);
	if (errno != 0) {
		*ret_bad = "its frontmatter has a number that is too large";
	}
	json_uint(j, v);
	return true;
}

/* Writes [-+]? digits [. digits] [e [-+] digits], with digits on at least one side of the dot, in
 * the form that JSON requires and without losing a digit. Returns false if the text is not such a
 * number. */
static bool put_decimal(struct json *j, const char *s)
{
	auto_buf out = BUF(MAX_SCALAR_BYTES + 8);
	bool minus = *s == '-';

	s += *s == '-' || *s == '+';
	size_t whole = strspn(s, DIGITS);
	const char *dot = s[whole] == '.' ? s + whole + 1 : NULL;
	size_t part = dot != NULL ? strspn(dot, DIGITS) : 0;
	const char *e = dot != NULL ? dot + part : s + whole;
	const char *power = *e == 'e' || *e == 'E' ? e + 1 : NULL;
	size_t sign = power != NULL && (*power == '-' || *power == '+');
	size_t powers = power != NULL ? strspn(power + sign, DIGITS) : 0;

	if (whole + part == 0 || (power != NULL && powers == 0) ||
	    (power != NULL ? power[sign + powers] : *e) != '\0') {
		return false;
	}
	while (whole > 1 && *s == '0') {
		s++;
		whole--;
	}
	buf_addf(&out, "%s%.*s", minus ? "-" : "", whole > 0 ? (int)whole : 1, whole > 0 ? s : "0");
	if (part > 0) {
		buf_addf(&out, ".%.*s", (int)part, dot);
	}
	if (power != NULL) {
		buf_addf(&out, "e%s", power);
	}
	json_raw(j, out.data, out.len);
	return true;
}

static void put_scalar(struct json *j, const struct ynode *n, const char **ret_bad)
{
	static const char *const yes[] = { "true", "True", "TRUE", NULL };
	static const char *const no[] = { "false", "False", "FALSE", NULL };
	static const char *const odd[] = { ".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf",
		                           "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
		                           ".NaN",  ".NAN",  NULL };

	/* A quoted scalar is always a text. */
	const char *plain = n->quoted ? "text" : n->text;

	if (ynode_is_null(n) || is_word(plain, odd)) {
		json_null(j);
		*ret_bad = ynode_is_null(n)
		                   ? *ret_bad
		                   : "its frontmatter has a number that JSON cannot express";
	} else if (is_word(plain, yes) || is_word(plain, no)) {
		json_bool(j, is_word(plain, yes));
	} else if (!put_based(j, plain, ret_bad) && !put_decimal(j, plain)) {
		json_str(j, n->text);
	}
}

static void put_node(struct json *j, const struct ynode *n, const char **ret_bad)
{
	if (n->kind == YNODE_SCALAR) {
		put_scalar(j, n, ret_bad);
		if (!show_plain(n->text, strlen(n->text), true)) {
			*ret_bad = "its frontmatter has characters that are not visible";
		}
		return;
	}
	json_open(j, n->kind == YNODE_MAP ? '{' : '[');
	for (const struct ynode *c = n->first; c != NULL; c = c->next) {
		if (n->kind == YNODE_MAP) {
			json_key(j, c->key);
			if (!show_plain(c->key, strlen(c->key), false)) {
				*ret_bad = "its frontmatter has characters that are not visible";
			}
		}
		put_node(j, c, ret_bad); /* the recursion is at most MAX_YAML_DEPTH deep */
	}
	json_close(j, n->kind == YNODE_MAP ? '}' : ']');
}

/* ---- the block ------------------------------------------------------------------ */

static char *text_member(struct ynode *root, const char *key)
{
	struct ynode *n = ynode_get(root, key);
	const char *bad = NULL;
	auto_buf out = BUF(8 * MAX_SCALAR_BYTES);
	struct json j = JSON_TO(&out, false);

	if (n == NULL || n->kind != YNODE_SCALAR || n->text[0] == '\0') {
		return NULL;
	}
	/* A plain number or boolean is not a text, and is not accepted. */
	put_scalar(&j, n, &bad);
	return out.failed || out.len == 0 || out.data[0] != '"' ? NULL : strdup(n->text);
}

static int read_tree(struct frontmatter *f, struct ynode *root, const char **ret_why)
{
	auto_buf out = BUF((size_t)8 * MAX_YAML_BYTES);
	struct json j = JSON_TO(&out, false);

	*ret_why = NULL;
	if (root->kind != YNODE_MAP) {
		*ret_why = "its frontmatter is not a list of names and values";
		return -1;
	}
	put_node(&j, root, ret_why);
	if (*ret_why != NULL) {
		return -1;
	}
	f->name = text_member(root, "name");
	f->description = text_member(root, "description");
	f->json = buf_steal(&out);
	*ret_why = f->name == NULL || !frontmatter_name_valid(f->name)
	                   ? "its frontmatter has no valid name (a-z, 0-9, hyphens)"
	           : f->description == NULL ? "its frontmatter has no description"
	           : f->json == NULL        ? "out of memory"
	                                    : NULL;
	return *ret_why == NULL ? 0 : -1;
}

int frontmatter_read(struct frontmatter *ret, const char *text, size_t len, const char **ret_why)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(ynode_freep) struct ynode *root = NULL;
	auto_buf block = BUF(MAX_YAML_BYTES);

	assert(ret->name == NULL && ret->description == NULL && ret->json == NULL);
	if (block_read(&block, text, len) != 0) {
		*ret_why = "its SKILL.md does not begin with frontmatter";
		return -1;
	}
	buf_add(&block, "", 0);
	if (!show_plain(block.data, block.len, true)) {
		*ret_why = "its frontmatter has characters that are not visible";
		return -1;
	}
	root = yaml_doc_parse("SKILL.md", block.data, block.len, diags);
	if (root == NULL || diags == NULL || diag_has_errors(diags)) {
		*ret_why = "its frontmatter is not plain YAML";
		return -1;
	}
	return read_tree(ret, root, ret_why);
}

void frontmatter_done(struct frontmatter *f)
{
	free(f->name);
	free(f->description);
	free(f->json);
	*f = (struct frontmatter){ 0 };
}

/* ---- names ------------------------------------------------------------------------ */

bool frontmatter_name_valid(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= SKILL_NAME_BYTES && name[0] != '-' && name[len - 1] != '-' &&
	       strstr(name, "--") == NULL &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

void frontmatter_name_from(char ret[SKILL_NAME_BYTES + 1], const char *word)
{
	size_t n = 0;

	for (; *word != '\0' && n < SKILL_NAME_BYTES; word++) {
		unsigned char c = (unsigned char)*word;
		if (c < 0x80 && isalnum(c)) {
			ret[n++] = (char)tolower(c);
		} else if (n > 0 && ret[n - 1] != '-') {
			ret[n++] = '-';
		}
	}
	while (n > 0 && ret[n - 1] == '-') {
		n--;
	}
	ret[n] = '\0';
}
