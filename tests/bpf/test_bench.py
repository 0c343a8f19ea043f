# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf bench: every run once whatever happens, and a table that says what the profiles say."""

import csv
import json
import os
import signal
import statistics
import subprocess

import pytest

from harness import CLEAN_ENV, DEADLINE, QPROF, parse, state_of, wait_for

# A step up for each method and bits, in MiB; mse with 8 bits fails.
QUANTIZE = r'''
import mmap, sys
size = {"minmax": 8, "percentile": 16, "mse": 32}[sys.argv[1]] * int(sys.argv[2]) // 4 << 20
m = mmap.mmap(-1, size)
for at in range(0, size, mmap.PAGESIZE):
    m[at] = 1
open("/dev/null", "wb").write(b"x" * 5000000)
'''

MATRIX = ["-L", "method", "minmax,percentile,mse", "-L", "bits", "4,8"]


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "quantize.py"
    path.write_text(QUANTIZE)
    return ["--", "/usr/bin/python3", "-S", "-E", str(path), "{method}", "{bits}"]


def bench(folder, *args, status=0, env=CLEAN_ENV):
    done = subprocess.run([QPROF, "bench", "-o", folder, *args], capture_output=True, text=True,
                          env=env, timeout=DEADLINE, check=False)
    assert done.returncode == status, f"expected {status}; {done}"
    return done


def profiles(folder):
    return sorted(path for path in folder.glob("*.yaml") if path.name[0].isdigit())


def independent(folder):
    """The table, from the profiles by themselves."""
    rows = {}
    for path in profiles(folder):
        profile = parse(path)
        words = profile["qprof"]["command"]
        row = rows.setdefault((words[-2], words[-1]), {"peak": [], "time": [], "written": [], "cpu": []})
        row["peak"].append(profile["peak_memory_mb"])
        row["time"].append(profile["total_quantization_time_seconds"])
        row["written"].append(profile["total_io_write_mb"])
        row["cpu"].append(profile["total_cpu_time_secs"])
    return rows


def assert_table(folder):
    bench(folder, "-q", "--export-csv", folder / "t.csv", "--export-json", folder / "t.json")
    with open(folder / "t.csv", newline="", encoding="utf-8") as file:
        table = {(row["parameter_method"], row["parameter_bits"]): row for row in csv.DictReader(file)}
    in_json = {(row["parameters"]["method"], row["parameters"]["bits"]): row["figures"]
               for row in json.loads((folder / "t.json").read_text())["results"]}
    expected = independent(folder)
    assert table.keys() == expected.keys() == in_json.keys()
    for key, row in expected.items():
        # The key that Quark has, too, is rounded to two decimals.
        for figure, name, error in (("peak", "peak_memory_mb", 0.00501), ("time", "time_secs", 6e-5),
                                    ("written", "io_write_mb", 1e-5), ("cpu", "cpu_time_secs", 1e-5)):
            for what, value in (("", statistics.median(row[figure])), ("_lowest", min(row[figure])),
                                ("_highest", max(row[figure]))):
                got = float(table[key][name + what])
                assert abs(got - value) < error, f"{key} {name}{what}: expected {value}, got {got}"
            values = in_json[key][name]["values"]
            assert values == pytest.approx(row[figure], abs=error), (key, name)
    return table


@pytest.mark.long
def test_killed_and_resumed(tmp_path, script):
    """Killed in its 17th run, with its profiler and command: 30 profiles in the end, each run once."""
    folder = tmp_path / "bench"
    command = [QPROF, "bench", "-o", folder, "-r", "5", *MATRIX, *script]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env=CLEAN_ENV)
    wait_for(lambda: len(profiles(folder)) >= 16 and list(folder.glob(".running-*")),
             "the 17th run begins")
    first.kill()
    first.wait()
    finished = {path: path.stat().st_mtime_ns for path in profiles(folder)}
    assert 16 <= len(finished) < 30, f"expected it to be killed in its midst, has {len(finished)}"
    done = bench(folder, "-r", "5", *MATRIX, *script)
    assert "runs are finished: going on" in done.stderr, done.stderr
    assert len(profiles(folder)) == 30, [path.name for path in profiles(folder)]
    again = {path: path.stat().st_mtime_ns for path in finished}
    assert again == finished, "expected no finished run to be made again"
    assert not list(folder.glob(".running-*")), "expected nothing of the killed run to be left"
    table = assert_table(folder)
    for (method, bits), row in table.items():
        size = {"minmax": 8, "percentile": 16, "mse": 32}[method] * int(bits) // 4
        assert row["runs"] == "5" and row["failed"] == "0", row
        assert size < float(row["peak_memory_mb"]) < size + 16, (method, bits, row)
        assert float(row["io_write_mb"]) >= 5000000 / 2**20, row


def test_finished_is_not_run_again_but_more_repeats_are(tmp_path, script):
    folder = tmp_path / "bench"
    args = ["-L", "method", "minmax", "-L", "bits", "4"]
    bench(folder, "-r", "1", *args, *script)
    (first,) = profiles(folder)
    made = first.stat().st_mtime_ns
    bench(folder, "-r", "1", *args, *script)
    bench(folder, "-r", "2", *args, *script)
    assert len(profiles(folder)) == 2
    assert first.stat().st_mtime_ns == made, "expected the first run to stay"


