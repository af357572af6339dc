"""Does scripts/words.py find what the rules of comments and pages forbid, where it stands, and nothing else?"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import words

LONG = " ".join(["word"] * 26) + "."
ALLOWED = " ".join(["word"] * 25) + "."


def lines_of(findings):
    return [finding.line for finding in findings]


def look(name, text):
    return list(words.check(pathlib.Path(name), text.splitlines()))


class Comments(unittest.TestCase):
    def test_a_block_that_begins_as_a_fragment_is_found(self):
        for word in ["Of", "What", "Who", "Whose", "Which", "That", "Those"]:
            self.assertEqual(lines_of(look("a.h", f"int a;\n// {word} it sends.\nint b;\n")), [2], word)

    def test_such_a_word_may_begin_a_later_sentence_and_a_longer_word(self):
        self.assertEqual(look("a.h", "// Sends it. Which one is said below.\n// Offset in bytes.\n"), [])

    def test_no_sentence_begins_with_of(self):
        self.assertEqual(lines_of(look("a.h", "// Sends it.\n// Of two equal ones it sends the first.\n")), [2])
        self.assertEqual(lines_of(look("a.md", "It sends one. Of two equal ones it sends the first.\n")), [1])

    def test_the_lines_of_a_block_are_one_text(self):
        half = " ".join(["word"] * 13)
        self.assertEqual(lines_of(look("a.cpp", f"// First.\n// {half}\n// {half}.\n")), [2])
        self.assertEqual(look("a.cpp", f"// {half}\n\n// {half}\n"), [])

    def test_a_sentence_may_have_25_words(self):
        self.assertEqual(look("a.py", f"# {ALLOWED}\n"), [])
        for name in ["a.py", "a.sh", "a.yaml", "CMakeLists.txt"]:
            self.assertEqual(lines_of(look(name, f"# {LONG}\n")), [1], name)

    def test_a_comment_beside_code_ends_before_the_next_declaration(self):
        self.assertEqual(lines_of(look("a.h", "int a;  // Bytes.\n// Of it.\nint b;\n")), [2])
        self.assertEqual(look("a.h", "int a;  // Bytes,\n        // That is all.\n"), [])

    def test_what_is_no_comment_is_not_looked_at(self):
        self.assertEqual(look("a.cpp", 'auto a = "// What";\n'), [])
        self.assertEqual(look("a.sh", "echo $# # Counts.\n"), [])
        self.assertEqual(look("a.json", "// What\n"), [])

    def test_abbreviations_and_numbers_do_not_end_a_sentence(self):
        text = "It takes 0.5 us, e.g. " + " ".join(["word"] * 21)
        self.assertEqual(lines_of(look("a.h", f"// {text}.\n")), [1])

    def test_a_retired_word_is_found_in_text_and_not_in_code(self):
        self.assertEqual(lines_of(look("a.h", "// First.\n// It has a door.\n")), [2])
        self.assertEqual(look("a.h", "// Calls `books`.\n"), [])


class Pages(unittest.TestCase):
    def test_tables_code_and_headings_have_no_sentences(self):
        row = "| " + "word " * 30 + "|"
        self.assertEqual(look("a.md", f"# {LONG}\n\n{row}\n\n    {LONG}\n\n```\n{LONG}\n```\n"), [])

    def test_a_row_has_at_most_160_characters(self):
        self.assertEqual(look("a.md", "|" + "x" * 158 + "|\n"), [])
        self.assertEqual(lines_of(look("a.md", "|" + "x" * 159 + "|\n")), [1])

    def test_a_link_counts_without_its_address_and_code_as_one_word(self):
        words_23 = " ".join(["word"] * 23)
        self.assertEqual(look("a.md", f"{words_23} [page](docs/a.md) `a b c d`.\n"), [])

    def test_items_of_a_list_are_texts_of_their_own(self):
        half = " ".join(["word"] * 13)
        self.assertEqual(look("a.md", f"- {half}\n- {half}\n"), [])

    def test_a_page_may_begin_with_any_word(self):
        self.assertEqual(look("a.md", "What it does is short.\n"), [])


if __name__ == "__main__":
    unittest.main()
