# SPDX-License-Identifier: GPL-2.0-only
"""A run that was killed, crashed, failed or was cut off must not read as a good one."""

import json

import pytest

from reports import HERE, report, run

ENDINGS = HERE / "endings"
GOOD = ENDINGS / "good.yaml"
KILLED = "Ended by SIGKILL (out of memory, or kill -9)"

FIRST = {
    "killed": f"! {KILLED} at 1.2 s, in Calibration",
    "crashed": "! Ended by SIGSEGV at 1.2 s, in Calibration",
    "exit3": "! Failed with exit status 3 at 1.2 s, in no phase, after Calibration",
    "shell": f"! {KILLED}: process 700 python3 train.py at 1.2 s, in Calibration",
    "interrupted": "! Interrupted at 1.2 s, in Calibration",
    "cut": "! Cut off, or still running, at 600 ms, in Calibration",
    "good": "python3 train.py",
}
END = {"killed": "signal 9", "interrupted": "signal 2", "crashed": "signal 11", "exit3": "exit 3", "shell": "signal 9"}


def text_of(name, width=120):
    return report("--width", width, profile=ENDINGS / f"{name}.yaml").decode()


def page_of(name):
    """The page's profile, and what it says without scripts."""
    page = report("-f", "html", profile=ENDINGS / f"{name}.yaml").decode()
    return (json.loads(page.split('id="profile">')[1].split("</script>")[0]),
            page.split("<noscript>")[1].split("</noscript>")[0])


@pytest.mark.parametrize("name", FIRST)
def test_first_line(name):
    assert text_of(name).splitlines()[0] == FIRST[name]


@pytest.mark.parametrize("name", FIRST)
def test_page(name):
    profile, without_scripts = page_of(name)
    if name == "good":
        assert "ending" not in profile and "killed" not in profile
        return
    assert "! " + profile["ending"] == FIRST[name]
    assert profile["killed"] == (name in ("killed", "shell", "cut"))
    assert profile["ending"] in without_scripts


@pytest.mark.parametrize("name,words,phase", [
    ("killed", "Needs MORE than 415 MiB", ">415 MiB"), ("shell", "Needs MORE than 415 MiB", ">415 MiB"),
    ("interrupted", "Needs at least 415 MiB", " 415 MiB"), ("crashed", "Needs at least 415 MiB", " 415 MiB"), ("exit3", "Needs at least 415 MiB", " 415 MiB"),
    ("good", "Needs at least 415 MiB", " 415 MiB")])
def test_needs(name, words, phase):
    """A run that was killed might have needed more; so might the phase that it was killed in."""
    text = text_of(name)
    assert words in text, text
    fits = text.split("WILL IT FIT")[1]
    assert phase in next(line for line in fits.splitlines() if "Calibration" in line), fits
    assert ">" not in next(line for line in fits.splitlines() if " Load " in line), fits


@pytest.mark.parametrize("name", END)
@pytest.mark.parametrize("width", [60, 80, 160])
def test_end_of_processes(name, width):
    table = text_of(name, width).split("\nPROCESS")[1]
    assert "END" in table.splitlines()[0] and END[name] in table, table


GATES = [["--max-peak-increase", "900%"], ["--budget", "peak=4G"], ["--budget", "Load.peak=4G"]]


@pytest.mark.parametrize("gate", GATES, ids=" ".join)
@pytest.mark.parametrize("name", FIRST)
def test_gate(name, gate):
    """No limit holds for a run that has failed, on either side, unless the user says so."""
    path = ENDINGS / f"{name}.yaml"
    failed = name not in ("good", "interrupted")
    for sides in ([GOOD, path], [path, GOOD]):
        text = run("diff", *gate, *sides, status=failed)[0].decode()
        assert ("All limits hold." in text) == (not failed), text
        assert ("cannot be told to hold" in text) == failed, text
        text = run("diff", "--allow-failed", *gate, *sides)[0].decode()
        assert "All limits hold." in text, text


def test_gate_says_how_it_ended():
    text = run("diff", "--width", "120", GOOD, ENDINGS / "killed.yaml")[0].decode()
    assert FIRST["killed"] in text and ">415 MiB" in text, text
    # Of repeats, one that failed is enough.
    run("diff", "--budget", "peak=4G", GOOD, f"{GOOD},{ENDINGS / 'exit3.yaml'},{GOOD}", status=1)
    repeats = f"{ENDINGS / 'interrupted.yaml'},{ENDINGS / 'exit3.yaml'},{GOOD}"
    text = run("diff", "--budget", "peak=4G", GOOD, repeats, status=1)[0].decode()
    assert "Failed with exit status 3" in text, text
    document = json.loads(run("diff", "-f", "json", GOOD, ENDINGS / "killed.yaml")[0])
    assert document["old_ending"] is None
    assert "! " + document["new_ending"] == FIRST["killed"]
    assert not document["broken"], "without a limit nothing is broken"


