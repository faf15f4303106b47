"""What a newcomer meets first: files of the project, the working directory, hosts that are not named,
and what run, why, check and Python say about a denial. Every denial has its control: with the flag
that was printed, the same command works."""
import json
import os
import re
import shlex
import socket

import pytest

import serve_world
from mcp_client import structured
from terminal import Terminal

REPORT = """
import csv, sys
print(len(list(csv.reader(open(sys.argv[1])))))
"""


def csv_skill(ssb):
    """A SKILL.md skill with one script, and a project with a file for it."""
    skill = ssb.mkdir("skills/csv-report/scripts").parent
    ssb.write(skill / "SKILL.md", "---\nname: csv-report\ndescription: Counts the rows of a CSV\n---\n")
    ssb.write(skill / "scripts/report.py", REPORT)
    project = ssb.mkdir("home/work")
    ssb.mkdir("home/work/data")
    ssb.write(project / "data/people.csv", "name\nann\n")
    return skill, project


def flags_of(text):
    """Returns the flags of the first remedy that is printed, as a shell would split them."""
    found = re.search(r"(?:to allow:? |: )(--\S+ .*)$", text, re.M)
    assert found, text
    return shlex.split(found[1])


@pytest.mark.parametrize("spelling", ["relative", "absolute"])
def test_a_file_of_the_project(ssb, spelling):
    """The file exists outside and is hidden inside: run and why name it, and the flag that they print
    is enough."""
    skill, project = csv_skill(ssb)
    file = "data/people.csv" if spelling == "relative" else str(project / "data/people.csv")
    args = (skill, "scripts/report.py", file)
    r = ssb.ssb("run", *args, cwd=project)
    assert r.code == 1 and "people.csv" in r.errors and "not_granted" not in r.text, r
    assert not ssb.last_trace()["policy_violations"]
    why = ssb.ssb("why", "last").ok().text
    word = "read" if spelling == "absolute" else "look for"
    assert why.startswith(f"1. {word} {project}/data/people.csv\n") and "(not_granted)" in why, why
    assert "read ~/work/data/people.csv" in ssb.ssb("check", skill, "--against", "last").text
    assert ssb.ssb("run", *flags_of(r.errors), *args, cwd=project).ok().text == "2\n"


@pytest.mark.parametrize("place", ["home", "/var/lib/dpkg/status", "/opt/ssb-first-use"])
def test_a_hidden_file_is_denied_everywhere(ssb, place):
    made = place.startswith("/opt")
    path = f"{place}-{ssb.kind}" if made else place
    if place == "home":
        path = ssb.write(ssb.home / "notes.txt", "x")
    if made:
        open(path, "w", encoding="utf-8").close()
    try:
        ssb.as_caller(["cat", path]).ok()
        r = ssb.run("--", "cat", path)
        assert r.code == 1 and f"1 x read {path} [not_granted]" in r.errors, r
        data = json.loads(ssb.ssb("why", "--json", "last").ok().out)
        assert [(d["reason"], d["violation"], d["everyday"]) for d in data
                if d["what"] == f"read {path}"] == [("not_granted", False, False)], data
        ssb.run(*flags_of(r.errors), "--", "cat", path).ok()
        # A name that does not exist outside either is no denial.
        missing = ssb.run("--", "cat", f"{path}.none")
        assert missing.code == 1 and "skillsandbox" not in missing.errors, missing
    finally:
        if made:
            os.unlink(path)


def test_settings_are_told_last(ssb):
    """Programs look for settings by themselves: after a success nothing is said, after a failure one
    line names them, and why lists them at the end."""
    ssb.write(ssb.home / ".inputrc", "")
    code = "import os\ntry: open(os.path.expanduser('~/.inputrc'))\nexcept OSError: pass\n"
    assert ssb.run("--", "python3", "-c", code).ok().errors == ""
    r = ssb.run("--", "python3", "-c", code + "raise SystemExit(3)")
    assert r.code == 3 and f"not allowed: read {ssb.home}/.inputrc" in r.errors, r
    assert "to allow" not in r.errors
    why = ssb.ssb("why", "last").ok().text
    assert why.startswith("refused, but most programs") and f"to allow: --read {ssb.home}/.inputrc" in why
    ssb.run("-r", ssb.home / ".inputrc", "--", "cat", ssb.home / ".inputrc").ok()


def test_a_host_is_named_although_none_is_declared(ssb):
    ask = "import socket\nsocket.getaddrinfo('api.example.com', 443)"
    r = ssb.run("--", "python3", "-c", ask)
    assert r.code == 1 and re.search(r"\d x look up api\.example\.com \[not_declared\]", r.errors), r
    assert flags_of(r.errors) == ["--net", "api.example.com"]
    # The control: with the flag the name has an address.
    ssb.run("--net", "api.example.com", "--", "python3", "-c", ask).ok()


