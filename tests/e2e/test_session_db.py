"""The two stores of sessions, on a real SQLite and a real PostgreSQL: the same cases on both, and
failures."""
import errno
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest

import harness
import postgres
from harness import wait_for


@pytest.fixture(scope="module")
def tools(base):
    """A directory with copies of the test programs, which both callers can execute."""
    out = pathlib.Path(base) / f"session-db-{os.getpid()}"
    out.mkdir(mode=0o755)
    for name in ("test_session_db", "session_db_probe"):
        shutil.copy(harness.BUILD / "tests/unit" / name, out / name)
        (out / name).chmod(0o755)
    return out


class Probe:
    """Calls session_db_probe with the URL or file of one store, as one caller."""

    def __init__(self, runner, tools, store):
        self.runner, self.store = runner, str(store)
        self.program = tools / "session_db_probe"

    def __call__(self, *args, **kw):
        return self.runner.as_caller([self.program, self.store, *args], **kw)

    def start(self, *args):
        return self.runner.popen([self.program, self.store, *args], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 bufsize=1)

    def counts(self, tag):
        """Returns four counts of the transactions with this tag. Each transaction writes four kinds
        of data; each count is from another kind."""
        return [int(n) for n in self("count", tag).ok().text.split()]


class Stay:
    """A process that keeps its connection, and executes the commands that it reads."""

    def __init__(self, probe):
        self.p = probe.start("stay")
        line = self.p.stdout.readline()
        assert line == "ready\n", line + self.p.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.stdin.close()
        self.p.wait(timeout=60)
        self.p.stdout.close()
        self.p.stderr.close()

    def do(self, what="transaction"):
        self.p.stdin.write(what + "\n")
        return self.p.stdout.readline().strip()


@pytest.fixture
def sqlite(ssb, tools):
    return Probe(ssb, tools, ssb.mkdir("state", 0o700) / "sessions.db")


@pytest.fixture
def database(request, server):
    """The URL of a new database."""
    return server.database(re.sub(r"\W", "_", request.node.name).lower()[:60])


@pytest.fixture
def pg(ssb, tools, database):
    return Probe(ssb, tools, database)


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, sqlite, pg):
    return sqlite if request.param == "sqlite" else pg


def name_of(url):
    return url.split("/")[3].split("?")[0]


def errno_of(line):
    return int(line.rsplit(" ", 1)[1])


# ---- the cases ---------------------------------------------------------------

def test_every_case_on_both(ssb, tools, database):
    r = ssb.as_caller([tools / "test_session_db"], env={"SSB_TEST_POSTGRES": database},
                      timeout=120).ok()
    said = r.text + r.errors
    for case in re.findall(r"^\tCASE\((\w+)\)", (harness.REPO / "tests/unit/test_session_db.c")
                           .read_text(encoding="utf-8"), re.M):
        assert f"SQLite: {case}\n" in said and f"PostgreSQL: {case}\n" in said, repr(r)


def test_fifty_writers(store):
    writers = [store.start("write", "20", f"t{i % 5}") for i in range(50)]
    for w in writers:
        out, err = w.communicate(timeout=60)
        assert w.returncode == 0, err
        assert "worst" in out
    for i in range(5):
        assert store.counts(f"t{i}") == [200] * 4


# ---- a writer that is killed -------------------------------------------------

def test_kill_of_a_writer_leaves_whole_transactions(store):
    committed = 0
    for round_ in range(8):
        w = store.start("write", "0", "t")
        assert w.stdout.readline() == "ready\n", w.stderr.read()
        for _ in range(5 + round_):
            w.stdout.readline()
        os.killpg(w.pid, signal.SIGKILL)
        said = [n for n in w.stdout.read().split() if n.isdigit()]
        w.wait(timeout=30)
        w.stderr.close()
        seen = 5 + round_ + len(said)
        now = store.counts("t")
        # The last transaction may be committed before the writer could print it.
        assert len(set(now)) == 1 and committed + seen <= now[0] <= committed + seen + 1, \
            (committed, seen, now)
        committed = now[0]
    if not store.store.startswith("postgresql"):
        assert store("check").ok().text == "ok\n"
    assert store("write", "1", "t").ok()
    assert store.counts("t")[0] == committed + 1


