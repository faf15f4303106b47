"""Takes every remedy that a failed run prints: the printed options are added as they are, and then
the same command works and the denial is gone. A remedy in the source code that no case takes fails."""
import contextlib
import re
import shlex
import socket
import threading

import pytest

from harness import REPO

CONNECT = "import socket\ns = socket.create_connection(('127.0.0.1', %d))\ns.sendall(b'x')\n" \
    "assert s.recv(1) == b'x'"
FORK = "import os, time\nfor _ in range(40):\n    if os.fork() == 0:\n        time.sleep(1)\n        os._exit(0)"
FILL = "d = b'x' * (1 << 20)\nf = open('/tmp/x', 'wb')\nfor _ in range(5): f.write(d)\nf.flush()"

# Name: (options of the first run, command, options that the remedy must have). {home}, {work} and
# {port} are replaced. A string as command is a program in Python.
CASES = {
    "a hidden file": ([], ["cat", "{home}/notes.txt"], ["--read"]),
    "a directory that is listed": ([], ["ls", "{work}/data"], ["--read"]),
    "a directory that is entered": ([], ["bash", "-c", "cd {work}/data"], ["--read"]),
    "a file in a line of a shell": ([], ["sh", "-c", "test -e '{work}/data/f' || exit 3"], ["--read"]),
    "a file in an option": ([], ["tar", "--file={work}/t.tar", "-t"], ["--read"]),
    "a file that is only looked for": ([], "import os\nassert os.access('{home}/notes.txt', os.R_OK)",
                                       ["--read"]),
    "a file in a hidden directory": ([], ["sh", "-c", "echo x > {work}/new"], ["--write"]),
    "a hidden file that is changed": ([], "open('{home}/notes.txt', 'r+').write('y')", ["--write"]),
    "a directory in a hidden directory": ([], ["mkdir", "{work}/new"], ["--write"]),
    "a link into a hidden directory": ([], ["ln", "-s", "x", "{work}/link"], ["--write"]),
    "a file that is only granted for reading": (["-r", "{work}"], ["touch", "{work}/new"], ["--write"]),
    "a host": ([], "import socket\nsocket.getaddrinfo('api.example.com', 443)", ["--net"]),
    "a service of this machine": ([], CONNECT, ["--net", "--allow-private"]),
    "a guarded address": (["--net", "127.0.0.1:{port}"], CONNECT, ["--allow-private"]),
    "a unix socket": (["-w", "{work}"], "import socket\nsocket.socketpair(1, 2)", ["--unix-sockets"]),
    "a socket under strict": (["--profile", "strict"], "import socket\nsocket.socket()", ["--profile"]),
    "a unix socket under strict": (["--profile", "strict", "-w", "{work}"],
                                   "import socket\nsocket.socket(1, 2)",
                                   ["--profile", "--unix-sockets"]),
    "ptrace": ([], "import ctypes\nassert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0", ["--profile"]),
    "ptrace and a unix socket": (["-w", "{work}"], "import ctypes, socket\nsocket.socketpair(1, 2)\n"
                                 "assert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0",
                                 ["--unix-sockets", "--profile"]),
    "memory": (["--memory", "64M"], "x = b'x' * (90 << 20)", ["--memory"]),
    "time": (["--timeout", "1s"], "import time\ntime.sleep(1.5)", ["--timeout"]),
    "output": (["--max-output", "2000"], "print('x' * 3000)\nraise SystemExit(len('{home}') < 0)",
               ["--max-output"]),
    "processes": (["--max-processes", "30"], FORK, ["--max-processes"]),
    "files": (["--max-files", "64"], "import os\nfor _ in range(90): os.open('/dev/null', 0)", ["--max-files"]),
    "disk": (["--max-disk", "1"], FILL, ["--max-disk"]),
    "a file in the private home": ([], ["sh", "-c", "echo x > out.csv"], ["--project"]),
    "a file in a private directory": ([], ["sh", "-c", "mkdir -p {work}/d; echo x > {work}/d/out"],
                                      ["--write"]),
}
TOLD = re.compile(r"(?:to allow: |allow more: |to keep (?:it|them): )(--\S.*?)(?:,.*)?$", re.M)
ROUNDS = 4  # a limit is doubled; a program may miss a second thing only after the first is there


def remedies(text):
    """The options of all printed remedies, each once, as a shell would split them."""
    found = []
    for line in TOLD.findall(text):
        words = shlex.split(line)
        for i, word in enumerate(words):
            if word.startswith("--"):
                value = words[i + 1:i + 2]
                found.append((word, *(value if value and not value[0].startswith("--") else [])))
    return list(dict.fromkeys(found))


