"""The command line: dry runs, quiet and JSON output, help, completions."""
import json
import os
import re

import pytest

import harness


def test_dry_run_executes_nothing(ssb):
    d = ssb.mkdir("out")
    skill = ssb.skill(f"open('{d}/ran', 'w')", write=[d])
    r = ssb.run("--dry-run", skill).ok()
    assert str(d) in r.text
    assert not (d / "ran").exists()
    ssb.run(skill).ok()
    assert (d / "ran").exists()


def test_dry_run_changes_nothing(ssb):
    """A dry run makes neither a declared write path nor a trace."""
    new = ssb.base / "not-yet"
    ssb.run("--dry-run", ssb.skill("", write=[new])).ok()
    assert not new.exists()
    assert not (ssb.state / "skillsandbox").exists()


def test_dry_run_json(ssb):
    plan = ssb.run("--dry-run", "--json", "-r", "/media", "-m", "99", "--", "echo", "hi").ok().json()
    assert isinstance(plan, dict)
    text = json.dumps(plan)
    assert "99" in text and "/media" in text and "echo" in text


def test_dry_run_of_a_refused_plan(ssb):
    r = ssb.run("--dry-run", ssb.skill("", read=["~/.ssh"]))
    assert r.code == 125
    assert ".ssh" in r.text + r.errors


def test_inspect(ssb):
    skill = ssb.skill("open('/tmp/ran', 'w')", read=["~/.ssh", "/media"], allow=["MY_KEY"])
    text = ssb.ssb("inspect", skill)
    assert ".ssh" in text.text and "/media" in text.text and "MY_KEY" in text.text
    plan = json.loads(ssb.ssb("inspect", skill, "--json").out)
    assert ".ssh" in json.dumps(plan)


def test_json_result_is_the_last_line(ssb):
    r = ssb.run("--json", "--", "sh", "-c", "echo out; echo err >&2; exit 4")
    assert r.code == 4 and r.out == b"out\n"
    result = json.loads(r.errors.splitlines()[-1])
    assert result["exit_status"] == 4 and result["stdout_bytes"] == 4
    assert os.path.exists(result["trace"])


def test_quiet_says_nothing_but_what_the_skill_says(ssb):
    r = ssb.run("-q", "--", "sh", "-c", "echo out; echo err >&2")
    assert r.ok().out == b"out\n" and r.err == b"err\n"
    r = ssb.run("-q", ssb.skill("", read=["~/.ssh"]))
    assert r.code == 125 and r.err, "errors are never quiet"


def test_plain_run_has_clean_streams(ssb):
    r = ssb.run("--", "sh", "-c", "echo out; echo err >&2").ok()
    assert r.out == b"out\n" and r.err == b"err\n"


def test_verbose_says_more(ssb):
    quiet = ssb.run("--", "true").ok()
    assert len(ssb.run("-v", "--", "true").ok().err) > len(quiet.err)


@pytest.mark.parametrize("env, colour", [({}, False), ({"NO_COLOR": "1"}, False)])
def test_no_colour_without_terminal(ssb, env, colour):
    for args in (["run", "--no-such-flag"], ["doctor"], ["validate", "/nonexistent"]):
        r = ssb.ssb(*args, env=env)
        assert (b"\x1b[" in r.out + r.err) == colour


def on_terminal(ssb, argv, env):
    script = ["script", "-qec", " ".join(map(str, argv)), "/dev/null"]
    return ssb.as_caller(script, env={"TERM": "xterm", **env}).out


def test_colour_on_a_terminal_and_no_color(ssb):
    argv = [ssb.binary, "doctor"]
    assert b"\x1b[" in on_terminal(ssb, argv, {})
    assert b"\x1b[" not in on_terminal(ssb, argv, {"NO_COLOR": "1"})


def test_help_and_version(ssb):
    assert "run" in ssb.ssb("--help").ok().text
    for command in ("run", "validate", "inspect", "prove", "doctor"):
        assert ssb.ssb("help", command).ok().text
        assert ssb.ssb(command, "--help").ok().text
    assert "0." in ssb.ssb("--version").ok().text


def test_validate(ssb):
    good = ssb.skill("")
    bad = ssb.skill("", text="skill:\n  name: x\n  versoin: 1\npermissions: {}\nbogus: 1\n"
                             "entrypoint:\n  command: sh\n")
    assert ssb.ssb("validate", good).code == 0
    r = ssb.ssb("validate", bad)
    assert r.code == 1
    assert "skillsandbox.yaml:3:" in r.errors and "version" in r.errors
    assert "skillsandbox.yaml:5:" in r.errors, "all errors, not only the first"
    assert ssb.ssb("validate", good, bad).code == 1
    assert ssb.ssb("validate", good / "skillsandbox.yaml").code == 0
    findings = json.loads(ssb.ssb("validate", "--json", bad).out)
    assert len(findings) >= 2


