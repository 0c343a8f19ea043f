# SPDX-License-Identifier: GPL-2.0-only
"""-f perfetto and -f chrome: what holds for every trace, and that each says what the profile does.

Perfetto's is decoded with protoc by user/report/perfetto.proto. Who has Perfetto's sources, or its
trace_processor_shell in PATH, can try those as well: QPROF_PERFETTO=/path/to/perfetto.
"""

import collections
import json
import os
import random
import re
import shutil
import subprocess

import jsonschema
import pytest
import yaml

from profiles import HOSTILE, harmless, no_file, used_file
from reports import DEADLINE, HERE, PROFILE, report, run, schema, shown

SCHEMA = HERE.parents[1] / "user" / "report" / "perfetto.proto"
MIB = 1 << 20
TRACE = "perfetto.protos.Trace"

# One thread whose phases cross, a pid that is used twice, a phase that does not end, names that
# want to be something else, phases of a process that is not listed.
EVIL = ['</script>"\\\n\t', "‮evil‬", "\x01\x7f  ", "%s%n", "名前🙂", "x" * 5000]
CROSSING = [("A", 0, 2), ("B", 1, 3), ("C", 1.5, 1.75), ("D", 2, 2), ("E", 2.5, 4), ("F", 3, 4)]


def phase(name, start, end, pid=7, tid=7, **more):
    return {"name": name, "kind": "pair", "depth": 0, "pid": pid, "tid": tid,
            "start_secs": float(start), "duration_secs": float(end - start),
            "start_memory_mb": 1.0, "end_memory_mb": 1.0, "delta_memory_mb": 0.0,
            "peak_memory_mb": 1.0, "io_read_mb": 0.0, "io_write_mb": 0.0, "disk_read_mb": 0.0,
            "disk_write_mb": 0.0, "cpu_time_secs": 0.0, **more}


def process(pid, start, end, **more):
    return {"pid": pid, "ppid": 1, "comm": f"p{pid}", "cmdline": None, "start_secs": float(start),
            "end_secs": end, "peak_memory_mb": 1.0, **more}


def step(name, at, **more):
    return {"step": name, "timestamp": 1000.0 + at, "relative_time_secs": float(at),
            "cpu_memory_mb": 1.0, "pid": 7, "tid": 7, **more}


MADE = {
    "qprof": {"version": "0", "command": EVIL},
    "memory_usage": [
        step("Start", 0), step("Mid", 2.5, metrics={"loss": 0.5, "bits": 8, EVIL[0]: -1}),
        step("Mid", 3, metrics={"loss": None, "huge": 18446744073709551615}), step("End", 5)],
    "total_quantization_time_seconds": 5.0,
    "peak_memory_mb": 9.0,
    "phases": [phase(*p) for p in CROSSING]
    + [phase(name, 4, 4.5, comm="x") for name in EVIL]
    + [phase("first", 0.5, 1, pid=8, tid=9), phase("second", 3.5, 4, pid=8, tid=9),
       phase("unlisted", 1, 2, pid=99, tid=100), phase("open", 4.75, 5, closed=False),
       phase("nobody", 1, 2, pid=0, tid=0)],
    "processes": [process(7, 0, None), process(8, 0.25, 1.5, comm=EVIL[0], exit_signal=9),
                  process(8, 3, 4.5, cmdline=EVIL[4], exit_code=3)],
    "timeline": {"columns": ["time_secs", "file_mb", "anon_mb", "shmem_mb", "swap_mb",
                             "step_peak_mb"],
                 "rows": [[0.0, 1.0, 2.0, 0.0, 0.0, None], [2.0, 1.0, 6.0, 0.5, 0.25, 9.0]]},
    "process_timeline": {"columns": ["process", "time_secs", "file_mb", "anon_mb", "shmem_mb",
                                     "swap_mb"],
                         "rows": [[1, 0.5, 1.0, 0.0, 0.0, 0.0], [0, 0.0, 0.0, 2.0, 0.0, 0.0],
                                  [0, 2.0, 0.0, 3.0, 0.5, 0.25]]},
    "quality": {"lost_checkpoints": 0, "may_be_counted_more_than_once_mb": {"shmem": 0.0}},
}


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "made.yaml"
    path.write_text(yaml.safe_dump(MADE, sort_keys=False, allow_unicode=False))
    return path


