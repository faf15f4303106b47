"""init, check and shrink: manifests from what skills do and what their files say, for real runs and
for forged records."""
import os
import subprocess

import harness
import record_maker as maker

MAIN = """
    import os, pathlib, subprocess, sys
    # talks to https://docs.example.org in its documentation
    API = "https://api.town.example/v1"
    KEY = os.environ.get("TOWN_KEY")
    TOKEN = os.environ.get("GITHUB_TOKEN")
    SECRET = "~/.ssh/id_ed25519"

    def attempt(f):
        try:
            return f()
        except OSError as e:
            print(type(e).__name__)

    for path in sys.argv[1:]:
        attempt(lambda: open(path).read())
    """


def world(ssb, **manifest):
    """A skill, and the owner's files that it reads."""
    data = ssb.mkdir("data")
    for name in ("a", "b", "never"):
        ssb.write(data / name, name)
    skill = ssb.skill(MAIN, read=[data / "a", data / "never"], write=[ssb.mkdir("out")],
                      allow=["TOWN_KEY", "UNSET_NAME"],
                      egress=[{"domain": "api.town.example"}], **manifest)
    return skill, data


def patch(directory, text):
    r = subprocess.run(["/usr/bin/patch", "-p1", "-s", "-F0", "-d", str(directory)], input=text,
                       capture_output=True, timeout=30)
    assert r.returncode == 0, (r, text)


def test_check_names_a_host_although_none_is_declared(ssb):
    skill = ssb.skill("import socket\ntry: socket.gethostbyname('a.example')\nexcept OSError: pass")
    ssb.run(skill).ok()
    r = ssb.ssb("check", skill, "--against", "last")
    assert r.code == 1 and "connect to a.example" in r.text, r


def test_check_knows_that_it_does_not_know_a_host(ssb):
    """Without a host, only the resolvers of 127.0.0.0/8 answer. If a skill asks another one, the
    record has no name, so check says that its answer is incomplete."""
    skill = ssb.skill("import socket\ns = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
                      "try: s.sendto(b'?' * 20, ('::1', 53))\nexcept OSError: pass")
    ssb.run(skill).ok()
    r = ssb.ssb("check", skill, "--against", "last").ok()
    assert "asked for a host although" in r.errors
    assert ssb.ssb("check", "--json", skill, "--against", "last").json()["incomplete"]


def test_check_says_what_a_run_would_miss(ssb):
    skill, data = world(ssb)
    env = {"TOWN_KEY": "k"}
    ssb.run(skill, data / "a", env=env).ok()
    good = ssb.ssb("check", skill, "--against", "last")
    assert good.code == 0, good
    assert good.text == "the manifest would have allowed everything in 1 run\n", good
    ssb.run(skill, data / "b", env=env).ok()
    bad = ssb.ssb("check", skill, "--against", "last")
    assert bad.code == 1 and f"read {data}/b  (run " in bad.text, bad
    # The control: a manifest that declares the file, too, would allow both runs.
    first, second = (run["run_id"] for run in ssb.ssb("audit", "list", "--json").json())
    wider = ssb.write(ssb.work / "wider.yaml", harness.manifest(
        read=[data / "a", data / "b"], allow=["TOWN_KEY"]))
    both = ssb.ssb("check", wider, "--json", "--against", first, "--against", second).json()
    assert both == {"runs": 2, "allowed": True, "incomplete": False, "denied": []}
    narrow = ssb.write(ssb.work / "narrow.yaml", harness.manifest())
    more = ssb.ssb("check", narrow, "--json", "--against", first, second)
    kinds = {(n["kind"], n["value"], n["was_denied"]) for n in more.json()["denied"]}
    assert more.code == 1 and kinds == {("read", f"{data}/a", False), ("read", f"{data}/b", True),
                                        ("environment", "TOWN_KEY", False)}, more
    assert ssb.ssb("check", skill).code == 2
    assert ssb.ssb("check", skill, "--against", "ffffffff").code == 125


def test_shrink_is_a_patch_that_applies(ssb):
    skill, data = world(ssb)
    none = ssb.ssb("shrink", skill)
    assert none.code == 125 and "no run of this skill is recorded" in none.errors and not none.out
    # Runs of another skill with the same name do not count.
    other = ssb.skill(MAIN, read=[data / "never"], allow=["UNSET_NAME"], egress=[])
    assert other != skill
    ssb.run(other, data / "never", env={"UNSET_NAME": "1"}).ok()
    assert ssb.ssb("shrink", skill).code == 125
    ssb.run(skill, data / "a", env={"TOWN_KEY": "k"}).ok()
    # A run without a record proves nothing.
    ssb.run("--audit", "off", skill, data / "never").ok()
    told = ssb.ssb("shrink", "--json", skill).json()
    assert told["runs"] == 1
    assert {(u["kind"], u["value"]) for u in told["unused"]} == {
        ("network", "api.town.example"), ("read", f"{data}/never"),
        ("write", str(ssb.base / "out")), ("environment", "UNSET_NAME")}
    r = ssb.ssb("shrink", skill)
    assert r.text == told["patch"] and f"never used in 1 run: read {data}/never" in r.errors
    patch(skill, r.out)
    ssb.ssb("validate", skill).ok()
    left = ssb.ssb("inspect", "--json", skill).json()["requested"]
    assert left == [f"read {data}/a", "environment TOWN_KEY"]
    again = ssb.ssb("shrink", skill).ok()
    assert again.text == ""
    assert "the skill used everything that its manifest declares, in 1 run" in again.errors
    # With the smaller manifest, the skill still reads the file that it needs, and can no longer
    # read the other one.
    ssb.run(skill, data / "a").ok()
    assert "FileNotFoundError" in ssb.run(skill, data / "never").ok().text


