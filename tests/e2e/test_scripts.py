"""A SKILL.md skill with several scripts and one manifest: the first word of a run names the script, and
an approval is for all of them."""
import json

import pytest

from mcp_client import failure, serve, structured
from test_hook import ask
from test_serve_approve import answered

MANIFEST = """\
    skill: {name: notes, version: 1.0.0}
    permissions: {filesystem: {read: [~/notes.txt]}}
    """
ENTRY = MANIFEST + "entrypoint: {command: python3, args: [/skill/scripts/a.py]}\n"
READS = """
import os, sys
print("%s", sys.argv[1:], open(os.path.expanduser("~/notes.txt")).read().strip())
"""


def many(ssb, manifest=MANIFEST):
    """A skill with the scripts a.py and b.py, and the file that both of them read."""
    ssb.mkdir("skills")
    d = ssb.mkdir("skills/notes")
    ssb.mkdir("skills/notes/scripts")
    ssb.write(d / "SKILL.md", "---\nname: notes\ndescription: Reads notes\n---\n")
    ssb.write(d / "scripts/a.py", READS % "A")
    ssb.write(d / "scripts/b.py", READS % "B")
    ssb.write(ssb.home / "notes.txt", "remember\n")
    if manifest:
        ssb.write(d / "skillsandbox.yaml", manifest)
    return d


def sidecar(ssb, d):
    return ssb.write(ssb.home / ".config/skillsandbox/skills/notes.yaml",
                     MANIFEST.replace("1.0.0", f"1.0.0, directory: {d}"), 0o600)


@pytest.mark.parametrize("whose", ["the skill's", "the owner's"])
def test_the_first_word_names_the_script(ssb, whose):
    """A command means the same before and after a manifest was written; the manifest only adds what
    the script may read."""
    d = many(ssb, None)
    commands = (["scripts/a.py", "x"], ["--", "scripts/b.py", "-v"], [d / "scripts/b.py"])
    for args in commands:
        r = ssb.run(d, *args)
        assert r.code == 1 and "notes.txt" in r.errors, r
    if whose == "the skill's":
        ssb.write(d / "skillsandbox.yaml", MANIFEST)
    else:
        sidecar(ssb, d)
    said = [ssb.run(d, *args).ok().text for args in commands]
    assert said == ["A ['x'] remember\n", "B ['-v'] remember\n", "B [] remember\n"]
    none = ssb.run(d)
    assert none.code == 2 and "the skill has: scripts/a.py, scripts/b.py" in none.errors, none
    assert ssb.run(d, "scripts/c.py").code == 125
    outside = ssb.write(ssb.home / "c.py", "print('outside')")
    (d / "scripts/c.py").symlink_to(outside)
    leaves = ssb.run(d, "scripts/c.py")
    assert leaves.code == 125 and "leaves the skill" in leaves.errors and leaves.out == b"", leaves


def test_it_starts_in_the_current_directory(ssb):
    """As without a manifest, a script starts in the current directory if that is granted."""
    d = many(ssb)
    ssb.write(d / "scripts/b.py", "import os; print(os.getcwd())")
    project = ssb.mkdir("home/project")
    started = ssb.ssb("run", "-r", ".", d, "scripts/b.py", cwd=project).ok().text
    assert started == f"{project}\n"
    assert ssb.ssb("run", d, "scripts/b.py", cwd=project).ok().text == "/skill\n"


def test_an_entrypoint_gets_all_words(ssb):
    """With an entrypoint, the path of another script is an argument, and one line says so."""
    d = many(ssb, ENTRY)
    r = ssb.run(d, "scripts/b.py").ok()
    assert r.text == "A ['scripts/b.py'] remember\n"
    (line,) = r.errors.splitlines()
    assert "'scripts/b.py' is passed to the entrypoint" in line and "remove the entrypoint" in line, r
    ssb.write(d / "data.csv", "")
    for ordinary in ("x", "data.csv", "scripts", "scripts/a.py"):
        assert ssb.run(d, ordinary).ok().errors == "", ordinary
    ssb.write(d / "skillsandbox.yaml", MANIFEST)  # what the line says to do
    assert ssb.run(d, "scripts/b.py").ok().text == "B [] remember\n"


def test_only_with_a_skill_md(ssb):
    d = many(ssb)
    ssb.ssb("validate", d, d / "skillsandbox.yaml").ok()
    (d / "SKILL.md").unlink()
    for r in (ssb.ssb("validate", d), ssb.run(d, "scripts/a.py")):
        assert r.code in (1, 125) and "entrypoint is missing" in r.errors, r
        assert "only a skill with a SKILL.md" in r.errors and r.text.count("remember") == 0, r


