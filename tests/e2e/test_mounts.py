"""Mounts of the host: beneath grants, and mounts that change during a run."""
import json
import os
import select
import shutil
import subprocess

import pytest

from harness import ATTEMPT, PYTHON, SECRET, execute, wait_for

pytestmark = pytest.mark.usefixtures("host_mounts")

def in_namespace(ssb, script, *args, unshare=("-m",), **kw):
    """Runs `script` as root in a new mount namespace, then "$@" as the caller in the same
    namespace. The mounts end with the namespace."""
    return execute(["unshare", *unshare, "sh", "-c", script + '\nexec "$@"', "sh",
                    *ssb.identity(), *args], env=ssb.environment(), cwd=ssb.work, **kw)


def run_there(ssb, script, *args, **kw):
    return in_namespace(ssb, script, ssb.binary, "run", *args, **kw)


@pytest.mark.parametrize("fstype, name", [("proc", "version"), ("sysfs", "kernel/mm")])
@pytest.mark.parametrize("access", ["--read", "--write"])
def test_kernel_files_beneath_a_grant(ssb, fstype, name, access):
    d, below = ssb.mkdir("d"), ssb.mkdir("d/a/below")
    ssb.write(d / "f", "plain\n")
    command = ["sh", "-c", f"cat {d}/f; ls -d {below}/{name}"]
    mount = f"mount -t {fstype} none {below}"
    r = run_there(ssb, mount, access, d, "--", *command)
    assert r.code == 125 and b"plain" not in r.out, repr(r)
    assert str(d) in r.errors and "is refused" in r.errors and "help: " in r.errors
    assert "it lies in" not in r.errors, "it is the other way round"
    skill = ssb.skill("print('started')", **{access[2:]: [d]})
    r = run_there(ssb, mount, skill)
    assert r.code == 125 and b"started" not in r.out, repr(r)
    control = in_namespace(ssb, mount, *command).ok()
    assert control.text == f"plain\n{below}/{name}\n", "it is there, unconfined"
    r = run_there(ssb, "", access, d, "--", *command)
    assert r.out == b"plain\n", "without the mount the grant works"


@pytest.mark.parametrize("access", ["--read", "--write"])
def test_kernel_files_that_are_bound_beneath_a_grant(ssb, access):
    """A bind mount of a part of /proc beneath a grant stops the run, as a mount of proc does."""
    d, below = ssb.mkdir("d"), ssb.mkdir("d/below")
    r = run_there(ssb, f"mount --bind /proc/sys {below}", access, d, "--", "echo", "started")
    assert r.code == 125 and b"started" not in r.out, repr(r)
    other = ssb.mkdir("other")
    bind = f"mount --bind {other} {below}"
    assert run_there(ssb, bind, access, d, "--", "echo", "started").ok().text == "started\n"


def test_repository_on_a_mount_beneath_a_grant(ssb):
    """Repositories are not searched for on other mounts beneath a writable grant. The hooks of one
    there are writable, and a warning says so."""
    d, below, other = ssb.mkdir("d"), ssb.mkdir("d/below"), ssb.mkdir("other")
    ssb.mkdir("other/repo/.git/hooks")
    hook = below / "repo/.git/hooks/pre-commit"
    command = ["-w", d, "--", "sh", "-c", f"echo loot > {hook}"]

    def said():
        return [w for w in ssb.last_trace()["plan"]["warnings"] if "another mount" in w]

    run_there(ssb, f"mount --bind {other} {below}", *command).ok()
    assert (other / "repo/.git/hooks/pre-commit").exists(), "why it has to be said"
    assert len(said()) == 1 and str(d) in said()[0]
    ssb.mkdir("d/below/repo/.git/hooks")
    assert ssb.run(*command).code != 0 and not hook.exists()
    assert said() == [], "without the mount it is found and held"


def test_a_grant_on_a_mount_beneath_another(ssb):
    """An inner grant is on another mount beneath an outer grant: the outer grant's mount must not
    hide it."""
    d, below, other = ssb.mkdir("d"), ssb.mkdir("d/below"), ssb.mkdir("other")
    ssb.mkdir("other/out")
    ssb.write(other / "f", "plain\n")
    command = ["-r", d, "-w", below / "out", "--", "sh", "-c",
               f"cat {below}/f; echo kept > {below}/out/f"]
    r = run_there(ssb, f"mount --bind {other} {below}", *command)
    assert r.ok().text == "plain\n" and (other / "out/f").read_text() == "kept\n"


