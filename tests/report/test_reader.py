# SPDX-License-Identifier: GPL-2.0-only
"""Reading profiles back: whole ones, cut ones, Quark's, and what is none."""

import json

import jsonschema
import pytest
import yaml

from reports import PROFILE, formats, report, run, schema

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

QUARK = b"""\
# Memory profile by AMD Quark
memory_usage:
- step: Start
  timestamp: 1709395200.123
  relative_time_secs: 0.0
  cpu_memory_mb: 150.5
  gpu_memory_mb: 10.25
  disk_read_mb: 0.0
  disk_write_mb: 0.0
- step: Model Loading Start
  timestamp: 1709395201.123
  relative_time_secs: 1.0
  cpu_memory_mb: 151.5
  gpu_memory_mb: 10.25
  disk_read_mb: 1.0
  disk_write_mb: 0.0
- step: Model Loading End
  timestamp: 1709395205.123
  relative_time_secs: 5.0
  cpu_memory_mb: 1510.5
  gpu_memory_mb: 900.0
  disk_read_mb: 100.0
  disk_write_mb: 2.5
total_quantization_time_seconds: 45.778
peak_memory_mb: 2048.5
peak_gpu_memory_mb: 1024.0
"""

WHOLE = PROFILE.read_bytes()
VALIDATOR = jsonschema.Draft202012Validator(schema())


def as_json(text, **kwargs):
    out, stderr = run("report", "-f", "json", "-", stdin=text, **kwargs)
    return json.loads(out), stderr


def assert_valid(document):
    errors = [f"{list(e.absolute_path)}: {e.message[:200]}" for e in VALIDATOR.iter_errors(document)]
    assert not errors, errors[:5]


def test_json_is_the_profile():
    """Every key with its value; only what reports calculate is added."""
    document, _ = as_json(WHOLE)
    calculated = document.pop("report")
    assert document == yaml.load(WHOLE, Loader=Loader)
    assert calculated["partial"] is None and calculated["derived"] == []
    assert calculated["peak"]["phase"] == "Spike"


def test_json_is_read_back():
    """JSON is YAML, too: what was written as JSON is a profile."""
    again, _ = run("report", "-f", "json", "-", stdin=WHOLE)
    expected, got = (run("report", "-", stdin=text)[0].decode() for text in (WHOLE, again))
    assert got == expected


def test_schema():
    jsonschema.Draft202012Validator.check_schema(schema())
    assert_valid(yaml.load(WHOLE, Loader=Loader))
    assert_valid(as_json(WHOLE)[0])
    assert_valid(yaml.load(QUARK, Loader=Loader))
    assert_valid(as_json(QUARK)[0])
    assert list(VALIDATOR.iter_errors({"memory_usage": [{"step": 1}]})), "anything is valid"


def test_schema_of_quality():
    """One that is whole has all counts; that of a file which was cut off, or is Quark's, what is known of it."""
    document = yaml.load(WHOLE, Loader=Loader)
    del document["quality"]["lost_checkpoints"]
    assert list(VALIDATOR.iter_errors(document)), "a count may be missing"
    del document["quality"]["may_be_counted_more_than_once_mb"]
    assert_valid(document)
    document["quality"] = as_json(rows(["Start", *["a Start"] * 1030]))[0]["quality"]
    assert document["quality"] == {"dropped_phases": 6}
    assert_valid(document)


def test_quark():
    """Quark's own file: its rows become phases and a timeline, what it does not know is absent."""
    document, stderr = as_json(QUARK)
    assert not stderr
    assert document["report"]["derived"] == ["phases", "timeline"]
    phase, = document["phases"]
    assert phase["name"] == "Model Loading"
    assert (phase["start_secs"], phase["duration_secs"]) == (1.0, 4.0)
    assert phase["peak_memory_mb"] == 1510.5 and phase["delta_memory_mb"] == 1359.0
    assert phase["disk_read_mb"] == 99.0 and "io_read_mb" not in phase
    assert document["gpu_peak_memory_mb"] == document["peak_gpu_memory_mb"] == 1024.0
    assert document["total_disk_read_mb"] == 100.0
    assert "cpu_time_secs" not in document["memory_usage"][0]
    text = run("report", "-", stdin=QUARK)[0].decode()
    assert "Peak 2.00 GiB; the file does not say when" in text, text


