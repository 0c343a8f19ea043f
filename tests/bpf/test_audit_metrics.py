# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of an audit over HTTP: the figures, their labels, and clients of every kind."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time

import pytest

import harness
import test_audit
from exporting import armed_timers, assert_never_down, assert_promtool, is_searched, KINDS, named
from harness import (MIB, PAGE, Load, Target, job_of, process_of, quality, run_qprof, wait_for)


def test_processes_against_the_truth(exporter, own, own_name, tmp_path):
    data = tmp_path / "data"
    data.write_bytes(bytes(5 * MIB))
    labels = {"command": own_name}
    with exporter() as running:
        with Target(f"read:{data}", "touch:24", "spike:64:1000", path=own) as one:
            one.go()
            rss = one.go()["rss_bytes"]
            first = running.when("qprof_processes", 1, **labels)
            peak = one.go()["peak_bytes"]
            one.wait()
        third = running.when("qprof_processes", 0, **labels)
        report = running.stop()
    [process] = process_of(report, one.pid)
    assert 5 * MIB <= first.one("qprof_process_io_bytes_total", direction="read", layer="syscall",
                                **labels) < 5.2 * MIB
    assert abs(first.one("qprof_process_resident_memory_bytes", **labels) - rss) <= 16 * PAGE
    assert first.one("qprof_process_resident_memory_peak_bytes", **labels) < peak
    # It is over in a millisecond, and no look at the process would see it.
    assert abs(third.one("qprof_process_resident_memory_peak_bytes", **labels) - peak) <= 16 * PAGE
    assert third.one("qprof_process_resident_memory_bytes", **labels) == 0
    for metrics in (first, third):
        assert metrics.one("qprof_process_starts_total", **labels) == 1
        metrics.assert_sums_up()
    for direction in ("read", "write"):
        counted = third.one("qprof_process_io_bytes_total", direction=direction, layer="syscall",
                            **labels)
        assert abs(counted / MIB - process[f"io_{direction}_mb"]) < 0.01
    for key in ("major_faults", "minor_faults"):
        # Faults between its fork and its exec stay with the command that it was forked as.
        counted = third.one(f"qprof_process_{key}_total", **labels)
        assert process[key] - 64 <= counted <= process[key], (key, counted, process[key])
    assert_never_down(first, third)
    assert first.one("qprof_audit_running") == 1
    assert first.one("qprof_build_info") == 1
    began = first.one("qprof_audit_start_time_seconds")
    assert 0 < first.one("qprof_update_time_seconds") - began < harness.DEADLINE
    assert abs(time.time() - began) < 2 * harness.DEADLINE
    assert first.one("process_resident_memory_bytes") > MIB
    assert third.one("process_cpu_seconds_total") > 0


def test_next_process_of_a_name_goes_on(exporter, own, own_name):
    with exporter() as running:
        seen = []
        for n in range(1, 4):
            with Target("touch:2", path=own) as one:
                one.go()
                one.wait()
            running.when("qprof_process_starts_total", n, command=own_name)
            seen.append(running.when("qprof_processes", 0, command=own_name))
        running.stop()
    for before, after in zip(seen, seen[1:]):
        assert_never_down(before, after)
    cpu = [m.one("qprof_process_cpu_seconds_total", command=own_name) for m in seen]
    assert cpu == sorted(cpu) and cpu[0] < cpu[-1]


def test_job_and_its_phases(exporter, own, own_name):
    labels = {"job_name": own_name}
    with exporter() as running:
        with Target(path=own) as first:
            is_searched(first, own)
        with Target("mark:load", "spike:48:1000", "mark:save it", "child:16", "exit:3",
                    path=own) as one:
            one.go()
            peak = one.go()["peak_bytes"]
            during = running.when("qprof_jobs", 1, **labels)
            one.go()
            one.go()
            one.tell()
            assert one.wait() == 3
        after = running.when("qprof_job_ends_total", 1, result="failure", **labels)
        report = running.stop()
    assert during.one("qprof_job_starts_total", **labels) == 1
    assert during.one("qprof_job_resident_memory_bytes", **labels) > 0
    assert during.one("qprof_processes", command=own_name, **labels) == 1
    assert during.of("qprof_job_ends_total", **labels) == [0, 0, 0]
    assert after.one("qprof_jobs", **labels) == 0
    assert after.one("qprof_job_checkpoints_total", **labels) == 3
    ends = {result: after.one("qprof_job_ends_total", result=result, **labels)
            for result in ("success", "failure", "signal")}
    assert ends == {"success": 0, "failure": 1, "signal": 0}
    assert after.one("qprof_job_resident_memory_peak_bytes", **labels) >= peak - 16 * PAGE
    job = job_of(report, one.pid)
    phases = {phase["name"]: phase for phase in job["phases"]}
    for name, phase in phases.items():
        of = {**labels, "step": name}
        told = after.one("qprof_phase_resident_memory_peak_bytes", **of)
        assert abs(told / MIB - phase["peak_memory_mb"]) < 0.01, (name, phase)
        assert after.one("qprof_phases_total", **of) == 1
        assert after.one("qprof_phase_seconds_total", **of) == pytest.approx(
            phase["duration_secs"], abs=0.001)
    assert list(phases) == ["Start", "load", "save it", "in child"]
    assert_never_down(during, after)


