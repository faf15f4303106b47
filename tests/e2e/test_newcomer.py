"""Tasks of a newcomer, through a pseudo-terminal. Each is done the way a person does it: the first
command that comes to mind, then at most two more, made only of what the program has just printed. The
task with a browser is in tests/acceptance/test_chromium.py."""
import re
import shlex

import pytest

from net_fixtures import net, outside  # noqa: F401
from terminal import Terminal

HOST = "public.example.test"
CA = {"NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt"}


class Person:
    """Types commands in a project, and reads what is printed."""

    def __init__(self, world):
        self.world, self.ssb = world, world.runner
        self.project = self.ssb.mkdir("home/work")
        self.ssb.identity = self.at(self.project, self.ssb.identity)
        self.commands = 0

    @staticmethod
    def at(directory, identity):
        return lambda: [*identity(), "env", "-C", str(directory)]

    def skill(self, name, files, manifest=None):
        skill = self.ssb.home / ".claude/skills" / name
        self.ssb.write(skill / "SKILL.md", f"---\nname: {name}\ndescription: Does things\n---\n")
        for file, text in files.items():
            self.ssb.write(skill / file, text, 0o755 if file.endswith(".sh") else 0o644)
        if manifest:
            self.ssb.write(skill / "skillsandbox.yaml", manifest)
        return skill

    def types(self, *words, answers=()):
        """Runs one command at a terminal. `answers` are (text of the question, what is typed)."""
        self.commands += 1
        self.ssb.runs_before = self.ssb.runs()
        terminal = Terminal(self.ssb, *words, columns=200, env={"TERM": "xterm", **CA})
        for question, answer in answers:
            terminal.wait_for(question, 30).type(answer)
        code = terminal.end(60)
        return code, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\(B", "", terminal.text)

    def reaches(self, goal, *words, most=2):
        """Types the command; then, at most `most` times, the same command with the options that were
        printed as the way to allow what was denied."""
        command = list(words)
        code, said = self.types(*command)
        first = said
        for _ in range(most):
            if code == 0 and goal in said:
                break
            options = self.options(said)
            assert options, f"nothing printed helps:\n{said}"
            command[1:1] = options
            code, said = self.types(*command)
        assert code == 0 and goal in said, f"{command}:\n{said}\nfirst:\n{first}"
        return said

    @staticmethod
    def options(said):
        """The options that were printed behind "to allow:" or in a sentence that names an option."""
        found = []
        for text in re.findall(r"to allow: (--.*)$|: (--(?:read|write|project)\S* ?\S*)$", said, re.M):
            words = shlex.split(re.split(r", or ", text[0] or text[1])[0])
            if words not in [found[i:i + len(words)] for i in range(len(found))]:
                found += words
        return found


@pytest.fixture
def person(net):  # noqa: F811
    return Person(net)


def test_csv_of_the_project(person):
    skill = person.skill("csv-report", {"scripts/report.py":
                                        "import csv, sys\nprint('rows', len(list(csv.reader(open(sys.argv[1])))))\n"})
    person.ssb.write(person.project / "data/people.csv", "name\nann\n")
    code, said = person.types("run", skill, "scripts/report.py", "data/people.csv",
                              answers=[("[y/N]", "y")])
    assert code == 0 and "rows 2" in said, said
    # The same without the question: the option is printed.
    code, said = person.types("run", skill, "scripts/report.py", "data/people.csv",
                              answers=[("[y/N]", "n")])
    assert code != 0, said
    command = ["run", *person.options(said), skill, "scripts/report.py", "data/people.csv"]
    code, again = person.types(*command)
    assert code == 0 and "rows 2" in again, said + again


def test_a_skill_that_asks_an_api(person):
    skill = person.skill("lookup", {"scripts/ask.py":
                                    "import urllib.request, json\n"
                                    f"print('answer', json.load(urllib.request.urlopen('https://{HOST}/v1'))['path'])\n"})
    said = person.reaches("answer /v1", "run", skill, "scripts/ask.py")
    assert person.commands <= 3, said


def test_git_and_jq(person):
    for args in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty",
                                  "-m", "one"]):
        person.ssb.as_caller(["git", *args], cwd=person.project).ok()
    skill = person.skill("history", {"log.sh": "#!/bin/bash\nset -e\ncd \"$1\"\n"
                                     "git log --format='{\"subject\": \"%s\"}' | jq -r .subject\n"})
    code, said = person.types("run", skill, "log.sh", ".", answers=[("[y/N]", "y")])
    assert code == 0 and "one" in said, said
    assert person.commands == 1


