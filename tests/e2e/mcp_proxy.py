"""A proxy to a server that requires a token, for clients that have none: it adds the
token to every request. It passes on the rest of a request, and every answer, unchanged."""
import contextlib
import re
import socket
import threading


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    # When one end closes, the other end is closed, too.
    for s in (source, sink):
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_RDWR)


def requests(client, server, token, here, there):
    """Passes on the client's requests. In each head it adds the token, and it replaces the proxy's
    port with the server's in Host and Origin."""
    stream = client.makefile("rb")
    with contextlib.suppress(OSError):
        while line := stream.readline():
            head, length = [line, f"Authorization: Bearer {token}\r\n".encode()], 0
            while (line := stream.readline()).strip():
                if m := re.match(rb"content-length:\s*(\d+)", line, re.I):
                    length = int(m.group(1))
                if re.match(rb"(host|origin):", line, re.I):
                    line = line.replace(b":%d" % here, b":%d" % there)
                head.append(line)
            server.sendall(b"".join([*head, b"\r\n"]) + stream.read(length))
    for s in (client, server):
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def with_token(url, token):
    """Yields the URL of a proxy that adds the token and passes each request on to `url`."""
    there = int(re.search(r":(\d+)/", url).group(1))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = listener.getsockname()[1]

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    server = socket.create_connection(("127.0.0.1", there), 10)
                    server.settimeout(None)
                    for target, args in ((requests, (client, server, token, here, there)),
                                         (pump, (server, client))):
                        threading.Thread(target=target, args=args, daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        yield url.replace(f":{there}/", f":{here}/")
        listener.shutdown(socket.SHUT_RDWR)
