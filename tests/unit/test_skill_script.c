/* test_skill_script.c - a run can name a script of the skill: which interpreter runs it, which
 * names are refused, and which scripts are listed. */
#include "skill_world.h"

static void test_scripts(void **state)
{
	const char *dir = fresh();
	char sub[64];
	static const struct {
		const char *word;
		const char *argv; /* or a part of the error message */
		enum ssb_code code;
	} rows[] = {
		{ "scripts/a.py", "python3 /skill/scripts/a.py", SSB_OK },
		{ "./scripts//a.py", "python3 /skill/scripts//a.py", SSB_OK },
		{ "scripts/b", "sh -e /skill/scripts/b", SSB_OK },
		{ "scripts/c.js", "node /skill/scripts/c.js", SSB_OK },
		{ "scripts/d.mjs", "node /skill/scripts/d.mjs", SSB_OK },
		{ "scripts/e.rb", "ruby /skill/scripts/e.rb", SSB_OK },
		{ "scripts/f.pl", "perl /skill/scripts/f.pl", SSB_OK },
		{ "scripts/g.bash", "bash /skill/scripts/g.bash", SSB_OK },
		/* its first line names an interpreter that does not exist */
		{ "scripts/h.sh", "sh /skill/scripts/h.sh", SSB_OK },
		{ "scripts/elf", "/skill/scripts/elf", SSB_OK },
		{ "link.py", "python3 /skill/link.py", SSB_OK },
		{ "scripts/i.ts", "does not say what runs it", SSB_E_USAGE },
		{ "SKILL.md", "does not say what runs it", SSB_E_USAGE },
		{ "scripts/elf-not", "not executable", SSB_E_NOT_EXEC },
		{ "scripts", "not a regular file", SSB_E_USAGE },
		{ "fifo.py", "not a regular file", SSB_E_USAGE },
		{ "out.py", "leaves the skill", SSB_E_POLICY },
		{ "up.py", "leaves the skill", SSB_E_POLICY },
		{ "../other/x.py", "\"..\"", SSB_E_USAGE },
		{ "scripts/../scripts/a.py", "\"..\"", SSB_E_USAGE },
		{ "/etc/passwd", "outside the skill", SSB_E_USAGE },
		{ "--help", "not the path", SSB_E_USAGE },
		{ "", "not the path", SSB_E_USAGE },
		{ "a\nb.py", "", SSB_E_NOT_FOUND },
		{ "a\033b.py", "invisible", SSB_E_USAGE },
		{ "scripts/bytes", "does not say what runs it", SSB_E_USAGE },
		/* the message lists the scripts that exist */
		{ "nosuch.py", "scripts/a.py", SSB_E_NOT_FOUND },
	};

	policy(NULL);
	put(dir, "SKILL.md", FRONT(""), 0644);
	snprintf(sub, sizeof(sub), "%s/scripts", dir);
	assert_int_equal(mkdir(at(sub), 0755), 0);
	put(sub, "a.py", "\xef\xbb\xbf#!/usr/bin/env python3\r\n", 0644);
	put(sub, "b", "#!/usr/bin/env -S sh -e\n", 0644);
	put(sub, "c.js", "", 0644);
	put(sub, "d.mjs", "x", 0644);
	put(sub, "e.rb", "x", 0644);
	put(sub, "f.pl", "x", 0644);
	put(sub, "g.bash", "x", 0644);
	put(sub, "h.sh", "#!/opt/no/such/interpreter\n", 0644);
	put(sub, "i.ts", "x", 0755);
	put(sub, "elf", "\177ELF", 0755);
	put(sub, "elf-not", "\177ELF", 0644);
	put(sub, "bytes", "#!/bin/sh \xff\n", 0644);
	put("other", "x.py", "x", 0644);
	char link[600];
	snprintf(link, sizeof(link), "%s/link.py", at(dir));
	assert_int_equal(symlink("scripts/a.py", link), 0);
	snprintf(link, sizeof(link), "%s/out.py", at(dir));
	assert_int_equal(symlink("/etc/passwd", link), 0);
	snprintf(link, sizeof(link), "%s/up.py", at(dir));
	assert_int_equal(symlink("../other/x.py", link), 0);
	snprintf(link, sizeof(link), "%s/fifo.py", at(dir));
	assert_int_equal(mkfifo(link, 0644), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char word[64];
		char *args[] = { word, NULL };
		snprintf(word, sizeof(word), "%s", rows[i].word);
		if (rows[i].code != SSB_OK) {
			refused_with(dir, args, rows[i].code, rows[i].argv);
			continue;
		}
		struct ssb_plan *p = plan_of(dir, args, NULL);
		auto_buf told = BUF(4096);
		for (size_t k = 0; k < p->argv.n; k++) {
			buf_addf(&told, "%s%s", k > 0 ? " " : "", p->argv.v[k]);
		}
		assert_string_equal(told.data, rows[i].argv);
		ssb_plan_free(p);
	}
	/* A script's first line of the maximum length, and one byte longer. */
	for (size_t past = 0; past < 2; past++) {
		char line[MAX_SHEBANG_BYTES + 2] = "#!/bin/sh ";
		char *args[] = { (char[]){ "scripts/long" }, NULL };
		memset(line + strlen(line), 'x', MAX_SHEBANG_BYTES - 1 - strlen(line) + past);
		line[MAX_SHEBANG_BYTES - 1 + past] = '\n';
		put(sub, "long", line, 0644);
		if (past > 0) {
			refused_with(dir, args, SSB_E_USAGE, "does not say");
			continue;
		}
		struct ssb_plan *p = plan_of(dir, args, NULL);
		assert_string_equal(p->argv.v[0], "/bin/sh");
		ssb_plan_free(p);
	}
	/* A path that has the maximum length together with "/skill/", and one byte longer. */
	for (size_t past = 0; past < 2; past++) {
		char word[MAX_PATH_BYTES];
		char *args[] = { word, NULL };
		size_t len = MAX_PATH_BYTES - strlen("/skill/") - 1 + past;
		for (size_t i = 0; i < len; i++) {
			word[i] = i % 2 > 0 ? '/' : 'a';
		}
		word[len] = '\0';
		refused_with(dir, args, past > 0 ? SSB_E_USAGE : SSB_E_NOT_FOUND,
		             past > 0 ? "is too long" : "");
	}
	/* A script can be named by its full path, as a shell's completion writes it. */
	char *whole[] = { at("s/scripts/a.py"), NULL };
	snprintf(whole[0], 512, "%s/%s/scripts/a.py", top, dir);
	struct ssb_plan *p = plan_of(dir, whole, NULL);
	assert_string_equal(p->argv.v[1], "/skill/scripts/a.py");
	ssb_plan_free(p);
}

