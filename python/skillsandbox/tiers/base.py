"""A worker: a process that contains one instance of a skill and answers its calls."""
from __future__ import annotations

import abc
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence

from .._errors import (SkillCrashed, SkillError, SkillNotStarted, SkillTimeout,
                       SkillwareParamValidationError)
from .._files import Files, Place
from .._reaper import REAPER
from .._skill import Skill
from .._stderr import Stderr
from .._wire import Channel, Ended, Late, ProtocolError, encode

START_SECONDS = 120.0   # time to import the skill and to create its instance
GRACE_SECONDS = 2.0     # time for a worker to end after it was told to


@dataclass(frozen=True)
class Options:
    """The grants of the application to the skills that it loads, and their limits."""
    binary: str = "skillsandbox"
    python: str = ""                    # the Python of the worker; "": sys.executable
    read: Sequence[str] = ()
    write: Sequence[str] = ()
    net: Sequence[str] = ()
    allow_private: Sequence[str] = ()
    # names of variables of this process that a skill gets if it requests them
    env: Sequence[str] = ()
    memory: str = "1G"
    disk: str = "512M"                  # space for copies of data/ and of files of calls
    lifetime: str = "24h"               # of a worker
    timeout: Optional[float] = 300.0    # of a call, in seconds; None: no limit
    session: str = ""
    policy: Optional[str] = None
    trust: bool = False                 # the argument trust_remote_code of the loader
    # options that only one tier has: image, rootfs, engine, node, pyodide, ...
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """The command that a tier starts. `env` is the complete environment."""
    argv: List[str]
    env: Dict[str, str]
    cwd: Optional[str] = None


@dataclass(frozen=True)
class End:
    """How a worker ended."""
    exit_status: Optional[int]
    words: str                  # for a message: "ended by signal 6"
    end: str = ""               # exited, signaled, timeout, memory, ...
    run_id: str = ""
    trace: str = ""
    not_started: str = ""       # the reason why the skill never ran


