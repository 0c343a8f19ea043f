# SPDX-License-Identifier: GPL-2.0-only
"""What the driver says of GPUs, in a profile: by a library in place of NVIDIA's that says what a file says."""

import shutil
import subprocess
from pathlib import Path

import pytest

from harness import BUILD, CLEAN_ENV, DEADLINE, MIB, PROGRAMS, PYTHON, QPROF_PACKAGE, parse, \
    profile_command, run_qprof, step_names

UUIDS = ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-0fb1a4ae-aaaa-bbbb-cccc-0123456789ab")

# Loads the driver's library; then says what is in use, and marks until the profile tells of it. A mark
# that another follows at once, or whose look took too long, has no figure: so it marks again.
TARGET = """
import ctypes, os, sys, time
import qprof

library, state, profile, uuid, other = sys.argv[1:]

def say(used, own):
    with open(state + ".new", "w") as file:
        file.write(f"gpu {24 << 30} {used} 4096 3b {uuid} NVIDIA Stand-in\\n")
        file.write(f"gpu {24 << 30} {used // 2} 4096 af {other} NVIDIA Stand-in\\n")
        file.write(f"use 0 {os.getpid()} {own}\\nuse 0 1 {7 << 20}\\n")
    os.rename(state + ".new", state)

def told():
    with open(profile) as file:
        return file.read().count("gpu_device_used_mb")

say(100 << 20, 0)
ctypes.CDLL(library)
for number, (used, own) in enumerate([(300, 200), (900, 800), (120, 20)]):
    say(used << 20, own << 20)
    before = told()
    for attempt in range(60):
        qprof.mark(f"mark {number}")
        end = time.monotonic() + 1
        while told() == before and time.monotonic() < end:
            time.sleep(0.002)
        if told() > before:
            break
"""


@pytest.fixture
def standin(tmp_path):
    """run(**environment): a profile of the program above, and the path of the file that says it."""
    library, state, out = tmp_path / "libcuda.so.1", tmp_path / "state", tmp_path / "qprof.yaml"
    shutil.copy(PROGRAMS / "plugin.so", library)

    def run(**environment):
        env = {**QPROF_PACKAGE, "LD_LIBRARY_PATH": str(PROGRAMS / "standin_nvml"),
               "QPROF_STANDIN_NVML": str(state), **environment}
        return profile_command(out, PYTHON, "-c", TARGET, library, state, out, *UUIDS,
                               options=("--as-root",), env=env)
    return run


def test_in_use_by_row_and_device(standin):
    profile = standin(CUDA_VISIBLE_DEVICES="0").profile
    rows = {row["step"]: row["gpu_device_used_mb"] for row in profile["memory_usage"]
            if "gpu_device_used_mb" in row and row["step"].startswith("mark")}
    assert rows == {"mark 0": 300, "mark 1": 900, "mark 2": 120}
    assert "gpu_device_used_mb" not in profile["memory_usage"][0], "it was asked before a library was loaded"
    assert len(profile["gpus"]) == 1, f"one is visible: {profile['gpus']}"
    gpu = profile["gpus"][0]
    looks = gpu.pop("looks")
    assert looks >= 3, f"{looks} looks for three rows that have a figure"
    when = gpu.pop("device_used_peak_secs")
    # A look for "mark 0" that came late may see it first.
    before = [row["relative_time_secs"] for row in profile["memory_usage"] if row["step"] == "mark 0"]
    after = [row["relative_time_secs"] for row in profile["memory_usage"] if row["step"] == "mark 2"]
    assert before[-1] <= when <= after[-1], f"the peak was at {when}: {before}, {after}"
    assert gpu.pop("device_used_peak_phase") in ("mark 0", "mark 1")
    # Depends on whether the program was quicker than the first look.
    assert gpu.pop("device_used_start_mb") in (100, 300)
    assert gpu == {"index": 0, "program_index": 0, "name": "NVIDIA Stand-in", "uuid": UUIDS[0],
                   "pci_id": "0000:3b:00.0", "total_mb": 24576, "device_used_peak_mb": 900,
                   "device_used_end_mb": 120, "tree_used_peak_mb": 800}


