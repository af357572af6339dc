"""Are files, functions and pages as short as they are to be?

A file of sim/ has at most 500 lines and a function at most 72. The page of the architecture has at most 250 lines, its glossary
60, and a page of evidence 3,000 words.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST_LINES, MOST_OF_A_FUNCTION = 500, 72
MOST_OF_ARCHITECTURE, MOST_OF_GLOSSARY, MOST_WORDS_OF_EVIDENCE = 250, 60, 3000

# Texts in which a brace is none of the code: comments, raw strings, strings and characters.
NO_CODE = re.compile(r'//[^\n]*|R"(?P<end>\w*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
# The text before the brace of a function's body ends so; that of a statement begins so.
HEAD = re.compile(r"\)\s*(?:const|noexcept|override|final|mutable|->[^;{}]*|\s)*$|\)\s*:\s")
STATEMENT = re.compile(r"\s*(?:if|for|while|switch|else|catch|do)\b")


def functions(text):
    """Yields the line of the head and the number of lines of each function that is in no other one."""
    text = NO_CODE.sub(lambda found: "\n" * found.group().count("\n"), text)
    line, begin, open_blocks = 1, 0, []
    for at, character in enumerate(text):
        if character == "\n":
            line += 1
        elif character == "{":
            head = text[begin:at].strip()
            open_blocks.append((bool(HEAD.search(head)) and not STATEMENT.match(head), line))
        elif character == "}":
            is_function, first = open_blocks.pop()
            if is_function and not any(outer for outer, _ in open_blocks):
                yield first, line - first + 1
        if character in "{};":
            begin = at + 1


class Lengths(unittest.TestCase):
    def sources(self):
        for path in sorted((ROOT / "sim").rglob("*")):
            if path.suffix in (".h", ".cpp"):
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")

    def test_of_files(self):
        self.assertEqual({name: text.count("\n") for name, text in self.sources() if text.count("\n") > MOST_LINES}, {})

    def test_of_functions(self):
        lengths = [(length, f"{name}:{line}") for name, text in self.sources() for line, length in functions(text)]
        self.assertGreater(len(lengths), 5000)
        self.assertEqual([found for found in lengths if found[0] > MOST_OF_A_FUNCTION], [])
        self.assertLessEqual(sorted(length for length, _ in lengths)[len(lengths) // 2], 5)

    def test_of_pages(self):
        architecture = (ROOT / "docs" / "concepts" / "architecture.md").read_text(encoding="utf-8")
        self.assertLessEqual(architecture.count("\n"), MOST_OF_ARCHITECTURE)
        self.assertLessEqual(architecture.partition("## Glossary\n")[2].count("\n"), MOST_OF_GLOSSARY)
        words = {path.name: len(path.read_text(encoding="utf-8").split()) for path in (ROOT / "docs" / "evidence").glob("*.md")}
        self.assertGreater(len(words), 5)
        self.assertEqual({name: count for name, count in words.items() if count > MOST_WORDS_OF_EVIDENCE}, {})


class Functions(unittest.TestCase):
    def test_it_counts_what_is_in_no_other_function(self):
        text = 'void a() {\n  if (x) {\n  }\n}\nstruct S {\n  int b() const { return f([] {\n    "}"; }); }  // }\n  S() : x_{1} {}\n};\n'
        self.assertEqual(list(functions(text)), [(1, 4), (6, 2), (8, 1)])

    def test_it_sees_the_end_of_a_long_one(self):
        text = "namespace n {\nint long_one(int a,\n             int b) {\n" + "  f();\n" * 80 + "}\n}\n"
        self.assertEqual(list(functions(text)), [(3, 82)])


if __name__ == "__main__":
    unittest.main()
