# SPDX-License-Identifier: GPL-2.0-only
"""What threads sleep for in an audit: in its report, its events and its metrics; in none of them without --waits."""

import subprocess

import pytest

from exporting import Metrics
from harness import CLEAN_ENV, PYTHON, QPROF_PACKAGE, Audit, job_of, process_of, program, wait_for
from test_audit_events import of_kind, only, parse_line
from test_waits import READS

THREADS, MS = 4, 500
WAITS = ("storage_wait", "lock_wait", "sleep", "gpu_wait")


def events_of(path, pid):
    """Those of one process: others of the machine may have thousands meanwhile."""
    about = f'"pid":{pid},'
    return [parse_line(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1] if about in line]


class Waits:
    """An audit with all that it can write."""

    def __init__(self, folder, *options):
        self.report, self.events, self.metrics = (folder / name for name in (
            "audit.yaml", "events.ndjson", "metrics.prom"))
        self.audit = Audit(self.report, ("--events-file", self.events, "--metrics-file", self.metrics, *options))

    def run(self, *command, env=()):
        """A program that ends well. Its pid, once the audit has told of its end."""
        done = subprocess.Popen(command, env=CLEAN_ENV | dict(env), stdout=subprocess.DEVNULL)
        assert done.wait() == 0, command
        wait_for(lambda: of_kind(events_of(self.events, done.pid), "process_exit"), "the end of the process")
        return done.pid

    def run_as_job(self, *command):
        """Again until its probes are there from the start: no process waits for an audit."""
        def ran():
            pid = self.run(*command)
            steps = [event["step"] for event in of_kind(events_of(self.events, pid), "checkpoint")]
            return pid if "Stall Start" in steps else None
        return wait_for(ran, "a job from its start on")

    def stopped(self):
        return self.audit.stop(), self.events, Metrics(self.metrics.read_text(encoding="utf-8"))


def assert_agree(report, events, metrics, pid):
    """The three of the same process, or of all processes of that name."""
    process, = process_of(report, pid)
    event = only(events_of(events, pid), "process_exit")
    namesakes = [other for other in report["processes"] if other["comm"] == process["comm"]]
    for stem in WAITS:
        assert event.get(f"{stem}_ns", 0) / 1e9 == near(process.get(f"{stem}_secs", 0)), (stem, process, event)
        told = sum(metrics.of(f"qprof_process_{stem}_seconds_total", command=process["comm"]))
        # What each did between its fork and its exec is its parent's command's.
        assert told == pytest.approx(sum(other.get(f"{stem}_secs", 0) for other in namesakes), rel=0.02, abs=0.02), stem
    return process


def near(secs):
    return pytest.approx(secs, rel=0.001, abs=0.001)


def test_a_lock_and_storage(tmp_path, slow_weights):
    one = Waits(tmp_path, "--waits")
    (tmp_path / "reads.py").write_text(READS, encoding="utf-8")
    with one.audit:
        locks = one.run_as_job(program("stalls"), "futex", str(THREADS), str(MS))
        reads = one.run(PYTHON, tmp_path / "reads.py", *slow_weights, env=QPROF_PACKAGE)
        report, events, metrics = one.stopped()
    process = assert_agree(report, events, metrics, locks)
    job, reader = job_of(report, locks), process_of(report, reads)[0]
    phase, = [phase for phase in job["phases"] if phase["name"] == "Stall"]
    assert phase["lock_wait_secs"] >= 0.9 * (THREADS - 1) * phase["duration_secs"], phase
    assert phase["lock_wait_secs"] <= job["total_lock_wait_secs"] <= process["lock_wait_secs"] + 1e-3, (job, process)
    # 8 MiB at 10 MiB/s.
    assert reader["storage_wait_secs"] > 0.3 and reader["storage_wait_secs"] > reader.get("lock_wait_secs", 0), reader
    assert reader["storage_wait_secs"] == near(only(events_of(events, reads), "process_exit")["storage_wait_ns"] / 1e9)
    for key in ("lock_wait_secs", "storage_wait_secs", "sleep_secs"):
        of_users = sum(user.get(key, 0) for user in report["users"])
        assert of_users >= reader.get(key, 0) + process.get(key, 0) - 1e-3, (key, report["users"])
        assert metrics.one(f"qprof_{key[:-5]}_seconds_total") >= reader.get(key, 0), key


def test_a_gpu(tmp_path):
    """Of the library that is in place of the driver's: threads that sleep in it wait for the GPU, not for a lock."""
    one = Waits(tmp_path, "--waits")
    with one.audit:
        def ran():
            pid = one.run(program("gpu_waits"), "many", str(THREADS), str(MS))
            event = only(events_of(one.events, pid), "process_exit")
            return pid if event.get("gpu_wait_ns", 0) > 0.5 * (THREADS - 1) * MS * 1e6 else None
        pid = wait_for(ran, "a process whose calls are seen from the start on")
        assert_agree(*one.stopped(), pid)


def keys_of(value):
    """Of all mappings in it: a command line may have any word."""
    if isinstance(value, dict):
        return [*value, *(key for inner in value.values() for key in keys_of(inner))]
    return [key for inner in value for key in keys_of(inner)] if isinstance(value, list) else []


def test_without_the_option(tmp_path):
    """What nobody looked for is no 0."""
    one = Waits(tmp_path)
    with one.audit:
        pid = one.run(program("stalls"), "futex", str(THREADS), "50")
        report, events, metrics = one.stopped()
    names = [*keys_of(report), *keys_of(events_of(events, pid)), *(name for name, _ in metrics)]
    assert not [name for name in names if any(f"{stem}_" in name for stem in WAITS)], names
