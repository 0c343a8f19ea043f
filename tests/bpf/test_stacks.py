# SPDX-License-Identifier: GPL-2.0-only
"""--stacks: which functions made memory grow, against programs that know what theirs touched first."""

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from harness import KIB, MIB, PAGE, QPROF, assert_nothing_lost, profile_command, program, quality

ROOT = Path(__file__).resolve().parents[2]
# An event comes once for so many faults of a thread, before Linux 6.2.
OLD_EVENT = 64 * PAGE


def stacks_of(profile):
    """Rows of `touched` as (phase or None, [functions, innermost first], bytes)."""
    stacks = profile["stacks"]
    functions, calls = stacks["functions"]["rows"], stacks["calls"]["rows"]
    assert stacks["touched"]["columns"] == ["phase", "call", "kind", "bytes", "samples"], stacks["touched"]["columns"]
    for phase, call, kind, count, samples in stacks["touched"]["rows"]:
        assert kind in ("anon", "file", "shmem") and samples > 0, (kind, samples)
        names = []
        while call:
            assert calls[call][0] < call, "a caller comes before what it calls"
            names.append(functions[calls[call][1]][0])
            call = calls[call][0]
        yield None if phase is None else profile["phases"][phase]["name"], names, count


def by_function(profile, known):
    """Bytes by phase and by the innermost of the functions that are known."""
    found = {}
    for phase, names, count in stacks_of(profile):
        name = next((name for name in names if name in known), None)
        found.setdefault(phase, Counter())[name] += count
    return found


def growth_of(profile):
    return {profile["phases"][phase]["name"]: count for phase, count in profile["stacks"]["phase_growth"]["rows"]}


def ends_of(profile):
    return dict(profile["stacks"]["ends"]["rows"])


def one_sample(profile):
    """A sample stands for this much at most: twice the mean gap, which doubles, and what one event brings."""
    return 2 * (64 * KIB << profile["stacks"]["samples"] // 1024) + 16 * PAGE


def assert_agrees(run, cpus=1):
    """Each function's bytes are what it touched, and what has no sample is what is left of the growth."""
    known = {name for functions in run.truth.values() for name in functions}
    found, growth = by_function(run.profile, known), growth_of(run.profile)
    weight = one_sample(run.profile)
    is_old = "before Linux 6.2" in run.profile["qprof"]["backends"]["rss"]
    for phase, functions in run.truth.items():
        for name, mib in functions.items():
            off = 0.02 * mib * MIB + cpus * weight + (OLD_EVENT if is_old else 0)
            assert found[phase][name] == pytest.approx(mib * MIB, abs=off), (phase, name, found[phase])
        sampled = sum(found[phase].values())
        assert sampled <= growth[phase], (phase, sampled, growth)
        assert growth[phase] - sampled <= 4 * cpus * weight, (phase, sampled, growth)
    assert sum(found[None].values()) <= run.profile["stacks"]["grown_bytes"]


def assert_whole(profile, least=0.95):
    ends = ends_of(profile)
    assert ends.get("whole", 0) >= least * sum(ends.values()), ends


def assert_all_ended(profile):
    """Each sample that was read has an end, whatever became of its stack."""
    stacks = profile["stacks"]
    taken = stacks["samples"] - stacks["lost_samples"] + stacks["back_samples"] - stacks["lost_back_samples"]
    assert sum(ends_of(profile).values()) == taken, stacks["ends"]


def run_stacks(tmp_path, name, *what):
    """On one CPU: each CPU has its own samples, and begins a function with what the last one left of a weight.

    Again if the machine was so busy that samples, or what is mapped, were not read in time, or that the program did not wait for its new
    code to be searched: that is counted, and not tested here.
    """
    command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), program(name), *what]
    for _ in range(4):
        run = profile_command(tmp_path / "q.yaml", *command, options=["--stacks"])
        assert_all_ended(run.profile)
        counted = run.profile["stacks"]["lost_samples"], quality(run.profile)["hasty_starts"]
        ends = ends_of(run.profile)
        if not any(counted) and ends.get("process gone", 0) <= sum(ends.values()) / 20:
            break
    assert counted == (0, 0), f"each time samples were lost, or starts were hasty: {counted}"
    return run


