/* seccomp_programs.h - the programs that test_seccomp_kernel.c runs under the filters. Each program
 * first checks that it is confined. */
#ifndef SECCOMP_PROGRAMS_H
#define SECCOMP_PROGRAMS_H

#define SH_CONFINED "set -e; grep -q 'Seccomp:.2' /proc/self/status\n"
#define PY_CONFINED "assert 'Seccomp:\\t2' in open('/proc/self/status').read()\n"

static const char PYTHON_ALL[] = PY_CONFINED
        "import threading, subprocess, multiprocessing, sqlite3, tempfile, os, socket, asyncio\n"
        "import concurrent.futures, shutil, ssl, select, signal\n"
        "got = []\n"
        "ts = [threading.Thread(target=got.append, args=(i,)) for i in range(8)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]\n"
        "assert sorted(got) == list(range(8))\n"
        "assert subprocess.check_output(['/bin/echo', 'x']) == b'x\\n'\n"
        "assert subprocess.run('exit 3', shell=True).returncode == 3\n"
        "with multiprocessing.Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]\n"
        "q = multiprocessing.Queue(); q.put(7); assert q.get() == 7\n"
        "with concurrent.futures.ProcessPoolExecutor(2) as e: assert e.submit(abs, -3).result() == "
        "3\n"
        "with tempfile.TemporaryDirectory() as d:\n"
        "    c = sqlite3.connect(d + '/x.db'); c.execute('pragma journal_mode=wal')\n"
        "    c.execute('create table t (a)'); c.execute('insert into t values (1)'); c.commit()\n"
        "    assert c.execute('select a from t').fetchall() == [(1,)]; c.close()\n"
        "    open(d + '/a', 'w').write('a'); shutil.copy2(d + '/a', d + '/b')\n"
        "    os.chmod(d + '/b', 0o700)\n"
        "    os.mkfifo(d + '/fifo')\n"
        "assert socket.getaddrinfo('127.0.0.1', 80)\n"
        "async def main():\n"
        "    p = await asyncio.create_subprocess_exec('/bin/true'); return await p.wait()\n"
        "assert asyncio.run(main()) == 0\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname()); a, _ = s.accept(); a.send(b'hi')\n"
        "assert c.recv(2) == b'hi'\n"
        "os.posix_spawn('/bin/true', ['true'], {}); os.wait()\n"
        "try: os.chmod('f', 0o4755); raise SystemExit(1)\n"
        "except PermissionError: pass\n"
        "print('ok')\n";

static const char PYTHON_PLAIN[] =
        PY_CONFINED "import json, re, os, tempfile, threading, hashlib, socket\n"
                    "with tempfile.NamedTemporaryFile('w') as f: f.write(json.dumps({'a': 1}))\n"
                    "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
                    "hashlib.sha256(b'x').hexdigest()\n"
                    "for f in (os.fork, socket.socket, socket.socketpair):\n"
                    "    try: f(); raise SystemExit(1)\n"
                    "    except PermissionError: pass\n"
                    "print('ok')\n";

static const char NODE_ALL[] =
        "const fs = require('fs'), os = require('os'), http = require('http');\n"
        "const cp = require('child_process'), w = require('worker_threads');\n"
        "if (!/Seccomp:\\t2/.test(fs.readFileSync('/proc/self/status'))) process.exit(9);\n"
        "const d = fs.mkdtempSync(os.tmpdir() + '/n'); fs.writeFileSync(d + '/a', 'a');\n"
        "fs.copyFileSync(d + '/a', d + '/b'); fs.rmSync(d, { recursive: true });\n"
        "if (process.argv[1]) os.networkInterfaces();\n"
        "if (cp.execSync('echo hi').toString() !== 'hi\\n') process.exit(2);\n"
        "new w.Worker('require(\"worker_threads\").parentPort.postMessage(1)', { eval: true })\n"
        "  .on('message', () => {\n"
        "    const s = http.createServer((q, r) => r.end('ok')).listen(0, '127.0.0.1', () =>\n"
        "      http.get({ port: s.address().port, host: '127.0.0.1', agent: false }, (r) =>\n"
        "        r.on('data', () => {}).on('end', () => cp.execFile('/bin/true', (e) =>\n"
        "          fs.promises.readFile('/proc/self/stat').then(() => process.exit(e ? 3 : "
        "0))))));\n"
        "  });\n";

static const char SHELL_ALL[] = SH_CONFINED
        "mkdir -p sh/d; echo b >sh/x; cp -a sh/x sh/y; mv sh/y sh/z; ln -s x sh/l; touch sh/z\n"
        "chmod 755 sh/x; ls -lR sh | sort | head -3 >/dev/null; (sleep 0.01 & wait)\n"
        "tar -cf sh/t.tar sh/x; tar -tf sh/t.tar >/dev/null; find sh -type f | xargs wc -l\n"
        "dd if=/dev/zero of=sh/big bs=1k count=8 2>/dev/null; sync sh/big; df . >/dev/null\n"
        "id >/dev/null; date >/dev/null; uname -a >/dev/null; timeout 5 true; nice true\n"
        "if chmod u+s sh/x 2>/dev/null; then exit 7; fi; rm -r sh\n";

static const char GIT_ALL[] = SH_CONFINED
        "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null\n"
        "git init -q repo; cd repo; echo a >a; git add a\n"
        "git -c user.name=n -c user.email=e@example.com commit -qm m; git gc -q; git log -p "
        ">/dev/null\n"
        "cd ..; git clone -q repo copy; test -f copy/a; rm -rf repo copy\n";

static const char GCC_ALL[] = SH_CONFINED
        "printf '#include <stdio.h>\\n#include <time.h>\\nint main(void)"
        "{puts(\"hi\");return time(0)<0;}' >c.c\n"
        "gcc -O2 -pipe c.c -o dyn; gcc -static c.c -o stat; ./dyn; ./stat; rm c.c dyn stat\n";

#endif
