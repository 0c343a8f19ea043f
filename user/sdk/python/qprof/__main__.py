# SPDX-License-Identifier: MIT
"""python3 -m qprof ARGUMENT...: runs qprof-bpf, which was installed with this package or is in PATH."""

import os
import shutil
import signal
import sys

# From PREFIX/lib/pythonX.Y/site-packages/qprof.
_BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 4, "bin", "qprof-bpf")


def main() -> None:
    program = shutil.which(os.path.normpath(_BESIDE)) or shutil.which("qprof-bpf")
    if program is None:
        sys.stderr.write("error: there is no qprof-bpf beside this package or in PATH; install the wheel or the "
                         "package qprof-bpf\n")
        sys.exit(127)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python; the commands that it starts must not
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
