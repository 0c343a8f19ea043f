# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf diff of profiles with stacks: which functions first touched more or less."""

import collections
import json

import pytest
import yaml

from profiles import QUARK
from reports import PROFILE, run

MIB = 1 << 20


def profile(stacks, grown=None):
    """A profile in which these stacks, a tuple of (function, path), first touched so many MiB each."""
    functions, calls, rows = [("(all)", "")], [(0, 0)], []
    for stack, size in stacks.items():
        call = 0
        for function in stack:
            if function not in functions:
                functions.append(function)
            below = (call, functions.index(function))
            if below not in calls[1:]:
                calls.append(below)
            call = calls.index(below, 1)
        rows.append([None, call, "anon", size * MIB, 1])
    document = {
        "memory_usage": [{"step": "Start", "timestamp": 1.0, "relative_time_secs": 0.0, "cpu_memory_mb": 1.0}],
        "total_quantization_time_seconds": 1.0, "peak_memory_mb": 1.0, "phases": [],
        "stacks": {"grown_bytes": (grown or sum(stacks.values())) * MIB, "samples": len(rows),
                   "functions": {"columns": ["name", "path"], "rows": [list(f) for f in functions]},
                   "calls": {"columns": ["caller", "function"], "rows": [list(c) for c in calls]},
                   "phase_growth": {"columns": ["phase", "bytes"], "rows": []},
                   "touched": {"columns": ["phase", "call", "kind", "bytes", "samples"], "rows": rows}}}
    return yaml.safe_dump(document, sort_keys=False)


@pytest.fixture
def diff(tmp_path):
    """diff(OLD, NEW): the texts of one profile or several of a side."""
    def diff(old, new, *args):
        sides = []
        for side, texts in (("old", old), ("new", new)):
            paths = [tmp_path / f"{side}{i}.yaml" for i in range(len(texts))]
            for path, text in zip(paths, texts):
                path.write_text(text)
            sides.append(",".join(map(str, paths)))
        return run("diff", *args, *sides)[0].decode()
    return diff


def medians(diff, old, new):
    """(name, file): self of old and new, total of old and new, in MiB; in the order of the file."""
    functions = json.loads(diff(old, new, "-f", "json"))["first_touched"]
    return {(f["name"], f["file"]): tuple(f[part][side] and f[part][side]["median"] / MIB
                                          for part in ("self_bytes", "total_bytes") for side in ("old", "new"))
            for f in functions}


def lines(text):
    """What stands below the title, without blanks."""
    said = [" ".join(line.split()) for line in text.split("First touched by\n")[1].splitlines()]
    return said[:next((i for i, line in enumerate(said) if not line or line.endswith("(--all)")), len(said)) + 1]


MAIN, LOAD, PACK = ("main", "/opt/q/quantize"), ("load", "/opt/q/quantize"), ("pack", "/opt/q/libpack.so")
MEMSET, NAMELESS = ("memset", "/lib/libc.so.6"), ("", "/lib/libc.so.6")


def test_self_and_total(diff):
    """The C library touches for its caller; who calls itself counts once; the largest change comes first."""
    old = profile({(MAIN,): 1, (MAIN, LOAD): 10, (MAIN, PACK, PACK, PACK): 8, (MAIN, PACK, MEMSET): 4}, grown=25)
    new = profile({(MAIN,): 1, (MAIN, LOAD): 13, (MAIN, PACK, PACK, PACK): 8, (MAIN, PACK, MEMSET): 20}, grown=42)
    found = medians(diff, [old], [new])
    assert found == {("(all)", None): (0, 0, 25, 42), ("pack", "libpack.so"): (12, 28, 12, 28),
                     ("load", "quantize"): (10, 13, 10, 13), ("main", "quantize"): (1, 1, 23, 42),
                     ("(unsampled)", None): (2, 0, 2, 0), ("memset", "libc.so.6"): (0, 0, 4, 20)}
    assert list(found)[:3] == [("(all)", None), ("pack", "libpack.so"), ("load", "quantize")]
    assert lines(diff([old], [new])) == [
        "(all)", "in all 25.0 MiB 42.0 MiB +17.0 MiB +68.0 %",
        "pack (libpack.so)", "itself 12.0 MiB 28.0 MiB +16.0 MiB +133.3 %",
        "load (quantize)", "itself 10.0 MiB 13.0 MiB +3.00 MiB +30.0 %",
        "(unsampled)", "itself 2.00 MiB 0 B -2.00 MiB -100.0 %",
        "main (quantize)", "itself 1.00 MiB 1.00 MiB +0 B +0.0 %", "in all 23.0 MiB 42.0 MiB +19.0 MiB +82.6 %",
        "memset (libc.so.6)", "in all 4.00 MiB 20.0 MiB +16.0 MiB +400.0 %"]


