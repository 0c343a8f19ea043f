# SPDX-License-Identifier: GPL-2.0-only
"""One run, all of its outputs: what several of them say is the same in each.

The file, the table at the end, and every format of `report`. Each figure is compared with that of the
file, as closely as the format writes it.
"""

import csv
import io
import json
import re
import subprocess
from pathlib import Path

import pytest

import harness
from harness import MIB, PYTHON, parse, run_qprof

SCRIPT = """
import json, qprof, sys
data = open(sys.argv[1], "rb")
with qprof.scope("Load"):
    weights = bytearray(data.read(12 << 20))
with qprof.scope("Quantize"):
    with qprof.scope("Spike"):
        spike = bytearray(60 << 20)
        del spike
    out = bytearray(24 << 20)
    qprof.metric("loss", 0.125)
with qprof.scope("Save"):
    open(sys.argv[2], "wb").write(out)
qprof.summary("bits", 8)
"""

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1}
PHASES = ("Load", "Quantize", "Spike", "Save")


def sizes(text):
    """The sizes that a text for people has, in bytes."""
    return [float(n) * UNITS[unit] for n, unit in re.findall(r"([\d.]+) ?([BKMG])(?:iB)?\b", text)]


def times(text):
    return [float(n) * SECONDS[unit] for n, unit in re.findall(r"([\d.]+) (us|ms|s)\b", text)]


def has(found, expected, what, rel=0.006, room=0.0):
    """One of the numbers is it: three digits of it."""
    assert any(abs(n - expected) <= max(rel * expected, room) for n in found), (
        f"{what}: expected {expected}, found {found}")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "script.py").write_text(SCRIPT)
    (folder / "data").write_bytes(bytes(12 * MIB))
    run = run_qprof("-o", folder / "run.yaml", "--", PYTHON, folder / "script.py", folder / "data",
                    folder / "out", env={**harness.CLEAN_ENV, **harness.QPROF_PACKAGE})
    assert run.returncode == 0, run

    def report(name, *args):
        done = run_qprof("report", "-f", name, *args, folder / "run.yaml")
        assert done.returncode == 0, done
        return done.stdout
    report.path = folder / "run.yaml"
    return parse(folder / "run.yaml"), run.stderr, report


def phase_of(profile, name):
    [phase] = [phase for phase in profile["phases"] if phase["name"] == name]
    return phase


def test_the_run_is_as_it_was_told_to_be(compared):
    profile, _, _ = compared
    assert phase_of(profile, "Spike")["peak_memory_mb"] == pytest.approx(profile["peak_memory_mb"],
                                                                         abs=0.006)
    assert 60 <= profile["peak_memory_mb"] - profile["memory_usage"][0]["cpu_memory_mb"]
    assert 12 <= phase_of(profile, "Load")["io_read_mb"] < 13
    assert 24 <= phase_of(profile, "Save")["io_write_mb"] < 25


def test_json_is_the_profile(compared):
    profile, _, report = compared
    found = json.loads(report("json"))
    found.pop("report")  # what was worked out of it
    assert found == profile


@pytest.mark.parametrize("table", ["phases", "memory_usage", "processes"])
def test_csv_has_the_rows_of_the_profile(compared, table):
    profile, _, report = compared
    rows = list(csv.DictReader(io.StringIO(report("csv", "--table", table))))
    assert len(rows) == len(profile[table])
    for row, expected in zip(rows, profile[table]):
        for key, value in expected.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                assert float(row[key]) == pytest.approx(value), (table, key)


@pytest.mark.parametrize("output", ["summary", "text"])
def test_text_for_people(compared, output):
    profile, summary, report = compared
    text = summary if output == "summary" else report("text")
    head = text.split("\n\n")[0] if output == "text" else text
    has(sizes(text), profile["peak_memory_mb"] * MIB, "peak")
    has(sizes(text), profile["total_io_read_mb"] * MIB, "read", room=6000)
    has(sizes(text), profile["total_io_write_mb"] * MIB, "written", room=6000)
    has(times(text), profile["total_cpu_time_secs"], "CPU", rel=0.06)
    has(times(head), profile["total_quantization_time_seconds"], "duration", rel=0.06)
    for name in PHASES:
        phase = phase_of(profile, name)
        line = next(line for line in text.splitlines() if re.search(rf"\b{name}\b", line)
                    and sizes(line) and times(line) and "in Spike" not in line)
        has(sizes(line), phase["peak_memory_mb"] * MIB, f"peak of {name} in {line!r}")
        has(times(line), phase["duration_secs"], f"time of {name} in {line!r}", rel=0.06, room=6e-4)


