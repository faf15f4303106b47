"""Streamable HTTP: which clients are accepted, request bodies, and the modern era. Sessions are in
test_mcp_http_session.py, hostile and broken clients in test_mcp_http_abuse.py."""
import base64
import json
import subprocess

import pytest

from mcp_world import (BUILDS, LEGACY, MODERN, TOKEN, call, eventually, events, head, http_server,
                       modern_fields, request, text_of)

CAP = 4 << 20


@pytest.fixture(scope="module")
def server():
    """The server of the sanitizer build: its answers are the same, and it reports memory errors."""
    with http_server(BUILDS["asan"]) as h:
        yield h


@pytest.fixture
def hurried():
    """A server whose time limits are 20 times shorter."""
    with http_server(BUILDS["asan"], hurry=20) as h:
        yield h


def post_modern(client, message, **fields):
    return client.send(body=message, **dict(modern_fields(message), **fields))


# ---- which clients and requests are accepted ---------------------------------

PING = request("p", "tools/list", modern=True)
REFUSED = [  # header fields, status
    ({"Host": "evil.example"}, 403),
    ({"Host": "evil.example:{port}"}, 403),
    ({"Host": "127.0.0.1:1"}, 403),
    ({"Host": "localhost"}, 403),
    ({"Host": "127.0.0.1.evil.example:{port}"}, 403),
    ({"Host": None}, 400),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "http://localhost.evil.example"}, 403),
    ({"Origin": "http://localhost:80@evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": ""}, 403),
    ({"Origin": "file://localhost"}, 403),
    ({"Origin": "http://[::1"}, 403),
    ({"Origin": "https://listed.example.evil"}, 403),
    ({"token": None}, 401),
    ({"token": TOKEN + "x"}, 401),
    ({"token": TOKEN[:-1]}, 401),
    ({"token": ""}, 401),
    ({"token": "x" * 600}, 401),
    ({"Authorization": f"Basic {TOKEN}"}, 401),
    ({"path": "/"}, 404),
    ({"path": "/mcp/x"}, 404),
    ({"path": "/mcpx"}, 404),
    ({"method": "PUT"}, 405),
    ({"method": "OPTIONS"}, 405),
    ({"method": "HEAD"}, 405),
    ({"method": "GET", "MCP_Protocol_Version": MODERN}, 405),
    ({"method": "DELETE", "MCP_Protocol_Version": MODERN}, 405),
    ({"Content_Type": None}, 415),
    ({"Content_Type": "text/plain"}, 415),
    ({"Content_Type": "application/jsonp"}, 415),
    ({"Accept": "application/json"}, 406),
    ({"Accept": "text/event-stream"}, 406),
    ({"Accept": "text/html"}, 406),
    ({"method": "GET", "Accept": "application/json"}, 406),
    ({"Expect": "wonders"}, 417),
]
TAKEN = [
    {},
    {"Host": "localhost:{port}"},
    {"Host": "LOCALHOST:{port}"},
    {"Host": "[::1]:{port}"},
    {"Origin": "http://localhost:3000"},
    {"Origin": "https://127.0.0.1"},
    {"Origin": "http://[::1]:8080"},
    {"Authorization": f"bearer {TOKEN}"},
    {"path": "/mcp?x=y"},
    {"Content_Type": "Application/JSON; charset=utf-8"},
    {"Accept": "*/*"},
    {"Accept": None},
    {"Accept": "text/*, application/json;q=0.1"},
]


def fill_in(fields, port):
    return {k: v.format(port=port) if isinstance(v, str) else v for k, v in fields.items()}


@pytest.mark.parametrize("fields,status", REFUSED, ids=lambda v: str(v)[:60])
def test_refused(server, fields, status):
    fields = dict(fill_in(fields, server.port))
    method = fields.pop("method", "POST")
    body = PING if method == "POST" else None
    usual = modern_fields(PING) if method == "POST" else {}
    with server.client() as c:
        # The server examines only some wrong tokens per second, and other tests send wrong tokens,
        # too. So the request is repeated until it gets the expected status.
        assert eventually(lambda: _status(server, method, body, usual, fields) == status), (
            _status(server, method, body, usual, fields))
        assert c.ask(body=PING, **modern_fields(PING))[0] == 200  # other requests are not affected


