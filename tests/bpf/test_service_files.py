# SPDX-License-Identifier: GPL-2.0-only
"""--files through the service: each run has what its own processes used, and the names that these see."""

import contextlib
import json
import os
import signal
import subprocess

import pytest

from harness import (AS_NOBODY, CLEAN_ENV, DEADLINE, MIB, NOBODY, PYTHON, QPROF, QPROF_PACKAGE, Lines, assert_nothing_lost,
                     is_on_disk, job_of, losses, parse, public_dir, quality, wait_for)
from serving import SOMEBODY, Service, as_user, folder, service  # noqa: F401

FILES = ("--files",)
READ, WRITTEN, DISTINCT = "storage_read_mb", "storage_written_mb", "distinct_mb"


@pytest.fixture(autouse=True)
def needs_disk(folder):  # noqa: F811
    if not is_on_disk(folder):
        pytest.skip(f"{folder} is not on a disk: set TMPDIR")


@pytest.fixture
def counting():
    """A service that counts files."""
    with public_dir() as path, Service(path, FILES) as running:
        yield running


def cold(path, mib, owner=NOBODY):
    """A file none of whose pages is in memory."""
    with open(path, "wb") as file:
        file.write(os.urandom(mib * MIB))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    os.chown(path, owner, owner)
    return path


def file_lines(profile):
    """Those of files, by the ends of their paths."""
    return {os.path.basename(file["path"]): file for file in profile["files"] if not file.get("no_file")}


LEFT_MOST = 512  # things that may be left of jobs that are over: user/kernel/storage.c


def kept_maps(service):  # noqa: F811
    """How much there is in each map in which the service keeps what it knows of files. It alone has maps for many."""
    of_service = {}
    for fd in os.listdir(f"/proc/{service.process.pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{service.process.pid}/fdinfo/{fd}", encoding="ascii") as info:
            said = dict(line.split(":", 1) for line in info.read().splitlines() if ":" in line)
            if "map_id" in said:
                of_service[int(said["map_id"])] = None
    counts = {}
    for number in of_service:
        shown = json.loads(subprocess.run(["bpftool", "-j", "map", "show", "id", str(number)], check=True, text=True,
                                          capture_output=True).stdout)
        if shown.get("name") in ("stored_files", "stored_pieces", "stored_rests", "stored_spaces", "stored_devices",
                                 "stored_writers", "stored_runs"):
            text = subprocess.run(["bpftool", "-j", "map", "dump", "id", str(number)], check=True, text=True,
                                  capture_output=True).stdout
            counts[shown["name"]] = len(json.loads(text))
    assert len(counts) == 7, counts
    return counts


PROGRAM = """
import os, subprocess, sys
import qprof
there = sys.argv[1]

def read(name):
    fd = os.open(f"{there}/{name}", os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    while os.read(fd, 1 << 20):
        pass
    os.close(fd)

def write(name, mib):
    fd = os.open(f"{there}/{name}", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.write(fd, b"w" * (mib << 20))
    os.fsync(fd)
    return fd

with qprof.scope("load"):
    read("model")
with qprof.scope("load again"):
    read("model")
with qprof.scope("save"):
    os.close(write("saved.tmp", 3))
    os.rename(f"{there}/saved.tmp", f"{there}/saved")
    held = write("removed", 2)
    os.unlink(f"{there}/removed")
    subprocess.run([sys.executable, "-c", "import os, sys; os.write(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), b'c' * 12288)",
                    f"{there}/child"], check=True)
"""


def run_program(service, folder):  # noqa: F811
    cold(folder / "model", 4)
    return service.run(folder, PYTHON, "-c", PROGRAM, folder, options=FILES, env=QPROF_PACKAGE)


def keys(item):
    """But for those that are there where two decimals do not name a figure."""
    return {key for key in item if not key.endswith("_bytes")}


def without_calls(file):
    """A service does not look at calls."""
    phases = {"phases": [without_calls(use) for use in file["phases"]]} if "phases" in file else {}
    return {key: value for key, value in file.items() if key not in ("call_read_mb", "timeline")} | phases


