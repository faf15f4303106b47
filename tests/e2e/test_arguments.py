"""Files that the caller names in the arguments: what a run gets, what no word reaches, and what a
client of the server must ask for. Every denial has its control: the same file is read with the flag,
or outside the sandbox."""
import json
import os
import shlex

import pytest

from harness import BY_USER, SECRET
from mcp_client import ERAS, failure, structured
from serve_world import served, skill
from terminal import CTRL_D, Terminal
from test_serve_approve import ASKS, answered, rows

READ = """
import os, sys
name = ''
for word in sys.argv[1:]:
    name = word.split('=', 1)[-1]
    try:
        print('GOT', open(name).read() if os.path.isfile(name) else sorted(os.listdir(name)))
    except OSError as e:
        print('NOT', e.errno)
if os.path.isdir(os.path.dirname(name)):
    print(os.listdir(os.path.dirname(name)))
"""
ASK = "[y/N]: "


@pytest.fixture
def files(ssb):
    """A project with a file, its neighbour, and symlinks that lead to the file and to a key."""
    project = ssb.mkdir("home/project")
    ssb.home.chmod(0o755)  # a directory that other users cannot enter is closed to a sandbox of root
    ssb.write(project / "data/people.csv", "ann")
    ssb.write(project / "data/other.csv", "neighbour")
    for name, to in (("link.csv", "data/people.csv"), ("key.csv", "../.ssh/id_ed25519")):
        os.symlink(to, project / name)
    return project


def grants(ssb):
    plan = ssb.last_trace()["plan"]["granted"]["files"]
    return [(g["target"], g["access"], g["where"]) for g in plan if g["origin"] == "caller"]


@pytest.mark.parametrize("word", ["data/people.csv", "ABS/data/people.csv", "~/project/data/people.csv",
                                  "--file=data/people.csv", "--file=~/project/data/people.csv",
                                  "./data/../data/people.csv", "../project/data/people.csv",
                                  "link.csv"])
def test_a_named_file_alone(ssb, files, word):
    word = word.replace("ABS", str(files))
    d = ssb.skill(READ, arguments="read")
    r = ssb.run(d, word, cwd=files).ok()
    assert "GOT ann" in r.text and "neighbour" not in r.text, r
    assert "other.csv" not in r.text and SECRET not in r.text
    assert grants(ssb) == [(str(files / "data/people.csv"), "read", "named by the caller")]
    shown = ssb.ssb("inspect", d, "--", word, cwd=files).ok().text
    assert f"{files}/data/people.csv  (named by the caller)" in shown, shown
    # The controls: without the key in the manifest nothing is granted; the neighbour exists.
    assert "NOT" in ssb.run(ssb.skill(READ), word, cwd=files).ok().text
    assert "neighbour" in ssb.run(d, "data/other.csv", cwd=files).ok().text
    # An option without "=" is not a path.
    assert "GOT" not in ssb.run(d, "-f", "-data/people.csv", cwd=files).ok().text


def test_a_directory_and_names_with_odd_bytes(ssb, files):
    d = ssb.skill(READ, arguments="read")
    assert "['other.csv', 'people.csv']" in ssb.run(d, "data", cwd=files).ok().text
    odd = "a b\n'; \x1b[31mrm.csv"
    ssb.write(files / odd, "odd")
    r = ssb.run(d, odd, cwd=files).ok()
    assert "GOT odd" in r.text and grants(ssb)[0][0] == str(files / odd)
    shown = ssb.ssb("inspect", d, odd, cwd=files).ok().text
    assert "\x1b" not in shown and "rm.csv  (named by the caller)" in shown
    # An absent name, and words that are places of the sandbox itself, are only words.
    assert ssb.run(d, "3", "/", "4", "/proc/self", "/dev/null", "absent.csv", cwd=files).errors == ""
    assert grants(ssb) == []


@pytest.mark.parametrize("word", ["~/.ssh/id_ed25519", "key.csv", "--k=key.csv", "../.ssh", "..",
                                  "~/.aws/credentials", "/etc/shadow", "hard.csv", "STATE",
                                  ".env", "--settings=.env.local"])
