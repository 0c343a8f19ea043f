#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Whether the benchmark's own arithmetic is right: differences, ranges, comparison, tables. No root."""

import contextlib
import sys
import unittest

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
from harness import baseline, measure
from harness.report import Result, Table

CONDITIONS = {"kernel": "a", "clang": "b", "possible_cpus": "0-1"}


class Comparing(unittest.TestCase):
    def setUp(self):
        self.read = baseline.read
        baseline.read = lambda: {
            "tolerance": baseline.TOLERANCE, "ratios": {"faults / x": 2.0},
            "instructions": {"conditions": CONDITIONS, "counts": {"big": 1000, "small": 10}}}

    def tearDown(self):
        baseline.read = self.read

    def instructions(self, counts, **conditions):
        return baseline.Comparison([Result("instructions", "", figures=counts,
                                           conditions={**CONDITIONS, **conditions})])

    def ratio(self, low, median, high):
        ratio = measure.Estimate(median, low, high).json()
        return baseline.Comparison([Result("faults", "", ratios={"x": ratio})])

    def test_growth(self):
        self.assertEqual(self.instructions({"big": 1099, "small": 40}).status(), 0)
        self.assertEqual(self.instructions({"big": 1101, "small": 10}).status(), 1)

    def test_programs_come_and_go(self):
        self.assertEqual(self.instructions({"big": 1000}).status(), 1)
        self.assertEqual(self.instructions({"big": 1000, "small": 10, "new": 1}).status(), 1)

    def test_another_kernel_is_skipped(self):
        found = self.instructions({"big": 9999, "small": 10}, kernel="z")
        self.assertEqual((found.status(), len(found.skipped)), (77, 1))

    def test_ratio_is_worse_only_with_its_whole_range(self):
        self.assertEqual(self.ratio(2.5, 3.0, 3.5).status(), 0)
        self.assertEqual(self.ratio(2.7, 3.0, 3.5).status(), 1)


class Measuring(unittest.TestCase):
    def test_drift_and_outliers_do_not_matter(self):
        """A machine that gets slower by 1 a figure, and that halts now and then."""
        now, on = iter(range(10 ** 6)), []

        @contextlib.contextmanager
        def column():
            on.append(True)
            yield
            on.pop()

        def figure():
            at = next(now)
            return {"x": at + (5 if on else 0) + (1000 if at % 37 == 0 else 0)}
        series = measure.interleave({"c": column}, figure, lambda: None, 50)["x"]
        self.assertEqual(measure.median(series.added["c"]).value, 5)

    def test_unavailable_is_said(self):
        @contextlib.contextmanager
        def column():
            raise measure.Unavailable("no such tool")
            yield  # pylint: disable=unreachable

        @contextlib.contextmanager
        def other():
            yield
        series = measure.interleave({"a": column, "b": other}, lambda: {"x": 1}, lambda: None, 3)["x"]
        self.assertEqual((series.missing, list(series.added)), ({"a": "no such tool"}, ["b"]))

    def test_ratio_of_what_may_be_nothing(self):
        self.assertIsNone(measure.ratio([5.0] * 9, [-1.0, 1.0] * 5))
        self.assertEqual(measure.ratio([5.0] * 9, [2.0] * 9).value, 2.5)


class Reporting(unittest.TestCase):
    def test_page(self):
        result = Result("faults", "", tables=[Table(["a", "b"], [["1", "2"], ["x", "why"]])])
        page = "before\n<!-- bench faults -->\nold\n<!-- end -->\nafter\n"
        new = result.put_into(page)
        self.assertIn("| 1 | 2 |", new)
        self.assertNotIn("old", new)
        self.assertEqual(result.put_into(new), new)
        self.assertTrue(new.startswith("before\n") and new.endswith("after\n"))


if __name__ == "__main__":
    unittest.main()
