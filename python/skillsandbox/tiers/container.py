"""The sandbox of this machine with the files of an image in the place of the host's: a
skill gets the Python and the libraries that it was made for. With engine="podman" the
plan is handed to podman instead, and nothing is recorded."""
from __future__ import annotations

import json
import os
import subprocess
from typing import Any, ClassVar, Dict, List

from .._errors import SkillError, SkillNotStarted
from . import podman
from .base import End, Launch, Worker
from .process import ProcessWorker

PYTHON = "python3"      # the image's, by its PATH
ENGINES = ("", "podman")


class ContainerWorker(ProcessWorker):
    """options.more: rootfs (a directory) or image (DIR[:REF], an OCI image layout), and
    engine. options.python is a path in the image."""

    tier: ClassVar[str] = "container"

    def launch(self) -> Launch:
        if self.engine == "podman":
            return self._podman()
        return super().launch()

    @property
    def engine(self) -> str:
        engine = str(self.options.more.get("engine") or "")
        if engine not in ENGINES:
            raise SkillNotStarted(f"no engine '{engine}' for containers; there is: podman")
        return engine

    def python(self) -> str:
        return self.options.python or PYTHON

    def prefixes(self) -> List[str]:
        return []       # the host's Python has no business in an image

    def files(self) -> List[str]:
        given = [(f"--{k}", os.fspath(self.options.more[k])) for k in ("rootfs", "image")
                 if self.options.more.get(k)]
        if len(given) != 1:
            raise SkillNotStarted("tier 'container' needs rootfs= (a directory) or image= "
                                  "(DIR[:REF] of an OCI image layout), one of them")
        return list(given[0])

    def command(self) -> List[str]:
        return [*super().command(), *self.files()]

    # ---- podman ----

    def _podman(self) -> Launch:
        found = podman.find()
        plan = self._plan()
        return Launch(podman.arguments(found, plan, self.files(), os.geteuid()), dict(os.environ))

    def _plan(self) -> Dict[str, Any]:
        """What the same grants come to, decided by the same rules."""
        command = [w for w in self.command() if w not in ("--no-tty", "--quiet")]
        command[1] = "inspect"
        if "--session" in command:
            raise SkillNotStarted("podman knows nothing of sessions")
        done = subprocess.run([*command, *self.target()], check=False, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=600)
        try:
            plan = json.loads(done.stdout)
        except ValueError:
            raise SkillNotStarted("the plan cannot be made: "
                                  + done.stderr.decode("utf-8", "replace")[-2000:]) from None
        if plan["denied"]:
            raise SkillNotStarted("not granted: "
                                  + "; ".join(str(d["what"]) for d in plan["denied"]))
        found: Dict[str, Any] = plan
        return found

    def denied(self, error: SkillError, since: float) -> SkillError:
        return error if self.engine == "podman" else super().denied(error, since)

    def ended(self, status: int, stderr: str) -> End:
        if self.engine == "podman":
            return Worker.ended(self, status, stderr)
        return super().ended(status, stderr)
