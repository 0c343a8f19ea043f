# SPDX-License-Identifier: GPL-2.0-only
"""A run that was killed, crashed, failed or was cut off must not read as a good one."""

import json

import pytest

from reports import HERE, report, run

ENDINGS = HERE / "endings"
GOOD = ENDINGS / "good.yaml"
KILLED = "Ended by SIGKILL (out of memory, or kill -9)"

FIRST = {
    "killed": f"! {KILLED} at 1.2 s, in Calibration",
    "crashed": "! Ended by SIGSEGV at 1.2 s, in Calibration",
    "exit3": "! Failed with exit status 3 at 1.2 s, in no phase, after Calibration",
    "shell": f"! {KILLED}: process 700 python3 train.py at 1.2 s, in Calibration",
    "interrupted": "! Interrupted at 1.2 s, in Calibration",
    "cut": "! Cut off, or still running, at 600 ms, in Calibration",
    "good": "python3 train.py",
}
END = {"killed": "signal 9", "interrupted": "signal 2", "crashed": "signal 11", "exit3": "exit 3", "shell": "signal 9"}


def text_of(name, width=120):
    return report("--width", width, profile=ENDINGS / f"{name}.yaml").decode()


def page_of(name):
    """The page's profile, and what it says without scripts."""
    page = report("-f", "html", profile=ENDINGS / f"{name}.yaml").decode()
    return (json.loads(page.split('id="profile">')[1].split("</script>")[0]),
            page.split("<noscript>")[1].split("</noscript>")[0])


@pytest.mark.parametrize("name", FIRST)
def test_first_line(name):
    assert text_of(name).splitlines()[0] == FIRST[name]


@pytest.mark.parametrize("name", FIRST)
def test_page(name):
    profile, without_scripts = page_of(name)
    if name == "good":
        assert "ending" not in profile and "killed" not in profile
        return
    assert "! " + profile["ending"] == FIRST[name]
    assert profile["killed"] == (name in ("killed", "shell", "cut"))
    assert profile["ending"] in without_scripts


@pytest.mark.parametrize("name,words,phase", [
    ("killed", "Needs MORE than 415 MiB", ">415 MiB"), ("shell", "Needs MORE than 415 MiB", ">415 MiB"),
    ("interrupted", "Needs at least 415 MiB", " 415 MiB"), ("crashed", "Needs at least 415 MiB", " 415 MiB"), ("exit3", "Needs at least 415 MiB", " 415 MiB"),
    ("good", "Needs at least 415 MiB", " 415 MiB")])
def test_needs(name, words, phase):
    """A run that was killed might have needed more; so might the phase that it was killed in."""
    text = text_of(name)
    assert words in text, text
    fits = text.split("WILL IT FIT")[1]
    assert phase in next(line for line in fits.splitlines() if "Calibration" in line), fits
    assert ">" not in next(line for line in fits.splitlines() if " Load " in line), fits


@pytest.mark.parametrize("name", END)
@pytest.mark.parametrize("width", [60, 80, 160])
def test_end_of_processes(name, width):
    table = text_of(name, width).split("\nPROCESS")[1]
    assert "END" in table.splitlines()[0] and END[name] in table, table


GATES = [["--max-peak-increase", "900%"], ["--budget", "peak=4G"], ["--budget", "Load.peak=4G"]]


@pytest.mark.parametrize("gate", GATES, ids=" ".join)
@pytest.mark.parametrize("name", FIRST)
def test_gate(name, gate):
    """No limit holds for a run that has failed, on either side, unless the user says so."""
    path = ENDINGS / f"{name}.yaml"
    failed = name not in ("good", "interrupted")
    for sides in ([GOOD, path], [path, GOOD]):
        text = run("diff", *gate, *sides, status=failed)[0].decode()
        assert ("All limits hold." in text) == (not failed), text
        assert ("cannot be told to hold" in text) == failed, text
        text = run("diff", "--allow-failed", *gate, *sides)[0].decode()
        assert "All limits hold." in text, text


def test_gate_says_how_it_ended():
    text = run("diff", "--width", "120", GOOD, ENDINGS / "killed.yaml")[0].decode()
    assert FIRST["killed"] in text and ">415 MiB" in text, text
    # Of repeats, one that failed is enough.
    run("diff", "--budget", "peak=4G", GOOD, f"{GOOD},{ENDINGS / 'exit3.yaml'},{GOOD}", status=1)
    repeats = f"{ENDINGS / 'interrupted.yaml'},{ENDINGS / 'exit3.yaml'},{GOOD}"
    text = run("diff", "--budget", "peak=4G", GOOD, repeats, status=1)[0].decode()
    assert "Failed with exit status 3" in text, text
    document = json.loads(run("diff", "-f", "json", GOOD, ENDINGS / "killed.yaml")[0])
    assert document["old_ending"] is None
    assert "! " + document["new_ending"] == FIRST["killed"]
    assert not document["broken"], "without a limit nothing is broken"


def test_a_broken_limit_stays_broken():
    text = run("diff", "--allow-failed", "--budget", "peak=1M", GOOD, ENDINGS / "killed.yaml", status=1)[0]
    assert b"! peak=1M: " in text, text


def test_hostile_phase():
    """The ending names a phase: no name may control a terminal or leave the page."""
    text = (ENDINGS / "killed.yaml").read_text().replace('"Calibration"', '"\\e[2J</script>\\u202e"')
    stdout = run("report", "-", stdin=text.encode())[0].decode()
    assert "\x1b" not in stdout and "\u202e" not in stdout, stdout
    page = run("report", "-f", "html", "-", stdin=text.encode())[0].decode()
    assert "\x1b" not in page and "\u202e" not in page and page.count("[2J</script>") == 0
