# SPDX-License-Identifier: GPL-2.0-only
"""CPU time in the kernel: charged to the function that called it, and told of it."""

import re

import yaml

from reports import PROFILE, report


def with_kernel(tmp_path, path=""):
    """Half of what each call has used was in the kernel, or in a function of a file that is called so."""
    profile = yaml.safe_load(PROFILE.read_text())
    stacks = profile["stacks"]
    functions, calls = stacks["functions"]["rows"], stacks["calls"]["rows"]
    functions.append(["[kernel]", path])
    rows = []
    for phase, call, ns, samples in stacks["ran"]["rows"]:
        calls.append([call, len(functions) - 1, None])
        rows += [[phase, call, ns - ns // 2, samples], [phase, len(calls) - 1, ns // 2, samples]]
    stacks["ran"]["rows"] = rows
    new = tmp_path / "kernel.yaml"
    new.write_text(yaml.safe_dump(profile, sort_keys=False))
    return new


def cpu_time_by(profile):
    text = report("--width", "120", profile=profile).decode()
    return text.split("CPU TIME BY\n")[1].split("\n\n")[0]


def test_charged_as_before(tmp_path):
    """The list of functions and of lines is the same, but for what it says of the kernel."""
    before, after = cpu_time_by(PROFILE), cpu_time_by(with_kernel(tmp_path))
    assert "kernel" not in before
    told = re.findall(r", [0-9.]+ (?:us|ms|s) of it in the kernel$", after, re.M)
    summed = re.findall(r"^    [0-9.]+ (?:us|ms|s) of it in the kernel\n", after, re.M)
    assert told and summed, after
    for words in told + summed:
        after = after.replace(words, "", 1)
    assert after == before


def test_only_of_the_kernel(tmp_path):
    """A function of a file, whatever it is called, is a function."""
    assert "of it in the kernel" not in cpu_time_by(with_kernel(tmp_path, "/opt/demo/quantize"))


def test_in_stacks(tmp_path):
    lines = report("-f", "folded-cpu", profile=with_kernel(tmp_path)).decode().splitlines()
    assert any(line.rsplit(" ", 1)[0].endswith(";[kernel]") for line in lines), lines
    total = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    assert total == sum(int(line.rsplit(" ", 1)[1]) for line in report("-f", "folded-cpu").decode().splitlines())
