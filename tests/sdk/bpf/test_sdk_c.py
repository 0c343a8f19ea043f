# SPDX-License-Identifier: GPL-2.0-only
"""qprof.h and libqprof.so in real programs: what they mark is what the profile has."""

import itertools
import subprocess

import pytest

import compiling as how
from harness import (BUILD, assert_nothing_lost, metrics_of, process_of, quality, row_of, run_qprof,
                     step_names)


@pytest.fixture
def profile(unhurried):
    return unhurried


STEPS = ["Quantize Start", "Measured", "Layer Start", "Layer End", "Layer Start", "Inside",
         "Layer End", "Prepared", "Quantize End"]
METRICS = {"byte": -3, "word": 65535, "wide": -1234567890123, "single": 0.1, "real": 0.25,
           "flag": 1, "bits": 8, "literal": 0.3, "constant": -5}


def compiled(directory, text, standard="c99", name="program", extra=()):
    """A program of our own that includes qprof.h."""
    source = directory / f"{name}.c"
    source.write_text('#include "qprof.h"\n' + text)
    path = directory / name
    how.run([*how.driver("gcc", standard), "-O2", "-D_GNU_SOURCE", *how.WARNINGS, f"-I{how.INCLUDE}",
             source, *extra, "-o", path])
    return path


@pytest.mark.parametrize("compiler,standard,optimisation,link", list(itertools.product(
    how.COMPILERS, how.STANDARDS, ("-O0", "-O2", "-O3 -flto"), how.LINKS)))
def test_all_fire(profile, tmp_path, compiler, standard, optimisation, link):
    lacking = how.missing(compiler)
    if lacking:
        pytest.skip(f"{lacking} is not installed: tools/setup installs it")
    program, _ = how.build(tmp_path, compiler, standard, optimisation, link)
    run = profile(program)
    assert step_names(run.profile) == STEPS
    assert row_of(run.profile, "Measured")["metrics"] == METRICS
    assert run.truth == {"evaluated": 1, "early_and_enabled": 2}
    assert_nothing_lost(run.profile)


def test_threads_nest(profile, tmp_path):
    """Eight threads at once, all with the same names: each one's phases nest in it, and only in it."""
    run = profile(compiled(tmp_path, r'''
#include <pthread.h>
static void *work(void *barrier)
{
	pthread_barrier_wait(barrier);
	for (int i = 0; i < 25; i++) {
		QPROF_SCOPE("outer");
		for (int j = 0; j < 2; j++) {
			QPROF_SCOPE("inner");
			QPROF_SCOPE("innermost");
		}
	}
	return NULL;
}
int main(void)
{
	pthread_barrier_t barrier;
	pthread_t threads[8];

	pthread_barrier_init(&barrier, NULL, 8);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, work, &barrier);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
''', extra=["-pthread"]))
    assert_well_formed(run.profile, {"outer": (25, 0), "inner": (50, 1), "innermost": (50, 2)}, 8)


def assert_well_formed(profile, expected, threads):
    """name: (how often, at what depth), in each of so many threads."""
    assert_nothing_lost(profile)
    counts = quality(profile)
    assert not counts["unmatched_ends"] and not counts["unclosed_phases"], counts
    by_thread = {}
    for phase in profile["phases"]:
        by_thread.setdefault(phase["tid"], []).append(phase)
    assert len(by_thread) == threads, f"expected {threads} threads, got {list(by_thread)}"
    for tid, phases in by_thread.items():
        for name, (number, depth) in expected.items():
            mine = [phase for phase in phases if phase["name"] == name]
            assert len(mine) == number, f"{tid}: expected {number} of {name}, got {len(mine)}"
            assert {phase["depth"] for phase in mine} == {depth}, f"{tid}: depth of {name}"
        open_ones = []
        for phase in phases:
            start = phase["start_secs"]
            end = start + phase["duration_secs"]
            while open_ones and open_ones[-1] <= start + 1e-6 and len(open_ones) > phase["depth"]:
                open_ones.pop()
            assert len(open_ones) == phase["depth"], f"{tid}: {phase} is not inside its parent"
            assert not open_ones or end <= open_ones[-1] + 2e-6, f"{tid}: {phase} outlasts its parent"
            open_ones.append(end)


def test_fork_inside(profile, tmp_path):
    """The parent's scope is the parent's. A child that leaves it says an end of its own."""
    run = profile(compiled(tmp_path, r'''
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	QPROF_SCOPE("Parent");
	if (!fork())
		return 3;
	wait(NULL);
	return 0;
}
'''))
    steps = [(row["step"], row["pid"]) for row in run.profile["memory_usage"][1:-1]]
    parent, child = (process["pid"] for process in run.profile["processes"])
    assert steps == [("Parent Start", parent), ("Parent End", child), ("Parent End", parent)]
    assert quality(run.profile)["unmatched_ends"] == 1
    phase, = run.profile["phases"]
    assert phase["pid"] == parent and "closed" not in phase, phase
    assert process_of(run.profile, child)[0]["exit_code"] == 3


