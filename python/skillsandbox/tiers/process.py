"""The sandbox of this machine: namespaces, Landlock, seccomp, and a record of the run.

The tier is PlannedWorker. It starts `skillsandbox run DIR`, so the same rules apply: the plan
from the skill, its manifest or the owner's sidecar; the owner's policy and approvals; and the
files that were approved. ProcessWorker runs a command of its own, for a tier with another
interpreter; such a tier must call plan() first.
"""
from __future__ import annotations

import errno
import json
import os
import secrets
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Set

from .._errors import SkillDenied, SkillError, SkillNotStarted
from .._files import Place
from .._stderr import visible
from .base import End, Launch, Worker

WORKER = str(Path(__file__).resolve().parent.parent / "_worker.py")
MOST_OUTPUT = "1099511627776"   # large: all answers of a worker count together
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
RECENT = 64                     # so many of the newest runs may be the worker's run
WRITTEN_AFTER = (0.0, 0.12)     # seconds until the record contains a denial that has just happened
RECORD = "trace.jsonl"
FIRST_LINE = 1 << 20            # maximum bytes of a line of a record
USAGE = 2                       # exit status for a wrong option
MOST_REASONS = 4
MOST_JUDGED = 4096              # so many allowed places of files are remembered


# How the C library's errors for a name that is not found read.
NOT_FOUND = ("Name or service not known", "Temporary failure in name resolution",
             "No address associated with hostname")


