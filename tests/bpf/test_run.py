# SPDX-License-Identifier: GPL-2.0-only
"""The life of a run: exit statuses, signals, outputs, bad input, bad luck."""

import contextlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from harness import (AS_NOBODY, CLEAN_ENV, DEADLINE, MIB, NOBODY, NOP, QPROF, KIB, Lines, Loader,
                     assert_near, assert_nothing_lost, ending, parse, pending, probe_bytes,
                     process_of, program, public_dir, run_qprof, state_of, step_names, tmpfs,
                     wait_for)


def assert_one_line(run, *words):
    """Own failures are 125 and one line that names what it is about."""
    assert run.returncode == 125, f"expected 125; {run}"
    assert_says(run, *words)


def assert_says(run, *words):
    lines = [line for line in run.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, f"expected one line; {run}"
    assert lines[0].startswith("qprof-bpf: "), f"expected it to say who it is; {run}"
    for word in words:
        assert str(word).lower() in lines[0].lower(), f"expected {word!r} in it; {run}"


# Exit statuses.

@pytest.mark.parametrize("status", [0, 1, 3, 124, 125, 126, 127, 255])
def test_exit_status_of_the_command(profile, status):
    run = profile("sh", "-c", f"exit {status}", status=status)
    assert ending(run.profile["processes"][0]) == status, run.profile["processes"]


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE,
                                signal.SIGINT])
def test_signal_of_the_command_is_raised_again(profile, by):
    """Whoever waits for qprof-bpf sees what it would have seen of the command."""
    run = profile("sh", "-c", f"ulimit -c 0; kill -{int(by)} $$", status=-by)
    assert ending(run.profile["processes"][0]) == -by, run.profile["processes"]


def test_shell_sees_128_plus_signal(out):
    done = subprocess.run(["bash", "-c", '"$@"; echo $?', "bash", QPROF, "-q", "-o", out, "--",
                           "sh", "-c", "kill -9 $$"], capture_output=True, text=True,
                          env=CLEAN_ENV, timeout=DEADLINE, check=True)
    assert done.stdout.strip() == "137", done


def test_not_found(out):
    run = run_qprof("-o", out, "--", "no-such-command-anywhere")
    assert run.returncode == 127, f"expected 127; {run}"
    assert_says(run, "no-such-command-anywhere")


def test_not_executable(tmp_path, out):
    plain = tmp_path / "plain"
    plain.write_text("no program\n")
    run = run_qprof("-o", out, "--", plain)
    assert run.returncode == 126, f"expected 126; {run}"
    assert_says(run, "plain")


def test_a_directory_is_not_executable(tmp_path, out):
    run = run_qprof("-o", out, "--", tmp_path)
    assert run.returncode == 126, f"expected 126; {run}"
    assert_says(run, tmp_path)


def test_bad_interpreter(tmp_path, out):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    run = run_qprof("-o", out, "--", script)
    assert run.returncode in (126, 127), f"expected 126 or 127; {run}"
    assert_says(run, "script")


@pytest.mark.parametrize("args", [
    ["--no-such-option"],
    [],
    ["-p"],
    ["-p", "abc"],
    ["-p", "0"],
    ["-p", "-5"],
    ["-p", "1,"],
    ["-p", "99999999999999999999"],
    ["-p", "12 34"],
    ["-d", "10x", "--", "true"],
    ["-d", "-1", "--", "true"],
    ["-d", "", "--", "true"],
    ["-d", "1e400", "--", "true"],
    ["--usdt", "no colon", "--", "true"],
    ["-p", "1", "--", "true"],
], ids=" ".join)
def test_bad_usage(args, tmp_path):
    run = run_qprof(*args, cwd=tmp_path)
    assert run.returncode == 125, f"expected 125; {run}"
    assert run.stderr.strip() and not run.stdout, f"expected a word on stderr only; {run}"
    assert not list(tmp_path.iterdir()), "bad usage must leave nothing behind"


@pytest.mark.parametrize("option", ["--help", "-h", "--version", "-V"])
def test_help_and_version(option):
    run = run_qprof(option)
    assert run.returncode == 0 and run.stdout and not run.stderr, run


# What it is pointed at.

def gone_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_unknown_pid(out):
    pid = gone_pid()
    assert_one_line(run_qprof("-p", pid, "-o", out), pid)


