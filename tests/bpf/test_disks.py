# SPDX-License-Identifier: GPL-2.0-only
"""How disks served a run (--files): requests, what they moved, and how long they took."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from harness import MIB, assert_nothing_lost, run_qprof

FILES = ["--files"]
SIZE = 32

BEGIN = """
import json, mmap, os, subprocess, sys, threading, time
import qprof

def direct(path, way, size, places):
    \"\"\"Reads or writes size bytes at each place, one after another. Returns how long that took.\"\"\"
    fd = os.open(path, os.O_RDWR | os.O_DIRECT)
    room = mmap.mmap(-1, size)
    began = time.monotonic()
    for place in places:
        if way == "read":
            assert os.preadv(fd, [room], place * size) == size
        else:
            assert os.pwritev(fd, [room], place * size) == size
    os.close(fd)
    return time.monotonic() - began

path = sys.argv[1]
"""


@pytest.fixture
def loop(disk):
    """A disk of its own, that nobody else uses: on a file."""
    path = disk / "image"
    path.write_bytes(os.urandom(MIB) * SIZE)
    done = subprocess.run(["losetup", "--find", "--show", path], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device can be had: {done.stderr.strip()}")
    yield done.stdout.strip()
    subprocess.run(["losetup", "-d", done.stdout.strip()], check=True)


@pytest.fixture
def zram():
    """A disk whose driver ends requests by itself, without a queue of them."""
    control = Path("/sys/class/zram-control")
    if not control.exists():
        pytest.skip("no zram here")
    number = (control / "hot_add").read_text(encoding="ascii").strip()
    Path(f"/sys/block/zram{number}/disksize").write_text("32M", encoding="ascii")
    yield f"/dev/zram{number}"
    Path(f"/sys/block/zram{number}/reset").write_text("1", encoding="ascii")
    deadline = time.monotonic() + 10
    while True:  # who looks at new disks may have it open yet
        try:
            (control / "hot_remove").write_text(number, encoding="ascii")
            return
        except OSError:
            if time.monotonic() > deadline:
                raise


def name_of(path):
    """The name of a disk, or of what a file is on."""
    status = os.stat(path)
    number = status.st_rdev or status.st_dev
    place = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    return (place.parent if (place / "partition").exists() else place).name


def find(profile, name):
    found = [one for one in profile.get("storage_devices", []) if one["device"] == name]
    assert len(found) == 1, f"expected {name} once, got {json.dumps(profile.get('storage_devices'), indent=1)}"
    return found[0]


def of_phase(device, name):
    found = [use for use in device["phases"] if use["name"] == name]
    assert len(found) == 1, f"expected {name!r} once, got {json.dumps(device, indent=1)}"
    return found[0]


def check(item, **expected):
    got = {key: item.get(key) for key in expected}
    assert got == expected, f"expected {expected}, got {json.dumps(item, indent=1)}"


def check_times(device, way, n):
    """What is said of all requests fits together, whatever they took."""
    half, most, longest = (device[f"{way}_{what}_secs"] for what in ("p50", "p99", "max"))
    mean = device[f"{way}_mean_secs"]
    assert 0 < half <= most <= longest, device
    assert longest / n <= mean + 1e-6 and mean <= longest, device


def check_busy(profile, device, took, n):
    """
    n requests, one at a time, make a disk busy for as long as they take; in figures of whole microseconds. Where nobody
    saw the end of one, it was open until that was found, some milliseconds later.
    """
    unseen = profile["quality"]["unended_requests"]
    assert took - n * 1e-6 <= device["busy_secs"] <= took + n * 1e-6 + unseen * 0.02, (took, unseen, device)


def statistics(name):
    """What the kernel counts of a disk, in milliseconds: reading, writing, busy."""
    fields = Path(f"/sys/block/{name}/stat").read_text(encoding="ascii").split()
    return {"read": int(fields[3]), "write": int(fields[7]), "busy": int(fields[9])}


@pytest.mark.parametrize("kind", ["loop", "zram"])
def test_one_after_another(script, request, kind):
    """Each request counts in its phase; their times are a part of what the calls took, and make up the busy time."""
    path = request.getfixturevalue(kind)
    name = name_of(path)
    run = script(BEGIN + """
with qprof.scope("Save"):
    write = direct(path, "write", 1 << 20, range(32))
with qprof.scope("Load"):
    read = direct(path, "read", 1 << 16, [i % 512 for i in range(1500)])
print(json.dumps({"write": write, "read": read}))
""", path, options=FILES)
    device = find(run.profile, name)
    check(device, read_requests=1500, read_mb=1500 / 16, write_requests=32, write_mb=32, open_requests=None)
    if not run.profile["quality"]["unended_requests"]:  # what ended unseen may be found in the next phase
        check(of_phase(device, "Load"), read_requests=1500, read_mb=1500 / 16, write_requests=0, write_mb=0)
        check(of_phase(device, "Save"), read_requests=0, read_mb=0, write_requests=32, write_mb=32)
    took = {"read": device["read_mean_secs"] * 1500, "write": device["write_mean_secs"] * 32}
    for way, n in (("read", 1500), ("write", 32)):
        check_times(device, way, n)
        assert took[way] <= run.truth[way] + n * 1e-6, f"{way}: {took} is more than the calls took: {run.truth}"
    check_busy(run.profile, device, sum(took.values()), 1532)
    assert of_phase(device, "Load")["busy_secs"] <= of_phase(device, "Load")["secs"], device
    assert_nothing_lost(run.profile)
    text = " ".join(run_qprof("report", "--width", "200", run.path).stdout.split())
    assert "DISKS AMOUNT REQUESTS MEAN 50 % 99 % MAX" in text and f"{name} read 93.8M 1500 " in text, text
    rows = run_qprof("report", "-f", "csv", "--table", "storage_devices", run.path)
    assert f'"{name}"' in rows.stdout, rows


def test_as_the_kernel_has_it(script, loop):
    """Of a disk that nobody else uses, the kernel's own statistics have the time of the same requests."""
    name = name_of(loop)
    before = statistics(name)
    run = script(BEGIN + """
for _ in range(8):
    direct(path, "read", 1 << 16, range(512))
print("{}")
""", loop, options=FILES)
    device = find(run.profile, name)
    after = statistics(name)
    check(device, read_requests=4096, read_mb=256)
    # Theirs end after ours: when the caller has been woken. What interrupts a begin counts in ours alone.
    ours, theirs = device["read_mean_secs"] * 4096 * 1000, after["read"] - before["read"]
    assert theirs * 0.5 - 2 <= ours, f"expected at least half of {theirs} ms, as in /sys/block, got {ours}: {device}"
    check_busy(run.profile, device, ours / 1000, 4096)


