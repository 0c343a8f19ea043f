#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What probes cost the processes that map their file: private pages of its text, and forks.

A probe is an instruction in a page of a file, so the kernel gives each process that maps the page a
copy of its own. Here some processes map a program with 1,000 sites, close together or each on a page
of its own, while an audit attaches to it, holds the probes and lets them go.

usage: pages.py [BUILD [PROCESSES]]   (default build 8), as root
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SITES = 1000
SOURCE = """
#include <stdio.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
%s
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}
/* For each line of input: microseconds of the fastest fork of a child that exits at once. */
int main(void)
{
	puts("ready");
	fflush(stdout);
	while (getchar() == '\\n') {
		double best = 1e9;
		for (int i = 0; i < 200; i++) {
			double began = now(), took;
			int child = fork();
			if (!child)
				_exit(0);
			took = now() - began;
			if (took < best)
				best = took;
			waitpid(child, NULL, 0);
		}
		printf("%%.1f\\n", best);
		fflush(stdout);
	}
	return 0;
}
"""
SITE = ('__attribute__((used, noinline, aligned({align}))) static void site{n}(void)\n'
        '{{ DTRACE_PROBE1(qprof, mark, "site {n}"); }}\n')


def made(folder, align):
    sites = "".join(SITE.format(n=n, align=align) for n in range(SITES))
    source, path = folder / f"sites{align}.c", folder / f"sites{align}"
    source.write_text(SOURCE % sites)
    subprocess.run(["gcc", "-O2", source, "-o", path], check=True)
    return path


def text_of(pid, path):
    """Private_Dirty and Rss of the program's executable mappings, in KiB."""
    found, counts = {"Private_Dirty": 0, "Rss": 0}, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-", line):
            counts = " r-xp " in line and line.endswith(str(path))
        key, _, rest = line.partition(":")
        if counts and key in found:
            found[key] += int(rest.split()[0])
    return found


def asked(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def said(process, word):
    for line in process.stderr:
        if word in line:
            return
    sys.exit("the audit did not begin")


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    print("| sites | when | Private_Dirty of a process, KiB | Rss of its text, KiB | fork, us |\n"
          "|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for align, name in (16, "close together"), (4096, "a page each"):
            path = made(Path(folder), align)
            processes = [subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          text=True) for _ in range(number)]
            for process in processes:
                process.stdout.readline()

            def tell(when):
                texts = [text_of(process.pid, path) for process in processes]
                dirty, rss = ([text[key] for text in texts] for key in ("Private_Dirty", "Rss"))
                print(f"| {name} | {when} | {min(dirty)} to {max(dirty)} | {min(rss)} to {max(rss)} "
                      f"| {asked(processes[0]):.1f} |", flush=True)

            tell("before")
            began = time.monotonic()
            with subprocess.Popen([build / "qprof-bpf", "-a", "--no-live", "-o", "/dev/null"],
                                  stderr=subprocess.PIPE, text=True) as audit:
                said(audit, "auditing")
                attached = time.monotonic() - began
                tell("with probes")
                began = time.monotonic()
                audit.terminate()
                audit.communicate()
            tell("after")
            print(f"<!-- {name}: attached after {attached:.2f} s, ended within "
                  f"{time.monotonic() - began:.2f} s -->")
            for process in processes:
                process.communicate("")


if __name__ == "__main__":
    main()