@pytest.mark.parametrize("leave,code", [('execlp("true", "true", (char *)0)', 0), ("_exit(5)", 5),
                                        ("__builtin_trap()", None)])
def test_never_left(profile, tmp_path, leave, code):
    """exec, _exit or a crash inside a scope: it stays open until the run ends, and that is said."""
    program = compiled(tmp_path, f'''
#include <unistd.h>
int main(void)
{{
	QPROF_SCOPE("Left Open");
	QPROF_MARK("Inside");
	{leave};
	return 9;
}}
''')
    run = profile(program, status=code if code is not None else -4)
    assert step_names(run.profile) == ["Left Open Start", "Inside"]
    phase = next(phase for phase in run.profile["phases"] if phase["kind"] == "pair")
    assert phase["closed"] is False, phase
    assert quality(run.profile)["unclosed_phases"] == 1
    process = run.profile["processes"][0]
    assert process.get("exit_code") == code, process


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_exception_inside(profile, tmp_path, standard):
    """The scope ends, and its row tells that an exception did it; of the one that saw none, not."""
    run = profile(compiled(tmp_path, r'''
#include <stdexcept>
static void inner() { QPROF_SCOPE("Inner"); throw std::runtime_error("x"); }
int main()
{
	QPROF_SCOPE("Outer");
	try { inner(); } catch (const std::exception &) { QPROF_SCOPE("Recovery"); }
	return 0;
}
''', standard=standard))
    assert step_names(run.profile) == ["Outer Start", "Inner Start", "Inner End", "Recovery Start",
                                       "Recovery End", "Outer End"]
    assert row_of(run.profile, "Inner End")["metrics"] == {"Inner raised": 1}
    assert metrics_of(run.profile) == {"Inner raised": 1}
    assert quality(run.profile)["unclosed_phases"] == 0


# Metrics of the whole run.

def test_summary_metrics(profile, tmp_path, out):
    run = profile(compiled(tmp_path, r'''
int main(void)
{
	QPROF_SUMMARY("model_size_mb", 1.0);
	QPROF_MARK("Middle");
	QPROF_DEFINE("model_size_mb: size of the quantized model, in MiB");
	QPROF_DEFINE("model_size_mb: size of the quantized model, in MiB");
	QPROF_SUMMARY("model_size_mb", 482.25);
	QPROF_SUMMARY("layers", 32);
	return 0;
}
'''))
    assert run.profile["model_size_mb"] == 482.25 and run.profile["layers"] == 32
    assert step_names(run.profile) == ["Middle"], "they are no steps"
    assert metrics_of(run.profile) == {}, "nor metrics of one"
    text = out.read_text()
    assert text.count("# model_size_mb: size of the quantized model, in MiB\n") == 1
    assert_nothing_lost(run.profile)


def test_summary_names_do_not_clash(profile, tmp_path, out):
    """A program's metric takes no key from the profile, whichever it names itself after."""
    before = profile("true").profile
    marks = "".join(f'\tQPROF_SUMMARY("{key}", {number});\n' for number, key in enumerate(before))
    run = profile(compiled(tmp_path, f"int main(void)\n{{\n{marks}\treturn 0;\n}}\n"))
    assert [key for key in run.profile if key in before] == list(before), "its own keys, in order"
    for number, key in enumerate(before):
        assert run.profile[f"{key} (metric)"] == number, f"{key}: {list(run.profile)}"
        assert type(run.profile[key]) is type(before[key]), f"{key} is not what it was"
    text = out.read_text()
    for key in before:
        assert text.count(f"\n{key}:") == 1, f"{key} is there twice"


def test_hostile_definition(profile, tmp_path, out):
    """A comment is one line, whatever is in it."""
    run = profile(compiled(tmp_path, r'''
int main(void)
{
	QPROF_DEFINE("a: \nphases: broken\r\n...\x1b[2J");
	QPROF_DEFINE("b: \xc2\x85nel \xe2\x80\xa8ls \xe2\x80\xa9ps \xef\xbf\xbf \xef\xbf\xbe \xff");
	QPROF_DEFINE("");
	QPROF_SUMMARY("\nkey: \"x\"\n", 1);
	QPROF_SUMMARY("unreadable", 2);
	QPROF_DEFINE((const char *)8 - 8);
	return 0;
}
'''))
    assert isinstance(run.profile["phases"], list)
    assert run.profile['\nkey: "x"\n'] == 1
    lines = out.read_text().splitlines()
    assert sum(line.startswith("# a: ") for line in lines) == 1
    assert not any(line.startswith("phases: broken") for line in lines)


def test_too_many_summaries(profile, tmp_path):
    run = profile(compiled(tmp_path, r'''
#include <stdio.h>
int main(void)
{
	char name[32];

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "metric_%d", i);
		QPROF_SUMMARY(name, i);
	}
	return 0;
}
'''))
    assert sum(key.startswith("metric_") for key in run.profile) == 256
    assert quality(run.profile)["dropped_metrics"] == 44


