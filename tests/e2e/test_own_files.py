"""The runtime's own files (its state and settings): a grant of a directory above them does not show
them."""
import json
import os
import types
import socket

import pytest

import records
from test_mounts import in_namespace
from test_fallbacks import without_userns

pytestmark = pytest.mark.usefixtures("host_mounts")

KEY = "decoy-key"
PASSWORD = "decoy-password"

# The code of a skill that attacks each directory in the variable OWN.
PROBE = """
import errno, json, os
seen = {}
def attempt(name, f):
    try:
        seen[name] = f()
    except OSError as e:
        seen[name] = errno.errorcode[e.errno]
def write(path):
    open(path, 'w').close()
    os.unlink(path)
    return 'ok'
def move(path):
    os.rename(path, path + '.moved')
    os.rename(path + '.moved', path)
    return 'ok'
for place in json.loads(os.environ['OWN']):
    attempt('list ' + place, lambda: sorted(os.listdir(place)))
    for name in json.loads(os.environ['NAMES']):
        attempt(name + ' ' + place, lambda: open(place + '/' + name).read())
    attempt('write ' + place, lambda: write(place + '/forged'))
    attempt('move ' + place, lambda: move(place))
    attempt('move above ' + place, lambda: move(os.path.dirname(place)))
print(json.dumps(seen))
"""
NAMES = ["trace.key", "sessions.db", "policy.yaml", "live/sock"]


class Own:
    """The runtime's state and settings of a caller, with decoys."""

    def __init__(self, ssb, state, config):
        self.ssb = ssb
        self.state, self.config = state / "skillsandbox", config / "skillsandbox"
        self.env = {"XDG_STATE_HOME": str(state), "XDG_CONFIG_HOME": str(config)}
        for d in (self.state / "live", self.state / "runs"):
            ssb.write(d / "x", "")
        self.state.chmod(0o700)
        self.key = ssb.write(self.state / "sessions.db", KEY, 0o600)
        ssb.write(self.config / "policy.yaml", f"store: postgresql://u:{PASSWORD}@127.0.0.1/x\n",
                  0o600)

    def probe(self, *flags, places=None, there=None):
        env = {**self.env, "OWN": json.dumps([str(p) for p in places or (self.state, self.config)]),
               "NAMES": json.dumps(NAMES)}
        skill = self.ssb.skill(PROBE, allow=["OWN", "NAMES"])
        if there is not None:
            export = "".join(f"export {k}='{v}'\n" for k, v in env.items())
            return in_namespace(self.ssb, export + there, self.ssb.binary, "run", *flags, skill)
        return self.ssb.run(*flags, skill, env=env)

    def bare(self, places=None):
        env = {**self.env, "OWN": json.dumps([str(p) for p in places or (self.state, self.config)]),
               "NAMES": json.dumps(NAMES)}
        return self.ssb.bare_probe(PROBE, env=env)

    def trace(self):
        """The trace of the last run. The harness does not look in this state directory."""
        files = sorted((self.state / "runs").glob("*/trace.json"), key=os.path.getmtime)
        return json.loads(files[-1].read_bytes())


@pytest.fixture
def own(ssb):
    return Own(ssb, ssb.home / ".local/state", ssb.home / ".config")


def assert_covered(seen, place):
    assert seen[f"list {place}"] == [], seen
    for name in NAMES:
        assert seen[f"{name} {place}"] == "ENOENT", seen
    for what in ("write", "move", "move above"):
        assert seen[f"{what} {place}"] in ("EROFS", "EBUSY", "EACCES", "EXDEV"), (what, seen)


def assert_open(own, places=None):
    """The control: without the sandbox all attempts succeed."""
    seen = own.bare(places)
    state, config = places or (own.state, own.config)
    assert seen[f"sessions.db {state}"] == KEY
    assert PASSWORD in seen[f"policy.yaml {config}"]
    for place in (state, config):
        assert seen[f"write {place}"] == seen[f"move {place}"] == "ok", seen


def test_a_grant_of_the_home(ssb, own):
    before = own.key.stat().st_ino
    r = own.probe("-r", ssb.home)
    seen = r.ok().json()
    assert_covered(seen, own.state)
    assert_covered(seen, own.config)
    assert KEY not in r.text and PASSWORD not in r.text
    plan = own.trace()["plan"]
    assert {c["target"] for c in plan["covered"]} == {str(own.state), str(own.config)}
    assert not any("skillsandbox" in w for w in plan["warnings"]), plan["warnings"]
    assert own.key.stat().st_ino == before and own.key.read_text() == KEY
    assert_open(own)


def told(ssb):
    """The attempts to access the runtime's files, from the last record."""
    return [x for x in records.last(ssb) if x.get("data", {}).get("reason") == "runtime_files"]


