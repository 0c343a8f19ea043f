# SPDX-License-Identifier: GPL-2.0-only
"""Metrics of an audit as Prometheus itself scrapes them, with the alerts and the dashboard of docs/metrics."""

import contextlib
import json
import re
import shutil
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

from exporting import fetched, free_port, is_searched, LABEL, promtool, serving, unpacked
from harness import Target, wait_for

DOCS = Path(__file__).resolve().parents[2] / "docs" / "metrics"
ALERTS = DOCS / "alerts.yml"
DASHBOARD = DOCS / "dashboard.json"
ALERTS_TEST = Path(__file__).with_name("alerts_test.yml")


class Prometheus:
    def __init__(self, port, process, log):
        self.url, self.process, self.log = f"http://127.0.0.1:{port}", process, log

    def get(self, path):
        return json.loads(fetched(self.url + path, self.process, self.log))["data"]

    def query(self, expr):
        return self.get("/api/v1/query?" + urllib.parse.urlencode({"query": expr}))["result"]


@contextlib.contextmanager
def prometheus(tmp_path, target):
    port, log = free_port(), tmp_path / "prometheus.log"
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [{"job_name": "qprof", "static_configs": [{"targets": [target]}]}]}))
    with serving(unpacked("prometheus") / "usr/bin/prometheus", f"--config.file={config}",
                 f"--storage.tsdb.path={tmp_path}/tsdb", f"--web.listen-address=127.0.0.1:{port}",
                 log=log) as process:
        yield Prometheus(port, process, log)


def dashboard_expressions():
    dashboard = json.loads(DASHBOARD.read_text())
    exprs = [(panel["title"], target["expr"]) for panel in dashboard["panels"]
             for target in panel["targets"]]
    assert len(exprs) > 12
    return exprs


def alert_expressions():
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [(rule["alert"], rule["expr"]) for group in groups for rule in group["rules"]]


def filled_in(expr):
    """As Grafana does it with everything chosen."""
    return expr.replace("$__rate_interval", "10s").replace("$instance", ".*").replace(
        "$job_name", ".*")


def test_prometheus_scrapes_it(exporter, own, own_name, tmp_path):
    """A real one: what it has is what was served, alerts load, and every panel shows something."""
    with exporter() as running, prometheus(tmp_path, running.address.netloc) as server:
        with Target(path=own) as first:
            is_searched(first, own)
        with Target("mark:one", "touch:8", "mark:two", "wait", path=own) as one:
            one.go()
            one.go()
            one.go()
            wait_for(lambda: server.query(f'qprof_jobs{{job_name="{own_name}"}}'), "the job")
            # Labels are as they were: none is Prometheus's own.
            [job] = server.query(f'qprof_jobs{{job_name="{own_name}"}}')
            assert job["metric"] == {"__name__": "qprof_jobs", "job_name": own_name, "uid": "0",
                                     "job": "qprof", "instance": running.address.netloc}
            wait_for(lambda: server.query(
                f'qprof_phase_resident_memory_peak_bytes{{job_name="{own_name}"}} > 0'), "phases")
            wait_for(lambda: server.query('rate(qprof_cpu_seconds_total[10s])'), "two scrapes")
            for title, expr in dashboard_expressions():
                wait_for(lambda expr=expr: server.query(filled_in(expr)), f"something in the panel {title!r}: {expr}")
        wait_for(lambda: [t["health"] for t in server.get("/api/v1/targets")["activeTargets"]] == ["up"], "a scrape in time")
        [samples] = server.query('scrape_samples_scraped{job="qprof"}')
        [kept] = server.query('scrape_samples_post_metric_relabeling{job="qprof"}')
        assert samples["value"][1] == kept["value"][1]

        def evaluated():
            rules = [rule for group in server.get("/api/v1/rules")["groups"]
                     for rule in group["rules"]]
            return all(rule["health"] != "unknown" for rule in rules) and rules
        rules = wait_for(evaluated, "rules to be evaluated")
        assert {(rule["name"], rule["health"], rule.get("lastError")) for rule in rules} == {
            (name, "ok", None) for name, _ in alert_expressions()}
        running.stop()


def test_alerts():
    done = promtool("check", "rules", ALERTS)
    assert done.returncode == 0, done.stdout + done.stderr
    with tempfile.TemporaryDirectory() as where:  # the test names the rules as beside itself
        shutil.copy(ALERTS, where)
        shutil.copy(ALERTS_TEST, where)
        done = promtool("test", "rules", ALERTS_TEST.name, cwd=where)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = {test["alertname"] for group in yaml.safe_load(ALERTS_TEST.read_text())["tests"]
              for test in group["alert_rule_test"] if test.get("exp_alerts")}
    assert tested == {name for name, _ in alert_expressions()}, "each fires in some test"


# What Prometheus itself adds to whatever it scrapes.
OF_PROMETHEUS = {"instance", "job"}
WORD = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def names_and_labels(expr):
    """The metrics of a PromQL expression, and the labels that it names for each."""
    text = re.sub(r'"[^"]*"', '""', filled_in(expr))
    grouping = set()
    for group in re.findall(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)", text):
        grouping |= set(WORD.findall(group))
    found = {}
    for name, matchers in re.findall(r"\b((?:qprof|process)_[a-z_]+)(?:\{([^}]*)\})?", text):
        if name in grouping:
            continue
        found.setdefault(name, set()).update(WORD.findall(matchers))
    return found, grouping


def test_names_in_alerts_and_dashboard_are_exported(exporter):
    with exporter() as running:
        metrics = running.metrics()
        running.stop()
    labels = {}  # empty ones included
    for line in metrics.text.splitlines():
        if not line.startswith("#"):
            name = WORD.match(line)[0]
            labels.setdefault(name, set()).update(key for key, _ in LABEL.findall(
                line.partition("{")[2].rpartition("}")[0]))
    for title, expr in dashboard_expressions() + alert_expressions():
        found, grouping = names_and_labels(expr)
        assert found, f"{title}: no metric in {expr}"
        for name, used in found.items():
            assert name in labels, f"{title}: {name} is not exported"
            assert used <= labels[name] | OF_PROMETHEUS, f"{title}: {name} has {labels[name]}"
        known = set().union(*(labels[name] for name in found)) | OF_PROMETHEUS
        assert grouping <= known, f"{title}: by {grouping}, of {known}"
    for rule in ALERTS.read_text().split("- alert:")[1:]:
        used = set(re.findall(r"\$labels\.([a-z_]+)", rule))
        names = set(re.findall(r"\bqprof_[a-z_]+|\bprocess_[a-z_]+", rule))
        known = set().union(*(labels[name] for name in names)) | OF_PROMETHEUS
        assert used <= known, f"{rule}: {used - known}"
