"""Files of an image instead of the host's: --rootfs and --image."""
import json
import os
import pathlib
import shutil
import tempfile

import pytest

import oci
from harness import PYTHON, SECRET

INSPECT = ("inspect", "--json")
SEES = "for f in /usr/bin/env /etc/debian_version /bin/bash; do [ -e $f ] && echo host $f; done; "


@pytest.fixture
def root_fs(ssb):
    return oci.busybox_root(ssb.base / "rootfs")


def own_all(ssb, top):
    for path in [top, *top.rglob("*")]:
        ssb.own(path)


def layout(ssb, *layers, **kw):
    made = oci.Layout(ssb.base / f"layout{len(list(ssb.base.iterdir()))}")
    made.image([oci.layer(*oci.busybox_members()), *layers], **kw)
    own_all(ssb, made.dir)
    return made.dir


def images(ssb):
    return sorted(p.name for p in (ssb.state / "skillsandbox/images").iterdir())


MORE_FDS = "import os, sys\n" \
           "for n in range(int(sys.argv[1])): os.dup2(0, 3 + n)\n" \
           "os.execv(sys.argv[2], sys.argv[2:])"


def test_image_whatever_the_caller_has_open(ssb):
    """The process that reads the image gets two fds with fixed numbers: this works, whichever fds
    the caller has open."""
    for n in range(7):
        image = layout(ssb, oci.layer(oci.member(f"n{n}", value=b"x")))
        r = ssb.as_caller([PYTHON, "-c", MORE_FDS, str(n), ssb.binary, "run", "--image", image,
                           "--", "/bin/cat", f"/n{n}"])
        assert r.text == "x", f"{n} more: {r!r}"


def test_rootfs_is_the_system(ssb, root_fs):
    """With --rootfs the skill sees the image's files and none of the host's. The sandbox's own
    /proc, /tmp, /var/tmp and /etc/passwd replace the image's."""
    (root_fs / "app").mkdir()
    (root_fs / "app/x").write_text("of the image\n", encoding="utf-8")
    (root_fs / "etc/passwd").write_text("evil:x:0:0::/:/bin/sh\n", encoding="utf-8")
    (root_fs / "etc/release").write_text("image 1\n", encoding="utf-8")
    (root_fs / "var/tmp").mkdir(parents=True)
    (root_fs / "var/tmp/no").touch()
    (root_fs / "proc").symlink_to("/app")       # attack: redirect the mount of /proc
    (root_fs / "tmp").symlink_to("/app")
    os.mkfifo(root_fs / "fifo")
    grant = ssb.mkdir("srv-like")               # its parent is made in the image, too
    ssb.write(grant / "g", "granted\n")
    pathlib.Path(str(root_fs) + str(grant.parent)).mkdir(parents=True)
    r = ssb.run("--rootfs", root_fs, "--read", grant, "--", "sh", "-c", SEES + f"""
        cat /app/x /etc/release {grant}/g; cat /etc/passwd | head -n 2; ls /var/tmp /fifo
        echo t >/tmp/t && cat /tmp/t; cat /proc/self/comm; id -u
        for d in /app /etc /bin / {grant}; do touch $d/new && echo WROTE $d; done""")
    assert r.text.splitlines()[:3] == ["of the image", "image 1", "granted"], repr(r)
    assert "host" not in r.text and "evil" not in r.text and "WROTE" not in r.text, repr(r)
    assert "skill:x:" in r.text and "t\ncat\n" in r.text and "no\n" not in r.text
    assert "fifo" not in r.text
    # Control: without --rootfs the skill sees the host's files.
    assert "host /usr/bin/env" in ssb.run("--", "/bin/sh", "-c", SEES).text
    record = ssb.ssb("inspect", "--json", "--rootfs", root_fs, "--", "sh").ok().json()
    assert record["rootfs"] == str(root_fs.resolve())


def test_rootfs_hides_no_attack(ssb, root_fs):
    """With --rootfs the skill still cannot read secrets of the home, and the attempt is
    reported."""
    key = ssb.home / ".ssh/id_ed25519"
    r = ssb.run("--rootfs", root_fs, "--", "cat", key)
    assert SECRET not in r.text and r.code != 0
    assert ".ssh" in r.errors
    control = ssb.run("--rootfs", root_fs, "--read", key, "--", "cat", key)
    assert SECRET in control.text, repr(control)


