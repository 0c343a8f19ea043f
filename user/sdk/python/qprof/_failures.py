# SPDX-License-Identifier: MIT
"""Tells of an exception that nobody catches: what it says, in which phase it was raised, what was used up.

_finder.py loads this when there is one. All is said by one probe, qprof:failed, with a text and a
number; what they mean is in user/model/deaths.h.

The program has failed, and perhaps has no memory left. Its objects may raise whatever they like.
"""

import errno
import io
import os
import sys
from typing import Any, Iterator, NamedTuple, Optional, Tuple

from . import _bytes, _cut, _library, _listeners, _MAX_BYTES

# Of enum deaths_said in user/model/deaths.h.
_FAILED, _IN_THREAD, _MORE, _PHASE, _LIMIT, _USED, _FULL, _QUOTA, _FILE = range(9)

_MAX_PIECES = 4
_MAX_FRAMES = 64
_NEARLY_FULL = 1 << 20  # bytes


def tell(error: Any, in_thread: bool) -> None:
    """Once of each exception."""
    about = getattr(error, "__dict__", {})
    if not _listeners.value or about.get("_qprof_told"):
        return
    about["_qprof_told"] = True
    text = _bytes(_words(error))
    what = _IN_THREAD if in_thread else _FAILED
    for _ in range(_MAX_PIECES):
        piece = _cut(text, _MAX_BYTES)
        text = text[len(piece):]
        _library.failed(piece, what)
        what = _MORE
        if not text:
            break
    if "_qprof_left" in about:
        _library.failed(_cut(about["_qprof_left"], _MAX_BYTES), _PHASE)
    try:
        _tell_reason(error)
    except BaseException:  # pylint: disable=broad-except
        pass


def _words(error: Any) -> str:
    """In one line, as the interpreter shows it: "torch.OutOfMemoryError: CUDA out of memory. Tried"."""
    kind = type(error)
    module = kind.__module__
    name = kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"
    try:
        text = " ".join(str(error).split())
    except BaseException:  # pylint: disable=broad-except
        text = ""
    return f"{name}: {text}" if text else name


def _say(text: str, what: int, number: int) -> None:
    _library.failed(_cut(_bytes(text), _MAX_BYTES), what | max(0, number) << 8)


# ---- What refused ---------------------------------------------------------------------------------

def _tell_reason(error: Any) -> None:
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        refused = _refusing_limit()
        if refused:
            name, used, most = refused
            _say(name, _LIMIT, most)
            _say("", _USED, used)
    elif number == errno.ENOSPC:
        full = next(_full_file_systems(error), None)
        if full:
            _say(full.mount, _FULL, full.left)
            _say(_end_of(full.path), _FILE, full.size)
    elif number == errno.EDQUOT:
        quota = _full_quota(error)
        if quota:
            _say(quota.whose, _QUOTA, quota.most)
            _say("", _USED, quota.used)
            _say(quota.mount, _FULL, quota.most - quota.used)
            _say(_end_of(quota.path), _FILE, 0)


class Full(NamedTuple):
    """A file system that has no room for a file: where it is mounted, the bytes left of it, and all."""

    path: str
    mount: str
    left: int
    size: int


def _end_of(path: str) -> str:
    """Of a path that is too long to be said, from a directory on."""
    end = os.fsencode(path)
    if len(end) <= _MAX_BYTES:
        return path
    end = end[3 - _MAX_BYTES:]
    return "..." + os.fsdecode(end[max(0, end.find(b"/")):])


def _fields(path: str) -> dict:
    """Of a file of lines such as "VmSize:  123 kB": numbers, in bytes."""
    with open(path, "rb") as file:
        lines = [line.split() for line in file]
    return {line[0].decode().rstrip(":"): int(line[1]) * 1024
            for line in lines if len(line) == 3 and line[2] == b"kB"}


def _number(path: str) -> int:
    with open(path, "rb") as file:
        return int(file.read())


def _limits() -> Iterator[Tuple[str, int, int]]:
    """Name, what is used, and the most."""
    import resource

    with open("/proc/self/maps", "rb") as maps:
        mappings = sum(1 for _ in maps)
    most = _number("/proc/sys/vm/max_map_count")
    if mappings >= most:
        yield "vm.max_map_count", mappings, most
    own = _fields("/proc/self/status")
    for name, used in (("RLIMIT_AS", own["VmSize"]), ("RLIMIT_DATA", own["VmData"])):
        most = resource.getrlimit(getattr(resource, name))[0]
        if most != resource.RLIM_INFINITY:
            yield name, used, most
    if _number("/proc/sys/vm/overcommit_memory") == 2:
        machine = _fields("/proc/meminfo")
        yield "vm.overcommit_memory", machine["Committed_AS"], machine["CommitLimit"]


def _refusing_limit() -> Optional[Tuple[str, int, int]]:
    """The limit of which less than a 16th is left, as in user/model/deaths.c."""
    for name, used, most in _limits():
        if used >= most - most // 16:
            return name, used, most
    return None


def _paths(error: OSError) -> Iterator[Any]:
    """What the exception is about, and the files of the functions that it has left."""
    yield error.filename
    yield error.filename2
    traceback = error.__traceback__
    for _ in range(_MAX_FRAMES):
        if traceback is None:
            return
        for value in list(traceback.tb_frame.f_locals.values()):
            # Of these very types, to ask for the name runs no code of the program.
            if type(value) in (io.FileIO, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper):
                yield getattr(value, "name", None)
        traceback = traceback.tb_next


def _files(error: OSError) -> Iterator[str]:
    """Paths of what may have had no room."""
    for path in _paths(error):
        if isinstance(path, (str, bytes)):
            yield os.path.abspath(os.fsdecode(path))


def _mount_of(where: str) -> str:
    while not os.path.ismount(where):
        where = os.path.dirname(where)
    return where


def _full_file_systems(error: OSError) -> Iterator[Full]:
    for path in _files(error):
        where = os.path.dirname(path)
        try:
            found = os.statvfs(where)
        except OSError:
            continue
        left = found.f_bavail * found.f_frsize
        if left < _NEARLY_FULL or not found.f_favail and found.f_files:
            yield Full(path, _mount_of(where), left, found.f_blocks * found.f_frsize)


def _full_quota(error: OSError) -> Any:
    from . import _quota

    for path in _files(error):
        try:
            found = _quota.full(path, _mount_of(os.path.dirname(path)))
        except OSError:
            continue
        if found:
            return found
    return None
