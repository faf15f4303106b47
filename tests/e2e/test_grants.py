"""Grants of files and directories: the access that they give, and the access that they must not
give."""
import fcntl
import json
import os
import signal
import stat
import subprocess
import time

import pytest

from harness import SECRET, ends_within, execute

# Tries every way to make or change a name in the directory $D.
TAKE = """
import json, os
d = os.environ['D']
seen = {}
def attempt(f):
    try:
        f()
        return True
    except OSError:
        return False
def fill(p):
    with open(p, 'a') as f:
        f.write('evil')
def over(p):
    open(d + '/spare', 'w').write('evil')
    os.rename(d + '/spare', p)
for name in json.loads(os.environ['NAMES']):
    p = d + '/' + name
    ways = {'write': lambda: fill(p), 'chmod': lambda: (os.lstat(p), os.chmod(p, 0o777)),
            'beneath': lambda: fill(p + '/evil'), 'mkdir beneath': lambda: os.mkdir(p + '/dir'),
            'rename over': lambda: over(p), 'away': lambda: os.rename(p, d + '/away'),
            'unlink': lambda: os.unlink(p), 'rmdir': lambda: os.rmdir(p),
            'mkdir': lambda: os.mkdir(p), 'symlink': lambda: os.symlink(d, p)}
    seen[name] = [w for w, f in ways.items() if attempt(f)]
seen['control'] = attempt(lambda: fill(d + '/control'))
print(json.dumps(seen))
"""


def take(ssb, d, names, *flags, **fields):
    seen = ssb.probe(TAKE, env={"D": str(d), "NAMES": json.dumps(names)},
                     flags=["--env", "D", "--env", "NAMES", *flags], **fields)
    assert seen.pop("control"), "the grant itself can be written"
    for left in ("control", "spare", "away"):
        if os.path.lexists(d / left):
            os.unlink(d / left)
    return seen


def take_bare(ssb, d, names):
    return ssb.bare_probe(TAKE, env={"D": str(d), "NAMES": json.dumps(names)})


def tree(d):
    """Everything in d: {path: (kind and mode, content of the file or target of the link)}."""
    seen = {}
    for top, dirs, files in os.walk(d):
        for p in [os.path.join(top, n) for n in dirs + files] + [str(d)]:
            st = os.lstat(p)
            said = os.readlink(p) if stat.S_ISLNK(st.st_mode) else \
                open(p, "rb").read() if stat.S_ISREG(st.st_mode) else None
            seen[os.path.relpath(p, d)] = (oct(st.st_mode), said)
    return seen


def repository(ssb, name):
    d = ssb.mkdir(name)
    ssb.as_caller(["git", "init", "-q", "--template=", d]).ok()
    return d


GIT_NAMES = [".git/commondir", ".git/config.worktree", ".git/info", ".git/info/attributes",
             ".git/modules", ".git/remotes", ".git/branches", ".git/config", ".git/hooks",
             ".git/rebase-merge", ".git/rebase-apply"]


@pytest.mark.parametrize("state", ["absent", "present"])
def test_what_leads_git_elsewhere(ssb, state):
    d, outside = repository(ssb, "repo"), repository(ssb, "outside")
    if state == "present":
        for p in (d, outside):
            for name in (".git/config.worktree", ".git/info/attributes", ".git/modules/m/config",
                         ".git/worktrees/w/gitdir", ".git/hooks/pre-commit"):
                ssb.write(p / name, "mine\n")
    before = tree(d)
    assert set(map(tuple, take(ssb, d, GIT_NAMES, "-w", d).values())) == {()}
    assert tree(d) == before, "unchanged, and no placeholder stays"
    control = take_bare(ssb, outside, GIT_NAMES)
    assert all(control.values()), control


