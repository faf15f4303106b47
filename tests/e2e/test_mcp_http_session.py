"""Streamable HTTP of the legacy era: sessions, their notifications, resumed streams, and
timeouts."""
import json

import pytest

from mcp_world import (BUILDS, LEGACY, call, eventually, events, http_server, initialize,
                       messages, modern_fields, request, text_of)

PING = request("p", "tools/list", modern=True)


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
    # The server sends again all events after the event with the id in Last-Event-ID.
    assert rest[:2] == [(n, d, None) for n, d, _ in seen[2:]]
    got = [json.loads(d) for _, d, _ in rest]
    assert got[-1]["id"] == 2 and "result" in got[-1]
    numbers = [m["params"]["progress"] for m in got[:-1]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))  # without a gap
    with server.client() as c:  # the stream has ended, but its events can be read again
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
    # Clients of this version do not reconnect, so the server must not end the stream.
    old = server.session("2025-06-18")
    assert text_of(server.once(body=call(2, "leave", ms=30), **old)[2]) == "xxxxx"
    message = call(2, "leave", modern=True, ms=30)
    assert server.once(body=message, **modern_fields(message))[0] == 200


def test_an_answer_that_could_not_be_kept():
    """The server keeps at most 64 MiB of unread answers, for all streams together. A client that
    asks again for an answer that was not kept gets 404. Otherwise it would wait without end."""
    size = 15 << 20
    with http_server(BUILDS["normal"]) as h:
        sessions = [h.session() for _ in range(5)]
        last = []
        for i, fields in enumerate(sessions):
            message = call(i, "sleep", progress="t", ms=300, every=200, bytes=size)
            with h.client() as c:
                c.send(body=message, **fields)
                last.append(next(events(c.answer()))[0])
        assert eventually(lambda: h.modern("count").endswith("asleep 0"))
        for i, fields in enumerate(sessions[:4]):  # the control: the first four answers were kept
            with h.client() as c:
                c.send("GET", Last_Event_ID=last[i], **fields)
                assert len(messages(c.answer())[-1]["result"]["content"][0]["text"]) == size
        assert h.once("GET", Last_Event_ID=last[4], **sessions[4])[0] == 404
        assert h.once(body=request(3, "ping"), **sessions[4])[0] == 404
        assert h.once(body=request(3, "ping"), **sessions[0])[0] == 200


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
        server.modern("news")  # the next event arrives on the same stream
        assert json.loads(next(source)[1])["method"] == "notifications/tools/list_changed"


def test_a_resumed_stream_leaves_its_old_connection(server):
    fields = server.session()
    with server.client() as old, server.client() as new:
        old.send("GET", **fields)
        r = old.answer()
        first = next(events(r))[0]
        new.send("GET", Last_Event_ID=first, **fields)
        assert new.answer().status == 200
        assert r.read() == b""  # a regular end, not a broken connection


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
        assert c.ask(body=PING, **modern_fields(PING))[0] == 200
        assert not c.gone(0.5) and c.gone(10)


def test_initialize_on_a_session_that_is(server):
    fields = server.session()
    status, headers, _ = server.once(body=initialize(5), **fields)
    assert status in (200, 400) and headers["Mcp-Session-Id"] in (None, fields["Mcp_Session_Id"])
