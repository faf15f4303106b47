"""A socket or FIFO in a declared directory carries no data out."""
import json
import os
import select
import socket
import threading
import time

import pytest

from harness import ATTEMPT

DIAL = ATTEMPT + """
d = os.environ['D']
def stream():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(d + '/stream.sock')
    s.sendall(b'loot')
def dgram():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.sendto(b'loot', d + '/dgram.sock')
def dgram_from_pair():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.sendto(b'loot', d + '/dgram.sock')
def fifo():
    fd = os.open(d + '/fifo', os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, b'loot')
attempt('stream', stream)
attempt('dgram', dgram)
attempt('dgram_from_pair', dgram_from_pair)
attempt('fifo', fifo)
print(json.dumps(seen))
"""


class Traps:
    """Listening sockets and a FIFO in a directory, and which of them got data."""

    def __init__(self, ssb, d):
        self.got = []
        self.stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.stream.bind(str(d / "stream.sock"))
        self.stream.listen(8)
        self.dgram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.dgram.bind(str(d / "dgram.sock"))
        os.mkfifo(d / "fifo")
        for name in ("stream.sock", "dgram.sock", "fifo"):
            os.chmod(d / name, 0o666)
            ssb.own(d / name)
        self.fifo = os.open(d / "fifo", os.O_RDWR | os.O_NONBLOCK)
        self.over = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            ready, _, _ = select.select([self.stream, self.dgram, self.fifo], [], [], 0.1)
            if not ready and self.over:  # all data has been read
                return
            for r in ready:
                if r is self.stream:
                    peer = self.stream.accept()[0]
                    peer.settimeout(20)
                    peer.recv(100)
                    peer.close()
                    self.got.append("stream")
                elif r is self.dgram:
                    self.dgram.recv(100)
                    self.got.append("dgram")
                else:
                    os.read(self.fifo, 100)
                    self.got.append("fifo")

    def close(self):
        self.over = True
        self.thread.join(30)
        self.stream.close()
        self.dgram.close()
        os.close(self.fifo)


@pytest.mark.parametrize("grant", ["read", "write"])
def test_sockets_and_fifos_of_the_host(ssb, grant):
    d = ssb.mkdir("shared")
    traps = Traps(ssb, d)
    try:
        seen = ssb.probe(DIAL, env={"D": str(d)}, flags=["--env", "D"], **{grant: [d]})
        assert seen["stream"] == seen["dgram"] == seen["dgram_from_pair"] == "denied", seen
        if grant == "read":
            # With a write grant the skill may write to a FIFO in it.
            assert seen["fifo"] == "denied"
            time.sleep(0.3)
            assert traps.got == []
        control = ssb.bare_probe(DIAL, env={"D": str(d)})
        assert {control[k] for k in ("stream", "dgram", "dgram_from_pair", "fifo")} == {"ok"}, \
            control
    finally:
        traps.close()
    assert {"stream", "dgram", "fifo"} <= set(traps.got)


@pytest.mark.parametrize("grant", ["read", "write"])
def test_created_after_the_start(ssb, grant):
    d = ssb.mkdir("shared")
    code = """
    import os, sys
    print('begun', flush=True)
    sys.stdin.readline()
    """ + DIAL.replace("\n", "\n    ")
    skill = ssb.skill(code, **{grant: [d]})
    p = ssb.popen([ssb.binary, "run", "--env", "D", skill], env={"D": str(d)}, stdin=-1,
                  stdout=-1, stderr=-1)
    assert p.stdout.readline() == b"begun\n"
    traps = Traps(ssb, d)
    try:
        out, err = p.communicate(b"go\n", timeout=30)
        seen = json.loads(out)
        assert seen["stream"] == seen["dgram"] == seen["dgram_from_pair"] == "denied", err
        if grant == "read":
            assert seen["fifo"] == "denied"
            assert traps.got == []
    finally:
        traps.close()


@pytest.mark.parametrize("kind", ["stream", "dgram"])
def test_socket_granted_by_itself(ssb, kind):
    """A manifest names the socket itself, as it could name docker.sock: the skill cannot connect to
    it."""
    d = ssb.mkdir("shared")
    traps = Traps(ssb, d)
    try:
        r = ssb.inside(DIAL, env={"D": str(d)}, flags=["--env", "D"],
                       read=[d / f"{kind}.sock"])
        assert r.code == 125 or r.json()[kind] == "denied"
        assert traps.got == []
    finally:
        traps.close()


