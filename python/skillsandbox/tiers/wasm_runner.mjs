// The inside of the tier `wasm`: Python in WebAssembly (Pyodide), which runs the same
// _worker.py as the other tiers. Started by wasm.py, in the sandbox, as
//
//     node wasm_runner.mjs PYODIDE WORKER SKILL TAG [PACKAGES...]
//
// (TAG is for the record of the run.)
//
// Pyodide is no boundary (its Python can reach everything that Node can): the sandbox
// around it is. It is here for those who want the skill's Python to have no system calls
// of its own. Standard input and output are the protocol's; what Python prints goes to
// standard error.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, worker, skill, , ...packages] = process.argv.slice(2);
const CHUNK = 64 * 1024;

function wait() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
}

// Blocks: nothing else is to be done while nobody asks.
function readSome(buffer) {
  for (;;) {
    try {
      return fs.readSync(0, buffer, 0, buffer.length, null);
    } catch (e) {
      if (e.code === "EOF") return 0;
      if (e.code !== "EAGAIN") throw e;
      wait();
    }
  }
}

function writeAll(fd, data) {
  for (let at = 0; at < data.length;) {
    try {
      at += fs.writeSync(fd, data, at);
    } catch (e) {
      if (e.code !== "EAGAIN") throw e;
      wait();
    }
  }
}

let left = Buffer.alloc(0);

// One line with its end, or what there is at the end of input.
function readLine() {
  const parts = [];
  for (;;) {
    const end = left.indexOf(10);
    if (end >= 0) {
      parts.push(left.subarray(0, end + 1));
      left = left.subarray(end + 1);
      return Buffer.concat(parts);
    }
    parts.push(left);
    const buffer = Buffer.alloc(CHUNK);
    left = buffer.subarray(0, readSome(buffer));
    if (left.length === 0) return Buffer.concat(parts);
  }
}

// Shown as it is on disk, without a write bit: so Python's own look says what is true.
function show(py, directory) {
  py.FS.mkdirTree(directory);
  py.FS.mount(py.FS.filesystems.NODEFS, { root: directory }, directory);
}

const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")));
const py = await loadPyodide({
  indexURL: pyodide + path.sep,
  env: { ...process.env, HOME: "/home/pyodide", TMPDIR: "/tmp" },
});
py.setStdin({ error: true });
py.setStdout({ write: (data) => (writeAll(2, data), data.length) });
py.setStderr({ write: (data) => (writeAll(2, data), data.length) });
const nodefs = py.FS.filesystems.NODEFS;
const mode = nodefs.getMode;
nodefs.getMode = (name) => mode.call(nodefs, name) & ~0o222;
for (const directory of [skill, ...packages]) show(py, directory);

py.registerJsModule("_skillsandbox_streams", {
  read_line: () => new Uint8Array(readLine()),
  write: (data) => {
    const bytes = data.toJs();
    data.destroy?.();
    writeAll(1, bytes);
  },
});
py.globals.set("worker_text", fs.readFileSync(worker, "utf8"));
py.globals.set("worker_file", worker);
py.globals.set("skill_dir", skill);
py.globals.set("package_dirs", py.toPy(packages));
py.runPython(`
import sys, types, _skillsandbox_streams as streams

class Input:
    def readline(self):
        return streams.read_line().to_bytes()
    def read(self):
        return b"".join(self)
    def __iter__(self):
        return iter(self.readline, b"")

class Output:
    def write(self, data):
        streams.write(data)
    def flush(self):
        pass

sys.path.insert(0, "")      # the skill's place
sys.path.extend(package_dirs)
worker = types.ModuleType("_worker")
worker.__file__ = worker_file
exec(compile(worker_text, worker_file, "exec"), worker.__dict__)
worker.serve(skill_dir, Input(), Output())
`);
process.exit(0);
