# SPDX-License-Identifier: GPL-2.0-only
"""CORES is told where it can be known: not of a phase that is shorter than the error of its CPU time."""

import json

import pytest

from reports import HERE, run

GOOD = (HERE / "endings" / "good.yaml").read_text()
TICK = ("  notes:\n  - \"cpu_time is as of each thread's last scheduler tick or switch: one that ends loses what it "
        "ran since\"\n")
STALE = "  stale_usage: 3\n"


def with_phase(secs, quality):
    """The phase Load takes so long, and 7.73 times that of CPU time."""
    text = GOOD.replace("duration_secs: 0.4,", f"duration_secs: {secs:.6f},")
    text = text.replace("cpu_time_secs: 0.35}", f"cpu_time_secs: {secs * 7.73:.6f}}}")
    return text.replace("quality:\n", "quality:\n" + quality).encode()


@pytest.mark.parametrize("secs,quality,known", [
    (0.0005, TICK, False), (0.0099, TICK, False), (0.0101, TICK, True),
    (0.0009, STALE, False), (0.0011, STALE, True),
    (0.00009, "", False), (0.0002, "", True), (0.0, "", False),
    (0.0005, STALE.replace("3", "0"), True)])
def test_cores(secs, quality, known):
    text = run("report", "--width", "80", "-", stdin=with_phase(secs, quality))[0].decode()
    table = text.split("CPU BY PHASE")[1].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines() if line.startswith("  Load ")]
    if secs:  # without CPU time it has no row
        assert rows[0][-1] == ("7.73" if known else "-"), text
    page = run("report", "-f", "html", "-", stdin=with_phase(secs, quality))[0].decode()
    profile = json.loads(page.split('id="profile">')[1].split("</script>")[0])
    assert (secs >= profile.get("cpu_error", 0.0001)) == known
