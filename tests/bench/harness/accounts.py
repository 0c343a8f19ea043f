# SPDX-License-Identifier: GPL-2.0-only
"""What a command took: its own, its children's, wall time; and what its BPF programs took."""

import os
import subprocess
import time
from dataclasses import dataclass


@dataclass
class Account:
    cpu: float       # user and system of the command and all that it waited for, seconds
    own_cpu: float   # of its first thread alone: of a profiler, without what it profiles
    wall: float
    status: int


def run(args, env, output=None, cpus=None):
    """Runs a command to its end; its output goes to the file output, or nowhere."""
    out = output or subprocess.DEVNULL
    begun = time.monotonic()
    process = subprocess.Popen([str(arg) for arg in args], stdin=subprocess.DEVNULL, stdout=out,
                               stderr=out, env=env, cwd="/",
                               preexec_fn=cpus and (lambda: os.sched_setaffinity(0, cpus)))
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    wall = time.monotonic() - begun
    own = cpu_seconds(process.pid)  # of the zombie: nobody has waited for it yet
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Account(usage.ru_utime + usage.ru_stime, own, wall, process.returncode)


def cpu_seconds(pid):
    """Of the first thread, to the nanosecond."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as stat:
        return int(stat.read().split()[0]) / 1e9


def wake_ups(pid):
    """Voluntary context switches of all threads until now: each is a wait that came to an end."""
    return sum(status(f"{pid}/task/{tid}", "voluntary_ctxt_switches")
               for tid in os.listdir(f"/proc/{pid}/task"))


def status(where, key):
    """A number of /proc/WHERE/status."""
    with open(f"/proc/{where}/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key + ":"))


@dataclass
class BpfProgram:
    id: int
    run_ns: int
    runs: int

    def since(self, before):
        """What came on top of an earlier look at the same program."""
        return BpfProgram(self.id, self.run_ns - before.run_ns, self.runs - before.runs)


def bpf_descriptors(pid):
    """{descriptor: {key: value}} of fdinfo of all BPF maps and programs that a process holds."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as info:
                fields = dict(line.split(":", 1) for line in info if ":" in line)
        except OSError:
            continue
        fields = {key: value.strip() for key, value in fields.items()}
        if "map_type" in fields or "prog_type" in fields:
            found[fd] = fields
    return found


def bpf_memory(pid):
    """Bytes of kernel memory of the BPF maps and programs of a process."""
    return sum(int(fields.get("memlock", 0)) for fields in bpf_descriptors(pid).values())


def bpf_programs(pid):
    """What the kernel counted for each BPF program of a process: {id: BpfProgram}."""
    return {int(f["prog_id"]): BpfProgram(int(f["prog_id"]), int(f["run_time_ns"]), int(f["run_cnt"]))
            for f in bpf_descriptors(pid).values() if "prog_type" in f}
