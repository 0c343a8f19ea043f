# SPDX-License-Identifier: GPL-2.0-only
"""Recipes through the service: a user's profile has the phases that root's has, by the recipes that come with qprof-bpf
and by the user's own, and what a run has others hear is of its own processes alone."""

import contextlib
import os
import shutil
import subprocess
import sys

import pytest

from harness import (AS_NOBODY, CLEAN_ENV, DEADLINE, NOBODY, PYTHON, QPROF, Lines, assert_near, assert_nothing_lost,
                     is_hooked, losses, program, public_dir, step_names, wait_for)
from serving import SOMEBODY, Service, as_user, folder, run_that_is_killed, service, shape  # noqa: F401
from test_service_running import Served

STEPS = 4
MIB = 1 << 20
# What a quantizer in Python says: a progress bar, a file of weights, functions that a recipe knows.
QUANTIZES = """
import os, sys
sys.path.insert(0, os.path.dirname(sys.argv[0]))
with open(sys.argv[1], "rb") as weights:
    weights.read()
from awq.models.base import BaseAWQForCausalLM
for i in range(1, 4):
    sys.stderr.write(f"\\rScoring: {i * 33}%|###  | {i}/3 [00:01<00:02, 1.0it/s]")
    sys.stderr.flush()
model = BaseAWQForCausalLM()
model.quantize()
model.save_quantized("nowhere")
os._exit(0)
"""
AWQ = """
import mmap
class BaseAWQForCausalLM:
    def quantize(self):
        block = mmap.mmap(-1, 24 << 20)
        block.write(bytes(24 << 20))
    def save_quantized(self, path):
        pass
"""
OWN = """
name: own
match: {executable: MATCH}
checkpoints:
- {log: '^\\[ *(\\d+)/ *(\\d+)\\] +(\\S+) - ', literal: "] ", phase: $3, children: CHILDREN}
- {log: '^quant size = ([\\d.]+) MB', summary: {quantized_size_mb: $1}}
- {exec: {executable: "says"}, phase: "says {arg1}"}
- {file: "*.weights", phase: "{read|write} {basename}"}
"""


def give(path, text=None):
    """A file of the user's."""
    if text is not None:
        path.write_text(text)
    os.chown(path, NOBODY, NOBODY)
    return path


def own_recipe(folder, match="sh", children="no", text=OWN, name="recipe.yaml"):
    return give(folder / name, text.replace("MATCH", match).replace("CHILDREN", children))


def used(profile):
    """How often each item of each recipe was met."""
    return {r["name"]: [item["matched"] for item in r["checkpoints"]] for r in profile["recipes"]}


def assert_same(root, nobodys):
    """Phases, steps, what matched, and the peak of each phase, but for an address space that is laid out at random."""
    assert shape(nobodys) == shape(root)
    assert step_names(nobodys) == step_names(root)
    assert used(nobodys) == used(root)
    for own, served in zip(root["phases"], nobodys["phases"]):
        assert_near(own["name"], served["peak_memory_mb"], own["peak_memory_mb"] * MIB, MIB)
    assert_nothing_lost(root)
    assert_nothing_lost(nobodys)
    assert nobodys["quality"].get("warnings") == root["quality"].get("warnings")


# ---- What a user gets


def quantizer(folder):
    """A command."""
    (folder / "awq/models").mkdir(parents=True)
    for package in ("awq", "awq/models"):
        (folder / package / "__init__.py").touch()
    (folder / "awq/models/base.py").write_text(AWQ)
    script, weights = give(folder / "quantize.py", QUANTIZES), folder / "model.safetensors"
    weights.write_bytes(bytes(3 * MIB))
    return PYTHON, script, weights


def test_recipes_that_come_with_it(service, folder, unhurried):
    """Bars, files, functions of Python: by nothing that the user says."""
    command = quantizer(folder)
    own = unhurried(*command)
    run = service.run(folder, *command)
    names = [p["name"] for p in run.profile["phases"]]
    assert names == ["read model.safetensors", "Scoring 1/3", "Scoring 2/3", "Quantize", "Save"], names
    assert_same(own.profile, run.profile)


