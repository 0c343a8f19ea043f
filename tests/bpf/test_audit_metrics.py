# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of an audit: --listen and --metrics-file, as Prometheus and node_exporter themselves read them.

Programs run here under names of their own: on this machine there may be others of the usual names.
"""

import contextlib
import functools
import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

import harness
import test_audit
from harness import (BUILD, MIB, PAGE, Audit, Load, Target, job_of, process_of, program, quality,
                     run_qprof, wait_for)

DOCS = Path(__file__).resolve().parents[2] / "docs" / "metrics"
ALERTS = DOCS / "alerts.yml"
DASHBOARD = DOCS / "dashboard.json"
ALERTS_TEST = Path(__file__).with_name("alerts_test.yml")

KINDS = {"qprof_process_starts_total": 9, "qprof_job_starts_total": 8, "qprof_phases_total": 3}


@functools.cache
def unpacked(package):
    """Where Debian's package is, not installed: that would start a service."""
    path = BUILD / "debian" / package
    if not path.is_dir():
        path.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            for update in (False, True):  # apt's lists may be absent or too old
                if update:
                    subprocess.run(["apt-get", "-qq", "update"], check=False)
                done = subprocess.run(["apt-get", "-qq", "download", package], cwd=folder,
                                      capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    break
            else:
                pytest.skip(f"apt-get cannot download {package}: {done.stderr[-300:]}")
            [deb] = Path(folder).glob("*.deb")
            subprocess.run(["dpkg", "-x", deb, f"{folder}/root"], check=True)
            os.rename(f"{folder}/root", path)
    return path


def promtool(*arguments, **kwargs):
    return subprocess.run([unpacked("prometheus") / "usr/bin/promtool", *arguments],
                          capture_output=True, text=True, check=False, **kwargs)


def assert_promtool(text):
    done = promtool("check", "metrics", input=text)
    assert done.returncode == 0 and not done.stdout + done.stderr, (
        f"promtool check metrics: {done.stdout}{done.stderr}")


# ---- The text

SAMPLE = re.compile(r'([a-z_]+)(?:\{(.*)\})? ([0-9.]+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


class Metrics(dict):
    """The samples of a text, as {(name, labels as a frozenset of pairs): value}."""

    def __init__(self, text):
        super().__init__()
        self.types = {}
        self.text = text
        assert text.endswith("\n")
        for line in text[:-1].split("\n"):
            if line.startswith("#"):
                words = line.split(" ", 3)
                assert words[1] in ("HELP", "TYPE"), line
                if words[1] == "TYPE":
                    self.types[words[2]] = words[3]
                continue
            name, labels, value = SAMPLE.fullmatch(line).groups()
            pairs = LABEL.findall(labels or "")
            assert "".join(f'{k}="{v}",' for k, v in pairs)[:-1] == (labels or ""), line
            key = (name, frozenset((k, v) for k, v in pairs if v))
            assert key not in self, f"twice, as an empty label is none: {line}"
            self[key] = float(value)

    def of(self, name, **labels):
        """The values of the samples of that name with these labels, and perhaps others."""
        wanted = {k: v for k, v in labels.items() if v}
        empty = {k for k, v in labels.items() if not v}
        return [value for (n, has), value in self.items()
                if n == name and wanted.items() <= dict(has).items() and not empty & dict(has).keys()]

    def one(self, name, **labels):
        found = self.of(name, **labels)
        assert len(found) == 1, f"expected one {name} {labels}, got {found}"
        return found[0]

    def counters(self):
        return {key: value for key, value in self.items() if self.types[key[0]] == "counter"}

    def label_names(self, name):
        return {k for (n, has) in self if n == name for k, _ in has}

    def assert_sums_up(self):
        """What processes did is what their label sets say, `other` included."""
        for direction in ("read", "write"):
            for layer in ("syscall", "storage"):
                labels = {"direction": direction, "layer": layer}
                total = self.one("qprof_io_bytes_total", **labels)
                parts = sum(self.of("qprof_process_io_bytes_total", **labels))
                assert parts == total, f"{labels}: all did {total}, their label sets {parts}"
        assert sum(self.of("qprof_process_cpu_seconds_total")) == pytest.approx(
            self.one("qprof_cpu_seconds_total"), abs=1e-3)


def assert_never_down(before, after):
    down = {key: (value, after[key]) for key, value in before.counters().items()
            if key in after and after[key] < value}
    assert not down, f"counters that went down: {down}"


class Exporter(Audit):
    """An audit that serves metrics."""

    def __init__(self, path, *options, listen="127.0.0.1:0"):
        super().__init__(path, ("--listen", listen, *options))

    def __enter__(self):
        super().__enter__()
        self.url = re.search(r"metrics at (http://\S+)/metrics", self.stderr.seen)[1]
        self.address = urllib.parse.urlsplit(self.url)
        return self

    def ask(self, method="GET", path="/metrics", **kwargs):
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port,
                                                timeout=harness.DEADLINE)
        try:
            connection.request(method, path, **kwargs)
            answer = connection.getresponse()
            answer.body = answer.read()
            return answer
        finally:
            connection.close()

    def metrics(self):
        """As of now: an answer is good for a second."""
        time.sleep(1.05)
        answer = self.ask()
        assert answer.status == 200
        return Metrics(answer.body.decode())


    def when(self, name, value, **labels):
        """As soon as the one sample of that name and labels has the value: records may wait a while."""
        def there():
            metrics = self.metrics()
            return metrics if metrics.of(name, **labels) == [value] else None
        return wait_for(there, f"{name} {labels} of {value}")


@pytest.fixture
def exporter(tmp_path):
    def start(*options, **kwargs):
        return Exporter(tmp_path / "audit.yaml", *options, **kwargs)
    return start


@contextlib.contextmanager
def named(name, original="idle"):
    """A program that nobody else runs: its path."""
    with harness.public_dir() as folder:
        path = os.fsencode(folder) + b"/" + name
        shutil.copy(program(original), path)
        os.chmod(path, 0o755)
        yield path


@pytest.fixture
def own_name():
    return f"qm-{os.getpid()}"


@pytest.fixture
def own(own_name):
    with named(own_name.encode()) as path:
        yield os.fsdecode(path)


def is_searched(one, path):
    wait_for(lambda: all(byte != harness.NOP for byte in harness.probe_bytes(one.pid, path)),
             "probes in the program")


# ---- What is counted

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


def armed_timers(pid):
    """Those of its timers that will wake it up."""
    found = []
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        found += re.findall(r"^it_value: \((\d+), (\d+)\)", path.read_text(), re.M)
    assert found, f"{pid} has no timers at all"
    return [value for value in found if value != ("0", "0")]


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
])
def test_addresses(exporter, listen, shown):
    with exporter(listen=listen) as running:
        assert running.url.startswith(f"http://{shown}")
        assert ("no password" in running.stderr.seen) == (listen == "0.0.0.0:0")
        assert running.ask().status == 200
        running.stop()


