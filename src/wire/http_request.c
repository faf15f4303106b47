/* http_request.c - parses the head and the body of a request, piece by piece. */
#include "wire/http_request.h"

#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/hex.h"
#include "base/own.h"

#define MAX_CHUNK_DIGITS 8

/* Fields that may appear only once: if there were two, one reader could use the first and another
 * reader the second. */
static const char *const ONCE[] = {
	"authorization", "content-type",   "expect", "last-event-id",        "mcp-method",
	"mcp-name",      "mcp-session-id", "origin", "mcp-protocol-version",
};
/* These fields are ignored, as if they were missing: HTTP allows a server to ignore an upgrade. */
static const char *const IGNORED[] = { "upgrade", "http2-settings" };

/* ---- spans ------------------------------------------------------------------- */

bool http_span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.s, text, s.len) == 0;
}

static bool span_is_nocase(struct span s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.s, text, s.len) == 0;
}

static bool is_one_of(struct span s, const char *const *list, size_t n)
{
	return ARRAY_HAS(e, list, n, span_is_nocase(s, *e));
}

static struct span span_trim(struct span s)
{
	while (s.len > 0 && (s.s[0] == ' ' || s.s[0] == '\t')) {
		s.s++;
		s.len--;
	}
	while (s.len > 0 && (s.s[s.len - 1] == ' ' || s.s[s.len - 1] == '\t')) {
		s.len--;
	}
	return s;
}

/* Removes the part before the next `c`, and this `c`, from *rest, or everything if there is no `c`.
 * *ret is this part without surrounding blanks. Returns false if *rest was already used up. */
static bool span_cut(struct span *rest, char c, struct span *ret)
{
	if (rest->s == NULL) {
		return false;
	}
	const char *at = memchr(rest->s, c, rest->len);

	*ret = span_trim((struct span){ rest->s, at == NULL ? rest->len : (size_t)(at - rest->s) });
	*rest = at == NULL ? (struct span){ NULL, 0 }
	                   : (struct span){ at + 1, rest->len - (size_t)(at + 1 - rest->s) };
	return true;
}

/* ---- the head ---------------------------------------------------------------- */

static int status_of(enum http1_deny why)
{
	return why == HTTP1_VERSION    ? 505
	       : why == HTTP1_TOO_LONG ? 431
	       : why == HTTP1_EXPECT   ? 417
	                               : 400;
}

static int request_line(struct http_request *r, struct span line)
{
	struct span rest = line;

	r->method = (struct span){ line.s, 0 };
	while (r->method.len < line.len && http1_is_token(line.s[r->method.len])) {
		r->method.len++;
	}
	if (r->method.len == line.len || line.s[r->method.len] != ' ') {
		return 400;
	}
	enum http1_deny why = http1_method(r->method);

	if (why == HTTP1_OK) {
		why = http1_request_line(&r->lines, line, r->method.len);
	}
	if (why != HTTP1_OK) {
		return status_of(why);
	}
	rest.s += r->lines.target;
	rest.len = r->lines.target_len;
	r->target = rest;
	return r->lines.old ? 505 : HTTP_DONE;
}

static int note_field(struct http_request *r, struct http_field f)
{
	struct span list = f.value, option;

	if (is_one_of(f.name, ONCE, ARRAY_LEN(ONCE))) {
		for (size_t i = 0; i < r->n_fields; i++) {
			if (r->fields[i].name.len == f.name.len &&
			    strncasecmp(r->fields[i].name.s, f.name.s, f.name.len) == 0) {
				return 400;
			}
		}
	}
	r->expects |=
	        span_is_nocase(f.name, "expect"); /* http1_header_line() has judged its value */
	while (span_is_nocase(f.name, "connection") && span_cut(&list, ',', &option)) {
		r->close |= span_is_nocase(option, "close");
	}
	if (r->n_fields == HTTP_MAX_FIELDS) {
		return 431;
	}
	r->fields[r->n_fields++] = f;
	return HTTP_DONE;
}

