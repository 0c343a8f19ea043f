# SPDX-License-Identifier: GPL-2.0-only
"""How much memory a run may have: its cgroup's limit, or the machine's; and how close it comes to it."""

import json
import os
import re
import subprocess

import pytest

import groups
from groups import hierarchy
from harness import (Attached, CLEAN_ENV, Lines, MIB, NOP, PAGE, QPROF, meminfo, parse, probe_bytes, program, run_qprof,
                     wait_for)
from terminal import Terminal


@pytest.fixture
def limited():
    """limited(bytes): what is to be put before a command to run in a cgroup below one with that limit."""
    if not hierarchy()[0]:
        pytest.skip("no memory cgroups are mounted")
    with groups.Limited("limit", MIB) as group:
        def start(size):
            group.limit.write_text(str(size), encoding="ascii")
            return group.prefix, group.path
        yield start


def test_limit_of_a_cgroup_above(out, limited):
    """The limit is of a cgroup above the one that the command is in."""
    before, path = limited(300 * MIB)
    assert run_qprof("-q", "-o", out, "--", "true", through=before).returncode == 0
    said = parse(out)["qprof"]
    assert (said["memory_limit_mb"], said["memory_limit_of"]) == (300, f"cgroup {path}"), said


def test_limit_of_the_machine(out, limited):
    """A cgroup that may have more than there is has no say."""
    before, _ = limited(meminfo("MemTotal") * 1024 * 2)
    assert run_qprof("-q", "-o", out, "--", "true", through=before).returncode == 0
    said = parse(out)["qprof"]
    assert said["memory_limit_of"] == "machine" and round(said["memory_limit_mb"] * 1024) == meminfo("MemTotal"), said


# What a cgroup is charged for beside the memory of programs: page tables, stacks, and the like.
KERNEL = 4 * MIB
# A CPU takes charges in advance.
SLACK = 64 * PAGE * os.cpu_count()


def warnings_of(text):
    return [line for line in " ".join(text.split()).split("qprof-bpf: ") if line.startswith("warning: ")]


def grows(layers, mib, *stops):
    return program("grows"), str(layers), str(mib), *map(str, stops)


