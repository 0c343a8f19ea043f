# SPDX-License-Identifier: GPL-2.0-only
"""A profiler that cannot go on is no trouble for what it profiles: nobody reads its output, the output
takes no more, or the profiler is stopped."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

import harness
from harness import (CLEAN_ENV, DEADLINE, MIB, PYTHON, QPROF, assert_valid, ending, holds_starts,
                     Loader, parse, pending, process_of, program, quality, run_qprof, step_names,
                     wait_for)
from slow_files import SlowProgram

SMALLEST_PIPE = 4096
STARTS = 3

# What each start may wait for a profiler that does not answer, and as much again for a slow machine.
WAIT = 2 * 0.1

# Three starts of a program that loads libraries; then the CPU time of all children of the shell.
STARTS_TIMED = f"for i in 1 2 3; do {PYTHON} -c pass; done; times >times; mv times done"


def cpu_of(times):
    """The second line that a shell's `times` writes: user and system time of its children."""
    words = re.findall(r"(\d+)m([\d.]+)s", times.splitlines()[1])
    return sum(60 * int(minutes) + float(seconds) for minutes, seconds in words)


@pytest.fixture
def alone(tmp_path):
    """The CPU time of the starts without a profiler."""
    where = tmp_path / "alone"
    where.mkdir()
    subprocess.run(["sh", "-c", STARTS_TIMED], cwd=where, env=CLEAN_ENV, timeout=DEADLINE, check=True)
    return cpu_of((where / "done").read_text())


def assert_unhindered(took, alone):
    """Under a profiler each start costs some milliseconds; a wait of a second for each library does not
    fit."""
    most = 4 * alone + STARTS * WAIT
    assert took <= most, f"CPU of the starts: {took} s, alone {alone} s; expected at most {most:.2f} s"


def read_all(fd):
    text = bytearray()
    while True:
        more = os.read(fd, 1 << 20)
        if not more:
            return bytes(text)
        text += more