def test_node(person):
    skill = person.skill("sum", {"scripts/sum.js": "const fs = require('fs');\n"
                                 "console.log('sum', fs.readFileSync(process.argv[2], 'utf8').split('\\n')"
                                 ".map(Number).reduce((a, b) => a + b));\n"})
    person.ssb.write(person.project / "numbers.txt", "40\n2\n")
    code, said = person.types("run", skill, "scripts/sum.js", "numbers.txt", answers=[("[y/N]", "y")])
    assert code == 0 and "sum 42" in said, said


def test_npm_install_at_run_time(person):
    skill = person.skill("threes", {"run.sh": "#!/bin/bash\nset -e\ncd \"$(mktemp -d)\"\n"
                                    f"npm install --fetch-retries=0 --no-audit --no-fund "
                                    f"--registry https://{HOST}/npm/ threes\n"
                                    "node -p \"'three ' + require('threes')\"\n"})
    said = person.reaches("three 3", "run", skill, "run.sh")
    assert person.commands <= 3, said


def test_a_local_web_server(person):
    skill = person.skill("serve", {"serve.py": """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("status", urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").status)
"""})
    person.reaches("status 200", "run", skill, "serve.py")
    assert person.commands == 1


def test_git_push_by_https(person):
    ssb = person.ssb
    ssb.as_caller(["git", "clone", "-q", f"https://{HOST}/push/repo.git", person.project / "repo"]).ok()
    skill = person.skill("publish", {"push.sh": "#!/bin/bash\nset -e\ncd \"$1\"\n"
                                     "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m pushed\n"
                                     "git push -q origin HEAD:refs/heads/$2\necho it is pushed\n"})
    ssb.identity = person.at(person.project / "repo", ssb.identity)
    person.reaches("it is pushed", "run", "--project", skill, "push.sh", person.project / "repo", f"topic-{ssb.kind}")
    heads = ssb.as_caller(["git", "ls-remote", f"https://{HOST}/push/repo.git"]).ok().text
    assert f"refs/heads/topic-{ssb.kind}" in heads and person.commands <= 3


def test_two_scripts_with_one_manifest(person):
    skill = person.skill("notes", {
        "scripts/count.py": "import pathlib\nprint('notes', len(list(pathlib.Path('~/notes').expanduser().glob('*'))))\n",
        "scripts/show.py": "import pathlib\nprint('note', (pathlib.Path.home() / 'notes/a.md').read_text())\n"})
    person.ssb.write(person.ssb.home / "notes/a.md", "hello")
    person.ssb.write(skill / "skillsandbox.yaml",
                     "skill: {name: notes, version: 1.0.0}\npermissions: {filesystem: {read: [~/notes]}}\n")
    code, said = person.types("approve", skill, answers=[("yes", "yes")])
    assert code == 0, said
    for script, goal in (("scripts/count.py", "notes 1"), ("scripts/show.py", "note hello")):
        code, said = person.types("run", skill, script)
        assert code == 0 and goal in said, said
    assert person.commands == 3


def test_a_skill_that_was_changed(person):
    skill = person.skill("hello", {"scripts/hello.py": "print('hello one')\n"})
    assert person.types("approve", skill, answers=[("yes", "yes")])[0] == 0
    assert person.types("run", skill, "scripts/hello.py")[0] == 0
    person.ssb.write(skill / "scripts/hello.py", "print('hello two')\n")
    person.commands = 0
    code, said = person.types("run", skill, "scripts/hello.py", answers=[("[N]o", "n")])
    assert code != 0 and "hello two" not in said and "scripts/hello.py: changed" in said, said
    code, said = person.types("run", skill, "scripts/hello.py", answers=[("[a]lways", "a")])
    assert code == 0 and "hello two" in said, said
    code, said = person.types("run", skill, "scripts/hello.py")
    assert code == 0 and "CHANGED" not in said and person.commands <= 3, said
