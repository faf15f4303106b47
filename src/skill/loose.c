/* loose.c - reads YAML line by line, and leaves out the parts that it cannot read. */
#include "skill/loose.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"
#include "manifest/report.h"
#include "manifest/yaml_text.h"

struct loose {
	struct report rep;
	struct ynode *root;
	size_t entries; /* entries of the text so far */
	size_t kept;    /* entries of the result so far */
	bool nomem;
};

static struct ynode *new_node(enum ynode_kind kind, unsigned line)
{
	struct ynode *n = calloc(1, sizeof(*n));

	if (n != NULL) {
		n->kind = kind;
		n->line = line;
		n->col = 1;
	}
	return n;
}

/* ---- the bytes --------------------------------------------------------------- */

/* Drops bytes that YAML must not contain, and replaces tabs in the indentation by spaces. Returns
 * true if nothing was changed. */
static bool clean_bytes(struct buf *out, const char *text, size_t len)
{
	bool whole = true;
	bool indent = true;

	while (len > 0) {
		uint32_t cp = 0;
		size_t n = utf8_decode(text, len, &cp);
		bool line_end = n == 1 && cp == '\r' && len > 1 && text[1] == '\n';
		if (n == 0 || (yaml_char_problem(cp) != NULL && !line_end)) {
			whole = false;
		} else if (indent && cp == '\t') {
			buf_adds(out, "  ");
			whole = false;
		} else if (!line_end) {
			buf_add(out, text, n);
		}
		indent = cp == '\n' || (indent && (cp == ' ' || cp == '\t'));
		n = n > 0 ? n : 1;
		text += n;
		len -= n;
	}
	return whole;
}

static void shift_lines(struct ynode *n, unsigned lines)
{
	for (; n != NULL; n = n->next) {
		n->line += lines;
		n->key_line += lines;
		shift_lines(n->first, lines); /* MAX_YAML_DEPTH bounds the recursion */
	}
}

static void warn_line(const struct loose *l, unsigned line, const char *text)
{
	report_add(&l->rep, SSB_WARNING, line, 1, "", "%s", text);
}

/* Parses the text with the strict reader. If `tell` is true, reports the reader's findings as
 * warnings. Returns a new tree, or NULL. */
static struct ynode *parse_strict(const struct loose *l, const char *text, size_t len,
                                  unsigned lines, bool tell)
{
	AUTO(diags_freep) struct ssb_diags *found = ssb_diags_new();
	struct ynode *root = yaml_doc_parse(l->rep.file, text, len, found);

	shift_lines(root, lines);
	for (size_t i = 0; tell && found != NULL && i < ssb_diags_count(found); i++) {
		const struct ssb_diag *d = ssb_diags_get(found, i);
		diag_add(l->rep.diags, SSB_WARNING, d->where, d->remedy, "%s", d->text);
	}
	return root;
}

/* ---- entry by entry ----------------------------------------------------------- */

/* Returns the length of the key if the line begins with "key:", else 0. */
static size_t key_length(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len &&
	       (isalnum((unsigned char)text[n]) != 0 || text[n] == '_' || text[n] == '-')) {
		n++;
	}
	return n > 0 && n < len && text[n] == ':' &&
	                       (n + 1 == len || strchr(" \t\n", text[n + 1]) != NULL)
	               ? n
	               : 0;
}

static size_t line_length(const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len);

	return end != NULL ? (size_t)(end - text) + 1 : len;
}

/* Moves the entries of `from` to the result, except those whose key is already in it. */
static void adopt_entries(struct loose *l, struct ynode *from)
{
	struct ynode **tail = &l->root->first;

	while (*tail != NULL) {
		tail = &(*tail)->next;
	}
	while (from->first != NULL) {
		struct ynode *n = from->first;
		from->first = n->next;
		n->next = NULL;
		/* The text of one entry may contain more keys than the first one, because
		 * key_length() does not recognise every form of a key ("a": 1). So each key is
		 * compared with all others. */
		if (l->kept == MAX_LOOSE_ENTRIES) {
			warn_line(l, n->line, "too many entries; the rest is left out");
			yaml_doc_free(n);
			return;
		}
		if (ynode_get(l->root, n->key) != NULL) {
			warn_line(l, n->line, "a duplicate key: only the first is used");
			yaml_doc_free(n);
			continue;
		}
		l->kept++;
		*tail = n;
		tail = &n->next;
	}
}

/* Reads the first line of an entry that is not valid YAML: everything after its key on this line
 * becomes one text. Returns a new map with this one value, or NULL if there is no memory. */
static struct ynode *as_text(struct loose *l, const char *text, size_t len, size_t key)
{
	AUTO(ynode_freep) struct ynode *map = new_node(YNODE_MAP, 1);
	AUTO(ynode_freep) struct ynode *n = new_node(YNODE_SCALAR, 1);
	size_t end = line_length(text, len);
	size_t at = key + 1;

