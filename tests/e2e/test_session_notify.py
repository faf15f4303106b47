"""Messages of a session to its owner, for receivers that accept them, and receivers that hang, lie,
redirect or do not exist."""
import hashlib
import hmac
import json
import os
import pathlib
import shutil
import signal
import socket
import time

import pytest

import notify_world as world
from harness import execute, open_files, wait_for
from notify_world import EVENT, JSON, PAGERDUTY, SLACK, Outbox, Receiver

KEY = b"a key of the owner's"


def copied(program, base):
    """Makes a copy for this worker that the user can execute."""
    target = base / f"{program.name}-{os.getpid()}"
    shutil.copy(program, target)
    target.chmod(0o755)
    return target


@pytest.fixture(scope="session")
def driver(base):
    return copied(world.DRIVER, base)


@pytest.fixture(scope="session")
def store_program(base):
    return copied(world.STORE, base)


@pytest.fixture
def box(user, driver):
    outbox = Outbox(user, driver)
    yield outbox
    outbox.end()


def secret_file(runner, data=KEY + b"\n", mode=0o600):
    return runner.write(runner.work / "hook.key", data, mode)


def check_signature(request, key=KEY):
    _, headers, body, _ = request
    stamp = headers["X-SkillSandbox-Timestamp"]
    assert abs(int(stamp) - time.time()) < 60
    want = hmac.new(key, stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["X-SkillSandbox-Signature"] == "sha256=" + want


# ---- what receivers get --------------------------------------------------

def test_each_kind_arrives(ssb, driver):
    box = Outbox(ssb, driver)
    with Receiver() as slack, Receiver() as plain, Receiver() as pager:
        box.add(SLACK, slack.url).add(JSON, plain.url, secret_file(ssb))
        box.add(PAGERDUTY, pager.url, "R0UT1NG")
        assert box.deliver() < 15
        assert box.done() and all(x[1:] == (200, 0, "") for x in box.done())
        assert [len(r.requests) for r in (slack, plain, pager)] == [1, 1, 1]
        path, headers, body, _ = slack.requests[0]
        message = json.loads(body)
        assert path == "/hook" and headers["Content-Type"] == "application/json"
        assert not any(h.lower().startswith("x-skillsandbox") for h in headers)
        assert "Expect" not in headers
        assert [b["type"] for b in message["blocks"]] == ["header", "section", "section", "section"]
        assert [f["text"] for f in message["blocks"][1]["fields"]] == [
            "*Agent:*\nagent &lt;1&gt;", "*Session:*\n0123456789ab…", "*Cost:*\n$5.1100",
            "*Actions:*\n12"]
        assert message["blocks"][2]["text"]["text"] == "*Reason:*\nspent $5.11 of $5.00 &amp; more"
        assert message["blocks"][3]["text"]["text"] == "*Violations:*\npii_blocked: 3"
        assert json.loads(plain.requests[0][2]) == EVENT
        check_signature(plain.requests[0])
        event = json.loads(pager.requests[0][2])
        assert (event["routing_key"], event["event_action"], event["dedup_key"]) == \
            ("R0UT1NG", "trigger", EVENT["session_id"])
        assert event["payload"]["severity"] == "critical"
        assert event["payload"]["custom_details"] == EVENT


def test_plain_json_without_a_secret_is_not_signed(box):
    with Receiver() as r:
        box.add(JSON, r.url).deliver()
        names = {h.lower() for h in r.requests[0][1]}
    assert "x-skillsandbox-delivery" in names
    assert not names & {"x-skillsandbox-signature", "x-skillsandbox-timestamp"}


def test_ipv6(box):
    with Receiver(family=socket.AF_INET6) as r:
        box.add(JSON, r.url).deliver()
        assert len(r.requests) == 1 and box.done() == [(0, 200, 0, "")]


# ---- TLS -----------------------------------------------------------------

def test_https_and_the_authorities_it_trusts(ssb, driver):
    box = Outbox(ssb, driver)
    context, ca = world.authority(ssb)
    _, other = world.authority(ssb, "other")
    with Receiver(tls=context) as r:
        box.add(JSON, r.url, secret_file(ssb))
        for env in ({}, {"SSL_CERT_FILE": str(other)}):  # in both, its CA is not trusted
            box.deliver(4, **env)
            tries = box.done()
            assert not r.requests and tries[-1][1] == 0 and tries[-1][2] > 0
            assert "ertificate" in tries[-1][3] or "SSL" in tries[-1][3]
            (box.dir / "done.txt").unlink()
        # The control: the same receiver, and its CA is trusted.
        box.deliver(SSL_CERT_FILE=str(ca))
        assert box.done() == [(0, 200, 0, "")]
        check_signature(r.requests[0])


def test_a_certificate_for_another_name(box):
    context, ca = world.authority(box.runner)
    with Receiver(tls=context) as r:
        box.add(JSON, r.url.replace("127.0.0.1", "localhost"))
        box.deliver(4, SSL_CERT_FILE=str(ca))
        assert not r.requests and box.done()[0][1] == 0 and box.done()[0][2] > 0
        box.add(JSON, r.url)
        box.deliver(4, SSL_CERT_FILE=str(ca))
        assert len(r.requests) == 1


def test_without_libcurl(box):
    hide = "".join(f"mount --bind /dev/null {p} && " for p in
                   pathlib.Path("/usr/lib").glob("*/libcurl*.so.4"))
    assert hide
    runner = box.runner
    with Receiver() as r:
        box.add(JSON, r.url)
        execute(["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && " + hide +
                 'exec "$@"', "sh", *runner.identity(), box.driver, "deliver", "4"],
                env=runner.environment()).ok()
        assert not r.requests and "install the package libcurl4" in box.done()[0][3]
        box.deliver()
        assert len(r.requests) == 1


# ---- receivers that do not accept a message ------------------------------

@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 413])
def test_a_refusal_is_final(box, code):
    with Receiver(plan=[(code, {"Retry-After": "1"}, b"no")] * 3) as r:
        box.add(JSON, r.url)
        assert box.deliver() < 15
        assert len(r.requests) == 1
        assert box.done() == [(0, code, 0, f"the receiver answered {code}")]


