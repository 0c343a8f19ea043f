# SPDX-License-Identifier: GPL-2.0-only
"""The text report: what the first screen says, how wide it is, what it makes of hostile names."""

import pytest
import yaml

from reports import HERE, PROFILE, report, run

HOSTILE = """\
qprof: {version: "0", hostname: "\\e[2J\\u202eh", kernel: "k", command: ["\\e]0;x\\a", "\\u2066b"]}
memory_usage:
- {step: "\\e[31m\\u202e\\n Start", timestamp: 5.0, relative_time_secs: 0.0, cpu_memory_mb: 1.0}
- {step: "\\e[31m\\u202e\\n End", timestamp: 6.0, relative_time_secs: 1.0, cpu_memory_mb: 2.0}
"""


def lines(*args, **kwargs):
    return report("--width", "80", *args, **kwargs).decode().splitlines()


def test_first_screen():
    """When, in which phase, which process, of what kind: within the first 24 lines."""
    head = "\n".join(lines()[:24])
    peak = yaml.safe_load(PROFILE.read_text())["peak"]
    assert f"Peak 195 MiB at {peak['time_secs'] * 1000:.0f} ms, in Spike" in head, head
    assert "99 %  anon" in head, head
    assert f"{peak['processes'][0]['pid']} checkpoints memory" in head, head
    assert "Needs at least 189 MiB, at most 192 MiB" in head, head


@pytest.mark.parametrize("width", [60, 80, 89, 90, 200])
def test_fits(width):
    for line in report("--width", str(width)).decode().splitlines():
        assert len(line) <= width, f"{len(line)} columns instead of {width}: {line}"


@pytest.mark.parametrize("width,words", [(89, " ←"), (90, " ← peak")])
def test_the_phase_of_the_peak_is_marked(width, words):
    """In a word where there is room for one."""
    marked = [line for line in report("--width", str(width), "--sort", "peak").decode().splitlines() if "←" in line]
    assert len(marked) == 1 and "Spike" in marked[0] and marked[0].endswith(f" MiB{words}"), marked


def test_a_long_name_fills_its_line():
    """The names of the peak's phase and of the plateau's are cut where the line ends, not before."""
    edges = yaml.safe_load((HERE / "edges" / "edges.yaml").read_text())
    for phase in edges["phases"]:
        phase["name"] += " " + "x" * 300
    text = yaml.safe_dump(edges, sort_keys=False).encode()
    for width in (60, 61, 80, 100):
        head = report("--width", str(width), profile="-", stdin=text).decode().splitlines()
        told = [line for line in head if line.startswith(("Peak ", "  99 % of it first at "))]
        assert len(told) == 2 and all("xxx…xxx" in line for line in told), told
        assert [len(line) for line in told] == [width, width], told


def numbers(text):
    """Of the phases that are listed, in order: those before stretches between marks, and these."""
    lists = [[]]
    part = text[text.index("Phases") + 1:]
    for line in part[:next(i for i, line in enumerate(part) if "BY PHASE" in line)]:
        if line == "Between marks":
            lists.append([])
        elif line[:4].strip().isdigit():
            lists[-1].append(int(line.split(".")[0]))
    return lists


def test_sort_filter_top():
    phases = yaml.safe_load(PROFILE.read_text())["phases"]
    pairs = [i + 1 for i, phase in enumerate(phases) if phase["kind"] == "pair"]
    gaps = [i + 1 for i, phase in enumerate(phases) if phase["kind"] == "gap"]
    assert numbers(lines("--top", "100")) == [pairs, gaps]
    by_peak, = numbers(lines("--sort", "peak", "--top", "5"))
    peaks = [phases[n - 1]["peak_memory_mb"] for n in by_peak]
    assert peaks == sorted((phases[n - 1]["peak_memory_mb"] for n in pairs), reverse=True)[:5], peaks
    chosen, = numbers(lines("--phase", "Layer *"))
    assert chosen and all(phases[n - 1]["name"].startswith("Layer ") for n in chosen), chosen
    by_time, = numbers(lines("--sort", "duration", "--top", "3"))
    took = [phases[n - 1]["duration_secs"] for n in by_time]
    assert took == sorted((phases[n - 1]["duration_secs"] for n in pairs), reverse=True)[:3], took


def test_hostile_names():
    text = run("report", "-", stdin=HOSTILE.encode())[0].decode()
    bad = [c for c in text if c != "\n" and (not c.isprintable() or c in "\u202e\u2066")]
    assert not bad, bad
    assert "cut off" in text, text


