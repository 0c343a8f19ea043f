#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a mark costs, from C and from Python, observed and not, and what reading /proc costs beside it.

usage: sdk.py [--build DIR] [--hits N] [--rounds N] [--json FILE]     (as root)

Prints a table and, on request, JSON: medians over the rounds, of the CPU time of the thread, in which
a hit and all that the kernel does at it are, and other work on the machine is not. Nothing here
passes or fails.
The psutil way is what profilers inside the process do at a checkpoint: RSS and I/O of the process
and of its children; without python3-psutil it is left out.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
SDK = os.path.join(HERE, "../../../user/sdk")

# A loop with and without the mark; the difference is the mark's.
C_PROGRAM = r'''
#include "libqprof.h"
#include "qprof.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
#define LOOP(what, n) ({ double begun = now(); for (long i = 0; i < (n); i++) { what; __asm__ volatile("" : "+r"(i)); } (now() - begun) / (n); })
int main(int argc, char **argv)
{
	long n = atol(argv[1]);
	double warm = LOOP((void)0, n), empty = LOOP((void)0, n), value = argc;

	(void)warm;
	printf("{\"macro mark\": %.3f, \"macro metric\": %.3f, \"function mark\": %.3f}\n",
	       LOOP(QPROF_MARK("m"), n) - empty, LOOP(QPROF_METRIC("v", value * value / 3), n) - empty,
	       LOOP(qprof_mark("m"), n) - empty);
	return 0;
}
'''

PYTHON_PROGRAM = r'''
import json, sys, time
import qprof
n = int(sys.argv[1])
def loop(what):
    clock = time.thread_time_ns
    r = range(n)
    begun = clock()
    for _ in r: pass
    empty = clock() - begun
    begun = clock()
    for _ in r: what()
    return (clock() - begun - empty) / n
def scope():
    with qprof.scope("s"): pass
@qprof.profile_scope("d")
def decorated(): pass
def bare(): pass
print(json.dumps({"mark": loop(lambda: qprof.mark("m")), "metric": loop(lambda: qprof.metric("v", 0.5)),
    "begin and end of a scope": loop(scope), "decorated call": loop(decorated) - loop(bare)}))
'''

PSUTIL_PROGRAM = r'''
import json, sys, time, psutil
n = int(sys.argv[1])
process = psutil.Process()
def look():
    for one in [process, *process.children(recursive=True)]:
        one.memory_info().rss; one.io_counters()
begun = time.thread_time_ns()
for _ in range(n): look()
print(json.dumps({"look": (time.thread_time_ns() - begun) / n}))
'''


def last_json(command, **kwargs):
    out = subprocess.run(command, check=True, capture_output=True, text=True, **kwargs).stdout
    return json.loads(out.splitlines()[-1])


def medians(rounds, run):
    found = [run() for _ in range(rounds)]
    return {key: statistics.median(one[key] for one in found) for key in found[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(HERE, "../../../build"))
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--hits", type=int, default=3000, help="observed, a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json")
    args = parser.parse_args()
    build = os.path.realpath(args.build)
    library = os.path.join(build, "libqprof.so.0")
    env = {**os.environ, "PYTHONPATH": os.path.join(SDK, "python"), "QPROF_LIBRARY": library}
    figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        source, program = os.path.join(scratch, "cost.c"), os.path.join(scratch, "cost")
        with open(source, "w") as file:
            file.write(C_PROGRAM)
        subprocess.run(["gcc", "-O2", f"-I{SDK}/include", source, library, f"-Wl,-rpath,{build}", "-o",
                        program], check=True)
        observe = [os.path.join(build, "qprof-bpf"), "-q", "--python-hooks=none", "-o",
                   os.path.join(scratch, "out.yaml"), "--"]
        python = [args.python, "-c", PYTHON_PROGRAM]
        for who, command, n in (("C", [program], 20_000_000), ("Python", python, 200_000)):
            for key, ns in medians(args.rounds, lambda: last_json([*command, str(n)], env=env)).items():
                figures[f"{who}, nobody listens: {key}, ns"] = ns
        # Pairwise, since the machine has its moods: the bare hit is the C program's next to it.
        found = []
        for _ in range(args.rounds):
            bare = last_json([*observe, program, str(args.hits)], env=env)["function mark"]
            mine = last_json([*observe, *python, str(args.hits)], env=env)
            found.append({"C, observed: mark, ns": bare, "Python, observed: mark, ns": mine["mark"],
                          "Python, observed: mark, more than from C, ns": mine["mark"] - bare,
                          "Python, observed: begin and end of a scope, ns":
                              mine["begin and end of a scope"]})
        figures.update({key: statistics.median(one[key] for one in found) for key in found[0]})
        if subprocess.run([args.python, "-c", "import psutil"], capture_output=True,
                          check=False).returncode == 0:
            figures["psutil at a checkpoint, without children, ns"] = medians(
                args.rounds, lambda: last_json([args.python, "-c", PSUTIL_PROGRAM, "200"]))["look"]
        else:
            print("python3-psutil is not installed: that line is left out", file=sys.stderr)
    for what, figure in figures.items():
        print(f"{what:64} {figure:12.2f}")
    if args.json:
        with open(args.json, "w") as out:
            json.dump(figures, out, indent=2)


if __name__ == "__main__":
    main()
