"""Control groups: which caller gets one for a run, which limits it has, and that the kernel
enforces them.

A machine has the memory and pids controllers in cgroup v2 (every current
distribution) or in v1 (hybrid systems). The tests accept both: v2 is used by root
and by a user to whom a group is delegated, v1 only by root. All other runs are
limited by the watchdog.
"""
import itertools
import json
import os
import pathlib
import time

import pytest

LIMITS = {"memory_mb": 64, "max_processes": 30, "cpu_shares": 512}
NUMBER = itertools.count()


def mount_of_v2():
    for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, point, kind, *_ = line.split()
        if kind == "cgroup2":
            return pathlib.Path(point)
    return None


V2 = mount_of_v2()
OFFERED = (V2 / "cgroup.controllers").read_text().split() if V2 else []
HAS_V2 = {"memory", "pids"} <= set(OFFERED)


def groups_beneath(top):
    return [d for d in top.iterdir() if d.is_dir() and d.name.startswith("skillsandbox-")]


@pytest.fixture
def delegate():
    """delegate(runner, controllers) makes a group, gives it to the caller as a service manager
    does, and returns it. The runner's commands start in a leaf of this group."""
    made = []

    def make(runner, controllers):
        (V2 / "cgroup.subtree_control").write_text(
            " ".join(f"+{c}" for c in controllers if c in OFFERED))
        top = V2 / f"ssb-e2e-{os.getpid()}-{next(NUMBER)}"
        top.mkdir()
        made.append(top)
        (top / "cgroup.subtree_control").write_text(
            " ".join(f"+{c}" for c in controllers if c in OFFERED))
        (top / "leaf").mkdir()
        for path in (top, top / "cgroup.procs", top / "cgroup.subtree_control",
                     top / "cgroup.threads", top / "leaf", top / "leaf/cgroup.procs"):
            runner.own(path)
        runner.group = top / "leaf"
        return top
    yield make
    for top in made:
        for _ in range(300):
            if not (top / "leaf/cgroup.procs").read_text():
                break
            time.sleep(0.1)
        for d in (*groups_beneath(top), top / "leaf", top):
            d.rmdir()


def limits_layer(ssb):
    return ssb.last_trace()["layers"]["limits"]


def knobs_during(ssb, top, resources):
    """The files of the run's group beneath `top`, read while a skill runs."""
    skill = ssb.skill("print('up', flush=True)\ninput()", resources=resources)
    p = ssb.popen([ssb.binary, "run", skill], stdin=-1, stdout=-1)
    try:
        assert p.stdout.readline() == b"up\n"
        groups = groups_beneath(top)
        assert len(groups) == 1, groups
        knobs = {f.name: f.read_text().strip() for f in groups[0].iterdir()
                 if f.is_file() and os.access(f, os.R_OK) and f.stat().st_mode & 0o400}
    finally:
        p.communicate(b"\n", timeout=30)
    assert p.returncode == 0
    assert groups_beneath(top) == []
    return knobs


def test_root_is_held_by_a_group(root):
    root.run("--", "true").ok()
    layer = limits_layer(root)
    assert layer["detail"].startswith(f"cgroup v{2 if HAS_V2 else 1}: memory, pids"), layer


def test_no_delegation_no_group(user):
    """The caller's process is in a group that belongs to root, so the run gets no group."""
    user.run("--", "true").ok()
    assert limits_layer(user)["detail"].startswith("no cgroup: "), limits_layer(user)


def test_delegated_group_gets_every_limit(ssb, delegate):
    top = delegate(ssb, ("memory", "pids", "cpu"))
    if not HAS_V2:  # the controllers are in cgroup v1, where a user gets no group
        ssb.inside("pass", resources=LIMITS).ok()
        assert limits_layer(ssb)["detail"].startswith(
            "cgroup v1: memory, pids" if ssb.is_root else "no cgroup: ")
        assert groups_beneath(top) == []
        return
    knobs = knobs_during(ssb, top, LIMITS)
    assert limits_layer(ssb)["detail"] == "cgroup v2: memory, pids, cpu; rlimits"
    assert knobs["memory.max"] == str(64 << 20)
    assert knobs["memory.oom.group"] == "1"
    assert knobs.get("memory.swap.max", "0") == "0"
    assert knobs["pids.max"] == "31"  # 30 for the skill, 1 for init
    assert knobs["cpu.weight"] == "50"
    assert len(knobs["cgroup.procs"].split()) == 2, "init and the skill"


def test_share_without_the_cpu_controller(ssb, delegate):
    """The cpu controller is not delegated (systemd often does not enable it): cpu_shares is then
    applied as a nice value."""
    delegate(ssb, ("memory", "pids"))
    code = "import json, os\nprint(json.dumps(os.nice(0)))"
    ours = os.nice(0)   # the nice value of this process, which the run inherits
    assert ssb.probe(code, resources={"cpu_shares": 1024}) == ours
    nice = ssb.probe(code, resources={"cpu_shares": 128})
    if ssb.is_root and not HAS_V2:
        assert nice == ours and "cpu" in limits_layer(ssb)["detail"]
    else:
        assert nice > ours
    if HAS_V2:
        assert limits_layer(ssb)["detail"] == "cgroup v2: memory, pids; rlimits, nice value"


def test_memory_limit_ends_every_process(ssb, delegate):
    delegate(ssb, ("memory", "pids"))
    code = """
    import os, subprocess, sys, time
    kid = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
    eater = os.fork()
    if eater == 0:
        data = [bytearray(b'x') * (1 << 20) for _ in range(%d)]
        time.sleep(%d)  # until a watchdog has looked
        os._exit(0)
    print('outlived', os.waitpid(eater, 0)[1])
    kid.kill()
    """
    r = ssb.inside(code % (200, 30), resources={"memory_mb": 64})
    assert r.code == 137 and b"outlived" not in r.out, repr(r)
    assert "--memory" in r.errors
    assert "resource_limit_hit" in [e["kind"] for e in ssb.last_trace()["events"]]
    assert b"outlived" in ssb.inside(code % (10, 0), resources={"memory_mb": 128}).ok().out


def test_process_limit_is_exact(ssb, delegate):
    """max_processes is exact, with a group and without, and the trace has an event: the group counts
    refused starts; without one, init counts the processes."""
    delegate(ssb, ("memory", "pids"))
    code = """
    import json, os, signal
    kids = 0
    try:
        while kids < 60:
            if os.fork() == 0:
                signal.pause()
            kids += 1
    except OSError:
        pass
    print(json.dumps(kids))
    """
    assert ssb.probe(code, resources={"max_processes": 20}) == 19
    hit, = [e["data"] for e in ssb.last_trace()["events"] if e["kind"] == "resource_limit_hit"]
    assert (hit["limit"], hit["value"]) == ("max_processes", 20)
    assert ("refused" in hit) == (HAS_V2 or ssb.is_root)
    assert ssb.probe(code, resources={"max_processes": 100}) == 60
    assert "resource_limit_hit" not in [e["kind"] for e in ssb.last_trace()["events"]]


def test_group_without_controllers_is_not_used(ssb, delegate):
    """A delegated group has no controllers and would enforce nothing: it is not used, and the
    trace does not name it."""
    top = delegate(ssb, ())
    ssb.inside("pass").ok()
    assert groups_beneath(top) == []
    assert not limits_layer(ssb)["detail"].startswith("cgroup v2"), json.dumps(limits_layer(ssb))
