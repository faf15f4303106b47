"""Resources that the kernel counts per user or per machine: a skill cannot use up the share of
other processes, except for the amounts in docs/THREAT-MODEL.md. Each control takes more than
these amounts outside the sandbox."""
import json
import pathlib

import pytest

import harness

START = """
import ctypes, errno, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == 'aarch64'
def take(make, most):
    made = 0
    while made < most and make() >= 0:
        made += 1
    why = errno.errorcode[ctypes.get_errno()] if made < most else None
    print(json.dumps([made, why]), flush=True)
    sys.stdin.read()
"""

AIO = START + """
def setup():
    context = ctypes.c_ulong(0)
    return libc.syscall(0 if arm else 206, 1, ctypes.byref(context))
take(setup, 4)
"""

INSTANCES = START + "take(libc.inotify_init, 60)"

WATCHES = START + """
fd = libc.inotify_init()
os.makedirs('/tmp/watched', exist_ok=True)
def watch(n=[0]):
    n[0] += 1
    path = f'/tmp/watched/{n[0]}'
    os.mkdir(path)
    return libc.inotify_add_watch(fd, path.encode(), 0x100)
take(watch, 4300)
"""

QUEUES = START + """
rt = ctypes.CDLL('librt.so.1', use_errno=True)
def queue(n=[0]):
    n[0] += 1
    name = f'/ssb-{os.getpid()}-{n[0]}'.encode()
    got = rt.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None)
    rt.mq_unlink(name)
    return got
take(queue, 9)
"""

TIMERS = START + """
def timer():
    made = ctypes.c_int(0)
    return libc.syscall(107 if arm else 222, 1, None, ctypes.byref(made))
take(timer, 1100)
"""


FILTERS = START + """
class program(ctypes.Structure):
    _fields_ = [('steps', ctypes.c_ushort), ('code', ctypes.c_void_p)]
accept = (ctypes.c_ulong * 1)(0xffff << 32 | 6)
def attach(option=OPTION):
    with socket.socketpair()[0] as s:
        text = ctypes.byref(program(1, ctypes.addressof(accept)))
        return libc.setsockopt(s.fileno(), 1, option, text, ctypes.sizeof(program))
take(attach, 4)
"""

# MAP_NORESERVE: the mapping succeeds even on a machine that has no huge pages set aside.
HUGE = START + """
libc.mmap.restype = ctypes.c_long
def mapping():
    got = libc.mmap(None, ctypes.c_ulong(1 << 21), 3, 0x44022, -1, ctypes.c_long(0))
    return -1 if got == -1 else 0
take(WAY, 4)
"""

IN_FLIGHT = START + """
import array
kept = []
def send(n=[0]):
    if n[0] % 32 == 0:
        kept.append(socket.socketpair())
    n[0] += 1
    try:
        return kept[-1][0].sendmsg([b'x'], [(1, 1, array.array('i', [0]))])
    except OSError as e:
        ctypes.set_errno(e.errno)
        return -1
take(send, 400)
"""

TERMINALS = START + """
def terminal():
    return libc.open(b'/dev/ptmx', os.O_RDWR | os.O_NOCTTY)
take(terminal, 70)
"""

LOCKED = START + """
import mmap
memory = mmap.mmap(-1, 20 << 20)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
def lock(n=[0]):
    n[0] += 1
    return libc.mlock(ctypes.c_void_p(start + (n[0] - 1 << 20)), ctypes.c_ulong(1 << 20))
take(lock, 20)
"""

FILES = START + """
def file(n=[0]):
    n[0] += 1
    return libc.mkdir(f'/tmp/{n[0]}'.encode(), 0o700)
take(file, 9000)
"""


def inside(ssb, code, use=lambda: None, **resources):
    """Runs a skill that takes all that it can get, and calls use() meanwhile. Returns the amount
    that the skill got, and the result of use()."""
    # The long limit is for emulated machines, which are slow.
    skill = ssb.skill(code, resources={"max_runtime_seconds": 600, **resources})
    p = ssb.popen([ssb.binary, "run", skill], stdin=-1, stdout=-1, stderr=-1)
    try:
        line = p.stdout.readline()
        assert line, p.stderr.read()
        return json.loads(line), use()
    finally:
        p.communicate(timeout=60)


def outside(ssb, code):
    return ssb.bare(code).ok().json()


def test_no_context_of_aio(ssb):
    assert inside(ssb, AIO)[0] == [0, "ENOSYS"]
    assert outside(ssb, AIO) == [4, None]


def test_inotify_of_the_owner(ssb):
    """A skill has taken all its inotify instances: the owner's programs can still get theirs."""
    def use():
        return ssb.as_caller([harness.PYTHON, "-c", INSTANCES.replace("60", "40")]).ok().json()
    made, left = inside(ssb, INSTANCES, use)
    assert made == [16, "EMFILE"]
    assert left == [40, None]
    assert outside(ssb, INSTANCES) == [60, None]


def test_watches_of_inotify(ssb):
    assert inside(ssb, WATCHES)[0] == [4096, "ENOSPC"]
    assert int(pathlib.Path("/proc/sys/fs/inotify/max_user_watches").read_text()) > 4300, "control"


def test_the_limit_of_inotify_cannot_be_raised(ssb):
    code = """
    import json
    path = '/proc/sys/user/max_inotify_instances'
    try:
        open(path, 'w').write('1000')
        raised = True
    except OSError:
        raised = False
    print(json.dumps([int(open(path).read()), raised]))
    """
    assert ssb.probe(code) == [16, False]
    assert int(pathlib.Path("/proc/sys/user/max_inotify_instances").read_text()) > 16, "control"


