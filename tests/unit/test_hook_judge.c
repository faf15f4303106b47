/* test_hook_judge.c - what the hook decides about a shell command that names a skill's files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "hook_world.h"

static void test_rewritten(void **state)
{
	static const struct {
		const char *command, *cwd, *want;
	} CASES[] = {
		{ "python3 skills/x/main.py", ".", RUN "@/skills/x" },
		{ "python3 skills/x/main.py Paris", ".", RUN "@/skills/x -- Paris" },
		{ "python3 -u skills/x/main.py -- -v", ".", RUN "@/skills/x -- -- -v" },
		{ "/usr/bin/python3 @/skills/x/main.py 'New York'", ".",
		  RUN "@/skills/x -- 'New York'" },
		{ "python3 ~/skills/x/main.py", ".", RUN "@/skills/x" },
		{ "python3 \"$CLAUDE_PROJECT_DIR\"/skills/x/main.py a", ".",
		  RUN "@/skills/x -- a" },
		/* the arguments are what they were, whatever a shell makes of them */
		{ "python3 main.py \\$HOME", "skills/x", RUN "@/skills/x -- \\$HOME" },
		{ "python3 skills/x/main.py $CITY", ".", RUN "@/skills/x -- $CITY" },
		{ "python3 skills/x/main.py *", ".", RUN "@/skills/x -- *" },
		{ "cd skills/x && python3 main.py a", ".",
		  "cd skills/x && " RUN "@/skills/x -- a" },
		{ "cd \"skills/x\" && python3 ./main.py", ".",
		  "cd \"skills/x\" && " RUN "@/skills/x" },
		{ "cd skills/x; python3 main.py a", ".", "cd skills/x; " RUN "@/skills/x -- a" },
		{ "cd tools\npython3 ../skills/x/main.py", ".", "cd tools\n" RUN "@/skills/x" },
		/* the same language under another name */
		{ "python skills/x/main.py", ".", RUN "@/skills/x" },
		{ "/usr/bin/python3.11 skills/m/scripts/a.py a", ".",
		  RUN "@/skills/m -- scripts/a.py a" },
		{ "sh skills/m/scripts/c.sh", ".", RUN "@/skills/m -- scripts/c.sh" },
		{ "nodejs skills/m/scripts/d.js", ".", RUN "@/skills/m -- scripts/d.js" },
		/* the first command of a pipe, if the others only look */
		{ "python3 skills/x/main.py | head", ".", RUN "@/skills/x | head" },
		{ "python3 skills/x/main.py a 2>&1 | grep 'b|c' | head -3", ".",
		  RUN "@/skills/x -- a 2>&1 | grep 'b|c' | head -3" },
		{ "python3 skills/x/main.py 3>&1", ".", RUN "@/skills/x -- 3>&1" },
		/* a skill without a manifest, and other paths to a program */
		{ "python3 skills/m/scripts/a.py a", ".", RUN "@/skills/m -- scripts/a.py a" },
		{ "cd skills/m && python3 scripts/a.py", ".",
		  "cd skills/m && " RUN "@/skills/m -- scripts/a.py" },
		{ "skills/m/scripts/b --x", ".", RUN "@/skills/m -- scripts/b --x" },
		{ "perl skills/m/scripts/b", ".", RUN "@/skills/m -- scripts/b" },
		{ "python3 out a", ".", RUN "@/skills/x -- a" },
		{ "./out a", ".", RUN "@/skills/x -- a" },
		{ "python3 by/x/main.py", ".", RUN "@/skills/x" },
		{ "python3 skills/../skills/x/./main.py", ".", RUN "@/skills/x" },
		{ "./skills/d/run --x=1", ".", RUN "@/skills/d -- --x=1" },
		{ "skills/d/run", ".", RUN "@/skills/d" },
		{ "nohup python3 skills/x/main.py", ".", "nohup " RUN "@/skills/x" },
		{ "exec env timeout 5s python3 skills/x/main.py", ".",
		  "exec env timeout 5s " RUN "@/skills/x" },
		{ "python3 skills/x/main.py 2>&1 >'a b/o' </dev/null", ".",
		  RUN "@/skills/x -- 2>&1 >'a b/o' </dev/null" },
		{ "python3 skills/x/main.py ~\"/x\" a=b~/y", ".",
		  RUN "@/skills/x -- ~\"/x\" a=b~/y" },
		{ "python3 skills/x/main.py x=~/y", ".", RUN "@/skills/x -- x=~/y" },
	};

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		auto_buf got, want;
		buf_init(&want, 1 << 16);
		expand(CASES[i].want, &want);
		enum hook_answer a = ask(CASES[i].command, CASES[i].cwd, false, &got);
		if (a != HOOK_REWRITE) {
			print_error("%s: %d\n", CASES[i].command, a);
		}
		assert_int_equal(a, HOOK_REWRITE);
		assert_string_equal(got.data, want.data);
	}
}

