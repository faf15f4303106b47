"""Runs of a session end, pause and resume with it, whatever happens to their supervisor and keeper.
A run also ends when its usage reaches a limit."""
import json
import os
import signal
import socket
import time

import pytest

from harness import open_files
from net_fixtures import GRANT, net, outside, rule
from session_world import Run, Sessions, Sleeper, either, sessions, until

REASON = "by the driver"


def dead(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def all_dead(*sleepers):
    return all(not s.pids() for s in sleepers)


def found(world, report, all_of_them=3):
    """The number of runs that a kill found. With PostgreSQL the store tells the keepers of the
    kill, so a run may have ended before the kill finds it: then the expected number is returned."""
    if world.server is not None:
        assert report["runs"] <= all_of_them
        return all_of_them
    return report["runs"]


# ---- kill ------------------------------------------------------------------

def test_kill_ends_every_run(either):
    either.start("a")
    either.start("b")
    tree = [Sleeper() for _ in range(4)]
    script = f"""
    ( {tree[0]} & )
    setsid {tree[1]} &
    ( ( setsid sh -c 'trap "" TERM HUP INT; {tree[2]} & wait' >/dev/null 2>&1 & ) & )
    nohup {tree[3]} >/dev/null 2>&1 &
    sleep 0.2
    """
    runs = [either.sleeping("a", script), either.sleeping("a"), either.sleeping("a")]
    other, others = either.sleeping("b")
    until(lambda: all(s.pids() for s in tree))
    # The control: the runs do not end by themselves, although their keepers ask the store several
    # times.
    time.sleep(1.2)
    assert all(s.pids() for s in [*tree, others, *(s for _, s in runs)])
    report = either.act("kill", "a")
    assert all_dead(*tree, *(s for _, s in runs)), "alive when the command returned"
    assert (found(either, report), report["left"], report["state"]) == (3, 0, "killed")
    assert others.pids(), "a run of another session"
    for run, _ in runs:
        r = run.end()
        assert r.code == 125 and REASON in r.errors, repr(r)
    until(lambda: either.runs("a") == [])
    assert len(either.runs("b")) == 1
    assert found(either, either.act("kill", "b"), 1) == 1
    assert other.end().code == 125


def test_a_killed_session_stays_killed(sessions):
    sessions.start("a")
    r = sessions.runner.run("--session", "a", "--", "/bin/echo", "hi")
    assert (r.code, r.text) == (0, "hi\n")
    sessions.act("kill", "a")
    for _ in range(2):
        r = sessions.runner.run("--session", "a", "--", "/bin/echo", "hi")
        assert r.code == 125 and r.text == "" and REASON in r.errors, repr(r)
        # All files beside the store are removed, as by a restart of the machine.
        for f in (sessions.state / "live").iterdir():
            f.unlink()
        (sessions.state / "live").rmdir()
    assert sessions.drive("resume", "a").code != 0
    assert sessions.drive("start", "a").code != 0, "an id is never used twice"
    assert sessions.runner.run("--", "/bin/echo", "hi").ok().text == "hi\n"


def test_an_unknown_session_is_no_session(sessions):
    for name in ("none", "../x", "", "a b"):
        r = sessions.runner.run("--session", name, "--", "/bin/echo", "hi")
        assert r.code in (2, 125) and r.text == "" and "session" in r.errors, repr(r)


def test_session_by_environment(sessions):
    sessions.start("a")
    env = {"SKILLSANDBOX_SESSION": "a"}
    r = sessions.runner.run("--", "/usr/bin/env", env=env).ok()
    assert "SKILLSANDBOX" not in r.text and "HOME=" in r.text
    assert sessions.show("a")["runs"] == 1
    sessions.start("b")
    sessions.runner.run("--session", "b", "--", "/bin/true", env=env).ok()
    assert (sessions.show("a")["runs"], sessions.show("b")["runs"]) == (1, 1)
    sessions.act("kill", "a")
    assert sessions.runner.run("--", "/bin/true", env=env).code == 125


@pytest.mark.parametrize("who", ["supervisor", "keeper", "both"])
def test_kill_reaches_what_is_stopped(sessions, who):
    sessions.start("a")
    run, sleeper = sessions.sleeping("a")
    (init, keeper, _), = sessions.runs("a")
    pids = {"supervisor": [run.pid], "keeper": [keeper], "both": [run.pid, keeper]}[who]
    for pid in pids:
        sessions.stop(pid)
    time.sleep(0.3)
    assert sleeper.pids(), "the control: it sleeps on"
    report = sessions.act("kill", "a")
    assert all_dead(sleeper) and dead(init)
    assert report["left"] == 0 and report["took_us"] < 4_000_000, report
    if who != "supervisor":
        assert report["forced"] == 1, report
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    assert run.end().code == 125
    until(lambda: sessions.runs("a") == [])


NO_USERNS = """echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all \
--inh-caps=-all --bounding-set=-all -- "$0" "$@"
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_kill_where_there_are_no_namespaces(user, stopped):
    """Without namespaces, init is not PID 1 of a namespace: if only init ended, the other processes
    would keep running."""
    sessions = Sessions(user)
    sessions.start("a")
    sleepers = [Sleeper() for _ in range(3)]
    script = f"{sleepers[0]} & setsid {sleepers[1]} & ( {sleepers[2]} & ) ; wait; sleep 200"
    process = user.popen(["unshare", "--map-current-user", "--keep-caps", "sh", "-c", NO_USERNS,
                          user.binary, "run", "--session", "a", "--best-effort", "userns",
                          "--timeout", "200", "--", "/bin/sh", "-c", script],
                         stdin=-3, stdout=-1, stderr=-1)
    try:
        until(lambda: all(s.pids() for s in sleepers))
        until(lambda: sessions.runs("a")[0][0])
        if stopped:
            sessions.stop(process.pid)
        assert sessions.act("kill", "a")["left"] == 0
        assert all_dead(*sleepers)
    finally:
        for pid in [p for s in sleepers for p in s.pids()]:
            os.kill(pid, signal.SIGKILL)
        sessions.done()
        process.communicate(timeout=30)
    assert process.returncode == 125


def test_grace(sessions):
    sessions.start("a")
    ready = Sleeper()
    run = sessions.popen("--", "/bin/sh", "-c",
                         f"trap 'echo bye; exit 3' TERM; {ready} & wait", session="a")
    until(ready.pids)
    until(lambda: sessions.runs("a")[0][0])
    begun = time.monotonic()
    assert sessions.act("kill", "a", "20000")["left"] == 0
    assert time.monotonic() - begun < 10, "it was ready sooner"
    r = run.end()
    assert (r.code, r.text) == (125, "bye\n"), repr(r)
    # A skill that ignores SIGTERM gets the grace period, and no more.
    sessions.start("b")
    run, sleeper = sessions.sleeping("b", "trap '' TERM")
    begun = time.monotonic()
    sessions.act("kill", "b", "1000")
    assert 0.9 < time.monotonic() - begun < 10
    assert all_dead(sleeper) and run.end().code == 125


# ---- the supervisor or the keeper dies --------------------------------------

def test_no_run_without_keeper(sessions):
    sessions.start("a")
    run, sleeper = sessions.sleeping("a")
    (_, keeper, _), = sessions.runs("a")
    os.kill(keeper, signal.SIGTERM)  # the keeper ignores SIGTERM while the run is active
    time.sleep(0.3)
    assert sleeper.pids() and not dead(keeper)
    os.kill(keeper, signal.SIGKILL)
    until(lambda: all_dead(sleeper))
    assert run.end().code == 125
    assert len(sessions.runs("a")) == 1, "no process was left to record it"
    sessions.runner.run("--session", "a", "--", "/bin/true").ok()
    until(lambda: sessions.runs("a") == [])


def test_no_run_without_supervisor(sessions):
    sessions.start("a")
    run, sleeper = sessions.sleeping("a")
    (_, keeper, name), = sessions.runs("a")
    assert (sessions.state / "live" / name).exists()
    run.process.kill()
    until(lambda: all_dead(sleeper) and dead(keeper), 30)
    until(lambda: sessions.runs("a") == [])
    until(lambda: not (sessions.state / "live" / name).exists())


def test_both_killed_at_once(sessions):
    sessions.start("a")
    run, sleeper = sessions.sleeping("a")
    (_, keeper, _), = sessions.runs("a")
    for pid in (keeper, run.pid):
        os.kill(pid, signal.SIGKILL)
    until(lambda: all_dead(sleeper))
    assert len(sessions.runs("a")) == 1
    report = sessions.act("kill", "a")
    assert report["left"] == 0
    until(lambda: sessions.runs("a") == [])


def test_keeper_killed_beside_a_stopped_supervisor(sessions):
    """The keeper is killed and the supervisor is stopped (SIGSTOP), so neither ends the run: the
    next command of the session does."""
    sessions.start("a")
    run, sleeper = sessions.sleeping("a")
    (_, keeper, _), = sessions.runs("a")
    sessions.stop(run.pid)
    os.kill(keeper, signal.SIGKILL)
    time.sleep(0.5)
    assert sleeper.pids(), "the control: it is still there"
    sessions.runner.run("--session", "a", "--", "/bin/sleep", "0.3").ok()
    until(lambda: all_dead(sleeper))
    os.kill(run.pid, signal.SIGCONT)
    assert run.end().code == 125
    until(lambda: sessions.runs("a") == [])


def test_interrupt_is_for_the_skill(sessions):
    """SIGINT from a terminal ends the skill, and the keeper records it."""
    sessions.start("a")
    run, sleeper = sessions.sleeping("a")
    os.killpg(run.pid, signal.SIGINT)
    assert run.end().code == 130
    until(lambda: all_dead(sleeper) and sessions.runs("a") == [])
    assert sessions.show("a")["state"] == "active"


# ---- pause -----------------------------------------------------------------

TICK = "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); echo $i; sleep 0.02; done"


def ticks(path):
    return len(path.read_bytes().split())


def ticking(world, session, out):
    """Starts a run that writes a line to `out` every 20 ms."""
    with open(out, "wb") as f:
        process = world.runner.popen(
            [world.runner.binary, "run", "--session", session, "--timeout", "300", "--",
             "/bin/sh", "-c", TICK], stdin=-3, stdout=f, stderr=-1)
    world.running.append(Run(process))
    return process


def test_pause_and_resume(either):
    either.start("a")
    outs = []
    for i in range(3):
        out = either.runner.base / f"ticks{i}"
        ticking(either, "a", out)
        outs.append(out)
    until(lambda: all(ticks(o) > 5 for o in outs))
    report = either.act("pause", "a")
    assert (report["runs"], report["reached"], report["left"]) == (3, 3, 0)
    time.sleep(2.5)  # until the pipes are empty
    before = [ticks(o) for o in outs]
    time.sleep(2.5)  # the keepers ask the store again meanwhile
    assert [ticks(o) for o in outs] == before
    assert either.runner.run("--session", "a", "--", "/bin/true").code == 125
    assert either.act("resume", "a")["left"] == 0
    until(lambda: all(ticks(o) > b + 5 for o, b in zip(outs, before)))
    assert either.runner.run("--session", "a", "--", "/bin/true").code == 0
    assert either.act("kill", "a")["left"] == 0
    for run in either.running:
        assert run.process.wait(30) == 125


@pytest.mark.parametrize("stopped", [False, True])
def test_kill_of_what_stands_still(sessions, stopped):
    sessions.start("a")
    run, sleeper = sessions.sleeping("a")
    sessions.act("pause", "a")
    if stopped:
        sessions.stop(run.pid)
    report = sessions.act("kill", "a")
    assert report["left"] == 0, report
    assert all_dead(sleeper)
    if stopped:
        os.kill(run.pid, signal.SIGCONT)
    assert run.end().code == 125


# ---- parents and children ---------------------------------------------------

def test_parents_and_children(either):
    either.start("top")
    either.start("child", parent="top")
    either.start("grandchild", parent="child")
    runs = {name: either.sleeping(name) for name in ("top", "child", "grandchild")}
    assert either.act("pause", "child")["runs"] == 2
    assert either.act("resume", "child")["left"] == 0
    assert found(either, either.act("kill", "grandchild"), 1) == 1
    assert all_dead(runs["grandchild"][1])
    assert runs["child"][1].pids() and runs["top"][1].pids()
    assert found(either, either.act("kill", "top"), 2) == 2
    assert all_dead(runs["child"][1], runs["top"][1])
    for run, _ in runs.values():
        assert run.end().code == 125
    assert either.runner.run("--session", "child", "--", "/bin/true").code == 125


# ---- limits of a run's usage -----------------------------------------------

def in_the_middle(run, sleepers, seconds=30):
    """Asserts that the run is ended long before it would have ended by itself."""
    begun = time.monotonic()
    r = run.end(timeout=60)
    assert time.monotonic() - begun < seconds
    assert r.code == 125 and all_dead(*sleepers), repr(r)
    return r


def soon_over(world):
    """Starts a run that may end before the test looks at it."""
    sleeper = Sleeper()
    return world.popen("--timeout", "200", "--", *str(sleeper).split(), session="a"), sleeper


def test_wall_seconds(either):
    either.start("a", {"limits": {"wall_seconds": {"max": 1, "on_exceed": "kill"}},
                         "kill_switch": {"grace_period": "0s"}})
    run, sleeper = soon_over(either)
    assert "wall" in in_the_middle(run, [sleeper]).errors
    got = either.show("a")
    assert got["state"] == "killed" and 1000 < got["wall_seconds"] < 10000


def test_cpu_seconds(sessions):
    sessions.start("a", {"limits": {"cpu_seconds": 1}, "kill_switch": {"grace_period": "0s"}})
    run = sessions.popen("--timeout", "100", "--", "/bin/sh", "-c", "while :; do :; done",
                         session="a")
    assert "cpu" in in_the_middle(run, [], 40).errors
    assert 1000 < sessions.show("a")["cpu_seconds"] < 10000


def test_a_limit_ends_the_others_as_well(either):
    either.start("a", {"limits": {"cpu_seconds": 1}, "kill_switch": {"grace_period": "0s"}})
    idle, sleeper = either.sleeping("a")
    busy = either.popen("--timeout", "100", "--", "/bin/sh", "-c", "while :; do :; done",
                          session="a")
    assert busy.end(60).code == 125
    assert "cpu" in in_the_middle(idle, [sleeper]).errors


def test_block_ends_the_run_alone(sessions):
    sessions.start("a", {"limits": {"wall_seconds": {"max": 1, "on_exceed": "block"}},
                         "kill_switch": {"grace_period": "0s"}})
    run, sleeper = soon_over(sessions)
    in_the_middle(run, [sleeper])
    assert sessions.show("a")["state"] in ("active", "alert")


@pytest.mark.parametrize("act", ["alert", "log"])
def test_alert_and_log_let_it_go_on(sessions, act):
    sessions.start("a", {"limits": {"wall_seconds": {"max": 1, "on_exceed": act}}})
    run = sessions.popen("--", "/bin/sh", "-c", "sleep 2.5; echo done", session="a")
    r = run.end()
    assert (r.code, r.text) == (0, "done\n"), repr(r)


def test_violations_end_a_run_at_the_count(sessions):
    sessions.start("a", {"limits": {"violations": {"total": 2}},
                         "kill_switch": {"grace_period": "0s"}})
    code = """
    import os, sys, time
    for i in range(4):
        try:
            open(os.environ['HOME'] + '/.ssh/id_%d' % i)
        except OSError:
            pass
        try:
            open('/etc/shadow')
        except OSError:
            pass
        print(i, flush=True)
    time.sleep(float(sys.argv[1]))
    print('through', flush=True)
    """
    skill = sessions.runner.skill(code)
    r = sessions.popen(str(skill), "--", "25", session="a").end()
    assert r.code == 125 and "through" not in r.text, repr(r)
    got = sessions.show("a")
    assert got["state"] == "killed" and got["violations"] >= 3
    # The control: in a session without this limit, the same skill is not ended.
    sessions.start("b")
    r = sessions.popen(str(skill), "--", "0", session="b").end()
    assert r.code == 0 and "through" in r.text, repr(r)
    assert sessions.show("b")["violations"] >= 3


def test_budget_runs_out_in_the_middle(either):
    either.start("a", {"budget": {"max_cost_per_session": 1.0, "max_cost_per_action": 1.0},
                         "kill_switch": {"grace_period": "0s"}})
    run, sleeper = either.sleeping("a")
    assert either.drive("spend", "a", "0.6").ok().json()["allowed"]
    assert sleeper.pids()
    report = either.drive("spend", "a", "0.6").ok().json()
    assert not report["allowed"] and report["state"] == "killed"
    assert found(either, report, 1) == 1
    in_the_middle(run, [sleeper])


def test_max_duration_ends_a_run(either):
    either.start("a", {"session": {"max_duration": "8s"}, "kill_switch": {"grace_period": "0s"}})
    run, sleeper = either.sleeping("a")
    in_the_middle(run, [sleeper])
    assert either.show("a")["state"] == "expired"
    assert either.runner.run("--session", "a", "--", "/bin/true").code == 125


def test_a_run_too_many_ends_the_session(either):
    either.start("a", {"limits": {"runs": {"max": 1, "on_exceed": "kill"}},
                         "kill_switch": {"grace_period": "0s"}})
    run, sleeper = either.sleeping("a")
    r = either.runner.run("--session", "a", "--", "/bin/echo", "hi")
    assert r.code == 125 and r.text == ""
    in_the_middle(run, [sleeper])
    assert either.show("a")["state"] == "killed"


# ---- access to keepers ------------------------------------------------------

REACH = """
import json, os, socket
top = os.path.join({state!r}, 'skillsandbox')
got = {{}}
for name in ('', 'live', 'sessions.db'):
    path = os.path.join(top, name)
    try:
        got[name] = os.listdir(path) if name != 'sessions.db' else len(open(path, 'rb').read())
    except OSError as e:
        got[name] = None
found = []
for name in got['live'] or []:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        os.chdir(os.path.join(top, 'live'))
        s.connect(name)
        found.append(name)
    except OSError:
        pass
print(json.dumps([bool(got['']), bool(got['live']), bool(got['sessions.db']), bool(found)]))
"""


def test_no_way_from_inside(sessions):
    sessions.start("a")
    _, sleeper = sessions.sleeping("a")
    code = REACH.format(state=str(sessions.runner.state))
    assert sessions.runner.bare_probe(code) == [True] * 4, "the control"
    skill = sessions.runner.skill(code)
    r = sessions.runner.run("--session", "a", skill).ok()
    assert json.loads(r.text) == [False] * 4
    # Even if the owner grants reading the whole home, no socket of a keeper answers the skill. A
    # grant to write to the directory of these sockets, or above it, is refused.
    r = sessions.runner.run("--session", "a", "--read", sessions.runner.home, skill).ok()
    assert json.loads(r.text)[3] is False, repr(r)
    for path in (sessions.runner.home, sessions.state, sessions.state / "live"):
        r = sessions.runner.run("--session", "a", "--write", path, skill)
        assert r.code == 125 and r.text == "", repr(r)
    assert sleeper.pids()


def test_silent_clients_do_not_block_it(sessions):
    sessions.start("a")
    run, sleeper = sessions.sleeping("a")
    (_, _, name), = sessions.runs("a")
    clients = []
    before = os.getcwd()
    os.chdir(sessions.state / "live")
    try:
        for i in range(60):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
            try:
                s.connect(name)
                s.send(b"x" * i if i % 3 else b"\x02\x00\x00\x00" + os.urandom(340))
            except OSError:
                pass
            clients.append(s)
    finally:
        os.chdir(before)
    assert sleeper.pids()
    report = sessions.act("kill", "a")
    assert report["left"] == 0 and report["took_us"] < 4_000_000, report
    assert all_dead(sleeper) and run.end().code == 125
    for s in clients:
        s.close()


def test_the_keeper_gives_up_what_it_does_not_need(sessions):
    sessions.start("a")
    run, _ = sessions.sleeping("a")
    (_, keeper, _), = sessions.runs("a")
    with open(f"/proc/{keeper}/status", encoding="ascii") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) in (0, 1 << 5 | 1 << 1), status["CapEff"]
    files = open_files(keeper)
    known = ("socket:", "anon_inode:", "/dev/null", str(sessions.state))
    assert files and [f for f in files if not f.startswith(known)] == [], files
    assert os.getsid(keeper) == keeper != os.getsid(run.pid)
    if not sessions.runner.is_root:
        # The keeper is not dumpable, so other processes of the same user cannot read its memory.
        r = sessions.runner.as_caller(["/bin/cat", f"/proc/{keeper}/environ"])
        assert r.code != 0 and r.text == ""
        assert sessions.runner.as_caller(["/bin/cat", f"/proc/{run.pid}/cmdline"]).code == 0


def test_stale_sockets_are_removed(sessions):
    sessions.start("a")
    run, _ = sessions.sleeping("a")
    (_, keeper, name), = sessions.runs("a")
    os.kill(keeper, signal.SIGKILL)
    run.end()
    path = sessions.state / "live" / name
    assert path.exists()
    os.utime(path, (1, 1))
    sessions.runner.run("--session", "a", "--", "/bin/sleep", "0.3").ok()
    until(lambda: not path.exists() and not list((sessions.state / "live").iterdir()))


def test_ps_names_the_session(sessions):
    assert sessions.runner.ssb("ps", "--json").ok().json() == []
    sessions.start("a")
    sessions.sleeping("a")
    alone = Sleeper()
    sessions.popen("--", "/bin/sh", "-c", f"exec {alone}")
    until(alone.pids)
    got = {r.get("session") for r in sessions.runner.ssb("ps", "--json").ok().json()}
    assert got == {"a", None}
    text = sessions.runner.ssb("ps").ok().text
    assert text.count("(session a)") == 1
    # `ps` waits for a slow keeper. The test tries several times, because the machine may be even
    # slower.
    (_, keeper, _), = sessions.runs("a")

    def slow():
        sessions.stop(keeper)
        p = sessions.runner.popen([sessions.runner.binary, "ps"], stdout=-1)
        time.sleep(0.4)
        os.kill(keeper, signal.SIGCONT)
        return b"(session a)" in p.communicate(timeout=30)[0]
    assert any(slow() for _ in range(5))
    # `ps` does not wait long for a keeper that does not answer.
    sessions.stop(keeper)
    begun = time.monotonic()
    assert len(sessions.runner.ssb("ps", "--json").ok().json()) == 2
    assert time.monotonic() - begun < 10
    os.kill(keeper, signal.SIGCONT)


# ---- a store that is lost --------------------------------------------------

@pytest.mark.parametrize("either", ["root-sqlite", "user-postgres"], indirect=True)
def test_a_lost_store(either):
    """Another process locks the store, so the keepers treat it as lost: each run does what its
    policy's on_store_loss says."""
    policies = {"kill": {}, "pause": {"kill_switch": {"on_store_loss": "pause"}},
                "on": {"kill_switch": {"on_store_loss": "continue"}}}
    for name, policy in policies.items():
        either.start(name, policy)
    outs = {}
    for name in policies:
        outs[name] = either.runner.base / f"out-{name}"
        ticking(either, name, outs[name])
    until(lambda: all(ticks(o) > 3 for o in outs.values()))
    killed, paused, on = (r.process for r in either.running[:3])
    with either.held():
        begun = time.monotonic()
        late = either.popen("--", "/bin/echo", "hi", session="on")
        time.sleep(5)
        assert killed.poll() is None, "the control: a store that is slow is not lost"
        assert killed.wait(30) == 125
        assert 9 < time.monotonic() - begun < 35
        assert b"store" in killed.stderr.read()
        r = late.end()
        assert r.code == 125 and r.text == "", repr(r)
        until(lambda: not grows(outs["pause"]))
        until(lambda: grows(outs["on"]))
        assert paused.poll() is None and on.poll() is None
    until(lambda: grows(outs["pause"]), 20)
    assert either.show("on")["wall_seconds"] > 0
    for name in ("pause", "on"):
        assert either.act("kill", name)["left"] == 0


def grows(path):
    before = ticks(path)
    time.sleep(0.5)
    return ticks(path) > before


# ---- the network -----------------------------------------------------------

SEND = """
import socket, threading, time
s = socket.create_connection(('api.example.test', 7001), 10)
threading.Thread(target=lambda: [0 for _ in iter(lambda: s.recv(65536), b'')], daemon=True).start()
sent = 0
while sent < 8 << 20:
    sent += s.send(b'x' * 16384)
    time.sleep(PAUSE)
time.sleep(100 * PAUSE)
show('through')
"""


def test_bytes_end_a_run_in_the_middle(net, sessions):
    egress = [rule("api.example.test", 7001, protocol="tcp")]
    sessions.start("a", {"limits": {"bytes_out": "1M"}, "kill_switch": {"grace_period": "0s"}})
    # At this speed 6 MiB take 7 s.
    r = net.inside("PAUSE = 0.02\n" + SEND, egress, flags=(*GRANT, "--session", "a"))
    assert r.code == 125 and "through" not in r.text and "bytes_out" in r.errors, repr(r)
    got = sessions.show("a")
    assert got["state"] == "killed" and 1 << 20 < got["bytes_out"] < 6 << 20, got
    sessions.start("b")
    r = net.inside("PAUSE = 0.002\n" + SEND, egress, flags=(*GRANT, "--session", "b")).ok()
    assert "through" in r.text, "the control"
    assert sessions.show("b")["bytes_out"] >= 8 << 20


CONNECT = """
import socket, time
for i in range(4):
    for name in NAMES:
        socket.create_connection((name, 7001), 10).close()
    time.sleep(PAUSE if i > 0 else 0)
show('through')
"""


@pytest.mark.parametrize("limit, most", [("connections", 3), ("domains", 1)])
def test_connections_and_domains(net, sessions, limit, most):
    names = ["api.example.test", "other.example.test"]
    egress = [rule(n, 7001, protocol="tcp") for n in names]
    code = f"NAMES = {names!r}\n" + CONNECT
    sessions.start("a", {"limits": {limit: most}, "kill_switch": {"grace_period": "0s"}})
    # The skill's pause is longer than the supervisor needs to notice that the limit is reached.
    r = net.inside("PAUSE = 20\n" + code, egress, flags=(*GRANT, "--session", "a"))
    assert r.code == 125 and "through" not in r.text and limit in r.errors, repr(r)
    assert sessions.show("a")[limit] == most + 1
    sessions.start("b")
    net.inside("PAUSE = 0\n" + code, egress, flags=(*GRANT, "--session", "b")).ok()
    got = sessions.show("b")
    assert (got["connections"], got["domains"]) == (8, 2)
