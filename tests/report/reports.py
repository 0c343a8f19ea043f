# SPDX-License-Identifier: GPL-2.0-only
"""What the tests of reports share: running qprof-bpf without privileges, profiles, the schema."""

import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("QPROF_BUILD", ROOT / "build")).resolve()
QPROF = BUILD / "qprof-bpf"

# Recorded once: two quantizations at a time, marks and metrics, shared memory.
PROFILE = HERE / "profile.yaml"

ENV = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC", "NO_COLOR": "1"}
DEADLINE = 120


def run(*args, status=0, stdin=b"", cwd=None):
    """qprof-bpf with these arguments: its stdout as bytes, its stderr as text."""
    args = [str(QPROF), *map(str, args)]
    done = subprocess.run(args, input=stdin, capture_output=True, timeout=DEADLINE, env=ENV,
                          cwd=cwd, check=False)
    stderr = done.stderr.decode(errors="replace")
    assert done.returncode == status, (
        f"expected exit status {status}, got {done.returncode}: {' '.join(args)}\n{stderr[-4000:]}")
    return done.stdout, stderr


def report(*args, profile=PROFILE, **kwargs):
    """What `qprof-bpf report` makes of the profile, as bytes."""
    return run("report", *args, profile, **kwargs)[0]


def formats():
    """Those that the program itself says it has."""
    text = run("report", "--help")[0].decode()
    text = " ".join(text.split("--format=FORMAT")[1].split("-o, --output")[0].split())
    names = [part.split(" (")[0].strip() for part in text.split(":", 1)[1].split("),")]
    assert "text" in names and "json" in names, text
    return names


def shown(phase):
    """What every report calls a phase."""
    return f"{phase['name']} -> {phase['to']}" if phase["kind"] == "gap" and "to" in phase else phase["name"]


def in_order(phases):
    """As tables have them: stretches between marks come after all pairs."""
    return sorted(phases, key=lambda phase: phase["kind"] == "gap")


def schema():
    return json.loads((ROOT / "docs" / "profile.schema.json").read_text())