OWN = """
import json, os, socket, threading
seen = {}
a, b = socket.socketpair()
a.sendall(b'x'); seen['pair'] = b.recv(1) == b'x'
c, d = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
c.send(b'y'); seen['dgram_pair'] = d.recv(1) == b'y'
r, w = os.pipe()
os.write(w, b'z'); seen['pipe'] = os.read(r, 1) == b'z'
s = socket.socket(socket.AF_UNIX)
s.bind('/tmp/own.sock'); s.listen()
k = socket.socket(socket.AF_UNIX); k.connect('/tmp/own.sock')
k.sendall(b'q'); seen['own_socket'] = s.accept()[0].recv(1) == b'q'
print(json.dumps(seen))
"""


def test_own_sockets_and_pipes_work(ssb):
    assert set(ssb.probe(OWN).values()) == {True}


def test_own_sockets_work_beside_a_read_grant(ssb):
    assert set(ssb.probe(OWN, read=[ssb.mkdir("shared")]).values()) == {True}


def test_socketpairs_and_pipes_work_beside_a_write_grant(ssb):
    lines = [l for l in OWN.splitlines()[:-1]
             if "SOCK_DGRAM" not in l and "dgram_pair" not in l]
    code = "\n".join(lines) + "\nprint(json.dumps(seen))\n"
    assert set(ssb.probe(code, write=[ssb.mkdir("shared")]).values()) == {True}


# Does everything that programs usually do with their own unix sockets, in each private place of the
# sandbox.
OWN_EVERYWHERE = ATTEMPT + """
import stat, struct, threading
def serve(path, kind=socket.SOCK_STREAM, flags=0):
    s = socket.socket(socket.AF_UNIX, kind | flags)
    s.bind(path); s.listen(3)
    k = socket.socket(socket.AF_UNIX, kind); k.connect(path)
    k.sendall(b'q'); c = s.accept()[0]
    uid = struct.unpack('3i', c.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
    name = path.encode() if path[0] < ' ' else path
    assert c.recv(9) == b'q' and uid == os.getuid(), uid
    assert s.getsockname() == k.getpeername() == name
    k.sendmsg([b'r'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack('i', s.fileno()))])
    assert len(socket.recv_fds(c, 9, 2)[1]) == 1
def mode():
    os.umask(0o077)
    s = socket.socket(socket.AF_UNIX); s.bind('/tmp/mode'); os.umask(0o022)
    st = os.stat('/tmp/mode')
    assert stat.S_ISSOCK(st.st_mode) and st.st_mode & 0o777 == 0o700 and st.st_uid == os.getuid()
def flags():
    s = socket.socket(socket.AF_UNIX); s.set_inheritable(True)
    s.bind('/tmp/flags'); assert s.get_inheritable(); s.listen()
    k = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    k.connect('/tmp/flags'); assert not k.get_inheritable()
    try:
        k.recv(1)
    except BlockingIOError:
        return
    raise AssertionError('it blocks')
def full():
    \"\"\"The queue is full: a non-blocking connect fails, a blocking one succeeds later.\"\"\"
    s = socket.socket(socket.AF_UNIX); s.bind('/tmp/full'); s.listen(0)
    first = socket.socket(socket.AF_UNIX); first.connect('/tmp/full')
    k = socket.socket(socket.AF_UNIX); k.setblocking(False)
    try:
        k.connect('/tmp/full'); raise AssertionError('there was room')
    except BlockingIOError:
        pass
    def wait():
        w = socket.socket(socket.AF_UNIX); w.connect('/tmp/full'); w.sendall(b'w')
    t = threading.Thread(target=wait); t.start()
    s.accept(); assert s.accept()[0].recv(1) == b'w'; t.join()
def relative():
    os.makedirs('/tmp/rel/deep'); os.chdir('/tmp/rel/deep'); os.symlink('/tmp/rel', 'up')
    serve('here'); serve('../there'); serve('up/linked'); os.chdir('/')
def refused(call, error):
    try:
        call()
    except error:
        return
    raise AssertionError('no error')
def errors():
    s = socket.socket(socket.AF_UNIX)
    refused(lambda: s.connect('/tmp/nothing'), FileNotFoundError)
    open('/tmp/file', 'w').close()
    refused(lambda: s.connect('/tmp/file'), ConnectionRefusedError)
    refused(lambda: s.bind('/tmp/file'), OSError)
    refused(lambda: s.listen(), OSError)
    s.bind('/tmp/after'); s.listen()
for name, call in {
    'tmp': lambda: serve('/tmp/s'), 'var': lambda: serve('/var/tmp/s'),
    'shm': lambda: serve('/dev/shm/s'), 'home': lambda: serve(os.environ['HOME'] + '/s'),
    'packets': lambda: serve('/tmp/p', socket.SOCK_SEQPACKET),
    'abstract': lambda: serve('\\0name'), 'relative': relative, 'mode': mode, 'flags': flags,
    'full': full, 'errors': errors}.items():
    attempt(name, call)
print(json.dumps(why or {'all': 'ok'}))
"""


