"""Runs the product as root or as an unprivileged user, and runs probes outside the sandbox.

Three rules apply in all tests: every subprocess has a timeout; every environment is
built from nothing; code that attacks runs unconfined only through bare(), in its own
network and pid namespaces, with a home that contains only decoys.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time

import pytest

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("SSB_BUILD", REPO / "build"))
ASAN_BUILD = pathlib.Path(os.environ.get("SSB_ASAN_BUILD", REPO / "build-asan"))
PYTHON = "/usr/bin/python3"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Runs a test only as the user. It is for slow tests (they wait for a timeout, or send much data to
# a parser) whose result does not depend on the caller.
BY_USER = pytest.mark.parametrize("ssb", ["user"], indirect=True)
SECRET = "decoy-secret-7f3a91"

# Tests put this text before the code of a probe that tries several things. `seen` has the result of
# each try.
ATTEMPT = """
import json, os, socket
seen, why = {}, {}
def attempt(name, f):
    try:
        f()
        seen[name] = 'ok'
    except OSError as e:
        seen[name], why[name] = 'denied', type(e).__name__
"""

DECOYS = {
    ".ssh/id_ed25519": f"-----BEGIN DECOY KEY-----\n{SECRET}-ssh\n",
    ".aws/credentials": f"[default]\naws_secret_access_key = {SECRET}-aws\n",
    ".env": f"API_TOKEN={SECRET}-env\n",
    ".config/gh/hosts.yml": f"oauth_token: {SECRET}-gh\n",
    ".netrc": f"machine x login y password {SECRET}-netrc\n",
    ".mozilla/firefox/x.default/cookies.sqlite": f"{SECRET}-cookies\n",
}


class Result:
    """The result of a finished command."""

    def __init__(self, argv, returncode, stdout, stderr):
        self.argv = argv
        self.code = returncode
        self.out = stdout
        self.err = stderr

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @property
    def errors(self):
        return self.err.decode("utf-8", "replace")

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as e:
            raise AssertionError(f"no JSON on stdout: {e}\n{self!r}") from None

    def ok(self):
        assert self.code == 0, repr(self)
        return self

    def __repr__(self):
        return (f"exit {self.code} of {' '.join(map(str, self.argv))}\n"
                f"stdout: {self.out[:3000]!r}\nstderr: {self.errors[:4000]}")


def kernel():
    """The kernel's version as a tuple such as (6, 1), for features of newer kernels."""
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int(re.match(r"\d+", minor).group())


def execute(argv, *, stdin=b"", timeout=60, cwd="/", env=None, **kw):
    """Like subprocess.run, with a time limit: a command that exceeds it is killed and fails the
    test."""
    argv = [str(a) for a in argv]
    p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, cwd=cwd, env=env or {}, start_new_session=True,
                         **kw)
    try:
        out, err = p.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        raise AssertionError(f"hung for {timeout} s: {' '.join(argv)}\n"
                             f"stdout: {out[-2000:]!r}\nstderr: {err[-2000:]!r}") from None
    return Result(argv, p.returncode, out, err)


def yaml_text(value, indent=0):
    """Returns the dict as YAML in block style, as a person would write it."""
    pad = "  " * indent
    lines = []
    for key, v in value.items():
        if isinstance(v, dict):
            lines.append(f"{pad}{key}:" + ("" if v else " {}"))
            lines += [yaml_text(v, indent + 1)] if v else []
        elif isinstance(v, (list, tuple)):
            lines.append(f"{pad}{key}: {json.dumps(list(v))}")
        elif isinstance(v, str):
            lines.append(f"{pad}{key}: {json.dumps(v)}")
        else:
            lines.append(f"{pad}{key}: {json.dumps(v)}")
    return "\n".join(lines)


def manifest(name="probe", command=PYTHON, args=("main.py",), read=(), write=(), allow=(),
             egress=(), profile=None, resources=None, arguments=None):
    permissions = {}
    if egress:
        permissions["network"] = {"egress": list(egress)}
    if read or write:
        permissions["filesystem"] = {k: [str(p) for p in v]
                                     for k, v in (("read", read), ("write", write)) if v}
    if arguments:
        permissions.setdefault("filesystem", {})["arguments"] = arguments
    if allow:
        permissions["env_vars"] = {"allow": list(allow)}
    if profile:
        permissions["syscalls"] = {"profile": profile}
    doc = {"skill": {"name": name, "version": "1.0.0"}, "permissions": permissions}
    if resources:
        doc["resources"] = resources
    doc["entrypoint"] = {"command": command, "args": list(args)}
    return yaml_text(doc) + "\n"