def test_small_changes_are_left_out(diff):
    """But with --all."""
    old = profile({(MAIN, LOAD): 1000, (MAIN, PACK): 5, (NAMELESS,): 1})
    new = profile({(MAIN, LOAD): 1004, (MAIN, PACK): 9, (NAMELESS,): 1})
    assert lines(diff([old], [new]))[2:] == ["pack (libpack.so)", "itself 5.00 MiB 9.00 MiB +4.00 MiB +80.0 %",
                                             "3 functions with less of a change (--all)"]
    everything = lines(diff([old], [new], "--all"))
    assert [everything.index(name) > 0 for name in ("load (quantize)", "main (quantize)", "[libc.so.6]")] == [True] * 3


def test_directories_do_not_count(diff):
    old = profile({(("f", "/opt/v1/lib.so"),): 5})
    new = profile({(("f", "/home/x/v2/lib.so"),): 7})
    assert medians(diff, [old], [new])["f", "lib.so"] == (5, 7, 5, 7)
    other = profile({(("f", "/opt/v1/other.so"),): 7})
    found = medians(diff, [old], [other])
    assert found["f", "lib.so"] == (5, 0, 5, 0) and found["f", "other.so"] == (0, 7, 0, 7)


def test_repeats(diff):
    """Medians; a run that has no such function counts as 0, a run without stacks does not count."""
    old = [profile({(MAIN,): 4}), profile({(MAIN,): 4, (LOAD,): 6}), profile({(MAIN,): 8, (LOAD,): 9})]
    new = [profile({(MAIN,): 20}), QUARK]
    found = medians(diff, old, new)
    assert found["main", "quantize"][:2] == (4, 20) and found["load", "quantize"][:2] == (6, 0)
    document = json.loads(diff(old, new, "-f", "json"))["first_touched"]
    load = next(f for f in document if f["name"] == "load")["self_bytes"]
    assert (load["old"]["lowest"], load["old"]["highest"], load["within_spread"]) == (0, 9 * MIB, True)
    said = lines(diff(old, new))
    assert said[said.index("load (quantize)") + 1].endswith("~") and not said[said.index("main (quantize)") + 1].endswith("~")


def test_stacks_of_one_side(diff):
    """All functions would be new, which says nothing."""
    stacks = profile({(MAIN,): 4})
    assert lines(diff([QUARK], [stacks]))[0] == "only NEW was recorded with --stacks"
    assert lines(diff([stacks], [QUARK]))[0] == "only OLD was recorded with --stacks"
    assert medians(diff, [QUARK], [stacks])["main", "quantize"] == (None, 4, None, 4)


