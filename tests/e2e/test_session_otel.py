"""The ledger of a session is exported to the owner's OpenTelemetry collector: each line once, and a
span at the end, whatever the collector does."""
import os
import sqlite3
import time

import pytest

import notify_world
import otlp_server
import otlp_world
from harness import wait_for
from notify_world import Receiver
from otlp_server import attributes
from session_cli import Sessions, end_heralds, store_url

HEADERS = {"OTEL_EXPORTER_OTLP_HEADERS": "x-key=decoy%20key"}


@pytest.fixture(params=["sqlite", "postgresql"])
def sessions(request, ssb):
    url = store_url(request)
    yield Sessions(ssb, url)
    end_heralds(ssb)


@pytest.fixture
def local(ssb):
    yield Sessions(ssb)
    end_heralds(ssb)


def begin(sessions, *urls, env=None, **sections):
    path = sessions.policy(audit={"export": [{"otel": u} for u in urls]}, **sections)
    return sessions("start", "--policy", path, env=env).ok().text.strip()


def told(sessions, session):
    """The lines of the session's ledger that a collector must get."""
    return [x for x in sessions.ledger(session) if x["kind"] != "signature" and
            not (x["kind"] == "notification" and x["type"] == "otel")]


def deliveries(sessions, session):
    return [x for x in sessions.ledger(session)
            if x["kind"] == "notification" and x["type"] == "otel"]


def seqs(collector, session):
    found = [attributes(r.attributes) for _, r in list(collector.logs)]
    return [a["session.ledger.seq"] for a in found if a["session.id"] == session]


def arrived(sessions, collector, session, seconds=15):
    """Waits until the collector has all lines, each once and in order."""
    want = [x["seq"] for x in told(sessions, session)]
    wait_for(lambda: len(seqs(collector, session)) >= len(want), seconds)
    assert not collector.faults, collector.faults
    assert seqs(collector, session) == want
    return want


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def heralds(ssb):
    """The environments of this caller's heralds and of their request processes."""
    found = [read(f"/proc/{p}/environ") for p in os.listdir("/proc")
             if p.isdigit() and read(f"/proc/{p}/comm") == b"skillsandbox-he\n"]
    return [e for e in found if f"HOME={ssb.home}\0".encode() in e]


def no_herald(ssb):
    wait_for(lambda: not heralds(ssb))


# ---- what the collector gets ---------------------------------------------

def test_the_whole_of_a_session(sessions):
    with otlp_world.collector() as c:
        env = {**HEADERS, "OTEL_SERVICE_NAME": "agents",
               "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test"}
        s = begin(sessions, c.url, env=env, agent_id="agent-7")
        sessions("check", s, "--cost", "0.3", "--action", "llm ☃ <call>", env=env).ok()
        sessions("violation", s, "--type", "pii_blocked", "--details", "a\u0085b", env=env).ok()
        sessions("pause", s, env=env).ok()
        sessions("resume", s, env=env).ok()
        sessions("kill", s, "--reason", "the owner said so", env=env).ok()
        wait_for(lambda: c.spans, 15)
        lines = {x["seq"]: x for x in told(sessions, s)}
        arrived(sessions, c, s)
        (resource, span), = c.spans
        assert (resource["service.name"], resource["deployment.environment"]) == ("agents", "test")
        assert all(r == resource for r, _ in c.logs)
        assert all(h["x-key"] == "decoy key" for _, h, _, _ in c.requests)
        for _, r in c.logs:
            a = attributes(r.attributes)
            line = lines[a["session.ledger.seq"]]
            assert r.event_name == "session." + line["kind"].removeprefix("session_")
            assert r.time_unix_nano == (otlp_world.micros(lines[0]["time"]) + line["mono"]) * 1000
            assert (a["session.id"], a["session.agent"]) == (s, "agent-7")
            assert a["session.state"] == line["snapshot"]["state"]
            assert a["session.cost_usd"] == line["snapshot"]["spent_usd"]
            assert a["session.event.kind"] == line["kind"]
            for key in ("action", "code", "reason", "violation_type"):
                assert a.get(key) == (line.get(key) or None), (key, line)
            assert r.trace_id == span.trace_id and r.span_id == span.span_id
        assert span.name == "session" and span.status.code == 2
        assert span.status.message == "the owner said so"
        assert [e.name for e in span.events] == ["session.violation", "session.paused",
                                                 "session.resumed", "session.killed"]
        a = attributes(span.attributes)
        assert (a["session.state"], a["violation_counts"]) == ("killed", ["pii_blocked=1"])
        assert a["session.reserved_usd"] == 0.3 and a["error.type"] == "session.killed"


