"""The screen: texts fit the terminal, colours mean something, help has groups and examples, numbers have
the units that people use, and hostile names stay plain text in a report as HTML."""
import html.parser
import json
import os
import re
import shlex
import time
import unicodedata

import pytest

import harness
from record_maker import Record, State
from terminal import Terminal, controls

# Wide characters, colours, a change of direction, and a tag: as a part of a file's name.
HOSTILE = "漢字かな漢字かな\x1b[31m\u202etxt<script>alert(1)</script>"
TRY = f"""
import os
for path in ('/root/.ssh/id_rsa', '/dev/null', '/srv/' + 'long' * 30 + {HOSTILE!r}):
    try: open(path, 'w' if 'null' in path else 'r')
    except OSError: pass
print('</td><script>fetch("http://127.0.0.1:1/")</script>')
"""


def width(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def shown(ssb, *words, columns=80, status=(0,), env=None):
    t = Terminal(ssb, *words, columns=columns, env=env)
    assert t.end(90) in status, t.text
    return t


@pytest.fixture(name="ran")
def fixture_ran(ssb):
    """A skill with a hostile name for one of its files, which ran once and was denied something."""
    skill = ssb.skill(TRY, write=["~/out"])
    ssb.mkdir(ssb.home / "out")
    ssb.run(skill)
    return skill


@pytest.mark.parametrize("columns", [80, 40])
def test_no_line_is_wider_than_the_terminal(ssb, ran, columns):
    long = ["inspect", "--read", f"/srv/{'deep/' * 30}", "--", "true"]
    for words in (["help"], ["help", "run"], ["session", "--help"], ["doctor"], ["inspect", ran], long,
                  ["lint", ran], ["audit", "list"], ["audit", "show", "last"], ["why", "last"],
                  ["audit", "show", "-v", "last"], ["audit", "show", "--plan", "last"], ["ps"],
                  ["approvals"], ["session", "list"], ["list", ran.parent], ["watch", "last"], ["nosuchcommand" * 9],
                  ["validate", f"/srv/{'deep/' * 30}"]):
        t = shown(ssb, *words, columns=columns, status=(0, 1, 2, 125))
        wide = [line for line in t.lines() if width(line) > columns]
        assert not wide and not controls(t.text), (words, wide)
        if words[0] in ("why", "inspect"):
            whole = ssb.ssb(*words)  # the control: in a pipe, a line stays whole
            assert max(width(line) for line in whole.text.splitlines()) > columns, whole


def test_rows_stay_rows(ssb):
    """Each run is one row of the table, also beside a name that is far too long, and every row has its
    last column."""
    for name in ("short", "漢字" * 30, "x" * 200, "a\u202eb\x1b[31m"):
        State(ssb).put(Record(skill_name=name))
    for columns in (80, 100):
        head, *rows = shown(ssb, "audit", "list", columns=columns).text.splitlines()
        assert len(rows) == 4 and head.split()[-1] == "violations", rows
        assert all(row.split()[-1].isdigit() and width(row) < columns for row in rows), rows
        at = {width(row[:row.index("exited")]) for row in rows}
        assert len(at) == 1, rows
    whole = ssb.ssb("audit", "list").ok().text
    assert "x" * 200 in whole, "the control: nothing is cut in a pipe"


def test_times_are_local_and_short(ssb):
    State(ssb).put(Record())  # of 2026-11-15, 13:20 UTC
    ssb.run("--", "true").ok()
    env = {"TZ": "Asia/Tokyo"}
    now, old = (line.split() for line in ssb.ssb("audit", "list", env=env).ok().text.splitlines()[1:])
    assert old[1:3] == ["2026-11-15", "22:20"], old
    assert re.fullmatch(r"\d\d:\d\d:\d\d", now[1]), now
    hours = (int(now[1][:2]) - time.gmtime().tm_hour) % 24
    assert hours in (8, 9), "nine hours ahead, or eight if the hour changed since"


def test_colours_mean_something_and_can_be_switched_off(ssb, ran):
    red, yellow, green = "\x1b[31m", "\x1b[33m", "\x1b[32m"
    for words, colour in ((["why", "last"], "\x1b[1m"), (["audit", "show", "last"], red),
                          (["lint", ran], "\x1b[3"), (["doctor"], green), (["run", "--", "cat", "/root/.ssh/id_rsa"], yellow)):
        t = shown(ssb, *words, env={"TERM": "xterm"}, status=(0, 1))
        assert colour in t.text, (words, t.text)
        for env in ({"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
            assert "\x1b[3" not in shown(ssb, *words, env=env, status=(0, 1)).text, words
        assert b"\x1b" not in ssb.ssb(*words, env={"TERM": "xterm"}).err, words


def test_a_diff_is_coloured(ssb):
    ssb.write(ssb.home / "notes/n", "a note")
    skill = ssb.skill("open('/root/.x')", read=["~/notes"])
    t = shown(ssb, "learn", skill, env={"TERM": "xterm"}, status=(0, 1, 125))
    assert "\x1b[31m-" in t.text or "\x1b[32m+" in t.text, t.text


# ---- help --------------------------------------------------------------------

def commands(ssb):
    return [line.split("  ")[1] for line in ssb.ssb("help").ok().text.splitlines()
            if re.match(r"  [a-z]", line)]


def test_help_is_in_groups(ssb):
    text = ssb.ssb("help").ok().text
    assert len(re.findall(r"^[a-z' ]+:$", text, re.M)) >= 6, text
    assert "other:\n  help " in text, "every other command has a group"
    text = ssb.ssb("help", "run").ok().text
    for title in ("files", "network", "environment", "limits", "isolation", "output", "examples"):
        assert f"\n{title}:\n" in text, text
    for command in ("run", "serve", "learn", "inspect", "prove", "shell"):
        assert "more options" not in ssb.ssb("help", *command.split()).ok().text, command


def test_every_example_is_understood(ssb):
    """The parser accepts the options and values of each example. A wrong option is the control."""
    total = 0
    for command in commands(ssb):
        words = command.split()
        text = ssb.ssb("help", *words).ok().text
        lines = [line[2:] for line in text.partition("\nexamples:\n")[2].splitlines()]
        assert len(lines) >= (1 if command == "hook" else 2), command
        for line in lines:
            argv = shlex.split(line)
            assert argv[:1 + len(words)] == ["skillsandbox", *words] and len(line) < 78, line
            at = 1 + len(words)
            ssb.ssb(*argv[1:at], "--help", *argv[at:]).ok()
            assert ssb.ssb(*argv[1:at], "--help", "--nonsense", *argv[at:]).code == 2, line
            total += 1
    assert total >= 90


def test_no_command_is_a_short_help(ssb):
    r = ssb.ssb()
    assert r.code == 2 and "skillsandbox run DIR" in r.errors and len(r.errors.splitlines()) < 10, r


def test_serve_on_a_terminal_says_what_it_does(ssb, ran):
    t = Terminal(ssb, "serve", "--skills", ran).wait_for("Model Context Protocol")
    t.type(b"\x03")
    t.end()
    r = ssb.ssb("serve", "--skills", ran)  # the control: a program needs no such line
    assert "Model Context Protocol" not in r.errors, r


# ---- words and numbers -------------------------------------------------------

def test_doctor_ends_with_a_verdict(ssb):
    r = ssb.ssb("doctor").ok()
    last = r.text.splitlines()[-1]
    missing = [line.split()[1] for line in r.text.splitlines() if line.startswith("missing")]
    assert last == "ready" if not missing else last.startswith("ready; "), last
    assert ("watchdog" in last) == ("cgroup" in missing), last
    assert ("systemd-run" in r.text) == ("cgroup" in missing and os.path.exists("/run/systemd/system"))


def test_numbers_have_units(ssb):
    text = ssb.ssb("inspect", "--net", "example.com", "--memory", "2G", ssb.skill("")).ok().text
    assert "2 GiB" in text and "1 MiB" in text and "60 s" in text and "1048576" not in text, text
    policy = ssb.write(ssb.work / "s.yaml", "limits: {bytes_out: 10MB}\n", 0o600)
    r = ssb.ssb("session", "start", "--policy", policy, "--id", "s")
    if r.code == 0:
        assert "of 10 MB (" in ssb.ssb("session", "show", "s").ok().text
    else:
        raise AssertionError(repr(r))


def test_a_signal_has_its_name_and_no_version_is_none(ssb):
    skill = ssb.mkdir("plain")
    ssb.write(skill / "SKILL.md", "---\nname: plain\ndescription: x\n---\n")
    ssb.write(skill / "go", "#!/bin/sh\nkill -SEGV $$\n", 0o755)
    r = ssb.run("-v", skill, "go")
    assert r.code == 139 and "SIGSEGV" in r.errors, r
    row = ssb.ssb("audit", "list").ok().text.splitlines()[1]
    assert "SIGSEGV" in row and "signaled" not in row and " plain  " in row, row
    assert "end      SIGSEGV, exit status 139" in ssb.ssb("audit", "show", "last").ok().text
    assert "plain\n" in ssb.ssb("inspect", skill).ok().text
    named = ssb.skill("")  # the control
    assert re.search(r"skill +\S+ \d", ssb.ssb("inspect", named).ok().text)


# ---- records -----------------------------------------------------------------

def test_show_begins_with_what_matters(ssb, ran):
    text = ssb.ssb("audit", "show", "last").ok().text
    whole = ssb.ssb("audit", "show", "-v", "last").ok().text
    assert text.index("\ndenied") < text.index("\noutput"), text
    for hidden in ("/dev/null", "/usr/lib"):
        assert hidden not in text and hidden in whole, hidden


def test_output_of_a_terminal_has_no_carriage_returns(ssb):
    shown(ssb, "run", "--tty", "--", "echo", "hello")
    text = ssb.ssb("audit", "show", "last").ok().text
    assert "stdout: hello\n" in text and "x0d" not in text, text
    assert b"u000d" in ssb.ssb("audit", "show", "--json", "last").ok().out, "the control: it is recorded"


def test_a_watch_shows_no_routine(ssb):
    few = ssb.run("--watch", "--", "cat", "/etc/hostname").errors.splitlines()
    many = ssb.run("--watch", "-v", "--", "cat", "/etc/hostname").errors.splitlines()
    assert len(few) < 8 and not any("/usr/lib" in line or "START" in line for line in few), few
    assert any("/usr/lib" in line for line in many) and any(" START" in line for line in many), many
    assert any(" END " in line for line in few), few


def test_the_plan_says_what_granted(ssb):
    skill = ssb.skill("", read=["~/notes"])
    ssb.write(ssb.home / "notes/n", "a note")
    ssb.ssb("approve", "--yes", skill).ok()
    ssb.run("--net", "api.example.com", "--write", ssb.mkdir("out"), skill).ok()
    text = ssb.ssb("audit", "show", "--plan", "last").ok().text
    assert re.search(r"files +read \S*/notes  \(manifest: \S+skillsandbox.yaml:\d+", text), text
    assert re.search(r"files +write \S*/out  \(flag: --write\)", text), text
    assert re.search(r"network +\S+ api.example.com:443  \(--net\)", text), text
    assert re.search(r"approved +by ", text), text
    plan = json.loads(ssb.ssb("audit", "show", "--plan", "--json", "last").ok().out)
    assert plan["granted"]["network"][0]["domain"] == "api.example.com"
    path = State(ssb).put(Record(plan=None))
    assert "too large" in ssb.ssb("audit", "show", "--plan", path).ok().text
    assert ssb.ssb("audit", "show", "--plan", "--json", path).code == 1


def test_runs_are_found(ssb):
    ssb.mkdir(ssb.home / "a")
    ssb.run("-r", ssb.home / "a", "--", "ls", ssb.home / "a").ok()
    ssb.run("--", "cat", "/root/.ssh/id_rsa")
    ssb.run("--", "curl", "-sS", "http://api.example.com/")
    found = {}
    for words in (["--path", ssb.home / "a"], ["--path", ssb.home], ["--path", "/root/.ssh"],
                  ["--path", "/root/.s"], ["--host", "example.com"], ["--host", "xample.com"],
                  ["--reason", "not_declared"], ["--reason", "guarded"], ["--class", "persistence"],
                  ["--class", "credential_harvesting"], ["--host", "example.com", "--path", "/root"],
                  ["--reason", "not_declared", "--skill", "cat"], ["--path", "/", "--limit", "2"]):
        runs = json.loads(ssb.ssb("audit", "list", "--json", *words).ok().out)
        found[" ".join(map(str, words[0::2])) + str(words[1]).replace(str(ssb.home), "~")] = \
            [run["skill_name"] for run in runs]
    assert found["--path~/a"] == ["ls"] and "ls" in found["--path~"], found
    assert found["--path/root/.ssh"] == ["cat"] and found["--path/root/.s"] == [], found
    assert found["--hostexample.com"] == ["curl"] and found["--hostxample.com"] == [], found
    assert found["--reasonnot_declared"] == ["curl"] and found["--reasonguarded"] == [], found
    assert found["--classpersistence"] == [] and found["--classcredential_harvesting"] == ["cat"], found
    assert found["--host --pathexample.com"] == [], "one event must have both"
    assert found["--reason --skillnot_declared"] == [], found
    assert found["--path --limit/"] == ["curl", "cat"], found
    for words in (["--reason", "nonsense"], ["--class", "persistenc"]):
        assert ssb.ssb("audit", "list", *words).code == 2
    assert "persistence" in ssb.ssb("audit", "list", "--class", "persistenc").errors
    # A record that cannot be read to its end is not a record without a match.
    search = ("audit", "list", "--host", "example.com", "--json")
    assert ssb.ssb(*search).ok().errors == ""  # the control
    (record,) = [f for f in ssb.state.rglob("*.jsonl") if b"curl" in f.read_bytes().split(b"\n")[0]]
    record.write_bytes(record.read_bytes().replace(b"\n", b"\nnot a line\n", 1))
    r = ssb.ssb(*search).ok()
    assert r.json() == [] and "1 record could not be read to the end" in r.errors, r


def test_run_json_prints_nothing_else(ssb):
    for words in (["--", "cat", "/root/.ssh/id_rsa"], ["-v", "--", "true"], ["/nonexistent"],
                  ["--read", "/nonexistent", "--", "true"]):
        r = ssb.run("--json", *words)
        lines = [line for line in r.errors.splitlines() if line and not line.startswith("cat: ")]
        assert len(lines) == 1 and json.loads(lines[0])["messages"], r
        prose = ssb.run(*words)  # the control
        assert "skillsandbox: " in prose.errors, prose


# ---- the report as HTML ------------------------------------------------------

class Page(html.parser.HTMLParser):
    """Collects the elements, attributes and text of a page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text, self.open = set(), [], "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, *a) for a in attrs]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data


PLAIN = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "tr", "th", "td",
         "span", "code", "br"}


def check_page(text):
    page = Page(text)
    assert page.tags <= PLAIN and not page.open, page.tags - PLAIN
    names = {name for _, name, _ in page.attributes}
    assert names <= {"lang", "charset", "http-equiv", "content", "name", "class"}, names
    assert "url(" not in text and "@import" not in text and "http" not in text.split("<body>")[0].replace(
        "http-equiv", ""), "it loads nothing"
    assert "default-src 'none'" in text
    assert not controls(page.text), controls(page.text)
    return page


def test_the_report_holds_hostile_names(ssb, ran):
    ssb.run("--write", ran, "--", harness.PYTHON, "-c",
            f"open({str(ran)!r} + '/' + {HOSTILE.replace('/', '_')!r}, 'w')\n" + TRY)
    r = ssb.ssb("audit", "show", "--html", "last").ok()
    page = check_page(r.text)
    assert "<script>alert(1)<_script>" in page.text and "\\x1b[31m\\u{202e}txt" in page.text, r
    assert "</td><script>fetch(" in page.text and "漢字" in page.text, r
    for part in ("Denied", "--read /root/.ssh/id_rsa", "Files changed", "Programs", "Output",
                 "Plan: what was granted", "(flag: --write)", "complete and unchanged",
                 "Files of the system"):
        assert part in page.text, part
    with pytest.raises(AssertionError):  # the control: without the escapes
        check_page(html.unescape(r.text))
    file = ssb.work / "r.html"
    assert ssb.ssb("audit", "show", f"--html={file}", "last").ok().out == b""
    assert file.read_text(encoding="utf-8") == r.text and file.stat().st_mode & 0o77 == 0


def test_the_report_of_a_bad_record(ssb):
    lines = Record().lines()
    path = ssb.write(ssb.base / "x.jsonl", b"".join(lines[:6]) + lines[6].replace(b"a", b"b") + lines[7])
    r = ssb.ssb("audit", "show", "--html", path)
    page = check_page(r.text)
    assert r.code == 1 and "cannot be trusted" in page.text and "bad: " in page.text, r


def test_every_text_of_a_record_is_escaped(ssb):
    """A record that was forged has markup in every text."""
    evil = "<img src=x onerror=alert(1)>\"'&amp;"
    record = Record(skill_name=evil, plan={"name": evil, "argv": [evil], "granted": {
        "files": [{"path": evil, "access": evil, "origin": evil, "where": evil}], "env": [evil]},
        "denied": [{"what": evil, "why": evil, "where": evil}]})
    page = check_page(ssb.ssb("audit", "show", "--html", State(ssb).put(record)).text)
    assert page.text.count("<img src=x") >= 8, page.text
