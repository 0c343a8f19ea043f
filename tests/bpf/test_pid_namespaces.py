# SPDX-License-Identifier: GPL-2.0-only
"""Runs, attaches and audits in a nested pid namespace, as in any container: pids are those that ps
shows there.

What a test does in there is a Python program of its own, with this directory's harness; it prints
what it saw as JSON. Its numbers are of the innermost namespace; /proc's may be of one further out.
"""

import json
import subprocess
from pathlib import Path

import pytest

from harness import (CLEAN_ENV, DEADLINE, MIB, PYTHON, QPROF, QPROF_PACKAGE, assert_near,
                     assert_nothing_lost, ending, job_of, keeps_faults_back, parse, process_of, program, rows,
                     run_qprof, step_names, wait_for)

TREE = 2 * MIB  # what programs touch after they have stated their truth
LAGGING = 4 * MIB  # and where threads keep page faults back

NEST = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
WITHOUT_PROC = NEST[:-1]

# What is in front of a program that is to run in there.
PLACES = {"nested": NEST, "two levels": NEST + NEST, "proc of outside": WITHOUT_PROC,
          "proc of one level up": NEST + WITHOUT_PROC}

HELPERS = """
import json, os, signal, subprocess, sys
from harness import *

def seen(pid):
    '''What /proc calls a process that is pid here.'''
    fd = os.pidfd_open(pid)
    with open(f"/proc/self/fdinfo/{fd}") as info:
        number = [int(line.split()[1]) for line in info if line.startswith("Pid:")]
    os.close(fd)
    return number[0]
"""


def in_place(place, tmp_path):
    def run(text, *arguments):
        path = tmp_path / "inside.py"
        path.write_text(HELPERS + text)
        env = {**CLEAN_ENV, **QPROF_PACKAGE, "PYTHONPATH": f"{Path(__file__).parent}:{QPROF_PACKAGE['PYTHONPATH']}",
               "QPROF_BUILD": str(QPROF.parent)}
        done = subprocess.run([*place, PYTHON, str(path), *map(str, arguments)], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE,
                              check=False)
        assert done.returncode == 0, f"{place}: {done.stderr.decode()[-3000:]}"
        return json.loads(done.stdout.decode().splitlines()[-1])
    run.own_proc = place[-1] == "--mount-proc"
    run.levels = place.count("--pid")
    return run


@pytest.fixture(params=PLACES.values(), ids=[name.replace(" ", "_") for name in PLACES])
def inside(request, tmp_path):
    """inside(text, *arguments): what a Python program prints as JSON that runs in such a place."""
    return in_place(request.param, tmp_path)


@pytest.fixture(params=[NEST, NEST + NEST], ids=["nested", "two_levels"])
def inside_with_proc(request, tmp_path):
    """Likewise, only where programs find their children in /proc."""
    return in_place(request.param, tmp_path)


def tree_bytes(profile):
    """How far off a peak may be."""
    return LAGGING if keeps_faults_back(profile) else TREE


RUN = """
run = profile_command(sys.argv[1], *sys.argv[2:])
print(json.dumps({"truth": run.truth, "self": os.getpid(), "stderr": run.stderr}))
"""


def test_run(inside_with_proc, out):
    """A tree of processes: its peak, and each one's pid, parent and end as it knows them."""
    told = inside_with_proc(RUN, out, program("tree"), "overlapping", 32, 3)
    profile, truth = parse(out), told["truth"]
    assert_near("peak_memory_mb", profile["peak_memory_mb"], truth["peak_bytes"], tree_bytes(profile))
    assert_near("main_peak_memory_mb", profile["main_peak_memory_mb"], truth["parts"][0], tree_bytes(profile))
    assert len(profile["processes"]) == 4, profile["processes"]
    root = profile["processes"][0]
    assert root["pid"] == rows(profile, ends=True)[0]["pid"]
    for child, rss in zip(truth["children"], truth["parts"][1:]):
        [found] = process_of(profile, child["pid"])
        assert_near("a child's peak", found["peak_memory_mb"], rss, tree_bytes(profile))
        assert found["ppid"] == root["pid"], found
        assert ending(found) == child["ends"]
    assert_nothing_lost(profile)


