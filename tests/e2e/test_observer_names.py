"""The observer records true names, whatever a skill does to hide them.

The skill changes the target of a name between two lookups, gives a thread its own fd table, reuses
pids, and renames a program while it starts.
"""
import contextlib
import json
import os
import pathlib
import subprocess

import harness
import pytest
from test_observer import blocked, changed, check, read, seen, wrote

FCHMODAT2 = 452
EMPTY = 0x1000
CWD = -100

# name: (code, expected events[, flags]), as CASES in test_observer.py
CASES = {
    "a link that leads elsewhere since it was looked at": (
        "os.symlink('/usr/sbin', '/tmp/l'); attempt(os.open, '/tmp/l/file', os.O_RDONLY)\n"
        "os.unlink('/tmp/l'); os.symlink(R, '/tmp/l'); os.close(os.open('/tmp/l/file', 0))\n"
        "os.unlink('/tmp/l'); os.symlink(HOME + '/.ssh', '/tmp/l')\n"
        "assert attempt(os.open, '/tmp/l/file', os.O_RDONLY) == 2\n"
        "os.unlink('/tmp/l'); os.symlink('/proc/1', '/tmp/l')\n"
        "assert attempt(os.open, '/tmp/l/environ', os.O_RDONLY) == 13",
        [*[changed("/tmp/l", "symlink")] * 4, changed("/tmp/l", "unlink"),
         read("/usr/sbin/file", "absent", raw="/tmp/l/file"), read("R/file", raw="/tmp/l/file"),
         blocked("HOME/.ssh/file", "open", "credential_store", raw="/tmp/l/file"),
         blocked("/proc/1/environ", "open", "other_process", raw="/tmp/l/environ")]),
    "a directory in the place of a link": (
        "os.symlink('/usr/lib', '/tmp/l'); attempt(os.open, '/tmp/l/x', os.O_RDONLY)\n"
        "os.unlink('/tmp/l'); os.mkdir('/tmp/l')\n"
        "os.close(os.open('/tmp/l/x', os.O_CREAT | os.O_WRONLY))",
        [changed("/tmp/l", "symlink"), read("/usr/lib/x", "absent"), changed("/tmp/l", "unlink"),
         changed("/tmp/l", "mkdir"), wrote("/tmp/l/x", "create")]),
    "a link on the way that leads elsewhere": (
        "os.mkdir('/tmp/d'); os.symlink('/usr/share', '/tmp/d/l')\n"
        "attempt(os.open, '/tmp/d/l/../sbin/file', os.O_RDONLY)\n"
        "os.unlink('/tmp/d/l'); os.symlink(R + '/sub', '/tmp/d/l')\n"
        "os.close(os.open('/tmp/d/l/../file', os.O_RDONLY))\n"
        "attempt(os.open, '/tmp/d/l/../sbin/file', os.O_RDONLY)",
        [changed("/tmp/d", "mkdir"), *[changed("/tmp/d/l", "symlink")] * 2,
         read("/usr/sbin/file", "absent"), changed("/tmp/d/l", "unlink"), read("R/file"),
         read("R/sbin/file", "absent")]),
    "a program behind a link that leads elsewhere": (
        "os.mkdir('/tmp/evil'); true = open('/usr/bin/true', 'rb').read()\n"
        "open('/tmp/evil/true', 'wb').write(true); os.chmod('/tmp/evil/true', 0o755)\n"
        "os.symlink('/usr/bin', '/tmp/l'); subprocess.call(['/tmp/l/true'])\n"
        "os.unlink('/tmp/l'); os.symlink('/tmp/evil', '/tmp/l'); subprocess.call(['/tmp/l/true'])\n"
        "os.rename('/tmp/evil/true', '/tmp/evil/other'); subprocess.call(['/tmp/l/other'])",
        [changed("/tmp/evil", "mkdir"), read("/usr/bin/true"), wrote("/tmp/evil/true", "create"),
         changed("/tmp/evil/true", "chmod"), *[changed("/tmp/l", "symlink")] * 2,
         changed("/tmp/l", "unlink"),
         changed("/tmp/evil/true", "rename", path2="/tmp/evil/other"),
         seen("process_spawned", "exec", "asked", "/usr/bin/true", raw="/tmp/l/true"),
         seen("process_spawned", "exec", "asked", "/tmp/evil/true", raw="/tmp/l/true"),
         seen("process_spawned", "exec", "asked", "/tmp/evil/other", raw="/tmp/l/other")]),
    "a socket behind a link that leads elsewhere": (
        "s = socket.socket(socket.AF_UNIX); os.symlink('/usr/lib', '/tmp/l')\n"
        "attempt(s.connect, '/tmp/l/agent'); os.unlink('/tmp/l')\n"
        "os.symlink('/srv/.ssh', '/tmp/l'); attempt(s.connect, '/tmp/l/agent')",
        [*[changed("/tmp/l", "symlink")] * 2, changed("/tmp/l", "unlink"),
         seen("file_read", "connect", "absent", "/usr/lib/agent"),
         seen("file_blocked", "connect", "denied", "/srv/.ssh/agent", True,
              reason="outside_plan")],
        ["--unix-sockets"]),
    "changes behind a link that leads elsewhere": (
        "os.symlink('/usr/lib', '/tmp/l'); attempt(os.chmod, '/tmp/l/old', 0o600)\n"
        "os.unlink('/tmp/l'); os.symlink(W, '/tmp/l'); os.chmod('/tmp/l/old', 0o600)\n"
        "os.mkdir('/tmp/l/d'); os.link('/tmp/l/old', '/tmp/l/two'); os.truncate('/tmp/l/old', 0)\n"
        "os.rename('/tmp/l/two', '/tmp/l/three'); os.unlink('/tmp/l/three')",
        [*[changed("/tmp/l", "symlink")] * 2, changed("/tmp/l", "unlink"),
         changed("/usr/lib/old", "chmod", "absent"), changed("W/old", "chmod"),
         changed("W/d", "mkdir"), changed("W/old", "link", path2="W/two"),
         changed("W/old", "truncate"), changed("W/two", "rename", path2="W/three"),
         changed("W/three", "unlink")]),
    "a link of its own in the place of a directory of an fd": (
        "os.mkdir('/tmp/d'); fd = os.open('/tmp/d', os.O_RDONLY); os.rename('/tmp/d', '/tmp/e')\n"
        "os.symlink('/usr/lib', '/tmp/d'); os.close(os.open('x', os.O_CREAT, dir_fd=fd))",
        [changed("/tmp/d", "mkdir"), read("/tmp/d"), changed("/tmp/d", "rename", path2="/tmp/e"),
         changed("/tmp/d", "symlink"), wrote("/tmp/e/x", "create")]),
    "the working directory by an empty path": (
        f"os.chdir(W); libc.syscall({FCHMODAT2}, {CWD}, b'', 0o777, {EMPTY})\n"
        f"libc.fchownat({CWD}, b'', -1, -1, {EMPTY}); print(oct(os.stat('.').st_mode & 0o777))",
        [changed("W", "chmod"), changed("W", "chown")]),
    "a read-only working directory by an empty path": (
        f"os.chdir(R); libc.syscall({FCHMODAT2}, {CWD}, b'', 0o777, {EMPTY})\n"
        f"libc.fchownat({CWD}, b'', -1, -1, {EMPTY})",
        [blocked("R", "chmod", "read_only"), blocked("R", "chown", "read_only")]),
    "an fd by an empty path": (
        "fd = os.open(W + '/old', os.O_RDONLY)\n"
        f"libc.syscall({FCHMODAT2}, fd, b'', 0o640, {EMPTY})\n"
        f"libc.fchownat(fd, b'', -1, -1, {EMPTY})\n"
        f"libc.linkat(fd, b'', {CWD}, (W + '/twin').encode(), {EMPTY})",
        [read("W/old"), changed("W/old", "chmod"), changed("W/old", "chown"),
         changed("W/old", "link", path2="W/twin")]),
    "an empty path where it leads nowhere": (
        "os.chdir(W); fd = os.open(W, os.O_RDONLY); old = (W + '/old').encode()\n"
        f"assert libc.syscall({FCHMODAT2}, fd, b'', 0o777, 0) == -1\n"
        "assert libc.fchownat(fd, b'', -1, -1, 0) == -1\n"
        f"assert libc.fchownat({CWD}, b'', -1, -1, 0) == -1\n"
        "assert libc.openat(fd, b'', os.O_RDONLY) == -1\n"
        "assert libc.openat(fd, b'', os.O_CREAT | os.O_WRONLY, 0o600) == -1\n"
        "assert libc.linkat(fd, b'', fd, b'twin', 0) == -1\n"
        f"assert libc.linkat({CWD}, old, fd, b'', 0) == -1\n"
        "assert libc.unlinkat(fd, b'', 0) == libc.mkdirat(fd, b'', 0o700) == -1\n"
        "assert libc.symlinkat(b'x', fd, b'') == libc.renameat(fd, b'old', fd, b'') == -1",
        [read("W"), changed("", "chmod", "absent"), changed("", "chown", "absent"),
         read("", "absent"), seen("file_write", "open", "absent", "", mode="create"),
         changed("", "link", "absent", path2="W/twin"), changed("W/old", "link", "absent"),
         changed("", "unlink", "absent"), changed("", "mkdir", "absent"),
         changed("", "symlink", "absent"), changed("W/old", "rename", "absent")]),
    "a program by an empty path": (
        "execveat = 322 if os.uname().machine == 'x86_64' else 281; os.chdir('/tmp')\n"
        "argv = (ctypes.c_char_p * 2)(b'x', None); fd = os.open('/usr/bin/true', os.O_RDONLY)\n"
        "assert libc.syscall(execveat, fd, b'', argv, None, 0) == -1\n"
        f"assert libc.syscall(execveat, {CWD}, b'', argv, None, {EMPTY}) == -1\n"
        "pid = os.fork()\n"
        f"if pid == 0: libc.syscall(execveat, fd, b'', argv, None, {EMPTY})\n"
        "assert os.waitpid(pid, 0)[1] == 0",
        [read("/usr/bin/true"), seen("process_spawned", "exec", "absent", ""),
         seen("process_spawned", "exec", "asked", "/tmp"),
         seen("process_spawned", "exec", "asked", "/usr/bin/true")]),
    "a program that is only checked": (
        "execveat = 322 if os.uname().machine == 'x86_64' else 281\n"
        "argv = (ctypes.c_char_p * 2)(b'x', None)\n"
        f"libc.syscall(execveat, {CWD}, b'/usr/bin/true', argv, None, 0x10000)", []),
    "the root by a link of /proc": (
        "os.chdir('/')\n"
        "for path in '/proc/self/cwd', '/proc/self/root', '/proc/thread-self/cwd/':\n"
        "    assert attempt(os.open, path, os.O_RDONLY) not in (2, 13)",
        [read("/", raw="/proc/self/cwd")]),  # the others are repeats of it
    "back from the first process": (
        "for path in ('/proc/1/../self/root/etc/shadow', '/proc/1/task/../../../etc/gshadow',\n"
        "             '/proc/1/nothing/../status', '/proc/1/../../tmp/ssb-x'):\n"
        "    assert attempt(os.open, path, os.O_RDONLY) == 2\n"
        "for path in '/proc/1/root/..', '/proc/1/cwd/../../etc/passwd':\n"
        "    assert attempt(os.open, path, os.O_RDONLY) == 13\n"
        "os.symlink('/proc/1/cwd', '/tmp/c')\n"
        "assert attempt(os.open, '/tmp/c/../../etc/group', os.O_RDONLY) == 13\n"
        "os.close(os.open('/proc/1/../../usr/lib/os-release', os.O_RDONLY))",
        [blocked("/etc/shadow", "open", "credential_store"),
         blocked("/etc/gshadow", "open", "credential_store"),
         read("/proc/1/nothing/../status", "absent"), read("/tmp/ssb-x", "absent"),
         blocked("/proc/1/root/..", "open", "other_process"),
         blocked("/proc/1/cwd/../../etc/passwd", "open", "other_process"),
         changed("/tmp/c", "symlink"),
         blocked("/proc/1/cwd/../../etc/group", "open", "other_process",
                 raw="/tmp/c/../../etc/group"),
         read("/usr/lib/os-release")]),
    "a link of /proc that is meant itself": (
        "fd = os.open(W + '/old', os.O_RDWR); link = '/proc/self/fd/%d' % fd\n"
        "attempt(os.unlink, link); attempt(os.rename, link, W + '/new')\n"
        "assert attempt(os.link, link, W + '/new', follow_symlinks=False) == 18\n"
        "assert attempt(os.open, link, os.O_CREAT | os.O_EXCL | os.O_WRONLY) == 17\n"
        "assert attempt(os.open, link, os.O_NOFOLLOW) == 40\n"
        f"assert libc.linkat({CWD}, link.encode(), {CWD}, (W + '/new').encode(), 0x400) == 0",
        [wrote("W/old", "read+write"), changed("W/old", "link", path2="W/new")]
        + [seen("file_write", op, "asked", None, rule="kernel", path2="W/new")
           for op in ("rename", "link")]
        + [seen("file_write", "unlink", "asked", None, rule="kernel"),
           seen("file_write", "open", "asked", None, rule="kernel"),
           read(None, rule="kernel")]),
    "up from where a link of /proc leads": (
        "os.symlink('/proc/self/cwd', '/tmp/c'); os.symlink('/proc/thread-self/cwd', '/tmp/t')\n"
        "os.symlink('/proc/%d/cwd' % os.getpid(), '/tmp/n'); os.chdir(R + '/sub')\n"
        "fd = os.open('.', os.O_RDONLY); os.symlink('/dev/fd/%d' % fd, '/tmp/f')\n"
        "for i, way in enumerate(['/tmp/c', '/tmp/t', '/tmp/n', '/tmp/f', '/proc/%d/../%d/cwd' %\n"
        "                         (os.getpid(), os.getpid())]):\n"
        "    attempt(os.open, '%s/../f%d' % (way, i), os.O_RDONLY)",
        [*(changed(f"/tmp/{x}", "symlink") for x in "ctnf"), read("R/sub"),
         *(read(f"R/f{i}", "absent") for i in range(5))]),
    "a symlink that is open": (
        "os.symlink(W + '/old', '/tmp/l'); os.symlink(W, '/tmp/d')\n"
        "l = os.open('/tmp/l', os.O_PATH | os.O_NOFOLLOW)\n"
        "d = os.open('/tmp/d', os.O_PATH | os.O_NOFOLLOW); os.symlink('/dev/fd/%d' % l, '/tmp/m')\n"
        "assert attempt(os.open, '/proc/self/fd/%d' % l, os.O_WRONLY) == 40\n"
        "assert attempt(os.open, '/tmp/m', os.O_WRONLY | os.O_APPEND) == 40\n"
        "assert attempt(os.chmod, '/proc/self/fd/%d' % l, 0o600) == 95\n"
        "assert attempt(os.open, '/proc/self/fd/%d/old' % d, os.O_WRONLY) == 20",
        [changed("/tmp/l", "symlink"), changed("/tmp/d", "symlink"), read("/tmp/l"),
         read("/tmp/d"), changed("/tmp/m", "symlink"), wrote("/tmp/l", "write"),
         wrote("/tmp/l", "append"), changed("/tmp/l", "chmod"),
         seen("file_write", "open", "asked", None, rule="kernel", mode="write")]),
    "a symlink in a directory deeper than a path": (
        "os.symlink(R, '/tmp/l'); os.chdir('/tmp')\n"
        "for i in range(20): os.mkdir('d' * 250); os.chdir('d' * 250)\n"
        "os.symlink('/tmp/l/file', 'link'); os.close(os.open('link', os.O_RDONLY))",
        [changed("/tmp/l", "symlink"), *[changed(None, "mkdir")] * 17, changed("link", "symlink"),
         read("R/file", raw="link")]),
    "a file that has lost the name that it was opened by": (
        "fd = os.open(W + '/old', os.O_RDWR); os.link(W + '/old', W + '/two')\n"
        "os.unlink(W + '/old'); os.fchmod(fd, 0o640); os.unlink(W + '/two'); os.fchmod(fd, 0o600)",
        [wrote("W/old", "read+write"), changed("W/old", "link", path2="W/two"),
         changed("W/old", "unlink"), seen("file_write", "chmod", "asked", None, rule="kernel"),
         changed("W/two", "unlink")]),
    "an attack by a thread ends its process": (
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    threading.Thread(target=libc.syscall, args=(175, 0, 0, 0)).start(); time.sleep(60)\n"
        "assert os.waitpid(pid, 0)[1] == 9",
        [seen("syscall_blocked", "init_module", "denied", None, True, reason="attack")]),
}


