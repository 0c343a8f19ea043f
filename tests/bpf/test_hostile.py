# SPDX-License-Identifier: GPL-2.0-only
"""Targets that make it hard, by chance or by intent: each of these once broke something."""
import contextlib
import os
import shutil
import subprocess
from pathlib import Path

from harness import (CLEAN_ENV, DEADLINE, KIB, MIB, Lines, last_json, program, quality, run_qprof,
                     step_names, wait_for)
from slow_files import SlowProgram


def test_all_threads_exit_at_once(profile):
    """The end of each process is counted once, with what all its threads did."""
    children, threads = 200, 16
    run = profile(program("exits"), "race", children, threads)
    expected = run.truth["read_bytes"] / MIB
    total = run.profile["total_io_read_mb"]
    # Start-up reads: some KiB of the one program that was exec'ed.
    assert expected <= total <= expected + 0.1, f"expected {expected} MiB read, got {total}"
    parts = [process["io_read_mb"] for process in run.profile["processes"]]
    assert abs(sum(parts) - expected) <= 0.005 * len(parts) + 0.1, (
        f"expected the processes' own figures to sum to {expected}, got {sum(parts)}")
    running = [p["pid"] for p in run.profile["processes"] if p["end_secs"] is None]
    assert len(parts) == children + 1 and not running, (
        f"expected {children + 1} processes that ended, got {len(parts)}, running: {running}")


def test_rows_while_threads_exit(profile):
    """A thread that has read and is exiting is in the row, whether or not it is in the sum of those that are gone."""
    got = profile(program("exits"), "rows", 3000).profile
    rows = [row["io_read_mb"] for row in got["memory_usage"] if row["step"] == "row"]
    wrong = [(i, read) for i, read in enumerate(rows, 1) if not i / 16 <= read <= i / 16 + 0.03]
    # A CPU may be taken away while a thread is being moved, and an emulated one stands still for milliseconds.
    unread, most = quality(got)["unread_threads"], 30 if "QPROF_GUEST" in os.environ else 3
    assert len(rows) == 3000, f"expected 3000 rows, got {len(rows)}"
    assert len(wrong) <= unread <= most, f"expected n/16 MiB read in the n-th row, got {wrong}, {unread} counted"


