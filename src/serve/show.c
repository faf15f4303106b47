/* show.c - writes texts of skills, records and clients as JSON, with hidden characters made
 * visible. */
#include "serve/show.h"

#include <string.h>

#include "base/json.h"
#include "base/buf.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/visible.h"

#define ESCAPED 4 /* most bytes that replace one byte, as in \xff */

static void show_bytes(struct json *j, const char *text, size_t len, bool keep_lines)
{
	auto_buf out = BUF(ESCAPED * len + 1);

	if (show_plain(text, len, keep_lines)) {
		json_strn(j, text, len);
		return;
	}
	visible_bytes(&out, text, len, keep_lines);
	json_strn(j, out.failed ? "" : out.data, out.failed ? 0 : out.len);
}

void show_str(struct json *j, const char *text)
{
	if (text == NULL) {
		json_null(j);
	} else {
		show_bytes(j, text, strlen(text), false);
	}
}

void show_kstr(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	show_str(j, text);
}

void show_ktext(struct json *j, const char *key, const char *text, size_t len)
{
	json_key(j, key);
	show_bytes(j, text, len, true);
}

static void show_members(struct json *j, const struct json_doc *doc, const struct json_node *node)
{
	bool object = node->type == JSON_OBJECT;

	json_open(j, object ? '{' : '[');
	JSON_EACH (n, doc, node) {
		if (object && !show_plain(n->key, strlen(n->key), false)) {
			continue;
		}
		if (object) {
			json_key(j, n->key);
		}
		show_value(j, doc, n); /* the recursion is at most MAX_JSON_DEPTH deep */
	}
	json_close(j, object ? '}' : ']');
}

void show_value(struct json *j, const struct json_doc *doc, const struct json_node *node)
{
	if (node->type == JSON_STRING) {
		show_bytes(j, node->str, node->len, false);
	} else if (node->type == JSON_ARRAY || node->type == JSON_OBJECT) {
		show_members(j, doc, node);
	} else {
		json_copy(j, doc,
		          node); /* a number, a boolean or null cannot contain hidden text */
	}
}

void show_json(struct json *j, const char *text, size_t len)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	const char *why = NULL;

	if (text == NULL || json_read(&doc, text, len, &why) != 0) {
		json_null(j);
	} else {
		show_value(j, &doc, json_top(&doc));
	}
}

bool show_plain(const char *text, size_t len, bool keep_lines)
{
	for (size_t i = 0; i < len;) {
		uint32_t cp = 0;
		size_t n = utf8_decode(text + i, len - i, &cp);
		bool stays = keep_lines && (cp == '\n' || cp == '\t');
		if (n == 0 || (visible_deceptive(cp) && !stays)) {
			return false;
		}
		i += n;
	}
	return true;
}

void show_barred(struct buf *out, const char *visible, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *end = memchr(visible + at, '\n', len - at);
		size_t n = end != NULL ? (size_t)(end - (visible + at)) : len - at;
		buf_adds(out, "| ");
		buf_add(out, visible + at, n);
		buf_addc(out, '\n');
		at += n + 1;
	}
}