@pytest.mark.parametrize("name", CASES)
def test_exactly_what_was_meant(ssb, name):
    check(ssb, name, CASES[name])


def test_up_from_a_directory_that_is_removed_and_closed(user):
    check(user, "closed", (
        "os.mkdir('/tmp/d'); os.chdir('/tmp/d'); os.rmdir('/tmp/d'); os.chmod('.', 0)\n"
        "assert attempt(os.open, '../ssb-x', os.O_RDONLY) == 13",
        [changed("/tmp/d", "mkdir"), changed("/tmp/d", "rmdir"),
         seen("file_write", "chmod", "asked", None, rule="kernel"), read("/tmp/ssb-x", raw="../ssb-x")]))


def test_swapped_links_hide_no_violation(ssb):
    """Twenty attempts through a symlink that had a harmless target before: each is recorded as a
    violation, with its true path."""
    code = """
        import os
        places = [os.environ['HOME'] + p for p in ('/.ssh', '/.aws', '/.gnupg')]
        places += ['/etc', '/proc/1']
        names = ['id_rsa', 'credentials', 'secring.gpg', 'shadow', 'environ']
        os.symlink('/usr/lib', '/tmp/l')
        for name in names:
            try:
                os.open('/tmp/l/' + name, os.O_RDONLY)
            except OSError:
                pass
        for place, name in zip(places, names):
            os.unlink('/tmp/l')
            os.symlink(place, '/tmp/l')
            for i in range(4):
                try:
                    os.open('/tmp/l/' + name, os.O_RDONLY)
                except OSError:
                    pass
    """
    ssb.inside(code).ok()
    end = [line for line in ssb.last_record() if "summary" in line][-1]
    assert end["counters"]["violations"] == 20, end
    assert end["summary"]["classes"], end
    paths = {line["data"]["path"] for line in ssb.last_record() if line.get("violation")}
    assert paths == {"/etc/shadow", "/proc/1/environ", *(
        f"{ssb.home}/{name}" for name in (".ssh/id_rsa", ".aws/credentials", ".gnupg/secring.gpg"))}


