# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf -a --files: which files each job used, in events, the report, the table and the view."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from harness import (AS_NOBODY, CLEAN_ENV, MIB, PYTHON, QPROF, QPROF_PACKAGE, Audit, Lines, is_on_disk, job_of, losses, public_dir,
                     quality, wait_for)
from panes import Pane, rows
from serving import Service
from test_audit_events import of_kind, only, read_events
from test_audit_view import View
from test_audit_view_now import quiet_moment
from test_files import cold_file

READ, WRITTEN = "storage_read_bytes", "storage_written_bytes"
USERS = 128  # for whom files are counted at a time
MARKS = """
import json, os, sys
import qprof
def say(what):
    print(json.dumps(what), flush=True)
    return sys.stdin.readline()
def read(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
def write(path, size):
    with open(path, "wb", buffering=0) as file:
        file.write(b"w" * size)
"""
# It has a job, reads a file and writes one under another name, and waits between.
JOB = MARKS + """
qprof.mark("begun")
say("begun")
read(sys.argv[1])
write(sys.argv[2] + ".tmp", int(sys.argv[3]))
os.rename(sys.argv[2] + ".tmp", sys.argv[2])
say("done")
"""


@pytest.fixture
def work():
    with public_dir() as path:
        if not is_on_disk(path):
            pytest.skip(f"{path} is not on a disk: set TMPDIR")
        path.chmod(0o777)
        yield path


@pytest.fixture
def events(tmp_path):
    return tmp_path / "events.ndjson"


@pytest.fixture
def audit(tmp_path, events):
    def start(*options):
        return Audit(tmp_path / "audit.yaml", ("--files", "--events-file", events, *options))
    return start


