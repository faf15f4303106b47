"""Skills of test_learn_skills.py: small ones, written like skills that people publish.

Each row: the files of the skill, what its first word and arguments are, what is in the caller's
home and environment, the grants that the learned manifest must request (no more and no less), and
a text that only a run which got everything prints. In arguments, WORK is the caller's directory.
"""
from typing import NamedTuple

WEATHER = "connect to api.openweathermap.org"
PUBLIC = "connect to public.example.test"


class Skill(NamedTuple):
    name: str
    files: dict
    args: tuple = ()
    home: dict = {}
    env: dict = {}
    grants: set = frozenset()
    prints: str = "done"
    work: dict = {}      # files in the caller's directory
    left: tuple = ()     # files that the run must leave in the home or in WORK
    learn: tuple = ()    # options of learn


def card(name, text="Run it."):
    return f"---\nname: {name}\ndescription: {text}\n---\n\n# {name}\n\n{text}\n"


def declared(name, command, *args):
    return (f"skill: {{name: {name}, version: \"1.0.0\"}}\npermissions: {{}}\n"
            f"entrypoint: {{command: {command}, args: {list(args)}}}\n")


SKILLS = [
    # ---- files of the home -------------------------------------------------------------------
    Skill("notes-glob", {"SKILL.md": card("notes-glob"), "scripts/list.py": """
        import pathlib
        for path in sorted(pathlib.Path("~/notes").expanduser().glob("*.md")):
            print("note", path.read_text().strip())
        """}, ("scripts/list.py",), {"notes/a.md": "buy milk"}, grants={"read ~/notes"},
          prints="note buy milk"),
    Skill("notes-parts", {"main.py": """
        from pathlib import Path
        top = Path.home() / "journal" / "2024"
        if not top.is_dir():
            raise SystemExit("no journal")
        print(sum(len(p.read_text()) for p in top.iterdir()), "characters")
        """}, ("main.py",), {"journal/2024/may.txt": "12345"}, grants={"read ~/journal/2024"},
          prints="5 characters"),
    Skill("todo-shell", {"SKILL.md": card("todo-shell"), "scripts/todo.sh": """\
        #!/bin/bash
        set -eu
        FILE="$HOME/todo.txt"
        [ -f "$FILE" ] || { echo "no list"; exit 1; }
        grep -c . "$FILE"
        """}, ("scripts/todo.sh",), {"todo.txt": "a\nb\n"}, grants={"read ~/todo.txt"}, prints="2"),
    Skill("bookmarks-node", {"SKILL.md": card("bookmarks-node"), "show.js": """
        const fs = require('fs'), os = require('os'), path = require('path');
        const file = path.join(os.homedir(), 'bookmarks', 'all.json');
        if (!fs.existsSync(file)) { console.log('nothing saved'); process.exit(0); }
        console.log('saved', Object.keys(JSON.parse(fs.readFileSync(file))).length);
        """}, ("show.js",), {"bookmarks/all.json": '{"a": 1, "b": 2}'},
          grants={"read ~/bookmarks/all.json"}, prints="saved 2"),
    Skill("settings-json", {"skillsandbox.yaml": declared("settings-json", "python3", "main.py"),
                            "main.py": """
        import json, os
        path = os.path.expanduser("~/planner/settings.json")
        settings = json.load(open(path)) if os.path.exists(path) else {}
        print("style", settings.get("style", "plain"))
        """}, (), {"planner/settings.json": '{"style": "dark"}'},
          grants={"read ~/planner/settings.json"}, prints="style dark"),
    Skill("recipes-walk", {"main.py": """
        import os
        for top, dirs, names in os.walk(os.path.join(os.path.expanduser("~"), "recipes")):
            for name in names:
                print("recipe", name)
        """}, ("main.py",), {"recipes/soup.txt": "x"}, grants={"read ~/recipes"},
          prints="recipe soup.txt"),
    Skill("expenses-sqlite", {"SKILL.md": card("expenses-sqlite"), "scripts/sum.py": """
        import os, sqlite3, sys
        path = os.path.expanduser("~/expenses.db")
        if not os.path.isfile(path):
            sys.exit("no database")
        db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        print("tables", len(db.execute("select name from sqlite_master").fetchall()))
        """}, ("scripts/sum.py",), {"expenses.db": ""}, grants={"read ~/expenses.db"},
          prints="tables 0"),
    # ---- results -------------------------------------------------------------------------------
    Skill("report-new", {"main.py": """
        import os
        out = os.path.expanduser("~/reports")
        os.makedirs(out, exist_ok=True)
        with open(os.path.join(out, "week.md"), "w") as f:
            f.write("# Week\\n")
        print("done")
        """}, ("main.py",), grants={"write ~/reports"}, left=("~/reports/week.md",)),
    Skill("report-there", {"SKILL.md": card("report-there"), "scripts/save.sh": """\
        #!/bin/sh
        set -e
        date > "$HOME/logbook/today.txt"
        echo done
        """}, ("scripts/save.sh",), {"logbook/old.txt": "x"}, grants={"write ~/logbook"},
          left=("~/logbook/today.txt",)),
    Skill("diary-node", {"main.js": """
        const fs = require('fs'), os = require('os'), path = require('path');
        const dir = path.join(os.homedir(), 'diary');
        fs.mkdirSync(dir, {recursive: true});
        fs.writeFileSync(path.join(dir, 'today.txt'), 'dear diary');
        console.log('done');
        """}, ("main.js",), grants={"write ~/diary"}, left=("~/diary/today.txt",)),
    # ---- files that the caller names ---------------------------------------------------------------
    Skill("csv-sum", {"SKILL.md": card("csv-sum"), "scripts/sum.py": """
        import csv, sys
        with open(sys.argv[1]) as f:
            print("sum", sum(int(row["n"]) for row in csv.DictReader(f)))
        """}, ("scripts/sum.py", "WORK/data.csv"), work={"data.csv": "n\n40\n2\n"},
          grants={"NAMED read"}, prints="sum 42"),
    Skill("json-pick", {"SKILL.md": card("json-pick"), "pick.sh": """\
        #!/bin/bash
        exec jq -r .name "$1"
        """}, ("pick.sh", "WORK/package.json"), work={"package.json": '{"name": "blue"}'},
          grants={"NAMED read"}, prints="blue"),
    Skill("word-count", {"count.js": """
        const fs = require('fs');
        console.log(fs.readFileSync(process.argv[2], 'utf8').split(/\\s+/).length, 'words');
        """}, ("count.js", "WORK/text.md"), work={"text.md": "one two three"},
          grants={"NAMED read"}, prints="3 words"),
    # ---- the network ---------------------------------------------------------------------------------
    Skill("weather-key", {"SKILL.md": card("weather-key"), "scripts/now.py": """
        import json, os, sys, urllib.request
        key = os.environ["OWM_API_KEY"]
        url = f"https://api.openweathermap.org/data/2.5/weather?q={sys.argv[1]}&appid={key}"
        print(json.load(urllib.request.urlopen(url, timeout=5))["main"]["temp"])
        """}, ("scripts/now.py", "Oslo"), env={"OWM_API_KEY": "k"},
          grants={WEATHER, "environment OWM_API_KEY"}, prints="21.5"),
    Skill("weather-base", {"main.py": """
        import json, os, urllib.request
        base = os.environ.get("WEATHER_BASE", "https://api.openweathermap.org")
        print(json.load(urllib.request.urlopen(base + "/data/2.5/weather"))["main"]["temp"])
        """}, ("main.py",), grants={WEATHER, "environment WEATHER_BASE"}, prints="21.5"),
    Skill("weather-class", {"main.py": """
        import json, os, urllib.request
        DEFAULT = "https://api.openweathermap.org"
        class Settings:
            base = os.getenv("WEATHER_SERVER")
            key = os.environ["WEATHER_TOKEN"]
        base = Settings.base if Settings.base else DEFAULT
        request = urllib.request.Request(base + "/data/2.5/weather",
                                         headers={"Authorization": "Bearer " + Settings.key})
        print(json.load(urllib.request.urlopen(request))["main"]["temp"])
        """}, ("main.py",), env={"WEATHER_TOKEN": "t"}, prints="21.5",
          grants={WEATHER, "environment WEATHER_SERVER", "environment WEATHER_TOKEN"}),
    Skill("weather-curl", {"SKILL.md": card("weather-curl"), "scripts/get.sh": """\
        #!/bin/bash
        set -eu
        BASE="${GEO_BASE:-https://public.example.test}"
        curl -fsS --max-time 5 "$BASE/hello"
        """}, ("scripts/get.sh",), grants={PUBLIC, "environment GEO_BASE"},
          prints="public.example.test"),
    Skill("fetch-node", {"SKILL.md": card("fetch-node"), "fetch.mjs": """
        import http from 'node:http';
        const base = process.env.FETCH_BASE || 'http://public.example.test';
        http.get(base + '/hello', r => r.on('data', d => process.stdout.write(d)));
        """}, ("fetch.mjs",), grants={PUBLIC + ":80", "environment FETCH_BASE"},
          prints="public.example.test"),
    Skill("key-of-settings", {"skillsandbox.yaml": declared("key-of-settings", "python3", "main.py"),
                              "main.py": """
        import json, pathlib, urllib.request
        path = pathlib.Path("~/geo/config.json").expanduser()
        key = json.loads(path.read_text()).get("key") if path.exists() else None
        if key is None and not path.exists():
            raise SystemExit("make ~/geo/config.json")
        print(urllib.request.urlopen(f"https://public.example.test/?k={key}").status)
        """}, (), {"geo/config.json": '{"key": "k"}'}, prints="200",
          grants={PUBLIC, "read ~/geo/config.json"}),
    Skill("two-hosts", {"SKILL.md": card("two-hosts"), "a.py": """
        import os, urllib.request
        for host in "public.example.test", "api.openweathermap.org":
            try:
                print(host, urllib.request.urlopen(f"https://{host}/x", timeout=5).status)
            except OSError as e:
                print(e)
        """}, ("a.py",), grants={PUBLIC, WEATHER}, prints="api.openweathermap.org 200"),
    Skill("with-a-fallback", {"main.py": """
        import os, urllib.request
        token = os.environ.get("FORGE_TOKEN")
        if not token:
            print("set FORGE_TOKEN for more")
            raise SystemExit(0)
        r = urllib.request.Request("https://public.example.test/u", headers={"X-Token": token})
        print("user", urllib.request.urlopen(r).status)
        """}, ("main.py",), env={"FORGE_TOKEN": "t"}, prints="user 200",
          grants={PUBLIC, "environment FORGE_TOKEN"}),
    # ---- programs, temporary files, caches -------------------------------------------------------------
    Skill("git-log", {"SKILL.md": card("git-log"), "scripts/new.sh": """\
        #!/bin/bash
        set -eu
        cd "$(mktemp -d)"
        git init -q .
        echo x > x
        git add x
        git -c user.name=a -c user.email=a@b.example commit -qm first
        git log --oneline | wc -l
        """}, ("scripts/new.sh",), prints="1"),
    Skill("sqlite-memory", {"SKILL.md": card("sqlite-memory"), "q.sh": """\
        #!/bin/sh
        sqlite3 "$(mktemp)" 'create table t(n); insert into t values (41); select n + 1 from t;'
        """}, ("q.sh",), prints="42"),
    Skill("cache-private", {"main.py": """
        import os, pathlib
        cache = pathlib.Path.home() / ".cache" / "cache-private"
        cache.mkdir(parents=True, exist_ok=True)
        (cache / "x").write_text("y")
        print("done")
        """}, ("main.py",)),
    Skill("subprocesses", {"SKILL.md": card("subprocesses"), "scripts/run.py": """
        import subprocess, sys, tempfile
        with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
            f.write("print(6 * 7)")
            f.flush()
            print(subprocess.run([sys.executable, f.name], capture_output=True, text=True).stdout)
        """}, ("scripts/run.py",), prints="42"),
    Skill("template", {"SKILL.md": card("template", "See https://docs.example.org/guide."),
                       "data/letter.txt": "Dear NAME", "scripts/fill.py": """
        # https://docs.example.org/letters
        import pathlib, sys
        text = (pathlib.Path(__file__).parent.parent / "data/letter.txt").read_text()
        print(text.replace("NAME", sys.argv[1]))
        """}, ("scripts/fill.py", "Ada"), prints="Dear Ada"),
    # ---- formats -----------------------------------------------------------------------------------------
    Skill("ware", {"manifest.yaml": "name: ware\nversion: 1.0.0\n", "skill.py": """
        import pathlib
        class Ware:
            def execute(self, params):
                top = pathlib.Path("~/shelf").expanduser()
                return {"found": [p.read_text() for p in top.glob("*.txt")]}
        """}, ("{}",), {"shelf/a.txt": "a book"}, grants={"read ~/shelf"}, prints="a book"),
    Skill("ware-net", {"manifest.yaml": "name: ware-net\nversion: 1.0.0\n", "skill.py": """
        import json, urllib.request
        class Ware:
            def execute(self, params):
                url = "https://api.openweathermap.org/data/2.5/weather"
                return {"temp": json.load(urllib.request.urlopen(url, timeout=5))["main"]["temp"]}
        """}, ("{}",), grants={WEATHER}, prints="21.5"),
    Skill("not-used", {"SKILL.md": card("not-used"), "scripts/a.py": """
        import os, sys
        if len(sys.argv) > 1:
            open(os.path.expanduser("~/drafts/a.txt"))
            os.system("curl https://unused.example.org/")
        print("done")
        """}, ("scripts/a.py",), {"drafts/a.txt": "x"}),
    Skill("granted", {"SKILL.md": card("granted"), "scripts/first.py": """
        import os
        with open(os.path.expanduser("~/ledger/names.csv")) as f:
            print("first", f.read().split(",")[3])
        """}, ("scripts/first.py",), {"ledger/names.csv": "a,b,c,d"},
          grants={"read ~/ledger/names.csv"}, prints="first d", learn=("--read", "~/ledger")),
    Skill("made-up-name", {"SKILL.md": card("made-up-name"), "a.py": """
        import os, urllib.request
        server = os.environ["NEWS_SERVER"]
        print(urllib.request.urlopen(f"https://{server}/news", timeout=5).status)
        """}, ("a.py",), env={"NEWS_SERVER": "public.example.test"},
          grants={PUBLIC, "environment NEWS_SERVER"}, prints="200",
          learn=("--env", "NEWS_SERVER")),
    Skill("own-settings", {"main.py": """
        import json, os
        print("mode", json.load(open(os.path.expanduser("~/.config/other-tool/own.json")))["mode"])
        """}, ("main.py",), {".config/other-tool/own.json": '{"mode": "fast"}'}, prints="mode fast",
          grants={"read ~/.config/other-tool/own.json"}),
]
