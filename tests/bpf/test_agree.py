# SPDX-License-Identifier: GPL-2.0-only
"""One run, as the kernel accounts for it, as its summary tells it, and as each format of report has it: one table, all equal."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys

import pytest

from harness import KIB, MIB, PAGE, QPROF, is_on_disk, parse, process_of, run_qprof

TIME = shutil.which("time", path="/usr/bin")

# Reads and writes a file, holds memory, and says last what /proc/self/io has, in one write.
PROGRAM = """
import os, sys
path = sys.argv[1]
out = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(out, b"x" * 123457)
os.pread(out, 54321, 7)
held = bytearray(3 * 1048576 + 4097)
file = os.open("/proc/self/io", os.O_RDONLY)
text = os.read(file, 4096)
os.write(1, b"%d %d " % (os.getpid(), len(text)) + text.replace(b"\\n", b" "))
os._exit(0)
"""


def people_bytes(size):
    value, i = float(size), 0
    while value >= 1023.5:
        value, i = value / 1024, i + 1
    decimals = 0 if i == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{decimals}f} {['B', 'KiB', 'MiB', 'GiB'][i]}"


def of_mib(number):
    return round(float(number) * MIB)


def usage_of(item, prefix=""):
    return {"read": of_mib(item[f"{prefix}io_read_mb"]), "written": of_mib(item[f"{prefix}io_write_mb"]),
            "disk read": of_mib(item[f"{prefix}disk_read_mb"]), "disk written": of_mib(item[f"{prefix}disk_write_mb"]),
            "major": int(item[f"{prefix}major_faults"]), "minor": int(item[f"{prefix}minor_faults"])}


def by_the_kernel(run):
    """What /proc/self/io said, and what was read and written to say it."""
    words = run.stdout.split()
    account = {key.rstrip(":"): int(value) for key, value in zip(words[2::2], words[3::2])}
    return int(words[0]), {"read": account["rchar"] + int(words[1]), "written": account["wchar"] + len(run.stdout.encode()),
                           "disk read": account["read_bytes"], "disk written": account["write_bytes"]}


def by_time(path):
    lines = dict(line.strip().rsplit(": ", 1) for line in path.read_text().splitlines() if ": " in line)
    return {"peak": int(lines["Maximum resident set size (kbytes)"]) * KIB,
            "major": int(lines["Major (requiring I/O) page faults"]),
            "minor": int(lines["Minor (reclaiming a frame) page faults"])}


def report(path, *args):
    done = subprocess.run([QPROF, "report", *args, path], capture_output=True, check=True)
    return done.stdout


def by_formats(path):
    """The totals of the run, of each format that programs read."""
    found = {}
    document = json.loads(report(path, "-f", "json"))
    found["json"] = usage_of(document, "total_") | {"peak": document.get("peak_memory_bytes", of_mib(document["peak_memory_mb"]))}
    totals, = csv.DictReader(io.StringIO(report(path, "-f", "csv", "--table", "totals").decode()))
    found["csv"] = usage_of(totals, "total_") | {"peak": int(totals.get("peak_memory_bytes") or of_mib(totals["peak_memory_mb"]))}
    page = json.loads(report(path, "-f", "html").decode().split('id="profile">')[1].split("</script>")[0])["totals"]
    found["html"] = {"read": page["io_read"], "written": page["io_write"], "disk read": page["disk_read"],
                     "disk written": page["disk_write"], "major": page.get("major_faults", 0), "minor": page["minor_faults"],
                     "peak": page["peak"]}
    events = json.loads(report(path, "-f", "chrome"))["traceEvents"]
    args = next(e["args"] for e in events if e["name"] == "run" and e["ph"] == "b")
    found["chrome"] = {"read": args["io_read_bytes"], "written": args["io_write_bytes"], "disk read": args["disk_read_bytes"],
                       "disk written": args["disk_write_bytes"], "major": args["major_faults"],
                       "minor": args["minor_faults"], "peak": args["peak_memory_bytes"]}
    last = {e["name"]: next(iter(e["args"].values())) for e in events if e["ph"] == "C"}
    found["counters"] = {"read": last["read by calls"], "written": last["written by calls"],
                         "disk read": last["read from storage"], "disk written": last["written to storage"],
                         "minor": last["minor page faults"]}
    return found


def shown(rows):
    names = list(rows["json"])
    return "\n".join([f"{'':14}" + "".join(f"{name:>14}" for name in names)]
                     + [f"{who:14}" + "".join(f"{row.get(name, '-'):>14}" for name in names) for who, row in rows.items()])


@pytest.mark.skipif(not TIME, reason="there is no /usr/bin/time: tools/setup test installs it")
def test_one_run_everywhere(tmp_path, disk, record_property):
    """A program under time(1), which writes what the kernel told it of its child."""
    assert is_on_disk(disk)
    path, times = tmp_path / "q.yaml", tmp_path / "time"
    run = run_qprof("-o", path, "--", TIME, "-v", "-o", times, sys.executable, "-I", "-S", "-c", PROGRAM, disk / "data")
    assert run.returncode == 0, run
    pid, kernel = by_the_kernel(run)
    profile = parse(path)
    process, = process_of(profile, pid)
    own = usage_of(process)
    assert {name: own[name] for name in kernel} == kernel, f"/proc/self/io has {kernel}, the profile {own}"
    told = by_time(times)
    assert (own["major"], own["minor"]) == (told["major"], told["minor"]), f"time has {told}, the profile {own}"
    # The kernel's own highest lags by what its counters keep on each CPU.
    behind = of_mib(process["peak_memory_mb"]) - told["peak"]
    assert 0 <= behind <= 2 * MIB, f"time has a peak of {told['peak'] // PAGE} pages, the profile {behind // PAGE} more"

    found = {"yaml": usage_of(profile, "total_") | {"peak": profile.get("peak_memory_bytes", of_mib(profile["peak_memory_mb"]))}}
    found |= by_formats(path)
    expected = found["yaml"]
    table = shown(found)
    record_property("table", table)
    for who, row in found.items():
        assert row == {name: expected[name] for name in row}, f"{who} differs:\n{table}"

    # For people: rounded, and so the same words.
    words = {name: people_bytes(expected[name]) for name in ("read", "written", "disk read", "disk written", "peak")}
    text = " ".join(report(path, "--width", "200").decode().split())
    picture = report(path, "-f", "svg").decode()
    line = (f"Read {words['read']} (storage {words['disk read']}), wrote {words['written']} "
            f"(storage {words['disk written']}), CPU ")
    for what in (text, picture):
        assert line in what and f"Peak {words['peak']}" in what and f"minor page faults {expected['minor']}" in what, (line, text)
    summary = " ".join(run.stderr.split())
    assert f"peak {words['peak']}" in summary, (words, summary)
    assert f"read {words['read']} (storage {words['disk read']})" in summary, (words, summary)
    assert f"wrote {words['written']} (storage {words['disk written']})" in summary, (words, summary)
    ran = re.search(r"ran (.*?) on ", text)[1]
    assert f": {ran}, peak " in summary, (ran, summary)
    assert max(of_mib(mem.split()[1]) for mem in report(path, "-f", "mprof").decode().splitlines()
               if mem.startswith("MEM")) == expected["peak"]
