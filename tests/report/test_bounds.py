# SPDX-License-Identifier: GPL-2.0-only
"""What a run needs is between two bounds where its processes may share pages: every format has both."""

import json

import pytest

from reports import run

# A parent of 200 MiB with four forked workers of 60 MiB each, at work in the second phase.
POOL = """\
qprof: {version: "0", schema_version: 1, command: [python3, pool.py], started_at: 1.0, backends: {}}
memory_usage:
- {step: Start, timestamp: 1.0, relative_time_secs: 0.0, cpu_memory_mb: 0.0}
- {step: End, timestamp: 5.0, relative_time_secs: 4.0, cpu_memory_mb: 200.0}
total_quantization_time_seconds: 4.0
peak_memory_mb: 1290.0
peak: {time_secs: 3.0, file_mb: 50.0, anon_mb: 1240.0, shmem_mb: 0.0, swap_mb: 0.0, inherited_mb: 800.0,
  repeated_shmem_mb: 0.0, repeated_file_mb: 30.0, at_least_mb: 460.0}
phases:
- {name: Load, kind: pair, depth: 0, pid: 7, tid: 7, start_secs: 0.0, duration_secs: 1.0, start_memory_mb: 0.0,
  end_memory_mb: 210.0, delta_memory_mb: 210.0, peak_memory_mb: 210.0}
- {name: Work, kind: pair, depth: 0, pid: 7, tid: 7, start_secs: 2.0, duration_secs: 2.0, start_memory_mb: 210.0,
  end_memory_mb: 1290.0, delta_memory_mb: 1080.0, peak_memory_mb: 1290.0}
processes:
- {pid: 7, ppid: 1, comm: python3, cmdline: python3 pool.py, start_secs: 0.0, end_secs: 4.0, exit_code: 0,
  flags: [target], peak_memory_mb: 210.0}
timeline:
  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb, step_peak_mb, inherited_mb, repeated_shmem_mb]
  rows:
  - [0.0, 0.0, 0.0, 0.0, 0.0, null, 0.0, 0.0]
  - [1.0, 10.0, 200.0, 0.0, 0.0, null, 0.0, 0.0]
  - [2.0, 50.0, 1000.0, 0.0, 0.0, null, 800.0, 0.0]
  - [3.0, 50.0, 1240.0, 0.0, 0.0, null, 800.0, 0.0]
quality: {lost_checkpoints: 0, may_be_counted_more_than_once_mb: {inherited_at_fork: 800.0, shmem: 0.0, shared_files: 50.0}}
"""
ALONE = POOL.replace("800.0", "0.0").replace("at_least_mb: 460.0", "at_least_mb: 1290.0")
# As an earlier version wrote it: it said how much was inherited at most, and not when.
EARLIER = "\n".join(line.replace(", inherited_mb, repeated_shmem_mb]", "]").replace(", 0.0, 0.0]", ", 0.0]") for line in POOL.replace(
    ", 800.0, 0.0]", "]").replace("null, 0.0, 0.0]", "null]").replace(", inherited_mb: 800.0,\n  repeated_shmem_mb: 0.0, "
    "repeated_file_mb: 30.0, at_least_mb: 460.0}", "}").splitlines()) + "\n"


def text_of(profile, *args):
    text = run("report", "--width", "100", *args, "-", stdin=profile.encode())[0].decode()
    return " ".join(text.split()), text


def fits(text):
    """The table, by phase: the title of each column with its cell."""
    lines = text.split("WILL IT FIT")[1].splitlines()
    titles = lines[0].replace("AT LEAST", "LEAST").replace("AT MOST", "MOST").split()
    cells = {line.split()[0]: " ".join(line.split()[1:]).replace(" MiB", "").replace(" GiB", "G").split()
             for line in lines[1:3]}
    return {name: dict(zip(titles, values)) for name, values in cells.items()}


