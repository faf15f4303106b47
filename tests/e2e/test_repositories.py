"""Repositories inside a writable grant: their files that programs of the owner would obey are
protected, as those at the top of the grant, and git works in the repositories."""
import os

import pytest

from test_grants import GIT_NAMES, HELD, take, take_bare, tree

COMMIT = "echo {0} > {0} && git add {0} && git -c user.name=n -c user.email=e@x commit -qm {0}"


def git(ssb, *args, cwd=None):
    return ssb.as_caller(["git", "-c", "user.name=n", "-c", "user.email=e@x", *args],
                         cwd=cwd).ok().text


def nested(ssb, name, *inside):
    """Makes a directory to grant, with repositories beneath it. Returns the path of the directory,
    then the paths of the repositories."""
    top = ssb.mkdir(name)
    repos = [ssb.mkdir(f"{name}/{i}") for i in inside]
    for d in repos:
        git(ssb, "init", "-q", d)
    for p in top.rglob("*"):
        ssb.own(p)
    return [top, *repos]


@pytest.mark.parametrize("state", ["absent", "present"])
def test_names_in_a_repository_are_held(ssb, state):
    top, near, far = nested(ssb, "top", "near", "a/b/far")
    _, outside = nested(ssb, "outside", "r")
    if state == "present":
        for d in (near, far, outside):
            for name in (".git/config.worktree", ".git/hooks/pre-commit", ".envrc", ".mcp.json",
                         ".vscode/tasks.json", ".claude/settings.json", "CLAUDE.md"):
                ssb.write(d / name, "mine\n")
    before = tree(top)
    names = [*GIT_NAMES, *HELD]
    for d in (near, far):
        assert set(map(tuple, take(ssb, d, names, "-w", top).values())) == {()}
    assert tree(top) == before, "unchanged, and no placeholder stays"
    control = take_bare(ssb, outside, names)
    assert all(control.values()), control


WRITE = """
import os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
        print('made')
    except OSError as e:
        print(e.errno)
"""


def test_trace_tells_what_is_held(ssb):
    """Each denied write to a protected name is recorded, anywhere in the grant, whether the name
    existed or has a placeholder."""
    top, near = nested(ssb, "top", "near")
    for name in ("near/.envrc", ".gemini/settings.json", "near/.npmrc"):
        ssb.write(top / name, "mine\n")
    free = [top / "near/file", top / "sub.envrc", top / ".git-other"]
    held = [near / ".git/hooks/pre-commit", near / ".git/config", near / ".envrc",
            near / "CLAUDE.md", near / ".npmrc", top / ".gemini/settings.json",
            top / ".gemini/new"]
    words = ["--", "python3", "-c", WRITE, *held, *free]
    r = ssb.run("-w", top, *words).ok()
    assert r.text.split() == ["30"] * len(held) + ["made"] * len(free)
    told = [e["data"] for e in ssb.last_trace()["policy_violations"]]
    assert [(d["path"], d["reason"], d["status"], d["error"]) for d in told] == [
        (str(path), "protected", "denied", "EROFS") for path in held]
    asked = {e["data"]["path"] for e in ssb.last_trace()["events"] if e["kind"] == "file_write"}
    assert asked == set(map(str, free))
    # The owner grants the denied places by name, as the remedies say: now the writes work.
    named = [near / ".git/hooks", near / ".envrc", near / ".npmrc", top / ".gemini"]
    r = ssb.run("-w", top, *(w for d in named for w in ("-w", d)), *words).ok()
    assert r.text.split() == ["made", "30", "made", "30"] + ["made"] * (3 + len(free))
    assert len(ssb.last_trace()["policy_violations"]) == 2


def test_trace_tells_what_is_led_to(ssb):
    """A place is protected because git's settings or a symlink lead to it: each denied write there
    is recorded, and the remedy in the record works."""
    top, near = nested(ssb, "top", "near")
    git(ssb, "config", "core.hooksPath", "myhooks", cwd=near)
    ssb.write(top / "store/x", "mine\n")
    (near / ".claude").symlink_to("../store")
    held = [near / "myhooks/pre-commit", top / "store/x", top / "store/new"]
    words = ["--", "python3", "-c", WRITE, *held, top / "free"]
    assert ssb.run("-w", top, *words).ok().text.split() == ["30", "30", "30", "made"]
    told = [e["data"] for e in ssb.last_trace()["policy_violations"]]
    assert [(d["path"], d["reason"], d["status"], d["error"]) for d in told] == [
        (str(path), "protected", "denied", "EROFS") for path in held]
    flags = {f for d in told for f in [d["remedy"]]}
    assert flags == {f"--write {near}/myhooks", f"--write {top}/store/x", f"--write {top}/store"}
    ssb.mkdir("top/near/myhooks")
    r = ssb.run("-w", top, *(w for f in sorted(flags) for w in f.split()), *words).ok()
    assert r.text.split() == ["made"] * 4, "granted by name, as the lines say"
    assert not ssb.last_trace()["policy_violations"]


REPLACE = """
import json, os, sys
seen = {}
os.chdir(os.environ['D'])
for d in ('a/b/repo', 'a/b', 'a', 'a/other'):
    try:
        os.rename(d, d + '-gone')
        os.makedirs(d)
        seen[d] = 'replaced'
        os.rmdir(d)
        os.rename(d + '-gone', d)
    except OSError:
        seen[d] = 'held'
print(json.dumps(seen))
"""


def test_no_other_repository_takes_its_place(ssb):
    """A skill cannot replace a repository: neither the repository nor a directory above it can be
    renamed."""
    top, repo = nested(ssb, "top", "a/b/repo")
    ssb.mkdir("top/a/other")
    seen = ssb.probe(REPLACE, env={"D": str(top)}, flags=["--env", "D", "-w", top])
    assert seen.pop("a/other") == "replaced", "control: what holds no repository can be renamed"
    assert set(seen.values()) == {"held"} and len(seen) == 3
    assert (repo / ".git/HEAD").exists()
    control = ssb.bare_probe(REPLACE, env={"D": str(top)})
    assert set(control.values()) == {"replaced"}


