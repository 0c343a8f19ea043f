# SPDX-License-Identifier: GPL-2.0-only
"""One user cannot take what all share: what is limited, for whom, and that others have theirs."""

import contextlib
import json
import pwd
import shutil
import socket
import stat
import subprocess
import time

import pytest

import harness
from harness import AS_NOBODY, NOBODY, Audit, Target, program, quality, run_qprof, wait_for

JOBS = 8


@contextlib.contextmanager
def program_for_all():
    with harness.public_dir() as folder:
        path = folder / "idle"
        shutil.copy(program("idle"), path)
        path.chmod(0o755)
        yield str(path)


def searched(one, path):
    wait_for(lambda: harness.NOP not in harness.probe_bytes(one.pid, path), "probes")


def test_jobs(tmp_path):
    """A user with many trees gets half of the jobs; one that comes later still gets one."""
    with contextlib.ExitStack() as open_until_end:
        path = open_until_end.enter_context(program_for_all())
        audit = open_until_end.enter_context(
            Audit(tmp_path / "audit.yaml", ("--max-jobs", JOBS)))
        taken = []
        for _ in range(JOBS + 2):
            one = open_until_end.enter_context(
                Target("mark:greedy", "mark:again", "wait", path=path, prefix=AS_NOBODY))
            searched(one, path)
            one.go()
            one.go()
            taken.append(one.pid)
        late = open_until_end.enter_context(Target("mark:late", "wait", path=path))
        searched(late, path)
        late.go()
        report = audit.stop()
    jobs = [job["pid"] for job in report["jobs"]]
    greedy = [pid for pid in taken if pid in jobs]
    assert greedy == taken[:len(greedy)] and 0 < len(greedy) <= JOBS // 2, (
        f"expected at most half of {JOBS} jobs, got {len(greedy)}")
    assert late.pid in jobs, f"expected a job of another user, got {report['jobs']}"
    left_out = 2 * (len(taken) - len(greedy))
    counts = quality(report)
    assert (counts["limited_jobs"], counts["untracked_jobs"]) == (left_out, 0), counts
    name = pwd.getpwuid(NOBODY).pw_name
    [why] = [w["why"] for w in report["quality"]["warnings"] if w["what"] == f"jobs of {name}"]
    assert why.startswith(f"{left_out} checkpoints left out"), why


def test_jobs_that_end_make_room(tmp_path):
    """A share is of what runs at a time, not of what has run."""
    events = tmp_path / "events"
    options = ("--max-jobs", 2, "--events-file", events)

    def ended(pid):
        lines = map(json.loads, filter(None, map(str.strip, events.read_text().splitlines())))
        return any(line["event"] == "job_end" and line["pid"] == pid for line in lines)

    with program_for_all() as path, Audit(tmp_path / "audit.yaml", options) as audit:
        pids = []
        for _ in range(4):
            with Target("mark:one", "exit:0", path=path, prefix=AS_NOBODY) as one:
                searched(one, path)
                one.go()
                one.tell()
                assert one.wait() == 0
                pids.append(one.pid)
            wait_for(lambda: ended(pids[-1]), "the end of the job")
        report = audit.stop()
    assert [job["pid"] for job in report["jobs"]] == pids, report["jobs"]
    assert not quality(report)["limited_jobs"], quality(report)


def test_a_number_of_a_job_that_is_used_again(tmp_path):
    """From Linux 6.16 on the memory of a job is torn down after its end: that is not taken from the
    next job of its number."""
    options = ("--max-jobs", 1, "--checkpoint-limit", 0)
    with Audit(tmp_path / "audit.yaml", options) as audit, \
            Target("mark:large", "touch:1024", "exit:0") as large, \
            Target("touch:64", "loop") as small:
        searched(large, program("idle"))
        searched(small, program("idle"))
        large.go()
        large.go()
        held = small.go()["rss_bytes"]
        small.go()
        large.tell()
        assert large.wait() == 0
        small.tell()
        small.lines.next()
        small.process.terminate()
        assert small.wait() == 0
        report = audit.stop()
    assert [job["pid"] for job in report["jobs"]] == [large.pid, small.pid], report["jobs"]
    rows = [row["cpu_memory_mb"] * harness.MIB for row in report["jobs"][1]["memory_usage"] if row["step"] == "loop"]
    assert min(rows) >= held - 256 * harness.KIB, (
        f"expected at least {held} bytes in each row, got {min(rows)} in one of {len(rows)}")