def test_a_link_of_the_system_that_another_changes(ssb):
    """Another process changes a symlink in /usr during the run: the record has the new target. The
    skill cannot change it, but other processes can."""
    place = pathlib.Path("/usr/local/share") / f"ssb-test-{os.getpid()}-{ssb.kind}"
    granted = ssb.mkdir("granted")
    ssb.write(granted / "file", "text")
    code = f"""
        import os
        for i in range(2):
            try:
                os.close(os.open('{place}/link/file', os.O_RDONLY))
            except OSError:
                pass
            os.write(1, b'x')
            os.read(0, 1)
    """
    place.mkdir()
    try:
        (place / "link").symlink_to("/usr/sbin")
        p = ssb.popen([ssb.binary, "run", "-q", ssb.skill(code, read=[granted])],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert p.stdout.read(1) == b"x"
        (place / "link").unlink()
        (place / "link").symlink_to(granted)
        p.stdin.write(b"yy")
        p.stdin.close()
        assert p.wait(timeout=30) == 0
    finally:
        (place / "link").unlink()
        place.rmdir()
    told = [line["data"]["path"] for line in ssb.last_record()
            if line.get("data", {}).get("raw") == f"{place}/link/file"]
    assert told == ["/usr/sbin/file", f"{granted}/file"]


def events(ssb, **wanted):
    return [line["data"] for line in ssb.last_record()
            if all(line.get("data", {}).get(k) == v for k, v in wanted.items())]


def test_threads_with_files_of_their_own(ssb, programs):
    """Some threads have their own fd table and working directory: the record must have the path
    that the kernel opened. /proc/self is the process; /proc/thread-self is the thread."""
    leaders, threads = ssb.mkdir("leaders"), ssb.mkdir("threads")
    for d in leaders, threads:
        ssb.write(d / "file", "text")
    program = programs("own_tables")
    r = ssb.run("-q", "-r", program, "-w", leaders, "-w", threads, "--", program, "paths", leaders,
                threads).ok()
    opened = [tuple(line.split("\t")) for line in r.text.splitlines()]
    assert len(set(opened)) == 26 and "" not in {path for _, _, path in opened}, r.text
    assert sum(path.startswith(f"{leaders}/") for _, _, path in opened) == 12
    told = [(e["raw"], e["mode"], e["path"]) for e in events(ssb, op="open")
            if e["mode"] != "read" and "raw" in e]
    assert sorted(told) == sorted(opened)


def test_a_thread_that_becomes_a_program(ssb, programs):
    """A thread that calls execve gets the pid of its leader, which made calls until then: later
    events name the new program."""
    program = programs("own_tables")
    key = ssb.home / ".ssh/id_ed25519"
    code = f"""
        import shutil, subprocess
        shutil.copy('/usr/bin/cat', '/tmp/evil')
        for i in range(20):
            subprocess.call(['{program}', 'exec', '/tmp/evil', '{key}'])
    """
    ssb.inside(code, read=[program]).ok()
    told = events(ssb, path=str(key))
    assert {e["program"] for e in told} == {"/tmp/evil"}
    # Equal events share one line. If one of them named another program, it would have its own line.
    repeats = sum(line["count"] for line in ssb.last_record() if "repeat_of" in line)
    assert len(told) == 1 and repeats > 19


# A child (/tmp/honest) makes an observed call and ends. GIVE_OUT then makes its host pid the next
# one that the kernel assigns. New children start until one of them gets that host pid; only this
# child tries to open the private key.
REUSE = """
import os, shutil, subprocess, sys
shutil.copy('/usr/bin/cat', '/tmp/honest')
old = subprocess.Popen(['/tmp/honest', '-', '/tmp/nothing'], stdin=subprocess.PIPE)
print('there', flush=True)
sys.stdin.readline()
old.stdin.close()
old.wait()
print('gone', flush=True)
while sys.stdin.readline() == 'again\\n':
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(w)
        if os.read(r, 1) == b'x':
            try:
                os.open(os.environ['HOME'] + '/.ssh/id_ed25519', os.O_RDONLY)
            except OSError:
                pass
        os._exit(0)
    os.close(r)
    print(pid, flush=True)
    os.write(w, b'x' if sys.stdin.readline() == 'hit\\n' else b'y')
    os.close(w)
    os.waitpid(pid, 0)
"""

# Runs in a new pid namespace, where hardly any other process takes a pid.
GIVE_OUT = """
import os, pathlib, subprocess, sys
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

def number():
    for d in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            if (d / 'cmdline').read_bytes().startswith(b'/tmp/honest'):
                return int(d.name)
        except OSError:
            pass

def inside(pid):
    try:
        lines = pathlib.Path('/proc/%d/status' % pid).read_text().splitlines()
        return next(int(x.split()[-1]) for x in lines if x.startswith('NSpid:'))
    except OSError:
        return 0

assert p.stdout.readline() == b'there\\n'
while not (old := number()):
    pass
p.stdin.write(b'end\\n')
assert p.stdout.readline() == b'gone\\n'
for i in range(1000):
    pathlib.Path('/proc/sys/kernel/ns_last_pid').write_text(str(old - 1))
    p.stdin.write(b'again\\n')
    new = int(p.stdout.readline())
    hit = inside(old) == new
    p.stdin.write(b'hit\\n' if hit else b'miss\\n')
    if hit:
        break
p.stdin.close()
print(new if hit and p.wait() == 0 else 'missed', flush=True)
"""


def test_a_number_that_is_given_out_again(ssb):
    """A new process gets the pid of one that has ended: an event of the new process names its own
    program, not that of the ended one."""
    ssb.runs_before = ssb.runs()
    r = harness.execute(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
                         harness.PYTHON, "-c", GIVE_OUT, *ssb.identity(), ssb.binary, "run", "-q",
                         ssb.skill(REUSE)], env=ssb.environment(), cwd=ssb.work).ok()
    attempt, = events(ssb, path=str(ssb.home / ".ssh/id_ed25519"))
    python = os.path.realpath(harness.PYTHON)
    assert (attempt["pid"], attempt["program"]) == (int(r.text), python), attempt


