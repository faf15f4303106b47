"""The owner decides, not the manifest: a manifest alone gets no place that is dangerous by
nature."""
import os
import shutil

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
    """A manifest asks for the parent of the home: the skill cannot read the keys in it."""
    leak = ssb.home / ".ssh/id_ed25519"
    r = ssb.inside(f"print(open({str(leak)!r}).read())", read=[ssb.base])
    assert SECRET not in r.text
    assert r.code == 125 or "Error" in r.errors


@pytest.mark.parametrize("access", ["read", "write"])
def test_symlink_that_a_skill_left_for_the_next_grant(ssb, access):
    """An earlier run made a name a symlink to a dangerous place. If the owner then grants this
    name, the grant is refused, because the owner did not name the dangerous place."""
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
    assert "name the real path instead" in ssb.run(f"--{access}", d / "out", *show).errors
    # The controls: a symlink to a place that is not dangerous, and the dangerous place by its own
    # name.
    r = ssb.run(f"--{access}", d / "fine", "--", "cat", data / "id_ed25519").ok()
    assert r.text == "harmless"
    for named in (ssb.home / ".ssh", f"{ssb.home}//proj/.././.ssh/"):
        assert SECRET in ssb.run(f"--{access}", named, *show).ok().text
    assert SECRET in ssb.run(f"--{access}", "../.ssh", *show, cwd=near).ok().text


HIDDEN = ["~/.cargo/env", "~/.p10k.zsh", "~/.config/starship.toml", "~/.config/mpv/scripts",
          "~/.local/share/zinit", "~/.bash_functions", "~/.pulumi", "~/.config/configstore",
          "~/.config/pip", "~/.jupyter", "~/.config/VSCodium", "~/.of-no-table",
          "~/.config/of-no-table", "~/.cache/of-no-table", "~/.local/share/of-no-table"]


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("path", HIDDEN)
def test_hidden_name_of_the_home(ssb, path, access):
    """A manifest asks for a hidden name of the home (".NAME"): this is refused for every NAME, even
    if no table of dangerous places has it."""
    full = path.replace("~", str(ssb.home))
    ssb.write(f"{full}/file", SECRET)
    code = f"print(open({full + '/file'!r}).read())"
    r = ssb.inside(code, **{access: [path]})
    assert r.code == 125 and SECRET not in r.text, repr(r)
    help_ = r.errors.split("help: ")[1]
    assert f"{access} {path} is refused" in r.errors, r.errors
    assert f"--{access} {path}" in help_ and f"grants: {{{access}: [{path}]}}" in help_, r.errors
    assert SECRET in ssb.inside(code, flags=[f"--{access}", full], **{access: [path]}).ok().text
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml",
              f"grants: {{{access}: [{path}]}}\n", 0o600)
    assert SECRET in ssb.inside(code, **{access: [path]}).ok().text
    near = ssb.write(ssb.home / "project/.hidden/file", SECRET).parent
    code = f"print(open('{near}/file').read())"
    assert SECRET in ssb.inside(code, **{access: [near]}).ok().text, \
        "control: not at the top of the home it is a name like any other"


def test_what_a_hidden_name_leads_to(ssb):
    """~/.tool is a symlink, as dotfile tools make it: a manifest that asks for its target is
    refused."""
    secret = ssb.write(ssb.home / "dots/tool/key", SECRET)
    code = f"print(open({str(secret)!r}).read())"
    assert SECRET in ssb.inside(code, read=["~/dots/tool"]).ok().text, "the control: no symlink"
    (ssb.home / ".tool").symlink_to("dots/tool")
    for path in ("~/dots", "~/dots/tool", "~/dots/tool/key"):
        r = ssb.inside(code, read=[path])
        assert r.code == 125 and SECRET not in r.text, repr(r)
        assert "(where ~/.tool leads)" in r.errors and f"--read {path}" in r.errors, r.errors
    r = ssb.inside(code, read=["~/.tool"])
    assert r.code == 125 and "declare the real path" in r.errors, repr(r)
    assert SECRET in ssb.inside(code, read=["~/dots"], flags=["--read", "~/dots"]).ok().text


