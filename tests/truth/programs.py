"""Random small programs. Each seed is one program; only this file determines its contents.

A program has a few motifs (sequences that have found faults, with random details) among single
steps. There are only few names and fd numbers, so that steps affect each other."""
import os
import random

import check
from calls import (AT_EMPTY_PATH, AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW,
                   FILES, FS, KINDS, RENAME_EXCHANGE, RENAME_NOREPLACE, Step, THREAD, VFORK)
from world import HOME, ODD, OUT, R, W

SLOTS = (100, 101, 102)
DIRS = (W, W, W, W + b"/a", W + b"/a/b", W + b"/d", R, R + b"/d", b"/tmp", b"/tmp", b"/tmp/d",
        HOME, W + b"/bin")
SYSTEM = (b"/usr/lib", b"/usr/bin", b"/etc", b"/usr", b"/lib", b"/usr/lib/..")
HIDDEN = (HOME + b"/.ssh", HOME + b"/.aws", b"/etc", OUT, b"/proc/1", HOME)
NAMES = (b"f", b"g", b"a", b"d", b"b")
KNOWN = (b"os-release", b"true", b"id_ed25519", b"shadow", b"secret", b"environ", b"credentials")
LINKS = (b"/tmp/l", b"/tmp/m", W + b"/l", W + b"/m", W + b"/a/l")
OWN = (b"/proc/self", b"/proc/self", b"/proc/thread-self", b"/proc/{pid}", b"/proc/{tid}",
       b"/proc/{pid}/task/{tid}")
READS = (os.O_RDONLY, os.O_RDONLY, os.O_PATH, os.O_RDONLY | os.O_NOFOLLOW,
         os.O_PATH | os.O_NOFOLLOW, os.O_RDONLY | os.O_DIRECTORY)
WRITES = (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_EXCL,
          os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_WRONLY | os.O_APPEND,
          os.O_RDONLY | os.O_TRUNC, os.O_RDONLY | os.O_CREAT, os.O_WRONLY | os.O_NOFOLLOW,
          os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW)
MODES = (0o700, 0o755, 0o777, 0o711)
ATTRIBUTES = (b"user.a",) * 6 + (b"user.b", b"system.posix_acl_access") * 3 + (
    b"trusted.a", b"a", b"user.\xff\n", b"user." + b"n" * 250, b"user." + b"n" * 251, b"")
THERE = (W + b"/f", W + b"/g", W + b"/a", W + b"/a/f", W + b"/l", W + b"/bin/act", R + b"/rw/f",
         R + b"/f", W + b"/ro/f", W + b"/.git/config", R + b"/rw", W + b"/ro")
TEXTS = (b"x" * 255, b"x" * 4095, b"/" * 3000, b"\x01" * 4000, b"\xff\n", b"", b"x (deleted)",
         b"/proc/7/task/7")
# Programs with seeds from these numbers on have more kinds of steps. Programs with smaller seeds
# must never change.
WIDE, WIDEST = 1000000, 60000000


