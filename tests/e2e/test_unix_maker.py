"""The process that makes unix sockets for a skill with a write grant (the maker): its calls end
like the kernel's own, and it has only the rights that it needs, at a limited cost."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from governor import govern  # noqa: F401
from harness import ATTEMPT, wait_for

AS_KERNEL = ATTEMPT + """
import errno, signal
T = os.environ['T']
def pair(name, room=0):
    s = socket.socket(socket.AF_UNIX); s.bind(T + '/' + name); s.listen(room)
    k = socket.socket(socket.AF_UNIX); k.connect(T + '/' + name)
    return s, k
def code(call, *args):
    try:
        call(*args)
        return 'worked'
    except OSError as e:
        return errno.errorcode[e.errno]
def again():
    s, k = pair('again', 2)
    n = socket.socket(socket.AF_UNIX); n.bind(T + '/named'); n.connect_ex(T + '/nothing')
    return [code(k.connect, T + '/again'), code(s.bind, T + '/other'), code(n.bind, T + '/third'),
            s.accept()[0].send(b'x'), k.recv(1).decode()]
def client_with_a_name():
    s = socket.socket(socket.AF_UNIX); s.bind(T + '/server'); s.listen(1)
    k = socket.socket(socket.AF_UNIX); k.bind(T + '/client'); k.connect(T + '/server')
    return s.accept()[0].send(b'x'), k.recv(1).decode()
class Stop(Exception):
    pass
def interrupted():
    def stop(*_):
        raise Stop()
    keep = pair('full')
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        socket.socket(socket.AF_UNIX).connect(T + '/full')
    except Stop:
        return 'stopped'
def asleep(pid):
    while open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0] != 'S':
        pass
def restarted():
    s, k = pair('restart')
    took = []
    signal.signal(signal.SIGUSR1, lambda *_: took.append(1))
    signal.siginterrupt(signal.SIGUSR1, False)
    child = os.fork()
    if child == 0:
        asleep(os.getppid())
        os.kill(os.getppid(), signal.SIGUSR1)
        s.accept()
        os._exit(s.accept()[0].recv(1) != b'w')
    w = socket.socket(socket.AF_UNIX)
    w.connect(T + '/restart'); w.sendall(b'w')
    return os.waitpid(child, 0)[1], took
def in_order():
    s, first = pair('order')
    children = []
    for i in range(4):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            k = socket.socket(socket.AF_UNIX)
            os.write(w, b'x')
            k.connect(T + '/order'); k.sendall(b'%d' % i); k.recv(1)
            os._exit(0)
        os.read(r, 1)
        asleep(pid)
        children.append(pid)
    s.accept()
    keep = [s.accept()[0] for _ in children]
    came = [c.recv(1).decode() for c in keep]
    del keep
    for pid in children:
        os.waitpid(pid, 0)
    return came
got = {f.__name__: f() for f in (again, client_with_a_name, interrupted, restarted, in_order)}
print(json.dumps(got))
"""


def test_calls_end_as_the_kernels_do(ssb):
    work, out = ssb.mkdir("work"), ssb.mkdir("out")
    want = {"again": ["EISCONN", "EINVAL", "EINVAL", 1, "x"], "client_with_a_name": [1, "x"],
            "interrupted": "stopped", "restarted": [0, [1]], "in_order": ["0", "1", "2", "3"]}
    assert ssb.bare_probe(AS_KERNEL, env={"T": str(out)}) == want, "the control"
    got = ssb.probe(AS_KERNEL, env={"T": "/tmp"}, flags=["--env", "T", "--timeout", "40"],
                    write=[work])
    assert got == want


WAITERS = """
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind('/tmp/full'); s.listen(0)
k = socket.socket(socket.AF_UNIX); k.connect('/tmp/full')
children = []
for i in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        try:
            socket.socket(socket.AF_UNIX).connect('/tmp/full')
        except BlockingIOError:
            os.write(1, b'full\\n')
        os._exit(0)
    children.append(pid)
print('ready', flush=True)
for pid in children:
    os.waitpid(pid, 0)
