"""What must not stay in a writable directory: setuid files, devices, sockets and FIFOs."""
import json
import os
import stat

import pytest

MODES = """
import ctypes, json, os, stat
d = os.environ['D']
libc = ctypes.CDLL(None, use_errno=True)
seen = {}
def attempt(name, f):
    path = d + '/' + name
    try:
        f(path)
        seen[name] = oct(stat.S_IMODE(os.lstat(path).st_mode))
    except OSError as e:
        seen[name] = 'denied'
def call(nr, *args):
    if libc.syscall(nr, *args) < 0:
        raise OSError(ctypes.get_errno(), 'x')
def plain(path, mode=0o755):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
def chmod(bits):
    def f(path):
        plain(path)
        os.chmod(path, bits)
    return f
def fchmod(path):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o755)
    os.fchmod(fd, 0o4755)
def fchmodat(path):
    plain(path)
    call(268, -100, path.encode(), 0o4755)
def fchmodat2(path):
    plain(path)
    call(452, -100, path.encode(), 0o6755, 0)
def openat2(path):
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
    call(437, -100, path.encode(), how, 24)
attempt('chmod_suid', chmod(0o4755))
attempt('chmod_sgid', chmod(0o2755))
attempt('fchmod', fchmod)
attempt('fchmodat', fchmodat)
attempt('fchmodat2', fchmodat2)
attempt('open', lambda p: plain(p, 0o4755))
attempt('creat', lambda p: call(85, p.encode(), 0o4755))
attempt('mknod_regular', lambda p: os.mknod(p, stat.S_IFREG | 0o4755))
attempt('openat2', openat2)
attempt('mkdir_sgid', lambda p: (os.mkdir(p), os.chmod(p, 0o2755)))
attempt('ordinary', chmod(0o750))
print(json.dumps(seen))
"""


def test_setuid_bits(ssb):
    d = ssb.mkdir("out")
    seen = ssb.probe(MODES, env={"D": str(d)}, flags=["--env", "D"], write=[d])
    assert seen["ordinary"] == "0o750"
    bad = [n for n in os.listdir(d) if os.lstat(d / n).st_mode & (stat.S_ISUID | stat.S_ISGID)]
    assert bad == [], seen
    outside = ssb.mkdir("outside")
    control = ssb.bare_probe(MODES, env={"D": str(outside)})
    for name in set(control) - {"ordinary"}:
        assert control[name] in ("0o4755", "0o2755", "0o6755"), f"control {name}: {control}"


NODES = """
import json, os, socket, stat
d = os.environ['D']
seen = {}
def attempt(name, f):
    try:
        f(d + '/' + name)
        seen[name] = 'ok'
    except OSError as e:
        seen[name] = 'denied'
attempt('char', lambda p: os.mknod(p, stat.S_IFCHR | 0o666, os.makedev(1, 3)))
attempt('block', lambda p: os.mknod(p, stat.S_IFBLK | 0o666, os.makedev(8, 0)))
attempt('fifo', lambda p: os.mkfifo(p))
attempt('socket_node', lambda p: os.mknod(p, stat.S_IFSOCK | 0o666))
attempt('socket', lambda p: socket.socket(socket.AF_UNIX).bind(p))
print(json.dumps(seen))
"""


def special(d):
    return sorted(n for n in os.listdir(d)
                  if not stat.S_ISREG(os.lstat(d / n).st_mode)
                  and not stat.S_ISDIR(os.lstat(d / n).st_mode))


def test_no_special_file_stays_in_a_grant(ssb):
    d = ssb.mkdir("out")
    seen = ssb.probe(NODES, env={"D": str(d)}, flags=["--env", "D"], write=[d])
    assert special(d) == [], seen
    outside = ssb.mkdir("outside")
    ssb.bare_probe(NODES, env={"D": str(outside)})
    expected = ["fifo", "socket", "socket_node"]
    assert special(outside) == (["block", "char"] + expected if ssb.is_root else expected)


def test_file_capabilities(ssb):
    d = ssb.mkdir("out")
    code = """
    import os
    p = os.environ['D'] + '/tool'
    open(p, 'w').close()
    try:
        os.setxattr(p, 'security.capability', bytes.fromhex('0100000200200000000000000000000000000000'))
        print('set')
    except OSError:
        print('denied')
    """
    r = ssb.inside(code, env={"D": str(d)}, flags=["--env", "D"], write=[d]).ok()
    assert r.text.strip() == "denied"
    if ssb.is_root:
        outside = ssb.mkdir("outside")
        assert ssb.bare(code, env={"D": str(outside)}).ok().text.strip() == "set"


