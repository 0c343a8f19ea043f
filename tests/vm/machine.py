# SPDX-License-Identifier: GPL-2.0-only
"""Other machines to run on: Debian's kernels in QEMU, with as many CPUs as are asked for."""
import functools
import os
import subprocess
import sys
from pathlib import Path

import tables

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("QPROF_BUILD", ROOT / "build")).resolve()

# What a guest finds in its environment. Emulation is slow; and what it has of a disk is at /var/tmp.
ENVIRONMENT = {"QPROF_BUILD": BUILD, "QPROF_TEST_DEADLINE": 300, "QPROF_SCRATCH": "/var/tmp",
               "QPROF_GUEST": 1, "PYTHONDONTWRITEBYTECODE": 1}


@functools.cache
def kernels():
    done = subprocess.run([HERE / "kernels", BUILD / "kernels"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f"expected kernels to be downloaded: {done.stderr}"
    return done.stdout.split()


def boot(series, *command, **limits):
    """Runs a command on the kernel of that series; limits: those of tests/vm/boot, as in cpus=64."""
    kernel = next(path for path in kernels() if f"linux-image-{series}." in path)
    env = {**os.environ, **{f"VM_{name.upper()}": str(value) for name, value in limits.items()}}
    told = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
    # The current directory is what the guest can write to of the host's.
    return subprocess.run([HERE / "boot", kernel, "env", *told, *command], cwd=ROOT, env=env,
                          capture_output=True, text=True, errors="replace", check=False)


def run_tests(series, name, *options, **limits):
    """Runs tests of tests/bpf there. (the finished run, tables.Results or None if it did not get to any)"""
    assert BUILD.is_relative_to(ROOT), f"a guest can write below {ROOT} only, not to {BUILD}"
    path = BUILD / "vm" / f"{name}.xml"
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    run = boot(series, sys.executable, "-m", "pytest", "-v", "--tb=short", "-p", "no:cacheprovider",
               "-o", "junit_family=xunit1", "--durations=25", f"--rootdir={ROOT}", f"--junitxml={path}", *options,
               **limits)
    print(run.stdout[-20000:], run.stderr[-2000:])
    found = tables.read_results([path]) if path.exists() else {}
    return run, found.get(series)
