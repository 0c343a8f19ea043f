# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf -a --events ndjson: what happens, as it happens, a JSON object a line.

Each line that any of these tests sees is held against docs/events.schema.json.
"""

import json
import os
import random
import signal
import stat
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import pytest

import harness
from harness import (AS_NOBODY, CLEAN_ENV, MIB, QPROF, Audit, Lines, Load, Target, job_of,
                     process_of, program, quality, run_qprof, tmpfs, wait_for)
from test_audit import CONTAINER, container

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs/events.schema.json").read_text())
SCHEMAS = {one["title"]: jsonschema.Draft202012Validator(one) for one in SCHEMA["oneOf"]}


def parse_line(line):
    """A line as an object; it must be one of those that the schema knows."""
    event = json.loads(line)
    assert event["event"] in SCHEMAS, line
    error = jsonschema.exceptions.best_match(SCHEMAS[event["event"]].iter_errors(event))
    assert not error, f"{error.message} in {line}"
    return event


def parse_lines(data, some=None):
    """All of them; some: of each kind only so many are held against the schema."""
    assert not data or data.endswith(b"\n") or not data.split(b"\n")[-1].strip(), data[-200:]
    events, seen = [], Counter()
    for line in data.splitlines():
        if not line.strip():
            continue
        text = line.decode()  # strictly: it is UTF-8
        event = json.loads(text)
        seen[event["event"]] += 1
        events.append(parse_line(text) if not some or seen[event["event"]] <= some else event)
    return events


def read_events(path, some=None):
    return parse_lines(Path(path).read_bytes(), some)


def of_kind(events, kind, **wanted):
    return [e for e in events if e["event"] == kind
            and all(e.get(key) == value for key, value in wanted.items())]


def only(events, kind, **wanted):
    found = of_kind(events, kind, **wanted)
    assert len(found) == 1, f"expected one {kind} with {wanted}, got {found}"
    return found[0]


def has_found_probes(events, seconds=harness.DEADLINE):
    """Until this audit, and not another one of the machine, has seen a mark of the program. Whether
    it has within that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with Target("mark:there", "exit:0") as one:
            one.go()
            one.tell()
            one.wait()
        if of_kind(parse_lines(Path(events).read_bytes(), some=9), "checkpoint", step="there"):
            return True
    return False


def run_once(*command):
    """Its pid: what it exits with is nothing to know it by."""
    with subprocess.Popen(command) as process:
        process.wait()
    return process.pid


@pytest.fixture
def events_file(tmp_path):
    return tmp_path / "events.ndjson"


@pytest.fixture
def audit(tmp_path, events_file):
    """with audit(*options) as running: events go to events_file, and there is a report, too."""
    def start(*options):
        return Audit(tmp_path / "audit.yaml", ("--events-file", events_file, *options))
    return start


