"""Datagrams by name and port: flows, limits, and denied flows.

The server of port 7005 answers each datagram in capitals. UDP has no reset, so a program gets no
error when its flow is denied. The trace has one line for the flow."""
import pytest

from harness import BY_USER
from net_fixtures import GRANT, PROMPT, net, outside, rule
from net_servers import PRIVATE

ECHO = rule("api.example.test", 7005, protocol="udp")

CLIENT = """
def address(host, family=socket.AF_INET):
    return socket.getaddrinfo(host, 7005, family, socket.SOCK_DGRAM)[0][4][0]
def client(host, port=7005, family=socket.AF_INET, timeout=5):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(timeout)
    s.connect((address(host, family), port))
    return s
def ask(s, data, size=65535):
    s.send(data)
    return text(s.recv(size))
def once(host, port=7005, data=b'loot', timeout=20, family=socket.AF_INET):
    return ask(client(host, port, family, timeout), data)
"""


# A skill waits so many seconds for an answer to a datagram. After that time the trace has the
# reason why there is none.
SILENCE = 4


def one_event(events, **want):
    assert len(events) == 1, events
    got = {**events[0], **events[0].get("data", {})}
    assert {k: got.get(k) for k in want} == want, events[0]
    return got


def test_datagrams_by_the_thousand(net):
    """1000 datagrams in one flow, eight at a time: each is answered exactly once."""
    code = CLIENT + """
s = client('api.example.test')
seen = []
for i in range(0, 1000, 8):
    for k in range(i, i + 8):
        s.send(b'n%d' % k)
    seen += [text(s.recv(100)) for _ in range(8)]
show(seen)
"""
    got = net.probe(code, [ECHO])
    assert got == [f"N{i}" for i in range(1000)]
    assert len(net.seen()["datagrams"]) == 1000
    sent = sum(len(f"n{i}") for i in range(1000))
    one_event(net.allowed("api.example.test", 7005), protocol="udp", reason="run_ended",
              bytes_out=sent, bytes_in=sent, address_dialled="127.0.0.1",
              rule="api.example.test")
    assert not net.blocked()


SIZES = [1, 512, 1400, 1472, 9000, 60000, 65507]


def test_sizes(net):
    """Datagrams of many sizes, also empty ones: each arrives and is answered unchanged."""
    code = CLIENT + f"""
s = client('api.example.test')
def whole(n):
    data = bytes(i * 7 % 251 for i in range(n))
    return ask(s, data) == text(data.upper())
show([tried(whole, n) for n in [0] + {SIZES} + [0, 3]])
"""
    got = net.probe(code, [ECHO])
    assert [r["value"] for r in got] == [True] * (len(SIZES) + 3), got
    assert [d[1] for d in net.seen()["datagrams"]] == [0, *SIZES, 0, 3]
    assert all(r["value"] for r in net.control(code))


def test_larger_than_the_server_can_be_sent(net):
    """The skill sends over IPv6 to a server that has IPv4. The largest IPv4 datagram is 20 bytes
    smaller: a larger one is lost and recorded at once, and the next one passes."""
    code = CLIENT + """
s = client('v4.example.test', family=socket.AF_INET6, timeout=3)
show([tried(ask, s, b'x' * 65520), tried(ask, s, b'small')])
"""
    large, small = net.probe(code, [rule("v4.example.test", 7005, protocol="udp")])
    assert large["error"] == "TimeoutError" and small["value"] == "SMALL", (large, small)
    cut, fine = net.allowed("v4.example.test")
    assert cut["data"]["reason"] == "too_large" and cut["data"]["duration_us"] < 2000000, cut
    assert fine["data"]["bytes_in"] == 5


