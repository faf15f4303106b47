"""Limits hold for the whole tree of processes, and nothing survives the run."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

import harness
from terminal import Terminal


def gone(marker, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not harness.alive_with(marker):
            return True
        time.sleep(0.05)
    return False


def marker(ssb):
    ssb.count += 1
    return f"ssbmark{os.getpid()}x{ssb.kind}x{time.monotonic_ns()}"


# Without a cgroup only a watchdog enforces the limit, so the skill keeps the memory until the
# watchdog measures.
EAT = """
import time
data = []
for i in range(%d):
    data.append(bytearray(b'x') * (1 << 20))
time.sleep(%d)
print('ate all')
"""


def test_memory_limit(ssb):
    r = ssb.inside(EAT % (400, 30), resources={"memory_mb": 64})
    assert r.code == 137, repr(r)
    assert b"ate all" not in r.out
    assert "--memory" in r.errors
    hit, = [e["message"] for e in ssb.last_trace()["events"] if e["kind"] == "resource_limit_hit"]
    told, _, seen = hit.partition(" (")
    assert told == "memory_mb: ended past 64 MB", hit
    assert seen == "" or int(seen.removesuffix(" MB measured)")) >= 64, "measured, or not told"
    ssb.inside(EAT % (200, 0), resources={"memory_mb": 512}).ok()


def test_memory_limit_covers_all_processes(ssb):
    code = """
    import subprocess, sys, time
    eat = "d = bytearray(b'x') * (40 << 20); import time; time.sleep(100)"
    kids = [subprocess.Popen([sys.executable, '-c', eat]) for _ in range(8)]
    for k in kids:
        if k.wait() != 0:
            sys.exit('a child was ended')
    print('all lived')
    """
    start = time.monotonic()
    r = ssb.inside(code, resources={"memory_mb": 128}, timeout=90)
    assert b"all lived" not in r.out
    assert r.code == 137, repr(r)
    assert time.monotonic() - start < 60


# A parent that has data, and forked workers that read it, as in multiprocessing, web servers and
# data loaders. They share the pages, so the sum of their resident sizes is sixteen times the memory
# in use.
POOL = """
import mmap, os, time
data = mmap.mmap(-1, %(parent)d << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(data), 4096):
    data[at] = 1
ready, tell = os.pipe()
gate, opener = os.pipe()
for _ in range(%(workers)d):
    if os.fork() == 0:
        os.close(opener)
        for at in range(0, %(written)d << 20, 4096):
            data[at] = 2
        os.write(tell, b'x')
        os.read(gate, 1)
        os._exit(0)
for _ in range(%(workers)d):
    os.read(ready, 1)
