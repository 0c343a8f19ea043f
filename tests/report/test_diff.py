# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf diff: phases side by side, limits, budgets, repeats, and the exit status of each."""

import json

import pytest

from reports import PROFILE, run

MIB = 1 << 20


def phase(name, start, secs=1.0, peak=100.0, end=50.0, io=10.0, cpu=0.5):
    return (f'- name: "{name}"\n  kind: pair\n  depth: 0\n  pid: 7\n  tid: 7\n  start_secs: {start}\n'
            f"  duration_secs: {secs}\n  start_memory_mb: 10.0\n  end_memory_mb: {end}\n"
            f"  peak_memory_mb: {peak}\n  delta_memory_mb: 0.0\n  io_read_mb: {io}\n"
            f"  io_write_mb: 0.0\n  disk_read_mb: 0.0\n  disk_write_mb: 0.0\n"
            f"  cpu_time_secs: {cpu}\n")


@pytest.fixture
def profile(tmp_path):
    """profile(NAME, phases...): a whole profile of just these."""
    def make(file, *phases, peak=100.0, secs=10.0, whole=True):
        text = ("qprof:\n  version: \"0\"\n  schema_version: 1\n"
                "memory_usage:\n- step: \"Start\"\n  timestamp: 1.0\n  relative_time_secs: 0.0\n"
                "  cpu_memory_mb: 1.0\n"
                f"total_quantization_time_seconds: {secs}\npeak_memory_mb: {peak}\n"
                "phases:\n" + "".join(phases) + "processes: []\n")
        if whole:
            text += ("timeline:\n  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb]\n"
                     "  rows:\n  - [0.0, 5.0, 60.0, 3.0, 1.0]\n  - [1.5, 50.0, 20.0, 0.0, 0.0]\n"
                     "quality:\n  may_be_counted_more_than_once_mb:\n    shmem: 0.0\n")
        path = tmp_path / file
        path.write_text(text)
        return path
    return make


def diff(*args, status=0):
    return run("diff", *args, status=status)[0].decode()


def as_json(*args, status=0):
    return json.loads(diff("-f", "json", *args, status=status))


def test_same_is_no_change():
    document = as_json(PROFILE, PROFILE)
    assert not document["broken"] and not document["breaches"]
    for metric, values in document["run"].items():
        assert values["old"] == values["new"], metric
    assert "without a change" in diff(PROFILE, PROFILE)


@pytest.mark.parametrize("width", [60, 100, 512])
def test_long_names_leave_room(profile, width):
    """A name of any length is cut, so that its line is no longer than the width."""
    old = profile("old", phase("x" * 5000, 0))
    new = profile("new", phase("x" * 5000, 0, peak=150))
    lines = diff("--width", str(width), old, new).splitlines()
    names = [line for line in lines if line.startswith("x")]
    assert len(names) == 1 and names[0].endswith("...") and len(names[0]) <= width, names


def test_every_metric(profile):
    old = profile("old", phase("Load", 0))
    new = profile("new", phase("Load", 0, secs=2.0, peak=150, end=60, io=20, cpu=1.5))
    found, = as_json(old, new)["phases"]
    medians = {key: (value["old"]["median"], value["new"]["median"])
               for key, value in found.items() if isinstance(value, dict)}
    assert medians == {
        "peak_bytes": (100 * MIB, 150 * MIB), "end_bytes": (50 * MIB, 60 * MIB),
        "need_least_bytes": (64 * MIB, 64 * MIB), "need_bytes": (64 * MIB, 64 * MIB), "io_bytes": (10 * MIB, 20 * MIB),
        "time_secs": (1.0, 2.0), "cpu_secs": (0.5, 1.5)}
    text = diff(old, new)
    assert [line.split() for line in text.splitlines() if "peak memory" in line][1] == [
        "peak", "memory", "100", "MiB", "150", "MiB", "+50.0", "MiB", "+50.0", "%"], text


