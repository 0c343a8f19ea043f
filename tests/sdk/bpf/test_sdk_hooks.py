# SPDX-License-Identifier: GPL-2.0-only
"""Marks that others have put into a program, as launch mode finds them: no script is changed."""

import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from harness import (BUILD, NOBODY, PYTHON, QPROF, assert_nothing_lost, parse, public_dir, quality,
                     row_of, step_names)

@pytest.fixture
def profile(unhurried):
    return unhurried


ROOT = Path(__file__).resolve().parents[3]
HOOKS = BUILD / "share" / "qprof-bpf" / "python" / "hooks"

# As in Quark: the class, its singleton, its stack of names, and the one place that all
# checkpoints pass, which does nothing unless QUARK_PROFILING is set.
QUARK_PROFILER = '''
import functools, os

def profile_scope(step, user_msg=None):
    def decorator(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with GlobalProfiler().scope(step, user_msg=user_msg):
                return func(*args, **kwargs)
        return wrapper
    return decorator

class ProfileStep:
    CALIBRATION = "Calibration"
    USER_DEFINED = "User-Defined"

class GlobalProfiler:
    _instance = None
    def __new__(cls, output_path="quark_profile.yaml"):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._scope_stack = []
            cls._instance.records = []
            cls._instance.enabled = os.environ.get("QUARK_PROFILING") == "1"
            cls._instance._checkpoint("Start")
        return cls._instance
    def scope(self, step_name, user_msg=None):
        self._scope_stack.append(user_msg if user_msg is not None else step_name)
        return self
    def __enter__(self):
        self._checkpoint(f"{self._scope_stack[-1]} Start")
        return self
    def __exit__(self, *error):
        self._checkpoint(f"{self._scope_stack.pop()} End")
    def stop(self):
        self._checkpoint("End")
    def _checkpoint(self, step_name: str) -> None:
        """Record checkpoint."""
        if not self.enabled:
            return
        self.records.append(step_name)
'''

QUARK_TORCH = '''
from quark.common.profiler import GlobalProfiler, ProfileStep, profile_scope
class ModelQuantizer:
    @profile_scope("Model Quantization")
    def quantize_model(self, model):
        with GlobalProfiler().scope(ProfileStep.CALIBRATION):
            GlobalProfiler()._checkpoint("GPU Operation")
        return model
'''

SCRIPT = '''
import json, sys
from quark.torch import ModelQuantizer
from quark.common.profiler import GlobalProfiler
assert ModelQuantizer().quantize_model("m") == "m"
GlobalProfiler().stop()
assert GlobalProfiler._checkpoint.__doc__ == "Record checkpoint."
print(json.dumps({"records": GlobalProfiler().records, "path": sys.path,
                  "sitecustomize": getattr(sys.modules.get("sitecustomize"), "__file__", None)}))
'''

STEPS = ["Model Quantization Start", "Calibration Start", "GPU Operation", "Calibration End",
         "Model Quantization End"]


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return root


def quark(root, newer=True):
    """A stand-in for Quark: newer ones have a package where older ones have a module."""
    profiler = ({"quark/common/profiler/__init__.py":
                 "from .profiler import GlobalProfiler, ProfileStep, profile_scope\n",
                 "quark/common/profiler/profiler.py": QUARK_PROFILER} if newer else
                {"quark/common/profiler.py": QUARK_PROFILER})
    return write(root, {"quark/__init__.py": "", "quark/common/__init__.py": "",
                        "quark/torch/__init__.py": QUARK_TORCH, "script.py": SCRIPT, **profiler})


