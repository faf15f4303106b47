/* test_http_request.c - the reader of HTTP requests: heads, fields and bodies, at each cap and
 * above it. */
#include "unit.h"
#include "wire/http_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

#define GOOD "POST /mcp HTTP/1.1\r\nHost: localhost:80\r\n"

/* Reads the head of `text` in one piece, and byte by byte with the bytes at another address each
 * time. Both must give the same result. */
static int judge(struct http_request *r, const char *text, size_t len, size_t *ret_len)
{
	struct http_request bytes = { 0 };
	size_t at_once = 0, by_bytes = 0;
	int verdict = HTTP_MORE;

	for (size_t n = 1; n <= len && verdict == HTTP_MORE; n++) {
		char *copy = malloc(n);
		assert_non_null(copy);
		memcpy(copy, text, n);
		verdict = http_request_head(&bytes, copy, n, &by_bytes);
		free(copy);
	}
	*r = (struct http_request){ 0 };
	assert_int_equal(http_request_head(r, text, len, &at_once), verdict);
	assert_int_equal(at_once, by_bytes);
	*ret_len = at_once;
	return verdict;
}

static int judge_text(const char *text)
{
	struct http_request r;
	size_t len;

	return judge(&r, text, strlen(text), &len);
}

static void reads_a_head(void **state)
{
	static const char text[] = "POST /mcp?x HTTP/1.1\r\n"
	                           "HOST: [::1]:8080\r\n"
	                           "Content-Length: 12\r\n"
	                           "Mcp-Method: \t tools/call \t\r\n"
	                           "Empty:\r\n"
	                           "\r\n"
	                           "body";
	struct http_request r;
	size_t len;

	assert_int_equal(judge(&r, text, sizeof text - 1, &len), HTTP_DONE);
	assert_int_equal(len, sizeof text - 1 - 4);
	assert_true(http_span_is(r.method, "POST"));
	assert_true(http_span_is(r.target, "/mcp?x"));
	assert_string_equal(r.lines.host, "::1");
	assert_int_equal(r.lines.port, 8080);
	assert_int_equal(r.lines.length, 12);
	assert_true(http_span_is(*http_request_field(&r, "mcp-method"), "tools/call"));
	assert_int_equal(http_request_field(&r, "EMPTY")->len, 0);
	assert_null(http_request_field(&r, "mcp-name"));
	assert_false(r.close);
	assert_false(r.expects);
}

