/* What becomes of a shell command that names a skill's files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The command line is a program, not part of the library. */
#include "cli/shell_line.c"
#include "cli/shell_words.c"

#include "cli/hook_skill.c"

#include "cli/flags.c"
#include "cli/options.c"

#include "cli/hook_programs.c"

#include "cli/hook_judge.c"

static const char MANIFEST[] =
        "skill:\n  name: x\n  version: 1.0.0\n"
        "permissions: {}\nentrypoint:\n  command: python3\n  args: [main.py]\n";
static const char FIXED[] =
        "skill:\n  name: f\n  version: 1.0.0\n"
        "permissions: {}\nentrypoint:\n  command: bash\n  args: [run.sh, --fast]\n";
static const char DIRECT[] = "skill:\n  name: d\n  version: 1.0.0\n"
                             "permissions: {}\nentrypoint:\n  command: ./run\n";

static char world[PATH_MAX]; /* the project: skills/{x,f,d}, tools/, out -> skills/x/main.py */

static void put(const char *path, const char *text)
{
	auto_free char *full = path_from(world, path);
	auto_file f = fopen(full, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static int make_world(void **state)
{
	static const char *const DIRS[] = { "skills",   "skills/x",   "skills/x/sub", "skills/f",
		                            "skills/d", "skills/bad", "tools",        "a b" };

	(void)state;
	char template[] = "/tmp/test-hook-XXXXXX";
	auto_free char *real = realpath(mkdtemp(template), NULL);
	snprintf(world, sizeof(world), "%s", real);
	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		auto_free char *d = path_from(world, DIRS[i]);
		assert_int_equal(mkdir(d, 0755), 0);
	}
	put("skills/x/skillsandbox.yaml", MANIFEST);
	put("skills/x/main.py", "");
	put("skills/x/other.py", "");
	put("skills/x/sub/deep.py", "");
	put("skills/f/skillsandbox.yaml", FIXED);
	put("skills/f/run.sh", "");
	put("skills/d/skillsandbox.yaml", DIRECT);
	put("skills/d/run", "");
	put("skills/bad/skillsandbox.yaml", ":");
	put("skills/bad/main.py", "");
	put("tools/tool.py", "");
	auto_free char *out = path_from(world, "out"),
	               *in = path_from(world, "skills/x/outside.py");
	auto_free char *dir = path_from(world, "by");
	assert_int_equal(symlink("skills/x/main.py", out), 0);
	assert_int_equal(symlink("../../tools/tool.py", in), 0);
	return symlink("skills", dir);
}

static int drop_world(void **state)
{
	char *argv[] = { "rm", "-rf", world, NULL };
	(void)state;
	if (fork() == 0) {
		execv("/bin/rm", argv);
		_exit(1);
	}
	return 0;
}

/* Replaces "W" behind a blank, a quote or at the start by the world's path. */
static void expand(const char *s, struct buf *out)
{
	for (; *s != '\0'; s++) {
		if (*s == '@') {
			buf_adds(out, world);
		} else {
			buf_addc(out, *s);
		}
	}
}

static enum hook_answer ask(const char *command, const char *cwd, bool cdpath, struct buf *ret)
{
	auto_buf text;

	buf_init(&text, 1 << 20);
	buf_init(ret, 1 << 20);
	expand(command, &text);
	auto_free char *dir = path_from(world, cwd);
	const struct hook_question q = { .command = text.data != NULL ? text.data : "",
		                         .len = text.len,
		                         .cwd = dir,
		                         .home = world,
		                         .project = world,
		                         .cdpath = cdpath,
		                         .self = "/usr/bin/skillsandbox" };
	return hook_judge(&q, ret);
}

#define RUN "/usr/bin/skillsandbox run "

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
		{ "python3 main.py \\$HOME", "skills/x", RUN "@/skills/x -- '$HOME'" },
		{ "cd skills/x && python3 main.py a", ".",
		  "cd skills/x && " RUN "@/skills/x -- a" },
		{ "cd skills && cd x && python3 ./main.py", ".",
		  "cd skills && cd x && " RUN "@/skills/x" },
		{ "python3 out a", ".", RUN "@/skills/x -- a" },
		{ "./out a", ".", RUN "@/skills/x -- a" },
		{ "python3 by/x/main.py", ".", RUN "@/skills/x" },
		{ "python3 skills/../skills/x/./main.py", ".", RUN "@/skills/x" },
		{ "bash skills/f/run.sh --fast b", ".", RUN "@/skills/f -- b" },
		{ "./skills/d/run --x=1", ".", RUN "@/skills/d -- '--x=1'" },
		{ "skills/d/run", ".", RUN "@/skills/d" },
		{ "nohup python3 skills/x/main.py", ".", "nohup " RUN "@/skills/x" },
		{ "exec env timeout 5s python3 skills/x/main.py", ".",
		  "exec env timeout 5s " RUN "@/skills/x" },
		{ "python3 skills/x/main.py 2>&1 >'a b/o' </dev/null", ".",
		  RUN "@/skills/x 2>&1 >'a b/o' </dev/null" },
		{ "# now\n python3 skills/x/main.py # so\n", ".", RUN "@/skills/x" },
	};

	(void)state;
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

