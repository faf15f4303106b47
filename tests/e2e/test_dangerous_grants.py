"""Dangerous places (/, /proc, /sys, /dev): only the owner can grant some of them; the others
cannot be granted."""
import os
import socket
import stat

import pytest

import harness
from harness import SECRET

pytestmark = pytest.mark.usefixtures("host_mounts")

CPUS = "/sys/devices/system/cpu/online"


def policy(ssb, text):
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", text, 0o600)


def told(ssb, r, word):
    """The run prints a warning with this word, and the trace has the warning, too."""
    assert "WARNING: " in r.errors and word in r.errors, r.errors
    assert any(word in w for w in ssb.last_trace()["plan"]["warnings"])


@pytest.mark.parametrize("flag, path, word", [
    ("-r", "/proc", "/proc of its own"), ("-w", "/proc", "/proc of its own"),
    ("-r", "/proc/self", "/proc of its own"), ("-r", "/proc/1", "/proc of its own"),
    ("-w", "/sys", "--read /sys"), ("-w", "/sys/fs/cgroup", "--read /sys"),
    ("-r", "/dev", "--write /dev/kvm"), ("-w", "/dev", "--write /dev/kvm"),
    ("-r", "/dev/pts", "has its own"), ("-w", "/", "in addition to --read /")])
def test_never_granted(ssb, flag, path, word):
    r = ssb.run(flag, path, "--", "echo", "started")
    assert r.code == 125 and b"started" not in r.out, repr(r)
    assert "is refused" in r.errors and word in r.errors.split("help: ")[1], r.errors


def test_sys_can_be_read(ssb):
    r = ssb.run("-r", "/sys", "--", "cat", CPUS)
    assert r.ok().text == open(CPUS).read()
    told(ssb, r, "read /sys")
    assert ssb.run("-q", "-r", "/sys", "--", "true").ok().err == b""
    assert ssb.run("--", "cat", CPUS).code == 1, "control: it is not there without the grant"
    policy(ssb, "grants: {read: [/sys]}\n")
    r = ssb.inside(f"print(open('{CPUS}').read())", read=["/sys"]).ok()
    assert r.text.strip() == open(CPUS).read().strip()
    told(ssb, r, "granted by the policy file")


def test_sys_cannot_be_written(root):
    name = "/sys/kernel/mm/transparent_hugepage/enabled"
    code = f"""
    import errno, os
    try:
        os.close(os.open({name!r}, os.O_WRONLY))
        print('opened')
    except OSError as e:
        print(errno.errorcode[e.errno])
    """
    assert root.inside(code, flags=["-r", "/sys"]).ok().text.strip() in ("EROFS", "EACCES")
    assert root.bare(code).ok().text.strip() == "opened", "control: nothing was written"


@pytest.fixture
def device(ssb):
    """device(name) makes a device in /dev that belongs to the caller and works like /dev/zero."""
    made = []

    def make(name, mode=0o666, where="/dev"):
        path = f"{where}/ssb-test-{os.getpid()}-{name}"
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
        made.append(path)
        os.chown(path, ssb.uid, ssb.gid)
        os.chmod(path, mode)
        return path
    yield make
    for path in made:
        os.unlink(path)


USE = """
import errno, json, os, sys
seen = {}
for name, flags in (('read', os.O_RDONLY), ('write', os.O_WRONLY)):
    try:
        fd = os.open(os.environ['DEVICE'], flags)
        seen[name] = len(os.read(fd, 8)) if name == 'read' else os.write(fd, b'x')
    except OSError as e:
        seen[name] = errno.errorcode[e.errno]
print(json.dumps(seen))
"""


def use(ssb, path, *flags, **fields):
    r = ssb.inside(USE, env={"DEVICE": str(path)}, flags=["--env", "DEVICE", *flags], **fields)
    return r, r.ok().json()


def test_one_device(ssb, device):
    path = device("one")
    assert use(ssb, path)[1] == {"read": "ENOENT", "write": "ENOENT"}
    r, seen = use(ssb, path, "-r", path)
    assert seen == {"read": 8, "write": "EACCES"}
    told(ssb, r, path)
    r, seen = use(ssb, path, "-w", path)
    assert seen == {"read": 8, "write": 1}
    plan = ssb.last_trace()["plan"]
    assert plan["unix_sockets"], "a device is not a directory for a socket"
    # /dev/null and the other devices that every sandbox has still work if the owner grants one more
    # device.
    r = ssb.run("-r", path, "--", "sh", "-c", "echo x > /dev/null && head -c 4 /dev/zero | wc -c")
    assert r.ok().text == "4\n"


