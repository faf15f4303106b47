"""The skills of tests/skills. Legitimate ones do their work in the sandbox. Hostile ones fail, and
the record names what they tried. Each hostile one has a control: outside the sandbox, where they
reach only decoys, the same files do the harm."""
import hashlib
import json
import pathlib
import shutil
import subprocess
import time
import zlib

import pytest

import skills_sink
import harness
from mcp_world import eventually

SKILLS = harness.REPO / "tests/skills"
TOKEN = {"API_TOKEN": harness.SECRET + "-token"}


class Sink:
    """Starts skills_sink.py, sends commands to it, and has the command that enters its network."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["unshare", "--net", harness.PYTHON, skills_sink.__file__], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={"PATH": harness.PATH})
        assert self.process.stdout.readline() == '"ready"\n'
        self.enter = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", "--"]

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def loot(self):
        return "".join(c["bytes"] for c in self.ask("seen"))

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait(10)


@pytest.fixture(scope="module")
def sink():
    s = Sink()
    yield s
    s.close()


@pytest.fixture
def world(ssb, sink):
    """The caller, with commands that run in the sink's network."""
    identity = ssb.identity()
    ssb.identity = lambda: [*sink.enter, "env", "-C", str(ssb.work), *identity]
    ssb.sink = sink
    ssb.plain = identity
    return ssb


def place(ssb, kind, name):
    """Copies the skill. The copy belongs to the caller."""
    target = ssb.base / name
    shutil.copytree(SKILLS / kind / name, target, symlinks=True)
    for p in [target, *target.rglob("*")]:
        ssb.own(p)
    return target


def unconfined(ssb, argv, cwd, seconds=20):
    """Like Runner.bare(), but in the sink's network instead of none."""
    return harness.execute(
        [*ssb.sink.enter, "unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
         *ssb.plain, "env", "-i", *(f"{k}={v}" for k, v in ssb.environment(TOKEN).items()),
         "timeout", "-s", "KILL", str(seconds), *argv], env={"PATH": harness.PATH}, cwd=cwd,
        timeout=60)


def digest(*tops):
    """Returns a digest of all files beneath these directories, except the runtime's own records."""
    h = hashlib.sha256()
    for top in tops:
        for p in sorted(pathlib.Path(top).rglob("*")):
            if ".local/state" not in str(p) and p.is_file():
                h.update(str(p).encode() + b"\0" + p.read_bytes())
    return h.hexdigest()


def denied(trace):
    """The denied attempts as text: paths, addresses, limits."""
    return json.dumps(trace["policy_violations"])


def classes(trace):
    return set(trace.get("violation_summary", {}).get("classes", []))


STEALS = ({"credential_harvesting", "command_and_control", "supply_chain_attack"},
          (".ssh/id_ed25519", skills_sink.ADDRESS))
SHELLS = ({"command_and_control"}, (skills_sink.ADDRESS,))

# The control for Skillware skills: the process of an agent imports the skill and calls it.
SKILLWARE = """
import sys, types
for name in ("skillware", "skillware.core", "skillware.core.base_skill"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["skillware.core.base_skill"].BaseSkill = object
sys.path.insert(0, ".")
import skill
skill.WordCount().execute({"text": "a b"})
"""

