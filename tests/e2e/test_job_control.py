"""Ctrl-Z, fg, bg and kill %1 in an interactive shell, on a run with and without a terminal of its own."""
import json
import os
import re
import signal
import time

import pytest

from harness import PYTHON
from terminal import CTRL_C, CTRL_Z, Shell

STARTED = "star''ted"  # the shell's echo of the command line must not match what the program prints


@pytest.fixture
def shell(ssb):
    opened = []

    def start(**kw):
        opened.append(Shell(ssb, **kw))
        return opened[-1]
    yield start
    for s in opened:
        if s.process.poll() is None:
            os.killpg(s.process.pid, signal.SIGHUP)
            os.close(s.ours)  # the hangup reaches stopped jobs, too
            s.process.wait(20)


def seconds_of():
    """An argument for `sleep` that no other test uses at the same time."""
    return str(600000 + os.getpid())


def state_of(ssb, name=None):
    """State letters of all processes with this argument."""
    name = name or seconds_of()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            args = open(f"/proc/{pid}/cmdline").read().split("\0")
            if name in args:
                found.append(open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1][0])
        except OSError:
            pass
    return found


def wait_until(check, seconds=20):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.01)


def resume(s):
    s.type("fg")
    wait_until(s.is_raw)  # what is typed before goes through the shell's own line discipline
    return s


def test_stop_and_continue(ssb, shell):
    s = shell()
    s.type(f"$SSB run -- sh -c 'echo {STARTED}; exec cat'").wait_for("started")
    s.type("one").wait_for("one").wait_for("one")
    assert s.is_raw()
    s.type(CTRL_Z).stopped()
    assert not s.is_raw()
    s.type("echo in$((1+1))shell").wait_for("in2shell").wait_for(s.PROMPT)
    resume(s).type("two").wait_for("two").wait_for("two")
    s.type(CTRL_Z).stopped()  # a second time
    resume(s).type(b"three\n\x04").wait_for("three").wait_for(s.PROMPT)
    s.type("echo end $?").wait_for("end 0")


def test_every_process_stands_still_and_the_clock_too(ssb, shell):
    # Ctrl-Z stops the first process, but not its child in another session. The run stops the child.
    code = ("import os,time\nif os.fork()==0:\n os.setsid()\n i=0\n"
            " while True: i+=1; open('tick','w').write(str(i)); os.rename('tick','ticks'); time.sleep(.01)\n"
            "while not os.path.exists('ticks'): time.sleep(.01)\n"
            "print('star'+'ted',flush=True)\ninput()\nprint('go'+'es on')\n")
    ssb.write(ssb.work / "p.py", code)
    s = shell()
    s.type(f"$SSB run -t 2s -w . -- {PYTHON} p.py").wait_for("started")
    s.type(CTRL_Z).stopped()
    ticks = (ssb.work / "ticks").read_text()
    end = time.monotonic() + 3  # longer than the time limit
    while time.monotonic() < end:
        assert (ssb.work / "ticks").read_text() == ticks
        time.sleep(0.1)
    resume(s)
    wait_until(lambda: int((ssb.work / "ticks").read_text()) > int(ticks))  # the child goes on, too
    s.type("").wait_for("goes on")
    s.wait_for(s.PROMPT).type("echo end $?").wait_for("end 0")


def test_the_time_limit_continues_after_the_stop(ssb, shell):
    s = shell()
    s.type(f"$SSB run -t 2s -- sh -c 'echo {STARTED}; exec sleep 60'").wait_for("started")
    s.type(CTRL_Z).stopped().type("fg").wait_for("sleep 60'")
    s.wait_for(s.PROMPT, 40).type("echo end $?").wait_for("end 124")


def test_kill_of_a_stopped_job(ssb, shell):
    s = shell()
    s.type(f"$SSB run -- sh -c 'echo {STARTED}; exec sleep {seconds_of()}'").wait_for("started")
    wait_until(lambda: state_of(ssb) == ["S"])
    s.type(CTRL_Z).stopped()
    assert state_of(ssb) == ["T"]
    s.type("kill %1").wait_for(s.PROMPT)
    # bash refuses to wait for a job as long as it has not seen that it continues
    s.type('while [ -n "$(jobs -s)" ]; do :; done; wait %1; echo end $?').wait_for("end 143")
    wait_until(lambda: state_of(ssb) == [])


def test_background(ssb, shell):
    s = shell()
    s.type(f"$SSB run -- sh -c 'echo {STARTED}; read a; echo got $a; read b; echo and $b'").wait_for("started")
    s.type(CTRL_Z).stopped().type("bg").wait_for(s.PROMPT)
    s.type("echo typed for the sh''ell").wait_for("for the shell").wait_for(s.PROMPT)
    assert not s.is_raw() and "got typed" not in s.text
    s.type("fg").wait_for("and $b'")  # `fg` of a job that runs sends no signal
    wait_until(s.is_raw)
    s.type("word").wait_for("got word")
    s.type("end").wait_for("and end").wait_for(s.PROMPT)


def test_started_in_the_background(ssb, shell):
    s = shell()
    s.type(f"$SSB run -- sh -c 'echo {STARTED}; read a; echo got $a' &").wait_for("started")
    s.type("echo typed for the sh''ell").wait_for("for the shell")
    assert not s.is_raw()
    s.type("fg").wait_for("got $a'")
    wait_until(s.is_raw)
    s.type("word").wait_for("got word").wait_for(s.PROMPT)


