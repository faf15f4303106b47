"""The file system for one program, the run of its sandbox, and its actors.

All mounts are in the driver's own mount namespace, and all processes in its own pid namespace:
both end with the driver."""
import contextlib
import ctypes
import os
import re
import select
import shutil
import subprocess
import time

import board as boards
import witness
from calls import CALLS, EXIT, EXIT_GROUP, KINDS, Step, THREAD, VFORK, XATTR_ARGS

TOP, STATE = b"/mnt", b"/media"
W, R, HOME, OUT = b"/mnt/w", b"/mnt/r", b"/mnt/home", b"/mnt/out"
BOARD = b"/mnt/board/board"
RECORD = b"/media/record/x.jsonl"
UID = {"root": 0, "user": 64321}
DECOYS = (b".ssh/id_ed25519", b".aws/credentials", b".netrc", b".config/gh/hosts.yml")
ODD = (b"x (deleted)", b" (deleted)", b"n\nl", b"\xff\xfe", b"n" * 255, b"...", b"a b\\\"",
       b"\x01\x7f\xe2\x80\xae")

DEATH_SECONDS = 20  # so long that even on a slow machine a thread has ended

MS_NOSUID, MS_NODEV, MS_BIND, MNT_DETACH = 2, 4, 0x1000, 2

libc = ctypes.CDLL(None, use_errno=True)


def mount(kind, at, source=b"truth", options=b"", flags=MS_NOSUID | MS_NODEV):
    if libc.mount(source, at, kind, flags, options) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount {source.decode()} on {at.decode()}")


def unmount(at):
    libc.umount2(at, MNT_DETACH)  # MNT_DETACH: an ending process may still use the mount


class Ground:
    """A file system that many programs use one after the other, its witness, and the callers' state
    directories."""

    def __init__(self, binary, act):
        self.act = act
        self.count = 0
        mount(b"tmpfs", STATE, options=b"mode=755")
        os.mkdir(STATE + b"/fs")
        mount(b"tmpfs", STATE + b"/fs", options=b"mode=755")
        os.mkdir(STATE + b"/record")
        os.chmod(STATE + b"/record", 0o777)
        for caller, uid in UID.items():
            os.mkdir(state_of(caller), 0o700)
            os.chown(state_of(caller), uid, uid)
        self.binary = STATE + b"/skillsandbox"  # both callers may execute it here
        shutil.copy(binary, self.binary)
        self.witness = witness.Witness(STATE + b"/fs")

    def done(self):
        self.witness.done()
        unmount(STATE + b"/fs")
        unmount(STATE)


def state_of(caller):
    return STATE + b"/" + caller.encode()


class World:
    """Makes the files that one program finds."""

    def __init__(self, ground, caller):
        self.ground, self.caller, self.uid = ground, caller, UID[caller]
        ground.count += 1
        place = STATE + b"/fs/%d" % ground.count
        os.mkdir(place)
        mount(None, TOP, place, flags=MS_BIND)
        try:
            self.fill()
            ground.witness.begin(TOP)
        except BaseException:
            unmount(TOP)
            raise

    def done(self):
        unmount(TOP)

    def fill(self):
        for d in (W, W + b"/ro", W + b"/.git", W + b"/.git/hooks", W + b"/a", W + b"/a/b", W + b"/bin", W + b"/d", R, R + b"/d", R + b"/bin",
                  R + b"/rw", HOME, HOME + b"/.ssh", HOME + b"/.aws", HOME + b"/.config",
                  HOME + b"/.config/gh", OUT, b"/mnt/board"):
            self.own(d, os.mkdir(d, 0o755))
        self.write(W + b"/.git/config", b"[core]\n")
        for f in (W + b"/f", W + b"/ro/f", W + b"/.git/hooks/f", R + b"/rw/f", W + b"/g", W + b"/a/f", W + b"/a/os-release", W + b"/d/" + ODD[0],
                  R + b"/f", R + b"/d/f", R + b"/d/os-release", OUT + b"/secret",
                  *(HOME + b"/" + d for d in DECOYS)):
            self.write(f, b"decoy\n")
        for f in (W + b"/bin/true", W + b"/bin/act", R + b"/bin/true", R + b"/bin/act"):
            self.write(f, self.ground.act)
        for d in (W, R):
            self.write(d + b"/bin/script", b"#!" + d + b"/bin/act\n")
        self.own(W + b"/l", os.symlink(b"a", W + b"/l"))
        self.own(R + b"/l", os.symlink(b"d", R + b"/l"))
        self.write(BOARD, b"\0" * boards.SIZE)

    def own(self, path, _=None):
        os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def write(self, path, data):
        with open(path, "wb") as f:
            f.write(data)
            os.fchmod(f.fileno(), 0o755)
        self.own(path)


