/* test_frontmatter.c - the frontmatter of SKILL.md: which texts become which JSON, and which are
 * refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "base/limits.h"
#include "base/own.h"
#include "cases.h"
#include "serve/frontmatter.h"

#define HEAD "---\nname: a\ndescription: d\n"
#define TAIL "---\nbody\n"

static void check_file(const struct test_case *c)
{
	AUTO(frontmatter_done) struct frontmatter f = { 0 };
	const char *why = NULL;
	bool good = strcmp(c->v[0], "good") == 0;

	if (frontmatter_read(&f, c->v[2], c->len[2], &why) != 0) {
		if (good) {
			cases_fail(c, why);
		} else {
			cases_expect_part(c, 1, why);
		}
	} else if (good) {
		cases_expect(c, 1, f.json);
	} else {
		cases_fail(c, "accepted");
	}
}

static void test_files(void **state)
{
	cases_check("frontmatter.case", 3, check_file);
}

static void check_scalar(const struct test_case *c)
{
	static const char BEFORE[] = "{\"name\":\"a\",\"description\":\"d\",\"x\":";
	AUTO(frontmatter_done) struct frontmatter f = { 0 };
	const char *why = NULL;
	char text[256];

	snprintf(text, sizeof(text), HEAD "x: %s\n" TAIL, c->v[1]);
	if (frontmatter_read(&f, text, strlen(text), &why) != 0) {
		cases_fail(c, why);
		return;
	}
	assert_int_equal(strncmp(f.json, BEFORE, strlen(BEFORE)), 0);
	char *value = f.json + strlen(BEFORE);
	value[strlen(value) - 1] = '\0'; /* removes the closing brace of the object */
	cases_expect(c, 0, value);
}

static void test_scalars(void **state)
{
	cases_check("frontmatter_scalars.case", 2, check_scalar);
}

static void test_cap(void **state)
{
	const char *why = NULL;

	for (size_t past = 0; past < 2; past++) {
		AUTO(frontmatter_done) struct frontmatter f = { 0 };
		auto_free char *text = calloc(1, MAX_YAML_BYTES + 64);
		size_t end = strlen("---\n") + MAX_YAML_BYTES + past;
		size_t at = strlen(HEAD);
		assert_non_null(text);
		memcpy(text, HEAD, at);
		/* Comments fill the block up to the wanted size. */
		memset(text + at, '#', end - at);
		text[end - 1] = '\n';
		memcpy(text + end, TAIL, strlen(TAIL));
		assert_int_equal(frontmatter_read(&f, text, strlen(text), &why),
		                 past == 0 ? 0 : -1);
	}
}

static void test_names(void **state)
{
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
		CASES_TEST(test_files),
		CASES_TEST(test_scalars),
		cmocka_unit_test(test_cap),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
