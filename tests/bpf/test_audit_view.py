# SPDX-License-Identifier: GPL-2.0-only
"""The live view of an audit, in a terminal: keys go in, and the screen is read."""

import os
import pty
import re
import select
import signal
import subprocess
import termios
from pathlib import Path

import pytest

import harness
from harness import (MIB, PYTHON, QPROF, Load, Target, job_of, parse, process_of, reconcile,
                     run_qprof, wait_for)
from panes import Pane, pids, rows
from test_audit import CONTAINER, container, searched

TOKEN = f"viewtest{os.getpid()}"  # nobody else has it

# What is to be the same before and after: the modes of the terminal.
AROUND = "stty -g >{before}; trap : INT; {command}; echo status $?; stty -g >{after}; echo left; exec cat"


def has_left(pane):
    """A line of its own: a command of the view may have the word, too."""
    pane.until(lambda lines: "left" in lines, "its end")


class View:
    """qprof-bpf -a in a pane. Entered, it is to be seen."""

    def __init__(self, folder, *options, redirect="", env=None, **size):
        self.report = folder / "audit.yaml"
        self.before, self.after = folder / "before", folder / "after"
        words = [str(QPROF), "-a", "-o", str(self.report), *map(str, options)]
        # tmux says itself what it is, and the shell after it.
        command = "".join(f"{name}='{value}' " for name, value in (env or {}).items())
        command += " ".join(f"'{word}'" for word in words) + f" {redirect}"
        self.pane = Pane(AROUND.format(command=command, before=self.before, after=self.after),
                         **size)

    def __enter__(self):
        try:
            self.pane.shows("COMMAND")
        except BaseException:
            self.pane.__exit__()
            raise
        return self

    def __exit__(self, *args):
        self.pane.__exit__(*args)

    @property
    def pid(self):
        """Of qprof-bpf."""
        shell = self.pane.shell_pid()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def only(self, token=TOKEN):
        """Filters by the token."""
        self.pane.keys("/")
        self.pane.keys("-l", token)
        self.pane.keys("Enter")
        self.pane.shows(f"with '{token}'")

    def left(self, status=0):
        """Has ended, and the terminal is as it was. The lines that are to be seen."""
        has_left(self.pane)
        assert not self.pane.on_screen_of_its_own()
        assert self.pane.is_a("cursor_flag") == "1", "the cursor is not to be seen"
        assert self.pane.is_a("keypad_flag") == "0", "the keypad sends what it did not before"
        assert self.after.read_text() == self.before.read_text()
        self.pane.shows(f"status {status}")
        return self.pane.lines()


@pytest.fixture
def view(tmp_path):
    """with view(*options, width=, height=) as shown"""
    def start(*options, **kwargs):
        return View(tmp_path, *options, **kwargs)
    return start


@pytest.fixture
def spawn():
    """spawn(*command): a process that prints a line when it is ready, and stays."""
    started = []

    def start(*command, **kwargs):
        started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, env=harness.CLEAN_ENV, **kwargs))
        harness.Lines(started[-1].stdout).next()
        return started[-1]
    yield start
    for one in started:
        one.kill()
        one.wait()
        one.stdout.close()


def row_of(lines, pid, first="PID"):
    return next((row for row in rows(lines, first) if int(row[first]) == pid), None)


def below(pid, what):
    """A condition: the line below a job's has that."""
    def there(lines):
        for line, after in zip(lines, lines[1:]):
            if line.split()[:1] == [str(pid)] and what in after:
                return after
        return None
    return there


def test_shown_by_default_and_q_ends_it(view, target):
    one = target("touch:24", f"mark:{TOKEN}", "wait")
    one.go()
    with view(height=30) as shown:
        assert shown.pane.on_screen_of_its_own()
        shown.only()
        row = shown.pane.until(lambda lines: row_of(lines, one.pid), "the row of the target")
        assert row["USER"] == "root"
        assert re.fullmatch(r"2[4-9](\.\d)?M", row["RSS"]), row
        assert row["COMMAND"].startswith("idle touch:24")
        head = shown.pane.lines()[0]
        assert re.match(r"qprof-bpf: audit of .* at \d\d:\d\d:\d\d   \d+ processes   \d+ jobs", head)
        shown.pane.keys("q")
        lines = shown.left()
    report = parse(shown.report)
    assert report["qprof"]["mode"] == "audit"
    assert process_of(report, one.pid)
    # The table of the end is on the screen that was there before.
    assert any("qprof-bpf: audit of" in line for line in lines)
    assert not any("auditing" in line for line in lines), "the view says that it has begun"


