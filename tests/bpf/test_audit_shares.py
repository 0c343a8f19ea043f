# SPDX-License-Identifier: GPL-2.0-only
"""One user cannot take what all share: what is limited, for whom, and that others have theirs."""

import contextlib
import json
import pwd
import shutil

import harness
from harness import AS_NOBODY, NOBODY, Audit, Target, program, quality, wait_for

JOBS = 8


@contextlib.contextmanager
def program_for_all():
    with harness.public_dir() as folder:
        path = folder / "idle"
        shutil.copy(program("idle"), path)
        path.chmod(0o755)
        yield str(path)


def searched(one, path):
    wait_for(lambda: harness.NOP not in harness.probe_bytes(one.pid, path), "probes")


def test_jobs(tmp_path):
    """A user with many trees gets half of the jobs; one that comes later still gets one."""
    with contextlib.ExitStack() as open_until_end:
        path = open_until_end.enter_context(program_for_all())
        audit = open_until_end.enter_context(
            Audit(tmp_path / "audit.yaml", ("--max-jobs", JOBS)))
        taken = []
        for _ in range(JOBS + 2):
            one = open_until_end.enter_context(
                Target("mark:greedy", "mark:again", "wait", path=path, prefix=AS_NOBODY))
            searched(one, path)
            one.go()
            one.go()
            taken.append(one.pid)
        late = open_until_end.enter_context(Target("mark:late", "wait", path=path))
        searched(late, path)
        late.go()
        report = audit.stop()
    jobs = [job["pid"] for job in report["jobs"]]
    greedy = [pid for pid in taken if pid in jobs]
    assert greedy == taken[:len(greedy)] and 0 < len(greedy) <= JOBS // 2, (
        f"expected at most half of {JOBS} jobs, got {len(greedy)}")
    assert late.pid in jobs, f"expected a job of another user, got {report['jobs']}"
    left_out = 2 * (len(taken) - len(greedy))
    counts = quality(report)
    assert (counts["limited_jobs"], counts["untracked_jobs"]) == (left_out, 0), counts
    name = pwd.getpwuid(NOBODY).pw_name
    [why] = [w["why"] for w in report["quality"]["warnings"] if w["what"] == f"jobs of {name}"]
    assert why.startswith(f"{left_out} checkpoints left out"), why


def test_jobs_that_end_make_room(tmp_path):
    """A share is of what runs at a time, not of what has run."""
    events = tmp_path / "events"
    options = ("--max-jobs", 2, "--events-file", events)

    def ended(pid):
        lines = map(json.loads, filter(None, map(str.strip, events.read_text().splitlines())))
        return any(line["event"] == "job_end" and line["pid"] == pid for line in lines)

    with program_for_all() as path, Audit(tmp_path / "audit.yaml", options) as audit:
        pids = []
        for _ in range(4):
            with Target("mark:one", "exit:0", path=path, prefix=AS_NOBODY) as one:
                searched(one, path)
                one.go()
                one.tell()
                assert one.wait() == 0
                pids.append(one.pid)
            wait_for(lambda: ended(pids[-1]), "the end of the job")
        report = audit.stop()
    assert [job["pid"] for job in report["jobs"]] == pids, report["jobs"]
    assert not quality(report)["limited_jobs"], quality(report)