def test_nothing_follows_a_delivery(sessions, ssb):
    """A delivery adds a line to the ledger. This line is not delivered: otherwise the deliveries
    would never end."""
    with otlp_world.collector() as c:
        s = begin(sessions, c.url)
        sessions.ok("complete", s)
        wait_for(lambda: c.spans, 15)
        wait_for(lambda: len(deliveries(sessions, s)) == len(c.requests))
        n = len(c.requests)
        assert n in (2, 3) and c.spans[0][1].status.code == 1
        no_herald(ssb)
        time.sleep(1.5)
        sessions.ok("list")
        assert len(c.requests) == n == len(deliveries(sessions, s))
        assert all(x["status"] == "sent" and x["status_code"] == 200
                   for x in deliveries(sessions, s))
        text = sessions.ok("show", s, "--ledger")
        path = ssb.write(ssb.work / "ledger.jsonl", text)
        assert ssb.ssb("audit", "verify", path, "--json").ok().json()["state"] == "complete"


@pytest.mark.parametrize("path", ["", "/", "/v1/logs", "/v1/logs/", "/v1/traces"])
def test_the_base_of_the_endpoint(local, path):
    with otlp_world.collector() as c:
        s = begin(local, c.url + path)
        local.ok("complete", s)
        wait_for(lambda: c.spans, 15)
        assert {p for p, _, _, _ in c.requests} == {"/v1/logs", "/v1/traces"}
        arrived(local, c, s)


def test_as_json(local):
    env = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
    with otlp_world.collector() as c:
        s = begin(local, c.url, env=env)
        local("check", s, "--cost", "0.123456", env=env).ok()
        local("kill", s, env=env).ok()
        wait_for(lambda: c.spans, 15)
        arrived(local, c, s)
        assert {h["Content-Type"] for _, h, _, _ in c.requests} == {"application/json"}
        assert attributes(c.spans[0][1].attributes)["session.reserved_usd"] == 0.123456


def test_by_tls(local, ssb):
    context, ca = notify_world.authority(ssb)
    with otlp_world.collector(tls=context) as c:
        s = begin(local, c.url, env={"OTEL_EXPORTER_OTLP_CERTIFICATE": str(ca)})
        wait_for(lambda: c.logs, 15)
        arrived(local, c, s)


def test_a_run_tells_of_its_end_by_itself(local, ssb):
    with otlp_world.collector() as c:
        s = begin(local, c.url)
        ssb.run("--session", s, "--", "/bin/echo", "hi").ok()
        run = ssb.last_trace()["run_id"]
        wait_for(lambda: any(r.event_name == "session.run_ended" for _, r in c.logs), 15)
        arrived(local, c, s)
        ended = [attributes(r.attributes) for _, r in c.logs
                 if r.event_name == "session.run_ended"]
        assert ended[0]["sandbox.run.id"] == run


def test_audit_that_is_off(local):
    with otlp_world.collector() as c:
        path = local.policy(audit={"enabled": False, "export": [{"otel": c.url}]})
        s = local.ok("start", "--policy", path).strip()
        local.ok("kill", s)
        on = begin(local, c.url)  # the control
        wait_for(lambda: seqs(c, on), 15)
        assert not seqs(c, s)


# ---- an agent with many actions ------------------------------------------

def test_many_actions_few_requests(local):
    with otlp_world.collector() as c:
        s = begin(local, c.url)
        begun = time.monotonic()
        for _ in range(60):
            local.ok("check", s, "--cost", "0.01")
        took = time.monotonic() - begun
        local.ok("complete", s)
        wait_for(lambda: c.spans, 15)
        arrived(local, c, s)
        assert len(c.requests) <= took + 5, "one a second, the end and the span"
        assert max(c.batches) > 2


# ---- collectors that fail ------------------------------------------------

def quick(local, *args, seconds=8.0, **kw):
    begun = time.monotonic()
    r = local(*args, **kw)
    assert time.monotonic() - begun < seconds
    return r


def test_a_dead_collector_delays_nothing_and_gets_all_when_it_lives(sessions):
    with otlp_world.reserved() as port:
        s = begin(sessions, f"http://127.0.0.1:{port}")
        for _ in range(3):
            quick(sessions, "check", s, "--cost", "0.1").ok()
        wait_for(lambda: deliveries(sessions, s), 30)
        quick(sessions, "kill", s).ok()
        first = deliveries(sessions, s)[0]
        assert first["status"] == "retry" and "refused" in first["error"]
        assert first["url"] == f"http://127.0.0.1:{port}"
        with otlp_world.collector(port=port) as c:
            wait_for(lambda: c.spans, 40)
            arrived(sessions, c, s)
            wait_for(lambda: deliveries(sessions, s)[-1]["status"] == "sent")