READ_DIRECT = """
import mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
block = mmap.mmap(-1, 1 << 20)
while os.readv(fd, [block]):
    pass
print("done", flush=True)
time.sleep(1000)
"""

COMPUTE = """
import time
while time.process_time() < 6:
    pass
print("done", flush=True)
time.sleep(1000)
"""


def sorted_by(shown, key, name, wanted):
    """After the key, `wanted` is the first of ours; all of ours are there."""
    shown.pane.keys(key)
    shown.pane.shows(f"by {name},")
    return shown.pane.until(lambda lines: pids(lines)[:1] == [wanted.pid] and lines,
                            f"{wanted.pid} first by {name}")


def test_each_key_sorts(view, target, spawn, disk, tmp_path):
    data, stored = tmp_path / "data", disk / "data"
    data.write_bytes(bytes(96 * MIB))
    stored.write_bytes(os.urandom(64 * MIB))
    subprocess.run(["sync", str(stored)], check=True)
    with view("--live") as shown:
        shown.only()
        largest = target("touch:120", "touch:40", "touch:40", "touch:40", f"mark:{TOKEN}")
        highest = target("spike:300:1000", f"mark:{TOKEN}")
        reader = target(f"read:{data}", f"mark:{TOKEN}")
        for one in (largest, highest, reader):
            one.go()
        direct = spawn(PYTHON, "-c", READ_DIRECT, str(stored), TOKEN)
        busy = spawn(PYTHON, "-c", COMPUTE, TOKEN)
        ours = {one.pid for one in (largest, highest, reader, direct, busy)}
        shown.pane.until(lambda lines: ours <= set(pids(lines)), "all of ours")
        sorted_by(shown, "p", "peak", highest)
        sorted_by(shown, "i", "calls", reader)
        lines = sorted_by(shown, "c", "CPU", busy)
        shown.pane.until(lambda lines: row_of(lines, busy.pid)["CPU"] in ("6.0 s", "6.1 s"),
                         "its CPU time")
        lines = sorted_by(shown, "d", "storage", direct)
        # With the interpreter's own files, where the cache had none of them.
        stored_read = row_of(lines, direct.pid)["DISK-R"]
        assert 64 <= float(stored_read.rstrip("M")) < 96, stored_read
        lines = sorted_by(shown, "m", "RSS", largest)
        assert row_of(lines, reader.pid)["READ"] == "96.0M"
        assert row_of(lines, highest.pid)["PEAK"] in ("301M", "302M")
        shown.pane.keys("g")
        shown.pane.shows("by growth,")
        # What it had grown by before is not shown any more: that would be added. Growth is shown for
        # 5 to 10 seconds: again, if this test was held up for so long.
        for attempt in range(3):
            shown.pane.until(lambda lines: row_of(lines, largest.pid)["GROWTH"] == "0", "no growth")
            largest.go()
            try:
                lines = shown.pane.until(
                    lambda lines: (row_of(lines, largest.pid) or {})["GROWTH"] == "+40.0M"
                    and lines, "the growth", harness.DEADLINE / 4 if attempt < 2 else harness.DEADLINE)
                break
            except AssertionError:
                assert attempt < 2
        assert pids(lines)[0] == largest.pid
        # Nothing else happens to it: it has not grown any more, without any key.
        shown.pane.until(lambda lines: row_of(lines, largest.pid)["GROWTH"] == "0", "no growth")


def test_tree_has_children_below_their_parent(view, spawn):
    script = f"sleep 1000 & : {TOKEN}; bash -c 'sleep 1001 & echo ready; wait' & wait"
    with view(height=300, width=160) as shown:
        top = spawn("bash", "-c", script)
        children = [int(pid) for pid in
                    Path(f"/proc/{top.pid}/task/{top.pid}/children").read_text().split()]
        # A child of `top` has its command line until its exec.
        inner = next(pid for pid in children
                     if Path(f"/proc/{pid}/cmdline").read_text().startswith("bash\0-c\0sleep 1001"))
        leaf = int(Path(f"/proc/{inner}/task/{inner}/children").read_text().split()[0])
        try:
            shown.pane.keys("t")
            shown.pane.shows(", tree")
            lines = shown.pane.until(
                lambda lines: {top.pid, *children, leaf} <= set(pids(lines)) and lines, "the tree")
            at = {int(row["PID"]): (i, row["at"]) for i, row in enumerate(rows(lines))}
            for above, under in ((top.pid, inner), (inner, leaf), *((top.pid, c) for c in children)):
                assert at[under][0] > at[above][0], f"{under} is not below {above}"
                assert at[under][1] == at[above][1] + 2, f"{under} is not indented below {above}"
            assert at[leaf][0] == at[inner][0] + 1
            shown.pane.keys("t")
            lines = shown.pane.shows(", flat") and shown.pane.lines()
            assert len({row["at"] for row in rows(lines)}) == 1
        finally:
            for pid in (*children, leaf):
                os.kill(pid, signal.SIGKILL)