# A child makes a system call for which the observer must kill the child.
ATTACK = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
print('ready', flush=True)
sys.stdin.readline()
pid = os.fork()
if pid == 0:
    libc.syscall(105 if os.uname().machine == 'aarch64' else 175, 0, 0, 0)  # init_module
    os._exit(0)
print(os.waitpid(pid, 0)[1], flush=True)
sys.stdin.readline()
"""

# Runs in a new pid namespace, as GIVE_OUT does. Delays the signal that the observer sends to the
# child until the child has ended and another process has the child's pid.
HOLD_UP = """
import os, pathlib, subprocess, sys, time
uid, log, *command = sys.argv[1:]
said = lambda word: word in pathlib.Path(log).read_text()

def skills():
    for d in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            if (d / 'cmdline').read_bytes().endswith(b'main.py\\0'):
                yield int(d.name)
        except OSError:
            pass

def wait_for(word):
    end = time.monotonic() + 30
    while not said(word):
        assert time.monotonic() < end, word
        time.sleep(0.01)

p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
assert p.stdout.readline() == b'ready\\n'
before = set(skills())
calls = 'kill,pidfd_send_signal'
tracer = subprocess.Popen(['strace', '-f', '-p', str(p.pid), '-o', log, '-e', 'trace=' + calls,
                           '-e', 'inject=' + calls + ':delay_enter=3s:when=1'],
                          stderr=subprocess.PIPE)