def test_another_bench_is_refused(tmp_path, script):
    folder = tmp_path / "bench"
    bench(folder, "-r", "1", "-L", "method", "minmax", "-L", "bits", "4", *script)
    done = bench(folder, "-r", "1", "-L", "method", "minmax", "-L", "bits", "8", *script, status=125)
    assert "other parameters" in done.stderr and str(folder) in done.stderr, done.stderr


def test_failed_runs_are_in_the_table(tmp_path):
    folder = tmp_path / "bench"
    args = ["-r", "2", "-L", "status", "0,3", "--", "sh", "-c", "exit {status}"]
    done = bench(folder, *args, status=1)
    assert "2, 2 failed" in done.stdout, done.stdout
    assert "status=3, run 2: Failed with exit status 3" in done.stdout, done.stdout
    done = bench(folder, "-i")
    assert "2, 2 failed" in done.stdout, done.stdout


def test_a_command_that_is_not_there_ends_it(tmp_path):
    done = bench(tmp_path / "bench", "--", "/no/such/command", status=125)
    assert "/no/such/command" in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_stopped_and_resumed(tmp_path, by):
    """The run that is met by ^C does not count, and its command does not live on."""
    folder, pid_file, go = tmp_path / "bench", tmp_path / "pid", tmp_path / "go"
    command = ["-r", "1", "--", "sh", "-c", f"echo $$ >{pid_file}; test -e {go} || exec sleep 1000"]
    process = subprocess.Popen([QPROF, "bench", "-o", folder, *command], stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True, env=CLEAN_ENV,
                               start_new_session=True)
    pid = int(wait_for(lambda: pid_file.exists() and pid_file.read_text().strip(), "it runs"))
    wait_for(lambda: open(f"/proc/{pid}/comm", encoding="utf-8").read() == "sleep\n", "it sleeps")
    if by == signal.SIGINT:
        os.killpg(process.pid, by)  # as the terminal does
    else:
        process.send_signal(by)
    _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, (process.returncode, stderr)
    assert "0 of 1 runs finished" in stderr, stderr
    wait_for(lambda: not os.path.exists(f"/proc/{pid}") or state_of(pid) == "Z", "the command ends")
    assert not profiles(folder)
    go.touch()
    bench(folder, *command)
    assert len(profiles(folder)) == 1


def test_prepare_cold_and_warm_up(tmp_path):
    """--prepare comes before each run, warm-ups too; --cold has the file read from storage again."""
    model, log = tmp_path / "model-a.bin", tmp_path / "log"
    model.write_bytes(os.urandom(4 << 20))
    folder = tmp_path / "bench"
    bench(folder, "-r", "2", "-w", "1", "-L", "model", "a", "--prepare", f"echo {{model}} >>{log}",
          "--cold", str(tmp_path / "model-{model}.bin"), "--run-option=--no-curves", "--",
          "cat", str(tmp_path / "model-{model}.bin"))
    assert log.read_text() == "a\n" * 3
    files = profiles(folder)
    assert len(files) == 2
    for path in files:
        profile = parse(path)
        assert profile["total_io_read_mb"] >= 4, profile["total_io_read_mb"]
        if os.statvfs(tmp_path).f_bsize and not is_in_memory(tmp_path):
            assert profile["total_disk_read_mb"] >= 4, profile["total_disk_read_mb"]
    assert (folder / (files[0].stem + ".log")).stat().st_size == 4 << 20


def is_in_memory(path):
    done = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True)
    return done.stdout.strip() in ("tmpfs", "ramfs")


def test_prepare_that_fails_ends_it(tmp_path):
    done = bench(tmp_path / "bench", "--prepare", "exit 7", "--", "true", status=125)
    assert "exit status 7" in done.stderr, done.stderr


def test_two_at_once_are_refused(tmp_path):
    folder, go = tmp_path / "bench", tmp_path / "go"
    command = ["--", "sh", "-c", f"until test -e {go}; do sleep 0.05; done"]
    with subprocess.Popen([QPROF, "bench", "-q", "-r", "1", "-o", folder, *command],
                          env=CLEAN_ENV) as first:
        wait_for(lambda: list(folder.glob(".running-*")), "the first runs")
        done = bench(folder, "-r", "1", *command, status=125)
        assert "another bench runs" in done.stderr, done.stderr
        go.touch()
        assert first.wait(DEADLINE) == 0


def test_growth_against_a_baseline(tmp_path):
    """5 % more memory is found, none is not: real runs on this machine, whatever else it does."""
    for name, pages in (("old", 8000), ("same", 8000), ("more", 8400)):
        bench(tmp_path / name, "-q", "-r", "4", "--", "/usr/bin/python3", "-S", "-E", "-c",
              "import mmap\n"
              f"m = mmap.mmap(-1, {pages} * 4096)\n"
              f"for i in range({pages}): m[i * 4096] = 1\n")
    limit = ["--baseline", tmp_path / "old", "--max-peak-increase", "2%"]
    done = bench(tmp_path / "same", *limit)
    assert "PASSED" not in done.stdout, done.stdout
    done = bench(tmp_path / "more", *limit, status=1)
    assert "PASSED: --max-peak-increase 2%" in done.stdout, done.stdout
