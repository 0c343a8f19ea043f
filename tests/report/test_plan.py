# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf plan: another size from profiles of several, or no number where nobody can tell."""

import json
import random

import pytest

from reports import run

GIB = 1024  # MiB


def profile(phases, secs=10.0, metric=None, status=0):
    """A profile of phases {name: MiB that it needs}, one after the other. Its model is of as many GiB as the metric
    says, in two files."""
    peak = max(phases.values())
    text = ('qprof:\n  version: "0"\n  schema_version: 3\n  command: ["q"]\n'
            'memory_usage:\n- step: "Start"\n  timestamp: 1.0\n  relative_time_secs: 0.0\n'
            '  cpu_memory_mb: 1.0\n')
    if metric is not None:
        text += f"  metrics: {{model_gb: {metric}}}\n"
    text += f"total_quantization_time_seconds: {secs}\npeak_memory_mb: {peak}\nfiles:\n"
    for name, size in (("a.gguf", 0.75), ("b.gguf", 0.25), ("tokenizer.json", 3)):
        mb = (metric or 0) * size * GIB
        read = mb * (1 if name != "tokenizer.json" else 0.5)
        text += f'- path: "/models/{name}"\n  size_mb: {mb}\n  storage_read_mb: {read}\n  distinct_mb: {read}\n'
    text += f'- path: "/models/out.gguf"\n  size_mb: {metric or 0}\n  storage_written_mb: {metric or 0}\n'
    text += "- path: \"(metadata)\"\n  no_file: true\n  size_mb: 7.0\nphases:\n"
    rows = "  - [0.0, 0.0, 0.0, 0.0, 0.0]\n"
    for i, (name, size) in enumerate(phases.items()):
        text += (f'- name: "{name}"\n  kind: pair\n  depth: 0\n  pid: 7\n  tid: 7\n  start_secs: {i}.0\n'
                 f"  duration_secs: 0.5\n  start_memory_mb: 1.0\n  end_memory_mb: 1.0\n"
                 f"  peak_memory_mb: {size}\n  delta_memory_mb: 0.0\n  io_read_mb: 3.0\n"
                 "  io_write_mb: 1.0\n  disk_read_mb: 0.0\n  disk_write_mb: 0.0\n  cpu_time_secs: 0.25\n")
        rows += f"  - [{i}.2, 0.0, {size}, 0.0, 0.0]\n  - [{i}.6, 0.0, 0.0, 0.0, 0.0]\n"
    return (text + 'processes:\n- pid: 7\n  ppid: 1\n  comm: "q"\n  flags: [target]\n  start_secs: 0.0\n'
            f"  end_secs: {secs}\n  exit_code: {status}\n  peak_memory_mb: {peak}\n"
            "timeline:\n  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb]\n  rows:\n" + rows +
            "quality:\n  may_be_counted_more_than_once_mb:\n    shmem: 0.0\n")


@pytest.fixture
def plan(tmp_path):
    """plan(at, phases of a size, options): what it says, as JSON, of profiles at the sizes."""
    def make(at, phases, *options, sizes=(0.5, 1, 2, 4), status=0):
        args = []
        for i, size in enumerate(sizes):
            path = tmp_path / f"{i}.yaml"
            path.write_text(profile(phases(size), metric=size))
            args += ["-x", f"model_gb={size}", path]
        return json.loads(run("plan", "--at", at, "-f", "json", *options, *args, status=status)[0])
    return make


def text_of(tmp_path, *args, **kwargs):
    return run("plan", *args, **kwargs)[0].decode()


KINDS = {
    "linear": lambda r: (0, r.uniform(0.5, 1.5), 0),
    "linear with an offset": lambda r: (r.uniform(0.1, 2), r.uniform(0.5, 1.5), 0),
    "activations": lambda r: (r.uniform(0, 0.2), 0, r.uniform(0.1, 0.3)),
    "weights and activations": lambda r: (0, r.uniform(0.5, 1.5), r.uniform(0.02, 0.1)),
}


def test_held_out_sizes(plan):
    """20 programs: the size that was left out is in the interval in at least 18."""
    rng, held, wide = random.Random(5), 0, 0
    for i in range(20):
        kind = list(KINDS)[i % len(KINDS)]
        a, b, c = KINDS[kind](rng)
        def needs(x, a=a, b=b, c=c):
            return (a + b * x + c * x * x) * GIB
        said = plan(8, lambda x, needs=needs: {"Load": needs(x) / 2, "Export": needs(x) * rng.gauss(1, 0.003)})
        figure = said["run"]["needs_mb"]
        held += figure["low"] <= needs(8) <= figure["high"]
        wide += figure["high"] > 1.5 * figure["low"]
    assert held >= 18, f"expected 18 of 20 held-out sizes in their intervals, got {held}"
    assert wide <= 6, f"expected most intervals to be of use, {wide} of 20 are wider than 1.5 times"


@pytest.mark.parametrize("steps", [
    lambda x: GIB * (1 if x < 1.5 else 4), lambda x: GIB * (4 if x == 1 else 1), lambda x: GIB * 2 ** (x % 2)])
