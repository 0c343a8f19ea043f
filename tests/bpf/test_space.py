# SPDX-License-Identifier: GPL-2.0-only
"""How much room file systems have (--files): the least, when, and what temporary files took of it."""

import contextlib
import os
import signal
import subprocess

import pytest

from harness import MIB, assert_nothing_lost, program, run_qprof

FILES = ["--files"]
SIZE = 64

BEGIN = """
import json, mmap, os, sys, time
import qprof

root, profile = sys.argv[1:]

def left():
    found = os.statvfs(root)
    return found.f_bavail * found.f_frsize

def write(name, mib):
    with open(f"{root}/{name}", "wb") as file:
        for _ in range(mib):
            file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())

def seen(name):
    \"\"\"A mark that is in the profile: by then somebody has looked, or will do after a rest.\"\"\"
    qprof.mark(name)
    while f'"{name}"' not in open(profile).read():
        time.sleep(0.001)
"""


def make_image(path, mib=SIZE):
    with open(path, "wb") as file:
        file.truncate(mib * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,nodiscard", path], check=True)
    return path


@contextlib.contextmanager
def mounted(image, path):
    path.mkdir()
    done = subprocess.run(["mount", "-o", "loop", image, path], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device can be had: {done.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


@pytest.fixture
def volume(disk):
    """A file system of its own, on a file."""
    with mounted(make_image(disk / "image"), disk / "volume") as path:
        yield path


@contextlib.contextmanager
def ramfs(path):
    """Of a kind that is not known to answer by itself."""
    path.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ram", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


@pytest.fixture
def far(disk):
    """The same, below a file system that may be anybody's, so that a child asks."""
    with ramfs(disk / "ram") as above, mounted(make_image(disk / "image"), above / "volume") as path:
        yield path


def find(profile, path):
    found = [one for one in profile.get("file_systems", []) if one["path"] == str(path)]
    assert len(found) == 1, f"expected {path} once, got {profile.get('file_systems')}"
    return found[0]


def exact(mib):
    return round(mib * MIB)


def test_least_at_checkpoints(script, out, volume):
    """As the program has it at its lowest, also where no page was written; what was removed since took most of it."""
    run = script(BEGIN + """
write("model", 4)
before = left()
write("temporary", 24)
seen("low")
fd = os.open(f"{root}/reserved", os.O_RDWR | os.O_CREAT)
os.posix_fallocate(fd, 0, 10 << 20)
os.fsync(fd)
low = left()
for i in range(40):  # a look of a CPU that others take has none follow for a while
    seen(f"low {i}")
    time.sleep(0.05)
os.unlink(f"{root}/temporary")
seen("after")
print(json.dumps({"low": low, "before": before, "end": left()}))
""", volume, out, options=FILES)
    got = find(run.profile, volume)
    assert exact(got["least_left_mb"]) == run.truth["low"], (got, run.truth)
    assert got["least_left_phase"].startswith("low"), got
    assert exact(got["last_left_mb"]) == run.truth["end"], (got, run.truth)
    assert exact(got["first_left_mb"]) >= run.truth["before"] > run.truth["low"] + 30 * MIB, (got, run.truth)
    assert (got["storage_written_mb"], got["removed_mb"], got["removed_file_mb"]) == (28, 24, 24), got
    assert got["removed_file"] == f"{volume}/temporary", got
    assert_nothing_lost(run.profile)
    text = " ".join(run_qprof("report", "--width", "200", run.path).stdout.split())
    assert "FILE SYSTEMS SIZE LEFT LEAST AT WRITTEN REMOVED" in text, text
    assert "24.0 MiB were written to files that are removed by now, most to" in text, text
    rows = run_qprof("report", "-f", "csv", "--table", "file_systems", run.path)
    assert f'"{volume}"' in rows.stdout, rows


def test_least_between_checkpoints(script, out, volume):
    """While the program writes, it is looked at without any checkpoint; a file that was open has no name to lose."""
    run = script(BEGIN + """
fd = os.open(root, os.O_RDWR | os.O_TMPFILE)
for at in range(0, 24 << 20, 1 << 20):
    os.pwrite(fd, bytes(1 << 20), at)
os.fsync(fd)
low = left()
for _ in range(100):
    for at in range(4):
        os.pwrite(fd, bytes(1 << 20), at << 20)
    os.fsync(fd)
os.close(fd)
print(json.dumps({"low": low, "end": left()}))
""", volume, out, options=FILES)
    got = find(run.profile, volume)
    # A page that is not stored yet has a block of metadata promised.
    assert run.truth["low"] - 65536 <= exact(got["least_left_mb"]) <= run.truth["low"], (got, run.truth)
    assert exact(got["last_left_mb"]) == run.truth["end"] >= run.truth["low"] + 24 * MIB, (got, run.truth)
    assert got["removed_mb"] == got["storage_written_mb"] == 424, got


def slow(path):
    """Environment of qprof-bpf: it takes 150 ms to answer there."""
    return {"LD_PRELOAD": program("slow_statfs.so"), "SLOW_AT": str(path)}


def test_slow(script, out, far):
    """Who takes 150 ms to answer is looked at seldom, but always answers; and programs that start meanwhile are not
    taken to have nobody to wait for."""
    run = script(BEGIN + """
import subprocess

del os.environ["LD_PRELOAD"]
write("first", 1)
for _ in range(40):
    subprocess.run(["true"], check=True)
for i in range(10):
    write(f"{i}", 4)
    seen(f"seen {i}")
print(json.dumps({"end": left()}))
""", far, out, options=FILES, env=slow(far))
    got = find(run.profile, far)
    assert got["looks"] >= 2 and exact(got["last_left_mb"]) == run.truth["end"], (got, run.truth)
    assert_nothing_lost(run.profile)
    assert run.profile["quality"]["hasty_starts"] < 20, run.profile["quality"]


def test_many_that_are_slow(script, out, disk):
    """What cannot be asked, for so much was spent on asking others, is asked later."""
    with ramfs(disk / "ram") as above, contextlib.ExitStack() as stack:
        paths = [stack.enter_context(mounted(make_image(disk / f"image{i}", 8), above / f"{i}")) for i in range(5)]
        run = script(BEGIN + """
for i in range(5):
    write(f"{i}/a", 1)
seen("all are due")
""", above, out, options=FILES, env=slow(above))
    for path in paths:
        assert "last_left_mb" in find(run.profile, path), run.profile["file_systems"]
    assert_nothing_lost(run.profile)


def test_unmounted(script, out, volume):
    """What is left of it at the end is not known, and not what was seen before; and the profile says so."""
    run = script(BEGIN + """
import subprocess

write("model", 4)
seen("written")
while subprocess.run(["umount", root]).returncode:  # EBUSY while somebody looks
    time.sleep(0.01)
print(json.dumps({}))
""", volume, out, options=FILES)
    subprocess.run(["mount", "-o", "loop", volume.parent / "image", volume], check=True)
    got = find(run.profile, volume)
    assert "last_left_mb" not in got, got
    assert got["looks"] >= 1 and run.profile["quality"]["unanswered_looks"] >= 1, run.profile["quality"]
    text = " ".join(run_qprof("report", "--width", "200", run.path).stdout.split())
    assert "at a file system that it did not answer" in text, text


def test_its_device_has_another(script, disk, out):
    """Nobody knows whether files are still on a disk that was unmounted; least of all the disk that has its device now.
    In a mount namespace of its own, so that no process that begins meanwhile keeps the disk mounted."""
    root = disk / "volume"
    root.mkdir()
    run = script(BEGIN + f"""
images = "{make_image(disk / "image")}", "{make_image(disk / "other")}"
""" + """
import subprocess

subprocess.run(["mount", "-o", "loop", images[0], root], check=True)
device = next(line.split()[-2] for line in open("/proc/self/mountinfo") if line.split()[4] == root)
for i in range(3):
    write(f"result{i}", 1)
seen("written")
while subprocess.run(["umount", root]).returncode:
    time.sleep(0.01)
while os.path.exists(f"/sys/block/{os.path.basename(device)}/loop"):
    time.sleep(0.001)  # it lets go of the image by itself
subprocess.run(["mount", "-o", f"loop={device}", images[1], root], check=True)
print(json.dumps({}))
""", root, out, options=FILES, through=["unshare", "--mount"])
    assert not [file for file in run.profile["files"] if file.get("deleted")], run.profile["files"]
    assert run.profile["quality"]["unsure_removals"] == 3, run.profile["quality"]
    assert "last_left_mb" not in find(run.profile, root), run.profile["file_systems"]


def test_removed(script, volume):
    """What was removed long before the end, or replaced; and no file that got its name only after it was written."""
    run = script(BEGIN + """
import ctypes

def short(name, size=1 << 14):
    with open(f"{root}/{name}", "wb") as file:
        file.write(bytes(size))

for i in range(1000):
    short(f"shard-{i}")
for i in range(1000):
    os.unlink(f"{root}/shard-{i}")
for i in range(20):
    short("new", 1 << 16)
    os.rename(f"{root}/new", f"{root}/final")
fd = os.open(root, os.O_RDWR | os.O_TMPFILE)
os.pwrite(fd, bytes(1 << 20), 0)
AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400
assert not ctypes.CDLL(None).linkat(AT_FDCWD, f"/proc/self/fd/{fd}".encode(), AT_FDCWD, f"{root}/named".encode(),
                                    AT_SYMLINK_FOLLOW)
os.fsync(fd)
# Whose inodes take the place of those that are gone.
for i in range(4000):
    open(f"{root}/empty-{i}", "wb").close()
print(json.dumps({}))
""", volume, "", options=FILES)
    got = find(run.profile, volume)
    assert got["removed_mb"] == 1000 / 64 + 19 / 16, got
    kept = {file["path"] for file in run.profile["files"] if not file.get("deleted")}
    assert {f"{volume}/final", f"{volume}/named"} <= kept, run.profile["files"]
    assert_nothing_lost(run.profile)


def test_removed_after_it_left_the_memory(script, volume):
    """What was an inode's still has its numbers, as long as nothing else gets its place: those that are kept open
    keep the slabs, and the few that are removed get the places of others."""
    run = script(BEGIN + """
kept = []
for i in range(120):
    file = open(f"{root}/shard-{i}", "wb", buffering=0)
    file.write(bytes(1 << 16))
    os.fsync(file.fileno())
    if i % 2:
        kept.append(file)
    else:
        file.close()
os.sync()
for _ in range(4):
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")
for i in range(0, 10, 2):
    os.unlink(f"{root}/shard-{i}")
print(json.dumps({}))
""", volume, "", options=FILES)
    assert find(run.profile, volume)["removed_mb"] == 5 / 16, run.profile["file_systems"]
    deleted = {file["path"] for file in run.profile["files"] if file.get("deleted")}
    left = {f"{volume}/shard-{i}" for i in range(120) if i >= 10 or i % 2}
    assert not deleted & left, deleted & left
    assert_nothing_lost(run.profile)


def only_end(run, volume):
    found = run.profile.get("ended", [])
    assert len(found) == 1, f"expected one bad end, got {found}"
    end, left = found[0], os.statvfs(volume)
    assert (end["how"], end["refused_by"], end["file_system"]) == ("refused", "file system", str(volume)), end
    assert exact(end["file_system_size_mb"]) == left.f_blocks * left.f_frsize, end
    assert left.f_bavail * left.f_frsize <= exact(end["left_mb"]) < MIB, "for root, but for what ext4 keeps"
    return end, " ".join(run_qprof("report", "--width", "200", run.path).stdout.split())


def test_full(profile, volume):
    """What is left at the end is seen, although nobody was told of the last bytes."""
    run = profile(program("ends"), "full", "abort", volume / "model.bin", options=FILES, status=-signal.SIGABRT)
    end, text = only_end(run, volume)
    got = find(run.profile, volume)
    left = os.statvfs(volume)
    assert exact(got["least_left_mb"]) == exact(got["last_left_mb"]) == left.f_bavail * left.f_frsize, got
    assert "written_file" not in end, end
    assert f"were left of the file system at {volume} (" in text, text


def test_full_and_closed(profile, volume):
    """The process has no file open there any more: with --files it is known where it wrote last."""
    for _ in range(3):  # the last byte is to be of just now: a tenth of a second
        run = profile(program("ends"), "full_closed", "abort", volume / "model.bin", options=FILES,
                      status=-signal.SIGABRT)
        if run.profile["ended"][0]["how"] != "signal":
            break
    end, _ = only_end(run, volume)
    assert "written_file" not in end, end
    run = profile(program("ends"), "full_closed", "abort", volume / "model.bin", status=-signal.SIGABRT)
    assert [end["how"] for end in run.profile["ended"]] == ["signal"], run.profile["ended"]


def test_full_mapping(profile, volume):
    """A fault is about one file."""
    run = profile(program("ends"), "full_map", 0, volume / "model.bin", options=FILES, status=-signal.SIGBUS)
    end, text = only_end(run, volume)
    assert end["written_file"] == f"{volume}/model.bin" and f"), for {volume}/model.bin" in text, (end, text)


def test_full_and_log_open(profile, volume):
    """What is open there may be another file: then nobody knows which one had no room."""
    run = profile(program("ends"), "full_log", "abort", volume / "model.bin", options=FILES, status=-signal.SIGABRT)
    end, _ = only_end(run, volume)
    assert "written_file" not in end, end


@pytest.mark.parametrize("how", ["full_before", "full_exec"])
def test_full_but_ended_otherwise(profile, volume, how):
    """What it wrote long before its end, or before it became another program, has nothing to do with its end."""
    run = profile(program("ends"), how, "abort", volume / "model.bin", options=FILES, status=-signal.SIGABRT)
    left = os.statvfs(volume)
    assert left.f_bavail * left.f_frsize < MIB, left
    assert [end["how"] for end in run.profile["ended"]] == ["signal"], run.profile["ended"]


def test_full_in_python(script, volume):
    run = script(BEGIN + """
write("model.bin", 99)
""", volume, "", status=1)
    end, text = only_end(run, volume)
    assert end["exception"].startswith("OSError: [Errno 28]") and end["written_file"] == f"{volume}/model.bin", end
    assert f", for {volume}/model.bin" in text, text


@pytest.mark.parametrize("text,known", [
    ("""
def fail():
    log = open(f"{root}/train.log", "w")
    write("model.bin", 99)
""", False),
    ("""
class Log:
    file = open(f"{root}/train.log", "w")
def fail():
    write("model.bin", 99)
""", False),
    ("""
open(f"{root}/data", "w").close()
def fail():
    data, elsewhere = open(f"{root}/data"), open("/dev/null", "w")
    write("model.bin", 99)
""", True),
    ("""
import shutil
def fail():
    log = open(f"{root}/train.log", "w")
    with open(f"{root}/../source", "wb") as file:
        file.truncate(99 << 20)
    shutil.copyfile(f"{root}/../source", f"{root}/model.bin")
""", True),
], ids=["both held", "one open", "others read", "named"])
def test_which_file_in_python(script, volume, text, known):
    """It is said only if it can be no other."""
    run = script(BEGIN + text + """
fail()
""", volume, "", status=1)
    end, text = only_end(run, volume)
    assert end.get("written_file") == (f"{volume}/model.bin" if known else None), end
    assert (", for " in text) == known, text


def test_full_far_below(script, disk):
    """The sentence is told whole, however long its names are."""
    above = disk / ("d" * 150)
    above.mkdir()
    with mounted(make_image(disk / "image"), above / "volume") as volume:
        run = script(BEGIN + """
write("m" * 40, 99)
""", volume, "", status=1)
        end, text = only_end(run, volume)
        assert end["written_file"] == f"{volume}/{'m' * 40}", end
        assert f",for{end['written_file']}" in text.replace(" ", ""), text  # lines end within words that are too long


@pytest.fixture
def covered(volume):
    """The volume, where another file system is mounted on top of it, and where it is itself."""
    below = volume.parent / "below\n'\": {x: \\"
    below.mkdir()
    subprocess.run(["mount", "--bind", volume, below], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "other", volume], check=True)
    try:
        yield below
    finally:
        subprocess.run(["umount", volume], check=True)
        subprocess.run(["umount", below], check=True)


def test_covered(script, covered):
    """Its first mount is not what is seen there; and the name of the other is as hostile as any text."""
    run = script(BEGIN + """
write("model", 4)
print(json.dumps({"end": left()}))
""", covered, "", options=FILES)
    got = find(run.profile, covered)
    assert exact(got["last_left_mb"]) == run.truth["end"] > 8 * MIB, (got, run.truth)
    assert_nothing_lost(run.profile)


def test_without_the_option(profile, volume):
    run = profile(program("io"), "truncated", volume, 1)
    assert "file_systems" not in run.profile, run.profile["file_systems"]