def report_without_stacks(name, text):
    """Formats that show nothing but stacks say that there are none."""
    if name in ("folded", "folded-cpu", "folded-gpu", "folded-back", "speedscope", "pprof"):
        out, stderr = run("report", "-f", name, "-", stdin=text, status=125)
        assert not out and "the profile has no stacks" in stderr, (name, out[:200], stderr)
    else:
        assert run("report", "-f", name, "-", stdin=text)[0], name


@pytest.mark.parametrize("name", formats())
def test_quark_in_each_format(name):
    report_without_stacks(name, QUARK)


def cuts():
    """Everywhere in the first rows, in what follows the rows and in the quality, and some places between."""
    rows, quality = WHOLE.index(b"total_quantization"), WHOLE.index(b"\nquality:")
    step = 997
    return [*range(0, 2500, 131), *range(2500, rows, 40 * step), *range(rows, rows + 3000, 173),
            *range(rows + 3000, len(WHOLE), 7 * step), *range(quality, quality + 2000, 97)]


def test_cut_anywhere():
    """A profile that ends anywhere is a report of what is there, or an error that says why."""
    whole, _ = as_json(WHOLE)
    for at in cuts():
        if WHOLE.find(b"memory_usage:", 0, at) < 0 or WHOLE.count(b"\n- step", 0, at) == 0:
            _, stderr = run("report", "-f", "json", "-", stdin=WHOLE[:at], status=125)
            assert "no memory_usage" in stderr, (at, stderr)
            continue
        try:
            out, stderr = run("report", "-f", "json", "-", stdin=WHOLE[:at])
        except AssertionError as error:
            # The first row alone, and not whole.
            assert "no memory_usage" in str(error) and WHOLE.count(b"\n- step", 0, at) == 1, (
                at, error)
            continue
        document = json.loads(out)
        is_whole = WHOLE.find(b"note:", 0, at) >= 0 and b"\n" in WHOLE[WHOLE.find(b"note:"):at]
        if is_whole:
            assert document["report"]["partial"] is None, at
            continue
        assert document["report"]["partial"], f"cut at {at}, and it does not say so"
        assert "cut off" in stderr, (at, stderr)
        assert_valid(document)
        for got, row_of_whole in zip(document["memory_usage"], whole["memory_usage"]):
            metrics = got.pop("metrics", {})
            assert got.items() <= row_of_whole.items(), f"cut at {at}: {got}"
            assert metrics.items() <= row_of_whole.get("metrics", {}).items(), f"cut at {at}"


