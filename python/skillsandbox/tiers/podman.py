"""Converts a plan to a command line of podman, with the files, variables and limits of the plan,
and without network. A plan with something that podman cannot express is refused."""
from __future__ import annotations

import os
import shutil
from typing import Any, Dict, List, Mapping, Sequence

from .._errors import SkillNotStarted

NOBODY = 65534
MOST_PROCESSES = 32768


def find() -> str:
    found = shutil.which("podman")
    if found is None:
        raise SkillNotStarted("engine 'podman' is not installed; install the package podman, or "
                              "leave engine out: rootfs= and image= need no engine")
    return found


def _refuse(plan: Mapping[str, Any]) -> None:
    if plan["granted"]["network"]:
        hosts = ", ".join(str(rule["domain"]) for rule in plan["granted"]["network"])
        raise SkillNotStarted("podman cannot hold a skill to the names and ports that it may "
                              f"connect to, and the plan has some ({hosts}); leave engine out: "
                              "rootfs= and image= need none")
    for f in plan["granted"]["files"]:
        if any(c in f["path"] + f["target"] for c in ":,"):
            raise SkillNotStarted(f"podman has no way to mount a path with ':' or ',': {f['path']}")
        if f["create"]:
            raise SkillNotStarted(f"podman mounts only what exists: {f['path']}")


def _files(plan: Mapping[str, Any]) -> List[str]:
    flags: List[str] = []
    for f in plan["granted"]["files"]:
        mode = "rw" if f["access"] == "write" else "ro"
        flags += ["--volume", f"{f['path']}:{f['target']}:{mode},nosuid,nodev"]
    disk = plan["limits"]["max_disk_mb"]
    # These places belong to root, but the container runs as another user: hence mode 1777.
    for place in ("/tmp", "/var/tmp", plan["home"]):
        flags += ["--tmpfs", f"{place}:rw,nosuid,nodev,size={disk}m,mode=1777"]
    return flags


def _limits(limits: Mapping[str, int]) -> List[str]:
    return ["--memory", f"{limits['memory_mb']}m", "--memory-swap", f"{limits['memory_mb']}m",
            "--pids-limit", str(limits["max_processes"]),
            "--cpu-shares", str(limits["cpu_shares"]),
            "--timeout", str(limits["max_runtime_seconds"]),
            "--ulimit", f"nofile={limits['max_open_files']}:{limits['max_open_files']}",
            # --pids-limit limits the processes. nproc is set, too, because podman's default for it
            # is higher than some hosts allow.
            "--ulimit", f"nproc={MOST_PROCESSES}:{MOST_PROCESSES}",
            "--ulimit", "core=0:0"]


def _image(files: Sequence[str]) -> List[str]:
    """Returns --rootfs or the image; it must come after all options."""
    kind, value = files
    if kind == "--rootfs":
        return ["--rootfs", os.path.abspath(value)]
    head, colon, ref = value.rpartition(":")
    directory, ref = (head, ref) if colon and not os.path.isdir(value) else (value, "")
    return [f"oci:{os.path.abspath(directory)}" + (f":{ref}" if ref else "")]


def arguments(podman: str, plan: Mapping[str, Any], files: Sequence[str],
              uid: int) -> List[str]:
    """Returns the command line for a plan (`skillsandbox inspect --json`). `files` is --rootfs DIR
    or --image DIR[:REF]; `uid` is the user that runs podman. The command line has the
    names of the caller's variables, but not their values."""
    _refuse(plan)
    # If root starts podman, the container would run as root, so it runs as the user nobody.
    who = "--userns=keep-id" if uid != 0 else f"--user={NOBODY}:{NOBODY}"
    own: Dict[str, str] = {"HOME": plan["home"], "TMPDIR": "/tmp"}
    flags = [podman, "run", "--rm", "--interactive", "--pull=never", "--read-only",
             "--network=none", "--cap-drop=all", "--security-opt=no-new-privileges",
             who, "--ipc=private", "--pid=private", "--uts=private",
             "--log-driver=none", "--entrypoint=", "--workdir", plan["workdir"]]
    for name in plan["granted"]["env"]:
        if name not in ("PATH", "LANG"):
            flags += ["--env", f"{name}={own[name]}" if name in own else name]
    flags += _files(plan) + _limits(plan["limits"]) + _image(files)
    return [*flags, *plan["argv"]]