def test_a_job_is_told_as_it_is_reported(audit, target, events_file):
    with audit() as running:
        assert has_found_probes(events_file)
        one = target("mark:first", "touch:8", "child:16", "mark:last", "exit:3")
        for _ in range(4):
            one.go()
        one.tell()
        assert one.wait() == 3
        report = running.stop()
    events = read_events(events_file)
    job = job_of(report, one.pid)
    begin = only(events, "job_begin", pid=one.pid)
    end = only(events, "job_end", pid=one.pid)
    assert begin["job"] == end["job"] == job["id"]
    assert "rule" not in begin and begin["cmdline"] == job["command"]
    assert begin["user"] == "root" and begin["uid"] == 0
    steps = of_kind(events, "checkpoint", job=job["id"])
    assert [s["step"] for s in steps] == [row["step"] for row in job["memory_usage"]]
    assert [s["what"] for s in steps] == ["start", "mark", "mark", "mark", "finish"]
    for step, row in zip(steps, job["memory_usage"]):
        for key, mb in (("rss_bytes", "cpu_memory_mb"), ("step_peak_rss_bytes", "step_peak_memory_mb"),
                        ("io_read_bytes", "io_read_mb"), ("io_write_bytes", "io_write_mb"),
                        ("disk_read_bytes", "disk_read_mb")):
            assert round(step[key] / MIB, 2) == pytest.approx(row[mb], abs=0.0101), (key, step, row)
        pages = step["file_pages"] + step["anon_pages"] + step["shmem_pages"]
        assert step["rss_bytes"] == pages * harness.PAGE
        assert step["pid"] == row["pid"] and step["tid"] == row["tid"]
    assert end["checkpoints"] == len(steps) and end["processes"] == 2
    assert end["still_running"] is False
    assert end["peak_rss_bytes"] / MIB == pytest.approx(job["peak_memory_mb"], abs=0.0101)
    assert end["peak_rss_bytes"] >= max(s["step_peak_rss_bytes"] for s in steps)
    exit_ = only(events, "process_exit", pid=one.pid)
    assert exit_["exit_code"] == 3 and exit_["job"] == job["id"]
    assert exit_["cmdline"].startswith(program("idle"))
    started = only(events, "process_start", pid=one.pid)
    assert started["ppid"] == os.getpid() and "attached" not in started
    assert {e["started_ns"] for e in events if e.get("pid") == one.pid} == {started["started_ns"]}
    order = [e["event"] for e in events if e.get("pid") == one.pid and e["event"] != "checkpoint"]
    assert order == ["process_start", "process_exec", "job_begin", "process_exit", "job_end"] or \
        order == ["process_start", "process_exec", "job_begin", "job_end", "process_exit"]