@pytest.mark.parametrize("code", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(box, code):
    with Receiver(plan=[(code, {}, b"")]) as r:
        box.add(JSON, r.url, secret_file(box.runner))
        box.deliver()
        first, second = r.requests
        assert [x[1] for x in box.done()] == [code, 200] and 1000 <= box.done()[0][2] <= 2250
        assert second[3] - first[3] >= 0.95
        # It is the same message with the same id; each attempt has its own signature.
        assert first[2] == second[2]
        assert first[1]["X-SkillSandbox-Delivery"] == second[1]["X-SkillSandbox-Delivery"]
        assert int(second[1]["X-SkillSandbox-Timestamp"]) > int(
            first[1]["X-SkillSandbox-Timestamp"])
        check_signature(first)
        check_signature(second)


def test_delivery_ids_differ(box):
    with Receiver() as r:
        box.add(JSON, r.url).add(JSON, r.url).deliver()
        ids = [h["X-SkillSandbox-Delivery"] for _, h, _, _ in r.requests]
    assert len(set(ids)) == 2


@pytest.mark.parametrize("asked, waits", [("3", 3000), ("0", 1000), ("86400", 300000)])
def test_retry_after_within_bounds(box, asked, waits):
    with Receiver(plan=[(503, {"Retry-After": asked}, b"")] * 9) as r:
        box.add(JSON, r.url).deliver(4)
        assert r.requests and box.done()[0][2] == waits


def test_eight_tries(box):
    with Receiver(plan=[(500, {}, b"")] * 20) as r:
        box.add(JSON, r.url).deliver(PGDRIVER_FAST="1")
        assert len(r.requests) == 8
        waits = [x[2] for x in box.done()]
        assert all(w > 0 for w in waits[:7]) and waits[7] == 0
        assert waits[6] >= 150000  # the waits become longer


def test_redirects_are_not_followed(box):
    with Receiver() as elsewhere, Receiver(plan=[
            (code, {"Location": elsewhere.url}, b"") for code in (301, 302, 307, 308)]) as r:
        for _ in range(4):
            box.add(JSON, r.url, secret_file(box.runner))
        box.deliver()
        assert len(r.requests) == 4 and not elsewhere.requests
        assert sorted(x[1:3] for x in box.done()) == [(301, 0), (302, 0), (307, 0), (308, 0)]
        box.add(JSON, elsewhere.url).deliver()  # the control: this receiver works
        assert len(elsewhere.requests) == 1


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x",
                                 "127.0.0.1", ""])