@pytest.mark.parametrize("listen", ["", "x", "1:2:3", "localhost:9435", "::1:9435", "[::1:9435",
                                    "127.0.0.1", "127.0.0.1:", "9435x", "65536", "-1", "[]:1", " 1"])
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

@pytest.fixture
def folder():
    with harness.public_dir() as path:
        yield path


def file_audit(tmp_path, path, interval="100ms"):
    return Audit(tmp_path / "audit.yaml", ("--metrics-file", path, "--metrics-interval", interval))


def test_file_is_whole_at_every_moment(tmp_path, folder):
    path = folder / "qprof.prom"
    old_mask = os.umask(0o077)
    try:
        with file_audit(tmp_path, path) as running:
            wait_for(path.exists, "the file")
            updates, reads = set(), 0
            while len(updates) < 8:
                text = path.read_text()
                reads += 1
                assert text.endswith("\n") and "qprof_phases_total{" in text.splitlines()[-1]
                updates.add(Metrics(text).one("qprof_update_time_seconds"))
            wait_for(lambda: len(armed_timers(running.process.pid)) == 1, "the file's timer")
            report = running.stop()
    finally:
        os.umask(old_mask)
    last = Metrics(path.read_text())
    assert last.one("qprof_audit_running") == 0
    last.assert_sums_up()
    assert "process_cpu_seconds_total" not in last.types, "node_exporter has one of its own"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [p.name for p in folder.iterdir()] == ["qprof.prom"], "nothing is left beside it"
    assert last.one("qprof_lost_events_total", kind="bad_records") == 0
    assert report["qprof"]["processes_alive"] == sum(last.of("qprof_processes"))
    assert_promtool(path.read_text())


