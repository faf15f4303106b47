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
import yaml

import harness

STAND_IN = pathlib.Path(__file__).with_name("agent_client.py")
PROGRAMS = {"claude-code": "claude", "codex": "codex", "openclaw": "openclaw",
            "opencode": "opencode"}
FILES = {"claude-code": ".claude.json", "cursor": ".cursor/mcp.json",
         "gemini-cli": ".gemini/settings.json", "vscode": ".config/Code/User/mcp.json",
         "codex": ".codex/config.json",
         "openclaw": ".openclaw/openclaw.json", "opencode": ".config/opencode/opencode.json"}
KEYS = {"claude-code": ["mcpServers"], "cursor": ["mcpServers"], "gemini-cli": ["mcpServers"],
        "vscode": ["servers"], "codex": [], "openclaw": ["mcp", "servers"],
        "opencode": ["mcp"]}
BEFORE = {
    "claude-code": '{"numStartups": 3,\n   "mcpServers": {"other": {"command": "x"}}, "k": [1]}',
    "codex": '{"other": {"command": "x"}}',
    "openclaw": '{\n\t"mcp": {"servers": {}},\n\t"k": "\\u00e4"\n}\n',
    "opencode": '{"$schema": "s", "k": {"n": 1.50}, "mcp": {}}\n',
}
CLIENTS = sorted(PROGRAMS)
# These have no command for servers that setup uses: their documented files are edited.
EDITED = sorted(set(FILES) - set(PROGRAMS))


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
    server_only = ["--no-hook"] if client == "claude-code" and "--hook" not in args else []
    args = [a for a in args if a != "--hook"]
    return ssb.ssb("setup", client, *args, *server_only, env=found, **kw)


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
    r = set_up(ssb, client, "--skills", skills, "--yes").ok()
    assert "mcp" in r.text and "my $(skills)" in r.text, "the command is shown"
    assert changes(ssb) == [add_words(client, words)]
    config = read(file)
    assert take_server(client, config) == words
    assert config == json.loads(BEFORE[client]), "nothing else has changed"
    assert "nothing to change" in set_up(ssb, client, "--skills", skills, "--yes").ok().errors
    assert changes(ssb) == []
    other = ssb.mkdir("other")
    words += ["--skills", str(other)]
    r = set_up(ssb, client, "--skills", skills, other, "--yes").ok()
    assert f'-    "{skills}"\n' in r.text or f'"{skills}"' in r.text, "what goes is shown"
    first = REMOVE[client] if client == "claude-code" else []
    assert changes(ssb) == [*first, add_words(client, words)]
    assert take_server(client, read(file)) == words
    set_up(ssb, client, "--remove", "--yes").ok()
    assert changes(ssb) == REMOVE[client]
    assert read(file) == json.loads(BEFORE[client])
    st = file.stat()
    assert stat.S_IMODE(st.st_mode) == 0o640 and st.st_uid == ssb.uid
    assert "nothing to change" in set_up(ssb, client, "--remove", "--yes").ok().errors
    assert changes(ssb) == []


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
def test_how_the_client_is_started(ssb, client):
    """The agent's program is started in /, with the caller's environment and an empty stdin."""
    project = ssb.mkdir("project")
    set_up(ssb, client, "--skills", ".", "--yes", cwd=project, stdin=b"yes\n",
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
    r = set_up(ssb, client, "--skills", ssb.base, "--yes", cwd=project,
               env={"PATH": f"{path}:{harness.PATH}"})
    assert r.code == 125 and f"{PROGRAMS[client]}: not found in PATH" in r.errors
    assert " ".join(ADD[client]) in r.text and str(ssb.base) in r.text
    assert not (ssb.home / FILES[client]).exists() and not (project / "ran").exists()
    # The control: with the program in PATH, the same command works.
    install(ssb)
    set_up(ssb, client, "--skills", ssb.base, "--yes").ok()


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client, word", [
    ("claude-code", "add"), ("codex", "list"), ("codex", "add"), ("openclaw", "show"),
    ("openclaw", "set"), ("opencode", "add")])
