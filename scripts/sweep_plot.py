"""Pictures of a sweep's table, as the section `plots` of its file describes them; docs/how-to/sweeps.md explains the keys."""

import pathlib
import statistics
import textwrap

from netsim_runs import pictures
from sweep_file import fail, listed_values, mapping, nearest, number, text

KEYS = ["kind", "file", "title", "x", "y", "by", "panels", "value", "where", "scale", "per", "log", "x_label", "y_label",
        "value_label"]
SIDE = 3.4  # inches of a panel


def read_plots(sweep):
    """SweepError where a picture's description is wrong; columns of summaries are known only when there are some."""
    return [Plot(sweep, node) for node in sweep.plots]


class Plot:
    def __init__(self, sweep, node):
        self.sweep, self.node = sweep, node
        self.entries = mapping(node, "a plot", KEYS, ["kind", "file", "x", "y"])
        self.kind = text(self.entries["kind"], "'kind'")
        if self.kind not in ("lines", "heat"):
            fail(self.entries["kind"], f"'{self.kind}' is no kind of plot (allowed: lines, heat)")
        self.file = text(self.entries["file"], "'file'")
        if pathlib.PurePath(self.file).suffix not in pictures.ENDINGS:
            fail(self.entries["file"], "a picture's name ends in .svg, .png or .pdf")
        if self.kind == "heat" and "value" not in self.entries:
            fail(node, "a heat map needs 'value': the column that its colours show")
        self.axes = {name: self.axis(name) for name in ("x", "y", "by", "panels") if name in self.entries and
                     (name != "y" or self.kind == "heat")}
        self.where = self.read_where()
        self.scale = float(number(self.entries["scale"], "'scale'")[0]) if "scale" in self.entries else 1.0
        self.per = self.axis("per") if "per" in self.entries else None
        if self.per and None in [to_number(self.per.cell(value)) for value in self.per.values]:
            fail(self.entries["per"], f"'{self.per.name}' is no axis of numbers")
        self.logarithmic = self.read_log()
        self.check_rest()

    def axis(self, key):
        return self.axis_named(self.entries[key], text(self.entries[key], f"'{key}'"))

    def axis_named(self, node, name):
        for axis in self.sweep.axes:
            if axis.name == name:
                return axis
        names = [axis.name for axis in self.sweep.axes]
        fail(node, f"'{name}' is no axis{nearest(name, names)} (there are {', '.join(names)})")

    def read_where(self):
        where = []
        for name, node in mapping(self.entries["where"], "where").items() if "where" in self.entries else []:
            axis = self.axis_named(node, name)
            label = text(node, name)
            labels = [value.label for value in axis.values]
            if label not in labels:
                fail(node, f"'{name}' has no value '{label}'{nearest(label, labels)} (there are {', '.join(labels)})")
            where.append((axis.column(), next(axis.cell(v) for v in axis.values if v.label == label), name))
        return where

    def read_log(self):
        allowed = ["x", "y"] if self.kind == "lines" else ["value"]
        if "log" not in self.entries:
            return set()
        names = {value.label for value in listed_values(self.entries["log"])}
        if names - set(allowed):
            fail(self.entries["log"], f"log: a list of {', '.join(allowed)}")
        return names

    def check_rest(self):
        """What no key mentions has to be the seed: its values are what bands and means are made of."""
        used = {axis.name for axis in self.axes.values()} | {name for _, _, name in self.where}
        for group in self.sweep.groups:
            if any(axis.name in used for axis in group):  # zipped axes go with the one that is named
                continue
            for axis in group:
                if axis.vary != "seed":
                    fail(self.node, f"axis '{axis.name}' is neither shown nor fixed by 'where'; only seeds are averaged")

    def label(self, key, default):
        return text(self.entries[key], f"'{key}'") if key in self.entries else default

    def selected(self, rows):
        column = text(self.entries["value" if self.kind == "heat" else "y"], "the column")
        known = list(dict.fromkeys(name for row in rows for name in row))
        if column not in known:
            fail(self.entries["value" if self.kind == "heat" else "y"],
                 f"the table has no column '{column}'{nearest(column, known)}")
        chosen = [row for row in rows if all(row[name] == cell for name, cell, _ in self.where)]
        return column, chosen

    def draw(self, rows, path):
        """Draws the picture; how many of its points have no value."""
        pyplot = pictures.pyplot()
        column, chosen = self.selected(rows)
        values = {}
        for row in chosen:
            if row.get(column, "") != "":
                place = tuple(row[axis.column()] for axis in self.axes.values())
                divisor = float(row[self.per.column()]) if self.per else 1
                values.setdefault(place, []).append(float(row[column]) * self.scale / divisor)
        panels = self.cells("panels")
        figure, all_axes = pyplot.subplots(1, len(panels), figsize=(max(1.15 * SIDE, SIDE * len(panels)) + 1.3, SIDE),
                                           squeeze=False, sharey=True, layout="constrained")
        for panel, axes in zip(panels, all_axes[0]):
            if panel is not None:
                axes.set_title(f"{self.axes['panels'].name} {panel}", fontsize=9)
            (self.draw_lines if self.kind == "lines" else self.draw_heat)(figure, axes, panel, values, axes is all_axes[0][-1])
        if "title" in self.entries:
            width = int(figure.get_figwidth() * 13)  # characters of this size
            figure.suptitle(textwrap.fill(self.label("title", ""), width), fontsize=10)
        pictures.save(figure, path)
        return sum(row.get(column, "") == "" for row in chosen)

    def cells(self, key):
        """The values of an axis as the table has them; [None] where the picture has no such axis."""
        if key not in self.axes:
            return [None]
        axis = self.axes[key]
        shown = dict.fromkeys(axis.cell(value) for value in axis.values)
        fixed = next((cell for name, cell, _ in self.where if name == axis.column()), None)
        return [cell for cell in shown if fixed in (None, cell)]

    def at(self, values, **place):
        return values.get(tuple(place[key] for key in self.axes))

    def draw_lines(self, figure, axes, panel, values, last):
        cells = self.cells("x")
        numeric = [to_number(cell) for cell in cells]
        places = numeric if None not in numeric else list(range(len(cells)))
        for i, series in enumerate(self.cells("by")):
            points = [(x, self.at(values, x=cell, by=series, panels=panel)) for x, cell in zip(places, cells)]
            points = [(x, found) for x, found in points if found]
            style = pictures.style(i)
            axes.plot([x for x, _ in points], [statistics.fmean(found) for _, found in points], label=series, **style)
            if any(len(found) > 1 for _, found in points):
                axes.fill_between([x for x, _ in points], [min(found) for _, found in points],
                                  [max(found) for _, found in points], color=style["color"], alpha=0.2, linewidth=0)
        self.lines_axes(axes, cells, places, numeric, last)

    def lines_axes(self, axes, cells, places, numeric, last):
        from matplotlib import ticker
        axes.grid(alpha=0.3, linewidth=0.5)
        if "x" in self.logarithmic:
            axes.set_xscale("log")
        if "y" in self.logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        if "x" in self.logarithmic or None in numeric:
            axes.set_xticks(places, cells)
            axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.set_xlabel(self.label("x_label", self.axes["x"].column()))
        if axes.get_subplotspec().is_first_col():
            axes.set_ylabel(self.label("y_label", text(self.entries["y"], "'y'")))
        if last and "by" in self.axes:
            axes.legend(title=self.axes["by"].name, fontsize=8, title_fontsize=8, frameon=False, loc="upper left",
                        bbox_to_anchor=(1.0, 1.0))

    def draw_heat(self, figure, axes, panel, values, last):
        from matplotlib import colors
        columns, lines = self.cells("x"), self.cells("y")
        grid = [[mean(self.at(values, x=x, y=y, by=None, panels=panel)) for x in columns] for y in lines]
        known = [statistics.fmean(found) for found in values.values()]
        kind = colors.LogNorm if "value" in self.logarithmic else colors.Normalize
        scale = kind(min(known, default=0), max(known, default=1))
        image = axes.imshow(grid, origin="lower", aspect="auto", cmap="viridis", norm=scale)
        for i, line in enumerate(grid):
            for j, value in enumerate(line):
                dark = value == value and scale(value) < 0.6
                axes.text(j, i, f"{value:.3g}" if value == value else "none", ha="center", va="center",
                          color="white" if dark else "black", fontsize=8)
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(lines)), lines)
        axes.set_xlabel(self.label("x_label", self.axes["x"].column()))
        if axes.get_subplotspec().is_first_col():
            axes.set_ylabel(self.label("y_label", self.axes["y"].column()))
        if last:
            figure.colorbar(image, ax=axes, label=self.label("value_label", text(self.entries["value"], "'value'")))


def mean(values):
    return statistics.fmean(values) if values else float("nan")


def to_number(cell):
    try:
        return float(cell)
    except ValueError:
        return None
