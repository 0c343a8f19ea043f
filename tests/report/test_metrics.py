# SPDX-License-Identifier: GPL-2.0-only
"""What a program reports of itself, metrics and what they are, is in every format, and so is how its run ended."""

import csv
import io
import json
import math

import pytest
import yaml

from reports import PROFILE, report, run

EVIL = "evil\n\x1b[31m\"'\\: <b>\u202e #x"
LONG = "x" * 250
SUMMARIES = {
    "model_size_mb": 394.5,
    "peak_memory_mb (metric)": 7,
    "report (metric)": -3,
    "huge": 2 ** 64 - 1,
    "tiny": 2.5e-300,
    "undefined": math.nan,
    "endless": -math.inf,
    EVIL: 1,
    "\u00e9" * 120: 2,
    LONG: 3,
    "unreadable": None,
}
DEFINITIONS = ["model_size_mb: the model on disk, MiB", f"{EVIL}: <script>", "no name"]
FINITE = {name for name, value in SUMMARIES.items() if value is not None and math.isfinite(value)}


def with_summaries(summaries, definitions=(), text=None):
    """A profile in which a program reports these of the whole run."""
    profile = yaml.safe_load(text or PROFILE.read_text())
    made = {}
    for key, value in profile.items():
        if key == "peak":
            made |= summaries
            if definitions:
                made["metric_definitions"] = list(definitions)
        made[key] = value
    return yaml.dump(made, sort_keys=False, allow_unicode=True)


@pytest.fixture(name="profile", scope="module")
def fixture_profile(tmp_path_factory):
    path = tmp_path_factory.mktemp("metrics") / "q.yaml"
    path.write_text(with_summaries(SUMMARIES, DEFINITIONS))
    return path


def reported(profile):
    """The name and value of each metric of a row, in their order."""
    return [metric for row in yaml.safe_load(profile.read_text())["memory_usage"]
            for metric in row.get("metrics", {}).items()]


def same(got, expected):
    return got == expected or (expected is not None and math.isnan(expected) and math.isnan(got))


def test_json_is_the_profile(profile):
    """The same keys with the same values; JSON has no number that is none."""
    got = json.loads(report("-f", "json", profile=profile))
    for name, value in SUMMARIES.items():
        assert got[name] == (value if name in FINITE else None), name
    assert got["metric_definitions"] == DEFINITIONS
    assert not set(yaml.safe_load(profile.read_text())) - set(got), "keys of the profile are missing"


def test_json_of_a_key_that_is_a_metric(tmp_path):
    """Only JSON has `report`: a metric of that name, in a file that others made, has another key."""
    (tmp_path / "q.yaml").write_text(with_summaries({"report": 5}))
    got = json.loads(report("-f", "json", profile=tmp_path / "q.yaml"))
    assert got["report (metric)"] == 5 and "derived" in got["report"]


def test_csv(profile):
    rows = list(csv.DictReader(io.StringIO(report("-f", "csv", "--table", "metrics", profile=profile).decode(), newline="")))
    of_run = {r["name"]: r for r in rows if not r["step"]}
    assert list(of_run) == list(SUMMARIES)
    for name, value in SUMMARIES.items():
        text = of_run[name]["value"]
        assert text == "" if value is None else same(float(text), float(value)), (name, text)
    assert of_run["huge"]["value"] == str(2 ** 64 - 1)
    of_rows = [(r["name"], float(r["value"])) for r in rows if r["step"]]
    assert of_rows == reported(profile) and of_rows, of_rows
    assert [r["step"] for r in rows if r["name"] == "bits"] == ["Layer 0 Start"]
    defined = csv.DictReader(io.StringIO(
        report("-f", "csv", "--table", "metric_definitions", profile=profile).decode(), newline=""))
    assert [r["metric_definition"] for r in defined] == DEFINITIONS


def test_text(profile):
    """A line for each name; what would turn text or control a terminal is not passed on."""
    text = report("--width", "200", profile=profile).decode()
    table = text.split("METRICS OF THE PROGRAM")[1]
    lines = {line.split()[0]: line.split() for line in table.splitlines()[1:] if line.strip()}
    assert lines["model_size_mb"][1:3] == ["394.5", "run"], lines
    assert lines["huge"][1] == "1.845e+19" and lines["undefined"][1] == "nan" and lines["endless"][1] == "-inf", table
    assert lines["unreadable"][1] == "-", table
    assert lines["error"][1:] == ["0.125", "418", "ms", "2", "0.125", "0.25"], lines["error"]
    assert "\x1b" not in table and "\u202e" not in table and "evil\\n\ufffd[31m" in table, table
    assert "# model_size_mb: the model on disk, MiB" in table and "# no name" in table, table


