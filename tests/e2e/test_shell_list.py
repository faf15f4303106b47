"""`skillsandbox shell` and `skillsandbox list`."""
import json
import os
import pathlib

import pytest

from harness import manifest
from terminal import CTRL_Z, Shell, Terminal

SKILL_MD = "---\nname: {name}\ndescription: Counts lines.\n---\nRun scripts/count.py\n"


def markdown(ssb, place, name):
    ssb.write(place / name / "SKILL.md", SKILL_MD.format(name=name))
    ssb.write(place / name / "scripts/count.py", "print(1)\n")
    return place / name


@pytest.mark.parametrize("program, shown", [("/bin/bash", "bash"), ("/usr/bin/zsh", "zsh"), ("/bin/dash", "dash"),
                                            ("/opt/none", "sh")])
def test_a_bare_shell(ssb, program, shown):
    ssb.write(ssb.home / ".bashrc", "PS1='from the rc'\n")
    t = Terminal(ssb, "shell", env={"SHELL": program, "TERM": "xterm"}).wait_for("[sandbox]")
    t.type("echo name is $0 in $TERM; echo $((6*7))").wait_for("name is").wait_for("name is").wait_for(shown)
    t.wait_for("42").type("cat ~/.ssh/id_ed25519 || echo not sh''own").wait_for("not shown")
    t.type("exit 5")
    assert t.end() == 5
    assert "from the rc" not in t.text


def test_the_shell_of_a_skill(ssb):
    data = ssb.mkdir("data")
    ssb.write(data / "granted.txt", "the granted text\n")
    ssb.write(ssb.work / "other.txt", "not granted\n")
    d = ssb.skill("print('the entry point')", read=[data], resources={"max_runtime_seconds": 1})
    assert Terminal(ssb, "shell", d, env={"SHELL": "/bin/bash"}).wait_for("[N]o").type("o").wait_for("[sandbox skill1]") \
        .type("pwd; ls; cat ../data/granted.txt /data/granted.txt " + str(data / "granted.txt")) \
        .wait_for("the granted text").type(f"cat {ssb.work}/other.txt; sleep 1.5; echo long af''ter").wait_for("No such file") \
        .wait_for("long after").type("exit").end() == 0
    # The control: `run` executes the entry point, and ends with the time limit of the manifest.
    ssb.ssb("approve", "--yes", d).ok()
    assert "the entry point" in ssb.run(d).ok().text


def test_the_shell_needs_the_same_yes_as_run(ssb):
    d = ssb.skill("1", allow=["HOME_TOKEN"], read=["~/.ssh"])
    for command in ("run", "shell"):
        t = Terminal(ssb, command, d).wait_for("[N]o").type("n")
        assert t.end() == 125


def test_the_shell_starts_where_the_caller_is(ssb):
    t = Terminal(ssb, "shell", "-r", ".", env={"SHELL": "/bin/bash"}).wait_for("[sandbox]").type("pwd").wait_for(f"\r\n{ssb.work}\r\n")
    assert t.type("exit").end() == 0
    t = Terminal(ssb, "shell", markdown(ssb, ssb.base, "count"), env={"SHELL": "/bin/bash"}).wait_for("[sandbox count]")
    t.type("pwd; ls scripts").wait_for("/skill").wait_for("count.py")
    assert t.type("exit").end() == 0


def test_jobs_in_the_shell_and_of_it(ssb):
    s = Shell(ssb, env={"SHELL": "/bin/bash"})
    s.type("$SSB shell").wait_for("[sandbox]").type("sh -c 'echo star''ted; exec sleep 600'").wait_for("started")
    s.type(CTRL_Z).wait_for("Stopped").wait_for("[sandbox]").type("suspend").stopped()
    s.type("fg").wait_for("shell").type("kill %1; exit; exit").wait_for(s.PROMPT)
    s.leave()


def test_the_shell_without_a_terminal(ssb):
    r = ssb.ssb("shell")
    assert r.code == 2 and "needs a terminal" in r.errors
    assert ssb.ssb("shell", "a", "b").code == 2


@pytest.mark.parametrize("name", ["a$(touch x)", "a\x1b[31mb", "x" * 200])
def test_the_prompt_has_no_unusual_name(ssb, name):
    d = markdown(ssb, ssb.base, name)
    t = Terminal(ssb, "shell", d, env={"SHELL": "/bin/bash"}).wait_for("[sandbox]")
    assert t.type("exit").end() == 0


# ---- list --------------------------------------------------------------------------------------


def rows(ssb, *args, **kw):
    return {r["skill"]: r for r in ssb.ssb("list", "--json", *args, **kw).ok().json()}


def test_the_list(ssb):
    place = ssb.home / ".claude/skills"
    markdown(ssb, place, "lines")
    ssb.write(place / "declared/main.py", "print(1)\n")
    ssb.write(place / "declared/skillsandbox.yaml", manifest(name="declared"))
    markdown(ssb, ssb.work / ".agents/skills", "here")
    ssb.write(place / "broken/skillsandbox.yaml", "skill: [\n")
    ssb.write(place / "not-a-skill/file", "")
    os.symlink("loop", place / "loop")
    os.symlink("..", place / "up")
    found = rows(ssb)
    assert sorted(found) == ["broken", "declared", "here", "lines"]
    assert found["broken"]["error"] and found["lines"]["error"] is None
    assert found["lines"]["format"] == "SKILL.md" and found["lines"]["approved"] == "no"
    assert found["lines"]["last_run"] is None and found["lines"]["grade"] in "ABCDF"
    ssb.ssb("approve", "--yes", place / "declared").ok()
    ssb.run(place / "declared").ok()
    found = rows(ssb)
    assert found["declared"]["approved"] == "yes" and found["declared"]["last_run"]["exit_code"] == 0
    ssb.write(place / "declared/main.py", "print(2)\n")
    assert rows(ssb)["declared"]["approved"] == "changed"


def test_the_list_as_text(ssb):
    place = ssb.mkdir("many")
    markdown(ssb, place, "n" * 60)
    markdown(ssb, place, "rot\x1b[31m")
    ssb.write(place / "bad/skillsandbox.yaml", "x" * 300 + ": [\n")
    r = ssb.ssb("list", place).ok()
    assert max(map(len, r.text.splitlines())) <= 80
    assert "\x1b" not in r.text and "bad:" in r.text and "never" in r.text
    assert ssb.ssb("list", place / "bad").ok().text.count("\n") == 2
    r = ssb.ssb("list", "/nonexistent")
    assert r.code != 0 and "/nonexistent" in r.errors


def test_the_list_without_a_skill(ssb):
    r = ssb.ssb("list").ok()
    assert r.text == "" and "no skill was found" in r.errors
    assert ssb.ssb("list", "--json").ok().json() == []


def test_the_list_executes_nothing_and_changes_nothing(ssb):
    place = ssb.mkdir("many")
    d = markdown(ssb, place, "lines")
    ssb.write(d / "scripts/count.py", "open(__file__ + '.executed', 'w')\n")
    before = sorted(map(str, pathlib.Path(place).rglob("*")))
    ssb.ssb("list", place).ok()
    assert sorted(map(str, pathlib.Path(place).rglob("*"))) == before
    assert ssb.runs() == set()
    ssb.as_caller(["/usr/bin/python3", d / "scripts/count.py"]).ok()  # the control
    assert (d / "scripts/count.py.executed").exists()
