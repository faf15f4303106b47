"""A small server that is built on our protocol library (tests/unit/mcp_echo.c), and clients that
send it exactly the given bytes."""
import contextlib
import http.client
import io
import json
import os
import select
import socket
import subprocess
import time

import harness

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
TOKEN = "a-token-of-the-tests"
META = {"io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}
SECONDS = 20
LEAKS = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1",
         "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


class Echo:
    """The running echo server. When its input is closed, it must end with status 0."""

    def __init__(self, build, *args, **popen):
        self.process = subprocess.Popen(
            [build / "tests/unit/mcp_echo", *map(str, args)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=LEAKS, **popen)
        self.errors = b""

    def end(self):
        if self.process.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            self.process.wait(SECONDS)
        finally:
            self.process.kill()
        self.errors += self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert self.process.returncode == 0, self.errors.decode("utf-8", "replace")[-4000:]

    def rss(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) * 1024

    def rests(self):
        """True if the server sleeps and uses no processor time for 0.3 s."""
        def ticks():
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
                fields = f.read().rpartition(")")[2].split()
                return fields[0], int(fields[11]) + int(fields[12])
        before = ticks()
        time.sleep(0.3)
        return before == ticks() and before[0] == "S"

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@contextlib.contextmanager
def echo(build, *args, **popen):
    e = Echo(build, *args, **popen)
    try:
        yield e
    except BaseException:
        e.process.kill()
        e.process.wait()
        raise
    e.end()


def request(number, method, params=None, modern=False):
    params = dict(params or {})
    if modern:
        params["_meta"] = dict(META, **params.get("_meta", {}))
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def initialize(number=1, version=LEGACY):
    return request(number, "initialize", {
        "protocolVersion": version, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}})


def call(number, name, modern=False, progress=None, **arguments):
    params = {"name": name, "arguments": arguments}
    if progress is not None:
        params["_meta"] = {"progressToken": progress}
    return request(number, "tools/call", params, modern)


def text_of(response):
    return response["result"]["content"][0]["text"]


def eventually(what, seconds=SECONDS):
    """Waits until what() returns a true value; returns False if that takes too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


# ---- HTTP --------------------------------------------------------------------

def head(port, method="POST", path="/mcp", token=TOKEN, **fields):
    """Returns the head of a request. Header fields are keyword arguments with '_' for '-'; None
    removes a field that is sent by default."""
    usual = {"Host": f"127.0.0.1:{port}", "Accept": "application/json, text/event-stream"}
    if token is not None:
        usual["Authorization"] = f"Bearer {token}"
    if method == "POST":
        usual["Content-Type"] = "application/json"
    usual.update({k.replace("_", "-"): v for k, v in fields.items()})
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [f"{k}: {v}" for k, v in usual.items() if v is not None]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Kept(io.BufferedReader):
    """A reader that http.client does not close after a response: bytes that it has buffered may
    be the beginning of the next response."""

    def makefile(self, *_):
        return self

    def close(self):
        pass


class Client:
    """One HTTP connection to the server."""

    def __init__(self, port):
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        self.file = Kept(socket.SocketIO(self.socket, "r"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def close(self):
        self.socket.close()

    def raw(self, data):
        self.socket.sendall(data)
        return self

    def send(self, method="POST", body=None, **fields):
        data = b"" if body is None else (
            body if isinstance(body, bytes) else json.dumps(body).encode())
        if body is not None and "Transfer_Encoding" not in fields:
            fields.setdefault("Content_Length", len(data))
        return self.raw(head(self.port, method, **fields) + data)

    def answer(self, method="POST"):
        """Returns the response, parsed by http.client; its body has not been read yet."""
        r = http.client.HTTPResponse(self.file, method=method)
        r.begin()
        return r

    def ask(self, method="POST", body=None, **fields):
        """Sends a request; returns (status, headers, body). The body is parsed if it is JSON."""
        self.send(method, body, **fields)
        r = self.answer(method)
        data = r.read()
        kind = r.getheader("Content-Type", "")
        return r.status, r.headers, json.loads(data) if kind == "application/json" else data

    def gone(self, seconds=SECONDS):
        """True if the server closes the connection within the time; data before that is ignored."""
        self.socket.settimeout(seconds)
        try:
            while self.socket.recv(65536):
                pass
            return True
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


def modern_fields(message):
    fields = {"MCP_Protocol_Version": MODERN, "Mcp_Method": message["method"]}
    if "name" in message["params"]:
        fields["Mcp_Name"] = message["params"]["name"]
    return fields


class Http(Echo):
    def __init__(self, build, token=TOKEN, hurry=0):
        super().__init__(build, "--http", "127.0.0.1:0",
                         *([] if token is None else [token, hurry]))
        self.url = self.process.stdout.readline().decode().strip()
        assert self.url, self.process.stderr.read()
        self.port = int(self.url.split(":")[2].split("/")[0])

    def client(self):
        return Client(self.port)

    def once(self, method="POST", body=None, **fields):
        with self.client() as c:
            return c.ask(method, body, **fields)

    def modern(self, name, number=1, **arguments):
        """Calls a tool on a new connection and returns the text of the answer."""
        message = call(number, name, modern=True, **arguments)
        status, _, answer = self.once(body=message, **modern_fields(message))
        assert status == 200, answer
        return text_of(answer)

    def session(self, version=LEGACY):
        status, headers, answer = self.once(body=initialize(version=version))
        assert status == 200 and answer["result"]["protocolVersion"] == version
        name = headers["Mcp-Session-Id"]
        fields = {"Mcp_Session_Id": name, "MCP_Protocol_Version": version}
        status, _, data = self.once(
            body={"jsonrpc": "2.0", "method": "notifications/initialized"}, **fields)
        assert (status, data) == (202, b"")
        return fields


@contextlib.contextmanager
def http_server(build, **options):
    h = Http(build, **options)
    try:
        yield h
    except BaseException:
        h.process.kill()
        h.process.wait()
        raise
    h.end()


def events(response):
    """Yields (id, data, retry) for each event of an event stream as it arrives."""
    found, number, data, retry = False, None, [], None
    while True:
        line = response.readline()
        if not line:
            return
        line = line.decode().rstrip("\n")
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if line == "":
            if found:
                yield number, "\n".join(data), retry
            found, data, retry = False, [], None
        elif name == "id":
            number = value
        elif name == "data":
            found = True
            data.append(value)
        elif name == "retry":
            retry = int(value)


def messages(response):
    """The JSON of each event; an event without data only sets an id and is left out."""
    return [json.loads(data) for _, data, _ in events(response) if data]


# ---- lines -------------------------------------------------------------------

class Lines:
    """JSON messages, one on each line, over two file descriptors (pipes, or one socket twice)."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.rest = reader, writer, b""

    def send(self, *what):
        for w in what:
            data = w if isinstance(w, bytes) else json.dumps(w).encode() + b"\n"
            while data:
                data = data[os.write(self.writer, data):]

    def line(self, seconds=SECONDS):
        """Returns the next line; None at the end of the stream."""
        while b"\n" not in self.rest:
            assert select.select([self.reader], [], [], seconds)[0], "nothing comes"
            try:
                more = os.read(self.reader, 1 << 20)
            except ConnectionResetError:
                more = b""
            if not more:
                return None
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def take(self):
        line = self.line()
        assert line is not None, "it has ended"
        return json.loads(line)

    def ask(self, message):
        self.send(message)
        return self.take()


def lines_of(process):
    return Lines(process.stdout.fileno(), process.stdin.fileno())


BUILDS = {"normal": harness.BUILD, "asan": harness.ASAN_BUILD}
