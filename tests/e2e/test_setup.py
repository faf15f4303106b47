"""skillsandbox setup: it calls the agent's own command to add and to remove the server.
Configuration files that setup does not understand stay unchanged.

The agents' programs are stand-ins (agent_client.py); tests/acceptance runs the real ones.
"""
import json
import os
import pathlib
import pty
import stat

import pytest

import harness

STAND_IN = pathlib.Path(__file__).with_name("agent_client.py")
PROGRAMS = {"claude-code": "claude", "codex": "codex", "openclaw": "openclaw",
            "opencode": "opencode"}
FILES = {"claude-code": ".claude.json", "codex": ".codex/config.json",
         "openclaw": ".openclaw/openclaw.json", "opencode": ".config/opencode/opencode.json"}
KEYS = {"claude-code": ["mcpServers"], "codex": [], "openclaw": ["mcp", "servers"],
        "opencode": ["mcp"]}
BEFORE = {
    "claude-code": '{"numStartups": 3,\n   "mcpServers": {"other": {"command": "x"}}, "k": [1]}',
    "codex": '{"other": {"command": "x"}}',
    "openclaw": '{\n\t"mcp": {"servers": {}},\n\t"k": "\\u00e4"\n}\n',
    "opencode": '{"$schema": "s", "k": {"n": 1.50}, "mcp": {}}\n',
}
CLIENTS = sorted(FILES)


@pytest.fixture
def agents(ssb):
    """Installs the stand-in under each agent's name. Returns the environment in which it is
    found."""
    return install(ssb)


def install(ssb):
    for name in PROGRAMS.values():
        ssb.write(ssb.base / "agents" / name, STAND_IN.read_text(), 0o755)
    return {"PATH": f"{ssb.base}/agents:{harness.PATH}"}


def set_up(ssb, client, *args, env=None, **kw):
    found = {"PATH": f"{ssb.base}/agents:{harness.PATH}", **(env or {})}
    return ssb.ssb("setup", client, *args, env=found, **kw)


def calls(ssb):
    file = ssb.home / "calls"
    lines = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return [json.loads(line) for line in lines]


def changes(ssb):
    """The commands of the agent that setup called, without those that only list servers."""
    return [c["argv"] for c in calls(ssb) if "--json" not in c["argv"]]


def take_server(client, config):
    """Removes our server from the configuration. Returns its command, or None."""
    for k in KEYS[client]:
        config = config.get(k, {})
    s = config.pop("skillsandbox", None)
    if s is None:
        return None
    assert s.get("type", "local" if client == "opencode" else "stdio") in ("local", "stdio")
    return s["command"] if client == "opencode" else [s["command"], *s["args"]]


def read(path):
    return json.loads(path.read_text())


def with_server(client, words, **more):
    """Returns the text of a configuration file in which the server `skillsandbox` has this
    command."""
    config = {"command": words} if client == "opencode" else {"command": words[0],
                                                              "args": words[1:]}
    config.update(more)
    for key in ["skillsandbox", *reversed(KEYS[client])]:
        config = {key: config}
    return json.dumps(config)


ADD = {
    "claude-code": ["claude", "mcp", "add", "--scope", "user", "skillsandbox", "--"],
    "codex": ["codex", "mcp", "add", "skillsandbox", "--"],
    "openclaw": ["openclaw", "mcp", "set", "skillsandbox"],
    "opencode": ["opencode", "mcp", "add", "skillsandbox", "--"],
}
REMOVE = {
    "claude-code": [["claude", "mcp", "remove", "--scope", "user", "skillsandbox"]],
    "codex": [["codex", "mcp", "remove", "skillsandbox"]],
    "openclaw": [["openclaw", "mcp", "unset", "skillsandbox"]],
    "opencode": [],
}


