# SPDX-License-Identifier: GPL-2.0-only
"""Several processes that run the same script: named by what their launcher told them."""

import json
import os
import subprocess

import pytest

from harness import CLEAN_ENV, DEADLINE, MIB, PYTHON, QPROF, QPROF_PACKAGE, parse

# Each rank computes, rank 3 much longer, and waits for all others; all have the same weights mapped.
SCRIPT = r'''
import mmap, os, sys, time
import qprof
rank, world, folder = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1]
weights = os.open(sys.argv[2], os.O_RDWR)
shared = mmap.mmap(weights, 0)
with qprof.scope("Load"):
    for at in range(0, len(shared), mmap.PAGESIZE):
        shared[at]
with qprof.scope("Calibration"):
    end = time.process_time() + (0.6 if rank == 3 else 0.02)
    while time.process_time() < end:
        pass
    open(f"{folder}/{rank}", "w").close()
    while len(os.listdir(folder)) < world:
        time.sleep(0.005)
'''

WORLD = 4


@pytest.fixture
def ranks(tmp_path):
    """The profile of four ranks, and what the report makes of it."""
    (tmp_path / "arrived").mkdir()
    (tmp_path / "script.py").write_text(SCRIPT)
    weights = f"/dev/shm/qprof-ranks-{os.getpid()}"
    launcher = "".join(f"RANK={i} LOCAL_RANK={i} WORLD_SIZE={WORLD} {PYTHON} {tmp_path}/script.py "
                       f"{tmp_path}/arrived {weights} & " for i in range(WORLD)) + "wait"
    try:
        with open(weights, "wb") as file:
            file.write(b"w" * (32 * MIB))
        subprocess.run([QPROF, "-q", "-o", tmp_path / "p.yaml", "--", "sh", "-c", launcher], timeout=DEADLINE,
                       env={**CLEAN_ENV, **QPROF_PACKAGE}, check=True)
    finally:
        os.unlink(weights)
    done = subprocess.run([QPROF, "report", "-f", "json", tmp_path / "p.yaml"], capture_output=True, timeout=DEADLINE,
                          check=True)
    return parse(tmp_path / "p.yaml"), json.loads(done.stdout)["report"]


def test_ranks_are_named_and_lined_up(ranks):
    profile, report = ranks
    named = {process["pid"]: process["rank"] for process in profile["processes"] if "rank" in process}
    assert sorted(named.values()) == list(range(WORLD)), profile["processes"]
    assert all(process["world_size"] == WORLD and process["local_rank"] == process["rank"]
               for process in profile["processes"] if "rank" in process)
    phases = {phase["name"]: phase for phase in report["ranks"]["phases"]}
    assert phases.keys() == {"Load", "Calibration"} and phases["Calibration"]["ranks"] == WORLD, phases
    for name, phase in phases.items():
        own = {named[p["pid"]]: p["duration_secs"] for p in profile["phases"] if p["name"] == name}
        lowest, highest = min(own, key=own.get), max(own, key=own.get)
        got = phase["duration_secs"]
        assert (got["lowest_rank"], got["highest_rank"]) == (lowest, highest), (own, got)
        assert got["highest"] == pytest.approx(own[highest], abs=1e-5), (own, got)
    assert phases["Calibration"]["cpu_time_secs"]["highest_rank"] == 3, phases["Calibration"]
    assert phases["Calibration"]["waited_for_rank"] == 3, phases["Calibration"]


def test_shared_weights_count_once(ranks):
    """Four processes map 32 MiB: RSS has them four times, what is needed at least once."""
    profile, report = ranks
    needs = report["will_it_fit"]
    assert profile["peak_memory_mb"] > WORLD * 32, profile["peak_memory_mb"]
    assert needs["needed_mb"] - needs["needed_at_least_mb"] >= (WORLD - 1) * 32 - 0.5, needs
    assert needs["needed_at_least_mb"] >= 32, needs
