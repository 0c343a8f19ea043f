# SPDX-License-Identifier: MIT
"""Tells a profiler why it hears nothing of this program: the package found no libqprof.so.0.

Only with its library can the package be heard, so it cannot say that it has none. What it can do is
to map this very file: `qprof-bpf list -p PID`, `qprof-bpf doctor -p PID` and the search for probes of
a profile or an audit see that, and say what to do.
"""

import ctypes
import mmap

# Of the C library, and loaded by next to nobody: when the dynamic linker has loaded something, a
# profiler looks at what there is.
_SMALL = "libanl.so.1"

_trace = None  # as long as the program runs


def leave_trace():
    """Maps this file, executable, as that is what profilers look at; never fails."""
    global _trace
    for protection in (mmap.PROT_READ | mmap.PROT_EXEC, mmap.PROT_READ):  # a disk may be noexec
        try:
            with open(__file__, "rb") as me:
                _trace = mmap.mmap(me.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=protection)
            break
        except (OSError, ValueError):
            pass
    try:
        ctypes.CDLL(_SMALL)
    except OSError:
        pass
