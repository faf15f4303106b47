/* test_otlp.c - the two encodings of OTLP, byte by byte; the answers of a collector; times. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit.h"
#include "otel/otlp.h"
#include "otel/otlp_send.h"
#include "otel/otlp_limits.h"
#include "base/stamp.h"
#include "base/own.h"

static void write_some(struct otlp *w)
{
	static const uint8_t id[8] = { 0, 1, 2, 0xff, 0, 0, 0, 9 };
	const struct otlp_format *f = w->format;

	f->begin(w);
	f->list(w, SPANS);
	f->item(w, SPANS);
	f->id(w, SPAN_ID, id, sizeof(id));
	f->uint32(w, SPAN_KIND, KIND_INTERNAL);
	f->fixed64(w, SPAN_START, 0x0102030405060708);
	f->fixed32(w, SPAN_FLAGS, 0x301);
	otlp_attrs(w, SPAN_ATTRIBUTES);
	otlp_attr_int(w, "i", -1);
	otlp_attr_bool(w, "b", false);
	otlp_attr_real(w, "r", -0.5);
	otlp_attr_array(w, "a");
	otlp_element(w, "x", 1);
	otlp_element(w, "", 0);
	otlp_attr_array_end(w);
	otlp_attrs_end(w);
	f->close(w);
	f->list_end(w);
	f->end(w);
}

static void test_protobuf(void **state)
{
	static const uint8_t WANT[] = {
		0x12, 0x58,                                                 /* spans: 88 bytes */
		0x12, 0x08, 0,    1,    2,    0xff, 0,    0,    0,    9,    /* span_id */
		0x30, 0x01,                                                 /* kind */
		0x39, 8,    7,    6,    5,    4,    3,    2,    1,          /* start, fixed64 */
		0x85, 0x01, 0x01, 0x03, 0,    0,                            /* flags: 16, fixed32 */
		0x4a, 0x10, 0x0a, 1,    'i',  0x12, 0x0b, 0x18, 0xff, 0xff, /* -1 takes ten bytes */
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,             /* ... */
		0x4a, 0x07, 0x0a, 1,    'b',  0x12, 0x02, 0x10, 0x00,       /* false is sent, too */
		0x4a, 0x0e, 0x0a, 1,    'r',  0x12, 0x09, 0x21, 0,    0,    /* a double */
		0,    0,    0,    0,    0xe0, 0xbf,                         /* ... */
		0x4a, 0x10, 0x0a, 1,    'a',  0x12, 0x0b, 0x2a, 0x09,       /* array */
		0x0a, 0x03, 0x0a, 1,    'x',  0x0a, 0x02, 0x0a, 0,
	};
	struct otlp w;
	auto_buf out;

	buf_init(&out, 4096);
	otlp_init(&w, &out, &OTLP_PROTO);
	write_some(&w);
	assert_false(out.failed);
	assert_int_equal(out.len, sizeof(WANT));
	assert_memory_equal(out.data, WANT, sizeof(WANT));
	assert_int_equal(w.depth, 0);
}

static void test_json(void **state)
{
	static const char WANT[] =
	        "{\"spans\":[{\"spanId\":\"000102ff00000009\",\"kind\":1,"
	        "\"startTimeUnixNano\":\"72623859790382856\",\"flags\":769,\"attributes\":["
	        "{\"key\":\"i\",\"value\":{\"intValue\":\"-1\"}},"
	        "{\"key\":\"b\",\"value\":{\"boolValue\":false}},"
	        "{\"key\":\"r\",\"value\":{\"doubleValue\":-0.500000}},"
	        "{\"key\":\"a\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":\"x\"},"
	        "{\"stringValue\":\"\"}]}}}]}]}";
	struct otlp w;
	auto_buf out;

	buf_init(&out, 4096);
	otlp_init(&w, &out, &OTLP_JSON);
	write_some(&w);
	assert_false(out.failed);
	assert_string_equal(out.data, WANT);
}

/* A text's length takes one to three bytes before it. These are inserted after the text was
 * written. */