# Allocates by the library in place of the driver's, which says that it counts 50 MiB more.
SHARE = """
import ctypes, os, sys, time
import qprof

state, profile, uuid = sys.argv[1:]

def say(own):
    with open(state + ".new", "w") as file:
        file.write(f"gpu {24 << 30} {900 << 20} 4096 3b {uuid} NVIDIA Stand-in\\nuse 0 {os.getpid()} {own}\\n")
    os.rename(state + ".new", state)

def told():
    with open(profile) as file:
        return file.read().count("gpu_device_used_mb")

say(40 << 20)
cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(123 << 20))
say(173 << 20)
before, end = told(), time.monotonic() + 60
while told() < before + 2 and time.monotonic() < end:
    qprof.mark("held")
    time.sleep(0.02)
"""


def test_share_of_the_driver(tmp_path, out, unhurried):
    """What the driver counts for the program beyond what it has allocated."""
    state = tmp_path / "state"
    run = unhurried(PYTHON, "-c", SHARE, state, out, UUIDS[0], options=("--as-root",), env={
        **QPROF_PACKAGE, "LD_LIBRARY_PATH": f"{PROGRAMS}:{PROGRAMS / 'standin_nvml'}", "QPROF_STANDIN_NVML": str(state)})
    assert run.profile["gpu_peak_memory_mb"] == 123, run.profile["gpus"]
    assert run.profile["gpu_driver_share_mb"] == 50, run.profile["gpus"]
    text = " ".join(run_qprof("report", "--width", "200", out).stdout.split())
    assert "peak 123 MiB; the driver itself took 50.0 MiB" in text, text


# Of 1 GiB others have 100 MiB and the driver 50: says so until a look has told. Then 800 MiB for a moment.
SPIKE = SHARE.partition("say(40 << 20)")[0].replace("{24 << 30} {900 << 20}", "{1 << 30} {used}").replace(
    "def say(own)", "def say(used, own)") + """
say(150 << 20, 50 << 20)
cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)

def mark():
    before, end = told(), time.monotonic() + 60
    while told() < before + 2 and time.monotonic() < end:
        qprof.mark("quiet")
        time.sleep(0.02)

mark()
with qprof.scope("Spike"):
    size = int(os.environ["SPIKE_MIB"]) << 20
    assert not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)) and not cuda.cuMemFree_v2(at)
say(1000 << 20, 10 << 20)
mark()
"""


@pytest.mark.parametrize("mib", [800, 60])
def test_how_close_to_the_limit(tmp_path, out, mib):
    """By the run's own calls between two looks. What others fill, while it has nothing there, is not its own."""
    state = tmp_path / "state"
    run = run_qprof("-o", out, "--as-root", "--", PYTHON, "-c", SPIKE, state, out, UUIDS[0], env={
        **QPROF_PACKAGE, "LD_LIBRARY_PATH": f"{PROGRAMS}:{PROGRAMS / 'standin_nvml'}", "QPROF_STANDIN_NVML": str(state),
        "SPIKE_MIB": str(mib)})
    assert run.returncode == 0, run
    closest, said = parse(out)["closest_to_limit"], " ".join(run.stderr.split())
    if mib == 60:
        assert closest["of"] != "GPU 0" and "GPU 0)" not in said, (closest, said)
        return
    assert (closest["of"], closest["left_mb"], closest["limit_mb"], closest.get("phase")) == ("GPU 0", 74, 1024, "Spike"), closest
    assert "warning: 74.0 MiB left of 1.00 GiB (GPU 0), in Spike" in said, said
    assert "closest to its limit in Spike: 74.0 MiB left of 1.00 GiB (GPU 0)" in said, said
    text = " ".join(run_qprof("report", "--width", "200", out).stdout.split())
    assert "Closest to its limit in Spike: 74.0 MiB left of 1.00 GiB (GPU 0)" in text, text


def test_devices_as_the_program_counts(standin):
    profile = standin(CUDA_VISIBLE_DEVICES=f"{UUIDS[1][:12]},0").profile
    assert [(gpu["index"], gpu["program_index"], gpu["device_used_peak_mb"]) for gpu in profile["gpus"]] == \
        [(0, 1, 900), (1, 0, 450)]
    assert max(row.get("gpu_device_used_mb", 0) for row in profile["memory_usage"]) == 1350


