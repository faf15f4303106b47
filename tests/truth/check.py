"""Computes the lines that the record of a program must have, and compares them with the record. The
rules are in README.md."""
import errno
import hashlib
import os
import pathlib
import re
import stat
import sys

import meaning
import witness as w
import world
from calls import AT_EMPTY_PATH, AT_REMOVEDIR, CALLS, EMPTY, RENAME_EXCHANGE

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import records  # noqa: E402

ASIDE = {"run", "layers", "skill_started", "skill_completed", "env_var_access", "exit_code", "end",
         "signature"}
# Any attempt to access these is a violation, whichever path leads to them.
SECRETS = (b"/etc/shadow", b"/root/.ssh/id_rsa", b"/home/other/.ssh/id",
           b"/proc/1/environ", b"/proc/1/mem", b"/proc/1/root/etc/shadow", b"/proc/1/fd/3",
           b"/proc/1/task/1/environ", b"/dev/mem", b"/run/docker.sock",
           *(world.HOME + b"/" + d for d in world.DECOYS))
# Names in the writable grant that are still not writable: a read-only grant, and files that git
# would execute or use.
HELD = (world.W + b"/ro", world.W + b"/.git/hooks", world.W + b"/.git/config")
WRITABLE = (world.W, world.R + b"/rw", b"/mnt/board", b"/tmp", b"/var/tmp", b"/dev/shm", b"/proc", b"/dev")
# Places where a change can only fail if the directory is missing; and grants, which the kernel does
# not let a program remove.
CHANGED = (world.HOME, *WRITABLE[:-2])
MOUNTS = {"rmdir": (world.W, world.R + b"/rw"), "unlink": (b"/mnt/board",)}
WHOLE = (b"/usr", b"/bin", b"/lib", b"/lib64", b"/sbin", b"/proc", world.R, world.W, b"/mnt/board")
PARTIAL = (b"/etc", b"/var", b"/run", b"/sys", b"/opt")
SECRET_NAMES = {b".ssh", b".gnupg", b".aws", b".azure", b".kube", b".docker", b".netrc",
                b".git-credentials", b".env", b".npmrc"}


def inside(path, places):
    return any(path == p or path.startswith(p + b"/") for p in places)


# Stores of secrets. The owner has all of them. In the private home of the sandbox, a store is
# missing until the run makes its own: an attempt to read a missing one is a violation.
STORES = tuple(world.HOME + b"/" + d for d in (b".ssh", b".aws", b".netrc", b".config/gh"))


def is_violation(path, write, exists):
    """True if the plan of these runs forbids the access. Knows only the places that the random
    programs use, and the rules of the manual pages."""
    if inside(path, (b"/proc/1", b"/dev/mem")):
        return exists and not re.fullmatch(rb"/proc/1(/task/1)?", path) or path == b"/dev/mem"
    if inside(path, (world.HOME,)):
        return not write and not exists and inside(path, STORES)
    if inside(path, HELD):
        return write
    if inside(path, WRITABLE):
        return False
    if write:
        return True
    if inside(path, (b"/etc/shadow", b"/run/docker.sock")):
        return True
    return not exists and not inside(path, PARTIAL + WHOLE) and (
        is_other_home(path) or not SECRET_NAMES.isdisjoint(path.split(b"/")))


def is_other_home(path):
    names = path.split(b"/")
    return inside(path, (b"/root",)) or (
        len(names) > 2 and names[1] == b"home" and os.path.lexists(b"/".join(names[:3])))


def is_hidden(path, uid):
    """True if the sandbox hides a file that exists outside, where the caller may read it."""
    if path in (None, b"") or not path.startswith(b"/") or inside(path, WHOLE + (
            b"/sys/devices/system/cpu",)):
        return False
    real = os.path.realpath(path)
    try:
        modes = [os.stat(real[:i] or b"/") for i, c in enumerate(real + b"/") if c == ord("/")]
    except OSError:
        return False
    bits = [(6 if m.st_uid == uid else 3 if m.st_gid == uid else 0, m.st_mode) for m in modes]
    return uid == 0 or (all(mode >> shift & 1 for shift, mode in bits[:-1]) and
                        bits[-1][1] >> bits[-1][0] & 4 != 0)


