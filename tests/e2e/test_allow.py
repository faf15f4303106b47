"""Remembered grants: what the owner adds to a skill's approval is used by every later run, as long as
the skill does not change, and only the owner can add it."""
import json
import os

import pytest

from harness import SECRET, manifest
from mcp_client import failure, structured
from python_world import World
from serve_world import served
from terminal import CTRL_C, CTRL_D, Terminal
from test_hook import ask as ask_hook

ASK = "[N]o: "
TYPE = "Type yes: "
CODE = """
import os, socket, sys
for name in sys.argv[1:]:
    try:
        print('GOT', open(os.path.expanduser(name)).read().strip())
    except OSError as e:
        print('NOT', name, e.strerror)
        sys.exit(3)
"""
FORMATS = ("SKILL.md", "declared", "sidecar", "any directory")


def make(ssb, kind="SKILL.md", code=CODE, **fields):
    """Makes a skill of one format. Returns its directory, and the arguments that `run` needs."""
    ssb.write(ssb.home / "notes/n", "a note")
    d = ssb.mkdir("skills") / "reader"
    ssb.write(d / "main.py", code)
    if kind == "SKILL.md":
        ssb.write(d / "SKILL.md", "---\nname: reader\ndescription: reads\n---\n")
        return d, [d, "main.py"]
    text = manifest(name="reader", **fields)
    if kind == "declared":
        ssb.write(d / "skillsandbox.yaml", text)
        return d, [d]
    if kind == "sidecar":
        text = text.replace("skill:\n", f"skill:\n  directory: {d}\n", 1)
        assert "directory:" in text
    ssb.write(ssb.home / ".config/skillsandbox/skills/reader.yaml", text)
    return d, [d]


def reads(ssb, run, path="~/notes/n", text="a note"):
    """True if the skill can read the file; without a terminal, and without any option."""
    r = ssb.run(*run, path)
    assert (r.code == 0) == ("GOT" in r.text and text in r.text), r
    return r.code == 0


def rows(ssb, *args):
    return json.loads(ssb.ssb(*(args or ["approvals"]), "--json").ok().text)


def allowed(ssb):
    return [(g["option"], g["value"], g["reason"]) for r in rows(ssb) for g in r["allowed"]]


def answer(ssb, command, *answers, code=0):
    """Plays the owner at a terminal."""
    t = Terminal(ssb, "allow", *command)
    for wait, word in answers:
        t.wait_for(wait).type(word)
    assert t.end() == code, t.text
    return t


@pytest.mark.parametrize("kind", FORMATS)
def test_what_was_denied_is_remembered(ssb, kind):
    """A run is denied a file. Its last line names the command that remembers it; after this command,
    runs read the file without an option. Without the command they do not."""
    d, run = make(ssb, kind)
    r = ssb.run(*run, "~/notes/n")
    assert r.code == 3 and not reads(ssb, run), r
    short = ssb.last_record()[0]["run_id"][:8]
    r = ssb.run(*run, "~/notes/n")
    line = r.errors.strip().splitlines()[-1]
    short = ssb.last_record()[0]["run_id"][:8]
    assert line.strip() == f"to remember these: skillsandbox allow --last {short}", r.errors
    words = line.split("skillsandbox allow ")[1].split()
    t = answer(ssb, words, (ASK, "a"))  # exactly as printed
    assert "read the file ~/notes/n (new)" in t.text and TYPE not in t.text
    assert allowed(ssb) == [("read", "~/notes/n", f"denied in run {short}")]
    assert reads(ssb, run)
    plan = ssb.last_trace()["plan"]
    assert plan["approved"]["snapshot"] and "read ~/notes/n" in plan["requested"]
    assert not reads(ssb, run, "~/notes/other"), "nothing else is granted"
    # A changed byte ends it, and the message says what to do.
    with open(d / "main.py", "a", encoding="utf-8") as f:
        f.write("# more\n")
    r = ssb.run(*run, "~/notes/n")
    text = r.errors.replace("\n    | ", "")
    assert r.code == 125 and "GOT" not in r.text, r
    for part in ("main.py: changed", "grants that you remembered", "do not hold any more",
                 f"skillsandbox diff {d}", f"skillsandbox approve {d}"):
        assert part in text, text
    assert rows(ssb)[0]["state"] == "changed" and ssb.ssb("diff", d).code == 1
    # An approval offers the old grants again, with their reasons.
    t = Terminal(ssb, "approve", d).wait_for(TYPE).type("yes")
    assert t.end() == 0 and "read the file ~/notes/n" in t.text, t.text
    assert reads(ssb, run)
    assert allowed(ssb) == [("read", "~/notes/n", f"denied in run {short}")]
    assert ssb.ssb("diff", d).code == 0
    # The grants are forgotten, and the rest of the approval stays.
    assert ssb.ssb("allow", "--revoke", d).code == 0
    assert not reads(ssb, run) and rows(ssb)[0]["state"] == "holds"


