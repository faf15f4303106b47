/* test_hook_reason.c - what the hook says when it asks, and which lines of a working day it asks
 * about, in a project with two skills in .claude/skills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hook_world.h"

#define CSV     ".claude/skills/csv-report"
#define PDF     ".claude/skills/pdf"
#define SAYS    "skillsandbox: this "
#define OUTSIDE ", and may start it outside the sandbox; call the tool run_skill instead"
#define WRITE   ", or write this in its place: " RUN

static int make_project(void **state)
{
	static const char *const DIRS[] = { ".claude", ".claude/skills", CSV,   CSV "/scripts",
		                            PDF,       PDF "/scripts",   "src", "tests",
		                            "docs",    PDF "/it's",      "o's", "o's/k" };
	char template[] = "/tmp/test-hook-XXXXXX";

	auto_free char *real = realpath(mkdtemp(template), NULL);
	snprintf(world, sizeof(world), "%s", real);
	for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
		auto_free char *d = path_from(world, DIRS[i]);
		assert_int_equal(mkdir(d, 0755), 0);
	}
	put(CSV "/SKILL.md", "---\nname: csv-report\n---\n");
	put(CSV "/scripts/report.py", "");
	put(PDF "/SKILL.md", "---\nname: pdf\n---\n");
	put(PDF "/scripts/fill.py", "");
	put(PDF "/it's/a.py", "");
	put("o's/k/SKILL.md", "");
	put("o's/k/a.py", "");
	put("src/app.py", "");
	return 0;
}

/* The user reads in one sentence what would be granted, or what would start and how to run it. */
static void test_reasons(void **state)
{
	static const struct {
		const char *command, *want;
	} CASES[] = {
		{ "skillsandbox run --net example.org --project " CSV " -- scripts/report.py x",
		  SAYS "would grant the skill csv-report: --net example.org --project" },
		{ "skillsandbox run --net=a.org -q -r ~ --json " CSV " scripts/report.py --read",
		  SAYS "would grant the skill csv-report: --net=a.org -r @ --read" },
		{ "skillsandbox run --env 'a\x1b[2J' -- ls",
		  SAYS "would grant a command: --env a__2J" },
		{ "S=skillsandbox; $S run --read / " PDF,
		  SAYS "would grant the skill pdf: --read /" },
		{ "git commit -m approve && skillsandbox run --read / -- ls",
		  SAYS "would grant a command: --read /" },
		{ "skillsandbox approve --yes " CSV,
		  SAYS "would approve the skill csv-report; approve it yourself at a terminal: "
		       "/usr/bin/skillsandbox approve @/" CSV },
		{ "bash -c 'skillsandbox approve " PDF "'",
		  SAYS "would approve the skill pdf; approve it yourself at a terminal: "
		       "/usr/bin/skillsandbox approve @/" PDF },
		{ "skillsandbox approve --yes \"$D\"", SAYS "would approve a skill" },
		{ "skillsandbox approve src", SAYS "would approve src" },
		{ "skillsandbox approve --revoke " PDF,
		  SAYS "would take back the approval of the skill pdf" },
		{ "skillsandbox allow " CSV " --net a.org",
		  SAYS "would allow the skill csv-report: --net a.org; allow it yourself at a "
		       "terminal: /usr/bin/skillsandbox allow @/" CSV " --net a.org" },
		{ "skillsandbox allow " CSV " -r 'a b'",
		  SAYS "would allow the skill csv-report: -r a_b" },
		{ "skillsandbox allow --revoke " PDF " --net a.org",
		  SAYS "would take back what is allowed for the skill pdf" },
		{ "skillsandbox shell --preset node " PDF,
		  SAYS "would grant the skill pdf: --preset node" },
		{ "skillsandbox run 2>/dev/null -w 5 -- ls", SAYS "would grant a command: -w 5" },
		{ "skillsandbox allow --last", SAYS "would allow a skill: --last" },
		{ "skillsandbox setup codex --write",
		  SAYS "would change what an agent starts, by setup codex: --write" },
		{ "skillsandbox serve --write ~ --skills .claude/skills",
		  SAYS "would grant all skills that it serves: --write @" },
		{ "A=1 skillsandbox session resume s", SAYS "would resume a session" },
		{ "skillsandbox audit prune --keep 0", SAYS "would delete records of runs" },
		{ "skillsandbox approvals --json --revoke pdf",
		  SAYS "would take back the approval of pdf" },
		{ "skillsandbox learn --write " PDF,
		  SAYS "would write or widen what is allowed for the skill pdf" },
		{ "skillsandbox $X",
		  SAYS "may start skillsandbox in a way that changes what skills may do" },
		{ "uv run ~/" CSV "/scripts/report.py x",
		  SAYS "names scripts/report.py of the skill csv-report (@/" CSV ")" OUTSIDE WRITE
		       "@/" CSV " -- scripts/report.py x" },
		{ "sudo python3 \"$PWD/" PDF "/scripts/fill.py\" 'a b' 2> o",
		  SAYS "names scripts/fill.py of the skill pdf (@/" PDF ")" OUTSIDE WRITE "@/" PDF
		       " -- scripts/fill.py 'a b'" },
		{ "cd src && ls && python3 ../" PDF "/scripts/fill.py $X; ls",
		  SAYS "names scripts/fill.py of the skill pdf (@/" PDF ")" OUTSIDE WRITE "@/" PDF
		       " -- scripts/fill.py $X" },
		{ "sh -c 'perl " PDF "/scripts/fill.py a b' c",
		  SAYS "names scripts/fill.py of the skill pdf (@/" PDF ")" OUTSIDE WRITE "@/" PDF
		       " -- scripts/fill.py a b" },
		/* the arguments, or what starts the file, are not known */
		{ "sh -c \"python3 " PDF "/scripts/fill.py \\\"a b\\\"\"",
		  SAYS "names scripts/fill.py of the skill pdf (@/" PDF ")" OUTSIDE },
		{ "mv " PDF "/SKILL.md x",
		  SAYS "names SKILL.md of the skill pdf (@/" PDF ")" OUTSIDE },
		{ "make -C " PDF,
		  SAYS "names files of the skill pdf (@/" PDF "), and may start one outside the "
		       "sandbox; call the tool run_skill instead" },
	};
	size_t wrong = 0;

	for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
		auto_buf got, want;
		buf_init(&want, 1 << 16);
		expand(CASES[i].want, &want);
		enum hook_answer a = ask(CASES[i].command, ".", false, &got);
		if (a != HOOK_ASK || strcmp(got.data, want.data) != 0) {
			print_error("%s: %d\n%s\n%s\n", CASES[i].command, a,
			            got.data != NULL ? got.data : "", want.data);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

/* A line repeats its words in the reason only up to a bound. */
static void test_bound(void **state)
{
	auto_buf line, got;

	buf_init(&line, 1 << 20);
	buf_adds(&line, "skillsandbox allow " PDF);
	for (size_t i = 0; i < 150; i++) {
		buf_adds(&line, " --net example.org");
	}
	assert_int_equal(ask(line.data, ".", false, &got), HOOK_ASK);
	assert_non_null(strstr(got.data, "would allow the skill pdf: --net"));
	assert_true(got.len < 1000);
	auto_buf long_name, text;
	buf_init(&long_name, 1 << 20);
	buf_adds(&long_name, "skillsandbox approve ");
	for (size_t i = 0; i < 150; i++) {
		buf_adds(&long_name, "name");
	}
	assert_int_equal(ask(long_name.data, ".", false, &text), HOOK_ASK);
	assert_string_equal(text.data, SAYS "would approve a skill");
}

static void each(const char *const lines[], size_t n, enum hook_answer want)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		auto_buf text;
		enum hook_answer a = ask(lines[i], ".", false, &text);
		if (a != want) {
			print_error("%s: %d instead of %d\n", lines[i], a, want);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

static void test_working_day(void **state)
{
	static const char *const LINES[] = {
		"git status",
		"git diff HEAD~1 -- src",
		"git log --oneline -20 | cat",
		"git add -A && git commit -m \"fix the parser\"",
		"git commit --amend --no-edit",
		"git push -u origin HEAD",
		"git fetch origin && git rebase origin/main",
		"git checkout -b fix/parser",
		"git stash && git pull --rebase && git stash pop",
		"git show HEAD:src/app.py | head -50",
		"git blame -L 10,20 src/app.py",
		"git ls-files '*.py' | xargs black",
		"git grep -n TODO -- src",
		"git branch --merged | grep -v main | xargs git branch -d",
		"git diff --name-only main | grep py$ | xargs ruff check",
		"git rev-parse --short HEAD",
		"npm ci",
		"npm run build && npm test",
		"npx tsc --noEmit",
		"npx eslint src --fix",
		"node -e 'console.log(process.version)'",
		"node scripts/build.js --prod",
		"yarn install --frozen-lockfile",
		"pytest -q tests/test_app.py -k parser",
		"python3 -m pytest -x --tb=short",
		"python -m pip install -r requirements.txt",
		"python3 -m venv .venv && . .venv/bin/activate && pip install -e .",
		"python3 -c \"import json; print(json.load(open('package.json'))['version'])\"",
		"python3 -m py_compile src/app.py",
		"python3 -m py_compile .claude/skills/pdf/scripts/fill.py",
		"uv run pytest -q",
		"uv sync",
		"ruff check . && mypy src",
		"pre-commit run --all-files",
		"make -j8",
		"make -C src clean all",
		"make test VERBOSE=1 2>&1 | tee build.log | tail -20",
		"cmake -S . -B build && cmake --build build -j4",
		"cargo test -- --nocapture",
		"go test ./... 2>&1 | grep -v 'no test files'",
		"docker compose up -d",
		"docker compose logs --tail=50 web",
		"docker run --rm -v \"$PWD:/app\" -w /app node:20 npm test",
		"docker build -t app:dev .",
		"docker exec -it db psql -U postgres -c 'select 1'",
		"kubectl get pods -n dev",
		"grep -rn \"parse_line\" src tests",
		"rg -n \"def main\" src",
		"rg -l TODO | head",
		"find . -name '*.pyc' -delete",
		"find src -name '*.py' | xargs wc -l | sort -n | tail",
		"find . -name '*.py' -newer setup.py -print0 | xargs -0 grep -l foo",
		"find . -type f -name \"*.test.ts\" -not -path \"./node_modules/*\"",
		"find . -name __pycache__ -type d -exec rm -rf {} +",
		"sed -n 10,40p src/app.py",
		"sed -i 's/foo/bar/g' src/app.py",
		"sed -i -e 's|/old/|/new/|' -e '/debug/d' src/app.py",
		"sed 's/^/  /' README.md",
		"awk '{print $1}' access.log | sort | uniq -c | sort -rn | head",
		"awk -F, 'NR>1 {s+=$3} END {print s}' data.csv",
		"ps aux | awk '/node/ {print $2}' | xargs kill",
		"jq -r '.scripts | keys[]' package.json",
		"cat package.json | jq .dependencies",
		"curl -s http://localhost:8080/health | jq .status",
		"curl -fsSL -o /tmp/x.tgz https://example.org/x.tgz && tar xzf /tmp/x.tgz -C /tmp",
		"ls -la .claude/skills",
		"ls -la src && wc -l src/*.py",
		"cat .claude/skills/pdf/SKILL.md",
		"head -50 .claude/skills/csv-report/scripts/report.py",
		"tree -L 2 -I node_modules",
		"du -sh node_modules | sort -h",
		"for f in src/*.py; do echo \"$f\"; wc -l \"$f\"; done",
		"for i in 1 2 3; do curl -s localhost:8080/$i; done",
		"while ! nc -z localhost 5432; do sleep 1; done",
		"if [ -f .env ]; then cat .env; fi",
		"echo \"$PATH\" | tr : '\\n'",
		"export NODE_ENV=test && npm test",
		"NODE_ENV=production npm run build",
		"PATH=$PWD/node_modules/.bin:$PATH eslint .",
		"DATABASE_URL=postgres://localhost/x python3 manage.py migrate",
		"python3 manage.py runserver > server.log 2>&1 &",
		"pkill -f 'manage.py runserver'; sleep 1; tail -5 server.log",
		"kill $(lsof -ti :8080)",
		"cd src && python3 -m pytest && cd ..",
		"(cd docs && make html)",
		"mkdir -p src/new && touch src/new/__init__.py",
		"cp .env.example .env",
		"mv src/a.py src/b.py && git add -A",
		"rm -rf dist build && npm run build",
		"chmod +x scripts/run.sh && ./scripts/run.sh",
		"tar czf backup.tgz src docs",
		"diff -u a.txt b.txt | less",
		"ssh dev.example.org 'cd /srv/app && git pull && systemctl restart app'",
		"gh pr create --title \"fix\" --body \"see .claude/skills/pdf/scripts/fill.py\"",
		"gh pr view 12 --json title,body | jq -r .title",
		"gh run list --limit 5",
		"cat > src/hello.py <<'EOF'\nprint(\"hello\")\nEOF",
		"cat <<'EOF' > notes.md\n# Notes\nrun `make` and $HOME\nEOF",
		"git commit -m \"$(cat <<'EOF'\nfix: don't crash on \"empty\" "
		"input\n\nCo-Authored-By: X <x@example.org>\nEOF\n)\"",
		"git add .claude && git commit -m \"skills: add pdf\"",
		"git log --format='%h %s' --since=yesterday",
		"TOKEN=$(cat .token); curl -H \"Authorization: Bearer $TOKEN\" localhost:8080/api",
		"xargs -n1 echo < list.txt",
		"printf '%s\\n' a b c | sort",
		"date +%F; uptime",
		"which node python3; node --version",
		"time make",
		"timeout 60 npm test",
		"watch -n 2 ls",
		"echo $((1+2)) ${HOME}",
		"VERSION=$(jq -r .version package.json) && echo \"v$VERSION\"",
		"test -f Makefile && make || echo none",
		"[ -n \"$CI\" ] && echo ci",
		"python3 - <<'EOF'\nimport sys\nprint(sys.path)\nEOF",
		"sqlite3 app.db 'select count(*) from users'",
		"psql -c \"select * from skills limit 1\"",
		"git diff --stat main...HEAD",
		"git worktree add ../wt fix && cd ../wt && git status",
		"command -v rg || sudo apt-get install -y ripgrep",
		"docker ps -aq | xargs docker rm",
		"git commit -m \"$(cat <<'EOF'\nfix .claude/skills/pdf/scripts/fill.py: do not "
		"fail\n\nSee (issue) `x`.\nEOF\n)\"",
		"gh pr create --title fix --body \"$(cat <<'EOF'\nChanges "
		".claude/skills/pdf\nEOF\n)\"",
		"git log -- .claude/skills/pdf | cat",
		"grep -rn def .claude/skills | head",
		"wc -l .claude/skills/*/SKILL.md",
		"black .claude/skills/pdf && git diff --stat",
		"skillsandbox list --json",
	};

	each(LINES, ARRAY_LEN(LINES), HOOK_PASS);
}

/* These ordinary lines are asked about: what they start is not known from the line. */
static void test_alarms(void **state)
{
	static const char *const LINES[] = {
		/* A file with the name "x -e 1e./y" is an option: sed executes it. */
		"grep -rl foo src | xargs sed -i s/a/b/",
		/* The settings of the repository may name any directory as the top. */
		"cd \"$(git rev-parse --show-toplevel)\" && make test",
		/* Only the shell knows the program. */
		"$EDITOR README.md",
	};

	each(LINES, ARRAY_LEN(LINES), HOOK_ASK);
}

/* What would use the lines that pass. */
static void test_attacks(void **state)
{
	static const char *const LINES[] = {
		/* a text that a shell passes on: to a program that starts it */
		"bash -c \"$(cat <<'EOF'\npython3 " PDF "/scripts/fill.py\nEOF\n)\"",
		"eval \"$(cat <<'EOF'\n$F a\nEOF\n)\"",
		"python3 \"$(cat <<'EOF'\n" PDF "/scripts/fill.py\nEOF\n)\"",
		"python3 \"$(cat <<'EOF'\n" PDF "/it's/a.py\nEOF\n)\"",
		"python3 \"$(cat <<'EOF'\n" PDF
		"/scripts/fill.py\nEOF\n)\" \"$(cat <<'EOF'\nx\nEOF\n)\"",
		/* that ends before it seems to, or does not begin */
		"git commit -m \"$(cat <<'EOF'\nEOF\npython3 " PDF "/scripts/fill.py\nEOF\n)\"",
		"git commit -m \"$(cat <<'EOF'\nx\nEOF\npython3 " PDF "/scripts/fill.py\n)\"",
		"git commit -m \"$(cat <<'EOF'\nEOF)\"; python3 " PDF
		"/scripts/fill.py \"\nEOF\n)\"",
		"echo 'a \"$(cat <<'EOF'\n'; python3 " PDF "/scripts/fill.py; '\nEOF\n)\"'",
		"echo \\\"$(cat <<'EOF'\npython3 " PDF "/scripts/fill.py\nEOF\n)\"",
		"echo \"$(cat <<EOF\n$(python3 " PDF "/scripts/fill.py)\nEOF\n)\"",
		"echo \"$(cat <<'EOF'\nx\nEOF\n)$(python3 " PDF "/scripts/fill.py)\"",
		"echo \"$(cat <<'EOF'\nx\nEOF\n)\"$(python3 " PDF "/scripts/fill.py)",
		"git commit -m \"$(cat <<'EOF'\nx EOF\n)\" 'a\nEOF\n)\"; python3 " PDF
		"/scripts/fill.py; echo '",
		"find . -name \"a \"$(cat <<'EOF'\nx -exec python3 {} +\nEOF\n)\" b\"",
		"python3 \"$(cat <<'EOF'\no's/k/a.py\nEOF\n)\"",
		"# \"$(cat <<'EOF'\npython3 " PDF "/scripts/fill.py\nEOF\n)\"",
		"skillsandbox shell --read / src",
		"skillsandbox shell src",
		"skillsandbox list $(python3 " PDF "/scripts/fill.py)",
		/* xargs with a harmless program, and with another */
		"ls | xargs rm; ls | xargs python3",
		"ls | xargs -I rm python3 rm",
		"ls | xargs -I{} sh -c 'rm {}; python3 {}'",
		"ls | xargs $X rm",
		"ls | xargs -a x git -c core.pager=$F branch",
		"ls | xargs git rebase -x",
		"ls | xargs docker run",
		"ls | sudo xargs $F kill",
		"ls " PDF " | awk '{print}' | xargs kill",
		"cd " PDF " && ls | xargs git add",
		"awk '{print}' x | xargs rm; python3 $F",
		/* "$" before a name */
		"grep py$ x | xargs python3",
		"python3 a$ | sh $F",
		"echo \"a$\"\"$(python3 " PDF "/scripts/fill.py)\"",
		"echo a$'\\x20' | xargs python3",
		"git diff | grep \"py$\" | python3 " PDF "/scripts/fill.py",
		/* cd that may fail, or lead elsewhere */
		"cd none; python3 " PDF "/scripts/fill.py",
		"cd src; python3 ../" PDF "/scripts/fill.py; ls",
		"cd $X; python3 " PDF "/scripts/fill.py",
		"cd - ; python3 " PDF "/scripts/fill.py",
	};

	each(LINES, ARRAY_LEN(LINES), HOOK_ASK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),     cmocka_unit_test(test_bound),
		cmocka_unit_test(test_working_day), cmocka_unit_test(test_alarms),
		cmocka_unit_test(test_attacks),
	};

	return cmocka_run_group_tests(tests, make_project, drop_world);
}
