"""Streamable HTTP: who may ask, what is answered, streams and sessions. What hostile
and broken clients do is in test_mcp_http_abuse.py."""
import base64
import json
import subprocess

import pytest

from mcp_world import (BUILDS, LEGACY, MODERN, TOKEN, call, eventually, events, head, http_server,
                       initialize, messages, modern_fields, request, text_of)

CAP = 4 << 20


@pytest.fixture(params=BUILDS, scope="module")
def server(request):
    with http_server(BUILDS[request.param]) as h:
        yield h


@pytest.fixture(params=BUILDS)
def hurried(request):
    """Time limits are 20 times shorter."""
    with http_server(BUILDS[request.param], hurry=20) as h:
        yield h


def post_modern(client, message, **fields):
    return client.send(body=message, **dict(modern_fields(message), **fields))


# ---- who may ask, and how -------------------------------------------------------

PING = request("p", "tools/list", modern=True)
REFUSED = [  # fields of the head, status
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
    {"Origin": "https://listed.example"},
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
        # Wrong tokens are rationed, and other tests send them too.
        assert eventually(lambda: _status(server, method, body, usual, fields) == status), (
            _status(server, method, body, usual, fields))
        assert c.ask(body=PING, **modern_fields(PING))[0] == 200  # nobody else is concerned


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
    seen = [hurried.once(body=PING, token="wrong")[0] for _ in range(60)]
    assert seen[0] == 401 and 429 in seen
    assert hurried.modern("echo", text="hi") == "hi"


def test_without_a_token_none_is_needed():
    with http_server(BUILDS["normal"], token=None) as h:
        assert h.once(body=PING, token=None, **modern_fields(PING))[0] == 200


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
        assert c.ask(body=sized(CAP), **fields)[::2] == (200, {"jsonrpc": "2.0", "id": 7, "result": {}})
        assert c.ask(body=chunks(sized(CAP)), Transfer_Encoding="chunked", **fields)[0] == 200
        assert c.ask(body=sized(CAP + 1), **fields)[0] == 413
    with server.client() as c:
        assert c.ask(body=chunks(sized(CAP + 1)), Transfer_Encoding="chunked", **fields)[0] == 413
    with server.client() as c:  # said, and not sent
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
    assert answer["error"]["code"] == -32602, (status, answer)  # no such tool: it was compared


@pytest.fixture(scope="module")
def mirror():
    """Where two arguments are repeated in headers."""
    with http_server(BUILDS["asan"], mirror=True) as h:
        yield h


MIRRORED = [  # tool, arguments, headers, whether they fit
    ("echo", {"text": "hi"}, {"Mcp_Param_Text": "hi"}, True),
    ("echo", {"text": "hi"}, {"Mcp_Param_Text": "=?base64?aGk=?="}, True),
    ("echo", {"text": "=?base64?aGk="}, {"Mcp_Param_Text": "=?base64?aGk="}, True),
    ("echo", {"text": "hi"}, {"Mcp_Param_Text": "=?base64?aGk?="}, False),
    ("echo", {"text": "hi"}, {"Mcp_Param_Text": "=?base64?a!k=?="}, False),
    ("echo", {"text": "hi"}, {"Mcp_Param_Text": "Hi"}, False),
    ("echo", {"text": "hi"}, {}, False),
    ("echo", {}, {}, True),
    ("echo", {"text": None}, {}, True),
    ("echo", {}, {"Mcp_Param_Text": "hi"}, False),
    ("echo", {"text": "hi"}, {"Mcp_Param_Text": "hi", "Mcp_Param_Other": "x"}, True),
    ("big", {"bytes": 5}, {"Mcp_Param_Bytes": "5"}, True),
    ("big", {"bytes": 5}, {"Mcp_Param_Bytes": "5.0"}, True),
    ("big", {"bytes": 5}, {"Mcp_Param_Bytes": "6"}, False),
    ("big", {"bytes": 5}, {"Mcp_Param_Bytes": "5x"}, False),
    ("count", {"text": "hi"}, {}, True),
]


@pytest.mark.parametrize("tool,arguments,headers,fits", MIRRORED, ids=str)
def test_arguments_in_headers(mirror, tool, arguments, headers, fits):
    message = call(5, tool, modern=True, **arguments)
    status, _, answer = mirror.once(body=message, **dict(modern_fields(message), **headers))
    if fits:
        assert status == 200 and "result" in answer
    else:
        assert status == 400 and answer["error"]["code"] == -32020


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
        post_modern(c, PING)  # the connection is good for more
        assert c.answer().status == 200


def test_whoever_leaves_cancels(server):
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


# ---- the legacy era -----------------------------------------------------------

def test_a_session(server):
    fields = server.session()
    with server.client() as c:
        assert text_of(c.ask(body=call(2, "echo", text="hi"), **fields)[2]) == "hi"
        assert c.ask(body=request(3, "ping"), Mcp_Session_Id=fields["Mcp_Session_Id"])[0] == 200
        assert c.ask(body=request(3, "ping"))[0] == 400
        for unknown in ("0" * 32, "x", "y" * 100, ""):
            assert c.ask(body=request(3, "ping"), Mcp_Session_Id=unknown)[0] == 404
        bad = dict(fields, MCP_Protocol_Version="1999-01-01")
        assert c.ask(body=request(3, "ping"), **bad)[0] == 400
        bad["MCP_Protocol_Version"] = "x" * 200
        assert c.ask(body=request(3, "ping"), **bad)[0] == 400
        assert c.ask("DELETE")[0] == 400
        assert c.ask("DELETE", **fields)[0] == 200
        assert c.ask("DELETE", **fields)[0] == 404
        assert c.ask(body=request(3, "ping"), **fields)[0] == 404


def test_sessions_are_apart(server):
    one, other = server.session(), server.session()
    assert one["Mcp_Session_Id"] != other["Mcp_Session_Id"]
    assert server.once("DELETE", **one)[0] == 200
    assert server.once(body=request(3, "ping"), **other)[0] == 200


def test_an_initialize_that_fails_makes_no_session(server):
    bad = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 5}}
    _, headers, answer = server.once(body=bad)
    assert "error" in answer and headers["Mcp-Session-Id"] is None


