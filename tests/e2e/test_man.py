"""The manual pages are well-formed and complete, and their examples run."""
import os
import re
import subprocess

import pytest

import harness

MAN = harness.REPO / "man"
PAGES = ["skillsandbox.1", "skillsandbox-serve.1", "skillsandbox.3", "skillsandbox-manifest.5",
         "skillsandbox-policy.5", "skillsandbox-session.5", "skillsandbox-trace.5"]


@pytest.mark.parametrize("page", PAGES)
def test_page_is_well_formed(page):
    r = subprocess.run(["mandoc", "-T", "lint", "-W", "error", MAN / page], capture_output=True,
                       text=True, timeout=30)
    assert r.returncode == 0, r.stdout + r.stderr


def rendered(page):
    text = subprocess.run(["mandoc", "-T", "utf8", MAN / page], capture_output=True, text=True,
                          timeout=30, check=True).stdout
    return re.sub(".\b", "", text)


def test_every_flag_of_the_table_is_in_the_manual():
    table = (harness.REPO / "src/cli/flags.c").read_text()
    page = rendered("skillsandbox.1").replace("‐", "-").replace("−", "-")
    for flag in re.findall(r'\{ "([a-z-]+)", ', table):
        assert f"--{flag}" in page, flag


def test_every_command_of_the_table_is_in_the_manual():
    table = (harness.REPO / "src/cli/main.c").read_text().split("COMMANDS[] = {")[1].split("\n};")[0]
    commands = re.findall(r'^\t\{ "([a-z]+(?: [a-z]+)?)", ', table, re.M)
    items = re.findall(r"^\.It Cm (.*)$", (MAN / "skillsandbox.1").read_text(), re.M)
    assert len(commands) > 30
    for command in commands:
        assert any(re.match(rf"(.*\b)?{command.removeprefix('session ')}\b", i) for i in items), command


def test_every_exit_status_is_in_the_manual():
    page = rendered("skillsandbox.1")
    for status in ("124", "125", "126", "127", "137"):
        assert status in page


def test_every_manifest_field_is_in_the_manual():
    page = rendered("skillsandbox-manifest.5")
    for field in ("memory_mb", "cpu_shares", "max_runtime_seconds", "max_output_bytes",
                  "max_processes", "max_open_files", "max_disk_mb", "egress", "protocol",
                  "max_connections", "max_connections_per_second", "max_bytes_out", "max_bytes_in",
                  "env_vars", "profile", "workdir", "entrypoint"):
        assert field in page, field


def examples(page):
    """Yields each command of the literal blocks with its expected output. A line that begins with
    "$ " is a command."""
    found = []
    for block in re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", (MAN / page).read_text(),
                            re.M | re.S):
        for line in block.replace("\\&", "").replace("\\e", "\\").splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
    return found


def test_examples_run_as_shown(ssb):
    shown = examples("skillsandbox.1") + examples("skillsandbox-serve.1")
    assert len(shown) >= 5
    path = {"PATH": f"{ssb.binary.rsplit('/', 1)[0]}:{harness.PATH}"}
    for command, output in shown:
        r = ssb.as_caller(["sh", "-c", command], env=path, timeout=90)
        assert r.text.splitlines() == output, f"{command}\n{r!r}"


def test_the_whole_interface_is_in_the_manual():
    """skillsandbox(3) names each call, option, error code, kind of end and member of the public
    header."""
    header = (harness.REPO / "include/skillsandbox.h").read_text()
    page = (MAN / "skillsandbox.3").read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    names = re.findall(r"\b(ssb_[a-z_]+)\(", code)
    names += re.findall(r"\b(SSB_(?:OPT|END|E)_[A-Z_]+)\b", code)
    denial = re.search(r"struct ssb_denial \{(.*?)\};", code, re.S).group(1)
    names += re.findall(r"(\w+);", denial)
    assert len(names) >= 70
    assert [name for name in names if not re.search(rf"\b{name}\b", page)] == []


PROGRAM = """
#include <skillsandbox.h>
#include <stdio.h>
int main(void)
{
%s
	return err.code;
}
"""


def test_library_example_runs(ssb):
    """The example of skillsandbox(3), unchanged, runs a skill that is denied something: it prints
    the denial and the remedy."""
    block = re.search(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", (MAN / "skillsandbox.3").read_text(),
                      re.M | re.S).group(1).replace("\\e", "\\")
    src = harness.BUILD / "src"
    out = ssb.mkdir("example")
    ssb.write(out / "x.c", PROGRAM % block)
    subprocess.run(["gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-I",
                    harness.REPO / "include", out / "x.c", src / "libskillsandbox.a", "-lyaml",
                    "-lsodium", "-o", out / "x"], check=True, timeout=60)
    skill = ssb.skill("import os\ntry: open(os.path.expanduser('~/.ssh/id_rsa'))\n"
                      "except OSError: print('hello')")
    os.rename(skill, out / "hello")
    r = ssb.as_caller([out / "x"], cwd=out)
    lines = r.ok().text.splitlines()
    assert lines[0] == "hello" and len(lines) == 2, repr(r)
    assert lines[1].startswith("read ") and "; to allow it: --read " in lines[1], repr(r)


def test_manifest_examples_are_valid(ssb):
    text = rendered("skillsandbox-manifest.5")
    block = re.search(r"^( +)skill:\n(?:\1.*\n|\s*\n)+", text, re.M)
    assert block, "no example of a whole manifest"
    import textwrap
    skill = ssb.skill("", text=textwrap.dedent(block.group(0)))
    ssb.ssb("validate", skill).ok()
