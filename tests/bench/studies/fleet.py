#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a month of a fleet costs, worked out from figures of one machine (docs/fleet.md).

usage: fleet.py [NAME=VALUE...]; without arguments it takes the figures that are measured there.
"""

import sys

# Figures of one machine; measured, or what a machine is taken to do. Yours: NAME=VALUE.
FIGURES = {
    "machines": (10000, "in the fleet"),
    "days": (30, "in the month"),
    # What a machine does.
    "execs": (2.0, "programs started a second, day and night"),
    "forks": (1.0, "processes a second that execute nothing"),
    "jobs": (50, "jobs a day"),
    "job_checkpoints": (400, "checkpoints of a job"),
    # Bytes of a line, by tests/bench/studies/events.py.
    "start_bytes": (247, "a line process_start"),
    "exec_bytes": (380, "a line process_exec"),
    "exit_bytes": (515, "a line process_exit"),
    "job_bytes": (906, "job_begin and job_end"),
    "checkpoint_bytes": (527, "a line checkpoint"),
    "compression": (10.0, "of these lines, by what stores them"),
    # CPU of qprof-bpf, by tests/bench/studies/audit.py.
    "idle_cpu": (0.0, "percent of a CPU on a quiet machine"),
    "exec_cpu_us": (75.0, "microseconds of CPU more for a program that is started"),
    "fork_cpu_us": (43.0, "microseconds of CPU for a process that comes and goes"),
    "checkpoint_cpu_us": (25.0, "microseconds of CPU for a checkpoint, its line included"),
    "rss_mib": (35.0, "resident memory of qprof-bpf"),
    "map_mib": (31.0, "kernel memory of its maps"),
    # Metrics.
    "series": (500, "series that a machine exports: assumed"),
    "series_bytes": (90, "bytes of a series in a scrape"),
    "scrape_cpu_us": (700, "microseconds of CPU for a scrape"),
    "interval": (60, "seconds between scrapes"),
    "sample_bytes": (1.7, "bytes a sample takes in Prometheus"),
}


def settle(arguments):
    figures = {name: value for name, (value, _) in FIGURES.items()}
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name not in figures:
            sys.exit(f"error: {name}: not one of {', '.join(figures)}")
        figures[name] = float(value)
    return figures


def work_out(f):
    """(what, of a machine a day, of the fleet in the month, unit)."""
    day = 86400
    processes = f["execs"] + f["forks"]
    lines = day * (2 * processes + f["execs"]) + f["jobs"] * (2 + f["job_checkpoints"])
    octets = day * (processes * (f["start_bytes"] + f["exit_bytes"]) + f["execs"] * f["exec_bytes"])
    jobs = f["jobs"] * f["job_bytes"]
    steps = f["jobs"] * f["job_checkpoints"] * f["checkpoint_bytes"]
    octets += jobs + steps
    cpu = day * (f["idle_cpu"] / 100 + (f["execs"] * f["exec_cpu_us"]
                                        + processes * f["fork_cpu_us"]) / 1e6)
    cpu += f["jobs"] * f["job_checkpoints"] * f["checkpoint_cpu_us"] / 1e6
    cpu += day / f["interval"] * f["scrape_cpu_us"] / 1e6
    samples = f["series"] * day / f["interval"]
    scrapes = f["series"] * f["series_bytes"] * day / f["interval"]
    month = f["machines"] * f["days"]
    return [
        ("event lines", lines, lines * month, ""),
        ("event bytes", octets, octets * month, "B"),
        ("event bytes, compressed", octets / f["compression"], octets / f["compression"] * month,
         "B"),
        ("event bytes with --events-only jobs,checkpoints", jobs + steps, (jobs + steps) * month,
         "B"),
        ("event bytes with --events-only jobs", jobs, jobs * month, "B"),
        ("CPU of qprof-bpf", cpu, cpu * month, "s"),
        ("as a share of one CPU", cpu / day * 100, cpu / day * 100, "%"),
        ("memory, maps included", (f["rss_mib"] + f["map_mib"]) * 2**20,
         (f["rss_mib"] + f["map_mib"]) * 2**20 * f["machines"], "B"),
        ("series", f["series"], f["series"] * f["machines"], ""),
        ("samples", samples, samples * month, ""),
        ("bytes of samples", samples * f["sample_bytes"], samples * f["sample_bytes"] * month, "B"),
        ("bytes of scrapes", scrapes, scrapes * month, "B"),
    ]


def show(value, unit):
    if unit == "B":
        steps = ("B", "KB", "MB", "GB", "TB", "PB")
    elif unit == "s":
        return (f"{value / 86400 / 365.25:.1f} CPU-years" if value > 3e7 else
                f"{value / 3600:.1f} CPU-hours" if value > 36000 else f"{value:.1f} CPU-seconds")
    elif unit == "%":
        return f"{value:.3f} %"
    else:
        steps = ("", " thousand", " million", " billion", " trillion")
    power = 0
    while value >= 1000 and power + 1 < len(steps):
        value /= 1000
        power += 1
    blank = " " if unit == "B" else ""
    return f"{value:.3g}{blank}{steps[power]}"


def main():
    figures = settle(sys.argv[1:])
    print(f"| | a machine, a day | {figures['machines']:,.0f} machines, {figures['days']:.0f} days |")
    print("|---|---|---|")
    for what, one, all_, unit in work_out(figures):
        print(f"| {what} | {show(one, unit)} | {show(all_, unit)} |")


if __name__ == "__main__":
    main()
