"""What stands for a skill's module, class and instances in the host: names, and a pipe."""
from __future__ import annotations

import asyncio
import collections.abc
import os
import types
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Type

from ._errors import SkillwareParamValidationError, SkillWithheld, shown
from ._files import Files, Path
from ._skill import Skill
from .tiers import Worker

MakeWorker = Callable[[Skill, Mapping[str, Any], Optional[str]], Worker]


class SkillProxy:
    """An instance of a skill in a worker of its own, which lives as long as this does.

    For threads: calls take turns. A call that fails with SkillTimeout or SkillCrashed has
    lost the worker, and with it what the skill remembered; the next call starts anew."""

    _skill: Skill
    _make: MakeWorker
    _class_name: Optional[str]

    def __init__(self, config: Optional[Mapping[str, Any]] = None) -> None:
        self.config: Dict[str, Any] = dict(config or {})
        self.worker = type(self)._make(self._skill, self.config, self._class_name)
        self._finalizer = weakref.finalize(self, self.worker.close)
        try:
            self.worker.start()
        except BaseException:
            self._finalizer()
            raise
        self._warn_withheld()

    def execute(self, params: Optional[Mapping[str, Any]] = None, *, read: Iterable[Path] = (),
                write: Iterable[Path] = (), timeout: Optional[float] = None) -> Any:
        """What the skill's execute() returns. Files named in `read` and `write` go with
        the call: where a parameter is one of these names, the skill finds it there."""
        return self._call("execute", params, read, write, timeout)

    async def aexecute(self, params: Optional[Mapping[str, Any]] = None, *,
                       read: Iterable[Path] = (), write: Iterable[Path] = (),
                       timeout: Optional[float] = None) -> Any:
        """The same with aexecute(). A task that is cancelled ends the worker."""
        work: "asyncio.Future[Any]" = asyncio.get_running_loop().run_in_executor(
            None, lambda: self._call("aexecute", params, read, write, timeout))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            self.worker.kill()
            await asyncio.gather(work, return_exceptions=True)
            raise

    def _call(self, name: str, params: Optional[Mapping[str, Any]], read: Iterable[Path],
              write: Iterable[Path], timeout: Optional[float]) -> Any:
        if params is not None and not isinstance(params, collections.abc.Mapping):
            raise SkillwareParamValidationError("SkillwareParamValidationError",
                                                "the parameters are not an object")
        sent = _json_ready(dict(params or {}))
        with Files(read, write, self.worker.judge) as files:
            return self.worker.call(name, sent, files if files else None, timeout)

    @property
    def manifest(self) -> Any:
        return self.worker.call("manifest")

    def validate_params(self, params: Mapping[str, Any]) -> Any:
        """Raises SkillwareParamValidationError."""
        return self.worker.call("validate_params", _json_ready(dict(params)))

    def credential(self, key: str) -> Any:
        value = self.config.get(key)
        return value if value is not None else os.environ.get(key)

    def close(self) -> None:
        self._finalizer()

    def __enter__(self) -> "SkillProxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {shown(self._skill.registry_id)} in a worker " \
               f"({self.worker.tier})>"

    def _warn_withheld(self) -> None:
        """What it asks for, would find if it were not in a sandbox, and did not get: by
        our options, or because the owner approved it."""
        names = [n for n in self._skill.env_names if n in os.environ and n not in self.config
                 and n not in self.worker.delivered]
        if names:
            warnings.warn(f"skill '{shown(self._skill.registry_id)}' asks for "
                          f"{', '.join(names)}; grant it with SkillLoader(env={names!r}), in "
                          f"its config, or with 'skillsandbox approve {self._skill.path}'",
                          SkillWithheld, stacklevel=3)


def _json_ready(value: Any) -> Any:
    """Paths may stand in parameters."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, dict):
        return {k: _json_ready(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_ready(v) for v in value]
    return value


def proxy_class(skill: Skill, make: MakeWorker, name: Optional[str]) -> Type[SkillProxy]:
    """`name` None: the worker finds the class."""
    shown = name or (skill.classes[0] if skill.classes else "Skill")
    return type(shown, (SkillProxy,), {"_skill": skill, "_make": staticmethod(make),
                                       "_class_name": name, "__module__": "skill_module"})


class ModuleProxy(types.ModuleType):
    """Has the classes that begin in skill.py, and nothing of what they do."""

    def __init__(self, skill: Skill, make: MakeWorker) -> None:
        super().__init__("skill_module", "A skill's module; its code runs in a worker.")
        self.__file__ = str(skill.path / "skill.py")
        for name in skill.classes:
            setattr(self, name, proxy_class(skill, make, name))
