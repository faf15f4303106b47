"""The report as HTML, in Debian's Chromium: a record full of markup runs no script and asks for nothing."""
import html
import http.server
import pathlib
import subprocess
import threading

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
CODE = """
import os
for name in ('<img src=x onerror=document.title="RAN">', '"><svg onload=document.title="RAN">'):
    open(os.path.join(DIR, name.replace('/', '_')), 'w').close()
print('<script>document.title="RAN"</script><img src="http://127.0.0.1:PORT/img">'
      '<script src="http://127.0.0.1:PORT/js"></script><link rel=stylesheet href="http://127.0.0.1:PORT/css">')
"""
POLICY = "Content-Security-Policy"


class Server(http.server.ThreadingHTTPServer):
    """Counts the requests that a page makes."""

    def __init__(self):
        self.asked = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(name="server")
def fixture_server():
    with Server() as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        yield s
        s.shutdown()


def browse(page, profile):
    r = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                        "--disable-background-networking", f"--user-data-dir={profile}",
                        "--virtual-time-budget=3000", "--dump-dom", page.as_uri()],
                       capture_output=True, text=True, timeout=120, check=True,
                       env={"HOME": str(profile), "PATH": "/usr/bin:/bin"})
    return r.stdout


def test_the_report_runs_nothing_and_asks_for_nothing(tmp_path, server):
    binary = REPO / "build/src/skillsandbox"
    out = tmp_path / "out"
    out.mkdir()
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    port = str(server.server_address[1])
    code = CODE.replace("PORT", port).replace("DIR", repr(str(out)))
    subprocess.run([binary, "run", "--write", out, "--", "/usr/bin/python3", "-c", code], env=env,
                   check=True, capture_output=True, timeout=60)
    page = tmp_path / "report.html"
    subprocess.run([binary, "audit", "show", f"--html={page}", "last"], env=env, check=True, timeout=60)
    text = page.read_text(encoding="utf-8")

    dom = browse(page, tmp_path / "p1")
    assert "<title>Run of python3</title>" in dom and server.asked == [], (server.asked, dom[:300])
    assert "&lt;img src=x onerror" in dom and "<script" not in dom and "<img" not in dom, dom

    # The control: the same page without its escapes and its policy runs the scripts.
    bare = tmp_path / "bare.html"
    bare.write_text(html.unescape(text).replace(POLICY, "X"), encoding="utf-8")
    dom = browse(bare, tmp_path / "p2")
    assert "<title>RAN</title>" in dom and server.asked, (server.asked, dom[:300])

    # Without its escapes only, the policy still holds.
    server.asked.clear()
    bare.write_text(html.unescape(text), encoding="utf-8")
    dom = browse(bare, tmp_path / "p3")
    assert "<title>RAN</title>" not in dom and server.asked == [], (server.asked, dom[:300])