def test_a_home_that_cannot_be_listed_hides_no_symlink(ssb):
    """Reading the home's directory fails, so some of its names are unknown: a request is refused,
    as if a symlink led there."""
    secret = ssb.write(ssb.home / "dots/tool/key", SECRET)
    (ssb.home / ".tool").symlink_to("dots/tool")
    skill = ssb.skill(f"print(open({str(secret)!r}).read())", read=["~/dots/tool"])
    strace = ["strace", "-qq", "-o", "/dev/null", "-P", ssb.home, "-e", "trace=getdents64"]
    run = [ssb.binary, "run", "--timeout", "60", skill]
    r = ssb.as_caller([*strace, *run])
    assert r.code == 125 and "(where ~/.tool leads)" in r.errors, "the control: it can be listed"
    r = ssb.as_caller([*strace, "-e", "inject=getdents64:error=EIO", *run])
    assert r.code == 125 and SECRET not in r.text, repr(r)


@pytest.mark.parametrize("where", [".config", ".cache", ".local", ".local/share", "."])
def test_hidden_names_that_cannot_be_listed(user, where):
    """A directory of hidden names cannot be listed, so a symlink in it cannot be found: its target
    is not granted. (Root can list each directory.)"""
    secret = user.write(user.home / "dots/tool/key", SECRET)
    for d in (".config", ".cache", ".local", ".local/share"):
        user.mkdir(f"home/{d}")
    d = user.home / where
    (d / ".tool").symlink_to(secret.parent)
    skill = user.skill(f"print(open({str(secret)!r}).read())", read=["~/dots/tool"])
    r = user.run(skill)
    assert r.code == 125 and "leads)" in r.errors, "the control: it is found"
    d.chmod(0o311)
    try:
        r = user.run(skill)
        assert r.code == 125 and SECRET not in r.text, repr(r)
        assert "cannot be listed" in r.errors, r.errors
        assert SECRET in user.run("--read", "~/dots/tool", skill).ok().text, "your own grant"
    finally:
        d.chmod(0o755)
    (d / ".tool").unlink()
    assert SECRET in user.run(skill).ok().text, "the control: no symlink"
    if where != ".":
        shutil.rmtree(d)
        assert SECRET in user.run(skill).ok().text, "the control: what is missing hides nothing"


@pytest.mark.parametrize("name", ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
                                  "XDG_CACHE_HOME", "ZDOTDIR", "GNUPGHOME"])
@pytest.mark.parametrize("where", ["settings", ".settings", ".config/settings"])
def test_symlink_in_a_directory_of_a_variable(ssb, name, where):
    secret = ssb.write(ssb.home / "dots/tool/key", SECRET)
    d = ssb.home / where
    ssb.write(d / "plain", "")
    (d / "tool").symlink_to(secret.parent)
    code = f"print(open({str(secret)!r}).read())"
    env = {name: str(d)}
    for path in ("~/dots", "~/dots/tool"):
        r = ssb.inside(code, read=[path], env=env)
        assert r.code == 125 and SECRET not in r.text, repr(r)
        assert f"~/dots/tool (where ~/{where}/tool leads)" in r.errors, r.errors
    r = ssb.inside(code, read=["~/dots"], flags=["--read", "~/dots"], env=env)
    assert SECRET in r.ok().text, "your own grant"
    assert SECRET in ssb.inside(code, read=["~/dots"]).ok().text, "the control: no variable"
    (d / "tool").unlink()
    r = ssb.inside(code, read=["~/dots"], env=env)
    assert SECRET in r.ok().text, "the control: no symlink"


def test_directory_in_the_callers_path(ssb):
    tools = ssb.mkdir("home/mytools")
    code = f"open({str(tools / 'ls')!r}, 'w').write('x')"
    env = {"PATH": f"/usr/bin:/bin:{tools}"}
    r = ssb.inside(code, write=["~/mytools"], env=env)
    assert r.code == 125 and "is in your PATH" in r.errors, repr(r)
    assert not (tools / "ls").exists()
    ssb.inside(code, write=["~/mytools"], flags=["--write", "~/mytools"], env=env).ok()
    (tools / "ls").unlink()
    ssb.inside(code, write=["~/mytools"]).ok()
    assert (tools / "ls").exists(), "the control: it is PATH that says so"