static void judges_heads(void **state)
{
	static const struct {
		const char *text;
		int status;
	} rows[] = {
		{ GOOD "\r\n", HTTP_DONE },
		{ GOOD "Connection: keep-alive, Close\r\n\r\n", HTTP_DONE },
		{ GOOD "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 3\r\n\r\n",
		  HTTP_DONE },
		{ GOOD "Accept: a\r\nAccept: b\r\n\r\n", HTTP_DONE },
		{ GOOD, HTTP_MORE },
		{ "", HTTP_MORE },
		{ "\r\n", 400 },
		{ "\r\n\r\n", 400 },
		{ "POST\r\n\r\n", 400 },
		{ "P@ST / HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "POST /mcp HTTP/1.0\r\nHost: a\r\n\r\n", 505 },
		{ "POST /mcp HTTP/2.0\r\nHost: a\r\n\r\n", 505 },
		{ "POST /mcp\r\nHost: a\r\n\r\n", 505 },
		{ "POST  /mcp HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400 },
		{ "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
		{ "POST /mcp HTTP/1.1\r\n\r\n", 400 },
		{ "POST /mcp HTTP/1.1\nHost: a\n\n", 400 },
		{ GOOD "Host: localhost:80\r\n\r\n", 400 },
		{ GOOD "A : b\r\n\r\n", 400 },
		{ GOOD " folded\r\n\r\n", 400 },
		{ GOOD "no colon\r\n\r\n", 400 },
		{ GOOD "A: b\x01\r\n\r\n", 400 },
		{ GOOD "A: b\rc\r\n\r\n", 400 },
		{ GOOD "Upgrade\r\n\r\n", 400 },
		{ GOOD "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400 },
		{ GOOD "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
		{ GOOD "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400 },
		{ GOOD "Transfer-Encoding: gzip, chunked\r\n\r\n", 400 },
		{ GOOD "Content-Length: -1\r\n\r\n", 400 },
		{ GOOD "Content-Length: 99999999999999999999\r\n\r\n", 400 },
		{ GOOD "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400 },
		{ GOOD "Mcp-Session-Id: a\r\nMCP-SESSION-ID: a\r\n\r\n", 400 },
		{ GOOD "Expect: 100-continue\r\n\r\n", HTTP_DONE },
		{ GOOD "Expect: a miracle\r\n\r\n", 417 },
		{ "\x16\x03\x01\x02", 400 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (judge_text(rows[i].text) != rows[i].status) {
			fail_msg("%zu: %s", i, rows[i].text);
		}
	}
}

static void options_of_connections(void **state)
{
	struct http_request r;
	size_t len;
	const char *text = GOOD "Connection: keep-alive, Close\r\nExpect: 100-Continue\r\n\r\n";

	assert_int_equal(judge(&r, text, strlen(text), &len), HTTP_DONE);
	assert_true(r.close);
	assert_true(r.expects);
}

/* Returns a new head of exactly `size` bytes. */
static char *head_of(size_t size)
{
	char *text = malloc(size + 1);
	size_t at = strlen(GOOD "A: ");

	assert_non_null(text);
	memset(text, 'x', size);
	memcpy(text, GOOD "A: ", at);
	memcpy(text + size - 4, "\r\n\r\n", 5);
	return text;
}

static void the_head_is_capped(void **state)
{
	auto_free char *at_cap = head_of(HTTP_MAX_HEAD);
	auto_free char *past = head_of(HTTP_MAX_HEAD + 1);
	struct http_request r = { 0 };
	size_t len = 0;

	assert_int_equal(http_request_head(&r, at_cap, HTTP_MAX_HEAD, &len), HTTP_DONE);
	assert_int_equal(len, HTTP_MAX_HEAD);
	r = (struct http_request){ 0 };
	assert_int_equal(http_request_head(&r, past, HTTP_MAX_HEAD + 1, &len), 431);
}

static void the_fields_are_capped(void **state)
{
	char text[8192] = GOOD;

	for (int i = 1; i < HTTP_MAX_FIELDS; i++) {
		strncat(text, "A: b\r\n", sizeof text - strlen(text) - 1);
	}
	size_t len = strlen(text);

	strncat(text, "\r\n", sizeof text - len - 1);
	assert_int_equal(judge_text(text), HTTP_DONE);
	text[len] = '\0';
	strncat(text, "A: b\r\n\r\n", sizeof text - len - 1);
	assert_int_equal(judge_text(text), 431);
}

static void accepting(void **state)
{
	static const struct {
		const char *accept;
		bool json, sse;
	} rows[] = {
		{ "", true, true },
		{ "Accept: */*\r\n", true, true },
		{ "Accept: application/json\r\n", true, false },
		{ "Accept: application/json, text/event-stream\r\n", true, true },
		{ "accept: TEXT/*;q=0.3 , application/json;q=0\r\n", false, true },
		{ "Accept: text/event-stream\r\nAccept: application/json;q=0.000\r\n", false,
		  true },
		{ "Accept: application/json;q=0.01\r\n", true, false },
		{ "Accept: application/jsonx, x/text/event-stream\r\n", false, false },
		{ "Accept:\r\n", false, false },
		{ "Accept: ,;,\r\n", false, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_request r;
		char text[256];
		size_t len;

		(void)snprintf(text, sizeof text, GOOD "%s\r\n", rows[i].accept);
		assert_int_equal(judge(&r, text, strlen(text), &len), HTTP_DONE);
		if (http_request_accepts(&r, "application/json") != rows[i].json ||
		    http_request_accepts(&r, "text/event-stream") != rows[i].sse) {
			fail_msg("%s", rows[i].accept);
		}
	}
}

/* ---- bodies ------------------------------------------------------------------ */

#define MAX_BODY 10

/* Feeds a body in pieces of `step` bytes. `out` gets the body. */
static int feed(const char *head, const char *text, size_t step, char *out, size_t *ret_used)
{
	struct http_request r;
	struct http_body b;
	char line[256];
	size_t len, at = 0, used;
	struct span piece;

	(void)snprintf(line, sizeof line, GOOD "%s\r\n\r\n", head);
	assert_int_equal(judge(&r, line, strlen(line), &len), HTTP_DONE);
	int verdict = http_body_init(&b, &r, MAX_BODY);

	out[0] = '\0';
	while (verdict == HTTP_MORE && at < strlen(text)) {
		size_t n = strlen(text) - at < step ? strlen(text) - at : step;
		verdict = http_body_feed(&b, text + at, n, &used, &piece);
		assert_true(used <= n);
		if (verdict == HTTP_PIECE) {
			strncat(out, piece.s, piece.len);
			verdict = http_body_feed(&b, "", 0, &(size_t){ 0 }, &piece);
		}
		at += used;
	}
	*ret_used = at;
	return verdict;
}

static void reads_bodies(void **state)
{
	static const struct {
		const char *head, *bytes, *body;
		int verdict;
		size_t used;
	} rows[] = {
		{ "Content-Length: 5", "helloPOST", "hello", HTTP_DONE, 5 },
		{ "Content-Length: 10", "0123456789", "0123456789", HTTP_DONE, 10 },
		{ "Content-Length: 11", "0123456789a", "", 413, 0 },
		{ "Content-Length: 0", "POST", "", HTTP_DONE, 0 },
		{ "A: b", "POST", "", HTTP_DONE, 0 },
		{ "Content-Length: 5", "hell", "hell", HTTP_MORE, 4 },
#define CHUNKED "Transfer-Encoding: chunked"
		{ CHUNKED, "5\r\nhello\r\n0\r\n\r\nPOST", "hello", HTTP_DONE, 15 },
		{ CHUNKED, "0\r\n\r\n", "", HTTP_DONE, 5 },
		{ CHUNKED, "4\r\n0123\r\n00006\r\n456789\r\n0\r\n\r\n", "0123456789", HTTP_DONE,
		  29 },
		{ CHUNKED, "A\r\n0123456789\r\n0\r\n\r\n", "0123456789", HTTP_DONE, 20 },
		{ CHUNKED, "4\r\n0123\r\n7\r\n", "0123", 413, 11 },
		{ CHUNKED, "b\r\n", "", 413, 2 },
		{ CHUNKED, "FFFFFFFF\r\n", "", 413, 9 },
		{ CHUNKED, "100000000\r\n", "", 400, 9 },
		{ CHUNKED, "1;a=b\r\n", "", 400, 2 },
		{ CHUNKED, "-1\r\n", "", 400, 1 },
		{ CHUNKED, "\r\n", "", 400, 1 },
		{ CHUNKED, "1\n", "", 400, 2 },
		{ CHUNKED, "1\r\nab", "a", 400, 5 },
		{ CHUNKED, "1\r\na\r\n0\r\nA: b\r\n\r\n", "a", 400, 10 },
		{ CHUNKED, "5\r\nhel", "hel", HTTP_MORE, 6 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t step = 1; step < 40; step += 6) {
			char out[64];
			size_t used = 0;
			int verdict = feed(rows[i].head, rows[i].bytes, step, out, &used);
			if (verdict != rows[i].verdict || used != rows[i].used ||
			    strcmp(out, rows[i].body) != 0) {
				fail_msg("%zu, %zu at once: %d after %zu: '%s'", i, step, verdict,
				         used, out);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_head),           cmocka_unit_test(judges_heads),
		cmocka_unit_test(options_of_connections), cmocka_unit_test(the_head_is_capped),
		cmocka_unit_test(the_fields_are_capped),  cmocka_unit_test(accepting),
		cmocka_unit_test(reads_bodies),
	};
	return cmocka_run_group_tests_name("http_request", tests, NULL, NULL);
}
