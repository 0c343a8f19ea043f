# SPDX-License-Identifier: GPL-2.0-only
"""What the profiler itself takes: time until it is attached, CPU time, memory, wake-ups while idle."""

import contextlib
import re
import signal
import time

from harness import accounts, columns as c, measure
from harness.report import Result, Table

TITLE = "What qprof-bpf itself takes"
NOTES = ["Launch: `qprof-bpf -- true`. Idle: attached to a process that sleeps. Wake-ups: voluntary context "
         "switches of all its threads, from the moment it says that it is attached: until 100 ms later it reads what "
         "came before."]


def run(env):
    result = Result(__name__, TITLE, notes=NOTES)
    table = Table(["what", "median", "90 %"])
    launches = [launch(env) for _ in range(3 * env.rounds)]
    for what, unit, values in [
            ("launch: to the command's first instruction", "ms", [x["start_ms"] for x in launches]),
            ("launch: from there to the very end", "ms", [x["rest_ms"] for x in launches]),
            ("launch: own CPU time, all of it", "ms", [x["cpu_ms"] for x in launches]),
            ("attach: to attached", "ms", [attach_ms(env) for _ in range(3 * env.rounds)])]:
        put(result, table, what, unit, measure.median(values))
    for what, unit, value in idle(env, 2 if env.quick else 10):
        result.figures[f"{what}, {unit}"] = value
        table.rows.append([f"{what}, {unit}", f"{value:.4g}", ""])
    result.tables.append(table)
    return result


def put(result, table, what, unit, estimate):
    result.figures[f"{what}, {unit}"] = estimate.json()
    table.rows.append([f"{what}, {unit}", f"{estimate.value:.1f}",
                       f"{estimate.low:.1f} to {estimate.high:.1f}"])


def launch(env):
    profile = env.scratch / "profile.yaml"
    begun = time.time()
    account = accounts.run([env.qprof, "-q", "-o", profile, "--", "true"], env.environ)
    started = float(re.search(r"^  timestamp: ([\d.]+)", profile.read_text("utf-8"), re.M).group(1))
    return {"start_ms": (started - begun) * 1e3, "cpu_ms": account.own_cpu * 1e3,
            "rest_ms": (begun + account.wall - started) * 1e3}


@contextlib.contextmanager
def attached(env):
    with c.running("sleep", "infinity", by=signal.SIGKILL) as target, \
            c.ours_attached(env, target.pid) as profiler:
        yield profiler


def attach_ms(env):
    with c.running("sleep", "infinity", by=signal.SIGKILL) as target:
        begun = time.monotonic()
        with c.ours_attached(env, target.pid):
            return (time.monotonic() - begun) * 1e3


def idle(env, seconds):
    with attached(env) as profiler:
        pid = profiler.pid
        cpu, woken = accounts.cpu_seconds(pid), accounts.wake_ups(pid)
        time.sleep(seconds)  # that nothing happens is what is measured
        yield f"idle for {seconds} s: wake-ups", "count", accounts.wake_ups(pid) - woken
        yield f"idle for {seconds} s: own CPU time", "ms", (accounts.cpu_seconds(pid) - cpu) * 1e3
        yield "resident memory", "MiB", accounts.status(pid, "VmRSS") / 1024
        yield ("of that file-backed (ring buffers, mapped twice, and libraries)", "MiB",
               accounts.status(pid, "RssFile") / 1024)
        yield "kernel memory of BPF maps and programs", "MiB", accounts.bpf_memory(pid) / 2 ** 20