static void each_is(const char *const commands[], size_t n, enum hook_answer want)
{
	for (size_t i = 0; i < n; i++) {
		auto_buf text;
		enum hook_answer a = ask(commands[i], ".", false, &text);
		if (a != want) {
			print_error("%s: %d instead of %d\n", commands[i], a, want);
		}
		assert_int_equal(a, want);
		if (want != HOOK_PASS) {
			assert_non_null(strstr(text.data, "run_skill"));
			assert_non_null(strstr(text.data, RUN));
		}
	}
}

static void test_denied(void **state)
{
	static const char *const LINES[] = {
		"python3 skills/x/main.py | head",
		"cat skills/x/main.py | python3",
		"python3 < skills/x/main.py",
		"python3 skills/x/main.py; rm x",
		"python3 skills/x/main.py && ls",
		"python3 skills/x/main.py &",
		"python3 skills/x/main.py || true",
		"(python3 skills/x/main.py)",
		"echo $(python3 skills/x/main.py)",
		"echo `python3 skills/x/main.py`",
		"echo \"$(python3 \"skills/x/main.py\")\"",
		"sh -c 'python3 skills/x/main.py'",
		"bash -lc \"cd skills/x && python3 main.py\"",
		"eval 'python3 skills/x/main.py'",
		"eval python3 skills/x/main.py",
		"source skills/x/main.py",
		". skills/x/main.py",
		"A=1 python3 skills/x/main.py",
		"LD_PRELOAD=/tmp/x.so python3 skills/x/main.py",
		"XDG_CONFIG_HOME=/tmp python3 skills/x/main.py",
		"env A=1 python3 skills/x/main.py",
		"env -i python3 skills/x/main.py",
		"sudo python3 skills/x/main.py",
		"nice -n 5 python3 skills/x/main.py",
		"python3 skills/x/other.py",
		"python3 skills/x/sub/deep.py",
		"python3 skills/x/outside.py",
		"python3 skills/x",
		"python3 -m skills/x/main",
		"python3 -c 'exec(open(\"skills/x/main.py\").read())'",
		"python3 -c \"exec(open('skills'+'/x/main.py').read())\" skills/x/main.py",
		"python3 -i skills/x/main.py",
		"python3 -X dev skills/x/main.py",
		"python3 skills/bad/main.py",
		"bash skills/f/run.sh",
		"bash skills/f/run.sh --slow",
		"./skills/f/run.sh --fast extra $HOME/$X",
		"python3 skills/x/main.py $CITY",
		"python3 skills/x/main.py *",
		"python3 skills/*/main.py",
		"python3 sk?lls/x/main.py",
		"python3 {skills,tools}/x/main.py",
		"python3 $D/x/main.py",
		"D=skills; python3 $D/x/main.py",
		"python3 $(echo skills)/x/main.py",
		"python3 $'\\x73kills/x/main.py'",
		"python3 sk\\ills/x/mai\\\nn.py | cat",
		"py\"thon\"3 skills/x/main.py | cat",
		"'python3' 'skills/x/main.py' | cat",
		"if true; then python3 skills/x/main.py; fi",
		"for i in 1; do python3 skills/x/main.py; done",
		"f() { python3 skills/x/main.py; }; f",
		"true\npython3 skills/x/main.py",
		"cd skills/x; python3 main.py",
		"cd skills/x || python3 main.py",
		"cd skills/../skills/x && python3 main.py", /* a shell may go elsewhere */
		"cd $X/skills/x && python3 main.py",
		"pushd skills/x && python3 main.py",
		"python3 <<E\nexec(open('skills/x/main.py').read())\nE",
		"bash <(cat skills/x/main.py)",
		"xargs python3 skills/x/main.py",
		"find skills -name main.py -exec python3 skills/x/main.py ';'",
		"cp tools/tool.py skills/x/new.py && python3 skills/x/new.py",
		"python3 skills/x/main.py 3>&1",
		"python3 skills/x/main.py &> o",
		"busybox sh skills/f/run.sh",
		"uv run skills/x/main.py",
		"node skills/x/main.py 'x",
	};

	(void)state;
	each_is(LINES, ARRAY_LEN(LINES), HOOK_DENY);
}