def test_by_name(ssb):
    """Grants that the owner names: dangerous ones are marked, and need the typed word."""
    d, run = make(ssb)
    ssb.write(ssb.home / "out/x", "x")
    command = [d, "--net", "api.example.com:443", "--read", ssb.home / ".ssh", "--write",
               ssb.home / "out", "--env", "GITHUB_TOKEN", "--env", "COLOUR", "--reason", "a test"]
    for given, word, code in (("a", "y", 1), ("a", CTRL_D, 1), ("n", None, 1), (CTRL_D, None, 1),
                              ("yes", None, 1), ("always", None, 1)):
        steps = [(ASK, given)] + ([(TYPE, word)] if word else [])
        t = answer(ssb, command, *steps, code=code)
        assert rows(ssb) == [] and "nothing was remembered" in t.text
    assert not reads(ssb, run, "~/.ssh/id_ed25519", SECRET)
    t = answer(ssb, command, (ASK, "all"), (TYPE, "yes"))
    text = t.text.replace("\n    | ", "")
    for line in ("! read your SSH keys (~/.ssh) (new) - whoever has them can log in as you",
                 "! see the variable GITHUB_TOKEN (new)", "- see the variable COLOUR (new)",
                 "- connect to api.example.com, port 443 (TLS) (new)",
                 "- read, change and delete every file in ~/out (new)"):
        assert line in text, text
    assert sorted(allowed(ssb)) == [
        ("env", "COLOUR", "a test"), ("env", "GITHUB_TOKEN", "a test"),
        ("net", "api.example.com", "a test"), ("read", "~/.ssh", "a test"),
        ("write", "~/out", "a test")]
    assert rows(ssb)[0]["grants"] == []
    assert reads(ssb, run, "~/.ssh/id_ed25519", SECRET)
    plan = json.loads(ssb.ssb("inspect", "--json", d, env={"GITHUB_TOKEN": "t", "COLOUR": "c"})
                      .ok().text)
    granted = plan["granted"]
    assert {"GITHUB_TOKEN", "COLOUR"} <= set(granted["env"])
    assert [(n["domain"], n["ports"]) for n in granted["network"]] == [("api.example.com", [443])]
    assert (str(ssb.home / "out"), "write") in [(f["path"], f["access"]) for f in granted["files"]]
    # A second time there is nothing to ask.
    r = ssb.ssb("allow", *command)
    assert r.code == 0 and "already" in r.errors, r


def test_choose_and_decline(ssb):
    """What you take out is not remembered, and stays out until you name it again."""
    d, run = make(ssb)
    ssb.write(ssb.home / "notes/m", "another")
    command = [d, "--read", ssb.home / "notes/n", "--read", ssb.home / "notes/m"]
    t = answer(ssb, command, (ASK, "c"), ("line: none): ", "1"), (ASK, "a"))
    assert '(taken out) "read ~/notes/n"' in t.text, t.text
    assert allowed(ssb) == [("read", "~/notes/m", "")]
    assert not reads(ssb, run) and reads(ssb, run, "~/notes/m", "another")
    answer(ssb, [d, "--read", ssb.home / "notes/n"], (ASK, "a"))
    assert reads(ssb, run) and reads(ssb, run, "~/notes/m", "another")
    assert rows(ssb)[0]["declined"] == []
    # Each can be forgotten by its value, or by its option.
    assert ssb.ssb("allow", "--revoke", d, "~/notes/n").code == 0
    assert not reads(ssb, run) and reads(ssb, run, "~/notes/m", "another")
    assert ssb.ssb("allow", "--revoke", d, "--read", ssb.home / "notes/m").code == 0
    assert not reads(ssb, run, "~/notes/m", "another")
    r = ssb.ssb("allow", "--revoke", d, "~/notes/n")
    assert r.code == 2 and "not a remembered grant" in r.errors, r


def test_listed(ssb):
    """`approvals` and `allow --list` say what was approved, with date and reason, and nothing that
    the terminal would execute."""
    d, _ = make(ssb, "declared", read=["~/notes"])
    other = ssb.skill("")
    ssb.ssb("approve", "--yes", other).ok()
    ssb.ssb("allow", d, "--net", "127.0.0.1", "--yes", "--reason", "a\x1b[31mb").ok()
    (row,) = rows(ssb, "allow", "--list")
    assert row["skill"] == str(d) and row["asked"] == ["read ~/notes"]
    (grant,) = row["allowed"]
    assert grant["option"] == "net" and grant["value"] == "127.0.0.1:443"
    for command in (["approvals"], ["allow", "--list"], ["allow", "--list", d]):
        text = ssb.ssb(*command).ok().text
        assert "asked for read ~/notes" in text and "\x1b" not in text, text
        assert f"allowed   --net 127.0.0.1:443  ({grant['at'][:10]}: a" in text, text
        assert (str(other) in text) == (command == ["approvals"])
    assert rows(ssb, "allow", "--list", other) == []


