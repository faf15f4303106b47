"""skillsandbox setup: adds the server to an agent's file and removes it; everything else stays."""
import json
import os
import pty
import stat
import tomllib

import pytest

FILES = {"claude-code": ".claude.json", "codex": ".codex/config.toml",
         "openclaw": ".openclaw/openclaw.json", "opencode": ".config/opencode/opencode.json"}
BEFORE = {
    "claude-code": '{"numStartups": 3,\n   "mcpServers": {"other": {"command": "x"}}, "k": [1]}',
    "codex": '# mine\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "x"\n',
    "openclaw": '{\n\t"mcp": {"servers": {}},\n\t"k": "\\u00e4"\n}\n',
    "opencode": '{"$schema": "s"}\n',
}
CLIENTS = sorted(FILES)


def set_up(ssb, client, *args, **kw):
    return ssb.ssb("setup", client, *args, **kw)


def read(client, path):
    text = path.read_text()
    return tomllib.loads(text) if client == "codex" else json.loads(text)


def server(client, config):
    """(command, arguments) of our server, or None."""
    keys = {"claude-code": ["mcpServers"], "codex": ["mcp_servers"],
            "openclaw": ["mcp", "servers"], "opencode": ["mcp"]}[client]
    for k in keys:
        config = config.get(k, {})
    s = config.pop("skillsandbox", None)
    if s is None:
        return None
    if client == "opencode":
        assert s["type"] == "local" and s["enabled"] is True
        return s["command"][0], s["command"][1:]
    assert s.get("type", "stdio") == "stdio"
    return s["command"], s["args"]


@pytest.mark.parametrize("client", CLIENTS)
def test_in_and_out_again(ssb, client):
    skills = ssb.mkdir("my skills")
    file = ssb.write(ssb.home / FILES[client], BEFORE[client], 0o640)
    r = set_up(ssb, client, "--skills", skills, "--write").ok()
    assert "+" in r.text and "skillsandbox" in r.text, "the diff is shown"
    config = read(client, file)
    assert server(client, config) == (str(ssb.binary), ["serve", "--skills", str(skills)])
    file2 = ssb.write(ssb.base / "before", BEFORE[client])
    before = read(client, file2)
    if client == "opencode":
        assert config.pop("mcp") == {}
    assert config == before, "nothing else has changed"
    st = file.stat()
    assert stat.S_IMODE(st.st_mode) == 0o640 and st.st_uid == ssb.uid
    text = file.read_bytes()
    assert "nothing to change" in set_up(ssb, client, "--skills", skills, "--write").ok().errors
    assert file.read_bytes() == text
    other = ssb.mkdir("other")
    set_up(ssb, client, "--skills", skills, other, "--write").ok()
    assert server(client, read(client, file))[1] == ["serve", "--skills", str(skills), "--skills",
                                                     str(other)]
    set_up(ssb, client, "--remove", "--write").ok()
    config = read(client, file)
    assert server(client, config) is None
    if client != "opencode":
        assert config == before
    assert "nothing to change" in set_up(ssb, client, "--remove", "--write").ok().errors
    assert not [p for p in file.parent.iterdir() if p.name.startswith(file.name + ".")]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_new_file(ssb, client):
    file = ssb.home / FILES[client]
    set_up(ssb, client, "--skills", ssb.base, "--write").ok()
    assert server(client, read(client, file)) is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_nothing_is_written_without_a_word(ssb):
    file = ssb.write(ssb.home / ".claude.json", BEFORE["claude-code"])
    r = set_up(ssb, "claude-code", "--skills", ssb.base)
    assert r.code == 1 and "--write" in r.errors and "skillsandbox" in r.text
    assert file.read_text() == BEFORE["claude-code"]


@pytest.mark.parametrize("text, line, word", [
    ('model = "o3\n[tools]\n', 1, "a string that is not closed"),
    ('model = "o3"\n\n[tools\nx = 1\n', 3, "the header of a table that is not closed"),
    ('a = 1\nb = [1,\n2\n', 2, "a '[' that is not closed"),
    ("a = 1\nmodel = o3\n", 2, "needs quotes")])