FIFOS = """
import json, os
seen = {}
for name in ('fifo', 'below/fifo'):
    try:
        fd = os.open(os.environ['D'] + '/' + name, os.O_WRONLY | os.O_NONBLOCK)
        seen[name] = os.write(fd, b'loot')
    except OSError as e:
        seen[name] = 'denied'
seen['f'] = open(os.environ['D'] + '/f').read()
print(json.dumps(seen))
"""


@pytest.mark.parametrize("submount", [True, False], ids=["submount", "plain"])
def test_fifo_beneath_the_private_home(ssb, mounts, submount):
    """A grant beneath the home has FIFOs of the host. Landlock has to allow writing in the home,
    but no write may reach a FIFO."""
    d, below = ssb.home / "data", ssb.home / "data/below"
    ssb.write(d / "f", "plain")
    ssb.mkdir("home/data/below")
    if submount:
        mounts("tmpfs", "ssb-below", below, data="mode=0755")
    readers = []
    for p in (d / "fifo", below / "fifo"):
        os.mkfifo(p)
        ssb.own(p)
        p.chmod(0o666)
        readers.append(os.open(p, os.O_RDWR | os.O_NONBLOCK))
    try:
        r = ssb.inside(FIFOS, flags=["-r", d, "--env", f"D={d}"])
        if submount and not ssb.is_root:
            assert r.code == 125 and r.out == b"" and str(d) in r.errors, repr(r)
        elif not submount or r.code != 125:
            assert r.ok().json()["f"] == "plain"
        assert select.select(readers, [], [], 0.2)[0] == [], "nothing arrives"
        control = ssb.bare_probe(FIFOS, env={"D": str(d)})
        assert control == {"fifo": 4, "below/fifo": 4, "f": "plain"}
        assert [os.read(fd, 9) for fd in readers] == [b"loot", b"loot"]
    finally:
        for fd in readers:
            os.close(fd)


# Runs in a namespace whose mounts are shared. Its arguments are a directory and the command that
# starts the skill. Prints what the host and the skill saw.
PROPAGATION = """
import json, os, subprocess, sys
d, command = sys.argv[1], sys.argv[2:]
bare = command[len(command) - command[::-1].index('--'):]
def mounts():
    return open('/proc/self/mountinfo').read()
def start(argv):
    p = subprocess.Popen(argv, stdin=-1, stdout=-1, text=True)
    assert p.stdout.readline() == 'up\\n'
    return p
before = mounts()
skill = start(command)
peer = start(['unshare', '-m', '--propagation', 'slave', *bare])
during = mounts()
subprocess.run(['mount', '-t', 'tmpfs', 'late', d + '/below'], check=True)
open(d + '/below/late', 'w').close()
seen = {n: json.loads(p.communicate('look\\n', timeout=20)[0])
        for n, p in (('skill', skill), ('peer', peer))}
subprocess.run(['umount', d + '/below'], check=True)
seen['shared'] = 'shared:' in before
seen['during'] = during == before
seen['after'] = mounts() == before
seen['code'] = skill.returncode
print(json.dumps(seen))
"""
LOOK = """
import json, os, sys
print('up', flush=True)
sys.stdin.readline()
print(json.dumps(sorted(os.listdir(sys.argv[1]))))
"""


@pytest.mark.parametrize("access", ["-w", "-r"])
def test_mounts_do_not_cross_the_border(ssb, access):
    d, below = ssb.mkdir("d"), ssb.mkdir("d/below")
    ssb.write(below / "early", "")
    r = execute(["unshare", "-m", "--propagation", "shared", PYTHON, "-c", PROPAGATION, d,
                 *ssb.identity(), ssb.binary, "run", access, d, "--", PYTHON, "-c", LOOK, below],
                env=ssb.environment(), cwd=ssb.work)
    seen = r.ok().json()
    assert seen["shared"], "control: the namespace passes mounts on"
    assert seen["peer"] == ["late"], "control: a namespace that listens gets the mount"
    assert seen["skill"] == ["early"], "the skill's view is as it was at the start"
    assert seen["during"] and seen["after"], "and the host has no mount of ours"
    assert seen["code"] == 0


# Mounts a file over a part of every mounted proc, also of those that other tests have mounted. As
# long as one proc has no such mount in it, the kernel lets a user mount a new proc.
MASK = ("for p in $(awk '$3 == \"proc\" { print $2 }' /proc/mounts); do "
        "mount --bind /dev/null \"$p/version\"; done")

