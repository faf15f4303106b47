"""Runs over `skillsandbox serve`: as tasks, canceled, traced, approved, and beyond every limit."""
import collections
import json
import os
import random
import socket
import statistics
import time

import pytest

import mcp_client
import mcp_world
import otlp_world
from harness import BY_USER, SECRET
from mcp_client import LEGACY, MODERN, Refused, failure, structured
from mcp_world import Lines
from serve_world import STUBBORN, Processes, children, http_served, meta, rss, served, skill

HELLO = "print('hello')"
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


# ---- tasks -------------------------------------------------------------------------------

def wait_for(client, task):
    """Waits until the task has ended, and returns it."""
    while True:
        got = client.call("tasks/get", {"taskId": task})
        if got["status"] != "working":
            return got
        time.sleep(0.1)


def test_a_long_run_becomes_a_task(ssb):
    gate = ssb.mkdir("gate")
    wait = f"import os, time\nwhile not os.path.exists('{gate}/end'): time.sleep(0.02)\n"
    skill(ssb, "long", f"print('begun', flush=True)\n{wait}print('done')", write=[gate])
    skill(ssb, "fails", f"{wait}raise SystemExit(3)", write=[gate])
    skill(ssb, "stubborn", STUBBORN)
    skill(ssb, "hello", HELLO)
    marker = f"task-{ssb.kind}-{os.getpid()}"
    with served(ssb, era=MODERN, capabilities=TASKS) as client:
        begin = time.monotonic()
        long = client.send_tool("run_skill", skill_dir="long")
        fails = client.send_tool("run_skill", skill_dir="fails")
        stubborn = client.send_tool("run_skill", skill_dir="stubborn", args=[marker])
        waits = client.send_tool("run_skill", {CAPABILITIES: {}}, skill_dir="long")
        there = Processes(marker)
        assert client.tool("run_skill", skill_dir="hello")["resultType"] == "complete"
        assert not client.answers or time.monotonic() - begin > 5, "not before it is long"
        begun = {name: client.answer(n) for name, n in
                 (("long", long), ("fails", fails), ("stubborn", stubborn))}
        assert {r["resultType"] for r in begun.values()} == {"task"}
        ids = {name: r["taskId"] for name, r in begun.items()}
        assert len(set(ids.values())) == 3

        assert client.call("tasks/get", {"taskId": ids["stubborn"]})["status"] == "working"
        client.call("tasks/cancel", {"taskId": ids["stubborn"]})
        there.gone()
        ssb.write(gate / "end", "")
        canceled = wait_for(client, ids["stubborn"])
        assert canceled["status"] == "cancelled" and "result" not in canceled

        done = wait_for(client, ids["long"])
        plain = client.answer(waits)  # the client without the tasks extension waits for its answer
        assert done["status"] == "completed" and plain["resultType"] == "complete"
        ours, theirs = structured(done["result"]), structured(plain)
        assert set(ours) == set(theirs) and ours["stdout"] == theirs["stdout"] == "begun\ndone\n"
        same = [k for k in ours if k not in ("run_id", "duration_ms", "trace", "output")]
        assert [ours[k] for k in same] == [theirs[k] for k in same]
        assert set(done["result"]) == set(plain)
        bad = wait_for(client, ids["fails"])
        assert bad["status"] == "completed" and bad["result"]["isError"]
        assert bad["result"]["structuredContent"]["exit_code"] == 3
        with pytest.raises(Refused):
            client.call("tasks/get", {"taskId": "0" * 32})
        with pytest.raises(Refused):
            client.call("tasks/get", {"taskId": ids["long"]}, meta={CAPABILITIES: {}})


def test_a_task_says_what_its_run_does(user):
    skill(user, "talks", """
        import time
        time.sleep(5.5)
        for i in range(200):
            print('step', i, flush=True)
            time.sleep(0.1)
        """)
    with served(user, era=MODERN, capabilities=TASKS) as client:
        task = client.tool("run_skill", skill_dir="talks")  # the call has no progressToken
        assert task["resultType"] == "task"
        seen = set()
        assert mcp_world.eventually(lambda: seen.add(client.call(
            "tasks/get", {"taskId": task["taskId"]})["statusMessage"]) or len(seen) > 3), seen
        assert sum("step" in message for message in seen) > 1, seen
        client.call("tasks/cancel", {"taskId": task["taskId"]})


# ---- canceled ----------------------------------------------------------------------------

TIMES = 10  # per caller; tests run as root and as a user


