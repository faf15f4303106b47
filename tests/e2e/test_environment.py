"""The skill's environment has only the declared variables, also if it is read through /proc."""
import pytest

import records
from harness import SECRET

SHOW = """
import json, os
found = {}
for place in ('/proc/self/environ', '/proc/1/environ', f'/proc/{os.getppid()}/environ'):
    try:
        found[place] = open(place, 'rb').read().decode()
    except OSError as e:
        found[place] = ''
print(json.dumps({'env': dict(os.environ), 'proc': found, 'pid': os.getpid()}))
"""
PLANTED = {"AWS_SECRET_ACCESS_KEY": f"{SECRET}-env", "GITHUB_TOKEN": f"{SECRET}-token",
           "MY_KEY": "declared-value"}
OWNERS = [("GITHUB_TOKEN", "a key to GitHub"), ("AWS_BEARER_TOKEN_BEDROCK", "a key or"),
          ("GITHUB_APP_PRIVATE_KEY", "a key or"), ("DB_PASSWORD", "a key or"),
          ("REDIS_URL", "a key to a database")]
ALWAYS = {"HOME", "TMPDIR", "PATH", "LANG"}


def test_only_declared_names(ssb):
    seen = ssb.probe(SHOW, env=PLANTED, flags=["--env", "MY_KEY"])
    assert seen["env"]["MY_KEY"] == "declared-value"
    assert set(seen["env"]) - ALWAYS - {"MY_KEY", "PWD", "LC_CTYPE"} == set()
    assert SECRET not in str(seen)
    control = ssb.bare_probe(SHOW, env=PLANTED)
    assert set(PLANTED) <= set(control["env"])
    assert SECRET in control["proc"]["/proc/self/environ"]


def test_manifest_declares(ssb):
    assert "MY_KEY" not in ssb.probe(SHOW, env=PLANTED)["env"]
    seen = ssb.probe(SHOW, env=PLANTED, allow=["MY_KEY", "NOT_SET"])
    assert seen["env"]["MY_KEY"] == "declared-value"
    assert "NOT_SET" not in seen["env"]
    assert SECRET not in str(seen)


def test_what_is_granted_is_not_absent(ssb):
    """The caller has not set LANG, TMPDIR and NOT_SET. The sandbox sets the first two itself, so
    only NOT_SET is recorded as absent."""
    d = ssb.skill(SHOW, allow=["LANG", "NOT_SET", "TMPDIR", "MY_KEY"])
    without = ["env", "-u", "LANG", ssb.binary]
    r = ssb.as_caller([*without, "run", d], env=PLANTED).ok()
    assert {"LANG", "TMPDIR", "MY_KEY"} <= set(r.json()["env"])
    data, = [x["data"] for x in records.last(ssb) if x["kind"] == "env_var_access"]
    assert data["absent"] == ["NOT_SET"]
    assert {"LANG", "TMPDIR", "MY_KEY"} <= set(data["granted"])
    told = ssb.as_caller([*without, "inspect", d], env=PLANTED).ok().text
    assert "NOT_SET is declared, but not set" in told
    assert "LANG is declared" not in told and "TMPDIR is declared" not in told


def test_names_that_fill_a_line(ssb):
    """More names are declared than fit into one line of the record: the event has some of them, and
    the number of those left out."""
    names = [f"V{i:03d}_{'x' * 300}" for i in range(250)]
    ssb.run(ssb.skill("pass", allow=names)).ok()
    lines = records.last(ssb)
    data, = [x["data"] for x in lines if x["kind"] == "env_var_access"]
    assert set(data["absent"]) < set(names) and len(data["absent"]) > 100
    assert len(data["absent"]) + data["left_out"] == len(names)
    assert "HOME" in data["granted"] and lines[-2]["counters"]["dropped"] == 0


