"""Standard streams, exit codes, signals and the terminal."""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import pty
import select
import signal
import struct
import termios
import time

import pytest


EXITS = [
    ("import sys; sys.exit(0)", 0),
    ("import sys; sys.exit(3)", 3),
    ("import sys; sys.exit(255)", 255),
    ("import os; os.kill(os.getpid(), 15)", 143),
    ("import os; os.kill(os.getpid(), 9)", 137),
    ("import os; os.abort()", 134),
]


@pytest.mark.parametrize("code, status", EXITS)
def test_own_exit_status(ssb, code, status):
    assert ssb.inside(code).code == status


@pytest.mark.parametrize("tty", ["--tty", "--no-tty"])
def test_streams_by_their_names_in_dev(ssb, tty):
    """Scripts open /dev/stdin, /dev/stdout and /dev/stderr. The kernel then opens the stream's file
    again, so it must be a file that the skill may open."""
    script = "echo out > /dev/stdout; echo err > /dev/stderr; read x < /dev/stdin; echo $x"
    r = ssb.run(tty, "--", "sh", "-c", script, stdin=b"in\n").ok()
    streams = (r.text + r.errors).split()
    assert {"out", "err", "in"} <= set(streams)


def test_memory_and_sigkill_are_told_apart(ssb):
    r = ssb.inside("import os; os.kill(os.getpid(), 9)")
    assert r.code == 137 and "--memory" not in r.errors


def test_not_found_is_127(ssb):
    r = ssb.run("--", "no-such-program-here")
    assert r.code == 127 and "no-such-program-here" in r.errors
    r = ssb.inside("", command="no-such-interpreter")
    assert r.code == 127


def test_not_executable_is_126(ssb):
    d = ssb.mkdir("tools")
    ssb.write(d / "tool", "#!/bin/sh\necho ran\n", 0o644)
    assert ssb.run("-r", d, "--", d / "tool").code == 126
    ssb.write(d / "tool", "#!/bin/sh\necho ran\n", 0o755)
    assert ssb.run("-r", d, "--", d / "tool").ok().text == "ran\n"
    assert ssb.run("-r", d, "--", d).code == 126
    ssb.write(d / "garbage", b"\x00\x01\x02garbage", 0o755)
    assert ssb.run("-r", d, "--", d / "garbage").code == 126


def test_refusal_is_125_and_usage_is_2(ssb):
    assert ssb.inside("", read=["~/.ssh"]).code == 125
    assert ssb.run("--no-such-flag", "--", "true").code == 2


def test_entrypoint_in_the_skill_directory(ssb):
    skill = ssb.skill("", command="./tool", args=["a"])
    ssb.write(skill / "tool", "#!/bin/sh\necho tool $1 $2\n", 0o755)
    assert ssb.run(skill, "--", "b").ok().text == "tool a b\n"


def test_arguments_are_appended(ssb):
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    skill = ssb.skill(code, args=["main.py", "own"])
    words = ["plain", "two words", "--flag", "-x", "", "qu'ote", "ü", "--"]
    assert ssb.run(skill, "--", *words).ok().json() == ["own", *words]


def test_stdin_passes_through(ssb):
    data = os.urandom(3 << 20)
    code = "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    r = ssb.inside(code, stdin=data).ok()
    assert r.text.strip() == hashlib.sha256(data).hexdigest()


def test_stdin_that_is_not_read(ssb):
    assert ssb.inside("print('done')", stdin=b"x" * (1 << 20)).ok().text == "done\n"


def test_stdin_end_arrives(ssb):
    assert ssb.run("--", "cat", stdin=b"").ok().out == b""


def test_ten_megabytes_byte_exact(ssb):
    size = 10 << 20
    code = f"""
    import sys, random
    r = random.Random(7)
    sys.stdout.buffer.write(r.randbytes({size}))
    sys.stderr.buffer.write(r.randbytes({size}))
    """
    r = ssb.inside(code, resources={"max_output_bytes": size})
    import random
    g = random.Random(7)
    assert r.code == 0
    assert r.out == g.randbytes(size)
    assert r.err[:size] == g.randbytes(size)


