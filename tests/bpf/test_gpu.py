# SPDX-License-Identifier: GPL-2.0-only
"""Memory of GPUs, to the byte, against programs that keep their own ledger. The libraries that they
use stand in for the drivers': they have no GPU."""

import signal
import subprocess

import pytest

from harness import MIB, PROGRAMS, PYTHON, QPROF_PACKAGE, assert_nothing_lost, process_of, program, \
    quality, row_of, rows, run_qprof


MOST, MOST_AT_ONCE = 1 << 40, 64 << 20  # GPU_MOST_BYTES and GPU_MAX_BYTES of tests/programs/gpu_truth.h


# The programs by the library that they use: libcuda, or HSA and HIP above it.
REFUSALS = {"gpu": "CUDA_ERROR_OUT_OF_MEMORY", "gpu_amd": "HSA_STATUS_ERROR_OUT_OF_RESOURCES"}
either = pytest.mark.parametrize("name", REFUSALS)


def in_bytes(item, key):
    """Keys of memory name the byte; one that is absent is 0."""
    return round(item.get(key, 0) * MIB)


def figures(row):
    return {"step": row["step"], "gpu": in_bytes(row, "gpu_memory_mb"),
            "peak": in_bytes(row, "gpu_step_peak_memory_mb"),
            "pinned": in_bytes(row, "pinned_host_memory_mb")}


def held(process):
    return {"pid": process["pid"], "held": in_bytes(process, "gpu_memory_mb"),
            "pinned": in_bytes(process, "pinned_host_memory_mb")}


def assert_rows(profile, truth):
    for row, expected in zip(rows(profile), truth["rows"]):
        assert figures(row) == expected, f"expected {expected}, got {figures(row)}"
    assert len(rows(profile)) == len(truth["rows"])


def assert_totals(profile, truth):
    got = in_bytes(profile, "gpu_peak_memory_mb"), in_bytes(profile, "pinned_host_peak_memory_mb")
    assert got == (truth["peak"], truth["pinned_peak"]), f"expected {truth}, got {got}"
    assert profile["peak_gpu_memory_mb"] == profile["gpu_peak_memory_mb"]


def assert_devices(profile, truth):
    devices = {gpu["program_index"]: in_bytes(gpu, "allocated_peak_mb") for gpu in profile["gpus"]}
    assert devices == dict(enumerate(truth["devices"])), f"expected {truth['devices']}, got {profile['gpus']}"


def assert_processes(profile, n):
    """Each names device 0 as such: what is certain of one device is what one of them had."""
    assert profile["gpu_processes"] == n
    for gpu in profile["gpus"]:
        assert 0 < in_bytes(gpu, "allocated_process_peak_mb") <= in_bytes(gpu, "allocated_peak_mb"), gpu
        if n == 1:
            assert gpu["allocated_process_peak_mb"] == gpu["allocated_peak_mb"], gpu


def assert_phases(profile, truth):
    """Each gap between two marks has the peak of the step that the second ends."""
    steps = {row["step"]: row for row in truth["rows"]}
    for phase in profile["phases"]:
        if phase["to"] not in steps or phase["name"] not in steps:
            continue
        first, last = steps[phase["name"]], steps[phase["to"]]
        got = (in_bytes(phase, "gpu_peak_memory_mb"), in_bytes(phase, "gpu_delta_memory_mb"))
        expected = (last["peak"], last["gpu"] - first["gpu"])
        assert got == expected, f"{phase['name']}: expected {expected}, got {got}"


def curve(profile):
    """The rows of gpu_timeline, in bytes: held, its highest since the row before, and pinned."""
    table = profile["gpu_timeline"]
    assert table["columns"] == ["time_secs", "gpu_memory_mb", "gpu_peak_memory_mb", "pinned_host_memory_mb"]
    points = [(row[0], *(round(value * MIB) for value in row[1:])) for row in table["rows"]]
    assert points == sorted(points, key=lambda point: point[0]), "not in order of time"
    for _, held_then, highest, _ in points:
        assert highest >= held_then, points
    return points


def assert_curve_has_steps(profile):
    """At each row the curve has what the row has, and between two rows the step's peak, however short that was."""
    points, before = curve(profile), -1.0
    assert quality(profile)["thinned_points"] == 0 and len(points) > len(rows(profile))
    for row in rows(profile):
        at = row["relative_time_secs"]
        stretch = [point for point in points if before < point[0] <= at]
        before = at
        if "gpu_memory_mb" not in row:
            continue
        _, held_then, _, pinned = stretch[-1]
        got = {"step": row["step"], "gpu": held_then, "peak": max(point[2] for point in stretch), "pinned": pinned}
        assert got == figures(row), f"expected {figures(row)}, got {got} of {stretch}"


