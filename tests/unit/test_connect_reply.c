/* test_connect_reply.c - answers to CONNECT, in one piece and in pieces of each size. */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "base/own.h"
#include "wire/connect_reply.h"

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
	const char *head;
	enum connect_verdict verdict;
	unsigned status; /* for CONNECT_DONE */
	const char *rest;
} CASES[] = {
	{ OK "\r\n", CONNECT_DONE, 200, "" },
	{ OK "\r\n", CONNECT_DONE, 200, "220 ready\r\n\r\n" },
	{ OK "\r\n", CONNECT_DONE, 200, "\n\n" },
	{ OK "\r\n", CONNECT_DONE, 200, "HTTP/1.1 403 No\r\n\r\n" },
	{ "HTTP/1.0 200 Connection established\r\n\r\n", CONNECT_DONE, 200, "x" },
	{ "HTTP/1.1 200\r\n\r\n", CONNECT_DONE, 200, "x" },
	{ "HTTP/1.1 200 \r\n\r\n", CONNECT_DONE, 200, "x" },
	{ "HTTP/1.1 200 OK\n\n", CONNECT_DONE, 200, "x" },
	{ "HTTP/1.1 204 Fine\r\nVia: a\tb\r\nX: \xc3\xa4\r\n\r\n", CONNECT_DONE, 204, "x" },
	/* an answer to CONNECT has no body */
	{ OK "Content-Length: 5\r\n\r\n", CONNECT_DONE, 200, "hello" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n", CONNECT_DONE, 200, "5\r\n" },
	{ "HTTP/1.1 100 Wait\r\n\r\n" OK "\r\n", CONNECT_DONE, 200, "x" },
	{ "HTTP/1.1 102 A\r\nB: c\r\n\r\nHTTP/1.1 103\r\n\r\n" OK "\r\n", CONNECT_DONE, 200, "x" },
	{ "HTTP/1.1 101 Switch\r\n\r\n", CONNECT_DONE, 101, "x" },
	{ "HTTP/1.1 403 No\r\n\r\n", CONNECT_DONE, 403, "why not" },
	{ "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\n\r\n", CONNECT_DONE, 407, "" },
	{ "HTTP/1.1 599 \r\n\r\n", CONNECT_DONE, 599, "" },
	{ "HTTP/1.1 302 There\r\nLocation: http://evil.test/\r\n\r\n", CONNECT_DONE, 302, "" },
	/* not complete */
	{ "", CONNECT_MORE, 0, "" },
	{ "HTTP/1.1 2", CONNECT_MORE, 0, "" },
	{ OK, CONNECT_MORE, 0, "" },
	{ OK "\r", CONNECT_MORE, 0, "" },
	{ OK "Via: a\r\n", CONNECT_MORE, 0, "" },
	{ "HTTP/1.1 100 Wait\r\n\r\n", CONNECT_MORE, 0, "" },
	/* not an answer of HTTP/1 */
	{ "\n", CONNECT_BROKEN, 0, "" },
	{ "\r\n", CONNECT_BROKEN, 0, "" },
	{ "S", CONNECT_BROKEN, 0, "SH-2.0-OpenSSH" },
	{ "h", CONNECT_BROKEN, 0, "ttp/1.1 200 OK\r\n\r\n" },
	{ "HTTP/2", CONNECT_BROKEN, 0, " 200\r\n\r\n" },
	{ "HTTP/1.2", CONNECT_BROKEN, 0, " 200 OK\r\n\r\n" },
	{ "HTTP/1.1  ", CONNECT_BROKEN, 0, "200 OK\r\n\r\n" },
	{ "HTTP/1.1 0", CONNECT_BROKEN, 0, "99 No\r\n\r\n" },
	{ "HTTP/1.1 6", CONNECT_BROKEN, 0, "00 No\r\n\r\n" },
	{ "HTTP/1.1 2x", CONNECT_BROKEN, 0, "0 OK\r\n\r\n" },
	{ "HTTP/1.1 2000", CONNECT_BROKEN, 0, " OK\r\n\r\n" },
	{ "HTTP/1.1 200\t", CONNECT_BROKEN, 0, "OK\r\n\r\n" },
	{ "HTTP/1.1 20\r\n", CONNECT_BROKEN, 0, "\r\n" },
	{ "HTTP/1.1 200 OK\rX", CONNECT_BROKEN, 0, "\r\n\r\n" },
	{ OK "\r\r", CONNECT_BROKEN, 0, "\n" },
	{ OK "Via: \x01", CONNECT_BROKEN, 0, "\r\n\r\n" },
	{ OK "Via: \x7f", CONNECT_BROKEN, 0, "\r\n\r\n" },
	{ "HTTP/1.1 100 Wait\r\n\r\n\r\n", CONNECT_BROKEN, 0, OK "\r\n" },
};

static void check(size_t i, size_t cut)
{
	char text[512];
	struct connect_reply r;
	size_t used = 99;
	size_t head = strlen(CASES[i].head);

	snprintf(text, sizeof(text), "%s%s", CASES[i].head, CASES[i].rest);
	size_t len = strlen(text);
	connect_reply_init(&r);
	enum connect_verdict v = CONNECT_MORE;
	size_t at = 0;
	while (v == CONNECT_MORE && at < len) {
		size_t n = cut < len - at ? cut : len - at;
		v = connect_reply_feed(&r, text + at, n, &used);
		at += used;
	}
	if (v != CASES[i].verdict || at != head ||
	    (v == CONNECT_DONE && r.status != CASES[i].status)) {
		fail_msg("%s in %zu: %d, %u, %zu of %zu", CASES[i].head, cut, v, r.status, at,
		         head);
	}
	if (v != CONNECT_MORE) { /* bytes after the final verdict are refused */
		assert_int_equal(connect_reply_feed(&r, OK "\r\n", 19, &used), CONNECT_BROKEN);
		assert_int_equal(used, 0);
	}
}

static void cases(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		for (size_t cut = 1; cut < 70; cut++) {
			check(i, cut);
		}
	}
	struct connect_reply r;
	size_t used = 0;
	connect_reply_init(&r);
	assert_int_equal(connect_reply_feed(&r, OK "A: \0b\r\n\r\n", 26, &used), CONNECT_BROKEN);
}