def test_doctor(ssb):
    r = ssb.ssb("doctor")
    assert r.code == 0, repr(r)
    for layer in ("userns", "landlock", "seccomp"):
        assert layer in r.text
    checks = ssb.ssb("doctor", "--json").ok().json()
    assert {"userns", "landlock", "seccomp"} <= {c["name"] for c in checks}


def test_prove(ssb):
    r = ssb.ssb("prove", "--json", timeout=120)
    assert r.code == 0, repr(r)
    proof = r.json()
    assert len(proof["probes"]) >= 30
    leaked = [p for p in proof["probes"] if p["outcome"] == "leaked"]
    assert leaked == []
    held = [p for p in proof["probes"] if p["outcome"] == "held"]
    assert len(held) >= 25


def test_prove_of_a_skill(ssb):
    r = ssb.ssb("prove", ssb.skill("", write=[ssb.mkdir("out")]), timeout=120)
    assert r.code == 0, repr(r)
    assert "0 leaked" in r.text


def test_run_prove_runs_after_the_proof(ssb):
    assert ssb.run("--prove", "--", "echo", "ran", timeout=120).ok().text == "ran\n"


def test_denial_names_the_flag_that_allows(ssb):
    r = ssb.inside("", read=["~/.ssh"])
    assert "--read" in r.errors and ".ssh" in r.errors


def test_empty_word_of_path_is_the_working_directory(ssb):
    d = ssb.mkdir("here")
    ssb.write(d / "tool", "#!/bin/sh\necho from-here\n", 0o755)
    for path, code in ((":/usr/bin", 0), ("/usr/bin", 127)):
        r = ssb.run("-r", d, "--env", f"PATH={path}", "--", "tool", cwd=d)
        assert r.code == code and r.text == ("from-here\n" if code == 0 else ""), repr(r)
        control = ssb.bare(["env", f"PATH={path}", "tool"], cwd=d)
        assert control.code == code and control.text == r.text, repr(control)


def test_the_first_program_of_path_that_can_be_executed(ssb):
    d = ssb.mkdir("dirs")
    ssb.write(d / "file", "not a directory\n")
    ssb.mkdir("dirs/none")
    ssb.mkdir("dirs/dangling")
    (d / "dangling/tool").symlink_to("nowhere")
    ssb.write(d / "text/tool", "no program\n")
    ssb.write(d / "first/tool", "#!/bin/sh\necho first\n", 0o755)
    ssb.write(d / "last/tool", "#!/bin/sh\necho last\n", 0o755)
    useless = ("none", "absent", "file", "dangling", "text")
    for names in ((*useless, "first", "last"), ("last", *useless, "first"), useless,
                  useless[:-1], ("last",)):
        path = ":".join(str(d / name) for name in names)
        r = ssb.run("-r", d, "--env", f"PATH={path}", "--", "tool", cwd=d)
        control = ssb.bare(["/usr/bin/env", f"PATH={path}", "tool"], cwd=d)
        assert (r.code, r.text) == (control.code, control.text), f"{r!r}\n{control!r}"


def test_toolchain_outside_usr(ssb):
    """An interpreter in the home (as pyenv and nvm install it) runs only with --toolchain auto, and
    the rest of the home remains hidden."""
    tool = ssb.home / ".pyenv/versions/3/bin/mytool"
    ssb.write(tool, "#!/bin/sh\necho from-toolchain\n", 0o755)
    env = {"PATH": f"{tool.parent}:{harness.PATH}"}
    r = ssb.run("--toolchain", "auto", "--", "mytool", env=env)
    assert r.ok().text == "from-toolchain\n"
    r = ssb.run("--toolchain", "off", "--", "mytool", env=env)
    assert r.code == 127 and "--toolchain" in r.errors
    r = ssb.run("--toolchain", "auto", "--", "no-such-tool", env=env)
    assert r.code == 127 and "no directory of your PATH has a program of this name" in r.errors
    assert "--toolchain" not in r.errors, "it was given"
    r = ssb.run("--toolchain", "auto", "--", "ls", ssb.home, env=env)
    assert ".ssh" not in r.text


def test_bare_command_has_nothing_by_default(ssb):
    r = ssb.run("--", "cat", ssb.home / ".ssh/id_ed25519")
    assert r.code == 1 and harness.SECRET not in r.text


def test_flags_end_at_the_command(ssb):
    assert ssb.run("--", "echo", "--json", "-q").ok().text == "--json -q\n"


def fish_options(words):
    """The options that fish would offer after these words, computed from the completion's file."""
    text = (harness.REPO / "completions/skillsandbox.fish").read_text()
    lists = {f"${name}": value.strip("'") for name, value in
             re.findall(r"^set -l (\w+) (.*)$", text, re.M)}
    options = set()
    for condition, rest in re.findall(r"""^complete -c skillsandbox -n ['"](.*?)['"] (.*)$""",
                                      text, re.M):
        terms = []
        for term in condition.split("; and "):
            names = term.removeprefix("not ").split(" ", 1)[1]
            for name, value in lists.items():
                names = names.replace(name, value)
            terms.append(bool(set(words) & set(names.split())) != term.startswith("not "))
        if all(terms):
            options |= set(re.findall(r"-l ([a-z-]+)", rest))
    return options


