# SPDX-License-Identifier: GPL-2.0-only
"""--usdt and --recipe through the service: a user gets what root gets, of the user's own processes alone, and what a
client says costs nobody else anything."""

import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys

import pytest

from harness import (AS_NOBODY, CLEAN_ENV, DEADLINE, KIB, NOBODY, QPROF, Target, assert_near, assert_nothing_lost,
                     fdinfos, losses, parse, probe_bytes, probes_of, program, public_dir, rows, step_names, wait_for)
from serving import (SOMEBODY, Service, as_user, folder, own_copy, run_that_is_killed, service,  # noqa: F401
                     shape)
from test_service_clients import REFUSED, WELCOME, Client, lingering
from test_service_running import Served

PLACES, PLACED = 0x71700007, 0x71700008
FUNCTION, RETURNS, MARK = 1, 2, 4
STEPS = 4
RECIPE = """
name: calls
read_from: "tests/programs/calls.c"
match: {executable: "*calls*"}
checkpoints:
"""
ITEMS = """- {symbol: quantize_layer, name: {arg: 1, type: string}}
- {usdt: "tool:layer", mark: "at {arg1:int}"}
"""


def write_recipe(folder, items=ITEMS, name="recipe.yaml"):
    path = folder / name
    path.write_text(RECIPE + items)
    os.chown(path, NOBODY, NOBODY)
    return path


def is_probed(pid, path, name="layer"):
    """Whether anything is at a probe of that name in the memory of a process now."""
    return {byte for probe, byte in zip(probes_of(path), probe_bytes(pid, path)) if probe.name == name} == {0xcc}


def links(service):
    return sum("link_type" in fields for fields in fdinfos(service.process.pid).values())


# ---- What a user gets


@pytest.mark.parametrize("pattern,wanted", [("other:plain", 1), ("other:*", 2), ("*:*", 3), ("[o]ther:*", 2), ("qprof:*", 0)])
def test_marks_are_those_of_root(service, folder, profile, pattern, wanted):
    options = ("--usdt", pattern)
    own = profile(program("checkpoints"), "others", options=options)
    run = service.run(folder, program("checkpoints"), "others", options=options)
    assert len(step_names(own.profile)) == len(own.truth["steps"]) + wanted, step_names(own.profile)
    assert step_names(run.profile) == step_names(own.profile)
    assert_nothing_lost(run.profile)


def test_a_probe_that_two_patterns_name_is_one_mark(service, folder):
    run = service.run(folder, program("calls"), "plain", STEPS, options=("--usdt", "tool:*", "--usdt", "*:layer"))
    assert step_names(run.profile).count("tool:layer") == STEPS, step_names(run.profile)


def test_memory_is_that_of_root(service, folder, profile):
    """At each mark, and the peaks between them; a program of which nothing was known."""
    options = ("--usdt", "tool:layer")
    own = profile(program("calls"), "plain", STEPS, options=options)
    run = service.run(folder, own_copy(folder, "calls"), "plain", STEPS, options=options)
    assert step_names(run.profile) == step_names(own.profile)
    assert step_names(run.profile).count("tool:layer") == STEPS
    assert shape(run.profile) == shape(own.profile)
    base = [rows(p.profile)[0]["cpu_memory_mb"] for p in (own, run)]  # of an address space that is laid out at random
    for root, nobodys in zip(rows(own.profile), rows(run.profile)):
        for key in ("cpu_memory_mb", "step_peak_memory_mb"):
            assert_near(root["step"], nobodys[key] - base[1], (root[key] - base[0]) * KIB * KIB, 32 * KIB)
    assert_nothing_lost(run.profile)


