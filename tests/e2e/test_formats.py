"""Skills in all known formats, with and without the usual mistakes: each runs confined, does its
work, and gets only the variables that the owner grants."""
import json
import re
import shutil

import mcp_client
from harness import REPO, SECRET, without_userns
from mcp_client import failure, structured

FORMATS = REPO / "tests/skills/formats"


def place(ssb, *names, into="formats"):
    """Copies skills of tests/formats for this caller; returns the directory that contains them."""
    top = ssb.mkdir(into)
    for name in names or [d.name for d in FORMATS.iterdir()]:
        shutil.copytree(FORMATS / name, top / name)
        for path in [top / name, *(top / name).rglob("*")]:
            ssb.own(path)
    return top


# (skill, its arguments, its input, its output, its format)
JOBS = [
    ("word-count", ["scripts/count.py"], b"one two\nthree\n", {"words": 3, "lines": 2}, "SKILL.md"),
    ("csv-report", ["scripts/sum.sh", "2"], b"a,1\nb,41\n", "42", "SKILL.md"),
    ("release-notes", ["./scripts/notes.pl"], b"cli: faster\nmcp: new\ncli: smaller\n",
     "cli: faster; smaller\nmcp: new", "SKILL.md"),
    ("weather-report", ["weather.mjs", "Oslo"], b"", {"celsius": -3, "key": None}, "SKILL.md"),
    ("notes-sync", ["sync.py"], b"", {}, "SKILL.md"),
    ("unquoted-colon", ["hello", "you"], b"", "hello you", "SKILL.md"),
    ("tabs-inside", ["hello.bash", "you"], b"", "hello you", "SKILL.md"),
    ("saved-on-windows", ["scripts/hello.py", "you"], b"", "hello you", "SKILL.md"),
    ("no-frontmatter", ["bin/hello", "you"], b"", "hello you", "SKILL.md"),
    ("never-ends", ["hello.cjs", "you"], b"", "hello you", "SKILL.md"),
    ("greeter", ['{"who": "Curie"}'], b"",
     {"ok": True, "result": {"greeting": "Good day, Professor Curie", "token": None}}, "skillware"),
    ("greeter", [], b'{"who": "Ada"}',
     {"ok": True, "result": {"greeting": "Good day, Ada", "token": None}}, "skillware"),
]
PLANTED = {"WEATHER_KEY": f"{SECRET}-w", "NOTES_TOKEN": f"{SECRET}-n", "NOTES_USER": "me",
           "GREETING": f"-{SECRET}", "GREETER_TOKEN": f"{SECRET}-g", "HOME_KEY": SECRET}


def test_every_format_does_its_job(ssb):
    top = place(ssb)
    for name, args, stdin, expected, kind in JOBS:
        r = ssb.run(top / name, *args, stdin=stdin, env=PLANTED).ok()
        assert (r.text.strip() if isinstance(expected, str) else r.json()) == expected, r
        record = ssb.last_record()
        assert record[0]["plan"]["format"] == kind
        assert record[0]["plan"]["skill_dir"] == str(top / name)
        assert record[0]["plan"]["granted"]["network"] == []
        assert [g["target"] for g in record[0]["plan"]["granted"]["files"]] == ["/skill"]
        assert [e for e in record if e.get("violation")] == [], name
    assert {name for name, *_ in JOBS} | {"claims"} == {d.name for d in FORMATS.iterdir()}


