"""Owner over manifest: what is dangerous by nature no manifest can claim."""
import pytest

from harness import SECRET

DANGEROUS = ["~/", "~/.ssh", "~/.aws", "~/.gnupg", "~/.config/gh", "~/.netrc", "~/.mozilla",
             "~/.config/skillsandbox", "~/.local/state/skillsandbox", "/etc/shadow", "/", "/proc",
             "/sys", "/dev", "/run", "/etc", "/root", "/home", "/proc/self", "/sys/fs/cgroup",
             "/var/run"]


def prepare(ssb):
    for d in (".gnupg", ".config/skillsandbox", ".local/state/skillsandbox"):
        ssb.write(ssb.home / d / "x", SECRET, 0o600)


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("path", DANGEROUS)
def test_dangerous_request_is_refused(ssb, path, access):
    prepare(ssb)
    r = ssb.inside("print('started')", **{access: [path]})
    assert r.code == 125, repr(r)
    assert b"started" not in r.out
    assert "is refused" in r.errors and "help: " in r.errors, r.errors


@pytest.mark.parametrize("path", ["~/.ssh", "~/.aws", "~/.gnupg", "~/.config/gh"])
def test_owner_can_grant_it(ssb, path):
    prepare(ssb)
    full = path.replace("~", str(ssb.home))
    code = f"""
    import os
    for n in os.listdir({full!r}):
        print(open({full!r} + '/' + n).read())
    """
    assert SECRET in ssb.inside(code, read=[path], flags=["--read", full]).ok().text
    assert SECRET in ssb.inside(code, flags=["--read", full]).ok().text
    assert SECRET not in ssb.inside(code).text


def test_refusal_names_the_rule_and_the_place(ssb):
    r = ssb.inside("print('started')", read=["~/.ssh"])
    assert "skillsandbox.yaml:" in r.errors
    assert ".ssh" in r.errors


def test_ancestor_of_a_dangerous_path(ssb):
    """The parent of the home holds ~/.ssh, whatever it is called."""
    leak = ssb.home / ".ssh/id_ed25519"
    r = ssb.inside(f"print(open({str(leak)!r}).read())", read=[ssb.base])
    assert SECRET not in r.text
    assert r.code == 125 or "Error" in r.errors


@pytest.mark.parametrize("access", ["read", "write"])
def test_symlink_that_a_skill_left_for_the_next_grant(ssb, access):
    """The owner's word is for what it names, not for where a run before let it lead."""
    d, data = ssb.mkdir("project"), ssb.mkdir("data")
    near = ssb.home / "proj"
    ssb.write(near / "file", "")
    ssb.write(data / "id_ed25519", "harmless")
    plant = "ln -s ~/.ssh {0}/out; ln -s {1} {0}/fine; ln -s / {0}/all"
    ssb.run("-w", d, "--", "sh", "-c", plant.format(d, data)).ok()
    show = ["--", "cat", ssb.home / ".ssh/id_ed25519"]
    for name in ("out", "all"):
        r = ssb.run(f"--{access}", d / name, *show)
        assert r.code == 125 and SECRET not in r.text, repr(r)
        assert "is refused" in r.errors
    assert "name the place itself" in ssb.run(f"--{access}", d / "out", *show).errors
    # The controls: a symlink to what is not dangerous, and the place by its own name.
    r = ssb.run(f"--{access}", d / "fine", "--", "cat", data / "id_ed25519").ok()
    assert r.text == "harmless"
    for named in (ssb.home / ".ssh", f"{ssb.home}//proj/.././.ssh/"):
        assert SECRET in ssb.run(f"--{access}", named, *show).ok().text
    assert SECRET in ssb.run(f"--{access}", "../.ssh", *show, cwd=near).ok().text


def test_home_that_is_a_symlink(ssb):
    """The shell's ~ is HOME as it is spelt; its keys are named all the same."""
    alias = ssb.base / "alias"
    alias.symlink_to(ssb.home)
    show = ["--", "cat", ssb.home / ".ssh/id_ed25519"]
    for named in (alias / ".ssh", "~/.ssh", alias):
        r = ssb.run("-r", named, *show, env={"HOME": str(alias)})
        assert SECRET in r.ok().text


def test_symlink_alias_of_a_dangerous_path(ssb):
    alias = ssb.base / "alias"
    alias.symlink_to(ssb.home / ".ssh")
    r = ssb.inside(f"print(open('{alias}/id_ed25519').read())", read=[alias])
    assert SECRET not in r.text


