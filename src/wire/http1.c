/* http1.c - checks the stream of requests: holds heads back until they are judged, and lets bodies
 * pass.
 *
 * The machine has one state at a time. The step of each state looks at the bytes that have not been
 * passed yet and says how many of them may pass:
 *
 * HEAD -> JUDGE (by the caller) -> BODY -> HEAD
 * BODY -> CHUNK_LINE -> CHUNK -> CHUNK_END -> CHUNK_LINE
 * CHUNK_LINE (size 0) -> TRAILER -> HEAD
 * JUDGE -> ANNOUNCE (only the head) -> HELD -> BODY, CHUNK_LINE or REFUSED
 *
 * A verdict depends only on the bytes, not on the pieces in which they arrive: a section (a head,
 * the line of a chunk's size, or a trailer) is held back and read line by line, each line once, and
 * the first error decides. So bytes that are not HTTP are denied as soon as they arrive, and no
 * head is read twice. */
#include "wire/http1.h"

#include <string.h>

#include "base/hex.h"
#include "wire/http1_head.h"

#define MAX_CHUNK_DIGITS 8
#define MAX_CHUNK        INT32_MAX /* larger sizes overflow in some parsers */

enum http1_state {
	HEAD,
	JUDGE,
	BODY,
	CHUNK_LINE,
	CHUNK,
	CHUNK_END,
	TRAILER,
	ANNOUNCE,
	HELD,
	REFUSED,
	DENIED
};

/* A step returns this if no bytes may pass. */
#define STUCK ((size_t)0)

void http1_init(struct http1 *h)
{
	*h = (struct http1){ .state = HEAD };
}

static size_t deny_request(struct http1 *h, enum http1_deny why)
{
	h->why = why;
	h->state = DENIED;
	return STUCK;
}

/* Ends the section that was held back, and returns its length. */
static size_t leave_state(struct http1 *h, enum http1_state next)
{
	size_t len = h->scan;

	h->scan = 0;
	h->line = 0;
	h->state = (int)next;
	return len;
}

/* ---- lines ---------------------------------------------------------------- */

/* The rules for a section that is held back. */
struct section {
	size_t max;
	enum http1_deny too_long;
	enum http1_deny bad_byte;
};

static const struct section HEAD_SECTION = { HTTP1_MAX_HEAD, HTTP1_TOO_LONG, HTTP1_BAD_HEADER };
static const struct section TRAILER_SECTION = { HTTP1_MAX_TRAILER, HTTP1_TOO_LONG,
	                                        HTTP1_BAD_HEADER };
static const struct section CHUNK_SECTION = { HTTP1_MAX_CHUNK_LINE, HTTP1_BAD_CHUNK,
	                                      HTTP1_BAD_CHUNK };

/* Reads to the end of the current line. Returns true if *ret_line is the complete line without
 * CRLF; false if more bytes are needed or the line was denied. */
static bool next_line(struct http1 *h, const struct section *section, struct span data,
                      struct span *ret_line)
{
	while (h->scan < data.len && h->scan < section->max) {
		char c = data.s[h->scan];
		bool after_cr = h->scan > h->line && data.s[h->scan - 1] == '\r';

		if (after_cr != (c == '\n') || (c != '\r' && c != '\n' && !http1_is_text(c))) {
			(void)deny_request(h, section->bad_byte);
			return false;
		}
		h->scan++;
		if (c == '\n') {
			*ret_line = (struct span){ data.s + h->line, h->scan - h->line - 2 };
			h->line = h->scan;
			return true;
		}
	}
	if (h->scan >= section->max) {
		(void)deny_request(h, section->too_long);
	}
	return false;
}

/* ---- the head ------------------------------------------------------------- */

static void forget_request(struct http1 *h)
{
	h->host[0] = '\0';
	h->port = 0;
	h->upgrade = h->expect = h->has_host = h->has_length = h->chunked = h->old = false;
	h->length = 0;
	h->target = 0;
	h->target_len = 0;
}

/* Reads the method and sets h->target to the position after it. Returns true if the method is
 * complete and allowed. Reads byte by byte, because data that is not HTTP may never contain the end
 * of a line. */
