"""The sandbox of this machine with the files of an image instead of the host's: a skill gets the
Python and the libraries that it was made for. The plan, the approval and the approved files are
those that `skillsandbox run DIR` would use. With engine="podman", podman runs the plan instead of
the sandbox, and nothing is recorded."""
from __future__ import annotations

import os
from typing import ClassVar, List, Sequence

from .._errors import SkillError, SkillNotStarted
from . import podman
from .base import End, Launch, Worker
from .process import WORKER, PlannedWorker

PYTHON = "python3"      # found in the image's PATH
WORKER_INSIDE = "/run/skillsandbox/worker.py"   # the same path as in plans
ENGINES = ("", "podman")


class ContainerWorker(PlannedWorker):
    """options.more: rootfs (a directory) or image (DIR[:REF], an OCI image layout), and engine.
    options.python is a path in the image."""

    tier: ClassVar[str] = "container"
    extra: ClassVar[Sequence[str]] = ("image", "rootfs", "engine")

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
        python = self.options.python or PYTHON
        if os.path.basename(python) != PYTHON:
            raise SkillNotStarted(f"the sandbox was not started: python= has to be a {PYTHON} in "
                                  f"the image, which is what a plan runs, and not {python}")
        return python

    def prefixes(self) -> List[str]:
        return []       # the host's Python must not be shown in the image

    def files(self) -> List[str]:
        given = [(f"--{k}", os.fspath(self.options.more[k])) for k in ("rootfs", "image")
                 if self.options.more.get(k)]
        if len(given) != 1:
            raise SkillNotStarted("tier 'container' needs rootfs= (a directory) or image= "
                                  "(DIR[:REF] of an OCI image layout), one of them")
        return list(given[0])

    def grants(self) -> List[str]:
        return [*super().grants(), *self.files()]

    # ---- podman ----

    def _podman(self) -> Launch:
        found = podman.find()
        if self.options.session:
            raise SkillNotStarted("podman knows nothing of sessions")
        plan = self.plan()
        plan["granted"]["files"].append({"path": WORKER, "target": WORKER_INSIDE,
                                         "access": "read", "create": False})
        return Launch(podman.arguments(found, plan, self.files(), os.geteuid()), dict(os.environ))

    def denied(self, error: SkillError, since: float) -> SkillError:
        return error if self.engine == "podman" else super().denied(error, since)

    def ended(self, status: int, stderr: str) -> End:
        if self.engine == "podman":
            return Worker.ended(self, status, stderr)
        return super().ended(status, stderr)