time.sleep(%(rest)d)  # so that the watchdog measures
os.close(opener)
print('all lived')
"""


def test_memory_shared_by_fork_counts_once(ssb):
    pool = {"parent": 130, "workers": 16, "written": 2, "rest": 2}
    r = ssb.inside(POOL % pool, resources={"memory_mb": 512}, timeout=90).ok()
    assert r.text.strip() == "all lived"
    # The control: the same pool of workers, but each worker writes to the data, so it gets its own
    # copies.
    pool.update(written=60, rest=60)
    r = ssb.inside(POOL % pool, resources={"memory_mb": 512}, timeout=90)
    assert r.code == 137, repr(r)


@pytest.mark.parametrize("where", ["memfd", "tmpfs"])
def test_memory_limit_counts_what_is_no_process(ssb, where):
    opener = {"memfd": "os.memfd_create('x')",
              "tmpfs": "os.open('/tmp/x', os.O_CREAT | os.O_RDWR)"}[where]
    code = f"""
    import os, time
    fd = {opener}
    for i in range(200):
        os.write(fd, b'x' * (1 << 20))
        time.sleep(0.005)
    time.sleep(REST)
    print('kept all')
    """
    r = ssb.inside(code.replace("REST", "30"), resources={"memory_mb": 64, "max_disk_mb": 512})
    assert b"kept all" not in r.out
    assert r.code == 137, repr(r)
    assert b"kept all" in ssb.inside(code.replace("REST", "1"),
                                     resources={"memory_mb": 512, "max_disk_mb": 512}).out


def test_memory_limit_counts_page_tables(ssb):
    """Reads one byte in the range of each page table. Only the shared zero page gets mapped, which
    uses no memory, so it is the page tables that exceed the limit."""
    code = """
    import mmap, time
    step = 2 << 20
    m = mmap.mmap(-1, 40000 * step, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000,
                  prot=mmap.PROT_READ)
    m.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, len(m), step):
        m[at]
    time.sleep(REST)
    print('kept all')
    """
    r = ssb.inside(code.replace("REST", "30"), resources={"memory_mb": 64})
    assert r.code == 137 and b"kept all" not in r.out, repr(r)
    assert b"kept all" in ssb.inside(code.replace("REST", "1"), resources={"memory_mb": 512}).out


def test_reserved_address_space_is_no_memory(ssb):
    code = """
    import mmap
    m = mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=0)
    print('reserved')
    """
    assert ssb.inside(code, resources={"memory_mb": 128}).ok().text.strip() == "reserved"


TIME_CASES = {
    "plain": "import time; time.sleep(60)",
    "busy": "while True: pass",
    "ignores-sigterm": "import signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
                       "signal.signal(2, signal.SIG_IGN)\ntime.sleep(60)",
    "stopped": "import os\nos.kill(os.getpid(), 19)",
    "closed-streams": "import os, time\nfor f in (0, 1, 2): os.close(f)\ntime.sleep(60)",
}


@pytest.mark.parametrize("case", sorted(TIME_CASES))
def test_time_limit(ssb, case):
    start = time.monotonic()
    r = ssb.inside(TIME_CASES[case], resources={"max_runtime_seconds": 1}, timeout=50)
    took = time.monotonic() - start
    assert r.code == 124, repr(r)
    assert 0.9 < took < 40
    assert "--timeout" in r.errors
    ssb.inside("import time; time.sleep(0.2)", resources={"max_runtime_seconds": 30}).ok()


def test_time_limit_covers_daemons(ssb):
    mark = marker(ssb)
    code = f"""
    import os, signal, time
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if os.fork() == 0:
            os.execv('/usr/bin/python3', ['python3', '-c', 'import time; time.sleep(60)', '{mark}'])
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)
    """
    skill = ssb.skill(code, resources={"max_runtime_seconds": 7})
    p = ssb.popen([ssb.binary, "run", skill], stdin=subprocess.DEVNULL,
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while p.poll() is None and not harness.alive_with(mark):
        time.sleep(0.05)
    assert p.poll() is None, "the daemon did not start: no control"
    assert p.wait(40) == 124
    assert gone(mark)


def test_daemon_does_not_outlive_the_skill(ssb):
    mark = marker(ssb)
    code = f"""
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open('/dev/null', os.O_RDWR)
            for f in (0, 1, 2):
                os.dup2(null, f)
            os.execv('/usr/bin/python3', ['python3', '-c', 'import time; time.sleep(60)', '{mark}'])
        os._exit(0)
    time.sleep(0.5)
    print('left')
    """
    start = time.monotonic()
    assert ssb.inside(code).ok().text.strip() == "left"
    assert time.monotonic() - start < 40
    assert gone(mark)


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_end_of_the_supervisor_ends_the_sandbox(ssb, sig):
    mark = marker(ssb)
    code = f"""
    import os, signal, subprocess, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.fork() or os.setsid()
    os.execv('/usr/bin/python3', ['python3', '-c', 'import time; time.sleep(60)', '{mark}'])
    """
    p = ssb.popen([ssb.binary, "run", ssb.skill(code)], stdin=subprocess.DEVNULL,
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    harness.wait_for(lambda: len(harness.alive_with(mark)) >= 2)  # the control
    supervisor = p.pid
    os.kill(supervisor, sig)
    p.wait(30)
    assert gone(mark)


def test_no_cgroup_is_left(ssb):
    grouped = ssb.has_cgroup()
    since = time.time()
    for _ in range(3):
        with ssb.popen([ssb.binary, "run", "--", "sh", "-c", "echo up; read a"],
                       stdin=-1, stdout=-1) as p:
            assert p.stdout.readline() == b"up\n"
            assert bool(harness.cgroups_of(p.pid, since)) == grouped, "control"
            p.stdin.close()
            assert p.wait(30) in (0, 1)
            assert harness.cgroups_of(p.pid, since) == []


FORKS = """
import json, os, signal, time
kids = 0
try:
    while kids < 150:
        if os.fork() == 0:
            signal.pause()
        kids += 1
