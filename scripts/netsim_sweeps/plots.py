"""Pictures of a sweep's table, as the section `plots` of its file describes them; docs/how-to/sweeps.md explains the keys.

This file reads the descriptions and selects values; drawing.py draws.
"""

import dataclasses
import pathlib
import re

from netsim_runs import pictures
from netsim_sweeps.axes import listed_values
from netsim_sweeps.intervals import Interval
from netsim_sweeps.measured import MeasuredCurve
from netsim_sweeps.nodes import fail, mapping, nearest, number, sequence, text

COMMON = ["kind", "file", "title", "where", "panels", "x_label", "y_label"]


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a kind of picture needs and allows, besides COMMON."""
    required: tuple
    keys: tuple = ()  # further keys
    axes: tuple = ()  # those of the keys that name an axis of the sweep
    column: str = ""  # the one of the keys that names a column of the table
    logs: tuple = ()  # what can be logarithmic
    pools: bool = False  # it shows each value, so points of samples and of `over` may be many
    points: bool = False  # it shows each point, whatever its axes


KINDS = {
    "lines": Kind(("x", "y"), ("by", "scale", "per", "interval", "measured"), ("x", "by"), "y", ("x", "y")),
    "bars": Kind(("x", "y"), ("by", "scale", "per", "interval"), ("x", "by"), "y", ("y",)),
    "stacked": Kind(("x", "parts"), ("scale", "per", "interval"), ("x",)),
    "heat": Kind(("x", "y", "value"), ("scale", "per", "value_label"), ("x", "y"), "value", ("value",)),
    "cdf": Kind(("value",), ("by", "over", "table", "scale", "per"), ("by",), "value", ("x",), pools=True),
    "box": Kind(("x", "y"), ("by", "over", "table", "scale", "per"), ("x", "by"), "y", ("y",), pools=True),
    "scatter": Kind(("x", "y"), ("by", "names", "x_scale", "scale", "per", "interval"), ("by", "names"), "y", ("x", "y"), points=True),
    "pareto": Kind(("x", "y"), ("by", "names", "x_scale", "scale", "per", "interval", "better"), ("by", "names"), "y", ("x", "y"),
                   points=True),
}
# Units of columns after a usual `scale`.
SCALED = {("s", 1e3): "ms", ("s", 1e6): "us", ("s", 1e9): "ns", ("bytes", 1e-3): "KB", ("bytes", 1e-6): "MB", ("bytes", 1e-9): "GB",
          ("s", 1.0): "s", ("bytes", 1.0): "B"}


def read_plots(sweep):
    """SweepError where a picture's description is wrong; columns of summaries are known only when there are some."""
    plots = [Plot(sweep, node) for node in sweep.plots]
    files = set()
    for plot in plots:
        if plot.file in files:
            fail(plot.entries["file"], f"two pictures are called '{plot.file}'")
        files.add(plot.file)
    return plots


def to_number(cell):
    try:
        return float(cell)
    except ValueError:
        return None


def with_unit(column, scale=1.0):
    """Returns the label of a column: what ends in a unit has it in brackets, in the unit that it has after the scale."""
    match = re.fullmatch(r"(.+)_(s|bytes)", column)
    unit = match and SCALED.get((match.group(2), scale))
    return f"{match.group(1)} ({unit})" if unit else column


