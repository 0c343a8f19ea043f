# SPDX-License-Identifier: GPL-2.0-only
"""Checkpoints: each one there, in order, under its name, with its metrics."""

import math
import os
import re
import signal
import subprocess

import pytest
import yaml

from harness import (CLEAN_ENV, DEADLINE, QPROF, Loader, assert_nothing_lost, metrics_of, parse, process_of, program, quality,
                     row_of, rows, run_qprof, step_names, wakeups)

NAME_MAX = 255


def test_sequence(profile):
    run = profile(program("checkpoints"), "sequence")
    assert step_names(run.profile) == run.truth["steps"]
    for step, name, value in run.truth["metrics"]:
        got = row_of(run.profile, step).get("metrics")
        assert got == {name: value}, f"metrics of {step!r}: expected {name}={value}, got {got}"
    without = {step for step, _, _ in run.truth["metrics"]}
    for row in rows(run.profile):
        assert row["step"] in without or not row.get("metrics"), f"unexpected metrics in {row}"
    assert_nothing_lost(run.profile)


def test_times_are_ordered(profile):
    run = profile(program("checkpoints"), "memory")
    all_rows = rows(run.profile, ends=True)
    for before, after in zip(all_rows, all_rows[1:]):
        for key in ("timestamp", "relative_time_secs", "cpu_time_secs"):
            assert before[key] <= after[key], f"{key} runs backwards from {before} to {after}"
    assert all_rows[0]["relative_time_secs"] == 0, all_rows[0]
    for row in all_rows:
        absolute = row["timestamp"] - all_rows[0]["timestamp"]
        assert absolute == pytest.approx(row["relative_time_secs"], abs=0.002), (
            f"timestamp and relative_time_secs disagree in {row}")


def test_unmatched_pairs(profile):
    """Ends without a begin and pairs that cross are steps like any other, and are counted."""
    run = profile(program("checkpoints"), "unmatched")
    assert step_names(run.profile) == run.truth["steps"]
    counts = quality(run.profile)
    assert counts.get("unmatched_ends") == 1, f"expected unmatched_ends 1, got {counts}"
    assert counts.get("unclosed_phases") == 1, f"expected unclosed_phases 1, got {counts}"


def test_metrics(profile):
    """Every type, from registers, constants and memory; -8 must not come as 248."""
    run = profile(program("checkpoints"), "metrics")
    got = row_of(run.profile, "Measured")["metrics"]
    for name, value in run.truth["metrics"].items():
        assert name in got, f"metric {name} is missing in {got}"
        assert got[name] == pytest.approx(value, rel=1e-12), (
            f"metric {name}: expected {value}, got {got[name]}")
        if isinstance(value, int):
            assert got[name] == value, f"metric {name}: expected {value}, got {got[name]}"
    assert list(got) == list(run.truth["metrics"]), "metrics must stay in the order of the reports"


def whole_characters(name):
    """What is kept of a name: 255 bytes, not cut inside a character."""
    if len(name) <= NAME_MAX:
        return name
    cut = NAME_MAX
    while cut and name[cut] & 0xc0 == 0x80:
        cut -= 1
    return name[:cut]


def is_utf8(name):
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_hostile_names(profile):
    run = profile(program("checkpoints"), "hostile")
    names = [bytes.fromhex(name) for name in run.truth["names_hex"]]
    got = step_names(run.profile)
    assert len(got) == len(names), f"expected {len(names)} steps, got {len(got)}: {got}"
    for raw, step in zip(names, got):
        assert isinstance(step, str), f"{raw!r} came as the {type(step).__name__} {step!r}"
        assert step, f"{raw!r} came as an empty step"
        kept = whole_characters(raw)
        if not kept:
            continue
        if is_utf8(kept):
            assert step == kept.decode(), f"expected {kept!r}, got {step.encode()!r}"
        else:
            plain = [part for part in kept.decode(errors="replace").split("\ufffd") if part]
            for part in plain:
                assert part in step, f"expected {part!r} of {kept!r} in {step!r}"
    counts = quality(run.profile)
    invalid = sum(not is_utf8(whole_characters(name)) for name in names)
    cut = sum(len(name) > NAME_MAX for name in names)
    assert counts.get("invalid_utf8_names") == invalid, (
        f"expected {invalid} invalid_utf8_names, got {counts}")
    assert counts.get("cut_names") == cut, f"expected {cut} cut_names, got {counts}"
    assert not counts.get("unreadable_names"), counts


def test_unreadable_names(profile):
    """Bad pointers: each is a step that says so, counted, and the others are not harmed."""
    run = profile(program("checkpoints"), "unreadable")
    got = step_names(run.profile)
    expected = run.truth["unreadable"]
    assert len(got) == expected + 2, f"expected {expected + 2} steps, got {got}"
    assert got[0] == run.truth["first"] and got[-1] == run.truth["last"], got
    assert all("unreadable" in step for step in got[1:-1]), f"expected to be told so: {got}"
    counts = quality(run.profile)
    assert counts.get("unreadable_names") == expected, (
        f"expected {expected} unreadable_names, got {counts}")


