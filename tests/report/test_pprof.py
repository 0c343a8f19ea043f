# SPDX-License-Identifier: GPL-2.0-only
"""-f pprof, decoded with protoc by user/report/pprof.proto, and by pprof itself if it is in PATH."""

import collections
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from profiles import HOSTILE, hostile_profile
from reports import DEADLINE, PROFILE, ROOT, report

SCHEMA = ROOT / "user" / "report" / "pprof.proto"


@pytest.fixture(scope="session")
def read(tmp_path_factory):
    """A profile of pprof as a message, after what pprof itself checks in one (Profile.CheckValid)."""
    out = tmp_path_factory.mktemp("pb2")
    subprocess.run(["protoc", f"--python_out={out}", f"-I{SCHEMA.parent}", SCHEMA], check=True, timeout=DEADLINE)
    sys.path.insert(0, str(out))
    import pprof_pb2  # pylint: disable=import-error,import-outside-toplevel

    def read(data):
        profile = pprof_pb2.Profile.FromString(data)
        assert profile.string_table[0] == ""
        for items in (profile.function, profile.location, profile.mapping):
            ids = [item.id for item in items]
            assert 0 not in ids and len(set(ids)) == len(ids)
        mappings, functions = ({m.id for m in profile.mapping} | {0}, {f.id for f in profile.function})
        for location in profile.location:
            assert location.mapping_id in mappings and [line.function_id in functions for line in location.line] == [True]
        for sample in profile.sample:
            assert len(sample.value) == len(profile.sample_type) and sample.location_id
            assert set(sample.location_id) <= {location.id for location in profile.location}
        return profile
    return read


def samples_of(profile):
    """(the outermost function first, labels): samples and bytes, samples and ns."""
    text = profile.string_table
    functions = {f.id: text[f.name] for f in profile.function}
    names = {place.id: functions[line.function_id] + (f":{line.line}" if line.line else "")
             for place in profile.location for line in place.line}
    found = collections.defaultdict(lambda: [0] * len(profile.sample_type))
    for sample in profile.sample:
        labels = tuple(sorted((text[label.key], text[label.str]) for label in sample.label))
        stack = tuple(names[location] for location in reversed(sample.location_id))
        for i, value in enumerate(sample.value):
            found[stack, labels][i] += value
    return dict(found)


def expected(text, phase=None):
    """The same from a profile: of the run, or of the phase at that index."""
    document = yaml.safe_load(text)
    stacks = document["stacks"]
    names = [name or (f"[{path.rsplit('/', 1)[1]}]" if path else "[unknown code]") for name, path in stacks["functions"]["rows"]]
    labels = [] if phase is None else [("phase", document["phases"][phase]["name"])]
    found = collections.defaultdict(lambda: [0] * 8)

    def add(rows, all_of_it, at):
        rest = all_of_it
        for of, call, *kind, amount, samples in rows:
            stack = []
            while of == phase and call:
                caller, function, line = stacks["calls"]["rows"][call]
                stack.insert(0, names[function] + (f":{line}" if line else ""))
                call = caller
            if of == phase:
                where = found[tuple(stack) or ("[unknown code]",), tuple(sorted([*(("kind", k) for k in kind), *labels]))]
                where[at] += samples
                where[at + 1] += amount
                rest -= amount
        if rest:
            found[("(unsampled)",), tuple(labels)][at + 1] += rest

    add(stacks["touched"]["rows"], stacks["grown_bytes"] if phase is None else dict(stacks["phase_growth"]["rows"])[phase], 0)
    # Of memory, one phase alone of that name has grown; all have used CPU time, and none has a sample.
    cpu = [document["total_cpu_time_secs"]] if phase is None else [
        p["cpu_time_secs"] for p in document["phases"] if p["name"] == document["phases"][phase]["name"]]
    add(stacks["ran"]["rows"], round(sum(cpu) * 1e9), 2)
    add(stacks["gpu_allocated"]["rows"], stacks["gpu_allocated_bytes"] if phase is None
        else dict(stacks["phase_gpu_allocated"]["rows"])[phase], 4)
    add(stacks["given_back"]["rows"], stacks["given_back_bytes"] if phase is None
        else dict(stacks["phase_given_back"]["rows"])[phase], 6)
    return dict(found)


