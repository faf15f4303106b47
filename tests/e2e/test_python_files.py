"""Files that belong to one call of the Python package. The host process opens them. A skill that
may write to their directory must not make the host process open other files."""
import fcntl
import os
import pathlib
import signal
import stat
import sys

import harness
import pytest
import python_world

sys.path.insert(0, str(harness.REPO / "python"))
from skillsandbox import _files  # noqa: E402  pylint: disable=wrong-import-position

# A skill that changes files as its parameters say, before or while the host process handles the
# files of the call.
DEPUTY = """
    import os

    class Deputy:
        def execute(self, params):
            for what, *paths in params.get("do", []):
                getattr(os, what)(*paths)
            said = None
            if "read" in params:
                said = open(params["read"]).read()
            if "write" in params:
                open(params["write"], "w").write("of the skill")
            return said
"""


@pytest.fixture
def world(ssb):
    return python_world.World(ssb)


# Prints for each case of tests/links.txt whether the package follows its symlinks.
FOLLOWS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from skillsandbox import _files
base, real = sys.argv[2], os.stat(sys.argv[2] + "/real")
for name in sys.argv[3:]:
    try:
        held, last = _files._walk(f"{base}/{name}")
        print(name, "yes" if os.path.samestat(os.fstat(held), real) and last == "f" else "other")
    except OSError:
        print(name, "no")
