# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf with a command that waits before it ends, so that one can look at both."""

import contextlib
import os
import subprocess

import columns as c


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
    """Both come to their end. The profiler's resources, its command's included."""
    process.stdin.write(b"\n")
    process.stdin.flush()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage
