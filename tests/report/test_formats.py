# SPDX-License-Identifier: GPL-2.0-only
"""All formats of `qprof-bpf report`: what each makes of one recorded profile, and what holds for all.

A format's golden file is golden.NAME; QPROF_UPDATE_GOLDEN=1 writes them anew, to be looked at before
they are committed. A format is in the test as soon as the program has it: without a golden file it
fails.
"""

import os

import pytest

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
                            ("mprof", ".dat"), ("perfetto", ".pftrace")):
        out = tmp_path / f"x{extension}"
        run("report", "-o", out, PROFILE)
        assert out.read_bytes() == report("-f", name), extension


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
