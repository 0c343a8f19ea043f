# SPDX-License-Identifier: GPL-2.0-only
"""The Python package in real programs under qprof-bpf."""

import pytest

import harness
from harness import (Target, assert_nothing_lost, metrics_of, process_of, quality, row_of, rows,
                     run_qprof, step_names)
from test_sdk_c import assert_well_formed


@pytest.fixture
def profile(unhurried):
    return unhurried


def test_everything(script, out):
    run = script('''
import json, qprof

@qprof.profile_scope("Quantize")
def quantize(x):
    """Doc."""
    return x + 1

@qprof.profile_scope
def named_by_itself():
    pass

class Model:
    @qprof.profile_scope("Method")
    def method(self): return self
    @qprof.profile_scope("Static")
    @staticmethod
    def static(): return 2
    @qprof.profile_scope("Class")
    @classmethod
    def of_class(cls): return cls

with qprof.scope("Calibration") as s:
    qprof.metric("loss", 0.125, "cross entropy, in nats")
    qprof.metric("bits", 8)
    qprof.metric("flag", True)
    qprof.metric("huge", 2 ** 70)
    qprof.mark("Modèle chargé ✓")
assert quantize(1) == 2 and quantize.__name__ == "quantize" and quantize.__doc__ == "Doc."
named_by_itself()
m = Model()
assert m.method() is m and Model.static() == 2 and m.of_class() is Model
qprof.begin("By Hand"); qprof.end("By Hand")
qprof.summary("model_size_mb", 482.25, "size of the quantized model, in MiB")
qprof.mark("x" * 300)
print(json.dumps({"enabled": qprof.enabled()}))
''')
    assert step_names(run.profile) == [
        "Calibration Start", "Modèle chargé ✓", "Calibration End", "Quantize Start", "Quantize End",
        "named_by_itself Start", "named_by_itself End", "Method Start", "Method End", "Static Start",
        "Static End", "Class Start", "Class End", "By Hand Start", "By Hand End", "x" * 255]
    metrics = row_of(run.profile, "Modèle chargé ✓")["metrics"]
    assert metrics == {"loss": 0.125, "bits": 8, "flag": 1, "huge": 2.0 ** 70}
    assert type(metrics["bits"]) is int, "an int must come as one"
    assert run.profile["model_size_mb"] == 482.25
    text = out.read_text()
    assert "# loss: cross entropy, in nats\n" in text
    assert "# model_size_mb: size of the quantized model, in MiB\n" in text
    assert run.truth == {"enabled": True}
    assert_nothing_lost(run.profile)


def test_exceptions_are_told(script):
    run = script('''
import qprof, contextlib

class Späße(Exception): pass

@qprof.profile_scope("Function")
def function(): raise KeyError("x")

with qprof.scope("Survives"):
    with contextlib.suppress(ValueError):
        with qprof.scope("Fails"):
            raise ValueError("x")
with contextlib.suppress(KeyError):
    function()
with contextlib.suppress(Späße):
    with qprof.scope("é" * 200):
        raise Späße
with qprof.scope("Interrupted"):
    raise SystemExit(7)
''', status=7)
    long = "é" * 127
    assert step_names(run.profile) == [
        "Survives Start", "Fails Start", "Fails End", "Survives End", "Function Start",
        "Function End", f"{long} Start", f"{long} End", "Interrupted Start", "Interrupted End"]
    assert row_of(run.profile, "Fails End")["metrics"] == {"Fails raised ValueError": 1}
    assert row_of(run.profile, "Function End")["metrics"] == {"Function raised KeyError": 1}
    assert row_of(run.profile, "Interrupted End")["metrics"] == {"Interrupted raised SystemExit": 1}
    name, = row_of(run.profile, f"{long} End")["metrics"]
    assert name.startswith("éééé") and name.endswith("é raised Späße"), name
    assert len(metrics_of(run.profile)) == 4, "what raised nothing says nothing"
    assert quality(run.profile)["unclosed_phases"] == 0


def test_generators(script):
    """A generator's phase goes from the first item asked for to its end, whatever that is."""
    run = script('''
import qprof, inspect

@qprof.profile_scope("Generator")
def generate(n):
    got = []
    for i in range(n):
        try:
            got.append((yield i))
        except LookupError as error:
            got.append(str(error))
    return got

assert inspect.isgeneratorfunction(generate)
g = generate(3)
qprof.mark("Made")
assert next(g) == 0
qprof.mark("Between")
assert g.send("a") == 1
assert g.throw(LookupError("b")) == 2
try:
    g.send("c")
except StopIteration as stop:
    assert stop.value == ["a", "b", "c"], stop.value
closed = generate(5)
next(closed)
closed.close()
qprof.mark("Last")
''')
    assert step_names(run.profile) == ["Made", "Generator Start", "Between", "Generator End",
                                       "Generator Start", "Generator End", "Last"]
    assert metrics_of(run.profile) == {}, "to be closed is no error"


