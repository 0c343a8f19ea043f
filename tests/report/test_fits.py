# SPDX-License-Identifier: GPL-2.0-only
"""`report --fits` and `report --budget`: a profile judged by itself, with an exit status for scripts."""

import json

import pytest

from profiles import QUARK
from reports import HERE, run
from test_bounds import ALONE, EARLIER, POOL

KILLED = HERE / "endings" / "killed.yaml"


def judged(profile, *args, status=0, width=100):
    text = run("report", "--width", width, *args, "-", stdin=profile.encode(), status=status)[0].decode()
    return text, {line.split("  ")[1]: line.split()[-1] for line in text.split("FITS INTO")[-1].splitlines()[1:]
                  if line.startswith("  ")}


# The pool needs 440 MiB at least in Work, 200 in Load; as a sum 1240. With what the timeline leaves out, at most
# 1240 + 1290 / 256, which is 1245.04.
FITS = [
    # amount, status, the first words, answers for the phases
    ("199M", 1, "Does NOT fit into 199 MiB: needs at least 440 MiB, which is 241 MiB more; the first time at 1.0 s, in Load",
     {"Load": "no", "Work": "no"}),
    ("439M", 1, "Does NOT fit into 439 MiB: needs at least 440 MiB, which is 1.00 MiB more; the first time at 3.0 s, in Work",
     {"Load": "yes", "Work": "no"}),
    ("440M", 3, "Cannot tell whether it fits into 440 MiB: it needs at least 440 MiB, at most 1.22 GiB; processes may share",
     {"Load": "yes", "Work": "unknown"}),
    ("202M", 1, "Does NOT fit into 202 MiB", {"Load": "unknown", "Work": "no"}),
    ("1245M", 3, "Cannot tell", {"Load": "yes", "Work": "unknown"}),
    ("1246M", 0, "Fits into 1.22 GiB: needs at most 1.22 GiB, which leaves 984 KiB", {"Load": "yes", "Work": "yes"}),
    ("16G", 0, "Fits into 16.0 GiB: needs at most 1.22 GiB, which leaves 14.8 GiB", {"Load": "yes", "Work": "yes"}),
]


@pytest.mark.parametrize("amount,status,words,phases", FITS, ids=[f[0] for f in FITS])
def test_fits(amount, status, words, phases):
    text, answers = judged(POOL, "--fits", amount, status=status)
    assert " ".join(text.split()).startswith(words), text
    whole = {0: "yes", 1: "no", 3: "unknown"}[status]
    assert answers == {**phases, "The whole run": whole}, text
    assert "Peak 1" not in text and all(len(line) <= 100 for line in text.splitlines()), text
    document = json.loads(run("report", "-f", "json", "--fits", amount, "-", stdin=POOL.encode(), status=status)[0])
    assert document["fits"]["fits"] == whole and words in document["fits"]["why"], document
    assert {p["name"]: p["fits"] for p in document["fits"]["phases"]} == phases, document
    assert (document["fits"]["first_over_secs"] is not None) == (whole == "no"), document


def test_a_process_alone():
    """Nothing is shared: between the bounds there is only what the timeline leaves out."""
    judged(ALONE, "--fits", "1239M", status=1)
    judged(ALONE, "--fits", "1241M", status=3)
    judged(ALONE, "--fits", "1246M")


def test_many_processes():
    """Between two points each process may have grown; those that live at different times, not together."""
    def process(pid, start, end):
        return (f"- {{pid: {pid}, ppid: 7, comm: w, cmdline: w, start_secs: {start}, end_secs: {end}, exit_code: 0,\n"
                "  flags: [], peak_memory_mb: 1.0}\n")
    after = "".join(process(10 + i, i, i + 0.5) for i in range(3))
    together = "".join(process(10 + i, 0.5, 3.5) for i in range(3))
    whole = ALONE.replace("peak_memory_mb: 1290.0", "peak_memory_mb: 1990.0")
    step = 1990 / 256
    for processes, n in ((after, 2), (together, 4)):
        text = whole.replace("timeline:\n", processes + "timeline:\n")
        document = json.loads(run("report", "-f", "json", "--fits", "2G", "-", stdin=text.encode())[0])
        assert abs(document["fits"]["needed_at_most_mb"] - (1240 + n * step)) < 0.02, (n, document["fits"])