class Writer:
    """Writes one program."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.wide, self.widest = seed >= WIDE, seed >= WIDEST
        pick = self.rng.choice
        self.steps = []
        self.names = [*NAMES, *self.rng.sample(KNOWN, 3), pick(ODD)]
        self.kinds = {0: None}  # actor: how it was made
        self.process = {0: 0}  # actor: the actor that began its process
        self.blocked = {}  # actor in vfork(): the actor that it waits for
        self.gone = set()

    # ---- words -------------------------------------------------------------

    def pick(self, *choices):
        return self.rng.choice(choices)

    def chance(self, percent):
        return self.rng.random() * 100 < percent

    def name(self):
        return self.rng.choice(self.names)

    def slot(self):
        return self.rng.choice(SLOTS)

    def actor(self):
        able = [a for a in self.kinds if a not in self.gone and a not in self.blocked]
        return self.rng.choice(able or [0])

    def place(self):
        return self.rng.choice(DIRS)

    def own(self):
        """A path through a /proc link of the process itself."""
        if self.chance(20):
            return b"/dev/fd/%d" % self.slot()
        return self.rng.choice(OWN) + (b"/fd/%d" % self.slot() if self.chance(60) else
                                       self.pick(b"/cwd", b"/cwd", b"/root" + self.place()))

    def path(self):
        r = self.rng.random() * 100
        if r < 36:
            return self.place() + b"/" + self.name()
        if r < 56:
            return self.rng.choice(LINKS) + (b"/" + self.name() if self.chance(80) else b"")
        if r < 68:
            return self.pick(b"", b"./", b"../", b"a/", b"l/", b"a/../") + self.name()
        if r < 82:
            return self.own() + (b"/" + self.name() if self.chance(50) else b"")
        if r < 90:
            return self.rng.choice(check.SECRETS)
        if r < 94:
            return self.place()
        return self.place() + self.pick(b"/a/../", b"//", b"/./", b"/l/../", b"/missing/../",
                                        b"/../w/") + self.name() + self.pick(b"", b"", b"/", b"/.")

    def target(self):
        """The target of a symlink."""
        r = self.rng.random() * 100
        if r < 30:
            return self.rng.choice(SYSTEM)
        if r < 50:
            return self.rng.choice(HIDDEN)
        if r < 80:
            return self.place() + (b"/" + self.name() if self.chance(30) else b"")
        if r < 90:
            return self.own()
        return self.pick(b"a", b"../a", b".", b"..", b"l", b"f", b"a/f", b"./a/")

    def at(self):
        """Returns a directory for a call, and a path relative to it."""
        path = self.path()
        if path.startswith(b"/") and self.chance(70) or self.chance(50):
            return AT_FDCWD, path
        return self.slot(), path

    # ---- single steps ------------------------------------------------------

    def add(self, actor, call, **fields):
        self.steps.append(Step(actor, call, **fields))

    def open(self, actor, path, flags=None, slot=-1, fd=AT_FDCWD):
        flags = self.rng.choice(READS + WRITES) if flags is None else flags
        call = "openat" if fd != AT_FDCWD or self.chance(70) else "open"
        self.add(actor, call, dir=fd, path=path, flags=flags, slot=slot)

    def touch(self, actor, path):
        """Accesses an existing file with one of many calls."""
        if self.widest and self.chance(15):
            self.attribute(actor, path)
            return
        call = self.pick("open", "open", "open", "chmod", "fchmodat", "fchmodat2", "truncate",
                         "chown", "lchown", "fchownat", "link", "execve", "unlink")
        if call == "open":
            self.open(actor, path)
        elif call == "execve":
            self.execute(actor, path)
        elif call == "link":
            self.add(actor, "link", path=path, path2=self.place() + b"/" + self.name())
        else:
            flags = AT_SYMLINK_NOFOLLOW if call in ("fchmodat2", "fchownat") and \
                self.chance(30) else 0
            self.add(actor, call, path=path, mode=self.rng.choice(MODES), flags=flags,
                     length=self.rng.randrange(64))

    def attribute(self, actor, path, fd=AT_FDCWD):
        call = self.pick("setxattr", "lsetxattr", "setxattrat", "removexattr", "lremovexattr",
                         "removexattrat")
        if fd != AT_FDCWD:
            call = self.pick("setxattrat", "removexattrat")
        flags = self.pick(0, AT_SYMLINK_NOFOLLOW) if call.endswith("at") else 0
        self.add(actor, call, dir=fd, path=path, flags=flags, name=self.rng.choice(ATTRIBUTES))

    def plain(self):
        actor = self.actor()
        r = self.rng.random() * 100
        fd, path = self.at()
        if r < 26:
            self.open(actor, path, fd=fd, slot=self.slot() if self.chance(50) else -1)
        elif r < 40:
            self.touch(actor, path)
        elif r < 48:
            self.add(actor, "symlinkat", text=self.target(), dir=fd,
                     path=self.rng.choice(LINKS) if self.chance(60) else path)
        elif r < 58:
            fd2, path2 = self.at()
            call = self.pick("rename", "renameat", "renameat2", "renameat2")
            flags = self.pick(0, RENAME_NOREPLACE, RENAME_EXCHANGE) if call == "renameat2" else 0
            fds = {} if call == "rename" else {"dir": fd, "dir2": fd2}
            self.add(actor, call, path=path, path2=path2, flags=flags, **fds)
        elif r < 64:
            fd2, path2 = self.at()
            self.add(actor, "linkat", dir=fd, path=path, dir2=fd2, path2=path2,
                     flags=self.pick(0, AT_SYMLINK_FOLLOW))
        elif r < 72:
            call = self.pick("mkdir", "mkdirat", "mknod", "mknodat")
            mode = 0o100644 if call.startswith("mknod") else 0o755
            self.add(actor, call, dir=fd if call.endswith("at") else AT_FDCWD, path=path,
                     mode=mode)
        elif r < 80:
            call = self.pick("unlink", "unlinkat", "rmdir", "unlinkat")
            flags = AT_REMOVEDIR if call == "unlinkat" and self.chance(30) else 0
            self.add(actor, call, dir=fd if call == "unlinkat" else AT_FDCWD, path=path,
                     flags=flags)
        elif r < 86:
            self.add(actor, self.pick("fchmod", "fchown", "ftruncate"), fd=self.slot(),
                     mode=self.rng.choice(MODES))
        elif r < 93:
            self.walk(actor)
        elif r < 97:
            self.empty(actor)
        else:
            self.clone(actor)

    def walk(self, actor):
        if self.chance(70):
            self.add(actor, "chdir", path=self.place() if self.chance(60) else self.path())
        else:
            self.add(actor, "fchdir", fd=self.slot())

    def empty(self, actor):
        """A call with an empty path, which acts on an fd or on the working directory itself."""
        fd = self.pick(AT_FDCWD, AT_FDCWD, self.slot())
        call = self.pick("fchmodat2", "fchownat", "linkat", "execveat", "openat", "unlinkat")
        extra = {"path2": self.place() + b"/" + self.name()} if call == "linkat" else {}
        flags = AT_EMPTY_PATH if call in ("fchmodat2", "fchownat", "linkat", "execveat") and \
            self.chance(85) else 0
        self.add(actor, call, dir=fd, flags=flags, mode=self.rng.choice(MODES), **extra)
        if call == "execveat":
            self.executed(actor)

    # ---- actors ------------------------------------------------------------

    def clone(self, actor, kinds=tuple(KINDS)):
        if len(self.kinds) >= 10:
            return None
        kind, new = self.rng.choice(kinds), len(self.kinds)
        self.add(actor, "clone", kind=kind, who=new)
        self.kinds[new] = kind
        self.process[new] = self.process[actor] if KINDS[kind] & THREAD else new
        if KINDS[kind] & VFORK:
            self.blocked[actor] = new
        return new

    def freed(self, actor):
        for a in [a for a, by in self.blocked.items() if by == actor]:
            del self.blocked[a]

    def executed(self, actor):
        """An exec may have succeeded: from now on only actors that are certainly alive are used."""
        for a in self.kinds:
            if a != actor and self.process[a] == self.process[actor]:
                self.gone.add(a)
                self.freed(a)
        self.freed(actor)

    def execute(self, actor, path, fd=AT_FDCWD):
        call = "execve" if fd == AT_FDCWD and self.chance(60) else "execveat"
        self.add(actor, call, dir=fd, path=path)
        if self.process[actor] == self.process.get(self.blocked.get(actor)):
            return
        self.executed(actor)

    def leave(self, actor):
        self.add(actor, "exit_group" if KINDS.get(self.kinds[actor] or "", 17) & THREAD == 0
                 else "exit")
        self.gone.add(actor)
        self.freed(actor)

    # ---- motifs ------------------------------------------------------------

    def relink(self):
        """A symlink is used, and then changed to another target."""
        actor, link = self.actor(), self.rng.choice(LINKS)
        if link.startswith(W):
            self.add(actor, "unlink", path=link)
        first = self.rng.choice(SYSTEM) if self.chance(75) else self.target()
        self.add(actor, "symlink", text=first, path=link)
        for _ in range(self.pick(1, 1, 2)):
            self.open(actor, link + b"/" + self.name(), self.rng.choice(READS))
        if self.chance(50):
            self.add(actor, "unlink", path=link)
            self.add(actor, "symlink", text=self.target(), path=link)
        else:
            self.add(actor, "symlink", text=self.target(), path=b"/tmp/new")
            self.add(actor, "rename", path=b"/tmp/new", path2=link)
        for _ in range(self.pick(1, 2, 3)):
            self.touch(actor, link + b"/" + self.name())

    def tables(self):
        """A thread has its own fds or its own working directory."""
        leader = self.actor()
        new = self.clone(leader, [k for k, f in KINDS.items()
                                  if f & THREAD and f & (FILES | FS) != FILES | FS])
        if new is None:
            return
        slot = self.slot()
        for a in self.rng.sample([leader, new], 2):
            if self.chance(80):
                self.open(a, self.place() + b"/" + self.name() if self.chance(60)
                          else self.place(), self.pick(os.O_PATH, os.O_RDONLY, os.O_RDWR |
                                                       os.O_CREAT), slot)
            if self.chance(60):
                self.add(a, "chdir", path=self.place())
        for _ in range(self.pick(1, 2, 3)):
            way = self.rng.choice((b"/dev",) + OWN) + self.pick(b"/fd/%d" % slot, b"/fd/%d" % slot,
                                                                b"/cwd")
            if way.startswith(b"/dev/cwd"):
                way = b"/dev/fd/%d" % slot
            self.touch(self.pick(new, new, leader),
                       way + (b"/" + self.name() if self.chance(50) else b""))

    def nothing(self):
        actor = self.actor()
        self.walk(actor)
        self.empty(actor)

    def temporary(self):
        """A file without a name (O_TMPFILE), which may get one later."""
        actor, slot, to = self.actor(), self.slot(), self.place() + b"/" + self.name()
        self.open(actor, self.place(), os.O_TMPFILE | os.O_RDWR, slot)
        if self.chance(40):
            self.add(actor, "fchmod", fd=slot)
        if self.chance(40):
            self.touch(actor, b"/proc/self/fd/%d" % slot)
        if self.chance(50):
            self.add(actor, "linkat", dir=slot, path2=to, flags=AT_EMPTY_PATH)
        else:
            self.add(actor, "linkat", path=b"/proc/self/fd/%d" % slot, path2=to,
                     flags=AT_SYMLINK_FOLLOW)
        self.touch(actor, to if self.chance(50) else b"/proc/self/fd/%d" % slot)

    def removed(self):
        """The name of a working directory or of an open file is removed, or taken by another
        file."""
        actor, slot = self.actor(), self.slot()
        place = self.place() + b"/" + self.name()
        self.add(actor, "mkdir", path=place)
        self.open(actor, place, self.pick(os.O_PATH, os.O_RDONLY), slot)
        if self.chance(70):
            self.add(actor, "chdir", path=place)
        self.add(actor, "rmdir", path=place)
        if self.chance(60):
            self.add(actor, *self.pick(("mkdir",), ("symlink",)), path=place, text=self.target())
        for _ in range(self.pick(1, 2)):
            fd = self.pick(AT_FDCWD, slot)
            self.open(actor, self.pick(b"", b"../", b"../../", b"./") + self.name(), fd=fd)

    def other_name(self):
        """An open file is renamed, linked or replaced."""
        actor, slot = self.actor(), self.slot()
        here, there = (self.place() + b"/" + self.name() for _ in "12")
        self.open(actor, here, os.O_RDWR | os.O_CREAT, slot)
        if self.chance(60):
            self.add(actor, "link", path=here, path2=there)
        if self.chance(70):
            self.add(actor, "unlink", path=here)
        else:
            self.add(actor, "rename", path=here, path2=there)
        if self.chance(40):
            self.open(actor, here, os.O_WRONLY | os.O_CREAT)
        for _ in range(self.pick(1, 2)):
            if self.chance(50):
                self.add(actor, self.pick("fchmod", "fchown", "ftruncate"), fd=slot)
            else:
                self.touch(actor, self.pick(b"/proc/self/fd/%d", b"/dev/fd/%d") % slot)

    def exchange(self):
        """Two directories are exchanged while an actor is in one of them."""
        actor, slot = self.actor(), self.slot()
        one, two = self.rng.sample((W + b"/a", W + b"/d", W + b"/a/b", W + b"/l", W + b"/bin",
                                    b"/tmp/d", W + b"/f"), 2)
        self.open(actor, one, os.O_PATH, slot)
        if self.chance(60):
            self.add(actor, "chdir", path=one)
        self.add(actor, "renameat2", path=one, path2=two,
                 flags=self.pick(RENAME_EXCHANGE, RENAME_EXCHANGE, 0))
        for _ in range(self.pick(1, 2)):
            self.open(actor, self.pick(b"", b"../") + self.name(), fd=self.pick(AT_FDCWD, slot))
        self.touch(actor, one + b"/" + self.name())

    def deep(self):
        """A directory that is deeper than a path can express."""
        actor, slot = self.actor(), self.slot()
        name = self.pick(b"p" * 200, b"q" * 255, b"r" * 240)
        self.add(actor, "chdir", path=self.pick(W, b"/tmp", W + b"/a"))
        for _ in range(self.pick(15, 16, 17, 18, 21)):
            self.add(actor, "mkdir", path=name)
            self.add(actor, "chdir", path=name)
        self.open(actor, b".", os.O_PATH, slot)
        for _ in range(self.pick(2, 4)):
            fd = self.pick(AT_FDCWD, slot)
            self.open(actor, self.pick(b"", b"../", b"../../", b"./", b"../" * 12) + self.name(),
                      fd=fd)
        self.add(actor, "symlink", text=self.target(), path=b"l")
        self.touch(actor, b"l/" + self.name())
        self.add(actor, "fchmodat2", flags=AT_EMPTY_PATH)
        self.touch(actor, self.own() + b"/" + self.name())

    def churn(self):
        """A process gets the pid of another process that has just ended."""
        parent = self.actor()
        one = self.clone(parent, ["process", "process with shared fs"])
        if one is None:
            return
        self.touch(one, self.path())
        if self.chance(40):
            self.execute(one, self.pick(W, R) + b"/bin/true")
        self.open(one, W + b"/" + self.name(), os.O_RDONLY)
        self.leave(one)
        self.add(parent, "reap", who=one)
        self.add(parent, "recycle", who=one)
        two = self.clone(parent, ["process", "process with shared files", "thread"])
        if two is not None:
            self.touch(two, self.path())

    def program(self):
        """A program is executed through a link, perhaps in a new process."""
        actor = self.actor()
        if self.chance(60):
            actor = self.clone(actor, ["vfork", "vfork with shared files", "process",
                                       "thread with its own files"]) or actor
        link = self.rng.choice(LINKS)
        self.add(actor, "unlink", path=link)
        self.add(actor, "symlink", text=self.pick(W + b"/bin", R + b"/bin", b"/usr/bin",
                                                  W + b"/bin/true", b"bin"), path=link)
        if self.chance(50):
            self.execute(actor, link + self.pick(b"", b"/true", b"/act"))
        else:
            slot = self.slot()
            self.open(actor, self.pick(W, R) + b"/bin" + self.pick(b"", b"/true"), os.O_PATH, slot)
            self.add(actor, "execveat", dir=slot, path=self.pick(b"", b"true", b"act"),
                     flags=AT_EMPTY_PATH)
            self.executed(actor)
        self.touch(actor, self.path())

    def without_leader(self):
        """The first thread of a process ends, and the other threads continue."""
        leader = self.actor()
        new = self.clone(leader, [k for k, f in KINDS.items() if f & THREAD])
        if new is None or self.process[leader] != leader:
            return
        self.add(leader, "exit")
        self.gone.add(leader)
        self.freed(leader)
        self.touch(new, self.own() + (b"/" + self.name() if self.chance(50) else b""))
        self.touch(new, self.path())

    def closed(self):
        """A directory loses its x permission, and perhaps gets it back."""
        actor, place = self.actor(), self.rng.choice((W + b"/a", W + b"/a/b", W + b"/d", b"/tmp/d"))
        link = self.rng.choice(LINKS)
        if self.chance(50):
            self.add(actor, "unlink", path=link)
            self.add(actor, "symlink", text=place, path=link)
        self.add(actor, "chmod", path=place, mode=self.pick(0o600, 0o000, 0o200))
        for _ in range(self.pick(1, 2, 3)):
            way = self.pick(place, link, place + b"/..", link + b"/" + self.name())
            self.touch(actor, way + b"/" + self.name())
        if self.chance(60):
            self.add(actor, "chmod", path=place, mode=0o755)
            self.touch(actor, place + b"/" + self.name())

    def store(self):
        """The run creates its own store of secrets in its private home."""
        actor, store = self.actor(), HOME + self.pick(b"/.ssh", b"/.aws", b"/.netrc")
        if self.chance(70):
            self.add(actor, "mkdir", path=store)
        for _ in range(self.pick(2, 3, 4)):
            name = self.pick(b"id_ed25519", b"credentials", self.name())
            self.touch(actor, store + b"/" + name)
        if self.chance(40):
            self.add(actor, "rmdir", path=store)
            self.open(actor, store + b"/" + self.name(), os.O_RDONLY)

    def fifo(self):
        """FIFOs, sockets and devices, which the plan allows only in private places."""
        actor, path = self.actor(), self.place() + b"/" + self.name()
        mode = self.pick(0o010644, 0o140644, 0o020644, 0o060644)
        self.add(actor, self.pick("mknod", "mknodat"), path=path, mode=mode)
        self.open(actor, path, self.pick(os.O_PATH, os.O_RDWR | os.O_NONBLOCK))
        self.add(actor, self.pick("unlink", "chmod"), path=path)

    def nested(self):
        """Grants inside each other, and protected names in a grant."""
        places = (W + b"/ro", R + b"/rw", W + b"/.git/hooks", W + b"/.git", W + b"/ro/..")
        for _ in range(self.pick(2, 3, 4)):
            actor, path = self.actor(), self.rng.choice(places) + b"/" + self.name()
            if self.chance(30):
                path2 = self.rng.choice(places) + b"/" + self.name()
                self.add(actor, self.pick("rename", "link"), path=path, path2=path2)
            elif self.chance(30):
                self.add(actor, self.pick("mkdir", "rmdir", "unlink", "mknod"),
                         path=self.pick(path, self.rng.choice(places), W + b"/.git/config"))
            else:
                self.touch(actor, path)

    def script(self):
        """A script with an interpreter line is executed."""
        actor = self.actor()
        if self.chance(50):
            actor = self.clone(actor, ["vfork", "process"]) or actor
        self.execute(actor, self.pick(W, R) + b"/bin/script")
        self.touch(actor, self.path())

    def attributes(self):
        """Extended attributes of a file, by its names, by an fd, and by the empty path."""
        actor, slot = self.actor(), self.slot()
        path = self.rng.choice(THERE[:7] if self.chance(70) else THERE)
        path = path if self.chance(90) else self.place() + b"/" + self.name()
        self.open(actor, path, self.pick(os.O_RDONLY, os.O_RDONLY, os.O_RDWR | os.O_CREAT,
                                         os.O_PATH), slot)
        if self.chance(50):
            self.add(actor, "symlink", text=path, path=self.rng.choice(LINKS))
        for _ in range(self.pick(4, 6, 8)):
            name, r = self.rng.choice(ATTRIBUTES), self.rng.randrange(6)
            if r == 0:
                self.add(actor, self.pick("fsetxattr", "fremovexattr"), fd=slot, name=name)
            elif r == 1:
                self.add(actor, self.pick("setxattrat", "removexattrat"), name=name,
                         dir=self.pick(slot, AT_FDCWD), flags=self.pick(AT_EMPTY_PATH, 0))
            elif r == 2:
                self.attribute(actor, self.pick(b"f", b".", self.name()), self.pick(slot, AT_FDCWD))
            else:
                self.attribute(actor, self.pick(path, path, path, b"/proc/self/fd/%d" % slot))

    def swap(self):
        """Two names are exchanged, inside grants and across their borders."""
        places = THERE + (HOME + b"/.netrc", b"/tmp/d")
        for _ in range(self.pick(1, 2, 3)):
            actor, one, two = self.actor(), self.rng.choice(places), self.rng.choice(places)
            if self.chance(20):
                two = self.path()
            self.add(actor, "renameat2", path=one, path2=two, flags=RENAME_EXCHANGE)
            self.touch(actor, self.pick(one, two))

    def texts(self):
        """Symlinks with any text as target, which are never followed."""
        for n in range(self.pick(1, 2, 3)):
            self.add(self.actor(), self.pick("symlink", "symlinkat"), text=self.rng.choice(TEXTS),
                     path=self.pick(W, R, b"/tmp", W + b"/a") + b"/text%d" % n)

    WIDER = ((closed, 4), (store, 4), (fifo, 4), (nested, 5), (script, 3))
    MOTIFS = ((relink, 6), (tables, 6), (nothing, 3), (temporary, 3), (removed, 3),
              (other_name, 3), (exchange, 2), (churn, 2), (program, 3), (without_leader, 1),
              (deep, 1))
    WIDEST_OF_ALL = ((attributes, 8), (swap, 6), (texts, 3))

    def write(self):
        known = self.MOTIFS + (self.WIDER if self.wide else ()) + \
            (self.WIDEST_OF_ALL if self.widest else ())
        motifs = self.rng.choices([m for m, _ in known], [n for _, n in known],
                                  k=self.rng.randrange(1, 4))
        if self.chance(50):
            self.add(0, "mkdir", path=b"/tmp/d")
        for motif in motifs:
            for _ in range(self.rng.randrange(4)):
                self.plain()
            motif(self)
        for _ in range(self.rng.randrange(1, 6)):
            self.plain()
        return self.steps


def generate(seed):
    return Writer(seed).write()
