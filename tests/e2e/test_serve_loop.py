"""One client, one lock or one large record does not block other clients of
`skillsandbox serve`."""
import contextlib
import fcntl
import os
import select
import sqlite3
import time

import pytest

import mcp_world
from harness import SECRET
from mcp_client import MODERN, failure, structured
from serve_world import children, served, skill
from session_cli import Sessions, end_heralds

HELLO = "print('hello')"
QUICK = 0.5  # limit for a ping in seconds; a blocked server takes several seconds
ATTEMPTS = 4  # one attempt may fail because the whole machine paused for a moment
CLAUDE = {"CLAUDE_CODE_SESSION_ID": "7b1f-claude"}
ELICIT = {"elicitation": {"form": {}}}


def state(ssb):
    return ssb.home / ".local/state/skillsandbox"


def pings(client, until, seconds=60):
    """Sends pings until `until()` is true, and at least five. Returns how long each took."""
    took = []
    end = time.monotonic() + seconds
    while len(took) < 5 or not until():
        begin = time.monotonic()
        assert begin < end, "it never came"
        client.call("prompts/list")  # serves as a ping: both eras have it, and it needs no files
        took.append(time.monotonic() - begin)
        time.sleep(0.02)
    return took


def is_quick(took):
    """True if the pings were fast. One of them may be slow because of other work on the machine."""
    return sorted(took)[-2] < QUICK and max(took) < 4 * QUICK


def answers_meanwhile(attempt):
    """`attempt()` returns the times of its pings. The test fails only if they are slow in every
    attempt."""
    seen = []
    while len(seen) < ATTEMPTS:
        seen.append(attempt())
        if is_quick(seen[-1]):
            return
    raise AssertionError([sorted(took)[-5:] for took in seen])


@contextlib.contextmanager
def store_held(ssb):
    """Locks the store during the `with` block, as if another process of the owner had been stopped
    in a transaction."""
    db = sqlite3.connect(state(ssb) / "sessions.db", isolation_level=None, timeout=20)
    try:
        db.execute("BEGIN EXCLUSIVE")
        yield
        with contextlib.suppress(sqlite3.OperationalError):
            db.execute("ROLLBACK")
    finally:
        db.close()


@pytest.fixture
def sessions(user):
    yield Sessions(user)
    end_heralds(user)


def test_the_store_is_held(user, sessions):
    skill(user, "hello", HELLO)
    with served(user, "--session-policy", sessions.policy(), env=CLAUDE) as client:
        structured(client.tool("session_status"))
        reports = 0

        def attempt():
            nonlocal reports
            with store_held(user):
                asked = [client.send_tool("run_skill", skill_dir="hello"),
                         client.send_tool("report_violation", type="odd")]
                begin = time.monotonic()
                took = pings(client, lambda: time.monotonic() - begin > 1.5)
                assert not client.answers, client.answers  # the control: the calls wait
            run, report = (client.answer(n) for n in asked)
            reports += 1
            assert structured(run)["stdout"] == "hello\n"
            assert structured(report)["session"]["violation_count"] == reports
            return took
        answers_meanwhile(attempt)


def test_a_new_session_where_the_store_is_held(user, sessions):
    """A client sends many first calls while the store is locked: pings are answered, and all calls
    get the same new session."""
    skill(user, "hello", HELLO)
    sessions.start("--id", "other")  # makes the store

    def attempt():
        env = {"CLAUDE_CODE_SESSION_ID": os.urandom(4).hex()}
        with served(user, "--session-policy", sessions.policy(), env=env) as client:
            client.call("prompts/list")
            with store_held(user):
                runs = [client.send_tool("run_skill", skill_dir="hello") for _ in range(4)]
                runs.append(client.send_tool("session_status"))
                begin = time.monotonic()
                took = pings(client, lambda: time.monotonic() - begin > 1)
                assert not client.answers, client.answers
            for n in runs:
                structured(client.answer(n))
            assert structured(client.tool("session_status"))["session"]["meters"]["runs"] == 4
        return took
    answers_meanwhile(attempt)


