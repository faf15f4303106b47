"""A governed run: a governor outside of the sandbox pauses, resumes, ends and measures it.

progs/govern.c is the governor: it reads commands from the tests and prints the
events. For root, a control group (v1 or v2) pauses the processes; for a user,
init stops them with signals.
"""
import json
import os
import pathlib
import time

import pytest

import harness
from governor import GATE, govern, grows, skill_of  # noqa: F401
from harness import wait_for

COUNTER = """
import os, time
n = 0
while True:
    n += 1
    with open({path!r}, 'w') as f:
        f.write(str(n))
    time.sleep(0.005)
"""


def counting(ssb, **fields):
    shared = ssb.mkdir("counter")
    path = shared / "n"
    return ssb.skill(COUNTER.format(path=str(path)), write=[shared], **fields), path


# ---- pause --------------------------------------------------------------------


def test_pause_stands_and_resume_goes(ssb, govern):
    skill, path = counting(ssb)
    g = govern(ssb, skill)
    wait_for(path.exists)
    wait_for(lambda: grows(path, 0.1))  # control: the skill counts while it is not paused
    for _ in range(2):
        g.say("pause")
        g.hear("stands")
        assert not grows(path)
        g.say("resume")
        g.hear("goes")
        wait_for(lambda: grows(path, 0.05))
    g.say("kill 0 enough")
    assert g.result()["end"] == "session"


def test_pause_twice_and_resume_without(ssb, govern):
    """A second pause, or a resume without a pause, is answered like any other."""
    skill, path = counting(ssb)
    g = govern(ssb, skill)
    wait_for(path.exists)
    g.say("resume")
    g.hear("goes")
    for _ in range(2):
        g.say("pause")
        g.hear("stands")
    assert not grows(path)
    g.say("resume")
    g.hear("goes")
    wait_for(lambda: grows(path, 0.05))
    g.say("kill 0 enough")
    g.result()


def test_pause_before_the_start_holds(ssb, govern):
    skill, path = counting(ssb)
    g = govern(ssb, skill)
    g.say("pause")
    g.hear("stands")
    assert not grows(path)
    g.say("resume")
    g.hear("goes")
    wait_for(lambda: grows(path, 0.05))
    g.say("kill 0 enough")
    g.result()


def test_time_limit_does_not_count_the_pause(ssb, govern):
    """A run with a time limit of 6 s is paused for 7 s: the pause does not count for the limit."""
    skill, path = counting(ssb, resources={"max_runtime_seconds": 6})
    g = govern(ssb, skill)
    wait_for(path.exists)
    g.say("pause")
    g.hear("stands")
    time.sleep(7)
    g.say("resume")
    goes = g.hear("goes")
    r = g.result()
    assert r["end"] == "timeout" and r["exit_status"] == 124
    assert r["at"] - goes["at"] > 1000, "what was left of its time was left to it"
    used = g.all("used")[-1]
    assert 3000 < used["wall_ms"] < 10000, "the pause is no time of the run"


def test_time_limit_control(ssb, govern):
    skill, path = counting(ssb, resources={"max_runtime_seconds": 2})
    start = time.monotonic()
    g = govern(ssb, skill)
    r = g.result()
    assert r["end"] == "timeout" and 1.5 < time.monotonic() - start < 20


def test_output_is_delivered_while_paused(ssb, govern):
    code = "import sys, time\nsys.stdout.write('x' * 30000 + 'DONE\\n')\nsys.stdout.flush()\n" \
           "time.sleep(600)"
    g = govern(ssb, ssb.skill(code))
    g.output("DONE")
    g.say("pause")
    g.hear("stands")
    g.say("kill 0 over")
    assert g.result()["end"] == "session"
    assert g.out.read_text() == "x" * 30000 + "DONE\n"


THREADS = """
import threading, time
n = [0] * 4
def count(i):
    while True:
        n[i] += 1
        with open('SHARED/n%d' % i, 'w') as f:
            f.write(str(n[i]))
        time.sleep(0.003)
for i in range(4):
    threading.Thread(target=count, args=(i,)).start()
"""