class ProcessWorker(Worker):
    tier: ClassVar[str] = "process"

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._judged: Set[Place] = set()

    def launch(self) -> Launch:
        # The record contains the command line, so this argument identifies the worker's record.
        self._tag = f"--tag={secrets.token_hex(16)}"
        self._run_id = ""
        return Launch([*self.command(), *self.target(), self._tag], dict(os.environ))

    def target(self) -> List[str]:
        """Returns the arguments that name the program, and that make it serve many calls."""
        return ["--", self.python(), "-B", WORKER, "--serve", str(self.skill.path)]

    def reads(self) -> List[str]:
        """Returns the paths that the worker needs."""
        return [WORKER, str(self.skill.path), *self.prefixes()]

    def python(self) -> str:
        return self.options.python or sys.executable

    def command(self) -> List[str]:
        """Returns the arguments of `skillsandbox run` with all grants, without the program."""
        argv = [self.options.binary, "run", "--quiet", "--no-tty", *self.grants()]
        return [*argv, "--session", self.options.session] if self.options.session else argv

    def grants(self) -> List[str]:
        """Returns the options that `run` and `inspect` have in common."""
        o = self.options
        argv = ["--json", "--max-output", MOST_OUTPUT, "--timeout", o.lifetime,
                "--memory", o.memory, "--max-disk", o.disk]
        for flag, values in (("--read", [*self.reads(), *o.read]),
                             ("--write", o.write), ("--net", o.net),
                             ("--allow-private", o.allow_private),
                             ("--env", self.granted_env())):
            for value in values:
                argv += [flag, os.fspath(value)]
        if o.policy is not None:
            argv += ["--policy", o.policy]
        return argv

    def plan(self) -> Dict[str, Any]:
        """Returns the plan of `skillsandbox run DIR`, for a tier that runs the skill in another
        way. Raises SkillNotStarted if that command would refuse the skill, or if it is allowed
        only with checks that this tier cannot make."""
        plan = self._inspect([*self.grants(), str(self.skill.path), "--", "--serve"])
        if plan["denied"]:
            raise SkillNotStarted("not granted: "
                                  + "; ".join(str(d["what"]) for d in plan["denied"]))
        refusal = not_consented(plan)
        if refusal:
            raise SkillNotStarted(f"the sandbox was not started: {refusal}")
        return plan

    def _inspect(self, words: List[str]) -> Dict[str, Any]:
        argv = [self.options.binary, "inspect", *words]
        try:
            done = subprocess.run(argv, check=False, capture_output=True, timeout=600,
                                  stdin=subprocess.DEVNULL)
            plan: Dict[str, Any] = json.loads(done.stdout)
        except OSError as e:
            raise SkillNotStarted(f"{argv[0]}: {e.strerror}") from e
        except subprocess.TimeoutExpired as e:
            raise SkillNotStarted(f"the plan was not made in {e.timeout:g} s") from None
        except ValueError:
            raise SkillNotStarted("the plan cannot be made: "
                                  + visible(done.stderr.decode("utf-8", "replace")[-2000:])) from None
        return plan

    def judge(self, places: List[Place]) -> None:
        """Checks files as `skillsandbox run --read` and `--write` would. An allowed place is
        checked only once: its path contains no symlink, so it stays the same as long as its
        directory does."""
        new = [p for p in places if p not in self._judged]
        if not new:
            return
        words = ["--json"]
        for p in new:
            words += ["--write" if p.mode == "w" else "--read", p.path]
        if self.options.policy is not None:
            words += ["--policy", self.options.policy]
        for d in self._inspect([*words, "--", WORKER])["denied"]:
            raise PermissionError(errno.EACCES, visible(f"{d['why']}; {d['remedy']}"),
                                  visible(d["what"]))
        if len(self._judged) + len(new) > MOST_JUDGED:
            self._judged.clear()
        self._judged.update(new)

    def granted_env(self) -> List[str]:
        """Returns the names that the skill requests and the application grants. The values are
        passed in the environment, because arguments are visible to every user of the machine."""
        return [n for n in self.skill.env_names
                if n in self.options.env and n in os.environ and n not in self.config]

    def prefixes(self) -> List[str]:
        """Returns the directories of the interpreter and its packages, without those below /usr."""
        found: List[str] = []
        for p in (sys.prefix, sys.base_prefix) if not self.options.python else ():
            real = os.path.realpath(p)
            if real not in found and real != "/usr" and not real.startswith("/usr/"):
                found.append(real)
        return found

    # ---- reading the record ----

    def ended(self, status: int, stderr: str) -> End:
        if status < 0:      # it printed no result, so the last output is the skill's
            return self._killed(status)
        said = _last_object(stderr)
        end = str(said.get("end", ""))
        why = _reasons(stderr, said, status)
        if why:
            return End(status, "not started", "refused",
                       not_started=f"the sandbox was not started: {why}")
        code = said.get("exit_status")
        code = code if isinstance(code, int) else status
        words = {"timeout": "the time of the worker was over", "memory": "out of memory",
                 "session": "ended by its session"}.get(end) or \
            (f"ended by signal {said['signal']}" if said.get("signal")
             else f"ended with status {code}")
        return End(code, words, end, str(said.get("run_id", "")), str(said.get("trace", "")))

    def _killed(self, status: int) -> End:
        run_id = self.run_id()
        trace = str(state_dir() / "runs" / run_id / RECORD) if run_id else ""
        return End(status, f"the sandbox was ended by signal {-status}", "", run_id, trace)

    def denied(self, error: SkillError, since: float) -> SkillError:
        for wait in WRITTEN_AFTER if type(error) is SkillError else ():
            time.sleep(wait)
            run_id = self.run_id()
            found = self._why(run_id, since, error.message) if run_id else []
            if found:
                found.sort(key=lambda d: _about(d) not in error.message)
                return SkillDenied(error.type, error.message, error.traceback, found, run_id)
        return error

    def run_id(self) -> str:
        """Returns the id of the run of the current worker; "" if its record is not found."""
        if not self._run_id:
            self._run_id = self._find_run()
        return self._run_id

    def _find_run(self) -> str:
        runs = state_dir() / "runs"
        try:
            recent = sorted(os.scandir(runs), key=lambda e: e.stat().st_mtime, reverse=True)
        except OSError:
            return ""
        for entry in recent[:RECENT]:
            try:
                with open(os.path.join(entry.path, RECORD), "rb") as f:
                    if self._tag.encode() in f.readline(FIRST_LINE) + f.readline(FIRST_LINE):
                        return entry.name
            except OSError:
                continue
        return ""

    def _why(self, run_id: str, since: float, message: str) -> List[Dict[str, Any]]:
        try:
            done = subprocess.run([self.options.binary, "why", "--json", run_id], check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
            said = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return []   # the caller gets the skill's own error
        # A repeated denial is recorded only at the end of the run, so its time may be too early: a
        # denial whose path or host is in the message counts, too. What most programs try and work
        # without explains an error only if the message names it.
        return [d for d in said if isinstance(d, dict) and
                (_about(d) in message or (d.get("host") and _is_lookup(message)) or
                 (_seconds(d.get("first")) >= since and not d.get("everyday")))]


class PlannedWorker(ProcessWorker):
    """Runs the worker program that is built into the sandbox."""

    def target(self) -> List[str]:
        return [str(self.skill.path), "--serve"]

    def reads(self) -> List[str]:
        return self.prefixes()

    def grants(self) -> List[str]:
        """The plan runs python3. The directory of python() is put first into PATH, so that this Python
        is found."""
        directory = os.path.dirname(self.python())
        if directory in ("", *SYSTEM_PATH.split(":")):
            return super().grants()
        return [*super().grants(), "--env", f"PATH={directory}:{SYSTEM_PATH}"]


def not_consented(plan: Mapping[str, Any]) -> str:
    """Returns why a skill with this plan must not run without `skillsandbox run`; "" if it may."""
    consent: Mapping[str, Any] = plan.get("consent") or {}
    state = consent.get("state")
    if state == "none":
        return "" if consent["refuse_unapproved"] is False else \
            "the skill is not approved, and the policy file refuses skills without an approval"
    if state in ("changed", "over"):
        return {"changed": "the skill changed since it was approved",
                "over": "the approval of the skill is over"}[state] + \
            "; approve it again: skillsandbox approve DIR"
    if state != "holds":
        return "this skillsandbox does not tell whether the skill was approved"
    if consent["counted"] is not False:
        return "the approval is for so many runs, which only tier 'process' counts"
    if plan["approved"]["snapshot"] is not True:
        return "the skill is too large for a copy of what was approved, and only tier " \
            "'process' looks at its files again"
    return ""


def state_dir() -> Path:
    """Returns the state directory of the owner, with the records."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local/state") / "skillsandbox"


def _reasons(stderr: str, said: Mapping[str, Any], status: int) -> str:
    """Returns why nothing of the skill was run; "" if it was run. If the sandbox refuses the skill,
    it prints JSON with its reasons as the last line. For a wrong option it prints only one
    line of text. A skill can end with the same status, but then the sandbox prints JSON after the
    skill's output."""
    lines = stderr.strip().split("\n")
    if "error" in said:
        found = [str(line) for line in said.get("messages", []) if ": error: " in str(line)]
        return "; ".join([_words(said["error"]), *found[:MOST_REASONS]])
    own = "skillsandbox: "
    wrong = not said and status == USAGE and lines[-1].startswith(own)
    return lines[-1][len(own):] if wrong else ""


def _last_object(text: str) -> Dict[str, Any]:
    """Returns the last JSON object: the sandbox prints it after all output of the skill."""
    for line in reversed(text.strip().split("\n")):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else {}
    return {}


def _is_lookup(message: str) -> bool:
    """True if the message says that a name was not found. It does not say which name."""
    return any(text in message for text in NOT_FOUND)


def _about(denial: Dict[str, Any]) -> str:
    """Returns the path or host of a denial."""
    return str(denial.get("path") or denial.get("host") or "\0")


def _words(error: Any) -> str:
    if isinstance(error, dict):
        return str(error.get("message") or error.get("text") or error)
    return str(error)


def _seconds(when: Optional[str]) -> float:
    try:
        return datetime.fromisoformat(str(when).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return float("inf")     # an unknown time counts as recent
