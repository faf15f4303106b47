"""Approvals without a terminal: an approval grants permissions to one skill as long as its files
do not change. Approvals at a terminal are in test_consent_terminal.py."""
import concurrent.futures
import json
import os
import pathlib
import time

import pytest

import records
from harness import SECRET, manifest

CODE = "VERSION = 1\nprint(VERSION, open('/HOME/.ssh/id_ed25519').read())"
POLICY = ".config/skillsandbox/policy.yaml"


@pytest.fixture
def asks(ssb):
    """A skill that asks for the owner's keys, and prints them if it can read them."""
    return ssb.skill(CODE.replace("/HOME", str(ssb.home)), read=["~/.ssh"])


def approve(ssb, d, *flags):
    return ssb.ssb("approve", "--yes", *flags, d).ok()


def rows(ssb):
    return json.loads(ssb.ssb("approvals", "--json").ok().text)


def locks(ssb):
    return sorted((ssb.state / "skillsandbox/approvals").glob("*.json"))


def stops(ssb, d, *words):
    """Asserts that the run of the skill is refused, with these words in the message."""
    r = ssb.run(d)
    assert r.code == 125 and SECRET not in r.text, r
    for word in words:
        assert word in r.errors, r.errors
    return r


def test_refused_until_approved(ssb, asks):
    assert ssb.run(asks).code == 125
    r = ssb.ssb("approve", "--yes", asks, env={"USER": "somebody"})
    assert r.code == 0 and "~/.ssh" in r.errors, r.errors
    assert SECRET in ssb.run(asks).ok().text
    plan = ssb.last_trace()["plan"]
    (row,) = rows(ssb)
    assert (row["skill"], row["state"], row["by"]) == (str(asks), "holds", f"{ssb.name} by --yes")
    assert row["grants"] == [{"option": "read", "value": "~/.ssh"}] and row["uses"] is None
    # The digest of the files that ran, in the record, is the approved one.
    (files,) = [x for x in records.last(ssb) if x["kind"] == "files"]
    assert files["files_digest"] == row["tree"]
    # The trace has the approval that allowed the run; only the owner can read the approval's file.
    assert plan["approved"] == {"by": row["by"], "at": row["at"], "tree": row["tree"],
                                "snapshot": True}
    (lock,) = locks(ssb)
    assert lock.stat().st_mode & 0o777 == 0o600 and json.loads(lock.read_text())["skill"] == str(asks)
    assert ssb.ssb("approve", "--revoke", asks).code == 0
    stops(ssb, asks)
    assert rows(ssb) == []


def test_any_change_stops_it(ssb, asks):
    """If a byte, a mode, a file or a request of an approved skill changes, the skill does not run
    until it is approved again. The message shows the change."""
    def edit(name, old, new):
        text = (asks / name).read_text()
        assert old in text
        (asks / name).write_text(text.replace(old, new))
    changes = [
        (lambda: edit("main.py", "VERSION = 1", "VERSION = 2"), ["main.py: changed"]),
        (lambda: (asks / "main.py").chmod(0o755), ["mode 644 to 755", "can be executed"]),
        (lambda: ssb.write(asks / "extra.py", ""), ["extra.py: new"]),
        (lambda: (asks / "extra.py").unlink(), ["extra.py: removed"]),
        (lambda: edit("skillsandbox.yaml", "permissions:", "permissions:\n  network:\n    egress:\n"
                      "    - {domain: evil.example, ports: [443], protocol: tls}"),
         ["skillsandbox.yaml: changed", "connect to evil.example"]),
    ]
    approve(ssb, asks)
    for change, words in changes:
        assert SECRET in ssb.run(asks).ok().text
        change()
        stops(ssb, asks, *words, "changed since it was approved", f"skillsandbox diff {asks}",
              f"skillsandbox approve {asks}")
        assert [r["state"] for r in rows(ssb)] == ["changed"]
        approve(ssb, asks)
    assert ssb.run(asks).ok().text.startswith("2 ")
    # A copy of the skill in another directory is not approved.
    other = ssb.work / "copy"
    ssb.as_caller(["cp", "-a", str(asks), str(other)]).ok()
    stops(ssb, other)


