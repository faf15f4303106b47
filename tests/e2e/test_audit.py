"""Commands that read records: list, show, verify, export, prune. record_maker.py makes the
records, so that the tests do not depend on the code of the product that writes them."""
import contextlib
import fcntl
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time

import pytest

import record_maker as records
from record_maker import Record, State


def verify(ssb, *words):
    r = ssb.ssb("audit", "verify", "--json", *words)
    assert r.code in (0, 1, 3), repr(r)
    answer = r.json()
    assert answer["state"] == {0: "complete", 1: "bad", 3: "incomplete"}[r.code]
    return answer


# ---- verify ---------------------------------------------------------------

def test_verify_says_what_it_found(ssb):
    state = State(ssb)
    good = Record()
    path = state.put(good)
    for word in (good.id, good.id[:8], "last", path):
        r = ssb.ssb("audit", "verify", word)
        assert r.code == 0 and "complete" in r.text and records.keypair()[1] in r.text, repr(r)
    path.write_bytes(b"".join(good.lines()[:5]))
    r = ssb.ssb("audit", "verify", good.id)
    assert r.code == 3 and "incomplete: 5 good records" in r.text, repr(r)
    path.write_bytes(good.text().replace(b"api.example.com", b"api.exampl3.com", 1))
    r = ssb.ssb("audit", "verify", good.id)
    assert r.code == 1 and "bad at record 9" in r.text, repr(r)
    assert ssb.ssb("audit", "verify", "-q", good.id).out == b""


def rechain(lines, at, bodies, sign=None):
    """Replaces the lines from `at` on by the lines of `bodies` from `at` on, with new hashes. Keeps
    the old signature, or makes a new one if `sign` is the seed of a key."""
    start = bytes(32) if at == 0 else bytes.fromhex(lines[at - 1][-67:-3].decode())
    new, _ = records.chain(bodies[at:], start)
    return lines[:at] + new + [records.sign(len(bodies), new[-1], sign) if sign else lines[-1]]


def flip(line, at):
    return line[:at] + bytes([line[at] ^ 1]) + line[at + 1:]