def add_words(client, words):
    if client == "openclaw":
        text = json.dumps({"command": words[0], "args": words[1:]}, separators=(",", ":"))
        return [*ADD[client], text]
    return [*ADD[client], *words]


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
def test_in_and_out_again(ssb, client):
    skills = ssb.mkdir("my $(skills)")
    file = ssb.write(ssb.home / FILES[client], BEFORE[client], 0o640)
    words = [str(ssb.binary), "serve", "--skills", str(skills)]
    r = set_up(ssb, client, "--skills", skills, "--write").ok()
    assert "mcp" in r.text and "my $(skills)" in r.text, "the command is shown"
    assert changes(ssb) == [add_words(client, words)]
    config = read(file)
    assert take_server(client, config) == words
    assert config == json.loads(BEFORE[client]), "nothing else has changed"
    assert "nothing to change" in set_up(ssb, client, "--skills", skills, "--write").ok().errors
    assert changes(ssb) == []
    other = ssb.mkdir("other")
    words += ["--skills", str(other)]
    r = set_up(ssb, client, "--skills", skills, other, "--write").ok()
    assert f'-    "{skills}"\n' in r.text or f'"{skills}"' in r.text, "what goes is shown"
    first = REMOVE[client] if client == "claude-code" else []
    assert changes(ssb) == [*first, add_words(client, words)]
    assert take_server(client, read(file)) == words
    set_up(ssb, client, "--remove", "--write").ok()
    assert changes(ssb) == REMOVE[client]
    assert read(file) == json.loads(BEFORE[client])
    st = file.stat()
    assert stat.S_IMODE(st.st_mode) == 0o640 and st.st_uid == ssb.uid
    assert "nothing to change" in set_up(ssb, client, "--remove", "--write").ok().errors
    assert changes(ssb) == []


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
def test_how_the_client_is_started(ssb, client):
    """The agent's program is started in /, with the caller's environment and an empty stdin."""
    project = ssb.mkdir("project")
    set_up(ssb, client, "--skills", ".", "--write", cwd=project, stdin=b"yes\n",
           env={"MINE": "$HOME `x`"}).ok()
    made = calls(ssb)
    assert any(str(project) in call["argv"][-1] for call in made)
    for call in made:
        assert call["cwd"] == "/" and call["stdin"] == ""
        assert call["env"]["MINE"] == "$HOME `x`" and call["env"]["HOME"] == str(ssb.home)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("path", ["", "relative:."])
def test_without_the_client(ssb, client, path):
    """The agent's program is not in PATH: its command is shown, so that it can be called later. A
    program in the project's directory is not called."""
    project = ssb.mkdir("project")
    for name in PROGRAMS.values():
        ssb.write(project / name, "#!/bin/sh\ntouch ran\n", 0o755)
        ssb.write(project / "relative" / name, "#!/bin/sh\ntouch ran\n", 0o755)
    r = set_up(ssb, client, "--skills", ssb.base, "--write", cwd=project,
               env={"PATH": f"{path}:{harness.PATH}"})
    assert r.code == 125 and f"{PROGRAMS[client]}: not found in PATH" in r.errors
    assert " ".join(ADD[client]) in r.text and str(ssb.base) in r.text
    assert not (ssb.home / FILES[client]).exists() and not (project / "ran").exists()
    # The control: with the program in PATH, the same command works.
    install(ssb)
    set_up(ssb, client, "--skills", ssb.base, "--write").ok()


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client, word", [
    ("claude-code", "add"), ("codex", "list"), ("codex", "add"), ("openclaw", "show"),
    ("openclaw", "set"), ("opencode", "add")])
def test_a_client_that_fails(ssb, client, word):
    ssb.write(ssb.home / "fail", word)
    r = set_up(ssb, client, "--skills", ssb.base, "--write")
    assert r.code == 125 and "the client's own words" in r.errors
    assert f"the command 'mcp {word}' ended with exit status 3" in r.errors
    assert "done;" not in r.errors and not (ssb.home / FILES[client]).exists()


@pytest.mark.usefixtures("agents")
def test_a_replacement_that_fails(ssb):
    """Claude Code can only remove an entry and add another one: if adding fails, setup says that
    the old entry is gone."""
    set_up(ssb, "claude-code", "--skills", ssb.base, "--write").ok()
    ssb.write(ssb.home / "fail", "add")
    r = set_up(ssb, "claude-code", "--skills", ssb.mkdir("other"), "--write")
    assert r.code == 125 and "the old entry is removed" in r.errors
    assert take_server("claude-code", read(ssb.home / ".claude.json")) is None


