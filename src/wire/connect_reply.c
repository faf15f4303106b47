/* connect_reply.c - parses a proxy's answer to CONNECT.
 *
 * The parser works byte by byte, because a head can arrive in pieces of any size and no byte after
 * it may be consumed. A line ends with LF or CRLF; a CR elsewhere is invalid. */
#include "wire/connect_reply.h"

/* The beginning of a status line. The first 'x' is 0 or 1, the minor version; the others are the
 * digits of the status. */
static const char STATUS_LINE[] = "HTTP/1.x xxx";
#define STATUS_AT  9
#define STATUS_LEN (sizeof(STATUS_LINE) - 1)

void connect_reply_init(struct connect_reply *r)
{
	*r = (struct connect_reply){ .first = true };
}

bool connect_reply_opens(const struct connect_reply *r)
{
	return r->status >= 200 && r->status <= 299;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Checks one byte of a status line. */
static bool status_byte(struct connect_reply *r, char c)
{
	if (r->at >= STATUS_LEN) {
		return r->at > STATUS_LEN || c == ' '; /* the reason phrase may be anything */
	}
	if (STATUS_LINE[r->at] != 'x') {
		return c == STATUS_LINE[r->at];
	}
	if (r->at < STATUS_AT) {
		return c == '0' || c == '1';
	}
	if (!is_digit(c) || (r->at == STATUS_AT && (c < '1' || c > '5'))) {
		return false;
	}
	r->status = r->status * 10 + (unsigned)(c - '0');
	return true;
}

/* A head may not contain control bytes other than tabs. */
static bool is_text(char c)
{
	return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

static enum connect_verdict line_end(struct connect_reply *r)
{
	bool empty = r->at == 0;

	if (r->first && r->at < STATUS_LEN) {
		return CONNECT_BROKEN;
	}
	r->first = r->cr = false;
	r->at = 0;
	if (!empty) {
		return CONNECT_MORE;
	}
	if (r->status < 200 && r->status != 101) {
		r->status = 0; /* an interim answer; the final one follows */
		r->first = true;
		return CONNECT_MORE;
	}
	return CONNECT_DONE;
}

static enum connect_verdict take_byte(struct connect_reply *r, char c)
{
	if (++r->len > CONNECT_REPLY_MAX || (r->cr && c != '\n')) {
		return CONNECT_BROKEN;
	}
	if (c == '\n') {
		return line_end(r);
	}
	if (c == '\r') {
		r->cr = true;
		return CONNECT_MORE;
	}
	if (!is_text(c) || (r->first && !status_byte(r, c))) {
		return CONNECT_BROKEN;
	}
	r->at++;
	return CONNECT_MORE;
}

enum connect_verdict connect_reply_feed(struct connect_reply *r, const char *data, size_t len,
                                        size_t *ret_used)
{
	enum connect_verdict v = r->over ? CONNECT_BROKEN : CONNECT_MORE;
	size_t used = 0;

	while (v == CONNECT_MORE && used < len) {
		v = take_byte(r, data[used++]);
	}
	r->over = v != CONNECT_MORE;
	*ret_used = used;
	return v;
}