def test_threads_stand_as_well(ssb, govern):
    skill, shared = skill_of(ssb, THREADS)
    g = govern(ssb, skill)
    paths = [shared / f"n{i}" for i in range(4)]
    wait_for(lambda: all(p.exists() for p in paths))
    for p in paths:
        wait_for(lambda path=p: grows(path, 0.1))
    g.say("pause")
    g.hear("stands")
    assert not any(grows(p, 0.1) for p in paths)
    g.say("kill 0 over")
    g.result()


BOMB = """
import os, time
end = time.monotonic() + 60
def beat(i):
    n = 0
    while True:
        n += 1
        if n % 20 == 0:
            with open('SHARED/beat%d' % i, 'w') as f:
                f.write(str(n))
        try:
            if os.fork() == 0:
                try:
                    if os.fork() == 0:
                        time.sleep(0.01)
                finally:
                    os._exit(0)
            os.waitpid(-1, 0)
        except OSError:
            time.sleep(0.001)
for i in range(3):
    if os.fork() == 0:
        beat(i)
beat(3)
"""


def states(init):
    """The states of init and all processes beneath it, one letter of /proc/PID/stat for each."""
    letters, left = "", [init]
    while left:
        pid = left.pop()
        try:
            letters += pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            left += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except OSError:
            continue
    return letters


def test_fifty_pauses_of_a_fork_bomb(ssb, govern):
    skill, shared = skill_of(ssb, BOMB, resources={"max_processes": 40})
    g = govern(ssb, skill)
    init = g.hear("placed")["init"]
    beats = [shared / f"beat{i}" for i in range(4)]
    wait_for(lambda: all(b.exists() for b in beats))
    for i in range(50):
        g.say("pause")
        g.hear("stands")
        if i % 10 == 0:
            assert not any(grows(b, 0.1) for b in beats)
        g.say("resume")
        g.hear("goes")
    wait_for(lambda: "T" not in states(init))  # all paused processes run again
    for b in beats:
        wait_for(lambda path=b: grows(path, 0.1))
    g.say("kill 0 over")
    assert g.result()["end"] == "session"


RESTLESS = """
import ctypes, signal, time
# Timers send SIGCONT 20 times per second, so the process resumes after each SIGSTOP. Each signal
# has its own timer: a SIGSTOP removes a pending SIGCONT, and its timer is never armed again.
class Event(ctypes.Structure):
    _fields_ = [('value', ctypes.c_void_p), ('signo', ctypes.c_int), ('notify', ctypes.c_int),
                ('pad', ctypes.c_char * 64)]
signal.signal(signal.SIGCONT, lambda *_: None)  # an ignored signal is not delivered
libc = ctypes.CDLL(None, use_errno=True)
event = Event(None, signal.SIGCONT, 0)
for k in range(1, 400):
    timer = ctypes.c_void_p()
    assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
    spec = (ctypes.c_long * 4)(0, 0, k // 20, k % 20 * 50000000)
    assert libc.timer_settime(timer, 0, spec, None) == 0
print('armed', flush=True)
while True:
    time.sleep(0.001)
"""


def test_a_process_that_resumes_itself(ssb, govern):
    """A paused process sends itself SIGCONT: the freezer of root's control group keeps it paused.
    Without a freezer, the run is ended, with a reason."""
    g = govern(ssb, ssb.skill(RESTLESS))
    g.output("armed")
    g.say("pause")
    if ssb.is_root:
        g.hear("stands")
        time.sleep(0.5)
        g.say("kill 0 over")
    r = g.result()
    assert r["end"] == "session"
    assert ("kept running" in r["reason"]) != ssb.is_root