def test_async(script):
    run = script('''
import asyncio, inspect, qprof

@qprof.profile_scope("Coroutine")
async def work(event, done):
    await event.wait()
    qprof.mark("Inside")
    done.set()
    return 42

@qprof.profile_scope("Items")
async def items(n):
    try:
        for i in range(n):
            try:
                got = yield i
                if got: qprof.mark(got)
            except LookupError:
                qprof.mark("Thrown in")
                yield "caught"
    finally:
        await asyncio.sleep(0)
        qprof.mark("Cleaned up")

@qprof.profile_scope("Cancelled")
async def forever():
    await asyncio.Event().wait()

async def main():
    assert inspect.iscoroutinefunction(work) and inspect.isasyncgenfunction(items)
    event, done = asyncio.Event(), asyncio.Event()
    task = asyncio.ensure_future(work(event, done))
    await asyncio.sleep(0)
    qprof.mark("While it waits")
    event.set()
    assert await task == 42
    assert [i async for i in items(2)] == [0, 1]
    g = items(9)
    assert await g.__anext__() == 0
    assert await g.asend("Sent") == 1
    assert await g.athrow(LookupError()) == "caught"
    await g.aclose()
    task = asyncio.ensure_future(forever())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass

asyncio.run(main())
''')
    assert step_names(run.profile) == [
        "Coroutine Start", "While it waits", "Inside", "Coroutine End",
        "Items Start", "Cleaned up", "Items End",
        "Items Start", "Sent", "Thrown in", "Cleaned up", "Items End",
        "Cancelled Start", "Cancelled End"]
    assert metrics_of(run.profile) == {"Cancelled raised CancelledError": 1}
    assert quality(run.profile)["unmatched_ends"] == 0


def test_tasks_interleave(script):
    """Tasks of one thread cross each other's phases; names tell them apart."""
    run = script('''
import asyncio, qprof

async def work(name, mine, other):
    with qprof.scope(name):
        other.set()
        await mine.wait()

async def main():
    a, b = asyncio.Event(), asyncio.Event()
    first = asyncio.ensure_future(work("A", a, b))
    second = asyncio.ensure_future(work("B", b, a))
    await asyncio.gather(first, second)

asyncio.run(main())
''')
    names = step_names(run.profile)
    assert sorted(names) == ["A End", "A Start", "B End", "B Start"]
    assert names[:2] == ["A Start", "B Start"], names
    counts = quality(run.profile)
    assert not counts["unmatched_ends"] and not counts["unclosed_phases"]


def test_threads_nest(script):
    run = script('''
import threading, qprof

def work(barrier):
    barrier.wait()
    for _ in range(10):
        with qprof.scope("outer"):
            for _ in range(2):
                with qprof.scope("inner"), qprof.scope("innermost"):
                    pass

barrier = threading.Barrier(8)
threads = [threading.Thread(target=work, args=(barrier,)) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
''')
    assert_well_formed(run.profile, {"outer": (10, 0), "inner": (20, 1), "innermost": (20, 2)}, 8)


def test_fork_inside(script):
    """A child that leaves its parent's scope says nothing of it; its own scopes are its own."""
    run = script('''
import os, qprof, sys
with qprof.scope("Parent"):
    child = os.fork()
    if not child:
        with qprof.scope("Child"):
            pass
        sys.exit(3)
    os.waitpid(child, 0)
''')
    parent, child = (process["pid"] for process in run.profile["processes"])
    assert [(row["step"], row["pid"]) for row in rows(run.profile)] == [
        ("Parent Start", parent), ("Child Start", child), ("Child End", child),
        ("Parent End", parent)]
    assert process_of(run.profile, child)[0]["exit_code"] == 3
    counts = quality(run.profile)
    assert not counts["unmatched_ends"] and not counts["unclosed_phases"], counts


@pytest.mark.parametrize("leave,code", [('os.execlp("true", "true")', 0), ("os._exit(5)", 5),
                                        ("os.kill(os.getpid(), 9)", None)])
def test_never_left(script, leave, code):
    run = script(f'import os, qprof\nwith qprof.scope("Left Open"):\n    {leave}\n',
                 status=code if code is not None else -9)
    phase, = run.profile["phases"]
    assert phase["name"] == "Left Open" and phase["closed"] is False, phase
    assert quality(run.profile)["unclosed_phases"] == 1
    assert run.profile["processes"][0].get("exit_code") == code