def test_no_message_queue(ssb):
    """A skill cannot make a POSIX message queue: no Landlock rule grants the file system of these
    queues."""
    assert inside(ssb, QUEUES)[0] == [0, "EACCES"]
    assert outside(ssb, QUEUES)[0] > 0


def test_timers_and_pending_signals(ssb):
    (made, why), _ = inside(ssb, TIMERS)
    assert 900 <= made <= 1024 and why == "EAGAIN"
    assert outside(ssb, TIMERS) == [1100, None]


def test_no_program_of_a_socket(ssb):
    """A skill cannot attach a filter program to a socket. Otherwise it could use up the limit that
    the machine has for the machine code of all such programs."""
    for option in (26, 51):
        code = FILTERS.replace("OPTION", str(option))
        assert inside(ssb, code)[0] == [0, "ENOMEM"], option
    assert outside(ssb, FILTERS.replace("OPTION", "26")) == [4, None]


@pytest.mark.parametrize("way", ["mapping", "lambda: libc.memfd_create(b'x', 4)"])
def test_no_huge_page(ssb, way):
    """A skill gets no huge pages: the administrator sets them aside for the whole machine, and no
    memory limit counts them."""
    code = HUGE.replace("WAY", way)
    assert inside(ssb, code)[0] == [0, "ENOMEM"]
    assert outside(ssb, code) == [4, None]


def test_flags_of_huge_pages(ssb):
    """Chromium asks with all flags whether memfd_create() exists, and aborts if the answer is not
    EINVAL."""
    code = HUGE.replace("WAY", "lambda: libc.memfd_create(b'', ctypes.c_uint(0xffffffff))")
    assert inside(ssb, code)[0] == outside(ssb, code) == [0, "EINVAL"]


def test_files_in_flight(ssb):
    (made, why), _ = inside(ssb, IN_FLIGHT, max_open_files=256)
    assert 200 <= made <= 257 and why == "ETOOMANYREFS"
    assert outside(ssb, IN_FLIGHT) == [400, None]


def test_terminals(ssb):
    assert inside(ssb, TERMINALS)[0] == [64, "ENOSPC"]
    assert outside(ssb, TERMINALS) == [70, None]


def test_locked_memory(ssb):
    (made, why), _ = inside(ssb, LOCKED)
    assert made <= 8 and why == "ENOMEM"
    if ssb.is_root:
        assert outside(ssb, LOCKED) == [20, None]


def test_inodes_of_private_places(ssb):
    (made, why), _ = inside(ssb, FILES, max_disk_mb=1)
    assert 1000 < made < 9000 and why == "ENOSPC"
    assert inside(ssb, FILES, max_disk_mb=512)[0] == [9000, None]


PIPES = START + """
import fcntl
kept = []
def pipe():
    kept.append(os.pipe())
    try:
        fcntl.fcntl(kept[-1][0], 1031, 1 << 20)  # F_SETPIPE_SZ
    except PermissionError:
        ctypes.set_errno(errno.EPERM)
        return -1
    return 0
take(pipe, 200)
"""

SMALL_PIPE = """
import json, os
r, w = os.pipe()
print(json.dumps([os.write(w, b'x' * 4096), len(os.read(r, 4096))]))
"""


def test_pipes_of_the_owner(ssb):
    """A skill has used up the kernel's limit of pipe memory for its uid: the owner can still make
    pipes, at least small ones."""
    def use():
        return ssb.as_caller([harness.PYTHON, "-c", SMALL_PIPE]).ok().json()
    (made, why), left = inside(ssb, PIPES, use)
    assert 0 < made <= 64 and why == "EPERM"
    assert left == [4096, 4096]


# Sends data over TCP connections that no program reads from; prints how many MiB the kernel
# accepted.
STREAMS = """
import json, socket, sys, time
listener = socket.create_server(('127.0.0.1', 0), backlog=512)
kept, sent = [], 0
for i in range(200):
    a = socket.create_connection(listener.getsockname())
    b, _ = listener.accept()
    kept += [a, b]
    for end in (a, b):
        end.setblocking(False)
        try:
            while sent < 300 << 20:
                sent += end.send(b'x' * (1 << 16))
        except BlockingIOError:
            pass
print(json.dumps(sent >> 20), flush=True)
time.sleep(HOLD)
print('held')
"""


# Like STREAMS, but with datagrams. The sender gets no error when the kernel drops a datagram, so
# the program counts what it can read afterwards.
DATAGRAMS = """
import json, socket, sys, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
kept, got = [], 0
for i in range(900):
    kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    kept[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    kept[-1].bind(('127.0.0.1', 0))
    for j in range(6):
        sender.sendto(b'x' * 60000, kept[-1].getsockname())
time.sleep(HOLD)
for end in kept:
    end.setblocking(False)
    try:
        while True:
            got += len(end.recv(1 << 16))
    except BlockingIOError:
        pass
print(json.dumps(got >> 20), flush=True)
print('held')
"""


@pytest.mark.parametrize("code, hold", [(STREAMS, "20"), (DATAGRAMS, "2")], ids=["tcp", "udp"])
def test_memory_of_sockets(root, code, hold):
    """In a control group, the data in sockets counts for memory_mb: it stays below the limit, or
    the run is killed. Without a group it is not limited, because the watchdog does not count it."""
    more = {"max_open_files": 2048}
    r = root.inside(code.replace("HOLD", hold), resources={"memory_mb": 64, **more}, timeout=90)
    if r.code == 0:
        took = json.loads(r.text.splitlines()[0])
        assert took <= 2 * 64 or not root.has_cgroup(), "as much for sockets as for other memory"
    else:
        assert r.code == 137 and b"held" not in r.out, repr(r)
    free = root.inside(code.replace("HOLD", "1"), resources={"memory_mb": 2048, **more}).ok()
    assert json.loads(free.text.splitlines()[0]) > 2 * 64, "the control"
