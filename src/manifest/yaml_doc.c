/* yaml_doc.c - makes the tree from libyaml's events, and is stricter than libyaml.
 *
 * libyaml itself accepts duplicate keys, anchors, tags and many documents. Everything that could
 * make two readers of one file see two different manifests is refused here. After a violation that
 * leaves the structure readable, reading continues; a syntax error or an exceeded limit ends it,
 * because the rest could only be guessed. */
#include "manifest/yaml_doc.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/array.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"
#include "manifest/report.h"
#include "manifest/yaml_text.h"

struct yaml_reader {
	struct report rep;
	yaml_parser_t parser;
	unsigned nodes;
};

#define auto_event AUTO(event_done) yaml_event_t
#define LINE(mark) ((unsigned)(mark).line + 1)
#define COL(mark)  ((unsigned)(mark).column + 1)

static struct ynode *read_node(struct yaml_reader *r, const yaml_event_t *ev, unsigned depth);

/* A policy file may contain a password, so texts are wiped when they are freed. */
static void wipe_text(void *text, size_t len)
{
	if (text != NULL) {
		explicit_bzero(text, len);
	}
}

static void event_done(yaml_event_t *ev)
{
	if (ev->type == YAML_SCALAR_EVENT) {
		wipe_text(ev->data.scalar.value, ev->data.scalar.length);
	}
	yaml_event_delete(ev);
}

static void parser_done(yaml_parser_t *p)
{
	wipe_text(p->raw_buffer.start, (size_t)(p->raw_buffer.end - p->raw_buffer.start));
	wipe_text(p->buffer.start, (size_t)(p->buffer.end - p->buffer.start));
	yaml_parser_delete(p);
}

void yaml_doc_free(struct ynode *root)
{
	while (root != NULL) { /* MAX_YAML_DEPTH bounds the recursion */
		struct ynode *next = root->next;
		yaml_doc_free(root->first);
		wipe_text(root->text, root->text != NULL ? strlen(root->text) : 0);
		free(root->text);
		free(root->key);
		free(root);
		root = next;
	}
}

struct ynode *ynode_get(struct ynode *map, const char *key)
{
	if (map == NULL || map->kind != YNODE_MAP) {
		return NULL;
	}
	struct ynode *n = map->first;
	while (n != NULL && strcmp(n->key, key) != 0) {
		n = n->next;
	}
	return n;
}

static bool plain_is_one_of(const struct ynode *n, const char *const *words, size_t count)
{
	if (n->kind != YNODE_SCALAR || n->quoted) {
		return false;
	}
	return ARRAY_HAS(word, words, count, strcmp(n->text, *word) == 0);
}

bool ynode_is_null(const struct ynode *n)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };

	return plain_is_one_of(n, words, ARRAY_LEN(words));
}

bool ynode_is_bool(const struct ynode *n)
{
	static const char *const words[] = {
		"true", "True", "TRUE", "false", "False", "FALSE", "yes", "Yes", "YES",
		"no",   "No",   "NO",   "on",    "On",    "ON",    "off", "Off", "OFF",
	};

	return plain_is_one_of(n, words, ARRAY_LEN(words));
}

static void report_nomem(const struct yaml_reader *r)
{
	report_add(&r->rep, SSB_ERROR, 0, 0, "", "out of memory");
}

