# SPDX-License-Identifier: GPL-2.0-only
"""Where probes are found: libraries, plugins, after an exec, in other roots, in deleted files."""

import re
import shutil
import subprocess

import pytest

from harness import (AS_NOBODY, DEADLINE, QPROF, assert_nothing_lost, holds_starts, program, public_dir,
                     quality, run_qprof, step_names)


def plugin_steps(count):
    return [f"plugin {i}" for i in range(count)]


def test_linked_library(unhurried):
    """Probes in a library that the program is linked with, none in the program itself."""
    run = unhurried(program("linked"), 3)
    assert step_names(run.profile) == plugin_steps(3)


def test_dlopen_emits_at_once(unhurried):
    """A library opened later, whose first checkpoint comes with no pause after dlopen."""
    run = unhurried(program("checkpoints"), "plugin", program("plugin.so"), 3)
    assert step_names(run.profile) == ["before dlopen", *plugin_steps(3), "after dlopen"]


def test_exec_emits_at_once(unhurried):
    """A program that the command becomes."""
    run = unhurried(program("checkpoints"), "exec", program("linked"), 3)
    assert step_names(run.profile) == ["before exec", *plugin_steps(3)]


def test_exec_of_a_child(unhurried):
    run = unhurried("sh", "-c", f"{program('checkpoints')} sequence >&2; {program('linked')} 2")
    assert step_names(run.profile)[-2:] == plugin_steps(2)
    assert len(step_names(run.profile)) == 12


def test_dlopen_after_attach(target, attach):
    idle = target("mark:before", f"dlopen:{program('plugin.so')}", "mark:after")
    with attach(idle.pid) as attached:
        for _ in range(3):
            idle.go()
        profile = attached.finished()
    assert step_names(profile) == ["before", "plugin 0", "after"]


def test_exec_after_attach(target, attach):
    idle = target("mark:before", f"exec:{program('idle')}", "mark:after")
    with attach(idle.pid) as attached:
        idle.go()
        idle.go()  # it is ready again
        idle.go()
        profile = attached.finished()
    assert step_names(profile) == ["before", "after"]


def test_other_mount_namespace(unhurried, tmp_path):
    """A program that is in no file that we can name: it is on a mount of its own."""
    inside = tmp_path / "inside"
    inside.mkdir()
    script = 'mount -t tmpfs none "$0"; cp "$1" "$0/hidden"; exec "$0/hidden" sequence'
    run = unhurried("unshare", "-m", "sh", "-ec", script, inside, program("checkpoints"))
    assert not (inside / "hidden").exists(), "the test's program can be seen from outside"
    assert step_names(run.profile) == run.truth["steps"]


