"""Kills with obstacles: a store that is lost or damaged, keepers that do not answer, and more runs
than can be waited for at the same time. And the grace period that was promised."""
import contextlib
import os
import signal
import socket
import struct
import time

import pytest

from session_world import Sessions, either, sessions, until
from test_session_runs import all_dead


@pytest.mark.parametrize("either", ["user-sqlite", "user-postgres"], indirect=True)
@pytest.mark.parametrize("how", ["policy", "owner"])
def test_a_deaf_skill_has_its_whole_grace(either, how):
    """A skill ignores the first signal of a kill: its grace period is never shorter than promised,
    whether the owner or the policy kills it."""
    either.start("a", {"budget": {"max_cost_per_session": 1.0, "max_cost_per_action": 9.0},
                       "kill_switch": {"grace_period": "1s" if how == "owner" else "2s"}})
    run, sleeper = either.sleeping("a", "trap '' TERM")
    begun = time.monotonic()
    if how == "owner":
        either.act("kill", "a", "3000")
    else:
        assert either.drive("spend", "a", "5").ok().json()["state"] == "killed"
    took = time.monotonic() - begun
    least = 3 if how == "owner" else 2
    assert least - 0.2 < took < least + 8, took
    assert all_dead(sleeper) and run.end().code == 125


FAKE_KEEPERS = """
import os, selectors, socket, sys, time
os.chdir(sys.argv[1])
sel = selectors.DefaultSelector()
for name in open(sys.argv[2]).read().split():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(name)
    s.listen(64)
    sel.register(s, selectors.EVENT_READ, name)
print('ready', flush=True)
heard = set()
clients = []
while len(heard) < int(sys.argv[3]):
    for key, _ in sel.select():
        c, _ = key.fileobj.accept()
        if c.recv(4096):
            heard.add(key.data)
        clients.append(c)  # and sends no answer
print(time.monotonic(), flush=True)
os._exit(0)
"""


def test_all_are_told_before_any_is_waited_for(user):
    """A session has more runs than a kill can wait for at the same time, and the first ones do not
    answer: every keeper gets the kill before any grace period is over."""
    world = Sessions(user)
    world.start("a")
    run, _ = world.sleeping("a")
    (_, _, name), = world.runs("a")
    names = [f"{name[:8]}{i:024x}" for i in range(300)]
    user.write(user.base / "names", "\n".join(names))
    user.write(user.base / "fake.py", FAKE_KEEPERS)
    fakes = user.popen(["/usr/bin/python3", user.base / "fake.py", world.state / "live",
                        user.base / "names", "300"], stdout=-1)
    try:
        assert fakes.stdout.readline() == b"ready\n"
        for n in names:
            world.sql("INSERT INTO runs (session, run_id, host, boot, keeper, socket, init,"
                      " init_start, begun, ended, exit_status, ending) SELECT session, '', host,"
                      f" boot, 1, '{n}', 0, 0, begun, 0, 0, '' FROM runs WHERE n = 1")
        begun = time.monotonic()
        world.act("kill", "a", "30000")
        assert float(fakes.stdout.readline()) - begun < 20, "the grace of the first had to be over"
        assert run.end().code == 125
    finally:
        fakes.kill()
        fakes.communicate(timeout=30)
        world.done()


@pytest.mark.parametrize("damage", ["another", "its own"])
def test_a_damaged_row_saves_no_run(either, damage):
    either.start("a")
    either.start("b")
    run, sleeper = either.sleeping("a")
    other, others = either.sleeping("b")
    if damage == "another":
        either.sql("INSERT INTO runs (session, run_id, host, boot, keeper, socket, init,"
                   " init_start, begun, ended, exit_status, ending) SELECT session, '', host,"
                   " boot, -1, '', 0, 0, begun, 0, 0, '' FROM runs WHERE session = 1")
    else:
        either.sql("UPDATE runs SET keeper = -1 WHERE session = 1")
    r = either.drive("kill", "a")
    assert all_dead(sleeper), "alive when the command returned"
    # With PostgreSQL, the keeper may have got the kill from the store. It then ends its run and
    # repairs the damaged row, and the kill succeeds.
    if r.code != 0 or either.server is None:
        assert r.code == 1 and "damaged" in r.errors, repr(r)
    assert r.json()["left"] == 0
    assert run.end().code == 125
    assert others.pids(), "a run of another session"
    either.act("kill", "b")
    assert other.end().code == 125


