# SPDX-License-Identifier: MIT
"""Whose quota of a file system is used up: asked by quotactl_fd(2), for which Python has no function.

Users may ask for what is their own, and their groups'. The kernel has refused a write already, so that
quotas hold there.
"""

import ctypes
import os
import struct
import time
from typing import NamedTuple, Optional

_QUOTACTL_FD = 443  # the same on all processors that Linux runs on; from 5.14 on
_GET_QUOTA = 0x800007 << 8
_BLOCK = struct.Struct("<9Q")  # the begin of struct if_dqblk (linux/quota.h)
_UNIT = 1024  # bytes; QIF_DQBLKSIZE
_NEARLY_FULL = 1 << 20  # bytes


class Quota(NamedTuple):
    """Of all files of a user or a group on a file system."""

    path: str  # that there is no room for; empty: not known
    mount: str
    whose: str  # "user 1000"
    most: int  # bytes, as the next
    used: int


def _block(fd: int, kind: int, number: int) -> Optional[tuple]:
    answer = ctypes.create_string_buffer(_BLOCK.size)
    if ctypes.CDLL(None).syscall(_QUOTACTL_FD, fd, _GET_QUOTA | kind, number, answer):
        return None
    return _BLOCK.unpack(answer.raw)


def _most(block: tuple) -> int:
    """The soft limit holds once it was passed for longer than the file system grants."""
    hard, soft, ends = block[0], block[1], block[6]
    return (soft if soft and ends and ends <= time.time() else hard) * _UNIT


def full(path: str, mount: str) -> Optional[Quota]:
    """The quota that has no room for more of that file, or None. As find_quota() in user/model/deaths.c."""
    owner = os.stat(path)
    fd = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for kind, (what, number) in enumerate((("user", owner.st_uid), ("group", owner.st_gid))):
            block = _block(fd, kind, number)
            if not block:
                continue
            most, used = _most(block), block[2]
            left = max(0, most - used)
            if most and left < _NEARLY_FULL and left <= most // 16:
                return Quota(path, mount, f"{what} {number}", most, min(used, most))
    finally:
        os.close(fd)
    return None
