"""The record says what each change in a grant was: two exchanged names, the target of a symlink,
the extended attribute that was set or removed."""
import os
import textwrap

import pytest
import test_record
from test_observer import blocked, changed, check, read, seen, wrote

CWD, EMPTY, NOFOLLOW, EXCHANGE = -100, 0x1000, 0x100, 2
SETXATTRAT, REMOVEXATTRAT = 463, 466

PRELUDE = f"""
def exchange(one, two, flags={EXCHANGE}):
    if libc.renameat2({CWD}, os.fsencode(one), {CWD}, os.fsencode(two), flags) < 0:
        return ctypes.get_errno()
class Args(ctypes.Structure):
    _fields_ = [('value', ctypes.c_uint64), ('size', ctypes.c_uint32), ('flags', ctypes.c_uint32)]
value = ctypes.create_string_buffer(b'x')
args = Args(ctypes.addressof(value), 1, 0)
def setxattrat(fd, path, flags, name):
    return libc.syscall({SETXATTRAT}, fd, path, flags, name, ctypes.byref(args), 16)
def removexattrat(fd, path, flags, name):
    return libc.syscall({REMOVEXATTRAT}, fd, path, flags, name)
ACL, NOTE = 'system.posix_acl_access', 'user.note'
# What `setfacl -m u:UID:rw` writes.
READERS = b''.join([struct.pack('<I', 2), *(struct.pack('<HHI', *e) for e in (
    (1, 6, 2**32 - 1), (2, 6, os.getuid()), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1),
    (32, 4, 2**32 - 1)))])
"""


def attribute(path, op="setxattr", name="user.note", status="asked", **more):
    return changed(path, op, status, attribute=name, **more)


def held(path, op="setxattr", reason="read_only", name="user.note"):
    return blocked(path, op, reason, attribute=name, error="EROFS")