def test_ctrl_c_ends_a_paused_run(ssb, govern):
    skill, path = counting(ssb)
    g = govern(ssb, skill)
    init = g.hear("placed")["init"]
    wait_for(path.exists)
    g.say("pause")
    g.hear("stands")
    supervisor = int(pathlib.Path(f"/proc/{init}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(supervisor, 2)
    r = g.result()
    assert r["end"] == "canceled" and r["exit_status"] == 130
    assert not os.path.exists(f"/proc/{init}")


def test_death_of_the_supervisor_ends_a_paused_run(ssb, govern):
    skill, path = counting(ssb)
    g = govern(ssb, skill)
    init = g.hear("placed")["init"]
    wait_for(path.exists)
    g.say("pause")
    g.hear("stands")
    supervisor = int(pathlib.Path(f"/proc/{init}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(supervisor, 9)
    wait_for(lambda: not os.path.exists(f"/proc/{init}"))
    assert not grows(path, 0.2)


# ---- kill -----------------------------------------------------------------------


TREE = """
import os, signal, sys, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
def child(name):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                with open('SHARED/' + name, 'a') as f:
                    f.write('x')
                time.sleep(0.005)
        os._exit(0)
child('daemon1')
child('daemon2')
def fork_on():
    while True:
        try:
            if os.fork() > 0:
                os._exit(0)
        except OSError:
            pass
        time.sleep(0.001)
        with open('SHARED/runner', 'a') as f:
            f.write('x')
if os.fork() == 0:
    fork_on()
with open('SHARED/started', 'w') as f:
    f.write('x')
while True:
    try:
        os.wait()
    except OSError:
        time.sleep(0.01)
"""


@pytest.mark.parametrize("paused", [False, True])
def test_kill_ends_every_tree_at_once(ssb, govern, paused):
    skill, shared = skill_of(ssb, TREE, resources={"max_processes": 30})
    g = govern(ssb, skill)
    files = [shared / n for n in ("daemon1", "daemon2", "runner")]
    init = g.hear("placed")["init"]
    wait_for(lambda: all(f.exists() for f in files))
    for f in files:  # control: all processes are running
        wait_for(lambda path=f: grows(path, 0.1))
    if paused:
        g.say("pause")
        g.hear("stands")
    start = time.monotonic()
    g.say("kill 0 budget used up")
    r = g.result()
    assert time.monotonic() - start < 15
    assert (r["end"], r["exit_status"], r["reason"]) == ("session", 125, "budget used up")
    assert not any(grows(f, 0.2) for f in files)
    assert not os.path.exists(f"/proc/{init}")
    ended = g.all("ended")[0]
    assert ended["end"] == "session" and ended["exit_status"] == 125
    t = ssb.last_trace()
    assert [e for e in t["events"] if "budget used up" in json.dumps(e)]
    assert t["exit_code"] == 125 if "exit_code" in t else True
    assert ssb.last_record()[-2]["end"] == "session"


POLITE = """
import os, signal, time
def term(*_):
    os.write(1, b'terminating\\n')
    time.sleep(0.2)
    os.write(1, b'cleaned up\\n')
    os._exit(7)
signal.signal(signal.SIGTERM, term)
print('ready', flush=True)
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize("paused", [False, True])
def test_grace_lets_it_clean_up(ssb, govern, paused):
    g = govern(ssb, ssb.skill(POLITE))
    g.output("ready")
    if paused:
        g.say("pause")
        g.hear("stands")
    start = time.monotonic()
    g.say("kill 25000 too many violations")
    r = g.result()
    assert time.monotonic() - start < 20, "it did not use up its grace"
    assert g.out.read_text().splitlines()[-2:] == ["terminating", "cleaned up"]
    assert (r["end"], r["exit_status"], r["reason"]) == ("session", 125, "too many violations")


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'no\\n'))
print('ready', flush=True)
while True:
    time.sleep(1)
"""


def test_grace_ends(ssb, govern):
    g = govern(ssb, ssb.skill(STUBBORN))
    g.output("ready")
    start = time.monotonic()
    g.say("kill 4000 over")
    g.output("no")
    r = g.result()
    assert 3.7 < time.monotonic() - start < 20
    assert r["end"] == "session"


def test_second_kill_shortens_the_grace(ssb, govern):
    g = govern(ssb, ssb.skill(STUBBORN))
    g.output("ready")
    start = time.monotonic()
    g.say("kill 60000 first")
    g.output("no")
    g.say("kill 30000 second")
    g.say("kill 200 third")
    r = g.result()
    assert time.monotonic() - start < 20
    assert r["reason"] == "first"


def test_kill_before_the_start(ssb, govern):
    skill, path = counting(ssb)
    g = govern(ssb, skill)
    g.say("kill 5000 not even begun")
    r = g.result()
    assert r["end"] == "session" and r["reason"] == "not even begun"


@pytest.mark.parametrize("word", ["close", "die", "garbage", "short"])
def test_governor_gone_ends_the_run(ssb, govern, word):
    skill, path = counting(ssb)
    g = govern(ssb, skill)
    wait_for(path.exists)
    wait_for(lambda: grows(path, 0.1))
    g.say(word)
    r = g.result()
    assert (r["end"], r["exit_status"], r["reason"]) == ("session", 125, "the process that governs the run has died")
    assert not grows(path, 0.1)
    assert [e for e in ssb.last_trace()["events"] if "governs the run has died" in json.dumps(e)]


def test_an_ordinary_end_is_its_own(ssb, govern):
    g = govern(ssb, ssb.skill("import sys\nprint('hi')\nsys.exit(3)"))
    placed = g.hear("placed")
    r = g.result()
    assert (r["end"], r["exit_status"], r["reason"]) == ("exited", 3, "")
    assert placed["init_start"] > 0 and placed["run_id"] == ssb.last_trace()["run_id"]
    words = [m["word"] for m in g.heard]
    assert words[0] == "placed" and words[-2:] == ["ended", "result"]
    assert g.all("ended")[0]["exit_status"] == 3


# ---- without namespaces -----------------------------------------------------------


def without_userns(runner, govern, *args):
    """Starts a governed run in a user namespace whose limit of further user namespaces is zero."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all ' \
             '--inh-caps=-all --bounding-set=-all -- "$0" "$@"'

    class Wrapped:
        def __getattr__(self, name):
            return getattr(runner, name)

        def popen(self, argv, **kw):
            return runner.popen(["unshare", "--map-current-user", "--keep-caps", "sh", "-c",
                                 script, *argv], **kw)
    return govern(Wrapped(), "--best-effort", "userns", *args)


def test_without_namespaces(user, govern):
    skill, shared = skill_of(user, TREE.replace("if os.fork() == 0:\n    fork_on()", ""))
    g = without_userns(user, govern, skill)
    files = [shared / n for n in ("daemon1", "daemon2")]
    wait_for(lambda: all(f.exists() for f in files))
    for f in files:
        wait_for(lambda path=f: grows(path, 0.1))
    g.say("pause")
    g.hear("stands")
    assert not any(grows(f, 0.2) for f in files)
    g.say("resume")
    g.hear("goes")
    for f in files:
        wait_for(lambda path=f: grows(path, 0.1))
    g.say("pause")
    g.hear("stands")
    g.say("kill 0 over")
    r = g.result()
    assert r["end"] == "session" and r["lost"]
    assert not any(grows(f, 0.2) for f in files)


def test_grace_without_namespaces(user, govern):
    g = without_userns(user, govern, user.skill(POLITE))
    g.output("ready")
    g.say("kill 25000 over")
    assert g.result()["end"] == "session"
    assert "cleaned up" in g.out.read_text()


# ---- what was used ------------------------------------------------------------------


BURN = """
import os, resource, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
burn(0.5)
for _ in range(3):                     # waited for
    if os.fork() == 0:
        burn(0.3)
        os._exit(0)
    os.wait()
if os.fork() == 0:                     # waited for by init
    if os.fork() == 0:
        burn(0.4)
        with open('SHARED/daemon', 'w') as f:
            f.write('x')
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists('SHARED/daemon'):
    time.sleep(0.01)
print('burnt', flush=True)
""" + GATE
BURNT = 500 + 3 * 300 + 400


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_cpu_is_metered(ssb, govern, end):
    skill, shared = skill_of(ssb, BURN)
    g = govern(ssb, skill)
    live = g.reaches("used", lambda m: m["cpu_ms"] > BURNT * 0.9)
    assert live["cpu_ms"] < BURNT * 1.25 + 200, "while it runs"
    g.output("burnt")
    if end == "kill":
        g.say("kill 0 over")
    else:
        ssb.write(shared / "go", "")
    g.result()
    series = [m["cpu_ms"] for m in g.all("used")]
    assert series == sorted(series)
    assert BURNT * 0.95 < series[-1] < BURNT * 1.25 + 200, "at the end"
    # The start of Python, and all other work outside of burn(), uses less than a fifth of the time.
    assert g.all("ended")


def test_cpu_of_children_without_a_wait(ssb, govern):
    """The skill ignores SIGCHLD, so the kernel does not add the CPU time of ended children to the
    skill's. The time is metered nevertheless. Each child waits until it has been measured, because
    without a control group the CPU time of a process can be read only while the process exists."""
    code = BURN.split("burn(0.5)")[0] + """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(3):
    if os.fork() == 0:
        burn(0.6)
        while not os.path.exists('SHARED/seen%d' % i):
            time.sleep(0.01)
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        pass
"""
    skill, shared = skill_of(ssb, code)
    g = govern(ssb, skill)
    for i in range(3):
        g.reaches("used", lambda m, n=i: m["cpu_ms"] > 600 * (n + 1) * 0.95)
        ssb.write(shared / f"seen{i}", "")
    g.result()
    assert 1800 * 0.75 < g.all("used")[-1]["cpu_ms"] < 1800 * 1.25 + 200


VIOLATE = """
import os
for _ in range(5):
    try:
        open(os.path.expanduser('~/.ssh/id_ed25519'))
    except OSError:
        pass
for p in ('/etc/shadow', '/root/.bashrc'):
    try:
        open(p)
    except OSError:
        pass
"""


def test_violations_arrive_with_their_class(ssb, govern):
    g = govern(ssb, ssb.skill(VIOLATE + "print('tried', flush=True)\nimport time\ntime.sleep(1)"))
    g.output("tried")
    first = g.hear("violations")
    assert first["total"] > 0
    r = g.result()
    total, kinds, classes = 0, {}, {}
    for m in g.all("violations"):
        total += m["total"]
        for to, of in ((kinds, m["kinds"]), (classes, m["classes"])):
            for k, v in of.items():
                to[k] = to.get(k, 0) + v
    assert total == r["violations"] == sum(kinds.values())
    assert classes["credential_harvesting"] >= 5, "repeats count"
    summary = ssb.last_trace()["violation_summary"]
    assert {c["class"]: c["count"] for c in summary["classifications"]} == classes


def test_no_violation_no_message(ssb, govern):
    g = govern(ssb, ssb.skill("print('good')"))
    g.result()
    assert g.all("violations") == [] and g.all("connection") == []


def test_a_run_without_a_governor_has_no_group_for_one(root):
    """Only a governed run gets control groups for freezer and CPU time, because they make the start
    slower."""
    since = time.time()
    skill = root.skill("print('up', flush=True)\ninput()")
    p = root.popen([root.binary, "run", skill], stdin=-1, stdout=-1)
    try:
        assert p.stdout.readline() == b"up\n"
        groups = harness.cgroups_of(p.pid, since)
        assert not [d for d in groups if d.endswith("-governed")]
        assert not [d for d in groups if "/freezer/" in d or "/cpuacct/" in d]
    finally:
        p.communicate(b"\n", timeout=30)


def test_nothing_is_left(root, govern):
    since = time.time()
    skill, path = counting(root)
    g = govern(root, skill)
    wait_for(path.exists)
    assert harness.cgroups_of(g.process.pid, since), "control"
    g.say("pause")
    g.hear("stands")
    g.say("kill 0 over")
    g.result()
    assert harness.cgroups_of(g.process.pid, since) == []
    wait_for(lambda: not harness.alive_with(str(skill)))
