# SPDX-License-Identifier: GPL-2.0-only
"""Items of a log: long and many texts, children, and how a process ends."""

import os
import subprocess

import pytest

from harness import CLEAN_ENV, DEADLINE, MIB, QPROF, assert_nothing_lost, losses, parse, program, rows

RECIPE = """
name: test
match: MATCH
checkpoints:
- {log: '^\\[ *(\\d+)/ *(\\d+)\\] +(\\S+) - ', literal: "] ", phase: $3, children: CHILDREN}
"""
SAYS = program("says")


@pytest.fixture
def recipe(tmp_path):
    """recipe(match, children): the options that make qprof-bpf use only that recipe."""
    def write(match="{executable: python*}", children="no", text=RECIPE):
        path = tmp_path / "recipe.yaml"
        path.write_text(text.replace("MATCH", match).replace("CHILDREN", children))
        return ["--recipe", path, "--recipe", "none"]
    return write


@pytest.fixture
def python(profile, tmp_path):
    """python(script, options): the run of a script by Debian's Python, which buffers as it does for users."""
    def run(script, options, **kwargs):
        path = tmp_path / "script.py"
        path.write_text("import os, subprocess, sys\n" + script)
        return profile("/usr/bin/python3", path, options=options, env={"PYTHONUNBUFFERED": ""}, **kwargs)
    return run


def use_of(profile):
    assert len(profile["recipes"]) == 1, profile["recipes"]
    return profile["recipes"][0]


def names_of(profile):
    return [p["name"] for p in profile["phases"]]


def phase(profile, name):
    found = [p for p in profile["phases"] if p["name"] == name]
    assert len(found) == 1, f"expected one {name}, got {profile['phases']}"
    return found[0]


def end_of(part):
    return part["start_secs"] + part["duration_secs"]


# ---- Literals ----

EIGHT = ["] ", "%|", "ing ", "ed", "[modelop", "awq_", "Q", "\u2501"]


def test_eight_literals_leave_all_other_texts_out(python, recipe):
    """As of a tool and of progress bars together. No text without one is a snapshot, so none is too many."""
    items = "".join(f"- {{log: '^line {i} ', literal: '{literal}', mark: mark {i}}}\n"
                    for i, literal in enumerate(EIGHT))
    run = python(f"""
for i in range(30000):
    os.write(2, b"a plain text, %d\\n" % i)
for i, literal in enumerate({EIGHT!r}):
    os.write(2, f"line {{i}} {{literal}}\\n".encode())
""", recipe(text="name: test\nmatch: {executable: python*}\ncheckpoints:\n" + items))
    use = use_of(run.profile)
    assert [item["matched"] for item in use["checkpoints"]] == [1] * 8, use
    assert use["limited_texts"] == 0, use
    assert_nothing_lost(run.profile)


# ---- Long texts ----

def test_a_pipe_has_blocks_of_lines(python, recipe):
    """What users have: print() to a pipe, which Python writes 8 KiB at a time. All of a block is looked at."""
    run = python("""
for i in range(400):
    print(f"[{i // 20 + 1:2}/20] layer.{i // 20 + 1} - " if i % 20 == 7 else f"nothing of interest, line {i} " * 3)
""", recipe())
    assert names_of(run.profile) == [f"layer.{i}" for i in range(1, 21)]
    use = use_of(run.profile)
    assert (use["checkpoints"][0]["matched"], use["buffered_lines"], use["cut_texts"]) == (20, 20, 0), use
    assert all(p["buffered"] for p in run.profile["phases"]), run.profile["phases"]
    starts = {p["start_secs"] for p in run.profile["phases"]}
    assert 2 <= len(starts) < 20, f"a time for each block, got {starts}"
    assert_nothing_lost(run.profile)


@pytest.mark.parametrize("before", [0, 1, 990, 1012, 1015, 1016, 1017, 1023, 1024, 2040, 8000, 65000])
def test_a_literal_is_found_wherever_it_lies(python, recipe, before):
    """Also across the pieces of 1 KiB in which a text is read."""
    run = python(f"""
os.write(2, b"x" * {before} + b"\\n[ 1/ 2] layer.1 - \\n")
os.write(2, b"nothing")
""", recipe())
    assert names_of(run.profile) == ["layer.1"]
    assert_nothing_lost(run.profile)


