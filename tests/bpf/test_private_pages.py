# SPDX-License-Identifier: GPL-2.0-only
"""A probe is an instruction in a page of a file, so whoever maps the page gets a copy of his own: of that page, and of
nothing else."""

import re
import subprocess
from pathlib import Path

import pytest
from harness import CLEAN_ENV, DEADLINE, NOP, Audit, probe_bytes, probes_of, wait_for

SITES = 1000
PAGE = 4096
SITE = ("__attribute__((used, noinline, aligned({align}))) static void site{n}(void) "
        '{{ DTRACE_PROBE1(qprof, mark, "site {n}"); }}\n')
SOURCE = """
#include <stdio.h>
#include <sys/sdt.h>
%s
int main(void)
{
    puts("ready");
    fflush(stdout);
    return getchar() == EOF;
}
"""


def made(path, align):
    sites = "".join(SITE.format(n=n, align=align) for n in range(SITES))
    subprocess.run(["gcc", "-O2", "-x", "c", "-", "-o", path], input=SOURCE % sites, text=True, check=True)


def own_pages(pid, path):
    """Pages that are the process's own: of the program's code, of the dynamic linker's, and all others."""
    found, of = {"program": 0, "linker": 0, "rest": 0}, None
    for line in Path(f"/proc/{pid}/smaps").read_text(encoding="ascii").splitlines():
        if re.match(r"[0-9a-f]+-", line):
            is_code, name = " r-xp " in line, line.rpartition("/")[2]
            of = ("program" if is_code and line.endswith(str(path))
                  else "linker" if is_code and name.startswith("ld-") else "rest")
        elif line.startswith("Anonymous:"):
            found[of] += int(line.split()[1]) * 1024 // PAGE
    return found


def waits(pid):
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("align,most_pages", [(16, 10), (PAGE, SITES)], ids=["close_together", "a_page_each"])
def test_a_private_page_for_each_page_with_a_probe(tmp_path, align, most_pages):
    path = tmp_path / "sites"
    made(path, align)
    pages = len({probe.address // PAGE for probe in probes_of(path)})
    assert SITES * align // PAGE <= pages <= most_pages, pages
    processes = [subprocess.Popen([path], env=CLEAN_ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                 for _ in range(3)]
    try:
        for process in processes:
            process.stdout.readline()
            wait_for(lambda pid=process.pid: waits(pid), "its wait for input")
        before = [own_pages(process.pid, path) for process in processes]
        assert not any(own["program"] for own in before), before
        with Audit(tmp_path / "audit.yaml") as audit:
            wait_for(lambda: all(NOP not in probe_bytes(process.pid, path) for process in processes), "probes")
            during = [own_pages(process.pid, path) for process in processes]
            audit.stop()
    finally:
        for process in processes:
            process.communicate(b"", timeout=DEADLINE)
    # The dynamic linker has one probe, which says when a program has loaded a library.
    expected = [{"program": pages, "linker": 1, "rest": own["rest"]} for own in before]
    assert during == expected, f"expected {expected}, got {during}"
