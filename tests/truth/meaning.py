"""Finds out which file a path means for an actor, from outside the sandbox, by asking the kernel
for one name of the path at a time.

No actor runs meanwhile. The answer is needed for calls that fail, because they cause no event. If a
call succeeds, the answer must agree with the kernel's event."""
import contextlib
import os
import re
import stat

from calls import AT_FDCWD, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW

SYMLINKS = 40
DELETED = b" (deleted)"
PATH_MAX = 4096
# Files of the sandbox's first process, which the skill must not see.
FIRST = rb"^/proc/1(/task/1)?(/(environ|mem|root|cwd|exe|fd)(/.*)?)?$"


def is_in(path, top):
    return path == top or path.startswith(top + b"/")


class Meaning:
    """What a path means. `path` is None if only the text that the program used is known, because
    the path is too long or the fd is not open."""

    def __init__(self, path, exists, nameless=False, unclear=False):
        if path is not None and len(path) >= PATH_MAX:
            path = None
        self.path, self.exists, self.nameless = path, exists, nameless
        # True: the record may say that the file exists, or that it does not (for example after a
        # loop of symlinks).
        self.unclear = unclear
        # True: the path continues below a file to which a /proc link led, so it cannot exist. The
        # line cannot be computed exactly.
        self.vague = False
        self.also = None  # another path that the record may have instead of `path`
        self.inode = None

    def of(self, fd):
        """Stores the inode of the fd."""
        st = os.fstat(fd)
        self.inode = st.st_dev, st.st_ino
        return self


def told_path(link):
    """Returns the target of a /proc link; None: too long for the kernel."""
    try:
        return os.readlink(link)
    except OSError:
        return None


def fold(path):
    """Removes "." and ".." from the text of a path. For paths that do not exist, so that no symlink
    can be in them."""
    out = []
    for name in path.split(b"/"):
        if name == b"..":
            out = out[:-1]
        elif name not in (b"", b"."):
            out.append(name)
    return b"/" + b"/".join(out)


