"""Debian's Chromium, started by its ordinary name, as root and as another user, by a person at a
terminal: it renders pages, and no run looks like an attack."""
import sys

import pytest

import agents

sys.path.append(str(agents.REPO / "tests/e2e"))
import harness  # noqa: E402
from test_calm import classes_of  # noqa: E402
from test_newcomer import Person  # noqa: E402

PAGES = {
    "page.html": "<p>hello <b id=x></b><script>x.textContent = 6 * 7</script>",
    # More memory than a run has by default.
    "heavy.html": "<p>hello<script>const a = new Uint8Array(400 << 20);"
                  " for (let i = 0; i < a.length; i += 4096) a[i] = 1</script>",
}
CHROMIUM = ["--", "chromium", "--headless", "--no-sandbox"]
# Without these options Chromium looks up undeclared names, which are violations.
QUIET = ["--disable-background-networking", "--disable-component-update",
         "--host-resolver-rules=MAP * ~NOTFOUND"]
WRITTEN = "bytes written to file"


@pytest.fixture(params=[0, 65534], ids=["root", "user"])
def person(world, request):
    uid = request.param
    world.runner = harness.Runner("user" if uid else "root", uid, uid, "person", world.base, world.ssb)
    person = Person(world)
    for name, text in PAGES.items():
        person.ssb.write(person.project / name, text)
    return person


def shoots(person, page, *options, picture="/tmp/x.png"):
    """Types the command for a screenshot of the page; returns what is said, and the exit status."""
    code, said = person.types("run", *options, *CHROMIUM, f"--screenshot={picture}", page)
    # A denial can only be a name of the browser's maker, unless the preset is missing.
    denied = {v["data"].get("op") for v in person.ssb.last_trace()["policy_violations"]}
    assert classes_of(person.ssb) == [] and "looks like" not in said, said
    assert denied <= {"resolve"} or "--preset" not in options, said
    return code, said


@pytest.mark.parametrize("cache", [[], ["--cache"]], ids=["alone", "with a cache"])
def test_screenshot(person, cache):
    code, said = shoots(person, "page.html", "--preset", "browser", "-r", "page.html", *cache)
    assert code == 0 and f"{WRITTEN} /tmp/x.png" in said, said


def test_screenshot_in_the_project(person):
    code, said = shoots(person, "page.html", "--preset", "browser", "--project", picture="x.png")
    assert code == 0 and f"{WRITTEN} x.png" in said, said
    assert (person.project / "x.png").read_bytes().startswith(b"\x89PNG")


def test_preset(person):
    """The preset has the memory for a heavy page. The control: without it, the memory
    limit ends the run. After at most two tries with the larger limit that is printed, it succeeds."""
    code, said = shoots(person, "heavy.html", "--preset", "browser", "-r", "heavy.html")
    assert code == 0 and WRITTEN in said, said
    limits, options = [], []
    while True:
        code, said = shoots(person, "heavy.html", "-r", "heavy.html", *options)
        if code == 0:
            break
        assert "the memory limit" in said and WRITTEN not in said, said
        options = said.partition("allow more: ")[2].split()[:2]
        limits.append(options)
    assert WRITTEN in said and 1 <= len(limits) <= 2 and limits[0] == ["--memory", "512M"], (limits, said)


@pytest.mark.parametrize("grant", ["-r", "-w"])
def test_page(person, grant):
    code, said = person.types("run", "-m", "2048", grant, person.project, *CHROMIUM, *QUIET, "--dump-dom",
                              f"file://{person.project}/page.html")
    assert code == 0 and '<b id="x">42</b>' in said, said
    assert person.ssb.last_trace()["policy_violations"] == [], said
