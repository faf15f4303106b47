"""The files in the sandbox: only the declared files are visible, with their permissions."""
import pathlib
import shutil
import tempfile
import json
import os

import pytest

from harness import ATTEMPT, DECOYS, SECRET, execute, kernel

READ_ALL = """
import json, os
got = {}
for p in json.loads(os.environ['PATHS']):
    try:
        if os.path.isdir(p):
            got[p] = 'dir: ' + ' '.join(sorted(os.listdir(p)))
        else:
            got[p] = open(p, 'rb').read(4096).decode('utf-8', 'replace')
    except OSError as e:
        got[p] = None
print(json.dumps(got))
"""


def paths_env(paths):
    return {"PATHS": json.dumps([str(p) for p in paths])}


def test_decoys_are_invisible(ssb):
    paths = [ssb.home / p for p in DECOYS]
    got = ssb.probe(READ_ALL, env=paths_env(paths), flags=["--env", "PATHS"])
    assert set(got.values()) == {None}
    control = ssb.bare_probe(READ_ALL, env=paths_env(paths))
    assert all(SECRET in v for v in control.values())


def test_host_places_are_hidden(ssb):
    code = """
    import json, os
    def there(p):
        return bool(os.listdir(p)) if os.path.isdir(p) else os.path.exists(p)
    print(json.dumps({p: there(p) for p in json.loads(os.environ['PATHS'])}))
    """
    places = ["/etc/shadow", "/run", "/sys/kernel", "/boot", "/home", "/root/.profile", "/var/lib",
              "/var/log", "/opt", "/etc/ssh", "/etc/sudoers", "/proc/kcore",
              "/proc/sysrq-trigger"]
    places = [p for p in places if os.path.exists(p)]
    seen = ssb.probe(code, env=paths_env(places), flags=["--env", "PATHS"])
    # /home may be visible as the parent of $HOME, and entries of /proc may be visible as names.
    hidden = [p for p in places if not p.startswith(("/home", "/proc/"))]
    assert [p for p in hidden if seen[p]] == []
    control = ssb.bare_probe(code, env=paths_env(places))
    assert control["/etc/shadow"] and control["/run"]


def test_other_homes_are_hidden(ssb):
    other = ssb.mkdir("other-home")
    ssb.write(other / "diary", SECRET)
    code = "import json, os; print(json.dumps({d: os.listdir(d) for d in ('/home', '/') \
        if os.path.isdir(d)}))"
    seen = ssb.probe(code)
    assert SECRET not in str(seen)
    got = ssb.probe(READ_ALL, env=paths_env([other / "diary"]), flags=["--env", "PATHS"])
    assert list(got.values()) == [None]
    assert ssb.bare_probe(READ_ALL, env=paths_env([other / "diary"]))[str(other / "diary")]


def test_kernel_knobs_are_closed(ssb):
    code = """
    import json, os
    seen = {}
    for p in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sysrq-trigger',
              '/proc/sys/vm/overcommit_memory', '/proc/sys/fs/binfmt_misc/register'):
        try:
            os.close(os.open(p, os.O_WRONLY))
            seen[p] = 'writable'
        except OSError as e:
            seen[p] = 'denied'
    print(json.dumps(seen))
    """
    assert set(ssb.probe(code).values()) == {"denied"}


def test_control_knob_opens_for_root(root):
    code = "import os; os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)); print(1)"
    root.bare(code).ok()


