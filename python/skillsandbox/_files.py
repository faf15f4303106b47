"""Files of the host that are passed with one call.

New files cannot be mounted into a running sandbox, so their contents are sent. A file to read is
sent as it is when the call begins. The skill works on its copy of a file to write. After the call
has succeeded, the copy is sent back, and replaces the named file in one step. A call that fails
writes nothing. A call also fails if a copy is not a regular file at its end.

This module opens files with the host's permissions, which a skill must not be able to use: if it
can write the directory of such a file, it can put a symlink there, before or during the call. So
a path is opened part by part, and a symlink that a skill could have made is not followed. The
directory then stays open, and all later operations are relative to it.
"""
from __future__ import annotations

import base64
import binascii
import errno
import os
import secrets
import stat
from typing import (Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple,
                    Union)

from ._errors import SkillError
from ._wire import CHUNK, MAX_FILE, MAX_FILES, ProtocolError

Path = Union[str, "os.PathLike[str]"]

LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_LINKS = 40          # most symlinks in one path


class Place(NamedTuple):
    """The place of a file that a Judge decides about. `directory` is the device and the inode of
    the file's directory."""
    mode: str                       # "r" or "w"
    path: str                       # absolute, without symlinks
    directory: Tuple[int, int]


# A function that raises an exception for a place that must not be given to a skill.
Judge = Callable[[List[Place]], None]


