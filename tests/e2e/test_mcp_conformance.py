"""Runs the official conformance suite of MCP against the protocol library, in both eras.

The suite sends HTTP to a fixture program (tests/mcp), which is the library built with the
sanitizers. The suite's own list for each revision says which scenarios are required: a required
scenario that did not run has failed.
"""
import contextlib

import pytest

from mcp_npm import (LEGACY, MISSING, MODERN, NODE, Suite, fixture, once_more, requirements,
                     troubles)

# Scenario -> the reason why it does not pass. These scenarios are not required. A scenario that
# passes must be removed from this table.
EXCEPTIONS = {
    (MODERN, "tasks-status-notifications"):
        "the suite itself skips it",
}

REQUIRED = [(r, s) for r in (LEGACY, MODERN) for s in requirements(r)[0]]
FURTHER = [(r, s) for r in (LEGACY, MODERN) for s in requirements(r)[1]]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Runs the suite for both revisions at the same time, each against its own fixture program."""
    assert NODE.exists(), MISSING
    place = tmp_path_factory.mktemp("mcp")
    with contextlib.ExitStack() as stack:
        urls = {r: stack.enter_context(fixture()) for r in (LEGACY, MODERN)}
        suites = {r: Suite(url, r, place / r) for r, url in urls.items()}
        wanted = {r: [s for era, s in REQUIRED + FURTHER if era == r and (r, s) not in EXCEPTIONS]
                  for r in suites}
        return {r: once_more(urls[r], r, place / r, s.results(), wanted[r])
                for r, s in suites.items()}


def test_lists_are_there(results):
    """The suite is installed, and its lists of scenarios are as long as when we pinned its
    version."""
    assert [len([s for r, s in REQUIRED if r == era]) for era in (LEGACY, MODERN)] == [30, 37]
    assert all(results.values())


@pytest.mark.parametrize("revision,scenario", REQUIRED)
def test_required(results, revision, scenario):
    checks = results[revision].get(scenario)
    assert checks, f"{scenario} did not run"
    assert any(c["status"] == "SUCCESS" for c in checks)
    assert not troubles(checks), "\n".join(troubles(checks))


@pytest.mark.parametrize("revision,scenario", FURTHER)
def test_further(results, revision, scenario):
    """Scenarios that are not required (extensions, and scenarios newer than the revision): each
    passes, or is in EXCEPTIONS."""
    checks = results[revision].get(scenario)
    assert checks, f"{scenario} did not run"
    bad = troubles(checks) or (
        [] if any(c["status"] == "SUCCESS" for c in checks) else ["nothing was checked"])
    reason = EXCEPTIONS.get((revision, scenario))
    if reason is None:
        assert not bad, "\n".join(bad)
    else:
        assert bad, f"it passes: take it out of the table of exceptions ({reason})"


def test_exceptions_exist():
    assert set(EXCEPTIONS) <= set(FURTHER)
