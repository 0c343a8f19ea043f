# SPDX-License-Identifier: MIT
"""Tells of an exception that nobody catches: what it says, in which phase it was raised, what was used up.

_finder.py loads this when there is one. All is said by one probe, qprof:failed, with a text and a
number; what they mean is in user/model/deaths.h.

The program has failed, and perhaps has no memory left. Its objects may raise whatever they like.
"""

import errno
import fcntl
import io
import os
import stat
import sys
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from . import _bytes, _cut, _library, _listeners, _MAX_BYTES

# Of enum deaths_said in user/model/deaths.h.
_FAILED, _IN_THREAD, _MORE, _PHASE, _LIMIT, _USED, _FULL, _QUOTA, _FILE = range(9)

_MAX_PIECES = 4
_MAX_FRAMES = 64
_MAX_DESCRIPTORS = 1024
_FILES = (io.FileIO, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
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
        full = _full_for(error, _full_file_system)
        if full:
            _say(full.mount, _FULL, full.left)
            _say(_end_of(full.path), _FILE, full.size)
    elif number == errno.EDQUOT:
        quota = _full_for(error, _full_quota)
        if quota:
            _say(quota.whose, _QUOTA, quota.most)
            _say("", _USED, quota.used)
            _say(quota.mount, _FULL, quota.most - quota.used)
            _say(_end_of(quota.path), _FILE, 0)


class Full(NamedTuple):
    """A file system that has no room for a file: where it is mounted, the bytes left of it, and all."""

    path: str  # empty: not known
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


def _paths(names: Iterable[Any]) -> List[str]:
    """Of names of files, each once."""
    return list(dict.fromkeys(os.path.abspath(os.fsdecode(name)) for name in names if isinstance(name, (str, bytes))))


def _is_read(file: Any) -> bool:
    """Whether it is open for reading alone."""
    mode = getattr(file, "mode", None)
    return type(mode) is str and not set("wax+") & set(mode)


def _held(error: OSError) -> Iterator[Any]:
    """Names of files of the functions that the exception has left."""
    traceback = error.__traceback__
    for _ in range(_MAX_FRAMES):
        if traceback is None:
            return
        for value in list(traceback.tb_frame.f_locals.values()):
            # Of these very types, to ask for the name runs no code of the program.
            if type(value) in _FILES and not _is_read(value):
                yield getattr(value, "name", None)
        traceback = traceback.tb_next


def _has_others(path: str) -> bool:
    """Whether the process has another file open there for writing, or so many that nobody looks."""
    own = os.stat(path)
    fds = os.listdir("/proc/self/fd")
    for fd in map(int, fds[:_MAX_DESCRIPTORS]):
        try:
            other, flags = os.fstat(fd), fcntl.fcntl(fd, fcntl.F_GETFL)
        except OSError:
            continue  # the one of the listing
        if (stat.S_ISREG(other.st_mode) and other.st_dev == own.st_dev and other.st_ino != own.st_ino
                and flags & (os.O_WRONLY | os.O_RDWR)):
            return True
    return len(fds) > _MAX_DESCRIPTORS


def _mount_of(where: str) -> str:
    while not os.path.ismount(where):
        where = os.path.dirname(where)
    return where


def _found(paths: Iterable[str], find: Callable[[str], Any]) -> list:
    found = []
    for path in paths:
        try:
            found.append(find(path))
        except OSError:
            pass
    return [one for one in found if one]


def _full_for(error: OSError, find: Callable[[str], Any]) -> Any:
    """What find() says is full, or None.

    A call that fails for a path says which; a write says nothing. Then it is a file of the functions that the
    exception has left: its path is said if it can be no other.
    """
    # Of two paths, the second is the one that is made.
    named = _found(_paths([error.filename if error.filename2 is None else error.filename2]), find)
    if named:
        return named[0]
    held = _found(_paths(_held(error)), find)
    if len({one.mount for one in held}) != 1:
        return None
    return held[0] if len(held) == 1 and not _has_others(held[0].path) else held[0]._replace(path="")


def _full_file_system(path: str) -> Optional[Full]:
    found = os.statvfs(os.path.dirname(path))
    left = found.f_bavail * found.f_frsize
    if left >= _NEARLY_FULL and (found.f_favail or not found.f_files):
        return None
    return Full(path, _mount_of(os.path.dirname(path)), left, found.f_blocks * found.f_frsize)


def _full_quota(path: str) -> Any:
    from . import _quota

    return _quota.full(path, _mount_of(os.path.dirname(path)))
