# SPDX-License-Identifier: GPL-2.0-only
"""qprof-bpf -a takes processes for jobs by rules: none of these has a checkpoint."""

import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

import harness
from harness import (AS_NOBODY, CLEAN_ENV, DEADLINE, MIB, NOBODY, PYTHON, Audit, Lines, Target,
                     ending, job_of, process_of, program, public_dir, run_qprof, step_names)

ROOT = Path(__file__).resolve().parents[2]
TORCH = ROOT / "tests" / "programs" / "torch_quantize.py"

KNOWN = "llama.cpp quantize"  # the recipe that knows llama-quantize

# Holds files open, or mapped and closed again, and at each SIGUSR1 takes 64 MiB more.
HOLDER = """
import ctypes, json, os, signal, subprocess, sys
mmap = ctypes.CDLL(None).mmap  # Python's own keeps a descriptor
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
mmap.restype = ctypes.c_void_p
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
how, *paths = sys.argv[1:]
held = []
for path in paths:
    fd = os.open(os.fsencode(path), os.O_RDWR | os.O_NONBLOCK)
    if how == "mapped":
        mmap(None, 4096, 1, 2, fd, 0)
        os.close(fd)
if how == "parent":
    held.append(subprocess.Popen(["sleep", "1000"]))
print(json.dumps({"ready": os.getpid()}), flush=True)
while True:
    signal.sigwait([signal.SIGUSR1])
    held.append(b"x" * (64 << 20))
    print(json.dumps({"done": "grown"}), flush=True)
"""


@contextmanager
def holder(how, *paths):
    with Target("-c", HOLDER, how, *map(os.fsdecode, paths), path=PYTHON) as one:
        try:
            yield one
        finally:
            subprocess.run(["pkill", "-KILL", "-P", str(one.pid)], check=False)


@pytest.fixture
def audit(tmp_path):
    """with audit(*options) as running: every process is in. It says which it takes for a job."""
    def start(*options):
        return Audit(tmp_path / "audit.yaml", ("-v", *options))
    return start


@pytest.fixture
def rules(tmp_path):
    """rules(text): the options for these rules, and for no others."""
    def write(text):
        path = tmp_path / "rules.yaml"
        path.write_text(text)
        return "--rules", "none", "--rules", path
    return write


def wait_for_job(running, pid):
    """Until it is taken for one. Memory that grows wakes it up ten times a second at most, so the last
    of it may wait for something else that happens."""
    subprocess.run(["true"], check=True)
    said = f"process {pid} is a job"
    if said not in running.stderr.seen:
        running.stderr.until(said)


def jobs_of(report, pid):
    return [job for job in report["jobs"] if job["pid"] == pid]


def recognised(report, pid, rule, steps=()):
    """The job that the rule made of pid, which has no checkpoint but these of its files."""
    job = job_of(report, pid)
    assert job["rule"] == rule, f"expected the rule {rule!r}, got {job['rule']!r}"
    assert step_names(job, ends=True) == ["Start", *steps, "End"]
    assert not [w for w in report["quality"]["warnings"] if "could not become jobs" in w["why"]]
    return job


@contextmanager
def program_called(name, source=None):
    """A program under that name, where anyone can run it."""
    with public_dir() as directory:
        path = directory / name
        shutil.copy(source or program("idle"), path)
        path.chmod(0o755)
        yield str(path)


def test_known_program_is_a_job(audit):
    with program_called("llama-quantize") as path, audit() as running:
        with Target("touch:24", "exit:3", path=path, prefix=AS_NOBODY) as one:
            wait_for_job(running, one.pid)
            one.go()
            one.tell()
            assert one.wait() == 3
            report = running.stop()
    job = recognised(report, one.pid, KNOWN)
    assert job["evidence"] in (f"runs {path}", "runs llama-quantize")
    assert job["uid"] == NOBODY
    assert job["processes"] == 1 and job["processes_alive"] == 0
    assert 24 <= job["peak_memory_mb"] < 48
    [process] = process_of(report, one.pid)
    assert process["job"] == job["id"]
    # It became a job before it had done anything.
    assert job["memory_usage"][0]["cpu_memory_mb"] < 24, job["memory_usage"][0]
    assert job["end_secs"] == pytest.approx(process["end_secs"], abs=0.1)


