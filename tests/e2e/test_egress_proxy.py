"""Egress through the owner's upstream proxy: which requests arrive there, which never do, and
that only the dialler gets the proxy's credentials.

The proxy (net_proxy.py) is at 10.77.0.1, a private address that no test grants: the owner's
proxy setting allows the proxy's own address. Only the proxy can resolve `far.example.test`,
which is a server of the outside world."""
import json
import os
import pathlib
import subprocess
import time

import pytest

import harness
import net_proxy
from harness import BY_USER
from net_fixtures import GRANT, PROMPT, net, outside, rule
from net_servers import PRIVATE

PORT = 3128
URL = f"http://{PRIVATE}:{PORT}"
SECRET_URL = f"http://{net_proxy.USER}:{net_proxy.PASSWORD}@{PRIVATE}:{PORT}"
FAR = rule("far.example.test", 80, 443, 7001, 7002, 7003)
ECHO = "show(tried(raw, 'far.example.test', 7001, 'hello', half_close=True))"


class Proxy:
    """Starts net_proxy.py in the outside world and reads its log."""

    def __init__(self, net, mode):
        self.log = net.runner.base / f"proxy-{mode}.log"
        self.log.write_text("")
        self.process = subprocess.Popen(
            [*net.world.enter, harness.PYTHON, net_proxy.__file__, str(PORT), self.log, mode],
            stdout=subprocess.PIPE, text=True, env={"PATH": harness.PATH})
        assert self.process.stdout.readline() == "ready\n"

    def requests(self):
        time.sleep(0.1)
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def targets(self):
        return [r["target"] for r in self.requests()]

    def close(self):
        self.process.kill()
        self.process.communicate(timeout=10)


@pytest.fixture
def proxy(net):
    """Starts a proxy of the given mode."""
    running = []

    def start(mode="open"):
        running.append(Proxy(net, mode))
        return running[-1]
    yield start
    for p in running:
        p.close()


def policy(net, text):
    net.runner.write(net.runner.home / ".config/skillsandbox/policy.yaml", text, 0o600)


def data(events):
    assert len(events) == 1, events
    return events[0]["data"]


@pytest.mark.parametrize("client", ["urllib", "curl"])
@pytest.mark.parametrize("how", ["https_proxy", "policy"])
def test_tls_by_the_proxy(net, proxy, client, how):
    """The proxy gets the name itself: the sandbox does not resolve the name, and does not check the
    address that the proxy finds."""
    p = proxy("auth")
    code = {"urllib": """
import urllib.request
with urllib.request.urlopen('https://far.example.test/hello', context=context(), timeout=10) as r:
    show(r.read().decode())
""", "curl": """
show(command('curl', '-sS', '--max-time', '10', '--cacert', CA,
             'https://far.example.test/hello')['out'])
"""}[client]
    env = {"https_proxy": SECRET_URL} if how == "https_proxy" else None
    if how == "policy":
        policy(net, f"network:\n  upstream_proxy: {SECRET_URL}\n")
    assert '"/hello"' in net.probe(code, [rule("far.example.test", 443)], flags=(), env=env)
    assert [(r["target"], r["auth"]) for r in p.requests()] == \
        [("far.example.test:443", net_proxy.WANTED)]
    got = net.seen()
    assert [c["sni"] for c in got["connections"]] == ["far.example.test"]
    assert got["queries"] == [], "no resolver was asked for the name"
    event = data(net.allowed("far.example.test", 443))
    assert event["via"] == "proxy" and event["address_dialled"] == PRIVATE, event
    # Without the proxy the name does not exist.
    policy(net, "network: {upstream_proxy: none}\n")
    r = net.inside(code, [rule("far.example.test", 443)], flags=(), env=env)
    assert "/hello" not in r.text and net.seen()["connections"] == []
    assert len(p.requests()) == 1
    assert net.blocked("far.example.test", 443, "no_name")