def test_own_sockets_work_beside_a_write_grant(ssb):
    """A skill's own unix sockets work beside a write grant, also if the grant lies in a private
    place."""
    work = ssb.mkdir("work")
    seen = ssb.probe(OWN_EVERYWHERE, write=[work])
    assert seen == {"all": "ok"}
    assert ssb.last_trace()["policy_violations"] == []
    granted = ssb.home / "granted"
    granted.mkdir()
    ssb.own(granted)
    assert ssb.probe(OWN_EVERYWHERE, write=[granted]) == {"all": "ok"}
    assert list(granted.iterdir()) == list(work.iterdir()) == []


def test_no_own_sockets_unobserved(ssb):
    code = ATTEMPT + ("attempt('s', lambda: socket.socket(socket.AF_UNIX))\n"
                      "print(json.dumps({**seen, **why}))")
    work = ssb.mkdir("work")
    skill = ssb.skill(code, write=[work])
    assert ssb.run("--audit", "off", skill).ok().json() == {"s": "PermissionError"}
    assert "--unix-sockets" in ssb.ssb("inspect", "--audit", "off", skill).ok().text
    assert ssb.probe(code, write=[work]) == {"s": "ok"}


@pytest.mark.parametrize("mode", ["address", "fd", "path", "cwd", "bind"])
def test_own_sockets_lead_nowhere_else(ssb, programs, mode):
    """A skill changes the arguments of its call while the supervisor examines the call: the skill
    reaches no socket of the host and leaves no socket in the grant. Outside the sandbox the same
    program does both."""
    race = programs("unix_race")
    shared, own = ssb.mkdir("shared"), ssb.mkdir("own")
    host = socket.socket(socket.AF_UNIX)
    host.bind(str(shared / "s"))
    os.chmod(shared / "s", 0o777)
    host.listen(4096)
    host.setblocking(False)

    def reached():
        n = len([p for p in shared.iterdir() if p.name.startswith("left")])
        while True:
            try:
                host.accept()[0].close()
                n += 1
            except BlockingIOError:
                return n
    try:
        r = ssb.run("--timeout", "100", "-r", race.parent, "-w", shared, "--", race, mode,
                    "/tmp/own", shared, timeout=120).ok()
        assert reached() == 0
        assert mode == "fd" or int(r.text) > 0, "its own"
        for i in range(50):  # the control, until it wins the race
            ssb.bare([race, mode, own / str(i), shared]).ok()
            if reached() > 0:
                break
        else:
            pytest.fail("the control")
    finally:
        host.close()


def test_a_host_socket_beside_own_ones_is_told(ssb):
    d = ssb.mkdir("shared")
    traps = Traps(ssb, d)
    try:
        seen = ssb.probe(DIAL, env={"D": str(d)}, flags=["--env", "D"], write=[d])
        assert seen["stream"] == "denied"
        told = [v["data"] for v in ssb.last_trace()["policy_violations"]]
        assert [(v["path"], v["reason"]) for v in told if v["op"] == "connect"] == [
            (str(d / "stream.sock"), "host_service")], told
        assert "--unix-sockets" in ssb.ssb("why", "last").ok().text
    finally:
        traps.close()


def test_owner_switch_for_unix_sockets(ssb):
    d = ssb.mkdir("shared")
    traps = Traps(ssb, d)
    try:
        seen = ssb.probe(DIAL, env={"D": str(d)}, flags=["--env", "D", "--unix-sockets"],
                         write=[d])
        assert seen["stream"] == "ok", seen
    finally:
        traps.close()
    assert "stream" in traps.got


def test_abstract_socket_of_the_host(ssb):
    name = f"\0ssb-e2e-{os.getpid()}-{ssb.kind}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(4)
    code = f"""
import socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect({name!r})
    print('connected')
except OSError:
    print('denied')
"""
    try:
        assert ssb.inside(code).ok().text.strip() == "denied"
        control = ssb.as_caller(["/usr/bin/python3", "-c", code])
        assert control.ok().text.strip() == "connected"
    finally:
        listener.close()