def test_work_goes_on(ssb):
    top, near, far = nested(ssb, "top", "near", "a/b/far")
    for d in (near, far):
        r = ssb.run("-w", top, "--", "sh", "-c",
                    COMMIT.format("one") + "; git checkout -qb side; " + COMMIT.format("two") +
                    "; git status --porcelain", cwd=d).ok()
        assert r.text == "", "no placeholder is news to git"
        assert git(ssb, "log", "--format=%s", cwd=d).split() == ["two", "one"]
        assert git(ssb, "status", "--porcelain", cwd=d) == ""


def test_git_directory_elsewhere_in_the_grant(ssb):
    """The .git of a working tree is a file that names a git directory elsewhere in the grant: this
    git directory is protected."""
    trees = []
    for name in ("top", "outside"):
        d = ssb.mkdir(name)
        ssb.mkdir(f"{name}/gits")
        git(ssb, "init", "-q", "--separate-git-dir", d / "gits/one", d / "tree")
        trees.append(d)
    top, outside = trees
    names = ["gits/one/" + n.removeprefix(".git/") for n in GIT_NAMES] + ["tree/.git"]
    before = tree(top)
    assert set(map(tuple, take(ssb, top, names, "-w", top).values())) == {()}
    assert tree(top) == before
    r = ssb.run("-w", top, "--", "sh", "-c", COMMIT.format("one") + "; git status --porcelain",
                cwd=top / "tree").ok()
    assert r.text == "" and git(ssb, "log", "--format=%s", cwd=top / "tree") == "one\n"
    control = take_bare(ssb, outside, names)
    assert all(control.values()), control


def test_git_directory_in_another_grant(ssb):
    """The git directory of a working tree is in another grant. A commondir file, a symlink, or a
    path through a symlink leads to it, or it is the grant itself: in each case it is protected."""
    w = ssb.mkdir("w")
    for name in ("a", "z", "z/gits", "z/link-to"):
        ssb.mkdir("w/" + name)
    for work, gitdir in {"a/one": "z/gits/one", "a/two": "z/two",
                         "a/three": "z/link-to/three"}.items():
        git(ssb, "init", "-q", "--separate-git-dir", w / gitdir, w / work)
    git(ssb, "commit", "-q", "--allow-empty", "-m", "first", cwd=w / "a/three")
    git(ssb, "clone", "-q", "--bare", w / "a/three", w / "z/bare")
    git(ssb, "worktree", "add", "-q", w / "a/wt", cwd=w / "z/bare")
    (w / "a/two/.git").unlink()
    (w / "a/two/.git").symlink_to("../../z/two")
    (w / "z/link").symlink_to("link-to")
    ssb.write(w / "a/three/.git", f"gitdir: {w}/z/link/three\n")
    gitdirs = ["z/gits/one", "z/two", "z/link-to/three", "z/bare"]
    names = [d + "/" + n.removeprefix(".git/") for d in gitdirs for n in GIT_NAMES]
    names += ["z/bare/worktrees/wt/commondir", "a/one/.git"]
    before = tree(w)
    for flags in (["-w", w / "a", "-w", w / "z"],
                  ["-w", w / "a", *(f for d in gitdirs for f in ("-w", w / d)), "-w", w / "z"]):
        seen = take(ssb, w / "z", ["../" + n for n in [*names, "z/link", "z/link-to"]], *flags)
        for way in ("z/link", "z/link-to"):
            assert not {"away", "unlink", "rename over"} & set(seen.pop("../" + way)), "it stays"
        assert set(map(tuple, seen.values())) == {()}, seen
        for left in ("evil", "dir"):
            assert os.path.lexists(w / "z/link-to" / left), "control: it is no protected place"
            ssb.as_caller(["rm", "-r", w / "z/link-to" / left]).ok()
        (w / "z/link-to").chmod(0o755)
        assert tree(w) == before
    ssb.run("-w", w / "a", "-w", w / "z", "--", "sh", "-c", COMMIT.format("one"),
            cwd=w / "a/one").ok()
    assert git(ssb, "log", "--format=%s", cwd=w / "a/one") == "one\n"
    control = take_bare(ssb, w, names)
    assert all(control.values()), control


def test_git_file_that_leads_to_nothing_is_told(ssb):
    top = ssb.mkdir("top")
    ssb.write(top / "r/.git", "gitdir: ../gone\n")
    r = ssb.run("-w", top, "--", "true").ok()
    said = " ".join(ssb.last_trace()["plan"]["warnings"])
    assert "a .git in it leads to a place that does not exist" in said and str(top) in said
    assert "a .git in it leads to a place that does not exist" in r.errors
    ssb.write(top / "r/.git", "gitdir: /nowhere/gone\n")
    assert "does not exist or cannot" not in ssb.run("-w", top, "--", "true").ok().errors
    assert "does not exist or cannot" not in " ".join(ssb.last_trace()["plan"]["warnings"])


