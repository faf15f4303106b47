"""Init enforces the time and memory limits; a skill has the same uid but cannot touch init."""
import json
import os
import pathlib
import select
import signal

import pytest

import harness

# Makes every call that can change another process of the same uid. The result of each is "ok" or
# the errno.
TOUCH = """
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == 'aarch64'
target = int(sys.argv[1]) if len(sys.argv) > 1 else 1
if target == 0:
    target = os.getppid()
seen = {}
def call(name, *args):
    seen[name] = 'ok' if libc.syscall(*args) >= 0 else errno.errorcode[ctypes.get_errno()]
class rlimit(ctypes.Structure):
    _fields_ = [('now', ctypes.c_ulong), ('most', ctypes.c_ulong)]
class attr(ctypes.Structure):
    _fields_ = [('size', ctypes.c_uint), ('policy', ctypes.c_uint), ('flags', ctypes.c_ulong),
                ('nice', ctypes.c_int), ('rest', ctypes.c_uint), ('time', ctypes.c_ulong * 3)]
PRLIMIT, PRIORITY, IOPRIO = (261, 140, 30) if arm else (302, 141, 251)
AFFINITY, SCHEDULER, PARAM, ATTR = (122, 119, 118, 274) if arm else (203, 144, 142, 314)
high = 0xdeadbeef00000000  # the kernel takes the low half
zero = ctypes.byref(ctypes.c_int(0))
for r in range(16):
    few = rlimit(0, 0) if r in (13, 14) else rlimit(6, 6)  # no priority to lower
    call(f'prlimit {r}', PRLIMIT, ctypes.c_ulong(high | target), r, ctypes.byref(few), None)
call('setpriority', PRIORITY, 0, target, 19)  # the tests may be nice themselves
call('setpriority of the user', PRIORITY, 2, 0, 19)
call('setpriority by uid', PRIORITY, 2, os.getuid(), 19)
call('ioprio_set', IOPRIO, 1, target, 3 << 13)
call('ioprio_set of the user', IOPRIO, 3, os.getuid(), 3 << 13)
call('sched_setaffinity', AFFINITY, target, 8, ctypes.byref(ctypes.c_ulong(1)))
call('sched_setscheduler', SCHEDULER, target, 5, zero)
call('sched_setparam', PARAM, target, zero)
call('sched_setattr', ATTR, target, ctypes.byref(attr(56, 5)), 0)
print(json.dumps(seen))
"""


@pytest.mark.parametrize("profile", ["default", "strict", "permissive"])
def test_init_cannot_be_touched(ssb, profile):
    seen = ssb.probe(TOUCH, flags=("--profile", profile))
    assert len(seen) == 25 and set(seen.values()) == {"EPERM"}, seen
    told = {x["data"]["op"] for x in ssb.last_record()
            if x["kind"] == "syscall_blocked" and "data" in x}
    assert {"prlimit64", "setpriority", "ioprio_set", "sched_setaffinity", "sched_setscheduler",
            "sched_setparam", "sched_setattr"} <= told
    # The control: as PID 1 of a new namespace, the same code makes the calls on itself, and all
    # succeed.
    control = ssb.bare_probe(TOUCH)
    assert set(control.values()) == {"ok"}, control


def test_init_without_namespaces(user):
    """Without a user namespace init is an ordinary process of the host, and the skill's parent: the
    skill still cannot change it."""
    skill = user.skill(TOUCH, args=("main.py", "0"))
    r = harness.without_userns(user, "run", "--best-effort", "userns", skill)
    seen = r.ok().json()
    assert len(seen) == 25 and set(seen.values()) == {"EPERM"}, seen
    shell = ["sh", "-c", 'PY="$1"; shift; "$PY" "$@"; exit $?', "sh", harness.PYTHON]
    control = user.bare([*shell, "-c", TOUCH, "0"]).ok().json()
    assert set(control.values()) == {"ok"}, control


