# SPDX-License-Identifier: GPL-2.0-only
"""Reports of a profile in which samples count in windows alone: what was outside is said, and sums stay whole."""

import json
import re
import subprocess

import pytest
import yaml

from pages import browser, driver, frames, render  # pylint: disable=unused-import
from pages import pytestmark as needs_browser
from reports import PROFILE, ROOT, report, run

# pylint: disable=redefined-outer-name

GROWN, SAMPLED, OUTSIDE = 389406976, 289406976, 100000000
CPU_WITHIN = 310000000

WINDOW = """\
window:
  schedule: "skip=1,warmup=1,active=1"
  of: "Model *"
  what: "stacks"
  on_secs: 0.750000
  dropped: 0
  phases:
    columns: [phase, pid, start_secs, end_secs, late_secs]
    rows:
    - ["Model Loading", 42, 0.500000, 0.600000, 0.000000]
    - ["Model Loading", 43, 0.700000, 0.800000, 0.002000]
  within:
    columns: [phase, secs]
    rows:
    - [null, 0.200000]
stacks:
"""

WITHIN = f"""\
  within:
    columns: [phase, bytes, cpu_ns]
    rows:
    - [null, {SAMPLED}, {CPU_WITHIN}]
    - [0, 37748736, 90000000]
    - [2, 209715200, 165000]
    - [3, 0, 27132000]
"""


def windowed(within=None, **keys):
    """The profile with windows; phase 5 grew in none."""
    text = PROFILE.read_text()
    for old, new in ((f"grown_bytes: {SAMPLED}", f"grown_bytes: {GROWN}"),
                     ("    - [2, 209715200]\n", "    - [2, 209715200]\n    - [5, 1048576]\n"),
                     ("\nstacks:\n", "\n" + WINDOW),
                     ("  ends:\n    columns: [end, samples]", WITHIN + "  ends:\n    columns: [end, samples]")):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    if within is not None:
        text = re.sub(r"(columns: \[phase, bytes, cpu_ns\]\n    rows:\n)(    - .*\n)+", lambda m: m[1] + within, text)
    for key, value in keys.items():
        text = re.sub(rf"^  {key}: .*\n", value, text, flags=re.M)
    return text


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "windowed.yaml"
    path.write_text(windowed())
    return path


def folded(profile, *args):
    lines = [line.rsplit(" ", 1) for line in report(*args, profile=profile).decode().splitlines()]
    sums = {}
    for stack, amount in lines:
        sums[stack.split(";")[1]] = sums.get(stack.split(";")[1], 0) + int(amount)
    return sums


def test_folded(profile):
    document = yaml.safe_load(windowed())
    memory = folded(profile, "-f", "folded")
    assert sum(memory.values()) == GROWN
    assert (memory["(outside of windows)"], memory["(unsampled)"]) == (OUTSIDE, SAMPLED - 289353728)
    cpu = folded(profile, "-f", "folded-cpu")
    total = round(document["total_cpu_time_secs"] * 1e9)
    assert sum(cpu.values()) == total and cpu["(outside of windows)"] == total - CPU_WITHIN
    assert folded(profile, "-f", "folded", "--phase", "Quantization (layer 0)") == {"(outside of windows)": 1048576}
    assert "(outside of windows)" not in folded(profile, "-f", "folded", "--phase", "Model Loading")


def test_text(profile):
    text = report("--top", "5", profile=profile).decode()
    assert "2 phases of 'Model *' (skip=1,warmup=1,active=1); on for 750 ms: stacks" in text, text
    assert "Model Loading, 500 ms to 600 ms" in text and "up to 2 ms after the beginning of these phases" in text, text
    touched, ran = text.split("FIRST TOUCHED BY")[1].split("CPU TIME BY")
    assert re.search(r"95.4 MiB +26 % +\(outside of windows\)", touched), touched
    assert "1 phase outside of windows that grew: not sampled" in touched and "in Quantization" not in touched, touched
    assert re.search(r"of CPU time in Start -> Base\n(.*\n)*? .* 7 % +\(outside of windows\)", ran), ran
    assert "WINDOWS\n" not in report().decode() and "outside of windows" not in report().decode()


