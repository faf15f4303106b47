"""Runs of a session whose store is PostgreSQL: commands on other machines reach them, and they end
if the server is lost. The "other machine" is this one with another host name, in a new
namespace."""
import hashlib
import os
import signal
import socket
import subprocess
import time

import pytest

import harness
from session_world import Sessions, until
from test_session_runs import all_dead, dead, grows, ticking, ticks


@pytest.fixture
def fleet(ssb, server):
    world = Sessions(ssb, server)
    yield world
    world.done()


def elsewhere(world, *words):
    """Runs the driver on a machine with another host name."""
    r = world.runner
    return harness.execute(["unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "x",
                            *r.identity(), world.driver, *words], env=r.environment(),
                           cwd=r.work).ok().json()


# Replaces /etc/machine-id by an overlay over /etc. A mount over the file itself would fail if the
# machine that runs the tests has no such file.
NAMESAKE = """
mkdir -p "$0/etc"; rm -f "$0/etc/machine-id"
case $1 in
none) mknod "$0/etc/machine-id" c 0 0 ;;  # a whiteout: no such file
*) echo 0123456789abcdef0123456789abcde$1 >"$0/etc/machine-id" ;;
esac
chmod 755 "$0/etc"; mount -t overlay -o "lowerdir=$0/etc:/etc" overlay /etc
echo 01234567-89ab-cdef-0123-456789abcde$2 >"$0/boot"
mount --bind "$0/boot" /proc/sys/kernel/random/boot_id
shift 2; exec "$@"
"""


def namesake(world, machine, boot, *words):
    """Runs a command on another machine with the same host name. `machine` is a digit of its
    machine-id, or "none"; `boot` is a digit of its boot id."""
    r = world.runner
    return harness.execute(["unshare", "--mount", "sh", "-ec", NAMESAKE, r.mkdir("namesake"),
                            machine, boot, *r.identity(), *words], env=r.environment(), cwd=r.work)


def test_a_kill_from_elsewhere(fleet):
    fleet.start("a")
    run, sleeper = fleet.sleeping("a")
    time.sleep(1.5)
    assert sleeper.pids(), "the control"
    begun = time.monotonic()
    report = elsewhere(fleet, "kill", "a")
    assert report["runs"] == 0 and report["elsewhere"] <= 1, "0: it was quicker than the count"
    until(lambda: all_dead(sleeper))
    assert time.monotonic() - begun < 8, "a store that is lost ends it after 10 s"
    assert run.end().code == 125
    assert fleet.runner.run("--session", "a", "--", "/bin/true").code == 125
    until(lambda: fleet.runs("a") == [])


def test_a_pause_from_elsewhere(fleet):
    fleet.start("a")
    out = fleet.runner.base / "ticks"
    process = ticking(fleet, "a", out)
    until(lambda: ticks(out) > 5)
    elsewhere(fleet, "pause", "a")
    until(lambda: not grows(out))
    elsewhere(fleet, "resume", "a")
    until(lambda: grows(out))
    assert fleet.act("kill", "a")["left"] == 0
    assert process.wait(30) == 125


def test_a_server_that_is_gone(fleet, server):
    fleet.start("a")
    run, sleeper = fleet.sleeping("a")
    # The time is measured from before stop(), because the connections end when stop() begins.
    begun = time.monotonic()
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
    # When the server is back, the session can be used again, and the lost run is closed.
    fleet.runner.run("--session", "a", "--", "/bin/sleep", "0.3").ok()
    until(lambda: fleet.runs("a") == [], 70)


def test_machines_of_one_name(fleet):
    """A run on another machine with the same host name is not treated as lost."""
    fleet.start("a")
    run, sleeper = fleet.sleeping("a")
    assert namesake(fleet, 1, 1, fleet.driver, "lost", "a").ok().json() == {"closed": 0}
    assert len(fleet.runs("a")) == 1 and sleeper.pids()
    report = namesake(fleet, 1, 1, fleet.driver, "pause", "a").ok().json()
    assert (report["elsewhere"], report["runs"]) == (1, 0)
    assert namesake(fleet, 1, 1, fleet.driver, "resume", "a").ok().json()["elsewhere"] == 1
    time.sleep(1)
    assert len(fleet.runs("a")) == 1 and sleeper.pids()
    assert fleet.act("kill", "a")["left"] == 0
    assert run.end().code == 125 and all_dead(sleeper)


def test_another_pid_namespace_is_another_place(fleet):
    """A command in another pid namespace changes no run of this one, because the pids in the store
    mean other processes there."""
    fleet.start("a")
    run, sleeper = fleet.sleeping("a")
    r = fleet.runner
    report = harness.execute(["unshare", "--pid", "--fork", "--mount-proc", *r.identity(),
                              fleet.driver, "pause", "a"], env=r.environment(),
                             cwd=r.work).ok().json()
    assert (report["elsewhere"], report["runs"]) == (1, 0)
    assert sleeper.pids() and len(fleet.runs("a")) == 1
    fleet.act("kill", "a")
    assert run.end().code == 125


