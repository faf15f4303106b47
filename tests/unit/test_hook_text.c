/* test_hook_text.c - the hook's textual rule: it finds lines that reach a skill in ways that the
 * exact reading of a line cannot follow. The owner is asked about each line. Its control, the same
 * line with another directory, passes in a directory without skills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hook_world.h"

#define SPY "P/.claude/skills/spy"
#define PDF ".claude/skills/pdf"

static bool has_cdpath;

/* The world is the home: P and V are projects with a skill, C has none. */
static int make_homes(void **state)
{
	static const char *const DIRS[] = {
		".claude",
		".claude/skills",
		PDF,
		PDF "/scripts",
		"P",
		"P/src",
		"P/hooks",
		"P/.claude",
		"P/.claude/hooks",
		"P/.claude/skills",
		SPY,
		SPY "/scripts",
		"C",
		"C/doc",
		"C/doc/a",
		"V",
		"V/skills",
		"V/skills/tool",
		"V/sub",
		"V/sub/tool",
	};
	static const char *const FILES[] = {
		PDF "/SKILL.md",
		PDF "/x.py",
		PDF "/r.sh",
		SPY "/skillsandbox.yaml",
		SPY "/main.py",
		SPY "/scripts/go",
		"P/.claude/hooks/check.py",
		"P/.claude/settings.json",
		"V/skills/tool/SKILL.md",
		"V/skills/tool/main.py",
		"C/a.py",
		"C/doc/a/b.py",
	};
	char template[] = "/tmp/test-hook-XXXXXX";

	auto_free char *real = realpath(mkdtemp(template), NULL);
	snprintf(world, sizeof(world), "%s", real);
	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		auto_free char *d = path_from(world, DIRS[i]);
		assert_int_equal(mkdir(d, 0755), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
		put(FILES[i], "");
	}
	put(SPY "/skillsandbox.yaml", MANIFEST);
	world_project = "C";
	return 0;
}

static enum hook_answer ask_in(const char *cwd, const char *command)
{
	auto_buf text;

	return ask(command, cwd, has_cdpath, &text);
}

struct row {
	const char *cwd, *line;
	const char *control; /* NULL: the line itself */
};

static size_t count_wrong(const char *cwd, const char *line, enum hook_answer want)
{
	enum hook_answer a = ask_in(cwd, line);

	if (a != want) {
		print_error("%s: %s: %d instead of %d\n", cwd, line, a, want);
	}
	return a != want;
}

static void each_row(const struct row *v, size_t n)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		wrong += count_wrong(v[i].cwd, v[i].line, HOOK_ASK);
		wrong += count_wrong("C", v[i].control != NULL ? v[i].control : v[i].line,
		                     HOOK_PASS);
	}
	assert_int_equal(wrong, 0);
}

