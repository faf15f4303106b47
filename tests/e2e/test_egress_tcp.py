"""Declared connections work, for real clients and for unusual ones."""
import hashlib
import json
import os
import re

import pytest

import harness
from harness import BY_USER
from net_fixtures import GRANT, PROMPT, net, outside, rule
from net_servers import pattern

API = rule("api.example.test", 443)
WEB = rule("api.example.test", 80)
ECHO = rule("api.example.test", 7001)
ALL = rule("api.example.test", 80, 443, 7001, 7002, 7003)

CLIENTS = {
    "urllib": """
import urllib.request
with urllib.request.urlopen(URL + '/hello', context=context(), timeout=10) as r:
    show(r.read().decode())
""",
    "curl": "show(command('curl', '-sS', '--max-time', '10', '--cacert', CA, URL + '/hello')['out'])",
    "node": """
show(command('node', '-e', f"fetch('{URL}/hello').then(r => r.text()).then(console.log)",
             env={'NODE_EXTRA_CA_CERTS': CA})['out'])
""",
    "s_client": """
import subprocess
r = subprocess.run(['openssl', 's_client', '-quiet', '-verify_return_error', '-CAfile', CA,
                    '-connect', 'api.example.test:443', '-servername', 'api.example.test'],
                   input=b'GET /hello HTTP/1.0\\r\\nHost: api.example.test\\r\\n\\r\\n',
                   capture_output=True, timeout=20)
show(r.stdout.decode())
""",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_tls_clients(net, client):
    code = "URL = 'https://api.example.test'\n" + CLIENTS[client]
    assert '"/hello"' in net.probe(code, [API], resources={"memory_mb": 1024})
    got = net.seen()
    assert [c["sni"] for c in got["connections"]] == ["api.example.test"]
    assert got["connections"][0]["requests"][0][2] == "/hello"
    assert got["queries"] == [], "the hosts file knew it"
    # The control: with a rule for another name only, the same code gets no answer.
    r = net.inside(code, [rule("other.example.test", 443)], resources={"memory_mb": 1024})
    assert "/hello" not in r.text
    assert net.seen()["connections"] == []


@pytest.mark.parametrize("client", ["urllib", "curl", "node"])
def test_http_clients(net, client):
    code = "URL = 'http://api.example.test'\n" + CLIENTS[client].replace(", context=context()", "")
    assert '"/hello"' in net.probe(code, [WEB], resources={"memory_mb": 1024})
    assert net.seen()["connections"][0]["requests"] == [["GET", "api.example.test", "/hello"]]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_git_clone(net, scheme):
    code = f"""
    r = command('git', 'clone', '-q', '{scheme}://api.example.test/git/repo.git', '/tmp/r',
                env={{'GIT_SSL_CAINFO': CA, 'HOME': '/tmp'}})
    r['log'] = command('git', '-C', '/tmp/r', 'log', '--format=%s', env={{'HOME': '/tmp'}})['out']
    show(r)
    """
    got = net.probe(code, [rule("api.example.test", 443 if scheme == "https" else 80)])
    assert got["code"] == 0 and got["log"] == "the only commit\n", got
    assert net.seen()["connections"]
    got = net.probe(code, [rule("other.example.test", 443, 80)])
    assert got["code"] != 0 and net.nothing_arrived()


def test_static_program_with_its_own_resolver(net, programs):
    ask = "GET /static HTTP/1.0\r\nHost: api.example.test\r\n\r\n"
    binary = programs("netclient")
    flags = (*GRANT, "--read", binary)
    net.world.reset()
    r = net.runner.run(*flags, "--net", "api.example.test:80", "--", binary, "api.example.test",
                       "80", ask)
    assert '"/static"' in r.ok().text
    assert net.seen()["connections"]
    net.world.reset()
    r = net.runner.run(*flags, "--net", "other.example.test:80", "--", binary, "api.example.test",
                       "80", ask)
    assert r.code == 4, "no such name"
    assert net.nothing_arrived()


def test_owner_grants_a_name(net):
    net.world.reset()
    argv = ["--", "curl", "-sS", "--max-time", "10", "https://api.example.test/owner"]
    r = net.runner.run(*GRANT, "--net", "api.example.test:443", *argv)
    assert '"/owner"' in r.ok().text, "and the machine's own CA certificates are in sight"
    net.world.reset()
    assert net.runner.run(*GRANT, *argv).code != 0
    assert net.nothing_arrived()


def test_split_client_hello(net):
    code = """
    hello = hello_bytes('api.example.test')
    body = hello[5:]
    def records(size):
        return b''.join(hello[:3] + len(body[i:i + size]).to_bytes(2, 'big') + body[i:i + size]
                        for i in range(0, len(body), size))
    def handshake(parts, pause=0.002):
        with socket.create_connection(('api.example.test', 443), 10) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for p in parts:
                s.sendall(p)
                time.sleep(pause)
            s.settimeout(5)
            return text(s.recv(3))
    show({'bytes': tried(handshake, [hello[i:i + 1] for i in range(len(hello))], 0.0005),
          'halves': tried(handshake, [hello[:7], hello[7:]]),
          'records': tried(handshake, [records(50)]),
          'records of 1': tried(handshake, [records(1)])})
    """
    got = net.probe(code, [API])
    for how, r in got.items():
        # The server's OpenSSL may refuse records of one byte with an alert: then the alert counts
        # as the answer.
        assert r["value"] in ("\x16\x03\x03", "\x15\x03\x03"), f"{how}: {r}"
        if how != "records of 1":
            assert r["value"] == "\x16\x03\x03", f"{how}: {r}"
    assert len(net.seen()["connections"]) == 4


def test_http_in_all_honest_forms(net):
    code = r"""
    R = 'GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n'
    H = 'api.example.test'
    show(side_by_side(lambda parts: raw(H, 80, *parts, pause=0.02), {
        'keep-alive': [R % ('a1', H), R % ('a2', H), R % ('a3', H)],
        'pipelined': [R % ('b1', H) + R % ('b2', H) + R % ('b3', H)],
        'bytewise': list(R % ('c1', H)),
        'port': [R % ('d1', H + ':80')],
        'case': [R % ('e1', 'API.Example.TEST.')],
        'absolute': ['GET http://' + H + '/f1 HTTP/1.1\r\nHost: ' + H + '\r\n\r\n'],
        'post': ['POST /g1 HTTP/1.1\r\nHost: ' + H + '\r\nContent-Length: 5\r\n\r\n',
                 'hello' + R % ('g2', H)],
        'chunked': ['POST /h1 HTTP/1.1\r\nHost: ' + H + '\r\nTransfer-Encoding: chunked\r\n'
                    'Connection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n'],
        'old': ['GET /i1 HTTP/1.0\r\nHost: ' + H + '\r\n\r\n'],
    }))
    """
    got = net.probe(code, [WEB])
    for how, n in {"keep-alive": 3, "pipelined": 3, "post": 2}.items():
        assert (got[how]["value"] or "").count("HTTP/1.1 200") == n, f"{how}: {got[how]}"
    for how, r in got.items():
        assert "200 OK" in (r["value"] or ""), f"{how}: {r}"
    paths = {r[2] for c in net.seen()["connections"] for r in c["requests"]}
    assert {"/a1", "/a2", "/a3", "/b1", "/b2", "/b3", "/c1", "/d1", "/e1", "/g1", "/g2"} <= paths


def test_upgrade_is_raw_after_101(net):
    code = r"""
    ask = ('GET /ws HTTP/1.1\r\nHost: api.example.test\r\nUpgrade: websocket\r\n'
           'Connection: Upgrade\r\n\r\n')
    show(in_turn('api.example.test', 80, ask, 'no http at all\x00\xff', half_close=True))
    """
    got = net.probe(code, [WEB])
    assert "101" in got and "NO HTTP AT ALL\x00" in got


def test_what_is_said_before_the_answer_to_an_upgrade(net):
    """The skill sends data directly after an upgrade request: the data waits for the answer. After
    a 101 it passes as it is; after another answer it is checked as the next request."""
    code = r"""
    ask = ('GET %s HTTP/1.1\r\nHost: api.example.test\r\nUpgrade: raw\r\n'
           'Connection: Upgrade\r\n\r\n')
    then = 'GET /then HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n'
    show([tried(raw, 'api.example.test', 80, ask % '/ws' + 'at once', half_close=True),
          tried(raw, 'api.example.test', 80, ask % '/no' + then % 'api.example.test'),
          tried(raw, 'api.example.test', 80, ask % '/no' + then % 'evil.test')])
    """
    switched, refused, other = net.probe(code, [WEB])
    assert "101" in switched["value"] and switched["value"].endswith("AT ONCE"), switched
    assert refused["value"].count("200 OK") == 2 and "/then" in refused["value"], refused
    assert not other["value"] and other["errno"] == "ECONNRESET", other
    assert all(r["seconds"] < PROMPT for r in (switched, refused, other))
    hosts = {r[1] for c in net.seen()["connections"] for r in c["requests"]}
    assert hosts == {"api.example.test"}
    assert net.blocked("evil.test", "other_host")


@pytest.mark.parametrize("method,error", [("GET", None), ("RST", "ECONNRESET")])
def test_upgrade_that_is_not_answered(net, method, error):
    """The server closes or resets the connection instead of answering an upgrade request: the skill
    sees the same end at once."""
    code = f"""
    show(tried(raw, 'api.example.test', 7003, '{method} / HTTP/1.1\\r\\nUpgrade: raw\\r\\n'
               'Connection: Upgrade\\r\\nHost: api.example.test\\r\\n\\r\\n'))
    """
    got = net.probe(code, [rule("api.example.test", 7003, protocol="http")])
    assert not got["value"] and got["errno"] == error and got["seconds"] < PROMPT, got


def test_request_that_ends_in_the_middle(net):
    """The skill's data ends in the middle of the second request: the first request is answered,
    and the second is not sent."""
    code = r"""
    show(tried(raw, 'api.example.test', 80, 'GET /whole HTTP/1.1\r\nHost: api.example.test\r\n'
               '\r\nGET /half HTTP/1.1\r\nHo', half_close=True))
    """
    got = net.probe(code, [WEB])
    assert "/whole" in got["value"] and got["seconds"] < PROMPT, got
    assert "/half" not in str(net.seen()["connections"]), "never judged, never sent"


def test_server_speaks_first(net):
    code = """
    def banner():
        with socket.create_connection(('api.example.test', 7002), 5) as s:
            return text(s.recv(100))
    show(tried(banner))
    """
    got = net.probe(code, [rule("api.example.test", 7002)])
    assert got["value"] == "220 ready\r\n" and got["seconds"] < PROMPT, got
    denied = net.probe(code, [ECHO])
    assert denied["errno"] == "ECONNREFUSED" and denied["seconds"] < PROMPT, denied
    assert net.nothing_arrived()


def test_protocol_insists_on_any_port(net):
    """A rule declares `tls` or `http` on an unusual port: other data does not pass there."""
    code = r"""
    show([tried(raw, 'api.example.test', 7001, 'raw bytes\n', half_close=True),
          tried(raw, 'api.example.test', 8080, 'raw bytes\n', half_close=True),
          tried(tls, 'api.example.test', 8443),
          tried(raw, 'api.example.test', 8080, 'GET /x HTTP/1.1\r\nHost: api.example.test\r\n'
                'Connection: close\r\n\r\n')])
    """
    got = net.probe(code, [rule("api.example.test", 7001, 8443, protocol="tls"),
                           rule("api.example.test", 8080, protocol="http")])
    assert not got[0]["value"] and not got[1]["value"], got
    assert "200 OK" in (got[2]["value"] or ""), got[2]
    assert "200 OK" in (got[3]["value"] or ""), got[3]
    assert [c["port"] for c in net.seen()["connections"]] == [8443, 8080]
    control = net.probe(code, [rule("api.example.test", 7001, 8080, 8443)])
    assert control[0]["value"] == "raw bytes\nEND"


BOTH = r"""
name = 'api.example.test'
request = f'GET / HTTP/1.1\r\nHost: {name}\r\n\r\n'
show([tried(raw, name, 7001, what, half_close=True) for what in (
    hello_bytes(name), request, hello_bytes('evil.test'), request.replace('api', 'evil'), '\x01 raw')])
"""


@pytest.mark.parametrize("first,second", [("tls", "http"), ("http", "tls")])
def test_tls_and_http_on_one_port(net, first, second):
    """Two rules for one name and port, in either order: both protocols pass."""
    rules = [rule("api.example.test", 7001, protocol=p) for p in (first, second)]
    hello, request, *others = net.probe(BOTH, rules)
    assert hello["value"].endswith("END") and request["value"].endswith("END"), (hello, request)
    assert all(r["error"] and not r["value"] for r in others), others
    assert len(net.seen()["connections"]) == 2
    assert {e["data"]["protocol"] for e in net.allowed()} == {"tls", "http"}
    assert {e["data"]["reason"] for e in net.blocked()} == {"other_sni", "other_host", "not_http"}


@pytest.mark.parametrize("first,second", [("tls", "tcp"), ("tcp", "http")])
def test_any_bytes_beside_a_stricter_rule(net, first, second):
    rules = [rule("api.example.test", 7001, protocol=p) for p in (first, second)]
    assert all((r["value"] or "").endswith("END") for r in net.probe(BOTH, rules))


def test_pipelined_requests_by_the_hundred(net):
    """600 requests are sent in one piece: each is checked alone, and all are answered."""
    code = r"""
    one = 'GET /%d HTTP/1.1\r\nHost: api.example.test\r\n\r\n'
    last = one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')
    text = ''.join((one if i < 599 else last) % i for i in range(600))
    show(raw('api.example.test', 80, text).count('200 OK'))
    """
    assert net.probe(code, [WEB]) == 600


def test_half_close(net):
    code = """
    show([tried(raw, 'api.example.test', 7001, 'a', 'b', 'c', half_close=True),
          tried(raw, 'api.example.test', 7001, half_close=True)])
    """
    got = net.probe(code, [ECHO])
    assert [r["value"] for r in got] == ["abcEND", "END"], got
    assert got[0]["seconds"] < 10, "the end came through, not a time-out"


def test_reset_comes_through(net):
    code = """
    def reset():
        with socket.create_connection(('api.example.test', 7003), 5) as s:
            s.sendall(b'RST\\n')
            s.settimeout(5)
            return text(s.recv(10))
    show(tried(reset))
    """
    got = net.probe(code, [rule("api.example.test", 7003)])
    assert got["errno"] == "ECONNRESET" and got["seconds"] < PROMPT, got


@pytest.mark.parametrize("protocol", ["tcp", "http"])
def test_an_answer_before_the_reset_comes_through(net, protocol):
    """The server answers in the middle of an upload and closes, which causes a reset: its answer
    still reaches the skill."""
    code = f"""
    first = (b'FULL / HTTP/1.1\\r\\nHost: api.example.test\\r\\nContent-Length: 30000000\\r\\n'
             b'\\r\\n' if {protocol!r} == 'http' else b'FULL 1\\n')
    def upload():
        with socket.create_connection(('api.example.test', 7003), 20) as s:
            try:
                s.sendall(first + b'x' * 30000000)
            except OSError:
                pass
            return text(s.recv(100))
    show([tried(upload)['value'] for _ in range(10)])
    """
    assert net.probe(code, [rule("api.example.test", 7003, protocol=protocol)],
                     resources={"memory_mb": 512}) == ["no more"] * 10
    assert net.control(code) == ["no more"] * 10


@pytest.mark.parametrize("port,say", [(80, True), (80, False), (443, False)])
def test_reset_by_the_skill(net, port, say):
    """The skill resets its connections, with or without data sent before: each connection ends, and
    max_connections no longer counts it."""
    code = f"""
    def reset():
        with socket.create_connection(('api.example.test', {port}), 5) as s:
            s.settimeout(5)
            if {say}:
                s.sendall(b'GET / HTTP/1.1\\r\\nHost: api.example.test\\r\\n\\r\\n')
                s.recv(1000)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        time.sleep(0.2)
    show([tried(reset) for _ in range(4)] + [tried(raw, 'api.example.test', 7001, 'x',
                                                   half_close=True)])
    """
    *resets, after = net.probe(code, [ALL], limits={"max_connections": 2})
    assert not any(r["error"] for r in resets), resets
    assert after["value"] == "xEND", after
    assert not net.blocked("too_many_connections")
    if say:
        assert [e["data"]["reason"] for e in net.allowed()] == ["reset"] * 4 + ["ok"]


BULK = """
import hashlib, threading
block = b"".join(struct.pack(">I", i * 2654435761 & 0xffffffff) for i in range(16384))
SIZE = %d << 20
def up():
    with socket.create_connection(('api.example.test', 7003), 10) as s:
        s.settimeout(30)
        s.sendall(b'%s %%d\\n' %% SIZE)
        for _ in range(SIZE // len(block)):
            s.sendall(block)
        s.shutdown(socket.SHUT_WR)
        return text(s.recv(64, socket.MSG_WAITALL))
def down():
    digest, n = hashlib.sha256(), 0
    with socket.create_connection(('api.example.test', 7003), 10) as s:
        s.settimeout(30)
        s.sendall(b'DOWN %%d\\n' %% SIZE)
        while data := s.recv(1 << 20):
            digest.update(data)
            n += len(data)
    return [n, digest.hexdigest()]
"""


def test_large_transfers(net):
    size = 64 << 20
    got = net.probe(BULK % (64, "UP") + "show([tried(up), tried(down)])",
                    [rule("api.example.test", 7003)])
    digest = hashlib.sha256(pattern(size)).hexdigest()
    assert got[0]["value"] == digest, got[0]
    assert got[1]["value"] == [size, digest], got[1]
    assert any(e for e in net.allowed("api.example.test", 7003) if str(size) in json.dumps(e)), \
        "bytes in, as counted"
    assert any(e for e in net.allowed("api.example.test", 7003)
               if str(size + len(f"UP {size}\n")) in json.dumps(e)), "bytes out, as counted"


def test_large_transfers_at_once(net):
    code = BULK % (16, "UP") + """
got = []
work = [threading.Thread(target=lambda f=f: got.append(tried(f)['value']))
        for f in (up, down, up, down)]
[t.start() for t in work]
[t.join() for t in work]
show(got)
"""
    got = net.probe(code, [rule("api.example.test", 7003)])
    digest = hashlib.sha256(pattern(16 << 20)).hexdigest()
    assert sorted(got, key=str) == sorted([digest, [16 << 20, digest]] * 2, key=str)


URGENT = """
def talk(n, word):
    with socket.create_connection(('api.example.test', 7003), 10) as s:
        s.settimeout(20)
        s.sendall(b'%s %d\\n' % (word, n))
        if word == b'UP':
            time.sleep(.2)  # so that all data sent below arrives together
            half, more = n // 2, socket.MSG_MORE
            s.sendall(bytes(half), more)
            s.send(b'!', socket.MSG_OOB | more)
            s.sendall(bytes(n - half))
        return len(b''.join(iter(lambda: s.recv(1 << 20), b'')))
show([tried(talk, n, word) for n in (20, 6 << 20) for word in (b'UP', b'URGENT')])
"""


def test_urgent_data_holds_nothing_up(net):
    """An out-of-band byte of TCP does not delay the other data. The byte itself is not in the data,
    neither in the sandbox nor outside."""
    got = net.probe(URGENT, [rule("api.example.test", 7003)])
    assert [r["value"] for r in got] == [64, 40, 64, 12 << 20], got
    assert [r["value"] for r in net.control(URGENT)] == [64, 40, 64, 12 << 20], "the control"


def test_slow_server_holds_the_client_back(net):
    got = net.probe(BULK % (32, "SLOW") + "show(tried(up))", [rule("api.example.test", 7003)],
                    resources={"memory_mb": 128})
    assert got["value"] == hashlib.sha256(pattern(32 << 20)).hexdigest(), got
    assert got["seconds"] > 0.9


def test_large_transfer_over_tls(net):
    code = """
    import urllib.request, hashlib
    r = urllib.request.urlopen('https://api.example.test/bytes/16777216', context=context())
    body = r.read()
    r = urllib.request.urlopen('https://api.example.test/up', data=body, context=context())
    show([len(body), hashlib.sha256(body).hexdigest(), json.load(r)])
    """
    n, digest, reply = net.probe(code, [API])
    assert n == 16 << 20 and digest == hashlib.sha256(pattern(n)).hexdigest()
    assert reply == {"length": n, "sha256": digest}


def test_many_connections(net):
    code = """
    held = [socket.create_connection(('api.example.test', 7001), 10) for _ in range(200)]
    for i, s in enumerate(held):
        s.sendall(b'%d\\n' % i)
    got = [text(s.recv(16)) for s in held]
    show([got == [f'{i}\\n' for i in range(200)], len(got)])
    """
    assert net.probe(code, [ECHO], resources={"max_open_files": 1024},
                     limits={"max_connections": 256}) == [True, 200]
    assert len(net.seen()["connections"]) == 200


def test_quick_succession(net):
    code = "show([raw('api.example.test', 7001, 'x', half_close=True) for _ in range(300)]" \
           " == ['xEND'] * 300)"
    assert net.probe(code, [ECHO]) is True
    assert len(net.seen()["connections"]) == 300


def test_succession_makes_no_connection_beforehand(net):
    """The broker keeps sockets ready for the next connections: this makes no extra connection
    outside, and neither does a denied connection."""
    code = """
    show([raw('api.example.test', 7001, 'x', half_close=True) for _ in range(20)]
         + [tried(raw, 'api.example.test', 443, 'no TLS')['value']])
    time.sleep(0.2)
    """
    got = net.probe(code, [ECHO, rule("api.example.test", 443)])
    assert got[:20] == ["xEND"] * 20 and not got[20], got
    seen = net.seen()
    assert len(seen["connections"]) == 20 and seen["kernel"]["connects"] == 20, seen
    assert len(net.allowed("api.example.test", 7001)) == 20


@BY_USER
def test_idle_connection_stays(net):
    code = """
    with socket.create_connection(('api.example.test', 7001), 10) as s:
        s.sendall(b'one')
        first = text(s.recv(10))
        time.sleep(12)
        s.sendall(b'two')
        show([first, text(s.recv(10))])
    """
    assert net.probe(code, [ECHO]) == ["one", "two"]


def test_ipv6_outside(net):
    code = "show(tried(raw, 'v6.example.test', 7001, 'six', half_close=True))"
    six = [rule("v6.example.test", 7001)]
    assert net.probe(code, six, flags=("--allow-private", "::1/128"))["value"] == "sixEND"
    assert [c["address"] for c in net.seen()["connections"]] == ["::1"]
    assert not net.probe(code, six)["value"], "a grant of IPv4 is none of ::1"
    assert net.seen()["connections"] == []


def test_both_families_inside(net):
    code = """
    def at(family):
        a = socket.getaddrinfo('api.example.test', 7001, family, socket.SOCK_STREAM)[0][4]
        return raw(a[0], 7001, 'hi', half_close=True)
    show([tried(at, f) for f in (socket.AF_INET, socket.AF_INET6)])
    """
    assert [r["value"] for r in net.probe(code, [ECHO])] == ["hiEND"] * 2


def test_resolver_of_the_host_is_asked_for_declared_names_only(net):
    code = "show([tried(raw, 'dns.example.test', 7001, 'x', half_close=True),"\
           " tried(names, 'x.dns.example.test'), tried(names, 'evil.test')])"
    got = net.probe(code, [rule("dns.example.test", 7001)])
    assert got[0]["value"] == "xEND", got[0]
    assert {q[0] for q in net.seen()["queries"]} == {"dns.example.test"}


LOOPBACK = """
import threading
seen = {}
def serve(s):
    c, _ = s.accept()
    c.sendall(c.recv(10).upper())
    c.close()
for family, address, port in PLACES:
    s = socket.create_server((address, port), family=family)
    threading.Thread(target=serve, args=(s,), daemon=True).start()
    target = {'0.0.0.0': '127.0.0.1', '::': '::1'}.get(address, address)
    seen[f'{address} {port}'] = tried(raw, target, s.getsockname()[1], 'abc')['value']
seen['localhost'] = names('localhost')
seen['egress'] = tried(raw, 'api.example.test', 7001, 'x', half_close=True)['value']
show(seen)
"""


def test_own_services_work_beside_egress(net):
    """A skill's own listeners work, also on a declared port. The skill's connections to them are
    not egress."""
    places = "PLACES = [(socket.AF_INET, '127.0.0.1', 0), (socket.AF_INET6, '::1', 0)," \
             "(socket.AF_INET, '0.0.0.0', 8123), (socket.AF_INET6, '::', 8124)," \
             "(socket.AF_INET, '127.0.0.1', 7001), (socket.AF_INET6, '::1', 7001)]\n"
    seen = net.probe(places + LOOPBACK, [ECHO])
    assert seen.pop("egress") == "xEND"
    assert set(seen.pop("localhost")) <= {"127.0.0.1", "::1"}
    assert set(seen.values()) == {"ABC"}, seen
    assert len(net.allowed()) == 1 and net.blocked() == [], "its own listeners are no egress"


def test_own_services_on_the_addresses_of_names(net):
    """The skill listens on the address of a declared name, or on all addresses: its own connections
    reach this listener, and are not egress."""
    code = """
    four, six = (names('api.example.test', f)[0] for f in (socket.AF_INET, socket.AF_INET6))
    def tcp(at, to, port):
        with socket.create_server((at, port), family=family_of(at),
                                  dualstack_ipv6=at == '::') as s, \\
                socket.create_connection((to, port), 5) as c, s.accept()[0] as d:
            d.sendall(b'mine')
            return text(c.recv(10))
    def udp(at, to, port):
        with socket.socket(family_of(at), socket.SOCK_DGRAM) as s, \\
                socket.socket(family_of(to), socket.SOCK_DGRAM) as c:
            s.bind((at, port))
            c.sendto(b'mine', (to, port))
            s.settimeout(5)
            return text(s.recv(10))
    places = [('0.0.0.0', four), (four, four), ('::', six), ('::', four),
              ('0.0.0.0', '198.18.0.9')]
    show([[tried(way, *p, 8125) for p in places] for way in (tcp, udp)])
    """
    got = net.probe(code, [ECHO])
    assert {r["value"] for way in got for r in way} == {"mine"}, got
    assert net.blocked() == [] and net.allowed() == []
    assert net.nothing_arrived()


def test_a_scan_of_ports_costs_little(net):
    """A skill connects to 400 closed ports. The product searches for listeners of the skill only
    about 20 times a second, not after each refused connection. It does not search again for a
    listener that it has found."""
    code = """
    to = names('api.example.test', socket.AF_INET)[0]
    begin = time.monotonic()
    closed = [tried(connect, to, p)['errno'] for p in range(10000, 10400)]
    took = time.monotonic() - begin
    time.sleep(1)
    with socket.create_server(('0.0.0.0', 8125), backlog=200):
        show([took, closed, [tried(connect, to, 8125)['value'] for _ in range(100)]])
    """
    calls = net.runner.work / "calls"
    net.world.reset()
    r = net.runner.as_caller(["strace", "-f", "-qq", "-o", calls, "-e", "trace=openat",
                              net.runner.binary, "run", *GRANT, net.skill(code, [ECHO])])
    took, closed, served = r.ok().json()
    assert set(closed) == {"ECONNREFUSED"} and set(served) == {"connected"}, (closed, served)
    looks = re.findall(r"/net/tcp6", calls.read_text())
    assert 20 <= len(looks) <= 2 * 20 + 20 * (took + 1), (len(looks), took)
    assert len({e["data"]["port"] for e in net.blocked()}) > 100


def test_the_hosts_loopback_is_not_there(net):
    code = "show([tried(connect, a, p) for a in ('127.0.0.1', '::1') for p in (7001, 443, 53)])"
    got = net.probe(code, [ALL])
    assert {r["errno"] for r in got} == {"ECONNREFUSED"}, got
    assert net.nothing_arrived()
    assert {r["value"] for r in net.control(code)[:3]} == {"connected"}


def test_events(net):
    code = r"""
    raw('api.example.test', 7001, 'twelve bytes', half_close=True)
    tls('api.example.test')
    raw('api.example.test', 80, 'GET / HTTP/1.1\r\nHost: api.example.test\r\nConnection: close\r\n\r\n')
    """
    net.inside(code, [ALL]).ok()
    trace = net.runner.last_trace()
    assert net.events("dns_resolution", "api.example.test")
    echo, = net.allowed("api.example.test", 7001)
    data = echo["data"]
    assert data["name"] == "api.example.test" and data["port"] == 7001
    assert data["bytes_out"] == 12 and data["bytes_in"] == 15
    assert data["protocol"] == "tcp" and data["address_dialled"] == "127.0.0.1"
    assert data["address_asked"].startswith(("198.1", "fd")) and data["duration_us"] > 0
    assert data["rule"] == "api.example.test" and data["rule_line"] > 0
    for port, protocol in ((443, "tls"), (80, "http")):
        e, = net.allowed("api.example.test", port)
        assert e["data"]["protocol"] == protocol, e
        assert e["data"]["shown"] == "api.example.test", e
        assert e["data"]["bytes_in"] > 0 and e["data"]["bytes_out"] > 0
    assert trace["policy_violations"] == []
    assert net.blocked() == []


def family(pid):
    """The number of running processes that descend from process `pid`, itself included."""
    parents = {}
    for d in os.listdir("/proc"):
        if d.isdigit():
            try:
                with open(f"/proc/{d}/stat", encoding="utf-8", errors="replace") as f:
                    state, parent = f.read().rsplit(")", 1)[1].split()[:2]
                if state != "Z":
                    parents[int(d)] = int(parent)
            except OSError:
                pass
    found = {pid}
    while more := {c for c, parent in parents.items() if parent in found} - found:
        found |= more
    return len(found)


def has_processes(net, egress, wanted):
    """Fails unless a run has `wanted` processes while its skill waits. Waits until the process that
    hashes the skill's files has ended."""
    directory = net.skill("open('/tmp/x', 'w'); print('up', flush=True); time.sleep(90)", egress)
    p = net.runner.popen([net.runner.binary, "run", *GRANT, directory], stdout=-1, stderr=-1)
    try:
        assert p.stdout.readline() == b"up\n", p.stderr.read()
        harness.wait_for(lambda: family(p.pid) == wanted)
    finally:
        p.terminate()
        p.communicate(timeout=20)


def test_no_egress_no_broker(net):
    has_processes(net, [], 3)  # supervisor, init and the skill
    has_processes(net, [API], 5)


def test_run_ends_while_connections_are_open(net):
    """The skill exits while 20 connections are open: the run ends, no process of it remains, and
    the trace has all connections."""
    code = """
    import sys
    held = [socket.create_connection(('api.example.test', 7001), 10) for _ in range(20)]
    [s.sendall(b'x' * 10) for s in held]
    [s.recv(20) for s in held]
    sys.stdout.flush()
    os._exit(7)
    """
    r = net.inside(code, [ECHO], timeout=20)
    assert r.code == 7, repr(r)
    assert len(net.allowed("api.example.test", 7001)) == 20
    harness.wait_for(lambda: not harness.alive_with(str(net.runner.base)))
