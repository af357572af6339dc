"""Sweep files: a base, axes over it, and the points that they span. The format is explained in docs/how-to/sweeps.md.

Values stay YAML nodes until netsim reads them, so that they reach it exactly as they were written and every error
knows its line.
"""

import copy
import dataclasses
import difflib
import hashlib
import itertools
import math
import os
import pathlib
import re
from decimal import Decimal, InvalidOperation

import yaml

from netsim_runs import execution

MOST_POINTS = 1_000_000
FILE_KEYS = ("cdf", "file")  # of workload descriptions: their values name other files
RESERVED = ("run", "outcome", "message")  # columns of the table that are no axis


class SweepError(Exception):
    """A wrong sweep file; one line that says where."""


def fail(node, message):
    mark = node.start_mark
    raise SweepError(f"{mark.name}:{mark.line + 1}:{mark.column + 1}: {message}")


@dataclasses.dataclass
class Value:
    label: str  # in the table and in pictures
    node: yaml.Node


@dataclasses.dataclass
class Axis:
    name: str
    vary: str  # seed, config, workload, workload.PATH or a path of the configuration
    values: list
    node: yaml.Node

    def unit(self):
        """The unit that all values are numbers of: "" for bare numbers, None where there is no such unit."""
        parts = [quantity(value.label) for value in self.values]
        units = {part[1] if part else None for part in parts}
        return units.pop() if len(units) == 1 else None

    def column(self):
        unit = self.unit()
        return f"{self.name}_{unit.replace('/', 'p')}" if unit and re.fullmatch(r"[A-Za-z/]+", unit) else self.name

    def cell(self, value):
        return quantity(value.label)[0] if self.column() != self.name else value.label


@dataclasses.dataclass
class Point:
    """One run: what it consists of, in words that netsim understands."""
    values: list  # (Axis, Value), in the order of the axes
    config: str
    workload: str
    seed: str
    until: str
    assignments: list  # PATH=VALUE
    plugins: list  # paths of shared libraries

    def title(self):
        return ", ".join(f"{axis.name}={value.label}" for axis, value in self.values)

    def arguments(self):
        words = [word for plugin in self.plugins for word in ("--plugin", plugin)]
        words += ["--config", self.config]
        words += ["--workload", self.workload] if self.workload else []
        words += ["--until", self.until] if self.until else []
        for assignment in self.assignments:
            words += ["--set", assignment]
        return words + ["--seed", self.seed]


def quantity(text):
    """"25 Gbps" -> ("25", "Gbps"); None for what is no number."""
    match = re.fullmatch(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z%/]*)", text.strip())
    return match.groups() if match else None


def nearest(word, words):
    near = difflib.get_close_matches(word, words, 1)
    return f", did you mean '{near[0]}'?" if near else ""


def mapping(node, what, allowed=None, required=()):
    """Entries of a mapping by key; `allowed` keys, None for any."""
    if not isinstance(node, yaml.MappingNode):
        fail(node, f"{what} is expected to be a mapping" + (f" (keys: {', '.join(allowed)})" if allowed else ""))
    entries = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            fail(key, f"a key of {what} is expected to be a word")
        if allowed is not None and key.value not in allowed:
            fail(key, f"unknown key '{key.value}' of {what}{nearest(key.value, allowed)} (allowed: {', '.join(allowed)})")
        if key.value in entries:
            fail(key, f"'{key.value}' is given twice")
        entries[key.value] = value
    for key in required:
        if key not in entries:
            fail(node, f"{what} needs '{key}'")
    return entries


def sequence(node, what):
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        fail(node, f"{what} is expected to be a list that is not empty")
    return node.value


def text(node, what):
    if not isinstance(node, yaml.ScalarNode) or node.value == "":
        fail(node, f"{what} is expected to be a single value")
    return node.value


def scalar(value):
    return yaml.ScalarNode("tag:yaml.org,2002:str", value)