def test_file_in_a_directory_that_goes_and_comes(tmp_path, folder):
    path = folder / "in" / "qprof.prom"
    path.parent.mkdir()
    with file_audit(tmp_path, path) as running:
        wait_for(path.exists, "the file")
        path.parent.rename(folder / "away")
        running.stderr.until("cannot write")
        time.sleep(0.5)  # some tries more, of which nothing is said
        (folder / "away").rename(path.parent)
        running.stderr.until("is written again")
        report = running.stop()
    assert running.stderr.seen.count("cannot write") == 1, "once is enough"
    assert any("No such file" in w["why"] for w in report["quality"]["warnings"])


def test_file_on_a_full_disk(tmp_path):
    with harness.tmpfs(tmp_path / "disk", "256k") as disk:
        path = disk / "qprof.prom"
        with file_audit(tmp_path, path, "2s") as running:
            wait_for(path.exists, "the file")
            with pytest.raises(OSError, match="No space"):
                (disk / "filler").write_bytes(bytes(MIB))
            running.stderr.until("No space left on device")
            left = sorted(p.name for p in disk.iterdir())  # the next try is to come
            assert left == ["filler", "qprof.prom"], "what could not be written is gone"
            old = Metrics(path.read_text())  # as it was
            (disk / "filler").unlink()
            running.stderr.until("is written again")
            wait_for(lambda: Metrics(path.read_text()).one("qprof_update_time_seconds") > old.one(
                "qprof_update_time_seconds"), "a newer file")
            running.stop()


def test_file_that_cannot_be_written_is_refused(tmp_path, folder):
    (folder / "link.prom").symlink_to(folder / "victim")
    (folder / "dir.prom").mkdir()
    for path, why in ((folder / "none" / "x.prom", "No such file"), ("/dev/null", "no regular file"),
                      (folder / "link.prom", "symbolic link"), (folder / "dir.prom", "directory"),
                      (f"{folder}/", "directory"), ("/proc/x.prom", ""),
                      (folder / ("a" * 250 + ".prom"), "too long")):
        run = run_qprof("-a", "-o", tmp_path / "a.yaml", "-d", "1ms", "--metrics-file", path)
        assert run.returncode == 125 and run.stderr.count("\n") == 1 and why in run.stderr, run
        assert "--metrics-file" in run.stderr
    assert not (folder / "victim").exists()