/* Remedies for libyaml's messages; the first row that matches is used. */
static const struct {
	const char *context; /* part of libyaml's context ("while scanning ..."); "" matches every
	                        context */
	const char *problem;
	const char *remedy;
} SYNTAX_HELP[] = {
	{ "scanning an alias", "", "put a name with \"*\" in quotes: \"*.example.com\"" },
	{ "quoted scalar", "end of stream", "close the quote" },
	{ "quoted scalar", "unknown escape", "use single quotes, or write \\\\ for a backslash" },
	{ "", "cannot start any token",
	  "indent with spaces, not tabs; put a value that begins with @, ` or % in quotes" },
	{ "", "mapping values are not allowed",
	  "check the indentation; put a value with \": \" in it in quotes" },
	{ "flow sequence", "", "close the list with \"]\" and put commas between its items" },
	{ "flow mapping", "", "close the mapping with \"}\" and put commas between its entries" },
	{ "", "expected key",
	  "check the indentation: keys of one level must be in the same column" },
	{ "", "expected '-' indicator", "check the indentation: items must be in the same column" },
	{ "", "expected ':'", "write \"key: value\"" },
	{ "", "tab character", "indent with spaces" },
};

static void report_syntax(const struct yaml_reader *r)
{
	const yaml_parser_t *p = &r->parser;
	const char *context = p->context != NULL ? p->context : "";
	const char *problem = p->problem != NULL ? p->problem : "unreadable";
	const char *remedy = "";

	if (p->error == YAML_MEMORY_ERROR) {
		report_nomem(r);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(SYNTAX_HELP); i++) {
		if (strstr(context, SYNTAX_HELP[i].context) != NULL &&
		    strstr(problem, SYNTAX_HELP[i].problem) != NULL) {
			remedy = SYNTAX_HELP[i].remedy;
			break;
		}
	}
	report_add(&r->rep, SSB_ERROR, LINE(p->problem_mark), COL(p->problem_mark), remedy,
	           "not valid YAML: %s%s%s", problem, context[0] != '\0' ? " " : "", context);
}

static bool next_event(struct yaml_reader *r, yaml_event_t *ev)
{
	if (yaml_parser_parse(&r->parser, ev) == 0) {
		report_syntax(r);
		memset(ev, 0, sizeof(*ev));
		return false;
	}
	return true;
}

static void check_decoration(const struct yaml_reader *r, const yaml_event_t *ev,
                             const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor != NULL) {
		report_add(
		        &r->rep, SSB_ERROR, LINE(ev->start_mark), COL(ev->start_mark),
		        "write the value out where it is needed; quote a value that begins with &",
		        "anchors are not allowed");
	}
	if (tag != NULL) {
		report_add(&r->rep, SSB_ERROR, LINE(ev->start_mark), COL(ev->start_mark),
		           "remove it; quote a value that begins with !", "tags are not allowed");
	}
}

/* Checks the value of a scalar. Written with an escape ("\0"), it can contain characters that the
 * file itself cannot. */
static bool scalar_ok(const struct yaml_reader *r, const yaml_event_t *ev)
{
	const char *s = (const char *)ev->data.scalar.value;
	size_t len = ev->data.scalar.length;
	unsigned line = LINE(ev->start_mark);
	unsigned col = COL(ev->start_mark);

	if (len > MAX_SCALAR_BYTES) {
		report_add(&r->rep, SSB_ERROR, line, col, "shorten it",
		           "a text has %zu bytes, but the limit is %d", len, MAX_SCALAR_BYTES);
		return false;
	}
	for (size_t i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(s + i, len - i, &cp);
		const char *problem = n > 0 ? yaml_char_problem(cp) : "invalid character";
		if (problem != NULL) {
			report_add(&r->rep, SSB_ERROR, line, col, "remove it",
			           "%s U+%04X in a text", problem, cp);
			return false;
		}
		i += n;
	}
	return true;
}

static bool set_text(const struct yaml_reader *r, char **ret, const yaml_event_t *ev, bool ok)
{
	*ret = ok ? strndup((const char *)ev->data.scalar.value, ev->data.scalar.length)
	          : strdup("");
	if (*ret == NULL) {
		report_nomem(r);
	}
	return *ret != NULL;
}

static bool read_scalar(const struct yaml_reader *r, const yaml_event_t *ev, struct ynode *n)
{
	check_decoration(r, ev, ev->data.scalar.anchor, ev->data.scalar.tag);
	n->kind = YNODE_SCALAR;
	n->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	n->bad = !scalar_ok(r, ev);
	return set_text(r, &n->text, ev, !n->bad);
}

