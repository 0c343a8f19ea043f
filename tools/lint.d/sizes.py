#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Sizes of sources: no long function, no long file, and nothing written twice. usage: sizes.py

A function has at most 70 lines, a file 700, and no two places share twelve lines in a row. Blank
lines, comments and includes are no lines here, and neither is how far a line is indented.
"""
import ast
import os
import re
import sys

DIRECTORIES = ["bpf", "tests", "tools", "user"]
SUFFIXES = (".c", ".h", ".py", ".js", ".css", ".html")
DATA = re.compile(r"^tests/report/(golden\.|edges/)")
FUNCTION, FILE, SHARED = 70, 700, 12
NO_LINE = re.compile(r"^(#|//|/?\*|import |from \S+ import |$)")


def sources():
    """Paths of all sources, those of scripts without a suffix included."""
    for directory in DIRECTORIES:
        for where, folders, names in os.walk(directory):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                path = os.path.join(where, name)
                if DATA.match(path) or os.path.islink(path):
                    continue
                if name.endswith(SUFFIXES) or ("." not in name and is_script(path)):
                    yield path


def is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def functions_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def functions_of_c(lines):
    """Also of JavaScript and shell: from a brace at a function's head to one in the first column."""
    head = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            head = number - 1
        elif line.endswith(") {") and not line[0].isspace():
            head = number
        elif line.startswith("}") and head:
            yield lines[head - 1], head, number
            head = None


def told_lines(lines):
    """(number, line) of those that say something, without their indentation."""
    stripped = ((number, line.strip()) for number, line in enumerate(lines, 1))
    return [(number, line) for number, line in stripped if not NO_LINE.match(line)]


def shared(texts):
    """What stands in two places: ((path, line), (path, line), lines), each run once."""
    seen, last = {}, None
    for path, lines in texts.items():
        told = told_lines(lines)
        for i in range(len(told) - SHARED + 1):
            window = tuple(line for _, line in told[i:i + SHARED])
            here = path, i
            there = seen.setdefault(window, here)
            if there == here or (there[0] == path and i - there[1] < SHARED):
                continue
            # The next window of the run that was told already.
            again = last == ((there[0], there[1] - 1), (path, i - 1))
            last = there, here
            if not again:
                yield (there[0], told_lines(texts[there[0]])[there[1]][0]), (path, told[i][0])


def main():
    found, texts = [], {}
    for path in sorted(sources()):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        lines = texts[path] = text.splitlines()
        if len(lines) > FILE:
            found.append(f"{path}: {len(lines)} lines, at most {FILE}")
        python = path.endswith(".py") or lines[0].endswith("python3")
        for name, begin, end in functions_of_python(text) if python else functions_of_c(lines):
            if end - begin + 1 > FUNCTION:
                found.append(f"{path}:{begin}: {name}: {end - begin + 1} lines, at most {FUNCTION}")
    for there, here in shared(texts):
        found.append(f"{here[0]}:{here[1]}: {SHARED} lines are those of {there[0]}:{there[1]}")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
