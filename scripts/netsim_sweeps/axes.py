"""Axes of a sweep: what varies, and the values that it takes.

A group holds the axes that go together, value by value. It is one axis, a zip, or a sample of several axes.
"""

import dataclasses
import re
from decimal import Decimal

import yaml

from netsim_sweeps import sampling
from netsim_sweeps.nodes import fail, mapping, nearest, number, quantity, scalar, sequence, text

RESERVED = ("run", "outcome", "message")  # columns of the table that are no axis
MOST_VALUES = 10_000  # of an axis
LISTED = ("values", "cases", "log", "range")
DRAWN = ("values", "cases", "uniform", "log_uniform")


@dataclasses.dataclass
class Value:
    label: str  # in the table and in pictures
    settings: list  # (path, node): what a point with this value sets


@dataclasses.dataclass
class Axis:
    name: str
    paths: list  # what its values set: seed, config, workload, workload.PATH or paths of the configuration
    values: list
    node: yaml.Node
    listed: list  # the different values in the order in which the file has them, or in which a range has them
    sampled: bool = False  # whether its values belong to a sample

    def is_seed(self):
        """Returns whether its values only repeat a point, so that means are taken over them."""
        return self.paths == ["seed"]

    def unit(self):
        """Returns the unit that all values are numbers of: "" for bare numbers, None where there is no such unit."""
        parts = [quantity(value.label) for value in self.values]
        units = {part[1] if part else None for part in parts}
        return units.pop() if len(units) == 1 else None

    def column(self):
        unit = self.unit()
        return f"{self.name}_{unit.replace('/', 'p')}" if unit and re.fullmatch(r"[A-Za-z/]+", unit) else self.name

    def cell(self, value):
        return quantity(value.label)[0] if self.column() != self.name else value.label

    def label_of(self, node):
        """Returns the label that a node names; fails where no value has it."""
        label = text(node, self.name)
        labels = list(dict.fromkeys(value.label for value in self.values))
        if label not in labels:
            fail(node, f"'{self.name}' has no value '{label}'{nearest(label, labels)} (there are {', '.join(labels)})")
        return label

    def cell_of(self, node):
        """Returns the cell of the value that a node names; fails where no value has its label."""
        label = self.label_of(node)
        return next(self.cell(value) for value in self.values if value.label == label)


def ends(entries, what):
    first, unit = number(entries["from"], f"'from' of {what}")
    last, other = number(entries["to"], f"'to' of {what}")
    if unit != other:
        fail(entries["to"], f"'to' of {what} is in '{other}', 'from' in '{unit}'; both need the same unit")
    return first, last, unit


def are_whole(entries):
    return all("." not in entries[key].value and "e" not in entries[key].value.lower() for key in ("from", "to"))


def with_unit(value, unit):
    shown = format(value.normalize(), "f")
    return scalar(f"{shown} {unit}" if unit else shown)


def log_values(node):
    """Returns a geometric sequence {from, to, points}, rounded to whole numbers where both ends are, else to 3 digits."""
    entries = mapping(node, "log", ["from", "to", "points"], ["from", "to", "points"])
    first, last, unit = ends(entries, "log")
    points = int(number(entries["points"], "'points' of log", whole=True)[0])
    if first <= 0 or last <= 0:
        fail(node, "a log range needs ends above 0")
    if not 2 <= points <= MOST_VALUES:
        fail(entries["points"], f"{points} points; allowed: 2 to {MOST_VALUES}")
    whole = are_whole(entries)
    values = []
    for i in range(points):
        exact = float(first) * (float(last) / float(first)) ** (i / (points - 1))
        rounded = Decimal(f"{exact:.3g}")
        if whole and not unit:
            rounded = Decimal(round(exact))
        values.append((first, last)[i > 0] if i in (0, points - 1) else rounded)
    return [with_unit(value, unit) for value in values]


def range_values(node):
    """Returns an arithmetic sequence {from, to, step} with both ends; step is 1 unless given."""
    entries = mapping(node, "range", ["from", "to", "step"], ["from", "to"])
    first, last, unit = ends(entries, "range")
    step = number(entries["step"], "'step' of range")[0] if "step" in entries else Decimal(1)
    if step <= 0 or last < first or (last - first) / step > MOST_VALUES:
        fail(node, f"a range goes upwards, in steps above 0, at most {MOST_VALUES} of them")
    return [with_unit(first + i * step, unit) for i in range(int((last - first) / step) + 1)]


def drawn_values(key, node, places):
    """Returns a value for each place in [0, 1): evenly over {from, to}, or over its logarithm."""
    entries = mapping(node, key, ["from", "to"], ["from", "to"])
    first, last, unit = ends(entries, key)
    logarithmic = key == "log_uniform"
    if not first < last or (logarithmic and first <= 0):
        fail(node, f"{key} goes upwards" + (", from above 0" if logarithmic else ""))
    whole = are_whole(entries) and unit in ("", "B")
    return [with_unit(sampling.between(first, last, place, logarithmic, whole), unit) for place in places]