def test_all_protocols_pass(net, proxy):
    """Plain HTTP, raw bytes and a server that sends first: all work through the proxy, and the end
    of each side's data arrives."""
    p = proxy("greedy")
    code = r"""
    def banner():
        with socket.create_connection(('far.example.test', 7002), 5) as s:
            return text(s.recv(100))
    show([tried(banner), tried(raw, 'far.example.test', 7001, 'a', 'b', half_close=True),
          tried(raw, 'far.example.test', 80,
                'GET /x HTTP/1.1\r\nHost: far.example.test\r\nConnection: close\r\n\r\n')])
    """
    got = net.probe(code, [FAR], flags=(), env={"all_proxy": URL + "/"})
    assert got[0]["value"] == "220 ready\r\n", "in one segment with the proxy's answer"
    assert got[1]["value"] == "abEND", got
    assert '"/x"' in (got[2]["value"] or ""), got
    assert p.targets() == [f"far.example.test:{n}" for n in (7002, 7001, 80)]
    assert {r["auth"] for r in p.requests()} == {None}


def test_bulk_is_byte_exact(net, proxy):
    proxy()
    code = """
    import hashlib
    block = b"".join(struct.pack(">I", i * 2654435761 & 0xffffffff) for i in range(16384))
    def down():
        digest = hashlib.sha256()
        with socket.create_connection(('far.example.test', 7003), 10) as s:
            s.sendall(b'DOWN %d\\n' % (8 << 20))
            while data := s.recv(1 << 20):
                digest.update(data)
        return digest.hexdigest() == hashlib.sha256(block * (8 << 20 >> 16)).hexdigest()
    show(tried(down))
    """
    assert net.probe(code, [FAR], flags=(), env={"https_proxy": URL})["value"] is True


def test_checks_come_before_the_proxy(net, proxy):
    """A connection that is not declared, or that shows another name, never reaches the proxy."""
    p = proxy()
    code = r"""
    show([tried(tls, 'far.example.test', 443, sni='other.example.test'),
          tried(raw, 'far.example.test', 80, 'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n'),
          tried(raw, 'evil.test', 7001, 'loot'), tried(connect, '10.77.0.1', 3128),
          tried(raw, 'far.example.test', 7005, 'loot')])
    """
    got = net.probe(code, [FAR], flags=(), env={"all_proxy": URL})
    assert not any(r["value"] for r in got), got
    assert p.requests() == [] and net.nothing_arrived()
    assert net.blocked("far.example.test", 443, "other_sni")
    assert net.blocked("far.example.test", 80, "other_host")
    # The control: an unconfined client reaches the undeclared host through the proxy.
    assert net.control(ECHO.replace("'far.example.test', 7001, 'hello'",
                                    f"'{PRIVATE}', {PORT}, 'CONNECT evil.test:7001 HTTP/1.1"
                                    "\\r\\n\\r\\nhello'"))["value"].endswith("helloEND")
    assert p.targets() == ["evil.test:7001"]


FAILURES = [("refuse", "proxy_refused"), ("auth", "proxy_auth"), ("garbage", "proxy_broken"),
            ("endless", "proxy_broken")]


@pytest.mark.parametrize("mode,reason", FAILURES)
def test_proxy_that_opens_nothing(net, proxy, mode, reason):
    """The proxy opens no connection: the skill gets an ordinary error at once, and no connection
    is tried without the proxy."""
    p = proxy(mode)
    got = net.probe(ECHO, [FAR], flags=GRANT, env={"https_proxy": URL})
    assert not got["value"] and got["seconds"] < PROMPT, got
    # If the client's connection is reset before its connect() returns, the client tries its second
    # address, so the proxy may get the request twice.
    assert set(p.targets()) == {"far.example.test:7001"} and len(p.targets()) <= 2
    assert net.seen()["connections"] == []
    events = net.blocked("far.example.test", 7001, reason)
    assert [e["data"]["via"] for e in events] == ["proxy"] * len(p.targets()), events


def test_proxy_that_is_not_there(net):
    got = net.probe(ECHO.replace("far", "api"), [rule("api.example.test", 7001)],
                    env={"https_proxy": URL})
    assert not got["value"] and got["seconds"] < PROMPT, got
    assert net.seen()["connections"] == [], "although a direct way was there"
    assert net.blocked("api.example.test", 7001, "proxy_unreachable")
    assert net.probe(ECHO.replace("far", "api"), [rule("api.example.test", 7001)])["value"]


@BY_USER
def test_silent_proxy_times_out(net, proxy):
    proxy("silent")
    code = """
    def wait():
        with socket.create_connection(('far.example.test', 7001), 5) as s:
            s.settimeout(40)
            return text(s.recv(10))
    show(tried(wait))
    """
    got = net.probe(code, [FAR], flags=(), env={"https_proxy": URL})
    assert got["errno"] == "ECONNRESET" and 10 < got["seconds"] < 35, got
    assert net.blocked("far.example.test", 7001, "timeout")


