# SPDX-License-Identifier: GPL-2.0-only
"""Recipes of functions and USDT probes: the phases are those of marks by hand."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import (Audit, Target, assert_nothing_lost, holds_starts, job_of, program, quality, rows, run_qprof,
                     undisturbed)

RECIPE = """
name: calls
read_from: "tests/programs/calls.c"
match: {executable: "calls*"}
checkpoints:
"""
LAYER = "- {symbol: quantize_layer, name: {arg: 1, type: string}}\n"
STEPS = 5
MS = 0.001
ROUNDED = 2e-6  # times are given to a microsecond


@pytest.fixture
def recipe(tmp_path):
    """recipe(items): the options that make qprof-bpf use only this recipe."""
    def write(items=LAYER):
        path = tmp_path / "recipe.yaml"
        path.write_text(RECIPE + items)
        return ["--recipe", path, "--recipe", "none"]
    return write


def phases_of(profile, begins=""):
    """In their order; without the gaps before, between and after marks."""
    return [p for p in profile["phases"] if p.get("kind") != "gap" and p["name"].startswith(begins)]


def names_of(phases):
    return [p["name"] for p in phases]


def end_of(phase):
    return phase["start_secs"] + phase["duration_secs"]


def assert_as_by_hand(profile, steps=STEPS, at_once=False):
    """The function begins before its mark and ends after it, and has the same peak. at_once: other
    threads have their own memory, so the peak may lie between the mark and the function's end."""
    by_recipe = {p["name"]: p for p in phases_of(profile, "layer.")}
    by_hand = {p["name"].replace("by hand ", "layer."): p for p in phases_of(profile, "by hand ")}
    names = {f"layer.{i}" for i in range(1, steps + 1)}
    assert set(by_recipe) == names, f"expected {names}, got {list(by_recipe)}"
    assert set(by_hand) == names, f"expected {names} by hand, got {list(by_hand)}"
    for name, phase in by_recipe.items():
        hand = by_hand[name]
        late = hand["start_secs"] - phase["start_secs"]
        early = end_of(phase) - end_of(hand)
        assert -ROUNDED < late, f"{name}: begun by recipe {phase['start_secs']}, by hand {hand['start_secs']}"
        assert -ROUNDED < early, f"{name}: ended by recipe {end_of(phase)}, by hand {end_of(hand)}"
        by_both = phase["peak_memory_mb"], hand["peak_memory_mb"]  # exact to the byte
        assert by_both[0] >= by_both[1] if at_once else by_both[0] == by_both[1], (
            f"{name}: peak {by_both[0]} by recipe, {by_both[1]} by hand")
        assert phase["tid"] == hand["tid"], f"{name}: in thread {phase['tid']}, by hand in {hand['tid']}"
        assert phase.get("closed", True), name
    return by_recipe, by_hand


def items_of(profile):
    assert len(profile["recipes"]) == 1, profile["recipes"]
    return profile["recipes"][0]["checkpoints"]


def matched(profile):
    return [item["matched"] for item in items_of(profile)]


def why_of(profile, what="calls"):
    return [w["why"] for w in profile["quality"].get("warnings") or [] if w["what"].startswith(what)]


@pytest.mark.parametrize("name", ["calls", "calls_static", "calls_fixed"])
@pytest.mark.parametrize("how", ["plain", "threads"])
def test_phases_by_symbol_are_those_by_hand(unhurried, recipe, name, how):
    run = unhurried(program(name), how, STEPS, options=recipe())
    if name == "calls_static" and not holds_starts(run.profile):
        pytest.skip("this kernel does not hold a static program at its start")
    assert_as_by_hand(run.profile, at_once=how == "threads")
    assert matched(run.profile) == [STEPS]
    assert len(phases_of(run.profile)) == 2 * STEPS
    assert_nothing_lost(run.profile)


def test_a_program_that_ran_just_before_as_something_else(unhurried, tmp_path):
    """Its code is known, and nobody would wait for that; the recipe is of other arguments."""
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE.replace('{executable: "calls*"}', '{executable: "calls*", arguments: "plain"}') + LAYER)
    run = unhurried("sh", "-c", "for how in tail tail tail plain; do \"$0\" $how 5; done", program("calls"),
                    options=["--recipe", path, "--recipe", "none"])
    assert names_of(phases_of(run.profile, "layer.")) == [f"layer.{i + 1}" for i in range(STEPS)]
    assert matched(run.profile) == [STEPS]
    assert_nothing_lost(run.profile)