def test_a_driver_that_hangs_holds_nobody_up(tmp_path, unhurried):
    library, state = tmp_path / "libcuda.so.1", tmp_path / "state"
    shutil.copy(PROGRAMS / "plugin.so", library)
    state.write_text("hang\n", encoding="ascii")
    program = f"import ctypes, qprof; ctypes.CDLL({str(library)!r}); [qprof.mark(f'{{i}}') for i in range(100)]"
    run = unhurried(PYTHON, "-c", program, env={
        **QPROF_PACKAGE, "LD_LIBRARY_PATH": str(PROGRAMS / "standin_nvml"), "QPROF_STANDIN_NVML": str(state)})
    assert step_names(run.profile) == [str(i) for i in range(100)]
    assert "gpus" not in run.profile
    assert not any("gpu_device_used_mb" in row for row in run.profile["memory_usage"])


def test_without_a_gpu_nobody_asks(tmp_path, out):
    state = tmp_path / "state"
    state.write_text(f"gpu {MIB} 1 0 3b {UUIDS[0]} NVIDIA\n", encoding="ascii")
    run = profile_command(out, PYTHON, "-c", "import qprof; qprof.mark('one')", env={
        **QPROF_PACKAGE, "LD_LIBRARY_PATH": str(PROGRAMS / "standin_nvml"), "QPROF_STANDIN_NVML": str(state)})
    assert "gpus" not in run.profile
    assert not (tmp_path / "state.looks").exists(), "the driver was asked"


def test_a_library_and_no_driver(tmp_path, out):
    library = tmp_path / "libcuda.so.1"
    shutil.copy(PROGRAMS / "plugin.so", library)
    (tmp_path / "state").write_text("fail 9\n", encoding="ascii")
    run = profile_command(out, PYTHON, "-c", f"import ctypes; ctypes.CDLL({str(library)!r})", env={
        "LD_LIBRARY_PATH": str(PROGRAMS / "standin_nvml"), "QPROF_STANDIN_NVML": str(tmp_path / "state")})
    assert "gpus" not in run.profile
    whys = [w["why"] for w in run.profile["quality"]["warnings"] if w["what"] == "what GPUs have in use"]
    assert len(whys) == 1 and "libnvidia-ml.so.1 says: Driver Not Loaded" in whys[0], f"warnings: {whys}"


def test_doctor_says_what_there_is(tmp_path):
    state = tmp_path / "state"
    state.write_text(f"gpu {24 << 30} {1000 << 20} 0 3b {UUIDS[0]} NVIDIA \x1b[1mStand-in\n", encoding="ascii")
    run = run_qprof("doctor", env={"LD_LIBRARY_PATH": str(PROGRAMS / "standin_nvml"), "QPROF_STANDIN_NVML": str(state)})
    line, = (line for line in run.stdout.splitlines() if line.strip().startswith("GPU 0"))
    assert line.endswith(" at 0000:3b:00.0: 1000 MiB of 24.0 GiB in use") and "\x1b" not in line, run
    state.write_text("fail 9\n", encoding="ascii")
    run = run_qprof("doctor", env={"LD_LIBRARY_PATH": str(PROGRAMS / "standin_nvml"), "QPROF_STANDIN_NVML": str(state)})
    assert "NVIDIA's GPUs          no       libnvidia-ml.so.1 says: Driver Not Loaded\n" in run.stdout, run
    assert run.returncode == 0, "a machine without a GPU can profile"


def test_the_script_for_a_real_gpu_says_where_there_is_none(tmp_path):
    """As it will run elsewhere: out of a folder of its own, with the libraries in it."""
    pack = Path(__file__).resolve().parents[1] / "gpu" / "pack"
    subprocess.run([pack, BUILD, tmp_path / "gpu"], check=True, capture_output=True, timeout=DEADLINE)
    done = subprocess.run([tmp_path / "gpu" / "run", "driver"], check=False, capture_output=True, text=True,
                          timeout=DEADLINE, env=CLEAN_ENV)
    assert "BPF programs           yes" in done.stdout, done
    assert "| driver | exit status 3: no libcuda.so.1 |" in done.stdout, done
    assert done.returncode == 0, done