@pytest.mark.parametrize("how", ["plain", "recursion", "tail", "threads"])
def test_phases_of_a_recipe_are_those_of_root(service, folder, unhurried, how):
    recipe = write_recipe(folder, ITEMS + "- {symbol: descend, phase: '{function} {arg1:uint}'}\n- symbol: call_last\n")
    own = unhurried(program("calls"), how, STEPS, options=("--recipe", recipe, "--recipe", "none"))
    run = service.run(folder, own_copy(folder, "calls"), how, STEPS, options=("--recipe", recipe))
    if how != "threads":  # their order is as it comes
        assert shape(run.profile) == shape(own.profile)
        assert step_names(run.profile) == step_names(own.profile)
    assert sorted(step_names(run.profile)) == sorted(step_names(own.profile))
    peaks = {p["name"]: p["peak_memory_mb"] for p in run.profile["phases"]}
    for step in range(1, STEPS + 1):
        if how != "threads":  # exact to the byte
            assert peaks[f"layer.{step}"] == peaks[f"by hand {step}"], peaks
    assert [(r["name"], r["checkpoints"]) for r in run.profile["recipes"]] == [
        (r["name"], r["checkpoints"]) for r in own.profile["recipes"]]
    assert_nothing_lost(run.profile)


def test_what_a_recipe_does_not_find_is_said(service, folder):
    recipe = write_recipe(folder, ITEMS + "- symbol: no_such_function\n- usdt: 'no:probe'\n")
    run = service.run(folder, own_copy(folder, "calls"), "plain", STEPS, options=("--recipe", recipe))
    whys = [warning["why"] for warning in run.profile["quality"]["warnings"]]
    assert any("'no_such_function'" in why and "no file of yours" in why for why in whys), whys
    assert any("'no:probe'" in why and "no file that" in why for why in whys), whys


def test_functions_in_files_of_others(service, folder):
    """A probe at malloc() would slow the whole machine: only what its author made a probe is probed there."""
    path, recipe = own_copy(folder, "calls", owner=0), write_recipe(folder)
    run = service.run(folder, path, "plain", STEPS, options=("--recipe", recipe))
    names = step_names(run.profile)
    assert "at 1" in names and "layer.1 Start" not in names, names
    whys = [warning["why"] for warning in run.profile["quality"]["warnings"]]
    assert any("'quantize_layer'" in why and "no file of yours" in why for why in whys), whys
    run = service.run(folder, path, "plain", STEPS, options=("--recipe", recipe), uid=0)
    assert "layer.1 Start" in step_names(run.profile), step_names(run.profile)


def test_too_often(service, folder):
    """What is met too often loses its probes, also where the service has no recipes."""
    args = [*AS_NOBODY, str(QPROF), "-q", "--service", service.socket, "-o", str(folder / "x.yaml"), "--recipe",
            write_recipe(folder, "- symbol: count_one\n"), "--", own_copy(folder, "calls"), "many", "2000000"]
    subprocess.run(args, check=True, capture_output=True, timeout=DEADLINE, env=CLEAN_ENV)
    text = (folder / "x.yaml").read_text()  # of so many rows that it takes long to parse
    assert "stopped: 1" in text and int(re.search(r"limited: (\d+)", text)[1]) > 1000, text[-3000:]
    assert_serves(service, folder)


@pytest.mark.parametrize("how", ["usdt", "recipe"])
def test_process_that_runs(service, folder, how):
    options = ("--usdt", "tool:layer") if how == "usdt" else ("--recipe", write_recipe(folder))
    path = own_copy(folder, "calls")
    with Target("wait", str(STEPS), path=path, prefix=AS_NOBODY) as process, \
            Served(service, folder, process.pid, options=options) as run:
        assert is_probed(process.pid, path)
        process.tell()
        assert process.wait() == 0
        names = step_names(run.finished())
    wanted = ["tool:layer"] if how == "usdt" else ["at 1", "layer.1 Start"]
    assert [name for name in names if "by hand" not in name][:len(wanted)] == wanted, names
    assert names.count("tool:layer") == (STEPS if how == "usdt" else 0), names


# ---- Of whom


