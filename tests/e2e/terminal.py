"""Plays a person at a terminal: runs a program with a pseudo-terminal as controlling terminal."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

CTRL_C, CTRL_D, CTRL_Z = b"\x03", b"\x04", b"\x1a"


class Terminal:
    """One command of a caller on a new terminal; `seen` has everything that was shown."""

    def __init__(self, caller, *argv, columns=80, ahead=b"", env=None, cwd=None):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.seen = b""
        if ahead:
            os.write(self.ours, ahead)
        self.process = caller.popen(self.command(caller, argv), stdin=theirs, stdout=theirs, stderr=theirs,
                                    env={"TERM": "dumb", **(env or {})}, cwd=cwd,
                                    preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)

    def command(self, caller, argv):
        return [caller.binary, *argv]

    def resize(self, rows, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        return self

    def is_raw(self):
        return not termios.tcgetattr(self.ours)[3] & termios.ICANON

    def _read(self, seconds):
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.ours, 65536)
        except OSError:  # the program has closed the terminal
            data = b""
        self.seen += data
        return data != b""

    def wait_for(self, text, seconds=20):
        """Waits until `text` is shown. Output up to the text of the last call is ignored."""
        start, end = getattr(self, "at", 0), time.monotonic() + seconds
        while text.encode() not in self.seen[start:]:
            left = end - time.monotonic()
            assert left > 0 and self._read(left), f"no {text!r} in:\n{self.text}"
        self.at = start + self.seen[start:].index(text.encode()) + len(text)
        return self

    def type(self, data):
        os.write(self.ours, data if isinstance(data, bytes) else data.encode() + b"\n")
        return self

    def end(self, seconds=30):
        """Waits for the end of the command; returns its exit status."""
        end = time.monotonic() + seconds
        while self._read(max(0, end - time.monotonic())):
            pass
        try:
            code = self.process.wait(timeout=max(1, end - time.monotonic()))
        except Exception:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise
        os.close(self.ours)
        return code

    @property
    def text(self):
        return self.seen.decode(errors="replace").replace("\r\n", "\n")

    @property
    def flat(self):
        """The text with folded lines joined again."""
        return re.sub(r"\n +", " ", self.text)

    def lines(self):
        return self.text.split("\n")


class Shell(Terminal):
    """A caller's interactive bash with job control, from which the program is started."""

    PROMPT = "outer> "

    def __init__(self, caller, **kw):
        super().__init__(caller, env={"PS1": self.PROMPT, "PS2": "", "SSB": str(caller.binary), **kw.pop("env", {})}, **kw)
        self.wait_for(self.PROMPT)

    def command(self, caller, argv):
        return ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"]

    def stopped(self):
        """Waits until the shell has reported a stopped job and prompts again."""
        return self.wait_for("Stopped").wait_for(self.PROMPT)

    def leave(self):
        self.type("exit").type("exit")  # bash warns once if a job is stopped
        return self.end()


def controls(text):
    """The characters of the text that would control a terminal or be invisible in it."""
    return re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text)