def test_nothing_but_http(box, url):
    box.add(JSON, url).deliver(5)
    assert box.done() == [(0, 0, 0, "the receiver's URL is not http(s)://")]


def test_an_answer_without_end(box):
    piece = b"b" * 4096
    with Receiver(plan=[world.endless(b"HTTP/1.1 200 OK\r\n\r\n", piece)]) as r:
        box.add(JSON, r.url)
        assert box.deliver() < 15  # the message was accepted; the rest of the answer is not read
        assert box.done() == [(0, 200, 0, "")]
        wait_for(lambda: hasattr(r, "sent"))
        assert r.sent < 8 << 20


def test_a_head_without_end_is_no_answer(box):
    head = world.endless(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"a" * 1000 + b"\r\n")
    with Receiver(plan=[head]) as r:
        box.add(JSON, r.url).deliver()
        assert [x[1] for x in box.done()] == [0, 200] and len(r.requests) == 2


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\nX: y", b"SSH-2.0-x\r\n",
                                  b"\x00\xff" * 500, b"HTTP/1.1 999 x\r\n\r\n"])
def test_what_is_no_answer_is_tried_again(box, data):
    with Receiver(plan=[world.raw(data)]) as r:
        box.add(JSON, r.url).deliver()
        assert len(r.requests) == 2 and box.done()[-1] == (0, 200, 0, "")
        assert box.done()[0][1] == 0 and box.done()[0][2] >= 1000 and box.done()[0][3]


def test_dead_and_silent_receivers_delay_no_other(box):
    with Receiver() as good, Receiver(plan=[world.silent] * 9) as slow, \
            socket.socket() as a, socket.socket() as b:
        deaf, dead = world.deaf(a), world.dead(b)
        for _ in range(3):
            for url in (slow.url, deaf, dead, good.url):
                box.add(JSON, url)
        begin = time.monotonic()
        took = box.deliver(4)
        assert len(good.requests) == 3
        assert all(t - begin < 8 for _, _, _, t in good.requests)
        assert 9 < took < 25  # the herald waits for requests that have begun
        by_status = {}
        for n, status, retry, error in box.done():
            by_status.setdefault(n % 4, []).append((status, retry, error))
        assert by_status[3] == [(200, 0, "")] * 3
        for n in (0, 1, 2):
            assert all(s == 0 and retry >= 1000 and error for s, retry, error in by_status[n])
        assert "imeout" in by_status[0][0][2] and "connect" in by_status[2][0][2].lower()
        # A receiver that does not answer gets one request at a time.
        assert len(slow.requests) == 1


def add_many(box, r):
    for i in range(100):  # more messages than the herald takes at once
        box.add(JSON, r.url, event={**EVENT, "action_count": i})


def numbers(r):
    return [json.loads(x[2])["action_count"] for x in r.requests]


def test_many_messages_keep_their_order(box):
    with Receiver() as r:
        add_many(box, r)
        # The limit is long: if the machine pauses, some messages are tried again only after a
        # minute.
        box.deliver(150)
        assert numbers(r) == list(range(100))
        assert len(box.done()) == 100


