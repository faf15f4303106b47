"""A worker, which runs in its own namespaces: plays programs, and shortens those that fail."""
import json
import pathlib
import sys
import time

import check
import play
import programs
import selftest
import witness
import world

GROUND = 200  # number of programs that use one file system
SHRINK_SECONDS = 10
SHOWN = 5  # only so many programs that fail are shortened


def shrink(ground, caller, steps, swap):
    """Removes steps as long as the program still fails."""
    until = time.monotonic() + SHRINK_SECONDS
    best = play.play(ground, caller, steps, swap)
    size = len(steps) // 2 if best.faults else 0  # 0 if the failure does not occur again
    while size >= 1 and time.monotonic() < until:
        at = 0
        while at < len(steps) and time.monotonic() < until:
            fewer = steps[:at] + steps[at + size:]
            out = play.play(ground, caller, fewer, swap)
            if out.faults:
                steps, best = fewer, out
            else:
                at += size
        size //= 2
    return best


def story(out):
    """Returns the program, the kernel's events and the lines of the record as text."""
    lines = [f"  {line['seq']:3} {'VIOLATION ' if line.get('violation') else ''}"
             f"{line.get('message') or line}"
             f"{' [pid ' + str(line['data'].get('pid')) + ']' if 'data' in line else ''}"
             for line in out.lines if line["kind"] not in check.ASIDE]
    return "\n".join(["  steps and the kernel's events:", *out.log, "  record:", *lines,
                      "  faults:", *(f"  {f}" for f in out.faults)])


def work(binary, act):
    """Plays the orders on stdin, one JSON object a line, and writes one answer a line."""
    ground = None
    act = pathlib.Path(act).read_bytes()
    shown = 0
    try:
        for count, line in enumerate(sys.stdin):
            if ground is None or count % GROUND == 0:
                if ground:
                    ground.done()
                ground = world.Ground(binary, act)
            order = json.loads(line)
            answer = selftest_answer(ground) if "selftest" in order else \
                play_answer(ground, order, shown)
            answer["group"] = order["group"]
            shown += bool(answer["faults"])
            print(json.dumps(answer), flush=True)
    finally:
        if ground:
            ground.done()


def selftest_answer(ground):
    unseen, count = selftest.unseen(ground)
    if count < selftest.ENOUGH:
        unseen.append(f"only {count} lies were told")
    return {"selftest": count, "faults": unseen, "story": "\n".join(unseen)}


def play_answer(ground, order, shown):
    seed, caller, swap = order["seed"], order["caller"], order["swap"]
    steps = programs.generate(seed)
    out = play.play(ground, caller, steps, swap)
    best = shrink(ground, caller, steps, swap) if out.faults and shown < SHOWN and \
        not order["full"] else out
    events = out.events()
    return {"seed": seed, "caller": caller, "swap": swap, "faults": out.faults,
            "story": story(best if best.faults else out) if out.faults or order["full"] else "",
            "started": out.started, "steps": out.steps, "events": len(events),
            "changes": sum(bool(e.mask & witness.CHANGES) for e in events),
            "kinds": sorted({n for e in events for bit, n in witness.NAMES.items()
                             if e.mask & bit}),
            "violations": sum(e.violation for e in out.expected), "lines": len(out.lines)}