@pytest.mark.parametrize("access", ["read", "write"])
def test_what_no_word_reaches(ssb, files, word, access):
    """A dangerous place is withheld, the run goes on without it, and the remedy that is printed is
    right: followed literally, it grants the file."""
    d = ssb.skill(READ, arguments=access)
    os.link(ssb.home / ".ssh/id_ed25519", files / "hard.csv")
    for name in (".env", ".env.local"):
        ssb.write(files / name, SECRET)
    ssb.run(d).ok()  # makes the state directory
    word = str(ssb.state / "skillsandbox") if word == "STATE" else word
    r = ssb.run(d, word, cwd=files).ok()
    assert SECRET not in r.text and "root:" not in r.text and grants(ssb) == [], r
    said = next(line for line in r.errors.splitlines() if line.startswith("skillsandbox: withheld: "))
    if "--" not in said:
        assert "never granted" in said, said
        return
    flags = shlex.split(said[said.index("; the owner can grant it: ") + 26:])
    assert flags[0] == f"--{access}" and len(flags) == 2
    again = ssb.run(*flags, d, word, cwd=files)
    assert "withheld" not in again.errors and "is refused" not in again.errors, again
    if word in ("hard.csv", "~/.ssh/id_ed25519", "key.csv", ".env"):
        assert SECRET in again.ok().text, again


def test_a_file_that_other_users_cannot_reach(root):
    """Started by root: a file in the closed directory of another user."""
    closed = root.mkdir("closed", 0o700)
    file = root.write(closed / "x.csv", "closed")
    d = root.skill(READ, arguments="read")
    r = root.run(d, file).ok()
    assert "GOT" not in r.text and "withheld" in r.errors
    assert "GOT closed" in root.run("--read", file, d, file).ok().text  # the control


def test_the_skill_itself(ssb, files):
    d = ssb.skill(READ, arguments="read", files={"table.csv": "own"})
    r = ssb.run(d, d / "table.csv").ok()
    assert "GOT own" in r.text and "/skill" not in r.errors and grants(ssb) == []
    (d / "skillsandbox.yaml").write_text((d / "skillsandbox.yaml").read_text().replace(
        '"read"', '"write"'))
    r = ssb.run(d, d / "table.csv").ok()
    assert "the skill's own code" in r.errors and grants(ssb) == []


def test_many_words(ssb, files):
    for i in range(140):
        ssb.write(files / f"n{i:03}.csv", f"row {i}.")
    d = ssb.skill(READ, arguments="read")
    words = [f"n{i:03}.csv" for i in range(140)]
    r = ssb.run(d, *words, cwd=files).ok()
    assert r.text.count("GOT") == 128 and "row 127." in r.text and "row 128." not in r.text
    assert r.errors.count("more than 128 files") == 1
    assert "row 139." in ssb.run("--read", files, d, *words, cwd=files).ok().text  # the control
    r = ssb.run(d, *(["x"] * 1023), "n000.csv", "n001.csv", cwd=files).ok()
    assert "row 0." in r.text and "row 1." not in r.text
    assert ssb.run(d, *(["n000.csv"] * 10000), cwd=files).code == 125


WRITE = """
import os, sys
for word in sys.argv[1:]:
    try:
        open(word, 'a').write('added')
        print('WROTE')
    except OSError as e:
        print('NOT', e.errno)
"""


