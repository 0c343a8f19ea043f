#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The documentation: no line over 120 columns, no link that leads nowhere, a licence. usage: docs.py

Rows of tables and what is quoted between ``` may be longer.
"""
import glob
import os
import re
import sys

COLUMNS = 120
PAGES = ["*.md", "docs/*.md", "tests/bench/*.md"]
LINK = re.compile(r"\]\(([^()\s]+)\)")


def prose(path):
    """(number, line) of what is not between ```."""
    quoted = False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file.read().splitlines(), 1):
            if line.startswith("```"):
                quoted = not quoted
            elif not quoted:
                yield number, line


def anchors(path):
    """What GitHub calls the headings of a page."""
    names = set()
    for _, line in prose(path):
        if line.startswith("#"):
            title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).lower()
            names.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return names


def broken(path, link):
    """Why a link of a page leads nowhere; None if it leads somewhere, or out of this repository."""
    if re.match(r"\w+:", link):
        return None
    where, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(path), where)) if where else path
    if not os.path.exists(target):
        return f"{target} does not exist"
    if anchor and anchor not in anchors(target):
        return f"{target} has no heading #{anchor}"
    return None


def has_licence(path):
    with open(path, encoding="utf-8") as file:
        return "SPDX-License-Identifier" in file.readline()


def main():
    found = []
    for path in sorted(path for pattern in PAGES for path in glob.glob(pattern)):
        if not has_licence(path):
            found.append(f"{path}:1: no SPDX-License-Identifier in the first line")
        for number, line in prose(path):
            if len(line) > COLUMNS and not line.startswith("|"):
                found.append(f"{path}:{number}: {len(line)} columns, at most {COLUMNS}")
            for link in LINK.findall(line):
                why = broken(path, link)
                if why:
                    found.append(f"{path}:{number}: {why}")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
