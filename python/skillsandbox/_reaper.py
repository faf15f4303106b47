"""Ends the workers of a host that was killed.

Most end by themselves when their standard input does; not one that a skill keeps busy. So
one small process for each host knows their pids, and when the pipe to it closes, which no
end of the host can avoid, it ends those that are left.
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
        # The collector of garbage may end a worker in the middle of either of these.
        self._lock = threading.RLock()
        self._pipe: Optional[IO[bytes]] = None
        self._owner = 0

    def add(self, pid: int) -> None:
        """Of a process that was just started."""
        with self._lock:
            if self._owner != os.getpid():  # also after a fork: each has its own
                self._begin()
            self._say(f"+ {pid}\n")

    def remove(self, pid: int) -> None:
        """Of one that has ended, before anything else can be called by its number."""
        with self._lock:
            if self._owner == os.getpid():
                self._say(f"- {pid}\n")

    def _begin(self) -> None:
        process = subprocess.Popen(["/bin/sh", "-c", SCRIPT], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True, bufsize=0, cwd="/")
        self._pipe = cast(IO[bytes], process.stdin)
        self._owner = os.getpid()
        process.returncode = 0  # nobody waits for it: it lives as long as we do

    def _say(self, line: str) -> None:
        try:
            assert self._pipe is not None
            self._pipe.write(line.encode("ascii"))
        except OSError:
            pass    # somebody ended it; workers have their own end of time


REAPER = Reaper()