# name: (code, expected events[, flags]), as CASES in test_observer.py
CASES = {
    "two names are exchanged": (
        "os.mkdir(W + '/d'); assert exchange(W + '/old', W + '/d') is None\n"
        "assert os.path.isdir(W + '/old') and os.path.isfile(W + '/d')\n"
        "os.rename(W + '/d', W + '/e'); assert exchange(W + '/e', W + '/new', 1) is None",
        [changed("W/d", "mkdir"),
         changed("W/old", "rename", path2="W/d", mode="exchange"),
         changed("W/d", "rename", path2="W/e", mode=None),
         changed("W/e", "rename", path2="W/new", mode=None)]),
    "an exchange with what is not there": (
        "assert exchange(W + '/old', W + '/none') == exchange(W + '/none', W + '/old') == 2\n"
        "assert exchange(W + '/old', R + '/none') in (2, 18)",
        [changed("W/old", "rename", "absent", path2="W/none", mode="exchange"),
         changed("W/none", "rename", "absent", path2="W/old", mode="exchange"),
         changed("W/old", "rename", "absent", path2="R/none", mode="exchange")]),
    "an exchange takes from both ends": (
        "assert exchange(W + '/old', R + '/file') == exchange(R + '/file', W + '/old') == 30\n"
        "assert exchange(W + '/old', HOME + '/.ssh/id_ed25519') == 2\n"
        "open(W + '/mine', 'w').close()\n"
        "for one, two in ((W + '/mine', W + '/.envrc'), (W + '/.envrc', W + '/mine')):\n"
        "    assert exchange(one, two) == 30",
        [blocked("W/old", "rename", "read_only", path2="R/file", mode="exchange"),
         blocked("R/file", "rename", "read_only", path2="W/old", mode="exchange"),
         blocked("W/old", "rename", "credential_store", path2="HOME/.ssh/id_ed25519",
                 mode="exchange"),
         wrote("W/mine", "create"),
         blocked("W/mine", "rename", "protected", path2="W/.envrc", mode="exchange"),
         blocked("W/.envrc", "rename", "protected", path2="W/mine", mode="exchange")]),
    "where a symlink leads": (
        "os.symlink('/etc/shadow', W + '/s'); os.symlink('../old', 't',"
        " dir_fd=os.open(W, os.O_PATH))\n"
        "os.unlink(W + '/s'); os.symlink(b'\\xff\\n' + b'x' * 4093, W.encode() + b'/s')\n"
        "assert attempt(os.symlink, 'x' * 4096, W + '/u') == 36\n"
        "assert attempt(os.symlink, '/etc', R + '/s') == 30",
        [changed("W/s", "symlink", leads_to="/etc/shadow"),
         read("W"), changed("W/t", "symlink", leads_to="../old"), changed("W/s", "unlink"),
         changed("W/s", "symlink", leads_to="\udcff\n" + "x" * 4093),
         seen("file_write", "symlink", "denied", None, reason="unreadable", error="ENAMETOOLONG"),
         blocked("R/s", "symlink", "read_only", leads_to="/etc")]),
    "a list of who may read": (
        "os.setxattr(W + '/old', ACL, READERS); assert os.listxattr(W + '/old') == [ACL]\n"
        "os.removexattr(W + '/old', ACL)",
        [attribute("W/old", name="system.posix_acl_access"),
         attribute("W/old", "removexattr", "system.posix_acl_access")]),
    "an attribute by every call": (
        "os.chdir(W); fd = os.open('old', os.O_RDONLY); os.symlink('old', 'l')\n"
        "for i, (path, follow) in enumerate([('old', True), ('l', True), (fd, True), ('l', False),\n"
        "                                    ('none', True)]):\n"
        "    attempt(os.setxattr, path, 'user.%d' % i, b'x', follow_symlinks=follow)\n"
        "    attempt(os.removexattr, path, 'user.%d' % i, follow_symlinks=follow)",
        [read("W/old"), changed("W/l", "symlink", leads_to="old"),
         *(attribute(path, op, f"user.{i}", status) for op in ("setxattr", "removexattr")
           for i, (path, status) in enumerate([("W/old", "asked")] * 3 + [
               ("W/l", "asked"), ("W/none", "absent")]))]),
    "an attribute by the newest calls": (
        f"fd = os.open(W + '/old', os.O_RDONLY); os.symlink('old', W + '/l'); os.chdir(W)\n"
        f"setxattrat({CWD}, b'l', 0, b'user.a'); setxattrat({CWD}, b'l', {NOFOLLOW}, b'user.b')\n"
        f"setxattrat(fd, b'', {EMPTY}, b'user.c'); setxattrat({CWD}, b'', {EMPTY}, b'user.d')\n"
        f"removexattrat(fd, b'', {EMPTY}, b'user.c'); removexattrat({CWD}, b'l', 0, b'user.a')",
        [read("W/old"), changed("W/l", "symlink"), attribute("W/old", name="user.a"),
         attribute("W/l", name="user.b"), attribute("W/old", name="user.c"),
         attribute("W", name="user.d"), attribute("W/old", "removexattr", "user.c"),
         attribute("W/old", "removexattr", "user.a")]),
    "an attribute of what may not be changed": (
        "fd = os.open(R + '/file', os.O_RDONLY)\n"
        "for path in R + '/file', W + '/.envrc', '/usr/bin/env':\n"
        "    assert attempt(os.setxattr, path, NOTE, b'x') == 30\n"
        "assert attempt(os.setxattr, fd, ACL, READERS) == 30\n"
        "assert attempt(os.removexattr, R + '/file', NOTE) == 30\n"
        "assert attempt(os.setxattr, HOME + '/.ssh/id_ed25519', NOTE, b'x') == 2\n"
        "assert attempt(os.setxattr, '/srv/.ssh/x', NOTE, b'x') == 2",
        [read("R/file"), held("R/file"), held("W/.envrc", reason="protected"),
         held("/usr/bin/env"), held("R/file", name="system.posix_acl_access"),
         held("R/file", "removexattr"),
         blocked("HOME/.ssh/id_ed25519", "setxattr", "credential_store", attribute="user.note"),
         blocked("/srv/.ssh/x", "setxattr", "outside_plan", attribute="user.note")]),
    "a name that is no attribute's": (
        "assert attempt(os.setxattr, W + '/old', 'user.\\udcff\\n', b'x') is None\n"
        "assert attempt(os.setxattr, W + '/old', 'user.' + 'x' * 251, b'x') == 34\n"
        "assert libc.setxattr((W + '/old').encode(), 1, b'x', 1, 0) == -1",
        [attribute("W/old", name="user.\udcff\n"), attribute("W/old", name="user." + "x" * 251),
         seen("file_write", "setxattr", "denied", None, reason="unreadable", error="EFAULT")]),
    "attributes that are only read": (
        "os.listxattr(W + '/old'); attempt(os.getxattr, W + '/old', NOTE)", []),
}


