# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf bench without a command: what it makes of the profiles in a folder."""

import csv
import html.parser
import io
import json

import pytest
import yaml

from reports import run

# What a shell, a table, Markdown or a page could stumble over.
HOSTILE = ["a|b", "<script>alert(1)</script>", "x,y", "\x1b[31mred", "ünïcode", "*_`["]


def profile(peak=100.0, secs=10.0, cpu=1.0, layer=50.0, status=0):
    return (f'qprof:\n  version: "0"\n  schema_version: 3\n  command: ["q"]\n'
            'memory_usage:\n- step: "Start"\n  timestamp: 1.0\n  relative_time_secs: 0.0\n'
            '  cpu_memory_mb: 1.0\n'
            f"total_quantization_time_seconds: {secs}\npeak_memory_mb: {peak}\n"
            f"total_io_read_mb: 8.0\ntotal_io_write_mb: 2.0\ntotal_cpu_time_secs: {cpu}\n"
            "phases:\n" + "".join(
                f'- name: "Layer {i}"\n  kind: pair\n  depth: 0\n  pid: 7\n  tid: 7\n  start_secs: {i}.0\n'
                f"  duration_secs: 0.5\n  start_memory_mb: 1.0\n  end_memory_mb: 1.0\n"
                f"  peak_memory_mb: {layer + i}\n  delta_memory_mb: 0.0\n  io_read_mb: 3.0\n"
                "  io_write_mb: 1.0\n  disk_read_mb: 0.0\n  disk_write_mb: 0.0\n  cpu_time_secs: 0.25\n"
                for i in range(2))
            + 'processes:\n- pid: 7\n  ppid: 1\n  comm: "q"\n  flags: [target]\n  start_secs: 0.0\n'
            f"  end_secs: {secs}\n  exit_code: {status}\n  peak_memory_mb: {peak}\n"
            "quality:\n  may_be_counted_more_than_once_mb:\n    shmem: 0.0\n")


@pytest.fixture
def folder(tmp_path):
    """folder(NAME, parameters, values): a bench whose runs are made of values(combination, run)."""
    def make(name, parameters, made, repeats=4, command=("q", "{m}")):
        path = tmp_path / name
        path.mkdir()
        (path / "bench.yaml").write_text(yaml.safe_dump({"qprof_bench": {
            "command": list(command), "parameters": parameters, "repeats": repeats,
            "shuffled": True, "seed": 7}}, sort_keys=False, allow_unicode=False))
        combinations = [[]]
        for key, values in parameters.items():
            combinations = [[*c, (key, v)] for c in combinations for v in values]
        for i, combination in enumerate(combinations):
            label = ",".join(f"{key}={value}" for key, value in combination)
            safe = "".join(c if c.isascii() and (c.isalnum() or c in "=,.+-_") else "_"
                           for c in label.encode().decode("latin-1") if c != " ")[:80]
            for k in range(repeats):
                (path / f"{i + 1:03}{'-' if safe else ''}{safe}.r{k + 1}.yaml").write_text(
                    made(dict(combination), k))
        return path
    return make


def bench(folder, *args, status=0):
    return run("bench", "-o", folder, *args, status=status)[0].decode()


def refused(folder, *args):
    """The one line that says why."""
    _, stderr = run("bench", "-o", folder, *args, status=125)
    lines = [line for line in stderr.splitlines() if line.startswith("qprof-bpf")]
    assert len(lines) == 1, stderr
    return lines[0]


def sizes(combination, k):
    return profile(peak=100.0 * int(combination["bits"]) + k, cpu=k + 1.0)


def test_medians_and_spread(folder):
    path = folder("b", {"bits": ["4", "8"]}, sizes)
    rows = list(csv.DictReader(io.StringIO(bench(path, "--export-csv", "-"))))
    assert [row["parameter_bits"] for row in rows] == ["4", "8"]
    for row in rows:
        size = 100 * int(row["parameter_bits"])
        got = [float(row["peak_memory_mb" + what]) for what in ("", "_lowest", "_highest")]
        assert got == [size + 1.5, size, size + 3], row
    assert [float(row["cpu_time_secs"]) for row in rows] == [2.5, 2.5]
    (first, _) = json.loads(bench(path, "--export-json", "-"))["results"]
    assert first["figures"]["peak_memory_mb"]["values"] == [400, 401, 402, 403], first
    assert first["figures"]["io_read_mb"]["mean"] == 8


def test_phases(folder):
    """Peaks are the highest of them; time and I/O are added up."""
    path = folder("b", {"bits": ["4"]}, sizes)
    (row,) = json.loads(bench(path, "--phase", "Layer *", "--export-json", "-"))["results"]
    medians = {key: figure["median"] for key, figure in row["figures"].items()}
    assert medians["peak_memory_mb"] == 51, medians
    assert medians["time_secs"] == 1 and medians["io_read_mb"] == 6, medians
    assert medians["cpu_time_secs"] == 0.5, medians