def test_a_client_that_fails(ssb, client, word):
    ssb.write(ssb.home / "fail", word)
    r = set_up(ssb, client, "--skills", ssb.base, "--yes")
    assert r.code == 125 and "the client's own words" in r.errors
    assert f"the command 'mcp {word}' ended with exit status 3" in r.errors
    assert "done;" not in r.errors and not (ssb.home / FILES[client]).exists()


@pytest.mark.usefixtures("agents")
def test_a_replacement_that_fails(ssb):
    """Claude Code can only remove an entry and add another one: if adding fails, setup says that
    the old entry is gone."""
    set_up(ssb, "claude-code", "--skills", ssb.base, "--yes").ok()
    ssb.write(ssb.home / "fail", "add")
    r = set_up(ssb, "claude-code", "--skills", ssb.mkdir("other"), "--yes")
    assert r.code == 125 and "the old entry is removed" in r.errors
    assert take_server("claude-code", read(ssb.home / ".claude.json")) is None


@pytest.mark.parametrize("program, text", [
    ("kill -9 $$", "ended with signal 9"), ("echo no json", "not plain JSON"),
    ("yes | head -c 9000000", "cannot be read")])
def test_a_client_that_breaks(root, program, text):
    root.write(root.base / "agents/codex", f"#!/bin/sh\n{program}\n", 0o755)
    r = set_up(root, "codex", "--skills", root.base, "--yes")
    assert r.code == 125 and text in r.errors, repr(r)


@pytest.mark.usefixtures("agents")
def test_nothing_is_written_without_a_word(ssb):
    for client in CLIENTS:
        r = set_up(ssb, client, "--skills", ssb.base)
        assert r.code == 1 and "--yes" in r.errors and " ".join(ADD[client]) in r.text
        assert changes(ssb) == [] and not (ssb.home / FILES[client]).exists()


@pytest.mark.usefixtures("agents")
def test_own_skills_by_default(ssb):
    r = set_up(ssb, "claude-code", "--yes")
    assert r.code == 2 and "--skills" in r.errors
    ssb.write(ssb.home / ".claude/skills/x/SKILL.md", "")
    set_up(ssb, "claude-code", "--yes").ok()
    assert take_server("claude-code", read(ssb.home / ".claude.json"))[1:] == [
        "serve", "--skills", str(ssb.home / ".claude/skills")]


@pytest.mark.usefixtures("agents")
def test_project(ssb):
    project = ssb.mkdir("project")
    set_up(ssb, "claude-code", "--local", "--skills", ".", "--yes", cwd=project).ok()
    made = calls(ssb)
    assert [c["cwd"] for c in made] == [str(project)] and "project" in made[0]["argv"]
    assert take_server("claude-code", read(project / ".mcp.json"))[-1] == str(project)
    r = set_up(ssb, "opencode", "--local", "--skills", ".", "--yes", cwd=project).ok()
    assert "--- (new) " in r.text and '+  "mcp": {' in r.text, "the diff is shown"
    assert calls(ssb) == [] and (project / "opencode.json").stat().st_mode & 0o777 == 0o600
    assert read(project / "opencode.json")["mcp"]["skillsandbox"]["enabled"] is True
    assert take_server("opencode", read(project / "opencode.json"))[-1] == str(project)
    for client in ("claude-code", "opencode"):
        set_up(ssb, client, "--local", "--remove", "--yes", cwd=project).ok()
    assert read(project / ".mcp.json") == {"mcpServers": {}}
    assert read(project / "opencode.json") == {"mcp": {}}
    assert set_up(ssb, "codex", "--local", "--skills", ".", "--yes", cwd=project).code == 2
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
    set_up(ssb, client, "--skills", ssb.base, "--yes", env=env).ok()
    assert take_server(client, read(file)) is not None
    assert "nothing to change" in set_up(ssb, client, "--skills", ssb.base, "--yes",
                                         env=env).ok().errors
    set_up(ssb, client, "--remove", "--yes", env=env).ok()
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
        r = set_up(ssb, client, *args, "--yes")
        assert r.code == 125 and str(file)[:40] in r.errors and "by hand" in r.errors
        assert file.read_text() == text and changes(ssb) == []


