"""The parts of the Python package that need no sandbox: parsers of hostile bytes, files of a call,
and texts for models and sessions."""
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import tracemalloc

import harness
import jsonschema
import pytest
import yaml

sys.path.insert(0, str(harness.REPO / "python"))

from skillsandbox import (SessionError, SessionKilled, SessionRefused,  # noqa: E402
                          SkillCrashed, SkillDenied, SkillError, SkillLoader,
                          SkillManifestError, SkillNotFound, SkillNotStarted,
                          SkillwareParamValidationError,
                          _files, _reaper, _skill, _wire, _yaml)
from skillsandbox import langchain as lc  # noqa: E402
from skillsandbox._stderr import visible  # noqa: E402
from skillsandbox.session import Session  # noqa: E402
from skillsandbox.tiers import Options, worker_class  # noqa: E402
from skillsandbox.tiers import base as workers  # noqa: E402
from skillsandbox.tiers import process  # noqa: E402


def brief(value):
    return ascii(value[:12])


# ---- YAML ----

MANIFEST = """\
# As they are written in the wild.
name: office/pdf
version: 1.0
description: >
  Fills a form
  in PDF.

  Next paragraph.
    more
  back
short_description: "a: b # c"
issuer: {name: X, email: "a@b.c", n: 3}
parameters:
  type: object
  properties:
    input_path:
      type: string
      description: where it is; see docs   # comment
      enum: [a, b,
        "c d"]
    n: {type: integer, minimum: 0}
  required:
  - input_path
  - n
requirements:
  - pymupdf>=1.2
  - "google-genai"
env_vars:
  API_KEY:
    description: 'it''s a key'
    required: true
constitution: |
  1. one
  2. two: x

      deep
empty:
maps:
  - a: 1
    b: 2
  - a: 3
    c:
      - x
      - - y
        - z
multi: this is
  a long plain
  value

  in parts
folded: "a
  quote

  here"
url: http://x.y/z
numbers: [-5, 1.5, 0, 1e5, 0x1f]
words: [yes, no, ~, null, True, on, maybe]
"""
YAML_SAME = [MANIFEST, "{}", "- a\n- b: c\n  d: e\n-\n  - x\n", "a: |+\n  x\n\n\nb: >-\n  x\n  y\n",
             "a: |2\n   x\n  y\n", "---\na: b\n...\n", "a:\n- 1\n- 2\nb: c\n", "'a b': c\n",
             "a: {\"x\":1, y: [1, 2, {z: w}]}\n", "a: b:c\n", "a: >\n\n  lead\n  x\n",
             "a: [a#b, c d ,\"x\"]  # hi\n", "a: 'x\n  y'\nb: 1\n", "a: \"  x\n\n\n  y  \"\n",
             "a: >\n  x\n\n\n  y\n   z\n\n  w\n", "a: \"\\u0041\\x42\\n\\t\\\"\"\n", "a:\r\n  b: c\r\n"]


@pytest.mark.parametrize("text", YAML_SAME, ids=brief)
def test_yaml_means_what_it_means_elsewhere(text):
    known = yaml.safe_load(text)
    if isinstance(known, dict) and "numbers" in known:
        known["numbers"][4] = "0x1f"  # our reader makes hexadecimal a string: no manifest needs it
    assert _yaml.load(text) == known


@pytest.mark.parametrize("text", [
    "a: &x b", "a: *x", "a: !t b", "a: b\na: c", "<<: {a: b}", "a: b: c", "a: [b", 'a: "b',
    "\ta: b", "a:\n   b: c\n  d: e", "- a\nb: c", "a: }", "a: {b: c", "a\nb: c", "[" * 60,
    "- " * 60 + "a", "a: b\n---\nc: d", "a: [b] c", "{a: b, a: c}", "{[a]: b}", "'", '"\\',
    'a: "\\ud800"', 'a: "\\q"', "%YAML 1.1\n---\na: b", "a: b\0"], ids=brief)
def test_yaml_that_is_refused(text):
    with pytest.raises(_yaml.YamlError):
        _yaml.load(text)


@pytest.mark.parametrize("text", [
    "[\n" * 100000, "a" + " " * 250000, '"' + "\n" * 200000, "a: '" + "''" * 100000, "- " * 100000,
    "{a: " * 50000, "a:\n " * 50000, "a: b\n" + "  c\n" * 60000, "x" * 250000 + ": y"], ids=brief)
def test_yaml_takes_no_longer_than_it_is_long(text):
    began = time.process_time()
    try:
        _yaml.load(text)
    except _yaml.YamlError:
        pass
    assert time.process_time() - began < 3


# ---- the protocol ----

