"""Real programs work under the default profile."""
import pathlib

import pytest

import harness

PYTHON_CASES = {
    "threads": """
        import threading
        out = []
        ts = [threading.Thread(target=out.append, args=(i,)) for i in range(8)]
        [t.start() for t in ts]; [t.join() for t in ts]
        print(sorted(out) == list(range(8)))
        """,
    "subprocess": """
        import subprocess
        print(subprocess.run(['sh', '-c', 'echo a | tr a b'], capture_output=True,
                             text=True).stdout == 'b\\n')
        """,
    "multiprocessing": """
        import multiprocessing
        def square(x):
            return x * x
        if __name__ == '__main__':
            with multiprocessing.Pool(3) as pool:
                print(pool.map(square, range(5)) == [0, 1, 4, 9, 16])
        """,
    "sqlite3": """
        import sqlite3
        db = sqlite3.connect('/tmp/x.db')
        db.execute('pragma journal_mode=wal')
        db.execute('create table t(x)')
        db.executemany('insert into t values(?)', [(i,) for i in range(100)])
        db.commit()
        print(db.execute('select sum(x) from t').fetchone()[0] == 4950)
        """,
    "tempfile": """
        import tempfile, os
        with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile(dir=d) as f:
            f.write(b'x'); f.flush()
            print(os.path.getsize(f.name) == 1)
        """,
    "asyncio": """
        import asyncio
        async def main():
            p = await asyncio.create_subprocess_exec('echo', 'x', stdout=asyncio.subprocess.PIPE)
            out, _ = await p.communicate()
            await asyncio.sleep(0.01)
            print(out == b'x\\n')
        asyncio.run(main())
        """,
    "ssl": "import ssl\nprint(len(ssl.create_default_context().get_ca_certs()) >= 0)",
    "locale-time": """
        import locale, time, datetime, getpass, pwd, os
        print(bool(time.localtime()) and bool(pwd.getpwuid(os.getuid())) and bool(getpass.getuser()))
        """,
    "mmap-exec": """
        import ctypes
        f = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 42)
        print(f() == 42)
        """,
}


@pytest.mark.parametrize("case", sorted(PYTHON_CASES))
def test_python(ssb, case):
    assert ssb.inside(PYTHON_CASES[case]).ok().text.strip() == "True"


def test_node(ssb):
    code = """
    const { execSync } = require('child_process');
    const { Worker, isMainThread } = require('worker_threads');
    const fs = require('fs');
    fs.writeFileSync('/tmp/x', 'y');
    const w = new Worker("require('worker_threads').parentPort.postMessage(7)", { eval: true });
    w.on('message', m => console.log(m, execSync('echo hi').toString().trim(),
                                     fs.readFileSync('/tmp/x', 'utf8')));
    """
    skill = ssb.skill("", command="node", args=["main.js"], files={"main.js": code},
                      resources={"memory_mb": 512})
    assert ssb.run(skill).ok().text == "7 hi y\n"


def test_bash_and_coreutils(ssb):
    script = r"""
    set -eu
    cd "$(mktemp -d)"
    for i in 3 1 2; do echo "line $i" >> f; done
    sort f | tee g | wc -l
    cp g h; mv h i; ln -s i j; cat j | sed 's/line/zeile/' | awk '{print $2}' | paste -sd,
    mkdir -p a/b/c; find . -type d | wc -l; tar cf t.tar a g; tar tf t.tar | wc -l
    chmod 600 i; stat -c %a i; date +%Y >/dev/null; head -c 5 /dev/urandom | od -An -tx1 | wc -c
    diff <(echo a) <(echo a) && (sleep 0.1 & wait) && echo done
    id -u >/dev/null; whoami >/dev/null; df /tmp >/dev/null; ps >/dev/null || true
    """
    r = ssb.run("--", "bash", "-c", script).ok()
    assert r.text.split()[-1] == "done" and "1,2,3" in r.text and "600" in r.text


def test_git(ssb):
    script = """
    set -eu
    cd "$HOME"; git init -q r; cd r
    git config user.email a@example.com; git config user.name a
    echo x > f; git add f; git commit -qm first; git log --oneline | wc -l
    git checkout -qb side; echo y >> f; git commit -qam second; git diff HEAD~1 --stat | tail -1
    """
    r = ssb.run("--", "sh", "-c", script).ok()
    assert r.text.split()[0] == "1" and "1 insertion" in r.text


