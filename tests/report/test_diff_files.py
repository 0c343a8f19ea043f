# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf diff of profiles with files: matched by path, what changed, and what nobody knows."""

import pytest

from profiles import files_profile, no_file, used_file
from test_diff import MIB, as_json, diff, phase, profile  # the last is a fixture

MODEL = "/models/model-00003-of-00004.safetensors"


@pytest.fixture
def of_files(profile):
    """of_files(NAME, files): a profile with these files."""
    def make(name, files):
        path = profile(name, phase("Load", 0))
        path.write_text(files_profile(files, path.read_text()))
        return path
    return make


def section(*args):
    """The lines of files, without blanks at their ends."""
    lines = diff("--width", "100", *args).splitlines()
    begin = [i for i, line in enumerate(lines) if line.split(":")[0] == "Files"]
    assert len(begin) <= 1, lines
    return [line.rstrip() for line in lines[begin[0]:]] if begin else []


def medians(file):
    return {key: tuple(side and side["median"] for side in (value["old"], value["new"]))
            for key, value in file.items() if isinstance(value, dict)}


def test_read_again(of_files):
    """More was read of the same file, as it was read three times; what did not change is counted."""
    same = used_file("/models/config.json", 2.0, distinct=2.0)
    old = of_files("old", [used_file(MODEL, 64.0, distinct=64.0), same])
    new = of_files("new", [used_file(MODEL, 192.0, 8.0, distinct=64.0), same])
    assert section(old, new) == [
        "Files",
        f"  {MODEL}",
        "    from storage        64.0 MiB    192 MiB    +128 MiB   +200.0 %",
        "    written                  0 B   8.00 MiB   +8.00 MiB     from 0",
        "    times                   1.00       3.00       +2.00   +200.0 %",
        "1 file without a change of 1 % and 1 MiB (--all)"]
    assert section("--all", old, new)[5:7] == [
        "  /models/config.json", "    from storage        2.00 MiB   2.00 MiB        +0 B     +0.0 %"]
    found = as_json(old, new)["files"]
    assert [file["path"] for file in found] == [MODEL, "/models/config.json"] and not found[0]["no_file"]
    assert medians(found[0]) == {"storage_read_bytes": (64 * MIB, 192 * MIB), "storage_written_bytes": (0, 8 * MIB),
                                 "call_read_bytes": (None, None), "reread_factor": (1.0, 3.0),
                                 "mapped_bytes": (None, None), "copied_bytes": (None, None)}


def test_read_by_calls(of_files):
    """What the page cache had changes, too. Where one side says nothing of calls, that is no change."""
    none, once = of_files("none", [used_file(MODEL)]), of_files("once", [used_file(MODEL, call_read_mb=64.0)])
    twice = of_files("twice", [used_file(MODEL, call_read_mb=128.0)])
    assert section(once, twice) == ["Files", f"  {MODEL}",
                                    "    by calls            64.0 MiB    128 MiB   +64.0 MiB   +100.0 %"]
    assert section(none, twice) == [] and "\n1 file without a change of 1 % and 1 MiB (--all)\n" in diff(none, twice)
    assert section("--all", none, twice)[3] == "    by calls                   -    128 MiB"
    assert medians(as_json(none, twice)["files"][0])["call_read_bytes"] == (None, 128 * MIB)


def test_mapped(of_files):
    """What processes had mapped in memory changes, too, as that of no other file. What one side does not say of any file
    is no change; of this one, it is not known, and was less than 1 MiB if somebody looked."""
    none, once = of_files("none", [used_file(MODEL)]), of_files("once", [used_file(MODEL, mapped_mb=64.0)])
    twice = of_files("twice", [used_file(MODEL, mapped_mb=128.0)])
    assert section(once, twice) == ["Files", f"  {MODEL}",
                                    "    mapped              64.0 MiB    128 MiB   +64.0 MiB   +100.0 %"]
    assert medians(as_json(once, twice)["files"][0])["mapped_bytes"] == (64 * MIB, 128 * MIB)
    assert section(none, twice) == [] and "\n1 file without a change of 1 % and 1 MiB (--all)\n" in diff(none, twice)
    assert section("--all", none, twice)[4] == "    mapped                     -    128 MiB"
    other = of_files("other", [used_file("/models/other", mapped_mb=1.5), used_file(MODEL)])
    assert section(other, twice) == ["Files", f"  {MODEL}", "    mapped                     -    128 MiB",
                                     "1 file without a change of 1 % and 1 MiB (--all)"]
    unlisted = of_files("unlisted", [used_file("/models/other", mapped_mb=1.5)])
    assert section(twice, unlisted)[:3] == ["Files", f"  {MODEL}", "    mapped               128 MiB          -"]