def test_kernel_thread(out):
    if Path("/proc/2/comm").read_text().strip() != "kthreadd":
        pytest.skip("pid 2 is no kernel thread here: this is a pid namespace")
    assert_one_line(run_qprof("-p", 2, "-o", out), "kernel thread")


def test_one_unknown_pid_of_two(target, out):
    idle, pid = target("mark:x"), gone_pid()
    assert_one_line(run_qprof("-p", f"{idle.pid},{pid}", "-o", out), pid)


def test_dies_during_attach(tmp_path):
    """At whatever moment: it ends by itself, and says that it was too late or what it saw."""
    for number in range(20):
        path = tmp_path / f"{number}.yaml"
        victim = subprocess.Popen(["sleep", "1000"])
        profiler = subprocess.Popen([QPROF, "-p", str(victim.pid), "-o", path], env=CLEAN_ENV,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with contextlib.suppress(subprocess.TimeoutExpired):
            profiler.wait(random.uniform(0, 0.25))
        victim.kill()
        victim.wait()
        _, said = profiler.communicate(timeout=DEADLINE)
        code = profiler.returncode
        assert code in (0, 125), f"expected 0 or 125, got {code}: {said}"
        if code == 0:
            assert step_names(parse(path), ends=True) == ["Start", "End"], parse(path)


def test_no_type_information(out):
    """A kernel without BTF, as far as anyone can see."""
    run = run_qprof("-o", out, "--", "true", through=(
        "unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"))
    assert_one_line(run, "CONFIG_DEBUG_INFO_BTF")


@pytest.mark.parametrize("change, reason", [
    (lambda types: types.replace(b"\0btf_trace_rss_stat\0", b"\0btf_trace_rss_none\0"), "has no btf_trace_rss_stat"),
    (lambda types: types[:len(types) // 2], "cannot read the kernel's type information: Invalid argument"),
    (lambda types: b"\xff" * 100 + types[100:], "cannot read the kernel's type information: Invalid argument"),
], ids=["lacks a tracepoint", "half of it", "something else"])
def test_other_type_information(out, tmp_path, change, reason):
    """It is not a kernel that is known: one line says what it lacks, and nothing is read beyond the end."""
    kernels, others = Path("/sys/kernel/btf/vmlinux").read_bytes(), tmp_path / "types"
    others.write_bytes(change(kernels))
    assert others.read_bytes() != kernels
    run = run_qprof("-o", out, "--", "true", through=(
        "unshare", "-m", "sh", "-c", f'mount --bind {others} /sys/kernel/btf/vmlinux && exec "$@"', "sh"))
    assert_one_line(run, reason)


def test_no_root():
    """Without any right: one line that says what is missing."""
    with public_dir(NOBODY) as where:
        binary = where / "qprof-bpf"
        shutil.copy(QPROF, binary)
        done = subprocess.run([*AS_NOBODY, binary, "-o", where / "out.yaml", "--", "touch",
                               where / "ran"], capture_output=True, text=True, env=CLEAN_ENV,
                              timeout=DEADLINE, cwd=where, check=False)
        lines = done.stderr.strip().splitlines()
        assert done.returncode == 125, done
        assert len(lines) == 1 and lines[0].startswith("qprof-bpf: "), done
        assert "root" in lines[0] or "CAP_" in lines[0] or "sudo" in lines[0], done
        assert not (where / "ran").exists(), "the command must not run unprofiled"


# Its own signals.

@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_finishes_the_profile(target, attach, by):
    idle = target("mark:seen", "mark:not seen", "exit:9")
    with attach(idle.pid) as attached:
        idle.go()
        attached.wait_for_step("seen")
        profile = attached.stop(by)
    assert step_names(profile, ends=True) == ["Start", "seen", "End"]
    assert ending(process_of(profile, idle.pid)[0]) is None, profile["processes"]
    idle.go()
    assert idle.running(), "the target must run on"


def test_second_signal_stops_at_once(target, attach):
    idle = target("mark:x")
    with attach(idle.pid) as attached:
        attached.process.send_signal(signal.SIGINT)
        attached.process.send_signal(signal.SIGTERM)
        attached.process.wait(DEADLINE)
    assert parse(attached.path) is not None, "what was written must parse"
    assert idle.running(), "the target must run on"


def test_a_process_and_its_group_are_signalled_once(out):
    """As timeout(1) does: the profile has its end, whoever comes between the two."""
    process = subprocess.Popen([QPROF, "-q", "-o", out, "--", program("idle"), "mark:x"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN_ENV,
                               start_new_session=True)
    command = json.loads(Lines(process.stdout).next())["ready"]
    os.kill(command, signal.SIGSTOP)  # it ends only when both are there
    wait_for(lambda: state_of(command) == "T", "the command to stop")
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: not pending(process.pid), "the first signal to be taken")
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: not pending(process.pid), "the second signal to be taken")
    os.kill(command, signal.SIGCONT)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == -signal.SIGTERM, (process.returncode, said)
    assert step_names(parse(out), ends=True) == ["Start", "End"], parse(out)


def test_control_c_reaches_both(out):
    """A terminal's ^C goes to the command too, which dies of it."""
    process = subprocess.Popen([QPROF, "-q", "-o", out, "--", program("idle"), "mark:x"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN_ENV,
                               start_new_session=True)
    lines = Lines(process.stdout)
    lines.next()
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode in (-signal.SIGINT, 130), (process.returncode, said)
    assert step_names(parse(out), ends=True) == ["Start", "End"], parse(out)


@pytest.mark.parametrize("text,seconds", [("300ms", 0.3), ("0.5", 0.5), ("1s", 1.0)])
def test_duration(target, attach, text, seconds):
    idle = target("mark:x")
    with attach(idle.pid, options=("-d", text)) as attached:
        profile = attached.finished()
    lasted = profile["total_quantization_time_seconds"]
    assert lasted >= seconds, f"expected {seconds} s at least, got {lasted}"
    assert idle.running(), "the target must run on"


# Its output.

def test_standard_output():
    run = run_qprof("-q", "-o", "-", "--", "true")
    assert run.returncode == 0, run
    profile = yaml.load(run.stdout, Loader=Loader)
    assert step_names(profile, ends=True) == ["Start", "End"], run


def test_default_output(tmp_path):
    run = run_qprof("-q", "--", "true", cwd=tmp_path)
    assert run.returncode == 0 and parse(tmp_path / "qprof.yaml"), run


def test_quiet_and_summary(tmp_path):
    quiet = run_qprof("-q", "-o", tmp_path / "a", "--", "true")
    assert not quiet.stderr, f"expected silence; {quiet}"
    loud = run_qprof("-o", tmp_path / "b", "--", program("checkpoints"), "sequence")
    assert "Quantization" in loud.stderr, f"expected the summary; {loud}"
    assert "\x1b" not in loud.stderr and "\r" not in loud.stderr, f"no terminal there; {loud}"


def bpf_stats_are_on():
    return Path("/proc/sys/kernel/bpf_stats_enabled").read_text(encoding="ascii").strip() != "0"


def test_cost_is_counted_on_request(profile):
    """The kernel's own count, and only while it is asked for."""
    if not bpf_stats_are_on():
        run = profile(program("memory"), "spike", 64, 0)
        assert "cost" not in run.profile["quality"], run.profile["quality"]["cost"]
    run = profile(program("memory"), "spike", 64, 0, options=["--cost"])
    cost = run.profile["quality"]["cost"]
    # A program ran at each of the 16384 page faults at least; none takes more time than there was.
    assert cost["bpf_runs"] > 64 * MIB / 4096, cost
    assert 0 <= cost["bpf_wait_secs"], cost
    assert 0 < cost["own_cpu_time_secs"], cost
    cpu = run.profile["total_cpu_time_secs"]
    share = cost["bpf_run_time_secs"] / cpu
    assert abs(cost["bpf_share"] - share) < 0.01 * share, (cost, cpu)
    assert_nothing_lost(run.profile)


def test_input_reaches_the_command(tmp_path, out):
    done = subprocess.run([QPROF, "-q", "-o", out, "--", "cat"], input=b"through\n",
                          capture_output=True, env=CLEAN_ENV, timeout=DEADLINE, check=True)
    assert done.stdout == b"through\n", done


def test_link_is_refused(tmp_path, out):
    """A link in the last component could lead root anywhere."""
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    out.symlink_to(victim)
    run = run_qprof("-o", out, "--", "touch", tmp_path / "ran")
    assert_one_line(run, out, "link")
    assert victim.read_text() == "precious\n"
    assert not (tmp_path / "ran").exists(), "the command must not have been started"


def test_dangling_link_is_refused(tmp_path, out):
    out.symlink_to(tmp_path / "new")
    assert_one_line(run_qprof("-o", out, "--", "true"), out)
    assert not (tmp_path / "new").exists()


def test_link_to_a_directory_is_followed(tmp_path):
    """Only the last component counts."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    run = run_qprof("-q", "-o", tmp_path / "link" / "out.yaml", "--", "true")
    assert run.returncode == 0 and parse(tmp_path / "real" / "out.yaml"), run


@pytest.mark.parametrize("where", ["no/such/dir/out.yaml", "."])
def test_not_writable(tmp_path, where):
    run = run_qprof("-o", where, "--", "touch", "ran", cwd=tmp_path)
    assert_one_line(run, where)
    assert not (tmp_path / "ran").exists(), "the command must not have been started"


def old_of(path):
    return path.with_name(path.name + ".old")


def test_an_old_profile_is_kept(out):
    """Its name gets .old, and the summary says so."""
    out.write_text("first\n" * 100000)
    run = run_qprof("-o", out, "--", "true")
    assert run.returncode == 0 and step_names(parse(out), ends=True) == ["Start", "End"], run
    assert old_of(out).read_text() == "first\n" * 100000
    assert f"\n  profile: {out} (the one before: {out}.old)\n" in run.stderr, run
    assert run.stderr.endswith(f"next: qprof-bpf report {out}\n"), run
    second = out.read_text()
    run_qprof("-o", out, "--", "true")
    assert old_of(out).read_text() == second, "expected the second run's profile"
    assert sorted(path.name for path in out.parent.iterdir()) == [out.name, old_of(out).name]


def test_the_report_of_an_audit_is_kept(out):
    for number in range(2):
        run = run_qprof("-a", "-q", "-d", "100ms", "-o", out)
        assert run.returncode == 0, run
        first = first if number else out.read_bytes()
    assert old_of(out).read_bytes() == first and out.read_bytes() != first


@pytest.mark.parametrize("command", ["gone", "lost", "folder"])
def test_a_run_that_does_not_start_leaves_old_profiles(tmp_path, out, command):
    """Also where the kernel alone knows that it cannot be executed."""
    for name, interpreter in ("lost", "/no/such/interpreter"), ("folder", tmp_path):
        (tmp_path / name).write_text(f"#!{interpreter}\n")
        (tmp_path / name).chmod(0o755)
    out.write_text("last")
    old_of(out).write_text("last but one")
    before = sorted(tmp_path.iterdir())
    run = run_qprof("-o", out, "--", tmp_path / command)
    assert run.returncode in (126, 127), f"expected 126 or 127; {run}"
    assert (out.read_text(), old_of(out).read_text()) == ("last", "last but one")
    assert sorted(tmp_path.iterdir()) == before


def test_a_profile_that_cannot_be_kept_is_not_overwritten(tmp_path, out):
    out.write_text("precious")
    old_of(out).mkdir()
    run = run_qprof("-o", out, "--", "touch", tmp_path / "ran")
    assert_one_line(run, out, f"{out}.old", "cannot keep", "-o")
    assert out.read_text() == "precious" and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("path", ["/dev/null", "/dev/stdout", "-"])
def test_what_is_no_file_is_not_renamed(path):
    """A device stays where it is; a link such as /dev/stdout is refused, as ever."""
    before = {name: os.lstat(f"/dev/{name}") for name in ("null", "stdout")}
    run = run_qprof("-q", "-o", path, "--", "true")
    assert run.returncode == (125 if path == "/dev/stdout" else 0), run
    for name, status in before.items():
        assert os.lstat(f"/dev/{name}").st_ino == status.st_ino, f"/dev/{name} is another"
        assert not os.path.lexists(f"/dev/{name}.old")


def test_a_fifo_is_not_renamed(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as reader:
        run = run_qprof("-q", "-o", path, "--", "true")
        assert run.returncode == 0 and b"memory_usage" in reader.stdout.read(), run
    assert [entry.name for entry in tmp_path.iterdir()] == ["fifo"] and path.is_fifo()


def test_full_disk(tmp_path):
    """What was written stays valid; the command is not hindered."""
    with contextlib.ExitStack() as stack:
        try:
            small = stack.enter_context(tmpfs(tmp_path / "small", "64k"))
        except subprocess.CalledProcessError:
            pytest.skip("mounting a tmpfs is not allowed here")
        path, through = small / "out.yaml", tmp_path / "through"
        run = run_qprof("-q", "-o", path, "--", "sh", "-c",
                        f"{program('checkpoints')} rate 20000 && touch {through}")
        assert_one_line(run, path)
        profile = parse(path)
        assert profile and len(profile["memory_usage"]) > 10, profile
        names = step_names(profile, ends=True)[1:]
        assert names == [f"c{i:07}" for i in range(len(names))], names
        assert through.exists(), "the command must have come to its end"


def test_dev_full():
    run = run_qprof("-q", "-o", "/dev/full", "--", "true")
    assert run.returncode == 125, f"expected 125; {run}"


def test_closed_pipe():
    """Nobody reads what it says: no hang, no crash."""
    process = subprocess.Popen([QPROF, "-q", "-o", "-", "--", program("checkpoints"), "rate",
                                "20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=CLEAN_ENV)
    process.stdout.close()
    process.wait(DEADLINE)
    process.stderr.close()
    assert process.returncode in (125, -signal.SIGPIPE), process.returncode


# Several at once, and bad luck.

def test_two_on_one_target(target, tmp_path, attach):
    idle = target("mark:both", "spike:64:200", "mark:again")
    with attach(idle.pid, path=tmp_path / "1") as one, attach(idle.pid, path=tmp_path / "2") as two:
        idle.go()
        spike = idle.go()
        idle.go()
        profiles = one.finished(), two.finished()
    for profile in profiles:
        assert step_names(profile) == ["both", "again"]
        assert_near("peak_memory_mb", profile["peak_memory_mb"], spike["peak_bytes"], 128 * KIB)


def test_one_leaves_the_other_stays(target, tmp_path, attach):
    idle = target("mark:both", "mark:one only")
    with attach(idle.pid, path=tmp_path / "1") as one, attach(idle.pid, path=tmp_path / "2") as two:
        idle.go()
        two.wait_for_step("both")
        assert step_names(two.stop()) == ["both"]
        idle.go()
        assert step_names(one.finished()) == ["both", "one only"]


def test_no_probe_stays(target, attach):
    """After a regular end every probe is the nop again that it was."""
    idle = target("mark:a", "mark:b")
    assert set(probe_bytes(idle.pid, program("idle"))) == {NOP}
    with attach(idle.pid) as attached:
        assert NOP not in probe_bytes(idle.pid, program("idle")), "not attached"
        idle.go()
        attached.stop()
    assert set(probe_bytes(idle.pid, program("idle"))) == {NOP}


def nops_are_back(pid):
    return set(probe_bytes(pid, program("idle"))) == {NOP}


@pytest.mark.long
def test_kill_9_at_any_moment(target, tmp_path):
    """100 times: the target runs on, what is in the file parses, no probe stays."""
    seed = random.randrange(2 ** 32)
    chance = random.Random(seed)
    idle = target("loop")
    idle.go()
    with_steps, most = 0, 0.4
    for number in range(100):
        path = tmp_path / f"{number}.yaml"
        if not with_steps and number % 10 == 9:
            most = min(2 * most, 10)  # a machine so busy that it takes longer to begin
        profiler = subprocess.Popen([QPROF, "-q", "-p", str(idle.pid), "-o", path],
                                    env=CLEAN_ENV, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The moment is random, and nothing depends on which it is.
        with contextlib.suppress(subprocess.TimeoutExpired):
            profiler.wait(chance.uniform(0, most))
        assert profiler.poll() is None, f"seed {seed}: it ended with {profiler.returncode}"
        profiler.kill()
        profiler.wait()
        try:
            profile = parse(path)
        except yaml.YAMLError as error:
            pytest.fail(f"seed {seed}, try {number}: {error}")
        if profile and profile.get("memory_usage"):
            names = step_names(profile, ends=True)
            assert names[0] == "Start" and set(names[1:]) <= {"loop"}, (seed, number, names[:5])
            with_steps += len(names) > 1
        path.unlink(missing_ok=True)
        wait_for(lambda: nops_are_back(idle.pid), f"seed {seed}, try {number}: probes removed")
        assert idle.running(), f"seed {seed}, try {number}: the target died"
        idle.tell()
        json.loads(idle.lines.next())
    assert with_steps, f"seed {seed}: no try was late enough to see a step"
    os.kill(idle.pid, signal.SIGTERM)
    assert json.loads(idle.lines.next())["loops"] and idle.wait() == 0


def test_kill_9_of_a_launcher(out):
    """The command that was started runs on, too."""
    process = subprocess.Popen([QPROF, "-q", "-o", out, "--", program("idle"), "loop"],
                               stdout=subprocess.PIPE, env=CLEAN_ENV)
    lines = Lines(process.stdout)
    pid = json.loads(lines.next())["ready"]
    try:
        os.kill(pid, signal.SIGUSR1)
        lines.next()
        process.kill()
        process.wait()
        wait_for(lambda: nops_are_back(pid), "probes removed")
        os.kill(pid, signal.SIGTERM)
        assert json.loads(lines.next())["loops"], "the command died with its profiler"
        profile = parse(out)
        assert profile is None or step_names(profile, ends=True)[0] == "Start"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        process.stdout.close()


def test_target_is_killed(target, attach):
    idle = target("mark:last words", "mark:never")
    with attach(idle.pid) as attached:
        idle.go()
        os.kill(idle.pid, signal.SIGKILL)
        idle.wait()
        profile = attached.finished()
    assert step_names(profile, ends=True) == ["Start", "last words", "End"]
    assert ending(process_of(profile, idle.pid)[0]) == -signal.SIGKILL, profile["processes"]


@pytest.mark.long
def test_target_is_killed_during_exec(target, attach, tmp_path):
    """It execs without a pause, so that is where it is hit."""
    for number in range(20):
        process = subprocess.Popen([program("idle"), "execloop"], env=CLEAN_ENV)
        try:
            with attach(process.pid, path=tmp_path / str(number)) as attached:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    attached.process.wait(random.uniform(0, 0.05))
                process.kill()
                process.wait()
                profile = attached.finished()
        finally:
            process.kill()
            process.wait()
        names = set(step_names(profile))
        assert names <= {"exec"}, names
        entry = process_of(profile, process.pid)
        assert len(entry) == 1 and ending(entry[0]) == -signal.SIGKILL, entry


@contextlib.contextmanager
def memory_cgroup(limit):
    """A memory cgroup with that limit, v2 or v1, whichever there is."""
    for base, memory_max, swap_max in (
            ("/sys/fs/cgroup", "memory.max", "memory.swap.max"),
            ("/sys/fs/cgroup/unified", "memory.max", "memory.swap.max"),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")):
        group = Path(base) / f"qprof-test-{os.getpid()}"
        if not (Path(base) / "cgroup.procs").exists():
            continue
        controllers = Path(base) / "cgroup.subtree_control"
        if controllers.exists():
            with contextlib.suppress(OSError):
                controllers.write_text("+memory")
            if "memory" not in controllers.read_text().split():
                continue
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / memory_max).write_text(str(limit))
            with contextlib.suppress(OSError):
                (group / swap_max).write_text("0" if "swap" in swap_max else str(limit))
            yield group
        finally:
            wait_for(lambda: not (group / "cgroup.procs").read_text(), "an empty cgroup")
            group.rmdir()
        return
    pytest.skip("no memory cgroup can be made here, neither v2 nor v1")


def test_out_of_memory(profile):
    """The OOM killer takes the target: the profile says so, and how far it had come."""
    limit = 48 * MIB
    with memory_cgroup(limit) as group:
        run = profile("sh", "-c", f"echo $$ > {group}/cgroup.procs; "
                      f"exec {program('memory')} spike 256 1000", status=-signal.SIGKILL)
    process = run.profile["processes"][0]
    assert ending(process) == -signal.SIGKILL, process
    peak = run.profile["peak_memory_mb"]
    assert 40 <= peak <= limit / MIB + 4, f"expected a peak just at the limit of 48 MiB, got {peak}"


def test_many_at_once(tmp_path):
    """Eight runs side by side do not see each other."""
    runs = []
    for number in range(8):
        path = tmp_path / f"{number}.yaml"
        runs.append((path, subprocess.Popen(
            [QPROF, "-q", "-o", path, "--", program("checkpoints"), "sequence"], env=CLEAN_ENV,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)))
    for path, process in runs:
        said, error = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, error
        assert step_names(parse(path)) == json.loads(said)["steps"]