# name: (git settings of the repository w/r, other files, the places to which these settings lead).
# B stands for the base directory.
NAMED = {
    "hooks": ("[core]\n\thooksPath = myhooks\n", {}, ["w/r/myhooks/"]),
    "hooks deeper": ("[Core] HOOKSPATH = \"a dir/my hooks\" # mine\n", {},
                     ["w/r/a dir/my hooks/"]),
    "hooks beside": ("[core]\n\thooksPath = ../hooks/x\n", {}, ["w/hooks/x/"]),
    "hooks by an absolute path": ("[core]\n\thooksPath = B/w/hooks\n", {}, ["w/hooks/"]),
    "hooks in another grant": ("[core]\n\thooksPath = B/z/hooks\n", {}, ["z/hooks/"]),
    "hooks in the home": ("[core]\n\thooksPath = ~/h/hooks\n", {}, ["home/h/hooks/"]),
    "hooks of git": ("[core]\n\thooksPath = .git/hooks\n", {}, ["w/r/.git/hooks/"]),
    "hooks of husky": ("[core]\n\thooksPath = .husky/_\n", {}, ["w/r/.husky/_/"]),
    "settings": ("[include]\n\tpath = ../more\n", {}, ["w/r/more"]),
    "settings of a condition": ("[includeIf \"gitdir:B/\"]\n\tpath = B/w/more/x\n", {},
                                ["w/more/x"]),
    "hooks in further settings": (
        "[include]\n\tpath = B/w/one\n",
        {"w/one": "[include]\n\tpath = r/two\n", "w/r/two": "[core]\n\thooksPath = three\n"},
        ["w/one", "w/r/two", "w/r/three/"]),
    "hooks by the owner's settings": (
        "", {"home/.gitconfig": "[core]\n\thooksPath = mine\n"},
        ["w/r/mine/", "w/r/.git/mine/"]),
    "settings by the owner's": (
        "", {"home/.gitconfig": "[includeIf \"gitdir:~/h/\"]\n\tpath = h/work\n"},
        ["home/h/work"]),
    # ~daemon is /usr/sbin, so ~daemon/../..B is the base directory
    "hooks by a user's home": ("[core]\n\thooksPath = ~daemon/../..B/w/hooks\n", {}, ["w/hooks/"]),
    "hooks by git's own place": ("[core]\n\thooksPath = %(prefix)/..B/w/hooks\n", {}, ["w/hooks/"]),
    "settings by a user's home": ("[include]\n\tpath = ~daemon/../..B/w/more\n", {}, ["w/more"]),
    "settings that may be missing": ("[include]\n\tpath = :(optional)B/w/more\n", {}, ["w/more"]),
    "templates of new repositories": (
        "", {"home/.gitconfig": "[init]\n\ttemplateDir = ~/h/tm\n"}, ["home/h/tm/"]),
    "settings of one tree": ("", {"w/r/.git/config.worktree": "[core]\n\thooksPath = mine\n"},
                             ["w/r/mine/"]),
}


@pytest.mark.parametrize("case", NAMED)
@pytest.mark.parametrize("state", ["absent", "present"])
def test_what_settings_name(ssb, state, case):
    """A directory of hooks or a file of settings that git's settings name is protected, wherever it
    is."""
    text, files, names = NAMED[case]
    w, r = nested(ssb, "w", "r")
    z, h = ssb.mkdir("z"), ssb.mkdir("home/h")
    ssb.write(r / ".git/config",
              (r / ".git/config").read_text() + text.replace("B", str(ssb.base)))
    for name, said in files.items():
        ssb.write(ssb.base / name, said)
    for name in names if state == "present" else []:
        if name.endswith("/"):
            ssb.write(ssb.base / name / "pre-commit", "#!/bin/sh\n", 0o755)
        elif name not in files:
            ssb.write(ssb.base / name, "[x]\n\ty = z\n")
    grants = ["-w", w, "-w", z, "-w", h]
    before = tree(w), tree(z), tree(h)
    seen = take(ssb, w, [os.path.relpath(ssb.base / n, w) for n in names], *grants)
    assert set(map(tuple, seen.values())) == {()}, seen
    assert (tree(w), tree(z), tree(h)) == before, "unchanged, and no placeholder stays"
    if "~daemon" not in text:  # the sandbox has no user "daemon", so git would fail
        ssb.run(*grants, "--", "sh", "-c", COMMIT.format("one"), cwd=r).ok()
        assert git(ssb, "log", "--format=%s", cwd=r) == "one\n", "work goes on"


PLANT = """
mkdir -p "$D/myhooks"
printf '#!/bin/sh\\ntouch "$HOME/pwned"\\n' > "$D/myhooks/pre-commit" &&
    chmod 755 "$D/myhooks/pre-commit"
echo tried > "$D/tried"
"""


@pytest.mark.parametrize("where", ["in the grant", "outside"])
def test_hooks_in_another_directory_run_nothing(ssb, where):
    """core.hooksPath names a directory that does not exist, and a skill tries to make it: the
    owner's next commit runs nothing, whether the grant contains the git directory or only the
    working tree."""
    pwned = ssb.home / "pwned"
    trees = {}
    for name in ("held", "control"):
        d = trees[name] = ssb.mkdir(name)
        apart = [] if where == "in the grant" else ["--separate-git-dir", ssb.base / f"{name}.git"]
        git(ssb, "init", "-q", *apart, d)
        git(ssb, "config", "core.hooksPath", "myhooks", cwd=d)
    d = trees["held"]
    ssb.run("-w", d, "--env", f"D={d}", "--", "sh", "-c", PLANT).ok()
    assert (d / "tried").exists() and not (d / "myhooks").exists()
    commit = ["sh", "-c", COMMIT.format("one")]
    ssb.bare(commit, cwd=d).ok()
    assert not pwned.exists()
    ssb.bare(["sh", "-c", PLANT], env={"D": str(trees["control"])}).ok()
    ssb.bare(commit, cwd=trees["control"]).ok()
    assert pwned.exists(), "control: unconfined the same lines run code in the owner's git"


def test_hooks_that_the_owner_grants(ssb):
    """A directory of hooks that the owner grants by name can be written. If core.hooksPath makes
    the whole working tree the directory of hooks, the run does not start."""
    d = ssb.mkdir("d")
    git(ssb, "init", "-q", d)
    ssb.mkdir("d/myhooks")
    git(ssb, "config", "core.hooksPath", "myhooks", cwd=d)
    write = ["--", "sh", "-c", f"echo x > {d}/myhooks/x"]
    assert ssb.run("-w", d, *write).code != 0 and not (d / "myhooks/x").exists()
    ssb.run("-w", d, "-w", d / "myhooks", *write).ok()
    assert (d / "myhooks/x").exists()
    git(ssb, "config", "core.hooksPath", ".", cwd=d)
    r = ssb.run("-w", d, "--", "echo", "started")
    assert r.code == 125 and r.text == "" and "core.hooksPath" in r.errors and str(d) in r.errors
    git(ssb, "config", "core.hooksPath", "/dev/null", cwd=d)
    assert ssb.run("-w", d, "--", "echo", "started").ok().text == "started\n"


