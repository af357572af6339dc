"""Is the name of each test suite used in one folder of tests/ only?

Each folder has a runner of its own, and ctest lists the suites of all runners by name. A name that two runners have would stand
for two tests.
"""

import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUITE = re.compile(r"^\s*(?:TEST|TEST_F|TYPED_TEST)\(\s*(\w+)|INSTANTIATE_(?:TYPED_)?TEST_SUITE_P\(\s*(\w+),\s*(\w+)", re.MULTILINE)


def suites_of(text):
    """Yields the names of suites as ctest lists them."""
    for plain, instance, suite in SUITE.findall(text):
        yield plain or f"{instance}/{suite}"


class SuiteNames(unittest.TestCase):
    def test_a_suite_belongs_to_one_folder(self):
        folders = collections.defaultdict(set)
        for path in (ROOT / "tests").rglob("*_test.cpp"):
            folder = path.relative_to(ROOT / "tests").parts[0]
            for suite in suites_of(path.read_text(encoding="utf-8")) if folder != "consumer" else []:
                folders[suite].add(folder)
        self.assertGreater(len(folders), 300)
        self.assertEqual({suite: names for suite, names in folders.items() if len(names) > 1}, {})

    def test_it_finds_all_kinds(self):
        text = "TEST(A, B) {\nTEST_F(C, D) {\nINSTANTIATE_TEST_SUITE_P(\n    E, F, x);\nTYPED_TEST(G, H) {\n"
        self.assertEqual(list(suites_of(text)), ["A", "C", "E/F", "G"])


if __name__ == "__main__":
    unittest.main()
