# SPDX-License-Identifier: GPL-2.0-only
"""The files in deploy/: what they ask for is what qprof-bpf needs, tried with the real program.

No systemd runs here as the first process and no cluster is at hand: the unit is held against
systemd's own tools, and its command line is run with its capabilities, its limits and its filter of
system calls. The DaemonSet's is run likewise.
"""

import contextlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

import harness
from harness import (CLEAN_ENV, NOBODY, QPROF, Audit, Lines, Target, job_of, process_of, run_qprof, step_names)
from test_audit import container, losses
from test_audit_events import has_found_probes, of_kind, only, parse_lines

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNIT = DEPLOY / "qprof-bpf.service"
SOCKET = Path("/run/qprof-bpf/socket")


def unit_settings():
    """Of [Service]: the last value of each key, and lists of words joined."""
    found = {}
    section = None
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif "=" in line and not line.startswith("#") and section == "[Service]":
            key, value = line.split("=", 1)
            found[key] = value
    return found


def manifests():
    return {doc["kind"]: doc for doc in yaml.safe_load_all((DEPLOY / "daemonset.yaml").read_text())}


def the_container():
    pod = manifests()["DaemonSet"]["spec"]["template"]["spec"]
    assert len(pod["containers"]) == 1
    return pod, pod["containers"][0]


def capabilities_of_unit():
    return {word.removeprefix("CAP_").lower()
            for word in unit_settings()["CapabilityBoundingSet"].split()}


def with_only(capabilities, uid=NOBODY):
    """What to put before a command to run it with these and no others."""
    given = "-all," + ",".join(f"+{name}" for name in sorted(capabilities))
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", f"--inh-caps={given}",
            f"--ambient-caps={given}" if uid else "--ambient-caps=-all",
            f"--bounding-set={given}", "--no-new-privs")


class Service(Audit):
    """An audit with these privileges and no others; its own user can write where it writes."""

    def __init__(self, path, capabilities, options=(), uid=NOBODY, env=None):
        super().__init__(path, options)
        self.args = [*with_only(capabilities, uid), *self.args]
        self.env = {**CLEAN_ENV, **(env or {})}

    def start(self):
        self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, env=self.env,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.stderr = Lines(self.process.stderr)


def audit_everything(folder, capabilities, uid=NOBODY):
    """An audit of root's job in a container, by somebody who has these capabilities."""
    with container() as (inside, path), Service(
            folder / "audit.yaml", capabilities, ("--events-file", folder / "events"), uid) as running:
        assert capabilities_of(running.process.pid) == capabilities
        assert has_found_probes(folder / "events")
        with Target("mark:one", "touch:8", "mark:two", prefix=inside) as one:
            for _ in range(3):
                one.go()
            leased = has_lease(running.process.pid)
            report = running.stop()
    return one, report, path, leased


def has_lease(pid):
    """Of the program that has the marks; that of libqprof.so, our own file, is there in any case."""
    inode = str(os.stat(harness.program("idle")).st_ino)
    lines = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any(words[1] == "LEASE" and words[4] == str(pid) and words[5].split(":")[2] == inode
               for words in lines)


def capabilities_of(pid):
    bits = int(re.search(r"CapEff:\s+(\w+)", Path(f"/proc/{pid}/status").read_text())[1], 16)
    names = subprocess.run(["capsh", f"--decode={bits:x}"], capture_output=True, text=True,
                           check=True).stdout.strip().split("=")[1]
    return {name.removeprefix("cap_") for name in names.split(",")}


@pytest.fixture
def own_folder():
    with harness.public_dir(NOBODY) as path:
        yield path


def test_an_audit_needs_no_root(own_folder):
    """The unit's capabilities are enough for all that root's audit has."""
    one, report, path, leased = audit_everything(own_folder, capabilities_of_unit())
    job = job_of(report, one.pid)
    assert step_names(job) == ["one", "two"]
    assert job["container"] and job["cgroup"].endswith(path.name)
    assert job["peak_memory_mb"] > 8
    assert leased, "no lease on the program with probes"
    assert losses(report) == {}
    warnings = [w for w in report["quality"]["warnings"] if "denied" in w["why"].lower()
                or "permitted" in w["why"].lower()]
    assert not warnings
    [me] = process_of(report, os.getpid())
    assert me["memory_mb"] > 5
    events = parse_lines((own_folder / "events").read_bytes())
    assert only(events, "job_end", pid=one.pid)["container"] == job["container"]


