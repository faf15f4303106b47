"""SkillLoader: the interface of Skillware's loader, but no skill runs in this process."""
from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import sysconfig
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Protocol, Union

from . import _skill, adapters
from ._errors import SkillNotStarted, as_list, check_seconds, shown
from ._proxy import ModuleProxy, proxy_class
from ._skill import PathOrId, Skill
from .tiers import Options, Worker, worker_class

# Tiers with their own Python, in which installed packages cannot be checked from here.
OTHER_PYTHON = ("container", "wasm")
Bundle = Dict[str, Any]

# Packages that are imported by another name than that of the package.
IMPORTED_AS = {"pymupdf": "fitz", "beautifulsoup4": "bs4", "pyyaml": "yaml", "pillow": "PIL",
               "google-genai": "google.genai", "opencv-python": "cv2",
               "scikit-learn": "sklearn", "python-dotenv": "dotenv"}


class LoadSkill(Protocol):
    def __call__(self, path_or_id: PathOrId, check_requirements: bool = True,
                 execute_module: bool = True) -> Bundle: ...


class _OfClassOrInstance:
    """Lets load_skill() be called on an object and on the class. SkillLoader.load_skill() uses a
    new loader without grants."""

    def __init__(self, function: Callable[..., Bundle]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, it: Optional["SkillLoader"], owner: Callable[[], "SkillLoader"]) \
            -> LoadSkill:
        loader = it if it is not None else owner()

        def load_skill(path_or_id: PathOrId, check_requirements: bool = True,
                       execute_module: bool = True) -> Bundle:
            return self._function(loader, path_or_id, check_requirements, execute_module)
        load_skill.__doc__ = self.__doc__
        return load_skill


def find_binary() -> str:
    """Returns the path of the program: SKILLSANDBOX_BINARY, or the one that was installed with this
    package, or skillsandbox from the PATH."""
    installed = os.path.join(sysconfig.get_path("scripts"), "skillsandbox")
    found = os.environ.get("SKILLSANDBOX_BINARY") or shutil.which(installed) or \
        shutil.which("skillsandbox")
    if not found:
        raise SkillNotStarted("the program skillsandbox was not found: install the wheel that "
                              "contains it, or put it on the PATH, or name it with "
                              "SKILLSANDBOX_BINARY")
    return found


class SkillLoader:
    """Loads skills. Grants of a loader are given to all skills that it loads.

    tier       process (default), container, wasm, or trust: see skillsandbox.tiers
    env        names of variables that a skill gets if it requests them (True: all that
               it requests); a skill also gets the variables in its instance's config
    net        hosts, as HOST or HOST:PORT
    read/write paths that the skill gets in every call
    timeout    time limit of a call, in seconds"""

    def __init__(self, tier: str = "process", *, env: Union[Iterable[str], bool] = (),
                 net: Iterable[str] = (), allow_private: Iterable[str] = (),
                 read: Iterable[PathOrId] = (), write: Iterable[PathOrId] = (),
                 timeout: Optional[float] = 300.0, memory: str = "1G", disk: str = "512M",
                 lifetime: str = "24h", session: str = "", policy: Optional[str] = None,
                 python: str = "", binary: Optional[str] = None, trust_remote_code: bool = False,
                 **more: Any) -> None:
        self.tier = tier
        self._worker = worker_class(tier)
        for name in more:
            if name not in self._worker.extra:
                raise TypeError(f"tier '{tier}' has no option {shown(name)!r}")
        self._all_env = env is True
        self._binary = binary
        self._options: Dict[str, Any] = {
            "python": python, "read": [os.fspath(p) for p in as_list("read", read)],
            "write": [os.fspath(p) for p in as_list("write", write)],
            "net": as_list("net", net), "allow_private": as_list("allow_private", allow_private),
            "env": [] if isinstance(env, bool) else as_list("env", env), "memory": memory,
            "disk": disk, "lifetime": lifetime, "timeout": check_seconds("timeout", timeout),
            "session": session, "policy": policy,
            "trust": trust_remote_code, "more": more}

    def _make(self, skill: Skill, config: Mapping[str, Any], name: Optional[str]) -> Worker:
        options = dict(self._options)
        if self._all_env:
            options["env"] = skill.env_names
        binary = "" if self.tier == "trust" else self._binary or find_binary()
        return self._worker(skill, Options(binary=binary, **options), config, name)

    def _load(self, path_or_id: PathOrId, check_requirements: bool = True,
              execute_module: bool = True) -> Bundle:
        """Returns the bundle of a skill. The skill is found by its path, or by its id below
        SKILLWARE_SKILL_PATH or a directory `skills` here or above. Its code does not run now, but
        in a worker when the bundle's class is called. Raises SkillNotFound, SkillManifestError,
        or ImportError if a requirement is not installed."""
        skill = _skill.read(path_or_id)
        if check_requirements and not self._options["python"] and self.tier not in OTHER_PYTHON:
            self.check_requirements(skill.manifest)
        return {"module": ModuleProxy(skill, self._make) if execute_module else None,
                "class": proxy_class(skill, self._make, None) if execute_module else None,
                "manifest": skill.manifest, "instructions": skill.instructions,
                "card": skill.card, "registry_id": skill.registry_id}

    load_skill = _OfClassOrInstance(_load)

    @staticmethod
    def check_requirements(manifest: Mapping[str, Any]) -> None:
        """Raises ImportError if a requirement is not installed for this interpreter."""
        wanted = manifest.get("requirements")
        missing: List[str] = []
        for spec in wanted if isinstance(wanted, list) else []:
            match = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", str(spec))
            if match and not _importable(match.group(1)):
                missing.append(str(spec))
        if missing:
            raise ImportError(f"the skill requires {shown(', '.join(missing))}; install with: "
                              f"{sys.executable} -m pip install ...")

    to_gemini_tool = staticmethod(adapters.to_gemini_tool)
    to_claude_tool = staticmethod(adapters.to_claude_tool)
    to_openai_tool = staticmethod(adapters.to_openai_tool)
    to_deepseek_tool = staticmethod(adapters.to_deepseek_tool)
    to_ollama_prompt = staticmethod(adapters.to_ollama_prompt)


def _importable(package: str) -> bool:
    """Looks for the package without importing anything. find_spec() of a dotted name would import
    its parents, so only the first part of the name is looked up."""
    name = IMPORTED_AS.get(package.lower(), package.replace("-", "_"))
    top = name.split(".")[0]
    if not top.isidentifier():
        return True     # the name cannot be looked up, so it is not reported as missing
    for candidate in (top, top.lower()):
        try:
            if importlib.util.find_spec(candidate) is not None:
                return True
        except (ImportError, ValueError):
            continue
    return False