def test_the_peak_bounds_what_is_needed():
    """It is exact: without swap no more was needed than that, however coarse the timeline is."""
    whole = ALONE.replace("peak_memory_mb: 1290.0", "peak_memory_mb: 1241.0")
    judged(whole, "--fits", "1241M")
    swapped = whole.replace("1240.0, 0.0, 0.0, null", "1239.0, 0.0, 1.0, null")
    judged(swapped, "--fits", "1241M", status=3)


def test_bounds_that_nobody_said():
    text, answers = judged(EARLIER, "--fits", "100M", status=3)
    assert "does not say how much at least" in " ".join(text.split()) and set(answers.values()) == {"unknown"}, text
    judged(EARLIER, "--fits", "2G")
    text, _ = judged(QUARK, "--fits", "100G", status=3)
    assert "no timeline" in text, text


def test_a_run_that_was_killed():
    """It might have needed more; what it had is still too much for less."""
    def status_of(status, *args):
        return run("report", "--width", "100", *args, KILLED, status=status)[0].decode()
    text = status_of(3, "--fits", "30G")
    assert "it had at most 417 MiB, but did not end well (--allow-failed)" in " ".join(text.split()), text
    rows = {line.split()[0]: line.split()[-1] for line in text.splitlines() if line.startswith("  ")}
    assert rows == {"Load": "yes", "Calibration": "unknown", "The": "unknown"}, text
    status_of(1, "--fits", "400M")
    status_of(0, "--fits", "30G", "--allow-failed")
    assert "cannot be told to hold" in status_of(1, "--budget", "peak=30G")
    assert "All limits hold" in status_of(0, "--budget", "peak=30G", "--allow-failed")


def test_path_of_the_first():
    """A name that is there more than once does not say which."""
    twice = POOL.replace("name: Load", "name: Work").replace("depth: 0, pid: 7, tid: 7, start_secs: 2.0", "depth: 1, pid: 7, tid: 7, start_secs: 2.0")
    text, _ = judged(twice, "--fits", "300M", status=1)
    assert "the first time at 3.0 s, in Work > Work" in " ".join(text.split()), text


BUDGETS = [
    # budget, whether it holds, words
    ("Wo*=1300M", True, None), ("Wo*=1200M", False, "! Wo*=1200M: Work, peak memory is 1.26 GiB, at most 1.17 GiB"),
    ("*=1G", False, "! *=1G: Work, peak memory"), ("Load.peak=210M", True, None), ("time=4s", True, None),
    ("time=3s", False, "! time=3s: The whole run, time is 4.0 s, at most 3.0 s"),
    ("Load.need=200M", True, None), ("Work.need_least=441M", True, None), ("Work.need=441M", False, "Work, needs at most is 1.21 GiB"),
    ("Lod*=8G", False, "! Lod*=8G: there is no such phase"), ("model_size_mb=400M", False, "there is no such phase"), ("model_size_mb=400", False, "! model_size_mb=400: "),
]


@pytest.mark.parametrize("budget,holds,words", BUDGETS, ids=[b[0] for b in BUDGETS])
def test_budget(budget, holds, words, tmp_path):
    """Without a profile to compare with; diff takes the same budgets."""
    text, _ = judged(POOL, "--budget", budget, status=0 if holds else 1)
    assert ("All limits hold." in text) == holds and (holds or words in text), text
    document = json.loads(run("report", "-f", "json", "--budget", budget, "-", stdin=POOL.encode(), status=0 if holds else 1)[0])
    assert document["broken"] == (not holds) and bool(document["breaches"]) == (not holds), document
    path = tmp_path / "pool.yaml"
    path.write_text(POOL)
    assert ("All limits hold." in run("diff", "--budget", budget, path, path, status=0 if holds else 1)[0].decode()) == holds