def test_the_table_at_the_end_names_rule_and_evidence(audit):
    with program_called("llama-quantize") as path, audit() as running:
        with Target("wait", path=path) as one:
            wait_for_job(running, one.pid)
            running.process.send_signal(2)
            running.stderr.until(f"  {one.pid} llama-quantize wait")
            line = running.stderr.next()
    assert line.strip().startswith(f"{KNOWN}: runs "), line


def test_rules_of_the_user(audit, rules, target):
    options = rules("rules:\n- {name: ours, executable: idle, arguments: 'touch:*'}\n")
    with audit(*options) as running:
        other, one = target("read:/dev/null", "wait"), target("touch:8", "wait")
        wait_for_job(running, one.pid)
        one.go()
        report = running.stop()
    job = recognised(report, one.pid, "ours")
    assert job["evidence"] == "runs idle; argument touch:8"
    assert job["end_secs"] is None
    assert jobs_of(report, other.pid) == []


def test_rules_of_the_user_come_first(audit, rules):
    more = rules("rules:\n- {name: not one, job: no, executable: llama-quantize, "
                 "arguments: 'touch:8'}\n- {name: mine, executable: llama-quantize, "
                 "arguments: 'touch:9'}\n")[2:]
    with program_called("llama-quantize") as path, audit(*more) as running:
        with Target("touch:7", "wait", path=path) as known, \
                Target("touch:8", "wait", path=path) as none, \
                Target("touch:9", "wait", path=path) as mine:
            wait_for_job(running, mine.pid)
            report = running.stop()
    recognised(report, known.pid, KNOWN)
    recognised(report, mine.pid, "mine")
    assert jobs_of(report, none.pid) == []


def test_without_rules_there_are_no_jobs(audit):
    with program_called("llama-quantize") as path, audit("--rules", "none") as running:
        with Target("touch:64", "wait", path=path) as one:
            one.go()
            subprocess.run(["true"], check=True)
            report = running.stop()
    assert process_of(report, one.pid)
    assert jobs_of(report, one.pid) == []


FILES = "rules:\n- {name: has a model, executable: 'python*', files: ['*.safetensors', '*.gguf']}\n"


@pytest.mark.parametrize("how", ["open", "mapped"])
def test_files_open_and_mapped(audit, rules, tmp_path, how):
    model, other = tmp_path / "model.safetensors", tmp_path / "model.txt"
    for path in (model, other):
        path.write_bytes(bytes(4096))
    with audit(*rules(FILES)) as running, holder(how, other) as none, holder(how, model) as one:
        none.go()
        one.go()
        wait_for_job(running, one.pid)
        report = running.stop()
    job = recognised(report, one.pid, "has a model")
    runs, found = job["evidence"].split("; ")
    assert runs.startswith("runs python3")
    assert found == f"{'has open' if how == 'open' else 'maps'} {model}"
    assert jobs_of(report, none.pid) == []


def test_deleted_file_is_known(audit, rules, tmp_path):
    model = tmp_path / "model.gguf"
    model.write_bytes(bytes(4096))
    with audit(*rules(FILES)) as running, holder("open", model) as one:
        model.unlink()
        one.go()
        wait_for_job(running, one.pid)
        report = running.stop()
    assert recognised(report, one.pid, "has a model")["evidence"].endswith(f"has open {model}")


def test_process_that_was_there_before(audit, rules, tmp_path):
    model = tmp_path / "model.gguf"
    model.write_bytes(bytes(4096))
    with holder("parent", model) as one:
        one.go()
        with audit(*rules(FILES)) as running:
            wait_for_job(running, one.pid)
            one.go()
            report = running.stop()
    job = recognised(report, one.pid, "has a model")
    [process] = process_of(report, one.pid)
    assert "attached" in process["flags"]
    # Its child, which was there too, is of the job.
    assert job["processes"] == 2
    assert job["peak_memory_mb"] > 128