def test_settings_that_mean_harm(ssb):
    """Git settings that try to block the runtime: files that include each other, FIFOs, devices,
    and more files than the runtime reads. The run starts and waits for none of them."""
    d = ssb.mkdir("d")
    git(ssb, "init", "-q", d)
    config = d / ".git/config"
    ssb.as_caller(["mkfifo", d / "pipe"]).ok()
    names = ["config", "../pipe", "/dev/zero", "/dev/tty", "/proc/self/mem", "..", "x" * 5000,
             "\\q", "~", "~nobody/x"]
    text = "".join(f"[include]\n\tpath = {n}\n" for n in names)
    # FIFOs outside the grant are not opened, either. Otherwise a process that waits to write to
    # such a FIFO would continue.
    owners = ssb.mkdir("owners") / "pipe"
    ssb.as_caller(["mkfifo", owners]).ok()
    text += f"[include]\n\tpath = {owners}\n"
    writer = ssb.popen(["sh", "-c", f"echo x > {owners}"])
    ssb.write(config, config.read_text() + text)
    assert ssb.run("-w", d, "--", "echo", "started", timeout=30).ok().text == "started\n"
    assert writer.poll() is None and owners.read_text() == "x\n" and writer.wait(30) == 0
    ssb.write(config, "[core]\n\thooksPath = myhooks\n" + "#" * 70000)
    ssb.run("-w", d, "--", "sh", "-c", f"mkdir {d}/myhooks; echo > {d}/fine")
    assert (d / "fine").exists() and not (d / "myhooks").exists()
    assert "settings" in " ".join(ssb.last_trace()["plan"]["warnings"])


LEASE = """
import fcntl, json, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
seen = {}
fd = os.open(os.environ['F'], os.O_RDONLY)
for name, number, arg in (('asked', 1025, 0), ('delegation', 1040, bytes(8)),
                          ('lease', 1024, fcntl.F_WRLCK)):
    try:
        fcntl.fcntl(fd, number, arg)
        seen[name] = 'ok'
    except OSError as e:
        seen[name] = e.errno
print(json.dumps(seen), flush=True)
sys.stdin.read()
"""


def test_a_skill_takes_no_lease(ssb):
    """A skill must not be able to take a lease on a file. Otherwise it could block the next run and
    every program of the owner that opens the file, or keep another run from reading git's
    settings."""
    d = ssb.mkdir("d")
    git(ssb, "init", "-q", d)
    f = d / ".git/config"
    for profile in ("strict", "default", "permissive"):
        seen = ssb.probe(LEASE, env={"F": str(f)},
                         flags=["--env", "F", "-w", d, "--profile", profile])
        assert seen["lease"] == seen["delegation"] == 22, seen
        assert seen["asked"] == "ok"
    assert ssb.bare_probe(LEASE, env={"F": str(f)})["lease"] == "ok", "the control"


@pytest.mark.parametrize("leased", [".git/config", "more", "sub/.git", ".git/commondir", ".envrc"])
def test_a_lease_of_another_program(ssb, leased):
    """Another program has a lease on a file of git settings: the run fails at once and names the
    file. The run must not try without end to open the file. It must not start without reading it,
    either: the places that the settings name would stay writable."""
    d = ssb.mkdir("d")
    git(ssb, "init", "-q", d)
    git(ssb, "config", "core.hooksPath", "myhooks", cwd=d)
    git(ssb, "config", "include.path", str(d / "more"), cwd=d)
    ssb.write(d / "more", "")
    ssb.write(d / "sub/.git", "gitdir: ../.git\n")
    ssb.write(d / ".git/commondir", ".\n")
    ssb.write(d / ".envrc", "#", 0o1444)  # a killed run leaves its placeholders with mode 01444
    attack = ["run", "-w", d, "--", "sh", "-c", f"mkdir {d}/myhooks; echo x > {d}/fine"]
    holder = ssb.popen(["/usr/bin/python3", "-c", LEASE], env={"F": str(d / leased)},
                       stdin=-1, stdout=-1)
    assert b'"lease": "ok"' in holder.stdout.readline()
    r = ssb.ssb(*attack, timeout=20)
    assert r.code == 125 and not (d / "myhooks").exists() and not (d / "fine").exists(), r
    assert "lease" in r.errors and leased.split("/")[-1] in r.errors
    holder.communicate(timeout=30)
    ssb.ssb(*attack)
    assert (d / "fine").exists() and not (d / "myhooks").exists(), "the control"


def test_a_lease_of_what_git_ignores(ssb):
    """The runtime only adds to .git/info/exclude: if another program has a lease on it, the run
    starts without a delay."""
    d = ssb.mkdir("d")
    git(ssb, "init", "-q", d)
    holder = ssb.popen(["/usr/bin/python3", "-c", LEASE], env={"F": str(d / ".git/info/exclude")},
                       stdin=-1, stdout=-1)
    assert b'"lease": "ok"' in holder.stdout.readline()
    assert ssb.run("-w", d, "--", "echo", "started", timeout=20).ok().text == "started\n"
    holder.communicate(timeout=30)


def test_held_hooks_while_runs_share_them(ssb):
    """Two runs protect the same directory: when the first ends, it stays protected for the
    other."""
    d = ssb.mkdir("d")
    git(ssb, "init", "-q", d)
    git(ssb, "config", "core.hooksPath", "my/hooks", cwd=d)
    one, two = (ssb.popen([ssb.binary, "run", "-w", d, "--", "sh", "-c",
                           f"echo up; read x; mkdir -p {d}/my/hooks 2>/dev/null && echo made"],
                          stdin=-1, stdout=-1) for _ in range(2))
    for p in (one, two):
        assert p.stdout.readline() == b"up\n"
    for p in (one, two):
        assert p.communicate(b"\n", timeout=30)[0] == b""
    assert not (d / "my").exists()