def test_the_first_lookups_of_many_processes(ssb):
    """The name server starts with the first lookup; all that were sent meanwhile are answered."""
    code = """
    import os, socket
    for i in range(12):
        if os.fork() == 0:
            try:
                socket.getaddrinfo(f'n{i}.example', 80, socket.AF_INET)
            except socket.gaierror as e:
                os._exit(0 if e.errno == socket.EAI_NONAME else 1)
            os._exit(2)
    raise SystemExit(sum(os.wait()[1] != 0 for _ in range(12)))
    """
    r = ssb.inside(code)
    assert r.code == 0, r
    names = {d["what"] for d in json.loads(ssb.ssb("why", "--json", "last").out)}
    assert names >= {f"look up n{i}.example" for i in range(12)}, names


def test_a_host_that_this_machine_does_not_find(ssb):
    """It is granted, so nothing was denied: the words say so, and no remedy is invented."""
    argv = ["--net", "no-such-host.example", "--", "/usr/bin/python3", "-c",
            "import urllib.request\nurllib.request.urlopen('https://no-such-host.example')"]
    r = ssb.run(*argv)
    assert r.code == 1 and "skillsandbox: failed:" in r.errors and "[no_name]" in r.errors, r
    why = ssb.ssb("why", "last").ok().text
    assert "failed   this machine does not find the name (no_name)" in why, why
    assert "to allow" not in why + r.errors and "denied" not in why


