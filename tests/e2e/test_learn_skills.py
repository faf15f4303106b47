"""learn: the manifest that it writes is enough for a real run, and asks for nothing else."""
import pathlib

import pytest

from learn_skills import SKILLS
from net_fixtures import net, outside

# Settings of another program are dangerous to give away: learn writes them only as a comment.
WITHHELD = {"own-settings"}


def place(ssb, skill):
    d = ssb.mkdir(f"work/{skill.name}")
    for name, text in skill.files.items():
        ssb.write(d / name, text, 0o755 if text.lstrip().startswith("#!") else 0o644)
    for name, text in skill.home.items():
        ssb.write(ssb.home / name, text)
    for name, text in skill.work.items():
        ssb.write(ssb.work / name, text)
    return d


def words(ssb, skill):
    return [a.replace("WORK", str(ssb.work)) for a in skill.args]


def grants(ssb, skill, d):
    """What the manifest requests, in the words of the table."""
    asked = set(ssb.ssb("inspect", "--json", d, *words(ssb, skill)[:1]).ok().json()["requested"])
    named = {f"read {w}" for w in words(ssb, skill) if w.startswith("/")}
    return {"NAMED read" if a in named or "arguments" in a else a for a in asked}


def first_of_home(ssb, name):
    return pathlib.Path(name.replace("~", str(ssb.home), 1))


@pytest.mark.parametrize("skill", SKILLS, ids=lambda s: s.name)
def test_it_is_enough_and_no_more(net, skill):
    ssb = net.runner
    d = place(ssb, skill)
    args = words(ssb, skill)
    net.world.reset()
    learned = ssb.ssb("learn", "--write", *skill.learn, d, "--", *args, env=skill.env).ok()
    assert net.nothing_arrived(), "not even a question"
    for name in skill.left:
        assert not first_of_home(ssb, name).exists(), "learn leaves nothing"
    manifest = (d / "skillsandbox.yaml").read_text()
    assert "/decoy" not in manifest + learned.errors, "a file of ours is no need"
    assert "- ~  #" not in manifest, "to make a directory that exists, the home is not needed"
    if skill.name in WITHHELD:
        assert all(f"# - {g.split()[1]}" in manifest for g in skill.grants), manifest
        return
    assert grants(ssb, skill, d) == set(skill.grants), manifest + learned.errors
    ssb.ssb("approve", "--yes", d, env=skill.env).ok()
    own_entry = "\nentrypoint:" in manifest and skill.args and skill.args[0] in skill.files
    r = ssb.run(d, *(args[1:] if own_entry else args), env=skill.env).ok()
    assert skill.prints in r.text, f"{r!r}\n{manifest}\n{learned.errors}"
    for name in skill.left:
        assert first_of_home(ssb, name).exists(), manifest


def test_the_table_is_of_use():
    assert len(SKILLS) >= 30 and len(WITHHELD) <= 2