def test_git_in_a_writable_grant(ssb):
    """A skill can commit to a repository in its grant, although names in it are protected."""
    d = ssb.mkdir("project")
    ssb.as_caller(["git", "init", "-q", d]).ok()
    ssb.as_caller(["git", "-C", d, "config", "user.email", "a@example.com"]).ok()
    ssb.as_caller(["git", "-C", d, "config", "user.name", "a"]).ok()
    r = ssb.run("-w", d, "--", "sh", "-c", "echo x > f && git add f && git commit -qm first",
                cwd=d)
    assert r.code == 0, repr(r)
    log = ssb.as_caller(["git", "-C", d, "log", "--oneline"]).ok()
    assert len(log.text.splitlines()) == 1


def test_gcc(ssb):
    source = """
    #include <stdio.h>
    #include <math.h>
    int main(int argc, char **argv) { printf("%.0f\\n", sqrt(1763.0 + argc)); return !argv; }
    """
    r = ssb.run("-m", "512", "--", "sh", "-c",
                "cd /tmp && cat > x.c && gcc -O2 x.c -o x -lm && ./x", stdin=source.encode())
    assert r.ok().text == "42\n"


def test_static_program_without_libc(ssb, programs):
    tool = programs("nolibc")
    assert ssb.run("-r", tool, "--", tool).ok().text == "static ok\n"


def test_shebang_and_exec_chain(ssb):
    skill = ssb.skill("", command="./start", args=[],
                      files={"next": "#!/usr/bin/env python3\nprint('chained')\n",
                             "start": "#!/bin/sh\nexec /skill/next\n"})
    for f in ("start", "next"):
        (skill / f).chmod(0o755)
    assert ssb.run(skill).ok().text == "chained\n"


def test_deep_tree_of_processes(ssb):
    r = ssb.run("--", "bash", "-c", "for i in $(seq 100); do /bin/true; done; "
                "seq 1000 | xargs -P 8 -n 50 echo | wc -w")
    assert r.ok().text.strip() == "1000"


def test_many_runs_at_once(ssb):
    procs = [ssb.popen([ssb.binary, "run", "--", harness.PYTHON, "-c", f"print({i})"],
                       stdin=-3, stdout=-1, stderr=-1) for i in range(12)]
    outs = [p.communicate(timeout=60) for p in procs]
    assert [o[0].decode().strip() for o in outs] == [str(i) for i in range(12)]


JAVA = """
import java.security.*;
import javax.net.ssl.SSLContext;
public class Main {
    public static void main(String[] args) throws Exception {
        MessageDigest.getInstance("SHA-256").digest(new byte[1]);
        SSLContext.getDefault();
        System.out.println(Security.getProviders().length > 3);
    }
}
"""


def test_java(ssb):
    """Java runs although Debian keeps its settings in /etc/java-N-openjdk, to which symlinks in
    /usr/lib/jvm lead."""
    jvm = next(pathlib.Path("/usr/lib/jvm").glob("java-*-openjdk-*/bin/javac")).parent
    skill = ssb.skill("", command="sh", resources={"memory_mb": 1024}, args=[
        "-c", f"{jvm}/javac -d /tmp Main.java && {jvm}/java -cp /tmp Main"],
        files={"Main.java": JAVA})
    assert ssb.run(skill, timeout=120).ok().text == "true\n"
    assert ssb.last_trace()["policy_violations"] == []


# Does what Debian's wrapper of Chromium does: reads the files in /etc/chromium.d. The browser
# itself is tested in tests/acceptance.
WRAPPER = """
set -e
. /etc/chromium.d/flags
echo $CHROMIUM_FLAGS
mkdir /var/cache/fontconfig || mkdir /var/cache || echo no cache
"""