@pytest.mark.parametrize("line", [
    b"", b"[]", b"3", b'"x"', b"{", b'{"a":NaN}', b'{"a":Infinity}', b'{"a":' + b"9" * 500 + b"}",
    b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{"a":' + b"[" * 99999 + b"]" * 99999 + b"}",
    b"cos\nsystem\n(S'id'\ntR.", b"__import__('os')"], ids=brief)
def test_what_is_not_the_protocol(line):
    with pytest.raises(_wire.ProtocolError):
        _wire.decode(line)


def test_readers_fail_in_one_way_only():
    """Good input with random changes is either read, or refused with the reader's own exception."""
    chance = random.Random(7)
    seeds = [*YAML_SAME, '{"id":1,"ok":true,"result":{"a":[1,2.5,null,"\\ud83d\\ude00"]}}']
    known = 0
    for _ in range(6000):
        text = list(chance.choice(seeds))
        for _ in range(chance.randint(1, 5)):
            text[chance.randrange(len(text))] = chance.choice("\n\t :-[]{}\"'#|>&*!a1,\\\0\u2028")
        for read, error in ((_yaml.load, _yaml.YamlError),
                            (lambda t: _wire.decode(t.encode()), _wire.ProtocolError)):
            try:
                read("".join(text))
                known += 1
            except error:
                pass
    assert 500 < known < 11000


def test_what_is_the_protocol():
    line = '{"a":[1,-2.5,null,true,"\\ud83d\\ude00 é"],"n":' + "9" * 400 + "}"
    assert _wire.decode(line.encode()) == json.loads(line)


@pytest.mark.parametrize("extra, fits", [(0, True), (1, False)])
def test_a_line_has_a_greatest_length(monkeypatch, extra, fits):
    monkeypatch.setattr(_wire, "MAX_LINE", 100)
    theirs, ours = os.pipe(), os.pipe()
    channel = _wire.Channel(os.dup(theirs[1]), ours[0])
    text = b'{"a":"' + b"x" * (100 - 8 + extra) + b'"}'
    os.write(ours[1], text + b"\n")
    if fits:
        assert len(channel.receive(time.monotonic() + 20)["a"]) == 92
        with pytest.raises(_wire.Late):
            channel.receive(time.monotonic() + 0.05)
    else:
        with pytest.raises(_wire.ProtocolError):
            channel.receive(time.monotonic() + 20)
    os.close(ours[1])
    if fits:
        with pytest.raises(_wire.Ended):
            channel.receive(None)
    channel.close()
    for fd in theirs:
        os.close(fd)


@pytest.mark.parametrize("extra, error, seconds", [(0, _wire.Late, 0.05),
                                                   (1, _wire.ProtocolError, 20)])
def test_the_end_of_a_line_is_not_waited_for(monkeypatch, extra, error, seconds):
    monkeypatch.setattr(_wire, "MAX_LINE", 100)
    theirs, ours = os.pipe(), os.pipe()
    channel = _wire.Channel(os.dup(theirs[1]), ours[0])
    os.write(ours[1], b"x" * (100 + extra))
    with pytest.raises(error):
        channel.receive(time.monotonic() + seconds)
    channel.close()
    for fd in (*theirs, ours[1]):
        os.close(fd)


def test_a_line_has_so_many_values_at_most():
    """A line with a million values is read. A line with more is refused, before it takes more
    memory than its own length."""
    fits = b'{"a":[' + b"1," * (_wire.MAX_MARKS - 3) + b"1]}"
    assert len(_wire.decode(fits)["a"]) == _wire.MAX_MARKS - 2
    for line in (fits.replace(b"1]", b"1,1]"), b'{"a":[' + b"[]," * (5 << 20) + b"1]}",
                 b'{"a":[' + b'{"":0},' * (2 << 20) + b"1]}"):
        tracemalloc.start()
        with pytest.raises(_wire.ProtocolError, match="1000000 values"):
            _wire.decode(line)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["," * (5 << 20), '[{",:\\' * (1 << 20), "\\," * (3 << 20),
                                  "\n," * (2 << 20), '\\"' * (2 << 20)], ids=brief)
def test_marks_in_a_text_are_no_values(text):
    value = {"id": 1, "ok": True, "result": [text, {"a": text[:7]}]}
    assert _wire.decode(_wire.encode(value)) == value


@pytest.mark.parametrize("line", [
    # Five million strings are too many values, too.
    b'{"a":[' + b'"",' * (5 << 20) + b'""]}',
    b'{"a":' + b'""' * (7 << 20) + b"," * (1 << 20) + b"}",
    b'{"a":"' + b'\\"' * (2 << 20) + b'","b":[' + b"1," * (2 << 20) + b"1]}",
    b'{"a":"x\\\\",' + b'"[":[],' * (1 << 20) + b'"b":1}',
    b'{"a":' + b"," * (1 << 20) + b',"' + b"\\" * (8 << 20)], ids=lambda line: brief(line))
