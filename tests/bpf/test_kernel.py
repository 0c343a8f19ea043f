# SPDX-License-Identifier: GPL-2.0-only
"""
What this kernel gives: doctor and the profile say the same, and what is attached is what they say.
The tables of docs/kernels.md are made from what is recorded here (tests/vm/tables.py).
"""
import re

from harness import MIB, assert_near, fdinfo_texts, fdinfos, program, row_of, rows, run_qprof

# In fdinfo, as in the kernel's enum bpf_attach_type.
FEXIT = "25"


def doctor():
    """{what: (yes or no, the words on it)}, as doctor says it."""
    run = run_qprof("doctor")
    assert run.returncode == 0, run
    found = re.findall(r"^  (\S.*?) +(yes|no)(?: +(.*))?$", run.stdout, re.M)
    assert len(found) >= 10, f"expected a line for each of ten things; {run}"
    return {what: (answer, words.strip()) for what, answer, words in found}


def test_doctor_and_profile_agree(profile, record_property):
    """Where figures come from is one fact, told in two places."""
    told = doctor()
    backends = profile("true").profile["qprof"]["backends"]
    for key, what in (("rss", "memory"), ("io_calls", "I/O through calls"),
                      ("io_storage", "I/O to storage"), ("checkpoints", "checkpoints")):
        assert told[what] == ("yes", backends[key]), (
            f"{what}: doctor says {told[what]}, the profile's backends {backends[key]!r}")
        record_property(key, backends[key])
    record_property("fexit", told["fexit"][0])


def test_hooks(target, attach, record_property):
    """What is attached, as the kernel tells it: what was said, and nothing on all system calls."""
    idle = target("mark:x")
    with attach(idle.pid) as attached:
        links = [info for info in fdinfos(attached.process.pid).values() if "link_type" in info]
        idle.go()
        backends = attached.finished()["qprof"]["backends"]
    tracepoints = sorted(link["tp_name"] for link in links if "tp_name" in link)
    fexits = [link for link in links if link.get("attach_type") == FEXIT]
    assert "rss_stat" in tracepoints, f"expected rss_stat among {tracepoints}"
    assert not {"sys_enter", "sys_exit"} & set(tracepoints), (
        f"every process would pay at every call: {tracepoints}")
    # Of splice, tee, vmsplice, process_vm_readv and process_vm_writev, and again for 32-bit programs.
    expected = {5, 10} if "fexit on splice, tee, vmsplice" in backends["io_calls"] else {0}
    assert len(fexits) in expected, f"expected {expected} of fexit, got {links}; {backends}"
    record_property("tracepoints", ", ".join(tracepoints))


def put_off(fdinfos_text):
    """How many programs are there as two instructions that do nothing: they are verified when they are needed."""
    return re.findall(r"^verified_insns:\s+(\d+)", fdinfos_text, re.M).count("2")


def test_put_off(profile, target, attach):
    """The program of checkpoints, and the one that takes milestones, are not verified for who needs neither."""
    # It closes some that the shell has listed.
    launch = profile("sh", "-c", "cat /proc/$PPID/fdinfo/* 2>/dev/null; true", options=["--recipe", "none"])
    assert "prog_id" in launch.stdout, f"expected what the kernel says of programs: {launch}"
    assert put_off(launch.stdout) == 2, launch.stdout
    idle = target("mark:x")
    with attach(idle.pid) as attached:
        texts = "".join(fdinfo_texts(attached.process.pid).values())
        idle.go()
        profile_of_idle = attached.finished()
    assert put_off(texts) == 0, "an attach takes a milestone, and there was a probe"
    assert row_of(profile_of_idle, "x")


def resident(smaps, mapped):
    """In bytes, of all mappings of one name."""
    found = re.findall(rf"^[0-9a-f]+-[0-9a-f]+ .* {mapped}\n(?:.*\n)*?Rss: +(\d+) kB", smaps, re.M)
    assert found, f"expected mappings of {mapped}: {smaps}"
    return sum(int(kib) for kib in found) * 1024


def test_resident(profile):
    """A ring of 8 MiB is seen through a window, and libraries that few runs need are not loaded."""
    smaps = profile("sh", "-c", "cat /proc/$PPID/smaps").stdout
    rings = resident(smaps, "anon_inode:bpf-map")
    assert rings < 4 * MIB, f"expected windows, got {rings} bytes"
    assert "libmicrohttpd" not in smaps and "gnutls" not in smaps, "loaded, and nobody serves metrics"


def test_end(profile, tmp_path, record_property):
    """End has what the command had at its end, where the kernel still knows; where not, nothing."""
    run = profile(program("memory"), "spike", 16, 200, tmp_path)
    end = rows(run.profile, ends=True)[-1]["cpu_memory_mb"]
    if end:
        assert_near("cpu_memory_mb at End", end, run.truth["baseline_bytes"], MIB)
    record_property("end", "as it was" if end else "0.00")