"""


def maker_of(supervisor):
    """The child of the supervisor that is in the skill's network namespace, but not in its pid
    namespace."""
    def space(pid, kind):
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    for path in pathlib.Path(f"/proc/{supervisor}/task").glob("*/children"):
        for pid in path.read_text().split():
            try:
                if (space(pid, "pid") == space(supervisor, "pid")
                        and space(pid, "net") != space(supervisor, "net")):
                    return int(pid)
            except OSError:
                pass  # the process has ended
    return None


def field(pid, name):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(line.split(":")[1].strip() for line in text.splitlines()
                if line.startswith(name + ":"))


@pytest.fixture
def waiting(ssb):
    """A run with 30 connect() calls that wait. Yields the process of its supervisor, and the pid of
    its maker."""
    skill = ssb.skill(WAITERS, args=["main.py", "30"], write=[ssb.mkdir("work")])
    run = ssb.popen([ssb.binary, "run", "--timeout", "100", skill],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert run.stdout.readline() == b"ready\n"
        maker = maker_of(run.pid)
        assert maker is not None
        yield run, maker
    finally:
        run.kill()
        run.communicate(timeout=60)


def test_it_waits_without_haste(waiting):
    """The maker looks at waiting calls less and less often. With constant short pauses it would
    look 500 times a second."""
    _, maker = waiting

    def seen():
        return time.monotonic(), int(field(maker, "voluntary_ctxt_switches"))
    time.sleep(1)  # the maker's pauses become longer meanwhile
    began, before = seen()
    time.sleep(2)
    ended, after = seen()
    assert after - before < 60 * (ended - began)


def test_what_confines_it(waiting):
    run, maker = waiting
    assert field(maker, "Seccomp") == "2"
    assert field(maker, "NoNewPrivs") == "1"
    assert int(field(maker, "CapEff"), 16) == int(field(maker, "CapPrm"), 16) == 0
    inner = os.readlink(f"/proc/{maker}/ns/net")
    skills = [p for p in map(int, filter(str.isdigit, os.listdir("/proc"))) if p != maker
              and in_net(p, inner) and field(p, "Seccomp") == "2"
              and os.readlink(f"/proc/{p}/ns/pid") != os.readlink(f"/proc/{maker}/ns/pid")
              and field(p, "NSpid").split()[-1] != "1"]
    assert len(skills) == 31
    assert cgroups(maker) == cgroups(skills[0])


def in_net(pid, name):
    try:
        return os.readlink(f"/proc/{pid}/ns/net") == name
    except OSError:
        return False


def cgroups(pid):
    return pathlib.Path(f"/proc/{pid}/cgroup").read_text()


def test_its_end_is_the_runs_end(ssb, waiting):
    """The maker is killed: the run ends with an error, because no process would answer the waiting
    calls."""
    run, maker = waiting
    os.kill(maker, signal.SIGKILL)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 125, errors
    assert b"unix sockets has ended" in errors
    assert "unix sockets has ended" in json.dumps(ssb.last_trace())


def test_a_waiting_process_can_be_paused(ssb, govern):
    """A call that waits for the maker does not prevent a pause. After the resume the same calls
    wait again."""
    work = ssb.mkdir("work")
    code = WAITERS.replace("print('ready', flush=True)", f"open({str(work / 'ready')!r}, 'w')")
    go = f"while not os.path.exists({str(work / 'go')!r}):\n    time.sleep(0.01)\n"
    code = code.replace("for pid in children:", go + "for _ in range(5): s.accept()\nfor pid in "
                        "children:").replace("os.waitpid(pid, 0)", "assert not os.waitpid(pid, 0)[1]")
    g = govern(ssb, ssb.skill(code, args=["main.py", "4"], write=[work]))
    wait_for((work / "ready").exists)
    for _ in range(2):
        g.say("pause")
        g.hear("stands")
        g.say("resume")
        g.hear("goes")
    ssb.write(work / "go", "")
    assert g.result()["end"] == "exited"


@pytest.mark.parametrize("n, refused", [(32, 0), (33, 1)])
def test_waiting_processes_are_bounded(ssb, n, refused):
    """At most 32 calls wait for one listener: the next one fails at once with EAGAIN."""
    skill = ssb.skill(WAITERS, args=["main.py", str(n)], write=[ssb.mkdir("work")])
    run = ssb.popen([ssb.binary, "run", "--timeout", "100", skill],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        seen = {run.stdout.readline() for _ in range(1 + refused)}
        assert seen == {b"ready\n"} | ({b"full\n"} if refused else set())
        maker = maker_of(run.pid)
        wait_for(lambda: len(os.listdir(f"/proc/{maker}/fd")) == 2 + min(n, 32))
    finally:
        run.kill()
        rest = run.communicate(timeout=60)[0]
    assert b"full" not in rest


CROWD = """
import errno, os, socket, sys, threading
n = int(sys.argv[1])
socket.socket(socket.AF_UNIX).close()    # starts the maker
print('ready', flush=True)
sys.stdin.readline()
def make():
    try:
        socket.socket(socket.AF_UNIX).close()
        print('made\\n', end='', flush=True)
    except OSError as e:
        print(errno.errorcode[e.errno] + '\\n', end='', flush=True)
