# SPDX-License-Identifier: GPL-2.0-only
"""The service: ordinary users profile commands of their own, and get what root gets."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import heavy_files
from harness import (AS_NOBODY, CLEAN_ENV, DEADLINE, KIB, MIB, NOBODY, PYTHON, QPROF, ROUNDING_MB, Lines, assert_all_time, assert_near,
                     assert_nothing_lost, ending, job_of, last_json, losses, parse, probe_bytes, program, public_dir,
                     quality, row_of, rows, step_names, wait_for)
from serving import Service, folder, own_copy, service  # noqa: F401

# ---- What a user gets


def test_marks_of_a_program_that_nobody_has_searched(service, folder):
    """It waits for the search of its code, so that its first mark is there, too."""
    run = service.run(folder, own_copy(folder, "checkpoints"), "sequence")
    assert step_names(run.profile) == run.truth["steps"], run
    assert_nothing_lost(run.profile)
    metrics = {(row["step"], key): value for row in rows(run.profile) for key, value in (row.get("metrics") or {}).items()}
    assert metrics == {(step, key): value for step, key, value in run.truth["metrics"]}


@pytest.mark.parametrize("case,size", [("spike", 64), ("exec", 64), ("shmem", 64), ("threads", 64)])
def test_peaks_to_the_page(service, folder, case, size):
    run = service.run(folder, program("memory"), case, size, 200, folder)
    assert_near(f"peak of {case}", run.profile["peak_memory_mb"], run.truth["peak_bytes"],
                16 * KIB if case != "threads" else 8 * 64 * 4 * KIB)
    assert_near(f"main peak of {case}", run.profile["main_peak_memory_mb"], run.truth["peak_bytes"],
                16 * KIB if case != "threads" else 8 * 64 * 4 * KIB)
    assert_nothing_lost(run.profile)


PROGRAM = """
import os, subprocess, sys
out = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(out, b"x" * 7654321)
os.fsync(out)
subprocess.run([sys.executable, "-c", "import os; os.write(os.open('/dev/null', 1), b'y' * 3456789); os._exit(7)"])
text = os.read(os.open("/proc/self/io", os.O_RDONLY), 4096)
os.write(1, text.replace(b"\\n", b" "))
os._exit(3)
"""


def test_bytes_and_ends(service, folder):
    """Of the tree and of each process, from the first instruction on: nothing of the launcher's."""
    run = service.run(folder, PYTHON, "-c", PROGRAM, folder / "data", status=3)
    account = dict(zip(*[iter(run.stdout.replace(":", "").split())] * 2))
    main = run.profile["processes"][0]
    child = run.profile["processes"][1]
    assert len(run.profile["processes"]) == 2 and child["ppid"] == main["pid"]
    assert (main["exit_code"], child["exit_code"]) == (3, 7)
    written = (int(account["wchar"]) - 3456789 + len(run.stdout)) / MIB  # wait() adds the child's
    assert abs(main["io_write_mb"] - written) < ROUNDING_MB, (main, account)
    assert abs(main["disk_write_mb"] - int(account["write_bytes"]) / MIB) < ROUNDING_MB, (main, account)
    assert abs(child["io_write_mb"] - 3456789 / MIB) < ROUNDING_MB, child
    assert abs(run.profile["total_io_write_mb"] - main["io_write_mb"] - child["io_write_mb"]) < 2 * ROUNDING_MB
    # the launcher's page faults are in neither
    assert main["minor_faults"] + child["minor_faults"] <= run.profile["total_minor_faults"]
    assert run.profile["total_cpu_time_secs"] >= main["cpu_time_secs"] + child["cpu_time_secs"] - 0.02
    assert_nothing_lost(run.profile)


def test_killed_command(service, folder):
    """The profile says so, and the run dies by the same signal."""
    run = service.run(folder, "sh", "-c", "kill -KILL $$", status=-signal.SIGKILL)
    assert ending(run.profile["processes"][0]) == -signal.SIGKILL


def test_command_that_is_not_there(service, folder):
    """Nothing is left of it: the next one is served."""
    run = service.run(folder, "/no/such/command", status=127)
    assert "command not found" in run.stderr, run
    script = folder / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    service.run(folder, script, status=127)
    assert service.run(folder, "true").profile


def keys(item):
    """But for those that are there where two decimals do not name a figure."""
    return {key for key in item if not key.endswith("_bytes")}