/* In the directory of a skill, a command is judged even if it does not name the skill. */
static void test_within(void **state)
{
	static const struct {
		const char *command;
		enum hook_answer want;
	} CASES[] = { { "python3 -m main", HOOK_ASK },
		      { "python3 -c 'import main'", HOOK_ASK },
		      { "python3 main.py", HOOK_REWRITE },
		      { "python3 other.py", HOOK_ASK },
		      { "ls -l", HOOK_PASS },
		      { "uname", HOOK_PASS } };

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		auto_buf text;
		assert_int_equal(ask(CASES[i].command, "skills/x", false, &text), CASES[i].want);
	}
}

static void test_cdpath(void **state)
{
	auto_buf a, b;

	assert_int_equal(ask("cd skills/x && python3 main.py", ".", true, &a), HOOK_ASK);
	assert_int_equal(ask("cd ./skills/x && python3 main.py", ".", true, &b), HOOK_REWRITE);
}

/* Names of directories with brackets are taken literally, not as patterns. */
static void test_brackets(void **state)
{
	static const char *const DIRS[] = { "a[1]",   "a[1]/q",   "a[1]/q/r",   "a[1]/q/r/k",
		                            "a1",     "a[1]/[s]", "a[1]/[s]/q", "a[1]/[s]/q/k",
		                            "a[1]/s", "a1/l" };
	static const char *const LINES[] = {
		"python3 q/r/k/main.py; make",   "cd q/r; python3 k/main.py; make",
		"python3 [s]/q/k/main.py | cat", "python3 '[s]/q/k/main.py' | cat",
		"python3 q/*/k/main.py | cat",   "cd @/a1; python3 l/$X/a.py"
	};

	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		auto_free char *dir = path_from(world, DIRS[i]);
		assert_int_equal(mkdir(dir, 0755), 0);
	}
	put("a[1]/q/r/k/SKILL.md", "");
	put("a[1]/q/r/k/main.py", "");
	put("a[1]/[s]/q/k/SKILL.md", "");
	for (size_t i = 0; i < ARRAY_LEN(LINES); i++) {
		auto_buf text;
		if (ask(LINES[i], "a[1]", false, &text) != HOOK_ASK) {
			fail_msg("%s", LINES[i]);
		}
	}
	auto_buf a, b, c; /* the path ends before a variable or a brace */
	assert_int_equal(ask("python3 @/a[1]/$X/main.py", "tools", false, &a), HOOK_ASK);
	assert_int_equal(ask("python3 @/{a,b}/main.py", "tools", false, &b), HOOK_ASK);
	assert_int_equal(ask("python3 @/a1/{a,b}/main.py", "tools", false, &c), HOOK_PASS);
}

/* With more directories than MAX_HOOK_PLACES, the directory of the command is unknown. */
static void test_caps(void **state)
{
	auto_buf line;

	buf_init(&line, 1 << 20);
	for (size_t i = 0; i < MAX_HOOK_PLACES; i++) {
		auto_free char *dir = NULL;
		char name[32];
		snprintf(name, sizeof(name), "d%zu", i);
		dir = path_from(world, name);
		assert_int_equal(mkdir(dir, 0755), 0);
		buf_addf(&line, "cd @/%s;", name);
		auto_buf text, made;
		buf_init(&made, 1 << 20);
		buf_addf(&made, "%s make", line.data);
		assert_int_equal(ask(made.data, ".", false, &text),
		                 i + 1 < MAX_HOOK_PLACES ? HOOK_PASS : HOOK_ASK);
	}
}

