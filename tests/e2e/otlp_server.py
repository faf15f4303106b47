"""A collector that accepts only what the specification of OTLP allows, and gives the
answers that a test asks for.

Both encodings become the same messages, made from otlp.proto by protoc. A request
with an unknown field, a wrong type, an id of a wrong length, a text that is not
UTF-8, a duplicate key, or a JSON spelling that only some receivers accept
is answered with 400 and kept in `faults`.
"""
import base64
import contextlib
import http.server
import json
import pathlib
import re
import socket
import struct
import subprocess
import tempfile
import threading
import time

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

SCHEMA = pathlib.Path(__file__).with_name("otlp.proto")
IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
INT64 = {"intValue", "timeUnixNano", "startTimeUnixNano", "endTimeUnixNano",
         "observedTimeUnixNano"}
ENUMS = {"kind", "code", "severityNumber"}
TYPES = {"application/x-protobuf", "application/json"}


def load_schema():
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / "set"
        subprocess.run(["protoc", f"--proto_path={SCHEMA.parent}", f"--descriptor_set_out={out}",
                        SCHEMA.name], check=True, timeout=60)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for f in files.file:
        pool.Add(f)
    # All message classes are made now, before the first request. Otherwise two request threads
    # could make the same class at the same time, and one of them could use it unfinished.
    factory = message_factory.MessageFactory(pool)
    return {m.name: factory.GetPrototype(pool.FindMessageTypeByName("otlp." + m.name))
            for f in files.file for m in f.message_type}


class Fault(Exception):
    """The request is not what the specification says."""


def check(condition, text):
    if not condition:
        raise Fault(text)


def no_twins(pairs):
    check(len({k for k, _ in pairs}) == len(pairs), "a JSON key stands twice")
    return dict(pairs)


def plain_json(node, key=""):
    """Checks that the JSON is spelled strictly by the specification, and converts ids from
    hexadecimal (OTLP) to base64 (protobuf's JSON mapping)."""
    if isinstance(node, dict):
        for k in node:
            check(re.fullmatch("[a-z][A-Za-z0-9]*", k), f"not lowerCamelCase: {k}")
        return {k: plain_json(v, k) for k, v in node.items()}
    if isinstance(node, list):
        return [plain_json(v, key) for v in node]
    if key in IDS:
        check(isinstance(node, str) and re.fullmatch(f"[0-9a-f]{{{2 * IDS[key]}}}", node),
              f"{key} is not an id in hexadecimal: {node!r}")
        return base64.b64encode(bytes.fromhex(node)).decode()
    if key in INT64:
        check(isinstance(node, str) and re.fullmatch("-?[0-9]+", node),
              f"{key} is no 64-bit number as text: {node!r}")
    if key in ENUMS:
        check(type(node) is int, f"{key} is no enumeration as a number: {node!r}")
    check(node is not None, f"{key} is null")
    return node


def parse(prototype, content_type, body):
    message = prototype()
    if content_type == "application/json":
        tree = json.loads(body.decode("utf-8"), object_pairs_hook=no_twins)
        json_format.ParseDict(plain_json(tree), message, ignore_unknown_fields=False)
        return message
    message.ParseFromString(body)  # raises if a text is not UTF-8
    known = prototype()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    check(known.ByteSize() == message.ByteSize(), "unknown fields")
    check(message.ByteSize() == len(body), "not the shortest encoding, or a field twice")
    return message


def value_of(v):
    which = v.WhichOneof("value")
    check(which is not None, "a value that is none")
    if which == "array_value":
        values = [value_of(x) for x in v.array_value.values]
        check(len({type(x) for x in values}) <= 1, "an array of several types")
        return values
    check(which in ("string_value", "bool_value", "int_value", "double_value"), which)
    return getattr(v, which)


def attributes(pairs):
    found = {}
    for p in pairs:
        check(p.key and p.key not in found, f"the key {p.key!r} is empty or stands twice")
        found[p.key] = value_of(p.value)
    return found