def test_main_thread_has_exited(attach):
    """What a zombie leader read before the attach is not in the figures, and not subtracted from them."""
    target = subprocess.Popen([program("exits"), "main_first"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=CLEAN_ENV)
    target.stdout.readline()
    with attach(target.pid) as attached:
        target.communicate(b"go\n", timeout=DEADLINE)
        got = attached.finished()
    assert target.returncode == 5, f"expected status 5, got {target.returncode}"
    assert 1.0 <= got["total_io_read_mb"] <= 1.01, (
        f"expected the 1 MiB read since the attach, got {got['total_io_read_mb']}")
    assert got["processes"][0]["exit_code"] == 5, got["processes"]


def exits(*arguments):
    """tests/programs/exits.c, which waits for lines."""
    return subprocess.Popen([program("exits"), *map(str, arguments)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, env=CLEAN_ENV)


def test_threads_have_almost_exited(attach, tmp_path):
    """As above, of two threads whose exits nobody saw, and which are not over at the attach: each closes a file, and
    the file system does not answer. They leave later."""
    mount = tmp_path / "slow"
    mount.mkdir()
    with contextlib.closing(SlowProgram(program("idle"), mount)) as slow:
        slow.holds_close = True
        target = exits("slow_close", slow.path)
        target.stdout.readline()
        wait_for(lambda: len(slow.closed) == 2, "two threads that close the file")
        with attach(target.pid) as attached:
            slow.release()
            wait_for(lambda: len(list(Path(f"/proc/{target.pid}/task").iterdir())) == 2, "the end of one of them")
            target.communicate(b"go\n", timeout=DEADLINE)
            got = attached.finished()
    assert target.returncode == 5, f"expected status 5, got {target.returncode}"
    assert 1.0 <= got["total_io_read_mb"] <= 1.01, (
        f"expected the 1 MiB read since the attach, got {got['total_io_read_mb']}")
    assert 0 <= got["total_cpu_time_secs"] < 10, got["total_cpu_time_secs"]
    assert got["processes"][0]["exit_code"] == 5, got["processes"]
    assert not quality(got)["unread_threads"], got["quality"]


def test_attach_to_a_crowd(attach):
    """What thousands of threads did before the attach is not in the figures; what each does after it, is."""
    threads = 6000
    target = exits("crowd", threads)
    Lines(target.stdout).until("ready")
    with attach(target.pid) as attached:
        target.communicate(b"go\n", timeout=DEADLINE)
        got = attached.finished()
    expected, before = threads * 4 * KIB / MIB, threads * 64 * KIB / MIB
    assert expected <= got["total_io_read_mb"] <= expected + 0.05, (
        f"expected the {expected} MiB read since the attach (before it: {before}), "
        f"got {got['total_io_read_mb']}")
    assert 0 <= got["total_cpu_time_secs"] < 60, got["total_cpu_time_secs"]
    assert not quality(got)["unread_threads"], got["quality"]


def test_zombie_threads_of_a_tracer(attach):
    """A process is over when its threads are, also while a tracer keeps thousands of them as zombies."""
    target = exits("traced", 5000)
    lines = Lines(target.stdout)
    pid = last_json(lines.until("ready"))["ready"]
    with attach(pid) as attached:
        target.stdin.write(b"go\n")
        target.stdin.flush()
        lines.until("zombies")
        target.communicate(b"reap\n", timeout=DEADLINE)
        got = attached.finished()
    process = got["processes"][0]
    assert process["end_secs"] is not None and process["exit_code"] == 7, (
        f"expected an end with status 7, got {process}")
    assert not quality(got)["unread_threads"], got["quality"]


def test_ends_in_a_flood(out):
    """A target that hits checkpoints as fast as it can does not keep us from ending."""
    target = subprocess.Popen([program("checkpoints"), "rate", "1000000000"], env=CLEAN_ENV,
                              stdout=subprocess.DEVNULL)
    try:
        run = run_qprof("-q", "-d", "300ms", "-o", out, "-p", target.pid)
        assert run.returncode == 0, run
        assert target.poll() is None, "the target must run on"
        with open(out, encoding="utf-8") as text:
            steps = [line for line in text if line.startswith("- step: ")]
        assert len(steps) > 1000 and steps[-1] == '- step: "End"\n', (
            f"expected many steps and End as the last, got {len(steps)}: {steps[-1:]}")
    finally:
        target.kill()
        target.wait()


def test_programs_overwritten_in_place(unhurried, disk):
    """The same inode with other code: nobody runs into probes of the old, and the new ones are found."""
    plain, probes, both = shutil.which("true"), program("checkpoints"), disk / "program"
    script = f"""
        run() {{ until cp "$1" {both} 2>/dev/null; do :; done  # ETXTBSY while somebody looks at what has just ended
                 shift; {both} "$@" || echo "failed: $?"; }}
        run {plain}; run {probes} sequence; run {plain}; run {probes} sequence
        rm {both}; run {plain}; run {probes} sequence
    """
    run = unhurried("sh", "-c", script)
    assert "failed" not in run.stdout, run
    once = run.truth["steps"]
    assert step_names(run.profile) == once * 3, (
        f"expected three times {once}, got {step_names(run.profile)}")


def test_many_short_programs(unhurried):
    """More programs than the tracked set holds, one after another: none is held up or missed."""
    count = 400
    run = unhurried("sh", "-c", f"i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i+1)); done",
                  options=["--max-processes", "16"])
    names = [process["comm"] for process in run.profile["processes"]]
    assert names.count("true") == count, f"expected {count}, got {names.count('true')}"
    counts = quality(run.profile)
    assert not counts.get("hasty_starts") and not counts.get("untracked_processes"), counts


def test_command_inherits_nothing_of_ours(profile):
    """Limits, signals, descriptors and priority are as without us."""
    show = ("ulimit -Sn; grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd; nice; "
            "ulimit -Hn")
    alone = subprocess.run(["sh", "-c", show], env=CLEAN_ENV, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, check=True).stdout
    run = profile("sh", "-c", show)
    assert run.stdout == alone, f"expected {alone!r}, got {run.stdout!r}"


def test_does_not_profile_itself(tmp_path):
    """Attached to a shell that is its own parent."""
    path = tmp_path / "profile.yaml"
    done = subprocess.run(["sh", "-c", f'"$0" -q -d 200ms -o {path} -p $$; grep -c "^  comm:" {path}',
                           program("../../qprof-bpf")], env=CLEAN_ENV, capture_output=True,
                          text=True, timeout=DEADLINE, check=True)
    # The shell alone (grep came later).
    assert done.stdout.strip() == "1", f"expected 1 process, got {done}"
