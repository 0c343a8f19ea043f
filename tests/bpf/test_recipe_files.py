# SPDX-License-Identifier: GPL-2.0-only
"""Items that are files: a phase from the first read or write of a file to the last."""

import re
import sys

import pytest

from harness import assert_nothing_lost, losses, program, quality

MIB = 1 << 20
SIZE = 4 * MIB
PYTHON = "/usr/bin/python3"
RECIPE = """
name: files
match: {executable: "python*"}
beside: yes
checkpoints:
- file: ["*.gguf", "*.safetensors", "*.onnx*"]
  phase: "{read|write} {basename}"
"""
# What scripts use. cold(): nothing of the file is in the page cache any more.
HEAD = f"""
import mmap, os, sys
MIB, SIZE, R, W = {MIB}, {SIZE}, os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC
os.chdir(sys.argv[1])

def make(name, size=SIZE):
    with open("being_made", "wb") as f:
        f.write(b"x" * size)
    os.rename("being_made", name)

def cold(name):
    fd = os.open(name, R)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)

def read(fd, size=SIZE):
    while size > 0:
        size -= len(os.read(fd, MIB))

def touch(block):
    return sum(block[at] for at in range(0, len(block), mmap.PAGESIZE))
"""


@pytest.fixture
def files(profile, disk, tmp_path):
    """files(script): runs it in a directory on a disk. Returns the run; its profile has no losses."""
    def run(script, recipe=RECIPE, lost=(), more=(), **kwargs):
        path, rules = tmp_path / "script.py", tmp_path / "recipe.yaml"
        path.write_text(HEAD + script)
        rules.write_text(recipe or "")
        options = ["--recipe", "none", "--recipe", rules, *more] if recipe else []
        done = profile(PYTHON, path, disk, options=options, **kwargs)
        if lost:
            assert set(losses(done.profile)) == set(lost), losses(done.profile)
        else:
            assert_nothing_lost(done.profile)
        return done.profile
    return run


def names(profile):
    return [p["name"] for p in profile["phases"]]


def only(profile, expected):
    assert names(profile) == [expected], f"expected one phase, '{expected}', got {names(profile)}"
    phase = profile["phases"][0]
    assert phase.get("closed", True), phase
    return phase


def of_name(profile, name):
    phases = [p for p in profile["phases"] if p["name"] == name]
    assert len(phases) == 1, f"expected one phase '{name}', got {names(profile)}"
    return phases[0]


def end_secs(phase):
    return phase["start_secs"] + phase["duration_secs"]


def matched(profile):
    return [item["matched"] for recipe in profile["recipes"] for item in recipe["checkpoints"]]


READS = {
    "read": "read(fd)",
    "pread": "[os.pread(fd, MIB, at) for at in range(0, SIZE, MIB)]",
    "readv": "os.readv(fd, [bytearray(SIZE)])",
    "preadv": "os.preadv(fd, [bytearray(SIZE)], 0)",
    "sendfile": "os.sendfile(out, fd, 0, SIZE)",
    "copy_file_range": "os.copy_file_range(fd, out, SIZE)",
}


@pytest.mark.parametrize("how", READS)
def test_a_file_that_is_read(files, how):
    profile = files(f"""
make("m.gguf")
cold("m.gguf")
out = os.open("copy", W)
fd = os.open("m.gguf", R)
{READS[how]}
os.close(fd)
""")
    phase = only(profile, "read m.gguf")
    assert phase["io_read_mb"] == 4, f"{how}: expected all 4 MiB through calls, got {phase}"
    assert 4 <= phase["disk_read_mb"] < 4.2, f"{how}: expected all 4 MiB from storage, got {phase}"
    assert matched(profile) == [1]


WRITES = {
    "write": "os.write(fd, data)",
    "pwrite": "os.pwrite(fd, data, 0)",
    "writev": "os.writev(fd, [data])",
    "pwritev": "os.pwritev(fd, [data], 0)",
    "sendfile": "os.sendfile(fd, source, 0, SIZE)",
    "copy_file_range": "os.copy_file_range(source, fd, SIZE)",
}


@pytest.mark.parametrize("how", WRITES)
def test_a_file_that_is_written(files, how):
    profile = files(f"""
make("source")
source, data = os.open("source", R), b"x" * SIZE
fd = os.open("q.safetensors", W)
{WRITES[how]}
os.close(fd)
""")
    phase = only(profile, "write q.safetensors")
    assert phase["io_write_mb"] == 4, f"{how}: expected all 4 MiB, got {phase}"


