# SPDX-License-Identifier: GPL-2.0-only
"""Stacks in -f perfetto: each slice of them has the flame graph that -f folded has of that phase."""

import collections

import yaml

from reports import PROFILE, report, shown

# What folded calls them, and how it is asked for.
FOLDED = {"first touched by": "folded", "CPU time by": "folded-cpu",
          "allocated on GPUs by": "folded-gpu", "given back by": "folded-back"}


def read_flames(data, pb2):
    """What the stacks in a slice come to, by kind of amount, the slice's name and times: as lines of
    folded have them. Each number that is referred to must have been told before."""
    told, tracks, begun, flames = collections.defaultdict(dict), {}, {}, {}
    for packet in pb2.Trace.FromString(data).packet:
        if packet.trusted_packet_sequence_id != 2:
            continue
        data = packet.interned_data
        for kind in ("mapping_paths", "mappings", "function_names", "frames", "callstacks"):
            for one in getattr(data, kind):
                assert one.iid and one.iid not in told[kind], f"{kind} {one.iid} twice"
                told[kind][one.iid] = one
        for one in data.mappings:
            assert all(i in told["mapping_paths"] for i in one.path_string_ids), one
        for one in data.frames:
            assert one.function_name_id in told["function_names"], one
            assert not one.mapping_id or one.mapping_id in told["mappings"] and one.HasField("rel_pc"), one
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN:
            begun[event.track_uuid] = event, packet.timestamp, collections.Counter()
        elif event.type == event.TYPE_SLICE_END:
            begin, start, flame = begun.pop(event.track_uuid)
            kind = tracks[tracks[event.track_uuid].parent_uuid].name
            facts = {a.name: a.int_value for a in begin.debug_annotations}
            key = kind, begin.name, start, packet.timestamp
            assert key not in flames, key
            flames[key] = flame
            assert tracks[event.track_uuid].name == begin.name
            assert sum(flame.values()) == next(iter(facts.values())), f"{key}: {facts}"
            assert facts["unsampled"] == flame["(unsampled)"]
        elif event.type == event.TYPE_INSTANT:
            frames = [told["frames"][i] for i in told["callstacks"][event.callstack_iid].frame_ids]
            names = [told["function_names"][f.function_name_id].str for f in frames]
            assert event.debug_annotations[0].int_value == event.callstack_weight
            flame = begun[event.track_uuid][2]
            flame[";".join(name.replace(";", ":") for name in names)] += int(event.callstack_weight)
    assert not begun
    return flames, told


def in_ns(secs):
    return round(secs * 1e6) * 1000


def folded_lines(*args, profile=PROFILE):
    lines = collections.Counter()
    for line in report(*args, profile=profile).decode().splitlines():
        stack, amount = line.rsplit(" ", 1)
        lines[stack.split(";", 1)[1]] += int(amount)
    return lines


def test_stacks(pb2):
    """A slice for the run and for each phase that has some, with the stacks that folded says."""
    profile = yaml.safe_load(PROFILE.read_text())
    flames, told = read_flames(report("-f", "perfetto"), pb2)
    assert {kind for kind, *_ in flames} == set(FOLDED)
    for kind, name in FOLDED.items():
        duration = in_ns(profile["total_quantization_time_seconds"])
        runs = [key for key in flames if key[:2] == (kind, "run")]
        assert len(runs) == 1 and runs[0][2] == 0 and abs(runs[0][3] - duration) < 1e6, runs
        assert flames[runs[0]] == folded_lines("-f", name), kind
    rows = profile["stacks"]["phase_growth"]["rows"]
    assert rows, "no phase grew"
    for index, grown in rows:
        wanted = profile["phases"][index]
        key = ("first touched by", shown(wanted), in_ns(wanted["start_secs"]),
               in_ns(wanted["start_secs"]) + in_ns(wanted["duration_secs"]))
        assert sum(flames[key].values()) == grown
        same_name = [p for p in profile["phases"] if shown(p) == shown(wanted)]
        if len(same_name) == 1:
            assert flames[key] == folded_lines("-f", "folded", "--phase", shown(wanted))
    paths = {path for _, path in profile["stacks"]["functions"]["rows"] if path.startswith("/")}
    assert {"/" + text.str for text in told["mapping_paths"].values()} == paths
    files = {told["function_names"][f.function_name_id].str:
             "/" + told["mapping_paths"][told["mappings"][f.mapping_id].path_string_ids[0]].str
             for f in told["frames"].values() if f.mapping_id}
    assert files["memset"] == "/usr/lib/x86_64-linux-gnu/libc.so.6"
    assert files["Layer.quantize (gptq.py:112)"] == "/opt/demo/gptq.py"


def test_stacks_of_chosen_phases(pb2):
    wanted = next(p for p in yaml.safe_load(PROFILE.read_text())["phases"]
                  if p["name"].startswith("Calib"))
    flames = read_flames(report("-f", "perfetto", "--phase", wanted["name"]), pb2)[0]
    assert {name for _, name, *_ in flames} <= {"run", wanted["name"]}
    assert ("first touched by", "run") in {key[:2] for key in flames}


def test_no_stacks(pb2, tmp_path):
    profile = yaml.safe_load(PROFILE.read_text())
    del profile["stacks"]
    path = tmp_path / "none.yaml"
    path.write_text(yaml.safe_dump(profile, sort_keys=False))
    assert read_flames(report("-f", "perfetto", profile=path), pb2) == ({}, {})