"""


def make_links(base, user):
    cases = []
    for line in (harness.REPO / "tests/links.txt").read_text().splitlines():
        kind, *words = line.split() or ["#"]
        path = base / words[0] if words else base
        if kind == "case":
            cases.append(words)
        elif kind == "file":
            path.touch()
        elif kind == "dir":
            path.mkdir()
            path.chmod(int(words[2], 8))
        elif kind == "link":
            path.symlink_to(words[2])
        if kind in ("dir", "link"):
            os.chown(path, user if words[1] == "USER" else 0, 0, follow_symlinks=False)
    return cases


def test_symlinks_that_no_skill_can_have_made(ssb):
    base = ssb.mkdir("links")
    os.chown(base, 0, 0)
    base.chmod(0o755)
    cases = make_links(base, 12345)
    assert len(cases) > 10
    package = python_world.World(ssb).package
    code = ssb.write(ssb.work / "follows.py", FOLLOWS)
    r = ssb.as_caller([harness.PYTHON, code, package, base, *(c[0] for c in cases)]).ok()
    column = 2 if ssb.uid == 0 else 1
    assert r.text.splitlines() == [f"{c[0]} {c[column]}" for c in cases]


def test_home_is_followed_as_it_is_spelt(ssb):
    world = python_world.World(ssb)
    there = ssb.write(ssb.work / "homes/real/in.txt", "plain").parent
    (there.parent / "home").symlink_to("real")
    spelt = str(there.parent / "home")
    code = """
        from skillsandbox import _files
        def look(path):
            held, name = _files._walk(path)
            return os.readlink(f"/proc/self/fd/{held}"), name
        out(told={home: caught(look, sys.argv[1] + "/in.txt")
                  for home in (sys.argv[1] + "//", "/nonexistent")
                  if os.environ.update(HOME=home) is None})
    """
    told = world.program(spelt, code)[0]["told"]
    assert told[spelt + "//"] == {"result": [str(there), "in.txt"]}
    assert "name the real path instead" in told["/nonexistent"]["text"], "the control"


def granted(world):
    """A directory that the skill may write to, with files as an application has them."""
    work = world.ssb.mkdir("granted")
    world.ssb.mkdir("granted/keys")
    world.ssb.mkdir("granted/plain")
    world.ssb.write(work / "plain/in.txt", "plain")
    world.ssb.write(world.ssb.home / ".profile", "the owner's\n")
    return work


def test_the_host_is_no_deputy(world):
    """The host opens no other file because of symlinks or FIFOs in the skill's grant. The same
    calls work with plain files, and with a hard link that the skill made."""
    work, home = granted(world), world.ssb.home
    found, _ = world.program(world.skill(DEPUTY), f"""
        work, home, told = {str(work)!r}, {str(home)!r}, {{}}
        def ask(name, do, read=None, write=None):
            params = {{"do": do, **({{"read": read}} if read else {{}}),
                      **({{"write": write}} if write else {{}})}}
            told[name] = caught(s.execute, params, read=[read] if read else [],
                                write=[write] if write else [], timeout=20)
        with SkillLoader(write=[work]).load_skill(SKILL)["class"]() as s:
            s.execute({{"do": [["symlink", f"{{home}}/.ssh/id_ed25519", f"{{work}}/report.txt"],
                              ["symlink", f"{{home}}/.profile", f"{{work}}/out.txt"],
                              ["symlink", f"{{home}}/.ssh", f"{{work}}/sub"],
                              ["symlink", "plain/in.txt", f"{{work}}/own"],
                              ["link", f"{{work}}/plain/in.txt", f"{{work}}/hard"]]}})
            os.mkfifo(f"{{work}}/fifo")     # a skill cannot make one
            ask("link read", [], read=f"{{work}}/report.txt")
            ask("link write", [], write=f"{{work}}/out.txt")
            ask("parent read", [], read=f"{{work}}/sub/id_ed25519")
            ask("parent write", [], write=f"{{work}}/sub/authorized_keys")
            ask("own link", [], read=f"{{work}}/own")
            ask("fifo read", [], read=f"{{work}}/fifo")
            ask("fifo write", [], write=f"{{work}}/fifo")
            swap = [["rename", f"{{work}}/keys", f"{{work}}/moved"],
                    ["symlink", f"{{home}}/.ssh", f"{{work}}/keys"]]
            ask("swapped", swap, write=f"{{work}}/keys/authorized_keys")
            ask("moved", [["rename", f"{{work}}/moved", f"{{work}}/again"],
                          ["mkdir", f"{{work}}/moved"]], write=f"{{work}}/moved/out")
            ask("place", [["symlink", f"{{home}}/.profile", f"{{work}}/./late"]],
                write=f"{{work}}/late")
            ask("hard read", [], read=f"{{work}}/hard")
            ask("hard write", [], write=f"{{work}}/hard")
            ask("plain", [], read=f"{{work}}/plain/in.txt", write=f"{{work}}/plain/out")
        out(told=told)
    """)
    told = found["told"]
    refused = ("link read", "link write", "parent read", "parent write", "own link", "fifo read",
               "fifo write", "swapped", "moved", "place")
    for case in refused:
        assert told[case].get("raised") in ("OSError", "ValueError"), (case, told[case])
        assert str(work) in told[case]["text"], told[case]
    assert "name the real path instead" in told["link read"]["text"]
    assert "replaced during the call" in told["moved"]["text"]
    assert harness.SECRET not in str(told)
    assert (home / ".profile").read_text() == "the owner's\n"
    assert os.listdir(home / ".ssh") == ["id_ed25519"]
    assert os.listdir(work / "again") == os.listdir(work / "moved") == []
    assert told["hard read"] == {"result": "plain"} and told["hard write"] == {"result": None}
    assert (work / "plain/in.txt").read_text() == "plain", "only the name was replaced"
    assert told["plain"] == {"result": "plain"}
    assert (work / "plain/out").read_text() == "of the skill"


def test_no_result_of_a_skill_is_set_id(world):
    """A result replaces a file that had the set-user-ID and set-group-ID bits: the new file does
    not have them."""
    tool = world.ssb.write(granted(world) / "plain/tool", "the owner's")
    tool.chmod(0o6755)
    assert stat.S_IMODE(tool.stat().st_mode) == 0o6755, "control: such a file can be had"
    world.program(world.skill(DEPUTY), f"""
        with SkillLoader().load_skill(SKILL)["class"]() as s:
            out(told=s.execute({{"write": {str(tool)!r}}}, write=[{str(tool)!r}]))
    """)
    assert tool.read_text() == "of the skill"
    assert stat.S_IMODE(tool.stat().st_mode) == 0o755


def test_no_call_gets_what_no_run_gets(world):
    """A call cannot have a file in a place that can never be granted. For another path the package
    runs `inspect` only once."""
    work = granted(world)
    found, _ = world.program(world.skill(DEPUTY), f"""
        import subprocess
        from skillsandbox.tiers import process
        asked, run = [], subprocess.run
        def counted(argv, **kw):
            asked.append(argv[1])
            return run(argv, **kw)
        process.subprocess = type("Counted", (), {{"run": staticmethod(counted),
            "DEVNULL": subprocess.DEVNULL, "TimeoutExpired": subprocess.TimeoutExpired}})
        with SkillLoader().load_skill(SKILL)["class"]() as s:
            key = os.path.join(os.environ["XDG_STATE_HOME"], "skillsandbox", "trace.key")
            held = open(key, "rb").read()
            told = {{p: caught(s.execute, {{"read": p}}, read=[p])
                    for p in (key, "/proc/self/environ", f"/proc/{{os.getpid()}}/environ",
                              "/dev/fd/0", "/dev/null")}}
            told["write"] = caught(s.execute, {{"write": key}}, write=[key])
            asked.clear()
            plain = [caught(s.execute, {{"read": {str(work / "plain/in.txt")!r}}},
                            read=[{str(work / "plain/in.txt")!r}]) for _ in range(3)]
            again = list(asked)
        out(told=told, plain=plain, again=again, same=open(key, "rb").read() == held,
            key=key)
    """, env={"HOST_SECRET": harness.SECRET})
    told = found["told"]
    for path, said in told.items():
        assert said.get("raised") in ("PermissionError", "OSError", "ValueError"), (path, said)
    for case in ("write", found["key"]):
        assert "never granted" in told[case]["text"] and found["key"] in told[case]["text"]
    assert found["same"]
    assert harness.SECRET not in str(told)
    assert found["plain"] == [{"result": "plain"}] * 3 and found["again"] == ["inspect"]


def test_symlinks_of_the_system_are_followed(world, base):
    """The package follows symlinks that no skill can have made, such as /home to /var/home. A skill
    may have made any symlink that belongs to the caller. So if root is the caller, the package does
    not follow root's symlinks either, except directly in "/"."""
    work = granted(world)
    link = base / f"home-{work.parent.name}"
    link.symlink_to(work.parent)
    own = work.parent / "own"
    own.symlink_to(work)
    world.ssb.own(own)
    found, _ = world.program(world.skill(DEPUTY), f"""
        with SkillLoader().load_skill(SKILL)["class"]() as s:
            told = {{p: caught(s.execute, {{"read": p}}, read=[p]) for p in
                    ({str(link)!r} + "/granted/plain/in.txt", {str(own)!r} + "/plain/in.txt",
                     "/lib/os-release", "/etc/os-release")}}
            put = caught(s.execute, {{"write": {str(link)!r} + "/granted/out"}},
                         write=[{str(link)!r} + "/granted/out"])
        out(told=list(told.values()), put=put)
    """)
    link.unlink()
    systems, callers, lib, etc = found["told"]
    assert callers["raised"] == "OSError" and "symlink" in callers["text"]
    assert lib["result"] == pathlib.Path("/usr/lib/os-release").read_text()
    if world.ssb.is_root:
        assert systems["raised"] == found["put"]["raised"] == etc["raised"] == "OSError"
    else:
        assert systems == {"result": "plain"} and found["put"] == {"result": None}
        assert etc == lib and (work / "out").read_text() == "of the skill"