def over_time(file):
    """What had been read from storage and written, in order; what was read by calls, by its end."""
    rows = file["timeline"]["rows"]
    return list(dict.fromkeys((read, written) for _, read, written, _ in rows)), rows[-1][3]


def test_as_root(counting, folder, tmp_path):  # noqa: F811
    """The same keys, files, bytes of each and of each phase, file systems and disks as in root's own run."""
    served = run_program(counting, folder).profile
    for name in ("saved", "child"):
        (folder / name).unlink()
    cold(folder / "model", 4)
    subprocess.run([QPROF, "-q", "--service", "none", "--files", "-o", tmp_path / "own.yaml", "--", PYTHON, "-c", PROGRAM, folder],
                   env={**CLEAN_ENV, **QPROF_PACKAGE}, check=True, capture_output=True, timeout=DEADLINE)
    own = parse(tmp_path / "own.yaml")
    assert keys(served) == keys(own)
    got, expected = file_lines(served), file_lines(own)
    for name in ("model", "saved", "removed", "child"):
        assert "call_read_mb" in expected[name], expected[name]
        assert without_calls(got[name]) == without_calls(expected[name]), (got[name], expected[name])
        assert "call_read_mb" not in json.dumps(got[name] | {"timeline": None}), got[name]
    assert got["model"]["path"] == str(folder / "model")
    assert (got["model"][READ], got["model"][DISTINCT], got["model"]["reread_factor"]) == (8, 4, 2.0), got["model"]
    assert [(use["name"], use[READ]) for use in got["model"]["phases"]] == [("load", 4), ("load again", 4)]
    assert over_time(got["model"]) == ([(0, 0), (4, 0), (8, 0)], None), got["model"]
    assert over_time(expected["model"]) == ([(0, 0), (4, 0), (8, 0)], 8), expected["model"]
    assert got["removed"]["deleted"] and got["saved"][WRITTEN] == 3
    [space], [other] = served["file_systems"], own["file_systems"]
    when = {"least_left_phase"}  # others write to it, too
    assert keys(space) - when == keys(other) - when and (space["path"], space["removed_mb"]) == (other["path"], other["removed_mb"])
    [disk], [other] = served["storage_devices"], own["storage_devices"]
    assert keys(disk) == keys(other) and disk["device"] == other["device"] and disk["write_mb"] >= 5
    for key, total in ((READ, "total_disk_read_mb"), (WRITTEN, "total_disk_write_mb")):
        assert sum(file[key] for file in served["files"]) == pytest.approx(served[total], abs=1e-4), served["files"]
    # programs may come from a file server, and what the file system reads for itself differs from run to run
    for profile, read in ((served, disk["read_mb"]), (own, other["read_mb"])):
        elsewhere = sum(file[READ] for file in profile["files"] if file["path"] == "(elsewhere)")
        assert read == pytest.approx(profile["total_disk_read_mb"] - elsewhere, abs=1e-4) and read >= 8
    assert_nothing_lost(served)


def test_not_asked_for(counting, folder):  # noqa: F811
    profile = counting.run(folder, PYTHON, "-c", PROGRAM.replace('read("model")', "pass"), folder, env=QPROF_PACKAGE).profile
    assert "files" not in profile and "storage_devices" not in profile and "file_systems" not in profile
    assert_nothing_lost(profile)


