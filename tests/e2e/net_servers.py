"""net_servers.py DIRECTORY - the outside world of the egress tests: servers and
a resolver in network namespaces without a way to the real network.

net_fixtures.py starts it in new network and mount namespaces. Their /etc/hosts,
resolv.conf, nsswitch.conf and CA certificates are made for the tests, and lo has
addresses of several ranges.

Everything that arrives is counted in three ways: each connection with its
bytes, each DNS question, and the kernel's own counters of the namespace.

  443, 8443  HTTPS           80, 8080  HTTP         7001  echo, sends END after EOF
  7002  sends first, then echoes      7003  UP n, DOWN n, RST      7004  reads all
  7005  UDP echo
  53  resolver (UDP, TCP) on 127.0.0.1

A second network namespace acts as another machine with the same servers. Its address
PUBLIC is reached through a router; its address NEIGHBOUR is on the same network.
"""
import base64
import ctypes
import errno
import functools
import hashlib
import http.server
import io
import json
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse

import harness
from net_drain import drained, taken

LOCAL = "127.0.0.1"
PRIVATE = "10.77.0.1"         # on lo; only some tests grant it
PRIVATE6 = "fd77::1"
PUBLIC = "93.184.215.14"      # on the other machine; a public address needs no grant
OWN = "93.184.216.34"         # public, but on lo
SECOND = "93.184.216.35"      # on lo, same network as OWN: the kernel uses OWN as source address
OWN6 = "2606:2800:220:1::34"
NEIGHBOUR = "93.184.217.2"    # public, and in the same network as NEAR
NEAR = "93.184.217.1"
NEIGHBOUR6, NEAR6 = "2606:2800:220:2::2", "2606:2800:220:2::1"
ROUTER, ROUTED = "172.31.255.2", "172.31.255.1"
METADATA = "169.254.169.254"  # on lo: a server really answers there
IPV6_FREEBIND = 78
RANGES = ("10.78.0.0/15", "fd78::/47")  # every address of these ranges is on lo

# Names in /etc/hosts; all other names are known only to the resolver.
HOSTS = {
    LOCAL: "localhost api.example.test other.example.test api.example.test.evil.test "
           "evilapi.example.test evil.test sub.wild.test deep.sub.wild.test wild.test",
    PRIVATE: "private.example.test",
    PUBLIC: "public.example.test api.openweathermap.org",
    OWN: "own.example.test",
    SECOND: "second.example.test",
    OWN6: "own6.example.test",
    NEIGHBOUR: "neighbour.example.test",
    NEIGHBOUR6: "neighbour6.example.test",
    METADATA: "metadata.example.test",
}
# Records of the resolver: name -> type -> list of answers. Each question gets the next answer of
# the list; all later ones get the last.
ZONE = {
    "dns.example.test": {"A": [[LOCAL]], "AAAA": [["::1"]]},
    "v6.example.test": {"AAAA": [["::1"]]},
    "v4.example.test": {"A": [[LOCAL]]},
    "rebind.example.test": {"A": [[LOCAL], [PRIVATE]]},
    "mixed.example.test": {"A": [[PRIVATE, METADATA, LOCAL]]},
    "mapped.example.test": {"AAAA": [["::ffff:10.77.0.1"]]},
    "ula.example.test": {"AAAA": [[PRIVATE6]]},
    "zero.example.test": {"A": [["0.0.0.0"]]},
    "gone.example.test": {},
    "slow.example.test": None,  # never answered
}
GOOD = ["api.example.test", "*.example.test", "*.wild.test", "*.sub.wild.test", "wild.test",
        "localhost", "api.openweathermap.org"]
EVIL = ["evil.test", "*.evil.test", "api.example.test.evil.test"]


