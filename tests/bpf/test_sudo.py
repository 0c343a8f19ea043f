# SPDX-License-Identifier: GPL-2.0-only
"""As root for the user who called sudo: whose the command is, and what its outputs may touch."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from harness import DEADLINE, NOBODY, Audit, parse, public_dir, run_qprof, step_names, wait_for

SUDO = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY), "SUDO_USER": "nobody"}
REPORTED = Path(__file__).resolve().parents[1] / "report/profile.yaml"


def test_owner_and_user():
    """The profile and the command are the invoking user's."""
    with public_dir(NOBODY) as where:
        path = where / "out.yaml"
        run = run_qprof("-q", "-o", path, "--", "sh", "-c", "id -u; id -g; id -G", env=SUDO)
        assert run.returncode == 0, run
        assert run.stdout.split()[:2] == [str(NOBODY)] * 2, f"expected nobody; {run}"
        assert "0" not in run.stdout.split()[2:], f"root's groups must not stay; {run}"
        owner = path.stat()
        assert (owner.st_uid, owner.st_gid) == (NOBODY, NOBODY), owner
        assert not owner.st_mode & (stat.S_IWGRP | stat.S_IWOTH), oct(owner.st_mode)


def test_command_cannot_get_back():
    """No way back to root through saved ids or capabilities."""
    with public_dir(NOBODY) as where:
        run = run_qprof("-q", "-o", where / "out.yaml", "--", "grep", "-E", "^(Uid|Gid|Cap)",
                        "/proc/self/status", env=SUDO)
    fields = dict(line.split(":\t", 1) for line in run.stdout.splitlines())
    assert set(fields["Uid"].split()) == {str(NOBODY)}, run
    assert set(fields["Gid"].split()) == {str(NOBODY)}, run
    assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == 0, run


def test_as_root():
    with public_dir(NOBODY) as where:
        path = where / "out.yaml"
        run = run_qprof("-q", "--as-root", "-o", path, "--", "id", "-u", env=SUDO)
        assert run.stdout.strip() == "0", run
        assert path.stat().st_uid == NOBODY, path.stat()


def test_directory_of_users_that_does_not_answer(tmp_path):
    """The command runs as the user all the same, and it is said what is missing. A file that nobody writes to
    stands for the directory."""
    hangs = tmp_path / "passwd"
    os.mkfifo(hangs)
    beside = ("unshare", "-m", "--propagation", "private", "sh", "-ec",
              'mount --bind "$1" /etc/passwd; shift; exec "$@"', "sh", str(hangs))
    with public_dir(NOBODY) as where:
        run = run_qprof("-o", where / "out.yaml", "--", "grep", "-E", "^(Uid|Gid|Groups)", "/proc/self/status",
                        env=SUDO, through=beside)
        assert run.returncode == 0 and step_names(parse(where / "out.yaml"), ends=True), run
    assert set(run.stdout.split()) == {"Uid:", "Gid:", "Groups:", str(NOBODY)}, run
    assert "directory of users did not answer" in run.stderr, run


@pytest.mark.parametrize("broken", ["", "-1", "abc", "99999999999999"])
def test_broken_sudo_uid(out, broken):
    """An environment is no authority: nonsense in it must not be taken for root or anyone."""
    run = run_qprof("-q", "-o", out, "--", "id", "-u", env={**SUDO, "SUDO_UID": broken})
    assert run.returncode in (0, 125), run
    if run.returncode == 0:
        assert run.stdout.strip() == "0", f"expected to be taken for no sudo; {run}"


# What each output is written with: "{}" is its path.

WRITERS = {
    "run": ("-q", "-o", "{}", "--", "touch", "{}.ran"),
    "audit": ("-a", "-q", "-d", "100ms", "-o", "{}"),
    "metrics": ("-a", "-q", "-d", "100ms", "-o", "-", "--metrics-file", "{}"),
    "events": ("-a", "-q", "-d", "100ms", "-o", "-", "--events-file", "{}"),
    "report": ("report", REPORTED, "-f", "json", "-o", "{}"),
}
every_writer = pytest.mark.parametrize("writer", WRITERS)


def write(writer, path, *more, env=None):
    arguments = [str(word).format(path) for word in WRITERS[writer]]
    return run_qprof(*arguments[:1], *more, *arguments[1:], env=SUDO if env is None else env)


def contents(folder):
    return {p.name: (p.lstat().st_uid, p.read_bytes()) for p in folder.iterdir()}


def assert_refused(run, folder, before, *words):
    """One line says what and why; no file was made, changed or moved, and nothing ran."""
    said = [line for line in run.stderr.splitlines() if line.strip()]
    assert run.returncode == 125, f"expected it to fail; {run}"
    assert len(said) == 1 and all(word in said[0] for word in words), f"expected {words}; {run}"
    assert contents(folder) == before, run


@every_writer
def test_what_is_new_is_the_users(writer):
    with public_dir(NOBODY) as where:
        run = write(writer, where / "new")
        assert run.returncode == 0, run
        owners = {p.name: (p.stat().st_uid, p.stat().st_gid) for p in where.iterdir()}
    assert owners.pop("new") == (NOBODY, NOBODY), owners
    assert not set(owners) - {"new.ran"}, owners


@every_writer
def test_no_file_where_the_user_may_make_none(writer):
    with public_dir() as where:
        assert_refused(write(writer, where / "new"), where, {}, "who called sudo", "new")


@every_writer
def test_a_file_that_the_user_may_not_write(writer):
    """Not even in a folder of the user's, who could remove it."""
    with public_dir(NOBODY) as where:
        (where / "roots").write_text("root's")
        before = contents(where)
        assert_refused(write(writer, where / "roots"), where, before, "who called sudo", "roots")