# name: (arguments after the skill for `run`, command of the control, classes that the record must
# have, words that the denied attempts must contain)
HOSTILE = {
    "base64-exec": ([], [harness.PYTHON, "main.py"], *STEALS),
    "time-bomb": ([], [harness.PYTHON, "main.py"], *STEALS),
    "reverse-bash": ([], ["bash", "main.sh"], *SHELLS),
    "reverse-python": ([], [harness.PYTHON, "main.py"], *SHELLS),
    "reverse-perl": ([], ["perl", "main.pl"], *SHELLS),
    "pickle-model": ([], [harness.PYTHON, "main.py"], *STEALS),
    "pipe-installer": ([], ["bash", "main.sh"], *SHELLS),
    "env-stealer": ([], [harness.PYTHON, "main.py"],
                    {"credential_harvesting", "command_and_control"},
                    ("/proc/1/environ", skills_sink.ADDRESS)),
    "symlink-tricks": ([], [harness.PYTHON, "main.py"], *STEALS),
    "proc-tricks": ([], [harness.PYTHON, "main.py"],
                    {"credential_harvesting", "command_and_control"},
                    ("/environ", skills_sink.ADDRESS)),
    # Skills in other formats. The first two have a SKILL.md. The last is a Skillware skill: in the
    # sandbox a program of the runtime imports its code, in the control SKILLWARE does.
    "layered-encodings": (["scripts/tidy.py"], [harness.PYTHON, "scripts/tidy.py"], *STEALS),
    "shell-decoder": (["scripts/setup.sh"], ["scripts/setup.sh"], *STEALS),
    "skillware-stealer": (['{"text": "a b"}'], [harness.PYTHON, "-c", SKILLWARE],
                          {"credential_harvesting"}, (".ssh/id_ed25519",)),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_thief(world, name):
    args, bare, expected, words = HOSTILE[name]
    skill = place(world, "hostile", name)
    before = digest(world.home, skill)
    world.sink.ask("reset")
    world.run("-q", skill, *args, env=TOKEN, timeout=30)
    assert world.sink.ask("seen") == [], "a connection arrived"
    assert digest(world.home, skill) == before
    trace = world.last_trace()
    assert expected <= classes(trace), denied(trace)
    for word in words:
        assert word in denied(trace), denied(trace)

    unconfined(world, bare, skill)
    assert eventually(lambda: harness.SECRET in world.sink.loot()), "the control did no harm"


def test_persistence(world):
    skill = place(world, "hostile", "persistence")
    before = digest(world.home)
    world.run("-q", skill)
    assert digest(world.home) == before
    trace = world.last_trace()
    assert "persistence" in classes(trace)
    text = json.dumps(trace["events"])
    for word in (".bashrc", "authorized_keys", "autostart", "/etc/cron.d/update"):
        assert word in text, word

    # As root the control would write to the machine's own cron table, so an empty file system is
    # mounted over it.
    unconfined(world, ["unshare", "--mount", "--map-root-user", "sh", "-c",
                       "mount -t tmpfs x /etc/cron.d; exec bash main.sh"], skill)
    assert "203.0.113.7" in (world.home / ".bashrc").read_text()
    assert "attacker" in (world.home / ".ssh/authorized_keys").read_text()


def test_self_modifying(world):
    skill = place(world, "hostile", "self-modifying")
    before = digest(skill)
    world.run("-q", skill)
    assert digest(skill) == before
    assert "/skill/main.py" in denied(world.last_trace())
    unconfined(world, [harness.PYTHON, "main.py"], skill).ok()
    assert digest(skill) != before


def test_sleeper(world):
    skill = place(world, "hostile", "sleeper")
    start = time.monotonic()
    assert world.run("-q", skill, timeout=30).code == 124
    assert time.monotonic() - start < 25
    trace = world.last_trace()
    assert classes(trace) == set(), "a limit alone is no attack"
    assert "resource_limit_hit" in {e["kind"] for e in trace["events"]}
    control = unconfined(world, ["sh", "main.sh"], skill, 5)
    assert control.code == 137 and control.text == "waiting\n", "it ended by itself"


def test_fork_bomb(world):
    skill = place(world, "hostile", "fork-bomb")
    r = world.run("-q", skill, timeout=30)
    assert r.code == 124 and r.text == "", repr(r)
    assert "resource_limit_hit" in {e["kind"] for e in world.last_trace()["events"]}
    assert unconfined(world, [harness.PYTHON, "main.py"], skill).ok().text == "300\n"


# ---- skills that do their work

def pdf(text):
    stream = zlib.compress(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode())
    return (b"%%PDF-1.4\n1 0 obj\n<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(stream)
            + stream + b"\nendstream\nendobj\n%%EOF\n")


# name: (arguments, input, output)
LEGIT = {
    "pdf-text": (["scripts/extract.py"], pdf("Invoice \\(paid\\)"), "Invoice (paid)\n"),
    "csv-summary": (["scripts/summary.py"], b"city,celsius\nOslo,-3\nRome,15\n",
                    '{"rows": 2, "columns": {"city": {"different": 2}, "celsius": '
                    '{"min": -3.0, "max": 15.0, "mean": 6.0}}}\n'),
    "with-server": (["scripts/with_server.py"], b"", "ok\n"),
    "markdown-toc": (["toc.mjs"], b"# A\n## B c\n```\n# no\n```\n## B c\n",
                     "- [A](#a)\n  - [B c](#b-c)\n  - [B c](#b-c-1)\n"),
    "timer": (["3"], b"", "3\n2\n1\ndone\n"),
    "invoice": ([], b'{"items": [{"price": 10, "count": 2}, {"price": 1.5}]}',
                '{"ok":true,"result":{"total":25.59}}'),
}


def test_legitimate_ones_do_their_work(ssb):
    for name, (args, stdin, out) in LEGIT.items():
        r = ssb.run(place(ssb, "legit", name), *args, stdin=stdin).ok()
        assert r.text.strip() == out.strip(), f"{name}: {r!r}"
        assert ssb.last_trace()["policy_violations"] == [], name
    assert set(LEGIT) | {"git-summary"} == {d.name for d in (SKILLS / "legit").iterdir()}


def test_with_a_grant_of_its_owner(ssb):
    repo = ssb.mkdir("repo")
    git = ["git", "-C", repo, "-c", "user.name=Ada", "-c", "user.email=a@example.com"]
    for argv in (["git", "init", "-q", repo],
                 [*git, "commit", "-q", "--allow-empty", "-m", "first"]):
        ssb.as_caller(argv).ok()
    skill = place(ssb, "legit", "git-summary")
    r = ssb.run("--read", repo, skill, repo).ok()
    assert r.text == "     1\tAda\nlast: first\n"
    # The control: without the grant the skill cannot read the repository.
    assert ssb.run("-q", skill, repo).code != 0


def test_every_hostile_one_was_tried():
    alone = {"persistence", "self-modifying", "sleeper", "fork-bomb"}
    assert set(HOSTILE) | alone == {d.name for d in (SKILLS / "hostile").iterdir()}
