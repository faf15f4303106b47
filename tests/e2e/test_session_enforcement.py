"""A session enforces its policy: a block refuses actions, every run is counted, a kill works
whatever the text of its reason is, and a policy file that other users can write is refused."""
import pytest

from harness import wait_for
from session_cli import Sessions


@pytest.fixture
def local(ssb):
    return Sessions(ssb)


BLOCKS = {
    "threshold": {"violations": {"thresholds": {"bad": {"count": 2, "on_threshold": "block"}}}},
    "kill switch off": {"violations": {"thresholds": {"bad": 2}},
                        "kill_switch": {"enabled": False}},
}


@pytest.mark.parametrize("name", BLOCKS)
def test_block_by_a_violation_holds(local, ssb, name):
    sid = local.start(**BLOCKS[name])
    local.decide("violation", sid, "--type", "bad")
    local.decide("check", sid, "--cost", "0.01")  # allowed: one violation, threshold two
    assert ssb.ssb("run", "-q", "--session", sid, "--", "echo", "ran").ok().text == "ran\n"
    local.decide("violation", sid, "--type", "bad", code=1)
    d = local.decide("check", sid, "--cost", "0.01", code=1)
    assert d["code"] == "threshold" and "bad" in d["reason"] and d["state"] == "active"
    r = ssb.ssb("run", "-q", "--session", sid, "--", "echo", "ran")
    assert r.code == 125 and r.text == "" and "bad" in r.errors


def test_block_by_what_a_run_tried_holds(local, ssb):
    sid = local.start(limits={"violations": {"file_blocked": {"max": 1, "on_exceed": "block"}}})
    def look(seconds):
        script = f"cat /etc/shadow 2>/dev/null; sleep {seconds}"
        return ssb.ssb("run", "-q", "--session", sid, "--", "sh", "-c", script)
    look(0)
    wait_for(lambda: local.show(sid)["runs"] == [])  # now this run's violations are counted
    assert ssb.ssb("run", "-q", "--session", sid, "--", "true").code == 0
    assert look(50).code == 125, "ended by the second"
    r = ssb.ssb("run", "-q", "--session", sid, "--", "true")
    assert r.code == 125 and "file_blocked" in r.errors
    local.decide("check", sid, "--cost", "0.01", code=1)


@pytest.mark.parametrize("flag", [["--audit", "off"], ["--best-effort", "audit"]])
def test_a_session_sees_what_its_runs_try(local, ssb, flag):
    sid = local.start()
    r = ssb.ssb("run", "-q", "--session", sid, *flag, "--", "echo", "ran")
    assert r.code == 125 and r.text == "" and flag[0] in r.errors
    assert ssb.ssb("run", "-q", *flag, "--", "echo", "ran").ok().text == "ran\n"
    assert local.show(sid)["state"] == "active"


@pytest.mark.parametrize("reason", ["x" * 300, "two\nlines", "a\x1b[31mred"],
                         ids=["long", "lines", "steering"])
def test_no_reason_stops_a_kill(local, reason):
    sid = local.start()
    local("kill", sid, "--reason", reason).ok()
    s = local.show(sid)
    assert s["state"] == "killed" and 0 < len(s["kill_reason"].encode()) < 256
    assert s["kill_reason"].isprintable()


def test_a_policy_that_others_can_write_is_none(local, ssb):
    path = local.policy()
    local("start", "--policy", path).ok()
    path.chmod(0o666)
    r = local("start", "--policy", path)
    assert r.code == 125 and "others can write" in r.errors


def test_help_for_a_group(local):
    for words in (["--help"], ["-h"]):
        r = local(*words).ok()
        assert "session kill" in r.text and "audit" not in r.text
    assert local.ssb.ssb("help", "session").ok().text == r.text