@contextlib.contextmanager
def writing_to_a_pipe(tmp_path, *command, options=()):
    """The run, and the end of its pipe that nobody reads until the caller does."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    # The profile alone goes there.
    process = subprocess.Popen([QPROF, "-q", *options, "-o", "-", "--", "sh", "-c",
                                'exec "$@" >/dev/null', "sh", *command],
                               cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=writer,
                               stderr=subprocess.PIPE, env=CLEAN_ENV)
    os.close(writer)
    try:
        yield process, reader
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        with contextlib.suppress(OSError):
            os.close(reader)


def is_full(reader):
    """Not to the last byte: a write(2) of many waits for room for all of it."""
    return int.from_bytes(fcntl.ioctl(reader, 0x541B, bytes(4)), "little") > 0  # FIONREAD


def test_pipe_that_nobody_reads(tmp_path, alone):
    """The starts are as fast as else, and the profile is whole once it is read."""
    marks = 500  # many times what the pipe holds
    with writing_to_a_pipe(tmp_path, "sh", "-c", f"{program('checkpoints')} rate {marks}; "
                           + STARTS_TIMED) as (process, reader):
        wait_for((tmp_path / "done").exists, "the end of the command")
        assert is_full(reader), "the profile must be on its way"
        profile = yaml.load(read_all(reader), Loader=Loader)
        assert process.wait(DEADLINE) == 0, process.stderr.read()
    assert_unhindered(cpu_of((tmp_path / "done").read_text()), alone)
    assert_valid(profile)
    assert step_names(profile) == [f"c{i:07}" for i in range(marks)]
    assert quality(profile)["dropped_rows"] == 0


def test_stopped_profiler(tmp_path, out, alone):
    """Each program waits 100 ms at most; the profile says so, and has all of them."""
    script = (f"{program('checkpoints')} rate 3 >/dev/null; while ! test -e go; do sleep 0.01; done; "
              + STARTS_TIMED + f"; {PYTHON} -c pass")
    process = subprocess.Popen([QPROF, "-q", "-o", out, "--", "sh", "-c", script], cwd=tmp_path,
                               env=CLEAN_ENV, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: "c0000002" in str(parse(out)), "the marks in the file")
        process.send_signal(signal.SIGSTOP)
        (tmp_path / "go").touch()
        wait_for((tmp_path / "done").exists, "the starts")
    finally:
        process.send_signal(signal.SIGCONT)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    assert_unhindered(cpu_of((tmp_path / "done").read_text()), alone)
    profile = parse(out)
    assert step_names(profile, ends=True)[-1] == "End"
    pythons = [p for p in profile["processes"] if p["cmdline"] == f"{PYTHON} -c pass"]
    assert len(pythons) == STARTS + 1, [p["cmdline"] for p in profile["processes"]]
    assert quality(profile)["hasty_starts"] >= 1, quality(profile)
    warnings = profile["quality"]["warnings"]
    assert any("did nothing for 100 ms" in w["why"] for w in warnings), warnings


def test_a_profiler_at_work_is_waited_for(tmp_path, unhurried):
    """Nothing of the above is said of a run where nothing stalls."""
    run = unhurried("sh", "-c", STARTS_TIMED, cwd=tmp_path)
    if quality(run.profile)["hasty_starts"]:
        pytest.skip("the machine is so busy that programs did not wait for their search")
    assert not any("did nothing" in w["why"] for w in run.profile["quality"]["warnings"])


def test_profiler_held_up_by_a_file_system(tmp_path, out, alone):
    """A file that cannot be read makes programs wait for a moment, once, and is left out; the run says so."""
    mount = tmp_path / "slow"
    mount.mkdir()
    with contextlib.closing(SlowProgram(program("checkpoints"), mount)) as slow:
        script = (f"{slow.path} sequence; while ! test -e go; do sleep 0.01; done; "
                  f"sh -c '{STARTS_TIMED}'")
        process = subprocess.Popen([QPROF, "-q", "-o", out, "--", "sh", "-c", script], cwd=tmp_path,
                                   env=CLEAN_ENV, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        wait_for(slow.asked.is_set, "the search of the slow file")
        (tmp_path / "go").touch()
        wait_for((tmp_path / "done").exists, "the starts")
        slow.release()
        _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    assert_unhindered(cpu_of((tmp_path / "done").read_text()), alone)
    profile = parse(out)
    warnings = profile["quality"]["warnings"]
    assert quality(profile)["unsearched_files"] >= 1, profile["quality"]
    assert any("did not answer in time" in w["why"] for w in warnings), warnings
    assert not any("did nothing for 100 ms" in w["why"] for w in warnings), warnings


def test_cost_has_what_static_programs_wait(tmp_path, out):
    """One that nothing makes wait but its start; a stopped profiler lets it wait for 100 ms."""
    script = f"while ! test -e go; do sleep 0.01; done; {program('prompt')} >/dev/null; touch done"
    process = subprocess.Popen([QPROF, "-q", "--cost", "-o", out, "--", "sh", "-c", script], cwd=tmp_path,
                               env=CLEAN_ENV, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: "Start" in str(parse(out)), "the first row")
        # All that the script runs while it waits is known, and waits no more.
        process.send_signal(signal.SIGSTOP)
        (tmp_path / "go").touch()
        wait_for((tmp_path / "done").exists, "the start")
    finally:
        process.send_signal(signal.SIGCONT)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    profile = parse(out)
    if not holds_starts(profile):
        pytest.skip("this kernel has no task work for BPF: no start is held")
    cost = profile["quality"]["cost"]
    assert cost["bpf_wait_secs"] >= 0.1, cost


def test_killed_while_a_program_waits(tmp_path, out, alone):
    """The kernel lets go of a probe only when nobody is in it: who waits there must not wait on."""
    script = "while ! test -e go; do sleep 0.01; done; " + STARTS_TIMED
    process = subprocess.Popen([QPROF, "-q", "-o", out, "--", "sh", "-c", script], cwd=tmp_path,
                               env=CLEAN_ENV, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: "Start" in str(parse(out)), "the first row")
    process.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    process.kill()
    process.wait()
    wait_for((tmp_path / "done").exists, "the starts")
    assert_unhindered(cpu_of((tmp_path / "done").read_text()), alone)


def test_stopped_in_the_midst_of_many(tmp_path, out):
    """For two seconds, while hundreds of processes come and go: none is missing."""
    loops = 300
    script = (f"i=0; while test $i -lt {loops}; do /bin/true; i=$((i+1)); "
              "test $i = 50 && touch under_way; done; touch done")
    process = subprocess.Popen([QPROF, "-q", "-o", out, "--", "sh", "-c", script], cwd=tmp_path,
                               env=CLEAN_ENV, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for((tmp_path / "under_way").exists, "the fiftieth")
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        wait_for(lambda: (tmp_path / "done").exists() or time.monotonic() > began + 2, "two seconds")
    finally:
        process.send_signal(signal.SIGCONT)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    profile = parse(out)
    trues = [p for p in profile["processes"] if p["cmdline"] == "/bin/true"]
    assert len(trues) == loops and all(ending(p) == 0 for p in trues), len(trues)
    assert harness.losses(profile) == {}


# The way out of a run whose output nobody reads.

def states_of_children(pid):
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split():
        with contextlib.suppress(FileNotFoundError):
            yield Path(f"/proc/{child}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0]


def test_first_signal_finishes_the_second_ends(tmp_path):
    """Even so the first ends the command and finishes; who does not want to wait says it again."""
    with writing_to_a_pipe(tmp_path, "sh", "-c", f"{program('checkpoints')} rate 500; "
                           "touch there; exec sleep 1000") as (process, reader):
        wait_for((tmp_path / "there").exists, "the marks")
        assert is_full(reader)
        process.send_signal(signal.SIGINT)
        wait_for(lambda: set(states_of_children(process.pid)) <= {"Z"}, "the end of the command")
        assert process.poll() is None, "it waits for its reader"
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 128 + signal.SIGTERM
        assert "stopped at once" in process.stderr.read().decode()
        text = read_all(reader).decode()
        assert text.startswith("# A profile"), text[:100]


def test_first_signal_and_a_reader_that_comes(tmp_path):
    with writing_to_a_pipe(tmp_path, "sh", "-c", f"{program('checkpoints')} rate 500; "
                           "touch there; exec sleep 1000") as (process, reader):
        wait_for((tmp_path / "there").exists, "the marks")
        process.send_signal(signal.SIGINT)
        profile = yaml.load(read_all(reader), Loader=Loader)
        assert process.wait(DEADLINE) == -signal.SIGINT, process.stderr.read()
    assert step_names(profile, ends=True)[-1] == "End" and len(step_names(profile)) == 500


def test_first_signal_after_the_end_of_the_command(tmp_path):
    """It discards nothing either: the profile is whole for a reader that comes; the second ends."""
    with writing_to_a_pipe(tmp_path, program("checkpoints"), "rate", "500") as (process, reader):
        def is_over():
            return is_full(reader) and not any("bpf" in link for link in open_files(process.pid))
        wait_for(is_over, "the end of the BPF programs")
        process.send_signal(signal.SIGINT)
        wait_for(lambda: not pending(process.pid), "the first signal to be taken")
        profile = yaml.load(read_all(reader), Loader=Loader)
        assert process.wait(DEADLINE) == 0, process.stderr.read()
    assert step_names(profile, ends=True)[-1] == "End" and len(step_names(profile)) == 500
    assert quality(profile)["dropped_rows"] == 0


def test_end_of_the_output_while_a_program_hangs_in_a_probe(tmp_path):
    """A child waits for the probe's end; a reader of the output does not wait for the child."""
    mount = tmp_path / "slow"
    mount.mkdir()
    with contextlib.closing(SlowProgram(program("idle"), mount)) as slow:
        # Once before, so that its probe is there: on a busy machine it may not have waited for that.
        script = (f"{program('checkpoints')} rate 500; {program('mapped')} {program('mapped')}; "
                  f"{program('mapped')} {slow.path} & while ! test -e go; do sleep 0.01; done")
        with writing_to_a_pipe(tmp_path, "sh", "-c", script) as (process, reader):
            wait_for(slow.asked.is_set, "the probe")
            (tmp_path / "go").touch()
            said = process.stderr.readline().decode()
            assert "hangs in a probe" in said
            text = bytearray()
            os.set_blocking(reader, False)

            def ended():
                with contextlib.suppress(BlockingIOError):
                    text.extend(os.read(reader, 1 << 20))
                return process.poll() is not None
            wait_for(ended, "the end of qprof-bpf")
            # What is left is there by now, and behind it the end; a writer that is left is an error.
            text.extend(read_all(reader))
        slow.release()
    assert len(step_names(yaml.load(bytes(text), Loader=Loader))) == 500 + 1