static bool read_alias(const struct yaml_reader *r, const yaml_event_t *ev, struct ynode *n)
{
	report_add(&r->rep, SSB_ERROR, n->line, n->col,
	           "write the value out; quote a value that begins with *",
	           "aliases are not allowed");
	n->kind = YNODE_SCALAR;
	n->bad = true;
	return set_text(r, &n->text, ev, false);
}

static bool read_seq(struct yaml_reader *r, const yaml_event_t *start, struct ynode *n,
                     unsigned depth)
{
	struct ynode **tail = &n->first;

	check_decoration(r, start, start->data.sequence_start.anchor,
	                 start->data.sequence_start.tag);
	n->kind = YNODE_SEQ;
	for (;;) {
		auto_event ev = { 0 };
		if (!next_event(r, &ev)) {
			return false;
		}
		if (ev.type == YAML_SEQUENCE_END_EVENT) {
			return true;
		}
		*tail = read_node(r, &ev, depth + 1);
		if (*tail == NULL) {
			return false;
		}
		tail = &(*tail)->next;
	}
}

/* True if an entry with this key can be kept; otherwise reports why not. */
static bool key_usable(const struct yaml_reader *r, const struct ynode *map,
                       const struct ynode *key)
{
	char quoted[QUOTE_SIZE];

	if (key->bad) {
		return false; /* reported already */
	}
	if (key->kind != YNODE_SCALAR) {
		report_add(&r->rep, SSB_ERROR, key->line, key->col, "write \"key: value\"",
		           "a key must be a plain word");
		return false;
	}
	if (!key->quoted && strcmp(key->text, "<<") == 0) {
		report_add(&r->rep, SSB_ERROR, key->line, key->col, "write the entries out",
		           "merge keys are not allowed");
		return false;
	}
	for (const struct ynode *n = map->first; n != NULL; n = n->next) {
		if (strcmp(n->key, key->text) == 0) {
			report_add(&r->rep, SSB_ERROR, key->line, key->col, "keep one of them",
			           "duplicate key %s, first at line %u",
			           report_quote(quoted, key->text), n->key_line);
			return false;
		}
	}
	return true;
}

static bool level_read_map(struct yaml_reader *r, const yaml_event_t *start, struct ynode *map,
                           unsigned depth)
{
	struct ynode **tail = &map->first;

	check_decoration(r, start, start->data.mapping_start.anchor, start->data.mapping_start.tag);
	map->kind = YNODE_MAP;
	for (;;) {
		auto_event key_ev = { 0 };
		auto_event ev = { 0 };
		AUTO(ynode_freep) struct ynode *key = NULL;
		AUTO(ynode_freep) struct ynode *value = NULL;

		if (!next_event(r, &key_ev)) {
			return false;
		}
		if (key_ev.type == YAML_MAPPING_END_EVENT) {
			return true;
		}
		key = read_node(r, &key_ev, depth + 1);
		if (key == NULL || !next_event(r, &ev)) {
			return false;
		}
		value = read_node(r, &ev, depth + 1);
		if (value == NULL) {
			return false;
		}
		if (!key_usable(r, map, key)) {
			continue;
		}
		value->key = steal_ptr(&key->text);
		value->key_line = key->line;
		value->key_col = key->col;
		*tail = steal_ptr(&value);
		tail = &(*tail)->next;
	}
}

/* Reads the node that begins with `ev`. If reading must end, reports why and returns NULL. */
static struct ynode *read_node(struct yaml_reader *r, const yaml_event_t *ev, unsigned depth)
{
	AUTO(ynode_freep) struct ynode *n = NULL;
	unsigned line = LINE(ev->start_mark);
	unsigned col = COL(ev->start_mark);
	bool ok = false;

