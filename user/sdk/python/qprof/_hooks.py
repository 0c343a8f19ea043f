# SPDX-License-Identifier: MIT
"""Marks of others as marks of ours, in programs that know nothing of qprof.

Each hook is called when its module has been imported (_finder.py says which), and changes one or two
functions of it so that they say a mark before they do what they always did.
"""

import functools
import os
import sys


def _once(owner, name, wrap):
    """Replaces owner.name by wrap(it), if it is there and was not replaced before."""
    original = vars(owner).get(name)
    if not callable(original) or hasattr(original, "_qprof_hook"):
        return
    replacement = functools.wraps(original)(wrap(original))
    vars(replacement)["_qprof_hook"] = True  # not as an attribute: mypy knows none of it
    setattr(owner, name, replacement)


def hook_quark(module, get_qprof):
    """quark.common.profiler: all of its checkpoints pass GlobalProfiler._checkpoint(step_name)."""
    profiler = getattr(module, "GlobalProfiler", None)
    if not isinstance(profiler, type):
        return
    from importlib import import_module
    forward = import_module(get_qprof().__name__ + ".quark").forward

    def wrap(original):
        def _checkpoint(self, step_name, *args, **kwargs):
            if isinstance(step_name, str):
                forward(step_name)
            return original(self, step_name, *args, **kwargs)
        return _checkpoint

    _once(profiler, "_checkpoint", wrap)


def _hook_block(owner, name_of, qprof):
    """A context manager: its blocks are phases. name_of(it) is asked at its begin."""
    scopes = {}

    def wrap_enter(original):
        def __enter__(self):
            scope = scopes[id(self)] = qprof.scope(name_of(self))
            scope.__enter__()
            try:
                return original(self)
            except BaseException:
                scopes.pop(id(self), scope).__exit__(*sys.exc_info())
                raise
        return __enter__

    def wrap_exit(original):
        def __exit__(self, *error):
            try:
                return original(self, *error)
            finally:
                scope = scopes.pop(id(self), None)
                if scope is not None:
                    scope.__exit__(*(error if len(error) == 3 else (None, None, None)))
        return __exit__

    _once(owner, "__enter__", wrap_enter)
    _once(owner, "__exit__", wrap_exit)


def hook_record_function(module, get_qprof):
    """torch.profiler.record_function, which is defined in torch.autograd.profiler."""
    record_function = getattr(module, "record_function", None)
    if isinstance(record_function, type):
        _hook_block(record_function, lambda self: getattr(self, "name", "record_function"),
                    get_qprof())


def hook_cprofile(module, get_qprof):
    if isinstance(getattr(module, "Profile", None), type):
        _hook_block(module.Profile, lambda self: "cProfile", get_qprof())


def _native_nvtx():
    """Whether NVTX's calls come to libqprof-nvtx.so by themselves: then not a second time here."""
    path = os.environ.get("NVTX_INJECTION64_PATH", "")
    version = getattr(sys.modules.get("torch"), "version", None)
    return (os.path.basename(path) == "libqprof-nvtx.so"
            and getattr(version, "cuda", None) is not None)


def hook_nvtx(module, get_qprof):
    """torch.cuda.nvtx: ranges that nest in a thread, ranges with a handle, and marks.

    Said after the call: where there is no CUDA, it raises an exception, and there is no range.
    """
    if _native_nvtx():
        return
    qprof = get_qprof()
    import threading
    nested = threading.local()
    handles = {}

    def wrap_push(original):
        def range_push(msg, *args, **kwargs):
            result = original(msg, *args, **kwargs)
            if not hasattr(nested, "names"):
                nested.names = []
            nested.names.append(str(msg))
            qprof.begin(msg)
            return result
        return range_push

    def wrap_pop(original):
        def range_pop(*args, **kwargs):
            result = original(*args, **kwargs)
            if getattr(nested, "names", None):
                qprof.end(nested.names.pop())
            return result
        return range_pop

    def wrap_start(original):
        def range_start(msg, *args, **kwargs):
            handle = original(msg, *args, **kwargs)
            handles[handle] = str(msg)
            qprof.begin(msg)
            return handle
        return range_start

    def wrap_end(original):
        def range_end(range_id, *args, **kwargs):
            result = original(range_id, *args, **kwargs)
            name = handles.pop(range_id, None)
            if name is not None:
                qprof.end(name)
            return result
        return range_end

    def wrap_mark(original):
        def mark(msg, *args, **kwargs):
            result = original(msg, *args, **kwargs)
            qprof.mark(msg)
            return result
        return mark

    for name, wrap in (("range_push", wrap_push), ("range_pop", wrap_pop), ("mark", wrap_mark),
                       ("range_start", wrap_start), ("range_end", wrap_end)):
        _once(module, name, wrap)