def test_what_runs_is_what_was_approved(ssb):
    """A file of the skill changes while the skill runs. An approved skill still reads the old
    bytes. The control is a skill without an approval: it reads the new bytes."""
    code = """
        import sys, time
        print('ready', flush=True)
        sys.stdin.readline()
        print(open('/skill/data').read())
    """
    seen = {}
    for kind in ("approved", "plain"):
        d = ssb.skill(code, files={"data": "old bytes"})
        if kind == "approved":
            approve(ssb, d)
        p = ssb.popen([ssb.binary, "run", d], stdin=-1, stdout=-1, stderr=-1)
        assert p.stdout.readline() == b"ready\n"
        (d / "data").write_text("new bytes")
        out, err = p.communicate(b"\n", timeout=30)
        assert p.returncode == 0, err
        seen[kind] = out.decode().strip()
    assert seen == {"approved": "old bytes", "plain": "new bytes"}


def test_too_large_to_be_copied(ssb):
    """A skill that is too large for a snapshot runs from its own directory, and the approval says
    so. Its files are checked before and after the run; a file that was moved away and back during
    the run is a violation, too."""
    d = ssb.skill("import sys\nprint('ready', flush=True)\nsys.stdin.readline()")
    ssb.write(d / "big", "")
    with open(d / "big", "wb") as f:
        os.posix_fallocate(f.fileno(), 0, 65 << 20)
    assert "too large for a copy" in approve(ssb, d).errors
    (row,) = rows(ssb)
    assert row["snapshot"] is False
    ssb.ssb("run", d, stdin=b"\n").ok()
    assert ssb.last_trace()["plan"]["approved"]["snapshot"] is False
    assert not ssb.last_trace()["policy_violations"]
    for name in ("big", "more"):
        p = ssb.popen([ssb.binary, "run", d], stdin=-1, stdout=-1, stderr=-1)
        assert p.stdout.readline() == b"ready\n"
        if name == "big":
            os.rename(d / name, d / "away")
            os.rename(d / "away", d / name)
        else:
            ssb.write(d / name, "x")
        p.communicate(b"\n", timeout=60)
        (violation,) = ssb.last_trace()["policy_violations"]
        assert f"changed while it ran: '{name}' changed during" in violation["message"]
    stops(ssb, d, "more: new")


def test_so_many_runs(ssb, asks):
    approve(ssb, asks, "--once")
    assert ssb.ssb("run", "--dry-run", asks).code == 0  # a dry run does not use up the one run
    assert SECRET in ssb.run(asks).ok().text
    stops(ssb, asks, "has no runs left")
    assert [r["state"] for r in rows(ssb)] == ["used"]
    # Of eight runs that start at once, only one can use the approval.
    approve(ssb, asks, "--once")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = sorted(r.code for r in pool.map(ssb.run, [asks] * 8))
    assert codes == [0] + [125] * 7
    # An approval ends at its time.
    approve(ssb, asks, "--expires", "1s")
    time.sleep(1.1)
    stops(ssb, asks, "has expired")
    assert [r["state"] for r in rows(ssb)] == ["expired"]
    ssb.write(ssb.home / POLICY, "consent: {expires: 4w}\n", 0o600)
    approve(ssb, asks)
    assert SECRET in ssb.run(asks).ok().text and rows(ssb)[0]["expires"] > rows(ssb)[0]["at"]


def test_the_policy_for_unapproved_skills(ssb):
    ssb.write(ssb.work / "data/x", "data")
    d = ssb.skill("print('started')", read=[ssb.work / "data"])
    assert ssb.run(d).code == 0
    ssb.write(ssb.home / POLICY, "consent: {unapproved: refuse}\n", 0o600)
    stops(ssb, d, "the skill is not approved")
    # A skill that asks for nothing is refused, too.
    stops(ssb, ssb.skill("print('started')"), "the skill is not approved")
    assert ssb.run("--", "true").code == 0  # a command of the owner needs no approval
    approve(ssb, d)
    assert ssb.run(d).code == 0
    ssb.write(ssb.home / POLICY, "consent: {unapproved: perhaps}\n", 0o600)
    assert "write safe or refuse" in ssb.run(d).errors
    ssb.write(ssb.home / POLICY, "", 0o600)
    ssb.ssb("approve", "--revoke", d).ok()
    assert ssb.run(d).code == 0


def test_without_what_it_does_not_ask_for(ssb, asks):
    for d, said in ((asks, "it asks for:\n"), (ssb.skill("pass"), "it asks for nothing\n")):
        r = ssb.ssb("approve", "--yes", "--without", "read ~/x", d)
        assert r.code == 2 and f"'read ~/x': the skill does not ask for that; {said}" in r.errors, r


