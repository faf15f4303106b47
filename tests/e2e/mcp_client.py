"""A client of the Model Context Protocol over stdin and stdout, for both protocol versions
(LEGACY and MODERN).

    with mcp_client.serve(ssb, skills, era=MODERN) as client:
        result = client.tool("run_skill", skill_dir="weather")

Several requests may be open at once: send() and answer() are the two halves of call().
A line on stdout that is not one JSON-RPC message is a failure.
"""
import contextlib
import json
import subprocess
import threading
import time

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
ERAS = (LEGACY, MODERN)
SECONDS = 60
META = "io.modelcontextprotocol/"


class Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.error = error


class Client:
    def __init__(self, process, era=LEGACY, capabilities=None, name="test"):
        self.process, self.era, self.name = process, era, name
        self.capabilities = capabilities or {}
        self.answers = {}
        self.asked = []  # requests that the server has sent
        self.news = []  # notifications
        self.errors = b""
        self.broken = None
        self.last = 0
        self.changed = threading.Condition()
        self.readers = [threading.Thread(target=f, daemon=True)
                        for f in (self.read, self.read_errors)]
        for t in self.readers:
            t.start()
        if era == LEGACY:
            self.server = self.call("initialize", {
                "protocolVersion": LEGACY, "capabilities": self.capabilities,
                "clientInfo": {"name": name, "version": "1"}})
            self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    # ---- bytes -----------------------------------------------------------------

    def read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
                assert message["jsonrpc"] == "2.0"
            except (ValueError, AssertionError, KeyError, TypeError):
                with self.changed:
                    self.broken = line
                    self.changed.notify_all()
                continue
            with self.changed:
                if "method" not in message:
                    self.answers[message["id"]] = message
                else:
                    (self.asked if "id" in message else self.news).append(message)
                self.changed.notify_all()
        with self.changed:
            self.broken = self.broken or b"(the end)"
            self.changed.notify_all()

    def read_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def write(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    # ---- requests --------------------------------------------------------------

    def meta(self, more=None):
        own = {} if self.era == LEGACY else {
            META + "protocolVersion": MODERN,
            META + "clientCapabilities": self.capabilities,
            META + "clientInfo": {"name": self.name, "version": "1"}}
        return {**own, **(more or {})}

    def send(self, method, params=None, meta=None):
        """Sends a request without waiting for the answer; returns the request's id."""
        self.last += 1
        params = dict(params or {})
        if self.meta(meta):
            params["_meta"] = self.meta(meta)
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        return self.last

    def until(self, there, seconds=SECONDS):
        """Waits until the result of there() is true, and returns this result."""
        end = time.monotonic() + seconds
        with self.changed:
            while not (found := there()):
                assert self.broken is None, f"{self.broken[:300]}\n{self.errors.decode()[-3000:]}"
                left = end - time.monotonic()
                assert left > 0, f"no answer in {seconds} s\n{self.errors.decode()[-3000:]}"
                self.changed.wait(left)
        return found

    def answer(self, number, seconds=SECONDS):
        self.until(lambda: number in self.answers, seconds)
        message = self.answers.pop(number)
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    def call(self, method, params=None, seconds=SECONDS, meta=None):
        return self.answer(self.send(method, params, meta), seconds)

    def send_tool(self, tool, meta=None, **arguments):
        return self.send("tools/call", {"name": tool, "arguments": arguments}, meta)

    def tool(self, tool, seconds=SECONDS, meta=None, **arguments):
        return self.answer(self.send_tool(tool, meta, **arguments), seconds)

    def cancel(self, number):
        self.write({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": number, "reason": "test"}})

    def progress(self, token):
        """The progress notifications with this token that have arrived so far."""
        with self.changed:
            return [n["params"] for n in self.news if n["method"] == "notifications/progress" and
                    n["params"]["progressToken"] == token]

    def answer_server(self, request, result):
        self.write({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def close(self, seconds=SECONDS):
        """Closes the server's input: the server must end with status 0."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        code = self.process.wait(seconds)
        for t in self.readers:
            t.join(seconds)
        assert code == 0, f"exit {code}\n{self.errors.decode()[-4000:]}"
        assert self.broken == b"(the end)", self.broken


def start(caller, skills, *flags, env=None):
    """Starts `skillsandbox serve` as this caller (harness.Runner)."""
    words = [w for s in skills for w in ("--skills", s)]
    return caller.popen([caller.binary, "serve", *words, *flags], env=env,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@contextlib.contextmanager
def serve(caller, skills, *flags, era=LEGACY, capabilities=None, env=None):
    process = start(caller, skills, *flags, env=env)
    try:
        client = Client(process, era, capabilities)
        yield client
        if process.poll() is None:
            client.close()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def structured(result):
    assert not result.get("isError"), result
    return result["structuredContent"]


def failure(result):
    """Returns {"code", "message", "fix"} of a result, which must be an error."""
    assert result.get("isError"), result
    error = result["structuredContent"]["error"]
    assert {"code", "message", "fix"} <= set(error), error
    return error