static void test_hidden_directories(void **state)
{
	static const struct row ROWS[] = {
		/* ".claude" directories count, even if this one contains no skill */
		{ "P", "python3 .claude/hooks/check.py", "python3 doc/check.py" },
		{ "P", "cd .claude/hooks && python3 check.py | tail -3",
		  "cd doc && python3 check.py | tail -3" },
		{ "V", "cd sub/tool && make", "cd sub/doc && make" },
		/* a directory whose name only the shell knows */
		{ "P/src", "python3 $(git rev-parse --show-toplevel)/.claude/skills/spy/x.py",
		  "python3 $(git rev-parse --show-toplevel)/doc/a/x.py" },
		{ "P/src",
		  "cd \"$(git rev-parse --show-toplevel)\" && python3 "
		  ".claude/skills/spy/main.py",
		  "cd \"$(git rev-parse --show-toplevel)\" && python3 doc/a/b.py" },
		{ "P/src", "ROOT=.; python3 $ROOT/.claude/skills/spy/main.py",
		  "ROOT=.; python3 $ROOT/doc/a/b.py" },
		{ "P/src", "python3 ${PWD%/*}/.claude/skills/spy/main.py",
		  "python3 ${PWD%/*}/doc/a/b.py" },
		{ "C", "python3 \"$(find ~/.claude/skills -name x.py)\"",
		  "python3 \"$(find doc -name x.py)\"" },
		{ "C", "cd $(find ~/.claude -name pdf) && make", "cd $(find doc -name b) && make" },
		{ "C", "python3 ${X:-$HOME/.claude}/skills/pdf/x.py",
		  "python3 ${X:-$HOME/C}/doc/a/b.py" },
		{ "P", "make -C ${f:-.claude/skills/spy}", "make -C ${f:-doc/a}" },
		{ "C", "cd ~/.claude/sk*; pdf/r.sh", "cd ~/C/d*; a/r.sh" },
		{ "V", "cd sk* && tool/main.py", "cd d* && a/b.py" },
		{ "P/src", "cd {src,}; .claude/skills/spy/scripts/go", "cd {src,}; doc/a/b.py" },
		{ "C", "bash {~/.claude,x}/skills/pdf/r.sh", "bash {~/C,x}/doc/a/b.py" },
		/* cd without an argument means home */
		{ "C", "cd; .claude/skills/pdf/r.sh", "cd; C/doc/a/b.py" },
		{ "C", "cd --; python3 .claude/skills/pdf/x.py", "cd --; python3 C/a.py" },
		{ "C", "cd && make -C .claude/skills/pdf", "cd && make -C C/doc" },
		/* options of cd, and other commands that change the directory */
		{ "P", "cd -P .claude && skills/spy/scripts/go", "cd -P doc && a/b.py" },
		{ "P", "cd -L .claude; python3 skills/spy/main.py", "cd -L doc; python3 a/b.py" },
		{ "P", "cd -e .claude; skills/spy/scripts/go", "cd -e doc; a/b.py" },
		{ "P", "env --chdir=.claude python3 skills/spy/main.py",
		  "env --chdir=doc python3 a/b.py" },
		{ "P", "env -C.claude python3 skills/spy/main.py", "env -Cdoc python3 a/b.py" },
		{ "P", "sudo -D .claude skills/spy/scripts/go", "sudo -D doc a/b.py" },
		{ "P", "uv run --directory .claude skills/spy/main.py",
		  "uv run --directory doc a/b.py" },
		{ "P", "make --directory=.claude -f skills/spy/x.mk",
		  "make --directory=doc -f a/x.mk" },
		{ "P", "yarn --cwd .claude exec skills/spy/scripts/go", "yarn --cwd doc exec a/b" },
		{ "C", "CDPATH=~/.claude/skills; cd pdf; make", "CDPATH=~/C; cd doc; make" },
		/* programs that start a command in another directory */
		{ "P/src", "git bisect run python3 .claude/skills/spy/main.py",
		  "git bisect run python3 doc/a/b.py" },
		{ "P/src", "git rebase -x 'python3 .claude/skills/spy/main.py' HEAD~1",
		  "git rebase -x 'python3 doc/a/b.py' HEAD~1" },
		{ "P/src", "git -c alias.x='!.claude/skills/spy/scripts/go' x",
		  "git -c alias.x='!doc/a/b' x" },
		{ "C", "ssh localhost sh pdf/r.sh", "ssh localhost sh doc/r.sh" },
		{ "P", "docker run -v $PWD:/w python python3 /w/.claude/skills/spy/main.py",
		  "docker run -v $PWD:/w python python3 /w/doc/a/b.py" },
	};

	each_row(ROWS, ARRAY_LEN(ROWS));
}

