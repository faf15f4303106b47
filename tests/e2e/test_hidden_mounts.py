"""A file or directory that is mounted on a hidden name of the home (such as ~/.config/foo) is
hidden under its other names, too."""
import pytest

from harness import SECRET
from test_mounts import in_namespace, run_there

pytestmark = pytest.mark.usefixtures("host_mounts")

# name: (mount commands, path of the secret, requests that would show the secret). {h} is the home.
MOUNTED = {
    "directory": ("mount --bind {h}/persist/foo {h}/.config/foo", "persist/foo/key",
                  ["persist/foo", "persist", "persist/foo/key"]),
    "file": ("mount --bind {h}/persist/token {h}/.token", "persist/token",
             ["persist/token", "persist"]),
    "whole": ("mount --bind {h}/persist/config {h}/.config", "persist/config/q/key",
              ["persist/config/q", "persist/config", "persist"]),
    "tmpfs": ("mount -t tmpfs none {h}/.zzz; mkdir {h}/.zzz/s; echo '{s}' > {h}/.zzz/s/key; "
              "chmod -R 777 {h}/.zzz; mount --bind {h}/.zzz {h}/x", "x/s/key", ["x", "x/s"]),
    "part": ("mount -t tmpfs none {h}/.zzz; mkdir {h}/.zzz/s; echo '{s}' > {h}/.zzz/s/key; "
             "chmod -R 777 {h}/.zzz; mount --bind {h}/.zzz/s {h}/x", "x/key", ["x", "x/key"]),
    "in a grant": ("mount --bind {h}/persist/foo {h}/.config/foo; "
                   "mount --bind {h}/persist/foo {h}/x/in", "x/in/key", ["x"]),
    "led": ("mount --bind {h}/persist/foo {h}/dots/tool", "persist/foo/key",
            ["persist/foo", "persist"]),
}


def prepare(ssb):
    for name in ("persist/foo/key", "persist/token", "persist/config/q/key"):
        ssb.write(ssb.home / name, SECRET)
    for name in (".config/foo", ".zzz", "x/in", "dots/tool"):
        ssb.mkdir(f"home/{name}")
    ssb.write(ssb.home / ".token", "")
    (ssb.home / ".tool").symlink_to("dots/tool")


@pytest.mark.parametrize("case", MOUNTED)
def test_what_is_mounted_on_a_hidden_name(ssb, case):
    script, key, requests = MOUNTED[case]
    prepare(ssb)
    script = script.format(h=ssb.home, s=SECRET)
    key = ssb.home / key
    for name in requests:
        skill = ssb.skill(f"print(open({str(key)!r}).read())", read=[f"~/{name}"])
        r = run_there(ssb, script, skill)
        assert r.code == 125 and SECRET not in r.text, (name, repr(r))
        assert "is where a program of yours keeps" in r.errors or "~/.config/" in r.errors, r.errors
        if case != "in a grant":  # a directory that contains a mount cannot be granted to a user
            r = run_there(ssb, script, "--read", ssb.home / name, skill)
            assert SECRET in r.ok().text, "the control: your own grant"
        assert SECRET in in_namespace(ssb, script, "cat", key).ok().text, "and unconfined"
        if "tmpfs" not in script and case != "in a grant":
            assert SECRET in run_there(ssb, "", skill).ok().text, "the control: no mount"


def test_an_approved_skill_that_is_mounted_elsewhere(ssb):
    """A mount shows an approved skill at a second path. A run by that path is refused: otherwise
    the skill could get an item that the owner has declined."""
    secret = ssb.write(ssb.home / "proj/key", SECRET)
    d = ssb.skill(f"print(open({str(secret)!r}).read())", read=["~/proj"])
    ssb.ssb("approve", "--yes", "--without", "read ~/proj", d).ok()
    other = ssb.mkdir("other")
    script = f"mount --bind {d} {other}"
    r = run_there(ssb, script, other)
    assert r.code == 125 and SECRET not in r.text, repr(r)
    assert f"was approved as '{d}', which a mount shows at '{other}'" in r.errors, r.errors
    ssb.ssb("approvals", "--revoke", d).ok()
    assert SECRET in run_there(ssb, script, other).ok().text, "the control: no approval"


def test_mounts_on_other_names_of_the_home(ssb):
    """The control: a mount on a name that is not hidden, or a mount of / on a hidden name, makes
    nothing else hidden."""
    prepare(ssb)
    key = ssb.home / "persist/foo/key"
    script = f"mount --bind {ssb.home}/persist/foo {ssb.home}/x\nmount --bind / {ssb.home}/.zzz"
    for path in ("~/persist", "~/persist/foo"):
        skill = ssb.skill(f"print(open({str(key)!r}).read())", read=[path])
        assert SECRET in run_there(ssb, script, skill).ok().text


def test_what_is_mounted_on_a_place_for_programs(ssb):
    """Only writing to ~/bin is dangerous: a manifest may ask to read, but not to write, a directory
    that is mounted there."""
    ssb.mkdir("home/persist")
    d = ssb.mkdir("home/persist/bin")
    ssb.mkdir("home/bin")
    script = f"mount --bind {d} {ssb.home}/bin"
    skill = ssb.skill("print('started')", write=["~/persist"])
    r = run_there(ssb, script, skill)
    assert r.code == 125 and "started" not in r.text, repr(r)
    assert run_there(ssb, "", skill).ok().text == "started\n", "the control: no mount"
    skill = ssb.skill("print('started')", read=["~/persist"])
    assert run_there(ssb, script, skill).ok().text == "started\n", "the control: only read"
