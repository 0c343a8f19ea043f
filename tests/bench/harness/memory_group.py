# SPDX-License-Identifier: GPL-2.0-only
"""A memory cgroup of its own for a command: what it is charged for, BPF maps and other kernel memory too."""

import contextlib
import os
import time
from pathlib import Path

# Where the controller may be, and what says how much is charged: v2, then v1.
PLACES = (("/sys/fs/cgroup", "memory.current"), ("/sys/fs/cgroup/unified", "memory.current"),
          ("/sys/fs/cgroup/memory", "memory.usage_in_bytes"))


class MemoryGroup:
    """Entered, it is there; a command that begins with .prefix is in it."""

    def __init__(self, name):
        self.name = f"{name}-{os.getpid()}"
        self.path = self.file = None
        self.prefix = ()

    def __enter__(self):
        for place, file in PLACES:
            path = Path(place) / self.name
            with contextlib.suppress(OSError):
                path.mkdir()
                if (path / file).exists():
                    self.path, self.file = path, path / file
                    self.prefix = ("sh", "-c", f'echo $$ >{path}/cgroup.procs && exec "$0" "$@"')
                    return self
                path.rmdir()
        raise SystemExit("no memory cgroup can be made here, neither v2 nor v1")

    def __exit__(self, *_):
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except OSError:  # who was in it is about to end
                time.sleep(0.05)

    def usage(self):
        return int(self.file.read_text())

    def processes(self):
        return len((self.path / "cgroup.procs").read_text().split())
