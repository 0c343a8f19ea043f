# SPDX-License-Identifier: GPL-2.0-only
"""Every format has the same figures of one profile, to the byte; formats for people the same texts."""

import csv
import io
import json
import re

import pytest

from reports import report, run

KIB, MIB = 1 << 10, 1 << 20

# None of these is what two decimals of a MiB can name; the peak is that of one phase.
PEAK, END, READ, WRITTEN, DISK_READ, DISK_WRITTEN = 700 * KIB + 4096, 516 * KIB, 4097, 1033, 4096, 12288
ANON, FILE = 600 * KIB, 104 * KIB
SECS, CPU, MAJOR, MINOR = 0.000917, 0.000931, 3, 1234567


def mib(size):
    """As a profile has it: the shortest number that rounds back to the byte."""
    return next(text for text in (f"{size / MIB:.{n}f}" for n in range(2, 8))
                if abs(float(text) * MIB - size) <= 0.49)


def usage(prefix=""):
    return (f"{prefix}io_read_mb: {mib(READ)}\n{prefix}io_write_mb: {mib(WRITTEN)}\n"
            f"{prefix}cpu_time_secs: {CPU:.6f}\n{prefix}major_faults: {MAJOR}\n{prefix}minor_faults: {MINOR}\n")


def indented(text):
    return "".join(f"  {line}\n" for line in text.splitlines())


def row(step, secs, rss, used=True, exact=True):
    text = (f"- step: {step}\n  timestamp: {1000 + secs:.6f}\n  relative_time_secs: {secs:.6f}\n"
            f"  cpu_memory_mb: {rss / MIB:.2f}\n  disk_read_mb: 0.00\n  disk_write_mb: {DISK_WRITTEN * used / MIB:.2f}\n")
    if exact:
        text += f"  cpu_memory_bytes: {rss}\n"
        text += f"  disk_read_bytes: {DISK_READ}\n  disk_write_bytes: {DISK_WRITTEN}\n" if used else ""
    text += f"  step_peak_memory_mb: {mib(PEAK if used else rss)}\n"
    return text + (indented(usage()) if used else "") + "  pid: 7\n  tid: 7\n"


DISK = f"disk_read_mb: {mib(DISK_READ)}\n{{0}}disk_write_mb: {mib(DISK_WRITTEN)}\n"
ROWS = ("qprof:\n  version: '0'\n  schema_version: 1\n  command: [prog]\nmemory_usage:\n"
        + row("Start", 0, 16 * KIB, used=False) + row("Load Start", 0.0001, 16 * KIB, used=False)
        + row("Load End", SECS, END) + row("End", SECS, END))
WHOLE = (ROWS + f"total_quantization_time_seconds: {SECS:.4f}\npeak_memory_mb: {PEAK / MIB:.2f}\npeak_memory_bytes: {PEAK}\n"
         + usage("total_") + "".join(f"total_{line}\n" for line in DISK.format("").splitlines())
         + f"peak:\n  time_secs: 0.0002\n  file_mb: {mib(FILE)}\n  anon_mb: {mib(ANON)}\n  shmem_mb: 0.00\n  swap_mb: 0.00\n"
         "  processes:\n" f"  - process: 0\n    pid: 7\n    file_mb: {mib(FILE)}\n    anon_mb: {mib(ANON)}\n    shmem_mb: 0.00\n    swap_mb: 0.00\n"
         "phases:\n- name: Load\n  kind: pair\n  depth: 0\n  pid: 7\n  tid: 7\n  start_secs: 0.000100\n"
         f"  duration_secs: {SECS - 0.0001:.6f}\n  start_memory_mb: {mib(16 * KIB)}\n  end_memory_mb: {mib(END)}\n"
         f"  peak_memory_mb: {mib(PEAK)}\n  delta_memory_mb: {mib(END - 16 * KIB)}\n" + indented(usage()) + "  " + DISK.format("  ")
         + "processes:\n- pid: 7\n  ppid: 1\n  comm: prog\n  cmdline: prog\n  start_secs: 0.000000\n"
         f"  end_secs: {SECS:.6f}\n  exit_code: 0\n  flags: [target]\n  peak_memory_mb: {mib(PEAK)}\n" + indented(usage()) + "  " + DISK.format("  ")
         + "timeline:\n  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb, step_peak_mb]\n  rows:\n"
         f"  - [0.000000, {mib(16 * KIB)}, 0.00, 0.00, 0.00, null]\n  - [0.000200, {mib(FILE)}, {mib(ANON)}, 0.00, 0.00, {mib(PEAK)}]\n"
         f"  - [{SECS:.6f}, {mib(FILE)}, {mib(END - FILE)}, 0.00, 0.00, null]\n"
         "quality:\n  lost_checkpoints: 0\n  may_be_counted_more_than_once_mb:\n    inherited_at_fork: 0.00\n    shmem: 0.00\n    shared_files: 0.00\n")


