"""Reads the directory of a skill. Nothing in it is executed."""
from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from . import _yaml
from ._errors import SkillManifestError, SkillNotFound

MAX_TEXT = 256 * 1024       # most bytes of a file that is read here
MAX_PARENTS = 6
MAX_HASHED = 20000
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
# Finds classes in skill.py without a Python parser, because the text is hostile: a class is a line
# that begins with "class".
CLASS = re.compile(r"^class[ \t]+([A-Za-z_][A-Za-z0-9_]*)[ \t]*(\([^)\n]*\))?", re.MULTILINE)

PathOrId = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Skill:
    path: Path                      # real and absolute
    manifest: Dict[str, Any]
    instructions: str
    card: Dict[str, Any]
    registry_id: str
    classes: Tuple[str, ...]        # the classes in skill.py, the most likely one first

    @property
    def env_names(self) -> List[str]:
        """Returns the names of the variables that the manifest requests."""
        names = self.manifest.get("env_vars")
        return [n for n in names if isinstance(n, str) and ENV_NAME.match(n)] \
            if isinstance(names, (dict, list)) else []

    def digest(self) -> str:
        """Returns a SHA-256 of the names and contents of all files."""
        total = hashlib.sha256()
        for n, path in enumerate(sorted(self.path.rglob("*"))):
            if n >= MAX_HASHED:
                raise SkillManifestError(f"{self.path}: more than {MAX_HASHED} files")
            if path.is_file() and not path.is_symlink():
                total.update(os.fsencode(path.relative_to(self.path)) + b"\0")
                total.update(hashlib.sha256(path.read_bytes()).digest())
        return total.hexdigest()


def roots() -> Iterator[Path]:
    """Yields the directories in which ids are looked up, in order."""
    for root in os.environ.get("SKILLWARE_SKILL_PATH", "").split(os.pathsep):
        if root:
            yield Path(root).expanduser()
    here = Path.cwd()
    for parent in (here, *list(here.parents)[:MAX_PARENTS]):
        yield parent / "skills"


def resolve(path_or_id: PathOrId) -> Tuple[Path, Optional[str]]:
    """Returns the directory, and the id if it was found by an id."""
    text = os.fspath(path_or_id)
    direct = Path(text).expanduser()
    if direct.is_dir():
        return direct.resolve(), None
    parts = Path(text).parts
    if parts and not direct.is_absolute() and ".." not in parts:
        for root in roots():
            if (root / text).is_dir():
                return (root / text).resolve(), text
    raise SkillNotFound(f"no skill '{text}': it is neither a directory, nor beneath "
                        "SKILLWARE_SKILL_PATH or a directory 'skills' here or above")


def _open(directory: Path, name: str) -> int:
    """Opens a regular file inside the skill. A symlink to such a file is accepted. The file is
    opened with O_PATH and checked before it is opened to read."""
    top = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        held = os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=top)
        try:
            if not stat.S_ISREG(os.fstat(held).st_mode):
                raise SkillManifestError(f"{directory / name}: not a regular file")
            inside = os.path.join(os.readlink(f"/proc/self/fd/{top}"), "")
            if not os.readlink(f"/proc/self/fd/{held}").startswith(inside):
                raise SkillManifestError(f"{directory / name}: leads out of the skill")
            return os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(held)
    finally:
        os.close(top)


def _text(directory: Path, name: str) -> Optional[str]:
    """Returns the text of the file; None if the file does not exist."""
    try:
        fd = _open(directory, name)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise SkillManifestError(f"{directory / name}: {e.strerror}") from None
    with open(fd, "rb") as f:
        data = f.read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise SkillManifestError(f"{directory / name}: more than {MAX_TEXT} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SkillManifestError(f"{directory / name}: not UTF-8") from None


def _object(value: Any, path: Path) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise SkillManifestError(f"{path}: is not a map")
    return value


def _card(directory: Path) -> Dict[str, Any]:
    text = _text(directory, "card.json")
    try:
        return _object(json.loads(text), directory / "card.json") if text else {}
    except (ValueError, RecursionError) as e:
        raise SkillManifestError(f"{directory / 'card.json'}: {e}") from None


def _classes(text: str) -> Tuple[str, ...]:
    found = [(m.group(1), m.group(2) or "") for m in CLASS.finditer(text)]
    found.sort(key=lambda c: "BaseSkill" not in c[1])
    return tuple(name for name, _ in found)


def read(path_or_id: PathOrId) -> Skill:
    """Reads the files that describe the skill. Nothing is executed."""
    directory, found_by = resolve(path_or_id)
    text, code = _text(directory, "manifest.yaml"), _text(directory, "skill.py")
    if text is None or code is None:
        missing = "manifest.yaml" if text is None else "skill.py"
        raise SkillNotFound(f"{directory}: no {missing}; is it a Skillware skill?")
    try:
        manifest = _object(_yaml.load(text), directory / "manifest.yaml")
    except _yaml.YamlError as e:
        raise SkillManifestError(f"{directory / 'manifest.yaml'}:{e}") from None
    return Skill(directory, manifest, _text(directory, "instructions.md") or "", _card(directory),
                 found_by or _name(manifest, directory), _classes(code))


def _name(manifest: Mapping[str, Any], directory: Path) -> str:
    name = manifest.get("name")
    return name if isinstance(name, str) and name else f"{directory.parent.name}/{directory.name}"
