/* test_herald.c - messages to the owner: the body for each kind of receiver, with any text in it;
 * the HMAC of RFC 4231; the time of the next attempt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/hex.h"
#include "base/hmac.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/utf8.h"
#include "session/herald.h"

/* ---- HMAC --------------------------------------------------------------- */

/* The vectors of RFC 4231. If a text is NULL, the real one is `len` times the same byte. */
static const struct vector {
	const char *key;
	uint8_t key_byte;
	size_t key_len;
	const char *data;
	uint8_t data_byte;
	size_t data_len;
	const char *mac;
} VECTORS[] = {
	{ NULL, 0x0b, 20, "Hi There", 0, 8,
	  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
	{ "Jefe", 0, 4, "what do ya want for nothing?", 0, 28,
	  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
	{ NULL, 0xaa, 20, NULL, 0xdd, 50,
	  "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
	{ "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15"
	  "\x16\x17\x18\x19",
	  0, 25, NULL, 0xcd, 50,
	  "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
	{ NULL, 0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 0, 54,
	  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
	{ NULL, 0xaa, 131,
	  "This is a test using a larger than block-size key and a larger than block-size data. "
	  "The key needs to be hashed before being used by the HMAC algorithm.",
	  0, 152, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
};

static void test_hmac(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(VECTORS); i++) {
		const struct vector *v = &VECTORS[i];
		uint8_t key[256];
		uint8_t data[256];
		uint8_t mac[SHA256_BYTES];
		char hex[2 * SHA256_BYTES + 1];
		memset(key, v->key_byte, sizeof(key));
		memset(data, v->data_byte, sizeof(data));
		if (v->key != NULL) {
			memcpy(key, v->key, v->key_len);
		}
		if (v->data != NULL) {
			memcpy(data, v->data, v->data_len);
		}
		for (size_t cut = 0; cut <= v->data_len; cut += 7) { /* in two pieces */
			struct hmac h;
			hmac_init(&h, key, v->key_len);
			hmac_update(&h, data, cut);
			hmac_update(&h, data + cut, v->data_len - cut);
			hmac_final(&h, mac);
			hex_encode(mac, sizeof(mac), hex);
			assert_string_equal(hex, v->mac);
		}
	}
}

/* ---- bodies ------------------------------------------------------------- */

static char routing_key[] = "R0UT1NGKEY";

/* The body for one kind of receiver, and the body after it was parsed by the strict reader. */
struct made {
	struct buf body;
	struct json_doc doc;
};

static void made_done(struct made *m)
{
	buf_done(&m->body);
	json_doc_done(&m->doc);
}

static int make(struct made *m, enum notify_kind kind, const char *event)
{
	struct outbox_item item = { .kind = kind };
	struct ssb_error err = { 0 };
	const char *why = NULL;

	*m = (struct made){ 0 };
	buf_init(&m->body, MAX_NOTIFY_BODY);
	item.secret = routing_key;
	item.body = strdup(event);
	assert_non_null(item.body);
	int r = herald_body(&item, &m->body, &err);
	free(item.body);
	if (r == 0) {
		assert_int_equal(json_read(&m->doc, m->body.data, m->body.len, &why), 0);
		for (size_t i = 0; i < m->body.len;) { /* the body must be valid UTF-8, too */
			uint32_t cp;
			size_t n = utf8_decode(m->body.data + i, m->body.len - i, &cp);
			assert_true(n > 0 && cp >= 0x20);
			i += n;
		}
		assert_null(strstr(m->body.data, "\\u"));
	} else {
		assert_int_not_equal(err.code, SSB_OK);
	}
	return r;
}

/* Returns the value at a path such as "blocks.1.fields.0.text". */
static const char *at(const struct made *m, const char *path)
{
	const struct json_node *n = json_top(&m->doc);
	char word[64];

	while (*path != '\0') {
		size_t len = strcspn(path, ".");
		assert_true(len < sizeof(word));
		memcpy(word, path, len);
		word[len] = '\0';
		path += len + (path[len] == '.');
		if (json_is(n, JSON_ARRAY)) {
			size_t skip = strtoul(word, NULL, 10);
			n = json_first(&m->doc, n);
			while (skip-- > 0) {
				n = json_next(&m->doc, n);
			}
		} else {
			n = json_member(&m->doc, n, word);
		}
	}
	return n != NULL && n->str != NULL ? n->str : "(none)";
}

static const char EVENT[] =
        "{\"event\":\"session_killed\",\"session_id\":\"0123456789abcdef\",\"agent_id\":\"agent-"
        "1\","
        "\"reason\":\"spent $5.11 of $5.00\",\"code\":\"max_cost_per_session\","
        "\"timestamp\":\"2026-11-15T13:20:00.123456Z\",\"state\":\"killed\","
        "\"session_cost_usd\":5.110050,\"budget_usd\":5.000000,\"action_count\":12,"
        "\"violation_counts\":{\"pii_blocked\":3,\"file_blocked\":1}}";

static void test_slack(void **state)
{
	static const struct {
		const char *path;
		const char *want;
	} ROWS[] = {
		{ "text", "Session killed: agent-1: spent $5.11 of $5.00" },
		{ "blocks.0.type", "header" },
		{ "blocks.0.text.type", "plain_text" },
		{ "blocks.0.text.text", "Session killed" },
		{ "blocks.1.type", "section" },
		{ "blocks.1.fields.0.type", "mrkdwn" },
		{ "blocks.1.fields.0.text", "*Agent:*\nagent-1" },
		{ "blocks.1.fields.1.text", "*Session:*\n0123456789ab\xe2\x80\xa6" },
		{ "blocks.1.fields.2.text", "*Cost:*\n$5.1101" },
		{ "blocks.1.fields.3.text", "*Actions:*\n12" },
		{ "blocks.1.fields.4.text", "(none)" },
		{ "blocks.2.type", "section" },
		{ "blocks.2.text.type", "mrkdwn" },
		{ "blocks.2.text.text", "*Reason:*\nspent $5.11 of $5.00" },
		{ "blocks.3.text.text", "*Violations:*\npii_blocked: 3, file_blocked: 1" },
		{ "blocks.4.type", "(none)" },
	};
	AUTO(made_done) struct made m;

	assert_int_equal(make(&m, NOTIFY_SLACK, EVENT), 0);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		assert_string_equal(at(&m, ROWS[i].path), ROWS[i].want);
	}
}

static void test_pagerduty(void **state)
{
	static const struct {
		const char *path;
		const char *want;
	} ROWS[] = {
		{ "routing_key", "R0UT1NGKEY" },
		{ "event_action", "trigger" },
		{ "dedup_key", "0123456789abcdef" },
		{ "payload.summary", "Session killed: agent agent-1, session 0123456789abcdef: "
		                     "spent $5.11 of $5.00" },
		{ "payload.source", "agent-1" },
		{ "payload.severity", "critical" },
		{ "payload.timestamp", "2026-11-15T13:20:00.123456Z" },
		{ "payload.class", "max_cost_per_session" },
		{ "payload.custom_details.violation_counts.pii_blocked", "3" },
		{ "payload.custom_details.session_cost_usd", "5.110050" },
	};
	struct outbox_item item = { .kind = NOTIFY_PAGERDUTY };
	struct ssb_error err = { 0 };
	auto_buf out;
	AUTO(made_done) struct made m;

	assert_int_equal(make(&m, NOTIFY_PAGERDUTY, EVENT), 0);
	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		assert_string_equal(at(&m, ROWS[i].path), ROWS[i].want);
	}
	buf_init(&out, MAX_NOTIFY_BODY); /* the routing key is missing in item */
	item.body = m.body.data;
	assert_int_equal(herald_body(&item, &out, &err), -1);
	assert_non_null(strstr(err.text, "routing key"));
}

static void test_words_of_each_event(void **state)
{
	static const struct {
		const char *event;
		const char *title;
		const char *severity;
	} ROWS[] = {
		{ "session_killed", "Session killed", "critical" },
		{ "session_paused", "Session paused", "error" },
		{ "session_expired", "Session expired", "error" },
		{ "budget_alert", "Budget alert", "warning" },
		{ "something_new", "Session event", "warning" },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		char event[128];
		struct made slack;
		struct made pager;
		snprintf(event, sizeof(event), "{\"event\":\"%s\"}", ROWS[i].event);
		assert_int_equal(make(&slack, NOTIFY_SLACK, event), 0);
		assert_int_equal(make(&pager, NOTIFY_PAGERDUTY, event), 0);
		assert_string_equal(at(&slack, "blocks.0.text.text"), ROWS[i].title);
		assert_string_equal(at(&slack, "blocks.3.text.text"), "*Violations:*\nnone");
		assert_string_equal(at(&slack, "blocks.1.fields.2.text"), "*Cost:*\n$0.0000");
		assert_string_equal(at(&pager, "payload.severity"), ROWS[i].severity);
		assert_string_equal(at(&pager, "payload.source"), "skillsandbox");
		made_done(&slack);
		made_done(&pager);
	}
}

static void test_json_is_the_event(void **state)
{
	static const char *const SAME[] = {
		EVENT,
		"{}",
		"{\"a\":[1,-2.50,true,false,null,{\"b\":\"c\"}],\"\":\"x\"}",
	};

	for (size_t i = 0; i < ARRAY_LEN(SAME); i++) {
		AUTO(made_done) struct made m;
		assert_int_equal(make(&m, NOTIFY_JSON, SAME[i]), 0);
		assert_string_equal(m.body.data, SAME[i]);
	}
}

static void test_no_event(void **state)
{
	static const char *const BAD[] = {
		"", "[]", "\"x\"", "{", "{\"a\":1}x", "{\"a\":1,\"a\":2}"
	};

	for (int kind = NOTIFY_SLACK; kind <= NOTIFY_PAGERDUTY + 1; kind++) {
		for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
			AUTO(made_done) struct made m;
			assert_int_equal(make(&m, (enum notify_kind)kind, BAD[i]), -1);
		}
	}
	AUTO(made_done) struct made m;
	assert_int_equal(make(&m, (enum notify_kind)(NOTIFY_PAGERDUTY + 1), EVENT), -1);
}

/* An agent can choose any text. In the message for Slack it must contain no markup. */
static void test_hostile_words(void **state)
{
	static const struct {
		const char *reason; /* the reason in the event */
		const char *slack;
		const char *plain;
	} ROWS[] = {
		{ "<!channel> a & b", "&lt;!channel&gt; a &amp; b", "<!channel> a & b" },
		{ "&lt;", "&amp;lt;", "&lt;" },
		{ "<https://evil.test|click>", "&lt;https://evil.test|click&gt;",
		  "<https://evil.test|click>" },
		{ "one\\ntwo\\tthree", "one two three", "one two three" },
		{ "\\udcff\\udc80", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "a\\u0000b\\u001b[31m",
		  "a\xef\xbf\xbd"
		  "b\xef\xbf\xbd[31m",
		  "a\xef\xbf\xbd"
		  "b\xef\xbf\xbd[31m" },
		{ "\xe2\x80\xaetxt.exe", "\xef\xbf\xbdtxt.exe", "\xef\xbf\xbdtxt.exe" },
		{ "quote \\\" and \\\\", "quote \" and \\", "quote \" and \\" },
		{ "\xc3\xa9\xf0\x9f\x9a\xa8", "\xc3\xa9\xf0\x9f\x9a\xa8",
		  "\xc3\xa9\xf0\x9f\x9a\xa8" },
	};

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		char event[512];
		char want[512];
		struct made m[3];
		snprintf(event, sizeof(event),
		         "{\"agent_id\":\"%s\",\"session_id\":\"%s\",\"reason\":\"%s\","
		         "\"violation_counts\":{\"%s\":7}}",
		         ROWS[i].reason, ROWS[i].reason, ROWS[i].reason, "<b>&\\udcfe");
		for (int kind = NOTIFY_SLACK; kind <= NOTIFY_PAGERDUTY; kind++) {
			assert_int_equal(make(&m[kind], (enum notify_kind)kind, event), 0);
		}
		snprintf(want, sizeof(want), "*Reason:*\n%s", ROWS[i].slack);
		/* In the text for Slack, the reason ends at a NUL. The text after the NUL is not
		 * shown, so it cannot mislead people. */
		bool cut = strstr(ROWS[i].reason, "u0000") != NULL;
		if (!cut) {
			assert_string_equal(at(&m[NOTIFY_SLACK], "blocks.2.text.text"), want);
		}
		assert_string_equal(at(&m[NOTIFY_SLACK], "blocks.3.text.text"),
		                    "*Violations:*\n&lt;b&gt;&amp;\xef\xbf\xbd: 7");
		assert_string_equal(at(&m[NOTIFY_JSON], "reason"), ROWS[i].plain);
		assert_string_equal(at(&m[NOTIFY_PAGERDUTY], "payload.custom_details.reason"),
		                    ROWS[i].plain);
		assert_null(strstr(at(&m[NOTIFY_SLACK], "text"), "<"));
		for (int kind = NOTIFY_SLACK; kind <= NOTIFY_PAGERDUTY; kind++) {
			made_done(&m[kind]);
		}
	}
}

/* Writes an event whose reason and agent are `n` times `piece`, with `n` violations. */
static void long_event(struct buf *out, const char *piece, size_t n)
{
	auto_buf text = BUF(MAX_NOTIFY_BODY);
	struct json j;
	char name[64];

	for (size_t i = 0; i < n; i++) {
		buf_adds(&text, piece);
	}
	json_init(&j, out, false);
	json_open(&j, '{');
	json_kstr(&j, "agent_id", text.data);
	json_kstr(&j, "session_id", text.data);
	json_kstr(&j, "reason", text.data);
	json_key(&j, "violation_counts");
	json_open(&j, '{');
	for (size_t i = 0; i < n && i < MAX_JSON_MEMBERS; i++) {
		snprintf(name, sizeof(name), "<violation number %zu>", i);
		json_kuint(&j, name, i);
	}
	json_close(&j, '}');
	json_close(&j, '}');
	assert_false(out->failed);
}

static void check_cut(const char *text, size_t most)
{
	size_t len = strlen(text);

	assert_true(len <= most && len > most - 16); /* as long as possible */
	assert_string_equal(text + len - 3, "\xe2\x80\xa6");
}

static void check_slack(const char *text, size_t most)
{
	const char *amp = strrchr(text, '&');

	check_cut(text, most);
	assert_true(amp == NULL || strchr(amp, ';') != NULL); /* no entity (&amp;) is cut */
}

static void test_limits(void **state)
{
	static const char *const PIECES[] = { "&", "\xf0\x9f\x9a\xa8", "x", "<>" };

	for (size_t i = 0; i < ARRAY_LEN(PIECES); i++) {
		auto_buf event = BUF(MAX_NOTIFY_BODY);
		AUTO(made_done) struct made slack;
		AUTO(made_done) struct made pager;
		AUTO(made_done) struct made plain;
		long_event(&event, PIECES[i], 5000);
		assert_int_equal(make(&slack, NOTIFY_SLACK, event.data), 0);
		check_slack(at(&slack, "text"), 3000);
		check_slack(at(&slack, "blocks.1.fields.0.text"), 2000);
		check_slack(at(&slack, "blocks.2.text.text"), 3000);
		check_slack(at(&slack, "blocks.3.text.text"), 3000);
		assert_int_equal(make(&pager, NOTIFY_PAGERDUTY, event.data), 0);
		check_cut(at(&pager, "payload.summary"), 1024);
		check_cut(at(&pager, "dedup_key"), 255);
		assert_int_equal(make(&plain, NOTIFY_JSON, event.data), 0); /* JSON is not cut */
		assert_int_equal(strlen(at(&plain, "reason")), 5000 * strlen(PIECES[i]));
	}
}

/* A body of exactly MAX_NOTIFY_BODY bytes is accepted; one byte more is refused. */
static void test_size_of_a_body(void **state)
{
	static const char HEAD[] = "{\"r\":\"";
	size_t room = MAX_NOTIFY_BODY - strlen(HEAD) - 2;
	auto_buf event;

	for (size_t more = 0; more <= 1; more++) {
		AUTO(made_done) struct made m;
		buf_init(&event, MAX_NOTIFY_BODY + 1);
		buf_adds(&event, HEAD);
		for (size_t i = 0; i < room + more; i++) {
			buf_addc(&event, 'x');
		}
		buf_adds(&event, "\"}");
		assert_int_equal(make(&m, NOTIFY_JSON, event.data), more == 0 ? 0 : -1);
		buf_done(&event);
	}
}

/* ---- the next attempt ----------------------------------------------------- */

static void test_retry(void **state)
{
	struct herald_result r = { .retry = true, .retry_after_ms = -1, .error = "no answer" };
	static const struct {
		uint64_t low;
		uint64_t high;
	} WAITS[HERALD_TRIES] = {
		{ 0 },
		{ 1000, 2250 },
		{ 2250, 6750 },
		{ 6750, 20250 },
		{ 20250, 60750 },
		{ 60750, 182250 },
		{ 182250, 300000 },
		{ 182250, 300000 },
	};

	for (unsigned tries = 1; tries < HERALD_TRIES; tries++) {
		uint64_t low = UINT64_MAX;
		uint64_t high = 0;
		for (int i = 0; i < 200; i++) {
			uint64_t ms = herald_retry_ms(&r, tries);
			low = ms < low ? ms : low;
			high = ms > high ? ms : high;
		}
		assert_in_range(low, WAITS[tries].low, WAITS[tries].high);
		/* the delays are random, so that not all messages are sent at once */
		assert_in_range(high, low + 1, WAITS[tries].high);
	}
	assert_int_equal(herald_retry_ms(&r, HERALD_TRIES), 0);
	assert_int_equal(herald_retry_ms(&r, HERALD_TRIES + 1), 0);
	r.retry_after_ms = 0;
	assert_int_equal(herald_retry_ms(&r, 1), HERALD_MIN_MS);
	r.retry_after_ms = 7000;
	assert_int_equal(herald_retry_ms(&r, 1), 7000);
	r.retry_after_ms = INT64_MAX;
	assert_int_equal(herald_retry_ms(&r, 1), HERALD_MAX_MS);
	assert_int_equal(herald_retry_ms(&r, HERALD_TRIES), 0);
	r.retry = false;
	assert_int_equal(herald_retry_ms(&r, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hmac),
		cmocka_unit_test(test_slack),
		cmocka_unit_test(test_pagerduty),
		cmocka_unit_test(test_words_of_each_event),
		cmocka_unit_test(test_json_is_the_event),
		cmocka_unit_test(test_no_event),
		cmocka_unit_test(test_hostile_words),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_size_of_a_body),
		cmocka_unit_test(test_retry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
