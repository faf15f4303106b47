/* otlp_json.c - the JSON form: lowerCamelCase, ids in hexadecimal, 64-bit
 * numbers as text, enumerations as numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "otel/otlp.h"
#include "base/hex.h"
#include "base/json_read.h"

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
	json_key(&w->json, f.name);
	json_open(&w->json, '{');
}

static void json_form_list(struct otlp *w, struct otlp_field f)
{
	json_key(&w->json, f.name);
	json_open(&w->json, '[');
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

	hex_encode(id, len < MAX_ID ? len : MAX_ID, hex);
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
	char text[340]; /* the largest has 309 digits */
	int n = snprintf(text, sizeof(text), "%.6f", v);

	json_key(&w->json, f.name);
	json_raw(&w->json, text, (size_t)n);
}

/* A number, or (64-bit numbers) a text of one. */
static int64_t number(const struct json_node *n)
{
	const char *s = json_string(n, NULL);
	char *end = NULL;

	if (s == NULL) {
		return json_integer(n, 0);
	}
	long long v = strtoll(s, &end, 10);
	return *s != '\0' && *end == '\0' ? (int64_t)v : 0;
}

static void json_doc_donep(struct json_doc *doc)
{
	json_doc_done(doc);
}

static bool json_form_partial(const char *body, size_t len, struct otlp_partial *ret)
{
	__attribute__((cleanup(json_doc_donep))) struct json_doc doc = { 0 };
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
	found.rejected = number(n != NULL ? n : json_member(&doc, p, "rejectedLogRecords"));
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
