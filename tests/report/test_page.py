# SPDX-License-Identifier: GPL-2.0-only
"""-f html without its scripts: the title of the tab, and the sentence for browsers that run none."""

import html
import re

import pytest
import yaml

from profiles import QUARK
from reports import PROFILE, report


def head(text):
    """Title and sentence of the page, as a browser shows them."""
    page = report("-f", "html", profile="-", stdin=text.encode()).decode()
    return [html.unescape(re.search(f"<{tag}>(.*?)</{tag}>", page, re.S)[1]) for tag in ("title", "p")]


@pytest.mark.parametrize("run,title", [
    ({"command": ["./job.sh"]}, "./job.sh"),
    ({"command": ["python3", "-u", "quant.py", "<b>&amp;"]}, "python3 -u quant.py <b>&amp;"),
    ({"command": ["x" * 60, "y" * 61]}, "x" * 60 + " " + "y" * 57 + "..."),
    ({"pids": [7, 8]}, "stdin")])
def test_title(run, title):
    profile = yaml.safe_load(PROFILE.read_text())
    profile["qprof"] = {"version": "0", "schema_version": 1} | run
    assert head(yaml.safe_dump(profile, sort_keys=False))[0] == title + " - qprof-bpf"


def test_sentence():
    text = PROFILE.read_text()
    assert head(text)[1] == "Peak 195 MiB at 369 ms, in Spike"
    killed = text[:text.index("phases:")]
    assert re.fullmatch(r"Cut off, .*\. Peak 195 MiB at 369 ms, in Spike", head(killed)[1]), head(killed)[1]


def test_sentence_of_a_file_of_quark():
    """A time that nobody knows is not told."""
    assert head(QUARK)[1].endswith("Peak 900 MiB at a time that the profile does not say")
