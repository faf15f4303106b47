"""One run from its start to its end: streams, signals, exit status and record."""
import json
import os
import pathlib
import platform
import re
import signal
import stat
import time

import pytest

from harness import (PYTHON, alive_with, ends_within, manifest, open_files, userns_denied,
                     wait_for)

NUMBERS = {"x86_64": {"renameat2": 316, "add_key": 248, "keyctl": 250},
           "aarch64": {"renameat2": 276, "add_key": 217, "keyctl": 219}}[platform.machine()]


def test_reader_that_never_reads(ssb):
    """The reader of the output never reads: the time limit still ends the run."""
    start = time.monotonic()
    p = ssb.popen([ssb.binary, "run", "-t", "5", "--", "sh", "-c", "echo up >&2; exec yes"],
                  stdin=-3, stdout=-1, stderr=-1)
    try:
        assert p.stderr.readline() == b"up\n"
        assert ends_within(p, 30) == 124, p.poll()
        assert time.monotonic() - start > 4.9, "not before its time"
    finally:
        p.kill()
        p.communicate()


def test_reader_that_never_reads_an_ended_skill(ssb):
    """The skill has ended, but the reader never reads its output: a signal ends the run."""
    script = "head -c 120000 /dev/zero; echo done >&2"
    p = ssb.popen([ssb.binary, "run", "-t", "60", "--", "sh", "-c", script], stdin=-3, stdout=-1,
                  stderr=-1)
    try:
        assert p.stderr.readline() == b"done\n"
        assert ends_within(p, 0.5) is None, "control: it waits for its reader"
        start = time.monotonic()
        for _ in range(2):
            p.send_signal(signal.SIGTERM)
            if ends_within(p, 10) is not None:
                break
        assert p.poll() is not None and time.monotonic() - start < 30, "of the 60 that it has"
    finally:
        p.kill()
        p.communicate()
    r = ssb.run("--", "sh", "-c", script).ok()
    assert len(r.out) == 120000, "control: a reader that reads gets it all"


WHITEOUT = """
import ctypes, json, os, stat
d = os.environ['D']
libc = ctypes.CDLL(None, use_errno=True)
seen = {}
def rename(flags, a, b):
    if libc.syscall(NUMBER, -100, (d + a).encode(), -100, (d + b).encode(), flags) == 0:
        return 'ok'
    return os.strerror(ctypes.get_errno())
open(d + '/a', 'w').close()
open(d + '/b', 'w').close()
seen['plain'] = rename(0, '/a', '/c')
seen['exchange'] = rename(2, '/b', '/c')
seen['whiteout'] = rename(4, '/b', '/moved')
seen['both'] = rename(5, '/c', '/moved2')
try:
    os.mknod(d + '/node', stat.S_IFCHR | 0o600, 0)
    seen['mknod'] = 'ok'
except OSError as e:
    seen['mknod'] = 'denied'
seen['left'] = sorted(n for n in os.listdir(d) if stat.S_ISCHR(os.lstat(d + '/' + n).st_mode))
print(json.dumps(seen))
""".replace("NUMBER", str(NUMBERS["renameat2"]))


def test_whiteouts_leave_no_device_node(ssb):
    d, outside = ssb.mkdir("d"), ssb.mkdir("outside")
    seen = ssb.probe(WHITEOUT, flags=["-w", d, "--env", f"D={d}"])
    assert seen == {"plain": "ok", "exchange": "ok", "whiteout": "Invalid argument",
                    "both": "Invalid argument", "mknod": "denied", "left": []}
    assert not any(stat.S_ISCHR(p.lstat().st_mode) for p in d.iterdir())
    control = ssb.bare_probe(WHITEOUT, env={"D": str(outside)})
    assert control["left"] == ["b", "c", "node"], control


@pytest.mark.parametrize("status", [0, 3, 255])
def test_caller_that_ignores_its_children(ssb, status):
    r = ssb.as_caller(["env", "--ignore-signal=CHLD", ssb.binary, "run", "--", "sh", "-c",
                       f"true & wait; echo over; exit {status}"])
    assert (r.code, r.out) == (status, b"over\n"), repr(r)
    r = ssb.as_caller(["env", "--ignore-signal=CHLD", "grep", "SigIgn", "/proc/self/status"])
    assert int(r.text.split()[1], 16) & 1 << (signal.SIGCHLD - 1), "control: it is ignored"