@pytest.mark.parametrize("name", CASES)
def test_every_change_is_told_as_it_was(ssb, name):
    code, *rest = CASES[name]
    check(ssb, name, (PRELUDE + code, *rest))


def test_the_words_for_people(ssb):
    """trace.json and `audit show` describe each change in words. Outside the sandbox, the same
    calls work."""
    d = ssb.mkdir("d")
    code = f"""
        import ctypes, os
        os.chdir({str(d)!r})
        open('a', 'w').close(); open('b', 'w').close()
        os.symlink('/etc/\x1b[31mpasswd', 'l')
        os.setxattr('a', 'user.note', b'x'); os.removexattr('a', 'user.note')
        print(ctypes.CDLL(None).renameat2(-100, b'a', -100, b'b', 2))
    """
    assert ssb.inside(code, write=[d]).ok().text == "0\n"
    _, document = test_record.check(ssb)
    told = [e["message"].replace(f"{d}/", "") for e in document["events"]
            if e["kind"] == "file_write" and e["data"]["path"].startswith(f"{d}/")]
    assert told == ["open a (create)", "open b (create)", "symlink l -> /etc/\x1b[31mpasswd",
                    "setxattr a (user.note)", "removexattr a (user.note)",
                    "rename a to b (exchange)"]
    shown = ssb.ssb("audit", "show", "last").ok().text.replace(f"{d}/", "")
    for words in ("make the symlink l -> /etc/", "set an attribute of a (user.note)",
                  "remove an attribute of a (user.note)", "exchange a and b"):
        assert words in shown, shown
    assert "\x1b" not in shown and "[31mpasswd" in shown
    os.unlink(d / "l")
    assert ssb.as_caller(["/usr/bin/python3", "-c", textwrap.dedent(code)]).ok().text == "0\n"


def test_repeats_are_counted(ssb):
    """Repeats are counted separately for each attribute and for each target of a symlink."""
    d = ssb.mkdir("d")
    ssb.inside(f"""
        import os
        os.chdir({str(d)!r})
        open('f', 'w').close()
        for i in range(100):
            os.setxattr('f', 'user.%d' % (i % 2), b'%d' % i)
            os.symlink('%d' % (i % 2), 'l')
            os.unlink('l')
    """, write=[d]).ok()
    lines, _ = test_record.check(ssb)
    told = {line["seq"]: (line["data"]["op"], line["data"].get("attribute"),
                          line["data"].get("leads_to"))
            for line in lines if line["kind"] == "file_write" and "repeat_of" not in line
            and line["data"]["path"] in (f"{d}/f", f"{d}/l") and "mode" not in line["data"]}
    assert sorted(told.values(), key=str) == [
        ("setxattr", "user.0", None), ("setxattr", "user.1", None), ("symlink", None, "0"),
        ("symlink", None, "1"), ("unlink", None, None)]
    again = {told[line["repeat_of"]][0]: line["count"] for line in lines
             if line.get("repeat_of") in told}
    assert again == {"setxattr": 49, "symlink": 49, "unlink": 99}