except OSError as e:
    pass
print(json.dumps(kids))
"""


def test_a_caller_with_less_priority(ssb):
    """A caller with a high nice value cannot give its skill a lower one: the run works and keeps
    the caller's value."""
    code = "import json, os; print(json.dumps(os.nice(0)))"
    low = max(15, os.nice(0))  # the nice value of this process may not be 0
    more = str(low - os.nice(0))
    r = ssb.as_caller(["nice", "-n", more, ssb.binary, "run", ssb.skill(code)]).ok()
    assert r.json() == low
    assert ssb.probe(code) < low or low == os.nice(0)


def test_a_caller_in_realtime(ssb):
    """The caller has realtime scheduling: the skill gets ordinary scheduling and cannot change
    back."""
    code = """
    import json, os, resource as r
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass
    print(json.dumps([os.sched_getscheduler(0), r.getrlimit(r.RLIMIT_RTPRIO),
                      r.getrlimit(13)]))  # RLIMIT_NICE
    """
    argv = ["chrt", "-f", "1", *ssb.identity(), ssb.binary, "run", str(ssb.skill(code))]
    r = harness.execute(argv, env=ssb.environment(None), cwd=ssb.work)
    assert r.ok().json() == [os.SCHED_OTHER, [0, 0], [0, 0]]


# Gives this process every kind of advantage that a child inherits, then becomes the program in its
# arguments.
RAISED = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.setpriority(os.PRIO_PROCESS, 0, -10)
IOPRIO = 30 if os.uname().machine == 'aarch64' else 251
assert libc.syscall(IOPRIO, 1, 0, 1 << 13 | 2) == 0
assert libc.personality(0x0040000) >= 0         # ADDR_NO_RANDOMIZE
assert libc.prctl(29, 1, 0, 0, 0) == 0          # PR_SET_TIMERSLACK
if sys.argv.pop(1) == 'oom':
    with open('/proc/self/oom_score_adj', 'w') as f:
        f.write('-500')
os.execvp(sys.argv[1], sys.argv[1:])
"""

IMPORTANCE = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
def back(score):
    try:
        with open('/proc/self/oom_score_adj', 'w') as f:
            f.write(score)
        return True
    except OSError:
        return False
print(json.dumps({
    'nice': os.getpriority(os.PRIO_PROCESS, 0),
    'io': libc.syscall(31 if os.uname().machine == 'aarch64' else 252, 1, 0) >> 13,
    'personality': libc.personality(0xffffffff),
    'slack': libc.prctl(30, 0, 0, 0, 0),
    'oom': int(open('/proc/self/oom_score_adj').read()),
    'back': back('-500')}))
"""


def has_capability(number):
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"CapEff:\s*(\w+)", status).group(1), 16) >> number & 1 == 1


def test_a_caller_of_importance(ssb):
    """The skill does not inherit the advantages of its caller: nice value, I/O class, personality,
    timer slack, and (only if the tests have CAP_SYS_RESOURCE, as in tests/vm) the OOM score."""
    oom = has_capability(24)
    raised = [harness.PYTHON, "-c", RAISED, "oom" if oom else "", *ssb.identity()]
    skill = ssb.skill(IMPORTANCE, resources={"cpu_shares": 1024})
    r = harness.execute([*raised, ssb.binary, "run", skill], env=ssb.environment(None),
                        cwd=ssb.work)
    seen = r.ok().json()
    # If the caller is privileged, the skill also loses the permission to lower its OOM score again.
    assert seen.pop("back") == (oom and not ssb.is_root)
    assert seen == {"nice": 0, "io": 0, "personality": 0, "slack": 50000, "oom": 0}
    if not ssb.is_root:
        bare = harness.userns_denied(ssb, "run", "--best-effort", "userns", skill)
        r = harness.execute([*raised, *bare], env=ssb.environment(None), cwd=ssb.work)
        assert {k: v for k, v in r.ok().json().items() if k != "back"} == seen
    control = harness.execute([*raised, harness.PYTHON, "-c", IMPORTANCE], cwd=ssb.work)
    assert control.ok().json() == {"nice": -10, "io": 1, "personality": 0x0040000, "slack": 1,
                                   "oom": -500 if oom else 0, "back": oom}