def test_worktree_beside_its_repository(ssb):
    top, main = nested(ssb, "top", "main")
    git(ssb, "commit", "-q", "--allow-empty", "-m", "first", cwd=main)
    git(ssb, "worktree", "add", "-q", top / "wt", cwd=main)
    names = ["wt/.git", "wt/.envrc", "main/.git/worktrees/wt/commondir",
             "main/.git/worktrees/wt/gitdir", "main/.git/config", "main/.git/hooks"]
    before = tree(top)
    assert set(map(tuple, take(ssb, top, names, "-w", top).values())) == {()}
    assert tree(top) == before
    git(ssb, "status", cwd=top / "wt")
    control = take_bare(ssb, top, names)
    assert all(control.values()), control


def test_granted_by_name(ssb):
    top, repo, other = nested(ssb, "top", "a/repo", "b/repo")
    script = f"echo x > {repo}/.git/hooks/mine; echo x > {other}/.git/hooks/mine"
    ssb.run("-w", top, "-w", repo / ".git/hooks", "--", "sh", "-c", script)
    assert (repo / ".git/hooks/mine").exists() and not (other / ".git/hooks/mine").exists()


def test_repository_that_the_skill_makes(ssb):
    """As the manual says, a repository that the skill makes belongs to the skill: its hooks can be
    written."""
    top = ssb.mkdir("top")
    script = "git init -q new && echo x > new/.git/hooks/pre-commit && cd new && "
    ssb.run("-w", top, "--", "sh", "-c", script + COMMIT.format("one"), cwd=top).ok()
    assert (top / "new/.git/hooks/pre-commit").exists()


def test_as_many_as_can_be_held(ssb):
    """To protect 60 repositories, the run needs more fds than a shell's usual limit. If the limit
    can be raised, all are protected. If not, the run's messages and its trace say that some are
    not."""
    top = ssb.mkdir("top")
    one, *rest = [ssb.mkdir(f"top/{i}") for i in range(60)]
    git(ssb, "init", "-q", one)
    for d in rest:
        ssb.as_caller(["cp", "-r", one / ".git", d]).ok()
    attack = f"cd {top}; for i in *; do (echo evil > $i/.git/hooks/x) 2>&- && echo hook; done; " \
        f"(echo evil > 0/.envrc) 2>&- && echo wrote; echo fine > fine"
    command = [ssb.binary, "run", "-w", top, "--", "sh", "-c", attack]
    r = ssb.as_caller(["prlimit", "--nofile=1024:4096", *command]).ok()
    assert r.text == "" and (top / "fine").exists()
    assert ssb.last_trace()["plan"]["warnings"] == ssb_warnings(ssb, top)
    assert not list(top.glob("*/.envrc"))
    r = ssb.as_caller(["prlimit", "--nofile=1024:1024", *command]).ok()
    assert r.text.count("hook") == 35, "25 have room in 1024"
    said = " ".join(ssb.last_trace()["plan"]["warnings"])
    assert "too many repositories" in said and str(top) in said
    assert "too many repositories" in r.errors


def test_those_that_lack_every_name(ssb):
    """60 empty .git directories of an earlier skill need the most fds: the next run still starts,
    and protects as many as it can."""
    top = ssb.mkdir("top")
    for i in range(60):
        ssb.mkdir(f"top/{i}")
        ssb.mkdir(f"top/{i}/.git")
    attack = f"cd {top}; for i in *; do (echo evil > $i/.envrc) 2>&- && echo wrote; done"
    more = [word for i in range(3) for word in ("-w", ssb.mkdir(f"more{i}"))]
    r = ssb.as_caller(["prlimit", "--nofile=1024:1024", ssb.binary, "run", "-w", top, *more, "--",
                       "sh", "-c", attack + "; true"]).ok()
    assert r.text == "wrote\n" * 38, "22 have room beside the four grants"


def test_those_that_an_earlier_skill_hides(ssb):
    """A skill hides a repository among more names than the search for repositories reads: the next
    run still protects it, because an earlier run has recorded where it is."""
    top, repo = nested(ssb, "top", "z/repo")
    crowd = f"import os; os.mkdir('{top}/a'); open('{top}/a/x', 'w').close(); " \
        f"[os.link('{top}/a/x', f'{top}/a/{{i}}') for i in range(20001)]"
    attack = f"(echo evil > {repo}/.git/hooks/x) 2>&- && echo wrote; true"
    ssb.run("-w", top, "--", "/usr/bin/python3", "-c", crowd).ok()
    r = ssb.run("-w", top, "--", "sh", "-c", attack).ok()
    assert r.text == "" and "too many files" in r.errors
    assert "repositories" in {p.name for p in (ssb.state / "skillsandbox").iterdir()}
    (ssb.state / "skillsandbox/repositories").unlink()
    assert ssb.run("-w", top, "--", "sh", "-c", attack).ok().text == "wrote\n", "the control"


def ssb_warnings(ssb, top):
    """The warnings of a plan that grants writing to `top`."""
    return ssb.ssb("inspect", "--json", "-w", top, ssb.skill("")).ok().json()["warnings"]


