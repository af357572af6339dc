"""Is the name of each test suite used in one folder of tests/ only, and does ctest's label `threads` have all cases with threads?

Each folder has a runner of its own, and ctest lists the suites of all runners by name. A name that two runners have would stand
for two tests. ThreadSanitizer runs only the suites of the list `threads` of tests/CMakeLists.txt.
"""

import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUITE = re.compile(r"^\s*(?:TEST|TEST_F|TYPED_TEST)\(\s*(\w+)|INSTANTIATE_(?:TYPED_)?TEST_SUITE_P\(\s*(\w+),\s*(\w+)", re.MULTILINE)

CASE = re.compile(r"^(?:TEST|TEST_F|TEST_P)\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
# Finds code that starts a second thread in the runner itself: std::thread, or the threads of a run.
SECOND_THREAD = re.compile(r"std::thread\b|\bthreads = [2-9]|\bthreads : \{")
WITHOUT = {"Partition"}  # divides a network for a number of threads, and starts none


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


class SuitesWithThreads(unittest.TestCase):
    def setUp(self):
        lists = (ROOT / "tests" / "CMakeLists.txt").read_text(encoding="utf-8")
        self.patterns = re.search(r"^set\(threads ([^)]+)\)", lists, re.MULTILINE).group(1).split()

    def has_label(self, suite):
        return any(re.fullmatch(pattern, suite) for pattern in self.patterns)

    def cases(self):
        for path in (ROOT / "tests").rglob("*_test.cpp"):
            text = path.read_text(encoding="utf-8")
            for case in CASE.finditer(text):
                yield path.name, case.group(1), case.group(2), text[case.end():text.find("\n}\n", case.end())]

    def test_a_case_that_starts_threads_has_the_label(self):
        missing = [f"{file}: {suite}.{name}" for file, suite, name, body in self.cases()
                   if (SECOND_THREAD.search(body) or "Threads" in name) and suite not in WITHOUT and not self.has_label(suite)]
        self.assertEqual(missing, [])

    def test_each_pattern_has_a_suite(self):
        suites = {suite for _, suite, _, _ in self.cases()}
        for pattern in self.patterns:
            self.assertTrue(any(re.fullmatch(pattern, suite) for suite in suites), pattern)
        self.assertGreater(sum(self.has_label(suite) for suite in suites), 15)


if __name__ == "__main__":
    unittest.main()
