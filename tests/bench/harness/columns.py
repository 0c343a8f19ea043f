# SPDX-License-Identifier: GPL-2.0-only
"""What is attached while a program is measured: our own programs, and programs that do nothing.

Each is a context manager: entered, it has said that it is attached; left, it is gone.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import time

from harness.measure import Unavailable

DEADLINE = 60


class Lines:
    """Lines from a pipe, with a deadline."""

    def __init__(self, pipe):
        self.fd = pipe.fileno()
        self.rest = b""
        self.seen = ""

    def until(self, wanted):
        end = time.monotonic() + DEADLINE
        while True:
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                self.seen += line.decode(errors="replace") + "\n"
                if wanted in line.decode(errors="replace"):
                    return line.decode(errors="replace")
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            more = os.read(self.fd, 65536) if ready else b""
            if not more:
                raise Unavailable((self.seen + self.rest.decode(errors="replace")).strip()
                                  .replace("\n", "; ")[-300:] or f"it never said {wanted!r}")
            self.rest += more


def on_cpus(cpus):
    """For Popen: what is started runs on these CPUs only."""
    return lambda: os.sched_setaffinity(0, cpus)


@contextlib.contextmanager
def running(*args, by=signal.SIGINT, **kwargs):
    """A process for as long as the block lasts; then it gets the signal and is waited for."""
    try:
        process = subprocess.Popen([str(arg) for arg in args], **kwargs)
    except OSError as error:
        raise Unavailable(f"{args[0]}: {error.strerror}") from error
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(by)
        try:
            process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()


class Load:
    """programs/load.c, which does what it is told to."""

    def __init__(self, env, threads=1, children=0):
        self.process = subprocess.Popen([env.program("load"), str(threads), str(children), env.scratch],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = json.loads(self.process.stdout.readline())["pid"]

    def do(self, *order):
        """The answer to an order: {"ns", "wall_ns"}."""
        print(*order, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Hooks:
    """programs/hooks.c: attached and detached within milliseconds, as often as one likes."""

    def __init__(self, env, *what):
        # A uprobe goes only after a grace period, and what needs a disk takes its time.
        self.repeats = 2 if {"usdt", "calls", "files", "storage"} & set(what) else 16
        self.process = subprocess.Popen(
            [env.program("hooks"), *map(str, what)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, preexec_fn=on_cpus(env.other_cpus))
        self.lines = Lines(self.process.stdout)
        env.cleanup.callback(self.close)
        try:
            self.lines.until("ready")
        except Unavailable as why:
            raise Unavailable(self.process.communicate()[1].decode().strip()) from why

    def toggle(self, wanted):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.lines.until(wanted)

    @contextlib.contextmanager
    def __call__(self):
        self.toggle("on")
        try:
            yield
        finally:
            self.toggle("off")

    def close(self):
        self.process.kill()
        self.process.communicate()


def ours(env, pid):
    """All programs of qprof-bpf that watch the machine, with pid as what is profiled."""
    return Hooks(env, "ours", pid)


def ours_elsewhere(env, what="ours"):
    """The same with a process that sleeps: everything else is untracked. what: "waits" is with --waits."""
    idle = env.cleanup.enter_context(running("sleep", "infinity", by=signal.SIGKILL))
    return Hooks(env, what, idle.pid)


@contextlib.contextmanager
def ours_attached(env, pid):
    """The program itself: qprof-bpf -p PID. What it yields is its process."""
    with running(env.qprof, "-p", pid, "-o", env.scratch / "profile.yaml", stderr=subprocess.PIPE,
                 preexec_fn=on_cpus(env.other_cpus)) as process:
        Lines(process.stderr).until("attached to")
        yield process