class Walk:
    """The walk along one path of one actor; `here` is an fd of the place reached so far."""

    def __init__(self, actor):
        self.actor = actor
        self.here = -1
        self.links = 0
        self.alias = None  # path of the last /proc link, if its target has no path
        self.way = None  # path of the last /proc link, if its target is `here`
        self.spelt = None  # the path through the last /proc link: the link and the names after it

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.here >= 0:
            os.close(self.here)

    def go(self, fd):
        if self.here >= 0:
            os.close(self.here)
        self.here = fd
        self.alias = self.way = self.spelt = None

    def root(self):
        self.go(os.open(f"/proc/{self.actor.host}/root", os.O_PATH))

    def at_root(self):
        a, b = os.fstat(self.here), os.stat(f"/proc/{self.actor.host}/root")
        return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)

    def closed(self):
        """True if the caller owns the directory but may not enter it. Root can always enter."""
        return self.actor.caller != "root" and os.fstat(self.here).st_mode & 0o100 == 0

    def in_proc(self):
        return self.text().startswith(b"/proc")

    def text(self):
        """Returns the path of `here`; if the file was removed, the path that it had."""
        told = told_path(b"/proc/self/fd/%d" % self.here)
        return None if told is None else self.before_deleted(told)[0]

    def before_deleted(self, told):
        """Returns the path without the kernel's " (deleted)", and whether the file was deleted."""
        if not told.endswith(DELETED):
            return told, False
        st = os.fstat(self.here)
        with contextlib.suppress(OSError):
            found = os.lstat(b"/proc/%d/root" % self.actor.host + told)
            if (found.st_dev, found.st_ino) == (st.st_dev, st.st_ino):
                return told, False
        return told[:-len(DELETED)], True

    def link(self, name, fd):
        """Returns the target of the symlink. None: it is a /proc link that only the kernel can
        follow."""
        if os.fstat(fd).st_dev == os.stat(f"/proc/{self.actor.host}/root/proc").st_dev:
            if name == b"self":
                return b"%d" % self.actor.pid
            if name == b"thread-self":
                return b"%d/task/%d" % (self.actor.pid, self.actor.tid)
            above = os.path.basename(self.text())
            if above == b"fd" or name in (b"cwd", b"root", b"exe"):
                return None
        return os.readlink(b"", dir_fd=fd)

    def missing(self, rest):
        text, tail = self.text(), b"/" + b"/".join(rest)
        if text is None or self.alias is None:
            met = Meaning(None if text is None else fold(text + tail), False)
            met.also = fold(self.spelt + tail) if self.spelt else None
            return met
        return Meaning(fold(self.alias + tail), False)

    def nowhere(self, rest):
        """Returns the Meaning of a path that continues below a file that is not a directory. If
        that file has no name, neither has this path."""
        if self.alias is None and self.end().nameless:
            return Meaning(None, False)
        met = self.missing(rest)
        met.vague = self.way is not None
        met.unclear = met.path is None  # path is too long: it is not known what exists there
        return met

    def end(self):
        """Returns the Meaning of a path that ends at something that exists."""
        told = told_path(b"/proc/self/fd/%d" % self.here)
        path, gone = self.before_deleted(told) if told is not None else (None, False)
        nameless = gone or (path is not None and not path.startswith(b"/"))
        met = Meaning(path, True, nameless).of(self.here)
        if met.nameless and not gone:
            met.also = told  # a pipe or similar: the kernel's text ("pipe:[1]") is no path
        elif met.path is None:
            met.also = self.spelt
        return met

    def follow(self, raw, last):
        """`last` says when a symlink at the end is followed: always ("yes"), only if a slash
        follows it ("enter"), or never ("no")."""
        rest = [n for n in raw.split(b"/") if n not in (b"", b".")]
        inside = raw.endswith((b"/", b"/.")) or raw == b"."
        while rest:
            name, rest = rest[0], rest[1:]
            if not stat.S_ISDIR(os.fstat(self.here).st_mode):
                return self.nowhere([name, *rest])
            if self.closed():
                met = self.missing([name, *rest])
                met.exists = met.unclear = True
                return met
            if name == b"..":
                if not self.at_root():
                    self.go(os.open("..", os.O_PATH, dir_fd=self.here))
                continue
            at = self.text() or b""
            if (name == b"1" and at == b"/proc") or is_in(at, b"/proc/1"):
                path = fold(b"/".join([at, name, *rest]))
                known = re.match(FIRST, path) is not None
                return Meaning(path, known, unclear=not known)
            try:
                fd = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self.here)
            except OSError:
                return self.missing([name, *rest])
            if not stat.S_ISLNK(os.fstat(fd).st_mode):
                spelt = self.spelt and self.spelt + b"/" + name
                self.go(fd)
                self.spelt = spelt
                continue
            if not rest and (last == "no" or (last == "enter" and not inside)):
                path = self.text()
                met = Meaning(None if path is None else fold(path + b"/" + name), True).of(fd)
                met.also = fold(self.spelt + b"/" + name) if self.spelt else None
                os.close(fd)
                return met
            target = self.link(name, fd)
            os.close(fd)
            self.links += 1
            if self.links > SYMLINKS:
                met = self.missing([name, *rest])
                met.unclear = met.vague = True
                return met
            if target is None:
                met = self.magic(name, rest)
                if met is not None:
                    return met
                continue
            if target.startswith(b"/"):
                self.root()
            inside = inside if rest else inside or target.endswith((b"/", b"/."))
            rest = [n for n in target.split(b"/") if n not in (b"", b".")] + rest
        return self.end()

    def magic(self, name, rest):
        """Follows a /proc link. If its target has no path, the path of the link is used instead."""
        above = self.text()
        try:
            fd = os.open(name, os.O_PATH, dir_fd=self.here)
        except OSError:
            met = self.missing([name, *rest])
            met.unclear = True  # the process has ended, but its link may still exist
            return met
        self.go(fd)
        met = self.end()
        self.way = self.spelt = above + b"/" + name
        if met.nameless or met.path is None:
            self.alias = self.way
        if met.nameless:
            met.path = self.alias
        elif met.path is None:
            met.also = self.alias
        return None if rest else met


def mean(actor, dirfd, raw, last):
    """Returns the Meaning of `raw` relative to `dirfd`, as the actor would see it now."""
    with Walk(actor) as walk:
        if raw.startswith(b"/"):
            walk.root()
        else:
            where = "cwd" if dirfd == AT_FDCWD else f"fd/{dirfd}"
            try:
                walk.go(os.open(f"/proc/{actor.host}/{where}", os.O_PATH))
            except OSError:
                return Meaning(None, False)
        begins = raw.startswith(b"/") or stat.S_ISDIR(os.fstat(walk.here).st_mode)
        stays = begins and not raw.startswith(b"/") and set(raw.split(b"/")) <= {b"", b"."}
        if raw == b"" or stays:
            met, link = walk.end(), f"/proc/{actor.pid}/task/{actor.tid}/{where}".encode()
            if met.nameless:
                met.path = link
            elif met.path is None:
                met.also = link
            return met
        met = walk.follow(raw, last)
        met.vague |= not begins  # if dirfd is the fd of a symlink, nothing exists below it
        return met


def last_of(step, call):
    """Returns how the call treats a symlink at the end of its first path, as Walk.follow() takes
    it."""
    if call.family == "open" and step.flags & os.O_PATH == 0 and \
            step.flags & (os.O_CREAT | os.O_EXCL) == os.O_CREAT | os.O_EXCL:
        return "no"
    if step.call == "linkat":
        return "yes" if step.flags & AT_SYMLINK_FOLLOW else "enter"
    if call.follow == "flag":
        flag = os.O_NOFOLLOW if call.family == "open" else AT_SYMLINK_NOFOLLOW
        return "enter" if step.flags & flag else "yes"
    return call.follow
