# SPDX-License-Identifier: GPL-2.0-only
"""Recipes: what a program writes makes the phases that its marks would."""

import os
import pty
import re
import subprocess
import threading

import pytest

from harness import (CLEAN_ENV, DEADLINE, QPROF, assert_nothing_lost, is_hooked, losses, parse, program, rows,
                     run_qprof, wait_for)

RECIPE = """
name: says
read_from: "tests/programs/says.c"
match: {executable: says}
checkpoints:
- {log: '^\\[ *(\\d+)/ *(\\d+)\\] +(\\S+) - ', literal: "] ", phase: $3}
- {log: 'quant size += +([\\d.]+) MB', literal: "quant si", end: "*", summary: {quantized_size_mb: $1}}
"""
STEPS = 5
# What the program touches between the text and the mark: its stack and buffers.
FEW_PAGES_MB = 16 * 4096 / 2**20


@pytest.fixture
def recipe(tmp_path):
    """recipe(text): the options that make qprof-bpf use only this recipe."""
    def write(text=RECIPE):
        path = tmp_path / "recipe.yaml"
        path.write_text(text)
        return ["--recipe", path, "--recipe", "none"]
    return write


def phases_of(profile):
    """By name, the phases that the log made, and those by hand."""
    by_log = {p["name"]: p for p in profile["phases"] if p["name"].startswith("layer.")}
    by_hand = {p["name"].replace("by hand ", "layer."): p for p in profile["phases"]
               if p["name"].startswith("by hand ")}
    return by_log, by_hand


def assert_as_by_hand(profile, steps=STEPS):
    by_log, by_hand = phases_of(profile)
    names = [f"layer.{i}" for i in range(1, steps + 1)]
    assert list(by_log) == names, f"expected {names}, got {list(by_log)}"
    assert list(by_hand) == names, f"expected {names} by hand, got {list(by_hand)}"
    for name, phase in by_log.items():
        hand = by_hand[name]
        assert hand["start_secs"] >= phase["start_secs"], (
            f"{name}: by log at {phase['start_secs']}, by hand at {hand['start_secs']}")
        assert phase["peak_memory_mb"] == pytest.approx(hand["peak_memory_mb"], abs=FEW_PAGES_MB), (
            f"{name}: peak {phase['peak_memory_mb']} by log, {hand['peak_memory_mb']} by hand")
        assert phase["duration_secs"] >= hand["duration_secs"], name
        assert phase.get("closed", True), name


def use_of(profile):
    assert len(profile["recipes"]) == 1, profile["recipes"]
    return profile["recipes"][0]


def test_times_are_those_of_the_writes(profile, recipe):
    """Each lies between what the program's clock says before and after its write()."""
    run = profile(program("says"), "stderr", STEPS, options=recipe())
    starts = [phases_of(run.profile)[0][f"layer.{i}"]["start_secs"] for i in range(1, STEPS + 1)]
    wrote = [[ns / 1e9 for ns in both] for both in run.truth["wrote"]]
    rounding = 2e-6
    for i in range(1, STEPS):
        least = wrote[i][0] - wrote[0][1] - rounding
        most = wrote[i][1] - wrote[0][0] + rounding
        assert least <= starts[i] - starts[0] <= most, (
            f"step {i + 1}: expected {least:.6f} to {most:.6f} s after the first, got {starts[i] - starts[0]:.6f}")


@pytest.mark.parametrize("how", ["stderr", "stdout", "writev", "dup", "thread", "colour"])
def test_phases_by_log_are_those_by_hand(profile, recipe, how):
    # An escape lies between "]" and the blank: a literal is looked for in what is written.
    text = RECIPE.replace('"] "', "layer.") if how == "colour" else RECIPE
    run = profile(program("says"), how, STEPS, options=recipe(text))
    assert_as_by_hand(run.profile)
    assert run.profile["quantized_size_mb"] == 7.5, "a summary of the log"
    use = use_of(run.profile)
    assert [item["matched"] for item in use["checkpoints"]] == [STEPS, 1], use
    assert (use["name"], use["processes"], use["buffered_lines"]) == ("says", 1, 0), use
    assert not [row for row in rows(run.profile) if "buffered" in row], "nothing is late"
    assert_nothing_lost(run.profile)
    assert "layer.1" in run.stdout + run.stderr, "what the program says reaches its reader"


def test_a_terminal_is_heard(recipe, out):
    """The program's stdout is a terminal, as people have it."""
    main, side = pty.openpty()
    shown = []

    def read():
        try:
            while data := os.read(main, 65536):
                shown.append(data)
        except OSError:
            pass

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run([QPROF, "-q", "-o", out, *recipe(), "--", program("says"), "stdout", str(STEPS)],
                          stdin=subprocess.DEVNULL, stdout=side, stderr=subprocess.PIPE, env=CLEAN_ENV,
                          timeout=DEADLINE, check=False)
    os.close(side)
    reader.join()
    os.close(main)
    assert done.returncode == 0, done.stderr
    assert_as_by_hand(parse(out))
    assert b"layer.5" in b"".join(shown)