def test_a_restarted_machine(fleet):
    """The control: a run that was running when this machine was restarted is lost, and is
    closed."""
    fleet.start("a")
    run, _ = fleet.sleeping("a")
    (_, keeper, _), = fleet.runs("a")
    os.kill(keeper, signal.SIGKILL)
    run.end()
    fleet.sql("UPDATE runs SET boot = 'before'")
    assert len(fleet.runs("a")) == 1
    fleet.runner.run("--session", "a", "--", "/bin/sleep", "0.3").ok()
    until(lambda: fleet.runs("a") == [])


@pytest.mark.parametrize("machine, closed", [("none", 0), ("1", 1)])
def test_a_restarted_machine_without_an_id(fleet, machine, closed):
    """A machine without a machine-id is known only by its boot id. A run from before a restart
    could be running on another machine of the same name, so it stays listed. The control has a
    machine-id."""
    def mark(text):
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    boot = "01234567-89ab-cdef-0123-456789abcde1"
    known_by = boot if machine == "none" else "0123456789abcdef0123456789abcde1"
    fleet.start("a")
    run, _ = fleet.sleeping("a")
    (_, keeper, _), = fleet.runs("a")
    os.kill(keeper, signal.SIGKILL)
    run.end()
    fleet.sql(f"UPDATE runs SET host = '{socket.gethostname()}#{mark(known_by)}', "
              f"boot = '{mark(boot)}-1'")
    assert namesake(fleet, machine, 2, fleet.driver, "lost", "a").ok().json() == {"closed": closed}
    assert len(fleet.runs("a")) == 1 - closed
    report = namesake(fleet, machine, 2, fleet.driver, "kill", "a").ok().json()
    assert (report["elsewhere"], report["left"]) == (1 - closed, 0)


def test_grace_from_elsewhere(fleet):
    """A kill on another machine gives the run its grace period, too."""
    fleet.start("a")
    run, sleeper = fleet.sleeping("a", "trap '' TERM")
    begun = time.monotonic()
    elsewhere(fleet, "kill", "a", "3000")
    until(lambda: all_dead(sleeper), 30)
    assert time.monotonic() - begun > 2.5
    assert run.end().code == 125


def test_news_while_others_are_acted_on(fleet):
    """One keeper pauses its session and waits for another keeper, which is stopped. Then the parent
    session is killed on another machine: the first keeper's run ends quickly."""
    fleet.start("top")
    fleet.start("a", {"limits": {"wall_seconds": {"max": 10, "on_exceed": "pause"}}}, parent="top")
    runs = [fleet.sleeping("a") for _ in range(2)]
    keepers = {keeper: init for init, keeper, _ in fleet.runs("a")}
    stuck = fleet.runs("a")[0][1]
    fleet.stop(stuck)
    until(lambda: fleet.show("a")["state"] == "paused", 30)
    (goes,) = set(keepers) - {stuck}
    time.sleep(0.5)
    elsewhere(fleet, "kill", "top")
    begun = time.monotonic()
    until(lambda: dead(keepers[goes]))
    assert time.monotonic() - begun < 3.5, "its keeper did not hear"
    for pid in fleet.stopped:
        signal.pidfd_send_signal(pid, signal.SIGCONT)
    for run, sleeper in runs:
        assert run.end().code == 125 and all_dead(sleeper)


def test_a_kill_while_the_server_hangs(user, server):
    """The server accepts connections and does not answer: neither the keepers nor a kill wait for
    it."""
    fleet = Sessions(user, server)
    fleet.start("a")
    run, sleeper = fleet.sleeping("a")
    with server.standing_still():
        killing = fleet.runner.popen([fleet.runner.binary, "session", "kill", "a"], stdin=-3,
                                     stdout=-1, stderr=-1)
        begun = time.monotonic()
        until(lambda: all_dead(sleeper))
        assert time.monotonic() - begun < 9, "the store is waited for, for 10 s"
        err = killing.communicate(timeout=60)[1]
        assert killing.returncode == 125 and b"NOT RECORDED" in err, err
    assert run.end(60).code == 125
    assert fleet.act("kill", "a")["left"] == 0
    fleet.done()


def test_only_the_clerk_talks_to_the_store():
    """The keeper's event loop never waits for the store: it calls no function of the store."""
    objects = list(harness.BUILD.rglob("*session_keeper_loop.c.o")) + \
        list(harness.BUILD.rglob("*session_keeper_clients.c.o"))
    assert len(objects) >= 2
    for path in objects:
        names = subprocess.run(["nm", "-u", path], check=True, capture_output=True, text=True,
                               timeout=30).stdout.split()
        assert "live_send" in names, "the control"
        assert [n for n in names if n.startswith(("session_", "sessions_", "db_"))] == []
