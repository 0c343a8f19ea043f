# SPDX-License-Identifier: MIT
"""libqprof by ctypes, or functions that do nothing where it is absent.

The library is the one that QPROF_LIBRARY names (qprof-bpf sets it for the commands that it starts),
or that pip installed with this package, or else libqprof.so.0 wherever the dynamic linker finds it.
"""

import ctypes
import os

from . import _gpu, _prefix

__all__ = ["begin", "define", "end", "failed", "is_loaded", "item", "listeners", "mark", "metric", "metric_int64",
           "summary", "summary_int64"]

_NAME = "libqprof.so.0"

# Where the wheel of qprof-bpf puts it.
_BESIDE = _prefix.below("lib", _NAME)


def _load():
    for path in (os.environ.get("QPROF_LIBRARY"), _BESIDE, _NAME):
        if path:
            try:
                # PyDLL: the calls take no time, and to let go of the interpreter's lock would mean
                # to wait for it afterwards.
                library = ctypes.PyDLL(path)
                library.qprof_listeners.restype = ctypes.POINTER(ctypes.c_ushort)
                return library
            except (OSError, AttributeError):
                pass
    return None


def _function(library, name, *types):
    function = getattr(library, name, None)  # an older library lacks what is newer
    if function is None:
        return lambda *_: None
    function.argtypes = types
    function.restype = None
    return function


_library = _load()

#: Whether there is a library; without it no profiler can hear the marks.
is_loaded = _library is not None

if not is_loaded:
    from . import _no_library
    _no_library.leave_trace()

#: How many listen, as .value. Reading it takes a tenth of what a call does.
listeners = ctypes.c_ushort(0) if _library is None else _library.qprof_listeners().contents

define = _function(_library, "qprof_define", ctypes.c_char_p)
metric = _function(_library, "qprof_metric", ctypes.c_char_p, ctypes.c_double)
metric_int64 = _function(_library, "qprof_metric_int64", ctypes.c_char_p, ctypes.c_int64)
summary = _function(_library, "qprof_summary", ctypes.c_char_p, ctypes.c_double)
summary_int64 = _function(_library, "qprof_summary_int64", ctypes.c_char_p, ctypes.c_int64)


def _row(function):
    """A call that may make a row: what PyTorch holds on GPUs joins it."""
    def call(*args):
        _gpu.report(metric, define)
        function(*args)
    return call


begin = _row(_function(_library, "qprof_begin", ctypes.c_char_p))
end = _row(_function(_library, "qprof_end", ctypes.c_char_p))
mark = _row(_function(_library, "qprof_mark", ctypes.c_char_p))
#: Of recipes: the name, and what was met (see _recipes.py).
item = _row(_function(_library, "qprof_item", ctypes.c_char_p, ctypes.c_int64))
#: Of exceptions that nobody catches (see _failures.py).
failed = _function(_library, "qprof_failed", ctypes.c_char_p, ctypes.c_int64)