def test_lines_that_were_buffered_are_late_and_counted(profile, recipe):
    """stdio writes to a pipe once, at the end: all lines have the time of that."""
    run = profile(program("says"), "stdio", STEPS, options=recipe())
    by_log, _ = phases_of(run.profile)
    use = use_of(run.profile)
    assert [item["matched"] for item in use["checkpoints"]] == [STEPS, 1], use
    assert use["buffered_lines"] == STEPS + 1, f"all of {STEPS + 1} lines, got {use}"
    assert {p["duration_secs"] for p in by_log.values()} == {0}, by_log
    assert all(p["buffered"] for p in by_log.values()), by_log
    late = {row["step"] for row in rows(run.profile) if row.get("buffered")}
    assert late == {f"{name} {end}" for name in by_log for end in ("Start", "End")}, late
    assert_nothing_lost(run.profile)


def test_other_descriptors_are_not_heard(profile, recipe):
    run = profile(program("says"), "other", STEPS, options=recipe())
    assert phases_of(run.profile)[0] == {}
    assert [item["matched"] for item in use_of(run.profile)["checkpoints"]] == [0, 0]


def test_texts_without_a_match_are_no_rows(profile, recipe):
    """Without literals each text is a snapshot. It begins no step, and its peak is the next row's."""
    run = profile(program("says"), "stderr", STEPS, options=recipe(re.sub(r"literal: \S+ ?\S*\", ", "", RECIPE)))
    assert_as_by_hand(run.profile)
    assert_nothing_lost(run.profile)
    assert len(rows(run.profile)) == 4 * STEPS, "begin and end of each step, by log and by hand"
    for row in rows(run.profile):
        if row["step"].startswith("by hand") and row["step"].endswith("End"):
            assert row["step_peak_memory_mb"] >= 5, row


def test_several_at_once_do_not_mix(profile, recipe):
    """Started by a shell, which no recipe knows: the programs are recognised as they start."""
    says = program("says")
    run = profile("sh", "-c", f"{says} stderr {STEPS} & {says} stdout {STEPS} & wait", options=recipe())
    by_pid = {}
    for phase in run.profile["phases"]:
        if phase["name"].startswith("layer."):
            by_pid.setdefault(phase["pid"], []).append(phase["name"])
    expected = [f"layer.{i}" for i in range(1, STEPS + 1)]
    assert len(by_pid) == 2 and all(names == expected for names in by_pid.values()), by_pid
    assert use_of(run.profile)["processes"] == 2
    assert_nothing_lost(run.profile)


def test_attached(target, attach, recipe):
    idle = target("stderr", str(STEPS), "wait", path=program("says"))
    with attach(idle.pid, options=recipe()) as attached:
        idle.tell()
        idle.wait()
        profile = attached.finished()
    assert_as_by_hand(profile)
    assert_nothing_lost(profile)


@pytest.mark.parametrize("prefix, late", [((), 0), (("sh", "-c", '"$0" "$@"; true'), 1)], ids=["its own", "its child's"])
def test_what_a_target_takes_is_loaded_by_its_words(target, attach, recipe, prefix, late):
    """Before it is attached if a target is of a tool; what a descendant takes, when it is met."""
    says = target("stderr", "1", "wait", path=program("says"), prefix=prefix)
    with attach(says.process.pid, options=["-v", *recipe()]) as attached:
        says.tell()
        says.wait()
        profile = attached.finished()
    assert use_of(profile)["processes"] == 1 and phases_of(profile)[0], profile["phases"]
    loads = re.findall("not expected to be needed: .*", attached.said)
    assert len(loads) == late, f"expected {late} such loads, got {loads}"


def test_a_file_that_is_open_counts_when_attached(target, attach, recipe, tmp_path):
    """Which of two tools of the same name it is, its open files say."""
    (tmp_path / "m.gguf").touch()
    by_file = RECIPE.replace("{executable: says}", "{executable: says, files: '*.gguf'}")
    one, other = (target("stderr", "2", "wait", path=program("says"),
                         prefix=("sh", "-c", f'exec 9<{file}; exec "$0" "$@"'))
                  for file in (tmp_path / "m.gguf", "/dev/null"))
    with attach(one.pid, other.pid, options=recipe(by_file)) as attached:
        for says in (one, other):
            says.tell()
            assert says.wait() == 0
        profile = attached.finished()
    by_log = [(p["pid"], p["name"]) for p in profile["phases"] if p["name"].startswith("layer.")]
    assert by_log == [(one.pid, "layer.1"), (one.pid, "layer.2")], by_log


def test_the_hook_is_there_only_while_somebody_is_heard(target, attach, recipe):
    other, one = target("wait"), target("stderr", "1", "wait", path=program("says"))
    with attach(one.pid, other.pid, options=recipe()) as attached:
        assert is_hooked(attached.process.pid)
        one.tell()
        one.wait()
        wait_for(lambda: not is_hooked(attached.process.pid), "the end of the hook")
        attached.stop()