def test_file_where_others_can_write(tmp_path, folder):
    """Somebody puts links in the way: none is followed."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path, temporary = folder / "qprof.prom", folder / ".qprof.prom.qprof-new"
    temporary.symlink_to(victim)
    with file_audit(tmp_path, path) as running:
        wait_for(path.exists, "the file")
        for _ in range(5):
            before = path.stat(follow_symlinks=False).st_ino
            with contextlib.suppress(FileExistsError):
                temporary.symlink_to(victim)
            path.unlink()
            path.symlink_to(victim)
            wait_for(lambda: path.exists() and not path.is_symlink(), "the file in the link's place")
            assert path.stat().st_ino != before or path.stat().st_size
        running.stop()
    assert victim.read_text() == "mine"
    assert stat.S_ISREG(path.stat(follow_symlinks=False).st_mode)


def test_name_that_node_exporter_would_not_read_is_said(tmp_path, folder):
    with file_audit(tmp_path, folder / "qprof.txt") as running:
        running.stop()
    assert "end in .prom" in running.stderr.seen


# ---- Those who read it

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def serving(*command, log):
    with open(log, "wb") as out:
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=out)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def fetched(url, process, log):
    """What is at url, as soon as somebody answers."""
    def answered():
        assert process.poll() is None, f"it ended: {Path(log).read_text()[-2000:]}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            return None
    return wait_for(answered, url)


def test_node_exporter_reads_the_file(tmp_path, folder, own, own_name):
    path = folder / "qprof.prom"
    with Target("touch:9", "wait", path=own) as one:
        one.go()
        with file_audit(tmp_path, path) as running:
            running.stop()
    port, log = free_port(), tmp_path / "node_exporter.log"
    with serving(unpacked("prometheus-node-exporter") / "usr/bin/prometheus-node-exporter",
                 "--collector.disable-defaults", "--collector.textfile",
                 f"--collector.textfile.directory={folder}",
                 f"--web.listen-address=127.0.0.1:{port}", log=log) as process:
        text = fetched(f"http://127.0.0.1:{port}/metrics", process, log)
    assert "node_textfile_scrape_error 0\n" in text, Path(log).read_text()
    assert f'node_textfile_mtime_seconds{{file="{path}"}}' in text
    wanted = Metrics(path.read_text())
    # It writes numbers in its own way, and labels in their order.
    got = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
           if line.startswith("qprof_")}
    assert len(got) == len(wanted)
    line = next(line for line in got if line.startswith("qprof_process_resident_memory_peak_bytes{")
                and f'command="{own_name}"' in line)
    assert got[line] == wanted.one("qprof_process_resident_memory_peak_bytes", command=own_name)
    assert got[line] > 9 * MIB


class Prometheus:
    def __init__(self, port, process, log):
        self.url, self.process, self.log = f"http://127.0.0.1:{port}", process, log

    def get(self, path):
        return json.loads(fetched(self.url + path, self.process, self.log))["data"]

    def query(self, expr):
        return self.get("/api/v1/query?" + urllib.parse.urlencode({"query": expr}))["result"]


@contextlib.contextmanager
def prometheus(tmp_path, target):
    port, log = free_port(), tmp_path / "prometheus.log"
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [{"job_name": "qprof", "static_configs": [{"targets": [target]}]}]}))
    with serving(unpacked("prometheus") / "usr/bin/prometheus", f"--config.file={config}",
                 f"--storage.tsdb.path={tmp_path}/tsdb", f"--web.listen-address=127.0.0.1:{port}",
                 log=log) as process:
        yield Prometheus(port, process, log)


def dashboard_expressions():
    dashboard = json.loads(DASHBOARD.read_text())
    exprs = [(panel["title"], target["expr"]) for panel in dashboard["panels"]
             for target in panel["targets"]]
    assert len(exprs) > 12
    return exprs


def alert_expressions():
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [(rule["alert"], rule["expr"]) for group in groups for rule in group["rules"]]


def filled_in(expr):
    """As Grafana does it with everything chosen."""
    return expr.replace("$__rate_interval", "10s").replace("$instance", ".*").replace(
        "$job_name", ".*")


def test_prometheus_scrapes_it(exporter, own, own_name, tmp_path):
    """A real one: what it has is what was served, alerts load, and every panel shows something."""
    with exporter() as running, prometheus(tmp_path, running.address.netloc) as server:
        with Target(path=own) as first:
            is_searched(first, own)
        with Target("mark:one", "touch:8", "mark:two", "wait", path=own) as one:
            one.go()
            one.go()
            one.go()
            wait_for(lambda: server.query(f'qprof_jobs{{job_name="{own_name}"}}'), "the job")
            # Labels are as they were: none is Prometheus's own.
            [job] = server.query(f'qprof_jobs{{job_name="{own_name}"}}')
            assert job["metric"] == {"__name__": "qprof_jobs", "job_name": own_name, "uid": "0",
                                     "job": "qprof", "instance": running.address.netloc}
            wait_for(lambda: server.query(
                f'qprof_phase_resident_memory_peak_bytes{{job_name="{own_name}"}} > 0'), "phases")
            wait_for(lambda: server.query('rate(qprof_cpu_seconds_total[10s])'), "two scrapes")
            for title, expr in dashboard_expressions():
                assert server.query(filled_in(expr)), f"the panel {title!r} is empty: {expr}"
        assert [t["health"] for t in server.get("/api/v1/targets")["activeTargets"]] == ["up"]
        [samples] = server.query('scrape_samples_scraped{job="qprof"}')
        [kept] = server.query('scrape_samples_post_metric_relabeling{job="qprof"}')
        assert samples["value"][1] == kept["value"][1]

        def evaluated():
            rules = [rule for group in server.get("/api/v1/rules")["groups"]
                     for rule in group["rules"]]
            return all(rule["health"] != "unknown" for rule in rules) and rules
        rules = wait_for(evaluated, "rules to be evaluated")
        assert {(rule["name"], rule["health"], rule.get("lastError")) for rule in rules} == {
            (name, "ok", None) for name, _ in alert_expressions()}
        running.stop()


def test_alerts():
    done = promtool("check", "rules", ALERTS)
    assert done.returncode == 0, done.stdout + done.stderr
    with tempfile.TemporaryDirectory() as where:  # the test names the rules as beside itself
        shutil.copy(ALERTS, where)
        shutil.copy(ALERTS_TEST, where)
        done = promtool("test", "rules", ALERTS_TEST.name, cwd=where)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = {test["alertname"] for group in yaml.safe_load(ALERTS_TEST.read_text())["tests"]
              for test in group["alert_rule_test"] if test.get("exp_alerts")}
    assert tested == {name for name, _ in alert_expressions()}, "each fires in some test"


# What Prometheus itself adds to whatever it scrapes.
OF_PROMETHEUS = {"instance", "job"}
WORD = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def names_and_labels(expr):
    """The metrics of a PromQL expression, and the labels that it names for each."""
    text = re.sub(r'"[^"]*"', '""', filled_in(expr))
    grouping = set()
    for group in re.findall(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)", text):
        grouping |= set(WORD.findall(group))
    found = {}
    for name, matchers in re.findall(r"\b((?:qprof|process)_[a-z_]+)(?:\{([^}]*)\})?", text):
        if name in grouping:
            continue
        found.setdefault(name, set()).update(WORD.findall(matchers))
    return found, grouping


def test_names_in_alerts_and_dashboard_are_exported(exporter):
    with exporter() as running:
        metrics = running.metrics()
        running.stop()
    labels = {}  # empty ones included
    for line in metrics.text.splitlines():
        if not line.startswith("#"):
            name = WORD.match(line)[0]
            labels.setdefault(name, set()).update(key for key, _ in LABEL.findall(
                line.partition("{")[2].rpartition("}")[0]))
    for title, expr in dashboard_expressions() + alert_expressions():
        found, grouping = names_and_labels(expr)
        assert found, f"{title}: no metric in {expr}"
        for name, used in found.items():
            assert name in labels, f"{title}: {name} is not exported"
            assert used <= labels[name] | OF_PROMETHEUS, f"{title}: {name} has {labels[name]}"
        known = set().union(*(labels[name] for name in found)) | OF_PROMETHEUS
        assert grouping <= known, f"{title}: by {grouping}, of {known}"
    for rule in ALERTS.read_text().split("- alert:")[1:]:
        used = set(re.findall(r"\$labels\.([a-z_]+)", rule))
        names = set(re.findall(r"\bqprof_[a-z_]+|\bprocess_[a-z_]+", rule))
        known = set().union(*(labels[name] for name in names)) | OF_PROMETHEUS
        assert used <= known, f"{rule}: {used - known}"


def test_stops_while_clients_wait(exporter):
    with exporter() as running:
        waiting = [connected(running) for _ in range(3)]
        running.process.send_signal(signal.SIGTERM)
        report = running.finished()
        for one in waiting:
            one.close()
    assert report["processes"]