def test_the_other_commands(ssb):
    d = many(ssb)
    seen = ssb.ssb("inspect", d).ok().text
    assert "the script that the caller names: scripts/a.py, scripts/b.py" in seen, seen
    assert "python3 /skill/scripts/b.py x" in ssb.ssb("inspect", d, "scripts/b.py", "x").ok().text
    assert ssb.ssb("inspect", "--json", d).json()["argv"] == []
    assert "SSB003" not in ssb.ssb("lint", d).ok().text
    ssb.run(d, "scripts/b.py").ok()
    assert "would have allowed everything" in ssb.ssb("check", d, "--against", "last").ok().text
    ssb.write(d / "skillsandbox.yaml", MANIFEST.replace("notes.txt]", "notes.txt, ~/unused]"))
    patch = ssb.ssb("shrink", d).text
    assert patch.count("unused") == 1 and "entrypoint" not in patch, patch


def test_an_approval_is_for_all_scripts(ssb):
    """One byte of one script changed: no script runs. The control is the run before."""
    d = many(ssb)
    asked = ssb.ssb("approve", "--yes", d).ok().errors
    assert "runs the script that the caller names scripts/a.py, scripts/b.py" \
        in " ".join(asked.split()), asked
    for script in "ab":
        assert "remember" in ssb.run(d, f"scripts/{script}.py").ok().text
        assert ssb.last_trace()["plan"]["approved"]["snapshot"]
    ssb.write(d / "scripts/b.py", READS % "C")
    for script in "ab":
        r = ssb.run(d, f"scripts/{script}.py")
        assert r.code == 125 and r.out == b"" and "scripts/b.py: changed" in r.errors, r
    assert "scripts/b.py" in ssb.ssb("diff", d).text
    ssb.ssb("approve", "--yes", d).ok()
    assert ssb.run(d, "scripts/b.py").ok().text == "C [] remember\n"


def test_init(user):
    d = many(user, None)
    user.ssb("init", d).ok()
    text = (d / "skillsandbox.yaml").read_text()
    assert "- ~/notes.txt" in text and "\nentrypoint:" not in text and "No entrypoint" in text, text
    assert user.run(d, "scripts/b.py").ok().text == "B [] remember\n"
    bare = user.mkdir("bare")
    empty = user.ssb("init", bare)
    assert empty.code == 125 and "there is no script" in empty.errors, empty
    user.write(bare / "go.py", "print('went')")
    user.ssb("init", bare).ok()
    assert user.run(bare).ok().text == "went\n"
    (bare / "skillsandbox.yaml").unlink()
    user.write(bare / "stop.py", "")
    several = user.ssb("init", bare)
    assert several.code == 2 and "it has: go.py, stop.py" in several.errors, several
    assert not (bare / "skillsandbox.yaml").exists()
    user.ssb("init", bare, "go.py").ok()
    assert user.run(bare).ok().text == "went\n"


def test_learn_adds_each_script(user):
    d = many(user, None)
    user.write(user.home / "more.txt", "more\n")
    user.write(d / "scripts/b.py", (READS % "B").replace("notes.txt", "more.txt"))
    none = user.ssb("learn", d)
    assert none.code == 2 and "the skill has: scripts/a.py, scripts/b.py" in none.errors, none
    user.ssb("learn", d, "--", "scripts/a.py").ok()
    assert user.run(d, "scripts/b.py").code == 1, "the control"
    second = user.ssb("learn", "--write", d, "--", "scripts/b.py").ok()
    assert "| B [] " in second.errors and "| A" not in second.errors, second
    text = (d / "skillsandbox.yaml").read_text()
    assert "- ~/notes.txt" in text and "- ~/more.txt" in text and "\nentrypoint:" not in text, text
    assert user.run(d, "scripts/a.py").ok().text == "A [] remember\n"
    assert user.run(d, "scripts/b.py").ok().text == "B [] more\n"
    again = user.ssb("learn", d, "--", "scripts/a.py").ok()
    assert "nothing to change" in again.errors, again
    user.write(d / "skillsandbox.yaml", ENTRY)
    wrong = user.ssb("learn", d, "--", "scripts/b.py").ok()
    assert "'scripts/b.py' is passed to the entrypoint" in wrong.errors, wrong


@pytest.mark.parametrize("interpreter", ["python3 ", ""])
def test_the_hook_names_the_script(ssb, interpreter):
    """An agent's command starts a script by its path: the hook's command runs this script,
    confined. If the skill has an entrypoint, the hook's command does not name the script."""
    d = many(ssb)
    for script in "ab":
        ssb.write(d / f"scripts/{script}.py", "#!/usr/bin/env python3" + READS % script, 0o755)
    command = f"{interpreter}{d}/scripts/b.py 'x y'"
    for manifest in (MANIFEST, None):
        if manifest is None:
            (d / "skillsandbox.yaml").unlink()
            sidecar(ssb, d)
        answer = ask(ssb, command, ssb.home)
        run = ssb.as_caller(["sh", "-c", answer["updatedInput"]["command"]], cwd=ssb.home).ok()
        assert run.text == "b ['x y'] remember\n", run
        assert ssb.last_trace()["plan"]["argv"][-2:] == ["/skill/scripts/b.py", "x y"]
    ssb.write(d / "skillsandbox.yaml", ENTRY)
    assert ask(ssb, command, ssb.home)["permissionDecision"] == "ask"
    words = ask(ssb, command.replace("b.py", "a.py"), ssb.home)["updatedInput"]["command"]
    assert "a.py" not in words, words


