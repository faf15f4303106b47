"""A socket or FIFO in a declared directory carries nothing out."""
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
    """Listening sockets and a FIFO in a directory, and what came through."""

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
            if not ready and self.over:  # and all that had come was taken
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
            # A FIFO beneath a write grant is writable by right.
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
    """Naming the socket itself, as a manifest would name docker.sock."""
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
    lines = [l for l in OWN.split("s = socket.socket(")[0].splitlines()
             if "SOCK_DGRAM" not in l and "dgram_pair" not in l]
    code = "\n".join(lines) + "\nprint(json.dumps(seen))\n"
    assert set(ssb.probe(code, write=[ssb.mkdir("shared")]).values()) == {True}


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
