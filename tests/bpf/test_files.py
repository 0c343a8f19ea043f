# SPDX-License-Identifier: GPL-2.0-only
"""Which files storage is used for (--files): named, exact by phase, and nothing left out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import groups
from harness import MIB, assert_nothing_lost, losses, parse, profile_command, program, run_qprof, wait_for

FILES = ["--files"]
SIZE = 16
READ, WRITTEN, DISTINCT = "storage_read_mb", "storage_written_mb", "distinct_mb"
CALLS = "call_read_mb"

# What scripts begin with.
BEGIN = """
import mmap, os, sys
import qprof

def drop(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)

def read(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass

paths = sys.argv[1:]
"""


def cold_file(path, mib):
    """A file none of whose pages is in memory."""
    with open(path, "wb") as file:
        file.write(os.urandom(MIB) * mib)
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def find(profile, path):
    found = [file for file in profile["files"] if file["path"] == str(path)]
    assert len(found) == 1, f"expected {path!r} once, got {json.dumps(profile['files'], indent=1)}"
    return found[0]


def of_phase(file, name):
    found = [use for use in file.get("phases", []) if use["name"] == name]
    assert len(found) <= 1, f"expected {name!r} once, got {file}"
    return found[0] if found else {READ: 0, WRITTEN: 0}


def is_served():
    """Whether programs come from a file server, as in a guest: then there are no requests for them."""
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    return any(mount.split()[1:3] == ["/", "9p"] for mount in mounts)


def check_sums(profile):
    """Files and what is none add up to the kernel's own account, to the byte."""
    for key, total in ((READ, "total_disk_read_mb"), (WRITTEN, "total_disk_write_mb"), (CALLS, "total_io_read_mb")):
        got = sum(round(file.get(key, 0) * MIB) for file in profile["files"])
        assert got == round(profile[total] * MIB), (
            f"{key}: {got} of {round(profile[total] * MIB)} bytes: {json.dumps(profile['files'], indent=1)}")
    unseen = [file for file in profile["files"] if file["path"] == "(elsewhere)" and file[READ] + file[WRITTEN]]
    assert not unseen or is_served(), f"uses of storage that nobody saw: {unseen}"
    assert_nothing_lost(profile)


def check(file, **expected):
    got = {key: file.get(key) for key in expected}
    assert got == expected, f"expected {expected}, got {file}"


@pytest.mark.parametrize("case", ["cold", "mmap_write", "direct_write", "truncated", "uring_cold", "children"])
def test_sums(profile, disk, case):
    """What the kernel's account has is of files that are named, whichever way it came."""
    run = profile(program("io"), case, disk, SIZE, options=FILES)
    if run.truth.get("missing"):
        pytest.skip(f"this kernel has no {case}")
    check_sums(run.profile)
    own = [file for file in run.profile["files"] if file["path"].startswith(f"{disk}/")]
    # The kernel's account may have blocks of the file system's own as well: they are in another line.
    for key, bytes_ in ((READ, min(run.truth["kernel_read_bytes"], run.truth["disk_read"])), (WRITTEN, run.truth["disk_written"])):
        got = sum(file[key] for file in own)
        assert got * MIB >= bytes_, f"{key} of {case}: expected {bytes_ / MIB} MiB in {disk}, got {got}: {own}"


def undisturbed(run, path, mib):
    """run(), again while it has read more: a machine may page out what is cold (DAMON does), and then it is read again."""
    for _ in range(3):
        done = run()
        if find(done.profile, path)[READ] <= mib:
            break
    return done


def test_read_again(script, disk):
    """Twice with the page cache dropped between: 2.00 times, and each phase has its part."""
    path = disk / "model.safetensors"
    run = undisturbed(lambda: script(BEGIN + """
for name in ("first", "second", "cached"):
    with qprof.scope(name):
        read(paths[0])
    if name == "first":
        drop(paths[0])
""", cold_file(path, SIZE), options=FILES), path, 2 * SIZE)
    file = find(run.profile, path)
    check(file, size_mb=SIZE, reread_factor=2.0, **{READ: 2 * SIZE, DISTINCT: SIZE, WRITTEN: 0})
    got = {name: of_phase(file, name)[READ] for name in ("first", "second", "cached")}
    assert got == {"first": SIZE, "second": SIZE, "cached": 0}, file
    check_sums(run.profile)
    report = run_qprof("report", run.path)
    assert "32.0 MiB from storage for 16.0 MiB of it, 2.0 times" in " ".join(report.stdout.split()), report
    rows = run_qprof("report", "-f", "csv", "--table", "files", run.path)
    assert f'"{path}"' in rows.stdout, rows


def test_read_by_calls(script, disk):
    """What read calls returned is of the file, the page cache's too: by phase, with pipes and /proc as the rest. What
    is mapped, spliced or written is no read call's, whatever it is of."""
    paths = [disk / name for name in ("warm", "cold", "into")]
    memory = Path("/dev/shm") / f"qprof-{os.getpid()}"
    for path in (paths[0], memory):
        path.write_bytes(os.urandom(MIB) * SIZE)
    cold_file(paths[1], SIZE)
    try:
        run = script(BEGIN + """
import array, ctypes
warm, cold, into, memory = paths
libc = ctypes.CDLL(None)
with qprof.scope("calls"):
    for _ in range(3):
        read(warm)
    fd = os.open(warm, os.O_RDONLY)
    assert os.pread(fd, 1000, 1 << 20) and os.preadv(fd, [bytearray(500), bytearray(500)], 0) == 1000
    assert os.read(fd, 1 << 30) and os.read(fd, 10) == b""
with qprof.scope("copies"):
    to = os.open(into, os.O_CREAT | os.O_RDWR)
    assert os.sendfile(to, fd, 0, 1 << 20) == 1 << 20
    assert os.copy_file_range(fd, to, 65536, 0, 1 << 20) == 65536  # overlayfs tells the account twice
with qprof.scope("cold"):
    read(cold)
with qprof.scope("memory"):
    read(memory)
with qprof.scope("others"):
    near, far = os.pipe()
    os.write(far, bytes(60000))
    os.read(near, 60000)
    os.splice(fd, far, 4096, offset_src=0)
    with open("/proc/self/maps", "rb") as file:
        file.read()
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as mapping:
        sum(mapping[::4096])
""", *paths, memory, options=FILES)
    finally:
        memory.unlink()
    expected = {paths[0]: {"calls": 4 * SIZE * MIB + 2000, "copies": MIB + 65536}, paths[1]: {"cold": SIZE * MIB},
                memory: {"memory": SIZE * MIB}, paths[2]: {}}
    for path, phases in expected.items():
        file = find(run.profile, path)
        got = {use["name"]: round(use[CALLS] * MIB) for use in file.get("phases", []) if use[CALLS]}
        assert got == phases, f"{path}: expected {phases}, got {file}"
        assert round(file.get(CALLS, 0) * MIB) == sum(phases.values()), file
    assert find(run.profile, paths[1])[READ] == SIZE and READ in find(run.profile, memory)
    rest = find(run.profile, "(elsewhere)")
    assert 60000 <= rest[CALLS] * MIB < 1 * MIB, f"the pipe and /proc: {rest}"
    check_sums(run.profile)


def sums_at(file, secs):
    """What the file's timeline says of the sums then, as columns: its last row by then."""
    table = file["timeline"]
    rows = [row for row in table["rows"] if row[0] <= secs]
    return dict(zip(table["columns"], rows[-1])) if rows else dict.fromkeys(table["columns"], 0)


def test_over_time(script, disk):
    """A file's timeline has exact sums where phases begin and end, and where the file is used first in each step."""
    cold, warm = cold_file(disk / "cold", SIZE), disk / "warm"
    warm.write_bytes(os.urandom(4 * MIB))
    run = script(BEGIN + """
cold, warm, into = paths
with qprof.scope("before"):
    pass
with qprof.scope("first"):
    fd = os.open(cold, os.O_RDONLY | os.O_DIRECT)
    room = mmap.mmap(-1, 1 << 20)
    for at in range(3):
        assert os.preadv(fd, [room], at << 20) == 1 << 20
    read(warm)
with qprof.scope("between"), open(into, "wb", buffering=0) as file:
    file.write(bytes(4096 * 1025))
with qprof.scope("second"):
    for at in range(8):
        assert os.preadv(fd, [room], at << 20) == 1 << 20
""", cold, warm, disk / "into", options=FILES)
    files = {path.name: find(run.profile, path) for path in (cold, warm, disk / "into")}
    expected = {"before": (0, 0, 0), "first": (3 * MIB, 4 * MIB, 0), "between": (3 * MIB, 4 * MIB, 4096 * 1025),
                "second": (11 * MIB, 4 * MIB, 4096 * 1025)}
    for phase in run.profile["phases"]:
        end = phase["start_secs"] + phase["duration_secs"] + 2e-6  # both are rounded
        got = tuple(round(sums_at(files[name], end)[key] * MIB)
                    for name, key in (("cold", READ), ("warm", CALLS), ("into", WRITTEN)))
        assert got == expected[phase["name"]], f"{phase['name']} ends at {end}: {got} in {json.dumps(files, indent=1)}"
    for file in files.values():
        rows = file["timeline"]["rows"]
        assert rows == sorted(rows) and rows[0][1:] == [0, 0, 0], f"they rise from 0: {file}"
        assert rows[-1][1:] == [file[READ], file[WRITTEN], file[CALLS]], f"the last is the whole: {file}"
        assert rows[-1][0] == pytest.approx(run.profile["memory_usage"][-1]["relative_time_secs"]), file
    first, = [phase for phase in run.profile["phases"] if phase["name"] == "first"]
    assert first["start_secs"] <= files["cold"]["timeline"]["rows"][0][0] <= first["start_secs"] + first["duration_secs"]
    long = [file for file in run.profile["files"] if "timeline" in file]
    assert 3 <= len(long) <= 16 and not [file for file in long if file.get("no_file")], long
    check_sums(run.profile)


def read_so_far(pid):
    """rchar, in bytes."""
    return int(Path(f"/proc/{pid}/io").read_text(encoding="ascii").split()[1])


def test_a_reader_that_outlives_the_run(attach, disk):
    """What it reads after the end is in no figure."""
    path = disk / "model"
    path.write_bytes(os.urandom(MIB))
    loop = "import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\nwhile True: os.pread(fd, 1 << 20, 0)"
    with subprocess.Popen([sys.executable, "-c", loop, path]) as reader:
        try:
            with attach(reader.pid, options=FILES) as attached:
                before = read_so_far(reader.pid)
                wait_for(lambda: read_so_far(reader.pid) > before + 64 * MIB, "it reads")
                profile = attached.stop()
        finally:
            reader.kill()
    check_sums(profile)
    assert find(profile, path)[CALLS] >= 64


def test_no_file_was_read(tmp_path, out):
    """Of a static program that reads a pipe, the sum is the account's, too."""
    source = "#include <unistd.h>\nint main(void) { char b[4096]; int p[2]; return pipe(p) || write(p[1], b, 4096) != 4096 ||" \
             " read(p[0], b, 4096) != 4096; }"
    path = tmp_path / "reads_a_pipe"
    subprocess.run(["gcc", "-static", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
    run = profile_command(out, path, options=FILES)
    check_sums(run.profile)
    assert find(run.profile, "(elsewhere)")[CALLS] * MIB >= 4095
    assert not [file for file in run.profile["files"] if CALLS not in file]


@pytest.mark.parametrize("sizes", [(4096,), (10, 4096, 65536)], ids=str)
def test_threads_that_read(script, disk, sizes):
    """Of four threads, each a file of its own and all one, with marks between: nothing is lost, or counted twice."""
    shared, *own = paths = [disk / str(i) for i in range(5)]
    for path in paths:
        path.write_bytes(os.urandom(MIB))
    run = script(BEGIN + f"""
import threading
def work(path):
    a, b = os.open(path, os.O_RDONLY), os.open(paths[0], os.O_RDONLY)
    for i in range(2000):
        for size in {sizes}:
            assert os.pread(a, size, 0) and os.pread(b, size, size)
        if i % 100 == 0:
            qprof.mark("step")
threads = [threading.Thread(target=work, args=(path,)) for path in paths[1:]]
for thread in threads: thread.start()
for thread in threads: thread.join()
""", *paths, options=FILES)
    got = {path: round(find(run.profile, path)[CALLS] * MIB) for path in paths}
    assert got == {path: 2000 * sum(sizes) for path in own} | {shared: 8000 * sum(sizes)}
    check_sums(run.profile)


def test_mapped_and_direct(script, disk):
    """A mapping's pages count as they are read; so do direct reads, at their place in the file."""
    mapped, direct = disk / "mapped", cold_file(disk / "direct", SIZE)
    run = undisturbed(lambda: script(BEGIN + """
with qprof.scope("mapped"), open(paths[0], "rb") as file:
    memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    sum(memory[i] for i in range(0, len(memory), 4096))
with qprof.scope("direct"):
    fd = os.open(paths[1], os.O_RDONLY | os.O_DIRECT)
    room = mmap.mmap(-1, 1 << 20)
    for at in (0, 1, 2, 3, 3, 3):
        assert os.preadv(fd, [room], at << 20) == 1 << 20
""", cold_file(mapped, SIZE), direct, options=FILES), mapped, SIZE)
    check(find(run.profile, mapped), reread_factor=1.0, **{READ: SIZE, DISTINCT: SIZE})
    check(find(run.profile, direct), reread_factor=1.5, **{READ: 6, DISTINCT: 4})
    assert of_phase(find(run.profile, mapped), "mapped")[READ] == SIZE
    assert of_phase(find(run.profile, direct), "direct")[READ] == 6
    check_sums(run.profile)


@pytest.mark.parametrize("size", [SIZE, pytest.param(1024, marks=pytest.mark.long)])
def test_mapped_again(script, disk, size):
    """A mapping whose pages had to go is read again: 2.00 times, as its phases say."""
    path = cold_file(disk / "model.safetensors", size)
    run = undisturbed(lambda: script(BEGIN + """
for name in ("first", "second"):
    with qprof.scope(name), open(paths[0], "rb") as file, \\
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        assert len({memory[i] for i in range(0, len(memory), 4096)}) > 1
    drop(paths[0])
""", path, options=FILES), path, 2 * size)
    file = find(run.profile, path)
    check(file, size_mb=size, reread_factor=2.0, **{READ: 2 * size, DISTINCT: size, WRITTEN: 0})
    assert [of_phase(file, name)[READ] for name in ("first", "second")] == [size, size], file
    check_sums(run.profile)


def test_more_than_memory_holds(script, disk):
    """Files in turn under a limit that not all fit in: each has what the kernel's account grew by as it was read."""
    weights = disk / "weights"
    weights.mkdir()
    for i in range(100):
        cold_file(weights / f"f{i}", 1)
    with groups.cgroup("memory", {"memory.limit_in_bytes": str(48 * MIB)}, {"memory.max": str(48 * MIB)}) as procs:
        run = script(BEGIN + """
import json

def account():
    with open("/proc/self/io") as file:
        return int(file.read().split("read_bytes: ")[1].split()[0])

with open(paths[1], "w") as procs:
    procs.write(str(os.getpid()))
truth = {}
for turn in range(3):
    with qprof.scope(f"Turn {turn}"):
        for i in range(100):
            before = account()
            read(f"{paths[0]}/f{i}")
            truth[f"f{i}"] = truth.get(f"f{i}", 0) + account() - before
print(json.dumps(truth))
""", weights, procs, options=FILES)
    files = {name: find(run.profile, weights / name) for name in run.truth}
    got = {name: round(file[READ] * MIB) for name, file in files.items()}
    # Between two files only the program's own code may be read again.
    wrong = {name: (got[name], bytes_) for name, bytes_ in run.truth.items() if abs(got[name] - bytes_) > bytes_ / 100}
    assert not wrong, f"bytes by file, and by the kernel's account: {wrong}"
    assert sum(got.values()) > 250 * MIB, f"the limit made none be read again: {sum(got.values()) / MIB} MiB"
    factors = {name: file["reread_factor"] for name, file in files.items()}
    assert factors == {name: pytest.approx(got[name] / MIB, abs=0.0051) for name in got}, factors
    check_sums(run.profile)


@pytest.fixture
def overlays(disk):
    """Two mounts of one directory, each as a layer of its own overlay."""
    lower, mounts = disk / "lower", [disk / "a", disk / "b"]
    for path in (lower, disk / "empty", *mounts):
        path.mkdir()
    made = []
    try:
        for path in mounts:
            done = subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={lower}:{disk}/empty", "overlay", path],
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"no overlay can be had: {done.stderr.strip()}")
            made.append(path)
        yield lower, mounts
    finally:
        for path in made:
            subprocess.run(["umount", path], check=True)


def test_overlays(script, overlays):
    """One file through two overlays is one line, as the file in the layer that has it."""
    lower, mounts = overlays
    path = cold_file(lower / "model", 4)
    run = script(BEGIN + """
for mount in paths[1:]:
    read(f"{mount}/model")
    drop(paths[0])
""", path, *mounts, options=FILES)
    check(find(run.profile, path), reread_factor=2.0, **{READ: 8, DISTINCT: 4, CALLS: 8})
    others = [file["path"] for file in run.profile["files"] if file["path"].endswith("/model") and file["path"] != str(path)]
    assert not others, f"the same file again: {others}"
    check_sums(run.profile)


@pytest.fixture
def device(disk):
    """A disk of 4 MiB, of a file."""
    path = disk / "image"
    path.write_bytes(os.urandom(4 * MIB))
    done = subprocess.run(["losetup", "--find", "--show", path], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device can be had: {done.stderr.strip()}")
    yield done.stdout.strip()
    subprocess.run(["losetup", "-d", done.stdout.strip()], check=True)


def test_direct_from_and_into_shared_memory(script, device):
    """The buffer is a page of a file for the kernel, too: that is not what was read, or written."""
    run = script(BEGIN + """
shared = mmap.mmap(-1, 2 << 20)
shared.write(bytes(2 << 20))
fd = os.open(paths[0], os.O_RDWR | os.O_DIRECT)
os.preadv(fd, [shared], 0)
os.pwritev(fd, [memoryview(shared)[:1 << 20]], 2 << 20)
""", device, options=FILES)
    named = [file for file in run.profile["files"] if not file.get("no_file") and "dev" in file["path"]]
    assert not named, named
    direct = find(run.profile, "(direct)")
    assert (direct[READ], direct[WRITTEN]) == (2, 1), direct


def test_names(script, disk):
    """The last name; deleted files; one of two links; line breaks in a path of many parts."""
    odd = disk / "a\nb"
    for _ in range(15):
        odd = odd / ("d" * 200)
    odd.mkdir(parents=True)
    linked = cold_file(disk / "linked", 1)
    os.link(linked, disk / "another")
    run = script(BEGIN + """
def write(path, mib):
    with open(path, "wb") as file:
        file.write(b"x" * (mib << 20))
        file.flush()
        os.fsync(file.fileno())

write("model.tmp", 3)
os.rename("model.tmp", "model.bin")
with open("gone", "wb") as file:
    file.write(b"x" * (1 << 20))
    file.flush()
    os.unlink("gone")
    file.write(b"x" * (1 << 20))
    file.flush()
    read("linked")
    read("another")
write(paths[0] + "/weights", 4)
write("line\\nbreak", 5)
""", odd, options=FILES, cwd=disk)
    check(find(run.profile, disk / "model.bin"), **{WRITTEN: 3, READ: 0})
    assert not [file for file in run.profile["files"] if "model.tmp" in file["path"]]
    check(find(run.profile, disk / "gone"), deleted=True, **{WRITTEN: 2})
    check(find(run.profile, "..." + str(odd / "weights")[-5 * 201 - len("/weights"):]), **{WRITTEN: 4})
    check(find(run.profile, disk / "line\nbreak"), **{WRITTEN: 5})
    links = [file for file in run.profile["files"] if file["path"] in (f"{disk}/linked", f"{disk}/another")]
    assert len(links) == 1 and links[0][READ] == 1, f"two names of one file: {links}"
    check_sums(run.profile)


def test_too_many(script, disk):
    """Files beyond the bound are one line, counted, and no byte is lost; names without directories."""
    for i in range(40):
        cold_file(disk / f"f{i}", 1)
    run = script(BEGIN + """
for path in os.listdir("."):
    read(path)
""", options=[*FILES, "--max-files", "10", "--no-paths"], cwd=disk)
    named = [file for file in run.profile["files"] if not file.get("no_file")]
    assert len(named) == 10, f"expected 10 files, got {len(named)}"
    assert all("/" not in file["path"] for file in named), named
    other = find(run.profile, "(other)")
    assert other["no_file"] and other[READ] >= 30, other
    beyond = losses(run.profile)
    assert set(beyond) == {"unnamed_file_uses"} and beyond["unnamed_file_uses"] >= 30, beyond
    run.profile["quality"]["unnamed_file_uses"] = 0
    check_sums(run.profile)


def test_more_than_the_ring_holds(script, disk):
    """Thousands of long paths that all change at the end: each is told, whatever the ring has room for."""
    parts = disk / "before"
    for _ in range(11):
        parts = parts / ("d" * 240)
    parts.mkdir(parents=True)
    run = script(BEGIN + """
os.chdir(paths[0])
for i in range(5000):
    with open(str(i), "wb") as file:
        file.write(b"x")
os.rename(paths[1] + "/before", paths[1] + "/after")
""", parts, disk, options=[*FILES, "--max-files", "6000"])
    own = [file for file in run.profile["files"] if not file.get("no_file") and "ddd/" in file["path"]]
    assert len(own) > 900, f"expected most of 1,000 files by name, got {len(own)}: {run.profile['files'][-5:]}"
    other = find(run.profile, "(other)")
    assert other[WRITTEN] * 256 >= 4000, other
    check_sums(run.profile)


@pytest.mark.long
def test_a_hundred_thousand(script, disk):
    """Bounded and counted, and no byte is lost."""
    run = script(BEGIN + """
os.chdir(paths[0])
for i in range(100000):
    with open(str(i), "wb") as file:
        file.write(b"x")
""", disk, options=FILES)
    named = [file for file in run.profile["files"] if not file.get("no_file")]
    assert len(named) == 1000, f"those with the most: {len(named)}"
    beyond = losses(run.profile)
    assert set(beyond) == {"unnamed_file_uses"} and beyond["unnamed_file_uses"] >= 100000 - 4096, beyond
    assert find(run.profile, "(other)")[WRITTEN] * 256 >= 99000, find(run.profile, "(other)")
    run.profile["quality"]["unnamed_file_uses"] = 0
    check_sums(run.profile)


@pytest.mark.parametrize("last", ["model.tmp", "model.bin"])
def test_mounts_of_a_container(out, disk, last):
    """
    Names are what the process saw that is gone by now, the last one too: not what we see. Again if the machine was
    so busy that its mounts were gone before we read them: then it is what we see.
    """
    inside = disk / "inside"
    inside.mkdir()
    (disk / "seen").mkdir()
    command = (f"mount --bind {inside} {disk}/seen && cd {disk}/seen && "
               f"head -c 1048576 /dev/zero > model.tmp && sync model.tmp && mv -f model.tmp {last}.x && mv {last}.x {last}")
    for _ in range(4):
        run = profile_command(out, "unshare", "-m", "sh", "-ec", command, options=FILES)
        if any("seen" in file["path"] for file in run.profile["files"]):
            break
        (inside / last).unlink()
    check(find(run.profile, disk / "seen" / last), size_mb=1, **{WRITTEN: 1})
    assert not [file for file in run.profile["files"] if "inside" in file["path"]], run.profile["files"]


def test_without_the_option(profile, out, disk):
    """Nothing of it is there."""
    profile(program("io"), "cold", disk, 1)
    assert "files" not in parse(out)
