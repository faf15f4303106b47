"""run --otel: what arrives at the owner's collector equals the record."""
import base64
import copy
import json
import uuid

import pytest
from google.protobuf import json_format

import otlp_server
import otlp_world as world
import records
from otlp_server import attributes

PROTOCOLS = ["http/protobuf", "http/json"]
SKILL = """
    import os, subprocess
    print("secret words of the skill")
    for _ in range(3):
        open("/etc/passwd").close()
    for path in (os.path.expanduser("~/.ssh/id_ed25519"), "/etc/shadow"):
        try:
            open(path)
        except OSError:
            pass
    subprocess.run(["/bin/true", "an argument"])
    """
NAMES = {"file_read": "sandbox.fs.read", "file_write": "sandbox.fs.write",
         "file_blocked": "sandbox.fs.blocked", "process_spawned": "sandbox.process.spawn",
         "env_var_access": "sandbox.policy.env_filter", "exit_code": "sandbox.process.exit",
         "skill_started": "sandbox.skill.started", "skill_completed": "sandbox.skill.completed",
         "skill_failed": "sandbox.skill.failed",
         "network_egress_blocked": "sandbox.policy.network_deny"}


def check_tree(runner, c):
    """Compares the spans with the record, and returns them by name."""
    lines = records.last(runner)
    spans = world.span_by_name(c)
    root = spans["skill_execution"]
    run_id = lines[0]["run_id"]
    assert set(spans) <= {"skill_execution", "sandbox.setup", "sandbox.run", "sandbox.teardown"}
    assert len({s.span_id for s in spans.values()}) == len(spans)
    begin = world.micros(lines[0]["time"]) * 1000
    end = begin + lines[-1]["mono"] * 1000
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (begin, end)
    at = begin
    for name in ("sandbox.setup", "sandbox.run", "sandbox.teardown"):
        if name in spans:  # each span begins when the one before it ends
            s = spans[name]
            assert s.trace_id == root.trace_id and s.parent_span_id == root.span_id
            assert s.start_time_unix_nano == at
            at = s.end_time_unix_nano
    assert at == end
    a = attributes(root.attributes)
    assert a["sandbox.run.id"] == a["sandbox.trace_id"] == run_id
    assert a["sandbox.skill.name"] == lines[0]["skill_name"]
    assert a["sandbox.plan.digest"] == lines[0]["plan_digest"]
    last = lines[-2]
    assert a["sandbox.exit_code"] == a["process.exit.code"] == last["exit_code"]
    assert a["sandbox.end"] == last["end"]
    assert a["sandbox.violations.count"] == last["counters"]["violations"]
    assert a["sandbox.duration_ms"] == last["duration_us"] // 1000
    assert [attributes(e.attributes)["sandbox.record.seq"] for e in root.events] == \
        [x["seq"] for x in lines if x.get("violation")]
    return spans