def test_attempts_are_violations(ssb, own):
    own.probe("-r", ssb.home).ok()
    lines = told(ssb)
    assert {str(own.state / "sessions.db"), str(own.state / "trace.key"), str(own.state / "forged"),
            str(own.config / "policy.yaml")} <= {x["data"]["path"] for x in lines}
    assert all(x["violation"] and x["kind"] == "file_blocked" for x in lines)
    # The control: listing the home and the covered directories is not a violation.
    ssb.run("-r", ssb.home, "--", "ls", "-R", own.state, own.config, env=own.env).ok()
    assert told(ssb) == []


@pytest.mark.parametrize("where", ["home", "elsewhere"])
def test_attempts_without_a_grant(ssb, where):
    """Without a grant the attempts are recorded. No remedy is proposed, because a grant of these
    files would be refused."""
    state = ssb.home / ".local/state" if where == "home" else ssb.base / "moved/state"
    at = types.SimpleNamespace(state=state)  # told() needs only this member
    own = Own(ssb, state, ssb.home / ".config")
    keys = [own.state / "trace.key", own.state / "sessions.db"]
    ssb.run("--", "cat", *keys, ssb.home / ".aws/credentials", env=own.env)
    lines = {x["data"]["path"]: x["data"] for x in told(at)}
    assert set(lines) == {str(k) for k in keys}
    assert not any(x.get("remedy") for x in lines.values()), lines
    others = [x["data"] for x in records.last(at)
              if x.get("data", {}).get("reason") == "credential_store"]
    assert [x["path"] for x in others] == [str(ssb.home / ".aws/credentials")]
    assert all(x["remedy"].startswith("--read") for x in others), "the control: another secret"
    r = ssb.run("--read", keys[0], "--", "true", env=own.env)
    assert r.code == 125 and "never granted" in r.errors, repr(r)
    if where == "elsewhere":
        ssb.run("--", "sh", "-c", f"echo x > {own.state}/new", env=own.env)
        (line,) = told(at)
        assert line["data"]["path"] == f"{own.state}/new" and not line["data"].get("remedy")


def test_policy_file_and_manifest(ssb, own):
    ssb.write(own.config / "policy.yaml", f"always: {{read: [{ssb.home}]}}\n", 0o600)
    assert_covered(own.probe().ok().json(), own.state)
    ssb.write(own.config / "policy.yaml", f"grants: {{read: [{ssb.home}]}}\n", 0o600)
    r = ssb.inside("import os\nprint(os.listdir(%r), os.path.exists(%r))" %
                   (str(own.state), str(own.config / "policy.yaml")),
                   read=[ssb.home], env=own.env)
    assert r.ok().text == "[] False\n"


def test_moved_directories_and_the_whole_machine(ssb):
    own = Own(ssb, ssb.base / "moved/state", ssb.base / "moved/config")
    assert_covered(own.probe("-r", ssb.base).ok().json(), own.state)
    r = own.probe("-r", "/")
    if ssb.is_root and r.code == 125:
        assert "idmapped" in r.errors  # a machine whose "/" cannot be mapped
    else:
        seen = r.ok().json()
        assert_covered(seen, own.state)
        assert_covered(seen, own.config)
    assert_open(own)


def test_through_symlinks(ssb):
    real = ssb.mkdir("real")
    os.symlink(real, ssb.base / "link")
    own = Own(ssb, ssb.base / "link/state", ssb.base / "link/config")
    seen = own.probe("-r", real, places=[real / "state/skillsandbox", real / "config/skillsandbox"])
    seen = seen.ok().json()
    assert_covered(seen, real / "state/skillsandbox")
    assert_covered(seen, real / "config/skillsandbox")
    r = own.probe("-w", real)
    assert r.code == 125 and "never granted" in r.errors, repr(r)


def test_bind_mounts(ssb, own):
    """Bind mounts show the files at other paths (the home elsewhere, the state directory beneath a
    grant): they are covered there, too."""
    alias, work = ssb.mkdir("alias"), ssb.mkdir("d")
    inner = ssb.mkdir("d/inner")
    there = f"mount --bind {ssb.home} {alias}\nmount --bind {own.state} {inner}"
    places = [alias / ".local/state/skillsandbox", alias / ".config/skillsandbox"]
    r = own.probe("-r", alias, there=there, places=places)
    for place in places:
        assert_covered(r.ok().json(), place)
    r = own.probe("-r", work, there=there, places=[inner])
    assert_covered(r.ok().json(), inner)
    r = own.probe("-w", alias, there=there)
    assert r.code == 125 and "never granted" in r.errors, repr(r)
    control = in_namespace(ssb, there, "cat", inner / "sessions.db", places[0] / "sessions.db")
    assert control.ok().text == KEY + KEY


