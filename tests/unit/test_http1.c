/* test_http1.c - the HTTP/1 checker. Every case has the same result in one piece, byte by byte and
 * divided at any place. Each denial has a control that passes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/own.h"
#include "http1_cases.h"

/* ---- how a case is played ------------------------------------------------- */

struct text {
	char s[1024];
	size_t n;
};

static void add_host(void *ctx, size_t at, const struct http1 *h)
{
	struct text *t = ctx;
	char port[8] = "";

	(void)at;
	if (h->port != 0) {
		(void)snprintf(port, sizeof(port), ":%u", (unsigned)h->port);
	}
	int n = snprintf(t->s + t->n, sizeof(t->s) - t->n, "%s%s%s", t->n > 0 ? " " : "", h->host,
	                 port);
	assert_true(n > 0 && (size_t)n < sizeof(t->s) - t->n);
	t->n += (size_t)n;
}

static void play(const struct test_case *c, size_t len, struct cut cut)
{
	struct text hosts = { "", 0 };
	struct drive d = { .on_request = add_host, .ctx = &hosts };
	size_t passed = c->passed == ALL ? len : c->passed;

	drive_run(&d, c->answer, c->bytes, len, cut);
	if (d.passed != passed || d.why != c->why || d.denied != (c->why != HTTP1_OK) ||
	    strcmp(hosts.s, c->hosts) != 0) {
		fail_msg("'%s', first %zu then %zu: passed %zu of %zu (not %zu), denied %d (not "
		         "%d), [%s]",
		         c->name, cut.first, cut.step, d.passed, len, passed, (int)d.why,
		         (int)c->why, hosts.s);
	}
}

static void play_all(const struct test_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = cases[i].len > 0 ? cases[i].len : strlen(cases[i].bytes);
		play(&cases[i], len, (struct cut){ len, len });
		play(&cases[i], len, (struct cut){ 1, 1 });
		play(&cases[i], len, (struct cut){ 3, 7 });
		for (size_t k = 1; k < len; k++) {
			play(&cases[i], len, (struct cut){ k, len });
		}
	}
}

#define TABLE_TEST(function, table)                                                                \
	static void function(void **state)                                                         \
	{                                                                                          \
		(void)state;                                                                       \
		play_all(table, ARRAY_LEN(table));                                                 \
	}

TABLE_TEST(test_request_lines, REQUEST_LINES)
TABLE_TEST(test_absolute_form, ABSOLUTE)
TABLE_TEST(test_hosts, HOSTS)
TABLE_TEST(test_headers, HEADERS)
TABLE_TEST(test_framing, FRAMING)
TABLE_TEST(test_chunks, CHUNK_CASES)
TABLE_TEST(test_pipelines, PIPELINES)
TABLE_TEST(test_upgrades, UPGRADES)
TABLE_TEST(test_expectations, EXPECTATIONS)

/* ---- bounds --------------------------------------------------------------- */

/* Feeds a request of `total` bytes: `begin`, filling bytes and `end`. It is fed in one piece and
 * byte by byte. */
static void play_filled(const char *begin, const char *end, size_t total, struct drive *ret)
{
	auto_buf b = BUF(1 << 20);
	struct drive d = { 0 };

	buf_adds(&b, begin);
	while (b.len + strlen(end) < total) {
		buf_addc(&b, 'x');
	}
	buf_adds(&b, end);
	assert_int_equal(b.len, total);
	drive_run(&d, ANSWER_NEVER, b.data, b.len, (struct cut){ total, total });
	*ret = (struct drive){ 0 };
	drive_run(ret, ANSWER_NEVER, b.data, b.len, (struct cut){ 1, 1 });
	assert_int_equal(d.passed, ret->passed);
	assert_int_equal(d.why, ret->why);
}

static void check_cap(const char *begin, const char *end, size_t before, size_t cap,
                      enum http1_deny why)
{
	struct drive d;

	play_filled(begin, end, before + cap, &d);
	assert_false(d.denied);
	assert_int_equal(d.passed, before + cap);
	play_filled(begin, end, before + cap + 1, &d);
	assert_int_equal(d.why, why);
	assert_int_equal(d.passed, before);
}

static void test_caps(void **state)
{
	check_cap(GET HOST "X: ", END, 0, HTTP1_MAX_HEAD, HTTP1_TOO_LONG);
	check_cap("GET /", " HTTP/1.1" CRLF HOST CRLF, 0, HTTP1_MAX_HEAD, HTTP1_TOO_LONG);
	check_cap(CHUNKED "0;", CRLF, strlen(CHUNKED), HTTP1_MAX_CHUNK_LINE, HTTP1_BAD_CHUNK);
	check_cap(CHUNKED "0" CRLF "X: ", END, strlen(CHUNKED "0" CRLF), HTTP1_MAX_TRAILER,
	          HTTP1_TOO_LONG);
}

