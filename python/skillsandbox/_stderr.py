"""The standard error of a worker: its end is kept, and each line is logged."""
from __future__ import annotations

import logging
import threading
from typing import IO

KEPT = 64 * 1024
LONGEST = 4096          # most bytes of a line in the log
LOG = logging.getLogger("skillsandbox.skill")


def visible(text: str) -> str:
    """Escapes characters that move the cursor, change the direction of text or begin a new line."""
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode()
                   for c in text)


class Stderr:
    """The standard error of one worker. A thread reads it, so the worker never blocks when it
    writes."""

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
        """True if all output was read, up to its end."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Waits until all output was read. Call this after the process has ended. The wait is
        limited, because children of the process may still have the pipe open. A garbage
        collection may call this in the reading thread itself, which must not wait."""
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