@pytest.mark.parametrize("program, text", [
    ("kill -9 $$", "ended with signal 9"), ("echo no json", "not plain JSON"),
    ("yes | head -c 9000000", "cannot be read")])
def test_a_client_that_breaks(root, program, text):
    root.write(root.base / "agents/codex", f"#!/bin/sh\n{program}\n", 0o755)
    r = set_up(root, "codex", "--skills", root.base, "--write")
    assert r.code == 125 and text in r.errors, repr(r)


@pytest.mark.usefixtures("agents")
def test_nothing_is_written_without_a_word(ssb):
    for client in CLIENTS:
        r = set_up(ssb, client, "--skills", ssb.base)
        assert r.code == 1 and "--write" in r.errors and " ".join(ADD[client]) in r.text
        assert changes(ssb) == [] and not (ssb.home / FILES[client]).exists()


@pytest.mark.usefixtures("agents")
def test_own_skills_by_default(ssb):
    r = set_up(ssb, "claude-code", "--write")
    assert r.code == 2 and "--skills" in r.errors
    ssb.write(ssb.home / ".claude/skills/x/SKILL.md", "")
    set_up(ssb, "claude-code", "--write").ok()
    assert take_server("claude-code", read(ssb.home / ".claude.json"))[1:] == [
        "serve", "--skills", str(ssb.home / ".claude/skills")]


@pytest.mark.usefixtures("agents")
def test_project(ssb):
    project = ssb.mkdir("project")
    set_up(ssb, "claude-code", "--project", "--skills", ".", "--write", cwd=project).ok()
    made = calls(ssb)
    assert [c["cwd"] for c in made] == [str(project)] and "project" in made[0]["argv"]
    assert take_server("claude-code", read(project / ".mcp.json"))[-1] == str(project)
    r = set_up(ssb, "opencode", "--project", "--skills", ".", "--write", cwd=project).ok()
    assert "--- (new) " in r.text and '+  "mcp": {' in r.text, "the diff is shown"
    assert calls(ssb) == [] and (project / "opencode.json").stat().st_mode & 0o777 == 0o600
    assert read(project / "opencode.json")["mcp"]["skillsandbox"]["enabled"] is True
    assert take_server("opencode", read(project / "opencode.json"))[-1] == str(project)
    for client in ("claude-code", "opencode"):
        set_up(ssb, client, "--project", "--remove", "--write", cwd=project).ok()
    assert read(project / ".mcp.json") == {"mcpServers": {}}
    assert read(project / "opencode.json") == {"mcp": {}}
    assert set_up(ssb, "codex", "--project", "--skills", ".", "--write", cwd=project).code == 2
    assert not (ssb.home / ".claude.json").exists()


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client, variable, name", [
    ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"), ("codex", "CODEX_HOME", "config.json"),
    ("openclaw", "OPENCLAW_CONFIG_PATH", ""),
    ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.jsonc")])
def test_elsewhere(ssb, client, variable, name):
    there = ssb.base / "there"
    env = {variable: str(there)}
    file = there / name if name else there
    set_up(ssb, client, "--skills", ssb.base, "--write", env=env).ok()
    assert take_server(client, read(file)) is not None
    assert "nothing to change" in set_up(ssb, client, "--skills", ssb.base, "--write",
                                         env=env).ok().errors
    set_up(ssb, client, "--remove", "--write", env=env).ok()
    assert take_server(client, read(file)) is None


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client, text", [
    ("claude-code", '{ // mine\n "mcpServers": {} }'), ("claude-code", "[]"),
    ("claude-code", '{"a": 1'), ("opencode", '{"mcp": {},}'), ("opencode", '{"mcp": 3')])
def test_what_is_not_understood_is_left_alone(ssb, client, text):
    """A file that cannot be parsed is not changed. (Claude Code itself would begin a new file in
    its place.)"""
    file = ssb.write(ssb.home / FILES[client], text)
    for args in (["--remove"], ["--skills", ssb.base]):
        r = set_up(ssb, client, *args, "--write")
        assert r.code == 125 and str(file)[:40] in r.errors and "by hand" in r.errors
        assert file.read_text() == text and changes(ssb) == []