PROTECTED = [".git/hooks/post-commit", ".git/config", ".envrc", ".vscode/tasks.json",
             ".claude/settings.json", ".mcp.json", "CLAUDE.md"]
# Shells read these files only in a home directory. In other directories they are protected only if
# they exist.
SHELL_FILES = [".bashrc", ".profile"]
WRITE_FILES = """
import json, os
seen = {}
for name in json.loads(os.environ['NAMES']):
    p = os.path.join(os.environ['D'], name)
    try:
        os.makedirs(os.path.dirname(p), exist_ok=True)
        with open(p, 'a') as f:
            f.write('echo pwned\\n')
        seen[name] = 'ok'
    except OSError as e:
        seen[name] = 'denied'
print(json.dumps(seen))
"""


def repository(ssb, name="project"):
    d = ssb.mkdir(name)
    ssb.as_caller(["git", "init", "-q", d]).ok()
    return d


def repository_copy(ssb, d):
    target = ssb.base / "copy"
    ssb.as_caller(["cp", "-r", d, target]).ok()
    return target


def written(ssb, d, names, **kw):
    return ssb.probe(WRITE_FILES, env={"D": str(d), "NAMES": json.dumps(names)},
                     flags=["--env", "D", "--env", "NAMES", *kw.pop("flags", [])], **kw)


@pytest.mark.parametrize("state", ["absent", "present"])
def test_protected_places(ssb, state):
    d = repository(ssb)
    names = PROTECTED + (SHELL_FILES if state == "present" else [])
    if state == "present":
        for name in names:
            if not (d / name).exists():
                ssb.write(d / name, "original\n")
    before = {n: (d / n).read_bytes() if (d / n).exists() else None for n in names}
    seen = written(ssb, d, [*names, "src/main.py", "README"], write=[d])
    assert seen.pop("src/main.py") == "ok"
    assert seen.pop("README") == "ok"
    assert [n for n, v in seen.items() if v == "ok"] == []
    after = {n: (d / n).read_bytes() if (d / n).exists() else None for n in names}
    assert after == before
    outside = repository_copy(ssb, d)
    control = ssb.bare_probe(WRITE_FILES, env={"D": str(outside), "NAMES": json.dumps(names)})
    assert set(control.values()) == {"ok"}


def test_protected_place_cannot_be_renamed_over(ssb):
    d = repository(ssb)
    code = """
    import os
    d = os.environ['D']
    open(d + '/x', 'w').write('echo pwned')
    os.mkdir(d + '/evil')
    open(d + '/evil/post-commit', 'w').write('echo pwned')
    for f in (lambda: os.rename(d + '/x', d + '/.envrc'),
              lambda: os.rename(d + '/x', d + '/.git/config'),
              lambda: os.rename(d + '/.git', d + '/.git2'),
              lambda: os.rename(d + '/.git/hooks', d + '/old'),
              lambda: os.rename(d + '/evil', d + '/.git/hooks'),
              lambda: os.symlink(d + '/evil', d + '/.vscode'),
              lambda: os.link(d + '/x', d + '/CLAUDE.md')):
        try:
            f()
        except OSError:
            pass
    """
    ssb.inside(code, env={"D": str(d)}, flags=["--env", "D"], write=[d]).ok()
    assert (d / ".git/hooks").is_dir()
    assert not (d / ".git/hooks/post-commit").exists()
    for name in (".envrc", ".git/config", "CLAUDE.md"):
        assert not (d / name).exists() or b"pwned" not in (d / name).read_bytes()
    assert not (d / ".vscode").is_symlink()


def test_nothing_is_left_of_the_protection(ssb):
    d = repository(ssb)
    before = sorted(p.relative_to(d) for p in d.rglob("*"))
    ssb.inside("pass", write=[d]).ok()
    assert sorted(p.relative_to(d) for p in d.rglob("*")) == before


def test_protected_place_granted_by_name(ssb):
    d = repository(ssb)
    ssb.write(d / ".envrc", "original\n")
    seen = written(ssb, d, [".envrc", "CLAUDE.md"], write=[d], flags=["-w", str(d / ".envrc")])
    assert seen[".envrc"] == "ok"
    assert seen["CLAUDE.md"] == "denied"
    assert "pwned" in (d / ".envrc").read_text()


