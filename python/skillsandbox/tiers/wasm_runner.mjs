// Runs inside the sandbox for the tier `wasm`: Python in WebAssembly (Pyodide), which runs the
// same _worker.py as the other tiers. wasm.py starts it as
//
//     node wasm_runner.mjs '{"pyodide", "worker", "skill", "packages", "snapshot"}' TAG
//     node wasm_runner.mjs '{"pyodide", "make": true}'
//
// The second form writes Python's memory after its start to standard output. With that file as
// `snapshot`, the first form starts in a tenth of the time. (TAG only appears in the record.)
//
// Pyodide is not a security boundary, as its Python can do everything that Node can. The sandbox
// is the boundary. Standard input and output carry the protocol; Python prints to standard error.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const told = JSON.parse(process.argv[2]);
const CHUNK = 64 * 1024;
const WARM = "import asyncio, base64, importlib.util, inspect, json, random, re, shutil, " +
  "tempfile, traceback, types";

function wait() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
}

// Reads and blocks: without a request there is nothing else to do.
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

// Returns one line with its newline, or the rest at the end of the input.
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

// Shows a directory of the host. getMode() removes the write bits, as the sandbox is read-only.
function show(py, directory) {
  py.FS.mkdirTree(directory);
  py.FS.mount(py.FS.filesystems.NODEFS, { root: directory }, directory);
}

async function load(more) {
  const { loadPyodide } = await import(pathToFileURL(path.join(told.pyodide, "pyodide.mjs")));
  return loadPyodide({ indexURL: told.pyodide + path.sep, ...more });
}

async function start() {
  if (told.snapshot) {
    try {
      return await load({ _loadSnapshot: fs.readFileSync(told.snapshot) });
    } catch (e) {
      console.error(`the snapshot is of no use: ${e.message}`);
    }
  }
  return load({});
}

async function make() {
  const py = await load({ _makeSnapshot: true });
  py.runPython(WARM);
  writeAll(1, py.makeMemorySnapshot());
}

async function serve() {
  const py = await start();
  py.setStdin({ error: true });
  py.setStdout({ write: (data) => (writeAll(2, data), data.length) });
  py.setStderr({ write: (data) => (writeAll(2, data), data.length) });
  const nodefs = py.FS.filesystems.NODEFS;
  const mode = nodefs.getMode;
  nodefs.getMode = (name) => mode.call(nodefs, name) & ~0o222;
  for (const directory of [told.skill, ...told.packages]) show(py, directory);
  py.registerJsModule("_skillsandbox_streams", {
    read_line: () => new Uint8Array(readLine()),
    write: (data) => {
      const bytes = data.toJs();
      data.destroy?.();
      writeAll(1, bytes);
    },
  });
  const env = { ...process.env, HOME: "/home/pyodide", TMPDIR: "/tmp" };
  const given = { ...told, env, text: fs.readFileSync(told.worker, "utf8") };
  py.globals.set("told", py.toPy(given));
  py.runPython(`
import os, random, sys, types, _skillsandbox_streams as streams

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

# A snapshot contains the environment and the random state of the time when it was made.
os.environ.clear()
os.environ.update(told["env"])
random.seed()
sys.path.insert(0, "")      # the worker puts the skill's directory here
sys.path.extend(told["packages"])
worker = types.ModuleType("_worker")
worker.__file__ = told["worker"]
exec(compile(told["text"], told["worker"], "exec"), worker.__dict__)
worker.serve(told["skill"], Input(), Output())
`);
}

await (told.make ? make() : serve());
process.exit(0);