def test_html(profile):
    page = report("-f", "html", profile=profile).decode()
    got = json.loads(page.split('id="profile">')[1].split("</script>")[0])
    rows = {row[0]: dict(zip(got["metrics"]["keys"], row)) for row in got["metrics"]["rows"]}
    assert rows["model_size_mb"]["last"] == "394.5" and rows["model_size_mb"]["of_run"]
    assert rows["huge"]["last"] == str(2 ** 64 - 1), "a script would round it"
    assert rows["undefined"]["last"] == "nan" and rows["unreadable"]["last"] == "-", rows
    assert (rows["error"]["times"], rows["error"]["lowest"], rows["error"]["highest"]) == (2, "0.125", "0.25")
    assert len(got["definitions"]) == len(DEFINITIONS) and got["definitions"][0] == DEFINITIONS[0]


def test_svg(profile):
    """As many as there is room for; the others are counted."""
    picture = report("-f", "svg", profile=profile).decode()
    assert "model_size_mb 394.5;" in picture and "huge 18446744073709551615;" in picture, picture[:4000]
    assert "<b>" not in picture and "\x1b" not in picture
    many = with_summaries({f"metric {i}": i for i in range(200)})
    picture = run("report", "-f", "svg", "-", stdin=many.encode())[0].decode()
    shown = sum(f"metric {i} {i};" in picture for i in range(200))
    rows = 3  # names of PROFILE's rows
    assert 10 < shown < 200 and f"... and {200 + rows - shown} more" in picture, shown


def test_mprof(profile):
    """A comment each, which mprof passes over."""
    lines = report("-f", "mprof", profile=profile).decode().splitlines()
    of_run = [line.split() for line in lines if line.startswith("# metric ") and len(line.split()) == 4]
    assert ["#", "metric", "model_size_mb", "394.5"] in of_run and len(of_run) == len(SUMMARIES), of_run
    of_rows = [line.split() for line in lines if line.startswith("# metric ") and len(line.split()) == 5]
    assert [(words[2], float(words[3])) for words in of_rows] == reported(profile), of_rows
    assert "# definition model_size_mb: the model on disk, MiB" in lines


def test_chrome(profile):
    """A counter each, at the run's end; a number that is none cannot be drawn."""
    events = json.loads(report("-f", "chrome", profile=profile))["traceEvents"]
    end = max(e["ts"] for e in events if e["ph"] == "e" and e["name"] == "run")
    counters = {e["name"]: e for e in events if e["ph"] == "C" and e["name"] in SUMMARIES}
    assert set(counters) == FINITE, set(counters) ^ FINITE
    for name, event in counters.items():
        assert event["args"] == {"value": pytest.approx(SUMMARIES[name])} and abs(event["ts"] - end) < 100, event
    args = next(e for e in events if e["ph"] == "b" and e["name"] == "run")["args"]
    assert args["metric_definitions"] == "\n".join(DEFINITIONS)


def test_perfetto(profile):
    trace = report("-f", "perfetto", profile=profile)
    for name in FINITE | {"metric_definitions", DEFINITIONS[0]}:
        assert name.encode() in trace, name


def test_numbers_that_are_no_metrics(tmp_path):
    """Texts, lists and maps of a later version are passed over; a file that ends in a value has none."""
    later = with_summaries({"a text": "5", "a list": [1], "a map": {"a": 1}, "a bool": True, "a metric": 5})
    (tmp_path / "q.yaml").write_text(later)
    got = json.loads(report("-f", "json", profile=tmp_path / "q.yaml"))
    assert got["a metric"] == 5 and not {"a text", "a list", "a map", "a bool"} & set(got)
    (tmp_path / "cut.yaml").write_text(later[:later.index("a metric:") + len("a metric:")])
    got = json.loads(report("-f", "json", profile=tmp_path / "cut.yaml"))
    assert "a metric" not in got and got["report"]["partial"], got["report"]


def test_a_metric_twice():
    _, stderr = run("report", "-", stdin=PROFILE.read_bytes() + b"a: 1\na: 2\n", status=125)
    assert "it is there twice" in stderr, stderr


def test_too_many_metrics():
    many = "".join(f"m{i}: 1\n" for i in range(4097))
    _, stderr = run("report", "-", stdin=PROFILE.read_bytes() + many.encode(), status=125)
    assert "more than 4096" in stderr, stderr


# ---- How a run ended, in formats that have no tables of processes

ENDED = "Ended by SIGSEGV at 556 ms"


@pytest.fixture(name="crashed", scope="module")
def fixture_crashed(tmp_path_factory):
    profile = yaml.safe_load(PROFILE.read_text())
    target = next(p for p in profile["processes"] if "target" in p["flags"])
    del target["exit_code"]
    target["exit_signal"] = 11
    path = tmp_path_factory.mktemp("crashed") / "q.yaml"
    path.write_text(yaml.dump(profile, sort_keys=False))
    return path


@pytest.mark.parametrize("args", [
    ["-f", "text", "--width", "200"], ["-f", "html"], ["-f", "svg"], ["-f", "json"], ["-f", "csv", "--table", "totals"],
    ["-f", "mprof"], ["-f", "perfetto"], ["-f", "chrome"]], ids=lambda args: args[1])
def test_every_format_says_how_it_ended(args, crashed):
    assert ENDED.encode() in report(*args, profile=crashed)
    assert b"Ended by" not in report(*args)


def test_a_table_without_room_for_it(crashed):
    """Then stderr has it."""
    out, stderr = run("report", "-f", "csv", crashed)
    assert ENDED.encode() not in out and ENDED in stderr, stderr


