# SPDX-License-Identifier: GPL-2.0-only
"""--stacks: which functions allocated on GPUs, against programs that know what theirs did. The library that they use
stands in for the driver's: it has no GPU."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import harness
from harness import KIB, MIB, PROGRAMS, PYTHON, QPROF, QPROF_PACKAGE, assert_nothing_lost, profile_command, program
from test_stacks import ends_of

ROOT = Path(__file__).resolve().parents[2]
# Larger ones are sampled each, with their own bytes; smaller ones have the weight of others of their thread.
ALWAYS = 128 * KIB


def allocated(profile):
    """Rows of `gpu_allocated` as (phase or None, [(function, line), innermost first], bytes, samples)."""
    stacks = profile["stacks"]
    functions, calls = stacks["functions"]["rows"], stacks["calls"]["rows"]
    assert stacks["gpu_allocated"]["columns"] == ["phase", "call", "bytes", "samples"]
    for phase, call, count, samples in stacks["gpu_allocated"]["rows"]:
        frames = []
        while call:
            frames.append((functions[calls[call][1]][0].split(".")[-1], calls[call][2]))
            call = calls[call][0]
        yield None if phase is None else profile["phases"][phase]["name"], frames, count, samples


def by_function(profile, known):
    found = {}
    for phase, frames, count, _ in allocated(profile):
        name = next((name for name, _ in frames if name in known), None)
        found.setdefault(phase, Counter())[name] += count
    return found


def growth_of(profile):
    rows = profile["stacks"]["phase_gpu_allocated"]["rows"]
    return {**{profile["phases"][phase]["name"]: count for phase, count in rows},
            None: profile["stacks"]["gpu_allocated_bytes"]}


def run_gpu(tmp_path, *command, options=("--stacks",), **kwargs):
    """Again if samples were not read in time: that is counted, and not tested here."""
    for _ in range(4):
        run = profile_command(tmp_path / "q.yaml", *command, options=options, **kwargs)
        if not run.profile["stacks"].get("lost_gpu_samples"):
            return run
    raise AssertionError("each time samples were lost")


def test_functions_by_phase(tmp_path):
    """To the byte, but for the small ones; what is freed counts, memory of the host and what was refused do not."""
    run = run_gpu(tmp_path, program("gpu_stacks"), "all")
    assert_nothing_lost(run.profile)
    known = {name for functions in run.truth.values() for name in functions}
    found, growth = by_function(run.profile, known), growth_of(run.profile)
    expected = {phase: sum(functions.values()) for phase, functions in run.truth.items()}
    assert growth == {**expected, None: sum(expected.values())}
    for phase, functions in run.truth.items():
        for name, count in functions.items():
            small = phase == "Load" and name == "load_scales"
            got = found[phase][name]
            assert count - ALWAYS <= got <= count if small else got == count, (phase, name, got, count)
        assert set(found[phase]) == set(functions), found[phase]
        assert sum(found[phase].values()) <= growth[phase], (phase, found, growth)
    assert found[None] == sum(found.values(), Counter()) - found[None], found
    stacks = run.profile["stacks"]
    assert sum(ends_of(run.profile).values()) == stacks["samples"] + stacks["gpu_samples"] + stacks["back_samples"] - stacks["lost_samples"]
    for phase, frames, _, _ in allocated(run.profile):
        names = [name for name, _ in frames]
        assert names[0] in known, "the caller of the library's function is the innermost"
        reached = {"calibrate", "evaluate"} if phase == "Threads" else {"main"}
        assert phase is None or reached & set(names), (phase, names)
    # 8 + 4 + 300 + 1 large ones, each its own sample, and of 4000 KiB at least one for each 128.
    samples = sum(n for phase, _, _, n in allocated(run.profile) if phase is None)
    assert 313 + 4000 // 128 - 1 <= samples == stacks["gpu_samples"], samples


def test_larger_gaps(tmp_path):
    """After each 1,024 samples gaps double: of 1 MiB each, 7,168 are sampled each, then fewer."""
    run = run_gpu(tmp_path, program("gpu_stacks"), "many", "12000")
    growth, stacks = growth_of(run.profile), run.profile["stacks"]
    assert growth == {"Many": 12000 * MIB, None: 12000 * MIB}
    assert 7168 <= stacks["gpu_samples"] < 12000, stacks["gpu_samples"]
    got = by_function(run.profile, {"load_weights"})["Many"]["load_weights"]
    assert 12000 * MIB - got <= 2 * (64 * KIB << 12000 // 1024), (got, stacks["gpu_samples"])


def test_small_ones_among_large_ones(tmp_path):
    """Of 120 KiB, and five times 4 KiB, each has its own."""
    run = run_gpu(tmp_path, program("gpu_stacks"), "mixed")
    expected = run.truth["Mixed"]
    got = by_function(run.profile, set(expected))["Mixed"]
    assert got["load_weights"] == expected["load_weights"], (got, expected)
    assert expected["load_scales"] - 2 * ALWAYS <= got["load_scales"] <= expected["load_scales"], (got, expected)


def test_only_in_windows(tmp_path):
    run = run_gpu(tmp_path, program("gpu_stacks"), "all", options=("--stacks", "--window", "active=1,repeat=1",
                                                                  "--of", "Quantize"))
    stacks = run.profile["stacks"]
    columns, rows = stacks["within"]["columns"], stacks["within"]["rows"]
    within = [dict(zip(columns, row)) for row in rows]
    quantize = run.truth["Quantize"]["load_weights"]
    assert {item["gpu_bytes"] for item in within} == {quantize}, within
    found = by_function(run.profile, {"load_weights"})
    assert set(found) <= {None, "Quantize"} and found.get(None, Counter()).total() <= quantize, found
    assert growth_of(run.profile)[None] == sum(sum(functions.values()) for functions in run.truth.values())


def test_not_asked_for(tmp_path):
    """Keys are there only where memory was sampled and a GPU gave some."""
    keys = {"gpu_allocated_bytes", "gpu_samples", "lost_gpu_samples", "phase_gpu_allocated", "gpu_allocated"}
    run = profile_command(tmp_path / "q.yaml", program("gpu_stacks"), "all", options=["--stacks=cpu"])
    assert not keys & set(run.profile["stacks"]), set(run.profile["stacks"])
    assert run.profile["gpu_peak_memory_mb"] > 0
    run = profile_command(tmp_path / "q.yaml", program("stacks"), "all", options=["--stacks"])
    assert not keys & set(run.profile["stacks"]), set(run.profile["stacks"])
    run = profile_command(tmp_path / "q.yaml", program("gpu_stacks"), "all")
    assert "stacks" not in run.profile and run.profile["gpu_peak_memory_mb"] > 0


PROGRAM = """
import ctypes, json
import qprof

cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)

def allocate(mib):
    assert not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(mib << 20))  # line of allocate

class Model:
    def load(self):
        for _ in range(10):
            allocate(16)

    def quantize(self):
        for _ in range(5):
            allocate(8)

kept = [bytearray(1 << 20) for _ in range(64)]  # samples, by which the interpreter becomes known
with qprof.scope("Load"):
    Model().load()
with qprof.scope("Quantize"):
    Model().quantize()
print(json.dumps({"Load": {"load": 160 << 20}, "Quantize": {"quantize": 40 << 20}}))
"""


def test_python(tmp_path):
    """Functions of Python that call the library by ctypes; again if its interpreter was not known in time."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    for _ in range(4):
        run = run_gpu(tmp_path, PYTHON, "-X", "utf8", "-S", path,
                      env={**QPROF_PACKAGE, "LD_LIBRARY_PATH": str(PROGRAMS)})
        if all(any(line for _, line in frames) for _, frames, _, _ in allocated(run.profile)):
            break
    found, growth = by_function(run.profile, {"load", "quantize"}), growth_of(run.profile)
    assert growth == {"Load": 160 * MIB, "Quantize": 40 * MIB, None: 200 * MIB}
    for phase, functions in run.truth.items():
        assert found[phase] == Counter(functions), (phase, found)
    line = PROGRAM.split("# line of allocate")[0].count("\n") + 1
    assert {next(frame for frame in frames if frame[1]) for _, frames, _, _ in allocated(run.profile)} == {("allocate", line)}
    text = harness.run_qprof("report", "--width", "120", run.path).stdout.split("ALLOCATED ON GPUS BY")[1]
    assert f"program.py:{line}, allocate" in text, text


def report(run, *args):
    return subprocess.run([QPROF, "report", *args, run.path], capture_output=True, check=True).stdout


def test_reports_add_up(tmp_path):
    """Text, folded stacks, speedscope's and pprof's have what the run and its phases allocated, to the byte."""
    run = run_gpu(tmp_path, program("gpu_stacks"), "all", options=("--stacks=memory,cpu",))
    growth = growth_of(run.profile)

    def folded(*args):
        lines = [line.rsplit(" ", 1) for line in report(run, "-f", "folded-gpu", *args).decode().splitlines()]
        return [(stack.split(";"), int(count)) for stack, count in lines]

    assert sum(count for _, count in folded()) == growth[None]
    assert sum(count for _, count in folded("--phase", "Load")) == growth["Load"]
    graph = json.loads(report(run, "-f", "speedscope"))
    got = {profile["name"]: sum(profile["weights"]) for profile in graph["profiles"] if "GPUs" in profile["name"]}
    assert got == {f"allocated on GPUs in {name or 'the whole run'}": count for name, count in growth.items()}
    proto = ROOT / "user" / "report" / "pprof.proto"
    text = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", f"-I{proto.parent}", proto],
                          input=report(run, "-f", "pprof"), capture_output=True, check=True).stdout.decode()
    values = [[int(n) for n in re.findall(r"^  value: (-?\d+)", sample, re.M)] for sample in re.split(r"^sample \{$", text, flags=re.M)[1:]]
    assert {len(value) for value in values} == {8}, values[:5]
    assert sum(value[1] for value in values) == run.profile["stacks"]["grown_bytes"]
    assert sum(value[5] for value in values) == growth[None]
    text = report(run).decode().split("ALLOCATED ON GPUS BY")[1]
    assert "584 MiB allocated on GPUs in the whole run, by" in text and "map_cache (gpu_stacks)" in text, text
    same = harness.run_qprof("diff", run.path, run.path).stdout
    assert "Allocated on GPUs by" in same, same