@pytest.mark.parametrize("missing, what_fails", [
    ("bpf", {"start"}), ("perfmon", {"start"}), ("sys_ptrace", {"job", "lease"}),
    ("checkpoint_restore", {"job", "lease"}), ("dac_read_search", {"job", "lease", "container"}),
    ("lease", {"lease"}),
])
def test_each_capability_is_needed(own_folder, missing, what_fails):
    capabilities = capabilities_of_unit() - {missing}
    if "start" in what_fails:
        run = subprocess.run([*with_only(capabilities), QPROF, "-a", "-d", "100ms", "-o",
                              own_folder / "x"], capture_output=True, text=True, check=False,
                             env=CLEAN_ENV, timeout=harness.DEADLINE)
        assert run.returncode == 125 and "doctor" in run.stderr, run
        return
    events = own_folder / "events"
    with container() as (inside, _), Service(own_folder / "audit.yaml", capabilities,
                                             ("--events-file", events)) as running:
        # Without probes there is nothing to wait for but time.
        has_found_probes(events, seconds=1 if "job" in what_fails else harness.DEADLINE)
        with Target("mark:one", "mark:two", prefix=inside) as one:
            one.go()
            one.go()
            leased = has_lease(running.process.pid)
            report = running.stop()
    [process] = process_of(report, one.pid)
    there = {"job": any(job["pid"] == one.pid for job in report["jobs"]), "lease": leased,
             "container": "container" in process}
    assert {what for what, is_there in there.items() if not is_there} == what_fails
    if missing == "checkpoint_restore":  # of all files of the machine, in one sentence
        denied = [w for w in report["quality"]["warnings"] if f"CAP_{missing.upper()}" in w["why"]]
        assert len(denied) == 1, report["quality"]["warnings"]
        assert harness.quality(report)["unsearched_files"] > 1, report["quality"]


# ---- The service manager


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """A socket that listens as systemd does, and its address for NOTIFY_SOCKET."""
    address = str(tmp_path / "notify") if request.param == "path" else f"@qprof-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address.replace("@", "\0"))
        listening.settimeout(harness.DEADLINE)
        yield listening, address


def message(listening):
    return dict(line.split("=", 1) for line in listening.recv(4096).decode().splitlines())


def test_the_manager_is_told(tmp_path, manager):
    listening, address = manager
    process = subprocess.Popen([QPROF, "-a", "-q", "-o", tmp_path / "audit.yaml"],
                               env={**CLEAN_ENV, "NOTIFY_SOCKET": address})
    try:
        ready = message(listening)
        assert ready["READY"] == "1"
        assert re.fullmatch(r"auditing \d+ processes", ready["STATUS"])
        # Ready means that nothing is missed from now on.
        one = subprocess.Popen(["sh", "-c", "exit 45"])
        one.wait()
        process.send_signal(signal.SIGTERM)
        while "STOPPING" not in (said := message(listening)):
            pass
        assert said["STOPPING"] == "1"
        assert process.wait(harness.DEADLINE) == 0
    finally:
        process.kill()
        process.wait()
    [found] = process_of(harness.parse(tmp_path / "audit.yaml"), one.pid)
    assert found["exit_code"] == 45


def test_a_manager_that_is_not_there_harms_nobody(tmp_path):
    for address in ("/nowhere/notify", "nonsense", "", "/" + "x" * 200):
        run = harness.run_qprof("-a", "-q", "-d", "50ms", "-o", tmp_path / "audit.yaml",
                                env={"NOTIFY_SOCKET": address})
        assert run.returncode == 0, run


# ---- The unit


def systemd_analyze(*arguments):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze: tools/setup test")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True,
                          check=False, env={**CLEAN_ENV, "SYSTEMD_COLORS": "0"})


@pytest.fixture
def unit(tmp_path):
    """The unit with the program that was built."""
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/usr/bin/qprof-bpf", str(QPROF)))
    return copy


def test_systemd_takes_the_unit(unit):
    shutil.copy(DEPLOY / "qprof-bpf.socket", unit.parent)
    run = systemd_analyze("verify", "--man=no", str(unit), str(unit.parent / "qprof-bpf.socket"))
    # Where systemd does not run, it has this to say of itself.
    said = [line for line in run.stderr.splitlines() if UNIT.name in line]
    assert run.returncode == 0 and not said, run


