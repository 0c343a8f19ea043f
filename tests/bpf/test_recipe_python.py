# SPDX-License-Identifier: GPL-2.0-only
"""Recipes of Python programs: functions that are wrapped as their module is imported."""

import subprocess
import textwrap

import pytest

from harness import PYTHON, QPROF_PACKAGE, assert_nothing_lost, quality, row_of, run_qprof, step_names, undisturbed

ROUNDING_SECS = 0.000002  # of two times of the profile

# As a quantizer is: a package, a class for each method, a loop over layers that its base class has.
QUANTIZER = {
    "tool/__init__.py": "",
    "tool/looper.py": """
        import mmap, qprof
        class Layer:
            def __init__(self, index): self.name = f"blk.{index}.weight"
        def touch(megabytes):
            with mmap.mmap(-1, megabytes << 20) as block:
                for at in range(0, len(block), mmap.PAGESIZE): block[at] = 1
        class Base:
            def run(self, count):
                return [self.process(Layer(i), layer_index=i) for i in range(count)]
        class GPTQ(Base):
            def process(self, layer, layer_index):
                with qprof.scope(f"by hand {layer_index}"):
                    touch(4 + layer_index)
                    return layer.name
        def save(path, names):
            with qprof.scope("by hand save"):
                touch(3)
                print("quant size =", len(names), "MB", flush=True)
    """,
    "quantize.py": """
        import sys
        import tool.looper
        tool.looper.save(sys.argv[1], tool.looper.GPTQ().run(5))
    """}
RECIPE = """
name: tool
read_from: "tests/bpf/test_recipe_python.py"
match: {executable: "python*", modules: "tool.*"}
checkpoints:
- {python: "tool.*:*.process", phase: "Layer {layer_index} {layer.name}"}
- {python: "tool.looper:save", phase: "Save {path}", metric: {layers: "{names}", parts: 7}}
- {log: 'quant size = (\\d+)', summary: {quantized_size_mb: $1}}
"""


@pytest.fixture
def profile(unhurried):
    return unhurried


@pytest.fixture
def recipe(tmp_path):
    """recipe(text): the options that make qprof-bpf use only this recipe."""
    def write(text=RECIPE):
        (tmp_path / "recipe.yaml").write_text(text)
        return ["--recipe", tmp_path / "recipe.yaml", "--recipe", "none"]
    return write


@pytest.fixture
def files(tmp_path):
    """files({path: text}): where they are."""
    def write(texts):
        for path, text in texts.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(textwrap.dedent(text))
        return tmp_path
    return write


def phases(profile):
    return {p["name"]: p for p in profile["phases"] if p["kind"] == "pair"}


def matched(profile, name="tool"):
    use = next(r for r in profile["recipes"] if r["name"] == name)
    return use["processes"], [item["matched"] for item in use["checkpoints"]]


def warnings(profile, name="tool"):
    return [w["why"] for w in profile["quality"].get("warnings", []) if w["what"] == name]


def test_phases_by_wrapping_are_those_by_hand(profile, recipe, files):
    """The hand's marks are the first and last of each function: both spans have the same peak."""
    where = files(QUANTIZER)
    run = profile(PYTHON, where / "quantize.py", "q.bin", options=recipe(), env=QPROF_PACKAGE)
    by_name = phases(run.profile)
    names = [f"Layer {i} blk.{i}.weight" for i in range(5)] + ["Save q.bin"]
    assert [n for n in by_name if not n.startswith("by hand")] == names, list(by_name)
    for name in names:
        recipes, hand = by_name[name], by_name["by hand " + name.split()[1].replace("q.bin", "save")]
        assert recipes["peak_memory_mb"] == hand["peak_memory_mb"], (recipes, hand)
        assert recipes["end_memory_mb"] == pytest.approx(hand["end_memory_mb"], abs=0.02), (recipes, hand)
        before = hand["start_secs"] - recipes["start_secs"]
        after = recipes["duration_secs"] - hand["duration_secs"] - before
        assert before >= -ROUNDING_SECS and after >= -ROUNDING_SECS, (recipes, hand)
        assert (recipes["depth"], hand["depth"]) == (0, 1)
    assert matched(run.profile) == (1, [5, 1, 1])
    assert run.profile["quantized_size_mb"] == 5, "its log is heard from the import on"
    assert row_of(run.profile, "Save q.bin Start")["metrics"] == {"parts": 7}, "a list is no number"
    assert not run.stderr and not warnings(run.profile), run.stderr
    assert_nothing_lost(run.profile)


