"""Runs of a session whose store is PostgreSQL: other machines are heard, and a
server that is gone ends the runs. The other machine is this one by another name."""
import time

import pytest

import harness
import postgres
from session_world import Sessions, until
from test_session_runs import TICK, all_dead, grows, ticks


@pytest.fixture(scope="module")
def server(base, user_entry):
    with postgres.Server(base, user_entry.pw_uid, user_entry.pw_gid) as s:
        yield s


@pytest.fixture
def fleet(ssb, server):
    url = server.database(f"fleet_{time.monotonic_ns()}")
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", f'store: "{url}"\n', 0o600)
    world = Sessions(ssb)
    yield world
    world.done()


def elsewhere(world, *words):
    """The driver, on a machine of another name."""
    r = world.runner
    return harness.execute(["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "x",
                            *r.identity(), world.driver, *words], env=r.environment(),
                           cwd=r.work).ok().json()


def test_a_kill_from_elsewhere(fleet):
    fleet.start("a")
    run, sleeper = fleet.sleeping("a")
    time.sleep(1.5)
    assert sleeper.pids(), "the control"
    begun = time.monotonic()
    report = elsewhere(fleet, "kill", "a")
    assert (report["elsewhere"], report["runs"]) == (1, 0)
    until(lambda: all_dead(sleeper), 5)
    assert time.monotonic() - begun < 2
    assert run.end().code == 125
    assert fleet.runner.run("--session", "a", "--", "/bin/true").code == 125
    assert fleet.runs("a") == []


def test_a_pause_from_elsewhere(fleet):
    fleet.start("a")
    out = fleet.runner.base / "ticks"
    with open(out, "wb") as f:
        process = fleet.runner.popen(
            [fleet.runner.binary, "run", "--session", "a", "--timeout", "100", "--", "/bin/sh",
             "-c", TICK], stdin=-3, stdout=f, stderr=-1)
    fleet.running.append(type("R", (), {"process": process})())
    until(lambda: ticks(out) > 5)
    elsewhere(fleet, "pause", "a")
    until(lambda: not grows(out), 5)
    elsewhere(fleet, "resume", "a")
    until(lambda: grows(out), 5)
    assert fleet.act("kill", "a")["runs"] == 1
    assert process.wait(30) == 125


def test_a_server_that_is_gone(fleet, server):
    fleet.start("a")
    run, sleeper = fleet.sleeping("a")
    begun = time.monotonic()  # its connections end first, then it takes its time
    server.stop()
    try:
        r = fleet.runner.run("--session", "a", "--", "/bin/echo", "hi")
        assert r.code == 125 and r.text == "", repr(r)
        assert sleeper.pids(), "the control: not at once"
        until(lambda: all_dead(sleeper), 40)
        assert time.monotonic() - begun > 9
        assert "store" in run.end(60).errors
    finally:
        server.start()
    # When it is back, so is the session; what was lost is closed.
    fleet.runner.run("--session", "a", "--", "/bin/sleep", "0.3").ok()
    until(lambda: fleet.runs("a") == [], 70)