def decode(data, schema, where):
    """What protoc makes of it; a field that the schema does not have would be a number."""
    done = subprocess.run(["protoc", f"--decode={TRACE}", f"-I{where}", schema], input=data,
                          capture_output=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    unknown = re.findall(rb"^ *\d+(?::| \{).*", done.stdout, re.M)
    assert not unknown, f"fields that {schema} does not have: {unknown[:5]}"
    return done.stdout


Slice = collections.namedtuple("Slice", "name pid tid start end")


def in_ns(secs):
    return round(secs * 1e6) * 1000


def read_perfetto(data, pb2):
    """The trace as slices, instants and counters, all that must hold of any trace asserted. Stacks
    are test_trace_stacks.py's."""
    trace = pb2.Trace.FromString(data)
    tracks, stacks, used = {}, collections.defaultdict(list), set()
    slices, instants, counters = [], [], collections.defaultdict(list)
    lasts, seen = collections.Counter(), set()

    def owner(uuid):
        """pid and tid of a track, which may have them from its parents."""
        while True:
            track = tracks[uuid]
            if track.HasField("thread"):
                return track.thread.pid, track.thread.tid
            if track.HasField("process"):
                return track.process.pid, 0
            if not track.HasField("parent_uuid"):
                return 0, 0
            uuid = track.parent_uuid

    assert trace.packet[0].sequence_flags == 1, "the first packet begins the sequence"
    for number, packet in enumerate(trace.packet):
        where = f"packet {number}: {packet}"
        # Of events, and of stacks with what they refer to.
        sequence = packet.trusted_packet_sequence_id
        assert sequence in (1, 2) and (sequence in seen or packet.sequence_flags == 1), where
        seen.add(sequence)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks and track.uuid != 0, where
            assert not track.HasField("parent_uuid") or track.parent_uuid in tracks, where
            tracks[track.uuid] = track
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert packet.timestamp >= lasts[sequence], f"after {lasts[sequence]}: {where}"
        last = lasts[sequence] = packet.timestamp
        assert event.track_uuid in tracks, f"not declared: {where}"
        track = tracks[event.track_uuid]
        used.add(event.track_uuid)
        assert (event.type == event.TYPE_COUNTER) == track.HasField("counter"), where
        pid, tid = owner(event.track_uuid)
        if event.type == event.TYPE_SLICE_BEGIN:
            assert event.name, where
            stacks[event.track_uuid].append((event, packet.timestamp))
        elif event.type == event.TYPE_SLICE_END:
            assert stacks[event.track_uuid], f"nothing is open: {where}"
            begin, start = stacks[event.track_uuid].pop()
            if sequence == 1:
                slices.append((begin.categories[0], Slice(begin.name, pid, tid, start, last)))
        elif event.type == event.TYPE_INSTANT:
            if sequence == 1:
                instants.append((event.categories[0], Slice(event.name, pid, tid, last, last)))
        else:
            fields = [f for f in ("counter_value", "double_counter_value") if event.HasField(f)]
            assert len(fields) == 1, where
            counters[event.track_uuid].append((last, getattr(event, fields[0])))
    still = {tracks[uuid].name: [b.name for b, _ in stack] for uuid, stack in stacks.items() if stack}
    assert not still, f"slices without an end: {still}"
    assert {u for u, t in tracks.items() if t.HasField("counter")} <= used, "counters without values"
    named = collections.defaultdict(list)
    for uuid, values in counters.items():
        parent = tracks[tracks[uuid].parent_uuid]
        # A pid may be there twice: tell them apart by the start.
        key = (parent.process.pid, parent.process.start_timestamp_ns, tracks[uuid].name)
        assert key not in named, f"two counters {key}"
        named[key] = values
    units = {t.name: t.counter.unit for t in tracks.values() if t.HasField("counter")}
    return slices, instants, named, units


def read_chrome(data):
    """The same of Chrome's."""
    trace = json.loads(data)
    stacks, slices, instants = collections.defaultdict(list), [], []
    counters = collections.defaultdict(list)
    last = 0
    for number, event in enumerate(trace["traceEvents"]):
        where = f"event {number}: {event}"
        kind, pid, tid = event["ph"], event["pid"], event.get("tid", 0)
        if kind == "M":
            assert not last, where
            continue
        assert event["ts"] >= last, f"after {last}: {where}"
        last = event["ts"]
        at = round(event["ts"] * 1000)
        if kind in "Bb":
            key = (kind, pid, event["tid"] if kind == "B" else (event["cat"], event["id"]))
            stacks[key].append((event, at))
        elif kind in "Ee":
            key = ("B" if kind == "E" else "b", pid,
                   event["tid"] if kind == "E" else (event["cat"], event["id"]))
            assert stacks[key], f"nothing is open: {where}"
            begin, start = stacks[key].pop()
            assert begin["name"] == event["name"], where
            slices.append((event["cat"], Slice(event["name"], pid, tid, start, at)))
        elif kind in "in":
            instants.append((event["cat"], Slice(event["name"], pid, tid, at, at)))
        else:
            assert kind == "C" and event["args"], where
            assert all(type(v) in (int, float) for v in event["args"].values()), where
            counters[pid, event["name"]].append((at, event["args"]))
    still = {key: [b["name"] for b, _ in stack] for key, stack in stacks.items() if stack}
    assert not still, f"slices without an end: {still}"
    return slices, instants, counters


def of(category, things):
    return collections.Counter(thing for what, thing in things if what == category)


def expected_slices(profile):
    return collections.Counter(
        Slice(shown(p), p["pid"], p["tid"], in_ns(p["start_secs"]),
              in_ns(p["start_secs"]) + in_ns(p["duration_secs"])) for p in profile["phases"])


def expected_marks(profile):
    gaps = [p for p in profile["phases"] if p["kind"] == "gap"]
    return collections.Counter(Slice(p["name"], p["pid"], p["tid"], *[in_ns(p["start_secs"])] * 2)
                               for p in gaps[1:])


def same(got, expected, what):
    missing, more = expected - got, got - expected
    assert not missing and not more, f"{what}: missing {list(missing)[:5]}, too many {list(more)[:5]}"


def at(values, time):
    """A counter holds its value until it has another."""
    held = [value for when, value in values if when <= time]
    assert held, f"no value at {time} in {values[:3]}"
    return held[-1]


def close(got, mib, what):
    assert abs(got - mib * MIB) <= 1, f"{what}: expected {mib} MiB, got {got / MIB}"


def check_memory(counters, key, row, time):
    for name, part in (("memory: file", "file_mb"), ("memory: anon", "anon_mb"),
                       ("memory: shmem", "shmem_mb")):
        close(at(counters[*key, name], time), row[part], f"{key} {name} at {time}")
    whole = row["file_mb"] + row["anon_mb"] + row["shmem_mb"]
    got = at(counters[*key, "memory"], time)
    peak = max(whole, row.get("step_peak_mb") or 0)
    assert abs(got - peak * MIB) <= 3, f"{key} at {time}: expected {peak} MiB, got {got / MIB}"


def rows_of(table):
    """The last row of each time: a counter can have one value then."""
    rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
    return {(row.get("process"), row["time_secs"]): row for row in rows}.values()


@pytest.mark.parametrize("name", ["recorded", "made"])
def test_perfetto(name, made, pb2):
    """Everything in the profile is in the trace, at its time, on its track."""
    path = PROFILE if name == "recorded" else made
    profile = yaml.safe_load(path.read_text())
    data = report("-f", "perfetto", profile=path)
    decode(data, SCHEMA.name, SCHEMA.parent)
    slices, instants, counters, units = read_perfetto(data, pb2)
    same(of("phase", slices), expected_slices(profile), "phases")
    same(of("mark", instants), expected_marks(profile), "marks")
    lives = of("process", slices)
    for process in profile["processes"]:
        start = in_ns(process["start_secs"])
        found = [s for s in lives if (s.name, s.pid, s.start) == (process["comm"], process["pid"],
                                                                   start)]
        assert found, f"no life of {process}"
        assert process["end_secs"] is None or found[0].end == in_ns(process["end_secs"]), found
    for row in rows_of(profile["timeline"]):
        check_memory(counters, (0, 0), row, in_ns(row["time_secs"]))
    # The last pages of a process may go after it has; the last row and the end may be of one time.
    last_row = {row["process"]: in_ns(row["time_secs"]) for row in
                rows_of(profile["process_timeline"])}
    for row in rows_of(profile["process_timeline"]):
        process = profile["processes"][row["process"]]
        key = (process["pid"], in_ns(process["start_secs"]))
        time, end = in_ns(row["time_secs"]), in_ns(process["end_secs"] or 1e9)
        if time < max(end, last_row[row["process"]]):
            check_memory(counters, key, row, time)
        if process["end_secs"] is not None:
            assert counters[*key, "memory"][-1][1] == 0, f"{key} ends in nothing"
            assert counters[*key, "memory"][-1][0] <= max(end, last_row[row["process"]])
    usage = {"read by calls": "io_read_mb", "written by calls": "io_write_mb",
             "read from storage": "disk_read_mb", "written to storage": "disk_write_mb"}
    metrics = collections.defaultdict(list)
    for row in {row["relative_time_secs"]: row for row in profile["memory_usage"]}.values():
        for counter, key in usage.items():
            if key in row:
                close(at(counters[0, 0, counter], in_ns(row["relative_time_secs"])), row[key], key)
    for row in profile["memory_usage"]:
        for metric, value in row.get("metrics", {}).items():
            if value is not None:
                metrics[metric].append((in_ns(row["relative_time_secs"]), value))
    assert metrics, "the profile has metrics"
    for metric, values in metrics.items():
        for when, value in {when: value for when, value in values}.items():
            got = at(counters[0, 0, metric], when)
            assert got == (value if value < 1 << 63 else float(value)), f"{metric} at {when}: expected {value}, got {got}"
    assert units["memory"] == 3 and units["memory: anon"] == 3, f"bytes: {units}"
    peak = of("peak", instants)
    assert len(peak) == 1, peak


@pytest.mark.parametrize("name", ["recorded", "made"])
def test_chrome(name, made, pb2):
    """The JSON form has the same slices, instants and numbers."""
    path = PROFILE if name == "recorded" else made
    slices, instants, counters, _ = read_perfetto(report("-f", "perfetto", profile=path), pb2)
    c_slices, c_instants, c_counters = read_chrome(report("-f", "chrome", profile=path))
    profile = yaml.safe_load(path.read_text())

    def loosely(things):
        # What is not on the track of a thread has no tid in Chrome's.
        return collections.Counter((what, t._replace(tid=0)) for what, t in things)

    same(loosely(c_slices), loosely(slices), "slices")
    same(loosely(c_instants), loosely(instants), "instants")
    pids = collections.Counter(p["pid"] for p in profile["processes"])
    compared = 0
    for (pid, _, counter), values in counters.items():
        if pids[pid] > 1:
            continue  # they share a track
        if counter == "memory":
            got = [(when, sum(args.values())) for when, args in c_counters[pid, counter]]
        elif counter.startswith("memory: "):
            got = [(when, args[counter]) for when, args in c_counters[pid, "memory"]]
        else:
            got = [(when, *args.values()) for when, args in c_counters[pid, counter]]
        for when, value in dict(values).items():
            assert at(got, when) == value, f"{pid} {counter} at {when}"
            compared += 1
    assert compared > 10, "there was something to compare"


def test_crossing_phases(made, pb2):
    """Slices of one track cannot cross: those that do are beside the thread's own."""
    trace = pb2.Trace.FromString(report("-f", "perfetto", profile=made))
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet
              if p.HasField("track_descriptor")}
    place = {p.track_event.name: tracks[p.track_event.track_uuid] for p in trace.packet
             if p.track_event.type == 1}
    assert place["A"].thread.tid == 7 and place["C"].thread.tid == 7, "what nests stays together"
    assert place["B"].name == "crossing phases", place["B"]
    assert tracks[place["B"].parent_uuid].thread.tid == 7, place["B"]