TOUCH = ATTEMPT + """
d = os.environ['DIR']
attempt('read', lambda: open(d + '/file').read())
attempt('list', lambda: os.listdir(d))
attempt('append', lambda: open(d + '/file', 'a').write('more'))
attempt('truncate', lambda: os.truncate(d + '/file', 1))
attempt('chmod', lambda: os.chmod(d + '/file', 0o600))
attempt('utime', lambda: os.utime(d + '/file', (1, 1)))
attempt('create', lambda: open(d + '/new', 'w').write('new'))
attempt('mkdir', lambda: os.mkdir(d + '/newdir'))
attempt('symlink', lambda: os.symlink('x', d + '/newlink'))
attempt('link', lambda: os.link(d + '/file', d + '/hard'))
attempt('rename', lambda: os.rename(d + '/old', d + '/renamed'))
attempt('unlink', lambda: os.unlink(d + '/gone'))
attempt('reopen', lambda: os.open('/proc/self/fd/%d' % os.open(d + '/file', os.O_RDONLY),
                                  os.O_WRONLY))
print(json.dumps(seen))
"""


def data_dir(ssb, name="data"):
    d = ssb.mkdir(name)
    for f in ("file", "old", "gone"):
        ssb.write(d / f, "content of " + f)
    return d


def test_declared_read_is_read_only(ssb):
    d = data_dir(ssb)
    seen = ssb.probe(TOUCH, env={"DIR": str(d)}, flags=["--env", "DIR"], read=[d])
    assert seen.pop("read") == "ok"
    assert seen.pop("list") == "ok"
    assert [k for k, v in seen.items() if v == "ok"] == []
    assert (d / "file").read_text() == "content of file"
    assert sorted(os.listdir(d)) == ["file", "gone", "old"]


def test_declared_write_persists_and_belongs_to_the_caller(ssb):
    d = data_dir(ssb)
    seen = ssb.probe(TOUCH, env={"DIR": str(d)}, flags=["--env", "DIR"], write=[d])
    assert {k: v for k, v in seen.items() if v != "ok"} == {}
    assert (d / "new").read_text() == "new"
    assert (d / "renamed").exists() and not (d / "gone").exists()
    for name in ("new", "newdir", "newlink", "file"):
        st = os.lstat(d / name)
        assert (st.st_uid, st.st_gid) == (ssb.uid, ssb.gid), name


def test_undeclared_is_missing(ssb):
    d = data_dir(ssb)
    seen = ssb.probe(TOUCH, env={"DIR": str(d)}, flags=["--env", "DIR"])
    assert [k for k, v in seen.items() if v == "ok"] == []


def test_private_file_of_caller(ssb):
    """A manifest asks for a file with mode 0600 of the caller: a user's skill can read it. Root's
    skill has another uid and can read it only if the owner grants it with --read."""
    d = data_dir(ssb)
    ssb.write(d / "private", "private text", 0o600)
    env, flags = paths_env([d / "private"]), ["--env", "PATHS"]
    got = ssb.probe(READ_ALL, env=env, flags=flags, read=[d])
    assert (got[str(d / "private")] == "private text") == (not ssb.is_root), got
    got = ssb.probe(READ_ALL, env=env, flags=[*flags, "--read", d], read=[d])
    assert got[str(d / "private")] == "private text"


def test_single_file_grants(ssb):
    d = data_dir(ssb)
    code = """
    import os, json
    seen = {'read': open(os.environ['R']).read()}
    open(os.environ['W'], 'a').write('!')
    for n, m in (('R', 'a'),):
        try:
            open(os.environ[n], m).write('x')
            seen['append'] = 'ok'
        except OSError:
            seen['append'] = 'denied'
    seen['siblings'] = sorted(os.listdir(os.path.dirname(os.environ['R'])))
    print(json.dumps(seen))
    """
    seen = ssb.probe(code, env={"R": str(d / "file"), "W": str(d / "old")},
                     flags=["--env", "R", "--env", "W"], read=[d / "file"], write=[d / "old"])
    assert seen == {"read": "content of file", "append": "denied", "siblings": ["file", "old"]}
    assert (d / "old").read_text() == "content of old!"


def test_write_path_is_created_as_directory(ssb):
    d = ssb.mkdir("parent") / "made"
    ssb.inside("import os; open(os.environ['D'] + '/f', 'w').write('x')", env={"D": str(d)},
               flags=["--env", "D"], write=[d]).ok()
    assert (d / "f").read_text() == "x"
    assert d.stat().st_uid == ssb.uid


