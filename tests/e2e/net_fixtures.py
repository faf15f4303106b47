"""Fixtures of the egress tests. `outside` is the world of net_servers.py. `net` is a
caller (root or a user) whose commands are started inside its namespaces: the sandbox
under test takes them for its host, and nothing can reach the machine's network."""
import json
import pathlib
import re
import subprocess
import tempfile
import textwrap
import time

import pytest

import harness
import net_clients
import net_servers

GRANT = ("--allow-private", "127.0.0.0/8")
# Seconds within which an immediate answer arrives, even if the machine paused for a moment. A
# client that waits in vain waits longer: 5 s and more, like libc's resolver.
PROMPT = 4


class Outside:
    """The test's end of the program."""

    def __init__(self, top):
        self.top = top
        self.log = open(top / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", "--propagation", "private", harness.PYTHON,
             net_servers.__file__, top], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={"PATH": harness.PATH, "PYTHONPATH": str(pathlib.Path(__file__).parent)})
        assert self.process.stdout.readline() == '"ready"\n', (top / "log").read_text()
        self.enter = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net",
                      f"--mount=/proc/{self.process.pid}/ns/mnt", "--"]
        self.before = None

    def ask(self, word):
        self.process.stdin.write(json.dumps(word) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, (self.top / "log").read_text()
        return json.loads(line)

    def reset(self):
        self.before = self.ask("reset")["kernel"]

    def seen(self, settle=0.15):
        """What arrived since the last reset, after a moment for what is on
        its way: connections, queries, datagrams, and the kernel's counts."""
        time.sleep(settle)
        got = self.ask("seen")
        got["kernel"] = {k: v - self.before[k] for k, v in got["kernel"].items()}
        return got

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.log.close()


@pytest.fixture(scope="session")
def outside(base):
    top = pathlib.Path(tempfile.mkdtemp(prefix="outside-", dir=base))
    top.chmod(0o755)
    world = Outside(top)
    yield world
    world.close()


class Net:
    """A caller in the outside world."""

    def __init__(self, runner, world):
        self.runner, self.world = runner, world
        identity = runner.identity()
        runner.identity = lambda: [*world.enter, "env", "-C", str(runner.work), *identity]
        self.files = {"clients.py": pathlib.Path(net_clients.__file__).read_text("utf-8"),
                      "ca.pem": (world.top / "ca.pem").read_text("ascii")}

    def skill(self, code, egress=(), **fields):
        """The code sees clients.py and ca.pem beside it; ends by show(...)."""
        files = {**self.files, **fields.pop("files", {})}
        limits = fields.pop("limits", {})
        text = harness.manifest(egress=egress, **fields)
        for key, value in limits.items():
            text = text.replace("\n    egress:", f"\n    {key}: {value}\n    egress:")
        code = "from clients import *\n" + textwrap.dedent(code)
        return self.runner.skill(code, text=text, files=files)

    def inside(self, code, egress=(), *, flags=GRANT, env=None, timeout=60, **fields):
        self.world.reset()
        return self.runner.run(*flags, self.skill(code, egress, **fields), env=env,
                               timeout=timeout)

    def probe(self, code, egress=(), **kw):
        """What the skill showed."""
        r = self.inside(code, egress, **kw).ok()
        return r.json()

    def control(self, code, **kw):
        """The same code unconfined, in the same outside world."""
        directory = self.skill(code)
        self.world.reset()
        return self.runner.as_caller([harness.PYTHON, directory / "main.py"], **kw).ok().json()

    def seen(self):
        return self.world.seen()

    def nothing_arrived(self):
        """No connection, no question, no datagram; not even a try. The kernel counts
        for all: a server may still be writing down what an earlier test sent."""
        got = self.seen()
        assert not any(got["kernel"].values()), got
        return True

    def events(self, kind, *words):
        """Events of the newest trace of this kind that hold all these words."""
        return [e for e in self.runner.last_trace()["events"] if e["kind"] == kind
                and all(has_word(e, w) for w in words)]

    def blocked(self, *words):
        """Each fact once; how often is times()."""
        return [e for e in self.events("network_egress_blocked", *words)
                if "count" not in e["data"]]

    def allowed(self, *words):
        """Connections, by the event of their end."""
        return [e for e in self.events("network_egress_allowed", *words)
                if e["data"]["state"] == "closed"]

    def opened(self, *words):
        """Connections, by the event of their beginning."""
        return [e for e in self.events("network_egress_allowed", *words)
                if e["data"]["state"] == "open"]

    def times(self, kind, *words):
        """How often that happened, repeats included."""
        found = self.events(kind, *words)
        counts = [e["data"]["count"] for e in found if "count" in e["data"]]
        return sum(counts) + len(found) - 2 * len(counts)


def has_word(event, word):
    """As a whole word: port 80 is not in "8080"."""
    text = json.dumps({k: v for k, v in event.items() if k not in ("kind", "timestamp")})
    return re.search(rf"(?<![\w.-]){re.escape(str(word))}(?![\w-]|\.\w)", text) is not None


@pytest.fixture
def net(ssb, outside):
    return Net(ssb, outside)


def rule(domain, *ports, protocol=None):
    r = {"domain": domain, "ports": list(ports) or [443]}
    if protocol:
        r["protocol"] = protocol
    return r
