"""Draws pictures of sweeps with matplotlib. A drawing function fills one panel from its rows; plots.py describes the picture."""

import math
import statistics
import textwrap

from netsim_runs import pictures
from netsim_sweeps.intervals import Interval
from netsim_sweeps.plots import to_number

SIDE = 3.4  # inches of a panel
MOST_BESIDE = 4  # panels in a row
MOST_STEPS = 1000  # of a CDF
GAP = 0.2  # between groups of bars or boxes, of the distance between groups
CAPS = {"capsize": 2, "elinewidth": 0.9, "ecolor": "0.25"}
WHISKERS = (1, 99)  # percentiles


class Picture:
    """A figure with its panels, and what is said beside and below them."""

    def __init__(self, plot, rows, columns, read_column):
        self.plot, self.rows, self.columns, self.read_column = plot, rows, columns, read_column
        self.panels = plot.cells("panels")
        self.panel = None  # the value of the panel that is drawn now
        beside = min(len(self.panels), MOST_BESIDE)
        lines = math.ceil(len(self.panels) / beside)
        wide = max(1.15 * SIDE, SIDE * beside * self.stretch())
        self.figure, grid = pictures.pyplot().subplots(lines, beside, figsize=(wide + 1.3, SIDE * lines + 0.2), squeeze=False,
                                                       sharey=True, layout="constrained")
        self.all_axes = [axes for line in grid for axes in line]
        for axes in self.all_axes[len(self.panels):]:
            axes.set_visible(False)
        self.width = wide / beside  # inches of a panel, about
        self.counts = []  # how many values each mean or distribution has
        self.legend = {}  # by label what it stands for
        self.extents = []  # (axes, "x" or "y", values), which set_bounds() reads when all panels are drawn

    def stretch(self):
        """Returns how much wider than SIDE a panel is, so that bars and boxes do not become too thin."""
        if self.plot.kind not in ("bars", "box", "stacked"):
            return 1
        bars = len(self.plot.cells("x")) * (len(self.plot.cells("by")) + 2 * GAP)
        return min(max(1, bars * 0.16 / SIDE), 2.5)

    def left_most(self, axes):
        return axes.get_subplotspec().is_first_col()

    def remember(self, label, artist):
        if label is not None:
            self.legend.setdefault(label, artist)

    def values(self, rows, column=None):
        found = self.plot.values(rows, column or self.columns[0], self.read_column)
        if found:
            self.counts.append(len(found))
        return found

    def finish(self, note):
        plot = self.plot
        if self.legend:
            last = self.all_axes[min(len(self.panels), MOST_BESIDE) - 1]
            title = plot.axis_label(plot.axes["by"].column()) if "by" in plot.axes else None
            last.legend(list(self.legend.values()), list(self.legend), title=title, fontsize=8, title_fontsize=8, frameon=False,
                        loc="upper left", bbox_to_anchor=(1.0, 1.0))
        characters = int(self.figure.get_figwidth() * 13)
        if "title" in plot.entries:
            self.figure.suptitle(textwrap.fill(plot.label("title", ""), characters), fontsize=10)
        if note:
            self.figure.supxlabel(textwrap.fill(note, int(characters * 1.3)), fontsize=7, color="0.35", x=0.01, ha="left")
        return self.figure


def drawn(plot, rows, columns, read_column):
    """Returns the figure of a plot for the rows that it selected."""
    picture = Picture(plot, rows, columns, read_column)
    groups = plot.grouped(rows, "panels")
    for panel, axes in zip(picture.panels, picture.all_axes):
        if panel is not None:
            axis = plot.axes["panels"]
            axes.set_title(f"{axis.name} {panel} {axis.unit() or ''}".rstrip() if axis.column() != axis.name else f"{axis.name} {panel}",
                           fontsize=9)
        picture.panel = panel
        DRAW[plot.kind](picture, axes, groups.get((panel,), []))
    set_bounds(picture)
    return picture.finish(note_of(picture))


