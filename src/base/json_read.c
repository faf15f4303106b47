/* json_read.c - parses JSON into an array of nodes, with caps. */
#include "base/json_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/utf8.h"

struct json_parse {
	struct json_doc *doc;
	const char *p;
	const char *end;
	char *out;       /* next free byte of doc->text */
	const char *why; /* the reason of the first failure; NULL: none yet */
	unsigned depth;
	bool raw_del; /* accept a raw DEL in a string */
};

static bool parse_value(struct json_parse *s, uint32_t *ret);

static bool fail_parse(struct json_parse *s, const char *why)
{
	s->why = why;
	return false;
}

static void skip_space(struct json_parse *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r')) {
		s->p++;
	}
}

static bool take_char(struct json_parse *s, char c)
{
	skip_space(s);
	if (s->p < s->end && *s->p == c) {
		s->p++;
		return true;
	}
	return false;
}

static bool new_node(struct json_parse *s, enum json_type type, uint32_t *ret)
{
	struct json_doc *d = s->doc;

	if (d->n_nodes >= MAX_JSON_NODES) {
		return fail_parse(s, "too many values");
	}
	if (d->n_nodes == d->room_nodes) {
		size_t room = d->room_nodes == 0 ? 64 : d->room_nodes * 2;
		struct json_node *nodes = realloc(d->nodes, room * sizeof(*nodes));
		if (nodes == NULL) {
			return fail_parse(s, "out of memory");
		}
		d->nodes = nodes;
		d->room_nodes = room;
	}
	d->nodes[d->n_nodes] = (struct json_node){ .type = type };
	*ret = (uint32_t)d->n_nodes++;
	return true;
}

/* Reads four hexadecimal digits at s->p. */
static bool parse_hex4(struct json_parse *s, uint32_t *ret)
{
	uint32_t v = 0;

	if (s->end - s->p < 4) {
		return fail_parse(s, "a \\u escape is cut short");
	}
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(s->p[i]);
		if (digit < 0) {
			return fail_parse(s, "a \\u escape is not hexadecimal");
		}
		v = v << 4 | (uint32_t)digit;
	}
	s->p += 4;
	*ret = v;
	return true;
}

static void put_utf8(struct json_parse *s, uint32_t cp)
{
	if (cp < 0x80) {
		*s->out++ = (char)cp;
	} else if (cp < 0x800) {
		*s->out++ = (char)(0xc0 | cp >> 6);
		*s->out++ = (char)(0x80 | (cp & 0x3f));
	} else if (cp < 0x10000) {
		*s->out++ = (char)(0xe0 | cp >> 12);
		*s->out++ = (char)(0x80 | (cp >> 6 & 0x3f));
		*s->out++ = (char)(0x80 | (cp & 0x3f));
	} else {
		*s->out++ = (char)(0xf0 | cp >> 18);
		*s->out++ = (char)(0x80 | (cp >> 12 & 0x3f));
		*s->out++ = (char)(0x80 | (cp >> 6 & 0x3f));
		*s->out++ = (char)(0x80 | (cp & 0x3f));
	}
}

static bool parse_unicode(struct json_parse *s)
{
	uint32_t cp = 0;
	uint32_t low = 0;

	if (!parse_hex4(s, &cp)) {
		return false;
	}
	if (cp >= 0xdc80 && cp <= 0xdcff) {
		*s->out++ = (char)(cp & 0xff);
		return true;
	}
	if (cp >= 0xd800 && cp < 0xdc00 && s->end - s->p >= 6 && s->p[0] == '\\' &&
	    s->p[1] == 'u') {
		s->p += 2;
		if (!parse_hex4(s, &low)) {
			return false;
		}
		if (low >= 0xdc00 && low < 0xe000) {
			put_utf8(s, 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00));
			return true;
		}
	}
	if (cp >= 0xd800 && cp < 0xe000) {
		return fail_parse(s, "a \\u escape is only half of a surrogate pair");
	}
	put_utf8(s, cp);
	return true;
}

static bool parse_escape(struct json_parse *s)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";

	if (s->p == s->end) {
		return fail_parse(s, "a string has no end");
	}
	char c = *s->p++;
	if (c == 'u') {
		return parse_unicode(s);
	}
	const char *at = c != '\0' ? strchr(from, c) : NULL;
	if (at == NULL) {
		return fail_parse(s, "an unknown escape");
	}
	*s->out++ = to[at - from];
	return true;
}

/* Reads a string after its opening quote. The decoded text is never longer than the escaped one,
 * and its NUL needs no more space than a quote, so doc->text always has room. */