def verified(ssb):
    """Checks that each record is signed, complete and canceled. Returns how many there are."""
    paths = list((ssb.state / "skillsandbox/runs").glob("*/trace.jsonl"))
    for path in paths:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines[-1]["kind"] == "signature"
        assert [x["end"] for x in lines if x["kind"] == "end"] == ["canceled"], lines[-3:]
        ssb.ssb("audit", "verify", path).ok()
    return len(paths)


def tell(how, ssb, took):
    took = sorted(1000 * t for t in took)
    print(f"{how} as {ssb.kind}: until all are dead, ms: median {statistics.median(took):.1f}, "
          f"from {took[0]:.1f} to {took[-1]:.1f}")
    assert statistics.median(took) < 300, took


def test_canceling_is_quick(ssb):
    skill(ssb, "stubborn", STUBBORN)
    took = []
    with served(ssb) as client:
        for i in range(TIMES):
            marker = f"quick-{ssb.kind}-{os.getpid()}-{i}"
            number = client.send_tool("run_skill", skill_dir="stubborn", args=[marker])
            there = Processes(marker)
            begin = time.monotonic()
            client.cancel(number)
            there.gone()
            took.append(time.monotonic() - begin)
        assert not client.answers
    assert verified(ssb) == TIMES
    tell("notifications/cancelled", ssb, took)


def test_closing_the_stream_is_as_quick(ssb):
    skill(ssb, "stubborn", STUBBORN)
    took = []
    with http_served(ssb) as h:
        for i in range(TIMES):
            marker = f"close-{ssb.kind}-{os.getpid()}-{i}"
            message = h.message("run_skill", {"skill_dir": "stubborn", "args": [marker]},
                                {"progressToken": "p"} if i % 2 else None)
            with h.client() as c:
                c.send(body=message, token=h.token, **mcp_world.modern_fields(message))
                there = Processes(marker)
                begin = time.monotonic()
            there.gone()
            took.append(time.monotonic() - begin)
        structured(h.tool("list_skills"))
    assert verified(ssb) == TIMES
    tell("closed stream", ssb, took)


# ---- traced ------------------------------------------------------------------------------

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
MALFORMED = ["", "x", f"00-{TRACE}-{PARENT}", f"00-{TRACE}-{PARENT}-01-x", f"ff-{TRACE}-{PARENT}-01",
             f"00-{TRACE.upper()}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01",
             f"00-{TRACE}-{'0' * 16}-01", f"00-{'-' * 32}-{PARENT}-01", 7, None, {"a": 1},
             f"00-{TRACE}-{PARENT}-01\n"]


def test_the_callers_trace_goes_on(ssb):
    skill(ssb, "s", "import os; print(os.environ.get('TRACEPARENT'))")
    with otlp_world.collector() as c, \
            served(ssb, "--otel", env=otlp_world.environment(c)) as client:
        good = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        assert structured(client.tool("run_skill", skill_dir="s", meta=good))["stdout"] == "None\n"
        otlp_world.settled(ssb, 1)
        root = otlp_world.span_by_name(c)["skill_execution"]
        assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)
        assert {s.trace_id.hex() for _, s in c.spans} == {TRACE}
        assert not c.faults


def test_a_bad_trace_is_none(user):
    skill(user, "s", HELLO)
    with otlp_world.collector() as c, \
            served(user, "--otel", env=otlp_world.environment(c)) as client:
        numbers = [client.send_tool("run_skill", {"traceparent": bad}, skill_dir="s")
                   for bad in MALFORMED]
        runs = {structured(client.answer(n))["run_id"].replace("-", "") for n in numbers}
        text = otlp_world.settled(user, len(MALFORMED))
        assert not c.faults and "no spans" not in text, (c.faults, text)
        roots = [s for _, s in c.spans if s.name == "skill_execution"]
        assert {s.parent_span_id for s in roots} == {b""}
        assert {s.trace_id.hex() for s in roots} == runs and len(runs) == len(MALFORMED)


def test_nothing_is_sent_unasked(ssb):
    skill(ssb, "s", HELLO)
    with otlp_world.collector() as c, served(ssb, env=otlp_world.environment(c)) as client:
        structured(client.tool("run_skill", skill_dir="s",
                               meta={"traceparent": f"00-{TRACE}-{PARENT}-01"}))
        client.close()
        time.sleep(0.3)
        assert not c.requests and not otlp_world.log_text(ssb)


# ---- approved ----------------------------------------------------------------------------

