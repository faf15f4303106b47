"""HTTP servers on loopback that receive a session's messages (and answer well, late, wrongly or
never), and the program that delivers the messages (tests/unit/notify_driver.c)."""
import contextlib
import http.server
import json
import os
import pathlib
import signal
import socket
import ssl
import threading
import time

import harness
import net_servers

SLACK, JSON, PAGERDUTY = range(3)
EVENT = {"event": "session_killed", "session_id": "0123456789abcdef", "agent_id": "agent <1>",
         "reason": "spent $5.11 of $5.00 & more", "code": "max_cost_per_session",
         "timestamp": "2026-11-15T13:20:00.123456Z", "state": "killed", "session_cost_usd": 5.11,
         "budget_usd": 5.0, "action_count": 12, "violation_counts": {"pii_blocked": 3}}


class Receiver:
    """An HTTP server. `plan` has the answer to each of the next requests: (status, headers, body)
    or a function. All requests after these are answered with 200."""

    def __init__(self, tls=None, family=socket.AF_INET, plan=()):
        self.requests = []  # (path, headers, body, time)
        self.plan = list(plan)
        self.stopped = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                receiver.answer(self)

            def do_GET(self):
                receiver.answer(self)

            def do_CONNECT(self):
                receiver.answer(self)

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # with the default of 5, some would wait 1 s to connect
            address_family = family

            def handle_error(self, request, client_address):
                pass

        host = "127.0.0.1" if family == socket.AF_INET else "::1"
        self.server = Server((host, 0), Handler)
        self.port = self.server.server_port
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        at = host if family == socket.AF_INET else f"[{host}]"
        self.url = f"http{'s' if tls else ''}://{at}:{self.port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, h):
        body = h.rfile.read(int(h.headers.get("Content-Length", 0)))
        self.requests.append((h.path, dict(h.headers.items()), body, time.monotonic()))
        step = self.plan.pop(0) if self.plan else (200, {}, b"ok")
        if callable(step):
            step(self, h)
            return
        status, headers, text = step
        h.send_response(status)
        for name, value in headers.items():
            h.send_header(name, value)
        h.send_header("Content-Length", str(len(text)))
        h.end_headers()
        h.wfile.write(text)


def silent(receiver, h):
    """Accepts the request and never answers."""
    receiver.stopped.wait(100)
    h.close_connection = True


def late(receiver, h):
    """Answers after 1 s."""
    receiver.stopped.wait(1)
    h.send_response(200)
    h.send_header("Content-Length", "0")
    h.end_headers()


def endless(head, piece):
    def step(receiver, h):
        h.wfile.write(head)
        sent = len(head)
        with contextlib.suppress(OSError):
            while not receiver.stopped.wait(0.0005):
                h.wfile.write(piece)
                sent += len(piece)
        receiver.sent = sent
        h.close_connection = True
    return step


def raw(data):
    def step(_, h):
        h.wfile.write(data)
        h.close_connection = True
    return step


def deaf(sock):
    """A bound port where the kernel accepts connections and no program reads."""
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    return f"http://127.0.0.1:{sock.getsockname()[1]}/"


def dead(sock):
    """A port that is bound but does not listen: connections are refused."""
    sock.bind(("127.0.0.1", 0))
    return f"http://127.0.0.1:{sock.getsockname()[1]}/"


def authority(runner, name="ca"):
    """Makes a CA and a certificate for 127.0.0.1; returns a server's TLS context with this
    certificate, and the path of the CA's certificate."""
    top = runner.work / name
    top.mkdir()
    net_servers.authority(top, name)
    net_servers.certificate(top, "hook", ["IP:127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(top / "hook.pem", top / "hook.key")
    return context, top / "ca.pem"


class Outbox:
    """The outbox of one caller, used through tests/unit/notify_driver.c."""

    def __init__(self, runner, driver):
        self.runner, self.driver = runner, driver
        self.dir = runner.state / "skillsandbox"
        runner.write(self.dir / "outbox.txt", "", 0o600)

    def add(self, kind, url, secret="-", event=EVENT):
        body = event if isinstance(event, str) else json.dumps(event)
        with open(self.dir / "outbox.txt", "a", encoding="utf-8") as f:
            f.write(f"{kind}\t{url}\t{secret}\t{body}\n")
        return self

    def deliver(self, seconds=30, **env):
        begin = time.monotonic()
        self.runner.as_caller([self.driver, "deliver", str(seconds)], env=env,
                              timeout=seconds + 30).ok()
        return time.monotonic() - begin

    def start(self, *how, **env):
        return self.runner.as_caller([self.driver, *(how or ["start"])], env=env, timeout=20)

    def done(self):
        """Returns (message, status, retry in ms, error) for each try to deliver."""
        path = self.dir / "done.txt"
        found = []
        for line in path.read_text().splitlines() if path.exists() else []:
            n, status, retry, _, error = line.split(" ", 4)
            found.append((int(n), int(status), int(retry), error))
        return found

    def heralds(self):
        """The pids of this caller's heralds, without the child processes of a herald."""
        mine = f"XDG_STATE_HOME={self.runner.state}".encode()
        found = {}
        for p in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (p / "comm").read_text() == "skillsandbox-he\n" and \
                        mine in (p / "environ").read_bytes():
                    found[int(p.name)] = int((p / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
        return [pid for pid, parent in found.items() if parent not in found]

    def end(self):
        for pid in self.heralds():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


DRIVER = harness.BUILD / "tests/unit/notify_driver"
STORE = harness.BUILD / "tests/unit/notify_store"


class Store:
    """The real store of sessions, used through tests/unit/notify_store.c."""

    def __init__(self, runner, program):
        self.runner, self.program = runner, program
        runner.write(runner.state / "skillsandbox/empty", "")  # the directory

    def call(self, *args, **env):
        return self.runner.as_caller([self.program, *args], env=env, timeout=30).ok().text

    def kill(self, policy, *reason, **env):
        path = self.runner.write(self.runner.work / "session.yaml", policy)
        return self.call("kill", path, *reason, **env).strip()

    def ledger(self, session, kind="notification"):
        lines = [json.loads(x) for x in self.call("ledger", session).splitlines()]
        return [x for x in lines if x["kind"] == kind]