def test_filter(view, target):
    one, other = target("wait", f"mark:{TOKEN}-one"), target("wait", f"mark:{TOKEN}-other")
    with view() as shown:
        shown.only()
        shown.pane.until(lambda lines: set(pids(lines)) == {one.pid, other.pid}, "ours alone")
        shown.only(f"{TOKEN.upper()}-ON")
        shown.pane.until(lambda lines: pids(lines) == [one.pid], "one alone")
        # While it is typed, too; what is left is as it was.
        shown.pane.keys("/")
        shown.pane.keys("-l", "no such thing")
        shown.pane.until(lambda lines: not pids(lines), "nobody")
        shown.pane.shows("/no such thing_")
        shown.pane.keys("Escape")
        shown.pane.until(lambda lines: pids(lines) == [one.pid], "one alone again")
        shown.pane.keys("Escape")
        shown.pane.until(lambda lines: len(pids(lines)) > 3, "everybody")


STEPS = """
import json, os, signal, qprof
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
def wait(what):
    print(json.dumps({"ready": os.getpid(), "at": what}), flush=True)
    signal.sigwait([signal.SIGUSR1])
wait("start")
with qprof.scope("Quantize"):
    wait("outer")
    with qprof.scope("layer 7\\x1b[31m"):
        wait("inner")
    wait("outer again")
qprof.mark("Exported")
wait("end")
"""


def test_phases_of_a_job_appear_as_they_happen(view, target_python, tmp_path):
    with view() as shown:
        shown.only(f"{tmp_path.parent.name}/{tmp_path.name}/target.py")
        one = target_python(STEPS)
        searched(one, harness.QPROF_PACKAGE["QPROF_LIBRARY"])
        for says in ("Quantize   since", "Quantize > layer 7\ufffd[31m   since",
                     "Quantize   since", "Exported   since"):
            one.tell()
            line = shown.pane.until(below(one.pid, says), f"the job, in {says!r}")
            assert re.search(r"since \d\d:\d\d:\d\d   [+-]\d", line), line
        head = shown.pane.shows("qprof-bpf: audit of")
        assert int(re.search(r"(\d+) jobs? ", head)[1]) >= 1
        one.tell()
        one.wait()
        row = shown.pane.until(
            lambda lines: (row := row_of(lines, one.pid, "JOB")) and "ended" in row["COMMAND"]
            and row, "the end of the job")
        assert row["RSS"] == "0" and row["PEAK"].endswith("M")
        assert re.search(r"\d+ jobs? \(\d+ ended\)", shown.pane.lines()[0])
        shown.pane.keys("j")  # processes only
        shown.pane.shows(", processes")
        assert not rows(shown.pane.lines(), "JOB")
        shown.pane.keys("j")  # jobs only
        shown.pane.until(lambda lines: pids(lines, "JOB") == [one.pid] and not pids(lines), "jobs")
        shown.pane.keys("q")
        shown.left()
    assert job_of(parse(shown.report), one.pid)["checkpoints"] == 7


def test_step_is_told_when_phases_are_not_kept_any_more(view, target):
    """A job keeps a thousand phases; what it does is to be seen nevertheless."""
    with view() as shown:
        shown.only()
        one = target("loop", f"mark:{TOKEN}")
        searched(one)
        one.tell()
        shown.pane.until(below(one.pid, "loop   at "), "the last step")


def test_container_of_a_process(view):
    with container() as (inside, _), view() as shown:
        assert "CONTAINER" not in shown.pane.shows("COMMAND")
        with Target("wait", f"mark:{TOKEN}", prefix=inside) as one:
            shown.only()
            row = shown.pane.until(
                lambda lines: (row := row_of(lines, one.pid)) and "CONTAINER" in row and row,
                "the container")
            assert row["CONTAINER"] == CONTAINER[:12]
            shown.only(CONTAINER)
            shown.pane.until(lambda lines: pids(lines) == [one.pid], "who is in it")