@pytest.mark.parametrize("newer", [True, False])
@pytest.mark.parametrize("profiling", ["0", "1"])
def test_quark(profile, tmp_path, newer, profiling):
    """Each of Quark's checkpoints is a step, whether or not its own profiler is switched on."""
    root = quark(tmp_path, newer)
    run = profile(PYTHON, root / "script.py", env={"QUARK_PROFILING": profiling})
    assert step_names(run.profile, ends=True) == ["Start", *STEPS, "End"]
    assert run.truth["records"] == (["Start", *STEPS, "End"] if profiling == "1" else [])
    assert [phase["depth"] for phase in run.profile["phases"] if phase["kind"] == "pair"] == [0, 1]
    assert str(HOOKS) not in run.truth["path"], "the hooks must not stay on sys.path"
    assert not run.stderr, run
    assert_nothing_lost(run.profile)


def test_quark_in_children(profile, tmp_path):
    """Whatever Python the program starts, has the hooks as well."""
    root = quark(tmp_path)
    run = profile("sh", "-c", f"{PYTHON} {root}/script.py; true")
    assert step_names(run.profile) == STEPS


def test_without_quark(profile):
    run = profile(PYTHON, "-c", "import json, sys; print(json.dumps({'ctypes': 'ctypes' in "
                                "sys.modules, 'qprof': [m for m in sys.modules if 'qprof' in m]}))")
    assert step_names(run.profile) == []
    assert run.truth == {"ctypes": False, "qprof": []}, "nothing may be loaded for nothing"


def test_switched_off(profile, tmp_path):
    root = quark(tmp_path)
    run = profile(PYTHON, root / "script.py", options=["--python-hooks=none"])
    assert step_names(run.profile) == []
    run = profile("env", options=["--python-hooks=none"])
    for name in ("PYTHONPATH", "QPROF_LIBRARY", "NVTX_INJECTION64_PATH", "QPROF_PYTHON_HOOKS"):
        assert f"{name}=" not in run.stdout, run


# The user's own start-up.

def test_users_sitecustomize(profile, tmp_path):
    """It runs as if there was no other, by its name, with a sys.path in which ours is not."""
    root = quark(tmp_path)
    own = write(tmp_path / "own", {"sitecustomize.py": '''
        import sys
        with open(%r, "a") as file:
            file.write(repr([__name__, "hooks" in "".join(sys.path)]) + "\\n")
        import helper  # beside it
    ''' % str(tmp_path / "ran"), "helper.py": "there = True\n"})
    run = profile(PYTHON, root / "script.py", env={"PYTHONPATH": str(own)})
    assert set((tmp_path / "ran").read_text().splitlines()) == {"['sitecustomize', False]"}
    assert run.truth["sitecustomize"] == str(own / "sitecustomize.py")
    assert step_names(run.profile) == STEPS


@pytest.mark.parametrize("text,said", [("import no_such_module", "No module named 'no_such_module'"),
                                       ("raise ValueError('mine')", "mine"),
                                       ("syntax error", "SyntaxError")])
def test_users_sitecustomize_fails(profile, tmp_path, text, said):
    """As it fails without us: Python says so and goes on. The hooks are there all the same."""
    root = quark(tmp_path)
    own = write(tmp_path / "own", {"sitecustomize.py": text})
    env = {"PYTHONPATH": str(own)}
    alone = subprocess.run([PYTHON, root / "script.py"], env={**os.environ, **env},
                           capture_output=True, text=True, check=True)
    run = profile(PYTHON, root / "script.py", env=env)
    assert said in alone.stderr and said in run.stderr, (alone.stderr, run)
    assert step_names(run.profile) == STEPS


def test_usercustomize_and_pythonpath_stay(profile, tmp_path):
    """What comes after us on PYTHONPATH keeps its order, and so does the empty one."""
    show = "import json, os, sys; print(json.dumps({'path': sys.path}))"
    for value in (f"{tmp_path}/a:{tmp_path}/b", f"{tmp_path}/a:", ""):
        env = {"PYTHONPATH": value}
        alone = subprocess.run([PYTHON, "-c", show], env={**os.environ, **env}, check=True,
                               capture_output=True, text=True, cwd=tmp_path).stdout
        run = profile(PYTHON, "-c", show, env=env, cwd=tmp_path)
        assert run.stdout == alone, f"PYTHONPATH={value!r}"


