# SPDX-License-Identifier: GPL-2.0-only
"""How long threads waited for a CPU: as /proc/PID/schedstat says, with threads and children that are gone."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from groups import cgroup
from harness import assert_all_time, assert_nothing_lost, busy_machine, process_of, program, row_of, run_qprof

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


def test_main_thread_has_exited(attach):
    """A zombie does not sleep: only the thread that is left does, and no longer than we looked."""
    began = time.monotonic()
    with subprocess.Popen([program("exits"), "main_first"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        one.stdout.readline()
        with attach(one.pid, options=["--waits"]) as attached:
            looked = time.monotonic()
            time.sleep(0.5)
            least = time.monotonic() - looked
            one.communicate(b"go\n")
            end = attached.finished()["memory_usage"][-1]
    assert least <= end["sleep_secs"] <= time.monotonic() - began, (least, end)


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


# Before 6.6 the kernel does not say for how long a quota stops a run queue.
TELLS_STOPS = tuple(int(number) for number in os.uname().release.split(".")[:2]) >= (6, 6)


def thread_time(profile, name):
    """What a phase's threads did, in all."""
    phase, = [phase for phase in profile["phases"] if phase["name"] == name]
    stall = {key: phase.get(key, 0) for key in SLEEPS + ("cpu_wait_secs",)}
    for kind in ("reclaim", "gpu_wait"):
        stall[f"{kind}_secs"] = phase.get(f"{kind}_secs", 0) - phase.get(f"{kind}_cpu_secs", 0)
    return phase, stall, phase["cpu_time_secs"] + sum(stall.values())


def slow(run):
    """What the report says of why it was slow."""
    text = " ".join(run_qprof("report", "--width", "200", run.path).stdout.split())
    return text[text.index("Slow:"):][:300] if "Slow:" in text else ""


# Four threads at a time, each with something else to wait for; and 50 that live for some ms.
EACH = r"""
import json, os, threading, time
import qprof

slept = []
def rest(secs):
    before = time.monotonic()
    time.sleep(secs)
    slept.append(time.monotonic() - before)

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
    threads = [threading.Thread(target=each) for each in (for_a_lock, lambda: rest(0.6), compute)]
    for thread in threads:
        thread.start()
    asked.wait()
    rest(0.5)
    lock.release()
    for thread in threads:
        thread.join()
    for _ in range(50):
        short = threading.Thread(target=rest, args=(0.002,))
        short.start()
        short.join()
print(json.dumps({"slept": sum(slept)}))
"""


# The program is not run for each wake-up: a thread that gets a CPU was woken, too.
WAKEUPS = pytest.mark.parametrize("env", [{}, {"QPROF_NO_WAKEUPS": "1"}], ids=["told", "missed"])


@WAKEUPS
def test_sleeps_are_told_apart(script, env):
    """Threads that are gone included; and nothing of their time is in no column, or in two."""
    run = script(EACH, options=["--waits"], env=env)
    phase, stall, whole = thread_time(run.profile, "Waits")
    wall = phase["duration_secs"]
    # The lock for 0.5 s; the main thread for its threads, in futex(2) as well.
    assert 0.5 <= stall["lock_wait_secs"] <= 0.5 + wall, (phase, stall)
    assert 0.5 + 0.6 + 50 * 0.002 <= stall["sleep_secs"] <= run.truth["slept"] + 0.02, (phase, stall, run.truth)
    # The main thread was there all the time, of the others the times are known.
    assert whole == pytest.approx(wall + 0.5 + 0.6 + phase["cpu_time_secs"] + stall["cpu_wait_secs"] + 50 * 0.002,
                                  rel=0.25), (whole, phase, stall)
    assert_nothing_lost(run.profile)


MANY_SLEEPS = r"""
import json, time
import qprof

slept = []
for i in range(400):
    with qprof.scope(f"Layer {i}"):
        before = time.monotonic()
        time.sleep(0.01)
        slept.append(time.monotonic() - before)
        end = time.thread_time() + 0.002
        while time.thread_time() < end:
            pass
print(json.dumps({"slept": slept}))
"""


