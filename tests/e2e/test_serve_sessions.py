"""Sessions over `skillsandbox serve`: to which session a run belongs, what is reported about
it, what ends it, and that no client of the server can leave its session."""
import json
import os
import time

import pytest

from harness import open_files, wait_for
from mcp_client import LEGACY, MODERN, failure, structured
from serve_world import STUBBORN, Processes, http_served, served, skill
from session_cli import Sessions, end_heralds

HELLO = "print('hello')"
KILLS = {"violations": {"thresholds": {"leak": 1}}, "kill_switch": {"grace_period": "0s"}}
CLAUDE = {"CLAUDE_CODE_SESSION_ID": "7b1f-claude"}


@pytest.fixture
def sessions(ssb):
    yield Sessions(ssb)
    end_heralds(ssb)


def status(client, **kw):
    return structured(client.tool("session_status", **kw))["session"]


def codex(value):
    return {"x-codex-turn-metadata": value}


# ---- to which session a run belongs ------------------------------------------------------

def test_runs_are_part_of_the_session_that_is_named(ssb, sessions):
    skill(ssb, "hello", HELLO)
    sessions.start("--id", "named", limits={"runs": {"max": 2, "on_exceed": "block"}})
    with served(ssb, "--session", "named") as client:
        assert status(client)["session_id"] == "named"
        for n in (1, 2):
            structured(client.tool("run_skill", skill_dir="hello"))
            assert status(client)["meters"]["runs"] == n
        refused = failure(client.tool("run_skill", skill_dir="hello"))
        assert refused["code"] == "policy" and "runs" in refused["message"], refused
        # A dry run does not count as a run, and no argument or field selects another session.
        structured(client.tool("run_skill", skill_dir="hello", dry_run=True))
        for name in ("session", "session_id", "max_runs", "budget"):
            assert failure(client.tool("run_skill", skill_dir="hello", **{name: "other"}))
            assert failure(client.tool("session_status", **{name: "other"}))
        for meta in (codex({"session_id": "other"}), {"session": "other"}):
            assert failure(client.tool("run_skill", skill_dir="hello", meta=meta))
            assert status(client, meta=meta)["session_id"] == "named"
    assert sessions.show("named")["meters"]["runs"] == 2


def test_a_session_by_environment(ssb, sessions):
    """SKILLSANDBOX_SESSION selects the session of a server, as it does for `run`. Options have
    priority."""
    skill(ssb, "hello", HELLO)
    for name in ("mine", "other"):
        sessions.ok("start", "--id", name)
    env = {"SKILLSANDBOX_SESSION": "mine"}
    with served(ssb, env=env) as client:
        structured(client.tool("run_skill", skill_dir="hello"))
        assert status(client)["session_id"] == "mine"
    assert sessions.show("mine")["meters"]["runs"] == 1
    with served(ssb, "--session", "other", env=env) as client:
        assert status(client)["session_id"] == "other"
    with served(ssb, "--session-policy", sessions.policy(), env=env) as client:
        assert status(client)["session_id"] not in ("mine", "other")
    with served(ssb, env={"SKILLSANDBOX_SESSION": ""}) as client:
        assert failure(client.tool("session_status"))["code"] == "no_session"


def test_a_session_that_is_not_there(ssb, sessions):
    """The session that --session names is missing or has ended: the server does not start, because
    it would have to refuse every run. With a paused session the server starts."""
    skill(ssb, "hello", HELLO)
    for name in ("over", "paused"):
        sessions.ok("start", "--id", name)
    sessions.ok("complete", "over")
    sessions.ok("pause", "paused")
    for name, code, word in (("nowhere", 2, "there is no session 'nowhere'"),
                             ("over", 125, "session 'over' ")):
        for flags, env in ((("--session", name), {}), ((), {"SKILLSANDBOX_SESSION": name})):
            r = ssb.ssb("serve", "--skills", ssb.mkdir("skills"), *flags, env=env)
            assert r.code == code and word in r.errors and r.out == b"", repr(r)
            assert "session start" in r.errors, repr(r)
    with served(ssb, "--session", "paused") as client:  # this works for a paused session
        assert failure(client.tool("run_skill", skill_dir="hello"))["code"] == "policy"
        sessions.ok("resume", "paused")
        structured(client.tool("run_skill", skill_dir="hello"))
    with served(ssb) as client:
        assert failure(client.tool("session_status"))["code"] == "no_session"
        assert failure(client.tool("report_violation", type="leak"))["code"] == "no_session"
        structured(client.tool("run_skill", skill_dir="hello"))
    both = ssb.ssb("serve", "--skills", ssb.mkdir("skills"), "--session", "a",
                   "--session-policy", sessions.policy())
    assert both.code == 2 and "not both" in both.errors