def test_an_alert_waits_for_no_keeper(sessions):
    sessions.start("a", {"budget": {"max_cost_per_session": 1.0, "max_cost_per_action": 1.0,
                                    "alert_at": 0.5}})
    run, sleeper = sessions.sleeping("a")
    (_, keeper, _), = sessions.runs("a")
    sessions.stop(keeper)
    begun = time.monotonic()
    report = sessions.drive("spend", "a", "0.6").ok().json()
    assert time.monotonic() - begun < 4
    assert (report["state"], report["runs"]) == ("alert", 0)
    os.kill(keeper, signal.SIGCONT)
    # The control: a session that was in alert when it was paused resumes its run.
    sessions.act("pause", "a")
    report = sessions.act("resume", "a")
    assert (report["state"], report["runs"], report["left"]) == ("alert", 1, 0)
    assert sleeper.pids()
    sessions.act("kill", "a")
    assert run.end().code == 125


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_keepers_sleep_while_others_have_their_grace(user):
    sessions = Sessions(user)
    sessions.start("a", {"limits": {"wall_seconds": {"max": 10, "on_exceed": "kill"}},
                         "kill_switch": {"grace_period": "10s"}})
    deaf = [sessions.sleeping("a", "trap '' TERM") for _ in range(2)]
    keepers = [keeper for _, keeper, _ in sessions.runs("a")]
    until(lambda: sessions.show("a")["state"] == "killed")
    time.sleep(1)
    before = [cpu_ticks(k) for k in keepers]
    time.sleep(2)
    used = [cpu_ticks(k) - b for k, b in zip(keepers, before)]
    assert max(used) < 40, f"{used} of 200 ticks"
    for run, sleeper in deaf:
        assert run.end().code == 125 and all_dead(sleeper)
    sessions.done()


def test_the_keeper_is_not_a_zombie_of_the_caller(sessions):
    """A keeper may live longer than the library call that started it. It must not be a child of the
    calling program, which would not reap it."""
    sessions.start("a")
    run, _ = sessions.sleeping("a")
    (_, keeper, _), = sessions.runs("a")
    with open(f"/proc/{keeper}/stat", encoding="ascii", errors="replace") as f:
        assert int(f.read().rpartition(")")[2].split()[1]) != run.pid
    sessions.act("kill", "a")
    assert run.end().code == 125


def test_every_session_that_changed_is_acted_on(either):
    """A child session has expired, and then settles a cost that exceeds its parent's budget: the
    runs of both sessions end."""
    either.start("p", {"budget": {"max_cost_per_session": 1.0, "max_cost_per_action": 9.0},
                       "kill_switch": {"grace_period": "0s"}})
    either.start("c", {"session": {"max_duration": "6s"}, "kill_switch": {"grace_period": "0s"}},
                 parent="p")
    over = time.monotonic() + 6.1
    number = either.drive("spend", "c", "0.5").ok().json()["reservation"]
    run, sleeper = either.sleeping("p")
    (_, keeper, _), = either.runs("p")
    either.stop(keeper)  # the keeper must not end the run by itself
    time.sleep(max(0, over - time.monotonic()))
    assert sleeper.pids(), "the control"
    either.drive("settle", str(number), "5").ok()
    assert either.show("p")["state"] == "killed" and either.show("c")["state"] == "expired"
    assert all_dead(sleeper)
    os.kill(keeper, signal.SIGCONT)
    assert run.end().code == 125