@pytest.mark.parametrize("name", ["/", "~", "~/.ssh", "/etc", "/proc", "file", "none"])
def test_rootfs_is_judged(ssb, root_fs, name):
    ssb.write(ssb.base / "file", "x")
    place = name if name[0] in "/~" else ssb.base / name
    r = ssb.ssb("run", "--rootfs", place, "--", "/bin/sh", "-c", "echo RAN")
    assert r.code == 125 and "RAN" not in r.text and "--rootfs" in r.errors, repr(r)
    assert "ok" in ssb.run("--rootfs", root_fs, "--", "sh", "-c", "echo ok").text


def test_too_many_parts(user):
    """The top of the root file system has the maximum number of entries: the command runs. With one
    more entry, the run is refused."""
    root = oci.busybox_root(user.base / "rootfs")
    for i in range(1024 - 1):           # bin counts, too; etc does not, but its entries do
        (root / f"n{i}").symlink_to("x")
    assert "ok" in user.run("--rootfs", root, "--", "sh", "-c", "echo ok").text
    (root / "one-more").symlink_to("x")
    r = user.run("--rootfs", root, "--", "sh", "-c", "echo ok")
    assert r.code == 125 and "more than 1024 entries" in r.errors, repr(r)


def test_image(ssb):
    """A later layer replaces and deletes files of an earlier one. PATH and WorkingDir of the
    image's configuration apply; everything else in it is ignored."""
    low = oci.layer(oci.member("gone/a", value=b"1"), oci.member("op/old", value=b"1"),
                    oci.member("dev/mem", "device"), oci.member("pipe", "fifo"))
    high = oci.layer(oci.member("op/new", value=b"1"), oci.member("op/.wh..wh..opq"),
                     oci.member("gone/.wh.a"), oci.member("app", "dir"),
                     oci.member("hard", "hard", "bin/busybox"),
                     oci.member("n" * 200 + "/" + "m" * 200, value=b"long name"), packed=False)
    where = layout(ssb, low, high, config={
        "Env": ["PATH=/bin:/app", "EVIL=1", "LD_PRELOAD=/x.so"], "WorkingDir": "/app",
        "Entrypoint": ["/bin/evil"], "Cmd": ["evil"], "User": "0"})
    script = SEES + "pwd; echo $PATH $EVIL; ls /op /gone; ls -l /bin/busybox; cat /n*/m*; ls /"
    r = ssb.run("--image", f"{where}:latest", "--", "sh", "-c", script).ok()
    lines = r.text.splitlines()
    assert lines[:2] == ["/app", "/bin:/app"], repr(r)
    assert "new" in r.text and "old" not in r.text and "host" not in r.text
    assert "-rwxr-xr-x    2" in r.text and "long name" in r.text and "pipe" not in r.text
    before = images(ssb)
    assert len(before) == 1 and len(before[0]) == 64
    stamp = os.stat(ssb.state / "skillsandbox/images" / before[0]).st_ctime_ns
    assert ssb.run("--image", where, "--env", "PATH=/bin", "--", "sh", "-c",
                   "echo $PATH").text == "/bin\n"
    assert images(ssb) == before
    assert os.stat(ssb.state / "skillsandbox/images" / before[0]).st_ctime_ns == stamp


HOSTILE = {
    "dots": oci.member("../../out", value=b"x"),
    "absolute": oci.member("/tmp/out", value=b"x"),
    "hard link out": oci.member("h", "hard", "../../../../etc/passwd"),
    "hard link to nothing": oci.member("h", "hard", "etc/passwd"),
}


def test_hostile_layers(user):
    """Each hostile layer is refused, nothing of its image is kept, and a good image still works
    after it."""
    for name, bad in HOSTILE.items():
        r = user.ssb(*INSPECT, "--image", layout(user, oci.layer(bad)), "--", "sh")
        assert r.code == 125 and "image" in r.errors, f"{name}: {r!r}"
        assert images(user) == []
    fine = layout(user, oci.layer(oci.member("x", value=b"x")))
    user.ssb(*INSPECT, "--image", fine, "--", "sh").ok()
    assert len(images(user)) == 1