def test_losses_are_in_plain_sight(view, target):
    with view("--checkpoint-limit", "10") as shown:
        one = target("loop")
        searched(one)
        one.tell()
        shown.pane.shows("checkpoints beyond the limit of a process")


def test_lists_scroll(view, tmp_path):
    with Load(tmp_path / "truth", idle=60), view(height=24) as shown:
        shown.only(f"{tmp_path.parent.name}/{tmp_path.name}")
        # Not the header's "audit of 6.1 s".
        status = shown.pane.until(
            lambda lines: re.search(r" (\d+)-(\d+) of (6\d) ", "\n".join(lines)), "all of them")
        first, last, n = map(int, status.groups())
        assert first == 1 and n >= 60
        page = last
        assert page == len(pids(shown.pane.lines()))
        shown.pane.keys("NPage")
        shown.pane.shows(f"{page}-{2 * page - 1} of {n}")
        shown.pane.keys("Down")
        shown.pane.shows(f"{page + 1}-{2 * page} of {n}")
        shown.pane.keys("End")
        shown.pane.shows(f"{n - page + 1}-{n} of {n}")
        shown.pane.keys("Up", "PPage", "Home")
        shown.pane.shows(f"1-{page} of {n}")


def test_changes_are_drawn_as_all_of_it_would_be(view, tmp_path):
    """Lines that come in between move those below; drawn anew, all is where it was."""
    with view(height=60) as shown:
        shown.only(f"{tmp_path.parent.name}/{tmp_path.name}")
        with Load(tmp_path / "truth", idle=45, forks=20, checkpoints=100, workers=3,
                  seconds=2) as load:
            shown.pane.until(lambda lines: len(pids(lines)) >= 45, "all of the load")
            load.go()
            shown.pane.until(lambda lines: len(pids(lines, "JOB")) == 3, "its jobs")
            load.finished()
            shown.pane.until(lambda lines: sum("ended" in line for line in lines) >= 3, "their ends")
            for key in ("j", "t", "c", "j", "j", "t", "m"):
                shown.pane.keys(key)
            shown.pane.shows("by RSS, flat")
            # It is quiet when nothing changes any more.
            lines = shown.pane.until(lambda lines: shown.pane.lines()[4:] == lines[4:] and lines,
                                     "a screen that stands still")
            shown.pane.keys("C-l")
            shown.pane.until(lambda now: now[4:] == lines[4:] and now[0] != lines[0],
                             "the same, drawn anew", 20)


def test_whole_screen_scrolls(tmp_path):
    """What ncurses takes for the lines of the screen is what they are, from the first byte on."""
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update(TERM="screen", LINES="7", COLUMNS="50")
        wait = "until [ $(stty size | cut -d' ' -f1) = 43 ]; do sleep 0.01; done"
        os.execlp("sh", "sh", "-c", f"{wait}; exec {QPROF} -a -o {tmp_path}/audit.yaml")
    termios.tcsetwinsize(terminal, (43, 120))
    seen = b""
    try:
        while b"COMMAND" not in seen:
            ready, _, _ = select.select([terminal], [], [], harness.DEADLINE)
            assert ready, f"nothing more after {seen!r}"
            seen += os.read(terminal, 65536)
        regions = re.findall(rb"\x1b\[(\d*);(\d*)r", seen)
        assert regions and set(regions) == {(b"1", b"43")}, regions
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def test_help_says_which_keys(view):
    with view() as shown:
        shown.pane.keys("h")
        shown.pane.shows("sort by growth         of RSS in the last 5 to 10 seconds")
        shown.pane.keys("Space")
        shown.pane.shows("COMMAND")


@pytest.mark.parametrize("by, status", [("C-c", 0), ("SIGTERM", 0), ("SIGINT", 0),
                                        ("SIGABRT", 134), ("SIGSEGV", 139), ("SIGHUP", 129),
                                        ("SIGQUIT", 131)])
def test_terminal_is_restored_on_every_way_out(view, by, status):
    with view() as shown:
        assert shown.pane.on_screen_of_its_own()
        if by.startswith("SIG"):
            os.kill(shown.pid, getattr(signal, by))
        else:
            shown.pane.keys(by)
        shown.left(status)
    if not status:
        assert parse(shown.report)["qprof"]["mode"] == "audit"


