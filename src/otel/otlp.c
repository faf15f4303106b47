#include "otel/otlp.h"

#include <string.h>

#include "otel/otlp_fields.h"
#include "otel/otlp_limits.h"
#include "base/utf8.h"

void otlp_init(struct otlp *w, struct buf *out, const struct otlp_format *format)
{
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

/* False: there is nothing to change. */
static bool clean(struct buf *out, const char *s, size_t len)
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

/* A text that ends within a character would not be UTF-8. */
static size_t cut(const char *s, size_t len)
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
	auto_buf out;

	buf_init(&out, (size_t)4 * OTLP_MAX_TEXT);
	len = cut(s, len);
	if (clean(&out, s, len)) {
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

static void pair(struct otlp *w, const char *key)
{
	w->format->item(w, w->attributes);
	otlp_text(w, PAIR_KEY, key, strlen(key));
	w->format->open(w, PAIR_VALUE);
}

static void pair_end(struct otlp *w)
{
	w->format->close(w);
	w->format->close(w);
}

void otlp_attr_text(struct otlp *w, const char *key, const char *s, size_t len)
{
	pair(w, key);
	otlp_text(w, ANY_STRING, s, len);
	pair_end(w);
}

void otlp_attr_str(struct otlp *w, const char *key, const char *s)
{
	if (s != NULL) {
		otlp_attr_text(w, key, s, strlen(s));
	}
}

void otlp_attr_int(struct otlp *w, const char *key, int64_t v)
{
	pair(w, key);
	w->format->int64(w, ANY_INT, v);
	pair_end(w);
}

void otlp_attr_bool(struct otlp *w, const char *key, bool v)
{
	pair(w, key);
	w->format->boolean(w, ANY_BOOL, v);
	pair_end(w);
}

void otlp_attr_real(struct otlp *w, const char *key, double v)
{
	pair(w, key);
	w->format->real(w, ANY_DOUBLE, v);
	pair_end(w);
}

void otlp_attr_array(struct otlp *w, const char *key)
{
	pair(w, key);
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
	pair_end(w);
}