@pytest.mark.parametrize("seed", range(8))
def test_any_phases(seed, tmp_path, pb2):
    """However phases lie, none is lost, and their slices nest; so in both formats."""
    chance = random.Random(seed)
    phases = []
    for i in range(300):
        start = chance.randrange(20) / 4
        phases.append(phase(f"x{i}", start, start + chance.choice([0, 0, 0.25, 0.5, 1, 2, 9]),
                            pid=chance.choice([0, 7, 8, 99]), tid=chance.choice([0, 7, 9]),
                            kind=chance.choice(["pair", "pair", "gap"])))
    chance.shuffle(phases)
    path = tmp_path / "any.yaml"
    path.write_text(yaml.safe_dump(MADE | {"phases": phases}, sort_keys=False))
    slices, instants, _, _ = read_perfetto(report("-f", "perfetto", profile=path), pb2)
    # The thread of a process that is not said is not said either.
    said = [p if p["pid"] else p | {"tid": 0} for p in phases]
    same(of("phase", slices), expected_slices({"phases": said}), f"phases of seed {seed}")
    c_slices, c_instants, _ = read_chrome(report("-f", "chrome", profile=path))
    assert len(of("phase", c_slices)) == len(phases), "phases in Chrome's"
    assert len(of("mark", c_instants)) == len(of("mark", instants)), "marks in Chrome's"


