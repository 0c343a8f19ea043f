# SPDX-License-Identifier: GPL-2.0-only
"""The service: ordinary users profile commands of their own. What they get is what root gets; what else they try is
refused in a sentence, and costs nobody else anything."""

import array
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from harness import (AS_NOBODY, CLEAN_ENV, DEADLINE, KIB, MIB, NOBODY, PYTHON, QPROF, ROUNDING_MB, Attached, Lines, Run,
                     assert_near, assert_nothing_lost, ending, job_of, last_json, losses, parse, probe_bytes, program,
                     public_dir, quality, row_of, rows, step_names, wait_for)

SOMEBODY = 65533
WELCOME, REFUSED, RECORDS, ACCOUNT = range(0x71700003, 0x71700007)
WIRE_CHECKPOINT = 4


def as_user(uid):
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")


class Service(Attached):
    """qprof-bpf -a --serve in a directory of its own. Entered, runs may come."""

    SAYS = "serving runs at"

    def __init__(self, folder, options=()):
        super().__init__(folder / "audit.yaml")
        self.socket = str(folder / "socket")
        self.args = [str(QPROF), "-a", f"--serve={self.socket}", "-o", str(self.path), *map(str, options)]

    def run(self, folder, *command, uid=NOBODY, options=(), status=0, env=None):
        """A run of that user, with its profile, which is the user's own."""
        path = Path(folder) / "qprof.yaml"
        args = [*as_user(uid), str(QPROF), "-q", "--service", self.socket, "-o", str(path), *options, "--",
                *map(str, command)]
        done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE, check=False,
                              env={**CLEAN_ENV, **(env or {})})
        run = Run(args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"),
                  path)
        assert run.returncode == status, f"expected exit status {status}; {run}"
        run.profile = parse(path)
        if run.profile:
            assert path.stat().st_uid == uid
            run.truth = last_json(run.stdout)
        return run

    def connections(self):
        """Its sockets, and what came with messages."""
        names = (os.readlink(link) for link in Path(f"/proc/{self.process.pid}/fd").iterdir() if os.path.lexists(link))
        return sum(name.startswith("socket:") or "pidfd" in name or name == "/dev/null" for name in names)


@pytest.fixture
def folder():
    """nobody's."""
    with public_dir(NOBODY) as path:
        yield path


@pytest.fixture
def service():
    with public_dir() as path, Service(path) as running:
        yield running


def own_copy(folder, name="idle", mode=0o755, owner=NOBODY):
    """A file that nobody has searched yet."""
    path = folder / f"own-{name}"
    shutil.copy(program(name), path)
    os.chown(path, owner, owner)
    path.chmod(mode)
    return path


# ---- What a user gets


def test_marks_of_a_program_that_nobody_has_searched(service, folder):
    """It waits for the search of its code, so that its first mark is there, too."""
    run = service.run(folder, own_copy(folder, "checkpoints"), "sequence")
    assert step_names(run.profile) == run.truth["steps"], run
    assert_nothing_lost(run.profile)
    metrics = {(row["step"], key): value for row in rows(run.profile) for key, value in (row.get("metrics") or {}).items()}
    assert metrics == {(step, key): value for step, key, value in run.truth["metrics"]}


@pytest.mark.parametrize("case,size", [("spike", 64), ("exec", 64), ("shmem", 64), ("threads", 64)])
def test_peaks_to_the_page(service, folder, case, size):
    run = service.run(folder, program("memory"), case, size, 200, folder)
    assert_near(f"peak of {case}", run.profile["peak_memory_mb"], run.truth["peak_bytes"],
                16 * KIB if case != "threads" else 8 * 64 * 4 * KIB)
    assert_near(f"main peak of {case}", run.profile["main_peak_memory_mb"], run.truth["peak_bytes"],
                16 * KIB if case != "threads" else 8 * 64 * 4 * KIB)
    assert_nothing_lost(run.profile)


