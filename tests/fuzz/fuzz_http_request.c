/* Reads HTTP requests from arbitrary bytes. However the bytes are divided, the same requests with
 * the same bodies must be found, and no part of a request may be longer than its limit.
 *
 * The first byte is not part of the stream: it is the number of bytes that the reader gets at
 * once. */
#include <string.h>

#include "fuzz.h"
#include "wire/http_request.h"

#define MAX_BODY 2000

struct seen {
	size_t requests;
	int verdict; /* the last verdict */
	uint64_t bytes;
	uint64_t sum; /* a checksum of bodies and fields */
};

static void add(struct seen *s, struct span piece)
{
	for (size_t i = 0; i < piece.len; i++) {
		s->sum = s->sum * 31 + (uint8_t)piece.s[i];
	}
	s->bytes += piece.len;
}

static void note_head(struct seen *s, const struct http_request *r, size_t len)
{
	must(len <= HTTP_MAX_HEAD && r->n_fields <= HTTP_MAX_FIELDS && r->method.len > 0);
	must(r->lines.host[0] != '\0' && !(r->lines.has_length && r->lines.chunked));
	add(s, r->method);
	add(s, r->target);
	for (size_t i = 0; i < r->n_fields; i++) {
		must(http_request_field(r, "no such field") == NULL);
		add(s, r->fields[i].name);
		add(s, r->fields[i].value);
	}
	s->sum += http_request_accepts(r, "text/event-stream");
}

/* Returns a copy of exactly this size, so that a sanitizer reports a read past its end. */
static char *copy(const char *data, size_t len)
{
	char *p = malloc(len > 0 ? len : 1);

	must(p != NULL);
	memcpy(p, data, len);
	return p;
}

static int head_in_steps(struct seen *s, const char *data, size_t len, size_t step,
                         struct http_body *body, size_t *ret_len)
{
	struct http_request r = { 0 };
	int verdict = HTTP_MORE;

	for (size_t n = 0; n < len && verdict == HTTP_MORE;) {
		n = len - n < step ? len : n + step;
		char *piece = copy(data, n);
		verdict = http_request_head(&r, piece, n, ret_len);
		if (verdict == HTTP_DONE) {
			note_head(s, &r, *ret_len);
			int more = http_body_init(body, &r, MAX_BODY);
			verdict = more == HTTP_MORE || more == HTTP_DONE ? HTTP_DONE : more;
		}
		free(piece);
	}
	return verdict;
}

static int body_in_steps(struct seen *s, struct http_body *body, const char *data, size_t len,
                         size_t step, size_t *ret_len)
{
	size_t at = 0, used;
	struct span piece = { NULL, 0 };
	int verdict = http_body_feed(body, "", 0, &used, &piece);

	while ((verdict == HTTP_MORE || verdict == HTTP_PIECE) && at < len) {
		size_t n = len - at < step ? len - at : step;
		char *bytes = copy(data + at, n);
		verdict = http_body_feed(body, bytes, n, &used, &piece);
		must(used <= n);
		if (verdict == HTTP_PIECE) {
			add(s, piece);
			verdict = http_body_feed(body, "", 0, &(size_t){ 0 }, &piece);
		}
		must(used > 0 || verdict != HTTP_MORE);
		at += used;
		free(bytes);
	}
	must(body->got <= MAX_BODY);
	*ret_len = at;
	return verdict;
}

static void drive(struct seen *s, const char *data, size_t len, size_t step)
{
	for (size_t at = 0; at < len;) {
		struct http_body body;
		size_t head_len = 0, body_len = 0;

		s->verdict = head_in_steps(s, data + at, len - at, step, &body, &head_len);
		if (s->verdict != HTTP_DONE) {
			return;
		}
		at += head_len;
		s->verdict = body_in_steps(s, &body, data + at, len - at, step, &body_len);
		if (s->verdict != HTTP_DONE) {
			return;
		}
		s->requests++;
		at += body_len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = { 0 }, pieces = { 0 };

	if (size < 2 || size > 65536) {
		return 0;
	}
	drive(&whole, (const char *)data + 1, size - 1, size);
	drive(&pieces, (const char *)data + 1, size - 1, (size_t)(data[0] % 64) + 1);
	must(whole.requests == pieces.requests && whole.verdict == pieces.verdict);
	must(whole.sum == pieces.sum && whole.bytes == pieces.bytes);
	return 0;
}