def test_extremes_are_marked(folder):
    path = folder("b", {"bits": ["4", "6", "8"]}, sizes)
    lines = {line.split()[0]: line for line in bench(path, "--width", "200").splitlines() if "bits=" in line}
    assert "402M +-0.4%*" in lines["bits=4"] and "!" in lines["bits=8"], lines
    assert "*" not in lines["bits=6"] and "!" not in lines["bits=6"], lines


def test_pivot(folder):
    path = folder("b", {"m": ["a", "b"], "bits": ["4", "8"]}, sizes)
    text = bench(path, "--pivot", "m,bits")
    assert "PEAK BY bits" in text and "m=a" in text and "m=b" in text, text
    assert "| peak memory | bits=4 | bits=8 |" in bench(path, "--pivot", "bits", "--export-markdown", "-")
    assert "no such parameter" in refused(path, "--pivot", "nothing")


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = set(), ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


def test_hostile_values(folder):
    path = folder("b", {"m": HOSTILE, "bits": ["4"]}, sizes, repeats=1)
    for pivot in ([], ["--pivot", "m"]):
        page = Tags()
        page.feed(bench(path, *pivot, "--export-html", "-"))
        assert "script" not in page.tags and "<script>alert(1)</script>" in page.text
        for text in (bench(path, *pivot), bench(path, *pivot, "--export-markdown", "-")):
            assert "\x1b" not in text
    table = bench(path, "--export-markdown", "-").splitlines()
    bars = {line.replace("\\|", "").count("|") for line in table}
    assert len(bars) == 1, f"expected the same cells in each line: {table}"
    rows = list(csv.DictReader(io.StringIO(bench(path, "--export-csv", "-"))))
    assert [row["parameter_m"] for row in rows] == HOSTILE


def test_failed_runs(folder):
    """They are told and do not count, unless that is asked for."""
    path = folder("b", {"bits": ["4"]},
                  lambda _, k: profile(peak=100 + 100 * (k == 3), status=1 if k == 3 else 0))
    (row,) = json.loads(bench(path, "--export-json", "-", status=1))["results"]
    assert row["figures"]["peak_memory_mb"]["values"] == [100] * 3, row
    assert row["failures"][0]["run"] == 4 and "exit status 1" in row["failures"][0]["ended"], row
    (row,) = json.loads(bench(path, "-i", "--export-json", "-"))["results"]
    assert row["figures"]["peak_memory_mb"]["values"] == [100, 100, 100, 200], row


@pytest.mark.parametrize("grown, limit, status", [
    (1.0, "0%", 0), (1.05, "2%", 1), (1.05, "4%", 1), (1.05, "6%", 0), (1.05, "3M", 1), (1.05, "10M", 0)])
def test_gates(folder, grown, limit, status):
    noise = (0, 0.2, -0.2, 0.1)
    old = folder("old", {"bits": ["4"]}, lambda c, k: profile(peak=100 + noise[k]))
    new = folder("new", {"bits": ["4"]}, lambda c, k: profile(peak=grown * 100 + noise[3 - k]))
    text = bench(new, "--baseline", old, "--max-peak-increase", limit, status=status)
    assert ("PASSED" in text) == bool(status), text


def test_too_few_runs_to_judge(folder):
    old = folder("old", {"bits": ["4"]}, sizes, repeats=3)
    new = folder("new", {"bits": ["4"]}, sizes, repeats=3)
    assert "-r 4" in bench(new, "--baseline", old, "--max-peak-increase", "5%", status=3)
    bench(new, "--baseline", old)


@pytest.mark.parametrize("text", ["", "a", "qprof_bench: 1", "qprof_bench: {command: [], repeats: 1}",
                                  "qprof_bench: {command: [a], repeats: 100000}",
                                  "qprof_bench: {command: [a], repeats: 1, parameters: {a: []}}",
                                  "qprof_bench: {command: [a], repeats: 1, parameters: {'a b': [x]}}",
                                  "qprof_bench: {command: [a], repeats: 1, other: 1}"])
def test_no_bench(tmp_path, text):
    (tmp_path / "bench.yaml").write_text(text)
    assert "bench.yaml" in refused(tmp_path)


def test_nothing_there(tmp_path):
    assert "-- COMMAND" in refused(tmp_path)


@pytest.mark.parametrize("args, why", [
    (["-L", "a"], "-L takes"), (["-P", "n", "3", "1"], "lower number first"), (["-D", "2"], "-P NAME"),
    (["-L", "a b", "x"], "no name"), (["-L", "a", "x", "-L", "a", "y"], "twice"),
    (["-r", "65"], "from 1 to 64"), (["--max-peak-increase", "x"], "such as 5%")])
def test_wrong_options(tmp_path, args, why):
    assert why in refused(tmp_path / "new", *args)