REDIRECT = """
cd "$D" || exit 9
mkdir -p .git/e && cp -r .git/objects .git/refs .git/e/
printf '#!/bin/sh\\ntouch "$HOME/pwned"\\n' > .git/e/run
chmod 755 .git/e/run
printf '[core]\\n\\trepositoryformatversion = 0\\n' > .git/e/config
printf '\\tfsmonitor = %s/.git/e/run\\n' "$D" >> .git/e/config
(echo e > .git/commondir) 2>&-
cat .git/e/config
"""


def test_redirected_git_runs_nothing_on_the_host(ssb):
    pwned = ssb.home / "pwned"
    d, outside = repository(ssb, "repo"), repository(ssb, "outside")
    r = ssb.run("-w", d, "--env", f"D={d}", "--", "sh", "-c", REDIRECT).ok()
    assert "fsmonitor" in r.text, "the bait is laid"
    ssb.bare(["git", "status"], cwd=d).ok()
    assert not pwned.exists() and not (d / ".git/commondir").exists()
    ssb.bare(["sh", "-c", REDIRECT], env={"D": str(outside)}).ok()
    ssb.bare(["git", "status"], cwd=outside)
    assert pwned.exists(), "control: unconfined the same lines run code in the owner's git"


def test_git_works_in_a_grant(ssb):
    d = repository(ssb, "repo")
    ssb.write(d / "file", "text\n")
    script = "git add file && git -c user.name=n -c user.email=e@x commit -qm first"
    ssb.run("-w", d, "--", "sh", "-c", script, cwd=d).ok()
    assert "first" in ssb.as_caller(["git", "log", "--oneline"], cwd=d).ok().text
    assert "nothing to commit" in ssb.as_caller(["git", "status"], cwd=d).ok().text
    assert not (d / ".git/commondir").exists() and not (d / ".git/modules").exists()


HELD = [".git/hooks", ".envrc", ".vscode", ".claude", ".mcp.json", "CLAUDE.md"]


@pytest.mark.parametrize("state", ["absent", "present"])
def test_settings_of_every_agent_that_setup_knows(ssb, state):
    """The settings that `setup --project` writes, and other settings of the same agents, can name
    programs to start: in a writable grant, a skill can neither make nor change them."""
    d, outside = ssb.mkdir("d"), ssb.mkdir("outside")
    dirs = [".claude", ".codex", ".opencode", ".qwen", ".roo"]
    names = [*dirs, ".mcp.json", "opencode.json", "opencode.jsonc", "CLAUDE.local.md",
             "AGENTS.override.md"]
    for p in (d, outside) if state == "present" else ():
        for name in names:
            ssb.write(p / name / "settings" if name in dirs else p / name, "mine\n")
    before = tree(d)
    assert set(map(tuple, take(ssb, d, names, "-w", d).values())) == {()}
    assert tree(d) == before
    assert all(take_bare(ssb, outside, names).values())


def test_held_settings_are_json(ssb):
    """Placeholders for JSON settings contain {}: an agent that starts in the directory during the
    run can parse them."""
    d = ssb.mkdir("d")
    show = "for f in .mcp.json opencode.json opencode.jsonc; do cat $f; echo; done"
    r = ssb.run("-w", d, "--", "sh", "-c", show, cwd=d).ok()
    assert [json.loads(line) for line in r.text.split()] == [{}, {}, {}]
    assert os.listdir(d) == []


