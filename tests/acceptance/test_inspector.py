"""The command line of the MCP Inspector calls our server in both eras of the protocol, and verifies
the results."""
import json

import pytest

import agents

ERAS = ["legacy", "modern"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("method, flags, key", [
    ("tools/list", ["--strict"], "tools"),
    ("resources/list", [], "resources"),
    ("prompts/list", [], "prompts"),
])
def test_lists_are_clean(world, era, method, flags, key):
    r = world.inspect(era, "--method", method, *flags)
    assert r.code == 0, r
    answer = json.loads(r.out)
    assert "error" not in answer and "warning" not in r.err.lower(), r
    assert key in json.dumps(answer), r


@pytest.mark.parametrize("era", ERAS)
def test_skills_are_verified(world, era):
    """The Inspector verifies the served skills: the digests match, and the format conforms to
    MCP's skills extension."""
    r = world.inspect(era, "--method", "skills/list", "--verify")
    assert r.code == 0, r
    found = {s["name"]: s for s in map(json.loads, r.out.splitlines())}
    assert set(found) == {"gossip", "malicious-weather"}
    for skill in found.values():
        assert skill["ok"] and skill["outcome"] == "verified", skill
        assert skill["conformance"] == [] and skill["frontmatter"] == [] and skill["files"]


@pytest.mark.parametrize("era", ERAS)
def test_run(world, era):
    r = world.inspect(era, "--method", "tools/call", "--tool-name", "run_skill", "--tool-arg",
                      "skill_dir=malicious-weather", "--tool-arg", 'args=["Paris"]')
    assert r.code == 0 and agents.WEATHER in r.out, r
    assert "credential_store" in r.out and agents.SECRET not in r.out + r.err


@pytest.mark.parametrize("era", ERAS)
def test_other_paths_are_refused(world, era):
    r = world.inspect(era, "--method", "tools/call", "--tool-name", "run_skill", "--tool-arg",
                      f"skill_dir={world.home}")
    assert '"isError": true' in r.out or '"isError":true' in r.out, r