/* A tree with more than MAX_HOOK_WALK files is not searched completely, so it may contain a
 * skill. */
static void test_walk(void **state)
{
	auto_free char *dir = path_from(world, "large");

	assert_int_equal(mkdir(dir, 0755), 0);
	for (size_t i = 0; i <= MAX_HOOK_WALK; i++) {
		char name[PATH_MAX];
		if (i == MAX_HOOK_WALK) {
			auto_buf text;
			assert_int_equal(ask("python3 $F", "large", false, &text), HOOK_PASS);
		}
		snprintf(name, sizeof(name), "%s/%zu", dir, i);
		assert_int_equal(mknod(name, S_IFREG | 0600, 0), 0);
	}
	auto_buf text;
	assert_int_equal(ask("python3 $F", "large", false, &text), HOOK_ASK);
}

/* The owner's own files may be read, but not changed. */
static void test_own_files(void **state)
{
	static const char *const DIRS[] = { "conf", "conf/own", "state", "state/approvals", "yet" };
	static const char *const ASKED[] = {
		"echo x > @/conf/own/policy.yaml",
		"echo x >> conf/own/policy.yaml",
		"echo x 2>~/conf/own/policy.yaml",
		"rm -r ~/state/approvals",
		"rm -r stat*/app*",
		"sed -i s/a/b/ conf/own/policy.yaml",
		"cp x conf/own/policy.yaml",
		"cat x | tee conf/own/policy.yaml",
		"cd conf/own && echo > policy.yaml",
		"python3 skills/x/main.py > conf/own/policy.yaml",
		"for i in 1; do echo > conf/own/x; done",
		"touch not/yet/skillsandbox/policy.yaml",
		"ln -s not/yet/skillsandbox c",
		"mkdir yet/skillsandbox",
		"cat x > /d/skillsandbox/policy.yaml",
		"echo > $D/skillsandbox/policy.yaml",
	};
	static const char *const PASSED[] = {
		"cat conf/own/policy.yaml",     "cat conf/own/policy.yaml 2>/dev/null | head",
		"ls -l state/approvals; cat x", "sed -n 1,5p conf/own/policy.yaml",
		"rm -r conf/x state/../o",
	};

	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		auto_free char *dir = path_from(world, DIRS[i]);
		assert_int_equal(mkdir(dir, 0755), 0);
	}
	auto_free char *config = path_from(world, "conf/own"), *kept = path_from(world, "state"),
	               *soon = path_from(world, "yet/skillsandbox"),
	               *later = path_from(world, "not/yet/skillsandbox");
	size_t wrong = 0;
	for (size_t i = 0; i < ARRAY_LEN(ASKED) + ARRAY_LEN(PASSED); i++) {
		bool asked = i < ARRAY_LEN(ASKED);
		const char *line = asked ? ASKED[i] : PASSED[i - ARRAY_LEN(ASKED)];
		auto_buf text;
		world_config = strstr(line, "t/yet/") != NULL  ? later
		               : strstr(line, " yet/") != NULL ? soon
		               : strstr(line, "/d/") != NULL   ? "/d/skillsandbox"
		                                               : config;
		world_state = kept;
		enum hook_answer a = ask(line, ".", false, &text);
		if (a != (asked ? HOOK_ASK : HOOK_PASS) ||
		    (asked && strstr(text.data, "your own settings or records") == NULL)) {
			print_error("%s: %d\n", line, a);
			wrong++;
		}
	}
	world_config = NULL;
	world_state = NULL;
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rewritten), cmocka_unit_test(test_within),
		cmocka_unit_test(test_cdpath),    cmocka_unit_test(test_caps),
		cmocka_unit_test(test_walk),      cmocka_unit_test(test_brackets),
		cmocka_unit_test(test_own_files),
	};

	return cmocka_run_group_tests(tests, make_world, drop_world);
}
