# SPDX-License-Identifier: GPL-2.0-only
"""What the tests on the real kernel share: running qprof-bpf, its targets, comparing with truth.

Nothing here sleeps in hope. Whoever waits, waits for a line, an exit or a condition, with a
deadline that only a failure reaches.
"""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import yaml

BUILD = Path(os.environ.get("QPROF_BUILD", Path(__file__).resolve().parents[2] / "build")).resolve()
QPROF = BUILD / "qprof-bpf"
PROGRAMS = BUILD / "tests" / "programs"

# For programs in Python: QPROF_PYTHON names another one than Debian's.
PYTHON = os.environ.get("QPROF_PYTHON", "/usr/bin/python3")
QPROF_PACKAGE = {"PYTHONPATH": str(Path(__file__).resolve().parents[2] / "user" / "sdk" / "python"),
                 "QPROF_LIBRARY": str(BUILD / "libqprof.so.0"), "PYTHONDONTWRITEBYTECODE": "1"}

KIB = 1024
MIB = 1024 * KIB
PAGE = os.sysconf("SC_PAGE_SIZE")

# Failures end here; nothing that works takes a fraction of it, not under emulation either.
DEADLINE = float(os.environ.get("QPROF_TEST_DEADLINE", "120"))

# What a sum of two numbers of two decimals can be off by.
ROUNDING_MB = 0.0101

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")

# A tests/check under sudo must not make the targets run as the invoking user.
CLEAN_ENV = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def program(name):
    return str(PROGRAMS / name)


def undisturbed():
    """What a command is run with so that no other program takes the CPU from it, where that may be."""
    fifo = ["chrt", "--fifo", "1"]
    return fifo if subprocess.run([*fifo, "true"], capture_output=True, check=False).returncode == 0 else []


parsed = []  # the profiles of the test that runs, for what is said if it fails


def parse(path):
    """The profile at path, whole or cut off. None where the file is empty or not there."""
    try:
        profile = yaml.load(Path(path).read_bytes(), Loader=Loader)
    except FileNotFoundError:
        return None
    if profile and "memory_usage" in profile:
        parsed.append(profile)
        assert_valid(profile)
    return profile


SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs/profile.schema.json").read_text())


