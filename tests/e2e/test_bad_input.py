"""Bad input: invalid manifests, directories and flags give one clear message and status 125
or 2 (validate: 1), never a crash, a hang or an incomplete sandbox. The manifests are
also given to the sanitizer build."""
import os
import socket

import pytest

import harness

GOOD = harness.manifest(command="/bin/echo", args=["started"])
HEAD = "skill:\n  name: x\n  version: '1'\n"
TAIL = "entrypoint:\n  command: /bin/echo\n  args: [started]\n"


def with_permissions(text):
    return HEAD + "permissions:\n" + text + TAIL


def with_resources(text):
    return HEAD + "permissions: {}\nresources:\n" + text + TAIL


MANIFESTS = {
    "empty": "",
    "spaces": "   \n\n",
    "comment": "# nothing\n",
    "null": "~\n",
    "scalar": "hello\n",
    "list": "- a\n- b\n",
    "unknown key": HEAD + "permissions: {}\nbogus: 1\n" + TAIL,
    "misspelt": HEAD + "permisions: {}\n" + TAIL,
    "duplicate key": HEAD + "permissions: {}\npermissions: {}\n" + TAIL,
    "no skill": "permissions: {}\n" + TAIL,
    "no entrypoint": HEAD + "permissions: {}\n",
    "no permissions": HEAD + TAIL,
    "anchor": HEAD + "permissions: &a {}\n" + TAIL,
    "alias": HEAD + "permissions: &a {}\nresources: *a\n" + TAIL,
    "alias bomb": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n",
    "tag": HEAD + "permissions: !!map {}\n" + TAIL,
    "merge": HEAD + "permissions:\n  <<: {}\n" + TAIL,
    "second document": GOOD + "---\n" + GOOD,
    "nul": GOOD.replace("probe", "pro\\x00be").encode().replace(b"\\x00", b"\x00"),
    "control": GOOD.replace("probe", "pro\x07be"),
    "escaped nul": GOOD.replace('"probe"', '"pro\\0be"'),
    "latin-1": GOOD.encode().replace(b"probe", b"pr\xf6be"),
    "utf-16": GOOD.encode("utf-16"),
    "binary": os.urandom(512),
    "tab": "skill:\n\tname: x\n",
    "unclosed": "skill: {name: x\n",
    "unclosed quote": 'skill: "x\n',
    "deep": "a: " + "[" * 5000 + "]" * 5000,
    "deep block": "".join("  " * i + "a:\n" for i in range(200)),
    "long scalar": GOOD.replace("probe", "p" * 100000),
    "huge": "# " + "x" * (300 * 1024) + "\n" + GOOD,
    "many keys": "".join(f"k{i}: 1\n" for i in range(10000)),
    "name is a list": GOOD.replace('"probe"', "[a]"),
    "permissions is a list": HEAD + "permissions: [a]\n" + TAIL,
    "memory zero": with_resources("  memory_mb: 0\n"),
    "memory negative": with_resources("  memory_mb: -5\n"),
    "memory text": with_resources("  memory_mb: lots\n"),
    "memory float": with_resources("  memory_mb: 1.5\n"),
    "memory huge": with_resources("  memory_mb: 99999999999999999999999\n"),
    "memory overflow": with_resources("  memory_mb: 18446744073709551615\n"),
    "runtime zero": with_resources("  max_runtime_seconds: 0\n"),
    "processes zero": with_resources("  max_processes: 0\n"),
    "disk negative": with_resources("  max_disk_mb: -1\n"),
    "hex": with_resources("  memory_mb: 0x40\n"),
    "relative path": with_permissions("  filesystem:\n    read: [data]\n"),
    "dotdot path": with_permissions("  filesystem:\n    read: [/srv/../etc]\n"),
    "empty path": with_permissions("  filesystem:\n    read: ['']\n"),
    "other home": with_permissions("  filesystem:\n    read: ['~root/x']\n"),
    "path of a map": with_permissions("  filesystem:\n    read: [{a: b}]\n"),
    "env wildcard": with_permissions("  env_vars:\n    allow: ['*']\n"),
    "env prefix": with_permissions("  env_vars:\n    allow: ['AWS_*']\n"),
    "env equals": with_permissions("  env_vars:\n    allow: ['A=b']\n"),
    "env digit": with_permissions("  env_vars:\n    allow: ['1A']\n"),
    "domain star": with_permissions("  network:\n    egress: [{domain: '*'}]\n"),
    "domain tld": with_permissions("  network:\n    egress: [{domain: '*.com'}]\n"),
    "domain suffix": with_permissions("  network:\n    egress: [{domain: '*.co.uk'}]\n"),
    "domain empty": with_permissions("  network:\n    egress: [{domain: ''}]\n"),
    "domain space": with_permissions("  network:\n    egress: [{domain: 'a b.example'}]\n"),
    "domain url": with_permissions("  network:\n    egress: [{domain: 'https://a.example'}]\n"),
    "port zero": with_permissions("  network:\n    egress: [{domain: a.example, ports: [0]}]\n"),
    "port high": with_permissions("  network:\n    egress: [{domain: a.example, ports: [65536]}]\n"),
    "protocol": with_permissions("  network:\n    egress: [{domain: a.example, protocol: icmp}]\n"),
    "profile": with_permissions("  syscalls:\n    profile: none\n"),
    "many items": with_permissions("  env_vars:\n    allow: [" + ", ".join(
        f"A{i}" for i in range(5000)) + "]\n"),
    "workdir relative": GOOD + "  workdir: here\n",
    "command empty": GOOD.replace('"/bin/echo"', '""'),
}


