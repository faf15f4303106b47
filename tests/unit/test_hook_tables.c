/* test_hook_tables.c - the two tables of the hook: commands that must not pass, and commands that
 * must pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hook_world.h"

static void each_is(const char *const commands[], size_t n, enum hook_answer want, const char *cwd)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		auto_buf text;
		enum hook_answer a = ask(commands[i], cwd, false, &text);
		if (a != want) {
			print_error("%s: %d instead of %d\n", commands[i], a, want);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

/* One simple command that starts a skill otherwise than its manifest. */
static void test_started(void **state)
{
	static const char *const LINES[] = {
		"python3 < skills/x/main.py",
		"source skills/x/main.py",
		". skills/x/main.py",
		"A=1 python3 skills/x/main.py",
		"LD_PRELOAD=/tmp/x.so python3 skills/x/main.py",
		"XDG_CONFIG_HOME=/tmp python3 skills/x/main.py",
		"env A=1 python3 skills/x/main.py",
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
		"bash skills/f/run.sh --fast b",
		"python3 skills/*/main.py",
		"python3 sk?lls/x/main.py",
		/* Python loads modules from the current directory */
		"cd skills/x && python3 -m py_compile main.py",
		"busybox sh skills/f/run.sh",
		"uv run skills/x/main.py",
		/* skills without a manifest */
		"bash skills/m/scripts/b",
		"python3 skills/w/skill.py",
		"python3 -c 'import skills.w.skill'",
		/* not the interpreter of the manifest */
		"perl skills/x/main.py",
		"python2 skills/x/main.py",
		"python3-dbg skills/x/main.py",
		"pypy3 skills/x/main.py",
		"bash skills/m/scripts/e.sh", /* sh does not run all that bash runs */
		"dash skills/m/scripts/c.sh",
		"node skills/m/scripts/a.py",
		"bun skills/m/scripts/d.js",
		"./venv/bin/python3 skills/x/main.py",
		"bash skills/d/run",
		"/tmp/python3 skills/x/main.py",
		/* module names with dots */
		"python3 -m skills.x.main",
		"cd skills && python3 -m x.main",
		"python3 -c 'import skills.x.main'",
		"python3 -c 'from skills.x import main as m'",
	};

	each_is(LINES, ARRAY_LEN(LINES), HOOK_ASK, ".");
}