def test_no_valid_toml(ssb, text, line, word):
    """Codex does not read it, and a table behind an open string is none."""
    file = ssb.write(ssb.home / ".codex/config.toml", text)
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    for words in (["--skills", ssb.base, "--write"], ["--remove", "--write"]):
        r = set_up(ssb, "codex", *words)
        assert r.code == 125 and f"/.codex/config.toml:{line}: it is not valid TOML" in r.errors
        assert word in r.errors and r.out == b"", repr(r)
        assert file.read_text() == text


def test_own_skills_by_default(ssb):
    r = set_up(ssb, "claude-code", "--write")
    assert r.code == 2 and "--skills" in r.errors
    ssb.write(ssb.home / ".claude/skills/x/SKILL.md", "")
    set_up(ssb, "claude-code", "--write").ok()
    assert server("claude-code", read("claude-code", ssb.home / ".claude.json"))[1] == [
        "serve", "--skills", str(ssb.home / ".claude/skills")]


def test_project(ssb):
    project = ssb.mkdir("project")
    set_up(ssb, "claude-code", "--project", "--skills", ".", "--write", cwd=project).ok()
    set_up(ssb, "opencode", "--project", "--skills", ".", "--write", cwd=project).ok()
    assert server("claude-code", read("claude-code", project / ".mcp.json"))[1][-1] == str(project)
    assert server("opencode", read("opencode", project / "opencode.json")) is not None
    assert set_up(ssb, "codex", "--project", "--skills", ".", "--write", cwd=project).code == 2
    assert not (ssb.home / ".claude.json").exists()


