"""The real Codex with our server."""
import agents

NAMESPACE = "mcp__skillsandbox"
RUN = [f"{NAMESPACE}|run_skill", {"skill_dir": "malicious-weather", "args": ["Paris"]}]
LIST = [f"{NAMESPACE}|list_skills", {}]
# Codex's own sandbox and its questions are not tested here; the world has only decoys.
FREE = "--dangerously-bypass-approvals-and-sandbox"


def test_setup_keeps_the_rest(world):
    world.ask_codex([])
    text = (world.home / ".codex/config.toml").read_text()
    assert text.startswith("# kept\n") and "[model_providers.mock]" in text
    assert "[mcp_servers.skillsandbox]" in text
    listed = world.run([agents.CODEX, "mcp", "list"])
    assert "skillsandbox" in listed.out and str(world.ssb) in listed.out, listed
    again = world.run([world.ssb, "setup", "codex", "--skills", world.skills, "--yes"])
    assert "nothing to change" in again.err, again
    removed = world.run([world.ssb, "setup", "codex", "--remove", "--yes"])
    assert removed.code == 0, removed
    assert "skillsandbox" not in (world.home / ".codex/config.toml").read_text()
    again = world.run([world.ssb, "setup", "codex", "--remove", "--yes"])
    assert "nothing to change" in again.err, again


def test_setup_says_what_codex_says(world):
    file = world.write(world.home / ".codex/config.toml", 'model = "o3\n')
    r = world.run([world.ssb, "setup", "codex", "--skills", world.skills, "--yes"])
    assert r.code == 125 and "TOML parse error" in r.err, r
    assert "the command 'mcp list' ended with exit status 1" in r.err, r
    assert file.read_text() == 'model = "o3\n'


def test_setup_replaces_no_other_server(world):
    text = '[mcp_servers.skillsandbox]\ncommand = "mine"\n'
    file = world.write(world.home / ".codex/config.toml", text)
    for args in (["--skills", world.skills], ["--remove"]):
        r = world.run([world.ssb, "setup", "codex", *args, "--yes"])
        assert r.code == 125 and "starts another program" in r.err, r
    assert file.read_text() == text
    # The control: `codex mcp add` replaces this entry.
    assert world.run([agents.CODEX, "mcp", "add", "skillsandbox", "--", "x"]).code == 0
    assert file.read_text() != text


def test_runs_the_stealer(world):
    r = world.ask_codex([LIST, RUN], FREE)
    names = {n.removeprefix(NAMESPACE).lstrip("_|") for n in r.tools() if NAMESPACE in n}
    assert {"run_skill", "list_skills", "inspect_skill", "why_denied"} <= names, r.tools()
    listed, ran = r.results()
    assert "malicious-weather" in listed, listed
    assert agents.WEATHER in ran, ran
    assert "credential_store" in ran and "collector.example" in ran, ran
    assert agents.SECRET not in r.told


def test_annotations_are_heeded(world):
    """Codex never asks: it runs the read-only tool and refuses the destructive one."""
    r = world.ask_codex([LIST, RUN], "-c", 'approval_policy="never"')
    listed, ran = r.results()
    assert "malicious-weather" in listed, listed
    assert agents.WEATHER not in ran, ran