def test_reused_pid(made, pb2):
    """A phase is of the process that had the pid when it began."""
    trace = pb2.Trace.FromString(report("-f", "perfetto", profile=made))
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet
              if p.HasField("track_descriptor")}
    place = {p.track_event.name: tracks[tracks[p.track_event.track_uuid].parent_uuid]
             for p in trace.packet if p.track_event.type == 1 and
             tracks[p.track_event.track_uuid].HasField("thread")}
    assert place["first"].process.pid == place["second"].process.pid == 8
    assert place["first"].process.start_timestamp_ns == in_ns(0.25), place["first"]
    assert place["second"].process.start_timestamp_ns == in_ns(3), place["second"]


def test_one_process(tmp_path, pb2):
    """Its memory is that of the tree, exact peaks included, and is not there twice."""
    profile = MADE | {"processes": [process(7, 0, 4.0)],
                      "process_timeline": MADE["process_timeline"] | {"rows": []}}
    path = tmp_path / "one.yaml"
    path.write_text(yaml.safe_dump(profile, sort_keys=False))
    counters = read_perfetto(report("-f", "perfetto", profile=path), pb2)[2]
    assert counters[7, 0, "memory"] == [(0, 3 * MIB), (in_ns(2), 9 * MIB), (in_ns(4), 0)]
    assert counters[7, 0, "memory: anon"] == [(0, 2 * MIB), (in_ns(2), 6 * MIB), (in_ns(4), 0)]
    assert (0, 0, "memory") not in counters, "twice"


