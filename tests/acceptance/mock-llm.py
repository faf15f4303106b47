#!/usr/bin/python3
"""A model provider on loopback, so that real agents can run without a real model.

It implements as much of the Anthropic Messages API as Claude Code needs, and as much of the OpenAI
Responses API as Codex needs. It follows a plan, a JSON list of [tool, arguments]: each turn calls
the next tool, and after the last result it answers DONE. "namespace|name" is a tool in a namespace,
as Codex has them. Every request is appended to LOG, one JSON object a line. A text that is not in
LOG has not reached the provider.

Usage: mock-llm.py PORT PLAN LOG [READY]   (READY: a file that is created when it listens)
"""
import http.server
import json
import pathlib
import sys


def sse(events):
    """Returns [(name, data)] as server-sent events."""
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events).encode()


def answers(request, kinds):
    """Returns how many tools have answered in the conversation so far."""
    found = 0
    for item in request.get("messages") or request.get("input") or []:
        parts = item.get("content") if isinstance(item, dict) else None
        parts = parts if isinstance(parts, list) else []
        found += sum(p.get("type") in kinds for p in [item, *parts] if isinstance(p, dict))
    return found


def anthropic(request, plan):
    done = answers(request, {"tool_result"})
    model = request.get("model")
    if done < len(plan) and request.get("tools"):
        name, arguments = plan[done]
        stop, block = "tool_use", {"type": "tool_use", "id": f"toolu_{done}", "name": name}
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        full = {**block, "input": arguments}
    else:
        stop, start = "end_turn", {"type": "text", "text": ""}
        delta, full = {"type": "text_delta", "text": "DONE"}, {"type": "text", "text": "DONE"}
    message = {"id": f"msg_{done}", "type": "message", "role": "assistant", "model": model,
               "usage": {"input_tokens": 1, "output_tokens": 1}}
    if not request.get("stream"):
        return "application/json", json.dumps({**message, "content": [full],
                                               "stop_reason": stop}).encode()
    events = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
         "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return "text/event-stream", sse((e["type"], e) for e in events)


def openai(request, plan):
    done = answers(request, {"function_call_output", "custom_tool_call_output"})
    if done < len(plan):
        name, arguments = plan[done]
        item = {"type": "function_call", "id": f"fc_{done}", "call_id": f"call_{done}",
                "arguments": json.dumps(arguments)}
        namespace, _, item["name"] = name.rpartition("|")
        if namespace:
            item["namespace"] = namespace
    else:
        item = {"type": "message", "id": "m", "role": "assistant",
                "content": [{"type": "output_text", "text": "DONE"}]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
             "input_tokens_details": None, "output_tokens_details": None}
    events = [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed",
         "response": {"id": "r", "output": [item], "usage": usage}},
    ]
    return "text/event-stream", sse((e["type"], e) for e in events)


def handler(plan, log):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, kind, body):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_HEAD(self):
            self.answer("application/json", b"")

        def do_GET(self):
            self.answer("application/json", b'{"data": [], "object": "list", "models": []}')

        def do_POST(self):
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            log.write(json.dumps({"path": self.path, "headers": dict(self.headers),
                                  "body": raw.decode("utf-8", "backslashreplace")}) + "\n")
            log.flush()
            try:
                request = json.loads(raw)
            except ValueError:
                request = {}
            path = self.path.split("?")[0]
            if path.endswith("/v1/messages"):
                self.answer(*anthropic(request, plan))
            elif path.endswith("/responses"):
                self.answer(*openai(request, plan))
            else:
                self.answer("application/json", b'{"input_tokens": 1}')

    return Handler


def main(port, plan, log, ready=None):
    with open(log, "a", encoding="utf-8") as out:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)),
                                                 handler(json.loads(plan), out))
        if ready:
            pathlib.Path(ready).touch()
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
