/* test_serve_uri.c - addresses (URIs) of resources, cursors of lists, and JSON in which invisible
 * characters are shown. */
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/own.h"
#include "base/percent.h"
#include "serve/show.h"
#include "serve/uri.h"

#define ID "4a035262-96fe-4226-90a2-8e0a4d499a79"

static void test_addresses(void **state)
{
	static const struct {
		const char *text;
		enum uri_kind kind;
		const char *name;
	} cases[] = {
		{ "skillsandbox://runs/" ID, URI_RUN, ID },
		{ "skillsandbox://runs/" ID "/trace", URI_TRACE, ID },
		{ "skillsandbox://runs/" ID "/output", URI_OUTPUT, ID },
		{ "skillsandbox://runs/" ID "/output?from=0", URI_OUTPUT, ID },
		{ "skillsandbox://runs/" ID "/output?from=999999999999999999", URI_OUTPUT, ID },
		{ "skillsandbox://runs/" ID "/trace?from=17", URI_TRACE, ID },
		{ "skillsandbox://skills/weather", URI_MANIFEST, "weather" },
		/* Only outputs have pages, and there is only one valid spelling of ?from=. */
		{ "skillsandbox://runs/" ID "?from=1", URI_NONE, NULL },
		{ "skillsandbox://skills/weather?from=1", URI_NONE, NULL },
		{ "skill://weather/SKILL.md?from=1", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?from=", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?from=01", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?from=-1", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?from=+1", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?from=1x", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?from=1000000000000000000", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?to=1", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?from=1&from=2", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/output?from=1?from=2", URI_NONE, NULL },
		{ "skillsandbox://skills/weather/files", URI_FILES, "weather" },
		{ "skillsandbox://skills/files", URI_MANIFEST, "files" },
		{ "skillsandbox://skills/tools%2Fweather", URI_MANIFEST, "tools/weather" },
		{ "skillsandbox://skills/%E2%80%AE", URI_MANIFEST, "\xe2\x80\xae" },
		{ "skill://weather/SKILL.md", URI_SKILL_FILE, "weather/SKILL.md" },
		/* Runs are addressed by their full id only. */
		{ "skillsandbox://runs/last", URI_NONE, NULL },
		{ "skillsandbox://runs/4a035262", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/", URI_NONE, NULL },
		{ "skillsandbox://runs/" ID "/trace/", URI_NONE, NULL },
		{ "skillsandbox://runs/../../etc/passwd", URI_NONE, NULL },
		{ "skillsandbox://runs/%2e%2e", URI_NONE, NULL },
		{ "skillsandbox://runs//trace", URI_NONE, NULL },
		/* There is only one valid spelling of each name. */
		{ "skillsandbox://skills/%77eather", URI_NONE, NULL },
		{ "skillsandbox://skills/a%2fb", URI_NONE, NULL },
		{ "skillsandbox://skills/a/b", URI_NONE, NULL },
		{ "skillsandbox://skills/a%00b", URI_NONE, NULL },
		{ "skillsandbox://skills/a%2", URI_NONE, NULL },
		{ "skillsandbox://skills/a b", URI_NONE, NULL },
		{ "SKILLSANDBOX://skills/a", URI_NONE, NULL },
		{ "skillsandbox://skills/", URI_NONE, NULL },
		{ "skillsandbox://", URI_NONE, NULL },
		{ "file:///etc/passwd", URI_NONE, NULL },
		{ "", URI_NONE, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(uri_done) struct uri u = { 0 };
		uri_read(&u, cases[i].text);
		if (u.kind != cases[i].kind) {
			fail_msg("%s: %d", cases[i].text, (int)u.kind);
		}
		if (cases[i].name != NULL) {
			assert_string_equal(u.name, cases[i].name);
		} else {
			assert_null(u.name);
		}
	}
}

static void test_page(void **state)
{
	AUTO(uri_done) struct uri later = { 0 };
	AUTO(uri_done) struct uri first = { 0 };

	uri_read(&later, "skillsandbox://runs/" ID "/output?from=1048577");
	assert_int_equal(later.from, 1048577);
	uri_read(&first, "skillsandbox://runs/" ID "/output");
	assert_int_equal(first.from, 0);
}

static void test_address_cap(void **state)
{
	static char text[MAX_URI + 2];
	AUTO(uri_done) struct uri at = { 0 };
	AUTO(uri_done) struct uri past = { 0 };

	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, URI_SKILLS, strlen(URI_SKILLS));
	uri_read(&past, text);
	assert_int_equal(past.kind, URI_NONE);
	text[MAX_URI] = '\0';
	uri_read(&at, text);
	assert_int_equal(at.kind, URI_MANIFEST);
}

static void test_there_and_back(void **state)
{
	char all[256] = "";

	for (int c = 1; c < 256; c++) {
		all[c - 1] = (char)c;
	}
	for (int path = 0; path < 2; path++) {
		auto_buf out = BUF(1024);
		percent_encode(&out, all, path != 0);
		assert_true(show_plain(out.data, out.len, false));
		auto_free char *back = uri_decode(out.data, path != 0);
		assert_non_null(back);
		assert_string_equal(back, all);
	}
}

static void test_cursors(void **state)
{
	static char long_one[MAX_CURSOR + 2];
	auto_buf out = BUF(4 * MAX_CURSOR);

	uri_cursor_write(&out, "sweather");
	auto_free char *back = uri_cursor_read(out.data);
	assert_string_equal(back, "sweather");
	assert_null(uri_cursor_read(""));
	assert_null(uri_cursor_read("7"));
	assert_null(uri_cursor_read("zz"));
	assert_null(uri_cursor_read("6100"));
	assert_null(uri_cursor_read("AB"));

	memset(long_one, 'x', MAX_CURSOR + 1);
	buf_reset(&out);
	uri_cursor_write(&out, long_one);
	assert_true(out.failed);
	buf_reset(&out);
	uri_cursor_write(&out, long_one + 1);
	assert_false(out.failed);
	auto_free char *whole = uri_cursor_read(out.data);
	assert_string_equal(whole, long_one + 1);
	buf_adds(&out, "78");
	assert_null(uri_cursor_read(out.data));
}

static void shown(const char *json, const char *want)
{
	auto_buf out = BUF(4096);
	struct json j;

	json_init(&j, &out, false);
	show_json(&j, json, strlen(json));
	assert_string_equal(out.data, want);
}

static void test_shown(void **state)
{
	shown("{\"a\":[1,2.50,true,false,null,\"x\"]}", "{\"a\":[1,2.50,true,false,null,\"x\"]}");
	shown("\"\\u001b[2J\\n\"", "\"\\\\x1b[2J\\\\n\"");
	shown("\"\\udb40\\udc41\"", "\"\\\\u{e0041}\"");
	shown("\"\\udcff\"", "\"\\\\xff\"");
	/* A key with an invisible character is left out: it could look like another key. */
	shown("{\"a\":1,\"a\\u200b\":2,\"b\":3}", "{\"a\":1,\"b\":3}");
	shown("no JSON", "null");
}

static void test_plain(void **state)
{
	assert_true(show_plain("a\nb\tc", 5, true));
	assert_false(show_plain("a\nb", 3, false));
	assert_false(show_plain("a\rb", 3, true));
	assert_false(show_plain("\xff", 1, true));
	assert_false(show_plain("a\0b", 3, true));
	assert_true(show_plain("", 0, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),   cmocka_unit_test(test_page),
		cmocka_unit_test(test_address_cap), cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_cursors),     cmocka_unit_test(test_shown),
		cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
