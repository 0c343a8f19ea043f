# SPDX-License-Identifier: MIT
"""Waits for the modules that hooks (_hooks.py) and recipes (_recipes.py) are about.

Loaded by hooks/sitecustomize.py at the start of every Python under qprof-bpf, perhaps compiled each
time: it is short, and imports next to nothing.
"""

import sys

# Modules, and what is called in _hooks.py. Always:
_QUARK = {
    "quark.common.profiler": "hook_quark",
    "quark.common.profiler.profiler": "hook_quark",  # where the class is, in newer versions
}
# With everything:
_EVERYTHING = {
    "torch.autograd.profiler": "hook_record_function",
    "torch.cuda.nvtx": "hook_nvtx",
    "cProfile": "hook_cprofile",
}


class _Wanted:
    """What there is to do as modules are imported. Most modules are none of them, and cost one look.

    Each thing to do is a function of the module and its name; before is done before the module's own
    code runs.
    """

    def __init__(self):
        self._exact = {}  # by the module's name, what to do
        self._wild = []  # patterns, and what to do
        self._prefixes = ()  # type: tuple  # what the names that they match begin with,
        self._pieces = ()  # type: tuple  # and what of the rest they have in any case
        self._matches = None  # fnmatchcase, once there is something to match

    def add(self, pattern, do, before=False):
        pieces = pattern.replace("?", "*").partition("[")[0].split("*")
        if pieces == [pattern]:
            self._exact.setdefault(pattern, []).append((before, do))
        else:
            self._wild.append((pattern, (before, do)))
            self._prefixes += (pieces[0],)
            self._pieces += (max(pieces, key=len),)

    def may_be(self, name):
        return name in self._exact or (name.startswith(self._prefixes)
                                       and any(piece in name for piece in self._pieces))

    def of(self, name):
        todo = list(self._exact.get(name, ()))
        if self._wild:
            if self._matches is None:
                self._matches = lambda *_: False  # what this imports is not looked at
                from fnmatch import fnmatchcase
                self._matches = fnmatchcase
            todo += [do for pattern, do in self._wild if self._matches(name, pattern)]
        return todo


def _do(todo, before, module, name):
    for is_before, do in todo:
        if is_before == before:
            _apply(do, module, name)


class _ClassLoader:
    """Stands for a loader that is a class, which all of its modules share."""

    def __init__(self, loader):
        self._loader = loader
        self.exec_module = loader.exec_module

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _Finder:
    """Finds what the finders after it find, and has its work done when the module has been run."""

    def __init__(self, wanted):
        self._wanted = wanted
        self._busy = set()  # names that are being asked of the others

    def find_spec(self, name, path=None, target=None):
        if not self._wanted.may_be(name) or name in self._busy:
            return None
        self._busy.add(name)
        try:
            try:
                todo = self._wanted.of(name)
            except Exception:  # pylint: disable=broad-except; a pattern that makes no sense
                todo = ()
            spec = self._ask_the_others(name, path, target) if todo else None
        finally:
            self._busy.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._run_around(spec, name, todo)
        return spec

    def _ask_the_others(self, name, path, target):
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is not self and find_spec is not None:
                spec = find_spec(name, path, target)
                if spec is not None:
                    return spec
        return None

    def _run_around(self, spec, name, todo):
        """The loader stays the one it is, for all who ask it for more than to load."""
        if isinstance(spec.loader, type):
            spec.loader = _ClassLoader(spec.loader)
        original = spec.loader.exec_module

        def exec_module(module):
            if module.__name__ != name:  # a loader of several modules, as of a zip file
                return original(module)
            _do(todo, True, module, name)
            original(module)
            _do(todo, False, sys.modules.get(name, module), name)  # some put another in their place
            return None

        try:
            spec.loader.exec_module = exec_module
        except (AttributeError, TypeError):
            pass  # a loader that cannot be changed: of modules that none of ours is


def _apply(do, module, name):
    try:
        do(module, name)
    except Exception as error:  # pylint: disable=broad-except; the program is what matters
        sys.stderr.write("qprof-bpf: no hook for %s: %r\n" % (name, error))


def _part(get_qprof, name):
    """A module of the package, which is loaded with it."""
    package = get_qprof().__name__
    from importlib import import_module
    return import_module(package + "." + name)


def _add_recipes(wanted, text, get_qprof):
    """The lines of user/recipes/python_items.h. What makes no sense in them is left out."""
    def tell(module, name):
        _part(get_qprof, "_recipes").tell_import(name)

    lines = [line.split("\t") for line in text.split("\n")]
    if lines[0][0] != "1" or len(lines[0]) != 2:
        return
    items = {}  # type: dict  # by the modules that they are in
    for line in lines[1:]:
        if line[0] == "m" and len(line) == 2:
            wanted.add(line[1], tell, before=True)
        elif line[0] == "i" and len(line) >= 6:
            items.setdefault(line[4].partition(":")[0], []).append(line)
    for pattern, those in items.items():
        wanted.add(pattern, lambda module, name, those=those: _part(
            get_qprof, "_recipes").wrap(module, name, lines[0][1], those))


def _watch_failures(wanted, get_qprof):
    """Exceptions that nobody catches are told of before they are shown."""
    # Given back when there is something to tell: perhaps the program has used up its own. Nothing of
    # it is touched before, so it takes address space and no memory.
    spare = [bytearray(8 << 20)]

    def tell(error, in_thread):
        # Nothing is loaded for the others: a ^C would have another exit status for that.
        if error is None or isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit)):
            return
        del spare[:]
        try:
            _part(get_qprof, "_failures").tell(error, in_thread)
        except BaseException:  # pylint: disable=broad-except; perhaps there is no memory for it
            pass

    def last():
        """What the interpreter ends by: not what a prompt has shown and goes on after."""
        return None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)

    def excepthook(kind, error, traceback, show=sys.excepthook):
        if error is last():
            tell(error, False)
        show(kind, error, traceback)

    def watch_threads(module, _):
        def thread_excepthook(args, show=module.excepthook):
            tell(args.exc_value, True)
            show(args)
        module.excepthook = thread_excepthook

    import atexit
    sys.excepthook = excepthook
    atexit.register(lambda: tell(last(), False))  # where the program has a hook of its own
    wanted.add("threading", watch_threads)


def install(get_qprof, everything=False, recipes=""):
    """get_qprof: gives the package qprof, and loads it when it is first called."""
    wanted = _Wanted()
    for name, hook in dict(_QUARK, **(_EVERYTHING if everything else {})).items():
        wanted.add(name, lambda module, _, hook=hook: getattr(
            _part(get_qprof, "_hooks"), hook)(module, get_qprof))
    if recipes:
        _add_recipes(wanted, recipes, get_qprof)
    _watch_failures(wanted, get_qprof)
    sys.meta_path.insert(0, _Finder(wanted))
    for name in list(sys.modules):  # what a .pth file has imported already
        if wanted.may_be(name):
            todo = wanted.of(name)
            _do(todo, True, sys.modules[name], name)
            _do(todo, False, sys.modules[name], name)
