# SPDX-License-Identifier: GPL-2.0-only
"""Files in audits: whoever reads and writes models, and however many at once."""

import json
import os
import subprocess

import pytest

from harness import AS_NOBODY, MIB, NOBODY, PYTHON, Audit, job_of, losses, public_dir, quality

# A pid and mount namespace of its own, as another user.
CONTAINER = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *AS_NOBODY)
RULES = "rules:\n- {name: ours, executable: 'python*', arguments: '*job-*'}\n"
# Says {"ready": PID}, and goes on when it is told: the audit knows it by then.
HEAD = f"""
import json, mmap, os, sys
MIB, R, W = {MIB}, os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC
os.chdir(os.path.dirname(sys.argv[0]))
print(json.dumps({{"ready": int(os.readlink("/proc/self"))}}), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def work():
    """A directory that anybody may use, with m.gguf of 1 MiB."""
    with public_dir() as directory:
        (directory / "m.gguf").write_bytes(b"x" * MIB)
        yield directory


class Job:
    """A script of a job, which the audit knows."""

    def __init__(self, running, path, prefix=(), arguments=()):
        self.process = subprocess.Popen([*prefix, PYTHON, path, *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        json.loads(self.process.stdout.readline())
        self.pid = self.process.pid
        if "unshare" in prefix:  # it is the child of unshare
            children = f"/proc/{self.pid}/task/{self.pid}/children"
            with open(children, encoding="ascii") as f:
                self.pid = int(f.read())
        said = f"process {self.pid}: recipe model files"
        if said not in running.stderr.seen:
            running.stderr.until(said)

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.close()

    def wait(self):
        assert self.process.wait(100) == 0
        self.process.stdout.close()


@pytest.fixture
def audit(work, tmp_path):
    """audit(): all processes whose script is called job-*.py are jobs, and have the recipe of model files."""
    def start():
        rules = tmp_path / "rules.yaml"
        rules.write_text(RULES)
        return Audit(tmp_path / "audit.yaml", ("-v", "--rules", rules, "--rules", "none", "--recipe", "model-files"))
    return start


@pytest.fixture
def script(work):
    """script(text): a program that is a job."""
    def write(text, name="a"):
        path = work / f"job-{name}.py"
        path.write_text(HEAD + text)
        return path
    return write


def phases_of(report, pid):
    return [(p["name"], p.get("io_read_mb"), p.get("io_write_mb"), p.get("closed", True))
            for p in job_of(report, pid)["phases"]]


CONVERT = """
name = f"q{os.getuid()}.gguf"
source, out = os.open("m.gguf", R), os.open(name, W)
for _ in range(4):
    os.write(out, os.read(source, MIB // 4))
os.close(out)
os.close(source)
"""


def test_jobs_of_several_users_at_once(audit, script, work):
    """One of them in a container: each has its own files, with what it read and wrote of them."""
    path = script(CONVERT)
    os.chmod(work, 0o777)
    with audit() as running:
        jobs = [Job(running, path), Job(running, path, prefix=CONTAINER)]
        for job in jobs:
            job.go()
        for job in jobs:
            job.wait()
        report = running.stop()
    for job, uid in zip(jobs, (0, NOBODY)):
        found = job_of(report, job.pid)
        assert found["uid"] == uid, found
        assert phases_of(report, job.pid) == [("read m.gguf", 1, 1, True), (f"write q{uid}.gguf", 0.75, 1, True)]
    assert "unwatched_files" not in losses(report), losses(report)


MANY = """
for i in range(10000):
    with open(f"{i % 7}.txt" if i % 1000 else f"{i}.gguf", "wb", buffering=0) as f:
        f.write(b"x")
"""


def test_a_process_that_opens_ten_thousand_files(audit, script):
    """Ten of them are models: these have phases."""
    with audit() as running:
        job = Job(running, script(MANY))
        job.go()
        job.wait()
        report = running.stop()
    assert [name for name, *_ in phases_of(report, job.pid)] == [f"write {i}.gguf" for i in range(0, 10000, 1000)]
    assert "unwatched_files" not in losses(report), losses(report)


MODELS = """
for i in range(10000):
    with open(f"{i}.gguf", "wb", buffering=0) as f:
        f.write(b"x")
"""


def test_a_process_that_opens_ten_thousand_models(audit, script):
    """It has 100 phases a second; the rest is counted, all of it."""
    with audit() as running:
        job = Job(running, script(MODELS))
        job.go()
        job.wait()
        report = running.stop()
    found = job_of(report, job.pid)
    rows = quality(report)
    told = len(found["phases"]) + rows["dropped_phases"]
    assert told >= 100 and told + rows["unwatched_files"] == 10000, (told, rows)


READER = "read go <&3; read line <m.gguf; :"


def test_a_thousand_processes_with_files(audit, script, work):
    """They read one file at a time, all together; each is a process of its own to the recipe."""
    (work / "m.gguf").write_bytes(b"x\n")
    path = script("import subprocess\n"
                  "run = ['sh', '-c', 'exec 3<&0; for i in $(seq 1000); do sh -c \"$0\" m.gguf & done; wait; :',\n"
                  f"       {READER!r}]\n"
                  "reads, tells = os.pipe()\n"
                  "done = subprocess.Popen(run, stdin=reads)\n"
                  "os.close(reads)\n"
                  "open('go').close()\n"
                  "os.close(tells)\n"
                  "sys.exit(done.wait())\n")
    os.mkfifo(work / "go")
    with audit() as running:
        job = Job(running, path)
        job.go()
        while running.stderr.seen.count(": recipe model files\n") < 1001:
            running.stderr.next()
        with open(work / "go", "wb"):  # the script closes the pipe that all of them read
            pass
        job.wait()
        report = running.stop()
    found = job_of(report, job.pid)
    counts = quality(report)
    told = [p for p in found["phases"] if p["name"] == "read m.gguf"]
    assert len(told) + counts["dropped_phases"] == 1000, (len(told), counts)
    assert len({p["pid"] for p in told}) == len(told) >= 990, "each is a process's own"
    assert counts["unwatched_files"] == 0, counts