def test_bad_messages(server):
    fields = server.session()
    with server.client() as c:
        for bad in (b"junk", b"[]", b"{}", b"", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'):
            status, _, answer = c.ask(body=bad, **fields)
            assert status == 400 and answer["error"]["code"] in (-32700, -32600), bad
        assert c.ask(body=request(3, "ping"), **fields)[0] == 200


def test_the_end_of_a_session_cancels_its_calls(server):
    fields = server.session()
    with server.client() as waiting, server.client() as listening:
        waiting.send(body=call(2, "sleep", ms=60000), **fields)
        listening.send("GET", **fields)
        assert listening.answer().status == 200
        assert eventually(lambda: server.modern("count").endswith("asleep 1"))
        assert server.once("DELETE", **fields)[0] == 200
        assert server.modern("count").endswith("asleep 0")
        assert waiting.answer().status == 404


@pytest.mark.parametrize("version,primed", [(LEGACY, True), ("2025-06-18", False)])
def test_a_legacy_stream(server, version, primed):
    fields = server.session(version)
    with server.client() as c:
        c.send(body=call(2, "sleep", progress=1, ms=100, every=30), **fields)
        r = c.answer()
        assert r.getheader("Content-Type") == "text/event-stream"
        found = list(events(r))
        ids = [number for number, _, _ in found]
        assert len(set(ids)) == len(ids) and None not in ids
        assert (found[0][1] == "") == primed and (found[0][2] is not None) == primed
        assert json.loads(found[-1][1])["id"] == 2
        assert c.ask(body=request(3, "ping"), **fields)[0] == 200


def test_a_broken_stream_is_resumed(server):
    fields = server.session()
    with server.client() as c:
        c.send(body=call(2, "sleep", progress=1, ms=600, every=40), **fields)
        r = c.answer()
        source = events(r)
        seen = [next(source) for _ in range(4)]
    with server.client() as c:
        c.send("GET", Last_Event_ID=seen[1][0], **fields)
        r = c.answer()
        rest = [e for e in events(r) if e[1]]
    assert rest[:2] == [(n, d, None) for n, d, _ in seen[2:]]  # once more what came after
    got = [json.loads(d) for _, d, _ in rest]
    assert got[-1]["id"] == 2 and "result" in got[-1]
    numbers = [m["params"]["progress"] for m in got[:-1]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))  # without a gap
    with server.client() as c:  # it is over, and can be heard again
        c.send("GET", Last_Event_ID=rest[-2][0], **fields)
        assert [m["id"] for m in messages(c.answer())] == [2]


def test_a_server_that_hangs_up(server):
    fields = server.session()
    with server.client() as c:
        c.send(body=call(2, "leave", ms=300), **fields)
        found = list(events(c.answer()))
        assert [(d, r is not None) for _, d, r in found] == [("", True)]
        c.send("GET", Last_Event_ID=found[0][0], **fields)  # on the same connection
        assert [m["id"] for m in messages(c.answer())] == [2]
    old = server.session("2025-06-18")  # would not come back
    assert text_of(server.once(body=call(2, "leave", ms=30), **old)[2]) == "xxxxx"
    message = call(2, "leave", modern=True, ms=30)
    assert server.once(body=message, **modern_fields(message))[0] == 200