def test_placeholder_that_another_run_is_about_to_fill(ssb):
    """Another run has made a placeholder, but has not filled it yet: this run must lock the
    placeholder, too. Otherwise the other run would remove it at its end, and this run's skill could
    use the name."""
    d = ssb.mkdir("d")
    half = ssb.write(d / ".envrc", "", 0o1400)
    with ssb.popen([ssb.binary, "run", "-w", d, "--", "sh", "-c", "echo up; read x"],
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"up\n"
        with open(half, "rb") as f, pytest.raises(BlockingIOError):
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        run.communicate(b"\n", timeout=30)
    assert os.listdir(d) == []


@pytest.mark.parametrize("how", ["flags", "flag beneath a request"])
def test_grant_in_a_grant_protects_its_own_names(ssb, how):
    outer, inner = ssb.mkdir("p"), ssb.mkdir("p/a")
    before = tree(outer)
    flags = ["-w", outer, "-w", inner] if how == "flags" else ["-w", inner]
    fields = {} if how == "flags" else {"write": [outer]}
    for d in (inner, outer):
        assert set(map(tuple, take(ssb, d, HELD, *flags, **fields).values())) == {()}
    assert tree(outer) == before
    control = take_bare(ssb, inner, [n for n in HELD if "/" not in n])
    assert all(control.values()), control


def test_no_git_in_the_grant(ssb):
    d, outside = ssb.mkdir("plain"), ssb.mkdir("outside")
    names = [".git", ".git/hooks", ".git/config"]
    assert set(map(tuple, take(ssb, d, names, "-w", d).values())) == {()}
    assert os.listdir(d) == []
    os.mkdir(outside / ".git")
    ssb.own(outside / ".git")
    control = take_bare(ssb, outside, [".git"])[".git"]
    assert {"chmod", "mkdir beneath", "away"} <= set(control)


@pytest.mark.parametrize("name", [".envrc", ".claude", "CLAUDE.md"])
def test_dangling_symlink_at_a_protected_name(ssb, name):
    d = ssb.mkdir("d")
    (d / name).symlink_to("later")
    r = ssb.run("-w", d, "--", "sh", "-c", f"echo started; mkdir -p {d}/later; "
                f"echo evil > {d}/later; echo evil > {d}/later/x")
    assert r.text == "started\n" and f"{d}/later" in r.errors and "protected" in r.errors
    assert sorted(os.listdir(d)) == [name], "neither made, nor is a placeholder left"
    ssb.write(d / "later", "mine\n")
    r = ssb.run("-w", d, "--", "sh", "-c", f"echo started; echo evil > {d}/later")
    assert b"started" in r.out and (d / "later").read_text() == "mine\n"
    (d / name).unlink()
    ssb.run("-w", d, "--", "sh", "-c", f"echo fine > {d}/later").ok()
    assert (d / "later").read_text() == "fine\n", "control: no protected name leads there"


def test_reason_of_a_refusal_is_never_lost(user):
    """Init fails before it has read the supervisor's message: on a busy machine, each of 320
    refused runs still prints the reason."""
    d, system = user.mkdir("d"), user.mkdir("system")
    place = system / d.relative_to("/")
    place.parent.mkdir(parents=True)
    place.symlink_to("elsewhere")
    script = 'for i in 1 2 3 4; do (for k in $(seq 80); do "$@"; done) & done; wait'
    r = user.as_caller(["sh", "-c", script, "sh", user.binary, "run", "--rootfs", system, "-r", d,
                        "--", "true"], timeout=240)
    lines = r.errors.splitlines()
    assert len(lines) == 320, "control: every run was refused with one line"
    assert {line.split(" ")[1] for line in lines} == {"mounts:"}, set(lines)
    assert all("is a symlink" in line for line in lines), set(lines)


def test_skill_takes_the_right_to_write_from_the_grant(ssb):
    d = ssb.mkdir("d")
    r = ssb.run("-w", d, "--", "sh", "-c", f"ls -A {d}; echo x > {d}/f; chmod 0555 {d}").ok()
    assert ".envrc" in r.text.split(), "a placeholder was there during the run"
    assert os.listdir(d) == ["f"]
    assert stat.S_IMODE(d.stat().st_mode) == 0o555


def test_grant_in_which_no_name_can_be_held(user):
    d = user.mkdir("d", 0o555)
    script = f"echo started; chmod 0755 {d}; echo evil > {d}/.envrc"
    r = user.run("-w", d, "--", "sh", "-c", script)
    assert r.code == 125 and b"started" not in r.out, repr(r)
    assert str(d) in r.errors and "cannot reserve the name" in r.errors
    assert os.listdir(d) == []
    d.chmod(0o755)
    r = user.run("-w", d, "--", "sh", "-c", script)
    assert b"started" in r.out and os.listdir(d) == []
    outside = user.mkdir("outside", 0o555)
    user.bare(["sh", "-c", script.replace(str(d), str(outside))]).ok()
    assert os.listdir(outside) == [".envrc"], "control: the owner of a directory can open it"


def test_root_holds_names_in_a_read_only_directory(root):
    d = root.mkdir("d", 0o555)
    script = f"chmod 0755 {d}; echo fine > {d}/f; echo evil > {d}/.envrc; mkdir {d}/.git/hooks"
    root.run("-w", d, "--", "sh", "-c", script)
    assert os.listdir(d) == ["f"]


RACE = """
cd "$D"
for i in 1 2 3 4; do
    { echo evil > .envrc; } 2>&- && echo made .envrc
    mkdir .vscode 2>&- && echo made .vscode
    mkdir -p .git/hooks 2>&- && echo made .git/hooks
done
echo over
"""


def test_overlapping_runs_share_the_protection(ssb):
    """Runs in two loops share a writable directory, so one begins while the other removes its
    placeholders: no skill can use a protected name."""
    d, rounds = ssb.mkdir("shared"), 30
    loop = ["sh", "-c", f'for i in $(seq {rounds}); do "$@" || exit; done', "sh"]
    argv = [*loop, ssb.binary, "run", "-w", d, "--env", f"D={d}", "--", "sh", "-c", RACE]
    pair = [ssb.popen(argv, stdin=-3, stdout=-1, stderr=-1) for _ in range(2)]
    for p in pair:
        out, err = p.communicate(timeout=240)
        assert (p.returncode, set(out.splitlines())) == (0, {b"over"}), (out, err)
        assert out.count(b"over") == rounds
    assert os.listdir(d) == []
    outside = ssb.mkdir("outside")
    assert "made .envrc" in ssb.bare(["sh", "-c", RACE], env={"D": str(outside)}).ok().text


def test_run_begins_while_another_removes_its_names(ssb):
    """A run begins while another run, which is ending, holds the lock on its placeholder to remove
    it: the new run waits, and then makes a new placeholder."""
    d = ssb.mkdir("shared")
    look = ["--", "sh", "-c", f"stat -c %a:%s {d}/.envrc; {{ echo evil > {d}/.envrc; }} 2>&-; "
            f"test -e {d}/.envrc && echo held"]
    mode, size = ssb.run("-w", d, *look).ok().text.split()[0].split(":")
    assert not (d / ".envrc").exists()
    ssb.write(d / ".envrc", "." * int(size), int(mode, 8))
    with open(d / ".envrc", "rb") as ending:
        fcntl.flock(ending, fcntl.LOCK_EX)
        p = ssb.popen([ssb.binary, "run", "-w", d, *look], stdin=-3, stdout=-1, stderr=-1)
        try:
            early = ends_within(p, 0.3)
            os.unlink(d / ".envrc")
        finally:
            fcntl.flock(ending, fcntl.LOCK_UN)
            out, err = p.communicate(timeout=30)
    assert early is None, "control: the two did meet"
    assert (p.returncode, out) == (0, f"{mode}:{size}\nheld\n".encode()), (out, err)
    assert os.listdir(d) == []


def test_run_of_another_user_ends_first(root, user):
    """Two runs of different users share a directory: the names stay protected until the last run
    has ended, whichever run made the placeholders."""
    d = user.mkdir("shared")
    script = 'touch "$0/$1"; while [ -e "$0/$1" ]; do sleep 0.02; done; ' \
             '{ echo evil > "$0/.envrc"; } 2>&-; mkdir "$0/.vscode" 2>&-; echo over'

    def begin(caller, mark):
        p = caller.popen([caller.binary, "run", "-w", d, "--", "sh", "-c", script, d, mark],
                         stdin=-3, stdout=-1, stderr=-1)
        for _ in range(600):
            if (d / mark).exists() or ends_within(p, 0.05) is not None:
                break
        return p

    def end(p, mark):
        os.unlink(d / mark)
        return p.communicate(timeout=30)
    first, second = begin(root, "first"), begin(user, "second")
    held = sorted(os.listdir(d))
    assert end(first, "first")[0] == b"over\n"
    assert sorted(os.listdir(d)) == [n for n in held if n != "first"], "control: they were there"
    out, err = end(second, "second")
    assert (out, os.listdir(d)) == (b"over\n", []), err


def test_interrupt_during_the_set_up_leaves_nothing(ssb):
    d = ssb.mkdir("d")
    ssb.write(d / "file", "mine\n")
    before = tree(d)
    argv = [ssb.binary, "run", "-w", d, "--", "sleep", "20"]
    for i in range(60):
        p = ssb.popen(argv, stdin=-3, stdout=-3, stderr=-1)
        time.sleep(0.02 * i / 59)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=19)  # less than the 20 s that the command sleeps
        assert p.returncode in (130, -signal.SIGINT), (i, p.returncode, err)
        assert tree(d) == before, f"round {i}"
    r = ssb.run("-w", d, "--", "ls", "-A", d).ok()
    assert ".envrc" in r.text.split(), "control: there are placeholders to leave"


