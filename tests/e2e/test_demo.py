"""The examples, as root and as a user: what `make demo` shows is true."""
import shutil

import pytest

import harness


@pytest.fixture
def examples(ssb):
    """A copy that the user can read, wherever the checkout is."""
    target = ssb.base / "examples"
    shutil.copytree(harness.REPO / "examples", target)
    for p in [target, *target.rglob("*")]:
        ssb.own(p)
    return target


def test_demo(ssb, examples):
    r = ssb.as_caller([examples / "demo", ssb.binary], timeout=120)
    assert r.code == 0, repr(r)
    rows = [line.split("|") for line in r.text.splitlines() if line.count("|") == 2][1:]
    assert len(rows) == 8
    for what, bare, boxed in rows:
        assert bare.strip() != "nothing", what
        assert boxed.strip() == "nothing", what
    assert "°C" in r.text


def test_demo_fails_when_the_sandbox_does_nothing(ssb, examples):
    """The control: a 'sandbox' that just runs the stealer makes it fail."""
    fake = ssb.write(ssb.base / "fake", """\
        #!/usr/bin/python3
        import os, sys
        argv = sys.argv[2:]
        if argv[0] == '--trace-output':
            open(argv[1], 'w').close()
            argv = argv[2:]
        os.execv('/usr/bin/python3', ['python3', argv[0] + '/main.py', *argv[2:]])
        """, 0o755)
    r = ssb.as_caller([examples / "demo", fake], timeout=120)
    assert r.code == 1
    assert "SANDBOXED thief got something" in r.errors


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
    control = ssb.bare([harness.PYTHON, examples / "malicious-weather/main.py"], env=env)
    bare = {w[1]: int(w[2]) for w in (line.split() for line in control.errors.splitlines())
            if w and w[0] == "LOOT"}
    assert all(bare[v] for v in ("environment", "ssh-keys", "aws-credentials", "dotenv",
                                 "browser-cookies"))