@pytest.mark.parametrize("said", ["no end of line", "a line\n", ""])
def test_json_result_has_a_line_of_its_own(ssb, said):
    r = ssb.run("--json", "--", "sh", "-c", f"printf '{said}' >&2; exit 3")
    assert r.code == 3
    result = json.loads(r.errors.splitlines()[-1])
    assert result["stderr_bytes"] == len(said)
    assert r.errors.endswith("}\n") and r.errors.startswith(said)
    assert ssb.run("--", "sh", "-c", f"printf '{said}' >&2").errors == said, "control"


def test_no_file_may_grow(ssb):
    d = ssb.mkdir("d")
    for flags in ([], ["-w", d]):
        r = ssb.as_caller(["prlimit", "--fsize=0", ssb.binary, "run", *flags, "--", "echo", "ran"])
        assert r.code == 125 and b"ran" not in r.out, repr(r)
        assert r.errors.startswith("skillsandbox: ") and "File too large" in r.errors
        assert os.listdir(d) == []
    r = ssb.as_caller(["prlimit", "--fsize=10000000", ssb.binary, "run", "-w", d, "--", "echo",
                       "ran"])
    assert r.ok().text == "ran\n"


def test_mask_that_takes_everything(ssb):
    d = ssb.mkdir("d")
    script = 'umask 0777; exec "$@"'
    r = ssb.as_caller(["sh", "-c", script, "sh", ssb.binary, "run", "-w", d, "-w", ssb.base / "new",
                       "--", "sh", "-c", f"echo x > {d}/f; echo y > {ssb.base}/new/f; umask"])
    assert r.ok().text == "0022\n"
    assert (d / "f").read_text() == "x\n" and (ssb.base / "new/f").read_text() == "y\n"
    assert os.listdir(d) == ["f"]
    assert ssb.last_trace()["exit_code"] == 0
    outside = ssb.base / "outside"
    ssb.as_caller(["sh", "-c", script, "sh", "touch", outside]).ok()
    assert stat.S_IMODE(outside.stat().st_mode) == 0, "control: the mask holds outside"