def pattern(n):
    """Returns n bytes with few repetitions, so that a test notices lost or moved parts. Client and
    server make the same bytes."""
    block = b"".join(struct.pack(">I", i * 2654435761 & 0xffffffff) for i in range(16384))
    return (block * (n // len(block) + 1))[:n]


class World:
    """Records everything that arrived."""

    def __init__(self, top):
        self.top = top
        self.lock = threading.RLock()
        self.connections = []
        self.queries = []
        self.datagrams = []
        self.turns = {}
        self.zone = dict(ZONE)

    def connection(self, sock):
        address, port = sock.getsockname()[:2]
        record = {"port": port, "address": address.removeprefix("::ffff:"), "bytes": 0,
                  "first": "", "data": "", "sni": None, "requests": [], "end": None}
        with self.lock:
            self.connections.append(record)
        return record

    def seen(self):
        with self.lock:
            return {"connections": self.connections, "queries": self.queries,
                    "datagrams": self.datagrams, "kernel": kernel_counters()}

    def reset(self):
        with self.lock:
            self.connections, self.queries, self.datagrams = [], [], []
            self.turns.clear()

    def answer(self, name, kind):
        """The addresses for this question, by the rule of ZONE. None: the name does not exist."""
        with self.lock:
            self.queries.append([name, kind])
            if name not in self.zone:
                return None
            turns = (self.zone[name] or {}).get(kind)
            if not turns:
                return []
            i = self.turns[name, kind] = self.turns.get((name, kind), -1) + 1
            return turns[min(i, len(turns) - 1)]


def kernel_counters():
    """The kernel's counters of the namespace: connects, and datagrams sent."""
    lines = pathlib.Path("/proc/net/snmp").read_text(encoding="ascii").splitlines()
    table = {}
    for names, values in zip(lines[::2], lines[1::2]):
        proto = names.split(":")[0]
        table.update({proto + k: int(v) for k, v in zip(names.split()[1:], values.split()[1:])})
    six = pathlib.Path("/proc/net/snmp6").read_text(encoding="ascii").split()
    six = dict(zip(six[::2], map(int, six[1::2])))
    return {"connects": table["TcpActiveOpens"],
            "datagrams": table["UdpOutDatagrams"] + six.get("Udp6OutDatagrams", 0)}


class Counted:
    """A file that reads from a socket and records what it read."""

    def __init__(self, file, record):
        self.file, self.record = file, record

    def note(self, data):
        self.record["bytes"] += len(data)
        self.record["data"] = (self.record["data"] + data[:4096].decode("latin-1"))[:65536]
        return data

    def read(self, n=-1):
        return self.note(self.file.read(n))

    def readline(self, n=-1):
        return self.note(self.file.readline(n))

    def close(self):
        self.file.close()


@functools.cache
def package_tarball():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=0) as tar:
        for name, text in (("package.json", '{"name": "threes", "version": "1.0.0"}'),
                           ("index.js", "module.exports = 3;")):
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class Web(http.server.BaseHTTPRequestHandler):
    """Answers a GET with JSON about the request; special paths are /bytes/N, /redirect?to=URL,
    /ws, /git/*, /push/* (a repository that takes pushes), /npm/* (a registry with one package) and
    the weather. A POST is answered with the length and SHA-256 of its body.
    "Expect: 100-continue" to /refuse is answered with 417; no body must follow, so the next
    bytes are read as the next request."""
    protocol_version = "HTTP/1.1"
    timeout = 20
    world = record = None

    def setup(self):
        super().setup()
        self.rfile = Counted(self.rfile, self.record)

    def log_message(self, *_):
        pass

    def reply(self, code, body, **headers):
        self.send_response(code)
        for k, v in headers.items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer(self):
        host = self.headers.get("Host")
        self.record["requests"].append([self.command, host, self.path])
        url = urllib.parse.urlsplit(self.path)
        if url.path.startswith("/push/"):
            self.push(url)
        elif self.command in ("POST", "PUT"):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.reply(200, json.dumps({"length": len(body), "sha256":
                                        hashlib.sha256(body).hexdigest()}).encode())
        elif url.path.startswith("/bytes/"):
            self.reply(200, pattern(int(url.path.rsplit("/", 1)[1])))
        elif url.path == "/redirect":
            self.reply(302, b"", Location=urllib.parse.parse_qs(url.query)["to"][0])
        elif url.path == "/ws" and self.headers.get("Upgrade"):
            self.upgrade()
        elif url.path == "/data/2.5/weather":
            self.reply(200, json.dumps({"main": {"temp": 21.5}, "weather": [
                {"description": "as the server says"}]}).encode())
        elif url.path.startswith("/git/"):
            self.file(url.path[5:])
        elif url.path.startswith("/npm/"):
            self.package(host, url.path[5:])
        else:
            self.reply(200, json.dumps({"host": host, "path": self.path,
                                        "sni": self.record["sni"]}).encode())
    do_GET = do_POST = do_PUT = do_HEAD = do_CONNECT = do_OPTIONS = answer

    def handle_expect_100(self):
        if self.path != "/refuse":
            return super().handle_expect_100()
        self.record["requests"].append([self.command, self.headers.get("Host"), self.path])
        self.reply(417, b"no")
        return False

    def file(self, name):
        path = (self.world.top / "git" / name).resolve()
        inside = str(path).startswith(str(self.world.top / "git") + "/")
        if inside and path.is_file():
            self.reply(200, path.read_bytes())
        else:
            self.reply(404, b"")

    def push(self, url):
        """Git's own server for its protocol over HTTP, as a CGI program."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        env = {"PATH": harness.PATH, "GIT_PROJECT_ROOT": str(self.world.top / "push"),
               "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "t", "REQUEST_METHOD": self.command,
               "PATH_INFO": url.path[5:], "QUERY_STRING": url.query, "REMOTE_ADDR": LOCAL,
               "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "CONTENT_LENGTH": str(len(body)), "HOME": str(self.world.top),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", "")}
        done = subprocess.run(["/usr/lib/git-core/git-http-backend"], input=body, env=env,
                              capture_output=True, timeout=30, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.reply(int(fields.pop("Status", "200").split()[0]), content, **fields)

    def package(self, host, name):
        """A registry with one package, `threes`, whose module is the number 3."""
        tarball = package_tarball()
        if name.endswith(".tgz"):
            return self.reply(200, tarball)
        version = {"name": "threes", "version": "1.0.0", "dist": {
            "tarball": f"https://{host}/npm/threes-1.0.0.tgz",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()}}
        return self.reply(200, json.dumps({
            "name": "threes", "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": version}}).encode())

    def upgrade(self):
        self.send_response(101)
        self.send_header("Upgrade", "raw")
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        while data := self.connection.recv(65536):
            self.record["bytes"] += len(data)
            self.connection.sendall(data.upper())
        self.close_connection = True


def serve_web(world, sock, record, tls):
    record["first"] = sock.recv(64, socket.MSG_PEEK).decode("latin-1")
    if tls:
        record["bytes"] += len(record["first"])
        sock = tls.wrap_socket(sock, server_side=True)
        record["sni"] = getattr(sock, "asked_name", None)
    type("Bound", (Web,), {"world": world, "record": record})(sock, sock.getpeername(), None)
    sock.close()


def serve_echo(world, sock, record, _):
    while data := sock.recv(65536):
        record["bytes"] += len(data)
        record["first"] = record["first"] or data[:64].decode("latin-1")
        sock.sendall(data)
    sock.sendall(b"END")


def serve_banner(world, sock, record, _):
    sock.sendall(b"220 ready\r\n")
    serve_echo(world, sock, record, None)


def serve_sink(world, sock, record, _):
    """Reads until the connection ends, and records how it ended: EOF or an error."""
    try:
        while data := sock.recv(65536):
            record["bytes"] += len(data)
        record["end"] = "EOF"
    except OSError as e:
        record["end"] = errno.errorcode[e.errno]


def serve_bulk(world, sock, record, _):
    file = Counted(sock.makefile("rb"), record)
    word, _, number = file.readline(64).decode("latin-1").strip().partition(" ")
    record["first"] = f"{word} {number}"
    if word == "UP":
        digest, left = hashlib.sha256(), int(number)
        while left and (data := file.read(min(left, 1 << 20))):
            digest.update(data)
            left -= len(data)
        sock.sendall(digest.hexdigest().encode())
    elif word == "DOWN":
        sock.sendall(pattern(int(number)))
    elif word == "URGENT":  # sends an out-of-band byte in the middle
        sock.sendall(pattern(int(number)))
        sock.send(b"!", socket.MSG_OOB)
        sock.sendall(pattern(int(number)))
    elif word == "FULL":  # sends an answer and closes; the rest of the data is not read
        sock.sendall(b"no more")
        return
    elif word == "RST":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif word == "SLOW":  # reads nothing for 1 s, then everything
        time.sleep(1)
        digest = hashlib.sha256()
        while data := file.read(1 << 16):
            digest.update(data)
        sock.sendall(digest.hexdigest().encode())
    file.close()


def listen(world, port, serve, tls=None):
    """Listens on `port` for IPv4 and IPv6; serves each connection in its own thread."""
    server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True,
                                  backlog=512)

    def one(sock, record):
        sock.settimeout(20)
        try:
            serve(world, sock, record, tls)
        except (OSError, ValueError):
            pass
        finally:
            sock.close()

    def accept():
        for connection in taken(server, world.lock, world.connection):
            threading.Thread(target=one, args=connection, daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


def udp_echo(world, port):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    sock.bind(("::", port))
    while True:
        data, asked, _, peer = sock.recvmsg(65535, socket.CMSG_SPACE(20))
        with world.lock:
            world.datagrams.append([port, len(data), data[:64].decode("latin-1")])
        # The answer comes from the address to which the client sent.
        sock.sendmsg([data.upper()], asked, 0, peer)


def dns_reply(world, query):
    end, labels = 12, []
    while query[end]:
        labels.append(query[end + 1:end + 1 + query[end]].decode("latin-1"))
        end += query[end] + 1
    question = query[12:end + 5]
    kind = {1: "A", 28: "AAAA"}.get(struct.unpack(">H", question[-4:-2])[0], "other")
    name = ".".join(labels).lower()
    addresses = world.answer(name, kind)
    if name in world.zone and world.zone[name] is None:
        return None
    body = b""
    for a in addresses or []:
        data = socket.inet_pton(socket.AF_INET if kind == "A" else socket.AF_INET6, a)
        body += b"\xc0\x0c" + question[-4:] + struct.pack(">IH", 0, len(data)) + data
    flags = 0x8180 if addresses is not None else 0x8183
    return query[:2] + struct.pack(">HHHHH", flags, 1, len(addresses or []), 0, 0) \
        + question + body


def resolver(world):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((LOCAL, 53))
    while True:
        query, peer = sock.recvfrom(4096)
        try:
            reply = dns_reply(world, query)
            if reply:
                sock.sendto(reply, peer)
        except (IndexError, struct.error):
            with world.lock:
                world.queries.append(["malformed", query.hex()])


def resolver_tcp(world, sock, record, _):
    size = sock.recv(2)
    query = sock.recv(struct.unpack(">H", size)[0])
    record["bytes"] += len(query) + 2
    reply = dns_reply(world, query) or b""
    sock.sendall(struct.pack(">H", len(reply)) + reply)


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, timeout=30)


EC_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def authority(top, name):
    """Makes a CA: ca.pem and ca.key."""
    openssl("req", "-x509", *EC_KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout",
            top / "ca.key", "-out", top / "ca.pem", "-addext",
            "keyUsage=critical,keyCertSign,cRLSign")


def certificate(top, file, names):
    """Makes FILE.pem and FILE.key, signed by the CA in `top`, for names such as DNS:x."""
    ext = top / f"{file}.ext"
    ext.write_text("basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
                   f"subjectAltName={','.join(names)}\n", encoding="ascii")
    openssl("req", *EC_KEY, "-subj", f"/CN={names[0].partition(':')[2]}", "-keyout",
            top / f"{file}.key", "-out", top / f"{file}.csr")
    openssl("x509", "-req", "-in", top / f"{file}.csr", "-CA", top / "ca.pem", "-CAkey",
            top / "ca.key", "-CAcreateserial", "-days", "2", "-extfile", ext, "-out",
            top / f"{file}.pem")


def certificates(top):
    """Makes a CA (ca.pem) and a certificate for each group of names (GROUP.pem)."""
    authority(top, "Test CA")
    for group, names in (("good", GOOD), ("evil", EVIL)):
        certificate(top, group, [f"DNS:{n}" for n in names])


def tls_context(top):
    contexts = {}
    for group in ("good", "evil"):
        contexts[group] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[group].load_cert_chain(top / f"{group}.pem", top / f"{group}.key")

    def choose(sock, name, _):
        sock.asked_name = name
        if name and name.endswith("evil.test"):
            sock.context = contexts["evil"]
    contexts["good"].sni_callback = choose
    return contexts["good"]


def git_repository(top):
    """Makes a bare repository that git can clone over plain HTTP."""
    env = {"PATH": harness.PATH, "HOME": str(top), "GIT_CONFIG_NOSYSTEM": "1"}
    work = top / "clone"
    for argv in (["init", "-q", "-b", "main", work],
                 ["-C", work, "-c", "user.name=t", "-c", "user.email=t@example.test", "commit",
                  "-q", "--allow-empty", "-m", "the only commit"],
                 ["clone", "-q", "--bare", work, top / "git/repo.git"],
                 ["-C", top / "git/repo.git", "update-server-info"],
                 ["clone", "-q", "--bare", work, top / "push/repo.git"],
                 ["-C", top / "push/repo.git", "config", "http.receivepack", "true"]):
        subprocess.run(["git", *map(str, argv)], check=True, env=env, timeout=30,
                       capture_output=True)


def set_up(top):
    """Sets the loopback addresses and the files of /etc in the new namespaces."""
    for argv in (["link", "set", "lo", "up"], ["addr", "add", PRIVATE + "/32", "dev", "lo"],
                 ["addr", "add", METADATA + "/32", "dev", "lo"],
                 ["addr", "add", OWN + "/24", "dev", "lo"],
                 ["addr", "add", SECOND + "/24", "dev", "lo"],
                 ["-6", "addr", "add", OWN6 + "/128", "dev", "lo", "nodad"],
                 ["-6", "addr", "add", PRIVATE6 + "/128", "dev", "lo", "nodad"]):
        subprocess.run(["ip", *argv], check=True, timeout=10)
    for r in RANGES:
        subprocess.run(["ip", "-6" if ":" in r else "-4", "route", "add", "local", r, "dev", "lo"],
                       check=True, timeout=10)
    hosts = "".join(f"{a} {names}\n" for a, names in HOSTS.items()) + "::1 localhost\n"
    for name, text in (("hosts", hosts), ("resolv.conf", f"nameserver {LOCAL}\n"),
                       ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")):
        (top / name).write_text(text, encoding="ascii")
        subprocess.run(["mount", "--bind", top / name, os.path.realpath(f"/etc/{name}")],
                       check=True, timeout=10)
    certificates(top)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "ssb-ca", "/etc/ssl/certs"],
                   check=True, timeout=10)
    ca = (top / "ca.pem").read_bytes()
    pathlib.Path("/etc/ssl/certs/ca-certificates.crt").write_bytes(ca)
    openssl("rehash", "/etc/ssl/certs")


def ip(*argv):
    subprocess.run(["ip", *argv], check=True, timeout=10)


def other_machine(then, *args):
    """Moves the calling thread to a new network namespace, connects it with the first one, and
    calls `then`. All threads that this thread starts are in the new namespace, too."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")
    ip("link", "set", "lo", "up")
    ip("link", "add", "far", "type", "veth", "peer", "name", "near", "netns", str(os.getpid()))
    ip("addr", "add", PUBLIC + "/32", "dev", "lo")
    for address in (ROUTER + "/30", NEIGHBOUR + "/24"):
        ip("addr", "add", address, "dev", "far")
    ip("-6", "addr", "add", NEIGHBOUR6 + "/64", "dev", "far", "nodad")
    ip("link", "set", "far", "up")
    then(*args)