def test_the_unit_is_hardened(unit):
    run = systemd_analyze("security", "--offline=true", "--no-pager", "--threshold=25", str(unit))
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr


def test_the_user_of_the_unit_is_made():
    user = unit_settings()["User"]
    lines = (DEPLOY / "qprof-bpf.sysusers.conf").read_text().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("u ")] == [user]


def allowed_calls():
    """The names of system calls in the unit's filter, groups of systemd's resolved."""
    words, names = unit_settings()["SystemCallFilter"].split(), set()
    while words:
        word = words.pop()
        if not word.startswith("@"):
            names.add(word)
            continue
        run = systemd_analyze("syscall-filter", word)
        assert run.returncode == 0, run
        words += [line.strip() for line in run.stdout.splitlines()[1:]
                  if line.strip() and not line.strip().startswith("#")]
    return names


FILTER = """
import os, seccomp, sys
names = sys.argv[1].split(",")
filter = seccomp.SyscallFilter(seccomp.ERRNO(1))
for name in names:
    try:
        filter.add_rule(seccomp.ALLOW, name)
    except (RuntimeError, ValueError):
        pass  # not on this machine
filter.load()
os.execvp(sys.argv[2], sys.argv[2:])
"""


def as_somebody():
    return ("setpriv", f"--reuid={NOBODY - 1}", f"--regid={NOBODY - 1}", "--clear-groups")


@contextlib.contextmanager
def served_socket(folder):
    """As qprof-bpf.socket has it, elsewhere."""
    text = (DEPLOY / "qprof-bpf.socket").read_text()
    assert "ListenSequentialPacket=/run/qprof-bpf/socket" in text
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as served:
        served.bind(str(folder / "socket"))
        (folder / "socket").chmod(0o666)
        served.listen(int(re.search(r"Backlog=(\d+)", text)[1]))
        yield served


def passing(served):
    """What the service manager does with a socket: it is the command's descriptor 3."""
    return ("bash", "-c", f'exec 3<&{served.fileno()}; export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@"', "bash")


