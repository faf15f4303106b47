"""The network of a governed run: its traffic is measured, and its connections end with the run."""
import os
import pathlib
import signal
import textwrap
import time

from governor import GATE, govern  # noqa: F401
from harness import wait_for
from net_fixtures import GRANT, net, outside, rule  # noqa: F401

ECHO = rule("api.example.test", 7001)
DATAGRAMS = rule("api.example.test", 7005, protocol="udp")

TALK = """
import socket
s = socket.create_connection(('api.example.test', 7001), timeout=10)
def talk(n):
    sent = got = 0
    while got < n:
        if sent < n:
            sent += s.send(b'x' * min(65536, n - sent))
        got += len(s.recv(65536))
talk(300000)
""" + GATE + """
talk(5000)
s.close()
"""


def gated(net, code, egress):
    """Returns a skill whose code waits at GATE, and a function that lets it continue."""
    shared = net.runner.mkdir(f"gate{net.runner.count}")
    skill = net.skill(code.replace("SHARED", str(shared)), egress, write=[shared])
    return skill, lambda: net.runner.write(shared / "go", "")


def totals(net):
    data = [e["data"] for e in net.runner.last_trace()["events"]
            if e["kind"] == "network_policy_removed"][0]
    return data["bytes_out"], data["bytes_in"]


def test_bytes_are_metered_while_the_connection_is_open(net, govern):
    net.world.reset()
    skill, go = gated(net, TALK, [ECHO])
    g = govern(net.runner, *GRANT, skill)
    live = g.reaches("used", lambda m: m["out"] >= 300000 and m["in"] >= 300000)
    assert live["out"] == live["in"] == 300000, "the connection is still open"
    go()
    assert g.result()["end"] == "exited"
    last = g.all("used")[-1]
    assert (last["out"], last["in"]) == totals(net)
    assert last["out"] == 305000, "what the skill says it sent"
    assert [m["name"] for m in g.all("connection")] == ["api.example.test"]
    assert len(net.allowed("api.example.test")) == 1, "no event of the trace for it"
    for key in ("out", "in"):
        series = [m[key] for m in g.all("used")]
        assert series == sorted(series)


def test_datagrams_are_metered(net, govern):
    code = """
    import socket
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((socket.gethostbyname('api.example.test'), 7005))
    s.settimeout(10)
    for _ in range(20):
        s.send(b'y' * 1000)
        s.recv(2000)
    """
    skill, go = gated(net, textwrap.dedent(code) + GATE, [DATAGRAMS])
    g = govern(net.runner, *GRANT, skill)
    assert g.reaches("used", lambda m: m["out"] >= 20000)["out"] == 20000
    go()
    g.result()
    last = g.all("used")[-1]
    assert (last["out"], last["in"]) == totals(net)
    assert last["out"] == 20000
    assert [m["name"] for m in g.all("connection")] == ["api.example.test"]


MANY = """
import socket
for _ in range(120):
    s = socket.create_connection(('api.example.test', 7001), timeout=10)
    s.sendall(b'z' * 10)
    s.recv(10)
    s.close()
"""


def test_every_connection_is_told(net, govern):
    g = govern(net.runner, *GRANT, net.skill(MANY, [ECHO]))
    assert g.result()["end"] == "exited"
    assert [m["name"] for m in g.all("connection")] == ["api.example.test"] * 120
    last = g.all("used")[-1]
    assert (last["out"], last["in"]) == totals(net)