def test_flows_are_apart(net):
    """Two sockets, two names on the same address: neither gets the other's answer."""
    code = CLIENT + """
held = [client(h) for h in ('api.example.test', 'api.example.test', 'other.example.test')]
heard = [set() for _ in held]
for i in range(20):
    for k, s in enumerate(held):
        s.send(b'from %d' % k)
    for k, s in enumerate(held):
        heard[k].add(text(s.recv(100)))
show([sorted(h) for h in heard])
"""
    got = net.probe(code, [ECHO, rule("other.example.test", 7005, protocol="udp")])
    assert got == [["FROM 0"], ["FROM 1"], ["FROM 2"]]
    assert len(net.allowed("api.example.test", 7005, "udp")) == 2
    assert len(net.allowed("other.example.test", 7005, "udp")) == 1


def test_unconnected_socket_hears_from_the_address_it_asked(net):
    code = CLIENT + """
a, b = address('api.example.test'), address('other.example.test')
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
seen = []
for host in (a, b, a):
    s.sendto(b'x', (host, 7005))
    seen.append(list(s.recvfrom(10)[1]) == [host, 7005])
show(seen)
"""
    got = net.probe(code, [ECHO, rule("other.example.test", 7005, protocol="udp")])
    assert got == [True] * 3


def test_first_datagrams_wait_for_the_dialler(net):
    """The first datagrams wait in a queue until the dialler has opened the flow; those that do not
    fit into the queue are lost, as on a network."""
    code = CLIENT + """
s = client('api.example.test')
for i in range(200):
    s.send(b'%d' % i)
seen = []
try:
    while True:
        s.settimeout(20 if len(seen) < 8 else 1)
        seen.append(int(s.recv(100)))
except TimeoutError:
    pass
show(seen)
"""
    got = net.probe(code, [ECHO])
    assert got[:8] == list(range(8)) and got == sorted(set(got)), got


def test_undeclared(net):
    """The kernel refuses datagrams to undeclared ports and addresses; undeclared names do not
    exist."""
    code = CLIENT + """
show([tried(once, 'api.example.test', 7006), tried(once, 'other.example.test'),
      tried(once, '10.77.0.1'), tried(once, '127.0.0.1')])
"""
    port, name, address, loopback = net.probe(code, [ECHO])
    assert port["errno"] == "ECONNREFUSED" and port["seconds"] < PROMPT, port
    assert name["error"] == "gaierror" and name["seconds"] < PROMPT, name
    assert address["errno"] == "ENETUNREACH", address
    assert loopback["errno"] == "ECONNREFUSED", "its own loopback, without a server"
    assert net.nothing_arrived()
    assert net.blocked("other.example.test")
    control = net.control(code)
    assert [r["value"] for r in control[1:]] == ["LOOT"] * 3, control


def test_tcp_and_udp_are_two_grants(net):
    """A tcp rule opens only TCP, a udp rule only UDP, and both together open both. Datagrams to
    port 443 (QUIC) need a udp rule."""
    code = CLIENT + """
def quic():
    try:
        once('api.example.test', 443, timeout=1)
    except TimeoutError:
        return 'silence'  # there is no such server outside
show([tried(once, 'api.example.test', 7005), tried(raw, 'api.example.test', 7001, 'x',
      half_close=True), tried(quic)])
"""
    tcp = rule("api.example.test", 443, 7001, 7005)
    udp = rule("api.example.test", 443, 7001, 7005, protocol="udp")
    only_tcp = net.probe(code, [tcp])
    assert [only_tcp[0]["errno"], only_tcp[1]["value"], only_tcp[2]["errno"]] == \
        ["ECONNREFUSED", "xEND", "ECONNREFUSED"]
    assert net.seen()["datagrams"] == []
    only_udp = net.probe(code, [udp])
    assert [only_udp[0]["value"], only_udp[1]["errno"], only_udp[2]["value"]] == \
        ["LOOT", "ECONNREFUSED", "silence"]
    assert net.seen()["connections"] == []
    both = net.probe(code, [tcp, udp])
    assert [r["value"] for r in both] == ["LOOT", "xEND", "silence"]


