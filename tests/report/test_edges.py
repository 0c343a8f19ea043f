# SPDX-License-Identifier: GPL-2.0-only
"""What one recorded profile does not happen to have: profiles that are made up, in every format.

edges.yaml has reused pids, phases that cross, open ones, swap, odd metrics, more warnings and processes than are
shown; rows.yaml has rows only. Their reports are edges/NAME.FORMAT, byte for byte: QPROF_UPDATE_GOLDEN=1 writes them
anew, to be looked at before they are committed.
"""

import os

import pytest

from reports import HERE, report
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
    "rows.text": ["-f", "text", "--width", "100", "--sort", "duration"],
    "rows.json": ["-f", "json"],
    "rows.svg": ["-f", "svg"],
    "rows.chrome": ["-f", "chrome"],
    "rows.mprof": ["-f", "mprof"],
    "rows.html": ["-f", "html"],
}


@pytest.mark.parametrize("name", REPORTS)
def test_edges(name):
    path = HERE / "edges" / name
    got = to_compare(name.split(".")[1], report(*REPORTS[name], profile=HERE / "edges" / f"{name.split('.')[0]}.yaml"))
    if os.environ.get("QPROF_UPDATE_GOLDEN"):
        path.write_bytes(got)
    expected = path.read_bytes()
    if got != expected:
        at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
        pytest.fail(f"byte {at} of {path.name}:\nexpected ...{expected[max(0, at - 100):at + 200]!r}\n"
                    f"got      ...{got[max(0, at - 100):at + 200]!r}")