def test_a_step_is_refused(plan, steps):
    said = plan(16, lambda x: {"Export": steps(x)}, "--fits", "64G", sizes=(1, 1.25, 2, 2.5, 4), status=3)
    assert said["run"]["needs_mb"] == {"unknown": "bad_fit"}, said["run"]
    assert said["fits"][0]["answer"] == "unknown", said["fits"]


def test_two_sizes_are_too_few(plan, tmp_path):
    said = plan(16, lambda x: {"Export": x * GIB}, sizes=(1, 2, 2), status=3)
    assert said["run"]["needs_mb"] == {"unknown": "too_few_sizes"}, said["run"]
    text = text_of(tmp_path, "--at", "16", "-x", "1", tmp_path / "0.yaml", "-x", "2",
                   tmp_path / "1.yaml", status=3)
    assert "profiles of 3 sizes at least are needed" in text, text


def test_the_phase_with_the_peak_changes(plan):
    """At the sizes that were profiled Export is highest; the square overtakes it at a larger one."""
    said = plan(70, lambda x: {"Calibrate": (0.02 * x * x + 0.1) * GIB, "Export": (0.9 * x + 0.2) * GIB},
                "--fits", "60G,200G", sizes=(1, 2, 4, 8), status=1)
    assert abs(said["run"]["needs_mb"]["value"] - 98.1 * GIB) < GIB, said["run"]
    assert [(fit["answer"], fit["first_phase"]) for fit in said["fits"]] == [("no", "Calibrate"), ("yes", None)]


def test_sentences(plan, tmp_path):
    args = ["--at", "70", "--fits", "32G,128G"]
    plan(70, lambda x: {"Load": (0.5 * x) * GIB, "Export": (x + 0.5) * GIB}, sizes=(1, 2, 4))
    sizes = [word for i, size in enumerate((1, 2, 4)) for word in ("-x", f"model_gb={size}", tmp_path / f"{i}.yaml")]
    text = text_of(tmp_path, *args, *sizes, status=1)
    assert "model_gb = 70, from 3 profiles of 1 to 4: needs 70.5 GiB" in text and "in 'Export'" in text, text
    assert "It does not fit into 32.0 GiB: the first phase that needs more is 'Load'." in text, text
    assert "It fits into 128 GiB." in text, text
    assert "512M + 1.00G x" in text, text


def test_layers_are_one_phase(plan):
    """A larger model has more of them: their peaks are one figure, their times are added up."""
    said = plan(8, lambda x: {f"Layer {i}": x * GIB for i in range(int(2 * x))}, sizes=(1, 2, 3, 4))
    (phase,) = said["phases"]
    assert phase["phase"] == "Layer #", phase
    assert abs(phase["needs_mb"]["value"] - 8 * GIB) < 1, phase
    assert abs(phase["time_secs"]["value"] - 8) < 0.1, phase


def test_size_from_a_metric(plan, tmp_path):
    plan(8, lambda x: {"Export": x * GIB})
    files = [tmp_path / f"{i}.yaml" for i in range(4)]
    text = text_of(tmp_path, "--at", "8", "--by", "model_gb", *files)
    assert "model_gb = 8, from 4 profiles of 0.5 to 4: needs 8.00 GiB" in text, text
    _, stderr = run("plan", "--at", "8", "--by", "params", files[0], status=125)
    assert "no metric 'params'" in stderr, stderr


def test_size_from_files(plan, tmp_path):
    plan(8, lambda x: {"Export": x * GIB})
    files = [tmp_path / f"{i}.yaml" for i in range(4)]
    text = text_of(tmp_path, "--at", "8", "--by", "file:*.gguf", *files)
    assert "GiB of files = 8, from 4 profiles of 0.5 to 4: needs 8.00 GiB" in text, text
    _, stderr = run("plan", "--at", "8", "--by", "file:*(meta*", files[0], status=125)
    assert "no file '*(meta*'" in stderr and "--files" in stderr, stderr
    _, stderr = run("plan", "--at", "8", "--by", "file:*token*", files[0], status=125)
    assert "/models/tokenizer.json' was not read whole" in stderr, stderr


def test_a_failed_run_is_refused(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(profile({"Export": 100}, status=1))
    _, stderr = run("plan", "--at", "8", "-x", "1", path, status=125)
    assert "did not end well" in stderr, stderr


@pytest.mark.parametrize("args, why", [
    ([], "--at"), (["--at", "x"], "--at"), (["--at", "0"], "--at"), (["--at", "1"], "say which profiles"),
    (["--at", "1", "f.yaml"], "say the size of 'f.yaml'"), (["--at", "1", "-x", "-1", "f"], "not a size"),
    (["--at", "1", "-x", "a=1", "f", "-x", "b=1", "f"], "one name"), (["--at", "1", "-x", "1", "/no"], "/no"),
    (["--fits", "x"], "64G,128G"), (["--at", "1", "-x", "1"], "-x takes")])
def test_wrong_options(args, why):
    _, stderr = run("plan", *args, status=125)
    assert why in stderr, stderr
