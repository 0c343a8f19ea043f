# SPDX-License-Identifier: GPL-2.0-only
"""A program alone on a terminal of its own, with every byte that it shows there."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from harness import CLEAN_ENV, DEADLINE, state_of, wait_for

CONTROL_C, CONTROL_D = b"\x03", b"\x04"


class Terminal:
    """The program is the leader of the terminal's session, as one that a shell has exec'ed."""

    def __init__(self, *command, home, width=80, height=24, **env):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.fd = ours
        self.shown = b""
        self.seen = 0  # up to where wait_for() has looked
        # NO_COLOR: what differs from the program's own bytes is then only text.
        env = {**CLEAN_ENV, "TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "HOME": str(home), **env}
        self.process = subprocess.Popen(["setsid", "--ctty", *map(str, command)], stdin=theirs,
                                        stdout=theirs, stderr=theirs, env=env, cwd=home)
        os.close(theirs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)

    def read(self, seconds):
        """Reads more. False: the last program that had the terminal has gone."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            got = os.read(self.fd, 65536)
        except OSError:  # EIO: nobody has the other side
            got = b""
        self.shown += got
        return bool(got)

    def wait_for(self, text):
        """Reads until that text comes, after what was waited for before."""
        end = time.monotonic() + DEADLINE
        while text not in self.shown[self.seen:]:
            assert self.read(0.5), f"it ended before it showed {text!r}; it showed {self.shown!r}"
            assert time.monotonic() < end, f"{text!r} did not come; it showed {self.shown!r}"
        self.seen = self.shown.index(text, self.seen) + len(text)

    def send(self, keys):
        os.write(self.fd, keys)

    def finish(self):
        """Reads to the end. The exit status, or minus the signal."""
        end = time.monotonic() + DEADLINE
        while self.read(0.5):
            assert time.monotonic() < end, f"it does not end; it showed {self.shown!r}"
        return self.process.wait(DEADLINE)

    def play(self, steps):
        """Waits for each text, then presses the keys. The exit status."""
        for text, keys in steps:
            self.wait_for(text)
            if keys == CONTROL_C:  # which Python may miss just before it waits
                wait_for(lambda: state_of(innermost(self.process.pid)) == "S", "the program to wait")
            self.send(keys)
        return self.finish()


def innermost(pid):
    """The child of the child, and so on: the command that qprof-bpf has started."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        pids = children.read().split()
    return innermost(pids[0]) if pids else pid