def test_a_broken_limit_stays_broken():
    text = run("diff", "--allow-failed", "--budget", "peak=1M", GOOD, ENDINGS / "killed.yaml", status=1)[0]
    assert b"! peak=1M: " in text, text


def test_hostile_phase():
    """The ending names a phase: no name may control a terminal or leave the page."""
    text = (ENDINGS / "killed.yaml").read_text().replace('"Calibration"', '"\\e[2J</script>\\u202e"')
    stdout = run("report", "-", stdin=text.encode())[0].decode()
    assert "\x1b" not in stdout and "\u202e" not in stdout, stdout
    page = run("report", "-f", "html", "-", stdin=text.encode())[0].decode()
    assert "\x1b" not in page and "\u202e" not in page and page.count("[2J</script>") == 0


OOM = """ended:
- {how: oom, time_secs: 1.0, phase: "Calibration", scope: cgroup, path: "/job", limit_mb: 500.0, usage_mb: 499.99, victim_pid: 700,
   asked_by_pid: 701, asked_by: "worker", file_mb: 30.0, anon_mb: 410.0, shmem_mb: 5.0, swap_mb: 1.0, tree_memory_mb: 470.0}
processes:"""
HELD = "process 700 python3 train.py held 445 MiB (anon 410 MiB, file 30.0 MiB, shmem 5.00 MiB) and 1.00 MiB in swap, the whole tree 470 MiB,"
CERTIFICATE = (f"! Killed by the OOM killer at 1.0 s, in Calibration: {HELD} when process 701 worker asked for more than "
               "cgroup /job may have: 500 MiB, of which 500 MiB were in use")


def told(name, *changes, ended=OOM):
    """The first paragraph of the report of a profile in which somebody was killed."""
    text = (ENDINGS / f"{name}.yaml").read_text().replace("\nprocesses:", f"\n{ended}")
    for old, new in changes:
        assert old in text, f"{old} is not in {text}"
        text = text.replace(old, new)
    report_text = run("report", "--width", "120", "-", stdin=text.encode())[0].decode()
    return " ".join(report_text.split("python3 train.py\n  ran")[0].split()), text


def test_oom():
    """Who was killed by which limit, what it held, who asked for more; and a run that it did not end says so, too."""
    assert told("killed")[0].startswith(CERTIFICATE), told("killed")[0]
    text = told("killed", (", path: \"/job\", limit_mb: 500.0, usage_mb: 499.99", ""), ("scope: cgroup", "scope: machine"),
                ("asked_by_pid: 701", "asked_by_pid: 700"))[0]
    assert f"{HELD} when it asked for more than the machine had" in text, text
    text = told("good")[0]
    assert text.startswith("! Killed by the OOM killer at 1.0 s, in Calibration: process 700"), text
    text = told("exit3", ("victim_pid: 700", "victim_pid: 702"))[0]
    assert text.startswith(FIRST["exit3"] + ". Killed by the OOM killer at 1.0 s"), text
    _, profile = told("good")
    page = run("report", "-f", "html", "-", stdin=profile.encode())[0].decode()
    assert json.loads(page.split('id="profile">')[1].split("</script>")[0])["ending"] == CERTIFICATE[2:]
    document = json.loads(run("report", "-f", "json", "-", stdin=profile.encode())[0])
    assert document["ended"][0]["path"] == "/job" and document["ended"][0]["usage_mb"] == 499.99, document["ended"]


@pytest.mark.parametrize("usage,words", [
    # What may not fail is charged beyond the limit; but not so much.
    ("510.0", "when process 701 worker asked for more than cgroup /job may have: 500 MiB, of which 510 MiB were in use"),
    ("900.0", "when the limit of cgroup /job, with 900 MiB in use, was lowered to 500 MiB (process 701 worker)"),
])
def test_a_limit_that_was_lowered(usage, words):
    text = told("killed", ("usage_mb: 499.99", f"usage_mb: {usage}"))[0]
    assert f"{HELD} {words}" in text, text


HELD_ALONE = HELD.split(", the whole")[0]
SIGNAL = OOM.replace("how: oom", "how: signal, WHAT").replace(
    """scope: cgroup, path: "/job", limit_mb: 500.0, usage_mb: 499.99, """, "").replace(
    """   asked_by_pid: 701, asked_by: "worker", """, "   ").replace("470.0", "446.0")


