"""Makes an agents.World for each test, in a directory that root and skills run by root can
reach."""
import pathlib
import shutil
import tempfile

import pytest

import agents


def pytest_configure(config):
    for path in (agents.NODE, agents.CLAUDE, agents.CODEX, agents.OPENCODE, agents.INSPECTOR,
                 agents.REPO / "build/src/skillsandbox"):
        if path is None or not path.exists():
            pytest.exit(f"FAILED: {path} is missing: run make acceptance", returncode=1)


@pytest.fixture
def world():
    base = pathlib.Path(tempfile.mkdtemp(prefix="ssb-acceptance-", dir="/var/tmp"))
    base.chmod(0o755)
    yield agents.World(base)
    shutil.rmtree(base, ignore_errors=True)