def test_labels_are_those_asked_for(exporter, own, own_name):
    with exporter("--metrics-labels", "command,pid") as running:
        with Target("wait", path=own) as one:
            metrics = running.when("qprof_processes", 1, command=own_name, pid=str(one.pid))
    assert metrics.label_names("qprof_processes") == {"command", "pid"}


def test_container_is_a_label(exporter, own, own_name):
    with test_audit.container() as (inside, _), exporter() as running:
        with Target("wait", path=own, prefix=inside):
            running.when("qprof_processes", 1, command=own_name,
                         container=test_audit.CONTAINER[:12])


def test_hostile_names(exporter):
    with named(b'a"b\\c\nd\xff\x1b[2J') as path, exporter() as running:
        one = subprocess.Popen([path], stdout=subprocess.DEVNULL)
        try:
            metrics = wait_for(lambda: (m := running.metrics()).of(
                "qprof_processes", command='a\\"b\\\\c\\nd\ufffd\ufffd[2J') and m, "the process")
        finally:
            one.kill()
            one.wait()
    assert_promtool(metrics.text)


def labelled(metrics):
    """How many series there are of label sets of their own."""
    return sum(rows * sum(1 for name, labels in metrics if name == first and "other" not in dict(
        labels).values()) for first, rows in KINDS.items())


def test_more_names_than_there_is_room_for(exporter, own_name):
    """What has no room is summed, and nothing goes down or is missing while programs come and go."""
    seen, limit = [], 100
    with exporter("--max-series", limit) as running, contextlib.ExitStack() as stack:
        for i in range(20):
            path = os.fsdecode(stack.enter_context(named(f"{own_name}-{i}".encode())))
            with Target("touch:1", path=path) as one:
                one.go()
                one.wait()
            if i % 5 == 4:
                seen.append(running.metrics())
    for before, after in zip(seen, seen[1:]):
        assert_never_down(before, after)
    for metrics in seen:
        metrics.assert_sums_up()
        assert 0 < labelled(metrics) <= limit
    assert seen[-1].one("qprof_process_starts_total", command="other") > 0
    assert seen[-1].one("qprof_overflows_total") >= 10
    assert_promtool(seen[-1].text)


def test_churn_is_accounted_for(exporter, tmp_path):
    with Load(tmp_path / "truth", idle=100, forks=300, checkpoints=5000, workers=4,
              seconds=4) as load:
        with exporter() as running:
            before = running.metrics()
            load.go()
            seen = [before, running.metrics(), running.metrics()]
            load.finished()
            hits = sum(n for _, n in load.truth("worker"))
            seen.append(wait_for(lambda: sum((m := running.metrics()).of(
                "qprof_job_checkpoints_total")) >= hits and m, "all checkpoints"))
            report = running.stop()
    for one, next_one in zip(seen, seen[1:]):
        assert_never_down(one, next_one)
        next_one.assert_sums_up()
    after = seen[-1]
    children = load.truth("child")
    started = sum(after.of("qprof_process_starts_total")) - sum(
        before.of("qprof_process_starts_total"))
    assert started >= len(children)
    written = sum(after.of("qprof_process_io_bytes_total", direction="write", layer="syscall"))
    assert written >= sum(bytes_written for _, _, bytes_written in children)
    assert len(after) < 2000
    # Kinds are those of the report, and what they count is what it says.
    for key in ("lost_checkpoints", "lost_process_events", "bad_records"):
        assert after.one("qprof_lost_events_total", kind=key) == quality(report)[key]


# ---- Over HTTP

def test_http_is_what_it_should_be(exporter):
    with exporter() as running:
        answer = running.ask()
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert answer.headers["Connection"].lower() == "close"
        again = running.ask("GET", "/metrics?name=x")
        assert again.body == answer.body or b"qprof_processes" in again.body
        head = running.ask("HEAD")
        assert head.status == 200 and head.body == b""
        assert int(head.headers["Content-Length"]) > 1000
        page = running.ask("GET", "/")
        assert page.status == 200 and b'href="/metrics"' in page.body
        for path in ("/metrics/", "/favicon.ico", "//metrics", "/../etc/passwd"):
            assert running.ask("GET", path).status == 404, path
        for method in ("POST", "PUT", "DELETE", "PATCH", "NONSENSE"):
            refused = running.ask(method, body=b"x" * 1000 if method == "POST" else None)
            assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD"), method
        assert_promtool(answer.body.decode())
        running.stop()