def test_no_text_hides_values(line):
    began = time.process_time()
    with pytest.raises(_wire.ProtocolError):
        _wire.decode(line)
    assert time.process_time() - began < 20


def test_a_request_has_a_greatest_length(monkeypatch):
    monkeypatch.setattr(_wire, "MAX_LINE", 100)
    assert len(_wire.encode({"a": "x" * 91})) == 100
    with pytest.raises(ValueError, match="100 bytes"):
        _wire.encode({"a": "x" * 92})


# ---- a worker that violates the protocol ----

PLAYS = """
import json, sys
hello, *answers = json.loads(sys.argv[1])
sys.stdout.write(hello)
sys.stdout.flush()
for line in sys.stdin:
    number = json.loads(line)["id"]
    answer = answers.pop(0) if answers else ""
    sys.stdout.write(answer.replace("NEXT", str(number + 1)).replace("ID", str(number)))
    sys.stdout.flush()
"""
HELLO, FINE = '{"protocol":1}\n', '{"id":ID,"ok":true,"result":1}\n'
UNABLE = '{"id":ID,"ok":false,"error":{"type":"ValueError","message":"no"}}\n'


class Played(workers.Worker):
    tier = "played"
    lines = ()

    def launch(self):
        return workers.Launch([sys.executable, "-c", PLAYS, json.dumps(self.lines)], {})


def played(tmp_path, *lines):
    skill = _skill.read(make_skill(tmp_path / "skill"))
    worker = Played(skill, workers.Options(timeout=20.0))
    worker.lines = lines
    return worker


@pytest.mark.parametrize("lines, words", [
    ((HELLO, FINE, FINE), None),
    (('{"protocol":2}\n', FINE, FINE), "does not speak"),
    (('{"protocol":"1"}\n', FINE, FINE), "does not speak"),
    ((HELLO, FINE, FINE.replace("ID", "NEXT")), "not asked"),
    ((HELLO, FINE, FINE.replace('"id":ID', '"id":"ID"')), "not asked"),
    ((HELLO, FINE, FINE.replace("true", "1")), "not asked"),
    ((HELLO, FINE, '{"id":ID}\n'), "not asked"),
    ((HELLO, FINE, FINE.replace("}", ',"files":[]}')), "not asked"),
    ((HELLO, FINE + FINE.replace("ID", "NEXT")), "without being asked"),
    ((HELLO, FINE, "x\n"), "does not speak"),
    ((HELLO, UNABLE, FINE), "no"),
])
def test_an_answer_is_what_was_asked(tmp_path, lines, words):
    worker = played(tmp_path, *lines)
    try:
        if words is None:
            assert worker.call("execute") == 1
            return
        with pytest.raises(SkillError if lines[1] == UNABLE else SkillCrashed, match=words):
            worker.call("execute")
        assert worker.process.poll() is not None, "it is gone"
    finally:
        worker.close()