@pytest.mark.parametrize("how", ["usdt", "recipe"])
def test_others_that_run_the_file(service, folder, how):
    """Two guests and a stranger: each guest gets what it asked for of its own, and the stranger is in none."""
    path = own_copy(folder, "calls")
    options = ("--usdt", "tool:layer") if how == "usdt" else ("--recipe", write_recipe(folder, "- usdt: 'tool:layer'\n"))
    with public_dir(SOMEBODY) as theirs, Target("wait", "3", path=path, prefix=as_user(SOMEBODY)) as stranger, \
            Target("wait", "2", path=path, prefix=AS_NOBODY) as mine, \
            Served(service, folder, mine.pid, options=options) as run:
        assert is_probed(stranger.pid, path), "a probe is in a file"
        other = service.run(theirs, path, "plain", STEPS, uid=SOMEBODY)
        asked = service.run(theirs, path, "plain", STEPS, uid=SOMEBODY, options=options)
        stranger.tell()
        assert stranger.wait() == 0
        mine.tell()
        assert mine.wait() == 0
        profile = run.finished()
    assert "tool:layer" not in step_names(other.profile), step_names(other.profile)
    assert step_names(asked.profile).count("tool:layer") == STEPS, step_names(asked.profile)
    assert step_names(profile).count("tool:layer") == 2, step_names(profile)
    assert {row["pid"] for row in rows(profile)} == {mine.pid}
    jobs = service.stop()["jobs"]
    assert stranger.pid not in [row["pid"] for job in jobs for row in rows(job) if row["step"] == "tool:layer"]


def test_file_that_the_user_may_not_read(service, folder):
    """It was theirs to run when they started it."""
    path = own_copy(folder, "calls")
    with Target("wait", "2", path=path, prefix=AS_NOBODY) as process:
        os.chown(path, 0, 0)
        path.chmod(0o711)
        with Served(service, folder, process.pid, options=("--usdt", "tool:layer")) as run:
            assert not is_probed(process.pid, path)
            process.tell()
            assert process.wait() == 0
            profile = run.finished()
    assert "tool:layer" not in step_names(profile)
    assert any("you may not read" in w["why"] for w in profile["quality"]["warnings"]), profile["quality"]["warnings"]


def test_file_of_a_group(service, folder):
    """A group that the user is in besides is as good."""
    path = own_copy(folder, "calls", owner=0)
    os.chown(path, 0, 7777)
    path.chmod(0o750)
    args = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--groups=7777", str(QPROF), "-q", "--service",
            service.socket, "-o", str(folder / "g.yaml"), "--usdt", "tool:layer", "--", str(path), "plain", "2"]
    subprocess.run(args, check=True, capture_output=True, timeout=DEADLINE, env=CLEAN_ENV)
    assert step_names(parse(folder / "g.yaml")).count("tool:layer") == 2


MAPS = """
import json, mmap, os, signal, sys
with open(sys.argv[1], "rb") as file:
    kept = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print(json.dumps({"ready": os.getpid()}), flush=True)
signal.pause()
"""


def test_file_that_is_written(service, folder):
    """Its probes go before the writer goes on, as those of marks do."""
    path = own_copy(folder, "calls")
    with Target("-c", MAPS, path, path=sys.executable, prefix=AS_NOBODY) as process, \
            Served(service, folder, process.pid, options=("--usdt", "tool:layer")):
        assert is_probed(process.pid, path)
        os.close(os.open(path, os.O_RDWR))
        assert not is_probed(process.pid, path)


# ---- Refusals


