# SPDX-License-Identifier: GPL-2.0-only
"""-f svg: what is in the picture, and that a renderer other than a browser can draw it."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest

from profiles import HOSTILE, QUARK, big_profile, harmless, hostile_profile
from reports import DEADLINE, PROFILE, report

SVG = "{http://www.w3.org/2000/svg}"


def picture(profile=PROFILE, *args):
    return ET.fromstring(report("-f", "svg", *args, profile=profile))


def written(tmp_path, text):
    path = tmp_path / "profile.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def texts(root):
    return ["".join(e.itertext()) for e in root.iter(SVG + "text")]


def area(root, kind):
    """The numbers of the commands of a kind's area: {letter: [...]}."""
    path = next(e for e in root.iter(SVG + "path") if e.get("class").split()[0] == kind)
    found = {"H": [], "V": []}
    for letter, number in re.findall(r"([HV])([-0-9.]+)", path.get("d")):
        found[letter].append(float(number))
    return found


def test_the_answer():
    """When was the peak, in which phase, of what kind, in which process."""
    assert "Peak 195 MiBat 369 ms, in Spike; 99 % anonymous; 99 % in process 10711 checkpoints" in texts(picture())


def test_four_panels():
    root = picture()
    for title in ("Memory", "CPU", "I/O", "Longest phases"):
        assert title in texts(root), title
    classes = {word for e in root.iter() for word in e.get("class", "").split()}
    assert {"anon", "shmem", "file", "cpu", "read-line", "disk-write-line", "lane"} <= classes, classes
    # Phases in falling order of their bars, with their times behind them.
    assert [t for t in texts(root) if t in ("Spike", "Calibration", "Grow")][-4:] == \
        ["Spike", "Calibration", "Grow", "Calibration"]


def test_the_peak_is_the_highest_point():
    """Of the uppermost area, and its pin stands on it."""
    root = picture()
    pin = next(root.iter(SVG + "circle"))
    # The parts are of the event nearest to the peak, so it may be a little above them.
    assert min(area(root, "file")["V"]) == pytest.approx(float(pin.get("cy")), abs=1)


@pytest.mark.parametrize("points", [4096, 200000])
def test_a_peak_of_one_point_stays(tmp_path, points):
    profile = written(tmp_path, big_profile(points=points))
    svg = report("-f", "svg", profile=profile)
    root = ET.fromstring(svg)
    assert min(area(root, "anon")["V"]) == pytest.approx(float(next(root.iter(SVG + "circle")).get("cy")), abs=0.2)
    assert len(svg) < 500000, "as many points as there are pixels, however many the profile has"


def test_everything_is_inside():
    root = picture()
    width, height = float(root.get("width")), float(root.get("height"))
    for rect in root.iter(SVG + "rect"):
        x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        assert 0 <= x and x + w <= width and 0 <= y and y + h <= height, rect.attrib
    numbers = area(root, "file")
    assert all(0 <= n <= width for n in numbers["H"]) and all(0 <= n <= height for n in numbers["V"])


def test_hostile_names(tmp_path):
    """They are text and nothing but text, and none is longer than there is room."""
    root = picture(written(tmp_path, hostile_profile()))
    tags = {e.tag.removeprefix(SVG) for e in root.iter()}
    assert tags <= {"svg", "title", "style", "rect", "text", "tspan", "path", "line", "circle"}, tags
    keys = {key for e in root.iter() for key in e.attrib}
    assert not any(key.startswith("on") or "href" in key for key in keys), keys
    every = " ".join(texts(root))
    assert "in </script><script>window.intruder" in every
    assert "&lt;b&gt;" in every, "what looks like markup stays as it was written"
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", every)
    assert max(map(len, texts(root))) < 250
    shown = {t.removesuffix("...") for t in texts(root)}
    assert any(harmless(n).startswith(t) for t in shown if len(t) > 5 for n in HOSTILE)


def test_a_file_of_quark(tmp_path):
    root = picture(written(tmp_path, QUARK))
    assert "Peak 900 MiBat a time that the profile does not say" in texts(root)[1]
    assert "not told apart" in texts(root) and not list(root.iter(SVG + "circle"))


def test_a_little_io_in_a_long_run(tmp_path):
    """Less than a byte a second is drawn, too."""
    text = QUARK.replace("secs: 1.0", "secs: 300000000.0").replace("secs: 2.0", "secs: 600000000.0")
    shown = texts(picture(written(tmp_path, text)))
    assert "from disk" in shown and "to disk" in shown, shown


def test_cut_off(tmp_path):
    text = PROFILE.read_text()
    cut = text[:text.index("phases:") - 500]
    root = picture(written(tmp_path, cut[:cut.rindex("\n") + 1]))
    assert any("before the profile does" in t for t in texts(root))


def test_hardly_anything(tmp_path):
    root = picture(written(tmp_path, "memory_usage:\n- {step: Start, timestamp: 1.0, relative_time_secs: 0.0,"
                                     " cpu_memory_mb: 0.0}\n"))
    assert "the profile has no phases" in texts(root)


@pytest.mark.skipif(not shutil.which("rsvg-convert"), reason="no rsvg-convert: tools/setup browser installs it")
def test_drawn_without_a_browser(tmp_path):
    for name, text in (("recorded", PROFILE.read_text()), ("hostile", hostile_profile()), ("quark", QUARK)):
        svg, png = tmp_path / f"{name}.svg", tmp_path / f"{name}.png"
        svg.write_bytes(report("-f", "svg", profile=written(tmp_path, text)))
        done = subprocess.run(["rsvg-convert", svg, "-o", png], capture_output=True, timeout=DEADLINE, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr.decode()
        assert png.read_bytes().startswith(b"\x89PNG") and png.stat().st_size > 10000, name