@pytest.fixture
def requests(profile, disk, tmp_path):
    """requests(how): the profile of tests/programs/requests.c, which moves a file of 1 MiB by requests."""
    def run(how, lost=()):
        recipe = tmp_path / "recipe.yaml"
        recipe.write_text(RECIPE.replace("python*", "requests").replace('"*.gguf"', '"*.gguf*"'))
        for name in ("m.gguf", "m.gguf.2"):
            (disk / name).write_bytes(b"x" * MIB)
        done = profile(program("requests"), how, disk / "m.gguf",
                       options=["--recipe", "none", "--recipe", recipe])
        assert set(losses(done.profile)) == set(lost), losses(done.profile)
        return done.profile
    return run


@pytest.mark.parametrize("how", ["read", "readv", "fixed", "worker", "splice", "opens", "skips"])
def test_a_file_that_is_read_by_io_uring(requests, how):
    """It ends as it is closed, 100 ms before the process does."""
    profile = requests(how)
    phase = only(profile, "read m.gguf")
    moved = 2 if how in ("fixed", "splice") else 1  # twice; from the file, and from the pipe
    assert phase["io_read_mb"] == moved, f"{how}: expected {moved} MiB, got {phase}"
    end = profile["memory_usage"][-1]["relative_time_secs"]
    assert end - end_secs(phase) >= 0.099, f"{how}: expected its end as it was closed, before {end}: {phase}"


def test_a_file_that_is_written_by_io_uring(requests):
    assert only(requests("write"), "write m.gguf")["io_write_mb"] == 1


def test_a_registered_file_whose_descriptor_is_closed_is_counted(requests):
    """Once, although it is read twice: nobody is told when it goes."""
    profile = requests("registered", lost=["unwatched_files"])
    assert names(profile) == [] and quality(profile)["unwatched_files"] == 1, quality(profile)


@pytest.mark.parametrize("how, expected", [
    ("aio-read", ["read m.gguf"]), ("aio-write", ["write m.gguf"]),
    ("aio-both", ["read m.gguf", "read m.gguf.2"])])
def test_files_that_are_used_by_native_aio(requests, how, expected):
    profile = requests(how)
    assert names(profile) == expected and all(p.get("closed", True) for p in profile["phases"]), profile["phases"]


def test_a_mapping_is_read_until_it_is_unmapped(files):
    """As safetensors does: the file is closed as soon as it is mapped."""
    profile = files("""
make("m.safetensors")
cold("m.safetensors")
fd = os.open("m.safetensors", R)
os.read(fd, 8)
block = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
os.close(fd)
touch(block)
block.close()
make("later")
""")
    phase = only(profile, "read m.safetensors")
    assert 4 <= phase["disk_read_mb"] < 4.2, f"expected 4 MiB that page faults read, got {phase}"
    assert phase["io_write_mb"] == 0, f"expected its end before the next file is written, got {phase}"