def refusal(service, folder, *options):
    done = subprocess.run([*AS_NOBODY, str(QPROF), "-q", "--service", service.socket, "-o", str(folder / "x.yaml"), *options,
                           "--", "true"], env=CLEAN_ENV, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 125 and len(done.stderr.splitlines()) == 1, done
    return done.stderr


def test_what_is_refused(service, folder):
    many = [text for i in range(33) for text in ("--usdt", f"a:b{i}")]
    assert "33 functions and probes, and a service takes at most 32" in refusal(service, folder, *many)
    assert "at most 255 bytes" in refusal(service, folder, "--usdt", "a:" + "b" * 300)


def place(item=7, flags=MARK, args=0, texts=(6, 6), pattern=b"tool:layer"):
    return struct.pack("3I2B2x256s", item, flags, args, *texts, pattern)


def heard(texts=0, files=0, told=0, reserved=0, literals=(), parts=()):
    """literals: (bytes, mask) each; parts: (bytes, mask, anywhere, reserved)."""
    return (struct.pack("4I", texts, files, told, reserved) +
            b"".join(struct.pack("2Q", *literal) for literal in literals).ljust(8 * 16, b"\0") +
            b"".join(struct.pack("2Q2I", *part) for part in parts).ljust(16 * 24, b"\0"))


def packet(*places, n=None, hears=None):
    return (struct.pack("2I", PLACES, len(places) if n is None else n) + (hears or heard()) +
            b"".join(places).ljust(32 * 272, b"\0"))


HOSTILE = {
    "empty": b"x",
    "short": packet(place())[:-1],
    "long": packet(place()) + b"\0",
    "kind": b"\0" + packet(place())[1:],
    "none": packet(n=0),
    "many": packet(place(), n=2**32 - 1),
    "one too many": packet(place(), n=33),
    "no NUL": packet(place(pattern=b"a:" + b"b" * 254)),
    "no pattern": packet(place(pattern=b"")),
    "unprintable": packet(place(pattern=b"a:\x1b[2J")),
    "flags": packet(place(flags=8)),
    "mark of a function": packet(place(flags=MARK | FUNCTION)),
    "returns of a probe": packet(place(flags=RETURNS)),
    "arguments": packet(place(args=64)),
    "texts": packet(place(texts=(7, 6))),
    "no such texts": packet(hears=heard(texts=3)),
    "no literal": packet(hears=heard(texts=1)),
    "all with literals": packet(hears=heard(texts=2, literals=[(0x20, 0xff)])),
    "literals of no texts": packet(place(), hears=heard(literals=[(0x20, 0xff)])),
    "literals with a gap": packet(hears=heard(texts=1, literals=[(0x20, 0xff), (0, 0), (0x20, 0xff)])),
    "bits of a byte": packet(hears=heard(texts=1, literals=[(0x20, 0x7f)])),
    "a literal with a hole": packet(hears=heard(texts=1, literals=[(0x20, 0xff00ff)])),
    "bytes without a mask": packet(hears=heard(texts=2, literals=[(0x20, 0)])),
    "no such files": packet(hears=heard(files=2)),
    "parts of no files": packet(place(), hears=heard(parts=[(0x20, 0xff, 1, 0)])),
    "a part at no end": packet(hears=heard(files=1, parts=[(0x20, 0xff, 0, 0)])),
    "no such part": packet(hears=heard(files=1, parts=[(0x20, 0xff, 2, 0)])),
    "more of a part": packet(hears=heard(files=1, parts=[(0x20, 0xff, 1, 1)])),
    "programs that nobody is told of": packet(hears=heard(told=4)),
    "more": packet(hears=heard(told=1, reserved=1)),
}


def assert_serves(service, folder):
    run = service.run(folder, program("calls"), "plain", STEPS, options=("--usdt", "tool:layer"))
    assert step_names(run.profile).count("tool:layer") == STEPS


def test_packets_that_are_none(service, folder):
    for name, said in HOSTILE.items():
        with Client(service.socket, program("calls"), "plain", "1") as client:
            assert client.hears()[0] == WELCOME
            client.say(said)
            assert "is none of qprof-bpf's" in client.refused(), name
    assert_serves(service, folder)


def test_clients_that_are_none(service, folder):
    """Descriptors, more packets than one, an end before the first, and a death right after it."""
    before = service.connections()
    path = own_copy(folder, "calls")
    with Target("wait", "1", path=path, prefix=AS_NOBODY) as watcher:
        wait_for(lambda: is_probed(watcher.pid, path, "begin"), "its marks to be found")
        started = links(service)
        ends = []
        for case in ("descriptors", "two", "half-closed", "killed", "killed as it runs"):
            with Client(service.socket, path, "wait", "1") as client:
                assert client.hears()[0] == WELCOME
                if case == "half-closed":
                    client.socket.shutdown(socket.SHUT_WR)
                    continue
                if case == "descriptors":
                    here, there = lingering()
                    ends.append(there)
                    client.say(packet(place()), [here.fileno()])
                    here.close()  # the message has the last one
                else:
                    client.say(packet(place()))
                if case == "two":
                    client.say(packet(place(pattern=b"*:*")), [ends[0].fileno()])
                if case != "killed":
                    assert client.hears()[0] == PLACED
                if case == "killed as it runs":
                    os.write(client.go, b"g")
                    wait_for(lambda: is_probed(watcher.pid, path), "the probe to be there")
        wait_for(lambda: service.connections() <= before, "the service to close the connections")
        wait_for(lambda: not is_probed(watcher.pid, path), "the probe to go")
        assert links(service) == started
    assert_serves(service, folder)
    for end in ends:
        end.close()


def test_kill_9_of_a_run(service, folder):
    """Its probes go, and its command goes on."""
    path = own_copy(folder, "calls")
    with Target("wait", "1", path=path, prefix=AS_NOBODY) as watcher:
        said = run_that_is_killed(service, folder, "--usdt", "tool:layer", "--", path, "wait", "1")
        wait_for(lambda: not is_probed(watcher.pid, path), "the probe to go")
        os.kill(said["ready"], signal.SIGKILL)  # it went on
    assert_serves(service, folder)


# ---- Shares


def test_a_hundred_runs_leave_nothing(folder):
    """No list, of 32; no site, of 96; no probe."""
    path, recipe = own_copy(folder, "calls"), write_recipe(folder)
    with public_dir() as space, Service(space, options=("--max-probes", "96")) as service:
        before = service.connections()
        service.run(folder, path, "plain", 1)
        kept = links(service)
        for _ in range(100):
            run = service.run(folder, path, "plain", 1, options=("--recipe", recipe, "--usdt", "*:layer"))
            assert "layer.1 Start" in step_names(run.profile) and "tool:layer" in step_names(run.profile)
            # A search that takes 250 ms, on a busy machine, goes on later.
            assert set(losses(run.profile)) <= {"limited_searches"}, losses(run.profile)
        wait_for(lambda: links(service) <= kept, "the probes to go")
        wait_for(lambda: service.connections() <= before, "its sockets to go")


def test_runs_with_places_at_a_time(service, folder):
    """32 in all, and of a user no more than are left for all others."""
    with contextlib.ExitStack() as all_of_them:
        def ask():
            client = all_of_them.enter_context(Client(service.socket, "/bin/true"))
            assert client.hears()[0] == WELCOME
            client.say(packet(place()))
            return client
        assert [ask().hears()[0] for _ in range(16)] == [PLACED] * 16  # root's
        assert [ask().hears()[0] for _ in range(16)] == [PLACED] * 16
        assert "wait for one to end" in ask().refused()
        assert "wait for one to end" in refusal(service, folder, "--usdt", "tool:layer")
        assert service.run(folder, "true").profile  # it needs none
    wait_for(lambda: not is_refused(service, folder), "room")


def is_refused(service, folder):
    return subprocess.run([*AS_NOBODY, str(QPROF), "-q", "--service", service.socket, "-o", folder / "x.yaml", "--usdt", "a:b",
                           "--", "true"], env=CLEAN_ENV, capture_output=True, check=False, timeout=DEADLINE).returncode
