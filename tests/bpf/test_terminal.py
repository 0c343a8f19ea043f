# SPDX-License-Identifier: GPL-2.0-only
"""A command on a terminal: it looks as it does without us, and ^C is its own."""

import os
import re
import shutil
import signal

import pytest

from harness import (CLEAN_ENV, MIB, PYTHON, QPROF, QPROF_PACKAGE, ending, parse, process_of, step_names,
                     wait_for)
from terminal import CONTROL_C, CONTROL_D, Terminal

# Changes of its memory, by which a live line would come while it waits.
PROGRESS = """
import time
for i in range(0, 101, 5):
    block = bytearray(1 << 20)
    print(f"\\r{i:3}%|{'#' * (i // 5):20}|", end="", flush=True)
    time.sleep(0.02)
"""

CURSES = """
import curses
def main(screen):
    curses.curs_set(0)
    for key in "abq":
        screen.clear()
        screen.border()
        screen.addstr(3, 3, f"press {key}", curses.A_REVERSE)
        screen.refresh()
        while screen.getkey() != key:
            pass
        block = bytearray(4 << 20)
curses.wrapper(main)
"""

PAGE = "".join(f"line {number} of the text\n" for number in range(1, 61))

# Each a command, and what is waited for and pressed.
PROGRAMS = {
    "python": ([PYTHON, "-q", "-i"], [
        (b">>> ", b"name = input('name? ')\n"),
        (b"\r\nname? ", b"Ann\n"),
        (b">>> ", b"len(bytearray(1 << 24))\n"),
        (b"16777216\r\n", b""),
        (b">>> ", CONTROL_C),
        (b"KeyboardInterrupt\r\n", b""),
        (b">>> ", CONTROL_C),
        (b"KeyboardInterrupt\r\n", b""),
        (b">>> ", b"name\n"),
        (b"'Ann'\r\n", b""),
        (b">>> ", CONTROL_D)]),
    "less": (["less", "page.txt"], [
        (b"line 23 of", b" "),
        (b"line 46 of", b"/line 60\n"),
        (b"(END)", b"q")]),
    "curses": ([PYTHON, "curses_program.py"], [
        (b"press a", b"a"),
        (b"press b", b"b"),
        (b"press q", b"q")]),
    "progress": ([PYTHON, "progress.py"], []),
}


@pytest.fixture
def home(tmp_path):
    (tmp_path / "progress.py").write_text(PROGRESS)
    (tmp_path / "curses_program.py").write_text(CURSES)
    (tmp_path / "page.txt").write_text(PAGE)
    return tmp_path