def _status(server, method, body, usual, fields):
    with server.client() as c:
        c.send(method, body, **dict(usual, **fields))
        r = c.answer(method)
        r.read()
        if r.status == 401:
            assert r.getheader("WWW-Authenticate").startswith("Bearer")
        if r.status == 405:
            assert "POST" in r.getheader("Allow")
        return r.status


@pytest.mark.parametrize("fields", TAKEN, ids=str)
def test_taken(server, fields):
    fields = fill_in(fields, server.port)
    with server.client() as c:
        post_modern(c, PING, **fields)
        r = c.answer()
        assert r.status == 200 and json.loads(r.read())["id"] == "p"
        assert r.getheader("Mcp-Session-Id") is None


def test_wrong_tokens_are_rationed_and_the_right_one_is_not(hurried):
    clients = [hurried.client().send(body=PING, token="wrong") for _ in range(60)]
    seen = [c.answer().status for c in clients]
    assert seen[0] == 401 and 429 in seen
    for c in clients:
        c.close()
    assert hurried.modern("echo", text="hi") == "hi"


def test_without_a_token_none_is_needed():
    with http_server(BUILDS["normal"], token=None) as h:
        assert h.once(body=PING, token=None, **modern_fields(PING))[0] == 200


def test_a_token_is_capped():
    with http_server(BUILDS["normal"], token="x" * 512) as h:
        assert h.once(body=PING, token="x" * 512, **modern_fields(PING))[0] == 200
    r = subprocess.run([BUILDS["normal"] / "tests/unit/mcp_echo", "--http", "127.0.0.1:0",
                        "x" * 513], stdin=subprocess.DEVNULL, capture_output=True, timeout=20,
                       check=False)
    assert r.returncode == 1 and b"1 to 512 bytes" in r.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.168.1.1:0", "example.com:80",
                                     "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                                     "127.0.0.1:-1", "[127.0.0.1]:0", "::1:0", ":0", ""])
