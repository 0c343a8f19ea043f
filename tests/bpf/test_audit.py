# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf -a: every process of the machine, and the jobs among them.

Other processes of the machine are in the report, too: each test looks for its own.
"""

import json
import os
import re
import signal
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import harness
from exporting import Metrics
from harness import (AS_NOBODY, MIB, NOBODY, QPROF, Audit, Load, Target, assert_near, ending,
                     job_of, process_of, program, quality, reconcile, run_qprof, step_names,
                     wait_for)

CONTAINER = "3f2a8c1d9e4b5a6f7081920a1b2c3d4e5f60718293a4b5c6d7e8f9012345abcd"

# Counts of what was not kept, or came from other processes of the machine.
NO_LOSS = harness.NO_LOSS | {"dropped_rows", "dropped_phases", "late_probes", "unreadable_names",
                             "dropped_metrics", "unreadable_metrics", "limited_checkpoints",
                             "forgotten_processes", "limited_searches"}


def losses(report):
    return {key: n for key, n in quality(report).items() if n and key not in NO_LOSS}


@pytest.fixture
def audit(tmp_path):
    """with audit(*options) as running: every process is in."""
    def start(*options):
        return Audit(tmp_path / "audit.yaml", options)
    return start


def searched(one, path=None):
    """Until the probes of a program that has just started are there: nobody waits for that."""
    wait_for(lambda: all(byte != harness.NOP for byte in harness.probe_bytes(
        one.pid, path or program("idle"))), "probes in the program")


def group_of(report, key, name):
    word = {"users": "user", "containers": "container"}[key]
    found = [group for group in report[key] if group[word] == name]
    assert len(found) == 1, f"expected one of {name!r} in {key}, got {report[key]}"
    return found[0]


def test_job_has_hugetlb_memory(audit, target, huge_pages, tmp_path):
    """Of a process alone, and of it and its child, which has its parent's pages."""
    huge_pages(4)
    with audit("--metrics-file", tmp_path / "now.prom", "--metrics-interval", "1s") as running:
        one = target("mark:first", "huge:4", "mark:second", "child:1", "exit:0")
        searched(one)
        one.go()
        size = one.go()["hugetlb_bytes"] / MIB
        one.go()
        wait_for(lambda: Metrics((tmp_path / "now.prom").read_text()).of(
            "qprof_process_hugetlb_memory_bytes", job_name="idle") == [size * MIB], "the metric")
        one.go()
        one.tell()
        assert one.wait() == 0
        report = running.stop()
    assert size == 4 * harness.meminfo("Hugepagesize") / 1024
    job = job_of(report, one.pid)
    got = {row["step"]: row.get("hugetlb_mb", 0) for row in job["memory_usage"]}
    end = size if harness.keeps_memory_at_exit(job) else 0
    assert got == {"Start": 0, "first": 0, "second": size, "in child": 2 * size, "End": end}
    assert job["peak_hugetlb_mb"] == 2 * size
    [process] = process_of(report, one.pid)
    assert process["peak_hugetlb_mb"] == size


def test_job_has_rows_and_phases_and_its_children(audit, target):
    with audit() as running:
        one = target("mark:first", "touch:8", "child:16", "mark:last", "exit:3")
        searched(one)
        for _ in range(4):
            one.go()
        one.tell()
        assert one.wait() == 3
        report = running.stop()
    job = job_of(report, one.pid)
    assert step_names(job, ends=True) == ["Start", "first", "in child", "last", "End"]
    assert job["processes"] == 2 and job["processes_alive"] == 0
    assert job["end_secs"] > job["start_secs"]
    assert [phase["name"] for phase in job["phases"]] == ["Start", "first", "in child", "last"]
    peak = job["peak_memory_mb"]
    rows = {row["step"]: row for row in job["memory_usage"]}
    grown = rows["in child"]["cpu_memory_mb"] - rows["first"]["cpu_memory_mb"]
    # RSS counts what the child has inherited, too.
    assert 8 + 8 + 16 <= grown < 36, f"8 MiB here, as many and 16 in the child, got {grown}"
    assert peak >= rows["in child"]["cpu_memory_mb"]
    assert job["main_peak_memory_mb"] < peak - 14, "the child is not in the first process's peak"
    # 8 here and 16 in the child; the 8 that it inherited are the same pages.
    assert 24 <= job["peak_at_least_mb"] <= peak - 8, job["peak_at_least_mb"]
    [process] = process_of(report, one.pid)
    assert process["job"] == job["id"]
    assert ending(process) == 3
    assert job["command"].startswith(program("idle"))
    assert losses(report) == {}