def test_mapped_of_several(of_files):
    """Those of one path are not added up, for they need not have been mapped at a time. Of repeats of a side, those count
    that say it."""
    old = [of_files(f"old{i}", files) for i, files in enumerate((
        [used_file(MODEL, mapped_mb=8.0), used_file(MODEL, mapped_mb=6.0), used_file(MODEL)],
        [used_file(MODEL, mapped_mb=10.0)], [used_file(MODEL)]))]
    new = of_files("new", [used_file(MODEL, mapped_mb=16.0)])
    assert medians(as_json(old[0], new)["files"][0])["mapped_bytes"] == (8 * MIB, 16 * MIB)
    file, = as_json(",".join(map(str, old)), new)["files"]
    assert file["mapped_bytes"]["old"] == {"median": 9 * MIB, "lowest": 8 * MIB, "highest": 10 * MIB}


def test_copied(of_files):
    """Copies of weights are compared in the same way. A run that tells what was mapped has looked for copies, too: where
    it says none, there was less than 1 MiB, or nobody knows, and it is not 0."""
    once = of_files("once", [used_file(MODEL, copied_mb=64.0)])
    twice = of_files("twice", [used_file(MODEL, copied_mb=128.0)])
    assert section(once, twice) == ["Files", f"  {MODEL}",
                                    "    copied              64.0 MiB    128 MiB   +64.0 MiB   +100.0 %"]
    assert medians(as_json(once, twice)["files"][0])["copied_bytes"] == (64 * MIB, 128 * MIB)
    none = of_files("none", [used_file(MODEL)])
    assert section(none, twice) == [] and section("--all", none, twice)[4] == "    copied                     -    128 MiB"
    looked = of_files("looked", [used_file("/models/other", mapped_mb=1.5)])
    assert section(looked, twice)[:3] == ["Files", f"  {MODEL}", "    copied                     -    128 MiB"]
    assert section(twice, looked)[:3] == ["Files", f"  {MODEL}", "    copied               128 MiB          -"]
    assert medians(as_json(looked, twice)["files"][0])["copied_bytes"] == (None, 128 * MIB)


def test_copied_of_several(of_files):
    """Of files of one path the most counts, and of repeats those that say it."""
    old = [of_files(f"old{i}", files) for i, files in enumerate((
        [used_file(MODEL, copied_mb=8.0), used_file(MODEL, copied_mb=6.0)], [used_file(MODEL, copied_mb=10.0)],
        [used_file(MODEL)]))]
    new = of_files("new", [used_file(MODEL, copied_mb=16.0)])
    file, = as_json(",".join(map(str, old)), new)["files"]
    assert file["copied_bytes"]["old"] == {"median": 9 * MIB, "lowest": 8 * MIB, "highest": 10 * MIB}
    assert file["copied_bytes"]["new"]["median"] == 16 * MIB


def test_most_mapped_first(of_files):
    """The order counts it as what was read and written."""
    old = of_files("old", [used_file("/a", written=5.0, mapped_mb=5.0), used_file("/b", mapped_mb=2.0)])
    new = of_files("new", [used_file("/a", written=9.0, mapped_mb=6.0), used_file("/b", mapped_mb=8.0)])
    assert [line for line in section(old, new) if line.startswith("  /")] == ["  /b", "  /a"]
    assert "/c" not in "".join(section(of_files("c", [used_file("/c", mapped_mb=100.0)]),
                                       of_files("d", [used_file("/c", mapped_mb=100.9)]))), "no MiB, no percent"


def test_other_blocks_as_often(of_files):
    """As much was read, but of fewer blocks."""
    old = of_files("old", [used_file(MODEL, 64.0, distinct=64.0)])
    new = of_files("new", [used_file(MODEL, 64.0, distinct=32.0)])
    assert section(old, new)[2:] == ["    from storage        64.0 MiB   64.0 MiB        +0 B     +0.0 %",
                                     "    times                   1.00       2.00       +1.00   +100.0 %"]