def test_a_late_answer_changes_no_order(box):
    """The receiver's first answer comes late: the herald gives the newest messages back to the
    outbox, so that another herald can take them. The order of the messages stays the same."""
    with Receiver(plan=[world.late]) as r:
        add_many(box, r)
        box.deliver(30)
        assert numbers(r) == list(range(64))
        box.deliver()  # the next herald takes the remaining messages
        assert numbers(r) == list(range(100))


def test_a_flood_for_a_dead_receiver_delays_no_other(box):
    with Receiver() as good, socket.socket() as a:
        deaf = world.deaf(a)
        for _ in range(200):
            box.add(JSON, deaf)
        box.add(JSON, good.url)
        begin = time.monotonic()
        box.deliver(5)
        assert len(good.requests) == 1 and good.requests[0][3] - begin < 8


def test_a_receiver_that_comes_late(box):
    with socket.socket() as s:
        box.add(JSON, world.dead(s) + "hook")
        assert box.start().code == 0
        wait_for(box.done)
        s.listen()
        s.settimeout(40)
        peer, _ = s.accept()
        with peer:
            assert peer.recv(4096).startswith(b"POST /hook HTTP/1.1\r\n")


# ---- the secret ----------------------------------------------------------

def spoil(how, runner):
    path = secret_file(runner)
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"\n")
    elif how == "long":
        path.write_bytes(b"k" * 4097)
    elif how == "symlink":
        real = runner.write(runner.work / "real.key", KEY, 0o600)
        path.unlink()
        path.symlink_to(real)
    elif how == "fifo":
        path.unlink()
        os.mkfifo(path, 0o600)
        runner.own(path)
    elif how == "directory":
        path.unlink()
        path.mkdir(mode=0o700)
        runner.own(path)
    elif how == "somebody else's":
        os.chown(path, 65534, runner.gid)
        path.chmod(0o640)  # readable by the group
    else:
        path.chmod(int(how, 8))
    return path


@pytest.mark.parametrize("how, says", [
    ("missing", "No such file"), ("empty", "is empty"), ("long", "is too long"),
    ("symlink", "cannot be opened"), ("fifo", "not a regular file"),
    ("directory", "not a regular file"), ("somebody else's", "belongs to another user"),
    ("640", "open to others"), ("604", "open to others"), ("620", "open to others")])
def test_nothing_is_sent_without_a_private_secret(box, how, says):
    path = spoil(how, box.runner)
    with Receiver() as r:
        box.add(JSON, r.url, path).deliver(4)
        assert not r.requests
        (_, status, retry, error), = box.done()[:1]
        assert status == 0 and retry > 0 and says in error and str(path) not in error
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        secret_file(box.runner, mode=0o400)  # control: with a private file the message is sent
        box.deliver(PGDRIVER_FAST="1")
        check_signature(r.requests[0])


@pytest.mark.parametrize("data, key", [(KEY, KEY), (KEY + b"\r\n", KEY), (b"k" * 4096, b"k" * 4096),
                                       (b"\x00\xff\n\n", b"\x00\xff\n")])
def test_what_the_key_is(box, data, key):
    with Receiver() as r:
        box.add(JSON, r.url, secret_file(box.runner, data)).deliver()
        check_signature(r.requests[0], key)


# ---- the proxy -----------------------------------------------------------

def test_by_the_owners_proxy(box):
    with Receiver() as proxy, Receiver() as r:
        env = {"http_proxy": f"http://127.0.0.1:{proxy.port}"}
        box.add(JSON, "http://hooks.example.test/x").deliver(**env)
        assert proxy.requests[0][0] == "http://hooks.example.test/x"
        box.add(JSON, r.url).deliver(no_proxy="127.0.0.1", **env)
        assert len(proxy.requests) == 1 and len(r.requests) == 1


