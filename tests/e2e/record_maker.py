"""Makes records of runs as skillsandbox-trace(5) describes them, without any code of the
product: hashlib chains them, the cryptography package signs them."""
import copy
import fcntl
import hashlib
import json
import os
import re
import uuid

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

SEED = bytes(range(32))
TIME = "2026-11-15T13:20:{:02d}.{:06d}Z"


def keypair(seed=SEED):
    key = ed25519.Ed25519PrivateKey.from_private_bytes(seed)
    public = key.public_key().public_bytes(serialization.Encoding.Raw,
                                           serialization.PublicFormat.Raw)
    return key, public.hex()


def body(seq, kind, members, time=None):
    head = {"seq": seq, "time": time or TIME.format(seq // 1000 % 60, seq % 1000 * 1000),
            "mono": seq * 1000, "kind": kind}
    text = json.dumps({**head, **members}, separators=(",", ":"), ensure_ascii=False)
    return text[:-1].encode("utf-8", "surrogatepass")


def chain(bodies, start=bytes(32)):
    """Returns the lines of these bodies (a body is a line without its hash), and the last hash."""
    lines, head = [], start
    for b in bodies:
        head = hashlib.sha256(head + b).digest()
        lines.append(b + b',"hash":"' + head.hex().encode() + b'"}\n')
    return lines, head


def ascii_body(seq, kind, members):
    """Like body(), but escapes every character beyond ASCII, so `members` may contain lone
    surrogates."""
    head = {"seq": seq, "time": TIME.format(0, seq), "mono": seq, "kind": kind}
    return json.dumps({**head, **members}, separators=(",", ":"))[:-1].encode()


def run_members(run_id, **more):
    return {"schema": 1, "run_id": run_id, "skill_name": "weather", "skill_version": "1.0.0",
            "manifest": "/srv/weather/skillsandbox.yaml", "manifest_digest": "sha256:" + "ab" * 32,
            "plan_digest": "sha256:" + "cd" * 32, "plan": {"grants": []}, "kernel": "6.18.0",
            "host": "x86_64", "user": 1000, "audit": "full", "version": "0.1.0", **more}


def attempt(op, status, path=None, violation=False, message=None, **data):
    members = {"message": message or f"{op} {path}"}
    if violation:
        members["violation"] = True
    members["data"] = {"op": op, "status": status, "pid": 2, "ppid": 1,
                       "program": "/usr/bin/python3", **({"path": path} if path else {}), **data}
    return members


EVENTS = [
    ("layers", {"layers": {"landlock": {"state": "on", "detail": "ABI 7"},
                           "seccomp": {"state": "on", "detail": ""}}}),
    ("skill_started", {"message": "weather 1.0.0"}),
    ("process_spawned", attempt("exec", "fact", "/usr/bin/python3",
                                args=["python3", "main.py", "Berlin"])),
    ("file_read", attempt("open", "asked", "/usr/lib/python3/os.py", mode="read", rule="system")),
    ("file_read", attempt("open", "asked", "/usr/lib/python3/re.py", mode="read", rule="system")),
    ("file_read", attempt("open", "absent", "/usr/lib/python3/os.pyc", mode="read")),
    ("file_blocked", attempt("open", "denied", "/home/u/.ssh/id_ed25519", True, mode="read",
                             reason="credential_store", error="ENOENT",
                             remedy="--read /home/u/.ssh/id_ed25519")),
    ("file_write", attempt("open", "asked", "/tmp/cache", mode="write+create", rule="private")),
    ("network_egress_allowed", {"message": "tls api.example.com:443 ok", "data": {
        "name": "api.example.com", "protocol": "tls", "port": 443, "reason": "ok",
        "rule": "api.example.com", "rule_line": 7, "bytes_out": 517, "bytes_in": 4096}}),
    ("network_egress_blocked", attempt("connect", "denied", None, True, "connect 203.0.113.9:80",
                                       address="203.0.113.9", port=80, protocol="tcp",
                                       reason="undeclared_address", error="ENETUNREACH",
                                       remedy="--net HOST:80")),
    ("file_blocked", {"message": "repeated", "violation": True, "data": {
        "repeat_of": 7, "count": 41, "first": TIME.format(1, 0), "last": TIME.format(2, 0)}}),
    ("stdout", {"message": "Berlin: 11 degrees"}),
    ("resource_limit_hit", {"message": "max_output_bytes: stdout was cut"}),
    ("files", {"files_digest": "sha256:" + "ef" * 32, "count": 2, "bytes": 900, "cached": 0,
               "files": [["main.py", "11" * 32], ["skillsandbox.yaml", "22" * 32]]}),
]

END = {"exit_code": 0, "end": "exited", "signal": 0, "duration_us": 123456,
       "counters": {"events": 13, "violations": 43, "dropped": 0, "repeats": 41, "unreadable": 0,
                    "stdout_bytes": 19, "stderr_bytes": 0},
       "summary": {"total_enforcements": 43, "all_prevented": True, "classes": ["credential_access"],
                   "max_severity": "critical", "classifications": [
                       {"class": "credential_access", "severity": "critical", "count": 42,
                        "mitre_tactic": "credential-access", "prevented": True, "evidence": [7]}]}}


class Record:
    """A record: its bodies, which a test may change, and the functions that put it together."""

    def __init__(self, run_id=None, events=EVENTS, end=END, seed=SEED, **run):
        self.id = run_id or str(uuid.uuid4())
        self.seed = seed
        self.kinds = [("run", run_members(self.id, **run))] + copy.deepcopy(list(events))
        if end is not None:
            self.kinds.append(("end", copy.deepcopy(end)))
        self.signed = end is not None

    def bodies(self, started=None):
        return [body(i, kind, members, started if i == 0 else None)
                for i, (kind, members) in enumerate(self.kinds)]

    def lines(self, started=None):
        lines, _ = chain(self.bodies(started))
        return lines + ([sign(len(lines), lines[-1], self.seed)] if self.signed else [])

    def text(self, started=None):
        return b"".join(self.lines(started))


def sign(seq, end, seed=SEED):
    """Returns the signature line for the line `end`, with the time of that line."""
    key, public = keypair(seed)
    end_hash = bytes.fromhex(end[-67:-3].decode())
    time, mono = re.match(rb'\{"seq":\d+,"time":"([^"]*)","mono":(\d+)', end).groups()
    head = {"seq": seq, "time": time.decode(), "mono": int(mono), "kind": "signature"}
    text = json.dumps({**head, "key": public, "signature": key.sign(end_hash).hex()},
                      separators=(",", ":"))
    return chain([text[:-1].encode()], end_hash)[0][0]


class State:
    """The state directory of a caller, filled with records."""

    def __init__(self, runner, seed=SEED):
        self.runner = runner
        self.dir = runner.state / "skillsandbox"
        runner.write(self.dir / "trace.pub", keypair(seed)[1] + "\n", 0o600)

    def put(self, record, flat=False, mtime=None, text=None, lock=lambda new: None):
        name = f"{record.id}.trace.jsonl" if flat else f"{record.id}/trace.jsonl"
        path = self.dir / "runs" / name
        # A watcher must see the record complete and owned by the caller, so it is renamed last.
        new = self.runner.write(f"{path}.new", record.text() if text is None else text, 0o600)
        lock(new)
        new.rename(path)
        if mtime is not None:
            os.utime(path, (mtime, mtime))
        return path


class Live:
    """Keeps a record locked, as its supervisor does, and appends line after line."""

    def __init__(self, state, record, flat=False):
        self.lines = record.lines()
        self.path = state.put(record, flat, text=b"", lock=self.lock)

    def lock(self, path):
        """Locks the record before a watcher can see it. If the record were not locked, the watcher
        would assume that its run has ended."""
        self.file = open(path, "ab", buffering=0)
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def write(self, n=1):
        for _ in range(n):
            self.file.write(self.lines.pop(0))

    def close(self):
        self.file.close()