def test_same_keys_as_root(service, folder, tmp_path):
    """The file differs from root's own run in figures, and in a note."""
    served = service.run(folder, program("checkpoints"), "memory")
    own = subprocess.run([QPROF, "-q", "--service", "none", "-o", tmp_path / "own.yaml", "--", program("checkpoints"),
                          "memory"], env=CLEAN_ENV, check=True, capture_output=True, timeout=DEADLINE)
    profile = parse(tmp_path / "own.yaml")
    # a checkpoint is a number of pages: these figures may not differ at all
    assert step_names(profile) == step_names(served.profile)
    truth, other = served.truth, last_json(own.stdout.decode())
    for run, said in ((served.profile, truth), (profile, other)):
        for row in said["rows"]:
            assert_near(row["step"], row_of(run, row["step"])["cpu_memory_mb"], row["rss_bytes"], 16 * KIB)
    assert keys(profile) == keys(served.profile)
    for key in ("memory_usage", "phases", "processes"):
        assert keys(profile[key][0]) == keys(served.profile[key][0]), key
    assert set(profile["timeline"]) == set(served.profile["timeline"]) and served.profile["timeline"]["rows"]
    assert set(quality(profile)) == set(quality(served.profile))


def test_timeline_to_its_end(service, folder):
    """Points have a ring of their own, which may be read when the command is gone."""
    for _ in range(10):
        profile = service.run(folder, program("memory"), "spike", 128, 2000, folder).profile
        timeline = profile["timeline"]
        column = timeline["columns"].index("anon_mb")
        last = [row[column] for row in timeline["rows"]]
        assert 120 <= max(last) <= 132, f"expected up to 128 MiB, got {max(last)} in {len(last)} rows"
        falls = last[last.index(max(last)):]
        steps = [a - b for a, b in zip(falls, falls[1:])]
        assert max(steps) <= 8, f"expected a fall step by step, got one of {max(steps)} MiB: {falls}"


def test_warning_of_a_limit(service, folder):
    """A shell lowers it, and then runs the program: of which the run is told before it needs more."""
    command = [*AS_NOBODY, str(QPROF), "--service", service.socket, "-o", str(folder / "x.yaml"), "--", "bash", "-c",
               f'ulimit -v {300 << 10}; exec "$@"', "bash", program("grows"), "28", "10", "28"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=CLEAN_ENV) as run:
        Lines(run.stdout).until("28")
        said = Lines(run.stderr).until("RLIMIT_AS")
        run.communicate(b"\n")
    assert "left of 300 MiB" in said, said


def test_usage_while_it_runs(service, folder):
    run = service.run(folder, PYTHON, "-c", "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass")
    assert len(run.profile["usage_timeline"]["rows"]) > 5, run.profile.get("usage_timeline")
    without = service.run(folder, PYTHON, "-c", "sum(range(10 ** 7))", options=("--no-curves",))
    assert not (without.profile.get("usage_timeline") or {}).get("rows")


