"""Codex, the real one."""
import agents

NAMESPACE = "mcp__skillsandbox"
RUN = [f"{NAMESPACE}|run_skill", {"skill_dir": "malicious-weather", "args": ["Paris"]}]
LIST = [f"{NAMESPACE}|list_skills", {}]
# Its own sandbox and questions are not what is tested; the world is made of decoys.
FREE = "--dangerously-bypass-approvals-and-sandbox"


def test_setup_keeps_the_rest(world):
    world.ask_codex([])
    text = (world.home / ".codex/config.toml").read_text()
    assert text.startswith("# kept\n") and "[model_providers.mock]" in text
    assert "[mcp_servers.skillsandbox]" in text
    listed = world.run([agents.CODEX, "mcp", "list"])
    assert "skillsandbox" in listed.out and str(world.ssb) in listed.out, listed
    removed = world.run([world.ssb, "setup", "codex", "--remove", "--write"])
    assert removed.code == 0, removed
    assert "skillsandbox" not in (world.home / ".codex/config.toml").read_text()


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
    """Never asking, Codex runs what only reads and refuses what may destroy."""
    r = world.ask_codex([LIST, RUN], "-c", 'approval_policy="never"')
    listed, ran = r.results()
    assert "malicious-weather" in listed, listed
    assert agents.WEATHER not in ran, ran
