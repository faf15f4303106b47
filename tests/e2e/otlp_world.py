"""Shared by the tests of `run --otel`: a collector, and runs that are exported to it."""
import contextlib
import datetime
import socket
import time

import otlp_server
import records

SECONDS = 60  # the longest time for the export of one run
NO_DECISION = {"run", "layers", "files", "end", "signature", "stdout", "stderr"}


@contextlib.contextmanager
def collector(*plan, **kw):
    c = otlp_server.Collector(**kw)
    c.plan = list(plan)
    try:
        yield c
    finally:
        c.close()


@contextlib.contextmanager
def reserved():
    """Yields a port on which no program listens. The port stays bound with SO_REUSEADDR, so no
    other program gets it, but the test's collector can listen on it."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 0))
        yield s.getsockname()[1]


def log_text(runner):
    path = runner.state / "skillsandbox/otel.log"
    return path.read_text() if path.exists() else ""


def settled(runner, n=1, seconds=SECONDS):
    """Waits until n exports have ended; returns the text of the log."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        text = log_text(runner)
        if text.count(": exported ") >= n:
            return text
        time.sleep(0.02)
    raise AssertionError(f"not exported after {seconds} s; the log: {log_text(runner)!r}")


def environment(c, **extra):
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": c if isinstance(c, str) else c.url, **extra}


def exported(runner, c, *args, env=None, n=1, **kw):
    """Runs with --otel and waits for the export; the collector must have accepted everything."""
    result = runner.run("--otel", *args, env=environment(c, **(env or {})), **kw)
    text = settled(runner, n)
    assert not c.faults, c.faults
    assert " lost" in text and "; 0 log records lost" in text, text
    return result


def micros(text):
    at = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
    return int((at - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1))


def decisions(runner):
    return [x for x in records.last(runner) if x["kind"] not in NO_DECISION]


def log_by_seq(c):
    found = {}
    for _, r in c.logs:
        seq = otlp_server.attributes(r.attributes)["sandbox.record.seq"]
        assert seq not in found, f"record {seq} was sent twice"
        found[seq] = r
    return found


def span_by_name(c):
    found = {s.name: s for _, s in c.spans}
    assert len(found) == len(c.spans)
    return found