assert b'attached' in tracer.stderr.readline()
p.stdin.write(b'begin\\n')
wait_for('SIGKILL')
child, = set(skills()) - before
os.kill(child, 9)
assert p.stdout.readline() == b'9\\n'
for i in range(100):
    pathlib.Path('/proc/sys/kernel/ns_last_pid').write_text(str(child - 1))
    other = subprocess.Popen(['sleep', '60'], user=int(uid))
    if other.pid == child:
        break
    other.kill()
    other.wait()
assert other.pid == child and not said('DELAYED')
wait_for('DELAYED')
print('alive' if other.poll() is None else 'killed', flush=True)
other.kill()
p.stdin.close()
assert p.wait() == 0
"""


def test_a_number_that_is_given_out_again_before_a_signal(ssb):
    """The observer's signal to an attacker is delayed until another process has the attacker's pid:
    the other process is not killed."""
    log = ssb.write(ssb.work / "log", "")
    r = harness.execute(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
                         harness.PYTHON, "-c", HOLD_UP, str(ssb.uid), log, *ssb.identity(),
                         ssb.binary, "run", "-q", ssb.skill(ATTACK)], env=ssb.environment(),
                        cwd=ssb.work).ok()
    assert r.text == "alive\n", log.read_text()


# Renames a file away and back, again and again. It runs with a high priority: otherwise the file
# would not move often enough on a busy machine.
TO_AND_FRO = """
import os, sys, time
here, away = sys.argv[1], sys.argv[1] + '.away'
os.setpriority(os.PRIO_PROCESS, 0, -20)
while True:
    os.rename(here, away)
    time.sleep(1e-6)
    os.rename(away, here)
    time.sleep(1e-6)
