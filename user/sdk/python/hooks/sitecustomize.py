# SPDX-License-Identifier: MIT
"""What Python runs at its start under qprof-bpf: installs the hooks, and gets out of the way.

qprof-bpf puts this directory first on PYTHONPATH of the command that it starts. Any Python may come
by, of any version: this file is valid in all of them. The user's own sitecustomize, which this one
hides, is run as if this one were not there.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _install():
    """Loads the package beside this directory, under a name that hides nobody's."""
    if sys.version_info < (3, 8):
        return
    package = os.path.join(os.path.dirname(_here), "qprof")
    # By the loader of this very file: importlib.util takes 3 ms to import.
    loader = type(__loader__)("_qprof_launch_finder", os.path.join(package, "_finder.py"))
    finder = type(sys)(loader.name)
    finder.__file__ = loader.path
    loader.exec_module(finder)

    # The package itself loads ctypes, which takes some 10 ms: only when there is something to mark.
    def qprof():
        from importlib.util import module_from_spec, spec_from_file_location

        module = sys.modules.get("_qprof_launch")
        if module is None:
            spec = spec_from_file_location("_qprof_launch", os.path.join(package, "__init__.py"),
                                           submodule_search_locations=[package])
            module = module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        return module

    finder.install(qprof, everything=os.environ.get("QPROF_PYTHON_HOOKS") == "all",
                   recipes=os.environ.get("QPROF_PYTHON_RECIPES", ""))


def _run_the_next():
    """The user's own sitecustomize, if there is one, takes our place in sys.modules."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _here]
try:
    _install()
except Exception as _error:  # the program runs on, whatever is wrong with the hooks
    sys.stderr.write("qprof-bpf: no Python hooks: %r\n" % (_error,))
_run_the_next()
