"""The decisions of a session, made through the command line.

The cases and the names of the calls come from an existing session engine of another project. Our
commands decide as that engine does, except where it has known faults. The last tests show what
these decisions do to runs, and which messages the owner gets.
"""
import contextlib
import hashlib
import hmac
import json
import os
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

import notify_world
from harness import wait_for
from session_cli import Sessions, end_heralds, outlive, store_url

# model: (USD for a million input tokens, USD for a million output tokens)
PRICES = {
    "gpt-4o": (2.50, 10), "gpt-4o-mini": (0.15, 0.60), "gpt-4.1": (2, 8),
    "gpt-4.1-mini": (0.40, 1.60), "gpt-4.1-nano": (0.10, 0.40), "o3": (2, 8),
    "o3-mini": (1.10, 4.40), "o4-mini": (1.10, 4.40),
    "claude-sonnet-4-5-20250514": (3, 15), "claude-haiku-3-5-20241022": (0.80, 4),
    "claude-opus-4-20250514": (15, 75),
}


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request, user):
    url = store_url(request)
    yield Engine(Sessions(user, url), url)
    end_heralds(user)


class Engine:
    """Has the methods of the existing engine, by their names there, and calls our commands."""

    def __init__(self, sessions, url):
        self.sessions = sessions
        self.url = url

    def found(self, runs):
        """The possible numbers of runs that a kill finds. PostgreSQL itself tells each keeper of
        the kill, so its run may have ended before the kill counts the runs."""
        return [runs] if self.url is None else range(runs + 1)

    def create_session(self, **policy):
        return self.sessions.start(**policy)

    def pre_action(self, session, name="act", estimated_cost=0):
        r = self.sessions("check", session, "--action", name, "--cost", str(estimated_cost),
                          "--json")
        assert r.code in (0, 1), repr(r)
        d = r.json()
        assert d["action_allowed"] == (r.code == 0)
        return d

    def post_action(self, decision, actual_cost):
        return self.sessions.decide("settle", decision["reservation"], "--cost",
                                    str(actual_cost))

    def spend(self, session, cost, actual=None):
        d = self.pre_action(session, estimated_cost=cost)
        assert d["action_allowed"], d
        return self.post_action(d, cost if actual is None else actual)

    def record_violation(self, session, kind):
        r = self.sessions("violation", session, "--type", kind, "--json")
        assert r.code in (0, 1), repr(r)
        return r.json()

    def complete_session(self, session):
        self.sessions.ok("complete", session)
        return self.sessions.show(session)

    def show(self, session):
        return self.sessions.show(session)


# ---- the order of checks ----------------------------------------------------

def test_an_unknown_session(engine):
    assert engine.sessions("check", "nobody").code == 2


def test_defaults(engine):
    s = engine.show(engine.create_session())
    assert s["agent_id"] == "default"
    b = s["budget"]
    assert (b["max_cost_per_session"], b["max_cost_per_action"], b["alert_at"], b["on_exceed"],
            b["max_duration_seconds"], b["max_actions"]) == (5, 0.5, 0.8, "kill", 1800, 100)


def test_allowed(engine):
    s = engine.create_session()
    d = engine.pre_action(s, "search", 0.1)
    assert d["action_taken"] == "log" and d["action_allowed"]
    snapshot = d["session_state_snapshot"]
    assert snapshot["action"] == "search" and snapshot["estimated_cost"] == 0.1
    assert snapshot["total_cost"] == 0 and snapshot["duration_seconds"] >= 0
    engine.post_action(d, 0.1)
    s = engine.show(s)
    assert s["total_cost_usd"] == 0.1 and s["action_count"] == 1


def test_too_old_comes_first(engine):
    def begin(seconds):
        s = engine.create_session(session={"max_duration": f"{seconds}s", "max_actions": 1})
        engine.spend(s, 0.1)
        return s

    s = outlive(begin)
    d = engine.pre_action(s, estimated_cost=9)
    assert d["code"] == "max_duration" and d["action_taken"] == "kill"
    assert engine.show(s)["state"] == "expired"


def test_then_too_many_actions(engine):
    s = engine.create_session(session={"max_actions": 2})
    engine.spend(s, 0.1)
    engine.spend(s, 0.1)
    d = engine.pre_action(s, estimated_cost=9)
    assert d["code"] == "max_actions" and d["action_taken"] == "kill"
    assert engine.show(s)["state"] == "killed"


def test_then_the_cost_of_one_action(engine):
    s = engine.create_session(budget={"max_cost_per_session": 1, "max_cost_per_action": 0.5})
    d = engine.pre_action(s, estimated_cost=2)
    assert d["code"] == "max_cost_per_action" and d["action_taken"] == "block"
    assert engine.show(s)["state"] == "active"