def test_a_caller_of_less_importance(ssb):
    """The caller chose a lower priority, so the skill keeps it."""
    low = max(12, os.nice(0))
    lowered = ["nice", "-n", str(low - os.nice(0)), "ionice", "-c3", "choom", "-n", "300", "--"]
    skill = ssb.skill(IMPORTANCE, resources={"cpu_shares": 1024})
    seen = ssb.as_caller([*lowered, ssb.binary, "run", skill]).ok().json()
    assert (seen["nice"], seen["io"], seen["oom"]) == (low, 3, 300)
    plain = ssb.as_caller([ssb.binary, "run", skill]).ok().json()
    assert (plain["nice"], plain["io"]) == (os.nice(0), 0)


def test_process_limit(ssb):
    kids = ssb.probe(FORKS, resources={"max_processes": 20})
    assert 5 <= kids <= 20
    assert ssb.probe(FORKS, resources={"max_processes": 400, "memory_mb": 4096}) == 150


def test_process_limit_counts_threads(ssb):
    code = """
    import json, threading, time
    n = 0
    try:
        while n < 100:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            n += 1
    except RuntimeError:
        pass
    print(json.dumps(n), flush=True)
    import os
    os._exit(0)
    """
    assert 5 <= ssb.probe(code, resources={"max_processes": 20}) <= 20
    assert ssb.probe(code, resources={"max_processes": 400}) == 100


def test_process_limit_is_per_run(ssb):
    """Two runs at the same time: the processes of one do not count for the limit of the other."""
    skill = ssb.skill(FORKS.replace("print", "time.sleep(1)\nprint"),
                      resources={"max_processes": 60})
    procs = [ssb.popen([ssb.binary, "run", skill], stdin=subprocess.DEVNULL, stdout=-1, stderr=-1)
             for _ in range(2)]
    kids = [json.loads(p.communicate(timeout=30)[0]) for p in procs]
    assert min(kids) >= 40, kids


def test_fork_bomb_ends(ssb):
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    r = ssb.inside(code, resources={"max_processes": 50, "max_runtime_seconds": 2}, timeout=30)
    assert r.code in (124, 137)


def test_open_files_limit(ssb):
    code = """
    import json, os
    n = 0
    try:
        while n < 500:
            os.open('/dev/null', os.O_RDONLY)
            n += 1
    except OSError:
        pass
    print(json.dumps(n))
    """
    assert 40 <= ssb.probe(code, resources={"max_open_files": 64}) <= 64
    assert ssb.probe(code, resources={"max_open_files": 1024}) == 500


@pytest.mark.parametrize("where", ["/tmp", "/var/tmp", "HOME"])
def test_disk_limit(ssb, where):
    code = f"""
    import json, os
    where = os.environ['HOME'] if {where!r} == 'HOME' else {where!r}
    n = 0
    try:
        with open(where + '/big', 'wb', buffering=0) as f:
            while n < 24:
                f.write(b'x' * (1 << 20))
                n += 1
    except OSError:
        pass
    print(json.dumps(n))
    """
    assert 4 <= ssb.probe(code, resources={"max_disk_mb": 8}) <= 8
    assert ssb.probe(code, resources={"max_disk_mb": 64}) == 24


@pytest.mark.parametrize("stream", [1, 2])
def test_output_is_cut_exactly(ssb, stream):
    limit = 5000
    code = f"""
    import os
    data = bytes(range(256)) * 100
    sent = 0
    while sent < len(data):
        sent += os.write({stream}, data[sent:sent + 777])
    os.write({3 - stream}, b'whole')
    """
    r = ssb.inside(code, resources={"max_output_bytes": limit})
    assert r.code == 122, repr(r)
    want = (bytes(range(256)) * 100)[:limit]
    if stream == 1:
        assert r.out == want
        assert r.err.startswith(b"whole")
    else:
        assert r.err.startswith(want)
        assert not r.err[limit:].startswith((bytes(range(256)) * 100)[limit:limit + 8])
        assert r.out == b"whole"
    assert b"--max-output" in r.err


