# SPDX-License-Identifier: GPL-2.0-only
"""What all sections about a single operation share: who pays how many nanoseconds for it."""

import statistics

from harness import columns as c, measure
from harness.report import Result, Table

THREADS = (1, 2)
BURSTS = 16  # a figure is the median of so many orders


def section(env, name, title, orders, empty, notes, columns, bursts=BURSTS):
    """orders: {what: (order, arguments after THREADS...)}; columns(load): what is attached."""
    with c.Load(env, max(THREADS)) as load:
        def figures(bursts=bursts):
            return {(what, threads): burst(load, threads, order, bursts)
                    for what, order in orders.items() for threads in THREADS}
        attached = env.wanted(columns(load))
        series = measure.interleave(attached, figures, lambda: figures(min(2, bursts)), env.rounds, env.progress)
    result = Result(name, title, notes=notes)
    for what in orders:
        add_table(result, what, {t: series[what, t] for t in THREADS}, empty)
    return result


def burst(load, threads, order, bursts):
    what, *rest = order
    return statistics.median(load.do(what, threads, *rest)["ns"] for _ in range(bursts))


def add_table(result, what, series, empty):
    """One table: a row for each column, for each number of threads what it adds."""
    header = [what or "attached"]
    bare = ["nothing, ns"]
    for threads, one in series.items():
        header += [f"{threads_of(threads)}: ns", "90 %", "× empty"]
        base = measure.median(one.all_base())
        bare += [figure(base.value), span(base), ""]
        result.figures[key(what, threads, "nothing")] = base.json()
    table = Table(header, [bare])
    one = next(iter(series.values()))
    for column in one.added:
        row = [column]
        for threads, one in series.items():
            row += cells(result, key(what, threads, column), one, column, empty)
        table.rows.append(row)
    for column, why in one.missing.items():
        table.rows.append([column, f"not measured: {why}"])
    result.tables.append(table)


def cells(result, name, one, column, empty):
    added = measure.median(one.added[column])
    result.figures[name] = added.json()
    times = measure.ratio(one.added[column], one.added[empty]) if empty in one.added else None
    if column == empty or not times:
        return [signed(added.value), span(added), ""]
    if column.startswith("ours"):
        result.ratios[name] = times.json()
    return [signed(added.value), span(added), f"{times.value:.2f} ({times.low:.2f}–{times.high:.2f})"]


def key(what, threads, column):
    return " / ".join(part for part in (what, threads_of(threads), column) if part)


def threads_of(n):
    return f"{n} thread{'s' * (n > 1)}"


def figure(ns):
    return f"{ns:.0f}" if abs(ns) >= 100 else f"{ns:.1f}"


def span(estimate):
    return f"{figure(estimate.low)} to {figure(estimate.high)}"


def signed(ns):
    return ("+" if ns >= 0 else "") + figure(ns)
