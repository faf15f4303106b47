/* json.c - writes JSON, with the commas and escapes that it needs. */
#include "base/json.h"

#include <assert.h>
#include <string.h>

#include "base/json_read.h"
#include "base/utf8.h"

void json_init(struct json *j, struct buf *out, bool pretty)
{
	*j = (struct json){ .out = out, .pretty = pretty };
}

static void json_newline(struct json *j)
{
	if (j->pretty) {
		buf_addc(j->out, '\n');
		for (unsigned i = 0; i < j->depth; i++) {
			buf_adds(j->out, "  ");
		}
	}
}

/* Writes the comma and newline that separate a value or key from the previous one. */
static void json_before(struct json *j)
{
	if (j->keyed) {
		j->keyed = false;
		return;
	}
	if (j->depth > 0) {
		if (j->filled >> j->depth & 1) {
			buf_addc(j->out, ',');
		}
		j->filled |= 1ULL << j->depth;
		json_newline(j);
	}
}

void json_open(struct json *j, char bracket)
{
	assert(j->depth < 63);
	json_before(j);
	buf_addc(j->out, bracket);
	j->depth++;
	j->filled &= ~(1ULL << j->depth);
}

void json_close(struct json *j, char bracket)
{
	assert(j->depth > 0);
	bool any = j->filled >> j->depth & 1;
	j->depth--;
	if (any) {
		json_newline(j);
	}
	buf_addc(j->out, bracket);
}

/* Returns how many bytes at the start of `s` need no escape: in most texts, all of them. */
static size_t json_plain(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && (unsigned char)s[n] >= 0x20 && (unsigned char)s[n] < 0x7f &&
	       s[n] != '"' && s[n] != '\\') {
		n++;
	}
	return n;
}

#define SPECIAL_MAX 6 /* most bytes that one character needs, as in "\u00ff" */

/* Writes \uNNNN. It does not use printf, which is slow: a skill can use names with thousands of
 * characters that need this escape. */
static size_t json_hex(char out[SPECIAL_MAX], uint32_t cp)
{
	static const char digits[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = 'u';
	for (int i = 0; i < 4; i++) {
		out[2 + i] = digits[cp >> (12 - 4 * i) & 15];
	}
	return 6;
}

/* Writes the first character of `s` to `out`, escaped if necessary. Returns its length in `s`, and
 * in *ret_n its length in `out`. */
static size_t json_special(char out[SPECIAL_MAX], const char *s, size_t len, size_t *ret_n)
{
	uint32_t cp = 0;
	size_t n = utf8_decode(s, len, &cp);
	char letter = cp == '\n' ? 'n' : cp == '\t' ? 't' : (char)cp;

	if (n == 0) {
		*ret_n = json_hex(out, 0xdc00 | (unsigned char)s[0]);
		return 1;
	}
	if (cp == '"' || cp == '\\' || cp == '\n' || cp == '\t') {
		out[0] = '\\';
		out[1] = letter;
		*ret_n = 2;
	} else if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029) {
		*ret_n = json_hex(out, cp);
	} else {
		memcpy(out, s, n);
		*ret_n = n;
	}
	return n;
}

size_t json_text_size(const char *s, size_t len)
{
	char special[SPECIAL_MAX];
	size_t size = 0;

	for (size_t i = 0; i < len;) {
		size_t n = json_plain(s + i, len - i);
		size_t out = n;
		if (n == 0) {
			n = json_special(special, s + i, len - i, &out);
		}
		size += out;
		i += n;
	}
	return size;
}

static void json_escaped(struct json *j, const char *s, size_t len)
{
	buf_addc(j->out, '"');
	for (size_t i = 0; i < len;) {
		size_t n = json_plain(s + i, len - i);
		if (n > 0) {
			buf_add(j->out, s + i, n);
		} else {
			char special[SPECIAL_MAX];
			size_t out = 0;
			n = json_special(special, s + i, len - i, &out);
			buf_add(j->out, special, out);
		}
		i += n;
	}
	buf_addc(j->out, '"');
}

void json_key(struct json *j, const char *key)
{
	json_before(j);
	json_escaped(j, key, strlen(key));
	buf_adds(j->out, j->pretty ? ": " : ":");
	j->keyed = true;
}

void json_strn(struct json *j, const char *s, size_t len)
{
	json_before(j);
	json_escaped(j, s, len);
}

void json_str(struct json *j, const char *s)
{
	if (s == NULL) {
		json_null(j);
		return;
	}
	json_strn(j, s, strlen(s));
}

/* Does not use printf, which is slow: a record has many numbers. */
static void json_digits(struct json *j, uint64_t v, bool negative)
{
	char digits[21];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	if (negative) {
		digits[--at] = '-';
	}
	json_before(j);
	buf_add(j->out, digits + at, sizeof(digits) - at);
}

void json_int(struct json *j, int64_t v)
{
	json_digits(j, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

void json_uint(struct json *j, uint64_t v)
{
	json_digits(j, v, false);
}

void json_bool(struct json *j, bool v)
{
	json_before(j);
	buf_adds(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
	json_before(j);
	buf_adds(j->out, "null");
}

void json_raw(struct json *j, const char *text, size_t len)
{
	json_before(j);
	buf_add(j->out, text, len);
}

void json_kopen(struct json *j, const char *key, char bracket)
{
	json_key(j, key);
	json_open(j, bracket);
}

void json_kstr(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

void json_kstrs(struct json *j, const char *key, char *const *v, size_t n)
{
	json_kopen(j, key, '[');
	for (size_t i = 0; i < n; i++) {
		json_str(j, v[i]);
	}
	json_close(j, ']');
}

void json_kint(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_int(j, v);
}

void json_kuint(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_uint(j, v);
}

/* Does not use printf, which is slow: every line of a ledger has half a dozen of these numbers. */
const char *json_millionths_text(int64_t v, char out[MILLIONTHS_TEXT])
{
	uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	char digits[MILLIONTHS_TEXT];
	char *at = digits + sizeof(digits);

	*--at = '\0';
	for (int places = 1; places <= 7 || left > 0; places++, left /= 10) {
		*--at = (char)('0' + left % 10);
		if (places == 6) {
			*--at = '.';
		}
	}
	if (v < 0) {
		*--at = '-';
	}
	memcpy(out, at, (size_t)(digits + sizeof(digits) - at));
	return out;
}

void json_kmillionths(struct json *j, const char *key, int64_t v)
{
	char text[MILLIONTHS_TEXT];

	(void)json_millionths_text(v, text);
	json_key(j, key);
	json_raw(j, text, strlen(text));
}

void json_kbool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

void json_copy(struct json *j, const struct json_doc *doc, const struct json_node *node)
{
	switch (node->type) {
	case JSON_NULL:
		json_null(j);
		break;
	case JSON_FALSE:
	case JSON_TRUE:
		json_bool(j, node->type == JSON_TRUE);
		break;
	case JSON_NUMBER:
		json_raw(j, node->str, node->len);
		break;
	case JSON_STRING:
		json_strn(j, node->str, node->len);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		json_open(j, node->type == JSON_OBJECT ? '{' : '[');
		JSON_EACH (n, doc, node) {
			if (n->key != NULL) {
				json_key(j, n->key);
			}
			json_copy(j, doc, n);
		}
		json_close(j, node->type == JSON_OBJECT ? '}' : ']');
		break;
	}
}