def test_only_a_person(ssb):
    """Without a terminal nothing is remembered, unless --yes is given, as for `approve`. If an
    agent runs the command, the hook asks the owner. A skill has no store to write to."""
    d, run = make(ssb)
    r = ssb.ssb("allow", d, "--read", ssb.home / "notes")
    assert r.code == 1 and "needs a terminal" in r.errors and "--yes" in r.errors, r
    ssb.run(*run, "~/notes/n")
    r = ssb.ssb("allow", "--last")
    assert r.code == 1 and "needs a terminal" in r.errors and rows(ssb) == [], r
    t = Terminal(ssb, "allow", "--last", ahead=b"a\n").wait_for(ASK).type(CTRL_D)
    assert t.end() == 1 and rows(ssb) == [], "keys typed before the question do not count"
    t = Terminal(ssb, "allow", "--last").wait_for(ASK).type(CTRL_C)
    assert t.end() != 0 and rows(ssb) == []
    for line in (f"{ssb.binary} allow --last", f"{ssb.binary} allow --yes {d} --net a.example",
                 f"cd {d} && {ssb.binary} allow . --read / --yes"):
        asked = ask_hook(ssb, line, ssb.work)
        assert asked["permissionDecision"] == "ask", line
    assert ask_hook(ssb, f"{ssb.binary} why last", ssb.work) is None  # the control
    r = ssb.run("--read", ssb.binary, "--read", d, "--", ssb.binary, "allow", d, "--yes", "--net",
                "a.example")
    assert r.code == 125 and rows(ssb) == [], r
    # The control: the same words outside the sandbox.
    ssb.ssb("allow", d, "--yes", "--net", "a.example").ok()
    assert allowed(ssb) == [("net", "a.example", "")]


def test_what_cannot_be_remembered(ssb):
    """What cannot be remembered is printed with the reason, and the rest is offered. What nothing
    can grant is refused."""
    d, run = make(ssb, code=CODE.replace("for name", """
try:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
except OSError:
    pass
for name""", 1))
    ssb.run(*run, "~/notes/n")
    t = answer(ssb, ["--last"], (ASK, "n"), code=1)
    assert "cannot be remembered:" in t.text and "(new)" in t.text, t.text
    for command, words in (
            ([d, "--net", "localhost:80"], "the sandbox itself"),
            ([d, "--net", "https://a.example"], "scheme"),
            ([d, "--env", "A=b"], "only the name"),
            ([d, "--env", "LD_PRELOAD"], "loader"),
            ([d, "--env", "DISPLAY"], "not in the sandbox"),
            ([d, "--read", "/proc/1/environ"], ""),
            ([d, "--read", ssb.home / "nothing"], "No such file"),
            ([d, "--net", "a.example", "--reason", "x" * 257], "256"),
            ([d], "a grant to remember"), (["--last", d, d], "needs one of"),
            (["--last", "--list"], "needs one of"), (["/nothing", "--net", "a"], "not found")):
        r = ssb.ssb("allow", "--yes", *command)
        assert r.code != 0 and words in r.errors and rows(ssb) == [], r
    ssb.run("--", "cat", ssb.home / "notes/n")
    r = ssb.ssb("allow", "--last", "--yes")
    assert r.code == 2 and "was a command and not a skill" in r.errors, r
    assert "to remember" not in ssb.run("--", "cat", ssb.home / "notes/n").errors
    # The last run of this skill is found, although a command ran after it.
    ssb.ssb("allow", "--last", d, "--yes").ok()
    assert [a[:2] for a in allowed(ssb)] == [("read", "~/notes/n")]


def test_dangerous_in_a_run(ssb):
    """A skill tried to read keys: remembering that needs the typed word. The last line of a run names
    the command only if it would have something to offer."""
    d, run = make(ssb)
    r = ssb.run(*run, "~/.ssh/id_ed25519")
    assert "to remember these" not in r.errors and SECRET not in r.text, r
    t = answer(ssb, ["--last", d], (ASK, "a"), (TYPE, "no"), code=1)
    assert "! read your SSH keys (~/.ssh/id_ed25519) (new)" in t.text and rows(ssb) == [], t.text
    answer(ssb, ["--last", d], (ASK, "a"), (TYPE, "yes"))
    assert reads(ssb, run, "~/.ssh/id_ed25519", SECRET)
    os.mkfifo(ssb.own(ssb.home / "notes") / "fifo")
    ssb.own(ssb.home / "notes/fifo")
    for path in ("~/.local/state/skillsandbox/trace.key", "~/notes/fifo", "~/nothing"):
        r = ssb.run(*run, path)
        assert r.code == 3 and "to remember" not in r.errors, r
        assert ssb.ssb("allow", "--last", d, "--yes").code == 1