def test_no_proxy(net, proxy):
    """Hosts of no_proxy are dialled directly, and their addresses are checked."""
    p = proxy()
    code = """
    show([tried(raw, h, 7001, 'x', half_close=True)
          for h in ('api.example.test', 'sub.wild.test', 'far.example.test')])
    """
    rules = [rule(h, 7001) for h in ("api.example.test", "*.wild.test", "far.example.test")]
    env = {"https_proxy": URL, "no_proxy": "api.example.test, .wild.test,10.0.0.0/8"}
    got = net.probe(code, rules, env=env)
    assert [r["value"] for r in got] == ["xEND"] * 3, got
    assert p.targets() == ["far.example.test:7001"]
    assert "via" not in data(net.allowed("api.example.test", 7001))
    got = net.probe(code, rules, env=env, flags=())
    assert [r["value"] for r in got] == [None, None, "xEND"], got
    assert net.blocked("api.example.test", 7001, "guarded", "loopback")
    policy(net, f"network: {{upstream_proxy: '{URL}', no_proxy: ['*']}}\n")
    got = net.probe(code, rules, env={})
    assert [r["value"] for r in got] == ["xEND", "xEND", None] and len(p.requests()) == 2


def test_addresses_are_judged_here(net, proxy):
    """A rule names an address: the sandbox checks it before the proxy gets it. Addresses of this
    machine are dialled directly, never through the proxy."""
    p = proxy()
    policy(net, f"network: {{allow_literal_addresses: true, upstream_proxy: '{URL}'}}\n")
    hosts = [PRIVATE, "169.254.169.254", "127.0.0.1"]
    code = f"show([tried(raw, h, 7001, 'x', half_close=True) for h in {hosts}])"
    rules = [rule(h, 7001) for h in hosts]
    got = net.probe(code, rules, flags=())
    assert not any(r["value"] for r in got), got
    assert p.requests() == [] and net.seen()["connections"] == []
    assert net.blocked(PRIVATE, 7001, "guarded", "private")
    got = net.probe(code, rules, flags=("--allow-private", "10.0.0.0/8", *GRANT))
    assert [r["value"] for r in got] == ["xEND", None, "xEND"], got
    assert p.targets() == [f"{PRIVATE}:7001"]


UDP = """
def ask(host):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(%d)
    s.connect((host, 7005))
    s.send(b'loot')
    return text(s.recv(100))
show(tried(ask, 'api.example.test'))
"""


def test_udp_does_not_go_past_it_unsaid(net, proxy):
    p = proxy()
    rules = [rule("api.example.test", 7005, protocol="udp")]
    env = {"https_proxy": URL}
    plan = net.runner.ssb("inspect", net.skill(UDP % 4, rules), env=env).ok().text
    assert "udp cannot pass the proxy" in plan
    assert net.probe(UDP % 4, rules, env=env)["value"] is None
    assert net.seen()["datagrams"] == [] and net.blocked("api.example.test", 7005, "proxy_no_udp")
    assert net.probe(UDP % 20, rules, env={**env, "no_proxy": "example.test"})["value"] == "LOOT"
    policy(net, "network: {udp_direct: true}\n")
    assert net.probe(UDP % 20, rules, env=env)["value"] == "LOOT"
    assert p.requests() == []


@pytest.mark.parametrize("value", ["socks5://u:decoy-pw@p:1080", "https://u:decoy-pw@p:1",
                                   "http://u:decoy-pw@p"])
def test_proxies_that_are_refused(net, value):
    """The setting of the proxy is invalid: nothing starts, and the message does not show the
    password."""
    r = net.inside(ECHO, [FAR], env={"ALL_PROXY": value})
    assert r.code == 125 and "the proxy in ALL_PROXY" in r.errors, r
    assert "decoy-pw" not in r.errors + r.text
    policy(net, f"network: {{upstream_proxy: '{value}'}}\n")
    r = net.inside(ECHO, [FAR])
    assert r.code == 125 and "upstream_proxy" in r.errors and "decoy-pw" not in r.errors, r
    assert net.nothing_arrived()
    policy(net, "network: {upstream_proxy: none}\n")
    net.inside(ECHO, [FAR], env={"ALL_PROXY": value}).ok()