def test_a_worker_is_its_owners(tmp_path):
    worker = played(tmp_path, HELLO, FINE, FINE, FINE)
    assert worker.call("execute") == 1
    child = os.fork()
    if child == 0:
        try:
            worker.call("execute")
        except SkillCrashed as e:
            os._exit(0 if "forked" in str(e) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert worker.call("execute") == 1
    worker.close()
    with pytest.raises(SkillCrashed, match="closed"):
        worker.call("execute")


@pytest.mark.parametrize("seconds", [1e9, float("inf")])
def test_a_call_may_take_as_long_as_it_takes(tmp_path, seconds):
    worker = played(tmp_path, HELLO, FINE, FINE)
    assert worker.call("execute", timeout=seconds) == 1
    worker.close()


def test_a_worker_that_cannot_be_held_is_ended(tmp_path, monkeypatch):
    pids = []
    monkeypatch.setattr(workers.REAPER, "add", pids.append)
    worker = played(tmp_path, HELLO, FINE, FINE)
    before = set(os.listdir("/proc/self/fd"))  # fds of other tests may be closed during this test
    for failing in (("dup", 0), ("dup", 1), ("thread", 0)):
        with monkeypatch.context() as m:
            fails_after(m, *failing)
            with pytest.raises((OSError, RuntimeError), match="no more"):
                worker.call("execute")
        with pytest.raises(ProcessLookupError):
            os.kill(pids[-1], 0)
        assert set(os.listdir("/proc/self/fd")) <= before, failing
    assert worker.call("execute") == 1, "the next call starts anew"
    worker.close()
    assert set(os.listdir("/proc/self/fd")) <= before


def fails_after(monkeypatch, what, calls):
    real, seen = os.dup, []

    def dup(fd):
        seen.append(fd)
        if len(seen) > calls:
            raise OSError(24, "no more descriptors")
        return real(fd)

    def stderr(stream):
        raise RuntimeError("no more threads")
    if what == "dup":
        monkeypatch.setattr(workers.os, "dup", dup)
    else:
        monkeypatch.setattr(workers, "Stderr", stderr)


def test_a_worker_that_is_closed_while_it_starts_is_ended(tmp_path):
    class Closed(Played):
        lines = (HELLO, FINE, FINE)

        def launch(self):
            self._closed = True     # as if another thread called close() now
            return super().launch()
    worker = Closed(_skill.read(make_skill(tmp_path / "skill")), workers.Options(timeout=20.0))
    with pytest.raises(SkillCrashed, match="closed"):
        worker.call("execute")
    assert worker.process.poll() is not None


DEAF = "import signal\nfor s in (2, 15):\n    signal.signal(s, signal.SIG_IGN)\n" + PLAYS


@pytest.mark.parametrize("exits", [False, True])
def test_a_worker_that_hears_nothing_is_ended(tmp_path, monkeypatch, exits):
    def none(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")
    if exits:   # during its exit, Python 3.12 and later starts no thread
        monkeypatch.setattr(threading.Timer, "start", none)

    class Deaf(Played):
        lines = (HELLO, FINE)   # has no line that answers a call

        def launch(self):
            return workers.Launch([sys.executable, "-c", DEAF, json.dumps(self.lines)], {})
    worker = Deaf(_skill.read(make_skill(tmp_path / "skill")), workers.Options(timeout=None))
    worker.start()
    failed = []

    def call():
        try:
            worker.call("execute")
        except SkillCrashed as e:
            failed.append(e)
    threads = [threading.Thread(target=call, daemon=True)]
    threads[0].start()
    while not worker._lock.locked():
        time.sleep(0.01)
    threads.append(threading.Thread(target=worker.close, daemon=True))
    threads[1].start()
    for t in threads:
        t.join(30)
    alive = worker.process.poll() is None
    worker.process.kill()
    assert not alive and len(failed) == 1


def test_garbage_may_be_collected_at_any_time(tmp_path, monkeypatch):
    reaper = _reaper.Reaper()
    say = reaper._say

    def collected(line):
        if line.startswith("+"):
            reaper.remove(999999998)    # as if the garbage collector freed an instance now
        say(line)
    monkeypatch.setattr(reaper, "_say", collected)
    thread = threading.Thread(target=reaper.add, args=(999999999,), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it waits for itself"
    worker = played(tmp_path, HELLO, FINE, FINE)
    worker.start()
    monkeypatch.setattr(threading, "current_thread", lambda: worker._stderr._thread)
    worker.close()
    assert worker.process.poll() is not None


def test_a_program_that_takes_too_long_is_none_of_the_skills_errors(tmp_path, monkeypatch):
    def late(*_, **__):
        raise subprocess.TimeoutExpired("skillsandbox", 30)
    worker = process.PlannedWorker(_skill.read(make_skill(tmp_path / "skill")),
                                   Options(binary="skillsandbox"))
    monkeypatch.setattr(process.subprocess, "run", late)
    assert worker._why("run", 0.0, "") == []
    with pytest.raises(SkillNotStarted, match="not made in 30 s"):
        worker.plan()


def test_what_a_worker_says_of_an_exception():
    long = "x" * 20000
    error = workers.skill_error({"type": long, "message": long, "traceback": long, "system": 1})
    assert {len(error.type), len(error.message), len(error.traceback)} == {16384}
    assert error.system is False
    assert workers.skill_error({"system": True}).system is True
    assert workers.skill_error([]).type == "Exception"


def test_an_exception_of_a_skill_is_one_line():
    bad = "a\x1b]0;title\x07\nTraceback: forged\u202e"
    for error in (SkillError(bad, bad), SkillDenied(bad, bad, bad, [{"what": bad}], "run"),
                  SkillCrashed(bad), SkillwareParamValidationError(bad, bad)):
        text = str(error)
        assert text.isprintable() and "a\\x1b]0;title\\x07\\nTraceback: forged\\u202e" in text
    assert SkillError("T", "x" * 99999).message == "x" * 99999, "it is all there"
    assert len(str(SkillError("T", "\x1b" * 99999))) < 9000
    assert str(SkillError("T" * 1996, "xx")).endswith(": xx"), "at the cap"
    assert str(SkillError("T" * 1996, "xxx")).endswith(": xx ...")
    assert str(SkillError("KeyError", "'täglich'")) == "KeyError: 'täglich'"


def test_what_is_shown_is_harmless():
    assert visible("a\x1b[31m\u202e\rb\tc\u00e9") == "a\\x1b[31m\\u202e\\rb\tc\u00e9"


# ---- files of a call ----

def test_files_go_in_and_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "CHUNK", 4)
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"0123456789")
    target.write_bytes(b"old")
    target.chmod(0o640)
    files = _files.Files([source], [target])
    assert [f["parts"] for f in files.listed()] == [3, 1]
    assert len(list(files.parts())) == 4
    assert files.expect([{"n": 1, "parts": 2}]) == [(1, 2)]
    files.take(1, {"data": "bmV3"})
    assert target.read_bytes() == b"old"
    files.take(1, {"data": "ZXI="})
    files.store()
    assert target.read_bytes() == b"newer" and target.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("listed", [
    None, {}, [3], [{"n": 0, "parts": 1}], [{"n": 2, "parts": 1}], [{"n": -1, "parts": 1}],
    [{"n": True, "parts": 1}], [{"n": 1, "parts": 1.0}], [{"n": 1, "parts": -1}],
    [{"n": 1, "parts": 10 ** 9}], [{"n": 1, "parts": 1}, {"n": 1, "parts": 1}]])
def test_files_that_were_not_asked_for(tmp_path, listed):
    (tmp_path / "in").write_bytes(b"x")
    files = _files.Files([tmp_path / "in"], [tmp_path / "out"])
    with pytest.raises(_wire.ProtocolError):
        files.expect(listed)


def test_all_files_are_written_or_none(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for d in (here, there):
        d.mkdir()
        (d / "f").write_bytes(b"old")
    files = _files.Files([], [here / "f", there / "f"])
    for n, _ in files.expect([{"n": 0, "parts": 1}, {"n": 1, "parts": 1}]):
        files.take(n, {"data": "bmV3"})
    shutil.rmtree(there)
    with pytest.raises(FileNotFoundError):
        files.store()
    assert (here / "f").read_bytes() == b"old"
    assert os.listdir(here) == ["f"], "nothing is left behind"


def test_what_does_not_come_back_is_an_error(tmp_path):
    """A call fails if its worker does not return a file that existed before, whatever the worker
    reports. A file that did not exist need not be returned."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"old")
    files = _files.Files([], [old, new])
    files.expect([{"n": 1, "parts": 1}])
    files.take(1, {"data": "eA=="})
    with pytest.raises(SkillError, match=str(old)):
        files.store()
    assert old.read_bytes() == b"old" and not new.exists(), "all of them or none"
    files = _files.Files([], [old, new])
    files.expect([{"n": 0, "parts": 0}])
    files.store()
    assert old.read_bytes() == b"" and not new.exists(), "it need not have been made"


def test_files_have_caps(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "MAX_FILE", 10)
    monkeypatch.setattr(_files, "MAX_FILES", 2)
    ten, eleven = tmp_path / "10", tmp_path / "11"
    ten.write_bytes(b"x" * 10)
    eleven.write_bytes(b"x" * 11)
    files = _files.Files([ten], [tmp_path / "out"])
    files.expect([{"n": 1, "parts": 1}])
    files.take(1, {"data": "eHh4eHh4eHh4eA=="})
    with pytest.raises(_wire.ProtocolError):
        files.take(1, {"data": "eA=="})
    for none in ({"data": "*"}, {"data": "eA==*"}, {"data": "eA"}, {"data": 3}, {}):
        files = _files.Files([ten], [tmp_path / "out"])
        files.expect([{"n": 1, "parts": 1}])
        with pytest.raises(_wire.ProtocolError):
            files.take(1, none)
    os.mkfifo(tmp_path / "fifo")
    for read, write, error in (([eleven], [], ValueError), ([ten] * 3, [], ValueError),
                               ([tmp_path / "fifo"], [], ValueError), ([tmp_path], [], ValueError),
                               ([tmp_path / "none"], [], FileNotFoundError),
                               ([], [tmp_path / "no/dir"], FileNotFoundError)):
        with pytest.raises(error):
            _files.Files(read, write)


# ---- how skills are found and read ----

def make_skill(directory, manifest="name: test/thing\n", code="class A: pass\n"):
    directory.mkdir(parents=True)
    (directory / "manifest.yaml").write_text(manifest)
    (directory / "skill.py").write_text(code)
    return directory


def test_where_skills_are_looked_for(tmp_path, monkeypatch):
    """A skill is looked for at its path, then in SKILLWARE_SKILL_PATH, then in skills/ of the
    working directory and of up to six directories above it."""
    deep = tmp_path / "1/2/3/4/5/6/7"
    deep.mkdir(parents=True)
    top = make_skill(tmp_path / "skills/a/b")
    near = make_skill(tmp_path / "1/skills/a/b")
    other = make_skill(tmp_path / "other/a/b")
    monkeypatch.chdir(deep)
    monkeypatch.delenv("SKILLWARE_SKILL_PATH", raising=False)
    assert _skill.resolve("a/b") == (near, "a/b")
    monkeypatch.chdir(deep.parent)
    near.rename(near.parent / "c")
    assert _skill.resolve("a/b") == (top, "a/b")
    monkeypatch.chdir(deep)
    with pytest.raises(SkillNotFound):
        _skill.resolve("a/b")
    monkeypatch.setenv("SKILLWARE_SKILL_PATH", f"{tmp_path}/none:{tmp_path}/other")
    assert _skill.resolve("a/b") == (other, "a/b")
    assert _skill.resolve(str(top)) == (top, None)
    with pytest.raises(SkillNotFound):
        _skill.resolve("../skills/a/b")     # exists, but not in a directory that is searched


def test_what_a_directory_says(tmp_path):
    code = "class Base: pass\nclass Real(BaseSkill):\n  class Inner: pass\n'''\nclass Text:\n'''\n"
    skill = make_skill(tmp_path / "s", "env_vars: {A_KEY: {}, 'bad name': {}, LD=X: {}}\n", code)
    found = _skill.read(skill)
    assert found.classes[0] == "Real" and "Inner" not in found.classes
    assert found.env_names == ["A_KEY"]
    bundle = SkillLoader.load_skill(skill, execute_module=False)
    assert bundle["module"] is None and bundle["class"] is None
    digest = found.digest()
    (skill / "x").write_text("x")
    assert found.digest() != digest
    for name, data in (("manifest.yaml", "a: &x b"), ("manifest.yaml", "- a"),
                       ("card.json", "[" * 9999), ("instructions.md", "x" * 300000)):
        other = make_skill(tmp_path / f"bad-{name}-{len(data)}")
        (other / name).write_text(data)
        with pytest.raises(SkillManifestError):
            _skill.read(other)


@pytest.mark.parametrize("name", ["instructions.md", "card.json", "manifest.yaml", "skill.py"])
def test_nothing_outside_of_a_skill_is_read(tmp_path, name):
    """The host process reads these files, so a symlink out of the skill is refused: it could put
    the owner's key into a prompt."""
    text = {"card.json": "{}", "manifest.yaml": "name: a/b"}.get(name, "class A: pass")
    key = tmp_path / "home/.ssh/id_rsa"
    key.parent.mkdir(parents=True)
    key.write_text(text)
    (tmp_path / "s-else").mkdir()
    (tmp_path / "s-else/x").write_text(text)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def read(target):
        shutil.rmtree(tmp_path / "s", ignore_errors=True)
        skill = make_skill(tmp_path / "s")
        (skill / "docs").mkdir()
        (skill / "docs/own").write_text(text)
        (skill / "out").symlink_to(key.parent)
        (skill / name).unlink(missing_ok=True)
        (skill / name).symlink_to(target)
        return SkillLoader.load_skill(skill, execute_module=False)
    assert read("docs/own")["registry_id"]
    assert read(tmp_path / "s/docs/own")["registry_id"], "by its whole name as well"
    for target in (key, "out/id_rsa", "../home/.ssh/id_rsa", "../s-else/x", "/proc/self/environ"):
        with pytest.raises(SkillManifestError, match="leads out of the skill"):
            read(target)
    for target in (fifo, "/dev/zero", "docs"):
        with pytest.raises(SkillManifestError, match="not a regular file"):
            read(target)
    with pytest.raises(SkillManifestError):
        read(name)  # a symlink to itself


def test_requirements_are_looked_for_and_not_imported(tmp_path, monkeypatch):
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil/__init__.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    SkillLoader.check_requirements({"requirements": ["pyyaml>=5", "evil", "evil.deep", "json"]})
    with pytest.raises(ImportError, match="nowhere_at_all>=1"):
        SkillLoader.check_requirements({"requirements": ["pyyaml", "nowhere_at_all>=1"]})


@pytest.mark.parametrize("prefix, base, shown", [
    ("/usr", "/usr", []), ("/usr/local", "/usr/local", []),
    ("/opt/py", "/opt/py", ["/opt/py"]), ("/work/venv", "/usr", ["/work/venv"]),
    ("/work/venv", "/opt/py", ["/work/venv", "/opt/py"])])
def test_a_worker_has_the_python_of_its_host(tmp_path, monkeypatch, prefix, base, shown):
    """The worker runs the Python of its host process, also that of a virtual environment. Values of
    variables are not in the command."""
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "base_prefix", base)
    monkeypatch.setattr(sys, "executable", f"{prefix}/bin/python3")
    monkeypatch.setenv("A_KEY", "value-of-a")
    monkeypatch.setenv("B_KEY", "value-of-b")
    monkeypatch.setenv("C_KEY", "value-of-c")   # requested by the skill, but not granted
    skill = _skill.read(make_skill(tmp_path / "s", "env_vars: {A_KEY: {}, C_KEY: {}}\n"))
    options = Options(env=["A_KEY", "B_KEY"], net=["x.example"])
    argv = worker_class("process")(skill, options).launch().argv
    pairs = list(zip(argv, argv[1:]))
    assert [v for f, v in pairs if f == "--read"] == shown
    assert [v for f, v in pairs if f == "--env" and not v.startswith("PATH=")] == ["A_KEY"]
    assert (f"PATH={prefix}/bin:/usr/local/bin:/usr/bin:/bin" in argv) == bool(shown)
    assert ("--net", "x.example") in pairs and "value-of" not in " ".join(argv)
    assert argv[-3:-1] == [str(skill.path), "--serve"]
    # A value that the instance was given replaces the value in the environment.
    argv = worker_class("process")(skill, options, {"A_KEY": "other"}).launch().argv
    assert "A_KEY" not in argv


@pytest.mark.parametrize("said, words", [
    ({"denied": [], "consent": {"state": "none", "refuse_unapproved": False}}, None),
    ({"denied": [{"what": "read ~/.ssh"}],
      "consent": {"state": "none", "refuse_unapproved": False}}, "not granted: read ~/.ssh"),
    ({"denied": [], "consent": {"state": "changed"}}, "changed since"),
    ({"denied": []}, "does not tell"),
    ("junk", "cannot be made: .*no such"),
])
def test_a_plan_that_is_not_kept_to_is_none(tmp_path, said, words):
    """Tiers that do not use `run` read the plan: if it denies something, is not approved or cannot
    be read, the worker does not start."""
    binary = tmp_path / "binary"
    text = said if said == "junk" else json.dumps(said)
    binary.write_text(f"#!/bin/sh\necho no such >&2\necho '{text}'\n")
    binary.chmod(0o755)
    skill = _skill.read(make_skill(tmp_path / "s"))
    worker = worker_class("process")(skill, Options(binary=str(binary)))
    if words is None:
        assert worker.plan() == said
        return
    with pytest.raises(SkillNotStarted, match=words):
        worker.plan()


def test_tools_of_models():
    bundle = {"manifest": {"name": "office/pdf.x", "description": " Fills. ", "parameters": {
        "type": "object", "properties": {"type": {"type": "string"}, "n": {
            "type": "array", "items": {"type": "integer"}}}, "required": ["n"]}},
        "instructions": "Be nice.", "registry_id": "office/pdf"}
    schema = bundle["manifest"]["parameters"]
    assert SkillLoader.to_claude_tool(bundle) == {
        "name": "office_pdf_x", "description": "Fills.", "input_schema": schema}
    assert SkillLoader.to_openai_tool(bundle) == SkillLoader.to_deepseek_tool(bundle) == {
        "type": "function", "function": {"name": "office_pdf_x", "description": "Fills.",
                                         "parameters": schema}}
    assert SkillLoader.to_gemini_tool(bundle)["parameters"] == {
        "type": "OBJECT", "properties": {"type": {"type": "STRING"}, "n": {
            "type": "ARRAY", "items": {"type": "INTEGER"}}}, "required": ["n"]}
    prompt = SkillLoader.to_ollama_prompt(bundle)
    assert "`n` (array, required)" in prompt and "Be nice." in prompt
    assert len(SkillLoader.to_claude_tool({"manifest": {"name": "x" * 99}})["name"]) == 64


# ---- the worker's own check of schemas ----

def load_worker():
    spec = importlib.util.spec_from_file_location(
        "worker_under_test", harness.REPO / "python/skillsandbox/_worker.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCHEMA = {"type": "object", "required": ["a"], "additionalProperties": False, "properties": {
    "a": {"type": ["string", "null"], "minLength": 2, "maxLength": 3, "pattern": "^x"},
    "b": {"type": "integer", "minimum": 0, "exclusiveMaximum": 5},
    "c": {"type": "array", "items": {"enum": [1, "two"]}, "minItems": 1, "maxItems": 2},
    "d": {"const": {"k": 1}}, "e": {"type": "number"}, "f": {"type": "boolean"}}}


