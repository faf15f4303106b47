"""No sandbox: the skill can do everything that its caller can. This tier is never the default,
always prints a warning, and always writes a log entry. The skill still runs in its own process,
so it cannot damage the interpreter of the host."""
from __future__ import annotations

import getpass
import json
import os
import sys
import time
import warnings
from typing import ClassVar

from .._errors import SkillNotStarted, TrustWarning
from .._stderr import visible
from .base import Launch, Worker
from .process import WORKER, state_dir

LOG = "trusted.jsonl"


class TrustWorker(Worker):
    tier: ClassVar[str] = "trust"

    def launch(self) -> Launch:
        if not self.options.trust and os.environ.get("SKILLWARE_TRUST_EXTERNAL") != "1":
            raise SkillNotStarted(
                "tier 'trust' runs the skill without a sandbox: say trust_remote_code=True, or "
                "set SKILLWARE_TRUST_EXTERNAL=1, if that is what you want")
        digest = self.skill.digest()
        text = (f"skill '{visible(self.skill.registry_id)}' runs WITHOUT A SANDBOX: it can read, "
                f"change and send all that you can (sha256:{digest})")
        print(f"skillsandbox: warning: {text}", file=sys.stderr, flush=True)
        # The warning must be shown every time, whatever filters the application has set.
        with warnings.catch_warnings():
            warnings.simplefilter("always", TrustWarning)
            warnings.warn(text, TrustWarning, stacklevel=2)
        self._write_down(digest)
        return Launch([self.options.python or sys.executable, "-B", WORKER, "--serve",
                       str(self.skill.path)], dict(os.environ))

    def _write_down(self, digest: str) -> None:
        """Writes the log entry. If that fails, the skill is not run."""
        line = json.dumps({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                           "by": _who(), "pid": os.getpid(), "tier": self.tier,
                           "skill": str(self.skill.path), "registry_id": self.skill.registry_id,
                           "digest": f"sha256:{digest}"}) + "\n"
        directory = state_dir()
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(directory / LOG,
                         os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC,
                         0o600)
            with open(fd, "ab", buffering=0) as f:
                f.write(line.encode("utf-8"))
                os.fsync(f.fileno())
        except OSError as e:
            raise SkillNotStarted(f"cannot write down that the skill is trusted: {e}") from e


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
