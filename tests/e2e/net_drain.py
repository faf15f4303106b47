"""Waits until the servers of a network namespace have recorded everything that arrived there, so
that nothing is left in a queue of the kernel."""
import contextlib
import pathlib
import select
import time

TABLES = ("tcp", "tcp6", "udp", "udp6")


def waiting():
    """The number of bytes that no server has read yet, and of connections not accepted yet."""
    lines = [line.split() for name in TABLES for line in
             pathlib.Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]]
    return sum(int(words[4].split(":")[1], 16) for words in lines)


@contextlib.contextmanager
def drained(lock, seconds=10):
    """Waits until all queues are empty and no server is accepting a connection. On a busy machine,
    a server may be late. There is a time limit, because in some tests no server reads."""
    end = time.monotonic() + seconds
    while True:
        with lock:
            if not waiting() or time.monotonic() >= end:
                yield
                return
        time.sleep(0.02)


def taken(server, lock, note):
    """Accepts connections and yields (socket, result of `note`) for each. A connection is accepted
    and noted under the lock, so drained() never ends between these two steps."""
    while True:
        select.select([server], [], [])
        with lock:
            sock, _ = server.accept()
            record = note(sock)
        yield sock, record