def test_inspect_and_plan_show_it(net, proxy):
    proxy("auth")
    env = {"https_proxy": SECRET_URL, "no_proxy": "corp.test"}
    skill = net.skill(ECHO, [FAR])
    text = net.runner.ssb("inspect", skill, env=env).ok().text
    assert f"goes through the proxy {URL}, with credentials" in text and "corp.test" in text
    net.world.reset()
    assert net.runner.run(skill, env=env).ok().json()["value"] == "helloEND"
    for path in (net.runner.state / "skillsandbox").rglob("*"):
        if path.is_file():
            content = path.read_text()
            assert net_proxy.PASSWORD not in content and net_proxy.WANTED[6:] not in content, path
            assert path.name != "trace.json" or URL in content or "proxy" in content
    assert net_proxy.PASSWORD not in text and net_proxy.USER + ":" not in text


PEEK = """
import glob, json, os, socket, sys
def read(path):
    try:
        return open(path, errors='replace').read()
    except OSError:
        return ''
with socket.create_connection(('far.example.test', 7001), 5) as s:
    s.sendall(b'x')
    value = s.recv(10).decode()
seen = [read(p) for p in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline')]
print(json.dumps([value, seen, [k for k in os.environ if 'proxy' in k.lower()]]), flush=True)
sys.stdin.readline()
"""


def writable_memory(pid):
    """Yields all writable memory of a process, in which it could have kept a secret."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            span, modes = line.split()[:2]
            start, end = (int(x, 16) for x in span.split("-"))
            if modes.startswith("rw"):
                mem.seek(start)
                try:
                    yield mem.read(end - start)
                except OSError:
                    pass


def pieces(secret, size=8):
    return {secret[i:i + size].encode() for i in range(len(secret) - size + 1)}


def holds_secret(pid):
    words = pieces(net_proxy.PASSWORD) | pieces(net_proxy.WANTED[6:])
    return sorted({w for block in writable_memory(pid) for w in words if w in block})


def descendants(pid):
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            yield child
            yield from descendants(child)


def is_dialler(pid, supervisor):
    """True for the dialler: it is in the supervisor's network namespace and, unlike the broker,
    has no epoll."""
    proc = pathlib.Path(f"/proc/{pid}")
    return (os.readlink(proc / "ns/net") == os.readlink(f"/proc/{supervisor}/ns/net")
            and "anon_inode:[eventpoll]" not in harness.open_files(pid))


@pytest.mark.parametrize("how", ["https_proxy", "policy"])
def test_credentials_are_the_diallers_alone(net, proxy, how):
    """Only the memory of the dialler has the proxy's credentials; not even a part of them is in the
    memory of the broker, of init or of the skill."""
    proxy("auth")
    env = {"https_proxy": SECRET_URL} if how == "https_proxy" else None
    if how == "policy":
        policy(net, f"network:\n  upstream_proxy: {SECRET_URL}\n")
    argv = [net.runner.binary, "run", "--net", "far.example.test:7001", "--", harness.PYTHON, "-c",
            PEEK]  # no manifest: reading one could overwrite memory that still has the secret
    p = net.runner.popen(argv, env=env, stdin=-1, stdout=-1, stderr=-1)
    try:
        line = p.stdout.readline()
        assert line, p.stderr.read()
        value, seen, variables = json.loads(line)
        assert value == "x" and variables == [] and net_proxy.PASSWORD not in str(seen)
        top = next(pid for pid in [p.pid, *descendants(p.pid)]
                   if b"skillsandbox" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                   and len(list(descendants(pid))) >= 4)
        kept = {pid: holds_secret(pid) for pid in descendants(top)}
        status = {pid: pathlib.Path(f"/proc/{pid}/status").read_text() for pid in kept}
        confined = [pid for pid in kept if "Seccomp:\t2" in status[pid]]
        assert len(kept) == len(confined) == 4, "dialler, broker, init and skill"
        dialler = [pid for pid in kept if is_dialler(pid, top)]
        assert len(dialler) == 1 and [pid for pid in kept if kept[pid]] == dialler
    finally:
        p.communicate(b"\n", timeout=20)
    assert p.returncode == 0
