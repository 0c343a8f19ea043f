# SPDX-License-Identifier: GPL-2.0-only
"""Whole programs to be profiled: quantizations, small and of some gigabytes, a compile of this project, and a shell that
starts many programs."""

import os
import shlex
import subprocess
from dataclasses import dataclass

PYTHON = "/usr/bin/python3"  # whose PyTorch Debian's is


@dataclass
class Workload:
    name: str
    command: list
    missing: str = ""  # why it cannot be run here
    slow: int = 2      # by what its rounds are divided


def prepare(env, quick=False):
    """All of them, ready to run again and again. quick: the small quantizations alone."""
    found = [c_quantizer(env, 256), torch(env, 120)]
    if quick:
        return found
    return found + [c_quantizer(env, 6144, slow=5), torch(env, 2048, slow=5), compilation(env),
                    many_starts(1000)]


def c_quantizer(env, megabytes, slow=2):
    weights, out = env.scratch / f"weights-{megabytes}.f32", env.scratch / f"weights-{megabytes}.int8"
    command = [env.program("quantize"), weights, out]
    if not weights.exists():
        subprocess.run([command[0], "--make", str(megabytes), weights, out], check=True,
                       stdout=subprocess.DEVNULL)
    return Workload(f"C quantizer, {size(megabytes)}", command, slow=slow)


def torch(env, megabytes, slow=3):
    name = f"PyTorch quantization, {size(megabytes)}"
    script = env.root / "tests" / "programs" / "torch_quantize.py"
    there = subprocess.run([PYTHON, "-c", "import torch"], check=False, capture_output=True)
    missing = "" if there.returncode == 0 else "python3-torch is not installed: tools/setup full"
    return Workload(name, [PYTHON, script, "--megabytes", str(megabytes), env.scratch / "torch.pt"],
                    missing, slow=slow)


def cold_read(env, megabytes):
    """Page by page, in no order: each is a request of its own. What there is first is made of it, or dropped."""
    path, page = env.scratch / f"cold-{megabytes}", 4096
    if not path.exists():
        path.write_bytes(bytes(megabytes << 20))
    script = ("import os, sys; fd = os.open(sys.argv[1], os.O_RDWR); os.fsync(fd); n = int(sys.argv[2]); "
              "os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED); os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM); "
              f"[os.pread(fd, {page}, i * 40503 % n * {page}) for i in range(n)]")
    return Workload(f"cold read of {size(megabytes)}, by pages", [PYTHON, "-c", script, path, str((megabytes << 20) // page)])


def size(megabytes):
    return f"{megabytes // 1024} GiB" if megabytes >= 1024 else f"{megabytes} MiB"


def compilation(env):
    build = env.scratch / "compile"
    if not build.exists():
        subprocess.run(["cmake", "-S", env.root, "-B", build, "-DBUILD_TESTING=OFF"], check=True,
                       stdout=subprocess.DEVNULL)
    return Workload("compile of this project", [
        "cmake", "--build", build, "--clean-first", f"-j{os.cpu_count()}"], slow=6)


def many_starts(n):
    """What is added, less what a launch takes, is for each process."""
    return Workload(f"{n:,} times /bin/true", ["sh", "-c", f"i=0; while [ $i -lt {n} ]; do /bin/true; i=$((i + 1)); done"])


def then_wait(workload):
    """The same, and then it says "done" and waits for a line."""
    command = " ".join(shlex.quote(str(part)) for part in workload.command)
    return ["sh", "-c", f"{command} >/dev/null </dev/null; echo done; read line"]