@pytest.mark.parametrize("kept", ["of others", "none"])
def test_recipes_that_come_with_it_and_were_changed(service, folder, kept):
    """Python is told of those that are there, and not of those that were when it was built."""
    command, recipes = quantizer(folder), folder / "share/qprof-bpf/recipes"
    shutil.copytree(QPROF.parent / "share", folder / "share")
    (folder / "bin").mkdir()
    for file in ("qprof-bpf", "libqprof.so.0"):
        shutil.copy(QPROF.parent / file, folder / "bin")
    changed = (recipes / "autoawq.yaml").read_text().replace("phase: Quantize\n", "phase: Changed\n")
    (recipes / "autoawq.yaml").write_text(changed)
    if kept == "none":
        (recipes / "python.items").unlink()
    run = service.run(folder, *command, qprof=folder / "bin/qprof-bpf")
    names = [p["name"] for p in run.profile["phases"]]
    assert names == ["read model.safetensors", "Scoring 1/3", "Scoring 2/3", "Changed", "Save"], names
    assert_nothing_lost(run.profile)
    assert not run.profile["quality"]["warnings"], run.profile["quality"]["warnings"]


def test_a_tool_of_a_name(service, folder, unhurried):
    """Lines of its log, and a function of a file that is not the user's: the service has probes there of its own."""
    tool = folder / "llama-quantize"
    shutil.copy(program("says"), tool)
    own = unhurried(tool, "stderr", STEPS)
    run = service.run(folder, tool, "stderr", STEPS)
    assert used(run.profile)["llama.cpp quantize"][0] == 0  # its lines are others
    assert run.profile["quantized_size_mb"] == own.profile["quantized_size_mb"] == 7.5
    assert step_names(run.profile) == step_names(own.profile)
    assert used(run.profile) == used(own.profile)
    assert_nothing_lost(run.profile)


@pytest.mark.parametrize("how", ["stderr", "stdout", "writev", "dup", "thread", "stdio", "colour", "killed", "exits"])
def test_own_log(service, folder, unhurried, how):
    options = ("--recipe", own_recipe(folder, match="says"), "--recipe", "none")
    status = {"killed": -9}.get(how, 0)
    own = unhurried(program("says"), how, STEPS, options=options, status=status)
    run = service.run(folder, program("says"), how, STEPS, options=options, status=status)
    assert {f"layer.{i + 1}" for i in range(STEPS)} <= {p["name"] for p in run.profile["phases"]}
    assert_same(own.profile, run.profile)


SCRIPT = """
SAYS stdout 2 > /dev/null
echo "[ 1/ 9] first - "
cat FOLDER/a.weights > /dev/null
read -r line < FOLDER/a.weights
(echo "[ 2/ 9] second - "; SAYS stderr 1)
echo "quant size = 3.25 MB"
"""


@pytest.mark.parametrize("children", ["no", "yes"])
def test_own_items_of_all_kinds(service, folder, unhurried, children):
    """A shell, and what it starts: texts, files, and programs by their lives."""
    give(folder / "a.weights", "x\n" * MIB)
    script = give(folder / "tool.sh", SCRIPT.replace("SAYS", program("says")).replace("FOLDER", str(folder)))
    options = ("--recipe", own_recipe(folder, children=children), "--recipe", "none")
    own = unhurried("/bin/sh", script, options=options)
    run = service.run(folder, "/bin/sh", script, options=options)
    names = [p["name"] for p in run.profile["phases"] if not p["name"].startswith("by hand")]
    of_children = ["layer.1", "layer.2"] if children == "yes" else []
    assert names[:len(of_children) + 2] == ["says stdout", *of_children, "first"], names
    assert "read a.weights" in names and "says stderr" in names, names
    assert run.profile["quantized_size_mb"] == 3.25
    assert_same(own.profile, run.profile)


