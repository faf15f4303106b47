"""A real PostgreSQL server (of the distribution) for the duration of a test.

    with postgres.Server(base, uid, gid) as server:
        server.url("database")

It runs as an unprivileged user (PostgreSQL refuses to run as root) in a temporary directory, on
a unix socket and a loopback port, with password authentication. When the process that started
the server ends, even by SIGKILL, the kernel sends the server a signal that ends it.
"""
import contextlib
import ctypes
import glob
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

USER = "ssb"
PASSWORD = "decoy-pw-" + secrets.token_hex(8)
START_SECONDS = 60

CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_permissions = 0777
max_connections = 100
shared_buffers = 16MB
dynamic_shared_memory_type = mmap
max_wal_size = 64MB
jit = off
autovacuum = off
deadlock_timeout = 200ms
# The tests kill only the server, never the kernel, which keeps all data that was written.
fsync = off
full_page_writes = off
"""


def programs():
    """The directory of the programs of the newest server that is installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"),
                   key=lambda p: int(p.split("/")[4]))
    assert found, "there is no PostgreSQL server: run scripts/setup test"
    return pathlib.Path(found[-1]).parent


def free_port():
    """A free port below the kernel's ephemeral range: a program that connects somewhere while the
    server is stopped never gets this port as its own."""
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", 15000 + secrets.randbelow(15000)))
            return s.getsockname()[1]


class Server:
    def __init__(self, base, uid, gid):
        self.bin, self.uid, self.gid = programs(), uid, gid
        # The name is short: the path of a unix socket has at most 107 bytes.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pg-", dir=base))
        os.chown(self.dir, uid, gid)
        self.dir.chmod(0o755)
        self.data = self.dir / "data"
        self.port = free_port()
        self.process = None

    def identity(self):
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups",
                "--inh-caps=-all", "--"]

    def run(self, *argv, **kw):
        r = subprocess.run([*self.identity(), *map(str, argv)], cwd=self.dir, timeout=120,
                           env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8",
                                "PGPASSWORD": PASSWORD},
                           capture_output=True, text=True, **kw)
        assert r.returncode == 0, f"{argv}: {r.stdout}\n{r.stderr}"
        return r.stdout

    def __enter__(self):
        try:
            pwfile = self.dir / "pw"
            pwfile.write_text(PASSWORD)
            os.chown(pwfile, self.uid, self.gid)
            self.run(self.bin / "initdb", "-D", self.data, "-U", USER, "-A", "scram-sha-256",
                     "--pwfile", pwfile, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
            with open(self.data / "postgresql.conf", "a", encoding="utf-8") as f:
                f.write(CONFIGURATION)
                f.write(f"port = {self.port}\nunix_socket_directories = '{self.dir}'\n")
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        libc = ctypes.CDLL(None)

        def die_with_parent():
            libc.prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG

        # Popen must change the uid before preexec_fn, and setpriv must not change it after: a
        # change of uid clears the parent-death signal.
        self.process = subprocess.Popen(
            [str(self.bin / "postgres"), "-D", str(self.data)], cwd=self.dir,
            user=self.uid, group=self.gid, extra_groups=[], env={"LC_ALL": "C.UTF-8"},
            preexec_fn=die_with_parent, stdin=subprocess.DEVNULL,
            stdout=open(self.dir / "log", "ab"), stderr=subprocess.STDOUT)
        end = time.monotonic() + START_SECONDS
        while subprocess.run([str(self.bin / "pg_isready"), "-q", "-h", str(self.dir), "-p",
                              str(self.port)], timeout=10, check=False).returncode != 0:
            log = (self.dir / "log").read_text(errors="replace")[-2000:]
            assert self.process.poll() is None, f"the server ended: {log}"
            assert time.monotonic() < end, f"the server is not ready: {log}"
            time.sleep(0.05)

    def stop(self, sig=signal.SIGINT):
        """Ends the server with a signal. SIGKILL reaches only the server; its children notice its
        end and exit."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(sig)
        self.process.wait(timeout=60)
        self.process = None

    def kill(self):
        """Kills all processes of the server at once, as in a crash."""
        family = [self.process.pid, *self.children()]
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(timeout=60)
        self.process = None
        end = time.monotonic() + 30
        while any(os.path.exists(f"/proc/{p}") for p in family):
            assert time.monotonic() < end, "the server does not die"
            time.sleep(0.02)

    @contextlib.contextmanager
    def standing_still(self):
        """Stops all processes of the server (SIGSTOP) during the `with` block: the kernel accepts
        connections, and no process answers."""
        self.process.send_signal(signal.SIGSTOP)
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.01)
        # From now on the server makes no new child and reaps none.
        family = [self.process.pid, *self.children()]
        for pid in family:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def children(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return [int(p) for p in pathlib.Path(path).read_text().split()]

    def sql(self, text, database="postgres"):
        return self.run(self.bin / "psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", self.dir, "-p",
                        self.port, "-U", USER, database, "-c", text)

    @contextlib.contextmanager
    def session(self, database):
        """Yields a function that runs SQL, always on the same connection, and waits for its end."""
        p = subprocess.Popen([*self.identity(), str(self.bin / "psql"), "-qAtX", "-h",
                              str(self.dir), "-p", str(self.port), "-U", USER, database],
                             cwd=self.dir, env={"PATH": "/usr/bin:/bin", "PGPASSWORD": PASSWORD},
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def say(text):
            p.stdin.write(f"{text}\n\\echo done\n")
            p.stdin.flush()
            assert p.stdout.readline() == "done\n"
        try:
            yield say
        finally:
            p.communicate(timeout=30)

    def database(self, name, encoding="UTF8"):
        """Makes a new, empty database and returns its URL."""
        self.sql(f"DROP DATABASE IF EXISTS {name}")
        self.sql(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        return self.url(name)

    def url(self, database, *, password=PASSWORD, tcp=False, user=USER):
        where = f"127.0.0.1:{self.port}" if tcp else ""
        extra = "" if tcp else f"?host={urllib.parse.quote(str(self.dir), safe='')}" \
                               f"&port={self.port}"
        return f"postgresql://{user}:{password}@{where}/{database}{extra}"


class LossyProxy:
    """A TCP proxy in front of a server. It drops the answer to the first data that contains `word`
    and closes that connection; it passes on everything else."""

    def __init__(self, server, word):
        self.server, self.word, self.dropped = server, word, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            up = socket.create_connection(("127.0.0.1", self.server.port))
            heard = threading.Event()
            threading.Thread(target=self.pump, args=(client, up, heard, None), daemon=True).start()
            threading.Thread(target=self.pump, args=(up, client, None, heard), daemon=True).start()

    def pump(self, source, target, heard, drop):
        """Copies one direction. Sets `heard` when the data contains the word; stops when `drop`
        is set."""
        try:
            while data := source.recv(65536):
                if heard is not None and self.word in data and not self.dropped.is_set():
                    heard.set()
                if drop is not None and drop.is_set():
                    self.dropped.set()
                    break
                target.sendall(data)
        except OSError:
            pass
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
