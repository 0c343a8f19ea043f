# SPDX-License-Identifier: GPL-2.0-only
"""Processes that run the same script, side by side, and who waits for whom."""

import json

import pytest

from reports import run


def profile(path, *phases, ranks=4):
    """A profile of ranks 0, 1, ...: phases are (name, {rank: (start, secs, CPU secs, peak)})."""
    text = ('qprof:\n  version: "0"\n  schema_version: 3\nmemory_usage:\n- step: "Start"\n  timestamp: 1.0\n'
            '  relative_time_secs: 0.0\n  cpu_memory_mb: 1.0\ntotal_quantization_time_seconds: 20.0\n'
            'peak_memory_mb: 100.0\nphases:\n')
    for name, of in phases:
        for rank, (start, secs, cpu, peak) in of.items():
            text += (f'- name: "{name}"\n  kind: pair\n  depth: 0\n  pid: {100 + rank}\n  tid: {100 + rank}\n'
                     f"  start_secs: {start}\n  duration_secs: {secs}\n  start_memory_mb: 1.0\n"
                     f"  end_memory_mb: 1.0\n  peak_memory_mb: 90.0\n  delta_memory_mb: 0.0\n"
                     "  io_read_mb: 0.0\n  io_write_mb: 0.0\n  disk_read_mb: 0.0\n  disk_write_mb: 0.0\n"
                     f"  cpu_time_secs: 1.0\n  own_peak_memory_mb: {peak}\n  own_delta_memory_mb: 0.0\n"
                     "  own_io_read_mb: 0.0\n  own_io_write_mb: 0.0\n  own_disk_read_mb: 0.0\n"
                     f"  own_disk_write_mb: 0.0\n  own_cpu_time_secs: {cpu}\n")
    text += "processes:\n"
    for rank in range(ranks):
        text += (f'- pid: {100 + rank}\n  ppid: 1\n  comm: "python3"\n  start_secs: 0.0\n  end_secs: 20.0\n'
                 f"  exit_code: 0\n  rank: {rank}\n  local_rank: {rank}\n  world_size: {ranks}\n"
                 "  peak_memory_mb: 50.0\n")
    path.write_text(text + "quality:\n  may_be_counted_more_than_once_mb:\n    shmem: 0.0\n")
    return path


@pytest.fixture
def report(tmp_path):
    def make(*phases, fmt="json", **kwargs):
        out = run("report", "-f", fmt, "--width", "120", profile(tmp_path / "p.yaml", *phases, **kwargs))[0].decode()
        return json.loads(out)["report"].get("ranks") if fmt == "json" else out
    return make


BARRIER = ("Calibration", {r: (1.0, 5.0, 4.8 if r == 3 else 1.0, 10.0 + r) for r in range(4)})
ALONE = ("Export", {r: (7.0, 4.0 if r == 1 else 1.0, 0.9, 20.0) for r in range(4)})
EVEN = ("Load", {r: (0.0, 1.0, 0.9, 5.0) for r in range(4)})


def test_figures(report):
    ranks = report(BARRIER, ALONE, EVEN)
    assert ranks["ranks"] == 4, ranks
    by_name = {phase["name"]: phase for phase in ranks["phases"]}
    assert by_name["Export"]["duration_secs"] == {
        "lowest": 1, "median": 1, "highest": 4, "lowest_rank": 0, "highest_rank": 1}, by_name["Export"]
    assert by_name["Calibration"]["peak_memory_mb"] == {
        "lowest": 10, "median": 11.5, "highest": 13, "lowest_rank": 0, "highest_rank": 3}, by_name


def test_who_waits_for_whom(report):
    """With a barrier in the phase all take as long; the one that computes is who is waited for."""
    stragglers = {phase["name"]: phase.get("waited_for_rank") for phase in report(BARRIER, ALONE, EVEN)["phases"]}
    assert stragglers == {"Calibration": 3, "Export": 1, "Load": None}, stragglers
    text = report(BARRIER, ALONE, EVEN, fmt="text")
    assert "Calibration: the others wait for rank 3, which computes 4.8 s; median 1.0 s" in text, text
    assert "Export: the others wait for rank 1, which takes 4.0 s; median 1.0 s" in text, text
    assert "Load: the others" not in text, text


def test_repeated_phases_are_matched_in_order(report):
    layers = [("Layer", {r: (i + 1.0, 0.9 - 0.4 * (r == i), 0.1, 5.0) for r in range(2)}) for i in range(2)]
    found = {phase["occurrence"]: phase["duration_secs"]["lowest_rank"] for phase in report(*layers)["phases"]}
    assert found == {1: 0, 2: 1}, found


def test_the_page_has_them(report):
    page = report(BARRIER, ALONE, fmt="html")
    assert '"ranks":' in page.replace(" ", "") and "the others wait for rank 3" in page


def test_one_process_is_no_rank(report, tmp_path):
    assert report(EVEN, ranks=1) is None
    path = profile(tmp_path / "none.yaml", EVEN)
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()
                            if not line.startswith(("  rank:", "  local_rank:", "  world_size:"))))
    assert "BY RANK" not in run("report", path)[0].decode()