def tampered(record, other):
    """Yields (change, line, text, bad line) for every kind of change at every line of the record.
    `bad line` is the line that verify must report. None means that verify must report an incomplete
    record, -1 that any line is right."""
    lines, bodies = record.lines(), record.bodies()
    foreign = other.lines()
    n = len(lines)
    join = b"".join
    for i in range(n):
        for at in {0, 8, len(lines[i]) // 2, len(lines[i]) - 70, len(lines[i]) - 1}:
            # A last line without its newline counts as not yet completely written.
            cut = i == n - 1 and at == len(lines[i]) - 1
            yield (f"flip byte {at}", i, join(lines[:i] + [flip(lines[i], at)] + lines[i + 1:]),
                   None if cut else i)
        yield "remove", i, join(lines[:i] + lines[i + 1:]), i if i + 1 < n else None
        yield "repeat", i, join(lines[:i + 1] + lines[i:]), i + 1
        yield "insert from another run", i, join(lines[:i] + [foreign[i]] + lines[i:]), i
        yield "replace from another run", i, join(lines[:i] + [foreign[i]] + lines[i + 1:]), i
        yield "go on as another run", i, join(lines[:i] + foreign[i:]), i
        yield "empty line before", i, join(lines[:i] + [b"\n"] + lines[i:]), i
        yield "truncate before", i, join(lines[:i]), None
        yield "truncate inside", i, join(lines[:i] + [lines[i][:len(lines[i]) // 2]]), None
        if i + 1 < n:
            yield "swap", i, join(lines[:i] + [lines[i + 1], lines[i]] + lines[i + 2:]), i
        if i < len(bodies):
            edited = bodies[:i] + [bodies[i].replace(b'"mono":', b'"mono":1')] + bodies[i + 1:]
            yield "edit and hash this line", i, join(
                rechain(lines, i, edited[:i + 1])[:i + 1] + lines[i + 1:]), i + 1
            yield "edit and chain anew", i, join(rechain(lines, i, edited)), n - 1
            yield "edit, chain and sign anew", i, join(
                rechain(lines, i, edited, bytes(32))), n - 1
            gone = [re.sub(rb'"seq":\d+', b'"seq":%d' % k, b) for k, b in
                    enumerate(bodies[:i] + bodies[i + 1:])]
            yield "remove, number and chain anew", i, join(rechain(lines, 0, gone)), -1
    end_hash = bytes.fromhex(lines[-2][-67:-3].decode())
    for a, b in ((b'"time":"2026', b'"time":"2025'), (b'"mono":', b'"mono":1'),
                 (b'"signature":"', b'"signature": "'), (b'"kind"', b'"x":1,"kind"'),
                 (b'","signature":"', b'","more":1,"signature":"')):
        changed = lines[-1][:-76].replace(a, b)
        assert changed != lines[-1][:-76]
        yield (f"{b} in the signature, hashed anew", n - 1,
               join(lines[:-1] + records.chain([changed], end_hash)[0]), n - 1)
    yield "append", n, join(lines) + lines[-1], n
    yield "append text", n, join(lines) + b"x", n


def test_every_change_is_found(user):
    state = State(user)
    record, other = Record(), Record(skill_name="other")
    path = state.put(record)
    assert verify(user, record.id)["state"] == "complete", "the control"
    count = 0
    for what, i, text, at in tampered(record, other):
        path.write_bytes(text)
        answer = verify(user, record.id)
        assert answer["state"] == ("incomplete" if at is None else "bad"), (what, i, answer)
        if at is not None and at >= 0:
            assert answer["at"] == at, (what, i, answer)
        if at is None:
            assert answer["records"] == i, (what, i, answer)
        count += 1
    assert count > 200
    path.write_bytes(record.text())
    assert verify(user, record.id)["state"] == "complete", "the control, again"


def test_signature_of_another_key(ssb):
    state = State(ssb)
    stranger = Record(seed=b"s" * 32)
    state.put(stranger)
    key = records.keypair(b"s" * 32)[1]
    r = ssb.ssb("audit", "verify", stranger.id)
    assert r.code == 1 and "another key" in r.text and key in r.text, repr(r)
    assert verify(ssb, "--key", key, stranger.id)["state"] == "complete"
    file = ssb.write(ssb.base / "key.pub", key + "\n")
    assert verify(ssb, "--key", file, stranger.id)["state"] == "complete"
    assert ssb.ssb("audit", "verify", "--key", "12", stranger.id).code in (2, 125)


def test_without_a_key_nothing_is_complete(ssb):
    record = Record()
    path = State(ssb).put(record)
    (ssb.state / "skillsandbox/trace.pub").unlink()
    answer = verify(ssb, path)
    assert answer["state"] == "bad" and "--key" in answer["why"]
    assert verify(ssb, "--key", answer["key"], path)["state"] == "complete"


def test_the_record_of_another_run_in_its_place(ssb):
    state = State(ssb)
    mine, other = Record(), Record()
    path = state.put(mine)
    path.write_bytes(other.text())
    assert "another run" in verify(ssb, mine.id)["why"]
    assert verify(ssb, path)["state"] == "complete", "control: as a file it is fine"


@pytest.mark.parametrize("text", [
    b"", b"\n", b"\0" * 5000, b"{}\n", b"[1,2,3]\n", b"x" * (2 << 20), b'{"seq":0' + b"9" * 300,
    b'{"bundle":1}\n', b'{"bundle":1,"run_id":"","version":"","key":null,"records":0}\n',
    b'{"seq":0,"time":"' + b"\\" * 4000 + b'\n', b"{" * 70000 + b"\n", b"\xff\xfe\n" * 100,
])
def test_what_is_no_record(user, text):
    path = user.write(user.base / "x.jsonl", text)
    r = user.ssb("audit", "verify", path)
    assert r.code in (1, 3), repr(r)
    for words in (["audit", "show"], ["why"], ["watch"], ["audit", "show", "--json"]):
        r = user.ssb(*words, path)
        assert 0 <= r.code < 126, repr(r)


def test_verify_needs_a_regular_file(ssb):
    State(ssb)
    fifo = ssb.base / "fifo.jsonl"
    os.mkfifo(fifo)
    for path in (fifo, "/dev/zero", ssb.base, ssb.base / "nothing.jsonl"):
        r = ssb.ssb("audit", "verify", f"{path}")
        assert r.code in (2, 125), repr(r)


def test_a_symlink_in_the_state_directory_is_not_followed(ssb):
    state = State(ssb)
    real, fake = Record(), Record()
    elsewhere = ssb.write(ssb.base / "elsewhere/trace.jsonl", fake.text())
    state.put(real)
    (state.dir / "runs" / fake.id).symlink_to(elsewhere.parent)
    assert ssb.ssb("audit", "verify", fake.id).code == 125
    other = Record()
    path = state.put(other)
    path.unlink()
    path.symlink_to(elsewhere)
    assert ssb.ssb("audit", "show", other.id).code == 125
    assert [r["run_id"] for r in ssb.ssb("audit", "list", "--json").ok().json()] == [real.id]
    assert verify(ssb, real.id)["state"] == "complete", "the control"
    assert verify(ssb, elsewhere)["state"] == "complete", "the control"


def test_words_for_a_run(ssb):
    state = State(ssb)
    old = Record("aaaaaaaa-0000-4000-8000-000000000001")
    new = Record("aaaaaaab-0000-4000-8000-000000000002")
    state.put(new, mtime=time.time() - 50)
    state.put(old, mtime=time.time() - 100)
    assert verify(ssb, "last")["run_id"] == new.id
    assert verify(ssb, "aaaaaaaa")["run_id"] == old.id
    r = ssb.ssb("audit", "verify", "aaaaaaa")
    assert r.code == 2 and old.id in r.errors and new.id in r.errors
    for word in ("ffff", "", "../x", "trace.json"):
        assert ssb.ssb("audit", "verify", word).code in (2, 125)
    assert ssb.ssb("audit", "verify").code == 2
    assert ssb.ssb("audit", "verify", "last", "last").code == 2


def test_a_flat_record_is_found(ssb):
    """A record in runs/ itself (a crash came before the run's directory was made) is found by
    verify and list."""
    state = State(ssb)
    record = Record(end=None, events=[])
    state.put(record, flat=True)
    assert verify(ssb, record.id)["state"] == "incomplete"
    assert ssb.ssb("audit", "list", "--json").ok().json()[0]["state"] == "incomplete"


def test_an_end_without_a_signature_counts_for_nothing(ssb):
    state = State(ssb)
    record = Record()
    state.put(record, text=b"".join(record.lines()[:-1]))
    row = ssb.ssb("audit", "list", "--json").ok().json()[0]
    assert row["state"] == "incomplete" and row["violations"] == 3, row
    state.put(record)
    row = ssb.ssb("audit", "list", "--json").ok().json()[0]
    assert row["state"] == "ended" and row["violations"] == 43, "the control"


# ---- export ----------------------------------------------------------------

def test_export_is_verifiable_alone(ssb):
    state = State(ssb)
    record = Record()
    state.put(record)
    bundle = ssb.base / "x.bundle"
    ssb.ssb("audit", "export", "last", "-o", bundle).ok()
    answer = verify(ssb, bundle)
    assert answer["state"] == "complete" and answer["bundle"] and answer["run_id"] == record.id
    header, rest = bundle.read_bytes().split(b"\n", 1)
    assert rest == record.text()
    assert json.loads(header) == {"bundle": 1, "run_id": record.id, "version": "0.1.0",
                                  "key": records.keypair()[1], "records": len(record.lines())}
    assert bundle.stat().st_mode & 0o777 == 0o600
    assert ssb.ssb("audit", "export", "last", "-o", bundle).code == 125, "never over a file"
    assert ssb.ssb("audit", "export", "last", "-o", "-").ok().out == bundle.read_bytes()
    shown = ssb.ssb("audit", "show", bundle).ok().text
    assert shown == ssb.ssb("audit", "show", record.id).text.replace(record.id, "", 1) or \
        record.id in shown


def test_an_export_may_have_any_name(ssb):
    ssb.run("-q", "--", "true").ok()
    bundle, document = ssb.base / "bundle.json", ssb.base / "document"
    ssb.ssb("audit", "export", "last", "-o", bundle).ok()
    assert verify(ssb, bundle)["state"] == "complete"
    assert ssb.ssb("audit", "show", bundle).ok().out == ssb.ssb("audit", "show", "last").ok().out
    path, = (ssb.state / "skillsandbox/runs").glob("*/trace.json")
    ssb.write(document, path.read_text())
    for name in path, document:
        r = ssb.ssb("audit", "verify", name)
        assert r.code == 2 and "is the document made from a record" in r.errors


def test_export_header_cannot_be_changed(ssb):
    record = Record()
    State(ssb).put(record)
    bundle = ssb.base / "x.bundle"
    ssb.ssb("audit", "export", "last", "-o", bundle).ok()
    header, rest = bundle.read_bytes().split(b"\n", 1)
    for a, b in ((record.id.encode(), Record().id.encode()), (b'"0.1.0"', b'"0.1.1"'),
                 (records.keypair()[1].encode(), records.keypair(b"x" * 32)[1].encode()),
                 (records.keypair()[1].encode(), b"none"),
                 (b'"' + records.keypair()[1].encode() + b'"', b"7"),
                 (b'"records":', b'"records":1'), (b'"bundle":1', b'"bundle":2'),
                 (b"}", b',"more":1}')):
        assert a in header
        bundle.write_bytes(header.replace(a, b) + b"\n" + rest)
        assert verify(ssb, bundle)["state"] == "bad", b
    bundle.write_bytes(header + b"\n" + header + b"\n" + rest)
    assert verify(ssb, bundle)["state"] == "bad"
    bundle.write_bytes(header + b"\n" + rest)
    assert verify(ssb, bundle)["state"] == "complete", "the control"


def test_export_of_bad_and_incomplete(ssb):
    state = State(ssb)
    bad, cut = Record(), Record(end=None)
    state.put(bad, text=bad.text().replace(b"Berlin", b"Paris!", 1))
    state.put(cut)
    out = ssb.base / "x.bundle"
    r = ssb.ssb("audit", "export", bad.id, "-o", out)
    assert r.code == 1 and "is bad (" in r.errors and not out.exists()
    r = ssb.ssb("audit", "export", cut.id, "-o", out).ok()
    assert "incomplete" in r.errors
    assert verify(ssb, out)["state"] == "incomplete"
    assert ssb.ssb("audit", "export", cut.id).code == 2


# ---- show and why ------------------------------------------------------------

def test_show_groups_what_was_denied_first(ssb):
    record = Record()
    State(ssb).put(record)
    text = ssb.ssb("audit", "show", record.id).ok().text
    order = ["what it amounts to", "denied", "limits", "network", "written to private places",
             "programs", "output"]
    places = [text.index("\n" + title) for title in order]
    assert places == sorted(places), text
    assert "42 x  read /home/u/.ssh/id_ed25519  [credential_store]" in text, "repeats counted"
    assert "2 x  /usr/lib/python3" not in text and "-v shows them" in text, "reads of the system"
    whole = ssb.ssb("audit", "show", "-v", record.id).ok().text
    assert "2 x  /usr/lib/python3\n" in whole, "reads counted by directory"
    assert "1 x  connect to api.example.com port 443 (tls), 517 B out, 4 KiB in" in text
    assert "python3 main.py Berlin" in text and "critical credential_access" in text
    assert "exit status 0" in text and "weather 1.0.0" in text
    assert b"\x1b" not in text.encode()


def test_signals_say_which_and_to_whom(ssb):
    code = """
        import os, signal, time
        pid = os.fork()
        if pid == 0:
            os.setsid(); time.sleep(60)
        time.sleep(0.1)
        for whom in pid, -pid, 0, -1:
            try:
                os.kill(whom, signal.SIGWINCH)
            except OSError:
                pass
        os.kill(pid, 9); os.wait(); print(pid)
    """
    pid = ssb.inside(code).out.decode().strip()
    shown = ssb.ssb("audit", "show", "last").out.decode()
    for words in (f"signal 28 to process {pid}", f"signal 28 to the process group {pid}",
                  "signal 28 to its process group", "signal 28 to every process",
                  f"signal 9 to process {pid}"):
        assert f" 1 x  {words}\n" in shown


def test_show_json_is_the_lines(ssb):
    record = Record()
    State(ssb).put(record)
    assert ssb.ssb("audit", "show", "--json", record.id).ok().out == record.text()


def on_terminal(ssb, *words, **env):
    command = " ".join(f"'{w}'" for w in (ssb.binary, *words))
    return ssb.as_caller(["script", "-qec", command, "/dev/null"],
                         env={"TERM": "xterm", **env}).out


def test_show_colours_only_a_terminal(ssb):
    State(ssb).put(Record())
    assert b"\x1b[31m" in on_terminal(ssb, "audit", "show", "last")
    assert b"\x1b" not in on_terminal(ssb, "audit", "show", "last", NO_COLOR="1")


EVIL = "\x1b]0;owned\x07\x1b[2J\u202egpj.exe\u200b\x9b31m\r\n[00:00:00.000] forged"


def evil_record():
    events = [
        ("file_blocked", records.attempt("open", "denied", "/x/" + EVIL, True, EVIL, mode="read",
                                         reason=EVIL, rule=EVIL, remedy=EVIL, error=EVIL)),
        ("file_write", records.attempt("rename", "asked", EVIL, path2=EVIL)),
        ("process_spawned", records.attempt("exec", "fact", EVIL, args=[EVIL, EVIL])),
        ("network_egress_allowed", {"message": EVIL, "data": {
            "name": EVIL, "protocol": EVIL, "port": 443}}),
        ("syscall_blocked", records.attempt(EVIL, "denied", None, True, EVIL,
                                            arguments=[EVIL])),
        ("stdout", {"message": EVIL}), ("resource_limit_hit", {"message": EVIL}),
        ("layers", {"layers": {EVIL: {"state": EVIL, "detail": EVIL}}}), (EVIL, {"message": EVIL}),
    ]
    end = json.loads(json.dumps(records.END))
    end["end"] = EVIL
    end["summary"]["classifications"][0].update({"class": EVIL, "severity": EVIL,
                                                 "mitre_tactic": EVIL})
    return Record(events=events, end=end, skill_name=EVIL, skill_version=EVIL)


@pytest.mark.parametrize("words", [["audit", "show"], ["audit", "show", "-v"], ["why"], ["watch"],
                                   ["audit", "show", "--json"], ["watch", "--json"]])
def test_skill_bytes_do_not_reach_the_terminal(user, words):
    record = evil_record()
    State(user).put(record)
    out = on_terminal(user, *words, record.id, NO_COLOR="1").replace(b"\r\n", b"\n")
    assert b"owned" in out, "the control: the text is there"
    for bad in (b"\x1b", b"\x07", b"\r", "\u202e".encode(), "\u200b".encode(), b"\xc2\x9b"):
        assert bad not in out, (bad, out)
    assert not re.search(rb"^\[00:00:00.000\] forged", out, re.M)


def test_list_and_ps_escape_names(user):
    State(user).put(evil_record())
    out = on_terminal(user, "audit", "list", NO_COLOR="1")
    assert b"owned" in out
    for bad in (b"\x1b", b"\x07", "\u202e".encode()):
        assert bad not in out


def test_bytes_that_are_not_utf8_survive(ssb):
    name = "/data/caf\udce9\udcff"
    record = Record(events=[])
    bodies = [records.ascii_body(0, "run", records.run_members(record.id)),
              records.ascii_body(1, "file_write", records.attempt("unlink", "asked", name))]
    assert rb"\udce9\udcff" in bodies[1]
    path = State(ssb).put(record, text=b"".join(records.chain(bodies)[0]))
    assert rb"delete /data/caf\xe9\xff" in ssb.ssb("audit", "show", path).ok().out
    assert ssb.ssb("audit", "show", "--json", path).out == path.read_bytes()


def test_show_of_a_damaged_record(ssb):
    lines = Record().lines()
    path = ssb.write(ssb.base / "x.jsonl", b"".join(lines[:8]) + b"{broken\n" + lines[8])
    r = ssb.ssb("audit", "show", path)
    assert r.code == 1 and "line 9" in r.errors and ".ssh" in r.text, repr(r)


def test_why_explains_each_violation(ssb):
    record = Record()
    State(ssb).put(record)
    text = ssb.ssb("why", record.id).ok().text
    assert "1. read /home/u/.ssh/id_ed25519" in text and "42 times" in text
    assert "credential_store" in text and "ENOENT" in text
    assert "--read /home/u/.ssh/id_ed25519" in text
    assert "2. connect to 203.0.113.9 port 80 (tcp)" in text and "--net HOST:80" in text
    found = ssb.ssb("why", "--json", record.id).ok().json()
    assert [(v["count"], v["reason"], v["remedy"], v["prevented"]) for v in found] == [
        (42, "credential_store", "--read /home/u/.ssh/id_ed25519", True),
        (1, "undeclared_address", "--net HOST:80", True)]
    harmless = Record(events=[("stdout", {"message": "hello"})])
    State(ssb).put(harmless)
    assert "nothing was denied" in ssb.ssb("why", harmless.id).ok().text


def test_the_change_that_why_names_allows_it(ssb):
    there = ssb.mkdir("there")
    ssb.write(there / "old", "")
    code = f"""
        import os
        for path in '{there}/new', '{there}/old', '/skill/new':
            try:
                open(path, 'w').close()
                print('wrote', path)
            except OSError as e:
                print(e)
    """
    assert b"wrote" not in ssb.inside(code, read=[there]).out
    why = json.loads(ssb.ssb("why", "--json", "last").ok().out)
    assert [i["remedy"] for i in why] == [f"--write {there}", f"--write {there}/old", ""]
    r = ssb.inside(code, read=[there], flags=why[1]["remedy"].split())
    assert r.out.count(b"wrote") == 1 and f"wrote {there}/old".encode() in r.out
    r = ssb.inside(code, read=[there], flags=why[0]["remedy"].split())
    assert r.out.count(b"wrote") == 2 and f"wrote {there}/new".encode() in r.out


def test_the_host_that_why_names(ssb):
    code = """
        import socket
        for host, port in ('api.example.com', 81), ('192.0.2.7', 82), ('2001:db8::7', 83):
            try:
                s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
                s.connect((host, port))
            except OSError:
                pass
    """
    ssb.inside(code, flags=["--net", "api.example.com"]).ok()
    why = {i["what"]: i["remedy"] for i in json.loads(ssb.ssb("why", "--json", "last").ok().out)}
    assert why["connect to api.example.com port 81 (tcp)"] == "--net api.example.com:81"
    both = [why["connect to 192.0.2.7 port 82 (tcp)"], why["connect to 2001:db8::7 port 83 (tcp)"]]
    assert both == ["--net 192.0.2.7:82 --allow-private 192.0.2.7",
                    "--net '[2001:db8::7]:83' --allow-private 2001:db8::7"]
    flags = ["--net", "api.example.com:81", "--net", "192.0.2.7:82", "--net", "[2001:db8::7]:83",
             "--allow-private", "192.0.2.7", "--allow-private", "2001:db8::7"]
    ssb.inside(code, flags=flags)
    told = ssb.ssb("why", "last").ok().text
    assert "undeclared" not in told and "guarded" not in told


def test_the_port_of_an_address_that_why_names(ssb):
    code = """
        import socket
        for family, host in (socket.AF_INET, '192.0.2.7'), (socket.AF_INET6, '2001:db8::7'):
            try:
                socket.socket(family).connect((host, 83))
            except OSError:
                pass
    """
    flags = ["--net", "192.0.2.7:82", "--net", "[2001:db8::7]:82", "--allow-private", "192.0.2.0/24",
             "--allow-private", "2001:db8::/32"]
    ssb.inside(code, flags=flags).ok()
    why = {i["what"]: i["remedy"] for i in json.loads(ssb.ssb("why", "--json", "last").ok().out)}
    assert why["connect to 192.0.2.7 port 83 (tcp)"] == "--net 192.0.2.7:83"
    assert why["connect to 2001:db8::7 port 83 (tcp)"].replace("'", "") == "--net [2001:db8::7]:83"
    ssb.inside(code, flags=[*flags, "--net", "192.0.2.7:83", "--net", "[2001:db8::7]:83"])
    assert "undeclared" not in ssb.ssb("why", "last").ok().text


@pytest.mark.parametrize("address,remedy", [
    ("fe80::1", ""), ("ff02::1", ""), ("2606:4700::7", "--net [2606:4700::7]:83")])
def test_why_names_no_address_that_no_rule_can_have(ssb, address, remedy):
    code = f"""
        import socket
        try:
            socket.socket(socket.AF_INET6).connect(({address!r}, 83))
        except OSError:
            pass
    """
    ssb.inside(code).ok()
    told, = json.loads(ssb.ssb("why", "--json", "last").ok().out)
    assert told["remedy"].replace("'", "") == remedy
    r = ssb.inside(code, flags=["--net", f"[{address}]:83"])
    assert r.code == (0 if remedy else 125), r


def test_why_says_that_a_run_was_not_observed(ssb):
    ssb.run("-q", "--audit", "off", "--", "cat", "/etc/shadow")
    assert "was not observed" in ssb.ssb("why", "last").ok().text
    ssb.run("-q", "--", "true").ok()
    assert ssb.ssb("why", "last").ok().text == "nothing was denied\n"


def test_nothing_hides_what_was_denied(ssb):
    code = """
        import os
        def attempt(path, flags=0):
            try:
                os.close(os.open(path, flags))
            except OSError:
                pass
        for i in range(4200):
            attempt('/tmp/%d' % i, os.O_CREAT | os.O_WRONLY)
        attempt(os.environ['HOME'] + '/.ssh/id_rsa')
        for i in range(int(os.environ['MORE'])):
            attempt('/srv/.ssh/%d' % i)
    """
    r = ssb.inside(code, flags=["--env", "MORE=0"])
    assert "1 x read" in r.errors and ".ssh/id_rsa [credential_store]" in r.errors
    assert ".ssh/id_rsa" in ssb.ssb("why", "last").ok().text
    assert "\ndenied\n" in ssb.ssb("audit", "show", "last").ok().text
    r = ssb.inside(code, flags=["--env", "MORE=8400"])
    text = ssb.ssb("why", "last").ok().text
    told = text.count("\n   tried ")
    assert ".ssh/id_rsa" in text and f"{8401 - told} more attempts are in the record" in text
    assert f"and more than {told - 5} more" in r.errors


def test_the_worst_and_connections_come_first(ssb):
    """Thousands of denied reads and lookups come before one critical violation and one connection:
    both are shown, with and without -v, and the entries left out are counted."""
    def denied(path, reason):
        return ("file_blocked", records.attempt("open", "denied", path, True, mode="read",
                                                reason=reason))

    def network(kind, **data):
        return (kind, {"message": "x", "data": {"reason": "ok", **data}})
    record = Record(events=[
        *(denied(f"/srv/{i}", "outside_plan") for i in range(9000)),
        *(network("dns_resolution", name=f"n{i}.test", protocol="dns", op="resolve")
          for i in range(700)),
        network("network_egress_allowed", name="api.test", port=443, protocol="tls", op="connect"),
        denied("/home/u/.ssh/id_rsa", "credential_store"),
    ], plan={"grants": [], "home": "/home/u"})
    State(ssb).put(record)
    for flags in ([], ["-v"]):
        text = ssb.ssb("audit", "show", *flags, record.id).ok().text
        shown = text.split("\ndenied\n")[1].splitlines()
        assert "read /home/u/.ssh/id_rsa  [credential_store]" in shown[0], shown[:3]
        assert "connect to api.test port 443 (tls)" in text.split("\nnetwork\n")[1].splitlines()[0]
        reads = 5120 + 256
        assert f"\n            and {9000 - reads} more events, which only --json shows\n" in text
        assert "\n            and 60 more events, which only --json shows\n" in text
        assert f"{9000 - reads + 60} events are in the record and not shown here" in text
    assert "look up n639.test" in text and "look up n640.test" not in text
    why = ssb.ssb("why", "--json", record.id).ok().json()
    assert why[0]["what"] == "read /home/u/.ssh/id_rsa" and len(why) == reads + 1


def test_why_counts_what_a_line_stands_for(ssb):
    def asked(name, **data):
        return ("network_egress_blocked", {"message": "x", "violation": True, "data": {
            "op": "resolve", "name": name, "protocol": "dns", "reason": "not_declared", **data}})
    when = {"first": records.TIME.format(1, 0), "last": records.TIME.format(2, 0)}
    record = Record(events=[
        asked("once.test"), asked("often.test"), asked("often.test", count=200, **when),
        ("network_egress_blocked", {"message": "not_listed, 30 times", "violation": True,
                                    "data": {"reason": "not_listed", "count": 30}}),
        asked("odd.test", count=-2**63, **when)])
    State(ssb).put(record)
    found = ssb.ssb("why", "--json", record.id).ok().json()
    assert [(v["what"], v["count"]) for v in found] == [
        ("look up once.test", 1), ("look up often.test", 200), ("look up odd.test", 1),
        ("not_listed, 30 times", 30)]


def test_a_program_is_shown_by_its_path(ssb):
    def spawned(path, *args):
        return ("process_spawned", records.attempt("exec", "fact", path, args=list(args)))
    record = Record(events=[
        spawned("/usr/bin/git", "git", "log"), spawned("/tmp/x", "git", "status"),
        spawned("/tmp/git", "git", "push"), spawned("/skill/run", "/skill/run", "a"),
        spawned("/tmp/y", "")])
    State(ssb).put(record)
    shown = ssb.ssb("watch", record.id).ok().text
    lines = [line.split("EXEC", 1)[1].strip() for line in shown.splitlines() if "EXEC" in line]
    assert lines == ["git log", "/tmp/x (as git) status", "/tmp/git push", "/skill/run a",
                     "/tmp/y (as )"]


def test_arguments_of_a_call_are_shown(ssb):
    record = Record(events=[("syscall_blocked", records.attempt(
        "ptrace", "denied", None, True, reason="attack", arguments=["0x10", hex(i)]))
        for i in range(2)])
    State(ssb).put(record)
    shown = ssb.ssb("watch", record.id).ok().text
    assert "call ptrace(0x10 0x0)" in shown and "call ptrace(0x10 0x1)" in shown
    found = ssb.ssb("why", "--json", record.id).ok().json()
    assert [(v["what"], v["count"]) for v in found] == [("call ptrace", 2)]


def test_long_texts_are_cut_and_not_mixed(ssb):
    paths = ["/x/" + "é" * 4000 + str(i) for i in range(3)]
    record = Record(events=[("file_blocked", records.attempt(
        "unlink", "denied", path, True, reason="outside_plan")) for path in paths + paths[:1]])
    State(ssb).put(record)
    found = ssb.ssb("why", "--json", record.id).ok().json()
    assert [v["count"] for v in found] == [2, 1, 1]
    for v in found:
        assert v["what"].startswith("delete /x/é") and v["what"].endswith("é...")
        assert len(v["what"].encode()) < 4096


def test_why_quotes_what_people_copy(ssb):
    path = "/x/$(touch owned) 'a'"
    record = Record(events=[
        ("file_blocked", records.attempt("open", "denied", path, True, mode="read",
                                         reason="credential_store", remedy="--read " + path)),
        ("file_blocked", records.attempt("unlink", "denied", path, True, reason="outside_plan")),
        ("network_egress_blocked", {"message": "x", "violation": True, "data": {
            "name": "a.example.org", "protocol": "tls", "port": 8443, "reason": "not_declared"}}),
        ("syscall_blocked", records.attempt("ptrace", "denied", None, True, reason="profile",
                                            remedy="--profile permissive")),
        ("syscall_blocked", records.attempt("bpf", "denied", None, True, reason="attack")),
    ])
    State(ssb).put(record)
    remedies = [v["remedy"] for v in ssb.ssb("why", "--json", record.id).ok().json()]
    quoted = "'/x/$(touch owned) '\\''a'\\'''"
    assert remedies[0] == "--read " + quoted
    assert remedies[1] == "--profile permissive" and remedies[2] == ""
    assert remedies[3].startswith(f"--write {quoted}, or the path under permissions.filesystem.")
    assert remedies[4].startswith("--net a.example.org:8443, or ")


def test_what_was_not_prevented_is_said(ssb):
    record = Record(events=[("file_write", records.attempt("open", "asked", "/x", True,
                                                           mode="write", reason="outside_plan"))])
    State(ssb).put(record)
    assert "NOT PREVENTED" in ssb.ssb("audit", "show", record.id).ok().text
    assert ssb.ssb("why", "--json", record.id).ok().json()[0]["prevented"] is False


# ---- list and prune ----------------------------------------------------------

def listed(ssb, *words):
    return [r["run_id"] for r in ssb.ssb("audit", "list", "--json", *words).ok().json()]


def started(ago):
    t = time.time() - ago
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(t)) + ".250000Z"


def quiet_end(severity=None, violations=0):
    end = json.loads(json.dumps(records.END))
    end["counters"]["violations"] = violations
    end["summary"] = {"max_severity": severity} if severity else None
    return end


@pytest.fixture
def five(ssb):
    """Runs that began 10 s, 2 min, 2 h, 2 d and 20 d ago."""
    state = State(ssb)
    runs = [Record(skill_name="weather", end=quiet_end()),
            Record(skill_name="mail", end=quiet_end("medium", 3)),
            Record(skill_name="weather", end=quiet_end("critical", 9)),
            Record(skill_name="weather", end=None),
            Record(skill_name="mail", end=quiet_end(None, 1))]
    for r, ago in zip(runs, (10, 120, 7200, 2 * 86400, 20 * 86400)):
        state.put(r, text=r.text(started(ago)), mtime=time.time() - ago)
    return ssb, state, [r.id for r in runs]


def test_list_and_its_filters(five):
    ssb, _, ids = five
    assert listed(ssb) == ids
    assert listed(ssb, "--skill", "mail") == [ids[1], ids[4]]
    assert listed(ssb, "--since", "1h") == ids[:2]
    assert listed(ssb, "--until", "1h") == ids[2:]
    assert listed(ssb, "--since", "7d", "--until", started(7000)) == ids[2:4]
    assert listed(ssb, "--since", started(600)[:19] + "+00:00") == ids[:2]
    assert listed(ssb, "--violations") == [ids[1], ids[2], ids[3], ids[4]]
    assert listed(ssb, "--severity", "medium") == [ids[1], ids[2], ids[3]]
    assert listed(ssb, "--severity", "critical") == [ids[2], ids[3]]
    assert listed(ssb, "--limit", "2") == ids[:2] == listed(ssb, "-n2")
    assert listed(ssb, "--skill", "' OR 1=1 --") == []
    rows = ssb.ssb("audit", "list").ok().text.splitlines()
    assert len(rows) == 6 and rows[1].startswith(ids[0][:8]) and "incomplete" in rows[4]
    east = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 3600 + 7200)) + "+02:00"
    assert listed(ssb, "--since", east) == ids[:2]
    for words in (["--since", "yesterday"], ["--since", "2026-11-15T13:20:00+2:00"], ["--severity", "bad"], ["--limit", "0"], ["x"],
                  ["--until", "2026-13-45"], ["--since", "5"], ["--since", "2026-02-30"],
                  ["--since", "2025-02-29T10:00:00Z"]):
        assert ssb.ssb("audit", "list", *words).code == 2, words


def test_list_before_the_first_run(ssb):
    assert listed(ssb) == []
    assert not (ssb.state / "skillsandbox").exists(), "looking makes nothing"


def test_index_follows_the_files(five):
    ssb, state, ids = five
    assert listed(ssb) == ids
    new = Record()
    state.put(new, text=new.text(started(0)))
    assert listed(ssb) == [new.id, *ids]
    (state.dir / "runs" / ids[1] / "trace.jsonl").unlink()
    (state.dir / "runs" / ids[1]).rmdir()
    assert listed(ssb) == [new.id, ids[0], *ids[2:]]
    mode = (state.dir / "index.db").stat().st_mode
    assert mode & 0o077 == 0


def test_index_that_lies_or_is_damaged(five):
    ssb, state, ids = five
    assert listed(ssb) == ids
    index = state.dir / "index.db"
    good = index.read_bytes()
    with sqlite3.connect(index) as db:
        db.execute("UPDATE runs SET violations = 0, skill = 'x'")
    assert listed(ssb, "--violations") == [], "the control: it is used"
    assert listed(ssb, "--rebuild", "--violations") == [ids[1], ids[2], ids[3], ids[4]]
    for text in (b"", b"no database" * 100, good[:len(good) // 2], good[:100] + b"\xff" * 8000,
                 good[:4096] + os.urandom(len(good) - 4096)):
        index.write_bytes(text)
        assert listed(ssb) == ids, text[:20]
    index.unlink()
    with sqlite3.connect(index) as db:
        db.execute("CREATE TABLE runs (wrong)")
    ssb.own(index)
    assert listed(ssb) == ids
    index.unlink()
    index.symlink_to(ssb.base / "not-ours.db")
    assert listed(ssb) == ids
    assert not (ssb.base / "not-ours.db").exists()


def test_an_unfinished_record_is_read_once(ssb):
    """An unfinished record is in the index: its file is read again only after it has changed."""
    state = State(ssb)
    record = Record(end=None)
    path = state.put(record)

    def violations():
        run, = ssb.ssb("audit", "list", "--json").ok().json()
        assert run["state"] == "incomplete"
        return run["violations"]

    def lie():
        with sqlite3.connect(state.dir / "index.db") as db:
            db.execute("UPDATE runs SET violations = 77")
    real = violations()
    assert real not in (0, 77)
    lie()
    assert violations() == 77, "it was read once more"
    denied = next(e for e in records.EVENTS if e[1].get("violation"))
    path.write_bytes(Record(record.id, [*records.EVENTS, denied], end=None).text())
    assert violations() == real + 1
    lie()
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"violation":true', b'"violation":null'))
    assert path.stat().st_size == len(text) and violations() == 0


def test_an_index_of_another_version_is_made_anew(five):
    ssb, state, ids = five
    index = state.dir / "index.db"
    for version in (1, 3):
        assert listed(ssb) == ids
        with sqlite3.connect(index) as db:
            db.execute("DROP TABLE runs")
            db.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, started TEXT, state INTEGER)")
            db.execute(f"PRAGMA user_version = {version}")
        assert listed(ssb) == ids
        assert sqlite3.connect(index).execute("PRAGMA user_version").fetchone() == (2,)


def test_an_index_that_can_only_be_read(user):
    """The index is read-only and does not have the newest run: the run is listed nevertheless."""
    state = State(user)
    old, new = Record(), Record()
    state.put(old)
    assert listed(user) == [old.id], "the control: the index is made"
    state.put(new)
    (state.dir / "index.db").chmod(0o400)
    state.dir.chmod(0o500)
    try:
        assert sorted(listed(user)) == sorted([old.id, new.id])
    finally:
        state.dir.chmod(0o700)
    assert sorted(listed(user)) == sorted([old.id, new.id])


def test_an_index_that_is_a_fifo(user):
    """A FIFO of another user has the name of the index: opening it would wait for a writer. The
    list must not wait, and must replace the FIFO."""
    state = State(user)
    record = Record()
    state.put(record)
    os.mkfifo(state.dir / "index.db", 0o644)
    assert user.ssb("audit", "list", "--json").ok().json()[0]["run_id"] == record.id
    assert (state.dir / "index.db").is_file()


def test_lists_that_make_the_index_anew_at_once(ssb):
    state = State(ssb)
    for _ in range(300):
        state.put(Record())
    procs = [ssb.popen([ssb.binary, "audit", "list", "--json", *flags], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE) for flags in [[], ["--rebuild"]] * 20]
    for p in procs:
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0 and len(json.loads(out)) == 300, err


def test_an_index_in_use_is_not_replaced(user):
    """While another process uses the index, --rebuild must wait. If it replaced the file, the other
    process would find the journal of the new index by its name and roll the new index back."""
    state = State(user)
    record = Record()
    state.put(record)
    assert listed(user) == [record.id]
    index = state.dir / "index.db"
    old = index.stat()
    with contextlib.ExitStack() as held:
        fd = os.open(state.dir / "runs", os.O_RDONLY)
        held.callback(os.close, fd)
        fcntl.flock(fd, fcntl.LOCK_EX)
        p = user.popen([user.binary, "audit", "list", "--json", "--rebuild"],
                       stdout=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            p.wait(timeout=1)
        assert (index.stat().st_ino, index.stat().st_ctime_ns) == (old.st_ino, old.st_ctime_ns)
    out, _ = p.communicate(timeout=20)
    assert [run["run_id"] for run in json.loads(out)] == [record.id]
    assert index.stat().st_ctime_ns != old.st_ctime_ns


def test_list_where_nothing_can_be_written(user):
    state = State(user)
    record = Record()
    state.put(record)
    state.dir.chmod(0o500)
    assert listed(user) == [record.id]
    state.dir.chmod(0o700)


def test_without_sqlite_only_the_list_is_missing(root):
    record = Record()
    State(root).put(record)
    library = next(p for p in ("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
                               "/usr/lib/aarch64-linux-gnu/libsqlite3.so.0") if os.path.exists(p))
    without = ["unshare", "--mount", "sh", "-c",
               f'mount --bind /dev/null {os.path.realpath(library)} && exec "$@"', "sh",
               root.binary, "audit"]
    r = root.as_caller([*without, "list"])
    assert r.code == 125 and "libsqlite3-0" in r.errors, repr(r)
    assert root.as_caller([*without, "verify", "last"]).ok()
    assert listed(root) == [record.id], "the control"


def test_list_of_ten_thousand_runs(user):
    first = State(user).put(Record(events=records.EVENTS[:4]))
    make = f"""
import os
os.chdir({str(first.parent.parent)!r})
for i in range(9999):
    name = f"{{i:08x}}-0000-4000-8000-000000000000"
    os.mkdir(name)
    os.link({str(first)!r}, name + "/trace.jsonl")
"""
    user.as_caller(["/usr/bin/python3", "-c", make]).ok()
    try:
        assert len(listed(user)) == 10000
        took = []
        while len(took) < 5 and min(took, default=9) >= 2:
            begin = time.monotonic()
            assert len(listed(user, "--limit", "20")) == 20
            took.append(time.monotonic() - begin)
        assert min(took) < 2, f"{took} s although all is in the index"
    finally:
        shutil.rmtree(first.parent.parent)


def names(state):
    return sorted(p.name for p in (state.dir / "runs").iterdir())


def test_prune(five):
    ssb, state, ids = five
    for ages in ("20000w", "9999999h", "9999999w"):  # these times are before 1970: no run is so old
        assert "removed 0 runs" in ssb.ssb("audit", "prune", "--older-than", ages).ok().text
    r = ssb.ssb("audit", "prune", "--older-than", "1d", "--dry-run").ok()
    assert "would remove 2 runs" in r.text and len(names(state)) == 5
    assert "removed 2 runs" in ssb.ssb("audit", "prune", "--older-than", "1d").ok().text
    assert names(state) == sorted(ids[:3])
    answer = ssb.ssb("audit", "prune", "--keep", "2", "--json").ok().json()
    assert answer["removed"] == 1 and names(state) == sorted(ids[:2])
    assert listed(ssb) == ids[:2]
    for words in ([], ["--keep", "-1"], ["--keep", "x"], ["--older-than", "x"],
                  ["--keep", "1", "--older-than", "1d"], ["--keep", "1", "x"]):
        assert ssb.ssb("audit", "prune", *words).code == 2, words


def test_prune_of_what_is_known_of_files(ssb):
    state = State(ssb)
    state.put(Record())
    day = 24 * 3600
    for name, age in (("801-a1", 0), ("801-a2", 5), ("801-a3", 40), ("801-a4.123", 40),
                      ("notes", 40)):
        path = ssb.write(state.dir / "digests" / name, b"x")
        os.utime(path, (time.time() - age * day,) * 2)

    def left():
        return sorted(p.name for p in (state.dir / "digests").iterdir())

    answer = ssb.ssb("audit", "prune", "--keep", "9", "--dry-run", "--json").ok().json()
    assert answer["digests"] == 2 and len(left()) == 5
    answer = ssb.ssb("audit", "prune", "--keep", "9", "--json").ok().json()
    assert answer["digests"] == 2 and left() == ["801-a1", "801-a2", "notes"]
    ssb.ssb("audit", "prune", "--older-than", "2d").ok()
    assert left() == ["801-a1", "notes"]


def test_prune_spares_the_living_and_the_strange(ssb):
    state = State(ssb)
    live = records.Live(state, Record())
    live.write(3)
    dead = Record()
    state.put(dead, mtime=time.time() - 1000)
    os.utime(live.path, (time.time() - 1000,) * 2)
    strange = ssb.mkdir("home/.local/state/skillsandbox/runs/notes")
    ssb.ssb("audit", "prune", "--keep", "0").ok()
    assert live.path.exists() and strange.exists() and dead.id not in names(state)
    live.close()
    ssb.ssb("audit", "prune", "--keep", "0").ok()
    assert not live.path.exists(), "the control: it was the lock"


def test_prune_follows_no_symlink(ssb):
    state = State(ssb)
    victim = ssb.write(ssb.base / "victim/trace.jsonl", Record().text())
    os.utime(victim, (1, 1))
    run = state.dir / "runs" / Record().id
    State(ssb).put(Record(), mtime=1)
    run.symlink_to(victim.parent)
    ssb.ssb("audit", "prune", "--keep", "0")
    assert victim.exists()


def test_show_and_why_tell_of_a_changed_record(ssb):
    ssb.run("-q", "--", "cat", "/etc/shadow")
    assert ssb.ssb("why", "last").code == 0  # the control
    assert ssb.ssb("audit", "show", "last").code == 0
    path = sorted((ssb.state / "skillsandbox/runs").glob("*/trace.jsonl"),
                  key=lambda p: p.stat().st_mtime_ns)[-1]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4] + lines[5:]))
    for command in (["why", "last"], ["audit", "show", "last"]):
        r = ssb.ssb(*command)
        assert r.code == 1 and "was changed" in r.errors, r


def test_show_and_why_tell_of_a_changed_file(ssb):
    ssb.run("-q", "--", "true").ok()
    path, = (ssb.state / "skillsandbox/runs").glob("*/trace.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    file = ssb.base / "copy.jsonl"
    for text, code, words in ((b"".join(lines), 0, "nothing was denied\n"),
                              (b"".join(lines[:4] + lines[5:]), 1, "was changed: record 4 in it is bad"),
                              (lines[0][:20], 1, "no complete record"), (b"", 1, "no complete record"),
                              (b"".join(lines[:-3]), 0, "denied up to the end of this")):
        file.write_bytes(text)
        file.chmod(0o644)
        for command in (["why"], ["audit", "show"]):
            r = ssb.ssb(*command, file)
            assert r.code == code, r
            assert command != ["why"] or words in r.text + r.errors, r
    (ssb.state / "skillsandbox/trace.pub").unlink()
    (ssb.state / "skillsandbox/trace.key").unlink()
    file.write_bytes(b"".join(lines))
    assert ssb.ssb("audit", "show", file).code == 0, "whose key it is is not asked"