class Actor:
    """A thread of the program: `pid` and `tid` are its numbers in the sandbox, `host` is its tid
    outside."""

    def __init__(self, pid, tid, host, parent, caller):
        self.pid, self.tid, self.host = pid, tid, host
        self.parents = {1 if parent is None else parent.pid, 1}
        self.maker = parent
        self.caller = caller
        self.alive, self.blocked_by = True, None
        self.group = None  # all actors of its process, including itself
        self.image = None  # all names that its program had since it was executed

    def see_program(self):
        with contextlib.suppress(OSError):
            self.image.add(os.readlink(b"/proc/%d/exe" % self.host))


def numbers(status, key):
    return [int(n) for n in status.split(key)[1].split(b"\n")[0].split()]


def descends(pid, ancestor):
    while pid > 1 and pid != ancestor:
        with open(f"/proc/{pid}/status", "rb") as f:
            pid = numbers(f.read(), b"\nPPid:")[0]
    return pid == ancestor


def host_of(pid, tid, run):
    """Returns the tid that a thread of the sandbox has outside; `run` is the pid of the run."""
    for d in os.listdir("/proc"):
        if not d.isdigit():
            continue
        with contextlib.suppress(OSError):  # the process may have ended
            for task in os.listdir(f"/proc/{d}/task"):
                with open(f"/proc/{d}/task/{task}/status", "rb") as f:
                    status = f.read()
                inner = numbers(status, b"\nNSpid:")
                if len(inner) > 1 and inner[-1] == tid and \
                        numbers(status, b"\nNStgid:")[-1] == pid and descends(int(d), run):
                    return int(task)
    raise boards.Stopped(f"thread {tid} of {pid} is not there")


