"""Skillware skills, and programs of a caller that load them with the Python package."""
import json
import os
import pathlib
import shutil
import textwrap

import harness

PACKAGE = harness.REPO / "python/skillsandbox"

MANIFEST = """\
name: test/thing
version: 1.0.0
description: Does things
parameters:
  type: object
  properties:
    what: {type: string}
    n: {type: integer, minimum: 0}
  required: [what]
env_vars:
  THING_KEY: {description: a key, required: true}
"""

# The beginning of every program, which must call out() last: it prints the result for the test.
PRELUDE = """\
import asyncio, json, os, sys, threading, time, warnings
warnings.simplefilter("ignore")
from skillsandbox import *

def out(**found):
    print(json.dumps(found))

def caught(call, *args, **kw):
    try:
        return {"result": call(*args, **kw)}
    except Exception as e:
        return {"raised": type(e).__name__, "text": str(e),
                **{k: v for k, v in vars(e).items() if isinstance(v, (str, int, list))}}

SKILL = sys.argv[1]
"""


class World:
    def __init__(self, ssb):
        self.ssb = ssb
        self.count = 0
        self.package = ssb.mkdir("python")
        target = self.package / "skillsandbox"
        shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
        for d, dirs, files in os.walk(target):
            for name in (*dirs, *files):
                path = pathlib.Path(d) / name
                path.chmod(0o755 if path.is_dir() else 0o644)
        target.chmod(0o755)

    def skill(self, code, manifest=MANIFEST, files=None):
        self.count += 1
        d = self.ssb.mkdir(f"skills/test/thing{self.count}")
        everything = {"skill.py": code, "manifest.yaml": manifest, **(files or {})}
        for name, text in everything.items():
            self.ssb.write(d / name, text)
        return d

    def program(self, skill, code, *, env=None, bare=False, timeout=60):
        """Runs the code as the caller and returns the value that it passed to out(), and the
        finished command. `bare`: only decoys are visible, and there is no network."""
        path = self.ssb.write(self.ssb.work / "program.py", PRELUDE + textwrap.dedent(code))
        env = {"PYTHONPATH": str(self.package), "PYTHONDONTWRITEBYTECODE": "1",
               "SKILLSANDBOX_BINARY": str(self.ssb.binary), **(env or {})}
        run = self.ssb.bare if bare else self.ssb.as_caller
        done = run([harness.PYTHON, path, skill], env=env, timeout=timeout)
        assert done.code == 0, repr(done)
        return json.loads(done.text.splitlines()[-1]), done
