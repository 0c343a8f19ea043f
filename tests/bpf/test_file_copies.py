# SPDX-License-Identifier: GPL-2.0-only
"""How much of mapped files a run has as copies, since it wrote to private mappings (--file-copies)."""

import os

import pytest

from harness import MIB, losses, quality, run_qprof
from test_files import find, of_phase

COPIES = ["--file-copies"]
SIZE = 32

BEGIN = f"""
import json, mmap, os, sys, time
import qprof

path, profile = sys.argv[1:]
MIB, SIZE = 1 << 20, {SIZE}
""" + """
def map_private(fd):
    return mmap.mmap(fd, SIZE * MIB, flags=mmap.MAP_PRIVATE)

def copy(memory, mib):
    for at in range(0, mib * MIB, mmap.PAGESIZE):
        memory[at] = 1

def copied(name):
    \"\"\"What the kernel says, of the mappings of that file.\"\"\"
    kib, is_it = 0, False
    for line in open("/proc/self/smaps"):
        key, *values = line.split()
        if not key.endswith(":"):
            is_it = name in line
        elif is_it and key in ("Anonymous:", "Swap:"):
            kib += int(values[0])
    return kib << 10

def phases(name):
    \"\"\"Of one name, until somebody will have looked at the end of one: looks rest, and others take the CPU.\"\"\"
    for i in range(40):
        with qprof.scope(name):
            pass
        qprof.mark(f"{name} {i}")
        while f'"{name} {i}"' not in open(profile).read():
            time.sleep(0.001)
        time.sleep(0.02)
"""


@pytest.fixture
def weights(disk):
    path = disk / "model.safetensors"
    path.write_bytes(os.urandom(MIB) * SIZE)
    return path


def exact(mib):
    return round(mib * MIB)


def test_half(script, out, weights):
    """As the kernel has it, also of a file that storage was not used for; and all reports say so."""
    run = script(BEGIN + """
memory = map_private(os.open(path, os.O_RDONLY))
assert len(set(memory[i] for i in range(0, len(memory), 4096)))
copy(memory, SIZE // 2)
phases("Half")
print(json.dumps({"copied": copied(path)}))
""", weights, out, options=COPIES)
    file = find(run.profile, weights)
    half = of_phase(file, "Half")
    assert exact(half["copied_mb"]) == exact(file["copied_mb"]) == run.truth["copied"] == SIZE // 2 * MIB, file
    assert 0 < half["copied_late_secs"] < 60, half
    text = " ".join(run_qprof("report", run.path).stdout.split())
    assert "model.safetensors: 16.0 MiB of it were copies at the end of Half" in text, text
    rows = run_qprof("report", "-f", "csv", "--table", "files", run.path).stdout.splitlines()
    assert rows[0].endswith(",copied_mb") and [row for row in rows if "model.safetensors" in row and row.endswith(",16.00")], rows


def test_nothing(script, out, weights):
    """Pages that are read only are no copies, nor are those of shared mappings."""
    run = script(BEGIN + """
private = map_private(os.open(path, os.O_RDONLY))
shared = mmap.mmap(os.open(path, os.O_RDWR), SIZE * MIB)
assert len(set(private[i] for i in range(0, len(private), 4096)))
copy(shared, SIZE)
phases("Shared")
""", weights, out, options=COPIES)
    copied = [file for file in run.profile["files"] if file["path"] == str(weights) and "copied_mb" in file]
    assert not copied, copied
    assert quality(run.profile)["unread_copies"] < len(run.profile["phases"]), "somebody has looked"


def test_memory_file(script, out):
    """Where there is no disk, too; its name is what the kernel calls it."""
    run = script(BEGIN + """
fd = os.memfd_create("weights")
os.write(fd, bytes(SIZE * MIB))
memory = map_private(fd)
copy(memory, 3)
phases("Copied")
""", "", out, options=COPIES)
    file = find(run.profile, "/memfd:weights")
    assert (file["deleted"], file["size_mb"], file["copied_mb"], of_phase(file, "Copied")["copied_mb"]) == (True, SIZE, 3, 3), file


def test_children(script, out, weights):
    """Each process has its own, and a child those of its parent once more, as memory has it."""
    run = script(BEGIN + """
memory = map_private(os.open(path, os.O_RDONLY))
copy(memory, 4)
ready, done = os.pipe(), os.pipe()
if not os.fork():
    copy(memory, 6)
    os.write(ready[1], b".")
    os.read(done[0], 1)
    os._exit(0)
os.read(ready[0], 1)
phases("Both")
os.write(done[1], b".")
os.wait()
""", weights, out, options=COPIES)
    assert of_phase(find(run.profile, weights), "Both")["copied_mb"] == 4 + 6, run.profile["files"]


def test_ends_with_its_phase(script, out, weights):
    """Of what has ended before it was looked at nobody knows: no figure, and not 0."""
    run = script(BEGIN + """
memory = map_private(os.open(path, os.O_RDONLY))
copy(memory, SIZE // 2)
phases("Half")
qprof.begin("Last")
copy(memory, SIZE)
qprof.end("Last")
os._exit(0)
""", weights, out, options=COPIES)
    last = of_phase(find(run.profile, weights), "Last")
    assert last.get("copied_mb", SIZE) == SIZE, last
    if "copied_mb" not in last:
        assert losses(run.profile)["unread_copies"] >= 1, run.profile["quality"]


def test_without_the_option(script, out, weights):
    run = script(BEGIN + """
memory = map_private(os.open(path, os.O_RDONLY))
copy(memory, SIZE)
with qprof.scope("Copied"):
    pass
""", weights, out, options=["--files"])
    assert not [file for file in run.profile["files"] if "copied_mb" in file], run.profile["files"]
    assert not run.profile["quality"]["unread_copies"], run.profile["quality"]
