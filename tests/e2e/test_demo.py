"""The examples, as root and as a user: the demos work, and fail if the sandbox does nothing."""
import re
import shutil

import pytest

import harness
from harness import BY_USER


@pytest.fixture
def examples(ssb):
    """A copy of the examples, because the user may not be able to read the checkout."""
    target = ssb.base / "examples"
    shutil.copytree(harness.REPO / "examples", target)
    for p in [target, *target.rglob("*")]:
        ssb.own(p)
    return target


def table_rows(text):
    return [line for line in text.splitlines() if line.count("|") == 2 and "what it" not in line]


def test_demo(ssb, examples):
    r = ssb.as_caller([examples / "demo", ssb.binary], env={"TMPDIR": str(ssb.work)}, timeout=120)
    assert r.code == 0, repr(r)
    rows = [line.split("|") for line in table_rows(r.text)]
    assert len(rows) == 8
    for what, bare, boxed in rows:
        assert bare.strip() != "nothing", what
        assert boxed.strip() == "nothing", what
    assert "°C" in r.text


WITHOUT_HOSTS = """
mount -t tmpfs none "$0" && mkdir "$0/up" "$0/work" && mknod "$0/up/hosts" c 0 0 &&
mount -t overlay -o "lowerdir=/etc,upperdir=$0/up,workdir=$0/work" none /etc &&
mkdir "$0/tmp" && TMPDIR="$0/tmp" exec "$@"
"""


def test_demo_without_a_hosts_file(root):
    """/etc/hosts is missing, as in a new root file system: the demo fails, and its message says how
    to make the file."""
    r = root.as_caller(["unshare", "-m", "sh", "-c", WITHOUT_HOSTS, root.mkdir("etc"),
                        harness.REPO / "examples/demo", root.binary], timeout=120)
    assert r.code == 1 and r.errors.endswith("touch /etc/hosts\n"), repr(r)
    assert "Traceback" not in r.errors


def test_readme_shows_the_real_output(ssb, examples):
    readme = (harness.REPO / "README.md").read_text()
    shown = readme.split("<!-- demo:begin -->")[1].split("<!-- demo:end -->")[0]
    r = ssb.as_caller([examples / "demo", ssb.binary], env={"TMPDIR": str(ssb.work)}, timeout=120)
    # The number of bytes depends on the length of the temporary path.
    rows = [[re.sub(r"\d+ bytes", "N bytes", row).split() for row in table_rows(text)]
            for text in (shown, r.ok().text)]
    assert rows[0] == rows[1]


def story_of(text):
    """The lines that the demo shows from the trace, without their indent."""
    lines = text.split("What its trace tells:\n")[1].split("\n\n")[0].splitlines()
    return [line.strip() for line in lines]


def test_the_trace_tells_the_story(ssb, examples):
    """The demo shows the same lines of the malicious skill's trace in each run; the README has
    the same lines."""
    golden = (harness.REPO / "tests/e2e/golden/malicious-weather.txt").read_text()
    readme = (harness.REPO / "README.md").read_text()
    r = ssb.as_caller([examples / "demo", ssb.binary], env={"TMPDIR": str(ssb.work)}, timeout=120)
    story = story_of(r.ok().text)
    # Broker and observer report at the same time, so the order of their events may differ.
    assert sorted(story) == sorted(golden.splitlines())
    for part in ("open ", "resolve ", "it amounts to", "critical"):
        assert [x for x in story if part in x] == \
            [x for x in golden.splitlines() if part in x]
    assert story_of(readme) == golden.splitlines()


def test_readme_manifest_is_valid(ssb):
    readme = (harness.REPO / "README.md").read_text()
    ssb.ssb("validate", ssb.skill("", text=readme.split("```yaml\n")[1].split("```")[0])).ok()


def test_demo_fails_when_the_sandbox_does_nothing(ssb, examples):
    """The control: with a fake sandbox, which runs the malicious skill unconfined, the demo
    fails."""
    fake = ssb.write(ssb.base / "fake", """\
        #!/usr/bin/python3
        import os, sys
        argv = sys.argv[2:]
        if argv[0] == '--trace-output':
            open(argv[1], 'w').close()
            argv = argv[2:]
        os.execv('/usr/bin/python3', ['python3', argv[0] + '/main.py', *argv[2:]])
        """, 0o755)
    r = ssb.as_caller([examples / "demo", fake], env={"TMPDIR": str(ssb.work)}, timeout=120)
    assert r.code == 1
    assert "SANDBOXED thief got something" in r.errors


def test_demo_session(ssb, examples):
    r = ssb.as_caller([examples / "demo-session", ssb.binary], env={"TMPDIR": str(ssb.work)},
                      timeout=120)
    assert r.code == 0, repr(r)
    said = [line.split(" | ", 1) for line in r.text.splitlines() if " | " in line]
    told = [text.split(":")[0] for who, text in said if who.strip() == "webhook"]
    assert told == ["budget_alert", "session_paused", "session_killed"]
    ledger = [line.split()[2] for line in r.text.split("ledger (UTC)\n")[1].split("\n\n")[0]
              .splitlines()]
    story = [word for word in ledger if word in ("ALERT", "PAUSED", "RESUMED", "KILLED")]
    assert story == ["ALERT", "PAUSED", "RESUMED", "KILLED"]
    assert ledger.count("MESSAGE") == 3 and ledger[-1] == "SIGNED"
    assert "complete: " in r.text


@BY_USER
def test_demo_session_fails_when_nothing_is_held(ssb, examples):
    """The control: with a fake `run`, which uses neither session nor sandbox, the demo fails."""
    fake = ssb.write(ssb.base / "fake", f"""\
        #!/usr/bin/python3
        import os, sys
        argv = sys.argv[1:]
        if argv[0] != 'run':
            os.execv({str(ssb.binary)!r}, ['skillsandbox', *argv])
        words = ['2' if w == '600' else w for w in argv[argv.index('--') + 1:]]
        os.execv('/usr/bin/python3', ['python3', argv[argv.index('--') - 1] + '/main.py', *words])
        """, 0o755)
    r = ssb.as_caller([examples / "demo-session", fake], env={"TMPDIR": str(ssb.work)},
                      timeout=120)
    assert r.code == 1
    assert "the SANDBOXED skill found secrets" in r.errors
    assert "no pause" in r.errors and "the crawler was not killed" in r.errors


def test_weather_answers(ssb, examples):
    r = ssb.run(examples / "weather", "--", "Tokyo").ok()
    assert "Tokyo" in r.text and "°C" in r.text


@pytest.mark.parametrize("name", ["weather", "malicious-weather"])
def test_examples_are_valid(ssb, examples, name):
    ssb.ssb("validate", examples / name).ok()


def test_stealer_gets_nothing_and_says_so(ssb, examples):
    env = {"GITHUB_TOKEN": harness.SECRET, "AWS_SECRET_ACCESS_KEY": harness.SECRET}
    r = ssb.run(examples / "malicious-weather", env=env).ok()
    loot = {w[1]: int(w[2]) for w in (line.split() for line in r.errors.splitlines())
            if w and w[0] == "LOOT"}
    assert len(loot) == 7 and set(loot.values()) == {0}
    control = ssb.bare([harness.PYTHON, examples / "malicious-weather/main.py"],
                       env={"TMPDIR": str(ssb.work), **env})
    bare = {w[1]: int(w[2]) for w in (line.split() for line in control.errors.splitlines())
            if w and w[0] == "LOOT"}
    assert all(bare[v] for v in ("environment", "ssh-keys", "aws-credentials", "dotenv",
                                 "browser-cookies"))