def test_attach_in_other_mount_namespace(target, attach, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    script = ('mount -t tmpfs none "$0"; cp "$1" "$0/hidden"; shift; exec "$0/hidden" "$@"')
    idle = target("mark:inside", path=program("idle"),
                  prefix=("unshare", "-m", "sh", "-ec", script, str(inside)))
    with attach(idle.pid) as attached:
        idle.go()
        profile = attached.finished()
    assert step_names(profile) == ["inside"]


LAUNCHERS = {
    "sh": "{path}",
    "chroot": "chroot {root} /{name}",
    "setpriv": "setpriv --clear-groups {path}",
    "su": "su root -c {path}",
    "strace": "strace -o /dev/null {path}",
    "unshare": "unshare -m {path}",
}


def is_warned(profile):
    return any("first run" in warning["what"] for warning in profile["quality"]["warnings"])


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_first_runs_of_static_programs(unhurried, tmp_path, launcher):
    """
    Programs that no dynamic linker makes wait, each run for the first time, which hit five marks at once. Where
    none can be held at its start, the first marks may be missing, and that is said.
    """
    if not shutil.which(launcher):
        pytest.skip(f"no {launcher} here")
    runs = 20
    for i in range(runs):
        shutil.copy(program("prompt"), tmp_path / f"p{i}")
    line = LAUNCHERS[launcher]
    run = unhurried("sh", "-ec", "\n".join(
        line.format(root=tmp_path, path=tmp_path / f"p{i}", name=f"p{i}") for i in range(runs)))
    once = ["first", "second", "third", "fourth", "fifth"]
    steps = step_names(run.profile)
    if holds_starts(run.profile):
        assert steps == once * runs, f"expected {5 * runs} marks, got {len(steps)}"
        assert not is_warned(run.profile)
    else:
        assert steps == once * runs or is_warned(run.profile), run.profile["quality"]


def test_file_overwritten_where_no_signal_can_wait(unhurried, tmp_path):
    """RLIMIT_SIGPENDING is used up, as by many such files at once: the kernel sends SIGIO, by default an end."""
    copy = tmp_path / "copy"
    shutil.copy(program("checkpoints"), copy)
    # ETXTBSY while somebody looks at what has just ended.
    script = f"{copy} sequence >/dev/null; until exec 3<>{copy}; do :; done; {program('checkpoints')} sequence"
    run = unhurried("bash", "-c", script, through=["prlimit", "--sigpending=0"])
    assert step_names(run.profile) == 2 * run.truth["steps"], "the run is to go on"
    said = [warning["what"] for warning in run.profile["quality"]["warnings"]
            if "opened for writing" in warning["why"]]
    assert said == [str(copy)], run.profile["quality"]


def test_number_of_a_deleted_file(unhurried, disk):
    """A program without probes is known by now; its file is deleted, and the next one gets its inode number. It
    is of the same size, and has probes: it waits all the same."""
    plain, marked, path = disk / "plain", disk / "marked", disk / "program"
    shutil.copy(program("checkpoints"), marked)
    subprocess.run(["objcopy", "--rename-section", ".note.stapsdt=.note.notprobe", marked, plain], check=True)
    number = f"stat -c %i {path} >&2"
    script = "; ".join([f"cp {plain} {path}", f"{path} sequence >/dev/null", number, f"rm {path}",
                        f"cp {marked} {path}", number, f"{path} sequence"])
    for _ in range(10):
        run = unhurried("sh", "-ec", script)
        numbers = re.findall(r"^\d+$", run.stderr, re.M)
        if len(numbers) == 2 and numbers[0] == numbers[1]:
            break
    else:
        pytest.skip("this file system gives the number to no other file")
    assert step_names(run.profile) == run.truth["steps"], run.profile["quality"]


LATE = """
import os, signal, sys, time

def spawn(*argv):
    pid = os.fork()
    if not pid:
        os.execv(argv[0], argv)
    return pid

for _ in range(3):
    os.waitpid(spawn("/bin/true"), 0)
os.kill(os.getppid(), signal.SIGSTOP)
os.waitpid(spawn("/bin/true"), 0)
pid = spawn(*sys.argv[1:])
time.sleep(0.03)
os.kill(os.getppid(), signal.SIGCONT)
os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("name", ["prompt", "checkpoints"])
def test_late_answer_to_an_ended_process(unhurried, tmp_path, name):
    """
    The loader is late (stopped for 30 ms). A program that was searched before need not wait, and ends
    meanwhile; the next one gets its slot, and waits. It is not to take the answer to the first for its own.
    """
    copy = tmp_path / "copy"
    shutil.copy(program(name), copy)
    run = unhurried("/usr/bin/python3", "-c", LATE, copy, *(["sequence"] if name == "checkpoints" else []))
    if quality(run.profile)["hasty_starts"]:
        pytest.skip("the machine is too busy: no program waited")
    if name == "prompt" and not holds_starts(run.profile):
        pytest.skip("this kernel does not hold static programs at their starts")
    expected = run.truth["steps"] if run.truth else ["first", "second", "third", "fourth", "fifth"]
    assert step_names(run.profile) == expected, f"expected {expected}, got {step_names(run.profile)}"


def test_other_root(unhurried, tmp_path):
    """
    In a chroot: its paths mean something else to us, and its dynamic linker is one that makes nobody
    wait until we know it. So the program is held at its start; where it cannot be, the first run may be too
    fast, but not without a warning; the second is not.
    """
    root = tmp_path / "root"
    libraries = subprocess.run(["ldd", program("checkpoints")], capture_output=True, text=True,
                               check=True).stdout
    for word in [*libraries.split(), program("checkpoints")]:
        if word.startswith("/"):
            to = root / word[1:]
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, to)
    again = f'chroot {root} {program("checkpoints")} sequence; ' * 2
    run = unhurried("sh", "-c", again)
    steps, once = step_names(run.profile), run.truth["steps"]
    assert steps[-len(once):] == once, f"expected {once} of the second run, got {steps}"
    first = steps[:-len(once)]
    warned = is_warned(run.profile) and not holds_starts(run.profile)
    assert first == once or (warned and first == once[len(once) - len(first):]), (
        f"expected {once} of the first run, or a warning and the end of it; got {first}, "
        f"{run.profile['quality']['warnings']}")


def test_deleted_executable(target, attach, tmp_path):
    """The file is gone while the program runs: what is mapped is still there."""
    gone = tmp_path / "gone"
    shutil.copy(program("idle"), gone)
    idle = target("mark:still here", path=str(gone))
    gone.unlink()
    with attach(idle.pid) as attached:
        idle.go()
        profile = attached.finished()
    assert step_names(profile) == ["still here"]


def test_replaced_executable(target, attach, tmp_path):
    """Another file has the name now, with other probes at other places."""
    path = tmp_path / "program"
    shutil.copy(program("idle"), path)
    idle = target("mark:the old one", path=str(path))
    path.unlink()
    shutil.copy(program("checkpoints"), path)
    with attach(idle.pid) as attached:
        idle.go()
        profile = attached.finished()
    assert step_names(profile) == ["the old one"]


CHANGES = {
    "link": "ln -f {path} {path}.link",
    "mode": "chmod 70$i {path}",
    "name": "mv {path} {path}.other; mv {path}.other {path}",
    "time": "touch {path}",
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_that_is_none_of_the_content(unhurried, tmp_path, change):
    """What runs the file goes on, and what is started from it has its marks from the first on."""
    path = tmp_path / "program"
    shutil.copy(program("checkpoints"), path)
    running, starts = 600, 6
    runs = f'until [ "$(readlink /proc/$!/exe)" = {path} ]; do :; done'  # before it loses its name
    run = unhurried("sh", "-ec", f"{path} rate {running} 300 & {runs}; for i in $(seq {starts}); do "
                    f"{CHANGES[change].format(path=path)}; {path} rate 3; done; wait")
    steps = step_names(run.profile)
    expected = running + 3 * starts
    assert len(steps) == expected, f"expected {expected} marks, got {len(steps)}"
    warnings = run.profile["quality"]["warnings"]
    assert not any("may miss" in w["why"] for w in warnings), warnings


def test_file_that_is_written_anew_in_place(unhurried, tmp_path):
    """Its probes are others, at other places; whatever had it in use is told of."""
    path = tmp_path / "program"
    # A program that did not wait may be gone while its probes are attached: until they are, its file is busy.
    overwrite = f"until cat {program('prompt')} >{path}; do :; done"
    first = f"cp --remove-destination {program('checkpoints')} {path}; {path} rate 3"
    run = unhurried("sh", "-ec", f"{first}; {overwrite}; {path}")
    assert step_names(run.profile)[:3] == ["c0000000", "c0000001", "c0000002"]
    if holds_starts(run.profile):
        assert step_names(run.profile)[3:] == ["first", "second", "third", "fourth", "fifth"]
    warnings = run.profile["quality"]["warnings"]
    assert any(w["what"] == str(path) and "may miss checkpoints" in w["why"] for w in warnings), warnings


def test_library_that_is_written_while_programs_wait(unhurried, tmp_path):
    """Someone has it open for writing, so that it has no lease. Who waits for the new probes is in a probe, of
    the dynamic linker: the old ones cannot go before it goes on."""
    for name in ("linked", "plugin.so"):
        shutil.copy(program(name), tmp_path / name)
    other = tmp_path / "other"
    content = (tmp_path / "plugin.so").read_bytes()
    assert b"qprof\0mark" in content
    other.write_bytes(content.replace(b"qprof\0mark", b"qprof\0seen"))
    run = unhurried("sh", "-ec", f"exec 9>>{tmp_path}/plugin.so; {tmp_path}/linked; "
                    "sleep 2.1; "  # for so long a program that was searched does not wait
                    f"dd if={other} of={tmp_path}/plugin.so conv=notrunc status=none; "
                    f"{tmp_path}/linked")
    assert quality(run.profile)["hasty_starts"] == 0, quality(run.profile)
    assert "seen" in step_names(run.profile), step_names(run.profile)


def test_stripped_executable(profile, tmp_path):
    """Probes are in notes, which stripping keeps."""
    path = tmp_path / "stripped"
    subprocess.run(["strip", "-o", path, program("checkpoints")], check=True)
    run = profile(path, "sequence")
    assert step_names(run.profile) == run.truth["steps"]


def test_strange_path(profile, tmp_path):
    path = tmp_path / "a name: with \"all\"\n(deleted)"
    shutil.copy(program("checkpoints"), path)
    run = profile(path, "sequence")
    assert step_names(run.profile) == run.truth["steps"]
    assert_nothing_lost(run.profile)


def test_list_of_a_file():
    run = run_qprof("list", program("checkpoints"))
    assert run.returncode == 0, run
    for word in ("qprof", "begin", "metric", "tokenizer_ready"):
        assert word in run.stdout, f"expected {word!r}; {run}"


def test_list_says_what_is_refused():
    run = run_qprof("list", program("checkpoints"))
    assert "no_such_register" in run.stdout, f"expected the refused probe; {run}"


def test_list_without_probes():
    run = run_qprof("list", program("memory"))
    assert run.returncode == 0, run


def test_list_of_a_process(target):
    idle = target("mark:x")
    run = run_qprof("list", "-p", idle.pid)
    assert run.returncode == 0 and "mark" in run.stdout, run


@pytest.mark.parametrize("content", [b"", b"no ELF at all\n", b"\x7fELF", None],
                         ids=["empty", "text", "magic", "cut"])
def test_list_of_what_is_no_program(tmp_path, content):
    path = tmp_path / "file"
    if content is None:
        with open(program("checkpoints"), "rb") as whole:
            content = whole.read(9000)
    path.write_bytes(content)
    run = run_qprof("list", path)
    assert run.returncode == 125, f"expected 125; {run}"
    lines = run.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("qprof-bpf: "), f"expected one line; {run}"


def test_list_of_what_is_not_there(tmp_path):
    run = run_qprof("list", tmp_path / "none")
    assert run.returncode == 125 and "none" in run.stderr, run


def test_doctor():
    run = run_qprof("doctor")
    assert run.returncode == 0, run
    text = (run.stdout + run.stderr).lower()
    for word in ("rss", "btf", "fexit", "checkpoint"):
        assert word in text, f"expected a word on {word}; {run}"


def test_doctor_without_root():
    """It is for those who do not know what is missing: it must run without any right."""
    with public_dir() as where:
        binary = where / "qprof-bpf"
        shutil.copy(QPROF, binary)
        done = subprocess.run([*AS_NOBODY, binary, "doctor"], capture_output=True, text=True,
                              timeout=DEADLINE, cwd="/", check=False)
    assert done.returncode in (0, 1), done
    assert "root" in (done.stdout + done.stderr).lower(), f"expected the reason: {done}"
