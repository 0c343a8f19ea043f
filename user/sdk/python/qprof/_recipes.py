# SPDX-License-Identifier: MIT
"""Wraps the functions that recipes name, so that their calls are checkpoints.

_hooks.py loads this when a program imports the first module that a recipe is about. What there is to
know of recipes is in the environment, and what happens is said by one probe, qprof:item: its numbers
are those of user/recipes/python_items.h.

The program is what matters: it must not notice. What its objects do while a name is made of them (an
attribute that raises, a __str__ that raises) becomes a "?" in that name.
"""

import functools
import inspect
import os
import sys
import threading
from fnmatch import fnmatchcase
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

from . import _around, _bytes, _cut, _leave, _library, _MAX_BYTES

_package: Any = sys.modules[__package__ or ""]  # its _generation changes
_listeners = _library.listeners

# Of user/recipes/python_items.h.
_IMPORTS, _FOUND, _MISSING, _UNFIT, _BEGIN, _END, _MARK, _MET = range(8)
_COUNTS = 0x80

_Value = Callable[[tuple, dict], Any]


def tell_import(name: str) -> None:
    """A module that a condition asks for is about to be run."""
    _library.item(_bytes(name), _IMPORTS)


# ---- Names --------------------------------------------------------------------------------------

# Threads in which a name is being made: what that calls makes no marks.
_asking: Set[int] = set()


def _shown(value: Any) -> str:
    """A value as a name may have it. A container is only named: it may be long."""
    if type(value) in (str, int):  # nearly all
        return str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, (list, tuple, dict, set, frozenset, bytes, bytearray)):
        return type(value).__name__
    kind = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        return kind.__name__  # its address says nothing, and differs in each run
    return str(value)