def test_jobs_that_end_as_it_does(audit, target):
    """Each has its last row, also where the root is in the middle of its exit, on another CPU."""
    for _ in range(4):
        with audit() as running:
            all_of_them = [target("mark:A", "mark:B") for _ in range(16)]
            for one in all_of_them:
                searched(one)
                one.go()
            for one in all_of_them:
                one.tell()
            report = running.stop()
        for one in all_of_them:
            names = step_names(job_of(report, one.pid), ends=True)
            assert (names[:2], names[-1]) == (["Start", "A"], "End"), names
        # A mark B whose place in the ring is behind that of the end is missing, and counted.
        assert losses(report).keys() <= {"missing_checkpoints"}, report["quality"]


def test_two_jobs_at_once_are_apart(audit, target):
    with audit() as running:
        one, two = target("mark:A", "touch:32", "mark:B"), target("mark:C", "touch:4", "mark:D")
        searched(two)
        for _ in range(3):
            one.go()
            two.go()
        report = running.stop()
    first, second = job_of(report, one.pid), job_of(report, two.pid)
    assert step_names(first) == ["A", "B"]
    assert step_names(second) == ["C", "D"]
    assert first["id"] != second["id"]
    for job, size in ((first, 32), (second, 4)):
        grown = job["memory_usage"][2]["cpu_memory_mb"] - job["memory_usage"][1]["cpu_memory_mb"]
        assert size <= round(grown, 2) < size + 1, f"touched {size} MiB, the row says {grown}"


def test_descendants_from_before_are_of_the_job(audit):
    # The shell forks, then becomes the program: at its first checkpoint it has a grandchild.
    script = f"bash -c 'sleep 1000 & wait' & exec {program('idle')} mark:late child:4 mark:end wait"
    with audit() as running:
        one = Target("-c", script, path="bash")
        try:
            children = Path(f"/proc/{one.pid}/task/{one.pid}/children")
            child = int(wait_for(children.read_text, "a child").split()[0])
            grandchildren = Path(f"/proc/{child}/task/{child}/children")
            grandchild = int(wait_for(grandchildren.read_text, "a grandchild").split()[0])
            searched(one)
            for _ in range(3):
                one.go()
            report = running.stop()
        finally:
            one.__exit__()
            subprocess.run(["pkill", "-P", str(child)], check=False)
    job = job_of(report, one.pid)
    assert step_names(job) == ["late", "in child", "end"]
    for pid in (one.pid, child, grandchild):
        assert process_of(report, pid)[-1].get("job") == job["id"], f"{pid} is not in the job"
    assert job["processes"] == 4
    # They are told to join when the job was heard of: at the end, at the latest, they have.
    sizes = sum(process_of(report, pid)[-1]["memory_mb"] for pid in (one.pid, child, grandchild))
    assert_near("memory of the job", job["memory_usage"][-1]["cpu_memory_mb"], sizes * MIB, MIB)
    assert quality(report)["missed_joins"] == 0


def test_existing_processes_are_in_from_the_start(audit, target):
    one = target("touch:24", "mark:now", "touch:8", "wait")
    one.go()
    with audit() as running:
        one.go()
        one.go()
        report = running.stop()
    [process] = process_of(report, one.pid)
    assert "attached" in process["flags"]
    assert process["start_secs"] == 0
    assert process["cmdline"].endswith("mark:now touch:8 wait")
    assert process["end_secs"] is None
    assert process["memory_mb"] > 32
    # The first checkpoint is in: the file was searched before the audit said that it began.
    assert step_names(job_of(report, one.pid)) == ["now"]
    me = process_of(report, os.getpid())
    assert me and me[0]["memory_mb"] > 5, "the test itself is a process of the machine"