def way_to_it():
    for address in (ROUTED + "/30", NEAR + "/24"):
        ip("addr", "add", address, "dev", "near")
    ip("-6", "addr", "add", NEAR6 + "/64", "dev", "near", "nodad")
    ip("link", "set", "near", "up")
    ip("route", "add", PUBLIC, "via", ROUTER)


def serve_all(world, tls):
    for port, serve, context in ((443, serve_web, tls), (8443, serve_web, tls),
                                 (80, serve_web, None), (8080, serve_web, None),
                                 (7001, serve_echo, None), (7002, serve_banner, None),
                                 (7003, serve_bulk, None), (7004, serve_sink, None)):
        listen(world, port, serve, context)
    threading.Thread(target=udp_echo, args=(world, 7005), daemon=True).start()


def main():
    """Sets up the namespaces, starts the servers, prints "ready" and executes commands of stdin."""
    top = pathlib.Path(sys.argv[1])
    set_up(top)
    git_repository(top)
    world = World(top)
    tls = tls_context(top)
    serve_all(world, tls)
    listen(world, 53, resolver_tcp)
    far = threading.Thread(target=other_machine, args=(serve_all, world, tls))
    far.start()
    far.join()
    way_to_it()
    threading.Thread(target=resolver, args=(world,), daemon=True).start()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        word = json.loads(line)
        with drained(world.lock):
            if word == "reset":
                world.reset()
            answer = json.dumps(world.seen())
        print(answer, flush=True)


if __name__ == "__main__":
    main()