def test_terminal_is_restored_after_an_error(view, tmp_path):
    """Of the report, at the end: it is to be seen on the screen that was there before."""
    with Pane(AROUND.format(command=f"{QPROF} -a -o /dev/full", before=tmp_path / "before",
                            after=tmp_path / "after")) as pane:
        pane.shows("COMMAND")
        pane.keys("q")
        pane.shows("cannot write the report to '/dev/full'")
        pane.shows("status 125")
        has_left(pane)
        assert not pane.on_screen_of_its_own()
        assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()


def test_duration_ends_it(view):
    with view("-d", "2s") as shown:
        shown.left()
    assert parse(shown.report)["qprof"]["duration_secs"] >= 2


SHELL = "PS1='$ ' exec bash --norc --noprofile -i"


def test_stopped_and_continued_by_a_shell(tmp_path):
    """^Z gives the terminal back; bg: it goes on unseen; fg: it is there again."""
    report = tmp_path / "audit.yaml"
    with Pane(SHELL) as pane:
        pane.shows("$")
        pane.keys("-l", f"{QPROF} -a -o {report}")
        pane.keys("Enter")
        pane.shows("COMMAND")
        pane.keys("C-z")
        pane.shows("Stopped")
        assert not pane.on_screen_of_its_own()
        pane.keys("-l", "fg")
        pane.keys("Enter")
        pane.shows("COMMAND")
        assert pane.on_screen_of_its_own()
        pane.keys("C-z")
        pane.shows("Stopped")
        pane.keys("-l", "bg; sleep 0.3; echo in the back''ground")
        pane.keys("Enter")
        pane.shows("in the background")
        shell = pane.shell_pid()
        [pid] = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        assert state in "SRD", f"expected it to go on, its state is {state}"
        assert not pane.on_screen_of_its_own()
        pane.keys("-l", "fg")
        pane.keys("Enter")
        pane.until(lambda _: pane.on_screen_of_its_own(), "the view, in the foreground")
        pane.shows("COMMAND")
        pane.keys("q")
        pane.until(lambda lines: lines and any("PROCESS" in line for line in lines)
                   and not pane.on_screen_of_its_own(), "the table of the end")
    assert parse(report)["qprof"]["mode"] == "audit"


@pytest.mark.parametrize("width, height", [(20, 5), (1, 1), (3, 2), (60, 4), (80, 24), (300, 100)])
def test_any_size(view, width, height):
    with view() as shown:
        for _ in range(2):
            shown.pane.tmux("resize-window", "-x", width, "-y", height)
            # Drawn for that size: what does not fit is cut, with dots. (A terminal of one
            # character has nothing but the last one of the last line, which would scroll it.)
            begin = "qprof-bpf" if width > 3 else "..." if width > 1 else ""
            shown.pane.until(lambda lines: len(lines) == height and lines[0].startswith(
                begin[:width]) and all(len(line) <= width for line in lines),
                "the screen, in its new size")
            for key in ("t", "j", "h", "h", "NPage", "End", "c", "j", "j", "t"):
                shown.pane.keys(key)
            shown.pane.tmux("resize-window", "-x", 120, "-y", 40)
            shown.pane.shows("COMMAND")
        if width >= 80:
            shown.pane.tmux("resize-window", "-x", width, "-y", height)
            shown.pane.until(lambda lines: len(lines) == height and len(rows(lines)) > 3, "rows")
        shown.pane.keys("q")
        shown.left()




HOSTILE = (b"\x1b]0;OWNED\x07", b"\x1b[2J\x1b[?1049l", b"\x9b31m", b"\xc2\x9b31m", b"a\nb\rc\td",
           b"\xff\xfe\x80", b"\xe2\x80\xae" b"drowssap", "e\u0301\u0300\u0301\u0302 z".encode(),
           "\u91cf\u5b50\u5316\U0001f600".encode() * 40, b"\x0e\x0f\x08\x08\x7f")