static void test_asked(void **state)
{
	static const char *const LINES[] = {
		/* a list, a pipe, a variable, a brace: not one simple command */
		"python3 skills/x/main.py | sh",
		"python3 skills/x/main.py | xargs python3",
		"python3 skills/x/main.py | head; rm x",
		"cat skills/x/main.py | python3",
		"python3 skills/x/main.py; rm x",
		"python3 skills/x/main.py && ls",
		"python3 skills/x/main.py || true",
		"python3 {skills,tools}/x/main.py",
		"python3 skills/{w..y}/main.py",
		"python3 $D/x/main.py",
		"D=skills; python3 $D/x/main.py",
		"python3 sk\\ills/x/mai\\\nn.py | cat",
		"py\"thon\"3 skills/x/main.py | cat",
		"'python3' 'skills/x/main.py' | cat",
		"true\npython3 skills/x/main.py",
		"cd skills/x; python3 main.py; ls",
		"cd skills/none; python3 ../x/main.py", /* a failing cd goes nowhere */
		"cd skills/x || python3 main.py",
		"cd $X/skills/x && python3 main.py",
		"pushd skills/x && python3 main.py",
		"xargs python3 skills/x/main.py",
		"find skills -name main.py -exec python3 skills/x/main.py ';'",
		"cp tools/tool.py skills/x/new.py && python3 skills/x/new.py",
		"python3 ~+/skills/x/main.py",
		"python3 ~-/skills/x/main.py",
		"cd ~+/skills/x && ./main.py",
		/* a shell resolves ".." in another way */
		"cd skills/../skills/x && python3 main.py",
		"make -C skills/x",
		"make -C skills/m",
		"bash <(cat skills/x/main.py)",
		"skillsandbox approve --yes skills/x",
		"cd skills/x && skillsandbox approve --yes .",
		"skillsandbox approve --yes $X",
		"nohup /usr/bin/skillsandbox approve $X",
		"./skillsandbox 'approve' --revoke y",
		"skillsandbox setup codex -w",
		"skillsandbox audit prune --keep 0",
		"skillsandbox session resume s",
		/* with an option before the command, and under another name */
		"skillsandbox -q approve tools",
		"/usr/bin/skillsandbox --json --quiet approve tools",
		"sudo skillsandbox --skills x setup codex",
		"ln -s skillsandbox ssb; ./ssb approve tools",
		"ln -s /usr/bin/skillsandbox ssb && ./ssb run --read / tools",
		"cp \"$(command -v skillsandbox)\" b; ./b approve tools",
		"cp /usr/bin/skillsandbox b; ./b run --project tools",
		"cp /usr/bin/skillsandbox b; ./b run --read / tools",
		"alias s=skillsandbox; s session resume x",
		"alias s=skillsandbox\ns run --read / tools",
		"export S=/usr/bin/skillsandbox; $S run --read / tools",
		"$D/ssb approve tools",
		"for c in approve; do skillsandbox $c tools; done",
		"echo approve | xargs -I{} skillsandbox {} tools",
		"python3 -c 'import subprocess as s; s.run([\"skillsandbox\", \"approve\", "
		"\"x\"])'",
		"skillsandbox 'app'rove --yes tools",
		"skillsandb\\ox ap\\prove tools",
		"skillsandbox approve tools | cat",
		"/lib64/ld-linux-x86-64.so.2 /usr/bin/skillsandbox approve tools",
		/* after words that may precede a command */
		"A=1 skillsandbox session resume s",
		"{ skillsandbox session resume s; }",
		"! skillsandbox session resume s",
		"if true; then skillsandbox session resume s; fi",
		"while skillsandbox session resume s; do sleep 1; done",
		"sudo skillsandbox session resume s",
		"sudo -u me -E skillsandbox session resume s",
		"timeout -k 1 5 skillsandbox session resume s",
		"timeout --kill-after 1 5 /usr/bin/skillsandbox session resume s",
		"nice -n 3 skillsandbox session resume s",
		"env -i A=1 skillsandbox session resume s",
		"/usr/bin/env skillsandbox session resume s",
		"A=1 nohup sudo nice -n 3 skillsandbox approve --yes \"$D\"",
		"{ skillsandbox approve --yes \"$D\"; }",
		"! skillsandbox approve --yes \"$D\"",
		"if true; then skillsandbox approve --yes \"$D\"; fi",
		"timeout -k 1 5 skillsandbox approve --yes \"$D\"",
		"ls | xargs skillsandbox approve --yes",
		"find tools -exec skillsandbox approve --yes {} ';'",
		"bash -c 'A=1 skillsandbox approve --yes .'",
		"if true; then skillsandbox run --read / $X; fi",
		/* variables and patterns that contain the words */
		"S=approve; skillsandbox $S --yes tools",
		"skillsandbox \"$S\" --yes tools",
		"skillsandbox app* --yes tools",
		"skillsandbox session $S s",
		"skillsandbox audit \"$S\" --keep 0",
		"sudo -E skillsandbox $S",
		"ls | xargs skillsandbox $S",
		"echo --revoke skills/x | xargs skillsandbox approvals",
		"echo --revoke skills/x | xargs /usr/bin/skillsandbox approvals --json",
		"bash -c \"skillsandbox \\\"\\$S\\\" --yes tools\"",
		"echo 'skillsandbox app* --yes tools' | sh",
		"$S approve --yes tools",
		"S=skillsandbox; nohup $S session resume s",
		"skillsand* approve --yes tools",
		"/usr/bin/skill${S}box approve --yes tools",
		/* a word that is executed as a command */
		"env -S 'skillsandbox approve --yes tools'",
		"env -iS'A=1 skillsandbox approve --yes tools'",
		"env --split-string='skillsandbox approve' tools",
		"env --split-string 'skillsandbox\\_approve' tools",
		"env --split='skillsandbox\\_approve' tools",
		"env --s='skillsandbox\\_approve' tools",
		"env -i --sp 'skillsandbox\\_approve' tools",
		"echo ${X:-$(skillsandbox approve --yes tools)}",
		"echo \"${X:-'$(skillsandbox approve --yes tools)'}\"",
		"echo ${X:-'}'$(skillsandbox approve --yes tools)}",
		"echo ${X:-\"}\"`skillsandbox approve --yes tools`}",
		"echo ${X:=${Y:-$(A=1 skillsandbox session resume s)}}",
		"echo ${X:-$(python3 $F)}",
		"let 'a[$(skillsandbox approve --yes tools)]'",
		"python3 -c 'import os; os.system(\"skillsandbox approve --yes x\")'",
		"python3 -c 'import os; os.system(\"skillsandbox  approve --yes x\")'",
		"python3 -c 'import os; os.system(\"skillsandbox\tapprove --yes x\")'",
		"python3 -c 'import os; os.system(\"skillsandbox session \t resume s\")'",
		"python3 <<E\nos.system('skillsandbox session resume s')\nE",
		/* an option makes it the owner's decision */
		"skillsandbox serve --write ~ --skills tools",
		"skillsandbox serve --skills tools --net evil.example",
		"skillsandbox serve --skills tools $X",
		"skillsandbox approvals --revoke tools",
		"skillsandbox approvals --json --revoke tools",
		"skillsandbox approvals $X",
		"skillsandbox learn --read / tools",
		"skillsandbox learn -w tools",
		"skillsandbox learn --connect tools",
		"skillsandbox init --sidecar tools",
		/* programs that execute a part of an argument */
		"[ -v 'x[$(python3 skills/x/main.py)]' ]",
		"test -v 'x[$(python3 skills/x/main.py)]'",
		"rg --hostname-bin skills/d/run --hyperlink-format default x",
		"rg --hostname-bin=skills/d/run x",
		"less '+!python3 skills/x/main.py' README",
		"sed -n 's|a|python3 skills/x/main.py|e' README",
		"sed -i 's/a/b/w skills/x/main.py' README",
		"gh pr checkout 3 skills/x/main.py",
		"gh browse skills/x/main.py",
		"$EDITOR skills/x/main.py",
		"EDITOR=$X; $EDITOR README",
		"read EDITOR; $EDITOR README",
		"nice -n 3 python3 $F",
		"timeout -k 1 5 $F",
		"sudo -u me $F",
		"cd tools; PATH=$PWD:$PATH x",
		"cd tools && $F", /* the value may be an absolute path */
		"echo '-exec sh' | xargs find skills/x",
		"cd d*; make",
		"git ls-files | xargs python3",
		"git ls-files '*.py' | xargs mypy",
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
		"sort --compress-program=skills/d/run x",
		"git -c core.pager=skills/d/run log",
		"rg --pre skills/d/run y",
		"sed e skills/x/main.py",
		"sed -n p -ne 'e skills/d/run' README",
		"sed -n 's/a/b/;e skills/d/run' README",
		"sed -n 's|skills/d/run|b|e' README",
		"sed -n 's/a/skills.d.run/e' skills/x/main.py",
		"sed -n 's|a|b|w skills/x/main.py' README",
		"sed -n '1e skills/d/run' README",
		"find tools -exec grep a {} ';' -exec skills/d/run {} ';'",
		"find tools -exec skills/d/run {} ';' -exec grep a {} ';'",
		"A=skills/x/main.py",
		"A=1 cat skills/x/main.py",
		"cat skills/x/main.py; ./a",
		"for f in skills/x/main.py; do cat $f; done",
		"cat skills/x/main.py 'x",
		"./cat skills/x/main.py",
		"/bin/../@/skills/d/cat skills/x/main.py",
		"$CAT skills/x/main.py",
		"PYTHONPATH=skills/x ./tools/other",
		"tar xf a.tar -C skills/x",
		"PATH=$PWD/skills/x:$PATH; main.py",
		"PATH=$X:$PATH y",
		"export PATH=\"$(y):$PATH\"",
		"CDPATH=skills; cd x && python3 main.py",
		"PYTHONPATH=skills python3 -c 'import x.main'",
		"PYTHONPATH=/tmp:skills python3 -m x.main",
		"CDPATH=$X; cd x && make",
		"NODE_PATH=skills node a.js",
		"PYTHONPATH=$X y",
		"BASH_ENV=$X bash -c y",
		"find skills -name main.py -exec python3 {} \\;",
		"find . -name main.py -execdir ./y {} +",
		"find -name main.py -ok python3 {} \\;",
		"find $X -type f -exec python3 {} \\;",
		"fd main.py -x python3",
		"fd main.py skills --exec-batch python3",
		"ls skills | xargs -I{} python3 skills/{}/main.py",
		"find . -name main.py | xargs -n 1 python3",
		"find . -name main.py | while read f; do python3 $f; done",
		"for f in $(find . -name main.py); do \"$f\"; done",
		"python3 $F",
		"$F a",
		"./$D/main.py",
		"bash -c \"$C\"",
		"bash -c \"cd tools; $C\"",
		"cd $X && python3 main.py",
		"cd \"$(y)\" && ./x/main.py",
		"git commit -m x && ./skills/../y skills/x",
		"skillsandbox run --read / $X",
		"nohup skillsandbox run --best-effort $X",
		"if [ -f skills/x/main.py ]; then cat skills/x/main.py; fi",
		"$VENV/bin/python setup", /* it may be a symlink to our program */
		/* not simple commands */
		"sh -c 'pytest \"skills/x/main.py\"'",
		"echo 'skillsandbox approve --yes tools' | bash",
		"env -S 'echo \"python3 skills/x/main.py\" | bash'",
		"eval './skills/{x,m}/main.py'",
		"eval python3 $F",
		"eval 'true; ls' $C",
		". $F",
		"sh -c '. $F'",
		"bash -o pipefail -ec \"source \\\"\\$D/env\\\"\"",
		"cat $F | python3 > o 2>&1",
		"sh -c 'cat $F | python3 2>o'",
		"source \"$D/env\"",
		"make -f $F",
		"env -S 'python3 $F'",
		"[[ 'x[$(python3 skills/x/main.py)]' -eq 1 ]]",
		"git diff --ext-diff skills/x",
		"echo $(cat $F | python3)",
		"watch '$F a'",
		"echo 'cp sk\\ills/x/main.py /tmp/a' | bash 3>y",
		"python3 skills/x/main.py &",
		"(python3 skills/x/main.py)",
		"echo $(python3 skills/x/main.py)",
		"echo `python3 skills/x/main.py`",
		"echo \"$(python3 \"skills/x/main.py\")\"",
		"sh -c 'python3 skills/x/main.py'",
		"bash -lc \"cd skills/x && python3 main.py\"",
		"eval 'python3 skills/x/main.py'",
		"eval python3 skills/x/main.py",
		"env -i python3 skills/x/main.py",
		"env -S 'python3 skills/x/main.py'",
		"env -S'python3\\_skills/x/main.py'",
		"env -vS 'A=1 python3' skills/x/main.py",
		"sudo python3 skills/x/main.py",
		"nice -n 5 python3 skills/x/main.py",
		"python3 $(echo skills)/x/main.py",
		"python3 $'\\x73kills/x/main.py'",
		"if true; then python3 skills/x/main.py; fi",
		"for i in 1; do python3 skills/x/main.py; done",
		"f() { python3 skills/x/main.py; }; f",
		"python3 <<E\nexec(open('skills/x/main.py').read())\nE",
		"python3 skills/x/main.py &> o",
		"node skills/x/main.py 'x",
		"sh -c 'cd skills && cd x && ./main.py'",
		"bash -c \"cd skills; python3 x/main.py\"",
		"bash -o pipefail -ec 'cd skills; python3 x/main.py'",
		"sudo sh -c \"sh -c 'cd skills; python3 x/main.py'\"",
		"bash <<< 'cd skills; python3 x/main.py'",
		"cat <<E\n$(python3 skills/x/main.py)\nE",
		"bash <<E\ncd skills\npython3 x/main.py\nE",
		"bash <<'E'\ncd skills\npython3 x/main.py\nE",
		"echo 'cd skills; python3 x/main.py' | bash",
		"printf 'cd skills\\npython3 x/main.py\\n' | sh -s",
		"eval cd skills '&&' python3 x/main.py",
		"eval 'cd skills'; python3 x/main.py",
		"watch 'cd skills; python3 x/main.py'",
		"su -c 'cd skills; python3 x/main.py'",
		"python3 <<'E'\nimport skills.x.main\nE",
		"ls $(dirname skills/x/main.py)",
		"skillsandbox run --watch --session s -q skills/x $CITY --read /",
		"cat <<'E' > README\nsee `skills/x/main.py`\nE",
		"cat <<E\nsee skills/x/main.py\nE",
		"cd \"$(git rev-parse --show-toplevel)\" && python3 tools/tool.py",
		"$EDITOR README.md",
		"${VISUAL} README.md",
		"git log | $PAGER",
		/* what a word of "only looks" becomes, only the shell knows */
		"find skills {-exec,python3} {} \\;",
		"a=-exec; find . -name main.py $a python3 {} +",
		"find . $a python3 {} + -exec grep x {} ';'",
		"rg {--pre,skills/d/run} y",
		"rg $A skills/d/run y",
		"rg {--pre,python3} y",
		"cd tools; rg {--pre,python3} y .. | head",
		"rg --pre python3 y",
		"a=--pre; rg $a python3 y",
		"less --lesskey-src=skills/x/main.py README",
		"less -Nk skills/x/main.py README",
		/* options come from the input */
		"ls skills | xargs sed -n p",
		"ls skills | xargs less",
		"grep -rl foo src | xargs sed -i s/a/b/",
		"grep -rl foo src | xargs sed -Ei 's|a/(b)|c/\\1|g'",
		/* patterns that glob(3) does not know */
		"shopt -s globstar; python3 **/main.py",
		"shopt -s extglob\npython3 @(skills)/x/main.py",
		"bash -O globstar -c 'python3 **/main.py'",
		"bash -O nocaseglob -c 'python3 SKILL?/x/main.py'",
		"BASHOPTS=x:globstar bash -c 'python3 **/main.py'",
		"zsh -c 'python3 **/main.py'",
		/* redirections between the words */
		"cd 2>/dev/null sk*; cd 2>/dev/null x; python3 main.py",
		"cd 2>'a b' sk*; cd <<<y w*; python3 skill.py",
		"pushd 2>/dev/null ~/sk*; x/main.py",
		"cd 2>x $D && python3 main.py",
		"python3 2>x $F",
		/* quotes and comments that end elsewhere than it seems */
		"python3 \"skills/x/main.py\\\" ; rm x ; \\\"\"",
		"python3 skills/x/main.py a#`rm x`",
		"cat ''#; python3 skills/x/main.py",
		"xargs -I cat python3 cat skills/x/main.py",
		/* this may be another program */
		"./skillsandbox run skills/x",
	};

	each_is(LINES, ARRAY_LEN(LINES), HOOK_ASK, ".");
}