def cpu_profile(stacks, used):
    """The same stacks, which used so many ms of `used` ms each."""
    document = yaml.safe_load(profile(stacks))
    of = document["stacks"]
    rows = of.pop("touched")["rows"]
    del of["grown_bytes"], of["samples"], of["phase_growth"]
    of["cpu_samples"] = len(rows)
    of["ran"] = {"columns": ["phase", "call", "cpu_ns", "samples"],
                 "rows": [[phase, call, size // MIB * 10**6, samples] for phase, call, _, size, samples in rows]}
    document["total_cpu_time_secs"] = used / 1000
    return yaml.safe_dump(document, sort_keys=False)


def test_cpu_time(diff):
    """In its own unit, beside what was touched first; of one side alone it says nothing."""
    old = cpu_profile({(MAIN,): 100, (MAIN, LOAD): 1000, (MAIN, PACK, MEMSET): 400}, used=1600)
    new = cpu_profile({(MAIN,): 102, (MAIN, LOAD): 3000, (MAIN, PACK, MEMSET): 400}, used=3502)
    said = [" ".join(line.split()) for line in diff([old], [new]).split("CPU time by\n")[1].splitlines()]
    assert said[:7] == ["(all)", "in all 1.6 s 3.5 s +1.9 s +118.9 %", "load (quantize)", "itself 1.0 s 3.0 s +2.0 s +200.0 %",
                        "(unsampled)", "itself 100 ms 0 s -100 ms -100.0 %", "main (quantize)"], said
    assert "First touched by" not in diff([old], [new])
    found = json.loads(diff([old], [new], "-f", "json"))
    assert "first_touched" not in found
    load = next(f for f in found["cpu_time"] if f["name"] == "load")
    assert (load["self_secs"]["old"]["median"], load["total_secs"]["new"]["median"]) == (1, 3)
    both = diff([profile({(MAIN,): 4})], [new])
    assert "only OLD was recorded with --stacks\n" in both and "only NEW was recorded with --stacks=cpu\n" in both


def test_no_stacks(diff):
    assert "First touched" not in diff([QUARK], [QUARK])
    assert "first_touched" not in json.loads(diff([QUARK], [QUARK], "-f", "json"))


def test_many_functions(diff):
    """The largest twenty; the others are counted."""
    old = profile({((f"f{i}", "/a"),): 1 for i in range(50)})
    new = profile({((f"f{i}", "/a"),): 10 + i for i in range(50)})
    said = lines(diff([old], [new]))
    assert [line for line in said if line.startswith("f")] == [f"f{i} (a)" for i in range(49, 29, -1)]
    assert said[-1] == "30 functions with less of a change (--all)"


@pytest.mark.parametrize("width", [60, 100, 512])
def test_long_names_leave_room(diff, width):
    old, new = (profile({(("\x1b[31m" + "x" * 5000, "/" + "y" * 5000),): size}) for size in (1, 9))
    text = diff([old], [new], "--width", width)
    assert max(map(len, text.splitlines())) <= max(width, 68) and "\x1b" not in text


def test_recorded():
    """Of a recorded run against itself, nothing changes; its sums are those of its own table."""
    document = json.loads(run("diff", "-f", "json", PROFILE, PROFILE)[0])["first_touched"]
    assert all(f[part]["old"] == f[part]["new"] for f in document for part in ("self_bytes", "total_bytes"))
    selves = collections.Counter({f["name"]: f["self_bytes"]["old"]["median"] for f in document})
    stacks = yaml.safe_load(PROFILE.read_text())["stacks"]
    assert sum(selves.values()) == stacks["grown_bytes"]
    assert selves["hessian;add"] == 52428800 + 104857600 + 37748736
    assert selves["Layer.quantize"] == 52428800


def gpu_profile(stacks):
    """The same stacks, which allocated so much on a GPU."""
    document = yaml.safe_load(profile(stacks))
    of = document["stacks"]
    rows = [row for row in of["touched"]["rows"] if row[0] is not None or row[1]]
    of["gpu_allocated_bytes"] = sum(size for _, _, _, size, _ in rows)
    of["gpu_samples"] = len(rows)
    of["allocated"] = {"columns": ["phase", "call", "bytes", "samples"],
                       "rows": [[phase, call, size, samples] for phase, call, _, size, samples in rows]}
    document["gpu_peak_memory_mb"] = document["peak_gpu_memory_mb"] = of["gpu_allocated_bytes"] / MIB
    return document


def of_gpus(text):
    return [" ".join(line.split()) for line in text.split("Allocated on GPUs by\n")[1].splitlines()]


def test_stacks_of_gpus(diff):
    """A run that used no GPU has none of the keys, and counts as 0; one that used some without stacks of it does not."""
    used = gpu_profile({(MAIN,): 4})
    none, unseen = profile({(MAIN,): 4}), gpu_profile({(MAIN,): 4})
    for key in ("gpu_allocated_bytes", "gpu_samples", "allocated"):
        del unseen["stacks"][key]
    used, unseen = (yaml.safe_dump(document, sort_keys=False) for document in (used, unseen))
    assert of_gpus(diff([none], [used]))[:2] == ["(all)", "in all 0 B 4.00 MiB +4.00 MiB from 0"]
    assert of_gpus(diff([none, used, none], [used]))[1] == "in all 0 B 4.00 MiB +4.00 MiB from 0 ~"
    assert of_gpus(diff([unseen], [used]))[0] == "only NEW was recorded with stacks of GPUs"
    assert of_gpus(diff([unseen, used], [used]))[1] == "in all 4.00 MiB 4.00 MiB +0 B +0.0 %"
    assert "Allocated on GPUs" not in diff([none], [none]) + diff([unseen], [none])
