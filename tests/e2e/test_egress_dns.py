"""DNS: declared names resolve inside the sandbox, other names do not, and no DNS query of the skill
leaves the sandbox."""
import ipaddress
import time

import pytest

import harness
from net_fixtures import PROMPT, net, outside, rule

API = rule("api.example.test", 443)
SYNTHETIC = [ipaddress.ip_network(n) for n in ("198.18.0.0/15", "fc00::/7")]
NXDOMAIN = 3


def synthetic(address):
    a = ipaddress.ip_address(address)
    return any(a in n for n in SYNTHETIC if n.version == a.version)


def dns_events(net, name):
    return net.events("dns_resolution", name) + net.blocked(name)


FAMILIES = """
show({f'{family.name} {flags}': tried(names, 'api.example.test', family, flags)
      for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNSPEC)
      for flags in (0, socket.AI_ADDRCONFIG)})
"""


def test_getaddrinfo(net):
    got = net.probe(FAMILIES, [API])
    for how, r in got.items():
        assert r["value"], f"{how}: {r}"
        assert r["seconds"] < PROMPT, how
        assert all(map(synthetic, r["value"])), f"{how}: {r['value']}"
        wanted = {"AF_INET": {4}, "AF_INET6": {6}, "AF_UNSPEC": {4, 6}}[how.split()[0]]
        assert {ipaddress.ip_address(a).version for a in r["value"]} == wanted, how
    assert net.nothing_arrived()
    assert net.events("dns_resolution", "api.example.test")
    control = net.control(FAMILIES)
    assert control["AF_INET 0"]["value"] == ["127.0.0.1"]


@pytest.fixture
def no_ipv6(outside):
    """Disables IPv6 in the outside world during a test."""
    def sh(text):
        harness.execute([*outside.enter, "sh", "-ec", text], env={"PATH": harness.PATH}).ok()
    sh("echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6")
    yield
    sh("echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6; "
       "ip -6 addr add fd77::1/128 dev lo nodad")


def test_host_without_ipv6(net, no_ipv6):
    got = net.probe(FAMILIES.replace("show(", "show([tried(tls, 'api.example.test'), ")
                    .rstrip()[:-1] + "])", [API])
    assert "200 OK" in (got[0]["value"] or ""), got[0]
    for flags in (0, 32):
        assert got[1][f"AF_INET {flags}"]["value"], got[1]
        assert got[1][f"AF_UNSPEC {flags}"]["value"] == got[1]["AF_INET 0"]["value"]
        assert got[1][f"AF_INET6 {flags}"]["seconds"] < PROMPT


UNDECLARED = ["evil.test", "api.example.test.evil.test", "evilapi.example.test", "example.test",
              "x.api.example.test", "api-example.test", "api.example.tes", "test", "a",
              "0x7f000001.evil.test", "x" * 63 + ".evil.test"]
ASK = "show({n: [tried(names, n), tried(dns, n)] for n in %r})"


def test_undeclared_names(net):
    got = net.probe(ASK % UNDECLARED, [API])
    for name, (by_libc, by_hand) in got.items():
        assert by_libc["errno"] in ("EAI_NONAME", "EAI_NODATA"), f"{name}: {by_libc}"
        assert by_hand["value"]["rcode"] == NXDOMAIN, f"{name}: {by_hand}"
        assert by_libc["seconds"] < PROMPT and by_hand["seconds"] < PROMPT, name
        assert dns_events(net, name), f"{name} is not in the trace"
    assert net.nothing_arrived()
    control = net.control(ASK % UNDECLARED[:3])
    assert all(by_libc["value"] == ["127.0.0.1"] for by_libc, _ in control.values())
    assert net.seen()["queries"], "the counter counts"


def test_names_that_are_no_text(net):
    """Names with binary labels could carry data out, too: they do not resolve, not even beneath a
    declared wildcard. They are recorded and do not leave the sandbox."""
    code = """
    show([tried(dns, n) for n in ('k\\xff\\x00y.evil.test', '\\xff.wild.test', 'a.wild.test')])
    """
    *odd, fine = net.probe(code, [rule("*.wild.test", 443)])
    assert [r["value"]["rcode"] for r in odd] == [NXDOMAIN] * 2, odd
    assert fine["value"]["addresses"], fine
    assert {e["data"]["name"] for e in net.blocked("not_declared")} == {
        "k??y.evil.test", "?.wild.test"}
    assert net.nothing_arrived()
    control = net.control("show(dns('k\\xff\\x00y.evil.test', server='127.0.0.1'))")
    assert control and net.seen()["queries"], "unconfined it leaves"