static void test_passed(void **state)
{
	static const char *const LINES[] = {
		"",
		"ls",
		"python3 tools/tool.py",
		"cd tools && python3 tool.py | tee x; ./y $(z)/q",
		"cat skills/x/main.py",
		"cat skills/m/SKILL.md skills/m/scripts/a.py",
		"skillsandbox run skills/m scripts/a.py b",
		"cat skills/x/main.py | grep -n . | head -5 > o",
		"find skills/x -exec cat '{}' ';'",
		"/bin/cat skills/*/main.py",
		"cd skills/x && ls -la && cat main.py",
		"sed -n 1,20p skills/x/main.py",
		"sed -n '1,$p' skills/x/main.py",
		"sed -i 's/a/b_c/g' skills/x/main.py",
		"git diff skills/x/main.py",
		"git add skills/x && git status",
		"find skills/x -name '*.py' -newer skills/x/main.py",
		"rm -f skills/x/other.py.bak skills/x/sub",
		"skillsandbox run skills/x -- Paris",
		"/usr/bin/skillsandbox run skills/x -- Paris | head -3",
		"skillsandbox inspect --read / skills/x",
		"skillsandbox lint --sarif skills/x",
		"skillsandbox validate skills/x && skillsandbox why last",
		"skillsandbox audit show skills/x/trace.jsonl",
		"skillsandbox session check s --action a --cost 1",
		"skillsandbox session check $S --action a --cost $C",
		"skillsandbox audit show $RUN",
		"cp build/skillsandbox b/ && make skillsandbox",
		"git clone https://example.org/skillsandbox",
		"for f in *.c; do wc -l $f; done",
		"pytest -q",
		"echo ${FOO:-bar} \"${1:-y}\" ${A:-'}'} ${B:-\"}\"}",
		"env -S 'echo hi' x",
		"env A=1 make test",
		"X=${X:-$(git rev-parse HEAD)} make",
		"git commit -m 'say what skillsandbox approve does'",
		"echo 'skillsandbox approve' >> README",
		"ls skillsandbox approve",
		"echo 'python3 skills/x/main.py'",
		"for i in a b; do echo $i/q; done",
		"python3 -c 'print(1)'",
		"sh -c 'echo hi' 'unterminated",
		"cat > tools/new.py <<'E'\nprint(1)\nE",
		"python3 Paris",
		/* commands that only read, or only mention a file */
		"git commit -m \"fix skills/x/main.py\"",
		"[ -f skills/x/main.py ]",
		"[ -f skills/x/main.py ] && cat skills/x/main.py | less",
		"test -x skills/x/main.py || echo skills/x",
		/* everyday commands, also beside skills */
		"git status && git log --oneline -5",
		"make -j4 test",
		"npm test -- --watch=false",
		"npm run build 2>&1 | tail -5",
		"pytest -x -q tools",
		"python3 -m pytest -x tools",
		"python3 -m venv .venv && . .venv/bin/activate && pip install -r a.txt",
		"python3 -c 'import os.path, sys; print(sys.argv)' $X",
		"python3 tools/tool.py $ARGS",
		"PATH=/usr/local/go/bin:$PATH go build ./...",
		"export PATH=\"$HOME/bin:$PATH\"",
		"PYTHONPATH=. python3 tools/tool.py",
		"find . -name '*.c' -exec grep -l foo {} +",
		"git ls-files | xargs wc -l",
		"git ls-files -z | xargs -0 -n 10 grep foo",
		"bash -c 'cd tools && python3 tool.py'",
		"echo 'make test' | bash",
		"for i in 1 2; do make T=$i; done",
		"docker run -v \"$PWD:/work\" image make",
		"mkdir -p src/{a,b}/{c,d}",
		"ls /*/*/*/*/*",
		"xdg-open */*/*/*/*/y",
		"git add -A && git commit -m \"$(cat <<'E'\nfix: don't use $X; it's (really) "
		"bad\nE\n)\" && make",
		"while read -r l; do echo \"$l x\"; done < a",
		"echo \"$(date): done\" >> log",
		"[[ \"$A\" == \"b\" ]] && make",
		"cp a{,.bak}",
		"curl -s localhost:8080/status | jq .",
		"git ls-files '*.py' | xargs black",
		"git ls-files '*.py' | xargs -n 20 ruff check --fix",
		"git checkout -b feature/x",
		"git switch -c fix/x/y",
		"curl -s https://api.example.com/x | jq . && make",
		"find tools -name \"$N\" | head",
		"for f in {a,b}; do rg \"$f\" tools; done",
		"less -N skills/x/main.py",
		"git ls-files '*.py' | xargs python3 -m py_compile",
		"find . -name '*.c' -exec clang-format -i {} +",
		"black skills/x/main.py && ruff check skills/x",
		"sed -i 's/old/new/g' skills/x/main.py",
		"python3 -m py_compile skills/x/main.py",
		"python3 -m json.tool skills/x/main.py",
		"PATH=$PWD/node_modules/.bin:$PATH eslint .",
		"export PATH=\"$PWD/bin:$PATH\"",
		"gh pr create --title fix --body \"see skills/x/main.py\"",
		"gh issue comment 3 --body 'skills/x/main.py fails'",
		"sudo apt install skillsandbox",
		"skillsandbox approvals --json",
		"nice -n 3 make -j4",
		"timeout -k 1 5 make test",
		"sudo -u me ls",
		"[ -n \"$X\" ] && [ -e tools ]",
		"test -d tools -a -x /bin/ls",
	};

	each_is(LINES, ARRAY_LEN(LINES), HOOK_PASS, ".");
}