def test_a_service_of_this_machine(ssb):
    """The sandbox has a loopback of its own. If a program of the machine listens at the port, the
    refused connection says so, with the flags."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        argv = ["--", "/usr/bin/python3", "-c",
                f"import socket\nsocket.create_connection(('127.0.0.1', {port}))"]
        r = ssb.run(*argv)
        assert r.code == 1 and "ConnectionRefusedError" in r.errors, r
        assert f"connect to 127.0.0.1 port {port} (tcp) [host_loopback]" in r.errors, r
        flags = ["--net", f"127.0.0.1:{port}", "--allow-private", "127.0.0.1"]
        assert f"to allow: {' '.join(flags)}\n" in r.errors, r
        alone = ssb.run(*flags[:2], "--", "true").ok()
        assert f"is this machine itself, so --net alone has no effect" in alone.errors, alone
        assert "itself" not in ssb.run(*flags, "--", "true").ok().errors
        assert not ssb.last_trace()["policy_violations"]
        ssb.run(*flags, *argv).ok()  # the control
    # Nobody listens there any more: an ordinary refusal of the kernel, and no word of ours.
    assert "skillsandbox" not in ssb.run(*argv).errors
    own = "import socket\ns = socket.create_server(('127.0.0.1', 0))\n" \
        "socket.create_connection(s.getsockname())"
    assert ssb.run("--", "/usr/bin/python3", "-c", own).ok().errors == ""


def test_netlink_gets_no_wider_profile(ssb):
    """A refused call that programs make every day is never answered with --profile permissive."""
    ssb.inside("import socket\ntry: socket.socket(16, 3, 15)\nexcept OSError: pass\n")
    text = ssb.ssb("why", "last").ok().text
    assert "make a netlink socket" in text and "permissive" not in text, text


def test_working_directory(ssb):
    _, project = csv_skill(ssb)
    file = project / "data/people.csv"
    here = ssb.run("-r", project / "data", "--", "pwd", cwd=project)
    assert here.ok().text.strip() == str(project), "the parent of a grant is shown"
    assert ssb.run("-r", file, "--", "cat", "data/people.csv", cwd=project).ok().text == "name\nann\n"
    assert ssb.run("--", "pwd", cwd="/usr/share").ok().text.strip() == "/usr/share"
    elsewhere = ssb.run("--", "pwd", cwd=project).ok()
    assert elsewhere.text.strip() == str(ssb.home) and elsewhere.errors == ""
    failed = ssb.run("--", "cat", "data/people.csv", cwd=project)
    assert failed.code == 1 and "the current directory is not in the sandbox" in failed.errors
    assert flags_of(failed.errors) == ["--read", str(file)]
    assert ssb.run(*flags_of(failed.errors), "--", "cat", "data/people.csv", cwd=project).ok()
    # The root contains every grant, but a service that was started in / does not mean it.
    assert ssb.run("-r", file, "--", "pwd", cwd="/").ok().text.strip() == str(ssb.home)


def test_project(ssb):
    _, project = csv_skill(ssb)
    write = "import sys; open('new', 'w'); open('CLAUDE.md', 'w')"
    r = ssb.run("--project", "--", "python3", "-c", write, cwd=project)
    assert (project / "new").exists() and not (project / "CLAUDE.md").exists()
    assert r.code == 1 and "CLAUDE.md [protected]" in r.errors, r
    read = ssb.run("--project-read", "--", "python3", "-c", "open('data/people.csv'); open('x', 'w')",
                   cwd=project)
    assert read.code == 1 and "[read_only]" in read.errors and not (project / "x").exists(), read
    assert ssb.run(f"--project={project}", "--", "cat", project / "new").ok()
    for home in (ssb.home, ssb.home.parent, "/"):
        none = ssb.run("--project", "--", "true", cwd=home)
        assert none.code == 125, none
        assert "it is your home directory" in none.errors or "a top directory" in none.errors, none


def test_project_of_the_policy_file(ssb):
    _, project = csv_skill(ssb)
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", "always: {project: read}\n")
    assert ssb.run("--", "cat", "data/people.csv", cwd=project).ok().text == "name\nann\n"
    assert ssb.run("--", "touch", "x", cwd=project).code == 1
    # In the home it grants nothing, and stops nothing.
    assert ssb.run("--", "cat", "work/data/people.csv", cwd=ssb.home).code == 1
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", "always: {project: yes}\n")
    bad = ssb.run("--", "true", cwd=project)
    assert bad.code == 125 and "write read or write" in bad.errors, bad


def test_the_same_words_over_mcp(ssb):
    """run_skill and why_denied name the hidden file, with the same remedy as why."""
    path = ssb.write(ssb.home / "people.csv", "name\n")
    serve_world.skill(ssb, "report", f"open({str(path)!r})")
    with serve_world.served(ssb) as client:
        result = client.tool("run_skill", skill_dir="report")
        answer = result["structuredContent"]
        assert result["isError"] and answer["violations"] == [], answer
        (denied,) = answer["denied"]
        assert (denied["code"], denied["what"]) == ("not_granted", f"read {path}")
        assert denied["fix"].startswith(f"--read {path}")
        assert f"1. read {path}" in result["content"][0]["text"]
        why = structured(client.tool("why_denied", run_id=answer["run_id"]))
        assert why["total"] == 1 and why["denials"][0]["what"] == f"read {path}", why
    with serve_world.served(ssb, "--read", path) as client:  # the control
        assert not client.tool("run_skill", skill_dir="report").get("isError")


def test_what_was_meant(ssb):
    """A command line that names the wrong thing is answered with the right one."""
    skill, project = csv_skill(ssb)
    file = project / "data/people.csv"

    def meant(*args, said="skillsandbox run "):
        r = ssb.ssb("run", *args, cwd=project)
        assert r.code in (2, 125, 127) and f"  help: " in r.errors, r
        help_line = r.errors.split("  help: ")[1].splitlines()[0]
        assert said in help_line, r
        return shlex.split(help_line.split("skillsandbox ")[-1])
    assert ssb.ssb(*meant("python3", "-c", "print(6 * 7)")).ok().text == "42\n"
    words = meant(skill / "scripts/report.py", file)
    assert ssb.ssb("run", "-r", file, *words[1:]).ok().text == "2\n"
    meant("--", "no-such-program", said="no directory of your PATH has a program of this name")
    near = ssb.ssb("run", skill, "report.py")
    assert near.code == 125 and near.errors == \
        "skillsandbox: script: 'report.py' is not a file of the skill; the skill has: scripts/report.py\n"
    # A word that is neither a directory nor a program gets no hint.
    assert "help:" not in ssb.ssb("run", "no-such-skill").errors


def test_terminal_and_interpreter(ssb):
    """TERM is passed, if it looks like one, and the interpreter is the same in a pipe."""
    say = ["--", "sh", "-c", "echo $TERM $COLORTERM"]
    assert ssb.run(*say, env={"TERM": "xterm-256color", "COLORTERM": "truecolor"}).ok().text == \
        "xterm-256color truecolor\n"
    assert ssb.run(*say, env={"TERM": "$(reboot)"}).ok().text == "\n"
    assert ssb.run("--env", "TERM=dumb", *say, env={"TERM": "xterm"}).ok().text == "dumb\n"
    venv = ssb.home / "venv"
    ssb.as_caller(["/usr/bin/python3", "-m", "venv", "--without-pip", venv]).ok()
    env = {"PATH": f"{venv}/bin:/usr/bin:/bin"}
    prefix = ["--", "python3", "-c", "import sys; print(sys.prefix)"]
    assert ssb.run(*prefix, env=env).ok().text == f"{venv}\n"
    assert ssb.run("--toolchain", "off", *prefix, env=env).ok().text == "/usr\n"  # the control


def test_a_command_that_is_meant_keeps_its_options(ssb):
    """The hint is a whole command line: with it, the same program runs with the same options."""
    _, project = csv_skill(ssb)
    script = ssb.write(project / "run.sh", "#!/bin/sh\necho $GREETING\n", 0o755)
    broken = ssb.write(project / "broken.sh", "#!/opt/no-such/sh\n", 0o755)
    r = ssb.ssb("run", "--env", "GREETING=hi you", "sh", "-c", "echo $GREETING", cwd=project)
    line = re.search(r"help: for a bare command: (.*)", r.errors)[1]
    assert ssb.ssb(*shlex.split(line)[1:], cwd=project).ok().text == "hi you\n"
    r = ssb.run("--env", "GREETING=hi", "--", "./run.sh", cwd=project)
    line = re.search(r"help: .*to show it: (.*)", r.errors)[1]
    assert r.code == 127 and str(script) in line, r
    assert ssb.ssb(*shlex.split(line)[1:], cwd=project).ok().text == "hi\n"
    r = ssb.run("--", "./nosuch.sh", cwd=project)
    assert r.code == 127 and "no such file outside the sandbox either" in r.errors and "DIR" not in r.errors
    r = ssb.run("-r", broken, "--", "./broken.sh", cwd=project)
    assert "its first line names '/opt/no-such/sh', which does not exist" in r.errors, r


def test_a_failed_open_is_no_change(ssb):
    """An open that fails because its directory is missing is not recorded as a file that was made."""
    _, project = csv_skill(ssb)

    out = ssb.mkdir("home/out")

    def told(command):
        r = ssb.run("-w", out, "--", "sh", "-c", command)
        assert r.code != 0, r
        found = [e["data"] for e in ssb.last_trace()["events"]
                 if e.get("data", {}).get("op") in ("open", "mkdir") and "new" in e["data"]["path"]]
        return found, ssb.ssb("audit", "show", "last").ok().text
    (hidden,), shown = told(f"echo > {project}/new")
    assert (hidden["status"], hidden["error"], hidden["reason"]) == ("denied", "ENOENT", "not_granted")
    assert hidden["remedy"] == f"--write {project}" and "files changed" not in shown
    ssb.write(project / "new.txt", "old\n")
    (there,), _ = told(f"echo >> {project}/new.txt")
    assert there["remedy"] == f"--write {project}/new.txt", "no whole directory for one file"
    (project / "new.txt").unlink()
    for command in (f"echo > {project}/none/new", f"echo > {out}/none/new", f"mkdir {out}/none/new"):
        (gone,), shown = told(command)
        assert gone["status"] == "absent" and "reason" not in gone and "files changed" not in shown, gone
    # The controls: an existing directory, and a secret, whose class a failed attempt keeps.
    ssb.run("-w", project, "--", "sh", "-c", f"echo > {project}/new").ok()
    assert f"create {project}/new" in ssb.ssb("audit", "show", "last").ok().text.split("files changed")[1]
    ssb.mkdir("home/.ssh")
    ssb.run("--", "sh", "-c", "echo > ~/.ssh/authorized_keys")
    assert "persistence" in ssb.ssb("audit", "show", "last").ok().text


def test_a_file_in_the_private_home_is_gone(ssb):
    """One line says that the file is gone, and names an option that keeps it. audit show does not
    list it among the changed files."""
    _, project = csv_skill(ssb)
    gone = "to the private home of this run, which is gone"
    r = ssb.run("--", "sh", "-c", "echo x > ~/report.csv; echo y > ~/.cache-file").ok()
    assert r.errors.count("\n") == 1 and f"~/report.csv was written {gone}" in r.errors, r
    shown = ssb.ssb("audit", "show", "last").ok().text
    assert "files changed" not in shown and "written to private places, and gone since the run ended" in shown
    r = ssb.run("--", "sh", "-c", "echo x > out.csv; echo y > b; mv b c", cwd=project).ok()
    assert f"~/out.csv and 1 other file were written {gone}; to keep them: --project" in r.errors, r
    ssb.run("--project", "--", "sh", "-c", "echo x > out.csv", cwd=project).ok()
    assert (project / "out.csv").read_text() == "x\n"
    for nothing in ("echo x > /tmp/x", "echo x > ~/x; rm ~/x", "echo x > ~/.x", "mkdir ~/x"):
        assert ssb.run("--", "sh", "-c", nothing).ok().errors == "", nothing
    assert ssb.run("-q", "--", "sh", "-c", "echo x > ~/report.csv").ok().errors == ""


def test_arguments_that_name_hidden_files(ssb):
    """A program that only calls stat() leaves no line. If the program fails, the record gets a line
    for each file that its arguments name and that exists outside, and for no other file; why shows
    it, too."""
    _, project = csv_skill(ssb)
    ssb.mkdir("home/.ssh")
    spaced = ssb.write(project / "a b", "x")
    other = project / "data/people.csv"
    for argv, missed in ((["ls", spaced, other, project / "none", "/etc", "/usr", ssb.home], [spaced, other]),
                         (["sh", "-c", f"ls '{other}' ~/work/data >&2; false"], [other, project / "data"]),
                         (["ls", f"--ignore={other}", "/none"], [other]),
                         (["ls", ssb.home / ".ssh"], [])):
        r = ssb.run("--", *argv)
        assert r.code != 0, r
        denied = json.loads(ssb.ssb("why", "--json", "last").ok().out)
        assert {d["what"] for d in denied if d["reason"] == "not_granted"} == \
            {f"look for {m}" for m in missed}, (argv, denied)
        assert all(f"look for {m} [not_granted]" in r.errors for m in missed), r
    ssb.run("-r", project, "--", "ls", spaced, other).ok()  # the control
    assert "look for" not in ssb.run("--", "sh", "-c", f"test -n {other}").ok().errors


LOOK_UP = """import socket, sys
for name in sys.argv[1:]:
    try: socket.getaddrinfo(name, 443)
    except OSError: print('tried', name, flush=True)
