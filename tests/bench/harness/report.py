# SPDX-License-Identifier: GPL-2.0-only
"""What a section found, and how it is shown: as text, as Markdown, as JSON."""

import re
import textwrap
from dataclasses import dataclass, field


@dataclass
class Table:
    header: list
    rows: list = field(default_factory=list)

    def text(self):
        """Columns padded; a row that is shorter than the header ends in free text."""
        full = [self.header] + [row for row in self.rows if len(row) == len(self.header)]
        widths = [max(len(str(row[i])) for row in full) for i in range(len(self.header))]
        widths[0] = max([widths[0]] + [len(str(row[0])) for row in self.rows])

        def line(row):
            cells = [str(row[0]).ljust(widths[0])]
            if len(row) == len(self.header):
                cells += [str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:])]
            else:
                cells += map(str, row[1:])
            return "  ".join(cells).rstrip()
        return "\n".join(line(row) for row in [self.header, *self.rows])

    def markdown(self):
        def line(row):
            row = [str(cell) for cell in row] + [""] * (len(self.header) - len(row))
            return "| " + " | ".join(row) + " |"
        rule = "|---|" + "---:|" * (len(self.header) - 1)
        return "\n".join([line(self.header), rule, *map(line, self.rows)])


@dataclass
class Result:
    name: str  # of the section's module
    title: str
    notes: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    figures: dict = field(default_factory=dict)
    ratios: dict = field(default_factory=dict)  # what baseline.json is about
    conditions: dict = field(default_factory=dict)  # of figures that are exact where these hold

    def __post_init__(self):
        self.name = self.name.rpartition(".")[2]

    def text(self):
        parts = [f"{self.title}\n"]
        parts += [table.text() + "\n" for table in self.tables]
        parts += [f"  {note}" for note in self.notes]
        return "\n".join(parts)

    def markdown(self):
        notes = textwrap.fill(" ".join(self.notes), 120, break_on_hyphens=False)
        return "\n\n".join([table.markdown() for table in self.tables] + [notes])

    def put_into(self, page):
        """Replaces what is between <!-- bench NAME --> and <!-- end --> of a page, if it has that."""
        def replaced(found):
            return f"{found.group(1)}\n{self.markdown()}\n{found.group(2)}"
        return re.sub(rf"(<!-- bench {self.name} -->)\n.*?(<!-- end -->)", replaced, page,
                      flags=re.S)

    def json(self):
        return {"title": self.title, "notes": self.notes, "figures": self.figures,
                "ratios": self.ratios,
                "tables": [{"header": t.header, "rows": t.rows} for t in self.tables]}