MARKS = """
import qprof, threading
def seen_tid():
    return int(os.readlink("/proc/thread-self").split("/")[-1])
def work():
    qprof.mark("in a thread")
    tids.append(seen_tid())
tids = []
qprof.mark("parent")
thread = threading.Thread(target=work)
thread.start()
thread.join()
pid = os.fork()
if not pid:
    qprof.mark("child")
    kept = bytearray(b"x") * (64 << 20)
    del kept
    qprof.mark("after")
    os._exit(5)
os.waitpid(pid, 0)
print(json.dumps({"own": int(os.readlink("/proc/self")), "tids": tids}))
"""


def test_marks(inside, out, tmp_path):
    """Steps have the pid and the tid that /proc has for who said them; their bytes and peaks count."""
    path = tmp_path / "marks.py"
    path.write_text("import json, os\n" + MARKS)
    told = inside(RUN, out, PYTHON, path)
    profile, truth = parse(out), told["truth"]
    assert step_names(profile) == ["parent", "in a thread", "child", "after"]
    first, second, child, after = rows(profile)
    assert (first["pid"], first["tid"]) == (truth["own"], truth["own"])
    assert (second["pid"], second["tid"]) == (truth["own"], truth["tids"][0])
    assert child["pid"] == after["pid"] == profile["processes"][1]["pid"] != truth["own"]
    assert after["step_peak_memory_mb"] >= child["cpu_memory_mb"] + 63
    assert profile["total_io_read_mb"] > 0.1, "Python has read its modules"
    forked = profile["processes"][1]
    assert (forked["ppid"], ending(forked)) == (truth["own"], 5), forked
    assert forked["peak_memory_mb"] > 64, forked
    assert_nothing_lost(profile)


ATTACH = """
one = Target("mark:one", "touch:64", "exit:3")
with Attached(sys.argv[1], seen(one.pid)) as attached:
    pid = seen(one.pid)
    one.go()
    truth = one.go()["rss_bytes"]
    one.tell()
    assert one.wait() == 3
    attached.finished()
print(json.dumps({"pid": pid, "rss_bytes": truth}))
"""


def test_attach(inside, out):
    told = inside(ATTACH, out)
    profile = parse(out)
    assert profile["qprof"]["pids"] == [told["pid"]]
    assert step_names(profile) == ["one"]
    assert rows(profile)[0]["pid"] == rows(profile)[0]["tid"] == told["pid"]
    assert_near("peak_memory_mb", profile["peak_memory_mb"], told["rss_bytes"], tree_bytes(profile))
    [process] = process_of(profile, told["pid"])
    assert ending(process) == 3
    assert "touch:64" in process["cmdline"]


ATTACH_TREE = """
shell = subprocess.Popen(["sh", "-c", f"sh -c '{program('idle')} mark:deep; :' & wait; :"],
                         stdout=subprocess.PIPE, env=CLEAN_ENV)
idle = json.loads(Lines(shell.stdout).next())["ready"]
pids = [seen(shell.pid), seen(idle)]
with Attached(sys.argv[1], pids[0]) as attached:
    os.kill(idle, signal.SIGUSR1)
    assert shell.wait(DEADLINE) == 0
    attached.finished()
print(json.dumps({"pids": pids}))
"""


def test_attach_finds_descendants(inside, out):
    told = inside(ATTACH_TREE, out)
    profile = parse(out)
    assert step_names(profile) == ["deep"]
    assert rows(profile)[0]["pid"] == told["pids"][1]
    assert len(profile["processes"]) == 3, profile["processes"]
    assert {process["ppid"] for process in profile["processes"][1:]} <= {
        process["pid"] for process in profile["processes"]}


STOP = """
one = Target("touch:16", "mark:never")
with Attached(sys.argv[1], seen(one.pid)) as attached:
    one.go()
    attached.stop()
print(json.dumps({"pid": seen(one.pid)}))
"""


def test_attach_ends_by_a_signal(inside, out):
    told = inside(STOP, out)
    profile = parse(out)
    assert step_names(profile, ends=True) == ["Start", "End"]
    assert rows(profile, ends=True)[-1]["pid"] == told["pid"]
    assert profile["peak_memory_mb"] > 16