# ---- SQLite ------------------------------------------------------------------

def syncs(runner, argv, log):
    runner.as_caller(["strace", "-f", "-o", log, "-e", "trace=fsync,fdatasync", *argv]).ok()
    return len(re.findall(r"f(?:data)?sync\(", log.read_text()))


def test_one_sync_for_a_commit(root, tools):
    """Each commit makes exactly one sync. Without it, the commit might not be on the disk; a second
    one would only cost time."""
    store = root.mkdir("state", 0o700) / "s.db"
    probe = [tools / "session_db_probe", store, "write"]
    root.as_caller([*probe, "1", "t"]).ok()
    few, many = (syncs(root, [*probe, n, "t"], root.work / "log") for n in ("10", "410"))
    assert 400 <= many - few <= 400 * 1.1, (few, many)


def test_full_disk(root, tools):
    """The disk is full (a small file system): a write fails, and the same store works when there is
    room again."""
    probe = tools / "session_db_probe"
    script = f"""
        set -e
        d=$(mktemp -d)
        mount -t tmpfs -o size=1m,mode=0700 none $d
        {probe} $d/s.db write 20 t >/dev/null
        head -c 2m /dev/zero >$d/fill 2>/dev/null || true
        {probe} $d/s.db write 2000 t && exit 9
        {probe} $d/s.db count t
        rm $d/fill
        {probe} $d/s.db write 20 t >/dev/null
        {probe} $d/s.db count t
        {probe} $d/s.db check
    """
    r = root.as_caller(["unshare", "--mount", "sh", "-c", script]).ok()
    assert "cannot grow" in r.errors and "No space left" in r.errors, repr(r)
    lines = [line for line in r.text.splitlines() if not line.startswith("ready")]
    before, after = lines[0].split(), lines[1].split()
    assert len(set(before)) == 1 and int(before[0]) >= 20
    assert after == [str(int(before[0]) + 20)] * 4
    assert lines[2] == "ok"


def test_full_disk_at_first(root, tools):
    """The disk has no room for the tables: no file is left that would later be used as a store."""
    probe = tools / "session_db_probe"
    script = f"""
        set -e
        d=$(mktemp -d)
        mount -t tmpfs -o size=256k,mode=0700 none $d
        head -c 1m /dev/zero >$d/fill 2>/dev/null || true
        {probe} $d/s.db open && exit 9
        rm $d/fill
        {probe} $d/s.db write 3 t >/dev/null
        {probe} $d/s.db count t
    """
    r = root.as_caller(["unshare", "--mount", "sh", "-c", script]).ok()
    assert "No space left" in r.errors, repr(r)
    assert r.text.splitlines()[-1] == "3 3 3 3"


def test_read_only_file_system(root, tools):
    probe = tools / "session_db_probe"
    script = f"""
        set -e
        d=$(mktemp -d)
        mount -t tmpfs -o mode=0700 none $d
        {probe} $d/s.db write 3 t >/dev/null
        mount -o remount,ro $d
        {probe} $d/s.db write 1 t && exit 9
        mount -o remount,rw $d
        {probe} $d/s.db count t
    """
    r = root.as_caller(["unshare", "--mount", "sh", "-c", script]).ok()
    assert "Read-only file system" in r.errors, repr(r)
    assert r.text.splitlines()[-1] == "3 3 3 3"


def test_file_size_limit(sqlite):
    """The kernel refuses a write because of a file size limit: this is an error, and the store
    works afterwards."""
    sqlite("write", "3", "t").ok()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200 * 1024, 200 * 1024))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    r = harness.execute([*sqlite.runner.identity(), sqlite.program, sqlite.store, "write", "500",
                         "t"], env=sqlite.runner.environment(), preexec_fn=limit)
    assert r.code == 1 and "session store" in r.errors, repr(r)
    assert len(set(sqlite.counts("t"))) == 1
    sqlite("write", "1", "t").ok()


