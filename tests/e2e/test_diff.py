"""The diff of a changed skill for the owner: it shows the bytes that changed, code first."""
import re

import pytest
import serve_world
from harness import manifest
from terminal import Terminal

EVIL = "exfiltrate()"
LONG = "x = 1  # " + "." * 400
MANY = {f"a{n:02}.txt": "one" for n in range(30)}


def approved(ssb, files):
    d = ssb.skill("print('fine')\n", files={"skillsandbox.yaml": manifest(), **files})
    ssb.ssb("approve", "--yes", d).ok()
    return d


def diff(ssb, d, *words):
    r = ssb.ssb("diff", *words, d)
    assert r.code == 1 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u200b]", r.text), r
    return r.text


# name: (the old text of the file, its new text, words that the diff must show)
HIDDEN = {
    "behind a long line": (LONG + "\n", LONG + EVIL + "\n", [EVIL, "column 410"]),
    "within a long line": (LONG + ";" + LONG + "\n", LONG + ";" + EVIL + LONG + "\n", [EVIL]),
    "behind characters of many bytes": ("# " + "\u6f22" * 300 + "\n",
                                        "# " + "\u6f22" * 300 + EVIL + "\n",
                                        [EVIL, "column 303 "]),
    "far from a harmless one": ("a" + LONG + "b\n", "c" + LONG + EVIL + "\n",
                                ["differs from column 1 to 422", "--all shows all"]),
    "behind blanks of a new line": ("x\n", "x\ny" + " " * 900 + EVIL + "\n",
                                    ["713 bytes more; --all"]),
    "blanks at the end": ("x\n", "x  \n", ["-x\n", "+x\\x20\\x20\n"]),
    "a blank that is none": ("x = 1\n", "x\u00a0= 1\u2800\n", ["+x\\u{a0}= 1\\u{2800}\n"]),
    "an end of line": ("x\ny\n", "x\r\ny\n", ["-x\n", "+x\\x0d\n"]),
    "the last newline": ("x\n", "x", ["its last line has no newline now"]),
    "a NUL": ("x\n", "#\0\n" + EVIL + "\n", [EVIL, "+#\\x00"]),
    "another encoding": ("x\n", b"# -*- coding: latin-1 -*- \xe4\n" + EVIL.encode() + b"\n",
                         [EVIL, "\\xe4"]),
    "turned around": ("x\n", "x # \u202e" + EVIL + "\x1b[2K\n", [EVIL, "\\u{202e}", "\\x1b[2K"]),
    "in a long file": ("x\n" * 60000, "x\n" * 59999 + EVIL + "\n",
                       [EVIL, "from line 59997 on"]),
    "among too many changes": ("".join(f"a{n}\n" for n in range(9000)),
                               EVIL + "\n" + "".join(f"b{n}\n" for n in range(9000)),
                               [EVIL, "too many lines differ"]),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_the_bytes_that_changed_are_shown(ssb, case):
    old, new, seen = HIDDEN[case]
    d = approved(ssb, {"lib.py": old})
    ssb.write(d / "lib.py", new)
    text = diff(ssb, d)
    for words in seen:
        assert words in text, text
    assert EVIL in diff(ssb, d, "--all") or EVIL not in str(new)


def test_the_code_comes_first(ssb):
    """Many harmless files changed, too, and sort before the code: diff, the message of a refused
    run, and the question at a terminal show the code's changes first."""
    d = approved(ssb, {**MANY, "tool": "one", "b.py": "one\n", "c.py": "one\n"})
    ssb.as_caller(["chmod", "755", d / "tool"]).ok()
    ssb.ssb("approve", "--yes", d).ok()
    for name in (*MANY, "tool"):
        (d / name).write_text("two")
    ssb.write(d / "b.py", "one\n" + EVIL + "\n")
    ssb.write(d / "main.py", "print('other')\n")
    ssb.write(d / "new.py", EVIL + "\n")
    (d / "c.py").unlink()
    (d / "skillsandbox.yaml").write_text(manifest() + "# two\n")
    first = ["~ skillsandbox.yaml: changed", "~ main.py: changed", "~ tool: changed",
             "~ b.py: changed", "- c.py: removed", "+ new.py: new"]
    left = "and 16 more: 16 other"
    stop = ssb.run(d)
    question = Terminal(ssb, "run", d).wait_for("run it?").type("n")
    assert stop.code == question.end() == 125
    text = diff(ssb, d)
    for shown in (text, stop.errors, question.text):
        lines = [line.strip().split(",")[0] for line in shown.splitlines()
                 if re.match(r"  [-+~] ", line)]
        assert lines[:6] == first, shown
        assert left in shown, shown
    assert f"+{EVIL}" in text and text.count(f"+{EVIL}") == 2, text
    assert re.search(r"Lines of \d+ more files are not shown \(\d+ other\); --all", text), text
    everything = diff(ssb, d, "--all")
    for name in MANY:
        assert f"~ {name}: changed" in everything and f"  ~ {name}\n" in everything
    assert " more" not in everything


def test_many_of_what_runs_are_counted_as_that(ssb):
    d = approved(ssb, {f"m{n:02}.py": "one\n" for n in range(30)})
    for n in range(30):
        (d / f"m{n:02}.py").write_text("two\n")
    text = diff(ssb, d)
    assert "and 10 more: 10 code" in text and "Lines of 22 more files are not shown (22 code)" in text


def test_the_question_of_a_client_shows_it_too(ssb):
    """A changed skill also asks for 40 more directories, so the question is long: an MCP client's
    question still shows the changed code."""
    asks = [f"~/notes{n}" for n in range(40)]
    for name in asks:
        ssb.mkdir("home/" + name[2:])
    d = serve_world.skill(ssb, "many", "print('fine')\n", read=["/proc"])
    for name, text in MANY.items():
        ssb.write(d / name, text)
    ssb.ssb("approve", "--yes", "--without", "read /proc", d).ok()
    for name in MANY:
        (d / name).write_text("two")
    ssb.write(d / "main.py", EVIL)
    ssb.write(d / "skillsandbox.yaml", manifest(name="many", read=["/proc", *asks]))
    with serve_world.served(ssb) as client:
        said = str(client.tool("run_skill", skill_dir="many"))
    assert "~ main.py: changed" in said and "and 20 more: 20 other" in said, said
    assert "skillsandbox diff --all" in said