@pytest.mark.parametrize("params", [
    {"a": "xy"}, {"a": None}, {}, {"a": 1}, {"a": "x"}, {"a": "xyzz"}, {"a": "yx"},
    {"a": "xy", "z": 1}, {"a": "xy", "b": 4}, {"a": "xy", "b": 5}, {"a": "xy", "b": -1},
    {"a": "xy", "b": True}, {"a": "xy", "b": 2.0}, {"a": "xy", "b": 2.5}, {"a": "xy", "c": [1]},
    {"a": "xy", "c": []}, {"a": "xy", "c": [1, "two"]}, {"a": "xy", "c": [3]},
    {"a": "xy", "c": [1, 1, 1]}, {"a": "xy", "d": {"k": 1}}, {"a": "xy", "d": {}},
    {"a": "xy", "e": 1.5}, {"a": "xy", "e": "1"}, {"a": "xy", "f": True}, {"a": "xy", "f": 0}, []])
def test_our_schemas_judge_as_the_library_does(params):
    worker = load_worker()
    good = jsonschema.Draft7Validator(SCHEMA).is_valid(params)
    try:
        worker.check_schema(params, SCHEMA)
        assert good
    except worker.SkillwareParamValidationError:
        assert not good


# ---- the callbacks for LangChain, without LangChain ----