def test_jobs_of_an_inner_shell(ssb, shell):
    s = shell()
    s.type("$SSB run -t 5m -e PS1='in''ner> ' -- bash --norc --noediting -i".replace("-e ", "--env ")).wait_for("inner> ")
    s.type(f"sh -c 'echo {STARTED}; exec sleep 6002'").wait_for("started")
    s.type(CTRL_Z).wait_for("Stopped").wait_for("inner> ")  # the inner shell has stopped its job
    s.type("jobs; echo we are ins''ide").wait_for("we are inside").wait_for("inner> ")
    s.type("fg").wait_for("sleep 6002'")
    wait_until(lambda: state_of(ssb, "6002") == ["S"])  # now it has the terminal
    s.type(CTRL_C).wait_for("inner> ")
    s.type("suspend").stopped()  # and the shell can stop the run itself
    s.type("fg").wait_for("inner> ", 30).type("exit 7").wait_for(s.PROMPT)
    s.type("echo end $?").wait_for("end 7")


def test_programs_that_handle_ctrl_z(ssb, shell):
    s = shell(env={"TERM": "xterm"})
    s.type(f"$SSB run -- {PYTHON} -q").wait_for(">>> ")
    s.type("print(1+1)").wait_for("2").wait_for(">>> ").type(CTRL_Z).stopped()
    resume(s).type("print(40+2)").wait_for("42").type("exit()").wait_for(s.PROMPT)
    text = f"long{os.getpid()}"
    ssb.write(ssb.work / text, "".join(f"line {i}\n" for i in range(200)))
    for program, ready, leave in (("less", "line 22", "q"), ("vim -u NONE", "line 22", ":q!\r")):
        s.type(f"$SSB run -r . -- {program} {text}").wait_for(ready)
        # The first is the caller. All others sleep: the program, which reads, and the process that
        # prints denials.
        wait_until(lambda: set(state_of(ssb, text)[1:]) == {"S"})
        s.type(CTRL_Z).stopped()
        resume(s).wait_for(ready)  # it draws its screen again
        s.type(leave.encode()).wait_for(s.PROMPT)


def test_window_size_is_refreshed(ssb, shell):
    code = ("import os,signal\nsignal.signal(signal.SIGWINCH, lambda *a: os.write(1, b'size %d %d\\n' % os.get_terminal_size()))\n"
            "print('star'+'ted',flush=True)\nwhile True: signal.pause()\n")
    ssb.write(ssb.work / "p.py", code)
    s = shell()
    s.type(f"$SSB run -r . -- {PYTHON} p.py").wait_for("started")
    s.type(CTRL_Z).stopped().resize(41, 77)
    s.type("fg").wait_for("size 77 41")
    s.type(CTRL_Z).stopped().type("fg").wait_for("size 77 41")  # the same size: it must draw, too
    s.type(CTRL_C).wait_for(s.PROMPT)


@pytest.mark.parametrize("out", ["| cat", "--no-tty"])
def test_without_a_terminal_of_its_own(ssb, shell, out):
    flag, pipe = (out, "") if out.startswith("--") else ("", out)
    s = shell()
    s.type(f"$SSB run {flag} -t 2s -- sh -c 'echo {STARTED}; read a; echo got $a; exec sleep {seconds_of()}' {pipe}")
    s.wait_for("started").type("word").wait_for("got word")
    wait_until(lambda: state_of(ssb) == ["S"])
    s.type(CTRL_Z).stopped()
    assert state_of(ssb) == ["T"]
    end = time.monotonic() + 3
    while time.monotonic() < end:
        assert state_of(ssb) == ["T"]
        time.sleep(0.1)
    s.type("fg").wait_for("exec sleep")
    wait_until(lambda: state_of(ssb) != ["T"])
    s.wait_for(s.PROMPT, 40)
    assert "time" in s.text.split("fg")[-1]  # the rest of the 2 s ran out


def test_a_stop_that_no_shell_can_continue(ssb):
    """The caller is the leader of its session, so the kernel ignores its SIGTSTP. The skill continues."""
    from terminal import Terminal
    t = Terminal(ssb, "run", "--", "sh", "-c", f"echo {STARTED}; exec cat").wait_for("started")
    t.type(CTRL_Z).type("word").wait_for("word").wait_for("word").type(b"\x04")
    assert t.end() == 0


def test_anchors_do_not_count(ssb):
    from terminal import Terminal
    t = Terminal(ssb, "run", "--max-processes", "3", "--", "sh", "-c", "(echo in a ch''ild); (:); exit 3").wait_for("in a child")
    assert t.end() == 3
    assert "limit" not in t.text
    # The skill sees them, and can end them. Only Ctrl-Z has no effect any more.
    t = Terminal(ssb, "run", "--", "sh", "-c", "grep -l terminal-anchor /proc/[0-9]*/comm; kill -9 -1; echo st''ill").wait_for("still")
    assert len(re.findall(r"/proc/\d+/comm", t.text)) == 2
    assert t.end() == 0


def test_anchors_show_nothing(ssb):
    code = """
    import os, json
    out = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        if open(f'/proc/{pid}/comm').read() != 'terminal-anchor\\n':
            continue
        for f in ('environ', 'mem', 'fd', 'maps'):
            try:
                out[f] = str(os.listdir(f'/proc/{pid}/{f}') if f == 'fd' else open(f'/proc/{pid}/{f}','rb').read(1))
            except OSError as e:
                out[f] = 'denied'
    print('R' + json.dumps(out) + 'R', open('/proc/self/environ').read(4))
    """
    from terminal import Terminal
    d = ssb.skill(code)
    t = Terminal(ssb, "run", "-q", d).wait_for("}R")
    assert t.end() == 0
    assert json.loads(t.text.split("R")[1].replace("\n", "")) == dict.fromkeys(("environ", "mem", "fd", "maps"), "denied")