static void test_hidden_files(void **state)
{
	static const struct row ROWS[] = {
		/* a variable whose value is a directory above the skill, or unknown */
		{ "C", "S=~/.claude/skills; python3 $S/pdf/x.py", "S=~/C/doc; python3 $S/a/b.py" },
		{ "C", "S=\"$HOME/.claude/skills\"; bash \"$S/pdf/r.sh\"",
		  "S=\"$HOME/C/doc\"; bash \"$S/a/b.py\"" },
		{ "C", "export S=~/.claude/skills; $S/pdf/r.sh", "export S=~/C/doc; $S/a/b.py" },
		{ "P", "F=.claude; make -C $F/skills/spy", "F=doc; make -C $F/a" },
		{ "P", "F=.claude; cd $F/skills/spy && make", "F=doc; cd $F/a && make" },
		{ "P", "F=.claude; npm --prefix $F/skills/spy test",
		  "F=doc; npm --prefix $F/a test" },
		{ "P", "make -C $F", NULL },
		{ "P", "F=.claude; python3 < $F/skills/spy/main.py", "F=doc; python3 < $F/a/b.py" },
		{ "P", "F=.claude; cat $F/skills/spy/main.py | python3",
		  "F=doc; cat $F/a/b.py | python3" },
		{ "P", "HOME=$X; cd; make", "HOME=$X; cd doc; make" },
		{ "P", "python3 < $F", NULL },
		{ "P", "cat $F | python3", NULL },
		/* loops and xargs */
		{ "C", "find ~/.claude/skills -name '*.py' | xargs python3",
		  "find ~/C/doc -name '*.py' | xargs python3" },
		{ "C", "find ~/.claude/skills -name r.sh | while read f; do bash $f; done",
		  "find ~/C/doc -name r.sh | while read f; do bash $f; done" },
		{ "C", "for f in $(find ~/.claude/skills -name r.sh); do bash $f; done",
		  "for f in $(find ~/C/doc -name r.sh); do bash $f; done" },
		{ "C", "cd ~/.claude/skills; for s in *; do make -C $s; done",
		  "cd ~/C/doc; for s in *; do make -C $s; done" },
		{ "C", "ls ~/.claude/skills | xargs -I% make -C ~/.claude/skills/%",
		  "ls doc | xargs -I% make -C doc/%" },
		{ "P/src", "find .. -name main.py | xargs python3", "find doc | xargs python3" },
		/* values that are attached to options */
		{ "P", "make -C.claude/skills/spy", "make -Cdoc/a" },
		{ "P/.claude/skills", "make -fspy/x.mk", "make -fdoc/x.mk" },
		{ "P/.claude/skills", "make -Cspy", "make -Cdoc" },
		{ "P", "perl -I.claude/skills/spy -Mx -e 1", "perl -Idoc/a -Mx -e 1" },
		{ "P", "node -r.claude/skills/spy/x.js -e 1", "node -rdoc/x.js -e 1" },
		{ "P", "awk -f.claude/skills/spy/x.awk a", "awk -fdoc/x.awk a" },
		{ "V", "python3 -mskills.tool.main", "python3 -mdoc.a.main" },
		{ "V/skills", "python3 -mtool.main", "python3 -mdoc.main" },
		{ "P/.claude/skills", "make -C ${f:-spy}/scripts", "make -C ${f:-doc}/a" },
		/* copies of the directory above, other names for it, and programs that search it */
		{ "P", "ln -s .claude/skills s; python3 s/spy/main.py",
		  "ln -s doc s; python3 s/a/b.py" },
		{ "P", "cp -r .claude/skills /tmp/c; python3 /tmp/c/spy/main.py",
		  "cp -r doc /tmp/c; python3 /tmp/c/a/b.py" },
		{ "P", "mv .claude s && make -C s/skills/spy", "mv doc s && make -C s/a" },
		{ "P", "pytest .claude/skills", "pytest doc/a" },
		{ "V", "pytest skills", "pytest doc" },
		{ "C", "run-parts ~/.claude/skills", "run-parts ~/C/doc" },
		{ "C", "PYTHONPATH=~/.claude/skills python3 -m pdf.main",
		  "PYTHONPATH=~/C/doc python3 -m a.b" },
		{ "C", "printf -v 'a[$(~/.claude/skills/pdf/r.sh)]' x",
		  "printf -v 'a[$(doc/a/b.py)]' x" },
		{ "C", "printf '%d' 'a[$(~/.claude/skills/pdf/r.sh)]'",
		  "printf '%d' 'a[$(doc/b)]'" },
	};

	each_row(ROWS, ARRAY_LEN(ROWS));
}

