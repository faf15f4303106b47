"""Every system call of the set-up fails in turn: either the skill starts confined, or the run
ends with a message. It never hangs."""
import pytest

SECRET_NAME = ".ssh/id_ed25519"

# For each system call, an upper limit of how often it is made between clone and execve. If the
# limit is higher than the real number, the extra runs inject no error.
CALLS = {
    "clone3": 3, "unshare": 2, "setns": 2, "socketpair": 3, "setsid": 2, "close_range": 7,
    "sethostname": 2, "ioctl": 3, "chdir": 3, "fchdir": 2, "pivot_root": 2, "umount2": 3,
    "mount": 2, "fsopen": 5, "fsconfig": 12, "fsmount": 5, "open_tree": 12, "move_mount": 12,
    "mount_setattr": 12, "landlock_create_ruleset": 3, "landlock_add_rule": 6,
    "landlock_restrict_self": 2, "seccomp": 3, "capset": 3, "prctl": 8, "setresuid": 2,
    "setresgid": 2, "setgroups": 2, "prlimit64": 10, "dup2": 5, "mkdirat": 8, "symlinkat": 4,
    "openat": 20, "write": 12, "read": 8, "fdatasync": 2, "pipe2": 4, "recvmsg": 3,
    "sendmsg": 3, "signalfd4": 3, "fchmodat": 3, "openat2": 4, "execve": 3,
}


# Init and the skill's process build the sandbox together. One of them must wait for the other, and
# the one that waits detaches the old root. A test chooses which one by slowing a call of its partner:
# a slow unshare makes init wait, a slow pivot_root makes the skill's process wait.
INIT_WAITS = "unshare"
SKILL_WAITS = "pivot_root"


def run_with_fault(runner, program, call, nth, error="EPERM", *options, calls="/dev/null"):
    """Runs `program` in the sandbox; in each process, the nth `call` fails."""
    return runner.as_caller(
        ["strace", "-f", "-qq", "-o", calls, "-e", f"trace={call},unshare,pivot_root,umount2",
         "-e", f"inject={call}:error={error}:when={nth}", *options,
         runner.binary, "run", "-t", "6", "--toolchain", "off", "-r", program, "--", program,
         runner.home / SECRET_NAME], timeout=40)


def run_with_wait(runner, program, call, nth, error, slow):
    """Like run_with_fault(), but also delays the call `slow`. Repeats the run until the delayed
    process is not the one that detaches the old root."""
    calls = runner.write(runner.base / "calls", "")
    for _ in range(10):  # the other process may have been even slower: try again
        r = run_with_fault(runner, program, call, nth, error,
                           "-e", f"inject={slow}:delay_exit=100000", calls=calls)
        made = [line.split(maxsplit=1) for line in calls.read_text().splitlines()]
        late = {pid for pid, what in made if what.startswith(slow)}
        if not late & {pid for pid, what in made if what.startswith('umount2(".",')}:
            return r
    raise AssertionError(f"{slow} was never slow enough")


def test_control_without_a_sandbox(ssb, programs):
    r = ssb.as_caller([programs("safe"), ssb.home / SECRET_NAME])
    assert r.code == 99 and r.text.startswith("UNSAFE"), repr(r)


@pytest.fixture
def program(ssb, programs):
    path = ssb.work / "safe"
    path.write_bytes(programs("safe").read_bytes())
    path.chmod(0o755)
    ssb.own(path)
    return path


def test_a_root_that_is_busy_for_an_instant(ssb, program):
    """The kernel refuses to make the root read-only (EBUSY) while a process writes to it. If this
    fails once, the product tries again and the skill starts. If it always fails, the run ends with
    a message."""
    for nth in range(1, 80):
        r = run_with_wait(ssb, program, "mount_setattr", f"{nth}+", "EBUSY", INIT_WAITS)
        if "read-only: '/'" in r.errors:
            break
    assert r.code == 125 and "busy" in r.errors, repr(r)
    r = run_with_wait(ssb, program, "mount_setattr", nth, "EBUSY", INIT_WAITS)
    assert "SAFE" in r.text and "UNSAFE" not in r.text, repr(r)


@pytest.mark.parametrize("slow", [INIT_WAITS, SKILL_WAITS])
def test_an_old_root_that_stays(ssb, program, slow):
    """The old root cannot be detached: the skill does not start."""
    r = run_with_wait(ssb, program, "umount2", 1, "EPERM", slow)
    assert r.code == 125 and "cannot detach the host's root '/'" in r.errors, repr(r)
    assert "SAFE" not in r.text, repr(r)


@pytest.mark.parametrize("call", CALLS)
def test_a_failing_call_never_weakens(ssb, program, call):
    started = 0
    for nth in range(1, CALLS[call] + 1):
        r = run_with_fault(ssb, program, call, nth)
        assert "UNSAFE" not in r.text, f"{call} #{nth}: {r!r}"
        if "SAFE" in r.text:
            started += 1
        else:
            assert r.code != 0, f"{call} #{nth}: {r!r}"
            assert r.code < 128 or r.errors, f"{call} #{nth}: {r!r}"
    # The product must check the results of these calls. If it did not, the skill would start each
    # time, whichever call failed.
    if call in {"clone3", "unshare", "seccomp", "capset", "pivot_root", "setns", "fsmount",
                "landlock_restrict_self", "move_mount", "close_range", "setsid"}:
        assert started < CALLS[call], f"{call} may fail unseen"


@pytest.mark.parametrize("files", [16, 34, 40, 63])
def test_too_few_open_files(ssb, files):
    """The limit of open files is too low: the run is refused before the sandbox is built. Later, a
    call that fails for lack of an fd could give a misleading message."""
    def run(n):
        return ssb.as_caller(["prlimit", f"--nofile={n}:{n}", ssb.binary, "run", "--", "echo", "ran"])
    r = run(files)
    assert r.code == 125 and r.text == "", repr(r)
    assert f"open files is {files}" in r.errors and "ulimit -n 64" in r.errors, repr(r)
    assert run(64).ok().text == "ran\n"