def test_then_the_budget(engine):
    s = engine.create_session(budget={"max_cost_per_session": 1, "max_cost_per_action": 1})
    engine.spend(s, 0.7)
    d = engine.pre_action(s, estimated_cost=0.31)
    assert d["code"] == "max_cost_per_session" and d["action_taken"] == "kill"
    s = engine.show(s)
    assert s["state"] == "killed" and "$1.01" in s["kill_reason"]


@pytest.mark.parametrize("on_exceed, allowed, state", [
    ("kill", False, "killed"), ("pause", False, "paused"), ("block", False, "active"),
    ("alert", True, "alert"), ("log", True, "alert")])
def test_on_exceed(engine, on_exceed, allowed, state):
    """If the policy says `alert` or `log`, an action beyond the budget is allowed. The existing
    engine denied it without a message."""
    s = engine.create_session(budget={"max_cost_per_session": 1, "max_cost_per_action": 9,
                                      "on_exceed": on_exceed})
    d = engine.pre_action(s, estimated_cost=1.5)
    assert d["action_allowed"] == allowed, d
    assert engine.show(s)["state"] == state


def test_alert_at_exactly_the_part(engine):
    s = engine.create_session(budget={"max_cost_per_session": 1, "max_cost_per_action": 1})
    d = engine.pre_action(s, estimated_cost=0.799999)
    assert d["action_taken"] == "log"
    d = engine.pre_action(s, estimated_cost=0.000001)
    assert d["action_taken"] == "alert" and d["action_allowed"] and d["state"] == "alert"


def test_it_goes_on_in_alert(engine):
    s = engine.create_session(budget={"max_cost_per_session": 1, "max_cost_per_action": 1})
    engine.spend(s, 0.9)
    assert engine.show(s)["state"] == "alert"
    assert engine.pre_action(s, estimated_cost=0.1)["action_allowed"], "exactly all of it"
    assert not engine.pre_action(s, estimated_cost=0.000001)["action_allowed"]


def test_an_inactive_session(engine):
    s = engine.create_session()
    engine.sessions.ok("kill", s)
    d = engine.pre_action(s)
    assert not d["action_allowed"] and d["code"] == "session_over"


# ---- violations, completion -------------------------------------------------

def test_violation_thresholds(engine):
    s = engine.create_session(violations={"thresholds": {
        "pii_blocked": 3, "scope_violation": 1, "rate_limit_hit": 5}})
    for _ in range(4):
        assert engine.record_violation(s, "rate_limit_hit")["action_taken"] == "log"
    assert engine.record_violation(s, "unheard_of")["action_taken"] == "log"
    for _ in range(2):
        assert engine.record_violation(s, "pii_blocked")["action_allowed"]
    d = engine.record_violation(s, "scope_violation")
    assert d["action_taken"] == "kill" and d["violation_type"] == "scope_violation"
    assert engine.show(s)["violation_counts"] == {
        "pii_blocked": 2, "rate_limit_hit": 4, "scope_violation": 1, "unheard_of": 1}


@pytest.mark.parametrize("act, state", [("alert", "alert"), ("pause", "paused"),
                                        ("block", "active"), ("log", "active")])
def test_on_threshold(engine, act, state):
    """When violations reach a threshold, the action of the policy has its effect. In the existing
    engine only `kill` had an effect."""
    s = engine.create_session(violations={"thresholds": {"x": 2}, "on_threshold": act})
    assert engine.record_violation(s, "x")["action_taken"] == "log"
    assert engine.record_violation(s, "x")["action_taken"] == act
    assert engine.show(s)["state"] == state


def test_complete(engine):
    s = engine.create_session(agent_id="agent-7")
    engine.spend(s, 0.25)
    engine.record_violation(s, "x")
    d = engine.complete_session(s)
    assert d["state"] == "completed" and d["total_cost_usd"] == 0.25 and d["agent_id"] == "agent-7"
    assert d["violation_counts"] == {"x": 1} and len(d["actions"]) == 1
    assert d["kill_reason"] is None and d["duration_seconds"] > 0


def test_prices(engine):
    s = engine.create_session(session={"max_actions": 1000},
                              budget={"max_cost_per_session": 1000, "max_cost_per_action": 100})
    for model, (price_in, price_out) in PRICES.items():
        d = engine.sessions.decide("check", s, "--model", model, "--tokens-in", "10000",
                                   "--tokens-out", "20000")
        assert d["session_state_snapshot"]["estimated_cost"] == \
            pytest.approx((price_in + 2 * price_out) / 100, abs=1e-9), model