def test_device_by_manifest_and_policy(ssb, device):
    path = device("asked")
    r = ssb.inside(USE, write=[path])
    assert r.code == 125 and "/dev" in r.errors
    policy(ssb, f"grants: {{write: [{path}]}}\n")
    assert use(ssb, path, write=[path])[1] == {"read": 8, "write": 1}


def test_device_of_the_caller_alone(ssb, device):
    """Only the caller may use the device (mode 0600). A user's skill can use it. Root's skill has
    another uid than root, so the run is refused with a message."""
    path = device("mine", 0o600)
    r = ssb.run("-w", path, "--", "echo", "started")
    if ssb.is_root:
        assert r.code == 125 and b"started" not in r.out and "0600" in r.errors, repr(r)
    else:
        assert use(ssb, path, "-w", path)[1] == {"read": 8, "write": 1}


@pytest.fixture
def device_directory(ssb):
    d = f"/dev/ssb-test-{os.getpid()}-dir"
    os.mkdir(d)
    os.chown(d, ssb.uid, ssb.gid)
    yield d
    os.rmdir(d)


def test_directory_of_devices(ssb, device_directory, device):
    d = device_directory
    path = device("x", where=d)
    assert use(ssb, path, "-r", d)[1] == {"read": 8, "write": "EACCES"}
    assert use(ssb, path, "-w", d)[1] == {"read": 8, "write": 1}
    r = ssb.run("-w", d, "--", "sh", "-c", f"ls -A {d}; echo x > {d}/new")
    assert r.code != 0 and r.text.split() == [os.path.basename(path)], repr(r)
    ssb.bare(["sh", "-c", f"echo x > {d}/new"]).ok()  # control
    os.unlink(f"{d}/new")
    r = ssb.run("-w", f"{d}/later/deep", "--", "true")
    assert r.code == 125 and "devices" in r.errors and not os.path.exists(f"{d}/later")


def test_device_outside_dev(ssb, device):
    path = device("elsewhere", where=str(ssb.work))
    r = ssb.run("-r", path, "--", "echo", "started")
    assert r.code == 125 and b"started" not in r.out and "only in /dev" in r.errors


LOOK = """
import json, os, socket
base, home = os.environ['BASE'], os.environ['HOME']
def read(p):
    try:
        return open(p).read()
    except OSError as e:
        return type(e).__name__
def write(p):
    try:
        open(p, 'w').close()
        return 'ok'
    except OSError as e:
        return type(e).__name__
def connect(p):
    try:
        socket.socket(socket.AF_UNIX).connect(p)
        return 'ok'
    except OSError as e:
        return type(e).__name__
print(json.dumps({
    'secret': read(base + '/other/secret'), 'listing': sorted(os.listdir(base + '/other')),
    'write': write(base + '/other/new'), 'home': sorted(os.listdir(home)),
    'key': read(home + '/.ssh/id_ed25519'), 'socket': connect(base + '/other/socket'),
    'pids': len([n for n in os.listdir('/proc') if n.isdigit()]),
    'passwd': len(read('/etc/passwd').splitlines()), 'shadow': read('/etc/shadow'),
    'devices': sorted(os.listdir('/dev')), 'tmp': os.listdir('/tmp') + os.listdir('/var/tmp'),
    'tmp can be written': [write(d + '/x') for d in ('/tmp', '/var/tmp', home)],
    'var': os.path.isdir('/var/lib'), 'mounted': os.listdir(base + '/mounted')}))
"""


@pytest.fixture
def place(ssb):
    """A directory outside the home with a secret, a listening socket and an empty directory."""
    ssb.write(ssb.base / "other/secret", SECRET)
    ssb.mkdir("mounted")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(ssb.base / "other/socket"))
    listener.listen(1)
    os.chmod(ssb.base / "other/socket", 0o777)
    yield ssb.base
    listener.close()


def look(ssb, place, *flags, bare=False, **fields):
    env = {"BASE": str(place)}
    if bare:
        return ssb.bare_probe(LOOK, env=env)
    r = ssb.inside(LOOK, env=env, flags=["--env", "BASE", *flags], **fields)
    return r, r.ok().json()