def test_environment_is_withheld_until_it_is_granted(ssb):
    top = place(ssb, "notes-sync", "greeter")
    plan = ssb.ssb("inspect", "--json", top / "notes-sync", env=PLANTED).ok().json()
    assert [w["what"] for w in plan["withheld"]] == \
        [f"environment NOTES_{name}" for name in ("TOKEN", "HOST", "USER")]
    assert plan["denied"] == [] and plan["argv"] == [] and plan["env_missing"] == ["NOTES_HOST"]
    assert all("SKILL.md:4:" in w["where"] and "--env" in w["remedy"] for w in plan["withheld"])
    seen = ssb.run("--env", "NOTES_TOKEN", top / "notes-sync", "sync.py", env=PLANTED).ok().json()
    assert seen == {"NOTES_TOKEN": PLANTED["NOTES_TOKEN"]}
    control = ssb.bare(["/usr/bin/python3", top / "notes-sync/sync.py"], env=PLANTED).json()
    assert control == {k: v for k, v in PLANTED.items() if k.startswith("NOTES_")}

    ware = ssb.run("--env", "GREETER_TOKEN", top / "greeter", '{"who": "x"}', env=PLANTED).ok()
    assert ware.json()["result"]["token"] == PLANTED["GREETER_TOKEN"]
    assert "about to greet" in ware.errors
    # The owner's policy file can grant variables as the flag does, and deny them.
    ssb.write(ssb.home / ".config/skillsandbox/policy.yaml",
              "grants: {env: [NOTES_USER]}\ndeny: {env: [NOTES_TOKEN]}\n", 0o600)
    assert ssb.run(top / "notes-sync", "sync.py", env=PLANTED).ok().json() == {"NOTES_USER": "me"}


def test_a_remedy_helps(user):
    """An approval grants no variable that the policy file denies or that controls the loader
    (LD_PRELOAD), and no message says that it would."""
    d = user.mkdir("asks")
    user.write(d / "SKILL.md", "---\nmetadata: {openclaw: {envVars: [A, B, LD_PRELOAD]}}\n---\n")
    user.write(d / "s.py", "import os; print(*(n for n in ('A', 'B') if n in os.environ))")
    user.write(user.home / ".config/skillsandbox/policy.yaml", "deny: {env: [B]}\n", 0o600)
    env = {"A": "1", "B": "2"}
    withheld = user.ssb("inspect", "--json", d, env=env).ok().json()["withheld"]
    remedies = {w["what"].split()[1]: w["remedy"] for w in withheld}
    assert remedies == {"A": "pass it with --env A, or approve the skill: skillsandbox approve DIR",
                        "B": "pass it with --env B; an approval cannot pass it",
                        "LD_PRELOAD": "pass it with --env LD_PRELOAD; an approval cannot pass it"}
    assert user.run("--env", "B", d, "s.py", env=env).ok().text == "B\n"
    user.ssb("approve", "--yes", d, env=env).ok()
    assert user.run(d, "s.py", env=env).ok().text == "A\n"


def test_a_skillware_call_that_fails_ends_with_1(user):
    d = user.mkdir("ware")
    user.write(d / "manifest.yaml", "name: ware\n")
    user.write(d / "skill.py", """\
        class Ware:
            def execute(self, params):
                return eval(params["returns"])
        """)

    def call(text):
        r = user.run(d, text)
        return r.code, r.json().get("error", {}).get("message", "")

    assert call('{"returns": "[1]"}') == (0, "")
    assert call('{"returns": "1/0"}') == (1, "division by zero")
    for returned in ("{1}", "float('nan')", "object"):
        code, said = call(json.dumps({"returns": returned}))
        assert code == 1 and said.startswith("the result is not JSON"), (returned, said)
    for text in ("Oslo", "{", "[" * 100000):
        code, said = call(text)
        assert code == 1 and said.startswith("the parameters are not JSON"), (text[:9], said)
    assert call("[1]") == (1, "the parameters are not an object")


def test_frontmatter_that_wants_all_gets_nothing(ssb):
    top = place(ssb, "claims")
    env = {"AWS_SECRET_ACCESS_KEY": SECRET, "GITHUB_TOKEN": SECRET, "A": SECRET}
    r = ssb.run(top / "claims", "steal.py", env=env).ok()
    seen = r.json()
    assert SECRET not in r.text and seen["env"] == {}, r
    assert seen["write"] == "Read-only file system"
    plan = ssb.last_record()[0]["plan"]
    assert plan["granted"]["network"] == []
    assert plan["profile"] == "default" and plan["limits"]["memory_mb"] == 256
    assert plan["argv"] == ["python3", "/skill/steal.py"] and plan["name"] == "claims"
    tried = [e for e in ssb.last_record() if e.get("violation")]
    assert any(".ssh/id_ed25519" in json.dumps(e) for e in tried), tried
    control = ssb.bare(["/usr/bin/python3", top / "claims/steal.py"], env=env).json()
    assert control["env"]["GITHUB_TOKEN"] == SECRET and control["write"] == "done"
    assert SECRET in control["~/.ssh/id_ed25519"]