def note_of(picture):
    kind, counts = picture.plot.kind, sorted(picture.counts)
    if kind in ("lines", "bars", "stacked", "scatter", "pareto"):
        front = "full points: no other is better in both" if kind == "pareto" else ""
        return "; ".join(each for each in (picture.plot.interval.note(counts), front) if each)
    if kind == "heat":
        return Interval("none").note(counts)
    if kind in ("cdf", "box") and counts:
        number = f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"
        box = "boxes: quartiles, median; whiskers: 1 % and 99 %; dots: means; "
        return (box if kind == "box" else "") + f"{number} values each"
    return ""


# ---- what the kinds share ----

def series_style(i):
    return {**pictures.style(i), "linestyle": "-" if i < len(pictures.COLOURS) else "--"}


def set_scales(plot, axes):
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.set_axisbelow(True)
    from matplotlib import ticker
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if name in plot.logarithmic:
            (axes.set_xscale if name == "x" else axes.set_yscale)("log", nonpositive="clip")
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(plain_minor())


def plain_minor():
    """Returns a formatter for the ticks between powers of ten: plain numbers, where there is room for them."""
    from matplotlib import ticker

    class PlainMinor(ticker.LogFormatter):
        def _num_to_string(self, value, low, high):
            return f"{value:.3g}"
    return PlainMinor(minor_thresholds=(1.5, 0.5))


def set_bounds(picture):
    """Begins a linear axis at 0 where no value is below. On a logarithmic axis, intervals that reach 0 are cut."""
    for axes, key, values in picture.extents:
        limits, get = (axes.set_ylim, axes.get_ylim) if key == "y" else (axes.set_xlim, axes.get_xlim)
        if key == "y":  # which all panels share
            values = [value for _, other, more in picture.extents if other == key for value in more]
        lowest = min(values, default=0)
        if key in picture.plot.logarithmic and lowest > 0:
            limits(max(get()[0], lowest / 2), get()[1])
        elif key not in picture.plot.logarithmic and lowest >= 0:
            limits(0)


def set_categories(picture, axes, places, cells):
    """Labels places of the x axis with the values of the sweep's axis, aslant where they would overlap."""
    from matplotlib import ticker
    axes.set_xticks(places, cells)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    if max((len(cell) for cell in cells), default=0) * len(cells) * 0.09 > picture.width - 0.7:
        axes.tick_params(axis="x", labelrotation=40)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def set_labels(picture, axes, x, y):
    axes.set_xlabel(picture.plot.label("x_label", x))
    if picture.left_most(axes):
        axes.set_ylabel(picture.plot.label("y_label", y))


def label_columns(picture, axes):
    """Labels the axes of pictures over an axis of the sweep."""
    plot = picture.plot
    y = plot.common_unit(picture.columns) if plot.parts else plot.default_label("y", picture.columns[0])
    set_labels(picture, axes, plot.axis_label(plot.axes["x"].column()), y)


def error_lengths(mean, ends):
    """Returns what matplotlib's error bars want."""
    return None if ends is None else [[mean - ends[0]], [ends[1] - mean]]


def offsets(count):
    """Returns the places of `count` bars or boxes around the middle of their group, and their width."""
    width = (1 - GAP) / count
    return [(i - (count - 1) / 2) * width for i in range(count)], width


# ---- the kinds ----

def draw_lines(picture, axes, rows):
    plot = picture.plot
    cells = plot.cells("x")
    numeric = [to_number(cell) for cell in cells]
    places = numeric if None not in numeric else list(range(len(cells)))
    groups = plot.grouped(rows, "x", "by")
    middles = []
    for i, series in enumerate(plot.cells("by")):
        points = [(x, picture.values(groups.get((cell, series), []))) for x, cell in sorted(zip(places, cells))]
        points = [(x, found) for x, found in points if found]
        style = series_style(i)
        means = [statistics.fmean(found) for _, found in points]
        middles += means
        line, = axes.plot([x for x, _ in points], means, **style)
        picture.remember(series, line)
        ends = [(x, plot.interval.ends(found) or (middle, middle)) for (x, found), middle in zip(points, means)]
        if any(low < high for _, (low, high) in ends):
            axes.fill_between([x for x, _ in ends], [low for _, (low, _) in ends], [high for _, (_, high) in ends],
                              color=style["color"], alpha=0.2, linewidth=0)
    middles += draw_measured(picture, axes)
    set_scales(plot, axes)
    picture.extents.append((axes, "y", middles))
    if "x" in plot.logarithmic or None in numeric:
        set_categories(picture, axes, places, cells)
    label_columns(picture, axes)


