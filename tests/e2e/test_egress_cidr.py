"""Address ranges: every address of a range answers on the declared ports, and no other
address does. A small range has a socket for each address. For a wide one (more than
128 pairs of address and port) one socket takes the TCP port on all addresses."""
import pytest

from net_fixtures import GRANT, PROMPT, net, outside, rule

FLAGS = ("--allow-private", "10.78.0.0/15", "--allow-private", "fd78::/47")
WAYS = {"small": ("10.78.5.16/28", ["10.78.5.16", "10.78.5.17", "10.78.5.31"],
                  ["10.78.5.15", "10.78.5.32", "10.77.0.1"]),
        "wide": ("10.78.0.0/16", ["10.78.0.0", "10.78.5.17", "10.78.255.255"],
                 ["10.79.0.0", "10.77.0.1"]),
        "small6": ("fd78::40/124", ["fd78::40", "fd78::41", "fd78::4f"],
                   ["fd78::3f", "fd78::50", "fd77::1"]),
        "wide6": ("fd78::/64", ["fd78::", "fd78::1:2:3", "fd78::ffff:ffff:ffff:ffff"],
                  ["fd78:0:0:1::", "fd77::1"])}
ECHO = """
show([tried(raw, a, 7001, 'x', half_close=True) for a in %r])
"""


@pytest.fixture
def ranges(net):
    """A caller whose policy file allows addresses in manifests."""
    net.runner.write(net.runner.home / ".config/skillsandbox/policy.yaml",
                     "network: {allow_literal_addresses: true}\n", 0o600)
    return net


@pytest.mark.parametrize("way", WAYS)
def test_addresses_in_and_around(ranges, way):
    net = ranges
    cidr, inside, around = WAYS[way]
    got = net.probe(ECHO % (inside + around), [rule(cidr, 7001)], flags=FLAGS)
    assert [r["value"] for r in got[:len(inside)]] == ["xEND"] * len(inside), got
    for r in got[len(inside):]:
        assert r["errno"] in ("ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL") \
            and r["seconds"] < PROMPT, r
    assert sorted(c["address"] for c in net.seen()["connections"]) == sorted(inside), \
        "each was dialled as it was asked for"
    events = {e["data"]["name"]: e["data"] for e in net.allowed(7001)}
    assert sorted(events) == sorted(inside)
    for a, d in events.items():
        assert (d["name"], d["address_asked"], d["address_dialled"], d["rule"]) == (a, a, a, cidr)
        assert d["rule_line"] > 0 and d["bytes_out"] == 1 and d["bytes_in"] == 4, d
    # The control: the addresses around the range exist; the same program reaches them unconfined.
    assert [r["value"] for r in net.control(ECHO % around)] == ["xEND"] * len(around)


@pytest.mark.parametrize("way", ["small", "wide", "wide6"])
def test_other_ports_are_closed(ranges, way):
    net = ranges
    cidr, inside, _ = WAYS[way]
    code = f"show([tried(connect, a, p) for a in {inside} for p in (7002, 443)])"
    got = net.probe(code, [rule(cidr, 7001)], flags=FLAGS)
    assert {r["errno"] for r in got} == {"ECONNREFUSED"}, got
    assert all(r["seconds"] < PROMPT for r in got), got
    assert net.nothing_arrived()
    assert {r["value"] for r in net.control(code)} == {"connected"}


@pytest.mark.parametrize("way", ["small", "wide"])
def test_private_ranges_need_their_own_grant(ranges, way):
    """A manifest declares a range of private addresses: connections are denied until the owner
    grants the range, too."""
    net = ranges
    cidr, inside, _ = WAYS[way]
    for flags in ((), GRANT):
        got = net.probe(ECHO % inside, [rule(cidr, 7001)], flags=flags)
        assert not any(r["value"] for r in got) and all(r["seconds"] < PROMPT for r in got), got
        assert net.seen()["connections"] == [] and net.seen()["kernel"]["connects"] == 0
        assert len(net.blocked(7001, "guarded", "private", cidr)) == len(inside)