# ---- the process ---------------------------------------------------------

def test_a_herald(ssb, driver):
    """The herald is detached and has limits, and no file or secret of the process that started
    it."""
    box = Outbox(ssb, driver)
    with Receiver(plan=[world.silent]) as r:
        box.add(JSON, r.url)
        begin = time.monotonic()
        assert box.start(SECRET_OF_THE_CALLER="x", PGHOST="db", no_proxy="*").code == 0
        assert time.monotonic() - begin < 8  # the caller does not wait for the receiver
        wait_for(lambda: r.requests)
        pid, = wait_for(box.heralds)
        p = pathlib.Path("/proc") / str(pid)
        fields = (p / "stat").read_text().rsplit(")", 1)[1].split()
        session, terminal, nice = fields[3], fields[4], fields[16]
        assert session != str(os.getsid(0)) and terminal == "0" and nice == "10"
        names = {x.split(b"=")[0] for x in (p / "environ").read_bytes().split(b"\0") if x}
        assert names == {b"HOME", b"USER", b"XDG_STATE_HOME", b"PGHOST", b"no_proxy"}
        lock = str(ssb.state / "skillsandbox/herald.lock")
        targets = open_files(pid)
        assert {t.split(":")[0] for t in targets} == {"/dev/null", "pipe", lock}
        assert os.readlink(p / "cwd") == "/"
        ignored = next(int(x.split()[1], 16) for x in (p / "status").read_text().splitlines()
                       if x.startswith("SigIgn"))
        # Signals 32 and 33 belong to libc, and no other code may set them.
        assert ignored & ~(3 << 31) == 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGHUP - 1)
        assert (p / "environ").stat().st_uid == 0  # other processes of the user cannot read it
        assert os.stat(lock).st_mode & 0o777 == 0o600
        for child in (p / "task" / str(pid) / "children").read_text().split():
            assert lock not in open_files(child)
    box.end()


def test_it_ends_when_all_is_done(box):
    with Receiver() as r:
        box.add(JSON, r.url)
        assert box.start().code == 0
        wait_for(box.done)
        wait_for(lambda: not box.heralds())
        assert len(r.requests) == 1


def test_one_at_a_time_sees_to_all(box):
    with Receiver(plan=[world.silent]) as slow, Receiver() as good:
        box.add(JSON, slow.url)
        box.start()
        wait_for(lambda: slow.requests)
        first, = box.heralds()
        box.add(JSON, good.url)
        for _ in range(5):
            assert box.start().code == 0
        wait_for(lambda: good.requests)
        wait_for(lambda: box.heralds() == [first])
        time.sleep(0.5)
        # The silent receiver gets its next request only when ten seconds, the time limit of a
        # request, have passed.
        times = [x[3] for x in slow.requests]
        assert len(good.requests) == 1 and all(t - times[0] > 9 for t in times[1:]), times


def test_no_message_is_left_when_one_ends(box):
    """Messages that arrive while a herald ends are delivered by it or by the next one. A herald
    ends only if it has seen an empty outbox twice, 0.3 s apart."""
    with Receiver() as r:
        for i, after in enumerate([0, 0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.2, 0.5]):
            time.sleep(after)
            box.add(JSON, r.url)
            box.start(PGDRIVER_SLOW="1")
            wait_for(lambda n=i: len(box.done()) == n + 1)
    wait_for(lambda: not box.heralds())
    assert len(r.requests) == 10


def test_a_killed_herald_is_followed_by_another(box):
    with Receiver(plan=[world.silent]) as r:
        box.add(JSON, r.url)
        box.start()
        wait_for(lambda: r.requests)
        pid, = box.heralds()
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(os.path.exists(f"/proc/{c}") for c in children))
        assert not box.done()
        box.start()
        wait_for(box.done)
        first, second = r.requests
        assert first[1]["X-SkillSandbox-Delivery"] == second[1]["X-SkillSandbox-Delivery"]
        assert box.done() == [(0, 200, 0, "")]