def test_others_directory(root, user, tools):
    """A store in a directory that others can write, or that belongs to another user, is refused."""
    mine = user.mkdir("open", 0o777)
    r = Probe(user, tools, mine / "s.db")("open")
    assert r.code == 1 and f"chmod go-w '{mine}'" in r.errors, repr(r)
    mine.chmod(0o700)
    Probe(user, tools, mine / "s.db")("open").ok()
    r = Probe(root, tools, mine / "s.db")("open")
    assert r.code == 1 and "must be yours" in r.errors, repr(r)


def without(library):
    """Returns the beginning of a command: it makes a new mount namespace in which this library
    cannot be loaded."""
    real = next(os.path.realpath(p) for p in (f"/usr/lib/x86_64-linux-gnu/{library}",
                                              f"/usr/lib/aarch64-linux-gnu/{library}")
                if os.path.exists(p))
    return ["unshare", "--mount", "sh", "-c", f'mount --bind /dev/null {real} && exec "$@"', "sh"]


def test_without_libraries(root, tools, database):
    probe = tools / "session_db_probe"
    path = root.mkdir("state", 0o700) / "s.db"
    for library, store, package in (("libpq.so.5", database, "libpq5"),
                                    ("libsqlite3.so.0", path, "libsqlite3-0")):
        r = root.as_caller([*without(library), probe, store, "open"])
        assert r.code == 1 and f"install the package {package}" in r.errors, repr(r)
        assert postgres.PASSWORD not in r.errors
        root.as_caller([probe, store, "open"]).ok()
    # Each library is needed only for its own store.
    root.as_caller([*without("libpq.so.5"), probe, path, "open"]).ok()
    root.as_caller([*without("libsqlite3.so.0"), probe, database, "open"]).ok()


# ---- PostgreSQL --------------------------------------------------------------

def test_news(ssb, tools, pg):
    listener = pg.start("listen", "20")
    assert listener.stdout.readline() == "ready 1\n", listener.stderr.read()
    start = time.monotonic()
    pg("tell", "some-session").ok()
    assert listener.stdout.readline() == "news 'some-session'\n"
    assert time.monotonic() - start < 15
    os.killpg(listener.pid, signal.SIGKILL)
    listener.communicate()


def test_crash_of_the_server(ssb, tools, pg, server):
    """The server crashes: committed data is kept, the open transaction is lost, and both kinds of
    connection recover."""
    with Stay(pg) as one, Stay(pg) as two:
        listener = pg.start("listen", "60")
        assert listener.stdout.readline() == "ready 1\n"
        assert one.do() == "ok 0"
        assert two.do("begin") == "ok 0" and two.do("run") == "ok 0"
        server.kill()
        line = one.do()
        assert errno_of(line) == errno.ENOTCONN, line
        assert postgres.PASSWORD not in line
        assert not two.do("commit").startswith("ok")
        assert listener.stdout.readline().startswith("lost: ")
        server.start()
        assert one.do() == "ok 0"
        assert two.do() == "ok 0"
        assert listener.stdout.readline() == "back\n"
        assert listener.stdout.readline() == "news ''\n", "it may have missed some"
        pg("tell", "afterwards").ok()
        assert listener.stdout.readline() == "news 'afterwards'\n"
        os.killpg(listener.pid, signal.SIGKILL)
        listener.communicate()
    assert pg.counts("stay") == [3] * 4
    assert server.sql("SELECT runs FROM sessions WHERE id = 'stay'",
                      name_of(pg.store)) == "0\n"


def test_crash_in_the_middle_of_a_transaction(ssb, tools, pg, server):
    """The server crashes during a transaction: all of the transaction is lost, and the store does
    not send a part of it on its new connection."""
    with Stay(pg) as one:
        assert one.do("begin") == "ok 0" and one.do("run") == "ok 0"
        server.kill()
        server.start()
        line = one.do("run")
        assert errno_of(line) == errno.ECONNRESET, line
        line = one.do("commit")
        assert not line.startswith("ok"), line
        assert one.do() == "ok 0"
    assert server.sql("SELECT runs FROM sessions", name_of(pg.store)) == "0\n"