def test_write(ssb, files):
    d = ssb.skill(WRITE, arguments="write")
    r = ssb.run(d, "data/people.csv", "out.csv", "./data/new", cwd=files).ok()
    assert r.text.count("WROTE") == 3, r
    assert (files / "data/people.csv").read_text() == "annadded"
    assert (files / "out.csv").read_text() == (files / "data/new").read_text() == "added"
    assert os.stat(files / "out.csv").st_uid == ssb.uid
    # The controls: `arguments: read` gives no write access, and no file is made for other words.
    only = ssb.skill(WRITE, arguments="read")
    assert "NOT" in ssb.run(only, "data/people.csv", cwd=files).text
    before = sorted(os.listdir(files))
    ssb.run(ssb.skill("", arguments="write"), "word", "1.5", "a b.csv", "http://h/x", "none/x.csv",
            "unused.csv", "--out=./unused", cwd=files).ok()
    assert sorted(os.listdir(files)) == before  # what stays empty is removed
    r = ssb.run(d, "~/.bashrc", "./.envrc", "data/.git/hooks/x", cwd=files).ok()
    assert r.errors.count("withheld") == 2 and not (files / ".envrc").exists(), r
    # A program that replaces the file needs its directory, and gets no other file of it.
    swap = ssb.skill("import os, sys\nf = sys.argv[1]\nopen(f + '.t', 'w').write('new')\n"
                     "os.rename(f + '.t', f)", arguments="write")
    assert ssb.run(swap, "data/people.csv", cwd=files).code == 1
    assert (files / "data/people.csv").read_text() == "annadded"
    ssb.run("--write", "data", swap, "data/people.csv", cwd=files).ok()
    assert (files / "data/people.csv").read_text() == "new"


def test_the_policy_file_and_without(ssb, files):
    d = ssb.skill(READ, arguments="read")
    r = ssb.run("--without", "files named in arguments: read", d, "data/people.csv", cwd=files).ok()
    assert "GOT" not in r.text
    for deny, got in (("read", False), ("write", True)):
        ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", f"deny: {{arguments: {deny}}}\n", 0o600)
        r = ssb.run(d, "data/people.csv", cwd=files).ok()
        assert ("GOT ann" in r.text) == got and ("the policy file denies it" in r.errors) != got, r
    assert "GOT" in ssb.run("--read", "data/people.csv", d, files / "data/people.csv", cwd=files).ok().text
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", "deny: {arguments: all}\n", 0o600)
    assert "write read or write" in ssb.run(d).errors


def test_an_approval_contains_it(ssb, files):
    d = ssb.skill(READ, arguments="read")
    said = ssb.ssb("approve", "--yes", d).ok()
    assert "read the files you name when you call it" in said.text + said.errors
    assert "risk: medium" in said.text + said.errors, said
    net = ssb.skill(READ, arguments="read", egress=[{"domain": "a.example"}])
    said = ssb.ssb("approve", "--yes", net).ok()
    assert "risk: high" in said.text + said.errors and "can read the files you name when you call it " \
        "and send" in (said.text + said.errors).replace("\n    | ", ""), said
    assert "GOT ann" in ssb.run(d, "data/people.csv", cwd=files).ok().text
    ssb.ssb("approve", "--yes", "--without", "files named in arguments: read", d).ok()
    assert "GOT" not in ssb.run(d, "data/people.csv", cwd=files).ok().text
    ssb.write(d / "skillsandbox.yaml", (d / "skillsandbox.yaml").read_text().replace('"read"', '"write"'))
    changed = ssb.ssb("diff", d)
    assert "+ files named in arguments: write" in changed.text, changed


def test_a_file_that_is_not_declared_is_asked_about(ssb, files):
    d = ssb.skill(READ)
    def run(*argv, answer):
        t = Terminal(ssb, "run", *argv).wait_for(ASK).type(answer)
        assert t.end() == 0, t.text
        return t.text
    one = files / "data/people.csv"
    for answer in (b"\n", b"n\n", b"yes please\n", CTRL_D):
        assert "GOT" not in run(d, one, answer=answer)
    text = run(d, one, answer="y")
    assert "GOT ann" in text and f"read {one} for this run? " in text.replace("\r\n", ""), text
    text = run(d, one, files / "data/other.csv", files / "key.csv", answer="y")
    assert "GOT neighbour" in text and "read these 2 for this run? " in text and SECRET not in text
    # The question shows every file that a yes grants.
    many = [ssb.write(files / f"many/{i}.csv", "x") for i in range(14)]
    t = Terminal(ssb, "run", d, *many, columns=200).wait_for(ASK).type("n")
    assert t.end() == 0 and "read these 14 for this run? " in t.text, t.text
    assert all(f"{m}\n" in t.text.split(ASK)[0].replace("\r", "") for m in many), t.text
    # A file that the owner gave, and a quiet run, need no question; without a terminal there is none.
    for flags, got in ((["--read", one], True), (["--quiet"], False)):
        t = Terminal(ssb, "run", *flags, d, one)
        assert t.end() == 0 and ASK not in t.text and ("GOT ann" in t.text) == got, t.text
    assert "GOT" not in ssb.run(d, one).ok().text
    ssb.ssb("approve", "--yes", d).ok()
    assert "GOT ann" in run(d, one, answer="y")