@pytest.mark.parametrize("name", ["stacks", "stacks_static"])
def test_functions_by_phase(tmp_path, name):
    """Phases within phases, memset(), recursion, and a child that is gone at once."""
    run = run_stacks(tmp_path, name, "all")
    assert_nothing_lost(run.profile)
    assert_agrees(run)
    assert_whole(run.profile)
    reach = [names for phase, names, _ in stacks_of(run.profile) if phase]
    assert sum("main" in names for names in reach) >= 0.95 * len(reach), [names[-3:] for names in reach]


CXX = """
#include <cstdlib>
#include <cstring>
namespace model {
template <typename T> struct layer {
	__attribute__((noipa)) static void grow(char *at, std::size_t size) { std::memset(at, sizeof(T), size); }
};
namespace {
__attribute__((noipa)) void load(char *at, std::size_t size) { std::memset(at, 3, size); }
}
}
int main()
{
	const std::size_t mib = 1 << 20;
	char *at = static_cast<char *>(std::aligned_alloc(mib, 112 * mib));

	if (!at)
		return 1;
	model::layer<int>::grow(at, 64 * mib);
	model::layer<long>::grow(at + 64 * mib, 16 * mib);
	model::load(at + 80 * mib, 32 * mib);
	return at[0] + at[112 * mib - 1] - 7;
}
"""
CXX_MIB = {"model::layer<int>::grow": 64, "model::layer<long>::grow": 16, "model::(anonymous namespace)::load": 32}


def test_names_of_cxx(tmp_path):
    """As people write them, those of templates and of namespaces without a name, too."""
    source, path = tmp_path / "names.cpp", tmp_path / "names"
    source.write_text(CXX, encoding="ascii")
    subprocess.run(["g++", "-O1", "-o", path, source], check=True)
    run = run_stacks(tmp_path, path)
    found = by_function(run.profile, CXX_MIB)[None]
    for name, mib in CXX_MIB.items():
        off = 0.02 * mib * MIB + one_sample(run.profile) + OLD_EVENT
        assert found[name] == pytest.approx(mib * MIB, abs=off), (name, found)


def test_threads(tmp_path):
    """Four threads at once share the samples; each is of the thread that touched."""
    run = run_stacks(tmp_path, "stacks", "threads")
    assert_agrees(run)
    assert_whole(run.profile)


def test_libraries_in_one_place(tmp_path):
    """dlclose(), and dlopen() of another library of the same size: the kernel maps it where the first was."""
    opened = [word for name in ("first", "other") for word in (program(f"touches_{name}.so"), f"touch_{name}")]
    run = run_stacks(tmp_path, "stacks", "opened", *opened, *opened)
    assert_agrees(run)
    assert_whole(run.profile)


def test_deep_recursion(tmp_path):
    """10,000 calls deep: what the copy does not hold is cut off, and counted as such."""
    run = run_stacks(tmp_path, "stacks", "deep")
    assert_agrees(run)
    ends = ends_of(run.profile)
    assert ends.get("more than 256 calls", 0) + ends.get("deeper than 32 KiB", 0) > 0.8 * sum(ends.values()), ends
    assert max(len(names) for _, names, _ in stacks_of(run.profile)) <= 257


@pytest.mark.skipif(subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip() != "x86_64",
                    reason="the program has that for x86-64 alone")
def test_a_stack_pointer_into_nowhere(tmp_path):
    """The function that touched is known still; how it was called is not."""
    run = run_stacks(tmp_path, "stacks", "lost")
    ends = ends_of(run.profile)
    assert ends.get("stack unreadable", 0) > 0.8 * sum(ends.values()), ends
    assert growth_of(run.profile)["Lost"] >= 16 * MIB