def test_totals_of_a_running_job_are_as_of_the_end(audit, target, tmp_path):
    data = tmp_path / "data"
    data.write_bytes(bytes(5 * MIB))
    with audit() as running:
        one = target("mark:before", f"read:{data}", "wait")
        searched(one)
        one.go()
        one.go()  # no checkpoint comes after it
        report = running.stop()
    job = job_of(report, one.pid)
    assert job["end_secs"] is None
    assert step_names(job, ends=True)[-1] == "End"
    assert 5 <= job["total_io_read_mb"] < 5.1
    [process] = process_of(report, one.pid)
    assert 5 <= process["io_read_mb"] < 5.1


def test_ended_processes_are_reported(audit):
    with audit() as running:
        ended = [subprocess.Popen(["bash", "-c", f"exit {status}"]) for status in range(5)]
        killed = subprocess.Popen(["sleep", "1000"])
        killed.send_signal(signal.SIGKILL)
        for process in (*ended, killed):
            process.wait()
        report = running.stop()
    for status, process in enumerate(ended):
        [found] = process_of(report, process.pid)
        assert ending(found) == status
        assert found["cmdline"] == f"bash -c exit {status}"
        assert found["memory_mb"] == 0
        assert found["peak_memory_mb"] > 0.5
        assert found["start_secs"] < found["end_secs"]
    [found] = process_of(report, killed.pid)
    assert ending(found) == -signal.SIGKILL


def test_program_that_starts_later_is_searched(audit, target):
    """A new binary is found as it starts; the next process of it loses nothing."""
    with audit() as running:
        searched(target())
        one = target("mark:one", "mark:two")
        one.go()
        one.go()
        report = running.stop()
    assert losses(report) == {}
    assert step_names(job_of(report, one.pid)) == ["one", "two"], report["quality"]
    assert quality(report)["late_probes"] >= 1


def test_first_mark_of_the_library_is_not_missed(audit):
    """libqprof.so is searched before anyone loads it, since nobody waits."""
    marks = "import qprof; qprof.mark('one'); qprof.mark('two')"
    with audit() as running:
        with subprocess.Popen([harness.PYTHON, "-c", marks],
                              env={**os.environ, **harness.QPROF_PACKAGE}) as python:
            assert python.wait(harness.DEADLINE) == 0
        report = running.stop()
    assert step_names(job_of(report, python.pid)) == ["one", "two"]


@contextmanager
def container(name=f"docker-{CONTAINER}.scope"):
    """A cgroup that looks like a container's. What is to be put before a command to run in it."""
    mount = next((line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()
                  if line.split()[2] == "cgroup2"), None)
    if not mount:
        pytest.skip("no cgroup2 hierarchy is mounted")
    path = Path(mount) / f"qprof-test-{os.getpid()}" / name
    path.mkdir(parents=True)
    try:
        yield ("bash", "-c", f'echo $$ > {path}/cgroup.procs; exec "$@"', "bash"), path
    finally:
        wait_for(lambda: not (path / "cgroup.procs").read_text(), "the cgroup to be empty")
        path.rmdir()
        path.parent.rmdir()


def test_container_user_and_command(audit):
    with container() as (inside, path), harness.public_dir() as public, audit() as running:
        copy = public / "idle"
        copy.write_bytes(Path(program("idle")).read_bytes())
        copy.chmod(0o755)
        with Target("mark:here", "touch:4", path=str(copy), prefix=(*inside, *AS_NOBODY)) as one:
            searched(one, copy)
            one.go()
            one.go()
            report = running.stop()
    user = subprocess.run(["id", "-un", str(NOBODY)], capture_output=True, text=True,
                          check=True).stdout.strip()
    job = job_of(report, one.pid)
    [process] = process_of(report, one.pid)
    for found in (job, process):
        assert found["container"] == CONTAINER
        assert found["runtime"] == "docker"
        assert found["uid"] == NOBODY and found["user"] == user
        assert found["cgroup"].endswith(path.name)
    group = group_of(report, "containers", CONTAINER)
    assert group["jobs"] == 1 and group["processes"] >= 1
    assert group["memory_mb"] == process["memory_mb"]
    assert group_of(report, "users", user)["jobs"] == 1
    assert group_of(report, "containers", None)["processes"] > 1


