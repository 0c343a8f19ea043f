# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of an audit in a file, as node_exporter itself reads it."""

import contextlib
import os
import stat
import time
from pathlib import Path

import pytest

import harness
from exporting import armed_timers, assert_promtool, fetched, free_port, Metrics, serving, unpacked
from harness import MIB, Audit, Target, run_qprof, wait_for


@pytest.fixture
def folder():
    with harness.public_dir() as path:
        yield path


def file_audit(tmp_path, path, interval="100ms"):
    return Audit(tmp_path / "audit.yaml", ("--metrics-file", path, "--metrics-interval", interval))


def test_file_is_whole_at_every_moment(tmp_path, folder):
    path = folder / "qprof.prom"
    old_mask = os.umask(0o077)
    try:
        with file_audit(tmp_path, path) as running:
            wait_for(path.exists, "the file")
            updates, reads = set(), 0
            while len(updates) < 8:
                text = path.read_text()
                reads += 1
                assert text.endswith("\n") and "qprof_phases_total{" in text.splitlines()[-1]
                updates.add(Metrics(text).one("qprof_update_time_seconds"))
            wait_for(lambda: len(armed_timers(running.process.pid)) == 1, "the file's timer")
            report = running.stop()
    finally:
        os.umask(old_mask)
    last = Metrics(path.read_text())
    assert last.one("qprof_audit_running") == 0
    last.assert_sums_up()
    assert "process_cpu_seconds_total" not in last.types, "node_exporter has one of its own"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [p.name for p in folder.iterdir()] == ["qprof.prom"], "nothing is left beside it"
    assert last.one("qprof_lost_events_total", kind="bad_records") == 0
    assert report["qprof"]["processes_alive"] == sum(last.of("qprof_processes"))
    assert_promtool(path.read_text())


def test_file_in_a_directory_that_goes_and_comes(tmp_path, folder):
    path = folder / "in" / "qprof.prom"
    path.parent.mkdir()
    with file_audit(tmp_path, path) as running:
        wait_for(path.exists, "the file")
        path.parent.rename(folder / "away")
        running.stderr.until("cannot write")
        time.sleep(0.5)  # some tries more, of which nothing is said
        (folder / "away").rename(path.parent)
        running.stderr.until("is written again")
        report = running.stop()
    assert running.stderr.seen.count("cannot write") == 1, "once is enough"
    assert any("No such file" in w["why"] for w in report["quality"]["warnings"])


def test_file_on_a_full_disk(tmp_path):
    with harness.tmpfs(tmp_path / "disk", "256k") as disk:
        path = disk / "qprof.prom"
        with file_audit(tmp_path, path, "2s") as running:
            wait_for(path.exists, "the file")
            with pytest.raises(OSError, match="No space"):
                (disk / "filler").write_bytes(bytes(MIB))
            running.stderr.until("No space left on device")
            left = sorted(p.name for p in disk.iterdir())  # the next try is to come
            assert left == ["filler", "qprof.prom"], "what could not be written is gone"
            old = Metrics(path.read_text())  # as it was
            (disk / "filler").unlink()
            running.stderr.until("is written again")
            wait_for(lambda: Metrics(path.read_text()).one("qprof_update_time_seconds") > old.one(
                "qprof_update_time_seconds"), "a newer file")
            running.stop()


def test_file_that_cannot_be_written_is_refused(tmp_path, folder):
    (folder / "link.prom").symlink_to(folder / "victim")
    (folder / "dir.prom").mkdir()
    for path, why in ((folder / "none" / "x.prom", "No such file"), ("/dev/null", "no regular file"),
                      (folder / "link.prom", "symbolic link"), (folder / "dir.prom", "directory"),
                      (f"{folder}/", "directory"), ("/proc/x.prom", ""),
                      (folder / ("a" * 250 + ".prom"), "too long")):
        run = run_qprof("-a", "-o", tmp_path / "a.yaml", "-d", "1ms", "--metrics-file", path)
        assert run.returncode == 125 and run.stderr.count("\n") == 1 and why in run.stderr, run
        assert "--metrics-file" in run.stderr
    assert not (folder / "victim").exists()


def test_file_where_others_can_write(tmp_path, folder):
    """Somebody puts links in the way: none is followed."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path, temporary = folder / "qprof.prom", folder / ".qprof.prom.qprof-new"
    temporary.symlink_to(victim)
    with file_audit(tmp_path, path) as running:
        wait_for(path.exists, "the file")
        for _ in range(5):
            before = path.stat(follow_symlinks=False).st_ino
            with contextlib.suppress(FileExistsError):
                temporary.symlink_to(victim)
            path.unlink()
            path.symlink_to(victim)
            wait_for(lambda: path.exists() and not path.is_symlink(), "the file in the link's place")
            assert path.stat().st_ino != before or path.stat().st_size
        running.stop()
    assert victim.read_text() == "mine"
    assert stat.S_ISREG(path.stat(follow_symlinks=False).st_mode)


def test_name_that_node_exporter_would_not_read_is_said(tmp_path, folder):
    with file_audit(tmp_path, folder / "qprof.txt") as running:
        running.stop()
    assert "end in .prom" in running.stderr.seen


# ---- Those who read it


def test_node_exporter_reads_the_file(tmp_path, folder, own, own_name):
    path = folder / "qprof.prom"
    with Target("touch:9", "wait", path=own) as one:
        one.go()
        with file_audit(tmp_path, path) as running:
            running.stop()
    port, log = free_port(), tmp_path / "node_exporter.log"
    with serving(unpacked("prometheus-node-exporter") / "usr/bin/prometheus-node-exporter",
                 "--collector.disable-defaults", "--collector.textfile",
                 f"--collector.textfile.directory={folder}",
                 f"--web.listen-address=127.0.0.1:{port}", log=log) as process:
        text = fetched(f"http://127.0.0.1:{port}/metrics", process, log)
    assert "node_textfile_scrape_error 0\n" in text, Path(log).read_text()
    assert f'node_textfile_mtime_seconds{{file="{path}"}}' in text
    wanted = Metrics(path.read_text())
    # It writes numbers in its own way, and labels in their order.
    got = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
           if line.startswith("qprof_")}
    assert len(got) == len(wanted)
    line = next(line for line in got if line.startswith("qprof_process_resident_memory_peak_bytes{")
                and f'command="{own_name}"' in line)
    assert got[line] == wanted.one("qprof_process_resident_memory_peak_bytes", command=own_name)
    assert got[line] > 9 * MIB