def test_the_rest_of_a_very_long_text_is_left_out_and_said(python, recipe):
    run = python("""
def line(i):
    return f"[ {i}/ 9] layer.{i} - \\n".encode()
noise = (b"x" * 99 + b"\\n") * 1000
os.write(2, line(1) + noise[:60000] + line(2) + noise + line(3))
os.write(2, line(4))
os.write(2, line(5) + noise[:-1])
os.write(2, b"of a line " + line(6))
os.write(2, line(7))
""", recipe())
    # What follows the cut within its line has no beginning, so ^ does not match there.
    assert names_of(run.profile) == [f"layer.{i}" for i in (1, 2, 4, 5, 7)]
    assert use_of(run.profile)["cut_texts"] == 2, use_of(run.profile)
    assert_nothing_lost(run.profile)


def test_a_snapshot_without_a_row_gives_its_peak_to_the_next(python, recipe):
    """The match is in the second piece: the snapshot came with the first."""
    run = python("""
import mmap
os.write(2, b"[ 1/ 2] first - \\n")
block = mmap.mmap(-1, 20 << 20)
for at in range(0, len(block), 4096):
    block[at] = 1
block.close()
os.write(2, b"x" * 1500 + b"\\n[ 2/ 2] second - \\n")
""", recipe())
    by_step = {row["step"]: row for row in rows(run.profile)}
    grown = by_step["first End"]["step_peak_memory_mb"] - by_step["first Start"]["cpu_memory_mb"]
    assert grown == pytest.approx(20, abs=0.1), f"the spike of 20 MiB is in the step of the first, got {grown}"
    assert by_step["second Start"]["step_peak_memory_mb"] == pytest.approx(by_step["second Start"]["cpu_memory_mb"], abs=0.01)
    assert phase(run.profile, "first")["peak_memory_mb"] == by_step["first End"]["step_peak_memory_mb"]
    assert_nothing_lost(run.profile)


def test_a_log_without_a_newline_takes_no_more_memory(recipe, out):
    """64 MiB of one line, of which each write is told of."""
    text = RECIPE.replace('literal: "] ", ', "")
    script = "yes 1234567 | head -c 64M | tr -d '\\n' > /dev/null"
    args = [QPROF, "-q", "-o", out, *recipe("{executable: tr}", text=text), "--", "sh", "-c", script]
    started = subprocess.Popen(args, stdin=subprocess.DEVNULL, env=CLEAN_ENV)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    profile = parse(out)
    assert started.returncode == 0
    assert use_of(profile)["processes"] == 1 and names_of(profile) == []
    assert usage.ru_maxrss < 128 * 1024, f"expected some 30 MiB, whatever the log has; got {usage.ru_maxrss} KiB"
    assert set(losses(profile)) <= {"limited_texts"}, losses(profile)


# ---- Many texts ----

def test_a_flood_pushes_nobody_out(python, recipe, tmp_path):
    """A process that writes matching texts as fast as it can: what is left out of it is said, and of no other."""
    run = python(f"""
import signal
says = subprocess.Popen(["{SAYS}", "stdout", "20", "wait"], stdout=subprocess.PIPE)
says.stdout.readline()
with open("{tmp_path}/flood", "wb") as file:
    flood = subprocess.Popen(["{SAYS}", "flood", "300000"], stderr=file)
    while not os.fstat(file.fileno()).st_size:
        pass
    says.send_signal(signal.SIGUSR1)
    assert (flood.wait(), says.wait()) == (0, 0)
""", recipe("{executable: [python*, says]}"))
    by_pid = {}
    for part in run.profile["phases"]:
        by_pid.setdefault(part["pid"], []).append(part["name"])
    assert len(by_pid) == 2, {pid: len(names) for pid, names in by_pid.items()}
    flood, says = sorted(by_pid.values(), key=len, reverse=True)
    assert says == [name for i in range(1, 21) for name in (f"layer.{i}", f"by hand {i}")], says
    lost = losses(run.profile)
    assert set(lost) == {"limited_texts"}, lost
    use = use_of(run.profile)
    assert use["limited_texts"] == lost["limited_texts"], (use, lost)
    assert len(flood) + lost["limited_texts"] == 300000, (len(flood), lost)
    assert (tmp_path / "flood").stat().st_size == 300000 * len("[ 1/ 1] flood - \n"), "the program itself loses nothing"


# ---- Children ----

PARENT = f"""
os.write(2, b"[ 1/ 1] parent - \\n")
child = os.fork()
if not child:
    os.write(2, b"[ 1/ 2] forked - \\n")
    os._exit(0)
os.waitpid(child, 0)
subprocess.run(["sh", "-c", "{SAYS} stderr 2; exit 0"], check=True)
"""


