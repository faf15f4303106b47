"""Real programs run unharmed under the default profile."""
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
    """The protected places do not get in the way of a commit."""
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