def test_output_is_streaming(ssb):
    p = ssb.popen([ssb.binary, "run", "--", "sh", "-c", "echo first; read x; echo second $x"],
                  stdin=-1, stdout=-1, stderr=-1)
    try:
        ready, _, _ = select.select([p.stdout], [], [], 30)
        assert ready and os.read(p.stdout.fileno(), 100) == b"first\n"
        p.stdin.write(b"go\n")
        p.stdin.flush()
        out, _ = p.communicate(timeout=30)
        assert out == b"second go\n" and p.returncode == 0
    finally:
        p.kill()


def test_reader_that_goes_away(ssb):
    r = ssb.as_caller(["sh", "-c", '"$0" run -- yes | head -1', ssb.binary], timeout=20)
    assert r.out == b"y\n"


def test_closed_standard_streams(ssb):
    r = ssb.as_caller(["sh", "-c", '"$0" run -- true <&- >&- 2>&-; echo $?', ssb.binary])
    assert r.text.strip() == "0"


def test_an_ignored_sigchld_is_not_inherited(ssb):
    """The caller ignores SIGCHLD, and its children inherit this. If `run` kept it, the kernel would
    drop the exit status of the skill. The control is another program, which keeps it."""
    for argv, ignored in (([ssb.binary, "run", "--", "sh", "-c", "echo up; read x"], False),
                          (["/usr/bin/python3", "-c", "print('up', flush=True); input()"],
                           True)):
        p = ssb.popen(["env", "--ignore-signal=CHLD", *argv], stdin=-1, stdout=-1)
        assert p.stdout.readline() == b"up\n"
        status = pathlib.Path(f"/proc/{p.pid}/status").read_text("utf-8")
        mask = next(int(x.split()[1], 16) for x in status.splitlines() if x.startswith("SigIgn:"))
        p.communicate(b"\n", timeout=30)
        assert bool(mask & 1 << (signal.SIGCHLD - 1)) == ignored, (argv, status)


def test_interrupt_ends_the_skill(ssb):
    p = ssb.popen([ssb.binary, "run", "--", "sh", "-c", "echo up; sleep 60"], stdin=-1, stdout=-1,
                  stderr=-1)
    assert p.stdout.readline() == b"up\n"
    start = time.monotonic()
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=30)
    assert p.returncode in (130, -2)
    assert time.monotonic() - start < 12


class Terminal:
    """A terminal of the test, in which `run` is the foreground program."""

    def __init__(self, ssb, *args, rows=33, cols=101, term="xterm"):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
            os.chdir(ssb.work)
            argv = [str(a) for a in [*ssb.identity(), ssb.binary, "run", *args]]
            os.execvpe(argv[0], argv, ssb.environment({"TERM": term}))
        self.seen = b""

    def expect(self, text, seconds=30):
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0 and self.read(left), f"no {text!r} in {self.seen!r}"

    def send(self, data):
        os.write(self.fd, data)

    def read(self, seconds):
        """Reads once. False if nothing came, or if nothing more can come."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 4096)
        except OSError:
            return False
        self.seen += data
        return data != b""

    def wait(self, seconds=30):
        """Waits until the program has ended and all its output is read. Returns its exit status."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                while self.read(0):
                    pass
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"did not end: {self.seen!r}")

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def terminal(ssb):
    opened = []

    def start(*args, **kw):
        opened.append(Terminal(ssb, *args, **kw))
        return opened[-1]
    yield start
    for t in opened:
        t.close()


def test_terminal_of_its_own(ssb, terminal):
    code = """
    import os, sys
    print([os.isatty(f) for f in (0, 1, 2)], tuple(os.get_terminal_size()), os.ttyname(0))
    """
    t = terminal(ssb.skill(code))
    t.expect(b"[True, True, True] (101, 33)")
    assert t.wait() == 0
    # If the caller has no terminal, the skill has none either.
    assert "[False, False, False]" in ssb.inside(
        "import os; print([os.isatty(f) for f in (0, 1, 2)])").text