def test_hostile_names_do_not_reach_the_terminal(view, tmp_path):
    raw = tmp_path / "raw"
    processes = [subprocess.Popen([TOKEN.encode() + name, b"1000"], executable="/bin/sleep")
                 for name in HOSTILE]
    try:
        with view() as shown:
            shown.pane.tmux("pipe-pane", "-o", f"cat >'{raw}'")
            shown.only()
            lines = shown.pane.until(
                lambda lines: {p.pid for p in processes} == set(pids(lines)) and lines, "all")
            # Each is on a line of its own, with columns where they belong.
            for row in rows(lines):
                assert row["USER"] == "root" and row["COMMAND"].startswith(TOKEN), row
            shown.pane.keys("C-l", "t", "t")
            shown.pane.shows("by RSS, flat")
            assert shown.pane.on_screen_of_its_own()
            assert "OWNED" not in shown.pane.is_a("pane_title")
            wide = row_of(lines, processes[8].pid)["COMMAND"]
            assert wide.startswith(TOKEN) and wide.endswith(" 1000"), wide
            assert "\u2026" in wide and "\U0001f600" in wide, wide
            combined = row_of(lines, processes[7].pid)["COMMAND"]
            assert combined.endswith("z 1000"), combined
            shown.pane.keys("q")
            shown.left()
            wait_for(lambda: b"audit of" in raw.read_bytes(), "what was sent to the terminal")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    sent = raw.read_bytes()
    for bad in (b"\x1b]0;", b"\x9b31m", b"\xc2\x9b", b"a\nb", b"\xff\xfe", b"\xe2\x80\xae",
                b"\x0e\x0f\x08"):
        assert bad not in sent, f"{bad!r} was sent to the terminal"
    assert sent.count(b"\x1b[?1049l") <= 1, "the screen was left by a name"


def test_other_character_sets(view):
    """In a locale that is not UTF-8 nothing but ASCII is sent."""
    name = TOKEN.encode() + "\u91cf\u5b50\xe9".encode()
    one = subprocess.Popen([name, b"1000"], executable="/bin/sleep")
    try:
        with view(env={"LC_ALL": "C"}) as shown:
            shown.only()
            row = shown.pane.until(lambda lines: row_of(lines, one.pid), "the row")
            assert row["COMMAND"] == f"{TOKEN}??? 1000"
    finally:
        one.kill()
        one.wait()


def test_no_color(view):
    for env, colours in (({"NO_COLOR": "1"}, False), ({}, True)):
        with view("--checkpoint-limit", "1", env=env) as shown:
            shown.only()
            with Target("loop", f"mark:{TOKEN}") as one:
                searched(one)
                one.tell()
                shown.pane.shows("checkpoints beyond the limit")
                shown.pane.shows("loop   ")
                escapes = shown.pane.tmux("capture-pane", "-p", "-e")
            assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", escapes)) == colours, repr(escapes)


def test_terminal_that_is_stopped_holds_nobody_up(view, tmp_path):
    """^S: nothing is drawn, but everything is taken, and the report is written. (The table after
    it waits for the terminal, as all that is written to one does.)"""
    with Load(tmp_path / "truth", forks=200, checkpoints=2000, workers=4, seconds=2) as load:
        with view() as shown:
            shown.pane.keys("C-s")
            load.go()
            load.finished()
            os.kill(shown.pid, signal.SIGTERM)
            wait_for(lambda: shown.report.exists() and b"\nquality:" in shown.report.read_bytes(),
                     "the report")
            shown.pane.keys("C-q")
            shown.left()
    report = parse(shown.report)
    wrong = reconcile(report, load)
    assert not wrong, f"{len(wrong)} are wrong, such as {wrong[:3]}"


def test_output_to_stdout(view, tmp_path):
    """The report can go where stdout goes; the view is asked for then."""
    out = tmp_path / "out.yaml"
    with view("--live", "-o", "-", redirect=f">{out}") as shown:
        shown.pane.keys("q")
        shown.left()
    assert parse(out)["qprof"]["mode"] == "audit"


def says(folder, *options, redirect="", env=None):
    """What an audit on a terminal says that shows no view."""
    shown = View(folder, *options, "-d", "300ms", redirect=redirect, env=env)
    with shown.pane as pane:
        has_left(pane)
        lines = pane.lines()
    return "\n".join(lines)


def test_where_it_is_not_wanted(tmp_path):
    assert "auditing" in says(tmp_path, "--no-live")
    assert "auditing" in says(tmp_path, redirect=f">{tmp_path}/out")
    assert "auditing" in says(tmp_path, "-v")
    assert "auditing" in says(tmp_path, env={"TERM": "dumb"})
    text = says(tmp_path, "-q")
    assert "auditing" not in text and "PROCESS" not in text


def test_where_it_cannot_be(tmp_path):
    out = tmp_path / "audit.yaml"
    run = run_qprof("-a", "--live", "-o", out, start_new_session=True)
    assert run.returncode == 125, run
    assert re.fullmatch("qprof-bpf: --live: there is no terminal: .*\n", run.stderr), run
    for name in ("dumb", "no-such-terminal"):
        text = says(tmp_path, "--live", env={"TERM": name})
        assert f"'{name}' (TERM)" in text and "status 125" in text, text
