# SPDX-License-Identifier: GPL-2.0-only
"""The service, for processes that run already: qprof-bpf -p of their user gets what root's own gets, and nobody gets
another's."""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import (AS_NOBODY, CLEAN_ENV, DEADLINE, KIB, MIB, NOBODY, PYTHON, QPROF, ROUNDING_MB, Attached, Lines, Target,
                     assert_near, assert_nothing_lost, losses, parse, probe_bytes, program, public_dir, quality, row_of,
                     rows, step_names, wait_for)
from serving import SOMEBODY, Service, as_user, folder, own_copy, service  # noqa: F401

REFUSED = 0x71700004


class Served(Attached):
    """By the service, as a user."""

    def __init__(self, service, folder, *pids, uid=NOBODY, options=(), name="running"):
        super().__init__(folder / f"{name}.yaml", *pids, options=("--service", service.socket, *options))
        self.args = [*as_user(uid), *self.args]


def target(*actions, path=None, uid=NOBODY):
    return Target(*actions, path=path, prefix=as_user(uid))


def own(folder, *pids):
    """Root's, with an engine of its own."""
    return Attached(folder / "own.yaml", *pids, options=("--service", "none"))


def refusal(service, folder, *pids, uid=NOBODY):
    run = subprocess.run([*as_user(uid), str(QPROF), "-q", "--service", service.socket, "-o", folder / "refused.yaml", "-p",
                          ",".join(map(str, pids))], env=CLEAN_ENV, capture_output=True, text=True, check=False,
                         timeout=DEADLINE, stdin=subprocess.DEVNULL)
    assert run.returncode == 125 and not (folder / "refused.yaml").exists(), run
    return run.stderr


def assert_serves(service, folder):
    """It has no connection left, and the next one is served."""
    run = service.run(folder, program("checkpoints"), "sequence")
    assert step_names(run.profile) == run.truth["steps"]
    assert_nothing_lost(run.profile)


# ---- What a user gets


def keys(item):
    """But for those that depend on decimals, and on what others in the cgroup did."""
    return {key for key in item if not key.endswith("_bytes") and key != "cgroup_peak_at_least"}


def test_as_root(service, folder, tmp_path):
    """The same steps and keys, and the same memory to the page. What was before the attach is in no figure."""
    profiles, said = [], []
    for attached, name in ((lambda pid: own(tmp_path, pid), "own"), (lambda pid: Served(service, folder, pid), "served")):
        actions = ("spike:96:1000", f"read:{QPROF}", "mark:first", "touch:24", "spike:64:1000", "mark:second", "child:16",
                   f"read:{QPROF}", "mark:third")
        with target(*actions) as process:
            before = [process.go(), process.go()]
            with attached(process.pid) as run:
                said.append({line["done"]: line for line in [process.go() for _ in actions[2:]]})
                assert process.wait() == 0, (name, before)
                profiles.append(run.finished())
    root, nobodys = profiles
    for profile, lines in zip(profiles, said):
        assert_nothing_lost(profile)
        assert step_names(profile) == ["first", "second", "in child", "third"]
        for step in ("first", "second", "third"):
            assert_near(step, row_of(profile, step)["cpu_memory_mb"], lines[f"mark:{step}"]["rss_bytes"], 16 * KIB)
        assert_near("peak", profile["main_peak_memory_mb"], lines["spike:64:1000"]["peak_bytes"], 16 * KIB)
        assert_near("step peak", row_of(profile, "second")["step_peak_memory_mb"], lines["spike:64:1000"]["peak_bytes"],
                    16 * KIB)
        main = profile["processes"][0]
        assert main["flags"] == ["target", "attached"] and main["cmdline"].startswith(program("idle")), main
        read = lines[f"read:{QPROF}"]["read"] / MIB
        assert read <= main["io_read_mb"] < read + 1, (main, read)
    assert keys(root) == keys(nobodys)
    for key in ("memory_usage", "phases", "processes"):
        assert keys(root[key][0]) == keys(nobodys[key][0]), key
    assert set(quality(root)) == set(quality(nobodys))
    assert set(root["timeline"]) == set(nobodys["timeline"])