def test_the_first_and_the_last_line_are_of_the_audit(audit, target, events_file):
    one = target("wait")
    with audit() as running:
        report = running.stop()
    events = read_events(events_file)
    first, last = events[0], events[-1]
    assert first["event"] == "audit_start" and last["event"] == "audit_end"
    assert first["host"] == os.uname().nodename and first["page_size"] == harness.PAGE
    assert first["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert {e["audit"] for e in events} == {first["audit"]}
    assert last["written"] == {k: n for k, n in Counter(e["event"] for e in events).items()
                               if k != "audit_end"}
    assert last["processes"] == report["qprof"]["processes"]
    assert last["lost"] == last["limited"] == 0
    # Those that were there are told of, with their command lines.
    was_there = only(events, "process_start", pid=one.pid)
    assert was_there["attached"] is True
    assert only(events, "process_exec", pid=one.pid)["cmdline"].endswith("idle wait")
    now = time.time()
    start = time.mktime(time.strptime(first["time"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert now - 3600 < start <= now + 1
    stamps = [e["time_ns"] for e in events]
    assert last["time_ns"] - stamps[0] == pytest.approx(last["duration_ns"], abs=10**9)


def test_busy_machine_reconciles_with_its_truth(audit, events_file, tmp_path):
    """Every process and every checkpoint has its line, exact to the byte."""
    with Load(tmp_path / "truth", idle=100, forks=200, checkpoints=10000, workers=8,
              seconds=3) as load, audit("--events-rate", 0) as running:
        load.go()
        load.finished()
        report = running.stop()
    events = read_events(events_file, some=200)
    # The same pid may have been given to two processes: start and exit by identity.
    started = {(e["pid"], e["started_ns"]) for e in of_kind(events, "process_start")}
    exits = {}
    for e in of_kind(events, "process_exit"):
        assert (e["pid"], e["started_ns"]) in started, e
        exits.setdefault(e["pid"], []).append((e.get("exit_code"), e["io_write_bytes"]))
    missing = [child for child in load.truth("child") if child[1:] not in exits.get(child[0], [])]
    assert not missing, f"{len(missing)} children have no such exit: {missing[:3]}"
    phases = [(e["step"], e["phase"]) for e in of_kind(events, "checkpoint", what="begin")
              if "phase" in e]
    assert len(phases) >= 1000 and all(step == phase + " Start" for step, phase in phases)
    steps = Counter(e["job"] for e in of_kind(events, "checkpoint"))
    for pid, checkpoints in load.truth("worker"):
        job = job_of(report, pid)["id"]
        assert steps[job] == checkpoints + 2
        assert only(events, "job_end", job=job)["checkpoints"] == checkpoints + 2
    assert not of_kind(events, "lost_events")
    assert events[-1]["limited"] == 0


def test_lines_come_as_it_happens():
    process = subprocess.Popen([QPROF, "-a", "--events", "ndjson"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=CLEAN_ENV)
    try:
        lines = Lines(process.stdout)
        assert parse_line(lines.next())["event"] == "audit_start"
        while parse_line(lines.next()).get("pid") != os.getpid():
            pass
        one = subprocess.Popen(["sleep", "1000"])
        seen = []
        while (seen or [{}])[-1].get("event") != "process_exec":
            event = parse_line(lines.next())
            seen += [event] if event.get("pid") == one.pid else []
        assert seen[-1]["cmdline"] == "sleep 1000"
        one.kill()
        one.wait()
        while seen[-1]["event"] != "process_exit":
            event = parse_line(lines.next())
            seen += [event] if event.get("pid") == one.pid else []
        assert seen[-1]["exit_signal"] == signal.SIGKILL
        process.send_signal(signal.SIGTERM)
        while parse_line(lines.next())["event"] != "audit_end":
            pass
        assert process.wait(harness.DEADLINE) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_events_alone_write_no_report(tmp_path):
    run = run_qprof("-a", "-q", "-d", "100ms", "--events", "ndjson", cwd=tmp_path)
    assert run.returncode == 0 and run.stderr == "", run
    events = parse_lines(run.stdout.encode())
    assert events[0]["event"] == "audit_start" and events[-1]["event"] == "audit_end"
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_does_not_read_holds_up_nobody(tmp_path):
    """Nobody reads stdout: the audit goes on, and what is read later says how much is missing."""
    command = [QPROF, "-a", "-o", tmp_path / "audit.yaml", "--events", "ndjson", "--events-rate", "0"]
    with Load(tmp_path / "truth", checkpoints=10000, workers=4, seconds=4) as load:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, env=CLEAN_ENV)
        try:
            errors = Lines(process.stderr)
            errors.until("auditing")
            load.go()
            load.finished()
            # It has seen all of them when it has seen the end of the last.
            data = os.read(process.stdout.fileno(), 1 << 16)
            reader = []

            def read_on():
                os.set_blocking(process.stdout.fileno(), False)
                try:
                    reader.append(os.read(process.stdout.fileno(), 1 << 20))
                except BlockingIOError:
                    time.sleep(0.001)
                return b'"lost_events"' in b"".join(reader[-2:])
            subprocess.run(["true"], check=True)
            wait_for(lambda: read_on() or subprocess.run(["true"], check=True) is None,
                     "a line that says what was lost")
            os.set_blocking(process.stdout.fileno(), True)
            process.send_signal(signal.SIGINT)
            while more := os.read(process.stdout.fileno(), 1 << 20):
                reader.append(more)
            assert process.wait(harness.DEADLINE) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
    events = parse_lines(data + b"".join(reader), some=100)
    lost = of_kind(events, "lost_events")
    assert lost and lost[-1]["lost_total"] == sum(e["lost"] for e in lost)
    end = events[-1]
    assert end["event"] == "audit_end" and end["lost"] == lost[-1]["lost_total"]
    # Nothing was held up: the report has all of them.
    report = harness.parse(tmp_path / "audit.yaml")
    for pid, checkpoints in load.truth("worker"):
        assert job_of(report, pid)["checkpoints"] == checkpoints + 2
    assert quality(report)["lost_checkpoints"] == 0
    told = len(of_kind(events, "checkpoint"))
    happened = sum(job["checkpoints"] for job in report["jobs"])
    assert told + end["lost"] >= happened > told


def test_killed_at_any_moment_lines_are_whole(events_file, tmp_path):
    chance = random.Random(1)
    with Load(tmp_path / "truth", forks=100, checkpoints=20000, workers=4, seconds=60) as load:
        load.go()
        for _ in range(15):
            size = events_file.stat().st_size if events_file.exists() else 0
            with Audit("/dev/null", ("--events-file", events_file, "--events-rate", 0)) as running:
                wait_for(lambda s=size: events_file.stat().st_size > s + 65536, "events")
                time.sleep(chance.random() * 0.05)
                running.process.kill()
                running.process.wait()
            data = events_file.read_bytes()
            # After its last newline there is nothing but blanks.
            assert not data.split(b"\n")[-1].strip(), data[-300:]
    events = parse_lines(data, some=20)
    assert len(of_kind(events, "audit_start")) == 15 and not of_kind(events, "audit_end")
    assert len({e["audit"] for e in events}) == 15


def test_full_file_is_rotated(audit, events_file, tmp_path):
    with Load(tmp_path / "truth", checkpoints=10000, workers=4, seconds=2) as load, \
            audit("--events-max-size", "1M", "--events-keep", 3, "--events-rate", 0) as running:
        load.go()
        load.finished()
        running.stop()
    files = sorted(tmp_path.glob("events.ndjson*"))
    assert [f.name for f in files] == [f"events.ndjson{n}" for n in ("", ".1", ".2", ".3")]
    assert all(f.stat().st_size <= MIB for f in files)
    assert all(f.stat().st_size > MIB - 8192 for f in files[1:])
    oldest_first = b"".join(f.read_bytes() for f in reversed(files))
    events = parse_lines(oldest_first, some=100)
    for job in {e["job"] for e in of_kind(events, "checkpoint")}:
        numbers = [e["seq"] for e in of_kind(events, "checkpoint", job=job)]
        assert sorted(numbers) == list(range(min(numbers), max(numbers) + 1)), "a hole"


def test_hangup_opens_the_file_anew(audit, events_file):
    moved = events_file.with_suffix(".moved")
    with audit() as running:
        before = run_once("sh", "-c", "exit 41")
        wait_for(lambda: of_kind(read_events(events_file), "process_exit", pid=before), "its line")
        events_file.rename(moved)
        running.process.send_signal(signal.SIGHUP)
        wait_for(events_file.exists, "the new file")
        after = run_once("sh", "-c", "exit 42")
        running.stop()
    old, new = read_events(moved), read_events(events_file)
    assert not of_kind(old, "process_exit", pid=after) and not of_kind(new, "process_exit", pid=before)
    assert only(new, "process_exit", pid=after)["exit_code"] == 42
    assert old[0]["audit"] == new[0]["audit"]


def test_hangup_ends_an_audit_without_a_file(tmp_path):
    with Audit(tmp_path / "audit.yaml") as running:
        running.process.send_signal(signal.SIGHUP)
        assert running.process.wait(harness.DEADLINE) == -signal.SIGHUP


def test_full_disk_is_said_once_and_counted(tmp_path):
    with tmpfs(tmp_path / "small", "4m") as small, Load(
            tmp_path / "truth", checkpoints=20000, workers=4, seconds=2) as load:
        file = small / "events.ndjson"
        (small / "ballast").write_bytes(bytes(3500 << 10))
        with Audit(tmp_path / "audit.yaml", ("--events-file", file, "--events-rate", 0)) as running:
            load.go()
            load.finished()
            (small / "ballast").unlink()  # room again
            wait_for(lambda: subprocess.run(["true"], check=True) is None
                     or b'"lost_events"' in file.read_bytes(), "the line that says so")
            running.process.send_signal(signal.SIGINT)
            _, rest = running.process.communicate(timeout=harness.DEADLINE)
            said = running.stderr.seen + rest.decode()
        events = parse_lines(file.read_bytes(), some=100)
    report = harness.parse(tmp_path / "audit.yaml")
    assert said.count("No space left on device") == 1, said
    assert of_kind(events, "lost_events")
    for pid, checkpoints in load.truth("worker"):
        assert job_of(report, pid)["checkpoints"] == checkpoints + 2


def test_what_is_written_can_be_chosen(audit, events_file):
    with audit("--events-only", "jobs,checkpoints") as running:
        assert has_found_probes(events_file)
        running.stop()
    kinds = {e["event"] for e in read_events(events_file)}
    assert {"job_begin", "job_end", "checkpoint"} <= kinds
    assert not {k for k in kinds if k.startswith("process")}


def test_command_lines_can_be_left_out(audit, events_file):
    with audit("--events-no-cmdline") as running:
        pid = run_once("sh", "-c", "exit 43", "--token", "geheim")
        running.stop()
    assert b"geheim" not in events_file.read_bytes()
    assert only(read_events(events_file), "process_exit", pid=pid)["comm"] == "sh"


def test_one_that_floods_does_not_push_others_out(audit, target, events_file):
    """A rate limit for each job and for each user; what is beyond it is counted."""
    with audit("--events-rate", 50) as running:
        assert has_found_probes(events_file)
        greedy, modest = target("loop"), target("mark:1", "mark:2", "mark:3")
        greedy.tell()
        greedy.lines.until("loop")
        wait_for(lambda: any(e["counts"].get("limited_events", 0) > 100
                             for e in of_kind(read_events(events_file, some=9), "quality"))
                 or subprocess.run(["true"], check=True) is None, "the limit")
        for _ in range(3):
            modest.go()
        report = running.stop()
    events = read_events(events_file)
    assert [e["step"] for e in of_kind(events, "checkpoint", pid=modest.pid)][:4] == [
        "Start", "1", "2", "3"]
    per_second = Counter(e["time_ns"] // 10**9
                         for e in of_kind(events, "checkpoint", pid=greedy.pid))
    assert max(per_second.values()) == 50
    told = len(of_kind(events, "checkpoint", pid=greedy.pid))
    assert events[-1]["limited"] >= job_of(report, greedy.pid)["checkpoints"] - told > 100


def test_hostile_names_are_data(audit, events_file):
    name = b"\x1b[2J\xff'\"}: - |\n{\"event\":\"x\"}\n" + b"\xe2\x80\xae" + b"A" * 5000
    one = subprocess.Popen([name, "1000"], executable="/bin/sleep")
    try:
        with audit() as running:
            running.stop()
    finally:
        one.kill()
        one.wait()
    found = only(read_events(events_file), "process_exec", pid=one.pid)
    assert found["cmdline"].startswith("\x1b[2J\ufffd'\"}: - |\n{\"event\":\"x\"}\n\u202e")
    assert found["cmdline_cut"] is True
    assert b"\x1b" not in events_file.read_bytes()


def test_whose_and_where(audit, events_file):
    with container() as (inside, path), audit() as running:
        pid = run_once(*inside, *AS_NOBODY, "sh", "-c", "exit 44")
        running.stop()
    found = only(read_events(events_file), "process_exit", pid=pid)
    assert found["uid"] == harness.NOBODY and found["container"] == CONTAINER
    assert found["runtime"] == "docker" and found["cgroup"].endswith(path.name)


def test_file_is_not_for_all(events_file):
    """Command lines may hold secrets."""
    old = os.umask(0)
    try:
        run = run_qprof("-a", "-q", "-d", "100ms", "--events-file", events_file)
    finally:
        os.umask(old)
    assert run.returncode == 0, run
    assert stat.S_IMODE(events_file.stat().st_mode) == 0o640


@contextmanager
def fifo(path):
    os.mkfifo(path)
    yield path


def test_fifo_without_a_reader_is_refused(tmp_path):
    with fifo(tmp_path / "fifo") as path:
        run = run_qprof("-a", "-d", "100ms", "--events-file", path)
    assert run.returncode == 125 and "cannot write events" in run.stderr, run


@pytest.mark.parametrize("arguments, says", [
    (("--events", "xml"), "only ndjson"),
    (("--events", "ndjson", "-o", "-"), "stdout"),
    (("--events-file", "/nowhere/x"), "No such file"),
    (("--events-file", "/etc/mtab"), "symbolic link"),
    (("--events-max-size", "1K"), "not a size"),
    (("--events-keep", "-1"), "not a number"),
    (("--events-only", "jobs,pods"), "not a list"),
    (("--events-only", ""), "not a list"),
    (("--events-rate", "many"), "not a number"),
])
def test_wrong_arguments_are_refused(arguments, says):
    run = run_qprof("-a", *arguments)
    assert run.returncode == 125 and says in run.stderr, run


def test_nothing_wakes_it_but_what_happens(audit, events_file):
    """A timer would wake it each time."""
    report = harness.assert_rests(audit)
    assert process_of(report, os.getpid())
    assert of_kind(read_events(events_file), "audit_end")