# ---- known faults of the existing engine -------------------------------------

def test_overspending_at_the_end_is_noticed(engine):
    """An action costs more than was reserved: the session is killed. In the existing engine, $50
    with a budget of $1 left it active."""
    s = engine.create_session(budget={"max_cost_per_session": 1})
    d = engine.spend(s, 0.1, actual=50)
    assert d["action_taken"] == "kill" and d["state"] == "killed"
    assert engine.show(s)["total_cost_usd"] == 50


def test_kill_switch_disabled_is_obeyed(engine):
    s = engine.create_session(budget={"max_cost_per_session": 1, "max_cost_per_action": 9},
                              kill_switch={"enabled": False})
    d = engine.pre_action(s, estimated_cost=2)
    assert d["action_taken"] == "block" and d["state"] == "active"
    engine.sessions.ok("kill", s)
    assert engine.show(s)["state"] == "killed", "the owner's own word"


def test_a_budget_of_nothing(engine):
    """With a budget of zero only free actions are allowed. The existing engine divided by zero."""
    s = engine.create_session(budget={"max_cost_per_session": 0, "on_exceed": "block"})
    assert engine.pre_action(s)["action_allowed"]
    assert engine.pre_action(s, estimated_cost=0.000001)["code"] == "max_cost_per_session"


def test_never_settled_is_not_free(engine):
    """Actions that are never settled count for the maximum. The existing engine did not count
    them."""
    s = engine.create_session(session={"max_actions": 3})
    for _ in range(3):
        assert engine.pre_action(s)["action_allowed"]
    assert engine.pre_action(s)["code"] == "max_actions"


def test_a_bill_after_the_kill(engine):
    s = engine.create_session()
    d = engine.pre_action(s, estimated_cost=0.4)
    engine.sessions.ok("kill", s)
    engine.post_action(d, 0.3)
    assert engine.show(s)["total_cost_usd"] == 0.3


# ---- what a decision does to runs, and messages ------------------------------