@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_what_was_approved_is_shown(ssb, era):
    d = skill(ssb, "keys", f"print(open('{ssb.home}/.ssh/id_ed25519').read())", read=["~/.ssh"])

    def shown(client):
        dry = structured(client.tool("run_skill", skill_dir="keys", dry_run=True))
        looked = structured(client.tool("inspect_skill", skill_dir="keys"))
        plan = ssb.ssb("inspect", "--json", d).ok().json()
        assert plan.pop("consent")["state"] in ("none", "holds")
        assert looked["plan"] == dry["plan"] == plan
        assert looked["refusals"] == dry["refusals"]
        assert looked["runs"] == (not looked["refusals"])
        return looked
    with served(ssb, era=era) as client:
        assert "--read" in shown(client)["refusals"][0]["fix"]
        assert failure(client.tool("run_skill", skill_dir="keys"))
        assert ssb.ssb("approve", "--yes", d).code == 0
        after = shown(client)
        assert after["runs"] and ".ssh" in json.dumps(after["plan"]["granted"])
        assert SECRET in structured(client.tool("run_skill", skill_dir="keys"))["stdout"]
        ssb.ssb("approve", "--revoke", d).ok()
        assert not shown(client)["runs"]
        assert failure(client.tool("run_skill", skill_dir="keys"))


# ---- more denials or messages than the maximum -------------------------------------------

@pytest.mark.parametrize("n", [50, 51])
def test_denials_at_their_cap(user, n):
    for i in range(n):
        user.write(user.home / f".ssh/key{i:03}", SECRET)
    skill(user, "steals", f"""
        for i in range({n}):
            try:
                open(f'{user.home}/.ssh/key{{i:03}}')
                print('READ')
            except OSError:
                pass
        """)
    with served(user) as client:
        result = client.tool("run_skill", skill_dir="steals")
        r = structured(result)
        assert "READ" not in r["stdout"] and r["violation_count"] == n
        assert len(r["violations"]) == 50
        text = result["content"][0]["text"]
        assert ("and 1 more" in text) == (n == 51)
        why = json.dumps(structured(client.tool("why_denied", run_id=r["run_id"])))
        assert all(f".ssh/key{i:03}" in why for i in range(n))


MESSAGES = 10000


def malformed(rng):
    """A line that is not a message, or that asks for something that does not exist."""
    good = {"jsonrpc": "2.0", "id": 1000000 + rng.randrange(1000), "method": "tools/call",
            "params": {"name": "run_skill", "arguments": {"skill_dir": "hello"}}}
    kind = rng.randrange(9)
    if kind == 0:
        return bytes(rng.choice(b"{}[]\",:0123456789abcdef\\\x00\x1b\xff ") for _ in
                     range(rng.randrange(1, 200)))
    text = json.dumps(good).encode()
    if kind == 1:
        return text[:rng.randrange(1, len(text))]
    if kind == 2:
        at = rng.randrange(len(text) - 1)
        return text[:at] + bytes([rng.choice([0, 0x22, 0x5c, 0xff, 0x7b])]) + b"}" + text[at + 1:]
    if kind == 3:
        return b"[" * rng.randrange(1, 3000)
    if kind == 4:
        return json.dumps([good] * rng.randrange(1, 5)).encode()
    if kind == 5:
        good["params"]["arguments"] = rng.choice([7, [], "x", {"skill_dir": 1}, {"skill_dir": ""},
                                                  {"skill_dir": "hello", "args": [{}]}])
    elif kind == 6:
        good[rng.choice(["jsonrpc", "id", "method", "params"])] = rng.choice(
            [None, [], {}, 1.5, True, "\ud800", "x" * 5000])
    elif kind == 7:
        good["params"] = {"name": "run_skill", "_meta": rng.choice(
            [3, {"io.modelcontextprotocol/protocolVersion": rng.choice(["x", 7, "9999-01-01"])}])}
    else:
        good["method"] = rng.choice(["", "a" * 300, "tools/\0call", "resources/read", "tasks/get",
                                     "completion/complete", "subscriptions/listen"])
    return json.dumps(good).encode()


def lines_of(seed):
    rng = random.Random(seed)
    for _ in range(MESSAGES):
        yield malformed(rng).replace(b"\n", b" ")


def test_ten_thousand_bad_messages(ssb):
    skill(ssb, "hello", HELLO)
    with served(ssb) as client:
        structured(client.tool("run_skill", skill_dir="hello"))
        before = rss(client.process)
        batch = list(lines_of(7))
        # A changed line may still be a valid call. Then it starts a run, which must end.
        for i in range(0, MESSAGES, 500):
            client.raw(b"\n".join(batch[i:i + 500]) + b"\n")
            client.call("ping")
            client.answers.clear()
        assert mcp_world.eventually(lambda: not children(client.process))
        structured(client.tool("run_skill", skill_dir="hello"))
        assert rss(client.process) < before + (16 << 20), (before, rss(client.process))
        # A changed line that is still a valid call may start a helper process late.
        assert mcp_world.eventually(lambda: not children(client.process))