def test_cgroup_that_is_gone_is_still_known(audit, tmp_path):
    """It was asked for when the process was heard of."""
    events = tmp_path / "events.ndjson"
    with audit("--events-file", events) as running:
        with container() as (inside, _):
            one = subprocess.Popen([*inside, "sh", "-c", "exit 7"])
            one.wait()
            wait_for(lambda: any('"process_exit"' in line and f'"pid":{one.pid},' in line
                                 for line in events.read_text().splitlines()), "its end")
        report = running.stop()
    [process] = process_of(report, one.pid)
    assert ending(process) == 7
    assert process.get("container") == CONTAINER


def loops_of(greedy):
    greedy.tell()
    return json.loads(greedy.lines.until("loops"))["loops"]


def test_rate_of_checkpoints_is_limited_for_each(audit, target):
    limit = 10
    with audit("--checkpoint-limit", limit) as running:
        greedy, modest = target("loop"), target("mark:1", "mark:2", "mark:3")
        for one in (greedy, modest):  # in one process after the other
            searched(one)
        greedy.tell()
        greedy.lines.until("loop")
        for _ in range(3):
            modest.go()
        loops = wait_for(lambda: (n := loops_of(greedy)) > 50 * limit and n, "many loops")
        report = running.stop()
    job = job_of(report, greedy.pid)
    seconds = job["total_quantization_time_seconds"]
    assert job["checkpoints"] <= (seconds + 2) * limit + 2, f"{job['checkpoints']} in {seconds} s"
    # Those of others on the machine may be in it, too.
    assert quality(report)["limited_checkpoints"] >= loops - job["checkpoints"]
    assert step_names(job_of(report, modest.pid)) == ["1", "2", "3"]


def test_rows_of_a_job_are_bounded(audit, tmp_path):
    with Load(tmp_path / "truth", checkpoints=20000, workers=2) as load, audit() as running:
        load.go()
        load.finished()
        report = running.stop()
    for pid, checkpoints in load.truth("worker"):
        job = job_of(report, pid)
        assert checkpoints > 5000
        assert job["checkpoints"] == checkpoints + 2
        assert len(job["memory_usage"]) == 1000
        assert job["dropped_rows"] == checkpoints + 2 - 1000
        assert step_names(job, ends=True)[-1] == "End"
        assert len(job["phases"]) <= 1000


def test_busy_machine_reconciles_with_its_truth(audit, tmp_path):
    with Load(tmp_path / "truth", idle=200, forks=200, checkpoints=10000, workers=8,
              seconds=3) as load:
        with audit() as running:
            load.go()
            load.finished()
            report = running.stop()
    wrong = reconcile(report, load)
    assert not wrong, f"{len(wrong)} are wrong, such as {wrong[:3]}"
    assert losses(report) == {}


def test_more_processes_than_are_kept_are_summed(audit, tmp_path):
    with Load(tmp_path / "truth", forks=300, seconds=5) as load, audit("--max-processes", 800) as r:
        load.go()
        load.finished()
        report = r.stop()
    forgotten = quality(report)["forgotten_processes"]
    assert not quality(report)["untracked_processes"], "expected fewer than 800 alive at a time"
    assert len(report["processes"]) <= 800
    assert forgotten > 300
    written = sum(written for _, _, written in load.truth("child"))
    me = group_of(report, "users", "root")
    # Others of root's may have written, too; none of it is missing.
    assert me["io_write_mb"] * MIB >= written * 0.999
    assert report["qprof"]["processes"] == len(report["processes"]) + forgotten


def churn(running, load_path, seconds):
    with Load(load_path, forks=400, checkpoints=16, workers=8, seconds=seconds) as load:
        load.go()
        load.finished()
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1])


def test_memory_is_flat_under_churn(audit, tmp_path):
    """What does not depend on how much has ended: rounds of churn, each of which would show."""
    with audit("--max-processes", 500) as running:
        sizes = [churn(running, tmp_path / "truth", 3) for _ in range(4)]
        running.stop()
    assert sizes[-1] - sizes[0] < 1024, f"KiB after each round of 1,200 processes: {sizes}"