def test_missing_parents_of_a_write_path_belong_to_the_caller(ssb):
    d = ssb.base / "made" / "deep"
    ssb.inside(f"open('{d}/f', 'w')", write=[d]).ok()
    for p in (d, d.parent, d / "f"):
        assert p.stat().st_uid == ssb.uid


def test_write_path_that_cannot_be_made_is_refused(user):
    r = user.inside("print('started')", write=["/srv/not-allowed/to-make"])
    assert r.code == 125 and b"started" not in r.out


def test_write_path_is_not_created_through_a_symlink(ssb):
    real = ssb.mkdir("real")
    link = ssb.base / "link"
    link.symlink_to(real)
    r = ssb.inside("print('started')", write=[link / "made"])
    assert r.code == 125 and b"started" not in r.out
    assert not (real / "made").exists()
    ssb.inside("print('started')", write=[real / "made"]).ok()


def test_missing_read_is_a_warning(ssb):
    missing = ssb.base / "not-there"
    r = ssb.inside("print('started')", read=[missing]).ok()
    assert b"started" in r.out
    assert str(missing) in json.dumps(ssb.last_trace())


def test_tmp_and_home_are_private(ssb):
    name = f"ssb-private-{os.getpid()}-{ssb.kind}"
    code = f"""
    import json, os, tempfile
    for d in ('/tmp', '/var/tmp', os.environ['HOME'], os.environ['TMPDIR']):
        open(d + '/{name}', 'w').write('x')
    print(json.dumps({{'tmp': sorted(os.listdir('/tmp'))}}))
    """
    assert ssb.probe(code)["tmp"] == [name]
    for d in ("/tmp", "/var/tmp", ssb.home):
        assert not os.path.exists(f"{d}/{name}")
    # The second run sees only its own file: no file of the first run is left.
    assert ssb.probe(code)["tmp"] == [name]


def test_system_is_read_only(ssb):
    code = """
    import json, os
    seen = {}
    for d in ('/', '/usr', '/usr/bin', '/etc', '/skill', '/dev', '/proc', '/lib', '/bin'):
        try:
            open(d + '/ssb-probe', 'w').close()
            os.unlink(d + '/ssb-probe')
            seen[d] = 'writable'
        except OSError:
            seen[d] = 'denied'
    print(json.dumps(seen))
    """
    assert set(ssb.probe(code).values()) == {"denied"}
    assert ssb.probe(code.replace("'/', '/usr'", "'/tmp', '/usr'"))["/tmp"] == "writable"


def test_nosuid_nodev_everywhere(ssb):
    code = """
    import json, os
    bad = []
    for line in open('/proc/self/mountinfo'):
        fields = line.split()
        options = fields[5].split(',')
        if fields[4].startswith('/dev/') and not os.path.isdir(fields[4]):
            continue  # the six device nodes themselves
        if 'nosuid' not in options or ('nodev' not in options and fields[4] != '/dev/pts'):
            bad.append(line)
    print(json.dumps(bad))
    """
    assert ssb.probe(code) == []


# Makes a /dev whose devices belong to the caller, as in a container with a user namespace.
OWN_DEV = r"""
mount -t tmpfs -o mode=755 dev /mnt
for d in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 /mnt/${d%:*} c 1 ${d#*:}; done
mknod -m 666 /mnt/tty c 5 0
chown -R "$0" /mnt && mount --move /mnt /dev
"$@" </dev/zero
stat -c '%n %a' /dev/null /dev/zero
"""
CHANGES = "for f in /dev/null /dev/zero; do chmod 600 $f && echo changed; done 2>&1; " \
          "touch -d @0 /dev/null && echo touched; echo x | cat > /dev/null && echo written"