def test_endless_output_does_not_block(ssb):
    code = "import sys\nfor i in range(20000): sys.stdout.write('y' * 1000)\n"
    start = time.monotonic()
    r = ssb.inside(code, resources={"max_output_bytes": 1000, "max_runtime_seconds": 30})
    assert r.code == 122 and len(r.out) == 1000
    assert time.monotonic() - start < 20


def test_output_at_the_limit_is_not_cut(ssb):
    r = ssb.inside("print('x' * 999)", resources={"max_output_bytes": 1000}).ok()
    assert len(r.out) == 1000 and b"cut" not in r.err


def test_limits_hit_are_in_the_trace(ssb):
    ssb.inside("import time; time.sleep(9)", resources={"max_runtime_seconds": 1})
    kinds = [e["kind"] for e in ssb.last_trace()["events"]]
    assert "resource_limit_hit" in kinds
    ssb.inside("print('x')")
    kinds = [e["kind"] for e in ssb.last_trace()["events"]]
    assert "resource_limit_hit" not in kinds


# ---- what is said of a limit ----------------------------------------------

# Each code prints "all" if no limit stops it.
FILL = """
import os
try:
    with open('/tmp/big', 'wb', buffering=0) as f:
        for _ in range(24):
            f.write(b'x' * (1 << 20))
    print('all')
except OSError as e:
    print(e)
"""
FORK = """
import os, signal
kids = []
try:
    for _ in range(60):
        kids.append(os.fork())
        if kids[-1] == 0:
            signal.pause()
    print('all', flush=True)
except OSError as e:
    print(e, flush=True)
"""
THREADS = """
import os, threading, time
try:
    for _ in range(60):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    print('all', flush=True)
except RuntimeError as e:
    print(e, flush=True)
time.sleep(1)  # so that init looks
os._exit(0)
"""
OPEN = """
import os
try:
    for _ in range(%d):
        os.open('/dev/null', os.O_RDONLY)
    print('all')
except OSError as e:
    print(e)
"""
SOCKETS = """
import os, socket, time
held = []
try:
    for _ in range(200):
        held.append(socket.socket())
    print('all')
except OSError as e:
    time.sleep(0.1)
    try:
        open('/etc/passwd')  # no socket is observed, but the next call is
    except OSError:
        print(e)
"""

# name: (code, limit, value, enough, what is said, flag, further options, environment of the code)
HITS = {
    "disk": (FILL, "max_disk_mb", 8, 64, "the private disk (8 MiB) was full", "--max-disk 16M", []),
    "disk, cleaned up": (FILL + "os.unlink('/tmp/big')", "max_disk_mb", 8, 64,
                         "the private disk (8 MiB) was full", "--max-disk 16M", []),
    "disk, unobserved": (FILL, "max_disk_mb", 8, 64, "the private disk (8 MiB) was full",
                         "--max-disk 16M", ["--audit", "off"]),
    "disk, for a while": (FILL + "import time; time.sleep(1.5); os.truncate('/tmp/big', 0)",
                          "max_disk_mb", 8, 64, "the private disk (8 MiB) was full",
                          "--max-disk 16M", ["--audit", "off"]),
    "disk, small files": (
        "import os\ntry:\n    for n in range(9000): os.mknod(f'/tmp/{n}')\n    print('all')\n"
        "except OSError as e: print(e)", "max_disk_mb", 1, 64, "the private disk (1 MiB) was full",
        "--max-disk 2M", []),
    "processes": (FORK, "max_processes", 20, 200,
                  "the process limit (20 processes and threads) was reached",
                  "--max-processes 40", []),
    "threads": (THREADS, "max_processes", 20, 200,
                "the process limit (20 processes and threads) was reached",
                "--max-processes 40", []),
    "files": (OPEN % 90, "max_open_files", 64, 256,
              "a process reached the limit of open files (64 files)", "--max-files 128", []),
    "many files": (OPEN % 1100, "max_open_files", 1024, 2048,
                   "a process reached the limit of open files (1024 files)",
                   "--max-files 2048", []),
    "sockets": (SOCKETS, "max_open_files", 64, 256,
                "a process reached the limit of open files (64 files)", "--max-files 128", []),
    "memory": (EAT % (90, 2) + "print('all')", "memory_mb", 64, 512,
               "the memory limit (64 MiB) ended the skill", "--memory 128M", []),
    "time": ("import time; time.sleep(3); print('all')", "max_runtime_seconds", 1, 30,
             "the time limit (1 s) ended the skill", "--timeout 2s", []),
    "output": ("print('x' * 4999); print('all')", "max_output_bytes", 2000, 8000,
               "stdout was cut at the output limit (2000 bytes); the skill wrote 4.9 KiB",
               "--max-output 8000", []),
    "errors": ("import sys; print('x' * 4999, file=sys.stderr); print('all')", "max_output_bytes",
               2 << 10, 1 << 20, "stderr was cut at the output limit (2 KiB); "
               "the skill wrote 4.9 KiB", "--max-output 8K", []),
}


