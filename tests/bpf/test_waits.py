# SPDX-License-Identifier: GPL-2.0-only
"""How long threads waited for a CPU: as /proc/PID/schedstat says, with threads and children that are gone."""

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import assert_nothing_lost, process_of, row_of

SLEEPS = ("storage_wait_secs", "lock_wait_secs", "sleep_secs")

# Spins in so many threads and as many processes, on one CPU, and says what the kernel's own account has.
CROWD = r"""
import json, os, sys, threading, time
import qprof

def waited(pid):
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as file:
            total += int(file.read().split()[1])
    return total / 1e9

def spin(secs):
    end = time.thread_time() + secs
    while time.thread_time() < end:
        pass

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
before = waited(os.getpid())
with qprof.scope("Crowd"):
    read, write = os.pipe()
    for _ in range(3):
        if not os.fork():
            spin(0.2)
            os.write(write, b"%f\n" % (waited(os.getpid())))
            os._exit(0)
    spin(0.2)
    for _ in range(3):
        os.wait()
    own = waited(os.getpid()) - before
    children = [float(line) for line in os.read(read, 4096).split()]
print(json.dumps({"own": own, "children": children}))
"""


def test_a_crowd_on_one_cpu(script):
    run = script(CROWD)
    phase, = [phase for phase in run.profile["phases"] if phase["name"] == "Crowd"]
    expected = run.truth["own"] + sum(run.truth["children"])
    # Four of 200 ms each share a CPU: each waits for about the other three.
    assert expected > 1.0, run.truth
    # A child has waited a little more when it exits than when it looked, and before its first instruction.
    assert phase["cpu_wait_secs"] == pytest.approx(expected, rel=0.05, abs=0.02), (phase, run.truth)
    assert phase["own_cpu_wait_secs"] == pytest.approx(run.truth["own"], rel=0.05, abs=0.02), (phase, run.truth)
    waits = sorted(process["cpu_wait_secs"] for process in run.profile["processes"] if process["pid"] != phase["pid"])
    for got, wanted in zip(waits, sorted(run.truth["children"])):
        assert got == pytest.approx(wanted, rel=0.05, abs=0.02), (waits, run.truth)
    assert run.profile["total_cpu_wait_secs"] >= phase["cpu_wait_secs"] - 1e-6
    assert_nothing_lost(run.profile)


def test_rows_and_the_end_agree(script):
    run = script(CROWD)
    end = run.profile["memory_usage"][-1]
    assert end["cpu_wait_secs"] == pytest.approx(run.profile["total_cpu_wait_secs"], abs=1e-5)
    assert row_of(run.profile, "Crowd End")["cpu_wait_secs"] <= end["cpu_wait_secs"]
    everyone = sum(process["cpu_wait_secs"] for process in run.profile["processes"])
    assert everyone == pytest.approx(end["cpu_wait_secs"], rel=0.01, abs=0.01)


def test_before_an_attach(target_python, attach):
    """What was waited before is not counted."""
    waiting = target_python("""
import json, os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
child = os.fork()
if not child:
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass
    os._exit(0)
end = time.thread_time() + 0.3
while time.thread_time() < end:
    pass
os.wait()
with open(f"/proc/{os.getpid()}/schedstat") as file:
    before = int(file.read().split()[1]) / 1e9
print(json.dumps({"ready": os.getpid()}), flush=True)
signal.sigwait([signal.SIGUSR1])
print(json.dumps({"before": before}), flush=True)
""")
    with attach(waiting.pid) as attached:
        before = waiting.go()["before"]
        waiting.wait()
        profile = attached.finished()
    got = process_of(profile, waiting.pid)[0]["cpu_wait_secs"]
    assert before > 0.2 and got < before / 2, (before, got)


@contextmanager
def cgroup(controller, files):
    """A cgroup (v1) of our own with these values; what is started meanwhile is in it."""
    root = Path("/sys/fs/cgroup", controller)
    mine = root / f"qprof-test-{os.getpid()}"
    try:
        mine.mkdir()
        for name, value in files.items():
            (mine / name).write_text(str(value), encoding="ascii")
    except OSError as why:
        if mine.is_dir():
            mine.rmdir()
        pytest.skip(f"no {controller} cgroup can be made here: {why}")
    try:
        yield mine / "cgroup.procs"
    finally:
        mine.rmdir()


def thread_time(profile, name):
    """What a phase's threads did, in all."""
    phase, = [phase for phase in profile["phases"] if phase["name"] == name]
    stall = {key: phase.get(key, 0) for key in SLEEPS + ("reclaim_secs", "reclaim_cpu_secs", "cpu_wait_secs")}
    stall["reclaim_secs"] = stall["reclaim_secs"] - stall.pop("reclaim_cpu_secs")
    return phase, stall, phase["cpu_time_secs"] + sum(stall.values())


# Four threads at a time, each with something else to wait for; and 50 that live for some ms.
EACH = r"""
import os, threading, time
import qprof

lock, asked = threading.Lock(), threading.Event()

def for_a_lock():
    asked.set()
    with lock:
        pass

def compute():
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass

with qprof.scope("Waits"):
    lock.acquire()
    threads = [threading.Thread(target=each) for each in (for_a_lock, lambda: time.sleep(0.6), compute)]
    for thread in threads:
        thread.start()
    asked.wait()
    time.sleep(0.5)
    lock.release()
    for thread in threads:
        thread.join()
    for _ in range(50):
        short = threading.Thread(target=time.sleep, args=(0.002,))
        short.start()
        short.join()
"""