def test_text():
    words, text = text_of(POOL)
    assert ("Needs at least 440 MiB, at most 1.21 GiB (anon, shmem and what is in swap; processes may share shmem "
            "and what they inherited at fork); up to 50.0 MiB of mapped files") in words, text
    assert ("at least 460 MiB if each page counts once: processes may share up to 800 MiB inherited at fork, "
            "30.0 MiB mapped files") in words, text
    assert fits(text) == {"Load": {"LEAST": "200", "MOST": "200", "FILES": "10.0", "PEAK": "210"},
                          "Work": {"LEAST": "440", "MOST": "1.21G", "FILES": "50.0", "PEAK": "1.26G"}}, text


def test_text_of_what_nobody_shares():
    """One bound is enough: they are equal."""
    words, text = text_of(ALONE)
    assert "Needs at least 1.21 GiB (anon, shmem and what is in swap); up to" in words, text
    assert "counts once" not in words and "AT MOST" not in text, text
    assert fits(text)["Work"] == {"NEEDS": "1.21G", "FILES": "50.0", "PEAK": "1.26G"}, text


def test_text_of_an_earlier_version():
    """A bound that the file does not say is not made up."""
    words, text = text_of(EARLIER)
    assert "Needs at most 1.21 GiB (anon, shmem and what is in swap; processes may share" in words, text
    assert fits(text)["Work"] == {"LEAST": "-", "MOST": "1.21G", "FILES": "50.0", "PEAK": "1.26G"}, text


@pytest.mark.parametrize("profile,least", [(POOL, 440), (ALONE, 1240), (EARLIER, None)],
                         ids=["pool", "alone", "earlier"])
def test_json(profile, least):
    fit = json.loads(run("report", "-f", "json", "-", stdin=profile.encode())[0])["report"]["will_it_fit"]
    assert (fit["needed_at_least_mb"], fit["needed_mb"]) == (least, 1240), fit
    assert fit["phases"][1] == {"needed_at_least_mb": least, "needed_mb": 1240, "files_mb": 50}, fit


@pytest.mark.parametrize("profile,least", [(POOL, 440), (ALONE, 1240), (EARLIER, None)],
                         ids=["pool", "alone", "earlier"])
def test_page(profile, least):
    page = run("report", "-f", "html", "-", stdin=profile.encode())[0].decode()
    data = json.loads(page.split('id="profile">')[1].split("</script>")[0])
    assert data["totals"]["needed"] == 1240 << 20
    assert data["totals"].get("least") == (least and least << 20)
    keys = data["phases"]["keys"]
    work = dict(zip(keys, data["phases"]["rows"][1]))
    assert (work["least"], work["needed"]) == (least and least << 20, 1240 << 20), work
    assert ("least" in data["peak"]) == (profile is POOL), data["peak"]


def test_diff(tmp_path):
    """Both bounds are compared where they differ on a side; a budget can be on either."""
    pool, alone = tmp_path / "pool.yaml", tmp_path / "alone.yaml"
    pool.write_text(POOL)
    alone.write_text(ALONE)
    text = run("diff", alone, pool)[0].decode()
    rows = {line[:18].strip(): " ".join(line.split()[3:7]) for line in text.split("Work")[0].splitlines() if "needs" in line}
    assert rows == {"needs at least": "1.21 GiB 440 MiB", "needs at most": "1.21 GiB 1.21 GiB"}, text
    assert "needs at most" not in run("diff", alone, alone)[0].decode()
    run("diff", "--budget", "Work.need_least=441M", "--budget", "Load.need=201M", alone, pool)
    run("diff", "--budget", "Work.need=441M", alone, pool, status=1)


def test_killed():
    """What it had is known between two bounds; what it would have needed is more than the lower."""
    killed = POOL.replace("exit_code: 0", "exit_signal: 9")
    words, text = text_of(killed)
    assert "Needs MORE than 440 MiB, had at most 1.21 GiB (anon" in words, text