def children(pid):
    return [int(c) for c in
            pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_governor_that_does_not_listen_loses_nothing(net, govern):
    """While the governor is stopped (SIGSTOP), new connections of the skill wait. After it resumes,
    it gets the events of all of them."""
    code = GATE + MANY.replace("range(120)", "range(500)") + "print('made', flush=True)\n"
    skill, go = gated(net, code, [ECHO])
    g = govern(net.runner, *GRANT, skill)
    init = g.hear("placed")["init"]
    supervisor = int(pathlib.Path(f"/proc/{init}/stat").read_text().rsplit(")", 1)[1].split()[1])
    governor = children(supervisor)[0]
    os.kill(governor, signal.SIGSTOP)
    go()
    time.sleep(3)
    assert "made" not in g.out.read_text(), "they were held up"
    os.kill(governor, signal.SIGCONT)
    assert g.result()["end"] == "exited"
    assert len(g.all("connection")) == 500


def test_a_deaf_governor_does_not_hold_the_caller(net, govern):
    skill, go = gated(net, GATE + MANY.replace("range(120)", "range(500)"), [ECHO])
    g = govern(net.runner, *GRANT, skill)
    init = g.hear("placed")["init"]
    supervisor = int(pathlib.Path(f"/proc/{init}/stat").read_text().rsplit(")", 1)[1].split()[1])
    governor = children(supervisor)[0]
    os.kill(governor, signal.SIGSTOP)
    go()
    time.sleep(2)
    os.kill(supervisor, signal.SIGINT)
    wait_for(lambda: not os.path.exists(f"/proc/{init}"))
    os.kill(governor, signal.SIGCONT)
    assert g.result()["end"] in ("canceled", "signaled")


GRACE = """
import os, signal, socket, time
s = socket.create_connection(('api.example.test', 7001), timeout=10)
s.sendall(b'a')
assert s.recv(1) == b'a'
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
def talk():
    try:
        c = socket.create_connection(('api.example.test', 7001), timeout=10)
        c.sendall(b'a')
        return c.recv(1) == b'a'
    except OSError:
        return False
def old():
    try:
        s.sendall(b'b')
        return s.recv(1) == b'b'
    except OSError:
        return False
print('before', talk(), old(), flush=True)
while not told:
    time.sleep(0.01)
print('after', talk(), old(), flush=True)
while True:
    time.sleep(1)
"""


def test_network_is_closed_during_the_grace(net, govern):
    g = govern(net.runner, *GRANT, net.skill(GRACE, [ECHO]))
    g.output("before True True")
    net.world.reset()
    g.say("kill 60000 over")
    g.output("after False False")
    assert net.seen()["connections"] == [], "nothing more arrived"
    g.say("kill 0 over")
    assert g.result()["end"] == "session"
    last = g.all("used")[-1]
    assert (last["out"], last["in"]) == totals(net)


def test_repeated_denials_arrive_while_it_runs(net, govern):
    """The record lists equal denials once, and their count at the end. The governor may have to act
    earlier, so it gets all of them while the run is running."""
    code = """
    import socket
    for _ in range(30):
        try:
            socket.getaddrinfo('exfil.example.test', 443)
        except OSError:
            pass
    """
    skill, go = gated(net, textwrap.dedent(code) + GATE, [ECHO])
    g = govern(net.runner, *GRANT, skill)
    # Each of the 30 getaddrinfo() calls asks twice: for IPv4 and for IPv6.
    g.reaches("violations", lambda _: sum(m["total"] for m in g.all("violations")) >= 60)
    live = sum(m["total"] for m in g.all("violations"))
    go()
    r = g.result()
    assert sum(m["total"] for m in g.all("violations")) == r["violations"] == live
    classes = {}
    for m in g.all("violations"):
        for k, v in m["classes"].items():
            classes[k] = classes.get(k, 0) + v
    summary = net.runner.last_trace()["violation_summary"]
    assert {c["class"]: c["count"] for c in summary["classifications"]} == classes


def test_pause_keeps_a_connection(net, govern):
    code = """
    import socket, time
    s = socket.create_connection(('api.example.test', 7001), timeout=30)
    for i in range(100000):
        s.sendall(b'c')
        assert s.recv(1) == b'c'
        if i == 50:
            print('going', flush=True)
        time.sleep(0.005)
    """
    g = govern(net.runner, *GRANT, net.skill(code, [ECHO]))
    g.output("going")
    g.say("pause")
    g.hear("stands")

    def out():
        g.drain()
        return g.all("used")[-1]["out"] if g.all("used") else 0

    def stands():  # data that was on its way when the pause began still arrives for a moment
        before = out()
        time.sleep(0.5)
        return out() == before
    wait_for(stands)
    before = out()
    g.say("resume")
    g.hear("goes")
    wait_for(lambda: out() > before + 20)
    g.say("kill 0 over")
    assert g.result()["end"] == "session"