def test_a_script_has_to_be_named_and_to_be_the_skills(ssb):
    top = place(ssb, "unquoted-colon", "word-count")
    (top / "word-count/scripts/out.py").symlink_to("/usr/lib/python3/dist-packages/x.py")
    for args, code, said in (([], 2, "the skill has: scripts/count.py"),
                             (["scripts/out.py"], 125, "leaves the skill"),
                             (["../unquoted-colon/hello"], 2, '".."'),
                             (["reference.md"], 2, "does not say what runs it"),
                             (["count.py"], 125, "the skill has: scripts/count.py")):
        r = ssb.run(top / "word-count", *args)
        assert r.code == code and said in r.errors and r.out == b"", r
    valid = ssb.ssb("validate", top / "unquoted-colon").ok()
    assert "SKILL.md:3:22: warning: not valid YAML" in valid.errors, valid


def test_validate_takes_the_file_itself(user):
    """An editor or a commit hook gives `validate` the path of one file: `validate` judges this
    file, whatever other files are in the directory."""
    top = place(user, "unquoted-colon", "greeter", "word-count")
    user.write(top / "unquoted-colon/skillsandbox.yaml", "skill: [")
    colon = user.ssb("validate", top / "unquoted-colon/SKILL.md").ok()
    assert "SKILL.md:3:22: warning: not valid YAML" in colon.errors, colon
    assert "valid" in user.ssb("validate", "SKILL.md", cwd=top / "word-count").ok().text
    assert user.ssb("validate", top / "greeter/manifest.yaml").ok().errors == ""
    (top / "greeter/skill.py").unlink()  # makes manifest.yaml an ordinary, invalid manifest
    r = user.ssb("validate", top / "greeter/manifest.yaml")
    assert r.code == 1 and "entrypoint is missing" in r.errors, r
    out = user.mkdir("out")
    (out / "SKILL.md").symlink_to(top / "word-count/SKILL.md")
    r = user.ssb("validate", out / "SKILL.md")
    assert r.code == 1 and "leaves the skill's directory" in r.errors, r


def test_a_sidecar_that_cannot_be_seen(user):
    """The directory of the sidecars cannot be read: the message says "Permission denied", and says
    neither that the sidecar exists nor that it does not."""
    config = user.mkdir("locked")
    derived = place(user, "notes-sync") / "notes-sync"
    own = user.skill("print('ran')")
    env = {"XDG_CONFIG_HOME": str(config)}
    assert user.ssb("validate", own, env=env).ok().errors == "", "control"
    config.chmod(0)
    r = user.ssb("validate", own, env=env).ok()
    assert "Permission denied" in r.errors and "what you wrote" not in r.errors, r
    r = user.ssb("validate", derived, env=env)
    assert r.code == 1 and "Permission denied" in r.errors, r
    assert "No such file" not in r.errors, r


