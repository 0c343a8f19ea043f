#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
The tables of docs/kernels.md, from what the tests found on each kernel.

usage: tests/vm/tables.py [--write | --check] [RESULTS.xml...]

Without an option it prints them; --write puts them into docs/kernels.md, between the marks that are there
for it; --check fails unless what is there has the shape that --write gives it. RESULTS are pytest's
JUnit files: by default those of tools/check --vm, in build/ or QPROF_BUILD. A kernel that is in none of
them keeps what docs/kernels.md says of it. Kernels are told apart by their series, such as 6.12.
"""
import argparse
import os
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "kernels.md"
BUILD = Path(os.environ.get("QPROF_BUILD", ROOT / "build"))

# The columns of the first table, and the property that a test of tests/bpf records for each.
FEATURES = {
    "memory": "rss", "calls": "io_calls", "splice without libc": "splice_past_libc",
    "checkpoints": "checkpoints", "memory at End": "end", "tracepoints": "tracepoints",
}
TABLES = {"features": "kernel", "tests": "kernel", "errors": "program"}
MARK = "<!-- {} of tests/vm/tables.py -->"
END = "<!-- end -->"


class Table:
    """Cells by the names of their row and column; parsed from markdown and rendered to it."""

    def __init__(self, corner, lines=()):
        self.corner, self.columns, self.rows = corner, [], {}
        parts = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in lines]
        if parts:
            self.columns = parts[0][1:]
            for name, *cells in parts[2:]:
                self.rows[name] = dict(zip(self.columns, cells))

    def set(self, row, column, value):
        if column not in self.columns:
            self.columns.append(column)
        self.rows.setdefault(row, {})[column] = value.replace("|", "\\|")

    def lines(self):
        yield f"| {self.corner} | {' | '.join(self.columns)} |"
        yield "|---" * (len(self.columns) + 1) + "|"
        for name, cells in self.rows.items():
            yield f"| {name} | {' | '.join(cells.get(column, '') for column in self.columns)} |"

    def sort(self, rows=None, columns=None):
        if rows:
            self.rows = dict(sorted(self.rows.items(), key=lambda item: rows(item[0])))
        if columns:
            self.columns.sort(key=columns)


class Results:
    """What the tests found on one kernel."""

    def __init__(self, release):
        self.release = release
        self.properties, self.errors, self.counts = {}, {}, {}

    def add(self, case):
        subject = case.get("classname").split("test_")[-1]
        passed, skipped, failed = self.counts.get(subject, (0, 0, 0))
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed += 1
        elif "skipped" in kinds:
            skipped += 1
        else:
            passed += 1
        self.counts[subject] = passed, skipped, failed
        for found in case.iter("property"):
            if found.get("name") == "error_pages":
                name = re.search(r"\[(.*)\]", case.get("name")).group(1)
                self.errors[f"{subject} {name}"] = found.get("value")
            else:
                self.properties[found.get("name")] = found.get("value")


def series(release):
    return ".".join(release.split(".")[:2])


def version(name):
    return [int(part) for part in name.split(".")]


def read_results(paths):
    """{series: Results} of JUnit files; those without a kernel's name are of other tests."""
    found = {}
    for path in paths:
        for suite in xml.parse(path).getroot().iter("testsuite"):
            release = next((one.get("value") for one in suite.findall("properties/property")
                            if one.get("name") == "kernel"), None)
            if release:
                results = found.setdefault(series(release), Results(release))
                for case in suite.iter("testcase"):
                    results.add(case)
    return found


def count_words(passed, skipped, failed):
    return ", ".join([f"{passed} passed"] + [f"{number} {word}" for number, word in
                                             ((skipped, "skipped"), (failed, "FAILED")) if number])


def fill(tables, found):
    """Puts what was found on each kernel into the tables, over what they had of it."""
    features, tests, errors = tables["features"], tables["tests"], tables["errors"]
    for name, results in found.items():
        for table in (features, tests):
            table.rows.pop(name, None)
        for cells in errors.rows.values():
            cells.pop(name, None)
        features.set(name, "release", results.release)
        for column, key in FEATURES.items():
            features.set(name, column, results.properties.get(key, "not tested"))
        for subject in sorted(results.counts):
            tests.set(name, subject, count_words(*results.counts[subject]))
        for case in results.errors:
            errors.set(case, name, results.errors[case])
    errors.rows = {case: cells for case, cells in errors.rows.items() if any(cells.values())}
    features.sort(rows=version)
    tests.sort(rows=version, columns=str)
    errors.sort(rows=str, columns=version)


def block(text, name):
    """Where a table is in the page: the text from its mark to the end, the marks not included."""
    match = re.search(re.escape(MARK.format(name)) + r"\n(.*?)" + re.escape(END), text, re.S)
    if not match:
        sys.exit(f"{PAGE}: no lines {MARK.format(name)!r} and {END!r} for the table of {name}")
    return match.span(1)


def read_tables(text):
    tables = {}
    for name, corner in TABLES.items():
        start, end = block(text, name)
        tables[name] = Table(corner, text[start:end].splitlines())
    return tables


def with_tables(text, tables):
    for name, table in tables.items():
        start, end = block(text, name)
        text = text[:start] + "".join(f"{line}\n" for line in table.lines()) + text[end:]
    return text


def problems(text):
    """What is wrong with the tables of a page, in words."""
    tables = read_tables(text)
    if with_tables(text, tables) != text:
        yield "a table is not as --write would write it"
    kernels = list(tables["features"].rows)
    for needed in ("6.1", "6.12"):
        if needed not in kernels:
            yield f"no row for {needed} among the features"
    if len(kernels) < 3:
        yield f"expected three kernels at least, got {kernels}"
    if tables["features"].columns != ["release", *FEATURES]:
        yield f"the features have columns {tables['features'].columns}"
    if list(tables["tests"].rows) != kernels or tables["errors"].columns != kernels:
        yield "the three tables are not of the same kernels"
    for kernel, cells in tables["features"].rows.items():
        for column, cell in cells.items():
            if not cell or cell == "not tested":
                yield f"{kernel}: {column} is {cell!r}"
    for kernel, cells in tables["tests"].rows.items():
        for subject, cell in cells.items():
            if not re.fullmatch(r"(\d+ passed(, \d+ skipped)?)?", cell):
                yield f"{kernel}: {subject} is {cell!r}"
    for case, cells in tables["errors"].rows.items():
        for kernel, cell in cells.items():
            if not re.fullmatch(r"([+-]\d+\.\d)?", cell):
                yield f"error of {case} on {kernel} is {cell!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("results", nargs="*", type=Path)
    options = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    if options.check:
        wrong = [f"{PAGE}: {problem}" for problem in problems(text)]
        sys.exit("\n".join(wrong) if wrong else 0)
    tables = read_tables(text)
    fill(tables, read_results(options.results or
                              [*BUILD.glob("junit/bpf.*.xml"), *BUILD.glob("vm/kernel-*.xml")]))
    if options.write:
        PAGE.write_text(with_tables(text, tables), encoding="utf-8")
        return
    for table in tables.values():
        print(*table.lines(), "", sep="\n")


if __name__ == "__main__":
    main()
