# SPDX-License-Identifier: GPL-2.0-only
"""What the memory cgroup of a run was charged: which limit a container needs, and what fits where sums cannot tell."""

import json

import pytest
import yaml

from reports import run, schema
from test_bounds import POOL
from test_fits import judged

# The pool in a cgroup of its own. Work reached its peak; Load ended with more than the kernel had ever seen before.
CHARGED = "cgroup_peak_memory_mb: 460.0\ncgroup_needs_mb: 450.0\n"
OWN = "{version: \"0\", memory_cgroup: /job/qprof-scope-1-0, memory_cgroup_is_own: true,"
SCOPED = (POOL.replace("{version: \"0\",", OWN)
          .replace("peak: {time", CHARGED + "peak: {time")
          .replace("peak_memory_mb: 210.0}\n- {name: Work", "peak_memory_mb: 210.0, end_cgroup_memory_mb: 214.0,\n"
                   "  cgroup_peak_memory_mb: 215.0}\n- {name: Work")
          .replace("peak_memory_mb: 1290.0}\nprocesses", "peak_memory_mb: 1290.0, end_cgroup_memory_mb: 455.0,\n"
                   "  cgroup_peak_memory_mb: 460.0}\nprocesses"))
SHARED = SCOPED.replace(OWN, "{version: \"0\", memory_cgroup: /job,")
AT_LEAST = SCOPED.replace("cgroup_needs", "cgroup_peak_at_least: true\ncgroup_needs")
UNKNOWN = SCOPED.replace("cgroup_needs_mb: 450.0\n", "")
KILLED = SCOPED.replace("exit_code: 0", "exit_signal: 9")

SAYS = {
    "scope": (SCOPED, "A memory limit of 460 MiB is enough: so much was charged, page cache included, of which 450 MiB "
                      "or more is no page cache (anon, shmem, the kernel's own)"),
    "others": (SHARED, "A memory limit of 460 MiB is enough for all that is in cgroup /job, this run or not: so much was "
                       "charged, page cache included, of which 450 MiB or more is no page cache"),
    "no parts": (UNKNOWN, "A memory limit of 460 MiB is enough: so much was charged, page cache included Phases"),
    "killed": (KILLED, "Its memory cgroup was charged up to 460 MiB, of which 450 MiB"),
    "more before": (AT_LEAST, None),
    "no cgroup": (POOL, None),
}


@pytest.mark.parametrize("case", SAYS)
def test_sentence(case):
    profile, words = SAYS[case]
    text = " ".join(run("report", "--width", 100, "-", stdin=profile.encode())[0].decode().split())
    page = run("report", "-f", "html", "-", stdin=profile.encode())[0].decode()
    totals = json.loads(page.split('id="profile">')[1].split("</script>")[0])["totals"]
    if words is None:
        assert "charged" not in text and "charged" not in totals, (text, totals)
        return
    assert words in text, f"expected {words!r} in {text}"
    assert totals["charged"] in text, totals


def test_fits():
    """A sum over processes cannot tell; what was charged, each page once, can. In a cgroup of others it says nothing."""
    text, answers = judged(SCOPED, "--fits", "470M")
    assert text.startswith("Fits into 470 MiB: needs at most 460 MiB, which leaves 10.0 MiB"), text
    assert answers == {"Load": "yes", "Work": "yes", "The whole run": "yes"}, text
    judged(SCOPED, "--fits", "459M", status=3)
    judged(SCOPED, "--fits", "439M", status=1)
    for other in (SHARED, AT_LEAST):
        judged(other, "--fits", "470M", status=3)
    # What is in swap is charged to nobody's memory.
    judged(SCOPED.replace("[3.0, 50.0, 1240.0, 0.0, 0.0,", "[3.0, 50.0, 1240.0, 0.0, 1.0,"), "--fits", "470M", status=3)


def rows(document):
    return {row["step"]: row for row in document["memory_usage"]}


def test_of_rows():
    """A file that was cut off has what its rows say, and that it is a bound."""
    lines = ["qprof: {version: '0', schema_version: 1, hostname: h, kernel: k, command: [a], memory_cgroup: /job}",
             "memory_usage:"]
    for i, (step, charge) in enumerate([("Start", 1), ("A Start", 10), ("half", 40), ("A End", 20), ("more", 15)]):
        lines.append(f"- {{step: {step}, relative_time_secs: {i}, cpu_memory_mb: 1, cgroup_memory_mb: {charge}}}")
    lines[4] = lines[4].replace("}", ", cgroup_anon_mb: 5, cgroup_shmem_mb: 1, cgroup_file_mb: 30, cgroup_kernel_mb: 2}")
    document = json.loads(run("report", "-f", "json", "-", stdin="\n".join(lines).encode() + b"\n")[0])
    assert (document["cgroup_peak_memory_mb"], document["cgroup_peak_at_least"]) == (40, True), document
    assert document["cgroup_needs_mb"] == 8, document["cgroup_needs_mb"]
    assert rows(document)["half"]["cgroup_file_mb"] == 30
    phase, = (phase for phase in document["phases"] if phase["name"] == "A")
    assert (phase["end_cgroup_memory_mb"], phase["cgroup_peak_memory_mb"], phase["cgroup_peak_at_least"]) == (20, 40, True)


def test_csv():
    """Columns only where there is something in them."""
    def header(profile):
        return run("report", "-f", "csv", "-", stdin=profile.encode())[0].decode().splitlines()[0].split(",")
    assert {"cgroup_peak_memory_mb", "end_cgroup_memory_mb"} <= set(header(SCOPED)), header(SCOPED)
    assert not [column for column in header(POOL) if "cgroup" in column]


def test_trace():
    """A track of what rows say, where they do."""
    charged = POOL.replace("cpu_memory_mb: 200.0}", "cpu_memory_mb: 200.0, cgroup_memory_mb: 300.0}")
    own = charged.replace("{version: \"0\",", OWN)
    for profile, name, values in ((charged, "memory cgroup, with others", [300 << 20]),
                                  (own, "memory cgroup", [300 << 20]), (POOL, "memory cgroup", [])):
        events = json.loads(run("report", "-f", "chrome", "-", stdin=profile.encode())[0])["traceEvents"]
        found = [event["args"] for event in events if event["name"] == name and event["ph"] == "C"]
        assert [value for args in found for value in args.values()] == values, found


def test_schema():
    keys = schema()["properties"]
    assert set(yaml.safe_load(CHARGED)) <= set(keys)