def test_only_with_the_owners_word(net):
    cidr, inside, _ = WAYS["small"]
    r = net.inside(ECHO % inside, [rule(cidr, 7001)], flags=FLAGS)
    assert r.code == 125 and f"--net {cidr}:7001" in r.errors, r
    assert net.nothing_arrived()
    r = net.inside(ECHO % inside, [rule(cidr, 7001)], flags=(*FLAGS, "--net", f"{cidr}:7001"))
    assert [x["value"] for x in r.ok().json()] == ["xEND"] * 3
    net.world.reset()
    r = net.runner.run(*FLAGS, "--net", "[fd78::/64]:80", "--", "curl", "-sS", "--max-time", "20",
                       "http://[fd78::7]/six").ok()
    assert '"/six"' in r.text
    assert [c["address"] for c in net.seen()["connections"]] == ["fd78::7"]


@pytest.mark.parametrize("cidr,why", [
    ("10.78.0.0/15", "too wide"), ("fd78::/47", "too wide"), ("127.0.0.0/24", "127.0.0.0/8"),
    ("198.18.0.0/24", "198.18.0.0/15"), ("fd53:7373:6273::/64", "uses for itself"),
    ("::/64", "::/96"), ("224.0.0.0/24", "no host has")])
def test_ranges_that_are_refused(ranges, cidr, why):
    net = ranges
    r = net.inside("show(1)", [rule(cidr, 7001)], flags=FLAGS)
    assert r.code == 125 and why in r.errors and "skillsandbox.yaml:" in r.errors, r
    net.inside("show(1)", [rule("10.78.0.0/16", 7001)], flags=FLAGS).ok()


@pytest.mark.parametrize("address,why", [
    ("fe80::1", "need an interface"), ("ff02::1", "no host has"), ("::", "no host has it"),
    ("0.0.0.0", "no host has it")])
def test_addresses_that_are_refused(ranges, address, why):
    """A rule has an address that cannot be allowed: nothing starts, and the message names the line
    of the rule."""
    net = ranges
    r = net.inside("show(1)", [rule(address, 7001)], flags=FLAGS)
    assert r.code == 125 and why in r.errors and "skillsandbox.yaml:" in r.errors, r
    net.inside("show(1)", [rule("10.78.0.1", 7001)], flags=FLAGS).ok()


@pytest.mark.parametrize("client", ["curl", "urllib"])
@pytest.mark.parametrize("way", ["small", "wide", "wide6"])
def test_http_must_be_for_the_address_asked(ranges, client, way):
    net = ranges
    cidr, inside, _ = WAYS[way]
    hosts = [f"[{a}]" if ":" in a else a for a in inside[1:]]
    code = {"curl": """
    show([command('curl', '-sS', '--max-time', '20', *extra, 'http://%s/hello')['out']
          for extra in ((), ('-H', 'Host: %s'), ('-H', 'Host: evil.test'))])
    """ % (hosts[0], hosts[1]), "urllib": """
    import urllib.request
    def get(headers):
        q = urllib.request.Request('http://%s/hello', headers=headers)
        return urllib.request.urlopen(q, timeout=20).read().decode()
    show([tried(get, h)['value'] or '' for h in ({}, {'Host': '%s'}, {'Host': 'evil.test'})])
    """ % (hosts[0], hosts[1])}[client]
    got = net.probe(code, [rule(cidr, 80)], flags=FLAGS)
    assert '"/hello"' in got[0] and not got[1] and not got[2], got
    connection, = net.seen()["connections"]
    assert connection["address"] == inside[1] and len(connection["requests"]) == 1
    assert len(net.blocked(80, "other_host", cidr)) == 2


def test_narrower_rules_and_names_beside_a_wide_range(ranges):
    """Rules for one address, a small range, a name and a /16, partly on the same ports: each
    address is open on exactly the ports of its rules."""
    net = ranges
    rules = [rule("10.78.0.0/16", 7001), rule("10.78.5.16/30", 7002), rule("10.78.5.17", 7003),
             rule("api.example.test", 7001)]
    code = """
    def word(a, p, ask=b''):
        with socket.create_connection((a, p), 20) as s:
            s.sendall(ask)
            return text(s.recv(20))
    show([tried(word, *c) for c in [('10.78.5.17', 7001, b'x'), ('10.78.5.17', 7002),
          ('10.78.5.17', 7003, b'DOWN 2\\n'), ('10.78.5.16', 7002), ('10.78.5.16', 7001, b'x'),
          ('10.78.9.9', 7001, b'x'), ('api.example.test', 7001, b'x'),
          ('10.78.5.16', 7003, b'DOWN 2\\n'), ('10.78.9.9', 7002)]])
    """
    got = net.probe(code, rules, flags=(*FLAGS, *GRANT))
    assert [bool(r["value"]) for r in got] == [True] * 7 + [False] * 2, got
    assert [r["errno"] for r in got[7:]] == ["ECONNREFUSED"] * 2, got
    by_rule = sorted(e["data"]["rule"] for e in net.allowed())
    assert by_rule == ["10.78.0.0/16"] * 3 + ["10.78.5.16/30"] * 2 + ["10.78.5.17",
                                                                      "api.example.test"]


