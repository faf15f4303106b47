"""trace.json: its form, what it contains and what it must not contain."""
import datetime
import json
import os
import stat

import pytest

KINDS = """skill_started skill_completed skill_failed dns_resolution network_policy_applied
network_policy_removed network_egress_allowed network_egress_blocked network_egress_total
file_read file_write file_blocked env_var_access syscall_filtered syscall_blocked process_spawned stdout stderr
exit_code policy_violation resource_limit_hit""".split()
LAYERS = ["userns", "net", "mounts", "env", "limits", "caps", "landlock", "seccomp",
          "audit"]


def trace_of(ssb, code, **kw):
    r = ssb.inside(code, **kw)
    return r, ssb.last_trace()


def test_shape(ssb):
    _, t = trace_of(ssb, "print('hello'); import sys; print('oops', file=sys.stderr); sys.exit(3)")
    for key in ("trace_id", "skill_name", "skill_version", "started_at", "completed_at", "events",
                "exit_code", "policy_violations"):
        assert key in t, key
    assert t["skill_name"] == "probe" and t["skill_version"] == "1.0.0" and t["exit_code"] == 3
    for stamp in (t["started_at"], t["completed_at"]):
        datetime.datetime.fromisoformat(stamp[:19] + "+00:00")
        assert stamp.endswith("Z") or stamp.endswith("+00:00")
    assert t["started_at"] <= t["completed_at"]
    for e in t["events"]:
        assert e["kind"] in KINDS and "message" in e and "timestamp" in e
    kinds = [e["kind"] for e in t["events"]]
    assert kinds[0] == "skill_started"
    assert "skill_failed" in kinds and "stdout" in kinds and "stderr" in kinds
    assert any("hello" in e["message"] for e in t["events"] if e["kind"] == "stdout")
    assert any("oops" in e["message"] for e in t["events"] if e["kind"] == "stderr")


def test_success_is_completed(ssb):
    _, t = trace_of(ssb, "pass")
    kinds = [e["kind"] for e in t["events"]]
    assert "skill_completed" in kinds and "skill_failed" not in kinds
    assert t["exit_code"] == 0


def test_plan_is_separate_from_events(ssb):
    _, t = trace_of(ssb, "pass", read=["/media"], allow=["SOME_NAME"])
    assert "plan" in t
    assert "/media" in json.dumps(t["plan"])
    assert "/media" not in json.dumps(t["events"])


def test_layers_are_reported(ssb):
    _, t = trace_of(ssb, "pass")
    text = json.dumps(t["layers"])
    for layer in LAYERS:
        assert layer in text, layer


def test_no_blocked_line_without_an_attempt(ssb):
    _, t = trace_of(ssb, "print('innocent')")
    blocked = [e for e in t["events"] if "blocked" in e["kind"] or e["kind"] == "policy_violation"]
    assert blocked == []
    assert t["policy_violations"] == []


def test_no_value_of_the_environment(ssb):
    _, t = trace_of(ssb, "pass", env={"MY_KEY": "value-of-my-key"}, allow=["MY_KEY"])
    assert "value-of-my-key" not in json.dumps(t)
    assert "MY_KEY" in json.dumps(t)


def test_output_cannot_forge_records(ssb):
    forged = '"}, {"kind": "policy_violation", "message": "forged'
    code = f"""
    import sys
    sys.stdout.buffer.write({forged!r}.encode() + b'\\xff\\xfe\\x00\\x1b[31m\\n')
    """
    _, t = trace_of(ssb, code)
    assert [e for e in t["events"] if e["kind"] == "policy_violation"] == []
    assert any("forged" in e["message"] for e in t["events"] if e["kind"] == "stdout")
    raw = next((ssb.state / "skillsandbox/runs").glob("*/trace.json")).read_bytes()
    assert b"\x1b" not in raw and b"\x00" not in raw
    raw.decode("ascii" if raw.isascii() else "utf-8")


def test_trace_is_private(ssb):
    trace_of(ssb, "pass")
    path = next((ssb.state / "skillsandbox/runs").glob("*/trace.json"))
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert path.stat().st_uid == ssb.uid


def test_trace_output(ssb):
    out = ssb.mkdir("traces") / "t.json"
    ssb.run("--trace-output", out, "--", "true").ok()
    assert json.loads(out.read_bytes())["exit_code"] == 0
    assert sorted(os.listdir(out.parent)) == ["t.json", "t.jsonl"], "no temporary file stays"


def test_trace_output_in_an_unwritable_place(user):
    """The remedy names the option that was given, not the variable of the state directory."""
    out = user.mkdir("closed")
    out.chmod(0o555)
    r = user.run("--trace-output", out / "t.json", "--", "echo", "ran")
    assert r.code == 125 and r.text == "", repr(r)
    assert "use --trace-output" in r.errors and "XDG_STATE_HOME" not in r.errors, repr(r)
    out.chmod(0o755)
    assert user.run("--trace-output", out / "t.json", "--", "echo", "ran").ok().text == "ran\n"


def test_trace_output_replaces_atomically(ssb):
    out = ssb.mkdir("traces") / "t.json"
    ssb.write(out, "old")
    inode = out.stat().st_ino
    ssb.run("--trace-output", out, "--", "true").ok()
    assert out.stat().st_ino != inode
    assert json.loads(out.read_bytes())["exit_code"] == 0


def test_trace_output_is_never_written_through_a_symlink(ssb):
    target = ssb.write(ssb.base / "precious", "precious")
    link = ssb.mkdir("traces") / "t.json"
    link.symlink_to(target)
    r = ssb.run("--trace-output", link, "--", "echo", "ran")
    assert target.read_text() == "precious"
    assert r.code in (125, 2) and b"ran" not in r.out
    assert "symlink" in r.errors


@pytest.mark.parametrize("place", ["no/such/dir/t.json", "directory"])
def test_bad_trace_output_stops_the_run(ssb, place):
    ssb.mkdir("directory")
    r = ssb.run("--trace-output", ssb.base / place, "--", "echo", "ran")
    assert r.code in (125, 2) and b"ran" not in r.out


def test_skill_cannot_reach_the_trace(ssb):
    out = ssb.mkdir("grant") / "t.json"
    code = f"""
    import os
    for n in os.listdir('{out.parent}'):
        try:
            with open('{out.parent}/' + n, 'r+') as f:
                f.write('for' + 'ged')
            print('touched', n)
        except OSError:
            pass
    """
    ssb.inside("print('x')")
    state = str(ssb.state)
    r = ssb.inside(f"import os; print(os.listdir({state!r}))")
    assert r.code != 0 or "skillsandbox" not in r.text
    # If the trace is written inside the skill's writable grant, the skill must not be able to forge
    # it.
    r = ssb.inside(code, write=[out.parent], flags=["--trace-output", out])
    assert r.code in (125, 2) or (b"forged" not in out.read_bytes() and "touched" not in r.text), \
        repr(r)


def test_every_run_has_its_own_trace(ssb):
    for _ in range(3):
        ssb.run("--", "true").ok()
    assert len(list((ssb.state / "skillsandbox/runs").glob("*/trace.json"))) == 3


def test_many_lines_are_bounded(ssb):
    _, t = trace_of(ssb, "for i in range(30000): print(i)")
    assert len(t["events"]) <= 10100


def test_exec_failure_is_traced(ssb):
    assert ssb.run("--", "no-such-program").code == 127
    assert "skill_failed" in [e["kind"] for e in ssb.last_trace()["events"]]