@pytest.mark.parametrize("asked,remedy", [
    ("m\u00fcnchen.evil.test", "--net xn--mnchen-3ya.evil.test"), ("a\u0007b.evil.test", None)])
def test_remedy_for_a_name_outside_ascii(net, asked, remedy):
    """The remedy has the name in the form that a rule accepts. A name that no rule can contain gets
    no remedy."""
    raw = asked.encode().decode("latin-1")
    net.probe(f"show(tried(dns, {raw!r}))", [API])
    found, = net.blocked("not_declared")
    assert found["data"].get("remedy") == remedy, found
    assert found["data"]["name"] == asked.replace("\u0007", "?")


def test_no_egress_no_dns(net):
    code = "show([tried(names, 'api.example.test'), nameservers(), tried(dns, 'api.example.test'," \
           " server='198.18.0.53')])"
    by_libc, _, by_hand = net.probe(code)
    assert by_libc["error"] == "gaierror" and by_libc["seconds"] < PROMPT
    assert by_hand["error"] and by_hand["seconds"] < PROMPT
    assert net.nothing_arrived()
    assert "200 OK" in net.probe("show(tls('api.example.test'))", [API]), "the control"


@pytest.mark.parametrize("how", [
    "socket.socket(type=socket.SOCK_DGRAM).sendto(b'?' * 20, ('127.0.0.11', 53))",
    "socket.create_connection(('127.0.0.11', 53), 5)"])
def test_a_resolver_of_another_place(net, how):
    """A program always asks the resolver at a fixed address (here Docker's), and the sandbox has no
    resolver there: the question is refused at once. This is no violation, because the program may
    have asked for declared names."""
    code = f"show([tried(lambda: {how}), tried(tls, 'api.example.test')])"
    asked, declared = net.probe(code, [API])
    assert asked["error"] == "ConnectionRefusedError" and asked["seconds"] < PROMPT, asked
    assert "200 OK" in declared["value"], declared
    assert net.runner.last_trace()["policy_violations"] == []


@pytest.mark.parametrize("declared", ["api.example.test", "API.Example.TEST.", "Api.Example.Test"])
def test_case_and_final_dot(net, declared):
    asked = ["api.example.test", "API.EXAMPLE.TEST", "aPi.eXaMpLe.TeSt.", "api.example.test."]
    got = net.probe("show([[tried(names, n), tried(tls, n, sni=n, request_host=n)] for n in %r])" % asked,
                    [rule(declared, 443)])
    assert len({tuple(n["value"] or ()) for n, _ in got}) == 1 and got[0][0]["value"], got
    for name, (_, reply) in zip(asked, got):
        assert "200 OK" in (reply["value"] or ""), f"{name}: {reply}"


def test_question_is_echoed(net):
    """The reply repeats the question with the same upper and lower case ("0x20" encoding)."""
    got = net.probe("show(dns('aPi.eXamPle.tESt'))", [API])
    assert got["addresses"] and got["question"].startswith("\x03aPi\x07eXamPle\x04tESt\x00")


WILD = rule("*.wild.test", 443)


def test_wildcard(net):
    names = ["sub.wild.test", "deep.sub.wild.test", "SUB.wild.test", "wild.test", "xwild.test",
             "sub.wild.test.evil.test"]
    got = net.probe("show([{n: tried(names, n) for n in %r}, tried(tls, 'sub.wild.test'),"
                    " tried(tls, 'sub.wild.test', sni='deep.sub.wild.test')])" % names, [WILD])
    addresses = {n: (r["value"] or [None])[0] for n, r in got[0].items()}
    assert addresses["sub.wild.test"] and addresses["deep.sub.wild.test"]
    assert addresses["sub.wild.test"] == addresses["SUB.wild.test"]
    assert addresses["sub.wild.test"] != addresses["deep.sub.wild.test"]
    for name in names[3:]:
        assert addresses[name] is None, name
        assert dns_events(net, name), name
    assert "200 OK" in (got[1]["value"] or ""), got[1]
    assert got[2]["error"], "a connection has one name, also beneath a wildcard"
    assert [c["sni"] for c in net.seen()["connections"]] == ["sub.wild.test"]


def test_wildcard_names_are_bounded(net):
    """Each name beneath a wildcard takes an address, and their number is limited. A name in use
    keeps its address."""
    code = """
    held = socket.create_connection(('sub.wild.test', 7001), 5)
    found = set()
    for i in range(900):
        r = tried(dns, f'n{i}.wild.test', timeout=1)
        found.update((r['value'] or {}).get('addresses', []))
    held.sendall(b'still here')
    still = text(held.recv(20))
    show([len(found), still, tried(raw, 'sub.wild.test', 7001, 'x', half_close=True)])
    """
    found, still, reply = net.probe(code, [rule("*.wild.test", 7001), rule("n899.wild.test", 7001)])
    assert found == 31 + 1, "beside sub.wild.test, and the one that has its own rule"
    assert still == "still here"
    assert reply["value"] == "xEND", "the names in use stay"
    assert net.seen()["queries"] == []