def test_what_is_wrong_with_a_report(ssb, sessions):
    """A report with an invalid type gets an error that says what is wrong with it, and is not
    counted."""
    sessions.ok("start", "--id", "mine")
    with served(ssb, "--session", "mine") as client:
        for kind, word in (("x" * 64, "63"), ("", "63"), ("a\nb", "control")):
            wrong = failure(client.tool("report_violation", type=kind))
            assert wrong["code"] == "invalid_arguments", wrong
            assert word in wrong["message"] + wrong["fix"], wrong
        assert status(client)["violation_count"] == 0
        told = structured(client.tool("report_violation", type="x" * 63))  # the control
        assert told["session"]["violation_count"] == 1
        long = structured(client.tool("report_violation", type="x" * 63, details="\u6f22" * 9999))
        assert long["session"]["violation_count"] == 2
        told = structured(client.tool("report_violation", type="a\u202eb\U000e0041"))
        counts = {"x" * 63: 2, "a\\u{202e}b\\u{e0041}": 1}
        assert told["session"]["violation_counts"] == counts
        assert status(client)["violation_counts"] == counts


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_each_client_has_its_own(ssb, sessions, era):
    skill(ssb, "hello", HELLO)
    policy = sessions.policy(agent_id="mine")
    with served(ssb, "--session-policy", policy, era=era) as client:
        own = status(client)["session_id"]
        assert own.startswith("mcp-")
        ids = {}
        for name, meta in (("object", codex({"session_id": "turn-1", "thread_id": "t"})),
                           ("text", codex(json.dumps({"thread_id": "turn-2"}))),
                           ("odd", codex({"session_id": "../x y" * 40}))):
            ids[name] = status(client, meta=meta)["session_id"]
            structured(client.tool("run_skill", skill_dir="hello", meta=meta))
            assert status(client, meta=meta)["meters"]["runs"] == 1
        assert ids["object"] == "mcp-turn-1" and ids["text"] == "mcp-turn-2"
        assert ids["odd"].startswith("mcp-") and len(set(ids.values()) | {own}) == 4
        # An invalid value is ignored.
        for bad in (7, None, [], {}, {"session_id": 3}, "{", "[]", {"session_id": ""}):
            assert status(client, meta=codex(bad))["session_id"] == own, bad
        assert status(client)["meters"]["runs"] == 0
    with served(ssb, "--session-policy", policy, era=era, env=CLAUDE) as client:
        assert status(client)["session_id"] == "mcp-7b1f-claude"
        # The owner's environment has priority over a field of a message.
        assert status(client, meta=codex({"session_id": "x"}))["session_id"] == "mcp-7b1f-claude"


@pytest.mark.parametrize("name, agent", [
    ("claude-code", "claude-code"), ("Claude Desktop", "Claude-Desktop"), ("", "mine"),
    ("\u202e<script>", "script-"), ("n" * 300, "n" * 64)])
def test_a_client_may_call_itself_anything(user, name, agent):
    sessions = Sessions(user)
    skill(user, "hello", HELLO)
    policy = sessions.policy(agent_id="mine")
    with served(user, "--session-policy", policy, era=MODERN, env=CLAUDE) as client:
        client.name = name
        structured(client.tool("run_skill", skill_dir="hello"))
        assert status(client)["agent_id"] == agent


# ---- how a session ends ------------------------------------------------------------------

