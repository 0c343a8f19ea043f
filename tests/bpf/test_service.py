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
                     assert_near, assert_nothing_lost, ending, job_of, last_json, losses, parse, probe_bytes, process_of,
                     program, public_dir, quality, row_of, rows, step_names, wait_for)

SOMEBODY = 65533
HELLO, END, WELCOME, REFUSED, RECORDS, ACCOUNT = range(0x71700001, 0x71700007)
WIRE_CHECKPOINT, WIRE_EXIT = 4, 3


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
    """What talks to the service is no qprof-bpf."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(path)

    def say(self, data, descriptors=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def layout_of(service):
    with Client(service.socket) as client:
        client.say(struct.pack("4I", HELLO, 0, 0, 0))
        return int(re.search(r"speaks version 1\.([0-9a-f]+) ", client.refused())[1], 16)


def hello(service, version=1, options=0):
    return struct.pack("4I", HELLO, version, layout_of(service), options)


@contextlib.contextmanager
def pidfd_of(pid):
    fd = os.pidfd_open(pid)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def started(*command, prefix=()):
    process = subprocess.Popen([*prefix, *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               env=CLEAN_ENV)
    try:
        Lines(process.stdout).next()
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# It asks as nobody for the pid that it is given, and prints what it hears.
ASKS = """
import array, os, socket, struct, sys
path, pid, header = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(path)
s.sendmsg([header], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [os.pidfd_open(pid)]))])
data = s.recv(65536)
print(hex(struct.unpack_from("I", data)[0]), data[4:].split(b"\\0")[0].decode(errors="replace") if len(data) < 1000 else "")
"""


def ask_as(uid, service, pid, prefix=()):
    done = subprocess.run([*prefix, *as_user(uid), sys.executable, "-c", ASKS, service.socket, str(pid), hello(service).hex()],
                          capture_output=True, text=True, timeout=DEADLINE, check=True, env=CLEAN_ENV)
    return done.stdout.strip()


def test_own_process_is_taken(service):
    """So the refusals below are for what they say."""
    with started(program("idle"), prefix=AS_NOBODY) as pid:
        assert ask_as(NOBODY, service, pid).startswith(hex(WELCOME))


@pytest.mark.parametrize("whose", [0, SOMEBODY])
def test_foreign_processes(service, whose):
    with started(program("idle"), prefix=as_user(whose)) as pid:
        said = ask_as(NOBODY, service, pid)
        assert said.startswith(hex(REFUSED)) and f"process {pid} is not yours" in said, said


def test_set_uid_program(service, folder):
    path = own_copy(folder, mode=0o4755, owner=0)
    with started(path, prefix=AS_NOBODY) as pid:
        assert Path(f"/proc/{pid}/status").read_text().count("\t65534\t0\t0\t0") == 1
        assert "is not yours" in ask_as(NOBODY, service, pid)


def test_process_that_its_user_may_not_look_into(service):
    secret = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print('ready', flush=True); time.sleep(1000)"
    with started(PYTHON, "-c", secret, prefix=AS_NOBODY) as pid:
        assert os.stat(f"/proc/{pid}/mem").st_uid == 0
        assert "is not yours" in ask_as(NOBODY, service, pid)


def test_other_group(service):
    mixed = ("setpriv", f"--reuid={NOBODY}", f"--regid={SOMEBODY}", "--clear-groups")
    with started(program("idle"), prefix=mixed) as pid:
        assert "is not yours" in ask_as(NOBODY, service, pid)


def test_process_with_capabilities(service):
    caps = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=+net_raw",
            "--ambient-caps=+net_raw")
    with started(program("idle"), prefix=caps) as pid:
        assert "is not yours" in ask_as(NOBODY, service, pid)


def test_becomes_anothers(service, folder):
    """A set-uid program in the tree: it is counted, and no figure has it."""
    path = own_copy(folder, mode=0o4755, owner=0)
    run = service.run(folder, "sh", "-c", f"{program('checkpoints')} sequence >&2; {path} touch:32 mark:secret exit:0 & "
                      "read line < /dev/null; sleep 0.2; kill -USR1 $! 2>/dev/null; sleep 0.2; kill -KILL $!; true")
    assert quality(run.profile)["withheld_processes"] == 1, quality(run.profile)
    assert losses(run.profile) == {"withheld_processes": 1}
    assert run.profile["peak_memory_mb"] < 32 and "secret" not in step_names(run.profile)
    assert "Model Loading Start" in step_names(run.profile)


def test_command_that_is_anothers(service, folder):
    """Of all that it does, the user sees that it began."""
    run = service.run(folder, own_copy(folder, "checkpoints", mode=0o4755, owner=0), "sequence")
    assert step_names(run.profile, ends=True) == ["Start", "End"]
    assert quality(run.profile)["withheld_processes"] == 1


@pytest.mark.parametrize("version", [0, 2, 2 ** 32 - 1])
def test_other_versions(service, version):
    with Client(service.socket) as client:
        client.say(hello(service, version))
        said = client.refused()
        assert f"this program speaks {version}." in said and "use the same version" in said, said


@pytest.mark.parametrize("size", [0, 1, 8, 15, 17, 4096])
def test_header_of_another_size(service, size):
    header = (hello(service) + bytes(8192))[:size]
    with Client(service.socket) as client, pidfd_of(os.getpid()) as pidfd:
        client.say(header, [pidfd])
        if size:
            assert "header" in (said := client.refused()) or "options" in said, said
        else:
            assert client.hears() == (0, b"")


def test_descriptors(service):
    """None, several, and one that is no pidfd; none of them stays with the service."""
    before = service.connections()
    with open("/dev/null", "rb") as null, pidfd_of(os.getpid()) as pidfd:
        for given in ((), (null.fileno(),), (pidfd, pidfd), (null.fileno(),) * 253):
            with Client(service.socket) as client:
                client.say(hello(service), given)
                assert "pidfd" in client.refused()
        with Client(service.socket) as client:
            client.say(hello(service), (pidfd,))
            assert client.hears()[0] in (WELCOME, REFUSED)
            client.say(b"what", (null.fileno(),) * 20)  # ends it
    wait_for(lambda: service.connections() <= before, "the service to close what it was sent")


def test_any_bytes(service, folder):
    """Whatever comes, as the first packet or after the welcome: the service lives, and serves."""
    chance = random.Random(18)
    good = hello(service)
    before = service.connections()
    for number in range(400):
        with Client(service.socket) as client, started_child() as child, pidfd_of(child) as pidfd:
            if number % 2:
                client.say(good, [pidfd])
                assert client.hears()[0] == WELCOME
            data = bytearray(good if number % 3 else chance.randbytes(chance.randrange(1, 300)))
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.say(bytes(data), [pidfd] * chance.randrange(4))
            if not number % 2:
                assert client.hears()[0] in (REFUSED, 0)
    wait_for(lambda: service.connections() <= before, "the service to let all go")
    run = service.run(folder, program("checkpoints"), "sequence")
    assert step_names(run.profile) == run.truth["steps"]


@contextlib.contextmanager
def started_child():
    """It waits, as a command does that was not let go."""
    there, here = os.pipe()
    child = os.fork()
    if not child:
        os.close(here)
        os.read(there, 1)
        os._exit(0)
    os.close(there)
    try:
        yield child
    finally:
        os.close(here)
        os.waitpid(child, 0)


def test_exited_process(service):
    process = subprocess.Popen(["true"])
    with pidfd_of(process.pid) as pidfd, Client(service.socket) as client:
        process.wait()
        client.say(hello(service), [pidfd])
        assert "no pidfd of a process that runs" in client.refused()


def test_whoever_says_nothing_goes(service):
    with Client(service.socket) as client:
        assert "nothing was said for five seconds" in client.refused()


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
    go = os.pipe()
    child = os.fork()
    if not child:
        os.read(go[0], 1)
        os.execv(program("checkpoints"), ["checkpoints", "rate", "60000"])
    before = memory_of(service.process.pid)
    with Client(service.socket) as client, pidfd_of(child) as pidfd:
        client.say(hello(service), [pidfd])
        assert client.hears()[0] == WELCOME
        os.write(go[1], b"g")
        assert os.waitpid(child, 0)[1] == 0
        run = service.run(folder, own_copy(folder, "checkpoints"), "sequence")
        # The ring may be half full of the flood yet: what finds no room there is counted.
        missing = len(run.truth["steps"]) - len(rows(run.profile))
        assert quality(run.profile)["lost_checkpoints"] >= missing, quality(run.profile)
        assert memory_of(service.process.pid) - before < 64 * MIB
        client.say(struct.pack("I", END))
        packets = []
        while not packets or packets[-1][0] not in (0, ACCOUNT):
            packets.append(client.hears())
    for fd in go:
        os.close(fd)
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