@pytest.mark.parametrize("name, says", OWNERS)
def test_no_manifest_gives_a_credential(ssb, name, says):
    """A manifest asks for a credential: without an approval, the skill runs without it, and a
    message says so. A flag or the policy file of the owner grants it."""
    planted = PLANTED | {name: f"{SECRET}-{name}"}
    d = ssb.skill(SHOW, allow=["MY_KEY", name], egress=[{"domain": "any.example"}])

    def seen(*flags):
        r = ssb.run(*flags, d, env=planted).ok()
        return r.json()["env"], f"withheld: environment {name}: " in r.errors
    env, said = seen()
    assert env["MY_KEY"] == "declared-value" and name not in env and said
    env, said = seen("--env", name)
    assert env[name] == planted[name] and not said
    policy = ssb.write(ssb.home / ".config/skillsandbox/policy.yaml",
                       f"grants: {{env: [{name}]}}\n", 0o600)
    assert seen()[0][name] == planted[name]
    policy.unlink()
    r = ssb.ssb("approve", "--yes", d, env=planted).ok()
    assert f"! see the variable {name} - {says}" in r.errors and "risk: high" in r.errors
    env, said = seen()
    assert env[name] == planted[name] and not said
    ssb.ssb("approve", "--revoke", d).ok()
    assert name not in seen()[0]


def test_value_given_by_owner(ssb):
    seen = ssb.probe(SHOW, env=PLANTED, flags=["--env", "MY_KEY=owner", "--env", "OTHER=a=b"])
    assert seen["env"]["MY_KEY"] == "owner"
    assert seen["env"]["OTHER"] == "a=b"


def test_no_process_in_sight_has_the_secret(ssb):
    code = """
    import glob, json
    hits, looked = [], 0
    for p in glob.glob('/proc/[0-9]*'):
        for name in ('environ', 'cmdline', 'mem', 'maps', 'auxv'):
            try:
                data = open(f'{p}/{name}', 'rb').read(1 << 20)
            except OSError:
                continue
            looked += 1
            if b'decoy-secret' in data and name == 'environ':
                hits.append(p)
    print(json.dumps({'hits': hits, 'looked': looked}))
    """
    seen = ssb.probe(code, env=PLANTED)
    assert seen["looked"] > 0
    assert seen["hits"] == []
    assert ssb.bare_probe(code, env=PLANTED)["hits"]


def test_proc_1_is_opaque(ssb):
    code = """
    import json, os
    seen = {}
    for name in ('environ', 'mem', 'maps', 'fd', 'root', 'cwd', 'exe'):
        try:
            path = f'/proc/1/{name}'
            if name == 'fd':
                os.listdir(path)
            elif name in ('root', 'cwd', 'exe'):
                os.readlink(path)
            else:
                open(path, 'rb').read(16)
            seen[name] = 'readable'
        except OSError as e:
            seen[name] = 'denied'
    print(json.dumps({'seen': seen, 'pid': os.getpid()}))
    """
    seen = ssb.probe(code)
    assert seen["pid"] != 1, "the skill must not be init"
    assert set(seen["seen"].values()) == {"denied"}, seen
    # The control: the skill can read the same files of its own process.
    own = ssb.probe(code.replace("/proc/1/", "/proc/self/").replace("'mem', ", ""))
    assert set(own["seen"].values()) == {"readable"}, own


def test_missing_declared_name_is_in_the_plan(ssb):
    r = ssb.run("--dry-run", ssb.skill("", allow=["NOT_SET_ANYWHERE"])).ok()
    assert "NOT_SET_ANYWHERE" in r.text + r.errors
    r = ssb.run("--env", "NOT_SET_ANYWHERE", "--", "true")
    assert r.code == 2 and "NOT_SET_ANYWHERE=VALUE" in r.errors


def test_path_is_a_safe_default(ssb):
    seen = ssb.probe(SHOW, env={"PATH": f"{ssb.home}/bin:/usr/bin:/bin"})
    assert str(ssb.home) not in seen["env"]["PATH"]
    assert "/usr/bin" in seen["env"]["PATH"]
