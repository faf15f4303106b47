"""The identity of a skill: its ids, and which processes, fds and names it shares with the host."""
import ctypes
import fcntl
import os
import pathlib
import resource
import subprocess
import time

import harness

STATUS = """
import json, os
status = dict(l.rstrip('\\n').split(':\\t', 1) for l in open('/proc/self/status') if ':\\t' in l)
print(json.dumps({'uid': os.getresuid(), 'gid': os.getresgid(), 'groups': os.getgroups(),
    'caps': {k: int(v, 16) for k, v in status.items() if k.startswith('Cap')},
    'nnp': status['NoNewPrivs'], 'seccomp': status['Seccomp'], 'pid': os.getpid(),
    'sid': os.getsid(0), 'dumpable': os.access('/proc/self/environ', os.R_OK)}))
"""


def test_not_root_and_no_capability_inside(ssb):
    seen = ssb.probe(STATUS)
    assert 0 not in seen["uid"] and 0 not in seen["gid"] and 0 not in seen["groups"]
    assert set(seen["caps"].values()) == {0}, seen["caps"]
    assert seen["nnp"] == "1" and seen["seccomp"] == "2"
    control = ssb.bare_probe(STATUS)
    assert control["seccomp"] == "0"
    if ssb.is_root:
        assert control["uid"][0] == 0 and control["caps"]["CapEff"] != 0


def host_pids(marker):
    return harness.wait_for(lambda: [p for p, line in harness.alive_with(marker)
                                     if b"skillsandbox" not in line])