LOST = ATTEMPT + """
seen['env'] = sorted(os.environ)
home = os.environ['REAL_HOME']
attempt('ssh', lambda: open(home + '/.ssh/id_ed25519').read())
attempt('list', lambda: os.listdir(home))
attempt('write', lambda: open(home + '/left', 'w'))
attempt('inet', lambda: socket.socket(socket.AF_INET))
attempt('unix', lambda: socket.socket(socket.AF_UNIX))
attempt('tmp', lambda: open('/tmp/ssb-lost-%d' % os.getpid(), 'w'))
attempt('granted', lambda: open(os.environ['DATA'] + '/f').read())
attempt('own', lambda: open(os.environ['TMPDIR'] + '/f', 'w'))
print(json.dumps(seen))
"""


def layer_states(ssb):
    trace = json.loads((ssb.base / "trace.json").read_bytes())
    return {name: layer["state"] for name, layer in trace["layers"].items()}


def test_mounts_are_lost(user):
    d = user.mkdir("data")
    user.write(d / "f", "x")
    env = ["--env", f"REAL_HOME={user.home}", "--env", f"DATA={d}", "--trace-output",
           user.base / "trace.json"]
    skill = user.skill(LOST, read=[d])
    r = run_there(user, MASK, *env, skill)
    assert r.code == 125 and r.out == b"" and "proc" in r.errors, repr(r)
    assert set(layer_states(user).values()) != {"on"}
    r = run_there(user, MASK, "--best-effort", "mounts", *env, skill)
    seen = r.ok().json()
    assert seen.pop("granted") == "ok" and seen.pop("own") == "ok"
    names = seen.pop("env")
    assert "XDG_STATE_HOME" not in names and "USER" not in names
    assert set(seen.values()) == {"denied"}, seen
    assert not (user.home / "left").exists()
    assert "WITHOUT" in r.errors and "mounts" in r.errors
    states = layer_states(user)
    assert states["mounts"] == "off_best_effort" and states["landlock"] == states["seccomp"] == "on"
    for name, state in states.items():
        assert (state == "off_best_effort") == (name in r.errors.split("WITHOUT")[1].split(";")[0])
    r = run_there(user, "", "--best-effort", "mounts", *env, skill).ok()
    assert "WITHOUT" not in r.errors, "control: where mounts work nothing is lost"
    assert set(layer_states(user).values()) == {"on"}
    outside = user.bare_probe(LOST.replace("/tmp/ssb-lost", f"{user.home}/lost"),
                              env={"REAL_HOME": str(user.home), "DATA": str(d),
                                   "TMPDIR": str(user.home)})
    outside.pop("env")
    assert set(outside.values()) == {"ok"}, "control: unconfined all of it works"


def test_other_layers_are_not_given_up_with_it(user):
    """Only the layer that --best-effort names may be missing: if another layer fails, the run
    stops."""
    r = run_there(user, MASK, "--best-effort", "caps", "--", "echo", "started")
    assert r.code == 125 and b"started" not in r.out


def test_private_keys_of_the_host(ssb):
    """The host's private key can be read by every user, as after a careless chmod: the sandbox
    shows the certificates, but not this key."""
    plant = "mount -t tmpfs -o mode=0755 none /etc/ssl/private; " \
            f"echo {SECRET} > /etc/ssl/private/host.key; chmod 0644 /etc/ssl/private/host.key"
    look = ["sh", "-c", "cat /etc/ssl/private/host.key; ls /etc/ssl; ls /etc/ssl/certs | head -3"]
    r = run_there(ssb, plant, "--", *look).ok()
    lines = r.text.splitlines()
    assert SECRET not in r.text and "private" not in lines and "certs" in lines
    assert len(lines) > lines.index("certs") + 1, "certificates are there"
    control = in_namespace(ssb, plant, *look).ok()
    assert SECRET in control.text and "private" in control.text.splitlines()