def test_on_one_side_only(of_files):
    """A run that tells of files, and not of this one, used nothing of it: unless some were left out."""
    none, some = of_files("none", []), of_files("some", [used_file(MODEL, 64.0, distinct=64.0)])
    file, = as_json(none, some)["files"]
    assert medians(file) == {"storage_read_bytes": (0, 64 * MIB), "storage_written_bytes": (0, 0),
                             "call_read_bytes": (None, None), "reread_factor": (None, 1.0), "mapped_bytes": (None, None),
                             "copied_bytes": (None, None)}
    assert section(none, some) == ["Files", f"  {MODEL}",
                                   "    from storage             0 B   64.0 MiB   +64.0 MiB     from 0"]
    assert section(some, none)[2] == "    from storage        64.0 MiB        0 B   -64.0 MiB   -100.0 %"
    full = of_files("full", [no_file("(other)", 0.5)])
    assert medians(as_json(full, some)["files"][0])["storage_read_bytes"] == (None, 64 * MIB)
    assert section(full, some)[2] == "    from storage               -   64.0 MiB"


def test_what_is_no_file(of_files):
    """It is matched by what it is; a file may have the same letters."""
    old = of_files("old", [used_file("(metadata)", 10.0, distinct=10.0), no_file("(metadata)", 1.0)])
    new = of_files("new", [used_file("(metadata)", 20.0, distinct=10.0), no_file("(metadata)", 4.0)])
    found = {file["no_file"]: medians(file)["storage_read_bytes"] for file in as_json(old, new)["files"]}
    assert found == {False: (10 * MIB, 20 * MIB), True: (MIB, 4 * MIB)}


def test_one_path_twice(of_files):
    """A file that was replaced is there again: both count."""
    new = of_files("new", [used_file(MODEL, 30.0, distinct=10.0), used_file(MODEL, 10.0, distinct=10.0)])
    file, = as_json(of_files("old", []), new)["files"]
    assert medians(file)["storage_read_bytes"] == (0, 40 * MIB) and medians(file)["reread_factor"] == (None, 2.0)
    new = of_files("new", [used_file(MODEL, 30.0, distinct=10.0), used_file(MODEL, 10.0)])
    assert medians(as_json(new, new)["files"][0])["reread_factor"] == (None, None), "of one of them it is not known"


def test_without_a_name(of_files):
    """Temporary files that never had one have another number in each run: those of a directory are one."""
    def files(*numbers):
        return [used_file(f"/tmp/#{n}", written=5.0, deleted=True) for n in numbers] + [
            used_file("/tmp/#1", written=2.0), used_file("/tmp/#1a", written=2.0, deleted=True), used_file("/tmp/#", written=3.0)]

    found = as_json(of_files("old", files(7, 8, 9)), of_files("new", files(17)))["files"]
    assert {file["path"]: medians(file)["storage_written_bytes"] for file in found} == {
        "/tmp/#": (18 * MIB, 8 * MIB), "/tmp/#1": (2 * MIB, 2 * MIB), "/tmp/#1a": (2 * MIB, 2 * MIB)}


def test_most_change_first(of_files):
    """Of many files only those that changed most are told, and how many there are beside."""
    old = of_files("old", [used_file(f"/tmp/{i}", written=5.0) for i in range(30)])
    new = of_files("new", [used_file(f"/tmp/{i}", written=5.0 + 2 * i) for i in range(30)])
    lines = section(old, new)
    assert [line.strip() for line in lines if line.startswith("  /")] == [f"/tmp/{i}" for i in range(29, 9, -1)]
    assert lines[-2:] == ["... and 9 more files that changed (--all)",
                          "1 file without a change of 1 % and 1 MiB (--all)"]
    assert len([line for line in section("--all", old, new) if line.startswith("  /")]) == 30


