#!/usr/bin/env python3
"""Prints docs/reference/components.md: all kinds of components and their parameters, as the program describes them.

    scripts/reference.py             prints the page
    scripts/reference.py --write     writes it to docs/reference/components.md
    scripts/reference.py --check     exit code 1 where the file is not what the script prints
    scripts/reference.py --check --each 4    asks the program for each fourth description only

The texts are those of `netsim --list` and `netsim --describe`. `netsim --schema` says which keys take which kind.
"""
import argparse
import concurrent.futures
import difflib
import json
import os
import re
import subprocess
import sys
import textwrap

from netsim_runs import execution

PAGE = execution.ROOT / "docs" / "reference" / "components.md"
COLUMNS = 100  # width of the descriptions
NESTED_KEYS = "keys of the kinds that these keys take"  # begins the part of a description about other components
WIDE = 100_000  # a width at which no line of a list is wrapped

HEAD = """\
# Components and their parameters

This page is for those who write a configuration or a workload. It tells which components exist, which key chooses each, and which
parameters each has. The program prints the same: `--list` for all, and `--describe` with the name of a component or key for one.

`scripts/reference.py --write` writes this page; a change by hand is lost. A test fails where page and program differ.

A parameter is described by its type, its default and its allowed values. Values carry units, as in `400 Gbps`, `1 us`, `32 MB` or
`4 KiB`. A component with parameters is a mapping, `{kind: dcqcn, profile: vendor}`. A bare name takes all defaults.
"""

# Kinds that no key of the configuration chooses.
CHOSEN_OTHERWISE = {
    "result_sink": "Every run with `--out` has those of netsim, as far as its configuration asks for their data. `output.sinks` names others.",
    "workload": "The option `--workload FILE.yaml` names a file whose key `kind` chooses it; so does `workload` of a job.",
    "job_trace_reader": "The content of the files that `jobs: {trace: FILE}` names chooses it; no key does.",
    "workload_reader": "The content of the files that `--workload` names chooses it; no key does.",
}
# Places that the schema leaves to the program.
CHOSEN_ALSO = {
    "host": ["of each group in a list `hosts`: `kind`"],
    "placement": ["of a job: `placement`"],
    "strategy": ["for strategies of netsim itself: the keys of a `ptdp` job that each of them lists below"],
}