def limit_events(ssb):
    return [e for e in ssb.last_trace()["events"] if e["kind"] == "resource_limit_hit"]


@pytest.mark.parametrize("case", sorted(HITS))
def test_a_limit_is_named_with_its_value(ssb, case):
    """`run`, `why`, `why --json` and `audit show` say the same sentence: what happened, the limit, a
    flag and a field with a larger value. The record has the facts as data."""
    code, limit, value, enough, what, flag, options = HITS[case]
    r = ssb.inside(code, resources={limit: value}, flags=options, timeout=90)
    hit, = limit_events(ssb)
    assert (hit["data"]["limit"], hit["data"]["value"]) == (limit, value), hit
    assert hit["message"].startswith(limit + ": "), hit
    told, = [line for line in r.errors.splitlines() if "allow more" in line]
    sentence = told.removeprefix("skillsandbox: ")
    happened, _, remedy = sentence.partition("; allow more: ")
    assert happened.partition(", ")[0] == what, told  # a measured amount may follow
    more, = re.findall(rf"^{flag}, or resources\.{limit}: (\d+) in the manifest$", remedy)
    assert int(more) > value
    why = ssb.ssb("why", "last").ok()
    assert sentence in why.text and "nothing was denied" not in why.text, why
    item, = [d for d in ssb.ssb("why", "--json", "last").ok().json() if d["reason"] == limit]
    assert (item["what"], item["remedy"], item["count"]) == (happened, remedy, 1), item
    assert not item["violation"]
    assert sentence in ssb.ssb("audit", "show", "last").ok().text
    # The control: with enough, the same code reaches no limit, and nothing is said.
    fine = ssb.inside(code, resources={limit: enough, **({} if limit == "memory_mb" else
                                                         {"memory_mb": 1024})},
                      flags=options, timeout=90).ok()
    assert fine.text.splitlines()[-1] == "all", fine
    assert not limit_events(ssb) and "allow more" not in fine.errors
    assert "nothing was denied" in ssb.ssb("why", "last").ok().text or options


def test_the_value_that_is_named_is_enough(ssb):
    """The flag as it was printed: the second run does not reach the limit."""
    skill = ssb.skill(FILL, resources={"max_disk_mb": 16})
    told = ssb.run(skill).errors
    flag = re.search(r"allow more: (--max-disk \w+),", told).group(1).split()
    assert ssb.run(*flag, skill).ok().text == "all\n"


def test_a_command_has_no_manifest(ssb):
    """For a bare command only the flag is named."""
    r = ssb.run("--max-disk", "1", "--", "dd", "if=/dev/zero", "of=/tmp/x", "bs=64k", "count=32")
    assert r.code == 1
    told, = [line for line in r.errors.splitlines() if "allow more" in line]
    assert told.endswith("the private disk (1 MiB) was full; allow more: --max-disk 2M"), r
    assert "allow more" not in ssb.run("--", "dd", "if=/dev/zero", "of=/tmp/x", "bs=64k",
                                       "count=32").ok().errors


def test_quiet_says_nothing_of_limits(ssb):
    r = ssb.run("-q", "-t", "1", "--", "sleep", "9")
    assert r.code == 124 and r.errors == ""
    assert "the time limit (1 s)" in ssb.ssb("why", "last").ok().text