/* The name of the script is in a comment of the derived manifest: a newline in the name must not
 * add a line of YAML. */
static void test_script_name(void **state)
{
	static const char *const NAMES[] = { "plain.py", "a\nresources: {memory_mb: 4096}\n#.py" };

	policy(NULL);
	for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
		const char *dir = fresh();
		char word[64];
		char *args[] = { word, NULL };
		snprintf(word, sizeof(word), "%s", NAMES[i]);
		put(dir, word, "", 0644);
		struct ssb_plan *p = plan_of(dir, args, NULL);
		assert_int_equal(p->res.memory_mb, DEF_MEMORY_MB);
		assert_string_equal(p->argv.v[0], "python3");
		ssb_plan_free(p);
	}
}

static void test_no_script(void **state)
{
	const char *dir = fresh();
	struct ssb_error err = { 0 };

	put(dir, "SKILL.md", ASKS, 0644);
	struct ssb_plan *p = plan_of(dir, NO_ARGS, NULL);
	assert_int_equal(p->argv.n, 0);
	assert_string_equal(p->scripts, "none");
	assert_true(plan_lacks_script(p));
	assert_int_equal(p->n_withheld, 4); /* the plan is complete apart from the entry point */
	assert_int_equal(ssb_run(p, (const int[3]){ 0, 1, 2 }, NULL, &err), -1);
	assert_int_equal(err.code, SSB_E_USAGE);
	ssb_plan_free(p);
	/* If there is only one script, the message names it, but it is not run. */
	put(dir, "only.py", "", 0644);
	p = plan_of(dir, NULL, NULL);
	assert_int_equal(p->argv.n, 0);
	assert_string_equal(p->scripts, "only.py");
	ssb_plan_free(p);
	/* Control characters in names are escaped, and names that do not fit are counted. */
	for (int i = 0; i < 60; i++) {
		char name[64];
		snprintf(name, sizeof(name), "n%02d-\033[2J.py", i);
		put(dir, name, "", 0644);
	}
	p = plan_of(dir, NULL, NULL);
	assert_null(strchr(p->scripts, '\033'));
	assert_non_null(strstr(p->scripts, " more"));
	assert_true(strlen(p->scripts) < sizeof(err.text) / 2);
	ssb_plan_free(p);
}

