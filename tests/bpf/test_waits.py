# SPDX-License-Identifier: GPL-2.0-only
"""How long threads waited for a CPU: as /proc/PID/schedstat says, with threads and children that are gone."""

import pytest

from harness import assert_nothing_lost, process_of, row_of

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