@pytest.mark.parametrize("mode", [0, 0o444, 0o333])
@pytest.mark.parametrize("closed", ["a", "a/repo"])
def test_in_a_directory_that_was_closed(ssb, closed, mode):
    """An earlier run closed a directory by its mode, so that the search cannot enter it: the
    repository in it is protected nevertheless."""
    top, repo = nested(ssb, "top", "a/repo")
    outside, other = nested(ssb, "outside", "a/repo")
    attack = "cd {}; chmod 755 a; chmod 755 a/repo; echo x > a/repo/.git/hooks/pre-commit"
    for d in (top, outside):
        (d / closed).chmod(mode)
    ssb.run("-w", top, "--", "sh", "-c", attack.format(top) + f"; echo x > {top}/fine")
    ssb.as_caller(["sh", "-c", attack.format(outside)]).ok()
    for p in ("a", "a/repo"):
        (top / p).chmod(0o755)
    assert not (repo / ".git/hooks/pre-commit").exists() and (top / "fine").exists()
    assert (other / ".git/hooks/pre-commit").exists(), "control"


def test_neither_symlinks_nor_other_mounts_are_followed(root, mounts):
    top, repo = nested(root, "top", "a/repo")
    _, away = nested(root, "away", "repo")
    (top / "link").symlink_to(away)
    other = root.mkdir("top/other")
    mounts("tmpfs", "ssb", other)
    git(root, "init", "-q", other / "repo")
    before = tree(root.base / "away")
    r = root.run("-w", top, "--", "sh", "-c", f"ls -A {other}/repo; ls -A {repo}").ok()
    assert r.text.split().count(".envrc") == 1, "held in the one, not in the other"
    assert tree(root.base / "away") == before
    assert sorted(os.listdir(repo)) == [".git"]


# name: (commands in the repository ~/m that make a setting or symlink which leads into the grant
# ~/m/in, names in the grant that must therefore be protected).
AROUND = {
    "hooks of the settings": ("git config core.hooksPath in/hooks", ["hooks/"]),
    "hooks of the settings, absolute": ('git config core.hooksPath "$PWD/in/hooks"', ["hooks/"]),
    "settings that are included": ('git config include.path "$PWD/in/more"', ["more"]),
    "a hook that is a symlink": ("ln -s ../../in/check.sh .git/hooks/pre-push", ["check.sh"]),
    "all hooks by a symlink": ("rm -r .git/hooks; ln -s ../in/hooks .git/hooks", ["hooks/"]),
    "instructions by a symlink": ("ln -s in/x.md CLAUDE.md", ["x.md"]),
    "a skill of an agent": ("mkdir -p .claude/skills; ln -s ../../in/s .claude/skills/s", ["s/"]),
    "an environment by a symlink": ("ln -s in/env .envrc", ["env"]),
    "attributes by a symlink": ("ln -s ../../in/attr .git/info/attributes", ["attr"]),
    "a directory that is no repository": ("rm -r .git; ln -s in/x.md AGENTS.md", ["x.md"]),
    "the home": ("ln -s m/in/rc ~/.bashrc", ["rc"]),
    "a program in the home": ("mkdir -p ~/.local/bin; ln -s ~/m/in/p ~/.local/bin/p", ["p"]),
    "a repository around that": ("(cd .. && git init -q . && "
                                 "git config core.hooksPath m/in/hooks)", ["hooks/"]),
    "a worktree's repository": (
        "git commit -q --allow-empty -m x; git worktree add -q ../wt; rm -r in; mkdir ../wt/in;"
        "ln -s ../wt/in in; cd ../wt; ln -s ~/wt/in/check.sh ~/m/.git/hooks/pre-push",
        ["check.sh"]),
    "a git directory in it": ("git init -q --separate-git-dir in/gd",
                              ["gd/hooks/pre-commit", "gd/config", "gd/commondir"]),
}


@pytest.mark.parametrize("case", AROUND)
def test_repository_around_the_grant(ssb, case):
    """A grant of one directory in a repository protects the same files as a grant of the whole
    repository."""
    script, names = AROUND[case]
    m = ssb.mkdir("home/m")
    inside = ssb.mkdir("home/m/in")
    made = {"hooks/": "hooks/pre-commit", "s/": "s/SKILL.md"}
    files = [made.get(n, n) for n in names if not n.startswith("gd/")]
    for name in [*files, "free"]:
        ssb.write(inside / name, "mine\n", 0o755)
    git(ssb, "init", "-q", m)
    git(ssb, "config", "user.email", "e@x", cwd=m)
    git(ssb, "config", "user.name", "n", cwd=m)
    ssb.as_caller(["sh", "-ec", script.replace("rm -r in;", "mv in ../kept;")], cwd=m).ok()
    if (ssb.home / "kept").exists():
        inside = ssb.home / "wt/in"
        for name in [*files, "free"]:
            ssb.write(inside / name, "mine\n", 0o755)
    before = tree(inside)
    seen = take(ssb, inside, names, "-w", inside)
    assert set(map(tuple, seen.values())) == {()}, seen
    assert tree(inside) == before, "unchanged, and no placeholder stays"
    r = ssb.run("-w", inside, "--", "sh", "-c", f"echo x > {inside}/free; echo x > {inside}/new")
    assert r.ok() and (inside / "free").read_text() == "x\n" and (inside / "new").exists()
    control = take_bare(ssb, inside, [n for n in names if "/" not in n[:-1]] or names)
    assert all(control.values()), control


def test_hooks_around_a_grant_run_nothing(ssb):
    """A skill writes to the hooks directory in its grant, which is a part of a repository: the
    owner's next commit runs nothing."""
    pwned = ssb.home / "pwned"
    plant = """printf '#!/bin/sh\\ntouch "$HOME/pwned"\\n' > "$D/hooks/pre-commit"; echo > "$D/tried" """
    trees = {}
    for name in ("held", "control"):
        d = trees[name] = ssb.mkdir(name)
        git(ssb, "init", "-q", d)
        git(ssb, "config", "core.hooksPath", "scripts/hooks", cwd=d)
        ssb.write(d / "scripts/hooks/pre-commit", "#!/bin/sh\n", 0o755)
    scripts = trees["held"] / "scripts"
    ssb.run("-w", scripts, "--env", f"D={scripts}", "--", "sh", "-c", plant).ok()
    assert (scripts / "tried").exists()
    ssb.bare(["sh", "-c", COMMIT.format("one")], cwd=trees["held"]).ok()
    assert not pwned.exists()
    ssb.bare(["sh", "-c", plant], env={"D": str(trees["control"] / "scripts")}).ok()
    ssb.bare(["sh", "-c", COMMIT.format("one")], cwd=trees["control"]).ok()
    assert pwned.exists(), "control: unconfined the same lines run code in the owner's git"