def test_resuming_what_is_not_there(server):
    fields, other = server.session(), server.session()
    with server.client() as c:
        c.send(body=call(2, "sleep", progress=1, ms=60, every=20), **fields)
        last = list(events(c.answer()))[-1][0]
    for wanted, number in ((fields, "99-1"), (fields, "x"), (fields, "1"), (fields, "-1"),
                           (fields, "1-1x"), (fields, "9" * 60), (other, last)):
        assert server.once("GET", Last_Event_ID=number, **wanted)[0] == 400, number


def test_a_broken_connection_does_not_cancel(server):
    fields = server.session()
    with server.client() as c:
        c.send(body=call(2, "sleep", progress=1, ms=60000, every=50), **fields)
        c.answer().readline()
    assert not eventually(lambda: server.modern("count").endswith("asleep 0"), 0.5)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    assert server.once(body=cancel, **fields)[0] == 202
    assert eventually(lambda: server.modern("count").endswith("asleep 0"))


def test_a_canceled_call_has_no_answer(server):
    fields = server.session()
    with server.client() as c:
        c.send(body=call(2, "sleep", ms=60000), **fields)
        assert eventually(lambda: server.modern("count").endswith("asleep 1"))
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        assert server.once(body=cancel, **fields)[0] == 202
        r = c.answer()
        assert (r.status, r.read()) == (202, b"")


def test_news_go_to_one_stream(server):
    fields = server.session()
    with server.client() as one, server.client() as two:
        sources = []
        for c in (one, two):
            c.send("GET", **fields)
            r = c.answer()
            assert r.status == 200 and r.getheader("Content-Type") == "text/event-stream"
            sources.append(events(r))
            assert next(sources[-1])[1] == ""
        for _ in range(3):
            server.modern("news")
        for _ in range(3):
            assert json.loads(next(sources[1])[1])["method"] == "notifications/tools/list_changed"
        two.close()
        assert eventually(lambda: server.modern("news") and ready(one))
        assert json.loads(next(sources[0])[1])["method"] == "notifications/tools/list_changed"


def ready(client):
    client.socket.settimeout(0.2)
    try:
        return bool(client.socket.recv(1, 2))  # MSG_PEEK
    except TimeoutError:
        return False
    finally:
        client.socket.settimeout(20)


def test_news_wait_for_a_broken_stream(server):
    fields = server.session()
    with server.client() as c:
        c.send("GET", **fields)
        first = next(events(c.answer()))[0]
    server.modern("news")
    with server.client() as c:
        c.send("GET", Last_Event_ID=first, **fields)
        source = events(c.answer())
        assert json.loads(next(source)[1])["method"] == "notifications/tools/list_changed"
        server.modern("news")  # and goes on
        assert json.loads(next(source)[1])["method"] == "notifications/tools/list_changed"


def test_a_resumed_stream_leaves_its_old_connection(server):
    fields = server.session()
    with server.client() as old, server.client() as new:
        old.send("GET", **fields)
        r = old.answer()
        first = next(events(r))[0]
        new.send("GET", Last_Event_ID=first, **fields)
        assert new.answer().status == 200
        assert r.read() == b""  # ended, not broken


# ---- time --------------------------------------------------------------------

def test_streams_show_signs_of_life(hurried):
    with hurried.client() as c:
        c.send("GET", **hurried.session())
        r = c.answer()
        next(events(r))
        assert [r.readline() for _ in range(2)] == [b":\n", b"\n"]


def test_broken_streams_are_kept_for_a_while_and_then_canceled(hurried):
    fields = hurried.session()
    with hurried.client() as c:
        c.send(body=call(2, "sleep", progress=1, ms=60000, every=100), **fields)
        first = next(events(c.answer()))[0]
    with hurried.client() as c:
        c.send("GET", Last_Event_ID=first, **fields)
        c.answer().readline()
    assert hurried.modern("count") == "canceled 0, asleep 1"
    assert eventually(lambda: hurried.modern("count") == "canceled 1, asleep 0")
    assert hurried.once("GET", Last_Event_ID=first, **fields)[0] == 400
    assert hurried.once(body=request(3, "ping"), **fields)[0] == 200


def test_idle_connections_end(hurried):
    with hurried.client() as c:
        post_modern(c, PING)
        c.answer().read()
        assert not c.gone(0.5) and c.gone(10)


def test_initialize_on_a_session_that_is(server):
    assert initialize()["method"] == "initialize"
    fields = server.session()
    status, headers, _ = server.once(body=initialize(5), **fields)
    assert status in (200, 400) and headers["Mcp-Session-Id"] in (None, fields["Mcp_Session_Id"])
