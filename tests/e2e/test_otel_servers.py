"""Collectors that hang, lie, refuse or do not exist: the run is not affected, and
otel.log has a line with the outcome of the export."""
import contextlib
import datetime
import ipaddress
import os
import pathlib
import signal
import socket
import ssl
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import otlp_world as world
from harness import execute, wait_for
from otlp_server import load_schema, retry_after, status

OK = b"HTTP/1.1 200 OK\r\n"
TIGHT = {"OTEL_EXPORTER_OTLP_TIMEOUT": "300"}
ENOUGH = {"OTEL_EXPORTER_OTLP_TIMEOUT": "4000"}  # ms; a server may pause for a moment

# name: (what the server does with every request, whether the exporter takes this as success)
BEHAVIOURS = {
    "hangs": (("hang",), False),
    "resets": (("drop",), False),
    "closes": (("raw", b""), False),
    "garbage": (("raw", b"\x00\x01\x02 what is this\r\n\r\n" * 40), False),
    "half a head": (("raw", OK + b"Content-Le"), False),
    "another protocol": (("raw", b"SSH-2.0-OpenSSH_9.2\r\n"), False),
    "endless head": (("endless", OK, b"X-A: " + b"a" * 1000 + b"\r\n"), False),
    "endless body": (("endless", OK + b"\r\n", b"b" * 5000), True),
    "lies about its length": (("raw", OK + b"Content-Length: 999999999\r\n\r\nx"), True),
    "nonsense in the body": (("raw", OK + b"Content-Length: 4\r\n\r\n\xff\xff\xff\xff"), True),
    "refuses": (status(400, b"no"), False),
    "is busy for an hour": (retry_after(3600), False),
    "redirects": (("answer", 302, {"Location": "http://127.0.0.1:1/"}, b""), False),
    "takes with 202": (status(202), True),
}


def exporters(runner):
    """The processes of this caller that export a run."""
    found = []
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (p / "comm").read_text() == "skillsandbox-ot\n" and \
                    f"XDG_STATE_HOME={runner.state}".encode() in (p / "environ").read_bytes():
                found.append(p)
        except OSError:
            pass
    return found


@pytest.fixture(autouse=True)
def no_exporter_stays(request):
    runner = request.getfixturevalue("ssb" if "ssb" in request.fixturenames else "user")
    yield
    for p in exporters(runner):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(p.name), signal.SIGKILL)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_no_server_can_hold_up_or_fail_a_run(ssb, name):
    behaviour, taken = BEHAVIOURS[name]
    argv = ["--", "/bin/sh", "-c", "echo out; echo err >&2; exit 7"]
    with world.collector() as c:
        c.plan = [behaviour] * 1000
        plain, with_otel = [], []

        def is_as_quick():
            return plain and min(with_otel) < 2 * min(plain) + 0.05
        # Runs are made with and without --otel in turns. If --otel is slower, more runs are made,
        # because the machine may be busy.
        while len(plain) < 5 or (len(plain) < 30 and not is_as_quick()):
            for flags, times in (([], plain), (["--otel"], with_otel)):
                begin = time.monotonic()
                r = ssb.run(*flags, *argv,
                            env=world.environment(c, **(ENOUGH if taken else TIGHT)))
                times.append(time.monotonic() - begin)
                assert (r.code, r.out, r.err) == (7, b"out\n", b"err\n"), r
        assert is_as_quick(), (plain, with_otel)
        wait_for(lambda: c.requests)
        n = len(with_otel)
        if taken:
            text = world.settled(ssb, n)
            assert text.count("exported the spans") == n and "; 0 log records lost" in text
        elif name in ("garbage", "another protocol", "refuses", "redirects", "endless head",
                      "is busy for an hour"):
            text = world.settled(ssb, n)
            assert text.count("exported no spans, 0 log records") == n


def test_no_collector_listens(ssb):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # bound, but not listening: connections are refused
        url = f"http://127.0.0.1:{s.getsockname()[1]}"
        begin = time.monotonic()
        ssb.run("--otel", "--", "/bin/true", env=world.environment(url)).ok()
        assert time.monotonic() - begin < 10
        assert wait_for(lambda: exporters(ssb))  # its exporter still tries to send


def test_a_collector_that_comes_late_gets_it(ssb):
    with world.reserved() as port:
        url = f"http://127.0.0.1:{port}"
        ssb.run("--otel", "--", "/bin/true", env=world.environment(url)).ok()
        wait_for(lambda: exporters(ssb))
        time.sleep(0.3)
        with world.collector(port=port) as c:
            world.settled(ssb)
            assert c.spans and c.logs and not c.faults