@pytest.mark.parametrize("name,kind,grant", [
    ("api.example.test", "loopback", "127.0.0.0/8"),
    ("private.example.test", "private", "10.0.0.0/8"),
    ("metadata.example.test", "metadata", "169.254.169.254"),
    ("ula.example.test", "unique_local", "fd00::/8"),
])
def test_guarded_ranges(net, name, kind, grant):
    """A declared name leads to a guarded address: datagrams get no answer, and the trace has one
    line, however often the skill tries."""
    code = CLIENT + f"""
s = client({name!r}, timeout=0.5)
for i in range(20):
    s.send(b'loot')
    time.sleep(0.01)
show([tried(s.recv, 10), tried(once, {name!r}, timeout={SILENCE})])
"""
    got = net.probe(code, [rule(name, 7005, protocol="udp")], flags=())
    assert [r["error"] for r in got] == ["TimeoutError"] * 2
    assert net.seen()["datagrams"] == []
    denied = net.blocked(name, 7005, "guarded", kind)
    assert len(net.blocked()) == 1
    assert net.times("network_egress_blocked") == 2, "one for each socket"
    one_event(denied, protocol="udp", reason="guarded", range=kind, bytes_out=0, bytes_in=0)
    assert not net.allowed()
    text = CLIENT + f"show(tried(once, {name!r}))"
    got = net.probe(text, [rule(name, 7005, protocol="udp")], flags=("--allow-private", grant))
    assert got["value"] == "LOOT", got


def test_only_the_judged_address(net):
    code = CLIENT + "show(tried(once, 'mixed.example.test'))"
    assert net.probe(code, [rule("mixed.example.test", 7005, protocol="udp")])["value"] == "LOOT"
    one_event(net.allowed("mixed.example.test"), address_dialled="127.0.0.1")


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_families(net, family):
    """The address family of the skill's socket may differ from the server's: datagrams pass."""
    code = CLIENT + f"show([tried(once, h, family=socket.{family}) for h in " \
                    "('v4.example.test', 'v6.example.test')])"
    got = net.probe(code, [rule("*.example.test", 7005, protocol="udp")],
                    flags=(*GRANT, "--allow-private", "::1"))
    assert [r["value"] for r in got] == ["LOOT"] * 2, got
    one_event(net.allowed("v4.example.test"), address_dialled="127.0.0.1")
    one_event(net.allowed("v6.example.test"), address_dialled="::1")


def test_literal_address(net):
    policy = net.runner.write(net.runner.base / "policy-udp.yaml",
                              "network: {allow_literal_addresses: true}\n")
    code = CLIENT + "show([tried(once, a, timeout=%d) for a in (%r, '10.77.0.2')])"
    got = net.probe(code % (20, PRIVATE), [rule(PRIVATE, 7005, protocol="udp")],
                    flags=("--policy", policy, "--allow-private", "10.77.0.0/16"))
    assert got[0]["value"] == "LOOT" and got[1]["errno"] == "ENETUNREACH", got
    denied = net.probe(code % (SILENCE, PRIVATE), [rule(PRIVATE, 7005, protocol="udp")],
                       flags=("--policy", policy))
    assert denied[0]["error"] == "TimeoutError" and net.seen()["datagrams"] == []
    assert net.blocked(PRIVATE, "guarded")


def test_closed_port_does_not_hang(net):
    """The server's port is closed: this does not end the flow, because a server may start later.
    Other flows work, and the end of the run is not delayed."""
    code = CLIENT + """
s = client('api.example.test', 7099, timeout=0.5)
seen = []
for i in range(5):
    s.send(b'anyone?')
    seen.append(tried(s.recv, 10))
show([seen, tried(once, 'api.example.test')])
"""
    closed, other = net.probe(code, [rule("api.example.test", 7005, 7099, protocol="udp")])
    assert all(r["error"] and r["seconds"] < PROMPT for r in closed), closed
    assert other["value"] == "LOOT"
    got = one_event(net.allowed("api.example.test", 7099), reason="unreachable", bytes_in=0)
    assert got["bytes_out"] == 35