def test_workdir_by_a_symlink_waits_for_the_end_of_the_host(user):
    """Until the old root is unmounted, it can be reached as "/..". A skill whose working directory
    is a symlink to /../PLACE must not start in that place of the host. The system calls are
    delayed, so there is enough time for the attack."""
    place = user.mkdir("place")
    skill = user.mkdir("skill")
    user.write(skill / "skillsandbox.yaml", f"""\
        skill: {{name: workdir, version: 1.0.0}}
        permissions: {{}}
        entrypoint: {{command: {PYTHON}, args: ["-c", "import os; print(os.stat('.').st_ino)"], workdir: /skill/out}}
        """)
    for to, there in ((f"/..{place}", place), (f"..{place}", place), ("/tmp", None)):
        (skill / "out").symlink_to(to)
        r = user.as_caller(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pivot_root,umount2",
                            "-e", "inject=pivot_root:delay_exit=100000",
                            "-e", "inject=umount2:delay_enter=200000",
                            user.binary, "run", "--audit", "off", skill])
        if there is None:
            assert r.code == 0 and r.text.strip().isdigit(), repr(r)    # control
        else:
            assert r.text.strip() != str(there.stat().st_ino) and r.code == 125, repr(r)
        (skill / "out").unlink()


@pytest.mark.parametrize("how", ["command", "interpreter"])
def test_program_is_no_way_by_an_open_file(ssb, how):
    """The run has no Landlock, and a manifest names a path through /proc/self/fd as the skill's
    program or interpreter. The fds of the process that becomes the skill must not lead to programs
    of the host that are not granted."""
    d, skill = ssb.mkdir("d"), ssb.mkdir("skill")
    tool, by_command = ssb.base / "tool", how == "command"
    shutil.copy(shutil.which("echo"), tool)
    ssb.own(tool)

    def run(path):
        ssb.write(skill / "script", f"#!{path} reached\n", 0o755)
        ssb.write(skill / "skillsandbox.yaml", f"""\
            skill: {{name: program, version: 1.0.0}}
            permissions: {{}}
            entrypoint: {{command: {path if by_command else "/skill/script"}, args: [reached]}}
            """)
        return ssb.as_caller(["strace", "-f", "-qq", "-o", "/dev/null",
                              "-e", "trace=landlock_create_ruleset",
                              "-e", "inject=landlock_create_ruleset:error=ENOSYS",
                              ssb.binary, "run", "--best-effort", "landlock", "--audit", "off",
                              "-r", d, skill])
    for n in range(3, 14):
        r = run(f"/proc/self/fd/{n}/../tool")
        assert "reached" not in r.text and r.code in (126, 127), (n, r)
    shutil.copy(tool, d / "tool")
    assert "reached" in run(d / "tool").ok().text, "control: where it is granted it runs"


def test_workdir_is_no_way_by_an_open_file(ssb):
    """The process that becomes the skill still has fds of the supervisor: directories of the host,
    on mounts where protected names are not read-only. No working directory may lead there, neither
    by the manifest nor by a symlink in the skill."""
    d = ssb.mkdir("d")
    ssb.mkdir("d/.git/hooks")
    code = "open('.git/hooks/evil', 'w').write('x')"
    skill = ssb.mkdir("skill")
    for n in range(3, 40):
        for workdir, to in ((f"/proc/self/fd/{n}", None), ("/skill/out", f"/dev/fd/{n}")):
            if to:
                (skill / "out").symlink_to(to)
            ssb.write(skill / "skillsandbox.yaml", f"""\
                skill: {{name: workdir, version: 1.0.0}}
                permissions: {{filesystem: {{write: ["{d}"]}}}}
                entrypoint: {{command: {PYTHON}, args: ["-c", "{code}"], workdir: {workdir}}}
                """)
            r = ssb.run("--audit", "off", "-w", d, skill)
            assert not (d / ".git/hooks/evil").exists(), (workdir, to)
            assert r.code == 125 and "is not in the sandbox" in r.errors, repr(r)
            (skill / "out").unlink(missing_ok=True)
    r = ssb.run("--audit", "off", "-w", d, "--", "sh", "-c", f"cd {d} && echo x > .git/hooks/evil")
    assert r.code != 0 and "Read-only file system" in r.errors, "control: by its name it is held"
    ssb.bare(f"import os; os.chdir('{d}'); {code}")
    assert (d / ".git/hooks/evil").exists(), "control: unconfined it works"