@pytest.mark.parametrize("text", ['{"mcp": []}', '{"mcp": "x"}'])
def test_a_parent_that_is_no_object(ssb, text):
    file = ssb.write(ssb.work / "opencode.json", text)
    r = set_up(ssb, "opencode", "--local", "--skills", ssb.base, "--yes")
    assert r.code == 125 and "by hand" in r.errors and file.read_text() == text


def test_a_symlink_stays_one(ssb):
    real = ssb.write(ssb.base / "dotfiles/o.json", with_server("opencode", ["skillsandbox",
                                                                            "serve"]))
    link = ssb.home / FILES["opencode"]
    ssb.write(link.parent / "x", "")
    link.symlink_to(real)
    set_up(ssb, "opencode", "--remove", "--yes").ok()
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
    args = (client, "--local", "--skills", ".", "--yes")
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
        r = set_up(ssb, client, *args, "--yes")
        assert r.code == 125 and "by hand" in r.errors
        assert file.read_text() == text and changes(ssb) == []


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
def test_the_plain_name_is_ours(ssb, client):
    text = with_server(client, ["skillsandbox", "serve", "--skills", "/"])
    for args in (["--remove"], ["--skills", ssb.base]):
        file = ssb.write(ssb.home / FILES[client], text)
        set_up(ssb, client, *args, "--yes").ok()
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
    r = set_up(ssb, client, "--skills", ssb.home, "--yes")
    assert r.code == 125 and f"('{key}')" in r.errors, repr(r)
    set_up(ssb, client, "--skills", ssb.base, "--yes").ok()
    assert file.read_text() == text and changes(ssb) == []
    set_up(ssb, client, "--remove", "--yes").ok()
    assert take_server(client, read(file)) is None


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("own", ["--policy", "--http=/run/s", "--read", "-q"])
def test_options_of_the_entry_are_not_lost(ssb, client, own):
    """The user gave the server options: setup does not replace the entry, but removes it."""
    words = [str(ssb.binary), "serve", "--skills", "/", own, str(ssb.base)]
    file = ssb.write(ssb.home / FILES[client], with_server(client, words))
    text = file.read_text()
    r = set_up(ssb, client, "--skills", ssb.base, "--yes")
    assert r.code == 125 and f"a setting of yours ('{own}')" in r.errors, repr(r)
    assert file.read_text() == text and changes(ssb) == []
    set_up(ssb, client, "--remove", "--yes").ok()
    assert take_server(client, read(file)) is None


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", ["claude-code", "openclaw", "opencode"])
@pytest.mark.parametrize("skills", ["base", "home"])
def test_a_server_that_is_switched_off(ssb, client, skills):
    """The user switched the server off: setup does not switch it on, but removes it."""
    words = [str(ssb.binary), "serve", "--skills", str(ssb.base)]
    file = ssb.write(ssb.home / FILES[client], with_server(client, words, enabled=False))
    text = file.read_text()
    r = set_up(ssb, client, "--skills", getattr(ssb, skills), "--yes")
    assert r.code == 125 and "is switched off" in r.errors, repr(r)
    assert file.read_text() == text and changes(ssb) == []
    set_up(ssb, client, "--remove", "--yes").ok()
    assert take_server(client, read(file)) is None


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_does_nothing(ssb, client):
    """The agent's command ends with status 0, but has changed nothing: setup says so."""
    add = ADD[client][2]
    ssb.write(ssb.home / "ignore", add)
    r = set_up(ssb, client, "--skills", ssb.base, "--yes")
    assert r.code == 125 and "ended without an error, but" in r.errors and "done;" not in r.errors
    assert [c[2] for c in changes(ssb)] == [add]
    (ssb.home / "ignore").unlink()
    set_up(ssb, client, "--skills", ssb.base, "--yes").ok()
    if REMOVE[client]:
        ssb.write(ssb.home / "ignore", REMOVE[client][0][2])
        r = set_up(ssb, client, "--remove", "--yes")
        assert r.code == 125 and "ended without an error, but" in r.errors