def test_page_has_the_profile(compared):
    profile, _, report = compared
    page = report("html")
    [data] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
    totals = json.loads(data)["totals"]
    for key, of_profile, unit in (("peak", "peak_memory_mb", MIB), ("io_read", "total_io_read_mb", MIB),
                                  ("io_write", "total_io_write_mb", MIB),
                                  ("cpu", "total_cpu_time_secs", 1),
                                  ("duration", "total_quantization_time_seconds", 1)):
        assert totals[key] / unit == pytest.approx(profile[of_profile], abs=0.006 if unit > 1 else 1e-4)
    phases = json.loads(data)["phases"]
    for row in (dict(zip(phases["keys"], row)) for row in phases["rows"]):
        phase = phase_of(profile, row["name"])
        for key, of_profile in (("peak", "peak_memory_mb"), ("delta", "delta_memory_mb"),
                                ("io_read", "io_read_mb"), ("io_write", "io_write_mb")):
            assert row[key] / MIB == pytest.approx(phase[of_profile], abs=0.006), (row["name"], key)
        for key, of_profile in (("start", "start_secs"), ("seconds", "duration_secs"),
                                ("cpu", "cpu_time_secs")):
            assert row[key] == pytest.approx(phase[of_profile], abs=2e-6), (row["name"], key)


def test_picture_and_mprof_have_the_peak(compared):
    profile, _, report = compared
    texts = " ".join(re.findall(r"<(?:text|tspan)[^>]*>([^<]+)", report("svg")))
    has(sizes(texts), profile["peak_memory_mb"] * MIB, "peak of the picture")
    memory = [float(line.split()[1]) for line in report("mprof").splitlines()
              if line.startswith("MEM ")]
    assert max(memory) == pytest.approx(profile["peak_memory_mb"], abs=0.006)


@pytest.mark.parametrize("name", PHASES)
def test_traces_have_the_phases(compared, name):
    """Their begin and their figures: in Chrome's JSON, and in Perfetto's as protoc shows it."""
    profile, _, report = compared
    phase = phase_of(profile, name)
    [begin] = [e for e in json.loads(report("chrome"))["traceEvents"]
               if e.get("name") == name and e["ph"] in "BX"]
    assert begin["args"]["peak_memory_bytes"] / MIB == pytest.approx(phase["peak_memory_mb"], abs=0.006)
    assert begin["args"]["io_read_bytes"] / MIB == pytest.approx(phase["io_read_mb"], abs=0.006)
    proto = ROOT / "user" / "report" / "perfetto.proto"
    trace = subprocess.run([harness.QPROF, "report", "-f", "perfetto", report.path], check=True,
                           capture_output=True).stdout
    text = subprocess.run(["protoc", "--decode=perfetto.protos.Trace", f"-I{proto.parent}", proto],
                          input=trace, capture_output=True, check=True).stdout.decode()
    [packet] = [p for p in re.split(r"^packet \{$", text, flags=re.M)
                if "TYPE_SLICE_BEGIN" in p and f'name: "{name}"' in p]
    for key in ("peak_memory_bytes", "io_read_bytes"):
        [value] = re.findall(rf'int_value: (\d+)\s+name: "{key}"', packet)
        assert int(value) == begin["args"][key], key


def test_no_format_is_left_out(compared):
    """Whoever adds a format compares it here; those of stacks in test_stacks*.py."""
    said = " ".join(run_qprof("report", "--help").stdout.split("--format=FORMAT")[1]
                    .split("-o, --output")[0].split())
    names = {part.split(" (")[0].strip() for part in said.split(":", 1)[1].split("),")}
    names.discard("")
    assert {name.split(" ")[-1] for name in names} == {
        "text", "html", "svg", "json", "csv", "mprof", "perfetto", "chrome", "folded", "folded-back", "folded-cpu",
        "folded-gpu", "pprof", "speedscope"}


def test_compared_with_itself_nothing_has_changed(compared):
    profile, _, report = compared
    diff = run_qprof("diff", report.path, report.path, "--max-peak-increase", "0%")
    assert diff.returncode == 0, diff
    whole = {line.strip().rsplit("  ", 1)[0][:20].strip(): line for line in diff.stdout.splitlines()}
    for what, expected in (("peak memory", profile["peak_memory_mb"]),
                           ("read and written", profile["total_io_read_mb"] +
                            profile["total_io_write_mb"])):
        has(sizes(whole[what]), expected * MIB, what)
    assert "+0.0 %" in whole["peak memory"]
