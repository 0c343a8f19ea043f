# SPDX-License-Identifier: GPL-2.0-only
"""Files of another user that are as much work as possible to search, beside an audit."""

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import harness
import heavy_files
from harness import (AS_NOBODY, CLEAN_ENV, MIB, NOBODY, PYTHON, Audit, Lines, Target, job_of, program, quality,
                     step_names, wait_for)

OTHER = 65533  # a user who does nothing of the kind
# Maps a file; of several, a child for each. What it loads after that makes the dynamic linker tell.
MAPS = """
import ctypes, mmap, os, sys
for path in sys.argv[2:]:
    if len(sys.argv) == 3 or not os.fork():
        with open(path, "rb") as file:
            kept = mmap.mmap(file.fileno(), 8192, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        ctypes.CDLL(sys.argv[1])
        os.write(1, b"mapped\\n")
        sys.stdin.read()
        os._exit(0)
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def mapping(folder, files):
    """Programs of another user have these files mapped, which are his."""
    plugin = shutil.copy(program("plugin.so"), folder)
    for path in files:
        os.chown(path, NOBODY, NOBODY)
    one = subprocess.Popen([*AS_NOBODY, PYTHON, "-c", MAPS, plugin, *files], env=CLEAN_ENV, stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE)
    try:
        lines = Lines(one.stdout)
        for _ in files:
            lines.until("mapped")
        yield
    finally:
        one.kill()
        one.wait()
        one.stdin.close()
        one.stdout.close()


def has_probes(one, path):
    return harness.NOP not in harness.probe_bytes(one.pid, path)


def marks(path, prefix=()):
    """A program of that path that has made its marks, once it had its probes."""
    with Target("mark:one", "mark:two", path=path, prefix=prefix) as one:
        wait_for(lambda: has_probes(one, path), "probes")
        one.go()
        one.go()
        assert one.wait() == 0
    return one


def peak_memory(pid):
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def said_of(report, user):
    return [w["why"] for w in report["quality"]["warnings"] if w["what"] == f"files of user {user}"]


def test_symbols_of_a_hostile_file(tmp_path):
    """Two tables of 48 MiB each, which were sorted for 4 to 15 s, in 540 MiB."""
    with harness.public_dir(NOBODY) as folder, Audit(tmp_path / "audit.yaml") as audit:
        heavy_files.write(folder / "heavy", 48 * MIB)
        with mapping(folder, [folder / "heavy"]):
            honest = marks(program("idle"))
            memory = peak_memory(audit.process.pid)
            report = audit.stop()
    assert step_names(job_of(report, honest.pid)) == ["one", "two"]
    assert memory < 128 * MIB, f"{memory / MIB:.0f} MiB"
    assert quality(report)["unsearched_files"] == 1, report["quality"]
    assert any("more symbols than are read" in why for why in said_of(report, NOBODY)), report["quality"]


def test_time_for_the_files_of_a_user(tmp_path):
    """Each is small enough to be read, and they take seconds: they come later, and those of other users do not."""
    with harness.public_dir(NOBODY) as folder, Audit(tmp_path / "audit.yaml") as audit:
        files = [folder / f"heavy{i}" for i in range(8)]
        for path in files:
            heavy_files.write(path, 12 * MIB)
        theirs = shutil.copy(program("idle"), folder)
        os.chown(theirs, OTHER, OTHER)
        with mapping(folder, files):
            honest = marks(program("idle"))
            other = marks(theirs, ("setpriv", f"--reuid={OTHER}", "--clear-groups"))
            report = audit.stop()
    for one in (honest, other):
        assert step_names(job_of(report, one.pid)) == ["one", "two"], job_of(report, one.pid)
    assert quality(report)["limited_searches"] > 0, report["quality"]
    assert any("searched later" in why for why in said_of(report, NOBODY)), report["quality"]
    assert not said_of(report, OTHER), report["quality"]


RECIPE = """
name: heavy
read_from: "tests/bpf/test_heavy_files.py"
match: {executable: "python*", arguments: "*/qprof-public-*/heavy*"}
checkpoints:
- {symbol: "y*"}
"""


def test_functions_of_a_recipe_in_files_of_a_user(tmp_path):
    """His programs are recognised by a recipe that wants functions, so that all symbols of their files are read."""
    (tmp_path / "recipe.yaml").write_text(RECIPE, encoding="ascii")
    with harness.public_dir(NOBODY) as folder, contextlib.ExitStack() as stack:
        files = [folder / f"heavy{i}" for i in range(8)]
        for path in files:
            heavy_files.write(path, 12 * MIB, probe=b"")
        audit = stack.enter_context(Audit(tmp_path / "audit.yaml",
                                          ("-v", "--recipe", tmp_path / "recipe.yaml", "--recipe", "none")))
        for path in files:
            stack.enter_context(mapping(folder, [path]))
        audit.stderr.until("they map is searched later")
        honest = marks(program("idle"))
        report = audit.stop()
    assert step_names(job_of(report, honest.pid)) == ["one", "two"]
    assert quality(report)["limited_searches"] > 0, report["quality"]
    assert any("searched later" in why for why in said_of(report, NOBODY)), report["quality"]


CROWD = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>
#define P8(p) p p p p p p p p
#define PROBE DTRACE_PROBE1(qprof, mark, "never");
void never(void) { P8(P8(P8(P8(PROBE)))) }
int main(int argc, char **argv)
{
    char byte;
    for (int i = 1; i < atoi(argv[1]); i++)
        if (!fork())
            return read(0, &byte, 1);
    puts("ready");
    fflush(stdout);
    return read(0, &byte, argc > 0);
}
"""


def test_probes_that_many_processes_have_mapped(tmp_path):
    """4,096 probes in 800 processes: the kernel writes three million breakpoints, in many seconds that nobody can
    end. Some of them are attached; meanwhile, and later, others have theirs."""
    with harness.public_dir(NOBODY) as folder:
        path = folder / "crowd"
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", path], input=CROWD, text=True, check=True)
        os.chown(path, NOBODY, NOBODY)
        with subprocess.Popen([*AS_NOBODY, path, "800"], env=CLEAN_ENV, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as crowd:
            Lines(crowd.stdout).until("ready")
            try:
                with Audit(tmp_path / "audit.yaml") as audit:
                    honest = marks(program("idle"))
                    probes = harness.probe_bytes(crowd.pid, path)
                    report = audit.stop()
            finally:
                crowd.communicate(b"", timeout=harness.DEADLINE)
    attached = sum(byte != harness.NOP for byte in probes)
    assert 0 < attached < len(probes), f"{attached} of {len(probes)}"
    assert step_names(job_of(report, honest.pid)) == ["one", "two"]
    assert quality(report)["unsearched_files"] == 1, report["quality"]
    assert any("too many probes for the processes" in why for why in said_of(report, NOBODY)), report["quality"]