def test_every_text(service, folder, unhurried):
    """An item without a literal: all that the job's processes write is told, and nobody's beside it."""
    text = "name: own\nmatch: {executable: says}\ncheckpoints:\n- {log: '(\\S+) - size', mark: $1}\n"
    options = ("--recipe", own_recipe(folder, text=text), "--recipe", "none")
    own = unhurried(program("says"), "stderr", STEPS, options=options)
    with subprocess.Popen([*as_user(SOMEBODY), "/bin/sh", "-c", "while :; do echo 'other - '; done"],
                          stdout=subprocess.DEVNULL) as other:
        run = service.run(folder, program("says"), "stderr", STEPS, options=options)
        other.kill()
    assert [n for n in step_names(run.profile) if n.startswith("layer.")] == [f"layer.{i + 1}" for i in range(STEPS)]
    assert_same(own.profile, run.profile)


def test_a_recipe_that_the_service_has_too(folder, unhurried):
    """The same items twice, as the audit's and as the user's: each is met once."""
    recipe = own_recipe(folder, match="says")
    with public_dir() as path, Service(path, ("--recipe", recipe)) as service:
        options = ("--recipe", recipe, "--recipe", "none")
        own = unhurried(program("says"), "stderr", STEPS, options=options)
        run = service.run(folder, program("says"), "stderr", STEPS, options=options)
        assert_same(own.profile, run.profile)


def test_a_service_without_recipes(folder):
    """It says so where a tool of a recipe ran; the user's own are heard."""
    with public_dir() as path, Service(path, ("--recipe", "none")) as service:
        run = service.run(folder, program("says"), "stderr", STEPS,
                          options=("--recipe", own_recipe(folder, match="says"), "--recipe", "none"))
        assert used(run.profile)["own"][:2] == [STEPS, 1]
        tool = folder / "llama-quantize"
        shutil.copy(program("says"), tool)
        run = service.run(folder, tool, "stderr", STEPS)
        whys = [w["why"] for w in run.profile["quality"]["warnings"]]
        assert any("'quant size" in why and "started without recipes" in why for why in whys), whys


def test_a_tool_that_a_library_makes_known(service, folder, unhurried):
    """Not by its name alone, nor as what the run began with."""
    tool, library = folder / "quantize", folder / "libllama.so"
    shutil.copy(program("says"), tool)
    shutil.copy(QPROF.parent / "libqprof.so", library)
    command = "/bin/sh", "-c", f"LD_PRELOAD={library} {tool} stderr {STEPS}; true"
    own = unhurried(*command)
    run = service.run(folder, *command)
    assert used(own.profile)["llama.cpp quantize"] == used(run.profile)["llama.cpp quantize"]
    assert run.profile["quantized_size_mb"] == own.profile["quantized_size_mb"] == 7.5


STORM = """
import os
print("ready", flush=True)
while True:
    children = [os.fork() or os._exit(0) for _ in range(50)]
    for child in children:
        os.waitpid(child, 0)
"""


def test_programs_that_follow_each_other(service, folder):
    """Each is another a millisecond later, and the service is busy: what the last one says is heard."""
    options = ("--recipe", own_recipe(folder, match="says"), "--recipe", "none")
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            storm = stack.enter_context(subprocess.Popen([PYTHON, "-c", STORM], stdout=subprocess.PIPE))
            stack.callback(storm.kill)
            assert storm.stdout.readline()
        for _ in range(15):
            profile = service.run(folder, *["env"] * 6, program("says"), "stderr", STEPS, options=options).profile
            assert used(profile)["own"][:2] == [STEPS, 1], (used(profile), losses(profile))


# ---- Processes that run


