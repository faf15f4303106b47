/* http1_head.c - judges each line of a head.
 *
 * The rules are stricter than the standard wherever servers are known to read the same bytes
 * differently: lengths and codings have only one valid spelling, hosts are plain text, and bytes
 * that some parsers treat as a line end or a blank are refused. */
#include "wire/http1_head.h"

#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/own.h"

#define DEFAULT_PORT   80
#define MAX_NAME       253
#define MAX_LABEL      63
#define MAX_V6         45
#define MAX_PORT_CHARS 5
#define LATIN1_NEL     '\x85' /* a line end for parsers that read text instead of bytes */

/* ---- bytes and spans ------------------------------------------------------ */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower_char(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_alnum(char c)
{
	return is_digit(c) || (lower_char(c) >= 'a' && lower_char(c) <= 'z');
}

bool http1_is_token(char c)
{
	return is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool http1_is_text(char c)
{
	unsigned char u = (unsigned char)c;

	return c == '\t' || (u >= 0x20 && u != 0x7f && c != LATIN1_NEL);
}

static bool is_visible(char c)
{
	return c > 0x20 && c < 0x7f;
}

static struct span span_from(struct span s, size_t at)
{
	return (struct span){ s.s + at, s.len - at };
}

static struct span span_upto(struct span s, size_t len)
{
	return (struct span){ s.s, len };
}

/* Returns the position of the first `c`, or the length if there is none. */
static size_t span_find(struct span s, char c)
{
	const char *at = s.len > 0 ? memchr(s.s, c, s.len) : NULL;

	return at != NULL ? (size_t)(at - s.s) : s.len;
}

static bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.s, text, s.len) == 0;
}

static bool is_nocase(struct span s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.s, text, s.len) == 0;
}

static bool begins_nocase(struct span s, const char *text)
{
	return s.len >= strlen(text) && strncasecmp(s.s, text, strlen(text)) == 0;
}

