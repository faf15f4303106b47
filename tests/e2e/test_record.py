"""trace.jsonl: it is chained, signed and valid by the schema, and equal to trace.json."""
import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
import subprocess
import time

import jsonschema
import pytest

import harness
import records

SCHEMA = json.loads((harness.REPO / "schema/trace.schema.json").read_text())


def validator(name):
    return jsonschema.Draft7Validator({**SCHEMA["definitions"][name],
                                       "definitions": SCHEMA["definitions"]})


LINE, DOCUMENT = validator("line"), validator("document")


def check(runner):
    """Checks the last run's two files by the schema, the chain and the signature, and compares
    them. Returns the lines and the document."""
    lines, trace = records.last(runner), runner.last_trace()
    for record in lines:
        LINE.validate(record)
    DOCUMENT.validate(trace)
    assert lines[0]["run_id"] == trace["run_id"]
    events = [x for x in lines if "message" in x]
    assert [(x["kind"], x["message"], x.get("data"), x["time"]) for x in events] == \
        [(e["kind"], e["message"], e.get("data"), e["timestamp"]) for e in trace["events"]]
    assert sum(x.get("violation", False) for x in events) == len(trace["policy_violations"])
    return lines, trace


def test_schema_is_a_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    # The schema does refuse lines: a line with one member more, or one less, is invalid.
    good = {"seq": 1, "time": "2026-11-15T13:20:00.123456Z", "mono": 5, "kind": "stdout",
            "message": "x", "hash": "0" * 64}
    assert LINE.is_valid(good)
    assert not LINE.is_valid({**good, "more": 1})
    assert not LINE.is_valid({k: v for k, v in good.items() if k != "message"})
    assert not LINE.is_valid({**good, "time": "2026-11-15 13:20:00"})


def test_a_skill(ssb):
    code = "import os, sys\nprint(b'\\xff\\x1b[31m'.hex())\nsys.stdout.buffer.write(b'\\xff\\x1b\\n')"
    skill = ssb.skill(code, files={"data/list.txt": "a\n"})
    (skill / "link").symlink_to("/etc/passwd")
    ssb.run(skill).ok()
    lines, _ = check(ssb)
    run = lines[0]
    manifest = (skill / "skillsandbox.yaml").read_bytes()
    assert run["manifest_digest"] == "sha256:" + hashlib.sha256(manifest).hexdigest()
    plan = json.dumps(run["plan"], separators=(",", ":"), ensure_ascii=False).encode()
    assert run["plan_digest"] == "sha256:" + hashlib.sha256(plan).hexdigest()
    assert run["kernel"] == os.uname().release and run["user"] == ssb.uid
    assert [x["kind"] for x in lines].count("layers") == 1
    files = next(x for x in lines if x["kind"] == "files")
    assert files["files"] == [
        ["link", hashlib.sha256(b"/etc/passwd").hexdigest(), "symlink"],
        *[[name, hashlib.sha256((skill / name).read_bytes()).hexdigest()]
          for name in ("main.py", "skillsandbox.yaml", "data/list.txt")]]
    end = lines[-2]
    assert end["exit_code"] == 0 and end["end"] == "exited" and end["summary"] is None
    assert any(x["message"] == "\udcff\x1b" for x in lines if x["kind"] == "stdout")


def test_a_directory_that_hides_the_files(ssb):
    """Many directories of the skill are too deep, and in any order some are read before the skill's
    other files. The record is marked incomplete, but has the digests of these other files."""
    skill = ssb.skill("print('hi')")
    for name in "0123456789abcdefghijklmnopqrstuvwxyz":
        (skill / "/".join(name * 70)).mkdir(parents=True)
    ssb.run(skill).ok()
    files = next(x for x in check(ssb)[0] if x["kind"] == "files")
    assert files["incomplete"] and files["files_digest"] is None
    assert files["files"] == [[name, hashlib.sha256((skill / name).read_bytes()).hexdigest()]
                              for name in ("main.py", "skillsandbox.yaml")]


def test_a_command_has_no_files(ssb):
    ssb.run("--", "true").ok()
    lines, _ = check(ssb)
    assert "files" not in [x["kind"] for x in lines]
    assert lines[0]["manifest"] is None and lines[0]["manifest_digest"] is None


