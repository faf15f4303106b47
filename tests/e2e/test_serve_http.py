"""`skillsandbox serve --http`: which clients are accepted, and which messages and processes get the
token."""
import collections
import contextlib
import json
import os
import pathlib
import signal

import pytest

import mcp_world
from mcp_client import failure, structured
from serve_world import TOKEN, http_served, skill

SPY = """
import json, os, pathlib
seen = {'own': os.environ.get('SKILLSANDBOX_TOKEN'), 'others': 0}
for p in pathlib.Path('/proc').glob('[0-9]*/environ'):
    try:
        seen['others'] += b'SKILLSANDBOX_TOKEN' in p.read_bytes()
    except OSError:
        pass
print(json.dumps(seen))
"""


def ask(h, **fields):
    """The status of a call whose default header fields are replaced by these. With none, it is
    200."""
    message = h.message("list_skills", {})
    return h.once(body=message, **{**mcp_world.modern_fields(message), **fields})[0]


def test_which_clients_are_accepted(ssb):
    skill(ssb, "hello", "print('hello')")
    with http_served(ssb) as h:
        port = h.port
        assert ask(h) == 200  # the control
        for token in (None, "", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper()):
            assert ask(h, token=token) == 401, token
        assert ask(h, token=None, Authorization=f"Basic {TOKEN}") == 401
        for host in ("example.com", f"example.com:{port}", f"127.0.0.1:{port + 1}",
                     f"127.0.0.1.example.com:{port}", None):
            assert ask(h, Host=host) in (400, 403, 421), host
        for host in (f"localhost:{port}", f"127.0.0.1:{port}"):
            assert ask(h, Host=host) == 200
        for origin in ("http://example.com", "null", f"http://127.0.0.1.example.com:{port}",
                       "file://", f"https://example.com:{port}"):
            assert ask(h, Origin=origin) == 403, origin
        assert ask(h, Origin=f"http://127.0.0.1:{port}") == 200
        # With a wrong token and a wrong Origin the request is refused, too.
        assert ask(h, token="x", Origin="http://example.com") in (401, 403)
        assert structured(h.tool("run_skill", skill_dir="hello"))["stdout"] == "hello\n"


def test_wrong_tokens_wait_their_turn(user):
    """A flood of wrong tokens is refused; a client with the right one is served."""
    skill(user, "hello", "print('hello')")
    with http_served(user) as h, contextlib.ExitStack() as stack:
        # The server examines only ten wrong tokens per second. It is stopped (SIGSTOP) until all
        # requests are waiting, so that all of them come in the same second.
        clients = [stack.enter_context(h.client()) for _ in range(60)]
        message = h.message("list_skills", {})
        os.kill(h.process.pid, signal.SIGSTOP)
        for i, c in enumerate(clients):
            c.send(body=message, token=f"guess{i}", **mcp_world.modern_fields(message))
        os.kill(h.process.pid, signal.SIGCONT)
        seen = collections.Counter(c.answer().status for c in clients)
        assert set(seen) == {401, 429} and seen[401] >= 20, seen
        assert ask(h) == 200


def test_a_token_of_the_owners_own(ssb):
    """If the token cannot be sent in a header, the server refuses to start. If the token is short
    enough to be guessed (under 16 bytes), the server starts with one warning."""
    skill(ssb, "hello", "print('hello')")
    for token in ("trailing ", " leading", "a b", "a\nb", "t\u00f6ken-of-the-owner"):
        r = ssb.ssb("serve", "--skills", ssb.mkdir("skills"), "--http", "127.0.0.1:0",
                    env={"SKILLSANDBOX_TOKEN": token})
        assert r.code == 2 and "without blanks" in r.errors, repr(r)
        assert token not in r.errors
    for token, warned in (("fifteen-bytes-x", 1), ("sixteen-bytes-xx", 0)):
        with http_served(ssb, token=token) as h:
            assert ask(h) == 200
            assert h.errors.count("may guess it") == warned, h.errors
            assert token not in h.errors


def test_a_token_that_is_made_is_said_once(ssb):
    skill(ssb, "hello", "print('hello')")
    with http_served(ssb, token=None) as h:
        assert len(h.token) == 64 and set(h.token) <= set("0123456789abcdef")
        assert ask(h) == 200 and ask(h, token=TOKEN) == 401
        first = h.token
        pid = h.process.pid
        for name in ("cmdline", "environ"):
            assert first.encode() not in pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    assert h.errors.count(first) == 1
    with http_served(ssb, token=None) as h:
        assert h.token != first


@pytest.mark.parametrize("given", [True, False])
def test_the_token_stays_with_its_owner(ssb, given):
    skill(ssb, "spy", SPY, allow=["SKILLSANDBOX_TOKEN", "GREETING"])
    skill(ssb, "plain", "import os; print(os.environ.get('GREETING'))", allow=["GREETING"])
    with http_served(ssb, token=TOKEN if given else None, env={"GREETING": "hi"}) as h:
        assert structured(h.tool("run_skill", skill_dir="plain"))["stdout"] == "hi\n"  # control
        assert failure(h.tool("run_skill", skill_dir="spy"))["code"] == "approval_required"
        ssb.write(ssb.home / ".config/skillsandbox/policy.yaml",
                  "grants: {env: [SKILLSANDBOX_TOKEN]}\n", 0o600)
        result = h.tool("run_skill", skill_dir="spy")
        assert json.loads(structured(result)["stdout"]) == {"own": None, "others": 0}
        said = [result, h.tool("run_skill", skill_dir="spy", dry_run=True),
                h.tool("inspect_skill", skill_dir="spy")]
        assert h.token not in json.dumps(said)
        inside = h.token
    assert (inside in h.errors) != given  # a token that the owner gives is not printed
    for path in (ssb.state / "skillsandbox/runs").glob("*/*"):
        assert inside.encode() not in path.read_bytes(), path


def memory_has(pid, *texts):
    """Which of the texts are in the writable memory of the process."""
    found = set()
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            where, mode = line.split()[:2]
            begin, end = (int(x, 16) for x in where.split("-"))
            if mode.startswith("rw"):
                mem.seek(begin)
                data = mem.read(end - begin)
                found |= {t for t in texts if t.encode() in data}
    return found


@pytest.mark.parametrize("given", [True, False])
def test_no_memory_of_the_token(ssb, given):
    """Processes that the server forks have a copy of its memory, so it must contain only a digest
    of the token. This is tested before any client sends the token."""
    skill(ssb, "hello", "print('hello')")
    with http_served(ssb, token=TOKEN if given else None, env={"GREETING": "a-greeting"}) as h:
        pid = h.process.pid
        assert memory_has(pid, h.token, h.token[8:], "a-greeting") == {"a-greeting"}
        environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        assert b"a-greeting" in environ and h.token[8:].encode() not in environ
        assert ask(h) == 200


def test_not_even_the_owner_gives_it_away(ssb):
    """The owner names the token's variable with --env: a skill still does not get it, because the
    server has removed it from its environment."""
    skill(ssb, "spy", SPY)
    with http_served(ssb, "--env", "SKILLSANDBOX_TOKEN") as h:
        result = h.tool("run_skill", skill_dir="spy")
        assert TOKEN not in json.dumps(result)
        assert TOKEN not in json.dumps(h.tool("inspect_skill", skill_dir="spy"))