def test_the_owners_sidecar(ssb):
    """The owner's sidecar grants its permissions to the directory that it names, or to a directory
    that was approved together with the sidecar. Another directory of the same name gets nothing."""
    top = place(ssb, "notes-sync")
    stranger = ssb.mkdir("downloads") / "notes-sync"
    shutil.copytree(top / "notes-sync", stranger)
    side = ssb.home / ".config/skillsandbox/skills/notes-sync.yaml"

    def write(more):
        ssb.write(side, f"""\
            skill: {{name: notes, version: "1"{more}}}
            permissions: {{env_vars: {{allow: [NOTES_USER]}}}}
            entrypoint: {{command: python3, args: [sync.py]}}
            """, 0o600)

    write("")
    r = ssb.run(stranger, env=PLANTED).ok()
    assert r.json() == {} and "withheld: environment NOTES_USER" in r.errors, r
    line = f"'directory: {stranger}' under 'skill:'"
    for r in (r, ssb.ssb("inspect", stranger), ssb.ssb("lint", stranger)):
        assert line in r.ok().text + r.errors, r  # the message says why nothing is granted
    ssb.ssb("approve", "--yes", top / "notes-sync", env=PLANTED).ok()
    assert ssb.run(top / "notes-sync", env=PLANTED).ok().json() == {"NOTES_USER": "me"}
    ssb.ssb("approvals", "--revoke", top / "notes-sync").ok()
    write(f", directory: {top}/notes-sync")
    assert ssb.run(top / "notes-sync", env=PLANTED).ok().json() == {"NOTES_USER": "me"}
    assert ssb.last_record()[0]["plan"]["format"] == "sidecar"
    assert ssb.ssb("lint", top / "notes-sync").ok().errors == ""
    own = ssb.write(top / "notes-sync/skillsandbox.yaml", """\
        skill: {name: hers, version: "1"}
        permissions: {}
        entrypoint: {command: python3, args: [sync.py]}
        """)
    for r in (ssb.run(top / "notes-sync", env=PLANTED), ssb.ssb("inspect", top / "notes-sync")):
        assert "is used instead of your" in r.ok().text + r.errors, r  # the sidecar is not used
    own_of_stranger = ssb.write(stranger / "skillsandbox.yaml", own.read_text())
    # The sidecar does not name this directory, so there is no message.
    assert "is used instead of your" not in ssb.run(stranger, env=PLANTED).ok().errors
    own.unlink()
    own_of_stranger.unlink()
    assert ssb.ssb("inspect", "--json", stranger).json()["format"] != "sidecar"
    side.chmod(0o620)
    r = ssb.run(top / "notes-sync", env=PLANTED)
    assert r.code == 125 and "others can write the sidecar" in r.errors, r


def test_without_user_namespaces(user):
    """Without user namespaces there is neither /skill nor a mount for the product's own files:
    skills still run, and nothing is written into their directories."""
    top = place(user, "saved-on-windows", "greeter")
    for name, args, said in (("saved-on-windows", ["scripts/hello.py", "/skill"], "hello "),
                             ("greeter", ['{"who": "Ada"}'], "Good day, Ada")):
        r = without_userns(user, "run", "--best-effort", "userns", top / name, *args).ok()
        assert said in r.text, r
    assert list(top.rglob("__pycache__")) == []


def test_the_manuals_example(user):
    page = (REPO / "man/skillsandbox-manifest.5").read_text()
    section = page.split("SKILLS WITHOUT A MANIFEST\n")[1].split("\n.Sh ")[0]
    text, said = re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed", section, re.M | re.S)
    user.write(user.work / "notes/SKILL.md", text)
    r = user.ssb("inspect", "notes", env={"NOTES_TOKEN": "x"}).ok()
    for line in said.splitlines():
        assert line in r.text, f"{line}\n{r.text}"


def test_served(user):
    top = place(user, "word-count", "greeter", "saved-on-windows", into="skills")
    user.write(top / "declared/skillsandbox.yaml",
               "skill: {name: d, version: '1'}\npermissions: {}\nentrypoint: {command: 'true'}\n")
    with mcp_client.serve(user, [top]) as client:
        listed = {s["name"]: s.get("format") for s in
                  structured(client.tool("list_skills"))["skills"]}
        assert listed == {"word-count": "SKILL.md", "greeter": "skillware",
                          "saved-on-windows": "SKILL.md", "declared": "skillsandbox.yaml"}
        ran = structured(client.tool("run_skill", skill_dir="saved-on-windows",
                                     args=["scripts/hello.py", "you"]))
        assert ran["stdout"] == "hello you\n"
        ran = structured(client.tool("run_skill", skill_dir=str(top / "greeter/manifest.yaml"),
                                     args=['{"who": "Curie"}']))
        assert json.loads(ran["stdout"])["result"]["greeting"] == "Good day, Professor Curie"
        asked = failure(client.tool("run_skill", skill_dir="word-count"))
        assert "scripts/count.py" in str(asked)
        shown = structured(client.tool("inspect_skill", skill_dir="word-count"))
        assert shown["plan"]["format"] == "SKILL.md" and shown["runs"]