def test_repeats(of_files):
    """Medians count; a run that does not list the file used nothing of it."""
    old = ",".join(str(of_files(f"old{i}", [used_file(MODEL, read, distinct=32.0)] if read else []))
                   for i, read in enumerate((32.0, 0.0, 64.0)))
    new = of_files("new", [used_file(MODEL, 96.0, distinct=32.0)])
    file, = as_json(old, new)["files"]
    assert file["storage_read_bytes"]["old"] == {"median": 32 * MIB, "lowest": 0, "highest": 64 * MIB}
    assert file["reread_factor"]["old"] == {"median": 1.5, "lowest": 1.0, "highest": 2.0}
    assert not file["storage_read_bytes"]["within_spread"]
    near = of_files("near", [used_file(MODEL, 48.0, distinct=32.0)])
    assert section(old, near)[2].endswith("+50.0 % ~")


def test_not_asked_for(of_files, profile):
    """On neither side nothing is said of files; on one, which does not tell."""
    without, with_files = profile("without", phase("Load", 0)), of_files("with", [used_file(MODEL, 64.0, distinct=64.0)])
    assert section(without, without) == [] and "files" not in as_json(without, without)
    assert section(without, with_files) == ["Files: OLD does not tell of them (--files)"]
    assert section(with_files, without) == ["Files: NEW does not tell of them (--files)"]
    assert medians(as_json(without, with_files)["files"][0])["storage_read_bytes"] == (None, 64 * MIB)
    file, = as_json(f"{without},{with_files}", with_files)["files"]
    assert medians(file)["storage_read_bytes"] == (64 * MIB, 64 * MIB), "the run that does not tell is left out"


@pytest.mark.parametrize("width", [60, 100, 512])
def test_hostile_paths(of_files, width):
    """Made safe for a terminal, and without first directories so that its line is no longer than the width."""
    path = "/\x1b[31m\u202e\n" + "deep/" * 300 + "a.gguf"
    new = of_files("new", [used_file(path, 64.0, distinct=64.0)])
    text = diff("--width", str(width), of_files("old", []), new)
    assert "\x1b" not in text and "\u202e" not in text, text
    line, = [line for line in text.splitlines() if line.endswith("a.gguf")]
    assert len(line) <= width and line.startswith("  \u2026/deep/deep/"), line
    assert as_json(new, new)["files"][0]["path"] == path


@pytest.mark.parametrize("path", ["/" * 65000, "/" * 60000 + "x" * 5000, "x/" * 32000])
def test_endless_paths(of_files, path):
    """Of a path that no kernel has there is a line at once, as of any other."""
    new = of_files("new", [used_file(path, 64.0, distinct=64.0)])
    lines = section(of_files("old", []), new)
    assert len(lines) == 3 and len(lines[1]) == 100, lines


LIMIT = "--max-file-read-increase"


@pytest.mark.parametrize("limit, broken", [("64M", False), ("63M", True), ("100%", False), ("99%", True)])
def test_limit(of_files, limit, broken):
    """Of each file, however little all others changed; what was written is no matter."""
    other = used_file("/models/other", 100.0, distinct=100.0)
    old = of_files("old", [used_file(MODEL, 64.0, distinct=64.0), other])
    new = of_files("new", [used_file(MODEL, 128.0, 500.0, distinct=64.0), other])
    found = as_json(LIMIT, limit, old, new, status=int(broken))
    most = round(64 * MIB + (float(limit[:-1]) * MIB if limit[-1] == "M" else 64 * MIB * float(limit[:-1]) / 100))
    assert found["breaches"] == [{"limit": f"{LIMIT} {limit}", "file": MODEL, "occurrence": 0, "metric": "storage_read",
                                  "new": 128 * MIB, "most": pytest.approx(most, abs=1)}] * broken
    text = diff("--width", "150", LIMIT, limit, old, new, status=int(broken))
    assert (f"! {LIMIT} {limit}: {MODEL}, from storage is 128 MiB, at most " in text) == broken, text
    assert ("All limits hold." in text) != broken, text


def test_limit_of_what_is_new(of_files):
    """A file that the old side did not read counts from 0."""
    old, new = of_files("old", []), of_files("new", [used_file(MODEL, 64.0, distinct=64.0)])
    diff(LIMIT, "64M", old, new)
    diff(LIMIT, "63M", old, new, status=1)


def test_limit_without_files(of_files, profile):
    """Nothing to compare is no success."""
    old, new = of_files("old", []), profile("new", phase("Load", 0))
    text = diff("--width", "150", LIMIT, "1G", old, new, status=1)
    assert f"! {LIMIT} 1G: a side does not tell of files (--files)" in text, text
