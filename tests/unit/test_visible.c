/* test_visible.c - text from other people: invisible characters are written as escapes. */
#include <stdio.h>

#include "unit.h"
#include "base/own.h"
#include "base/visible.h"

static void test_words(void **state)
{
	static const struct {
		const char *in;
		const char *line; /* the result if it becomes a part of a line */
		const char *text; /* the result if it may have several lines */
	} cases[] = {
		{ "plain gr\xc3\xbc\xc3\x9f", "plain gr\xc3\xbc\xc3\x9f",
		  "plain gr\xc3\xbc\xc3\x9f" },
		{ "a\nb\tc", "a\\nb\\tc", "a\nb\tc" },
		{ "\x1b[2J\r\x07\x7f", "\\x1b[2J\\x0d\\x07\\x7f", "\\x1b[2J\\x0d\\x07\\x7f" },
		{ "\xc2\x9b"
		  "1m",
		  "\\u{9b}1m", "\\u{9b}1m" },
		{ "\xe2\x80\xae"
		  "txt",
		  "\\u{202e}txt", "\\u{202e}txt" },
		{ "\xff\xc3", "\\xff\\xc3", "\\xff\\xc3" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_buf b = BUF(4096);

		visible_text(&b, cases[i].in, false);
		assert_string_equal(b.data, cases[i].line);
		buf_reset(&b);
		visible_text(&b, cases[i].in, true);
		assert_string_equal(b.data, cases[i].text);
	}
}

static size_t encode(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, cp >>= 6) {
		out[i] = (char)(0x80 | (cp & 0x3f));
	}
	out[0] = (char)((0xf00 >> n & 0xff) | cp);
	return n;
}

/* No reader sees these characters, so a message could be hidden in them: each is escaped. */
static void test_unseen(void **state)
{
	static const struct {
		uint32_t from, to;
	} unseen[] = {
		{ 0xad, 0xad },       { 0x34f, 0x34f },     { 0x61c, 0x61c },   { 0x115f, 0x1160 },
		{ 0x180b, 0x180f },   { 0x200b, 0x200f },   { 0x202a, 0x202e }, { 0x2060, 0x2064 },
		{ 0x2066, 0x2069 },   { 0x3164, 0x3164 },   { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },
		{ 0xe0000, 0xe007f }, { 0xe0100, 0xe01ef },
	};

	for (size_t i = 0; i < ARRAY_LEN(unseen); i++) {
		for (uint32_t cp = unseen[i].from; cp <= unseen[i].to; cp++) {
			char text[4];
			char wanted[16];
			auto_buf b = BUF(64);

			visible_bytes(&b, text, encode(cp, text), true);
			snprintf(wanted, sizeof(wanted), "\\u{%x}", (unsigned)cp);
			assert_string_equal(b.data, wanted);
			assert_true(visible_deceptive(cp));
		}
	}
}

/* Letters of all scripts, accents and emoji are not changed. */
static void test_seen(void **state)
{
	static const uint32_t seen[] = {
		' ',    '~',    0xa0,   0xae,   0x301,   0x34e,   0x350,   0x5d0,   0x645,  0x1161,
		0x1820, 0x200a, 0x2010, 0x2027, 0x202f,  0x205f,  0x2070,  0x3042,  0x4e2d, 0xac00,
		0xfdff, 0xfe10, 0xff21, 0xfffd, 0x1f600, 0x20000, 0xdffff, 0xe1000,
	};

	for (size_t i = 0; i < ARRAY_LEN(seen); i++) {
		char text[5] = "";
		auto_buf b = BUF(64);

		visible_bytes(&b, text, encode(seen[i], text), false);
		assert_string_equal(b.data, text);
		assert_false(visible_deceptive(seen[i]));
	}
}

/* One variation selector after a symbol is allowed; more could encode a hidden message. */
static void test_pictures(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "\u2600\ufe0f 21 C", "\u2600\ufe0f 21 C" },
		{ "\U0001f327\ufe0f", "\U0001f327\ufe0f" },
		{ "\u2600\ufe0f\ufe0f", "\u2600\ufe0f\\u{fe0f}" },
		{ "a\ufe0f", "a\\u{fe0f}" },
		{ "\u2600\ufe01", "\u2600\\u{fe01}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_buf b = BUF(64);

		visible_text(&b, cases[i].in, true);
		assert_string_equal(b.data, cases[i].out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_pictures),
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