@contextlib.contextmanager
def listening():
    """A service of this machine that sends back one byte."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                with server.accept()[0] as peer:
                    peer.sendall(peer.recv(1))
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("case", CASES)
def test_a_remedy_is_taken(ssb, case):
    work = ssb.mkdir("home/work")
    ssb.mkdir("home/work/data")
    ssb.write(work / "data/f", "x")
    ssb.write(ssb.home / "notes.txt", "x")
    ssb.as_caller(["tar", "-cf", work / "t.tar", "-C", work, "data"]).ok()
    flags, command, wanted = CASES[case]
    with listening() as port:
        def fill(text):
            return text.replace("{home}", str(ssb.home)).replace("{work}", str(work)) \
                .replace("{port}", str(port)).replace("%d", str(port))
        argv = [fill(a) for a in (["/usr/bin/python3", "-c", command] if isinstance(command, str)
                                  else command)]
        flags = [fill(f) for f in flags]
        seen = []
        for _ in range(ROUNDS):
            r = ssb.run(*flags, "--", *argv, cwd=work, timeout=60)
            # Only `why` reports what programs try every day.
            more = remedies(r.errors) or (remedies(ssb.ssb("why", "last").text) if r.code else [])
            if not more:
                break
            seen += [m[0] for m in more]
            flags += [word for m in more for word in m]
        assert r.code == 0 and not remedies(r.errors) and "denied" not in r.errors, r
        assert list(dict.fromkeys(seen)) == wanted, seen


# Remedies are written in these files. Other messages of theirs name these options.
SOURCES = ("report/remedy.c", "trace/codes.def", "observe/observe_*.c", "cli/run_notes.c")
NO_REMEDY = {"--audit", "--best-effort"}


def options_in_source():
    found = set()
    for pattern in SOURCES:
        for file in (REPO / "src").glob(pattern):
            text = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.S)
            for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', text):
                found |= set(re.findall(r"--[a-z][a-z-]*", literal))
    limits = (REPO / "src/report/limit_text.c").read_text(encoding="utf-8")
    return (found | {"--" + name.lower().replace("_", "-")
                     for name in re.findall(r"SSB_OPT_(\w+)", limits)}) - NO_REMEDY


def test_every_remedy_has_a_case():
    taken = {flag for _, _, flags in CASES.values() for flag in flags}
    assert options_in_source() == taken


# Nothing can be granted, and the words say what the owner can do.
ALONE = {
    "a granted file is replaced": (["--write", "{work}/f"], "sed -i s/x/y/ {work}/f",
                                   "--write {work}, in place of the grant of the file"),
    "a protected file is replaced": (["--write", "{work}"], "sed -i s/x/y/ {work}/CLAUDE.md",
                                     "replace or delete it yourself, outside the sandbox"),
    "a protected file that is granted": (["--write", "{work}", "--write", "{work}/CLAUDE.md"],
                                         "sed -i s/x/y/ {work}/CLAUDE.md",
                                         "replace or delete it yourself, outside the sandbox"),
    "settings of git": (["--write", "{work}"], "git -C {work} config a.b c",
                        "run this git command yourself, outside the sandbox"),
    "settings of git that are granted": (
        ["--write", "{work}", "--write", "{work}/.git/config"], "git -C {work} config a.b c",
        "run this git command yourself, outside the sandbox"),
}


@pytest.mark.parametrize("case", ALONE)
def test_a_mount_cannot_be_replaced(ssb, case):
    """A grant of a file is a mount: the file can be written, but another file cannot be renamed to
    it. No remedy that fails is printed."""
    work = ssb.mkdir("home/work")
    for name in ("f", "CLAUDE.md"):
        ssb.write(work / name, "x\n")
    ssb.as_caller(["git", "init", "-q", work]).ok()
    flags, line, words = ([f.replace("{work}", str(work)) for f in CASE] if isinstance(CASE, list)
                          else CASE.replace("{work}", str(work)) for CASE in ALONE[case])
    r = ssb.run(*flags, "--", "sh", "-c", line)
    assert r.code != 0 and f"to allow: {words}" in r.errors, r
    told = [e["data"] for e in ssb.last_trace()["events"]
            if e["kind"] == "file_blocked" and e["data"]["op"] == "rename"]
    assert [(t["op"], t["error"]) for t in told] in ([("rename", "EBUSY")], [("rename", "EROFS")])
    # The controls: outside it works, and so does the grant of the directory in place of the file's.
    if words.startswith("--"):
        ssb.run("--write", work, "--", "sh", "-c", line).ok()
    ssb.as_caller(["sh", "-c", line]).ok()
