"""Files of the host that go with one call.

A sandbox that lives cannot be given new files, so they are passed through: what may be
read is sent along as it is when the call begins; what may be written comes back when
the call has succeeded, and replaces the named file in one step. A failed call writes
nothing, and one that leaves anything but a file in a file's place has failed.
"""
from __future__ import annotations

import base64
import binascii
import os
import secrets
import stat
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from ._errors import SkillError
from ._wire import CHUNK, MAX_FILE, MAX_FILES, ProtocolError

Path = Union[str, "os.PathLike[str]"]


class _File:
    """`named` is how the caller writes it, in the parameters as well."""

    def __init__(self, named: str, mode: str) -> None:
        self.named, self.mode = named, mode
        self.real = os.path.realpath(named)
        self.content: Optional[bytes] = self._read()
        self.result: Optional[bytearray] = None
        self._part = ""     # beside it, until it takes its place

    def _read(self) -> Optional[bytes]:
        try:
            # A FIFO must not hold us up.
            fd = os.open(self.real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            if self.mode == "r":
                raise
            return None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ValueError(f"{self.named}: only regular files can go with a call")
        with open(fd, "rb") as f:
            data = f.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise ValueError(f"{self.named}: more than {MAX_FILE} bytes")
        return data

    def prepare(self) -> None:
        """Writes it beside the file, with the mode that that had."""
        assert self.result is not None
        part = os.path.join(os.path.dirname(self.real), f".skillsandbox-{secrets.token_hex(8)}")
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                     0o666)
        self._part = part
        with open(fd, "wb") as f:
            f.write(self.result)
            if os.path.exists(self.real):
                os.fchmod(fd, stat.S_IMODE(os.stat(self.real).st_mode))

    def store(self) -> None:
        """In one step."""
        os.replace(self._part, self.real)
        self._part = ""

    def forget(self) -> None:
        """What was prepared and not stored."""
        if self._part:
            os.unlink(self._part)
            self._part = ""


class Files:
    def __init__(self, read: Iterable[Path] = (), write: Iterable[Path] = ()) -> None:
        named = [(os.fspath(p), "r") for p in read] + [(os.fspath(p), "w") for p in write]
        if len(named) > MAX_FILES:
            raise ValueError(f"more than {MAX_FILES} files with one call")
        self._files = [_File(n, mode) for n, mode in named]
        for f in self._files:
            if f.mode == "w" and not os.path.isdir(os.path.dirname(f.real)):
                raise FileNotFoundError(f"{f.named}: there is no such directory")

    def __bool__(self) -> bool:
        return bool(self._files)

    def listed(self) -> List[Dict[str, Any]]:
        return [{"path": f.named, "mode": f.mode,
                 "parts": None if f.content is None else _parts(len(f.content))}
                for f in self._files]

    def parts(self) -> Iterator[Dict[str, Any]]:
        """All contents, in the order of the list."""
        for f in self._files:
            for at in range(0, len(f.content or b""), CHUNK):
                assert f.content is not None
                yield {"data": base64.b64encode(f.content[at:at + CHUNK]).decode("ascii")}

    def expect(self, listed: Any) -> List[Tuple[int, int]]:
        """(number, parts) of what a worker says that it has written."""
        found: List[Tuple[int, int]] = []
        for item in listed if isinstance(listed, list) else [None]:
            n, parts = (item.get("n"), item.get("parts")) if isinstance(item, dict) else (0, None)
            if type(n) is not int or type(parts) is not int or not 0 <= n < len(self._files):
                raise ProtocolError("files that were not asked for")
            f = self._files[n]
            if f.mode != "w" or f.result is not None:
                raise ProtocolError("files that were not asked for")
            if not 0 <= parts <= _parts(MAX_FILE):
                raise ProtocolError(f"more than {MAX_FILE} bytes of a file")
            f.result = bytearray()
            found.append((n, parts))
        return found

    def take(self, n: int, part: Dict[str, Any]) -> None:
        result = self._files[n].result
        assert result is not None
        try:
            result += base64.b64decode(part["data"], validate=True)
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise ProtocolError("a part of a file that is none") from None
        if len(result) > MAX_FILE:
            raise ProtocolError(f"more than {MAX_FILE} bytes of a file")

    def store(self) -> None:
        """What was sent along has to have come back. What can fail comes before the first
        of them is replaced."""
        for f in self._files:
            if f.mode == "w" and f.content is not None and f.result is None:
                raise SkillError("ValueError", f"{f.named}: it did not come back from the skill")
        written = [f for f in self._files if f.result is not None]
        try:
            for f in written:
                f.prepare()
            for f in written:
                f.store()
        finally:
            for f in written:
                f.forget()


def _parts(size: int) -> int:
    return (size + CHUNK - 1) // CHUNK
