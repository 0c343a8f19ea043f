# SPDX-License-Identifier: GPL-2.0-only
"""Whole programs to be profiled: two quantizations, and a compile of this project."""

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
    """All of them, ready to run again and again. quick: without the compile."""
    found = [c_quantizer(env), torch(env)]
    return found if quick else found + [compilation(env)]


def c_quantizer(env):
    weights, out = env.scratch / "weights.f32", env.scratch / "weights.int8"
    command = [env.program("quantize"), weights, out]
    if not weights.exists():
        subprocess.run([command[0], "--make", "256", weights, out], check=True,
                       stdout=subprocess.DEVNULL)
    return Workload("C quantizer, 256 MiB", command)


def torch(env):
    name = "PyTorch quantization"
    script = env.root / "tests" / "programs" / "torch_quantize.py"
    there = subprocess.run([PYTHON, "-c", "import torch"], check=False, capture_output=True)
    missing = "" if there.returncode == 0 else "python3-torch is not installed: tools/setup full"
    return Workload(name, [PYTHON, script, env.scratch / "torch.pt"], missing, slow=3)


def compilation(env):
    build = env.scratch / "compile"
    if not build.exists():
        subprocess.run(["cmake", "-S", env.root, "-B", build, "-DBUILD_TESTING=OFF"], check=True,
                       stdout=subprocess.DEVNULL)
    return Workload("compile of this project", [
        "cmake", "--build", build, "--clean-first", f"-j{os.cpu_count()}"], slow=6)


def then_wait(workload):
    """The same, and then it says "done" and waits for a line."""
    command = " ".join(shlex.quote(str(part)) for part in workload.command)
    return ["sh", "-c", f"{command} >/dev/null </dev/null; echo done; read line"]
