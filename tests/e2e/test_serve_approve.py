"""Approvals through a client of `skillsandbox serve`: "always" is valid only for the skill's
present files, and an owner's answer is valid once, for its own question."""
import json
import os
import shlex
import socket

import pytest

import mcp_client
from harness import SECRET, manifest
from mcp_client import ERAS, LEGACY, MODERN, Refused, failure, structured
from mcp_world import META, Lines
from serve_world import served, skill

ASKS = {"elicitation": {}}
CODE = "import sys; print(sys.argv[1:], open('/HOME/.ssh/id_ed25519').read())"


@pytest.fixture
def keys(ssb):
    """A skill that asks for the owner's keys."""
    return skill(ssb, "keys", CODE.replace("/HOME", str(ssb.home)), read=["~/.ssh"])


def accept(decision):
    return {"action": "accept", "content": {"decision": decision}}


def answered(client, decision, **arguments):
    """Runs a skill and answers each question with `decision`. Returns the result, and the messages
    of the questions."""
    messages = []
    if client.era == MODERN:
        result = client.tool("run_skill", **arguments)
        if result["resultType"] == "input_required":
            (key, question), = result["inputRequests"].items()
            messages.append(question["params"]["message"])
            result = retry(client, result["requestState"], {key: accept(decision)}, **arguments)
        return result, messages
    number = client.send_tool("run_skill", **arguments)
    client.until(lambda: client.asked or number in client.answers)
    for question in client.asked:
        messages.append(question["params"]["message"])
        client.answer_server(question, accept(decision))
    client.asked.clear()
    return client.answer(number), messages


def retry(client, state, answers, tool="run_skill", **arguments):
    return client.call("tools/call", {"name": tool, "arguments": arguments,
                                      "inputResponses": answers, "requestState": state})


def rows(ssb):
    return [(r["skill"], g["option"], g["value"], r["by"]) for r in
            json.loads(ssb.ssb("approvals", "--json").ok().text) for g in r["grants"]]


@pytest.mark.parametrize("era", ERAS)
def test_always_is_kept_while_the_manifest_is(ssb, keys, era):
    kept = [(str(keys), "read", "~/.ssh", "MCP client test")]
    with served(ssb, era=era) as client:  # the control: nothing is granted yet
        assert failure(client.tool("run_skill", skill_dir="keys"))["code"] == "approval_required"
    assert rows(ssb) == []
    with served(ssb, era=era, capabilities=ASKS) as client:
        result, asked = answered(client, "always", skill_dir="keys")
        assert SECRET in structured(result)["stdout"]
        assert len(asked) == 1 and "read ~/.ssh" in asked[0]
        assert rows(ssb) == kept
        result, asked = answered(client, "deny", skill_dir="keys")
        assert SECRET in structured(result)["stdout"] and asked == []
    assert SECRET in ssb.run(keys).ok().text  # `run` uses the approval, too
    other = next(e for e in ERAS if e != era)
    with served(ssb, era=other) as client:  # a new server; its client cannot show a question
        assert SECRET in structured(client.tool("run_skill", skill_dir="keys"))["stdout"]
        with open(keys / "skillsandbox.yaml", "a", encoding="utf-8") as f:
            f.write("# one more byte\n")
        assert failure(client.tool("run_skill", skill_dir="keys"))["code"] == "approval_required"
    with served(ssb, era=era, capabilities=ASKS) as client:
        result, asked = answered(client, "deny", skill_dir="keys")
        assert failure(result)["code"] == "approval_required" and len(asked) == 1
        assert SECRET not in json.dumps(result)
        result, asked = answered(client, "session", skill_dir="keys")
        assert SECRET in structured(result)["stdout"] and len(asked) == 1
    assert rows(ssb) == kept  # an answer for the session is not stored
    with served(ssb, era=era) as client:
        assert failure(client.tool("run_skill", skill_dir="keys"))["code"] == "approval_required"


