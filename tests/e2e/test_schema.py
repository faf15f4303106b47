"""The schema for editors and the parser agree about every file of a corpus.

A schema cannot express the Public Suffix List, duplicate keys and other rules of YAML itself. If a
file of the corpus begins with the line "# schema: accepts", the schema accepts it and the parser
refuses it.
"""
import json
import os
import pathlib
import re
import subprocess

import jsonschema
import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.path.abspath(os.environ.get("SKILLSANDBOX", ROOT / "build" / "skillsandbox"))
SCHEMA = json.loads((ROOT / "schema" / "skillsandbox.schema.json").read_text())
CORPUS = ROOT / "tests" / "manifests"
GOOD = sorted((CORPUS / "good").glob("*.yaml"))
BAD = sorted((CORPUS / "bad").glob("*.yaml"))
BEYOND_SCHEMA = "# schema: accepts"


class Loader(yaml.SafeLoader):
    """Loads a file as editors do: without dates, otherwise with the usual types."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, rx) for tag, rx in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def schema_accepts(path):
    try:
        document = yaml.load(path.read_bytes(), Loader)
    except yaml.YAMLError:
        return False
    return jsonschema.Draft7Validator(SCHEMA).is_valid(document)


def parser(path):
    return subprocess.run([PROGRAM, "validate", path.name], cwd=path.parent, text=True,
                          capture_output=True, timeout=30, stdin=subprocess.DEVNULL)


def stem(path):
    return path.stem


def test_schema_is_a_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_corpus_is_there():
    assert len(GOOD) >= 15
    assert len(BAD) >= 60


@pytest.mark.parametrize("path", GOOD, ids=stem)
def test_good(path):
    result = parser(path)
    assert result.returncode == 0, result.stderr
    assert schema_accepts(path)


@pytest.mark.parametrize("path", BAD, ids=stem)
def test_bad(path):
    result = parser(path)
    assert result.returncode == 1, "the parser accepts it"
    assert re.search(rf"{re.escape(path.name)}:\d+:\d+: ", result.stderr), result.stderr
    beyond = path.read_bytes().startswith(BEYOND_SCHEMA.encode())
    assert schema_accepts(path) == beyond


def limits(node, found):
    """The default and the range of every number in the schema, by key."""
    for key, value in node.get("properties", {}).items():
        if value.get("type") == "integer":
            found[key] = (value["default"], value["minimum"], value["maximum"])
        limits(value, found)
    return found


NUMBERS = limits(SCHEMA, {})
OF_THE_NETWORK = limits(SCHEMA["properties"]["permissions"], {})


@pytest.mark.parametrize("key", NUMBERS)
def test_ranges_are_those_of_the_parser(key, tmp_path):
    _, least, most = NUMBERS[key]
    outcome = {}
    for value in (least - 1, least, most, most + 1):
        path = tmp_path / f"{value}.yaml"
        network, resources = f"{key}: {value}", ""
        if key not in OF_THE_NETWORK:
            network, resources = resources, network
        path.write_text("skill: {name: a, version: 1}\nentrypoint: {command: a}\n"
                        f"permissions: {{network: {{{network}}}}}\n"
                        f"resources: {{{resources}}}\n")
        outcome[value] = parser(path).returncode
    assert list(outcome.values()) == [1, 0, 0, 1], outcome


def test_every_number_is_in_the_schema():
    assert len(NUMBERS) == 11
    assert len(OF_THE_NETWORK) == 4


def man_examples():
    """The literal blocks of EXAMPLES in skillsandbox-manifest(5), in order."""
    page = (ROOT / "man" / "skillsandbox-manifest.5").read_text()
    return re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", page.split("\n.Sh EXAMPLES\n")[1],
                      re.S | re.M)


def test_examples_of_the_manual(tmp_path):
    small, weather, rows, wrong, said = man_examples()
    path = tmp_path / "skillsandbox.yaml"
    for text in (small, weather, rows):
        path.write_text(text)
        assert parser(path).returncode == 0, parser(path).stderr
        assert schema_accepts(path)
    path.write_text(wrong)
    result = parser(path)
    assert result.returncode == 1
    assert result.stderr.split() == said.split()