class Script:
    """A Python program that says where it is, and goes on when it is told."""

    def __init__(self, code, *args, prefix=(), cwd=None):
        self.process = subprocess.Popen([*prefix, PYTHON, "-c", code, *map(str, args)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env={**CLEAN_ENV, **QPROF_PACKAGE}, cwd=cwd)
        self.pid = self.process.pid
        self.lines = Lines(self.process.stdout)

    def until(self, what):
        return json.loads(self.lines.until(json.dumps(what)))

    def tell(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def end(self):
        self.tell()
        self.process.stdin.close()
        assert self.process.wait(100) == 0
        self.process.stdout.close()


def wait_for_begin(events, *pids):
    """Until the audit has heard of the jobs: then their files are counted."""
    wait_for(lambda: {event["pid"] for event in of_kind(read_events(events), "job_begin")}.issuperset(pids), "the jobs' begins")


def let_work(job, events):
    """Has a job do its work once its files are counted."""
    job.until("begun")
    wait_for_begin(events, job.pid)
    job.tell()
    job.until("done")


def files_of(event):
    return {file["path"]: (file[READ], file[WRITTEN]) for file in event["files"]}


def check_report(report, pid, event):
    """It has what the event has, in MiB."""
    job = job_of(report, pid)
    assert [(file["path"], round(file["storage_read_mb"] * MIB), round(file["storage_written_mb"] * MIB)) for file in job["files"]
            ] == [(file["path"], file[READ], file[WRITTEN]) for file in event["files"]], (job, event)
    assert job["other_files"]["files"] == event["other_files"]["files"]
    assert abs(job["files_late_secs"] * 1e9 - event["files_late_ns"]) < 1000, (job, event)
    assert 0 <= event["files_late_ns"] < event["duration_ns"], event


def test_two_jobs_at_once(audit, events, work):
    """Each has its own files, by their last names, with their bytes; however they are called."""
    paths = [cold_file(work / f"model-{mib}", mib) for mib in (3, 5)]
    names = [work / "plain.bin", work / "two\nlines\x1b[31m\u202e.bin"]
    with audit() as running:
        jobs = [Script(JOB, path, name, size * MIB, prefix=prefix)
                for path, name, size, prefix in zip(paths, names, (2, 4), ((), AS_NOBODY))]
        for job in jobs:
            job.until("begun")
        wait_for_begin(events, *(job.pid for job in jobs))
        for job in jobs:
            job.tell()
        for job in jobs:
            job.until("done")
            job.end()
        report = running.stop()
    for job, path, name, sizes in zip(jobs, paths, names, ((3, 2), (5, 4))):
        event = only(read_events(events), "job_end", pid=job.pid)
        found = files_of(event)
        assert found[str(path)] == (sizes[0] * MIB, 0), event
        assert found[str(name)] == (0, sizes[1] * MIB), event
        assert list(found)[:2] == [str(path), str(name)], event
        assert str(next(p for p in paths if p != path)) not in found, event
        check_report(report, job.pid, event)
        counted = sum(sum(bytes_) for bytes_ in found.values()) + event["other_files"][READ] + event["other_files"][WRITTEN]
        assert counted <= event["disk_read_bytes"] + event["disk_write_bytes"], event
        assert path.name in running.said
    assert "two\\nlines" in running.said and "\x1b[31m" not in running.said and "\u202e" not in running.said
    assert not {"fileless_jobs", "lost_file_records", "dropped_file_names"} & set(losses(report)), losses(report)


# So large that the job's programs and libraries, pages of which it may have to read again, are none of the largest.
MANY = MARKS + """
qprof.mark("begun")
say("begun")
for i in range(1, 10):
    write(f"{sys.argv[1]}/file-{i}", i << 18)
say("done")
"""


def test_without_directories(audit, events, work, tmp_path):
    """Files have their last names alone, in events, the report and the table; the rest is as it was."""
    cold_file(work / "model", 3)
    with audit("--no-paths") as running:
        job = Script(JOB, "model", "written", MIB, cwd=work)
        let_work(job, events)
        job.end()
        report = running.stop()
    event = only(read_events(events), "job_end", pid=job.pid)
    found = files_of(event)
    assert found["model"] == (3 * MIB, 0) and found["written"] == (0, MIB), event
    assert not any("/" in name for name in found), event
    check_report(report, job.pid, event)
    for text in (events.read_text(), (tmp_path / "audit.yaml").read_text(), running.said):
        assert str(work) not in text, text
    assert "    model  read 3.00 MiB, written 0 B\n" in running.said, running.said


TEMPORARY = MARKS + """
qprof.mark("begun")
say("begun")
write("kept", 1 << 20)
write("closed", 2 << 20)
os.unlink("closed")
held = open("held", "wb", buffering=0)
held.write(b"h" * (3 << 20))
os.unlink("held")
say("done")
"""


def test_removed_files(audit, events, work):
    """A file that has no name any more at the end is said to be deleted, whether somebody has it open still or not."""
    with audit() as running:
        job = Script(TEMPORARY, cwd=work)
        let_work(job, events)
        job.end()
        report = running.stop()
    event = only(read_events(events), "job_end", pid=job.pid)
    deleted = {os.path.basename(file["path"]): file.get("deleted", False) for file in event["files"]}
    unsure = quality(report).get("unsure_removals", 0)
    assert deleted["held"] and not deleted["kept"], event
    assert deleted["closed"] or unsure, event
    assert [file.get("deleted", False) for file in job_of(report, job.pid)["files"]] == list(deleted.values()), event
    assert "held (deleted)  read 0 B, written 3.00 MiB\n" in running.said, running.said


def test_the_rest_is_a_sum(audit, events, work):
    """Of nine files, the five largest are named. The job goes on when the audit ends."""
    with audit() as running:
        job = Script(MANY, work)
        let_work(job, events)
        report = running.stop()
    job.end()
    event = only(read_events(events), "job_end", pid=job.pid)
    assert event["still_running"]
    assert files_of(event) == {f"{work}/file-{i}": (0, i << 18) for i in range(9, 4, -1)}, event
    assert event["other_files"]["files"] >= 4 and event["other_files"][WRITTEN] >= 10 << 18, event
    check_report(report, job.pid, event)


def test_a_served_run(events, work):
    """Its files are in the profile of its user and in those of the audit's job: counted once."""
    path = cold_file(work / "model", 3)
    code = MARKS + """
qprof.mark("a")
with open(sys.argv[1], "rb") as model:  # a run before this one may have read it
    os.posix_fadvise(model.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
read(sys.argv[1])
write(sys.argv[2], 2 << 20)
"""
    with public_dir() as folder, Service(folder, ("--files", "--events-file", events)) as service:
        run = service.run(work, PYTHON, "-c", code, path, work / "written", options=("--files",), env=QPROF_PACKAGE)
        report = service.stop()
    event = only(read_events(events), "job_end", pid=run.profile["processes"][0]["pid"])
    own = {file["path"]: (round(file["storage_read_mb"] * MIB), round(file["storage_written_mb"] * MIB))
           for file in run.profile["files"]}
    assert own[str(path)] == (3 * MIB, 0) and own[str(work / "written")] == (0, 2 * MIB), own
    found = files_of(event)
    assert found[str(path)] == own[str(path)] and found[str(work / "written")] == own[str(work / "written")], event
    assert event["files_late_ns"] == 0, event
    check_report(report, event["pid"], event)


CHILDREN = MARKS + f"""
import signal
def child(uid):
    if pid := os.fork():
        return pid
    os.setresuid(uid, uid, uid)
    qprof.mark("begun")
    signal.pause()
pids = [child(20000 + i) for i in range({USERS + 2})]
say(pids)
for pid in pids:
    os.kill(pid, signal.SIGTERM)
for pid in pids:
    os.waitpid(pid, 0)
"""


def test_more_jobs_than_can_be_counted(audit, events):
    """Those beyond have no files, and are counted; all others have theirs, though they used none."""
    with audit() as running:
        parent = Script(CHILDREN)
        pids = json.loads(parent.lines.until("["))
        wait_for_begin(events, *pids)
        parent.end()
        report = running.stop()
    ends = [event for event in of_kind(read_events(events), "job_end") if event["pid"] in pids]
    without = [event for event in ends if "files" not in event]
    assert len(ends) == USERS + 2 and len(without) >= 2, (len(ends), len(without))
    jobs = [job for job in report["jobs"] if job["pid"] in pids]
    assert sum("files" not in job for job in jobs) == len(without)
    assert quality(report)["fileless_jobs"] >= len(without)
    assert any(event["files"] == [] for event in ends if "files" in event)


SHORT = MARKS + """
for i in range(200):
    if not (pid := os.fork()):
        qprof.mark("short")
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_jobs_that_are_over_at_once(audit, events):
    """Each has files or is counted as one that lacks them, and each has its end in the log."""
    with audit() as running:
        script = Script(SHORT)
        script.end()
        report = running.stop()
    ends = of_kind(read_events(events), "job_end")
    lacking = sum("files" not in job for job in report["jobs"])
    assert len(ends) == len(report["jobs"]) >= 190, (len(ends), len(report["jobs"]))
    assert lacking == quality(report)["fileless_jobs"] and lacking == sum("files" not in event for event in ends)
    assert all(job["files_late_secs"] <= job["end_secs"] - job["start_secs"] for job in report["jobs"] if "files" in job)


def test_without(tmp_path, events):
    """Nothing of it is said without --files."""
    with Audit(tmp_path / "audit.yaml", ("--events-file", events)) as running:
        job = Script(MARKS + "qprof.mark('a')\n")
        job.process.wait(100)
        report = running.stop()
    assert "files" not in only(read_events(events), "job_end", pid=job.pid)
    assert "files" not in job_of(report, job.pid) and not quality(report)["fileless_jobs"]


def test_view_of_a_removed_file(tmp_path, events, work):
    """It is said behind the path."""
    with View(tmp_path, "--files", "--events-file", events, "--no-paths", width=160) as shown:
        job = Script(TEMPORARY, cwd=work)
        let_work(job, events)
        job.end()
        shown.pane.until(lambda lines: any(line.strip().startswith("held (deleted)   read 0 B, written 3.00 MiB")
                                           for line in lines), "the file of the job")
        shown.pane.keys("q")
        shown.left()


@pytest.mark.parametrize("options, directory", [((), True), (("--no-paths",), False)])
def test_view(tmp_path, events, work, options, directory):
    """Below a job that has ended is the file that it used most."""
    path = cold_file(work / "model", 6) if directory else cold_file(work / "model", 6).name
    with View(tmp_path, "--files", "--events-file", events, *options, width=160) as shown:
        job = Script(JOB, "model", "with\x1b[31m", MIB, cwd=work)
        let_work(job, events)
        job.end()

        def there(lines):
            row = next((row for row in rows(lines, "JOB") if int(row["JOB"]) == job.pid), None)
            return row and any(line.strip().startswith(f"{path} ") and "read 6.00 MiB, written 0 B" in line and
                               "more file" in line for line in lines)
        shown.pane.until(there, "the files of the job")
        shown.pane.keys("q")
        shown.left()


def lines_below(lines, pid):
    """What the view has below the line of a job, up to the next one or the processes."""
    at = next((i for i, line in enumerate(lines) if line.split()[:1] == [str(pid)]), None)
    if at is None:
        return []
    below = []
    for line in lines[at + 1:]:
        if not line.startswith("        "):  # a job, titles, or the last line of all
            break
        below.append(line.strip())
    return below


def said_of_file(line):
    """Path, size read, size written and how many more files, as the view says it; None: it is no such line."""
    found = re.fullmatch(r"(.*?)(?: \(deleted\))?   read (.*?), written (.*?)(?:   and (\d+) more files?)?", line)
    return found and (*found.groups()[:3], int(found[4] or 0))


def first_file(lines, pid):
    return next(filter(None, map(said_of_file, lines_below(lines, pid))), None)


# It reads two files, and says where it is before each.
IN_STEPS = MARKS + """
qprof.mark("begun")
say("begun")
for i, path in enumerate(sys.argv[1:]):
    read(path)
    say(f"read {i}")
"""


@pytest.mark.parametrize("options, directory", [((), True), (("--no-paths",), False)])
def test_view_of_a_job_that_runs(tmp_path, events, work, options, directory):
    """Below its phase is the file that it has used most so far, with the bytes that its end has: while it reads no more,
    and after it has read another."""
    for name, mib in (("first", 3), ("second", 5)):
        cold_file(work / name, mib)
    shown_as = {name: str(work / name) if directory else name for name in ("first", "second")}
    with View(tmp_path, "--files", "--events-file", events, *options, width=160) as shown:
        job = Script(IN_STEPS, "first", "second", cwd=work)
        job.until("begun")
        wait_for_begin(events, job.pid)
        job.tell()
        job.until("read 0")
        one = shown.pane.until(lambda lines: (file := first_file(lines, job.pid)) and file[:3] == (
            shown_as["first"], "3.00 MiB", "0 B") and file, "the first file, while the job runs")
        job.tell()
        job.until("read 1")
        two = shown.pane.until(lambda lines: (file := first_file(lines, job.pid)) and file[:3] == (
            shown_as["second"], "5.00 MiB", "0 B") and file, "the second file, while the job runs")
        assert two[3] > one[3], (one, two)
        assert not of_kind(read_events(events), "job_end"), "it has ended"
        if not directory:
            assert str(work) not in "\n".join(shown.pane.lines())
        job.end()
        shown.pane.keys("q")
        shown.left()
    files = files_of(only(read_events(events), "job_end", pid=job.pid))
    assert files[shown_as["first"]] == (3 * MIB, 0) and files[shown_as["second"]] == (5 * MIB, 0), files


def test_view_of_all_files_of_a_job(tmp_path, events, work):
    """Where only jobs are shown, a job has a line for each of its five largest, as at its end."""
    with View(tmp_path, "--files", "--events-file", events, width=160) as shown:
        job = Script(MANY, work)
        let_work(job, events)
        shown.pane.keys("j")
        shown.pane.keys("j")

        def five(lines):
            files = [file for line in lines_below(lines, job.pid) if (file := said_of_file(line))]
            return len(files) == 5 and files
        found = shown.pane.until(five, "five files")
        job.end()
        shown.pane.keys("q")
        shown.left()
    event = only(read_events(events), "job_end", pid=job.pid)
    assert [file[:3] for file in found] == [(f"{work}/file-{i}", "0 B", f"{i / 4:.2f} MiB") for i in range(9, 4, -1)], found
    assert [file[3] for file in found] == [0, 0, 0, 0, event["other_files"]["files"]], (found, event)
    assert list(files_of(event)) == [file[0] for file in found], event


SHOWN_JOBS = 20  # more than are looked at for one frame
MANY_JOBS = MARKS + f"""
import signal
def child(i):
    if pid := os.fork():
        return pid
    qprof.mark("begun")
    signal.sigwait([signal.SIGUSR1])
    write(f"{{sys.argv[1]}}/file-{{i}}", 1 << 20)
    signal.pause()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
pids = [child(i) for i in range({SHOWN_JOBS})]
say(pids)
for pid in pids:
    os.kill(pid, signal.SIGUSR1)
say("written")
for pid in pids:
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
"""


@pytest.mark.long
def test_view_of_many_jobs(tmp_path, events, work):
    """Each of those on the screen has its own file, however many they are. Where nothing else happens, nothing but the
    view itself draws the frames that this takes; and then it sleeps."""
    inside = f"sleep 1000 & exec {QPROF} -a --files --live --events-file {events} -o {tmp_path}/audit.yaml"
    with Pane(f"exec unshare --pid --fork --mount-proc sh -c '{inside}'", width=160, height=100) as pane:
        pane.shows("COMMAND")
        shell = pane.shell_pid()
        view = int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])
        parent = Script(MANY_JOBS, work, prefix=("nsenter", "-t", str(view), "-p", "-m"))
        try:
            pids = json.loads(parent.lines.until("["))
            wait_for_begin(events, *pids)
            pane.keys("j")
            pane.keys("j")
            parent.tell()
            parent.until("written")

            def all_there(lines):
                return all((file := first_file(lines, pid)) and file[:3] == (f"{work}/file-{i}", "0 B", "1.00 MiB")
                           for i, pid in enumerate(pids))
            pane.until(all_there, "a file of each job")
            wait_for(lambda: quiet_moment([view], 3), "the view at rest")
            parent.end()
        finally:
            os.kill(view, signal.SIGKILL)  # the first of its namespace; it would outlive the terminal
            parent.process.kill()
            parent.process.wait()
