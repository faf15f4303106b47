"""The kernel's own report about a file system: fanotify with file handles and names.

A handle names a directory for ever. The witness knows the handle of every directory from the moment
when the directory was made. So for each event it knows the path at the time of the event, whatever
was renamed before and however deep the path is."""
import contextlib
import ctypes
import os
import struct

FAN_REPORT = 0x100 | 0x200 | 0x400 | 0x800 | 0x1000  # TID, FID, DIR_FID, NAME, TARGET_FID
FAN_INIT = FAN_REPORT | 0x1 | 0x2 | 0x10 | 0x20  # CLOEXEC, NONBLOCK, UNLIMITED_QUEUE and _MARKS
FAN_MARK_ADD_FILESYSTEM = 0x1 | 0x100
MODIFY, ATTRIB, OPEN, CREATE, DELETE = 0x2, 0x4, 0x20, 0x100, 0x200
OPEN_EXEC, OVERFLOW, RENAME, ONDIR = 0x1000, 0x4000, 0x10000000, 0x40000000
WATCHED = MODIFY | ATTRIB | OPEN | CREATE | DELETE | OPEN_EXEC | RENAME | ONDIR
CHANGES = MODIFY | ATTRIB | CREATE | DELETE | RENAME
NAMES = {MODIFY: "modify", ATTRIB: "attrib", OPEN: "open", CREATE: "create", DELETE: "delete",
         OPEN_EXEC: "open_exec", RENAME: "rename", ONDIR: "ondir"}
FID, DFID_NAME, DFID, OLD_DFID_NAME, NEW_DFID_NAME = 1, 2, 3, 10, 12
METADATA = struct.Struct("=IBBHQii")
HANDLE_MAX = 128

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def handle_of(path):
    """name_to_handle_at(2): returns the handle that events use for the directory."""
    buf = ctypes.create_string_buffer(8 + HANDLE_MAX)
    struct.pack_into("=I", buf, 0, HANDLE_MAX)
    mount = ctypes.c_int()
    check(libc.name_to_handle_at(-100, path, buf, ctypes.byref(mount), 0), "name_to_handle_at")
    size = struct.unpack_from("=I", buf)[0]
    return buf.raw[:8 + size]


class Event:
    """One event of the kernel. `path` is None if the kernel reports only the inode, no name."""

    def __init__(self, mask, tid, path, path2=None):
        self.mask, self.tid, self.path, self.path2 = mask, tid, path, path2

    def __str__(self):
        what = "+".join(n for bit, n in NAMES.items() if self.mask & bit)
        to = f" to {self.path2!r}" if self.path2 is not None else ""
        return f"{what} {self.path!r}{to} by {self.tid}"


class Witness:
    """Watches one file system while it is mounted at `top`."""

    def __init__(self, top):
        self.fd = check(libc.fanotify_init(FAN_INIT, os.O_RDONLY | os.O_LARGEFILE),
                        "fanotify_init")
        check(libc.fanotify_mark(self.fd, FAN_MARK_ADD_FILESYSTEM, ctypes.c_uint64(WATCHED), -100,
                                 top), "fanotify_mark")
        self.top = self.top_handle = None
        self.parents = {}  # handle of a directory: (handle of its parent, its name)

    def begin(self, top):
        """Begins to watch the files at `top`. Drops all earlier events."""
        self.top, self.top_handle = top, handle_of(top)
        self.parents = {}
        for at, dirs, _ in os.walk(top):
            above = handle_of(at)
            for name in dirs:
                if not os.path.islink(at + b"/" + name):
                    self.parents[handle_of(at + b"/" + name)] = (above, name)
        self.forget()

    def forget(self):
        """Drops all events up to now."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 65536):
                pass

    def done(self):
        os.close(self.fd)

    def dir_path(self, handle):
        names = []
        while handle != self.top_handle:
            handle, name = self.parents[handle]
            names.append(name)
        return b"/".join([self.top, *reversed(names)])

    def entry_path(self, where):
        above, name = where
        return self.dir_path(above) if name in (b"", b".") else self.dir_path(above) + b"/" + name

    def read(self):
        """Returns all events since the last call, each with the path that it had then."""
        found = []
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                size, _, _, head, mask, _, tid = METADATA.unpack_from(data, at)
                if mask & OVERFLOW:
                    raise RuntimeError("the witness lost events")
                found.append(self.event(mask, tid, data[at + head:at + size]))
                at += size

    def event(self, mask, tid, data):
        records, at = {}, 0
        while at < len(data):
            kind, _, size = struct.unpack_from("=BBH", data, at)
            length = 8 + struct.unpack_from("=I", data, at + 12)[0]
            handle = data[at + 12:at + 12 + length]
            name = data[at + 12 + length:at + size].split(b"\0")[0]
            records[kind] = handle, name
            at += size
        made = records.get(FID, (None,))[0]
        if mask & RENAME:
            old, new = records[OLD_DFID_NAME], records[NEW_DFID_NAME]
            e = Event(mask, tid, self.entry_path(old), self.entry_path(new))
            if mask & ONDIR:
                self.parents[made] = new
            return e
        where = records.get(DFID_NAME) or records.get(DFID)
        if where and mask & CREATE and mask & ONDIR:
            self.parents[made] = where
        return Event(mask, tid, self.entry_path(where) if where else None)