@pytest.mark.parametrize("args", [[], ["vim"], ["codex", "--skills", "/nonexistent"],
                                  ["codex", "--skills", "/etc/passwd"]])
def test_usage(root, args):
    assert root.ssb("setup", *args, "--yes").code == 2


def test_too_many_skills(root):
    install(root)
    skills = ["--skills", root.base] * 64
    assert set_up(root, "codex", *skills, "--yes").code == 0
    assert len(changes(root)[0]) == len(ADD["codex"]) + 2 + 128
    r = set_up(root, "codex", *skills, root.home, "--yes")
    assert r.code == 2 and "more than 64 --skills" in r.errors and changes(root) == []


def test_a_fifo_does_not_hold_us(root):
    install(root)
    os.mkfifo(root.home / ".claude.json")
    assert set_up(root, "claude-code", "--skills", root.base, "--yes", timeout=20).code == 125


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
    assert "claude mcp add" in said and "hook claude-code" in said, "the changes come first"
    assert bool(changes(ssb)) == written == (ssb.home / ".claude/settings.json").exists()
    assert code == (0 if written else 1)


def test_what_changes_meanwhile_is_not_overwritten(ssb):
    file = ssb.write(ssb.home / FILES["opencode"], with_server("opencode", ["skillsandbox",
                                                                            "serve"]))
    _, code = at_a_terminal(ssb, ["opencode", "--remove"], b"yes\n",
                            lambda: file.write_text('{"new": 1}'))
    assert code == 125 and file.read_text() == '{"new": 1}'


BEFORE_EDITED = {
    "cursor": '{"mcpServers": {"other": {"url": "https://x"}}, "k": [1]}',
    "gemini-cli": '{"security": {"auth": {"selectedType": "x"}}, "mcpServers": {}}',
    "vscode": '{"servers": {"other": {"type": "http", "url": "https://x"}}, "inputs": []}',
}


@pytest.mark.parametrize("client", EDITED)
def test_a_file_that_is_edited(ssb, client):
    """Cursor, Gemini CLI and VS Code: the entry is added to the file that their documentation names, and
    removed again. Everything else keeps its value, and the agent's program is not needed."""
    file = ssb.write(ssb.home / FILES[client], BEFORE_EDITED[client], 0o640)
    r = set_up(ssb, client, "--skills", ssb.base)
    assert r.code == 1 and "--yes" in r.errors and '+    "skillsandbox": {' in r.text, repr(r)
    assert file.read_text() == BEFORE_EDITED[client]
    words = [str(ssb.binary), "serve", "--skills", str(ssb.base)]
    set_up(ssb, client, "--skills", ssb.base, "--yes").ok()
    config = read(file)
    assert take_server(client, config) == words and config == json.loads(BEFORE_EDITED[client])
    assert "nothing to change" in set_up(ssb, client, "--skills", ssb.base, "--yes").ok().errors
    set_up(ssb, client, "--remove", "--yes").ok()
    assert read(file) == json.loads(BEFORE_EDITED[client])
    assert stat.S_IMODE(file.stat().st_mode) == 0o640 and file.stat().st_uid == ssb.uid


@pytest.mark.parametrize("client, name", [("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json"),
                                          ("gemini-cli", ".gemini/settings.json")])