def test_window_size_is_forwarded(ssb, terminal):
    code = """
    import os, signal, time
    signal.signal(signal.SIGWINCH, lambda *a: os.write(1, b'size %d %d\\n' % os.get_terminal_size()))
    print('ready', flush=True)
    while True:
        time.sleep(0.05)
    """
    t = terminal(ssb.skill(code))
    t.expect(b"ready")
    fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 77, 0, 0))
    t.expect(b"size 77 50")
    t.send(b"\x03")
    t.wait()


def test_ctrl_c_on_a_terminal(ssb, terminal):
    t = terminal("--", "sh", "-c", "echo up; sleep 60; echo not-reached")
    t.expect(b"up")
    code = None
    for _ in range(8):  # a SIGINT between fork and exec of `sleep` has no effect
        with contextlib.suppress(OSError):  # the program has ended
            t.send(b"\x03")
        with contextlib.suppress(AssertionError):
            code = t.wait(3)
            break
    assert code in (130, -2)
    assert b"not-reached" not in t.seen


def test_ctrl_c_can_be_handled_by_the_skill(ssb, terminal):
    code = """
    import time
    try:
        print('ready', flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print('interrupted nicely', flush=True)
        raise SystemExit(7)
    """
    t = terminal(ssb.skill(code))
    t.expect(b"ready")
    t.send(b"\x03")
    t.expect(b"interrupted nicely")
    assert t.wait() == 7


def test_interactive_input(ssb, terminal):
    t = terminal("--", "sh", "-c", "printf 'name? '; read n; echo hello $n")
    t.expect(b"name? ")
    t.send(b"ann\r")
    t.expect(b"hello ann")
    assert t.wait() == 0


def test_terminal_is_restored(ssb, terminal):
    t = terminal("--", "sh", "-c", "stty raw -echo 2>/dev/null; exit 4")
    assert t.wait() == 4
    # ICANON is set in every new terminal. The test does not compare with an earlier mode, because
    # the skill may have changed it before the test could read it.
    assert termios.tcgetattr(t.fd)[3] & termios.ICANON


@pytest.mark.parametrize("tty", ["--tty", "--no-tty"])
@pytest.mark.parametrize("left", ["\\033[8m", "\\033]0;", "\\033P", "\\033(0", "\\016"])
def test_skill_cannot_hide_what_is_said_of_it(ssb, terminal, left, tty):
    """The skill's last output makes letters invisible, begins a title or string that does not end,
    or selects another character set: the runtime resets the terminal before it prints its
    message."""
    t = terminal(tty, "--", "sh", "-c", f"cat /etc/shadow 2>/dev/null; printf 'last{left}'")
    assert t.wait() == 0
    said = t.seen[t.seen.index(b"last"):]
    calm = b"\030\033\\\033[0m\033(B\017"
    assert b"details: skillsandbox why " in said
    assert calm in said and said.index(calm) < said.index(b"skillsandbox:")


@pytest.mark.parametrize("tty", ["--tty", "--no-tty"])
@pytest.mark.parametrize("to", ["", ">&2"])
@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_what_is_said_begins_a_line(ssb, terminal, tty, to, term):
    """The runtime's message begins a new line after unfinished output, and has no empty line before
    it after finished output."""
    said = {}
    for text in ("last", "last\\n"):
        t = terminal(tty, "--", "sh", "-c", f"cat /etc/shadow 2>/dev/null; printf '{text}' {to}",
                     term=term)
        t.expect(b"skillsandbox:")
        assert t.wait() == 0
        seen = t.seen.replace(b"\030\033\\\033[0m\033(B\017", b"")
        said[text] = seen[seen.index(b"last"):].replace(b"\r", b"").split(b"\n")
    for lines in said.values():
        assert lines[0] == b"last" and lines[1].startswith(b"skillsandbox:"), lines


def test_skill_cannot_type_into_the_outer_terminal(ssb, terminal):
    code = """
    import fcntl, termios, os
    for fd in (0, 1, 2):
        try:
            fcntl.ioctl(fd, termios.TIOCSTI, b'x')
            print('pushed', flush=True)
        except OSError:
            print('refused', flush=True)
    try:
        os.open('/dev/tty', os.O_RDWR)
    except OSError:
        pass
    """
    t = terminal(ssb.skill(code))
    assert t.wait() in (0, 159)
    assert b"pushed" not in t.seen