class Plot:
    def __init__(self, sweep, node):
        self.sweep, self.node = sweep, node
        self.kind = self.read_kind()
        self.rules = KINDS[self.kind]
        allowed = [*COMMON, *self.rules.required, *self.rules.keys, *(["log"] if self.rules.logs else [])]
        self.entries = mapping(node, f"a plot of kind {self.kind}", allowed, ["file", *self.rules.required])
        self.file = text(self.entries["file"], "'file'")
        if pathlib.PurePath(self.file).suffix not in pictures.ENDINGS:
            fail(self.entries["file"], "a picture's name ends in .svg, .png or .pdf")
        self.axes = {key: self.axis(key) for key in (*self.rules.axes, "panels") if key in self.entries}
        self.where = self.read_where()
        self.over = [self.sweep.axis_named(node, name) for name, node in self.listed("over")]
        self.table = self.read_table()
        self.scale, self.x_scale = self.factor("scale"), self.factor("x_scale")
        self.per = self.axis("per") if "per" in self.entries else None
        if self.per and None in [to_number(self.per.cell(value)) for value in self.per.values]:
            fail(self.entries["per"], f"'{self.per.name}' is no axis of numbers")
        self.logarithmic = self.read_log()
        self.interval = self.read_interval()
        self.better = self.read_better()
        self.parts = self.read_parts()
        self.measured = self.read_measured()
        self.check_rest()

    # ---- the description ----

    def read_kind(self):
        every = dict.fromkeys(key for kind in KINDS.values() for key in (*kind.required, *kind.keys))
        entries = mapping(self.node, "a plot", [*COMMON, *every, "log"], ["kind"])
        kind = text(entries["kind"], "'kind'")
        if kind not in KINDS:
            fail(entries["kind"], f"'{kind}' is no kind of plot{nearest(kind, KINDS)} (allowed: {', '.join(KINDS)})")
        return kind

    def listed(self, key):
        return listed_values(self.entries[key]) if key in self.entries else []

    def factor(self, key):
        return float(number(self.entries[key], f"'{key}'")[0]) if key in self.entries else 1.0

    def axis(self, key):
        return self.sweep.axis_named(self.entries[key], text(self.entries[key], f"'{key}'"))

    def read_where(self):
        where = []
        for name, node in mapping(self.entries["where"], "where").items() if "where" in self.entries else []:
            axis = self.sweep.axis_named(node, name)
            where.append((axis.column(), axis.cell_of(node), name))
        return where

    def read_table(self):
        """Returns the name of the run's table whose rows are shown; "" for the sweep's own."""
        if "table" not in self.entries:
            return ""
        name = text(self.entries["table"], "'table'")
        if not re.fullmatch(r"\w+\.csv", name):
            fail(self.entries["table"], f"'{name}' is no table that a run writes, like flows.csv or collectives.csv")
        return name

    def read_log(self):
        names = {name for name, _ in self.listed("log")}
        if names - set(self.rules.logs):
            fail(self.entries["log"], f"log: a list of {', '.join(self.rules.logs)}")
        return names

    def read_interval(self):
        word = text(self.entries["interval"], "'interval'") if "interval" in self.entries else "95 %"
        known = re.fullmatch(r"(\d+\.?\d*) ?%", word)
        if word not in ("range", "none") and not (known and 0 < float(known.group(1)) < 100):
            fail(self.entries["interval"], f"'{word}' is no interval (allowed: a confidence like 95 %, range, none)")
        return Interval(word)

    def read_better(self):
        """Returns for x and y whether less is better."""
        entries = mapping(self.entries["better"], "better", ["x", "y"]) if "better" in self.entries else {}
        for node in entries.values():
            if text(node, "'better'") not in ("less", "more"):
                fail(node, f"'{node.value}' is not known (allowed: less, more)")
        return {key: key not in entries or entries[key].value == "less" for key in ("x", "y")}

    def read_parts(self):
        """Returns the columns of a stack by their labels, the lowest first."""
        if "parts" not in self.entries:
            return {}
        node = self.entries["parts"]
        labels = listed_values(node)
        return {label: text(column, "a column") for label, column in labels} if labels else fail(node, "'parts' are empty")

    def read_measured(self):
        """Returns the curves of other sources that are drawn beside those of the sweep."""
        nodes = sequence(self.entries["measured"], "measured") if "measured" in self.entries else []
        return [MeasuredCurve(node, self.sweep.folder, self.axes["x"], self.axes.get("panels")) for node in nodes]

    def check_rest(self):
        """What no key mentions has to be the seed: its values are what means and intervals are made of."""
        shown = list(self.axes.values())
        for axis in shown if not (self.rules.pools or self.rules.points) else []:
            if axis.sampled:
                fail(self.node, f"'{axis.name}' is an axis of a sample: scatter, pareto, cdf and box show samples")
        used = {axis.name for axis in [*shown, *self.over]} | {name for _, _, name in self.where}
        for group in self.sweep.groups if not self.rules.points else []:
            if any(axis.name in used for axis in group):  # zipped axes go with the one that is named
                continue
            for axis in group:
                if not axis.is_seed() and not (axis.sampled and self.rules.pools):
                    others = ", named in 'over'" if self.rules.pools else ""
                    fail(self.node, f"axis '{axis.name}' is neither shown{others} nor fixed by 'where'; only seeds are "
                                    + ("pooled" if self.rules.pools else "averaged"))

    # ---- its values ----

    def label(self, key, default):
        return text(self.entries[key], f"'{key}'") if key in self.entries else default

    def column(self, key, rows):
        """Returns the column of the table that a key names, which may be an axis, too."""
        name = text(self.entries[key], f"'{key}'")
        axis = next((axis for axis in self.sweep.axes if axis.name == name), None)
        return axis.column() if axis else self.known(self.entries[key], name, rows)

    @staticmethod
    def known(node, name, rows):
        columns = list(dict.fromkeys(column for row in rows for column in row))
        if columns and name not in columns:
            fail(node, f"the table has no column '{name}'{nearest(name, columns)}")
        return name

    def default_label(self, key, column):
        """Returns what an axis of the picture is called where the description does not say it."""
        if key == "x" and self.kind in ("scatter", "pareto"):
            return self.axis_label(column, self.x_scale)
        return self.axis_label(column, self.scale) + (f" / {self.per.name}" if self.per else "")

    def axis_label(self, column, scale=1.0):
        for axis in self.sweep.axes:
            if axis.column() == column:
                return f"{axis.name} ({axis.unit()})" if axis.unit() else axis.name
        return with_unit(column, scale)

    def common_unit(self, columns):
        """Returns the unit that all columns have after the scale, or ""."""
        units = {with_unit(column, self.scale).rpartition(" (")[2].rstrip(")") for column in columns}
        return units.pop() if len(units) == 1 else ""

    def cells(self, key):
        """Returns the values of an axis as the table has them; [None] where the picture has no such axis."""
        if key not in self.axes:
            return [None]
        axis = self.axes[key]
        shown = dict.fromkeys(axis.cell(value) for value in axis.listed)
        fixed = next((cell for name, cell, _ in self.where if name == axis.column()), None)
        return [cell for cell in shown if fixed in (None, cell)]

    def grouped(self, rows, *keys):
        """Returns rows by the values of the axes that the keys name; a key without an axis has the value None."""
        columns = [self.axes[key].column() if key in self.axes else None for key in keys]
        groups = {}
        for row in rows:
            groups.setdefault(tuple(column and row[column] for column in columns), []).append(row)
        return groups

    def value(self, row, column, scale=None):
        """Returns a cell as a number, or None where it is empty."""
        cell = row.get(column, "")
        return None if cell == "" else self.converted(cell, row, column, scale)

    def converted(self, cell, row, column, scale=None):
        found = to_number(cell)
        if found is None:
            fail(self.node, f"column '{column}' has '{cell}', which is no number")
        if scale is not None:
            return found * scale
        return found * self.scale / (float(row[self.per.column()]) if self.per else 1)

    def values(self, rows, column, read_column):
        """Returns the values of some rows: of their cells, or of all rows of the tables that their runs have."""
        if not self.table:
            return [value for value in (self.value(row, column) for row in rows) if value is not None]
        return [value for row in rows if row["outcome"] != "failed"
                for value in self.table_values(row, column, read_column)]

    def table_values(self, row, column, read_column):
        cells = read_column(row["run"], self.table, column)
        if cells is None:
            fail(self.entries[self.rules.column], f"{self.table} has no column '{column}'")
        return [self.converted(cell, row, column) for cell in cells if cell != ""]

    def selected(self, rows):
        """Returns the rows that `where` leaves."""
        return [row for row in rows if all(row[name] == cell for name, cell, _ in self.where)]

    def main_columns(self, rows):
        """Returns the columns of the table whose values the picture shows."""
        if self.parts:
            return [self.known(self.entries["parts"], column, rows) for column in self.parts.values()]
        if self.table:
            return [text(self.entries[self.rules.column], f"'{self.rules.column}'")]
        keys = ["x", "y"] if self.rules.points else [self.rules.column]
        return [self.column(key, rows) for key in keys]

    def draw(self, rows, path, read_column):
        """Draws the picture; returns how many of its points have no value. `read_column`: see Runner.column."""
        from netsim_sweeps import drawing
        columns = self.main_columns(rows)
        chosen = self.selected(rows)
        pictures.save(drawing.drawn(self, chosen, columns, read_column), path)
        if self.table:
            return sum(row["outcome"] == "failed" for row in chosen)
        return sum(any(row.get(column, "") == "" for column in columns) for row in chosen)
