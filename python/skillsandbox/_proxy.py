"""The host's replacements for a skill's module, class and instances. They contain names and the
connection to a worker, but no code of the skill."""
from __future__ import annotations

import asyncio
import collections.abc
import os
import types
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Type

from ._errors import (SkillwareParamValidationError, SkillWithheld, as_list, check_seconds,
                      shown)
from ._files import Files, Path
from ._skill import Skill
from .tiers import Worker

MakeWorker = Callable[[Skill, Mapping[str, Any], Optional[str]], Worker]


class SkillProxy:
    """An instance of a skill in its own worker, which ends together with this object.

    Threads may share it: their calls run one after the other. After SkillTimeout or
    SkillCrashed, the worker and the state of the skill are lost; the next call starts a new
    worker."""

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
        """Returns the result of the skill's execute(). Copies of the files in `read` and `write`
        are passed with the call. If a parameter is the name of one of them, the skill gets the
        path of the copy instead."""
        return self._call("execute", params, read, write, timeout)

    async def aexecute(self, params: Optional[Mapping[str, Any]] = None, *,
                       read: Iterable[Path] = (), write: Iterable[Path] = (),
                       timeout: Optional[float] = None) -> Any:
        """The same with aexecute(). If the task is cancelled, the worker is ended."""
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
        with Files(as_list("read", read), as_list("write", write), self.worker.judge) as files:
            return self.worker.call(name, sent, files if files else None,
                                    check_seconds("timeout", timeout))

    @property
    def manifest(self) -> Any:
        return self.worker.call("manifest")

    def validate_params(self, params: Mapping[str, Any]) -> Any:
        """Raises SkillwareParamValidationError if the parameters do not match the manifest."""
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
        """Warns about variables that the skill requests and that are set here, but which it did not
        get: neither this application nor an approval of the owner grants them."""
        names = [n for n in self._skill.env_names if n in os.environ and n not in self.config
                 and n not in self.worker.delivered]
        if names:
            warnings.warn(f"skill '{shown(self._skill.registry_id)}' asks for "
                          f"{', '.join(names)}; grant it with SkillLoader(env={names!r}), in "
                          f"its config, or with 'skillsandbox approve {self._skill.path}'",
                          SkillWithheld, stacklevel=3)


def _json_ready(value: Any) -> Any:
    """Returns the parameters with paths as texts, so that they can be sent as JSON."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, dict):
        return {k: _json_ready(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_ready(v) for v in value]
    return value


def proxy_class(skill: Skill, make: MakeWorker, name: Optional[str]) -> Type[SkillProxy]:
    """Makes the class that stands for the skill's class `name`. None: the worker chooses the
    class."""
    shown = name or (skill.classes[0] if skill.classes else "Skill")
    return type(shown, (SkillProxy,), {"_skill": skill, "_make": staticmethod(make),
                                       "_class_name": name, "__module__": "skill_module"})


class ModuleProxy(types.ModuleType):
    """A module with the names of the classes in skill.py, but without their code."""

    def __init__(self, skill: Skill, make: MakeWorker) -> None:
        super().__init__("skill_module", "A skill's module; its code runs in a worker.")
        self.__file__ = str(skill.path / "skill.py")
        for name in skill.classes:
            setattr(self, name, proxy_class(skill, make, name))
