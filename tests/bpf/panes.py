# SPDX-License-Identifier: GPL-2.0-only
"""A terminal to run programs in: a pane of a tmux server of its own, with keys and what is to be seen."""

import os
import re
import shutil
import subprocess
import tempfile
import time

import pytest

from harness import CLEAN_ENV, DEADLINE

LEFT = {"USER": 8, "CONTAINER": 12, "COMMAND": 1000}  # columns of text, and how wide they are


class Pane:
    """Runs the command, a line for sh. What it says stays to be seen when it has ended."""

    def __init__(self, command, width=120, height=40):
        if not shutil.which("tmux"):
            pytest.skip("tmux is not installed: tools/setup test")
        self.folder = tempfile.TemporaryDirectory(prefix="qprof-pane-")
        self.socket = f"{self.folder.name}/tmux"
        self.env = {**CLEAN_ENV, "LC_ALL": "C.UTF-8"}
        for name in ("TMUX", "TMUX_PANE", "NO_COLOR"):
            self.env.pop(name, None)
        self.tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", width, "-y", height,
                  "sh", "-c", f"tmux -S {self.socket} wait-for go; {command}")
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        self.tmux("set-option", "-g", "window-size", "manual")
        self.tmux("resize-window", "-x", width, "-y", height)
        self.tmux("wait-for", "-S", "go")

    def tmux(self, *args):
        done = subprocess.run(["tmux", "-S", self.socket, *map(str, args)], env=self.env,
                              capture_output=True, timeout=DEADLINE, check=False)
        assert done.returncode == 0, f"tmux {args}: {done.stderr.decode(errors='replace')}"
        return done.stdout.decode(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env,
                       capture_output=True, check=False)
        self.folder.cleanup()

    def keys(self, *names):
        """By tmux's names of them: C-c, PPage, Escape, or a text."""
        self.tmux("send-keys", *names)

    def is_a(self, flag):
        """Of tmux's flags of a pane, such as alternate_on."""
        return self.tmux("display-message", "-p", f"#{{{flag}}}").strip()

    def on_screen_of_its_own(self):
        return self.is_a("alternate_on") == "1"

    def lines(self):
        return self.tmux("capture-pane", "-p").split("\n")[:-1]

    def until(self, condition, what, seconds=DEADLINE):
        """The first true answer of condition(lines)."""
        end = time.monotonic() + seconds
        while True:
            lines = self.lines()
            answer = condition(lines)
            if answer:
                return answer
            seen = "\n".join(lines)
            assert time.monotonic() < end, f"{what}: not within {seconds} s; to be seen is:\n{seen}"
            time.sleep(0.05)

    def shows(self, text, seconds=DEADLINE):
        """Waits until a line has that; the line."""
        return self.until(lambda lines: next((line for line in lines if text in line), None),
                          f"the text {text!r}", seconds)

    def shell_pid(self):
        return int(self.is_a("pane_pid"))


def columns_of(titles):
    """From a line of titles, where each column is."""
    spans, end = {}, -1
    for token in re.finditer(r"\S+", titles):
        name = token[0]
        if name in LEFT:
            spans[name] = (token.start(), token.start() + LEFT[name])
        else:
            spans[name] = (end + 1, token.end())
        end = spans[name][1]
    return spans


def rows(lines, first="PID"):
    """The rows below the titles that begin with `first` (PID or JOB), each as {title: text}."""
    found, spans = [], None
    for line in lines:
        words = line.split()
        if "COMMAND" in words:
            spans = columns_of(line) if words[0] == first else None
        elif spans:
            row = {name: line[start:end].strip() for name, (start, end) in spans.items()}
            if row[first].isdigit():
                row["at"] = len(line) - len(line[spans["COMMAND"][0]:].lstrip())
                found.append(row)
    return found


def pids(lines, first="PID"):
    return [int(row[first]) for row in rows(lines, first)]