def test_sleeps_are_told_apart(script):
    """Threads that are gone included; and nothing of their time is in no column, or in two."""
    run = script(EACH, options=["--waits"])
    phase, stall, whole = thread_time(run.profile, "Waits")
    wall = phase["duration_secs"]
    # The lock for 0.5 s; the main thread for its threads, in futex(2) as well.
    assert 0.5 <= stall["lock_wait_secs"] <= 0.5 + wall, (phase, stall)
    assert 0.5 + 0.6 + 50 * 0.002 <= stall["sleep_secs"] <= 1.5, (phase, stall)
    # The main thread was there all the time, of the others the times are known.
    assert whole == pytest.approx(wall + 0.5 + 0.6 + phase["cpu_time_secs"] + stall["cpu_wait_secs"] + 50 * 0.002,
                                  rel=0.25), (whole, phase, stall)
    assert_nothing_lost(run.profile)


ALL_THE_TIME = r"""
import threading, time
import qprof

def some(secs):
    end = time.monotonic() + secs
    while time.monotonic() < end:
        time.sleep(0.003)
        for _ in range(20000):
            pass

ready = threading.Barrier(4)
def live():
    ready.wait()
    some(1)
threads = [threading.Thread(target=live) for _ in range(3)]
for thread in threads:
    thread.start()
ready.wait()
with qprof.scope("Steady"):
    some(0.8)
for thread in threads:
    thread.join()
"""


def test_the_columns_are_the_time_of_all_threads(script):
    """Four threads live throughout: sleeps that go on at its begin and end are cut there."""
    run = script(ALL_THE_TIME, options=["--waits"])
    phase, stall, whole = thread_time(run.profile, "Steady")
    assert whole == pytest.approx(4 * phase["duration_secs"], rel=0.02, abs=0.02), (whole, phase, stall)


def test_without_the_option_no_sleep_is_told(script):
    run = script("import qprof, time\nwith qprof.scope('Sleep'):\n    time.sleep(0.1)\n")
    for item in (*run.profile["phases"], *run.profile["memory_usage"], *run.profile["processes"]):
        assert not set(SLEEPS) & set(item), item


def test_switches_and_modes_are_the_kernels(script):
    run = script("""
import json, resource, time
for _ in range(200):
    time.sleep(0.001)
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
for _ in range(20000):
    open("/proc/self/stat").close()
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"voluntary": used.ru_nvcsw, "involuntary": used.ru_nivcsw}))
""")
    totals, truth = run.profile, run.truth
    # Its start is not all the program's own: it waits to be searched.
    assert totals["total_voluntary_switches"] == pytest.approx(truth["voluntary"], abs=40), truth
    assert truth["voluntary"] >= 200
    assert totals["total_involuntary_switches"] >= truth["involuntary"] - 5, truth
    modes = totals["total_cpu_user_secs"] + totals["total_cpu_system_secs"]
    assert modes == pytest.approx(totals["total_cpu_time_secs"], rel=0.2, abs=0.05), totals
    assert totals["total_cpu_system_secs"] > 0


THRASH = r"""
import mmap, os, sys, time
import qprof

open(sys.argv[2], "w").write(str(os.getpid()))
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # what comes is charged to us
size = os.fstat(fd).st_size
with qprof.scope("Thrash"):
    for _ in range(3):
        block = mmap.mmap(fd, size, prot=mmap.PROT_READ)
        sum(block[at] for at in range(0, size, mmap.PAGESIZE))
        block.close()
"""


def test_a_memory_cgroup_that_thrashes(script, disk):
    path = disk / "weights"
    path.write_bytes(b"w" * (96 << 20))
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    with cgroup("memory", {"memory.limit_in_bytes": 32 << 20}) as procs:
        run = script(THRASH, path, procs, options=["--waits", "--as-root"])
    phase, stall, whole = thread_time(run.profile, "Thrash")
    assert phase["disk_read_mb"] > 250, f"expected three readings of 96 MiB, got {phase}"
    assert phase.get("reclaim_secs", 0) > 0, phase
    memory = stall["reclaim_secs"] + stall["storage_wait_secs"]
    others = stall["sleep_secs"] + stall["lock_wait_secs"]
    assert memory >= 0.9 * (memory + others), (phase, stall)
    assert whole == pytest.approx(phase["duration_secs"], rel=0.02, abs=0.02), (whole, phase, stall)


READS = r"""
import os, sys
import qprof

open(sys.argv[2], "w").write(str(os.getpid()))
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
with qprof.scope("Read"):
    while os.read(fd, 1 << 20):
        pass
"""


def test_a_slow_device(script, disk):
    path = disk / "weights"
    path.write_bytes(b"w" * (8 << 20))
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    device = os.stat(path).st_dev
    slow = f"{os.major(device)}:{os.minor(device)} {10 << 20}"
    with cgroup("blkio", {"blkio.throttle.read_bps_device": slow}) as procs:
        run = script(READS, path, procs, options=["--waits", "--as-root"])
    phase, stall, _ = thread_time(run.profile, "Read")
    assert phase["duration_secs"] > 0.5, f"8 MiB at 10 MiB/s: {phase}"
    assert stall["storage_wait_secs"] >= 0.9 * sum(stall.values()), (phase, stall)


SPINS = r"""
import os, sys, time
import qprof

open(sys.argv[1], "w").write(str(os.getpid()))
with qprof.scope("Spin"):
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
"""


def test_a_quota_is_a_wait_for_a_cpu(script):
    with cgroup("cpu", {"cpu.cfs_period_us": 20000, "cpu.cfs_quota_us": 4000}) as procs:
        run = script(SPINS, procs, options=["--waits", "--as-root"])
    phase, stall, _ = thread_time(run.profile, "Spin")
    stalled = phase["duration_secs"] - phase["cpu_time_secs"]
    assert stalled > 0.5, f"200 ms of CPU at 20 %: {phase}"
    assert stall["cpu_wait_secs"] >= 0.9 * stalled, (phase, stall)