def test_a_part_of_a_mapping_is_unmapped(files):
    """As llama.cpp does, which unmaps the head of a model once that is loaded."""
    profile = files("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
make("m.gguf")
fd = os.open("m.gguf", R)
at = libc.mmap(None, SIZE, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
assert libc.munmap(at, MIB) == 0
os.close(fd)
assert libc.munmap(at + SIZE - MIB, MIB) == 0
make("while_mapped", MIB)
assert libc.munmap(at + MIB, SIZE - 2 * MIB) == 0
make("later", MIB)
""")
    phase = only(profile, "read m.gguf")
    assert phase["io_write_mb"] == 1, f"expected it to end with the last part, got {phase}"


def test_shards_that_stay_mapped_follow_each_other(files):
    """As a model of several files is loaded: the tensors of all stay where they are mapped."""
    profile = files("""
shards = [f"model-{i}-of-5.safetensors" for i in range(1, 6)]
for shard in shards:
    make(shard, MIB)
kept = []
for shard in shards:
    with open(shard, "rb") as f:
        kept.append(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ))
    os.close(os.dup(1))
    touch(kept[-1])
""")
    assert names(profile) == [f"read model-{i}-of-5.safetensors" for i in range(1, 6)]


SHARDS = """
for i in range(1, 6):
    make(f"model-{i}-of-5.safetensors", MIB)
    cold(f"model-{i}-of-5.safetensors")
for i in range(1, 6):
    fd = os.open(f"model-{i}-of-5.safetensors", R)
    read(fd, MIB)
    os.close(fd)
"""


def test_shards_one_after_the_other(files):
    phases = files(SHARDS)["phases"]
    assert [p["name"] for p in phases] == [f"read model-{i}-of-5.safetensors" for i in range(1, 6)]
    for before, after in zip(phases, phases[1:]):
        assert end_secs(before) <= after["start_secs"] + 1e-6, f"{before} overlaps {after}"
    for phase in phases:
        assert phase["depth"] == 0 and phase["io_read_mb"] == 1, phase
        assert 1 <= phase["disk_read_mb"] < 1.2, phase


def test_reading_while_writing(files):
    """As a quantizer does: 4 MiB in, 2 out, in steps."""
    profile = files("""
make("m.safetensors")
source, out = os.open("m.safetensors", R), os.open("q.gguf", W)
for step in range(4):
    read(source, MIB)
    os.write(out, b"q" * (MIB // 2))
os.close(out)
os.close(source)
""")
    assert names(profile) == ["read m.safetensors", "write q.gguf"]
    source, out = profile["phases"]
    assert (source["io_read_mb"], source["io_write_mb"]) == (4, 2), source
    assert (out["io_read_mb"], out["io_write_mb"]) == (3, 2), f"from the first write on: {out}"


def test_a_model_of_a_cache_has_the_name_it_was_opened_by(files):
    """huggingface_hub keeps files by their hash, and links to them."""
    profile = files("""
os.mkdir("blobs")
make("blobs/0a1b2c")
os.symlink("blobs/0a1b2c", "model.safetensors")
fd = os.open("model.safetensors", R)
read(fd)
os.close(fd)
""")
    assert only(profile, "read model.safetensors")["io_read_mb"] == 4


def test_a_duplicate_goes_on_with_the_file(files):
    """As numpy does, which reads and writes arrays by a duplicate of the descriptor."""
    profile = files("""
make("m.gguf")
fd = os.open("m.gguf", R)
read(fd, MIB)
other = os.dup(fd)
os.close(fd)
read(other, SIZE - MIB)
os.close(other)
""")
    assert only(profile, "read m.gguf")["io_read_mb"] == 4


def test_a_file_that_is_opened_for_each_tensor_is_one_phase(files):
    """As onnx does with external data."""
    profile = files("""
make("m.onnx.data")
for at in range(0, SIZE, MIB):
    with open("m.onnx.data", "rb", buffering=0) as f:
        f.seek(at)
        f.read(MIB)
""")
    assert only(profile, "read m.onnx.data")["io_read_mb"] == 4


def test_two_files_of_one_name_at_once(files):
    """Each phase ends with its own file: the one that was begun first ends first."""
    profile = files("""
for directory in "ab":
    os.mkdir(directory)
    make(directory + "/m.gguf")
a, b = os.open("a/m.gguf", R), os.open("b/m.gguf", R)
read(a, MIB)
read(b, MIB)
read(a, 3 * MIB)
os.close(a)
read(b, 2 * MIB)
os.close(b)
""")
    assert names(profile) == ["read m.gguf"] * 2
    first, second = profile["phases"]
    assert [p["io_read_mb"] for p in (first, second)] == [5, 6], f"expected 5 and 6 MiB, got {first}, {second}"
    assert end_secs(first) < end_secs(second), "expected the first to end first"


def test_two_files_of_one_name_in_turn(files):
    """The second is no second opening of the first."""
    profile = files("""
for directory in "ab":
    os.mkdir(directory)
    make(directory + "/m.gguf")
for directory in "ab":
    fd = os.open(directory + "/m.gguf", R)
    read(fd)
    os.close(fd)
""")
    assert names(profile) == ["read m.gguf"] * 2
    assert [p["io_read_mb"] for p in profile["phases"]] == [4, 4], profile["phases"]


def test_a_later_use_is_another_phase(files):
    profile = files("""
import time
make("m.gguf")
for use in range(2):
    fd = os.open("m.gguf", R)
    read(fd)
    os.close(fd)
    time.sleep(0.1)
""")
    assert names(profile) == ["read m.gguf"] * 2, names(profile)
    assert [p["io_read_mb"] for p in profile["phases"]] == [4, 4]


def test_both_directions(files):
    profile = files("""
make("m.gguf")
fd = os.open("m.gguf", os.O_RDWR)
read(fd)
os.pwrite(fd, b"x" * MIB, 0)
os.close(fd)
""")
    assert sorted(names(profile)) == ["read m.gguf", "write m.gguf"]


def test_other_files_and_directories_are_none(files):
    profile = files("""
make("m.txt")
os.mkdir("d.gguf")
os.close(os.open("d.gguf", R))
make("opened.gguf")
os.close(os.open("opened.gguf", R))
fd = os.open("m.txt", R)
read(fd)
try:
    os.open("missing.gguf", R)
except FileNotFoundError:
    read(os.open("m.txt", R))
""")
    assert names(profile) == [] and "recipes" not in profile


def test_a_name_of_any_bytes(files):
    profile = files(r"""
name = b"\xff\n\x1b[31m'\": %s.gguf" % (b"n" * 200)
with open(name, "wb") as f:
    f.write(b"x" * MIB)
""")
    found = names(profile)
    assert len(found) == 1 and re.fullmatch("(?s)write \ufffd\n.*n.gguf", found[0]), found


def test_a_descriptor_that_was_replaced_is_not_taken_for_it(files):
    """dup2() closes what was there, and close_range() many: the kernel may use their place again."""
    profile = files("""
make("m.gguf")
make("other")
fd = os.open("m.gguf", R)
os.read(fd, MIB)
os.dup2(0, fd)
os.closerange(fd, fd + 1)
others = [os.open("other", R) for _ in range(50)]
for other in others:
    read(other)
""")
    phase = only(profile, "read m.gguf")
    assert phase["io_read_mb"] <= 1.1, f"expected 1 MiB, not what was read of the other file: {phase}"


def test_files_of_children_are_theirs(files):
    """Their fork has what the process has open. They run no program, so no recipe knows them."""
    profile = files("""
make("m.gguf")
fd = os.open("m.gguf", R)
os.read(fd, MIB)
if not os.fork():
    os.read(fd, MIB)
    os.close(fd)
    os._exit(0)
os.wait()
os.read(fd, MIB)
os.close(fd)
""")
    only(profile, "read m.gguf")
    assert matched(profile) == [1]


def test_threads_of_one_process(files):
    """One begins: what others read while it does may be in the phase, or before it."""
    profile = files("""
import threading
make("m.gguf")
fd = os.open("m.gguf", R)
os.pread(fd, MIB, 0)
readers = [threading.Thread(target=lambda i=i: os.pread(fd, MIB, i * MIB)) for i in range(1, 4)]
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
os.close(fd)
""")
    assert only(profile, "read m.gguf")["io_read_mb"] == 4


def test_a_process_that_is_killed_does_not_end_its_phase(files):
    profile = files("""
make("m.gguf")
fd = os.open("m.gguf", R)
os.read(fd, MIB)
os.kill(os.getpid(), 9)
""", status=-9)
    assert names(profile) == ["read m.gguf"] and profile["phases"][0]["closed"] is False


def test_what_is_open_ends_with_the_process(files):
    profile = files("""
make("m.gguf")
fd = os.open("m.gguf", R)
os.read(fd, MIB)
out = os.open("q.gguf", W)
os.write(out, b"x" * MIB)
""")
    assert names(profile) == ["read m.gguf", "write q.gguf"]
    assert all(p.get("closed", True) for p in profile["phases"]), profile["phases"]


LOOP = """
for i in range(1000):
    with open(f"{i}.gguf", "wb", buffering=0) as f:
        f.write(b"x")
"""


def test_too_many_files_are_counted(files):
    """A process has 100 phases of files in a second."""
    profile = files(LOOP, lost=["unwatched_files"])
    left_out = quality(profile)["unwatched_files"]
    assert len(profile["phases"]) + left_out == 1000, f"{len(profile['phases'])} phases, {left_out} left out"
    assert len(profile["phases"]) >= 100 and left_out > 100


def test_too_many_that_are_open_are_counted(files):
    profile = files("""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (5000, 5000))
fds = [os.open(f"{i}.gguf", W) for i in range(4500)]
""", lost=["unwatched_files"])
    assert names(profile) == [] and quality(profile)["unwatched_files"] == 4500 - 4096


MARKED = """
make("m.gguf")
fd = os.open("m.gguf", R)
os.read(fd, MIB)
os.write(2, b"step 1 of the tool\\n")
read(fd, SIZE - MIB)
os.close(fd)
out = os.open("q.gguf", W)
os.write(out, b"x" * MIB)
os.close(out)
os.write(2, b"step 2 of the tool\\n")
"""
STEPS = """
name: steps
match: {executable: "python*"}
checkpoints:
- {log: '^step (\\d)', phase: step $1}
"""


@pytest.mark.parametrize("until, expected", [
    ("", ["read m.gguf", "step 1", "write q.gguf", "step 2"]),
    ("until_marked: yes\n", ["read m.gguf", "step 1", "step 2"])])
def test_until_something_else_marks(files, tmp_path, until, expected):
    more = tmp_path / "steps.yaml"
    more.write_text(STEPS)
    profile = files(MARKED, recipe=RECIPE + until, more=["--recipe", more])
    assert names(profile) == expected
    file, step = profile["phases"][:2]
    if until:
        assert end_secs(file) == pytest.approx(step["start_secs"], abs=2e-6), f"{file} goes on in {step}"
        assert (file["io_read_mb"], step["depth"]) == (1, 0)


WAITS = """
import json, signal
signal.signal(signal.SIGUSR1, lambda *_: None)
make("m.gguf")
before = os.open("m.gguf", R)
os.read(before, MIB)
print(json.dumps({"ready": os.getpid()}), flush=True)
signal.pause()
os.read(before, MIB)
after = os.open("m.gguf", R)
read(after)
"""


def test_files_of_a_process_that_runs_already(target, attach, tmp_path):
    """Those that it opens from then on."""
    recipe, script = tmp_path / "recipe.yaml", tmp_path / "script.py"
    recipe.write_text(RECIPE)
    script.write_text(HEAD + WAITS)
    idle = target(script, tmp_path, path=PYTHON)
    with attach(idle.pid, options=["--recipe", recipe, "--recipe", "none"]) as attached:
        idle.tell()
        idle.wait()
        profile = attached.finished()
    assert only(profile, "read m.gguf")["io_read_mb"] == 4
    assert_nothing_lost(profile)


def test_without_a_recipe_of_ones_own(files):
    """The recipe that comes with qprof-bpf: an unmarked program has a phase a file."""
    profile = files("""
for name in ("model.safetensors", "m.gguf", "m.pt", "pytorch_model.bin", "m.onnx", "m.onnx.data", "a.npz"):
    make(name, MIB)
    fd = os.open(name, R)
    read(fd, MIB)
    os.close(fd)
fd = os.open("q.gguf", W)
os.write(fd, b"x" * MIB)
os.close(fd)
""", recipe=None)
    assert names(profile) == [f"read {n}" for n in ("model.safetensors", "m.gguf", "m.pt", "pytorch_model.bin",
                                                    "m.onnx", "m.onnx.data", "a.npz")] + ["write q.gguf"]
    assert [r["name"] for r in profile["recipes"]] == ["model files"]


def test_a_program_that_is_told_of_a_model(profile, tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"x" * MIB)
    run = profile("/usr/bin/sha256sum", tmp_path / "m.gguf")
    assert only(run.profile, "read m.gguf")["io_read_mb"] == 1


STOPPED = """
import os, signal, subprocess, sys, time

how, *before, last = sys.argv[1:]
for path in before:
    subprocess.run(["/usr/bin/sha256sum", path], check=True, stdout=subprocess.DEVNULL)
os.kill(os.getppid(), signal.SIGSTOP)
process = subprocess.Popen(["/usr/bin/sha256sum", last], stdout=subprocess.DEVNULL)
if how == "until it ends":
    process.wait()
else:
    time.sleep(0.03)
os.kill(os.getppid(), signal.SIGCONT)
process.wait()
"""


def test_a_program_that_was_told_of_other_files_before(unhurried, tmp_path):
    """Its code is known; but the profiler is late (stopped for 30 ms), and the program waits for what it is given.
    The name is as long as a piece of an argument that is looked at."""
    others = [tmp_path / f"other.{i}" for i in range(3)]
    model = tmp_path / ("m" * (127 - len(f"{tmp_path}/.gguf")) + ".gguf")
    for path in [*others, model]:
        path.write_bytes(b"x" * MIB)
    run = unhurried(PYTHON, "-c", STOPPED, "for a while", *others, model)
    assert only(run.profile, f"read {model.name}")["io_read_mb"] == 1, quality(run.profile)


def test_a_known_program_does_not_wait(unhurried, tmp_path):
    """It ends while the profiler is stopped, as long as that takes."""
    others = [tmp_path / f"{i}.gguf.other" for i in range(4)]
    for path in others:
        path.write_bytes(b"x")
    run = unhurried(PYTHON, "-c", STOPPED, "until it ends", *others)
    assert quality(run.profile)["hasty_starts"] == 0, quality(run.profile)