def some_of(items, most=200):
    """At most that many of a list: the ends, and others evenly between."""
    if not items or len(items) <= most:
        return items
    return [items[i * (len(items) - 1) // (most - 1)] for i in range(most)]


def assert_valid(profile):
    """The profile is as docs/profile.schema.json says. Of long lists not every item is looked at."""
    short = {key: some_of(value) if isinstance(value, list) else value
             for key, value in profile.items()}
    for key in ("timeline", "process_timeline", "usage_timeline"):
        if isinstance(short.get(key), dict):
            short[key] = {**short[key], "rows": some_of(short[key].get("rows"))}
    errors = [f"{list(e.absolute_path)}: {e.message[:200]}"
              for e in jsonschema.Draft202012Validator(SCHEMA).iter_errors(short)]
    assert not errors, f"not as docs/profile.schema.json says: {errors[:5]}"


def last_json(text):
    """The last line of text that is JSON: what a program says of itself. None without one."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return None


def wait_for(condition, what, seconds=DEADLINE):
    """The first true answer of condition(), asked every few milliseconds."""
    end = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.005)


class Lines:
    """Lines from a pipe, with a deadline. Reads the descriptor: nothing is kept elsewhere."""

    def __init__(self, pipe):
        self.fd = pipe.fileno()
        self.rest = b""
        self.seen = ""

    def next(self, seconds=DEADLINE):
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"no line within {seconds} s; so far: {self.seen!r} {self.rest!r}"
            more = os.read(self.fd, 65536)
            assert more, f"ended without the line; so far: {self.seen!r} {self.rest!r}"
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        text = line.decode(errors="replace")
        self.seen += text + "\n"
        return text

    def until(self, wanted, seconds=DEADLINE):
        end = time.monotonic() + seconds
        while True:
            line = self.next(max(0.001, end - time.monotonic()))
            if wanted in line:
                return line


@dataclass
class Run:
    """A run of qprof-bpf that is over."""

    args: list
    returncode: int
    stdout: str
    stderr: str
    path: Path
    profile: dict = None
    truth: dict = None
    stolen_secs: float = 0

    def __str__(self):
        return (f"{' '.join(map(str, self.args))}: exit status {self.returncode}\n"
                f"stdout: {self.stdout[-2000:]}\nstderr: {self.stderr[-2000:]}")


def stolen_secs():
    """What hypervisors have taken of this machine's CPUs since it was started: no thread's account has it."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def assert_all_time(run, whole, expected, said, slack=0.02):
    """What threads did, in seconds, is all the time that they had, but for what was stolen."""
    slack = max(slack, 0.02 * expected)
    assert expected - slack - run.stolen_secs <= whole <= expected + slack, (whole, expected, run.stolen_secs, said)


def run_qprof(*args, env=None, through=(), qprof=None, **kwargs):
    """Runs qprof-bpf as it is told, without a judgement; through: a command that runs it; qprof: not QPROF, but that."""
    args = [*through, str(qprof or QPROF), *map(str, args)]
    stolen = stolen_secs()
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE,
                          env={**CLEAN_ENV, **(env or {})}, check=False, **kwargs)
    return Run(args, done.returncode, done.stdout.decode(errors="replace"),
               done.stderr.decode(errors="replace"), None, stolen_secs=stolen_secs() - stolen)


def profile_command(path, *command, options=(), status=0, env=None, **kwargs):
    """Profiles a command from its start to its end. The profile must be there and whole."""
    run = run_qprof("-q", "-o", path, *options, "--", *command, env=env, **kwargs)
    run.path = Path(path)
    assert run.returncode == status, f"expected exit status {status}; {run}"
    run.profile = parse(path)
    assert run.profile, f"no profile; {run}"
    run.truth = last_json(run.stdout)
    names = step_names(run.profile, ends=True)
    whole = names[:1] == ["Start"] and names[-1:] == ["End"]
    assert whole, f"steps {names[:3]}...{names[-3:]}; {run}"
    return run


class Target:
    """A program to attach to that does its next action when told to: see tests/programs/idle.c."""

    def __init__(self, *actions, path=None, prefix=(), env=None):
        self.process = subprocess.Popen([*prefix, path or program("idle"), *actions],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        env={**CLEAN_ENV, **(env or {})})
        self.lines = Lines(self.process.stdout)
        self.pid = json.loads(self.lines.next())["ready"]

    def tell(self):
        os.kill(self.pid, signal.SIGUSR1)

    def go(self):
        """Has it do its next action. What it says when it is done."""
        self.tell()
        return json.loads(self.lines.next())

    def wait(self):
        return self.process.wait(DEADLINE)

    def running(self):
        return self.process.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Attached:
    """qprof-bpf on running processes. Entered, it has said that it is attached."""

    SAYS = "attached to"

    def __init__(self, path, *pids, options=()):
        self.path = Path(path)
        self.args = [str(QPROF), "-p", ",".join(map(str, pids)), "-o", str(path),
                     *map(str, options)]
        self.process = None
        self.stderr = None
        self.said = ""  # on stderr, once it is finished

    def __enter__(self):
        self.start()
        self.stderr.until(self.SAYS)
        return self

    def start(self):
        self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, env=CLEAN_ENV,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.stderr = Lines(self.process.stderr)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def finished(self, status=0):
        """Waits for its own end. The profile."""
        _, rest = self.process.communicate(timeout=DEADLINE)
        said = self.said = self.stderr.seen + rest.decode(errors="replace")
        code = self.process.returncode
        assert code == status, f"expected exit status {status}, got {code}: {said}"
        profile = parse(self.path)
        assert profile, f"no profile: {said}"
        return profile

    def stop(self, by=signal.SIGINT, status=0):
        self.process.send_signal(by)
        return self.finished(status)

    def wait_for_step(self, name):
        """Until a step of that name is in the file. The profile so far."""
        def there():
            profile = parse(self.path)
            if profile and name in [row["step"] for row in profile.get("memory_usage") or []]:
                return profile
            return None
        return wait_for(there, f"the step {name!r} in {self.path}")


class Audit(Attached):
    """qprof-bpf -a. Entered, every process is in."""

    SAYS = "auditing"

    def __init__(self, path, options=()):
        super().__init__(path)
        self.args = [str(QPROF), "-a", "-o", str(path), *map(str, options)]


def job_of(report, pid):
    """The job whose root has that pid."""
    found = [job for job in report["jobs"] if job["pid"] == pid]
    roots = [(job["pid"], job["command"]) for job in report["jobs"]]
    assert len(found) == 1, f"expected one job of {pid}, got {len(found)} among {roots}"
    return found[0]


class Load:
    """tests/programs/busy.c. Entered, its idle processes are there; go() sets off the rest."""

    def __init__(self, truth, idle=0, forks=0, checkpoints=0, workers=1, seconds=1, prefix=()):
        self.path = Path(truth)
        arguments = map(str, (idle, forks, checkpoints, workers, seconds, truth))
        self.process = subprocess.Popen([*prefix, program("busy"), *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=CLEAN_ENV)
        self.lines = Lines(self.process.stdout)

    def __enter__(self):
        self.lines.until("ready")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def finished(self, seconds=DEADLINE):
        """What it did, in all; then truth() has it by process."""
        self.done = json.loads(self.lines.until("{", seconds))
        assert self.process.wait(seconds) == 0
        return self.done

    def truth(self, kind):
        """The numbers of each process of that kind: idle, child, worker."""
        words = (line.split() for line in self.path.read_text().splitlines())
        return [tuple(map(int, rest)) for first, *rest in words if first == kind]


def reconcile(report, load):
    """Every process of the load is in the report, as it was. What is not, as text."""
    by_pid = {}
    for process in report["processes"]:
        by_pid.setdefault(process["pid"], []).append(process)
    wrong = []

    def take(pid, what, fits):
        found = by_pid.get(pid, [])
        for process in found:
            if fits(process):
                found.remove(process)
                return
        wrong.append(f"{what}: not among {found}")

    for pid, status, written in load.truth("child"):
        take(pid, f"child {pid}, exit status {status}, {written} bytes written",
             lambda p, s=status, w=written: ending(p) == s and p["end_secs"] is not None
             and abs(p["io_write_mb"] - w / MIB) <= ROUNDING_MB / 2)
    for pid, pages in load.truth("idle"):
        take(pid, f"idle {pid} of {pages} pages",
             lambda p, n=pages: p["comm"] == "busy-idle" and p["anon_memory_mb"] >= 0
             and p["peak_memory_mb"] * MIB >= n * 4 * KIB - ROUNDING_MB * MIB)
    for pid, checkpoints in load.truth("worker"):
        job = job_of(report, pid)
        if job["checkpoints"] != checkpoints + 2:  # and Start, and End
            wrong.append(f"worker {pid}: {checkpoints} checkpoints, got {job['checkpoints']} - 2")
    return wrong


def rows(profile, ends=False):
    """The rows of memory_usage; those of Start and End only if asked for."""
    found = profile["memory_usage"]
    return found if ends else found[1:-1]


def step_names(profile, ends=False):
    return [row["step"] for row in rows(profile, ends)]


def row_of(profile, step):
    found = [row for row in profile["memory_usage"] if row["step"] == step]
    assert len(found) == 1, f"expected one step {step!r}, got {len(found)} in {step_names(profile)}"
    return found[0]


def metrics_of(profile):
    """All metrics of a run by name, as its steps report them."""
    found = {}
    for row in profile["memory_usage"]:
        found.update(row.get("metrics") or {})
    return found


def quality(profile):
    """The counts of `quality`, by their names."""
    return {key: n for key, n in profile["quality"].items() if isinstance(n, int)}


def wakeups(pid):
    """How often the main thread has given up its CPU of its own will, and so was woken up; also of a zombie."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1])


def assert_rests(audit, meanwhile=lambda: None):
    """While nothing happens, nothing wakes it. What the machine's other programs do does, so the quietest of some. The
    last one's report."""
    for _ in range(5):
        with audit() as running:
            before = wakeups(running.process.pid)
            meanwhile()
            time.sleep(2)  # a rate needs time
            woken = wakeups(running.process.pid) - before
            report = running.stop()
        others = sum(1 for process in report["processes"] if process["start_secs"] or process["end_secs"])
        # At a fork, an exec, an exit, and as each changes what it has mapped.
        most = 8 * others + 2 * len(report["jobs"]) + 5
        if woken <= most:
            return report
    raise AssertionError(f"{woken} wake-ups, and {others} processes came or went")


@contextlib.contextmanager
def busy_machine(loops):
    """So many programs compute meanwhile."""
    with contextlib.ExitStack() as stack:
        for _ in range(loops):
            process = stack.enter_context(subprocess.Popen(["sh", "-c", "while :; do :; done"]))
            stack.callback(process.kill)
        yield


def repeated_if_hasty(run):
    """run(), once more if the machine was so busy that a program did not wait for its new code to be searched. That is
    counted, and not what the test is about."""
    for _ in range(5):
        done = run()
        if "quality" not in (done.profile or ()) or not quality(done.profile)["hasty_starts"]:
            break
    return done


# Counts that do not mean that data is missing: what was approximated, or done by a name's owner. And
# hasty_starts, which a machine that is busy or emulated brings about: tests of what is found at a start
# see for themselves whether it is there.
NO_LOSS = {"summed_memory", "lost_timeline_points", "lost_updates", "unstable_reads", "unread_threads",
           "stale_usage", "thinned_points", "cut_names", "invalid_utf8_names", "unmatched_ends",
           "unclosed_phases", "hasty_starts", "estimated_gpu_arrays", "unended_requests"}


def losses(profile):
    """What was lost: {} is what a good run has."""
    return {key: n for key, n in quality(profile).items() if n and key not in NO_LOSS}


def assert_nothing_lost(profile):
    assert losses(profile) == {}, f"expected no loss, got {losses(profile)}"


def pending(pid):
    """Signals that were sent and not taken."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"^ShdPnd:\s*(\w+)", status.read(), re.M).group(1), 16)


def state_of(pid):
    """As ps(1) has it: S sleeps, T is stopped."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def meminfo(field):
    """A number of /proc/meminfo."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise AssertionError(f"no {field} in /proc/meminfo")


def keeps_memory_at_exit(profile):
    """Whether the row End still has the memory of the last process: from Linux 6.16 on."""
    return profile["memory_usage"][-1]["cpu_memory_mb"] > 0


def keeps_faults_back(profile):
    """Whether threads count up to 64 page faults for themselves: kernels before 6.2."""
    return "mm_rss_stat" in profile["qprof"]["backends"]["rss"]


def holds_starts(profile):
    """Whether a program that no dynamic linker makes wait is held at its start: from 6.18 on."""
    return "starts held" in profile["qprof"]["backends"]["checkpoints"]


def assert_near(what, got_mb, expected_bytes, tolerance_bytes):
    """A number of the profile, in MiB, against the truth in bytes."""
    off = got_mb * MIB - expected_bytes
    assert abs(off) <= tolerance_bytes + ROUNDING_MB / 2 * MIB, (
        f"{what}: expected {expected_bytes / MIB:.3f} MiB within {tolerance_bytes / KIB:.0f} KiB, "
        f"got {got_mb:.2f} MiB, which is {off / KIB:+.0f} KiB off")


def assert_exact(what, got_mb, expected_bytes):
    """The difference of two numbers of the profile against the truth: equal but for decimals."""
    off = got_mb - expected_bytes / MIB
    assert abs(off) <= ROUNDING_MB, (
        f"{what}: expected {expected_bytes / MIB:.3f} MiB, got {got_mb:.2f} MiB ({off:+.3f})")


def error_pages(got_mb, expected_bytes):
    """By how many pages a number of the profile is off; its two decimals are ±1.3."""
    return f"{(got_mb * MIB - expected_bytes) / PAGE:+.1f}"


def between(profile, first, second, key):
    """By how much a total grew from one step to another."""
    return row_of(profile, second)[key] - row_of(profile, first)[key]


def process_of(profile, pid):
    """All entries of that pid in `processes`, in order."""
    return [process for process in profile["processes"] if process["pid"] == pid]


def ending(process):
    """How a process of the profile ended: its exit status, or minus the signal. None: it runs."""
    if "exit_signal" in process:
        return -process["exit_signal"]
    return process.get("exit_code")


@contextlib.contextmanager
def public_dir(owner=0):
    """A directory that anyone can reach, which pytest's own ones are not."""
    path = Path(tempfile.mkdtemp(prefix="qprof-public-"))
    try:
        path.chmod(0o755)
        os.chown(path, owner, owner)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def tmpfs(path, size):
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "qprof-test", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def is_on_disk(path):
    """Whether what is written to path goes to storage: not so on tmpfs, say."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True,
                          check=True).stdout.strip()
    return kind not in ("tmpfs", "ramfs", "overlayfs", "v9fs", "nfs")


def fdinfo_texts(pid):
    """What the kernel says of each descriptor of a process, as {path of its fdinfo: text}."""
    found = {}
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            found[path] = path.read_text(errors="replace")
    return found


def fdinfos(pid):
    """The same as {path: its fields}."""
    return {path: dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
            for path, text in fdinfo_texts(pid).items()}


def is_hooked(pid):
    """Whether a program of qprof-bpf is on the system calls of the machine."""
    return any(fields.get("tp_name", fields.get("tracepoint")) == "sys_enter"
               for fields in fdinfos(pid).values())


@dataclass
class Probe:
    provider: str
    name: str
    address: int


def probes_of(path):
    """The probes of a file as readelf tells them, each with its address in the file."""
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True,
                          check=True).stdout
    found = re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: (0x[0-9a-f]+)", text)
    return [Probe(provider, name, int(address, 16)) for provider, name, address in found]


def probe_bytes(pid, path):
    """The first byte of each probe of path, as it is in the memory of a process now."""
    path = os.path.realpath(path)
    starts = [int(line.split("-")[0], 16)
              for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if line.endswith(path)]
    assert starts, f"{path} is not mapped in {pid}"
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        found = []
        for probe in probes_of(path):
            memory.seek(min(starts) + probe.address)
            found.append(memory.read(1)[0])
    return found


# What a nop of sys/sdt.h is when nobody listens.
NOP = 0x90