def test_matched_by_name_and_occurrence(profile):
    """A new phase in between does not shift the others."""
    old = profile("old", phase("A", 0, peak=10), phase("A", 2, peak=20), phase("Gone", 4))
    new = profile("new", phase("A", 0, peak=10), phase("New", 1), phase("A", 2, peak=30))
    phases = {(p["name"], p["occurrence"]): p for p in as_json(old, new)["phases"]}
    assert set(phases) == {("A", 1), ("A", 2), ("Gone", 1), ("New", 1)}
    second = phases["A", 2]["peak_bytes"]
    assert (second["old"]["median"], second["new"]["median"]) == (20 * MIB, 30 * MIB)
    assert phases["New", 1]["peak_bytes"]["old"] is None
    assert phases["Gone", 1]["peak_bytes"]["new"] is None
    text = diff(old, new)
    assert "New [new]" in text and "Gone [missing]" in text and "A (2.)" in text, text


LIMITS = [
    # option, the change of one phase, whether it breaks
    (["--max-peak-increase", "5%"], {"peak": 104.9}, False),
    (["--max-peak-increase", "5%"], {"peak": 106}, True),
    (["--max-peak-increase", "5%"], {"peak": 50}, False),
    (["--max-peak-increase", "5M"], {"peak": 104}, False),
    (["--max-peak-increase", "5M"], {"peak": 106}, True),
    (["--max-peak-increase", "0%"], {"peak": 100.5}, False),  # noise
    (["--max-peak-increase", "0"], {"peak": 100.5}, True),
    (["--max-io-increase", "50%"], {"io": 14}, False),
    (["--max-io-increase", "50%"], {"io": 16}, True),
    (["--max-time-increase", "10%"], {"secs": 1.09}, False),
    (["--max-time-increase", "10%"], {"secs": 1.2}, True),
    (["--max-time-increase", "150ms"], {"secs": 1.2}, True),
    (["--max-time-increase", "10%"], {"peak": 900}, False),
    (["--budget", "Load.peak=120M"], {"peak": 119}, False),
    (["--budget", "Load.peak=120M"], {"peak": 121}, True),
    (["--budget", "L*.time=1s"], {"secs": 1.5}, True),
    (["--budget", "Load.end=51M"], {"end": 52}, True),
    (["--budget", "Load.need=63M"], {}, True),
    (["--budget", "Load.cpu=600ms"], {"cpu": 0.7}, True),
    (["--budget", "peak=99M"], {}, True),
    (["--budget", "peak=101M"], {"peak": 200}, False),  # of the run, whose peak is said to be 100
    (["--budget", "Lod.peak=120M"], {}, True),  # no such phase: a gate must not be green
]


@pytest.mark.parametrize("option,change,breaks", LIMITS, ids=[
    f"{' '.join(o)} {c}" for o, c, _ in LIMITS])
def test_limit(profile, option, change, breaks):
    old, new = profile("old", phase("Load", 0)), profile("new", phase("Load", 0, **change))
    text = diff(*option, old, new, status=1 if breaks else 0)
    if breaks:  # which limit, which phase
        assert f"! {' '.join(option).replace('--budget ', '')}: " in text, text
    else:
        assert "All limits hold." in text, text


def test_which_phase_broke(profile):
    old = profile("old", phase("A", 0), phase("B", 1), phase("B", 2))
    new = profile("new", phase("A", 0), phase("B", 1), phase("B", 2, peak=110))
    text = diff("--max-peak-increase", "5%", old, new, status=1)
    assert "! --max-peak-increase 5%: B (2.), peak memory is 110 MiB, at most 105 MiB" in text, text
    breach, = as_json("--max-peak-increase", "5%", old, new, status=1)["breaches"]
    assert (breach["phase"], breach["occurrence"], breach["metric"]) == ("B", 2, "peak")


