#!/usr/bin/env python3
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

APP = pathlib.Path(__file__).resolve().parent.parent / "app"
with socket.create_server(("localhost", 0)) as probe:
    port = probe.getsockname()[1]
server = subprocess.Popen([sys.executable, "-m", "http.server", str(port), "--bind", "localhost",
                           "--directory", str(APP)], stderr=subprocess.DEVNULL)
try:
    while server.poll() is None:
        try:
            socket.create_connection(("localhost", port), 1).close()
            break
        except OSError:
            time.sleep(0.05)
    with urllib.request.urlopen(f"http://localhost:{port}/") as page:
        print("ok" if b"It works." in page.read() else "not ok")
finally:
    server.terminate()
    server.wait()