def test_speedscope(profile):
    graph = json.loads(report("-f", "speedscope", profile=profile))
    names = [frame["name"] for frame in graph["shared"]["frames"]]
    assert names[-2:] == ["(unsampled)", "(outside of windows)"]
    got = {p["name"]: sum(p["weights"]) for p in graph["profiles"]}
    assert got["first touched in the whole run"] == GROWN and got["Model Loading"] == 209715200
    assert not any(name.startswith("Quantization (layer 0)") for name in got), got
    whole = graph["profiles"][0]
    assert dict(zip((names[stack[-1]] for stack in whole["samples"]), whole["weights"]))["(outside of windows)"] == OUTSIDE


def test_pprof(profile):
    proto = ROOT / "user" / "report" / "pprof.proto"
    text = subprocess.run(["protoc", "--decode=perftools.profiles.Profile", f"-I{proto.parent}", proto], check=True,
                          input=report("-f", "pprof", profile=profile), capture_output=True).stdout.decode()
    ids = [int(id) for id in re.findall(r"^location \{\n  id: (\d+)", text, re.M)]
    assert len(set(ids)) == len(ids)
    samples = [([int(v) for v in re.findall(r"^  value: (\d+)", s, re.M)], re.findall(r"location_id: (\d+)", s))
               for s in re.split(r"^sample \{$", text, flags=re.M)[1:]]
    assert sum(values[1] for values, _ in samples) == GROWN
    assert [places for values, places in samples if values[1] == OUTSIDE] == [[str(max(ids))]]


@needs_browser
def test_page(browser, render):
    browser.open(render(windowed()))
    words = browser.text("#windows")
    assert words.startswith("On in 2 of the phases Model * (skip=1,warmup=1,active=1), stacks: Model Loading (500 ms to "), words
    assert "begun 2 ms late" in words and "(outside of windows)" in words, words
    options = [option.text for option in browser.all("#flame option")]
    assert "371 MiB The whole run" in options and not any("Quantization (layer 0)" in option and "CPU" not in option
                                                          for option in options), options
    assert ("(outside of windows)",) in frames(browser)
    browser.scroll_to("#flame")
    browser.screenshot("flame-windows")


def test_diff(profile):
    text = run("diff", PROFILE, profile)[0].decode()
    part = text.split("(outside of windows)")[1].split("\n")[1]
    assert "95.4 MiB" in part, text


@pytest.mark.parametrize("within, why", [
    ("    - [null, 1, 1]\n    - [4711, 1, 1]\n", "name what is not there"),
    ("    - [2, 1, 1]\n    - [0, 1, 1]\n", "not in order"),
    ("    - [2, 1, 1]\n    - [2, 1, 1]\n", "not in order"),
    ("    - [0, 1, 1]\n    - [null, 1, 1]\n", "not in order"),
])
def test_wrong(tmp_path, within, why):
    path = tmp_path / "wrong.yaml"
    path.write_text(windowed(within))
    assert why in run("report", path, status=125)[1]


def test_hostile(tmp_path):
    """More in windows than there was; windows without a name; what ends before it begins."""
    path = tmp_path / "hostile.yaml"
    path.write_text(windowed(f"    - [null, {2**55}, {2**55}]\n    - [0, 0, 0]\n"))
    assert sum(folded(path, "-f", "folded").values()) == GROWN
    path.write_text(windowed(of=""))
    assert "windows: it has no of" in run("report", path, status=125)[1]
    path.write_text(windowed().replace("[null, 0.200000]", "[4711, 0.200000]"))
    assert "its windows name what is not there" in run("report", path, status=125)[1]
    path.write_text(windowed().replace("0.500000, 0.600000, 0.000000", "0.500000, 0.400000, 9.000000"))
    for name in ("text", "html", "json", "csv", "pprof"):
        report("-f", name, profile=path)
