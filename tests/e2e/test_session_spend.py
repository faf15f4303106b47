"""Many processes spend from one budget at the same time, on both stores: the sums are exact to the
micro-dollar, even if some processes are killed. `audit verify` checks the ledger."""
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import harness
from session_cli import store_url


class Store:
    """A store, and the program session_bench that uses it."""

    def __init__(self, base, url):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="spend-", dir=base))
        self.env = {"HOME": str(self.dir), "XDG_STATE_HOME": str(self.dir / "state"),
                    "XDG_CONFIG_HOME": str(self.dir / "config"), "PATH": harness.PATH}
        config = self.dir / "config/skillsandbox"
        config.mkdir(parents=True, mode=0o700)
        if url:
            (config / "policy.yaml").write_text(f"store: {json.dumps(url)}\n")
            (config / "policy.yaml").chmod(0o600)
        self.program = harness.BUILD / "tests/unit/session_bench"

    def __call__(self, *args):
        return harness.execute([self.program, *args], env=self.env).ok().text

    def start(self, session, policy):
        path = self.dir / "session.yaml"
        path.write_text(policy)
        self("start", session, path)

    def spawn(self, *args):
        out = tempfile.TemporaryFile(dir=self.dir)
        p = subprocess.Popen([str(a) for a in (self.program, *args)], env=self.env, stdout=out,
                             stderr=subprocess.PIPE)
        return p, out

    def show(self, session):
        state, spent, reserved, actions = self("show", session).split()
        return state, int(spent), int(reserved), int(actions)

    def ledger(self, session):
        return [json.loads(line) for line in self("ledger", session).splitlines()]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, base):
    s = Store(base, store_url(request))
    yield s
    shutil.rmtree(s.dir, ignore_errors=True)


def said(out):
    """Returns the actions of a process, as it reported them."""
    out.seek(0)
    return [(what, int(n)) for what, n in (line.split() for line in out.read().decode()
                                           .splitlines() if line.count(" ") == 1)]


def micro(dollars):
    return round(dollars * 1_000_000)


def test_fifty_processes_never_pass_the_budget(store):
    """Fifty processes make 2,000 checks, and the budget allows a little more than 1,000: exactly
    1,000 are allowed."""
    amount, each, room = 123, 40, 1000
    budget = amount * room + 100
    store.start("fifty", f"budget:\n  max_cost_per_session: {budget / 1e6:.6f}\n"
                         "  on_exceed: block\nsession:\n  max_actions: 1000000\n")
    running = [store.spawn("spend", "fifty", each, amount) for _ in range(50)]
    counts = collections.Counter()
    for p, out in running:
        assert p.wait(timeout=300) == 0, p.stderr.read()
        counts.update(what for what, _ in said(out))
    assert counts == {"allowed": room, "settled": room, "blocked": 50 * each - room}
    assert store.show("fifty") == ("alert", amount * room, 0, room)
    lines = store.ledger("fifty")
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    kinds = collections.Counter(line["kind"] for line in lines)
    assert kinds["action_allowed"] == kinds["action_settled"] == room
    assert kinds["action_blocked"] == 50 * each - room
    assert kinds["budget_alert"] == 1, "told once, not by each that sees it"
    # At no moment was the sum of the reserved and the spent money larger than the budget.
    assert max(micro(line["snapshot"]["spent_usd"]) + micro(line["snapshot"]["reserved_usd"])
               for line in lines) == amount * room


def test_killed_in_the_middle(store):
    """Processes are killed while they spend: each action that they reported is in the ledger
    exactly once, and no action is only half recorded."""
    amount = 77
    store.start("killed", "budget:\n  max_cost_per_session: 1000\n"
                          "session:\n  max_actions: 1000000\n")
    # The first six processes would run for minutes, but are killed.
    running = [store.spawn("spend", "killed", 100000 if i < 6 else 150, amount)
               for i in range(12)]
    rng = random.Random(5)
    for p, _ in running[:6]:
        time.sleep(rng.uniform(0.02, 0.15))
        p.send_signal(signal.SIGKILL)
    codes = [p.wait(timeout=300) for p, _ in running]
    assert codes == [-signal.SIGKILL] * 6 + [0] * 6
    events = [e for _, out in running for e in said(out)]
    lines = store.ledger("killed")
    there = {kind: collections.Counter(line["reservation"] for line in lines
                                       if line["kind"] == kind)
             for kind in ("action_allowed", "action_settled")}
    for what in ("allowed", "settled"):
        assert all(there[f"action_{what}"][n] == 1 for w, n in events if w == what)
    assert set(there["action_allowed"].values()) == {1}
    assert set(there["action_settled"].values()) == {1}
    open_ones = set(there["action_allowed"]) - set(there["action_settled"])
    _, spent, reserved, actions = store.show("killed")
    assert actions == len(there["action_allowed"])
    assert spent == amount * len(there["action_settled"])
    assert reserved == amount * len(open_ones)
    # Any process may settle the reservations of the processes that were killed.
    for n in open_ones:
        store("settle", n, amount + 1)
    assert store.show("killed")[1:3] == (spent + (amount + 1) * len(open_ones), 0)


def test_the_ledger_is_verified_by_the_command(store, root):
    store.start("ledger", "budget:\n  max_cost_per_session: 1\n")
    store("spend", "ledger", 3, 1000)
    store("hold", "ledger", 1, 2000)

    def verify(text):
        path = store.dir / "ledger.jsonl"
        path.write_text(text)
        return harness.execute([root.binary, "audit", "verify", "--json", path], env=store.env)

    store("kill", "ledger")
    killed = store("ledger", "ledger")
    assert verify(killed).ok().json()["state"] == "complete"
    open_one = [line for line in map(json.loads, killed.splitlines())
                if line["kind"] == "action_allowed"][-1]["reservation"]
    store("settle", open_one, 1500)
    text = store("ledger", "ledger")
    report = verify(text).ok().json()
    assert report["state"] == "complete" and report["session_id"] == "ledger"
    assert text.startswith(killed), "what was signed stays as it was"
    lines = text.splitlines(keepends=True)
    edited = text.replace('"cost_usd":0.001500', '"cost_usd":0.000015')
    assert edited != text
    for bad, why in ((edited, "edited"), ("".join(lines[:2] + lines[3:]), "left out"),
                     ("".join(lines[:2] + [lines[3], lines[2]] + lines[4:]), "reordered")):
        assert verify(bad).code == 1, why
    assert verify("".join(lines[:-1])).code == 3
    assert verify(text[:-40]).code == 3


@pytest.mark.parametrize("name", ["test_session", "test_session_states", "test_session_ledger",
                                  "test_session_runs", "test_session_send",
                                  "test_session_sweep", "test_session_together"])
def test_the_table_of_cases_on_postgresql(server, name):
    url = server.database(f"cases{os.urandom(4).hex()}")
    r = harness.execute([harness.BUILD / "tests/unit" / name], timeout=300,
                        env={"SSB_TEST_POSTGRES": url, "PATH": harness.PATH}).ok()
    assert (r.text + r.errors).count("[  PASSED  ]") == 2, "SQLite, and PostgreSQL"
