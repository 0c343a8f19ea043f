# SPDX-License-Identifier: MIT
"""python3 -m qprof ARGUMENT...: runs qprof-bpf, which was installed with this package or is in PATH."""

import os
import shutil
import signal
import sys

from . import _prefix


def main() -> None:
    beside = _prefix.below("bin", "qprof-bpf")
    program = (shutil.which(beside) if beside else None) or shutil.which("qprof-bpf")
    if program is None:
        sys.stderr.write("error: there is no qprof-bpf beside this package or in PATH; install the wheel or the "
                         "package qprof-bpf\n")
        sys.exit(127)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python; the commands that it starts must not
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
