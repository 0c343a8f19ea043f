# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf with a command that waits before it ends, so that one can look at both."""

import contextlib
import subprocess
import time

from harness import accounts, columns as c


@contextlib.contextmanager
def at_the_end_of(env, *command, options=()):
    """Yields the profiler's process when the command has said "done"; then both end.

    The command ends when a line comes in: by let_go(), at the end of the block at the latest. The
    profile is env.scratch / "profile.yaml".
    """
    with c.running(env.qprof, "-q", "-o", env.scratch / "profile.yaml", *options, "--", *command,
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env.environ) as process:
        c.Lines(process.stdout).until("done")
        yield process
        if process.returncode is None:
            let_go(process)


def let_go(process):
    """Both come to their end. The profiler's highest resident memory, in KiB.

    Not ru_maxrss: that has also what this process had when it forked the profiler.
    """
    highest = accounts.status(process.pid, "VmHWM")
    process.stdin.write(b"\n")
    process.stdin.flush()
    while process.poll() is None:
        with contextlib.suppress(OSError, StopIteration):  # a zombie has no memory
            highest = max(highest, accounts.status(process.pid, "VmHWM"))
        time.sleep(0.001)
    return highest
