# SPDX-License-Identifier: GPL-2.0-only
"""The live view of an audit: what is used per second, lines that fit, and when it sleeps."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import harness
from harness import MIB, PYTHON, QPROF, wait_for
from panes import Pane, rows
from test_audit import searched
from test_audit_view import TOKEN, below, row_of, view  # noqa: F401 (a fixture)


COMPUTE_AND_READ = """
import time
with open("/dev/zero", "rb") as zeros:
    while time.process_time() < 4:
        zeros.read(1 << 20)
print("done", flush=True)
time.sleep(1000)
"""


def test_rates_rise_and_fall(view, tmp_path):
    """Nothing but CPU time and reads tell of it: no event comes, neither while it goes on nor when it
    is over. It is shown all the same, and not for ever."""
    busy = subprocess.Popen([PYTHON, "-c", "input()\n" + COMPUTE_AND_READ, TOKEN],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=harness.CLEAN_ENV)
    lines = harness.Lines(busy.stdout)
    try:
        with view("--live", width=140) as shown:
            shown.only()
            shown.pane.until(lambda lines: row_of(lines, busy.pid), "its row")
            busy.stdin.write(b"\n")
            busy.stdin.flush()

            def figures(lines):
                return row_of(lines, busy.pid)
            row = shown.pane.until(
                lambda lines: (row := figures(lines)) and row["%CPU"] not in ("-", "0")
                and float(row["%CPU"]) > 15 and row["IO/s"].endswith(("M", "G")) and row,
                "what it uses per second")
            assert float(row["%CPU"]) < 110, row
            shown.pane.keys("c")
            shown.pane.shows("by CPU,")
            shown.pane.keys("c")
            shown.pane.shows("by CPU per second,")
            lines.until("done")
            shown.pane.until(lambda lines: (row := figures(lines)) and row["%CPU"] == "0"
                             and row["IO/s"] == "0", "that it has come to rest")
    finally:
        busy.kill()
        busy.wait()


def test_first_lines_adapt_to_the_width(view):
    total = harness.meminfo("MemTotal") / (1 << 20)  # of KiB
    with view(height=30, width=200) as shown:
        for width, has, has_not in (
                (160, ("processes", "jobs", "RSS", "memory"), ()),
                (80, ("jobs", "memory"), ("RSS",)), (60, ("jobs",), ("memory",))):
            shown.pane.tmux("resize-window", "-x", width, "-y", 30)
            head, sums, now = shown.pane.until(
                lambda lines: all(text in lines[0] for text in has)
                and not any(text in lines[0] for text in has_not) and lines,
                f"{has} on {width} columns")[:3]
            assert "..." not in head + sums + now, "a piece is there or not, never cut"
            if "memory" in has:
                of = re.search(r"memory [\d.]+ [MG]iB of ([\d.]+) GiB", head)[1]
                assert float(of) == pytest.approx(total, rel=0.01)
            assert re.match(r"now: (-|CPU [\d.]+ %)", now), now


def test_long_names_are_cut_in_the_middle(view, target):
    name = "model.layers.0.self_attn.projections.of_the_queries_and_the_keys.q_proj"
    with view(height=30, width=80) as shown:
        shown.only()
        one = target(f"mark:{name}", "wait", f"mark:{TOKEN}")
        searched(one)
        one.go()
        line = shown.pane.until(below(one.pid, "since"), "the phase of the job")
        assert re.fullmatch(r" {8}model\.layers\.0.*\u2026.*\.q_proj   since \S+   \S+ \S+", line), line
        row = row_of(shown.pane.lines(), one.pid)
        assert row["COMMAND"].startswith("idle mark") and "\u2026" in row["COMMAND"], row


def test_hugetlb_memory_has_a_column(view, target, huge_pages):
    """Once there is some: no RSS has it."""
    huge_pages(4)
    with view(width=160) as shown:
        shown.only()
        one = target("huge:4", f"mark:{TOKEN}")
        shown.pane.until(lambda lines: row_of(lines, one.pid), "its row")
        assert "HUGE" not in shown.pane.shows("COMMAND")
        size = one.go()["hugetlb_bytes"] / MIB
        # No event tells of it: it is there with the next frame that looks.
        def there(lines):
            shown.pane.keys("Space")
            return (row := row_of(lines, one.pid)) and row.get("HUGE") == f"{size:.2f}M"
        shown.pane.until(there, f"{size} MiB of huge pages")
        assert f"hugetlb {size:.2f} MiB" in shown.pane.lines()[0]


@pytest.mark.parametrize("width", [60, 140, 80])
def test_resized_view_stays_so(view, target, width):
    """Each frame after a resize has the size that the terminal has now, not the one that it had."""
    long = f"{TOKEN}-" + "x" * 300
    with view(width=100, height=30) as shown:
        one = target("wait", f"mark:{long}")
        shown.only()
        shown.pane.until(lambda lines: rows(lines), "the row")
        # One by one, of the same height: the next frames, and all of it anew.
        shown.pane.tmux("resize-window", "-x", width, "-y", 30)
        before = None
        for key in (None, "Space", "C-l", "Space"):
            if key:
                shown.pane.keys(key)
            before = shown.pane.until(
                lambda lines: lines[0].startswith("qprof-bpf: audit of") and lines[0] != before
                and (row := next((line for line in lines if line.split()[:1] == [str(one.pid)]), None))
                and len(row) == width and len(rows(lines)) == 1 and lines[0],
                f"a row of {width} columns, after {key or 'the resize'}")


def turns(pid):
    """How often it was on a CPU, and for how many milliseconds."""
    ns, _, n = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
    return n, ns // 1000000


def quiet_moment(pids_, seconds=6):
    """Who of them slept all the time."""
    before = [turns(pid) for pid in pids_]
    time.sleep(seconds)  # a rate needs time
    return [pid for pid, then in zip(pids_, before) if turns(pid) == then]


def test_nothing_ticks(view):
    with view() as shown:
        intervals = [interval for text in harness.fdinfo_texts(shown.pid).values()
                     for interval in re.findall(r"it_interval: (.*)", text)]
        assert intervals and set(intervals) == {"(0, 0)"}, "a timer ticks"


@pytest.mark.long
def test_rests_where_nothing_happens(tmp_path):
    """In a pid namespace of its own there is nothing but the view, and a program that computes for a
    while: no event tells that it goes on, or that it is over."""
    inside = f"sleep 1000 & exec {QPROF} -a --live -o {tmp_path}/audit.yaml"
    with Pane(f"exec unshare --pid --fork --mount-proc sh -c '{inside}'", width=140) as pane:
        pane.shows("COMMAND")
        shell = pane.shell_pid()
        pid = int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])
        wait_for(lambda: quiet_moment([pid], 3), "a view at rest")
        busy = subprocess.Popen(["nsenter", "-t", str(pid), "-p", "-m", PYTHON, "-c",
                                 COMPUTE_AND_READ, TOKEN], stdout=subprocess.PIPE,
                                env=harness.CLEAN_ENV)

        def figures(lines):
            return next((row for row in rows(lines) if TOKEN in row["COMMAND"]), {})
        try:
            pane.until(lambda lines: (row := figures(lines)) and row["%CPU"] not in ("-", "0")
                       and float(row["%CPU"]) > 15, "what it uses per second")
            harness.Lines(busy.stdout).until("done")
            pane.until(lambda lines: (row := figures(lines)) and row["%CPU"] == "0"
                       and row["IO/s"] == "0", "that it has come to rest")
            wait_for(lambda: quiet_moment([pid], 3), "the view at rest again")
        finally:
            os.kill(pid, signal.SIGKILL)  # the first of its namespace; it would outlive the terminal
            busy.kill()
            busy.wait()