@WAKEUPS
def test_each_sleep_is_whole(script, env):
    """Beside others, so that the program waits for a CPU after a sleep, and loses it before the next one. One kernel
    tells no event in the context of its init process: there 1 of 1,000 sleeps was lost, or had no end."""
    with busy_machine(2 * os.cpu_count()):
        run = script(MANY_SLEEPS, options=["--waits"], env=env)
    found = {phase["name"]: phase.get("own_sleep_secs", 0) for phase in run.profile["phases"]}
    wrong = [(i, slept, found[f"Layer {i}"]) for i, slept in enumerate(run.truth["slept"])
             if not 0.0095 <= found[f"Layer {i}"] <= slept + 0.001]
    assert not wrong, f"{len(wrong)} of 400, such as {wrong[:3]}"
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


@WAKEUPS
def test_the_columns_are_the_time_of_all_threads(script, env):
    """Four threads live throughout: sleeps that go on at its begin and end are cut there."""
    run = script(ALL_THE_TIME, options=["--waits"], env=env)
    phase, stall, whole = thread_time(run.profile, "Steady")
    assert_all_time(run, whole, 4 * phase["duration_secs"], (phase, stall))


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
    # A tick counts whole for whom it hits: on a busy machine that says little of some hundred milliseconds.
    assert 0.1 * totals["total_cpu_time_secs"] <= modes <= 4 * totals["total_cpu_time_secs"], totals
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
    with cgroup("memory", {"memory.limit_in_bytes": 32 << 20}, {"memory.max": 32 << 20}) as procs:
        run = script(THRASH, path, procs, options=["--waits", "--as-root"])
    phase, stall, whole = thread_time(run.profile, "Thrash")
    assert phase["disk_read_mb"] > 250, f"expected three readings of 96 MiB, got {phase}"
    assert phase.get("reclaim_secs", 0) > 0, phase
    memory = stall["reclaim_secs"] + stall["storage_wait_secs"]
    others = stall["sleep_secs"] + stall["lock_wait_secs"]
    assert memory >= 0.9 * (memory + others), (phase, stall)
    assert_all_time(run, whole, phase["duration_secs"], (phase, stall))


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


def test_a_slow_device(script, slow_weights):
    run = script(READS, *slow_weights, options=["--waits", "--as-root"])
    phase, stall, _ = thread_time(run.profile, "Read")
    assert phase["duration_secs"] > 0.5, f"8 MiB at 10 MiB/s: {phase}"
    assert stall["storage_wait_secs"] >= 0.9 * (sum(stall.values()) - stall["cpu_wait_secs"]), (phase, stall)


SPINS = r"""
import json, os, sys, time
import qprof

group = os.path.dirname(sys.argv[1])

def throttled():
    with open(group + "/cpu.stat") as file:
        stat = {name: int(value) for name, value in (line.split() for line in file)}
    return stat["throttled_usec"] / 1e6 if "throttled_usec" in stat else stat["throttled_time"] / 1e9

open(sys.argv[1], "w").write(str(os.getpid()))
before = [throttled()]
with qprof.scope("Spin"):
    before.append(throttled())
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
    after = [throttled()]
after.append(throttled())
print(json.dumps({"least": after[0] - before[1], "most": after[1] - before[0]}))
"""


def test_a_quota_is_a_wait_for_a_cpu(script):
    with cgroup("cpu", {"cpu.cfs_period_us": 20000, "cpu.cfs_quota_us": 4000}, {"cpu.max": "4000 20000"}) as procs:
        # A row has the figure if it is read within 20 ms of its hit, which a busy machine may not let us do.
        for _ in range(8):
            run = script(SPINS, procs, options=["--waits", "--as-root"])
            rows = [row_of(run.profile, f"Spin {edge}") for edge in ("Start", "End")]
            if all("cgroup_throttled_secs" in row for row in rows):
                break
    phase, stall, _ = thread_time(run.profile, "Spin")
    stalled = phase["duration_secs"] - phase["cpu_time_secs"]
    assert stalled > 0.5, f"200 ms of CPU at 20 %: {phase}"
    assert stall["cpu_wait_secs"] >= 0.9 * stalled, (phase, stall)
    limit = run.profile["cpu_limit"]
    assert limit["of"] == f"cgroup /{procs.parent.name}" and limit["quota_secs"] == 0.004 and limit["period_secs"] == 0.02, limit
    # Rows are read a moment after their hit, in which the cgroup may be stopped: for most of a period.
    start, end = (row["cgroup_throttled_secs"] for row in rows)
    assert run.truth["least"] - 0.02 <= end - start <= run.truth["most"] + 0.02, (run.truth, start, end)
    assert run.truth["least"] <= limit["cgroup_throttled_secs"], (run.truth, limit)
    # With --waits it is told apart, of threads: here of one, so it is what the kernel says of the cgroup. Stops that go
    # on at a row are in the next.
    assert ("throttled_secs" in phase) == TELLS_STOPS, phase
    stopped = phase.get("throttled_secs", run.truth["least"])
    assert run.truth["least"] * 0.98 - 0.02 <= stopped <= run.truth["most"] * 1.02 + 0.02, (run.truth, phase)
    assert stopped <= phase["cpu_wait_secs"] + 0.02, phase
    assert limit["cgroup_throttled_periods"] >= 20, limit
    assert f"(quota of {limit['of']}: 20 %)" in slow(run), slow(run)