def test_whole_machine_to_read(ssb, place):
    r, seen = look(ssb, place, "-r", "/")
    told(ssb, r, "whole machine")
    assert seen["secret"] == SECRET and seen["listing"] == ["secret", "socket"]
    assert seen["write"] == "OSError" and seen["var"]
    # The sandbox's own places (home, /proc, /tmp and others) do not show those of the host.
    assert seen["home"] == [] and seen["key"] == "FileNotFoundError"
    assert seen["pids"] < 5 and seen["passwd"] == 3 and seen["tmp"] == []
    assert seen["shadow"] == "FileNotFoundError"
    assert "kmsg" not in seen["devices"] and "null" in seen["devices"]
    assert seen["tmp can be written"] == ["ok"] * 3
    assert seen["socket"] != "ok", "a name without an endpoint"
    control = look(ssb, place, bare=True)
    assert control["socket"] == "ok" and SECRET in control["key"] and control["passwd"] > 3
    assert control["write"] == "ok"
    os.unlink(place / "other/new")
    assert ssb.inside(LOOK, env={"BASE": str(place)}, flags=["--env", "BASE"]).code != 0, \
        "control: without the grant it is not there"


def test_named_beside_the_whole(ssb, place):
    _, seen = look(ssb, place, "-r", "/", "-r", ssb.home / ".ssh", "-w", place / "other")
    assert SECRET in seen["key"] and seen["write"] == "ok" and seen["home"] == [".ssh"]
    assert (place / "other/new").exists()


def test_whole_machine_by_policy(ssb, place):
    assert ssb.inside(LOOK, env={"BASE": str(place)}, read=["/"]).code == 125
    policy(ssb, 'grants: {read: ["/"]}\n')
    r, seen = look(ssb, place, read=["/"])
    assert seen["secret"] == SECRET and seen["home"] == []
    told(ssb, r, "whole machine")
    policy(ssb, 'always: {read: ["/"]}\n')
    assert look(ssb, place)[1]["secret"] == SECRET


@pytest.mark.parametrize("where", ["mounted", "other/mounted"])
def test_proc_that_lies_in_the_whole(ssb, mounts, where):
    """The host's procfs is mounted a second time, in another place: a grant of / does not show it,
    and it cannot be granted by its name."""
    ssb.mkdir("other")
    d = ssb.mkdir(where)
    mounts("proc", "proc", d)
    script = f"ls {d} 2>&1 | grep -c -e self -e cmdline; ls -d {ssb.base}/other"
    r = ssb.run("-r", "/", "--", "sh", "-c", script)
    assert r.text.split() == ["0", str(ssb.base / "other")], repr(r)
    assert "self" in os.listdir(d), "control: it is mounted"
    r = ssb.run("-r", d, "--", "true")
    assert r.code == 125 and "is refused" in r.errors, "nor is it granted by name"


def test_mounts_in_the_whole(ssb, mounts):
    """A grant of / shows other file systems that are mounted beneath it, with their files."""
    for d in (ssb.mkdir("mounted"), ssb.mkdir("other/mounted")):
        mounts("tmpfs", "ssb", d)
        ssb.write(d / "file", SECRET)
        assert SECRET in ssb.run("-r", "/", "--", "cat", d / "file").ok().text


def test_home_of_the_password_file(ssb):
    """HOME differs from the caller's home in /etc/passwd: a manifest that asks for the home in
    /etc/passwd is refused, and the owner can grant it."""
    home = ssb.mkdir("real-home")
    ssb.write(home / ".ssh/id_ed25519", SECRET)
    passwd = ssb.write(ssb.base / "passwd", f"caller:x:{ssb.uid}:{ssb.gid}::{home}:/bin/sh\n")
    code = f"print(open('{home}/.ssh/id_ed25519').read())"
    as_if = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
             'mount --bind "$0" /etc/passwd && exec "$@"', passwd, *ssb.identity()]

    def run(*flags, read):
        skill = ssb.skill(code, read=[read])
        return harness.execute([*as_if, ssb.binary, "run", *flags, skill],
                               env=ssb.environment(None), cwd=ssb.work)

    for path in (home, home / ".ssh", home / ".ssh/id_ed25519"):
        r = run(read=path)
        assert r.code == 125 and "your own home" in r.errors, repr(r)
        assert SECRET not in r.text
    assert SECRET in run("--read", home, read=home).ok().text, "the owner grants it"
    assert ssb.bare(code).ok().text.strip() == SECRET, "control"