def test_repeats(profile):
    """Medians count, and what is within the spread of the repeats breaks nothing."""
    def side(name, *secs):
        return ",".join(str(profile(f"{name}{i}", phase("A", 0, secs=s)))
                        for i, s in enumerate(secs))

    old = side("old", 1.0, 5.0, 1.2)
    values = as_json(old, side("new", 1.0, 2.0))["phases"][0]["time_secs"]
    assert values["old"] == {"median": 1.2, "lowest": 1.0, "highest": 5.0}
    assert values["new"]["median"] == 1.5
    assert values["within_spread"]
    text = diff("--max-time-increase", "10%", old, side("new", 1.0, 2.0))
    assert "medians of 3 runs" in text and "~" in text and "All limits hold" in text, text
    diff("--max-time-increase", "10%", old, side("slow", 6.0, 7.0), status=1)


def test_name_with_a_comma(profile):
    one = profile("a,b", phase("A", 0))
    assert as_json(one, one)["run"]["peak_bytes"]["old"]["median"] == 100 * MIB


def test_cut_off(profile):
    """It is compared as far as it goes, but no limit is said to hold."""
    old = profile("old", phase("A", 0))
    cut = profile("cut", phase("A", 0), whole=False)
    assert "only a part" in diff(old, cut)
    assert "cut off" in diff("--max-peak-increase", "5%", old, cut, status=1)
    assert "cut off" in diff("--budget", "peak=1G", cut, old, status=1)
    assert "cut off" in diff("--max-peak-increase", "5%", "--budget", "peak=1G", old, cut, status=1)


def test_hostile_names(profile):
    name = '\\e[31m</script>\\u202e\\n'
    path = profile("x", phase(name, 0))
    text = diff("--all", path, path)
    assert "\x1b" not in text and "\u202e" not in text, text
    assert as_json(path, path)["phases"][0]["name"] == "\x1b[31m</script>\u202e\n"


@pytest.mark.parametrize("args", [
    [], [PROFILE], [PROFILE, PROFILE, PROFILE], ["--max-peak-increase", "5", "%", PROFILE, PROFILE],
    ["--max-peak-increase", "much", PROFILE, PROFILE], ["--max-time-increase", "5M", PROFILE, PROFILE],
    ["--budget", "peak", PROFILE, PROFILE], ["--budget", "A.size=5M", PROFILE, PROFILE],
    ["--budget", "A.time=5M", PROFILE, PROFILE], ["-f", "xml", PROFILE, PROFILE],
    [PROFILE, "/nonexistent"],
])
def test_usage(args):
    _, stderr = run("diff", *args, status=125)
    assert stderr.startswith("qprof-bpf"), stderr


def with_gpu(profile, name, run, phases):
    """A profile with memory on GPUs, in MiB: of the run, and of phases by name; None: none."""
    texts = [phase(one, i) + (f"  gpu_peak_memory_mb: {gpu}\n" if gpu is not None else "")
             for i, (one, gpu) in enumerate(phases)]
    path = profile(name, *texts)
    if run is not None:
        path.write_text(path.read_text().replace("phases:\n", f"gpu_peak_memory_mb: {run}\nphases:\n"))
    return path


def test_memory_of_gpus(profile):
    old = with_gpu(profile, "old", 6000, [("A", 4000), ("B", 6000)])
    new = with_gpu(profile, "new", 6500, [("A", 4000), ("B", 6500)])
    text = diff("--max-gpu-peak-increase", "5%", old, new, status=1)
    assert "! --max-gpu-peak-increase 5%: The whole run, GPU memory is 6.35 GiB, at most 6.15 GiB" in text, text
    assert "! --max-gpu-peak-increase 5%: B, GPU memory" in text and "%: A, " not in text, text
    diff("--max-gpu-peak-increase", "600M", old, new)
    diff("--budget", "B.gpu=6500M", old, new)
    text = diff("--budget", "B.gpu=6G", old, new, status=1)
    assert "! B.gpu=6G: B, GPU memory is 6.35 GiB, at most 6.00 GiB" in text, text


def test_without_a_gpu_nothing_is_said_of_it(profile):
    old, new = with_gpu(profile, "old", None, [("A", None)]), with_gpu(profile, "new", None, [("A", None)])
    assert "GPU" not in diff("--all", old, new)
    assert "GPU" not in diff("--all", "--max-gpu-peak-increase", "5%", old, new)
