# SPDX-License-Identifier: GPL-2.0-only
"""--stacks of code at a place where other code was, or is in another process: it is never called by that one's name."""

import os
import subprocess
from collections import Counter

import pytest

from harness import MIB, assert_nothing_lost, busy_machine, profile_command, program
from test_stacks import one_sample, run_stacks, stacks_of

FIRST = (program("touches_first.so"), "touch_first")
OTHER = (program("touches_other.so"), "touch_other")


def touched(profile):
    """Bytes of the run by innermost function; "" is code that is in no file."""
    stacks, found = profile["stacks"], Counter()
    functions, calls = stacks["functions"]["rows"], stacks["calls"]["rows"]
    for phase, call, kind, count, _ in stacks["touched"]["rows"]:
        if phase is None and call and kind == "anon":
            name, path = functions[calls[call][1]][:2]
            found[name if name or not path else path] += count
    return found


def assert_touched(run, boundaries=1):
    found = touched(run.profile)
    for name, mib in run.truth.items():
        off = 0.02 * mib * MIB + boundaries * one_sample(run.profile) + MIB
        assert found[name] == pytest.approx(mib * MIB, abs=off), (name, run.truth, found)


@pytest.mark.parametrize("how", ["closed", "forked"])
def test_code_that_a_program_makes(tmp_path, how):
    """Where it has had a library; and a child where its parent, with which it has shared all, has one by now."""
    run = run_stacks(tmp_path, "places", how, *FIRST)
    assert_nothing_lost(run.profile)
    assert_touched(run)


def test_children_that_go_on_loading(tmp_path):
    """Another library than their parent at the same place, and then the same one."""
    run = run_stacks(tmp_path, "places", "apart", *FIRST, *OTHER)
    assert_nothing_lost(run.profile)
    assert_touched(run, boundaries=8)


def test_libraries_in_turns(tmp_path):
    """On a machine that is busy, mappings are read when another library is there by now: then samples have no stack."""
    with busy_machine(os.cpu_count()):
        for _ in range(4):  # none may be read in time
            run = profile_command(tmp_path / "q.yaml", program("places"), "turns", *FIRST, *OTHER, options=["--stacks"])
            seen = Counter()
            for phase, names, count in stacks_of(run.profile):
                if phase is None:
                    seen.update({(turn, name): count for turn in ("first", "other") for name in ("touch_first", "touch_other")
                                 if f"turn_{turn}" in names and name in names})
            if seen["other", "touch_other"]:
                break
    assert not seen["first", "touch_other"] and not seen["other", "touch_first"], seen
    assert seen["first", "touch_first"] > seen["other", "touch_other"] > 0, seen


SOURCE = """
#include <sys/mman.h>
#define TOUCHER(name) \
	__attribute__((noipa)) void name(char *at, long size) { while (size) at[size -= 4096] = 1; }
FUNCTIONS
int main(void)
{
	const long size = 32 << 20;
	char *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(at, size, MADV_NOHUGEPAGE);
	CALLED(at, size);
	return 0;
}
"""
PROGRAMS = {"first_called": "first_called first_beside first_beyond", "other_called": "other_before other_beside other_called"}


def test_a_file_that_is_written_over(tmp_path):
    """As cp(1) does: the same file is another program, with other functions at the same addresses."""
    for called, names in PROGRAMS.items():
        functions = "\n".join(f"TOUCHER({name})" for name in names.split())
        source = SOURCE.replace("FUNCTIONS", functions).replace("CALLED", called)
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", tmp_path / called], input=source, text=True, check=True)
    script = "for name; do cp $name program && ./program || exit 1; done"
    for _ in range(4):
        run = profile_command(tmp_path / "q.yaml", "sh", "-c", script, "sh", *PROGRAMS, options=["--stacks"], cwd=tmp_path)
        if not run.profile["stacks"]["lost_samples"]:
            break
    found = touched(run.profile)
    off = 0.02 * 32 * MIB + 2 * one_sample(run.profile)
    # What is unwound when the file has been written over by now has no name.
    assert found["first_called"] + found[str(tmp_path / "program")] == pytest.approx(32 * MIB, abs=off), found
    assert found["other_called"] == pytest.approx(32 * MIB, abs=off), found
