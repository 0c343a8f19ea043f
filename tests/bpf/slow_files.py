# SPDX-License-Identifier: GPL-2.0-only
"""
A file system of one program, whose section headers cannot be read until the test lets them: whoever reads them
waits as for a disk or a server that hangs, which no signal but a deadly one ends. The kernel does not need them
to run the program. It speaks FUSE (linux/fuse.h) to /dev/fuse itself, so that no library is needed.
"""

import contextlib
import ctypes
import os
import stat
import struct
import subprocess
import threading
from pathlib import Path

import pytest

PAGE = 4096
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = (
    1, 2, 3, 14, 15, 18, 25, 26, 36, 42)
ROOT, PROGRAM = 1, 2
ENOENT, ENOSYS = 2, 38
ASYNC_READ = 1  # a reader waits for the page, as on a disk, not for the answer
NAME = "program"
VALID_SECS = 3600


class SlowProgram:
    """At .path; .asked is set once somebody waits, until .release()."""

    def __init__(self, program, mount):
        self.content = Path(program).read_bytes()
        self.slow_from = int.from_bytes(self.content[40:48], "little") // PAGE * PAGE  # e_shoff
        self.mount = mount
        self.path = mount / NAME
        self.asked = threading.Event()
        self.waiting = []
        self.released = False
        self.lock = threading.Lock()
        try:
            self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            pytest.skip(f"no FUSE here: {error}")
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"qprof-test", str(mount).encode(), b"fuse", 0, options.encode()):
            os.close(self.fd)
            pytest.skip(f"no FUSE here: {os.strerror(ctypes.get_errno())}")
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def attributes(self, node):
        mode, size = ((stat.S_IFDIR | 0o755, 0) if node == ROOT
                      else (stat.S_IFREG | 0o755, len(self.content)))
        return struct.pack("<6Q10I", node, size, -(-size // 512), 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0,
                           PAGE, 0)

    def answer(self, unique, body=b"", error=0):
        with contextlib.suppress(OSError):  # who asked was killed
            os.write(self.fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)

    def read(self, unique, offset, size):
        with self.lock:
            if offset + size > self.slow_from and not self.released:
                self.waiting.append((unique, offset, size))
                self.asked.set()
                return
        self.answer(unique, self.content[offset:offset + size])

    def release(self):
        with self.lock:
            self.released = True
            waiting, self.waiting = self.waiting, []
        for request in waiting:
            self.read(*request)

    def take(self, opcode, unique, node, body):
        if opcode == INIT:
            self.answer(unique, struct.pack("<4I2H2I2H7I", 7, 31, PAGE, ASYNC_READ, 16, 12, 1 << 16, 1, 0, 0,
                                            *[0] * 7))
        elif opcode == LOOKUP and body == NAME.encode() + b"\0":
            self.answer(unique, struct.pack("<4Q2I", PROGRAM, 0, VALID_SECS, VALID_SECS, 0, 0)
                        + self.attributes(PROGRAM))
        elif opcode == LOOKUP:
            self.answer(unique, error=ENOENT)
        elif opcode == GETATTR:
            self.answer(unique, struct.pack("<Q2I", VALID_SECS, 0, 0) + self.attributes(node))
        elif opcode == OPEN:
            self.answer(unique, struct.pack("<Q2I", 0, 0, 0))
        elif opcode == READ:
            self.read(unique, *struct.unpack_from("<QI", body, 8))
        elif opcode in (RELEASE, FLUSH):
            self.answer(unique)
        elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
            self.answer(unique, error=ENOSYS)

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError:  # unmounted
                return
            _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
            self.take(opcode, unique, node, request[40:])

    def close(self):
        self.release()
        subprocess.run(["umount", "-l", self.mount], check=True)
        self.thread.join()
        os.close(self.fd)