def test_the_hint_without_a_terminal(ssb, files):
    """Without a terminal nothing is asked or granted. The flag that is printed is enough, also for a
    relative name in a skill that runs in /skill."""
    d = ssb.skill("import sys\nprint(open(sys.argv[1]).read())", files={"data/own.csv": "own"})
    r = ssb.run(d, "data/people.csv", cwd=files)
    assert r.code == 1 and "data/people.csv [not_granted]" in r.errors, r
    flags = shlex.split(r.errors.split("to allow: ")[1].splitlines()[0])
    assert ssb.run(*flags, d, "data/people.csv", cwd=files).ok().text == "ann\n"
    # A name that the skill itself has stays the skill's.
    ssb.write(files / "data/own.csv", "the caller's")
    assert ssb.run("--read", "data/own.csv", d, "data/own.csv", cwd=files).ok().text == "own\n"
    assert "not_granted" not in ssb.run(ssb.skill("exit(3)"), "3", "none.csv", cwd=files).errors


def test_a_skill_without_a_manifest(ssb, files):
    d = ssb.mkdir("sk")
    ssb.write(d / "SKILL.md", "---\nname: sk\ndescription: Reads\n---\n")
    ssb.write(d / "scripts/main.py", READ)
    # A file of the caller that has the script's name is not asked about.
    ssb.write(files / "scripts/main.py", "the caller's")
    t = Terminal(ssb, "run", d, "scripts/main.py", files / "data/people.csv").wait_for(ASK)
    assert t.type("y").end() == 0 and "GOT ann" in t.text and "main.py for this" not in t.text, t.text
    assert "GOT" not in ssb.run(d, "scripts/main.py", files / "data/people.csv").ok().text
    # A relative name works as it is written: the run starts in the caller's directory.
    t = Terminal(ssb, "run", d, "scripts/main.py", "data/people.csv", cwd=files).wait_for(ASK)
    assert t.type("y").end() == 0 and "GOT ann" in t.text and "['people.csv']" in t.text, t.text
    assert ssb.last_trace()["plan"]["argv"][-1] == "data/people.csv"


@pytest.mark.parametrize("declared", [None, "read"])
@pytest.mark.parametrize("era", ERAS)
def test_a_client_of_the_server_gains_nothing(ssb, files, era, declared):
    file, key = str(files / "data/people.csv"), str(ssb.home / ".ssh/id_ed25519")
    skill(ssb, "reader", READ, arguments=declared)
    call = {"skill_dir": "reader", "args": [file]}
    with served(ssb, era=era) as client:  # it cannot ask the owner
        ran = structured(client.tool("run_skill", **call))
        assert "GOT" not in ran["stdout"] and len(ran["withheld"]) == (1 if declared else 0), ran
        assert not declared or "an agent named it in the arguments" in ran["withheld"][0]
    with served(ssb, era=era, capabilities=ASKS) as client:
        result, asked = answered(client, "deny", **call)
        assert failure(result)["code"] == "approval_required" and "ann" not in json.dumps(result)
        assert len(asked) == 1 and f"read {file}" in asked[0].replace("\n    | ", ""), asked
        result, asked = answered(client, "once", **call)
        assert "GOT ann" in structured(result)["stdout"] and len(asked) == 1
        assert failure(answered(client, "deny", **call)[0])["code"] == "approval_required"
        for word in (key, "/etc/shadow", str(files / "key.csv")):
            result, asked = answered(client, "always", skill_dir="reader", args=[word])
            assert asked == [] and SECRET not in json.dumps(result) and "root:" not in json.dumps(result)
            assert len(structured(result)["withheld"]) == 1, result
        result, asked = answered(client, "session", **call)
        assert "GOT ann" in structured(result)["stdout"]
        result, asked = answered(client, "deny", **call)
        assert "GOT ann" in structured(result)["stdout"] and asked == []
        other = {"skill_dir": "reader", "args": [str(files / "data/other.csv")]}
        result, asked = answered(client, "deny", **other)
        assert failure(result)["code"] == "approval_required" and len(asked) == 1
    assert rows(ssb) == []
    with served(ssb, "--read", str(files / "data"), era=era) as client:  # the control: the owner gave it
        ran = structured(client.tool("run_skill", **call))
        assert "GOT ann" in ran["stdout"] and ran["withheld"] == [], ran


