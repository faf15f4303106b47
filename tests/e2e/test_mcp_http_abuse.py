"""Streamable HTTP with clients that are slow, silent, broken or hostile: the server keeps
running, its memory is limited, and other clients do not wait. Time limits are 20 times
shorter here: a head within 0.5 s, a body within 1.5 s, an answer read within 1.5 s."""
import http.client
import json
import random
import socket
import time

import pytest

from mcp_world import (BUILDS, TOKEN, Client, call, eventually, events, head, http_server,
                       initialize, modern_fields, request)

CONNECTIONS = 128
SESSIONS = 256
LIST = request("p", "tools/list", modern=True)


@pytest.fixture
def server():
    """The server of the sanitizer build: its answers are the same, and it reports memory errors."""
    with http_server(BUILDS["asan"], hurry=20) as h:
        yield h


@pytest.fixture
def normal():
    """A server with short time limits, built without sanitizers, because these need more memory."""
    with http_server(BUILDS["normal"], hurry=20) as h:
        yield h


@pytest.fixture
def patient(request):
    """A server with the usual, long time limits: a client that pauses for a moment does not exceed
    them."""
    with http_server(BUILDS[getattr(request, "param", "asan")]) as h:
        yield h


MEASURED = pytest.mark.parametrize("patient", ["normal"], indirect=True)


def quick(server):
    """True if another client is served within one second. One fast answer in five tries is
    enough."""
    for _ in range(5):
        start = time.monotonic()
        try:
            assert server.modern("echo", text="hi") == "hi"
        except (OSError, http.client.HTTPException):
            continue  # this client itself took more than half a second to send its head
        if time.monotonic() - start < 1:
            return True
    return False


def messages_of(response, n):
    """The data of the next n events."""
    found = (data for _, data, _ in events(response) if data)
    return [next(found) for _ in range(n)]


def status_of(client):
    """The status of the server's answer; None if the server closed the connection without an
    answer."""
    client.socket.settimeout(10)
    try:
        return client.answer().status
    except OSError:
        return None


@pytest.mark.parametrize("what", ["nothing", "head", "body", "chunks"])
def test_slow_requests_run_out_of_time(server, what):
    full = head(server.port, Content_Length=1000, **modern_fields(LIST))
    begun = {"nothing": b"", "head": full[:-10], "body": full + b"{",
             "chunks": head(server.port, Transfer_Encoding="chunked") + b"5\r\n"}[what]
    for _ in range(5):
        start = time.monotonic()
        c = server.client().raw(begun)
        if time.monotonic() - start < 0.2:  # if it took longer, the time limit may be over already
            break
        c.close()
    with c:
        assert quick(server)
        while time.monotonic() - start < 20:  # sends single bytes, which must not extend the limit
            try:
                c.raw(b"a" if what != "nothing" else b"")
                if c.socket.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) is not None:
                    break
            except BlockingIOError:
                time.sleep(0.1)
            except (BrokenPipeError, ConnectionResetError):
                break
        assert time.monotonic() - start < 15
        assert status_of(c) == (None if what == "nothing" else 408)


def test_a_second_request_has_no_more_time(server):
    took = []
    while len(took) < 4 and not any(t < 2 for t in took):
        with server.client() as c:
            assert c.ask(body=LIST, **modern_fields(LIST))[0] == 200
            start = time.monotonic()
            assert c.raw(b"POST /mcp HT").answer().status == 408
            took.append(time.monotonic() - start)
    assert min(took) < 2, took  # limit for a head, not that for an idle connection (3 s)


def test_many_slow_clients_block_no_other(server):
    slow = [server.client().raw(b"POST /mcp HT") for _ in range(CONNECTIONS + 70)]
    for _ in range(10):
        assert quick(server)
    for c in slow:
        c.close()


def test_connections_are_capped_and_idle_ones_make_room(patient):
    before = patient.fds()
    idle = []
    for _ in range(CONNECTIONS + 50):
        idle.append(patient.client())
        idle[-1].send(body=LIST, **modern_fields(LIST))
        assert idle[-1].answer().read()
    assert patient.fds() - before <= CONNECTIONS
    assert quick(patient)
    for c in idle:
        c.close()


@MEASURED
def test_busy_connections_are_not_taken_away(patient):
    message = call(1, "sleep", modern=True, ms=8000)
    busy = [patient.client().send(body=message, **modern_fields(message))
            for _ in range(CONNECTIONS)]
    assert eventually(patient.rests)  # not asked by a tool call: no connection is free for one
    with patient.client() as c:
        c.send(body=LIST, **modern_fields(LIST))
        assert status_of(c) in (503, None)
    assert [c.answer().status for c in busy] == [200] * CONNECTIONS
    for c in busy:
        c.close()
    assert eventually(lambda: quick(patient))


