"""Repositories inside a writable grant: what the host obeys in them is held as
at the top of the grant, and work in them goes on."""
import os

import pytest

from test_breaks_grants import GIT_NAMES, HELD, take, take_bare, tree

COMMIT = "echo {0} > {0} && git add {0} && git -c user.name=n -c user.email=e@x commit -qm {0}"


def git(ssb, *args, cwd=None):
    return ssb.as_caller(["git", "-c", "user.name=n", "-c", "user.email=e@x", *args],
                         cwd=cwd).ok().text


def nested(ssb, name, *inside):
    """A grant with repositories deeper in it: its path, and theirs."""
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
    """Not only at the top of the grant, and not only what has a placeholder."""
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
    # granted by name, as the lines say
    named = [near / ".git/hooks", near / ".envrc", near / ".npmrc", top / ".gemini"]
    r = ssb.run("-w", top, *(w for d in named for w in ("-w", d)), *words).ok()
    assert r.text.split() == ["made", "30", "made", "30"] + ["made"] * (3 + len(free))
    assert len(ssb.last_trace()["policy_violations"]) == 2


def test_trace_tells_what_is_led_to(ssb):
    """By git's settings, and by a symlink."""
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
    """Neither it nor a directory above it can be renamed away."""
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
    """Of a tree whose .git is a file that leads to it."""
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
    """Also by a commondir, by a symlink, by a link on the way, and where all of it is granted."""
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
    assert "a .git of it leads to nothing" in said and str(top) in said
    assert "a .git of it leads to nothing" in r.errors
    ssb.write(top / "r/.git", "gitdir: /nowhere/gone\n")
    assert "leads to nothing" not in ssb.run("-w", top, "--", "true").ok().errors
    assert "leads to nothing" not in " ".join(ssb.last_trace()["plan"]["warnings"])


# Settings of the repository w/r, further files of them, and what they name; B is where all lies.
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
    "settings of one tree": ("", {"w/r/.git/config.worktree": "[core]\n\thooksPath = mine\n"},
                             ["w/r/mine/"]),
}


@pytest.mark.parametrize("case", NAMED)
@pytest.mark.parametrize("state", ["absent", "present"])
def test_what_settings_name(ssb, state, case):
    """A directory of hooks, and files of settings, wherever they are."""
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
    """Whether the git directory is granted, or only the tree."""
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
    """By name they can be written; a tree that is its own directory of hooks stops the run."""
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
    """To us: files that include each other, pipes, devices, and more than is read."""
    d = ssb.mkdir("d")
    git(ssb, "init", "-q", d)
    config = d / ".git/config"
    ssb.as_caller(["mkfifo", d / "pipe"]).ok()
    names = ["config", "../pipe", "/dev/zero", "/dev/tty", "/proc/self/mem", "..", "x" * 5000,
             "\\q", "~", "~nobody/x"]
    text = "".join(f"[include]\n\tpath = {n}\n" for n in names)
    # Nor is a pipe of the owner's opened, by which whoever writes there would go on.
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


def test_held_hooks_while_runs_share_them(ssb):
    """The first that ends leaves to the other what it holds."""
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
    """Is the skill's own, as the manual says."""
    top = ssb.mkdir("top")
    script = "git init -q new && echo x > new/.git/hooks/pre-commit && cd new && "
    ssb.run("-w", top, "--", "sh", "-c", script + COMMIT.format("one"), cwd=top).ok()
    assert (top / "new/.git/hooks/pre-commit").exists()


def test_as_many_as_can_be_held(ssb):
    """More than the fds that every shell gives would do for, where there may be more; past
    that the run and its trace tell."""
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
    assert r.text.count("hook") == 28, "32 have room in 1024"
    said = " ".join(ssb.last_trace()["plan"]["warnings"])
    assert "too many repositories" in said and str(top) in said
    assert "too many repositories" in r.errors


def test_those_that_lack_every_name(ssb):
    """Left by an earlier skill, they need the most fds; the next run is not without them."""
    top = ssb.mkdir("top")
    for i in range(60):
        ssb.mkdir(f"top/{i}")
        ssb.mkdir(f"top/{i}/.git")
    attack = f"cd {top}; for i in *; do (echo evil > $i/.envrc) 2>&- && echo wrote; done"
    more = [word for i in range(3) for word in ("-w", ssb.mkdir(f"more{i}"))]
    r = ssb.as_caller(["prlimit", "--nofile=1024:1024", ssb.binary, "run", "-w", top, *more, "--",
                       "sh", "-c", attack + "; true"]).ok()
    assert r.text == "wrote\n" * 31, "29 have room beside the four grants"


def test_those_that_an_earlier_skill_hides(ssb):
    """Among more names than a search reads: they are known from the run before."""
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
    """What every plan with this grant warns of."""
    return ssb.ssb("inspect", "--json", "-w", top, ssb.skill("")).ok().json()["warnings"]


@pytest.mark.parametrize("mode", [0, 0o444, 0o333])
@pytest.mark.parametrize("closed", ["a", "a/repo"])
def test_in_a_directory_that_was_closed(ssb, closed, mode):
    """By an earlier run, so that the search does not come by: the next one opens it."""
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