def test_both():
    """The worse of the two is the exit status."""
    text, _ = judged(POOL, "--fits", "512M", "--budget", "Work=1300M", status=3)
    assert "All limits hold." in text and "Cannot tell" in text, text
    judged(POOL, "--fits", "16G", "--budget", "Work=1G", status=1)
    judged(POOL, "--fits", "512M", "--budget", "Work=1G", status=1)


@pytest.mark.parametrize("args,words", [
    (["--fits", "lots"], "not a size"), (["--budget", "Work=lots"], "not a budget"), (["--budget", "=1G"], "not a budget"),
    (["--budget", "Work.peek=1G"], "not a budget"),
    (["--fits", "1G", "-f", "html"], "--fits, --fits-gpu and --budget have no html")])
def test_wrong(args, words):
    _, stderr = run("report", *args, "-", stdin=POOL.encode(), status=125)
    assert words in stderr, stderr


# On GPU 1 6144.25 MiB, and 480.5 of the driver's own on some GPU; 2 MiB on another, which may be the same one, for that
# is another process.
GPU_FITS = [
    ("6144M", 1, "Does NOT fit into GPUs of 6.00 GiB: GPU 1 needs at least 6.00 GiB, which is 256 KiB more"),
    ("6145M", 3, "Cannot tell whether it fits into GPUs of 6.00 GiB: GPU 1 needs at least 6.00 GiB, at most 6.47 GiB with all"),
    ("6624M", 3, "Cannot tell"),
    ("6625M", 0, "Fits into GPUs of 6.47 GiB: GPU 1 needs at most 6.47 GiB, which leaves 256 KiB"),
]


@pytest.mark.parametrize("amount,status,words", GPU_FITS, ids=[f[0] for f in GPU_FITS])
def test_fits_into_a_gpu(amount, status, words):
    whole = {0: "yes", 1: "no", 3: "unknown"}[status]
    asked = ("--allow-failed", "--fits-gpu", amount, HERE / "edges" / "gpu.yaml")
    text = run("report", *asked, status=status)[0].decode()
    assert " ".join(text.split()).startswith(words), text
    assert "GPU 0 " not in text, f"the run had nothing there: {text}"
    gpus = json.loads(run("report", "-f", "json", *asked, status=status)[0])["fits_gpu"]
    assert gpus["fits"] == whole and words in gpus["why"], gpus
    first, second = gpus["devices"]
    assert (first["index"], first["program_index"], first["fits"]) == (1, 0, whole)
    assert (first["needed_at_least_mb"], first["needed_at_most_mb"]) == (6144.25, 6624.75)
    assert (second["index"], second["program_index"], second["needed_at_least_mb"]) == (None, 7, 2)
    assert second["needed_at_most_mb"] == first["needed_at_most_mb"], "GPU 7 of its process may be that one"


GIB20, GIB80 = 20 * 1024.0, 80 * 1024.0


def gpus_of(processes, *devices, totals=""):
    """A run that ended well, and had on each device so much, of which one process had so much."""
    gpus = "".join(f"- {{{key}allocated_peak_mb: {peak}, allocated_peak_secs: 1.0, allocated_process_peak_mb: {own}}}\n"
                   for key, peak, own in devices)
    peak = sum(device[1] for device in devices)
    return (QUARK + f"peak_gpu_memory_mb: {peak}\ngpu_peak_memory_mb: {peak}\ngpu_driver_share_mb: 512.0\n"
            f"gpu_processes: {processes}\n{totals}gpus:\n{gpus}")


def fits_gpu(profile, amount, status):
    asked = ("report", "--width", 200, "--fits-gpu", amount, "-")
    return " ".join(run(*asked, stdin=profile.encode(), status=status)[0].decode().split())