def start(world, program):
    """Starts `skillsandbox run`, with nothing of the driver's environment."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(RECORD)
    argv = [world.ground.binary, "run", "--quiet", "--timeout", "60s", "--policy", "",
            "--trace-output", RECORD.replace(b".jsonl", b".json"), "--write", W, "--read", R,
            "--read", W + b"/ro", "--write", R + b"/rw", "--write", os.path.dirname(BOARD), "--", program, BOARD]
    env = {"HOME": HOME, "PATH": "/usr/bin:/bin", "XDG_STATE_HOME": state_of(world.caller)}
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, env=env, cwd="/", user=world.uid,
                            group=world.uid, extra_groups=[])


def wait_for_end(process, seconds):
    """Waits for the end of the process. Popen.wait() with a timeout would sleep between its
    checks."""
    if process.poll() is not None:
        return
    fd = os.pidfd_open(process.pid)
    ended, _, _ = select.select([fd], [], [], seconds)
    os.close(fd)
    if not ended:
        raise boards.Stopped(f"the run did not end within {seconds} s")
    process.wait()


def wait_for_death(tid):
    """Waits until the thread has ended: it answers the order to exit before it calls exit."""
    end = time.monotonic() + DEATH_SECONDS
    while time.monotonic() < end:
        try:
            with open(f"/proc/{tid}/status", encoding="ascii", errors="replace") as f:
                if re.search(r"^State:\s+[ZX]", f.read(), re.M):
                    return
        except OSError:
            return
        time.sleep(0.0005)
    raise AssertionError(f"thread {tid} did not end")


class Stage:
    """The actors of one run. Performs steps."""

    def __init__(self, process, caller):
        self.process, self.caller = process, caller
        self.board = boards.Board(BOARD, lambda: process.poll() is None)
        self.actors = {}
        self.board.wait(1)
        first = self.born(0, None)
        first.image = set()
        first.see_program()
        first.group = {first}

    def born(self, number, parent):
        pid, tid = self.board.newborn()
        actor = Actor(pid, tid, host_of(pid, tid, self.process.pid), parent, self.caller)
        self.actors[number] = actor
        return actor

    def can(self, step):
        a = self.actors.get(step.actor)
        if a is None or not a.alive or a.blocked_by is not None:
            return False
        if step.call == "clone":
            return step.who not in self.actors
        if step.call in ("exit", "exit_group"):  # not for the first process: the run would end
            left = [b for b in self.main() if b is not a and b.blocked_by is None]
            return a not in self.main() or (step.call == "exit" and len(left) > 0)
        if step.call in ("reap", "recycle"):
            other = self.actors.get(step.who)
            return other is not None and not other.alive and \
                (step.call == "recycle" or other.maker is a)
        return True

    def main(self):
        """Returns the actors of the first process that are alive."""
        return [a for a in self.actors.values() if a.alive and a.pid == self.actors[0].pid]

    def do(self, step):
        """Performs the step and returns the result of the call."""
        a = self.actors[step.actor]
        special = {"clone": self.clone, "exit": self.leave, "exit_group": self.leave,
                   "reap": self.reap, "recycle": self.recycle}.get(step.call)
        if special:
            return special(step, a)
        call = CALLS[step.call]
        # An open must not wait for the other end of a FIFO.
        flags = step.flags | (os.O_NONBLOCK if call.family == "open" else 0)
        texts, args = [], []
        for letter in call.form:
            if letter in "PQTAV":
                args.append(("text", len(texts)))
                texts.append({"P": step.path, "Q": step.path2, "T": step.text, "A": step.name,
                              "V": XATTR_ARGS}[letter])
            else:
                args.append({"D": step.dir, "E": step.dir2, "N": step.fd, "F": flags,
                             "M": step.mode, "U": -1, "L": step.length, "0": 0,
                             "S": len(XATTR_ARGS)}[letter])
        kind = boards.EXEC if call.family == "exec" else boards.CALL
        released = [b for b in self.actors.values() if b.blocked_by in a.group and b.alive]
        ret = self.board.order(step.actor, kind, call.number, args, texts)
        # the new program has answered, or the parent that waited in vfork()
        if kind == boards.EXEC and ret >= 0:
            self.became(a, released)
            ret = 0
        return ret

    def became(self, a, released):
        """The actor runs another program: it is now alone in its process, and a parent in vfork()
        continues."""
        self.release(released)
        for other in a.group - {a}:
            other.alive = False
        a.pid, a.tid = self.board.newborn()
        a.host = host_of(a.pid, a.tid, self.process.pid)
        a.group = {a}
        a.image = set()
        a.see_program()

    def release(self, waiting):
        for b in waiting:
            if b.alive:
                self.board.wait(1)
                b.blocked_by = None

    def clone(self, step, a):
        flags = KINDS[step.kind]
        self.board.order(step.actor, boards.CLONE, 0, [flags, step.who], [],
                         1 if flags & VFORK else 2)
        thread = flags & THREAD != 0
        new = self.born(step.who, a.maker if thread else a)
        new.image = a.image if thread else set(a.image)
        new.group = a.group if thread else set()
        new.group.add(new)
        if thread:
            new.parents = a.parents
        if flags & VFORK:
            a.blocked_by = new
        return new.tid

    def leave(self, step, a):
        whole = step.call == "exit_group" or len([b for b in a.group if b.alive]) == 1
        ending = a.group if whole else {a}
        released = [b for b in self.actors.values() if b.blocked_by in ending]
        ret = self.board.order(step.actor, boards.EXIT, EXIT_GROUP if whole else EXIT, [0], [])
        for b in ending:
            b.alive = False
            wait_for_death(b.host)
        self.release(released)
        return ret

    def reap(self, step, a):
        args = [self.actors[step.who].pid, 0, 0, 0]
        return self.board.order(step.actor, boards.CALL, CALLS["wait4"].number, args, [])

    def recycle(self, step, _):
        """Sets ns_last_pid, so that the next process gets the number of one that has ended."""
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as f:
            f.write(str(self.actors[step.who].host - 1))
        return 0

    def end(self):
        """Ends the program by ending its first process."""
        while True:
            able = [(n, a) for n, a in self.actors.items() if a.alive and a.blocked_by is None]
            number, a = min(able, key=lambda x: x[1] not in self.main())
            if a in self.main():
                self.board.order(number, boards.EXIT, EXIT_GROUP, [0], [])
                return
            self.leave(Step(number, "exit_group"), a)

    def done(self):
        self.board.done()