@pytest.mark.parametrize("at,clock", [(1000.0, 1000 * 10**9), (0.0, None), (None, None)])
def test_time_of_day(at, clock, tmp_path, pb2):
    """A trace has the time of day when its run began, if the rows say it."""
    rows = [] if at is None else [row | {"timestamp": at + row["relative_time_secs"]} for row in MADE["memory_usage"]]
    path = tmp_path / "clock.yaml"
    path.write_text(yaml.safe_dump(MADE | {"memory_usage": rows}, sort_keys=False))
    first = pb2.Trace.FromString(report("-f", "perfetto", profile=path)).packet[0]
    got = {c.clock_id: c.timestamp for c in first.clock_snapshot.clocks}
    assert got == ({6: 0, 1: clock} if clock else {}), "CLOCK_BOOTTIME 0 is so much CLOCK_REALTIME"


@pytest.mark.parametrize("table", ["timeline", "process_timeline", None])
def test_swap(table, tmp_path, pb2):
    """A counter of swap is there if the tree or a process had some, and only then."""
    profile = dict(MADE)
    for name in {"timeline", "process_timeline"} - {table}:
        at_swap = MADE[name]["columns"].index("swap_mb")
        rows = [row[:at_swap] + [0.0] + row[at_swap + 1:] for row in MADE[name]["rows"]]
        profile[name] = MADE[name] | {"rows": rows}
    path = tmp_path / "swap.yaml"
    path.write_text(yaml.safe_dump(profile, sort_keys=False))
    counters = read_perfetto(report("-f", "perfetto", profile=path), pb2)[2]
    swap = {key: values for key, values in counters.items() if key[2] == "swap"}
    if table:
        key = (0, 0, "swap") if table == "timeline" else (7, 0, "swap")
        close(at(swap[key], in_ns(2)), 0.25, f"swap in the {table}")
    else:
        assert not swap, f"nothing was swapped: {swap}"