def _parameters(function: Any) -> List[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of some functions in C nothing is known
        return []


def _argument(function: Any, root: str) -> _Value:
    """What gives an argument of a call, by its name or its place."""
    constants = {"__name__": "__name__", "__qualname__": "__qualname__", "__module__": "__module__"}
    if root in constants:
        constant = getattr(function, root)
        return lambda args, kwargs: constant
    parameters = _parameters(function)
    placed = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    place: Optional[int] = None
    if root.isdecimal():
        place = int(root)
        name = placed[place] if place < len(placed) else root
    else:
        name = root
        place = placed.index(name) if name in placed else None
    default = next((p.default for p in parameters if p.name == name and p.default is not p.empty),
                   inspect.Parameter.empty)

    def argument(args: tuple, kwargs: dict) -> Any:
        if place is not None and place < len(args):
            return args[place]
        if default is inspect.Parameter.empty:
            return kwargs[name]
        return kwargs.get(name, default)

    return argument


def _word(function: Any, word: str) -> _Value:
    """`layer.names[0]`: an argument, and then attributes and indices."""
    root, *path = word.replace("[", ".[").split(".")
    argument = _argument(function, root)
    if not path:
        return argument
    steps: List[Tuple[bool, Any]] = []
    for step in path:
        key = step.strip("[]")
        steps.append((step[0] == "[", int(key) if key.isdecimal() else key))

    def value(args: tuple, kwargs: dict) -> Any:
        found = argument(args, kwargs)
        for is_index, key in steps:
            found = found[key] if is_index else getattr(found, str(key))
        return found

    return value


def _pieces(text: str) -> Iterator[Tuple[str, bool]]:
    """The pieces of a text, and whether each is a word in braces. It was checked when it was read."""
    at, plain = 0, ""
    while at < len(text):
        if text[at] in "{}" and text[at:at + 1] == text[at + 1:at + 2]:
            plain += text[at]
            at += 2
        elif text[at] == "{":
            end = text.index("}", at)
            yield plain, False
            yield text[at + 1:end], True
            at, plain = end + 1, ""
        else:
            plain += text[at]
            at += 1
    yield plain, False


def _asked(value: _Value, args: tuple, kwargs: dict, otherwise: Any) -> Any:
    me = threading.get_ident()
    is_first = me not in _asking
    _asking.add(me)
    try:
        return value(args, kwargs)
    except KeyboardInterrupt:  # the user's
        raise
    except BaseException:  # pylint: disable=broad-except; whatever an object of the program does
        return otherwise
    finally:
        if is_first:
            _asking.discard(me)


def _then(convert: Callable[[Any], Any], value: _Value) -> _Value:
    return lambda args, kwargs: convert(value(args, kwargs))


def _name_of(function: Any, text: str) -> Callable[[tuple, dict], bytes]:
    """What makes the name of a call out of its arguments."""
    words = [(_word(function, piece) if is_word else None, piece) for piece, is_word in _pieces(text)]
    if not any(word for word, _ in words):
        constant = _cut(_bytes("".join(piece for _, piece in words)), _MAX_BYTES)
        return lambda args, kwargs: constant

    def shown(args: tuple, kwargs: dict) -> List[str]:
        return [_shown(word(args, kwargs)) if word else piece for word, piece in words]

    def shown_in_part(args: tuple, kwargs: dict) -> List[str]:
        return [_asked(_then(_shown, word), args, kwargs, "?") if word else piece for word, piece in words]

    def name(args: tuple, kwargs: dict) -> bytes:
        # str.join makes a plain str, whatever a subclass of str would do.
        whole = "".join(_asked(shown, args, kwargs, None) or shown_in_part(args, kwargs))
        if "\0" in whole:
            whole = whole.replace("\0", "?")
        return _cut(whole.encode("utf-8", "replace"), _MAX_BYTES)

    return name


def _number_of(function: Any, text: str) -> _Value:
    """What a metric is given: the object itself if the text is one word, as qprof.metric takes it."""
    pieces = [piece for piece in _pieces(text) if piece[0] or piece[1]]
    if len(pieces) == 1 and pieces[0][1]:
        return _word(function, pieces[0][0])
    name = _name_of(function, text)
    return lambda args, kwargs: name(args, kwargs).decode("utf-8", "replace")


# ---- Items --------------------------------------------------------------------------------------

class _Item:
    """A line of the environment: "i", recipe, item, what it does, where, name; metrics."""

    def __init__(self, recipes: str, line: List[str]) -> None:
        self.number = int(recipes) << 32 | int(line[1]) << 16 | int(line[2]) << 8
        self.does = line[3].rstrip("@")
        self.at_return = line[3].endswith("@")
        self.modules, _, self.names = line[4].partition(":")
        self.text = line[5]
        self.values = list(zip(line[6::3], line[7::3], line[8::3]))
        if not 0 <= self.number < 2 ** 63:
            raise ValueError("no item")

    def say(self, what: int, name: bytes = b"") -> None:
        _library.item(name, self.number | what)


class _Open:
    """The phases that items of a recipe have begun, and none has ended, by name. Of this process: what
    a child is forked into is its parent's."""

    def __init__(self) -> None:
        self._names: Dict[Tuple[int, bytes], int] = {}
        self._generation = _package._generation

    def begin(self, recipe: int, name: bytes) -> None:
        self._names_now()[recipe, name] = self._names_now().get((recipe, name), 0) + 1

    def end(self, recipe: int, pattern: bytes) -> List[bytes]:
        """Takes out one of each name that matches. Returns the names, the youngest first."""
        names = self._names_now()
        ended = [name for of, name in reversed(list(names))
                 if of == recipe and (name == pattern or fnmatchcase(name.decode("utf-8", "replace"),
                                                                     pattern.decode("utf-8", "replace")))]
        for name in ended:
            left = names.pop((recipe, name), 1) - 1
            if left:
                names[recipe, name] = left
        return ended

    def _names_now(self) -> Dict[Tuple[int, bytes], int]:
        if self._generation != _package._generation:
            self._generation = _package._generation
            self._names = {}
        return self._names


_open = _Open()

_SAYS = {"phase": _BEGIN, "begin": _BEGIN, "end": _MET, "mark": _MARK, "none": _MET}


class _Plan:
    """What an item does at the calls of one function."""

    __slots__ = ("at_return", "does", "item", "name", "recipe", "says", "values")

    def __init__(self, item: _Item, function: Any) -> None:
        self.item = item
        self.at_return = item.at_return
        self.does = item.does
        self.recipe = item.number >> 16
        self.says = item.number | _SAYS[item.does] | _COUNTS
        self.name = _name_of(function, item.text)
        self.values = [(kind, _name_of(function, name), _then(float, _number_of(function, value)))
                       for kind, name, value in item.values]

    def act(self, args: tuple, kwargs: dict) -> bytes:
        """Says it; metrics come first, since they join the next row. Returns the name."""
        for kind, name_of, value in self.values:
            number = _asked(value, args, kwargs, None)
            if number is not None:
                (_library.summary if kind == "s" else _library.metric)(name_of(args, kwargs), number)
        name = self.name(args, kwargs)
        if self.does == "end":
            self._end(name)
            return name
        if self.does == "begin":
            _open.begin(self.recipe, name)
        _library.item(name, self.says)
        return name

    def _end(self, pattern: bytes) -> None:
        """An end of nothing is met, and no more: it would be one that no begin belongs to."""
        ended = _open.end(self.recipe, pattern)
        for name in ended:
            self.item.say(_END, name)
        self.item.say(_MET | _COUNTS, pattern)


def _tell_raised(name: bytes, kind: Any) -> None:
    if kind is not GeneratorExit:
        raised = _bytes(" raised " + kind.__name__)
        _library.metric_int64(_cut(name, _MAX_BYTES - len(raised)) + raised, 1)


class _Call:
    """Around a call. Whatever it began ends with it, but what a child was forked into."""

    __slots__ = ("_args", "_begun", "_generation", "_kwargs", "_plans")

    def __init__(self, plans: Tuple[_Plan, ...], args: tuple, kwargs: dict) -> None:
        self._plans = plans
        self._args = args
        self._kwargs = kwargs

    def __enter__(self) -> "_Call":
        self._generation = _package._generation
        self._begun: List[Tuple[_Plan, bytes]] = []
        if _listeners.value:
            for plan in self._plans:
                if not plan.at_return:
                    name = plan.act(self._args, self._kwargs)
                    if plan.does == "phase":
                        self._begun.append((plan, name))
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._generation != _package._generation:
            return
        for plan, name in reversed(self._begun):
            if kind is not None:
                _tell_raised(name, kind)
                _leave(error, name)
            plan.item.say(_END, name)
        if kind is None and _listeners.value:
            for plan in self._plans:
                if plan.at_return:
                    plan.act(self._args, self._kwargs)


class _Phase:
    """The same of a single item that is a phase, and no more: nearly all are."""

    __slots__ = ("_begun", "_ends", "_generation", "_name", "_says")

    def __init__(self, name: bytes, says: int, ends: int) -> None:
        self._name = name
        self._says = says
        self._ends = ends

    def __enter__(self) -> None:
        self._begun = _listeners.value
        if self._begun:
            self._generation = _package._generation
            _library.item(self._name, self._says)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._begun and self._generation == _package._generation:
            if kind is not None:
                _tell_raised(self._name, kind)
                _leave(error, self._name)
            _library.item(self._name, self._ends)


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


_nothing = _Nothing()


# ---- Functions ----------------------------------------------------------------------------------

# Types that are wrapped; of the built-in ones none is bound to an instance, but for the last two.
_PLAIN = (type(lambda: 0), type(len))
_IN_C = (type(str.join), type(object.__init__))


class _Unfit(Exception):
    """Something that cannot be wrapped."""


def _wrapped(raw: Any, items: List[_Item], owner: Any, name: str) -> Any:
    """What takes the place of raw, an attribute of a module or a class; None: all is done already."""
    if isinstance(raw, (staticmethod, classmethod)):
        inner = _wrapped(raw.__func__, items, None, name)
        return inner and type(raw)(inner)
    if type(raw) is property and raw.fget is not None:
        inner = _wrapped(raw.fget, items, None, name)
        return inner and property(inner, raw.fset, raw.fdel, raw.__doc__)
    if type(raw) is functools.cached_property:
        inner = _wrapped(raw.func, items, None, name)
        if inner:
            whole = functools.cached_property(inner)
            whole.__set_name__(owner, name)
            return whole
        return None
    if not isinstance(raw, _PLAIN + _IN_C):
        raise _Unfit
    done: FrozenSet[int] = getattr(raw, "__dict__", {}).get("_qprof_items", frozenset())
    items = [item for item in items if item.number not in done]
    if not items:
        return None
    wrapper = _wrap_function(raw, items)
    wrapper.__dict__["_qprof_items"] = done | {item.number for item in items}
    # A function in C is no method, where it is an attribute of a class; one in Python would be.
    if isinstance(owner, type) and isinstance(raw, type(len)):
        return staticmethod(wrapper)
    return wrapper


def _wrap_function(function: Any, items: List[_Item]) -> Any:
    # Phases of earlier calls end before those of this one begin.
    plans = tuple(_Plan(item, function) for item in sorted(items, key=lambda i: i.does != "end"))

    def make(args: tuple, kwargs: dict) -> Any:
        if _asking and threading.get_ident() in _asking:
            return _nothing
        return _Call(plans, args, kwargs)

    first = plans[0]
    name_of, says, ends = first.name, first.says, first.item.number | _END

    def make_phase(args: tuple, kwargs: dict) -> Any:
        if not _listeners.value or (_asking and threading.get_ident() in _asking):
            return _nothing
        return _Phase(name_of(args, kwargs), says, ends)

    is_phase = len(plans) == 1 and first.does == "phase" and not first.values
    return _around(function, make_phase if is_phase else make)


def _replace(owner: Any, name: str, raw: Any, items: List[_Item]) -> bool:
    """Returns False for what cannot be wrapped."""
    try:
        wrapper = _wrapped(raw, items, owner, name)
        if wrapper is not None:
            setattr(owner, name, wrapper)
            _replace_at_home(owner, name, raw, wrapper)
    except Exception:  # pylint: disable=broad-except; whatever kind of object it is
        return False
    return True


def _replace_at_home(owner: Any, name: str, raw: Any, wrapper: Any) -> None:
    """A function of another module: pickle looks for it there, and must find what it was given."""
    home = sys.modules.get(getattr(raw, "__module__", None) or "")
    if not isinstance(owner, type) and home is not None and home is not owner:
        there = getattr(raw, "__qualname__", name)
        if vars(home).get(there) is raw:
            setattr(home, there, wrapper)


def _lookup(module: Any, names: str) -> Optional[Tuple[Any, str, Any]]:
    """What has the function of this name, as what, and the attribute itself; inherited ones, too."""
    owner = module
    *path, name = names.split(".")
    for part in path:
        owner = vars(owner).get(part)
        if not isinstance(owner, type):
            return None
    for place in owner.__mro__[:-1] if isinstance(owner, type) else (owner,):
        if name in vars(place):
            return owner, name, vars(place)[name]
    return None


def _members(owner: Any, module: str, prefix: str = "") -> Iterator[Tuple[str, Any, str, Any]]:
    """All functions that a module defines, and those of its classes: name, owner, attribute."""
    for name, raw in list(vars(owner).items()):
        if issubclass(type(raw), type):
            if raw.__module__ == module and raw.__qualname__ == prefix + name:
                yield from _members(raw, module, prefix + name + ".")
        elif prefix or (type(raw) in _PLAIN and raw.__module__ == module):
            yield prefix + name, owner, name, raw


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _matching(module: Any, pattern: str) -> List[Tuple[Any, str, Any]]:
    special = _is_special(pattern.rpartition(".")[2])
    return [(owner, name, raw) for whole, owner, name, raw in _members(module, module.__name__)
            if fnmatchcase(whole, pattern) and special == _is_special(name)]


def _is_wild(pattern: str) -> bool:
    return any(wild in pattern for wild in "*?[")


def _wrap_one(module: Any, item: _Item, found: List[Tuple[Any, str, Any]],
              places: Dict[Tuple[int, str], Tuple[Any, str, Any, List[_Item]]]) -> None:
    for owner, name, raw in found:
        places.setdefault((id(owner), name), (owner, name, raw, []))[3].append(item)
    if not found and not _is_wild(item.modules):
        item.say(_MISSING)


def wrap(module: Any, name: str, recipes: str, lines: List[List[str]]) -> None:
    """The module has been run: wraps those of its functions that items name."""
    places: Dict[Tuple[int, str], Tuple[Any, str, Any, List[_Item]]] = {}
    for line in lines:
        item = _Item(recipes, line)
        if _is_wild(item.names):
            found = _matching(module, item.names)
        else:
            there = _lookup(module, item.names)
            found = [there] if there else []
        _wrap_one(module, item, found, places)
    for owner, attribute, raw, items in places.values():
        fits = _replace(owner, attribute, raw, items)
        for item in items:
            if fits or not _is_wild(item.names):
                item.say(_FOUND if fits else _UNFIT)