def test_what_root_keeps_to_itself(root):
    """Root is the caller. In the sandbox, root's files belong to the skill's uid. Still the skill
    cannot read files with mode 0600 unless the owner grants them."""
    data = root.mkdir("service")
    for name, mode in (("open", 0o644), ("closed", 0o600)):
        root.write(data / name, SECRET + name, mode)
    root.write(data / "keys/key", SECRET)
    (data / "keys").chmod(0o700)
    show = "import sys\nfor n in sys.argv[1:]:\n    print(open(n).read())"

    def cat(*names, flags=(), **fields):
        d = root.skill(show, **fields)
        return root.run(*flags, d, *(data / n for n in names))
    for name in ("closed", "keys", "keys/key"):
        for access in ("read", "write"):
            r = cat("closed" if name == "closed" else "keys/key", **{access: [data / name]})
            assert r.code == 125 and SECRET not in r.text, repr(r)
            help_ = r.errors.split("help: ")[1]
            assert "closed to other users" in r.errors and f"--{access} {data / name}" in help_, r.errors
    assert cat("open", read=[data]).ok().text == SECRET + "open\n"
    for name, named in (("closed", "closed"), ("keys/key", "keys")):
        r = cat(name, read=[data])
        assert r.code == 1 and SECRET not in r.text and "PermissionError" in r.errors, repr(r)
        # The controls: if the owner grants the file in any way, the skill can read it, as root can.
        assert SECRET in cat(name, read=[data], flags=["--read", data]).ok().text
        assert SECRET in cat(name, read=[data], flags=["--read", data / named]).ok().text
    root.write(root.home / ".config/skillsandbox/policy.yaml",
               f"grants: {{read: [{data}]}}\n", 0o600)
    assert SECRET in cat("closed", read=[data]).ok().text
    (root.home / ".config/skillsandbox/policy.yaml").unlink()
    d = root.skill(show, read=[data])
    root.ssb("approve", "--yes", d).ok()
    assert SECRET in root.run(d, data / "closed").ok().text


def test_modes_are_the_kernels_for_a_user(user):
    """The control: if a user is the caller, the skill can read the user's files with mode 0600."""
    d = user.mkdir("mine", 0o700)
    user.write(d / "closed", SECRET, 0o600)
    assert SECRET in user.inside(f"print(open('{d}/closed').read())", read=[d]).ok().text


@pytest.mark.parametrize("path", ["/var/lib/ssb-test", "/var/log", "/var/cache/ssb-test"])
def test_what_services_keep_is_not_written(ssb, path):
    """Only `inspect` is called: a run would write on this machine if it were not refused."""
    d = ssb.skill("print('started')", write=[path])
    text = ssb.ssb("inspect", d).ok().text
    assert f"DENIED    write {path}: " in text and f"--write {path}" in text, text
    text = ssb.ssb("inspect", "--write", path, d).ok().text
    assert f"DENIED    write {path}: " not in text, "control: the owner's word gives it"


def test_directory_of_the_skills_own_name(ssb):
    """A directory with the skill's name belongs to the skill if one of its runs made it. If the
    directory existed before, it is refused."""
    cache = ssb.home / ".cache/ssb-town"
    count = f"open('{cache}/runs', 'a').write('x'); print(open('{cache}/runs').read())"
    d = ssb.skill(count, name="ssb-town", write=["~/.cache/ssb-town"])
    assert ssb.run(d).ok().text == "x\n"
    assert ssb.run(d).ok().text == "xx\n", "of the same skill"
    other = ssb.skill(count, name="ssb-town", write=["~/.cache/ssb-town"])
    r = ssb.run(other)
    assert r.code == 125 and "existed before" in r.errors, repr(r)
    ssb.run("-w", cache, other).ok()
    ssb.write(ssb.home / ".config/ssb-town/key", SECRET)
    r = ssb.inside("print('started')", name="ssb-town", read=["~/.config/ssb-town"])
    assert r.code == 125 and "--read ~/.config/ssb-town" in r.errors, repr(r)
    # The directory is removed, and another program makes a new one with the same name, often with
    # the same inode.
    shutil.rmtree(cache)
    ssb.write(cache / "key", SECRET)
    r = ssb.run(d)
    assert r.code == 125 and "existed before" in r.errors, repr(r)


def test_own_directory_behind_a_symlink_of_the_owners(ssb):
    ssb.write(ssb.home / "dots/cache/other", "x")
    (ssb.home / ".cache").symlink_to("dots/cache")
    place = ssb.home / "dots/cache/ssb-town"
    d = ssb.skill(f"open('{place}/runs', 'a').write('x'); print(open('{place}/runs').read())",
                  name="ssb-town", write=["~/dots/cache/ssb-town"])
    assert ssb.run(d).ok().text == "x\n"
    assert ssb.run(d).ok().text == "xx\n"
    shutil.rmtree(place)
    ssb.write(place / "key", SECRET)
    assert ssb.run(d).code == 125


