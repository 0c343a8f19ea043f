# SPDX-License-Identifier: GPL-2.0-only
"""How processes end badly: by which signal, from whom, for which fault; and what refused them memory."""

import contextlib
import os
import platform
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import AS_NOBODY, Audit, CLEAN_ENV, Lines, MIB, NOBODY, QPROF, ending, parse, process_of, profile_command, program, run_qprof, tmpfs
from refusals import QUOTA
from slow_files import SlowProgram

HELD = 16 * MIB
LIMIT = 256 * MIB
LOCKED = 4 * MIB
SOURCES = Path(__file__).resolve().parents[1] / "programs"
ON_X86 = platform.machine() == "x86_64"


def ends(out, *how, status):
    return profile_command(out, program("ends"), *how, status=status)


def only_end(run):
    return only_end_of(run.profile)


def only_end_of(profile):
    """The one entry of `ended`, with what all of them must say."""
    found = profile.get("ended", [])
    assert len(found) == 1, f"expected one process to have ended badly, got {found}"
    victim = process_of(profile, found[0]["victim_pid"])[-1]
    assert "ends" in victim["cmdline"], victim
    assert found[0]["phase"] == "Layer 3", found
    assert HELD <= found[0]["anon_mb"] * MIB <= HELD + 10 * MIB, found
    assert found[0]["tree_memory_mb"] >= found[0]["anon_mb"] + found[0]["file_mb"] - 0.01, found
    return found[0]


def text_of(out):
    return " ".join(run_qprof("report", "--width", "200", out).stdout.split("\n  ran")[0].split())


FAULTS = {
    "null": (signal.SIGSEGV, "null pointer", "0x8"),
    "stack": (signal.SIGSEGV, "stack overflow", r"0x[0-9a-f]+"),
    "thread": (signal.SIGSEGV, "stack overflow", r"0x[0-9a-f]+"),
    "read_only": (signal.SIGSEGV, "no right to use the address so", r"0x[0-9a-f]+000"),
    "illegal": (signal.SIGILL if ON_X86 else signal.SIGTRAP, "illegal instruction" if ON_X86 else None, None),
}
if ON_X86:
    FAULTS["wild"] = (signal.SIGSEGV, "an address that no process can have", None)
    FAULTS["divide"] = (signal.SIGFPE, "division by zero", None)


@pytest.mark.parametrize("how", FAULTS)
def test_fault(out, how):
    number, words, address = FAULTS[how]
    end = only_end(ends(out, how, status=-number))
    assert (end["how"], end["signal"], end.get("fault")) == ("signal", number.name, words), end
    assert "sent_by_pid" not in end and "refused_by" not in end, end
    assert re.fullmatch(address, end["address"]) if address else "address" not in end, end
    expected = f"! Ended by {number.name}" + (f" ({words})" if words else "") + " at "
    text = text_of(out)
    assert text.startswith(expected) and f"process {end['victim_pid']} " in text and ", in Layer 3" in text, text


def test_truncated_file(out, tmp_path):
    file = tmp_path / "model.bin"
    end = only_end(ends(out, "bus", file, status=-signal.SIGBUS))
    assert (end["how"], end["signal"]) == ("signal", "SIGBUS"), end
    # In a guest, and in a container, the root of a process is not that of all mounts.
    assert end["mapped_file"].endswith(str(file)), end
    assert f"! Ended by SIGBUS (beyond the end of a mapped file: {end['mapped_file']}) at " in text_of(out), text_of(out)


def test_abort(out):
    end = only_end(ends(out, "abort", status=-signal.SIGABRT))
    assert (end["how"], end["signal"], end["sent_by_pid"]) == ("signal", "SIGABRT", end["victim_pid"]), end
    assert text_of(out).startswith("! Ended by SIGABRT at "), text_of(out)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1], ids=lambda n: n.name)