def test_hooks_of_an_installation_under_sudo(tmp_path):
    """As installed, run by sudo for a user who is nobody: found beside the executable, and read."""
    with public_dir(NOBODY) as where:
        subprocess.run(["cmake", "--install", BUILD, "--prefix", where / "usr"], check=True,
                       capture_output=True)
        root = quark(where / "work")
        env = {**os.environ, "SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY),
               "SUDO_USER": "nobody"}
        out = where / "out.yaml"
        done = subprocess.run([where / "usr/bin/qprof-bpf", "-q", "-o", out, "--", PYTHON,
                               root / "script.py"], env=env, capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0 and not done.stderr, done
        assert step_names(parse(out)) == STEPS
        assert out.stat().st_uid == NOBODY


def other_pythons():
    found = [shutil.which(name) for name in
             ("python2.7", "python3.6", "python3.7", "python3.8", "python3.9", "python3.10",
              "python3.12", "python3.13")]
    return [path for path in found if path and subprocess.run(
        [path, "-c", ""], capture_output=True, check=False).returncode == 0]


@pytest.mark.parametrize("python", other_pythons() or [PYTHON])
def test_other_pythons(profile, tmp_path, python):
    """From 3.8 on with hooks; before that they do no harm."""
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                             capture_output=True, text=True, check=True).stdout.strip()
    own = write(tmp_path / "own", {"sitecustomize.py": "import sys\nsys.mine = 1\n"})
    hooked = tuple(map(int, version.split("."))) >= (3, 8)
    root = quark(tmp_path)
    script = root / "script.py" if hooked else write(root, {
        "old.py": "import sys\nassert sys.mine\n"}) / "old.py"
    run = profile(python, script, env={"PYTHONPATH": str(own)})
    assert step_names(run.profile) == (STEPS if hooked else [])
    assert not run.stderr, run


# --python-hooks

TORCH = {
    "torch/__init__.py": "from . import autograd, cuda, profiler\n",
    "torch/autograd/__init__.py": "from . import profiler\n",
    "torch/autograd/profiler.py": '''
        class record_function:
            def __init__(self, name, args=None): self.name = name
            def __enter__(self): return self
            def __exit__(self, exc_type, exc_value, traceback): pass
            def __call__(self, f):
                def wrapper(*a):
                    with self: return f(*a)
                return wrapper
    ''',
    "torch/profiler.py": "from torch.autograd.profiler import record_function\n",
    "torch/cuda/__init__.py": "from . import nvtx\n",
    "torch/cuda/nvtx.py": '''
        from contextlib import contextmanager
        calls = []
        def range_push(msg): calls.append(msg); return 0
        def range_pop(): calls.append("pop"); return 0
        def range_start(msg): calls.append(msg); return len(calls)
        def range_end(range_id): calls.append("end")
        def mark(msg): calls.append(msg)
        @contextmanager
        def range(msg, *args, **kwargs):
            range_push(msg.format(*args, **kwargs))
            try: yield
            finally: range_pop()
    ''',
    "script.py": '''
        import cProfile, torch
        from torch.profiler import record_function
        with record_function("Recorded") as r:
            with record_function("Inner"): pass
        try:
            with record_function("Fails"): raise ValueError
        except ValueError: pass
        @record_function("Decorated")
        def f(): pass
        f()
        torch.cuda.nvtx.range_push("Pushed")
        with torch.cuda.nvtx.range("Layer {}", 3): torch.cuda.nvtx.mark("Marked")
        assert torch.cuda.nvtx.range_pop() == 0
        torch.cuda.nvtx.range_pop()
        a = torch.cuda.nvtx.range_start("One"); b = torch.cuda.nvtx.range_start("Two")
        torch.cuda.nvtx.range_end(a); torch.cuda.nvtx.range_end(b)
        assert torch.cuda.nvtx.calls[0] == "Pushed" and len(torch.cuda.nvtx.calls) == 10
        with cProfile.Profile() as p: sum(range(10))
        assert p.getstats()
    ''',
}