@pytest.mark.parametrize("era", ERAS)
def test_a_skill_that_a_symlink_replaced(ssb, era):
    """The owner declined an item; then the skill is moved, and a symlink replaces it at its old
    path. By neither path does the skill get the declined item."""
    secret = ssb.write(ssb.home / "proj/key", SECRET)
    d = skill(ssb, "notes", f"print(open({str(secret)!r}).read())", read=["~/proj"])
    ssb.ssb("approve", "--yes", "--without", "read ~/proj", d).ok()
    d.rename(d.with_name("moved"))
    d.symlink_to("moved")
    with served(ssb, era=era) as client:
        for name in ("moved", str(d)):
            result = client.tool("run_skill", skill_dir=name)
            assert SECRET not in json.dumps(result)
            assert "is now a symlink to" in json.dumps(result), result
        ssb.ssb("approvals", "--revoke", d).ok()
        result = client.tool("run_skill", skill_dir=name)
        assert SECRET in structured(result)["stdout"], "the control: no approval"


def question(client, **arguments):
    """Returns (key, requestState) of the question that a modern client gets."""
    result = client.tool("run_skill", **arguments)
    assert result["resultType"] == "input_required"
    key, = result["inputRequests"]
    return key, result["requestState"]


def spoiled(state):
    """Yields invalid variants of `state`: one changed character at several places, too short, too
    long."""
    for i in {0, 1, len(state) // 3, len(state) // 2, len(state) - 2, len(state) - 1}:
        yield state[:i] + ("A" if state[i] != "A" else "B") + state[i + 1:]
    yield from (state[:-1], state[: len(state) // 2], state + "A", state * 2, "", "A" * 64)


def test_an_answer_is_good_for_what_it_was_asked(ssb, keys):
    skill(ssb, "keys2", (keys / "main.py").read_text(), read=["~/.ssh"])

    def no(state, **more):
        with pytest.raises(Refused) as e:
            retry(client, state, {key: accept("once")}, **{"skill_dir": "keys", "args": ["a"],
                                                           **more})
        assert e.value.code == -32602 and SECRET not in json.dumps(e.value.error)
    with served(ssb, era=MODERN, capabilities=ASKS) as other, \
            served(ssb, era=MODERN, capabilities=ASKS) as client:
        key, state = question(client, skill_dir="keys", args=["a"])
        for bad in spoiled(state):
            no(bad)
        no(state, args=["b"])
        no(state, args=[])
        no(state, skill_dir="keys2")
        no(state, network=False)
        no(state, tool="inspect_skill")
        no(state, tool="list_skills")
        _, theirs = question(other, skill_dir="keys", args=["a"])
        no(theirs)
        # An answer does not count if no question was asked before it: the owner is asked.
        alone = client.call("tools/call", {
            "name": "run_skill", "arguments": {"skill_dir": "keys", "args": ["a"]},
            "inputResponses": {key: accept("always")}})
        assert alone["resultType"] == "input_required"
        assert not ssb.runs()
        # The control: the right answer is still accepted, but only once.
        result = retry(client, state, {key: accept("once")}, skill_dir="keys", args=["a"])
        assert SECRET in structured(result)["stdout"] and "['a']" in result["content"][0]["text"]
        no(state)
        assert len(ssb.runs()) == 1
    assert rows(ssb) == []


def test_an_answer_is_valid_for_its_client_only(root):
    """A client answers a question that another client of the same server got: the answer is
    refused."""
    ssb = root
    skill(ssb, "keys", CODE.replace("/HOME", str(ssb.home)), read=["~/.ssh"])
    path = ssb.mkdir("run") / "mcp"
    process = mcp_client.start(ssb, [ssb.mkdir("skills")], "--socket", str(path))

    def message(number, **more):
        meta = {**META, "io.modelcontextprotocol/clientCapabilities": ASKS}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "run_skill", "arguments": {"skill_dir": "keys"}, "_meta": meta, **more}}
    try:
        assert str(path).encode() in process.stderr.readline()
        with socket.socket(socket.AF_UNIX) as a, socket.socket(socket.AF_UNIX) as b:
            a.connect(str(path))
            b.connect(str(path))
            one, two = Lines(a.fileno(), a.fileno()), Lines(b.fileno(), b.fileno())
            asked = one.ask(message(1))["result"]
            key, = asked["inputRequests"]
            again = {"requestState": asked["requestState"], "inputResponses": {key: accept("once")}}
            assert two.ask(message(1, **again))["error"]["code"] == -32602
            good = one.ask(message(2, **again))["result"]  # the control
            assert SECRET in structured(good)["stdout"]
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_always_is_for_what_was_asked(user):
    """A client cannot approve a credential: "always" approves the skill without it, and `run` says
    that it is withheld."""
    code = CODE.replace("/HOME", str(user.home)) + "; import os; print('GITHUB_TOKEN' in os.environ)"
    d = skill(user, "both", code, read=["~/.ssh"], allow=["GITHUB_TOKEN"])
    env = {"GITHUB_TOKEN": SECRET}
    with served(user, env=env, capabilities=ASKS) as client:
        ran = structured(answered(client, "always", skill_dir="both")[0])
        assert SECRET in ran["stdout"] and "False" in ran["stdout"] and len(ran["withheld"]) == 1
    r = user.run(d, env=env).ok()
    assert "False" in r.text and "withheld: environment GITHUB_TOKEN: " in r.errors
    user.ssb("approve", "--yes", d, env=env).ok()
    r = user.run(d, env=env).ok()  # the control
    assert "True" in r.text and "withheld" not in r.errors


def test_no_manifest_gives_a_credential(user):
    code = "import os; print(os.environ.get('GITHUB_TOKEN'), os.environ.get('TOWN_KEY'))"
    d = skill(user, "town", code, allow=["GITHUB_TOKEN", "TOWN_KEY"])
    env = {"GITHUB_TOKEN": SECRET, "TOWN_KEY": "own"}
    with served(user, env=env) as client:
        ran = client.tool("run_skill", skill_dir="town")
        assert structured(ran)["stdout"] == "None own\n"
        (withheld,) = structured(ran)["withheld"]
        assert withheld.startswith("environment GITHUB_TOKEN: ") and "--env" in withheld
        assert withheld in ran["content"][0]["text"]
        user.ssb("approve", "--yes", d, env=env).ok()
        ran = structured(client.tool("run_skill", skill_dir="town"))
        assert ran["stdout"] == f"{SECRET} own\n" and ran["withheld"] == []
    user.ssb("approve", "--revoke", d).ok()
    with served(user, "--env", "GITHUB_TOKEN", env=env) as client:
        ran = structured(client.tool("run_skill", skill_dir="town"))
        assert ran["stdout"] == f"{SECRET} own\n" and ran["withheld"] == []


@pytest.mark.parametrize("named", ["a policy.yaml", ""])
def test_the_command_that_approves_helps(ssb, keys, named):
    """A refusal shows a command that approves the skill. It names the server's policy file by its
    full path, so the command works in any directory."""
    flags = ["--policy", named]
    if named:
        ssb.write(ssb.work / named, "limits: {memory_mb: 99}\n", 0o600)
    with served(ssb, *flags) as client:
        command = shlex.split(failure(client.tool("run_skill", skill_dir="keys"))["command"])
        assert command == ["skillsandbox", "approve", "--policy",
                           str(ssb.work / named) if named else "", str(keys)]
        ssb.ssb("approve", "--yes", *command[2:], cwd="/").ok()
        assert SECRET in structured(client.tool("run_skill", skill_dir="keys"))["stdout"]
    with served(ssb, era=LEGACY) as client:
        ssb.ssb("approve", "--revoke", keys).ok()
        command = shlex.split(failure(client.tool("run_skill", skill_dir="keys"))["command"])
        assert command == ["skillsandbox", "approve", str(keys)]


def test_what_changed_needs_the_owners_word(ssb):
    """A skill has changed after its approval, or its approval was for one run and is used up. It
    needs a new approval, although it asks for nothing dangerous."""
    d = skill(ssb, "plain", "print('one')")
    ssb.ssb("approve", "--yes", d).ok()
    with served(ssb, era=MODERN) as mute, served(ssb, era=MODERN, capabilities=ASKS) as client:
        assert structured(mute.tool("run_skill", skill_dir="plain"))["stdout"] == "one\n"
        ssb.write(d / "main.py", "print('two')")
        refused = mute.tool("run_skill", skill_dir="plain")
        assert failure(refused)["code"] == "approval_required"
        assert "changed since it was approved" in failure(refused)["message"]
        assert "main.py" in refused["content"][0]["text"]
        result, asked = answered(client, "deny", skill_dir="plain")
        assert failure(result)["code"] == "approval_required"
        assert "changed since you approved it" in asked[0] and "main.py" in asked[0]
        result, asked = answered(client, "once", skill_dir="plain")
        assert structured(result)["stdout"] == "two\n" and len(asked) == 1
        assert failure(mute.tool("run_skill", skill_dir="plain"))["code"] == "approval_required"
        result, asked = answered(client, "always", skill_dir="plain")
        assert structured(result)["stdout"] == "two\n" and len(asked) == 1
        assert structured(mute.tool("run_skill", skill_dir="plain"))["stdout"] == "two\n"
        ssb.ssb("approve", "--yes", "--once", d).ok()
        assert structured(mute.tool("run_skill", skill_dir="plain"))["stdout"] == "two\n"
        assert "has ended" in failure(mute.tool("run_skill", skill_dir="plain"))["message"]


WIDE = {"read": ["~/.ssh"], "egress": [{"domain": "example.com"}]}


def is_whole(text):
    """True if the text lists everything that the skill could do, and has the summary ("The worst of
    it:")."""
    return "When it runs, it can:" in text and "  ! " in text and "~/.ssh" in text \
        and "example.com" in text and "The worst of it:" in text


def test_a_question_holds_what_the_skill_could_do(ssb):
    d = skill(ssb, "keys", "print('one')", **WIDE)

    def asked(client):
        _, messages = answered(client, "deny", skill_dir="keys")
        return messages[0]
    with served(ssb, era=MODERN, capabilities=ASKS) as client:
        assert is_whole(asked(client))
        ssb.ssb("approve", "--yes", d).ok()
        assert structured(client.tool("run_skill", skill_dir="keys"))["stdout"]  # the control
        ssb.write(d / "main.py", "print('two')")
        assert "changed since you approved it" in asked(client) and is_whole(asked(client))
        ssb.ssb("approve", "--yes", "--once", d).ok()
        structured(client.tool("run_skill", skill_dir="keys"))
        assert "has ended" in asked(client) and is_whole(asked(client))
        assert "too large for a copy" not in asked(client)
        with open(ssb.write(d / "big", ""), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 65 << 20)
        assert "too large for a copy" in asked(client)
    # The policy grants all that the skill asks for, but refuses unapproved skills: the question
    # still shows everything.
    ssb.ssb("approve", "--revoke", d).ok()
    ssb.write(ssb.work / "p.yaml", "consent: {unapproved: refuse}\n"
              "grants: {read: ['~/.ssh']}\n", 0o600)
    with served(ssb, "--policy", str(ssb.work / "p.yaml"), era=MODERN,
                capabilities=ASKS) as client:
        text = asked(client)
        assert "have not approved" in text and "When it runs, it can:" in text
        assert "~/.ssh" in text and "example.com" in text and "The worst of it:" in text


@pytest.mark.parametrize("decision", ["once", "session", "always"])
def test_an_answer_is_for_the_files_that_were_shown(ssb, keys, decision):
    """The skill's code changes between the question and the answer: the owner is asked again,
    although the manifest is the same."""
    with served(ssb, era=MODERN, capabilities=ASKS) as client:
        key, state = question(client, skill_dir="keys")
        good = (keys / "main.py").read_text()
        ssb.write(keys / "main.py", good + "# another")
        again = retry(client, state, {key: accept(decision)}, skill_dir="keys")
        assert again["resultType"] == "input_required", again
        assert not ssb.runs() and rows(ssb) == []
        ssb.write(keys / "main.py", good)
        key, state = question(client, skill_dir="keys")
        result = retry(client, state, {key: accept(decision)}, skill_dir="keys")
        assert SECRET in structured(result)["stdout"]  # the control
        if decision == "session":
            result, asked = answered(client, "deny", skill_dir="keys")
            assert SECRET in structured(result)["stdout"] and asked == []
        ssb.write(keys / "main.py", good + "# another")
        result, asked = answered(client, "deny", skill_dir="keys")
        assert failure(result)["code"] == "approval_required" and len(asked) == 1


@pytest.mark.parametrize("decision", ["once", "session", "always"])
def test_what_was_not_shown_is_not_there(ssb, keys, decision):
    """A .git directory is not part of what is approved, so it is missing in an approved run."""
    (keys / ".git").mkdir()
    ssb.write(keys / ".git/code.py", "print('hidden')")
    ssb.write(keys / "main.py", "import os; print(os.path.exists('/skill/.git/code.py'))")
    with served(ssb, era=MODERN, capabilities=ASKS) as client:
        result, asked = answered(client, decision, skill_dir="keys")
        assert structured(result)["stdout"] == "False\n" and len(asked) == 1
    got = ssb.run("--without", "read ~/.ssh", keys).ok().text if decision == "once" else "True\n"
    assert got == "True\n", "the control: it is there without an approval"


@pytest.mark.parametrize("decision", ["once", "session", "always"])
def test_what_was_taken_out_stays_out(ssb, keys, decision):
    code = (keys / "main.py").read_text()
    ssb.write(keys / "main.py", "import os; print(os.path.exists('%s/.ssh/id_ed25519'))" % ssb.home)
    ssb.ssb("approve", "--yes", "--without", "read ~/.ssh", keys).ok()
    with served(ssb, era=MODERN, capabilities=ASKS) as client:
        assert structured(client.tool("run_skill", skill_dir="keys"))["stdout"] == "False\n"
        ssb.write(keys / "main.py", (keys / "main.py").read_text() + "# one more")
        result, asked = answered(client, decision, skill_dir="keys")
        assert structured(result)["stdout"] == "False\n" and len(asked) == 1
        assert "(taken out) " in asked[0]
    declined = [r["declined"] for r in json.loads(ssb.ssb("approvals", "--json").ok().text)]
    assert declined == [["read ~/.ssh"]] and rows(ssb) == []
    ssb.ssb("approve", "--revoke", keys).ok()  # the control
    ssb.write(keys / "main.py", code)
    with served(ssb, era=MODERN, capabilities=ASKS) as client:
        result, _ = answered(client, decision, skill_dir="keys")
        assert SECRET in structured(result)["stdout"]


def test_the_owners_manifest_is_part_of_what_was_approved(ssb):
    """The owner's manifest is beside the skill, not in it. If it changes, the owner is asked
    again."""
    d = ssb.mkdir("skills") / "plain"
    ssb.write(d / "SKILL.md", "---\nname: plain\ndescription: d\n---\n")
    ssb.write(d / "main.py", "print('one')")
    sidecar = ssb.home / ".config/skillsandbox/skills/plain.yaml"
    ssb.write(sidecar, manifest(name="plain"), 0o600)
    ssb.ssb("approve", "--yes", d).ok()
    with served(ssb, era=MODERN, capabilities=ASKS) as client:
        ran = structured(client.tool("run_skill", skill_dir="plain"))
        assert ran["stdout"] == "one\n"  # the control
        ssb.write(sidecar, manifest(name="plain") + "# changed\n", 0o600)
        result, asked = answered(client, "deny", skill_dir="plain")
        assert failure(result)["code"] == "approval_required"
        assert len(asked) == 1 and "changed since you approved it" in asked[0]
        result, asked = answered(client, "always", skill_dir="plain")
        assert structured(result)["stdout"] == "one\n" and len(asked) == 1
        result, asked = answered(client, "deny", skill_dir="plain")
        assert structured(result)["stdout"] == "one\n" and asked == []