@pytest.mark.parametrize("args, code, end", [
    (["--", "sh", "-c", "exit 7"], 7, "exited"),
    (["--", "sh", "-c", "kill -9 $$"], 137, "signaled"),
    (["-t", "4", "--", "sleep", "50"], 124, "timeout"),
    (["--", "no-such-program"], 127, "failed"),
])
def test_how_it_ended(ssb, args, code, end):
    assert ssb.run(*args).code == code
    lines, _ = check(ssb)
    assert lines[-2]["end"] == end and lines[-2]["exit_code"] == code


def test_denied_egress(ssb):
    ssb.inside("""
    import socket
    try:
        socket.getaddrinfo('evil.example', 443)
    except OSError:
        pass
    """, egress=[{"domain": "api.example.com", "ports": [443]}]).ok()
    lines, trace = check(ssb)
    assert trace["policy_violations"] and lines[-2]["counters"]["violations"] > 0
    assert lines[-2]["summary"]["total_enforcements"] == lines[-2]["counters"]["violations"]


def test_files_are_private(ssb):
    ssb.run("--", "true").ok()
    path = records.paths(ssb)[-1]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((ssb.state / "skillsandbox/trace.key").stat().st_mode) == 0o600


def test_trace_output(ssb):
    out = ssb.mkdir("traces")
    for name, record in (("t.json", "t.jsonl"), ("plain", "plain.jsonl")):
        ssb.run("--trace-output", out / name, "--", "true").ok()
        DOCUMENT.validate(json.loads((out / name).read_bytes()))
        lines, rest = records.read_lines(out / record)
        assert rest == b""
        records.verify_end(records.verify(lines))
    assert sorted(os.listdir(out)) == ["plain", "plain.jsonl", "t.json", "t.jsonl"]


def test_record_is_never_written_through_a_symlink(ssb):
    target = ssb.write(ssb.base / "precious", "precious")
    (ssb.mkdir("traces") / "t.jsonl").symlink_to(target)
    r = ssb.run("--trace-output", ssb.base / "traces/t.json", "--", "echo", "ran")
    assert target.read_text() == "precious" and b"ran" not in r.out and r.code in (2, 125)


CHANGES = {
    "edit": lambda x, i: x[:i] + [x[i].replace(b"hello", b"hullo")] + x[i + 1:],
    "edit the time": lambda x, i: x[:i] + [x[i].replace(b'"time":"2', b'"time":"1')] + x[i + 1:],
    "remove": lambda x, i: x[:i] + x[i + 1:],
    "reorder": lambda x, i: x[:i - 1] + [x[i], x[i - 1]] + x[i + 1:],
    "repeat": lambda x, i: x[:i + 1] + x[i:],
    "first removed": lambda x, i: x[1:],
}


@pytest.mark.parametrize("how", CHANGES)
def test_every_change_shows(user, how):
    user.run("--", "sh", "-c", "echo hello").ok()
    lines, _ = records.read_lines(records.paths(user)[-1])
    at = next(i for i, x in enumerate(lines) if b'"message":"hello"' in x)
    records.verify(lines)  # control
    changed = CHANGES[how](lines, at)
    assert changed != lines
    with pytest.raises(AssertionError, match="bad at"):
        records.verify(changed)