def test_a_program_that_cannot_be_one_says_so(box):
    r = box.start("unable")
    assert r.code == 1 and "cannot start the process that sends messages" in r.errors
    assert not box.heralds()


@pytest.mark.parametrize("trap", ["symlink", "fifo"])
def test_a_lock_that_is_a_trap(box, trap):
    victim = box.runner.write(box.runner.work / "victim", "untouched")
    lock = box.dir / "herald.lock"
    if trap == "symlink":
        lock.symlink_to(victim)
    else:
        os.mkfifo(lock, 0o600)
        box.runner.own(lock)
    with Receiver() as r:
        box.add(JSON, r.url)
        assert box.start().code == 0
        wait_for(lambda: not box.heralds())
        assert victim.read_text() == "untouched"
        lock.unlink()
        box.start()
        wait_for(lambda: r.requests)  # the control


# ---- from the real store -------------------------------------------------

def test_a_kill_is_told_and_written_down(ssb, store_program):
    store = world.Store(ssb, store_program)
    context, ca = world.authority(ssb)
    with Receiver(tls=context) as hook, Receiver(plan=[(503, {}, b"")]) as plain, \
            Receiver(plan=[(404, {}, b"")]) as gone:
        session = store.kill(f"""
            agent_id: agent-7
            kill_switch:
              notify:
                - webhook: {hook.url}
                - webhook: {plain.url}
                  format: json
                  secret_file: {secret_file(ssb)}
                - webhook: {gone.url}
            """, "the owner <said> so", SSL_CERT_FILE=str(ca))
        wait_for(lambda: len(store.ledger(session)) == 4)
        assert "the owner &lt;said&gt; so" in hook.requests[0][2].decode()
        event = json.loads(plain.requests[-1][2])
        assert (event["event"], event["session_id"], event["agent_id"], event["reason"]) == \
            ("session_killed", session, "agent-7", "the owner <said> so")
        assert event["state"] == "killed" and event["violation_counts"] == {"pii_blocked": 1}
        assert (event["session_cost_usd"], event["budget_usd"], event["action_count"]) == (0, 5, 0)
        check_signature(plain.requests[-1])
        assert len(gone.requests) == 1 and len(plain.requests) == 2
        lines = [json.dumps(x) for x in store.ledger(session)]
        for url, statuses in ((hook.url, ["sent"]), (plain.url, ["retry", "sent"]),
                              (gone.url, ["failed"])):
            mine = [x for x in lines if url[:-len("/hook")] in x]
            assert len(mine) == len(statuses)
            assert all(f'"status": "{s}"' in x for s, x in zip(statuses, mine)), mine
        assert not any("/hook" in x for x in lines)  # no paths: a URL's path may be a secret


def test_what_a_dead_herald_left_is_resumed(user, store_program):
    store = world.Store(user, store_program)
    with Receiver() as r:
        session = store.kill(f"kill_switch:\n  notify:\n    - webhook: {r.url}\n")
        assert not r.requests
        assert store.call("due") == "1\n"
        wait_for(lambda: store.ledger(session))
        assert len(r.requests) == 1 and store.call("due") == "0\n"


def test_the_store_is_whole_while_heralds_come_and_go(user, store_program):
    """Each of these commands has the store open when it starts a herald: the store is not
    damaged."""
    store = world.Store(user, store_program)
    with Receiver() as r:
        policy = f"kill_switch:\n  notify:\n    - webhook: {r.url}\n"
        sessions = [store.kill(policy, "x") for _ in range(20)]
        wait_for(lambda: len(r.requests) == 20)
        for session in sessions:
            wait_for(lambda s=session: store.ledger(s))
    database, = user.state.glob("skillsandbox/*.db")
    check = execute(["sqlite3", database, "PRAGMA integrity_check"]).ok().text
    assert check == "ok\n" and len(r.requests) == 20
