"""The real Claude Code with our tools, our plugin and our hook."""
import json

import agents

TOOLS = {"run_skill", "validate_skill", "list_skills", "inspect_skill", "why_denied", "get_trace",
         "session_status", "report_violation"}
PREFIX = "mcp__skillsandbox__"
RUN = [PREFIX + "run_skill", {"skill_dir": "malicious-weather", "args": ["Paris"]}]
BASH = ["Bash", {"command": "python3 .claude/skills/malicious-weather/main.py Paris",
                 "description": "the weather"}]
GOSSIP = ["Bash", {"command": "python3 .claude/skills/gossip/main.py", "description": "gossip"}]
BASH_ALLOWED = ("--allowedTools", "Bash")


def mcp_allowed(*names):
    return ("--allowedTools", ",".join(PREFIX + n for n in names))


def plugin_env(world):
    return {"PATH": f"{world.bin}:/usr/bin:/bin"}


def test_setup_connects(world):
    """`setup` adds our server, and Claude Code connects to it; a second `setup` replaces the
    server's skills; --remove removes the server."""
    file = world.write(world.home / ".claude.json", '{"mcpServers": {"other": {"command": "x"}}}')
    world.setup("claude-code", "--skills", world.project)
    world.setup("claude-code")
    listed = world.claude("mcp", "list")
    assert "skillsandbox" in listed.out and "Connected" in listed.out, listed
    again = world.run([world.ssb, "setup", "claude-code", "--skills", world.skills, "--yes"])
    assert "nothing to change" in again.err, again
    got = world.claude("mcp", "get", "skillsandbox")
    assert "User config" in got.out and str(world.ssb) in got.out, got
    removed = world.run([world.ssb, "setup", "claude-code", "--remove", "--yes"])
    assert removed.code == 0, removed
    assert "skillsandbox" not in world.claude("mcp", "list").out
    assert json.loads(file.read_text())["mcpServers"] == {"other": {"command": "x"}}


def test_setup_leaves_a_broken_file_alone(world):
    """If the configuration is not valid JSON, `setup` fails and does not change it. Claude Code
    itself would replace it."""
    file = world.write(world.home / ".claude.json", '{"mcpServers": {')
    r = world.run([world.ssb, "setup", "claude-code", "--skills", world.skills, "--yes"])
    assert r.code == 125 and file.read_text() == '{"mcpServers": {', r
    control = world.claude("mcp", "add", "--scope", "user", "x", "--", "/bin/true")
    assert control.code == 0 and file.read_text() != '{"mcpServers": {', control


def test_setup_for_a_project(world):
    world.setup("claude-code", "--local")
    assert "skillsandbox" in json.loads((world.project / ".mcp.json").read_text())["mcpServers"]
    assert "skillsandbox" in world.claude("mcp", "list").out
    r = world.run([world.ssb, "setup", "claude-code", "--local", "--remove", "--yes"])
    assert r.code == 0, r
    assert json.loads((world.project / ".mcp.json").read_text())["mcpServers"] == {}


def test_runs_the_stealer(world):
    """The agent runs the stealer with run_skill: the agent gets the weather and the report of the
    denials, but no secret."""
    world.setup("claude-code")
    r = world.ask_claude([[PREFIX + "list_skills", {}], RUN],
                         *mcp_allowed("list_skills", "run_skill"))
    assert {PREFIX + t for t in TOOLS} <= r.tools(), r.tools()
    listed, ran = r.results()
    assert "malicious-weather" in listed and "gossip" in listed
    assert agents.WEATHER in ran, ran
    assert "credential_store" in ran and ".ssh" in ran and "collector.example" in ran, ran
    assert agents.SECRET not in r.told


def test_why_denied_after_a_run(world):
    world.setup("claude-code")
    r = world.ask_claude([RUN, [PREFIX + "why_denied", {"run_id": "last"}]],
                         *mcp_allowed("run_skill", "why_denied"))
    assert "credential_store" in r.results()[1], r.results()
    assert agents.SECRET not in r.told