def test_storage_is_what_devices_and_processes_say(audit, disk):
    path = disk / "data"
    path.write_bytes(os.urandom(64 * MIB))
    subprocess.run(["sync", str(path)], check=True)
    with audit() as running:
        subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=1M", "iflag=direct"], check=True,
                       capture_output=True)
        subprocess.run(["dd", "if=/dev/zero", f"of={disk}/out", "bs=1M", "count=32",
                        "oflag=direct"], check=True, capture_output=True)
        report = running.stop()
    s = report["storage"]
    assert s["processes_read_mb"] >= 64 and s["processes_write_mb"] >= 32
    assert s["devices_read_mb"] >= 64 and s["devices_write_mb"] >= 32
    for way in ("read", "write"):
        left = s[f"devices_{way}_mb"] - s[f"processes_{way}_mb"]
        assert abs(left - s[f"unattributed_{way}_mb"]) <= 0.02
    assert sum(device["read_mb"] for device in s["devices"]) == pytest.approx(
        s["devices_read_mb"], abs=0.1)


def test_duration_ends_it(tmp_path):
    out = tmp_path / "audit.yaml"
    run = run_qprof("-a", "-d", "300ms", "-o", out)
    assert run.returncode == 0, run
    report = harness.parse(out)
    assert report["qprof"]["mode"] == "audit"
    assert 0.3 <= report["qprof"]["duration_secs"] < 60
    assert "audit of" in run.stderr and "USER" in run.stderr
    run = run_qprof("-q", "-d", "100ms", "-a", "-o", out)  # -a need not come first
    assert run.returncode == 0 and run.stderr == "", run


@pytest.mark.parametrize("arguments, says", [
    (("-a", "--", "true"), "takes no command"),
    (("-a", "-d", "soon"), "not a time"),
    (("-a", "--max-processes", "0"), "not a number"),
    (("-a", "--checkpoint-limit", "x"), "not a number"),
    (("-a", "-p", "1"), "option"),
])
def test_wrong_arguments_are_refused(arguments, says):
    run = run_qprof(*arguments)
    assert run.returncode == 125 and says in run.stderr, run


def test_hostile_names_are_data(tmp_path):
    """What a process calls itself neither breaks the file nor reaches the terminal as it is."""
    name = b"\x1b[2J\xff'\": - |\n# x" + b"\xe2\x80\xae" + b"A" * 5000
    out = tmp_path / "audit.yaml"
    one = subprocess.Popen([name, "1000"], executable="/bin/sleep")
    try:
        run = run_qprof("-a", "-d", "100ms", "-o", out)
    finally:
        one.kill()
        one.wait()
    assert run.returncode == 0, run
    [process] = process_of(harness.parse(out), one.pid)
    assert process["cmdline"].startswith("\x1b[2J\ufffd'\": - |\n# x\u202e")
    assert process["cmdline_cut"] is True
    assert "\x1b" not in run.stderr and "\u202e" not in run.stderr


def test_nothing_wakes_it_but_what_happens(audit, target):
    """Whoever forks, execs, exits or comes to a checkpoint wakes it. Nothing else does, but for rules:
    with them, who grows is looked at, ten times a second at most."""
    one = target(*["spike:64:1000"] * 5)
    harness.assert_rests(lambda: audit("--rules", "none"), one.go)  # page faults alone are no reason


def others_audit():
    """Whether another audit of this machine runs: it has probes in every program."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0].endswith(b"/qprof-bpf") and {b"-a", b"--all"} & set(words):
                return True
    return False


def test_killed_audit_leaves_no_probe_behind(audit, target):
    one = target("mark:a", "mark:b")
    with audit() as running:
        one.go()
        running.process.kill()
        running.process.wait()
    try:
        wait_for(lambda: all(byte == harness.NOP for byte in harness.probe_bytes(
            one.pid, program("idle"))), "the probes to be nops again")
    except AssertionError:
        if others_audit():
            pytest.skip("another audit of this machine has probes there, too")
        raise
    one.go()