static bool read_method(struct http1 *h, struct span data)
{
	while (h->target == 0 && h->scan < data.len) {
		char c = data.s[h->scan];
		if (c == ' ') {
			enum http1_deny why = http1_method((struct span){ data.s, h->scan });
			if (why != HTTP1_OK) {
				(void)deny_request(h, why);
				return false;
			}
			h->target = h->scan + 1;
		} else if (!http1_is_token(c) || h->scan >= HTTP1_MAX_METHOD) {
			(void)deny_request(h, HTTP1_NOT_HTTP);
			return false;
		}
		h->scan++;
	}
	return h->target > 0;
}

static size_t step_head(struct http1 *h, struct span data)
{
	struct span line;

	if (h->waiting || data.len == 0) {
		return STUCK;
	}
	if (h->scan == 0) {
		forget_request(h);
	}
	if (!read_method(h, data)) {
		return STUCK;
	}
	while (next_line(h, &HEAD_SECTION, data, &line)) {
		enum http1_deny why = HTTP1_OK;
		bool end = line.len == 0;

		if (line.s == data.s) {
			why = http1_request_line(h, line, h->target - 1);
			end = false;
		} else {
			why = end ? http1_head_end(h, (struct span){ data.s, h->scan })
			          : http1_header_line(h, line);
		}
		if (why != HTTP1_OK) {
			return deny_request(h, why);
		}
		if (end) {
			h->left = leave_state(h, JUDGE);
			return STUCK;
		}
	}
	return STUCK;
}

void http1_allow(struct http1 *h)
{
	if (h->state != JUDGE) {
		return;
	}
	h->left += h->expect ? 0 : h->length;
	h->waiting = h->upgrade || h->expect;
	h->later = true;
	h->state = h->expect ? ANNOUNCE : BODY;
}

/* ---- the body ------------------------------------------------------------- */

static size_t step_stuck(struct http1 *h, struct span data)
{
	(void)h;
	(void)data;
	return STUCK;
}

static size_t pass_left(struct http1 *h, struct span data, enum http1_state next)
{
	size_t n = h->left < data.len ? (size_t)h->left : data.len;

	h->left -= n;
	if (h->left == 0) {
		h->state = (int)next;
	}
	return n;
}

static size_t step_body(struct http1 *h, struct span data)
{
	return pass_left(h, data, h->chunked ? CHUNK_LINE : HEAD);
}

static size_t step_announce(struct http1 *h, struct span data)
{
	return pass_left(h, data, HELD);
}

static size_t step_chunk(struct http1 *h, struct span data)
{
	return pass_left(h, data, CHUNK_END);
}

/* Accepts hexadecimal digits, and after them nothing or ';' and ASCII. All other forms, such as
 * "0x5", "+5" and "5 ", are ambiguous. */
static bool parse_chunk_line(struct span line, uint64_t *ret_size)
{
	uint64_t size = 0;
	size_t i = 0;

	for (; i < line.len && hex_digit(line.s[i]) >= 0; i++) {
		size = size * 16 + (uint64_t)hex_digit(line.s[i]);
		if (i >= MAX_CHUNK_DIGITS) {
			return false;
		}
	}
	if (i == 0 || size > MAX_CHUNK || (i < line.len && line.s[i] != ';')) {
		return false;
	}
	for (; i < line.len; i++) {
		if ((unsigned char)line.s[i] >= 0x80) {
			return false;
		}
	}
	*ret_size = size;
	return true;
}

static size_t step_chunk_line(struct http1 *h, struct span data)
{
	struct span line;

	if (!next_line(h, &CHUNK_SECTION, data, &line)) {
		return STUCK;
	}
	if (!parse_chunk_line(line, &h->left)) {
		return deny_request(h, HTTP1_BAD_CHUNK);
	}
	return leave_state(h, h->left > 0 ? CHUNK : TRAILER);
}

static size_t step_chunk_end(struct http1 *h, struct span data)
{
	if (data.len > 0 && data.s[0] != '\r') {
		return deny_request(h, HTTP1_BAD_CHUNK);
	}
	if (data.len > 1 && data.s[1] != '\n') {
		return deny_request(h, HTTP1_BAD_CHUNK);
	}
	if (data.len < 2) {
		return STUCK;
	}
	h->state = CHUNK_LINE;
	return 2;
}