def check_logs(runner, c):
    """Compares the log records with the decisions of the record, one to one."""
    lines, spans = records.last(runner), world.span_by_name(c)
    decisions, logs = world.decisions(runner), world.log_by_seq(c)
    assert sorted(logs) == [x["seq"] for x in decisions]
    begin = world.micros(lines[0]["time"])
    for x in decisions:
        r, data = logs[x["seq"]], x.get("data", {})
        a = attributes(r.attributes)
        assert r.time_unix_nano == (begin + x["mono"]) * 1000
        assert r.observed_time_unix_nano == world.micros(x["time"]) * 1000
        assert r.event_name == NAMES[x["kind"]] and a["sandbox.event.kind"] == x["kind"]
        assert r.flags == 1 and r.trace_id == spans["skill_execution"].trace_id
        span = next(s for s in spans.values() if s.span_id == r.span_id)
        assert span.start_time_unix_nano <= r.time_unix_nano <= span.end_time_unix_nano
        if "message" in x:
            assert r.body.string_value == x["message"]
        assert a.get("process.pid") == data.get("pid")
        assert a.get("process.parent_pid") == data.get("ppid")
        if data.get("op") == "exec":
            assert a["process.executable.path"] == data["path"]
            assert a["process.command_args"] == data["args"]
            assert a.get("sandbox.process.caller", "") == data["program"]
            assert "file.path" not in a
        else:
            assert a.get("process.executable.path") == data.get("program")
            assert a.get("file.path") == data.get("path")
        assert a.get("security_rule.name") == data.get("rule", data.get("reason"))
        assert a.get("error.type") == data.get("error")
        assert a.get("sandbox.violation", False) == x.get("violation", False)
        assert r.severity_number == (13 if x.get("violation") else 17 if x["kind"] ==
                                     "skill_failed" else 5 if data.get("status") == "absent" else 9)
        assert (a.get("sandbox.repeat.of"), a.get("sandbox.repeat.count")) == \
            (x.get("repeat_of"), x.get("count"))
    return logs


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_spans_and_log_records_are_the_record(ssb, protocol):
    with world.collector() as c:
        r = world.exported(ssb, c, ssb.skill(SKILL, name="probe"),
                           env={"OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
        assert r.code == 0 and r.out == b"secret words of the skill\n", r
        spans = check_tree(ssb, c)
        logs = check_logs(ssb, c)
    assert len(spans) == 4 and len(logs) > 10
    assert all(s.status.code == 1 for s in spans.values())
    assert attributes(spans["skill_execution"].attributes)["sandbox.violations.count"] == 2
    assert attributes(spans["skill_execution"].attributes)["sandbox.layer.seccomp"] == "on"
    assert any("sandbox.repeat.of" in attributes(r.attributes) for r in logs.values())
    kinds = {"http/protobuf": "application/x-protobuf", "http/json": "application/json"}
    assert {h["Content-Type"] for _, h, _, _ in c.requests} == {kinds[protocol]}
    run_id = records.last(ssb)[0]["run_id"]
    assert spans["skill_execution"].trace_id == uuid.UUID(run_id).bytes
    assert spans["skill_execution"].parent_span_id == b""


def test_the_output_of_the_skill_stays_here(ssb):
    with world.collector() as c:
        r = world.exported(ssb, c, ssb.skill(SKILL))
        assert b"secret words" in r.out  # the skill printed it, so it could have been sent
        sent = "".join(str(x) for _, x in c.spans + c.logs)
    assert "secret words" not in sent and "an argument" in sent


def test_both_forms_say_the_same(ssb):
    skill = ssb.skill(SKILL)
    with world.collector() as c, world.collector() as d:
        world.exported(ssb, c, skill)
        world.exported(ssb, d, skill, n=2, env={"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})

        def shape(x):
            return sorted((r.event_name, sorted(attributes(r.attributes))) for _, r in x.logs)
        # Two runs do not open exactly the same files, but the kinds of events are the same.
        assert {n for n, _ in shape(c)} == {n for n, _ in shape(d)}
        assert {tuple(k) for _, k in shape(c)} == {tuple(k) for _, k in shape(d)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_network_by_its_own_names(ssb, protocol):
    """Network attempts are exported with the attribute names of the network. Nothing leaves the
    sandbox: it answers names itself, and the other attempts fail."""
    code = """
        import socket
        for name in ("api.example.com", "evil.example.net"):
            try:
                socket.getaddrinfo(name, 443, socket.AF_INET, socket.SOCK_STREAM)
            except OSError:
                pass
        try:
            socket.create_connection(("203.0.113.9", 4444), 1)
        except OSError:
            pass
        """
    with world.collector() as c:
        world.exported(ssb, c, "--net", "api.example.com:443", ssb.skill(code),
                       env={"OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
        found = {}
        for _, r in c.logs:
            a = attributes(r.attributes)
            key = a.get("dns.question.name") or a.get("network.peer.address")
            found[(r.event_name, key)] = (r, a)
    _, known = found[("sandbox.dns.resolve", "api.example.com")]
    r, unknown = found[("sandbox.policy.network_deny", "evil.example.net")]
    assert "server.address" not in known and unknown["sandbox.violation"] is True
    assert r.severity_number == 13 and isinstance(unknown["sandbox.dns.qtype"], int)
    r, a = found[("sandbox.policy.network_deny", "203.0.113.9")]
    assert r.severity_number == 13 and a["sandbox.violation"] is True
    assert a["server.address"] == "203.0.113.9" and a["server.port"] == a["network.peer.port"] == 4444
    assert a["network.transport"] == "tcp" and a["security_rule.category"] == "network"
    assert a["security_rule.name"] == a["sandbox.reason"]


@pytest.mark.parametrize("flags, code, command, name, status", [
    ([], 3, ["/bin/sh", "-c", "exit 3"], "exit_status", "exited, exit status 3"),
    (["--timeout", "4"], 124, ["/bin/sleep", "60"], "timeout", "timeout, exit status 124"),
    ([], 128 + 9, ["/bin/sh", "-c", "kill -9 $$"], "signaled", "signaled, exit status 137"),
])
def test_a_failed_run_is_an_error(ssb, flags, code, command, name, status):
    with world.collector() as c:
        assert world.exported(ssb, c, *flags, "--", *command).code == code
        spans = check_tree(ssb, c)
        check_logs_of_failure(ssb, c)
    assert spans["skill_execution"].status.code == spans["sandbox.run"].status.code == 2
    assert spans["skill_execution"].status.message == status
    assert spans["sandbox.setup"].status.code == 1
    assert attributes(spans["skill_execution"].attributes)["error.type"] == name


def check_logs_of_failure(runner, c):
    logs = world.log_by_seq(c)
    assert sorted(logs) == [x["seq"] for x in world.decisions(runner)]
    assert [r.severity_number for r in logs.values() if r.event_name == "sandbox.skill.failed"] \
        == [17]


def test_a_program_that_does_not_exist_has_no_run_phase(ssb):
    with world.collector() as c:
        r = world.exported(ssb, c, ssb.skill("", command="/nowhere/at/all"))
        assert r.code == 127
        spans = world.span_by_name(c)
    assert spans["skill_execution"].status.code == 2
    assert attributes(spans["skill_execution"].attributes)["sandbox.end"] == "failed"


def test_more_records_than_a_batch_holds(ssb):
    code = """
        for i in range(1300):
            try:
                open(f"/usr/lib/none-{i}")
            except OSError:
                pass
        """
    with world.collector() as c:
        world.exported(ssb, c, ssb.skill(code))
        logs = check_logs(ssb, c)
    assert len(logs) > 1300
    assert max(c.batches) == 512 and len(c.batches) == -(-len(logs) // 512)


def test_denials_past_the_cap_of_a_span_are_counted(ssb):
    code = """
        for i in range(200):
            try:
                open(f"/root/none-{i}" if i % 2 else f"/srv/none/.ssh/none-{i}")
            except OSError:
                pass
        """
    with world.collector() as c:
        world.exported(ssb, c, ssb.skill(code))
        root = world.span_by_name(c)["skill_execution"]
        denied = [x for x in records.last(ssb) if x.get("violation")]
        assert len(denied) == 200
        assert len(root.events) == 128 and root.dropped_events_count == len(denied) - 128
        assert sorted(world.log_by_seq(c)) == [x["seq"] for x in world.decisions(ssb)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_names_that_are_no_text(ssb, protocol):
    code = r"""
        for name in (b"/tmp/\xff\xfe", b"/tmp/\x1b[31m\n", "/tmp/\u202eé\x9b".encode(), b"/tmp/" + b"x" * 250):
            open(name, "wb").close()
        """
    with world.collector() as c:
        world.exported(ssb, c, ssb.skill(code), env={"OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
        paths = {attributes(r.attributes).get("file.path") for _, r in c.logs}
    assert {r"/tmp/\xff\xfe", r"/tmp/\x1b[31m\x0a", "/tmp/\u202eé\\xc2\\x9b",
            "/tmp/" + "x" * 250} <= paths


def test_parent_and_resource_come_from_the_owner(ssb):
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    env = {"TRACEPARENT": f"00-{trace}-{parent}-01", "TRACESTATE": "vendor=1",
           "OTEL_SERVICE_NAME": "my-agents",
           "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=a%20b%2Cc, service.name=x,"
                                       "service.version=7,team=red,team=blue"}
    with world.collector() as c:
        world.exported(ssb, c, "--", "/bin/true", env=env)
        root = world.span_by_name(c)["skill_execution"]
        resources = [r for r, _ in c.spans + c.logs]
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (trace, parent)
    assert root.trace_state == "vendor=1" and root.flags == 0x301
    assert {s.flags for _, s in c.spans if s.name != "skill_execution"} == {0x101}
    assert {r.trace_id.hex() for _, r in c.logs} == {trace}
    for r in resources:
        assert r["service.name"] == "my-agents" and r["service.version"] == "7"
        assert r["deployment.environment.name"] == "a b,c" and r["team"] == "red"
        assert r["os.type"] == "linux"


@pytest.mark.parametrize("parent", [
    "00-" + "0" * 32 + "-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16
    + "-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "nonsense",
    "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"])
def test_a_parent_that_is_none_is_not_used(user, parent):
    with world.collector() as c:
        world.exported(user, c, "--", "/bin/true", env={"TRACEPARENT": parent})
        root = world.span_by_name(c)["skill_execution"]
    assert root.parent_span_id == b"" and "TRACEPARENT" in world.log_text(user)
    assert root.trace_id == uuid.UUID(records.last(user)[0]["run_id"]).bytes


def test_a_parent_that_is_not_sampled(user):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    with world.collector() as c:
        user.run("--otel", "--", "/bin/true", env=world.environment(c, TRACEPARENT=parent))
        world.settled(user)
        assert not c.spans and c.logs and not c.faults
        assert {r.flags for _, r in c.logs} == {0}


def test_headers_and_endpoints_of_one_signal(ssb):
    secret = "Bearer " + "s3cr3t" * 4
    env = {"OTEL_EXPORTER_OTLP_HEADERS": f"authorization={secret.replace(' ', '%20')},x-two=2",
           "OTEL_EXPORTER_OTLP_LOGS_HEADERS": "x-logs=only"}
    with world.collector() as c, world.collector() as d:
        env["OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"] = d.url + "/v1/logs"
        world.exported(ssb, c, "--", "/bin/true", env=env)
        (path, to_c, _, _), = c.requests
        assert not d.faults and d.logs and not c.logs
        assert path == "/v1/traces" and to_c["authorization"] == secret and to_c["x-two"] == "2"
        for path, headers, _, _ in d.requests:
            assert path == "/v1/logs" and headers["x-logs"] == "only"
            assert "authorization" not in headers
    for f in (ssb.state / "skillsandbox").rglob("*"):
        assert f.is_dir() or secret.encode() not in f.read_bytes(), f
    assert "s3cr3t" not in str([str(x) for _, x in c.spans + d.logs])


def test_an_endpoint_with_a_path(user):
    with world.collector() as c:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": c.url + "/base/"}
        user.run("--otel", "--", "/bin/true", env=env)
        world.settled(user)
        assert {r[0] for r in c.requests} == {"/base/v1/traces", "/base/v1/logs"}


@pytest.mark.parametrize("env, paths", [
    ({"OTEL_SDK_DISABLED": "TRUE"}, set()),
    ({"OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}, set()),
    ({"OTEL_TRACES_EXPORTER": "none"}, {"/v1/logs"}),
    ({"OTEL_LOGS_EXPORTER": "none"}, {"/v1/traces"}),
    ({"OTEL_SDK_DISABLED": "false"}, {"/v1/traces", "/v1/logs"}),
])
def test_what_is_switched_off_is_not_sent(user, env, paths):
    with world.collector() as c:
        assert user.run("--otel", "--", "/bin/true", env=world.environment(c, **env)).code == 0
        if paths:
            world.settled(user)
        else:
            # If nothing is exported, there is nothing to wait for. So the test exports a second
            # run, and this must be the only one that arrives.
            world.exported(user, c, "--", "/bin/true")
            assert len({r.trace_id for _, r in c.logs}) == 1
            return
        assert {r[0] for r in c.requests} == paths


def test_only_when_asked_for(user):
    """Without --otel the variables alone export nothing. The control is the same run with
    --otel."""
    with world.collector() as c:
        user.run("--", "/bin/true", env=world.environment(c)).ok()
        user.run("--otel", "--dry-run", "--", "/bin/true", env=world.environment(c)).ok()
        assert not c.requests
        world.exported(user, c, "--", "/bin/true")
        assert len({r.trace_id for _, r in c.logs}) == 1


def test_the_skill_has_no_say_in_where_it_goes(ssb):
    code = """
        import os
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
        print(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], "TRACEPARENT" in os.environ)
        """
    with world.collector() as c, world.collector() as evil:
        r = world.exported(ssb, c, "--env", f"OTEL_EXPORTER_OTLP_ENDPOINT={evil.url}",
                           ssb.skill(code))
        assert r.text.split() == [evil.url, "False"]
        assert not evil.requests and c.spans and c.logs


@pytest.mark.parametrize("env, text", [
    ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, "http://"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:pw1234@localhost"}, "HEADERS"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://host:99999"}, "http://"),
    ({"OTEL_EXPORTER_OTLP_HEADERS": "a=b%0d%0aX-Evil: 1"}, "OTLP_HEADERS"),
    ({"OTEL_EXPORTER_OTLP_HEADERS": "content-length=pw1234"}, "OTLP_HEADERS"),
])
def test_what_cannot_be_followed_is_said_and_the_run_goes_on(user, env, text):
    r = user.run("--otel", "--", "/bin/echo", "hi", env=env).ok()
    assert r.text == "hi\n" and text in r.errors and "nothing will be exported" in r.errors
    assert "pw1234" not in r.errors


def test_what_is_left_out_is_noted(user):
    with world.collector() as c:
        world.exported(user, c, "--", "/bin/true",
                       env={"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"})
        assert all("Content-Encoding" not in r[1] for r in c.requests)
    assert "uncompressed" in world.log_text(user)


def test_the_receiver_is_strict():
    """The collector of these tests refuses what the specification forbids. Otherwise the other
    tests would prove nothing."""
    message = otlp_server.load_schema()["ExportLogsServiceRequest"]
    good = {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "x"}, "logRecords": [
        {"timeUnixNano": "1", "severityNumber": 9, "traceId": "ab" * 16, "spanId": "cd" * 8}]}]}]}

    def take(change):
        tree = copy.deepcopy(good)
        change(tree["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0])
        m = otlp_server.parse(message, "application/json", json.dumps(tree).encode())
        return list(otlp_server.take_logs(m))
    assert take(lambda r: None)[0][1].trace_id == b"\xab" * 16
    for bad in ({"traceId": base64.b64encode(b"a" * 16).decode()}, {"timeUnixNano": 1},
                {"severityNumber": "INFO"}, {"unknown": 1}, {"spanId": "00" * 8},
                {"attributes": [{"key": "a", "value": {"intValue": 1}}]},
                {"attributes": 2 * [{"key": "a", "value": {"boolValue": True}}]}):
        with pytest.raises((otlp_server.Fault, json_format.ParseError)):
            take(lambda r: r.update(bad))
    binary = message.FromString(b"").SerializeToString() + b"\x7a\x01x"  # field 15
    with pytest.raises(otlp_server.Fault):
        otlp_server.parse(message, "application/x-protobuf", binary)
