/* test_says.c - the requirements (variables, programs, packages) that are read from a SKILL.md or a
 * manifest.yaml, in every way to write them. */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/limits.h"
#include "base/own.h"
#include "cases.h"
#include "manifest/manifest.h"
#include "skill/derive.h"
#include "skill/loose.h"
#include "skill/says.h"
#include "skill/script.h"

/* Writes the contents of `s` as "env=A,B bins=x any=y os=linux packages=p name=N version=V",
 * without empty parts. */
static void tell(struct buf *out, const struct says *s)
{
	static const char *const KINDS[] = { "env", "bins", "any", "os", "packages" };

	if (s->name != NULL) {
		buf_addf(out, "name=%s ", s->name);
	}
	if (s->version != NULL) {
		buf_addf(out, "version=%s ", s->version);
	}
	for (size_t i = 0; i < WISH_KINDS; i++) {
		for (size_t k = 0; k < s->wishes[i].n; k++) {
			buf_addf(out, "%s%s", k > 0 ? "," : "", k > 0 ? "" : KINDS[i]);
			buf_addf(out, "%s%s", k > 0 ? "" : "=", s->wishes[i].v[k].name);
		}
		buf_adds(out, s->wishes[i].n > 0 ? " " : "");
	}
}

static bool warned(const struct ssb_diags *d, const char *part)
{
	for (size_t i = 0; i < ssb_diags_count(d); i++) {
		if (strstr(ssb_diags_get(d, i)->text, part) != NULL) {
			return true;
		}
	}
	return false;
}

typedef int reader(struct says *ret, const char *file, const char *text, size_t len,
                   struct ssb_diags *diags);

/* Checks that a valid manifest can be made from `s`, and that it requests only what is in `s`. */
static void check_manifest(const struct says *s)
{
	const struct derived d = { "SKILL.md", "directory", s, NULL };
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(manifest_freep) struct manifest *m = NULL;
	struct ssb_error err = { 0 };
	auto_buf text = BUF(MAX_YAML_BYTES);

	derive_manifest(&text, &d);
	assert_false(text.failed);
	if (manifest_parse_as(ENTRY_OPTIONAL, "SKILL.md", text.data, text.len, &m, diags, &err) !=
	    0) {
		fail_msg("%s: %s in\n%s", err.where, err.text, text.data);
	}
	assert_int_equal(ssb_diags_count(diags), 0);
	assert_string_equal(m->name, s->name != NULL ? s->name : "directory");
	assert_int_equal(m->n_egress, 0);
	assert_int_equal(m->read.n + m->write.n, 0);
	assert_int_equal(m->env.n, s->wishes[WISH_ENV].n);
	assert_int_equal(m->profile, PROFILE_DEFAULT);
	assert_null(m->command.s);
	if (s->description != NULL) {
		assert_string_equal(m->description, s->description);
	}
}

static void check(reader *read, const struct test_case *c)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	AUTO(says_done) struct says s = { 0 };
	const char *warning = c->v[1];
	auto_buf told = BUF(1 << 16);

	buf_adds(&told, "");
	assert_int_equal(read(&s, "SKILL.md", c->v[2], c->len[2], diags), 0);
	tell(&told, &s);
	if (told.len > 0 && told.data[told.len - 1] == ' ') {
		told.data[told.len - 1] = '\0';
	}
	cases_expect(c, 0, told.data);
	assert_false(diag_has_errors(diags));
	if (warning[0] == '\0' && ssb_diags_count(diags) > 0) {
		cases_fail(c, ssb_diags_get(diags, 0)->text);
	}
	if (warning[0] != '\0' && !warned(diags, warning)) {
		cases_fail(c, ssb_diags_count(diags) > 0 ? ssb_diags_get(diags, 0)->text
		                                         : "no warning");
	}
	check_manifest(&s);
}

#define OPENCLAW "metadata:\n  openclaw:\n    requires:\n      env: [KEY_A]\n      bins: [jq]\n"

static void check_markdown(const struct test_case *c)
{
	check(says_markdown, c);
}

static void test_markdown(void **state)
{
	cases_check("says_markdown.case", 3, check_markdown);
}

static void check_skillware(const struct test_case *c)
{
	check(says_skillware, c);
}

static void test_skillware(void **state)
{
	cases_check("says_skillware.case", 3, check_skillware);
}

static void test_places(void **state)
{
	static const char TEXT[] = "\n---\nname: a\ndescription: x: y\n" OPENCLAW "---\n";
	AUTO(says_done) struct says s = { 0 };

	/* The broken text is read entry by entry, and the same requirements are found. */
	assert_int_equal(says_markdown(&s, "f", TEXT, strlen(TEXT), NULL), 0);
	assert_int_equal(s.wishes[WISH_ENV].n, 1);
	assert_int_equal(s.wishes[WISH_ENV].v[0].line, 8);
	assert_string_equal(s.wishes[WISH_ENV].v[0].key, "metadata.openclaw.requires.env");
	assert_string_equal(s.description, "x: y");
}