static size_t step_trailer(struct http1 *h, struct span data)
{
	struct span line;

	while (next_line(h, &TRAILER_SECTION, data, &line)) {
		if (line.len == 0) {
			return leave_state(h, HEAD);
		}
		enum http1_deny why = http1_trailer_line(line);
		if (why != HTTP1_OK) {
			return deny_request(h, why);
		}
	}
	return STUCK;
}

/* ---- the stream ----------------------------------------------------------- */

static size_t (*const STEPS[])(struct http1 *h, struct span data) = {
	[HEAD] = step_head,       [JUDGE] = step_stuck,
	[BODY] = step_body,       [CHUNK_LINE] = step_chunk_line,
	[CHUNK] = step_chunk,     [CHUNK_END] = step_chunk_end,
	[TRAILER] = step_trailer, [ANNOUNCE] = step_announce,
	[HELD] = step_stuck,      [REFUSED] = step_stuck,
	[DENIED] = step_stuck,
};

enum http1_verdict http1_feed(struct http1 *h, const char *data, size_t len, size_t *ret_pass)
{
	size_t pass = 0;

	if (h->raw) {
		*ret_pass = len;
		return HTTP1_PASS;
	}
	while (pass < len) {
		size_t n = STEPS[h->state](h, (struct span){ data + pass, len - pass });
		pass += n;
		/* Stop before the next head, so that the caller can still read the fields of this
		 * request. */
		if (n == STUCK || h->state == HEAD) {
			break;
		}
	}
	*ret_pass = pass;
	if (pass == 0 && h->state == DENIED) {
		return HTTP1_DENY;
	}
	return pass == 0 && h->state == JUDGE ? HTTP1_REQUEST : HTTP1_PASS;
}

bool http1_waiting(const struct http1 *h)
{
	return h->waiting;
}

void http1_switched(struct http1 *h)
{
	if (h->waiting && h->upgrade && h->state != DENIED) {
		h->raw = true;
		h->waiting = false;
	}
}

void http1_not_switched(struct http1 *h)
{
	if (h->waiting && h->expect) {
		h->state = REFUSED;
	}
	h->waiting = false;
}

void http1_continued(struct http1 *h)
{
	if (h->state == HELD && h->waiting) {
		h->left = h->length;
		h->state = h->chunked ? CHUNK_LINE : BODY;
		h->waiting = false;
	}
}

bool http1_refused(const struct http1 *h)
{
	return h->state == REFUSED;
}

/* ---- the server's answer -------------------------------------------------- */

#define STATUS_LEN 13 /* "HTTP/1.1 101 ", with the byte after the status */

static bool status_byte_fits(size_t at, char c)
{
	static const char FORM[] = "HTTP/1.1 000 ";

	if (FORM[at] == '0') {
		return c >= '0' && c <= '9';
	}
	return c == FORM[at] || (at == STATUS_LEN - 1 && c == '\r');
}

static void decide_status(struct http1_status *s, bool is_switch)
{
	s->decided = true;
	s->is_switch = is_switch;
}

/* Reads one byte of the status line. */
static void status_byte(struct http1_status *s, char c)
{
	if (!status_byte_fits(s->n, c)) {
		decide_status(s, false);
		return;
	}
	s->line[s->n++] = c;
	if (s->n < STATUS_LEN) {
		return;
	}
	s->go_on = s->expects && memcmp(s->line + 9, "100", 3) == 0;
	if (s->go_on || memcmp(s->line + 9, "101", 3) == 0 || s->line[9] != '1') {
		decide_status(s, !s->go_on && s->line[9] == '1');
		return;
	}
	s->skipping = true;
	s->ending = c == '\r' ? 1 : 0;
}

/* Reads one byte of the rest of an interim answer's head. */
static void interim_byte(struct http1_status *s, char c)
{
	static const char END[] = "\r\n\r\n";

	s->ending = c == END[s->ending] ? s->ending + 1 : (c == '\r' ? 1 : 0);
	if (s->ending == sizeof(END) - 1) {
		s->skipping = false;
		s->n = 0;
	}
}

bool http1_is_switch(struct http1_status *s, const char *data, size_t len)
{
	for (size_t i = 0; i < len && !s->decided; i++) {
		if (++s->total > HTTP1_MAX_HEAD) {
			decide_status(s, false); /* too many interim answers */
		} else if (s->skipping) {
			interim_byte(s, data[i]);
		} else {
			status_byte(s, data[i]);
		}
	}
	return s->is_switch;
}