@pytest.mark.parametrize("name", formats())
def test_cut_in_each_format(name):
    for at in (WHOLE.index(b"total_quantization"), WHOLE.index(b"\ntimeline:"), len(WHOLE) // 3):
        report_without_stacks(name, WHOLE[:at])


def row(**changes):
    """A profile of one row, with changes to it."""
    keys = {"step": '"Start"', "timestamp": "1.0", "relative_time_secs": "0.0",
            "cpu_memory_mb": "1.0"} | changes
    lines = "".join(f"  {key}: {value}\n" for key, value in keys.items() if value is not None)
    return f"memory_usage:\n-{lines[1:]}peak_memory_mb: 1.0\n".encode()


def stacks(*touched, growth=(), depth=1, ran=(), **counts):
    """A profile of two phases with stacks: a chain of calls, and these rows of (phase, call)."""
    phases = "".join(f"- {{name: {name}, kind: pair, start_secs: 0.0, duration_secs: 1.0, start_memory_mb: 1.0,"
                     " end_memory_mb: 1.0, peak_memory_mb: 1.0}\n" for name in "AB")
    document = {"grown_bytes": 8192, **counts,
                "functions": {"columns": ["name", "path"], "rows": [["(all)", ""], ["f", "/a"]]},
                "calls": {"columns": ["caller", "function"],
                          "rows": [[0, 0], *([caller, 1] for caller in range(depth))]},
                "phase_growth": {"columns": ["phase", "bytes"], "rows": [[phase, 4096] for phase in growth]},
                "touched": {"columns": ["phase", "call", "kind", "bytes", "samples"],
                            "rows": [[phase, call, "anon", 4096, 1] for phase, call in touched]},
                "ran": {"columns": ["phase", "call", "cpu_ns", "samples"], "rows": [[*row, 4096, 1] for row in ran]}}
    return row() + f"phases:\n{phases}stacks: {json.dumps(document)}\n".encode()


HOSTILE = {
    "nothing": (b"", "no memory_usage"),
    "blanks": (b"\n\n   \n", "no memory_usage"),
    "a word": (b"hello\n", "line 1"),
    "a list": (b"- 1\n- 2\n", "line 1"),
    "binary": (bytes(range(256)) * 10, "line 1"),
    "no UTF-8": (b"qprof:\n  version: \"\xff\xfe\"\n", "line"),
    "NUL": (b"qprof:\n  version: \"a\x00b\"\n", "line"),
    "not a number": (row(cpu_memory_mb="many"), "line 5: cpu_memory_mb"),
    "NaN": (row(cpu_memory_mb=".nan"), "line 5: cpu_memory_mb"),
    "nan": (row(cpu_memory_mb="nan"), "line 5: cpu_memory_mb"),
    "infinite": (row(relative_time_secs="1e999"), "line 4: relative_time_secs"),
    "hexadecimal": (row(cpu_memory_mb="0x10"), "line 5: cpu_memory_mb"),
    "negative": (row(cpu_memory_mb="-1"), "line 5: cpu_memory_mb"),
    "too large": (row(cpu_memory_mb="1e300"), "line 5: cpu_memory_mb"),
    "text in quotes": (row(cpu_memory_mb='"1"'), "line 5: cpu_memory_mb"),
    "list for a number": (row(cpu_memory_mb="[1]"), "line 5: cpu_memory_mb"),
    "map for a name": (row(step="{a: b}"), "line 2: step"),
    "pid of 33 bits": (row(pid="4294967296"), "line 6: pid"),
    "metrics no map": (row(metrics="[1]"), "line 6: metrics"),
    "missing key": (row(relative_time_secs=None), "relative_time_secs"),
    "key twice": (row(pid="1\n  pid: 2"), "line 7: pid"),
    "anchor": (row(step="&a x"), "anchor"),
    "alias": (b"memory_usage: *a\n", "alias"),
    "tag": (row(step="!!python/object x"), "tag"),
    "explosion": (b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "anchor"),
    "two documents": (row() + b"---\nx: 1\n", "second document"),
    "deep": (b"x: " + b"[" * 5000 + b"\n", "line 1"),
    "deep maps": (b"x:\n" + b"".join(b" " * i + b"a:\n" for i in range(1, 300)) + b"y: 1\n",
                  "too deeply"),
    "long text": (b'qprof:\n  version: "' + b"x" * 70000 + b'"\n', "longer than 64 KiB"),
    "10 MB text": (b'qprof:\n  version: "' + b"x" * 10_000_000 + b'"\n', "1 MiB"),
    "10 MB in lines": (b"qprof:\n  version: |\n" + b"    x\n" * 2_000_000, "1 MiB"),
    "rows before columns": (row() + b"timeline:\n  rows:\n  - [1]\n", "line 8: timeline"),
    "long row": (row() + b"timeline:\n  columns: [time_secs]\n  rows:\n  - [1, 2]\n  - [1]\nx: 1\n",
                 "line 10"),
    "unknown process": (row() + b"process_timeline:\n"
                        b"  columns: [process, time_secs, file_mb, anon_mb, shmem_mb, swap_mb]\n"
                        b"  rows:\n  - [7, 0, 0, 0, 0, 0]\n", "process 7"),
    "no boolean": (row() + b"processes:\n- {pid: 1, comm: a, start_secs: 0, peak_memory_mb: 1, cmdline_cut: maybe}\n", "true or false"),
    "no metric": (row(metrics="{a: much}"), "line 6: metrics"),
    "unknown flag": (row() + b"processes:\n- {pid: 1, comm: a, start_secs: 0, peak_memory_mb: 1, flags: [other]}\n", "flags"),
    "column twice": (row() + b"timeline:\n  columns: [time_secs, time_secs]\n  rows: []\n", "there once"),
    "later column twice": (row() + b"timeline:\n  columns: [time_secs, swap_mb, anon_mb, swap_mb]\n  rows: []\n", "there once"),
    "65 columns": (row() + b"timeline:\n  columns: [" + b",".join(b"c%d" % i for i in range(65)) + b"]\n  rows: []\n", "64 at most"),
    "rows twice": (row() + b"timeline:\n  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb]\n  rows: [[0,0,0,0,0]]\n  rows: [[1,0,0,0,0]]\n",
                   "twice"),
    "no map for a row": (b"memory_usage: [1]\n", "line 1"),
    "no list": (b"memory_usage: {a: 1}\n", "line 1"),
    "growth out of order": (stacks(growth=[1, 0]), "its stacks are not in order of phases"),
    "growth twice": (stacks(growth=[1, 1]), "its stacks are not in order of phases"),
    "rows of stacks out of order": (stacks((1, 1), (0, 1)), "its stacks are not in order of phases"),
    "the whole run last": (stacks((0, 1), (None, 1)), "its stacks are not in order of phases"),
    "growth of no phase": (stacks(growth=[2]), "its stacks name what is not there"),
    "stack of no phase": (stacks((2, 1)), "its stacks name what is not there"),
    "no such call": (stacks((0, 2)), "its stacks name what is not there"),
    "CPU time of no phase": (stacks(ran=[(2, 1)]), "its stacks name what is not there"),
    "CPU time of no call": (stacks(ran=[(0, 2)]), "its stacks name what is not there"),
    "CPU time out of order": (stacks(ran=[(1, 1), (0, 1)]), "its stacks are not in order of phases"),
    "unknown kind": (row() + b"phases:\n- name: a\n  kind: other\n", "line 9: kind"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile(what):
    """One line: which file, which line of it, what is wrong."""
    text, expected = HOSTILE[what]
    _, stderr = run("report", "-", stdin=text, status=125)
    assert expected in stderr, f"{what}: expected {expected!r} in {stderr!r}"
    assert len(stderr.splitlines()) == 1 and stderr.startswith("qprof-bpf: stdin"), stderr
    assert len(stderr) < 700 and stderr.isprintable() or stderr.endswith("\n"), stderr


def test_metrics_of_all_kinds():
    text = row(metrics="{a: 1, b: -2, c: 0.5, d: .nan, e: -.inf, f: null, g: 18446744073709551615}")
    document, _ = as_json(text)
    assert document["memory_usage"][0]["metrics"] == {
        "a": 1, "b": -2, "c": 0.5, "d": None, "e": None, "f": None, "g": 2**64 - 1}


def test_hugetlb_memory():
    """Of a file without totals what its rows say; beside RSS, also where it says what a run needs."""
    text = row(hugetlb_mb="40.00")
    document, _ = as_json(text)
    assert document["memory_usage"][0]["hugetlb_mb"] == 40 and document["peak_hugetlb_mb"] == 40
    assert "Hugetlb memory beside it: 40.0 MiB or more" in run("report", "-", stdin=text)[0].decode()
    whole = yaml.load(WHOLE, Loader=Loader) | {"peak_hugetlb_mb": 64.0}
    whole["processes"][0] |= {"hugetlb_mb": 2.0, "peak_hugetlb_mb": 64.0}
    document, _ = as_json(yaml.dump(whole, sort_keys=False).encode())
    assert document["report"]["will_it_fit"]["hugetlb_mb"] == 64
    assert document["processes"] == whole["processes"]
    assert_valid(document)


def rows(steps):
    lines = (f"- {{step: {step}, relative_time_secs: {i}, cpu_memory_mb: 1}}\n"
             for i, step in enumerate(steps))
    return ("memory_usage:\n" + "".join(lines)).encode()


@pytest.mark.parametrize("steps, kept, dropped", [
    (["Start", *["a"] * 200_002], 200_000, 3),
    (["Start", *["a Start"] * 1030], 1024, 6),
    (["Start", "a Start", "a End"], 1, None),
])
def test_phases_beyond_those_kept_are_counted(steps, kept, dropped):
    """Of a file that was cut off, as in a whole one."""
    document, _ = as_json(rows(steps))
    assert len(document["phases"]) == kept
    assert document.get("quality", {}).get("dropped_phases") == dropped
    said = f"! {dropped} phases beyond those kept"
    assert (said in run("report", "-", stdin=rows(steps))[0].decode()) == bool(dropped)


def test_unknown_keys_are_skipped():
    """A later version may say more."""
    text = row(colour="[a, {b: c}]") + b"later:\n  a: [1, 2, {x: y}]\n"
    assert as_json(text)[0]["memory_usage"] == as_json(row())[0]["memory_usage"]


def test_not_there(tmp_path):
    assert "No such file" in run("report", tmp_path / "none", status=125)[1]
    assert "directory" in run("report", tmp_path, status=125)[1]


def test_is_finite():
    """Nothing that JSON does not have."""
    def check(value):
        raise AssertionError(f"{value} in JSON")
    json.loads(report("-f", "json"), parse_constant=check)


# Of each record: where one is in edges.yaml, and the keys without which it says nothing.
REQUIRED = {
    ("memory_usage", 1): ["step", "relative_time_secs", "cpu_memory_mb"],
    ("phases", 1): ["name", "kind", "start_secs", "duration_secs", "start_memory_mb", "end_memory_mb", "peak_memory_mb"],
    ("processes", 1): ["pid", "comm", "start_secs", "peak_memory_mb"],
    ("peak",): ["time_secs", "file_mb", "anon_mb", "shmem_mb", "swap_mb"],
    ("peak", "processes", 1): ["process", "file_mb", "anon_mb", "shmem_mb", "swap_mb"],
    ("quality", "warnings", 1): ["what", "why"],
}


def edges():
    return yaml.load((PROFILE.parent / "edges" / "edges.yaml").read_text(), Loader=Loader)


@pytest.mark.parametrize("where,key", [(where, key) for where, keys in REQUIRED.items() for key in keys])
def test_required_keys(where, key):
    """A record without one of them is refused, and without any other key it is not."""
    document = edges()
    record = document
    for step in where:
        record = record[step]
    del record[key]
    _, stderr = run("report", "-", stdin=yaml.dump(document, sort_keys=False).encode(), status=125)
    assert key in stderr, stderr
    bare = edges()
    outer = bare
    for step in where[:-1]:
        outer = outer[step]
    outer[where[-1]] = {name: value for name, value in outer[where[-1]].items() if name in REQUIRED[where]}
    run("report", "-", stdin=yaml.dump(bare, sort_keys=False).encode())


@pytest.mark.parametrize("table", ["timeline", "process_timeline"])
def test_required_columns(table):
    for column in range(5 if table == "timeline" else 6):
        document = edges()
        name = document[table]["columns"].pop(column)
        for line in document[table]["rows"]:
            line.pop(column)
        _, stderr = run("report", "-", stdin=yaml.dump(document, sort_keys=False).encode(), status=125)
        assert name in stderr, stderr


def nested(depth):
    return row() + b"x: " + b"[" * depth + b"]" * depth + b"\n"


def test_cpu_time_beyond_its_phases():
    """Samples that come to more than the rows of phases say leave nothing unsampled; those rows need not be there."""
    text = stacks(ran=[(None, 1), (0, 1)], cpu_samples=2) + b"total_cpu_time_secs: 0.000003\n"
    assert run("report", "-f", "folded-cpu", "-", stdin=text)[0] == b"CPU time;f 4096\n"
    text = text.replace(b"0.000003", b"0.000005")
    assert run("report", "-f", "folded-cpu", "-", stdin=text)[0] == b"CPU time;f 4096\nCPU time;(unsampled) 904\n"
    assert run("report", "-f", "html", "-", stdin=text)[0]


@pytest.mark.parametrize("excess, is_told", ((40, False), (60, True)))
def test_cpu_time_in_excess(excess, is_told):
    """From a hundredth of the CPU time on, which is 5000 ns."""
    text = stacks(ran=[(None, 1)], cpu_samples=1, cpu_excess_ns=excess) + b"total_cpu_time_secs: 0.000005\n"
    assert (b"more than the phases that they are in" in run("report", "-", stdin=text)[0]) == is_told


@pytest.mark.parametrize("name", ("folded", "folded-cpu", "folded-gpu", "folded-back", "speedscope", "pprof"))
def test_stacks_of_nothing(name):
    """They do not say of what they are."""
    text = stacks((None, 1), ran=[(None, 1)]).replace(b'"grown_bytes": 8192, ', b"")
    _, stderr = run("report", "-f", name, "-", stdin=text, status=125)
    assert "the profile has no stacks" in stderr, stderr
    assert b'"stacks"' not in run("report", "-f", "html", "-", stdin=text)[0].split(b'id="profile">')[1].split(b"</script>")[0]


def test_stacks_are_found_by_phase():
    """The rows of the run and of each phase, the growth of each; what there was no room for is said."""
    text = stacks((None, 1), (None, 1), (1, 1), growth=[0, 1], samples=3, dropped=2)
    assert run("report", "-f", "folded", "-", stdin=text)[0] == b"first touched;f 4096\nfirst touched;f 4096\n"
    for phase, expected in ("A", b"A;(unsampled) 4096\n"), ("B", b"B;f 4096\n"):
        assert run("report", "-f", "folded", "--phase", phase, "-", stdin=text)[0] == expected
    lines = [" ".join(line.split()) for line in run("report", "-", stdin=text)[0].decode().splitlines()]
    at = lines.index("8.00 KiB first touched in the whole run, by")
    assert lines[at + 1:at + 7] == ["8.00 KiB 100 % f (a)", "4.00 KiB first touched in A", "4.00 KiB 100 % (unsampled)",
                                    "4.00 KiB first touched in B", "4.00 KiB 100 % f (a)",
                                    "! 2 calls, samples or phases beyond those kept"], lines[at:]
    assert "beyond those kept" not in run("report", "-", stdin=stacks((None, 1)))[0].decode()


BOUNDS = {
    # what is still read; one more, which is not; and what is said of that
    "text": (row(step='"' + "x" * 65536 + '"'), row(step='"' + "x" * 65537 + '"'), "longer than 64 KiB"),
    "depth": (nested(64), nested(65), "nested too deeply"),
    "bytes": (row(cpu_memory_mb=str(2**36)), row(cpu_memory_mb=f"{2**36}.1"), "cpu_memory_mb"),
    "time": (row(relative_time_secs="1152921504.606846"), row(relative_time_secs="1152921504.606848"), "relative_time_secs"),
    "pid": (row(pid="4294967295"), row(pid="4294967296"), "pid"),
    "arguments": (b"qprof:\n  command: [" + b"a," * 65535 + b"a]\n" + row(),
                  b"qprof:\n  command: [" + b"a," * 65536 + b"a]\n" + row(), "more than 65536"),
    "calls": (stacks((None, 1024), depth=1024), stacks((None, 1025), depth=1025), "stacks are deeper than 1024 calls"),
    "metric": (row(metrics="{m: 18446744073709551615}"), row(metrics="{m: 18446744073709551616}"), "64 bits"),
    "least metric": (row(metrics="{m: -9223372036854775808}"), row(metrics="{m: -9223372036854775809}"), "64 bits"),
}


@pytest.mark.parametrize("what", BOUNDS)
def test_bounds(what):
    most, too_much, said = BOUNDS[what]
    run("report", "-", stdin=most)
    _, stderr = run("report", "-", stdin=too_much, status=125)
    assert said in stderr, stderr


def test_amounts_are_as_the_file_says():
    """Rounded to the nearest byte and microsecond."""
    document, _ = as_json(row(relative_time_secs="1.0000005", cpu_memory_mb="0.125", step_peak_memory_mb="1e2", pid="7"))
    step, = document["memory_usage"]
    assert (step["relative_time_secs"], step["cpu_memory_mb"], step["step_peak_memory_mb"]) == (1.000001, 0.13, 100)


def test_nothing_that_is_no_number():
    for text in ("+", ".", "-.", "1.5.2", "1e", "e5", "1 2", "''", "1_000", "True"):
        _, stderr = run("report", "-", stdin=row(cpu_memory_mb=text), status=125)
        assert "line 5: cpu_memory_mb" in stderr, (text, stderr)


def test_null_is_what_is_absent():
    for null in ("null", "~", ""):
        document, _ = as_json(row(step_peak_memory_mb=null))
        assert "step_peak_memory_mb" not in document["memory_usage"][0], null


def test_a_nul_does_not_end_a_text():
    document, _ = as_json(row(step='"a\\0b"'))
    assert document["memory_usage"][0]["step"] == "a b"


def test_columns_in_any_order_and_unknown_ones():
    """Later versions may have more of them; what is in a column is what its title says."""
    known = row() + b"timeline:\n  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb]\n  rows: [[0.5, 1, 2, 3, 4], [0.75, 5, 6, 7, 8]]\n"
    mixed = row() + (b"timeline:\n  columns: [swap_mb, later, shmem_mb, anon_mb, file_mb, more, time_secs]\n"
                     b"  rows: [[4, {a: [b]}, 3, 2, 1, null, 0.5], [8, [], 7, 6, 5, x, 0.75]]\n")
    assert as_json(known)[0]["timeline"] == as_json(mixed)[0]["timeline"]
    assert as_json(known)[0]["timeline"]["rows"] == [[0.5, 1, 2, 3, 4, None, None, None], [0.75, 5, 6, 7, 8, None, None, None]]


def test_null_lists_are_empty():
    text = row() + b"phases: null\nprocesses: ~\ntimeline:\nquality: null\n"
    document, _ = as_json(text)
    assert document["memory_usage"] == as_json(row())[0]["memory_usage"]


def test_what_is_not_in_order_is_put_in_order():
    """A timeline that some other program wrote; points of processes by process, then by time."""
    text = row() + (b"processes:\n- {pid: 1, comm: a, start_secs: 0, peak_memory_mb: 1}\n"
                    b"- {pid: 2, comm: b, start_secs: 0, peak_memory_mb: 1}\n"
                    b"timeline:\n  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb]\n"
                    b"  rows: [[0.25, 0, 0, 0, 0], [0.75, 1, 0, 0, 0], [0.5, 2, 0, 0, 0]]\n"
                    b"process_timeline:\n  columns: [process, time_secs, file_mb, anon_mb, shmem_mb, swap_mb]\n"
                    b"  rows: [[0, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0], [1, 2, 1, 0, 0, 0], [0, 0.5, 2, 0, 0, 0], [1, 1, 1, 0, 0, 0]]\n")
    document, _ = as_json(text)
    assert [line[0] for line in document["timeline"]["rows"]] == [0.25, 0.5, 0.75]
    assert [line[:2] for line in document["process_timeline"]["rows"]] == [[0, 0.5], [0, 1], [1, 0], [1, 1], [1, 2]]
