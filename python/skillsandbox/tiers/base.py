"""One worker: a process that holds one instance of a skill, and answers for it."""
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

START_SECONDS = 120.0   # until the skill is imported and constructed
GRACE_SECONDS = 2.0     # for a worker that was told to end


@dataclass(frozen=True)
class Options:
    """What the application grants to the skills that it loads, and how long they get."""
    binary: str = "skillsandbox"
    python: str = ""                    # the worker's; "": this one
    read: Sequence[str] = ()
    write: Sequence[str] = ()
    net: Sequence[str] = ()
    allow_private: Sequence[str] = ()
    env: Sequence[str] = ()             # names of our environment, where the skill asks for them
    memory: str = "1G"
    disk: str = "512M"                  # private: data/ and the files of calls are there
    lifetime: str = "24h"               # of a worker
    timeout: Optional[float] = 300.0    # of a call, in seconds; None: as long as it takes
    session: str = ""
    policy: Optional[str] = None
    trust: bool = False                 # trust_remote_code
    # What only one tier knows: image, rootfs, engine, node, pyodide ...
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """What a tier starts. The environment is the whole one."""
    argv: List[str]
    env: Dict[str, str]
    cwd: Optional[str] = None


@dataclass(frozen=True)
class End:
    """What is known of a worker that ended."""
    exit_status: Optional[int]
    words: str                  # for a message: "ended by signal 6"
    end: str = ""               # exited, signaled, timeout, memory, ...
    run_id: str = ""
    trace: str = ""
    not_started: str = ""       # the reason why the skill never ran


class Worker(abc.ABC):
    """For any number of threads: they take turns.

    After a time-out, a crash or kill() the process is gone; the next call starts a new
    one, with a new instance of the skill. After close() there is no next call."""

    tier: ClassVar[str]

    def __init__(self, skill: Skill, options: Options, config: Optional[Mapping[str, Any]] = None,
                 class_name: Optional[str] = None) -> None:
        self.skill, self.options = skill, options
        self.config: Dict[str, Any] = dict(config or {})
        self.class_name = class_name
        self.process: Optional[subprocess.Popen[bytes]] = None
        self._channel: Optional[Channel] = None
        self._stderr: Optional[Stderr] = None
        self._lock = threading.Lock()
        self.delivered: List[str] = []      # variables that the skill has
        self._next_id = 0
        self._closed = False
        self._owner = os.getpid()   # a child that was forked has no part in it

    # ---- what a tier says ----

    @abc.abstractmethod
    def launch(self) -> Launch:
        """The program that answers for the skill."""

    def ended(self, status: int, stderr: str) -> End:
        """`status` is the process's (negative: a signal), `stderr` the last that it said."""
        words = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return End(status, words)

    def denied(self, error: SkillError, since: float) -> SkillError:
        """A chance to say that `error` comes of a denial; `since` is in seconds since
        the epoch."""
        return error

    def judge(self, places: List[Place]) -> None:
        """Raises for a file that must not go with a call. Without a sandbox the skill has
        everything anyway."""

    # ---- what everybody else uses ----

    def start(self) -> None:
        """Starts it, unless it runs. The skill's own exceptions come as SkillError."""
        with self._lock:
            self._start()

    def call(self, name: str, params: Any = None, files: Optional[Files] = None,
             timeout: Optional[float] = None) -> Any:
        """What the skill answers; `timeout` in seconds, None: the options' own."""
        seconds = self.options.timeout if timeout is None else timeout
        with self._lock:
            self._start()
            return self._exchange(name, params, files, seconds)

    def kill(self) -> None:
        """At once, from any thread; a call under way gets SkillCrashed."""
        process = self.process
        if process is not None and process.poll() is None:
            self._signal(process)
            # Where there is no sandbox the skill may have closed its ears.
            last = threading.Timer(GRACE_SECONDS, process.kill)
            last.daemon = True
            try:
                last.start()
            except RuntimeError:    # no more threads, as when the interpreter ends
                self._end(process)

    def close(self) -> None:
        """Lets it end, and sees that it does. A call under way is ended."""
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
        """The last of what the skill printed, made harmless for a terminal."""
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
        except BaseException:   # no descriptor or thread is left for it
            self._abandon(self.process)
            raise
        if self._closed:    # meanwhile, by another thread
            self._stop(0)
            raise SkillCrashed("the skill was closed")
        self._init()

    def _hold(self, process: "subprocess.Popen[bytes]") -> None:
        """The pipes are ours from here on."""
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
        """Of one that is held by halves."""
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
            self._stop(0)   # it has no instance that could be called
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
        """All of them come before one is written."""
        try:
            for n, parts in files.expect(listed):
                for _ in range(parts):
                    files.take(n, self._or_crash(deadline, seconds))
        except ProtocolError as e:
            raise self._crash(f"it does not speak the protocol ({e})") from None
        files.store()

    def _crash(self, what: str) -> SkillCrashed:
        """Ends it, and says how it ended."""
        assert self.process is not None and self._stderr is not None
        self._stop(GRACE_SECONDS if what == "it ended" else 0)
        status = self.process.returncode
        text = self._stderr.tail()
        # Else the last line is not the tier's, but whatever the skill wrote before it.
        end = self.ended(status, self._stderr.raw_tail() if self._stderr.whole() else "")
        facts: Dict[str, Any] = {"exit_status": end.exit_status, "end": end.end,
                                 "run_id": end.run_id, "trace": end.trace, "stderr": text}
        if end.not_started:
            return SkillNotStarted(end.not_started, **facts)
        trace = f"; see {end.trace}" if end.trace else ""
        return SkillCrashed(f"the skill did not answer: {what} ({end.words}){trace}", **facts)

    def _signal(self, process: "subprocess.Popen[bytes]") -> None:
        """The first is passed on to the skill, the second ends it."""
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
        """It, and all that it held."""
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
    """Of what a worker said of an exception: strings, or nothing."""
    fields = error if isinstance(error, dict) else {}
    kind, message, text = (str(fields.get(k, ""))[:16384]
                           for k in ("type", "message", "traceback"))
    cls = SkillwareParamValidationError if kind == "SkillwareParamValidationError" else SkillError
    return cls(kind or "Exception", message, text, fields.get("system") is True)