ASKED = {"~/Maildir": "Maildir/new/1", "~/.env": ".env", "~/.config/Code": ".config/Code/state"}


@pytest.mark.parametrize("path", ASKED)
def test_request_that_only_the_owner_can_grant(ssb, path):
    secret = ssb.home / ASKED[path]
    ssb.write(secret, SECRET, 0o600)
    full = path.replace("~", str(ssb.home))
    code = f"print(open({str(secret)!r}).read())"
    r = ssb.inside(code, read=[path])
    assert r.code == 125 and SECRET not in r.text, repr(r)
    assert "is refused" in r.errors and "help: " in r.errors and "--read" in r.errors
    assert SECRET in ssb.inside(code, read=[path], flags=["--read", full]).ok().text


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("place", ["/tmp", "/var/tmp"])
def test_whole_tmp(ssb, place, access):
    """A manifest asks for all of /tmp or /var/tmp: this is refused, and the owner can grant it. The
    test mounts an empty directory there, in a new mount namespace."""
    def run(*args):
        script = 'mount -t tmpfs -o mode=1777 t "$0"; echo shared > "$0/of-others"; ' \
                 'mkdir -m 0777 "$0/part"; echo part > "$0/part/f"; exec "$@"'
        return execute(["unshare", "-m", "sh", "-c", script, place, *ssb.identity(),
                            ssb.binary, "run", *args], env=ssb.environment(), cwd=ssb.work)
    code = f"print(open('{place}/of-others').read())"
    r = run(ssb.skill(code, **{access: [place]}))
    assert r.code == 125 and "shared" not in r.text, repr(r)
    assert "is refused" in r.errors and "help: " in r.errors and f"--{access}" in r.errors
    assert run(f"--{access}", place, ssb.skill(code)).ok().text == "shared\n\n"
    part = ssb.skill(f"print(open('{place}/part/f').read())", read=[f"{place}/part"])
    assert run(part).ok().text == "part\n\n", "control: a part of it may be asked for"


