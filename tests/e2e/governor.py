"""A governor for tests: sends commands to progs/govern.c and reads its events."""
import json
import queue
import threading
import time

import pytest


class Governed:
    """A running progs/govern.c: sends commands to its governor and reads the events."""

    def __init__(self, runner, program, *args, env=None):
        self.out = runner.write(runner.base / f"out{runner.count}-{time.monotonic_ns()}", "")
        self.process = runner.popen([program, *args], stdin=-1, stdout=-1, stderr=-1,
                                    env={"GOVERN_STDOUT": str(self.out), **(env or {})})
        self.heard = []
        self.lines = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def say(self, words):
        self.process.stdin.write(words.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, word, timeout=20, **fields):
        """Returns the next event `word` with these fields; earlier events are kept in `heard`."""
        end = time.monotonic() + timeout
        while True:
            try:
                m = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no '{word}' within {timeout} s: {self.heard[-5:]}") from None
            assert m is not None, f"ended without '{word}': {self.heard[-5:]} {self.errors()}"
            self.heard.append(m)
            if m["word"] == word and all(m.get(k) == v for k, v in fields.items()):
                return m

    def reaches(self, word, met):
        """Waits for an event `word` that meets the condition, and returns it."""
        while True:
            m = self.hear(word)
            if met(m):
                return m

    def drain(self):
        """Reads all events that have arrived so far; the run must not have ended."""
        while not self.lines.empty():
            m = self.lines.get()
            assert m is not None, f"ended: {self.heard[-5:]} {self.errors()}"
            self.heard.append(m)

    def errors(self):
        return self.process.stderr.read()

    def all(self, word):
        return [m for m in self.heard if m["word"] == word]

    def result(self, timeout=30):
        r = self.hear("result", timeout)
        assert self.process.wait(timeout=30) == 0
        return r

    def output(self, text, timeout=20):
        """Waits until the skill has written `text`."""
        end = time.monotonic() + timeout
        while text not in self.out.read_text(errors="replace"):
            assert time.monotonic() < end, f"no {text!r} in {self.out.read_text()!r} {self.heard}"
            time.sleep(0.01)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=10)


@pytest.fixture
def govern(programs):
    """govern(runner, arguments...) starts a run; all runs are stopped at the end of the test."""
    made = []

    def start(runner, *args, **kw):
        made.append(Governed(runner, programs("govern"), *args, **kw))
        return made[-1]
    yield start
    for g in made:
        g.stop()


# Code for `skill_of`: the skill waits here until the test makes the file SHARED/go.
GATE = """
import os, time
while not os.path.exists('SHARED/go'):
    time.sleep(0.01)
"""


def skill_of(ssb, code, **fields):
    """Returns (skill, directory): a new skill, and a directory that the skill may write to."""
    shared = ssb.mkdir(f"shared{ssb.count}")
    return ssb.skill(code.replace("SHARED", str(shared)), write=[shared], **fields), shared


def grows(path, seconds=0.4):
    before = path.read_text() if path.exists() else ""
    time.sleep(seconds)
    return path.exists() and path.read_text() != before