class Expected:
    """One expected line. Paths and texts are bytes. `optional`: the line may be missing."""

    def __init__(self, at, step, actor):
        self.at, self.step = at, step
        self.pid, self.parents, self.image = actor.pid, actor.parents, actor.image
        self.path2 = self.mode = self.raw = self.leads_to = self.attribute = None
        self.optional = False
        self.unclear = False
        self.path_also = self.path2_also = None
        self.vague = False  # see compare(); the call fails, and its line cannot be computed exactly
        self.error = 0

    def __str__(self):
        seen = {k: getattr(self, k) for k in ("kind", "op", "status", "violation", "path",
                                              "path2", "raw", "leads_to", "attribute", "mode",
                                              "pid")}
        return "step %s: %s" % (self.at, {k: v for k, v in seen.items() if v is not None})


def open_mode(step, exists):
    """Returns (mode, whether the call changes anything)."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC if step.call == "creat" else step.flags
    make = flags & os.O_CREAT and not exists or flags & os.O_TMPFILE == os.O_TMPFILE
    change = flags & 3 != os.O_RDONLY or flags & os.O_TRUNC
    if flags & os.O_PATH or not (make or change):
        return "read", False
    if make:
        return "create", True
    return ("append" if flags & os.O_APPEND else
            "read+write" if flags & 3 == os.O_RDWR else "write"), True


class Look:
    """What the paths of a step mean, computed before the step is done."""

    def __init__(self, actor, step):
        self.actor, self.step, self.call = actor, step, CALLS[step.call]
        self.second = None
        self.host = actor.host
        actor.see_program()
        self.line = Expected(None, step, actor)
        if self.call.family == "fd":
            self.first = meaning.mean(actor, step.fd, b"", "yes")
            self.linked = self.is_linked()
            return
        empty = step.call in EMPTY and step.flags & AT_EMPTY_PATH
        self.first = self.ask(step.dir, step.path, meaning.last_of(step, self.call), empty)
        if self.call.family == "two":
            self.second = self.ask(step.dir2, step.path2, "no", False)
        self.lacking = self.lacks()

    def lacks(self):
        """Returns the file or directory without which the change can only fail, if the sandbox does
        not have it; else None. Failed attempts on secrets keep their line."""
        last = self.second or self.first
        makes = self.call.makes or self.call.family == "two" or self.step.call == "creat" or \
            (self.call.family == "open" and self.step.flags & os.O_CREAT)
        if last.path in (None, b"") or last.exists or last.unclear or self.call.family == "look" or \
                not inside(last.path, CHANGED) or inside(last.path, STORES) or \
                b"authorized_keys" in last.path:
            return None
        needed = os.path.dirname(last.path) if makes else last.path
        real = b"/proc/%d/root" % self.host + needed
        try:
            there = stat.S_ISDIR(os.lstat(real).st_mode) or not makes
        except OSError:
            there = False
        return None if there or needed == b"/" else needed

    def exchanges(self):
        return self.step.call == "renameat2" and self.step.flags & RENAME_EXCHANGE != 0

    def ask(self, fd, raw, last, empty):
        if raw == b"" and not empty:
            return meaning.Meaning(b"", False)
        return meaning.mean(self.actor, fd, raw, last)

    def is_linked(self):
        """True if the file of the fd has any name, even another one than that by which it was
        opened."""
        try:
            return os.stat(f"/proc/{self.host}/fd/{self.step.fd}").st_nlink > 0
        except OSError:
            return False

    def expected(self, at, ret):
        """Returns the line that the record must have for this step; None: it must have none."""
        call, step, first = self.call, self.step, self.first
        e = self.line
        e.at = at
        e.op = "rmdir" if step.call == "unlinkat" and step.flags & AT_REMOVEDIR else call.op
        if call.op == "mknod" and stat.S_IFMT(step.mode) in (stat.S_IFCHR, stat.S_IFBLK):
            return self.refused(e, ret)
        if call.family == "look":
            return self.missed(e, ret)
        e.kind, write, absent = "file_write", True, False
        e.leads_to = step.text if call.op == "symlink" else None
        e.attribute = step.name if "A" in call.form else None
        if call.family == "open":
            e.mode, write = open_mode(step, first.exists)
            e.kind = "file_write" if write else "file_read"
            absent = not write and not first.exists
        elif call.family == "change":
            absent = first.exists if call.makes else not first.exists
            write = not absent
        elif call.family == "two":
            both = first.exists and (self.second.exists or not self.exchanges())
            absent = not both
            write = call.op == "rename" and both
            e.mode = "exchange" if self.exchanges() else None
            e.path2 = step.path2 if self.second.path is None else self.second.path
        elif call.family == "exec":
            e.kind, write, absent = "process_spawned", False, not first.exists
        elif first.path is None and not first.exists:
            return None  # the fd is not open
        elif first.nameless and not self.linked:
            e.optional = True
        bad_fd = first.path is None and not first.exists and step.path == b""
        e.vague = bad_fd or first.vague or (call.family == "two" and (
            first.unclear or self.second.unclear or self.second.vague))
        # If the path is unclear, it is not known whether the name exists, nor whether a FIFO or
        # socket would remain on the host.
        e.vague |= first.unclear and self.stays(True)
        e.path = step.path if first.path is None else first.path
        e.unclear = first.unclear
        e.path_also, e.path2_also = first.also, self.second and self.second.also
        e.violation = self.violates(first, write) or self.stays(write) or \
            (self.second is not None and self.violates(self.second, not absent))
        e.status = "denied" if e.violation else "absent" if absent else "asked"
        uid = world.UID[self.actor.caller]
        idle = call.family != "fd" and not write and not first.exists
        if not e.violation and idle and is_hidden(first.path, uid):
            e.status = "denied"
        changes = write or (call.family == "two" and not absent)
        if e.status == "asked" and call.family != "fd" and changes and self.lacking:
            e.status = "denied" if is_hidden(self.lacking, uid) else "absent"
        if e.status == "asked" and first.path in MOUNTS.get(e.op, ()):
            e.status = "denied"
        if e.status == "denied":
            e.kind, e.error = "file_blocked", -ret
        if call.family != "fd":
            e.raw = step.path
        return e

    def missed(self, e, ret):
        """Completes the line of a call that only looks for a file. It has one if the file is hidden."""
        first, uid = self.first, world.UID[self.actor.caller]
        e.vague = first.vague
        if first.exists or self.violates(first, False) or not is_hidden(first.path, uid):
            return None
        e.kind, e.status, e.violation, e.error = "file_blocked", "denied", False, -ret
        e.path, e.raw, e.unclear, e.path_also = first.path, self.step.path, first.unclear, first.also
        return e

    def refused(self, e, ret):
        """Completes the line of a call that the seccomp profile refuses: its path is not read."""
        e.kind, e.op, e.status, e.violation, e.path = \
            "syscall_blocked", self.step.call, "denied", True, None
        e.error = -ret
        return e

    def stays(self, write):
        """True if the call would leave a FIFO or a socket on the host, which is forbidden."""
        return write and self.call.op == "mknod" and self.first.path is not None and \
            stat.S_IFMT(self.step.mode) in (stat.S_IFIFO, stat.S_IFSOCK) and \
            inside(self.first.path, (world.W, world.R + b"/rw", b"/mnt/board"))

    def violates(self, met, write):
        return met.path not in (None, b"") and met.path.startswith(b"/") and \
            is_violation(met.path, write, met.exists)


def plain(path):
    """Writes /proc/7/task/7 as /proc/7."""
    return re.sub(rb"^/proc/(\d+)/task/\1(/|$)", rb"/proc/\1\2", path) if path else path


def text(line, key):
    value = line.get(key)
    return value.encode("utf-8", "surrogateescape") if value is not None else None


def told_path(e, data, key):
    """Returns the path in a line of the record. If the line has only a part of it, the whole path
    is recognized by its length and digest."""
    for whole in (getattr(e, key), getattr(e, key + "_also")):
        if whole is not None and data.get(key + "_bytes") == len(whole) and \
                data.get(key + "_digest") == "sha256:" + hashlib.sha256(whole).hexdigest():
            return plain(whole)
    return plain(text(data, key))


def told_text(e, data, key):
    """Returns the text that the program wrote. If the line has only a part of it, returns the whole
    text from `e`, provided that its length and digest match those in the line."""
    whole = getattr(e, key)
    if whole is not None and data.get(key + "_bytes") == len(whole) and \
            data.get(key + "_digest") == "sha256:" + hashlib.sha256(whole).hexdigest():
        return whole
    return text(data, key)


def is_left_out(e, data):
    """True if the line is cut and therefore lacks `raw`, or has only the beginning of it."""
    raw = text(data, "raw")
    if not data.get("cut") or e.raw is None:
        return False
    if raw is None:
        return e.path is not None and e.path.endswith(e.raw)
    end = "\u2026".encode()
    return raw.endswith(end) and e.raw.startswith(raw[:-len(end)])


UNCLEAR = ("status", "mode", "kind")


def differs(e, line):
    """Returns why the line does not describe the expected attempt, or a repeat of it; "": it
    does."""
    data = line.get("data", {})
    for key, want, got in (
            ("op", e.op, data.get("op")), ("path", plain(e.path), told_path(e, data, "path")),
            ("path2", plain(e.path2), told_path(e, data, "path2")),
            ("leads_to", e.leads_to, told_text(e, data, "leads_to")),
            ("attribute", e.attribute, text(data, "attribute")),
            ("status", e.status, data.get("status")),
            ("violation", e.violation, line.get("violation", False)),
            ("mode", e.mode, data.get("mode")), ("kind", e.kind, line["kind"])):
        if want == got or (e.vague and key != "op") or (e.unclear and key in UNCLEAR):
            continue
        if key not in ("path", "path2") or got != plain(getattr(e, key + "_also")):
            return f"{key} is {got!r}, not {want!r}"
    if e.error and not e.vague and data.get("error") != errno.errorcode.get(e.error):
        return f"error is {data.get('error')}, and the call got {errno.errorcode.get(e.error)}"
    if text(data, "program") not in e.image:
        return f"program is {data.get('program')!r}, not one of {sorted(e.image)}"
    return ""


def first_differs(e, line):
    """Returns why the members of the first attempt (raw, pid, ppid) differ; "": they do not."""
    data = line["data"]
    raw = None if e.raw == text(data, "path") else e.raw
    if raw != text(data, "raw") and not is_left_out(e, data):
        return f"raw is {text(data, 'raw')!r}, not {raw!r}"
    if data.get("pid") != e.pid:
        return f"pid is {data.get('pid')}, not {e.pid}"
    if data.get("ppid") not in e.parents:
        return f"ppid is {data.get('ppid')}, not one of {sorted(e.parents)}"
    return ""


def repeated(e, used, repeats):
    """Looks for a line whose counted repeats can include this attempt, and uses up one of its
    repeats. Returns False if there is none."""
    same = next((u for u in used if repeats.get(u["seq"], 0) > 0 and not differs(e, u)), None)
    if same is not None:
        repeats[same["seq"]] -= 1
    return same is not None


def compare(expected, lines):
    """Compares the record with the expected lines. Each must be there in its order, or be counted
    as a repeat, and there must be no others. A vague attempt may match any line with its op, or a
    counted repeat: all combinations are tried."""
    vague = [i for i, e in enumerate(expected) if e.vague and not e.optional][:MOST_VAGUE]
    first = None
    for choice in range(1 << len(vague)):
        folded = {at for bit, at in enumerate(vague) if choice >> bit & 1}
        faults = match(expected, lines, folded)
        if not faults:
            return []
        first = first or faults
    return first


def match(expected, lines, folded):
    """Compares for one combination: the attempts at the places in `folded` are taken as counted
    repeats."""
    faults = []
    repeats = {}
    for line in lines:
        if "repeat_of" in line:
            repeats[line["repeat_of"]] = repeats.get(line["repeat_of"], 0) + line["count"]
    told = [x for x in lines if x["kind"] not in ASIDE and "repeat_of" not in x]
    used, later, at = [], [], 0
    for place, e in enumerate(expected):
        why = differs(e, told[at]) or first_differs(e, told[at]) if at < len(told) else "no line left"
        if not why and place not in folded:
            used.append(told[at])
            at += 1
            continue
        if e.optional or e.vague:  # attempts that are exact get their lines first
            later.append(e)
        elif not repeated(e, used, repeats):
            got = told[at].get("message", "") if at < len(told) else "nothing"
            faults.append(f"expected {e}\n      line {told[at]['seq'] if at < len(told) else '-'}"
                          f" says {got[:300]!r}: {why}")
            break
    for e in later:
        if not repeated(e, used, repeats) and not e.optional:
            faults.append(f"expected {e}\n      no line, and none is repeated for it")
    faults += [f"line {x['seq']} names what did not happen: {x.get('message', x)!r:.300}"
               for x in told[at:at + 1] if not faults]
    faults += [f"line {seq} is repeated {n} times more than it happened"
               for seq, n in repeats.items() if n and not faults]
    return faults or compare_end(expected, lines[-2]["counters"])


def compare_end(expected, counters):
    violations = sum(e.violation for e in expected if not e.vague)
    vague = sum(e.vague for e in expected)
    if violations <= counters["violations"] <= violations + vague and \
            counters["dropped"] == counters["unreadable"] == 0:
        return []
    return [f"the end counts {counters}, and there were {violations} violations"]


def read_record(path, key):
    """Returns the lines of the record as bytes and parsed, after verifying chain and signature."""
    lines, rest = records.read_lines(pathlib.Path(os.fsdecode(path)))
    assert rest == b"", "the record does not end with a line"
    parsed = records.verify(lines)
    records.verify_end(parsed, key)
    return lines, parsed


MOST_VAGUE = 6

# Operation -> the kernel's event that each successful call of it causes.
LEAVES = {"unlink": w.DELETE, "rmdir": w.DELETE, "mkdir": w.CREATE, "mknod": w.CREATE,
          "symlink": w.CREATE, "link": w.CREATE, "rename": w.RENAME, "chmod": w.ATTRIB,
          "setxattr": w.ATTRIB, "removexattr": w.ATTRIB, "truncate": w.MODIFY, "open": w.OPEN, "exec": w.OPEN_EXEC}


def check_opened(look, ret, told):
    """Compares the path of the opened fd, as /proc shows it, with the computed path."""
    temporary = look.step.flags & os.O_TMPFILE == os.O_TMPFILE
    if look.call.family != "open" or ret < 0 or look.first.nameless or temporary or \
            told == look.first.path:
        return []
    return [f"model: opened {told!r}, meant {look.first.path!r}"]


def check_events(e, look, ret, events):
    """Compares the kernel's events of a step with the line that the record must have."""
    faults = []
    for event in events:
        if event.tid != look.host:
            faults.append(f"{event}: not of the actor {look.host}")
            continue
        if event.path and inside(event.path, (world.HOME, world.OUT)):
            faults.append(f"the walls are broken: {event}")
        changed = event.mask & w.CHANGES
        if look.call.op not in ("chmod", "chown", "setxattr", "removexattr"):
            changed &= ~w.ATTRIB  # this ATTRIB: the inode's number of names has changed
        if changed and ret < 0:
            faults.append(f"{event}, but the call failed")
        if changed and not is_told(e, look, event):
            faults.append(f"model: {event}; the line is to say {e.path if e else None!r}")
        if event.mask & w.CREATE and look.call.family == "open" and e.mode != "create":
            faults.append(f"model: {event}: is not told as create")
    if ret >= 0 and e is not None and not left(e, look, events):
        faults.append("model: the kernel says nothing about it")
    return faults