def test_answer_to_a_commit_is_lost(ssb, tools, server, database):
    """The answer to a COMMIT is lost: the store asks the server what happened, and reports that the
    commit was made."""
    with postgres.LossyProxy(server, b"COMMIT\0") as proxy:
        url = database.replace(f"port={server.port}", f"port={proxy.port}")
        url = re.sub(r"host=[^&]*", "host=127.0.0.1", url) + "&sslmode=disable"
        Probe(ssb, tools, database)("write", "1", "stay").ok()
        proxy.dropped.set()
        with Stay(Probe(ssb, tools, url)) as one:
            assert one.do("begin") == "ok 0" and one.do("lock") == "ok 0"
            assert one.do("run") == "ok 0"
            proxy.dropped.clear()
            assert one.do("commit") == "ok 0"
            assert proxy.dropped.is_set()
            # This transaction takes no lock, so PostgreSQL has given it no number by which the
            # store could ask about its outcome.
            assert one.do("begin") == "ok 0" and one.do("run") == "ok 0"
            proxy.dropped.clear()
            line = one.do("commit")
            assert "not known" in line and errno_of(line) == errno.ECONNRESET, line
    assert server.sql("SELECT runs FROM sessions", name_of(database)) == "2\n"


def test_commit_that_is_not_answered(ssb, tools, pg, server):
    """The connection breaks during a COMMIT, before the server has made the commit: the store asks
    the server what happened, and reports that the commit was not made. A constraint that sleeps
    makes the COMMIT slow."""
    name = name_of(pg.store)
    with Stay(pg) as one:
        server.sql("""
            CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
              $$ BEGIN PERFORM pg_sleep(20); RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON sessions DEFERRABLE INITIALLY DEFERRED
              FOR EACH ROW EXECUTE FUNCTION slow()""", name)
        assert one.do("begin") == "ok 0" and one.do("lock") == "ok 0" and one.do("run") == "ok 0"
        one.p.stdin.write("commit\n")
        # Waits until the COMMIT sleeps. PostgreSQL also shows a COMMIT that has ended, as the last
        # query of a connection.
        wait_for(lambda: server.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            f" WHERE datname = '{name}' AND query = 'COMMIT' AND wait_event = 'PgSleep'",
            name) == "1\n")
        line = one.p.stdout.readline().strip()
        assert errno_of(line) == errno.ECONNRESET and "not known" not in line, line
        assert server.sql("SELECT runs FROM sessions", name) == "0\n"


def test_server_that_stands_still(user, tools, database, server):
    """The server stops answering: the call fails after some time, and does not wait for ever."""
    with Stay(Probe(user, tools, database)) as one:
        with server.standing_still():
            start = time.monotonic()
            line = one.do("run")
            assert errno_of(line) == errno.ECONNRESET and "does not answer" in line, line
            assert time.monotonic() - start < 60
        assert one.do() == "ok 0"


def test_deadlock_is_said_to_be_one(ssb, tools, pg):
    with Stay(pg) as one, Stay(pg) as two:
        for s in (one, two):
            assert s.do("begin") == "ok 0"
        assert one.do("lock") == "ok 0"
        assert two.do("run") == "ok 0"
        one.p.stdin.write("run\n")
        time.sleep(0.1)
        two.p.stdin.write("lock\n")
        lines = [s.p.stdout.readline().strip() for s in (one, two)]
        assert sorted(map(errno_of, lines)) == [0, errno.EDEADLK], lines
        assert any("deadlock" in line for line in lines)


def test_wrong_password(ssb, tools, server, database):
    wrong = "decoy-wrong-" + postgres.PASSWORD[:-1]
    for tcp in (False, True):
        url = server.url(name_of(database), password=wrong, tcp=tcp)
        r = Probe(ssb, tools, url)("open")
        assert r.code == 1 and "password authentication failed" in r.errors, repr(r)
        assert wrong not in r.errors
        right = server.url(name_of(database), tcp=tcp)
        assert Probe(ssb, tools, right)("open").ok()


