"""Python in WebAssembly: Pyodide in Node, both in the sandbox of this machine, because Pyodide
alone confines nothing. The skill has the standard library and packages in pure Python, but no
network, no threads and no other programs. Pyodide is not downloaded: npm must have installed it
(`npm install pyodide`)."""
from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, ClassVar, Iterator, List, Optional, Sequence

from .._errors import SkillNotStarted, as_list
from .base import Launch
from .process import WORKER, ProcessWorker, state_dir

RUNNER = str(Path(__file__).resolve().parent / "wasm_runner.mjs")
PARTS = ("pyodide.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
NATIVE = (".so", ".pyd", ".dylib")
MOST_SNAPSHOT = "256M"
MAKE_SECONDS = 300
NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


class WasmWorker(ProcessWorker):
    """options.more: pyodide (the directory of the npm package; default: $SKILLSANDBOX_PYODIDE, or
    node_modules/pyodide here or above), node (default: the one in PATH), packages (directories
    with packages in pure Python)."""

    tier: ClassVar[str] = "wasm"
    extra: ClassVar[Sequence[str]] = ("pyodide", "node", "packages", "snapshot")
    _snapshot: Optional[str] = None
    _source: str                    # directory of the skill's files: its own, or the approved copy
    _granted: Optional[List[str]]   # variables that the plan grants

    def launch(self) -> Launch:
        if self.options.net:
            raise SkillNotStarted("tier 'wasm' has no network; use tier 'process' for this skill")
        self._check_requirements()
        self._source, self._granted = str(self.skill.path), None
        plan = self.plan()
        self._granted = plan["granted"]["env"]
        self._source = next(f["path"] for f in plan["granted"]["files"] if f["origin"] == "skill")
        self._snapshot = self.snapshot()
        return super().launch()

    def reads(self) -> List[str]:
        return [WORKER, self._source, *self.prefixes()]

    def granted_env(self) -> List[str]:
        """Returns the names of the variables that the plan gives: the application or an approval
        grants them."""
        if self._granted is None:
            return super().granted_env()
        return [n for n in self.skill.env_names
                if n in self._granted and n in os.environ and n not in self.config]

    def target(self) -> List[str]:
        return ["--", *self._runner(worker=WORKER, skill=self._source,
                                    packages=self.packages(), snapshot=self._snapshot)]

    def _runner(self, **told: Any) -> List[str]:
        return [self.node(), RUNNER, json.dumps({"pyodide": self.pyodide(), **told})]

    def prefixes(self) -> List[str]:
        """Returns the paths that this tier shows in addition."""
        snapshot = [os.path.dirname(self._snapshot)] if self._snapshot else []
        return [*self._own(), *self.packages(), *snapshot]

    def _own(self) -> List[str]:
        return [RUNNER, self.pyodide(), *self._node_home()]

    def node(self) -> str:
        found = shutil.which(str(self.options.more.get("node") or "node"))
        if found is None:
            raise SkillNotStarted("tier 'wasm' needs Node.js: install the package nodejs, or "
                                  "say node=PATH")
        return found

    def _node_home(self) -> List[str]:
        """Returns the directory of Node if it is not below /usr."""
        real = os.path.realpath(self.node())
        return [] if real.startswith("/usr/") else [os.path.dirname(os.path.dirname(real))]

    def pyodide(self) -> str:
        for place in self._places():
            if all((place / part).is_file() for part in PARTS):
                return str(place.resolve())
        raise SkillNotStarted("tier 'wasm' needs Pyodide, which is never downloaded by itself: "
                              "npm install pyodide, or say pyodide=DIR")

    def _places(self) -> Iterator[Path]:
        given = self.options.more.get("pyodide") or os.environ.get("SKILLSANDBOX_PYODIDE")
        if given:
            yield Path(given)
            return
        here = Path.cwd()
        for parent in (here, *here.parents):
            yield parent / "node_modules" / "pyodide"

    def packages(self) -> List[str]:
        return [os.path.realpath(p) for p in as_list("packages", self.options.more.get("packages") or ())]

    # ---- a fast start of Python ----

    def snapshot(self) -> Optional[str]:
        """Returns the path of a file with Python's memory after its start, which makes later starts
        fast. It is made once for each version of Pyodide. Returns None if it cannot be made. The
        file determines the code that runs, so it is in the runtime's own directory, which no
        skill may write."""
        if self.options.more.get("snapshot") is False:
            return None
        parts = [os.stat(os.path.join(self.pyodide(), p)) for p in PARTS]
        key = hashlib.sha256(repr([(p.st_ino, p.st_size, p.st_mtime_ns) for p in parts]).encode()
                             + Path(RUNNER).read_bytes()).hexdigest()[:32]
        path = state_dir() / "pyodide" / f"{key}.snapshot"
        try:
            if not path.is_file():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._make_snapshot(path)
        except (OSError, subprocess.SubprocessError):
            return None
        return str(path)

    def _make_snapshot(self, path: Path) -> None:
        """Makes the snapshot file. The program that makes it runs in the sandbox, and only its
        output leaves the sandbox."""
        argv = [self.options.binary, "run", "--quiet", "--no-tty", "--max-output", MOST_SNAPSHOT,
                "--memory", self.options.memory, "--timeout", str(MAKE_SECONDS)]
        for place in self._own():
            argv += ["--read", place]
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-") as new:
            subprocess.run([*argv, "--", *self._runner(make=True)], check=True, stdout=new,
                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           timeout=MAKE_SECONDS)
            new.flush()
            os.fsync(new.fileno())
            os.link(new.name, f"{new.name}.done")
        os.replace(f"{new.name}.done", path)

    # ---- requirements that cannot be met are reported before anything runs ----

    def _check_requirements(self) -> None:
        for native in self._native([str(self.skill.path)]):
            raise SkillNotStarted(f"the skill brings a native library ({native}), and tier "
                                  "'wasm' has none; use tier 'process' or 'container'")
        asked = self.skill.manifest.get("requirements")
        for word in asked if isinstance(asked, list) else []:
            self._check_requirement(str(word))

    def _check_requirement(self, word: str) -> None:
        m = NAME.match(word)
        name = m.group(1) if m else word
        where = self._installed(name)
        if not where:
            raise SkillNotStarted(
                f"the skill requires {name!r}, and tier 'wasm' has the standard library only; say "
                "packages=[DIR] where it is pure Python (pip install --target DIR), use tier "
                "'process' or 'container' where it is not")
        for native in self._native(where):
            raise SkillNotStarted(f"the skill requires {name!r}, which is native code ({native}): "
                                  "it cannot run in tier 'wasm'; use tier 'process' or "
                                  "'container'")

    def _installed(self, name: str) -> List[str]:
        plain = re.sub(r"[-_.]+", "_", name).lower()
        found = []
        for directory in self.packages():
            for entry in os.scandir(directory):
                stem = entry.name[:-3] if entry.name.endswith(".py") else entry.name
                if re.sub(r"[-_.]+", "_", stem.split("-")[0]).lower() == plain:
                    found.append(entry.path)
        return found

    @staticmethod
    def _native(tops: List[str]) -> Iterator[str]:
        for top in tops:
            for directory, _, names in os.walk(top):
                for name in names:
                    if name.endswith(NATIVE) or ".so." in name:
                        yield os.path.join(directory, name)