# Adds a key to a new session keyring, then becomes the command.
PLANT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
name = sys.argv[1].encode()
if libc.syscall(KEYCTL, 1, None) < 0 or libc.syscall(ADD_KEY, b'user', name, b'x', 1, -3) < 0:
    sys.exit('no key: ' + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
""".replace("KEYCTL", str(NUMBERS["keyctl"])).replace("ADD_KEY", str(NUMBERS["add_key"]))


def test_keys_of_the_owner_are_not_listed(ssb):
    name = f"ssb-decoy-{os.getpid()}-{ssb.kind}"
    look = "cat /proc/keys /proc/key-users; cat /proc/self/comm"
    plant = [PYTHON, "-c", PLANT, name]
    control = ssb.as_caller([*plant, "sh", "-c", look])
    assert name in control.text, f"control: a key can be planted and is listed: {control!r}"
    r = ssb.as_caller([*plant, ssb.binary, "run", "--", "sh", "-c", look])
    assert r.text == "cat\n", repr(r)


def test_command_line_of_the_supervisor(ssb):
    d = ssb.mkdir("told-to-nobody")
    code = """
    import json
    seen = {}
    for name in ('cmdline', 'environ', 'comm'):
        try:
            seen[name] = open('/proc/1/' + name, 'rb').read().decode('latin-1')
        except OSError as e:
            seen[name] = None
    seen['own'] = open('/proc/self/cmdline').read()
    print(json.dumps(seen))
    """
    seen = ssb.probe(code, flags=["--env", "MARK=value-for-nobody", "-r", d], name="probe")
    assert "main.py" in seen.pop("own"), "control: a command line can be read there"
    assert not (seen["cmdline"] or "").strip("\0"), seen
    assert "nobody" not in json.dumps(seen)


def test_workdir_that_is_missing(ssb):
    text = manifest() + "  workdir: %s\n"
    r = ssb.run(ssb.skill("print('started')", text=text % "/nonexistent/place"))
    assert r.code == 125 and b"started" not in r.out, repr(r)
    assert "workdir" in r.errors and "/nonexistent/place" in r.errors
    code = "import os; print(os.getcwd())"
    text = text.replace("main.py", "/skill/main.py") % "/usr/share"
    assert ssb.run(ssb.skill(code, text=text)).ok().text == "/usr/share\n"


def test_interrupt_without_namespaces(user):
    length = f"47.{os.getpid()}"
    script = f"trap '' INT; sleep {length} & setsid sleep {length} & echo up; sleep {length}"
    p = user.popen(userns_denied(user, "run", "--best-effort", "userns", "--", "sh", "-c", script),
                   stdin=-3, stdout=-1, stderr=-1)
    try:
        assert p.stdout.readline() == b"up\n"
        # The control: three processes of the skill are running.
        wait_for(lambda: len([1 for _, line in alive_with(length) if line.startswith(b"sleep")])
                 == 3, 10)
        os.killpg(p.pid, signal.SIGINT)
        assert ends_within(p, 20) == 130, p.poll()
        wait_for(lambda: not alive_with(length), 10)  # the skill would run for 47 s
    finally:
        p.kill()
        p.communicate()


def trace_of(ssb, code, *args):
    out = ssb.base / "trace.json"
    assert ssb.run("--trace-output", out, *args).code == code
    return json.loads(out.read_bytes())


def kinds(trace):
    return [e["kind"] for e in trace["events"]]


def states(trace):
    return {name: layer["state"] for name, layer in trace["layers"].items()}


def test_trace_of_a_run_that_never_was(ssb):
    """If the program is missing or the set-up fails, the trace has no process_spawned event. If
    the set-up fails, the trace does not report the later layers (here mounts, landlock and
    seccomp) as "on"."""
    good = trace_of(ssb, 0, "--", "sh", "-c", "true; true")
    assert kinds(good).count("process_spawned") == 1 and set(states(good).values()) == {"on"}

    missing = trace_of(ssb, 127, "--", "no-such-program")
    assert "process_spawned" not in kinds(missing) and "skill_failed" in kinds(missing)

    d = ssb.mkdir("d")
    (d / ".envrc").symlink_to(".envrc")  # a loop
    bad = trace_of(ssb, 125, "-w", d, "--", "true")
    assert "process_spawned" not in kinds(bad) and "skill_failed" in kinds(bad)
    for layer in ("mounts", "landlock", "seccomp"):
        assert states(bad)[layer] != "on", states(bad)


def test_terminal_for_piped_input(ssb):
    script = "read a; read b; echo got $a and $b; test -t 0 && echo terminal"
    r = ssb.run("--tty", "--", "sh", "-c", script, stdin=b"first\nsecond\n").ok()
    assert "got first and second" in r.text and "terminal" in r.text.split("got")[1]
    r = ssb.run("--", "sh", "-c", script, stdin=b"first\nsecond\n")
    assert r.text == "got first and second\n", "control: without the flag there is none"


def descendants(pid):
    found = []
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # the process has ended
        children = []
    for child in children:
        found += [int(child), *descendants(child)]
    return found


def is_in_sandbox(pid):
    """True if the process has its own pid namespace. The child that hashes the skill's files does
    not have one, and may still be running."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return False
    return len(re.search(r"^NSpid:(.*)", status, re.M)[1].split()) > 1


def test_first_process_holds_nothing_of_the_caller(ssb):
    log = ssb.write(ssb.base / "caller.log", "")
    extra = ssb.write(ssb.base / "caller.data", "x")
    code = """
    import os
    try:
        print('listed', os.listdir('/proc/1/fd'), flush=True)
    except OSError:
        print('closed', len(os.listdir('/proc/self/fd')), flush=True)
    input()
    """
    with open(log, "wb") as err, open(extra, "rb") as held:
        p = ssb.popen([ssb.binary, "run", ssb.skill(code)], stdin=-1, stdout=-1, stderr=err,
                      pass_fds=[held.fileno()])
        try:
            assert p.stdout.readline().startswith(b"closed")
            assert {str(log), str(extra)} <= open_files(p.pid), "control: the caller's files"
            inside = [pid for pid in descendants(p.pid) if is_in_sandbox(pid)]
            assert len(inside) >= 2, "init and the skill"
            for pid in inside:
                files = open_files(pid)
                assert files, "control: its fds can be listed from the host"
                assert not {str(log), str(extra)} & files, (pid, files)
                assert not any(f.startswith(str(ssb.base)) for f in files - {"/"}), files
        finally:
            p.communicate(b"\n", timeout=30)
    assert p.returncode == 0
