"""Shared by the tests of `skillsandbox serve`: skills in one directory, the server over
stdio and over HTTP, and the processes of a run."""
import contextlib
import os
import select
import threading

import mcp_client
import mcp_world
from harness import alive_with, manifest

TOKEN = "a-token-of-the-tests-0123456789"

# A program that only SIGKILL can end. Its child runs in another session.
STUBBORN = """
import signal, subprocess, sys, time
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(s, signal.SIG_IGN)
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)', sys.argv[1]],
                 start_new_session=True)
print('up', flush=True)
time.sleep(99)
"""


def skill(ssb, name, code, **fields):
    """Makes a skill in the directory that the server offers."""
    d = ssb.mkdir("skills") / name
    ssb.write(d / "main.py", code)
    ssb.write(d / "skillsandbox.yaml", manifest(name=name, **fields))
    return d


def served(ssb, *flags, **kw):
    return mcp_client.serve(ssb, [ssb.mkdir("skills")], *flags, **kw)


class Processes:
    """The processes whose command line contains `marker`. A test can wait for their end."""

    def __init__(self, marker, at_least=2):
        found = mcp_world.eventually(lambda: len(alive_with(marker)) >= at_least)
        assert found, f"nothing runs: {alive_with(marker)}"  # the control
        self.marker = marker
        self.fds = []
        for pid, _ in alive_with(marker):
            with contextlib.suppress(ProcessLookupError):
                self.fds.append(os.pidfd_open(pid))
        assert len(self.fds) >= at_least

    def gone(self, seconds=20):
        left = set(self.fds)
        while left:
            dead = select.select(list(left), [], [], seconds)[0]
            assert dead, f"they live: {alive_with(self.marker)}"
            left -= set(dead)
        for fd in self.fds:
            os.close(fd)


def meta(more=None, capabilities=None):
    return {**mcp_world.META,
            "io.modelcontextprotocol/clientCapabilities": capabilities or {}, **(more or {})}


class Http:
    """The server over HTTP; its standard error is kept."""

    def __init__(self, ssb, *flags, token=TOKEN, env=None):
        self.token = token
        env = {**(env or {}), **({"SKILLSANDBOX_TOKEN": token} if token else {})}
        self.process = mcp_client.start(ssb, [ssb.mkdir("skills")], "--http", "127.0.0.1:0",
                                        *flags, env=env)
        self.errors = ""
        while "http://" not in self.errors:
            line = self.process.stderr.readline().decode()
            assert line, self.errors
            self.errors += line
        self.port = int(self.errors.split("http://127.0.0.1:")[1].split("/")[0])
        if token is None:
            self.token = self.errors.split("token for HTTP is ")[1].split()[0]
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.errors += line.decode()

    def client(self):
        return mcp_world.Client(self.port)

    def once(self, method="POST", body=None, **fields):
        with self.client() as c:
            return c.ask(method, body, **{"token": self.token, **fields})

    def message(self, tool, arguments, more=None, number=1):
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments, "_meta": meta(more)}}

    def tool(self, tool, more=None, **arguments):
        message = self.message(tool, arguments, more)
        status = 429
        while status == 429:  # "too many requests": the test sent the earlier ones too fast
            status, _, answer = self.once(body=message, **mcp_world.modern_fields(message))
        assert status == 200, answer
        return answer["result"]

    def rss(self):
        return rss(self.process)

    def end(self):
        self.process.terminate()
        assert self.process.wait(30) == 0, self.errors
        self.reader.join(10)
        assert self.process.stdout.read() == b""  # over HTTP, the server writes nothing to stdout


@contextlib.contextmanager
def http_served(ssb, *flags, **kw):
    h = Http(ssb, *flags, **kw)
    try:
        yield h
        h.end()
    finally:
        if h.process.poll() is None:
            h.process.kill()
        h.process.wait()


def rss(process):
    """The resident memory of the server in bytes. `process` is the server itself, also for the
    user: setpriv executes the server without a fork."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
        return next(int(x.split()[1]) for x in f if x.startswith("VmRSS")) * 1024


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as f:
        return f.read().split()
