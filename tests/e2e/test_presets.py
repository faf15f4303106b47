"""Presets, sets of hosts and the cache, with the real tools: npm, pip, git and Java. Each test has its
control: what the preset or the cache gives is missing without it."""
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

import pytest

import harness
from harness import BY_USER, PYTHON
from net_fixtures import GRANT, net, outside  # noqa: F401

PORT = 4873
HOST = f"api.example.test:{PORT}"
LOCAL = ("--net", HOST, *GRANT)


def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def pip_index(top):
    """An index with one source package."""
    (top / "simple/tinypy").mkdir(parents=True)
    (top / "tinypy-1.0.tar.gz").write_bytes(tar_of({
        "tinypy-1.0/setup.py": "from setuptools import setup\n"
                               "setup(name='tinypy', version='1.0', py_modules=['tinypy'])\n",
        "tinypy-1.0/PKG-INFO": "Metadata-Version: 2.1\nName: tinypy\nVersion: 1.0\n",
        "tinypy-1.0/tinypy.py": "text = 'tinypy works'\n"}))
    (top / "simple/tinypy/index.html").write_text(
        '<a href="/tinypy-1.0.tar.gz">tinypy-1.0.tar.gz</a>', encoding="ascii")


@pytest.fixture(scope="session")
def index(outside, base):  # noqa: F811
    """Serves the index of pip in the namespaces of `outside`."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="index-", dir=base))
    log_file = top.with_suffix(".log")
    pip_index(top)
    with open(log_file, "w", encoding="utf-8") as log:
        p = subprocess.Popen([*outside.enter, PYTHON, "-u", "-m", "http.server", "--directory", top,
                              "--bind", "127.0.0.1", str(PORT)], stdout=log, stderr=log,
                             env={"PATH": harness.PATH})
    harness.wait_for(lambda: "Serving" in log_file.read_text("utf-8"))
    yield
    p.kill()
    p.wait(10)


def caches(runner):
    top = runner.state / "skillsandbox/caches"
    return sorted(top.iterdir()) if top.exists() else []


def granted(runner, *args, **kw):
    return runner.ssb("inspect", "--json", *args, **kw).ok().json()


def test_npm(net):  # noqa: F811
    """The second install needs no network, because the cache has the package."""
    ssb = net.runner
    registry_is = ("--env", "npm_config_registry=https://api.example.test/npm",
                   "--env", "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt",
                   "--env", "npm_config_fetch_retries=0")
    project = ssb.mkdir("home/project")
    ssb.write(project / "package.json", json.dumps({"dependencies": {"threes": "1.0.0"}}))

    def install(*flags):
        shutil.rmtree(project / "node_modules", ignore_errors=True)
        return ssb.run("--preset", "node", "--project=" + str(project), *registry_is, *flags, "--",
                       "npm", "install", "--prefer-offline", "--prefix", project, timeout=120)

    install("--cache", "--net", "api.example.test", *GRANT).ok()
    assert (project / "node_modules/threes/index.js").exists()
    assert len(caches(ssb)) == 1 and (caches(ssb)[0] / "npm").is_dir()
    assert install().code != 0  # the control: neither network nor cache
    install("--cache").ok()
    works = ssb.run("--project=" + str(project), "--", "node", "-p",
                    f"require('{project}/node_modules/threes')").ok()
    assert works.text == "3\n"


def test_pip(net, index):  # noqa: F811
    """pip builds a wheel once; the second venv gets it from the cache."""
    ssb = net.runner
    project = ssb.mkdir("home/project")
    code = f"""
        rm -rf {project}/v && {PYTHON} -m venv --system-site-packages --without-pip {project}/v &&
        {project}/v/bin/python -m pip install --no-build-isolation --no-use-pep517 --trusted-host \
            api.example.test --index-url http://{HOST}/simple tinypy &&
        {project}/v/bin/python -c 'import tinypy; print(tinypy.text)'"""

    def install(*flags):
        return ssb.run("--preset", "python", "--project=" + str(project), *LOCAL, *flags, "--",
                       "sh", "-c", code, timeout=120)

    first, second, control = install("--cache").ok(), install("--cache").ok(), install().ok()
    for r in (first, second, control):
        assert r.text.endswith("tinypy works\n"), r
    assert "Building wheel" in first.text + control.text
    assert "Using cached" in second.text and "Building wheel" not in second.text, second
    assert "Using cached" not in control.text, control


def test_git(net):  # noqa: F811
    """The preset names public hosts; a local one is granted in addition."""
    ssb = net.runner
    clone = ("--", "git", "clone", "-q", "https://api.example.test/git/repo.git", "/tmp/r")
    ssb.run("--preset", "git", "--net", "api.example.test", *GRANT, *clone).ok()
    assert ssb.run("--preset", "git", *clone).code != 0
    plan = ssb.last_trace()["plan"]
    assert ("github.com", "preset git") in [(r["domain"], r["where"])
                                            for r in plan["granted"]["network"]]
    assert not ssb.run("--", "git", "version").ok().err
    assert ssb.last_trace()["plan"]["granted"]["network"] == []


BIG = {
    "java": ("public class Big { public static void main(String[] a) throws Exception {"
             " byte[][] all = new byte[1600][]; for (int i = 0; i < 1600; i++) {"
             " all[i] = new byte[1 << 18]; java.util.Arrays.fill(all[i], (byte) i); }"
             " System.out.println(all.length / 4); } }"),
    "node": "console.log(Buffer.alloc(400 * 1048576).fill(1).length / 1048576)",
    "python": "x = b'x' * (400 * 1048576); print(len(x) // 1048576)",
}


@pytest.mark.parametrize("preset", sorted(BIG))
def test_limits(ssb, preset):
    """Work that needs 400 MiB: the usual limit ends it, the preset's limit does not. A limit of the
    owner is stronger than both."""
    project = ssb.mkdir("home/project")
    ssb.write(project / "Big.java", BIG["java"])
    command = {"java": ["sh", "-c", "javac -d /tmp Big.java && java -Xmx800m -cp /tmp Big"],
               "node": ["node", "-e", BIG["node"]], "python": [PYTHON, "-c", BIG["python"]]}[preset]
    flags = ("--project-read", "--preset", preset)
    assert ssb.run(*flags, "--", *command, cwd=project, timeout=120).ok().text == "400\n"
    assert ssb.run("--project-read", "--", *command, cwd=project, timeout=120).code != 0
    assert ssb.run(*flags, "-m", "200M", "--", *command, cwd=project, timeout=120).code != 0
    policy = ssb.write(ssb.base / "policy.yaml", "limits: {memory_mb: 200}\n")
    limited = granted(ssb, *flags, "--policy", policy, "--", *command, cwd=project)
    assert limited["limits"]["memory_mb"] == 200


def test_sets_and_origins(ssb):
    """A set stands for its hosts; each host says which word granted it."""
    policy = ssb.write(ssb.base / "policy.yaml",
                       'always: {net: ["@crates", "a.example:8443"], preset: [go]}\n')
    plan = granted(ssb, "--net", "@npm", "--preset", "python", "--policy", policy, "--", "true")
    got = {f"{r['domain']}:{r['ports'][0]}": r["where"] for r in plan["granted"]["network"]}
    assert got == {"registry.npmjs.org:443": "--net @npm", "pypi.org:443": "preset python",
                   "files.pythonhosted.org:443": "preset python",
                   "proxy.golang.org:443": "preset go", "sum.golang.org:443": "preset go",
                   "crates.io:443": f"{policy}:1:16", "index.crates.io:443": f"{policy}:1:16",
                   "static.crates.io:443": f"{policy}:1:16", "a.example:8443": f"{policy}:1:27"}
    assert [p.split(":")[0] for p in plan["presets"]] == ["python", "go"]
    r = ssb.run("--net", "@nmp", "--", "true")
    assert r.code == 2 and "did you mean @npm?" in r.errors, r
    r = ssb.run("--preset", "pyton", "--", "true")
    assert r.code == 2 and "did you mean python?" in r.errors and "rust" in r.errors, r


def test_a_skill_cannot_name_a_set(ssb):
    """The meaning of an approved manifest must not change with the version of the program."""
    skill = ssb.skill("", egress=[{"domain": "@npm"}])
    r = ssb.ssb("validate", skill)
    assert r.code == 1 and "@npm" in r.errors + r.text, r


def test_own_preset(ssb):
    """A file of the owner's adds a preset; dangerous places stay refused; other users' files do not
    count."""
    place = ssb.home / ".config/skillsandbox/presets"
    notes = ssb.write(ssb.home / "notes/a.txt", "a note\n").parent
    file = ssb.write(place / "mine.yaml",
                     f"net: [a.example, '@npm']\nread: [~/notes, ~/nowhere]\nenv: {{GREETING: hello}}\n"
                     "limits: {memory_mb: 300}\ncache: {MINE: '{cache}/mine'}\n")
    cat = ("--", "sh", "-c", f"cat {notes}/a.txt; echo $GREETING $MINE")
    assert ssb.run("--preset", "mine", *cat).ok().text == "a note\nhello\n"
    assert ssb.run("--preset", "mine", "--cache", *cat).ok().text == \
        f"a note\nhello {ssb.home}/.cache/mine\n"
    assert ssb.run("--preset", "mine", "--env", "GREETING=mine", *cat).ok().text == "a note\nmine\n"
    grant, = [g for g in ssb.last_trace()["plan"]["granted"]["files"] if g["path"] == str(notes)]
    assert (grant["origin"], grant["where"], grant["access"]) == ("preset", "preset mine", "read")
    assert ssb.run(*cat).code != 0 or ssb.run(*cat).text == "\n"
    ssb.write(file, "read: [~/.ssh]\n")
    key = ("--", "cat", "/etc/hostname")
    r = ssb.run("--preset", "mine", *key)
    assert r.code == 125 and "preset mine" in r.errors and "--read '~/.ssh'" in r.errors.replace(
        "--read ~/.ssh", "--read '~/.ssh'"), r
    ssb.run("--preset", "mine", "--read", "~/.ssh", *key).ok()
    for text, where in (("nets: []\n", "1:1"), ("limits: {memory_mb: 0}\n", "1:21"),
                        ("net: ['@nope']\n", "1:7"), ("env: {A=B: c}\n", "1:7"),
                        ("env: [a]\n", "1:6"), ("- a\n", "1:1")):
        ssb.write(file, text)
        r = ssb.run("--preset", "mine", *key)
        assert r.code == 125 and f"mine.yaml:{where}" in r.errors, (text, r)
    ssb.write(file, "net: [a.example]\n", 0o666)
    file.chmod(0o666)
    r = ssb.run("--preset", "mine", *key)
    assert r.code == 125 and "mine.yaml" in r.errors, r
    assert ssb.run("--preset", "../mine", *key).code == 2


KEEP = ("--", "sh", "-c", "cat ~/.cache/x; date +%s%N > ~/.cache/x")


def test_a_cache_belongs_to_one_identity(ssb):
    """The cache is private, survives, is shared with no other project or skill, and a changed skill
    gets a new one."""
    one, two = ssb.mkdir("home/one"), ssb.mkdir("home/two")
    for project in (one, two):
        assert ssb.run("--project", "--cache", *KEEP, cwd=project).ok().text == ""
        assert ssb.run("--project", "--cache", *KEEP, cwd=project).ok().text != ""
        assert ssb.run("--project", *KEEP, cwd=project).text == ""  # the control: a private home
    assert len(caches(ssb)) == 2
    tools = ssb.run("--project", "--cache", "--", "sh", "-c", "echo $npm_config_cache $GOCACHE", cwd=one)
    assert tools.ok().text == f"{ssb.home}/.cache/npm {ssb.home}/.cache/go-build\n"
    assert all(c.stat().st_mode & 0o777 == 0o700 and c.stat().st_uid == ssb.uid for c in caches(ssb))
    code = """
        import os
        path = os.path.expanduser("~/.cache/x")
        print(os.path.exists(path))
        open(path, "w").close()
        """
    skill = ssb.skill(code)
    assert [ssb.run("--cache", skill).ok().text for _ in range(2)] == ["False\n", "True\n"]
    with open(skill / "main.py", "a", encoding="utf-8") as f:
        f.write("# changed\n")
    assert ssb.run("--cache", skill).ok().text == "False\n"
    assert len(caches(ssb)) == 4


def test_a_cache_is_hidden_from_others(ssb):
    """No grant shows a cache: not the home, not the state directory, not the directory by name."""
    project = ssb.mkdir("home/one")
    ssb.run("--project", "--cache", *KEEP, cwd=project).ok()
    cache = caches(ssb)[0]
    ssb.as_caller(["cat", cache / "x"]).ok()
    cat = ("--", "cat", cache / "x")
    for flags in (("--read", ssb.home), ("--read", ssb.state / "skillsandbox"),
                  ("--read", cache), ("--write", cache), ("--read", cache.parent)):
        r = ssb.run(*flags, *cat)
        assert r.code != 0 and not r.out, (flags, r)
    r = ssb.run("--cache", "--read", ssb.home, "--", "true")
    assert r.code == 125 and ".cache" in r.errors, r


def test_size(ssb):
    """A cache over its limit is emptied after the run, and before the next one if the limit is lower
    then. The owner is told the limit, and a larger one that works."""
    project = ssb.mkdir("home/one")

    def fill(mib, *flags):
        return ssb.run("--project", *flags, "--", "sh", "-c",
                       f"ls -A ~/.cache; head -c {mib}M /dev/zero > ~/.cache/big", cwd=project).ok()

    r = fill(3, "--cache=8M")
    assert "emptied" not in r.errors and (caches(ssb)[0] / "big").exists()
    r = fill(12, "--cache=8M")
    assert r.text == "big\n" and "larger than 8 MiB" in r.errors, r
    assert list(caches(ssb)[0].iterdir()) == []
    larger, = re.findall(r"--cache=\S+M", r.errors)
    assert "emptied" not in fill(12, larger).errors
    r = fill(1, "--cache=4M")
    assert r.text == "" and "larger than 4 MiB" in r.errors, r
    many = ("--", PYTHON, "-c", "import os\nfor i in range(1500): open(os.environ['HOME'] + "
            "f'/.cache/{i}', 'w').close()")
    assert "larger than 1 MiB" in ssb.run("--project", "--cache=1M", *many, cwd=project).ok().errors


def test_a_hostile_cache(ssb):
    """Links and closed directories in a cache: what they name is neither counted nor removed."""
    project = ssb.mkdir("home/one")
    outside_file = ssb.write(ssb.home / "precious/file", b"x" * 3000000)
    code = (f"ln -s {outside_file.parent} ~/.cache/link; ln -s {outside_file} ~/.cache/file; "
            "mkdir -p ~/.cache/closed/a; head -c 9M /dev/zero > ~/.cache/closed/a/b; "
            "chmod 0 ~/.cache/closed")
    r = ssb.run("--project", "--cache=8M", "--", "sh", "-c", code, cwd=project).ok()
    assert "emptied" in r.errors, r
    assert outside_file.stat().st_size == 3000000 and list(caches(ssb)[0].iterdir()) == []
    deep = ("--", PYTHON, "-c", "import os\nos.chdir(os.environ['HOME'] + '/.cache')\n"
            "for i in range(200):\n    os.mkdir('d')\n    os.chdir('d')\n")
    assert "emptied" in ssb.run("--project", "--cache=8M", *deep, cwd=project).ok().errors
    assert list(caches(ssb)[0].iterdir()) == []
    for _ in range(2):
        ssb.run("--project", "--cache", "--", "sh", "-c", "touch ~/.cache/x; chmod 0 ~/.cache",
                cwd=project).ok()
    assert caches(ssb)[0].stat().st_mode & 0o777 == 0
    os.symlink(outside_file.parent, caches(ssb)[0].parent / "link")
    ssb.ssb("audit", "prune", "--caches")
    assert outside_file.exists() and [c.name for c in caches(ssb)] == ["link"]


def test_prune(ssb):
    """audit prune --caches removes caches that no run uses, all or old ones."""
    for name in ("one", "two", "three"):
        ssb.run("--project", "--cache", *KEEP, cwd=ssb.mkdir("home/" + name)).ok()
    old, _, _ = caches(ssb)
    a_week_ago = time.time() - 7 * 86400
    os.utime(old, (a_week_ago, a_week_ago))
    prune = ("audit", "prune", "--caches")
    assert ssb.ssb(*prune, "--older-than", "2d", "--dry-run").ok().text.startswith("would remove 1 cache;")
    assert ssb.ssb(*prune, "--older-than", "2d").ok().text.startswith("removed 1 cache;")
    assert len(caches(ssb)) == 2 and old not in caches(ssb)
    busy = ssb.popen([ssb.binary, "run", "--project", "--cache", "--", "sh", "-c",
                      "echo ready; cat"], cwd=ssb.base / "home/three",
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert busy.stdout.readline() == b"ready\n"
    r = ssb.ssb(*prune).ok()
    assert "1 cache is in use" in r.errors and len(caches(ssb)) == 1, r
    busy.stdin.close()
    assert busy.wait(20) == 0
    assert ssb.ssb(*prune, "--json").ok().json()["removed"] == 1
    assert caches(ssb) == []
    assert len(ssb.runs()) > 3  # the records stay
    assert ssb.ssb("audit", "prune", "--caches", "--keep", "1").code == 2
    # Caches that cannot be looked at are not "no caches".
    top = ssb.state / "skillsandbox/caches"
    top.rename(ssb.base / "elsewhere")
    assert ssb.ssb(*prune).ok().text.startswith("removed 0 caches;")  # the control: there are none
    top.symlink_to(ssb.base / "elsewhere")
    r = ssb.ssb(*prune)
    assert r.code == 125 and "could not be removed" in r.errors, r


@BY_USER
def test_prove(ssb):
    """The attacks on the sandbox also fail beside a cache."""
    r = ssb.ssb("prove", "--cache", "--preset", "python", "--", "true", timeout=120).ok()
    assert " 0 leaked" in r.text, r


def test_a_manifest_needs_nothing_for_a_preset(ssb):
    """Variables that a preset or a cache sets are not needs of the skill. The control: a variable
    of --env is a need."""
    code = "import os\nopen(os.path.expanduser('~/.cache/x'), 'w').close()\n"
    skill = ssb.skill(code)
    ssb.run("--cache", "--preset", "python", skill).ok()
    assert "would have allowed everything" in ssb.ssb("check", skill, "--against", "last").ok().text
    ssb.run("--cache", "--env", "A=1", skill).ok()
    assert "environment A" in ssb.ssb("check", skill, "--against", "last").text


def test_settings_of_a_skill(ssb):
    """The policy file gives presets and a cache to one skill, by its directory."""
    code = "import os\nprint(os.environ.get('PIP_NO_INPUT'), os.environ.get('PIP_CACHE_DIR'))\n"
    one, other = ssb.skill(code), ssb.skill(code)
    policy = ssb.write(ssb.base / "policy.yaml",
                       f"skills:\n  {one}: {{preset: [python], cache: 64M}}\n")
    assert ssb.run("--policy", policy, one).ok().text == f"1 {ssb.home}/.cache/pip\n"
    assert ssb.run("--policy", policy, other).ok().text == "None None\n"
    for text, where in ((f"skills:\n  {one}: {{presets: [python]}}\n", "2:"),
                        ("skills: [a]\n", "1:"), ("skills: a\n", "1:"),
                        ("skills: {a/b: {preset: [python]}}\n", "1:"),
                        ("always: {cache: big}\n", "1:17"), ("always: {preset: [A/b]}\n", "1:19"),
                        ("always: {net: ['@x']}\n", "1:16")):
        r = ssb.run("--policy", ssb.write(policy, text), one)
        assert r.code == 125 and f"{policy}:{where}" in r.errors, (text, r)


def test_programs_of_one_name_share_no_cache(ssb):
    """A program in a directory of the caller's cannot prepare the cache of the real one."""
    mine = ssb.mkdir("mine")
    ssb.as_caller(["cp", "/bin/dash", mine / "dash"]).ok()
    leave = "echo mine > ~/.cache/note"
    ssb.run("--cache", "--read", mine, "--", mine / "dash", "-c", leave).ok()
    look = "cat ~/.cache/note || echo none"
    assert ssb.run("--cache", "--", "dash", "-c", look).ok().text == "none\n"
    again = ssb.run("--cache", "--read", mine, "--", mine / "dash", "-c", look).ok()
    assert again.text == "mine\n", "control: the same program finds its own"
