# SPDX-License-Identifier: GPL-2.0-only
"""Audits that export metrics, for tests: read them over HTTP, and as Prometheus itself would.

Programs run here under names of their own: on this machine there may be others of the usual names.
"""

import contextlib
import functools
import http.client
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

import harness
from harness import BUILD, Audit, program, wait_for


KINDS = {"qprof_process_starts_total": 20, "qprof_job_starts_total": 8, "qprof_phases_total": 3}


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


@contextlib.contextmanager
def named(name, original="idle"):
    """A program that nobody else runs: its path."""
    with harness.public_dir() as folder:
        path = os.fsencode(folder) + b"/" + name
        shutil.copy(program(original), path)
        os.chmod(path, 0o755)
        yield path


def is_searched(one, path):
    wait_for(lambda: all(byte != harness.NOP for byte in harness.probe_bytes(one.pid, path)),
             "probes in the program")


# ---- What is counted


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


def armed_timers(pid):
    """Those of its timers that will wake it up."""
    found = []
    for text in harness.fdinfo_texts(pid).values():
        found += re.findall(r"^it_value: \((\d+), (\d+)\)", text, re.M)
    assert found, f"{pid} has no timers at all"
    return [value for value in found if value != ("0", "0")]