def test_times_are_within_a_millisecond(profile, recipe, files, record_property):
    """Of the median call: a machine may take the CPU away even from such a program."""
    calls = 15
    where = files({**QUANTIZER, "quantize.py": QUANTIZER["quantize.py"].replace("run(5)", f"run({calls})")})
    run = profile(*undisturbed(), PYTHON, where / "quantize.py", "q", options=recipe(), env=QPROF_PACKAGE)
    by_name = phases(run.profile)
    pairs = [(by_name[f"Layer {i} blk.{i}.weight"], by_name[f"by hand {i}"]) for i in range(calls)]
    late = sorted(hand["start_secs"] - call["start_secs"] for call, hand in pairs)
    early = sorted(call["start_secs"] + call["duration_secs"] - hand["start_secs"] - hand["duration_secs"]
                   for call, hand in pairs)
    for what, times in (("begin", late), ("end", early)):
        record_property(f"python_{what}_us", round(times[calls // 2] * 1e6))
        record_property(f"python_{what}_worst_us", round(times[-1] * 1e6))
        assert times[calls // 2] < 0.001, f"{what}: {times} s from the mark"


def test_each_process_for_itself(profile, recipe, files):
    """Two programs at once, a pool that is forked, one that is spawned."""
    where = files({**QUANTIZER, "pool.py": """
        import multiprocessing, sys, tool.looper
        if __name__ == "__main__":
            with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                pool.starmap(tool.looper.save, [("a", []), ("b", [])], chunksize=1)
    """})
    run = profile("sh", "-c",
                  f"cd {where}; {PYTHON} pool.py fork & {PYTHON} pool.py spawn & {PYTHON} quantize.py c & wait",
                  options=recipe(), env=QPROF_PACKAGE)
    count = {name: sum(p["name"] == name for p in run.profile["phases"]) for name in ("Save a", "Save b", "Save c")}
    assert count == {"Save a": 2, "Save b": 2, "Save c": 1}, run.profile["phases"]
    assert matched(run.profile)[1][:2] == [5, 5], run.profile["recipes"]
    assert quality(run.profile)["unmatched_ends"] == quality(run.profile)["unclosed_phases"] == 0


def test_a_tool_that_is_known_already_stays(profile, recipe, files):
    """The first recipe of a tool that recognises a process listens to its log; calls are heard anyway."""
    where = files({**QUANTIZER, "first.yaml": """
        name: first
        match: {executable: "python*", arguments: quantize.py}
        checkpoints: [{log: "quant size", mark: heard by the first}]
    """})
    run = profile(PYTHON, where / "quantize.py", "q", env=QPROF_PACKAGE,
                  options=["--recipe", where / "first.yaml", *recipe()])
    assert "heard by the first" in step_names(run.profile) and "quantized_size_mb" not in run.profile
    assert matched(run.profile, "first") == (1, [1]) and matched(run.profile) == (1, [5, 1, 0])


def test_without_a_match_it_is_of_whoever_imports(profile, recipe, files):
    where = files(QUANTIZER)
    text = "name: tool\ncheckpoints: [{python: 'tool.looper:save', mark: saved}, {python: 'never:f', mark: x}]\n"
    run = profile("sh", "-c", f"cd {where}; {PYTHON} quantize.py a; {PYTHON} -c 'import tool.looper'",
                  options=recipe(text), env=QPROF_PACKAGE)
    assert matched(run.profile) == (1, [1, 0]), "one process of two called it"
    assert not warnings(run.profile), warnings(run.profile)
    run = profile(PYTHON, "-c", "pass", options=recipe(text))
    assert "recipes" not in run.profile and not warnings(run.profile)


@pytest.mark.parametrize("item, why", [
    ("tool.looper:gone", "'tool.looper:gone': the module has no such function; the recipe was made for tests/bpf/"),
    ("tool.looper:GPTQ", "'tool.looper:GPTQ': is there, and is no function that can be wrapped; the recipe was made"),
    ("tool.moved:save", "'tool.moved:save': never seen; the recipe was made for tests/bpf/"),
    ("tool.looper:Layer.__init__", None)])
def test_what_never_was_is_told(profile, recipe, files, item, why):
    where = files(QUANTIZER)
    text = RECIPE + f"- {{python: '{item}', mark: x}}\n"
    run = profile(PYTHON, where / "quantize.py", "q", options=recipe(text), env=QPROF_PACKAGE)
    said = warnings(run.profile)
    assert len(said) == (why is not None) and (not why or said[0].startswith(why)), said
    assert matched(run.profile)[1][:3] == [5, 1, 1]


def test_a_function_that_was_not_called_is_no_warning(profile, recipe, files):
    where = files(QUANTIZER)
    run = profile(PYTHON, where / "quantize.py", "q", env=QPROF_PACKAGE,
                  options=recipe(RECIPE + "- {python: 'tool.looper:Base.run', mark: x}\n"
                                          "- {python: 'tool.looper:GPTQ.run', mark: y}\n"))
    assert matched(run.profile)[1][3:] == [0, 1] and not warnings(run.profile), warnings(run.profile)


def test_attached(target, attach, recipe, files):
    """A program that runs already was not started with the hooks."""
    where = files({"wait.py": """
        import json, os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        print(json.dumps({"ready": os.getpid()}), flush=True)
        signal.sigwait({signal.SIGUSR1})
    """})
    text = RECIPE.replace('modules: "tool.*"', "arguments: wait.py")
    idle = target(str(where / "wait.py"), path=PYTHON)
    with attach(idle.pid, options=recipe(text)) as attached:
        idle.tell()
        idle.wait()
        profile = attached.finished()
    said = warnings(profile)
    why = "'tool.*:*.process', 'tool.looper:save': calls of Python are heard only in commands that qprof-bpf starts"
    assert why in said[-1], said
    assert matched(profile) == (1, [0, 0, 0])


def test_attached_with_a_recipe_of_calls_alone(target, attach):
    """Nothing can recognise such a process: the user has asked, and is told."""
    idle = target("exit:0")
    with attach(idle.pid, options=["--recipe", "torch-ao"]) as attached:
        idle.tell()
        idle.wait()
        profile = attached.finished()
    said = warnings(profile, "torch.ao")
    assert len(said) == 1 and "heard only in commands that qprof-bpf starts" in said[0], said
    assert "recipes" not in profile


def test_hooks_that_are_switched_off(profile, recipe):
    run = profile("sh", "-c", "env; exec " + PYTHON + " -c 'import this' tool.py",
                  options=["--python-hooks=none", *recipe(RECIPE.replace('modules: "tool.*"', "arguments: tool.py"))])
    assert "QPROF_PYTHON" not in run.stdout
    assert "--python-hooks=none" in warnings(run.profile)[-1], warnings(run.profile)


def test_what_a_program_says_by_itself(profile, recipe, files):
    """The probe is anybody's. Nothing breaks, and what is no item of ours is not counted."""
    where = files({"says.py": """
        import ctypes, os
        library = ctypes.CDLL(os.environ["QPROF_LIBRARY"])
        say = lambda name, what: library.qprof_item(name, ctypes.c_int64(what))
        own = int(os.environ["QPROF_PYTHON_RECIPES"].split()[1])
        for what in (0, 1, 7, 8, 0x7f, 0x84, 0xff, 0xffff84, 2**63 - 1, -1, own << 32 | 0xffff84, own << 32 | 0xff0084,
                     own << 32 | 0x2084, own << 32 | 0x0284):  # no such recipe, no such item, the item of a log
            say(b"x" * 300, what)
        for i in range(100): say(b"tool.%d" % i, 0)
        say(b"\\xff\\n", 0x84); say(None, 0x85)
        say(b"counted", own << 32 | 0x86)
    """})
    run = profile(PYTHON, where / "says.py", options=recipe())
    assert matched(run.profile) == (1, [1, 0, 0]), "it said that it imports tool.0"
    assert "counted" in step_names(run.profile)


def test_too_many_items(profile, recipe, files):
    where = files(QUANTIZER)
    names = "x" * 400
    for i in range(8):
        items = "".join(f"- {{python: 'm{i}:f{n}', mark: {names}}}\n" for n in range(32))
        files({f"many{i}.yaml": f"name: many {i}\ncheckpoints:\n{items}"})
    many = [option for i in range(8) for option in ("--recipe", where / f"many{i}.yaml")]
    run = profile(PYTHON, where / "quantize.py", "q", options=[*recipe(), *many], env=QPROF_PACKAGE)
    assert matched(run.profile) == (1, [5, 1, 1]), "the first is not left out"
    left_out = [i for i in range(8) if warnings(run.profile, f"many {i}")]
    assert left_out, "nothing was too long"
    assert "left out: all recipes together have too many python items" in warnings(run.profile, "many 7")[0]


# ---- PyTorch ------------------------------------------------------------------------------------

NET = """
    import torch
    from torch import nn
    from torch.ao import quantization as Q
    torch.manual_seed(1)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = Q.QuantStub(), Q.DeQuantStub()
            self.body = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(3)])
        def forward(self, x): return self.dequant(self.body(self.quant(x)))
    def use(model):
        for _ in range(3): model(torch.randn(8, 64))
    torch.save(Net().state_dict(), "m.pt")
    model = Net(); model.load_state_dict(torch.load("m.pt")); model.eval()
"""
STATIC = "    model.qconfig = Q.get_default_qconfig('fbgemm')\n"
TRAINED = "    model.train(); model.qconfig = Q.get_default_qat_qconfig('fbgemm')\n"
FX = "    from torch.ao.quantization import quantize_fx, get_default_qconfig_mapping\n"
LOADED = ["Save m.pt", "Load m.pt"]


@pytest.mark.parametrize("program, names", [
    (STATIC + "    p = Q.prepare(model); use(p); q = Q.convert(p)\n", ["Prepare", "Calibrate", "Convert"]),
    (STATIC + "    q = Q.quantize(model, lambda m: use(m), ())\n", ["Quantize", "Prepare", "Calibrate", "Convert"]),
    ("    q = torch.quantization.quantize_dynamic(model, {nn.Linear})\n", ["Quantize dynamically", "Convert"]),
    (TRAINED + "    p = Q.prepare_qat(model); use(p); q = Q.convert(p.eval())\n",
     ["Prepare for training", "Convert", "Prepare", "Calibrate", "Train", "Convert"]),
    (FX + "    p = quantize_fx.prepare_fx(model, get_default_qconfig_mapping(), torch.randn(8, 64)); use(p)\n"
     "    q = quantize_fx.convert_fx(p)\n", ["Prepare", "Calibrate", "Convert"]),
])
def test_torch_ao(profile, files, program, names):
    """Debian's PyTorch, with the recipe that comes with qprof-bpf and without a mark."""
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip("python3-torch is not installed: tools/check --full installs it")
    script = NET + program + "    torch.save(q.state_dict(), open('q.pt', 'wb'))\n"
    run = profile(PYTHON, "q.py", cwd=files({"q.py": script}))
    pairs = [p for p in run.profile["phases"] if p["kind"] == "pair"]
    got, expected = [p["name"] for p in pairs], [*LOADED, *names, "Save <_io.BufferedWriter name='q.pt'>"]
    assert got == expected, f"expected {expected}, got {got}"
    assert all(p.get("closed", True) for p in pairs), pairs
    assert quality(run.profile)["unmatched_ends"] == 0 and not warnings(run.profile, "torch.ao")
    assert_nothing_lost(run.profile)


def test_a_bad_item_stops_before_anything_runs(recipe, out, tmp_path):
    ran = tmp_path / "ran"
    run = run_qprof("-o", out, *recipe(RECIPE.replace("{path}", "{path()}")), "--", "touch", ran)
    assert run.returncode == 125 and "recipe.yaml:7: {layer} is an argument" in run.stderr, run
    assert len(run.stderr.splitlines()) == 1 and not ran.exists() and not out.exists(), run
