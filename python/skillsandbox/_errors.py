"""The exceptions of this package. Errors to which a caller may react differently have different
exceptions."""
from __future__ import annotations

import os
import re
import shlex
from typing import Any, Iterable, List, Mapping, Optional, Sequence

from ._stderr import visible


MAX_SHOWN = 2000    # maximum characters of a skill's text in a message

# Flags of the program -> the argument of SkillLoader that does the same.
LISTS = {"--read": "read", "--write": "write", "--net": "net", "--env": "env",
         "--allow-private": "allow_private"}
# A remedy can end with a change of the manifest that would do the same.
MANIFEST = re.compile(r", or the \w+ under permissions\.\S+ in the manifest$")
VALUES = {"--memory": "memory", "--max-disk": "disk"}


def shown(text: str) -> str:
    """Cuts the text and escapes it to one line that is safe for terminals and logs."""
    text = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + " ..."
    return visible(text)


def as_list(name: str, value: Iterable[Any]) -> List[Any]:
    """Returns the value of a list argument. A single text or path is refused, because
    Python would read it letter by letter: read="/data" would grant "/", the whole machine."""
    if isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} is a list: write {name}=[{value!r}]")
    return list(value)


def check_seconds(name: str, value: Optional[float]) -> Optional[float]:
    """Returns the value of an argument that is a number of seconds, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{name} must be a number of seconds or None, not {value!r}")
    return value


def loader_remedy(flags: str) -> str:
    """Returns the arguments of SkillLoader that do what these flags of the program do; "" if no
    argument does it."""
    try:
        words = shlex.split(MANIFEST.sub("", flags))
    except ValueError:
        return ""
    lists: "dict[str, List[str]]" = {}
    given: List[str] = []
    for flag, value in zip(words[::2], words[1::2]):
        if flag in LISTS:
            lists.setdefault(LISTS[flag], []).append(value)
        elif flag in VALUES:
            given.append(f"{VALUES[flag]}={value!r}")
        else:
            return ""
    if len(words) % 2 != 0:
        return ""
    return ", ".join([f"{name}={values!r}" for name, values in lists.items()] + given)


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
    lists what was denied, as `skillsandbox why --json` does. The other attributes are about the
    first of them:

    path, host  what was denied: one of the two is "" if the denial is about the other
    remedy      the arguments of SkillLoader that would allow it, such as net=['api.example.com'];
                "" if there are none"""

    def __init__(self, type_: str, message: str, traceback: str,
                 denials: Sequence[Mapping[str, Any]], run_id: str) -> None:
        super().__init__(type_, message, traceback, True)
        self.denials: List[Mapping[str, Any]] = list(denials)
        self.run_id = run_id
        first = self.denials[0] if self.denials else {}
        self.path = str(first.get("path", ""))
        self.host = str(first.get("host", ""))
        self.remedy = loader_remedy(str(first.get("remedy", "")))

    def __str__(self) -> str:
        what = shown("; ".join(str(d.get("what", "")) for d in self.denials[:5]))
        allow = f"to allow: SkillLoader({shown(self.remedy)}); " if self.remedy else ""
        return f"{super().__str__()} (denied by the sandbox: {what}; {allow}" \
               f"details: skillsandbox why {self.run_id})"


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