# plugin_mark() of a library, with a name on the last page of a file.
HANGS = """
import ctypes, mmap, sys
with open(sys.argv[2], "rb") as f:
    at = mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
address = ctypes.addressof(ctypes.c_char.from_buffer(at))
ctypes.CDLL(sys.argv[1]).plugin_mark(ctypes.c_void_p(address + (len(at) - 1) // 4096 * 4096))
"""


def removers(pid):
    """The processes that wait for probes to be gone, by what they have open."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split():
        with contextlib.suppress(FileNotFoundError):
            if Path(f"/proc/{child}/comm").read_text("utf-8") == "qprof-bpf\n":
                found[child] = sorted(open_files(child))
    return found


def test_file_overwritten_while_a_program_hangs_in_its_probe(tmp_path, out, disk):
    """Its probes are removed by a process of its own, which has nothing else open. The run goes on, and ends;
    who writes the file waits until nobody is in a probe of it."""
    mount, plugin = tmp_path / "slow", disk / "plugin.so"
    mount.mkdir()
    shutil.copy(program("plugin.so"), plugin)
    script = (f"$PYTHON -c '{HANGS}' {plugin} $0 & while ! test -e go; do sleep 0.01; done; "
              f"{program('checkpoints')} rate 5; while ! test -e end; do sleep 0.01; done")
    with contextlib.closing(SlowProgram(program("idle"), mount)) as slow:
        process = subprocess.Popen([QPROF, "-q", "-o", out, "--", "sh", "-c", script, slow.path],
                                   cwd=tmp_path, env={**CLEAN_ENV, "PYTHON": PYTHON},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        try:
            wait_for(slow.asked.is_set, "the probe")
            writer = subprocess.Popen(["sh", "-c", f"exec 3<>{plugin}"])
            def has_little():
                # Another child reads memory maps.
                [has] = [links for links in removers(process.pid).values() if str(plugin) in links] or [()]
                return 0 < len(has) <= 4 and has
            has = wait_for(has_little, "the removal")
            # A program looks whether the memory maps of those who map the file are locked.
            of_the_kernel = [link for link in has if "link" in link or "perf" in link or "bpf-prog" in link]
            # The last of them may be gone from there already: closing it is what waits.
            assert sorted(set(has) - set(of_the_kernel))[0] == str(plugin), has
            assert sum(link.startswith("socket:") for link in has) == len(has) - len(of_the_kernel) - 1, has
            (tmp_path / "go").touch()
            wait_for(lambda: "c0000004" in step_names(parse(out), ends=True), "the marks of the neighbour")
            assert writer.poll() is None, "expected the writer to wait"
            (tmp_path / "end").touch()
            process.wait(DEADLINE)
            assert writer.poll() is None, "expected the writer to wait"
        finally:
            process.kill()
            slow.release()
        assert writer.wait(DEADLINE) == 0
        said = process.stderr.read()  # of the program that hung, too
        process.stderr.close()
    assert process.returncode == 0 and b"hangs in a probe" in said, said
    warnings = parse(out)["quality"]["warnings"]
    assert [w["what"] for w in warnings if "opened for writing" in w["why"]] == [str(plugin)], warnings


def test_reader_that_leaves_early(tmp_path):
    """A failure of ours; the command comes to its end."""
    with writing_to_a_pipe(tmp_path, "sh", "-c", f"{program('checkpoints')} rate 500; "
                           "while ! test -e go; do sleep 0.01; done; touch through") as (process, reader):
        os.read(reader, 1000)
        os.close(reader)
        (tmp_path / "go").touch()
        assert process.wait(DEADLINE) == 125
        assert "Broken pipe" in process.stderr.read().decode()
    wait_for((tmp_path / "through").exists, "the end of the command")


def test_fifo_whose_reader_comes_late(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen([QPROF, "-q", "-o", fifo, "--", "sh", "-c",
                                f"{program('checkpoints')} rate 2000 >/dev/null; touch done"],
                               cwd=tmp_path, env=CLEAN_ENV, stdin=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    try:
        wait_for((tmp_path / "done").exists, "the end of the command")
        os.set_blocking(reader, True)
        profile = yaml.load(read_all(reader), Loader=Loader)
        _, said = process.communicate(timeout=DEADLINE)
    finally:
        process.kill()
        process.wait()
        os.close(reader)
    assert process.returncode == 0, said
    assert len(step_names(profile)) == 2000


def memory_of(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(rf"^{key}:\s*(\d+) kB", status.read(), re.M).group(1)) * 1024


def test_what_waits_is_bounded(tmp_path):
    """A reader that takes a byte now and then, and more rows than are kept for it: memory has a limit,
    what is left out is counted, and the rest comes through in order."""
    count = 350_000
    with writing_to_a_pipe(tmp_path, "sh", "-c", f"{program('checkpoints')} rate {count} 30000; "
                           "touch done") as (process, reader):
        wait_for(lambda: is_full(reader), "the first text")
        before = memory_of(process.pid, "VmRSS")
        first = bytearray()

        def trickle():
            first.extend(os.read(reader, 1))
            return (tmp_path / "done").exists()
        wait_for(trickle, "the end of the command")
        most = memory_of(process.pid, "VmHWM") - before
        text = bytes(first) + read_all(reader)
        assert process.wait(DEADLINE) == 0, process.stderr.read()
    assert len(first) < MIB, "the reader must have been slow"
    names = re.findall(rb'^- step: "(.*)"$', text, re.M)
    summary = yaml.load(text[text.index(b"\nquality:"):], Loader=Loader)
    counts = quality(summary)
    assert counts["dropped_rows"], f"expected more than is kept: {len(names)} rows"
    lost = counts["dropped_rows"] + counts["lost_checkpoints"]
    assert len(names) + lost == count + 2, (len(names), counts)
    assert names[0] == b"Start" and sorted(names[1:-1]) == names[1:-1], names[:3]
    # 64 MiB of text, and the 100,000 phases that a run keeps in any case: each is the gap to the next.
    assert most < 64 * MIB + 100_000 * 1024, f"{most / MIB:.0f} MiB"


# A limit of the file's size is a full disk.

LIMIT = 16384


def limited(*args, limit=LIMIT, **kwargs):
    return run_qprof(*args, through=("prlimit", f"--fsize={limit}"), **kwargs)


def test_limit_of_the_file_size(tmp_path, out):
    through = tmp_path / "through"
    run = limited("-q", "-o", out, "--", "sh", "-c",
                  f"{program('checkpoints')} rate 2000 && touch {through}")
    assert run.returncode == 125, f"expected 125; {run}"
    lines = run.stderr.splitlines()
    assert len(lines) == 1 and str(out) in lines[0] and "File too large" in lines[0], run
    names = step_names(parse(out), ends=True)[1:]
    assert len(names) > 10 and names == [f"c{i:07}" for i in range(len(names))], names
    assert out.stat().st_size <= LIMIT
    assert through.exists(), "the command must have come to its end"


def test_command_has_the_signals_that_it_would_have(out, tmp_path):
    """What is ignored stays ignored over exec."""
    show = ["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"]
    alone = subprocess.run(show, capture_output=True, text=True, env=CLEAN_ENV, check=True).stdout
    assert run_qprof("-q", "-o", out, "--", *show).stdout == alone
    big = tmp_path / "big"
    enough = 1 << 20  # for the profile
    run = limited("-q", "-o", out, "--", "sh", "-c", f"exec head -c {2 * enough} /dev/zero >{big}", limit=enough)
    assert run.returncode == -signal.SIGXFSZ, f"the command's own end; {run}"
    assert ending(process_of(parse(out), parse(out)["processes"][0]["pid"])[0]) == -signal.SIGXFSZ


def test_limit_of_the_file_size_in_an_audit(tmp_path):
    """Report, events and metrics: each says that it could not be written."""
    report, events, metrics = (tmp_path / name for name in ("r.yaml", "e.ndjson", "m.prom"))
    page = 4096  # less than any of them has, and as much as is written at a time
    run = limited("-a", "-d", "1s", "-o", report, "--events-file", events, "--metrics-file", metrics,
                  limit=page)
    assert run.returncode == 125, f"expected 125; {run}"
    for path in (report, events, metrics):
        assert path.stat().st_size <= page if path.exists() else path == metrics, path
        assert any(str(path) in line and ("File too large" in line or "No space" in line)
                   for line in run.stderr.splitlines()), (path, run)
    assert yaml.load(report.read_bytes(), Loader=Loader)["qprof"]


def test_limit_of_the_file_size_of_a_report(tmp_path, out, profile):
    profile(program("checkpoints"), "sequence")
    page = tmp_path / "page.html"
    run = limited("report", "-f", "html", "-o", page, out)
    assert run.returncode > 0 and "File too large" in run.stderr, run


def open_files(pid):
    """Where its descriptors lead; one that is closed meanwhile is left out."""
    folder = f"/proc/{pid}/fd"
    for fd in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(f"{folder}/{fd}")


def test_report_of_an_audit_that_nobody_reads(tmp_path):
    """The audit is over, its probes are gone; a signal ends the wait for the reader."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    process = subprocess.Popen([QPROF, "-q", "-a", "-d", "500ms", "-o", "-"], cwd=tmp_path,
                               stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE,
                               env=CLEAN_ENV)
    os.close(writer)
    try:
        def let_go():
            return is_full(reader) and not any("bpf" in link for link in open_files(process.pid))
        wait_for(let_go, "the end of the BPF programs")
        assert process.poll() is None, "it waits for its reader"
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 128 + signal.SIGINT
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        os.close(reader)