def test_over_mcp(ssb):
    """list_skills lists the scripts, and run_skill runs the one that args name."""
    d = many(ssb)
    alone = ssb.mkdir("skills/alone")
    ssb.write(alone / "skillsandbox.yaml", ENTRY.replace("/skill/scripts/a.py", "x.py"))
    ssb.write(alone / "x.py", "")
    with serve(ssb, [d.parent]) as client:
        listed = client.tool("list_skills")
        skills = {s["name"]: s for s in structured(listed)["skills"]}
        assert skills["notes"]["scripts"] == ["scripts/a.py", "scripts/b.py"]
        assert "scripts" not in skills["alone"]
        assert "scripts: scripts/a.py, scripts/b.py\n" in listed["content"][0]["text"]
        for script, word in ("a", "A"), ("b", "B"):
            ran = client.tool("run_skill", skill_dir="notes", args=[f"scripts/{script}.py", "x"])
            assert structured(ran)["stdout"] == f"{word} ['x'] remember\n"
        for args in {}, {"args": []}:
            error = failure(client.tool("run_skill", skill_dir="notes", **args))
            assert "args must begin with the script" in error["message"], error
            assert "scripts/a.py, scripts/b.py" in error["message"] and "list_skills" in error["fix"]
            assert "DIR" not in json.dumps(error), error
        assert structured(client.tool("inspect_skill", skill_dir="notes"))["runs"]
        # A plan is kept for a while, but not the interpreter of a script that changed.
        ssb.write(d / "scripts/a.py", "#!/bin/sh\necho shell\n")
        ran = client.tool("run_skill", skill_dir="notes", args=["scripts/a.py", "x"])
        assert structured(ran)["stdout"] == "shell\n"
        for i in range(40):
            ssb.write(d / f"scripts/{i:02}.py", "")
        listed = client.tool("list_skills")
        skills = {s["name"]: s for s in structured(listed)["skills"]}
        assert len(skills["notes"]["scripts"]) == 32 and "10 more" in listed["content"][0]["text"]
        ssb.ssb("approve", "--yes", d).ok()
        args = {"skill_dir": "notes", "args": ["scripts/b.py"]}
        assert "remember" in structured(client.tool("run_skill", **args))["stdout"], "the control"
        ssb.write(d / "scripts/a.py", "")
        assert failure(client.tool("run_skill", **args))["code"] == "approval_required"


@pytest.mark.parametrize("decision", ["always", "session"])
def test_an_answer_is_for_all_scripts(ssb, decision):
    """The question names the scripts, so that the answer is for all of them, as long as no byte
    changes."""
    d = many(ssb, MANIFEST.replace("~/notes.txt", "~/notes.txt, ~/.ssh"))
    with serve(ssb, [d.parent], capabilities={"elicitation": {}}) as client:
        result, (asked,) = answered(client, decision, skill_dir="notes", args=["scripts/a.py"])
        assert structured(result)["stdout"] == "A [] remember\n"
        assert "It runs the script that the caller names:\n" \
            "| scripts/a.py, scripts/b.py\n" in asked, asked
        result, asked = answered(client, "deny", skill_dir="notes", args=["scripts/b.py"])
        assert structured(result)["stdout"] == "B [] remember\n" and asked == []
        ssb.write(d / "scripts/b.py", "print('changed')")
        result, asked = answered(client, "deny", skill_dir="notes", args=["scripts/a.py"])
        assert failure(result)["code"] == "approval_required" and len(asked) == 1, result
        # Without a script, the owner is not asked.
        result, asked = answered(client, "always", skill_dir="notes")
        assert "args must begin" in failure(result)["message"] and asked == [], result


def test_hostile_names(ssb):
    """The name of a script cannot look like our words, and a link out of the skill is no SKILL.md."""
    d = many(ssb)
    name = "scripts/a.py\n  - nothing\x1b[2J\u202e.py"
    ssb.write(d / name, "")
    for r in (ssb.run(d), ssb.ssb("inspect", d), ssb.ssb("approve", "--yes", d)):
        said = r.text + r.errors
        assert "nothing" in said and "\x1b" not in said and "\u202e" not in said, said
        assert "\n  - nothing" not in said, said
    r = ssb.run(d, name)
    assert r.code == 2 and "invisible characters" in r.errors, r
