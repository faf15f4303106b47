"""The exceptions of this package. Errors to which a caller may react differently have different
exceptions."""
from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence

from ._stderr import visible


MAX_SHOWN = 2000    # maximum characters of a skill's text in a message


def shown(text: str) -> str:
    """Cuts the text and escapes it to one line that is safe for terminals and logs."""
    text = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + " ..."
    return visible(text)


class SkillSandboxError(Exception):
    """The base of all exceptions that this package raises itself."""


class SkillNotFound(SkillSandboxError, FileNotFoundError):
    """There is no skill with this path or id."""


class SkillManifestError(SkillSandboxError, ValueError):
    """A file of the skill is not valid. Nothing of the skill was run."""


class SkillError(SkillSandboxError):
    """The skill raised an exception. The exception object stays in the sandbox; this object has the
    name of its type, its message and its traceback as text. str() returns them cut and escaped."""

    def __init__(self, type_: str, message: str, traceback: str = "",
                 system: bool = False) -> None:
        super().__init__(shown(f"{type_}: {message}" if message else type_))
        self.type = type_
        self.message = message
        self.traceback = traceback
        self.system = system    # True if the cause is an OSError: a system call failed


class SkillwareParamValidationError(SkillError, ValueError):
    """The parameters do not match the skill's manifest."""


class SkillDenied(SkillError):
    """The skill raised an exception in a call in which the sandbox denied something. `denials`
    lists what was denied, as `skillsandbox why` does."""

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
    """A call took too long. Its worker was ended; the next call starts a new one."""


class SkillCrashed(SkillSandboxError):
    """The worker did not answer a call: it ended, or violated the protocol."""

    def __init__(self, message: str, *, exit_status: Optional[int] = None, end: str = "",
                 run_id: str = "", trace: str = "", stderr: str = "") -> None:
        super().__init__(shown(message))
        self.exit_status = exit_status
        # how the run ended, as the sandbox reports it: exited, signal, memory, ...
        self.end = end
        self.run_id = run_id
        self.trace = trace      # path of the record of the run
        self.stderr = stderr    # the end of the worker's standard error


class SkillNotStarted(SkillCrashed):
    """The sandbox could not be built, or was not allowed. Nothing of the skill was run."""


class SkillWithheld(UserWarning):
    """The skill requests a variable that is not granted to it."""


class TrustWarning(UserWarning):
    """A skill runs without a sandbox."""


class SessionError(SkillSandboxError):
    """The session did not answer, so nothing was allowed."""


class SessionRefused(SessionError):
    """The policy of the session refuses the action."""

    def __init__(self, decision: Mapping[str, Any]) -> None:
        super().__init__(str(decision.get("reason", "refused")))
        self.decision = dict(decision)
        self.code = str(decision.get("code", ""))
        self.state = str(decision.get("state", ""))


class SessionKilled(SessionRefused):
    """The session has ended and cannot continue."""
