# SPDX-License-Identifier: GPL-2.0-only
"""What grows from one layer to the next is said in every report, and diff can gate on it."""

import json

import jsonschema
import pytest
import yaml

from reports import run, schema

LAYERS = 32


def phase(name, i, end, peak):
    return {"name": name, "kind": "pair", "depth": 0, "pid": 7, "tid": 7, "start_secs": 2.0 * i, "duration_secs": 2.0,
            "start_memory_mb": 100.0, "end_memory_mb": end, "delta_memory_mb": 0.0, "peak_memory_mb": peak,
            "io_read_mb": 0.0, "io_write_mb": 0.0, "disk_read_mb": 0.0, "disk_write_mb": 0.0, "cpu_time_secs": 0.25}


def profile(each, trends=None, anon=None, layers=LAYERS, limit=None):
    """`anon`: by how much each layer's share of `each` is no mapped file; None: no timeline says."""
    rows = [[2.0 * i + 2.0, 50.0 + (each - anon) * i, 50.0 + anon * i, 0.0, 0.0] for i in range(layers)] if anon is not None else None
    phases = [phase(f"Layer {i}/{LAYERS}", i, 100.0 + each * i, 600.0) for i in range(layers)]
    return yaml.dump({
        "qprof": {"version": "0", "schema_version": 1, "command": ["q"], "started_at": 1.0,
                  **({"memory_limit_mb": limit, "memory_limit_of": "cgroup /job"} if limit else {}), "backends": {}},
        "memory_usage": [{"step": "Start", "timestamp": 1.0, "relative_time_secs": 0.0, "cpu_memory_mb": 1.0},
                         {"step": "End", "timestamp": 65.0, "relative_time_secs": 64.0, "cpu_memory_mb": 1.0}],
        "total_quantization_time_seconds": 64.0, "peak_memory_mb": 600.0, "phases": phases,
        **({"trends": trends} if trends is not None else {}),
        **({"timeline": {"columns": ["time_secs", "file_mb", "anon_mb", "shmem_mb", "swap_mb"], "rows": rows}} if rows else {}),
        "quality": {"lost_checkpoints": 0, "may_be_counted_more_than_once_mb": {"inherited_at_fork": 0.0}}}, sort_keys=False).encode()


SENTENCE = "Layer #/# (32 repeats): +10.0 MiB of memory each, 410 MiB after the last"


def test_json():
    document = json.loads(run("report", "-f", "json", "-", stdin=profile(10.0))[0])
    assert document["trends"] == [{"phase": "Layer #/#", "repeats": LAYERS, "last_memory_mb": 410, "per_repeat_mb": 10}]
    whole = schema()
    jsonschema.validate(document["trends"], {"$defs": whole["$defs"], **whole["properties"]["trends"]})


def test_text():
    text = " ".join(run("report", "--width", "100", "-", stdin=profile(10.0))[0].decode().split())
    assert f"Grows: {SENTENCE}" in text, text


def test_mapped_files_are_told_apart():
    """Weights that are mapped and read layer by layer are in RSS, and can be dropped."""
    text = " ".join(run("report", "--width", "120", "-", stdin=profile(10.0, anon=0.0))[0].decode().split())
    assert "Grows: Layer #/# (32 repeats): +10.0 MiB of mapped files each, 410 MiB after the last" in text, text
    text = " ".join(run("report", "--width", "120", "-", stdin=profile(10.0, anon=4.0))[0].decode().split())
    assert "Grows: Layer #/# (32 repeats): +4.00 MiB of memory each, 174 MiB after the last" in text, text