static bool parse_string(struct json_parse *s, const char **ret_str, size_t *ret_len)
{
	char *begin = s->out;

	while (s->p < s->end && *s->p != '"') {
		unsigned char c = (unsigned char)*s->p;
		uint32_t cp = 0;
		if (c == '\\') {
			s->p++;
			if (!parse_escape(s)) {
				return false;
			}
		} else if (c < 0x20 || (c == 0x7f && !s->raw_del)) {
			return fail_parse(s, "a string contains a control character");
		} else if (c < 0x80) {
			*s->out++ = *s->p++;
		} else {
			size_t n = utf8_decode(s->p, (size_t)(s->end - s->p), &cp);
			if (n == 0) {
				return fail_parse(s, "not UTF-8");
			}
			memcpy(s->out, s->p, n);
			s->out += n;
			s->p += n;
		}
	}
	if (s->p == s->end) {
		return fail_parse(s, "a string has no end");
	}
	s->p++;
	*ret_str = begin;
	*ret_len = (size_t)(s->out - begin);
	*s->out++ = '\0';
	return true;
}

static size_t count_digits(const char *p, const char *end)
{
	const char *at = p;

	while (at < end && *at >= '0' && *at <= '9') {
		at++;
	}
	return (size_t)(at - p);
}

/* Returns the length of the number at p by the grammar of JSON; 0 if there is none. */
static size_t number_length(const char *p, const char *end)
{
	const char *at = p + (p < end && *p == '-');
	size_t n = count_digits(at, end);

	if (n == 0 || (n > 1 && *at == '0')) {
		return 0;
	}
	at += n;
	if (at < end && *at == '.') {
		n = count_digits(at + 1, end);
		if (n == 0) {
			return 0;
		}
		at += n + 1;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		const char *exp = at + 1;
		exp += exp < end && (*exp == '+' || *exp == '-');
		n = count_digits(exp, end);
		if (n == 0) {
			return 0;
		}
		at = exp + n;
	}
	return (size_t)(at - p);
}

/* The NUL after a number also needs space in doc->text. In an array or object, it uses the byte of
 * the comma or bracket after the number. For a number that is the whole text, doc->text has one
 * spare byte. */
static bool parse_number(struct json_parse *s, uint32_t *ret)
{
	size_t n = number_length(s->p, s->end);

	if (n == 0) {
		return fail_parse(s, "a value is expected");
	}
	if (!new_node(s, JSON_NUMBER, ret)) {
		return false;
	}
	memcpy(s->out, s->p, n);
	s->out[n] = '\0';
	s->doc->nodes[*ret].str = s->out;
	s->doc->nodes[*ret].len = n;
	s->out += n + 1;
	s->p += n;
	return true;
}

static bool parse_word(struct json_parse *s, uint32_t *ret)
{
	static const struct {
		const char *word;
		enum json_type type;
	} words[] = { { "true", JSON_TRUE }, { "false", JSON_FALSE }, { "null", JSON_NULL } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].word);
		if ((size_t)(s->end - s->p) >= n && memcmp(s->p, words[i].word, n) == 0) {
			s->p += n;
			return new_node(s, words[i].type, ret);
		}
	}
	return parse_number(s, ret);
}

/* A Bloom filter of the keys of one object. A clear bit proves that a key is new, which is true for
 * most keys. Without the filter, comparing each key with all others would take a second for a
 * hostile text of a few MB. */
#define SEEN_BITS 8192
struct seen {
	uint64_t bits[SEEN_BITS / 64];
};

/* Returns true if the key may be a duplicate, and adds it to the filter. The hash includes the
 * address of the text in memory. An attacker does not know this address, and so cannot choose keys
 * that have the same bit. */
static bool was_seen(struct seen *seen, const struct json_parse *s, const char *key, size_t len)
{
	uint64_t h = fnv_hash((uintptr_t)s->doc->text, key, len);
	uint64_t *word = &seen->bits[h % SEEN_BITS / 64];
	uint64_t bit = 1ULL << h % 64;
	bool was = (*word & bit) != 0;
	*word |= bit;
	return was;
}

static bool has_key(const struct json_doc *d, uint32_t object, const char *key)
{
	for (uint32_t i = d->nodes[object].first; i != 0; i = d->nodes[i].next) {
		if (strcmp(d->nodes[i].key, key) == 0) {
			return true;
		}
	}
	return false;
}

/* Reads the key of a member of `object`, and the colon. */
static bool parse_key(struct json_parse *s, uint32_t object, struct seen *seen, const char **ret)
{
	const char *key = NULL;
	size_t len = 0;

	if (!take_char(s, '"')) {
		return fail_parse(s, "a key is expected");
	}
	if (!parse_string(s, &key, &len)) {
		return false;
	}
	if (strlen(key) != len) {
		return fail_parse(s, "a key contains a NUL");
	}
	if (s->doc->nodes[object].n >= MAX_JSON_MEMBERS) {
		return fail_parse(s, "too many members");
	}
	if (was_seen(seen, s, key, len) && has_key(s->doc, object, key)) {
		return fail_parse(s, "an object has the same key twice");
	}
	if (!take_char(s, ':')) {
		return fail_parse(s, "a colon is expected");
	}
	*ret = key;
	return true;
}

