# SPDX-License-Identifier: GPL-2.0-only
"""What one recorded profile does not happen to have: profiles that are made up, in every format.

edges.yaml has reused pids, phases that cross, open ones, swap, odd metrics, more warnings and processes than are
shown; rows.yaml has rows only; odd.yaml has names that are hard to show; curves.yaml was recorded of
tests/programs/pattern.c: it has CPU time and I/O between its checkpoints; gpu.yaml has memory of GPUs. Their reports are edges/NAME.FORMAT, byte
for byte: QPROF_UPDATE_GOLDEN=1 writes them anew, to be looked at before they are committed.
"""

import os

import pytest

from reports import HERE, report, run
from test_formats import to_compare

REPORTS = {
    "edges.text": ["-f", "text", "--width", "80"],
    "edges.text-narrow": ["-f", "text", "--width", "60", "--sort", "delta", "--top", "4"],
    "edges.text-wide": ["-f", "text", "--width", "200", "--sort", "read"],
    "edges.json": ["-f", "json"],
    "edges.csv": ["-f", "csv"],
    "edges.csv-processes": ["-f", "csv", "--table", "processes"],
    "edges.csv-memory_usage": ["-f", "csv", "--table", "memory_usage"],
    "edges.csv-timeline": ["-f", "csv", "--table", "timeline"],
    "edges.svg": ["-f", "svg", "--top", "3"],
    "edges.mprof": ["-f", "mprof"],
    "edges.chrome": ["-f", "chrome"],
    "edges.chrome-phase": ["-f", "chrome", "--phase", "[!A]*"],
    "edges.perfetto": ["-f", "perfetto"],
    "edges.html": ["-f", "html", "--sort", "write", "--top", "2"],
    "edges.text-write": ["-f", "text", "--width", "70", "--sort", "write", "--top", "3"],
    "edges.text-cpu": ["-f", "text", "--width", "90", "--sort", "cpu", "--top", "13"],
    "edges.mprof-phase": ["-f", "mprof", "--phase", "layer*"],
    "odd.text": ["-f", "text", "--width", "60"],
    "odd.json": ["-f", "json"],
    "odd.svg": ["-f", "svg", "--phase", "[!8]*"],
    "odd.mprof": ["-f", "mprof"],
    "odd.chrome": ["-f", "chrome"],
    "odd.perfetto": ["-f", "perfetto"],
    "odd.html": ["-f", "html", "--phase", "layer*"],
    "odd.csv": ["-f", "csv", "--table", "phases"],
    "rows.text": ["-f", "text", "--width", "100", "--sort", "duration"],
    "rows.json": ["-f", "json"],
    "rows.svg": ["-f", "svg"],
    "rows.chrome": ["-f", "chrome"],
    "rows.mprof": ["-f", "mprof"],
    "rows.html": ["-f", "html"],
    "gpu.text": ["-f", "text", "--width", "100"],
    "gpu.json": ["-f", "json"],
    "gpu.csv": ["-f", "csv", "--table", "phases"],
    "gpu.csv-memory_usage": ["-f", "csv", "--table", "memory_usage"],
    "gpu.csv-gpu_timeline": ["-f", "csv", "--table", "gpu_timeline"],
    "gpu.svg": ["-f", "svg"],
    "gpu.chrome": ["-f", "chrome"],
    "gpu.perfetto": ["-f", "perfetto"],
    "gpu.html": ["-f", "html"],
    "curves.text": ["-f", "text", "--width", "80"],
    "curves.json": ["-f", "json"],
    "curves.csv-usage_timeline": ["-f", "csv", "--table", "usage_timeline"],
    "curves.svg": ["-f", "svg"],
    "curves.chrome": ["-f", "chrome"],
    "curves.perfetto": ["-f", "perfetto"],
    "curves.mprof": ["-f", "mprof"],
    "curves.html": ["-f", "html"],
}


E, R = "edges.yaml", "rows.yaml"
LIMITS = ["--max-io-increase", "1G", "--max-peak-increase", "5%", "--max-time-increase", "200%", "--budget", "[AB].time=5s",
          "--budget", "whose.end=90M", "--budget", "whose.need=100M", "--budget", "cpu=4s", "--budget", "none.io=1G"]
DIFFS = {  # the exit status, and the arguments
    "diff.text": (1, ["--width", "100", *LIMITS, R, E]),
    "diff.json": (1, ["-f", "json", *LIMITS, R, E]),
    "diff.text-all": (0, ["--all", E, E]),
    "diff.text-repeats": (1, ["--max-peak-increase", "1M", "--max-time-increase", "1%", f"{R},{E},{E}", f"{E},{R}"]),
    "diff.json-repeats": (0, ["-f", "json", f"{R},{E},{E}", f"{E},{R}"]),
    "diff.text-back": (0, ["--max-io-increase", "1G", "--allow-failed", E, E]),
}


def same_as_file(name, got):
    path = HERE / "edges" / name
    if os.environ.get("QPROF_UPDATE_GOLDEN"):
        path.write_bytes(got)
    expected = path.read_bytes()
    if got != expected:
        at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
        pytest.fail(f"byte {at} of {path.name}:\nexpected ...{expected[max(0, at - 100):at + 200]!r}\n"
                    f"got      ...{got[max(0, at - 100):at + 200]!r}")


@pytest.mark.parametrize("name", REPORTS)
def test_edges(name):
    got = report(*REPORTS[name], profile=HERE / "edges" / f"{name.split('.')[0]}.yaml")
    same_as_file(name, to_compare(name.split(".")[1], got))


@pytest.mark.parametrize("name", DIFFS)
def test_diffs(name):
    status, args = DIFFS[name]
    same_as_file(name, run("diff", *args, status=status, cwd=HERE / "edges")[0])
