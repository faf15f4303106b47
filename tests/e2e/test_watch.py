"""watch and ps, on records that the test writes as a supervisor would."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from harness import wait_for
from record_maker import Live, Record, State

LINE = re.compile(r"^\[\d\d:\d\d:\d\d\.\d{3}\] \S (?:[0-9a-f]{8} )?[A-Z]+ +\S.*$")


@pytest.fixture
def watcher(ssb):
    """Starts watchers, and kills them at the end of the test."""
    started = []

    def start(*words, before=()):
        started.append(Watcher(ssb, *words, before=before))
        return started[-1]
    yield start
    for w in started:
        w.p.kill()
        w.p.wait(10)
        w.p.stdout.close()


class Watcher:
    def __init__(self, ssb, *words, before=()):
        self.p = ssb.popen([*before, ssb.binary, "watch", *words], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        os.set_blocking(self.p.stdout.fileno(), False)
        self.seen = b""

    def look(self):
        self.seen += self.p.stdout.read() or b""
        return self.seen

    def until(self, text, seconds=30):
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"no {text!r} in {self.seen!r}"
            self.look()
            time.sleep(0.02)
        return self.seen

    def is_told_of_runs(self, child=False):
        """True if the watcher, or its child, has an inotify watch."""
        task = pathlib.Path(f"/proc/{self.p.pid}/task/{self.p.pid}/children")
        found = False
        with contextlib.suppress(FileNotFoundError, IndexError):
            pid = task.read_text().split()[0] if child else self.p.pid
            for f in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
                found = found or "inotify wd:" in f.read_text()
        return found

    def lines_of(self, run_id):
        """The sequence numbers of the lines that the watcher has shown of this run."""
        whole = self.look().rpartition(b"\n")[0]
        found = [json.loads(line) for line in whole.splitlines()]
        return [f["record"]["seq"] for f in found if f["run_id"] == run_id]

    def finish(self, seconds=30):
        code = self.p.wait(seconds)
        os.set_blocking(self.p.stdout.fileno(), True)
        self.seen += self.p.stdout.read() or b""
        return code

    def stop(self):
        self.p.send_signal(signal.SIGINT)
        return self.finish()


def test_watch_follows_a_run(ssb, watcher):
    state = State(ssb)
    record = Record()
    live = Live(state, record)
    live.write(4)
    w = watcher(record.id)
    w.until(b"python3 main.py Berlin")
    assert b".ssh" not in w.seen
    live.write(4)
    w.until(b"read /home/u/.ssh/id_ed25519 [CREDENTIAL_STORE]")
    assert w.p.poll() is None
    live.write(len(live.lines))
    assert w.finish() == 0
    lines = w.seen.decode().splitlines()
    assert all(LINE.match(line) for line in lines), lines
    assert "weather 1.0.0" in lines[0] and "exited, exit status 0" in lines[-1]
    assert any("41 more like record 7" in line for line in lines)
    live.close()


def test_watch_without_a_word_takes_the_only_one(ssb, watcher):
    state = State(ssb)
    state.put(Record())
    assert ssb.ssb("watch").code == 125
    live = Live(state, Record(), flat=True)
    live.write(2)
    w = watcher()
    w.until(b"LAYERS")
    other = Live(state, Record())
    other.write(1)
    r = ssb.ssb("watch")
    assert r.code == 125 and "--all" in r.errors
    other.close()
    live.write(len(live.lines))
    assert w.finish() == 0
    live.close()


def test_watch_ends_when_the_supervisor_is_gone(ssb, watcher):
    live = Live(State(ssb), Record())
    live.write(3)
    w = watcher("last")
    w.until(b"weather")
    time.sleep(1.5)
    assert w.p.poll() is None, "the control: it waits while the run lives"
    live.close()
    assert w.finish() == 3 and b"no end" in w.seen


def test_watch_all_sees_runs_that_start_later(ssb, watcher):
    state = State(ssb)
    a_record = Record(skill_name="first")
    a = Live(state, a_record)
    a.write(2)
    said = Record(events=[("stdout", {"message": "x"})] * 3000)
    begun = Live(state, said)  # the watcher has begun when it shows lines of this run
    w = watcher("--all", "--json")
    wait_for(lambda: begun.write() or w.lines_of(said.id))
    b_record = Record(skill_name="second")
    b = Live(state, b_record, flat=True)
    b.write(2)
    w.until(b"second")
    # The record is moved to its directory, as a supervisor does, and lines are added.
    target = b.path.parent / b_record.id
    target.mkdir()
    b.path.rename(target / "trace.jsonl")
    b.write(len(b.lines))
    a.write(len(a.lines))
    ends = [(r.id, len(r.lines()) - 1) for r in (a_record, b_record)]
    wait_for(lambda: all(last in w.lines_of(run) for run, last in ends))
    assert w.stop() == -signal.SIGINT
    assert w.lines_of(b_record.id) == list(range(len(b_record.lines())))
    assert w.lines_of(a_record.id) == list(range(2, len(a_record.lines()))), "from now on"
    begun.close()
    a.close()
    b.close()


def test_watch_all_tells_a_run_once(ssb, watcher):
    """A run is shown only once, even if its record is read to the end before it moves to its
    directory."""
    w = watcher("--all", "--json")
    wait_for(w.is_told_of_runs)
    record = Record()
    live = Live(State(ssb), record, flat=True)
    target = live.path.parent / record.id
    target.mkdir()
    live.write(len(live.lines))
    wait_for(lambda: len(record.lines()) - 1 in w.lines_of(record.id))
    live.path.rename(target / "trace.jsonl")
    time.sleep(1.5)  # the watcher must have handled the inotify event of mkdir()
    later = Live(State(ssb), Record(skill_name="later"), flat=True)
    later.write(1)
    w.until(b"later")
    assert w.lines_of(record.id) == list(range(len(record.lines())))
    live.close()
    later.close()


def test_watch_all_sees_a_run_that_starts_while_it_begins(ssb, watcher):
    """A run starts after the list of the runs is made and before new ones are watched (which is
    delayed here): it is shown."""
    slow = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=inotify_add_watch",
            "-e", "inject=inotify_add_watch:delay_enter=3000000"]
    w = watcher("--all", "--json", before=slow)
    time.sleep(1)
    record = Record(events=[("stdout", {"message": "x"})] * 3000)
    live = Live(State(ssb), record, flat=True)
    try:
        wait_for(lambda: live.write() or w.lines_of(record.id))
    finally:
        subprocess.run(["pkill", "-KILL", "-P", str(w.p.pid)], check=True)
        live.close()


def test_a_run_that_starts_before_the_list_is_told_whole(ssb, watcher):
    """A run starts before the list of the runs is made (which is delayed here): all of it is
    shown."""
    State(ssb)
    slow = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=getdents64",
            "-e", "inject=getdents64:delay_enter=2000000:when=1"]
    w = watcher("--all", "--json", before=slow)
    wait_for(lambda: w.is_told_of_runs(child=True))
    record = Record()
    live = Live(State(ssb), record, flat=True)
    try:
        live.write(len(live.lines))
        wait_for(lambda: w.lines_of(record.id) == list(range(len(record.lines()))))
    finally:
        subprocess.run(["pkill", "-KILL", "-P", str(w.p.pid)], check=True)
        live.close()


def test_watch_all_before_the_first_run(ssb, watcher):
    w = watcher("--all")
    wait_for(w.is_told_of_runs)
    live = Live(State(ssb), Record(), flat=True)
    live.write(len(live.lines))
    w.until(b"exited")
    assert all(LINE.match(line) for line in w.seen.decode().splitlines()), w.seen
    w.stop()
    live.close()


def test_watch_waits_for_the_rest_of_a_line(ssb, watcher):
    live = Live(State(ssb), Record())
    live.write(2)
    w = watcher("last", "--json")
    w.until(b'"seq":1')
    line = live.lines.pop(0)
    live.file.write(line[:40])
    time.sleep(0.4)
    assert b'"seq":2' not in w.seen + (w.p.stdout.read() or b"")
    live.file.write(line[40:])
    live.write(len(live.lines))
    assert w.finish() == 0
    assert w.seen == live.path.read_bytes()
    live.close()


def test_watch_lines_are_short(ssb):
    record = Record(events=[("stdout", {"message": "é" * 5000})])
    State(ssb).put(record)
    line = ssb.ssb("watch", record.id).ok().text.splitlines()[1]
    assert line.endswith("é" * 117 + "...") and len(line) < 150


def test_ps_lists_the_living(ssb):
    state = State(ssb)
    assert ssb.ssb("ps").ok().out == b""
    ended = Record()
    state.put(ended)
    state.put(Record(end=None))
    a, b = Live(state, Record(skill_name="a")), Live(state, Record(skill_name="b"), flat=True)
    a.write(9)
    b.write(2)
    found = ssb.ssb("ps", "--json").ok().json()
    assert sorted((r["skill_name"], r["state"], r["violations"]) for r in found) == \
        [("a", "live", 1), ("b", "live", 0)]
    assert len(ssb.ssb("ps").ok().text.splitlines()) == 3
    a.close()
    b.close()
    assert ssb.ssb("ps", "--json").ok().json() == []
    assert ssb.ssb("ps", "x").code == 2