def test_without_a_request(ssb):
    ssb.write(ssb.work / "data/x", "data")
    d = ssb.skill(f"import os\nprint(os.path.exists('{ssb.work}/data/x'), 'WANTED' in os.environ)",
                  read=[ssb.work / "data"], allow=["WANTED"])
    env = {"WANTED": "x"}
    assert ssb.run(d, env=env).ok().text == "True True\n"
    what = f"read {ssb.work}/data"
    r = ssb.run("--without", what, "--without", "environment WANTED", d, env=env).ok()
    assert r.text == "False False\n"
    plan = json.loads(ssb.ssb("inspect", "--json", "--without", what, d).ok().text)
    assert [(w["what"], w["why"]) for w in plan["withheld"]] == [(what, "the owner took it out")]


def test_what_cannot_be_approved(ssb):
    d = ssb.skill("print('started')", read=["/proc"])
    r = ssb.ssb("approve", "--yes", d)
    assert r.code == 1 and "cannot be approved" in r.errors, r.errors
    assert ssb.run(d).code == 125
    ssb.write(ssb.work / "data/x", "data")
    d = ssb.skill("print('started')", read=[ssb.work / "data"])
    assert ssb.run(d).code == 0
    ssb.write(ssb.home / POLICY, f"deny: {{read: [{ssb.work}/data]}}\n", 0o600)
    r = ssb.ssb("approve", "--yes", d)
    assert r.code == 1 and "cannot be approved" in r.errors, r.errors
    assert ssb.run(d).code == 125
    # A skill that contains a FIFO cannot be approved, either.
    ssb.write(ssb.home / POLICY, "", 0o600)
    os.mkfifo(d / "pipe")
    ssb.own(d / "pipe")
    r = ssb.ssb("approve", "--yes", d)
    assert r.code == 125 and "'pipe' is a FIFO" in r.errors, r.errors
    (d / "pipe").unlink()
    approve(ssb, d)


def test_a_long_name_does_not_hide_why(ssb):
    long = "~/.ssh/" + "/".join(["x" * 200] * 12)
    r = ssb.ssb("approve", "--yes", ssb.skill("print(1)", read=[long]))
    assert r.code == 1 and "'read ~/.ssh/x" in r.errors, r
    assert "x' cannot be approved: it does not exist\n" in r.errors, r


def test_places_are_those_of_the_skill(ssb):
    """Messages name the skill's own directory, not the snapshot that runs: the owner must not
    edit the snapshot."""
    d = ssb.skill("print(1)", read=["~/.ssh"])
    approve(ssb, d, "--without", "read ~/.ssh")
    plan = json.loads(ssb.ssb("inspect", "--json", d).ok().text)
    assert "snapshots" in str(plan["granted"]["files"])     # the control
    text = ssb.ssb("inspect", d).ok().text
    (line,) = [line for line in text.splitlines() if "the owner took it out" in line]
    assert f"({d}/skillsandbox.yaml:" in line and "snapshots" not in line, line
    assert all(line.strip() for line in text.splitlines()), "it has no remedy, and no line for it"


def test_a_forged_lock_grants_nothing(ssb, asks):
    approve(ssb, asks)
    (lock,) = locks(ssb)
    good = lock.read_text()
    lock.chmod(0o666)
    stops(ssb, asks, "others can write")
    lock.chmod(0o600)
    lock.write_text(good.replace('"version": 1', '"version": 7'))
    stops(ssb, asks, "is not an approval", "approve --revoke")
    lock.write_text(good)
    assert SECRET in ssb.run(asks).ok().text
    ssb.ssb("approvals", "--revoke", asks).ok()
    # The file of an approval counts only in the owner's state directory. A copy of it in the
    # skill's directory is ignored.
    for place in (asks / "approvals", asks / ".local/state/skillsandbox/approvals",
                  asks / "skillsandbox.lock"):
        ssb.write(place / lock.name, good, 0o600)
        r = ssb.ssb("run", asks, cwd=asks)
        assert r.code == 125 and SECRET not in r.text


def test_a_damaged_one_hides_no_other(ssb, asks):
    other = ssb.skill("print(1)")
    approve(ssb, asks)
    (lock,) = locks(ssb)
    approve(ssb, other)
    lock.write_text("{")
    bad, good = sorted(rows(ssb), key=lambda r: r["state"], reverse=True)
    assert (bad["state"], bad["file"], bad["skill"]) == ("unreadable", lock.name, None), bad
    assert (good["state"], good["skill"]) == ("holds", str(other)), good
    shown = ssb.ssb("approvals").ok().text
    assert f"{other}: holds" in shown and f"approvals --revoke {lock.stem}\n" in shown, shown
    ssb.ssb("approvals", "--revoke", lock.stem).ok()
    assert [r["skill"] for r in rows(ssb)] == [str(other)]


