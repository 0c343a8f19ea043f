# SPDX-License-Identifier: GPL-2.0-only
"""
arm64: what tools/arm64 builds, on Debian's kernel for it, emulated. Basics of each subject, by the tests that
tests/bpf has of them: the guest has no Python, so each test is led to its command first, then the guest runs
all of them, and then each test judges what came of its own.
"""
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-arm64"
CACHE = Path(os.environ.get("QPROF_ARM64", "/var/cache/qprof-bpf/arm64"))
os.environ["QPROF_BUILD"] = str(BUILD)  # where the tests look for programs
sys.path.insert(0, str(ROOT / "tests" / "bpf"))

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # marks that are registered there
    import harness
    import test_checkpoints
    import test_io
    import test_memory
    import test_stacks
    import test_tree

# What the tests call by the name of a fixture, or of the harness.
PLACES = {"disk": "/var/tmp", "record_property": lambda *_: None, "tmp_path": BUILD / "vm"}

TESTS = [
    (test_checkpoints.test_sequence, {}),
    (test_checkpoints.test_metrics, {}),
    (test_checkpoints.test_unmatched_pairs, {}),
    (test_checkpoints.test_threads, {}),
    (test_checkpoints.test_children, {}),
    (test_memory.test_steps, {}),
    *[(test_memory.test_peak, {"case": case, "size": 64, "hold": 200, "tolerance": test_memory.SINGLE})
      for case in ("spike", "heap", "mremap", "madv_dontneed", "shmem", "file", "file_cow", "exec", "threads")],
    *[(test_tree.test_peak, {"case": case, "size": 16, "count": 3})
      for case in ("overlapping", "short_lived", "cow", "spawn", "thread_forks")],
    *[(test_io.test_call, {"case": case})
      for case in ("read", "preadv", "write", "fsync", "sendfile", "copy_file_range", "cold", "mmap_read", "direct_read",
                   "direct_write", "uring_read", "uring_worker", "uring_skip_write", "children")],
    (test_stacks.test_functions_by_phase, {"name": "stacks"}),
    (test_stacks.test_threads, {}),
]


class Led(Exception):
    """A test has come to its command."""


def lead(test, values, profile):
    """Calls a test of tests/bpf: profile(path, *command, options=()) is in the place of running qprof-bpf."""
    wanted = test.__code__.co_varnames[:test.__code__.co_argcount]
    fixtures = {**PLACES, "profile": lambda *command, **more: profile(None, *command, **more)}
    test_stacks.profile_command = profile
    test(**{name: values[name] if name in values else fixtures[name] for name in wanted})


def command_of(test, values):
    """qprof-bpf's arguments between the file and the command, and the command."""
    def note(_, *command, options=()):
        raise Led([*options, "--", *map(str, command)])
    with pytest.raises(Led) as led:
        lead(test, values, note)
    return led.value.args[0]


def quoted(words):
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


@pytest.fixture(scope="module")
def guest():
    """What came of the commands of all tests: number -> harness.Run."""
    built = subprocess.run([ROOT / "tools" / "arm64", "-DBUILD_TESTING=ON"], capture_output=True, text=True, check=False)
    if built.returncode == 77:
        pytest.skip(built.stdout.splitlines()[-1])
    assert built.returncode == 0, built.stderr
    out = PLACES["tmp_path"]
    subprocess.run(["rm", "-rf", out], check=True)
    out.mkdir()
    script = [f"{BUILD}/qprof-bpf doctor > {out}/doctor"]
    commands = [command_of(test, values) for test, values in TESTS]
    for i, command in enumerate(commands):
        # Again, as the tests do, where emulation was too slow for the profiler to keep up: that is counted.
        script += ["for again in 1 2 3 4; do "
                   f"{BUILD}/qprof-bpf -q -o /tmp/q.yaml {quoted(command)} > {out}/{i}.out 2> {out}/{i}.err; "
                   f"echo $? > {out}/{i}.rc; cp /tmp/q.yaml {out}/{i}.yaml; "
                   f"grep -Eq '(hasty_starts|lost_samples): [1-9]' /tmp/q.yaml || break; done; rm -f /tmp/q.yaml"]
    (out / "script").write_text("\n".join(script) + "\n")
    (CACHE / "root" / str(ROOT)[1:]).mkdir(parents=True, exist_ok=True)  # where the guest mounts it
    booted = subprocess.run([ROOT / "tests" / "vm" / "boot", CACHE / "root", "sh", out / "script"], cwd=ROOT,
                            env={**os.environ, "VM_ROOT": str(CACHE / "root"), "VM_SECONDS": "1500", "VM_THREADS": "multi"},
                            capture_output=True, text=True, errors="replace", check=False)
    assert booted.returncode == 0, f"the guest: {booted.returncode}, {booted.stdout[-2000:]} {booted.stderr[-2000:]}"
    runs = []
    for i, command in enumerate(commands):
        said = [(out / f"{i}.{name}").read_text(errors="replace") for name in ("rc", "out", "err")]
        runs.append(harness.Run(command, int(said[0]), said[1], said[2], out / f"{i}.yaml"))
    return runs


def test_doctor(guest):
    said = (PLACES["tmp_path"] / "doctor").read_text()
    assert "(aarch64)" in said and "Profiling works here." in said, said
    assert guest


def name_of(i):
    test, values = TESTS[i]
    words = [str(values[key]) for key in ("case", "name") if key in values]
    return "-".join([test.__module__[5:], test.__name__[5:], *words])


@pytest.mark.parametrize("i", range(len(TESTS)), ids=name_of)
def test_as_on_this_machine(guest, i):
    run = guest[i]

    def found(*_, options=()):
        assert run.returncode == 0, run
        run.profile = harness.parse(run.path)
        assert run.profile, f"no profile; {run}"
        run.truth = harness.last_json(run.stdout)
        return run
    lead(*TESTS[i], found)
