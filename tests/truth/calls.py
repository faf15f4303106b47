"""The system calls that the random programs make: how each is made, and its name in the record.

`form` has one letter for each argument:
D and E: directory fd; P and Q: path (the second letter is for calls with two paths); T: text of
a symlink;
N: an fd itself; F: flags; M: mode; U: user or group (-1: unchanged); L: length; 0: zero;
A: name of an attribute; V: struct xattr_args of an empty value; S: size of that struct."""
import dataclasses
import os

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW, AT_REMOVEDIR, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH = 0x100, 0x200, 0x400, 0x1000
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
XATTR_ARGS = bytes(16)


@dataclasses.dataclass(frozen=True)
class Call:
    number: int  # x86-64
    form: str
    # open, change, two (paths), fd, exec; look: it has a line only if it misses a hidden file;
    # "": the record has no line for it
    family: str
    op: str = ""  # the name of the operation in the record
    # whether the call follows a symlink at the end of its path: "yes", "no", "enter" (only if a
    # slash comes after it), or "flag" (yes, unless a NOFOLLOW flag is set)
    follow: str = "yes"
    makes: bool = False


CALLS = {
    "openat": Call(257, "DPFM", "open", "open", "flag"),
    "open": Call(2, "PFM", "open", "open", "flag"),
    "creat": Call(85, "PM", "open", "open"),
    "unlink": Call(87, "P", "change", "unlink", "no"),
    "unlinkat": Call(263, "DPF", "change", "unlink", "no"),
    "rmdir": Call(84, "P", "change", "rmdir", "no"),
    "mkdir": Call(83, "PM", "change", "mkdir", "no", True),
    "mkdirat": Call(258, "DPM", "change", "mkdir", "no", True),
    "mknod": Call(133, "PM0", "change", "mknod", "no", True),
    "mknodat": Call(259, "DPM0", "change", "mknod", "no", True),
    "symlink": Call(88, "TP", "change", "symlink", "no", True),
    "symlinkat": Call(266, "TDP", "change", "symlink", "no", True),
    "chmod": Call(90, "PM", "change", "chmod"),
    "fchmodat": Call(268, "DPM", "change", "chmod"),
    "fchmodat2": Call(452, "DPMF", "change", "chmod", "flag"),
    "chown": Call(92, "PUU", "change", "chown"),
    "lchown": Call(94, "PUU", "change", "chown", "enter"),
    "fchownat": Call(260, "DPUUF", "change", "chown", "flag"),
    "truncate": Call(76, "PL", "change", "truncate"),
    "setxattr": Call(188, "PA000", "change", "setxattr"),
    "lsetxattr": Call(189, "PA000", "change", "setxattr", "enter"),
    "setxattrat": Call(463, "DPFAVS", "change", "setxattr", "flag"),
    "removexattr": Call(197, "PA", "change", "removexattr"),
    "lremovexattr": Call(198, "PA", "change", "removexattr", "enter"),
    "removexattrat": Call(466, "DPFA", "change", "removexattr", "flag"),
    "rename": Call(82, "PQ", "two", "rename", "no"),
    "renameat": Call(264, "DPEQ", "two", "rename", "no"),
    "renameat2": Call(316, "DPEQF", "two", "rename", "no"),
    "link": Call(86, "PQ", "two", "link", "enter"),
    "linkat": Call(265, "DPEQF", "two", "link", "enter"),
    "fchmod": Call(91, "NM", "fd", "chmod"),
    "fchown": Call(93, "NUU", "fd", "chown"),
    "ftruncate": Call(77, "NL", "fd", "truncate"),
    "fsetxattr": Call(190, "NA000", "fd", "setxattr"),
    "fremovexattr": Call(199, "NA", "fd", "removexattr"),
    "execve": Call(59, "P", "exec", "exec"),
    "execveat": Call(322, "DP00F", "exec", "exec", "flag"),
    "chdir": Call(80, "P", "look", "chdir"),
    "fchdir": Call(81, "N", ""),
    "close": Call(3, "N", ""),
    "dup2": Call(33, "NL", ""),
    "wait4": Call(61, "N000", ""),
}
# Calls that accept an empty path with AT_EMPTY_PATH, and then act on the directory fd.
EMPTY = ("fchmodat2", "fchownat", "execveat", "linkat", "setxattrat", "removexattrat")
EXIT, EXIT_GROUP = 60, 231

# The flags of clone(2) that make each kind of actor.
VM, FS, FILES, SIGHAND, VFORK, THREAD = 0x100, 0x200, 0x400, 0x800, 0x4000, 0x10000
KINDS = {
    "thread": VM | FS | FILES | SIGHAND | THREAD,
    "thread with its own files": VM | FS | SIGHAND | THREAD,
    "thread with its own fs": VM | FILES | SIGHAND | THREAD,
    "thread with its own both": VM | SIGHAND | THREAD,
    "process": 17,
    "process with shared files": FILES | 17,
    "process with shared fs": FS | 17,
    "process with shared memory": VM | 17,
    "vfork": VM | VFORK | 17,
    "vfork with shared files": VM | VFORK | FILES | FS | 17,
}


@dataclasses.dataclass(frozen=True)
class Step:
    """One order for one actor. `call` is a system call, or clone (which uses `kind` and `who`),
    exit, exit_group, reap (`who`) or recycle (`who`)."""
    actor: int
    call: str
    dir: int = AT_FDCWD
    path: bytes = b""
    dir2: int = AT_FDCWD
    path2: bytes = b""
    text: bytes = b""
    name: bytes = b""  # the name of an extended attribute
    fd: int = -1
    flags: int = 0
    mode: int = 0o755
    length: int = 0
    slot: int = -1  # the opened fd gets this number; -1: it is closed
    kind: str = ""
    who: int = -1

    def __str__(self):
        fields = [f"{f.name}={flags_text(self) if f.name == 'flags' else getattr(self, f.name)!r}"
                  for f in dataclasses.fields(self)[2:] if getattr(self, f.name) != f.default
                  and (f.name != "mode")]
        return f"actor {self.actor}: {self.call}({', '.join(fields)})"


def flags_text(step):
    if step.call in ("open", "openat"):
        names = [n for n in ("O_CREAT", "O_EXCL", "O_TRUNC", "O_APPEND", "O_PATH", "O_NOFOLLOW",
                             "O_DIRECTORY") if step.flags & getattr(os, n)]
        if step.flags & os.O_TMPFILE == os.O_TMPFILE:
            names = [n for n in names if n != "O_DIRECTORY"] + ["O_TMPFILE"]
        return "|".join([("O_RDONLY", "O_WRONLY", "O_RDWR", "3")[step.flags & 3], *names])
    return hex(step.flags)
