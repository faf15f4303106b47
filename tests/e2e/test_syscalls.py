"""seccomp in the sandbox: calls that only attacks use are refused, and those that ordinary programs
need work. The control makes the same calls outside the sandbox."""
import platform

import pytest

from harness import ATTEMPT


# Outside the sandbox, the kernel denies these calls to an ordinary user, too. So the control runs
# as root: then the kernel examines the arguments.
CALLS = """
io_uring_setup io_uring_enter unshare_newuser unshare_newnet setns clone_newuser clone3_newuser
ptrace_traceme process_vm_readv process_vm_writev pidfd_getfd keyctl add_key request_key bpf
perf_event_open userfaultfd mount umount2 pivot_root fsopen open_tree move_mount mount_setattr
open_by_handle_at init_module finit_module delete_module kexec_load kexec_file_load personality
af_netlink af_packet af_vsock raw_ipv4 raw_ipv6 raw_ipv4_flags chroot swapon acct sethostname
settimeofday quotactl kcmp syslog fanotify_init tiocsti tiocsti_high_bits tioclinux x32_getpid
i386_getpid
""".split()

DENIED = {"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "SIG31", "SIG9"}
# The filter kills a process that makes a system call of another ABI, so there is no errno.
KILLED = {"x32_getpid", "i386_getpid"}
# These calls reach only the skill's own processes. The profile `permissive` allows them.
FOR_DEVELOPMENT = {"ptrace_traceme", "process_vm_readv", "process_vm_writev", "kcmp",
                   "personality"}


def table(result):
    return dict(line.split() for line in result.ok().text.splitlines())


def answers(runner, program, profile):
    return table(runner.run("--profile", profile, "-r", program.parent, "--", program))


@pytest.fixture(scope="module")
def bare(request, user_entry, base, programs):
    import conftest
    runner = conftest.make_runner("root", request, user_entry, base)
    yield table(runner.bare([programs("calls")]))
    runner.done()


@pytest.fixture(scope="module", params=["root", "user"])
def caller(request, user_entry, base):
    import conftest
    runner = conftest.make_runner(request.param, request, user_entry, base)
    yield runner
    runner.done()


@pytest.fixture(scope="module", params=["default", "permissive"])
def inside(request, caller, programs):
    seen = answers(caller, programs("calls"), request.param)
    seen["profile"] = request.param
    return seen


@pytest.mark.parametrize("call", CALLS)
def test_denied(call, inside, bare):
    # If the kernel does not have the call, the control gets ENOSYS.
    assert bare[call] not in DENIED or bare[call] == "ENOSYS", "control does not work"
    if inside["profile"] == "permissive" and call in FOR_DEVELOPMENT:
        # The profile `permissive` exists for debuggers: it allows these calls.
        assert inside[call] == bare[call]
        return
    assert inside[call] in DENIED, f"{call}: {inside[call]} (bare: {bare[call]})"
    if bare[call] == "ENOSYS":
        return
    assert inside[call] != bare[call]


@pytest.mark.parametrize("call", sorted(KILLED))
def test_other_entries_are_the_end(call, inside, bare):
    assert inside[call].startswith("SIG")
    assert not bare[call].startswith("SIG")


def test_no_refusal_is_silent(caller, programs):
    """Every refused call is in the record. Calls that programs can do without are not violations;
    calls that end the process are."""
    answers(caller, programs("calls"), "default")
    told = [x for x in caller.last_record() if x["kind"] == "syscall_blocked" and "data" in x]
    quiet = {x["data"]["op"] for x in told if not x.get("violation")}
    assert {"io_uring_setup", "io_uring_enter", "keyctl", "add_key", "request_key"} <= quiet
    if platform.machine() == "x86_64":
        entries = [x for x in told if x["data"]["op"] == "foreign_abi"]
        assert sorted(x["data"]["number"] for x in entries) == [20, 0x40000000 + 39]
        assert all(x["violation"] and x["data"]["reason"] == "attack" for x in entries)


def test_needed_call_works(inside):
    assert inside["getpid"] == "ok"


def test_clone3_is_enosys_so_that_threads_fall_back(inside):
    assert inside["clone3_newuser"] == "ENOSYS"


def test_filter_is_on(ssb):
    code = "print(open('/proc/self/status').read())"
    status = dict(line.split(":", 1) for line in ssb.inside(code).ok().text.splitlines()
                  if ":" in line)
    assert status["Seccomp"].strip() == "2"
    assert status["NoNewPrivs"].strip() == "1"
    bare_status = dict(line.split(":", 1) for line in ssb.bare(code).ok().text.splitlines()
                       if ":" in line)
    assert bare_status["Seccomp"].strip() == "0"


STRICT = ATTEMPT + """
import subprocess
attempt('arithmetic', lambda: sum(range(1000)))
attempt('file', lambda: open('/tmp/x', 'w').write('y'))
attempt('subprocess', lambda: subprocess.run(['/bin/true'], check=True))
attempt('fork', lambda: os.fork() or os._exit(0))
attempt('inet', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
attempt('unix', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
attempt('socketpair', lambda: socket.socketpair())
print(json.dumps(seen))
"""


def test_strict_profile(ssb):
    seen = ssb.probe(STRICT, profile="strict")
    assert seen["arithmetic"] == seen["file"] == "ok"
    for name in ("subprocess", "fork", "inet", "unix"):
        assert seen[name] != "ok", name
    control = ssb.probe(STRICT, profile="default")
    assert set(control.values()) == {"ok"}


def test_plain_python_under_strict(ssb):
    code = """
    import json, re, hashlib, datetime, collections, decimal
    print(json.dumps({'sum': sum(range(10)), 'sha': hashlib.sha256(b'x').hexdigest()[:8]}))
    """
    assert ssb.probe(code, profile="strict")["sum"] == 45


CORE = """
import json, os, resource, signal
def crash():
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    return os.WCOREDUMP(os.waitpid(pid, 0)[1])
def both():
    try:
        return resource.prlimit(0, resource.RLIMIT_CORE, (0, 0))
    except ValueError:  # EINVAL
        return 'denied'
seen = {'before': resource.getrlimit(resource.RLIMIT_CORE), 'dumped': crash()}
resource.setrlimit(resource.RLIMIT_CORE, (4096, resource.getrlimit(resource.RLIMIT_CORE)[1]))
seen['raised'] = resource.getrlimit(resource.RLIMIT_CORE)
seen['dumped'] |= crash()
seen['both'] = both()
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
seen['lowered'] = resource.getrlimit(resource.RLIMIT_CORE)
print(json.dumps(seen))
"""


@pytest.mark.parametrize("profile", ["default", "permissive"])
def test_core_dumps_stay_off(ssb, profile):
    """The limit for core dumps stays at 1, even if the skill sets another one and its call
    succeeds. With any other limit the kernel would give core dumps of the skill to a program of the
    host (the machine in tests/vm has such a program)."""
    shell = ["sh", "-c", 'ulimit -Sc unlimited; exec "$@"', "sh"]
    seen = ssb.as_caller([*shell, ssb.binary, "run", "--profile", profile, ssb.skill(CORE)])
    assert seen.ok().json() == {"before": [1, 1], "raised": [1, 1], "lowered": [1, 1],
                                "dumped": False, "both": "denied"}
    assert ssb.last_trace()["layers"]["limits"]["detail"].find("core dumps") < 0
    control = ssb.bare([*shell, "/usr/bin/python3", "-c", CORE]).ok().json()
    assert control["dumped"] and control["raised"] != control["lowered"] == [0, 0]


def test_a_caller_that_cannot_raise_the_limit(ssb):
    """The caller's limit for core dumps is 0, which a user cannot raise to 1. If the host has a
    program for core dumps, the kernel still starts it for a limit of 0, and the record says so.
    tests/vm has such a machine; here core_pattern cannot be replaced, because a /proc with a mount
    in it cannot be mounted again."""
    code = "import json, resource; print(json.dumps(resource.getrlimit(resource.RLIMIT_CORE)))"
    seen = ssb.as_caller(["sh", "-c", 'ulimit -c 0; exec "$@"', "sh", ssb.binary, "run",
                          ssb.skill(code)])
    assert seen.ok().json() == [0, 0]
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8", errors="replace") as f:
        piped = f.read(1) in ("|", "@")
    detail = ssb.last_trace()["layers"]["limits"]["detail"]
    assert detail.endswith("core dumps can go to a program of the host") == piped
