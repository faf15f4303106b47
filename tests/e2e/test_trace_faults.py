"""Failures while the record is written: the supervisor is killed, the disk is full, or the state
directory cannot be written."""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

import harness
import records

CHATTY = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; sleep 60"


def kinds_in(paths):
    """The kinds of the lines in these records, without a record that is being moved."""
    found = set()
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            found |= {json.loads(x)["kind"] for x in records.read_lines(path)[0]}
    return found


def test_kill_9_leaves_a_valid_prefix(ssb):
    ssb.run("--", "true").ok()  # the first run makes the key
    seed = random.randrange(1 << 30)
    draw = random.Random(seed)
    seen = set()
    marker = f": {ssb.base.name}; "  # other tests run the same script at the same time
    # Two rounds wait for a certain line before the kill, however slow the machine is.
    chosen = {0: ("sleep 60", "run"), 1: (CHATTY, "stdout")}
    for i in range(30):
        before = set(records.paths(ssb))
        script, wanted = chosen.get(i, (CHATTY, None))
        p = ssb.popen([ssb.binary, "run", "--", "sh", "-c", marker + script],
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if wanted:
            harness.wait_for(
                lambda w=wanted, b=before: w in kinds_in(set(records.paths(ssb)) - b))
        else:
            time.sleep(draw.choice([0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3]) * draw.random() * 2)
        if ssb.is_root:
            p.kill()
        else:  # setpriv has executed the supervisor, so this is its pid
            os.kill(p.pid, signal.SIGKILL)
        p.wait(timeout=20)
        new = set(records.paths(ssb)) - before
        assert len(new) <= 1
        for path in new:
            lines, _ = records.read_lines(path)
            if not lines:
                seen.add("empty")
                continue
            kinds = [x["kind"] for x in records.verify(lines)]
            assert "end" not in kinds, f"seed {seed}, round {i}"
            seen.add("stdout" if "stdout" in kinds else "begun")
            if path.parent.name == "runs":
                seen.add("flat")
            assert not path.with_name("trace.json").exists()
    assert {"begun", "stdout"} <= seen, f"only {seen}: the moments are badly chosen"
    harness.wait_for(lambda: not harness.alive_with(marker))
    ssb.run("--", "true").ok()
    records.last(ssb)  # the kills before have damaged nothing


@pytest.fixture
def small_disk(ssb, mounts):
    """A state directory on a file system of 256 KiB."""
    place = ssb.mkdir("small")
    mounts("tmpfs", "small", place, data="size=256k,mode=700")
    ssb.own(place)
    return {"XDG_STATE_HOME": str(place)}


def record_on(small_disk):
    runs = pathlib.Path(small_disk["XDG_STATE_HOME"]) / "skillsandbox/runs"
    return max([*runs.glob("*/trace.jsonl"), *runs.glob("*.trace.jsonl")],
               key=lambda p: p.stat().st_mtime_ns)


def test_full_disk_ends_the_run(ssb, small_disk):
    ssb.run("--", "true", env=small_disk).ok()  # control
    marker = f"2345.{os.getpid()}"
    start = time.monotonic()
    r = ssb.run("--", "sh", "-c", CHATTY + f"; sleep {marker}", env=small_disk)
    assert r.code == 125, repr(r)
    assert "trace" in r.errors and "No space left on device" in r.errors
    assert time.monotonic() - start < 30
    assert not harness.alive_with(marker)
    path = record_on(small_disk)
    lines, rest = records.read_lines(path)
    assert rest == b"", "half a line stays"
    kinds = [x["kind"] for x in records.verify(lines)]
    assert kinds.count("stdout") > 100 and "end" not in kinds
    assert os.listdir(path.parent) == ["trace.jsonl"], "half a document stays"


def test_no_room_for_the_first_line(ssb, small_disk):
    ssb.run("--", "true", env=small_disk).ok()
    place = pathlib.Path(small_disk["XDG_STATE_HOME"])
    with open(place / "ballast", "wb", buffering=0) as f:
        with pytest.raises(OSError):
            while True:
                f.write(bytes(4096))
    r = ssb.run("--", "echo", "ran", env=small_disk)
    assert r.code == 125 and b"ran" not in r.out and "No space left" in r.errors, repr(r)
    (place / "ballast").unlink()
    ssb.run("--", "true", env=small_disk).ok()


def test_closed_state_directory(user):
    place = user.mkdir("closed", 0o500)
    r = user.run("--", "echo", "ran", env={"XDG_STATE_HOME": str(place)})
    assert r.code == 125 and b"ran" not in r.out and "Permission denied" in r.errors, repr(r)
    assert "XDG_STATE_HOME" in r.errors
    place.chmod(0o700)
    user.run("--", "true", env={"XDG_STATE_HOME": str(place)}).ok()
    (place / "skillsandbox/runs").chmod(0o500)
    r = user.run("--", "echo", "ran", env={"XDG_STATE_HOME": str(place)})
    assert r.code == 125 and b"ran" not in r.out, repr(r)


def test_read_only_state_directory(ssb, mounts):
    """A read-only file system stops the run, also for root, for whom modes have no effect."""
    place = ssb.mkdir("ro")
    mounts("tmpfs", "ro", place, flags=1)
    r = ssb.run("--", "echo", "ran", env={"XDG_STATE_HOME": str(place)})
    assert r.code == 125 and b"ran" not in r.out and "Read-only file system" in r.errors


def test_a_key_that_others_can_read(ssb):
    ssb.run("--", "true").ok()
    key = ssb.state / "skillsandbox/trace.key"
    key.chmod(0o644)
    r = ssb.run("--", "echo", "ran")
    assert r.code == 125 and b"ran" not in r.out and "trace.key" in r.errors
    key.chmod(0o600)
    ssb.run("--", "true").ok()


@pytest.mark.parametrize("text", ["Z" * 64 + "\n", "A" * 64 + "\n", "a" * 65, "", "a" * 64 + "\n\n"])
def test_a_key_that_is_none(ssb, text):
    """The key file has no valid key, although it looks like one: the run does not start, because
    its record could not be signed."""
    ssb.run("--", "echo", "ran").ok()
    key = ssb.state / "skillsandbox/trace.key"
    good = key.read_text()
    key.write_text(text)
    r = ssb.run("--", "echo", "ran")
    assert r.code == 125 and b"ran" not in r.out and "trace.key" in r.errors, repr(r)
    key.write_text(good)
    assert b"ran" in ssb.run("--", "echo", "ran").ok().out


def test_a_public_key_that_cannot_be_written(ssb):
    ssb.run("--", "true").ok()
    public = ssb.state / "skillsandbox/trace.pub"
    public.unlink()
    ssb.mkdir(public)
    r = ssb.run("--", "echo", "ran")
    assert r.code == 125 and b"ran" not in r.out and "trace.pub" in r.errors, repr(r)
    public.rmdir()
    assert b"ran" in ssb.run("--", "echo", "ran").ok().out
    assert public.is_file()


REACHES = """
cat /etc/shadow $HOME/.ssh/id_rsa /home/somebody/x
echo x >>$HOME/.bashrc
python3 -c 'import socket; socket.socket().connect(("203.0.113.9", 4444))'
unshare -m true
exit 0
"""


def classes_shown(ssb, run):
    """Returns (severity, name, tactic, prevented) for each class that `audit show` prints."""
    text = ssb.ssb("audit", "show", run).ok().text.split("what it amounts to\n")
    return [re.sub(r", \d+ events?,", "", x).split() for x in
            text[1].split("\n\n")[0].splitlines()] if len(text) > 1 else []


@pytest.mark.parametrize("script", [REACHES, "echo x >>$HOME/.bashrc", "cat /root/none/x; true",
                                    "echo nothing"])
def test_classes_of_a_record_without_an_end(ssb, script):
    """A record without its end is judged by its lines. The result is the same as for the whole
    record."""
    ssb.run("-q", "--", "sh", "-c", script).ok()
    path, = records.paths(ssb)
    whole, = ssb.ssb("audit", "list", "--json").ok().json()
    told = classes_shown(ssb, "last")
    assert bool(told) == ("nothing" not in script)
    lines = path.read_bytes().splitlines(keepends=True)
    assert [json.loads(x)["kind"] for x in lines[-2:]] == ["end", "signature"]
    for cut in 1, 2:  # with cut = 1, only the signature is missing
        path.write_bytes(b"".join(lines[:-cut]))
        row, = ssb.ssb("audit", "list", "--rebuild", "--json").ok().json()
        assert row["state"] == "incomplete" and row["severity"] == whole["severity"], row
        assert classes_shown(ssb, "last") == told
        worse = ssb.ssb("audit", "list", "--severity", "critical", "--json").ok().json()
        assert len(worse) == (whole["severity"] == "critical")


def test_the_record_goes_during_the_run(ssb):
    """The owner removes the record during the run: the run ends with an error about its trace."""
    p = ssb.popen([ssb.binary, "run", "--", "sh", "-c", "echo begun; read x; exit 3"],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"begun\n"
    deadline = time.monotonic() + 30
    while not list((ssb.state / "skillsandbox/runs").glob("*/trace.json.part")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for path in records.paths(ssb):
        path.unlink()
        for other in path.parent.glob("*"):
            other.unlink()
        path.parent.rmdir()
    _, err = p.communicate(b"\n", timeout=20)
    assert p.returncode == 125 and b"trace" in err