def fine(r, codes):
    """The status is one of `codes` (a crash would give another one); there is a message, and
    the skill did not start."""
    assert r.code in codes, repr(r)
    assert b"started" not in r.out
    assert r.err.strip(), "no message"
    assert b"AddressSanitizer" not in r.err and b"runtime error" not in r.err, repr(r)


def test_the_good_one_is_good(ssb):
    """The control of the whole table: the manifest without an error is valid and runs."""
    skill = ssb.skill("", text=GOOD)
    ssb.ssb("validate", skill).ok()
    assert ssb.run(skill).ok().text == "started\n"
    for text in (with_permissions("  env_vars:\n    allow: [A]\n"),
                 with_resources("  memory_mb: 64\n")):
        assert ssb.run(ssb.skill("", text=text)).ok().text == "started\n"


@pytest.mark.parametrize("case", sorted(MANIFESTS))
def test_manifest(ssb, case):
    skill = ssb.skill("", text=MANIFESTS[case])
    fine(ssb.ssb("validate", skill), {1})
    fine(ssb.run(skill), {125})
    assert not (ssb.state / "skillsandbox").exists() or not list(
        (ssb.state / "skillsandbox/runs").glob("*/trace.json"))


@pytest.mark.parametrize("case", sorted(MANIFESTS))
def test_manifest_in_the_sanitizer_build(root, case):
    binary = harness.ASAN_BUILD / "src/skillsandbox"
    assert binary.exists(), "build-asan is missing: tests/run makes it"
    skill = root.skill("", text=MANIFESTS[case])
    for args, codes in ((["validate", skill], {1}), (["run", "--dry-run", skill], {125}),
                        (["inspect", skill], {125})):
        fine(root.as_caller([binary, *args], timeout=30,
                            env={"ASAN_OPTIONS": "detect_leaks=1:exitcode=99",
                                 "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99"}), codes)


def empty_dir(ssb):
    return ssb.mkdir("empty")


def missing(ssb):
    return ssb.base / "missing"


@pytest.mark.parametrize("kind", ["FIFO", "directory", "socket", "symlink"])
def test_a_markdown_file_that_is_none(ssb, kind):
    """SKILL.md is a FIFO, directory, socket or broken symlink: the message says so, and does not
    say that the manifest is missing."""
    d = ssb.mkdir("skill")
    path = d / "SKILL.md"
    with socket.socket(socket.AF_UNIX) as s:
        {"FIFO": os.mkfifo, "directory": os.mkdir, "socket": lambda p: s.bind(str(p)),
         "symlink": lambda p: os.symlink("nowhere", p)}[kind](path)
    for r, code in ((ssb.run(d), 125), (ssb.ssb("validate", d), 1)):
        text = r.errors + r.text
        assert r.code == code and f"{path}: error: it is a {kind}" in text, repr(r)
        assert "not a regular file" in text and "is not a skill" not in text, text
    ssb.write(d / "skillsandbox.yaml", GOOD)
    assert "started" in ssb.run(d).ok().text, "the control: the manifest decides"
    (d / "skillsandbox.yaml").unlink()
    path.rmdir() if kind == "directory" else path.unlink()
    assert "this directory is not a skill" in ssb.run(d).errors, "the control: there is none"