TORCH_STEPS = ["Recorded Start", "Inner Start", "Inner End", "Recorded End", "Fails Start",
               "Fails End", "Decorated Start", "Decorated End", "Pushed Start", "Layer 3 Start",
               "Marked", "Layer 3 End", "Pushed End", "One Start", "Two Start", "One End",
               "Two End", "cProfile Start", "cProfile End"]


def test_torch_stand_in(profile, tmp_path):
    root = write(tmp_path, TORCH)
    run = profile(PYTHON, root / "script.py", options=["--python-hooks"])
    assert step_names(run.profile) == TORCH_STEPS, run
    assert row_of(run.profile, "Fails End")["metrics"] == {"Fails raised ValueError": 1}
    assert not quality(run.profile)["unmatched_ends"] and not run.stderr, run
    run = profile(PYTHON, root / "script.py")
    assert step_names(run.profile) == [], "only when asked for"


def test_quark_and_torch_together(profile, tmp_path):
    root = quark(write(tmp_path, TORCH))
    run = profile(PYTHON, root / "script.py", options=["--python-hooks=all"])
    assert step_names(run.profile) == STEPS


@pytest.mark.full
def test_real_torch(profile, tmp_path):
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip("python3-torch is not installed: tools/check --full installs it")
    path = write(tmp_path, {"script.py": '''
        import torch
        from torch.profiler import record_function
        @record_function("Decorated")
        def multiply(x): return x @ x
        with record_function("Quantize"):
            multiply(torch.ones(64, 64))
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
            with record_function("Profiled"):
                multiply(torch.ones(8, 8))
        assert any(e.key == "Profiled" for e in p.key_averages()), "its own profiler works on"
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(4)).sum().backward()
        optimizer.step()
        try:
            torch.cuda.nvtx.range_push("No CUDA here")
        except RuntimeError:
            pass
    '''}) / "script.py"
    run = profile(python, path, options=["--python-hooks"])
    names = step_names(run.profile)
    assert names[:4] == ["Quantize Start", "Decorated Start", "Decorated End", "Quantize End"], names
    assert names[4:8] == ["Profiled Start", "Decorated Start", "Decorated End", "Profiled End"]
    assert names[8:] == ["Optimizer.step#SGD.step Start", "Optimizer.step#SGD.step End"], names
    assert quality(run.profile)["unmatched_ends"] == 0


def test_nvtx(profile, tmp_path):
    """A program that knows NVTX and not us, by the injection library."""
    program = tmp_path / "nvtx_caller"
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", ROOT / "tests/sdk/nvtx_caller.c", "-o",
                    program], check=True)
    run = profile(program, options=["--python-hooks"])
    assert run.truth == {"injected": True, "depths": [0, 1, 0]}
    names = step_names(run.profile)
    assert names[:14] == ["outer Start", "innér 😀 Start", "in domain Start", "innér 😀 End",
                          "in domain End", "outer End", "first Start", "registered Start",
                          "first End", "registered End", "mark", "(unnamed range)", "deep Start",
                          "deep Start"]
    assert names.count("deep Start") == names.count("deep End") == 64
    counts = quality(run.profile)
    assert not counts["unmatched_ends"] and not counts["unclosed_phases"], counts
    assert profile(program).truth == {"injected": False}, "only when asked for"


def test_nvtx_of_another(profile, tmp_path):
    """Another tool is there already: it stays, and the profile says what it lacks."""
    run = profile("env", options=["--python-hooks"], env={"NVTX_INJECTION64_PATH": "/other.so"})
    assert "NVTX_INJECTION64_PATH=/other.so\n" in run.stdout
    warnings = run.profile["quality"]["warnings"]
    assert any("NVTX" in warning["what"] for warning in warnings), warnings


def test_bad_value():
    done = subprocess.run([QPROF, "--python-hooks=some", "--", "true"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 125 and "none, quark, all" in done.stderr, done