def test_limit():
    """From half of the way on the layer is known at which memory will be short; `within` is what a layer has for a while."""
    for layers in range(LAYERS // 2, LAYERS):
        # 50 MiB and 10 each are held; 500 of peak above that leave no more than that in the last of 32.
        within = 600.0 - (100.0 + 10.0 * (layers - 1))
        limit = 50.0 + 10.0 * (LAYERS - 1) + within
        trend, = json.loads(run("report", "-f", "json", "-", stdin=profile(10.0, anon=10.0, layers=layers, limit=limit))[0])["trends"]
        assert abs(trend["limit_at_repeat"] - LAYERS) <= 1, (layers, trend)


def test_limit_in_words():
    text = " ".join(run("report", "--width", "160", "-", stdin=profile(10.0, anon=10.0, limit=1000.0))[0].decode().split())
    assert f"{SENTENCE.replace('410', '360')}; 1000 MiB (cgroup /job) at about #77" in text, text
    text = run("report", "--width", "160", "-", stdin=profile(10.0, anon=10.0, limit=100000.0))[0].decode()
    assert "cgroup /job" not in text, text


def test_page():
    page = run("report", "-f", "html", "-o", "-", "-", stdin=profile(10.0))[0].decode()
    assert f'"trends":["{SENTENCE}"]' in page.replace("\n", ""), page[:2000]


def test_nothing_grows():
    """No word of it, and no key."""
    assert "Grows:" not in run("report", "-", stdin=profile(0.0))[0].decode()
    assert json.loads(run("report", "-f", "json", "-", stdin=profile(0.0))[0]).get("trends") in (None, [])


def test_what_the_file_says_counts():
    """Found once, when the profile was written."""
    said = [{"phase": "Block #", "repeats": 7, "last_memory_mb": 1.0, "per_repeat_secs": 2.5}]
    document = json.loads(run("report", "-f", "json", "-", stdin=profile(10.0, said))[0])
    assert [trend["phase"] for trend in document["trends"]] == ["Block #"]
    assert "Block # (7 repeats): +2.5 s of time each" in run("report", "-", stdin=profile(10.0, said))[0].decode()


def test_a_file_that_says_nothing_grows():
    """It was looked for when the profile was written: nobody looks again."""
    assert json.loads(run("report", "-f", "json", "-", stdin=profile(10.0, trends=[]))[0])["trends"] == []
    assert "Grows:" not in run("report", "-", stdin=profile(10.0, trends=[]))[0].decode()


def test_swap_and_io_in_words():
    said = [{"phase": "Block #", "repeats": 7, "last_memory_mb": 1.0, "last_needs_mb": 9.0, "per_repeat_needs_mb": 3.0,
             "per_repeat_swap_mb": 2.0, "per_repeat_io_read_mb": 64.0, "per_repeat_disk_write_mb": 32.0}]
    text = " ".join(run("report", "--width", "160", "-", stdin=profile(0.0, said))[0].decode().split())
    assert ("Block # (7 repeats): +3.00 MiB of memory each (2.00 MiB of it in swap), 9.00 MiB after the last, "
            "+64.0 MiB read each, +32.0 MiB written to storage each") in text, text
    trend, = json.loads(run("report", "-f", "json", "-", stdin=profile(0.0, said))[0])["trends"]
    assert {key: trend[key] for key in said[0]} == said[0]


def on_a_gpu(devices=1):
    """Each layer leaves 512 MiB on a GPU of 24 GiB, of which the driver takes 1 GiB, and has 256 MiB more for a while."""
    whole = yaml.safe_load(profile(0.0, layers=20))
    start, end = whole["memory_usage"]
    rows = [{**start, "step": f"Layer {i}", "relative_time_secs": 2.0 * i + 2.0, "gpu_memory_mb": 512.0 * (i + 1)} for i in range(20)]
    gpus = [{"index": i, "name": "G", "total_mb": 24.0 * 1024} for i in range(devices)]
    whole |= {"memory_usage": [start, *rows, end], "gpus": gpus, "gpu_driver_share_mb": 1024.0}
    for i, item in enumerate(whole["phases"]):
        item |= {"gpu_delta_memory_mb": 512.0, "gpu_peak_memory_mb": 512.0 * (i + 1) + 256.0}
    return yaml.dump(whole, sort_keys=False).encode()


@pytest.mark.parametrize("devices,tail", [(1, "; 24.0 GiB (GPU 0) at about #46"), (2, "")])
def test_memory_on_a_gpu(devices, tail):
    """Which of several GPUs will be full nobody knows."""
    text = " ".join(run("report", "--width", "200", "-", stdin=on_a_gpu(devices))[0].decode().split())
    sentence = f"Grows: Layer #/# (20 repeats): +512 MiB of memory on GPUs each, 10.0 GiB after the last{tail}"
    assert sentence in text and (tail or "(GPU" not in text), text
    trend, = json.loads(run("report", "-f", "json", "-", stdin=on_a_gpu(devices))[0])["trends"]
    assert (trend["per_repeat_gpu_mb"], trend["last_gpu_mb"], trend["per_repeat_gpu_peak_mb"]) == (512, 10240, 512), trend
    assert trend.get("gpu_limit_at_repeat") == (46 if tail else None), trend
    whole = schema()
    jsonschema.validate([trend], {"$defs": whole["$defs"], **whole["properties"]["trends"]})


@pytest.fixture
def files(tmp_path):
    for name, each in (("flat", 0.0), ("grows", 10.0)):
        (tmp_path / name).write_bytes(profile(each))
    return tmp_path


@pytest.mark.parametrize("most,status", [("9M", 1), ("11M", 0)])
def test_gate(files, most, status):
    text = run("diff", "--max-growth-per-phase", most, files / "flat", files / "grows", status=status)[0].decode()
    if status:
        assert f"! --max-growth-per-phase {most}: Layer #/#, growth of memory each is 10.0 MiB, at most 9.00 MiB" in text, text
    else:
        assert "All limits hold." in text, text


def test_gate_in_json(files):
    document = json.loads(run("diff", "-f", "json", "--max-growth-per-phase", "1M", files / "flat", files / "grows", status=1)[0])
    breach, = document["breaches"]
    assert (breach["phase"], breach["metric"], breach["new"], breach["most"]) == (
        "Layer #/#", "growth_per_phase", 10 << 20, 1 << 20), breach


def test_gate_counts_no_mapped_files(files):
    (files / "mapped").write_bytes(profile(10.0, anon=0.5))
    assert "All limits hold." in run("diff", "--max-growth-per-phase", "1M", files / "flat", files / "mapped")[0].decode()


def test_gate_looks_at_the_new_side_alone(files):
    assert "All limits hold." in run("diff", "--max-growth-per-phase", "1M", files / "grows", files / "flat")[0].decode()


def test_bad_amount(files):
    run("diff", "--max-growth-per-phase", "0", files / "flat", files / "grows", status=125)
    run("diff", "--max-growth-per-phase", "5%", files / "flat", files / "grows", status=125)


@pytest.mark.parametrize("key,words", [("storage_wait_secs", "waited for storage"),
                                       ("reclaim_secs", "freed memory, since there was none left"),
                                       ("gpu_wait_secs", "waited for a GPU")])
def test_other_causes_have_a_sentence(key, words):
    """What most was lost to, of all; threads that sleep without need are no cause."""
    whole = yaml.safe_load(profile(0.0))
    whole |= {"total_cpu_time_secs": 3.0, "total_cpu_wait_secs": 1.0, f"total_{key}": 4.0, "total_lock_wait_secs": 99.0}
    for i, item in enumerate(whole["phases"]):
        item[key] = 3.9 if i == 7 else 0.0
    text = " ".join(run("report", "--width", "120", "-", stdin=yaml.dump(whole, sort_keys=False).encode())[0].decode().split())
    assert f"Slow: 50 % of the time in which threads could have run they {words}: 4.0 s, most of it in Layer 7/32" in text
    assert "THREADS BY PHASE" in text and ("RECLAIM" in text) == (key == "reclaim_secs"), text
    assert ("FOR GPU" in text) == (key == "gpu_wait_secs"), text


def test_each_cause_of_a_fifth_is_said():
    """The largest first, of which it says most; and none of less than a fifth."""
    whole = yaml.safe_load(profile(0.0))
    whole |= {"total_cpu_time_secs": 2.0, "total_cpu_wait_secs": 4.0, "total_reclaim_secs": 3.0, "total_storage_wait_secs": 1.0}
    data = yaml.dump(whole, sort_keys=False).encode()
    text = " ".join(run("report", "--width", "120", "-", stdin=data)[0].decode().split())
    said = text[text.index("Slow: "):text.index(" THREADS BY") if " THREADS BY" in text else None]
    assert said.startswith("Slow: 40 % of the time in which threads could have run they waited for a CPU: 4.0 s; "), said
    assert ". 30 % they freed memory, since there was none left: 3.0 s" in said and "storage" not in said, said


def test_one_thread_has_a_cpu():
    """It shares none with itself."""
    whole = yaml.safe_load(profile(0.0))
    secs = whole["total_quantization_time_seconds"]
    whole |= {"total_cpu_time_secs": secs / 4, "total_cpu_wait_secs": secs * 3 / 4}
    text = " ".join(run("report", "--width", "120", "-", stdin=yaml.dump(whole, sort_keys=False).encode())[0].decode().split())
    assert "; 1.0 threads had 0.2 CPUs" in text or "; 1.0 threads had 0.3 CPUs" in text, text


def test_a_gpu_is_named_last():
    """If there is another cause as well, that is the one; what a driver spun is no time of computing."""
    whole = yaml.safe_load(profile(0.0))
    whole |= {"total_cpu_time_secs": 3.0, "total_gpu_wait_secs": 4.0, "total_gpu_wait_cpu_secs": 2.0, "total_storage_wait_secs": 3.0}
    text = " ".join(run("report", "--width", "120", "-", stdin=yaml.dump(whole, sort_keys=False).encode())[0].decode().split())
    assert "Slow: 38 % of the time in which threads could have run they waited for storage: 3.0 s" in text, text


@pytest.mark.parametrize("wait,said", [(6.0, True), (0.5, False)])
def test_waits_for_a_cpu(wait, said):
    """A fifth of the time in which threads could run is worth a sentence; it names the phase with most of it."""
    whole = yaml.safe_load(profile(0.0))
    whole |= {"total_cpu_time_secs": 4.0, "total_cpu_wait_secs": wait}
    for i, item in enumerate(whole["phases"]):
        item["cpu_wait_secs"] = wait * 0.9 if i == 7 else 0.0
    text = " ".join(run("report", "--width", "120", "-", stdin=yaml.dump(whole, sort_keys=False).encode())[0].decode().split())
    sentence = ("60 % of the time in which threads could have run they waited for a CPU: 6.0 s, most of it in Layer 7/32, "
                "where 2.8 threads shared 0.1 CPUs")
    assert (f"Slow: {sentence}" in text) == said, text
    page = run("report", "-f", "html", "-o", "-", "-", stdin=yaml.dump(whole, sort_keys=False).encode())[0].decode()
    assert (f'"slow":"{sentence}"' in page) == said


QUOTA = {"cpus": 8, "of": "cgroup /job", "quota_secs": 0.2, "period_secs": 0.1, "cgroup_throttled_secs": 30.0,
         "cgroup_throttled_periods": 300}


@pytest.mark.parametrize("own,limit,why", [
    (True, QUOTA, "16.0 threads shared 2.0 CPUs (quota of cgroup /job: 200 %). Try OMP_NUM_THREADS=2"),
    (True, {"cpus": 2}, "16.0 threads shared 2.0 CPUs (it may use 2). Try OMP_NUM_THREADS=2"),
    # A quota of more than there is holds nobody up.
    (True, QUOTA | {"cpus": 2, "quota_secs": 0.4}, "16.0 threads shared 2.0 CPUs (it may use 2). Try OMP_NUM_THREADS=2"),
    # Others had the rest: fewer threads would have had less.
    (True, {"cpus": 8}, "16.0 threads shared 2.0 CPUs; it may use 8, so other programs probably had the rest"),
    # The same of a quota, that did not stop it; but it was why if others in its cgroup used it up.
    (True, QUOTA | {"quota_secs": 0.4, "cgroup_throttled_secs": 0.3},
     "16.0 threads shared 2.0 CPUs; the quota of cgroup /job is 400 %, so other programs probably had the rest"),
    (True, QUOTA | {"quota_secs": 0.4}, "16.0 threads shared 2.0 CPUs (quota of cgroup /job: 400 %)"),
    # Of several processes nobody knows which has too many threads.
    (False, {"cpus": 2}, "16.0 threads shared 2.0 CPUs (it may use 2)"),
    (True, None, "16.0 threads shared 2.0 CPUs"),
])
def test_how_many_threads_shared_how_many_cpus(own, limit, why):
    whole = yaml.safe_load(profile(0.0))
    whole |= {"total_cpu_time_secs": 5.0, "total_cpu_wait_secs": 30.0, **({"cpu_limit": limit} if limit else {})}
    for i, item in enumerate(whole["phases"]):
        # Two seconds each, of which that one had 2 of 16 threads.
        ran, waited = (4.0, 28.0) if i == 7 else (0.03, 0.03)
        item |= {"cpu_time_secs": ran, "cpu_wait_secs": waited}
        item |= {f"own_{key}": value if own else value / 4 for key, value in item.items()
                 if key in ("cpu_time_secs", "cpu_wait_secs", "io_read_mb", "io_write_mb", "disk_read_mb", "disk_write_mb")}
    data = yaml.dump(whole, sort_keys=False).encode()
    page = run("report", "-f", "html", "-o", "-", "-", stdin=data)[0].decode()
    assert f', most of it in Layer 7/32, where {why}"' in page, page[page.index('"slow"'):][:400]
    document = json.loads(run("report", "-f", "json", "-", stdin=data)[0])
    assert document.get("cpu_limit") == limit
    jsonschema.validate(document.get("cpu_limit", {}), {"$defs": schema()["$defs"], **schema()["properties"]["cpu_limit"]})
