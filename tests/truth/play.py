"""Plays one program in a sandbox and reports what is wrong in its record."""
import contextlib
import dataclasses
import os
import signal

import check
import meaning
import world
from board import Stopped
from calls import CALLS, Step

END_SECONDS = 60


class Outcome:
    """The observations of one program. `trials` has (at, look, ret, events, opened path) for each
    step that must have a line."""

    def __init__(self):
        self.faults, self.log, self.lines, self.expected, self.trials = [], [], [], [], []
        self.raw, self.steps = [], 0
        self.started = False
        self.now = "the start"

    def events(self):
        return [e for _, _, _, events, _ in self.trials for e in events]


def fill_in(step, actor):
    """Replaces {pid} and {tid} in a step by the actor's numbers, which are not known when the
    program is written."""
    def say(path):
        return path.replace(b"{pid}", b"%d" % actor.pid).replace(b"{tid}", b"%d" % actor.tid)
    return dataclasses.replace(step, path=say(step.path), path2=say(step.path2),
                               text=say(step.text))


def first_lines(stage, program, swapped):
    """Returns the expected lines of the program's own start. If its file is being renamed, the
    observer may have seen another name than the kernel, so the first line is vague."""
    a = stage.actors[0]
    run, board = check.Expected("start", None, a), check.Expected("start", None, a)
    run.kind, run.op, run.status, run.violation = "process_spawned", "exec", "asked", False
    run.path, run.image, run.vague, run.optional = program, {b""}, swapped, swapped
    board.kind, board.op, board.status, board.violation = "file_write", "open", "asked", False
    board.path, board.mode = world.BOARD, "read+write"
    return [run, board]


def is_for_us(look):
    """True if the step executes nothing, a copy of act (which reads the board), or something that
    cannot be executed."""
    return look.call.family != "exec" or not look.first.exists or \
        check.inside(look.first.path or b"", (world.TOP, b"/tmp", b"/proc"))


def perform(stage, witness, steps, out):
    witness.forget()
    for at, step in enumerate(steps):
        if not stage.can(step):
            continue
        actor = stage.actors[step.actor]
        step = fill_in(step, actor)
        call = CALLS.get(step.call)
        look = check.Look(actor, step) if call and call.family else None
        if look and not is_for_us(look):
            continue
        out.now = f"step {at}"
        ret = stage.do(step)
        events = witness.read()
        out.steps += 1
        out.log.append(f"{at:3} {step} = {ret}" + "".join(f"\n        {e}" for e in events))
        if look:
            told = None
            if call.family == "open" and ret >= 0:
                told = meaning.told_path(b"/proc/%d/fd/%d" % (actor.host, ret))
                move(stage, step, ret)
            out.trials.append((at, look, ret, events, told))
        for a in stage.actors.values():
            a.see_program()


def move(stage, step, fd):
    """Moves the opened fd to its slot, or closes it."""
    if step.slot >= 0:
        stage.do(Step(step.actor, "dup2", fd=fd, length=step.slot))
    stage.do(Step(step.actor, "close", fd=fd))


@contextlib.contextmanager
def renaming(one, two):
    """Until the `with` block ends, a process renames the file `one` to `two` and back."""
    pid = os.fork()
    if pid == 0:
        while True:
            os.rename(one, two)
            os.rename(two, one)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def play(ground, caller, steps, swap=False):
    """Plays the steps and returns the Outcome. With `swap`, the program's file is renamed away and
    back while the program starts."""
    out = Outcome()
    place = world.World(ground, caller)
    program = (world.W if swap else world.R) + b"/bin/act"
    stage = process = None
    try:
        with renaming(program, program + b"2") if swap else contextlib.nullcontext():
            process = world.start(place, program)
            stage = world.Stage(process, place.caller)
        out.started = True
        stage.actors[0].image |= {program, program + b"2"} if swap else set()
        out.expected = first_lines(stage, program, swap)
        perform(stage, ground.witness, steps, out)
        stage.end()
        world.wait_for_end(process, END_SECONDS)
        out.raw, out.lines = check.read_record(world.RECORD, key_of(caller))
        out.faults += judge(out)
    except (Stopped, AssertionError) as e:
        if out.started or not swap:  # a file that is being renamed may be missing
            out.faults.append(f"{out.now}: {e}")
    finally:
        end(out, process, stage)
        place.done()
    return out


def end(out, process, stage):
    if process is not None:
        if process.poll() is None:
            process.kill()
        said = process.communicate()[1]
        if process.returncode != 0 and out.started:
            out.faults.append(f"the run ended with {process.returncode}: {said[-500:]!r}")
    if stage is not None:
        stage.done()


def key_of(caller):
    with open(world.state_of(caller) + b"/skillsandbox/trace.pub", encoding="ascii") as f:
        return f.read().strip()


def judge(out):
    """Compares the kernel's events with the expected lines, and these with the record. Returns the
    faults."""
    expected, faults = out.expected[:2], []
    for at, look, ret, events, told in out.trials:
        e = look.expected(at, ret)
        if e is not None:
            expected.append(e)
        faults += [f"step {at}: {f}" for f in (*check.check_events(e, look, ret, events),
                                               *check.check_opened(look, ret, told))]
    out.expected = expected
    return faults + check.compare(expected, out.lines)
