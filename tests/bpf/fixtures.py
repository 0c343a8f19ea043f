# SPDX-License-Identifier: GPL-2.0-only
"""Fixtures of the tests on the real kernel. QPROF_BUILD is the build directory (build/)."""

import fcntl
import functools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

import exporting
import groups
import harness
from refusals import limited, sparing  # noqa: F401 pylint: disable=unused-import


def pytest_configure(config):
    config.addinivalue_line("markers", "full: needs packages that tools/check --full installs")
    config.addinivalue_line("markers", "long: takes many seconds, and tests nothing that depends on a "
                                       "compiler or a library; left out by tools/check --short")


def pytest_collection_modifyitems(items):
    """One reason for all where nothing can run, so that it is said once and clearly."""
    if not harness.QPROF.exists():
        reason = f"{harness.QPROF} is not there: build first, or set QPROF_BUILD"
    elif not (harness.PROGRAMS / "memory").exists():
        reason = f"{harness.PROGRAMS}/memory is not there: build the target 'programs'"
    elif os.geteuid():
        reason = "needs root, to load BPF programs"
    else:
        return
    for item in items:
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What fails says what the profiles of the test say of themselves: a mark that is missing may be counted there."""
    del item
    if call.when == "setup":
        harness.parsed.clear()
    report = (yield).get_result()
    if report.failed:
        said = [(harness.losses(one) | {"hasty_starts": one["quality"].get("hasty_starts", 0)},
                 one["quality"].get("warnings", [])) for one in harness.parsed[-4:] if one.get("quality")]
        report.sections += [("quality of a profile", f"{counts}\n{warnings}") for counts, warnings in said]


@functools.cache
def only_tests():
    """Waits until no other test run is on this machine, and holds it until this one ends. An audit watches all
    processes, and its probes are in each file that has some: two runs at a time would see each other."""
    lock = open("/tmp/qprof-bpf-tests.lock", "w", encoding="ascii")  # pylint: disable=consider-using-with
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


@pytest.fixture(scope="session", autouse=True)
def alone():
    only_tests()


@pytest.fixture(scope="session", autouse=True)
def told_kernel(record_testsuite_property):
    """Which kernel the results are of, for whoever reads them (tests/vm/tables.py)."""
    record_testsuite_property("kernel", os.uname().release)


@pytest.fixture
def out(tmp_path):
    """Where a profile goes."""
    return tmp_path / "qprof.yaml"


@pytest.fixture
def profile(out):
    """profile(*command, options=(), status=0): a Run with its profile and the program's truth."""
    def run(*command, **kwargs):
        return harness.profile_command(out, *command, **kwargs)
    return run


@pytest.fixture
def unhurried(out):
    """As profile, for tests of programs that load libraries; see repeated_if_hasty()."""
    def run(*command, **kwargs):
        return harness.repeated_if_hasty(lambda: harness.profile_command(out, *command, **kwargs))
    return run


@pytest.fixture
def attach(out):
    """with attach(pid, ...) as attached: qprof-bpf is on the target."""
    def start(*pids, path=None, options=()):
        return harness.Attached(path or out, *pids, options=options)
    return start


@pytest.fixture
def target():
    """target(*actions): a program that does them one by one when told to."""
    started = []

    def start(*actions, **kwargs):
        started.append(harness.Target(*actions, **kwargs))
        return started[-1]
    yield start
    for one in started:
        one.__exit__()


@pytest.fixture
def disk():
    """A directory on real storage; QPROF_SCRATCH says where to make it, if not in the build."""
    base = Path(os.environ.get("QPROF_SCRATCH", harness.BUILD))
    path = Path(tempfile.mkdtemp(prefix="qprof-scratch-", dir=base))
    try:
        if not harness.is_on_disk(path):
            pytest.skip(f"{base} is not on a disk, set QPROF_SCRATCH: what comes from storage "
                        "cannot be told there")
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def slow_weights(disk):
    """(8 MiB, the cgroup.procs of who reads them at 10 MiB/s), for who drops what is in the page cache first"""
    path = disk / "weights"
    path.write_bytes(b"w" * (8 * harness.MIB))
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    device = os.stat(path).st_dev
    number, most = f"{os.major(device)}:{os.minor(device)}", 10 * harness.MIB
    with groups.cgroup("blkio", {"blkio.throttle.read_bps_device": f"{number} {most}"},
                       {"io.max": f"{number} rbps={most}"}) as procs:
        yield path, procs


@pytest.fixture
def huge_pages():
    """huge_pages(n): the machine has so many free ones while the test runs."""
    pool = Path("/proc/sys/vm/nr_hugepages")
    before = int(pool.read_text(encoding="ascii")) if pool.exists() else None

    def take(n):
        if before is None:
            pytest.skip("this kernel has no hugetlb memory (CONFIG_HUGETLB_PAGE)")
        pool.write_text(str(before + n), encoding="ascii")
        free = harness.meminfo("HugePages_Free")
        if free < n:
            pytest.skip(f"the machine has {free} huge pages free, not {n}: memory is short, or in pieces")
    yield take
    if before is not None:
        pool.write_text(str(before), encoding="ascii")


@pytest.fixture
def script(tmp_path, profile):
    """script(text): a Python program that may import qprof, profiled."""
    def run(text, *args, env=(), **kwargs):
        path = tmp_path / "script.py"
        path.write_text(text)
        return profile(harness.PYTHON, path, *args, env={**harness.QPROF_PACKAGE, **dict(env)},
                       **kwargs)
    return run


@pytest.fixture
def target_python(tmp_path, target):
    """target_python(text): a Python program to attach to; as target()."""
    def start(text):
        path = tmp_path / "target.py"
        path.write_text(text)
        return target(str(path), path=harness.PYTHON, env=harness.QPROF_PACKAGE)
    return start


@pytest.fixture
def exporter(tmp_path):
    def start(*options, **kwargs):
        return exporting.Exporter(tmp_path / "audit.yaml", *options, **kwargs)
    return start


@pytest.fixture
def own_name():
    return f"qm-{os.getpid()}"


@pytest.fixture
def own(own_name):
    with exporting.named(own_name.encode()) as path:
        yield os.fsdecode(path)