@every_writer
def test_a_file_that_the_user_may_write_stays_whose_it_is(writer):
    with public_dir(NOBODY) as where:
        path = where / "ours"
        path.touch()
        path.chmod(0o666)
        run = write(writer, path)
        assert run.returncode == 0, run
        kept = path.stat()
    # A metrics file is replaced each time: that is how readers find it whole.
    assert kept.st_uid == (NOBODY if writer == "metrics" else 0), kept
    assert kept.st_size, "expected something to be written"


@every_writer
def test_a_hard_link(writer):
    """Of a file of the user's, which the user may write: another has put it there."""
    with public_dir(NOBODY) as where, public_dir() as shared:
        shared.chmod(0o777)
        victim = where / "victim"
        victim.write_text("theirs")
        os.chown(victim, NOBODY, NOBODY)
        os.link(victim, shared / "planted")
        before = contents(shared)
        for env in (SUDO, {}):
            run = write(writer, shared / "planted", env=env)
            assert_refused(run, shared, before, "hard link", "planted")
        assert victim.read_text() == "theirs"


@every_writer
def test_a_symbolic_link(writer):
    with public_dir(NOBODY) as where, public_dir() as shared:
        shared.chmod(0o777)
        (shared / "planted").symlink_to(where / "victim")
        run = write(writer, shared / "planted")
        assert run.returncode and "symbolic link" in run.stderr, run
        assert not list(where.iterdir()), "expected no file behind the link"


@every_writer
@pytest.mark.parametrize("read", [False, True], ids=["unread", "read"])
def test_a_fifo_of_another(writer, read):
    """In a folder where all may write. Nobody waits for its reader, and its reader gets nothing of root's."""
    with public_dir() as where:
        where.chmod(0o1777)
        fifo = where / "planted"
        os.mkfifo(fifo, 0o666)
        fifo.chmod(0o666)
        os.chown(fifo, NOBODY, NOBODY)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK) if read else -1
        run = write(writer, fifo, env={})
        got = os.read(reader, 100) if read else b""
        if read:
            os.close(reader)
        there = {p.name for p in where.iterdir()}
        is_fifo = stat.S_ISFIFO(fifo.lstat().st_mode)
    assert got == b"", f"the reader got {got}; {run}"
    assert run.returncode == 125 and "planted" in run.stderr, f"expected it to fail; {run}"
    assert is_fifo and there == {"planted"}, there


def test_a_file_of_another_where_all_may_write():
    """An event log goes on where it was; root's does not, in a file that another could read."""
    with public_dir() as where:
        where.chmod(0o1777)
        (where / "planted").write_text("{}")
        os.chown(where / "planted", NOBODY, NOBODY)
        before = contents(where)
        assert_refused(write("events", where / "planted", env={}), where, before, "another user", "planted")


def test_the_one_before_that_belongs_to_another():
    """In a folder where all may write, neither a profile of root's nor its FILE.old is moved."""
    with public_dir() as where:
        where.chmod(0o1777)
        for name in "a", "b", "b.old":
            (where / name).write_text(f"{name} of root's")
        os.chown(where / "b", NOBODY, NOBODY)
        before = contents(where)
        for name in "a", "b":
            assert_refused(write("run", where / name), where, before, "who called sudo", name)


def test_the_one_before_is_kept():
    with public_dir(NOBODY) as where:
        path = where / "q.yaml"
        for command in "true", "id", "true":
            run = run_qprof("-q", "-o", path, "--", command, env=SUDO)
            assert run.returncode == 0, run
        assert {p.name: p.stat().st_uid for p in where.iterdir()} == {"q.yaml": NOBODY,
                                                                     "q.yaml.old": NOBODY}
        assert step_names(parse(path), ends=True)[-1:] == ["End"]


def test_a_group_of_the_user_counts(tmp_path):
    """The groups of the account, not only SUDO_GID: as if the user wrote it."""
    group = 54321
    groups = tmp_path / "group"
    groups.write_text(Path("/etc/group").read_text() + f"shared:x:{group}:nobody\n")
    bound = ("unshare", "-m", "sh", "-c", f'mount --bind {groups} /etc/group && exec "$@"', "sh")
    with public_dir() as where:
        os.chown(where, 0, group)
        where.chmod(0o770)
        run = run_qprof("-q", "-o", where / "q", "--", "id", "-G", env=SUDO, through=bound)
        assert run.returncode == 0, run
        assert str(group) in run.stdout.split(), run
        made = (where / "q").stat()
        assert (made.st_uid, made.st_gid) == (NOBODY, NOBODY), made


def test_event_log_rotates_as_the_user(tmp_path):
    with public_dir(NOBODY) as where:
        running = Audit(tmp_path / "audit.yaml", ("--events-file", where / "log",
                                                  "--events-max-size", "64K", "--events-rate", 0))
        running.args = ["env", *(f"{key}={value}" for key, value in SUDO.items()),
                        *running.args[:2], *running.args[4:]]
        with running, subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) as load:
            wait_for((where / "log.2").exists, "the third file")
            load.kill()
            running.process.send_signal(signal.SIGINT)
            assert running.process.wait(DEADLINE) == 0
        assert {p.stat().st_uid for p in where.iterdir()} == {NOBODY}, list(where.iterdir())


@pytest.mark.parametrize("writer", ["audit", "metrics", "events"])
def test_an_audit_as_root(writer):
    """For system folders: what root may write, if root says so."""
    with public_dir() as where:
        run = write(writer, where / "new", "--as-root")
        assert run.returncode == 0, run
        assert (where / "new").stat().st_uid == 0
