# SPDX-License-Identifier: GPL-2.0-only
"""-f html without its scripts: the title of the tab, the sentence for browsers that run none, what is told of files."""

import html
import json
import re

import pytest
import yaml

from profiles import QUARK, files_profile, no_file, used_file
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


def told(text):
    """The profile that is put into the page."""
    page = report("-f", "html", profile="-", stdin=text.encode()).decode()
    return json.loads(re.search('<script type="application/json" id="profile">(.*?)</script>', page, re.S)[1])


def test_files():
    """As the profile has them, in bytes; and a sentence for each that was read again."""
    files = [used_file("/m/a.gguf", 128.0, distinct=64.0, phases={"Spike": (128.0, 0.0)}),
             used_file("/m/#7", written=2.5, deleted=True, mapped_mb=5.0, copied_mb=3.0, call_read_mb=6.0), no_file("(metadata)", 0.25, 0.5)]
    page = told(files_profile(files, PROFILE.read_text()))
    assert [dict(zip(page["files"]["keys"], row)) for row in page["files"]["rows"]] == [
        {"path": "/m/a.gguf", "rest": False, "deleted": False, "size": 100 << 20, "read": 128 << 20, "distinct": 64 << 20,
         "reread": 2.0, "written": 0, "called": 0, "mapped": 0, "copied": 0, "uses": [["Spike", 128 << 20, 0, 0]]},
        {"path": "/m/#7", "rest": False, "deleted": True, "size": 100 << 20, "read": 0, "distinct": 0, "reread": 0.0,
         "written": 5 << 19, "called": 6 << 20, "mapped": 5 << 20, "copied": 3 << 20, "uses": []},
        {"path": "(metadata)", "rest": True, "deleted": False, "size": None, "read": 1 << 18, "distinct": 0, "reread": 0.0,
         "written": 1 << 19, "called": 0, "mapped": 0, "copied": 0, "uses": []}]
    assert page["read_again"] == [
        "/m/a.gguf: 128 MiB from storage for 64.0 MiB of it, 2.0 times: it did not stay in the page cache"]
    assert page["copied_files"] == []
    assert told(files_profile([], PROFILE.read_text()))["files"]["rows"] == []
    assert "files" not in told(PROFILE.read_text()), "nobody asked for them"