@pytest.mark.parametrize("how", ["symlink", "symlink above"])
def test_a_skill_that_a_symlink_replaced(ssb, how):
    """The owner declined an item. Then a symlink replaces the skill, or a directory above it: the
    skill still does not get the item."""
    secret = ssb.write(ssb.home / "proj/key", SECRET)
    made = ssb.skill(f"print(open({str(secret)!r}).read())", read=["~/proj"])
    above = ssb.mkdir("home/skills")
    d = made.rename(above / "keys")
    approve(ssb, d, "--without", "read ~/proj")
    assert SECRET not in ssb.run(d).text, "the control: it is declined"
    moved = d if how == "symlink" else above
    moved.rename(f"{moved}.moved")
    moved.symlink_to(f"{moved.name}.moved")
    real = d.resolve()
    for name in (d, real):
        stops(ssb, name, f"was approved as '{d}', which is now a symlink to '{real}'",
              "approve it again")
    r = ssb.run(".", cwd=d)
    assert r.code == 125 and SECRET not in r.text, repr(r)
    r = ssb.ssb("approvals").ok()
    assert f"{d}: unreadable: is now a symlink to '{real}'" in r.text, r.text
    assert rows(ssb)[0]["state"] == "unreadable"
    # The controls: each of the two remedies in the message works, to approve again and to revoke.
    approve(ssb, d)
    assert SECRET in ssb.run(d).ok().text
    ssb.ssb("approvals", "--revoke", d).ok()
    assert rows(ssb) == []
    assert SECRET in ssb.run(d).ok().text, "never approved: the manifest's request is harmless"


def test_revoking_after_a_symlink_to_nothing_replaced_the_skill(ssb, asks):
    approve(ssb, asks)
    asks.rename(f"{asks}.moved")
    asks.symlink_to("nowhere")
    ssb.ssb("approvals", "--revoke", asks).ok()
    assert rows(ssb) == []
    r = ssb.ssb("approvals", "--revoke", asks)
    assert r.code == 125 and "not found" in r.errors, repr(r)


def test_a_directory_that_is_a_symlink(ssb, asks):
    """The directory of the approvals is replaced by a symlink: each command that reads it fails
    with a message, instead of finding no approvals."""
    approve(ssb, asks)
    there = ssb.state / "skillsandbox/approvals"
    moved = there.rename(ssb.home / "elsewhere")
    there.symlink_to(moved)
    word = "approvals' is a symlink or not a directory; put the directory itself there"
    stops(ssb, asks, word)
    for command in (["approvals"], ["approve", "--yes", asks], ["diff", asks]):
        r = ssb.ssb(*command)
        assert r.code == 125 and word in r.errors, repr(r)
    there.unlink()
    moved.rename(there)
    assert SECRET in ssb.run(asks).ok().text


def test_what_was_declined_stays_out(ssb):
    """The owner declined an item: approving a changed version with --yes does not grant it, until
    the approval is revoked."""
    d = ssb.skill(f"import os\nprint(os.path.exists({str(ssb.home / '.ssh')!r}))", read=["~/.ssh"])
    approve(ssb, d, "--without", "read ~/.ssh")
    assert ssb.run(d).ok().text.strip() == "False"
    for n in range(2):
        ssb.write(d / "more", str(n))
        stops(ssb, d)
        r = ssb.ssb("approve", "--yes", d).ok()
        assert "is left out of this one" in r.errors and '(taken out) "read ~/.ssh"' in r.errors, r.errors
        assert [x["declined"] for x in rows(ssb)] == [["read ~/.ssh"]]
        assert ssb.run(d).ok().text.strip() == "False"
    ssb.ssb("approve", "--revoke", d).ok()
    approve(ssb, d)
    assert ssb.run(d).ok().text.strip() == "True"  # the control


def test_what_was_declined_stays_out_whatever_is_spoken(ssb):
    """The owner declined one port of a skill. If an update of the skill declares another protocol
    on this port, the port is still not granted."""
    word = "connect to a.example:9000"
    rule = {"domain": "a.example", "ports": [9000]}
    d = ssb.skill("print('ran')", egress=[rule])
    approve(ssb, d, "--without", word)
    for protocol in ("tls", "http", "tcp"):
        ssb.write(d / "skillsandbox.yaml", manifest(egress=[{**rule, "protocol": protocol}]))
        stops(ssb, d)
        r = ssb.ssb("approve", "--yes", d).ok()
        assert "is left out of this one" in r.errors and f'(taken out) "{word}"' in r.errors, r.errors
        ssb.run(d).ok()
        assert ssb.last_trace()["plan"]["granted"]["network"] == []
    ssb.ssb("approve", "--revoke", d).ok()
    approve(ssb, d)
    ssb.run(d).ok()
    assert ssb.last_trace()["plan"]["granted"]["network"] != []  # the control