class FakeSession(Session):
    """A session that answers from a list, and keeps the questions in `asked`."""

    def __init__(self, *answers):
        self.id, self.asked, self.answers = "s", [], list(answers)

    def ask(self, *words):
        self.asked.append(words)
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, Exception):
            raise answer
        return {"action_allowed": True, "state": "active", "reservation": len(self.asked),
                **answer}


class Said:
    def __init__(self, **fields):
        self.__dict__.update(fields)


def test_models_and_tools_are_checked_and_settled():
    session = FakeSession()
    h = lc.SessionCallbackHandler(session)
    params = {"invocation_params": {"model": "gpt-4o", "max_tokens": 50}}
    h.on_llm_start({}, ["x" * 300], run_id=1, **params)
    h.on_llm_end(Said(llm_output={"token_usage": {"prompt_tokens": 90, "completion_tokens": 7}},
                      generations=[]), run_id=1)
    h.on_chat_model_start({}, [[Said(content="y" * 30)]], run_id=2, **params)
    message = Said(usage_metadata={"input_tokens": 11, "output_tokens": 5}, response_metadata={})
    h.on_llm_end(Said(llm_output=None, generations=[[Said(message=message)]]), run_id=2)
    h.on_llm_start({}, ["z"], run_id=3, **params)
    h.on_llm_error(ValueError(), run_id=3)
    h.on_tool_start({"name": "sh"}, "ls", run_id=4)
    h.on_tool_end("out", run_id=4)
    h.on_tool_start({"name": "sh"}, "ls", run_id=5)
    h.on_tool_error(ValueError(), run_id=5)
    assert session.asked == [
        ("check", "--action", "llm_call", "--model", "gpt-4o", "--tokens-in", "101",
         "--tokens-out", "50", "s"),
        ("settle", "--model", "gpt-4o", "--tokens-in", "90", "--tokens-out", "7", "1"),
        ("check", "--action", "llm_call", "--model", "gpt-4o", "--tokens-in", "11",
         "--tokens-out", "50", "s"),
        ("settle", "--model", "gpt-4o", "--tokens-in", "11", "--tokens-out", "5", "3"),
        ("check", "--action", "llm_call", "--model", "gpt-4o", "--tokens-in", "1",
         "--tokens-out", "50", "s"),
        ("settle", "--model", "gpt-4o", "--tokens-in", "1", "--tokens-out", "50", "5"),
        ("check", "--action", "tool:sh", "--cost", "0.001", "s"),
        ("settle", "--cost", "0.001", "7"),
        ("check", "--action", "tool:sh", "--cost", "0.001", "s"),
        ("settle", "--cost", "0.001", "9")]


