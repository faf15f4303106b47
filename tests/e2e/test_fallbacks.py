"""If a layer cannot be applied, the run stops with a message; with --best-effort it continues and
reports which layer is missing."""
import json
import os
import socket

import pytest

from harness import ATTEMPT, PYTHON, without_userns

pytestmark = pytest.mark.usefixtures("host_mounts")

MS_BIND = 4096


def test_no_user_namespaces_stops_the_run(user):
    r = without_userns(user, "run", "--", "/bin/echo", "started")
    assert r.code == 125, repr(r)
    assert b"started" not in r.out
    assert "userns" in r.errors or "user namespace" in r.errors
    assert "max_user_namespaces" in r.errors, "the remedy"


def test_doctor_tells_what_is_missing(user):
    r = without_userns(user, "doctor", "--json")
    checks = {c["name"]: c for c in json.loads(r.out)}
    assert not checks["userns"]["ok"] and checks["userns"]["remedy"]


PROBE = ATTEMPT + """
seen['env'] = sorted(os.environ)
home = os.environ['REAL_HOME']
attempt('ssh', lambda: open(home + '/.ssh/id_ed25519').read())
attempt('inet', lambda: socket.socket(socket.AF_INET))
attempt('unix', lambda: socket.socket(socket.AF_UNIX))
attempt('write', lambda: open(home + '/left', 'w'))
attempt('granted', lambda: open(os.environ['DATA'] + '/f').read())
print(json.dumps(seen))
"""


def test_best_effort_userns_is_still_a_sandbox(user):
    d = user.mkdir("data")
    user.write(d / "f", "x")
    skill = user.skill(PROBE, read=[d], allow=["REAL_HOME", "DATA"])
    r = without_userns(user, "run", "--best-effort", "userns", skill,
                       env={"REAL_HOME": str(user.home), "DATA": str(d), "TOKEN": "x"})
    assert r.code == 0, repr(r)
    seen = json.loads(r.out)
    assert seen["ssh"] == seen["inet"] == seen["unix"] == seen["write"] == "denied"
    assert seen["granted"] == "ok"
    assert "TOKEN" not in seen["env"]
    assert r.err, "the loss must be loud"
    t = user.last_trace()
    assert "best" in json.dumps(t["layers"])
    control = user.bare_probe(PROBE, env={"REAL_HOME": str(user.home), "DATA": str(d)})
    assert {control[k] for k in ("ssh", "inet", "unix", "write", "granted")} == {"ok"}


BY_NAME = ATTEMPT + """
import shutil
key = os.environ['REAL_HOME'] + '/.ssh/id_ed25519'
attempt('chmod', lambda: os.chmod(key, 0o666))
attempt('by fd', lambda: os.fchmod(os.open(key, 3), 0o666))
attempt('chown', lambda: os.chown(key, -1, os.getgid()))
attempt('xattr', lambda: os.setxattr(key, 'user.evil', b'x'))
attempt('truncate', lambda: os.truncate(key, 0))
attempt('O_TRUNC', lambda: os.open(key, os.O_TRUNC))
own = os.environ['TMPDIR'] + '/f'
fd = os.open(own, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
attempt('own', lambda: (os.fchmod(fd, 0o600), os.utime(fd, (0, 0)), os.ftruncate(fd, 0),
                        os.chmod(own, 0o755), os.utime(own, (0, 0)), shutil.copy2(own, own + '2')))
print(json.dumps(seen))
"""


def test_best_effort_userns_changes_no_file_by_its_name(user):
    """Without the userns layer, a skill tries to change the owner's file: mode, group, attributes,
    size. Each try is denied (Landlock does not cover modes, owners and attributes)."""
    key = user.home / ".ssh/id_ed25519"
    before = key.stat()
    skill = user.skill(BY_NAME, allow=["REAL_HOME"])
    env = {"REAL_HOME": str(user.home)}
    r = without_userns(user, "run", "--best-effort", "userns", skill, env=env)
    seen = r.ok().json()
    assert seen.pop("own") == "ok"
    assert "ok" not in seen.values() and len(seen) == 6, seen
    assert key.stat() == before and "evil" not in "".join(os.listxattr(key))
    control = user.bare_probe(BY_NAME, env={**env, "TMPDIR": str(user.home)})
    assert set(control.values()) == {"ok"}, control


OTHERS = ATTEMPT + """
import resource
pid = int(os.environ['OTHER'])
idle = os.sched_param(0)
attempt('prlimit', lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (9, 9)))
attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
attempt('affinity', lambda: os.sched_setaffinity(pid, {0}))
attempt('scheduler', lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, idle))
attempt('param', lambda: os.sched_setparam(pid, idle))
attempt('own', lambda: (os.sched_setaffinity(0, {0}), os.sched_setscheduler(0, 3, idle)))
print(json.dumps(seen))
"""


