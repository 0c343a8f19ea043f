# SPDX-License-Identifier: GPL-2.0-only
"""Measuring side by side: interleaved rounds, paired differences, medians, and how far to trust them.

A machine drifts: clocks, caches, neighbours. So nothing is compared with what was measured minutes
before: each figure of a column, B, stands between two of the bare program, A B A, within milliseconds
where what is attached can come and go so fast, and what counts is its difference to the mean of the
two. Of all differences the median is reported, with the range in which the true median lies with
90 % confidence (bootstrap). Outliers move neither.
"""

import random
import statistics
from dataclasses import dataclass, field


class Unavailable(Exception):
    """A column that cannot be measured here; the text says why."""


@dataclass
class Estimate:
    """A median, and the range that it lies in with 90 % confidence."""

    value: float
    low: float
    high: float

    def json(self):
        return {"median": self.value, "low": self.low, "high": self.high}


DRAWS = 1000


def resample(chance, values):
    return statistics.median(chance.choices(values, k=len(values)))


def estimate(value, draws):
    draws.sort()
    return Estimate(value, draws[len(draws) // 20], draws[-1 - len(draws) // 20])


def median(values):
    chance = random.Random(1)  # the same answer for the same figures
    return estimate(statistics.median(values), [resample(chance, values) for _ in range(DRAWS)])


def ratio(values, others):
    """Of two medians, an Estimate. None where the second may as well be 0."""
    chance = random.Random(2)
    if median(others).low <= 0:
        return None
    draws = []
    for _ in range(DRAWS):
        below = resample(chance, others)
        if below > 0:
            draws.append(resample(chance, values) / below)
    return estimate(statistics.median(values) / statistics.median(others), draws)


@dataclass
class Series:
    """What the rounds gave: base is the bare program beside each column, added what came on top."""

    base: dict = field(default_factory=dict)
    added: dict = field(default_factory=dict)
    missing: dict = field(default_factory=dict)

    def put(self, column, before, value, after):
        base = (before + after) / 2
        self.base.setdefault(column, []).append(base)
        self.added.setdefault(column, []).append(value - base)

    def all_base(self):
        return [value for values in self.base.values() for value in values]


def interleave(columns, measure, settle, rounds, progress=lambda text: None):
    """A Series of each key of what measure() gives: {key: Series}.

    columns: {name: context manager factory}, each entered and left once a round, or as often as its
    attribute `repeats` says, for one that comes and goes fast; measure(): {key: figure}; settle():
    the same, briefly, for the first one after a change pays for the change. A column that is
    Unavailable is left out from then on.
    """
    series, missing = {}, {}
    for turn in range(rounds):
        for name, column in columns.items():
            progress(f"round {turn + 1} of {rounds}: {name}")
            try:
                if name not in missing:
                    visit(series, name, column, measure, settle)
            except Unavailable as why:
                missing[name] = str(why)
    for one in series.values():
        one.missing = missing
    return series


def visit(series, name, column, measure, settle):
    """Without, with, without, with, ..., without."""
    settle()
    before = measure()
    for _ in range(getattr(column, "repeats", 1)):
        with column():
            settle()
            value = measure()
        settle()
        after = measure()
        for key, figure in value.items():
            series.setdefault(key, Series()).put(name, before[key], figure, after[key])
        before = after
