# SPDX-License-Identifier: MIT
"""Marks the steps of a program for the profiler qprof-bpf.

    import qprof

    with qprof.scope("Calibration"):        # the rows "Calibration Start" and "Calibration End"
        calibrate(model)

    @qprof.profile_scope("Export")          # the same around each call
    def export(model): ...

    qprof.mark("Model Loaded")              # the row "Model Loaded"
    qprof.metric("loss", 0.12)              # joins the next row
    qprof.summary("model_size_mb", 482.25)  # a key of the whole profile

While no profiler listens, or where libqprof is not installed, all of it does nothing and takes a
fraction of a microsecond. Nothing here raises an exception of its own: a metric that is not a
number is left out with a RuntimeWarning. All of it may be used in any thread.

Names are text of up to 255 bytes of UTF-8; what is longer is cut, on a character.
"""

import functools
import inspect
import os
import warnings
from types import TracebackType
from typing import Any, Callable, Optional, Type, TypeVar, Union, overload

from . import _library

__all__ = ["begin", "define", "enabled", "end", "mark", "metric", "profile_scope", "scope",
           "summary"]
__version__ = "0.1.0"

_F = TypeVar("_F", bound=Callable[..., Any])

_MAX_BYTES = 255  # of a name

_listeners = _library.listeners

# Counts forks, so that a child does not end the scopes of its parent.
_generation = 0


def _forked() -> None:
    global _generation
    _generation += 1


os.register_at_fork(after_in_child=_forked)


def _bytes(name: Any) -> bytes:
    return str(name).encode("utf-8", "replace")


def enabled() -> bool:
    """Whether a profiler listens: for what is costly to prepare."""
    return _listeners.value != 0


def begin(name: str) -> None:
    """The row "NAME Start": a phase begins. Prefer `scope`, which cannot be left open."""
    if _listeners.value:
        _library.begin(_bytes(name))


def end(name: str) -> None:
    """The row "NAME End": the phase of that name that this thread began last ends."""
    if _listeners.value:
        _library.end(_bytes(name))


def mark(name: str) -> None:
    """The row "NAME". The stretch from one mark to the next is a phase, too."""
    if _listeners.value:
        _library.mark(_bytes(name))


def define(name: str, definition: str) -> None:
    """Says what a metric is and in which unit: a line in the comments that end the profile.

    What does not fit into 255 bytes, or has several lines, becomes several lines of that name.
    """
    if not _listeners.value:
        return
    prefix = str(name) + ": "
    for line in str(definition).splitlines():
        for piece in _pieces(line, max(40, _MAX_BYTES - len(_bytes(prefix)))):
            _library.define(_bytes(prefix + piece))


def _pieces(line: str, room: int):
    """The words of a line in as many pieces as it takes for each to have room."""
    piece = ""
    for word in line.split():
        longer = piece + " " + word if piece else word
        if piece and len(_bytes(longer)) > room:
            yield piece
            longer = word
        piece = longer
    if piece:
        yield piece


def metric(name: str, value: Union[int, float], definition: Optional[str] = None) -> None:
    """A value that joins the next row, under `metrics`; its unit is the caller's.

    value: an int of up to 64 bits, or whatever float() takes, such as a tensor of one element.
    definition: see `define`.
    """
    if _listeners.value:
        _report(_library.metric_int64, _library.metric, name, value, definition)


def summary(name: str, value: Union[int, float], definition: Optional[str] = None) -> None:
    """A value of the whole run, a key at the top level of the profile; the last one counts.

    A name that is a key of the profile already becomes "NAME (metric)". Otherwise as `metric`.
    """
    if _listeners.value:
        _report(_library.summary_int64, _library.summary, name, value, definition)


def _report(int64: Callable, double: Callable, name: str, value: Any,
            definition: Optional[str]) -> None:
    if definition is not None:
        define(name, definition)
    try:
        if isinstance(value, int) and -2 ** 63 <= value < 2 ** 63:
            int64(_bytes(name), value)
        else:
            double(_bytes(name), float(value))
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        warnings.warn(f"qprof: the metric {name!r} is left out, as it is no number: {error}",
                      RuntimeWarning, stacklevel=3)


class scope:
    """A phase: from the beginning of a `with` block to its end, however it is left.

    If an exception leaves it, the row of the end has the metric "NAME raised TYPE": 1. What began
    while nobody listened says nothing at its end either; nor does a child that was forked inside.
    """

    __slots__ = ("_begun", "_generation", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun: Optional[bytes] = None

    def __enter__(self) -> "scope":
        if _listeners.value:
            self._generation = _generation
            self._begun = _bytes(self._name)
            _library.begin(self._begun)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        begun = self._begun
        if begun is None:
            return
        self._begun = None
        if self._generation != _generation:
            return
        if kind is not None and kind is not GeneratorExit:
            raised = " raised " + kind.__name__
            _library.metric_int64(_cut(begun, _MAX_BYTES - len(_bytes(raised))) + _bytes(raised), 1)
            _leave(error, begun)
        _library.end(begun)


def _leave(error: Any, name: bytes) -> None:
    """An exception leaves a phase. The first that it leaves is where it was raised (_failures.py)."""
    if "_qprof_left" not in getattr(error, "__dict__", ("_qprof_left",)):
        error.__dict__["_qprof_left"] = name


def _cut(name: bytes, room: int) -> bytes:
    """At most so many bytes of it, and no part of a character."""
    return name if len(name) <= room else name[:max(0, room)].decode("utf-8", "ignore").encode()


@overload
def profile_scope(name: _F) -> _F: ...
@overload
def profile_scope(name: Optional[str] = None) -> Callable[[_F], _F]: ...


def profile_scope(name: Any = None) -> Any:
    """Decorates a function: each call is a phase of that name, or else of the function's own.

    Of a coroutine function the phase lasts from its first step to its end, time in which it waits
    included; of a generator, synchronous or not, from the first item asked for until it is
    exhausted or closed. What is decorated stays what it was: a coroutine function, a generator
    function, a static method, a class method.
    """
    if callable(name) or isinstance(name, (staticmethod, classmethod)):
        return _decorate(name, None)
    return lambda function: _decorate(function, name)


def _decorate(function: Any, name: Optional[str]) -> Any:
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_decorate(function.__func__, name))
    return _around(function,
                   lambda *_: scope(name if name is not None else function.__qualname__))


def _around(function: Any, make: Callable[[tuple, dict], Any]) -> Any:
    """The function, with each call inside of what make(args, kwargs) gives, a context manager."""
    if inspect.isasyncgenfunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            with make(args, kwargs):
                items = function(*args, **kwargs)
                try:
                    item = await items.__anext__()
                    while True:
                        try:
                            sent = yield item
                        except GeneratorExit:
                            raise
                        except BaseException as error:  # thrown in: the generator's to handle
                            item = await items.athrow(error)
                        else:
                            item = await items.asend(sent)
                except StopAsyncIteration:
                    return
                finally:
                    await items.aclose()
    elif inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            with make(args, kwargs):
                return await function(*args, **kwargs)
    elif inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with make(args, kwargs):
                return (yield from function(*args, **kwargs))
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if not _listeners.value:
                return function(*args, **kwargs)
            with make(args, kwargs):
                return function(*args, **kwargs)
    return wrapper