def compose(path):
    """The file as one node. SweepError where it is no YAML."""
    try:
        with open(path, encoding="utf-8") as stream:
            node = yaml.compose(stream, Loader=yaml.SafeLoader)
    except OSError as error:
        raise SweepError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SweepError(f"{path}: is no text in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SweepError(f"{path}:{mark.line + 1}:{mark.column + 1}: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise SweepError(f"{path}: {error}") from None
    if node is None:
        raise SweepError(f"{path}: is empty")
    return node


def flow_text(node):
    """A node on one line, for --set and labels."""
    if isinstance(node, yaml.ScalarNode):
        return node.value
    node = copy.deepcopy(node)
    for each in walk(node):
        if not isinstance(each, yaml.ScalarNode):
            each.flow_style = True
    return yaml.serialize(node, width=math.inf).strip()


def walk(node):
    yield node
    for child in getattr(node, "value", []) if not isinstance(node, yaml.ScalarNode) else []:
        for each in child if isinstance(child, tuple) else (child,):
            yield from walk(each)


def put(root, path, value, place):
    """Puts `value` at the dotted `path` of a description; numbers are places in lists."""
    words = path.split(".")
    node = root
    for depth, word in enumerate(words):
        last = depth == len(words) - 1
        if isinstance(node, yaml.SequenceNode):
            if not word.isdigit() or int(word) >= len(node.value):
                fail(place, f"'{path}': '{word}' is no place in a list of {len(node.value)}")
            if last:
                node.value[int(word)] = value
            else:
                node = node.value[int(word)]
            continue
        if not isinstance(node, yaml.MappingNode):
            fail(place, f"'{path}': the workload has a single value where '{word}' would be")
        index = next((i for i, (key, _) in enumerate(node.value) if key.value == word), None)
        new = value if last else yaml.MappingNode("tag:yaml.org,2002:map", [])
        if index is None:
            node.value.append((scalar(word), new))
            node = new
        elif last:
            node.value[index] = (node.value[index][0], value)
        else:
            node = node.value[index][1]


def number(node, what, whole=False):
    parts = quantity(text(node, what))
    try:
        value = Decimal(parts[0]) if parts else None
    except InvalidOperation:
        value = None
    if value is None or (whole and (parts[1] or value != value.to_integral_value())):
        fail(node, f"{what} is '{node.value}'; " + ("a whole number" if whole else "a number") + " is expected")
    return value, parts[1]


def ends(entries, what):
    first, unit = number(entries["from"], f"'from' of {what}")
    last, other = number(entries["to"], f"'to' of {what}")
    if unit != other:
        fail(entries["to"], f"'to' of {what} is in '{other}', 'from' in '{unit}'; both need the same unit")
    return first, last, unit


def with_unit(value, unit):
    shown = format(value.normalize(), "f")
    return scalar(f"{shown} {unit}" if unit else shown)


def log_values(node):
    """{from, to, points}: a geometric sequence, rounded to whole numbers where both ends are, else to 3 digits."""
    entries = mapping(node, "log", ["from", "to", "points"], ["from", "to", "points"])
    first, last, unit = ends(entries, "log")
    points = int(number(entries["points"], "'points' of log", whole=True)[0])
    if first <= 0 or last <= 0:
        fail(node, "a log range needs ends above 0")
    if not 2 <= points <= 10_000:
        fail(entries["points"], f"{points} points; allowed: 2 to 10000")
    whole = all("." not in entries[key].value and "e" not in entries[key].value.lower() for key in ("from", "to"))
    values = []
    for i in range(points):
        exact = float(first) * (float(last) / float(first)) ** (i / (points - 1))
        rounded = Decimal(f"{exact:.3g}")
        if whole and not unit:
            rounded = Decimal(round(exact))
        values.append((first, last)[i > 0] if i in (0, points - 1) else rounded)
    return [with_unit(value, unit) for value in values]


def range_values(node):
    """{from, to, step}: an arithmetic sequence, both ends in it; step is 1 unless given."""
    entries = mapping(node, "range", ["from", "to", "step"], ["from", "to"])
    first, last, unit = ends(entries, "range")
    step = number(entries["step"], "'step' of range")[0] if "step" in entries else Decimal(1)
    if step <= 0 or last < first or (last - first) / step > 10_000:
        fail(node, "a range goes upwards, in steps above 0, at most 10000 of them")
    return [with_unit(first + i * step, unit) for i in range(int((last - first) / step) + 1)]


def listed_values(node):
    """A list of single values, or {LABEL: value} for any."""
    if isinstance(node, yaml.MappingNode):
        return [Value(label, value) for label, value in mapping(node, "values").items()]
    values = []
    for item in sequence(node, "values"):
        if not isinstance(item, yaml.ScalarNode):
            fail(item, "a value that is a list or a mapping needs a label: values: {LABEL: value, ...}")
        values.append(Value(item.value, item))
    return values


def read_axis(node):
    entries = mapping(node, "an axis", ["vary", "name", "values", "log", "range", "zip"])
    if "vary" not in entries:
        fail(node, "an axis needs 'vary' (what) or 'zip' (a list of axes that go together)")
    given = [key for key in ("values", "log", "range") if key in entries]
    if len(given) != 1:
        fail(node, "an axis needs one of 'values', 'log' and 'range'")
    vary = text(entries["vary"], "'vary'")
    name = text(entries["name"], "'name'") if "name" in entries else vary.split(".")[-1]
    if name in RESERVED or not re.fullmatch(r"\w+", name):
        fail(entries.get("name", entries["vary"]),
             f"'{name}' cannot be a column: letters, digits and '_' but not {', '.join(RESERVED)} (set 'name')")
    source = entries[given[0]]
    if given[0] == "values":
        values = listed_values(source)
    else:
        nodes = log_values(source) if given[0] == "log" else range_values(source)
        for each in nodes:
            each.start_mark = source.start_mark
        values = [Value(each.value, each) for each in nodes]
    labels = [value.label for value in values]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if not values or twice is not None:
        fail(source, f"'{name}' has the value '{twice}' twice" if values else f"'{name}' has no value")
    if vary == "seed":
        for value in values:
            number(value.node, "a seed", whole=True)
    return Axis(name, vary, values, node)


def read_group(node):
    """An axis, or axes that are zipped: a list of those that go together."""
    if isinstance(node, yaml.MappingNode) and any(key.value == "zip" for key, _ in node.value):
        entries = mapping(node, "a zip", ["zip"])
        axes = [read_axis(each) for each in sequence(entries["zip"], "zip")]
        for axis in axes[1:]:
            if len(axis.values) != len(axes[0].values):
                fail(axis.node, f"'{axis.name}' has {len(axis.values)} values, '{axes[0].name}', which it is zipped with, "
                                f"{len(axes[0].values)}")
        return axes
    return [read_axis(node)]


class Sweep:
    """A sweep file, read and checked as far as that goes without netsim. File names in it are relative to it.
    `plugins`: paths of more plugins than the file names, for all points."""

    def __init__(self, path, plugins=()):
        self.path = pathlib.Path(path)
        self.folder = self.path.parent.resolve()
        root = mapping(compose(path), "a sweep", ["base", "axes", "plots"], ["base", "axes"])
        self.base = mapping(root["base"], "base", ["config", "workload", "seed", "until", "set", "plugins"])
        self.groups = [read_group(node) for node in sequence(root["axes"], "axes")]
        self.axes = [axis for group in self.groups for axis in group]
        self.plots = sequence(root["plots"], "plots") if "plots" in root else []
        self.sets = list(mapping(self.base["set"], "set").items()) if "set" in self.base else []
        if "seed" in self.base:
            number(self.base["seed"], "'seed'", whole=True)
        self.plugins = self.read_plugins() + [os.path.abspath(each) for each in plugins]
        self.check_axes(root["base"])

    def read_plugins(self):
        """Paths of those that base names: one, or a list."""
        node = self.base.get("plugins")
        if node is None:
            return []
        nodes = [node] if isinstance(node, yaml.ScalarNode) else sequence(node, "'plugins'")
        paths = [self.folder / text(each, "a plugin") for each in nodes]
        for each, path in zip(nodes, paths):
            if not path.is_file():
                fail(each, f"there is no plugin '{path}'")
        return [str(path) for path in paths]

    def check_axes(self, base):
        for what in ("name", "vary", "column"):
            seen = {}
            for axis in self.axes:
                value = axis.column() if what == "column" else getattr(axis, what)
                if value in seen:
                    fail(axis.node, f"two axes with the {what} '{value}'" + (" (set 'name')" if what != "vary" else ""))
                seen[value] = axis
        varied = {axis.vary for axis in self.axes}
        if "config" not in self.base and "config" not in varied:
            fail(base, "base needs 'config', or an axis has to vary it")
        for path, node in self.sets:
            if path in varied:
                fail(node, f"'{path}' is set here and varied by an axis")
        into = next((axis for axis in self.axes if axis.vary.startswith("workload.")), None)
        if into and "workload" not in self.base and "workload" not in varied:
            fail(into.node, f"'{into.vary}' varies a workload, and base has none")
        if self.count() > MOST_POINTS:
            fail(self.axes[0].node, f"{self.count()} points; at most {MOST_POINTS} are allowed")

    def count(self):
        return math.prod(len(group[0].values) for group in self.groups)

    def columns(self):
        return [axis.column() for axis in self.axes]

    def cells(self, point):
        return [axis.cell(value) for axis, value in point.values]

    def points(self, workloads):
        """All points in the order of the axes, the last one fastest. Descriptions that differ from a file's are
        written into the folder `workloads`, each under the hash of its content."""
        for choice in itertools.product(*(range(len(group[0].values)) for group in self.groups)):
            yield self.point([(axis, axis.values[i]) for group, i in zip(self.groups, choice) for axis in group],
                             workloads)

    def point(self, values, workloads):
        chosen = {axis.vary: value.node for axis, value in values}
        config = chosen.get("config", self.base.get("config"))
        assignments = [f"{path}={flow_text(node)}" for path, node in self.sets]
        into = []
        for axis, value in values:
            if axis.vary.startswith("workload."):
                into.append((axis.vary.split(".", 1)[1], value.node, axis.node))
            elif axis.vary not in ("seed", "config", "workload"):
                assignments.append(f"{axis.vary}={flow_text(value.node)}")
        workload = self.workload(chosen.get("workload", self.base.get("workload")), into, workloads)
        seed = chosen.get("seed", self.base.get("seed", scalar("1")))
        until = text(self.base["until"], "'until'") if "until" in self.base else ""
        return Point(values, text(config, "'config'"), workload, seed.value, until, assignments, self.plugins)

    def workload(self, node, into, folder):
        """The path of the workload, relative to the sweep file or absolute."""
        if node is None:
            return ""
        if isinstance(node, yaml.ScalarNode) and not into:
            return text(node, "'workload'")
        if isinstance(node, yaml.ScalarNode):
            description = self.description(self.folder / text(node, "'workload'"), into[0][2])
        else:
            mapping(node, "a workload")
            description = copy.deepcopy(node)
        for path, value, place in into:
            put(description, path, copy.deepcopy(value), place)
        return str(write_by_content(folder, yaml.serialize(description, width=math.inf)))

    def description(self, path, place):
        node = compose(path) if is_description(path) else None
        if not isinstance(node, yaml.MappingNode):
            fail(place, f"'{path}' is no description in YAML: only those have values that an axis can vary")
        for each in walk(node):
            for key, value in each.value if isinstance(each, yaml.MappingNode) else []:
                if key.value in FILE_KEYS and isinstance(value, yaml.ScalarNode) and (path.parent / value.value).is_file():
                    value.value = os.path.relpath(path.parent / value.value, self.folder)
        return node


def is_description(path):
    """Whether the file can be text in YAML at all; what cannot be read is told by compose()."""
    try:
        with open(path, "rb") as stream:
            return b"\0" not in stream.read(4096)
    except OSError:
        return True


def write_by_content(folder, content):
    """Writes the text into `folder` under the hash of its content, unless it is there; where it is."""
    path = pathlib.Path(folder) / (hashlib.sha256(content.encode()).hexdigest()[:16] + ".yaml")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        execution.write_whole(path, content)
    return path.resolve()