def test_its_own_processes_are_the_skills(ssb):
    """The control: the calls that are refused for init work on the skill's own child."""
    code = """
    import json, os, resource, signal
    pid = os.fork()
    if pid == 0:
        signal.pause()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (7, 7))
    os.setpriority(os.PRIO_PROCESS, pid, 19)
    os.setpriority(os.PRIO_PGRP, 0, 19)
    os.sched_setaffinity(pid, [min(os.sched_getaffinity(0))])
    os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))
    print(json.dumps([resource.prlimit(pid, resource.RLIMIT_NOFILE), os.getpriority(0, pid),
                      os.sched_getscheduler(pid)]))
    os.kill(pid, signal.SIGKILL)
    """
    assert ssb.probe(code) == [[7, 7], 19, os.SCHED_BATCH]


# Calls that name no process, or name init by another number. They may change the skill, never init.
AROUND = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == 'aarch64'
PRIORITY, IOPRIO, IOGET, AFFINITY = (140, 30, 31, 122) if arm else (141, 251, 252, 203)
init = os.getppid()
def state(pid):
    return [os.getpriority(os.PRIO_PROCESS, pid), libc.syscall(IOGET, 1, pid) >> 13,
            sorted(os.sched_getaffinity(pid)), os.sched_getscheduler(pid)]
def group(pid):
    try:
        with open(f'/proc/{pid}/autogroup') as f:
            return f.read()
    except OSError:
        return ''  # the kernel has no autogroups
before, grouped = state(init), group(init)
one = ctypes.byref(ctypes.c_ulong(1 << min(os.sched_getaffinity(0))))
libc.setpgid(0, init)
for who in (0, init, os.getpgid(init), -init, -1):
    libc.syscall(PRIORITY, 1, who, 19)
    libc.syscall(IOPRIO, 2, who, 3 << 13)
    libc.syscall(IOPRIO, 0, who, 3 << 13)
for pid in (0, -init, -1, 1 << 31):
    libc.syscall(AFFINITY, pid, 8, one)
try:
    with open('/proc/self/autogroup', 'w') as f:
        f.write('19')
except OSError:
    pass
print(json.dumps([state(init) == before and group(init) == grouped,
                  os.getpgid(init) != os.getpgid(0) and os.getsid(init) != os.getsid(0),
                  state(os.getpid())]))
"""


def test_init_by_other_numbers(ssb):
    untouched, apart, own = ssb.probe(AROUND)
    assert untouched and apart
    assert own[:2] == [19, 3] and len(own[2]) == 1, "the control: the calls do what they say"


def test_init_by_other_numbers_without_namespaces(user):
    r = harness.without_userns(user, "run", "--best-effort", "userns", user.skill(AROUND))
    untouched, apart, own = r.ok().json()
    assert untouched and apart
    assert own[1] == 3 and len(own[2]) == 1, own


# Ways to inspect init or to page it out, not only to change its limits. Different layers refuse
# them, so the errno varies.
LOOK = """
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == 'aarch64'
seen = {}
def call(name, *args):
    seen[name] = 'ok' if libc.syscall(*args) >= 0 else errno.errorcode[ctypes.get_errno()]
pidfd = libc.syscall(434, 1, 0)
page = ctypes.c_void_p(0)
nodes = ctypes.c_ulong(1)
iov = (ctypes.c_ulong * 2)(0x400000, 4096)
call('ptrace', 117 if arm else 101, 0x4206, 1, 0, 0)
call('kcmp', 272 if arm else 312, 1, os.getpid(), 2, 0, 0)
call('move_pages', 239 if arm else 279, 1, 1, ctypes.byref(page), None, ctypes.byref(page), 0)
call('migrate_pages', 238 if arm else 256, 1, 8, ctypes.byref(nodes), ctypes.byref(nodes))
call('process_madvise', 440, pidfd, iov, 1, 21, 0)
call('process_mrelease', 448, pidfd, 0)
call('pidfd_getfd', 438, pidfd, 0, 0)
call('process_vm_readv', 270 if arm else 310, 1, iov, 1, iov, 1, 0)
call('setpgid', 154 if arm else 109, 1, 0)
for name in ('oom_score_adj', 'oom_adj', 'timerslack_ns', 'sched', 'autogroup', 'coredump_filter',
             'clear_refs', 'comm', 'mem', 'loginuid', 'setgroups', 'uid_map', 'gid_map',
             'projid_map', 'attr/current', 'attr/exec', 'attr/fscreate', 'task/1/comm', 'make-it-fail',
             'fail-nth', 'timens_offsets', 'latency'):
    try:
        with open('/proc/1/' + name, 'wb', buffering=0) as f:
            f.write(b'1')
        seen[name] = 'ok'
    except OSError as e:
        seen[name] = errno.errorcode[e.errno]
