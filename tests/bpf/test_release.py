# SPDX-License-Identifier: GPL-2.0-only
"""What tools/release makes: a program that needs the kernel alone, an archive, a wheel."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness import CLEAN_ENV, NOBODY, PYTHON, QPROF, parse, program, public_dir, run_qprof, step_names

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/sdk"))
from test_python import PYTHONS  # noqa: E402

CACHE = Path("/var/cache/qprof-bpf")


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """The directory with what is released, built as a user would, but with the compiler's cache."""
    out = tmp_path_factory.mktemp("release") / "out"
    cached = {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": str(ROOT)}
    env = {**CLEAN_ENV, **(cached if shutil.which("ccache") else {})}
    done = subprocess.run([ROOT / "tools/release", out], env=env, capture_output=True, text=True, check=False)
    if "could not install" in done.stderr or "libdw.a cannot be linked" in done.stderr:
        pytest.skip(f"archives of libraries are missing, or not whole: {done.stderr[-300:]}")
    assert done.returncode == 0, done
    return out


def only(directory, pattern):
    [path] = directory.glob(pattern)
    return path


@pytest.fixture(scope="module")
def alone(release, tmp_path_factory):
    """The program, with nothing beside it. What it unpacks for that is removed."""
    path = tmp_path_factory.mktemp("alone") / "qprof-bpf"
    shutil.copy(only(release, "qprof-bpf-*-linux-x86_64"), path)
    before = set(CACHE.glob("*"))
    yield path
    for unpacked in set(CACHE.glob("[0-9]*-*")) - before:
        shutil.rmtree(unpacked)


@pytest.fixture
def static(alone, monkeypatch):
    """The harness runs that one."""
    monkeypatch.setattr(harness, "QPROF", alone)
    assert run_qprof("--version").args == [str(alone), "--version"]
    return alone


def test_checksums(release):
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=release, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3, done


def run_in(root, *command):
    """With what the kernel tells and nothing else of this machine."""
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
         'mount --rbind /proc "$1/proc"; mount --rbind /sys "$1/sys"; exec chroot "$@"', "sh", root, *command],
        env=CLEAN_ENV, capture_output=True, text=True, check=False)


def test_nothing_but_the_kernel(alone, tmp_path):
    """In a root with no other file the program profiles itself, and unpacks what it carries."""
    root = tmp_path / "root"
    for directory in ("proc", "sys", "tmp"):
        (root / directory).mkdir(parents=True)
    shutil.copy(alone, root)
    profiled = ["/qprof-bpf", "-o", "/tmp/out.yaml", "--", "/qprof-bpf", "--version"]
    done = run_in(root, *profiled)
    assert done.returncode == 0 and done.stdout.startswith("qprof-bpf "), done
    assert "recipes is not installed" in done.stderr, f"there is no /var to unpack into; {done}"
    [process] = parse(root / "tmp/out.yaml")["processes"]
    assert process["cmdline"] == "/qprof-bpf --version"
    (root / "var/cache").mkdir(parents=True)
    done = run_in(root, *profiled)
    assert done.returncode == 0 and "not installed" not in done.stderr, done
    [unpacked] = (root / "var/cache/qprof-bpf").iterdir()
    assert (unpacked / "share/qprof-bpf/recipes/llama-quantize.yaml").exists()