def test_strangers_do_not_cut_off_an_answer():
    """256 connections send nothing, not even a token: a client that is still reading its answer is
    not disconnected."""
    size = 15 << 20
    message = call(1, "big", modern=True, bytes=size)
    with http_server(BUILDS["normal"]) as h, h.client() as c:
        c.send(body=message, **modern_fields(message))
        assert c.socket.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
        strangers = [h.client() for _ in range(2 * CONNECTIONS)]
        assert quick(h)
        assert strangers[0].gone()  # the control: the server closed this connection to make room
        assert len(c.answer().read()) > size
        for s in strangers:
            s.close()


def begun(server, size):
    """Sends a request without the last byte of its body; returns the connection."""
    c = server.client().raw(head(server.port, Content_Length=size, **modern_fields(LIST)))
    try:
        c.raw(b" " * (size - 1))
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server has refused the request before its last byte
    return c


def test_bodies_that_come_in_are_bounded_and_service_returns():
    """All request bodies together may take 64 MiB. A client that would exceed this limit gets 503.
    When other clients disconnect, requests are served again."""
    with http_server(BUILDS["normal"]) as h:
        for _ in range(3):
            held = [begun(h, 4 << 20) for _ in range(16)]  # 16 bytes of the 64 MiB are left
            assert eventually(h.rests)  # the server has received all requests
            for c in held:
                c.socket.setblocking(False)
                with pytest.raises(BlockingIOError):
                    c.socket.recv(1)
            assert h.once(body=LIST, **modern_fields(LIST))[0] == 200, "a small one"
            more = [begun(h, 4 << 20) for _ in range(6)]
            assert [status_of(c) for c in more].count(503) >= 4, "a reset may swallow some"
            for c in held + more:
                c.close()
            assert eventually(lambda: h.once(body=LIST, **modern_fields(LIST))[0] == 200)
        assert quick(h)


@MEASURED
def test_what_one_client_has_under_way_is_not_anothers(patient):
    """The limits that one client over stdio has do not apply to all HTTP clients together: 40
    subscriptions and 20 large calls work at the same time."""
    listen = request("l", "subscriptions/listen",
                     {"notifications": {"toolsListChanged": True}}, modern=True)
    ears = [patient.client().send(body=listen, **modern_fields(listen)) for _ in range(40)]
    streams = [c.answer() for c in ears]
    assert [r.status for r in streams] == [200] * len(ears)
    assert all("acknowledged" in messages_of(r, 1)[0] for r in streams)
    long = call(1, "sleep", modern=True, ms=12000, pad="x" * (4000 << 10))
    busy = [patient.client().send(body=long, **modern_fields(long)) for _ in range(20)]
    assert eventually(lambda: patient.modern("count").endswith("asleep 20"))
    assert patient.modern("echo", text="y" * (1 << 20)) == "y" * (1 << 20)
    assert patient.modern("news") == "told"
    assert all("list_changed" in messages_of(r, 1)[0] for r in streams)
    assert [c.answer().status for c in busy] == [200] * len(busy)
    for c in ears + busy:
        c.close()


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_does_not_read_is_dropped(normal, streams):
    assert quick(normal)
    before, fds = normal.rss(), normal.fds()
    message = (call(1, "flood", modern=True, progress="t", n=20000, bytes=2000) if streams
               else call(1, "big", modern=True, bytes=15 << 20))
    for _ in range(3):  # the later rounds reuse the memory of the first one
        deaf = []
        for _ in range(4):
            c = normal.client()
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.append(c.send(body=message, **modern_fields(message)))
            assert eventually(lambda: quick(normal))
        assert normal.rss() - before < (32 if streams else 200) << 20
        assert eventually(lambda: normal.fds() <= fds), "they are still there"
        for c in deaf:
            c.close()


def length(client):
    """Reads the answer to its end and returns its length; 0 if it is incomplete."""
    r = client.answer()
    try:
        return sum(len(piece) for piece in iter(lambda: r.read(1 << 20), b""))
    except (ConnectionResetError, http.client.IncompleteRead):
        return 0


def test_what_waits_for_all_together_is_bounded():
    message = call(1, "big", modern=True, bytes=15 << 20)
    with http_server(BUILDS["normal"]) as h:
        deaf = []
        for _ in range(40):
            c = h.client()
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            deaf.append(c.send(body=message, **modern_fields(message)))
        assert eventually(lambda: quick(h))
        whole = 0
        for c in deaf:
            try:
                whole += length(c) > 15 << 20
            except (ConnectionResetError, http.client.RemoteDisconnected):
                pass
            c.close()
        assert 10 <= whole < 40