static void test_asked(void **state)
{
	static const char *const LINES[] = {
		"make -C skills/x",
		"skillsandbox approve --yes skills/x",
		"cd skills/x && skillsandbox approve --yes .",
		"skillsandbox approve --yes $X",
		"nohup /usr/bin/skillsandbox approve $X",
		"./skillsandbox 'approve' --revoke y",
		"skillsandbox setup codex -w",
		"skillsandbox audit prune --keep 0",
		"skillsandbox session resume s",
		"skillsandbox serve --skills skills/x",
		"skillsandbox audit export last -o skills/x/main.py",
		"skillsandbox run --read / skills/x",
		"skillsandbox run -qr/ skills/x",
		"skillsandbox run --policy '' skills/x",
		"skillsandbox run $X skills/x",
		"skillsandbox run --watch $X skills/x",
		"skillsandbox run --nonsense skills/x",
		"skillsandbox run -- skills/x/main.py",
		"echo `echo \\`python3 skills/x/main.py\\``",
		"cp skills/x/main.py /tmp/a.py",
		"ln -s skills/x/main.py b",
		"pytest skills/x/main.py",
		"cd skills/x && npm test",
		"find skills/x -exec cat '{}' ';'",
		"sort --compress-program=skills/d/run x",
		"git -c core.pager=skills/d/run log",
		"rg --pre skills/d/run y",
		"sed e skills/x/main.py",
		"A=skills/x/main.py",
		"A=1 cat skills/x/main.py",
		"cat skills/x/main.py; ./a",
		"cat <<E\nsee skills/x/main.py\nE",
		"for f in skills/x/main.py; do cat $f; done",
		"cat skills/x/main.py 'x",
		"./cat skills/x/main.py",
		"$CAT skills/x/main.py",
		"PYTHONPATH=skills/x ./tools/other",
		"tar xf a.tar -C skills/x",
		"xdg-open */*/*/*/*/y",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(LINES); i++) {
		auto_buf text;
		enum hook_answer a = ask(LINES[i], ".", false, &text);
		if (a != HOOK_ASK) {
			print_error("%s: %d\n", LINES[i], a);
		}
		assert_int_equal(a, HOOK_ASK);
	}
}