def test_settings_of_chromium(ssb):
    etc = ssb.mkdir("etc")
    ssb.write(etc / "chromium.d/flags", "export CHROMIUM_FLAGS=--one\n")
    ssb.runs_before = ssb.runs()
    r = harness.execute(["unshare", "--mount", "sh", "-ec",
                         'mount -t overlay -o "lowerdir=$0:/etc" overlay /etc; exec "$@"', etc,
                         *ssb.identity(), ssb.binary, "run", "--", "sh", "-c", WRAPPER],
                        env=ssb.environment(), cwd=ssb.work).ok()
    assert r.text == "--one\nno cache\n"
    assert ssb.last_trace()["policy_violations"] == []


MANAGER = """
import multiprocessing
def put(values, i):
    values[i] = i * i
if __name__ == '__main__':
    with multiprocessing.Manager() as manager:
        values = manager.dict()
        children = [multiprocessing.Process(target=put, args=(values, i)) for i in range(20)]
        [c.start() for c in children]; [c.join() for c in children]
        print(sum(values.values()))
"""

TMUX = """
tmux -f /dev/null new-session -d -s one 'echo said >/tmp/said; tmux wait-for -S done; sleep 60'
tmux wait-for done; cat /tmp/said; tmux ls -F '#{session_name}'; tmux kill-server
"""

GPG = """
set -e
mkdir -m 700 ~/keys; export GNUPGHOME=~/keys
gpg --batch --quiet --passphrase '' --quick-gen-key me@example.com ed25519 sign never
echo text | gpg --batch --clearsign >/tmp/signed
gpg --batch --verify /tmp/signed 2>/dev/null && echo good
gpgconf --kill gpg-agent
"""

OWN_SOCKETS = {"manager": ([harness.PYTHON, "-c", MANAGER], "2470\n"),
               "tmux": (["sh", "-c", TMUX], "said\none\n"),
               "gpg-agent": (["sh", "-c", GPG], "good\n")}


@pytest.mark.parametrize("command, said", OWN_SOCKETS.values(), ids=OWN_SOCKETS)
def test_users_of_unix_sockets_beside_a_write_grant(ssb, command, said):
    r = ssb.run("-w", ssb.mkdir("work"), "--timeout", "100", "--", *command, timeout=120)
    assert r.ok().text == said
    assert ssb.last_trace()["policy_violations"] == []


def test_interfaces_of_the_network(ssb):
    """A skill sees only the loopback interface, with a second address. Without that address a
    resolver with AI_ADDRCONFIG would take the machine for offline."""
    code = """
    const dns = require('dns'), os = require('os');
    console.log(Object.keys(os.networkInterfaces()).join(), Object.values(os.networkInterfaces())
                .flat().every(a => a.internal));
    for (const family of [4, 6])
        dns.lookup('localhost', { family, hints: dns.ADDRCONFIG }, (e, a) => console.log(a));
    """
    r = ssb.run("--", "node", "-e", code).ok()
    assert sorted(r.text.splitlines()) == ["127.0.0.1", "::1", "lo true"]
    assert [x for x in ssb.last_record() if x["kind"] == "syscall_blocked"] == []
    code = ("import socket\nprint(len(socket.getaddrinfo('api.example.com', 443, "
            "family=socket.AF_INET, flags=socket.AI_ADDRCONFIG)) > 0)")
    r = ssb.run("--net", "api.example.com", "--", harness.PYTHON, "-c", code)
    assert r.ok().text == "True\n"
    assert [x for x in ssb.last_record() if x["kind"] == "syscall_blocked"] == []


# Sends RTM_NEWADDR of 10.9.8.7 on the loopback interface, and prints the error number of the
# kernel's answer.
NEW_ADDRESS = """
import os, socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
body = struct.pack('BBBBi', 2, 32, 0, 0, 1) + struct.pack('HH4s', 8, 2, bytes([10, 9, 8, 7]))
s.send(struct.pack('IHHII', 16 + len(body), 20, 0x405, 1, 0) + body)
print(-struct.unpack('i', s.recv(4096)[16:20])[0])
"""


def test_the_network_is_only_asked(ssb):
    command = [harness.PYTHON, "-c", NEW_ADDRESS]
    assert ssb.run("--", *command).ok().text == "1\n", "EPERM"
    control = harness.execute(["unshare", "--net", *command]).ok()
    assert control.text == "0\n"
