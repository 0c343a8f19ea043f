# SPDX-License-Identifier: MIT
"""Marks of others as marks of ours, in programs that know nothing of qprof.

Each hook waits until its module is imported, and then changes one or two functions of it so that
they say a mark before they do what they always did. Always: AMD Quark's checkpoints. With
everything: also torch.profiler.record_function, the ranges of torch.cuda.nvtx, and blocks of
cProfile.

Loaded by hooks/sitecustomize.py at the start of every Python under qprof-bpf: imports next to
nothing by itself.
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


def _hook_quark(module, get_qprof):
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


def _hook_record_function(module, get_qprof):
    """torch.profiler.record_function, which is defined in torch.autograd.profiler."""
    record_function = getattr(module, "record_function", None)
    if isinstance(record_function, type):
        _hook_block(record_function, lambda self: getattr(self, "name", "record_function"),
                    get_qprof())


def _hook_cprofile(module, get_qprof):
    if isinstance(getattr(module, "Profile", None), type):
        _hook_block(module.Profile, lambda self: "cProfile", get_qprof())


def _native_nvtx():
    """Whether NVTX's calls come to libqprof-nvtx.so by themselves: then not a second time here."""
    path = os.environ.get("NVTX_INJECTION64_PATH", "")
    version = getattr(sys.modules.get("torch"), "version", None)
    return (os.path.basename(path) == "libqprof-nvtx.so"
            and getattr(version, "cuda", None) is not None)


def _hook_nvtx(module, get_qprof):
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


_QUARK = {
    "quark.common.profiler": _hook_quark,
    "quark.common.profiler.profiler": _hook_quark,  # where the class is, in newer versions
}
_EVERYTHING = {
    "torch.autograd.profiler": _hook_record_function,
    "torch.cuda.nvtx": _hook_nvtx,
    "cProfile": _hook_cprofile,
}


def _apply(hook, module, get_qprof):
    try:
        hook(module, get_qprof)
    except Exception as error:  # pylint: disable=broad-except; the program is what matters
        sys.stderr.write("qprof-bpf: no hook for %s: %r\n" % (module.__name__, error))


class _Finder:
    """Finds what the finders after it find, and has the hook run when the module has been."""

    def __init__(self, hooks, get_qprof):
        self._hooks = hooks
        self._get_qprof = get_qprof
        self._busy = set()  # names that are being asked of the others

    def find_spec(self, name, path=None, target=None):
        hook = self._hooks.get(name)
        if hook is None or name in self._busy:
            return None
        self._busy.add(name)
        try:
            spec = self._ask_the_others(name, path, target)
        finally:
            self._busy.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._run_after(spec.loader, hook)
        return spec

    def _ask_the_others(self, name, path, target):
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is not self and find_spec is not None:
                spec = find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None

    def _run_after(self, loader, hook):
        """The loader stays the one it is, for all who ask it for more than to load."""
        original = loader.exec_module

        def exec_module(module):
            original(module)
            _apply(hook, module, self._get_qprof)

        try:
            loader.exec_module = exec_module
        except (AttributeError, TypeError):
            pass  # a loader that cannot be changed: of modules that none of ours is


def install(get_qprof, everything=False):
    """get_qprof: gives the package qprof, and loads it when it is first called."""
    hooks = dict(_QUARK, **(_EVERYTHING if everything else {}))
    sys.meta_path.insert(0, _Finder(hooks, get_qprof))
    for name, hook in hooks.items():  # what a .pth file has imported already
        if name in sys.modules:
            _apply(hook, sys.modules[name], get_qprof)
