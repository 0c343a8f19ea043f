# SPDX-License-Identifier: GPL-2.0-only
"""How large each BPF program is to the verifier: exact, for one kernel, compiler and number of CPUs."""

import json
import platform
import re
import subprocess
from pathlib import Path

from harness.report import Result, Table

TITLE = "Verified instructions of each BPF program"
NOTES = ["bpf_prog_info.verified_insns: what the verifier went through, of all paths together; not what one "
         "run executes. It is exact for one kernel, one clang and one number of CPUs."]


def run(env):
    answer = subprocess.run([env.program("instructions")], check=True, capture_output=True, text=True)
    counts = json.loads(answer.stdout)
    result = Result(__name__, TITLE, notes=NOTES, figures=counts, conditions=conditions(env))
    result.tables.append(Table(["program", "instructions"],
                               [[name, f"{count:,}"] for name, count in sorted(counts.items())]))
    return result


def conditions(env):
    """All that the counts depend on, beside the source."""
    return {"kernel": platform.release(), "clang": clang_version(env.build),
            "possible_cpus": Path("/sys/devices/system/cpu/possible").read_text("ascii").strip()}


def clang_version(build):
    """Of the one that built the BPF side."""
    cache = (build / "CMakeCache.txt").read_text("utf-8")
    clang = re.search(r"^QPROF_BPF_CLANG:\w+=(.+)$", cache, re.M).group(1)
    text = subprocess.run([clang, "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"version (\S+)", text).group(1)