def test_carried_library_can_be_loaded(static):
    """By a program of the user who called sudo; so can the hooks."""
    text = ("import ctypes, os; ctypes.CDLL(os.environ['QPROF_LIBRARY'])\n"
            "open(os.environ['PYTHONPATH'].split(':')[0] + '/sitecustomize.py')")
    with public_dir(NOBODY) as where:
        run = run_qprof("-o", where / "out.yaml", "--", PYTHON, "-c", text,
                        env={"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)})
    assert run.returncode == 0 and "no Python hooks" not in run.stderr, run


def test_files_of_others_beside_it(alone, tmp_path, monkeypatch):
    """In a directory such as /tmp: none of them is taken, as none is where nobody else can write."""
    where = tmp_path / "shared"
    where.mkdir()
    where.chmod(0o1777)
    monkeypatch.setattr(harness, "QPROF", str(shutil.copy(alone, where)))
    planted = [where / "libqprof.so.0", where / "share/qprof-bpf/python/hooks/sitecustomize.py"]
    for path in planted:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit(77)")
        for owned in (path, *path.parents):
            if where in owned.parents:
                os.chown(owned, NOBODY, NOBODY)
    text = "import os; print(os.environ['QPROF_LIBRARY'], os.environ['PYTHONPATH'])"
    run = run_qprof("-q", "-o", tmp_path / "out.yaml", "--", PYTHON, "-c", text)
    assert run.returncode == 0 and str(where) not in run.stdout and "/hooks" in run.stdout, run


def test_same_profile(static, tmp_path, unhurried):
    """The first example of README.md, by this program and by the other: the same keys, steps and peak."""
    def quantize(name):
        run = unhurried(program("quantize"), "--make", "8", tmp_path / f"{name}.f32", tmp_path / f"{name}.int8",
                        options=["--stacks"])
        functions = run.profile["stacks"]["functions"]
        assert "main" in [row[functions["columns"].index("name")] for row in functions["rows"]], functions
        return run.profile

    ours = quantize("static")
    harness.QPROF = QPROF
    theirs = quantize("shared")
    assert step_names(ours) == step_names(theirs) and "Quantization (layer 7) End" in step_names(ours)
    # In bytes, too, where MiB with six decimals are not exact.
    by_chance = {"peak_memory_bytes"}
    assert ours.keys() - by_chance == theirs.keys() - by_chance, ours.keys() ^ theirs.keys()
    assert ours["peak_memory_mb"] == pytest.approx(theirs["peak_memory_mb"], rel=0.05)


def test_users_are_looked_up(static):
    """Names and groups are what `id` says, though no library of libc's can be loaded."""
    with public_dir(NOBODY) as where:
        run = run_qprof("-q", "-o", where / "out.yaml", "--", "sh", "-c", "id -G; echo $USER $HOME",
                        env={"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)})
    expected = subprocess.run(["id", "-G", "nobody"], capture_output=True, text=True, check=True).stdout
    assert [set(run.stdout.splitlines()[0].split()), run.stdout.splitlines()[1]] == [
        set(expected.split()), f"nobody {Path('~nobody').expanduser()}"], run


def test_metrics_are_served(static, exporter):
    with exporter(listen="127.0.0.1:0") as running:
        assert running.ask().status == 200
        running.stop()


def test_doctor_tells_of_gpus(static):
    assert "static and cannot load libnvidia-ml.so.1" in run_qprof("doctor").stdout


# ---- The wheel

MARKS = """
import json, qprof
with qprof.scope("Calibration"):
    data = bytearray(32 << 20)
print(json.dumps(qprof._library.is_loaded))
"""


def pip(python, *arguments):
    """Its own one, which Debian's python3 has not; Debian's own runs in no newer Python."""
    own = not subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode
    done = subprocess.run([python if own else PYTHON, "-m", "pip", *([] if own else ["--python", python]),
                           "--disable-pip-version-check", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done


def environment(python, release, path):
    """A clean one with the wheel and nothing else; without an index."""
    bare = python == PYTHON or subprocess.run([python, "-c", "import ensurepip"], capture_output=True,
                                              check=False).returncode
    subprocess.run([python, "-m", "venv", *(["--without-pip"] if bare else []), path], check=True)
    pip(path / "bin/python", "install", "--no-index", only(release, "*.whl"))
    return path / "bin/python"


@pytest.mark.parametrize("python", PYTHONS)
def test_wheel(release, tmp_path, unhurried, monkeypatch, python):
    """python3 -m qprof profiles a program with marks; the program can be heard without it, too; nothing stays."""
    ours = environment(python, release, tmp_path / "env")
    module, quantize = tmp_path / "module", tmp_path / "quantize.py"
    module.write_text(f'#!/bin/sh\nexec {ours} -m qprof "$@"\n')
    module.chmod(0o755)
    quantize.write_text(MARKS)
    for runs in (module, ours.parent / "qprof-bpf"):
        monkeypatch.setattr(harness, "QPROF", runs)
        run = unhurried(ours, quantize)
        assert step_names(run.profile) == ["Calibration Start", "Calibration End"], run
    done = subprocess.run([ours, quantize], env=CLEAN_ENV, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is True, "the library is not found without qprof-bpf"
    done = subprocess.run([ours.parent / "qprof-bpf", "recipes"], capture_output=True, text=True, check=True)
    assert "llama-quantize" in done.stdout
    pip(ours, "uninstall", "-y", "qprof-bpf")
    assert not [path for path in (tmp_path / "env").rglob("*qprof*") if not path.is_dir()]


def test_signals_are_as_they_were(release, tmp_path):
    """Python ignores SIGPIPE; what python3 -m qprof starts does not."""
    ours = environment(PYTHON, release, tmp_path / "env")
    shown = ["grep", "SigIgn", "/proc/self/status"]
    done = subprocess.run([ours, "-m", "qprof", "-q", "-o", tmp_path / "out.yaml", "--", *shown], env=CLEAN_ENV,
                          capture_output=True, text=True, check=True)
    assert done.stdout == subprocess.run(shown, capture_output=True, text=True, check=True).stdout


# ---- The archive

def test_archive_is_an_installation(release, tmp_path):
    """Its directories are those that are there: unpacked in /usr/local it changes none."""
    (tmp_path / "bin").mkdir(mode=0o750)
    subprocess.run(["tar", "-C", tmp_path, "--strip-components=1", "-xf", only(release, "*.tar.gz")], check=True)
    run = subprocess.run([tmp_path / "bin/qprof-bpf", "-v", "-o", tmp_path / "out.yaml", "--python-hooks=all", "--",
                          PYTHON, "-c", "import os; print(os.environ['QPROF_LIBRARY'])"],
                         env=CLEAN_ENV, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str((tmp_path / "lib/libqprof.so.0").resolve()), run
    assert "not installed" not in run.stderr, run
    assert (tmp_path / "bin").stat().st_mode & 0o777 == 0o750