def test_a_phase_that_the_program_died_in_is_open(profile, recipe):
    run = profile(program("says"), "killed", STEPS, options=recipe(), status=-9)
    for phases in phases_of(run.profile):
        assert phases[f"layer.{STEPS}"]["closed"] is False, phases
        assert phases[f"layer.{STEPS}"]["peak_memory_mb"] >= 4 + STEPS, phases
    assert not [w for w in run.profile["quality"]["warnings"] if w["what"] == "says"], "it did not come to the end"


def test_a_changed_log_is_a_warning(profile, recipe):
    changed = RECIPE.replace("\\] +", "\\] tensor ")
    run = profile(program("says"), "stderr", STEPS, options=recipe(changed))
    by_log, by_hand = phases_of(run.profile)
    assert by_log == {} and len(by_hand) == STEPS
    assert [item["matched"] for item in use_of(run.profile)["checkpoints"]] == [0, 1]
    why = [w["why"] for w in run.profile["quality"]["warnings"] if w["what"] == "says"]
    assert len(why) == 1 and "tensor" in why[0] and "tests/programs/says.c" in why[0], why


OPTIONAL = "- {log: 'seldom', mark: seldom, optional: yes}\n"


def test_an_optional_item_is_missed_with_the_rest_only(profile, recipe):
    run = profile(program("says"), "stderr", STEPS, options=recipe(RECIPE + OPTIONAL))
    assert [w for w in run.profile["quality"]["warnings"] if w["what"] == "says"] == [], run.profile["quality"]
    run = profile(program("says"), "other", STEPS, options=recipe(RECIPE + OPTIONAL))
    why = [w["why"] for w in run.profile["quality"]["warnings"] if w["what"] == "says"]
    assert len(why) == 1 and "'seldom'" in why[0], why


def test_without_recipes(profile):
    run = profile(program("says"), "stderr", STEPS, options=["--recipe", "none"])
    assert "recipes" not in run.profile and phases_of(run.profile)[0] == {}
    assert set(losses(run.profile)) == set(), losses(run.profile)


@pytest.mark.parametrize("text, says", [
    ("name: a\n", ":1: the recipe 'a' matches nothing"),
    (RECIPE.replace("(\\S+)", "(\\S+"), "the pattern cannot be used"),
    (RECIPE.replace("$3", "$4"), "$4 is not there"),
])
def test_a_bad_recipe_stops_before_anything_runs(recipe, out, tmp_path, text, says):
    ran = tmp_path / "ran"
    run = run_qprof("-o", out, *recipe(text), "--", "touch", ran)
    assert run.returncode == 125 and says in run.stderr, run
    assert len(run.stderr.splitlines()) == 1 and not ran.exists() and not out.exists(), run


def test_a_name_that_is_no_recipe(out):
    run = run_qprof("-o", out, "--recipe", "nothing", "--", "true")
    assert run.returncode == 125 and "'qprof-bpf recipes' lists them" in run.stderr, run


BARS = """
import mmap, sys
def draw(text):
    sys.stderr.write(text)
    sys.stderr.flush()
def bar(name, step, of):
    return f"\\r{name}: {100 * step // of:3d}%|{'█' * step}{' ' * (of - step)}| {step}/{of} [00:41<01:08,  3.4s/it]"
for outer in range(3):
    draw(bar("Quantizing layers", outer, 2))
    if outer == 2:
        break
    for inner in range(4):
        draw("\\n" + bar("gptq", inner, 3) + "\\x1b[A")
        if inner < 3:
            with mmap.mmap(-1, (4 + inner) << 20) as block:
                for at in range(0, len(block), 4096):
                    block[at] = 1
draw("\\n")
"""


def test_progress_bars_of_python(profile, tmp_path):
    """What tqdm writes, two bars within each other, with the recipes that come with qprof-bpf."""
    script = tmp_path / "bars.py"
    script.write_text(BARS)
    run = profile("/usr/bin/python3", script)
    names = [(p["name"], p["depth"]) for p in run.profile["phases"]]
    inner = [(f"gptq {i}/3", 1) for i in range(3)]
    assert names == [("Quantizing layers 0/2", 0), *inner, ("Quantizing layers 1/2", 0), *inner], names
    peaks = {p["name"]: p["peak_memory_mb"] - p["start_memory_mb"] for p in run.profile["phases"] if p["depth"]}
    for i in range(3):
        assert peaks[f"gptq {i}/3"] == pytest.approx(4 + i, abs=0.3), peaks
    assert use_of(run.profile)["undrawn_steps"] == 0
    assert_nothing_lost(run.profile)


def test_a_recipe_that_is_named_is_used_once(profile, tmp_path):
    """Also if it is one of those that come with qprof-bpf."""
    script = tmp_path / "bars.py"
    script.write_text(BARS)
    run = profile("/usr/bin/python3", script, options=["--recipe", "progress-bars"])
    assert use_of(run.profile)["processes"] == 1
    assert len(run.profile["phases"]) == 8, [p["name"] for p in run.profile["phases"]]


def test_a_program_without_bars_has_none(profile):
    run = profile("/usr/bin/python3", "-c", "print('100% done | 3/4 [')")
    assert "recipes" not in run.profile and run.profile["phases"] == [], run.profile["phases"]
    assert_nothing_lost(run.profile)