def test_no_number(script):
    """A metric that is none is left out with a warning, and the program runs on."""
    run = script('''
import warnings, qprof
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    qprof.metric("text", "abc")
    qprof.metric("none", None)
    qprof.summary("list", [1])
    qprof.metric("numeric text", "0.5")
    qprof.mark(123)
assert [w.category for w in caught] == [RuntimeWarning] * 3, caught
assert all("script.py" in w.filename for w in caught), [w.filename for w in caught]
''')
    assert row_of(run.profile, "123")["metrics"] == {"numeric text": 0.5}
    assert "list" not in run.profile


def test_long_definitions(script, out):
    definition = "It is\nof several lines. " + " ".join(f"word{i}" for i in range(100))
    run = script(f'import qprof\nqprof.metric("loss", 1, {definition!r})\nqprof.mark("m")\n')
    lines = [line for line in out.read_text().splitlines() if line.startswith("# loss: ")]
    assert lines[0] == "# loss: It is"
    assert " ".join(line[len("# loss: "):] for line in lines).split() == definition.split()
    assert quality(run.profile)["cut_names"] == 0


def test_attached_while_inside(target_python, attach):
    """A scope that was entered before anybody listened does not end either."""
    process = target_python('''
import qprof, signal, os, json
go = lambda: signal.sigwait({signal.SIGUSR1})
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
with qprof.scope("Before"):
    print(json.dumps({"ready": os.getpid()}), flush=True)
    go()
    qprof.mark("Inside")
with qprof.scope("After"):
    pass
print(json.dumps({"done": 1}), flush=True)
go()
''')
    with attach(process.pid) as attached:
        process.go()
        attached.wait_for_step("After End")
        process.tell()
        profile = attached.finished()
    assert step_names(profile) == ["Inside", "After Start", "After End"]
    assert quality(profile)["unmatched_ends"] == 0


# ---- Without its library: marks that cannot be heard are told of

NO_LIBRARY = {"QPROF_LIBRARY": "/no/such/libqprof.so.0"}
PYTHON_MARKS = "marks of the Python package qprof"
WAITS = """
import os, json, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
if "qprof" in sys.argv:
    import qprof
    qprof.mark("Never heard")
print(json.dumps({"ready": os.getpid()}), flush=True)
signal.sigwait({signal.SIGUSR1})
"""


def python_warnings(profile):
    return [w["why"] for w in profile["quality"]["warnings"] if w["what"] == PYTHON_MARKS]


@pytest.fixture
def waits(tmp_path):
    """waits(library, *args): a Python program that may import the package, with that environment."""
    started = []

    def start(env, *args):
        path = tmp_path / "waits.py"
        path.write_text(WAITS)
        started.append(Target(str(path), *args, path=harness.PYTHON,
                              env={**harness.QPROF_PACKAGE, **env}))
        return started[-1]
    yield start
    for one in started:
        one.__exit__()


def has_library():
    """Whether the dynamic linker finds one by itself: then there is always one."""
    return harness.subprocess.run(
        [harness.PYTHON, "-c", "import ctypes; ctypes.CDLL('libqprof.so.0')"], check=False,
        capture_output=True, env=harness.CLEAN_ENV).returncode == 0


CASES = [(NO_LIBRARY, ("qprof",), True), ({}, ("qprof",), False), (NO_LIBRARY, (), False)]


@pytest.mark.parametrize("env, args, told", CASES)
def test_attached_to_marks_that_cannot_be_heard(waits, attach, env, args, told):
    if has_library():
        pytest.skip("libqprof.so.0 is installed")
    one = waits(env, *args)
    with attach(one.pid) as attached:
        if told:  # at once, not only at the end
            attached.stderr.until("found no libqprof.so.0")
        profile = attached.stop()
    why = python_warnings(profile)
    assert len(why) == told, f"expected {int(told)} warning, got {why}"
    assert not told or "found no libqprof.so.0" in why[0], why
    doctor = run_qprof("doctor", "-p", one.pid)
    assert doctor.returncode == 0, doctor
    [line] = [line for line in doctor.stdout.splitlines() if "marks of Python" in line]
    assert line.split()[3] == ("yes" if args and not told else "no"), line
    assert ("found no libqprof.so.0" in line) == told, line
    listed = run_qprof("list", "-p", one.pid).stdout
    assert ("the package found no libqprof.so.0" in listed) == told, listed


@pytest.mark.parametrize("env, told", [(NO_LIBRARY, True), ({}, False)])
def test_launched_with_marks_that_cannot_be_heard(script, env, told):
    if has_library():
        pytest.skip("libqprof.so.0 is installed")
    run = script("import qprof; qprof.mark('Marked')", env=env)
    assert len(python_warnings(run.profile)) == told, run.profile["quality"]["warnings"]
    assert step_names(run.profile) == ([] if told else ["Marked"])
