"""Fixtures of the end-to-end tests: the two callers, compiled probes, a base directory.

The suite must run as root, because it makes an unprivileged user and tests as both, and it needs
user namespaces. If one of these is missing, it fails; no test is ever skipped.
"""
import ctypes
import fcntl
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import harness
import postgres

USER_PREFIX = "ssbt"

# Modules that take a minute or longer; the longest comes first.
LONG = ["test_egress_udp", "test_session_notify", "test_session_runs", "test_session_otel",
        "test_govern", "test_session_fleet", "test_session_cli", "test_session_kill",
        "test_egress_deny", "test_egress_tcp", "test_otel_servers", "test_limits",
        "test_egress_events"]

# A shell starts background jobs with SIGINT ignored; every process of the tests would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def stale_users():
    """Yields the users that killed suites have left behind: the pid in the user's name belongs to
    no running process."""
    for entry in pwd.getpwall():
        m = re.fullmatch(USER_PREFIX + r"(\d+)", entry.pw_name)
        if m and not os.path.exists(f"/proc/{m.group(1)}"):
            yield entry.pw_name


def make_base():
    """Makes a directory that both callers can reach, on a file system that supports ID-mapped
    mounts. overlayfs does not support them, so a tmpfs is mounted over the directory."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="ssb-e2e-", dir="/srv"))
    fs = subprocess.run(["stat", "-f", "-c", "%T", base], capture_output=True, text=True,
                        timeout=10, check=True).stdout.strip()
    if fs == "overlayfs":
        subprocess.run(["mount", "-t", "tmpfs", "ssb-e2e", base], check=True, timeout=10)
    base.chmod(0o755)
    return base


def add_user(name):
    """Retries useradd, which waits only seconds for the lock of /etc/passwd: another process may
    have locked the file for longer."""
    argv = ["useradd", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/sh", name]
    for _ in range(20):
        done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            return
        if "cannot lock" not in done.stderr:
            break
    pytest.exit(f"FAILED: useradd: {done.stderr}", returncode=1)


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        config.ssb = config.workerinput["ssb"]
        return
    if os.geteuid() != 0:
        pytest.exit("FAILED: the end to end tests need root (they test as root and as a user "
                    "of their own): run make test as root or with sudo", returncode=1)
    for name in stale_users():
        subprocess.run(["userdel", name], timeout=30, check=False)
    name = f"{USER_PREFIX}{os.getpid()}"
    add_user(name)
    base = make_base()
    config.ssb = {"user": name, "base": str(base), "binary": str(install_binary(base))}


def pytest_collection_modifyitems(items):
    """Runs the long modules first. Otherwise a long one could run alone at the end, while the other
    workers have nothing to do."""
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG
               else len(LONG))


def install_binary(base):
    """Copies the binary to a directory where the user can execute it, wherever the checkout is."""
    source = harness.BUILD / "src/skillsandbox"
    if not source.exists():
        pytest.exit(f"FAILED: {source} is not built: run make", returncode=1)
    target = base / "bin" / "skillsandbox"
    target.parent.mkdir(mode=0o755)
    shutil.copy(source, target)
    target.chmod(0o755)
    return target


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["ssb"] = node.config.ssb


def pytest_unconfigure(config):
    if hasattr(config, "workerinput") or not hasattr(config, "ssb"):
        return
    subprocess.run(["userdel", config.ssb["user"]], timeout=30, check=False,
                   stderr=subprocess.DEVNULL)
    base = config.ssb["base"]
    subprocess.run(["umount", "-q", base], timeout=30, check=False)
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def base(request):
    return pathlib.Path(request.config.ssb["base"])


@pytest.fixture(scope="session")
def user_entry(request):
    return pwd.getpwnam(request.config.ssb["user"])


@pytest.fixture(scope="session", autouse=True)
def machine_is_fit(user_entry):
    """Fails if the user cannot make user namespaces: no test would mean anything."""
    r = subprocess.run(["setpriv", f"--reuid={user_entry.pw_uid}", f"--regid={user_entry.pw_gid}",
                        "--clear-groups", "unshare", "-Urn", "true"], capture_output=True,
                       timeout=30)
    assert r.returncode == 0, f"user namespaces do not work here: {r.stderr.decode()}"


def make_runner(kind, request, user_entry, base):
    uid, gid, name = (0, 0, "root") if kind == "root" else \
        (user_entry.pw_uid, user_entry.pw_gid, user_entry.pw_name)
    return harness.Runner(kind, uid, gid, name, base, request.config.ssb["binary"])


@pytest.fixture(scope="module")
def host_mounts():
    """A lock for modules that mount on the host, or look at the host's mounts: only one of them
    runs at a time."""
    with open("/tmp/ssb-e2e-mounts.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(params=["root", "user"])
def ssb(request, user_entry, base):
    """The caller. Every test with this fixture runs twice: as root and as a user."""
    runner = make_runner(request.param, request, user_entry, base)
    yield runner
    runner.done()


@pytest.fixture
def root(request, user_entry, base):
    runner = make_runner("root", request, user_entry, base)
    yield runner
    runner.done()


@pytest.fixture
def user(request, user_entry, base):
    runner = make_runner("user", request, user_entry, base)
    yield runner
    runner.done()


@pytest.fixture(scope="module")
def server(base, user_entry):
    """A PostgreSQL server that only this module uses."""
    with postgres.Server(base, user_entry.pw_uid, user_entry.pw_gid) as s:
        yield s


@pytest.fixture(scope="session")
def programs(request, base):
    """Compiles tests/e2e/progs/*.c; programs('name') is the executable."""
    worker = getattr(request.config, "workerinput", {}).get("workerid", "main")
    out = base / f"progs-{worker}"
    out.mkdir(mode=0o755)
    flags = {"nolibc": ["-static", "-nostdlib", "-fno-stack-protector", "-fno-pie", "-no-pie"],
             # govern.c is linked with the static library, because it calls internal functions of
             # the library.
             "govern": ["-std=gnu17", "-D_GNU_SOURCE", "-I", harness.REPO / "src",
                        "-I", harness.REPO / "include",
                        harness.BUILD / "src/libskillsandbox.a", "-lyaml", "-lsodium"]}

    def program(name):
        target = out / name
        if not target.exists():
            source = pathlib.Path(__file__).parent / "progs" / f"{name}.c"
            subprocess.run(["gcc", "-O1", "-Wall", "-o", target, source,
                            *flags.get(name, ["-static"])], check=True, timeout=60)
            target.chmod(0o755)
        return target
    return program


@pytest.fixture
def mounts():
    """Mounts that a test makes on the host. They are unmounted at its end, last first."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = []

    def mount(fstype, source, target, flags=0, data=None):
        rc = libc.mount(str(source).encode(), str(target).encode(), fstype.encode(),
                        ctypes.c_ulong(flags), data.encode() if data else None)
        assert rc == 0, f"mount {fstype} on {target}: {os.strerror(ctypes.get_errno())}"
        done.append(str(target))
    yield mount
    for target in reversed(done):
        libc.umount2(target.encode(), 2)