def test_many_at_a_time(script, loop):
    """Requests of four threads, on a disk and through a file system: none is missed, none counts twice."""
    name = name_of(loop)
    run = script(BEGIN + """
def work(thread):
    direct(path, "write", 4096, range(thread * 2000, thread * 2000 + 2000))
    direct(path, "read", 8192, range(thread * 1000, thread * 1000 + 1000))

threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("{}")
""", loop, options=FILES)
    device = find(run.profile, name)
    check(device, write_requests=8000, write_mb=8000 / 256, read_requests=4000, read_mb=8000 / 256, open_requests=None)
    took = device["read_mean_secs"] * 4000 + device["write_mean_secs"] * 8000
    assert device["busy_secs"] <= took + 12000e-6, f"busy with nothing to do: {device}, of {took}"
    assert_nothing_lost(run.profile)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of its system calls")
def test_merged(script, loop):
    """Requests next to each other that are made at once go to the disk as one: each counts."""
    name = name_of(loop)
    merges = Path(f"/sys/block/{name}/stat")
    before = int(merges.read_text(encoding="ascii").split()[1])
    run = script(BEGIN + """
import ctypes
IO_SETUP, IO_GETEVENTS, IO_SUBMIT, N = 206, 208, 209, 64
libc = ctypes.CDLL(None, use_errno=True)
context = ctypes.c_ulong()
assert not libc.syscall(IO_SETUP, N, ctypes.byref(context))
fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
room = mmap.mmap(-1, N << 12)
begin = ctypes.addressof(ctypes.c_char.from_buffer(room))

class Call(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("what", ctypes.c_uint16),
                ("priority", ctypes.c_int16), ("fd", ctypes.c_uint32), ("room", ctypes.c_uint64), ("size", ctypes.c_uint64),
                ("at", ctypes.c_int64), ("more", ctypes.c_uint64 * 2)]

for turn in range(16):
    calls = [Call(fd=fd, room=begin + (i << 12), size=4096, at=turn * N + i << 12) for i in range(N)]
    pointers = (ctypes.POINTER(Call) * N)(*map(ctypes.pointer, calls))
    assert libc.syscall(IO_SUBMIT, context, N, pointers) == N
    assert libc.syscall(IO_GETEVENTS, context, N, N, ctypes.create_string_buffer(32 * N), None) == N
print("{}")
""", loop, options=FILES)
    merged = int(merges.read_text(encoding="ascii").split()[1]) - before
    if not merged:
        pytest.skip("this kernel merged nothing")
    check(find(run.profile, name), read_requests=1024, read_mb=4, open_requests=None)


def test_ends_in_interrupts(script, disk):
    """A real disk's requests end in interrupts of whatever runs: each counts nevertheless."""
    path = disk / "direct"
    path.write_bytes(bytes(SIZE * MIB))
    subprocess.run(["sync", path], check=True)
    run = script(BEGIN + """
def work(thread):
    direct(path, "write", 4096, range(thread * 2000, thread * 2000 + 2000))

threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
direct(path, "read", 1 << 22, range(8))
print("{}")
""", path, options=FILES)
    device = find(run.profile, name_of(path))
    assert device["write_requests"] >= 8000 and device["write_mb"] >= 8000 / 256, device
    got = sum(one["read_mb"] for one in run.profile["storage_devices"])
    # Programs of a guest come from a file server.
    total = run.profile["total_disk_read_mb"] - sum(
        file["storage_read_mb"] for file in run.profile["files"] if file["path"] == "(elsewhere)")
    is_open = any("open_requests" in one for one in run.profile["storage_devices"])  # what was read ahead
    assert got <= total if is_open else got == pytest.approx(total, abs=1e-5), run.profile["storage_devices"]
    assert device["read_mb"] >= 32, device
    assert_nothing_lost(run.profile)


def test_stored_by_another(script, disk):
    """What the run wrote counts when it is stored, by whomever; what others wrote does not."""
    path, other = disk / "model", disk / "other"
    other.write_bytes(os.urandom(4 * MIB))
    run = script(BEGIN + """
with open(path, "wb") as file:
    file.write(os.urandom(24 << 20))
with qprof.scope("Stored"):
    subprocess.run(["sync", path, sys.argv[2]], check=True)
print("{}")
""", path, other, options=[*FILES, "--no-follow"])
    device = find(run.profile, name_of(path))
    # The file system adds blocks of its own where the run's task queues them.
    assert 24 <= device["write_mb"] < 26, device
    assert of_phase(device, "Stored")["write_mb"] > 0, device


def test_without_the_option(profile, disk):
    run = profile("dd", f"of={disk}/file", "if=/dev/zero", "bs=1M", "count=1", "oflag=direct")
    assert "storage_devices" not in run.profile
