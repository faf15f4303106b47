"""What is counted for a user or for the whole machine: a skill cannot use it up for others, or
no more of it than docs/THREAT-MODEL.md says. Each control takes more outside."""
import json
import pathlib


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


def inside(ssb, code, use=lambda: None):
    """Runs `use` while the skill holds all that it could get; what it got, and that came to."""
    skill = ssb.skill(code, resources={"max_runtime_seconds": 600})  # an emulated machine is slow
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
    """The owner's editors have theirs while a skill holds all of its own."""
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
    """Their file system is in no rule of Landlock."""
    assert inside(ssb, QUEUES)[0] == [0, "EACCES"]
    assert outside(ssb, QUEUES)[0] > 0


def test_timers_and_pending_signals(ssb):
    (made, why), _ = inside(ssb, TIMERS)
    assert 900 <= made <= 1024 and why == "EAGAIN"
    assert outside(ssb, TIMERS) == [1100, None]


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
    """The kernel's bound for a uid: past it pipes are small, and none fails."""
    def use():
        return ssb.as_caller([harness.PYTHON, "-c", SMALL_PIPE]).ok().json()
    (made, why), left = inside(ssb, PIPES, use)
    assert 0 < made <= 64 and why == "EPERM"
    assert left == [4096, 4096]


# Bytes on their way between two ends of TCP that nobody reads.
SOCKETS = """
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


def test_memory_of_sockets(root):
    """In a control group no more than memory_mb is taken, or the run is ended. The watchdog does
    not see it."""
    r = root.inside(SOCKETS.replace("HOLD", "20"), resources={"memory_mb": 64}, timeout=90)
    if r.code == 0:
        took = json.loads(r.text.splitlines()[0])
        assert took <= 2 * 64, "as much for sockets as for all other memory"
    else:
        assert r.code == 137 and b"held" not in r.out, repr(r)
    free = root.inside(SOCKETS.replace("HOLD", "1"), resources={"memory_mb": 2048}).ok()
    assert json.loads(free.text.splitlines()[0]) > 2 * 64, "the control"