def test_hard_link_to_a_secret(ssb):
    data = ssb.mkdir("data")
    os.link(ssb.home / ".ssh/id_ed25519", data / "notes")
    ssb.write(data / "plain", "plain")
    code = f"print(open('{data}/notes').read())"
    r = ssb.inside(code, read=[data / "notes"])
    assert r.code == 125 and SECRET not in r.text, repr(r)
    assert "is refused" in r.errors and "help: " in r.errors
    assert SECRET in ssb.inside(code, flags=["-r", data / "notes"]).ok().text
    assert ssb.inside(code.replace("notes", "plain"), read=[data / "plain"]).ok().text == "plain\n"


def test_trace_in_a_writable_grant(ssb):
    d, below, elsewhere = ssb.mkdir("grant"), ssb.mkdir("grant/below"), ssb.mkdir("elsewhere")
    alias = ssb.base / "alias"
    alias.symlink_to(below)
    for place in (d / "t.json", below / "t.json", alias / "t.json", d / "../grant/t.json"):
        r = ssb.run("-w", d, "--trace-output", place, "--", "echo", "started")
        assert r.code == 2 and b"started" not in r.out, repr(r)
        assert "--trace-output" in r.errors and "skill may write" in r.errors
    assert os.listdir(d) == ["below"] and os.listdir(below) == []
    skill = ssb.skill("print('started')", write=[d])
    assert ssb.run("--trace-output", d / "t.json", skill).code == 2
    made = elsewhere / "made"  # the run makes this directory
    skill = ssb.skill("print('started')", write=[made])
    r = ssb.run("--trace-output", made / "t.json", skill)
    assert r.code == 2 and "skill may write" in r.errors and os.listdir(made) == [], repr(r)
    ssb.run("-w", d, "--trace-output", elsewhere / "t.json", "--", "echo", "started").ok()
    assert json.loads((elsewhere / "t.json").read_bytes())["exit_code"] == 0
    ssb.run("-r", d, "--trace-output", d / "t.json", "--", "true").ok()
    assert (d / "t.json").exists(), "control: where the skill may only read, a trace may lie"


