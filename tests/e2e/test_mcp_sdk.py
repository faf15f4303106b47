"""The official SDKs' clients, v1 and v2, against `skillsandbox serve`: in both eras, on
stdio and on HTTP, as a user, and once as root.

One client performs all of its steps in each of these ways (tests/mcp/client.mjs); the
tests check the results."""
import contextlib
import json
import secrets

import pytest

import harness
from harness import SECRET
from mcp_npm import LEGACY, MODERN, run_client, serve_http

# name: (version of the SDK, era, transport, caller)
WAYS = {
    "v1-stdio-user": (1, "legacy", "stdio", "user"),
    "v1-http-user": (1, "legacy", "http", "user"),
    "v2-legacy-stdio-user": (2, "legacy", "stdio", "user"),
    "v2-modern-stdio-root": (2, "modern", "stdio", "root"),
    "v2-modern-http-user": (2, "modern", "http", "user"),
}

TOOLS = {"run_skill", "validate_skill", "list_skills", "inspect_skill", "why_denied", "get_trace",
         "session_status", "report_violation"}

ECHO = """
import json, sys
print(json.dumps(sys.argv[1:]))
print('on stderr \\x1b[31m', file=sys.stderr)
sys.exit(3)
"""
LIVE = """
import time
for i in range(5):
    print(f'tick {i}', flush=True)
    time.sleep(2.5 if i in (0, 3) else 0.1)  # so that progress is sent in each pause
"""
SLEEPER = """
import time
print('asleep', flush=True)
time.sleep(60)
"""
NAPPER = """
import sys, time
begun = time.monotonic()
time.sleep(4)
print(sys.argv[1], begun, time.monotonic())
"""
NAUGHTY = """
import socket
try:
    socket.create_connection(('192.0.2.1', 443), 1)
except OSError:
    print('denied')
"""


def make_skills(ssb):
    root = ssb.mkdir("skills")
    wallet = ssb.home / ".aws/credentials"
    codes = {"echo": ECHO, "live": LIVE, "sleeper": SLEEPER, "napper": NAPPER, "naughty": NAUGHTY,
             "asker": f"print(open({str(wallet)!r}).read())"}
    for name, code in codes.items():
        ssb.mkdir(f"skills/{name}")
        ssb.write(root / name / "main.py", code)
        read = [ssb.home / ".aws"] if name == "asker" else ()
        ssb.write(root / name / "skillsandbox.yaml", harness.manifest(name=name, read=read))
    return root


class Report:
    """The results of the client's steps, as the client reports them."""

    def __init__(self, way, ssb, said):
        self.sdk, self.era, self.transport, _ = WAYS[way]
        self.ssb, self.said = ssb, said

    def value(self, step):
        assert "value" in self.said[step], self.said[step]
        return self.said[step]["value"]

    def refused(self, step):
        assert "error" in self.said[step], self.said[step]
        return self.said[step]


def structured(result):
    """Returns the structured part of a result. The result's text must not be empty, and must have
    no control characters except tab and line feed."""
    text = result["content"][0]["text"]
    assert text and not set(text) & set(map(chr, [*range(9), *range(11, 32), 127])), repr(text)
    return result["structuredContent"]


@pytest.fixture(scope="module", params=list(WAYS))
def report(request, base, user_entry):
    sdk, era, transport, who = WAYS[request.param]
    uid, gid, name = (0, 0, "root") if who == "root" else \
        (user_entry.pw_uid, user_entry.pw_gid, user_entry.pw_name)
    ssb = harness.Runner(who, uid, gid, name, base, request.config.ssb["binary"])
    skills = make_skills(ssb)
    spec = {"sdk": sdk, "era": era, "marker": "marker-" + secrets.token_hex(8),
            "skills": {p.name: p.name for p in skills.iterdir()}}
    with contextlib.ExitStack() as stack:
        if transport == "http":
            spec["token"] = secrets.token_hex(16)
            spec["url"] = stack.enter_context(serve_http(ssb, skills, spec["token"]))
        else:
            spec.update(command=[*ssb.identity(), ssb.binary, "serve", "--skills", str(skills)],
                        env=ssb.environment(), cwd=str(ssb.work))
        said = run_client("client.mjs", json.dumps(spec), timeout=150)
    yield Report(request.param, ssb, said)
    ssb.done()


def test_server(report):
    v = report.value("server")
    assert v["info"]["name"] == "skillsandbox" and v["info"]["version"]
    if report.sdk == 2:  # SDK v1 does not report the version of the protocol
        assert v["version"] == (MODERN if report.era == "modern" else LEGACY)
    assert {"tools", "resources", "prompts", "logging", "completions"} <= set(v["capabilities"])
    assert v["instructions"]