@pytest.mark.parametrize("name", ["gone.example.test", "nowhere.example.test"])
def test_name_that_does_not_resolve(net, name):
    code = CLIENT + f"show(tried(once, {name!r}, timeout={SILENCE}))"
    got = net.probe(code, [rule(name, 7005, protocol="udp")])
    assert got["error"] == "TimeoutError"
    one_event(net.blocked(name), protocol="udp", reason="no_name", bytes_out=0)


def test_wildcard(net):
    code = CLIENT + "show([tried(once, h) for h in ('sub.wild.test', 'wild.test')])"
    got = net.probe(code, [rule("*.wild.test", 7005, protocol="udp")])
    assert got[0]["value"] == "LOOT" and got[1]["error"] == "gaierror", got
    one_event(net.allowed("sub.wild.test"), rule="*.wild.test")
    pool = CLIENT + """
mine = address('sub.wild.test')
top, last = mine.rsplit('.', 1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(4)
s.connect((f'{top}.{int(last) + 5}', 7005))
show(tried(ask, s, b'loot'))
"""
    assert net.probe(pool, [rule("*.wild.test", 7005, protocol="udp")])["error"] == \
        "TimeoutError"
    assert net.seen()["datagrams"] == []
    one_event(net.blocked("not_declared"), protocol="udp", port=7005)


@BY_USER
def test_limit_of_flows(net):
    """max_connections counts TCP connections and UDP flows together. A flow that was idle for long
    is closed to make room for a new one."""
    code = CLIENT + """
tcp = socket.create_connection(('api.example.test', 7001), 5)
tcp.sendall(b'x')
tcp.recv(1)
# The refused flows have a short timeout, so that the first three are not idle for long meanwhile.
held = [client('api.example.test', timeout=20 if i < 3 else 0.3) for i in range(6)]
first = [tried(ask, s, b'x') for s in held]
time.sleep(5.5)
show([first, tried(once, 'api.example.test'), tried(ask, held[2], b'x')])
"""
    first, later, still = net.probe(code, [ECHO, rule("api.example.test", 7001)],
                                    limits={"max_connections": 4})
    assert [r["value"] for r in first] == ["X"] * 3 + [None] * 3, first
    assert later["value"] == "LOOT" and still["value"] == "X"
    assert net.times("network_egress_blocked", "udp", "too_many_connections") == 3
    assert len(net.allowed("udp", "idle")) == 1


@pytest.mark.parametrize("key", ["max_bytes_out", "max_bytes_in"])
def test_limit_of_bytes(net, key):
    code = CLIENT + """
s = client('api.example.test')
def kilobyte(i):
    s.settimeout(20 if i < 5 else 1)
    return ask(s, b'x' * 1000)
show([tried(kilobyte, i) for i in range(8)] + [tried(once, 'api.example.test', timeout=4)])
"""
    got = net.probe(code, [ECHO], limits={key: 5500})
    assert [bool(r["value"]) for r in got] == [True] * 5 + [False] * 4, got
    seen = sum(d[1] for d in net.seen()["datagrams"])
    assert seen == (5000 if key == "max_bytes_out" else 6000), "not one datagram more"
    assert net.allowed() == [], "what was cut off is not what was allowed"
    opened = one_event(net.opened("udp"), state="open")
    cut, refused = net.blocked("udp")
    one_event([cut], reason="byte_limit", state="closed", connection=opened["connection"],
              **{key.removeprefix("max_"): 5000})
    one_event([refused], reason="byte_limit", bytes_out=0, state=None)


def test_flood_of_flows(net):
    """2000 flows at once: the number of open flows is limited, and other connections work."""
    code = CLIENT + """
a = address('api.example.test')
for i in range(2000):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b'x', (a, 7005))
time.sleep(0.5)
show(tried(raw, 'api.example.test', 7001, 'x', half_close=True))
"""
    got = net.probe(code, [ECHO, rule("api.example.test", 7001)],
                    limits={"max_connections": 4096, "max_connections_per_second": 100000})
    assert got["value"] == "xEND", got
    assert 0 < len(net.allowed("udp")) <= 1024
