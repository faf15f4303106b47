"""The real OpenCode. It has a command that adds a server, but none that removes one."""
import json

import agents

BEFORE = {"$schema": "s", "username": "me"}


def read_entry(file):
    config = json.loads(file.read_text())
    return config["mcp"].pop("skillsandbox", None), config


def test_setup_connects(world):
    file = world.write(world.home / ".config/opencode/opencode.json", json.dumps(BEFORE))
    world.setup("opencode")
    listed = world.run([agents.OPENCODE, "mcp", "list"])
    assert "skillsandbox" in listed.out and "connected" in listed.out, listed
    again = world.run([world.ssb, "setup", "opencode", "--skills", world.skills, "--yes"])
    assert "nothing to change" in again.err, again
    assert read_entry(file) == ({"type": "local", "command":
                                 [str(world.ssb), "serve", "--skills", str(world.skills)]},
                                {**BEFORE, "mcp": {}})
    world.setup("opencode", "--skills", world.project)
    assert read_entry(file)[0]["command"][-1] == str(world.project)
    removed = world.run([world.ssb, "setup", "opencode", "--remove", "--yes"])
    assert removed.code == 0 and read_entry(file) == (None, {**BEFORE, "mcp": {}}), removed
    assert "skillsandbox" not in world.run([agents.OPENCODE, "mcp", "list"]).out


def test_setup_without_a_file(world):
    """OpenCode creates opencode.jsonc itself; `setup --remove` finds the server in it."""
    world.setup("opencode")
    file = world.home / ".config/opencode/opencode.jsonc"
    assert read_entry(file)[0] is not None
    removed = world.run([world.ssb, "setup", "opencode", "--remove", "--yes"])
    assert removed.code == 0 and read_entry(file)[0] is None, removed


def test_setup_for_a_project(world):
    world.setup("opencode", "--project")
    listed = world.run([agents.OPENCODE, "mcp", "list"])
    assert "skillsandbox" in listed.out and "connected" in listed.out, listed