static bool span_all(struct span s, bool (*good)(char))
{
	return !ARRAY_HAS(e, s.s, s.len, !good(*e));
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span span_trim(struct span s)
{
	while (s.len > 0 && is_blank(s.s[0])) {
		s = span_from(s, 1);
	}
	while (s.len > 0 && is_blank(s.s[s.len - 1])) {
		s.len--;
	}
	return s;
}

/* Removes the next element from a comma-separated list. Returns false at the end of the list. */
static bool next_element(struct span *list, struct span *ret)
{
	if (list->s == NULL) {
		return false;
	}
	size_t comma = span_find(*list, ',');
	*ret = span_trim(span_upto(*list, comma));
	*list = comma < list->len ? span_from(*list, comma + 1) : (struct span){ NULL, 0 };
	return true;
}

/* ---- host[:port] ---------------------------------------------------------- */

struct authority {
	struct span host; /* as sent, but without brackets and final dot */
	uint16_t port;    /* 0: none */
};

static bool is_host_char(char c)
{
	return is_alnum(c) || c == '-' || c == '_';
}

static bool is_v6_char(char c)
{
	return is_digit(c) || (lower_char(c) >= 'a' && lower_char(c) <= 'f') || c == ':' ||
	       c == '.';
}

/* Accepts labels of letters, digits, '-' and '_', and at most one final dot. */
static bool parse_name(struct span name, struct span *ret)
{
	if (name.len > 0 && name.s[name.len - 1] == '.') {
		name.len--;
	}
	if (name.len == 0 || name.len > MAX_NAME) {
		return false;
	}
	for (size_t at = 0; at <= name.len;) {
		struct span label =
		        span_upto(span_from(name, at), span_find(span_from(name, at), '.'));
		if (label.len == 0 || label.len > MAX_LABEL || !span_all(label, is_host_char)) {
			return false;
		}
		at += label.len + 1;
	}
	*ret = name;
	return true;
}

/* Accepts only one spelling of each number: parsers disagree about "080" and an empty port. */
static bool parse_port(struct span text, uint16_t *ret)
{
	unsigned port = 0;

	if (text.len == 0 || text.len > MAX_PORT_CHARS || text.s[0] == '0' ||
	    !span_all(text, is_digit)) {
		return false;
	}
	for (size_t i = 0; i < text.len; i++) {
		port = port * 10 + (unsigned)(text.s[i] - '0');
	}
	if (port > UINT16_MAX) {
		return false;
	}
	*ret = (uint16_t)port;
	return true;
}

static bool parse_v6(struct span text, struct span *ret)
{
	struct span v6 = span_from(text, 1);

	v6.len = span_find(v6, ']');
	if (v6.len < 2 || v6.len > MAX_V6 || !span_all(v6, is_v6_char) ||
	    span_find(v6, ':') == v6.len) {
		return false;
	}
	*ret = v6;
	return true;
}

static bool parse_authority(struct span text, struct authority *ret)
{
	struct authority a = { 0 };
	bool v6 = text.len > 0 && text.s[0] == '[';
	size_t end = v6 ? span_find(text, ']') + 1 : span_find(text, ':');

	if (end > text.len) {
		return false; /* no ']' */
	}
	if (v6 ? !parse_v6(text, &a.host) : !parse_name(span_upto(text, end), &a.host)) {
		return false;
	}
	if (end < text.len &&
	    (text.s[end] != ':' || !parse_port(span_from(text, end + 1), &a.port))) {
		return false;
	}
	*ret = a;
	return true;
}

/* ---- header lines --------------------------------------------------------- */

static enum http1_deny on_host(struct http1 *h, struct span value)
{
	struct authority a = { 0 };

	if (h->has_host) {
		return HTTP1_TWO_HOSTS;
	}
	value = span_trim(value);
	if (value.len == 0) {
		return HTTP1_NO_HOST;
	}
	if (!parse_authority(value, &a)) {
		return HTTP1_BAD_HOST;
	}
	for (size_t i = 0; i < a.host.len; i++) {
		h->host[i] = lower_char(a.host.s[i]);
	}
	h->host[a.host.len] = '\0';
	h->port = a.port;
	h->has_host = true;
	return HTTP1_OK;
}

/* Returns the value of Content-Length or Transfer-Encoding. One blank before the value is accepted,
 * but none after it. */
static struct span framing_value(struct span value)
{
	return value.len > 0 && value.s[0] == ' ' ? span_from(value, 1) : value;
}

static enum http1_deny on_content_length(struct http1 *h, struct span value)
{
	uint64_t length = 0;

	value = framing_value(value);
	if (h->has_length || h->chunked || value.len == 0 || !span_all(value, is_digit) ||
	    (value.s[0] == '0' && value.len > 1)) {
		return HTTP1_SMUGGLING;
	}
	for (size_t i = 0; i < value.len; i++) {
		uint64_t digit = (uint64_t)(value.s[i] - '0');
		if (length > ((uint64_t)INT64_MAX - digit) / 10) {
			return HTTP1_SMUGGLING;
		}
		length = length * 10 + digit;
	}
	h->length = length;
	h->has_length = true;
	return HTTP1_OK;
}

static enum http1_deny on_transfer_encoding(struct http1 *h, struct span value)
{
	if (h->has_length || h->chunked || h->old || !span_is(framing_value(value), "chunked")) {
		return HTTP1_SMUGGLING;
	}
	h->chunked = true;
	return HTTP1_OK;
}

static bool is_protocol_char(char c)
{
	return http1_is_token(c) || c == '/';
}

static enum http1_deny on_upgrade(struct http1 *h, struct span value)
{
	struct span protocol;

	while (next_element(&value, &protocol)) {
		if (protocol.len == 0 || !span_all(protocol, is_protocol_char)) {
			return HTTP1_BAD_HEADER;
		}
		/* "h2", "h2c", "h2c-14", and "HTTP/2.0" of the drafts */
		if (begins_nocase(protocol, "h2") || begins_nocase(protocol, "http")) {
			return HTTP1_H2;
		}
	}
	h->upgrade = true;
	return HTTP1_OK;
}

static enum http1_deny on_http2_settings(struct http1 *h, struct span value)
{
	(void)h;
	(void)value;
	return HTTP1_H2;
}

/* Other expectations are denied. A server may give a final answer to such a request and then read
 * on. It is unknown whether it reads the next bytes as the body or as another request. */
static enum http1_deny on_expect(struct http1 *h, struct span value)
{
	if (h->expect || h->old || !is_nocase(span_trim(value), "100-continue")) {
		return HTTP1_EXPECT;
	}
	h->expect = true;
	return HTTP1_OK;
}

/* The field Connection must not name a field of FIELDS: a proxy removes the fields that Connection
 * names, and then reads the message without them. */
static enum http1_deny on_connection(struct http1 *h, struct span value)
{
	struct span option;

	(void)h;
	while (next_element(&value, &option)) {
		if (is_nocase(option, "host") || is_nocase(option, "content-length") ||
		    is_nocase(option, "transfer-encoding") || is_nocase(option, "expect")) {
			return HTTP1_SMUGGLING;
		}
	}
	return HTTP1_OK;
}

/* The fields that decide where a message ends, which host receives it, or what follows it. */
static const struct head_field {
	const char *name;
	enum http1_deny (*read)(struct http1 *h, struct span value);
} FIELDS[] = {
	{ "host", on_host },
	{ "content-length", on_content_length },
	{ "transfer-encoding", on_transfer_encoding },
	{ "connection", on_connection },
	{ "proxy-connection", on_connection },
	{ "upgrade", on_upgrade },
	{ "http2-settings", on_http2_settings },
	{ "expect", on_expect },
};

/* Compares names without regard to case. '_' counts as '-', because gateways that turn names into
 * variables cannot distinguish them. */
static bool is_field(struct span name, const char *field)
{
	if (name.len != strlen(field)) {
		return false;
	}
	for (size_t i = 0; i < name.len; i++) {
		char c = name.s[i] == '_' ? '-' : lower_char(name.s[i]);
		if (c != field[i]) {
			return false;
		}
	}
	return true;
}

/* Splits a line at the colon. If the field is in FIELDS, *ret_field is its row and *ret_value is
 * its value. Otherwise *ret_field is NULL, and *ret_value is not set. */
static enum http1_deny split_line(struct span line, const struct head_field **ret_field,
                                  struct span *ret_value)
{
	struct span name = span_upto(line, span_find(line, ':'));

	*ret_field = NULL;
	if (is_blank(line.s[0])) {
		return HTTP1_FOLDED;
	}
	if (name.len == 0 || name.len == line.len || !span_all(name, http1_is_token)) {
		return HTTP1_BAD_HEADER;
	}
	for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
		if (is_field(name, FIELDS[i].name)) {
			*ret_field = &FIELDS[i];
			*ret_value = span_from(line, name.len + 1);
			return span_find(name, '_') < name.len ? HTTP1_SMUGGLING : HTTP1_OK;
		}
	}
	return HTTP1_OK;
}