static int header_line(struct http_request *r, struct span line)
{
	const char *colon = memchr(line.s, ':', line.len);
	struct http_field f = { .name = { line.s, colon == NULL ? 0 : (size_t)(colon - line.s) } };

	if (!is_one_of(f.name, IGNORED, ARRAY_LEN(IGNORED))) {
		enum http1_deny why = http1_header_line(&r->lines, line);
		if (why != HTTP1_OK) {
			return status_of(why);
		}
	}
	if (colon == NULL) {
		return 400;
	}
	f.value = span_trim((struct span){ colon + 1, line.len - f.name.len - 1 });
	return note_field(r, f);
}

/* Reads the complete head: lines that end with CRLF, the last one empty. */
static int read_lines(struct http_request *r, struct span head)
{
	size_t at = 0;
	int status = HTTP_DONE;

	for (bool first = true; status == HTTP_DONE; first = false) {
		const char *end = memchr(head.s + at, '\r', head.len - at);
		struct span line = { head.s + at, (size_t)(end - (head.s + at)) };

		if (line.len == 0) {
			break;
		}
		status = first ? request_line(r, line) : header_line(r, line);
		at += line.len + 2;
	}
	if (status != HTTP_DONE || r->method.len == 0) {
		return status != HTTP_DONE ? status : 400;
	}
	enum http1_deny why = http1_head_end(&r->lines, head);

	return why == HTTP1_OK ? HTTP_DONE : status_of(why);
}

int http_request_head(struct http_request *r, const char *data, size_t len, size_t *ret_len)
{
	for (; r->seen < len && r->seen < HTTP_MAX_HEAD; r->seen++) {
		size_t i = r->seen;
		bool after_cr = i > 0 && data[i - 1] == '\r';

		if (after_cr != (data[i] == '\n') ||
		    (data[i] != '\r' && data[i] != '\n' && !http1_is_text(data[i]))) {
			return 400;
		}
		if (data[i] == '\n' && (i == 1 || (i >= 3 && data[i - 2] == '\n'))) {
			int status = read_lines(r, (struct span){ data, i + 1 });
			if (status == HTTP_DONE) {
				*ret_len = i + 1;
			}
			return status;
		}
	}
	return r->seen == HTTP_MAX_HEAD ? 431 : HTTP_MORE;
}

const struct span *http_request_field(const struct http_request *r, const char *name)
{
	for (size_t i = 0; i < r->n_fields; i++) {
		if (span_is_nocase(r->fields[i].name, name)) {
			return &r->fields[i].value;
		}
	}
	return NULL;
}

/* True if one element of Accept allows the type: "text/event-stream; q=0.5", "text/ *" or "* / *"
 * (without the blanks). */
static bool allows_type(struct span element, const char *type)
{
	struct span media, option;
	size_t group = (size_t)(strchr(type, '/') - type) + 1;

	if (!span_cut(&element, ';', &media)) {
		return false;
	}
	while (span_cut(&element, ';', &option)) {
		if (option.len >= 3 && strncasecmp(option.s, "q=0", 3) == 0) {
			size_t zeros = 3;
			while (zeros < option.len && strchr(".0", option.s[zeros]) != NULL) {
				zeros++;
			}
			if (zeros == option.len) {
				return false;
			}
		}
	}
	return span_is_nocase(media, type) || http_span_is(media, "*/*") ||
	       (media.len == group + 1 && media.s[group] == '*' &&
	        strncasecmp(media.s, type, group) == 0);
}

bool http_request_accepts(const struct http_request *r, const char *type)
{
	bool said = false;

	for (size_t i = 0; i < r->n_fields; i++) {
		struct span list = r->fields[i].value, element;
		if (!span_is_nocase(r->fields[i].name, "accept")) {
			continue;
		}
		said = true;
		while (span_cut(&list, ',', &element)) {
			if (allows_type(element, type)) {
				return true;
			}
		}
	}
	return !said;
}