WAITS_LONG = r"""
import json, os, signal, sys, time
import qprof

def used(pid):
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9

child = os.fork()
if not child:
    open(sys.argv[1], "w").write(str(os.getpid()))
    while True:
        pass
while used(child) < 0.02:
    time.sleep(0.001)
began, before = time.monotonic(), used(child)
with qprof.scope("Wait"):
    time.sleep(2.5)
    waits = time.monotonic() - began - (used(child) - before)
os.kill(child, signal.SIGKILL)
os.wait()
print(json.dumps({"waits": waits}))
"""


def test_a_long_wait_for_a_cpu_goes_on(script):
    """At a row, which has it so far, though for seconds nothing else came of the program: no timer is watched."""
    with cgroup("cpu", {"cpu.cfs_period_us": 1000000, "cpu.cfs_quota_us": 1000}, {"cpu.max": "1000 1000000"}) as procs:
        run = script(WAITS_LONG, procs, options=["--waits", "--as-root", "--no-curves"])
    phase, _, _ = thread_time(run.profile, "Wait")
    assert run.truth["waits"] > 1, run.truth
    assert run.truth["waits"] - 0.05 - run.stolen_secs <= phase["cpu_wait_secs"] <= run.truth["waits"] + 0.05, (run.truth, phase)


@pytest.mark.parametrize("then", ['exec "$@"', '"$@"; exit $?'], ids=["itself", "child"])
def test_a_shell_enters_a_cgroup_with_a_quota(profile, then):
    """As systemd-run does. The program makes no row while the shell is there; the quota is the one it ran under."""
    with cgroup("cpu", {"cpu.cfs_period_us": 20000, "cpu.cfs_quota_us": 8000}, {"cpu.max": "8000 20000"}) as procs:
        run = profile("bash", "-c", f"echo $$ > {procs}; {then}", "bash", "bash", "-c",
                      "for ((i = 0; i < 200000; i++)); do :; done", options=["--as-root"])
        limit = run.profile["cpu_limit"]
        assert (limit["of"], limit["quota_secs"]) == (f"cgroup /{procs.parent.name}", 0.008), limit
        assert limit["cgroup_throttled_periods"] > 0 and limit["cgroup_throttled_secs"] > 0, limit


def test_more_threads_than_cpus(profile):
    """Of one process: it could have fewer."""
    run = profile(program("stalls"), "spin", 8, 1000, options=["--waits"])
    phase, stall, whole = thread_time(run.profile, "Stall")
    cpus = run.truth["cpus"]
    assert run.profile["cpu_limit"] == {"cpus": cpus}
    assert stall["cpu_wait_secs"] >= 0.9 * sum(stall.values()), (phase, stall)
    assert stall["cpu_wait_secs"] >= 0.9 * (8 - cpus) * phase["duration_secs"], (phase, stall)
    assert_all_time(run, whole, 8 * phase["duration_secs"], (phase, stall))
    assert f"it may use {cpus}" in slow(run), slow(run)


def test_a_lock(profile):
    run = profile(program("stalls"), "futex", 8, 500, options=["--waits"])
    phase, stall, whole = thread_time(run.profile, "Stall")
    # All but the thread that holds it, which others of the machine may keep from its CPU.
    assert stall["lock_wait_secs"] >= 0.9 * 7 * phase["duration_secs"], (phase, stall)
    assert_all_time(run, whole, 8 * phase["duration_secs"], (phase, stall))