def test_a_refused_session_is_an_error_of_the_run(user, sessions):
    skill(user, "hello", HELLO)
    user.write(state(user) / "sessions.db", "this is no store", 0o600)
    with served(user, "--session-policy", sessions.policy(), env=CLAUDE) as client:
        assert failure(client.tool("run_skill", skill_dir="hello"))["message"]
        assert failure(client.tool("session_status"))["code"] == "session_unavailable"


def test_canceled_leaves_no_process(user, sessions):
    with served(user, "--session-policy", sessions.policy(), env=CLAUDE) as client:
        structured(client.tool("session_status"))
        assert children(client.process) == []
        with store_held(user):
            asked = [client.send_tool("session_status") for _ in range(6)]
            there = mcp_world.eventually(lambda: len(children(client.process)) == 4)
            assert there, children(client.process)  # the maximum for one client
            for n in asked:
                client.cancel(n)
            assert mcp_world.eventually(lambda: children(client.process) == [])
            client.call("ping")
            assert not client.answers
            # When the server's input ends, it does not wait for its child process; the child must
            # end, too.
            client.send_tool("session_status")
            mcp_world.eventually(lambda: len(children(client.process)) == 1)
            (left,) = [os.pidfd_open(int(pid)) for pid in children(client.process)]
            begin = time.monotonic()
            client.close(20)
            assert time.monotonic() - begin < 5
            # The child must end within 3 s. If it still waited for the locked store, it would take
            # 10 s.
            assert select.select([left], [], [], 3)[0], "it lives"
            os.close(left)


# Makes a record of more than 100 MB: each attempt is a line that contains its path several times.
GREEDY = """
import os, sys
long = '/'.join(['x' * 250] * 15)
for i in range(int(sys.argv[1])):
    try:
        os.open('/root/%d/%s' % (i, long), os.O_RDONLY)
    except OSError:
        pass
print('tried')
"""


def test_a_large_record(user):
    skill(user, "greedy", GREEDY, resources={"max_runtime_seconds": 110})
    skill(user, "hello", HELLO)
    with served(user) as client:
        # The control: all violations of a small record are reported.
        few = client.tool("run_skill", skill_dir="greedy", args=["3"])["structuredContent"]
        assert few["violation_count"] == len(few["violations"]) == 3, few
        ran = None

        def run():
            nonlocal ran
            asked = client.send_tool("run_skill", skill_dir="greedy", args=["14000"])
            took = pings(client, lambda: asked in client.answers, 120)
            ran = client.answer(asked)["structuredContent"]
            return took
        answers_meanwhile(run)
        assert ran["stdout"] == "tried\n" and ran["violation_count"] > 10000
        assert len(ran["violations"]) == 50 or ran["violations_unlisted"]
        trace = next((state(user) / "runs" / ran["run_id"]).glob("trace.jsonl"))
        assert trace.stat().st_size > 48 << 20

        def look():
            looks = [client.send_tool("why_denied"),
                     client.send_tool("get_trace", run_id=ran["run_id"], **{"from": 10**9}),
                     client.send_tool("get_trace", violations_only=True, kinds=["env_var_access"]),
                     client.send("resources/read",
                                 {"uri": f"skillsandbox://runs/{ran['run_id']}/output"}),
                     client.send("resources/list")]
            return pings(client, lambda: all(n in client.answers for n in looks))
        answers_meanwhile(look)
        structured(client.tool("run_skill", skill_dir="hello"))


