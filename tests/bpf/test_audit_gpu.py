# SPDX-License-Identifier: GPL-2.0-only
"""Memory of GPUs in an audit, to the byte: in its report, events, metrics and view. The library stands in for a driver's."""

import contextlib
import json
import subprocess
from pathlib import Path

import pytest

from exporting import Metrics
from harness import CLEAN_ENV, MIB, PROGRAMS, PYTHON, Lines, job_of, process_of, program, wait_for
from test_audit_events import of_kind, only
from test_audit_view import TOKEN, row_of, view  # noqa: F401 (a fixture)
from test_audit_waits import Waits, events_of
from test_gpu import in_bytes

# Allocates as many MiB as each line says, in place of what it had before.
HOLDER = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1) and not cuda.cuCtxSetCurrent(context)
print("ready", flush=True)
for line in sys.stdin:
    assert not at or not cuda.cuMemFree_v2(at)
    at = ctypes.c_uint64()
    if int(line):
        assert not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(int(line) << 20))
    print("holds", line, end="", flush=True)
"""


class Holder:
    """A process that holds so much on a GPU."""

    def __init__(self):
        self.process = subprocess.Popen([PYTHON, "-c", HOLDER, TOKEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**CLEAN_ENV, "LD_LIBRARY_PATH": str(PROGRAMS)})
        self.pid, self.lines = self.process.pid, Lines(self.process.stdout)

    def __enter__(self):
        self.lines.until("ready")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def hold(self, mib):
        self.process.stdin.write(f"{mib}\n".encode())
        self.process.stdin.flush()
        self.lines.until(f"holds {mib}")


@contextlib.contextmanager
def loaded(library):
    """A process that has it loaded, as long as an audit needs to find it: a short one is gone by then, each time."""
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); sys.stdin.read()"
    with subprocess.Popen([PYTHON, "-c", load, library], stdin=subprocess.PIPE,
                          env={**CLEAN_ENV, "LD_LIBRARY_PATH": str(PROGRAMS)}) as process:
        yield
        process.stdin.close()


def seen_program(one, *command):
    """Again until its probes are there from the start: no process waits for an audit. Its truth, and its pid."""
    def ran():
        done = subprocess.Popen(command, env=CLEAN_ENV, stdout=subprocess.PIPE)
        truth = json.loads(done.communicate()[0])
        wait_for(lambda: of_kind(events_of(one.events, done.pid), "process_exit"), "the end of the process")
        end = of_kind(events_of(one.events, done.pid), "job_end")
        seen = end and (end[0].get("peak_gpu_memory_bytes"), end[0]["checkpoints"])
        return (truth, done.pid) if seen == (truth["peak"], len(truth["rows"]) + 2) else None
    return wait_for(ran, "a job whose calls are all seen")


@pytest.mark.parametrize("name, library", [("gpu", "libcuda.so.1"), ("gpu_amd", "libamdhip64.so.6")])
def test_job(tmp_path, name, library):
    one = Waits(tmp_path)
    with one.audit, loaded(library):
        truth, pid = seen_program(one, program(name), "steps")
        report, _, metrics = one.stopped()
    job = job_of(report, pid)
    assert in_bytes(job, "gpu_peak_memory_mb") == truth["peak"], job
    rows, told = job["memory_usage"][1:-1], of_kind(events_of(one.events, pid), "checkpoint")[1:-1]
    assert len(rows) == len(told) == len(truth["rows"])
    # With the first it has become a job, which begins with what was held then.
    for expected, row, event in [*zip(truth["rows"], rows, told)][1:]:
        got = in_bytes(row, "gpu_memory_mb"), in_bytes(row, "gpu_step_peak_memory_mb")
        assert (row["step"], *got) == (expected["step"], expected["gpu"], expected["peak"]), (expected, row)
        assert (event["gpu_memory_bytes"], event["gpu_step_peak_memory_bytes"]) == got, event
    process, = process_of(report, pid)
    assert in_bytes(process, "gpu_peak_memory_mb") == truth["peak"], process
    assert only(events_of(one.events, pid), "process_exit")["peak_gpu_memory_bytes"] == truth["peak"]
    assert truth["peak"] in metrics.of("qprof_job_gpu_memory_peak_bytes"), metrics


def test_metrics_now(tmp_path):
    """While it runs, without a checkpoint."""
    one = Waits(tmp_path, "--metrics-interval", "1s")

    def told():
        name = Path(f"/proc/{holder.pid}/comm").read_text(encoding="utf-8").strip()
        found = Metrics(one.metrics.read_text(encoding="utf-8")) if one.metrics.exists() else Metrics("")
        return found.of("qprof_process_gpu_memory_bytes", command=name)

    with one.audit, Holder() as holder:
        wait_for(lambda: holder.hold(64) or 64 * MIB in told(), "64 MiB, once its calls are seen")
        holder.hold(3)
        wait_for(lambda: 3 * MIB in told(), "3 MiB")
        holder.hold(0)
        wait_for(lambda: told() and not any(told()), "nothing")
        one.audit.stop()


def test_column_of_the_view(view):  # noqa: F811
    with view("--live", width=160) as shown, Holder() as holder:
        shown.only()
        shown.pane.until(lambda lines: row_of(lines, holder.pid), "its row")
        assert "GPU" not in shown.pane.shows("COMMAND").split()

        def has(cell):
            def there(lines):
                holder.hold(int(cell.split(".")[0]))
                shown.pane.keys("Space")
                row = row_of(lines, holder.pid)
                return row and row.get("GPU") == cell
            return there
        shown.pane.until(has("48.0M"), "48 MiB on a GPU")
        assert "on GPUs 48.0 MiB" in shown.pane.lines()[0]
