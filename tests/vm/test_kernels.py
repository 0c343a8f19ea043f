# SPDX-License-Identifier: GPL-2.0-only
"""
The tests of tests/bpf on Debian's 6.1 and 6.12, in QEMU: that everything loads there, and a case of
each subject. Nothing may skip silently: what is not run there is named here.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("QPROF_BUILD", ROOT / "build")).resolve()

# Emulation is slow: some cases of each subject. Not those of test_io.py: they need a disk, which the guest
# does not have. On 6.1 a thread keeps up to 64 faults of each kind to itself, so processes that
# stand still are not exact there (docs/exactness.md).
CASES = " or ".join([
    "spike-64MiB", "mremap", "shmem", "thp-256MiB-200us",
    "test_sequence", "test_metrics", "test_hostile_names", "test_unreadable_names", "test_cold_names",
    "test_linked_library", "test_dlopen_emits_at_once", "test_exec_emits_at_once",
    "test_other_mount_namespace", "test_doctor",
    "test_endings", "test_short_lived", "test_vfork", "test_hostile_arguments", "test_attach_to_several",
])
FILES = ["test_memory.py", "test_checkpoints.py", "test_discovery.py", "test_processes.py"]


def kernels():
    done = subprocess.run([HERE / "kernels", BUILD / "kernels"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f"expected kernels to be downloaded: {done.stderr}"
    return done.stdout.split()


@pytest.mark.parametrize("series", ["6.1", "6.12"])
def test_kernel(series):
    kernel = next(path for path in kernels() if f"linux-image-{series}." in path)
    tests = [str(ROOT / "tests" / "bpf" / name) for name in FILES]
    # The current directory is what the guest has of the host's /tmp, if the project is there.
    run = subprocess.run(
        [HERE / "boot", kernel, "env", f"QPROF_BUILD={BUILD}", "QPROF_TEST_DEADLINE=300",
         "QPROF_SCRATCH=/tmp", "PYTHONDONTWRITEBYTECODE=1", sys.executable, "-m", "pytest", "-q",
         "-p", "no:cacheprovider", "-k", CASES, *tests],
        cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    print(run.stdout[-8000:], run.stderr[-2000:])
    assert run.returncode == 0, f"expected all to pass on {series}, got exit status {run.returncode}"
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and int(passed.group(1)) >= 20, "expected at least 20 tests to have run"
    assert "skipped" not in run.stdout.splitlines()[-1], f"nothing may skip: {run.stdout[-300:]}"