def test_named_by_the_owner_around(ssb):
    """The owner grants m/hooks itself, so it is writable although core.hooksPath leads to it."""
    m = ssb.mkdir("m")
    git(ssb, "init", "-q", m)
    git(ssb, "config", "core.hooksPath", "hooks", cwd=m)
    ssb.mkdir("m/hooks")
    ssb.run("-w", m / "hooks", "--", "sh", "-c", f"echo x > {m}/hooks/x").ok()
    # If the git directory itself is the grant, the same files in it are protected.
    names = [n.removeprefix(".git/") for n in GIT_NAMES]
    assert set(map(tuple, take(ssb, m / ".git", names, "-w", m / ".git").values())) == {()}
    # A git directory that another user has closed cannot be read: the run starts without it.
    if not ssb.is_root:
        os.chown(m / ".git", 0, 0)
        (m / ".git").chmod(0o700)
        ssb.run("-w", m / "hooks", "--", "true").ok()


# COMMAND -> shell code that makes a "git COMMAND" look unfinished. The owner's "git COMMAND
# --continue", which git itself advises, would then run a program.
STATES = {
    "rebase": """
mkdir -p .git/rebase-merge && cd .git/rebase-merge &&
    git rev-parse HEAD | tee onto orig-head > /dev/null && echo refs/heads/master > head-name &&
    echo 'exec touch "$HOME/pwned"' > git-rebase-todo && touch interactive done end msgnum
""",
    "cherry-pick": """
mkdir -p .git/sequencer git-merge-x; printf '#!/bin/sh\\ntouch "$HOME/pwned"\\n' > evil
chmod 755 evil; git rev-parse HEAD > .git/sequencer/head &&
    echo "pick $(git rev-parse side~1) x" > .git/sequencer/todo &&
    echo "pick $(git rev-parse side) y" >> .git/sequencer/todo &&
    printf '[options]\\n\\tstrategy = x/../evil\\n' > .git/sequencer/opts
""",
}


def history(ssb, d):
    git(ssb, "init", "-q", "-b", "master", d)
    git(ssb, "config", "user.email", "e@x", cwd=d)
    git(ssb, "config", "user.name", "n", cwd=d)
    git(ssb, "commit", "-q", "--allow-empty", "-m", "first", cwd=d)
    git(ssb, "checkout", "-q", "-b", "side", cwd=d)
    for name in ("one", "two"):
        ssb.write(d / name, name)
        git(ssb, "add", name, cwd=d)
        git(ssb, "commit", "-q", "-m", name, cwd=d)
    git(ssb, "checkout", "-q", "master", cwd=d)


@pytest.mark.parametrize("command", STATES)
def test_state_that_git_goes_on_with(ssb, command):
    """A skill leaves a rebase or cherry-pick that seems to be unfinished and that runs a program:
    the owner's `--continue` does not run it."""
    pwned = ssb.home / "pwned"
    held, control = ssb.mkdir("held"), ssb.mkdir("control")
    for d in (held, control):
        history(ssb, d)
    ssb.run("-w", held, "--", "sh", "-c", STATES[command] + f"echo > {held}/tried", cwd=held)
    assert (held / "tried").exists()
    ssb.bare(["git", command, "--continue"], cwd=held)
    assert not pwned.exists()
    ssb.bare(["sh", "-c", STATES[command]], cwd=control).ok()
    said = ssb.bare(["git", "status"], cwd=control).ok().text
    assert f"git {command} --continue" in said
    ssb.bare(["git", command, "--continue"], cwd=control)
    assert pwned.exists(), "control: unconfined the same lines run code in the owner's git"


WORK = """
set -e
echo a > a; git add a; git commit -qm a; echo committed
echo b >> a; git stash -q; git stash pop -q; git reset -q --hard; echo stashed
git switch -q -c topic; git merge -q side -m merged; git tag t; echo merged
git status | grep -E 'rebas|cherry|am ' || echo quiet
git clone -q . "$TMPDIR/clone"; cd "$TMPDIR/clone"; git worktree add -q ../tree; cd ../tree
echo c > c; git add c; git commit -qm c; git rebase -q --force-rebase HEAD~1
git cherry-pick --allow-empty HEAD --keep-redundant-commits > /dev/null; echo clone
"""


def test_work_in_a_repository_of_the_owners(ssb):
    """Everyday git commands work in the owner's repository. A rebase does not, because it needs a
    state directory (.git/rebase-merge) that is protected. It works in a clone that the skill
    makes."""
    d = ssb.mkdir("d")
    history(ssb, d)
    who = [w for n in ("AUTHOR", "COMMITTER") for w in
           ("--env", f"GIT_{n}_NAME=n", "--env", f"GIT_{n}_EMAIL=e@x")]
    r = ssb.run("-w", d, *who, "--", "sh", "-c", WORK, cwd=d).ok()
    assert r.text.split() == ["committed", "stashed", "merged", "quiet", "clone"]
    assert not ssb.last_trace()["policy_violations"]
    r = ssb.run("-w", d, *who, "--", "git", "rebase", "--force-rebase", "HEAD~1", cwd=d)
    assert r.code != 0 and "rebase-merge" in r.errors
    assert "rebas" not in git(ssb, "status", cwd=d)
    # The run leaves nothing that would prevent a rebase by the owner.
    git(ssb, "rebase", "-q", "--force-rebase", "HEAD~1", cwd=d)