KINDS = {"HTTPS": 65, "SVCB": 64, "TXT": 16, "MX": 15, "ANY": 255, "CNAME": 5, "PTR": 12, "NS": 2}


def test_other_types(net):
    code = f"""
kinds = {KINDS!r}
show({{n: {{k: tried(dns, n, v) for k, v in kinds.items()}} for n in ('api.example.test', 'evil.test')}})
"""
    got = net.probe(code, [API])
    for kind in ("HTTPS", "SVCB"):
        r = got["api.example.test"][kind]
        assert r["value"] and r["value"]["rcode"] == 0 and not r["value"]["addresses"], r
    for name, kinds in got.items():
        for kind, r in kinds.items():
            assert r["seconds"] < PROMPT and r["value"], f"{kind} {name}: {r}"
            assert not r["value"]["addresses"], f"{kind} {name}: {r}"
            if name == "evil.test":
                assert r["value"]["rcode"] != 0, f"{kind} {name}: {r}"
    assert net.nothing_arrived()


def test_transports(net):
    code = """
seen = {}
for server in nameservers():
    for how, kw in (('udp', {}), ('unconnected', {'connected': False}), ('tcp', {'tcp': True}),
                    ('edns', {'packet': question('api.example.test', 1, extra=OPT,
                                                 counts=(1, 0, 0, 1))})):
        seen[f'{how} {server}'] = tried(dns, 'api.example.test', server=server, **kw)
        seen[f'AAAA {how} {server}'] = tried(dns, 'api.example.test', 28, server=server,
                                             **{k: v for k, v in kw.items() if k != 'packet'})
show(seen)
"""
    got = net.probe(code, [API])
    assert len(got) >= 8
    for how, r in got.items():
        assert r["value"] and r["value"]["rcode"] == 0 and r["value"]["addresses"], f"{how}: {r}"
        assert r["seconds"] < PROMPT, how


def test_over_ipv6(net):
    """The sandbox's resolver has an address of each family; it replies from the address that was
    asked."""
    got = net.probe("show({s: tried(dns, 'api.example.test', server=s, connected=False)"
                    " for s in ('198.18.0.53', 'fd53:7373:6273::53')})", [API])
    for server, r in got.items():
        assert r["value"] and r["value"]["addresses"], f"{server}: {r}"


def test_several_questions_on_one_connection(net):
    code = """
with socket.create_connection((nameservers()[0], 53), 5) as s:
    got = []
    for name in ('api.example.test', 'evil.test', 'api.example.test'):
        packet = question(name)
        for b in struct.pack('>H', len(packet)) + packet:   # a byte at a time
            s.send(bytes([b]))
        size = struct.unpack('>H', s.recv(2, socket.MSG_WAITALL))[0]
        got.append(parse(s.recv(size, socket.MSG_WAITALL))['rcode'])
show(got)
"""
    assert net.probe(code, [API]) == [0, NXDOMAIN, 0]


@pytest.mark.parametrize("audit", ["full", "off"])
@pytest.mark.parametrize("server", ["192.0.2.53", "10.77.0.1", "127.0.0.1", "127.0.0.53",
                                    "2001:db8::53", "fd77::1", "::1"])
def test_hard_wired_server(net, server, audit):
    """A program asks a name server at a fixed address: the sandbox answers or refuses at once, and
    the question never reaches a server outside."""
    got = net.probe(f"""
    ways = ({{}}, {{'connected': False}}, {{'tcp': True}})
    show([[tried(dns, n, server={server!r}, **w) for w in ways]
          for n in ('api.example.test', 'evil.test')])""", [API], flags=("--audit", audit))
    for name, tries in zip(("api.example.test", "evil.test"), got):
        for r in tries:
            assert r["seconds"] < PROMPT and r["error"] != "TimeoutError", f"{name}: {r}"
            assert r["error"] or synthetic_or_none(r["value"], name), f"{name}: {r}"
    assert net.nothing_arrived()
    control = net.control("show(dns('dns.example.test', server='127.0.0.1'))")
    assert control["addresses"] == ["127.0.0.1"] and net.seen()["queries"]


def synthetic_or_none(value, name):
    return all(map(synthetic, value["addresses"])) if name == "api.example.test" \
        else value["rcode"] == NXDOMAIN