@pytest.mark.parametrize("command, code", [("validate", 0), ("lint", 0), ("inspect", 0)])
def test_a_command_that_this_machine_lacks(ssb, command, code):
    """A warning names the program, and a similar one if there is one. It is not an error."""
    d = ssb.mkdir("skill")
    for name, remedy in (("pyhton3", "did you mean python3?"), ("qqqqqqqq", "check its spelling")):
        ssb.write(d / "skillsandbox.yaml", harness.manifest(command=name, args=[]))
        r = ssb.ssb(command, d)
        said = " ".join((r.errors + r.text).split())
        assert r.code == code and f'has the program "{name}"' in said and remedy in said, r
    for name in ("python3", "/bin/echo", "./qqqqqqqq"):  # the controls
        ssb.write(d / "skillsandbox.yaml", harness.manifest(command=name, args=[]))
        r = ssb.ssb(command, d)
        assert "has the program" not in r.errors + r.text, r


@pytest.mark.parametrize("command", ["validate", "lint", "run", "inspect"])
def test_a_directory_that_is_no_skill(ssb, command):
    """The message says what is there instead: nothing, a script, or skills; and it names them."""
    d = ssb.mkdir("some skills")
    empty = ssb.ssb(command, d)
    assert empty.code != 0 and "it has no SKILL.md and no skillsandbox.yaml; write a SKILL.md" in empty.errors, empty
    assert f"script of the skill there and run: skillsandbox init '{d}'" in empty.errors, empty
    ssb.write(d / "a.sh", "#!/bin/sh\necho hello\n", 0o755)
    assert f"write a SKILL.md into it, or run: skillsandbox init '{d}'" in ssb.ssb(command, d).errors
    for i in range(7):
        ssb.write(ssb.mkdir(f"some skills/s{i}") / "SKILL.md", "---\nname: x\ndescription: x\n---\n")
    ssb.mkdir("some skills/other")
    r = ssb.ssb(command, d)
    assert r.code == empty.code and f"name one of its skills: '{d}/s0', '{d}/s1'" in r.errors, r
    assert "more\n" in r.errors and "other" not in r.errors and "init" not in r.errors, r
    ssb.ssb("validate", d / "s0").ok()  # the control: the named skill is one
    if command == "validate":  # what the other message says works, too
        for i in range(7):
            (d / f"s{i}" / "SKILL.md").unlink()
        ssb.ssb("init", d).ok()
        ssb.ssb("validate", d).ok()


def test_a_small_stack(ssb):
    """The stack limit is 64 KiB, and planning a run needs about 80 KiB: the run is refused with a
    message. Without the check, the kernel would kill the process."""
    def run(limit):
        return ssb.as_caller(["prlimit", f"--stack={limit}", "--", ssb.binary, "run", "--",
                              "echo", "started"])
    r = run("65536:65536")
    assert r.code == 125 and "the limit of the stack is 64 KiB" in r.errors, repr(r)
    assert run("65536:8388608").ok().text == "started\n", "the soft limit is raised"
    assert run("262144:262144").ok().text == "started\n", "the control: enough"


def test_a_path_through_a_missing_directory(ssb):
    ssb.write(ssb.work / "x", "")
    for flag in ("--read", "--write"):
        r = ssb.run(flag, "nope/../x", "--", "true")
        assert r.code == 125 and "'..' after a directory that does not exist" in r.errors, repr(r)
        os.mkdir(ssb.work / "nope")  # the control
        ssb.run(flag, "nope/../x", "--", "true").ok()
        os.rmdir(ssb.work / "nope")


def fifo(ssb):
    d = ssb.mkdir("fifo")
    os.mkfifo(d / "skillsandbox.yaml", 0o666)
    ssb.own(d / "skillsandbox.yaml")
    return d


def unix_socket(ssb):
    d = ssb.mkdir("sock")
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(d / "skillsandbox.yaml"))
    return d


def directory(ssb):
    d = ssb.mkdir("dir")
    ssb.mkdir("dir/skillsandbox.yaml")
    return d


def device(ssb):
    d = ssb.mkdir("dev")
    (d / "skillsandbox.yaml").symlink_to("/dev/zero")
    return d


def dangling(ssb):
    d = ssb.mkdir("dangling")
    (d / "skillsandbox.yaml").symlink_to("nowhere")
    return d


def loop(ssb):
    d = ssb.mkdir("loop")
    (d / "skillsandbox.yaml").symlink_to("skillsandbox.yaml")
    return d


def plain_file(ssb):
    return ssb.write(ssb.base / "plain", "x")


def device_itself(ssb):
    return "/dev/zero"


def fifo_itself(ssb):
    path = ssb.base / "pipe"
    os.mkfifo(path, 0o666)
    return ssb.own(path)