PROGRAM = """
import os, subprocess, sys
out = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(out, b"x" * 7654321)
os.fsync(out)
subprocess.run([sys.executable, "-c", "import os; os.write(os.open('/dev/null', 1), b'y' * 3456789); os._exit(7)"])
text = os.read(os.open("/proc/self/io", os.O_RDONLY), 4096)
os.write(1, text.replace(b"\\n", b" "))
os._exit(3)
"""


def test_bytes_and_ends(service, folder):
    """Of the tree and of each process, from the first instruction on: nothing of the launcher's."""
    run = service.run(folder, PYTHON, "-c", PROGRAM, folder / "data", status=3)
    account = dict(zip(*[iter(run.stdout.replace(":", "").split())] * 2))
    main = run.profile["processes"][0]
    child = run.profile["processes"][1]
    assert len(run.profile["processes"]) == 2 and child["ppid"] == main["pid"]
    assert (main["exit_code"], child["exit_code"]) == (3, 7)
    written = (int(account["wchar"]) - 3456789 + len(run.stdout)) / MIB  # wait() adds the child's
    assert abs(main["io_write_mb"] - written) < ROUNDING_MB, (main, account)
    assert abs(main["disk_write_mb"] - int(account["write_bytes"]) / MIB) < ROUNDING_MB, (main, account)
    assert abs(child["io_write_mb"] - 3456789 / MIB) < ROUNDING_MB, child
    assert abs(run.profile["total_io_write_mb"] - main["io_write_mb"] - child["io_write_mb"]) < 2 * ROUNDING_MB
    # the launcher's page faults are in neither
    assert main["minor_faults"] + child["minor_faults"] <= run.profile["total_minor_faults"]
    assert run.profile["total_cpu_time_secs"] >= main["cpu_time_secs"] + child["cpu_time_secs"] - 0.02
    assert_nothing_lost(run.profile)


def test_killed_command(service, folder):
    """The profile says so, and the run dies by the same signal."""
    run = service.run(folder, "sh", "-c", "kill -KILL $$", status=-signal.SIGKILL)
    assert ending(run.profile["processes"][0]) == -signal.SIGKILL


def test_command_that_is_not_there(service, folder):
    """Nothing is left of it: the next one is served."""
    run = service.run(folder, "/no/such/command", status=127)
    assert "command not found" in run.stderr, run
    script = folder / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    service.run(folder, script, status=127)
    assert service.run(folder, "true").profile


def keys(item):
    """But for those that are there where two decimals do not name a figure."""
    return {key for key in item if not key.endswith("_bytes")}


def test_same_keys_as_root(service, folder, tmp_path):
    """The file differs from root's own run in figures, and in a note."""
    served = service.run(folder, program("checkpoints"), "memory")
    own = subprocess.run([QPROF, "-q", "--service", "none", "-o", tmp_path / "own.yaml", "--", program("checkpoints"),
                          "memory"], env=CLEAN_ENV, check=True, capture_output=True, timeout=DEADLINE)
    profile = parse(tmp_path / "own.yaml")
    # a checkpoint is a number of pages: these figures may not differ at all
    assert step_names(profile) == step_names(served.profile)
    truth, other = served.truth, last_json(own.stdout.decode())
    for run, said in ((served.profile, truth), (profile, other)):
        for row in said["rows"]:
            assert_near(row["step"], row_of(run, row["step"])["cpu_memory_mb"], row["rss_bytes"], 16 * KIB)
    assert keys(profile) == keys(served.profile)
    for key in ("memory_usage", "phases", "processes"):
        assert keys(profile[key][0]) == keys(served.profile[key][0]), key
    assert set(profile["timeline"]) == set(served.profile["timeline"]) and served.profile["timeline"]["rows"]
    assert set(quality(profile)) == set(quality(served.profile))


