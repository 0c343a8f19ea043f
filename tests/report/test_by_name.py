# SPDX-License-Identifier: GPL-2.0-only
"""`report --by name`: phases of one name are one line, which says what they took together and which was highest."""

import csv
import io
import json

import jsonschema
import pytest
import yaml

from reports import report, run, schema

LAYERS = 100


def phase(name, depth, start, secs, peak=10.0, delta=0.0, read=0.0, tid=7, kind="pair", to=None):
    return {"name": name, "kind": kind, "depth": depth, "pid": 7, "tid": tid, "start_secs": start, "duration_secs": secs,
            "start_memory_mb": 10.0, "end_memory_mb": 10.0 + delta, "delta_memory_mb": delta, "peak_memory_mb": peak,
            "io_read_mb": read, "io_write_mb": 2.0, "disk_read_mb": 1.0, "disk_write_mb": 0.5, "cpu_time_secs": 0.25,
            **({"to": to} if to else {})}


def nested():
    """Two phases called gptq within each of 100 layers; the first of layer 33 is the highest. Another thread between."""
    phases = [phase("Quantize", 0, 0.0, 200.0, peak=500.0, delta=50.0)]
    for layer in range(LAYERS):
        phases.append(phase(f"model.layers.{layer}.self_attn.q_proj", 1, 2.0 * layer, 2.0, peak=100.0))
        phases.append(phase("other", 0, 2.0 * layer, 0.5, tid=9))
        for part in range(2):
            phases.append(phase("gptq", 2, 2.0 * layer + part, 0.75, peak=300.0 if (layer, part) == (33, 0) else 90.0,
                                delta=0.5, read=3.0))
    return phases


def profile(phases):
    return yaml.dump({
        "qprof": {"version": "0", "schema_version": 1, "command": ["q"], "started_at": 1.0, "backends": {}},
        "memory_usage": [{"step": "Start", "timestamp": 1.0, "relative_time_secs": 0.0, "cpu_memory_mb": 1.0},
                         {"step": "End", "timestamp": 201.0, "relative_time_secs": 200.0, "cpu_memory_mb": 1.0}],
        "total_quantization_time_seconds": 200.0, "peak_memory_mb": 500.0, "phases": phases,
        "quality": {"lost_checkpoints": 0, "may_be_counted_more_than_once_mb": {"inherited_at_fork": 0.0}}}, sort_keys=False).encode()


def as_json(phases):
    document = json.loads(run("report", "--by", "name", "-f", "json", "-", stdin=profile(phases))[0])
    whole = schema()
    jsonschema.validate(document["report"]["phases_by_name"],
                        {"$defs": whole["$defs"], **whole["properties"]["report"]["properties"]["phases_by_name"]})
    return {row["name"]: row for row in document["report"]["phases_by_name"]}


PATH = "Quantize > model.layers.33.self_attn.q_proj > gptq"


def test_json():
    rows = as_json(nested())
    assert list(rows)[:4] == ["Quantize", "model.layers.0.self_attn.q_proj", "other", "gptq"], list(rows)[:5]
    assert rows["gptq"] == {
        "name": "gptq", "count": 200, "total_secs": 150, "mean_secs": 0.75, "peak_memory_mb": 300,
        "peak_index": 1 + 33 * 4 + 2, "peak_path": PATH, "delta_memory_mb": 100,
        "io_read_mb": 600, "io_write_mb": 400, "disk_read_mb": 200, "disk_write_mb": 100, "cpu_time_secs": 50}, rows["gptq"]
    # A name that is there once says which phase it is.
    assert rows["model.layers.5.self_attn.q_proj"]["peak_path"] == "model.layers.5.self_attn.q_proj"
    assert "phases_by_name" not in json.loads(run("report", "-f", "json", "-", stdin=profile(nested()))[0])["report"]


def test_csv():
    """The same keys and figures as in JSON."""
    text = run("report", "--by", "name", "-f", "csv", "-", stdin=profile(nested()))[0].decode()
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(text))}
    expected = as_json(nested())
    assert list(rows) == list(expected)
    for name, row in rows.items():
        assert row.keys() == expected[name].keys()
        for key, value in expected[name].items():
            assert row[key] == value or float(row[key]) == value, (name, key, row[key], value)
    _, stderr = run("report", "--by", "name", "-f", "csv", "--table", "processes", "-", stdin=profile(nested()), status=125)
    assert "--by name is of phases" in stderr, stderr