# ---- kill without a store --------------------------------------------------

def locked(world, stack):
    stack.enter_context(world.held())


def damaged(world, _):
    for f in world.state.glob("sessions.db*"):
        f.write_bytes(b"nothing of the kind " * 4096)


def removed(world, _):
    for f in world.state.glob("sessions.db*"):
        f.unlink()


def misspelt(world, _):
    world.runner.write(world.runner.home / ".config/skillsandbox/policy.yaml", "store: [1]\n", 0o600)


@pytest.mark.parametrize("either, lose", [
    ("user-sqlite", locked), ("root-sqlite", damaged), ("user-sqlite", damaged),
    ("root-sqlite", removed), ("user-sqlite", misspelt), ("user-postgres", misspelt),
], indirect=["either"])
def test_kill_without_the_store(either, lose):
    sessions = either
    sessions.start("top")
    sessions.start("child", parent="top")
    sessions.start("other")
    runs = [sessions.sleeping(s) for s in ("top", "child", "child")]
    other, others = sessions.sleeping("other")
    with contextlib.ExitStack() as stack:
        lose(sessions, stack)
        begun = time.monotonic()
        killing = sessions.runner.popen([sessions.runner.binary, "session", "kill", "top"],
                                        stdin=-3, stdout=-1, stderr=-1)
        until(lambda: all_dead(*(s for _, s in runs)))
        assert time.monotonic() - begun < 9, "the store is waited for, for 10 s"
        assert others.pids(), "a run of another session"
        out, err = killing.communicate(timeout=60)
    assert killing.returncode == 125 and out == b"", err
    for part in (b"NOT RECORDED", b"3 runs", b"session kill top"):
        assert part in err, err
    for run, _ in runs:
        r = run.end()
        assert r.code == 125 and "owner" in r.errors, repr(r)
    if lose is locked:
        assert sessions.show("top")["state"] == "active"
        r = sessions.runner.ssb("session", "kill", "top").ok()
        assert sessions.show("child")["state"] == "killed"
    other.process.kill()


REQUEST = struct.Struct("=IIQ65s256s7x")
REPLY = struct.Struct("=IIi4xQ65s40s256s7x")
PING, KILL, PAUSE, RESUME = range(4)
HEARD, DONE, REFUSED, OTHER = range(4)


def talk(path, op, session=b""):
    """Sends one request to the keeper at this socket, and returns its answers."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    with s:
        fd = os.open(path.parent, os.O_PATH)
        try:
            s.connect(f"/proc/self/fd/{fd}/{path.name}")
        finally:
            os.close(fd)
        s.send(REQUEST.pack(2, op, 0, session, b""))
        answers = []
        while data := s.recv(4096):
            answers.append(REPLY.unpack(data)[1])
        return answers


def test_what_was_killed_is_not_resumed(user):
    """A resume cannot undo a kill, even if the kill is not in the store yet: a run in its grace
    period refuses the resume."""
    sessions = Sessions(user)
    sessions.start("top")
    sessions.start("a", parent="top")
    run, sleeper = sessions.sleeping("a", "trap '' TERM")
    (_, _, name), = sessions.runs("a")
    path = sessions.state / "live" / name
    for within in (b"", b"a", b"top"):
        assert talk(path, RESUME, within) == [HEARD, DONE], "the control"
    assert talk(path, KILL, b"nothing") == [OTHER] and sleeper.pids()
    with sessions.held():
        killing = user.popen([user.binary, "session", "kill", "top", "--grace", "7s"], stdin=-3,
                             stdout=-1, stderr=-1)
        until(lambda: talk(path, RESUME, b"top") == [HEARD, REFUSED])
        assert sleeper.pids(), "it has its grace"
        until(lambda: all_dead(sleeper))
        killing.communicate(timeout=60)
    assert run.end().code == 125
    sessions.done()
