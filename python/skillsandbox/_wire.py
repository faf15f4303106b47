"""Lines of JSON to and from a worker. Each byte from a worker may be hostile.

Nothing from a worker is executed, unpickled or trusted. A line has a maximum length, and must be
strict JSON with a limited depth, a limited number of values, and numbers that are cheap to
parse. An answer counts only if it has the id of the request.
"""
from __future__ import annotations

import json
import os
import re
import select
import time
from typing import Any, Dict, List, Optional

MAX_LINE = 16 * 1024 * 1024     # most bytes of a request, and of an answer
MAX_DIGITS = 400                # most digits of one number
# how many of the marks [ { , : a line may have outside of its texts. This limits the number of
# values in the line.
MAX_MARKS = 1000 * 1000
CHUNK = 512 * 1024              # bytes of a file in one line
MAX_FILE = 64 * 1024 * 1024     # bytes of one file, in each direction
MAX_FILES = 32                  # files of one call
MAX_WAIT = 3600.0               # seconds of one poll(); a call may take longer

TEXT = re.compile(rb'"[^"]*"?')     # a text, if the line has no escapes


class ProtocolError(Exception):
    """The worker has violated the protocol."""


class Ended(Exception):
    """The worker has closed its end."""


class Late(Exception):
    """The time limit was reached."""


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ProtocolError("a number without end")
    return int(text)


def _constant(text: str) -> Any:
    raise ProtocolError(f"{text} is not JSON")


def _marks(line: bytes, *where: int) -> int:
    return sum(line.count(mark, *where) for mark in b"[{,:")


def _check_marks(line: bytes) -> None:
    """Refuses a line with too many values: in memory, a value takes many times its bytes in the
    line. Marks inside texts do not count. It is slow to find the texts, so this is done only if
    the line has too many marks in all."""
    marks = _marks(line)
    if marks <= MAX_MARKS:
        return
    # Without escapes, a text ends at the next quote. Two texts have at least one mark between them.
    plain = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') <= 2 * MAX_MARKS:
        marks -= sum(_marks(plain, *text.span()) for text in TEXT.finditer(plain))
    if marks > MAX_MARKS:
        raise ProtocolError(f"more than {MAX_MARKS} values")


def decode(line: bytes) -> Dict[str, Any]:
    """Returns the object in a line."""
    _check_marks(line)
    try:
        value = json.loads(line.decode("utf-8"), parse_int=_integer, parse_constant=_constant)
        if b"\\ud" in line or b"\\uD" in line:
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # fails for a lone surrogate
    except ProtocolError:
        raise
    except (ValueError, RecursionError) as e:
        raise ProtocolError(f"not JSON: {type(e).__name__}") from None
    if not isinstance(value, dict):
        raise ProtocolError("not an object")
    return value


def encode(value: Dict[str, Any]) -> bytes:
    """Returns the value as a line. Raises ValueError or TypeError if that is not possible."""
    line = json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
    if len(line) > MAX_LINE:
        raise ValueError(f"more than {MAX_LINE} bytes of parameters")
    return line


class Channel:
    """The two pipes to and from a worker, which this object owns. Only one thread may use it at a
    time."""

    def __init__(self, to_worker: int, from_worker: int) -> None:
        self._out, self._in = to_worker, from_worker
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        self._got = bytearray()
        self._seen = 0      # bytes of _got that contain no newline
        self._pending: List[memoryview] = []

    def send(self, line: bytes) -> None:
        """Queues a line. It is written while receive() waits, so neither side can block the
        other."""
        self._pending.append(memoryview(line))

    def receive(self, deadline: Optional[float]) -> Dict[str, Any]:
        """Returns the next object."""
        while True:
            line = self._line()
            if line is not None:
                return decode(line)
            self._move(deadline)

    def quiet(self) -> bool:
        """True if the worker has sent nothing that was not requested."""
        return not self._got

    def close(self) -> None:
        for fd in (self._out, self._in):
            if fd >= 0:
                os.close(fd)
        self._out = self._in = -1

    def end_input(self) -> None:
        """Tells the worker that no more requests follow."""
        self._pending.clear()
        if self._out >= 0:
            os.close(self._out)
            self._out = -1

    def _line(self) -> Optional[bytes]:
        end = self._got.find(b"\n", self._seen)
        if end < 0:
            self._seen = len(self._got)
            if self._seen > MAX_LINE:
                raise ProtocolError("a line without end")
            return None
        if end > MAX_LINE:
            raise ProtocolError("a line without end")
        line = bytes(self._got[:end])
        del self._got[:end + 1]
        self._seen = 0
        return line

    def _move(self, deadline: Optional[float]) -> None:
        """Waits, then reads and writes as much as possible."""
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        if self._pending and self._out >= 0:
            poll.register(self._out, select.POLLOUT)
        left = None if deadline is None else deadline - time.monotonic()
        ready = poll.poll(None if left is None else max(0.0, min(left, MAX_WAIT)) * 1000 + 1)
        if not ready and left is not None and left <= MAX_WAIT:
            raise Late()
        for fd, _ in ready:
            if fd == self._in:
                self._read()
            else:
                self._write()

    def _read(self) -> None:
        try:
            data = os.read(self._in, 1 << 18)
        except BlockingIOError:
            return
        if not data:
            raise Ended()
        self._got += data

    def _write(self) -> None:
        first = self._pending[0]
        try:
            n = os.write(self._out, first[:1 << 18])
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._pending.clear()  # the remaining output of the worker is still read until its end
            return
        if n == len(first):
            self._pending.pop(0)
        else:
            self._pending[0] = first[n:]