	if (depth > MAX_YAML_DEPTH) {
		report_add(&r->rep, SSB_ERROR, line, col, "", "nested deeper than %d levels",
		           MAX_YAML_DEPTH);
		return NULL;
	}
	if (++r->nodes > MAX_YAML_NODES) {
		report_add(&r->rep, SSB_ERROR, line, col, "", "more than %d values in one file",
		           MAX_YAML_NODES);
		return NULL;
	}
	n = calloc(1, sizeof(*n));
	if (n == NULL) {
		report_nomem(r);
		return NULL;
	}
	n->line = line;
	n->col = col;
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		ok = read_scalar(r, ev, n);
		break;
	case YAML_ALIAS_EVENT:
		ok = read_alias(r, ev, n);
		break;
	case YAML_SEQUENCE_START_EVENT:
		ok = read_seq(r, ev, n, depth);
		break;
	case YAML_MAPPING_START_EVENT:
		ok = level_read_map(r, ev, n, depth);
		break;
	default: /* libyaml's grammar has no other event here */
		report_add(&r->rep, SSB_ERROR, line, col, "", "not valid YAML");
		break;
	}
	return ok ? steal_ptr(&n) : NULL;
}

static struct ynode *read_document(struct yaml_reader *r, const yaml_event_t *start)
{
	const struct yaml_version_directive_s *version =
	        start->data.document_start.version_directive;

	if (version != NULL || start->data.document_start.tag_directives.start !=
	                               start->data.document_start.tag_directives.end) {
		report_add(&r->rep, SSB_ERROR, LINE(start->start_mark), COL(start->start_mark),
		           "remove the line that begins with %", "directives are not allowed");
	}
	auto_event ev = { 0 };
	if (!next_event(r, &ev)) {
		return NULL;
	}
	return read_node(r, &ev, 1);
}

static struct ynode *empty_document(const struct yaml_reader *r)
{
	AUTO(ynode_freep) struct ynode *n = calloc(1, sizeof(*n));

	if (n != NULL) {
		n->line = 1;
		n->col = 1;
		n->text = strdup("");
	}
	if (n == NULL || n->text == NULL) {
		report_nomem(r);
		return NULL;
	}
	return steal_ptr(&n);
}

static struct ynode *read_stream(struct yaml_reader *r)
{
	AUTO(ynode_freep) struct ynode *root = NULL;

	for (;;) {
		auto_event ev = { 0 };
		if (!next_event(r, &ev)) {
			return NULL;
		}
		if (ev.type == YAML_STREAM_END_EVENT) {
			return root != NULL ? steal_ptr(&root) : empty_document(r);
		}
		if (ev.type != YAML_DOCUMENT_START_EVENT) {
			continue; /* stream start, document end */
		}
		if (root != NULL) {
			report_add(&r->rep, SSB_ERROR, LINE(ev.start_mark), COL(ev.start_mark),
			           "keep one document; remove the \"---\"",
			           "a second document in the file");
			return steal_ptr(&root);
		}
		root = read_document(r, &ev);
		if (root == NULL) {
			return NULL;
		}
	}
}

struct ynode *yaml_doc_parse(const char *file, const char *bytes, size_t len,
                             struct ssb_diags *diags)
{
	struct yaml_reader r = { .rep = { file, diags } };

	if (len > (size_t)MAX_YAML_BYTES) {
		report_add(&r.rep, SSB_ERROR, 0, 0, "shorten it",
		           "the file is larger than %d bytes", MAX_YAML_BYTES);
		return NULL;
	}
	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
		bytes += 3; /* a byte order mark at the very start is harmless */
		len -= 3;
	}
	if (!yaml_bytes_ok(&r.rep, bytes, len)) {
		return NULL;
	}
	if (yaml_parser_initialize(&r.parser) == 0) {
		report_nomem(&r);
		return NULL;
	}
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, len);
	struct ynode *root = read_stream(&r);
	parser_done(&r.parser);
	return root;
}
