# SPDX-License-Identifier: GPL-2.0-only
"""Profiles that are made up: of names that mean harm, of a great size, of another program."""

import re

import yaml

HOSTILE = [
    "</script><script>window.intruder = 1</script>",
    "<!--<script>",
    "]]></script\t>",
    '"\'`${window.intruder = 1}',
    "<img src=x onerror='window.intruder = 1'>",
    "&lt;b&gt;&#60;b>",
    "\\u003c/script> \\",
    "right \u202eto left\u202c and \u2066back",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "line\u2028separator\u2029 \u0085 \u0007 \u001b[31m",
    "__proto__", "constructor", "toString", "hasOwnProperty",
    "@PROFILE@ @TITLE@ $& $1 %s",
    "x" * 20000,
    "\U0001f525" * 300,
    " ",
    "",
]


class NoAnchors(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def hostile_stacks(depth):
    """Each name a function of a file of that name; the first calls itself."""
    n = len(HOSTILE)
    calls = [[0, 0, None], *([0, 1 + i, 0xffffffff if i % 2 else None] for i in range(n)),
             *([1 if i == 0 else n + i, 1, None] for i in range(depth - 1))]
    rows = [[phase, call, "anon", 1 << 20, 1] for phase in [None, *range(n)] for call in [*range(1, n + 1), len(calls) - 1]]
    return {"grown_bytes": (n + 1) << 20, "samples": n,
            "functions": {"columns": ["name", "path"], "rows": [["(all)", ""], *([name, name and "/" + name] for name in HOSTILE)]},
            "calls": {"columns": ["caller", "function", "line"], "rows": calls},
            "phase_growth": {"columns": ["phase", "bytes"], "rows": [[i, (n + 1) << 20] for i in range(n)]},
            "touched": {"columns": ["phase", "call", "kind", "bytes", "samples"], "rows": rows}}


def hostile_profile(depth=1):
    steps = [{"step": "Start", "timestamp": 1.0, "relative_time_secs": 0.0, "cpu_memory_mb": 1.0}]
    phases, processes, rows, tracks = [], [], [], []
    for i, name in enumerate(HOSTILE):
        steps.append({"step": name, "timestamp": 2.0 + i, "relative_time_secs": 1.0 + i, "cpu_memory_mb": 10.0 + i,
                      "metrics": {name or "m": 1.5}})
        phases.append({"name": name, "kind": "gap" if i % 2 else "pair", "to": name, "depth": i % 3, "pid": 1, "tid": 1,
                       "start_secs": float(i), "duration_secs": 1.0, "start_memory_mb": 1.0, "end_memory_mb": 2.0,
                       "delta_memory_mb": 1.0, "peak_memory_mb": 30.0 if i == 0 else 3.0})
        processes.append({"pid": 100 + i, "ppid": 1, "comm": name[:15], "cmdline": name, "start_secs": 0.0, "end_secs": 20.0,
                          "exit_code": 0, "flags": [], "peak_memory_mb": 5.0 + i})
        rows.append([float(i), 1.0, 2.0 + i, 0.0, 0.0, None])
        tracks += [[i, 0.0, 0.0, 1.0, 0.0, 0.0], [i, 10.0, 0.0, 2.0, 0.0, 0.0]]
    return yaml.dump({
        "qprof": {"version": HOSTILE[0], "schema_version": 1, "hostname": HOSTILE[4], "kernel": HOSTILE[7], "command": HOSTILE,
                  "started_at": 1.0, "backends": {}},
        "memory_usage": steps,
        "total_quantization_time_seconds": 20.0,
        "peak_memory_mb": 30.0,
        "peak": {"time_secs": 0.5, "file_mb": 10.0, "anon_mb": 20.0, "shmem_mb": 0.0, "swap_mb": 0.0,
                 "processes": [{"process": i, "pid": 100 + i, "file_mb": 0.0, "anon_mb": 1.0, "shmem_mb": 0.0, "swap_mb": 0.0}
                               for i in range(len(HOSTILE))]},
        "phases": phases,
        "stacks": hostile_stacks(depth),
        "processes": processes,
        "timeline": {"columns": ["time_secs", "file_mb", "anon_mb", "shmem_mb", "swap_mb", "step_peak_mb"], "rows": rows},
        "process_timeline": {"columns": ["process", "time_secs", "file_mb", "anon_mb", "shmem_mb", "swap_mb"], "rows": tracks},
        "quality": {"lost_checkpoints": 3, "warnings": [{"what": n, "why": n} for n in HOSTILE], "notes": HOSTILE,
                    "may_be_counted_more_than_once_mb": {"inherited_at_fork": 0.0, "shmem": 0.0, "shared_files": 0.0}},
    }, Dumper=NoAnchors, sort_keys=False)


def files_profile(files, text):
    """That profile, with these files."""
    whole = yaml.safe_load(text)
    at = list(whole).index("phases")
    return yaml.dump(dict([*list(whole.items())[:at], ("files", files), *list(whole.items())[at:]]),
                     Dumper=NoAnchors, sort_keys=False)


def used_file(path, read=0.0, written=0.0, distinct=None, phases=None, **more):
    """An item of `files`. phases: {name: (read, written)}."""
    item = {"path": path, "size_mb": 100.0, "storage_read_mb": read, "storage_written_mb": written} | more
    if distinct:
        item |= {"distinct_mb": distinct, "reread_factor": round(read / distinct, 2)}
    if phases:
        item["phases"] = [{"name": name, "storage_read_mb": r, "storage_written_mb": w} for name, (r, w) in phases.items()]
    return item


def no_file(path, read=0.0, written=0.0):
    """What is of no file."""
    return {"path": path, "no_file": True, "storage_read_mb": read, "storage_written_mb": written}


def harmless(name):
    """As text_for_terminal leaves it: line breaks and tabs are to be seen, what else would turn text or control a
    terminal is U+FFFD; 1024 columns."""
    name = name.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    name = re.sub("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]", "\ufffd", name)
    return name if len(name) <= 1024 else name[:1021] + "..."


def big_profile(steps=10000, processes=200, points=4096):
    """A spike of one point in a long run."""
    end = steps * 0.01
    spike = points * 2 // 3
    lines = ["qprof: {version: '0', schema_version: 1, command: [big], started_at: 1.0}", "memory_usage:"]
    for i in range(steps):
        name = "Start" if i == 0 else "End" if i == steps - 1 else f"Layer {(i - 1) // 2} {'End' if i % 2 == 0 else 'Start'}"
        lines.append(f"- {{step: {name}, timestamp: {i * .01:.6f}, relative_time_secs: {i * .01:.6f}, cpu_memory_mb: 10.0,"
                     f" disk_read_mb: {i}.0, disk_write_mb: 0.0, io_read_mb: {i}.0, io_write_mb: 0.0,"
                     f" cpu_time_secs: {i * .005:.6f}, pid: 100, tid: 100}}")
    lines += [f"total_quantization_time_seconds: {end}", "peak_memory_mb: 5000.0",
              f"peak: {{time_secs: {spike * end / points:.6f}, file_mb: 0.0, anon_mb: 5000.0, shmem_mb: 0.0, swap_mb: 0.0,"
              " processes: [{process: 0, pid: 100, file_mb: 0.0, anon_mb: 5000.0, shmem_mb: 0.0, swap_mb: 0.0}]}", "phases:"]
    lines += [f"- {{name: Layer {i}, kind: pair, depth: 0, pid: 100, tid: 100, start_secs: {(2 * i + 1) * .01:.6f},"
              f" duration_secs: 0.01, start_memory_mb: 1.0, end_memory_mb: 1.0, delta_memory_mb: 0.0,"
              f" peak_memory_mb: {10 + i % 90}.0, io_read_mb: 0.0, io_write_mb: 0.0, disk_read_mb: 0.0, disk_write_mb: 0.0,"
              " cpu_time_secs: 0.0}" for i in range(steps // 2 - 1)]
    lines.append("processes:")
    lines += [f"- {{pid: {100 + i}, ppid: 1, comm: w{i}, cmdline: worker {i}, start_secs: {end * i / processes:.6f},"
              f" end_secs: {end:.6f}, exit_code: 0, flags: [], peak_memory_mb: {10 + i}.0}}" for i in range(processes)]
    lines += ["timeline:", "  columns: [time_secs, file_mb, anon_mb, shmem_mb, swap_mb, step_peak_mb]", "  rows:"]
    lines += [f"  - [{i * end / points:.6f}, 0.0, {5000 if i == spike else 100 + i % 50}.0, 0.0, 0.0, null]"
              for i in range(points)]
    lines += ["process_timeline:", "  columns: [process, time_secs, file_mb, anon_mb, shmem_mb, swap_mb]", "  rows:"]
    lines += [f"  - [{p}, {end * p / processes + k * .001:.6f}, 0.0, {5 + k}.0, 0.0, 0.0]"
              for p in range(processes) for k in range(40)]
    lines.append("quality: {lost_checkpoints: 0, may_be_counted_more_than_once_mb: "
                 "{inherited_at_fork: 0.0, shmem: 0.0, shared_files: 0.0}}")
    return "\n".join(lines) + "\n"


QUARK = """\
memory_usage:
- {step: Start, timestamp: 1.0, relative_time_secs: 0.0, cpu_memory_mb: 100.0, disk_read_mb: 0.0, disk_write_mb: 0.0}
- {step: Model loaded, timestamp: 2.0, relative_time_secs: 1.0, cpu_memory_mb: 500.0, disk_read_mb: 100.0, disk_write_mb: 0.0}
- {step: End, timestamp: 3.0, relative_time_secs: 2.0, cpu_memory_mb: 200.0, disk_read_mb: 100.0, disk_write_mb: 50.0}
total_quantization_time_seconds: 2.0
peak_memory_mb: 900.0
"""