# libqprof.so

LIBRARY = BUILD / "libqprof.so.0"


def test_library_functions(profile, tmp_path):
    source = tmp_path / "calls.c"
    source.write_text(r'''
#include "libqprof.h"
#include <stdio.h>
int main(void)
{
	qprof_begin("Quantize");
	qprof_metric("loss", 0.125);
	qprof_metric_int64("bits", -8);
	qprof_mark("Measured");
	qprof_summary("model_size_mb", 482.25);
	qprof_summary_int64("layers", INT64_C(1) << 60);
	qprof_define("layers: how many");
	qprof_mark(NULL);
	qprof_end("Quantize");
	printf("{\"enabled\": %d, \"listeners\": %d}\n", qprof_enabled(), *qprof_listeners() != 0);
	return 0;
}
''')
    program = tmp_path / "calls"
    how.run(["gcc", *how.WARNINGS, f"-I{how.INCLUDE}", source, LIBRARY, f"-Wl,-rpath,{BUILD}", "-o",
             program])
    run = profile(program)
    assert step_names(run.profile) == ["Quantize Start", "Measured", "(no name)", "Quantize End"]
    assert row_of(run.profile, "Measured")["metrics"] == {"loss": 0.125, "bits": -8}
    assert run.profile["model_size_mb"] == 482.25 and run.profile["layers"] == 1 << 60
    assert run.truth == {"enabled": 1, "listeners": 1}
    assert how.run([program]).strip() == '{"enabled": 0, "listeners": 0}'


def test_library_by_ctypes(profile):
    run = profile("/usr/bin/python3", "-c", f'''
import ctypes, json
q = ctypes.CDLL("{LIBRARY}")
q.qprof_metric.argtypes = [ctypes.c_char_p, ctypes.c_double]
q.qprof_begin(b"From Python")
q.qprof_metric(b"loss", 0.5)
q.qprof_end(b"From Python")
print(json.dumps({{"enabled": q.qprof_enabled()}}))
''')
    assert step_names(run.profile) == ["From Python Start", "From Python End"]
    assert row_of(run.profile, "From Python End")["metrics"] == {"loss": 0.5}
    assert run.truth == {"enabled": 1}


@pytest.mark.long
def test_library_in_a_signal_handler(profile, tmp_path):
    """In the midst of malloc, of another mark, of anything."""
    source = tmp_path / "signals.c"
    source.write_text(r'''
#include "libqprof.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
static volatile sig_atomic_t hits;
static void hit(int number) { (void)number; qprof_mark("Signal"); hits++; }
int main(void)
{
	struct itimerval often = {{0, 500}, {0, 500}};
	signal(SIGALRM, hit);
	setitimer(ITIMER_REAL, &often, NULL);
	while (hits < 200) {
		char *volatile p = malloc(100000);
		qprof_mark("Loop");
		free(p);
	}
	return 0;
}
''')
    program = tmp_path / "signals"
    how.run(["gcc", f"-I{how.INCLUDE}", source, LIBRARY, f"-Wl,-rpath,{BUILD}", "-o", program])
    run = profile(program)
    names = step_names(run.profile)
    assert names.count("Signal") >= 200 and set(names) == {"Signal", "Loop"}
    assert_nothing_lost(run.profile)


def test_library_says_what_it_is():
    text = subprocess.run(["readelf", "-dW", "--dyn-syms", LIBRARY], capture_output=True, text=True,
                          check=True).stdout
    assert "libqprof.so.0" in text
    assert "INIT" not in text, f"a constructor: {text}"
    needed = [line.split("[")[1] for line in text.splitlines() if "NEEDED" in line]
    assert all(name.startswith("libc.so") for name in needed), needed
    exported = sorted(line.split()[-1].split("@")[0] for line in text.splitlines()
                      if "qprof_" in line and "@" in line)
    assert exported == ["qprof_begin", "qprof_define", "qprof_enabled", "qprof_end", "qprof_failed",
                        "qprof_item", "qprof_listeners", "qprof_mark", "qprof_metric", "qprof_metric_int64",
                        "qprof_summary", "qprof_summary_int64"]


def test_list_names_them():
    run = run_qprof("list", LIBRARY)
    assert "metric of the whole run" in run.stdout and "definition of a metric" in run.stdout, run
    assert "mark, named" not in run.stdout, run


def test_names_are_touched(profile, tmp_path):
    """The macro reads the name before the probe: seen where it must not be read, while observed."""
    program = compiled(tmp_path, r'''
#include <sys/mman.h>
#include <sys/resource.h>
int main(void)
{
	const struct rlimit no_core = {0, 0};
	const char *page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	setrlimit(RLIMIT_CORE, &no_core);
	QPROF_MARK("Before");
	QPROF_MARK(page);
	return 0;
}
''')
    how.run([program])
    run = profile(program, status=-11)
    assert step_names(run.profile) == ["Before"]