def test_running(service, folder):
    """What it says from the attach on; what it runs already is a program that begins now."""
    give(folder / "a.weights", "x\n" * MIB)
    recipe = own_recipe(folder, match="says")
    command = [*AS_NOBODY, program("says"), "stderr", str(STEPS), "wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=CLEAN_ENV) as process:
        process.stdout.readline()
        with Served(service, folder, process.pid, options=("--recipe", recipe, "--recipe", "none")) as run:
            process.send_signal(10)
            assert process.wait(DEADLINE) == 0
            profile = run.finished()
    assert used(profile)["own"][:2] == [STEPS, 1]
    assert [p["name"] for p in profile["phases"] if p["name"].startswith("layer")] == [
        f"layer.{i + 1}" for i in range(STEPS)]
    assert_nothing_lost(profile)


# ---- Nobody else


def test_what_others_write(service, folder):
    """Of a child that becomes another user's by its file, nothing is told, whatever it writes."""
    secret = folder / "says"
    shutil.copy(program("says"), secret)
    os.chown(secret, 0, 0)
    secret.chmod(0o4755)
    script = give(folder / "tool.sh", f"echo '[ 1/ 2] mine - '\n{secret} stderr 2\necho '[ 2/ 2] mine-too - '\n")
    run = service.run(folder, "/bin/sh", script,
                      options=("--recipe", own_recipe(folder, children="yes"), "--recipe", "none"))
    assert [p["name"] for p in run.profile["phases"]] == ["mine", "mine-too"], run.profile["phases"]
    assert losses(run.profile)["withheld_processes"] == 1, losses(run.profile)


def test_nobody_listens_after_a_run(service, folder):
    """After it has ended, and after a kill -9: the program on the system calls of the machine is gone."""
    recipe = own_recipe(folder, match="says")
    options = ("--recipe", recipe, "--recipe", "none")
    service.run(folder, program("says"), "stderr", STEPS, options=options)
    wait_for(lambda: not is_hooked(service.process.pid), "the system calls to be left alone")
    said = run_that_is_killed(service, folder, *options, "--", program("says"), "stdout", "1", "wait")
    wait_for(lambda: not is_hooked(service.process.pid), "the system calls to be left alone")
    subprocess.run(["pkill", "-9", "-x", "says"], check=False)
    assert said["ready"]
    run = service.run(folder, program("says"), "stderr", STEPS, options=options)
    assert used(run.profile)["own"][:2] == [STEPS, 1]


FORKS = """
import os, sys, time
def fork(n):
    for _ in range(n):
        if not os.fork():
            os.close(0)
            time.sleep(600)
print("ready", flush=True)
fork(int(sys.argv[1]))
print("forked", flush=True)
sys.stdin.readline()
os.killpg(0, 9)
"""


@contextlib.contextmanager
def forking(service, folder, n, dies=False):
    """A run of somebody's whose command has n children, which are heard as far as that goes."""
    recipe = own_recipe(folder, match="python*", children="yes", name="other.yaml")
    args = [*as_user(SOMEBODY), str(QPROF), "-q", "--service", service.socket, "-o", "/dev/null", "--recipe", recipe,
            "--", PYTHON, "-c", FORKS, str(n)]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=CLEAN_ENV,
                          start_new_session=True) as run:
        lines = Lines(run.stdout)
        lines.until("ready")
        if dies:
            run.kill()  # and the command goes on
        lines.until("forked")
        try:
            yield
        finally:
            run.stdin.write(b"\n")
            run.stdin.flush()
            run.wait()


@pytest.mark.parametrize("dies", [False, True], ids=["share", "killed"])
def test_a_user_with_many_processes(service, folder, dies):
    """Others are heard beside them, also if the run is gone and its command goes on; and at last nobody is."""
    options = ("--recipe", own_recipe(folder, match="says"), "--recipe", "none")
    with forking(service, folder, 1100, dies):
        for _ in range(3):
            profile = service.run(folder, program("says"), "stderr", STEPS, options=options).profile
            assert used(profile)["own"][:2] == [STEPS, 1], (used(profile), losses(profile))
    wait_for(lambda: not is_hooked(service.process.pid), "the system calls to be left alone")