static void test_lengths(void **state)
{
	static const size_t SIZES[] = { 0, 1, 125, 126, 127, 128, 129, 8000, OTLP_MAX_TEXT };
	static char text[OTLP_MAX_TEXT];

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
		struct otlp w;
		auto_buf out;
		buf_init(&out, 65536);
		otlp_init(&w, &out, &OTLP_PROTO);
		w.format->open(&w, LOG_BODY);
		otlp_text(&w, ANY_STRING, text, SIZES[i]);
		w.format->close(&w);
		const uint8_t *p = (const uint8_t *)out.data;
		size_t inner = 1 + (SIZES[i] > 127 ? 2U : 1U) + SIZES[i];
		size_t at = 1;
		assert_int_equal(p[0], 5 << 3 | 2);
		size_t len = p[at] & 0x7f;
		if ((p[at++] & 0x80) != 0) {
			len |= (size_t)p[at++] << 7;
		}
		assert_int_equal(len, inner);
		assert_int_equal(out.len, at + inner);
		assert_int_equal(p[out.len - 1], SIZES[i] > 0 ? 'x' : 0);
	}
}

/* When the buffer is full, it is marked as failed and stays so. Nothing is written past its end. */
static void test_full(void **state)
{
	for (size_t cap = 0; cap < 74; cap++) {
		for (int json = 0; json < 2; json++) {
			struct otlp w;
			auto_buf out;
			buf_init(&out, cap);
			otlp_init(&w, &out, json ? &OTLP_JSON : &OTLP_PROTO);
			write_some(&w);
			assert_true(out.failed);
			assert_true(out.len <= cap);
		}
	}
}

static void test_text(void **state)
{
	static char longer[OTLP_MAX_TEXT + 100];
	static const struct {
		const char *in;
		size_t len;
		const char *out;
	} CASES[] = {
		{ "plain", 5, "plain" },
		{ "\xc3\xa4\xf0\x9f\x98\x80", 6, "\xc3\xa4\xf0\x9f\x98\x80" },
		{ "a\xff"
		  "b",
		  3, "a\\xffb" },
		{ "a\0b", 3, "a\\x00b" },
		{ "\x1b[2J\n\t\x7f", 7, "\\x1b[2J\\x0a\\x09\\x7f" },
		{ "\xc2\x9b", 2, "\\xc2\\x9b" },          /* CSI in C1 */
		{ "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" }, /* a surrogate */
		{ "\xc3", 1, "\\xc3" },                   /* a character that is cut off */
		{ "\xe2\x80\xae", 3, "\xe2\x80\xae" },    /* U+202E is only for display: kept */
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct otlp w;
		auto_buf out;
		buf_init(&out, 65536);
		otlp_init(&w, &out, &OTLP_PROTO);
		otlp_text(&w, ANY_STRING, CASES[i].in, CASES[i].len);
		assert_string_equal(out.data + 2, CASES[i].out);
	}
	/* A long text is cut between two characters, wherever the cap falls. */
	for (size_t shift = 0; shift < 4; shift++) {
		struct otlp w;
		auto_buf out;
		memset(longer, 'x', shift);
		for (size_t i = shift; i + 4 <= sizeof(longer); i += 4) {
			memcpy(longer + i, "\xf0\x9f\x98\x80", 4);
		}
		buf_init(&out, 65536);
		otlp_init(&w, &out, &OTLP_PROTO);
		otlp_text(&w, ANY_STRING, longer, sizeof(longer) - 4);
		assert_null(strstr(out.data + 3, "\\x"));
		assert_true(out.len - 3 <= OTLP_MAX_TEXT && out.len - 3 > OTLP_MAX_TEXT - 4);
	}
}