def test_all_but_phases(tmp_path, pb2):
    """Everything that can make an event makes one: rows of every quantity, processes that end, with memory of their own."""
    usage = ("io_read_mb", "io_write_mb", "disk_read_mb", "disk_write_mb", "cpu_time_secs", "major_faults", "minor_faults")
    rows = [step(f"row {i}", i, metrics={"loss": 0.5 + i}, **{key: i for key in usage}) for i in range(6)]
    tracks = [[process, time, 1.0 + time, 0.0, 0.0, 0.0] for process in range(2) for time in (0.0, 1.0)]
    path = tmp_path / "no_phases.yaml"
    path.write_text(yaml.safe_dump(MADE | {
        "memory_usage": rows, "phases": [], "processes": [process(7, 0, 4.0), process(8, 0, 4.5)],
        "process_timeline": MADE["process_timeline"] | {"rows": tracks}}, sort_keys=False))
    slices, instants, counters, _ = read_perfetto(report("-f", "perfetto", profile=path), pb2)
    assert len(of("run", slices)) == 1 and len(of("process", slices)) == 2 and not of("phase", slices), slices
    assert len(of("peak", instants)) == 1, instants
    for pid, end in ((7, 4), (8, 4.5)):
        assert counters[pid, 0, "memory"][-1] == (in_ns(end), 0), counters[pid, 0, "memory"]
    for name in ("loss", "major page faults", "CPU time", "read from storage"):
        assert len(counters[0, 0, name]) == len(rows), f"{name}: {counters[0, 0, name]}"


def over_time(path, *rows, **more):
    """A file with a timeline: of (seconds, MiB read, written, read by calls)."""
    columns = ["time_secs", "storage_read_mb", "storage_written_mb", "call_read_mb"]
    return used_file(path, rows[-1][1], rows[-1][2], timeline={"columns": columns, "rows": list(map(list, rows))}, **more)


def counters_of(files, tmp_path, pb2, made):
    """Of a profile with these files: counters of files as Perfetto's trace has them, {name: [(ns, bytes)]}.
    Chrome's has the same, and the profile as JSON what was read."""
    path = tmp_path / "files.yaml"
    path.write_text(yaml.safe_dump({"files": files} | MADE, sort_keys=False, allow_unicode=False))
    data = report("-f", "perfetto", profile=path)
    decode(data, SCHEMA.name, SCHEMA.parent)
    _, _, counters, units = read_perfetto(data, pb2)
    again = json.loads(report("-f", "json", profile=path))["files"]
    jsonschema.Draft202012Validator(schema()["properties"]["files"] | {"$defs": schema()["$defs"]}).validate(again)
    assert [file.get("timeline") for file in again] == [file.get("timeline") for file in files], "read and written again"
    titles = report("-f", "csv", "--table", "files", profile=path).decode().splitlines()[0].split(",")
    assert "copied_mb" in titles and not {"phases", "timeline"} & set(titles), f"a cell has no table: {titles}"
    before = read_perfetto(report("-f", "perfetto", profile=made), pb2)[2]
    assert {key: counters[key] for key in before} == before, "what else there is stays as it was"
    found = {key[2]: values for key, values in counters.items() if key not in before}
    assert all(key[:2] == (0, 0) for key in counters.keys() - before.keys()), "they are of the run"
    assert all(units[name] == 3 for name in found), f"bytes: {units}"
    chrome = read_chrome(report("-f", "chrome", profile=path))[2]
    assert {name: [(when, {"bytes": value}) for when, value in values] for name, values in found.items()} == {
        name: chrome[0, name] for name in found}
    return found


