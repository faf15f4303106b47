"""Real runs: run --watch, the summary after a run, and watch and ps from another terminal."""
import fcntl
import json
import os
import re
import signal
import subprocess
import time

from harness import BY_USER
from test_watch import LINE, watcher  # noqa: F401 (a fixture)

ASK = """
import socket
for _ in range(3):
    try:
        socket.getaddrinfo("evil.example.org", 443)
    except OSError:
        pass
"""


def test_run_watch_leaves_the_streams_alone(ssb):
    r = ssb.run("--watch", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert r.code == 3 and r.out == b"out\n", repr(r)
    lines = r.errors.splitlines()
    watched = [line for line in lines if LINE.match(line)]
    assert [line for line in lines if line not in watched] == ["err"]
    assert " RUN " in watched[0] and "exited, exit status 3" in watched[-1]
    assert b"\x1b" not in r.err
    quiet = ssb.run("--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert quiet.err == b"err\n", "the control: without --watch there is nothing"


def test_run_watch_shows_denials_as_they_happen(ssb):
    p = ssb.popen([ssb.binary, "run", "--watch", "--net", "example.com", "--", "/usr/bin/python3",
                   "-c", ASK + "\nimport time; time.sleep(60)"], stderr=subprocess.PIPE)
    os.set_blocking(p.stderr.fileno(), False)
    seen, end = b"", time.monotonic() + 20
    while b"look up evil.example.org [NOT_DECLARED]" not in seen:
        assert time.monotonic() < end, seen
        seen += p.stderr.read() or b""
        time.sleep(0.05)
    assert p.poll() is None, "and the skill still runs"
    p.send_signal(signal.SIGTERM)
    p.wait(20)
    p.stderr.close()


@BY_USER
def test_run_watch_waits_for_no_reader(ssb):
    """Standard error is a full pipe that no process reads: the run still ends."""
    r, w = os.pipe()
    fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 4096)
    os.write(w, b"x" * 4096)
    begin = time.monotonic()
    p = ssb.popen([ssb.binary, "run", "--watch", "--", "echo", "done"], stderr=w,
                  stdout=subprocess.PIPE)
    os.close(w)
    assert p.stdout.readline() == b"done\n"
    ran = time.monotonic() - begin
    assert p.wait(30) == 0 and ran < 5
    p.stdout.close()
    os.close(r)


def test_run_watch_on_a_raw_terminal(ssb):
    command = f"{ssb.binary} run --watch --tty -- sh -c 'sleep 0.5; echo hi'"
    out = ssb.as_caller(["script", "-qec", command, "/dev/null"], env={"TERM": "xterm"}).out
    assert b"LAYERS" in out and b"hi" in out
    assert not re.search(rb"[^\r]\n", out), out


def test_summary_after_violations(ssb):
    argv = ["--net", "example.com", "--", "/usr/bin/python3", "-c", ASK]
    r = ssb.run(*argv).ok()
    assert "skillsandbox: denied:" in r.errors, repr(r)
    assert re.search(r"^  \d+ x look up evil\.example\.org \[not_declared\]$", r.errors, re.M)
    assert "to allow: --net evil.example.org" in r.errors
    run_id = re.search(r"skillsandbox why ([0-9a-f]{8})", r.errors).group(1)
    why = ssb.ssb("why", run_id).ok().text
    assert "look up evil.example.org" in why and "--net evil.example.org" in why
    assert ssb.run("-q", *argv).ok().err == b""
    assert ssb.run("--net", "example.com", "--", "true").ok().err == b""


def test_summary_with_trace_output(ssb):
    place = ssb.mkdir("traces")
    r = ssb.run("--trace-output", place / "x.json", "--net", "example.com", "--",
                "/usr/bin/python3", "-c", ASK).ok()
    assert "look up evil.example.org" in r.errors
    assert ssb.ssb("audit", "verify", place / "x.jsonl").ok()
    r = ssb.ssb("audit", "verify", place / "x.json")
    assert r.code == 2 and ".jsonl" in r.errors


def test_a_run_is_verified_listed_and_shown(ssb):
    ssb.run("--", "sh", "-c", "echo hello; exit 3")
    found = ssb.ssb("audit", "list", "--json").ok().json()
    assert [(f["skill_name"], f["state"], f["exit_code"]) for f in found] == [("sh", "ended", 3)]
    assert ssb.ssb("audit", "verify", "last").ok()
    assert "stdout: hello" in ssb.ssb("audit", "show", "last").ok().text
    bundle = ssb.base / "run.bundle"
    ssb.ssb("audit", "export", "last", "-o", bundle).ok()
    assert ssb.ssb("audit", "verify", bundle).ok()
    path = ssb.state / "skillsandbox/runs" / found[0]["run_id"] / "trace.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"hello"', b'"hallo"'))
    assert ssb.ssb("audit", "verify", "last").code == 1


def test_ps_and_watch_of_a_living_run(ssb, watcher):  # noqa: F811
    assert ssb.ssb("ps", "--json").ok().json() == []
    p = ssb.popen([ssb.binary, "run", "--", "sh", "-c", "echo begun; sleep 60"],
                  stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"begun\n"
    live = ssb.ssb("ps", "--json").ok().json()
    assert [(f["skill_name"], f["state"]) for f in live] == [("sh", "live")]
    w = watcher()
    w.until(b"STDOUT  begun")
    r = ssb.ssb("audit", "verify", "last")
    assert r.code == 3 and "still running" in r.text
    ssb.ssb("audit", "prune", "--keep", "0").ok()
    p.send_signal(signal.SIGTERM)
    p.wait(20)
    assert w.finish() == 0 and b" END " in w.seen
    assert ssb.ssb("ps", "--json").ok().json() == []
    assert ssb.ssb("audit", "verify", "last").ok()
    p.stdout.close()


def test_a_killed_supervisor_leaves_an_incomplete_record(ssb, watcher):  # noqa: F811
    p = ssb.popen([ssb.binary, "run", "--", "sh", "-c", "echo begun; sleep 60"],
                  stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"begun\n"
    w = watcher("last")
    w.until(b"RUN")
    p.kill()
    p.wait(20)
    assert w.finish() == 3
    r = ssb.ssb("audit", "verify", "last")
    assert r.code == 3, repr(r)
    assert json.loads(ssb.ssb("audit", "list", "--json").out)[0]["state"] == "incomplete"
    p.stdout.close()