def test_only_loopback(address):
    r = subprocess.run([BUILDS["normal"] / "tests/unit/mcp_echo", "--http", address, TOKEN],
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    assert r.returncode == 1 and b"127.0.0.1:PORT" in r.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0", "[::1]:0", "127.0.0.2:0"])
def test_loopback(address):
    r = subprocess.run([BUILDS["normal"] / "tests/unit/mcp_echo", "--http", address, TOKEN],
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    assert r.returncode == 0 and r.stdout.startswith(f"http://{address[:-1]}".encode())


# ---- bodies ------------------------------------------------------------------

def sized(size):
    text = b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"'
    return text + b"y" * (size - len(text) - 3) + b'"}}'


def chunks(data, size=100000):
    pieces = [data[i:i + size] for i in range(0, len(data), size)] + [b""]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces)


def test_bodies_are_capped(server):
    fields = server.session()
    with server.client() as c:
        status, _, answer = c.ask(body=sized(CAP), **fields)
        assert (status, answer["id"]) == (200, 7)
        assert c.ask(body=chunks(sized(CAP)), Transfer_Encoding="chunked", **fields)[0] == 200
        assert c.ask(body=sized(CAP + 1), **fields)[0] == 413
    with server.client() as c:
        assert c.ask(body=chunks(sized(CAP + 1)), Transfer_Encoding="chunked", **fields)[0] == 413
    with server.client() as c:  # the length is announced; no body is sent
        assert c.ask(Content_Length=1 << 50, **fields)[0] == 413


def test_a_body_is_asked_for_and_not_before_it_may_come(server):
    with server.client() as c:
        fields = dict(modern_fields(PING), Expect="100-continue")
        data = json.dumps(PING).encode()
        c.raw(head(c.port, Content_Length=len(data), **fields))
        assert c.socket.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert c.raw(data).answer().status == 200
    with server.client() as c:
        c.raw(head(c.port, Content_Length=5, token="wrong", Expect="100-continue"))
        assert c.answer().status in (401, 429)


def test_pipelined_requests_are_answered_in_turn(server):
    with server.client() as c:
        first = call(1, "sleep", modern=True, ms=200)
        post_modern(c, first)
        post_modern(c, PING)
        for number in (1, "p"):
            r = c.answer()
            assert json.loads(r.read())["id"] == number


def test_close_is_close(server):
    with server.client() as c:
        post_modern(c, PING, Connection="close")
        r = c.answer()
        assert r.status == 200 and r.getheader("Connection") == "close"
        r.read()
        assert c.gone()


# ---- the modern era -----------------------------------------------------------

@pytest.mark.parametrize("fields", [
    {"MCP_Protocol_Version": None}, {"MCP_Protocol_Version": LEGACY}, {"Mcp_Method": None},
    {"Mcp_Method": "TOOLS/CALL"}, {"Mcp_Method": "tools/list"}, {"Mcp_Name": None},
    {"Mcp_Name": "big"}, {"Mcp_Name": "=?base64?YmlnCg==?="}, {"Mcp_Name": "=?base64?ZWNob?="},
    {"Mcp_Name": "=?base64?ZWNoby==?="}, {"Mcp_Name": "=?BASE64?ZWNobw==?="},
], ids=str)
def test_headers_differ_from_the_body(server, fields):
    message = call(5, "echo", modern=True, text="hi")
    with server.client() as c:
        post_modern(c, message, **fields)
        r = c.answer()
        answer = json.loads(r.read())
        assert (r.status, answer["id"], answer["error"]["code"]) == (400, 5, -32020)
        post_modern(c, message)
        assert text_of(json.loads(c.answer().read())) == "hi"


@pytest.mark.parametrize("name", ["echo", "  echo  ", "=?base64?ZWNobw==?="])
def test_the_same_name_in_other_words(server, name):
    message = call(5, "echo", modern=True, text="hi")
    status, _, answer = server.once(body=message, **dict(modern_fields(message), Mcp_Name=name))
    assert status == 200 and text_of(answer) == "hi"


def test_names_that_no_header_can_hold(server):
    message = call(5, "wörld", modern=True)
    coded = f"=?base64?{base64.b64encode('wörld'.encode()).decode()}?="
    status, _, answer = server.once(body=message, **dict(modern_fields(message), Mcp_Name=coded))
    # The error says that there is no such tool. So the server has decoded the name in the header
    # and found it equal to the name in the body.
    assert answer["error"]["code"] == -32602, (status, answer)


def test_modern_errors_have_their_status(server):
    for method, status, code in (("no/such", 404, -32601), ("initialize", 404, -32601)):
        message = request(9, method, modern=True)
        got, _, answer = server.once(body=message, **modern_fields(message))
        assert (got, answer["error"]["code"], answer["id"]) == (status, code, 9)
    message = request(9, "tools/list")
    got, _, answer = server.once(body=message, **modern_fields(message))
    assert (got, answer["error"]["code"]) == (400, -32602)  # no _meta
    response = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert server.once(body=response, MCP_Protocol_Version=MODERN)[0] == 400


def test_a_modern_stream(server):
    message = call(6, "sleep", modern=True, progress="t", ms=100, every=30)
    with server.client() as c:
        post_modern(c, message)
        r = c.answer()
        assert r.status == 200 and r.getheader("Content-Type") == "text/event-stream"
        assert r.getheader("X-Accel-Buffering") == "no"
        found = list(events(r))
        assert all(number is None for number, _, _ in found)
        got = [json.loads(data) for _, data, _ in found]
        assert len(got) >= 3 and got[-1]["id"] == 6
        assert {m["method"] for m in got[:-1]} == {"notifications/progress"}
        post_modern(c, PING)  # the connection can be used again
        assert c.answer().status == 200


def test_a_client_that_disconnects_cancels(server):
    for streams in (0, 50):
        def count():
            return server.modern("count")
        before = int(count().split()[1].rstrip(","))
        message = call(6, "sleep", modern=True, progress="t", ms=60000, every=streams)
        with server.client() as c:
            post_modern(c, message)
            if streams:
                c.answer().readline()
            assert eventually(lambda: count().endswith("asleep 1"))
        assert eventually(lambda: count() == f"canceled {before + 1}, asleep 0")