def running(ssb):
    """Starts sleep in the sandbox. Returns the supervisor, the host pid of sleep, and the marker in
    its command line."""
    marker = f"90.25{time.monotonic_ns()}"
    p = ssb.popen([ssb.binary, "run", "--", "sleep", marker], stdin=subprocess.DEVNULL,
                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return p, host_pids(marker)[0], marker


def test_identity_outside(ssb):
    """A skill that root starts does not run as root on the host; a user's skill has the user's
    uid."""
    p, pid, _ = running(ssb)
    try:
        st = pathlib.Path(f"/proc/{pid}/status").read_text()
        uids = {int(u) for u in st.split("Uid:")[1].splitlines()[0].split()}
        if ssb.is_root:
            assert 0 not in uids
        else:
            assert uids == {ssb.uid}
    finally:
        p.kill()
        p.wait(10)


# Tries to open everything in /proc for writing, but writes nothing. Prints which settings of the
# machine it could change.
OPEN_MACHINE = """
import os
found = []
for at, below, names in os.walk('/proc'):
    below[:] = [d for d in below if not d.isdigit() and d not in ('self', 'thread-self')]
    for name in names:
        try:
            os.close(os.open(at + '/' + name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
            found.append(at + '/' + name)
        except OSError:
            pass
print(*found)
"""


def test_root_that_has_no_other_ids(root):
    """In a user namespace that maps only id 0, the skill is root for the kernel, and root owns the
    settings in /proc. The skill must not be able to open any of them for writing."""
    in_ns = ["unshare", "--user", "--map-root-user"]
    command = [harness.PYTHON, "-c", OPEN_MACHINE]
    for flags in (["--audit", "off"], []):
        r = root.as_caller([*in_ns, root.binary, "run", *flags, "--", *command])
        assert r.ok().text.split() == [], flags
    control = root.as_caller([*in_ns, "unshare", "--net", "--ipc", *command]).text.split()
    assert "/proc/sys/kernel/core_pattern" in control


def test_namespaces_differ(ssb):
    code = """
    import json, os
    print(json.dumps({n: os.readlink('/proc/self/ns/' + n)
                      for n in ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup')}))
    """
    seen = ssb.probe(code)
    outside = ssb.as_caller([harness.PYTHON, "-c", code.replace("\n    ", "\n")]).ok().json()
    assert [n for n in seen if seen[n] == outside[n]] == []


def test_own_session_and_process_view(ssb):
    code = """
    import json, os
    print(json.dumps({'pids': sorted(int(p) for p in os.listdir('/proc') if p.isdigit()),
                      'pid': os.getpid(), 'sid': os.getsid(0), 'host': os.uname().nodename}))
    """
    seen = ssb.probe(code)
    assert len(seen["pids"]) <= 3
    assert seen["sid"] != 0, "a session that lives outside"
    assert len(ssb.bare_probe(code)["pids"]) >= 1
    assert seen["host"] != os.uname().nodename


def test_kill_0_does_not_reach_the_caller(ssb):
    skill = ssb.skill("import os, signal; os.kill(0, signal.SIGKILL)")
    r = ssb.as_caller(["sh", "-c", '"$0" run "$1"; echo "survived $?"', ssb.binary, skill])
    assert r.ok().text.strip() == "survived 137"
    # The control: the signal kills the inner shell. The outer shell is PID 1, which no signal from
    # its own namespace kills.
    bare = ssb.bare(["sh", "-c", "sh -c \"/usr/bin/python3 -c 'import os; os.kill(0, 9)'; "
                     "echo survived\"; true"])
    assert b"survived" not in bare.out


def test_kill_all_does_not_reach_the_caller(ssb):
    code = """
    import os, signal
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass  # no such process
    print('done')
    """
    assert ssb.inside(code).ok().text == "done\n"


def test_inherited_fds_are_closed(ssb):
    code = """
    import json, os
    seen = {}
    for n in os.listdir('/proc/self/fd'):
        try:
            seen[n] = os.readlink('/proc/self/fd/' + n)
        except OSError:
            pass
    leaks = []
    for fd in (3, 4, 5, 300, 301, 2000):
        try:
            leaks.append(os.pread(fd, 100, 0).decode())
        except OSError:
            pass
    print(json.dumps({'fds': seen, 'leaks': leaks}))
    """
    secret = ssb.write(ssb.base / "fd-secret", harness.SECRET, 0o600)
    low, home = os.open(secret, os.O_RDONLY), os.open(ssb.home, os.O_RDONLY)
    # dup2() could close fds of the test itself, so the test uses F_DUPFD. The usual limit of 1024
    # fds is too low for the last of these fds, so it is raised.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    fds = [low, home, fcntl.fcntl(low, fcntl.F_DUPFD, 300), fcntl.fcntl(low, fcntl.F_DUPFD, 2000)]
    assert fds[2:] == [300, 2000]
    try:
        skill = ssb.skill(code)
        seen = ssb.run(skill, pass_fds=fds).ok().json()
        assert seen["leaks"] == []
        assert {n for n in seen["fds"] if seen["fds"][n].startswith(str(ssb.base))} == set()
        assert harness.SECRET not in str(seen)
        control = ssb.as_caller([harness.PYTHON, skill / "main.py"], pass_fds=fds)
        assert harness.SECRET in "".join(control.ok().json()["leaks"])
    finally:
        for fd in fds:
            os.close(fd)


def test_standard_streams_are_no_host_files(ssb):
    """The caller's stdin, stdout and stderr are host files: the skill gets pipes or sockets
    instead."""
    files = [ssb.write(ssb.base / n, "") for n in ("in", "out", "err")]
    handles = [open(f, "r+b") for f in files]
    code = """
    import os
    for n in (0, 1, 2):
        print(os.readlink('/proc/self/fd/%d' % n))
    """
    p = ssb.popen([ssb.binary, "run", ssb.skill(code)], stdin=handles[0], stdout=handles[1],
                  stderr=handles[2])
    assert p.wait(30) == 0, files[2].read_text()
    lines = files[1].read_text().splitlines()
    assert all(line.startswith(("pipe:", "socket:")) for line in lines) and len(lines) == 3
    for h in handles:
        h.close()


def test_stdin_cannot_be_reopened_for_writing(ssb):
    source = ssb.write(ssb.base / "source", "original")
    with open(source, "rb") as h:
        p = ssb.popen([ssb.binary, "run", ssb.skill(
            "import os; fd = os.open('/proc/self/fd/0', os.O_RDWR); os.write(fd, b'changed')")],
            stdin=h, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        p.wait(30)
    assert source.read_text() == "original"


def test_ptrace_of_a_sibling(ssb):
    code = """
    import ctypes, os, time
    libc = ctypes.CDLL(None, use_errno=True)
    pid = os.fork()
    if pid == 0:
        time.sleep(5)
        os._exit(0)
    print('attached' if libc.ptrace(16, pid, 0, 0) == 0 else 'denied', flush=True)
    os.kill(pid, 9)
    """
    r = ssb.inside(code)
    assert r.text.strip() != "attached"
    assert r.text.strip() == "denied" or r.code == 159
    assert ssb.bare(code).text.strip() == "attached"


SHM = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
librt = ctypes.CDLL('librt.so.1', use_errno=True)
key = int(os.environ['KEY'])
seen = {'sysv': libc.shmget(key, 0, 0) >= 0,
        'sem': libc.semget(key, 0, 0) >= 0,
        'msg': libc.msgget(key, 0) >= 0,
        'shm': os.path.exists('/dev/shm/ssb-' + os.environ['KEY']),
        'mq': librt.mq_open(('/ssb-' + os.environ['KEY']).encode(), os.O_RDONLY) >= 0}
print(json.dumps(seen))
"""


def test_sysv_and_posix_ipc_are_isolated(ssb):
    libc = ctypes.CDLL(None, use_errno=True)
    librt = ctypes.CDLL("librt.so.1", use_errno=True)
    key = 0x55B00000 + os.getpid() * 2 + ssb.is_root
    name = f"/ssb-{key}".encode()
    shm = libc.shmget(key, 4096, 0o1666)
    sem = libc.semget(key, 1, 0o1666)
    msg = libc.msgget(key, 0o1666)
    old = os.umask(0)
    mq = librt.mq_open(name, os.O_CREAT | os.O_RDWR, 0o666, None)
    os.umask(old)
    path = pathlib.Path(f"/dev/shm/ssb-{key}")
    path.write_text("x")
    path.chmod(0o666)
    try:
        assert min(shm, sem, msg, mq) >= 0
        seen = ssb.probe(SHM, env={"KEY": str(key)}, allow=["KEY"])
        assert set(seen.values()) == {False}, seen
        control = ssb.bare_probe(SHM, env={"KEY": str(key)})
        assert set(control.values()) == {True}, control
    finally:
        libc.shmctl(shm, 0, None)
        libc.semctl(sem, 0, 0)
        libc.msgctl(msg, 0, None)
        librt.mq_unlink(name)
        path.unlink()


def test_own_ipc_works(ssb):
    code = """
    import json
    from multiprocessing import shared_memory, Semaphore
    s = shared_memory.SharedMemory(create=True, size=4096)
    s.buf[0] = 7
    t = shared_memory.SharedMemory(name=s.name)
    print(json.dumps(t.buf[0]))
    t.close(); s.close(); s.unlink()
    """
    assert ssb.probe(code) == 7


def test_signal_to_init(ssb):
    code = """
    import os, signal, time
    for s in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
        try:
            os.kill(1, s)
        except OSError:
            pass
    time.sleep(0.2)
    print('alive')
    """
    assert ssb.inside(code).ok().text.strip() == "alive"