@pytest.mark.parametrize("what,words", [
    ('signal: SIGSEGV, fault: "stack overflow", address: "0x7f00"', "Ended by SIGSEGV (stack overflow)"),
    ('signal: SIGBUS, fault: "beyond the end of a mapped file", mapped_file: "/a/b"',
     "Ended by SIGBUS (beyond the end of a mapped file: /a/b)"),
    ("signal: SIGABRT, sent_by_pid: 700, sent_by: python3", "Ended by SIGABRT"),
    ("signal: SIGTERM, sent_by_pid: 812, sent_by: bash", "Ended by SIGTERM (sent by process 812 bash)"),
    ("signal: SIGKILL, sent_by_pid: 812, sent_by: bash",
     "Ended by SIGKILL (kill -9 by process 812 bash, not out of memory)"),
    ("signal: SIGKILL", KILLED),
])
def test_signal(what, words):
    text, _ = told("crashed", ended=SIGNAL.replace("WHAT", what))
    held = HELD_ALONE.replace("and 1.00 MiB in swap", "and 1.00 MiB in swap, the whole tree 446 MiB")
    assert text.startswith(f"! {words} at 1.0 s, in Calibration: {held}"), text


@pytest.mark.parametrize("what,words,tail", [
    ("signal: SIGABRT, refused_by: vm.max_map_count, mappings: 65531, max_mappings: 65530",
     "Ended by SIGABRT", "65531 mappings, where vm.max_map_count allows 65530"),
    ("exit_code: 3, refused_by: RLIMIT_AS, limit_mb: 500.0, usage_mb: 499.5",
     "Failed with exit status 3", "500 MiB of address space, where RLIMIT_AS allows 500 MiB"),
    ("exit_code: 3, refused_by: RLIMIT_DATA, limit_mb: 500.0, usage_mb: 490.0",
     "Failed with exit status 3", "490 MiB of data, where RLIMIT_DATA allows 500 MiB"),
])
def test_refused(what, words, tail):
    """A run that was refused memory might have needed more, as one that was killed for want of it."""
    text, _ = told("exit3", ended=SIGNAL.replace("how: signal, WHAT", "how: refused, " + what))
    assert text.startswith(f"! {words}, refused more memory, at 1.0 s, in Calibration: {HELD_ALONE}"), text
    assert f" and had {tail}" in text, text


@pytest.mark.parametrize("what,tail", [
    ("refused_by: file system, file_system: /scratch, left_mb: 0.5", "the file system at /scratch"),
    ("refused_by: quota, file_system: /scratch, left_mb: 0.5, quota_of: user 1000, limit_mb: 500.0, usage_mb: 499.5",
     "the quota of user 1000, 500 MiB, on the file system at /scratch"),
])
def test_no_room(what, tail):
    text, _ = told("exit3", ended=SIGNAL.replace("how: signal, WHAT", "how: refused, exit_code: 3, " + what))
    assert text.startswith(f"! Failed with exit status 3 at 1.0 s, in Calibration: {HELD_ALONE}"), text
    assert f" while 512 KiB were left of {tail}" in text, text


def test_refused_by_a_gpu():
    """A GPU, as the program counts them where no tool's number is known; memory that nobody could read any more."""
    what = ("how: refused, exit_code: 3, refused_by: GPU, gpu_refusal: {number: 2, time_secs: 0.9, pid: 700, asked_mb: 24576.0, "
            "program_index: 1, held_mb: 512.0, error: CUDA_ERROR_OUT_OF_MEMORY}")
    words = "been refused 24.0 GiB on GPU 1 of the program at 900 ms, where the run held 512 MiB (CUDA_ERROR_OUT_OF_MEMORY)"
    begin = "! Failed with exit status 3, refused more memory, at 1.0 s, in Calibration: "
    text, _ = told("exit3", ended=SIGNAL.replace("how: signal, WHAT", what))
    assert text.startswith(f"{begin}{HELD_ALONE}") and f" and had {words}" in text, text
    gone = "victim_pid: 700,\n   file_mb: 30.0, anon_mb: 410.0, shmem_mb: 5.0, swap_mb: 1.0, tree_memory_mb: 446.0"
    ended = SIGNAL.replace("how: signal, WHAT", what)
    assert gone in ended, ended
    text, _ = told("exit3", ended=ended.replace(gone, "victim_pid: 700"))
    assert text.startswith(f"{begin}process 700 python3 train.py had {words}"), text


def test_child_that_crashed_fails_no_run():
    """A limit holds for a run that ended well, though one of its helpers crashed."""
    ended = SIGNAL.replace("WHAT", "signal: SIGSEGV").replace("victim_pid: 700", "victim_pid: 702")
    text, profile = told("good", ended=ended)
    assert text.startswith("! Ended by SIGSEGV at 1.0 s"), text
    out = run("diff", "--budget", "peak=4G", GOOD, "-", stdin=profile.encode())[0]
    assert b"All limits hold." in out, out


def test_kill_9_is_no_oom():
    """Where the kernel tells whom its OOM killer takes, a kill without that is somebody's."""
    text = (ENDINGS / "killed.yaml").read_text().replace('  kernel: "6.18.44"', '  kernel: "6.18.44"\n  backends: {oom_kills: "mark_victim"}')
    first = run("report", "--width", "120", "-", stdin=text.encode())[0].decode().splitlines()[0]
    assert first == "! Ended by SIGKILL (kill -9, not out of memory) at 1.2 s, in Calibration", first