def test_symlinks_of_a_layer_lead_nowhere(user):
    outside = user.mkdir("outside")
    where = layout(user, oci.layer(
        oci.member("l", "link", str(outside)), oci.member("up", "link", "../../../../.."),
        oci.member("up/by-dots", value=b"x"), oci.member(str(outside)[1:], "dir"),
        oci.member("l/stolen", value=b"x")))
    assert user.run("--image", where, "--", "cat", "/by-dots", f"{outside}/stolen").text == "xx"
    assert list(outside.iterdir()) == [] and not pathlib.Path("/by-dots").exists()


def damage(name, where):
    index = json.loads((where / "index.json").read_text(encoding="utf-8"))
    m = index["manifests"][0]
    blob = where / "blobs/sha256" / m["digest"][7:]
    first = where / "blobs/sha256" / json.loads(blob.read_text("utf-8"))["layers"][0]["digest"][7:]
    if name == "manifest changed":
        blob.write_text(blob.read_text("utf-8") + " ", encoding="utf-8")
    elif name == "layer changed":
        data = bytearray(first.read_bytes())
        data[len(data) // 2] ^= 1
        first.write_bytes(data)
    elif name == "layer is a symlink":
        first.rename(where / "elsewhere")
        first.symlink_to(where / "elsewhere")
    elif name == "digest is a path":
        m["digest"] = "sha256:../../../../etc/passwd"
    elif name == "other architecture":
        m["platform"] = {"os": "linux", "architecture": "s390x"}
    elif name == "other tag":
        m["annotations"] = {"org.opencontainers.image.ref.name": "other"}
    elif name == "two of them":
        index["manifests"].append(dict(m))
    elif name == "no JSON":
        index = "{"
    (where / "index.json").write_text(json.dumps(index) if index != "{" else index,
                                      encoding="utf-8")


def test_damaged_layouts(user):
    cases = ["manifest changed", "layer changed", "layer is a symlink", "digest is a path",
             "other architecture", "other tag", "two of them", "no JSON"]
    for name in ["nothing", *cases]:
        where = layout(user)
        damage(name, where)
        r = user.ssb(*INSPECT, "--image", f"{where}:latest", "--", "sh")
        assert r.code == (0 if name == "nothing" else 125), f"{name}: {r!r}"
        if name == "nothing":
            (kept,) = images(user)
            (user.state / "skillsandbox/images" / kept).rename(user.base / "away")
        assert images(user) == [], name


def test_unpacking_that_was_killed(user):
    """A process was killed while it unpacked an image. The next run that unpacks removes the files,
    and never takes them for an image."""
    where = layout(user)
    left = user.state / "skillsandbox/images/.new-of-a-crash/deep"
    user.write(left / "file", "x")
    user.write(user.state / "skillsandbox/images/.new-of-a-crash/x", "x")
    assert "ok" in user.run("--image", where, "--", "sh", "-c", "echo ok").text
    assert len(images(user)) == 1 and not left.exists()


def test_image_or_rootfs(user):
    r = user.run("--image", layout(user), "--rootfs", user.base, "--", "sh")
    assert r.code == 2 and "--rootfs" in r.errors, repr(r)


@pytest.fixture
def elsewhere(ssb):
    """A directory outside the test's base directory, as a place for a grant."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="ssb-e2e-", dir="/opt"))
    place.chmod(0o755)
    yield ssb.own(place)
    shutil.rmtree(place)


def test_no_symlink_of_a_root_file_system_is_on_the_way_to_a_grant(ssb, root_fs, elsewhere):
    """A symlink in the root file system on the way to a grant stops the run. Otherwise the mount
    point would be made at the symlink's target, perhaps on the host."""
    bait = ssb.mkdir("bait")
    ssb.write(elsewhere / "g", "granted\n")
    words = ("--rootfs", root_fs, "--read", elsewhere, "--", "cat", elsewhere / "g")
    for to in (f"..{bait}", f"/..{bait}", f"/../..{bait}", "bin", "/tmp"):
        (root_fs / "opt").symlink_to(to)
        r = ssb.run(*words)
        assert not list(bait.iterdir()), to
        assert r.code == 125 and "symlink" in r.errors and "/opt" in r.errors, (to, r)
        (root_fs / "opt").unlink()
    (root_fs / "opt").mkdir()
    # Now the last name of the grant's path is the symlink.
    (root_fs / "opt" / elsewhere.name).symlink_to(f"../..{bait}")
    assert ssb.run(*words).code == 125 and not list(bait.iterdir())
    (root_fs / "opt" / elsewhere.name).unlink()
    assert ssb.run(*words).text == "granted\n"
