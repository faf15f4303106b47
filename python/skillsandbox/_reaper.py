"""Ends the workers of a host process that was killed.

Most workers end when their standard input is closed, but not while the skill is busy. So each
host has one small process that knows the pids of its workers. When the host ends, in whatever
way, the pipe to the small process is closed, and it ends the workers that are left.
"""
from __future__ import annotations

import os
import subprocess
import threading
from typing import IO, Optional, cast

SCRIPT = """all=' '
while read -r op pid; do
    case $op in
    +) all="$all$pid " ;;
    -) all="${all%% $pid *} ${all#* $pid }" ;;
    esac
done
for pid in $all; do kill -TERM "$pid"; kill -INT "$pid"; done 2>/dev/null"""


class Reaper:
    def __init__(self) -> None:
        # Reentrant: during add() or remove(), a garbage collection may end a worker, which calls
        # remove() again.
        self._lock = threading.RLock()
        self._pipe: Optional[IO[bytes]] = None
        self._owner = 0

    def add(self, pid: int) -> None:
        """Call this after starting a process."""
        with self._lock:
            # this is also so after a fork: each process needs its own reaper
            if self._owner != os.getpid():
                self._begin()
            self._say(f"+ {pid}\n")

    def remove(self, pid: int) -> None:
        """Call this when a process has ended, before its pid can be used again."""
        with self._lock:
            if self._owner == os.getpid():
                self._say(f"- {pid}\n")

    def _begin(self) -> None:
        process = subprocess.Popen(["/bin/sh", "-c", SCRIPT], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True, bufsize=0, cwd="/")
        self._pipe = cast(IO[bytes], process.stdin)
        self._owner = os.getpid()
        process.returncode = 0  # nothing waits for it: it runs as long as this process

    def _say(self, line: str) -> None:
        try:
            assert self._pipe is not None
            self._pipe.write(line.encode("ascii"))
        except OSError:
            pass    # the reaper was killed; workers still have their own time limit


REAPER = Reaper()
