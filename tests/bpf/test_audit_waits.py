# SPDX-License-Identifier: GPL-2.0-only
"""What threads sleep for in an audit: in its report, its events and its metrics, and in none of them without --waits."""

import json
import subprocess

import pytest

from exporting import Metrics
from harness import CLEAN_ENV, PYTHON, QPROF_PACKAGE, Audit, job_of, process_of, program, wait_for
from test_audit_events import of_kind, only, read_events
from test_waits import READS

THREADS, MS = 4, 500
WAITS = ("storage_wait", "lock_wait", "sleep", "gpu_wait")


class Waits:
    """An audit with all that it can write."""

    def __init__(self, folder, *options):
        self.report, self.events, self.metrics = (folder / name for name in (
            "audit.yaml", "events.ndjson", "metrics.prom"))
        self.audit = Audit(self.report, ("--events-file", self.events, "--metrics-file", self.metrics,
                                         "--metrics-labels", "command,pid", *options))

    def run(self, *command, env=()):
        """A program that ends well. Its pid, once the audit has told of its end."""
        done = subprocess.Popen(command, env=CLEAN_ENV | dict(env), stdout=subprocess.DEVNULL)
        assert done.wait() == 0, command
        wait_for(lambda: of_kind(read_events(self.events), "process_exit", pid=done.pid), "the end of the process")
        return done.pid

    def run_as_job(self, *command):
        """Again until its probes are there from the start: no process waits for an audit."""
        def ran():
            pid = self.run(*command)
            steps = [event["step"] for event in of_kind(read_events(self.events), "checkpoint", pid=pid)]
            return pid if "Stall Start" in steps else None
        return wait_for(ran, "a job from its start on")

    def stopped(self):
        report = self.audit.stop()
        return report, read_events(self.events), Metrics(self.metrics.read_text(encoding="utf-8"))


def figures(report, events, metrics, pid):
    """In seconds, by stem: as each of the three has it of the process."""
    process, = process_of(report, pid)
    event = only(events, "process_exit", pid=pid)
    told = {stem: metrics.of(f"qprof_process_{stem}_seconds_total", pid=str(pid)) for stem in WAITS}
    return ({stem: process.get(f"{stem}_secs", 0) for stem in WAITS},
            {stem: event.get(f"{stem}_ns", 0) / 1e9 for stem in WAITS},
            {stem: sum(values) for stem, values in told.items()})


def near(secs):
    return pytest.approx(secs, rel=0.001, abs=0.001)


def test_a_lock_and_storage(tmp_path, slow_weights):
    one = Waits(tmp_path, "--waits")
    (tmp_path / "reads.py").write_text(READS, encoding="utf-8")
    with one.audit:
        locks = one.run_as_job(program("stalls"), "futex", str(THREADS), str(MS))
        reads = one.run(PYTHON, tmp_path / "reads.py", *slow_weights, env=QPROF_PACKAGE)
        report, events, metrics = one.stopped()
    for pid, most in ((locks, "lock_wait"), (reads, "storage_wait")):
        by_report, by_event, by_metric = figures(report, events, metrics, pid)
        assert by_event == near(by_report) and by_metric == near(by_report), (by_report, by_event, by_metric)
        assert by_report[most] == max(by_report.values()), by_report
    job, process = job_of(report, locks), process_of(report, locks)[0]
    phase, = [phase for phase in job["phases"] if phase["name"] == "Stall"]
    assert phase["lock_wait_secs"] >= 0.9 * (THREADS - 1) * phase["duration_secs"], phase
    assert phase["lock_wait_secs"] <= job["total_lock_wait_secs"] <= process["lock_wait_secs"] + 1e-3, (job, process)
    # 8 MiB at 10 MiB/s.
    assert process_of(report, reads)[0]["storage_wait_secs"] > 0.5, process_of(report, reads)
    for key in ("lock_wait_secs", "storage_wait_secs", "sleep_secs"):
        of_users = sum(user.get(key, 0) for user in report["users"])
        assert of_users >= process_of(report, reads)[0].get(key, 0) + process.get(key, 0) - 1e-3, (key, report["users"])
    for stem in ("lock_wait", "storage_wait", "sleep"):
        of_one = metrics.one(f"qprof_process_{stem}_seconds_total", pid=str(reads))
        assert metrics.one(f"qprof_{stem}_seconds_total") >= of_one, stem


def test_a_gpu(tmp_path):
    """Of the library that is in place of the driver's: threads that sleep in it wait for the GPU, not for a lock."""
    one = Waits(tmp_path, "--waits")
    with one.audit:
        def ran():
            pid = one.run(program("gpu_waits"), "many", str(THREADS), str(MS))
            event = only(read_events(one.events), "process_exit", pid=pid)
            return pid if event.get("gpu_wait_ns", 0) > 0.5 * (THREADS - 1) * MS * 1e6 else None
        pid = wait_for(ran, "a process whose calls are seen from the start on")
        by_report, by_event, by_metric = figures(*one.stopped(), pid)
    assert by_event == near(by_report) and by_metric == near(by_report), (by_report, by_event, by_metric)


def test_without_the_option(tmp_path):
    """What nobody looked for is no 0."""
    one = Waits(tmp_path)
    with one.audit:
        pid = one.run(program("stalls"), "futex", str(THREADS), "50")
        report, events, metrics = one.stopped()
    texts = json.dumps(report), json.dumps(of_kind(events, "process_exit", pid=pid)), " ".join(name for name, _ in metrics)
    assert not [stem for stem in WAITS for text in texts if f"{stem}_" in text], texts[1:]