def test_protected_file_granted_by_name_is_made(ssb):
    """The remedy for a denied write to a protected file works: a run with this --write makes an
    empty file, and not a directory."""
    d = repository(ssb)
    ssb.run("-w", d, "--", "sh", "-c", f"echo x > {d}/.envrc")
    (tried,) = [e["data"] for e in ssb.last_trace()["policy_violations"]]
    flag, path = tried["remedy"].split(" ", 1)
    assert (flag, path) == ("--write", str(d / ".envrc")) and not (d / ".envrc").exists()
    ssb.run("-w", d, flag, path, "--", "sh", "-c", f"ls -s {path}; echo x > {path}").ok()
    assert (d / ".envrc").read_text() == "x\n"
    assert (d / ".envrc").stat().st_uid == ssb.uid
    ssb.run("-w", d, "-w", d / ".claude/a", "-w", d / "plain", "--", "true").ok()
    assert (d / ".claude/a").is_dir() and (d / "plain").is_dir(), "control: others are directories"


@pytest.mark.parametrize("hooks", [".git/hooks", "hooks", "outside"])
def test_links_in_a_protected_directory(ssb, hooks):
    """Symlinks in a directory of hooks or agent settings lead to files elsewhere in the grant:
    these files are protected, too. core.hooksPath may name the hooks directory, at any place."""
    hooks = str(ssb.mkdir("outside")) if hooks == "outside" else hooks
    grants = [repository(ssb, n) for n in ("linked", "linked-control")]
    for d in grants:
        ssb.as_caller(["git", "config", "core.hooksPath", hooks], cwd=d).ok()
        for path in ("scripts/hook", "agent/settings.json", "agent/skill/SKILL.md"):
            ssb.write(d / path, "mine\n")
        script = (f"mkdir -p {hooks} .claude/skills; to=$(realpath scripts/hook); "
                  f"ln -s $to {hooks}/pre-commit; ln -s pre-commit {hooks}/inside; "
                  f"ln -s me@host.1 {hooks}/nothing-inside; ln -s /nothing/x {hooks}/far; "
                  "ln -s ../agent/settings.json .claude; ln -s ../../agent/skill .claude/skills")
        ssb.as_caller(["sh", "-c", script], cwd=d).ok()
    attack = ("cd {}; for f in scripts/hook agent/settings.json agent/skill/SKILL.md; "
              "do echo y > $f; done; mv scripts s2; echo fine > scripts/new; true")
    ssb.run("-w", grants[0], "--", "sh", "-c", attack.format(grants[0])).ok()
    ssb.as_caller(["sh", "-c", attack.format(grants[1])])
    for path in ("scripts/hook", "agent/settings.json", "agent/skill/SKILL.md"):
        assert (grants[0] / path).read_text() == "mine\n"
        there = grants[1] / path.replace("scripts", "s2")
        assert there.read_text() == "y\n", "control"
    assert (grants[0] / "scripts/new").exists(), "the directory around it is not held"
    (grants[0] / hooks / "post-merge").symlink_to(grants[0] / "scripts/later")
    later = grants[0] / "scripts/later"
    make = ["--", "sh", "-c", f"echo evil > {later}"]
    # In the second turn the hooks are granted read-only. They are symlinks, and git on the host
    # still executes their targets, so the targets stay protected.
    for flags in ([], ["-r", grants[0] / hooks] if hooks == ".git/hooks" else []):
        r = ssb.run("-w", grants[0], *flags, *make)
        assert r.code != 0 and str(later) in r.errors and not later.exists(), r
    ssb.run("-w", grants[0], "-w", grants[0] / hooks, *make).ok()
    assert later.exists(), "control: hooks that the owner grants"


def test_a_protected_name_that_is_a_symlink(ssb):
    """If a protected name is a symlink, the skill can change neither the symlink nor the protected
    file at its target."""
    grant = ssb.mkdir("linked")
    ssb.write(grant / "real" / "settings.json", "{}")
    ssb.own(grant / "real")
    (grant / ".claude").symlink_to("real")
    attack = ("cd %s; rm -f .claude; mv .claude x; echo y > .claude/settings.json; "
              "echo y > real/settings.json; mv real r2; echo fine > fine" % grant)
    # Control: without the sandbox all of these changes succeed.
    control = ssb.mkdir("linked-control")
    ssb.write(control / "real" / "settings.json", "{}")
    (control / ".claude").symlink_to("real")
    ssb.as_caller(["sh", "-c", attack.replace(str(grant), str(control))])
    assert not (control / ".claude").is_symlink() and not (control / "real").exists()

    ssb.run("-w", grant, "--", "sh", "-c", attack)
    assert (grant / ".claude").is_symlink()
    assert (grant / "real" / "settings.json").read_text() == "{}"
    assert (grant / "fine").read_text() == "fine\n"
