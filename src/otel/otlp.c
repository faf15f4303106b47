/* otlp.c - writes texts and attributes of OTLP messages, and implements their JSON form. */
#include "otel/otlp.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "otel/otlp_limits.h"
#include "base/hex.h"
#include "base/json_read.h"
#include "base/number.h"
#include "base/own.h"
#include "base/utf8.h"

void otlp_init(struct otlp *w, struct buf *out, const struct otlp_format *format)
{
	assert(out != NULL && format != NULL);
	*w = (struct otlp){ .out = out, .format = format };
	json_init(&w->json, out, false);
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

static void add_escaped(struct buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		buf_addf(out, "\\x%02x", (unsigned char)s[i]);
	}
}

/* Copies the text to `out` with escapes. Returns false if nothing had to be escaped. */
static bool escape_text(struct buf *out, const char *s, size_t len)
{
	bool changed = false;
	size_t n = 0;

	for (size_t i = 0; i < len; i += n) {
		uint32_t c = 0;
		n = utf8_decode(s + i, len - i, &c);
		if (n == 0 || is_control(c)) {
			n = n == 0 ? 1 : n;
			add_escaped(out, s + i, n);
			changed = true;
		} else {
			buf_add(out, s + i, n);
		}
	}
	return changed;
}

/* Returns the length to which a text is cut. Never cuts inside a character, because the result
 * would not be UTF-8. */
static size_t cut_length(const char *s, size_t len)
{
	size_t n = OTLP_MAX_TEXT;

	if (len <= n) {
		return len;
	}
	while (n > OTLP_MAX_TEXT - 4 && ((unsigned char)s[n] & 0xc0) == 0x80) {
		n--;
	}
	return n;
}

void otlp_text(struct otlp *w, struct otlp_field f, const char *s, size_t len)
{
	auto_buf out = BUF((size_t)4 * OTLP_MAX_TEXT);

	len = cut_length(s, len);
	if (escape_text(&out, s, len)) {
		w->format->text(w, f, out.data, out.len);
	} else {
		w->format->text(w, f, s, len);
	}
	w->out->failed = w->out->failed || out.failed;
}

void otlp_attrs(struct otlp *w, struct otlp_field f)
{
	w->attributes = f;
	w->format->list(w, f);
}

void otlp_attrs_end(struct otlp *w)
{
	w->format->list_end(w);
}

static void open_pair(struct otlp *w, const char *key)
{
	w->format->item(w, w->attributes);
	otlp_text(w, PAIR_KEY, key, strlen(key));
	w->format->open(w, PAIR_VALUE);
}

static void close_pair(struct otlp *w)
{
	w->format->close(w);
	w->format->close(w);
}

void otlp_attr_text(struct otlp *w, const char *key, const char *s, size_t len)
{
	open_pair(w, key);
	otlp_text(w, ANY_STRING, s, len);
	close_pair(w);
}

void otlp_attr_str(struct otlp *w, const char *key, const char *s)
{
	if (s != NULL) {
		otlp_attr_text(w, key, s, strlen(s));
	}
}

void otlp_attr_int(struct otlp *w, const char *key, int64_t v)
{
	open_pair(w, key);
	w->format->int64(w, ANY_INT, v);
	close_pair(w);
}

void otlp_attr_bool(struct otlp *w, const char *key, bool v)
{
	open_pair(w, key);
	w->format->boolean(w, ANY_BOOL, v);
	close_pair(w);
}

void otlp_attr_real(struct otlp *w, const char *key, double v)
{
	open_pair(w, key);
	w->format->real(w, ANY_DOUBLE, v);
	close_pair(w);
}

void otlp_attr_array(struct otlp *w, const char *key)
{
	open_pair(w, key);
	w->format->open(w, ANY_ARRAY);
	w->format->list(w, ARRAY_VALUES);
}

void otlp_element(struct otlp *w, const char *s, size_t len)
{
	w->format->item(w, ARRAY_VALUES);
	otlp_text(w, ANY_STRING, s, len);
	w->format->close(w);
}