def test_usage_while_it_runs(service, folder):
    run = service.run(folder, PYTHON, "-c", "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass")
    assert len(run.profile["usage_timeline"]["rows"]) > 5, run.profile.get("usage_timeline")
    without = service.run(folder, PYTHON, "-c", "sum(range(10 ** 7))", options=("--no-curves",))
    assert not (without.profile.get("usage_timeline") or {}).get("rows")


def test_twenty_at_once(service, folder):
    """Each has its own rows, and those alone."""
    args = [*AS_NOBODY, str(QPROF), "-q", "--service", service.socket]
    runs = [subprocess.Popen([*args, "-o", folder / f"{i}.yaml", "--", PYTHON, "-c",
                              f"import os; os.execv('{program('checkpoints')}', ['checkpoints', 'sequence', '{i}'])"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=CLEAN_ENV) for i in range(20)]
    assert [run.wait(DEADLINE) for run in runs] == [0] * 20
    for i in range(20):
        profile = parse(folder / f"{i}.yaml")
        counts = quality(profile)
        assert [p["cmdline"].split()[-1] for p in profile["processes"]] == [str(i)]
        # Where twenty spin on two CPUs, a search may come too late: then the profile counts it.
        late = counts["hasty_starts"] + counts["unsearched_files"]
        assert len(rows(profile)) == 10 or late, (step_names(profile), counts)
        assert set(losses(profile)) <= {"unsearched_files"}, losses(profile)


def test_end_by_duration(service, folder):
    """The command outlives the run, as after one of root's."""
    run = service.run(folder, PYTHON, "-c", "import time; time.sleep(0.6); print('outlived')",
                      options=("-d", "100ms"))
    assert run.stdout.strip() == "outlived" and step_names(run.profile, ends=True) == ["Start", "End"]


def test_it_is_a_job_of_the_audit(service, folder):
    run = service.run(folder, program("checkpoints"), "sequence")
    job = job_of(service.stop(), run.profile["processes"][0]["pid"])
    assert step_names(job) == run.truth["steps"] and job["user"] == "nobody"


# ---- Which way a run goes


def refusal(folder, *args, env=None):
    done = subprocess.run([*AS_NOBODY, str(QPROF), "-q", "-o", str(folder / "x.yaml"), *args], env={**CLEAN_ENV, **(env or {})},
                          capture_output=True, text=True, timeout=DEADLINE, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 125, done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_without_a_service_both_ways_are_said(folder):
    for args in (("--service", "/no/such/socket", "--", "true"), ("--service", "none", "--", "true")):
        said = refusal(folder, *args)
        assert "sudo" in said and "systemctl enable --now qprof-bpf.socket" in said, said


def test_it_is_used_by_itself(folder):
    """Where it is at its usual place and the user could not do without."""
    with public_dir() as place, Service(place) as running:
        inside = ("unshare", "-m", "--propagation", "private", "sh", "-ec",
                  'mount -t tmpfs -o mode=755 none /run; mkdir /run/qprof-bpf; touch /run/qprof-bpf/socket; '
                  'mount --bind "$1" /run/qprof-bpf/socket; shift; exec "$@"', "sh", running.socket)
        said = subprocess.run([*inside, *AS_NOBODY, str(QPROF), "-q", "-o", str(folder / "x.yaml"), "--", "true"],
                              capture_output=True, text=True, timeout=DEADLINE, check=False, env=CLEAN_ENV)
        assert said.returncode == 0 and parse(folder / "x.yaml"), said
        doctor = subprocess.run([*inside, *AS_NOBODY, str(QPROF), "doctor"], capture_output=True, text=True,
                                timeout=DEADLINE, check=False, env=CLEAN_ENV)
        assert doctor.returncode == 0 and "through the service" in doctor.stdout, doctor
        # root has an engine of its own
        own = subprocess.run([*inside, str(QPROF), "-q", "-o", str(folder / "y.yaml"), "--", "true"], check=True,
                             capture_output=True, timeout=DEADLINE, env=CLEAN_ENV)
        assert own.returncode == 0
        assert not any("the service saw it" in note for note in parse(folder / "y.yaml")["quality"]["notes"])
        assert any("the service saw it" in note for note in parse(folder / "x.yaml")["quality"]["notes"])


@pytest.mark.parametrize("options", [("--stacks",), ("--files",), ("--waits",), ("--usdt", "a:b"), ("--no-follow",),
                                     ("--max-processes", "9"), ("--recipe", "quark"), ("--scope",), ("--cost",)])
def test_what_it_cannot_do_is_refused(service, folder, options):
    assert f"{options[0]} cannot be had through the service" in refusal(
        folder, "--service", service.socket, *options, "--", "true")


# ---- Hostile clients


class Client:
    """What comes to the service is no qprof-bpf: a process that waits connects, and executes that command when it is
    let go."""

    def __init__(self, path, *command):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(DEADLINE)
        self.goes, self.go = os.pipe()
        connects, connected = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            try:
                os.close(self.go)
                self.socket.connect(path)
                os.write(connected, b"c")
                if os.read(self.goes, 1):
                    os.execv(command[0], list(map(str, command)))
            finally:
                os._exit(1)
        os.close(connected)
        os.close(self.goes)
        assert os.read(connects, 1), "cannot connect"
        os.close(connects)

    def say(self, data, descriptors=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it was refused by now
            self.socket.sendmsg([data], control)

    def hears(self):
        """The next packet: its kind, and the rest. (0, b"") at the end."""
        for _ in range(3):
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:  # what it said before comes next
                continue
            return (struct.unpack_from("I", data)[0], data[4:]) if data else (0, b"")
        return 0, b""

    def refused(self):
        kind, rest = self.hears()
        assert kind == REFUSED, (hex(kind), rest[:80])
        assert self.hears() == (0, b""), "it stays after a refusal"
        return rest.rstrip(b"\0").decode()

    def runs(self):
        """The command, to its end."""
        os.write(self.go, b"g")
        status = os.waitpid(self.pid, 0)[1]
        self.pid = 0
        return status

    def rest(self):
        """All packets to the account."""
        self.socket.shutdown(socket.SHUT_WR)
        packets = []
        while not packets or packets[-1][0] not in (0, ACCOUNT):
            packets.append(self.hears())
        return packets

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        os.close(self.go)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


# A child of it, which waits, connects. It prints what that hears.
ASKS = """
import os, signal, socket, struct, sys
path, before = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connects, connected = os.pipe()
child = os.fork() if before != "self" else 0
if not child:
    if before != "self":
        exec(before)
    s.connect(path)
    os.write(connected, b"c")
    if before != "self":
        signal.pause()
os.read(connects, 1)
data = s.recv(65536)
print(hex(struct.unpack_from("I", data)[0]), data[4:].split(b"\\0")[0].decode() if len(data) < 1000 else "")
if child:
    os.kill(child, signal.SIGKILL)
"""


def ask_as(service, *prefix, before=""):
    done = subprocess.run([*prefix, sys.executable, "-c", ASKS, service.socket, before], capture_output=True, text=True,
                          timeout=DEADLINE, check=True, env=CLEAN_ENV)
    return done.stdout.strip()


def test_own_process_is_taken(service):
    """So the refusals below are for what they say."""
    assert ask_as(service, *AS_NOBODY).startswith(hex(WELCOME))


MIXED_USERS = ("setpriv", f"--ruid={SOMEBODY}", f"--euid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
MIXED_GROUPS = ("setpriv", f"--reuid={NOBODY}", f"--rgid={SOMEBODY}", f"--egid={NOBODY}", "--clear-groups")
CAPABLE = (*AS_NOBODY, "--inh-caps=+net_raw", "--ambient-caps=+net_raw")
SECRET = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)"  # PR_SET_DUMPABLE


@pytest.mark.parametrize("prefix,before", [(MIXED_USERS, ""), (MIXED_GROUPS, ""), (CAPABLE, ""), (AS_NOBODY, SECRET)],
                         ids=["users", "groups", "capabilities", "undumpable"])
def test_process_that_its_user_may_not_look_into(service, prefix, before):
    said = ask_as(service, *prefix, before=before)
    assert said.startswith(hex(REFUSED)) and "is not yours" in said, said


@pytest.mark.parametrize("prefix", [(), AS_NOBODY], ids=["root", "nobody"])
def test_process_that_runs_its_program(service, prefix):
    """It would not begin, and wait for ever."""
    said = ask_as(service, *prefix, before="self")
    assert said.startswith(hex(REFUSED)) and "runs a program already" in said, said


def test_command_that_never_began(folder):
    """Its client goes: its job is no job any more, and it may ask again, more often than there are jobs."""
    asks = """
import os, socket, struct, sys
if not os.fork():
    welcomes = tries = 0
    while welcomes < 50 and tries < 5000:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(sys.argv[1])
            welcomes += struct.unpack_from("I", s.recv(65536))[0] == 0x71700003
            tries += 1
    print(welcomes, flush=True)
    os.execv(sys.argv[2], ["checkpoints", "sequence"])
os.wait()
"""
    with public_dir() as place, Service(place, options=("--max-jobs", "8")) as service:
        run = service.run(folder, program("checkpoints"), "sequence")  # from here on its probes are known
        assert step_names(run.profile) == run.truth["steps"]
        done = subprocess.run([*AS_NOBODY, sys.executable, "-c", asks, service.socket, program("checkpoints")],
                              check=True, capture_output=True, text=True, timeout=DEADLINE, env=CLEAN_ENV)
        assert done.stdout.splitlines()[0] == "50", done
        # as nobody serves it, it is a job by its first mark, as others of the audit
        names = [step_names(job) for job in service.stop()["jobs"]]
    assert names == [run.truth["steps"]] * 2, names


WITHHELD = {"set_uid": (0o4755, 0), "set_gid": (0o2755, 0), "unreadable": (0o711, 0)}


@pytest.mark.parametrize("mode,owner", WITHHELD.values(), ids=WITHHELD)
def test_becomes_anothers(service, folder, mode, owner):
    """A program in the tree that its user may not look into: it is counted, and no figure has it, nor its arguments."""
    path = own_copy(folder, mode=mode, owner=owner)
    run = service.run(folder, "sh", "-c", f"{program('checkpoints')} sequence >&2; {path} touch:32 mark:secret exit:0 & "
                      "read line < /dev/null; sleep 0.2; kill -USR1 $! 2>/dev/null; sleep 0.2; kill -KILL $!; true")
    assert quality(run.profile)["withheld_processes"] == 1, quality(run.profile)
    assert losses(run.profile) == {"withheld_processes": 1}
    assert run.profile["peak_memory_mb"] < 32 and "secret" not in step_names(run.profile)
    assert "Model Loading Start" in step_names(run.profile)
    assert not any("touch:32" in process["cmdline"] for process in run.profile["processes"] if path.name in process["comm"])


FORKS_FIRST = """
import json, os, signal, socket, struct, sys, time
path, other, command = sys.argv[1:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
said, says = os.pipe()
goes, go = os.pipe()
command_pid = os.fork()
if not command_pid:
    s.connect(path)
    pid = os.fork()
    if not pid:
        os.dup2(says, 1)
        os.execv(other, [other, "touch:8", "mark:secret"])
    os.write(says, b"\\n%d\\n" % pid)
    os.read(goes, 1)
    os.execv(command, [command, "sequence"])
lines = os.fdopen(said)
ready, other_pid = False, 0
while not (ready and other_pid):
    line = lines.readline().strip()
    ready |= line.startswith("{")
    other_pid = int(line) if line.isdigit() else other_pid
os.write(go, b"g")
os.waitpid(command_pid, 0)
os.kill(other_pid, signal.SIGKILL)
while os.path.exists(f"/proc/{other_pid}"):
    time.sleep(0.01)
s.shutdown(socket.SHUT_WR)
pids = set()
while data := s.recv(65536):
    at = 8
    while struct.unpack_from("I", data)[0] == 0x71700005 and at < len(data):
        _, _, size, _, tgid = struct.unpack_from("=HHIQI", data, at)
        pids.add(tgid)
        at += size + 7 & ~7
print(json.dumps({"command": command_pid, "other": other_pid, "told": sorted(pids)}))
"""


def test_child_from_before_the_command(service, folder):
    """It is in no served job, whoever it has become meanwhile."""
    path = own_copy(folder, mode=0o4755, owner=0)
    done = subprocess.run([*AS_NOBODY, sys.executable, "-c", FORKS_FIRST, service.socket, path, program("checkpoints")],
                          capture_output=True, text=True, timeout=DEADLINE, check=False, env=CLEAN_ENV)
    truth = last_json(done.stdout)
    assert truth, done
    assert truth["command"] in truth["told"], truth
    assert truth["other"] not in truth["told"], truth


def test_command_that_is_anothers(service, folder):
    """Of all that it does, the user sees that it began."""
    run = service.run(folder, own_copy(folder, "checkpoints", mode=0o4755, owner=0), "sequence")
    assert step_names(run.profile, ends=True) == ["Start", "End"]
    assert quality(run.profile)["withheld_processes"] == 1


def test_other_versions(folder):
    """Whatever the rest of its welcome is."""
    with public_dir() as place, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        path = str(place / "socket")
        door.bind(path)
        os.chmod(path, 0o666)
        door.listen()
        run = subprocess.Popen([*AS_NOBODY, str(QPROF), "-q", "--service", path, "-o", folder / "x.yaml", "--", "true"],
                               stderr=subprocess.PIPE, text=True, env=CLEAN_ENV)
        with door.accept()[0] as client:
            client.send(struct.pack("3I52s", WELCOME, 9, 0xabc, b"9.9.9") + bytes(100))
            said = run.communicate(timeout=DEADLINE)[1]
        assert run.returncode == 125
        assert "is qprof-bpf 9.9.9, which speaks version 9.abc" in said and "use the same version" in said, said


def test_whatever_it_says(service, folder):
    """Any bytes, any descriptors, at any time: nobody reads them, and nothing of them stays with the service."""
    chance = random.Random(18)
    before = service.connections()
    with open("/dev/null", "rb") as null:
        for number in range(100):
            with Client(service.socket, program("checkpoints"), "sequence") as client:
                if number % 2:
                    assert client.hears()[0] == WELCOME
                for _ in range(chance.randrange(1, 5)):
                    client.say(chance.randbytes(chance.randrange(300)), [null.fileno()] * chance.choice([0, 1, 2, 253]))
                if number % 10 == 1:
                    assert not client.runs()
                    assert client.rest()[-1][0] == ACCOUNT
    wait_for(lambda: service.connections() <= before, "the service to let all go")
    run = service.run(folder, program("checkpoints"), "sequence")
    assert step_names(run.profile) == run.truth["steps"]


def lingering():
    """A TCP socket that whoever closes it last waits an hour for. And its other end."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        here = socket.create_connection(door.getsockname())
        there = door.accept()[0]
    here.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    here.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            here.send(bytes(1 << 16))
    here.setblocking(True)
    return here, there


def test_descriptors_that_take_long_to_close(service, folder):
    """Others are served meanwhile, and more connections are closed than wait for that."""
    before = service.connections()
    ends = []
    for when in ("before the welcome", "after it", "while it is served"):
        with Client(service.socket, program("checkpoints"), "sequence") as client:
            if when != "before the welcome":
                assert client.hears()[0] == WELCOME
            here, there = lingering()
            ends.append(there)
            client.say(b"x", [here.fileno()])
            here.close()  # the message has the last one
            if when == "while it is served":
                assert not client.runs()
        for _ in range(150):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as refused:
                refused.connect(service.socket)
        run = service.run(folder, program("checkpoints"), "sequence")
        assert step_names(run.profile) == run.truth["steps"]
        assert_nothing_lost(run.profile)
    wait_for(lambda: service.connections() <= before, "the service to let all go")
    for end in ends:
        end.close()


def test_exited_process(service):
    os.kill(service.process.pid, signal.SIGSTOP)
    with Client(service.socket, "/bin/true") as client:
        assert not client.runs()
        os.kill(service.process.pid, signal.SIGCONT)
        assert "the command has ended" in client.refused()


HOLDS = """
import os, socket, struct, sys
kinds = []
for _ in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connects, connected = os.pipe()
    child = os.fork()
    if not child:
        s.connect(sys.argv[1])
        os.write(connected, b"c")
        os.close(connected)
        sys.stdin.read()
        os._exit(0)
    os.read(connects, 1)
    os.close(connects)
    os.close(connected)
    kinds.append((s, struct.unpack_from("I", s.recv(65536))[0]))
print("welcome", sum(kind == 0x71700003 for _, kind in kinds), flush=True)
sys.stdin.read()
"""


def test_places_of_a_user(service, folder):
    """No more than are left for all others."""
    before = service.connections()
    holder = subprocess.Popen([*as_user(SOMEBODY), sys.executable, "-c", HOLDS, service.socket, "100"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=CLEAN_ENV)
    try:
        assert Lines(holder.stdout).until("welcome").split()[-1] == "64"
        run = service.run(folder, program("checkpoints"), "sequence")
        assert step_names(run.profile) == run.truth["steps"]
    finally:
        holder.stdin.close()  # its children wait for that, too
        holder.kill()
        holder.wait()
        holder.stdout.close()
    wait_for(lambda: service.connections() <= before, "the service to let the connections go")


FLOODS = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
held, refused = [], 0
for _ in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    held.append(s)
    if len(held) > 300:
        held.pop(0).close()
print("there", flush=True)
sys.stdin.read()
"""


def test_ten_thousand_connections(service, folder):
    """Others have their places meanwhile, and afterwards nothing is left."""
    before = service.connections()
    flood = subprocess.Popen([*as_user(SOMEBODY), sys.executable, "-c", FLOODS, service.socket, "10000"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=CLEAN_ENV)
    try:
        Lines(flood.stdout).until("there")
        assert service.connections() - before <= 64, "a user has more than half of the places"
        run = service.run(folder, program("checkpoints"), "sequence")
        assert step_names(run.profile) == run.truth["steps"]
    finally:
        flood.kill()
        flood.wait()
        flood.stdin.close()
        flood.stdout.close()
    wait_for(lambda: service.connections() <= before, "the service to let the connections go")


def memory_of(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * KIB


def records(packets):
    """(kind, the record) of what came in packets."""
    for kind, data in packets:
        at = 4
        while kind == RECORDS and at < len(data):
            what, _, size = struct.unpack_from("HHI", data, at)
            yield what, data[at:at + size]
            at += size + 7 & ~7


def test_whoever_does_not_read_loses_its_own(service, folder):
    """Its memory at the service is bounded, its losses are counted, and another run loses nothing."""
    before = memory_of(service.process.pid)
    with Client(service.socket, program("checkpoints"), "rate", "60000") as client:
        assert client.hears()[0] == WELCOME
        assert client.runs() == 0
        run = service.run(folder, own_copy(folder, "checkpoints"), "sequence")
        # The ring may be half full of the flood yet: what finds no room there is counted.
        missing = len(run.truth["steps"]) - len(rows(run.profile))
        assert quality(run.profile)["lost_checkpoints"] >= missing, quality(run.profile)
        assert memory_of(service.process.pid) - before < 64 * MIB
        packets = client.rest()
    assert packets[-1][0] == ACCOUNT
    [lost] = struct.unpack_from("Q", packets[-1][1], 4)
    came = sum(what == WIRE_CHECKPOINT for what, _ in records(packets))
    assert lost > 1000 and came + lost >= 60000, (came, lost)
    assert set(losses(run.profile)) <= {"lost_checkpoints", "missing_checkpoints"}


# ---- The end of either side


@pytest.mark.parametrize("stage", ["launched", "runs"])
def test_kill_9_of_the_run(service, folder, stage):
    """Before its exec the command goes with it, later it goes on; the service serves the next."""
    before = service.connections()
    if stage == "launched":
        os.kill(service.process.pid, signal.SIGSTOP)  # so that it waits for the welcome
    with begun(service, folder, own_copy(folder), "mark:one", "mark:two") as run:
        lines = Lines(run.stdout)
        if stage == "launched":
            [pid] = wait_for(lambda: children_of(run.pid), "the command to be forked")
        else:
            pid = json.loads(lines.next())["ready"]
        run.kill()
        run.wait()
        if stage == "launched":
            os.kill(service.process.pid, signal.SIGCONT)
            wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the child to go")
        wait_for(lambda: service.connections() <= before, "the service to close the connection")
        again = service.run(folder, program("checkpoints"), "sequence")
        assert step_names(again.profile) == again.truth["steps"]
        assert_nothing_lost(again.profile)
        if stage == "runs":
            os.kill(pid, signal.SIGUSR1)
            lines.until("mark:one")  # it runs as before
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def begun(service, folder, *command):
    """A run that goes on, as nobody. At the end it is gone, and its command."""
    run = subprocess.Popen([*AS_NOBODY, str(QPROF), "-q", "--service", service.socket, "-o", folder / "x.yaml", "--",
                            *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=CLEAN_ENV)
    try:
        yield run
    finally:
        for pid in [*(children_of(run.pid) if run.poll() is None else []), run.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        run.wait()
        run.stdout.close()


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_end_of_the_service(folder, by):
    """The command goes on without a probe; the profile has what was known, and says so."""
    path = own_copy(folder)
    with public_dir() as place, Service(place) as service, begun(service, folder, path, "mark:one", "mark:two") as run:
        lines = Lines(run.stdout)
        pid = json.loads(lines.next())["ready"]
        assert 0xcc in probe_bytes(pid, path), "there is no probe to begin with"
        os.kill(pid, signal.SIGUSR1)
        lines.until("mark:one")
        wait_for(lambda: "one" in [row["step"] for row in (parse(folder / "x.yaml") or {}).get("memory_usage") or []],
                 "the mark")
        service.process.send_signal(by)
        service.process.wait(DEADLINE)
        wait_for(lambda: 0xcc not in probe_bytes(pid, path), "the probes to go")
        os.kill(pid, signal.SIGUSR1)
        assert run.wait(DEADLINE) == 0
        profile = parse(folder / "x.yaml")
    assert step_names(profile, ends=True)[:2] == ["Start", "one"]
    [warning] = [w for w in profile["quality"]["warnings"] if "missing" in w["why"]]
    assert warning["what"] == "the service"


def test_abandoned_socket(folder):
    """One that a killed service left is taken over; a service that lives is not pushed out."""
    with public_dir() as place:
        with Service(place) as first:
            second = subprocess.run([QPROF, "-a", f"--serve={first.socket}", "-o", folder / "y.yaml", "-d", "1s"],
                                    env=CLEAN_ENV, capture_output=True, text=True, check=False, timeout=DEADLINE)
            assert second.returncode == 125 and "another service is there already" in second.stderr, second
            first.process.kill()
            first.process.wait()
        with Service(place) as service:
            assert service.run(folder, "true").profile
