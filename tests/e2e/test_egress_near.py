"""A declared name leads to a public address of this machine or of a neighbour: the connection
needs the owner's grant, because services there often trust every host that can reach them."""
import subprocess

import pytest

import net_servers
from net_fixtures import net, outside, rule

# (name, its address, the reason with which a connection to it is denied)
PLACES = [("own", net_servers.OWN, "this_machine"), ("second", net_servers.SECOND, "this_machine"),
          ("own6", net_servers.OWN6, "this_machine"),
          ("neighbour", net_servers.NEIGHBOUR, "on_link"),
          ("neighbour6", net_servers.NEIGHBOUR6, "on_link")]
NAMES = [p[0] for p in PLACES]

TRY = """
import sys
def tcp(host):
    with socket.create_connection((host, 7001), 20) as s:
        s.sendall(b'x')
        return s.recv(10).decode()
def udp(host):
    with socket.socket(socket.AF_INET6 if '6' in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(4)
        s.connect((host, 7005))
        s.send(b'x')
        return s.recv(10).decode()
def tried(what, host):
    try:
        return what(host)
    except OSError as e:
        return type(e).__name__
show([[tried(tcp, h), tried(udp, h)] for h in HOSTS])
"""


def code_for(*names):
    return TRY.replace("HOSTS", repr([f"{n}.example.test" for n in names]))


def rules_for(*names):
    return [r for n in names for r in (rule(f"{n}.example.test", 7001, protocol="tcp"),
                                       rule(f"{n}.example.test", 7005, protocol="udp"))]


def test_near_ones_are_refused(net):
    assert net.control(code_for(*NAMES)) == [["x", "X"]] * len(NAMES), "they answer every client"
    got = net.probe(code_for(*NAMES), rules_for(*NAMES), flags=())
    assert all("x" not in (t, u) and "X" not in (t, u) for t, u in got), got
    seen = net.seen()
    assert not seen["connections"] and not seen["datagrams"]
    for name, address, kind in PLACES:
        for protocol in "tcp", "udp":
            found = {(e["data"]["reason"], e["data"]["range"], e["data"]["address_refused"])
                     for e in net.blocked(f"{name}.example.test", protocol)
                     if e["data"]["protocol"] == protocol}
            assert found == {("guarded", kind, address)}, (name, protocol)


def test_the_owner_may_grant_them(net):
    flags = [word for _, address, _ in PLACES for word in ("--allow-private", address)]
    got = net.probe(code_for(*NAMES), rules_for(*NAMES), flags=flags)
    assert got == [["x", "X"]] * len(NAMES)


@pytest.mark.parametrize("address", [net_servers.OWN, net_servers.OWN6])
def test_a_declared_address_is_judged_alike(net, address):
    code = TRY.replace("HOSTS", repr([address])).replace("'6' in host", "':' in host")
    flags = ("--net", f"[{address}]:7001" if ":" in address else f"{address}:7001")
    assert net.control(code) == [["x", "X"]]
    assert net.probe(code, flags=flags)[0][0] != "x"
    assert net.blocked("this_machine")
    assert net.probe(code, flags=(*flags, "--allow-private", address))[0][0] == "x"


def test_far_ones_need_no_grant(net):
    assert net.probe(code_for("public"), rules_for("public"), flags=()) == [["x", "X"]]


@pytest.fixture
def without_router(outside):
    """The default route has a device but no router, as on some hosts."""
    def ip(*words):
        subprocess.run([*outside.enter, "ip", *words], check=True, timeout=10)
    ip("route", "del", net_servers.PUBLIC)
    ip("route", "add", "default", "dev", "near")
    yield
    ip("route", "del", "default", "dev", "near")
    ip("route", "add", net_servers.PUBLIC, "via", net_servers.ROUTER)


def test_a_default_route_without_a_router(net, without_router):
    got = net.probe(code_for("public", "own", "neighbour"),
                    rules_for("public", "own", "neighbour"), flags=())
    assert got[0] == ["x", "X"]
    assert all("x" not in pair and "X" not in pair for pair in got[1:]), got


@pytest.fixture
def several_ways(outside):
    """The route to the neighbour has two next hops; only one of them is a router."""
    def ip(*words):
        subprocess.run([*outside.enter, "ip", "route", *words], check=True, timeout=10)
    places = net_servers.NEIGHBOUR + "/32"
    ip("add", places, "nexthop", "via", net_servers.ROUTER, "dev", "near",
       "nexthop", "dev", "near")
    yield
    ip("del", places)


def test_a_neighbour_by_one_of_several_ways(net, several_ways):
    assert net.control(code_for("neighbour")) == [["x", "X"]]
    got = net.probe(code_for("neighbour"), rules_for("neighbour"), flags=())
    assert "x" not in got[0] and "X" not in got[0], got
    assert net.blocked("on_link")
