# SPDX-License-Identifier: GPL-2.0-only
"""
Programs that an audit has to bear, for studies/soak.py. Each runs as a user of its own, so that the report
can be asked for whom it limited what. Each says `ready`, goes on until its input ends, and then says how
often it did what it does.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from harness import Lines, last_json, program
from slow_files import SlowProgram

# Nobody has these numbers: a name would stand in the report instead.
FIRST_USER = 48100

COMMON = """
import ctypes, fcntl, json, mmap, os, select, shutil, signal, socket, struct, subprocess, sys, time
def over(seconds=0):
    return bool(select.select([sys.stdin], [], [], max(0, seconds))[0])
def ready():
    print("ready", flush=True)
def rounds(rate):
    # One number a time, at most `rate` a second, until the input ends.
    began, n = time.monotonic(), 0
    while not over(began + n / rate - time.monotonic()):
        yield n
        n += 1
    print(json.dumps({"did": n}), flush=True)
"""

# Files that a process has mapped, and that whoever opens them waits for: for 45 s each.
LEASES = """
signal.signal(signal.SIGIO, signal.SIG_IGN)
handle = ctypes.CDLL(None)
handle.dlclose.argtypes = [ctypes.c_void_p]
files, kept = [], []
for i in range(10):
    path = f"{sys.argv[3]}/leased{i}"
    shutil.copy(sys.argv[1], path)
    files.append(os.open(path, os.O_RDONLY))
    kept.append(mmap.mmap(files[i], 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
    while True:
        try:
            fcntl.fcntl(files[i], fcntl.F_SETLEASE, fcntl.F_WRLCK)
            break
        except BlockingIOError:  # an audit has it open: it searches it
            time.sleep(0.01)
ready()
for n in rounds(5):  # mapped again, and searched again as the dynamic linker tells its debuggers
    kept[n % 10].close()
    kept[n % 10] = mmap.mmap(files[n % 10], 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    handle.dlclose(ctypes.CDLL(sys.argv[2])._handle)
"""

# Executes a program whose file system never answers.
SLOW_FILES = """
ready()
for n in rounds(2):
    one = subprocess.Popen([sys.argv[1]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    over(0.4)
    one.kill()
    one.wait()
"""

# Marks whose names lie on a page that nobody serves (userfaultfd).
UNSERVED = """
PAGE, UFFD_USER_MODE_ONLY = mmap.PAGESIZE, 0 if os.geteuid() == 0 else 1
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(323, os.O_CLOEXEC | UFFD_USER_MODE_ONLY)
assert fd >= 0, os.strerror(ctypes.get_errno())
fcntl.ioctl(fd, 0xc018aa3f, struct.pack("<3Q", 0xaa, 0, 0))  # UFFDIO_API
at = mmap.mmap(-1, PAGE)
address = ctypes.addressof(ctypes.c_char.from_buffer(at))
fcntl.ioctl(fd, 0xc020aa00, bytearray(struct.pack("<4Q", address, PAGE, 1, 0)))  # UFFDIO_REGISTER
path = f"{sys.argv[2]}/plugin.so"
shutil.copy(sys.argv[1], path)
plugin = ctypes.CDLL(path)
ready()
for n in rounds(20):
    plugin.plugin_mark(ctypes.c_void_p(address))
    if n % 20 == 0:  # in place: its probes must go before
        subprocess.run(["dd", f"if={sys.argv[1]}", f"of={path}", "conv=notrunc", "status=none"], check=True)
"""

# Tens of thousands of mappings, among which executable ones come and go.
MAPPINGS = """
PAGE, COUNT = mmap.PAGESIZE, 40000
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
file = os.open(sys.argv[1], os.O_RDONLY)
base = libc.mmap(None, COUNT * PAGE, 1, 2, file, 0)  # PROT_READ, MAP_PRIVATE
for i in range(0, COUNT, 2):
    assert not libc.mprotect(base + i * PAGE, PAGE, 5), "PROT_READ | PROT_EXEC"
ready()
handle = ctypes.CDLL(None)
handle.dlclose.argtypes = [ctypes.c_void_p]
for n in rounds(500):
    at = libc.mmap(None, PAGE, 5, 2, file, 0)
    plugin = ctypes.CDLL(sys.argv[2])  # the dynamic linker tells its debuggers
    handle.dlclose(plugin._handle)
    libc.munmap(at, PAGE)
"""

# Programs in new files, as containers bring them: a new inode each, gone soon after.
CHURN = """
ready()
for n in rounds(10):
    path = f"{sys.argv[2]}/new{n}"
    shutil.copy(sys.argv[1], path)
    one = subprocess.Popen([path, "mark:new", "exit:0"], stdout=subprocess.PIPE)
    one.stdout.readline()
    one.send_signal(signal.SIGUSR1)
    one.stdout.readline()
    one.send_signal(signal.SIGUSR1)
    one.wait()
    one.stdout.close()
    os.unlink(path)
"""

# A tree of its own for each of many processes, all of which have marks.
JOBS = """
trees = []
for n in range(1200):
    trees.append(subprocess.Popen([sys.argv[1]] + ["mark:mine"] * 1000, stdout=subprocess.PIPE))
    trees[-1].stdout.readline()
ready()
for n in rounds(100):
    trees[n % len(trees)].send_signal(signal.SIGUSR1)
for one in trees:
    one.kill()
    one.wait()
"""

# All connections to the exporter, kept open without a word.
CONNECTIONS = """
held = []
ready()
for n in rounds(50):
    one = socket.socket()
    one.settimeout(1)
    try:
        one.connect(("127.0.0.1", int(sys.argv[1])))
    except OSError:
        continue
    held.append(one)
    if len(held) > 200:
        held.pop(0).close()
"""

# A program of one user that runs with the rights of another.
SETUID = """
ready()
for n in rounds(5):
    one = subprocess.Popen([sys.argv[1], "mark:as another", "exit:0"], stdout=subprocess.PIPE)
    for _ in range(2):
        one.stdout.readline()
        one.send_signal(signal.SIGUSR1)
    one.wait()
    one.stdout.close()
"""

SHORT = """
ready()
for n in rounds(50):
    subprocess.run(["/bin/true"], check=True)
"""

# Allocates and frees as fast as it may, so that it is worth a look each time.
BREATHES = """
at = mmap.mmap(-1, 96 << 20)
libc = ctypes.CDLL(None)
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
address = ctypes.addressof(ctypes.c_char.from_buffer(at))
ready()
for n in rounds(10):
    for i in range(0, 96 << 20, 4096):
        at[i] = 1
    libc.madvise(address, 96 << 20, 4)
"""

NOTES = """
#include <stdio.h>
#include <sys/sdt.h>
#include <unistd.h>
#define PROBE DTRACE_PROBE1(qprof, mark, "one of many");
#define P8 PROBE PROBE PROBE PROBE PROBE PROBE PROBE PROBE
#define P128 P8 P8 P8 P8 P8 P8 P8 P8 P8 P8 P8 P8 P8 P8 P8 P8
#define P2048 P128 P128 P128 P128 P128 P128 P128 P128 P128 P128 P128 P128 P128 P128 P128 P128
void never(void);
void never(void) { P2048 P2048 P2048 P2048 P2048 P2048 P2048 P2048 }
int main(void) { char end; puts("ready"); fflush(stdout); return read(0, &end, 1) != 0; }
"""


@dataclass
class Hostile:
    """One of them, while it runs."""

    name: str
    what: str  # it does
    user: int
    process: subprocess.Popen
    lines: Lines
    did: int = None
    rest: list = field(default_factory=list)  # what must be closed after it

    def tell_to_end(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def end(self):
        """What it did is known then, unless it hangs, or never counted."""
        self.tell_to_end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
            said = last_json(self.process.stdout.read().decode(errors="replace"))
            self.did = said["did"] if said else None
        self.kill()

    def kill(self):
        """With all that it has started."""
        self.tell_to_end()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for close in self.rest:
            close()
        self.rest = []
        self.process.wait()
        self.process.stdout.close()


class Hostiles:
    """All of them. Entered, none runs; start() lets the named ones go."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.running = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.running:
            one.kill()

    def user(self):
        return FIRST_USER + len(self.running)

    def place(self):
        """A folder of the next one's own."""
        path = self.folder / f"of-{self.user()}"
        path.mkdir()
        os.chown(path, self.user(), self.user())
        return path

    def launch(self, name, what, command, *arguments, caps=(), rest=(), env=None):
        user = self.user()
        prefix = ["nice", "-n", "10", "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *caps]
        if command.startswith("/"):
            run = [command]
        else:
            run = ["/usr/bin/python3", "-c", COMMON + command]
        process = subprocess.Popen([*prefix, *run, *map(str, arguments)], cwd="/tmp", stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, start_new_session=True,
                                   env={"PATH": "/usr/bin:/bin", **(env or {})})
        one = Hostile(name, what, user, process, Lines(process.stdout), rest=list(rest))
        self.running.append(one)
        one.lines.until("ready")
        return one

    def end(self):
        for one in self.running:
            one.tell_to_end()
        for one in self.running:
            one.end()

    # ---- Which there are

    def leases(self):
        return self.launch("leases", "write leases on files that it maps again and again", LEASES, program("idle"),
                           program("plugin.so"), self.place())

    def slow_files(self):
        mount = self.place() / "mnt"
        mount.mkdir()
        slow = SlowProgram(program("idle"), mount)
        return self.launch("slow files", "programs on a file system that does not answer", SLOW_FILES, slow.path,
                           rest=[slow.close])

    def unserved(self):
        caps = ("--inh-caps=+sys_ptrace", "--ambient-caps=+sys_ptrace")
        return self.launch("unserved names", "marks whose names nobody serves (userfaultfd); overwrites their file",
                           UNSERVED, program("plugin.so"), self.place(), caps=caps)

    def mappings(self):
        return self.launch("mappings", "20,000 executable mappings; some come and go", MAPPINGS,
                           program("idle"), program("plugin.so"))

    def notes(self):
        path = self.place() / "notes"
        subprocess.run(["gcc", "-O0", "-x", "c", "-", "-o", path], input=NOTES, text=True, check=True)
        path.chmod(0o755)
        return self.launch("notes", "an ELF file with 16,384 probes", str(path))

    def churn(self):
        return self.launch("churn", "programs in new files, 10 a second", CHURN, program("idle"), self.place())

    def jobs(self):
        return self.launch("jobs", "1,200 trees with marks", JOBS, program("idle"))

    def connections(self, port):
        return self.launch("connections", "200 connections to the exporter", CONNECTIONS, port)

    def setuid(self):
        path = self.place() / "as-another"
        shutil.copy(program("idle"), path)
        os.chown(path, FIRST_USER + 99, FIRST_USER + 99)
        path.chmod(0o4755)
        return self.launch("setuid", "a program with the rights of another user", SETUID, path)

    def short(self):
        return self.launch("short", "50 programs a second", SHORT)

    def breathes(self):
        return self.launch("breathes", "allocates and frees 96 MiB, 10 times a second", BREATHES)