def test_program_that_was_there_before(audit):
    """Known by its name, however small it is."""
    with program_called("llama-quantize") as path, Target("wait", path=path) as one:
        with audit() as running:
            wait_for_job(running, one.pid)
            report = running.stop()
    recognised(report, one.pid, KNOWN)


def test_ordinary_programs_are_no_jobs(audit):
    commands = [
        [PYTHON, "-c", "import json, ctypes, hashlib, sqlite3; b'x' * (96 << 20)"],
        ["bash", "-c", "true llama-quantize m.gguf q.gguf; true"],
        ["grep", "-c", "llama-quantize", "/proc/self/maps"],
        [PYTHON, "-c", "pass", "quantize_model.py", "model.safetensors"],
    ]
    with audit() as running:
        ran = []
        for command in commands:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            process.wait()
            ran.append(process.pid)
        report = running.stop()
    for pid, command in zip(ran, commands):
        assert process_of(report, pid), f"{command} is not in the report"
        assert jobs_of(report, pid) == [], f"{command} is no job"


def test_root_is_the_first_that_matches(audit, rules):
    options = rules("rules:\n- {name: ours, executable: [idle, bash], arguments: '*mark-of-ours*'}\n")
    idle = program("idle")
    with audit(*options) as running:
        # The shell does not match, and the program that it starts does.
        with Target("-c", f"{idle} read:mark-of-ours wait & wait", path="sh") as inner:
            wait_for_job(running, inner.pid)
            # Both match: the tree of the shell keeps what it starts.
            with Target("-c", f"{idle} read:mark-of-ours wait & wait", path="bash") as child:
                parent = Path(f"/proc/{child.pid}/stat").read_text().split()[3]
                wait_for_job(running, parent)
                report = running.stop()
                os.kill(int(parent), 9)
        shell = process_of(report, inner.pid)[0]["ppid"]
    job = recognised(report, inner.pid, "ours")
    assert job["processes"] == 1
    assert jobs_of(report, shell) == []
    job = recognised(report, int(parent), "ours")
    assert job["processes"] == 2
    assert process_of(report, child.pid)[0]["job"] == job["id"]
    assert jobs_of(report, child.pid) == []


def test_hostile_names(audit, rules, tmp_path):
    """A pipe under the name of a model, and names that are no text: nothing hangs, all is written."""
    directory = os.fsencode(tmp_path)
    fifo, strange = directory + b"/pipe.gguf", directory + b"/\xff\n\x1b[2J" + b"x" * 200 + b".gguf"
    os.mkfifo(fifo)
    Path(os.fsdecode(strange)).write_bytes(bytes(4096))
    with audit(*rules(FILES)) as running, holder("open", fifo) as one, \
            holder("mapped", strange) as two:
        one.go()
        wait_for_job(running, one.pid)
        two.go()
        wait_for_job(running, two.pid)
        report = running.stop()
    assert recognised(report, one.pid, "has a model")["evidence"].endswith("/pipe.gguf")
    evidence = recognised(report, two.pid, "has a model")["evidence"]
    assert evidence.endswith("x" * 150 + ".gguf"), evidence


def test_programs_that_are_gone_at_once(audit):
    with program_called("llama-quantize", "/bin/true") as path, audit() as running:
        ran = [subprocess.Popen([path, str(i)]) for i in range(60)]
        assert [one.wait() for one in ran] == [0] * 60
        report = running.stop()
    for one in ran:
        [process] = process_of(report, one.pid)
        assert ending(process) == 0
        for job in jobs_of(report, one.pid):
            assert job["rule"] == KNOWN and job["processes"] == 1
    assert report["quality"]["missed_joins"] == 0