def assert_refusals(refusals, refused, error):
    """The last ones: one byte more was asked for than any GPU has."""
    numbers = [refusal["number"] for refusal in refusals]
    assert numbers == list(range(refused - 15, refused + 1)), f"expected the last 16 of {refused}, got {numbers}"
    for refusal in refusals:
        got = in_bytes(refusal, "asked_mb"), refusal["error"]
        assert got == (MOST + 1, error), refusal
        assert refusal["program_index"] in (0, 1) and refusal["held_mb"] > 0, refusal


@either
def test_each_kind_of_call(unhurried, name):
    """Pitch, arrays, pools, handles and mappings, contexts; calls that call or jump to others."""
    run = unhurried(program(name), "steps")
    assert_rows(run.profile, run.truth)
    assert_totals(run.profile, run.truth)
    assert_devices(run.profile, run.truth)
    assert_processes(run.profile, 1)
    assert_curve_has_steps(run.profile)
    assert quality(run.profile)["estimated_gpu_arrays"] == (name == "gpu")
    assert_nothing_lost(run.profile)


@either
def test_100000_operations(unhurried, name):
    """3 processes of 8 threads, with spikes of 0.2 ms and failures; one ends and one is killed with
    all that they hold. Each step, each phase, each process and the totals are exact."""
    run = unhurried(program(name), "random", "100000")
    assert_rows(run.profile, run.truth)
    assert_totals(run.profile, run.truth)
    assert_phases(run.profile, run.truth)
    for expected in run.truth["processes"]:
        (process,) = process_of(run.profile, expected["pid"])
        got = held(process) | {"peak": in_bytes(process, "gpu_peak_memory_mb")}
        assert got == expected, f"expected {expected}, got {got}"
    assert quality(run.profile)["unknown_gpu_frees"] == 0
    assert_devices(run.profile, run.truth)
    assert_processes(run.profile, 3)
    points = curve(run.profile)
    assert len(points) > 2000 and max(point[2] for point in points) == run.truth["peak"]
    assert_refusals(run.profile["gpu_refusals"], run.truth["refused"], REFUSALS[name])


@either
def test_calls_at_the_same_time(unhurried, name):
    """Without a lock around the calls nobody knows the peak; what is held at the end is exact."""
    run = unhurried(program(name), "free", "40000")
    for expected in run.truth["rows"]:
        got = figures(row_of(run.profile, expected["step"]))
        for key in ("gpu", "pinned"):
            assert got[key] == expected[key], f"expected {expected}, got {got}"
    for expected in run.truth["processes"]:
        expected.pop("peak")
        (process,) = process_of(run.profile, expected["pid"])
        got = held(process)
        assert got == expected, f"expected {expected}, got {got}"
    assert quality(run.profile)["unknown_gpu_frees"] == 0, quality(run.profile)
    points = curve(run.profile)
    assert max(point[2] for point in points) == in_bytes(run.profile, "gpu_peak_memory_mb")
    last = [point for point in points if point[0] <= row_of(run.profile, "End")["relative_time_secs"]][-1]
    assert (last[1], last[3]) == (figures(row_of(run.profile, "End"))["gpu"], figures(row_of(run.profile, "End"))["pinned"])


@pytest.mark.parametrize("name,how,status", [
    ("gpu", "exit", 3), ("gpu", "abort", -signal.SIGABRT), ("gpu", "segv", -signal.SIGSEGV),
    ("gpu_amd", "exit", 3), ("gpu_amd", "abort", -signal.SIGABRT), ("gpu", "elsewhere", 3)])
def test_ended_by_a_refusal(out, unhurried, name, how, status):
    """The certificate of a program that a GPU refused memory, and gave it none since."""
    run = unhurried(program(name), "refused", how, status=status)
    end, = run.profile["ended"]
    assert (end["how"], end["refused_by"], end["phase"]) == ("refused", "GPU", "Load"), end
    refusal = end["gpu_refusal"]
    got = in_bytes(refusal, "asked_mb"), in_bytes(refusal, "held_mb"), refusal["program_index"], refusal["error"]
    assert got == (MOST + 1, MOST_AT_ONCE, 1, REFUSALS[name]), refusal
    assert refusal["time_secs"] <= end["time_secs"], end
    assert refusal == run.profile["gpu_refusals"][-1], run.profile["gpu_refusals"]
    text = " ".join(run_qprof("report", "--width", "200", out).stdout.split())
    assert "refused more memory, at " in text and "had been refused 1.00 TiB on GPU 1 of the program at " in text, text
    assert f", where the run held 64.0 MiB ({REFUSALS[name]})" in text, text


def test_ended_after_a_refusal(unhurried):
    """Not by it: the GPU gave it memory later, or it ended well."""
    for how, status in (("given", 3), ("well", 0)):
        run = unhurried(program("gpu"), "refused", how, status=status)
        assert "ended" not in run.profile and len(run.profile["gpu_refusals"]) == 1, run.profile


def test_exception_after_a_refusal(unhurried):
    """Of Python, as PyTorch raises them: one end, with its words."""
    program_text = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1) and not cuda.cuCtxSetCurrent(context)