def test_tools(report):
    tools = {t["name"]: t for t in report.value("tools")}
    assert set(tools) == TOOLS
    for t in tools.values():
        assert t["title"] and t["description"] and t["outputSchema"]["type"] == "object"
        assert {"readOnlyHint", "destructiveHint"} & set(t["annotations"])
    assert tools["list_skills"]["annotations"]["readOnlyHint"] is True
    assert tools["run_skill"]["annotations"]["readOnlyHint"] is False
    assert tools["run_skill"]["inputSchema"]["required"] == ["skill_dir"]


def test_list(report):
    names = [s["name"] for s in structured(report.value("list"))["skills"]]
    assert names == sorted(["echo", "live", "sleeper", "napper", "naughty", "asker"])


def test_run(report):
    result = report.value("run")
    v = structured(result)
    assert result["isError"] is True, "it says so: the exit status is not 0"
    assert v["exit_code"] == 3
    assert json.loads(v["stdout"]) == ["one", "two words"]
    assert "on stderr" in v["stderr"] and "\x1b" not in v["stderr"]
    assert v["run_id"] and v["violations"] == []


def test_denial(report):
    v = structured(report.value("denied"))
    assert v["exit_code"] == 0 and v["stdout"] == "denied\n"
    assert v["violations"], v
    one = v["violations"][0]
    assert one["code"] and one["rule"] is not None and "192.0.2.1" in one["what"]


@pytest.mark.parametrize("step, word", [("unknown_skill", "no-such-skill"), ("outside", "/etc"),
                                        ("bad_arguments", "skill_dir")])
def test_tool_errors(report, step, word):
    """A mistake that the model can correct gives a result with isError, and its text names the
    mistake."""
    result = report.value(step)
    assert result["isError"] is True
    assert word in result["content"][0]["text"], result


@pytest.mark.parametrize("step, codes", [("unknown_tool", [-32602]), ("unknown_method", [-32601]),
                                         ("unknown_resource", [-32002, -32602])])
def test_protocol_errors(report, step, codes):
    code = report.refused(step)["code"]
    if (report.era, report.transport, step) == ("modern", "http", "unknown_method"):
        # Here the server must answer 404. This client reports a 404 only by this code.
        codes = ["CLIENT_HTTP_NOT_IMPLEMENTED"]
    assert code in codes


def test_progress(report):
    v = report.value("progress")
    assert structured(v["result"])["exit_code"] == 0
    told = [p["progress"] for p in v["told"]]
    assert told == sorted(set(told)) and len(told) >= 2, v["told"]
    text = "".join(p.get("message", "") for p in v["told"])
    assert "tick 0" in text and "tick 3" in text, v["told"]


def test_cancel(report):
    v = report.value("cancel")
    assert v["before"] > 0, "it was running"
    assert v["ms"] < 10000, "and is dead soon after"
    assert "enough" in v["error"], v["error"]
    assert structured(v["after"])["exit_code"] == 3, "the server goes on"


def test_elicitation(report):
    for step in ("decline", "dismiss"):
        v = report.value(step)
        assert len(v["forms"]) == 1, v
        assert ".aws" in v["forms"][0]["message"]
        assert v["result"]["isError"] and SECRET not in json.dumps(v["result"])
        assert v["result"]["structuredContent"]["error"]["code"] == "approval_required"
    v = report.value("accept")
    assert len(v["forms"]) == 1 and structured(v["result"])["exit_code"] == 0
    assert SECRET + "-aws" in v["result"]["structuredContent"]["stdout"]
    v = report.value("accept_once")
    assert len(v["forms"]) == 1 and v["result"]["isError"], "once was once"


def test_elicitation_for_the_session(report):
    v = report.value("accept_session")
    assert len(v["forms"]) == 1 and structured(v["result"])["exit_code"] == 0
    v = report.value("remembered")
    assert not v["forms"] and SECRET + "-aws" in structured(v["result"])["stdout"]


def test_a_client_that_cannot_be_asked(report):
    result = report.value("unasked")
    assert result["isError"] and SECRET not in json.dumps(result)
    error = structured(result)["error"]
    assert error["code"] == "approval_required"
    assert error["command"].startswith("skillsandbox approve ")


def test_resources(report):
    v = report.value("resources")
    assert all(r["uri"].startswith(("skillsandbox://", "skill://")) for r in v["resources"])
    assert v["run_id"] in json.dumps(v["resources"])
    assert v["resourceTemplates"]
    assert v["run_id"] in v["read"]["contents"][0]["text"]


def test_prompts(report):
    v = report.value("prompts")
    assert "review_skill" in [p["name"] for p in v["prompts"]]
    assert ".aws" in json.dumps(v["got"]["messages"])


def test_parallel(report):
    v = report.value("parallel")
    naps = [structured(r)["stdout"].split() for r in v["results"]]
    assert [nap[0] for nap in naps] == [f"nap-{i}" for i in range(20)]
    assert len({r["structuredContent"]["run_id"] for r in v["results"]}) == 20
    times = [(float(begun), float(ended)) for _, begun, ended in naps]
    together = [sum(a <= at <= b for a, b in times) for at, _ in times]
    assert max(together) >= 5, "not one after the other"
