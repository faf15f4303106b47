"""Runs `skillsandbox session ...` as one caller, on one of the two stores (SQLite, PostgreSQL)."""
import json
import os
import re
import shlex
import signal
import time

import harness

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
DECISION = {"session_id", "state", "action_allowed", "action_taken", "code", "reason",
            "decided_by", "changed", "reservation", "session_state_snapshot"}
SNAPSHOT = {"total_cost", "reserved_cost", "action_count", "violations", "duration_seconds",
            "estimated_cost", "action"}
# Characters that control a terminal or change the direction of text; not a newline.
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def store_url(request):
    """The URL for the fixture's parameter: a new database for "postgresql", None for "sqlite"."""
    if request.param == "sqlite":
        return None
    return request.getfixturevalue("server").database(f"s{os.urandom(4).hex()}")


class Sessions:
    def __init__(self, ssb, store=None):
        self.ssb = ssb
        self.count = 0
        if store is not None:
            ssb.write(ssb.home / ".config/skillsandbox/policy.yaml",
                      f"store: {json.dumps(store)}\n", 0o600)

    def __call__(self, *args, **kw):
        return self.ssb.ssb("session", *args, **kw)

    def ok(self, *args):
        return self(*args).ok().text

    def json(self, *args, code=0):
        r = self(*args, "--json")
        assert r.code == code, repr(r)
        return r.json()

    def decide(self, *args, code=0):
        """Runs the command and returns its decision, which must have all the documented keys."""
        d = self.json(*args, code=code)
        assert DECISION <= set(d) and SNAPSHOT <= set(d["session_state_snapshot"]), d
        assert d["action_allowed"] == (code == 0)
        return d

    def policy(self, **sections):
        self.count += 1
        path = self.ssb.work / f"session{self.count}.yaml"
        # The file is written as JSON, which is valid YAML.
        return self.ssb.write(path, json.dumps(sections) + "\n")

    def start(self, *args, **sections):
        return self.ok("start", "--policy", self.policy(**sections), *args).strip()

    def show(self, session):
        return self.json("show", session)

    def state(self, session):
        return self.show(session)["state"]

    def ledger(self, session):
        return [json.loads(line) for line in
                self.ok("show", session, "--ledger").splitlines()]

    def kinds(self, session):
        return [line["kind"] for line in self.ledger(session)]


def outlive(act, lengths=(3, 12, 60)):
    """Calls act(seconds), which sets a time limit of so many seconds and then does the work that
    must be complete before the limit ends. Waits until the limit is over, then returns the result
    of act. If the machine was too slow, act is called again with a longer limit."""
    for seconds in lengths:
        begun = time.monotonic()
        try:
            done = act(seconds)
        except AssertionError:
            if time.monotonic() - begun < seconds:
                raise
            continue
        if time.monotonic() - begun < seconds:
            time.sleep(seconds + 0.1)
            return done
    raise AssertionError(f"too slow for a limit of {lengths[-1]} s")


def is_clean(r):
    """Checks that output and errors have no characters that control a terminal; returns `r`."""
    for text in (r.text, r.errors):
        assert not STEERS.search(text), repr(r)
    return r


def on_terminal(ssb, *args, env=None):
    words = " ".join(shlex.quote(str(a)) for a in (ssb.binary, "session", *args))
    return ssb.as_caller(["script", "-qec", words, "/dev/null"],
                         env={"TERM": "xterm", **(env or {})})


def end_heralds(ssb):
    """Ends the heralds of this caller, which would otherwise retry for 15 minutes."""
    for pid, _ in harness.alive_with("skillsandbox-herald"):
        try:
            if f"HOME={ssb.home}\0".encode() in open(f"/proc/{pid}/environ", "rb").read():
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass  # the herald has ended
