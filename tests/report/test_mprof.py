# SPDX-License-Identifier: GPL-2.0-only
"""-f mprof, read by the real mprof of memory_profiler."""

import importlib.util
import os
import subprocess

import pytest
import yaml

from profiles import QUARK
from reports import DEADLINE, ENV, PROFILE, report, run, shown

MPROF = "/usr/lib/python3/dist-packages/mprof.py"

pytestmark = pytest.mark.skipif(not os.path.exists(MPROF),
                                reason="no python3-memory-profiler: tools/setup installs it")

HOSTILE = """\
qprof:
  version: "0"
  command:
  - "a b"
  - "MEM 1 2\\nFUNC x\\u2028y\\x85z"
memory_usage:
- {step: "Start", timestamp: 5.0, relative_time_secs: 0.0, cpu_memory_mb: 1.0}
- {step: "a b\\nMEM 9999 1\\t\\u2029\\u00a0\\u3000 Start", timestamp: 6.0, relative_time_secs: 1.0, cpu_memory_mb: 2.0}
- {step: "a b\\nMEM 9999 1\\t\\u2029\\u00a0\\u3000 End", timestamp: 7.0, relative_time_secs: 2.0, cpu_memory_mb: 1.0}
- {step: " Start", timestamp: 8.0, relative_time_secs: 3.0, cpu_memory_mb: 2.0}
"""


def mprof(*args, cwd):
    done = subprocess.run(["/usr/bin/python3-mprof", *args], cwd=cwd, capture_output=True,
                          timeout=DEADLINE, env={**ENV, "MPLBACKEND": "agg"}, check=False)
    text = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == 0 and "Traceback" not in text, text
    return text


def read_as_mprof_does(path):
    spec = importlib.util.spec_from_file_location("mprof", MPROF)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.read_mprofile_file(str(path))


@pytest.fixture
def dat(tmp_path):
    path = tmp_path / "run.dat"
    path.write_bytes(report("-f", "mprof"))
    return path


def test_peak(dat, tmp_path):
    """mprof peak finds the peak of the tree, and each process's own."""
    profile = yaml.safe_load(PROFILE.read_text())
    lines = mprof("peak", "run.dat", cwd=tmp_path).splitlines()
    assert lines[0].split() == ["run.dat", f"{profile['peak_memory_mb']:.3f}", "MiB"], lines
    children = {int(line.split()[1]): float(line.split()[2]) for line in lines[1:]}
    for process in profile["processes"]:
        # A track's points are where it moved by 256 KiB.
        assert abs(children[process["pid"]] - process["peak_memory_mb"]) < 1, (process, children)


def test_content(dat):
    profile = yaml.safe_load(PROFILE.read_text())
    read = read_as_mprof_does(dat)
    assert len(read["mem_usage"]) == len(profile["timeline"]["rows"])
    assert read["timestamp"] == sorted(read["timestamp"])
    assert abs(read["timestamp"][0] - profile["memory_usage"][0]["timestamp"]) < 0.01
    names = {shown(phase).replace(" ", "_") for phase in profile["phases"]}
    assert set(read["func_timestamp"]) == names
    spike, = read["func_timestamp"]["Spike"]
    phase, = [p for p in profile["phases"] if p["name"] == "Spike"]
    assert abs(spike[1] - spike[0] - phase["duration_secs"]) < 1e-4, (spike, phase)
    assert read["cmd_line"].strip() == "./job.sh"


def test_plot(dat, tmp_path):
    pytest.importorskip("matplotlib")
    mprof("plot", "-o", "out.png", "run.dat", cwd=tmp_path)
    picture = (tmp_path / "out.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 10000, len(picture)


def test_hostile_names(tmp_path):
    """No name can make a line or a field of its own."""
    path = tmp_path / "hostile.dat"
    path.write_bytes(run("report", "-f", "mprof", "-", stdin=HOSTILE.encode())[0])
    read = read_as_mprof_does(path)
    assert max(read["mem_usage"]) == 2.0, read
    assert all(not set(name) & set(" \n\t\u2028\u2029\x85") for name in read["func_timestamp"])
    assert len(path.read_text().splitlines()) == len(path.read_bytes().split(b"\n")) - 1
    assert "2.000 MiB" in mprof("peak", "hostile.dat", cwd=tmp_path)


def test_times_are_those_of_the_rows():
    """Also where the clock had not been set."""
    out = run("report", "-f", "mprof", "-", stdin=QUARK.encode())[0].decode()
    rows = [line.split()[1:] for line in out.splitlines() if line.startswith("MEM ")]
    assert [(float(mib), float(secs)) for mib, secs in rows] == [(100, 1), (500, 2), (200, 3)], out


def test_a_name_is_one_word():
    """Blanks, controls and line ends become _; their neighbours stay."""
    bad = [*range(0x01, 0x21), *range(0x7f, 0xa1), 0x1680, *range(0x2000, 0x2010), *range(0x2028, 0x2030), 0x205f, 0x3000, 0xfeff]
    good = [0x21, 0x7e, 0xa1, 0x167f, 0x1681, 0x1fff, 0x2010, 0x2027, 0x2030, 0x205e, 0x2060, 0x2fff, 0x3001, 0xfefe, 0xff01]
    names = "".join(f'- {{name: "a\\U{code:08x}b", kind: pair, start_secs: 0, duration_secs: 1, start_memory_mb: 1, '
                    "end_memory_mb: 1, peak_memory_mb: 1}\n" for code in bad + good)
    text = ("memory_usage:\n- {step: Start, timestamp: 1, relative_time_secs: 0, cpu_memory_mb: 1}\n"
            "total_quantization_time_seconds: 1\npeak_memory_mb: 1\nphases:\n" + names + "processes: []\n")
    out = run("report", "-f", "mprof", "-", stdin=text.encode())[0].decode()
    words = [line.split(" ")[1] for line in out.split("\n") if line.startswith("FUNC ")]
    assert words == ["a_b"] * len(bad) + [f"a{chr(code)}b" for code in good]