def test_always_is_for_that_file(ssb, files):
    file = str(files / "data/people.csv")
    d = skill(ssb, "reader", READ, arguments="read")
    with served(ssb, capabilities=ASKS) as client:
        result, asked = answered(client, "always", skill_dir="reader", args=[file])
        assert "GOT ann" in structured(result)["stdout"] and len(asked) == 1
        assert rows(ssb) == [(str(d), "read", file, "MCP client test")]
        result, asked = answered(client, "deny", skill_dir="reader", args=[file])
        assert "GOT ann" in structured(result)["stdout"] and asked == []
        other = str(files / "data/other.csv")
        result, asked = answered(client, "deny", skill_dir="reader", args=[other])
        assert failure(result)["code"] == "approval_required" and len(asked) == 1
        ran = structured(client.tool("run_skill", skill_dir="reader", args=[file]))
        assert "neighbour" not in ran["stdout"]


def test_learn_check_and_shrink(ssb, files):
    d = ssb.mkdir("sk")
    ssb.write(d / "SKILL.md", "---\nname: sk\ndescription: Reads\n---\n")
    ssb.write(d / "scripts/main.py", READ)
    ssb.ssb("learn", d, "--", "scripts/main.py", "data/people.csv", cwd=files).ok()
    text = (d / "skillsandbox.yaml").read_text()
    assert "arguments: read" in text and "people" not in text, text
    # The word that names the script is not a file of the caller, even if there is one of this name.
    ssb.write(files / "scripts/main.py", "the caller's")
    assert "GOT ann" in ssb.run(d, "scripts/main.py", "data/people.csv", cwd=files).ok().text
    assert [target for target, *_ in grants(ssb)] == [str(files / "data/people.csv")]
    assert "everything" in ssb.ssb("check", d, "--against", "last").ok().text
    wide = ssb.write(d / "skillsandbox.yaml", text.replace("arguments: read", "arguments: write"))
    assert "-    arguments: write\n+    arguments: read" in ssb.ssb("shrink", d).ok().text
    ssb.write(wide, text.replace("  filesystem:\n    arguments: read", "  {}"))
    found = ssb.ssb("check", d, "--against", "last")
    assert found.code == 1 and "read the files that the arguments name" in found.text, found


@BY_USER
def test_a_file_that_the_caller_may_not_write(ssb, files):
    """It is withheld, and the run goes on: the caller has no right to give away."""
    d = ssb.skill(READ, arguments="write")
    ssb.write(files / "theirs.csv", "theirs", 0o444)
    (files / "closed").mkdir(0o555)
    ssb.own(files / "closed")
    for word in ("theirs.csv", "closed/new.csv"):
        r = ssb.run(d, word, cwd=files).ok()
        assert "withheld" in r.errors and "may not write" in r.errors and grants(ssb) == [], r
    assert grants_after(ssb, d, "data/people.csv", files), "control"


def grants_after(ssb, skill, word, cwd):
    ssb.run(skill, word, cwd=cwd).ok()
    return grants(ssb)