static void opens(void **state)
{
	for (unsigned status = 100; status < 600; status++) {
		struct connect_reply r = { .status = status };
		assert_int_equal(connect_reply_opens(&r), status / 100 == 2);
	}
}

/* An answer head of exactly CONNECT_REPLY_MAX bytes is accepted; one byte more is refused. */
static void cap(void **state)
{
	static char text[CONNECT_REPLY_MAX + 8];
	static const char head[] = OK "X: ";

	for (size_t more = 0; more < 2; more++) {
		size_t len = CONNECT_REPLY_MAX + more;
		struct connect_reply r;
		size_t used = 0;
		memset(text, 'x', sizeof(text));
		memcpy(text, head, sizeof(head) - 1);
		memcpy(text + len - 4, "\r\n\r\n", 4);
		connect_reply_init(&r);
		assert_int_equal(connect_reply_feed(&r, text, len, &used),
		                 more == 0 ? CONNECT_DONE : CONNECT_BROKEN);
	}
	/* The heads of interim answers (1xx) count for the cap, too. */
	struct connect_reply r;
	size_t used = 0;
	size_t n = 0;
	connect_reply_init(&r);
	while (connect_reply_feed(&r, "HTTP/1.1 100\r\n\r\n", 16, &used) == CONNECT_MORE) {
		n++;
	}
	assert_int_equal(n, CONNECT_REPLY_MAX / 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases),
		cmocka_unit_test(opens),
		cmocka_unit_test(cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