def test_sent_by_somebody(out, number):
    """Who sent it: a process that is not of the tree."""
    command = subprocess.Popen([str(part) for part in (
        QPROF, "-q", "-o", out, "--", program("ends"), "wait")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN_ENV)
    Lines(command.stdout).until("waits")
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text(encoding="ascii").split()
    victim = next(pid for pid in children if "ends" in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8"))
    killer = subprocess.Popen(["bash", "-c", f"kill -{number} {victim}; true"])
    killer.wait()
    command.communicate()
    assert command.returncode == -number, command
    end = only_end_of(parse(out))
    assert (end["how"], end["signal"], end["victim_pid"]) == ("signal", number.name, int(victim)), end
    assert (end["sent_by_pid"], end["sent_by"]) == (killer.pid, "bash"), end
    words = "kill -9" if number == signal.SIGKILL else "sent"
    assert f"! Ended by {number.name} ({words} by process {killer.pid} bash" in text_of(out), text_of(out)


@pytest.mark.parametrize("script,status", [
    ("{ends} wait > /dev/null & sleep 0; kill -TERM $!; wait $!; true", 0),  # as a pool ends its workers
    ("yes | head -n 1 > /dev/null", 0),
    ("{ends} swallow", 0),
    ("{ends} status 3", 3),
    ("{ends} mappings 0", 0),
    ("false", 1),
], ids=["pool", "pipe", "swallowed", "status", "mappings", "false"])
def test_no_bad_end(out, script, status):
    """With nothing wrong, nothing is said; a status of its own is no more than that."""
    run = profile_command(out, "bash", "-c", script.format(ends=program("ends")), status=status)
    assert "ended" not in run.profile, run.profile["ended"]
    assert run.profile["quality"].get("dropped_processes", 0) == 0, run.profile["quality"]


def test_interrupted(out):
    """A ^C is what its user wanted."""
    run = ends(out, "signal", signal.SIGINT, status=-signal.SIGINT)
    assert "ended" not in run.profile, run.profile["ended"]


def test_child_crashes(unhurried, out):
    """The run goes on, and ends well: the crash is told nevertheless."""
    run = unhurried("bash", "-c", f"{program('ends')} null; true")
    end = only_end(run)
    assert (end["how"], end["signal"]) == ("signal", "SIGSEGV"), end
    assert ending(process_of(run.profile, end["victim_pid"])[-1]) == -signal.SIGSEGV, run.profile["processes"]
    assert text_of(out).startswith("! Ended by SIGSEGV (null pointer)"), text_of(out)


def test_behind_a_shell(unhurried, out):
    """A shell passes the signal on as a status: what is told is the process that it killed."""
    run = unhurried("bash", "-c", f"{program('ends')} abort; exit $?", status=128 + signal.SIGABRT)
    assert only_end(run)["signal"] == "SIGABRT", run.profile["ended"]
    assert text_of(out).startswith("! Ended by SIGABRT at "), text_of(out)


@pytest.fixture
def small(tmp_path):
    """A file system of 1 MiB, with a name that mountinfo escapes."""
    with tmpfs(tmp_path / "small one", "1m") as path:
        yield path


def assert_full(out, end, small):
    text = text_of(out)
    assert (end["how"], end["refused_by"], end["file_system"]) == ("refused", "file system", str(small)), end
    assert end["left_mb"] == 0, end
    assert f" while 0 B were left of the file system at {small}" in text and "refused more memory" not in text, text


def test_full_file_system_and_aborts(out, small):
    end = only_end(ends(out, "full", "abort", small / "model.bin", status=-signal.SIGABRT))
    assert end["signal"] == "SIGABRT", end
    assert_full(out, end, small)


def test_full_file_system_and_exits(out, small):
    end = only_end(ends(out, "full", 3, small / "model.bin", status=3))
    assert end["exit_code"] == 3 and "signal" not in end, end
    assert_full(out, end, small)
    assert text_of(out).startswith("! Failed with exit status 3 at "), text_of(out)


def test_fault_beside_another_profiler(out, tmp_path):
    """Each finds what is mapped there: neither needs what the other has taken for that."""
    with Audit(tmp_path / "audit.yaml"):
        end = only_end(ends(out, "thread", status=-signal.SIGSEGV))
    assert end["fault"] == "stack overflow", end


def test_no_room_for_a_page_of_a_file(out, small):
    """There is no system call that could fail: a write to a mapped file does."""
    end = only_end(ends(out, "full_map", 0, small / "model.bin", status=-signal.SIGBUS))
    assert (end["signal"], end["fault"]) == ("SIGBUS", "no room for a page of a mapped file"), end
    assert end["mapped_file"].endswith(str(small / "model.bin")), end
    assert_full(out, end, small)


def test_room_is_left(out, small):
    """It fails with a file open for writing where there is room: that is no reason."""
    script = f"exec 3> {small}/file; truncate -s 1G {small}/empty; {program('ends')} status 3; exit $?"
    run = profile_command(out, "bash", "-c", script.replace(str(small), f"'{small}'"), status=3)
    assert "ended" not in run.profile, run.profile["ended"]


# ---- Quotas ---------------------------------------------------------------------------------------

def assert_over_quota(out, end, limited):
    path, kind = limited
    text = text_of(out)
    assert (end["how"], end["refused_by"], end["file_system"]) == ("refused", "quota", str(path)), end
    assert (end["quota_of"], end["limit_mb"] * MIB) == (f"{kind} {NOBODY}", QUOTA), end
    assert 0 <= end["left_mb"] * MIB < QUOTA // 16 and 0 <= QUOTA - end["usage_mb"] * MIB < QUOTA // 16, end
    assert f" were left of the quota of {kind} {NOBODY}, 2.00 MiB, on the file system at {path}" in text, text


def test_over_quota_and_aborts(out, limited):
    run = profile_command(out, *AS_NOBODY, program("ends"), "full", "abort", limited[0] / "model.bin",
                          status=-signal.SIGABRT)
    assert_over_quota(out, only_end(run), limited)


def test_over_quota_and_exits(out, limited):
    run = profile_command(out, *AS_NOBODY, program("ends"), "full", 3, limited[0] / "model.bin", status=3)
    assert_over_quota(out, only_end(run), limited)


def test_no_room_for_a_page_of_a_file_in_the_quota(out, limited):
    run = profile_command(out, *AS_NOBODY, program("ends"), "full_map", 0, limited[0] / "model.bin",
                          status=-signal.SIGBUS)
    end = only_end(run)
    assert (end["signal"], end["fault"]) == ("SIGBUS", "no room for a page of a mapped file"), end
    assert_over_quota(out, end, limited)


def test_quota_is_not_used_up(unhurried, limited):
    """It fails with a file open for writing whose owner may have more: that is no reason."""
    script = f"exec 3> '{limited[0]}/file'; {program('ends')} abort; exit $?"
    run = unhurried(*AS_NOBODY, "bash", "-c", script, status=128 + signal.SIGABRT)
    assert only_end(run)["how"] == "signal", run.profile["ended"]


def test_a_file_system_that_does_not_answer(out, tmp_path):
    """It is asked once how much is left, not for each process that ends with a file of it open for writing."""
    mount = tmp_path / "slow"
    mount.mkdir()
    deaths = 10
    with contextlib.closing(SlowProgram(program("idle"), mount)) as slow:
        run = profile_command(out, "bash", "-c", f"for i in {{1..{deaths}}}; do {program('ends')} abort 3<>'{slow.path}'; "
                              "done; exit 0")
        assert len(slow.sized) == 1, f"expected one question, got {len(slow.sized)}"
    assert [end["how"] for end in run.profile["ended"]] == ["signal"] * deaths, run.profile["ended"]


def test_who_may_pass_quotas(unhurried, limited):
    """Root has written more than the owner may have, and fails for another reason."""
    file = limited[0] / "file"
    file.touch()
    os.chown(file, NOBODY, NOBODY)
    script = f"exec 3> '{file}'; head -c {2 * QUOTA} /dev/zero >&3; {program('ends')} abort; exit $?"
    run = unhurried("bash", "-c", script, status=128 + signal.SIGABRT)
    assert file.stat().st_size == 2 * QUOTA and only_end(run)["how"] == "signal", run.profile["ended"]


REFUSALS = ["mappings", "address_space", "data", "locked"]


def assert_refused(out, end, what):
    most = int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
    text = text_of(out)
    assert end["how"] == "refused", end
    if what == "mappings":
        assert (end["refused_by"], end["max_mappings"]) == ("vm.max_map_count", most), end
        assert most <= end["mappings"] <= most + 1, end
        assert f"had {end['mappings']} mappings, where vm.max_map_count allows {most}" in text, text
        return
    name, of, limit, words = {
        "address_space": ("RLIMIT_AS", "address space", LIMIT, "256 MiB"),
        "data": ("RLIMIT_DATA", "data", LIMIT, "256 MiB"),
        "locked": ("RLIMIT_MEMLOCK", "locked memory", LOCKED, "4.00 MiB"),
    }[what]
    assert (end["refused_by"], end["limit_mb"] * MIB) == (name, limit), end
    assert limit - min(2 * MIB, limit // 16) <= end["usage_mb"] * MIB <= limit, end
    assert f" of {of}, where {name} allows {words}" in text and "refused more memory" in text, text


@pytest.mark.parametrize("what", REFUSALS)
def test_refused_and_aborts(out, what):
    end = only_end(ends(out, what, "abort", status=-signal.SIGABRT))
    assert end["signal"] == "SIGABRT" and "exit_code" not in end, end
    assert_refused(out, end, what)


@pytest.mark.parametrize("what", REFUSALS)
def test_refused_and_exits(out, what):
    end = only_end(ends(out, what, 3, status=3))
    assert end["exit_code"] == 3 and "signal" not in end, end
    assert_refused(out, end, what)
    assert text_of(out).startswith("! Failed with exit status 3, refused more memory, at "), text_of(out)


@pytest.mark.usefixtures("sparing")
def test_refused_by_the_machine_and_aborts(out):
    end = only_end(ends(out, "promised", "abort", status=-signal.SIGABRT))
    assert (end["how"], end["refused_by"], end["signal"]) == ("refused", "vm.overcommit_memory", "SIGABRT"), end
    assert end["limit_mb"] * 15 / 16 <= end["usage_mb"] <= end["limit_mb"] * 17 / 16, end
    assert "where vm.overcommit_memory allows" in text_of(out), text_of(out)


@pytest.mark.usefixtures("sparing")
def test_not_refused_by_the_machine(out):
    """Where it may have more, that is no reason."""
    assert only_end(ends(out, "abort", status=-signal.SIGABRT))["how"] == "signal"


# ---- Exceptions of C++ ----------------------------------------------------------------------------

@pytest.fixture(scope="module", name="throws", params=["dynamic", "static"])
def built_throws(request, tmp_path_factory):
    """libstdc++ is a file of its own, or a part of the program."""
    path = tmp_path_factory.mktemp("throws") / "ends_by_throw"
    done = subprocess.run(["g++", "-O1", "-pthread", *(["-static-libstdc++"] if request.param == "static" else []),
                           "-o", path, SOURCES / "throws.cpp"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


THROWN = {
    "bad_alloc": "std::bad_alloc",
    "huge": "std::bad_alloc",
    "own": "model::broken",
    "hidden": "model::(anonymous namespace)::hidden",
    "thread": "model::broken",
    "noexcept": "model::broken",
}


@pytest.mark.parametrize("how", THROWN)
def test_exception_that_nobody_caught(out, throws, how):
    end = only_end(profile_command(out, throws, how, status=-signal.SIGABRT))
    is_refused = how == "bad_alloc"
    assert (end["how"], end["exception"], end["signal"]) == (
        "refused" if is_refused else "exception", THROWN[how], "SIGABRT"), end
    assert end.get("refused_by") == ("RLIMIT_AS" if is_refused else None), end
    expected = f"! Ended by {THROWN[how]}{', refused more memory,' if is_refused else ''} at "
    assert text_of(out).startswith(expected), text_of(out)


@pytest.mark.parametrize("how", ["caught", "caught_deeper", "caught_above"])
def test_exception_that_was_caught(out, throws, how):
    """It aborts later, for a reason of its own."""
    end = only_end(profile_command(out, throws, how, status=-signal.SIGABRT))
    assert (end["how"], end["signal"]) == ("signal", "SIGABRT") and "exception" not in end, end