def test_twenty_at_once(service, folder):
    """Each has its own rows, and those alone."""
    args = [*AS_NOBODY, str(QPROF), "-q", "--service", service.socket]
    runs = [subprocess.Popen([*args, "-o", folder / f"{i}.yaml", "--", PYTHON, "-c",
                              f"import os; os.execv('{program('checkpoints')}', ['checkpoints', 'sequence', '{i}'])"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=CLEAN_ENV) for i in range(20)]
    assert [run.wait(DEADLINE) for run in runs] == [0] * 20
    for i in range(20):
        profile = parse(folder / f"{i}.yaml")
        counts = quality(profile)
        assert [p["cmdline"].split()[-1] for p in profile["processes"]] == [str(i)]
        # Where twenty spin on two CPUs, a search may come too late: then the profile counts it.
        late = counts["hasty_starts"] + counts["unsearched_files"]
        assert len(rows(profile)) == 10 or late, (step_names(profile), counts)
        # Processes that ended before they were read may be anyone's.
        assert set(losses(profile)) <= {"unsearched_files", "unread_processes"}, losses(profile)


def test_end_by_duration(service, folder):
    """The command outlives the run, as after one of root's."""
    run = service.run(folder, PYTHON, "-c", "import time; time.sleep(0.6); print('outlived')",
                      options=("-d", "100ms"))
    assert run.stdout.strip() == "outlived" and step_names(run.profile, ends=True) == ["Start", "End"]


def test_it_is_a_job_of_the_audit(service, folder):
    run = service.run(folder, program("checkpoints"), "sequence")
    job = job_of(service.stop(), run.profile["processes"][0]["pid"])
    assert step_names(job) == run.truth["steps"] and job["user"] == "nobody"


# ---- Files that were searched for others before


MAPS = """
import ctypes, mmap, sys
with open(sys.argv[1], "rb") as file:
    kept = mmap.mmap(file.fileno(), 8192, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
ctypes.CDLL(sys.argv[2])  # the dynamic linker tells of what is mapped
"""


def test_file_of_which_not_all_is_searched(service, folder):
    """Each run that maps it has that in its quality, not only the one for which it was searched; others have not."""
    heavy_files.write(folder / "heavy", 48 * MIB)
    os.chown(folder / "heavy", NOBODY, NOBODY)
    for _ in range(3):
        run = service.run(folder, PYTHON, "-c", MAPS, folder / "heavy", program("plugin.so"))
        assert quality(run.profile)["unsearched_files"] > 0, run.profile["quality"]
    assert_nothing_lost(service.run(folder, program("checkpoints"), "sequence").profile)


DOUBTFUL = """
int main(void)
{
    __asm__ volatile("990: nop; .pushsection .note.stapsdt,\\"\\",\\"note\\"; .balign 4; "
                     ".4byte 992f-991f, 994f-993f, 3; 991: .asciz \\"stapsdt\\"; 992: .balign 4; "
                     "993: .8byte 990b; .8byte 0; .8byte 0; .asciz \\"qprof\\"; .asciz \\"mark\\"; "
                     ".asciz \\"8@%nothing\\"; 994: .balign 4; .popsection");
    return 0;
}
"""


def test_file_of_which_there_was_a_warning(service, folder):
    """As above: a probe whose name is in no place that there is."""
    subprocess.run(["gcc", "-x", "c", "-", "-o", folder / "doubtful"], input=DOUBTFUL, text=True, check=True)
    for _ in range(3):
        said = service.run(folder, folder / "doubtful").profile["quality"]["warnings"]
        assert [w["what"] for w in said] == ["the service"], said
    assert not service.run(folder, "true").profile["quality"]["warnings"]


# ---- Which way a run goes


def refusal(folder, *args, env=None):
    done = subprocess.run([*AS_NOBODY, str(QPROF), "-q", "-o", str(folder / "x.yaml"), *args], env={**CLEAN_ENV, **(env or {})},
                          capture_output=True, text=True, timeout=DEADLINE, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 125, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_without_a_service_both_ways_are_said(folder):
    for args in (("--service", "/no/such/socket", "--", "true"), ("--service", "none", "--", "true")):
        said = refusal(folder, *args)
        assert "sudo" in said and "systemctl enable --now qprof-bpf.socket" in said, said


def test_it_is_used_by_itself(folder):
    """Where it is at its usual place and the user could not do without."""
    with public_dir() as place, Service(place) as running:
        inside = ("unshare", "-m", "--propagation", "private", "sh", "-ec",
                  'mount -t tmpfs -o mode=755 none /run; mkdir /run/qprof-bpf; touch /run/qprof-bpf/socket; '
                  'mount --bind "$1" /run/qprof-bpf/socket; shift; exec "$@"', "sh", running.socket)
        said = subprocess.run([*inside, *AS_NOBODY, str(QPROF), "-q", "-o", str(folder / "x.yaml"), "--", "true"],
                              capture_output=True, text=True, timeout=DEADLINE, check=False, env=CLEAN_ENV)
        assert said.returncode == 0 and parse(folder / "x.yaml"), said
        doctor = subprocess.run([*inside, *AS_NOBODY, str(QPROF), "doctor"], capture_output=True, text=True,
                                timeout=DEADLINE, check=False, env=CLEAN_ENV)
        assert doctor.returncode == 0 and "through the service" in doctor.stdout, doctor
        # root has an engine of its own
        own = subprocess.run([*inside, str(QPROF), "-q", "-o", str(folder / "y.yaml"), "--", "true"], check=True,
                             capture_output=True, timeout=DEADLINE, env=CLEAN_ENV)
        assert own.returncode == 0
        assert not any("the service saw it" in note for note in parse(folder / "y.yaml")["quality"]["notes"])
        assert any("the service saw it" in note for note in parse(folder / "x.yaml")["quality"]["notes"])


@pytest.mark.parametrize("options", [("--stacks",), ("--max-files", "9"), ("--no-follow",), ("--max-processes", "9"), ("--scope",),
                                     ("--cost",)])
def test_what_it_cannot_do_is_refused(service, folder, options):
    assert f"{options[0]} cannot be had through the service" in refusal(
        folder, "--service", service.socket, *options, "--", "true")


def test_waits_are_those_of_the_service(service, folder):
    """What threads sleep for is known where the service was started with --waits, and refused elsewhere."""
    said = refusal(folder, "--service", service.socket, "--waits", "--", "true")
    assert "was started without --waits: leave it out, or ask the administrator" in said, said
    with public_dir() as place, Service(place, ["--waits"]) as running:
        run = running.run(folder, program("stalls"), "futex", 8, 500, options=["--waits"])
    phase, = [phase for phase in run.profile["phases"] if phase["name"] == "Stall"]
    # All but the thread that holds the lock.
    assert phase["lock_wait_secs"] >= 0.9 * 7 * phase["duration_secs"], phase
    columns = ("cpu_time_secs", "cpu_wait_secs", "lock_wait_secs", "sleep_secs", "storage_wait_secs")
    whole = sum(phase.get(column, 0) for column in columns)
    assert_all_time(run, whole, 8 * phase["duration_secs"], phase)


# ---- The end of either side


@pytest.mark.parametrize("stage", ["launched", "runs"])
def test_kill_9_of_the_run(service, folder, stage):
    """Before its exec the command goes with it, later it goes on; the service serves the next."""
    before = service.connections()
    if stage == "launched":
        os.kill(service.process.pid, signal.SIGSTOP)  # so that it waits for the welcome
    with begun(service, folder, own_copy(folder), "mark:one", "mark:two") as run:
        lines = Lines(run.stdout)
        if stage == "launched":
            [pid] = wait_for(lambda: children_of(run.pid), "the command to be forked")
        else:
            pid = json.loads(lines.next())["ready"]
        run.kill()
        run.wait()
        if stage == "launched":
            os.kill(service.process.pid, signal.SIGCONT)
            wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the child to go")
        wait_for(lambda: service.connections() <= before, "the service to close the connection")
        again = service.run(folder, program("checkpoints"), "sequence")
        assert step_names(again.profile) == again.truth["steps"]
        assert_nothing_lost(again.profile)
        if stage == "runs":
            os.kill(pid, signal.SIGUSR1)
            lines.until("mark:one")  # it runs as before
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def begun(service, folder, *command):
    """A run that goes on, as nobody. At the end it is gone, and its command."""
    run = subprocess.Popen([*AS_NOBODY, str(QPROF), "-q", "--service", service.socket, "-o", folder / "x.yaml", "--",
                            *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=CLEAN_ENV)
    try:
        yield run
    finally:
        for pid in [*(children_of(run.pid) if run.poll() is None else []), run.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.wait()
        run.stdout.close()


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_end_of_the_service(folder, by):
    """The command goes on without a probe; the profile has what was known, and says so."""
    path = own_copy(folder)
    with public_dir() as place, Service(place) as service, begun(service, folder, path, "mark:one", "mark:two") as run:
        lines = Lines(run.stdout)
        pid = json.loads(lines.next())["ready"]
        assert 0xcc in probe_bytes(pid, path), "there is no probe to begin with"
        os.kill(pid, signal.SIGUSR1)
        lines.until("mark:one")
        wait_for(lambda: "one" in [row["step"] for row in (parse(folder / "x.yaml") or {}).get("memory_usage") or []],
                 "the mark")
        service.process.send_signal(by)
        service.process.wait(DEADLINE)
        wait_for(lambda: 0xcc not in probe_bytes(pid, path), "the probes to go")
        os.kill(pid, signal.SIGUSR1)
        assert run.wait(DEADLINE) == 0
        profile = parse(folder / "x.yaml")
    assert step_names(profile, ends=True)[:2] == ["Start", "one"]
    [warning] = [w for w in profile["quality"]["warnings"] if "missing" in w["why"]]
    assert warning["what"] == "the service"


def test_abandoned_socket(folder):
    """One that a killed service left is taken over; a service that lives is not pushed out."""
    with public_dir() as place:
        with Service(place) as first:
            second = subprocess.run([QPROF, "-a", f"--serve={first.socket}", "-o", folder / "y.yaml", "-d", "1s"],
                                    env=CLEAN_ENV, capture_output=True, text=True, check=False, timeout=DEADLINE)
            assert second.returncode == 125 and "another service is there already" in second.stderr, second
            first.process.kill()
            first.process.wait()
        with Service(place) as service:
            assert service.run(folder, "true").profile
