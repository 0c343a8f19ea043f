# SPDX-License-Identifier: GPL-2.0-only
"""Exceptions of Python that nobody catches: their words, the phase, what refused; no program is changed for it."""

import os
import signal
import subprocess
import textwrap

import pytest

from harness import AS_NOBODY, MIB, NOBODY, PYTHON, QPROF_PACKAGE, profile_command, run_qprof
from refusals import QUOTA

LIMIT = 1 << 30
LONG = "x" * 600

SCRIPT = """
    import os, sys
    def hold():
        held = bytearray(16 << 20)
        for at in range(0, len(held), 4096): held[at] = 1
        return held
    def raises(kind, *words):
        held = hold()
        raise kind(*words)
"""


@pytest.fixture
def python(out, tmp_path):
    """python(text, args, status=1): the profile of a script, and the report of it in one line."""
    def call(text, *args, status=1, env=None):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(SCRIPT) + textwrap.dedent(text))
        run = profile_command(out, PYTHON, script, *args, status=status, env=env)
        return run.profile, " ".join(run_qprof("report", "--width", "200", out).stdout.split("\n  ran")[0].split())
    return call


def only_end(profile):
    found = profile.get("ended", [])
    assert len(found) == 1, f"expected one bad end, got {found}"
    assert 16 * MIB <= found[0]["anon_mb"] * MIB, found
    return found[0]


def test_words(python):
    profile, text = python("""
        class QuantizeError(Exception): pass
        raises(QuantizeError, "layer 3:\\nno scale")
    """)
    end = only_end(profile)
    assert (end["how"], end["exception"]) == ("exception", "QuantizeError: layer 3: no scale"), end
    assert "thread" not in end and "phase" not in end, end
    assert text.startswith("! Ended by QuantizeError: layer 3: no scale at "), text


def test_long_words(python):
    """As PyTorch's OutOfMemoryError has: from a module, and more than a probe can say at once."""
    profile, _ = python(f"""
        class OutOfMemoryError(RuntimeError): pass
        OutOfMemoryError.__module__ = "torch"
        raises(OutOfMemoryError, "CUDA out of memory. {LONG} \u00e9")
    """)
    assert only_end(profile)["exception"] == f"torch.OutOfMemoryError: CUDA out of memory. {LONG} \u00e9", profile["ended"]


def test_hostile_words(python, out):
    profile, _ = python("""
        class Bad(Exception):
            def __str__(self): raise SystemExit(0)
        Bad.__qualname__ = "Bad\\x1b[2J" + "y" * 5000
        raises(Bad)
    """)
    words = only_end(profile)["exception"]
    assert words.startswith("Bad\x1b[2Jyyy") and len(words) <= 4 * 255, words
    assert "\x1b" not in run_qprof("report", out).stdout


def test_phase(python):
    """It is told when all phases have been left: the first of them is where it was raised."""
    profile, text = python("""
        import qprof
        with qprof.scope("Quantize"):
            try:
                with qprof.scope("Before"): raise KeyError(1)
            except KeyError: pass
            with qprof.scope("Layer 3"): raises(ValueError, "no")
    """, env=QPROF_PACKAGE | {"PATH": os.environ["PATH"]})
    assert only_end(profile)["phase"] == "Layer 3", profile["ended"]
    assert ", in Layer 3: process " in text, text


def test_thread(python):
    """The process goes on, and ends well."""
    profile, text = python("""
        import threading
        thread = threading.Thread(target=lambda: raises(ZeroDivisionError, "oh"))
        thread.start()
        thread.join()
    """, status=0)
    end = only_end(profile)
    assert (end["exception"], end["thread"]) == ("ZeroDivisionError: oh", True), end
    assert text.startswith("! A thread was ended by ZeroDivisionError: oh at "), text


def test_hook_of_the_program(python):
    """A program that shows its exceptions in its own way hides ours; what ends it is known at its exit."""
    profile, _ = python("""
        sys.excepthook = lambda *_: print("shown")
        raises(ValueError, "no")
    """)
    assert only_end(profile)["exception"] == "ValueError: no", profile["ended"]