threading.stack_size(65536)
threads = [threading.Thread(target=make) for _ in range(n)]
for t in threads:
    t.start()
print('started\\n', end='', flush=True)
for t in threads:
    t.join()
"""


@pytest.mark.parametrize("n, full", [(150, False), (700, True)])
def test_a_crowd_at_once(ssb, n, full):
    """The maker is stopped while many threads make calls, which wait. Calls for which there is no
    room fail as they would without the sandbox, and are not recorded as denials."""
    skill = ssb.skill(CROWD, args=["main.py", str(n)], write=[ssb.mkdir("work")],
                      resources={"max_processes": 1000, "memory_mb": 2048})
    run = ssb.popen([ssb.binary, "run", "--timeout", "100", skill], bufsize=0, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert run.stdout.readline() == b"ready\n"
        maker = maker_of(run.pid)
        os.kill(maker, signal.SIGSTOP)
        run.stdin.write(b"go\n")
        run.stdin.flush()
        lines = []
        while b"started" not in lines or (full and b"ENOBUFS" not in lines):
            lines.append(run.stdout.readline().strip())
            assert lines[-1] != b"", lines
        os.kill(maker, signal.SIGCONT)
        out, errors = run.communicate(timeout=60)
    finally:
        run.kill()
    lines += out.split()
    assert run.returncode == 0, errors
    assert set(lines) == {b"started", b"made"} | ({b"ENOBUFS"} if full else set())
    assert len(lines) == n + 1
    assert not [e for e in ssb.last_trace()["events"] if e["kind"] == "syscall.blocked"]


BINDS = """
import os, signal, socket, sys
name = '/tmp/name'
s = socket.socket(socket.AF_UNIX)
print('ready', flush=True)
sys.stdin.readline()
child = os.fork()
if child == 0:
    s.bind(name)
    os._exit(0)
sys.stdin.readline()
print(os.path.exists(name), flush=True)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print('killed', flush=True)
sys.stdin.readline()
s.bind(name)
print('bound', flush=True)
"""


def test_a_name_that_was_not_bound_is_free_again(ssb):
    """The process of the skill that calls bind() is killed after the maker has bound the name, and
    before the process has the socket: the name becomes free again."""
    log = ssb.mkdir("log") / "strace"
    skill = ssb.skill(BINDS, write=[ssb.mkdir("work")])
    run = ssb.popen([ssb.binary, "run", "--timeout", "100", skill], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    tracer = None

    def say():
        run.stdin.write(b"go\n")
        run.stdin.flush()
    try:
        assert run.stdout.readline() == b"ready\n"
        maker = maker_of(run.pid)
        # strace stops the maker (SIGSTOP) after its fchmod(): the name exists, but the skill does
        # not have the socket yet.
        tracer = subprocess.Popen(["strace", "-o", log, "-e", "trace=fchmod", "-e",
                                   "inject=fchmod:signal=SIGSTOP:when=1", "-p", str(maker)],
                                  stderr=subprocess.PIPE)
        assert b"attached" in tracer.stderr.readline()
        say()
        wait_for(lambda: "stopped by SIGSTOP" in log.read_text())
        say()
        assert (run.stdout.readline(), run.stdout.readline()) == (b"True\n", b"killed\n")
        os.kill(maker, signal.SIGCONT)
        say()
        assert run.stdout.readline() == b"bound\n"
    finally:
        run.kill()
        run.communicate(timeout=60)
        if tracer is not None:
            tracer.communicate(timeout=60)