def test_threads_that_come_and_go(profile):
    """Each adds its time as it exits, also that in which it had no CPU."""
    run = profile(program("stalls"), "short", 160, 5, options=["--waits"])
    _, stall, whole = thread_time(run.profile, "Stall")
    assert 0.98 * run.truth["inside"] - run.stolen_secs <= whole <= 1.02 * run.truth["outside"], (
        whole, run.stolen_secs, run.truth, stall)
    # The first thread waits for the others in futex(2).
    assert stall["cpu_wait_secs"] + stall["lock_wait_secs"] >= 0.9 * sum(stall.values()), stall


@pytest.fixture
def swap_file(disk):
    """What a memory cgroup of the test's own may swap to; nobody else has a need to."""
    path = disk / "swap"
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 64 << 20)
    path.chmod(0o600)
    if "SwapTotal:             0 kB" not in Path("/proc/meminfo").read_text(encoding="ascii"):
        pytest.skip("the machine has swap already: others may use it meanwhile")
    for command in (["mkswap", "-q", path], ["swapon", path]):
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"no swap file can be made here: {done.stderr}")
    yield
    subprocess.run(["swapoff", path], check=True)


def test_pages_from_swap(profile, swap_file):
    """Each page that a fault brings in counts, and none that is given back."""
    with cgroup("memory", {"memory.limit_in_bytes": 8 << 20}, {"memory.max": 8 << 20}) as procs:
        run = profile(program("stalls"), "swap", 24, 2, procs, options=["--waits", "--as-root"])
    phase, _, _ = thread_time(run.profile, "Stall")
    assert run.truth["swapped"] > 2000, f"24 MiB in 8 MiB: {run.truth}"
    # Its own code and stack may come and go, too.
    assert run.truth["swapped"] <= phase["swap_ins"] <= run.truth["swapped"] + 200, (run.truth, phase)
    # At its end it gives back what is in swap.
    assert run.profile["total_swap_ins"] <= phase["swap_ins"] + 200, (run.profile["total_swap_ins"], phase)
    assert phase["storage_wait_secs"] > 0, phase


NOT_TO_BE_ATTACHED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
void *bpf_program__attach_raw_tracepoint(const void *program, const char *name)
{
	void *(*attach)(const void *, const char *) = dlsym(RTLD_NEXT, "bpf_program__attach_raw_tracepoint");

	if (strcmp(name, "mm_compaction_end") && strcmp(name, "mm_vmscan_memcg_reclaim_begin"))
		return attach(program, name);
	errno = name[3] == 'c' ? ENOENT : EPERM;
	return NULL;
}
"""


def test_what_cannot_be_attached_is_said(profile, tmp_path):
    (tmp_path / "shim.c").write_text(NOT_TO_BE_ATTACHED, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "shim.so", tmp_path / "shim.c"], check=True)
    notes = profile("true", env={"LD_PRELOAD": str(tmp_path / "shim.so")}).profile["quality"]["notes"]
    assert ("reclaim lacks what these events would tell: mm_vmscan_memcg_reclaim_begin (Operation not permitted), "
            "mm_compaction_end (not in this kernel)") in notes, notes
    assert not any("reclaim lacks" in note for note in profile("true").profile["quality"]["notes"])


def test_what_it_costs_is_said(profile):
    """Of the kernel's own count of BPF programs, the part at context switches; none without the option."""
    with_it = profile(program("stalls"), "short", 160, 1, options=["--waits", "--cost"])
    cost, totals = with_it.profile["quality"]["cost"], with_it.profile
    switches = totals["total_voluntary_switches"] + totals["total_involuntary_switches"]
    # Each switch of the tree, and the wake-ups after those that began a sleep; and what others of the machine do.
    assert cost["bpf_switches"] >= switches > 0, (cost, switches)
    assert 0 < cost["bpf_switch_time_secs"] <= cost["bpf_run_time_secs"], cost
    assert cost["bpf_switches"] < cost["bpf_runs"], cost
    without = profile(program("stalls"), "short", 160, 1, options=["--cost"]).profile["quality"]["cost"]
    assert "bpf_switches" not in without, without