def test_each_table_of_processes_has_a_title(tmp_path):
    profile = yaml.safe_load(PROFILE.read_text())
    had = {"major_faults": 1, "cpu_wait_secs": 1.5, "voluntary_switches": 2, "reclaim_secs": 0.25}
    profile["processes"][0].update(had)
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(profile, sort_keys=False))
    shown = lines(profile=path)
    titles = [line.split("BY PROCESS")[0] for line in shown if "BY PROCESS" in line]
    assert titles == ["FAULTS ", "WAITED ", "SWITCHES ", "STALLS "], shown
    assert not any("(null)" in line for line in shown), shown


def of_files(files, *options):
    """The section of files, of a profile that has these."""
    profile = yaml.safe_load(PROFILE.read_text())
    profile["files"] = files
    text = yaml.safe_dump(profile, sort_keys=False).encode()
    page = report("--width", "80", *options, profile="-", stdin=text).decode().splitlines()
    begin = [i for i, line in enumerate(page) if line.split(" ")[0].rstrip(":") == "FILES"]
    assert len(begin) == 1, page
    end = page.index("", begin[0])
    return page[begin[0]:end]


def test_what_is_no_file_is_always_listed():
    """It comes last, and may be most of it; the files that are left out are counted without it."""
    used = [{"path": f"/models/{i}", "size_mb": 1.0, "storage_read_mb": 1.0, "storage_written_mb": 0.0}
            for i in range(30)]
    rests = [{"path": path, "no_file": True, "storage_read_mb": 9.0, "storage_written_mb": 0.0}
             for path in ("(metadata)", "(elsewhere)")]
    section = of_files(used + rests, "--top", "20")
    assert [line.split()[0] for line in section[1:]] == [file["path"] for file in used[:20] + rests] + ["..."], section
    assert section[-1].strip() == "... and 10 more files (--top)", section
    section = of_files(used[:20] + rests, "--top", "20")
    assert len(section) == 1 + 20 + 2, section


@pytest.mark.parametrize("width", [60, 80, 200])
def test_shards_are_told_apart(width):
    """Of a path that is too long, first directories are left out: files mostly differ in their last names."""
    names = [f"model-0000{i}-of-00003.gguf" for i in range(1, 4)]
    used = [{"path": "/srv/" + "deep/" * 20 + name, "size_mb": 1.0, "storage_read_mb": 9.0, "storage_written_mb": 0.0,
             "distinct_mb": 3.0, "reread_factor": 3.0} for name in names]
    section = of_files(used, "--width", str(width))
    assert [line.split()[0].split("/")[-1] for line in section[1:4]] == names, section
    assert all(line.startswith("  \u2026/") for line in section[1:4]), section
    assert all(f"{name}: 9.00 MiB" in " ".join(" ".join(section[4:]).split()) for name in names), section


def test_read_by_calls():
    """A column of its own, where anything was read so."""
    used = {"path": "/m", "size_mb": 1.0, "storage_read_mb": 2.0, "storage_written_mb": 0.0}
    assert of_files([used])[0].split() == ["FILES", "SIZE", "READ", "DISTINCT", "TIMES", "WRITTEN"]
    section = of_files([used | {"call_read_mb": 8.0}])
    assert section[0].split()[-2:] == ["WRITTEN", "CALLS"] and section[1].split() == ["/m", "1.00M", "2.00M", "8.00M"], section


def test_copies_of_files():
    """Said of the phase with the most, from 16 MiB on."""
    def used(name, *copied):
        return {"path": name, "size_mb": 99.0, "storage_read_mb": 0.0, "storage_written_mb": 0.0, "copied_mb": max(copied),
                "phases": [{"name": f"Phase {i}", "storage_read_mb": 0.0, "storage_written_mb": 0.0, "copied_mb": mib,
                            "copied_late_secs": 0.001} for i, mib in enumerate(copied)]}
    text = " ".join(" ".join(of_files([used("/m/a", 8.0, 64.0, 32.0), used("/m/b", 9.0)])).split())
    assert "/m/a: 64.0 MiB of it were copies at the end of Phase 1: " in text and text.count(" were copies ") == 1, text


def test_no_file_was_used():
    """Said where it was asked, and nothing where it was not."""
    assert of_files([]) == ["FILES: nothing was read or written"]
    assert not [line for line in lines() if line.startswith("FILES")]
