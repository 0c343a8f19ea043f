#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A profiler as one writes it with psutil: psutil_sampler.py COMMAND [ARG...]

Every 50 ms the RSS of the command and of all its descendants, and the bytes that it read and wrote.
"""

import contextlib
import subprocess
import sys
import time

import psutil

EVERY = 0.05


def sample(process):
    rss = process.memory_info().rss
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            rss += child.memory_info().rss
    return time.monotonic(), rss, process.io_counters()


def main():
    command = subprocess.Popen(sys.argv[1:])
    process = psutil.Process(command.pid)
    samples = []
    while True:
        with contextlib.suppress(psutil.Error):
            samples.append(sample(process))
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = command.wait(EVERY)
            break
    print(max((rss for _, rss, _ in samples), default=0))
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