@pytest.mark.parametrize("width", [80, 160])
def test_text(width):
    text = run("report", "--by", "name", "--width", str(width), "--sort", "read", "-", stdin=profile(nested()))[0].decode()
    table = text.split("PHASES BY NAME")[1].splitlines()
    assert table[0].split() == ["COUNT", "TOTAL", "MEAN", "PEAK", "IN", "GROWTH"], table[0]
    assert table[1].split() == ["gptq", "200", "2m", "30s", "750", "ms", "300", "MiB", "#136", "+100", "MiB"], table[1]
    assert table[2] == f"    peak in {PATH}", table[2]
    assert "Phases\n" not in text and "WILL IT FIT" not in text, text
    io_line = next(line for line in text.split("I/O BY NAME")[1].splitlines() if "gptq" in line)
    assert io_line.split()[1:3] == ["600", "MiB"], io_line
    assert all(len(line) <= width for line in text.splitlines()), text


def test_text_sorts_and_filters():
    def names(*args):
        text = run("report", "--by", "name", "--width", "160", *args, "-", stdin=profile(nested()))[0].decode()
        return [line.split()[0] for line in text.split("PHASES BY NAME")[1].split("\n\n")[0].splitlines()[1:]
                if not line.startswith("    ")]
    assert names("--sort", "duration", "--top", "2")[:2] == ["Quantize", "gptq"]
    assert names("--sort", "delta", "--top", "2")[:2] == ["gptq", "Quantize"]
    assert names("--phase", "g*") == ["gptq"]


def test_page():
    page = run("report", "-f", "html", "--by", "name", "-", stdin=profile(nested()))[0].decode()
    data = json.loads(page.split('id="profile">')[1].split("</script>")[0])
    rows = {row[0]: dict(zip(data["named"]["keys"], row)) for row in data["named"]["rows"]}
    assert data["by_name"] is True
    got = {key: rows["gptq"][key] for key in ("count", "seconds", "mean", "peak", "number", "path", "delta", "io_read")}
    assert got == {"count": 200, "seconds": 150, "mean": 0.75, "peak": 300 << 20, "number": 136, "path": PATH,
                   "delta": 100 << 20, "io_read": 600 << 20}, got
    # Nothing to change between where each name is there once.
    assert '"named":{' not in report("-f", "html", profile="-", stdin=profile([phase("a", 0, 0, 1), phase("b", 0, 2, 1)])).decode()


def test_headline():
    """Where the peak was is said so that one finds it, in the text and on the page."""
    highest = nested()
    highest[0]["peak_memory_mb"] = 200.0
    text = profile(highest).replace(b"peak_memory_mb: 500.0", b"peak_memory_mb: 300.0\npeak: {time_secs: 66.5, file_mb: 0.0, "
                                    b"anon_mb: 300.0, shmem_mb: 0.0, swap_mb: 0.0}", 1)
    first = run("report", "--width", "100", "-", stdin=text)[0].decode().split("Peak ")[1].splitlines()[0]
    assert first == f"300 MiB at 66.5 s, in {PATH}", first
    page = run("report", "-f", "html", "-", stdin=text)[0].decode()
    assert json.loads(page.split('id="profile">')[1].split("</script>")[0])["peak"]["phase"] == PATH


def test_paths_have_an_end():
    """Whatever names a program chooses, and however deep: what is cut off says so."""
    deep = [phase(f"level {i} " + "x" * 200, i, 0.0, 100.0) for i in range(200)]
    deep += [phase("leaf", 200, float(i), 0.5, peak=float(i)) for i in range(3)]
    path = as_json(deep)["leaf"]["peak_path"]
    assert path.startswith("... > level 19") and path.endswith(" > leaf") and len(path) < 1300, path
    # An end that was lost: the deeper phase of before is no parent.
    rows = as_json([phase("a", 0, 0, 1), phase("b", 1, 0, 1), phase("c", 0, 2, 1), phase("b", 1, 2, 1, peak=20.0)])
    assert rows["b"]["peak_path"] == "c > b", rows