def test_cold_names(profile):
    """Names on pages that nothing has touched; the second perhaps in no cache either."""
    run = profile(program("checkpoints"), "cold")
    assert run.truth["was_present"] == [False, False], (
        f"the test's pages were there before their time: {run.truth}")
    assert step_names(run.profile) == run.truth["steps"]
    assert not quality(run.profile).get("unreadable_names"), run.profile["quality"]


def check_all_there(got, counts, count):
    """Every one of c0000000... is there, in order, or counted as lost. How many were lost."""
    lost = counts["lost_checkpoints"]
    assert len(got) + lost == count, (
        f"expected {count} steps or their loss counted, got {len(got)} and {lost} counted")
    assert got == sorted(got), "steps are out of order"
    assert len(set(got)) == len(got), "steps came twice"
    return lost


@pytest.mark.long
def test_full_ring_is_counted(attach):
    """Nobody reads while more comes than the ring holds: the rest is counted, and what was kept is right."""
    count = 60000
    flood = f'{program("checkpoints")} sequence; echo ready; read go; ' \
            f'{program("checkpoints")} rate {count}'
    target = subprocess.Popen(["sh", "-c", f"read go; {flood}"], env=CLEAN_ENV,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with attach(target.pid) as attached:
        target.stdin.write(b"go\n")
        target.stdin.flush()
        while target.stdout.readline() != b"ready\n":
            pass
        attached.wait_for_step("Exported")  # the program's probes are attached, then
        attached.process.send_signal(signal.SIGSTOP)
        target.communicate(b"go\n", timeout=DEADLINE)
        attached.process.send_signal(signal.SIGCONT)
        got = attached.finished()
    steps = [step for step in step_names(got) if re.fullmatch(r"c\d{7}", step)]
    counts = quality(got)
    lost = check_all_there(steps, counts, count)
    assert lost, f"expected some to be lost, or this test tests nothing: {counts}"
    assert counts["missing_checkpoints"] == lost, counts
    assert counts["lost_process_events"], f"expected the exits to be lost and counted: {counts}"


@pytest.mark.long
def test_flood(profile):
    """As fast as they go: all there in order, or counted."""
    run = profile(program("checkpoints"), "rate", 20000)
    check_all_there(step_names(run.profile), quality(run.profile), 20000)


@pytest.mark.long
def test_100000_a_second_for_two_seconds(out):
    """None is lost, where qprof-bpf has a CPU each 0.1 s: the ring has no room for more. (The rows are taken as text: to
    parse 200,000 as YAML takes a minute.)"""
    for _ in range(3):
        run = run_qprof("-q", "-o", out, "--", program("checkpoints"), "rate", 200000, 100000)
        assert run.returncode == 0, run
        end_of_rows = "\ntotal_quantization_time_seconds:"
        steps, rest = out.read_text().split(end_of_rows)
        got = re.findall(r'^- step: "?(c\d{7})"?$', steps, re.M)
        counts = quality(yaml.load(end_of_rows + rest, Loader=Loader))
        lost = check_all_there(got, counts, 200000)
        if not lost:
            break
    assert not lost, f"expected none lost, got {counts}"


def woken_by(out, marks):
    """How often qprof-bpf has waited in a run with that many marks, 300 a second; and all marks are there."""
    run = subprocess.Popen([QPROF, "-q", "-o", out, "--", program("checkpoints"), "rate", str(marks), "300"], env=CLEAN_ENV,
                           stdout=subprocess.DEVNULL)
    os.waitid(os.P_PID, run.pid, os.WEXITED | os.WNOWAIT)
    woken = wakeups(run.pid)
    assert run.wait() == 0
    assert step_names(parse(out)) == [f"c{number:07d}" for number in range(marks)]
    return woken


def test_marks_wake_nobody_one_by_one(out):
    """To be woken up costs whoever marks more than the mark: they gather."""
    few, many = woken_by(out, 2), woken_by(out, 602)
    assert many - few < 600 / 4, f"{few} times with 2 marks, {many} times with 602"


def test_marks_that_overlap_on_a_cpu(profile):
    """A mark waits for its name until another process has hit the same mark on this CPU."""
    run = profile(program("overlaps"), 50)
    if "cannot" in run.truth:
        pytest.skip(run.truth["cannot"])
    got = [(row["step"], row["pid"], row["tid"]) for row in rows(run.profile)]
    pids = [("Quick", run.truth["quick"]), ("Slow", run.truth["slow"])]
    expected = [(f"{name} {i}", pid, pid) for i in range(1, 51) for name, pid in pids]
    wrong = [(e, g) for e, g in zip(expected, got) if e != g]
    assert got == expected, f"{len(wrong)} of {len(expected)} are wrong; the first: expected, got {wrong[:1]}"
    assert_nothing_lost(run.profile)


def test_threads(profile):
    """Each thread's checkpoints are in its order and carry its tid."""
    run = profile(program("checkpoints"), "threads", 8, 500)
    all_rows = rows(run.profile)
    assert len(all_rows) == 8 * 500, f"expected {8 * 500} steps, got {len(all_rows)}"
    for number, tid in enumerate(run.truth["tids"]):
        letter = chr(ord("A") + number)
        own = [row for row in all_rows if row["step"].startswith(letter)]
        assert [row["step"] for row in own] == [f"{letter}{i:07}" for i in range(500)]
        assert {row["tid"] for row in own} == {tid}, f"expected tid {tid} for {letter}"
    assert len({row["pid"] for row in all_rows}) == 1


def test_children(profile):
    """Checkpoints of children that are gone at once, with their pids."""
    run = profile(program("checkpoints"), "children", 50)
    all_rows = rows(run.profile)
    assert [row["step"] for row in all_rows] == [
        "parent before", *(f"c{i:07}" for i in range(50)), "parent after"]
    assert [row["pid"] for row in all_rows[1:-1]] == run.truth["pids"]


def test_any_probe_of_the_provider_is_a_mark(profile):
    run = profile(program("checkpoints"), "others")
    assert step_names(run.profile) == run.truth["steps"]


@pytest.mark.parametrize("pattern,wanted", [
    ("other:plain", ["plain"]),
    ("other:*", ["plain", "loaded"]),
    ("oth*:lo*", ["loaded"]),
])
def test_other_providers(profile, pattern, wanted):
    run = profile(program("checkpoints"), "others", options=("--usdt", pattern))
    got = step_names(run.profile)
    expected = run.truth["steps"]
    assert len(got) == len(expected) + len(wanted), f"expected {wanted} too, got {got}"
    extra = got[3:-1]  # between epoch and last
    for name, step in zip(wanted, extra):
        assert name in step, f"expected the step of {name}, got {step!r} in {got}"


def test_other_providers_repeated(profile):
    run = profile(program("checkpoints"), "others",
                  options=("--usdt", "other:plain", "--usdt", "another:ignored"))
    got = step_names(run.profile)
    assert len(got) == 6 and "plain" in got[3] and "ignored" in got[4], got


def test_refused_arguments_hinder_nobody(profile):
    """A probe that cannot be evaluated is reported; the others are attached."""
    run = profile(program("checkpoints"), "refused")
    got = step_names(run.profile)
    assert got[0] == run.truth["before"] and got[-1] == run.truth["after"], got
    refused = [warning for warning in run.profile["quality"]["warnings"]
               if "qprof:mark" in warning["what"]]
    assert len(refused) == 1 and refused[0]["why"], (
        f"expected one warning on qprof:mark, got {run.profile['quality']['warnings']}")


def test_value_that_cannot_be_read(profile):
    """The metric is there without a value, and counted; or, better, with the right one."""
    run = profile(program("checkpoints"), "refused")
    metrics = metrics_of(run.profile)
    assert "constant double" in metrics, metrics
    if metrics["constant double"] != pytest.approx(0.3):
        assert metrics["constant double"] is None, f"expected 0.3 or nothing, got {metrics}"
        assert quality(run.profile)["unreadable_metrics"] == 1, run.profile["quality"]


def test_semaphore_at_start(profile):
    run = profile(program("semaphore"), 60)
    assert run.truth["raised"], "the semaphore was not raised"
    assert step_names(run.profile) == ["Listened To"]


def test_semaphore_stays_down_without_us():
    done = subprocess.run([program("semaphore"), "0"], capture_output=True, text=True, check=True)
    assert '"raised": false' in done.stdout, done.stdout


def test_flushed_as_they_happen(target, attach):
    """A step is in the file when it has happened, not when the run is over."""
    idle = target("mark:first", "mark:second", "mark:third")
    with attach(idle.pid) as attached:
        for name in ("first", "second"):
            idle.go()
            so_far = attached.wait_for_step(name)
            assert so_far["memory_usage"][-1]["step"] == name, step_names(so_far, ends=True)
        idle.go()
        profile = attached.finished()
    assert step_names(profile) == ["first", "second", "third"]


def test_untracked_processes_are_not_in_it(target, attach):
    """A probe is attached for all processes; the steps are those of the tracked ones."""
    mine, other = target("mark:mine", "mark:end"), target("mark:not mine", "mark:x")
    with attach(mine.pid) as attached:
        other.go()
        mine.go()
        other.go()
        mine.go()
        profile = attached.finished()
    assert step_names(profile) == ["mine", "end"]
    assert not process_of(profile, other.pid), profile["processes"]


def test_values_are_numbers(profile, out):
    """Also those that have no plain decimal form."""
    profile(program("checkpoints"), "metrics")
    for name, value in metrics_of(parse(out)).items():
        assert isinstance(value, (int, float)) and math.isfinite(value), f"{name}: {value!r}"