AUDIT = """
script = "read go; i=0; while [ $i -lt 3 ]; do (exit 4); i=$((i+1)); done; exit 9"
one = Target("mark:first", "touch:32", "mark:last", "exit:3")
with Audit(sys.argv[1]) as running:
    pid, ours = seen(one.pid), int(os.readlink("/proc/self"))
    own, shown = os.readlink("/proc/self/ns/pid"), set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/ns/pid") == own:
                shown.add(int(name))
        except OSError:
            pass  # it has gone
    auditor = seen(running.process.pid)
    for _ in range(3):
        one.go()
    one.tell()
    assert one.wait() == 3
    shell = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE)
    shell_pid = seen(shell.pid)
    shell.communicate(b"go\\n")
    assert shell.returncode == 9
    running.stop()
print(json.dumps({"pid": pid, "shown": sorted(shown - {auditor}), "self": ours,
                  "shell": shell_pid}))
"""


def test_audit(inside, out):
    """Every process of that namespace is in, and nobody else; a job is as any."""
    told = inside(AUDIT, out)
    report = parse(out)
    found = {process["pid"] for process in report["processes"]}
    missing = set(told["shown"]) - found
    assert told["self"] in found and told["pid"] in found, f"{told} in {found}"
    assert not missing, f"{missing} are in that namespace, and not in {found}"
    # Since then a shell has come, with three children.
    assert len(found) == len(told["shown"]) + 4, f"{found} where there were {told['shown']}"
    job = job_of(report, told["pid"])
    assert step_names(job, ends=True) == ["Start", "first", "last", "End"]
    assert job["peak_memory_mb"] > 32
    [process] = process_of(report, told["pid"])
    assert ending(process) == 3
    children = [p for p in report["processes"] if p["ppid"] == told["shell"]]
    assert sorted(ending(child) for child in children) == [4, 4, 4], children


OUTSIDE = """
done = run_qprof("-p", sys.argv[1], "-o", sys.argv[2])
print(json.dumps({"status": done.returncode, "stderr": done.stderr}))
"""


def test_a_process_outside_is_refused(inside, out, target):
    """One line: there is no such process in there, or it cannot be watched from in there."""
    one = target("mark:never")
    told = inside(OUTSIDE, one.pid, out)
    assert told["status"] == 125
    lines = told["stderr"].splitlines()
    assert len(lines) == 1, told["stderr"]
    assert "no process" in lines[0] or "outside" in lines[0], lines[0]


def test_doctor_says_where_it_is(inside):
    told = inside("""
done = run_qprof("doctor")
print(json.dumps({"status": done.returncode, "text": done.stdout}))
""")
    assert told["status"] == 0, told["text"]
    line = [line for line in told["text"].splitlines() if "pid namespace" in line]
    assert len(line) == 1, told["text"]
    assert f"nested, level {inside.levels}:" in line[0], line


def test_doctor_outside():
    line = [line for line in run_qprof("doctor").stdout.splitlines() if "pid namespace" in line]
    assert len(line) == 1 and "nested" not in line[0], line


@pytest.mark.parametrize("arguments", [("--", "true"), ("-p", "1"), ("-a", "-d", "1")])
def test_a_proc_of_another_namespace_is_refused(out, arguments):
    """/proc shows a namespace that we are not in: nothing could be looked up."""
    with subprocess.Popen([*NEST, "sleep", "1000"], env=CLEAN_ENV) as nest:
        def child():
            text = Path(f"/proc/{nest.pid}/task/{nest.pid}/children").read_text(encoding="ascii")
            return text.split()
        [sleeper] = wait_for(child, "the namespace")
        wait_for(lambda: Path(f"/proc/{sleeper}/comm").read_text(encoding="ascii") == "sleep\n",
                 "its program")
        run = run_qprof("-o", out, *arguments, through=("nsenter", "-t", sleeper, "-m"))
        nest.kill()
    assert run.returncode == 125, run
    lines = [line for line in run.stderr.splitlines() if "is not installed" not in line]
    assert len(lines) == 1 and "/proc" in lines[0] and "pid namespace" in lines[0], run