def long_name(ssb):
    return "/" + "a" * 5000


def proc(ssb):
    return "/proc/self"


def empty_name(ssb):
    return ""


PLACES = [empty_dir, missing, fifo, unix_socket, directory, device, dangling, loop, plain_file,
          device_itself, fifo_itself, long_name, proc, empty_name]


@pytest.mark.parametrize("place", PLACES, ids=lambda f: f.__name__)
def test_directory(ssb, place):
    where = place(ssb)
    fine(ssb.ssb("validate", where), {1, 125, 2})
    fine(ssb.run(where), {125, 2})
    fine(ssb.ssb("inspect", where), {125, 2})


def test_unreadable_manifest(user):
    skill = user.skill("")
    os.chown(skill / "skillsandbox.yaml", 0, 0)
    (skill / "skillsandbox.yaml").chmod(0o600)
    fine(user.ssb("validate", skill), {1, 125})
    fine(user.run(skill), {125})


FLAGS = [
    ["--memory", "abc"], ["--memory", "-1"], ["--memory", "0"], ["--memory", ""],
    ["--memory", "99999999999999999999G"], ["--memory", "1"], ["-m"], ["--timeout", "soon"],
    ["--timeout", "0"], ["--timeout", "-5"], ["--timeout", "1y"], ["--profile", "none"],
    ["--profile", ""], ["--read", ""], ["--env", ""], ["--env", "=x"],
    ["--env", "A B=c"], ["--env", "*"], ["--net", ""], ["--net", "*"], ["--net", "*.com:443"],
    ["--net", "a.example:0"], ["--net", "a.example:70000"], ["--net", "a.example:x"],
    ["--best-effort", "nothing"], ["--best-effort", ""], ["--max-output", "-1"],
    ["--max-processes", "0"], ["--max-files", "2"], ["--max-disk", "x"], ["--cpu-shares", "1"],
    ["--toolchain", "maybe"], ["--no-such-flag"], ["-Z"], ["--json=yes"], ["--policy", "/nonexistent"],
    ["--read", "a" * 5000], ["--read", "/" + "a/" * 3000], ["--trace-output", ""],
    ["--read", "/srv/\nx"],
]


@pytest.mark.parametrize("flags", FLAGS, ids=lambda f: " ".join(f)[:30])
def test_flag(ssb, flags):
    fine(ssb.run(*flags, "--", "/bin/echo", "started"), {2, 125})


def test_flag_control(ssb):
    assert ssb.run("--memory", "64", "--timeout", "60s", "--profile", "default", "--env", "A=b",
                   "--", "/bin/echo", "started").ok().text == "started\n"


@pytest.mark.parametrize("args", [[], ["run"], ["run", "--"], ["nonsense"], ["validate"],
                                  ["inspect"], ["rnu", "x"], ["doctor", "x"], ["run", ""],
                                  ["-x"], ["run", "--", ""]], ids=str)
def test_usage(ssb, args):
    fine(ssb.ssb(*args), {2, 125, 127})


def test_many_arguments(ssb):
    r = ssb.run("--", "/bin/echo", *["x"] * 3000)
    assert r.ok().text.count("x") == 3000
    r = ssb.run("--", "/bin/echo", *["x"] * 6000)
    assert r.code in (2, 125)


def test_hostile_names_do_not_reach_the_terminal(ssb):
    d = ssb.mkdir("evil\x1b[31mname")
    r = ssb.run(d)
    assert r.code == 125 and b"\x1b[31m" not in r.err
    skill = ssb.skill("", text=HEAD + "permissions: {}\n\"bo\\e[31mgus\": 1\n" + TAIL)
    r = ssb.ssb("validate", skill)
    assert r.code == 1 and b"\x1b[31m" not in r.err


def test_skill_path_with_hostile_name_runs(ssb):
    d = ssb.mkdir("we ird\n'\"$(touch x)name")
    ssb.write(d / "skillsandbox.yaml", GOOD)
    assert ssb.run(d).ok().text == "started\n"


def test_broken_environment(ssb):
    r = ssb.as_caller(["env", "-i", ssb.binary, "run", "--", "/bin/echo", "started"])
    assert r.code in (0, 125) and r.code == 0 or r.err
    for home in ("", "relative", "/nonexistent/home", "/proc", "/dev/null"):
        r = ssb.run("--", "/bin/echo", "started", env={"HOME": home, "XDG_STATE_HOME": ""})
        assert r.code in (0, 125), repr(r)