def test_processes_that_number_gpus_their_own_way():
    """Four ranks of 20 GiB, each of which calls its one GPU 0."""
    ranks = gpus_of(4, ("program_index: 0, ", GIB80, GIB20))
    text = fits_gpu(ranks, "24G", 3)
    assert "needs at least 20.0 GiB, at most 80.5 GiB" in text and "may have numbered them its own way" in text, text
    assert "needs at least 20.0 GiB" in fits_gpu(ranks, "19G", 1)
    fits_gpu(ranks, "81G", 0)
    fits_gpu(ranks.replace("gpu_processes: 4\n", "").replace(f", allocated_process_peak_mb: {GIB20}", ""), "24G", 3)
    one = gpus_of(1, ("program_index: 0, ", GIB80, GIB20))
    assert "needs at least 80.0 GiB" in fits_gpu(one, "24G", 1)
    # GPU 1 of one of them may be GPU 0 of the other.
    two = (("program_index: 0, ", GIB20, GIB20), ("program_index: 1, ", GIB20, GIB20))
    fits_gpu(gpus_of(1, *two), "24G", 0)
    assert "at most 40.5 GiB" in fits_gpu(gpus_of(2, *two), "24G", 3)


def test_no_gpu_is_certain():
    """A run that ended badly; a driver that did not tell of its own; no device told apart; none used at all."""
    gpu = (HERE / "edges" / "gpu.yaml").read_text(encoding="utf-8")
    for text, status, why in (
            (gpu, 3, "had at most 6.47 GiB, but the run did not end well"),
            (gpu.replace("gpu_driver_share_mb: 480.5\n", "").split("ended:")[0] + "phases:" + gpu.split("\nphases:")[1], 3,
             "the profile does not say what the driver took for itself"),
            (QUARK + "peak_gpu_memory_mb: 100.0\n", 3, "does not say what there was on each"),
            (ALONE, 0, "the run used none")):
        got = run("report", "--width", 200, "--fits-gpu", "100G", "-", stdin=text.encode(), status=status)[0].decode()
        assert why in got, got


def test_memory_on_no_known_gpu():
    """It may be on any of them; alone it is no answer."""
    unknown, known = ("", GIB20, GIB20), ("program_index: 0, ", GIB20, GIB20)
    assert "nobody knows on which" in fits_gpu(gpus_of(1, unknown), "100G", 3)
    text = fits_gpu(gpus_of(1, known, unknown), "30G", 3)
    assert "needs at least 20.0 GiB, at most 40.5 GiB" in text and "unknown number" not in text, text
    fits_gpu(gpus_of(1, known, unknown), "19G", 1)
    fits_gpu(gpus_of(1, known, unknown), "41G", 0)


@pytest.mark.parametrize("key", ["lost_gpu_records", "uncounted_gpu_allocations", "unknown_gpu_frees"])
def test_what_could_not_be_counted(key):
    quality = f"quality:\n  {key}: 1\n  warnings: []\n  notes: []\n"
    text = fits_gpu(gpus_of(1, ("program_index: 0, ", GIB20, GIB20)) + quality, "24G", 3)
    assert "had at most 20.5 GiB of what was counted" in text, text
    assert "could be counted" in fits_gpu(QUARK + quality, "24G", 3)


def test_a_run_that_did_not_get_to_its_gpu():
    killed = run("report", "--width", 200, "--fits-gpu", "24G", KILLED, status=3)[0].decode()
    assert "the run used none, but did not end well (--allow-failed)" in killed, killed
    run("report", "--fits-gpu", "24G", "--allow-failed", KILLED)


def test_both_memories():
    """The worse answer counts."""
    both = ("--allow-failed", HERE / "edges" / "gpu.yaml")
    for ram, gpu, status in (("16G", "16G", 0), ("16G", "1G", 1), ("1M", "16G", 1), ("16G", "6500M", 3), ("1M", "6500M", 1)):
        run("report", "--fits", ram, "--fits-gpu", gpu, *both, status=status)
