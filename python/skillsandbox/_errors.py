"""What can go wrong, by what a caller would do about it."""
from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence

from ._stderr import visible


MAX_SHOWN = 2000    # characters of what a skill says, in a message


def shown(text: str) -> str:
    """In one line that a terminal and a log can take, and no longer than that."""
    text = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + " ..."
    return visible(text)


class SkillSandboxError(Exception):
    """All that this package raises on its own account."""


class SkillNotFound(SkillSandboxError, FileNotFoundError):
    """No skill of that path or id."""


class SkillManifestError(SkillSandboxError, ValueError):
    """A file of the skill is not understood; nothing of it was run."""


class SkillError(SkillSandboxError):
    """The skill raised an exception. Its own object stayed in the sandbox: here are
    its type's name, its message, and the text of its traceback, as it says them. What is
    printed of it, str(), is cut and made visible."""

    def __init__(self, type_: str, message: str, traceback: str = "",
                 system: bool = False) -> None:
        super().__init__(shown(f"{type_}: {message}" if message else type_))
        self.type = type_
        self.message = message
        self.traceback = traceback
        self.system = system    # the operating system refused it something


class SkillwareParamValidationError(SkillError, ValueError):
    """The parameters are not what the skill's manifest asks for."""


class SkillDenied(SkillError):
    """The skill raised an exception in a call in which the sandbox denied it something.
    `denials` says what, as `skillsandbox why` does."""

    def __init__(self, type_: str, message: str, traceback: str,
                 denials: Sequence[Mapping[str, Any]], run_id: str) -> None:
        super().__init__(type_, message, traceback, True)
        self.denials: List[Mapping[str, Any]] = list(denials)
        self.run_id = run_id

    def __str__(self) -> str:
        what = shown("; ".join(str(d.get("what", "")) for d in self.denials[:5]))
        return f"{super().__str__()} (denied by the sandbox: {what}; see skillsandbox why " \
               f"{self.run_id})"


class SkillTimeout(SkillSandboxError, TimeoutError):
    """A call took too long. Its worker is gone; the next call starts a new one."""


class SkillCrashed(SkillSandboxError):
    """The worker ended, or spoke what is not the protocol, instead of answering."""

    def __init__(self, message: str, *, exit_status: Optional[int] = None, end: str = "",
                 run_id: str = "", trace: str = "", stderr: str = "") -> None:
        super().__init__(shown(message))
        self.exit_status = exit_status
        self.end = end          # how the sandbox says it ended: exited, signal, memory, ...
        self.run_id = run_id
        self.trace = trace      # where the record of the run is
        self.stderr = stderr    # the last of what it said


class SkillNotStarted(SkillCrashed):
    """The sandbox was not built, or not granted; nothing of the skill was run."""


class SkillWithheld(UserWarning):
    """The skill asks for a variable that is not granted to it."""


class TrustWarning(UserWarning):
    """A skill runs without a sandbox."""


class SessionError(SkillSandboxError):
    """The session could not be asked: nothing was allowed."""


class SessionRefused(SessionError):
    """The session's policy says no."""

    def __init__(self, decision: Mapping[str, Any]) -> None:
        super().__init__(str(decision.get("reason", "refused")))
        self.decision = dict(decision)
        self.code = str(decision.get("code", ""))
        self.state = str(decision.get("state", ""))


class SessionKilled(SessionRefused):
    """The session is over, for ever."""