static void test_full_buffer_is_decided(void **state)
{
	struct drive d;

	/* If a head fills the relay's buffer, the checker must decide now, because the relay has no
	 * room for another byte. */
	play_filled(GET HOST "X: ", "", HTTP1_MAX_HEAD, &d);
	assert_int_equal(d.why, HTTP1_TOO_LONG);
	play_filled(GET HOST "X: ", "", HTTP1_MAX_HEAD - 1, &d);
	assert_false(d.denied);
}

static void test_many_requests(void **state)
{
	enum { COUNT = 10000 };
	static const size_t STEPS[] = { 1, 13, 4096, 1 << 20 };
	auto_buf b = BUF(1 << 22);

	for (int i = 0; i < COUNT; i++) {
		buf_addf(&b, GET "Host: h%d.test" END, i);
	}
	assert_false(b.failed);
	for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
		struct drive d = { 0 };
		drive_run(&d, ANSWER_NEVER, b.data, b.len, (struct cut){ STEPS[i], STEPS[i] });
		assert_int_equal(d.requests, COUNT);
		assert_int_equal(d.passed, b.len);
	}
}

/* ---- the calls ------------------------------------------------------------ */

static void test_nothing_goes_before_allow(void **state)
{
	static const char BYTES[] = GET HOST CRLF;
	struct http1 h;
	size_t pass = 1;

	http1_init(&h);
	http1_allow(&h); /* must have no effect: there is no request yet */
	assert_int_equal(http1_feed(&h, NULL, 0, &pass), HTTP1_PASS);
	assert_int_equal(pass, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(http1_feed(&h, BYTES, strlen(BYTES), &pass), HTTP1_REQUEST);
		assert_int_equal(pass, 0);
		assert_string_equal(h.host, "a.test");
	}
	http1_switched(&h); /* the request did not ask for an upgrade */
	assert_int_equal(http1_feed(&h, BYTES, strlen(BYTES), &pass), HTTP1_REQUEST);
	http1_allow(&h);
	assert_int_equal(http1_feed(&h, BYTES, strlen(BYTES), &pass), HTTP1_PASS);
	assert_int_equal(pass, strlen(BYTES));
	assert_string_equal(h.host, "a.test"); /* the host stays stored for the record */
}

static void test_upgrade_counts_once_allowed(void **state)
{
	struct http1 h;
	size_t pass = 1;

	http1_init(&h);
	assert_int_equal(http1_feed(&h, WS, strlen(WS), &pass), HTTP1_REQUEST);
	assert_true(h.upgrade);
	assert_false(http1_waiting(&h));
	http1_switched(&h); /* the answer comes before the request was sent */
	assert_int_equal(http1_feed(&h, WS, strlen(WS), &pass), HTTP1_REQUEST);
	http1_allow(&h);
	assert_true(http1_waiting(&h));
	http1_switched(&h);
	assert_false(http1_waiting(&h));
	assert_int_equal(http1_feed(&h, WS WS, strlen(WS WS), &pass), HTTP1_PASS);
	assert_int_equal(pass, strlen(WS WS));
}

/* After a request with "Expect", only the status 100 lets the body pass, and only if the request
 * was sent before. A status 101 (a switch of protocols) does not let it pass. */
static void test_only_100_continues(void **state)
{
	static const char BYTES[] = ANNOUNCED "hello";
	const size_t head = strlen(ANNOUNCED);
	struct http1_status s = { .expects = true };
	struct http1 h;
	size_t pass = 1;

	http1_init(&h);
	assert_int_equal(http1_feed(&h, BYTES, strlen(BYTES), &pass), HTTP1_REQUEST);
	http1_continued(&h);
	http1_allow(&h);
	http1_continued(&h);
	assert_int_equal(http1_feed(&h, BYTES, strlen(BYTES), &pass), HTTP1_PASS);
	assert_int_equal(pass, head);
	http1_switched(&h);
	assert_int_equal(http1_feed(&h, BYTES + head, 5, &pass), HTTP1_PASS);
	assert_int_equal(pass, 0);
	assert_true(http1_waiting(&h) && !http1_refused(&h));
	static const char EARLY[] = "HTTP/1.1 103 Early Hints" END "HTTP/1.1 100 Continue" CRLF;
	assert_false(http1_is_switch(&s, EARLY, strlen(EARLY)));
	assert_true(s.decided && s.go_on);
	http1_continued(&h);
	assert_int_equal(http1_feed(&h, BYTES + head, 5, &pass), HTTP1_PASS);
	assert_int_equal(pass, 5);

	static const char *const FINAL[] = { "HTTP/1.1 417 no" END, "HTTP/1.1 200 OK" END,
		                             "HTTP/1.1 101 x" END, "HTTP/1.0 100 x" END };
	for (size_t i = 0; i < ARRAY_LEN(FINAL); i++) {
		s = (struct http1_status){ .expects = true };
		(void)http1_is_switch(&s, FINAL[i], strlen(FINAL[i]));
		assert_true(s.decided && !s.go_on);
	}
}