def test_device_nodes_of_the_caller_stay_as_they_are(ssb):
    def run(*argv):
        return execute(["unshare", "-m", "sh", "-c", OWN_DEV, f"{ssb.uid}:{ssb.gid}",
                        *ssb.identity(), *argv, "sh", "-c", CHANGES],
                       env=ssb.environment(), cwd=ssb.work).text
    r = run(ssb.binary, "run", "--")
    assert "changed" not in r and "touched" not in r, r
    assert r.splitlines()[-3:] == ["written", "/dev/null 666", "/dev/zero 666"], r
    bare = run("env")
    assert bare.count("changed") == 2 and "/dev/null 600" in bare, "control"


def test_mountinfo_tells_no_host_path_but_the_granted(ssb):
    other = ssb.mkdir("unrelated-name")
    text = ssb.inside("print(open('/proc/self/mountinfo').read())").ok().text
    assert other.name not in text


def test_etc_is_small_and_synthetic(ssb):
    code = """
    import json, os
    print(json.dumps({'etc': sorted(os.listdir('/etc')), 'passwd': open('/etc/passwd').read(),
                      'hosts': open('/etc/hosts').read()}))
    """
    seen = ssb.probe(code)
    assert "shadow" not in seen["etc"] and "sudoers" not in seen["etc"]
    assert "ld.so.cache" in seen["etc"]
    assert len(seen["passwd"].splitlines()) <= 4
    assert "localhost" in seen["hosts"]
    assert len(os.listdir("/etc")) > len(seen["etc"])


def test_skill_directory_is_at_skill(ssb):
    code = """
    import json, os
    print(json.dumps({'cwd': os.getcwd(), 'files': sorted(os.listdir('/skill')),
                      'data': open('/skill/data.txt').read(), 'file': __file__}))
    """
    seen = ssb.run(ssb.skill(code, files={"data.txt": "hello"})).ok().json()
    assert seen["cwd"] == "/skill"
    assert seen["data"] == "hello"
    assert seen["files"] == ["data.txt", "main.py", "skillsandbox.yaml"]


def test_symlink_to_a_secret_gives_nothing(ssb):
    d = data_dir(ssb)
    (d / "innocent").symlink_to(ssb.home / ".ssh/id_ed25519")
    got = ssb.probe(READ_ALL, env=paths_env([d / "innocent"]), flags=["--env", "PATHS"], read=[d])
    assert list(got.values()) == [None]
    control = ssb.bare_probe(READ_ALL, env=paths_env([d / "innocent"]))
    assert SECRET in control[str(d / "innocent")]


def test_declared_path_that_is_a_symlink_to_a_secret(ssb):
    link = ssb.base / "weather-data"
    link.symlink_to(ssb.home / ".ssh")
    r = ssb.inside(READ_ALL, env=paths_env([link / "id_ed25519"]), flags=["--env", "PATHS"],
                   read=[link])
    assert SECRET not in r.text
    assert r.code in (0, 125)


def test_skill_symlink_out_of_the_skill(ssb):
    skill = ssb.skill("print(open('/skill/leak').read())")
    (skill / "leak").symlink_to(ssb.home / ".ssh/id_ed25519")
    r = ssb.run(skill)
    assert r.code != 0 and SECRET not in r.text


def test_manifest_symlink_out_of_the_skill_is_an_error(ssb):
    skill = ssb.skill("print('started')")
    outside = ssb.write(ssb.base / "other.yaml", (skill / "skillsandbox.yaml").read_text())
    (skill / "skillsandbox.yaml").unlink()
    (skill / "skillsandbox.yaml").symlink_to(outside)
    r = ssb.run(skill)
    assert r.code == 125 and b"started" not in r.out


