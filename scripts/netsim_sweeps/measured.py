"""Curves from CSV files, which pictures of kind `lines` show beside the curves of a sweep; docs/how-to/sweeps.md explains the keys."""

import csv
import statistics

from netsim_sweeps.nodes import fail, mapping, nearest, number, quantity, text

KEYS = ["file", "x", "y", "scale", "where", "panel", "label"]
# Factors of units within a dimension. A number without a unit has the unit of the axis.
UNITS = ({"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
         {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}, {"Mbps": 1e6, "Gbps": 1e9, "Tbps": 1e12})


class MeasuredCurve:
    """One curve: the rows of a CSV file that have the values of `where`, averaged where several have the same x."""

    def __init__(self, node, folder, x_axis, panel_axis):
        entries = mapping(node, "a curve of 'measured'", KEYS, ["file", "x", "y"])
        self.entries, self.x_axis = entries, x_axis
        self.label = text(entries["label"], "'label'") if "label" in entries else "measured"
        self.scale = float(number(entries["scale"], "'scale'")[0]) if "scale" in entries else 1.0
        self.panel = self.read_panel(panel_axis)  # None: all panels
        if any(quantity(value.label) is None for value in x_axis.listed) or x_axis.unit() is None:
            fail(node, f"'measured' needs an axis x of numbers with one unit, which '{x_axis.name}' is not")
        self.path = folder / text(entries["file"], "'file'")
        self.points = self.read_points()

    def read_panel(self, axis):
        if "panel" not in self.entries:
            return None
        if axis is None:
            fail(self.entries["panel"], "the picture has no 'panels'")
        return axis.cell_of(self.entries["panel"])

    def read_points(self):
        """Returns (x, y) in the order of x."""
        where = mapping(self.entries["where"], "where") if "where" in self.entries else {}
        wanted = {name: text(node, name) for name, node in where.items()}
        x, y = (text(self.entries[key], f"'{key}'") for key in ("x", "y"))
        found = {}
        for line, row in self.rows([*wanted, x, y]):
            if all(row[name] == value for name, value in wanted.items()) and row[y] != "":
                found.setdefault(self.place(row[x], line), []).append(self.value(row[y], line) * self.scale)
        if not found:
            fail(self.entries["file"], f"{self.path} has no row with " + (", ".join(f"{name} = '{value}'" for name, value in wanted.items())
                                                                          or f"a value of '{y}'"))
        return sorted((place, statistics.fmean(values)) for place, values in found.items())

    def rows(self, columns):
        """Returns (line, row) of the file, which has to have the columns."""
        try:
            with open(self.path, encoding="utf-8", newline="") as stream:
                reader = csv.DictReader(stream, restval="")
                rows = [(reader.line_num, row) for row in reader]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            fail(self.entries["file"], f"{self.path}: cannot be read: {getattr(error, 'strerror', None) or error}")
        names = reader.fieldnames or []
        for column in columns:
            if column not in names:
                fail(self.entries["file"], f"{self.path} has no column '{column}'{nearest(column, names)} (there are {', '.join(names)})")
        return rows

    def value(self, cell, line):
        try:
            return float(cell)
        except ValueError:
            fail(self.entries["y"], f"{self.path}:{line}: '{cell}' is no number")

    def place(self, cell, line):
        """Returns a cell of x in the unit of the axis."""
        parts, unit = quantity(cell), self.x_axis.unit()
        if parts is None:
            fail(self.entries["x"], f"{self.path}:{line}: '{cell}' is no number")
        value = float(parts[0])
        if parts[1] in ("", unit):
            return value
        for units in UNITS:
            if parts[1] in units and unit in units:
                return value * units[parts[1]] / units[unit]
        fail(self.entries["x"], f"{self.path}:{line}: '{cell}' has another unit than the axis '{self.x_axis.name}' ({unit or 'none'})")
