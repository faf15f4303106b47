"""An announced body (Expect: 100-continue) goes to the server only when the server asks for it.
A server that does not ask may read the body as the next request, for example for another host."""
import hashlib

from net_fixtures import net, outside, rule

WEB = rule("api.example.test", 8080, protocol="http")

SMUGGLE = """
other = (b'GET /smuggled HTTP/1.1\\r\\nHost: other.example.test\\r\\n'
         b'Connection: close\\r\\n\\r\\n')
head = ('POST %s HTTP/1.1\\r\\nHost: api.example.test:8080\\r\\nExpect: 100-continue\\r\\n'
        'Content-Length: %d\\r\\n\\r\\n' % (PATH, len(other)))
s = socket.create_connection(('api.example.test', 8080), 20)
s.settimeout(20)
s.sendall(head.encode() + other)
got = b''
try:
    while data := s.recv(65536):
        got += data
except OSError:
    pass
show(got.decode('latin-1').split('\\r\\n')[0])
"""


def requests_of(seen):
    return [r for c in seen["connections"] for r in c["requests"]]


def test_a_body_that_is_not_wanted_stays(net):
    code = SMUGGLE.replace("PATH", "'/refuse'")
    assert net.control(code) == "HTTP/1.1 417 Expectation Failed"
    asked = requests_of(net.seen())
    assert ["GET", "other.example.test", "/smuggled"] in asked, "the server reads on"
    assert net.probe(code, [WEB]) == "HTTP/1.1 417 Expectation Failed", "its answer arrives"
    assert requests_of(net.seen()) == [["POST", "api.example.test:8080", "/refuse"]]


def test_a_body_that_is_wanted_passes(net):
    """The server asks for the body: the body passes, even if the skill sends it without waiting."""
    code = SMUGGLE.replace("PATH", "'/'").replace("'Content-Length", "'Connection: close\\r\\n"
                                                  "Content-Length")
    assert net.probe(code, [WEB]) == "HTTP/1.1 100 Continue"
    assert requests_of(net.seen()) == [["POST", "api.example.test:8080", "/"]]


def test_curl_uploads(net):
    """curl announces a large body with Expect: 100-continue; the upload arrives complete."""
    code = """
        import subprocess
        open('/tmp/big', 'wb').write(b'x' * 3000000)
        r = subprocess.run(['/usr/bin/curl', '-sS', '-T', '/tmp/big', '--no-progress-meter',
                            '-H', 'Expect: 100-continue', '--expect100-timeout', '30',
                            'http://api.example.test:8080/'], capture_output=True, timeout=50)
        show([r.returncode, json.loads(r.stdout or b'null'), r.stderr.decode()])
    """
    assert net.probe(code, [WEB]) == [0, {"length": 3000000, "sha256": hashlib.sha256(
        b"x" * 3000000).hexdigest()}, ""]


def test_a_silent_server_gets_no_body(net):
    """The server waits for the body without asking for it, so the broker does not send the body:
    the connection ends after a time limit, and the trace has the reason."""
    code = SMUGGLE.replace("PATH", "'/'").replace("8080", "7004")
    net.probe(code.replace("settimeout(20)", "settimeout(50)"),
              [rule("api.example.test", 7004, protocol="http")])
    [connection] = net.seen()["connections"]
    assert connection["bytes"] < 140, "the head alone"
    [e] = net.blocked("no_continue")
    assert "violation" not in e and not net.runner.last_trace()["policy_violations"]
