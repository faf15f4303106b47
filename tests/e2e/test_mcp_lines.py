"""One message per line, over two fds and over a unix socket."""
import os
import select
import socket
import stat
import subprocess

import pytest

import harness
from mcp_world import (BUILDS, Echo, Lines, call, echo, eventually, initialize, lines_of, request,
                       text_of)

CAP = 4 << 20
NEWS = 256 << 10
CLIENTS = 64


@pytest.fixture(params=BUILDS)
def build(request):
    return BUILDS[request.param]


@pytest.fixture
def normal():
    """The build without sanitizers, for tests that measure memory: a sanitizer needs more
    memory."""
    return BUILDS["normal"]


def start(client):
    assert client.ask(initialize())["result"]["protocolVersion"] == "2025-11-25"
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return client


def test_both_eras_on_one_connection(build):
    with echo(build, "--lines") as e:
        client = start(lines_of(e.process))
        assert text_of(client.ask(call(2, "echo", text="old"))) == "old"
        answer = client.ask(call("3", "echo", modern=True, text="new"))
        assert text_of(answer) == "new" and answer["id"] == "3"
        assert answer["result"]["resultType"] == "complete"


def test_bad_lines_have_one_answer_each(build):
    with echo(build, "--lines") as e:
        client = start(lines_of(e.process))
        for bad in (b"junk\n", b"[]\n", b"{}\n", b"\xff\xfe\n", b"{\"jsonrpc\":\n", b"\0\n",
                    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n'):
            client.send(bad)
            assert client.take()["error"]["code"] in (-32700, -32600), bad
        client.send(b"\n", b"  \r\n")  # empty lines get no answer
        client.send(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\r\n')
        assert client.take() == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_a_message_may_come_in_pieces(build):
    with echo(build, "--lines") as e:
        client = start(lines_of(e.process))
        for byte in b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n':
            client.send(bytes([byte]))
        assert client.take()["id"] == 7


def padded(size):
    """A ping of exactly `size` bytes, without its line feed."""
    text = b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"'
    return text + b"y" * (size - len(text) - 3) + b'"}}'


def test_a_line_is_as_long_as_a_message_may_be(build):
    with echo(build, "--lines") as e:
        client = start(lines_of(e.process))
        client.send(padded(CAP) + b"\n")
        assert client.take() == {"jsonrpc": "2.0", "id": 7, "result": {}}
        client.send(padded(CAP + 1) + b"\n")
        assert client.take()["error"]["code"] == -32600
        assert client.ask(request(8, "ping"))["id"] == 8


def test_an_endless_line_is_not_kept(normal):
    with echo(normal, "--lines") as e:
        client = start(lines_of(e.process))
        before = e.rss()
        for _ in range(64):
            client.send(b"x" * (1 << 20))
        assert e.rss() - before < 16 << 20
        client.send(b"\n", request(8, "ping"))
        assert client.take()["error"]["code"] == -32600
        assert client.take()["id"] == 8


def test_the_end_of_input_cancels_and_ends(build):
    e = Echo(build, "--lines")
    client = start(lines_of(e.process))
    client.send(call(2, "sleep", ms=60000), request(3, "ping"))
    assert client.take()["id"] == 3
    e.end()  # the server ends at once, with status 0


def test_a_last_line_without_its_end(build):
    e = Echo(build, "--lines")
    client = start(lines_of(e.process))
    client.send(b'{"jsonrpc":"2.0","id":7,"method":"ping"}')
    e.process.stdin.close()
    assert client.take()["id"] == 7
    assert client.line() is None
    e.process.wait(10)
    assert e.process.returncode == 0


def test_regular_files(build, tmp_path):
    """stdin and stdout are regular files, which epoll refuses: all requests are answered."""
    lines = [initialize(), request(2, "ping"), call(3, "echo", text="from a file")]
    (tmp_path / "in").write_text("".join(f"{harness.json.dumps(m)}\n" for m in lines))
    with open(tmp_path / "in", "rb") as i, open(tmp_path / "out", "wb") as o:
        assert subprocess.run([build / "tests/unit/mcp_echo", "--lines"], stdin=i, stdout=o,
                              timeout=20, check=False).returncode == 0
    answers = [harness.json.loads(line) for line in (tmp_path / "out").open()]
    assert [a["id"] for a in answers] == [1, 2, 3] and text_of(answers[2]) == "from a file"


def test_files_block_again_afterwards(build):
    """When the server ends, it sets its stdin to blocking again, because other programs share the
    open file."""
    reader, writer = os.pipe()
    process = subprocess.Popen([build / "tests/unit/mcp_echo", "--lines"], stdin=reader,
                               stdout=subprocess.PIPE)
    assert eventually(lambda: not os.get_blocking(reader))
    os.close(writer)
    assert process.wait(20) == 0 and os.get_blocking(reader)
    os.close(reader)
    process.stdout.close()


def test_a_client_that_does_not_read_is_not_read_from(normal):
    with echo(normal, "--lines") as e:
        client = start(lines_of(e.process))
        before = e.rss()
        os.set_blocking(client.writer, False)
        message = harness.json.dumps(call(9, "big", bytes=1000)).encode() + b"\n"
        sent, rest = 0, b""
        while sent < 4000 and select.select([], [client.writer], [], 1)[1]:
            rest = rest or message
            rest = rest[os.write(client.writer, rest):]
            sent += not rest
        assert sent < 4000, "it takes whatever comes"
        assert e.rss() - before < 16 << 20
        os.set_blocking(client.writer, True)
        client.send(rest)
        for _ in range(sent + bool(rest)):  # no answer is lost
            assert len(text_of(client.take())) == 1000


def test_news_are_dropped_and_counted_but_no_answers(build):
    with echo(build, "--lines") as e:
        client = start(lines_of(e.process))
        client.send(call(2, "flood", progress="p", n=3000, bytes=1000))
        client.send(request(3, "ping"))
        assert eventually(e.rests)
        seen = 0
        while (m := client.take()).get("id") != 2:
            assert m["method"] == "notifications/progress"
            seen += 1
        assert client.take()["id"] == 3
        assert NEWS // 1200 < seen < 3000
    assert f"dropped {3000 - seen}\n".encode() in e.errors


def test_too_many_answers_end_it(normal):
    e = Echo(normal, "--lines")
    client = start(lines_of(e.process))
    # All requests go in one write, because the server may have ended before a second write.
    client.send(b"".join(harness.json.dumps(call(i, "sleep", ms=300, bytes=1 << 20)).encode()
                         + b"\n" for i in range(60)))
    e.process.wait(20)  # the server ends by itself, although its input is open
    assert e.process.returncode == 0


def test_as_many_as_there_is_room_for_do_not(normal):
    with echo(normal, "--lines") as e:
        client = start(lines_of(e.process))
        for i in range(20):
            client.send(call(i, "sleep", ms=300, bytes=1 << 20))
        assert sorted(client.take()["id"] for _ in range(20)) == list(range(20))


def test_a_reader_that_is_gone_ends_it(build):
    e = Echo(build, "--lines")
    client = start(lines_of(e.process))
    e.process.stdout.close()
    client.send(request(2, "ping"))
    e.process.wait(20)
    assert e.process.returncode == 0


# ---- the unix socket ---------------------------------------------------------

class Connected(Lines):
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        super().__init__(self.socket.fileno(), self.socket.fileno())

    def close(self):
        self.socket.close()


def served(build, path, **popen):
    e = Echo(build, "--socket", path, **popen)
    assert e.process.stdout.readline() == b"ready\n"
    return e


def test_many_clients_of_a_socket(build, tmp_path):
    path = tmp_path / "s"
    e = served(build, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    clients = [start(Connected(path)) for _ in range(10)]
    clients[0].send(call(2, "sleep", ms=60000))
    for c in clients[1:]:
        assert text_of(c.ask(call(2, "echo", text="hi"))) == "hi"
    assert text_of(clients[1].ask(call(3, "count"))) == "canceled 0, asleep 1"
    clients[0].close()
    assert eventually(lambda: text_of(clients[1].ask(call(4, "count"))) == "canceled 1, asleep 0")
    e.end()
    assert not path.exists()
    assert all(c.line() is None for c in clients[1:])


def test_no_more_than_so_many(build, tmp_path):
    e = served(build, tmp_path / "s")
    clients = [start(Connected(tmp_path / "s")) for _ in range(CLIENTS)]
    assert Connected(tmp_path / "s").line() is None
    clients.pop().close()
    assert eventually(lambda: works(tmp_path / "s"))
    e.end()


def works(path):
    c = Connected(path)
    try:
        c.send(request(1, "ping"))
        return c.line() is not None
    except BrokenPipeError:
        return False
    finally:
        c.close()


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(build, tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
    first = served(build, path)
    second = Echo(build, "--socket", path)
    assert second.process.wait(20) == 1
    assert b"another server already listens on" in second.process.stderr.read()
    assert works(path)
    first.end()


def test_other_files_are_left_alone(build, tmp_path):
    (tmp_path / "f").write_text("mine")
    e = Echo(build, "--socket", tmp_path / "f")
    assert e.process.wait(20) == 1 and b"is not a socket" in e.process.stderr.read()
    assert (tmp_path / "f").read_text() == "mine"


def test_a_path_that_is_too_long(build, tmp_path):
    e = Echo(build, "--socket", tmp_path / ("x" * 120))
    assert e.process.wait(20) == 1 and b"107 bytes" in e.process.stderr.read()


PING = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(10)
s.connect(sys.argv[1])
s.sendall(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\\n')
print(s.recv(4096))
"""


def ping_as(path, uid):
    return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                           harness.PYTHON, "-c", PING, path], capture_output=True, text=True,
                          timeout=30, check=False)


def test_others_are_refused_by_the_mode_and_by_their_uid(build, base_dir):
    path = base_dir / "mcp.socket"
    e = served(build, path)
    assert '"id":7' in ping_as(path, 0).stdout
    assert "PermissionError" in ping_as(path, 65534).stderr
    path.chmod(0o666)
    assert '"id":7' in ping_as(path, 0).stdout
    refused = ping_as(path, 65534)
    assert '"id":7' not in refused.stdout and "PermissionError" not in refused.stderr
    e.end()


def test_root_may_speak_to_a_users_server(build, base_dir):
    """The server of an ordinary user, with a socket of mode 0666, answers root and this user, and
    no other user."""
    owner, other = 65533, 65534
    harness.os.chown(base_dir, owner, owner)
    path = base_dir / "mcp.socket"
    # The checkout may be in a directory that only root can enter.
    program = harness.pathlib.Path("tests/unit/mcp_echo")
    (base_dir / program.parent).mkdir(parents=True)
    harness.shutil.copy(build / program, base_dir / program)
    e = served(base_dir, path, user=owner, group=owner, extra_groups=[])
    path.chmod(0o666)
    for uid in (0, owner):
        assert '"id":7' in ping_as(path, uid).stdout
    refused = ping_as(path, other)
    assert '"id":7' not in refused.stdout and "PermissionError" not in refused.stderr
    e.end()


@pytest.fixture
def base_dir(request):
    """A directory that both callers can reach."""
    d = harness.pathlib.Path(harness.tempfile.mkdtemp(dir=request.config.ssb["base"]))
    d.chmod(0o755)
    yield d
    harness.shutil.rmtree(d)