def test_a_slow_reader_that_does_read_is_not_dropped():
    """A client that reads nothing for 3.75 s is disconnected. This one reads slowly, for about
    twice as long, and gets the whole answer."""
    message = call(1, "big", modern=True, bytes=8 << 20)
    with http_server(BUILDS["normal"], hurry=8) as h, h.client() as c:
        c.send(body=message, **modern_fields(message))
        r = c.answer()
        size = 0
        while piece := r.read(256 << 10):
            size += len(piece)
            time.sleep(0.25)
        assert size > 8 << 20


def test_clients_that_die_in_the_middle(patient):
    message = call(1, "sleep", modern=True, progress="t", ms=60000, every=20)
    for i in range(60):
        with patient.client() as c:
            data = head(c.port, Content_Length=len(json.dumps(message)), **modern_fields(message))
            data += json.dumps(message).encode()
            c.raw(data[:len(data) * (i % 4 + 1) // 4])
            if i % 8 == 3:
                c.answer().readline()
            if i % 2:  # close() resets the connection
                c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert eventually(lambda: patient.modern("count").endswith("asleep 0"))
    assert quick(patient)


def test_half_open_streams(server):
    """Clients with an open GET stream shut down their sending side: the server closes the streams,
    and the session continues."""
    fields = server.session()
    clients = [server.client().send("GET", **fields) for _ in range(20)]
    for c in clients:
        assert c.answer().status == 200
        c.socket.shutdown(socket.SHUT_WR)
    assert all(c.gone() for c in clients)
    assert server.once(body=request(3, "ping"), **fields)[0] == 200


def broken(rng, port, fields):
    """Returns a request with random errors in it, or only a part of a request."""
    body = json.dumps(rng.choice([LIST, initialize(), call(1, "echo", text="x"), [], 5])).encode()
    whole = bytearray(head(port, rng.choice(["POST", "GET", "DELETE", "PATCH"]),
                           Content_Length=len(body) + rng.choice([0, 0, -3, 5]), **fields) + body)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(whole))
        what = rng.randrange(5)
        if what == 0:
            whole[at] = rng.randrange(256)
        elif what == 1:
            del whole[at:at + rng.randrange(40)]
        elif what == 2:
            whole[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(20)))
        elif what == 3:
            whole[at:at] = whole[:rng.randrange(len(whole))]
        else:
            whole[at:at] = rng.choice([b"\r\n\r\n", b"\0", b"Transfer-Encoding: chunked\r\n",
                                       b"\xff" * 9, b"0\r\n\r\n", b"Host: x\r\n"])
        if not whole:
            return b"\r\n"
    return bytes(whole)


def test_a_thousand_malformed_requests(server):
    rng = random.Random(6)
    fields = server.session()
    fields_of = [fields, modern_fields(LIST), {}, {"token": None}]
    for i in range(1000):
        with Client(server.port) as c:
            c.raw(broken(rng, server.port, rng.choice(fields_of)))
            if i % 3 == 0:
                c.socket.shutdown(socket.SHUT_WR)
                c.socket.settimeout(3)
                try:
                    said = c.socket.recv(65536)
                    assert said == b"" or said.startswith(b"HTTP/1.1 ")
                except (ConnectionResetError, TimeoutError):
                    pass
    assert quick(server)
    with server.client() as c:
        assert c.ask(body=LIST, **modern_fields(LIST))[0] == 200


def test_sessions_are_capped_and_the_oldest_idle_one_makes_room(patient):
    first = patient.session()
    held = patient.session()
    with patient.client() as c:
        c.send("GET", **held)
        assert c.answer().status == 200
        for _ in range(SESSIONS):
            patient.session()
        assert patient.once(body=request(3, "ping"), **first)[0] == 404
        assert patient.once(body=request(3, "ping"), **held)[0] == 200


def test_broken_streams_are_bounded(normal):
    fields = normal.session()
    before = normal.rss()
    for i in range(100):
        with normal.client() as c:
            c.send(body=call(i, "flood", progress="t", n=400, bytes=4000), **fields)
            c.answer().readline()
    assert normal.rss() - before < 64 << 20
    assert quick(normal)


@MEASURED
def test_memory_does_not_grow(patient):
    for _ in range(300):
        assert patient.once(body=LIST, **modern_fields(LIST))[0] == 200
    before = patient.rss()
    for _ in range(2000):
        patient.once(body=LIST, token=TOKEN, **modern_fields(LIST))
    assert patient.rss() - before < 2 << 20