def put(c, h, body, fields):
    """Sends a request and returns its status. Connects again if the server has closed the
    connection, and tries again later if it sends too fast."""
    while True:
        try:
            c.send(body=body, token=h.token, **fields)
            r = c.answer()
            r.read()
            status, gone = r.status, r.will_close
        except OSError:
            status, gone = None, True
        if gone:
            c.close()
            c.__init__(h.port)
        if status != 429:
            return status
        time.sleep(0.02)


@BY_USER
def test_ten_thousand_bad_messages_over_http(ssb):
    skill(ssb, "hello", HELLO)
    with http_served(ssb) as h:
        structured(h.tool("run_skill", skill_dir="hello"))
        _, headers, _ = h.once(body=mcp_world.initialize())
        ways = ({}, {"Mcp_Session_Id": headers["Mcp-Session-Id"], "MCP_Protocol_Version": LEGACY},
                {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/call",
                 "Mcp_Name": "run_skill"})
        before = rss(h.process)
        seen = collections.Counter()
        with h.client() as c:
            for i, line in enumerate(lines_of(8)):
                seen[put(c, h, line, ways[i % 3])] += 1
        assert seen[400] > MESSAGES / 2 and set(seen) <= {200, 202, 400, 404, None}, seen
        assert seen[None] < 10, seen
        assert mcp_world.eventually(lambda: not children(h.process))
        structured(h.tool("run_skill", skill_dir="hello"))
        assert rss(h.process) < before + (16 << 20), (before, rss(h.process))


# ---- a share for each client ---------------------------------------------------------------

def test_one_client_does_not_take_all_runs(ssb):
    """With --max-runs 8, the first client may run four skills at once, the second client two. Over
    stdio there is only one client, which may run eight."""
    gate = ssb.mkdir("gate")
    wait = f"import os, time\nwhile not os.path.exists('{gate}/end'): time.sleep(0.02)\n"
    skill(ssb, "waits", wait + "print('done')", write=[gate])
    skill(ssb, "hello", HELLO)
    path = ssb.mkdir("run") / "mcp"

    def message(number, name):
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "run_skill", "arguments": {"skill_dir": name}, "_meta": meta()}}

    def refused(client, numbers):
        """Sends twice as many calls as may run. Returns the messages of the second half, which is
        refused."""
        for n in numbers:
            client.send(message(n, "waits"))
        return [failure(client.take()["result"])["message"] for _ in numbers[len(numbers) // 2:]]
    process = mcp_client.start(ssb, [ssb.mkdir("skills")], "--socket", str(path), "--max-runs", "8")
    try:
        assert str(path).encode() in process.stderr.readline()
        with socket.socket(socket.AF_UNIX) as a, socket.socket(socket.AF_UNIX) as b:
            a.connect(str(path))
            b.connect(str(path))
            one, two = Lines(a.fileno(), a.fileno()), Lines(b.fileno(), b.fileno())
            told = refused(one, range(1, 9))
            assert len(told) == 4 and all("4 runs of yours" in t for t in told), told
            assert structured(two.ask(message(1, "hello"))["result"])["stdout"] == "hello\n"
            told = refused(two, range(2, 6))
            assert all("2 runs of yours" in t and "--max-runs" in t for t in told), told
            ssb.write(gate / "end", "")
            done = [structured(one.take()["result"])["stdout"] for _ in range(4)]
            assert done == ["done\n"] * 4
            assert structured(one.ask(message(20, "hello"))["result"])["stdout"] == "hello\n"
    finally:
        process.terminate()
        assert process.wait(30) == 0
    (gate / "end").unlink()
    with served(ssb, "--max-runs", "4") as client:
        numbers = [client.send_tool("run_skill", skill_dir="waits") for _ in range(4)]
        full = failure(client.tool("run_skill", skill_dir="hello"))
        assert "4 runs are running" in full["message"], full
        ssb.write(gate / "end", "")
        assert {structured(client.answer(n))["stdout"] for n in numbers} == {"done\n"}
    for bad in ("0", "257", "-1", "x", "", "1x", "9" * 30):
        r = ssb.ssb("serve", "--skills", ssb.mkdir("skills"), "--max-runs", bad)
        assert r.code == 2 and "--max-runs" in r.errors, repr(r)