@pytest.mark.parametrize("children, expected", [
    ("no", ["parent"]),
    ("yes", ["parent", "forked", "layer.1", "layer.2"]),
])
def test_children(python, recipe, children, expected):
    """Whatever the process starts, also by another program, speaks for itself."""
    run = python(PARENT, recipe(children=children))
    phases = [p for p in run.profile["phases"] if not p["name"].startswith("by hand")]
    assert [p["name"] for p in phases] == expected
    pid_of = {p["cmdline"] or p["comm"]: p["pid"] for p in run.profile["processes"]}
    says = pid_of[f"{SAYS} stderr 2"]
    for part in phases:
        assert part.get("closed", True), part
        if part["name"].startswith("layer"):
            assert part["pid"] == says, (part, pid_of)
    assert len({p["pid"] for p in phases}) == (3 if children == "yes" else 1), phases
    assert use_of(run.profile)["processes"] == 1, "children were not recognised"
    assert_nothing_lost(run.profile)


def test_a_child_that_is_a_tool_of_its_own_has_its_own_recipe(python, recipe, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("name: own\nmatch: {executable: says}\ncheckpoints: [{log: 'size = (\\d)', mark: own $1}]\n")
    run = python(PARENT, ["--recipe", own, *recipe(children="yes")])
    names = [p["name"] for p in run.profile["phases"] if p["kind"] == "pair" and "by hand" not in p["name"]]
    assert names == ["parent", "forked"], names
    assert "own 2" in [row["step"] for row in rows(run.profile)]
    assert {r["name"]: r["processes"] for r in run.profile["recipes"]} == {"own": 1, "test": 1}


def test_a_pipe_counts_once(profile, recipe):
    """tee(1) writes what the tool writes: it is another process."""
    run = profile("sh", "-c", f"{SAYS} stdout 3 | tee /dev/null", options=recipe("{executable: [sh, says]}"))
    names = [name for name in names_of(run.profile) if name.startswith("layer")]
    assert names == ["layer.1", "layer.2", "layer.3"]
    assert_nothing_lost(run.profile)


def test_one_that_is_started_again_is_heard_from_its_first_line_on(profile, recipe):
    """Its code was searched a moment ago, and nobody was heard any more. It waits all the same."""
    run = profile("sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {SAYS} stderr 1; done",
                  options=recipe("{executable: says}"))
    names = [name for name in names_of(run.profile) if name.startswith("layer")]
    assert names == ["layer.1"] * 8, names
    assert_nothing_lost(run.profile)


# ---- How a process ends ----

def test_an_exec_ends_the_phases(python, recipe):
    """The program is another one from then on, and its marks come later."""
    run = python(f"""
os.write(2, b"[ 1/ 1] before - \\n")
os.execv("{SAYS}", ["{SAYS}", "other", "2"])
""", recipe())
    before, after = phase(run.profile, "before"), phase(run.profile, "by hand 1")
    assert before.get("closed", True), before
    assert end_of(before) <= after["start_secs"], (before, after)
    assert before["pid"] == after["pid"]
    assert_nothing_lost(run.profile)


@pytest.mark.parametrize("how", ["exits", "leaves"])
def test_another_thread_may_end_the_process(profile, recipe, how):
    run = profile("sh", "-c", f"{SAYS} {how} 2; {SAYS} stderr 1; exit 0", options=recipe("{executable: [sh, says]}"))
    by_log = [p for p in run.profile["phases"] if p["name"].startswith("layer")]
    assert [(p["name"], p.get("closed", True)) for p in by_log] == [("layer.1", True), ("layer.2", True), ("layer.1", True)]
    assert end_of(by_log[1]) <= by_log[2]["start_secs"], by_log


def test_a_killed_process_leaves_its_phase_open_until_it_dies(profile, recipe):
    run = profile("sh", "-c", f"{SAYS} killed 2; {SAYS} stderr 1; exit 0", options=recipe("{executable: [sh, says]}"))
    by_log = [p for p in run.profile["phases"] if p["name"].startswith("layer")]
    assert [(p["name"], p.get("closed", True)) for p in by_log] == [("layer.1", True), ("layer.2", False), ("layer.1", True)]
    assert end_of(by_log[1]) <= by_log[2]["start_secs"], f"it goes no further than the process, got {by_log}"
    assert by_log[1]["peak_memory_mb"] >= 6, by_log[1]
    ended = [p for p in run.profile["processes"] if p.get("exit_signal") == 9]
    assert len(ended) == 1 and end_of(by_log[1]) <= ended[0]["end_secs"], (ended, by_log)
    assert "layer.2 End" not in [row["step"] for row in rows(run.profile)], "it never came to its end"
    assert run.profile["quality"]["unclosed_phases"] == 2, "that, and its mark by hand"
    assert_nothing_lost(run.profile)