	while (at < end && isspace((unsigned char)text[at]) != 0) {
		at++;
	}
	while (end > at && isspace((unsigned char)text[end - 1]) != 0) {
		end--;
	}
	if (end - at > 1 && (text[at] == '"' || text[at] == '\'') && text[end - 1] == text[at]) {
		at++;
		end--;
	}
	if (map == NULL || n == NULL || (n->key = strndup(text, key)) == NULL ||
	    (n->text = strndup(text + at, end - at)) == NULL) {
		l->nomem = true;
		return NULL;
	}
	n->quoted = true;
	map->first = steal_ptr(&n);
	return steal_ptr(&map);
}

static void read_entry(struct loose *l, const char *text, size_t len, unsigned line)
{
	static const char *const TEXTS[] = { "name", "description", "version" };
	AUTO(ynode_freep) struct ynode *map = parse_strict(l, text, len, line - 1, false);
	size_t key = key_length(text, len);

	for (size_t i = 0; map == NULL && i < ARRAY_LEN(TEXTS); i++) {
		if (strlen(TEXTS[i]) == key && memcmp(TEXTS[i], text, key) == 0) {
			map = as_text(l, text, len, key);
			shift_lines(map, line - 1);
		}
	}
	if (map != NULL && map->kind == YNODE_MAP) {
		adopt_entries(l, map);
	} else {
		warn_line(l, line, "this entry is not valid YAML, and is left out");
	}
}

/* Reads the text entry by entry. An entry is a line that begins with a key, and everything up to
 * the next such line. */
static void read_entries(struct loose *l, const char *text, size_t len)
{
	unsigned line = 1;

	while (len > 0) {
		unsigned first = line;
		size_t n = line_length(text, len);
		bool keyed = key_length(text, n) > 0;
		line++;
		while (keyed && n < len && key_length(text + n, len - n) == 0) {
			n += line_length(text + n, len - n);
			line++;
		}
		if (keyed && l->entries++ == MAX_LOOSE_ENTRIES) {
			warn_line(l, first, "too many entries; the rest is left out");
			return;
		}
		if (keyed) {
			read_entry(l, text, n, first);
		}
		text += n;
		len -= n;
	}
}

struct ynode *loose_read(const char *file, const char *text, size_t len, unsigned line,
                         struct ssb_diags *diags)
{
	assert(file != NULL && (text != NULL || len == 0));

	struct loose l = { .rep = { file, diags } };
	AUTO(ynode_freep) struct ynode *root = NULL;
	auto_buf plain = BUF(MAX_YAML_BYTES);

	for (unsigned i = 1; i < line; i++) {
		buf_addc(&plain, '\n'); /* so that reported line numbers are those of the file */
	}
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	}
	if (len < MAX_YAML_BYTES && !clean_bytes(&plain, text, len)) {
		warn_line(
		        &l, line,
		        "the YAML here is indented with tabs, or has bytes that are not text; the "
		        "tabs are read as spaces, and such bytes are left out");
	}
	if (plain.failed || len >= MAX_YAML_BYTES) {
		warn_line(&l, line, "the YAML here is too large, and is left out");
		buf_reset(&plain);
	}
	root = parse_strict(&l, plain.data != NULL ? plain.data : "", plain.len, 0, true);
	if (root != NULL && root->kind == YNODE_MAP) {
		return steal_ptr(&root);
	}
	l.root = new_node(YNODE_MAP, line);
	if (l.root != NULL && root == NULL) {
		read_entries(&l, plain.data != NULL ? plain.data : "", plain.len);
	} else if (l.root != NULL && !ynode_is_null(root)) {
		warn_line(&l, line,
		          "the YAML here is not a list of names and values (\"name: value\"), and "
		          "is left out");
	}
	if (l.nomem) {
		yaml_doc_free(l.root);
		return NULL;
	}
	return l.root;
}

/* ---- looking up --------------------------------------------------------------- */

/* Replaces a text that contains JSON by its content; the YAML reader can read JSON. */
static void unfold_json(struct ynode *n)
{
	const char *text = n->text != NULL ? n->text + strspn(n->text, " \t\r\n") : "";

	if (n->kind != YNODE_SCALAR || n->bad || (*text != '{' && *text != '[')) {
		return;
	}
	const struct loose l = { .rep = { "", NULL } };
	AUTO(ynode_freep)
	struct ynode *root = parse_strict(&l, text, strlen(text), n->line - 1, false);
	if (root != NULL && root->kind != YNODE_SCALAR) {
		n->kind = root->kind;
		n->first = steal_ptr(&root->first);
	}
}

struct ynode *loose_at(struct ynode *map, const char *path)
{
	struct ynode *n = map;

	while (n != NULL) {
		size_t len = strcspn(path, ".");
		auto_free char *key = strndup(path, len);
		n = key != NULL ? ynode_get(n, key) : NULL;
		if (n != NULL) {
			unfold_json(n);
		}
		if (path[len] == '\0') {
			break;
		}
		path += len + 1;
	}
	return n != NULL && !n->bad ? n : NULL;
}