def test_the_approvals_are_held(user):
    skill(user, "keys", f"print(open('{user.home}/.ssh/id_ed25519').read())", read=["~/.ssh"])
    lock = user.write(state(user) / "approvals.lock", "", 0o600)
    with served(user, capabilities=ELICIT, era=MODERN) as client:
        def approve():
            asked = client.tool("run_skill", skill_dir="keys")
            assert asked["resultType"] == "input_required", asked
            key = next(iter(asked["inputRequests"]))
            return client.send("tools/call", {
                "name": "run_skill", "arguments": {"skill_dir": "keys"},
                "requestState": asked["requestState"],
                "inputResponses": {key: {"action": "accept", "content": {"decision": "always"}}}})

        with open(lock, "r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)

            def attempt():
                number = approve()
                took = pings(client, lambda: number in client.answers)
                refused = failure(client.answer(number))
                assert refused["code"] == "approval_required", refused
                assert "approvals.lock" in refused["message"], refused
                return took
            answers_meanwhile(attempt)
        done = client.answer(approve())  # the control
        assert SECRET in structured(done)["stdout"]
        structured(client.tool("run_skill", skill_dir="keys"))


def test_many_large_manifests(user):
    """tools/list needs the plans of all skills: another process makes them, so that pings are
    answered quickly."""
    deep = user.mkdir("deep/" + "/".join("d" * 100))
    places = [str(user.mkdir(deep / str(i))) for i in range(256)]
    for i in range(30):
        skill(user, f"wide{i}", HELLO, read=places)
    with served(user) as client:
        def attempt():
            time.sleep(2.1)  # the server keeps no plan for so long
            asked = [client.send("tools/list"),
                     client.send("prompts/get", {"name": "review_skill",
                                                 "arguments": {"skill": "wide0"}}),
                     client.send_tool("validate_skill", path="wide0")]
            took = pings(client, lambda: all(n in client.answers for n in asked))
            tools, review, valid = (client.answer(n) for n in asked)
            assert len(tools["tools"]) == 8 and "wide0" in str(review), (tools, review)
            assert structured(valid)["valid"]
            return took if len(took) > 5 else [9, 9]
        answers_meanwhile(attempt)


def many_files(ssb, name, bytes_each, n):
    """A skill whose files take a while to read. No digest of them is stored."""
    d = skill(ssb, name, HELLO)
    for i in range(n):
        path = ssb.mkdir(d / f"data/{i % 20}") / f"{i}.bin"
        with open(path, "wb") as f:
            f.write(bytes([i % 256]) * bytes_each)
    return d


def test_a_large_skill(user):
    """Reading and copying all files of a large skill does not block other calls of its client."""
    d = many_files(user, "large", 400 << 10, 400)
    skill(user, "hello", HELLO)
    user.ssb("approve", "--yes", d).ok()
    with served(user) as client:
        for tool, more in (("run_skill", {}), ("inspect_skill", {}),
                           ("run_skill", {"dry_run": True})):
            def attempt(tool=tool, more=more):
                for path in d.glob("data/*/*.bin"):
                    os.utime(path)  # so that each file is read again
                asked = client.send_tool(tool, skill_dir="large", **more)
                took = pings(client, lambda: asked in client.answers)
                structured(client.answer(asked))
                # The call takes so long that more than five pings fit into it. If there were only
                # five, the server was blocked.
                return took if len(took) > 5 else [9, 9]
            answers_meanwhile(attempt)
        # A call is canceled while the files are read: no run and no process is left, unless the
        # call was over before.
        for _ in range(ATTEMPTS):
            runs = len(user.runs())
            for path in d.glob("data/*/*.bin"):
                os.utime(path)
            asked = client.send_tool("run_skill", skill_dir="large")
            assert mcp_world.eventually(
                lambda n=asked: n in client.answers or children(client.process))
            client.cancel(asked)
            assert mcp_world.eventually(lambda: children(client.process) == [])
            structured(client.tool("run_skill", skill_dir="hello"))
            if asked not in client.answers and len(user.runs()) == runs + 1:
                return
            client.answers.clear()
        raise AssertionError("whatever was canceled ran")