print(json.dumps(seen))
"""


@pytest.mark.parametrize("profile", ["default", "permissive"])
def test_init_cannot_be_looked_into(ssb, profile):
    seen = ssb.probe(LOOK, flags=("--profile", profile))
    assert len(seen) > 20 and "ok" not in seen.values(), seen
    # Control: as PID 1 of a new namespace, the same code looks at itself, and some of the ways
    # work.
    control = ssb.bare_probe(LOOK)
    assert {"timerslack_ns", "coredump_filter", "comm", "clear_refs"} <= {
        name for name, came in control.items() if came == "ok"}, control


# Lowers init's limits as far as it can, then takes more memory than the run may have.
BLIND = """
import json, resource, time
for r, values in %s:
    for most in values:
        try:
            resource.prlimit(1, r, (most, most))
        except OSError:
            pass
data = [bytearray(b'x') * (1 << 20) for _ in range(200)]
time.sleep(%d)
print('ate all')
"""


# If it may open only six files, init can list /proc but open nothing in it.
@pytest.mark.parametrize("limits", [[(7, [6])], [(r, [6, 1, 0]) for r in range(16)]],
                         ids=["files", "all"])
def test_memory_limit_of_a_skill_that_blinds_init(ssb, limits):
    r = ssb.inside(BLIND % (limits, 20), resources={"memory_mb": 64})
    assert r.code == 137 and b"ate all" not in r.out, repr(r)
    assert "resource_limit_hit" in [e["kind"] for e in ssb.last_trace()["events"]]
    assert b"ate all" in ssb.inside(BLIND % (limits, 1), resources={"memory_mb": 512}).ok().out


def children(pid):
    return [int(n) for n in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def init_of(supervisor):
    init, = [n for n in children(supervisor)
             if f"NSpid:\t{n}\t1\n" in pathlib.Path(f"/proc/{n}/status").read_text()]
    return init


def test_blindness_ends_the_run(user):
    """The user lowers init's limit of open files from outside, so the memory watchdog can no longer
    measure: the run ends with an error that says so. (Root's runs use a cgroup instead.)"""
    skill = user.skill("print('up', flush=True)\ninput()")
    with user.popen([user.binary, "run", skill], stdin=-1, stdout=-1, stderr=-1) as p:
        assert p.stdout.readline() == b"up\n"
        init = init_of(p.pid)
        harness.execute([*user.identity(), "prlimit", f"--pid={init}", "--nofile=6:6"],
                        env={"PATH": harness.PATH}).ok()
        try:
            assert p.wait(30) == 125
        finally:
            p.stdin.close()
        assert b"can no longer be measured" in p.stderr.read()
    trace = user.last_trace()
    assert trace["layers"]["limits"]["detail"].endswith("memory watchdog"), "control"
    assert "can no longer be measured" in json.dumps(trace["events"])


def test_a_stopped_init_dies_with_the_supervisor(user):
    """A stopped init cannot see that its socket was closed. If a user started the run, the kernel
    ends init together with the supervisor. (Not if root started it: see stage_main().)"""
    skill = user.skill("print('up', flush=True)\ninput()")
    with user.popen([user.binary, "run", skill], stdin=-1, stdout=-1, stderr=-1) as p:
        assert p.stdout.readline() == b"up\n"
        init = init_of(p.pid)
        watch = os.pidfd_open(init)
        try:
            os.kill(init, signal.SIGSTOP)
            p.kill()
            assert select.select([watch], [], [], 30)[0], "init outlives its supervisor"
        finally:
            try:
                signal.pidfd_send_signal(watch, signal.SIGCONT)
            except ProcessLookupError:
                pass
            os.close(watch)