void otlp_attr_array_end(struct otlp *w)
{
	w->format->list_end(w);
	w->format->close(w);
	close_pair(w);
}

/* ---- JSON: lowerCamelCase, ids in hexadecimal, 64-bit numbers as text, enumerations
 * as numbers ---- */

#define MAX_ID 16

static void json_form_begin(struct otlp *w)
{
	json_open(&w->json, '{');
}

static void json_form_end(struct otlp *w)
{
	json_close(&w->json, '}');
}

static void json_form_open(struct otlp *w, struct otlp_field f)
{
	json_kopen(&w->json, f.name, '{');
}

static void json_form_list(struct otlp *w, struct otlp_field f)
{
	json_kopen(&w->json, f.name, '[');
}

static void json_form_item(struct otlp *w, struct otlp_field f)
{
	(void)f;
	json_open(&w->json, '{');
}

static void json_form_list_end(struct otlp *w)
{
	json_close(&w->json, ']');
}

static void json_form_text(struct otlp *w, struct otlp_field f, const char *s, size_t len)
{
	json_key(&w->json, f.name);
	json_strn(&w->json, s, len);
}

static void json_form_id(struct otlp *w, struct otlp_field f, const uint8_t *id, size_t len)
{
	char hex[2 * MAX_ID + 1];

	assert(len <= MAX_ID);
	hex_encode(id, len, hex);
	json_kstr(&w->json, f.name, hex);
}

static void json_form_fixed64(struct otlp *w, struct otlp_field f, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	json_kstr(&w->json, f.name, text);
}

static void json_form_int64(struct otlp *w, struct otlp_field f, int64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, v);
	json_kstr(&w->json, f.name, text);
}

static void json_form_uint32(struct otlp *w, struct otlp_field f, uint32_t v)
{
	json_kuint(&w->json, f.name, v);
}

static void json_form_boolean(struct otlp *w, struct otlp_field f, bool v)
{
	json_kbool(&w->json, f.name, v);
}

static void json_form_real(struct otlp *w, struct otlp_field f, double v)
{
	char text[340]; /* the largest double has 309 digits before the point */
	int n = snprintf(text, sizeof(text), "%.6f", v);

	json_key(&w->json, f.name);
	json_raw(&w->json, text, (size_t)n);
}

/* Reads a number. JSON may contain a 64-bit number as a text. */
static int64_t read_number(const struct json_node *n)
{
	const char *s = json_string(n, NULL);
	int64_t v = 0;

	if (s == NULL) {
		return json_integer(n, 0);
	}
	(void)number_parse_signed(s, &v);
	return v;
}

static bool json_form_partial(const char *body, size_t len, struct otlp_partial *ret)
{
	AUTO(json_doc_done) struct json_doc doc = { 0 };
	struct otlp_partial found = { 0 };
	const char *why = NULL;

	if (json_read(&doc, body, len, &why) != 0) {
		return false;
	}
	const struct json_node *p = json_member(&doc, json_top(&doc), "partialSuccess");
	if (!json_is(p, JSON_OBJECT)) {
		return false;
	}
	const struct json_node *n = json_member(&doc, p, "rejectedSpans");
	found.rejected = read_number(n != NULL ? n : json_member(&doc, p, "rejectedLogRecords"));
	snprintf(found.why, sizeof(found.why), "%s",
	         json_string(json_member(&doc, p, "errorMessage"), ""));
	*ret = found;
	return true;
}

const struct otlp_format OTLP_JSON = {
	.content_type = "application/json",
	.begin = json_form_begin,
	.end = json_form_end,
	.open = json_form_open,
	.close = json_form_end,
	.list = json_form_list,
	.item = json_form_item,
	.list_end = json_form_list_end,
	.text = json_form_text,
	.id = json_form_id,
	.fixed64 = json_form_fixed64,
	.fixed32 = json_form_uint32,
	.int64 = json_form_int64,
	.uint32 = json_form_uint32,
	.boolean = json_form_boolean,
	.real = json_form_real,
	.partial = json_form_partial,
};
