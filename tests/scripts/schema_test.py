"""Does `netsim --schema` allow every configuration that is shipped, and refuse what netsim refuses?

NETSIM_BINARY names the program. Exit code 77 (ctest: skipped) without PyYAML. The validator knows what netsim writes; where
jsonschema is installed, both must agree.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
try:
    import yaml
except ModuleNotFoundError as error:
    print(f"skipped: no {error.name}")
    sys.exit(77)
try:
    import jsonschema
except ModuleNotFoundError:
    jsonschema = None

BINARY = os.environ.get("NETSIM_BINARY") or str(ROOT / "build/release/netsim")
KNOWN = {"$schema", "$defs", "title", "description", "default"}  # say nothing about what is allowed


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TYPES = {"object": lambda v: isinstance(v, dict), "array": lambda v: isinstance(v, list), "string": lambda v: isinstance(v, str),
         "boolean": lambda v: isinstance(v, bool), "null": lambda v: v is None, "number": is_number,
         "integer": lambda v: is_number(v) and v == int(v)}


def same(a, b):
    """JSON's equality: true is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


class Validator:
    """The part of JSON Schema 2020-12 that netsim writes. Anything else is a KeyError."""

    def __init__(self, root):
        self.root = root

    def allows(self, value, schema=None):
        schema = self.root if schema is None else schema
        if isinstance(schema, bool):
            return schema
        return all(getattr(self, "check_" + key.strip("$"))(value, schema[key], schema) for key in schema if key not in KNOWN)

    def check_ref(self, value, name, _):
        return self.allows(value, self.root["$defs"][name.removeprefix("#/$defs/")])

    def check_type(self, value, kinds, _):
        return any(TYPES[kind](value) for kind in (kinds if isinstance(kinds, list) else [kinds]))

    def check_enum(self, value, choices, _):
        return any(same(value, each) for each in choices)

    def check_const(self, value, only, _):
        return same(value, only)

    def check_pattern(self, value, pattern, _):
        return not isinstance(value, str) or re.search(pattern, value) is not None

    def check_minimum(self, value, low, _):
        return not is_number(value) or value >= low

    def check_maximum(self, value, high, _):
        return not is_number(value) or value <= high

    def check_anyOf(self, value, schemas, _):
        return any(self.allows(value, each) for each in schemas)

    def check_oneOf(self, value, schemas, _):
        return sum(self.allows(value, each) for each in schemas) == 1

    def check_allOf(self, value, schemas, _):
        return all(self.allows(value, each) for each in schemas)

    def check_items(self, value, schema, _):
        return not isinstance(value, list) or all(self.allows(each, schema) for each in value)

    def check_required(self, value, names, _):
        return not isinstance(value, dict) or all(name in value for name in names)

    def check_properties(self, value, schemas, _):
        return not isinstance(value, dict) or all(self.allows(value[k], s) for k, s in schemas.items() if k in value)

    def check_additionalProperties(self, value, schema, whole):
        known = whole.get("properties", {})
        return not isinstance(value, dict) or all(self.allows(each, schema) for key, each in value.items() if key not in known)


def schema(*subject):
    return json.loads(subprocess.run([BINARY, "--schema", *subject], capture_output=True, check=True).stdout)


def with_numbers(value):
    """PyYAML takes 50e12 for a text; YAML 1.2, which editors read, and netsim take it for a number."""
    if isinstance(value, dict):
        return {key: with_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_numbers(each) for each in value]
    return float(value) if isinstance(value, str) and re.fullmatch(r"[0-9.]+e[0-9]+", value) else value


def workloads(kinds):
    """The shipped files that describe a workload by its kind, or list jobs."""
    for path in sorted((ROOT / "configs").rglob("*.yaml")):
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
        if isinstance(value, dict) and (value.get("kind") in kinds or set(value) == {"jobs"}):
            yield path.relative_to(ROOT), with_numbers(value)


def configurations(names):
    """The shipped files that are configurations: maps with a network or hosts, and no key but those of the schema. Others are
    workloads, sweeps and parts of either."""
    for path in sorted((ROOT / "configs").rglob("*.yaml")):
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
        if isinstance(value, dict) and {"topology", "fabrics", "host", "hosts", "network"} & set(value) and "axes" not in value \
                and "kind" not in value:
            yield path.relative_to(ROOT), value, set(value) <= names


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = schema()
        cls.validator = Validator(cls.schema)

    def test_allows_every_shipped_configuration(self):
        checked = 0
        for path, value, known in configurations(set(self.schema["properties"])):
            with self.subTest(path=str(path)):
                self.assertTrue(known, "a key that the schema does not know")
                self.assertTrue(self.validator.allows(value))
            checked += 1
        self.assertGreater(checked, 100)

    def test_refuses_what_netsim_refuses(self):
        star = {"topology": {"kind": "star", "hosts": 4}, "host": "single_nic"}
        self.assertTrue(self.validator.allows(star))
        for wrong in ({"topolgy": {}}, {"topology": {"kind": "star", "hosts": 0.5}}, {"topology": {"kind": "stars"}},
                      {"topology": {"kind": "star", "hosts": 4, "rate": "100 furlongs"}}, {"host": {"kind": "single_nic", "a": 1}},
                      {"transport": {"mtu": True}}, {"topology": {"kind": "torus", "sizes": [2, 2], "wrap": {"a": 1}}}):
            with self.subTest(wrong=wrong):
                self.assertFalse(self.validator.allows(star | wrong))

    def test_lists_may_be_one_value(self):
        for wrap in (False, [False, True]):
            self.assertTrue(self.validator.allows({"topology": {"kind": "torus", "sizes": [4, 4], "wrap": wrap}}))

    def test_allows_every_shipped_workload(self):
        whole = schema("workload")
        validator = Validator(whole)
        kinds = {name.removeprefix("workload.") for name in whole["$defs"] if name.startswith("workload.")}
        checked = 0
        for path, value in workloads(kinds):
            with self.subTest(path=str(path)):
                self.assertTrue(validator.allows(value))
            checked += 1
        self.assertGreater(checked, 100)
        job = {"name": "a", "workload": {"kind": "incast", "receiver": 0, "senders": 3, "bytes": "1 MB"}}
        for right in ({"jobs": [job, {"name": "b", "workload": ["x.pb"], "arrival": "1 ms"}]},
                      {"jobs": {"trace": "jobs.csv"}}, {"jobs": {"poisson": 3, "of": [job]}}):
            self.assertTrue(validator.allows(right))
        for wrong in ([], {}, {"kind": "ptpd"}, {"kind": "incast", "sendres": 3}, {"jobs": [{"name": "a"}]}, {"jobs": {"poisson": 0.5}},
                      {"jobs": [job | {"arival": "1 ms"}]}, {"jobs": [job], "more": 1}):
            with self.subTest(wrong=wrong):
                self.assertFalse(validator.allows(wrong))

    @unittest.skipIf(jsonschema is None, "no jsonschema")
    def test_jsonschema_agrees(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)
        whole = jsonschema.Draft202012Validator(self.schema)
        for path, value, _ in list(configurations(set(self.schema["properties"])))[::8]:
            with self.subTest(path=str(path)):
                self.assertEqual(whole.is_valid(value), self.validator.allows(value))


if __name__ == "__main__":
    unittest.main()