# ---- _files, without a sandbox ----

def stored(named, data="bmV3"):
    files = _files.Files([], [named])
    files.expect([{"n": 0, "parts": 1}])
    files.take(0, {"data": data})
    files.store()
    files.close()


@pytest.mark.parametrize("before, after", [(0o640, 0o640), (0o6755, 0o755), (0o1600, 0o600),
                                           (None, 0o640)])
def test_a_result_has_a_plain_mode(tmp_path, before, after):
    path = tmp_path / "f"
    if before is not None:
        path.write_bytes(b"old")
        path.chmod(before)
    mask = os.umask(0o027)
    try:
        stored(path)
    finally:
        os.umask(mask)
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == after


def open_now():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("named", ["link", "dir/../link", "loop/f", "fifo", "dir", ".", "..", "",
                                   "dir/", "device", "fifo/f", "none/f", "none"])
def test_what_is_no_file_is_refused_and_nothing_stays_open(tmp_path, monkeypatch, named):
    (tmp_path / "dir").mkdir()
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    os.mknod(tmp_path / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    monkeypatch.chdir(tmp_path)
    before = open_now()
    for read, write in (([named], []), ([], [named]), (["f", named], ["f"])):
        if named == "none" and write == ["none"]:
            continue
        with pytest.raises((OSError, ValueError)):
            _files.Files(read, write)
    with _files.Files(["./f", "dir/../f", tmp_path / "dir" / ".." / "f"]) as files:
        assert [f["parts"] for f in files.listed()] == [1, 1, 1]
    assert open_now() == before


def test_a_leased_file_delays_no_call(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x")
    # This process holds the lease. When the call opens the file, the kernel sends SIGIO to the
    # holder. Without this line, SIGIO would end the test.
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        with open(path, "r+b") as holder:
            fcntl.fcntl(holder, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            with pytest.raises(BlockingIOError):
                _files.Files([path])
    finally:
        signal.signal(signal.SIGIO, before)
