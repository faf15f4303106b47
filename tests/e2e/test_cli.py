"""The command line: plans without execution, quiet and JSON forms, help."""
import json
import os

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
    """Not even a declared write path is made, nor a trace."""
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


def test_toolchain_outside_usr(ssb):
    """An interpreter in the home, as pyenv and nvm put it."""
    tool = ssb.home / ".pyenv/versions/3/bin/mytool"
    ssb.write(tool, "#!/bin/sh\necho from-toolchain\n", 0o755)
    env = {"PATH": f"{tool.parent}:{harness.PATH}"}
    r = ssb.run("--toolchain", "auto", "--", "mytool", env=env)
    assert r.ok().text == "from-toolchain\n"
    r = ssb.run("--toolchain", "off", "--", "mytool", env=env)
    assert r.code == 127 and "--toolchain" in r.errors
    r = ssb.run("--toolchain", "auto", "--", "ls", ssb.home, env=env)
    assert ".ssh" not in r.text


def test_bare_command_has_nothing_by_default(ssb):
    r = ssb.run("--", "cat", ssb.home / ".ssh/id_ed25519")
    assert r.code == 1 and harness.SECRET not in r.text


def test_flags_end_at_the_command(ssb):
    assert ssb.run("--", "echo", "--json", "-q").ok().text == "--json -q\n"