@pytest.mark.parametrize("code", [429, 502, 503, 504])
def test_it_tries_again_when_the_server_says(ssb, code):
    with world.collector(retry_after(1, code), retry_after(1, code)) as c:
        world.exported(ssb, c, "--", "/bin/true")
        times = [t for path, _, _, t in c.requests if path == "/v1/traces"]
        sizes = {n for path, _, n, _ in c.requests if path == "/v1/traces"}
    assert len(times) == 3 and len(sizes) == 1  # the same data, three times
    assert all(b - a >= 0.95 for a, b in zip(times, times[1:]))
    assert len(c.spans) == 4  # accepted once


def test_retry_after_may_be_a_date(user):
    at = int(time.time()) + 8
    due = time.monotonic() + at - time.time()
    date = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
    with world.collector(retry_after(date.strftime("%a, %d %b %Y %H:%M:%S GMT"))) as c:
        world.exported(user, c, "--", "/bin/true")
        times = [t for path, _, _, t in c.requests if path == "/v1/traces"]
    assert len(times) == 2 and due - 1 <= times[1] <= due + 10


def test_it_waits_longer_each_time(user):
    with world.collector(*[status(503)] * 4) as c:
        world.exported(user, c, "--", "/bin/true")
        times = [t for path, _, _, t in c.requests if path == "/v1/traces"]
    gaps = [b - a for a, b in zip(times, times[1:])]
    for gap, base in zip(gaps, (0.5, 1, 2, 4)):
        assert base / 2 - 0.01 <= gap <= base * 1.5 + 5, gaps


@pytest.mark.parametrize("code", [400, 401, 404, 413, 500, 501])
def test_other_answers_are_final(user, code):
    with world.collector(*[status(code)] * 50) as c:
        user.run("--otel", "--", "/bin/true", env=world.environment(c)).ok()
        text = world.settled(user)
        assert [r[0] for r in c.requests].count("/v1/traces") == 1
        assert f"answered {code} to the spans" in text
        assert "exported no spans, 0 log records" in text