/* Each list at its limit, and one entry past it. */
static void test_caps(void **state)
{
	for (size_t past = 0; past < 2; past++) {
		AUTO(says_done) struct says s = { 0 };
		AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
		auto_buf text = BUF(1 << 20);
		buf_adds(&text, "---\nmetadata: {openclaw: {requires: {env: [");
		for (size_t i = 0; i < MAX_WISHES + past; i++) {
			buf_addf(&text, "%sV%zu", i > 0 ? "," : "", i);
		}
		buf_adds(&text, "]}}}\n---\n");
		assert_int_equal(says_markdown(&s, "f", text.data, text.len, diags), 0);
		assert_int_equal(s.wishes[WISH_ENV].n, MAX_WISHES);
		assert_int_equal(warned(diags, "beyond the limit"), past);
		check_manifest(&s);
	}
	for (size_t past = 0; past < 2; past++) {
		AUTO(says_done) struct says s = { 0 };
		AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
		auto_buf text = BUF(1 << 20);
		buf_adds(&text, "---\nbroken: [\n");
		for (size_t i = 0; i < MAX_LOOSE_ENTRIES - 2 + past; i++) {
			buf_addf(&text, "k%zu: v\n", i);
		}
		buf_adds(&text, "name: a\n---\n");
		assert_int_equal(says_markdown(&s, "f", text.data, text.len, diags), 0);
		assert_int_equal(s.name != NULL, past == 0);
		assert_int_equal(warned(diags, "too many entries"), past);
	}
	for (size_t past = 0; past < 2; past++) {
		AUTO(says_done) struct says s = { 0 };
		auto_buf text = BUF(1 << 20);
		for (size_t i = 0; i < MAX_BLANK_LINES + past; i++) {
			buf_addc(&text, '\n');
		}
		buf_adds(&text, "---\nname: a\n---\n");
		assert_int_equal(says_markdown(&s, "f", text.data, text.len, NULL), 0);
		assert_int_equal(s.name != NULL, past == 0);
	}
}

static void test_large(void **state)
{
	AUTO(says_done) struct says s = { 0 };
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	auto_buf text = BUF(1 << 20);

	buf_adds(&text, "---\nname: a\nx: ");
	while (text.len < MAX_YAML_BYTES + 10) {
		buf_adds(&text, "y");
	}
	buf_adds(&text, "\n---\n");
	assert_int_equal(says_markdown(&s, "f", text.data, text.len, diags), 0);
	assert_null(s.name);
	assert_true(warned(diags, "too large"));
	/* A long description is cut, but never within a UTF-8 character. */
	says_done(&s);
	buf_reset(&text);
	buf_adds(&text, "---\ndescription: ");
	for (size_t i = 0; i < 800; i++) {
		buf_adds(&text, "€");
	}
	buf_adds(&text, "\n---\n");
	assert_int_equal(says_markdown(&s, "f", text.data, text.len, NULL), 0);
	assert_int_equal(strlen(s.description), 1023);
	check_manifest(&s);
}

/* In a broken document, one entry contains thousands of quoted keys. They do not begin new entries,
 * and the result has at most MAX_LOOSE_ENTRIES entries. */
static void test_hidden_entries(void **state)
{
	AUTO(diags_freep) struct ssb_diags *diags = ssb_diags_new();
	size_t n = 0;
	auto_buf text = BUF(MAX_YAML_BYTES);

	for (size_t i = 0; i < 9000; i++) {
		buf_addf(&text, i % 3000 == 0 ? "k%zu: 1\n" : "\"%zu\": 1\n", i);
	}
	buf_adds(&text, "z: [\n");
	assert_false(text.failed);
	struct ynode *root = loose_read("SKILL.md", text.data, text.len, 1, diags);
	assert_non_null(root);
	for (const struct ynode *e = root->first; e != NULL; e = e->next) {
		n++;
	}
	yaml_doc_free(root);
	assert_int_equal(n, MAX_LOOSE_ENTRIES);
}

static void test_shebang(void **state)
{
	static const struct {
		const char *line, *expected; /* expected text; NULL: none */
	} rows[] = {
		{ "#!/bin/sh\n", "/bin/sh" },
		{ "#! /usr/bin/perl -w\nx", "/usr/bin/perl -w" },
		{ "#!/usr/bin/env python3\r\nx", "python3" },
		{ "#!/usr/bin/env -S python3 -u\n", "python3 -u" },
		{ "#!/usr/bin/env -Spython3 -u", "python3 -u" },
		{ "#!/usr/bin/env -S A=1 python3\n", "/usr/bin/env A=1 python3" },
		{ "#!/usr/bin/env -i sh\n", "/usr/bin/env -i sh" },
		{ "#!/usr/bin/env\n", "/usr/bin/env" },
		{ "#!/usr/bin/env -S\n", "/usr/bin/env" },
		{ "#!a b c d e f g h", "a b c d e f g h" },
		{ "#!a b c d e f g h i", NULL },
		{ "#!", NULL },
		{ "#!\n/bin/sh", NULL },
		{ "#! \t\r\n", NULL },
		{ "#", NULL },
		{ "", NULL },
		{ "echo\n#!/bin/sh\n", NULL },
		{ "#!/bin/\x01sh\n", NULL },
		{ "#!/bin/\xffsh\n", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO(script_done) struct script s = { 0 };
		auto_buf words = BUF(1024);
		int rc = script_read_shebang(rows[i].line, strlen(rows[i].line), &s);
		for (size_t k = 0; k < s.n; k++) {
			buf_addf(&words, "%s%s", k > 0 ? " " : "", s.words[k]);
		}
		assert_int_equal(rc, rows[i].expected != NULL ? 0 : -1);
		if (rows[i].expected != NULL) {
			assert_string_equal(words.data, rows[i].expected);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASES_TEST(test_markdown),      CASES_TEST(test_skillware),
		cmocka_unit_test(test_places),  cmocka_unit_test(test_caps),
		cmocka_unit_test(test_large),   cmocka_unit_test(test_hidden_entries),
		cmocka_unit_test(test_shebang),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