@pytest.fixture(name="profile", scope="module")
def fixture_profile(tmp_path_factory):
    path = tmp_path_factory.mktemp("agree") / "q.yaml"
    path.write_text(WHOLE)
    return path


def of_bytes(number):
    return round(float(number) * MIB)


def of_people(text):
    """The bytes of "704 KiB", about."""
    number, unit = re.fullmatch(r"([\d.]+) ([KMG]?i?B)", text).groups()
    return float(number) * {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": MIB * KIB}[unit]


def usage_of(item, prefix=""):
    return {"read": of_bytes(item[f"{prefix}io_read_mb"]), "written": of_bytes(item[f"{prefix}io_write_mb"]),
            "disk read": of_bytes(item[f"{prefix}disk_read_mb"]), "disk written": of_bytes(item[f"{prefix}disk_write_mb"]),
            "cpu": float(item[f"{prefix}cpu_time_secs"]), "major": int(item[f"{prefix}major_faults"]),
            "minor": int(item[f"{prefix}minor_faults"])}


EXPECTED_USAGE = {"read": READ, "written": WRITTEN, "disk read": DISK_READ, "disk written": DISK_WRITTEN,
                  "cpu": CPU, "major": MAJOR, "minor": MINOR}


def table(name, profile):
    return list(csv.DictReader(io.StringIO(report("-f", "csv", "--table", name, profile=profile).decode())))


def test_json(profile):
    got = json.loads(report("-f", "json", profile=profile))
    assert got["peak_memory_bytes"] == PEAK and usage_of(got, "total_") == EXPECTED_USAGE, got
    assert usage_of(got["phases"][0]) == usage_of(got["processes"][0]) == EXPECTED_USAGE
    assert of_bytes(got["phases"][0]["peak_memory_mb"]) == of_bytes(got["processes"][0]["peak_memory_mb"]) == PEAK
    assert of_bytes(got["phases"][0]["delta_memory_mb"]) == END - 16 * KIB
    last = got["memory_usage"][-1]
    assert (last["cpu_memory_bytes"], last["disk_read_bytes"], last["disk_write_bytes"]) == (END, DISK_READ, DISK_WRITTEN)
    assert (last["cpu_memory_mb"], last["disk_read_mb"]) == (0.5, 0.0), "Quark's keys have two decimals"


def test_csv(profile):
    totals, = table("totals", profile)
    assert int(totals["peak_memory_bytes"]) == PEAK and usage_of(totals, "total_") == EXPECTED_USAGE, totals
    for name in ("phases", "processes"):
        item, = table(name, profile)
        assert usage_of(item) == EXPECTED_USAGE and of_bytes(item["peak_memory_mb"]) == PEAK, item
    assert int(table("memory_usage", profile)[-1]["cpu_memory_bytes"]) == END
    assert max(sum(of_bytes(point[f"{kind}_mb"]) for kind in ("file", "anon", "shmem"))
               for point in table("timeline", profile)) == PEAK


def test_html(profile):
    page = report("-f", "html", profile=profile).decode()
    got = json.loads(page.split('id="profile">')[1].split("</script>")[0])
    totals = got["totals"]
    assert (totals["peak"], totals["io_read"], totals["io_write"], totals["disk_read"], totals["disk_write"], totals["duration"],
            totals["cpu"], totals["major_faults"], totals["minor_faults"]) == (
        PEAK, READ, WRITTEN, DISK_READ, DISK_WRITTEN, SECS, CPU, MAJOR, MINOR), totals
    step = dict(zip(got["steps"]["keys"], got["steps"]["rows"][-1]))
    assert (step["rss"], step["peak"]) == (END, PEAK), step
    for name in ("phases", "processes"):
        item = dict(zip(got[name]["keys"], got[name]["rows"][0]))
        assert (item["peak"], item["io_read"], item["disk_read"], item["major_faults"]) == (PEAK, READ, DISK_READ, MAJOR), item
    assert got["peak"]["phase"] == "Load", "the phase that had the peak has it to the byte"


def test_traces(profile):
    """Arguments of the run and of the phase, and the counters' last values."""
    events = json.loads(report("-f", "chrome", profile=profile))["traceEvents"]
    begun = {e["name"]: e["args"] for e in events if e["ph"] in "bB" and "args" in e}
    for args in (begun["run"], begun["Load"], begun["prog"]):
        assert (args["peak_memory_bytes"], args["io_read_bytes"], args["io_write_bytes"], args["disk_read_bytes"],
                args["disk_write_bytes"], args["cpu_time_ns"], args["major_faults"], args["minor_faults"]) == (
            PEAK, READ, WRITTEN, DISK_READ, DISK_WRITTEN, round(CPU * 1e9), MAJOR, MINOR), args
    last = {e["name"]: next(iter(e["args"].values())) for e in events if e["ph"] == "C"}
    assert (last["read by calls"], last["read from storage"], last["written to storage"], last["minor page faults"]) == (
        READ, DISK_READ, DISK_WRITTEN, MINOR), last
    assert str(PEAK) in re.findall(r"\d+", json.dumps(begun["run"]))


def test_mprof(profile):
    lines = report("-f", "mprof", profile=profile).decode().splitlines()
    assert max(of_bytes(line.split()[1]) for line in lines if line.startswith("MEM")) == PEAK, lines


def test_formats_for_people(profile):
    """The same texts, from the same bytes, where two decimals of a MiB would have 0."""
    text = " ".join(report("--width", "200", profile=profile).decode().split())
    picture = report("-f", "svg", profile=profile).decode()
    line = ("Read 4.00 KiB (storage 4.00 KiB), wrote 1.01 KiB (storage 12.0 KiB), CPU 931 us, "
            "major page faults 3, minor page faults 1234567")
    assert "Peak 704 KiB" in text and "Peak 704 KiB" in picture and line in text and line in picture, text
    assert "ran 917 us" in text, "the last row knows the duration better than its key"
    assert of_people("704 KiB") == PEAK


# ---- Reading

def as_json(text, status=0):
    return json.loads(run("report", "-f", "json", "-", stdin=text.encode(), status=status)[0])


def test_the_exact_number_counts_wherever_it_stands():
    """Keys may come in any order, as after another program has sorted them."""
    lines = ROWS.splitlines(keepends=True)
    exact = [i for i, line in enumerate(lines) if "_bytes: " in line]
    for i in exact:
        lines.insert(next(k for k in range(i, 0, -1) if lines[k].startswith("- step")) + 1, lines.pop(i))
    assert as_json("".join(lines))["memory_usage"] == as_json(ROWS)["memory_usage"]
    assert as_json("".join(lines))["memory_usage"][-1]["cpu_memory_bytes"] == END


def test_cut_off():
    """What is made of rows is as exact as they are."""
    got = as_json(ROWS)
    assert got["report"]["derived"] and got["peak_memory_bytes"] == PEAK, got["report"]
    phase, = got["phases"]
    assert of_bytes(phase["end_memory_mb"]) == END and of_bytes(phase["disk_read_mb"]) == DISK_READ, phase


def test_an_earlier_file():
    """Its two decimals stay as they are, and nobody makes up bytes."""
    old = "".join(line for line in WHOLE.splitlines(keepends=True) if "_bytes:" not in line)
    old = re.sub(r"(\d+\.\d\d)\d+(?=[,\]\n])", r"\1", old)
    got = as_json(old)
    assert got["peak_memory_mb"] == 0.69 and "peak_memory_bytes" not in got, got["peak_memory_mb"]
    assert "cpu_memory_bytes" not in got["memory_usage"][-1]
    assert got["phases"][0]["end_memory_mb"] == 0.5 and got["phases"][0]["start_memory_mb"] == 0.01


@pytest.mark.parametrize("bad", [str((1 << 56) + 1), "-1", "1.5", "many"])
def test_bytes_that_make_no_sense(bad):
    _, stderr = run("report", "-", stdin=ROWS.replace(f"cpu_memory_bytes: {END}", f"cpu_memory_bytes: {bad}").encode(), status=125)
    assert "cpu_memory_bytes" in stderr and "whole number" in stderr, stderr