def test_a_refused_batch_does_not_lose_the_next(user):
    code = "\n".join(f"try: open('/usr/lib/none-{i}')\nexcept OSError: pass" for i in range(1100))
    with world.collector(("take", b""), status(400)) as c:
        user.run("--otel", user.skill(code), env=world.environment(c)).ok()
        text = world.settled(user)
        assert not c.faults and len(c.logs) > 512 and "; 512 log records lost" in text


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_partial_success_is_noted_and_not_repeated(user, protocol):
    if protocol == "http/json":
        body = b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too \\u001b[31mmany"}}'
    else:
        answer = load_schema()["ExportTraceServiceResponse"]()
        answer.partial_success.rejected_spans = 2
        answer.partial_success.error_message = "too \x1b[31mmany"
        body = answer.SerializeToString()
    with world.collector(("take", body)) as c:
        world.exported(user, c, "--", "/bin/true",
                       env={"OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
        assert [r[0] for r in c.requests].count("/v1/traces") == 1
    assert "rejected 2 of the spans: too ?[31mmany" in world.log_text(user)


def test_the_process_that_exports(ssb):
    """The process that exports is detached, has a low priority and limits, and has no file or
    secret of the caller."""
    with world.collector(("hang",)) as c:
        secret = "hush-hush"
        ssb.run("--otel", "--", "/bin/true", env=world.environment(
            c, OTEL_EXPORTER_OTLP_HEADERS=f"x-key={secret}"), stdin=b"abc").ok()
        p, = wait_for(lambda: exporters(ssb))
        wait_for(lambda: c.requests)
        fields = (p / "stat").read_text().rsplit(")", 1)[1].split()
        parent, session, nice = fields[1], fields[3], fields[16]
        assert nice == "10" and session != str(os.getsid(0))
        assert (pathlib.Path("/proc") / parent / "comm").read_text() != "skillsandbox\n"
        targets = {os.readlink(f) for f in (p / "fd").iterdir()}
        assert {t.split(":")[0] for t in targets} <= {
            "/dev/null", "socket", str(ssb.state / "skillsandbox/otel.log"),
            *map(str, (ssb.state / "skillsandbox/runs").glob("*/trace.jsonl"))}, targets
        limits = {x.split("  ")[0]: x.split()[-3:-1] for x in (p / "limits").read_text().splitlines()}
        assert int(limits["Max address space"][0]) < 1 << 30
        assert limits["Max core file size"] == ["0", "0"]
        assert secret.encode() not in (p / "cmdline").read_bytes()
        assert (p / "environ").stat().st_uid == 0  # other processes of the user cannot read it


def test_the_log_is_private_and_bounded(user):
    log = user.state / "skillsandbox/otel.log"
    with world.collector() as c:
        world.exported(user, c, "--", "/bin/true")
        assert log.stat().st_mode & 0o777 == 0o600 and log.stat().st_uid == user.uid
        user.write(log, "x" * (256 * 1024 + 1) + "\n", 0o600)
        world.exported(user, c, "--", "/bin/true")
        assert log.stat().st_size < 1000
        assert log.with_name("otel.log.1").stat().st_size > 256 * 1024


def test_a_log_that_is_a_trap(user):
    """The name of the log is a symlink or a FIFO: the exporter does not follow the symlink and does
    not wait for a reader of the FIFO."""
    with world.collector() as c:
        user.run("--", "/bin/true").ok()
        log, victim = user.state / "skillsandbox/otel.log", user.work / "victim"
        user.write(victim, "untouched")
        os.symlink(victim, log)
        user.run("--otel", "--", "/bin/true", env=world.environment(c)).ok()
        wait_for(lambda: c.logs)
        assert victim.read_text() == "untouched"
        log.unlink()
        os.mkfifo(log, 0o600)
        os.chown(log, user.uid, user.gid)
        c.logs.clear()
        user.run("--otel", "--", "/bin/true", env=world.environment(c)).ok()
        wait_for(lambda: c.logs)


# ---- https ---------------------------------------------------------------

def make_tls(runner):
    """Makes a self-signed certificate for 127.0.0.1. Returns the TLS context and the certificate's
    file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "collector")])
    now = datetime.datetime.utcnow()
    cert = (x509.CertificateBuilder().subject_name(name).issuer_name(name)
            .public_key(key.public_key()).serial_number(1)
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName(
                [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .add_extension(x509.BasicConstraints(True, None), True)
            .sign(key, hashes.SHA256()))
    pem = cert.public_bytes(serialization.Encoding.PEM)
    ca = runner.write(runner.work / "ca.pem", pem)
    both = runner.write(runner.work / "both.pem", pem + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()), 0o600)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context, ca


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_https(ssb, protocol):
    context, ca = make_tls(ssb)
    with world.collector(retry_after(1), tls=context) as c:
        env = {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(ca), "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
               "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20abc,x-empty="}
        world.exported(ssb, c, "--", "/bin/true", env=env)
        assert len(c.spans) == 4 and c.logs
        assert [r[0] for r in c.requests].count("/v1/traces") == 2  # answers: 503, 200
        assert all(r[1]["authorization"] == "Basic abc" and r[1]["x-empty"] == "" and
                   "Expect" not in r[1] for r in c.requests)


def test_https_with_an_unknown_authority(ssb):
    context, _ = make_tls(ssb)
    with world.collector(tls=context) as c:
        ssb.run("--otel", "--", "/bin/true", env=world.environment(c)).ok()
        text = world.settled(ssb)
        assert not c.requests and "certificate" in text.lower()
        assert "exported no spans, 0 log records" in text


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_without_libcurl(ssb, scheme):
    hide = "".join(f"mount --bind /dev/null {p} && " for p in
                   pathlib.Path("/usr/lib").glob("*/libcurl*.so.4"))
    assert hide
    script = "mount --make-rprivate / && " + hide + 'exec "$@"'
    env = world.environment(f"{scheme}://127.0.0.1:9", **ssb.environment())
    r = execute(["unshare", "--mount", "sh", "-c", script, "sh", *ssb.identity(), ssb.binary, "run",
                 "--otel", "--", "/bin/echo", "hi"], env=env)
    assert (r.code, r.out, r.err) == (0, b"hi\n", b"")
    text = world.settled(ssb)
    assert "install the package libcurl4" in text and "exported no spans" in text


def test_no_proxy_for_plain_http(user):
    """Plain http ignores the proxy variables. The control is https, which uses the proxy."""
    with world.collector() as c, world.collector() as proxy:
        env = {name: proxy.url for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY")}
        world.exported(user, c, "--", "/bin/true", env=env)
        assert c.spans and c.logs and not proxy.requests
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        s.settimeout(30)
        env = {"https_proxy": f"http://127.0.0.1:{s.getsockname()[1]}"}
        user.run("--otel", "--", "/bin/true",
                 env=world.environment("https://collector.example:4318", **env)).ok()
        peer, _ = s.accept()
        with peer:
            assert peer.recv(4096).startswith(b"CONNECT collector.example:4318 HTTP/1.1\r\n")


def test_ipv6(user):
    """A collector on this machine gets the export by IPv6."""
    with socket.socket(socket.AF_INET6) as s:
        s.bind(("::1", 0))
        s.listen()
        s.settimeout(30)
        url = f"http://[::1]:{s.getsockname()[1]}"
        user.run("--otel", "--", "/bin/true", env=world.environment(url)).ok()
        peer, _ = s.accept()
        with peer:
            assert peer.recv(4096).startswith(b"POST /v1/traces HTTP/1.1\r\nHost: [::1]:")
