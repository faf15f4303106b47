"""A caller with sessions: starts sessions, starts runs in them, and controls them through
tests/unit/session_driver.c, which reports what happened to each run."""
import contextlib
import itertools
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

import harness
from harness import wait_for as until

DRIVER = harness.BUILD / "tests/unit/session_driver"
NUMBERS = itertools.count(1)


def proc_args(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []


class Sleeper:
    """A process inside a sandbox; the test finds it by its unique argument."""

    def __init__(self):
        self.seconds = f"300.{os.getpid()}{next(NUMBERS):04d}"

    def __str__(self):
        return f"/bin/sleep {self.seconds}"

    def pids(self):
        want = [b"sleep", self.seconds.encode()]
        found = []
        for d in pathlib.Path("/proc").glob("[0-9]*"):
            args = proc_args(d.name)
            if len(args) == 2 and [os.path.basename(args[0]), args[1]] == want:
                found.append(int(d.name))
        return found


class Run:
    """A running `run --session`."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid

    def end(self, timeout=30):
        out, err = self.process.communicate(timeout=timeout)
        return harness.Result(["run"], self.process.returncode, out, err)


class Sessions:
    """The sessions of a caller, stored in SQLite or in a new database of `server`."""

    def __init__(self, runner, server=None):
        self.runner = runner
        self.server = server
        if server is not None:
            self.database = f"w{time.monotonic_ns()}"
            url = server.database(self.database)
            runner.write(runner.home / ".config/skillsandbox/policy.yaml", f'store: "{url}"\n',
                         0o600)
        self.driver = runner.base / "session_driver"
        shutil.copy(DRIVER, self.driver)
        self.driver.chmod(0o755)
        self.state = runner.state / "skillsandbox"
        self.running = []
        self.stopped = []
        (runner.home / ".local").mkdir(exist_ok=True)
        runner.own(runner.home / ".local")

    def drive(self, *words):
        return self.runner.as_caller([self.driver, *words])

    def start(self, name, policy=None, parent=None):
        path = self.runner.base / f"{name}.yaml"
        self.runner.write(path, harness.yaml_text(policy or {}) + "\n")
        self.drive("start", name, path, *([parent] if parent else [])).ok()
        return name

    def act(self, word, name, *more):
        return self.drive(word, name, *more).ok().json()

    def show(self, name):
        return self.drive("show", name).ok().json()

    def runs(self, name):
        """Returns (init, keeper, socket) for each run that is running according to the store."""
        return [(int(a), int(b), c) for a, b, c, _ in
                (line.split() for line in self.drive("runs", name).ok().text.splitlines())]

    def popen(self, *args, session=None, env=None):
        words = [self.runner.binary, "run", *(["--session", session] if session else []), *args]
        run = Run(self.runner.popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, env=env))
        self.running.append(run)
        return run

    def sleeping(self, session, script=None, flags=()):
        """Starts a run whose shell executes `script` and then sleeps; returns (run, sleeper)."""
        sleeper = Sleeper()
        run = self.popen(*flags, "--timeout", "200", "--", "/bin/sh", "-c",
                         f"{script or ''}\nexec {sleeper}", session=session)
        until(sleeper.pids)
        until(lambda: self.runs(session) and all(init for init, _, _ in self.runs(session)))
        return run, sleeper

    def sql(self, text):
        """Changes the store directly, without a command of the product."""
        if self.server is not None:
            self.server.sql(text, self.database)
            return
        db = sqlite3.connect(self.state / "sessions.db", isolation_level=None, timeout=20)
        db.execute(text)
        db.close()

    @contextlib.contextmanager
    def held(self):
        """Locks the store during the `with` block: no other process can write to it."""
        if self.server is not None:
            with self.server.session(self.database) as say:
                say("BEGIN; LOCK TABLE sessions, runs IN ACCESS EXCLUSIVE MODE;")
                yield
            return
        db = sqlite3.connect(self.state / "sessions.db", isolation_level=None, timeout=20)
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")
        db.close()

    def stop(self, pid):
        """Stops a process with SIGSTOP; the end of the test always resumes it. If the process was
        stopped in the middle of a transaction, it would lock all other processes out of the store:
        then it is resumed, and stopped again a little later."""
        fd = os.pidfd_open(pid)
        self.stopped.append(fd)
        signal.pidfd_send_signal(fd, signal.SIGSTOP)
        until(lambda: self.is_free() or self.stop_later(fd))

    @staticmethod
    def stop_later(fd):
        signal.pidfd_send_signal(fd, signal.SIGCONT)
        time.sleep(0.02)
        signal.pidfd_send_signal(fd, signal.SIGSTOP)

    def is_free(self):
        """True if no process is in a transaction of the store."""
        if self.server is not None:
            busy = self.server.sql("SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND "
                                   "datname = current_database() AND pid <> pg_backend_pid()",
                                   self.database)
            return busy.strip() in ("0", b"0")
        try:
            db = sqlite3.connect(self.state / "sessions.db", isolation_level=None, timeout=0)
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
        db.close()
        return True

    def done(self):
        for fd in self.stopped:
            try:
                signal.pidfd_send_signal(fd, signal.SIGCONT)
            except ProcessLookupError:
                pass
            os.close(fd)
        for run in self.running:
            if run.process.poll() is None:
                for sig in (signal.SIGCONT, signal.SIGKILL):
                    run.process.send_signal(sig)
            run.process.communicate(timeout=30)


@pytest.fixture
def sessions(ssb):
    world = Sessions(ssb)
    yield world
    world.done()


@pytest.fixture(params=["root-sqlite", "user-sqlite", "user-postgres"])
def either(request):
    """The sessions of a caller. Each test runs with both stores, which must behave the same."""
    who, store = request.param.split("-")
    runner = request.getfixturevalue(who)
    world = Sessions(runner, request.getfixturevalue("server") if store == "postgres" else None)
    yield world
    world.done()
