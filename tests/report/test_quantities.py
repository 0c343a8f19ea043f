# SPDX-License-Identifier: GPL-2.0-only
"""Quantities that came after the first format: each report has them if the profile does, and is as before if not."""

import csv
import io
import json
import re

import pytest
import yaml

from reports import PROFILE, report, run

KEYS = ("major_faults", "minor_faults")


@pytest.fixture
def newer(tmp_path):
    """The recorded profile with page faults: of what has CPU time, as many as its place in the file."""
    lines = []
    for place, line in enumerate(PROFILE.read_text().splitlines()):
        lines.append(line)
        found = re.match(r"( *)(total_)?cpu_time_secs: ", line)
        if found:
            indent, prefix = found.group(1), found.group(2) or ""
            lines += [f"{indent}{prefix}major_faults: {place}", f"{indent}{prefix}minor_faults: {2 * place}"]
    path = tmp_path / "newer.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_json(newer):
    before, after = json.loads(report("-f", "json")), json.loads(report("-f", "json", profile=newer))
    for part in ("memory_usage", "phases", "processes"):
        assert all(item["minor_faults"] == 2 * item["major_faults"] > 0 for item in after[part])
        assert not any(key in item for item in before[part] for key in KEYS)
    assert after["total_minor_faults"] == 2 * after["total_major_faults"] > 0


@pytest.mark.parametrize("table", ["memory_usage", "phases", "processes"])
def test_csv(newer, table):
    rows = list(csv.DictReader(io.StringIO(report("-f", "csv", "--table", table, profile=newer).decode())))
    assert all(int(row["minor_faults"]) == 2 * int(row["major_faults"]) > 0 for row in rows), rows[:2]
    assert "faults" not in report("-f", "csv", "--table", table).decode().splitlines()[0]


def test_text(newer):
    text = report("-f", "text", "--width", "100", "--top", "100", profile=newer).decode()
    profile = yaml.safe_load(newer.read_text())
    for title, part in (("FAULTS BY PHASE", "phases"), ("FAULTS BY PROCESS", "processes")):
        table = re.search(title + r" +MAJOR +MINOR\n((?:  .*\n)+)", text)
        assert table, text
        told = [tuple(map(int, row.groups())) for row in re.finditer(r" (\d+) +(\d+)\n", table[1])]
        assert sorted(told) == sorted((p["major_faults"], p["minor_faults"]) for p in profile[part]), table[1]
    assert re.search(r"CPU .*, major page faults\s+\d+, minor\s+page\s+faults \d+", text), text
    assert "FAULTS" not in report("-f", "text", "--width", "100").decode()


def test_html(newer):
    """The page's tables have their columns from the list of quantities, and items their values in its order."""
    def page(**kwargs):
        return json.loads(report("-f", "html", **kwargs).decode().split('id="profile">')[1].split("</script>")[0])
    after = page(profile=newer)
    keys = after["quantities"]["keys"]
    told = [dict(zip(keys, row)) for row in after["quantities"]["rows"]]
    assert [(q["key"], q["title"], q["unit"]) for q in told] == \
        [("major_faults", "MAJOR", "count"), ("minor_faults", "MINOR", "count")]
    assert "quantities" not in page()


def test_traces(newer):
    events = json.loads(report("-f", "chrome", profile=newer))["traceEvents"]
    for name in ("major page faults", "minor page faults"):
        values = [event["args"] for event in events if event["ph"] == "C" and event["name"] == name]
        assert values, f"no counter {name}"
    phases = [event for event in events if event.get("cat") == "phase" and event.get("args")]
    assert all(event["args"]["minor_faults"] == 2 * event["args"]["major_faults"] for event in phases)
    assert b"major page faults" in report("-f", "perfetto", profile=newer)
    assert b"faults" not in report("-f", "perfetto")


def test_diff(newer, tmp_path):
    """Compared where both sides say them, and gated on."""
    more = tmp_path / "more.yaml"
    text = newer.read_text()
    total = int(re.search(r"total_major_faults: (\d+)", text).group(1))
    more.write_text(text.replace(f"total_major_faults: {total}", f"total_major_faults: {total + 5000}"))
    out = json.loads(run("diff", "-f", "json", newer, more)[0])
    assert out["run"]["major_faults"]["new"]["median"] == total + 5000
    told = run("diff", newer, more)[0].decode()
    assert re.search(rf"major page faults +{total} +{total + 5000} +\+5000", told), told
    run("diff", "--budget", f"major_faults={total + 5000}", newer, more)
    broken = run("diff", "--budget", f"major_faults={total + 4999}", newer, more, status=1)[0].decode()
    assert "major page faults is" in broken, broken
    assert "faults" not in run("diff", "--all", PROFILE, PROFILE)[0].decode()
    # A budget of what a profile does not say must not be green.
    run("diff", "--budget", "major_faults=1", PROFILE, PROFILE, status=1)