static size_t names_of(const char *dir)
{
	size_t n = 1;
	auto_buf out = BUF(1 << 20);

	struct skill_dir d = SKILL_DIR_NONE;
	struct ssb_error err = { 0 };
	assert_int_equal(skill_dir_open(at(dir), &d, &err), 0);
	skill_scripts(&d, &out);
	skill_dir_close(&d);
	for (const char *p = out.data; p != NULL && (p = strstr(p, ", ")) != NULL; p++) {
		n++;
	}
	return out.len == 0 ? 0 : n;
}

/* Scripts that are too deep, or too many, are not listed. Each limit is tested exactly, and one
 * past it. */
static void test_script_caps(void **state)
{
	const char *dir = fresh();
	char path[256];

	snprintf(path, sizeof(path), "%s", dir);
	for (size_t depth = 0; depth <= MAX_SCRIPT_DEPTH + 1; depth++) {
		put(path, "x.py", "", 0644);
		strncat(path, "/d", sizeof(path) - strlen(path) - 1);
		assert_int_equal(mkdir(at(path), 0755), 0);
	}
	assert_int_equal(names_of(dir), MAX_SCRIPT_DEPTH + 1);
	dir = fresh();
	for (size_t i = 0; i < MAX_SCRIPT_NAMES + 1; i++) {
		assert_int_equal(names_of(dir), i);
		snprintf(path, sizeof(path), "%zu.sh", i);
		put(dir, path, "", 0644);
	}
	assert_int_equal(names_of(dir), MAX_SCRIPT_NAMES);
	/* The entries "." and ".." count for MAX_SCRIPT_WALK, too. */
	dir = fresh();
	for (size_t i = 0; i < MAX_SCRIPT_WALK - 3; i++) {
		snprintf(path, sizeof(path), ".%zu", i);
		put(dir, path, "", 0644);
	}
	put(dir, "a.sh", "", 0644);
	assert_int_equal(names_of(dir), 1);
	/* If there are more entries than the limit, some scripts are missing in the list, in
	 * whatever order the entries are read. */
	for (size_t i = 0; i < 2; i++) {
		char *sub = at("many");
		(void)mkdir(sub, 0755);
		for (size_t k = 0; k < 100; k++) {
			snprintf(path, sizeof(path), "%zu-%zu.sh", i, k);
			put("many", path, "", 0644);
		}
		for (size_t k = 0; i == 0 && k < MAX_SCRIPT_WALK; k++) {
			snprintf(path, sizeof(path), ".%zu", k);
			put("many", path, "", 0644);
		}
	}
	assert_true(names_of("many") < 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_script_name),
		cmocka_unit_test(test_no_script),
		cmocka_unit_test(test_script_caps),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