def test_a_slow_collector_delays_no_command(local):
    with otlp_world.collector(("hang",), ("hang",), ("hang",)) as slow, \
            otlp_world.collector() as good, Receiver() as hook:
        s = begin(local, slow.url, good.url, kill_switch={"notify": [{"webhook": hook.url}]})
        wait_for(lambda: slow.requests, 15)
        quick(local, "check", s, "--cost", "0.1").ok()
        quick(local, "kill", s).ok()
        wait_for(lambda: hook.requests, 8)  # without waiting 10 s for the slow collector
        wait_for(lambda: good.spans, 8)
        times = [t for _, _, _, t in slow.requests]
        assert not slow.logs and all(t - times[0] > 9 for t in times[1:]), times


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_refused_for_good_is_not_sent_again(local, status):
    with otlp_world.collector(otlp_server.status(status)) as c:
        s = begin(local, c.url)
        wait_for(lambda: deliveries(local, s), 15)
        line, = deliveries(local, s)
        assert (line["status"], line["status_code"], line["lines"]) == ("failed", status, 1)
        local.ok("check", s, "--cost", "0.1")
        wait_for(lambda: c.logs, 15)
        assert seqs(c, s) == [x["seq"] for x in told(local, s)][1:]


@pytest.mark.parametrize("status", [302, 401, 404, 429, 500, 503])
def test_what_can_be_mended_is_sent_again(local, status):
    with otlp_world.collector(otlp_server.status(status)) as c:
        s = begin(local, c.url)
        wait_for(lambda: c.logs, 15)
        arrived(local, c, s)
        wait_for(lambda: len(deliveries(local, s)) == 2)
        assert [x["status"] for x in deliveries(local, s)] == ["retry", "sent"]


def test_a_part_that_is_rejected_is_written_down(local):
    reply = b"\x0a\x0c\x08\x01\x12\x08no\x1b[31m!"
    with otlp_world.collector(("take", reply)) as c:
        s = begin(local, c.url)
        wait_for(lambda: deliveries(local, s), 15)
        line, = deliveries(local, s)
        assert line["status"] == "sent" and line["error"] == "the collector rejected 1: no?[31m!"


# ---- restarts ------------------------------------------------------------

def kill_heralds(ssb):
    end_heralds(ssb)
    no_herald(ssb)


def test_another_herald_goes_on_where_one_died(local, ssb):
    with otlp_world.collector() as c:
        s = begin(local, c.url)
        for _ in range(4):
            local.ok("check", s, "--cost", "0.1")
            # The test waits until the delivery of all lines is recorded. If the herald died before
            # that, lines would be sent again, after a minute.
            wait_for(lambda: sum(x["lines"] for x in deliveries(local, s)) ==
                     len(told(local, s)), 15)
            kill_heralds(ssb)
        local.ok("complete", s)
        wait_for(lambda: c.spans, 15)
        arrived(local, c, s)


def test_a_herald_that_died_at_work_leaves_nothing_out(local, ssb):
    """A herald dies during a request, so it is unknown whether the collector has the lines: it gets
    them again."""
    with otlp_world.collector(("hang",)) as c:
        s = begin(local, c.url)
        wait_for(lambda: c.requests, 15)
        kill_heralds(ssb)
        local.ok("check", s, "--cost", "0.1")
        time.sleep(1)
        assert not c.logs, "its lease holds"
        kill_heralds(ssb)
        with sqlite3.connect(ssb.state / "skillsandbox/sessions.db") as db:
            # Ends the dead herald's lease of the lines, as if a minute had passed.
            assert db.execute("UPDATE sends SET leased = 0").rowcount == 1
        local.ok("list")
        wait_for(lambda: c.logs, 15)
        arrived(local, c, s)


def test_the_environment_of_a_herald(local, ssb):
    with otlp_world.collector(("hang",)) as c:
        begin(local, c.url, env={**HEADERS, "SECRET_OF_THE_CALLER": "x"})
        wait_for(lambda: c.requests, 15)
        found = heralds(ssb)
        assert found and all(b"OTEL_EXPORTER_OTLP_HEADERS=" in e and b"SECRET_OF" not in e
                             for e in found)
