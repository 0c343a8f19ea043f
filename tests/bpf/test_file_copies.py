# SPDX-License-Identifier: GPL-2.0-only
"""How much of mapped files a run has in memory, and as copies, since it wrote to private mappings (--file-copies)."""

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
    return in_memory(name, "Anonymous:", "Swap:")

def mapped(name):
    return in_memory(name, "Rss:") - in_memory(name, "Anonymous:")

def in_memory(name, *keys):
    \"\"\"What the kernel says, of the mappings of that file.\"\"\"
    kib, is_it = 0, False
    for line in open("/proc/self/smaps"):
        key, *values = line.split()
        if not key.endswith(":"):
            is_it = name in line
        elif is_it and key in keys:
            kib += int(values[0])
    return kib << 10

def touch(memory, mib, begin=0):
    \"\"\"Reads of each page, with no page brought in around it.\"\"\"
    memory.madvise(mmap.MADV_RANDOM)
    for at in range(begin * MIB, (begin + mib) * MIB, mmap.PAGESIZE):
        memory[at]

def phases(name):
    \"\"\"Of one name, until somebody will have looked at the end of one: looks rest, and others take the CPU.\"\"\"
    for i in range(40):
        with qprof.scope(name.format(i % 10)):
            pass
        told = rows_of("after")
        qprof.mark("after")
        while rows_of("after") == told:
            time.sleep(0.001)
        time.sleep(0.02)

def rows_of(name):
    return open(profile).read().count(f'"{name}"')
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


# ---- What is mapped ---------------------------------------------------------------------------------------------------


def of_end(profile, path, name):
    """What was mapped and copied of the file at the end of such a phase, in bytes."""
    use = of_phase(find(profile, path), name)
    return exact(use["mapped_mb"]), exact(use.get("copied_mb", 0))


def test_mapped(script, out, weights):
    """Pages of a shared mapping that are in memory, whether they were read or written."""
    run = script(BEGIN + """
memory = mmap.mmap(os.open(path, os.O_RDWR), SIZE * MIB)
touch(memory, 8)
copy(memory, 12)
phases("Shared")
print(json.dumps({"mapped": mapped(path)}))
""", weights, out, options=COPIES)
    assert run.truth["mapped"] >= 12 * MIB, run.truth
    assert of_end(run.profile, weights, "Shared") == (run.truth["mapped"], 0), (run.profile["files"], run.truth)
    assert exact(find(run.profile, weights)["mapped_mb"]) == run.truth["mapped"], run.profile["files"]
    rows = run_qprof("report", run.path).stdout.splitlines()
    files = next(i for i, row in enumerate(rows) if row.startswith("FILES"))
    title, row = rows[files], next(row for row in rows[files:] if "model.safetensors" in row)
    assert title.split()[-1] == "MAPPED" and row.split()[-1] == f"{run.truth['mapped'] / MIB:.1f}M", (title, row)


def test_mapped_and_copied(script, out, weights):
    """What is a copy is the file's no more; both mappings count."""
    run = script(BEGIN + """
fd = os.open(path, os.O_RDONLY)
shared = mmap.mmap(fd, SIZE * MIB, prot=mmap.PROT_READ)
touch(shared, SIZE)
private = map_private(fd)
touch(private, SIZE)
copy(private, SIZE // 4)
phases("Both")
print(json.dumps({"mapped": mapped(path), "copied": copied(path)}))
""", weights, out, options=COPIES)
    assert (run.truth["mapped"], run.truth["copied"]) == (SIZE * 7 // 4 * MIB, SIZE // 4 * MIB), run.truth
    assert of_end(run.profile, weights, "Both") == (run.truth["mapped"], run.truth["copied"]), run.profile["files"]


def test_mapped_adds_up(script, out, weights):
    """What all files have, in two processes, is what /proc says of the memory of files."""
    run = script(BEGIN + """
def of_files():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith("Rss"))
    return sum(int(lines[key].split()[0]) << 10 for key in ("RssFile", "RssShmem"))

memory = mmap.mmap(os.open(path, os.O_RDONLY), SIZE * MIB, prot=mmap.PROT_READ)
ready, go = os.pipe(), os.pipe()
if not os.fork():
    touch(memory, SIZE // 4)
    os.write(ready[1], str(mapped(path)).encode())
    os.read(go[0], 1)
    os._exit(0)
child = int(os.read(ready[0], 99))
touch(memory, SIZE, 0)
phases("Mapped")
print(json.dumps({"child": child, "own": mapped(path), "all": of_files()}))
os.write(go[1], b".")
os.wait()
""", weights, out, options=COPIES)
    files = [(file["path"], of_phase(file, "Mapped")) for file in run.profile["files"] if file.get("phases")]
    mib = {path: use["mapped_mb"] for path, use in files if use and "mapped_mb" in use}
    truth = run.truth
    assert exact(mib[str(weights)]) == truth["child"] + truth["own"] and truth["own"] == SIZE * MIB, (mib, truth)
    others = sum(mib.values()) - mib[str(weights)]
    assert others * MIB <= 2 * truth["all"], (mib, truth)
    assert any("python" in path for path in mib), mib


def test_mapped_memory_file(script, out):
    """Of a file without a disk, too."""
    run = script(BEGIN + """
fd = os.memfd_create("weights")
os.truncate(fd, SIZE * MIB)
memory = mmap.mmap(fd, SIZE * MIB)
copy(memory, 5)
phases("Mapped")
""", "", out, options=COPIES)
    file = find(run.profile, "/memfd:weights")
    assert (file["deleted"], file["mapped_mb"], "copied_mb" in file) == (True, 5, False), file


COME_AND_GO = """
import threading
fd = os.open(path, os.O_RDONLY)
memory = map_private(fd)
touch(memory, SIZE)
copy(memory, 4)

def come_and_go():
    pages, other = 0, memory
    while True:
        pages = pages % 997 + 1
        other = mmap.mmap(fd, pages * mmap.PAGESIZE, prot=mmap.PROT_READ) # and the one before goes

phases("Before")
os.nice(-20) # so that on a busy machine the thread has a CPU while somebody looks
threading.Thread(target=come_and_go).start()
phases("Going {}")
os._exit(0)
"""


def test_files_come_and_go(script, out, weights):
    """A process that maps and unmaps files all the time: no wrong figure of what is mapped; copies are told."""
    for _ in range(20):
        file = find(script(BEGIN + COME_AND_GO, weights, out, options=COPIES).profile, weights)
        told = [use for use in file["phases"] if "copied_mb" in use]
        assert {use["copied_mb"] for use in told} == {file["copied_mb"]} == {4}, file
        assert {use["mapped_mb"] for use in told if "mapped_mb" in use} == {file["mapped_mb"]} == {SIZE - 4}, file
        if [use for use in told if "mapped_mb" not in use]:
            return
    assert False, f"expected phases with copied_mb alone, got {file}"