def draw_measured(picture, axes):
    """Draws the measured curves of the panel, as far as the sweep's own curves go; returns their values."""
    plot = picture.plot
    places = [to_number(cell) for cell in plot.cells("x")]
    labels = list(dict.fromkeys(curve.label for curve in plot.measured))
    values = []
    for curve in plot.measured:
        if curve.panel in (None, picture.panel):
            points = [(x, y) for x, y in curve.points if min(places) <= x <= max(places)]
            marker = pictures.MARKERS[labels.index(curve.label) % len(pictures.MARKERS)]
            line, = axes.plot([x for x, _ in points], [y for _, y in points], linestyle=":", color="black", linewidth=1.2, zorder=4,
                              marker=marker, markersize=4, markerfacecolor="white")
            picture.remember(curve.label, line)
            values += [y for _, y in points]
    return values


def draw_bars(picture, axes, rows):
    plot = picture.plot
    cells, series = plot.cells("x"), plot.cells("by")
    groups = plot.grouped(rows, "x", "by")
    shifts, width = offsets(len(series))
    means = []
    for i, name in enumerate(series):
        for x, cell in enumerate(cells):
            found = picture.values(groups.get((cell, name), []))
            if found:
                means.append(statistics.fmean(found))
                bar = axes.bar(x + shifts[i], means[-1], width * 0.92, color=pictures.COLOURS[i % len(pictures.COLOURS)],
                               hatch="" if i < len(pictures.COLOURS) else "//", error_kw=dict(CAPS),
                               yerr=error_lengths(means[-1], plot.interval.ends(found)))
                picture.remember(name, bar[0])
    set_scales(plot, axes)
    axes.grid(visible=False, axis="x")
    picture.extents.append((axes, "y", means))
    set_categories(picture, axes, range(len(cells)), cells)
    label_columns(picture, axes)


def draw_stacked(picture, axes, rows):
    plot = picture.plot
    cells = plot.cells("x")
    groups = plot.grouped(rows, "x")
    for x, cell in enumerate(cells):
        complete = [row for row in groups.get((cell,), []) if all(row.get(column, "") != "" for column in picture.columns)]
        if not complete:
            continue
        bottom = 0.0
        for i, (label, column) in enumerate(plot.parts.items()):
            height = statistics.fmean(plot.value(row, column) for row in complete)
            bar = axes.bar(x, height, 1 - 2 * GAP, bottom=bottom, color=pictures.COLOURS[i % len(pictures.COLOURS)],
                           hatch="" if i < len(pictures.COLOURS) else "//", edgecolor="white", linewidth=0.4)
            picture.remember(label, bar[0])
            bottom += height
        totals = [sum(plot.value(row, column) for column in picture.columns) for row in complete]
        picture.counts.append(len(totals))
        lengths = error_lengths(bottom, plot.interval.ends(totals))
        if lengths:
            axes.errorbar(x, bottom, yerr=lengths, fmt="none", **CAPS)
    set_scales(plot, axes)
    axes.grid(visible=False, axis="x")
    set_categories(picture, axes, range(len(cells)), cells)
    label_columns(picture, axes)


