# SPDX-License-Identifier: GPL-2.0-only
"""The service, for the tests of it."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import (CLEAN_ENV, DEADLINE, NOBODY, QPROF, Attached, last_json, parse, program, public_dir,
                     repeated_if_hasty, run_qprof)

SOMEBODY = 65533


def as_user(uid):
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")


class Service(Attached):
    """qprof-bpf -a --serve in a directory of its own. Entered, runs may come."""

    SAYS = "serving runs at"

    def __init__(self, folder, options=()):
        super().__init__(folder / "audit.yaml")
        self.socket = str(folder / "socket")
        self.args = [str(QPROF), "-a", f"--serve={self.socket}", "-o", str(self.path), *map(str, options)]
        self.runs = 0  # of run(), with those that were repeated

    def run(self, *args, **kwargs):
        """A run of that user, with its profile, which is the user's own; see repeated_if_hasty()."""
        return repeated_if_hasty(lambda: self._run_once(*args, **kwargs))

    def _run_once(self, folder, *command, uid=NOBODY, options=(), status=0, env=None, qprof=None):
        path = Path(folder) / "qprof.yaml"
        self.runs += 1
        run = run_qprof("-q", "--service", self.socket, "-o", path, *options, "--", *command, env=env,
                        through=as_user(uid), qprof=qprof)
        run.path = path
        assert run.returncode == status, f"expected exit status {status}; {run}"
        run.profile = parse(path)
        if run.profile:
            assert path.stat().st_uid == uid
            run.truth = last_json(run.stdout)
        return run

    def connections(self):
        """Its sockets, and what came with messages, as they come and go."""
        names = []
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                names.append(os.readlink(link))
        return sum(name.startswith("socket:") or "pidfd" in name or name == "/dev/null" for name in names)


@pytest.fixture
def folder():
    """nobody's."""
    with public_dir(NOBODY) as path:
        yield path


@pytest.fixture
def service():
    with public_dir() as path, Service(path) as running:
        yield running


def own_copy(folder, name="idle", mode=0o755, owner=NOBODY):
    """A file that nobody has searched yet."""
    path = folder / f"own-{name}"
    shutil.copy(program(name), path)
    os.chown(path, owner, owner)
    path.chmod(mode)
    return path


def shape(profile):
    """What is the same in each run: names, order and depth, without times and pids."""
    return [(p["name"], p.get("kind"), p.get("depth", 0), p.get("closed", True)) for p in profile["phases"]]


RUNS_AND_DIES = """
import signal, subprocess, sys
run = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
print(run.stdout.readline().decode(), flush=True)
run.send_signal(signal.SIGKILL)
run.wait()
"""


def run_that_is_killed(service, folder, *args):
    """nobody's run, with these options and command, dies by SIGKILL when the command has said that it is ready. The
    command goes on. What it said."""
    done = subprocess.run([*as_user(NOBODY), sys.executable, "-c", RUNS_AND_DIES, str(QPROF), "-q", "--service",
                           service.socket, "-o", folder / "x.yaml", *args], check=True, timeout=DEADLINE, env=CLEAN_ENV,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)