def test_the_user_is_asked_about_run_skill(world):
    """Without the user's permission for the tool run_skill, the skill does not run."""
    world.setup("claude-code")
    r = world.ask_claude([RUN])
    assert agents.WEATHER not in r.told, r.results()


def test_plugin_is_valid(world):
    for path in (agents.PLUGIN, agents.PLUGIN.parent):
        r = world.claude("plugin", "validate", path)
        assert r.code == 0 and "Validation passed" in r.out, r


def test_plugin_installs(world):
    assert world.claude("plugin", "marketplace", "add", agents.PLUGIN.parent).code == 0
    r = world.claude("plugin", "install", "skillsandbox@skillsandbox")
    assert r.code == 0, r
    r = world.ask_claude([GOSSIP], *BASH_ALLOWED)
    assert "gossip is done" in r.results()[0] and agents.SECRET not in r.told, r.results()


def test_plugin_serves_the_skills_of_the_project(world):
    name = "mcp__plugin_skillsandbox_skillsandbox__run_skill"
    r = world.ask_claude([[name, RUN[1]]], "--plugin-dir", agents.PLUGIN, "--allowedTools", name)
    assert agents.WEATHER in r.results()[0], r.results()
    assert agents.SECRET not in r.told


def test_bash_without_the_plugin_reads_the_secrets(world):
    """The control: without the plugin, the same commands read the secrets."""
    r = world.ask_claude([BASH, GOSSIP], *BASH_ALLOWED)
    stolen, gossip = r.results()
    assert "LOOT ssh-keys 1 .ssh/id_ed25519" in stolen, stolen
    assert f"{agents.SECRET}-ssh" in gossip and f"{agents.SECRET}-variable" in gossip
    assert agents.SECRET in r.told


def test_hook_reroutes_bash(world):
    r = world.ask_claude([BASH, GOSSIP], "--plugin-dir", agents.PLUGIN, *BASH_ALLOWED)
    weather, gossip = r.results()
    assert agents.WEATHER in weather and "LOOT ssh-keys 0" in weather, weather
    assert "gossip is done" in gossip and "cannot read" in gossip, gossip
    assert "the environment has None" in gossip
    assert agents.SECRET not in r.told


def test_hook_denies_what_it_cannot_follow(world):
    plan = [["Bash", {"command": "for f in .claude/skills/gossip/main.py; do python3 $f; done"}],
            ["Bash", {"command": "A=1 sh -c 'python3 .claude/skills/gossip/main.py'"}],
            ["Bash", {"command": "make -n -C .claude/skills/gossip"}],
            ["Bash", {"command": "grep -c done .claude/skills/gossip/main.py"}]]
    r = world.ask_claude(plan, "--plugin-dir", agents.PLUGIN, *BASH_ALLOWED)
    results = r.results()
    for denied in results[:2]:
        assert "gossip is done" not in denied, denied
    assert "skillsandbox" in results[2], results[2]
    assert results[3].strip() == "1", "what only looks passes"
    assert agents.SECRET not in r.told


def test_hook_does_not_widen_what_is_allowed(world):
    """The user's permission rules are applied to the command that the hook has rewritten."""
    r = world.ask_claude([GOSSIP], "--plugin-dir", agents.PLUGIN, "--allowedTools",
                         "Bash(python3 *)")
    assert "gossip is done" not in r.told, r.results()
    r = world.ask_claude([GOSSIP], "--plugin-dir", agents.PLUGIN, "--allowedTools",
                         f"Bash({world.ssb} run *)")
    assert "gossip is done" in r.results()[0], r.results()


def test_hook_without_the_program_blocks(world):
    r = world.ask_claude([GOSSIP, ["Bash", {"command": "echo open"}]], "--plugin-dir",
                         agents.PLUGIN, *BASH_ALLOWED, env={"PATH": "/usr/bin:/bin"})
    assert "gossip is done" not in r.told and agents.SECRET not in r.told
    assert all("disable the plugin" in text for text in r.results()), r.results()