if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t((1 << 40) + 1)):
    raise RuntimeError("CUDA out of memory")
"""
    run = unhurried(PYTHON, "-c", program_text, status=1, env={**QPROF_PACKAGE, "LD_LIBRARY_PATH": str(PROGRAMS)})
    end, = run.profile["ended"]
    assert (end["how"], end["exception"], end["refused_by"]) == ("refused", "RuntimeError: CUDA out of memory", "GPU"), end
    assert in_bytes(end["gpu_refusal"], "asked_mb") == MOST + 1 and end["gpu_refusal"]["held_mb"] == 0, end


def test_what_stays_on_a_gpu(unhurried):
    """4 MiB of each layer; and what is there for a while is a peak, not growth."""
    program_text = """
import ctypes, qprof
cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)

def allocate(mib):
    assert not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(mib << 20))
    return at.value

for layer in range(16):
    with qprof.scope(f"Layer {layer}"):
        allocate(4)
        assert not cuda.cuMemFree_v2(ctypes.c_uint64(allocate(1)))
"""
    run = unhurried(PYTHON, "-c", program_text, env={**QPROF_PACKAGE, "LD_LIBRARY_PATH": str(PROGRAMS)})
    trend, = [trend for trend in run.profile["trends"] if trend["phase"] == "Layer #"]
    got = {key: trend.get(key) for key in ("repeats", "per_repeat_gpu_mb", "last_gpu_mb", "per_repeat_gpu_peak_mb", "per_repeat_mb")}
    assert got == {"repeats": 16, "per_repeat_gpu_mb": 4, "last_gpu_mb": 64, "per_repeat_gpu_peak_mb": 4, "per_repeat_mb": None}, trend
    text = " ".join(run_qprof("report", "--width", "200", run.path).stdout.split())
    assert "Grows: Layer # (16 repeats): +4.00 MiB of memory on GPUs each, 64.0 MiB after the last" in text, text


MADE_UP = r"""
#include <stdint.h>
#ifdef LIBRARY
int cuMemAlloc_v2(uint64_t *at, uint64_t bytes)
{
	static uint64_t given;

	*at = ++given << 40;
	return !bytes;
}
int cuArrayCreate_v2(uint64_t *array, const void *shape)
{
	*array = 42;
	return !shape;
}
#else
#include "sys/sdt.h"
int cuMemAlloc_v2(uint64_t *at, uint64_t bytes);
int cuArrayCreate_v2(uint64_t *array, const void *shape);
int main(void)
{
	const uint64_t sizes[] = {1 << 20, UINT64_C(1) << 63, UINT64_MAX, (UINT64_C(1) << 43) + 1, 2 << 20};
	/* 2^64 bytes and 2^32, of 4 bytes an element. */
	const struct { uint64_t width, height; uint32_t format, channels; } shape = {(UINT64_C(1) << 32) + 1, 1 << 30, 0x20, 1};
	uint64_t at;

	for (int i = 0; i < 5; i++)
		if (cuMemAlloc_v2(&at, sizes[i]))
			return 1;
	if (cuArrayCreate_v2(&at, &shape))
		return 1;
	DTRACE_PROBE1(qprof, mark, "given");
	return 0;
}
#endif
"""


@pytest.mark.parametrize("options", [[], ["--stacks"]], ids=["plain", "stacks"])
def test_sizes_that_no_gpu_has(tmp_path, unhurried, options):
    """Anybody can make a libcuda.so.1 that gives out 2^63 bytes: it is counted, and no sum wraps."""
    library, path = tmp_path / "libcuda.so.1", tmp_path / "made_up"
    (tmp_path / "made_up.c").write_text(MADE_UP, encoding="utf-8")
    for how in (["-shared", "-fPIC", "-DLIBRARY", "-o", library],
                ["-o", path, f"-Wl,-rpath,{tmp_path}", library]):
        subprocess.run(["gcc", "-O1", tmp_path / "made_up.c", *how], check=True)
    run = unhurried(path, options=options)
    given = row_of(run.profile, "given")
    assert (in_bytes(given, "gpu_memory_mb"), in_bytes(given, "gpu_step_peak_memory_mb")) == (3 * MIB, 3 * MIB), given
    assert quality(run.profile)["uncounted_gpu_allocations"] == 4, quality(run.profile)
    if options:
        assert run.profile["stacks"]["gpu_allocated_bytes"] == 3 * MIB, run.profile["stacks"]


def test_without_a_gpu(unhurried):
    """No key of a GPU is in the profile of a program that uses none."""
    run = unhurried(program("memory"), "spike", "8", "1")
    text = run.path.read_text(encoding="utf-8").split("\n#")[0]
    keys = [line for line in text.splitlines() if "gpu" in line and ": 0" not in line]
    assert not keys and "gpu_memory_mb" not in text and "gpu_timeline" not in text, keys
