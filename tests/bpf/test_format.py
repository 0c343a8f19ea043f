# SPDX-License-Identifier: GPL-2.0-only
"""The profile as a file: whoever reads Quark's reads ours."""

import re

import pytest
import yaml

from harness import assert_near, parse, program, rows, MIB

# Of AMD Quark's documented example of quark_profile.yaml, in its order.
QUARK_STEP = ["step", "timestamp", "relative_time_secs", "cpu_memory_mb", "disk_read_mb",
              "disk_write_mb"]
QUARK_END = ["total_quantization_time_seconds", "peak_memory_mb"]
QUARK_GPU = ["gpu_memory_mb", "peak_gpu_memory_mb"]

OUR_STEP = ["step_peak_memory_mb", "io_read_mb", "io_write_mb", "cpu_time_secs", "pid", "tid"]
OUR_END = ["main_peak_memory_mb", "total_disk_read_mb", "total_disk_write_mb",
           "total_disk_write_cancelled_mb", "total_io_read_mb", "total_io_write_mb",
           "total_cpu_time_secs", "peak", "phases", "processes", "timeline",
           "process_timeline", "usage_timeline", "quality"]
BACKENDS = ["rss", "io_calls", "io_storage", "checkpoints"]


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_quark_reads_it(profile):
    """What a reader of Quark's file does: it takes the keys it knows and computes with them."""
    table = []
    for row in profile["memory_usage"]:
        table.append((row["step"], float(row["timestamp"]), float(row["relative_time_secs"]),
                      float(row["cpu_memory_mb"]), float(row["disk_read_mb"]),
                      float(row["disk_write_mb"])))
    seconds = float(profile["total_quantization_time_seconds"])
    return table, seconds, float(profile["peak_memory_mb"])


@pytest.fixture
def run(profile):
    return profile(program("checkpoints"), "sequence")


def test_quark_keys(run):
    assert isinstance(run.profile["memory_usage"], list)
    for row in rows(run.profile, ends=True):
        known = [key for key in row if key in QUARK_STEP]
        assert known == QUARK_STEP, f"expected {QUARK_STEP} in this order, got {list(row)}"
        assert isinstance(row["step"], str), row
        for key in QUARK_STEP[1:]:
            assert is_number(row[key]), f"{key} is no number in {row}"
    for key in QUARK_END:
        assert is_number(run.profile[key]), f"{key}: {run.profile.get(key)!r}"
    table, seconds, peak = as_quark_reads_it(run.profile)
    assert table[0][0] == "Start" and table[-1][0] == "End", table
    assert seconds == pytest.approx(table[-1][2], abs=0.01), (
        f"total_quantization_time_seconds {seconds}, End at {table[-1][2]}")
    assert peak >= max(line[3] for line in table) - 0.01, f"peak {peak} below a step of {table}"


def test_no_gpu_keys_without_a_gpu(run):
    for row in rows(run.profile, ends=True):
        assert not set(row) & set(QUARK_GPU), f"GPU keys on a run without one: {row}"
    assert not set(run.profile) & set(QUARK_GPU), f"GPU keys on a run without one: {sorted(run.profile)}"


def test_our_keys(run):
    for row in rows(run.profile, ends=True):
        missing = [key for key in OUR_STEP if not is_number(row.get(key))]
        assert not missing, f"{missing} missing or no numbers in {row}"
    missing = [key for key in OUR_END if key not in run.profile]
    assert not missing, f"{missing} missing in {list(run.profile)}"
    keys = list(run.profile)
    assert keys.index("qprof") < keys.index("memory_usage") < keys.index("peak_memory_mb"), keys


def test_the_head(run):
    head = run.profile["qprof"]
    for key in ("version", "schema_version", "hostname", "kernel", "command", "started_at",
                "backends"):
        assert head.get(key), f"{key} is missing in {head}"
    assert "pids" not in head, head
    for key in BACKENDS:
        assert head["backends"].get(key), f"backend {key} is missing in {head}"
    assert "sequence" in str(head["command"]), head
    first = rows(run.profile, ends=True)[0]["timestamp"]
    assert is_number(head["started_at"]) and abs(head["started_at"] - first) < 60, (head, first)


def test_decimals(run, out):
    """bytes / 1048576, never in another notation: two decimals of Quark's keys, as its code writes them; two to
    seven of ours, so that they name the byte."""
    quarks, ours, part = 0, 0, None
    for line in out.read_text().splitlines():
        part = line.split(":")[0] if re.match(r"\w+:", line) else part
        found = re.match(r"(?:- |  )?(\w+_mb): (.*)$", line)
        if not found:
            continue
        key, value = found.groups()
        of_quark = (part == "memory_usage" and key in QUARK_STEP) or (part == key and key in QUARK_END)
        assert re.fullmatch(r"-?\d+\.\d\d" if of_quark else r"-?\d+\.\d{2,7}", value), f"{part}: {line}"
        quarks, ours = quarks + of_quark, ours + (not of_quark)
    assert quarks > 10 and ours > 10, (quarks, ours)


def test_comments_around(run, out):
    """A header at the top, the definitions of the metrics at the end, as comments."""
    lines = out.read_text().splitlines()
    assert lines[0].startswith("#"), lines[0]
    assert [line for line in lines if line][-1].startswith("#"), lines[-3:]


def test_plain_reader(profile, out):
    """The reader without libyaml is stricter about characters."""
    profile(program("checkpoints"), "hostile")
    again = yaml.load(out.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    assert again == parse(out)


def test_phases(profile):
    """Pairs are phases, with what happened inside them."""
    run = profile(program("checkpoints"), "memory")
    phases = {phase["name"]: phase for phase in run.profile["phases"]}
    spike, grow = phases["Spike"], phases["Grow"]
    truth = {row["step"]: row for row in run.truth["rows"]}
    assert_near("peak of the phase Spike", spike["peak_memory_mb"],
                truth["Spike End"]["step_peak_bytes"], 128 * 1024)
    assert_near("delta of the phase Spike", spike["delta_memory_mb"], 0, 128 * 1024)
    assert_near("delta of the phase Grow", grow["delta_memory_mb"], 64 * MIB, 128 * 1024)
    assert_near("start of the phase Grow", grow["start_memory_mb"],
                truth["Grow Start"]["rss_bytes"], 128 * 1024)
    assert_near("end of the phase Grow", grow["end_memory_mb"], truth["Grow End"]["rss_bytes"],
                128 * 1024)


def test_phases_nest(run):
    depth = {phase["name"]: phase.get("depth") for phase in run.profile["phases"]}
    assert depth["Quantization"] == 0 and depth["Layer 0"] == 1 and depth["Layer 1"] == 1, depth
