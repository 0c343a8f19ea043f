# SPDX-License-Identifier: GPL-2.0-only
"""The service, for users in containers that have nothing of the host's but its socket: namespaces and a root of their
own. They get what root gets outside."""

import json
import subprocess

import pytest

from harness import (CLEAN_ENV, DEADLINE, KIB, NOBODY, PYTHON, QPROF, Run, assert_near, assert_nothing_lost, last_json,
                     parse, program, quality, row_of, step_names)
from serving import as_user, folder, service  # noqa: F401

# A root of its own: what this machine has installed, a /proc of its pid namespace, and what is mounted for it. There
# is no /etc: nobody has a name.
CLEAN_ROOT = """
root=$1 served=$2 own=$3 built=$4
shift 4
mount -t tmpfs -o mode=755 none "$root"
mkdir -p "$root"/usr "$root"/proc "$root"/dev "$root"/tmp "$root"/run/qprof-bpf "$root"/own "$root$built"
for name in bin lib lib64; do ln -s "usr/$name" "$root/$name"; done
: > "$root/dev/null"
mount --rbind /usr "$root/usr"
mount --bind /dev/null "$root/dev/null"
mount --bind "$served" "$root/run/qprof-bpf"
mount --bind "$own" "$root/own"
mount --bind "$built" "$root$built"
mount -t proc none "$root/proc"
exec chroot "$root" "$@"
"""
CONTAINER = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--net", "--ipc",
             "--uts", "--cgroup", "sh", "-euc", CLEAN_ROOT, "sh")


@pytest.fixture
def run_inside(service, folder, tmp_path):  # noqa: F811
    """A run of nobody's in the container, by the socket at its usual place; direct: the command makes it itself."""
    root = tmp_path / "root"
    root.mkdir()

    def run(*command, status=0, direct=False):
        through = () if direct else (QPROF, "-q", "-o", "/own/qprof.yaml", "--")
        args = [*CONTAINER, root, service.path.parent, folder, QPROF.parent, *as_user(NOBODY), *through,
                *map(str, command)]
        done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=CLEAN_ENV,
                              timeout=DEADLINE, check=False)
        run = Run(args, done.returncode, done.stdout, done.stderr, folder / "qprof.yaml")
        assert run.returncode == status, run
        run.profile = parse(run.path)
        assert run.path.stat().st_uid == NOBODY
        return run
    return run


def test_as_root_outside(run_inside, tmp_path):
    """The same keys and steps, and peaks to the page, of a program in phases."""
    inside = run_inside(program("checkpoints"), "memory")
    own = subprocess.run([QPROF, "-q", "--service", "none", "-o", tmp_path / "own.yaml", "--", program("checkpoints"),
                          "memory"], env=CLEAN_ENV, check=True, capture_output=True, text=True, timeout=DEADLINE)
    outside = parse(tmp_path / "own.yaml")
    assert step_names(inside.profile) == step_names(outside)
    for profile, truth in ((inside.profile, last_json(inside.stdout)), (outside, last_json(own.stdout))):
        for row in truth["rows"]:
            assert_near(row["step"], row_of(profile, row["step"])["cpu_memory_mb"], row["rss_bytes"], 16 * KIB)
        assert_nothing_lost(profile)
    assert set(quality(inside.profile)) == set(quality(outside))


def test_pids_are_the_services(run_inside):
    """Of a tree, too: what it calls itself is another number."""
    code = ("import json, os, subprocess, sys\n"
            "subprocess.run([sys.executable, '-c', ''], check=True)\n"
            "print(json.dumps({'pid': os.getpid()}))\n")
    inside = run_inside(PYTHON, "-c", code)
    main, child = inside.profile["processes"]
    assert json.loads(inside.stdout)["pid"] < 100 < main["pid"] < child["pid"] and child["ppid"] == main["pid"]
    assert_nothing_lost(inside.profile)


def test_process_that_runs(run_inside, service):
    """-p with the number that it has inside, which outside is another's; the service finds it."""
    own = service.process.pid  # no process of that number is inside
    script = (f"{program('idle')} mark:one mark:two > /own/said & pid=$!; while ! test -s /own/said; do sleep 0.05; done; "
              f"{QPROF} -q -o /own/qprof.yaml -p $pid & until grep -q Start /own/qprof.yaml 2>/dev/null; do sleep 0.05; done; "
              "kill -USR1 $pid; until test $(wc -l < /own/said) -gt 1; do sleep 0.05; done; kill -USR1 $pid; wait; "
              f"{QPROF} -q -o /own/other.yaml -p {own} 2> /own/refused; true")
    inside = run_inside("sh", "-c", script, direct=True)
    [process] = inside.profile["processes"]
    assert inside.profile["qprof"]["pids"][0] < 100 < process["pid"], process
    assert process["cmdline"].startswith(program("idle")), process
    assert step_names(inside.profile) == ["one", "two"]
    assert_nothing_lost(inside.profile)
    assert "it does not exist" in (inside.path.parent / "refused").read_text()


def test_user_namespace_is_refused(service, folder):  # noqa: F811
    """Who is root there may be anybody here."""
    done = subprocess.run([*as_user(NOBODY), "unshare", "--user", "--map-root-user", QPROF, "-q", "--service",
                           service.socket, "-o", folder / "x.yaml", "--", "true"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env=CLEAN_ENV, timeout=DEADLINE, check=False)
    assert done.returncode == 125 and "in the service's user namespace" in done.stderr, done