"""


@contextlib.contextmanager
def renamed_to_and_fro(path):
    """Another process renames the file away and back: during the `with` block, the file has its
    name only about half of the time."""
    with subprocess.Popen([harness.PYTHON, "-c", TO_AND_FRO, path]) as p:
        try:
            yield
        finally:
            p.kill()


def test_renames_hide_no_violation(ssb):
    """The kernel refuses to resolve ".." with RESOLVE_IN_ROOT while other processes rename files.
    The observer must still resolve "..", in a path and in the target of a symlink."""
    code = """
        import os
        def attempt(path):
            try:
                os.open(path, os.O_RDONLY)
            except OSError:
                pass
        pids = []
        for i in range(3):
            pids.append(os.fork())
            if pids[-1] == 0:
                os.mkdir(f'/tmp/a{i}')
                while True:
                    os.rename(f'/tmp/a{i}', f'/tmp/b{i}')
                    os.rename(f'/tmp/b{i}', f'/tmp/a{i}')
        os.symlink('../' * 1300 + 'etc', '/tmp/l')
        for i in range(40):
            attempt('/tmp/' + '../tmp/' * 570 + '..' + os.environ['HOME'] + f'/.ssh/{i}')
            attempt('/tmp/l/shadow')
        for pid in pids:
            os.kill(pid, 9)
    """
    ssb.inside(code, resources={"max_processes": 16}).ok()
    end = [line for line in ssb.last_record() if "summary" in line][-1]
    assert end["counters"]["violations"] == 80, end


def test_no_run_begins_unseen(ssb):
    """Another process renames the command's file all the time. If its execve works nevertheless,
    the record has the exec and both violations."""
    place = ssb.mkdir("place")
    command = ssb.write(place / "command", pathlib.Path("/bin/cat").read_bytes(), 0o755)
    started = []
    with renamed_to_and_fro(command):
        for _ in range(120):
            r = ssb.run("-q", "-w", place, "--", command, ssb.home / ".netrc", "/etc/shadow")
            if r.code == 1 and b"shadow: No such file" in r.err:
                started.append((ssb.last_trace(), ssb.last_record()))
            if len(started) == 20:
                break
    assert len(started) > 5, r
    assert {len(trace["policy_violations"]) for trace, _ in started} == {2}
    for _, record in started:
        execs = [line["data"] for line in record if line.get("data", {}).get("op") == "exec"]
        assert [(e["path"], e["status"]) for e in execs] == [(str(command), "asked")], execs


def test_the_search_for_the_command_is_not_the_skills(ssb):
    """The sandbox tries each directory of PATH to find the command: the tries that fail are not in
    the record."""
    place = ssb.mkdir("place")
    command = ssb.write(place / "a-command", "#!/bin/sh\ntrue\n", 0o755)
    path = f"/nowhere/bin:{place}/sub:/usr/bin:{place}"
    ssb.run("-q", "-r", place, "--env", "PATH", "--", "a-command", env={"PATH": path}).ok()
    told = [(e["path"], e["status"]) for e in events(ssb, op="exec")]
    assert told == [(str(command), "asked")]
    assert ssb.last_trace()["policy_violations"] == []


PRELOADED = """
#include <fcntl.h>
__attribute__((constructor)) static void look(void)
{
    static const char *const names[] = { "environ", "mem", "maps", "fd/0", "root/etc/shadow" };
    char path[64] = "/proc/1/";
    for (int i = 0; i < 5; i++) {
        __builtin_strcpy(path + 8, names[i]);
        (void)open(path, O_RDONLY);
    }
}
"""


def test_ps_is_excused_for_what_ps_does(ssb):
    """ps reads the environment of every process, which is denied but is not a violation. Any other
    attempt by ps is a violation."""
    ssb.run("-q", "--", "/usr/bin/ps", "aux").ok()
    assert ssb.last_trace()["policy_violations"] == []
    assert events(ssb, path="/proc/1/environ", status="denied")
    source = ssb.write(ssb.work / "look.c", PRELOADED)
    library = ssb.work / "look.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
    r = ssb.run("-q", "-r", ssb.work, "--env", "LD_PRELOAD", "--", "/usr/bin/ps", "aux",
                env={"LD_PRELOAD": str(library)})
    violations = json.dumps(ssb.last_trace()["policy_violations"])
    for name in ("mem", "maps", "fd/0", "root/etc/shadow"):
        assert f"/proc/1/{name}" in violations, (name, r)


# Starts 100 threads; each makes one call and stays. Then tries to open two secrets.
CROWD = """
import os, threading
stop = threading.Event()
def ask():
    try:
        os.open("/tmp/none", os.O_RDONLY)
    except OSError:
        pass
    stop.wait()