def test_init_writes_a_manifest_that_runs(ssb):
    skill = ssb.skill(MAIN, text="")
    (skill / "skillsandbox.yaml").unlink()
    ssb.write(skill / "tool.sh", "#!/bin/sh\necho ${PLACE_NAME:?}\n")
    os.symlink("/etc/passwd", skill / "link.py")
    r = ssb.ssb("init", skill).ok()
    manifest = skill / "skillsandbox.yaml"
    text = manifest.read_text()
    assert "- domain: api.town.example  # main.py:4\n" in text, text
    assert "# - domain: docs.example.org, port 443  # main.py:3: only a comment or prose mentions it" in text
    assert "- TOWN_KEY  # main.py:5\n" in text and "- PLACE_NAME  # tool.sh:2\n" in text
    assert "\n      # - GITHUB_TOKEN  # main.py:6: " in text
    assert "\n      # - ~/.ssh/id_ed25519  # main.py:7: " in text
    assert f"wrote {manifest}" in r.errors
    ssb.ssb("validate", skill).ok()
    asked = ssb.ssb("inspect", "--json", skill).json()["requested"]
    assert asked == ["connect to api.town.example", "environment PLACE_NAME",
                     "environment TOWN_KEY"]
    ssb.run(skill).ok()
    # `init` replaces no file and does not write through a symlink.
    again = ssb.ssb("init", skill)
    assert again.code == 2 and "never replaced" in again.errors
    assert manifest.read_text() == text
    manifest.unlink()
    target = ssb.write(ssb.work / "target", "mine")
    os.symlink(target, manifest)
    assert ssb.ssb("init", skill).code == 2 and target.read_text() == "mine"
    manifest.unlink()
    os.symlink(ssb.work / "nowhere", manifest)
    assert ssb.ssb("init", skill).code != 0 and not (ssb.work / "nowhere").exists()
    manifest.unlink()
    # The manifest can also go to standard output, or to a sidecar of the owner.
    assert ssb.ssb("init", skill, "-o", "-").ok().text == text
    assert not manifest.exists()
    ssb.ssb("init", "--sidecar", skill).ok()
    sidecar = ssb.home / ".config/skillsandbox/skills" / f"{skill.name}.yaml"
    line = f"  directory: {skill}\n"
    assert line in sidecar.read_text() and sidecar.stat().st_mode & 0o777 == 0o600
    assert sidecar.read_text().replace(line, "") == text
    assert ssb.ssb("inspect", "--json", skill).json()["format"] == "sidecar"


def test_init_takes_wishes_of_a_skill_md_as_hints(ssb):
    skill = ssb.mkdir("wisher")
    ssb.write(skill / "SKILL.md", """\
        ---
        name: wisher
        description: "Wishes"
        metadata: {"openclaw": {"requires": {"env": ["TOWN_KEY", "AWS_SECRET_ACCESS_KEY"]}}}
        ---
        See https://docs.example.org.
        """)
    ssb.write(skill / "go.py", "print('went')\n")
    ssb.ssb("init", skill).ok()
    text = (skill / "skillsandbox.yaml").read_text()
    assert "      - TOWN_KEY  # SKILL.md:" in text, text
    assert "      # - AWS_SECRET_ACCESS_KEY  # SKILL.md:" in text
    assert ssb.run(skill, "go.py").ok().text == "went\n"


HOSTILE = "\n      - /etc/shadow  # \x1b[2K\u202e\udcff"


def test_records_that_lie(user):
    """A record has file names and host names that a skill chose, and another record is forged.
    Names are shown escaped, so they cannot look like lines of our output. The forged record is
    refused."""
    skill, data = world(user)
    events = [("file_blocked", maker.attempt("open", "denied", f"{data}/x{HOSTILE}", True,
                                             mode="read", reason="outside_plan")),
              ("network_egress_blocked", maker.attempt(
                  "resolve", "denied", None, True, "dns", name=f"evil{HOSTILE}", port=53,
                  protocol="dns", reason="not_declared"))]
    bodies = [maker.ascii_body(0, "run", maker.run_members("0" * 8))]
    bodies += [maker.ascii_body(i + 1, kind, members) for i, (kind, members) in enumerate(events)]
    record = user.write(user.work / "lies.jsonl", b"".join(maker.chain(bodies)[0]))
    r = user.ssb("check", skill, "--against", record)
    assert r.code == 1 and "\x1b" not in r.text and "\u202e" not in r.text, r
    lines = r.text.splitlines()
    assert len([line for line in lines if "/etc/shadow" in line]) == 2
    assert all("x\\n" in line or "evil\\n" in line for line in lines if "/etc/shadow" in line)
    found = user.ssb("check", "--json", skill, "--against", record).json()["denied"]
    assert {n["danger"] for n in found} == {"a manifest cannot contain this name",
                                            "a manifest cannot declare this name"}
    broken = user.write(user.work / "broken.jsonl", b"".join(maker.chain(bodies)[0]) + b"{}\n")
    r = user.ssb("check", skill, "--against", broken)
    assert r.code == 125 and "line 4 is not a record" in r.errors, r
