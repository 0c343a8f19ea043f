# SPDX-License-Identifier: GPL-2.0-only
"""Any user may run programs that try to stall or to blind an audit. It goes on, has all that others did, and says
what it left out. The bounds of time below are against a hang alone: what hangs takes 45 seconds or for ever."""

import os
import shutil
import subprocess
import time
from contextlib import ExitStack, closing, contextmanager

import pytest

import harness
from harness import (AS_NOBODY, CLEAN_ENV, NOBODY, PYTHON, Audit, Lines, Target, job_of, program, quality, step_names,
                     wait_for)
from slow_files import LateProgram, SlowProgram

HANGS_SECS = 20  # one that stalls takes 45 s for each file (/proc/sys/fs/lease-break-time)


@pytest.fixture
def audit(tmp_path):
    """with audit(*options) as running: every process is in."""
    started = []

    def start(*options):
        started.append(Audit(tmp_path / "audit.yaml", options))
        return started[-1]
    yield start
    for one in started:  # that never said that it had begun
        if one.process and one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@contextmanager
def stranger(script, *arguments, who=AS_NOBODY):
    """A program of another user, which says `ready` and goes on until its input ends."""
    process = subprocess.Popen([*who, PYTHON, "-c", script, *map(str, arguments)], env=CLEAN_ENV,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lines = Lines(process.stdout)
    try:
        lines.until("ready")
        yield process, lines
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def has_probes(one, path):
    return all(byte != harness.NOP for byte in harness.probe_bytes(one.pid, path))


def searched(one, path=program("idle")):
    wait_for(lambda: has_probes(one, path), "probes in the program")


def searched_at_once(path):
    """A program of that path that has its probes soon; None if it is left out."""
    one = Target("mark:three", path=path, prefix=("env",))
    end = time.monotonic() + 1
    while time.monotonic() < end:
        if has_probes(one, path):
            return one
        time.sleep(0.02)
    one.__exit__()
    return None


def assert_sees_others(running):
    """What somebody else does meanwhile is in the report, all of it. Ends the audit; its report."""
    with Target("mark:one", "touch:8", "mark:two") as one:
        searched(one)
        for _ in range(3):
            one.go()
        report = running.stop()
    job = job_of(report, one.pid)
    assert step_names(job) == ["one", "two"], f"expected both marks, got {step_names(job)}: {report['quality']}"
    assert job["peak_memory_mb"] > 8, job["peak_memory_mb"]
    return report


def warnings_of(report):
    return [f"{w['what']}: {w['why']}" for w in report["quality"]["warnings"]]


# ---- Files

LEASED = """
import fcntl, mmap, os, shutil, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
kept = []
for i in range(int(sys.argv[3])):
    path = os.path.join(sys.argv[2], f"leased{i}")
    shutil.copy(sys.argv[1], path)
    fd = os.open(path, os.O_RDONLY)
    kept.append(mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
sys.stdin.read()
"""


def test_files_with_a_write_lease(audit):
    """The kernel makes who opens such a file wait until its holder has let go, for 45 s at most."""
    count = 10
    with harness.public_dir(NOBODY) as folder, stranger(LEASED, program("checkpoints"), folder, count):
        began = time.monotonic()
        with audit() as running:
            there = time.monotonic() - began
            report = assert_sees_others(running)
        took = time.monotonic() - began
    assert took < HANGS_SECS, (f"expected {count} files to hold up nobody; {there:.1f} s until it had begun, "
                               f"{took:.1f} s in all")
    got = quality(report)["unsearched_files"]
    assert got >= count, f"expected {count} files that were not searched, got {got}"
    said = [w for w in warnings_of(report) if "lease" in w]
    assert len(said) == 1 and str(NOBODY) in said[0], f"expected one warning of user {NOBODY}; {warnings_of(report)}"


WRITES = """
i=0
while [ $i -lt 200 ]; do
    path=$3/program$i; i=$((i + 1))
    cp $1 $path
    $path rate 3 >/dev/null
    until cat $2 >$path; do :; done 2>/dev/null  # in place; refused while it is being searched
    $path >/dev/null
    rm $path
done
"""


@pytest.mark.parametrize("helpers", ["helpers", "late helpers"])
@pytest.mark.parametrize("who", [(), AS_NOBODY], ids=["root", "nobody"])
def test_files_that_are_written_as_they_are_searched(audit, who, helpers):
    """A program ends, and its file is written anew, before the audit has attached to it: no probe may come to where the
    old one had an instruction, or the new program crashes. Nor where a child that searched the old one still runs."""
    audit = audit()
    if helpers == "late helpers":
        audit.args = ["env", f"LD_PRELOAD={program('late_exit.so')}", *audit.args]
    with harness.public_dir(NOBODY) as folder, audit as running:
        done = subprocess.run([*who, "sh", "-ec", WRITES, "sh", program("checkpoints"), program("prompt"), folder],
                              env=CLEAN_ENV, capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        assert done.returncode == 0, f"expected that no program crashes, got {done}"
        assert_sees_others(running)


def test_file_system_that_does_not_answer(audit, tmp_path):
    """Its file is left out. Once it answers, the next program has its marks."""
    mount = tmp_path / "slow"
    mount.mkdir()
    with harness.public_dir() as folder, closing(SlowProgram(program("idle"), mount)) as slow:
        began = time.monotonic()
        with Target(path=slow.path, prefix=("env",)), audit("--metrics-file", folder / "now.prom") as running:
            assert slow.asked.is_set(), "somebody must have waited for the file"
            with Target("mark:one", "mark:two") as one:
                searched(one)
                one.go()
                one.go()
                took = time.monotonic() - began
                slow.release()
                with wait_for(lambda: searched_at_once(slow.path), "a search after the user's rest") as later:
                    later.go()
                    report = running.stop()
    assert took < HANGS_SECS, f"{took:.1f} s until another had its marks"
    assert step_names(job_of(report, one.pid)) == ["one", "two"]
    assert step_names(job_of(report, later.pid)) == ["three"]
    assert quality(report)["unsearched_files"] >= 1, report["quality"]
    said = [w for w in warnings_of(report) if "file system" in w]
    assert len(said) == 1 and "user 0" in said[0], f"expected one warning of user 0; {warnings_of(report)}"


def test_file_systems_that_answer_just_in_time(audit):
    """None of them hangs, and together they take as long as their user likes: he has so much time, and no more."""
    with harness.public_dir() as folder, ExitStack() as stack:
        late = []
        for i in range(16):
            mount = folder / f"late{i}"
            mount.mkdir()
            late.append(stack.enter_context(closing(LateProgram(program("idle"), mount))))
        for one in late:
            stack.enter_context(Target(path=one.path, prefix=AS_NOBODY))
        with audit() as running:
            report = assert_sees_others(running)
    counts = quality(report)
    assert counts["limited_searches"] > 0, counts
    assert sum(one.asked.is_set() for one in late) < len(late), "all were waited for"
    said = [w for w in warnings_of(report) if "answers late" in w]
    assert len(said) == 1 and f"user {NOBODY}" in said[0], warnings_of(report)


# ---- Names

UNSERVED = """
import ctypes, fcntl, mmap, os, struct, sys
PAGE, SYS_USERFAULTFD = mmap.PAGESIZE, 323
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(SYS_USERFAULTFD, os.O_CLOEXEC)
if fd < 0:
    print("cannot: userfaultfd:", os.strerror(ctypes.get_errno()), "ready", flush=True)
    sys.exit()
fcntl.ioctl(fd, 0xc018aa3f, struct.pack("<3Q", 0xaa, 0, 0))  # UFFDIO_API
at = mmap.mmap(-1, PAGE)
address = ctypes.addressof(ctypes.c_char.from_buffer(at))
fcntl.ioctl(fd, 0xc020aa00, bytearray(struct.pack("<4Q", address, PAGE, 1, 0)))  # UFFDIO_REGISTER: what is missing
plugin = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
plugin.plugin_mark(ctypes.c_void_p(address))
print("through", flush=True)
sys.stdin.read()
"""


@contextmanager
def unserved_name(folder):
    """A program with a mark whose name lies on a page that its owner does not serve. With it, its library."""
    library = folder / "plugin.so"
    shutil.copy(program("plugin.so"), library)
    with stranger(UNSERVED, library, who=()) as (process, lines):
        if "cannot" in lines.seen:
            pytest.skip(lines.seen)
        yield process, lines, library


def hit(process, library):
    """Once its probe is there, the program hits the mark."""
    wait_for(lambda: any(byte != harness.NOP for byte in harness.probe_bytes(process.pid, library)),
             "probes in the library")
    process.stdin.write(b"go\n")
    process.stdin.flush()


def overwrite(path):
    """In place; a lease of ours on it makes this wait until the probes are gone."""
    subprocess.run(["dd", f"if={program('plugin.so')}", f"of={path}", "conv=notrunc", "status=none"],
                   check=True, timeout=harness.DEADLINE)


def test_name_that_its_owner_does_not_serve(tmp_path, exporter):
    """No probe of an audit waits for a page, so its file can be written, and the audit can end."""
    with exporter() as running, unserved_name(tmp_path) as (process, lines, library):
        hit(process, library)
        lines.until("through")
        overwrite(library)
        running.metrics()
        began = time.monotonic()
        report = assert_sees_others(running)
        took = time.monotonic() - began
    assert took < HANGS_SECS, f"{took:.1f} s until it had ended"
    assert step_names(job_of(report, process.pid)) == ["(unreadable name)"], report["jobs"]
    assert quality(report)["unreadable_names"] >= 1, report["quality"]


# ---- Users

def test_users_whose_directory_does_not_answer(tmp_path):
    """Their numbers stand for their names. Here it is a file that nobody writes to."""
    hangs = tmp_path / "passwd"
    os.mkfifo(hangs)
    began = time.monotonic()
    running = Audit(tmp_path / "audit.yaml", ("--events-file", tmp_path / "events"))
    running.args = ["unshare", "-m", "--propagation", "private", "sh", "-ec",
                    'mount --bind "$1" /etc/passwd; shift; exec "$@"', "sh", str(hangs), *running.args]
    with running:
        report = assert_sees_others(running)
    took = time.monotonic() - began
    assert took < HANGS_SECS, f"{took:.1f} s until it had ended"
    names = [user["user"] for user in report["users"]]
    assert str(os.getuid()) in map(str, names), f"expected the number of each user, got {names}"
