"""No network unless egress is declared; the skill's own loopback works."""
import socket

import pytest

LOOPBACK = """
import json, socket, threading
seen = {}
for family, address in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    s = socket.create_server((address, 0), family=family)
    def serve(s=s):
        c, _ = s.accept()
        c.sendall(c.recv(10).upper())
        c.close()
    threading.Thread(target=serve, daemon=True).start()
    c = socket.create_connection((address, s.getsockname()[1]), timeout=5)
    c.sendall(b'abc')
    seen[address] = c.recv(10).decode()
c = socket.create_server(('0.0.0.0', 8080))
seen['localhost'] = [a[4][0] for a in socket.getaddrinfo('localhost', 80, type=socket.SOCK_STREAM)]
seen['by family'] = [socket.getaddrinfo('localhost', 80, f)[0][4][0]
                     for f in (socket.AF_INET, socket.AF_INET6)]
seen['old way'] = socket.gethostbyname_ex('localhost')[2]
print(json.dumps(seen))
"""


def test_loopback_inside(ssb):
    seen = ssb.probe(LOOPBACK)
    assert seen["127.0.0.1"] == seen["::1"] == "ABC"
    assert seen["localhost"] == ["127.0.0.1", "::1"], "both, and first what most services are on"
    assert seen["by family"] == ["127.0.0.1", "::1"] and set(seen["old way"]) == {"127.0.0.1"}


DIAL = """
import json, os, socket, time
seen = {}
for host, port in json.loads(os.environ['TARGETS']):
    start = time.monotonic()
    try:
        socket.create_connection((host, port), timeout=5).close()
        seen[f'{host}:{port}'] = 'connected'
    except OSError as e:
        seen[f'{host}:{port}'] = type(e).__name__
    assert time.monotonic() - start < 4, 'refused at once, not after a wait'
print(json.dumps(seen))
"""


def test_host_services_are_out_of_reach(ssb):
    import json
    servers = [socket.create_server(("127.0.0.1", 0)),
               socket.create_server(("::1", 0), family=socket.AF_INET6)]
    targets = [s.getsockname()[:2] for s in servers]
    env = {"TARGETS": json.dumps(targets)}
    try:
        seen = ssb.probe(DIAL, env=env, allow=["TARGETS"])
        assert "connected" not in seen.values()
        control = ssb.as_caller(["/usr/bin/python3", "-c", DIAL], env=env).ok().json()
        assert set(control.values()) == {"connected"}
    finally:
        for s in servers:
            s.close()


def test_outside_addresses_are_refused_at_once(ssb):
    import json
    env = {"TARGETS": json.dumps([("192.0.2.1", 443), ("169.254.169.254", 80),
                                  ("2001:db8::1", 443), ("10.0.0.1", 22)])}
    assert "connected" not in ssb.probe(DIAL, env=env, allow=["TARGETS"]).values()


ASK = {
    "libc": "socket.getaddrinfo('secret-data.collector.example', 443)",
    "one datagram": "socket.socket(socket.AF_INET6, 2).sendto(b'?' * 20, ('::1', 53))",
    "over TCP": "socket.create_connection(('::1', 53), 5)",
}


@pytest.mark.parametrize("how", ASK)
def test_names_do_not_resolve(ssb, how):
    """Without egress a name lookup fails at once, and the attempt is in the record."""
    code = f"""
    import socket, time
    start = time.monotonic()
    try:
        {ASK[how]}
        print('resolved')
    except OSError:
        print('denied')
    assert time.monotonic() - start < 5
    """
    r = ssb.inside(code).ok()
    name = "secret-data.collector.example" if how == "libc" else "a name"
    assert r.text.strip() == "denied" and f"look up {name} [not_declared]" in r.errors, r
    trace = ssb.last_trace()
    asked = [e for e in trace["events"] if e["kind"] == "network_egress_blocked"]
    assert {e["data"]["reason"] for e in asked} == {"not_declared"}, asked
    assert trace["violation_summary"]["classes"] == [], "a lookup alone is no attack"


def test_own_names_ask_no_resolver(ssb):
    code = """
    import socket
    socket.getaddrinfo(socket.gethostname(), 80), socket.getaddrinfo('localhost', 80)
    socket.getfqdn(), socket.gethostbyaddr('::1')
    """
    ssb.inside(code).ok()
    assert not ssb.last_trace()["policy_violations"]


def test_udp_leaves_nothing(ssb):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    server.settimeout(1)
    port = server.getsockname()[1]
    code = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    s.sendto(b'loot', ('127.0.0.1', {port}))
except OSError:
    pass
"""
    try:
        ssb.inside(code).ok()
        with pytest.raises(socket.timeout):
            server.recv(10)
        ssb.as_caller(["/usr/bin/python3", "-c", code]).ok()
        assert server.recv(10) == b"loot"
    finally:
        server.close()


def test_only_loopback_is_there(ssb):
    r = ssb.inside("print(open('/proc/net/dev').read())")
    names = [line.split(":")[0].strip() for line in r.ok().text.splitlines() if ":" in line]
    assert names == ["lo"]


@pytest.mark.parametrize("name", ["localhost", "sandbox", "db.localhost"])
def test_a_rule_for_the_sandbox_itself_is_told(ssb, name):
    """The manifest names localhost, which is the skill's own loopback, but its author means the
    host's: each command warns and gives the remedy."""
    skill = ssb.skill("print('ran')", egress=[{"domain": name, "ports": [5432]}])
    remedy = "--net 127.0.0.1:5432 --allow-private 127.0.0.1"
    told = ssb.ssb("validate", skill).ok().errors
    assert f"{name} is the sandbox itself" in told and remedy in told, told
    line = 1 + (skill / "skillsandbox.yaml").read_text().split(name)[0].count("\n")
    assert f"skillsandbox.yaml:{line}:" in told, told
    inspected = ssb.ssb("inspect", skill).ok().text
    assert remedy in " ".join(inspected.split()), inspected
    for r in (ssb.run(skill), ssb.run("--net", f"{name}:5432", "--", "echo", "ran")):
        assert r.ok().text == "ran\n" and remedy in r.errors, repr(r)
    for other in ("a.test", "127.0.0.1", "notlocalhost"):
        fine = ssb.skill("", egress=[{"domain": other}])
        assert "itself" not in ssb.ssb("validate", fine).ok().errors