static void test_denial_stays(void **state)
{
	struct http1 h;
	size_t pass = 1;

	http1_init(&h);
	assert_int_equal(http1_feed(&h, "\n", 1, &pass), HTTP1_DENY);
	http1_allow(&h);
	http1_switched(&h);
	http1_not_switched(&h);
	assert_int_equal(http1_feed(&h, GET HOST CRLF, strlen(GET HOST CRLF), &pass), HTTP1_DENY);
	assert_int_equal(pass, 0);
	assert_int_equal(h.why, HTTP1_NOT_HTTP);
}

/* ---- the server's answer -------------------------------------------------- */

#define S101 "HTTP/1.1 101 Switching Protocols" CRLF "Upgrade: websocket" END

static const struct status_case {
	const char *bytes;
	bool is_switch;
	bool decided;
} STATUSES[] = {
	{ S101, true, true },
	{ S101 "HTTP/1.1 200 OK" END, true, true },
	{ "HTTP/1.1 101\r", true, true },
	{ "HTTP/1.1 101", false, false },
	{ "", false, false },
	{ "HTTP/1.1 100 Continue" END S101, true, true },
	{ "HTTP/1.1 100" END S101, true, true },
	{ "HTTP/1.1 100 Continue" END "HTTP/1.1 103 Early Hints" CRLF "Link: x" END S101, true,
	  true },
	{ "HTTP/1.1 103 Early Hints" CRLF "X: HTTP/1.1 101 x" CRLF "HTTP/1.1 101 x", false, false },
	{ "HTTP/1.1 103 x" CRLF "X: y\r\r\n\r\n" S101, true, true },
	/* "\n\n" is not CRLF CRLF, so the head of the status 103 continues */
	{ "HTTP/1.1 103 x\n\n" S101, false, false },
	{ "HTTP/1.1 100 x" END "HTTP/1.1 200 OK" END S101, false, true },
	{ "HTTP/1.1 200 OK" END S101, false, true },
	{ "HTTP/1.1 404 x" END S101, false, true },
	{ "HTTP/1.0 101 x" END, false, true },
	{ "HTTP/1.1 1011 x" END, false, true },
	{ "HTTP/1.1  101 x" END, false, true },
	{ "http/1.1 101 x" END, false, true },
	{ "\r\nHTTP/1.1 101 x" END, false, true },
	{ "\x15\x03\x03", false, true },
};

static void test_status(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(STATUSES); i++) {
		const struct status_case *c = &STATUSES[i];
		size_t len = strlen(c->bytes);
		for (size_t step = 1; step <= len + 1; step++) {
			struct http1_status s = { 0 };
			bool is_switch = http1_is_switch(&s, NULL, 0);
			for (size_t at = 0; at < len; at += step) {
				is_switch = http1_is_switch(&s, c->bytes + at,
				                            step < len - at ? step : len - at);
			}
			if (is_switch != c->is_switch || s.decided != c->decided) {
				fail_msg("answer %zu by %zu: %d, decided %d", i, step, is_switch,
				         s.decided);
			}
		}
	}
}

static void test_interim_answers_end(void **state)
{
	static const char INTERIM[] = "HTTP/1.1 100 Continue" END;
	struct http1_status s = { 0 };
	size_t fed = 0;

	while (!s.decided && fed < (1 << 20)) {
		assert_false(http1_is_switch(&s, INTERIM, strlen(INTERIM)));
		fed += strlen(INTERIM);
	}
	assert_true(s.decided);
	assert_true(fed > HTTP1_MAX_HEAD && fed < HTTP1_MAX_HEAD + strlen(INTERIM) * 2);
	assert_false(http1_is_switch(&s, S101, strlen(S101)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_lines),
		cmocka_unit_test(test_absolute_form),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_framing),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_pipelines),
		cmocka_unit_test(test_upgrades),
		cmocka_unit_test(test_expectations),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_full_buffer_is_decided),
		cmocka_unit_test(test_many_requests),
		cmocka_unit_test(test_nothing_goes_before_allow),
		cmocka_unit_test(test_upgrade_counts_once_allowed),
		cmocka_unit_test(test_only_100_continues),
		cmocka_unit_test(test_denial_stays),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_interim_answers_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