def check_ids(node, parent=False):
    check(len(node.trace_id) == 16 and any(node.trace_id), "trace id")
    check(len(node.span_id) == 8 and any(node.span_id), "span id")
    check(not parent or len(node.parent_span_id) in (0, 8), "parent span id")


def take_spans(message):
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            check(scope.scope.name, "a scope without a name")
            for s in scope.spans:
                check_ids(s, parent=True)
                check(s.name and s.kind != 0, "a span without a name or a kind")
                check(0 < s.start_time_unix_nano <= s.end_time_unix_nano, "times of a span")
                attributes(s.attributes)
                for e in s.events:
                    attributes(e.attributes)
                    check(e.name and s.start_time_unix_nano <= e.time_unix_nano
                          <= s.end_time_unix_nano, "an event outside of its span")
                yield attributes(resource.resource.attributes), s


def take_logs(message):
    for resource in message.resource_logs:
        for scope in resource.scope_logs:
            check(scope.scope.name, "a scope without a name")
            for r in scope.log_records:
                check_ids(r)
                check(r.time_unix_nano > 0 and r.severity_number != 0, "a log record")
                attributes(r.attributes)
                yield attributes(resource.resource.attributes), r


def retry_after(value, status=503):
    return ("answer", status, {"Retry-After": str(value)}, b"")


def status(code, body=b""):
    return ("answer", code, {}, body)


class Collector:
    """The collector. `plan` has the answers to the next requests; later ones are accepted."""

    def __init__(self, tls=None, port=0):
        self.messages = load_schema()
        self.requests = []  # (path, headers, body length, time)
        self.spans, self.logs, self.batches = [], [], []
        self.faults, self.plan = [], []
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                collector.answer(self)

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # with the default of 5, some would wait 1 s to connect

            def handle_error(self, request, client_address):
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, h):
        with self.lock:
            step = self.plan.pop(0) if self.plan else None
            self.requests.append((h.path, dict(h.headers.items()),
                                  int(h.headers["Content-Length"]), time.monotonic()))
        if step is None or step[0] == "take":
            body = h.rfile.read(int(h.headers["Content-Length"]))
            code, reply = self.take(h, body)
            reply = step[1] if step else reply
            self.reply(h, code, {"Content-Type": h.headers["Content-Type"]}, reply)
            return
        getattr(self, "do_" + step[0])(h, *step[1:])

    def reply(self, h, code, headers, body):
        h.send_response(code)
        for name, value in headers.items():
            h.send_header(name, value)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    def do_answer(self, h, code, headers, body):
        h.rfile.read(int(h.headers["Content-Length"]))
        self.reply(h, code, headers, body)

    def do_hang(self, h):
        self.stopped.wait(100)

    def do_raw(self, h, data):
        h.rfile.read(int(h.headers["Content-Length"]))
        h.wfile.write(data)
        h.close_connection = True

    def do_drop(self, h):
        """Closes the connection with a reset, without reading the body."""
        h.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        h.close_connection = True
        h.connection.close()

    def do_endless(self, h, head, piece):
        h.rfile.read(int(h.headers["Content-Length"]))
        h.wfile.write(head)
        with contextlib.suppress(OSError):
            while not self.stopped.wait(0.001):
                h.wfile.write(piece)
        h.close_connection = True

    def take(self, h, body):
        kind = {"/v1/traces": ("Trace", take_spans), "/v1/logs": ("Logs", take_logs)}.get(h.path)
        try:
            check(kind, f"no such path: {h.path}")
            check(h.headers["Content-Type"] in TYPES, "content type")
            check("Transfer-Encoding" not in h.headers, "transfer encoding")
            message = parse(self.messages[f"Export{kind[0]}ServiceRequest"],
                            h.headers["Content-Type"], body)
            taken = list(kind[1](message))
            check(taken, "an empty request")
        except Exception as e:  # every error means that the request is invalid
            with self.lock:
                self.faults.append(f"{type(e).__name__}: {e}")
            return 400, b""
        with self.lock:
            if kind[0] == "Trace":
                self.spans += taken
            else:
                self.logs += taken
                self.batches.append(len(taken))
        return 200, b"{}" if h.headers["Content-Type"] == "application/json" else b""