class Program:
    """The netsim whose components the page describes."""

    def __init__(self, binary):
        self.binary = binary

    def ask(self, *arguments, columns=COLUMNS):
        done = subprocess.run([self.binary, *arguments], env=dict(os.environ, COLUMNS=str(columns)), capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise SystemExit(f"{self.binary} {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def lists(self):
        """Returns {kind: {name: summary}}; "sections of the configuration" is the last kind."""
        kinds, kind = {}, None
        for line in self.ask("--list", columns=WIDE).splitlines():
            entry = re.fullmatch(r"  (\S+) +(\S.*)", line)
            if entry:
                kinds[kind][entry.group(1)] = entry.group(2)
            elif line and not line.startswith("netsim "):
                kind = line
                kinds[kind] = {}
        return kinds

    def description(self, name):
        """Returns the lines that describe a component or a section, without the title and without indentation."""
        lines = self.ask("--describe", name).rstrip("\n").splitlines()
        if NESTED_KEYS in lines:  # the page has each of these components below its own heading
            lines = lines[:lines.index(NESTED_KEYS) - 1]
        return [line[2:] if line.startswith("  ") else line for line in lines[1:]]


def keys_of_kinds(schema):
    """Returns {kind: [key]}: the keys that take a component of each kind, as dotted paths."""
    keys = {}

    def visit(node, path):
        if isinstance(node, list):
            for child in node:
                visit(child, path)
        elif isinstance(node, dict):
            kind = node.get("$ref", "").removeprefix("#/$defs/")
            if kind and "." not in kind and path and path not in keys.setdefault(kind, []):
                keys[kind].append(path)
            for name, child in node.items():
                if name == "properties":
                    for key, value in child.items():
                        visit(value, f"{path}.{key}" if path else key)
                elif name == "additionalProperties":
                    visit(child, f"{path}.NAME" if path else "NAME")
                elif name == "items":
                    visit(child, f"{path}[]")
                elif name != "$defs":
                    visit(child, path)

    visit({"properties": schema["properties"]}, "")
    for name, definition in schema["$defs"].items():
        kind, _, component = name.partition(".")
        if component:
            # The component of a kind is at the key that chooses it: network.packet's parameters are those of `network`.
            visit(definition, kind if kind in schema["properties"] else name)
    return keys


def chosen_by(kind, keys):
    """Returns the sentence that says which keys choose a component of the kind."""
    if kind in CHOSEN_OTHERWISE:
        return CHOSEN_OTHERWISE[kind]
    parents = {}
    for key in keys:
        parent, _, name = key.rpartition(".")
        parents.setdefault(parent, []).append(f"`{name}`")
    places = [(f"of `{parent}`: " if parent else "") + ", ".join(names) for parent, names in parents.items()]
    places += CHOSEN_ALSO.get(kind, [])
    return "\n".join(["Keys that take a component of this kind:", "", *(f"- {place}" for place in places)])


def keys_of_another(schema, kind, name):
    """Returns the keys that a component has in the map of another one; None where a `kind` chooses it."""
    if name in schema["$defs"][kind]["oneOf"][0]["enum"]:
        return None

    def leaves(definition, path):
        for key, value in definition["properties"].items():
            nested = [form for form in value.get("anyOf", []) if "properties" in form]
            if nested:
                yield from leaves(nested[0], f"{path}{key}.")
            elif path or key != "kind":
                yield path + key

    return list(leaves(schema["$defs"][f"{kind}.{name}"], ""))


def anchor(heading):
    """Returns the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def block(lines):
    return ["```text", *lines, "```", ""]


def blocks_of(text):
    """Returns the lines of the block of text under each third-level heading of a page."""
    found = re.findall(r"^### (\S+)\n\n```text\n(.*?)\n?```$", text, re.MULTILINE | re.DOTALL)
    return {title: content.split("\n") for title, content in found}


def page(program, known=None, each=1):
    """Returns the page. `known` maps titles to descriptions; the program is asked for each `each`-th one and those not in it."""
    lists = program.lists()
    sections = lists.pop("sections of the configuration")
    schema = json.loads(program.ask("--schema"))
    keys = keys_of_kinds(schema)
    # A section whose value is a component is described with its kind.
    own = [name for name in sections if re.search(r'"properties"', json.dumps(schema["properties"][name]))]
    names = own + [f"{kind}.{name}" for kind, components in lists.items() for name in components]
    known = known or {}
    asked = [name for number, name in enumerate(names) if number % each == 0 or name not in known]
    with concurrent.futures.ThreadPoolExecutor(execution.cores()) as pool:
        descriptions = {**known, **dict(zip(asked, pool.map(program.description, asked)))}

    lines = [HEAD]
    lines += ["Kinds:", "", *(f"- [{kind}](#{anchor(kind)})" for kind in lists), ""]
    lines += ["## Sections of the configuration", "", "A configuration has these keys at its top.", ""]
    width, table = max(len(name) for name in sections), []
    for name, text in sections.items():
        table += textwrap.wrap(text, COLUMNS, initial_indent=f"{name:{width}}  ", subsequent_indent=" " * (width + 2))
    lines += block(table)
    for name in own:
        lines += [f"### {name}", "", *block(descriptions[name])]
    for kind, components in lists.items():
        lines += [f"## {kind}", "", chosen_by(kind, keys.get(kind, [])), ""]
        for name in components:
            title = f"{kind}.{name}"
            shared = keys_of_another(schema, kind, name)
            if shared is not None:
                lines += [f"### {title}", "", *block([components[name], "", *textwrap.wrap("keys: " + ", ".join(shared or ["none"]), COLUMNS)])]
                continue
            lines += [f"### {title}", "", *block(descriptions[title])]
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", help="the program (default: the one that was built last)")
    parser.add_argument("--write", action="store_true", help="write the page to its file")
    parser.add_argument("--check", action="store_true", help="compare the file with the page")
    parser.add_argument("--each", type=int, default=1, help="with --check: compare each so-many-th description only")
    options = parser.parse_args()
    known = blocks_of(PAGE.read_text(encoding="utf-8")) if options.check and PAGE.exists() else {}
    text = page(Program(str(execution.find_binary(options.binary))), known, options.each)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    elif options.check:
        there = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        difference = list(difflib.unified_diff(there.splitlines(), text.splitlines(), str(PAGE.relative_to(execution.ROOT)), "the program",
                                               lineterm=""))
        print("\n".join(difference))
        return 1 if difference else 0
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