static void test_partial(void **state)
{
	static const struct {
		const struct otlp_format *format;
		const char *body;
		size_t len;
		bool found;
		int64_t rejected;
		const char *why;
	} CASES[] = {
		{ &OTLP_PROTO, "", 0, false, 0, "" },
		{ &OTLP_PROTO, "\x0a\x00", 2, true, 0, "" },
		{ &OTLP_PROTO, "\x0a\x06\x08\x07\x12\x02hi", 8, true, 7, "hi" },
		/* more fields */
		{ &OTLP_PROTO, "\x10\x01\x0a\x02\x08\x07\x1a\x00", 8, true, 7, "" },
		{ &OTLP_PROTO, "\x0a\x07\x08\x07", 4, false, 0, "" }, /* too short */
		{ &OTLP_PROTO, "\x0a\x04\x12\x7fhi", 6, false, 0, "" },
		{ &OTLP_PROTO, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, false, 0, "" },
		{ &OTLP_PROTO, "\x0b", 1, false, 0, "" }, /* wire type 3 (group) is refused */
		{ &OTLP_JSON, "{}", 2, false, 0, "" },
		{ &OTLP_JSON, "{\"partialSuccess\":{}}", 21, true, 0, "" },
		{ &OTLP_JSON, "{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}", 40, true, 3, "" },
		{ &OTLP_JSON, "{\"partialSuccess\":{\"rejectedLogRecords\":4}}", 43, true, 4, "" },
		{ &OTLP_JSON, "{\"partialSuccess\":{\"errorMessage\":\"no\"}}", 40, true, 0, "no" },
		{ &OTLP_JSON, "{\"partialSuccess\":7}", 20, false, 0, "" },
		{ &OTLP_JSON, "<html>", 6, false, 0, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		struct otlp_partial p = { .rejected = 99 };
		assert_int_equal(CASES[i].format->partial(CASES[i].body, CASES[i].len, &p),
		                 CASES[i].found);
		if (CASES[i].found) {
			assert_int_equal(p.rejected, CASES[i].rejected);
			assert_string_equal(p.why, CASES[i].why);
		}
	}
}

static void test_heads(void **state)
{
	static const struct {
		const char *head;
		int64_t after;
	} CASES[] = {
		{ "HTTP/1.1 503 X\r\nRetry-After: 7\r\nContent-Length: 12\r\n\r\n", 7000 },
		{ "HTTP/1.1 503 X\nretry-AFTER:\t 7 \n\n", 7000 },
		{ "HTTP/1.1 503 X\r\n\r\n", -1 },
		{ "HTTP/1.1 503 X\r\nRetry-After: -7\r\nContent-Length: 1x\r\n\r\n", -1 },
		{ "HTTP/1.1 503 X\r\nRetry-After:\r\n\r\n", -1 },
		{ "HTTP/1.1 503 X\r\nRetry-After: 99999999999999\r\n\r\n", -1 },
		{ "HTTP/1.1 503 X\r\nX-Retry-After: 7\r\n\r\n", -1 },
		{ "HTTP/1.1 503 X\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n", 0 },
		{ "HTTP/1.1 503 X\r\nRetry-After: soon\r\n\r\n", -1 },
		{ "Retry-After", -1 },
		{ "Retry-After:", -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		size_t len = strlen(CASES[i].head);
		assert_int_equal(otlp_retry_after(CASES[i].head, len), CASES[i].after);
	}
}

static void test_stamps(void **state)
{
	static const int64_t SECONDS[] = { 0,          951782400,  951868799,   1078012800,
		                           1794752773, 4107542400, 253402300799 };
	static const char *const BAD[] = {
		"",
		"2026-11-15T14:08:42.615140",
		"2026-11-15T14:08:42.615140Zx",
		"2026-11-15 14:08:42.615140Z",
		"2026-13-15T14:08:42.615140Z",
		"2026-00-15T14:08:42.615140Z",
		"2026-11-15T24:08:42.615140Z",
		"1969-11-15T14:08:42.615140Z",
		"2026-11-15T14:08:4a.615140Z",
	};
	int64_t us = 77;

	for (size_t i = 0; i < ARRAY_LEN(SECONDS); i++) {
		struct stamp s = STAMP_NONE;
		struct timespec ts = { (time_t)SECONDS[i], 123456789 };
		assert_true(stamp_parse(stamp_text(&s, &ts), &us));
		assert_int_equal(us, SECONDS[i] * 1000000 + 123456);
	}
	us = 77;
	for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
		assert_false(stamp_parse(BAD[i], &us));
		assert_int_equal(us, 77);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_protobuf), cmocka_unit_test(test_json),
		cmocka_unit_test(test_lengths),  cmocka_unit_test(test_full),
		cmocka_unit_test(test_text),     cmocka_unit_test(test_partial),
		cmocka_unit_test(test_heads),    cmocka_unit_test(test_stamps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
