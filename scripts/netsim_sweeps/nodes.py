"""YAML nodes of a sweep file: reading them, and one error that says where.

Values stay nodes until netsim reads them, so that they reach it exactly as they were written and every error knows its line.
"""

import copy
import difflib
import math
import re
from decimal import Decimal, InvalidOperation

import yaml


class SweepError(Exception):
    """A wrong sweep file; one line that says where."""


def fail(node, message):
    mark = node.start_mark
    raise SweepError(f"{mark.name}:{mark.line + 1}:{mark.column + 1}: {message}")


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
