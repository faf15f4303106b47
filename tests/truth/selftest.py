"""Tests the checker: true records are changed, one thing at a time, and each change must be
detected."""
import copy

import check
import play
import programs

ENOUGH = 200  # the minimum number of changes ("lies") that are tried
SEEDS = (*range(900000, 900060), *range(programs.WIDEST, programs.WIDEST + 60))


def lies(out):
    """Yields (description, outcome with that lie), for every line and every event of a true
    outcome."""
    def told(change):
        lie = copy.copy(out)
        lie.lines = copy.deepcopy(out.lines)
        lie.expected = list(out.expected)
        lie.trials = list(out.trials)
        change(lie)
        return lie

    def data(i, **fields):
        return told(lambda lie: lie.lines[i]["data"].update(fields))

    for i, line in enumerate(out.lines):
        if line["kind"] in check.ASIDE:
            continue
        yield f"without line {i}", told(lambda lie, i=i: lie.lines.pop(i))
        if "repeat_of" in line:
            yield f"{i} counted twice", told(lambda lie, i=i: lie.lines[i].update(count=99))
            continue
        yield f"line {i} again", told(lambda lie, i=i: lie.lines.insert(i, lie.lines[i]))
        if i < 5:
            continue  # the first lines are about the program's start
        yield f"path of {i}", data(i, path=line["data"]["path"] + "x")
        yield f"pid of {i}", data(i, pid=line["data"]["pid"] + 1)
        yield f"program of {i}", data(i, program="/usr/bin/true")
        yield f"status of {i}", data(i, status="fact")
        yield f"violation of {i}", told(lambda lie, i=i: lie.lines[i].update(
            violation=not lie.lines[i].get("violation", False)))
        for key in ("path2", "mode", "leads_to", "attribute"):
            if key in line["data"]:
                yield f"{key} of {i}", data(i, **{key: line["data"][key] + "x"})
    for n, (at, look, ret, events, fd) in enumerate(out.trials):
        for k, event in enumerate(events):
            if event.path is None or look.first.nameless:
                continue
            known = check.w.CHANGES & ~check.w.ATTRIB | (
                check.LEAVES.get(look.call.op, 0) & check.w.ATTRIB)
            if event.mask & known:
                lost = [e for e in events if e is not event]
                if look.exchanges() or not any(e.mask & event.mask & check.w.CHANGES
                                               for e in lost):
                    yield f"step {at} without event {k}", told(
                        lambda lie, n=n, t=(at, look, ret, lost, fd):
                        lie.trials.__setitem__(n, t))
                other = copy.copy(event)
                other.path = b"/mnt/w/elsewhere"
                moved = [other if e is event else e for e in events]
                yield f"step {at} with event {k} elsewhere", told(
                    lambda lie, n=n, t=(at, look, ret, moved, fd): lie.trials.__setitem__(n, t))


def unseen(ground):
    """Returns the lies that the checker did not detect, and the number of all lies."""
    found, count = [], 0
    for seed in SEEDS:
        caller = ("root", "user")[seed % 2]
        out = play.play(ground, caller, programs.generate(seed))
        if out.faults or any(e.vague or e.unclear or e.optional for e in out.expected):
            continue  # uses only programs whose lines can be computed exactly
        for what, lie in lies(out):
            count += 1
            if not play.judge(lie):
                found.append(f"seed {seed}: {what} is not seen")
        found += broken(out, seed)
        if count >= 5 * ENOUGH:
            break
    return found, count


def broken(out, seed):
    """Changes one byte of the record: verification must fail."""
    lines = [bytearray(line) for line in out.raw]
    lines[len(lines) // 2][20] ^= 1
    try:
        check.records.verify([bytes(line) for line in lines])
    except AssertionError:
        return []
    return [f"seed {seed}: a changed byte is not seen"]