def test_the_whole_run(read):
    profile = read(report("-f", "pprof"))
    text = profile.string_table
    document = yaml.safe_load(PROFILE.read_text())
    assert samples_of(profile) == expected(PROFILE.read_text())
    assert sum(s.value[1] for s in profile.sample) == document["stacks"]["grown_bytes"]
    assert sum(s.value[3] for s in profile.sample) == round(document["total_cpu_time_secs"] * 1e9)
    assert sum(s.value[5] for s in profile.sample) == document["stacks"]["gpu_allocated_bytes"]
    assert sum(s.value[7] for s in profile.sample) == document["stacks"]["given_back_bytes"]
    assert [(text[t.type], text[t.unit]) for t in profile.sample_type] == [
        ("samples", "count"), ("first_touched", "bytes"), ("cpu_samples", "count"), ("cpu", "nanoseconds"),
        ("gpu_samples", "count"), ("gpu_allocated", "bytes"), ("given_back_samples", "count"), ("given_back", "bytes")]
    assert text[profile.default_sample_type] == "first_touched"
    assert profile.time_nanos // 10**9 == int(document["qprof"]["started_at"])
    assert profile.duration_nanos == pytest.approx(document["total_quantization_time_seconds"] * 1e9, abs=10**8)


def test_a_phase(read):
    """Under its name, as a label: pprof -tagfocus chooses one of many."""
    profile = read(report("-f", "pprof", "--phase", "Model Loading"))
    assert samples_of(profile) == expected(PROFILE.read_text(), 2)
    both = samples_of(read(report("-f", "pprof", "--phase", "*")))
    grew = {dict(labels).get("phase") for (_, labels), values in both.items() if values[1]}
    assert grew == {"Start -> Base", "Model Loading"}, grew


def test_files(read):
    """Each file is there once, with the functions that are in it."""
    profile = read(report("-f", "pprof"))
    text = profile.string_table
    functions = yaml.safe_load(PROFILE.read_text())["stacks"]["functions"]["rows"]
    files = {m.id: text[m.filename] for m in profile.mapping}
    assert sorted(files.values()) == sorted({path for _, path in functions if path})
    assert all(m.has_functions and m.has_filenames and m.has_line_numbers for m in profile.mapping)
    locations = {location.line[0].function_id: files.get(location.mapping_id, "") for location in profile.location}
    for i, (_, path) in enumerate(functions):
        assert locations[i + 1] == path == text[profile.function[[f.id for f in profile.function].index(i + 1)].filename]


def test_hostile_names(read, tmp_path):
    path = tmp_path / "hostile.yaml"
    path.write_text(hostile_profile(), encoding="utf-8")
    for args in ([], ["--phase", "*"]):
        profile = read(report("-f", "pprof", *args, profile=path))
        called = {stack[-1].removesuffix(":4294967295") for stack, _ in samples_of(profile)}
        assert set(HOSTILE) - {""} <= called, args


def test_as_deep_as_can_be(read, tmp_path):
    path = tmp_path / "deep.yaml"
    path.write_text(hostile_profile(depth=1024), encoding="utf-8")
    assert max(len(s.location_id) for s in read(report("-f", "pprof", profile=path)).sample) == 1024


def test_pprof_itself(tmp_path):
    """It reads the file without a complaint, and adds up the same."""
    program = shutil.which("pprof")
    if not program:
        pytest.skip("no pprof in PATH")
    path = tmp_path / "q.pb"
    path.write_bytes(report("-f", "pprof"))
    done = subprocess.run([program, "-top", "-unit=bytes", path], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0 and not re.search("(?i)error|warn|could not", done.stderr), done.stderr
    assert "Type: first_touched" in done.stdout and "289406976B total" in done.stdout, done.stdout
    line = next(line for line in done.stdout.splitlines() if line.endswith("hessian;add"))
    assert line.split()[0] == "104857600B" and line.split()[3] == "247463936B", done.stdout