@pytest.mark.parametrize("text, says", [
    ("rules:\n- name: a\n  libary: b\n", ":3: 'libary' is no key of a rule"),
    ("rules: [", ":2: did not find"),
])
def test_bad_rules(tmp_path, text, says):
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    run = run_qprof("-a", "-o", tmp_path / "audit.yaml", "--rules", path)
    assert run.returncode == 125, run
    assert f"{path}{says}" in run.stderr and run.stderr.count("\n") == 1, run
    assert not (tmp_path / "audit.yaml").exists()


def test_missing_rules(tmp_path):
    run = run_qprof("-a", "--rules", tmp_path / "none.yaml", cwd=tmp_path)
    assert run.returncode == 125, run
    assert "cannot read the rules" in run.stderr and "No such file" in run.stderr, run


def test_documented_rules(tmp_path):
    page = (ROOT / "docs" / "audit-rules.md").read_text()
    [example] = re.findall(r"^```yaml\n(rules:\n.*?)^```", page, re.M | re.S)
    path = tmp_path / "rules.yaml"
    path.write_text(example)
    run = run_qprof("-a", "-q", "-d", "0.1", "-o", tmp_path / "audit.yaml", "--rules", path)
    assert run.returncode == 0 and run.stderr == "", run
    shipped = yaml.safe_load((ROOT / "user" / "recipes" / "rules.yaml").read_text())["rules"]
    listed = re.findall(r"^\| ([^`|]+) \| ", page, re.M)
    missing = [rule["name"] for rule in shipped if rule["name"] not in listed]
    assert missing == [], f"{missing} are not in the page"


def torch_or_skip():
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip(f"{PYTHON} has no torch: tools/check --full installs python3-torch")


@pytest.mark.full
def test_pytorch_quantization_of_another_user_and_namespace(audit):
    """With no checkpoint, no change and no one's cooperation."""
    torch_or_skip()
    with public_dir() as public:
        script = public / TORCH.name
        shutil.copy(TORCH, script)
        script.chmod(0o644)
        # A mount that nobody else sees; the result is written there.
        inside = ("unshare", "--mount", "--pid", "--fork", "sh", "-c",
                  f'mount -t tmpfs -o mode=1777 none {public} && cp "$0" {public} && exec "$@"',
                  TORCH, *AS_NOBODY, PYTHON)
        with audit() as running:
            process = subprocess.Popen([*inside, script, public / "q.pt"], env=CLEAN_ENV,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            try:
                truth = json.loads(Lines(process.stdout).next())
                assert process.wait(DEADLINE) == 0
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
            report = running.stop()
        assert not (public / "q.pt").exists(), "its mounts are not ours"
    found = [job for job in report["jobs"] if TORCH.name in job["command"]]
    assert len(found) == 1, f"expected one job of {TORCH.name}, got {report['jobs']}"
    [job] = found
    recognised(report, job["pid"], "PyTorch quantization", ("write q.pt Start", "write q.pt End"))
    assert job["uid"] == NOBODY
    assert f"argument {script}" in job["evidence"]
    assert "maps /" in job["evidence"] and "/libtorch" in job["evidence"]
    floats = truth["float_bytes"] / MIB
    assert job["peak_memory_mb"] > floats, f"the model alone has {floats:.0f} MiB"
    # The kernel's own high-water mark lags by some pages, and looks at one process only.
    highest = truth["max_rss_bytes"] / MIB
    assert job["peak_memory_mb"] == pytest.approx(highest, rel=0.03), "its own getrusage"
    assert job["total_io_write_mb"] * MIB >= truth["output_bytes"] * 0.99
    first, *_, last = job["memory_usage"]
    assert 0 < first["cpu_memory_mb"] < floats, "it was recognised before it had made the model"
    assert round(max(row["step_peak_memory_mb"] for row in job["memory_usage"]), 2) == job["peak_memory_mb"]
    assert last["cpu_time_secs"] > 0.1
    assert ending(process_of(report, job["pid"])[0]) == 0
    assert harness.quality(report)["missed_joins"] == 0