@pytest.mark.parametrize("client, variable, name", [
    ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"), ("codex", "CODEX_HOME", "config.toml"),
    ("openclaw", "OPENCLAW_CONFIG_PATH", ""),
    ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json")])
def test_elsewhere(ssb, client, variable, name):
    there = ssb.base / "there"
    set_up(ssb, client, "--skills", ssb.base, "--write", env={variable: str(there)}).ok()
    assert server(client, read(client, there / name if name else there)) is not None


@pytest.mark.parametrize("client, text", [
    ("claude-code", '{ // mine\n "mcpServers": {} }'), ("claude-code", "[]"),
    ("claude-code", '{"mcpServers": []}'), ("opencode", '{"mcp": {},}'),
    ("openclaw", "{mcp: {servers: {}}}"), ("claude-code", '{"a": 1'),
    ("codex", '[mcp_servers.skillsandbox]\ncommand = "mine"\n'),
    ("codex", 'mcp_servers = { other = { command = "x" } }\n'),
    ("codex", '[mcp_servers."skillsandbox"]\ncommand = "mine"\n'),
])
def test_what_is_not_understood_is_left_alone(ssb, client, text):
    file = ssb.write(ssb.home / FILES[client], text)
    r = set_up(ssb, client, "--skills", ssb.base, "--write")
    assert r.code == 125 and str(file)[:40] in r.errors
    assert file.read_text() == text
    assert [p.name for p in file.parent.iterdir() if p.name.startswith(file.name)] == [file.name]


def test_a_symlink_stays_one(ssb):
    real = ssb.write(ssb.base / "dotfiles/claude.json", "{}")
    (ssb.home / ".claude.json").symlink_to(real)
    set_up(ssb, "claude-code", "--skills", ssb.base, "--write").ok()
    assert (ssb.home / ".claude.json").is_symlink()
    assert server("claude-code", read("claude-code", real)) is not None


@pytest.mark.parametrize("client, name", [("claude-code", ".mcp.json"),
                                          ("opencode", "opencode.json")])
def test_a_project_leads_to_no_file_outside(ssb, client, name):
    """What a repository holds does not choose which of the user's files is changed."""
    outside = ssb.write(ssb.home / "settings.json", "{}")
    project = ssb.mkdir("project")
    (project / name).symlink_to(outside)
    args = (client, "--project", "--skills", ".", "--write")
    r = set_up(ssb, *args, cwd=project)
    assert r.code == 125 and name in r.errors
    assert outside.read_text() == "{}" and (project / name).is_symlink()
    # The control: a link within the project is followed, as one in HOME is.
    inside = ssb.write(project / "config/mcp.json", "{}")
    (project / name).unlink()
    (project / name).symlink_to(inside)
    set_up(ssb, *args, cwd=project).ok()
    assert (project / name).is_symlink() and server(client, read(client, inside)) is not None


KEYS = {"claude-code": ["mcpServers"], "openclaw": ["mcp", "servers"], "opencode": ["mcp"]}


def with_server(client, words):
    """A configuration in which the server of our name is this command."""
    config = {"command": words} if client == "opencode" else {"command": words[0],
                                                              "args": words[1:]}
    for key in ["skillsandbox", *reversed(KEYS[client])]:
        config = {key: config}
    return json.dumps(config)


@pytest.mark.parametrize("client", sorted(KEYS))
@pytest.mark.parametrize("words", [["/opt/mine/skillsandbox", "serve"], ["skillsandbox"],
                                   ["skillsandbox", "run", "serve"], ["/bin/sh", "serve"]])
def test_what_others_wrote_stays(ssb, client, words):
    text = with_server(client, words)
    file = ssb.write(ssb.home / FILES[client], text)
    for args in (["--remove"], ["--skills", ssb.base]):
        r = set_up(ssb, client, *args, "--write")
        assert r.code == 125 and "by hand" in r.errors
        assert file.read_text() == text


@pytest.mark.parametrize("client", sorted(KEYS))
def test_the_plain_name_is_ours(ssb, client):
    text = with_server(client, ["skillsandbox", "serve", "--skills", "/"])
    for args in (["--remove"], ["--skills", ssb.base]):
        file = ssb.write(ssb.home / FILES[client], text)
        set_up(ssb, client, *args, "--write").ok()
        assert file.read_text() != text


def test_claude_code_is_not_disturbed(ssb):
    """It makes a directory while it writes; as long as that is there we do not."""
    file = ssb.write(ssb.home / ".claude.json", "{}")
    os.mkdir(ssb.home / ".claude.json.lock")
    r = set_up(ssb, "claude-code", "--skills", ssb.base, "--write")
    assert r.code == 125 and file.read_text() == "{}"
    os.rmdir(ssb.home / ".claude.json.lock")
    set_up(ssb, "claude-code", "--skills", ssb.base, "--write").ok()
    assert not (ssb.home / ".claude.json.lock").exists()


@pytest.mark.parametrize("args", [[], ["vim"], ["codex", "--skills", "/nonexistent"],
                                  ["codex", "--skills", "/etc/passwd"]])
def test_usage(root, args):
    assert root.ssb("setup", *args, "--write").code == 2


def test_a_fifo_does_not_hold_us(root):
    os.mkfifo(root.home / ".claude.json")
    assert set_up(root, "claude-code", "--skills", root.base, "--write", timeout=20).code == 125


def at_a_terminal(ssb, answer, before_answer=lambda: None):
    """setup claude-code with a person: what is said before `answer`, and the status."""
    ours, theirs = pty.openpty()
    p = ssb.popen([ssb.binary, "setup", "claude-code", "--skills", ssb.base], stdin=theirs,
                  stdout=theirs, stderr=theirs)
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
    file = ssb.write(ssb.home / ".claude.json", "{}")
    said, code = at_a_terminal(ssb, answer)
    assert "skillsandbox" in said, "the diff comes first"
    assert (server("claude-code", read("claude-code", file)) is not None) == written
    assert code == (0 if written else 1)


def test_what_changes_meanwhile_is_not_overwritten(ssb):
    file = ssb.write(ssb.home / ".claude.json", "{}")
    _, code = at_a_terminal(ssb, b"yes\n", lambda: file.write_text('{"new": 1}'))
    assert code == 125 and file.read_text() == '{"new": 1}'
    assert not (ssb.home / ".claude.json.lock").exists()