def test_the_directory_of_a_project(ssb, client, name):
    """In a project the directory is made if it is missing. A symlink in its place is refused, because a
    repository must not choose which of the user's files is changed."""
    project = ssb.mkdir("project")
    args = (client, "--local", "--skills", ".", "--yes")
    outside = ssb.mkdir("outside")
    directory = (project / name).parent
    directory.symlink_to(outside)
    r = set_up(ssb, *args, cwd=project)
    assert r.code == 125 and "symlink" in r.errors and not list(outside.iterdir()), repr(r)
    directory.unlink()
    set_up(ssb, *args, cwd=project).ok()
    assert take_server(client, read(project / name))[-1] == str(project)


GOOSE = """\
# my settings
GOOSE_PROVIDER: openai   # paid
extensions:
  # tools for code
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin

# the end
GOOSE_MODE: auto
"""


def goose_words(text):
    entry = yaml.safe_load(text)["extensions"]["skillsandbox"]
    assert entry["enabled"] is True and entry["type"] == "stdio" and entry["name"] == "skillsandbox"
    return [entry["cmd"], *entry["args"]]


@pytest.mark.parametrize("before", [GOOSE, "", "extensions:\n", "GOOSE_MODE: auto",
                                    "extensions:\n    a:\n        enabled: false\n"])
def test_goose(ssb, before):
    """Goose has YAML: our lines are added and removed, and all others, also comments, stay."""
    file = ssb.write(ssb.home / ".config/goose/config.yaml", before)
    skills = ssb.mkdir("it's #1: skills")
    words = [str(ssb.binary), "serve", "--skills", str(skills)]
    set_up(ssb, "goose", "--skills", skills, "--yes").ok()
    assert goose_words(file.read_text()) == words
    assert "nothing to change" in set_up(ssb, "goose", "--skills", skills, "--yes").ok().errors
    set_up(ssb, "goose", "--skills", skills, "--net=example.org", "--yes").ok()
    assert goose_words(file.read_text()) == [*words, "--net=example.org"]
    with_ours = yaml.safe_load(file.read_text())
    with_ours["extensions"].pop("skillsandbox")
    wanted = yaml.safe_load(before) or {}
    assert (with_ours["extensions"] or None) == (wanted.get("extensions") or None)
    set_up(ssb, "goose", "--remove", "--yes").ok()
    kept = file.read_text()
    assert kept.rstrip("\n") == before.rstrip("\n") or kept == before + "extensions:\n" or \
        kept == before + "\nextensions:\n", repr(kept)


@pytest.mark.parametrize("text, word", [
    ("extensions: null\nb: 1\n", "one member on each line"), ("a: 1\n...\n", "by hand"),
    ("? extensions\n: a: 1\n", "by hand"),
    ("extensions: {a: {enabled: true}}\n", "one member on each line"), ("extensions: {}\n", "one member"),
    ("extensions: ~\n", "by hand"),
    ("extensions:\n  skillsandbox: {\n    cmd: 'BIN', args: [serve]\n  }\n  a:\n    b: c\n", "by hand"),
    ("- a\n", "by hand"), ("a: &x 1\nb: *x\n", "by hand"), ("a: [\n", "by hand"),
    ("extensions:\n  skillsandbox:\n    cmd: /bin/sh\n    args: [serve]\n", "another program")])
def test_goose_files_that_are_left_alone(user, text, word):
    text = text.replace("BIN", str(user.binary))
    file = user.write(user.home / ".config/goose/config.yaml", text)
    r = set_up(user, "goose", "--skills", user.base, "--yes")
    assert r.code == 125 and word in r.errors and file.read_text() == text, repr(r)
    assert str(file)[:40] in r.errors, "the file is named"


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("client", CLIENTS)
def test_options_for_the_server(ssb, client):
    """setup takes the options of the owner and writes them behind serve, with absolute paths. The server
    of the entry starts with them."""
    project = ssb.mkdir("project")
    ssb.write(project / "data", "x")
    given = ["--project", "--read", "data", "--net", "example.org:443", "--env", "LANG", "-m", "512M"]
    set_up(ssb, client, "--skills", ssb.base, *given, "--yes", cwd=project).ok()
    (added,) = changes(ssb)
    words = [str(ssb.binary), "serve", "--skills", str(ssb.base), "--project",
             f"--read={project}/data", "--net=example.org:443", "--env=LANG", "--memory=512M"]
    assert added == add_words(client, words)
    r = ssb.as_caller(words, cwd=project, stdin=b"")
    assert r.code == 0 and "usage" not in r.errors, repr(r)
    # Other options replace these: they are setup's own.
    set_up(ssb, client, "--skills", ssb.base, "--net=example.net", "--yes", cwd=project).ok()
    for wrong in (["--net", "https://example.org"], ["--read", "nosuch"], ["--memory", "x"]):
        r = set_up(ssb, client, "--skills", ssb.base, *wrong, "--yes", cwd=project)
        assert r.code == 2, repr(r)