def test_best_effort_userns_leaves_other_processes_alone(user):
    """Without the userns layer, the skill sees the user's other processes: it still cannot change
    their limits, priority, affinity or scheduler."""
    skill = user.skill(OTHERS, allow=["OTHER"])
    other = user.popen(["sleep", "60"])
    try:
        env = {"OTHER": str(other.pid)}
        before = os.sched_getaffinity(other.pid)
        seen = without_userns(user, "run", "--best-effort", "userns", skill, env=env).ok().json()
        assert seen.pop("own") == "ok" and set(seen.values()) == {"denied"}, seen
        assert os.sched_getaffinity(other.pid) == before
        assert os.sched_getscheduler(other.pid) == os.SCHED_OTHER
        control = user.bare(["sh", "-c", 'sleep 60 >&- 2>&- & OTHER=$! exec "$0" -c "$1"',
                             PYTHON, OTHERS]).ok().json()
        assert set(control.values()) == {"ok"}, control
    finally:
        other.kill()
        other.wait()


def test_best_effort_userns_refuses_egress(user):
    skill = user.skill("print('started')", egress=[{"domain": "a.example", "ports": [443]}])
    r = without_userns(user, "run", "--best-effort", "userns", skill)
    assert r.code == 125 and b"started" not in r.out


def test_best_effort_changes_nothing_where_the_layer_works(ssb):
    code = "import json, os; print(json.dumps(os.readlink('/proc/self/ns/user')))"
    outside = os.readlink("/proc/self/ns/user")
    assert ssb.probe(code, flags=["--best-effort", "userns"]) != outside


def test_masked_proc_stops_the_run(user):
    """Another file system is mounted over a part of /proc, as in a container: the run stops with a
    message."""
    script = 'mount --bind /dev/null /proc/timer_list 2>/dev/null || ' \
             'mount --bind /dev/null /proc/version; exec setpriv --ambient-caps=-all ' \
             '--inh-caps=-all -- "$0" "$@"'
    r = user.as_caller(["unshare", "--map-current-user", "--keep-caps", "--mount", "--pid",
                        "--fork", "sh", "-c", script, user.binary, "run", "--", "/bin/echo",
                        "started"])
    assert r.code == 125, repr(r)
    assert b"started" not in r.out and "proc" in r.errors


def overlay(runner, mounts, name="ovl", below=None):
    below = below or runner.mkdir(f"{name}-lower")
    upper, work, merged = [runner.mkdir(f"{name}-{part}") for part in ("upper", "work", "merged")]
    mounts("overlay", "ssb-overlay", merged,
           data=f"lowerdir={below},upperdir={upper},workdir={work}")
    return merged


def test_overlayfs_reads_come_from_a_snapshot(root, mounts):
    merged = overlay(root, mounts)
    root.write(merged / "f", "content", 0o600)
    show, flags = f"print(open('{merged}/f').read())", ["--read", merged]
    assert root.inside(show, flags=flags).ok().text == "content\n"
    r = root.inside(f"open('{merged}/f', 'w')", flags=flags)
    assert r.code == 1 and (merged / "f").read_text() == "content"
    # If only the manifest asks for the directory, the owner's permissions apply unchanged: the
    # skill has another uid and cannot read the file.
    r = root.inside(show, read=[merged])
    assert r.code == 1 and "PermissionError" in r.errors, repr(r)
    (merged / "f").chmod(0o644)
    assert root.inside(show, read=[merged]).ok().text == "content\n"


def test_overlayfs_skill_runs(root, mounts):
    merged = overlay(root, mounts)
    made = root.skill("print('from overlay')")
    for f in made.iterdir():
        root.write(merged / f.name, f.read_bytes(), 0o600)
    assert root.run(merged).ok().text == "from overlay\n"


def test_overlayfs_writes_fail_with_the_remedy(root, mounts):
    merged = overlay(root, mounts)
    r = root.inside("print('started')", write=[merged])
    assert r.code == 125 and b"started" not in r.out, repr(r)
    assert str(merged) in r.errors


UNIX = ATTEMPT + """
attempt('made', lambda: socket.socket(socket.AF_UNIX))
attempt('reached', lambda: socket.socket(socket.AF_UNIX).connect(%r))
print(json.dumps({**seen, **why}))
"""


@pytest.mark.parametrize("audit", ["full", "violations", "off"])
def test_without_an_overlay_no_socket_of_the_host_is_reached(user, mounts, audit):
    """The grant is an overlay on an overlay. The kernel allows no third overlay on top, so the
    sandbox cannot make its own. The skill still cannot reach the host's socket in the grant."""
    two = overlay(user, mounts, "two", below=overlay(user, mounts, "one"))
    with socket.socket(socket.AF_UNIX) as host:
        host.bind(str(two / "s"))
        (two / "s").chmod(0o777)
        host.listen()
        code = UNIX % str(two / "s")
        skill = user.skill(code, read=[two])
        r = user.run("--audit", audit, skill).ok()
        assert "restricted" in user.last_trace()["layers"]["seccomp"]["detail"]
        # If the run is audited, the skill can still make unix sockets for its own use.
        made = "PermissionError" if audit == "off" else "ok"
        assert r.json() == {"made": made, "reached": "PermissionError"}
        assert user.bare_probe(code) == {"made": "ok", "reached": "ok"}


@pytest.mark.parametrize("layer", ["userns", "net", "mounts", "env", "limits", "caps", "landlock",
                                   "seccomp"])
def test_every_layer_has_a_name(ssb, layer):
    assert ssb.run("--best-effort", layer, "--", "true").code == 0


def test_trace_tells_all_layers_on(ssb):
    ssb.run("--", "true").ok()
    text = json.dumps(ssb.last_trace()["layers"])
    assert "best" not in text