def test_files(tmp_path, pb2, made):
    """The sums of each file that the profile has a timeline of, but for those that are 0 all the time."""
    found = counters_of([
        over_time("/m/read", (0.5, 0.0, 0.0, 0.0), (1.0, 2.0, 0.0, 3.5), (2.5, 2.0, 0.0, 3.5), (4.0, 8.0, 0.0, 3.5)),
        over_time("/m/served", (1.0, 0.0, 0.0, None), (2.0, 0.5, 0.25, None), deleted=True),
        over_time("/m/idle", (1.0, 0.0, 0.0, 0.0), (2.0, 0.0, 0.0, 0.0)),
        used_file("/m/no timeline", 1.0, call_read_mb=1.0),
        no_file("(metadata)", 1.0)], tmp_path, pb2, made)
    assert found == {
        "/m/read: read from storage": [(in_ns(0.5), 0), (in_ns(1), 2 * MIB), (in_ns(4), 8 * MIB)],
        "/m/read: read by calls": [(in_ns(0.5), 0), (in_ns(1), 7 * MIB // 2)],
        "/m/served (deleted): read from storage": [(in_ns(1), 0), (in_ns(2), MIB // 2)],
        "/m/served (deleted): written": [(in_ns(1), 0), (in_ns(2), MIB // 4)]}, found


def test_names_of_files(tmp_path, pb2, made):
    """Long paths lose their first directories; of one name there is one counter; names that mean harm do none."""
    long = "/models" + "/directory" * 9
    rows = (1.0, 0.0, 0.0, 0.0), (2.0, 0.0, 0.0, 1.0)
    paths = [f"{long}/one/a.safetensors", f"{long}/two/one/a.safetensors", "/x", "/x", "/x (2)", "/x"]
    shown_as = ["…/directory/directory/one/a.safetensors", "…/directory/two/one/a.safetensors", "/x", "/x (2)",
                "/x (2) (2)", "/x (3)"]
    found = counters_of([over_time(path, *rows) for path in paths], tmp_path, pb2, made)
    assert list(found) == [f"{name}: read by calls" for name in shown_as], list(found)
    hostile = [name for name in HOSTILE if len(name) < 30]
    found = counters_of([over_time(name, *rows) for name in hostile], tmp_path, pb2, made)
    assert [name.removesuffix(": read by calls") for name in found] == list(map(harmless, hostile))
    found = counters_of([over_time("é" * 30000, *rows), over_time("/" + "é" * 5001, *rows)], tmp_path, pb2, made)
    assert len(found) == 2 and all(len(name) < 80 and "\ufffd" not in name for name in found), found


def test_more_files_than_are_drawn(tmp_path, pb2, made):
    """A file of others may have timelines of more files: the first 16 are drawn. Rows in any order do no harm."""
    rows = [(5.0 - i / 64, float(i), float(i), float(i)) for i in range(256)]
    found = counters_of([over_time(f"/f{i}", *rows) for i in range(40)], tmp_path, pb2, made)
    assert len(found) == 16 * 3 and all(len(values) == 256 for values in found.values()), list(found)


def test_quark(tmp_path, pb2):
    """A file with rows only: memory at the rows, phases of nobody known, and nothing made up."""
    rows = [{key: row[key] for key in ("step", "timestamp", "relative_time_secs", "cpu_memory_mb")}
            for row in (step("Start", 0), step("A Start", 1, cpu_memory_mb=2.0), step("A End", 2),
                        step("End", 3))]
    path = tmp_path / "quark.yaml"
    path.write_text(yaml.safe_dump({"memory_usage": rows, "total_quantization_time_seconds": 3.0,
                                    "peak_memory_mb": 50.0}))
    slices, instants, counters, _ = read_perfetto(report("-f", "perfetto", profile=path), pb2)
    assert of("phase", slices) == {Slice("A", 0, 0, in_ns(1), in_ns(2)): 1}, slices
    assert set(counters) == {(0, 0, "memory")}, "what the file does not say is no counter"
    assert counters[0, 0, "memory"] == [(0, MIB), (in_ns(1), 2 * MIB), (in_ns(2), MIB)]
    assert not of("peak", instants), "nobody knows when its peak was"


def test_phase_filter(pb2):
    slices = read_perfetto(report("-f", "perfetto", "--phase", "Calib*"), pb2)[0]
    names = {s.name for s in of("phase", slices)}
    assert names == {"Calibration"}, names


def test_cut_off_anywhere(tmp_path, pb2):
    """A profile of a crash: what there is of it is a whole trace, or one line says why not."""
    whole = PROFILE.read_bytes()
    traces = 0
    for length in range(200, len(whole), len(whole) // 40):
        path = tmp_path / "cut.yaml"
        path.write_bytes(whole[:length])
        for name in ("perfetto", "chrome"):
            args = ["report", "-f", name, path]
            try:
                data = run(*args)[0]
            except AssertionError:
                _, stderr = run(*args, status=125)
                assert len(stderr.splitlines()) == 1, stderr
                continue
            traces += 1
            if name == "chrome":
                read_chrome(data)
            else:
                read_perfetto(data, pb2)
    assert traces > 40, f"only {traces} of the cut profiles made a trace"


def test_too_many_crossing(tmp_path):
    """No more lanes than phases can be open at a time."""
    profile = MADE | {"phases": [phase("x", i, i + 2000) for i in range(1100)]}
    path = tmp_path / "many.yaml"
    path.write_text(yaml.safe_dump(profile, sort_keys=False))
    _, stderr = run("report", "-f", "perfetto", path, status=125)
    assert "cross" in stderr and len(stderr.splitlines()) == 1, stderr


def test_by_perfettos_own_schema(made):
    where = os.environ.get("QPROF_PERFETTO")
    if not where:
        pytest.skip("QPROF_PERFETTO does not name a copy of Perfetto's sources")
    for path in (PROFILE, made):
        data = report("-f", "perfetto", profile=path)
        theirs = decode(data, "protos/perfetto/trace/trace.proto", where)
        ours = decode(data, SCHEMA.name, SCHEMA.parent)
        assert sorted(theirs.splitlines()) == sorted(ours.splitlines())


@pytest.mark.parametrize("name", ["perfetto", "chrome"])
def test_trace_processor(name, made, tmp_path):
    """Perfetto's own program takes it without a complaint and finds every phase."""
    shell = shutil.which("trace_processor_shell")
    if not shell:
        pytest.skip("no trace_processor_shell in PATH")
    for path in (PROFILE, made):
        profile = yaml.safe_load(path.read_text())
        trace, query = tmp_path / "trace", tmp_path / "query.sql"
        trace.write_bytes(report("-f", name, profile=path))

        def ask(sql):
            query.write_text(sql)
            done = subprocess.run([shell, "-q", query, trace], capture_output=True, text=True,
                                  timeout=DEADLINE, check=False)
            assert done.returncode == 0, done.stderr[-2000:]
            return done.stdout.splitlines()[1:]

        errors = ask("select name, value from stats where severity in ('error', 'data_loss') "
                     "and value > 0;")
        assert not errors, errors
        found = ask("select count(*) from slice where category = 'phase';")
        assert found == [str(len(profile["phases"]))], f"{found} of {len(profile['phases'])}"