def test_bind_alias_of_a_dangerous_path(root, mounts):
    """Compared by device and inode, not by text."""
    alias = root.mkdir("alias")
    mounts("none", root.home / ".ssh", alias, flags=4096)
    r = root.inside(f"print(open('{alias}/id_ed25519').read())", read=[alias])
    assert SECRET not in r.text and r.code != 0
    parent = root.mkdir("data")
    below = root.mkdir("data/below")
    mounts("none", root.home / ".ssh", below, flags=4096)
    r = root.inside(f"print(open('{below}/id_ed25519').read())", read=[parent])
    assert SECRET not in r.text and r.code != 0
    control = root.bare(f"print(open('{below}/id_ed25519').read())")
    assert SECRET in control.text


def test_skill_in_the_home_is_fine(ssb):
    """A skill that lives below the home is no request for the home."""
    skill = ssb.home / "skills/weather"
    made = ssb.skill("print('hello')")
    for f in made.iterdir():
        ssb.write(skill / f.name, f.read_bytes())
    assert ssb.run(skill).ok().text == "hello\n"


def test_home_as_the_skill_directory_is_refused(ssb):
    made = ssb.skill("import os; print(open('/skill/.ssh/id_ed25519').read())")
    for f in made.iterdir():
        ssb.write(ssb.home / f.name, f.read_bytes())
    r = ssb.run(ssb.home)
    assert SECRET not in r.text


def test_flag_that_the_manifest_lacks(ssb):
    d = ssb.mkdir("data")
    ssb.write(d / "f", "content")
    code = f"print(open('{d}/f').read())"
    assert ssb.inside(code).code == 1
    assert ssb.inside(code, flags=["-r", d]).ok().text == "content\n"


def test_limit_flags_win_over_the_manifest(ssb):
    r = ssb.inside("print('x' * 1000)", flags=["--max-output", "10"],
                   resources={"max_output_bytes": 100000})
    assert len(r.out) == 10


def policy(ssb, text, mode=0o600):
    return ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", text, mode)


def reads_ssh(ssb, **kw):
    return ssb.inside(f"print(open('{ssb.home}/.ssh/id_ed25519').read())", **kw)


def test_policy_file_grants_what_is_asked_for(ssb):
    policy(ssb, "grants:\n  read: [~/.ssh]\n")
    assert SECRET in reads_ssh(ssb, read=["~/.ssh"]).ok().text
    assert SECRET not in reads_ssh(ssb).text, "not asked for, not given"
    r = reads_ssh(ssb, read=["~/.ssh"], flags=["--policy", ""])
    assert r.code == 125, "without the file it is refused"


def test_policy_file_denies(ssb):
    d = ssb.mkdir("data")
    ssb.write(d / "f", "content")
    code = f"print(open('{d}/f').read())"
    ssb.inside(code, read=[d]).ok()
    policy(ssb, f"deny:\n  read: ['{d}']\n")
    assert ssb.inside(code, read=[d]).code == 125
    assert ssb.inside(code, flags=["-r", d]).ok().text == "content\n", "a flag has the last word"


def test_policy_file_lowers_limits(ssb):
    policy(ssb, "limits:\n  max_output_bytes: 10\n")
    r = ssb.inside("print('x' * 1000)", resources={"max_output_bytes": 100000})
    assert len(r.out) == 10


@pytest.mark.parametrize("text", ["grants: [a]\n", "grant:\n  read: [~/.ssh]\n", "a: &a b\n",
                                  "grants:\n  read: [relative]\n", "\x00"])
def test_bad_policy_file_stops_the_run(ssb, text):
    policy(ssb, text)
    r = ssb.inside("print('started')")
    assert r.code == 125 and b"started" not in r.out and "policy.yaml" in r.errors


def test_policy_file_that_others_can_write_is_not_obeyed(ssb):
    policy(ssb, "grants:\n  read: [~/.ssh]\n", 0o666)
    r = reads_ssh(ssb, read=["~/.ssh"])
    assert r.code == 125 and SECRET not in r.text


def test_manifest_cannot_choose_the_permissive_profile(ssb):
    assert ssb.inside("print('started')", profile="permissive").code == 125
    assert ssb.inside("print('started')", flags=["--profile", "permissive"]).ok().out


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH"])
def test_variables_that_load_code(ssb, name):
    """Refused, or harmless: the owner's value must not be run as code."""
    r = ssb.inside("import os; print(os.environ.get(%r))" % name, env={name: "/nonexistent"},
                   allow=[name])
    assert r.code in (0, 125)
    if name == "LD_PRELOAD":
        assert r.code == 125