def test_git_does_not_see_the_placeholders(ssb):
    """`git add -A` in the sandbox adds the skill's file, but not the placeholders of protected
    names."""
    repo = ssb.mkdir("seen")
    ssb.as_caller(["git", "init", "-q", repo]).ok()
    script = (f"cd {repo}; echo x > f; git add -A; "
              "git -c user.name=n -c user.email=e@x commit -qm x; git ls-files")
    r = ssb.run("-w", repo, "--", "sh", "-c", script).ok()
    assert r.text == "f\n", repr(r)
    assert ssb.as_caller(["git", "-C", repo, "status", "-s"]).ok().text == ""


def test_the_way_to_a_grant_stays(ssb):
    """A skill cannot rename or remove a directory above a grant. Otherwise the grant would get
    another path, also in the trace."""
    project = ssb.home / "src/deep/proj"
    ssb.write(project / "file", "text")
    code = f"""
    import json, os
    def tried(f, *a):
        try: return f(*a) or 'done'
        except OSError as e: return e.errno
    home = {str(ssb.home)!r}
    print(json.dumps([tried(os.rename, home + '/src', home + '/x'),
                      tried(os.rename, home + '/src/deep', home + '/src/x'),
                      tried(os.rmdir, home + '/src'),
                      open(home + '/src/deep/proj/file').read(),
                      tried(os.mkdir, home + '/src/own'), tried(os.rename, home + '/src/own',
                                                                home + '/src/own2')]))
    """
    got = ssb.probe(code, write=[project])
    assert got == [16, 16, 16, "text", "done", "done"], got
    # The control: a directory without a grant beneath it can be renamed.
    free = ssb.probe(f"""
    import os
    os.makedirs({str(ssb.home)!r} + '/src/deep')
    os.rename({str(ssb.home)!r} + '/src', {str(ssb.home)!r} + '/x')
    print('true')
    """)
    assert free is True