GREEDY = """
import socket, sys, time
address = sys.argv[1]
held = []
for _ in range(200):
    if address.isdigit():
        one = socket.create_connection(("127.0.0.1", int(address)))
    else:
        one = socket.socket(socket.AF_UNIX)
        one.connect(address)
    held.append(one)
print("held", flush=True)
time.sleep(1000)
"""


@contextlib.contextmanager
def greedy(address):
    """A user who opens 200 connections, says nothing and keeps them."""
    process = subprocess.Popen([*AS_NOBODY, "/usr/bin/python3", "-c", GREEDY, str(address)],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ask_at(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(5)
        one.connect(str(path))
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        got = b""
        while more := one.recv(65536):
            got += more
    return got


def warned_of_connections(report, whom):
    return [w["why"] for w in report["quality"]["warnings"] if w["what"] == f"connections of {whom}"]


def test_connections_to_a_port(exporter):
    """Whose they are is known of users of this machine: all come from the same address."""
    with exporter() as running, greedy(running.address.port):
        for _ in range(3):
            began = time.monotonic()
            assert running.ask().status == 200
            assert time.monotonic() - began < 5, "expected an answer before the others time out"
        report = running.stop()
    [why] = warned_of_connections(report, f"user {NOBODY}")
    assert "ended early" in why, why


def test_connections_to_a_unix_socket(tmp_path):
    with harness.public_dir() as folder:
        path = folder / "metrics"
        options = ("--listen", f"unix:{path}", "--listen", 0)
        with Audit(tmp_path / "audit.yaml", options) as running:
            assert f"metrics at unix:{path}," in running.stderr.seen, running.stderr.seen
            mode = path.stat()
            assert stat.S_ISSOCK(mode.st_mode) and stat.S_IMODE(mode.st_mode) == 0o660, oct(mode.st_mode)
            path.chmod(0o666)
            with greedy(path):
                assert ask_at(path).startswith(b"HTTP/1.1 200"), "expected an answer"
            report = running.stop()
        assert not path.exists(), "expected the socket to be removed"
    assert warned_of_connections(report, f"user {NOBODY}"), report["quality"]["warnings"]


def test_a_socket_that_was_left_is_replaced(tmp_path):
    path = tmp_path / "metrics"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with Audit(tmp_path / "audit.yaml", ("--listen", path)) as running:
        assert ask_at(path).startswith(b"HTTP/1.1 200")
        second = run_qprof("-a", "-q", "-d", "100ms", "-o", "-", "--listen", path)
        assert second.returncode == 125 and "in use" in second.stderr, second
        assert ask_at(path).startswith(b"HTTP/1.1 200"), "expected the first one to stay"
        running.stop()


def test_a_socket_takes_no_file_away(tmp_path):
    path = tmp_path / "metrics"
    path.write_text("mine")
    run = run_qprof("-a", "-q", "-d", "100ms", "-o", "-", "--listen", path)
    assert run.returncode == 125 and "in use" in run.stderr, run
    assert path.read_text() == "mine"


PLANTED = {
    "FIFO": "os.mkfifo(path, 0o666)",
    "symbolic link": "os.symlink(path + '.elsewhere', path)",
    "folder": "os.mkdir(path)",
    "socket that nobody serves": "socket.socket(socket.AF_UNIX).bind(path)",
    "socket": "one = socket.socket(socket.AF_UNIX); one.bind(path); one.listen()",
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_another_has_put_there(what):
    """In a folder where all may write: root serves at none of these names, and takes none away."""
    script = f"import os, socket, sys; path = sys.argv[1]; {PLANTED[what]}; print('there', flush=True); input()"
    with harness.public_dir() as folder:
        folder.chmod(0o1777)
        path = folder / "metrics"
        with subprocess.Popen([*AS_NOBODY, "/usr/bin/python3", "-c", script, path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as other:
            assert other.stdout.readline() == b"there\n"
            before = path.lstat()
            run = run_qprof("-a", "-q", "-d", "100ms", "-o", "-", "--listen", f"unix:{path}")
            after = path.lstat()
            other.communicate(b"\n")
        assert run.returncode == 125 and str(path) in run.stderr, run
        assert (after.st_ino, after.st_uid, after.st_mode) == (before.st_ino, NOBODY, before.st_mode)
        assert [one.name for one in folder.iterdir()] == ["metrics"], run


MANY_PROBES = """
#include <stdio.h>
#include <sys/sdt.h>
#include <unistd.h>
#define P4 PROBE PROBE PROBE PROBE
#define P64 P4 P4 P4 P4 P4 P4 P4 P4 P4 P4 P4 P4 P4 P4 P4 P4
#define P1024 P64 P64 P64 P64 P64 P64 P64 P64 P64 P64 P64 P64 P64 P64 P64 P64
#define PROBE DTRACE_PROBE1(qprof, mark, "greedy");
void never(void)
{
    P1024 P1024 P1024 P1024 P1024 P1024 P1024 P1024 P1024 P1024 P1024 P1024 P1024 P1024 P1024 P1024
}
int main(void) { puts("ready"); fflush(stdout); pause(); }
"""


def test_probes_of_one_file(tmp_path):
    """A program with as many probes as there may be: another that comes later has its own."""
    with harness.public_dir() as folder, program_for_all() as path:
        greedy_path = folder / "many"
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", greedy_path], input=MANY_PROBES,
                       text=True, check=True)
        with Audit(tmp_path / "audit.yaml") as audit, subprocess.Popen(
                [*AS_NOBODY, greedy_path], stdout=subprocess.PIPE) as many:
            assert many.stdout.readline() == b"ready\n"
            with Target("mark:late", "wait", path=path) as late:
                searched(late, path)
                late.go()
                report = audit.stop()
            many.kill()
    assert late.pid in [job["pid"] for job in report["jobs"]], report["jobs"]
    [why] = [w["why"] for w in report["quality"]["warnings"] if w["what"].endswith("/many")]
    assert "more probes than are left" in why, why


# Copies of a program, each gone before the next comes: the audit always has probes to let go of.
CHURN = """
import ctypes, os, shutil, signal, subprocess, sys
libc = ctypes.CDLL(None)
print("ready", flush=True)
for n in range(10**9):
    path = f"{sys.argv[2]}/{sys.argv[3]}{n}"
    shutil.copy(sys.argv[1], path)
    one = subprocess.Popen([path, "mark:one", "exit:0"], stdout=subprocess.PIPE,
                           preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG: it waits for us
    for _ in range(2):
        one.stdout.readline()
        one.send_signal(signal.SIGUSR1)
    one.wait()
    one.stdout.close()
    os.unlink(path)
"""


def test_a_file_that_can_never_fit_waits_for_no_room(tmp_path):
    """It has its share, and is named, although others come and go and leave room each time."""
    with harness.public_dir() as folder, contextlib.ExitStack() as running:
        path = folder / "many"
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", path], input=MANY_PROBES, text=True, check=True)
        audit = running.enter_context(Audit(tmp_path / "audit.yaml"))
        for name in "ab":
            one = running.enter_context(subprocess.Popen(
                ["/usr/bin/python3", "-c", CHURN, program("idle"), folder, name], stdout=subprocess.PIPE))
            running.callback(one.kill)
            assert one.stdout.readline() == b"ready\n"
        many = running.enter_context(subprocess.Popen([path], stdout=subprocess.PIPE))
        running.callback(many.kill)
        assert many.stdout.readline() == b"ready\n"
        wait_for(lambda: harness.NOP != harness.probe_bytes(many.pid, path)[0], "probes of its share")
        report = audit.stop()
    [why] = [w["why"] for w in report["quality"]["warnings"] if w["what"].endswith("/many")]
    assert "more probes than are left" in why, why
