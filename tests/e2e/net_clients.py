"""Small network clients for the skills in the egress tests, which import this file as clients.py.

Every attempt returns a dict: value (on success), error (the exception's name), errno
(its symbol) and seconds.
"""
import concurrent.futures
import errno
import json
import os
import socket
import ssl
import struct
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CA = os.path.join(HERE, "ca.pem")
GAI = {getattr(socket, k): k for k in dir(socket) if k.startswith("EAI_")}


def tried(call, *args, **kw):
    start = time.monotonic()
    got = {"value": None, "error": None, "errno": None}
    try:
        got["value"] = call(*args, **kw)
    except Exception as e:  # every exception is a result for the test
        got["error"] = type(e).__name__
        number = getattr(e, "errno", None)
        if number is None and isinstance(getattr(e, "reason", None), OSError):
            number = e.reason.errno
        got["errno"] = GAI.get(number) or errno.errorcode.get(number)
        got["text"] = str(e)
    got["seconds"] = time.monotonic() - start
    return got


def side_by_side(call, cases):
    """Makes the call for all cases of a dict at the same time, each in its own thread."""
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        running = {k: pool.submit(tried, call, v) for k, v in cases.items()}
        return {k: f.result() for k, f in running.items()}


def show(value):
    print(json.dumps(value))


def text(data):
    return data.decode("latin-1")


def read_all(sock, limit=1 << 20, quiet=6):
    """Reads until the end of the stream, or until nothing has arrived for `quiet` seconds. `quiet`
    must be longer than the pauses of a slow peer."""
    sock.settimeout(quiet)
    data = b""
    try:
        while len(data) < limit and (more := sock.recv(65536)):
            data += more
    except TimeoutError:
        pass
    return data


def connect(host, port, timeout=10):
    socket.create_connection((host, port), timeout).close()
    return "connected"


def raw(host, port, *parts, pause=0.05, half_close=False, timeout=10):
    """Sends the parts one after the other; returns the answer as text."""
    with socket.create_connection((host, port), timeout) as s:
        for i, part in enumerate(parts):
            if i:
                time.sleep(pause)
            s.sendall(part.encode("latin-1") if isinstance(part, str) else part)
        if half_close:
            s.shutdown(socket.SHUT_WR)
        return text(read_all(s, quiet=20 if half_close else 6))


def http_answer(s):
    """Reads exactly one HTTP response, and no byte after it."""
    data = b""
    while not data.endswith(b"\r\n\r\n") and (more := s.recv(1)):
        data += more
    for line in data.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            data += s.recv(int(line.split(b":")[1]), socket.MSG_WAITALL)
    return data


def in_turn(host, port, *parts, half_close=False):
    """Sends each part after the previous part has been answered; returns all answers as text."""
    with socket.create_connection((host, port), 20) as s:
        data = b""
        for i, part in enumerate(parts):
            data += http_answer(s) if i else b""
            s.sendall(part.encode("latin-1"))
        if half_close:
            s.shutdown(socket.SHUT_WR)
        return text(data + read_all(s, quiet=20 if half_close else 6))


def context(verify=True):
    c = ssl.create_default_context(cafile=CA)
    if not verify:
        c.check_hostname = False
        c.verify_mode = ssl.CERT_NONE
    return c


def tls(host, port=443, sni=None, request_host=None, timeout=10):
    """Sends GET / over TLS and returns the answer. `sni` replaces the server name in the
    ClientHello; "" sends no name."""
    plain = sni is not None
    with socket.create_connection((host, port), timeout) as s, \
            context(not plain).wrap_socket(s, server_hostname=(sni or None) if plain else host) \
            as t:
        name = request_host or host
        t.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        return text(read_all(t, quiet=20))


def hello_bytes(name):
    """The bytes of a real TLS ClientHello for this name."""
    c = ssl.create_default_context()
    c.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = c.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def names(host, family=0, flags=0):
    """The addresses that getaddrinfo gives."""
    return sorted({a[4][0] for a in socket.getaddrinfo(host, 443, family, socket.SOCK_STREAM, 0,
                                                       flags)})


def nameservers():
    with open("/etc/resolv.conf", encoding="ascii") as f:
        return [w[1] for w in map(str.split, f) if len(w) > 1 and w[0] == "nameserver"]


def question(name, kind=1, ident=0x1234, extra=b"", counts=(1, 0, 0, 0), flags=0x0100):
    labels = b"".join(bytes([len(p)]) + p.encode("latin-1") for p in name.split(".") if p)
    return struct.pack(">HHHHHH", ident, flags, *counts) + labels + b"\0" \
        + struct.pack(">HH", kind, 1) + extra


OPT = b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0)


def parse(reply):
    """Parses a DNS reply: rcode, flags, addresses and question."""
    flags, _, answers = struct.unpack(">HHH", reply[2:8])
    at = 12
    while reply[at]:
        at += reply[at] + 1
    at += 5
    found = []
    for _ in range(answers):
        at += 2 if reply[at] >= 192 else reply.index(b"\0", at) - at + 1
        kind, _, _, size = struct.unpack(">HHIH", reply[at:at + 10])
        data = reply[at + 10:at + 10 + size]
        if kind in (1, 28):
            found.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, data))
        at += 10 + size
    return {"rcode": flags & 15, "truncated": bool(flags & 0x200), "addresses": found,
            "question": text(reply[12:])}


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def dns(name, kind=1, server=None, tcp=False, packet=None, timeout=10, connected=True):
    """Sends a DNS question without libc's resolver and returns the parsed reply. With
    connected=False, recvfrom() is used, and the reply must come from the server's address."""
    server = server or nameservers()[0]
    packet = packet or question(name, kind)
    if tcp:
        with socket.create_connection((server, 53), timeout) as s:
            s.sendall(struct.pack(">H", len(packet)) + packet)
            size = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))[0]
            return parse(s.recv(size, socket.MSG_WAITALL))
    with socket.socket(family_of(server), socket.SOCK_DGRAM) as s:
        s.settimeout(timeout)
        if connected:
            s.connect((server, 53))
            s.send(packet)
            return parse(s.recv(4096))
        s.sendto(packet, (server, 53))
        reply, peer = s.recvfrom(4096)
        assert peer[:2] == (server, 53), f"asked {server}, answered by {peer}"
        return parse(reply)


def asked(name, **kw):
    """Like dns(), with up to 10 tries: after a flood of questions, a question may be lost."""
    for _ in range(10):
        got = tried(dns, name, timeout=3, **kw)
        if got["value"]:
            break
    return got


def command(*argv, env=None, timeout=20):
    """A program's exit status and output."""
    r = subprocess.run(argv, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL,
                       env={**os.environ, **(env or {})}, check=False)
    return {"code": r.returncode, "out": text(r.stdout), "err": text(r.stderr)[-500:]}