class Stepwise:
    """A program that waits before some of its layers, in a cgroup."""

    def __init__(self, before, layers, mib, *stops):
        self.process = subprocess.Popen([*before, *grows(layers, mib, *stops)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=CLEAN_ENV)
        self.pid = self.process.pid
        self.lines = Lines(self.process.stdout)

    def wait_before(self, layer):
        self.lines.until(str(layer))

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def test_warning_in_a_cgroup(out, limited):
    """At 90 %: 27 layers of 10 MiB and what the kernel has for them are more than that of 300 MiB, 26 are not."""
    before, path = limited(300 * MIB)
    run = run_qprof("-o", out, "--warn-at", "90%", "--", *before, *grows(29, 10))
    assert run.returncode == 0, run
    said, = warnings_of(run.stderr)
    assert re.fullmatch(rf"warning: [0-9.]+ MiB left of 300 MiB \(cgroup {path}\), in Layer (26|27|28)", said.strip()), said
    closest = parse(out)["closest_to_limit"]
    assert (closest["of"], closest["limit_mb"]) == (f"cgroup {path}", 300), closest
    # The kernel charges by batches: the last one may come when the last layer is over.
    phase = closest.get("phase", "")
    assert phase in ("Layer 28", ""), closest
    assert 300 * MIB - 290 * MIB - KERNEL - SLACK <= closest["left_mb"] * MIB <= 10 * MIB, closest
    sentence = rf"closest to its limit{phase and f' in {phase}'}: [0-9.]+ MiB left of 300 MiB \(cgroup {path}\)"
    assert re.search(sentence, " ".join(run.stderr.split())), run.stderr
    assert re.search("C" + sentence[1:], " ".join(run_qprof("report", "--width", "160", out).stdout.split()))
    assert re.search('"closest":"' + sentence[8:], run_qprof("report", "-f", "html", "-o", "-", out).stdout)
    assert json.loads(run_qprof("report", "-f", "json", out).stdout)["closest_to_limit"] == closest


@pytest.mark.parametrize("then", ['exec "$@"', '"$@"; exit $?'], ids=["itself", "child"])
def test_a_shell_enters_the_cgroup(out, limited, then):
    """Nothing was limited as the run began, and no checkpoint wakes it: what starts in there is followed."""
    before, path = limited(300 * MIB)
    enter = before[2].partition("exec")[0]
    run = run_qprof("-o", out, "--", "bash", "-c", enter + then, "bash", "dd", "if=/dev/zero",
                    "of=/dev/null", f"bs={280 * MIB}", "count=1")
    assert run.returncode == 0, run
    assert any(f"MiB left of 300 MiB (cgroup {path})" in line for line in warnings_of(run.stderr)), run.stderr
    closest = parse(out)["closest_to_limit"]
    # The last point of the curve is at most a 256th below what dd holds: see closest_to_limit in the documents.
    assert closest["of"] == f"cgroup {path}" and closest["left_mb"] <= 20 + 300 / 256, closest


def test_a_shell_lowers_the_limit(out):
    """ulimit -v, and then the program, of which only looks can tell: so points wake the run by then."""
    command = [str(QPROF), "-o", str(out), "--", "bash", "-c", f'ulimit -v {300 << 10}; exec "$@"', "bash", *grows(28, 10, 28)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=CLEAN_ENV) as run:
        Lines(run.stdout).until("28")
        said = Lines(run.stderr).until("RLIMIT_AS")
        run.communicate(b"\n")
    assert re.search("warning: [0-9.]+ MiB left of 300 MiB \\(RLIMIT_AS\\)", said), said
    closest = parse(out)["closest_to_limit"]
    assert closest["of"] == "RLIMIT_AS" and closest["left_mb"] <= 30, closest


def test_left_is_what_the_cgroup_has_left(out, limited):
    """Attached from outside: while the program waits, the cgroup says the same."""
    before, path = limited(300 * MIB)
    root, _ = hierarchy()
    with Stepwise(before, 20, 10, 0, 20) as target:
        target.wait_before(0)
        with Attached(out, target.pid, options=("--warn-at", "50%")) as attached:
            target.go()
            target.wait_before(20)
            said = attached.stderr.until("warning: ")
            left = 300 * MIB - used(root / path[1:])
            target.go()
            closest = attached.finished()["closest_to_limit"]
    assert f"(cgroup {path}), in Layer 1" in said, said
    # After its last phase it holds as much.
    assert (closest["of"], closest.get("phase", "Layer 19")) == (f"cgroup {path}", "Layer 19"), closest
    # Between two looks page tables are not counted: 2 KiB a MiB, and a few more of the kernel's own.
    assert abs(closest["left_mb"] * MIB - left) <= SLACK + MIB, (closest, left / MIB)


def used(group):
    """What is in use in a cgroup, without page cache."""
    stat = dict(line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
    kind = "total_" if "total_cache" in stat else ""
    now = group / ("memory.usage_in_bytes" if kind else "memory.current")
    return int(now.read_text(encoding="ascii")) - int(stat[kind + "inactive_file"]) - int(stat[kind + "active_file"])


def test_limit_of_an_address_space(out):
    with Stepwise(("bash", "-c", f'ulimit -v {300 << 10}; exec "$@"', "bash"), 29, 10, 0, 29) as target:
        target.wait_before(0)
        with Attached(out, target.pid, options=("--warn-at", "25M")) as attached:
            target.go()
            said = attached.stderr.until("warning: ")
            target.wait_before(29)
            target.go()
            closest = attached.finished()["closest_to_limit"]
    left = re.search(r"warning: ([0-9.]+) MiB left of 300 MiB \(RLIMIT_AS\), in Layer ", said)
    assert left and float(left[1]) < 25, said
    assert (closest["of"], closest["limit_mb"]) == ("RLIMIT_AS", 300) and closest["left_mb"] < 25, closest


def test_nothing_near(out, limited):
    """No word of a limit of which more than half is left; the profile has it."""
    before, path = limited(300 * MIB)
    run = run_qprof("-o", out, "--", *grows(4, 10), through=before)
    assert "limit" not in run.stderr and "warning" not in run.stderr, run.stderr
    closest = parse(out)["closest_to_limit"]
    assert closest["of"] == f"cgroup {path}" and closest["left_mb"] > 150, closest


def test_page_cache_is_left(out, limited, tmp_path):
    """A file of twice the limit is written and read: the cgroup is full of it, and nothing is wrong."""
    before, _ = limited(64 * MIB)
    file = tmp_path / "file"
    run = run_qprof("-o", out, "--warn-at", "80%", "--", *before, "bash", "-c",
                    f"head -c {128 * MIB} /dev/zero > {file}; cat {file} > /dev/null; cat {file} > /dev/null")
    assert run.returncode == 0 and not warnings_of(run.stderr), run.stderr


def test_the_tightest_of_several(out, limited):
    """The second process is in a cgroup with a limit. What the first takes is not charged to that."""
    before, path = limited(300 * MIB)
    with Stepwise((), 40, 10, 0, 40) as free, Stepwise(before, 20, 10, 0, 20) as held:
        free.wait_before(0)
        held.wait_before(0)
        with Attached(out, free.pid, held.pid, options=("--warn-at", "80%")) as attached:
            for target, last in ((held, 20), (free, 40)):
                target.go()
                target.wait_before(last)
            free.go()
            held.go()
            profile = attached.finished()
    assert (profile["qprof"]["memory_limit_mb"], profile["qprof"]["memory_limit_of"]) == (300, f"cgroup {path}"), (
        profile["qprof"])
    closest = profile["closest_to_limit"]
    assert closest["of"] == f"cgroup {path}" and 90 <= closest["left_mb"] <= 310, closest
    assert not warnings_of(attached.stderr.seen), attached.stderr.seen


def test_live_line(out, limited, tmp_path):
    """It says what is left when that is little, and when it will be gone."""
    before, _ = limited(300 * MIB)
    with Stepwise(before, 29, 10, 0, 4, 22) as target:
        target.wait_before(0)
        with Terminal(QPROF, "-p", target.pid, "-o", out, home=tmp_path, width=200) as terminal:
            terminal.wait_for(b"attached to")
            target.go()
            target.wait_before(4)
            terminal.wait_for(b"RSS 4")
            line = last_line(terminal)
            assert "left" not in line and "grows" not in line, line
            target.go()
            target.wait_before(22)
            terminal.wait_for(b"  left 7")
            terminal.wait_for(b"\x1b[K")
            line = last_line(terminal)
    said = re.search(r"  left ([0-9.]+) MiB  Layer # grows 10.0 MiB each: limit at about #(29|30|31)  ", line)
    assert said and 70 <= float(said[1]) <= 80, line


def last_line(terminal):
    return terminal.shown[:terminal.seen].rpartition(b"\r")[2].decode()


def test_job_of_an_audit(exporter, limited, tmp_path):
    """Warned of half of the way, by the trend, and at the limit. Metrics say how long it takes."""
    before, path = limited(300 * MIB)
    root, _ = hierarchy()
    labels, events = {"job_name": "grows"}, tmp_path / "events.ndjson"
    with exporter("--events-file", events) as audit:
        with Stepwise(before, 29, 10, *range(30)) as target:
            target.wait_before(0)
            wait_for(lambda: NOP not in probe_bytes(target.pid, program("grows")), "the first layer to be heard")
            # Far enough beyond the half that it does not matter which of the layers were looked at.
            for layer in range(22):
                if layer:
                    target.wait_before(layer)
                target.go()
            target.wait_before(22)
            growth = audit.stderr.until("grows 10.0 MiB each")
            left = 300 * MIB - used(root / path[1:])
            metrics = audit.when("qprof_jobs", 1, **labels)
            for layer in range(22, 29):
                target.go()
                target.wait_before(layer + 1)
            warning = audit.stderr.until("MiB left of 300 MiB")
            target.go()
            assert target.process.wait(60) == 0
        report = audit.stop()
    job = f"warning: job {target.pid} grows"
    assert re.search(rf"{job} 29 10 .*: Layer # grows 10.0 MiB each: 300 MiB \(cgroup {path}\) at about #(29|30|31), in ",
                     growth), growth
    assert re.search(rf"{job} .*: [0-9.]+ MiB left of 300 MiB \(cgroup {path}\), in Layer 2[678]", warning), warning
    assert abs(metrics.one("qprof_job_memory_left_bytes", **labels) - left) <= SLACK + MIB, (metrics, left)
    assert metrics.one("qprof_job_seconds_to_limit", **labels) > 0
    said = [item["why"] for item in report["quality"]["warnings"] if f"job {target.pid} " in item["what"]]
    assert len(said) == 2, report["quality"]["warnings"]
    lines = map(json.loads, events.read_text(encoding="utf-8").splitlines())
    assert [line["why"] for line in lines if f"job {target.pid} " in line.get("what", "")] == said


def test_no_warning_is_wanted(out, limited):
    before, _ = limited(300 * MIB)
    run = run_qprof("-o", out, "--warn-at", "none", "--", *before, *grows(29, 10))
    assert run.returncode == 0 and not warnings_of(run.stderr), run


@pytest.mark.parametrize("value", ["0", "0%", "101%", "-5%", "much"])
def test_bad_limit(value, out):
    run = run_qprof("-o", out, "--warn-at", value, "--", "true")
    assert run.returncode == 125 and "--warn-at" in run.stderr, run