def test_a_handler_fails_closed():
    refused = {"action_allowed": False, "state": "active", "reason": "no"}
    for answer, error in ((refused, SessionRefused), ({**refused, "state": "killed"}, SessionKilled),
                          (SessionError("down"), SessionError)):
        h = lc.SessionCallbackHandler(FakeSession(answer))
        assert h.raise_error is True
        with pytest.raises(error):
            h.on_tool_start({"name": "sh"}, "ls", run_id=1)
    h = lc.SessionCallbackHandler(FakeSession())
    with pytest.raises(SessionError, match="model"):
        h.on_llm_start({}, ["x"], run_id=1)
    with pytest.raises(SessionError, match="never checked"):
        h.on_tool_end("x", run_id=1)
    h.on_tool_start({}, "x", run_id=1)
    with pytest.raises(SessionError, match="twice"):
        h.on_tool_start({}, "x", run_id=1)
    killed = lc.SessionCallbackHandler(FakeSession({}, {"state": "killed"}))
    killed.on_tool_start({}, "x", run_id=1)
    with pytest.raises(SessionKilled):
        killed.on_tool_end("x", run_id=1)


@pytest.mark.parametrize("response, known", [
    (None, None), (Said(llm_output={}, generations=[]), None),
    (Said(llm_output={"token_usage": {"prompt_tokens": -5, "completion_tokens": 1}}), None),
    (Said(llm_output={"token_usage": {"prompt_tokens": True, "completion_tokens": 1}}), None),
    (Said(llm_output={"usage": {"input_tokens": 3, "output_tokens": 4}}), (3, 4)),
    (Said(llm_output=None, generations=[[Said(message=Said(
        usage_metadata=None, response_metadata={"token_usage": {
            "prompt_tokens": 5, "completion_tokens": 6}}))]] * 2), (10, 12))])
def test_where_usage_is_said(response, known):
    assert lc.usage(response) == known