enum http1_deny http1_header_line(struct http1 *h, struct span line)
{
	const struct head_field *field = NULL;
	struct span value = { NULL, 0 };
	enum http1_deny why = split_line(line, &field, &value);

	return why != HTTP1_OK || field == NULL ? why : field->read(h, value);
}

enum http1_deny http1_trailer_line(struct span line)
{
	const struct head_field *field = NULL;
	struct span value = { NULL, 0 };
	enum http1_deny why = split_line(line, &field, &value);

	return why == HTTP1_OK && field != NULL ? HTTP1_SMUGGLING : why;
}

/* ---- the request line and the end of the head ----------------------------- */

enum http1_deny http1_method(struct span method)
{
	if (method.len == 0 || method.len > HTTP1_MAX_METHOD) {
		return HTTP1_NOT_HTTP;
	}
	if (is_nocase(method, "CONNECT")) {
		return HTTP1_CONNECT;
	}
	return is_nocase(method, "PRI") ? HTTP1_H2 : HTTP1_OK;
}

static enum http1_deny judge_version(struct http1 *h, struct span version)
{
	if (span_is(version, "HTTP/1.1") || span_is(version, "HTTP/1.0")) {
		h->old = version.s[version.len - 1] == '0';
		return HTTP1_OK;
	}
	if (version.len == 0) {
		return HTTP1_VERSION; /* "GET /" alone is HTTP/0.9 */
	}
	return begins_nocase(version, "HTTP/") && span_all(version, is_visible) ? HTTP1_VERSION
	                                                                        : HTTP1_NOT_HTTP;
}

enum http1_deny http1_request_line(struct http1 *h, struct span line, size_t method_len)
{
	struct span method = span_upto(line, method_len);
	struct span rest = span_from(line, method_len + 1);
	struct span target = span_upto(rest, span_find(rest, ' '));
	bool known = target.len > 0 && (target.s[0] == '/' || begins_nocase(target, "http://") ||
	                                (span_is(target, "*") && span_is(method, "OPTIONS")));

	if (!known || !span_all(target, is_visible)) {
		return HTTP1_NOT_HTTP;
	}
	h->target = method_len + 1;
	h->target_len = target.len;
	return judge_version(h, span_from(rest, target.len < rest.len ? target.len + 1 : rest.len));
}

/* An absolute URI must have exactly the host of the Host line. After the authority must come '/' or
 * the end of the URI, because parsers disagree about '?', '#', '\' and '@' there. */
static enum http1_deny judge_absolute(const struct http1 *h, struct span target)
{
	struct span text = span_from(target, strlen("http://"));
	struct authority a = { 0 };
	unsigned port = h->port != 0 ? h->port : DEFAULT_PORT;

	if (!parse_authority(span_upto(text, span_find(text, '/')), &a)) {
		return HTTP1_BAD_HOST;
	}
	return is_nocase(a.host, h->host) && (a.port != 0 ? a.port : DEFAULT_PORT) == port
	               ? HTTP1_OK
	               : HTTP1_TWO_HOSTS;
}

enum http1_deny http1_head_end(struct http1 *h, struct span head)
{
	struct span target = span_upto(span_from(head, h->target), h->target_len);

	if (!h->has_host) {
		return HTTP1_NO_HOST;
	}
	if (h->upgrade && h->later) {
		return HTTP1_LATE_UPGRADE;
	}
	if (h->upgrade && (h->chunked || h->length > 0)) {
		return HTTP1_SMUGGLING; /* parsers disagree whether the new protocol begins before
		                           or after the body */
	}
	h->expect = h->expect && (h->chunked ||
	                          h->length > 0); /* without a body the expectation has no effect */
	if (h->expect && h->later) {
		return HTTP1_LATE_EXPECT;
	}
	return begins_nocase(target, "http://") ? judge_absolute(h, target) : HTTP1_OK;
}