def recipes():
    """Returns the literal blocks of skillsandbox-trace(5): an example of a line, and the commands
    that verify a record."""
    page = (harness.REPO / "man/skillsandbox-trace.5").read_text()
    return [block.replace("\\e", "\\")
            for block in re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", page, re.S | re.M)]


def test_recipes_of_the_manual(user):
    """The commands of the manual verify a real record: Python for its chain and the files, openssl
    for the signature. They refuse a changed record."""
    _, chain, signature, files = recipes()
    skill = user.skill("print('hello')", files={"z/a": "1", "z.txt": "2", "Ä": "3"})
    (skill / "z/link").symlink_to("/etc/passwd")
    (skill / "z/empty").mkdir()
    (skill / "z.txt").chmod(0o775)
    user.run(skill).ok()
    lines = records.last(user)
    work = user.mkdir("verify")
    (work / "verify.py").write_text(chain)
    (work / "record").write_bytes(records.paths(user)[-1].read_bytes())

    def run(*argv):
        return subprocess.run(argv, cwd=work, capture_output=True, text=True, timeout=20)
    end, key, sig = run(harness.PYTHON, "verify.py", "record").stdout.split()
    assert (end, key, sig) == (lines[-2]["hash"], lines[-1]["key"], lines[-1]["signature"])
    for what, code in ((end, 0), ("00" + end[2:], 1)):
        r = run("sh", "-c", f"key={key} end={what} sig={sig}\n{signature}")
        assert r.returncode == code, r.stderr
    (work / "record").write_bytes((work / "record").read_bytes().replace(b"hello", b"hullo"))
    assert run(harness.PYTHON, "verify.py", "record").returncode == 1
    r = subprocess.run([harness.PYTHON, "-c", files], cwd=skill, capture_output=True, text=True, timeout=20)
    said = next(x for x in lines if x["kind"] == "files")["files_digest"]
    assert said == r.stdout.strip(), r.stderr


def test_locked_and_readable_while_it_runs(ssb):
    p = ssb.popen([ssb.binary, "run", "--", "sh", "-c", "echo begun; sleep 600"],
                  stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"begun\n"
        def begun():  # a line may be written a moment later, together with others
            with contextlib.suppress(FileNotFoundError):  # the file is just being moved
                path = records.paths(ssb)[-1]
                parsed = records.verify(records.read_lines(path)[0])
                with open(path, "rb") as f, pytest.raises(BlockingIOError):
                    fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return any(x.get("message") == "begun" for x in parsed)
        harness.wait_for(begun, 30)
    finally:
        p.terminate()
        p.communicate(timeout=20)
    with open(records.paths(ssb)[-1], "rb") as f:
        fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
    assert records.last(ssb)[-2]["end"] == "canceled"


def test_unchanged_files_are_not_read_again(ssb):
    skill = ssb.skill("pass", files={f"lib/{i}.txt": f"{i}\n" for i in range(50)})
    time.sleep(2.5)  # a younger file could still change within the same clock tick
    ssb.run(skill).ok()
    first = next(x for x in check(ssb)[0] if x["kind"] == "files")
    ssb.run(skill).ok()
    second = next(x for x in check(ssb)[0] if x["kind"] == "files")
    assert (first["cached"], second["cached"], second["count"]) == (0, 52, 52)
    assert first["files_digest"] == second["files_digest"]
    ssb.write(skill / "lib/7.txt", "x\n")
    ssb.run(skill).ok()
    third = next(x for x in check(ssb)[0] if x["kind"] == "files")
    assert third["cached"] == 51 and third["files_digest"] != second["files_digest"]


def test_one_file_is_made_before_the_skill(ssb):
    """The caller waits for the start, so only one new file and one sync may come before the skill
    starts. The other files are made while the last layers are applied."""
    ssb.run("--", "true").ok()  # the first run makes the key and the directory
    log = ssb.mkdir("log", 0o777) / "strace"
    ssb.as_caller(["strace", "-f", "-qq", "-o", log, "-e", "trace=openat,fdatasync,fsync,execve",
                   ssb.binary, "run", "--", "/usr/bin/true"], timeout=40).ok()
    calls = log.read_text().splitlines()
    start = next(i for i, x in enumerate(calls) if "sync(" in x)
    made = [x for x in calls[:start] if "O_CREAT" in x and "trace" in x]
    assert len(made) == 1 and "trace.jsonl" in made[0], made
    assert sum("sync(" in x for x in calls) == 1
    assert any("execve(" in x for x in calls[start:]), "the skill waits for the disk"


def supervisor_calls(ssb, *args):
    """Returns how many system calls `run` itself makes, without its children: the minimum of three
    runs. A wait that times out is not counted, because it depends on the speed of the machine."""
    log = ssb.mkdir("log", 0o777) / "strace"
    counts = []
    for _ in range(3):
        ssb.as_caller(["strace", "-qq", "-o", log, ssb.binary, "run", "-q", *args],
                      timeout=40).ok()
        counts.append(sum(re.match(r"\w+\(", x) is not None and not x.endswith("(Timeout)")
                          for x in log.read_text().splitlines()))
    return min(counts)


@harness.BY_USER
def test_few_calls_start_a_skill(ssb):
    """A start makes at most 350 system calls, because every run pays for them. Root makes more: it
    gives the skill a cgroup."""
    skill = ssb.mkdir("skill")
    ssb.write(skill / "skillsandbox.yaml",
              harness.manifest(command="/bin/true", args=()), 0o644)
    ssb.run("-q", skill).ok()  # the first run makes the key and the directories
    bare = supervisor_calls(ssb, "--", "/bin/true")
    whole = supervisor_calls(ssb, skill)
    assert 50 < bare < whole, "the control: it counts, and a skill needs more than a command"
    assert whole <= 350
