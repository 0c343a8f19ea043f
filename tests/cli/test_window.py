# SPDX-License-Identifier: GPL-2.0-only
"""--window and --of: what they refuse, before anything is begun."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("QPROF_BUILD", ROOT / "build")).resolve()


def refusal(*options):
    done = subprocess.run([BUILD / "qprof-bpf", *options, "--", "true"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 125 and len(done.stderr.splitlines()) == 1, done
    return done.stderr


@pytest.mark.parametrize("schedule", [
    "", ",", "active", "active=", "active=0", "active=-1", "active= 1", "active=1.5", "active=1000001",
    "active=18446744073709551617", "active=1,", ",active=1", "active=1,active=1", "active=1,repeat=0", "active=1,wait=2",
    "skip=2", "skip=1,warmup=1", "skip=1;active=1", "active=1,skip=" + "0" * 64 + "1", "ACTIVE=1",
])
def test_wrong_schedules(schedule):
    assert "--window" in refusal("--stacks", f"--window={schedule}", "--of", "Layer *")


@pytest.mark.parametrize("options, why", [
    (["--stacks", "--window", "active=1"], "--of 'Layer *'"),
    (["--stacks", "--of", "Layer *"], "--of is for --window"),
    (["--stacks", "--window", "active=1", "--of", ""], "--of"),
    # The schedule is understood: it is something else that is missing.
    (["--window", "skip=2,warmup=1,active=3,repeat=2", "--of", "Layer *"], "--window is for --stacks and --waits"),
    (["--window", "repeat=1000000,active=1000000,skip=0", "--of", "*"], "--window is for --stacks and --waits"),
])
def test_what_belongs_together(options, why):
    assert why in refusal(*options)
