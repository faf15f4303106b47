"""Whether whatever was sent in a network namespace has been taken by somebody."""
import pathlib
import time

TABLES = ("tcp", "tcp6", "udp", "udp6")


def waiting():
    """Bytes, or connections where one listens, that nobody has taken yet."""
    lines = [line.split() for name in TABLES for line in
             pathlib.Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]]
    return sum(int(words[4].split(":")[1], 16) for words in lines)


def drained(seconds=10):
    """Until nothing waits: a server that had no processor for a while knows by then what
    arrived. Not for ever: there are tests in which nobody reads."""
    end = time.monotonic() + seconds
    while waiting() and time.monotonic() < end:
        time.sleep(0.02)