def listed_values(node):
    """Returns (label, node) for a list of single values, or for any of {LABEL: value}."""
    if isinstance(node, yaml.MappingNode):
        return list(mapping(node, "values").items())
    values = []
    for item in sequence(node, "values"):
        if not isinstance(item, yaml.ScalarNode):
            fail(item, "a value that is a list or a mapping needs a label: values: {LABEL: value, ...}")
        values.append((item.value, item))
    return values


def cases(node):
    """Returns the values of {LABEL: {PATH: value, ...}}: each sets all its paths together."""
    values = []
    for label, settings in mapping(node, "cases").items():
        values.append(Value(label, list(mapping(settings, f"the case '{label}'").items())))
    return values


def read_values(vary, key, source, places):
    """Returns the values that an axis lists, in their order, and those of its points: of a sample one for each place."""
    if key == "cases":
        values = cases(source)
    elif key == "values":
        values = [Value(label, [(vary, node)]) for label, node in listed_values(source)]
    else:
        nodes = (log_values(source) if key == "log" else range_values(source) if key == "range" else
                 drawn_values(key, source, places))
        for each in nodes:
            each.start_mark = source.start_mark
        values = [Value(each.value, [(vary, each)]) for each in nodes]
    labels = [value.label for value in values]
    twice = next((label for label in labels if labels.count(label) > 1), None) if key in LISTED else None
    if not values or twice is not None:
        fail(source, f"the value '{twice}' is given twice" if values else "there is no value")
    return values, [values[int(place * len(values))] for place in places] if places is not None and key in LISTED else values


def read_name(node, entries):
    if "vary" not in entries and "name" not in entries:
        fail(node, "an axis of 'cases' needs 'name', its column")
    vary = text(entries["vary"], "'vary'") if "vary" in entries else ""
    name = text(entries["name"], "'name'") if "name" in entries else vary.split(".")[-1]
    if name in RESERVED or not re.fullmatch(r"\w+", name):
        fail(entries.get("name", entries.get("vary")),
             f"'{name}' cannot be a column: letters, digits and '_' but not {', '.join(RESERVED)} (set 'name')")
    return vary, name


def read_axis(node, sample=None):
    """Returns an axis. `sample`: a function that returns the places in [0, 1) of a sample for the axis of a name."""
    allowed = DRAWN if sample else LISTED
    entries = mapping(node, "an axis", ["vary", "name", *allowed] + ([] if sample else ["zip", "sample"]))
    if "vary" not in entries and "cases" not in entries:
        fail(node, "an axis needs 'vary' (what), 'cases'" + ("" if sample else ", 'zip' (a list of axes that go together) or 'sample'"))
    given = [key for key in allowed if key in entries]
    if len(given) != 1:
        fail(node, f"an axis needs one of {', '.join(repr(key) for key in allowed[:-1])} and '{allowed[-1]}'")
    if "cases" in entries and "vary" in entries:
        fail(entries["vary"], "'cases' say themselves what they set: 'vary' is left out")
    vary, name = read_name(node, entries)
    places = sample(name) if sample else None
    listed, values = read_values(vary, given[0], entries[given[0]], places)
    axis = Axis(name, [], values, node, listed, sampled=sample is not None)
    axis.paths = list(dict.fromkeys(path for value in listed for path, _ in value.settings))
    for value in listed:
        for path, each in value.settings:
            if path == "seed":
                number(each, "a seed", whole=True)
    if sample and axis.is_seed():
        fail(node, "seeds repeat each point of a sample: they are an axis of their own, {vary: seed, values: ...}")
    return axis


def read_zip(node):
    axes = [read_axis(each) for each in sequence(mapping(node, "a zip", ["zip"])["zip"], "zip")]
    for axis in axes[1:]:
        if len(axis.values) != len(axes[0].values):
            fail(axis.node, f"'{axis.name}' has {len(axis.values)} values, '{axes[0].name}', which it is zipped with, "
                            f"{len(axes[0].values)}")
    return axes


def read_sample(node):
    keys = ["sample", "points", "seed", "axes"]
    entries = mapping(node, "a sample", keys, keys)
    kind = text(entries["sample"], "'sample'")
    if kind not in sampling.KINDS:
        fail(entries["sample"], f"'{kind}' is no kind of sample (allowed: {', '.join(sampling.KINDS)})")
    points = int(number(entries["points"], "'points' of a sample", whole=True)[0])
    if not 1 <= points <= MOST_VALUES:
        fail(entries["points"], f"{points} points; allowed: 1 to {MOST_VALUES}")
    seed = text(entries["seed"], "'seed' of a sample")
    places = lambda name: sampling.KINDS[kind](seed, name, points)
    return [read_axis(each, places) for each in sequence(entries["axes"], "'axes' of a sample")]


def read_group(node):
    """Returns the axes of a group."""
    keys = [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    return read_zip(node) if "zip" in keys else read_sample(node) if "sample" in keys else [read_axis(node)]
