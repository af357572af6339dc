"""Sweep files: a base, axes over it, and the points that they span. The format is explained in docs/how-to/sweeps.md."""

import copy
import dataclasses
import hashlib
import itertools
import math
import os
import pathlib

import yaml

from netsim_runs import execution
from netsim_sweeps.axes import read_group
from netsim_sweeps.nodes import SweepError, compose, fail, flow_text, mapping, nearest, number, put, scalar, sequence, text, walk

__all__ = ["Point", "Sweep", "SweepError"]

MOST_POINTS = 1_000_000
FILE_KEYS = ("cdf", "file")  # of workload descriptions: their values name other files


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


class Sweep:
    """A sweep file, read and checked as far as that goes without netsim. File names in it are relative to it.
    `plugins`: paths of more plugins than the file names, for all points."""

    def __init__(self, path, plugins=()):
        self.path = pathlib.Path(path)
        self.folder = self.path.parent.resolve()
        root = mapping(compose(path), "a sweep", ["base", "axes", "exclude", "plots"], ["base", "axes"])
        self.base = mapping(root["base"], "base", ["config", "workload", "seed", "until", "set", "plugins"])
        self.groups = [read_group(node) for node in sequence(root["axes"], "axes")]
        self.axes = [axis for group in self.groups for axis in group]
        self.excluded = [self.read_excluded(node) for node in sequence(root["exclude"], "exclude")] if "exclude" in root else []
        self.plots = sequence(root["plots"], "plots") if "plots" in root else []
        self.sets = list(mapping(self.base["set"], "set").items()) if "set" in self.base else []
        if "seed" in self.base:
            number(self.base["seed"], "'seed'", whole=True)
        self.plugins = self.read_plugins() + [os.path.abspath(each) for each in plugins]
        self.check_axes(root["base"])
        if self.excluded and next(self.choices(), None) is None:
            fail(root["exclude"], "'exclude' leaves no point")

    def axis_named(self, node, name):
        for axis in self.axes:
            if axis.name == name:
                return axis
        names = [axis.name for axis in self.axes]
        fail(node, f"'{name}' is no axis{nearest(name, names)} (there are {', '.join(names)})")

    def read_excluded(self, node):
        """Returns labels by the names of axes: points that have all of them are left out."""
        entries = mapping(node, "an entry of 'exclude'")
        if not entries:
            fail(node, "an entry of 'exclude' names the value of at least one axis")
        return {name: self.axis_named(value, name).label_of(value) for name, value in entries.items()}

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
        for what, names in (("name", lambda axis: [axis.name]), ("column", lambda axis: [axis.column()]), ("path", lambda axis: axis.paths)):
            seen = set()
            for axis in self.axes:
                twice = next((name for name in names(axis) if name in seen), None)
                if twice is not None:
                    fail(axis.node, f"two axes with the {what} '{twice}'" + (" (set 'name')" if what != "path" else ""))
                seen.update(names(axis))
        varied = {path for axis in self.axes for path in axis.paths}
        if "config" not in self.base and "config" not in varied:
            fail(base, "base needs 'config', or an axis has to vary it")
        for path, node in self.sets:
            if path in varied:
                fail(node, f"'{path}' is set here and varied by an axis")
        for axis in self.axes if "workload" not in self.base and "workload" not in varied else []:
            for path in axis.paths:
                if path.startswith("workload."):
                    fail(axis.node, f"'{path}' varies a workload, and base has none")
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
        for values in self.choices():
            yield self.point(values, workloads)

    def choices(self):
        """Yields the values of each point that is not excluded: (axis, value) of all axes."""
        for choice in itertools.product(*(range(len(group[0].values)) for group in self.groups)):
            values = [(axis, axis.values[i]) for group, i in zip(self.groups, choice) for axis in group]
            labels = {axis.name: value.label for axis, value in values}
            if not any(excluded.items() <= labels.items() for excluded in self.excluded):
                yield values

    def point(self, values, workloads):
        chosen = {path: node for _, value in values for path, node in value.settings}
        config = chosen.get("config", self.base.get("config"))
        if config is None:
            fail(values[0][0].node, "base needs 'config', because not all cases have one")
        assignments = [f"{path}={flow_text(node)}" for path, node in self.sets]
        into = []
        for axis, value in values:
            for path, node in value.settings:
                if path.startswith("workload."):
                    into.append((path.split(".", 1)[1], node, axis.node))
                elif path not in ("seed", "config", "workload"):
                    assignments.append(f"{path}={flow_text(node)}")
        workload = self.workload(chosen.get("workload", self.base.get("workload")), into, workloads)
        seed = chosen.get("seed", self.base.get("seed", scalar("1")))
        until = text(self.base["until"], "'until'") if "until" in self.base else ""
        return Point(values, text(config, "'config'"), workload, seed.value, until, assignments, self.plugins)

    def workload(self, node, into, folder):
        """The path of the workload, relative to the sweep file or absolute."""
        if node is None:
            if into:
                fail(into[0][2], f"'workload.{into[0][0]}' varies a workload, and base has none")
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