def test_a_violation_ends_it_for_good(ssb, sessions):
    skill(ssb, "hello", HELLO)
    skill(ssb, "stubborn", STUBBORN)
    policy = sessions.policy(**KILLS)
    marker = f"violation-{ssb.kind}-{os.getpid()}"
    with served(ssb, "--session-policy", policy, env=CLAUDE) as client:
        other = structured(client.tool("report_violation", type="odd", details="seen"))
        assert other["allowed"] and other["session"]["state"] == "active"
        run = client.send_tool("run_skill", skill_dir="stubborn", args=[marker])
        there = Processes(marker)
        told = structured(client.tool("report_violation", type="leak", details="a\x1b[2Jb"))
        there.gone()
        assert not told["allowed"] and told["action_taken"] == "kill"
        assert told["session"]["state"] == "killed" and told["session"]["violation_count"] == 2
        ended = client.answer(run)
        assert ended["isError"] and ended["structuredContent"]["end"] == "session"
        assert "leak" in ended["structuredContent"]["session_reason"]
        refused = failure(client.tool("run_skill", skill_dir="hello"))
        assert refused["code"] == "policy" and "leak" in refused["message"], refused
        assert refused["fix"].startswith("session_status "), refused
        assert status(client)["state"] == "killed"
        # No call of a client makes the session active again.
        again = structured(client.tool("report_violation", type="odd"))
        assert not again["allowed"] and again["session"]["state"] == "killed"
    # The same client starts another server: the client's session is still killed.
    with served(ssb, "--session-policy", policy, env=CLAUDE) as client:
        refused = failure(client.tool("run_skill", skill_dir="hello"))
        assert refused["code"] == "policy" and "leak" in refused["message"]
    # An existing session keeps its policy: a more generous one has no effect.
    with served(ssb, "--session-policy", sessions.policy(), env=CLAUDE) as client:
        assert failure(client.tool("run_skill", skill_dir="hello"))
    with served(ssb, "--session-policy", policy,
                env={"CLAUDE_CODE_SESSION_ID": "another"}) as client:  # the control
        structured(client.tool("run_skill", skill_dir="hello"))


def test_the_token_is_the_client(ssb, sessions):
    """Over HTTP the token selects the session, because a message need not name one."""
    skill(ssb, "hello", HELLO)
    policy = sessions.policy(**KILLS)
    with http_served(ssb, "--session-policy", policy) as h:
        structured(h.tool("run_skill", skill_dir="hello"))
        own = structured(h.tool("session_status"))["session"]["session_id"]
        # A field of a message does not select another session. Otherwise a client could get a new
        # budget by a new value in each message.
        other = h.tool("session_status", more=codex({"session_id": "turn"}))
        assert structured(other)["session"]["session_id"] == own
        assert not structured(h.tool("report_violation", type="leak"))["allowed"]
        assert failure(h.tool("run_skill", skill_dir="hello"))["code"] == "policy"
    with http_served(ssb, "--session-policy", policy) as h:
        assert structured(h.tool("session_status"))["session"]["session_id"] == own
        assert failure(h.tool("run_skill", skill_dir="hello"))["code"] == "policy"
    with http_served(ssb, "--session-policy", policy, token="another-token-of-theirs") as h:
        structured(h.tool("run_skill", skill_dir="hello"))


def test_no_client_waits_for_the_grace(user):
    """The session was killed, and its run has a grace period of one hour: other calls are answered
    during this time."""
    sessions = Sessions(user)
    skill(user, "stubborn", STUBBORN)
    policy = sessions.policy(violations={"thresholds": {"leak": 1}},
                             kill_switch={"grace_period": "1h"})
    marker = f"grace-{os.getpid()}"
    with served(user, "--session-policy", policy, env=CLAUDE) as client:
        run = client.send_tool("run_skill", skill_dir="stubborn", args=[marker])
        there = Processes(marker)
        report = client.send_tool("report_violation", type="leak")
        begin = time.monotonic()
        structured(client.tool("list_skills"))
        wait_for(lambda: sessions.state("mcp-7b1f-claude") == "killed")
        structured(client.tool("list_skills"))
        assert time.monotonic() - begin < 25 and report not in client.answers
        client.cancel(run)
        there.gone()
        structured(client.answer(report))
    end_heralds(user)


def test_the_store_is_closed_when_a_run_begins(ssb, sessions):
    """The store is closed before a run begins, so that no process of the run inherits it: a store
    that is open in two processes loses its locks."""
    skill(ssb, "stubborn", STUBBORN)
    marker = f"store-{ssb.kind}-{os.getpid()}"
    with served(ssb, "--session-policy", sessions.policy(), env=CLAUDE) as client:
        status(client)
        run = client.send_tool("run_skill", skill_dir="stubborn", args=[marker])
        there = Processes(marker)
        for _ in range(3):
            structured(client.tool("report_violation", type="odd"))
            status(client)
            held = open_files(client.process.pid)
            assert held and not [x for x in held if "sessions.db" in x], held
        client.cancel(run)
        there.gone()