def draw_heat(picture, axes, rows):
    from matplotlib import colors
    plot = picture.plot
    columns, lines = plot.cells("x"), plot.cells("y")
    groups = plot.grouped(rows, "x", "y")
    grid = [[mean(picture.values(groups.get((x, y), []))) for x in columns] for y in lines]
    everywhere = plot.grouped(picture.rows, "x", "y", "panels")
    known = [found for found in (mean(plot.values(group, picture.columns[0], None)) for group in everywhere.values())
             if found == found]
    kind = colors.LogNorm if "value" in plot.logarithmic else colors.Normalize
    scale = kind(min(known, default=0), max(known, default=1))
    image = axes.imshow(grid, origin="lower", aspect="auto", cmap="viridis", norm=scale)
    for i, line in enumerate(grid):
        for j, value in enumerate(line):
            dark = value == value and scale(value) < 0.6
            axes.text(j, i, f"{value:.3g}" if value == value else "none", ha="center", va="center",
                      color="white" if dark else "black", fontsize=8)
    set_categories(picture, axes, range(len(columns)), columns)
    axes.set_yticks(range(len(lines)), lines)
    set_labels(picture, axes, *(plot.axis_label(plot.axes[key].column()) for key in ("x", "y")))
    if axes is picture.all_axes[len(picture.panels) - 1]:
        label = plot.label("value_label", plot.default_label("value", picture.columns[0]))
        panels = len(picture.panels)  # the bar is as wide beside several panels as beside one
        picture.figure.colorbar(image, ax=picture.all_axes[:panels], label=label, fraction=0.15 / panels, pad=0.05 / panels)


def mean(values):
    return statistics.fmean(values) if values else float("nan")


def draw_cdf(picture, axes, rows):
    plot = picture.plot
    groups = plot.grouped(rows, "by")
    for i, series in enumerate(plot.cells("by")):
        found = sorted(picture.values(groups.get((series,), [])))
        if not found:
            continue
        style = series_style(i)
        line, = axes.step(*steps(found), where="post", color=style["color"], linestyle=style["linestyle"])
        picture.remember(series, line)
    set_scales(plot, axes)
    axes.set_ylim(0, 1.02)
    set_labels(picture, axes, plot.default_label("value", picture.columns[0]), "cumulative fraction")


def steps(values):
    """Returns the corners of the distribution of sorted values, of many only MOST_STEPS and the largest."""
    count = len(values)
    places = range(count) if count <= MOST_STEPS else sorted({round(i * (count - 1) / MOST_STEPS) for i in range(MOST_STEPS + 1)})
    return [values[0], *(values[i] for i in places)], [0.0, *((i + 1) / count for i in places)]


def draw_box(picture, axes, rows):
    plot = picture.plot
    cells, series = plot.cells("x"), plot.cells("by")
    groups = plot.grouped(rows, "x", "by")
    shifts, width = offsets(len(series))
    lowest = []
    for i, name in enumerate(series):
        colour = pictures.COLOURS[i % len(pictures.COLOURS)]
        found = [(x + shifts[i], picture.values(groups.get((cell, name), []))) for x, cell in enumerate(cells)]
        found = [(x, values) for x, values in found if values]
        if not found:
            continue
        boxes = axes.boxplot([values for _, values in found], positions=[x for x, _ in found], widths=width * 0.75, whis=WHISKERS,
                             showfliers=False, showmeans=True, patch_artist=True, manage_ticks=False,
                             boxprops={"facecolor": colour, "alpha": 0.5, "edgecolor": colour}, medianprops={"color": "black"},
                             whiskerprops={"color": colour}, capprops={"color": colour},
                             meanprops={"marker": "o", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 3})
        lowest += [min(values) for _, values in found]
        picture.remember(name, boxes["boxes"][0])
    set_scales(plot, axes)
    axes.grid(visible=False, axis="x")
    picture.extents.append((axes, "y", lowest))
    set_categories(picture, axes, range(len(cells)), cells)
    axes.set_xlim(-0.5, len(cells) - 0.5)
    label_columns(picture, axes)