def test_times_are_within_a_millisecond(unhurried, recipe, record_property):
    """Of the median step: a machine may take the CPU away even from such a program."""
    steps = 15
    run = unhurried(*undisturbed(), program("calls"), "plain", steps, options=recipe())
    by_recipe, by_hand = assert_as_by_hand(run.profile, steps)
    late = sorted(by_hand[n]["start_secs"] - p["start_secs"] for n, p in by_recipe.items())
    early = sorted(end_of(p) - end_of(by_hand[n]) for n, p in by_recipe.items())
    for what, times in (("begin", late), ("end", early)):
        record_property(f"symbol_{what}_us", round(times[steps // 2] * 1e6))
        record_property(f"symbol_{what}_worst_us", round(times[-1] * 1e6))
        assert times[steps // 2] < MS, f"{what}: {times} s from the mark"


def test_recursion_nests(unhurried, recipe):
    run = unhurried(program("calls"), "recursion", 2,
                    options=recipe("- {symbol: descend, phase: '{function} {arg1:uint}'}\n"))
    phases = phases_of(run.profile, "descend")
    assert names_of(phases) == ["descend 3", "descend 2", "descend 1"] * 2, names_of(phases)
    assert [p.get("depth", 0) for p in phases] == [0, 1, 2] * 2, phases
    for outer, inner in zip(phases[0:2], phases[1:3]):
        assert end_of(inner) <= end_of(outer) + ROUNDED, (outer, inner)
    assert all(p.get("closed", True) for p in phases)
    assert_nothing_lost(run.profile)


def test_a_function_that_calls_another_last(unhurried, recipe):
    """It ends with a jump, and its phase when that one returns."""
    run = unhurried(program("calls"), "tail", STEPS, options=recipe(LAYER + "- symbol: call_last\n"))
    by_recipe, _ = assert_as_by_hand(run.profile)
    outer = phases_of(run.profile, "call_last")
    assert len(outer) == STEPS
    for call, layer in zip(outer, by_recipe.values()):
        assert call["start_secs"] <= layer["start_secs"] and end_of(layer) <= end_of(call) + ROUNDED, (call, layer)
        assert call["peak_memory_mb"] == layer["peak_memory_mb"], (call, layer)


@pytest.mark.parametrize("how", ["longjmp", "unwound", "exit"])
def test_a_function_that_does_not_return(unhurried, recipe, how):
    """longjmp(): it is over at the next call. pthread_exit(), which unwinds as an exception does,
    and exit(): it stays open. In no case does a wrong phase end, and the program lives."""
    run = unhurried(program("calls"), how, 3, options=recipe(LAYER + "- {symbol: leave, phase: 'leave {arg1:int}'}\n"))
    assert_as_by_hand(run.profile, 3)
    left = phases_of(run.profile, "leave")
    assert names_of(left) == ["leave 1", "leave 2", "leave 3"]
    closed = {"longjmp": [True, True, False], "unwound": [False] * 3, "exit": [True, True, False]}
    assert [p.get("closed", True) for p in left] == closed[how], left
    if how == "longjmp":
        for before, after in zip(left, left[1:]):
            assert end_of(before) <= after["start_secs"] + ROUNDED, (before, after)
    assert quality(run.profile)["unmatched_ends"] == 0


def test_coroutines_live(unhurried, recipe):
    run = unhurried(program("calls"), "coroutines", 2,
                    options=recipe(LAYER + "- {symbol: wait_for_turn, phase: 'turn {arg1:int}'}\n"))
    assert_as_by_hand(run.profile, 2)
    assert names_of(phases_of(run.profile, "turn")) == ["turn 0", "turn 1"]


def test_a_library_that_is_opened_later(unhurried, recipe):
    run = unhurried(program("calls"), "dlopen", STEPS,
                    options=recipe(LAYER + "- {symbol: plugin_emit, phase: 'plugin {arg1:uint}'}\n"))
    assert_as_by_hand(run.profile)
    plugin = phases_of(run.profile, "plugin")
    assert names_of(plugin) == [f"plugin {STEPS}"]
    marks = [r for r in rows(run.profile) if r["step"].startswith("plugin ") and r["step"][-1].isdigit()]
    assert len(marks) == STEPS, marks


def test_attached(target, attach, recipe):
    calls = target("wait", str(STEPS), path=program("calls"))
    with attach(calls.pid, options=recipe()) as attached:
        calls.tell()
        calls.wait()
        profile = attached.finished()
    assert_as_by_hand(profile)
    assert_nothing_lost(profile)


def test_begin_end_mark_and_metric(unhurried, recipe):
    run = unhurried(program("calls"), "plain", 2, options=recipe(
        "- {symbol: quantize_layer, begin: 'all', metric: {step: '{arg2:int}'}}\n"
        "- {symbol: quantize_layer, mark: '{function} {arg2:int}'}\n"
        "- {symbol: exit, end: 'all'}\n"))
    steps = [r["step"] for r in rows(run.profile)]
    assert steps.count("all Start") == 2 and steps.count("quantize_layer 1") == 1, steps
    assert [r["metrics"]["step"] for r in rows(run.profile) if "metrics" in r] == [1, 2], rows(run.profile)
    assert steps[-1] == "all End", steps


def test_usdt_probes_with_their_arguments(unhurried, recipe):
    run = unhurried(program("calls"), "plain", 3, options=recipe(
        "- {usdt: 'tool:l*', phase: '{arg1} of {arg2:string}: {arg3:int}'}\n"
        "- usdt: 'tool:layer'\n"))
    phases = phases_of(run.profile, "")
    by_probe = [p for p in phases if " of layer." in p["name"]]
    assert names_of(by_probe) == ["1 of layer.1: 2", "2 of layer.2: 4", "3 of layer.3: 6"]
    steps = [r["step"] for r in rows(run.profile)]
    assert steps.count("tool:layer") == 3, steps
    assert matched(run.profile) == [3, 3]
    for before, after in zip(by_probe, by_probe[1:]):
        assert end_of(before) == pytest.approx(after["start_secs"], abs=5e-6), (before, after)


def test_strangers_pay_and_make_no_records(unhurried, recipe, tmp_path):
    """The same file run as another program, which no recipe knows."""
    other = tmp_path / "stranger"
    try:
        os.link(program("calls"), other)
    except OSError:  # another mount
        shutil.copy(program("calls"), other)
    run = unhurried("sh", "-c", f"{program('calls')} plain 2; {other} plain 2", options=recipe())
    by_pid = {p["pid"] for p in phases_of(run.profile, "layer.")}
    assert len(by_pid) == 1 and len(phases_of(run.profile, "layer.")) == 2, run.profile["phases"]
    assert len(phases_of(run.profile, "by hand")) == 4
    assert matched(run.profile) == [2]


def test_several_at_once_do_not_mix(unhurried, recipe):
    calls = program("calls")
    run = unhurried("sh", "-c", f"{calls} plain {STEPS} & {calls} threads {STEPS} & wait", options=recipe())
    by_pid = {}
    for phase in phases_of(run.profile, "layer."):
        by_pid.setdefault(phase["pid"], set()).add(phase["name"])
    expected = {f"layer.{i}" for i in range(1, STEPS + 1)}
    assert len(by_pid) == 2 and all(names == expected for names in by_pid.values()), by_pid
    assert matched(run.profile) == [2 * STEPS]


def test_many_calls_are_limited_and_counted(unhurried, recipe):
    calls = 20000  # too few for them to be too many in each of two seconds
    run = unhurried(program("calls"), "many", calls, options=recipe("- symbol: count_one\n"))
    item = items_of(run.profile)[0]
    assert item["matched"] + item["limited"] == calls, item
    assert item["matched"] >= 1000, item
    assert len(phases_of(run.profile, "count_one")) == item["matched"]
    assert all(p.get("closed", True) for p in phases_of(run.profile, "count_one"))
    assert_nothing_lost(run.profile)


CALLS = 20_000_000
TOO_OFTEN = "was met more than 10,000 times in each of two seconds: its probes were removed"


def test_a_function_that_is_called_all_the_time_loses_its_probes(unhurried, recipe):
    """Each call that goes through a probe is counted, so calls in no count had none."""
    run = unhurried(program("calls"), "many", CALLS, options=recipe("- symbol: count_one\n- symbol: main\n"))
    item, main = items_of(run.profile)
    assert item["stopped"] == 1, item
    counted = item["matched"] + item["limited"]
    assert 20000 < counted < CALLS // 2, f"{counted} of {CALLS} calls went through the probes: {item}"
    assert 2000 <= item["matched"], item
    told = phases_of(run.profile, "count_one")
    assert len(told) == item["matched"] and all(p.get("closed", True) for p in told)
    said = [w for w in why_of(run.profile) if TOO_OFTEN in w]
    assert len(said) == 1 and said[0].startswith("'count_one' "), why_of(run.profile)
    assert "stopped" not in main and len(phases_of(run.profile, "main")) == 1, "others keep theirs"
    assert_nothing_lost(run.profile)


def test_a_call_that_lasts_as_its_probes_go(unhurried, recipe):
    """Nobody knows when it ends: its phase ends there, is not closed, and has nothing within it after that."""
    run = unhurried(program("calls"), "within", CALLS, options=recipe(
        "- {symbol: repeat, phase: 'repeat {arg1:ulong}'}\n" + LAYER))
    assert items_of(run.profile)[0]["stopped"] == 1, items_of(run.profile)
    outer, = phases_of(run.profile, f"repeat {CALLS}")
    inner = phases_of(run.profile, "repeat 0")
    layer, = phases_of(run.profile, "layer.1")
    assert not outer.get("closed", True) and all(p.get("closed", True) for p in inner), outer
    assert end_of(outer) < layer["start_secs"] and layer.get("depth", 0) == 0, (outer, layer)
    assert end_of(inner[-1]) <= end_of(outer) + ROUNDED, (inner[-1], outer)
    assert quality(run.profile)["unclosed_phases"] == 1


def test_a_function_that_is_nowhere_is_a_warning(unhurried, recipe):
    run = unhurried(program("calls"), "plain", 2, options=recipe(
        LAYER + "- symbol: no_such_function\n- usdt: 'no:probe'\n- symbol: descend\n"))
    assert_as_by_hand(run.profile, 2)
    why = why_of(run.profile)
    assert len(why) == 2, why
    missing = next(w for w in why if "no file" in w)
    idle = next(w for w in why if "never seen" in w)
    assert "'no_such_function'" in missing and "'no:probe'" in missing and "descend" not in missing, missing
    assert "'descend'" in idle and "tests/programs/calls.c" in idle, idle


def test_names_from_the_debug_file(unhurried, recipe, tmp_path):
    """A program that was stripped has its names under /usr/lib/debug, by its build id."""
    stripped, debug = tmp_path / "calls_stripped", tmp_path / "debug"
    subprocess.run(["objcopy", "--only-keep-debug", program("calls"), debug], check=True)
    subprocess.run(["objcopy", "--strip-all", program("calls"), stripped], check=True)
    notes = subprocess.run(["readelf", "-n", stripped], capture_output=True, text=True, check=True).stdout
    build_id = notes.split("Build ID: ")[1].split()[0]
    path = Path(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
    run = unhurried(stripped, "plain", 2, options=recipe())
    assert matched(run.profile) == [0], "without the file there are no names"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(debug, path)
    except OSError as why:
        pytest.skip(f"no file for debuggers can be installed here: {why}")
    try:
        run = unhurried(stripped, "plain", 2, options=recipe())
    finally:
        path.unlink()
    assert_as_by_hand(run.profile, 2)


def test_a_file_that_is_written_anew(unhurried, recipe, tmp_path):
    """In place, while its probes are attached: they are put where its functions are then."""
    copy = tmp_path / "calls_copy"
    shutil.copy(program("calls"), copy)
    other = program("calls_fixed")
    run = unhurried("sh", "-c", f"{copy} plain 2; cat {other} > {copy}; {copy} plain 3", options=recipe())
    names = names_of(phases_of(run.profile, "layer."))
    assert names == ["layer.1", "layer.2", "layer.1", "layer.2", "layer.3"], run.profile["phases"]
    assert matched(run.profile) == [5]


@pytest.mark.parametrize("item, says", [
    ("- {symbol: f, phase: '{arg7:int}'}", ":6: '{arg7:int}': no such argument"),
    ("- {symbol: f, name: {arg: 1, type: real}}", "an unknown type"),
    ("- {usdt: gc}", "'usdt' is PROVIDER:NAME"),
])
def test_a_bad_item_stops_before_anything_runs(recipe, out, tmp_path, item, says):
    ran = tmp_path / "ran"
    run = run_qprof("-o", out, *recipe(item + "\n"), "--", "touch", ran)
    assert run.returncode == 125 and says in run.stderr, run
    assert len(run.stderr.splitlines()) == 1 and not ran.exists() and not out.exists(), run


def test_audit(recipe, tmp_path):
    options = ("-v", "--rules", "none", *recipe()[:2])
    with Audit(tmp_path / "audit.yaml", options) as running:
        with Target("wait", str(STEPS), path=program("calls")) as calls:
            running.stderr.until(f"process {calls.pid}: recipe calls")
            calls.tell()
            assert calls.wait() == 0
            report = running.stop()
    job = job_of(report, calls.pid)
    assert job["rule"] == "calls", job
    assert_as_by_hand(job)


def test_a_static_command_waits_for_its_search(unhurried):
    """It waits in its exec, while the profiler waits for its exec: neither gives up."""
    run = unhurried(program("calls_static"), "plain", 1, options=["--recipe", "none"])
    if not holds_starts(run.profile):
        pytest.skip("this kernel does not hold a static program at its start")
    assert why_of(run.profile, "the search of new code") == []
    assert quality(run.profile)["hasty_starts"] == 0
