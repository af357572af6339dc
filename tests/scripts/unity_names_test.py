"""Are names of anonymous namespaces different within a folder of sim/, whose files are compiled together?

cmake/unity_groups.cmake cuts folders into groups by size, so two equal names may lie in different groups today and in one
group after the next edit. This test finds them before that.
"""

import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TYPE = re.compile(r"(?:template.*> )?(?:struct|class|enum class|enum|union) (\w+)|using (\w+) =")
FUNCTION = re.compile(r"([\w:<>,&*\s\[\]()]*?)[\s&*](\w+)\((.*)")
CONSTANT = re.compile(r"(?:const|constexpr|static|inline)\b[^(=]*?[\s&*](\w+)(?: =|\{|\[|;|$)")


def names_of(text):
    """Yields what each anonymous namespace of a source file declares: types and constants by name, functions by name and
    the first line of their parameters, because functions may be overloaded."""
    inside = False
    for line in text.splitlines():
        if line in ("namespace {", "}  // namespace"):
            inside = line == "namespace {"
        if not inside or not re.match(r"[A-Za-z_]", line) or line.startswith(("namespace", "static_assert", "template")):
            continue
        if kind := TYPE.match(line):
            yield kind.group(1) or kind.group(2)
        elif (constant := CONSTANT.match(line)) and "(" not in line[: constant.start(1)]:
            yield constant.group(1)
        elif function := FUNCTION.match(line):
            yield f"{function.group(2)}({function.group(3)}"


def repeated_names(folder):
    """Returns each name that several source files of a folder declare, with those files."""
    files = collections.defaultdict(set)
    for path in sorted(folder.glob("*.cpp")):
        for name in names_of(path.read_text(encoding="utf-8")):
            files[name].add(path.name)
    return {name: sorted(where) for name, where in files.items() if len(where) > 1}


class UnityNames(unittest.TestCase):
    def test_a_folder_declares_each_name_once(self):
        folders = sorted({path.parent for path in (ROOT / "sim").rglob("*.cpp")})
        self.assertGreater(len(folders), 20)
        for folder in folders:
            with self.subTest(folder.relative_to(ROOT).as_posix()):
                self.assertEqual(repeated_names(folder), {})

    def test_it_finds_types_constants_and_functions(self):
        text = "namespace {\nstruct A {\nconstexpr int kB = 1;\nint f(int x) {\nint f(long x) {\n}  // namespace\nint g() {\n"
        self.assertEqual(list(names_of(text)), ["A", "kB", "f(int x) {", "f(long x) {"])


if __name__ == "__main__":
    unittest.main()