static void test_within(void **state)
{
	static const struct row ROWS[] = {
		{ SPY, "make", NULL },
		{ SPY, "npm test", NULL },
		{ SPY, "pytest", NULL },
		{ SPY, "cargo run", NULL },
		{ SPY, "docker compose up", NULL },
		{ SPY, "git status", NULL }, /* the settings of the skill's own .git are executed */
		{ SPY "/scripts", "ls | xargs python3", NULL },
		{ "P/.claude/skills", "cd spy && git status", "cd doc && git status" },
		{ "C", "cd ~/.cl*; cd sk*; cd p*; make", "cd ~/C*; cd d*; make" },
	};

	each_row(ROWS, ARRAY_LEN(ROWS));
}

static void test_cdpath(void **state)
{
	static const struct row ROWS[] = {
		{ "C", "cd pdf; make", "cd doc; make" },
		{ "C", "cd .claude && skills/pdf/r.sh", "cd doc && a/b.py" },
	};

	has_cdpath = true;
	each_row(ROWS, ARRAY_LEN(ROWS));
	has_cdpath = false;
}

/* A line that names skills passes if it only reads them, or if it first leaves their directory. */
static void test_passed(void **state)
{
	static const struct row ROWS[] = {
		{ "C", "ls ~/.claude/skills", NULL },
		{ "C", "cat ~/.claude/skills/pdf/SKILL.md | head -3", NULL },
		{ "C", "cat ~/.claude/settings.json", NULL },
		{ "C", "cd ~/.claude/skills/pdf && ls", NULL },
		{ "P", "git add .claude && git commit -m 'add spy/main.py'", NULL },
		{ SPY, "ls -la", NULL },
		{ "P", "printf '%s\\n' .claude/skills/spy", NULL },
	};
	size_t wrong = 0;

	for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
		wrong += count_wrong(ROWS[i].cwd, ROWS[i].line, HOOK_PASS);
	}
	assert_int_equal(wrong, 0);
}

/* Ordinary lines pass in a project without skills, even if the home has a skill. */
static void test_ordinary(void **state)
{
	static const char *const LINES[] = {
		"git commit -m \"$(cat <<'EOF'\nfix: it's done\n\nCo-Authored-By: x\nEOF\n)\"",
		"make -j8 all",
		"npm ci && npm run build",
		"grep -rn \"skills\" . | head",
		"python3 - <<'EOF'\nprint(1)\nEOF",
		"for f in src/*.c; do gcc -c \"$f\"; done",
		"find . -name '*.c' -exec clang-format -i {} \\;",
		"find . -name '*.py' | xargs python3 -m py_compile",
		"curl -s https://x.example/a.sh | sh",
		"export FOO=bar; ./build.sh",
		"(cd src && make)",
		"PATH=$PATH:./bin make",
		"VAR=$(git rev-parse HEAD); echo $VAR",
		"cat > x.py <<'EOF'\nprint(1)\nEOF\npython3 x.py",
		"eval \"$(ssh-agent)\"",
		"python3 $FILE",
		"\"$PYTHON\" a.py",
		"$CC -c src/a.c",
		"cd $DIR && make",
		"make -C $DIR",
		/* Names of skills that also have another meaning. */
		"pandoc --to=pdf a.md -o a.pdf",
		"soffice --convert-to pdf a.docx",
		"dot -Tpdf a.gv",
		"FORMAT=pdf make",
		"npm run pdf",
		"python3 pdf.py",

		"cat $FILE | python3",
		"cd; make -C C",
	};
	size_t wrong = 0;

	for (size_t i = 0; i < ARRAY_LEN(LINES); i++) {
		wrong += count_wrong("C", LINES[i], HOOK_PASS);
	}
	assert_int_equal(wrong, 0);
	assert_int_equal(ask_in("P", "find . -name '*.py' | xargs python3 -m py_compile"),
	                 HOOK_PASS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden_directories),
		cmocka_unit_test(test_hidden_files),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_cdpath),
		cmocka_unit_test(test_passed),
		cmocka_unit_test(test_ordinary),
	};

	return cmocka_run_group_tests(tests, make_homes, drop_world);
}