def _path_of(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")


def _names(path: str) -> List[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _link(held: int, name: str) -> Optional[str]:
    """Returns the target of a symlink; None if it is not a symlink."""
    try:
        return os.readlink(name, dir_fd=held)
    except FileNotFoundError:
        return None
    except OSError as e:
        if e.errno == errno.EINVAL:
            return None
        raise


def _is_no_skills(held: int, name: str) -> bool:
    """True if no skill can have made this symlink. This is so directly in /, where no skill may
    write (/home -> /var/home). It is also so for a symlink of root in a directory that only root
    can write, but not if this process is root: its skills then write as root, too.
    file_follow_fixed() in file.c has the same rule."""
    if _path_of(held) == "/":
        return True
    directory, link = os.fstat(held), os.stat(name, dir_fd=held, follow_symlinks=False)
    return os.geteuid() != 0 and link.st_uid == directory.st_uid == 0 and \
        not directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _from_home(path: str) -> str:
    """Resolves symlinks in the value of HOME: the owner has set it, so it is trusted."""
    spelt = os.environ.get("HOME", "")
    home = os.path.normpath(spelt)
    inside = spelt.startswith("/") and home.strip("/") and path.startswith(home + "/")
    return os.path.realpath(home) + path[len(home):] if inside else path


def _find(named: str, path: str) -> Tuple[int, str]:
    left, links = _names(path), 0
    held = os.open("/" if path.startswith("/") else ".", LOOK | os.O_DIRECTORY)
    try:
        while left:
            name = left.pop(0)
            to = _link(held, name)
            if to is None and not left and name != "..":
                return held, name
            if to is not None:
                links += 1
                if links > MAX_LINKS or not _is_no_skills(held, name):
                    raise OSError(errno.ELOOP, "this path goes through a symlink that a skill may "
                                  "have made; name the real path instead")
                left = _names(to) + left
                name = "/" if to.startswith("/") else "."
            # O_NOFOLLOW: a symlink may have replaced the directory since it was looked at.
            before, held = held, os.open(name, LOOK | os.O_DIRECTORY, dir_fd=held)
            os.close(before)
    except BaseException:
        os.close(held)
        raise
    os.close(held)
    raise ValueError(f"{named}: only regular files can go with a call")


def _walk(named: str) -> Tuple[int, str]:
    """Returns the opened directory of a file, which the caller must close, and the file's name in
    it."""
    try:
        return _find(named, _from_home(named))
    except OSError as e:
        raise OSError(e.errno, e.strerror, named) from None


class _File:
    """One file. `named` is its name as the caller writes it, also in the parameters."""

    def __init__(self, named: str, mode: str) -> None:
        self.named, self.mode = named, mode
        self._held, self._name = _walk(named)
        self._file = -1                             # fd with O_PATH, later opened to read
        self._permissions: Optional[int] = None     # those of the existing file
        self.content: Optional[bytes] = None
        self.result: Optional[bytearray] = None
        self._part = ""     # name of the temporary file until it replaces the file

    def place(self) -> Place:
        return Place(self.mode, os.path.join(_path_of(self._held), self._name), self._directory())

    def _directory(self) -> Tuple[int, int]:
        st = os.fstat(self._held)
        return st.st_dev, st.st_ino

    def look(self) -> None:
        """Checks the type of the file before it is opened, because opening a device may have an
        effect."""
        try:
            self._file = os.open(self._name, LOOK, dir_fd=self._held)
        except FileNotFoundError as e:
            if self.mode == "r":
                raise FileNotFoundError(e.errno, e.strerror, self.named) from None
            return
        st = os.fstat(self._file)
        if not stat.S_ISREG(st.st_mode):
            raise ValueError(f"{self.named}: only regular files can go with a call")
        self._permissions = st.st_mode & 0o777

    def read(self) -> None:
        if self._file < 0:
            return
        try:
            # If another process has a lease on the file, this must fail instead of blocking.
            fd = os.open(f"/proc/self/fd/{self._file}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as e:
            raise OSError(e.errno, e.strerror, self.named) from None
        with open(fd, "rb") as f:
            self.content = f.read(MAX_FILE + 1)
        if len(self.content) > MAX_FILE:
            raise ValueError(f"{self.named}: more than {MAX_FILE} bytes")

    def prepare(self) -> None:
        """Writes the result to a temporary file in the same directory, with the permissions of the
        existing file."""
        assert self.result is not None
        self._check_still_there()
        part = f".skillsandbox-{secrets.token_hex(8)}"
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                     0o666 if self._permissions is None else 0o600, dir_fd=self._held)
        self._part = part
        with open(fd, "wb") as f:
            f.write(self.result)
            if self._permissions is not None:
                os.fchmod(fd, self._permissions)

    def _check_still_there(self) -> None:
        """Raises OSError if the directory was replaced: the caller would look for the result in the
        new one."""
        held, _ = _walk(self.named)
        try:
            now = os.fstat(held)
        finally:
            os.close(held)
        if (now.st_dev, now.st_ino) != self._directory():
            raise OSError(errno.ESTALE, "its directory was replaced during the call", self.named)

    def store(self) -> None:
        """Replaces the file in one step."""
        os.replace(self._part, self._name, src_dir_fd=self._held, dst_dir_fd=self._held)
        self._part = ""

    def forget(self) -> None:
        """Removes the temporary file if it was not stored."""
        if self._part:
            os.unlink(self._part, dir_fd=self._held)
            self._part = ""

    def close(self) -> None:
        for fd in (self._held, self._file):
            if fd >= 0:
                os.close(fd)
        self._held = self._file = -1


class Files:
    """The files of one call. Their directories stay open until close()."""

    def __init__(self, read: Iterable[Path] = (), write: Iterable[Path] = (),
                 judge: Judge = lambda places: None) -> None:
        named = [(os.fspath(p), "r") for p in read] + [(os.fspath(p), "w") for p in write]
        if len(named) > MAX_FILES:
            raise ValueError(f"more than {MAX_FILES} files with one call")
        self._files: List[_File] = []
        try:
            for n, mode in named:
                self._files.append(_File(n, mode))
                self._files[-1].look()
            if self._files:
                judge([f.place() for f in self._files])
            for f in self._files:
                f.read()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for f in self._files:
            f.close()

    def __enter__(self) -> "Files":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __bool__(self) -> bool:
        return bool(self._files)

    def listed(self) -> List[Dict[str, Any]]:
        return [{"path": f.named, "mode": f.mode,
                 "parts": None if f.content is None else _parts(len(f.content))}
                for f in self._files]

    def parts(self) -> Iterator[Dict[str, Any]]:
        """Yields the contents of all files, in the order of the list."""
        for f in self._files:
            for at in range(0, len(f.content or b""), CHUNK):
                assert f.content is not None
                yield {"data": base64.b64encode(f.content[at:at + CHUNK]).decode("ascii")}

    def expect(self, listed: Any) -> List[Tuple[int, int]]:
        """Returns (number, parts) of each file that a worker has written."""
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
        """Checks that every file that was sent has come back, and writes the results. All steps
        that can fail are done before the first file is replaced."""
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