@pytest.mark.parametrize("quiet", [False, True], ids=["loud", "quiet"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_looks_as_it_does_without_us(home, name, quiet):
    """Byte for byte; what we have to say comes after it, on a line of its own."""
    command, steps = PROGRAMS[name]
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    with Terminal(*command, home=home) as alone:
        status = alone.play(steps)
    with Terminal(QPROF, *(["-q"] if quiet else []), "--", *command, home=home) as watched:
        assert watched.play(steps) == status, watched.shown
    ours = watched.shown[len(alone.shown):]
    assert watched.shown.startswith(alone.shown), (
        f"expected the bytes that {name} shows alone:\n{alone.shown}\ngot:\n{watched.shown}")
    if quiet:
        assert not ours, f"expected nothing after them, got {ours}"
    else:
        assert ours.startswith(b"\r\nqprof-bpf: "), f"expected the summary next, got {ours}"
        assert b"\x1b" not in ours and b"\r\r" not in ours, ours
    assert step_names(parse(home / "qprof.yaml"), ends=True)[-1] == "End"


CLEANS_UP = """
import time, qprof
try:
    print("ready", flush=True)
    time.sleep(1000)
except KeyboardInterrupt:
    with qprof.scope("Cleanup"):
        block = bytearray(64 << 20)
    print("cleaned up", flush=True)
    raise
"""


def test_control_c_is_the_commands(home):
    """The profile has the clean-up, and the summary comes after the traceback."""
    (home / "cleans_up.py").write_text(CLEANS_UP)
    with Terminal(QPROF, "--", PYTHON, "cleans_up.py", home=home, **QPROF_PACKAGE) as terminal:
        status = terminal.play([(b"ready", CONTROL_C)])
    shown = terminal.shown.decode()
    assert status == -signal.SIGINT, f"expected to end as the command did, got {status}: {shown}"
    order = [shown.find(text) for text in ("cleaned up", "Traceback", "KeyboardInterrupt", "qprof-bpf: ")]
    assert -1 not in order and order == sorted(order), f"expected the summary last, got {shown}"
    profile = parse(home / "qprof.yaml")
    assert step_names(profile, ends=True) == ["Start", "Cleanup Start", "Cleanup End", "End"], profile
    assert profile["peak_memory_mb"] > 64, f"expected the 64 MiB of the clean-up, got {profile['peak_memory_mb']}"
    assert ending(profile["processes"][0]) == -signal.SIGINT, profile["processes"]


BUSY = "while True: block = bytearray(1 << 22)"


def attached(home, redirected, *options):
    """qprof-bpf on a program that was started in the background of the same terminal."""
    script = f"{PYTHON} -c '{BUSY}' {redirected} & exec \"$@\" -p $!"
    return Terminal("sh", "-c", script, "sh", QPROF, *options, home=home)


def test_live_line(home):
    """While nobody else has the terminal. It is gone before anything else is there."""
    with attached(home, "</dev/null >/dev/null 2>&1") as terminal:
        terminal.wait_for(b"  RSS ")
        terminal.wait_for(b"\x1b[K")
        terminal.send(CONTROL_C)
        terminal.wait_for(b"qprof-bpf: ")
        terminal.wait_for(b"next: ")
        kill_attached(home)
        assert terminal.finish() == 0, terminal.shown
    *_, last, summary = terminal.shown.partition(b"ends it\r\n")[2].split(b"\r\x1b[K")
    assert b"RSS" in last and summary.startswith(b"\r\nqprof-bpf: "), terminal.shown


@pytest.mark.parametrize("redirected", ["", "</dev/null >/dev/null", ">/dev/null 2>&1 </dev/tty"])
def test_no_live_line_on_a_terminal_of_the_program(home, redirected):
    with attached(home, redirected, "-d", "0.5") as terminal:
        terminal.wait_for(b"next: ")
        kill_attached(home)
        assert terminal.finish() == 0, terminal.shown
    assert b"RSS" not in terminal.shown, f"expected no live line, got {terminal.shown}"


def kill_attached(home):
    os.kill(parse(home / "qprof.yaml")["processes"][0]["pid"], signal.SIGKILL)


def test_the_second_control_c_ends_us_if_the_command_ignores_it(home):
    """Nobody is left without a way out. The command runs on, and the profile is valid."""
    with Terminal(QPROF, "--", "sh", "-c", "trap '' INT; echo $$; sleep 1000; exit 3", home=home) as terminal:
        terminal.wait_for(b"\r\n")
        command = int(terminal.shown)
        try:
            wait_for(lambda: pressed_in_vain(terminal), "the end of qprof-bpf")
            assert terminal.process.wait() == 128 + signal.SIGINT
            os.kill(command, 0)
        finally:
            os.killpg(terminal.process.pid, signal.SIGKILL)
        terminal.finish()
    assert b"stopped at once" in terminal.shown, terminal.shown
    assert step_names(parse(home / "qprof.yaml"), ends=True) == ["Start"], parse(home / "qprof.yaml")


def pressed_in_vain(terminal):
    """Presses ^C once more. True: qprof-bpf has ended."""
    if terminal.process.poll() is None:
        terminal.send(CONTROL_C)
    return terminal.process.poll() is not None