def test_service_without(service, folder):  # noqa: F811
    said = subprocess.run([*AS_NOBODY, QPROF, "-q", "--service", service.socket, "--files", "-o", folder / "x.yaml", "--", "true"],
                          env=CLEAN_ENV, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert said.returncode == 125 and "was started without --files: leave it out, or ask the administrator" in said.stderr, said


@contextlib.contextmanager
def begun(service, folder, code, *args, uid=NOBODY, through=(), stdin=subprocess.DEVNULL, name="begun"):  # noqa: F811
    """A run that has come to its `say()`, and goes on when it is sent SIGUSR1."""
    code = ("import os, signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
            "def say():\n    print(os.getpid(), flush=True)\n    signal.sigwait([signal.SIGUSR1])\n") + code
    path = folder / f"{name}.yaml"
    run = subprocess.Popen([*through, *as_user(uid), QPROF, "-q", "--service", service.socket, "--files", "-o", path, "--", PYTHON,
                            "-c", code, *args], stdin=stdin, stdout=subprocess.PIPE, env=CLEAN_ENV, text=False)
    pid = None
    try:
        lines = Lines(run.stdout)
        pid = int(lines.next())

        def end():
            os.kill(pid, signal.SIGUSR1)
            assert run.wait(DEADLINE) == 0
            return parse(path)
        yield run, pid, end
    finally:
        for each in (pid, run.pid):
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(each, signal.SIGKILL)
        run.wait()
        run.stdout.close()


WRITES = """
with open(sys.argv[1], "wb") as file:
    file.write(b"w" * int(sys.argv[2]))
say()
with open(sys.argv[1], "ab") as file:
    file.write(b"w" * int(sys.argv[2]))
"""


def test_two_users_at_once(counting, folder):  # noqa: F811
    """Of the same file, too, each has what his own processes wrote, and no name of the other's."""
    (folder / "common").touch()
    (folder / "common").chmod(0o666)
    with public_dir(SOMEBODY) as other:
        both = WRITES + "with open(sys.argv[3], 'r+b') as file:\n    file.write(b'w' * int(sys.argv[2]))\n"
        with begun(counting, folder, both, folder / "mine", str(1 << 20), folder / "common") as (_, _, first), \
                begun(counting, other, both, other / "theirs", str(3 << 20), folder / "common", uid=SOMEBODY) as (_, _, second):
            profiles = first(), second()
    for profile, name, mib in zip(profiles, ("mine", "theirs"), (1, 3)):
        lines = file_lines(profile)
        assert lines[name][WRITTEN] == 2 * mib, lines
        # pages of the other's are dirty already: then who writes to them makes none dirty
        assert lines["common"][WRITTEN] <= mib and not {"mine", "theirs"} - {name} & set(lines), lines
        assert_nothing_lost(profile)
    assert sum(file_lines(profile)["common"][WRITTEN] for profile in profiles) >= 3


def runs(service):  # noqa: F811
    return kept_maps(service)["stored_runs"]


def left(service):  # noqa: F811
    return sum(count for name, count in kept_maps(service).items() if name not in ("stored_runs", "stored_writers"))


MANY = """
for i in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}/{i}", "wb") as file:
        file.write(b"w")
say()
"""


def test_nothing_stays(counting, folder):  # noqa: F811
    """Not after the end of a run, nor, if its client was killed, after that of the job that it left behind: but for
    things that are dropped when there are more of them."""
    run_program(counting, folder)
    wait_for(lambda: not runs(counting), "the run to be over")
    with begun(counting, folder, WRITES, folder / "mine", str(1 << 20)) as (run, pid, _):
        assert runs(counting) >= 1, "nothing is kept to begin with"
        run.kill()
        run.wait()
        assert runs(counting) >= 1, "nothing is kept for the audit"
        os.kill(pid, signal.SIGUSR1)  # it goes on, is counted for the audit, and ends
        wait_for(lambda: not runs(counting), "the job to be over")
    few = left(counting)
    assert few < LEFT_MOST, few
    with begun(counting, folder, MANY, folder, str(LEFT_MOST + 100)) as (_, _, end):
        assert left(counting) > LEFT_MOST + few
        end()
    wait_for(lambda: not left(counting), "what was kept of files to go")
    report = counting.stop()
    files = {file["path"]: file["storage_written_mb"] for file in job_of(report, pid)["files"]}
    assert files[str(folder / "mine")] == 2 and not quality(report)["fileless_jobs"], files


def test_stored_after_the_end(counting, folder):  # noqa: F811
    """What the kernel writes back of a run that is over is nothing that another one lacks."""
    with begun(counting, folder, WRITES, folder / "first", str(8 << 20)) as (_, _, end):
        end()
    wait_for(lambda: not runs(counting), "the run to be over")
    with begun(counting, folder, WRITES, folder / "second", str(1 << 20)) as (_, _, end):
        os.sync()
        profile = end()
    counts = quality(profile)
    assert not counts["untimed_requests"] and not counts["unended_requests"], counts


def test_many_files_are_of_their_user(counting, folder):  # noqa: F811
    """One who uses more files than there is room for gets the half; others have theirs, named."""
    with public_dir(SOMEBODY) as other:
        if os.statvfs(other).f_favail < 10000:
            pytest.skip(f"{other} has no room for 8,300 files")
        with begun(counting, other, MANY, other, "8300", uid=SOMEBODY, name="many") as (_, _, end), \
                begun(counting, other, MANY, other, "10", uid=SOMEBODY, name="more") as (_, _, end_second):
            lines = file_lines(run_program(counting, folder).profile)
            assert lines["model"][READ] == 8 and lines["saved"][WRITTEN] == 3
            second, first = end_second(), end()
    assert quality(first)["unnamed_file_uses"] >= 8300 - 8192 and quality(second)["unnamed_file_uses"] > 0
    assert sum(file[WRITTEN] for file in first["files"]) == pytest.approx(first["total_disk_write_mb"], abs=1e-3)
    assert not {str(i) for i in range(10)} & set(file_lines(second)), "it got more than its share"


# ---- Names


def test_renamed_by_others_after_use(counting, folder):  # noqa: F811
    """In its directory it has the new name; where the user may not look, the one before."""
    secret = folder / "secret"
    secret.mkdir(mode=0o700)
    code = ("for name in ('moved', 'renamed'):\n    with open(f'{sys.argv[1]}/{name}', 'wb') as file:\n        file.write(b'w' * 4096)\n"
            "say()\n")
    with begun(counting, folder, code, folder) as (_, _, end):
        os.rename(folder / "moved", secret / "told-to-nobody")
        os.rename(folder / "renamed", folder / "final")
        profile = end()
    assert {"moved", "final"} <= set(file_lines(profile)) and "told-to-nobody" not in json.dumps(profile)
    assert_nothing_lost(profile)


def test_file_that_no_mount_of_its_own_shows(counting, folder, tmp_path):  # noqa: F811
    """As in a container that was handed one: /proc/PID/mountinfo does not say where it is, so there is no name."""
    image, volume = tmp_path / "image", folder / "volume"
    with open(image, "wb") as file:
        file.truncate(8 * MIB)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    volume.mkdir()
    done = subprocess.run(["mount", "-o", "loop", image, volume], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device can be had: {done.stderr.strip()}")
    try:
        (volume / "private").mkdir(mode=0o700)
        inside = ("unshare", "-m", "--propagation", "private", "sh", "-ec", f'umount {volume}; exec "$@"', "sh")
        code = "os.write(0, b'w' * 4096)\nsay()\n"
        with open(volume / "private" / "hidden", "w+b") as handed:
            with begun(counting, folder, code, through=inside, stdin=handed) as (_, _, end):
                unseen = end()
            with begun(counting, folder, code, stdin=handed) as (_, pid, end):
                assert os.readlink(f"/proc/{pid}/fd/0") == str(volume / "private" / "hidden")
                seen = end()
    finally:
        subprocess.run(["umount", volume], check=True)
    assert "hidden" not in json.dumps(unseen) and "private" not in json.dumps(unseen)
    assert [file[WRITTEN] for file in unseen["files"] if file["path"].startswith("(inode ")], unseen["files"]
    assert "hidden" in file_lines(seen), "what /proc shows is told"


def test_who_became_another_has_no_names(counting, folder):  # noqa: F811
    """A set-uid program of the tree is somebody else's: nothing of what it uses is told."""
    program = folder / "as-somebody"
    program.write_bytes(open("/bin/dd", "rb").read())
    os.chown(program, SOMEBODY, SOMEBODY)
    program.chmod(0o4755)
    with public_dir(SOMEBODY) as other:
        cold(other / "confidential", 1, SOMEBODY)
        (other / "confidential").chmod(0o600)
        run = counting.run(folder, "sh", "-c", f"{program} if={other}/confidential of=/dev/null bs=1M 2>&1; true", options=FILES)
    assert "1048576 bytes" in run.stdout, run
    assert losses(run.profile) == {"withheld_processes": 1}, losses(run.profile)
    assert "confidential" not in json.dumps(run.profile["files"]), run.profile["files"]