def test_version_control_is_no_part_of_it(ssb):
    """A change in the skill's own .git does not end the approval, and an approved run does not
    see .git. A .git in a subdirectory is a part of the skill."""
    d = ssb.skill("""
        import os, sys
        sys.path.insert(0, '/skill/.git')
        try:
            import hidden
        except ImportError:
            print('not there', os.path.exists('/skill/.git'), sorted(os.listdir('/skill')))
    """, files={".git/hidden.py": "print('HIDDEN')", ".git/index": "1", "kept/.git/x": ""})
    (d / "empty").mkdir()
    ssb.own(d / "empty")
    assert ssb.run(d).ok().text.strip() == "HIDDEN"  # the control: it is not approved
    approve(ssb, d)
    ssb.write(d / ".git/index", "2")
    ssb.write(d / ".git/hidden.py", "print('OTHER')")
    assert ssb.run(d).ok().text.strip() == ("not there False "
                                            "['empty', 'kept', 'main.py', 'skillsandbox.yaml']")
    ssb.write(d / "kept/.git/x", "2")
    stops(ssb, d, "kept/.git/x: changed")
    ssb.write(d / "kept/.git/x", "")
    (d / "empty").rmdir()
    stops(ssb, d, "empty: removed")


def test_a_damaged_copy_is_made_anew(ssb):
    d = ssb.skill("import data; print(data.X)", files={"data.py": "X = 'whole'"})
    approve(ssb, d)
    (snapshot,) = pathlib.Path(ssb.state / "skillsandbox/snapshots").iterdir()
    (snapshot / "data.py").chmod(0o644)
    (snapshot / "data.py").write_text("X = 'damaged'")
    assert ssb.run(d).ok().text.strip() == "whole"
    assert (snapshot / "data.py").read_text() == "X = 'whole'"


def test_old_copies_go_with_a_run(ssb):
    """Each run of a skill, not only `approve`, removes old snapshots that no approval uses."""
    d = ssb.skill("print('here')")
    copies = pathlib.Path(ssb.state / "skillsandbox/snapshots")
    approve(ssb, d)
    (named,) = copies.iterdir()
    idle = ssb.mkdir(copies / ("ab" * 32))
    other = ssb.mkdir(copies / "not-ours")
    for path in (named, idle, other):
        os.utime(path, (1000, 1000))
    assert ssb.run("--", "true").ok() and idle.exists()  # a run without a skill removes no snapshot
    assert ssb.run(d).ok().text == "here\n"
    assert named.exists() and other.exists() and not idle.exists()
    # A run that may last 3 days keeps its snapshot for 3 days, even if a shorter run uses it, too.
    assert named.stat().st_mtime < time.time() + 10
    for days in (3, 2):
        ssb.run("--timeout", str(days * 86400), d).ok()
        assert ssb.run(d).ok().text == "here\n"
        assert named.stat().st_mtime > time.time() + 2.9 * 86400


def test_what_to_type_can_be_typed(ssb):
    d = ssb.mkdir("my skill; x")
    ssb.write(d / "SKILL.md", "---\nname: x\ndescription: y\n---\n")
    ssb.write(d / "s.py", "print(1)")
    assert f"next: skillsandbox approve '{d}'\n" in ssb.ssb("learn", d, "s.py").ok().errors


def test_gone_and_taken_back(ssb, asks):
    approve(ssb, asks)
    ssb.as_caller(["mv", str(asks), str(ssb.work / "elsewhere")]).ok()
    assert [r["state"] for r in rows(ssb)] == ["gone"]
    assert f"{asks}: gone" in ssb.ssb("approvals").ok().text
    ssb.ssb("approvals", "--revoke", asks).ok()
    assert rows(ssb) == []


def test_a_skill_cannot_reach_it(ssb, asks):
    approve(ssb, asks)
    (lock,) = locks(ssb)
    (snapshot,) = pathlib.Path(ssb.state / "skillsandbox/snapshots").iterdir()
    code = f"""
    for name in ({str(lock)!r}, {str(snapshot / 'main.py')!r}):
        for mode in 'ra':
            try:
                open(name, mode).close()
                print('OPENED', name, mode)
            except OSError as e:
                print('denied', e.errno)
    """
    # The control: outside the sandbox the files can be opened, except that a user cannot open the
    # read-only copy for writing.
    assert ssb.bare(code).text.count("OPENED") >= 3
    r = ssb.inside(code, flags=["--read", ssb.state.parent])
    assert "OPENED" not in r.text and r.text.count("denied") == 4, r.text
