# SPDX-License-Identifier: GPL-2.0-only
"""Compiles marks.c in all the ways in which qprof.h is promised to work."""

import itertools
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "user" / "sdk" / "include"
SOURCE = HERE / "marks.c"

COMPILERS = ("gcc", "clang")
STANDARDS = ("c99", "c++11")
OPTIMISATIONS = ("-O0", "-O1", "-O2", "-O3", "-O2 -fPIC", "-O3 -flto")
LINKS = ("program", "static", "shared")

WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Werror")


def missing(compiler):
    """What has to be installed first; None where nothing has."""
    needed = [compiler, {"gcc": "g++", "clang": "clang++"}[compiler]]
    return next((name for name in needed if not shutil.which(name)), None)


def driver(compiler, standard):
    """The compiler's command for that language."""
    if not standard.startswith("c++"):
        return [compiler, "-x", "c", f"-std={standard}"]
    return [{"gcc": "g++", "clang": "clang++"}[compiler], "-x", "c++", f"-std={standard}"]


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(directory, compiler, standard, optimisation, link, extra=()):
    """The program, and the file that has the probes."""
    flags = [*driver(compiler, standard), *optimisation.split(), *WARNINGS, *extra, f"-I{INCLUDE}"]
    program = directory / "marks"
    if "-flto" in flags and compiler == "clang":
        flags.append("-fuse-ld=lld" if shutil.which("ld.lld") else "-fuse-ld=gold")
    if link == "program":
        run([*flags, SOURCE, "-o", program])
        return program, program
    if link == "static":
        run([*flags, "-static", SOURCE, "-o", program])
        return program, program
    library = directory / "libmarks.so"
    run([*flags, "-fPIC", "-shared", "-DMARKS_LIBRARY", SOURCE, "-o", library])
    run([*flags, "-DMARKS_MAIN", SOURCE, "-x", "none", library, "-Wl,-rpath,$ORIGIN", "-o", program])
    return program, library


def variants(optimisations=OPTIMISATIONS):
    return list(itertools.product(COMPILERS, STANDARDS, optimisations, LINKS))
