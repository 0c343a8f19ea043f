# SPDX-License-Identifier: GPL-2.0-only
"""What refuses: a file system on which a user, or a group, may have little; a machine that promises little."""

import ctypes
import os
import re
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import MIB, NOBODY

QUOTA = 2 * MIB
QUOTACTL_FD = 443  # the same for all that Linux runs on
SET_QUOTA = 0x800008 << 8
LIMITS_OF_BLOCKS = 1
KINDS = ["user", "group"]


def set_quota(path, kind, identity, limit):
    """quotactl_fd(2), for setquota(8) is not everywhere."""
    libc = ctypes.CDLL(None, use_errno=True)
    block = struct.pack("<8Q2I", limit // 1024, 0, 0, 0, 0, 0, 0, 0, LIMITS_OF_BLOCKS, 0)
    fd = os.open(path, os.O_RDONLY)
    done = libc.syscall(QUOTACTL_FD, fd, SET_QUOTA | KINDS.index(kind), identity, block)
    os.close(fd)
    assert not done, os.strerror(ctypes.get_errno())


@pytest.fixture(params=KINDS)
def limited(request, disk):
    """(where 2 MiB are nobody's, as a user or as a group, whose they are); nobody may look into tmp_path"""
    image, path = disk / "image", Path(tempfile.mkdtemp(prefix="qprof-test-", dir="/tmp"))
    with open(image, "wb") as file:
        file.truncate(32 * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-O", "quota", "-E", "quotatype=usrquota:grpquota", image], check=True)
    done = subprocess.run(["mount", "-o", "loop,usrquota,grpquota", image, path], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        path.rmdir()
        pytest.skip(f"this kernel keeps no quotas: {done.stderr.splitlines()[0]}")
    try:
        path.chmod(0o777)
        set_quota(path, request.param, NOBODY, QUOTA)
        yield path, request.param
    finally:
        subprocess.run(["umount", path], check=True)
        path.rmdir()


@pytest.fixture
def sparing():
    """The machine promises 512 MiB more than it has by now, to all together: to a guest that can be done."""
    if "QPROF_GUEST" not in os.environ:
        pytest.skip("in a guest only: other programs would be refused memory, too")
    settings = {name: Path("/proc/sys/vm", name) for name in ("overcommit_memory", "overcommit_kbytes")}
    before = {name: path.read_text(encoding="ascii") for name, path in settings.items()}
    promised = re.search(r"Committed_AS: *([0-9]+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    try:
        settings["overcommit_kbytes"].write_text(str(int(promised[1]) + (512 << 10)), encoding="ascii")
        settings["overcommit_memory"].write_text("2", encoding="ascii")
        yield
    finally:
        for name in ("overcommit_memory", "overcommit_kbytes"):
            settings[name].write_text(before[name], encoding="ascii")