def test_a_damaged_record_proposes_nothing(ssb):
    d, run = make(ssb)
    ssb.run(*run, "~/notes/n")
    (file,) = (ssb.state / "skillsandbox/runs").glob("*/trace.jsonl")
    file.chmod(0o600)
    text = file.read_text()
    file.write_text(text.replace("/notes/n", "/notes/m"))
    ssb.write(ssb.home / "notes/m", "")
    r = ssb.ssb("allow", "--last", "--yes")
    assert r.code == 1 and "was changed" in r.errors and rows(ssb) == [], r
    file.write_text(text)  # the control
    ssb.ssb("allow", "--last", "--yes").ok()
    assert [a[1] for a in allowed(ssb)] == ["~/notes/n"]


def test_the_policy_file_still_denies(ssb):
    """A remembered grant is part of an approval: a later rule of the policy file is stronger."""
    d, run = make(ssb)
    ssb.ssb("allow", d, "--yes", "--read", ssb.home / "notes").ok()
    assert reads(ssb, run)
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml",
              "deny:\n  read: [~/notes]\n", 0o600)
    r = ssb.run(*run, "~/notes/n")
    assert r.code == 125 and "GOT" not in r.text and "denie" in r.errors, r


def test_terms_of_the_approval_stay(ssb):
    d, run = make(ssb, "declared", read=["~/.ssh"])
    ssb.ssb("approve", "--yes", "--expires", "1h", "--without", "read ~/.ssh", d).ok()
    (before,) = rows(ssb)
    ssb.ssb("allow", d, "--yes", "--read", ssb.home / "notes").ok()
    (after,) = rows(ssb)
    assert after["expires"] == before["expires"] is not None
    assert after["declined"] == ["read ~/.ssh"] and reads(ssb, run)
    assert not reads(ssb, run, "~/.ssh/id_ed25519", SECRET)


def test_through_the_server(ssb):
    """The MCP server uses remembered grants. When the files change, they do not hold."""
    d, _ = make(ssb)
    call = {"skill_dir": "reader", "args": ["main.py", "~/notes/n"]}
    with served(ssb) as client:
        result = client.tool("run_skill", **call)
        assert "GOT" not in json.dumps(result)  # the control
        ssb.ssb("allow", d, "--yes", "--read", ssb.home / "notes").ok()
        assert structured(client.tool("run_skill", **call))["stdout"] == "GOT a note\n"
        ssb.ssb("allow", "--revoke", d).ok()
        assert "GOT" not in json.dumps(client.tool("run_skill", **call))
        ssb.ssb("allow", d, "--yes", "--read", ssb.home / "notes").ok()
        with open(d / "main.py", "a", encoding="utf-8") as f:
            f.write("# more\n")
        assert failure(client.tool("run_skill", **call))["code"] == "approval_required"


def test_through_the_hook(ssb):
    """The command that the hook makes of an agent's command needs no option."""
    d, _ = make(ssb)
    line = f"python3 {d}/main.py ~/notes/n"
    command = ask_hook(ssb, line, ssb.work)["updatedInput"]["command"]
    assert "GOT" not in ssb.as_caller(["sh", "-c", command]).text  # the control
    ssb.ssb("allow", d, "--yes", "--read", ssb.home / "notes").ok()
    assert ssb.as_caller(["sh", "-c", command]).ok().text == "GOT a note\n"


def test_through_python(ssb):
    """A Skillware skill that the Python package loads uses remembered grants."""
    w = World(ssb)
    ssb.write(ssb.home / "notes/n", "a note")
    d = w.skill("""
from skillware.core.base_skill import BaseSkill
class Thing(BaseSkill):
    def execute(self, params):
        return open(params["what"]).read()
""")
    code = f"""
with SkillLoader().load_skill(SKILL)["class"]() as s:
    out(**caught(s.execute, {{"what": {str(ssb.home / 'notes/n')!r}}}))
"""
    found, _ = w.program(d, code)
    assert "result" not in found  # the control
    ssb.ssb("allow", d, "--yes", "--read", ssb.home / "notes").ok()
    found, _ = w.program(d, code)
    assert found["result"] == "a note", found