/* ---- the body ---------------------------------------------------------------- */

enum body_state {
	BODY_LENGTH,   /* `left` bytes follow */
	BODY_SIZE,     /* reading the digits of a chunk's size */
	BODY_SIZE_LF,  /* the CR after the digits has arrived */
	BODY_CHUNK,    /* `left` bytes of the chunk follow */
	BODY_CHUNK_CR, /* the chunk is complete */
	BODY_CHUNK_LF,
	BODY_LAST_CR, /* the last chunk, which is empty, has been read */
	BODY_LAST_LF,
	BODY_OVER,
};

int http_body_init(struct http_body *b, const struct http_request *r, uint64_t max)
{
	*b = (struct http_body){ .max = max };
	if (r->lines.chunked) {
		b->state = BODY_SIZE;
		return HTTP_MORE;
	}
	b->left = r->lines.has_length ? r->lines.length : 0;
	if (b->left > max) {
		return 413;
	}
	b->state = b->left > 0 ? BODY_LENGTH : BODY_OVER;
	return b->left > 0 ? HTTP_MORE : HTTP_DONE;
}

static int take_data(struct http_body *b, const char *data, size_t len, size_t *ret_used,
                     struct span *ret)
{
	size_t n = b->left < len ? (size_t)b->left : len;

	b->left -= n;
	b->got += n;
	if (b->left == 0) {
		b->state = b->state == BODY_LENGTH ? BODY_OVER : BODY_CHUNK_CR;
	}
	*ret = (struct span){ data, n };
	*ret_used = n;
	return HTTP_PIECE;
}

static int size_byte(struct http_body *b, char c)
{
	if (c == '\r' && b->digits > 0) {
		b->state = BODY_SIZE_LF;
		return b->left > b->max - b->got ? 413 : HTTP_MORE;
	}
	if (hex_digit(c) < 0 || b->digits == MAX_CHUNK_DIGITS) {
		return 400;
	}
	b->left = b->left * 16 + (uint64_t)hex_digit(c);
	b->digits++;
	return HTTP_MORE;
}

static int wants_char(struct http_body *b, char c, char wanted, enum body_state next)
{
	b->state = (int)next;
	return c == wanted ? HTTP_MORE : 400;
}

/* Reads a byte of a chunk's frame: its size, or a line end. */
static int frame_byte(struct http_body *b, char c)
{
	switch ((enum body_state)b->state) {
	case BODY_SIZE:
		return size_byte(b, c);
	case BODY_SIZE_LF:
		b->digits = 0;
		return wants_char(b, c, '\n', b->left > 0 ? BODY_CHUNK : BODY_LAST_CR);
	case BODY_CHUNK_CR:
		return wants_char(b, c, '\r', BODY_CHUNK_LF);
	case BODY_CHUNK_LF:
		return wants_char(b, c, '\n', BODY_SIZE);
	case BODY_LAST_CR:
		return wants_char(b, c, '\r', BODY_LAST_LF);
	case BODY_LAST_LF:
		return wants_char(b, c, '\n', BODY_OVER);
	case BODY_LENGTH:
	case BODY_CHUNK:
	case BODY_OVER:
		break;
	}
	return 400;
}

int http_body_feed(struct http_body *b, const char *data, size_t len, size_t *ret_used,
                   struct span *ret)
{
	*ret_used = 0;
	for (size_t i = 0; i < len && b->state != BODY_OVER; i++) {
		if (b->state == BODY_LENGTH || b->state == BODY_CHUNK) {
			int verdict = take_data(b, data + i, len - i, ret_used, ret);
			*ret_used += i;
			return verdict;
		}
		int verdict = frame_byte(b, data[i]);

		*ret_used = i + 1;
		if (verdict != HTTP_MORE) {
			return verdict;
		}
	}
	return b->state == BODY_OVER ? HTTP_DONE : HTTP_MORE;
}