/* In a directory without skills, commands that the hook cannot follow pass. */
static void test_elsewhere(void **state)
{
	static const char *const LINES[] = {
		"python3 $F",
		"find . -name '*.py' -exec python3 {} \\;",
		"ls | xargs -n 1 python3",
		"fd -e py -x python3",
		"PATH=$X:$PATH y",
		"CDPATH=$X; cd y && make",
		"bash -c \"$C\"",
		"cd $X && python3 main.py",
		"eval \"$(ssh-agent -s)\"",
		"$NPM run build",
		"$PY setup.py build",
		"for i in $LIST; do $i x; done",
	};

	each_is(LINES, ARRAY_LEN(LINES), HOOK_PASS, "tools");
}

/* Commands that are the owner's decision are asked about, also in a directory without skills. */
static void test_decided(void **state)
{
	static const char *const LINES[] = {
		"skillsandbox approve x",
		"cp build/skillsandbox \"$DEST\"",
		"make skillsandbox $FLAGS",
		"skillsandbox -q approve x",
		"echo approve | xargs -I{} skillsandbox {} x",
		"printf 'approve x' | xargs skillsandbox",
		"python3 -c 'import os; os.system(\"skillsandbox approve\")'",
		"bash -c 'skillsandbox $X'",
		"$X approve x",
		"skillsandbox $X",
		"sudo -E skillsandbox $X",
		"S=skillsandbox; $S run --read / x",
		"ln -s skillsandbox s; ./s run --read / x",
		"skillsandbox run --read / x",
		"skillsandbox serve --write / --skills x",
		"skillsandbox run -q --read / x",
		"skillsandbox run x --read /",
		/* redirections between the words */
		"skillsandbox run 2>/dev/null -w . -- ls",
		"skillsandbox run -q 2>&1 --read / -- cat x",
		"skillsandbox 2>y run -w . -- ls",
		"skillsandbox 2>'a b' run -w . -- ls",
		"skillsandbox &>y run -w . -- ls",
		"skillsandbox 2>\"$(cat 'a b')\" run -w . -- ls",
		"skillsandbox 2> >(cat) run -w . -- ls",
		"echo < <(skillsandbox 2>y run -w . -- ls)",
		"echo 'a >b'; skillsandbox 2>y run -w . -- ls; echo 'c'",
		"skillsandbox serve 2>/dev/null --read / --skills s",
		"skillsandbox serve </dev/null --read / --skills s",
		"skillsandbox serve <<<y --read / --skills s",
		"skillsandbox learn 2>/dev/null --read / x",
		"skillsandbox init 2>x --sidecar .",
		"bash -c 'skillsandbox 2>y run -w . -- ls'",
		/* another program may be ours */
		"PATH=../alt:$PATH foo approve x",
		"PATH=../alt; foo approve x",
		"export PATH=../alt:$PATH; foo setup claude-code",
		"PATH+=:../alt; foo run -w . -- ls",
		"env -i PATH=$HOME ssb-link approve x",
		"read PATH <<< ../alt; foo approve x",
		"hash -p ../alt/foo foo; foo approve x",
		"BASH_ENV=y bash -c 'foo session resume s'",
		"/dir/s* run -w . -- ls",
		"../alt/f* serve --read / --skills s",
		"../alt/f? run -q -qw. x",
	};

	each_is(LINES, ARRAY_LEN(LINES), HOOK_ASK, "tools");
}