def test_the_unit_runs_what_it_says(own_folder):
    """Its command line, capabilities, limits and filter of system calls, on this kernel."""
    if subprocess.run([harness.PYTHON, "-c", "import seccomp"], check=False,
                      capture_output=True).returncode:
        pytest.skip("no python3-seccomp: tools/setup test")
    settings = unit_settings()
    command = shlex.split(settings["ExecStart"].replace("/usr/bin/qprof-bpf", str(QPROF))
                          .replace("/var/log/qprof-bpf", str(own_folder)))
    files = min(int(settings["LimitNOFILE"]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    limits = ("prlimit", f"--nofile={files}", f"--core={settings['LimitCORE']}")
    filtered = (harness.PYTHON, "-c", FILTER, ",".join(sorted(allowed_calls())))
    address = f"@qprof-unit-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening, served_socket(own_folder) as served:
        listening.bind(address.replace("@", "\0"))
        listening.settimeout(harness.DEADLINE)
        process = subprocess.Popen(
            [*passing(served), *limits, *with_only(capabilities_of_unit()), *filtered, *command],
            env={**CLEAN_ENV, "NOTIFY_SOCKET": address}, cwd="/", stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, pass_fds=[served.fileno()])
        try:
            assert message(listening)["READY"] == "1"
            assert Path(f"/proc/{process.pid}/status").read_text().count("Seccomp:\t2") == 1
            assert has_found_probes(own_folder / "events.ndjson")
            with Target("mark:one", "mark:two") as one:
                one.go()
                one.go()
            with urllib.request.urlopen("http://127.0.0.1:9435/metrics",
                                        timeout=harness.DEADLINE) as answer:
                assert b"qprof_audit_running 1" in answer.read()
            run = run_qprof("-q", "--service", own_folder / "socket", "-o", "-", "--",
                            harness.program("checkpoints"), "sequence", through=as_somebody())
            assert run.returncode == 0 and "Model Loading Start" in run.stdout, run
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=harness.DEADLINE)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0 and said == b"", said
    events = parse_lines((own_folder / "events.ndjson").read_bytes())
    assert [e["step"] for e in of_kind(events, "checkpoint", pid=one.pid)][:3] == ["Start", "one", "two"]


# ---- The DaemonSet


def test_daemonset_and_unit_ask_for_the_same():
    _, one = the_container()
    security = one["securityContext"]
    assert security["capabilities"]["drop"] == ["ALL"]
    assert {name.lower() for name in security["capabilities"]["add"]} == capabilities_of_unit()
    assert security["readOnlyRootFilesystem"] and not security["privileged"]
    assert not security["allowPrivilegeEscalation"]


def test_daemonset_tells_prometheus_where_metrics_are():
    annotations = manifests()["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]
    _, one = the_container()
    listen = one["args"][one["args"].index("--listen") + 1]
    port = listen.rpartition(":")[2]
    assert annotations == {"prometheus.io/scrape": "true", "prometheus.io/port": port}
    assert [p["containerPort"] for p in one["ports"]] == [int(port)]


def test_daemonset_sees_the_node():
    pod, one = the_container()
    assert pod["hostPID"] is True
    volumes = {v["name"]: v["hostPath"]["path"] for v in pod["volumes"]}
    mounts = {m["mountPath"]: volumes[m["name"]] for m in one["volumeMounts"]}
    read_only = {"/sys/fs/cgroup", "/etc/passwd"}
    assert mounts == {path: path for path in (*read_only, str(SOCKET.parent))}
    assert {m["mountPath"] for m in one["volumeMounts"] if m.get("readOnly")} == read_only
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert set(one["resources"]) == {"requests", "limits"}
    labels = manifests()["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
    assert manifests()["DaemonSet"]["spec"]["selector"]["matchLabels"] == labels
    assert pod["serviceAccountName"] == manifests()["ServiceAccount"]["metadata"]["name"]


@pytest.fixture
def shared_with_pods():
    """The directory of the node that a pod mounts to be served."""
    with harness.public_dir() as path:
        yield path


def test_daemonset_runs_what_it_says(shared_with_pods):
    """Its arguments, as root with its capabilities only and a root file system that is read-only. It serves a user
    who has its socket."""
    _, one = the_container()
    capabilities = {name.lower() for name in one["securityContext"]["capabilities"]["add"]}
    command = ["unshare", "--mount", "--propagation", "private", "bash", "-c",
               f'mount -t tmpfs none /run && mkdir {SOCKET.parent} && mount --bind "$1" {SOCKET.parent} && shift && '
               '{ mount -o remount,ro,bind / 2>/dev/null || mount -o bind,ro / /; } && exec "$@"', "bash",
               shared_with_pods, *with_only(capabilities, uid=0), str(QPROF), *one["args"]]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=CLEAN_ENV, cwd="/")
    data = b""
    try:
        lines = Lines(process.stdout)
        while json.loads(lines.next()).get("pid") != os.getpid():
            pass
        assert capabilities_of(process.pid) == capabilities
        has_seen = False
        while not has_seen:  # its probes
            with Target("mark:there", "exit:0") as target:
                target.go()
                target.tell()
                target.wait()
            event = {}
            while event.get("event") != "process_exit" or event["pid"] != target.pid:
                event = json.loads(lines.next())
                has_seen |= event["event"] == "checkpoint" and event["pid"] == target.pid
        with container() as (inside, _), Target("mark:one", "mark:two", prefix=inside) as target:
            target.go()
            target.go()
            run = run_qprof("-q", "--service", shared_with_pods / SOCKET.name, "-o", "-", "--",
                            harness.program("checkpoints"), "sequence", through=as_somebody())
            assert run.returncode == 0 and "Model Loading Start" in run.stdout, run
            process.send_signal(signal.SIGTERM)
            data, said = process.communicate(timeout=harness.DEADLINE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0 and said == b"", said
    events = parse_lines(lines.seen.encode() + lines.rest + data)
    steps = of_kind(events, "checkpoint", pid=target.pid)
    assert [e["step"] for e in steps][:3] == ["Start", "one", "two"]
    assert only(events, "job_begin", pid=target.pid)["runtime"] == "docker"


def test_image_runs_the_same_arguments():
    """What the image does by itself is what the DaemonSet tells it to, but for the socket: that takes a directory of
    the machine's."""
    last = [line for line in (DEPLOY / "Containerfile").read_text().splitlines()
            if line.startswith("CMD ")][-1]
    assert [*json.loads(last.removeprefix("CMD ")), "--serve"] == the_container()[1]["args"]
