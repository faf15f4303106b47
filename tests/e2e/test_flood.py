"""A flood of harmless events does not hide violations."""
import hashlib
import json
import os

import pytest

from net_fixtures import GRANT, net, outside, rule

ECHO = rule("api.example.test", 7001)

# Two floods: more lines, or more bytes, than a record can have.
FLOODS = {
    "lines": "names = (f'/tmp/absent/{i}' for i in range(200000))",
    "bytes": "names = (f'/tmp/{i}/' + '/'.join(['\\1' * 250] * 12) for i in range(4500))",
}

AFTER = """
import subprocess
for name in names:
    try:
        os.open(name, os.O_RDONLY)
    except FileNotFoundError:
        pass
s = socket.create_connection(('api.example.test', 7001), 20)
s.sendall(b'x' * 127)
got = 0
while got < 127:
    got += len(s.recv(200))
s.close()
open(sys.argv[1] + '/changed', 'w').write('x')
subprocess.run(['/usr/bin/printf', 'executed'], check=True)
show(got)
"""


def record_of(ssb):
    path = ssb.state / "skillsandbox/runs" / ssb.last_trace()["run_id"] / "trace.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return path, lines, [e.get("data", {}) for e in lines]


@pytest.mark.parametrize("flood", FLOODS)
def test_what_follows_a_flood_is_on_record(net, flood):
    ssb = net.runner
    grant = ssb.mkdir("grant")
    code = "import os, sys\n" + FLOODS[flood] + AFTER
    skill = net.skill(code.replace("sys.argv[1]", repr(str(grant))), [ECHO], write=[grant],
                      resources={"max_runtime_seconds": 600})
    net.world.reset()
    r = ssb.run(*GRANT, skill, timeout=600).ok()
    assert r.out.decode().endswith("127\n") and (grant / "changed").exists(), "all of it happened"

    path, lines, data = record_of(ssb)
    document = ssb.last_trace()
    for where, events in (("record", list(zip(lines, data))),
                          ("document", [(e, e.get("data", {})) for e in document["events"]])):
        def told(kind, **members):
            return [d for e, d in events if e["kind"] == kind
                    and all(d.get(k) == v for k, v in members.items())]

        ends = [d for d in told("network_egress_allowed", name="api.example.test") if "state" in d]
        assert [d["state"] for d in ends] == ["open", "closed"], (where, ends)
        assert told("file_write", path=f"{grant}/changed"), where
        assert told("process_spawned", path="/usr/bin/printf"), where
        [total] = told("network_egress_total")
        assert (total["name"], total["port"], total["address_dialled"], total["connections"],
                total["bytes_out"], total["bytes_in"]) == (
                    "api.example.test", 7001, "127.0.0.1", 1, 127, ends[1]["bytes_in"]), where
    dropped = lines[-2]["counters"]
    assert dropped["dropped"] == sum(dropped.get("dropped_by", {}).values())
    assert set(dropped.get("dropped_by", {})) <= {"other"}, dropped

    absent = [line for line in path.read_bytes().splitlines(True) if b'"absent"' in line]
    assert absent and max(map(len, absent)) <= 4096
    used = sum(os.path.getsize(path.parent / name) for name in os.listdir(path.parent))
    assert used <= (128 + 33) << 20

    shown = ssb.ssb("audit", "show", "last").ok().text
    assert "1 x  connect to api.example.test port 7001 (tcp), 127 B out, " in shown, shown
    if dropped["dropped"] > 0:
        n = dropped["dropped"]
        lost = f"{n} events were not recorded, because there were too many: {n} other"
        assert f"\ndropped  {lost}\n" in shown, shown
    assert f"create {grant}/changed" in shown and "printf executed" in shown
    assert ": complete: " in ssb.ssb("audit", "verify", "last").ok().text


def test_a_cut_name_keeps_its_length_and_digest(ssb):
    name = "/tmp/" + "/".join(["\1" * 250] * 12)
    ssb.inside(f"""
        import os
        try:
            os.open({name!r}, os.O_RDONLY)
        except FileNotFoundError:
            print('absent')
    """).ok()
    _, _, data = record_of(ssb)
    [cut] = [d for d in data if d.get("path", "").startswith("/tmp/\1")]
    assert cut["cut"] and cut["status"] == "absent" and cut["path"].endswith("\u2026")
    assert cut["path_bytes"] == len(name)
    assert cut["path_digest"] == "sha256:" + hashlib.sha256(name.encode()).hexdigest()