def test_a_rebase_of_the_owners_under_way(ssb):
    """A rebase that the owner has begun is not changed by a run."""
    d = ssb.mkdir("d")
    history(ssb, d)
    env = {"GIT_SEQUENCE_EDITOR": "sed -i s/^pick/edit/"}
    ssb.as_caller(["git", "rebase", "-q", "-i", "side~1", "side"], env=env, cwd=d).ok()
    before = tree(d / ".git/rebase-merge")
    attack = "echo exec touch x >> .git/rebase-merge/git-rebase-todo; mv .git/rebase-merge .git/x"
    ssb.run("-w", d, "--", "sh", "-c", attack + "; echo > tried", cwd=d)
    assert (d / "tried").exists() and tree(d / ".git/rebase-merge") == before
    git(ssb, "rebase", "--continue", cwd=d)


def test_links_that_hold_while_runs_share_them(ssb):
    """Two runs protect a name by the same symlinks: when the first run ends, the symlinks stay for
    the other. The symlinks of a killed run are removed by the next run."""
    d = ssb.mkdir("d")
    history(ssb, d)
    place = d / ".git/rebase-merge"
    script = f"echo up; read x; mkdir -p {place} 2>/dev/null && echo made"
    one, two = (ssb.popen([ssb.binary, "run", "-w", d, "--", "sh", "-c", script],
                          stdin=-1, stdout=-1) for _ in range(2))
    for p in (one, two):
        assert p.stdout.readline() == b"up\n"
    assert "rebas" not in git(ssb, "status", cwd=d), "nothing seems to be under way"
    for p in (one, two):
        assert p.communicate(b"\n", timeout=30)[0] == b""
    assert not os.path.lexists(place)
    place.symlink_to("/proc/held-by-skillsandbox")
    ssb.own(place)
    ssb.run("-w", d, "--", "true").ok()
    assert not os.path.lexists(place)


def packages(ssb, top):
    """Makes a virtual environment and 30,000 files in node_modules, in deep directories."""
    ssb.as_caller(["/usr/bin/python3", "-m", "venv", "--without-pip", top / ".venv"]).ok()
    site = next((top / ".venv/lib").glob("python3*/site-packages"))
    ssb.as_caller(["/usr/bin/python3", "-c", """
import os, sys
def fill(d, n):
    os.makedirs(d)
    for i in range(n):
        os.link(one, f'{d}/{i}.js')
site, modules = sys.argv[1:]
one = modules + '.one'
open(one, 'w').close()
for p in range(60):
    fill(f'{site}/p{p}/a/b/c/d/e/__pycache__', 50)
for p in range(300):
    for part in ('lib', 'dist/cjs/internal/x', 'node_modules/q/node_modules/r/build/y',
                 'node_modules/s/es/t/u/v'):
        fill(f'{modules}/@scope{p % 7}/p{p}/{part}', 25)
""", site, top / "node_modules"]).ok()


def test_packages_are_no_news(ssb):
    """An ordinary project with many packages runs without a warning. The record says which packages
    were not searched, and a repository beside them is protected."""
    top, repo = nested(ssb, "top", "z/src/main/java/org/example/product/module/internal/repo")
    packages(ssb, top)
    attack = ["--", "sh", "-c", f"(echo x > {repo}/.git/hooks/x) 2>&- && echo wrote; true"]
    r = ssb.run("-w", top, *attack).ok()
    assert r.text == "" and "searched" not in r.errors
    said = " ".join(ssb.last_trace()["plan"]["warnings"])
    assert f"write {top}: not all of the packages in it" in said
    assert "not all of the packages in it" in ssb.run("-v", "-w", top, *attack).ok().errors
    # The same number of files in another directory than node_modules gives a warning.
    crowd = "import os; os.mkdir('data'); open('data/x', 'w').close(); " \
        "[os.link('data/x', f'data/{i}') for i in range(20001)]"
    ssb.as_caller(["/usr/bin/python3", "-c", crowd], cwd=top).ok()
    r = ssb.run("-w", top, *attack).ok()
    assert r.text == "" and "not all of it was searched" in r.errors


def test_worktrees_of_a_repository(ssb):
    """The skill can use worktrees and add new ones. Files that lead git to another directory are
    protected, also in the git directory of a worktree that is not granted."""
    d = ssb.mkdir("d")
    history(ssb, d)
    git(ssb, "worktree", "add", "-q", d / "near", cwd=d)
    git(ssb, "worktree", "add", "-q", ssb.base / "far", cwd=d)
    names = [f".git/worktrees/{t}/{n}" for t in ("near", "far")
             for n in ("commondir", "gitdir", "config.worktree", "rebase-merge")]
    before = tree(d)
    assert set(map(tuple, take(ssb, d, names, "-w", d).values())) == {()}
    assert tree(d) == before, "unchanged, and no placeholder stays"
    who = [w for n in ("AUTHOR", "COMMITTER") for w in
           ("--env", f"GIT_{n}_NAME=n", "--env", f"GIT_{n}_EMAIL=e@x")]
    script = f"cd {d}/near && {COMMIT.format('x')} && cd .. && git worktree add -q new side && " \
        f"cd new && {COMMIT.format('y')} && git status --porcelain"
    r = ssb.run("-w", d, *who, "--", "sh", "-c", script, cwd=d).ok()
    assert r.text == "" and not ssb.last_trace()["policy_violations"]
    assert git(ssb, "log", "--format=%s", "-1", cwd=d / "near") == "x\n"
    assert git(ssb, "log", "--format=%s", "-1", "side", cwd=d) == "y\n"
    assert "new" in git(ssb, "worktree", "list", cwd=d)
    # The repository has more worktrees than are protected one by one: the directory of all
    # worktrees becomes read-only.
    for i in range(33):
        ssb.mkdir(f"d/.git/worktrees/{i}")
    names += [".git/worktrees", ".git/worktrees/5/commondir"]
    assert set(map(tuple, take(ssb, d, names, "-w", d).values())) == {()}
    control = take_bare(ssb, d, names)
    assert all(control.values()), control