def test_place_of_a_grant_is_not_made_by_a_symlink(user):
    """While the sandbox is built, another process that can write to the outer grant (a skill in
    another run) replaces a directory on the way to the inner grant by a symlink to /../PLACE:
    nothing may be made at PLACE. The system call is delayed, so there is enough time for the
    attack."""
    outer, _, _, place = map(user.mkdir, ("p", "p/a", "p/a/b", "place"))
    calls = user.write(user.base / "calls", "")
    command = ["strace", "-f", "-qq", "-o", calls, "-e", "trace=pivot_root",
               "-e", "inject=pivot_root:delay_exit=2000000", user.binary, "run", "--audit", "off",
               "-w", outer, "-r", outer / "a/b", "--", "true"]
    run = user.popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                     stderr=subprocess.STDOUT)
    wait_for(lambda: "pivot_root" in calls.read_text())
    (outer / "a").rename(outer / "moved")
    (outer / "a").symlink_to(f"/..{place}")
    said = run.communicate(timeout=60)[0]
    assert run.returncode == 125 and str(outer / "a/b").encode() in said, said
    assert list(place.iterdir()) == []
    (outer / "a").unlink()
    (outer / "moved").rename(outer / "a")
    user.as_caller(command).ok()    # control: without the symlink the run starts


# The server of a FUSE file system. It records each name that is looked up, and answers that the
# name does not exist.
FAR = """
import ctypes, errno, os, struct, subprocess, sys, threading
far, *command = sys.argv[1:]
fuse = os.open('/dev/fuse', os.O_RDWR)
options = f'fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other'.encode()
assert ctypes.CDLL(None).mount(b'far', far.encode(), b'fuse', 0, options) == 0
seen = []
def serve():
    while True:
        try:
            request = os.read(fuse, 1 << 17)
        except OSError:
            return
        op, unique = struct.unpack_from('<IQ', request, 4)
        if op == 26:    # INIT
            answer = struct.pack('<IIIIHHII', 7, 31, 0, 0, 0, 0, 4096, 1).ljust(64, bytes(1))
            os.write(fuse, struct.pack('<IiQ', 16 + len(answer), 0, unique) + answer)
        elif op not in (2, 36, 42):    # FORGET, INTERRUPT, BATCH_FORGET
            if op == 1:    # LOOKUP
                seen.append(request[40:].split(bytes(1))[0].decode())
            os.write(fuse, struct.pack('<IiQ', 16, -errno.ENOENT, unique))
threading.Thread(target=serve, daemon=True).start()
code = subprocess.run(command).returncode
print('seen', *sorted(set(seen)))
sys.exit(code)
"""
LED_FAR = {
    "a hook": ("ln -s {far}/a/b {d}/sub/.git/hooks/x", "{d}/sub/.git/hooks/x"),
    "hooks": ("rm -r {d}/sub/.git/hooks; ln -s {far}/a {d}/sub/.git/hooks", "{d}/sub/.git/hooks/x"),
    "settings": ("ln -sf {far}/a {d}/sub/.git/config", "{d}/sub/.git/config"),
    "by another link": ("ln -s {far} {d}/l; ln -s ../../../l/a/b {d}/sub/.git/hooks/x",
                        "{d}/sub/.git/hooks/x"),
    "a directory at the top": ("ln -s {far}/a/b {d}/.claude", "{d}/.claude/x"),
    "a skill": ("mkdir -p {d}/.claude/skills; ln -s {far}/a {d}/.claude/skills/x",
                "{d}/.claude/skills/x"),
    "a git directory": ("rm -r {d}/sub/.git; echo 'gitdir: {far}/a' > {d}/sub/.git", "{far}/a"),
    "settings that include": ("git config -f {d}/sub/.git/config include.path {far}/a/b",
                              "{far}/a"),
    "hooks by settings": ("git config -f {d}/sub/.git/config core.hooksPath {far}/a/b", "{far}/a"),
}


@pytest.mark.parametrize("how", LED_FAR)
def test_what_a_skill_leaves_leads_to_no_far_place(ssb, how):
    """An earlier run left a symlink or a setting of git that leads to a FUSE file system. The file
    system's server may never answer, so the next run must look up nothing in it."""
    d, far, sub = ssb.mkdir("d"), ssb.mkdir("far"), ssb.mkdir("d/sub")
    ssb.as_caller(["git", "init", "-q", sub]).ok()
    leave, name = (s.format(d=d, far=far) for s in LED_FAR[how])

    def there(*command):
        return execute(["unshare", "-m", "--propagation", "private", PYTHON, "-c", FAR, far,
                        *ssb.identity(), *command], env=ssb.environment(), cwd=ssb.work)
    ssb.as_caller(["mkdir", "-p", sub / ".git/hooks"]).ok()
    ssb.as_caller(["sh", "-c", leave]).ok()
    assert there("test", "-e", name).text == "seen a\n", "the way leads there"
    r = there(ssb.binary, "run", "-w", d, "--", "true").ok()
    assert r.text == "seen\n", repr(r)