@pytest.mark.parametrize("flag", ["-w", "-r"])
def test_the_way_to_a_grant_in_a_grant_stays(ssb, flag):
    """An inner grant lies in a writable outer grant: the skill cannot rename a directory between
    the two. Otherwise it could make new files on the host, at the paths of the inner grant's
    read-only files and protected names."""
    outer, _, _, inner = map(ssb.mkdir, ("p", "p/a", "p/a/b", "p/a/b/c"))
    ssb.write(inner / "file", "text")
    before = tree(outer)
    code = f"""
    import json, os
    p = {str(outer)!r}
    def tried(f, *a):
        try: return f(*a) or 'done'
        except OSError as e: return e.errno
    got = [tried(os.rename, p + '/a', p + '/x'), tried(os.rename, p + '/a/b', p + '/a/x'),
           tried(os.rename, p + '/a/b/c', p + '/a/b/x')]    # a mount: the kernel refuses this
    tried(os.makedirs, p + '/a/b/c')
    for name in ('.envrc', 'file'):
        tried(lambda: open(p + '/a/b/c/' + name, 'x').write('evil'))
    tried(os.mkdir, p + '/a/b/own')
    got += [tried(os.rename, p + '/a/b/own', p + '/a/b/own2'), tried(os.rmdir, p + '/a/b/own2')]
    print(json.dumps(got))
    """
    got = ssb.probe(code, flags=["-w", outer, flag, inner])
    assert not (inner / ".envrc").exists() and (inner / "file").read_text() == "text", got
    assert got[:2] == [16, 16] and got[3:] == ["done", "done"] and tree(outer) == before, got
    assert ssb.bare_probe(code)[0] == "done", "control: unconfined it moves"
    assert (inner / ".envrc").exists()


def test_protected_symlink_into_a_writable_grant(ssb):
    """A symlink with a protected name leads into a writable grant (out of a repository, by an
    absolute path, or into another grant): its target is read-only for the skill."""
    for name in ("b", "b/store", "b/store/hooks", "b/claude", "z", "z/repo"):
        ssb.mkdir("w/" + name)
    w = ssb.own(ssb.base / "w")
    (w / "z/repo/.git").symlink_to("../../b/store")
    (w / "z/repo/.claude").symlink_to(w / "b/claude")
    (w / "z/.claude").symlink_to(w / "b/claude")
    (w / "z/.codex").symlink_to("/usr/share")
    names = ("z/repo/.git/hooks/x", "b/store/hooks/y", "z/repo/.claude/x", "z/.claude/x",
             "b/claude/y", "z/plain", "b/plain")
    code = f"""
    import json, os
    seen = []
    for way in 'b', 'z/repo':
        try:
            os.rename({str(w)!r} + '/' + way, {str(w)!r} + '/' + way + '2')
            os.rename({str(w)!r} + '/' + way + '2', {str(w)!r} + '/' + way)
            seen.append(way)
        except OSError:
            pass
    for name in {names}:
        try:
            open({str(w)!r} + '/' + name, 'w').close()
            seen.append(name)
        except OSError:
            pass
    print(json.dumps(seen))
    """
    for flags in (["-w", w], ["-w", w / "b", "-w", w / "z"]):
        assert ssb.probe(code, flags=flags) == ["z/plain", "b/plain"], flags
    assert ssb.bare_probe(code) == ["b", "z/repo", *names], "control: unconfined all can be made"


# In $D, makes a file in each directory of $MAKE, and replaces each name of $REPLACE by a directory
# for a moment. Prints the names for which this succeeded.
REACH = """
import json, os
os.chdir(os.environ['D'])
seen = []
def tried(name, f):
    try:
        f()
        seen.append(name)
    except OSError:
        pass
def replace(name):
    os.rename(name, name + '-gone')
    os.mkdir(name)
    os.rmdir(name)
    os.rename(name + '-gone', name)
for name in json.loads(os.environ['MAKE']):
    tried(name, lambda: open(name + '/evil', 'w').close())
for name in json.loads(os.environ['REPLACE']):
    tried(name, lambda: replace(name))
print(json.dumps(seen))
"""


def reach(ssb, make, replace, flags=None, **fields):
    env = {"D": str(ssb.base / "w"), "MAKE": json.dumps(make), "REPLACE": json.dumps(replace)}
    if flags is None:
        return ssb.bare_probe(REACH, env=env)
    return ssb.probe(REACH, env=env, flags=[*(f for n in env for f in ("--env", n)), *flags],
                     **fields)