@pytest.mark.parametrize("text,status", [
    ("sys.exit('no')", 1), ("raise SystemExit(3)", 3),
    ("try: raises(ValueError)\nexcept ValueError: pass", 0),
    ("try: raises(ValueError)\nexcept ValueError: sys.excepthook(*sys.exc_info())", 0),
    ("import threading; thread = threading.Thread(target=sys.exit); thread.start(); thread.join()", 0),
    ("raise KeyboardInterrupt", -signal.SIGINT),
], ids=["exit", "status", "caught", "shown", "thread", "interrupted"])
def test_no_bad_end(python, text, status):
    profile, _ = python(text, status=status)
    assert "ended" not in profile, profile["ended"]


def test_refused_memory(python):
    """Until there is nothing left for anybody, the hook included."""
    profile, text = python(f"""
        import resource
        held = [hold()]
        resource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT}))
        def fill(): 
            more = []
            while True: more.append(bytearray(1 << 20))
        fill()
    """)
    end = only_end(profile)
    assert (end["how"], end["exception"], end["refused_by"]) == ("refused", "MemoryError", "RLIMIT_AS"), end
    assert end["limit_mb"] * MIB == LIMIT and LIMIT - LIMIT // 16 <= end["usage_mb"] * MIB <= LIMIT, end
    assert text.startswith("! Ended by MemoryError, refused more memory, at "), text


def test_no_reason(python):
    """More than there can be at all: no limit was near, so none is blamed."""
    profile, _ = python("hold(); held = hold(); bytearray(1 << 62)")
    end = only_end(profile)
    assert (end["how"], end["exception"]) == ("exception", "MemoryError") and "refused_by" not in end, end


@pytest.fixture
def small(tmp_path):
    """A file system of 1 MiB."""
    where = tmp_path / "small"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", where], check=True)
    yield where
    subprocess.run(["umount", where], check=True)


def test_full_file_system(python, small):
    profile, text = python("""
        def save(held):
            with open(sys.argv[1] + "/sub/model.bin", "wb") as file:
                while True: file.write(bytes(1 << 16))
        os.mkdir(sys.argv[1] + "/sub")
        save(hold())
    """, small)
    end = only_end(profile)
    assert (end["how"], end["refused_by"], end["file_system"]) == ("refused", "file system", str(small)), end
    assert end["left_mb"] == 0 and end["exception"].startswith("OSError: [Errno 28]"), end
    assert f"while 0 B were left of the file system at {small}" in text and "refused more memory" not in text, text


def test_over_quota(out, limited):
    """Whose it is, although the program has closed the file by its end, and may ask for its own quotas only."""
    path, kind = limited
    run = profile_command(out, *AS_NOBODY, PYTHON, "-c", textwrap.dedent(SCRIPT) + textwrap.dedent("""
        held = hold()
        with open(sys.argv[1] + "/model.bin", "wb") as file:
            while True: file.write(bytes(1 << 16))
    """), path, status=1)
    end = only_end(run.profile)
    assert end["exception"].startswith("OSError: [Errno 122]"), end
    assert (end["how"], end["refused_by"], end["file_system"]) == ("refused", "quota", str(path)), end
    assert (end["quota_of"], end["limit_mb"] * MIB) == (f"{kind} {NOBODY}", QUOTA), end
    assert 0 <= end["left_mb"] * MIB < QUOTA // 16 and 0 <= QUOTA - end["usage_mb"] * MIB < QUOTA // 16, end
    text = " ".join(run_qprof("report", "--width", "200", out).stdout.split())
    assert f" were left of the quota of {kind} {NOBODY}, 2.00 MiB, on the file system at {path}" in text, text


@pytest.mark.usefixtures("sparing")
def test_refused_by_the_machine(python):
    profile, text = python("""
        held = hold()
        pieces = []
        while True: pieces.append(bytearray(1 << 20))
    """)
    end = only_end(profile)
    assert (end["how"], end["refused_by"], end["exception"]) == ("refused", "vm.overcommit_memory", "MemoryError"), end
    assert end["limit_mb"] * 15 / 16 <= end["usage_mb"] <= end["limit_mb"], end
    assert "where vm.overcommit_memory allows" in text, text
