"""net_proxy.py PORT LOG [MODE] - an HTTP proxy for the egress tests. It runs in the
namespaces of net_servers.py and listens on every address. It answers CONNECT, and
writes one JSON line to LOG for each request: target, credentials, status.

MODE: open; auth (requires USER and PASSWORD); refuse (403); garbage (the answer is not
HTTP); silent (no answer); endless (the head of the answer never ends); greedy (200 and
the first bytes of the server in one segment)."""
import base64
import json
import socket
import sys
import threading

USER, PASSWORD = "decoy", "w41d9c7-Made-Up-Word-82ba"
WANTED = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
ANSWERS = {"refuse": b"HTTP/1.1 403 Forbidden\r\n\r\n", "garbage": b"SSH-2.0-proxy\r\n"}


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def read_head(sock):
    head = b""
    while b"\r\n\r\n" not in head and (more := sock.recv(1)):
        head += more
    return head.decode("latin-1")


# Names that only this proxy resolves.
KNOWN = {"far.example.test": "127.0.0.1"}


def tunnel(sock, target, mode):
    host, _, port = target.rpartition(":")
    host = KNOWN.get(host, host)
    try:
        out = socket.create_connection((host.strip("[]"), int(port)), 5)
    except (OSError, ValueError):
        sock.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        return
    first = b""
    if mode == "greedy":
        out.settimeout(0.3)
        try:
            first = out.recv(4096)
        except TimeoutError:
            pass
        out.settimeout(None)
    sock.sendall(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n" + first)
    back = threading.Thread(target=pump, args=(out, sock), daemon=True)
    back.start()
    pump(sock, out)
    back.join()  # the other direction may end later
    out.close()


def answer(sock, mode, log):
    head = read_head(sock)
    words = head.split("\r\n")[0].split(" ")
    fields = dict(line.partition(": ")[::2] for line in head.split("\r\n")[1:] if line)
    auth = fields.get("Proxy-Authorization")
    target = words[1] if len(words) == 3 and words[0] == "CONNECT" else None
    with open(log, "a", encoding="ascii") as f:
        f.write(json.dumps({"target": target, "auth": auth, "head": head}) + "\n")
    if mode == "silent":
        sock.recv(1)
    elif mode == "endless":
        sock.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            sock.sendall(b"X: " + b"x" * 1000 + b"\r\n")
    elif mode in ANSWERS:
        sock.sendall(ANSWERS[mode])
    elif mode == "auth" and auth != WANTED:
        sock.sendall(b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=x\r\n\r\n")
    elif target is None:
        sock.sendall(b"HTTP/1.1 400 CONNECT only\r\n\r\n")
    else:
        tunnel(sock, target, mode)


def one(sock, mode, log):
    try:
        answer(sock, mode, log)
    except OSError:
        pass
    finally:
        sock.close()


def main():
    port, log, mode = int(sys.argv[1]), sys.argv[2], (sys.argv[3:] or ["open"])[0]
    server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    print("ready", flush=True)
    while True:
        sock, _ = server.accept()
        threading.Thread(target=one, args=(sock, mode, log), daemon=True).start()


if __name__ == "__main__":
    main()