/* Our own program is recognised under any name and by any path. */
static void test_other_names(void **state)
{
	static const char *const NAMES[] = { "./ssb", "@/ssb", "tools/hard", "ssb", "nohup ./ssb" };
	static const struct {
		const char *command;
		enum hook_answer want;
	} ASKS[] = { { "approve tools", HOOK_ASK },    { "-q approve tools", HOOK_ASK },
		     { "setup codex", HOOK_ASK },      { "run --read / tools", HOOK_ASK },
		     { "approvals $X", HOOK_ASK },     { "session resume x", HOOK_ASK },
		     { "run tools", HOOK_ASK },        { "inspect tools", HOOK_PASS },
		     { "approvals --json", HOOK_PASS } };
	auto_free char *self = path_from(world, "self"), *ssb = path_from(world, "ssb"),
	               *hard = path_from(world, "tools/hard");
	size_t wrong = 0;

	put("self", "");
	put("other", "");
	assert_int_equal(symlink("self", ssb), 0);
	assert_int_equal(link(self, hard), 0);
	world_self = self;
	world_path = world;
	for (size_t i = 0; i < ARRAY_LEN(NAMES) * ARRAY_LEN(ASKS); i++) {
		const char *name = NAMES[i / ARRAY_LEN(ASKS)];
		size_t k = i % ARRAY_LEN(ASKS);
		auto_buf text, line;
		buf_init(&line, 1 << 16);
		buf_addf(&line, "%s %s", name, ASKS[k].command);
		enum hook_answer a = ask(line.data, ".", false, &text);
		if (a != ASKS[k].want) {
			print_error("%s: %d\n", line.data, a);
			wrong++;
		}
	}
	auto_buf text; /* the control: another program */
	assert_int_equal(ask("./other approve tools", ".", false, &text), HOOK_PASS);
	world_self = "/usr/bin/skillsandbox";
	world_path = NULL;
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_started), cmocka_unit_test(test_asked),
		cmocka_unit_test(test_passed),  cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_decided), cmocka_unit_test(test_other_names),
	};

	return cmocka_run_group_tests(tests, make_world, drop_world);
}