@pytest.mark.parametrize("text", ['{"mcp": []}', '{"mcp": "x"}'])
def test_a_parent_that_is_no_object(ssb, text):
    file = ssb.write(ssb.work / "opencode.json", text)
    r = set_up(ssb, "opencode", "--project", "--skills", ssb.base, "--write")
    assert r.code == 125 and "by hand" in r.errors and file.read_text() == text


def test_a_symlink_stays_one(ssb):
    real = ssb.write(ssb.base / "dotfiles/o.json", with_server("opencode", ["skillsandbox",
                                                                            "serve"]))
    link = ssb.home / FILES["opencode"]
    ssb.write(link.parent / "x", "")
    link.symlink_to(real)
    set_up(ssb, "opencode", "--remove", "--write").ok()
    assert link.is_symlink() and read(real) == {"mcp": {}}


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client, name, decoy", [
    ("claude-code", ".mcp.json", None), ("claude-code", ".mcp.json", ".mcp.jsonc"),
    ("opencode", "opencode.json", None)])
def test_a_project_leads_to_no_other_file(ssb, client, name, decoy):
    """The file in a project is a symlink: it is refused, because a repository must not choose which
    of the user's files is changed or copied."""
    outside = ssb.write(ssb.home / "settings.json", '{"secret": 1}')
    project = ssb.mkdir("project")
    if decoy:
        ssb.write(project / decoy, "{}")
    (project / name).symlink_to(outside)
    args = (client, "--project", "--skills", ".", "--write")
    r = set_up(ssb, *args, cwd=project)
    assert r.code == 125 and name in r.errors and "symlink" in r.errors
    assert outside.read_text() == '{"secret": 1}' and (project / name).is_symlink()
    assert calls(ssb) == []
    # The control: if the file in the project is a regular file, setup changes it.
    (project / name).unlink()
    ssb.write(project / name, '{"k": 1}')
    set_up(ssb, *args, cwd=project).ok()
    config = read(project / name)
    assert take_server(client, config) is not None and config["k"] == 1


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("words", [["/opt/mine/skillsandbox", "serve"], ["skillsandbox"],
                                   ["skillsandbox", "run", "serve"], ["/bin/sh", "serve"]])
def test_what_others_wrote_stays(ssb, client, words):
    text = with_server(client, words)
    file = ssb.write(ssb.home / FILES[client], text)
    for args in (["--remove"], ["--skills", ssb.base]):
        r = set_up(ssb, client, *args, "--write")
        assert r.code == 125 and "by hand" in r.errors
        assert file.read_text() == text and changes(ssb) == []


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
def test_the_plain_name_is_ours(ssb, client):
    text = with_server(client, ["skillsandbox", "serve", "--skills", "/"])
    for args in (["--remove"], ["--skills", ssb.base]):
        file = ssb.write(ssb.home / FILES[client], text)
        set_up(ssb, client, *args, "--write").ok()
        assert file.read_text() != text


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
def test_settings_of_the_entry_are_not_lost(ssb, client):
    """The entry of our server has settings that setup did not make. It is not replaced, because the
    new entry would not have them. It stays if nothing changes, and it can be removed."""
    key = "environment" if client == "opencode" else "env"
    words = [str(ssb.binary), "serve", "--skills", str(ssb.base)]
    file = ssb.write(ssb.home / FILES[client], with_server(client, words, **{key: {"A": "b"}}))
    text = file.read_text()
    r = set_up(ssb, client, "--skills", ssb.home, "--write")
    assert r.code == 125 and f"('{key}')" in r.errors, repr(r)
    set_up(ssb, client, "--skills", ssb.base, "--write").ok()
    assert file.read_text() == text and changes(ssb) == []
    set_up(ssb, client, "--remove", "--write").ok()
    assert take_server(client, read(file)) is None


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("own", ["--policy", "--http=/run/s", "--read", "-q"])
def test_options_of_the_entry_are_not_lost(ssb, client, own):
    """The user gave the server options: setup does not replace the entry, but removes it."""
    words = [str(ssb.binary), "serve", "--skills", "/", own, str(ssb.base)]
    file = ssb.write(ssb.home / FILES[client], with_server(client, words))
    text = file.read_text()
    r = set_up(ssb, client, "--skills", ssb.base, "--write")
    assert r.code == 125 and f"a setting of yours ('{own}')" in r.errors, repr(r)
    assert file.read_text() == text and changes(ssb) == []
    set_up(ssb, client, "--remove", "--write").ok()
    assert take_server(client, read(file)) is None


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", ["claude-code", "openclaw", "opencode"])
@pytest.mark.parametrize("skills", ["base", "home"])
def test_a_server_that_is_switched_off(ssb, client, skills):
    """The user switched the server off: setup does not switch it on, but removes it."""
    words = [str(ssb.binary), "serve", "--skills", str(ssb.base)]
    file = ssb.write(ssb.home / FILES[client], with_server(client, words, enabled=False))
    text = file.read_text()
    r = set_up(ssb, client, "--skills", getattr(ssb, skills), "--write")
    assert r.code == 125 and "is switched off" in r.errors, repr(r)
    assert file.read_text() == text and changes(ssb) == []
    set_up(ssb, client, "--remove", "--write").ok()
    assert take_server(client, read(file)) is None


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_does_nothing(ssb, client):
    """The agent's command ends with status 0, but has changed nothing: setup says so."""
    add = ADD[client][2]
    ssb.write(ssb.home / "ignore", add)
    r = set_up(ssb, client, "--skills", ssb.base, "--write")
    assert r.code == 125 and "ended without an error, but" in r.errors and "done;" not in r.errors
    assert [c[2] for c in changes(ssb)] == [add]
    (ssb.home / "ignore").unlink()
    set_up(ssb, client, "--skills", ssb.base, "--write").ok()
    if REMOVE[client]:
        ssb.write(ssb.home / "ignore", REMOVE[client][0][2])
        r = set_up(ssb, client, "--remove", "--write")
        assert r.code == 125 and "ended without an error, but" in r.errors