# ---- diff

@pytest.fixture(name="made")
def fixture_made(tmp_path):
    """made(NAME, METRICS): a profile whose program reports these of the whole run; its rows report loss 0.25, bits 8 ..."""
    def make(name, summaries):
        path = tmp_path / name
        path.write_text(with_summaries(summaries))
        return path
    return make


def diff(*args, status=0):
    return run("diff", *args, status=status)[0].decode()


def test_diff_tells_what_changed(made):
    old = made("old", {"model_size_mb": 400, "layers": 32, "gone": 1, "time": 3, LONG: 1, "odd": math.nan, "from nothing": 0})
    new = made("new", {"model_size_mb": 410.5, "layers": 32, "here": 2, "time": 4, LONG: -1, "odd": math.nan, "from nothing": 2})
    text = diff("--width", "200", old, new)
    lines = text.split("Metrics of the program\n")[1].splitlines()
    assert lines[0].split() == ["model_size_mb", "400", "410.5", "+10.5", "+2.6", "%"], lines
    assert lines[1].split() == ["gone", "1", "-"] and lines[2].split() == ["time", "(metric)", "3", "4", "+1", "+33.3", "%"], lines
    assert lines[3].startswith("  " + "x" * 190) and lines[4].split() == ["1", "-1", "-2", "-200.0", "%"], lines
    assert lines[5].split() == ["from", "nothing", "0", "2", "+2", "from", "0"] and lines[6].split() == ["here", "-", "2"], lines
    # layers, odd, and the three names of rows.
    assert "5 metrics of the program without a change of 1 %" in text, text
    assert ["layers", "32", "32", "+0", "+0.0", "%"] in [line.split() for line in diff("--all", old, new).splitlines()]
    got = {m["name"]: m for m in json.loads(diff("-f", "json", old, new))["metrics"]}
    assert got["model_size_mb"]["new"] == {"median": 410.5, "lowest": 410.5, "highest": 410.5}
    assert got["here"]["old"] is None and got["error"]["old"]["median"] == 0.125, got


@pytest.mark.parametrize("budget, holds", [
    ("model_size_mb=410.5", True), ("model_size_mb=410.4", False), ("model_size_mb=4.105e2", True),
    ("negative=-1", True), ("negative=-1.5", False),
    ("with.dots=3", True), ("with.dots=2", False), ("a=b=3", True),
    ("time (metric)=4", True), ("time (metric)=3", False), ("time=1h", True),
    ("error=0.125", True), ("error=0.1", False),  # of rows, the last value
    ("both=1", True),  # of the run, though rows report it too
    ("odd=1e300", False), ("endless=1e300", False), ("unreadable=5", False),
    ("model_size=500", False), ("Quantize.model_size_mb=500", False),  # nobody reports that
])
def test_budgets(made, budget, holds):
    new = made("new", {"model_size_mb": 410.5, "negative": -1, "with.dots": 3, "a=b": 3, "time": 4, "odd": math.nan,
                       "endless": math.inf, "unreadable": None, "both": 1})
    new.write_text(new.read_text().replace("bits: 8", "both: 8"))
    text = diff("--budget", budget, PROFILE, new, status=0 if holds else 1)
    assert ("All limits hold" in text) == holds and (f"! {budget}: " in text) != holds, text
    breaches = json.loads(diff("-f", "json", "--budget", budget, PROFILE, new, status=0 if holds else 1))["breaches"]
    assert [b["limit"] for b in breaches] == ([] if holds else [budget]), breaches


def test_a_budget_marks_its_line_only(made):
    """A metric of the program is none of diff's own."""
    new = made("new", {"model_size_mb": 410.5})
    text = diff("--budget", "model_size_mb=400", new, new, status=1)
    assert [line.split()[0] for line in text.splitlines() if line.endswith(" !")] == ["model_size_mb"], text
    assert "! model_size_mb=400: model_size_mb is 410.5, at most 400" in text, text


@pytest.mark.parametrize("budget", ["model_size_mb=", "model_size_mb=nan", "model_size_mb", "=5"])
def test_what_is_no_budget(budget):
    _, stderr = run("diff", "--budget", budget, PROFILE, PROFILE, status=125)
    assert "not a budget such as" in stderr, stderr


def test_repeats(made):
    """The median counts, and what is within the spread is marked."""
    values = {"old": (1, 2, 9), "new": (3, 4, 5, 6)}
    sides = {side: ",".join(str(made(f"{side}{v}", {"size": v})) for v in several) for side, several in values.items()}
    got = next(m for m in json.loads(diff("-f", "json", sides["old"], sides["new"]))["metrics"] if m["name"] == "size")
    assert got["old"] == {"median": 2, "lowest": 1, "highest": 9} and got["new"] == {"median": 4.5, "lowest": 3, "highest": 6}
    assert got["within_spread"]
    line = next(line for line in diff(sides["old"], sides["new"]).splitlines() if line.startswith("  size"))
    assert line.split() == ["size", "2", "4.5", "+2.5", "+125.0", "%", "~"], line
