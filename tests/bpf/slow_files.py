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

from harness import wait_for

PAGE = 4096
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = (
    1, 2, 3, 14, 15, 17, 18, 25, 26, 36, 42)
ROOT, PROGRAM = 1, 2
ENOENT, ENOSYS = 2, 38
ASYNC_READ = 1  # a reader waits for the page, as on a disk, not for the answer
DIRECT_IO, KEEP_CACHE = 1, 2  # of an answer to OPEN
NAME = "program"
VALID_SECS = 3600
LOCKED_SECS = 30  # at most: nobody on the machine can fork while someone waits for that lock
# Opens the file twice: the page that it reads through the one is in the way of its map of the other.
HOLDER = """
import ctypes, mmap, os, sys, threading
ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: its folder in /proc is root's
cached = os.open(sys.argv[1], os.O_RDONLY)
print("opened", flush=True)
sys.stdin.readline()
direct = os.open(sys.argv[1], os.O_RDONLY)
threading.Thread(target=os.pread, args=(cached, 1, int(sys.argv[2])), daemon=True).start()
print("reads", flush=True)
sys.stdin.readline()
mmap.mmap(direct, mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ)
"""
# Reads the slow page of its map by /proc/self/mem, with the map locked for reading, as mincore() does all the time.
READER = """
import ctypes, mmap, os, sys, threading
libc = ctypes.CDLL(None)
memory = os.open("/proc/self/mem", os.O_RDONLY)
libc.prctl(4, 0)
slow = int(sys.argv[2])
file = os.open(sys.argv[1], os.O_RDONLY)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(slow + mmap.PAGESIZE), mmap.PROT_READ, mmap.MAP_PRIVATE, file, ctypes.c_long(0))
pages = 4096
area = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(pages * mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_WRITE,
                                 mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0)))
libc.memset(area, 1, ctypes.c_size_t(pages * mmap.PAGESIZE))
there = ctypes.create_string_buffer(pages)
print("opened", flush=True)
sys.stdin.readline()
threading.Thread(target=os.pread, args=(memory, 1, at + slow), daemon=True).start()
print("reads", flush=True)
sys.stdin.readline()
while True:
    libc.mincore(area, ctypes.c_size_t(pages * mmap.PAGESIZE), there)
"""
# A process of its own, as a fork of ours may hang with all of our threads. MNT_FORCE ends the file system.
WATCH = """
import ctypes, sys, time
time.sleep(float(sys.argv[1]))
ctypes.CDLL(None).umount2(sys.argv[2].encode(), 1)
"""


class SlowProgram:
    """At .path; .asked is set once somebody waits, until .release(). Nor does it say until then how full
    it is: .sized are those that have asked."""

    def __init__(self, program, mount):
        self.content = Path(program).read_bytes()
        self.slow_from = int.from_bytes(self.content[40:48], "little") // PAGE * PAGE  # e_shoff
        self.mount = mount
        self.path = mount / NAME
        self.asked = threading.Event()
        self.sized = []
        self.closed = []  # .holds_close: those whose close waits until .release()
        self.holds_close = False
        self.waiting = []
        self.released = False
        self.direct = False  # whoever opens it from now on reads past the page cache
        self.lock = threading.Lock()
        try:
            self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            pytest.skip(f"no FUSE here: {error}")
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
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
        for unique in self.sized:
            self.answer(unique, error=ENOSYS)
        for unique in self.closed:
            self.answer(unique)

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
            self.answer(unique, struct.pack("<Q2I", 0, DIRECT_IO if self.direct else KEEP_CACHE, 0))
        elif opcode == READ:
            self.read(unique, *struct.unpack_from("<QI", body, 8))
        elif opcode == STATFS and not self.released:
            self.sized.append(unique)
        elif opcode == FLUSH and self.holds_close and not self.released:
            self.closed.append(unique)
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

    @contextlib.contextmanager
    def started(self, script, prefix):
        """A process that was told when its other thread waits for the slow page."""
        watch = subprocess.Popen(["/usr/bin/python3", "-c", WATCH, str(LOCKED_SECS), str(self.mount)])
        process = subprocess.Popen([*prefix, "/usr/bin/python3", "-c", script, self.path, str(self.slow_from)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            for said, direct in ((b"opened\n", True), (b"reads\n", False)):
                assert process.stdout.readline() == said
                if not direct:
                    assert self.asked.wait(10), "its other thread must wait for the page"
                self.direct = direct
                process.stdin.write(b"go\n")
                process.stdin.flush()
            yield process
        finally:
            watch.kill()
            watch.wait()
            self.release()
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    @contextlib.contextmanager
    def holder(self, prefix=()):
        """
        A process whose memory map is locked until .release(): it maps the file, and the kernel waits there for
        a page that another thread of it reads. Meanwhile nobody can look at what it has mapped, or change it.
        """
        with self.started(HOLDER, prefix) as process:
            stack = Path(f"/proc/{process.pid}/stack")
            wait_for(lambda: "fuse_file_mmap" in stack.read_text(encoding="ascii"), "the map that is locked")
            yield process

    def readers(self, prefix=()):
        """
        The same, locked for reading: one thread stays, and another comes and goes. Others may look at what it has
        mapped, and nobody can change it.
        """
        return self.started(READER, prefix)

    def close(self):
        self.release()
        subprocess.run(["umount", "-l", self.mount], check=True)
        self.thread.join()
        os.close(self.fd)


class LateProgram(SlowProgram):
    """What cannot be read is there after LATE_SECS, each time."""

    LATE_SECS = 0.1

    def read(self, unique, offset, size):
        if offset + size > self.slow_from and not self.released:
            self.asked.set()
            threading.Timer(self.LATE_SECS, self.answer, (unique, self.content[offset:offset + size])).start()
            return
        super().read(unique, offset, size)