class Runner:
    """One caller (root, or a user) with a fresh home made of decoys."""

    def __init__(self, kind, uid, gid, name, base, binary):
        self.kind, self.uid, self.gid, self.name = kind, uid, gid, name
        self.binary = binary
        self.group = None  # if it is set, every command joins this cgroup directory first
        self.base = pathlib.Path(tempfile.mkdtemp(prefix=kind + "-", dir=base))
        self.home = self.mkdir("home", 0o700)
        self.work = self.mkdir("work")
        os.chown(self.base, uid, gid)
        self.base.chmod(0o755)
        for path, text in DECOYS.items():
            self.write(self.home / path, text, 0o600)
        self.count = 0
        self.runs_before = set()

    @property
    def is_root(self):
        return self.kind == "root"

    @property
    def state(self):
        return self.home / ".local/state"

    def own(self, path):
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        return path

    def mkdir(self, name, mode=0o755):
        path = self.base / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        return self.own(path)

    def write(self, path, data, mode=0o644):
        """Writes a file that this caller owns, and makes missing parent directories, also owned by
        it."""
        path = pathlib.Path(path)
        missing = []
        parent = path.parent
        while not parent.exists():
            missing.append(parent)
            parent = parent.parent
        for d in reversed(missing):
            d.mkdir(mode=0o755)
            self.own(d)
        path.write_bytes(data if isinstance(data, bytes) else textwrap.dedent(data).encode())
        path.chmod(mode)
        return self.own(path)

    def environment(self, extra=None):
        env = {"HOME": str(self.home), "PATH": PATH, "USER": self.name, "LANG": "C.UTF-8",
               "XDG_STATE_HOME": str(self.state)}
        env.update(extra or {})
        return env

    def identity(self):
        join = [] if self.group is None else \
            ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(self.group)]
        if self.is_root:
            return join
        return [*join, "setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups",
                "--inh-caps=-all", "--"]

    def as_caller(self, argv, *, env=None, cwd=None, **kw):
        """Runs any command with this caller's identity, outside the sandbox."""
        self.runs_before = self.runs()
        return execute([*self.identity(), *argv], env=self.environment(env),
                       cwd=cwd or self.work, **kw)

    def ssb(self, *args, **kw):
        return self.as_caller([self.binary, *args], **kw)

    def run(self, *args, **kw):
        return self.ssb("run", *args, **kw)

    def popen(self, argv, *, env=None, cwd=None, **kw):
        self.runs_before = self.runs()
        return subprocess.Popen([*self.identity(), *map(str, argv)], env=self.environment(env),
                                cwd=cwd or self.work, start_new_session=True, **kw)

    def skill(self, code, *, text=None, files=None, **fields):
        """Makes a skill directory whose main.py is `code`; returns its path."""
        self.count += 1
        d = self.mkdir(f"skill{self.count}")
        self.write(d / "main.py", code)
        self.write(d / "skillsandbox.yaml", text if text is not None else manifest(**fields))
        for name, data in (files or {}).items():
            self.write(d / name, data)
        return d

    def inside(self, code, *, flags=(), env=None, stdin=b"", timeout=60, cwd=None, **fields):
        """Runs `code` (Python) as a skill in the sandbox."""
        return self.run(*flags, self.skill(code, **fields), env=env, stdin=stdin,
                        timeout=timeout, cwd=cwd)

    def probe(self, code, **kw):
        """Like inside(); returns the JSON that the code printed."""
        return self.inside(code, **kw).ok().json()

    def bare(self, argv_or_code, *, env=None, timeout=60, stdin=b"", cwd=None):
        """The control: runs the code outside the sandbox, in new network and pid namespaces.
        Environment and home are decoys, so it can reach only decoys."""
        argv = [PYTHON, "-c", textwrap.dedent(argv_or_code)] \
            if isinstance(argv_or_code, str) else argv_or_code
        return execute(["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child",
                        *self.identity(), "env", "-i",
                        *(f"{k}={v}" for k, v in self.environment(env).items()), *argv],
                       env={"PATH": PATH}, timeout=timeout, stdin=stdin, cwd=cwd or self.work)

    def bare_probe(self, code, **kw):
        return self.bare(code, **kw).ok().json()

    def runs(self):
        """The traces in this caller's state directory."""
        return set((self.state / "skillsandbox/runs").glob("*/trace.json"))

    def has_cgroup(self):
        """True if runs get a control group on this machine."""
        self.run("--", "true").ok()
        return self.last_trace()["layers"]["limits"]["detail"].startswith("cgroup")

    def last_trace(self):
        """The trace of this caller's last command. The command must have written exactly one
        trace."""
        files = self.runs() - self.runs_before
        assert len(files) == 1, f"the last command wrote {len(files)} traces"
        return json.loads(files.pop().read_bytes())

    def last_record(self):
        """The lines of the record that belongs to last_trace()."""
        path = self.state / "skillsandbox/runs" / self.last_trace()["run_id"] / "trace.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def done(self):
        shutil.rmtree(self.base, ignore_errors=True)


def userns_denied(runner, *args):
    """Returns a command that runs the product in a new user namespace, in which no further one can
    be made because the limit is zero. The caller is an ordinary user in it."""
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all ' \
             '--inh-caps=-all --bounding-set=-all -- "$0" "$@"'
    return ["unshare", "--map-current-user", "--keep-caps", "sh", "-c", script, runner.binary,
            *args]


def without_userns(runner, *args, **kw):
    return runner.as_caller(userns_denied(runner, *args), **kw)


def wait_for(what, seconds=20):
    """Calls `what` until it returns a true value, and returns that value."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(0.02)
    return found


def ends_within(process, seconds):
    """Returns the process's exit status, or None if it is still running after `seconds`."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def cgroups_of(pid, since):
    """The cgroups of the run whose supervisor has this pid. Cgroups from before `since` are left
    out: they belong to an earlier, killed supervisor that had the same pid."""
    found = []
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        for d in dirs:
            path = os.path.join(top, d)
            with contextlib.suppress(FileNotFoundError):
                if d.startswith(f"skillsandbox-{pid}-") and os.stat(path).st_ctime >= since - 1:
                    found.append(path)
    return found


def open_files(pid):
    """The targets of the process's fds, without fds that it closes during the listing. Empty if the
    process is gone."""
    found = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.add(os.readlink(fd))
    return found


def alive_with(marker):
    """Host processes whose command line contains `marker`."""
    found = []
    for d in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (d / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in line and int(d.name) != os.getpid():
            found.append((int(d.name), line))
    return found