def test_a_file_system_mounted_inside(ssb, own):
    """A file system is mounted inside a covered directory: the cover hides it, too."""
    there = f"mount -t tmpfs none {own.state}/runs\n" \
            f"mkdir -m 777 {own.state}/runs/x\necho {KEY} > {own.state}/runs/x/y\n" \
            f"chmod 777 {own.state}/runs"
    script = f"cat {own.state}/runs/x/y; ls -A {own.state}"
    env = {**ssb.environment(), **own.env}
    flags = ["--trace-output", str(ssb.work / "t.json"), "-r", str(ssb.home)]
    assert env["XDG_STATE_HOME"] == ssb.environment()["XDG_STATE_HOME"]
    r = in_namespace(ssb, there, ssb.binary, "run", *flags, "--", "sh", "-c", script)
    assert r.text == "" and "No such file" in r.errors, repr(r)
    control = in_namespace(ssb, there, "sh", "-c", script).ok()
    assert KEY in control.text


@pytest.mark.parametrize("path", [".local", ".local/state", ".config", "."])
def test_writable_grants_around_them(ssb, own, path):
    """A writable grant above the runtime's directories is refused, even if they do not exist yet:
    the runtime would trust what a skill puts there."""
    for there in (True, False):
        if not there:
            for d in (own.state, own.config):
                os.rename(d, ssb.base / f"away-{d.parent.name}")
        r = ssb.run("-w", ssb.home / path, "--", "echo", "started", env=own.env)
        assert r.code == 125 and b"started" not in r.out, repr(r)
        assert "never granted" in r.errors, r.errors
    other = ssb.home / ".local/share/other"
    ssb.run("-w", other, "--", "sh", "-c", f"echo x > {other}/f", env=own.env).ok()  # control
    assert (other / "f").read_text() == "x\n"


def test_missing_ones_appear_covered(ssb):
    """The directories do not exist when the run begins: they are made and covered, so the skill
    sees nothing that is put there later."""
    config = ssb.home / ".config/skillsandbox"
    assert not config.exists() and not (ssb.state / "skillsandbox").exists()
    r = ssb.run("-r", ssb.home, "--trace-output", ssb.work / "t.json", "--", "ls", "-A", config,
                ssb.state / "skillsandbox")
    assert r.ok().text == f"{config}:\n\n{ssb.state}/skillsandbox:\n", repr(r)
    assert config.is_dir() and config.stat().st_mode & 0o777 == 0o700


def test_what_the_owner_names(ssb, own):
    note = ssb.write(own.state / "runs/note", "hello\n", 0o600)
    runs = own.state / "runs"
    for flags in (["-r", runs], ["-r", ssb.home, "-r", runs], ["-r", own.state]):
        r = ssb.run(*flags, "--", "sh", "-c", f"cat {note}; ls -A {own.state}", env=own.env)
        shown = r.ok().text.split()
        assert shown[0] == "hello" and not {"sessions.db", "trace.key", "live"} & set(shown), shown
        assert "runs" in shown
    r = ssb.run("-r", own.config, "--", "cat", own.config / "policy.yaml", env=own.env)
    assert PASSWORD in r.ok().text
    assert any("skillsandbox" in w for w in own.trace()["plan"]["warnings"])


@pytest.mark.parametrize("flag", ["-r", "-w"])
@pytest.mark.parametrize("name", ["trace.key", "sessions.db", "live", "live/sock"])
def test_secrets_are_never_shown(ssb, own, flag, name):
    ssb.run("--", "true", env=own.env).ok()  # the first run makes trace.key
    path = own.state / name
    s = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(own.state / "live")
    s.bind("sock")
    os.chdir(here)
    r = ssb.run(flag, path, "--", "echo", "started", env=own.env)
    assert r.code == 125 and b"started" not in r.out and "is refused" in r.errors, repr(r)
    ssb.bare(["test", "-e", str(path)]).ok()
    s.close()


def test_without_namespaces(user):
    own = Own(user, user.home / ".local/state", user.home / ".config")
    flags = ["run", "--best-effort", "userns"]
    r = without_userns(user, *flags, "-r", str(user.home), "--", "echo", "started", env=own.env)
    assert r.code == 125 and b"started" not in r.out, repr(r)
    assert "cannot be hidden" in r.errors and "name the directories" in r.errors, r.errors
    d = user.mkdir("home/d")
    r = without_userns(user, *flags, "-r", str(d), "--", "echo", "started", env=own.env)
    assert r.ok().text == "started\n"


def test_plan_tells(ssb, own):
    r = ssb.run("--dry-run", "-r", ssb.home, "--", "true", env=own.env).ok()
    assert f"covered   {own.config}" in r.text and str(own.state) in r.text


def test_started_in_a_covered_directory(ssb, own):
    """A run starts in a covered directory, which is not in the sandbox: the skill starts at
    home."""
    runs = own.state / "runs"
    r = ssb.run("-r", ssb.home, "--", "pwd", env=own.env, cwd=runs)
    assert r.ok().text == f"{ssb.home}\n"
    r = ssb.run("-r", runs, "--", "pwd", env=own.env, cwd=runs)
    assert r.ok().text == f"{runs}\n", "control"