# name: (symlinks, the names that must be protected). The grants a and b are in the directory W.
LEADS = {
    "into a grant that comes later": ({"a/.git": "../b/store"}, ["b/store", "b/store/hooks"]),
    "by links in the grants": ({"a/.claude": "mid", "a/mid": "../b/turn", "b/turn": "store"},
                               ["a/mid", "b/turn", "b/store"]),
    "by a link in a directory": ({"a/.claude": "../b/alias/hooks", "b/alias": "store"},
                                 ["b/alias", "b/store", "b/store/hooks"]),
    "by a link that is not granted": ({"a/.claude": "W/out/link", "out/link": "W/b/store"},
                                      ["b/store"]),
    "out of a directory": ({"a/.claude": "../b/store/../../out"}, ["b/store"]),
    "out of the top": ({"a/.claude": "../" * 40 + "./W/b/store"}, ["b/store"]),
}


@pytest.mark.parametrize("case", LEADS)
def test_protected_symlink_is_followed_on_the_host(ssb, case):
    w, *_ = map(ssb.mkdir, ("w", "w/a", "w/b", "w/b/store", "w/b/store/hooks", "w/out"))
    links, held = LEADS[case]
    for link, to in links.items():
        (w / link).symlink_to(to.replace("W", str(w)))
    before = tree(w)
    make, replace = ["b/store/hooks", "b", "a"], [*links, *held]
    flags = ["-w", w / "a", "-w", w / "b"]
    seen = reach(ssb, make, replace, flags)
    assert seen[-2:] == ["b", "a"] and set(seen[:-2]) <= {"b/store/hooks"} - set(held), seen
    for name in seen:
        (w / name / "evil").unlink()
    assert tree(w) == before, "unchanged, and no placeholder stays"
    assert reach(ssb, make, replace) == make + replace, "control: unconfined all can be made"


@pytest.mark.parametrize("by", ["flag", "policy", "manifest"])
def test_protected_symlink_to_what_is_granted(ssb, by):
    """A protected symlink leads to a granted directory: if the owner named this directory, the
    skill can write to it; if only the manifest asked for it, the skill cannot."""
    w, c = ssb.mkdir("w"), ssb.mkdir("w/c")
    ssb.mkdir("w/a")
    ssb.mkdir("w/c/sub")
    (w / "a/.claude").symlink_to("../c")
    if by == "policy":
        ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", f"always: {{write: [{c}]}}\n",
                  0o600)
    flags = ["-w", w / "a", *(["-w", c] if by == "flag" else [])]
    seen = reach(ssb, ["c", "c/sub"], ["a/.claude"], flags, write=[c] if by == "manifest" else [])
    assert seen == ([] if by == "manifest" else ["c", "c/sub"])
    seen = reach(ssb, ["c", "c/sub"], [], ["-w", w / "a", "-w", c / "sub"],
                 write=[c] if by == "manifest" else [])
    assert "c/sub" in seen, "nor is what the owner named in it"


@pytest.mark.parametrize("to", ["grant", "by a link", "elsewhere"])
def test_absolute_symlink_to_nothing(ssb, to):
    d, away = ssb.mkdir("d"), ssb.mkdir("away")
    (away / "link").symlink_to(d / "later")
    (d / ".claude").symlink_to({"grant": d / "later", "by a link": away / "link",
                                "elsewhere": away / "later"}[to])
    r = ssb.run("-w", d, "--", "sh", "-c", f"mkdir {d}/later && echo made; echo > {d}/later/x")
    if to == "elsewhere":
        assert r.ok().text == "made\n"
        return
    assert r.code != 0 and r.text == "" and "protected" in r.errors, r
    assert not (d / "later").exists()
    ssb.mkdir("d/later")
    ssb.run("-w", d, "--", "sh", "-c", f"echo evil > {d}/later/f; echo fine > {d}/f")
    assert os.listdir(d / "later") == [] and (d / "f").exists()