input()
raise SystemExit(3)
"""


def test_the_first_denials_are_said_at_once(ssb):
    """At a terminal, a person need not wait for the end of the run; each host is said once, and at
    most five lines."""
    names = [f"r{i}.example.org" for i in range(7)]
    t = Terminal(ssb, "run", "--", "/usr/bin/python3", "-c", LOOK_UP, *names[:1], *names)
    said = "skillsandbox: r%d.example.org is not granted; to allow: --net r%d.example.org"
    for i in range(5):
        t.wait_for(said % (i, i))  # the program still waits for its input
    assert t.type("").end() == 3
    live, summary = t.text.split("denied:")
    assert live.count("is not granted") == 5 and live.count("r0.example.org is not granted") == 1, live
    assert "look up r0.example.org [not_declared]" in summary
    # The controls: not in a pipe, not with --quiet, and not for a granted host.
    argv = ["--", "/usr/bin/python3", "-c", LOOK_UP, names[0]]
    assert "is not granted" not in ssb.run(*argv, stdin=b"\n").errors
    for flags in (["-q"], ["--net", names[0]]):
        t = Terminal(ssb, "run", *flags, *argv)
        t.type("")
        assert t.end() == 3 and "is not granted" not in t.text, t.text


def test_the_words_to_allow_are_whole(ssb):
    """A comma in the name of a file does not end the option that is proposed."""
    file = ssb.write(ssb.home / "notes, old.txt", "x")
    t = Terminal(ssb, "run", "--", "sh", "-c", f"cat '{file}'; read x; exit 3", columns=200)
    t.wait_for(f"{file} is not granted; to allow: --read '{file}'\r\n").type("")
    assert t.end() == 3, t.text
    assert ssb.run("--read", file, "--", "cat", file).ok().text == "x"  # the control


def test_a_full_screen_is_not_disturbed(ssb):
    """While the skill has its terminal in raw mode, nothing is written between its output."""
    file = ssb.write(ssb.home / "notes.txt", "x")
    line = "stty raw; cat ~/notes.txt; echo begin; sleep 0.5; echo finish; stty sane; echo sane; read x; exit 3"
    t = Terminal(ssb, "run", "--", "sh", "-c", line)
    t.wait_for("sane")
    t.wait_for(f"{file} is not granted; to allow: --read")
    t.type("")
    assert t.end() == 3
    between = t.text[t.text.index("begin"):t.text.index("sane")]
    assert "not granted" not in between and "finish" in between, t.text


@pytest.mark.parametrize("name", ["notes.txt", "missing.txt"])
def test_a_hidden_file_hides_no_violation(ssb, name):
    """A rename from a hidden file is not granted, but the attempt on its target still counts as a
    violation. The control: a rename from a file that does not exist."""
    ssb.write(ssb.home / "notes.txt", "x")
    ssb.run("--", "python3", "-c", f"import os\nos.rename('{ssb.home}/{name}', '/proc/1/environ')")
    found, = ssb.last_trace()["policy_violations"]
    assert found["data"]["reason"] == "other_process", found
