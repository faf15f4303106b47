"""Reads the record of a run by the rules of skillsandbox-trace(5), without code of the product."""
import contextlib
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TAIL = 76  # bytes in ',"hash":"', 64 digits, '"}' and a newline


def read_lines(path):
    """The complete lines of a file, and the rest after the last complete line."""
    *lines, rest = path.read_bytes().split(b"\n")
    return [line + b"\n" for line in lines], rest


def verify(lines):
    """Checks size, hash, number and clock of every line; returns the parsed lines."""
    last, parsed = bytes(32), []
    for number, line in enumerate(lines):
        assert len(line) <= 65536
        last = hashlib.sha256(last + line[:-TAIL]).digest()
        assert line[-TAIL:] == b',"hash":"' + last.hex().encode() + b'"}\n', f"bad at {number}"
        record = json.loads(line)
        assert record["seq"] == number
        assert number == 0 or record["mono"] >= parsed[-1]["mono"]
        parsed.append(record)
    assert parsed[0]["kind"] == "run"
    return parsed


def verify_end(records, key=None):
    """Checks the end line and its signature; `key` is the owner's public key in hexadecimal."""
    end, signature = records[-2:]
    assert end["kind"] == "end" and signature["kind"] == "signature"
    assert key is None or signature["key"] == key
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["key"])).verify(
        bytes.fromhex(signature["signature"]), bytes.fromhex(end["hash"]))
    return end


def paths(runner):
    """Every record in the caller's state directory, the oldest first. A record may be in runs/
    itself or in the directory of its run. runs/ is read first: a record that moves during this
    call is then found in its directory."""
    runs = runner.state / "skillsandbox/runs"
    found = {}
    for pattern in ("*.trace.jsonl", "*/trace.jsonl"):
        for path in runs.glob(pattern):
            with contextlib.suppress(FileNotFoundError):
                found[path.stat().st_ino] = path, path.stat().st_mtime_ns
    return [path for path, _ in sorted(found.values(), key=lambda f: f[1])]


def last(runner):
    """The lines of the newest record, verified with the owner's key, signature included."""
    lines, rest = read_lines(paths(runner)[-1])
    assert rest == b""
    records = verify(lines)
    key = (runner.state / "skillsandbox/trace.pub").read_text().strip()
    verify_end(records, key)
    return records
