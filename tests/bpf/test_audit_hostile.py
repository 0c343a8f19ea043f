# SPDX-License-Identifier: GPL-2.0-only
"""Audits beside programs that would keep them from the rest of the machine."""

import contextlib
import json
import os
import shutil
import subprocess

import harness
from harness import (AS_NOBODY, DEADLINE, NOBODY, Audit, Lines, Target, job_of, program, public_dir, quality,
                     wait_for)

MARKS = 20


@contextlib.contextmanager
def toggling(mappings):
    """A program of another user that has so many mappings of code and changes them all the time. What it
    has done is in the dictionary at the end."""
    done = {}
    with public_dir() as folder:
        path = folder / "toggles"
        shutil.copy(program("toggles"), path)
        process = subprocess.Popen([*AS_NOBODY, path, str(mappings)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        try:
            lines = Lines(process.stdout)
            done["pid"] = json.loads(lines.next())["ready"]
            yield done
            process.stdin.close()
            done.update(json.loads(lines.next()))
            assert process.wait(DEADLINE) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def searched(one, path):
    """Waits until each probe of that file is attached."""
    wait_for(lambda: harness.NOP not in harness.probe_bytes(one.pid, path), "probes")


def named(report, pid):
    return [w["why"] for w in report["quality"]["warnings"]
            if w["what"].startswith(f"process {pid} ") and w["what"].endswith(f" of user {NOBODY}")]


def test_a_program_that_keeps_changing_its_mappings(tmp_path):
    """Its searches are put off. A neighbour has all its marks, and a program that comes later, too."""
    with toggling(40000) as hostile, Audit(tmp_path / "audit.yaml", ("-v",)) as audit:
        audit.stderr.until("changes its mappings of code all the time")
        with Target(*[f"mark:m{i}" for i in range(MARKS)]) as honest:
            searched(honest, program("idle"))
            for _ in range(MARKS):
                honest.go()
            assert honest.wait() == 0
        path = tmp_path / "late"
        shutil.copy(program("idle"), path)
        with Target("mark:late", path=path) as late:
            searched(late, path)
            late.go()
            assert late.wait() == 0
        report = audit.stop()
    assert hostile["changes"] > 1000, hostile
    counts = quality(report)
    assert counts["limited_searches"] > 0, counts
    whys = named(report, hostile["pid"])
    assert any("changes its mappings of code all the time" in why for why in whys), report["quality"]
    assert any("more than 16384 mappings" in why for why in whys), report["quality"]
    assert not counts["lost_mapping_events"] and not counts["lost_process_events"], counts
    for process, marks in ((honest, MARKS), (late, 1)):
        assert job_of(report, process.pid)["checkpoints"] == marks + 2, job_of(report, process.pid)


def test_a_program_that_loads_libraries_is_not_put_off(tmp_path):
    """As fast as it can, and each of them new: all are searched."""
    libraries = 100
    for i in range(libraries):
        shutil.copy(program("plugin.so"), tmp_path / f"plugin{i}.so")
    actions = [f"dlopen:{tmp_path}/plugin{i}.so" for i in range(libraries)]
    with Audit(tmp_path / "audit.yaml") as audit:
        with Target(*actions, "wait") as honest:
            for _ in actions:
                honest.go()
            for i in range(libraries):
                searched(honest, tmp_path / f"plugin{i}.so")
        report = audit.stop()
    warnings = report["quality"].get("warnings", [])
    assert not [warning for warning in warnings if warning["what"].startswith(f"process {honest.pid} ")], warnings


def open_files(pid):
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


HAS_PROBES = """
#include <stdio.h>
#include <sys/sdt.h>
#include <unistd.h>
#define P8 PROBE PROBE PROBE PROBE PROBE PROBE PROBE PROBE
#define P64 P8 P8 P8 P8 P8 P8 P8 P8
#define PROBE DTRACE_PROBE1(qprof, mark, "never");
void never(void) { P64 }
int main(void)
{
    printf("%d\\n", getpid());
    fflush(stdout);
    getchar();
    DTRACE_PROBE1(qprof, mark, "one");
}
"""
PROBES = 65


def test_a_day_of_new_files(tmp_path):
    """More files with probes than there is room for, one after another, as containers have them: each is new
    and is deleted after its program. The last is searched as the first, and nothing of them is left."""
    starts, options = 40, ("--max-probes", 16 * PROBES, "--max-files", 64)
    model, pids = tmp_path / "model", []
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", model], input=HAS_PROBES, text=True, check=True)
    with Audit(tmp_path / "audit.yaml", options) as audit, Target("mark:first", "mark:last") as lives_on:
        searched(lives_on, program("idle"))
        lives_on.go()
        for i in range(starts):
            path = tmp_path / f"program{i}"
            shutil.copy(model, path)
            with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
                one.stdout.readline()
                searched(one, path)
                one.communicate(b"go\n", timeout=DEADLINE)
                pids.append(one.pid)
            path.unlink()
        lives_on.go()
        assert lives_on.wait() == 0

        def left():
            return [path for path in open_files(audit.process.pid) if path.startswith(str(tmp_path / "program"))]
        wait_for(lambda: not left(), "the last file to be let go of")
        report = audit.stop()
    for pid in pids:
        assert [row["step"] for row in job_of(report, pid)["memory_usage"]] == ["Start", "one", "End"]
    assert job_of(report, lives_on.pid)["checkpoints"] == 4, job_of(report, lives_on.pid)
    assert not [w for w in report["quality"].get("warnings") or [] if str(tmp_path) in w["what"]], report["quality"]
