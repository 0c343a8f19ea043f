# SPDX-License-Identifier: GPL-2.0-only
"""What was measured before, in baseline.json, and whether something has got worse.

Instructions are exact, so a program that grew by more than the tolerance is a regression; where the
kernel, the compiler or the number of CPUs is another, nothing is compared. Ratios are measured: one
is a regression when all of its 90 % range is above the old median and its tolerance.
"""

import json
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "baseline.json"
TOLERANCE = {"instructions": 0.10, "ratios": 0.30}
SMALL = 32  # instructions: of a small program a few are no growth


def read():
    if not FILE.exists():
        return {"tolerance": TOLERANCE, "instructions": {}, "ratios": {}}
    return json.loads(FILE.read_text("utf-8"))


def update(results):
    """Puts what these sections found in place of what was there."""
    old = read()
    for result in results:
        if result.conditions:
            old["instructions"] = {"conditions": result.conditions, "counts": result.figures}
        for name, ratio in result.ratios.items():
            old["ratios"][f"{result.name} / {name}"] = round(ratio["median"], 3)
    FILE.write_text(json.dumps(old, indent=2, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


class Comparison:
    """regressed: what got worse, or must be looked at; skipped: why something was not compared."""

    def __init__(self, results):
        self.old = read()
        self.compared, self.regressed, self.skipped = 0, [], []
        for result in results:
            if result.conditions:
                self.instructions(result)
            for name, ratio in result.ratios.items():
                self.ratio(f"{result.name} / {name}", ratio)

    def instructions(self, result):
        old = self.old["instructions"]
        if not old:
            self.skipped.append("instructions: nothing to compare with; --update writes it")
            return
        for what, value in result.conditions.items():
            if value != old["conditions"][what]:
                self.skipped.append(f"instructions: {what} is {value}, that of the baseline "
                                    f"{old['conditions'][what]}: not comparable")
                return
        limit = 1 + self.old["tolerance"]["instructions"]
        for name in sorted(result.figures.keys() | old["counts"].keys()):
            self.compared += 1
            before, now = old["counts"].get(name), result.figures.get(name)
            if before is None or now is None:
                self.regressed.append(f"{name}: {'not in the baseline' if now else 'not loaded'}; "
                                      "--update if that is right")
            elif now > before * limit and now > before + SMALL:
                self.regressed.append(f"{name}: {now:,} verified instructions, {before:,} before "
                                      f"({now / before - 1:+.0%}); --update if that is right")

    def ratio(self, name, ratio):
        before = self.old["ratios"].get(name)
        if before is None:
            self.skipped.append(f"{name}: not in the baseline; --update writes it")
            return
        self.compared += 1
        limit = before * (1 + self.old["tolerance"]["ratios"])
        if before > 0 and ratio["low"] > limit:
            self.regressed.append(f"{name}: {ratio['median']:.2f} ({ratio['low']:.2f} to "
                                  f"{ratio['high']:.2f}), {before:.2f} before")

    def text(self):
        lines = [f"{self.compared} figures compared with {FILE.name}, {len(self.regressed)} "
                 "regressed"]
        lines += [f"  regressed: {text}" for text in self.regressed]
        lines += [f"  skipped: {text}" for text in self.skipped]
        return "\n".join(lines)

    def status(self):
        """For the shell and CTest: 1 regressed, 77 nothing could be compared."""
        if self.regressed:
            return 1
        return 0 if self.compared else 77