def connected(running):
    return socket.create_connection((running.address.hostname, running.address.port),
                                    timeout=harness.DEADLINE)


def test_slow_clients_neither_block_nor_stay(exporter):
    """Some say nothing, some never finish; others are served meanwhile, and then those are gone."""
    with exporter() as running:
        pid = running.process.pid
        assert armed_timers(pid) == [], "nobody has asked yet"
        silent = [connected(running) for _ in range(5)]
        slow = [connected(running) for _ in range(5)]
        began = time.monotonic()
        for one in slow:
            one.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        assert running.ask().status == 200
        assert running.ask().status == 200
        assert time.monotonic() - began < 5, "others had to wait"
        gone = set()

        def all_gone():
            for one in set(silent + slow) - gone:
                one.settimeout(0)
                try:
                    if one in slow:
                        one.sendall(b"x")
                    ended = one.recv(1000) == b""
                except BlockingIOError:
                    ended = False
                except OSError:
                    ended = True
                if ended:
                    gone.add(one)
            time.sleep(0.3)
            return len(gone) == 10
        wait_for(all_gone, "the end of slow connections")
        wait_for(lambda: armed_timers(pid) == [], "no timer when nobody is there")
        assert running.ask().status == 200
        running.stop()


def test_garbage_is_survived(exporter):
    with exporter() as running:
        for garbage in (b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", os.urandom(4096),
                        b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                        b"GET /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"):
            with connected(running) as one, contextlib.suppress(OSError):
                one.sendall(garbage)
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    pass
        assert running.ask().status == 200
        running.stop()


def test_many_ask_at_once(exporter):
    with exporter() as running:
        clients = [connected(running) for _ in range(30)]  # more than it serves at a time
        for one in clients:
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        for one in clients:
            got = b""
            while more := one.recv(65536):
                got += more
            assert got.startswith(b"HTTP/1.1 200"), got[:100]
            length = int(re.search(rb"Content-Length: (\d+)", got)[1])
            assert len(got.split(b"\r\n\r\n", 1)[1]) == length
            one.close()
        running.stop()


@pytest.mark.parametrize("listen, shown", [
    ("0", "127.0.0.1:"), (":0", "127.0.0.1:"), ("[::1]:0", "[::1]:"), ("0.0.0.0:0", "0.0.0.0:"),
    ("127.1:0", "127.0.0.1:"),
])
def test_addresses(exporter, listen, shown):
    with exporter(listen=listen) as running:
        assert running.url.startswith(f"http://{shown}")
        assert ("no password" in running.stderr.seen) == (listen == "0.0.0.0:0")
        assert running.ask().status == 200
        running.stop()


@pytest.mark.parametrize("listen", ["", "x", "1:2:3", "localhost:9435", "::1:9435", "[::1:9435",
                                    "127.0.0.1", "127.0.0.1:", "9435x", "65536", "-1", "[]:1", " 1",
                                    "127.0.0.1 x:1", "[::1%nowhere]:1", "[::1%]:1"])
def test_wrong_addresses_are_refused(listen):
    run = run_qprof("-a", "--listen", listen)
    assert run.returncode == 125 and "--listen" in run.stderr and "such as" in run.stderr, run


@pytest.mark.parametrize("arguments, says", [
    (("--max-series", "1"), "not a number"), (("--metrics-labels", "uid"), "not some of"),
    (("--metrics-interval", "1ms"), "not a time"), (("--metrics-interval", "x"), "not a time"),
])
def test_wrong_options_are_refused(arguments, says):
    run = run_qprof("-a", *arguments)
    assert run.returncode == 125 and says in run.stderr, run


def test_port_in_use_is_one_line(exporter, tmp_path):
    with exporter() as running:
        run = run_qprof("-a", "-o", tmp_path / "other.yaml", "--listen", running.address.port)
        assert run.returncode == 125
        assert run.stderr == (f"qprof-bpf: cannot serve metrics at {running.address.netloc}: "
                              "the port is in use; choose another with --listen\n"), run
        running.stop()


# ---- The file


def test_stops_while_clients_wait(exporter):
    with exporter() as running:
        waiting = [connected(running) for _ in range(3)]
        running.process.send_signal(signal.SIGTERM)
        report = running.finished()
        for one in waiting:
            one.close()
    assert report["processes"]