def test_an_exec_at_once(tmp_path):
    """What came before is not unwound by the code of the program that has its addresses now: that leads nowhere."""
    script = f"for i in $(seq 30); do {program('stacks_static')} exec {program('calls_static')} plain 0; done"
    profile = profile_command(tmp_path / "q.yaml", "sh", "-c", script, options=["--stacks"]).profile
    assert_all_ended(profile)
    ends = ends_of(profile)
    assert ends.get("stack unreadable", 0) < 0.02 * sum(ends.values()), ends
    assert ends["whole"] > 0.2 * sum(ends.values()), ends


def test_the_unwinder_is_killed(tmp_path):
    """By the command, before it touches anything: samples are counted, and a warning says why they have no stacks."""
    kill = ('for c in $(cat /proc/$PPID/task/*/children); do '
            '  grep -q "^Uid:.65534" /proc/$c/status && kill -9 $c && exec "$@"; done; exit 1')
    run = profile_command(tmp_path / "q.yaml", "sh", "-c", kill, "sh", program("stacks"), "lost", options=["--stacks"])
    assert_all_ended(run.profile)
    ends = ends_of(run.profile)
    assert ends.get("unwinder gone", 0) > 0.5 * 16 * MIB / (64 * KIB) and "too many at once" not in ends, ends
    assert any(warning["what"] == "stacks" for warning in run.profile["quality"]["warnings"]), run.profile["quality"]


def test_without_stacks(tmp_path):
    """The profile is as it was."""
    run = profile_command(tmp_path / "q.yaml", program("stacks"), "lost")
    assert "stacks" not in run.profile, run.profile["stacks"]


def test_folded_stacks_add_up(tmp_path):
    """Folded stacks, speedscope's and pprof's have the growth of the run, and of phases."""
    run = run_stacks(tmp_path, "stacks", "all")

    def folded(*args):
        out = subprocess.run([QPROF, "report", "-f", "folded", *args, run.path], capture_output=True, text=True, check=True).stdout
        lines = [line.rsplit(" ", 1) for line in out.splitlines()]
        return [(stack.split(";"), int(count)) for stack, count in lines]

    lines = folded()
    assert sum(count for _, count in lines) == run.profile["stacks"]["grown_bytes"]
    scales = folded("--phase", "Scales")
    assert {stack[0] for stack, _ in scales} == {"Scales"}, scales
    assert sum(count for _, count in scales) == growth_of(run.profile)["Scales"]
    assert "touch_scales" in max(scales, key=lambda line: line[1])[0], scales
    graph = json.loads(subprocess.run([QPROF, "report", "-f", "speedscope", run.path], capture_output=True, check=True).stdout)
    got = {profile["name"]: sum(profile["weights"]) for profile in graph["profiles"]}
    got = {name: size for name, size in got.items() if not name.startswith("given back in ")}
    assert got == {"first touched in the whole run": run.profile["stacks"]["grown_bytes"], **growth_of(run.profile)}, got
    proto = ROOT / "user" / "report" / "pprof.proto"
    packed = subprocess.run([QPROF, "report", "-f", "pprof", run.path], capture_output=True, check=True).stdout
    text = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", f"-I{proto.parent}", proto], input=packed,
                          capture_output=True, check=True).stdout.decode()
    values = [re.findall(r"^  value: (\d+)", sample, re.M) for sample in re.split(r"^sample \{$", text, flags=re.M)[1:]]
    assert sum(int(value[1]) for value in values) == run.profile["stacks"]["grown_bytes"], values[:5]
    text = subprocess.run([QPROF, "report", run.path], capture_output=True, text=True, check=True).stdout
    assert "FIRST TOUCHED BY" in text and "touch_weights (stacks)" in text and "(unsampled)" in text, text
