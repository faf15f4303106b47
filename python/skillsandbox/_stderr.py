"""What a worker says beside its answers: kept to its last, and logged line by line."""
from __future__ import annotations

import logging
import threading
from typing import IO

KEPT = 64 * 1024
LONGEST = 4096          # of a line in the log
LOG = logging.getLogger("skillsandbox.skill")


def visible(text: str) -> str:
    """Nothing in it moves a cursor, turns text around, or begins a line of its own."""
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode()
                   for c in text)


class Stderr:
    """Read by a thread of its own: a worker never waits for somebody to look."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = bytearray()
        self._line = bytearray()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def tail(self) -> str:
        return "\n".join(visible(line) for line in self.raw_tail().split("\n"))

    def raw_tail(self) -> str:
        with self._lock:
            return self._kept.decode("utf-8", "backslashreplace")

    def whole(self) -> bool:
        """All of it was read, up to its end."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """After the process has ended; children of it may hold the pipe for ever. Garbage
        may be collected by any thread, also by this one."""
        if self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def _read(self) -> None:
        with self._stream as stream:
            while True:
                data = stream.read(1 << 16)
                if not data:
                    break
                with self._lock:
                    self._kept += data
                    del self._kept[:-KEPT]
                if LOG.isEnabledFor(logging.INFO):
                    self._log(data)

    def _log(self, data: bytes) -> None:
        self._line += data
        *lines, rest = bytes(self._line).split(b"\n")
        self._line[:] = rest[-LONGEST:]
        for line in lines:
            LOG.info("%s", visible(line[:LONGEST].decode("utf-8", "backslashreplace")))