def told_options(ssb):
    """Returns {command: the options in its help}."""
    commands = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ?", ssb.ssb("help").ok().text, re.M)
    told = {c: set(re.findall(r"--([a-z][a-z-]+)", ssb.ssb("help", *c.split()).ok().text))
            for c in commands if c != "help"}
    assert {"learn", "serve", "audit list", "session violation"} <= set(told)
    return told


@harness.BY_USER
def test_fish_completes_what_a_command_takes(ssb):
    for command, told in told_options(ssb).items():
        assert fish_options(command.split()) == told, command


# Types each line in a zsh at a terminal and presses the completion key (tab) after it. Writes the
# offered words to $OUT, and "=" after each line's words.
ZSH = r"""
zmodload zsh/zpty
typed() { zpty -w -n shell $1$'\n'; zpty -r shell shown '*READY>*' }
zpty shell 'PS1="READY>" zsh -f -i'
zpty -r shell shown '*READY>*'
typed "unsetopt auto_list; fpath=($COMPLETIONS \$fpath); autoload -Uz compinit; compinit -D"
typed 'compadd() { local -a found
    [[ " $* " == *" -"[OAD]" "* ]] || { builtin compadd -A found "$@"; print -rl -- $found >>$OUT }
    builtin compadd "$@" }'
for line; do
    typed "skillsandbox $line"$'\t\x15print = >>$OUT'
done
"""


def zsh_offers(runner, lines):
    """Returns {line: the words that zsh offers at its end}."""
    out = runner.work / "offered"
    runner.as_caller(["zsh", "-f", "-c", ZSH, "zsh", *lines],
                     env={"COMPLETIONS": str(harness.REPO / "completions"), "OUT": str(out),
                          "TERM": "dumb"}).ok()
    return dict(zip(lines, map(str.split, out.read_text().split("=\n")), strict=False))


def test_zsh_completes_what_a_command_takes(root):
    told = told_options(root)
    offered = zsh_offers(root, ["", "audit ", "session ", *(f"{c} --" for c in told)])
    for command, options in told.items():
        assert set(offered[f"{command} --"]) == {f"--{o}" for o in options}, command
    words = {c.split()[0] for c in told}
    assert set(offered[""]) == words | {"help"}
    for word in ("audit", "session"):
        assert {f"{word} {sub}" for sub in offered[f"{word} "]} == \
            {c for c in told if c.startswith(f"{word} ")}


def test_layers_that_can_be_given_up_are_all_told(user):
    """The layers that --best-effort accepts are the same in the program, the manuals and the
    completions."""
    r = user.run("--best-effort", "no-such", "--", "true")
    layers = r.errors.strip().split("write one of: ")[1].split(", ")
    assert "seccomp" in layers
    for name in ("skillsandbox.bash", "skillsandbox.fish", "_skillsandbox"):
        assert " ".join(layers) in (harness.REPO / "completions" / name).read_text(), name
    for page, begin in (("skillsandbox.1", ".It Fl -best-effort Ar layer"),
                        ("skillsandbox-policy.5", ".It Cm best_effort")):
        item = (harness.REPO / "man" / page).read_text().split(begin)[1].split("\n.It ")[0]
        assert not [layer for layer in layers if layer not in item.split()], page


def said_lines(r):
    """The messages for people; `run --json` has them in its last line."""
    last = r.errors.splitlines()[-1]
    return json.loads(last)["messages"] if last.startswith("{") else r.errors.splitlines()


@pytest.mark.parametrize("deep", ["", "d" * 90])
@pytest.mark.parametrize("command", [["run"], ["run", "--json"], ["inspect"], ["prove"]])
def test_what_is_wrong_with_a_file_is_said_once(ssb, command, deep):
    text = "skill: {name: x, version: 1.0.0}\nodd: 1\npermissions: {even: 1}\n" \
           "entrypoint: {command: echo}\n"
    skill = ssb.base / deep / "skill"
    ssb.write(skill / "skillsandbox.yaml", text)
    r = ssb.ssb(*command, skill)
    lines = said_lines(r)
    said = [sum(key in line for line in lines) for key in ('"odd"', '"even"')]
    assert r.code == 125 and said == [1, 1], repr(r)
    assert ("--json" in command) == ('"text":"unknown key' in r.errors), "for programs"
    ssb.write(skill / "skillsandbox.yaml", text.replace("odd: 1\n", "").replace("even: 1", ""))
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml", "alway: {}\n", 0o600)
    r = ssb.ssb(*command, skill)
    lines = said_lines(r)
    assert r.code == 125 and sum("alway'" in line for line in lines) == 1, repr(r)
