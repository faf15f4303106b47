"""The editors' schema of session policies and the parser agree.

Both accept the files in tests/sessions/good. Each line of tests/sessions/bad.txt is a policy that
the parser refuses. The schema refuses it, too, unless the line begins with "!".
"""
import json
import re
import subprocess

import jsonschema
import pytest
import yaml

import harness

CHECK = harness.BUILD / "tests/unit/session_policy_check"
SCHEMA = json.loads((harness.REPO / "schema/session.schema.json").read_text())
CORPUS = harness.REPO / "tests/sessions"
GOOD = sorted((CORPUS / "good").glob("*.yaml")) + [harness.REPO / "examples/session/session.yaml"]
BAD = [line for line in (CORPUS / "bad.txt").read_text().splitlines()
       if line and not line.startswith("#")]


class Loader(yaml.SafeLoader):
    """Loads a file as editors do: without dates, and 1e9 is a number."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, rx) for tag, rx in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:float",
                             re.compile(r"^[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
                             list("0123456789"))


def schema_accepts(text):
    return jsonschema.Draft7Validator(SCHEMA).is_valid(yaml.load(text, Loader))


def parser(path):
    return subprocess.run([CHECK, path.name], cwd=path.parent, text=True, capture_output=True,
                          timeout=30, stdin=subprocess.DEVNULL)


def said(text, tmp_path):
    """Returns what the parser prints about a text; "" if it accepts the text."""
    path = tmp_path / "session.yaml"
    path.write_text(text)
    result = parser(path)
    assert (result.returncode == 0) == (result.stdout == ""), result
    return result.stdout


def test_schema_is_a_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_corpus_is_there():
    assert len(GOOD) >= 7
    assert len(BAD) >= 100


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_good(path):
    result = parser(path)
    assert result.returncode == 0, result.stdout
    assert schema_accepts(path.read_text())


@pytest.mark.parametrize("line", BAD)
def test_bad(line, tmp_path):
    text = line.lstrip("!") + "\n"
    finding = said(text, tmp_path)
    assert re.match(r"session\.yaml:\d+:\d+: ", finding), "the parser accepts it"
    assert schema_accepts(text) == line.startswith("!")


def at(path):
    node = SCHEMA
    for key in path.split("."):
        node = node["properties"][key]
    return node


def resolved(node):
    for part in node.get("allOf", [{}]):
        if "$ref" in part:
            return SCHEMA["definitions"][part["$ref"].rsplit("/", 1)[1]]
    return node


RANGES = {
    "budget.max_cost_per_session": "0.000001", "budget.max_cost_per_action": "0.000001",
    "budget.alert_at": "0.000001", "budget.reservation_timeout": "1",
    "session.max_duration": "1", "session.max_actions": "1", "kill_switch.grace_period": "1",
    "limits.runs": "1", "limits.cpu_seconds": "1", "limits.wall_seconds": "1",
    "limits.bytes_out": "1", "limits.bytes_in": "1", "limits.connections": "1",
    "limits.domains": "1",
}


@pytest.mark.parametrize("key", RANGES)
def test_ranges_are_those_of_the_parser(key, tmp_path):
    """The parser accepts both ends of the schema's range, and refuses one step past each."""
    import decimal
    node = resolved(at(key))
    while "anyOf" in node:
        node = node["anyOf"][0]
    step = decimal.Decimal(RANGES[key])
    section, name = key.split(".")
    outcome = []
    for value in (node["minimum"] - step, node["minimum"], node["maximum"],
                  node["maximum"] + step):
        outcome.append(said(f"{section}: {{{name}: {value:f}}}\n"
                            if isinstance(value, decimal.Decimal)
                            else f"{section}: {{{name}: {value}}}\n", tmp_path) == "")
    assert outcome == [False, True, True, False], outcome


def test_every_key_is_in_the_schema():
    """The tables of the parser and the schema have the same keys."""
    source = "".join((harness.REPO / "src/session" / name).read_text()
                     for name in ("policy_fields.c", "policy_items.c"))
    keys = set(re.findall(r'^\s*(?:METER\(|\{ )"(\w+)",', source, re.M))

    def walk(node, found):
        if isinstance(node, dict):
            found.update(node.get("properties", {}))
            for value in node.values():
                walk(value, found)
        elif isinstance(node, list):
            for value in node:
                walk(value, found)
        return found

    assert len(keys) > 35
    assert keys == walk(SCHEMA, set())


def test_every_violation_that_is_counted(tmp_path):
    names = at("limits.violations")["propertyNames"]["enum"]
    classes = json.loads((harness.REPO / "schema/trace.schema.json").read_text())
    text = json.dumps(classes)
    assert len(names) > 25
    for name in names:
        assert said(f"limits: {{violations: {{{name}: 5}}}}\n", tmp_path) == ""
        assert name == "total" or f'"{name}"' in text, name
    events = (harness.REPO / "src/trace/event.c").read_text().partition("[EV_RUN]")[0]
    kinds = re.findall(r'\[EV_\w+\] = "(\w+)"', events)
    assert len(kinds) > 15 and set(kinds) <= set(names)


def test_examples_of_the_manual(tmp_path):
    page = (harness.REPO / "man/skillsandbox-session.5").read_text()
    blocks = [b.replace("\\&", "").replace("\\e", "\\") for b in
              re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", page, re.S | re.M)]
    policies = [b for b in blocks if not b.startswith(("models:", "session.yaml:", "$ "))]
    wrong = next(i for i, b in enumerate(blocks) if b.startswith("session.yaml:"))
    assert len(policies) >= 4
    for text in policies:
        good = text != blocks[wrong - 1]
        assert (said(text, tmp_path) == "") == good, said(text, tmp_path)
        assert schema_accepts(text) == good
    assert said(blocks[wrong - 1], tmp_path).split() == blocks[wrong].split()


def test_defaults_of_the_manual_are_those_of_the_schema():
    page = subprocess.run(["mandoc", "-T", "utf8", harness.REPO / "man/skillsandbox-session.5"],
                          capture_output=True, text=True, timeout=30, check=True).stdout
    page = re.sub(".\b", "", page)
    for key, value in (("max_cost_per_session", "5.00"), ("max_cost_per_action", "0.50"),
                       ("alert_at", "0.80"), ("reservation_timeout", "10m"),
                       ("max_duration", "30m"), ("max_actions", "100"), ("grace_period", "5s")):
        entry = re.search(rf"^ +{key}\b(?:.*\n)+?.*Default: *\n? *(\S+?)\.?\s", page, re.M)
        assert entry and entry.group(1) == value, (key, entry and entry.group(0))
