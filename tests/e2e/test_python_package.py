"""The Python package as users get it: installed, and used as its README says."""
import re
import shutil
import subprocess

import harness
import python_world

README = harness.REPO / "python/README.md"

SHOUT = """
    from skillware.core.base_skill import BaseSkill

    class Shout(BaseSkill):
        def execute(self, params):
            if "input_path" in params:
                with open(params["input_path"]) as f, open(params["output_path"], "w") as g:
                    g.write(f.read().upper())
                return {}
            return {"said": params["text"].upper() + (self.credential("SHOUT_KEY") or "")}
"""
MANIFEST = """\
name: text/shout
version: 1.0.0
description: Says it louder
parameters:
  type: object
  properties: {text: {type: string}}
  required: [text]
env_vars: {SHOUT_KEY: {required: false}}
"""
SAID = ["Says it louder", "['text']", "{'said': 'HELLO'}", "{'said': 'CONFIGUREDsecret'}", "QUIET",
        "an action of $1000.00 costs more than the $0.50 that one action may cost"]


def test_the_examples_of_the_readme_do_what_they_say(user):
    world = python_world.World(user)
    for name, text in (("skill.py", SHOUT), ("manifest.yaml", MANIFEST)):
        user.write(user.work / "skills/text/shout" / name, text)
    user.write(user.work / "letter.txt", "quiet")
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", README.read_text(), re.M | re.S)
    assert len(blocks) == 5
    code = "\n".join(harness.textwrap.dedent(code) for _, code in blocks)
    done = user.as_caller([harness.PYTHON, "-W", "error", "-c", code], env={
        "PYTHONPATH": str(world.package), "SKILLSANDBOX_BINARY": str(user.binary)})
    assert done.code == 0, repr(done)
    assert done.text.splitlines() == SAID


def test_the_package_installs_without_a_network(root):
    source = root.base / "source"
    shutil.copytree(harness.REPO / "python", source,
                    ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    target = root.base / "site"
    subprocess.run(["unshare", "--net", harness.PYTHON, "-m", "pip", "install", "--quiet",
                    "--no-build-isolation", "--no-index", "--target", target, source],
                   check=True, timeout=120, env={"PATH": harness.PATH, "HOME": str(root.home)},
                   capture_output=True)
    found = {p.name for p in (target / "skillsandbox").iterdir()}
    assert {"_worker.py", "py.typed", "tiers", "session.py"} <= found
    done = subprocess.run([harness.PYTHON, "-c", "import skillsandbox; print(skillsandbox.__file__)"],
                          env={"PYTHONPATH": str(target)}, check=True, timeout=30,
                          capture_output=True, text=True)
    assert done.stdout.startswith(str(target))


def test_the_wheel_brings_the_program(user):
    """`make wheel`, installed in a new venv without a network: the package finds the program that came
    with it, although there is none on the PATH, and the example of an agent's loop runs with it."""
    out = user.mkdir("wheel")
    done = subprocess.run([harness.REPO / "scripts/wheel", harness.BUILD / "src/skillsandbox", out],
                          env={"PATH": harness.PATH, "HOME": str(user.home)}, timeout=120,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wheel = done.stdout.strip()
    assert "-py3-none-manylinux_2_" in wheel
    venv = user.base / "venv"
    user.as_caller([harness.PYTHON, "-m", "venv", venv], timeout=120).ok()
    user.as_caller(["unshare", "--net", "--map-root-user", venv / "bin/pip", "install", "--quiet",
                    "--no-index", wheel], timeout=120).ok()
    example = user.mkdir("example")
    shutil.copytree(harness.REPO / "examples/agent-loop", example, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))
    user.write(user.work / "people.csv", "name,age\nann,41\nbob,1\n")
    run = [venv / "bin/python", example / "agent.py", user.work]
    for file, said in ((user.work / "people.csv", '"sum": 42.0'), ("/etc/shadow", "denied: /etc/shadow"),
                       (user.home / ".netrc", f"denied: {user.home}/.netrc")):
        done = user.as_caller([*run, file, "age"], timeout=120).ok()
        assert said in done.text, repr(done)
    plain = user.base / "plain"
    user.as_caller([harness.PYTHON, "-m", "venv", plain], timeout=120).ok()
    done = user.as_caller([plain / "bin/python", example / "agent.py", user.work, "x", "age"],
                          env={"PYTHONPATH": str(harness.REPO / "python"), "PATH": "/usr/bin:/bin",
                               "PYTHONDONTWRITEBYTECODE": "1"})
    assert "the program skillsandbox was not found" in done.errors, "control: without the wheel"
