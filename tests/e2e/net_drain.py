"""Waits until everything that arrived in a network namespace is accounted for: it is in a queue
of the kernel, or the server that took it has recorded it."""
import contextlib
import pathlib
import select
import time

TABLES = ("tcp", "tcp6", "udp", "udp6")


def waiting():
    """Bytes, or connections where one listens, that nobody has taken yet."""
    lines = [line.split() for name in TABLES for line in
             pathlib.Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]]
    return sum(int(words[4].split(":")[1], 16) for words in lines)


@contextlib.contextmanager
def drained(lock, seconds=10):
    """Nothing waits, and nobody takes a connection meanwhile: a server that had no processor
    for a while knows by then what arrived. Not for ever: there are tests in which nobody
    reads."""
    end = time.monotonic() + seconds
    while True:
        with lock:
            if not waiting() or time.monotonic() >= end:
                yield
                return
        time.sleep(0.02)


def taken(server, lock, note):
    """Each connection, and what `note` makes of it before anybody can ask."""
    while True:
        select.select([server], [], [])
        with lock:
            sock, _ = server.accept()
            record = note(sock)
        yield sock, record