SETTINGS = """{
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Edit", "hooks": [{"type": "command", "command": "/opt/mine"}]}
    ],
    "Stop": []
  }
}"""


def bash_hooks(config):
    return [h["command"] for e in config["hooks"]["PreToolUse"] if e["matcher"] == "Bash"
            for h in e["hooks"]]


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("before", [SETTINGS, "{}", None])
def test_the_hook_comes_with_the_server(ssb, before):
    """setup claude-code also adds the hook, beside hooks of the user, and removes it again. The command
    that is written answers as the hook does."""
    file = ssb.home / ".claude/settings.json"
    if before:
        ssb.write(file, before)
    ssb.write(ssb.home / ".claude/skills/x/SKILL.md", "")
    args = ("claude", "--skills", ssb.base, "--hook", "--yes")
    r = set_up(ssb, *args).ok()
    assert '+    "PreToolUse"' in r.text or "hook claude-code" in r.text
    config = read(file)
    (command,) = bash_hooks(config)
    assert command == f"{ssb.binary} hook claude-code"
    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": str(ssb.work),
             "tool_input": {"command": f"python3 {ssb.home}/.claude/skills/x/run.py"}}
    ssb.write(ssb.home / ".claude/skills/x/run.py", "print(1)")
    asked = ssb.as_caller(["sh", "-c", command], stdin=json.dumps(event).encode()).ok()
    assert "skillsandbox run" in asked.text or "ask" in asked.text, repr(asked)
    assert "nothing to change" in set_up(ssb, *args).ok().errors
    set_up(ssb, "claude", "--remove", "--hook", "--yes").ok()
    assert read(file).get("hooks", {}).get("PreToolUse", []) == \
        json.loads(before or "{}").get("hooks", {}).get("PreToolUse", [])
    assert "nothing to change" in set_up(ssb, "claude", "--remove", "--hook", "--yes").ok().errors
    set_up(ssb, "claude-code", "--skills", ssb.base, "--yes").ok()
    assert "hook claude-code" not in file.read_text(), "control: --no-hook adds the server alone"


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("text, word", [
    ('{"hooks": {"PreToolUse": {"a": 1}}}', "not an array"), ('{"hooks": []}', "not an object"),
    ('{ // mine\n}', "plain JSON"),
    ('{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": '
     '"/old/skillsandbox hook claude-code"}, {"type": "command", "command": "x"}]}]}}', "by hand")])
def test_settings_that_are_not_understood_stay(user, text, word):
    file = user.write(user.home / ".claude/settings.json", text)
    install(user)
    r = set_up(user, "claude-code", "--skills", user.base, "--hook", "--yes")
    assert r.code == 125 and word in r.errors, repr(r)
    assert file.read_text() == text and changes(user) == [], "the server is not added either"


@pytest.mark.usefixtures("agents")
def test_a_hook_of_an_old_installation_is_replaced(user):
    old = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "'/old place/skillsandbox' hook claude-code"}]}]}}
    file = user.write(user.home / ".claude/settings.json", json.dumps(old))
    install(user)
    set_up(user, "claude-code", "--skills", user.base, "--hook", "--yes").ok()
    assert bash_hooks(read(file)) == [f"{user.binary} hook claude-code"]
