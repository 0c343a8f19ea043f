# SPDX-License-Identifier: GPL-2.0-only
"""All formats of `qprof-bpf report`: what each makes of one recorded profile, and what holds for all.

A format's golden file is golden.NAME; QPROF_UPDATE_GOLDEN=1 writes them anew, to be looked at before
they are committed. A format is in the test as soon as the program has it: without a golden file it
fails.
"""

import os

import pytest
import yaml

from reports import HERE, PROFILE, ROOT, formats, report, run

# The arguments of each golden file: the format's name, and what else there is to choose.
GOLDEN = {name: ["-f", name] for name in formats()} | {
    "text": ["-f", "text", "--width", "80"],
    "text-wide": ["-f", "text", "--width", "120", "--sort", "peak", "--top", "5", "--phase", "*a*"],
    "csv": ["-f", "csv"],
    "csv-processes": ["-f", "csv", "--table", "processes"],
    "csv-memory_usage": ["-f", "csv", "--table", "memory_usage"],
}


def to_compare(name, got):
    """Of a page, the profile that is put into it; what the page makes of it is test_html.py's."""
    if name != "html":
        return got
    return got.split(b'id="profile">')[1].split(b"</script>")[0].replace(b"],", b"],\n")


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name):
    """Byte by byte what was looked at and found good."""
    path = HERE / f"golden.{name}"
    got = to_compare(name, report(*GOLDEN[name]))
    if os.environ.get("QPROF_UPDATE_GOLDEN"):
        path.write_bytes(got)
    assert path.exists(), f"{path.name} is missing: QPROF_UPDATE_GOLDEN=1 makes it"
    expected = path.read_bytes()
    if got != expected:
        at = next((i for i, (a, b) in enumerate(zip(got, expected)) if a != b),
                  min(len(got), len(expected)))
        pytest.fail(f"{name} differs from {path.name} at byte {at} of {len(expected)}:\n"
                    f"expected ...{expected[max(0, at - 100):at + 200]!r}\n"
                    f"got      ...{got[max(0, at - 100):at + 200]!r}")


@pytest.mark.parametrize("name", formats())
def test_same_from_stdin_and_into_a_file(name, tmp_path):
    """- is stdin; -o writes what stdout would have got."""
    expected = report("-f", name)
    from_stdin = run("report", "-f", name, "-", stdin=PROFILE.read_bytes())[0]
    out = tmp_path / "out"
    run("report", "-f", name, "-o", out, PROFILE)
    assert out.read_bytes() == expected
    # The name of the source may be shown, nothing else differs.
    assert from_stdin.replace(b"stdin", b"-") == expected.replace(str(PROFILE).encode(), b"-") \
        .replace(PROFILE.name.encode(), b"-")


@pytest.mark.parametrize("name", formats())
def test_twice_the_same(name):
    assert report("-f", name) == report("-f", name)


def test_a_files_name_tells_its_format(tmp_path):
    for name, extension in (("json", ".json"), ("html", ".html"), ("svg", ".svg"), ("csv", ".csv"),
                            ("mprof", ".dat"), ("perfetto", ".pftrace"), ("text", ".txt"), ("text", "")):
        out = tmp_path / f"x{extension}"
        run("report", "-o", out, PROFILE)
        assert out.read_bytes() == report("-f", name), extension


@pytest.mark.parametrize("name", ["q.pdf", "q.html.gz", "q.JSON", "q."])
def test_an_extension_of_no_format(tmp_path, name):
    """Nothing is written, and one line says which extensions there are; -f decides without them."""
    out = tmp_path / name
    _, stderr = run("report", "-o", out, PROFILE, status=125)
    assert len(stderr.splitlines()) == 1 and ".txt, .html, .svg, .json, .csv, .dat, .pftrace" in stderr, stderr
    assert not out.exists()
    run("report", "-f", "svg", "-o", out, PROFILE)
    assert out.read_bytes() == report("-f", "svg")


@pytest.mark.parametrize("name", formats())
def test_no_phase_of_that_name(tmp_path, name):
    out = tmp_path / "out"
    _, stderr = run("report", "-f", name, "-o", out, "--phase", "Nope*", PROFILE, status=125)
    assert "none of its 36 phases matches 'Nope*'" in stderr, stderr
    assert not out.exists()


def test_one_is_no_plural(tmp_path):
    """A count of 1 has its noun in the singular, in the lines that end lists and in doubts."""
    text = PROFILE.read_text().replace("unmatched_ends: 0", "unmatched_ends: 1").replace("unclosed_phases: 0", "unclosed_phases: 2")
    (tmp_path / "q.yaml").write_text(text)
    shown = report("--top", "35", profile=tmp_path / "q.yaml").decode()
    assert "... and 1 more phase (--top)" in shown and "! 1 end without a begin" in shown, shown
    assert "! 2 phases still open at the end" in shown, shown


@pytest.mark.parametrize("name", formats())
def test_full_disk(name):
    """What cannot be written is said, and is no success."""
    _, stderr = run("report", "-f", name, "-o", "/dev/full", PROFILE, status=125)
    assert "cannot write" in stderr and "No space" in stderr, stderr


def test_no_link_is_followed(tmp_path):
    target = tmp_path / "target"
    target.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(target)
    _, stderr = run("report", "-o", link, PROFILE, status=125)
    assert "symbolic link" in stderr, stderr
    assert target.read_text() == "precious"


def test_a_page_may_be_passed_on():
    """Everything that a page carries is MIT, and it carries the licences of both who wrote it."""
    page = report("-f", "html").decode()
    assert "SPDX-License-Identifier: MIT" in page and "GPL" not in page
    for licence in ("user/report/html/LICENSE", "third_party/uplot/LICENSE"):
        assert (ROOT / licence).read_text() in page, licence


def test_without_a_name_it_is_what_a_run_writes(tmp_path):
    stderr = run("report", cwd=tmp_path, status=125)[1]
    assert stderr == "qprof-bpf: cannot read 'qprof.yaml': No such file or directory\n", stderr
    (tmp_path / "qprof.yaml").write_bytes(PROFILE.read_bytes())
    assert run("report", "-f", "csv", cwd=tmp_path)[0] == report("-f", "csv")


@pytest.mark.parametrize("name, shown", [
    ("text", 'python3 -c import time\\nfor i in "ab":\\n\\ttime.sleep(1)'),
    ("html", 'import time\\\\nfor i in \\"ab\\":\\\\n\\\\ttime.sleep(1)'),
    ("svg", "import time\\nfor i in &#34;ab&#34;:\\n\\ttime.sleep(1)"),
    ("json", 'import time\\u000afor i in \\"ab\\":\\u000a\\u0009time.sleep(1)'),
    ("mprof", 'CMDLINE python3 -c import_time\\nfor_i_in_"ab":\\n\\ttime.sleep(1)'),
    ("chrome", 'python3 -c import time\\u000afor i in \\"ab\\":\\u000a\\u0009time.sleep(1)'),
    ("perfetto", 'python3 -c import time\nfor i in "ab":\n\ttime.sleep(1)'),
])
def test_a_command_of_several_lines(tmp_path, name, shown):
    """Line breaks and tabs are to be seen; what programs read has them as they are."""
    profile = yaml.safe_load(PROFILE.read_text())
    profile["qprof"]["command"] = ["python3", "-c", 'import time\nfor i in "ab":\n\ttime.sleep(1)']
    (tmp_path / "q.yaml").write_text(yaml.dump(profile))
    args = ["--width", "200"] if name == "text" else []
    assert shown.encode() in report("-f", name, *args, profile=tmp_path / "q.yaml")
