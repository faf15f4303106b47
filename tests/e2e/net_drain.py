"""Waits until everything that arrived in a network namespace is accounted for: it is in a queue
of the kernel, or the server that took it has recorded it."""
import contextlib
import pathlib
import select
import time

TABLES = ("tcp", "tcp6", "udp", "udp6")


def waiting():
    """Bytes that no server has read yet; for a listener, connections that it has not accepted."""
    lines = [line.split() for name in TABLES for line in
             pathlib.Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]]
    return sum(int(words[4].split(":")[1], 16) for words in lines)


@contextlib.contextmanager
def drained(lock, seconds=10):
    """Waits until no queue holds anything and no server accepts a connection: then a server
    that had no processor for a while knows what arrived. There is a time limit, because
    in some tests no server reads."""
    end = time.monotonic() + seconds
    while True:
        with lock:
            if not waiting() or time.monotonic() >= end:
                yield
                return
        time.sleep(0.02)


def taken(server, lock, note):
    """Each accepted connection, with the result of `note`, before a test can ask for it."""
    while True:
        select.select([server], [], [])
        with lock:
            sock, _ = server.accept()
            record = note(sock)
        yield sock, record
