"""Fixtures of the egress tests. `outside` is the program net_servers.py in its own namespaces.
`net` is a caller (root or a user) whose commands run inside these namespaces: for the sandbox
under test they are the host, and nothing can reach the machine's real network."""
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
# An immediate answer arrives within this time (seconds), even on a busy machine. A client that
# waits for an answer that never comes takes longer: libc's resolver waits 5 s or more.
PROMPT = 4


class Outside:
    """Starts net_servers.py and sends commands to it."""

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
        """Waits for packets that are still on their way, then returns everything that arrived
        since the last reset: connections, queries, datagrams, and the kernel's counters."""
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
    """A caller whose commands run in the namespaces of net_servers.py."""

    def __init__(self, runner, world):
        self.runner, self.world = runner, world
        identity = runner.identity()
        runner.identity = lambda: [*world.enter, "env", "-C", str(runner.work), *identity]
        self.files = {"clients.py": pathlib.Path(net_clients.__file__).read_text("utf-8"),
                      "ca.pem": (world.top / "ca.pem").read_text("ascii")}

    def skill(self, code, egress=(), **fields):
        """Makes a skill with clients.py and ca.pem. Its code prints the result with show(...)."""
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
        """Runs the code as a skill; returns the value that it printed with show(...)."""
        r = self.inside(code, egress, **kw).ok()
        return r.json()

    def control(self, code, **kw):
        """The control: runs the same code in the same namespaces, but without the sandbox."""
        directory = self.skill(code)
        self.world.reset()
        return self.runner.as_caller([harness.PYTHON, directory / "main.py"], **kw).ok().json()

    def seen(self):
        return self.world.seen()

    def nothing_arrived(self):
        """Fails if the skill sent, or only tried to send, anything. Only the kernel's counters are
        compared: a server may still be recording the data of an earlier test."""
        got = self.seen()
        assert not any(got["kernel"].values()), got
        return True

    def events(self, kind, *words):
        """Events of this kind in the newest trace that contain all these words."""
        return [e for e in self.runner.last_trace()["events"] if e["kind"] == kind
                and all(has_word(e, w) for w in words)]

    def blocked(self, *words):
        """Blocked attempts, equal ones only once; times() counts the repeats, too."""
        return [e for e in self.events("network_egress_blocked", *words)
                if "count" not in e["data"]]

    def allowed(self, *words):
        """Allowed connections: the events of their end."""
        return [e for e in self.events("network_egress_allowed", *words)
                if e["data"]["state"] == "closed"]

    def opened(self, *words):
        """Allowed connections: the events of their beginning."""
        return [e for e in self.events("network_egress_allowed", *words)
                if e["data"]["state"] == "open"]

    def times(self, kind, *words):
        """How often such an event happened, repeats included."""
        found = self.events(kind, *words)
        counts = [e["data"]["count"] for e in found if "count" in e["data"]]
        return sum(counts) + len(found) - 2 * len(counts)


def has_word(event, word):
    """True if the event contains the word as a whole: port 80 is not in "8080"."""
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