def test_tree(service, folder):
    """Its descendants are there from the start, those that are born later too; who asks is not, nor who is withheld."""
    secret = own_copy(folder, mode=0o4755, owner=0)
    changes_group = folder / "python"
    shutil.copy(PYTHON, changes_group)
    os.chown(changes_group, 0, SOMEBODY)
    changes_group.chmod(0o2755)
    group = (f"import os; os.setresgid({SOMEBODY}, {SOMEBODY}, {SOMEBODY}); "
             f"os.execv('{program('idle')}', ['idle', 'mark:group'])")
    script = (f"{program('idle')} mark:one touch:8 mark:two & {program('idle')} mark:other & {secret} mark:secret & "
              f'{changes_group} -c "{group}" & wait')
    shell = subprocess.Popen([*AS_NOBODY, "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=CLEAN_ENV)
    try:
        lines = Lines(shell.stdout)
        for _ in range(4):
            lines.next()
        children = [int(pid) for pid in Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()]
        assert len(children) == 4
        with Served(service, folder, shell.pid) as run:
            os.kill(children[0], signal.SIGUSR1)
            run.wait_for_step("one")
            for pid in children[1:]:
                os.kill(pid, signal.SIGUSR1)
            run.wait_for_step("other")
            profile = run.stop()
        assert {process["pid"] for process in profile["processes"]} == {shell.pid, *children[:2]}
        assert sorted(step_names(profile)) == ["one", "other"]
        assert losses(profile) == {"withheld_processes": 2}, losses(profile)
        assert rows(profile)[0]["cpu_memory_mb"] > 2  # of three programs
    finally:
        with contextlib.suppress(ProcessLookupError):
            for pid in children:
                os.kill(pid, signal.SIGKILL)
        shell.kill()
        shell.wait()
        shell.stdout.close()


def test_a_child_whose_first_thread_has_ended(service, folder):
    """It is found at one of its other threads."""
    idle = program("idle")
    shell = subprocess.Popen([*AS_NOBODY, "sh", "-c", f"{idle} leader touch:8 mark:carried & wait"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=CLEAN_ENV)
    try:
        lines = Lines(shell.stdout)
        lines.next()
        child = int(Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text())
        os.kill(child, signal.SIGUSR1)
        lines.next()
        wait_for(lambda: "(zombie)" in Path(f"/proc/{child}/status").read_text(), "the end of its first thread")
        with Served(service, folder, shell.pid) as run:
            for _ in range(2):
                os.kill(child, signal.SIGUSR1)
                lines.next()
            profile = run.finished()
        assert {process["pid"] for process in profile["processes"]} == {shell.pid, child}
        assert step_names(profile) == ["carried"]
        assert row_of(profile, "carried")["cpu_memory_mb"] > 8
        assert_nothing_lost(profile)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        shell.kill()
        shell.wait()
        shell.stdout.close()


def test_who_asks_is_in_no_figure(service, folder):
    """Though it is a child of its target."""
    script = (f"mkfifo said; {QPROF} --service {service.socket} -o own.yaml -p $$ 2> said & pid=$!; exec 3< said; "
              "read line <&3; echo $line; kill -INT $pid; cat <&3; wait")
    done = subprocess.run([*AS_NOBODY, "sh", "-c", script], cwd=folder, env=CLEAN_ENV, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=True, timeout=DEADLINE)
    assert "attached to the processes, through the service" in done.stdout.splitlines()[0], done
    profile = parse(folder / "own.yaml")
    assert profile["processes"][0]["comm"] == "sh"
    assert "qprof-bpf" not in [process["comm"] for process in profile["processes"]]


def test_several(service, folder):
    """One job of them. A target that is given twice is one."""
    with target("mark:one") as first, target("mark:two") as second:
        with Served(service, folder, first.pid, second.pid, first.pid) as run:
            first.go()
            run.wait_for_step("one")
            assert first.wait() == 0
            second.go()
            assert second.wait() == 0
            profile = run.finished()
    assert step_names(profile, ends=True) == ["Start", "one", "two", "End"]
    assert [process["flags"] for process in profile["processes"]] == [["target", "attached"]] * 2
    assert_nothing_lost(profile)


def test_out_of_a_job_of_the_audit(folder):
    """That ends, and its marks before and after are the audit's. It is served as often as it is asked for, however few
    jobs there are."""
    path = own_copy(folder)
    with public_dir() as place, Service(place, options=("--max-jobs", "4")) as service:
        assert_serves(service, folder)
        names = [f"served{i}" for i in range(12)]
        with target("mark:before", *[f"mark:{name}" for name in names], "mark:after", "mark:last", path=path) as process:
            wait_for(lambda: 0xcc in probe_bytes(process.pid, path), "its probes")
            process.go()
            for name in names:
                with Served(service, folder, process.pid) as run:
                    process.go()
                    run.wait_for_step(name)
                    profile = run.stop()
                assert step_names(profile, ends=True) == ["Start", name, "End"]
                assert_nothing_lost(profile)
            process.go()
            process.go()
            assert process.wait() == 0
        jobs = [step_names(job) for job in service.stop()["jobs"]]
    assert ["before"] in jobs and ["after", "last"] in jobs, jobs
    assert [job for job in jobs if job and job[0].startswith("served")] == [[name] for name in names], jobs


def test_new_code(service, folder):
    """What it loads later is searched while it waits, as in root's own run."""
    library = own_copy(folder, "plugin.so")
    with target(f"dlopen:{library}", "mark:done") as process, Served(service, folder, process.pid) as run:
        process.go()
        process.go()
        assert process.wait() == 0
        profile = run.finished()
    assert len(step_names(profile)) == 2 and step_names(profile)[-1] == "done", step_names(profile)
    assert_nothing_lost(profile)


# ---- Whom it refuses


KERNEL_THREAD = 2


@pytest.mark.parametrize("whose", ["root", "somebody", "kernel", "service", "set_uid", "set_gid", "unreadable", "userns",
                                   "capable", "other_group"])
def test_anothers(service, folder, whose):
    prefix, path = AS_NOBODY, None
    if whose in ("set_uid", "set_gid", "unreadable"):
        mode, owner = {"set_uid": (0o4755, 0), "set_gid": (0o2755, 0), "unreadable": (0o711, 0)}[whose]
        path = own_copy(folder, mode=mode, owner=owner)
        prefix = (*AS_NOBODY, "sh", "-c", 'exec "$@"', "sh")  # setpriv itself may read all files
    elif whose == "somebody":
        prefix = as_user(SOMEBODY)
    elif whose == "userns":
        prefix = (*AS_NOBODY, "unshare", "--user")
    elif whose == "capable":
        prefix = (*AS_NOBODY, "--inh-caps=+net_raw", "--ambient-caps=+net_raw")
    elif whose == "other_group":
        prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={SOMEBODY}", "--clear-groups")
    before = service.connections()
    with Target("mark:secret", path=path, prefix=prefix) as process:
        pid = {"root": 1, "kernel": KERNEL_THREAD, "service": service.process.pid}.get(whose, process.pid)
        said = refusal(service, folder, pid)
        assert ("is a kernel thread" if whose == "kernel" else "is not yours") in said, said
        # not as one of several, either
        with target() as mine:
            assert "is" in refusal(service, folder, mine.pid, pid)
        assert process.running()
    wait_for(lambda: service.connections() <= before, "the service to close the connection")
    assert_serves(service, folder)


LESS = ("setpriv", "--bounding-set=-sys_ptrace")


def test_root_of_a_container(service, folder):
    """It has not all capabilities: it may look into those of its own that have no more."""
    with Target() as root, target() as nobody, Target("mark:own", prefix=LESS) as mine:
        for other in (root, nobody):
            run = subprocess.run([*LESS, QPROF, "-q", "--service", service.socket, "-o", folder / "less.yaml", "-p",
                                  str(other.pid)], env=CLEAN_ENV, capture_output=True, text=True, check=False,
                                 timeout=DEADLINE, stdin=subprocess.DEVNULL)
            assert run.returncode == 125 and "is not yours" in run.stderr, run
        run = Served(service, folder, mine.pid)
        run.args = [*LESS, *run.args[len(as_user(NOBODY)):]]
        with run:
            mine.go()
            assert step_names(run.finished()) == ["own"]


def test_no_process(service, folder):
    with target() as process:
        gone = process.pid
    assert "it does not exist" in refusal(service, folder, gone)
    for text in ("0", "-1", "1,", "x"):
        assert "not a process id" in refusal(service, folder, text)
    with contextlib.ExitStack() as many:
        pids = [many.enter_context(target()).pid for _ in range(11)]
        assert "at most 10 processes" in refusal(service, folder, *pids)
        with Served(service, folder, *pids[:10]) as run:
            assert len(run.stop()["processes"]) == 10


def test_served_already(service, folder):
    """By whomever, as its own target or as one of a tree; and the one that is served loses nothing."""
    with target("mark:one", "mark:two") as process, Served(service, folder, process.pid) as run:
        process.go()
        run.wait_for_step("one")
        assert "is profiled for somebody already" in refusal(service, folder, process.pid)
        with target() as other:
            assert "is profiled for somebody already" in refusal(service, folder, other.pid, process.pid)
            assert "is profiled for somebody already" in refusal(service, folder, process.pid, uid=0)
            with Served(service, folder, other.pid, name="other") as again:  # it was let go
                again.stop()
        process.go()
        assert process.wait() == 0
        profile = run.finished()
    assert step_names(profile) == ["one", "two"]
    assert losses(profile) == {}, losses(profile)


def test_child_that_is_served_already(service, folder):
    """It is left out of its parent's figures, which say so; and not of those of the next who asks."""
    shell = subprocess.Popen([*AS_NOBODY, "sh", "-c", f"{program('idle')} touch:8 mark:one; true"], env=CLEAN_ENV,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    child = json.loads(Lines(shell.stdout).next())["ready"]
    try:
        with Served(service, folder, child) as run:
            with Served(service, folder, shell.pid, name="parent") as parents:
                profile = parents.stop()
            assert [process["pid"] for process in profile["processes"]] == [shell.pid]
            assert losses(profile) == {"withheld_processes": 1}, losses(profile)
            assert_nothing_lost(run.stop())
        with Served(service, folder, shell.pid, name="parent") as parents:
            profile = parents.stop()
        assert {process["pid"] for process in profile["processes"]} == {shell.pid, child}
        assert_nothing_lost(profile)
    finally:
        os.kill(child, signal.SIGKILL)
        shell.wait()
        shell.stdout.close()


@pytest.mark.parametrize("mode,owner", [(0o4755, 0), (0o2755, 0), (0o711, 0)], ids=["set_uid", "set_gid", "unreadable"])
def test_becomes_anothers(service, folder, mode, owner):
    """From then on nothing is told of it."""
    path = own_copy(folder, mode=mode, owner=owner)
    with target("mark:mine", f"exec:{path}", "touch:32", "mark:secret") as process:
        with Served(service, folder, process.pid) as run:
            process.go()
            run.wait_for_step("mine")
            assert "ready" in process.go()  # it is the other program
            process.go()
            process.go()
            profile = run.finished() if run.process.poll() is not None else run.stop()
        assert "is not yours" in refusal(service, folder, process.pid) or not process.running()
    assert step_names(profile) == ["mine"] and profile["peak_memory_mb"] < 32
    assert quality(profile)["withheld_processes"] == 1


EXECS = """
import os, signal, sys
path = sys.argv[1]
while True:
    pid = os.fork()
    if not pid:
        os.execv(path, [path, "mark:secret", "exit:0"])
    os.kill(pid, signal.SIGUSR1)
    os.waitpid(pid, 0)
"""


def test_becomes_anothers_at_that_moment(service, folder):
    """However the exec of a descendant falls in with the attach: no mark of the set-uid program, and no memory."""
    path = own_copy(folder, mode=0o4755, owner=0)
    loop = subprocess.Popen([*AS_NOBODY, PYTHON, "-c", EXECS, path], env=CLEAN_ENV, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(25):
            with Served(service, folder, loop.pid) as run:
                profile = run.stop()
            assert step_names(profile) == []
            assert not any((process["cmdline"] or "").startswith(str(path)) for process in profile["processes"])
    finally:
        loop.kill()
        loop.wait()
    assert_serves(service, folder)


NAMED = """
import os, socket, struct, sys
path, *names = sys.argv[1:]
for name in names:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(b"\\0" + bytes.fromhex(name))
        s.connect(path)
        data = s.recv(65536)
        print(hex(struct.unpack_from("I", data)[0]), data[4:].split(b"\\0")[0].decode())
"""


def ask_by(service, *names, prefix=AS_NOBODY):
    done = subprocess.run([*prefix, sys.executable, "-c", NAMED, service.socket, *(name.hex() for name in names)],
                          capture_output=True, text=True, timeout=DEADLINE, check=True, env=CLEAN_ENV)
    return done.stdout.splitlines()


def test_names_that_are_none_of_ours(service, folder):
    begin = b"qprof-bpf/0123456789abcdef"
    before = service.connections()
    names = [b"", b"x", begin, begin + b"/", begin + b"/0", begin + b"/-1", begin + b"/1,", begin + b"/1,1",
             begin + b"/4294967297", begin + b"/" + b"9" * 80, begin + b"/" + b"1," * 12, os.urandom(107),
             begin + b"/1\n"]
    said = ask_by(service, *names[1:])
    assert len(said) == len(names) - 1
    assert all(line.startswith(hex(REFUSED)) and "none of qprof-bpf's" in line for line in said), said
    wait_for(lambda: service.connections() <= before, "the service to close the connections")
    assert_serves(service, folder)


def test_who_asks_is_looked_at(service, folder):
    """One that its own user may not look into asks for nobody, and nobody asks for himself."""
    name = b"qprof-bpf/0123456789abcdef/%d"
    with target() as process:
        assert ask_by(service, name % process.pid)[0].startswith("0x71700003")
        mixed = ("setpriv", f"--ruid={SOMEBODY}", f"--euid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        [said] = ask_by(service, name % process.pid, prefix=mixed)
        assert said.startswith(hex(REFUSED)) and "is not yours" in said, said
    itself = NAMED.replace("bytes.fromhex(name)", f"{name!r} % os.getpid()")
    done = subprocess.run([*AS_NOBODY, sys.executable, "-c", itself, service.socket, "x"], capture_output=True, text=True,
                          timeout=DEADLINE, check=True, env=CLEAN_ENV)
    assert "is the one that asks" in done.stdout, done


# ---- The end of either side


def test_kill_9_of_the_run(service, folder):
    """At any time: the target goes on, and can be asked for again."""
    before = service.connections()
    with target("mark:last") as process:
        for ms in (0, 1, 2, 5, 10, 15, 20, 30, 50, 100):
            run = Served(service, folder, process.pid)
            run.start()
            time.sleep(ms / 1000)  # somewhere on its way
            run.process.kill()
            run.process.wait()
            run.process.stderr.close()
        wait_for(lambda: service.connections() <= before, "the service to close the connections")
        with Served(service, folder, process.pid) as run:
            process.go()
            assert process.wait() == 0
            profile = run.finished()
    assert step_names(profile) == ["last"]
    assert_nothing_lost(profile)


def test_leaves_while_the_service_stands_still(service, folder):
    """It is gone, or its target is, by the time it is let in."""
    before = service.connections()
    for goes in ("run", "target"):
        os.kill(service.process.pid, signal.SIGSTOP)
        with target() as process:
            run = Served(service, folder, process.pid)
            run.start()
            wait_for(lambda: waits_for_answer(run.process.pid), "it to ask")
            if goes == "run":
                run.process.kill()
                run.process.wait()
            else:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            os.kill(service.process.pid, signal.SIGCONT)
            run.process.wait(DEADLINE)
            said = run.process.stderr.read().decode()
            run.process.stderr.close()
            assert goes == "run" or "is not yours" in said or "no process" in said or "exited before" in said, said
        wait_for(lambda: service.connections() <= before, "the service to close the connection")
    assert_serves(service, folder)


def waits_for_answer(pid):
    return "poll" in Path(f"/proc/{pid}/wchan").read_text() or Path(f"/proc/{pid}/stack").read_text().count("poll")


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_end_of_the_service(folder, by):
    with public_dir() as place, Service(place) as service, target("mark:one", "mark:two") as process:
        with Served(service, folder, process.pid) as run:
            process.go()
            run.wait_for_step("one")
            service.process.send_signal(by)
            service.process.wait(DEADLINE)
            process.go()
            assert process.wait() == 0
            profile = run.finished()
    assert step_names(profile, ends=True)[:2] == ["Start", "one"]
    [warning] = [w for w in profile["quality"]["warnings"] if "missing" in w["why"]]
    assert warning["what"] == "the service"


def test_flood_of_attaches(service, folder):
    """A user attaches and goes, over and over, while another's run is served: that loses nothing."""
    flood = """
import os, socket, sys
n = 0
for i in range(300):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(b"\\0qprof-bpf/%016x/%d" % (int.from_bytes(os.urandom(8), "big"), int(sys.argv[2])))
        s.connect(sys.argv[1])
        n += s.recv(65536)[0] == 3
print(n)
"""
    before = service.connections()
    with target(uid=SOMEBODY) as process:
        attaching = subprocess.Popen([*as_user(SOMEBODY), sys.executable, "-c", flood, service.socket, str(process.pid)],
                                     stdout=subprocess.PIPE, env=CLEAN_ENV)
        assert_serves(service, folder)
        assert int(attaching.communicate(timeout=DEADLINE)[0]) > 0
        wait_for(lambda: service.connections() <= before, "the service to close the connections")
        assert process.running()
    assert_serves(service, folder)


# ---- Numbers of jobs


# Asks for a child of its own; says what it hears, and stays until its stdin ends.
ASKS_FOR_A_CHILD = """
import socket, struct, subprocess, sys
child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asks:
    asks.bind(f"\\0qprof-bpf/{child.pid:016x}/{child.pid}")
    asks.connect(sys.argv[1])
    print(struct.unpack_from("I", asks.recv(65536))[0], flush=True)
    sys.stdin.read()
child.kill()
child.wait()
"""


def served_at_a_time(service, users):
    """How many of so many users, each with a process of its own."""
    with contextlib.ExitStack() as stack:
        asking = [stack.enter_context(subprocess.Popen([*as_user(10000 + user), PYTHON, "-c", ASKS_FOR_A_CHILD, service.socket],
                                                       env=CLEAN_ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
                  for user in range(users)]
        answers = [int(asks.stdout.readline()) for asks in asking]
        for asks in asking:
            asks.stdin.close()
    return sum(answer != REFUSED for answer in answers)


def asks_and_goes(service, chance, *pids):
    """As root. Whether it was served."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asks:
        asks.settimeout(DEADLINE)
        asks.bind(f"\0qprof-bpf/{chance.getrandbits(64):016x}/{','.join(map(str, pids))}")
        asks.connect(service.socket)
        is_served = struct.unpack_from("I", asks.recv(65536))[0] != REFUSED
        time.sleep(chance.random() * 0.002)  # the moment is what varies
    return is_served


def test_numbers_of_jobs_are_given_back_once():
    """A process marks and executes as it leaves a job, or the first of two ends as they join: what it says then is
    of no job any more. Else that would begin anew, and its number be free twice."""
    chance = random.Random(20)
    with public_dir() as folder, Service(folder, ["--max-jobs", "7"]) as service:
        with subprocess.Popen([program("idle"), "execloop"], env=CLEAN_ENV, stdout=subprocess.DEVNULL) as process:
            served = sum(asks_and_goes(service, chance, process.pid) for _ in range(600))
            process.kill()
        for _ in range(200):
            with subprocess.Popen(["sleep", "0.003"]) as ends, subprocess.Popen(["sleep", "1000"]) as stays:
                time.sleep(0.003 + chance.random() * 0.0015)
                served += asks_and_goes(service, chance, ends.pid, stays.pid)
                stays.kill()
        assert served > 200, served
        # The last number is given back once the end of its job was read.
        free = wait_for(lambda: (n := served_at_a_time(service, 10)) >= 7 and n, "seven free jobs")
        assert free == 7, f"expected that seven jobs are free, and no more: {free}"
        assert not [job for job in service.stop()["jobs"] if not job.get("processes")]