@pytest.mark.parametrize("args", [[], ["vim"], ["codex", "--skills", "/nonexistent"],
                                  ["codex", "--skills", "/etc/passwd"]])
def test_usage(root, args):
    assert root.ssb("setup", *args, "--write").code == 2


def test_too_many_skills(root):
    install(root)
    skills = ["--skills", root.base] * 64
    assert set_up(root, "codex", *skills, "--write").code == 0
    assert len(changes(root)[0]) == len(ADD["codex"]) + 2 + 128
    r = set_up(root, "codex", *skills, root.home, "--write")
    assert r.code == 2 and "more than 64 --skills" in r.errors and changes(root) == []


def test_a_fifo_does_not_hold_us(root):
    install(root)
    os.mkfifo(root.home / ".claude.json")
    assert set_up(root, "claude-code", "--skills", root.base, "--write", timeout=20).code == 125


def at_a_terminal(ssb, args, answer, before_answer=lambda: None):
    """Runs setup on a terminal. Returns its output before the answer, and its exit status."""
    ours, theirs = pty.openpty()
    p = ssb.popen([ssb.binary, "setup", *args], stdin=theirs, stdout=theirs, stderr=theirs,
                  env=install(ssb))
    os.close(theirs)
    said = b""
    while b"Type yes" not in said:
        said += os.read(ours, 4096)
    before_answer()
    os.write(ours, answer)
    try:
        code = p.wait(20)
    finally:
        p.kill()
        os.close(ours)
    return said.decode(), code


@pytest.mark.parametrize("answer, written", [(b"yes\n", True), (b"y\n", False), (b"\n", False),
                                             (b"no\n", False), (b"\x04", False)])
def test_a_person_is_asked(ssb, answer, written):
    said, code = at_a_terminal(ssb, ["claude-code", "--skills", ssb.base], answer)
    assert "claude mcp add" in said, "the command comes first"
    assert bool(changes(ssb)) == written
    assert code == (0 if written else 1)


def test_what_changes_meanwhile_is_not_overwritten(ssb):
    file = ssb.write(ssb.home / FILES["opencode"], with_server("opencode", ["skillsandbox",
                                                                            "serve"]))
    _, code = at_a_terminal(ssb, ["opencode", "--remove"], b"yes\n",
                            lambda: file.write_text('{"new": 1}'))
    assert code == 125 and file.read_text() == '{"new": 1}'