threads = [threading.Thread(target=ask) for _ in range(100)]
for t in threads:
    t.start()
for path in ("/etc/shadow", os.environ["HOME"] + "/.ssh/id_ed25519"):
    try:
        os.open(path, os.O_RDONLY)
    except OSError:
        print("refused")
stop.set()
"""


@pytest.mark.parametrize("files", [64, 128, 256])
def test_a_crowd_of_threads_does_not_blind_the_observer(ssb, files):
    """The observer keeps fds for each thread of the skill. Even with a low limit it keeps enough
    free fds to examine the next attempts."""
    r = ssb.as_caller(["prlimit", f"--nofile={files}:{files}", ssb.binary, "run", "-q", "--",
                       "/usr/bin/python3", "-c", CROWD]).ok()
    assert r.text == "refused\n" * 2
    told = events(ssb, op="open")
    for path in ("/etc/shadow", str(ssb.home / ".ssh/id_ed25519")):
        assert any(e["path"] == path and e["status"] == "denied" for e in told), path
    assert all(e["program"] and e["pid"] for e in told)


@pytest.mark.parametrize("ssb", ["user"], indirect=True)
def test_in_a_directory_that_no_user_may_enter(ssb):
    """The observer cannot look into a directory whose mode forbids it. Attempts there are recorded
    with their true name as far as it can be resolved, and are violations if they are outside the
    plan."""
    work = ssb.mkdir("work")
    ssb.mkdir("work/shut")
    read = ssb.mkdir("read")
    ssb.mkdir("read/shut", 0o600)
    code = f"""
        import os
        os.symlink('shut', {str(work)!r} + '/link')
        os.chmod({str(work)!r} + '/shut', 0o600)
        for path, flags in (({str(work)!r} + '/link/f', os.O_RDONLY),
                            ({str(read)!r} + '/shut/f', os.O_WRONLY | os.O_CREAT)):
            try:
                os.open(path, flags)
            except OSError as e:
                print(e.errno)
        try:
            os.mkdir({str(work)!r} + '/link/made')
        except PermissionError:
            pass
    """
    ssb.inside(code, flags=["--write", work, "--read", read]).ok()
    told = {line["data"]["path"]: (line["data"]["status"], line.get("violation", False))
            for line in ssb.last_record() if "/shut/" in str(line.get("data", {}).get("path"))}
    assert told == {f"{work}/shut/f": ("asked", False), f"{work}/shut/made": ("asked", False),
                    f"{read}/shut/f": ("denied", True)}


@pytest.mark.parametrize("how", ["cwd", "fd", "self"])
@pytest.mark.parametrize("ssb", ["user"], indirect=True)
def test_behind_a_directory_that_no_user_may_enter(ssb, how):
    """The skill's working directory is beneath a directory to which the skill gives mode 0. What
    the skill opens from there, even the owner's keys by a symlink, is recorded by its true name."""
    ssb.write(ssb.home / ".ssh/id_ed25519", harness.SECRET)
    work = ssb.mkdir("work")
    ssb.mkdir("work/shut")
    ssb.mkdir("work/shut/in")
    begin = {"cwd": "", "fd": "", "self": "/proc/self/fd/%d/"}[how]
    code = f"""
        import os
        os.chdir({str(work)!r} + '/shut/in')
        fd = os.open('.', os.O_PATH)
        os.symlink({str(ssb.home)!r} + '/.ssh', 'keys')
        open('mine', 'w').close()
        os.chmod({str(work)!r} + '/shut', 0)
        begin = {begin!r} % fd if {begin!r} else ''
        if {how!r} == 'fd':
            os.chdir('/')
        for name in ('keys/id_ed25519', 'mine', 'none'):
            try:
                os.open(begin + name, os.O_RDONLY, dir_fd=fd if {how!r} == 'fd' else None)
            except OSError as e:
                print(name, e.errno)
    """
    assert ssb.inside(code, flags=["--write", work]).ok().text.split() == \
        ["keys/id_ed25519", "2", "none", "2"]
    os.chmod(work / "shut", 0o755)
    told = [(line["data"]["path"], line["data"]["status"], line.get("violation", False))
            for line in ssb.last_record() if line.get("data", {}).get("op") == "open"
            and line["data"].get("mode") == "read"
            and line["data"]["path"].startswith((f"{work}/shut/in/", f"{ssb.home}/.ssh"))]
    assert told == [(f"{ssb.home}/.ssh/id_ed25519", "denied", True),
                    (f"{work}/shut/in/mine", "asked", False),
                    (f"{work}/shut/in/none", "absent", False)]