static void test_passed(void **state)
{
	static const char *const LINES[] = {
		"",
		"ls",
		"python3 tools/tool.py",
		"cd tools && python3 tool.py | tee x; ./y $(z)/q",
		"cat skills/x/main.py",
		"cat skills/x/main.py | grep -n . | head -5 > o",
		"/bin/cat skills/*/main.py",
		"cd skills/x && ls -la && cat main.py",
		"ls $(dirname skills/x/main.py)",
		"sed -n 1,20p skills/x/main.py",
		"git diff skills/x/main.py",
		"git add skills/x && git status",
		"find skills/x -name '*.py' -newer skills/x/main.py",
		"rm -f skills/x/other.py.bak skills/x/sub",
		"skillsandbox run skills/x -- Paris",
		"/usr/bin/skillsandbox run skills/x -- Paris | head -3",
		"skillsandbox run --watch --session s -q skills/x $CITY --read /",
		"skillsandbox inspect --read / skills/x",
		"skillsandbox validate skills/x && skillsandbox why last",
		"skillsandbox audit show skills/x/trace.jsonl",
		"skillsandbox session check s --action a --cost 1",
		"ls skillsandbox approve",
		"echo 'python3 skills/x/main.py'",
		"for i in a b; do echo $i/q; done",
		"python3 -c 'print(1)'",
		"sh -c 'echo hi' 'unterminated",
		"cat > tools/new.py <<'E'\nprint(1)\nE",
		"python3 Paris",
	};

	(void)state;
	each_is(LINES, ARRAY_LEN(LINES), HOOK_PASS);
}

/* Within the skill's directory nothing has to be named. */
static void test_within(void **state)
{
	static const struct {
		const char *command;
		enum hook_answer want;
	} CASES[] = { { "python3 -m main", HOOK_ASK },
		      { "python3 -c 'import main'", HOOK_ASK },
		      { "python3 main.py", HOOK_REWRITE },
		      { "python3 other.py", HOOK_DENY },
		      { "ls -l", HOOK_PASS },
		      { "uname", HOOK_PASS } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		auto_buf text;
		assert_int_equal(ask(CASES[i].command, "skills/x", false, &text), CASES[i].want);
	}
}

static void test_cdpath(void **state)
{
	auto_buf a, b;

	(void)state;
	assert_int_equal(ask("cd skills/x && python3 main.py", ".", true, &a), HOOK_DENY);
	assert_int_equal(ask("cd ./skills/x && python3 main.py", ".", true, &b), HOOK_REWRITE);
}

static void test_caps(void **state)
{
	auto_buf line, a, b;

	(void)state;
	buf_init(&line, 1 << 20);
	for (size_t i = 0; i <= MAX_SHELL_BYTES; i++) {
		buf_addc(&line, 'a');
	}
	assert_int_equal(ask(line.data, ".", false, &a), HOOK_ASK);
	/* More places than are kept: nobody can say where it is. */
	buf_reset(&line);
	for (size_t i = 0; i < MAX_HOOK_PLACES; i++) {
		auto_free char *dir = NULL;
		char name[32];
		snprintf(name, sizeof(name), "d%zu", i);
		dir = path_from(world, name);
		assert_int_equal(mkdir(dir, 0755), 0);
		buf_addf(&line, "cd @/%s;", name);
		auto_buf text;
		assert_int_equal(ask(line.data, ".", false, &text),
		                 i + 1 < MAX_HOOK_PLACES ? HOOK_PASS : HOOK_ASK);
	}
	buf_init(&b, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rewritten), cmocka_unit_test(test_denied),
		cmocka_unit_test(test_asked),     cmocka_unit_test(test_passed),
		cmocka_unit_test(test_within),    cmocka_unit_test(test_cdpath),
		cmocka_unit_test(test_caps),
	};

	return cmocka_run_group_tests(tests, make_world, drop_world);
}
