"""Debian's Chromium, started by its ordinary name, as root and as another user: it renders a page
without violations."""
import json
import os
import shutil
import subprocess

import pytest

import agents

# Without these options Chromium would resolve undeclared names, which would be reported as
# violations.
QUIET = ["--disable-background-networking", "--disable-component-update",
         "--host-resolver-rules=MAP * ~NOTFOUND"]


@pytest.mark.parametrize("uid", [0, 65534])
@pytest.mark.parametrize("grant", [[], ["-w"]], ids=["alone", "beside a write grant"])
def test_headless(world, uid, grant):
    home, work = world.base / "caller", world.base / "work"
    for d in (home, work):
        d.mkdir(exist_ok=True)
        os.chown(d, uid, uid)
    (work / "page.html").write_text("<p>hello <b id=x></b><script>x.textContent = 6 * 7</script>")
    binary = shutil.copy(agents.REPO / "build/src/skillsandbox", world.base)
    r = subprocess.run(
        ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", binary, "run", "--timeout",
         "200", "-m", "2048", *(grant or ["-r"]), work, "--", "chromium", "--headless", "--no-sandbox",
         *QUIET, "--dump-dom", f"file://{work}/page.html"], cwd=work, capture_output=True, text=True,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, timeout=240, check=False)
    assert r.returncode == 0 and '<b id="x">42</b>' in r.stdout, r
    trace, = home.glob(".local/state/skillsandbox/runs/*/trace.json")
    assert json.loads(trace.read_text(encoding="utf-8"))["policy_violations"] == []


@pytest.mark.parametrize("uid", [0, 65534])
@pytest.mark.parametrize("cache", [[], ["--cache"]], ids=["alone", "with a cache"])
def test_preset(world, uid, cache):
    """The preset is enough for a screenshot. The control: without it, the usual limits are not."""
    home, work = world.base / "caller", world.base / "work"
    for d in (home, work):
        d.mkdir(exist_ok=True)
        os.chown(d, uid, uid)
    (work / "page.html").write_text("<p>hello")
    binary = shutil.copy(agents.REPO / "build/src/skillsandbox", world.base)

    def shoot(*flags):
        return subprocess.run(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", binary, "run", "-r", work,
             *flags, *cache, "--", "sh", "-c",
             f"chromium --headless --no-sandbox {' '.join(map(repr, QUIET))} --screenshot=/tmp/a.png "
             f"file://{work}/page.html >&2; cat /tmp/a.png"], cwd=work, capture_output=True,
            env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, timeout=240, check=False)

    r = shoot("--preset", "browser")
    assert r.stdout.startswith(b"\x89PNG"), r
    assert not shoot().stdout