def test_skill_cannot_make_a_directory_another_skills_own(ssb):
    """A skill that may once write to a program's directory sets the mark "made for the skill of
    this name" on it: the mark has no effect."""
    victim = ssb.home / ".config/ssb-victim"
    ssb.write(victim / "key", SECRET)
    taker = ssb.skill(f"print(open('{victim}/key').read())", name="ssb-victim",
                      read=["~/.config/ssb-victim"])
    forge = f"""
    import os
    os.setxattr({str(victim)!r}, "user.skillsandbox.skill", {str(taker)!r}.encode())
    """
    r = ssb.inside(forge, write=["~/.config/ssb-victim"], flags=["-w", victim])
    assert "Operation not supported" in r.errors or r.ok()
    r = ssb.run(taker)
    assert r.code == 125 and "existed before" in r.errors and SECRET not in r.text, repr(r)
    assert SECRET in ssb.run("-r", victim, taker).ok().text, "control: the owner's word gives it"


@pytest.mark.parametrize("name", ["mpv", "autostart", "systemd", "pip", "git", "gcloud", "python3",
                                  "nixpkgs", "river", "labwc", "uwsm", "irb", "chezmoi"])
def test_name_of_another_program(ssb, name):
    for place in (f"~/.config/{name}", f"~/.cache/{name}"):
        r = ssb.inside("print('started')", name=name, write=[place])
        assert r.code == 125 and f"write {place} is refused" in r.errors, repr(r)
    assert not (ssb.home / f".config/{name}").exists()


def test_symlink_that_a_skill_left_at_an_entry_of_the_policy(ssb):
    """A skill replaces a directory that the policy file grants by a symlink to ~/.ssh. Another
    skill asks for ~/.ssh: it is refused."""
    shared, key = ssb.home / "work/shared", ssb.home / ".ssh/id_ed25519"
    ssb.write(shared / "file", "")
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml",
              "grants: {read: [~/work/shared]}\n", 0o600)
    show = f"print(open({str(key)!r}).read())"
    wants = ssb.skill(show, read=["~/.ssh"])
    r = ssb.run(wants)
    assert r.code == 125 and SECRET not in r.text, repr(r)
    ssb.inside(f"""
    import os
    os.rename({str(shared)!r}, {str(shared) + ".old"!r})
    os.symlink({str(key.parent)!r}, {str(shared)!r})
    """, write=["~/work"]).ok()
    assert shared.is_symlink(), "control: the harmless skill may do this"
    r = ssb.run(wants)
    assert r.code == 125 and SECRET not in r.text, repr(r)
    assert "read ~/.ssh is refused" in r.errors and "--read" in r.errors, r.errors
    policy = ssb.home / ".config/skillsandbox/policy.yaml"
    ssb.write(policy, "grants: {read: [~/.ssh]}\n", 0o600)
    assert SECRET in ssb.run(wants).ok().text, "control: by its own name it is granted"


def test_symlink_to_what_the_host_obeys(ssb):
    """A grant through a symlink to git hooks is refused, too, although hooks are in no table of
    dangerous places."""
    hooks, d = ssb.mkdir("repo/.git/hooks"), ssb.mkdir("project")
    (d / "out").symlink_to(hooks)
    write = ["--", "sh", "-c", f"echo x > {hooks}/post-commit"]
    r = ssb.run("-w", d / "out", *write)
    assert r.code == 125 and not (hooks / "post-commit").exists(), repr(r)
    assert "name the real path instead" in r.errors, r.errors
    ssb.run("-w", hooks, *write).ok()
    assert (hooks / "post-commit").exists(), "control: by its own name it is granted"


def test_home_below_a_symlink_of_the_machine(root):
    """On some systems /home is a symlink to /var/home: a grant may use either path."""
    key = root.home / ".ssh/id_ed25519"
    top = f"/ssb-test-{os.getpid()}"
    os.symlink(root.base, top)
    try:
        root.write(root.home / ".config/skillsandbox/policy.yaml",
                   f"grants: {{read: [{top}/home/.ssh]}}\n", 0o600)
        code = f"print(open({str(key)!r}).read())"
        assert SECRET in root.inside(code, read=["~/.ssh"]).ok().text
        assert SECRET in root.run("-r", f"{top}/home/.ssh", "--", "cat", key).ok().text
    finally:
        os.unlink(top)


def test_home_that_is_a_symlink(ssb):
    """HOME is a path through a symlink: a grant by this path gives the files at their real path."""
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
    """A bind mount of ~/.ssh at another path is refused, because places are compared by device and
    inode."""
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
    """A skill directory beneath the home is not a request for the home."""
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
    """A manifest asks for a variable that makes programs load code: it is refused, or the run works
    and loads nothing."""
    r = ssb.inside("import os; print(os.environ.get(%r))" % name, env={name: "/nonexistent"},
                   allow=[name])
    assert r.code in (0, 125)
    if name == "LD_PRELOAD":
        assert r.code == 125