@pytest.mark.parametrize("grant", ["read", "write"])
def test_submount_follows_its_parent(root, mounts, grant):
    """A file system is mounted below a granted directory: the skill can write to it only if it can
    write to the directory."""
    d = data_dir(root)
    sub = root.mkdir("data/sub")
    mounts("tmpfs", "ssb-sub", sub, data="mode=0755")
    root.write(sub / "file", "below")
    code = """
    import json, os
    seen = {}
    try:
        seen['read'] = open(os.environ['F']).read()
    except OSError as e:
        seen['read'] = None
    try:
        open(os.environ['F'], 'a').write('!')
        seen['write'] = 'ok'
    except OSError as e:
        seen['write'] = 'denied'
    print(json.dumps(seen))
    """
    r = root.inside(code, env={"F": str(sub / "file")}, flags=["--env", "F"], **{grant: [d]})
    if grant == "write" and kernel() < (6, 3):
        # These kernels cannot idmap a tmpfs: the whole grant is refused.
        assert r.code == 125 and "idmapped" in r.errors and str(d) in r.errors, repr(r)
        return
    seen = r.ok().json()
    if grant == "read":
        assert seen["write"] == "denied"
        assert (sub / "file").read_text() == "below"
    else:
        assert seen["write"] == "ok" or seen["read"] in (None, "below")


def test_bind_of_host_tree_below_a_read_grant_stays_read_only(root, mounts):
    d = data_dir(root)
    sub = root.mkdir("data/bound")
    other = root.mkdir("other")
    root.write(other / "file", "other")
    mounts("none", other, sub, flags=4096)
    code = "open(%r, 'a').write('!')" % str(sub / "file")
    assert root.inside(code, read=[d]).code != 0
    assert (other / "file").read_text() == "other"
    root.bare(code).ok()
    assert (other / "file").read_text() == "other!"


def test_read_beneath_write_and_write_beneath_read(ssb):
    d = data_dir(ssb)
    ssb.mkdir("data/ro")
    ssb.write(d / "ro/f", "x")
    ssb.mkdir("data/rw")
    ssb.write(d / "rw/f", "x")
    code = """
    import json, os
    seen = {}
    for n in ('ro/f', 'rw/f', 'file'):
        try:
            open(os.environ['D'] + '/' + n, 'a').write('!')
            seen[n] = 'ok'
        except OSError:
            seen[n] = 'denied'
    print(json.dumps(seen))
    """
    seen = ssb.probe(code, env={"D": str(d)}, flags=["--env", "D"], read=[d], write=[d / "rw"])
    assert seen == {"ro/f": "denied", "rw/f": "ok", "file": "denied"}
    seen = ssb.probe(code, env={"D": str(d)}, flags=["--env", "D"], read=[d / "ro"], write=[d])
    assert seen["rw/f"] == "ok" and seen["file"] == "ok"


def test_caller_directory_is_the_start_where_granted(ssb):
    d = data_dir(ssb)
    assert ssb.run("-r", d, "--", "pwd", cwd=d).ok().text.strip() == str(d)
    assert ssb.run("--", "pwd", cwd=d).ok().text.strip() == str(ssb.home)


def test_tilde_paths(ssb):
    ssb.write(ssb.home / "notes/a.txt", "note")
    got = ssb.probe(READ_ALL, env=paths_env([ssb.home / "notes/a.txt"]),
                    flags=["--env", "PATHS"], read=["~/notes"])
    assert list(got.values()) == ["note"]


def test_what_is_granted_in_run_is_nowhere_else(ssb):
    """A grant to read a directory of /run shows this directory, but not the other names in /run."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="ssb-e2e-", dir="/run"))
    try:
        place.chmod(0o755)
        (place / "x").touch()
        notes = ssb.mkdir("notes")
        ssb.write(notes / "n", "x")
        r = ssb.run("--read", ssb.own(place), "--read", notes, "--", "ls", notes, place).ok()
    finally:
        shutil.rmtree(place)
    assert sorted(r.text.split()) == sorted([f"{notes}:", "n", f"{place}:", "x"]), repr(r)