static bool parse_item(struct json_parse *s, uint32_t list, struct seen *seen, uint32_t *ret)
{
	const char *key = NULL;

	if ((seen != NULL && !parse_key(s, list, seen, &key)) || !parse_value(s, ret)) {
		return false;
	}
	s->doc->nodes[*ret].key = key;
	s->doc->nodes[list].n++;
	return true;
}

/* Reads the items after the opening bracket. `seen` is the filter of an object's keys; NULL for an
 * array. */
static bool parse_items(struct json_parse *s, uint32_t list, struct seen *seen)
{
	uint32_t last = 0;

	s->depth++;
	do {
		uint32_t at = 0;
		if (!parse_item(s, list, seen, &at)) {
			return false;
		}
		struct json_node *nodes = s->doc->nodes;
		if (last == 0) {
			nodes[list].first = at;
		} else {
			nodes[last].next = at;
		}
		last = at;
	} while (take_char(s, ','));
	s->depth--;
	return true;
}

static bool parse_members(struct json_parse *s, uint32_t object)
{
	struct seen seen = { { 0 } };

	return parse_items(s, object, &seen);
}

/* Reads a list after the opening bracket. */
static bool parse_list(struct json_parse *s, enum json_type type, uint32_t *ret)
{
	char close = type == JSON_OBJECT ? '}' : ']';

	if (s->depth >= MAX_JSON_DEPTH) {
		return fail_parse(s, "nested too deeply");
	}
	if (!new_node(s, type, ret)) {
		return false;
	}
	if (take_char(s, close)) {
		return true;
	}
	if (!(type == JSON_OBJECT ? parse_members(s, *ret) : parse_items(s, *ret, NULL))) {
		return false;
	}
	return take_char(s, close) || fail_parse(s, "a comma or a closing bracket is expected");
}

static bool parse_value(struct json_parse *s, uint32_t *ret)
{
	const char *str = NULL;
	size_t len = 0;

	if (take_char(s, '{')) {
		return parse_list(s, JSON_OBJECT, ret);
	}
	if (take_char(s, '[')) {
		return parse_list(s, JSON_ARRAY, ret);
	}
	if (!take_char(s, '"')) {
		return parse_word(s, ret);
	}
	if (!parse_string(s, &str, &len) || !new_node(s, JSON_STRING, ret)) {
		return false;
	}
	s->doc->nodes[*ret].str = str;
	s->doc->nodes[*ret].len = len;
	return true;
}

static bool make_room(struct json_doc *doc, size_t len)
{
	if (doc->room_text >= len + 2) {
		return true;
	}
	free(doc->text);
	doc->text = malloc(len + 2);
	doc->room_text = doc->text != NULL ? len + 2 : 0;
	return doc->text != NULL;
}

static int read_text(struct json_doc *doc, const char *text, size_t len, bool raw_del,
                     const char **ret_why)
{
	struct json_parse s = { .doc = doc, .p = text, .end = text + len, .raw_del = raw_del };
	uint32_t top = 0;

	doc->n_nodes = 0;
	if (!make_room(doc, len)) {
		*ret_why = "out of memory";
		return -1;
	}
	s.out = doc->text;
	if (parse_value(&s, &top)) {
		skip_space(&s);
		if (s.p == s.end) {
			return 0;
		}
		s.why = "more text follows the value";
	}
	doc->n_nodes = 0;
	*ret_why = s.why;
	return -1;
}

int json_read(struct json_doc *doc, const char *text, size_t len, const char **ret_why)
{
	return read_text(doc, text, len, false, ret_why);
}

int json_read_del(struct json_doc *doc, const char *text, size_t len, const char **ret_why)
{
	return read_text(doc, text, len, true, ret_why);
}

void json_doc_done(struct json_doc *doc)
{
	free(doc->nodes);
	free(doc->text);
	*doc = (struct json_doc){ 0 };
}

const struct json_node *json_top(const struct json_doc *doc)
{
	return doc->n_nodes > 0 ? &doc->nodes[0] : NULL;
}

const struct json_node *json_first(const struct json_doc *doc, const struct json_node *parent)
{
	return parent != NULL && parent->first != 0 ? &doc->nodes[parent->first] : NULL;
}

const struct json_node *json_next(const struct json_doc *doc, const struct json_node *node)
{
	return node != NULL && node->next != 0 ? &doc->nodes[node->next] : NULL;
}

const struct json_node *json_member(const struct json_doc *doc, const struct json_node *object,
                                    const char *key)
{
	if (!json_is(object, JSON_OBJECT)) {
		return NULL;
	}
	JSON_EACH (m, doc, object) {
		if (strcmp(m->key, key) == 0) {
			return m;
		}
	}
	return NULL;
}

bool json_is(const struct json_node *node, enum json_type type)
{
	return node != NULL && node->type == type;
}

const char *json_string(const struct json_node *node, const char *otherwise)
{
	return json_is(node, JSON_STRING) ? node->str : otherwise;
}

int64_t json_integer(const struct json_node *node, int64_t otherwise)
{
	int64_t v = 0;

	return json_is(node, JSON_NUMBER) && number_parse_signed(node->str, &v) ? v : otherwise;
}
