# SPDX-License-Identifier: GPL-2.0-only
"""The Python hook of recipes: which functions it wraps, what their calls say, and that the program
does not notice. A library that writes down what is said takes the place of libqprof."""

import subprocess
import textwrap
from pathlib import Path

import pytest

from test_python import PACKAGE, PYTHONS

HOOKS = PACKAGE / "hooks"
LIBRARY = r'''
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static unsigned short listeners = 1;
const volatile unsigned short *qprof_listeners(void) { return &listeners; }
static void say(const char *what, const char *name, double value)
{
	FILE *out = fopen(getenv("SAID"), "a");
	fprintf(out, "%s\t%s\t%.17g\n", what, name, value);
	fclose(out);
}
#define NAMED(probe) void qprof_##probe(const char *name) { say(#probe, name, 0); }
#define VALUED(probe) void qprof_##probe(const char *name, double v) { say(#probe, name, v); } \
	void qprof_##probe##_int64(const char *name, int64_t v) { say(#probe, name, (double)v); }
NAMED(begin) NAMED(end) NAMED(mark) NAMED(define) VALUED(metric) VALUED(summary)
void qprof_item(const char *name, int64_t what) { say("item", name, (double)(what & 0xffffffff)); }
'''
SAYS = ["imports", "found", "missing", "unfit", "<", ">", "*", "met"]  # user/recipes/python_items.h
SET = "7"


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    where = tmp_path_factory.mktemp("library")
    (where / "said.c").write_text(LIBRARY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", where / "libsaid.so", where / "said.c"], check=True)
    return where / "libsaid.so"


def item(does, where, name="", *metrics, number=0):
    return "\t".join(["i", "0", str(number), does, where, name, *metrics])


class Said:
    """What a program said, line by line, and what it wrote."""

    def __init__(self, path, done):
        self.done = done
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        self.all = [self._shown(*line.partition("\t")[::2]) for line in lines]
        self.marks = [said for said in self.all if not said.startswith(tuple(SAYS[:4]))]

    @staticmethod
    def _shown(what, rest):
        name, _, value = rest.rpartition("\t")
        if what != "item":
            return f"{what} {name}={float(value):g}"
        said = SAYS[int(float(value)) & 0x7f]
        return f"{said}{name}" if said in "<>*" else f"{said} {name or int(float(value)) >> 8 & 0xff}"


@pytest.fixture
def run(tmp_path, library):
    """run(items, program, library=text): the program with a module `lib`, and what it said."""
    def call(items, program, lib=LIB, python=PYTHONS[0], recipes=None, modules=None, status=0, args=()):
        for name, text in {"lib": lib, **(modules or {})}.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(textwrap.dedent(text))
        (tmp_path / "program.py").write_text(textwrap.dedent(program))
        said = tmp_path / "said"
        said.unlink(missing_ok=True)
        text = "\n".join([f"1\t{SET}", *items]) + "\n" if recipes is None else recipes
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HOOKS), "QPROF_LIBRARY": str(library), "SAID": str(said),
               "QPROF_PYTHON_RECIPES": text, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([python, *args, "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True,
                              check=False, timeout=60)
        assert done.returncode == status, done
        return Said(said, done)
    return call


LIB = '''
import functools, math

def load(path, size=5): return path
def fails(path): raise KeyError(path)
def items(n):
    "Some numbers."
    yield from range(n)
async def waits(x): return x
async def streams(n):
    for i in range(n): yield i
class Layer:
    def __init__(self, name): self.name = name
class Base:
    def inherited(self, x): return x
class Looper(Base):
    names = ["q", "k"]
    def process(self, layer, layer_index, *, extra=None): return layer_index
    @staticmethod
    def static(x): return x
    @classmethod
    def of_class(cls, x): return cls, x
    @property
    def size(self): return 3
    @functools.cached_property
    def once(self): return 4
    root = math.sqrt
    class Inner:
        def process(self): return "inner"
@functools.lru_cache
def cached(x): return x
'''


@pytest.mark.parametrize("python", PYTHONS)
def test_each_kind_of_function(run, python):
    items = [item("phase", "lib:" + where, name, number=n) for n, (where, name) in enumerate([
        ("load", "Load {path}"), ("items", "Items {n}"), ("waits", "Waits {x}"), ("streams", "Streams"),
        ("Looper.process", "Layer {layer_index} of {layer.name} by {self.names[1]}"), ("Looper.static", "Static {x}"),
        ("Looper.of_class", "Of class {0.__name__}"), ("Looper.size", "Size"), ("Looper.once", "Once"),
        ("Looper.inherited", "Inherited {1}"),
        ("Looper.root", "Root {0}"), ("Looper.Inner.process", "{__qualname__}")])]
    said = run(items, '''
        import asyncio, inspect, lib
        l = lib.Looper()
        assert lib.load("a") == "a" and lib.load(path="b") == "b"
        assert list(lib.items(2)) == [0, 1]
        assert asyncio.run(lib.waits(3)) == 3
        async def all_of(): return [i async for i in lib.streams(2)]
        assert asyncio.run(all_of()) == [0, 1]
        assert l.process(lib.Layer("attn"), 4) == 4 and l.process(layer=lib.Layer("mlp"), layer_index=5) == 5
        assert l.static(6) == 6 and lib.Looper.static(7) == 7 and l.of_class(8) == (lib.Looper, 8)
        assert l.size == 3 and l.once == 4 and l.once == 4 and l.inherited(9) == 9 and l.root(16) == 4
        assert l.Inner().process() == "inner" and lib.Base().inherited(0) == 0
        assert inspect.iscoroutinefunction(lib.waits) and inspect.isasyncgenfunction(lib.streams)
        assert inspect.isgeneratorfunction(lib.items) and lib.items.__doc__ == "Some numbers."
        assert str(inspect.signature(l.process)) == "(layer, layer_index, *, extra=None)"
    ''', python=python)
    names = ["Load a", "Load b", "Items 2", "Waits 3", "Streams", "Layer 4 of attn by k", "Layer 5 of mlp by k",
             "Static 6", "Static 7", "Of class Looper", "Size", "Once", "Inherited 9", "Root 16",
             "Looper.Inner.process"]
    assert said.marks == [mark + name for name in names for mark in "<>"], said.done
    assert sorted(s for s in said.all if s[0] == "f") == sorted(f"found {n}" for n in range(12))
    assert not said.done.stderr


def test_wildcards_take_what_the_module_defines(run):
    said = run([item("mark", "pack*.m?:*.process", "{__module__} {__qualname__}"),
                item("mark", "pack.m1:f*", "f", number=1)],
               '''
               import pack.m1, pack.m2, pack.other
               for module in (pack.m1, pack.m2, pack.other):
                   module.A().process(); module.A().other()
               pack.m1.far(); pack.m2.far()
               ''', modules={"pack/__init__": "",
                             "pack/other": "class A:\n def process(self): pass\n def other(self): pass\n",
                             "pack/m1": "from pack.other import A as B\nfrom math import fsum\nclass A:\n"
                                        " def process(self): pass\n"
                                        " def other(self): pass\n def __init__(self): pass\ndef far(): pass\n",
                             "pack/m2": "from pack.m1 import far\nclass A:\n process = lambda self: 1\n"
                                        " def other(self): pass\n"})
    assert said.marks == ["*pack.m1 A.process", "*pack.m2 A.<lambda>", "*f", "*f"], said.all


def test_items_at_the_call_and_at_the_return(run):
    """Calibration is what the program does between two calls: items of one function keep their order."""
    said = run([item("phase", "lib:load", "Prepare"), item("begin@", "lib:load", "Calibrate", number=1),
                item("phase", "lib:items", "Convert", number=2), item("end", "lib:items", "Calibrate", number=3),
                item("none", "lib:load", "", "m", "size of {path}", "{size}", "s", "{path}", "2.5", number=4),
                item("begin@", "lib:fails", "Never", number=5), item("phase", "lib:fails", "Fails", number=6)], '''
        import lib
        lib.load("x")
        list(lib.items(1))
        try: lib.fails("y")
        except KeyError as error: assert error.args == ("y",)
    ''')
    assert said.marks == ["<Prepare", "metric size of x=5", "summary x=2.5", "met 4", ">Prepare", "<Calibrate",
                          ">Calibrate", "met Calibrate", "<Convert", ">Convert",
                          "<Fails", "metric Fails raised KeyError=1", ">Fails"], said.all


def test_an_end_ends_what_was_begun(run):
    """Once for each begin, by a pattern, too; an end of nothing is met, and ends nothing."""
    said = run([item("begin", "lib:load", "Layer {path}"), item("end", "lib:fails", "Layer [ab]*", number=1),
                item("end", "lib:cached", "Layer a", number=2)], '''
        import os, lib
        def ends():
            try: lib.fails("y")
            except KeyError: pass
        ends()
        lib.load("a"); lib.load("a"); lib.load("b"); lib.load("c")
        if os.fork() == 0:
            ends()  # its parent's
            os._exit(0)
        os.wait()
        ends(); ends()
    ''')
    met = "met Layer [ab]*"
    assert said.marks == [met, "<Layer a", "<Layer a", "<Layer b", "<Layer c", met,
                          ">Layer b", ">Layer a", met, ">Layer a", met], said.all


HOSTILE = '''
class Raises:
    @property
    def name(self): raise SystemExit(1)
    def __str__(self): raise ValueError("no")
    def __getitem__(self, i): raise MemoryError
    def __float__(self): raise OverflowError
class Text(str):
    def __str__(self): raise ValueError
    def replace(self, *a): raise ValueError
class Lies:
    __class__ = property(lambda self: 1 / 0)
    def __str__(self): return 5
class Asks:
    @property
    def name(self): return "asked " + called(self)
def called(x): return "back"
def f(x): return "done"
'''


def test_hostile_objects(run):
    words = "{x} {x.name} {x[0]} {y} {1} {x.name.z}"
    said = run([item("phase", "lib:f", words, "m", "n", "{x}"),
                item("phase", "lib:called", "called {x}", number=1)], '''
        import lib
        for x in (lib.Raises(), lib.Text("a\\0b\\udc80\\tc"), lib.Lies(), [1] * 10 ** 6, object(), 10 ** 10000,
                  lib.Asks()):
            assert lib.f(x) == "done"
        assert lib.f("é" * 500) == "done"
    ''', lib=HOSTILE)
    names = [s[1:] for s in said.marks if s[0] == "<"]
    assert names[:6] == ["? ? ? ? ? ?", "a?b?\tc ? a ? ? ?", "? ? ? ? ? ?", "list ? 1 ? ? ?", "object ? ? ? ? ?",
                         "? ? ? ? ? ?"], names
    assert names[6].startswith("Asks asked back"), "what a name asks for makes no marks of its own: " + repr(names)
    assert names[7] == "é" * 127, "cut to 255 bytes, on a character"
    assert len([s for s in said.marks if s[0] == "<"]) == len([s for s in said.marks if s[0] == ">"]) == 8


def test_what_cannot_be_wrapped_is_told(run):
    said = run([item("mark", "lib:" + name, "x", number=n) for n, name in enumerate(
        ["nothing", "Looper.nothing", "cached", "Looper", "math", "Looper.names"])] +
        [item("mark", "math:sqrt", "C", number=6), item("mark", "lib.*:nothing", "x", number=7),
         item("mark", "never:nothing", "x", number=8), item("mark", "_datetime:datetime.today", "x", number=9)],
        "import lib, math, _datetime\nassert math.sqrt(4) == 2\n"
        "assert lib.cached(1) == 1 and lib.cached.cache_info().misses == 1\n")
    unfit = [f"unfit {n}" for n in (2, 3, 4, 5, 9)]
    assert sorted(said.all) == sorted(["missing 0", "missing 1", *unfit, "found 6", "*C"])


def test_pickle_and_processes(run):
    """A function goes to another process by its name, also one that is known by two."""
    said = run([item("mark", "other:load", "load {path}"), item("mark", "lib:Looper.process", "process", number=1)], '''
        import multiprocessing, pickle, lib, other, sys
        assert pickle.loads(pickle.dumps(other.load)) is other.load is lib.load
        assert pickle.loads(pickle.dumps(lib.Looper.process)) is lib.Looper.process
        if __name__ == "__main__":
            for how in ("fork", "spawn"):
                with multiprocessing.get_context(how).Pool(1) as pool:
                    assert pool.map(other.load, ["a"]) == ["a"]
    ''', modules={"other": "from lib import load\n"})
    assert said.marks == ["*load a", "*load a"], said.all


def test_a_child_ends_no_phase_of_its_parent(run):
    said = run([item("phase", "lib:load", "Load")], '''
        import os, lib
        def forks():
            pid = os.fork()
            if not pid: return
            os.waitpid(pid, 0)
        lib.load(forks())
        import sys
    ''', lib="import os\ndef load(x):\n    if os.fork() == 0: return\n    os.wait()\n")
    assert said.marks.count(">Load") == said.marks.count("<Load") == 2, said.all


def test_modules_are_told_before_they_run(run):
    said = run(["m\tlib", "m\tpack.*", item("mark", "lib:load", "load")], "import lib, pack.a, json\nlib.load(1)",
               lib="import os\ndef load(x): pass\nload(0)\n"
                   "open(os.environ['SAID'], 'a').write('mark\\truns\\t0\\n')\n",
               modules={"pack/__init__": "", "pack/a": ""})
    assert said.all == ["imports lib", "mark runs=0", "found 0", "imports pack.a", "*load"], said.all


def test_other_ways_to_import(run, tmp_path):
    """Lazy modules that put another in their place, reloads, zip files, frozen modules and -m."""
    import zipfile
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as file:
        file.writestr("zipped.py", "def f(): pass\n")
        file.writestr("zipped2.py", "def f(): pass\n")
    said = run([item("mark", "lazy:f", "lazy"), item("mark", "lib:load", "load", number=1),
                item("mark", "zipped:f", "zip", number=2)], '''
        import importlib, sys, lazy, lib
        lazy.f(); lib.load(1)
        importlib.reload(lib).load(2)
        sys.path.append("z.zip")
        import zipped2, zipped
        zipped.f(); zipped2.f()
    ''', modules={"lazy": "import sys, types\nclass M(types.ModuleType):\n    pass\nm = M(__name__)\nm.f = lambda: 1\n"
                          "sys.modules[__name__] = m\n"})
    assert said.marks == ["*lazy", "*load", "*load", "*zip"], said.all


@pytest.mark.parametrize("recipes", ["", "\n", "2\t7\ni\t0\t0\tmark\tlib:load\tx\n",
                                     "1\t7\ni\n\ti\ti\nm\nx\ty\n", "1\tx\n",
                                     "1\t7\ni\tx\t0\tmark\tlib:load\tx\n", "1\t7\ni\t0\t0\tdance\tlib:load\tx\n",
                                     "1\t7\ni\t0\t0\tmark\tlib:load\t{x\n", "1\t7\nm\t[\ni\t0\t-9\tmark\t[:]\tx\n",
                                     "\x01" * 1000])
def test_an_environment_that_makes_no_sense(run, recipes):
    """Anybody may set it. The program runs."""
    said = run([], "import lib\nassert lib.load(1) == 1\nprint('fine')", recipes=recipes)
    assert said.done.stdout == "fine\n" and said.marks == []


@pytest.mark.parametrize("option", ["-I", "-S", "-E"])
def test_where_python_leaves_the_environment_out(run, option):
    said = run([item("mark", "lib:load", "x")],
               "import sys\nsys.path.insert(0, '.')\nimport lib\nlib.load(1)", args=[option])
    assert said.all == [] and not said.done.stderr


def test_threads_and_tasks_keep_their_names(run):
    said = run([item("phase", "lib:waits", "{x}")], '''
        import asyncio, lib
        async def both(): await asyncio.gather(*(lib.waits(x) for x in "ab"))
        asyncio.run(both())
    ''', lib="import asyncio\nasync def waits(x):\n    for _ in range(3): await asyncio.sleep(0)\n")
    assert said.marks == ["<a", "<b", ">a", ">b"], said.all


def test_nothing_is_loaded_for_nothing(run):
    said = run([item("mark", "other.*:load", "x"), "m\tother", "m\t*other_tool*", "m\t?ther[a-z]x"], '''
        import sys, lib
        loaded = [m for m in sys.modules if "qprof" in m or m in ("ctypes", "inspect", "fnmatch")]
        assert not loaded, loaded
    ''', lib="def load(path): pass\n")
    assert said.all == [] and not said.done.stderr