JUNK = """
import random
random.seed(7)
good = question('api.example.test')
junk = [b'', b'\\0', good[:11], good[:12], good[:-1], good + b'\\0' * 60000, b'\\xff' * 512,
        struct.pack('>HHHHHH', 1, 0x100, 1, 0, 0, 0) + b'\\xc0\\x0c\\0\\1\\0\\1',
        struct.pack('>HHHHHH', 1, 0x100, 1, 0, 0, 0) + b'\\xc0\\xff\\0\\1\\0\\1',
        struct.pack('>HHHHHH', 1, 0x100, 1, 0, 0, 0) + b'\\x3f' + b'a' * 63 * 5 + b'\\0\\0\\1\\0\\1',
        struct.pack('>HHHHHH', 1, 0x100, 65535, 65535, 65535, 65535) + b'\\0\\0\\1\\0\\1',
        struct.pack('>HHHHHH', 1, 0x8180, 1, 0, 0, 0) + good[12:],
        question('a.' * 127, 1), question('api\\0.example.test', 1), question('x' * 63 + '.b', 1)]
while len(junk) < 1000:
    p = bytearray(random.choice(junk[:15]) or good)
    for _ in range(random.randrange(1, 9)):
        p[random.randrange(len(p))] = random.randrange(256)
    junk.append(bytes(p[:random.randrange(1, len(p) + 1)]))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
sent = 0
for p in junk:
    for _ in range(200):
        try:
            sent += s.sendto(p, (nameservers()[0], 53)) == len(p)
            break
        except (BlockingIOError, ConnectionRefusedError):
            time.sleep(0.01)
"""


def test_junk_flood(net):
    code = JUNK + """
show([sent, asked('api.example.test'), tried(names, 'evil.test'), tried(tls, 'api.example.test')])
"""
    sent, known, unknown, reply = net.probe(code, [API])
    assert sent >= 990
    assert known["value"] and known["value"]["addresses"], known
    assert unknown["errno"] == "EAI_NONAME", unknown
    assert "200 OK" in (reply["value"] or ""), reply
    assert net.seen()["queries"] == []


def test_junk_over_tcp(net):
    code = JUNK + """
held = []
for i in range(300):
    s = socket.socket()
    s.settimeout(2)
    try:
        s.connect((nameservers()[0], 53))
        p = junk[i]
        s.sendall(struct.pack('>H', [len(p), 0, 65535, 1][i % 4] & 0xffff) + p[:4000])
    except OSError:
        pass
    if i % 4 == 2:
        held.append(s)
    else:
        s.close()
open_now = [asked('api.example.test'), tried(tls, 'api.example.test')]
for s in held:
    s.close()
show([open_now, asked('api.example.test', tcp=True)])
"""
    (known, reply), again = net.probe(code, [API])
    assert known["value"] and known["value"]["addresses"], known
    assert "200 OK" in (reply["value"] or ""), reply
    assert again["value"] and again["value"]["addresses"], again


def test_no_answer_over_tcp_is_the_end(net):
    """A malformed question over TCP gets no answer: the connection ends at once."""
    code = """
    def say(data):
        with socket.create_connection((nameservers()[0], 53), 5) as s:
            s.settimeout(10)
            s.sendall(struct.pack('>H', len(data)) + data)
            return text(s.recv(100))
    show([tried(say, d) for d in (b'', b'abc', question('api.example.test', flags=0x8180))])
    """
    for r in net.probe(code, [API]):
        assert not r["value"] and r["error"] != "TimeoutError" and r["seconds"] < PROMPT, r
    assert net.times("dns_resolution", "malformed") == 3


def test_query_flood(net):
    """20000 questions for undeclared names: time and trace stay bounded, and a question for a
    declared name is then answered."""
    code = """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((nameservers()[0], 53))
s.setblocking(False)
for i in range(20000):
    try:
        s.send(question(f'{i:x}.secret-data.evil.test'))
        s.recv(512)
    except OSError:
        pass
show(asked('api.example.test'))
"""
    start = time.monotonic()
    last = net.probe(code, [API])
    assert last["value"] and last["value"]["addresses"], last
    assert time.monotonic() - start < 50
    assert net.nothing_arrived()
    traces = list((net.runner.state / "skillsandbox/runs").glob("*/trace.json"))
    assert max(p.stat().st_size for p in traces) < 8 << 20
    assert dns_events(net, "0.secret-data.evil.test")


def test_localhost_by_name(net):
    got = net.probe("show([names('localhost'), tried(dns, 'localhost')])", [API])
    assert set(got[0]) == {"127.0.0.1", "::1"}
    assert net.nothing_arrived()