SERVICE = """
def bound(address, port):
    with socket.create_server((address, port)):
        return tried(connect, '127.0.0.1', port)['value']
show([tried(bound, '127.0.0.1', 7001), tried(bound, '127.0.0.1', 9999),
      tried(connect, '127.0.0.1', 7001), tried(raw, 'A', 7001, 'x', half_close=True)])
"""


def test_own_services_beside_a_small_range(ranges):
    got = ranges.probe(SERVICE.replace("'A'", "'10.78.5.17'"), [rule("10.78.5.16/28", 7001)],
                       flags=FLAGS)
    assert [r["value"] for r in got] == ["connected", "connected", None, "xEND"], got
    assert got[2]["errno"] == "ECONNREFUSED"


def test_own_services_beside_a_wide_range(ranges):
    """A wide range takes its port on every address, so the skill cannot listen there. Connections
    to the skill's own services on other ports are not egress."""
    got = ranges.probe(SERVICE.replace("'A'", "'10.78.5.17'"), [rule("10.78.0.0/16", 7001)],
                       flags=FLAGS)
    assert got[0]["errno"] == "EADDRINUSE" and got[1]["value"] == "connected", got
    assert got[3]["value"] == "xEND"
    assert len(ranges.seen()["connections"]) == 1
    assert ranges.blocked() == [], "its own loopback is no way out"


@pytest.mark.parametrize("way", ["wide", "wide6"])
def test_a_name_on_the_port_of_a_wide_range(ranges, way):
    """The skill connects to a declared name on a port that is declared only for a wide range: this
    is refused, and the trace has the name."""
    code = """
    to = [names('api.example.test', f)[0] for f in (socket.AF_INET, socket.AF_INET6)]
    show([to, [tried(connect, a, 7001)['errno'] for a in to]])
    """
    to, errors = ranges.probe(code, [rule(WAYS[way][0], 7001), rule("api.example.test", 7002)],
                              flags=(*FLAGS, *GRANT))
    assert errors == ["ECONNREFUSED"] * 2
    assert [(d["address"], d["name"], d["reason"])
            for d in (e["data"] for e in ranges.blocked(7001))] \
        == [(a, "api.example.test", "undeclared_port") for a in to]
    assert ranges.nothing_arrived()


UDP = """
def ask(a):
    s = socket.socket(socket.AF_INET6 if ':' in a else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.sendto(b'loot', (a, 7005))
    data, peer = s.recvfrom(100)
    return [text(data), peer[0]]
show([tried(ask, a) for a in %r])
"""


@pytest.mark.parametrize("way", ["small", "small6"])
def test_udp(ranges, way):
    cidr, inside, around = WAYS[way]
    got = ranges.probe(UDP % (inside + around), [rule(cidr, 7005, protocol="udp")], flags=FLAGS)
    assert [r["value"] for r in got] == [["LOOT", a] for a in inside] + [None] * len(around), got
    assert len(ranges.seen()["datagrams"]) == len(inside)
    assert [e["data"]["name"] for e in ranges.allowed(7005, "udp")] == inside
    r = ranges.inside("show(1)", [rule("10.78.0.0/24", 7005, protocol="udp")], flags=FLAGS)
    assert r.code == 125 and "128 pairs" in r.errors


def test_names_do_not_lead_into_a_range(ranges):
    """Only a range is declared: no name resolves, and the resolver does not answer a question for
    an address of the range, either."""
    code = "show([tried(names, 'api.example.test'), tried(dns, '10.78.5.17')])"
    got = ranges.probe(code, [rule("10.78.0.0/16", 7001)], flags=FLAGS)
    assert got[0]["error"] == "gaierror" and got[1]["value"]["rcode"] == 3, got
    assert ranges.nothing_arrived()