def is_told(e, look, event):
    if e is None:
        return False
    if look.first.nameless and event.path2 is None and (
            event.path is None or event.path.startswith(world.TOP)) and look.call.op != "link":
        return True  # the event has a former name, or "#INODE"
    if look.call.op == "rename":
        ways = [(e.path, e.path2)] + [(e.path2, e.path)] * look.exchanges()
        return (event.path, event.path2) in ways or too_long(event.path) or \
            too_long(event.path2)
    return event.path == (e.path if e.path2 is None else e.path2) or too_long(event.path)


def too_long(path):
    return path is not None and len(path) >= meaning.PATH_MAX


def left(e, look, events):
    """True if the events contain the one that the call must cause, or if it causes none."""
    bit = LEAVES.get(look.call.op)
    path = e.path if e.path2 is None else e.path2
    if bit is None or not inside(path, (world.W,)) or look.first.nameless:
        return True
    if look.step.flags & os.O_PATH and look.call.family == "open":
        return True
    if look.call.op == "rename" and look.first.inode == look.second.inode:
        return True  # both names are the same file: rename() does nothing
    told = {(event.path, event.path2) for event in events
            if event.mask & bit and is_told(e, look, event)}
    return len(told) > look.exchanges() or \
        (look.call.op == "open" and look.step.flags & os.O_TMPFILE == os.O_TMPFILE)