@pytest.mark.parametrize("status,end", [(0, 122), (3, 3)])
def test_cut_output_is_no_success(ssb, status, end):
    """A program that ends with 0 and whose output was cut ends with 122; its own failure stays."""
    code = f"import sys; print('x' * 999); sys.exit({status})"
    r = ssb.inside(code, resources={"max_output_bytes": 100}, flags=["--json"])
    said = json.loads(r.errors.splitlines()[-1])
    assert r.code == said["exit_status"] == end, r
    assert (said["end"], said["stdout_cut"], said["stderr_cut"]) == ("exited", True, False)
    assert said["limits_hit"] == 1
    assert ssb.last_trace()["exit_code"] == end
    fine = ssb.inside(code, resources={"max_output_bytes": 1000}, flags=["--json"])
    said = json.loads(fine.errors.splitlines()[-1])
    assert fine.code == status and said["limits_hit"] == 0 and not said["stdout_cut"], fine


def test_the_output_of_a_command_is_not_limited(ssb):
    """Only a skill has a limit that nobody chose."""
    lots = ["sh", "-c", "head -c 3000000 /dev/zero"]
    r = ssb.run("--", *lots).ok()
    assert len(r.out) == 3000000
    assert ssb.last_trace()["plan"]["limits"]["max_output_bytes"] is None
    r = ssb.run("--max-output", "1M", "--", *lots)
    assert r.code == 122 and len(r.out) == 1 << 20
    policy = ssb.write(ssb.base / "policy.yaml", "limits:\n  max_output_bytes: 5000\n")
    r = ssb.run("--policy", policy, "--", *lots)
    assert r.code == 122 and len(r.out) == 5000
    r = ssb.inside("import os, sys\nsys.stdout.write('x' * 3000000)")
    assert r.code == 122 and len(r.out) == 1 << 20


NO_TIME = "max_runtime_seconds  none: the command runs in your terminal"


def test_a_command_in_a_terminal_has_no_time_limit(ssb):
    """Where a person types and reads, only a limit that somebody chose ends a command."""
    def shown(*words):
        t = Terminal(ssb, "run", *words)
        code = t.end()
        return code, t.text

    code, text = shown("--dry-run", "--", "true")
    assert code == 0 and NO_TIME in text, text
    assert shown("--", "sh", "-c", "sleep 1; echo lived")[1].endswith("lived\n")
    assert ssb.last_trace()["plan"]["limits"]["max_runtime_seconds"] is None
    policy = ssb.write(ssb.base / "policy.yaml", "limits:\n  max_runtime_seconds: 1\n")
    for words, seconds in ((["--timeout", "1"], 1), (["--policy", policy], 1), (["--no-tty"], 60)):
        code, text = shown(*words, "--dry-run", "--", "true")
        assert code == 0 and f"max_runtime_seconds  {seconds} s" in text, text
    code, text = shown("--policy", policy, "--", "sleep", "9")
    assert code == 124 and "the time limit (1 s) ended the skill" in text, text
    # A skill keeps its limit, and so does a command without a terminal.
    code, text = shown("--dry-run", ssb.skill("print(1)"))
    assert "max_runtime_seconds  60 s" in text, text
    assert "max_runtime_seconds  60 s" in ssb.run("--dry-run", "--", "true").ok().text


def test_cpu_shares_weigh(ssb):
    """Two busy runs on one processor end at the same time: the run with more cpu_shares gets more
    of it, by cgroup weight or, without a cgroup, by nice value."""
    code = """
    import time
    print('up', flush=True)
    end = float(input())
    before = time.process_time()
    while time.monotonic() < end:
        pass
    print(time.process_time() - before)
    """
    skills = [ssb.skill(code, resources={"cpu_shares": n}) for n in (4096, 16)]

    def times():
        procs = [ssb.popen(["taskset", "-c", "0", ssb.binary, "run", s], stdin=-1, stdout=-1,
                           stderr=-1) for s in skills]
        for p in procs:
            assert p.stdout.readline() == b"up\n", p.stderr.read()
        end = f"{time.monotonic() + 3}\n".encode()
        for p in procs:
            p.stdin.write(end)
            p.stdin.flush()
        return [float(p.communicate(timeout=60)[0]) for p in procs]

    seen = []
    while len(seen) < 4 and not any(heavy > 2 * light for heavy, light in seen):
        seen.append(times())  # one of the two may have started late: try again
    assert seen[-1][0] > 2 * seen[-1][1], seen