class Worker(abc.ABC):
    """Threads may share a worker: their calls run one after the other.

    After a time-out, a crash or kill() the process has ended; the next call starts a new one,
    with a new instance of the skill. After close() no call is possible."""

    tier: ClassVar[str]
    extra: ClassVar[Sequence[str]] = ()     # the options that only this tier has

    def __init__(self, skill: Skill, options: Options, config: Optional[Mapping[str, Any]] = None,
                 class_name: Optional[str] = None) -> None:
        self.skill, self.options = skill, options
        self.config: Dict[str, Any] = dict(config or {})
        self.class_name = class_name
        self.process: Optional[subprocess.Popen[bytes]] = None
        self._channel: Optional[Channel] = None
        self._stderr: Optional[Stderr] = None
        self._lock = threading.Lock()
        self.delivered: List[str] = []      # names of the variables that the skill has got
        self._next_id = 0
        self._closed = False
        self._owner = os.getpid()   # a forked child must not use the worker

    # ---- methods that a tier implements ----

    @abc.abstractmethod
    def launch(self) -> Launch:
        """Returns the command of the process that runs the skill and answers its calls."""

    def ended(self, status: int, stderr: str) -> End:
        """Returns how the process ended. `status` is its exit status (negative: a signal), `stderr`
        the end of its standard error."""
        words = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return End(status, words)

    def denied(self, error: SkillError, since: float) -> SkillError:
        """Returns a SkillDenied if a denial by the sandbox caused `error`, otherwise `error`.
        `since` is the start of the call, in seconds since the epoch."""
        return error

    def judge(self, places: List[Place]) -> None:
        """Raises an exception for a file that must not be passed with a call. Without a sandbox, a
        skill can access every file anyway, so this does nothing."""

    # ---- methods for all other code ----

    def start(self) -> None:
        """Starts the worker if it is not running. Exceptions of the skill are raised as
        SkillError."""
        with self._lock:
            self._start()

    def call(self, name: str, params: Any = None, files: Optional[Files] = None,
             timeout: Optional[float] = None) -> Any:
        """Returns the answer of the skill. `timeout` is in seconds; None: options.timeout."""
        seconds = self.options.timeout if timeout is None else timeout
        with self._lock:
            self._start()
            return self._exchange(name, params, files, seconds)

    def kill(self) -> None:
        """Ends the worker at once, from any thread. A call that is running raises SkillCrashed."""
        process = self.process
        if process is not None and process.poll() is None:
            self._signal(process)
            # A skill without a sandbox may ignore the signals, so it is killed after GRACE_SECONDS.
            last = threading.Timer(GRACE_SECONDS, process.kill)
            last.daemon = True
            try:
                last.start()
            except RuntimeError:    # no thread can be started: the interpreter may be ending
                self._end(process)

    def close(self) -> None:
        """Ends the worker, and waits for its end. A call that is running is aborted."""
        self._closed = True
        if self._owner != os.getpid():
            return
        if not self._lock.acquire(timeout=0):
            self.kill()
            self._lock.acquire()
        try:
            self._stop(GRACE_SECONDS)
        finally:
            self._lock.release()

    @property
    def stderr(self) -> str:
        """The end of the output of the skill, with control characters escaped."""
        return self._stderr.tail() if self._stderr is not None else ""

    # ---- the process ----

    def _start(self) -> None:
        if self._closed:
            raise SkillCrashed("the skill was closed")
        if self._owner != os.getpid():
            raise SkillCrashed("the skill belongs to the process that this one was forked from")
        if self.process is not None and self.process.poll() is None:
            return
        self._stop(0)
        launch = self.launch()
        try:
            self.process = subprocess.Popen(
                launch.argv, env=launch.env, cwd=launch.cwd, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                bufsize=0)
        except OSError as e:
            raise SkillNotStarted(f"{launch.argv[0]}: {e.strerror}") from e
        REAPER.add(self.process.pid)
        try:
            self._hold(self.process)
        except BaseException:   # no fd or no thread could be created for the worker
            self._abandon(self.process)
            raise
        if self._closed:    # closed by another thread while it started
            self._stop(0)
            raise SkillCrashed("the skill was closed")
        self._init()

    def _hold(self, process: "subprocess.Popen[bytes]") -> None:
        """Duplicates the pipes, which this object then owns."""
        assert process.stdin and process.stdout and process.stderr
        with process.stdin, process.stdout:
            to_worker = os.dup(process.stdin.fileno())
            try:
                self._channel = Channel(to_worker, os.dup(process.stdout.fileno()))
            except OSError:
                os.close(to_worker)
                raise
        self._stderr = Stderr(process.stderr)

    def _abandon(self, process: "subprocess.Popen[bytes]") -> None:
        """Ends a process whose pipes could not all be set up."""
        self._end(process)
        REAPER.remove(process.pid)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        if self._channel is not None:
            self._channel.close()
        self.process = self._channel = None

    def _init(self) -> None:
        assert self._channel is not None
        params = {"config": self.config, "class": self.class_name,
                  "manifest": self.skill.manifest, "env": self.skill.env_names}
        try:
            hello = self._receive(START_SECONDS)
            if hello.get("protocol") != 1:
                raise self._crash("it does not speak the protocol")
            said = self._exchange("init", params, None, START_SECONDS)
        except SkillError:
            self._stop(0)   # without an instance, no call is possible
            raise
        names = said.get("env") if isinstance(said, dict) else None
        self.delivered = [n for n in names if isinstance(n, str)] if isinstance(names, list) else []

    def _receive(self, seconds: Optional[float]) -> Dict[str, Any]:
        assert self._channel is not None
        deadline = None if seconds is None else time.monotonic() + seconds
        return self._or_crash(deadline, seconds)

    def _or_crash(self, deadline: Optional[float], seconds: Optional[float]) -> Dict[str, Any]:
        assert self._channel is not None
        try:
            return self._channel.receive(deadline)
        except Late:
            self._stop(0)
            raise SkillTimeout(f"no answer in {seconds:g} s; the worker was ended") from None
        except Ended:
            raise self._crash("it ended") from None
        except ProtocolError as e:
            raise self._crash(f"it does not speak the protocol ({e})") from None

    def _exchange(self, name: str, params: Any, files: Optional[Files],
                  seconds: Optional[float]) -> Any:
        assert self._channel is not None
        self._next_id += 1
        number = self._next_id
        began = time.time()
        request: Dict[str, Any] = {"id": number, "call": name, "params": params}
        if files is not None:
            request["files"] = files.listed()
        line = encode(request)
        if not self._channel.quiet():
            raise self._crash("it spoke without being asked")
        self._channel.send(line)
        for part in files.parts() if files is not None else ():
            self._channel.send(encode(part))
        deadline = None if seconds is None else time.monotonic() + seconds
        answer = self._or_crash(deadline, seconds)
        if answer.get("id") != number or not isinstance(answer.get("ok"), bool):
            raise self._crash("it answered what was not asked")
        if not answer["ok"]:
            error = skill_error(answer.get("error"))
            raise self.denied(error, began) if error.system else error
        if files is None and "files" in answer:
            raise self._crash("it answered what was not asked")
        if files is not None:
            self._take(files, answer.get("files", []), deadline, seconds)
        return answer.get("result")

    def _take(self, files: Files, listed: Any, deadline: Optional[float],
              seconds: Optional[float]) -> None:
        """Receives all files before the first one is written."""
        try:
            for n, parts in files.expect(listed):
                for _ in range(parts):
                    files.take(n, self._or_crash(deadline, seconds))
        except ProtocolError as e:
            raise self._crash(f"it does not speak the protocol ({e})") from None
        files.store()

    def _crash(self, what: str) -> SkillCrashed:
        """Ends the worker, and returns an exception that says how it ended."""
        assert self.process is not None and self._stderr is not None
        self._stop(GRACE_SECONDS if what == "it ended" else 0)
        status = self.process.returncode
        text = self._stderr.tail()
        # The tier prints its result last. If not all output was read, the last line that was read
        # may be the skill's.
        end = self.ended(status, self._stderr.raw_tail() if self._stderr.whole() else "")
        facts: Dict[str, Any] = {"exit_status": end.exit_status, "end": end.end,
                                 "run_id": end.run_id, "trace": end.trace, "stderr": text}
        if end.not_started:
            return SkillNotStarted(end.not_started, **facts)
        trace = f"; see {end.trace}" if end.trace else ""
        return SkillCrashed(f"the skill did not answer: {what} ({end.words}){trace}", **facts)

    def _signal(self, process: "subprocess.Popen[bytes]") -> None:
        """The sandbox forwards the first signal to the skill and ends at the second."""
        for s in (signal.SIGTERM, signal.SIGINT):
            try:
                process.send_signal(s)
            except ProcessLookupError:
                return

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        self._signal(process)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _stop(self, grace: float) -> None:
        """Ends the process and closes everything that belongs to it."""
        process, channel, err = self.process, self._channel, self._stderr
        if process is None or channel is None or err is None:
            return
        channel.end_input()
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            self._end(process)
        REAPER.remove(process.pid)
        channel.close()
        err.join()
        self._channel = None


def skill_error(error: Any) -> SkillError:
    """Converts the description of an exception from a worker, which may be invalid."""
    fields = error if isinstance(error, dict) else {}
    kind, message, text = (str(fields.get(k, ""))[:16384]
                           for k in ("type", "message", "traceback"))
    cls = SkillwareParamValidationError if kind == "SkillwareParamValidationError" else SkillError
    return cls(kind or "Exception", message, text, fields.get("system") is True)
