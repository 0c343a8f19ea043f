# SPDX-License-Identifier: GPL-2.0-only
"""Clients of the service that are no qprof-bpf, and processes that are not theirs. What they try is refused in a
sentence, and costs nobody else anything."""

import array
import contextlib
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from harness import (AS_NOBODY, CLEAN_ENV, DEADLINE, KIB, MIB, NOBODY, QPROF, Lines, assert_nothing_lost, last_json, losses,
                     program, public_dir, quality, rows, state_of, step_names, wait_for)
from serving import SOMEBODY, Service, as_user, folder, own_copy, service  # noqa: F401

WELCOME, REFUSED, RECORDS, ACCOUNT = range(0x71700003, 0x71700007)
WIRE_CHECKPOINT = 4

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
    assert names == [run.truth["steps"]] * (service.runs + 1), names


WITHHELD = {"set_uid": (0o4755, 0), "set_gid": (0o2755, 0), "unreadable": (0o711, 0)}


@pytest.mark.parametrize("mode,owner", WITHHELD.values(), ids=WITHHELD)
def test_becomes_anothers(service, folder, mode, owner):
    """A program in the tree that its user may not look into: it is counted, and no figure has it, nor its arguments."""
    path = own_copy(folder, mode=mode, owner=owner)
    run = service.run(folder, "sh", "-c", f"{program('checkpoints')} sequence >&2; mkfifo {folder}/said; "
                      f"{path} touch:32 mark:secret exit:0 > {folder}/said & exec 3< {folder}/said; "
                      "for _ in touch mark; do read line <&3; kill -USR1 $!; done; read line <&3; kill -KILL $!")
    assert quality(run.profile)["withheld_processes"] == 1, quality(run.profile)
    assert losses(run.profile) == {"withheld_processes": 1}
    assert run.profile["peak_memory_mb"] < 32 and "secret" not in step_names(run.profile)
    assert "Model Loading Start" in step_names(run.profile)
    assert not any(process["cmdline"].startswith(str(path)) for process in run.profile["processes"])


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
    """Any bytes, any descriptors, at any time: they are refused, and nothing of them stays with the service."""
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
                    client.refused()
                    assert not client.runs()
    wait_for(lambda: service.connections() <= before, "the service to let all go")
    run = service.run(folder, program("checkpoints"), "sequence")
    assert step_names(run.profile) == run.truth["steps"]


def test_commands_that_never_begin(service, folder):
    """Each is killed before its exec, as it is let go or as the service hears of its end: there is no job of it, and
    its number is not given to two."""
    chance = random.Random(19)
    rounds = 150
    for number in range(rounds):
        with Client(service.socket, program("checkpoints"), "sequence") as client:
            assert client.hears()[0] == WELCOME
            ends = [lambda: client.socket.shutdown(socket.SHUT_WR), lambda: os.kill(client.pid, signal.SIGKILL),
                    client.socket.close]
            for end in chance.sample(ends, chance.randrange(4)):
                with contextlib.suppress(OSError):
                    end()
        if number % 10 == 0:
            with Client(service.socket, program("checkpoints"), "sequence") as client:
                assert client.hears()[0] == WELCOME
                assert not client.runs()
                kinds = [kind for kind, _ in client.rest()]
                assert RECORDS in kinds and kinds[-1] == ACCOUNT, (number, list(map(hex, kinds)))
    run = service.run(folder, program("checkpoints"), "sequence")
    assert step_names(run.profile) == run.truth["steps"]
    audit = service.stop()
    jobs = audit["jobs"]
    assert [job["command"] for job in jobs] == [f"{program('checkpoints')} sequence"] * (rounds // 10 + service.runs), jobs


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


@contextlib.contextmanager
def halted(service):
    """What it is sent meanwhile, it takes afterwards."""
    pid = service.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: state_of(pid) == "T", "the service to stop")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


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
            with halted(service):
                client.say(b"x", [here.fileno()])
                here.close()  # the message has the last one, or we would wait
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
    with contextlib.ExitStack() as stack:
        with halted(service):
            client = stack.enter_context(Client(service.socket, "/bin/true"))
            assert not client.runs()
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


def test_whoever_does_not_go_on_is_closed(service):
    """After a minute: a command that does not begin, a run that does not ask for the account of its job, and one that
    does not take it."""
    before = service.connections()
    with contextlib.ExitStack() as all_three:
        waits, leaves, blocks = (all_three.enter_context(Client(service.socket, program("checkpoints"), *args))
                                 for args in ((), ("sequence",), ("rate", "60000")))
        assert [client.hears()[0] for client in (waits, leaves, blocks)] == [WELCOME] * 3
        assert (leaves.runs(), blocks.runs()) == (0, 0)
        blocks.socket.shutdown(socket.SHUT_WR)
        assert waits.hears() == (0, b"")
        assert {kind for kind, _ in iter(leaves.hears, (0, b""))} == {RECORDS}
        wait_for(lambda: service.connections() <= before, "the service to close the connections")


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
