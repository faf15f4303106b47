"""Approvals: what the owner grants to one skill for good, and what does not count."""
import json
import os
import pty

import pytest

from harness import SECRET

CODE = "print(open('/HOME/.ssh/id_ed25519').read())"


@pytest.fixture
def asks(ssb):
    """A skill that wants the owner's keys, and reads them where it may."""
    return ssb.skill(CODE.replace("/HOME", str(ssb.home)), read=["~/.ssh"])


def test_refused_until_approved(ssb, asks):
    assert ssb.run(asks).code == 125
    r = ssb.ssb("approve", "--yes", asks)
    assert r.code == 0 and "~/.ssh" in r.errors, r.errors
    assert SECRET in ssb.run(asks).ok().text
    rows = json.loads(ssb.ssb("approvals", "--json").ok().text)
    assert [(x["skill"], x["option"], x["value"], x["by"]) for x in rows] == [
        (str(asks), "read", "~/.ssh", "command line")]
    assert ssb.ssb("approve", "--revoke", asks).code == 0
    r = ssb.run(asks)
    assert r.code == 125 and SECRET not in r.text


def test_another_manifest_is_another_skill(ssb, asks):
    assert ssb.ssb("approve", "--yes", asks).code == 0
    assert SECRET in ssb.run(asks).ok().text
    with open(asks / "skillsandbox.yaml", "a", encoding="utf-8") as f:
        f.write("# one more byte\n")
    r = ssb.run(asks)
    assert r.code == 125 and SECRET not in r.text


def test_another_directory_is_another_skill(ssb, asks):
    assert ssb.ssb("approve", "--yes", asks).code == 0
    other = ssb.skill(CODE.replace("/HOME", str(ssb.home)), read=["~/.ssh"])
    assert (other / "skillsandbox.yaml").read_bytes() == (asks / "skillsandbox.yaml").read_bytes()
    r = ssb.run(other)
    assert r.code == 125 and SECRET not in r.text


def test_without_a_terminal_nobody_is_asked(ssb, asks):
    r = ssb.ssb("approve", asks)
    assert r.code == 1 and "--yes" in r.errors, r.errors
    assert ssb.run(asks).code == 125


@pytest.mark.parametrize("answer,code", [(b"yes\n", 0), (b"y\n", 1), (b"\n", 1), (b"no\n", 1)])
def test_on_a_terminal(ssb, asks, answer, code):
    ours, theirs = pty.openpty()
    p = ssb.popen([ssb.binary, "approve", asks], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while b"Type yes" not in seen:
        seen += os.read(ours, 4096)
    os.write(ours, answer)
    assert p.wait(timeout=20) == code
    os.close(ours)
    assert b".ssh" in seen
    assert ssb.run(asks).code == (0 if code == 0 else 125)


def test_what_is_never_granted_cannot_be_approved(ssb):
    d = ssb.skill("print('started')", read=["/proc"])
    r = ssb.ssb("approve", "--yes", d)
    assert r.code == 1 and "cannot be approved" in r.errors, r.errors
    assert ssb.run(d).code == 125


def test_what_the_policy_denies_cannot_be_approved(ssb):
    ssb.write(ssb.work / "data/x", "data")
    d = ssb.skill("print('started')", read=[ssb.work / "data"])
    assert ssb.run(d).code == 0
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", f"deny: {{read: [{ssb.work}/data]}}\n", 0o600)
    r = ssb.ssb("approve", "--yes", d)
    assert r.code == 1 and "cannot be approved" in r.errors, r.errors
    assert ssb.run(d).code == 125


def test_a_forged_file_grants_nothing(ssb, asks):
    assert ssb.ssb("approve", "--yes", asks).code == 0
    file = ssb.state / "skillsandbox/approvals.jsonl"
    os.chmod(file, 0o666)
    r = ssb.run(asks)
    assert r.code == 125 and SECRET not in r.text
    os.chmod(file, 0o600)
    assert SECRET in ssb.run(asks).ok().text
    file.write_text(file.read_text() + "{}\n")
    r = ssb.run(asks)
    assert r.code == 125 and "approvals" in r.errors, r.errors


def test_a_skill_cannot_reach_it(ssb, asks):
    assert ssb.ssb("approve", "--yes", asks).code == 0
    file = ssb.state / "skillsandbox/approvals.jsonl"
    assert "ssh" in file.read_text()
    code = f"""
    import os
    for name in ({str(file)!r},):
        try:
            print('LEAK', open(name).read())
        except OSError as e:
            print('denied', e.errno)
        try:
            open(name, 'a').write('x')
            print('WRITTEN')
        except OSError as e:
            print('denied', e.errno)
    """
    r = ssb.inside(code, flags=["--read", ssb.state.parent])
    assert "LEAK" not in r.text and "WRITTEN" not in r.text, r.text
