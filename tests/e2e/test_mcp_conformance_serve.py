"""Runs the official conformance suite of MCP against `skillsandbox serve`: those scenarios that do
not need the suite's own tools, prompts or resources, and the scenarios of the skills extension."""
import contextlib
import secrets

import pytest

import harness
from mcp_proxy import with_token
from mcp_npm import LEGACY, MISSING, MODERN, NODE, Suite, once_more, serve_http, troubles

SCENARIOS = {
    LEGACY: ["server-initialize", "server-session-lifecycle", "logging-set-level", "ping",
             "tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list",
             "dns-rebinding-protection"],
    MODERN: ["tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list",
             "sep-2164-resource-not-found", "dns-rebinding-protection", "caching",
             "http-header-validation"],
}
SKILLS = ["sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"]
CASES = [(r, s) for r, names in SCENARIOS.items() for s in names] + \
        [("extension", s) for s in SKILLS]


@pytest.fixture(scope="module")
def results(tmp_path_factory, base, user_entry, request):
    assert NODE.exists(), MISSING
    place = tmp_path_factory.mktemp("mcp")
    ssb = harness.Runner("user", user_entry.pw_uid, user_entry.pw_gid, user_entry.pw_name, base,
                         request.config.ssb["binary"])
    skills = ssb.mkdir("skills")
    for name in ("first", "second"):
        ssb.mkdir(f"skills/{name}/notes")
        ssb.write(skills / name / "main.py", "print('here')\n")
        ssb.write(skills / name / "notes/more.md", f"# More of {name}\n")
        ssb.write(skills / name / "SKILL.md",
                  f"---\nname: {name}\ndescription: The {name} of two skills.\n---\n\n# {name}\n")
        ssb.write(skills / name / "skillsandbox.yaml", harness.manifest(name=name))
    token = secrets.token_hex(16)
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(serve_http(ssb, skills, token))
        url = stack.enter_context(with_token(url, token))
        suites = {r: Suite(url, r, place / r) for r in SCENARIOS}
        found = {r: once_more(url, r, place / r, s.results(), SCENARIOS[r])
                 for r, s in suites.items()}
        found["extension"] = {}
        for scenario in SKILLS:
            found["extension"] |= Suite(url, None, place / scenario, scenario).results()
    yield found
    ssb.done()


@pytest.mark.parametrize("revision,scenario", CASES)
def test_scenario(results, revision, scenario):
    checks = results[revision].get(scenario)
    assert checks, f"{scenario} did not run"
    assert any(c["status"] == "SUCCESS" for c in checks)
    assert not troubles(checks), "\n".join(troubles(checks))