def draw_points(picture, axes, rows):
    """Draws a point for each combination of the axes but the seed; of a Pareto picture the front through the best ones, too."""
    plot = picture.plot
    points = mean_points(picture, rows)
    front = pareto_front([(x, y) for _, x, y in points], plot.better) if plot.kind == "pareto" else range(len(points))
    series = plot.cells("by")
    for i, name in enumerate(series):
        style = pictures.style(i)
        for best in (True, False):
            chosen = [points[k] for k in range(len(points))
                      if (k in front) == best and (name is None or points[k][0][plot.axes["by"].column()] == name)]
            if not chosen:
                continue
            dots, = axes.plot([mean(x) for _, x, _ in chosen], [mean(y) for _, _, y in chosen], linestyle="none", zorder=3,
                              color=style["color"], marker=style["marker"], markersize=5, alpha=1 if best else 0.3)
            picture.remember(name, dots)
            draw_crosses(axes, plot.interval, chosen, {**CAPS, "ecolor": style["color"], "alpha": 1 if best else 0.3})
    set_scales(plot, axes)
    if plot.kind == "pareto":
        draw_front(axes, sorted((mean(points[k][1]), mean(points[k][2])) for k in front), plot.better)
    axes.margins(0.08)
    name_points(axes, plot, points, front)
    for key, place in (("x", 1), ("y", 2)):
        if key in plot.logarithmic:
            picture.extents.append((axes, key, [mean(point[place]) for point in points]))
    set_labels(picture, axes, *(plot.default_label(key, column) for key, column in zip(("x", "y"), picture.columns)))


def draw_crosses(axes, interval, points, style):
    """Draws the intervals of points in both directions."""
    for _, x, y in points:
        across, up = (error_lengths(mean(values), interval.ends(values)) for values in (x, y))
        if across or up:
            axes.errorbar(mean(x), mean(y), xerr=across, yerr=up, fmt="none", zorder=2, **style)


def mean_points(picture, rows):
    """Returns (a row, values of x, values of y) for each combination of the axes but the seed."""
    plot = picture.plot
    columns = [axis.column() for axis in plot.sweep.axes if not axis.is_seed()]
    groups = {}
    for row in rows:
        x, y = plot.value(row, picture.columns[0], plot.x_scale), plot.value(row, picture.columns[1])
        if x is not None and y is not None:
            groups.setdefault(tuple(row[column] for column in columns), []).append((row, x, y))
    picture.counts += [len(group) for group in groups.values()]
    return [(group[0][0], [x for _, x, _ in group], [y for _, _, y in group]) for group in groups.values()]


def pareto_front(points, less):
    """Returns the indices of the points that no other beats or equals in both means. `less`: whether less is better, of x and y."""
    keys = [(mean(x) if less["x"] else -mean(x), mean(y) if less["y"] else -mean(y)) for x, y in points]
    front, best = set(), math.inf
    for i in sorted(range(len(keys)), key=keys.__getitem__):
        if keys[i][1] < best:
            best = keys[i][1]
            front.add(i)
    return front


def draw_front(axes, corners, less):
    """Draws the border of what some point reaches."""
    axes.step([x for x, _ in corners], [y for _, y in corners], where="post" if less["x"] else "pre", color="0.4", linewidth=1,
              linestyle=":", zorder=1)


def name_points(axes, plot, points, front):
    """Writes beside each point, or each point of the front, the value of the axis that `names` has."""
    if "names" not in plot.axes:
        return
    column = plot.axes["names"].column()
    axes.get_xlim()  # which places all points, before places are asked for
    left, right = axes.transAxes.transform([(0, 0), (1, 0)])[:, 0]
    for i in sorted(front):
        row, x, y = points[i]
        near_edge = axes.transData.transform((mean(x), mean(y)))[0] > left + 0.75 * (right - left)
        axes.annotate(row[column], (mean(x), mean(y)), xytext=(-4 if near_edge else 4, 4), textcoords="offset points", fontsize=7,
                      ha="right" if near_edge else "left")


DRAW = {"lines": draw_lines, "bars": draw_bars, "stacked": draw_stacked, "heat": draw_heat, "cdf": draw_cdf, "box": draw_box,
        "scatter": draw_points, "pareto": draw_points}
