/* The frontmatter of SKILL.md: as JSON, or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/own.h"
#include "serve/frontmatter.h"

#define HEAD "---\nname: a\ndescription: d\n"
#define TAIL "---\nbody\n"

static void good(const char *text, const char *json)
{
	AUTO(frontmatter_done) struct frontmatter f = { 0 };
	const char *why = NULL;

	if (frontmatter_read(&f, text, strlen(text), &why) != 0) {
		fail_msg("%s: %s", text, why);
	}
	assert_string_equal(f.json, json);
}

static void bad(const char *text, const char *part)
{
	AUTO(frontmatter_done) struct frontmatter f = { 0 };
	const char *why = NULL;

	if (frontmatter_read(&f, text, strlen(text), &why) == 0) {
		fail_msg("%s: taken", text);
	}
	if (strstr(why, part) == NULL) {
		fail_msg("%s: %s", text, why);
	}
}

static void test_plain(void **state)
{
	(void)state;
	good(HEAD TAIL, "{\"name\":\"a\",\"description\":\"d\"}");
	good("---\r\nname: a\r\ndescription: d\r\n---\r\nx",
	     "{\"name\":\"a\",\"description\":\"d\"}");
	good("---\nname: a\ndescription: >\n  two\n  lines\n---",
	     "{\"name\":\"a\",\"description\":\"two lines\\n\"}");
	good("---\nname: \"a\"\ndescription: 'it''s'\n---  \n",
	     "{\"name\":\"a\",\"description\":\"it's\"}");
	good(HEAD "metadata: {a: [1, {b: c}], d: {}}\n" TAIL,
	     "{\"name\":\"a\",\"description\":\"d\",\"metadata\":{\"a\":[1,{\"b\":\"c\"}],\"d\":{}}"
	     "}");
}

/* As the core schema of YAML 1.2 has them. */
static void test_scalars(void **state)
{
	(void)state;
	static const struct {
		const char *yaml;
		const char *json;
	} cases[] = {
		{ "true", "true" },
		{ "False", "false" },
		{ "yes", "\"yes\"" },
		{ "~", "null" },
		{ "null", "null" },
		{ "", "null" },
		{ "'~'", "\"~\"" },
		{ "12", "12" },
		{ "+012", "12" },
		{ "-0", "-0" },
		{ "00", "0" },
		{ "0x1F", "31" },
		{ "0o17", "15" },
		{ "0b1", "\"0b1\"" },
		{ "1_000", "\"1_000\"" },
		{ ".5", "0.5" },
		{ "-1.", "-1" },
		{ "1.50e+3", "1.50e+3" },
		{ "1.e3", "1e3" },
		{ "1e", "\"1e\"" },
		{ ".", "\".\"" },
		{ "1.2.3", "\"1.2.3\"" },
		{ "2026-11-15", "\"2026-11-15\"" },
		{ "'12'", "\"12\"" },
		{ "123456789012345678901234567890", "123456789012345678901234567890" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[256], want[256];
		snprintf(text, sizeof(text), HEAD "x: %s\n" TAIL, cases[i].yaml);
		snprintf(want, sizeof(want), "{\"name\":\"a\",\"description\":\"d\",\"x\":%s}",
		         cases[i].json);
		good(text, want);
	}
}

static void test_refused(void **state)
{
	(void)state;
	bad("", "begin");
	bad("# no frontmatter\n", "begin");
	bad("---\nname: a\ndescription: d\n", "begin");
	bad("----\nname: a\ndescription: d\n---\n", "begin");
	bad("---\n- a\n---\n", "names and values");
	bad("---\ndescription: d\n---\n", "name");
	bad("---\nname: 12\ndescription: d\n---\n", "name");
	bad("---\nname: A\ndescription: d\n---\n", "name");
	bad("---\nname: a/../b\ndescription: d\n---\n", "name");
	bad("---\nname: a\n---\n", "description");
	bad("---\nname: a\ndescription: ''\n---\n", "description");
	bad("---\nname: a\ndescription: true\n---\n", "description");
	bad("---\nname: a\nname: b\ndescription: d\n---\n", "plain YAML");
	bad("---\nname: a\ndescription: &x d\nother: *x\n---\n", "plain YAML");
	bad("---\nname: a\ndescription: [\n---\n", "plain YAML");
	bad(HEAD "x: .inf\n" TAIL, "number");
	bad(HEAD "x: 0xfffffffffffffffff\n" TAIL, "number");
	/* Tags, invisible or by an escape; a mark that turns text around. */
	bad("---\nname: a\ndescription: d\xf3\xa0\x81\x81\n---\n", "not visible");
	bad("---\nname: a\ndescription: \"d\\u202e\"\n---\n", "");
	bad(HEAD "\"k\\u200b\": 1\n" TAIL, "");
	bad("\xef\xbb\xbf---\nname: a\ndescription: d\n---\n", "begin");
}

static void test_cap(void **state)
{
	(void)state;
	const char *why = NULL;

	for (size_t past = 0; past < 2; past++) {
		AUTO(frontmatter_done) struct frontmatter f = { 0 };
		auto_free char *text = calloc(1, MAX_YAML_BYTES + 64);
		size_t end = strlen("---\n") + MAX_YAML_BYTES + past;
		size_t at = strlen(HEAD);
		assert_non_null(text);
		memcpy(text, HEAD, at);
		/* One long comment, until the block has its size. */
		memset(text + at, '#', end - at);
		text[end - 1] = '\n';
		memcpy(text + end, TAIL, strlen(TAIL));
		assert_int_equal(frontmatter_read(&f, text, strlen(text), &why),
		                 past == 0 ? 0 : -1);
	}
}

static void test_names(void **state)
{
	(void)state;
	static const struct {
		const char *word;
		const char *name;
	} cases[] = {
		{ "weather", "weather" },
		{ "My_Skill (2)", "my-skill-2" },
		{ "--a--b--", "a-b" },
		{ "\xe2\x80\xae", "" },
		{ "...", "" },
	};
	char name[SKILL_NAME_BYTES + 1];
	char text[SKILL_NAME_BYTES + 2];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		frontmatter_name_from(name, cases[i].word);
		assert_string_equal(name, cases[i].name);
		assert_int_equal(frontmatter_name_valid(name), name[0] != '\0');
	}
	memset(text, 'a', sizeof(text) - 1);
	text[SKILL_NAME_BYTES + 1] = '\0';
	assert_false(frontmatter_name_valid(text));
	frontmatter_name_from(name, text);
	assert_int_equal(strlen(name), SKILL_NAME_BYTES);
	text[SKILL_NAME_BYTES] = '\0';
	assert_true(frontmatter_name_valid(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),   cmocka_unit_test(test_scalars),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_cap),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