class Run:
    """A skill that prints its pid and keeps running."""

    CODE = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"

    def __init__(self, sessions, session):
        ssb = sessions.ssb
        self.p = ssb.popen([ssb.binary, "run", "--session", session, ssb.skill(self.CODE)],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
        assert self.p.stdout.readline().strip().isdigit()

    def end(self):
        err = self.p.communicate(timeout=30)[1].decode()
        return self.p.returncode, err


def test_kill_counts_and_times_the_runs(engine):
    s = engine.create_session()
    runs = [Run(engine.sessions, s) for _ in range(3)]
    shown = engine.show(s)["runs"]
    assert len(shown) == 3 and all(r["session_id"] == s and r["run_id"] for r in shown)
    d = engine.sessions.decide("kill", s, "--reason", "enough of this")
    assert d["runs"]["found"] in engine.found(3)
    assert d["runs"]["left"] == 0 and d["runs"]["elsewhere"] == 0
    assert d["runs"]["reached"] + d["runs"]["forced"] <= 3, "one may have heard of it first"
    assert 0 < d["runs"]["seconds"] < 20
    for r in runs:
        code, err = r.end()
        assert code == 125 and "enough of this" in err
    wait_for(lambda: engine.show(s)["runs"] == [])
    r = engine.sessions.ssb.run("--session", s, "--", "echo", "ran")
    assert r.code == 125 and b"ran" not in r.out and "enough of this" in r.errors


def test_kill_in_text(engine):
    s = engine.create_session()
    run = Run(engine.sessions, s)
    text = engine.sessions.ok("kill", s, "--grace", "1s")
    assert text.startswith(f"session '{s}' is killed")
    assert any(f"; {n} run ended in " in text and " ms" in text if n else "; 0 runs ended" in text
               for n in engine.found(1)), text
    assert run.end()[0] == 125
    r = engine.sessions("kill", s)
    assert r.code == 1 and "for ever" in r.errors


def test_pause_and_resume_reach_the_runs(engine):
    s = engine.create_session()
    run = Run(engine.sessions, s)
    d = engine.sessions.decide("pause", s)
    assert d["runs"]["reached"] == 1 and d["state"] == "paused"
    assert "1 run resumed" in engine.sessions.ok("resume", s)
    d = engine.sessions.decide("complete", s)
    assert d["runs"]["found"] in engine.found(1) and run.end()[0] == 125


def test_a_refused_check_kills_the_runs(engine):
    """A check exceeds the budget: the session is killed, and so are its running skills."""
    s = engine.create_session(budget={"max_cost_per_session": 0.1},
                              kill_switch={"grace_period": "0s"})
    run = Run(engine.sessions, s)
    r = engine.sessions("check", s, "--cost", "0.2")
    assert r.code == 1 and "is killed" in r.errors, repr(r)
    assert any("is killed; 1 run ended" in r.errors if n else "run ended" not in r.errors
               for n in engine.found(1)), repr(r)
    code, err = run.end()
    assert code == 125 and "$0.20" in err


def test_a_kill_that_was_cut_short_is_finished(user):
    """A process wrote a kill into the store, but died before it told the keeper: the run continues.
    The next kill ends the run."""
    sessions = Sessions(user)
    s = sessions.start()
    run = Run(sessions, s)
    keeper = next(line["data"]["keeper"] if "data" in line else line["keeper"]
                  for line in sessions.ledger(s) if line["kind"] == "run_begun")
    os.kill(keeper, signal.SIGSTOP)
    try:
        with contextlib.closing(sqlite3.connect(user.state / "skillsandbox/sessions.db")) as db:
            db.execute("UPDATE sessions SET state = 3, ended = created + 1, reason = 'enough'")
            db.commit()
        assert run.p.poll() is None
        r = sessions("kill", s)
        assert r.code == 1 and "for ever: enough" in r.errors, repr(r)
        assert "an earlier kill did not end 1 run of this session; it is ended now" in r.errors
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert run.end()[0] != 0
    r = sessions("kill", s)
    assert r.code == 1 and "earlier kill" not in r.errors


@pytest.mark.parametrize("shape", ["json", "slack"])
def test_the_owner_is_told(engine, shape):
    """The owner gets a message of the alert and of the kill, with the field names of the existing
    engine."""
    ssb = engine.sessions.ssb
    key = ssb.write(ssb.home / "hook.key", "decoy-key\n", 0o600)
    with notify_world.Receiver() as hook:
        to = {"webhook": hook.url}
        if shape == "json":
            to.update(format="json", secret_file=str(key))
        s = engine.create_session(agent_id="agent-7", kill_switch={"notify": [to]},
                                  budget={"max_cost_per_session": 1, "max_cost_per_action": 1})
        engine.spend(s, 0.85)
        engine.record_violation(s, "x")
        engine.sessions.ok("kill", s, "--reason", "enough of this")
        wait_for(lambda: len(hook.requests) == 2)
        wait_for(lambda: engine.sessions.kinds(s).count("notification") == 2)
        told = {line["event"] for line in engine.sessions.ledger(s)
                if line["kind"] == "notification"}
        assert told == {"budget_alert", "session_killed"}
        assert ": session_killed sent 200\n" in engine.sessions.ok("show", s)
        sent = sorted((json.loads(r[2]) for r in hook.requests), key=str)
        if shape == "slack":
            assert all("blocks" in m for m in sent) and "enough of this" in str(sent)
            return
        events = {m["event"]: m for m in sent}
        assert set(events) == {"budget_alert", "session_killed"}
        killed = events["session_killed"]
        assert killed["session_id"] == s and killed["agent_id"] == "agent-7"
        assert killed["reason"] == "enough of this" and killed["session_cost_usd"] == 0.85
        assert killed["action_count"] == 1 and killed["violation_counts"] == {"x": 1}
        for _, headers, body, _ in hook.requests:
            text = headers["X-SkillSandbox-Timestamp"].encode() + b"." + body
            assert headers["X-SkillSandbox-Signature"] == \
                "sha256=" + hmac.new(b"decoy-key", text, hashlib.sha256).hexdigest()
    assert "MESSAGE" in engine.sessions.ok("show", s)


def test_a_dead_receiver_delays_nothing(engine):
    """The receivers of messages do not answer: a kill is not delayed. The existing engine waited
    ten seconds for each of them."""
    with socket.socket() as s1, socket.socket() as s2:
        s = engine.create_session(kill_switch={"notify": [
            {"webhook": notify_world.deaf(s1)}, {"webhook": notify_world.dead(s2)}]})
        run = Run(engine.sessions, s)
        begun = time.monotonic()
        engine.sessions.ok("kill", s)
        took = time.monotonic() - begun
        assert run.end()[0] == 125
        assert took < 9, f"{took} s"
        # A message that cannot be delivered is recorded, too, and the ledger stays valid.
        wait_for(lambda: any(line["kind"] == "notification"
                             for line in engine.sessions.ledger(s)))
    ssb = engine.sessions.ssb

    def verified():  # fails if a further attempt is just being recorded
        path = ssb.write(ssb.work / "l.jsonl", engine.sessions("show", s, "--ledger").ok().out)
        return ssb.ssb("audit", "verify", "-q", path).code == 0
    wait_for(verified)