def test_password_of_a_file(ssb, tools, server, database):
    name = name_of(database)
    url = f"postgresql://{postgres.USER}@127.0.0.1:{server.port}/{name}"
    assert "no password" in Probe(ssb, tools, url)("open").errors
    ssb.write(ssb.home / ".pgpass", f"*:*:*:*:{postgres.PASSWORD}\n", 0o600)
    Probe(ssb, tools, url)("open").ok()


def test_no_server(ssb, tools):
    url = f"postgresql://u:decoy-pw@127.0.0.1:{postgres.free_port()}/db"
    r = Probe(ssb, tools, url)("open")
    assert r.code == 1 and "cannot be reached" in r.errors, repr(r)
    assert "decoy-pw" not in r.errors
    assert "Connection refused (" in r.errors, repr(r)  # only one reason is shown


def test_foreign_database(ssb, tools, server, database):
    name = name_of(database)
    server.sql("CREATE TABLE sessions (x int)", name)
    r = Probe(ssb, tools, database)("open")
    assert r.code == 1 and "give the store its own database" in r.errors, repr(r)
    assert server.sql("SELECT count(*) FROM information_schema.tables"
                      " WHERE table_schema = 'public'", name) == "1\n", "nothing half done"


def test_other_encoding(ssb, tools, server):
    name = "latin_" + ssb.kind
    r = Probe(ssb, tools, server.database(name, "LATIN1"))("open")
    assert r.code == 1 and "UTF8" in r.errors, repr(r)


def test_role_without_rights(ssb, tools, server, database):
    name = name_of(database)
    role = "reader_" + ssb.kind
    server.sql(f"CREATE ROLE {role} LOGIN PASSWORD 'decoy-reader'", name)
    try:
        r = Probe(ssb, tools, server.url(name, user=role, password="decoy-reader"))("open")
        assert r.code == 1 and "schema" in r.errors and "Permission denied" in r.errors, repr(r)
    finally:
        server.sql(f"DROP ROLE {role}", name)


def test_commits_are_on_the_disk(ssb, tools, server, database):
    """By the database's settings, a commit could be lost (synchronous_commit = off): the store
    overrules them."""
    name = name_of(database)
    server.sql(f"ALTER DATABASE {name} SET synchronous_commit = off", name)
    server.sql(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'", name)
    probe = Probe(ssb, tools, database)
    with Stay(probe) as one:
        server.sql("""
            CREATE TABLE seen (what text);
            CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
              INSERT INTO seen VALUES (current_setting('synchronous_commit')),
                (current_setting('transaction_isolation')), (current_setting('lock_timeout')),
                (current_setting('application_name'));
              RETURN NULL; END $$;
            CREATE TRIGGER look AFTER UPDATE ON sessions EXECUTE FUNCTION look()""", name)
        assert one.do() == "ok 0"
    assert server.sql("SELECT what FROM seen", name).split("\n")[:4] == \
        ["on", "read committed", "10s", "skillsandbox"]


def test_server_ends_with_its_test(base, user_entry):
    """A PostgreSQL server of the tests ends with its test, even if the test is killed."""
    code = f"""
import os, signal, sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import postgres
s = postgres.Server({str(base)!r}, {user_entry.pw_uid}, {user_entry.pw_gid}).__enter__()
print(s.process.pid, s.dir, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    r = subprocess.run([harness.PYTHON, "-c", code], capture_output=True, text=True, timeout=120,
                       check=False)
    assert r.returncode == -signal.SIGKILL, r.stderr
    pid, directory = r.stdout.split()
    try:
        end = time.monotonic() + 30
        while os.path.exists(f"/proc/{pid}/exe") and time.monotonic() < end:
            time.sleep(0.05)
        assert not os.path.exists(f"/proc/{pid}/exe")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
