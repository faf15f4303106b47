"""agent.py SKILLSANDBOX SESSION - an agent that asks before it spends, and goes
too far all the same: its skill steals, and its bill is a hundred times the
estimate. What it says goes to standard output; what it is told is not up to it.
"""
import json
import pathlib
import subprocess
import sys
import time

BINARY, SESSION = sys.argv[1:3]
SKILL = pathlib.Path(__file__).resolve().parent / "report"


def say(*words):
    print(*words, flush=True)


def session(*words):
    r = subprocess.run([BINARY, "session", *words, "--json"], capture_output=True, text=True,
                       timeout=60, check=False)
    return json.loads(r.stdout)


def call_model(estimate, bill):
    """Ask, act, pay. False: it was refused."""
    d = session("check", SESSION, "--action", "llm_call", "--cost", estimate)
    if not d["action_allowed"]:
        say(f"a call for ${estimate}: refused, {d['reason']}")
        return False
    d = session("settle", str(d["reservation"]), "--cost", bill)
    spent = d["session_state_snapshot"]["total_cost"]
    say(f"a call for ${estimate}: costs ${bill}, ${spent:.2f} in all"
        + (f" ({d['action_taken']})" if d["action_taken"] != "log" else ""))
    return True


def run(*words):
    return subprocess.Popen([BINARY, "run", "-q", "--session", SESSION, str(SKILL), "--", *words],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def listen(p):
    last = ""
    for line in p.stdout:
        last = line.strip()
        say(f"skill: {last}")
    return last, p.wait()


for _ in range(4):
    call_model("0.20", "0.20")
say("the report skill starts")
last, status = listen(run())
say(f"the report skill ends at '{last}' with {status}")
crawler = run("work", "600")
crawler.stdout.readline()
say("a crawler starts, for a minute")
call_model("0.05", "5.11")
begun = time.monotonic()
crawler.stdout.read()
say(f"the crawler ends with {crawler.wait()}, {int((time.monotonic() - begun) * 1000)} ms later")
call_model("0.01", "0.01")
say(f"another run: ends with {listen(run())[1]}")
